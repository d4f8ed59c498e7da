#!/bin/sh
# setup.sh [--check] PART... | --cuda
# Sees to it that what PART needs is there; quick when it is. PART: build (library: of it what libpperf.so alone needs) demo test hosts lint torch pythons readers profilers bench peers deb arm64 fuzz.
# Packages come from apt, as root or by `sudo -n`; CUDA's headers, where no CUDA 13 or later is installed, from
# NVIDIA's wheels, unpacked into build/cuda; libraries for aarch64, which the system's own do not mix with, from the same
# apt, into build/aarch64, and newer Pythons, from newer releases of Debian, into build/pythons. --check installs nothing: it says what is missing and fails.
# --cuda prints the folder of the CUDA headers that the build uses, nothing if there is none.
set -u
cd "$(dirname "$0")/.." || exit 1

# Headers, and the two libraries a program of ours may load. Any CUDA 12 or 13 can be traced with them.
WHEELS='nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-cupti==13.0.85 nvidia-nvtx==13.0.85'
PY_SPY=py-spy==0.4.3
CUDA_PREFIXES=${CUDA_PREFIXES-/usr/local/cuda /opt/cuda}

# What pperf-report and the Check suites need, and what those need.
ARM64='libelf-dev libelf1 zlib1g-dev zlib1g libiberty-dev libsqlite3-dev libsqlite3-0 libjansson-dev libjansson4 libncurses-dev libncursesw6 libtinfo6
	check libsubunit-dev libsubunit0 libunwind8 liblzma5'

# Releases of Debian with newer Pythons, and what these need: the C library, too.
PYTHONS='trixie:3.13 forky:3.14 forky:3.15'
PYTHON_NEEDS='libc6 libgcc-s1 libexpat1 zlib1g libffi8 libbz2-1.0 liblzma5 libssl3t64 libsqlite3-0 libreadline8t64 libzstd1 libncursesw6 libtinfo6
	libuuid1'

packages=
check=
arm64=
pythons=
py_spy=
die() { echo "pperf setup: $*" >&2; exit 1; }
need() { case " $packages " in *" $1 "*) ;; *) packages="$packages $1" ;; esac; }
has_command() { command -v "$1" > /dev/null 2>&1; }
has_header() { echo "#include <$1>" | ${CC:-cc} ${CFLAGS-} -E -x c - > /dev/null 2>&1; }
has_library() { ldconfig=$(PATH=$PATH:/sbin:/usr/sbin command -v ldconfig) && "$ldconfig" -p | grep -q "$1"; }

