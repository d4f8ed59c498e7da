#!/bin/sh
# SPDX-License-Identifier: MIT
# check-layers.sh [ROOT]: checks which file includes and calls which other, by the rules of ARCHITECTURE.md. Prints TAP; exit
# status 1 if a rule is broken. Without ROOT it checks this project, and then itself on copies that break a rule each.
#
#   1. A folder includes itself and folders before it in the lists below, never one behind it.
#   2. A private header (NAME_state.h, NAME_internal.h, NAME_graph.h) is included from its own folder only.
#   3. Includes are written from the root of the project.
#   4. A library's header is included by the one file that the table below names, and by no other.
#   5. The file name of a library that is loaded at run time stands in the one file that the table below names.
#   6. No object file calls a function of a folder behind its own (only where the project is built).
set -u
cd "$(dirname "$0")/.." || exit 1

# The library: preload/ may include collector/. The report: of the library it includes collector/trace_format.h alone.
LIBRARY='collector collector/process collector/file collector/stream collector/sample collector/cupti
preload/python preload/cuda preload/nccl preload/nvtx preload/user preload/torch preload'
REPORT='report/base report/text report/stats report/trace report/cache report/symbols report/gpu report/import/convert report/import/kineto
report/import/nsys report/import/snapshot report/import/timeline report/import report/steps report/profile report/run report/analysis report/analysis/critical_path
report/analysis/ranks report/table report/print report/scene report/views report/diagnose report/part report/export report/summary report/page report/tui report/live report/cli'

# The headers of libc and Linux.
SYSTEM='assert ctype dirent dlfcn elf emmintrin errno execinfo fcntl float fnmatch getopt glob inttypes langinfo libgen limits link
locale math poll pthread pwd regex sched search semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio
stdlib stdnoreturn string strings termios threads time ucontext uchar unistd wchar wctype sys/ linux/ asm/ arpa/ net/ netinet/'

# HEADER:FILE. A header that ends with a slash means all headers of that folder.
LIBRARIES='nvtx3/:preload/nvtx/api.h libelf.h:report/symbols/elf_symbols.c gelf.h:report/symbols/elf_symbols.c
libiberty/:report/symbols/libiberty.c zlib.h:report/base/gzip_file.c zlib.h:report/base/gzip_writer.c sqlite3.h:report/import/nsys/nsys_database.c
sqlite3.h:report/export/sqlite_file.c jansson.h:report/analysis/baseline_file.c libunwind.h:preload/cuda/native_stack.c ncurses.h:report/tui/terminal.c term.h:report/tui/terminal.c'

# NAME:FILE, for libraries that are loaded at run time.
LOADED='libunwind:preload/cuda/native_stack.c libcupti:collector/cupti/load.c libtorch:preload/torch/libraries.c
libc10:preload/torch/libraries.c'

