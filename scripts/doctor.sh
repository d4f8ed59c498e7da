#!/bin/sh
# SPDX-License-Identifier: MIT
# LIBRARY REPORT [COMMAND...]: what pperf would record on this machine, or of this command, what not, why, and what to do.
# pperf doctor sources it. With a command it runs that, under the library, and reads what came of it.
# Exit status: 0 nothing stands in the way; 1 something does; 126, 127 as pperf run.
set -u
library=$1 report=$2
shift 2
status=0 scratch= reported=
preloaded=${LD_PRELOAD-} # the command's; what is run here shall not each complain of it
unset LD_PRELOAD

say() { printf '%-8s %s\n' "$1" "$2"; }
fine() { say ok "$1"; }
note() { say note "$1"; [ $# -lt 2 ] || say '' "→ $2"; }
problem() { say problem "$1"; [ $# -lt 2 ] || say '' "→ $2"; status=1; }
# SOURCE REASON: what to do, as the report's own table says.
remedy() { "$report" --legend --width 10000 2> /dev/null | sed -n "s/^  $1  *$2: //p"; }
# The first existing file of the patterns given.
first() { for file in "$@"; do [ -e "$file" ] && printf '%s\n' "$file" && return; done; return 1; }
# A library where the dynamic linker would find it, of a name for the shell.
finder() (
	IFS=:
	for folder in ${LD_LIBRARY_PATH-}; do first "${folder:-.}"/$1 && return; done
	PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2> /dev/null | sed -n "s/^[[:space:]]*$1 (libc6,\(x86-64\|AArch64\)[^)]*) => //p" | head -1
)
# Bytes of a file as one number: FILE OFFSET COUNT.
number() { od -An -j"$2" -N"$3" -tu"$3" "$1" | tr -d ' '; }

# ---- the library itself ----

check_library() {
	sh=$(command -v env)
	said=$(LD_PRELOAD=$library PPERF_QUIET=1 "$sh" true 2>&1)
	ended=$?
	case $said in
	*"cannot be preloaded"*)
		problem "the dynamic linker ignores $library: $(printf '%s' "$said" | sed -n 's/.*cannot be preloaded//p' | head -1 | cut -c1-200)" \
			"built for another architecture or a newer C library, or not readable: build it on this machine, or use the tarball of \`make dist\`" ;;
	*"Error relocating"* | *"Error loading shared"*)
		problem "this system's C library is musl (Alpine): $(printf '%s' "$said" | head -1 | cut -c1-200)" "the library is for glibc: use an image of Debian, Ubuntu or Fedora" ;;
	*version*GLIBC*) problem "$(printf '%s' "$said" | head -1)" "this C library is too old for this build: use the tarball of \`make dist\` (glibc 2.17 and later)" ;;
	*)
		if [ $ended != 0 ]; then
			problem "a program that preloads $library ends with $ended" "the file is damaged: build or copy it again"
		elif [ -z "$said" ]; then
			fine "$library can be preloaded"
		else
			problem "a program that preloads $library prints: $(printf '%s' "$said" | head -1 | cut -c1-200)"
		fi ;;
	esac
}

# A setting that the library does not know would be a setting that does nothing.
check_settings() {
	known=$(LC_ALL=C tr -c 'A-Z_' '\n' < "$library" | grep -x 'PPERF_[A-Z_]*' | sort -u)
	for name in $(env | sed -n 's/^\(PPERF_[A-Za-z0-9_]*\)=.*/\1/p'); do
		case $name in PPERF_PAGER | PPERF_CACHE) continue ;; esac
		printf '%s\n' "$known" | grep -qx "$name" || problem "$name is set, but pperf has no such setting$(nearest "$name" $known)" "see libpperf(7) for the settings"
	done
	case ${PPERF_DISABLE-0} in 0 | '' | false | off | no) ;; *) problem "PPERF_DISABLE is set: nothing is recorded" "unset PPERF_DISABLE" ;; esac
	case ${NVTX_INJECTION64_PATH-} in
	'' | "$library") ;;
	*) note "NVTX_INJECTION64_PATH names another tool, $NVTX_INJECTION64_PATH" "NVTX calls are forwarded to it if it supports that; Nsight Systems does not: unset the variable to record NVTX ranges" ;;
	esac
	for name in $(printf %s "$preloaded" | tr : ' '); do
		case $name in
		*/*) [ -e "$name" ] || problem "LD_PRELOAD names $name, which does not exist: the dynamic linker ignores it" 'give the full path, or let pperf run set it' ;;
		esac
		case $name in [!/]*/*) [ ! -e "$name" ] || note "LD_PRELOAD names $name, a relative path" 'a program that changes its directory starts other programs without it' ;; esac
	done
	[ "${CUDA_LAUNCH_BLOCKING-0}" != 1 ] || note 'CUDA_LAUNCH_BLOCKING=1: each launch waits for its kernel' 'times differ from those of a normal run'
	case " ${PYTORCH_NO_CUDA_MEMORY_CACHING-} " in *" 1 "*) note 'PYTORCH_NO_CUDA_MEMORY_CACHING=1: each tensor is a cudaMalloc' 'the memory view shows them as device memory' ;; esac
}