# A prefix that has all of the headers that the sources use, of CUDA 13 or later.
is_cuda() {
	[ -e "$1/include/nvtx3/nvToolsExtCounters.h" ] && [ -e "$1/include/cuda_runtime_api.h" ] &&
		[ -e "$1/include/crt/host_defines.h" ] && [ -e "$1/include/generated_cuda_runtime_api_meta.h" ] &&
		[ "$(awk '$1 == "#define" && $2 == "CUDA_VERSION" { print $3 }' "$1/include/cuda.h")" -ge 13000 ]
}

find_cuda() {
	for prefix in ${CUDA_HOME-} $CUDA_PREFIXES build/cuda; do
		is_cuda "$prefix" 2> /dev/null && echo "$prefix" && return
	done
	return 1
}

library_packages() {
	has_command "${CC:-cc}" || need gcc
	has_header stdio.h || need libc6-dev
	find_cuda > /dev/null || python3 -m pip --version > /dev/null 2>&1 || need python3-pip
}

build_packages() {
	library_packages
	has_header gelf.h || need libelf-dev
	has_header zlib.h || need zlib1g-dev
	has_header libiberty/demangle.h || need libiberty-dev
	has_header sqlite3.h || need libsqlite3-dev
	has_header jansson.h || need libjansson-dev
	has_header ncurses.h || need libncurses-dev
}

# A clang that can link a fuzzer.
fuzz_clang() {
	clang=${FUZZ_CLANG:-clang}
	has_command "$clang" && echo 'int LLVMFuzzerTestOneInput(const char *p, long n); int LLVMFuzzerTestOneInput(const char *p, long n) { return 0 * (p == 0) * (int)n; }' |
		"$clang" -fsanitize=fuzzer,address -x c -o /dev/null - 2> /dev/null
}

# Debian names it by clang's version; without one, that of the newest that it has.
clang_runtime() {
	version=$("${FUZZ_CLANG:-clang}" -dumpversion 2> /dev/null || apt-cache depends clang 2> /dev/null | sed -n 's/.*Depends: clang-//p')
	echo "libclang-rt-${version%%.*}-dev"
}

packages_of() {
	case $1 in
	build | library) ;;
	demo) has_library libunwind.so.8 || need libunwind8 ;;
	test)
		has_command "${CXX:-c++}" || need g++
		has_header check.h || need check
		has_command pkg-config || need pkg-config
		has_command python3 || need python3
		has_command tmux || need tmux
		has_command chromium || need chromium # opens pages of pperf-report
		has_library libunwind.so.8 || need libunwind8
		;;
	hosts) # what `make test-hosts` runs under the library, and skips where it is not there
		has_command redis-server || need redis-server
		[ -n "$(ls -d /usr/lib/postgresql/*/bin/initdb 2> /dev/null)" ] || has_command initdb || need postgresql
		has_command nginx || need nginx-light
		has_command node || need nodejs
		has_command java || need default-jdk-headless
		has_command chromium || need chromium
		for name in ffmpeg stress-ng fakeroot git; do has_command "$name" || need "$name"; done
		has_command bwrap || need bubblewrap
		;;
	lint)
		has_command clang-tidy || need clang-tidy
		has_command clang-format || need clang-format
		has_command cppcheck || need cppcheck
		;;
	torch) /usr/bin/env python3 -c 'import venv, ensurepip' 2> /dev/null || need python3-venv ;;
	pythons) # CPythons newer than the system's, whose frames `make test` reads where they are there
		pythons=1
		has_command patchelf || need patchelf
		;;
	readers) # of exports, which `make test` skips where they are not there
		python3 -m pip --version > /dev/null 2>&1 || need python3-pip
		has_command sqlite3 || need sqlite3
		has_command dot || need graphviz
		has_command go || need golang-go # for `go tool pprof`
		;;
	profilers) # with which CPU samples are compared; `make test` skips those tests where they are not there
		py_spy=1
		python3 -m pip --version > /dev/null 2>&1 || need python3-pip
		has_command perf || need linux-perf
		has_command gdb || need gdb
		has_command valgrind || need valgrind
		has_library libprofiler.so.0 || need libgoogle-perftools4
		;;
	bench) has_command valgrind || need valgrind ;;
	peers)
		has_command lttng || need lttng-tools
		has_header lttng/tracepoint.h || need liblttng-ust-dev
		has_command babeltrace2 || need babeltrace2
		has_command uftrace || need uftrace
		;;
	deb)
		has_command dpkg-shlibdeps || need dpkg-dev
		has_command strip || need binutils
		;;
	arm64)
		arm64=1
		has_command aarch64-linux-gnu-gcc || need gcc-aarch64-linux-gnu
		(CC=aarch64-linux-gnu-gcc; CFLAGS=; has_header asm/types.h) || need libc6-dev-arm64-cross # the compiler only recommends it
		has_command qemu-aarch64-static || need qemu-user-static
		;;
	fuzz)
		# The compiler and what it links a fuzzer with, which is a package of its own.
		fuzz_clang || { need clang; need "$(clang_runtime)"; }
		has_command objcopy || need binutils
		;;
	*) die "unknown part '$1'; parts are: build, library, demo, test, hosts, lint, torch, pythons, readers, profilers, bench, peers, deb, arm64, fuzz" ;;
	esac
}

install_packages() {
	line="apt-get install -y --no-install-recommends$packages"
	has_command apt-get || die "these Debian packages, or their equivalents on this system, are missing:$packages"
	as=
	[ "$(id -u)" = 0 ] || as='sudo -n'
	if [ -n "$check" ] || { [ -n "$as" ] && ! $as true 2> /dev/null; }; then
		die "packages are missing; install them with: sudo $line"
	fi
	echo "pperf setup: $as${as:+ }$line"
	export DEBIAN_FRONTEND=noninteractive
	$as $line > build/setup.log 2>&1 ||
		{ $as apt-get update >> build/setup.log 2>&1 && $as $line >> build/setup.log 2>&1; } ||
		{ tail -5 build/setup.log >&2; die "apt-get failed; the rest of its output is in build/setup.log"; }
}

