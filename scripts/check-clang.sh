#!/bin/sh
# check-clang.sh: the library and the report compile with clang too, without a warning.
cd "$(dirname "$0")/.." || exit 1
if ! command -v clang > /dev/null; then
	echo 'ok 1 - clang compiles without a warning # SKIP there is no clang'
	exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset MAKEFLAGS MFLAGS # job slots of a make around us are not for us
noise=$(make -s -k -j2 BUILD="$folder" CC=clang OPT='-O1' all 2>&1)
status=$?
[ -z "$noise" ] || printf '%s\n' "$noise"
[ $status -eq 0 ] && [ -z "$noise" ] && echo 'ok 1 - clang compiles without a warning' && exit 0
echo 'not ok 1 - clang compiles without a warning'
exit 1
