#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD CORPUS SECONDS TARGET...: each harness in turn for so many seconds, beginning with its seeds, what was found
# in earlier runs, and tests/fuzz/found. Says how many inputs were tried, what part of the code they reach, and what was
# found; fails if anything was.
set -u
build=$1 corpus=$2 seconds=$3
shift 3
mkdir -p "$corpus" "$build/finds" || exit 2
"$build/tests/fuzz/seeds" "$build/seeds" || exit 2
# Inputs become files, in memory where that can be; a find leaves them behind.
TMPDIR=$(mktemp -d /dev/shm/pperf-fuzz-XXXXXX 2> /dev/null || mktemp -d) || exit 2
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
failed=0
printf '%-8s %12s %8s %8s %8s %s\n' target executions /s edges features finds
for target in "$@"; do
	mkdir -p "$corpus/$target" "$build/finds/$target"
	log=$build/finds/$target.log
	dictionary=
	[ -e "tests/fuzz/$target.dict" ] && dictionary=-dict=tests/fuzz/$target.dict
	# An input that takes 10 s or 2 GB is a find, as a crash is. What it leaves is given back by host.c; weighing rare features
	# takes longer than to try.
	"$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1100 -max_len=65536 \
		-entropic=0 -detect_leaks=0 -print_final_stats=1 -artifact_prefix="$build/finds/$target/" $dictionary "$corpus/$target" "$build/seeds/$target" \
		$(ls -d "tests/fuzz/found/$target" 2> /dev/null) > "$log" 2>&1
	status=$?
	found=$(find "$build/finds/$target" -type f | wc -l)
	LC_ALL=C awk -v target="$target" -v found="$found" '
		/ cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") edges = $(i + 1); if ($i == "ft:") features = $(i + 1) } }
		/stat::number_of_executed_units/ { tried = $2 }
		/stat::average_exec_per_sec/ { rate = $2 }
		END { printf "%-8s %12d %8d %8d %8d %d\n", target, tried, rate, edges, features, found }' "$log"
	[ $status -eq 0 ] || { failed=1; grep -aE "^find:|SUMMARY|ERROR|Test unit written" "$log" | head -5 | sed 's/^/    /'; }
done
[ $failed -eq 0 ] || echo "what was found is in $build/finds; build/tests/fuzz/replay_TARGET FILE shows it again"
exit $failed