# ---- where the trace goes ----

check_folder() {
	target=${PPERF_OUTPUT:-trace.bin}
	case $target in */*) folder=${target%/*} ;; *) folder=. ;; esac
	case $folder in *%*) note "the directory of PPERF_OUTPUT=$target is known only when the program runs"; return ;; esac
	shown=$(readlink -f "$folder" 2> /dev/null || printf '%s' "$folder")
	if [ -e "$target" ] && [ ! -f "$target" ]; then
		problem "$target is not a file, so no trace can be written with that name" "set PPERF_OUTPUT to the name of a file"
	elif [ ! -d "$folder" ]; then
		problem "the directory of the trace, $folder, does not exist" "mkdir -p $folder"
	elif ! (umask 077; : > "$folder/.pperf-doctor-$$") 2> /dev/null; then
		problem "no file can be created in $shown" "set PPERF_OUTPUT to a file in a writable directory"
	else
		rm -f "$folder/.pperf-doctor-$$"
		free=$(df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1024) }')
		if [ "${free:-0}" -lt 1024 ]; then
			note "$shown has ${free} MB free" "a trace takes at most PPERF_MAX (4G); what does not fit is counted as lost"
		else
			fine "the trace can be written to $shown, ${free} MB free"
		fi
	fi
}

# ---- what there is to record ----

check_gpu() { # "... x86_64 Kernel Module  535.54.03 ...", "... Open Kernel Module for x86_64  560.35.03 ..."
	version=$(sed -n 's/^NVRM version:[^.]*[^0-9.]\([0-9][0-9]*\.[0-9.]*\).*/\1/p' /proc/driver/nvidia/version 2> /dev/null | head -1)
	driver=$(finder libcuda.so.1 || :)
	[ -n "$driver" ] || driver=$(first /usr/lib/wsl/lib/libcuda.so.1 /usr/local/nvidia/lib64/libcuda.so.1 || :)
	if [ -n "$version" ] && [ -n "$driver" ]; then
		fine "NVIDIA driver $version, $driver"
	elif [ -n "$version" ]; then
		problem "the NVIDIA driver $version is loaded, but libcuda.so.1 is not found" 'in a container: start it with --gpus all; otherwise install the driver'\''s user part'
	elif [ -n "$driver" ]; then
		note "$driver was found, but the NVIDIA kernel driver is not loaded" 'CUDA does not work; NVTX, and PyTorch on the CPU, can still be recorded'
	else
		note 'no NVIDIA driver: GPU activity cannot be recorded on this machine' 'NVTX, and PyTorch on the CPU, can still be recorded'
	fi
}

cupti_folders() {
	printf '%s\n' "${CUDA_HOME:+$CUDA_HOME/extras/CUPTI/lib64}" "${CUDA_HOME:+$CUDA_HOME/lib64}" /usr/local/cuda/extras/CUPTI/lib64 /usr/local/cuda/lib64 /opt/cuda/extras/CUPTI/lib64
	[ -z "$python" ] || "$python" -c 'import site, sys, glob
for base in site.getsitepackages() + [site.getusersitepackages()] + sys.path:
    for name in glob.glob(base + "/nvidia/c*/lib"):
        print(name)' 2> /dev/null
}

# FILE: the known issues of that CUPTI, which the library writes into a trace. Python calls CUPTI through the library, and makes a mark so that there is a trace.
check_cupti_version() {
	[ -n "$python" ] || return 0
	make_scratch
	limit=$(command -v timeout > /dev/null && echo timeout 30)
	LD_PRELOAD=$library PPERF_OUTPUT=$scratch/cupti.bin PPERF_CUPTI=$1 PPERF_QUIET=1 $limit "$python" -c 'import ctypes
library = ctypes.CDLL(None)
library.nvtxMarkA(b"pperf doctor")
library.cuptiActivityFlushAll(0)' > "$scratch/error" 2>&1
	[ ! -f "$scratch/cupti.bin" ] || ! "$report" info --width 10000 "$scratch/cupti.bin" > "$scratch/info" 2> /dev/null ||
		sed -n 's/^.* \(CUPTI [0-9][0-9]* [im][sa].*\)$/\1/p' "$scratch/info" > "$scratch/issues"
	[ ! -f "$scratch/issues" ] || while read -r issue; do note "${issue%%;*}" "${issue#*; }"; done < "$scratch/issues"
	rm -f "$scratch"/cupti* "$scratch/issues"
}