# Prints a line "# FILE ..." for each include that breaks a rule.
check_includes() {
	# shellcheck disable=SC2016 # awk's
	find preload collector report -name '*.[ch]' | LC_ALL=C sort | xargs awk -v library="$LIBRARY" -v report="$REPORT" -v system_list="$SYSTEM" \
		-v foreign="$LIBRARIES" '
		BEGIN {
			count = split(library, names); for (i = 1; i <= count; i++) { rank[names[i]] = i; tree[names[i]] = "library" }
			count = split(report, names); for (i = 1; i <= count; i++) { rank[names[i]] = i; tree[names[i]] = "report" }
			count = split(system_list, names)
			for (i = 1; i <= count; i++) if (names[i] ~ /\/$/) system_folder[names[i]]; else system_header[names[i] ".h"]
			count = split(foreign, names); for (i = 1; i <= count; i++) { split(names[i], pair, ":"); owners[pair[1]] = owners[pair[1]] " " pair[2] " " }
		}
		function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
		function broken(text) { print "# " FILENAME " " text }
		function own(target,    from, to) {
			from = folder(FILENAME); to = folder(target)
			if (target ~ /\.\.\// || target !~ /\//) { broken("includes " target ": write it from the root of the project"); return }
			if (!(from in rank)) { broken("is in a folder that has no place in the order"); return }
			if (!(target in exists)) exists[target] = (getline line < target) >= 0 ? 1 : 0
			close(target)
			if (!exists[target]) { broken("includes " target ", which is not a file of the project"); return }
			if (tree[from] == "report" && target == "collector/trace_format.h") return
			if (!(to in rank) || tree[from] != tree[to]) broken("includes " target ", and " from " must not include " to)
			else if (rank[to] > rank[from]) broken("includes " target ": " to " is behind " from " in the order")
			else if (from != to && target ~ /_(state|internal|graph)\.h$/) broken("includes " target ", a private header of " to)
		}
		function other(header,    first) {
			first = header; sub(/\/.*/, "/", first)
			if ((header in owners) || (first in owners)) {
				if (index(owners[header in owners ? header : first], " " FILENAME " ") == 0) broken("includes <" header ">, which another file owns")
			} else if (!(header in system_header) && !(first in system_folder)) broken("includes <" header ">, which no file may include")
		}
		/^[ \t]*#[ \t]*include/ {
			sub(/^[ \t]*#[ \t]*include(_next)?[ \t]*/, ""); sub(/[ \t]*(\/[\/*].*)?$/, "")
			header = substr($0, 2, length($0) - 2)
			if (/^".*"$/) own(header); else if (/^<.*>$/) other(header); else broken("includes " $0 ", which cannot be checked")
		}'
}

check_loaded() {
	for entry in $LOADED; do
		for file in $(grep -rl --include='*.[ch]' "\"[^\" ]*${entry%:*}[^\" ]*\.so" preload collector report | grep -vxF "${entry#*:}"); do
			echo "# $file names the file of ${entry%:*}, which only ${entry#*:} may"
		done
	done
}

# Prints a line for each use, in the object files below FOLDER, of a symbol that a folder behind defines.
check_calls() { # FOLDER LIST
	find "$1" -name '*.o' -exec nm -A {} + 2> /dev/null | awk -v prefix="$1/" -v list="$2" '
		BEGIN { count = split(list, names); for (i = 1; i <= count; i++) rank[names[i]] = i }
		{
			file = $1; sub(/:.*/, "", file); sub("^" prefix, "", file); folder = file; sub(/\/[^\/]*$/, "", folder)
			if (!(folder in rank)) next
			if ($(NF - 1) ~ /^[TDBRVW]$/ && NF == 3) { home[$NF] = folder }
			else if ($(NF - 1) == "U") { uses++; user[uses] = file; from[uses] = folder; symbol[uses] = $NF }
		}
		END {
			for (i = 1; i <= uses; i++)
				if ((symbol[i] in home) && rank[home[symbol[i]]] > rank[from[i]])
					print "# " user[i] " uses " symbol[i] " of " home[symbol[i]] ", which is behind " from[i]
		}'
}

check() { # ROOT
	(cd "$1" && found=$(check_includes; check_loaded) && printf '%s' "${found:+$found
}" && [ -z "$found" ])
}

number=0
result() { # STATUS TEXT
	number=$((number + 1))
	if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; any=1; fi
}

# Checks that the line LINE at the end of FILE is noticed.
breaks() { # FILE LINE
	cp "$copy/$1" "$copy/before"
	printf '%s\n' "$2" >> "$copy/$1"
	check "$copy" > "$copy/said" && { result 1 "$2 in $1 is not noticed"; mv "$copy/before" "$copy/$1"; return; }
	grep -q "^# $1 " "$copy/said"
	result $? "$2 in $1 is noticed"
	mv "$copy/before" "$copy/$1"
}

any=0
if [ $# -gt 0 ]; then
	check "$1"
	result $? 'each file includes only what its folder may'
	exit $any
fi
check .
result $? 'each file includes only what its folder may'
build=${PPERF_TEST_BUILD:-build}
if [ -d "$build/lib" ] && [ -d "$build/report" ]; then
	found=$(check_calls "$build/lib" "$LIBRARY"; check_calls "$build" "$REPORT")
	[ -z "$found" ] || printf '%s\n' "$found"
	[ -z "$found" ]
	result $? 'no object file calls a function of a folder behind its own'
fi
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT
cp -R preload collector report "$copy"
# An include of a folder behind, across trees, and of a private header.
breaks collector/stream/stream.c '#include "preload/cuda/traced_call.h"'
breaks collector/process/clock.c '#include "collector/stream/stream.h"'
breaks collector/file/slots.c '#include "collector/cupti/session.h"'
breaks collector/stream/stream.c '#include "report/text/string_table.h"'
breaks collector/stream/stream.h '	#  include "report/text/string_table.h" /* why */'
breaks preload/nvtx/nvtx.c '#include "report/text/string_table.h"'
breaks preload/nvtx/nvtx.c '#include "tests/support/trace_builder.h"'
breaks preload/cuda/real.c '#include "preload/torch/torch.h"'
breaks preload/python/frames.c '#include "preload/settings.h"'
breaks preload/cuda/launch.c '#include "collector/stream/stream_state.h"'
breaks preload/nvtx/nvtx.c '#include "collector/cupti/session_state.h"'
breaks report/base/error.c '#include "report/text/style.h"'
breaks report/profile/call_tree.c '#include "report/run/process.h"'
breaks report/analysis/run_diff.c '#include "report/analysis/ranks/rank_set.h"'
breaks report/views/tree.c '#include "report/cli/view_list.h"'
breaks report/views/tree.c '#include "report/profile/profile_state.h"'
breaks report/run/process.c '#include "report/trace/trace_reader_state.h"'
# How an include is written, and what it names.
breaks report/profile/call_tree.c '#include "collector/stream/stream.h"'
breaks report/profile/call_tree.c '#include "stream.h"'
breaks report/profile/call_tree.c '#include "../collector/trace_format.h"'
breaks report/profile/call_tree.c '#include "report/profile/missing.h"'
breaks report/profile/call_tree.c '#include HEADER'
# Libraries.
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
# A call of a function that a folder behind defines, declared by hand.
mkdir -p "$copy/objects/report/base" "$copy/objects/report/cli"
echo 'void late(void); void early(void); void early(void) { late(); }' > "$copy/early.c"
echo 'void late(void); void late(void) { }' > "$copy/late.c"
${CC:-cc} -c -o "$copy/objects/report/base/early.o" "$copy/early.c" && ${CC:-cc} -c -o "$copy/objects/report/cli/late.o" "$copy/late.c" &&
	check_calls "$copy/objects" "$REPORT" | grep -q '^# report/base/early.o uses late of report/cli'
result $? 'a call of a function of a folder behind is noticed'
echo "1..$number"
exit $any
