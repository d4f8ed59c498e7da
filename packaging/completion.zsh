#compdef pperf pperf-report
# Completion of pperf and pperf-report for zsh. What there is to choose from is asked of the programs themselves.
_pperf_options() {
	local -a options
	options=(${(f)"$($@ --help 2> /dev/null | sed -nE 's/^ +(-[a-z], )?(--[a-z][a-z-]*)( [^ ]+)? +(.*)/\2:\4/p')"})
	_describe option options
}
_pperf_views() {
	local -a views
	views=(${(f)"$(pperf-report --help 2> /dev/null | sed -n '/^views/,/^$/s/^  \([a-z][a-z-]*\)  *\([^ ].*\)/\1:\2/p')"})
	_describe view views
	_files
}
# The words that stand behind an option in --help: `--format text|json|csv`, `--stacks WHAT ... : alloc (the default), launch, off (`.
_pperf_value() {
	local option=$words[CURRENT-1]
	local -a values
	[[ $PREFIX != --*=* ]] || option=${PREFIX%%=*}
	[[ $option == -* ]] || return 1
	values=(${(f)"$($1 --help 2> /dev/null | grep -E '^ +(-[a-z], )?--[a-z-]+' | grep -E -- "(^| )${option}[ ,]" |
		sed -nE 's/^ +(-[a-z], )?(--[a-z-]+) ([a-z]+(\|[a-z]+)+).*/\3/p; s/^ +(--[a-z]+) [A-Z]+ [^:]*: (.*)\(PPERF_.*/\2/p' |
		sed -E 's/\([^)]*\)//g; s/[|,;]/ /g' | tr -s ' ' '\n' | grep -xE '[a-z]+')"})
	(( $#values )) || return 1
	[[ $PREFIX != --*=* ]] || compset -P '*='
	compadd -- $values
}
_pperf_report() {
	if _pperf_value pperf-report; then return
	elif [[ $PREFIX == -* ]]; then _pperf_options pperf-report
	elif (( CURRENT == $1 )); then _pperf_views
	else _files
	fi
}
# What there is for the command of `pperf run` and `pperf doctor`. Of some options the next word is the value.
_pperf_command() {
	local option
	local -a valued
	valued=(${=$(pperf --help 2> /dev/null | sed -nE 's/^ +(-[a-z]), (--[a-z-]+) [A-Z]+ .*/\1 \2/p; s/^ +(--[a-z-]+) [A-Z]+ .*/\1/p')})
	shift 2 words
	(( CURRENT -= 2 ))
	while [[ $words[1] == -* ]] && (( CURRENT > 1 )); do
		option=$words[1]
		shift words
		(( CURRENT-- ))
		[[ $option != -- ]] || break
		(( $valued[(Ie)$option] )) || continue
		(( CURRENT > 1 )) || { _files; return; }
		shift words
		(( CURRENT-- ))
	done
	_normal
}

if [[ $service == pperf-report ]]; then
	_pperf_report 2
elif (( CURRENT == 2 )); then
	local -a commands
	commands=(${(uf)"$(pperf --help 2> /dev/null | grep -oE 'pperf [a-z]+ \[' | cut -d' ' -f2)"})
	_describe command commands
elif [[ $words[2] == report ]]; then
	_pperf_report 3
elif [[ $words[2] == run ]] && _pperf_value pperf; then
	return
elif (( ${${=:-part ranks tree steps diagnose query history}[(Ie)$words[2]]} )); then
	if [[ $PREFIX == -* ]]; then
		_pperf_options pperf $words[2]
	else
		[[ $words[2] != history ]] || (( CURRENT != 3 )) || compadd -- add regressions accept trends html
		_files
	fi
elif [[ $PREFIX == -* ]]; then
	_pperf_options pperf
else
	_pperf_command
fi