check_cupti() {
	case ${PPERF_CUPTI-} in
	/*)
		[ -f "$PPERF_CUPTI" ] || { problem "PPERF_CUPTI names $PPERF_CUPTI, which does not exist" 'unset it, or name a libcupti.so'; return; }
		fine "CUPTI is $PPERF_CUPTI, as set by PPERF_CUPTI"
		check_cupti_version "$PPERF_CUPTI"
		return ;;
	esac
	found=$(cupti_folders | while read -r folder; do [ -n "$folder" ] && first "$folder"/libcupti.so.1[2-9]; done | head -1)
	[ -n "$found" ] || found=$(finder 'libcupti.so.1[2-9]' || :)
	if [ -n "$found" ]; then
		fine "CUPTI is $found, unless the program has its own"
		check_cupti_version "$found"
	else
		note 'CUPTI 12 or later was not found: without it GPU times are unknown' "$(remedy cupti 'was not found')"
	fi
}

check_python() {
	[ -n "$python" ] || { note 'Python was not found'; return; }
	said=$("$python" - 2> /dev/null << 'END'
import sys, sysconfig
version = "%d.%d" % sys.version_info[:2]
free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
try:
    from importlib.metadata import version as of
    torch = of("torch")
except Exception:
    torch = ""
print(version, free, torch)
END
	) || said=
	set -- $said
	case ${3-} in
	'') note "$python has no PyTorch" ;;
	0.* | 1.* | 2.0.*) note "PyTorch $3 in $python is older than 2.1: its operators and modules may not be recorded; NVTX, CUDA and memory are" "$(remedy torch_ops 'callback interface')" ;;
	*) fine "PyTorch $3 in $python" ;;
	esac
	[ "${2-}" != True ] || note "Python $1 is free-threaded: modules and Python stacks are not recorded" "$(remedy python_stacks free-threaded)"
	case ${1-} in 3.9 | 3.1[0-5] | '') ;; *) note "Python $1 is not one of 3.9 to 3.15: Python stacks are not recorded" "$(remedy python_stacks 'frame layout')" ;; esac
}

check_stacks() {
	unwinder=$(finder libunwind.so.8 || :)
	[ -n "$unwinder" ] && fine "call stacks by $unwinder" || note 'libunwind.so.8 was not found: CUDA calls have no call stacks' 'apt install libunwind8, or dnf install libunwind; PyTorch does not include it'
}

# ---- a command ----

# The dynamic linker that a program of 64 bits names; nothing if it is linked statically.
interpreter() {
	at=$(number "$1" 32 8) size=$(number "$1" 54 2) left=$(number "$1" 56 2)
	while [ "${left:-0}" -gt 0 ]; do
		if [ "$(number "$1" "$at" 4)" = 3 ]; then
			tail -c "+$(($(number "$1" $((at + 8)) 8) + 1))" "$1" | head -c "$(($(number "$1" $((at + 32)) 8) - 1))"
			return
		fi
		at=$((at + size)) left=$((left - 1))
	done
}

# The loader ignores LD_PRELOAD where a program gets rights that who starts it has not.
gets_rights() {
	[ -u "$1" ] && [ ! -O "$1" ] && return
	[ -g "$1" ] && [ ! -G "$1" ] && return
	[ "$(id -u)" != 0 ] && [ -n "$(PATH=$PATH:/sbin:/usr/sbin getcap "$1" 2> /dev/null)" ]
}

# Whether the loader will hear of LD_PRELOAD at all.
check_file() {
	path=$(command -v -- "$1") || { echo "pperf: command '$1' was not found" >&2; exit 127; }
	path=$(readlink -f "$path")
	! gets_rights "$path" || {
		problem "$path runs with elevated privileges (setuid, setgid or capabilities): the loader ignores LD_PRELOAD for it" \
			'run the program itself, without such a wrapper, or after sudo: sudo env LD_PRELOAD=... COMMAND'
		return
	}
	[ -r "$path" ] || { note "$path cannot be read, so the kind of program is unknown"; return; }
	case $(od -An -tx1 -N5 "$path" | tr -d ' ') in
	7f454c4602) ;;
	7f454c4601) problem "$path is a 32-bit program" 'the library is 64-bit; CUDA no longer supports 32-bit programs'; return ;;
	2321*) note "$path is a script; its interpreter is recorded"; return ;;
	*) return ;;
	esac
	[ "$(number "$path" 18 2)" = "$(number "$library" 18 2)" ] || { problem "$path is a program for another processor architecture" 'use the library built for that architecture'; return; }
	linker=$(interpreter "$path")
	case ${linker##*/} in
	'') problem "$path is linked statically: no loader reads LD_PRELOAD" 'build it with shared libraries (nvcc: -cudart shared)' ;;
	ld-musl*) problem "$path uses musl as its C library, but the library is for glibc: the program does not start with it" 'build it for glibc' ;;
	esac
}

