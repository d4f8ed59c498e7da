# Completion of pperf and pperf-report for bash. What there is to choose from is asked of the programs themselves.
_pperf_options() { "$@" --help 2> /dev/null | grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,' | sort -u; }
_pperf_views() { "$1" --help 2> /dev/null | sed -n '/^views/,/^$/s/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p'; }
# The words of `one|two|three` that stand behind an option in --help.
_pperf_values() { "$1" --help 2> /dev/null | sed -n "s/^.*$2 \([a-z]*|[a-z|]*\).*/\1/p" | tr '|' ' '; }

_pperf_complete_report() {
	local program=$1 word=$2 before=$3 values
	values=$([[ $before == --* ]] && _pperf_values "$program" "$before")
	if [[ -n $values ]]; then
		COMPREPLY=($(compgen -W "$values" -- "$word"))
	elif [[ $word == -* ]]; then
		COMPREPLY=($(compgen -W "$(_pperf_options "$program")" -- "$word"))
	else
		COMPREPLY=($(compgen -f -- "$word"))
		[[ $COMP_CWORD == "$4" ]] && COMPREPLY+=($(compgen -W "$(_pperf_views "$program")" -- "$word"))
	fi
}

_pperf() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} at
	compopt -o filenames 2> /dev/null
	if [[ ${COMP_WORDS[0]##*/} == pperf-report ]]; then
		_pperf_complete_report "${COMP_WORDS[0]}" "$word" "$before" 1
	elif ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" --help 2> /dev/null | grep -oE 'pperf [a-z]+ \[' | cut -d' ' -f2 | sort -u) --help --version" -- "$word"))
	elif [[ ${COMP_WORDS[1]} == report ]]; then
		_pperf_complete_report "$(command -v pperf-report || echo "$(dirname "$(command -v "${COMP_WORDS[0]}")")/pperf-report")" "$word" "$before" 2
	elif [[ $word == -* ]]; then
		COMPREPLY=($(compgen -W "$(_pperf_options "${COMP_WORDS[0]}")" -- "$word"))
	else
		for ((at = 2; at < COMP_CWORD; at++)); do
			[[ ${COMP_WORDS[at]} == -* ]] || break
		done
		if declare -F _command_offset > /dev/null; then _command_offset "$at"; else COMPREPLY=($(compgen -c -f -- "$word")); fi
	fi
}
complete -F _pperf pperf pperf-report
