# Completion of pperf and pperf-report for bash. What there is to choose from is asked of the programs themselves.
_pperf_options() { "$@" --help 2> /dev/null | grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,' | sort -u; }
_pperf_views() { "$1" --help 2> /dev/null | sed -n '/^views/,/^$/s/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p'; }
# The words that stand behind an option in --help: `--format text|json|csv`, `--stacks WHAT ... : alloc (the default), launch, off (`.
_pperf_values() {
	"$1" --help 2> /dev/null | grep -E -- "^ +(-[a-z], )?(--[a-z-]+)" | grep -E -- "(^| )$2[ ,]" |
		sed -nE 's/^ +(-[a-z], )?(--[a-z-]+) ([a-z]+(\|[a-z]+)+).*/\3/p; s/^ +(--[a-z]+) [A-Z]+ [^:]*: (.*)\(PPERF_.*/\2/p' |
		sed -E 's/\([^)]*\)//g; s/[|,;]/ /g' | tr -s ' ' '\n' | grep -xE '[a-z]+' | sort -u
}

# Lines become what there is to choose from: a name may have blanks in it.
_pperf_reply() {
	local line
	COMPREPLY=()
	while IFS= read -r line; do COMPREPLY+=("$line"); done
}
_pperf_words() { compgen -W "$(cat)" -- "$1"; }

_pperf_complete_report() {
	local program=$1 word=$2 before=$3 values=
	[[ $before != -* ]] || values=$(_pperf_values "$program" "$before")
	if [[ -n $values ]]; then
		_pperf_reply < <(_pperf_words "$word" <<< "$values")
	elif [[ $word == -* ]]; then
		_pperf_reply < <(_pperf_options "$program" | _pperf_words "$word")
	else
		_pperf_reply < <(compgen -f -- "$word"; [[ $COMP_CWORD != "$4" ]] || _pperf_views "$program" | _pperf_words "$word")
	fi
}

# The options of `pperf run` that the next word is the value of.
_pperf_valued() { "$1" --help 2> /dev/null | sed -nE 's/^ +(-[a-z]), (--[a-z-]+) [A-Z]+ .*/\1 \2/p; s/^ +(--[a-z-]+) [A-Z]+ .*/\1/p'; }

# Where the command of `pperf run` begins, an option's value not taken for it.
_pperf_command_at() {
	local at word valued
	valued=" $(_pperf_valued "$1" | tr '\n' ' ')"
	for ((at = 2; at < COMP_CWORD; at++)); do
		word=${COMP_WORDS[at]}
		[[ $word != -- ]] || { echo $((at + 1)); return; }
		[[ $word == -* ]] || break
		[[ $valued == *" $word "* ]] || continue
		at=$((at + 1))
		[[ ${COMP_WORDS[at]-} != = ]] || at=$((at + 1))
	done
	echo "$at"
}

_pperf_complete_run() {
	local program=$1 word=$2 before=$3 values= at
	at=$(_pperf_command_at "$program")
	[[ $at -le $COMP_CWORD || $before != -* ]] || values=$(_pperf_values "$program" "$before")
	if [[ -n $values ]]; then
		_pperf_reply < <(_pperf_words "$word" <<< "$values")
	elif ((at > COMP_CWORD)); then
		_pperf_reply < <(compgen -f -- "$word")
	elif ((at == COMP_CWORD)) && [[ $word == -* ]]; then
		_pperf_reply < <(_pperf_options "$program" | _pperf_words "$word")
	elif declare -F _command_offset > /dev/null; then
		_command_offset "$at"
	elif ((at == COMP_CWORD)); then
		_pperf_reply < <(compgen -c -f -- "$word" | sort -u)
	else
		_pperf_reply < <(compgen -f -- "$word")
	fi
}

_pperf() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	compopt -o filenames 2> /dev/null
	# bash makes a word of the = in --format=json
	[[ $word != = ]] || word=
	[[ $before != = ]] || before=${COMP_WORDS[COMP_CWORD - 2]}
	if [[ ${COMP_WORDS[0]##*/} == pperf-report ]]; then
		_pperf_complete_report "${COMP_WORDS[0]}" "$word" "$before" 1
	elif ((COMP_CWORD == 1)); then
		_pperf_reply < <({ "${COMP_WORDS[0]}" --help 2> /dev/null | grep -oE 'pperf [a-z]+ \[' | cut -d' ' -f2 | sort -u; echo --help --version; } | _pperf_words "$word")
	elif [[ ${COMP_WORDS[1]} == report ]]; then
		_pperf_complete_report "$(command -v pperf-report || echo "$(dirname "$(command -v "${COMP_WORDS[0]}")")/pperf-report")" "$word" "$before" 2
	elif [[ " part ranks tree steps diagnose query history " == *" ${COMP_WORDS[1]} "* ]]; then
		if [[ $word == -* ]]; then
			_pperf_reply < <(_pperf_options "${COMP_WORDS[0]}" "${COMP_WORDS[1]}" | _pperf_words "$word")
		else
			_pperf_reply < <([[ ${COMP_WORDS[1]} != history ]] || ((COMP_CWORD != 2)) || compgen -W 'add regressions accept trends html' -- "$word"; compgen -f -- "$word")
		fi
	else
		_pperf_complete_run "${COMP_WORDS[0]}" "$word" "$before"
	fi
}
complete -F _pperf pperf pperf-report