# Settings whose values the library did not understand.
report_settings() {
	wrong=$(sed -n 's/^\(warnings\)\{0,1\} *settings \(.*is not valid.*\)/\2/p' "$scratch/info")
	[ -z "$wrong" ] || [ "$wrong" = "$reported" ] || problem "$wrong" 'see libpperf(7)'
	reported=$wrong
}

# What only the library knows of its settings, it says in a trace: of one mark, which Python makes.
check_values() {
	[ -n "$python" ] || return
	make_scratch
	LD_PRELOAD=$library PPERF_OUTPUT=$scratch/mark.bin PPERF_QUIET=1 "$python" -c 'import ctypes; ctypes.CDLL(None).nvtxMarkA(b"pperf doctor")' > "$scratch/error" 2>&1 || return
	[ ! -f "$scratch/mark.bin" ] || ! "$report" info "$scratch/mark.bin" > "$scratch/info" 2> /dev/null || report_settings
	rm -f "$scratch"/mark*
}

make_scratch() {
	[ -z "$scratch" ] || return 0
	scratch=$(mktemp -d) || exit 125
	trap 'rm -rf "$scratch"' EXIT
	trap 'exit 129' HUP
	trap 'exit 143' TERM
}

# The sources of one trace: on, absent, or why not, and what to do.
tell_trace() {
	"$report" info "$1" > "$scratch/info" 2> "$scratch/error" || { problem "$(head -1 "$scratch/error")"; return; }
	say '' ''
	say trace "of $(sed -n 's/^command *//p' "$scratch/info" | cut -c1-120)"
	awk '/^[^ ]/ { inside = sub(/^sources/, "") } inside' "$scratch/info" > "$scratch/sources"
	while read -r name what; do
		case $name in '→' | '->') say '' "→ $what"; continue ;; esac
		case $what in
		on) fine "$name" ;;
		absent) say '-' "$name: not used by this program" ;;
		off* | partial*) problem "$name $what" ;;
		esac
	done < "$scratch/sources"
	report_settings
	"$report" "$1" 2> /dev/null | awk '/^ran / { run = 1 } run && /^$/ { exit } /^[^ ]/ { inside = /^(coverage|notes|errors|losses|cost) / } inside'
}

check_command() {
	check_file "$1"
	make_scratch
	trap : INT # Ctrl-C ends the command, and the results so far are printed
	PPERF_OUTPUT=$scratch/trace.bin PPERF_QUIET=1 LD_PRELOAD=$library${preloaded:+:$preloaded} "$@"
	ended=$?
	say '' ''
	say command "ended with $ended"
	if first "$scratch"/*.bin > /dev/null; then
		for trace in "$scratch"/*.bin; do tell_trace "$trace"; done
	elif [ "$status" = 0 ]; then
		problem 'it wrote no trace: it did nothing that is recorded' 'pperf records NVTX ranges, CUDA and PyTorch; the program used none of them before it ended'
	fi
}

# What CPU samples have on this machine, as the trace of a shell says it. The shell counts until
# there is a trace, which takes 50 ms of CPU time, and some more.
check_samples() {
	make_scratch
	LD_PRELOAD=$library PPERF_SAMPLE=999 PPERF_OUTPUT=$scratch/samples.bin PPERF_QUIET=1 sh -c '
		count() { i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; }
		rounds=0
		while [ ! -f "$0" ] && [ $rounds -lt 200 ]; do count; rounds=$((rounds + 1)); done
		count' "$scratch/samples.bin" > /dev/null 2>&1
	[ -f "$scratch/samples.bin" ] || { note 'CPU samples (PPERF_SAMPLE) were tried, and none was taken' 'see source.cpu_samples of a trace (pperf-report info)'; return; }
	state=$(LC_ALL=C tr -c '[:print:]' '\n' < "$scratch/samples.bin" | sed -n 's/^.*source\.cpu_samples\(on\|off: \|partial: \)/\1/p' | tail -1)
	rm -f "$scratch"/samples.bin*
	case $state in
	on*) fine 'CPU samples (PPERF_SAMPLE=99) have native and Python frames' ;;
	partial*) note "CPU samples (PPERF_SAMPLE=99) work; ${state#partial: }" ;;
	*) note "CPU samples (PPERF_SAMPLE=99) do not work: ${state#off: }" ;;
	esac
}

case ${1-} in python* | */python*) python=$(command -v -- "$1" || :) ;; *) python=$(command -v python3 || command -v python || :) ;; esac
check_library
check_settings
check_values
check_folder
check_gpu
check_cupti
check_stacks
check_samples
check_python
[ $# -eq 0 ] || check_command "$@"
exit $status
