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
_pperf_report() {
	if [[ $PREFIX == -* ]]; then _pperf_options pperf-report
	elif (( CURRENT == $1 )); then _pperf_views
	else _files
	fi
}

if [[ $service == pperf-report ]]; then
	_pperf_report 2
elif (( CURRENT == 2 )); then
	local -a commands
	commands=(${(uf)"$(pperf --help 2> /dev/null | grep -oE 'pperf [a-z]+ \[' | cut -d' ' -f2)"})
	_describe command commands
elif [[ $words[2] == report ]]; then
	_pperf_report 3
elif [[ $PREFIX == -* ]]; then
	_pperf_options pperf
else
	shift 2 words
	(( CURRENT -= 2 ))
	while [[ $words[1] == -* ]] && (( CURRENT > 1 )); do shift words; (( CURRENT-- )); done
	_normal
fi
