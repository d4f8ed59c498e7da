#!/bin/sh
# SPDX-License-Identifier: MIT
# check-layers.sh [ROOT]: who may include whom, as DESIGN.md says. TAP; exit status 1 if a rule is broken. Without ROOT, this project is
# checked and then the check itself, on copies that break a rule.
#
#   preload -> collector      report -> collector/trace_format.h      collector -> nothing of ours
#   a header that is neither ours nor the system's: in the one file that the table below gives its library
#   the file name of a library that is loaded at run time: likewise
set -u
cd "$(dirname "$0")/.." || exit 1

# What comes with libc and Linux.
SYSTEM='assert ctype dirent dlfcn elf emmintrin errno execinfo fcntl float fnmatch getopt glob inttypes langinfo libgen limits link locale math poll
pthread pwd regex sched search semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string
strings termios threads time ucontext uchar unistd wchar wctype sys/* linux/* asm/* arpa/* net/* netinet/*'

# A library's headers, and the file that may include them; nowhere else, and no other headers at all.
LIBRARIES='nvtx3/*:preload/nvtx/api.h libelf.h:report/symbols/elf_symbols.c gelf.h:report/symbols/elf_symbols.c
libiberty/*:report/symbols/libiberty.c zlib.h:report/base/gzip_file.c sqlite3.h:report/import/nsys/nsys_database.c libunwind.h:preload/cuda/native_stack.c
ncurses.h:report/tui/terminal.c term.h:report/tui/terminal.c'

# A library's file name in a string, and the file that may hold it.
LOADED='libunwind:preload/cuda/native_stack.c libcupti:collector/cupti/load.c libtorch:preload/torch/libraries.c libc10:preload/torch/libraries.c'

broken() { echo "# $*"; failed=1; }

# "FILE TARGET" for each include of the sources; TARGET with its quotes or brackets.
includes() {
	# shellcheck disable=SC2016 # awk's
	find preload collector report -name '*.[ch]' | sort | xargs awk '
		/^[ \t]*#[ \t]*include/ { sub(/^[ \t]*#[ \t]*include(_next)?[ \t]*/, ""); sub(/[ \t]*(\/[\/*].*)?$/, ""); print FILENAME, $0 }'
}

check_own() { # FILE HEADER
	folder=${1%%/*}
	case $2 in
	*../*) broken "$1 includes $2: write it from the root of the project"; return ;;
	*/*) target=$2 ;;
	*) target=$folder/$2 ;;
	esac
	[ -f "$target" ] || broken "$1 includes $2, which is not a file of ours in ${target%/*}"
	case $folder:$target in
	preload:preload/* | preload:collector/* | collector:collector/* | report:report/* | report:collector/trace_format.h) ;;
	*) broken "$1 includes $target, and $folder must not" ;;
	esac
}

# shellcheck disable=SC2254 # the tables hold patterns
check_foreign() { # FILE HEADER
	for entry in $LIBRARIES; do
		case $2 in
		${entry%:*})
			[ "$1" = "${entry#*:}" ] || broken "$1 includes <$2>, which only ${entry#*:} may"
			return
			;;
		esac
	done
	for header in $SYSTEM; do
		case $2 in
		$header | "$header.h") return ;;
		esac
	done
	broken "$1 includes <$2>, which no file is said to"
}

check_loaded() {
	for entry in $LOADED; do
		file=$(grep -rl --include='*.[ch]' "\"[^\" ]*${entry%:*}[^\" ]*\.so" preload collector report | grep -vxF "${entry#*:}")
		[ -z "$file" ] || broken "$file names the file of ${entry%:*}, which only ${entry#*:} may"
	done
}

check() { # ROOT
	failed=0
	cd "$1" || exit 1
	set -f
	while read -r file target; do
		case $target in
		\"*\") target=${target#\"}; check_own "$file" "${target%\"}" ;;
		\<*\>) target=${target#<}; check_foreign "$file" "${target%>}" ;;
		*) broken "$file includes $target, which cannot be checked" ;;
		esac
	done <<-END
	$(includes)
	END
	check_loaded
	return $failed
}

number=0
result() { # STATUS TEXT
	number=$((number + 1))
	if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; any=1; fi
}

# The rules must notice this line in this file.
breaks() { # FILE LINE
	rm -rf "$copy"
	mkdir -p "$copy"
	cp -R preload collector report "$copy"
	printf '%s\n' "$2" >> "$copy/$1"
	(check "$copy") > "$copy/said" && { result 1 "$2 in $1 is not noticed"; return; }
	grep -q "^# $1 " "$copy/said"
	result $? "$2 in $1 is noticed"
}

any=0
if [ $# -gt 0 ]; then
	(check "$1")
	result $? 'each file includes only what its folder may'
	exit $any
fi
(check .)
result $? 'each file includes only what its folder may'
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT
breaks collector/stream/stream.c '#include "preload/cuda/traced_call.h"'
breaks collector/stream/stream.c '#include "report/text/string_table.h"'
breaks collector/stream/stream.h '	#  include "report/text/string_table.h" /* why */'
breaks preload/nvtx/nvtx.c '#include "report/text/string_table.h"'
breaks preload/nvtx/nvtx.c '#include "tests/support/trace_builder.h"'
breaks report/profile/call_tree.c '#include "collector/stream/stream.h"'
breaks report/profile/call_tree.c '#include "stream.h"'
breaks report/profile/call_tree.c '#include "../collector/trace_format.h"'
breaks report/profile/call_tree.c '#include HEADER'
breaks report/profile/call_tree.c '#include <gelf.h>'
breaks report/profile/call_tree.c '#include <libiberty/demangle.h>'
breaks report/import/nsys/nsys.c '#include <sqlite3.h>'
breaks preload/nvtx/nvtx.c '#include <nvtx3/nvToolsExt.h>'
breaks preload/cuda/traced_call.c '#include <libunwind.h>'
breaks collector/stream/stream.c '#include <cupti.h>'
breaks preload/nvtx/nvtx.c '#include <Python.h>'
breaks preload/nvtx/nvtx.c '#include <cuda_runtime_api.h>'
breaks preload/cuda/traced_call.c '#define OTHER "libunwind.so.8"'
breaks preload/cuda/traced_call.c '#define OTHER "/usr/lib/libcupti.so.12"'
echo "1..$number"
exit $any
