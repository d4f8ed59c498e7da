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
# The words that stand behind an option in --help: `--format text|json|csv`, `--stacks WHAT ... : alloc (the default), launch, off (`.
function __pperf_values -a program option
    string match -q -- '-*' $option; or return
    $program --help 2>/dev/null | string match -r -- '^ +(?:-[a-z], )?--[a-z-]+.*' | string match -r -- ".*(?:^| )$option"'[ ,].*' |
        sed -nE 's/^ +(-[a-z], )?(--[a-z-]+) ([a-z]+(\|[a-z]+)+).*/\3/p; s/^ +(--[a-z]+) [A-Z]+ [^:]*: (.*)\(PPERF_.*/\2/p' |
        sed -E 's/\([^)]*\)//g; s/[|,;]/ /g' | tr -s ' ' '\n' | string match -r '^[a-z]+$'
end
# Of the option before the cursor, or of --option= at it.
function __pperf_value -a program
    set -l option (string match -rg -- '^(--[a-z-]+)=' (commandline -ct))
    if test -n "$option"
        string replace -r '^' -- "$option=" (__pperf_values $program $option)
    else
        __pperf_values $program (commandline -opc)[-1]
    end
end
# The options of `pperf run` that the next word is the value of.
function __pperf_valued
    pperf --help 2>/dev/null | sed -nE 's/^ +(-[a-z]), (--[a-z-]+) [A-Z]+ .*/\1 \2/p; s/^ +(--[a-z-]+) [A-Z]+ .*/\1/p' | string split ' '
end
# What there is for the command of `pperf run` and `pperf doctor`.
function __pperf_command
    set -l words (commandline -opc)
    set -e words[1..2]
    while set -q words[1]; and string match -q -- '-*' $words[1]
        if test "$words[1]" = --
            set -e words[1]
            break
        end
        if contains -- $words[1] (__pperf_valued)
            set -e words[1]
            set -q words[1]; or return # a value is asked for
        end
        set -e words[1]
    end
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
complete -c pperf-report -n 'test (count (commandline -opc)) -eq 1' -a '(__pperf_views)'
complete -c pperf-report -n 'string match -q -- "-*" (commandline -ct)' -a '(__pperf_options pperf-report)'
complete -c pperf-report -n 'count (__pperf_value pperf-report) > /dev/null' -f -a '(__pperf_value pperf-report)'
complete -c pperf -n 'test (count (commandline -opc)) -eq 1' -f -a '(__pperf_commands)'
complete -c pperf -n '__fish_seen_subcommand_from report; and test (count (commandline -opc)) -eq 2' -a '(__pperf_views)'
complete -c pperf -n '__fish_seen_subcommand_from report; and string match -q -- "-*" (commandline -ct)' -a '(__pperf_options pperf-report)'
complete -c pperf -n '__fish_seen_subcommand_from report; and count (__pperf_value pperf-report) > /dev/null' -f -a '(__pperf_value pperf-report)'
complete -c pperf -n '__fish_seen_subcommand_from run; and string match -q -- "-*" (commandline -ct)' -a '(__pperf_options pperf)'
complete -c pperf -n '__fish_seen_subcommand_from run; and count (__pperf_value pperf) > /dev/null' -f -a '(__pperf_value pperf)'
complete -c pperf -n '__fish_seen_subcommand_from run doctor; and not string match -q -- "-*" (commandline -ct); and not count (__pperf_value pperf) > /dev/null' -a '(__pperf_command)'
complete -c pperf -n '__fish_seen_subcommand_from part ranks tree steps diagnose query history; and string match -q -- "-*" (commandline -ct)' -a '(__pperf_options pperf (commandline -opc)[2])'
complete -c pperf -n '__fish_seen_subcommand_from history; and test (count (commandline -opc)) -eq 2' -f -a 'add regressions accept trends html'
