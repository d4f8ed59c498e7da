#!/bin/sh
# SPDX-License-Identifier: MIT
# check-exports.sh [LIBRARY MAP]: what the library shows to the program that it is loaded into, and what it asks of it. TAP; exit status 1 if
# something is wrong. Without arguments the built library is checked, and then the check itself, on libraries that are wrong.
#
#   exports exactly what the symbol map names: anything else could replace a function of the program's
#   needs libc only: a library more would be loaded into every program, and could hijack its symbols
#   at most 256 bytes of thread-local data: room for late-loaded libraries is scarce, and NVTX or the driver may load us late
#   can be loaded, is never unloaded, is bound at once, and has a build id
#
# Of pperf-report, which reads files from anywhere: nothing that calls go through can be written to, and a stack that was written over ends it.
set -u
cd "$(dirname "$0")/.." || exit 1
TLS_MOST=256
BUILD=${PPERF_TEST_BUILD:-build}

number=0
any=0
result() { # STATUS TEXT
	number=$((number + 1))
	if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; any=1; fi
}

named() { # MAP: what stands between global: and local:
	sed 's|/\*[^*]*\*/||g; s|^[^*]*\*/||; s|/\*.*||' "$1" | awk '/global:/ { on = 1; next } /local:/ { on = 0 } on' | tr -d ' \t{}' | tr ';' '\n' | grep . | sort -u
}

exported() { # LIBRARY
	nm -D --defined-only "$1" | awk '{ print $NF }' | sort -u
}

check_exports() { # LIBRARY MAP
	[ "$(exported "$1")" = "$(named "$2")" ] && return
	exported "$1" > "$work/exported"
	named "$2" | diff - "$work/exported" | sed -n 's/^</# named, not exported:/p; s/^>/# exported, not named:/p'
	return 1
}

check_needed() { # LIBRARY
	! readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/# needs \1/p' | grep -v -e ' libc\.so\.6$' -e ' ld-linux.*\.so'
}

check_tls() { # LIBRARY
	bytes=$(readelf -lW "$1" | awk '$1 == "TLS" { print $6; exit }')
	bytes=$((${bytes:-0}))
	[ "$bytes" -le $TLS_MOST ] && return
	echo "# $bytes bytes"
	return 1
}

check_flags() { # LIBRARY
	readelf -dW "$1" | grep -q 'FLAGS_1.*NOW.*NODELETE' && ! readelf -dW "$1" | grep -q TEXTREL && readelf -nW "$1" | grep -q 'Build ID'
}

check_hardened() { # PROGRAM
	readelf -dW "$1" | grep -q 'FLAGS_1.*NOW' && readelf -lW "$1" | grep -q GNU_RELRO && readelf -lW "$1" | grep GNU_STACK | grep -q ' RW ' &&
		readelf --dyn-syms -W "$1" | grep -q __stack_chk_fail
}

check() { # LIBRARY MAP
	[ -r "$1" ] || { echo "# $1 is missing: run make first"; result 1 'the library is there'; return; }
	check_exports "$1" "$2"
	result $? 'exports exactly what its symbol map names'
	check_needed "$1"
	result $? 'needs libc only'
	check_tls "$1"
	result $? "has at most $TLS_MOST bytes of thread-local data"
	check_flags "$1"
	result $? 'is bound at once, never unloaded, without text relocations, and has a build id'
}

# What TEST says of a library of this source, built with these options.
verdict() { # TEST SOURCE OPTION...
	test=$1
	printf '%s\n' 'int wanted(void) { return 1; }' "$2" > "$work/made.c"
	shift 2
	${CC:-cc} -shared -fPIC -Wl,-z,now -Wl,-z,nodelete -Wl,--build-id=sha1 -o "$work/made.so" "$work/made.c" "$@" || return 2
	"$test" "$work/made.so" "$work/made.map" > "$work/said"
}

right() { # TEST
	verdict "$1" ''
	result $? "$1: a library that is right passes"
}

wrong() { # TEXT TEST SOURCE OPTION...
	text=$1
	shift
	verdict "$@"
	[ $? = 1 ]
	result $? "$1: a library that $text is noticed"
}

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
if [ $# -gt 0 ]; then
	check "$1" "$2"
	exit $any
fi
check "$BUILD/libpperf.so" preload/exports.map
check_hardened "$BUILD/pperf-report"
result $? 'pperf-report is bound at once, with a protected stack'
printf '{\nglobal:\n\twanted; /* why */\nlocal:\n\t*;\n};\n' > "$work/made.map"
for test in check_exports check_needed check_tls check_flags; do right $test; done
wrong 'exports more' check_exports 'int more(void) { return 2; }'
wrong 'exports less' check_exports '' -Wl,--version-script="$work/made.map" -Dwanted=other
wrong 'needs libm' check_needed '' -Wl,--no-as-needed -lm
wrong 'has 257 bytes of thread-local data' check_tls '__thread char data[257]; char *use(void) { return data; }'
wrong 'is bound lazily' check_flags '' -Wl,-z,lazy
wrong 'is bound lazily' check_hardened 'void use(char *); void other(void) { char text[99]; use(text); }' -fstack-protector-strong -Wl,-z,lazy
wrong 'has no guard on its stack' check_hardened 'void use(char *); void other(void) { char text[99]; use(text); }' -fno-stack-protector
wrong 'has no build id' check_flags '' -Wl,--build-id=none
echo "1..$number"
exit $any