# Into a folder of its own first, so that an interrupted download leaves nothing that looks complete.
install_cuda() {
	[ -z "$check" ] || die "CUDA's headers (13 or later) are missing; set CUDA_HOME or run scripts/setup.sh build"
	echo "pperf setup: no CUDA 13 headers under \$CUDA_HOME, $CUDA_PREFIXES: unpacking $WHEELS into build/cuda"
	rm -rf build/wheels build/cuda
	mkdir -p build/wheels
	python3 -m pip download --quiet --no-deps --only-binary :all: --dest build/wheels $WHEELS ||
		die "pip could not download CUDA's headers; with CUDA 13 installed, set CUDA_HOME to its directory"
	for wheel in build/wheels/*.whl; do
		python3 -m zipfile -e "$wheel" build/wheels/unpacked || die "cannot unpack $wheel"
	done
	mv build/wheels/unpacked/nvidia/cu13 build/cuda && rm -rf build/wheels
	rm -f build/cuda/lib/*nvperf* build/cuda/lib/*.a build/cuda/lib/libcheckpoint.so build/cuda/lib/libpcsamplingutil.so
	is_cuda build/cuda || die "the wheels $WHEELS do not contain the expected headers"
}

install_py_spy() {
	[ -z "$check" ] || die "py-spy is missing; run scripts/setup.sh profilers"
	rm -rf build/py-spy build/py-spy.new
	python3 -m pip download --quiet --no-deps --only-binary :all: --dest build/py-spy.new "$PY_SPY" > build/setup.log 2>&1 ||
		{ tail -1 build/setup.log >&2; die "pip could not download $PY_SPY"; }
	python3 -m zipfile -e build/py-spy.new/*.whl build/py-spy.new/unpacked &&
		mv build/py-spy.new/unpacked/*.data/scripts build/py-spy && chmod +x build/py-spy/py-spy || die "the wheel $PY_SPY has no program"
	rm -rf build/py-spy.new
}

# apt-get with lists and packages in the current folder. It needs no rights, and the system stays as it is.
apt_here() {
	mkdir -p lists/partial archives/partial
	apt-get -qq -o Dir::State="$PWD" -o Dir::State::status=/dev/null -o Dir::Cache="$PWD" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}
unpack_here() { for package in *.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$1" || return 1; done; }

install_arm64() {
	[ -z "$check" ] || die "the libraries for aarch64 are missing; run scripts/setup.sh arm64"
	has_command apt-get || die "unpack these Debian packages for arm64 into build/aarch64:" $ARM64
	echo "pperf setup: unpacking libraries for aarch64 into build/aarch64"
	rm -rf build/aarch64 build/aarch64.new
	mkdir -p build/aarch64.new/apt build/aarch64.new/usr/lib
	ln -s usr/lib build/aarch64.new/lib
	(
		cd build/aarch64.new/apt || exit 1
		apt_arm64() { apt_here -o APT::Architecture=arm64 -o APT::Architectures=arm64 "$@"; }
		apt_arm64 update && apt_arm64 download $ARM64 && unpack_here ..
	) > build/setup.log 2>&1 || { tail -5 build/setup.log >&2; die "apt-get has no packages for arm64; the rest of its output is in build/setup.log"; }
	find build/aarch64.new -type l -lname '/lib/*' | while read -r link; do # they are meant for a root of their own
		ln -sf "$(basename "$(readlink "$link")")" "$link"
	done
	rm -rf build/aarch64.new/apt
	mv build/aarch64.new build/aarch64
}

# install_python RELEASE VERSION: the mirror is that of the system's own packages.
install_python() {
	new=build/pythons/$2.new
	rm -rf "$new"
	mkdir -p "$new/apt"
	(
		mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Component: main' | head -1)
		cd "$new/apt" && echo "deb ${mirror:?apt knows no mirror of Debian} $1 main" > sources.list || exit 1
		apt_release() { apt_here -o Dir::Etc::SourceList="$PWD/sources.list" -o Dir::Etc::SourceParts=/dev/null "$@"; }
		apt_release update && apt_release download "python$2" "python$2-minimal" "libpython$2-minimal" "libpython$2-stdlib" $PYTHON_NEEDS && unpack_here ..
	) > build/setup.log 2>&1 || { tail -5 build/setup.log >&2; die "apt-get has no Python $2 of Debian $1; the rest of its output is in build/setup.log"; }
	rm -rf "$new/apt" "build/pythons/$2"
	mv "$new" "build/pythons/$2"
	libraries=$PWD/build/pythons/$2/usr/lib/$(uname -m)-linux-gnu
	for loader in "$libraries"/ld-linux-*.so.*; do
		patchelf --set-interpreter "$loader" --set-rpath "$libraries" --force-rpath "build/pythons/$2/usr/bin/python$2" || die "patchelf failed"
	done
}

install_pythons() {
	for python in $PYTHONS; do
		[ -d "build/pythons/${python#*:}" ] && continue
		[ -z "$check" ] || die "Python ${python#*:} is missing; run scripts/setup.sh pythons"
		has_command apt-get || die "Python ${python#*:} comes from Debian's packages, which this system cannot fetch"
		echo "pperf setup: unpacking Python ${python#*:} into build/pythons"
		install_python "${python%:*}" "${python#*:}"
	done
}

[ "${1-}" = --cuda ] && { find_cuda; exit 0; }
[ "${1-}" = --check ] && check=1 && shift
[ $# -gt 0 ] || die 'usage: scripts/setup.sh [--check] build|library|demo|test|hosts|lint|torch|pythons|readers|profilers|bench|peers|deb|arm64|fuzz ...'
mkdir -p build
[ "$*" = library ] && library_packages || build_packages
for part in "$@"; do packages_of "$part"; done
[ -z "$packages" ] || install_packages
find_cuda > /dev/null || install_cuda
[ -z "$arm64" ] || [ -d build/aarch64 ] || install_arm64
[ -z "$py_spy" ] || has_command py-spy || [ -x build/py-spy/py-spy ] || install_py_spy
[ -z "$pythons" ] || install_pythons
