# Completion of pperf and pperf-report for fish. What there is to choose from is asked of the programs themselves.
function __pperf_options
    $argv --help 2>/dev/null | string match -rg -- '^\s+(?:-\w, )?(--[a-z][a-z-]*)(?: \S+)?\s+(.*)' | while read -l option
        read -l help
        printf '%s\t%s\n' $option $help
    end
end
function __pperf_views
    pperf-report --help 2>/dev/null | sed -n '/^views/,/^$/s/^  \([a-z][a-z-]*\)  *\([^ ].*\)/\1\t\2/p'
end
function __pperf_commands
    pperf --help 2>/dev/null | string match -rg 'pperf ([a-z]+) \[' | sort -u
end
complete -c pperf-report -n 'test (count (commandline -opc)) -eq 1' -a '(__pperf_views)'
complete -c pperf-report -n 'string match -q -- "-*" (commandline -ct)' -a '(__pperf_options pperf-report)'
complete -c pperf -n 'test (count (commandline -opc)) -eq 1' -f -a '(__pperf_commands)'
complete -c pperf -n '__fish_seen_subcommand_from report; and test (count (commandline -opc)) -eq 2' -a '(__pperf_views)'
complete -c pperf -n '__fish_seen_subcommand_from report; and string match -q -- "-*" (commandline -ct)' -a '(__pperf_options pperf-report)'
complete -c pperf -n '__fish_seen_subcommand_from run; and string match -q -- "-*" (commandline -ct)' -a '(__pperf_options pperf)'
complete -c pperf -n '__fish_seen_subcommand_from run; and not string match -q -- "-*" (commandline -ct)' -a '(__fish_complete_subcommand)'
