#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu-check.sh BUILD [--simulated] [PART...]: checks the claims about CUDA and CUPTI on a real GPU.
# Prints first which machine it is. Without a GPU it says so and exits 77.
#
# PART, all of them without one, each on its own whatever became of those before it:
#   probe        CUPTI is asked itself, without the library
#   programs     programs of nvcc's under the library; the probe before them, unless it is a part
#   torch        PyTorch under the library
#   calibration  PyTorch on the GPU and on the simulated device, and where these differ
# PyTorch is that of PPERF_CHECK_PYTHON, else python3's.
# --simulated: on the simulated device instead, to try the programs and this script. Nothing is kept
# unless a folder is named, and no figure of it is one of a GPU.
#
# What was measured is written to PPERF_CHECK_EVIDENCE, else to the folder OUT where that is set, else
# to tests/golden/NAME-OF-THE-GPU/, as it comes: a check that is stopped has it as well. A part
# begins nothing new after PPERF_CHECK_SECONDS and is ended half a minute later. Of BUILD only
# libpperf.so is needed, and for the calibration cudasim/; both may have been built on another
# machine. A part that cannot be had is left out, and the check says so.
#
# On a machine that is lent for minutes, one command after the other:
#   scripts/gpu-check.sh build programs 2>&1 | tee $OUT/log      PPERF_CHECK_SECONDS=420
#   scripts/gpu-check.sh build torch 2>&1 | tee $OUT/log         PPERF_CHECK_SECONDS=480
#   scripts/gpu-check.sh build calibration 2>&1 | tee $OUT/log   PPERF_CHECK_SECONDS=480
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:?usage: gpu-check.sh BUILD [--simulated] [PART...]}
shift
mode=
if [ "${1-}" = --simulated ]; then
	mode=$1
	shift
fi
parts=${*:-probe programs torch calibration}
nvcc=${NVCC:-$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")}
home=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
python=${PPERF_CHECK_PYTHON:-python3}
programs=$build/gpu before=${LD_LIBRARY_PATH:-}
status=0
say() { echo "gpu-check: $*" >&2; }

[ -e "$build/libpperf.so" ] || { say "$build/libpperf.so is not built"; exit 1; }
if [ "$mode" = --simulated ]; then
	machine="the simulated device; its figures are not those of a GPU"
	architecture=${GPU_ARCH:-sm_90}
	evidence=${PPERF_CHECK_EVIDENCE:-}
	simulated=$PWD/$build/cudasim/13
	case $build in /*) simulated=$build/cudasim/13 ;; esac
	newest=$(for p in "$build"/torch-*/bin/python build/torch-*/bin/python; do [ -e "$p" ] && echo "$p"; done | sort -V | tail -n 1)
	python=${PPERF_CHECK_PYTHON:-${newest:-python3}}
	models="mlp graph"
else
	if ! command -v nvidia-smi > /dev/null || ! nvidia-smi -L 2> /dev/null | grep -q '^GPU 0'; then
		say "this machine has no NVIDIA GPU; nothing was checked"
		exit 77
	fi
	machine=$(nvidia-smi --query-gpu=name,driver_version,compute_cap,mig.mode.current --format=csv,noheader | sort | uniq -c | sed 's/^ *//')
	architecture=${GPU_ARCH:-sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)}
	evidence=${PPERF_CHECK_EVIDENCE:-}
	[ -z "$evidence" ] && [ -n "${OUT:-}" ] && [ -d "$OUT" ] && evidence=$OUT
	[ -n "$evidence" ] || evidence=tests/golden/$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr 'A-Z ' 'a-z-')
	models=
fi
if [ -n "$evidence" ]; then
	mkdir -p "$evidence" || { say "$evidence cannot be made; nothing is kept"; evidence=''; }
	[ $# -gt 0 ] || rm -f "$evidence/traces.tar"
fi
machine="$machine; $(uname -sr), clock source $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2> /dev/null || echo unknown)"
echo "machine: $machine"
export PPERF_TEST_BUILD="$build" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

# CUPTI, NVTX and cuBLAS: the toolkit's, else those of PyTorch's wheels, else those that the library was built with. Options for the compiler, and for nvcc.
# A wheel has no libcupti.so, only libcupti.so.13, which nvcc takes for no library: it is given to the linker.
wheels=$("$python" -c 'import nvidia, os; print(os.path.realpath(list(nvidia.__path__)[0]))' 2> /dev/null) || wheels=
includes='' nvcc_includes=''
for folder in "$home/extras/CUPTI/include" "$home/include" ${wheels:+"$wheels"/cu13/include "$wheels"/cuda_cupti/include} "${CUDA_INCLUDE:-build/cuda/include}"; do
	[ -d "$folder" ] && includes="$includes -idirafter $folder" nvcc_includes="$nvcc_includes -Xcompiler -idirafter,$folder"
done
find_library() { # STEM WHEEL: its path
	for folder in "$home/extras/CUPTI/lib64" "$home/lib64" ${wheels:+"$wheels"/cu13/lib "$wheels/$2"/lib}; do
		for file in "$folder/$1".so "$folder/$1".so.1[2-9]; do
			[ -e "$file" ] && echo "$file" && return
		done
	done
}
cupti_library=$(find_library libcupti cuda_cupti)
cublas_library=$(find_library libcublas cublas)
# nvcc's programs find CUPTI there, and so does the library. A toolkit's is found without.
searched=''
case $cupti_library in
'' | "$home"/lib64/*) ;;
*) searched=$(dirname "$cupti_library") ;;
esac
if [ "$mode" = --simulated ]; then
	searched=$simulated${searched:+:$searched}
fi
searched=$searched${searched:+${before:+:}}$before

started=0
begin_part() { started=$(date +%s); }
left() { # seconds; nothing without a limit
	[ -z "${PPERF_CHECK_SECONDS:-}" ] || echo $((PPERF_CHECK_SECONDS - ($(date +%s) - started)))
}
within() { # COMMAND...: with half a minute more than a part has, for one that hangs where it should not
	seconds=$(left)
	if [ -z "$seconds" ] || ! command -v timeout > /dev/null; then
		"$@"
		return
	fi
	[ "$seconds" -gt 0 ] || seconds=0
	timeout -k 10 $((seconds + 30)) "$@"
	code=$?
	[ $code -lt 124 ] || say "the part $part was ended with status $code; what it found until then is kept"
	return $code
}
limit() { # the options that every part has
	seconds=$(left)
	echo "${seconds:+--seconds $seconds}"
}

compile() { # PROGRAM SOURCE FLAGS...: in the background
	name=$1 source=$2
	shift 2
	rm -f "$programs/$name"
	# shellcheck disable=SC2086 # options are words
	{
		"$nvcc" -O2 -arch="$architecture" -Itests/programs $nvcc_includes -Wno-deprecated-gpu-targets -o "$programs/$name" "$source" "$@" \
			-Xlinker --enable-new-dtags -Xlinker -rpath="$home/lib64" -lpthread -ldl > "$programs/$name.log" 2>&1 || {
			rm -f "$programs/$name"
			say "$name does not compile and is skipped: $(grep -m 3 -i 'error\|cannot find\|fatal' "$programs/$name.log" | tr '\n' ' ')"
		}
	} &
}

have_nvcc() {
	if [ ! -x "$nvcc" ]; then
		say "nvcc was not found; install the CUDA toolkit or set NVCC"
		return 1
	fi
	echo "compiler: $("$nvcc" --version | sed -n 's/.*release/release/p') for $architecture"
	mkdir -p "$programs"
}

run_check() { # PART
	# shellcheck disable=SC2046 # options are words
	LD_LIBRARY_PATH=$searched within python3 tests/gpu/check.py --part "$1" --programs "$programs" --machine "$machine" ${evidence:+--evidence "$evidence"} $(limit)
}

check_probe() {
	have_nvcc || return 1
	rm -f "$programs/probe_cupti" "$programs/probe_cupti.log"
	if [ -n "$cupti_library" ]; then
		compile probe_cupti tests/gpu/probe_cupti.cu -cudart shared -Xlinker "$cupti_library" -Xlinker -rpath="$(dirname "$cupti_library")"
		wait
	else
		say "CUPTI was not found to link with; those checks are skipped"
	fi
	run_check probe
}

check_programs() {
	have_nvcc || return 1
	rm -f "$programs"/known_work_static* "$programs"/library_calls*
	compile known_work_shared tests/programs/known_work.c -x cu -cudart shared
	compile cuda_guest tests/programs/cuda_guest.c -x cu -cudart shared
	compile launch_cost tests/gpu/launch_cost.cu -cudart shared
	if [ "$mode" != --simulated ]; then # which replaces the shared runtime only
		compile known_work_static tests/programs/known_work.c -x cu -cudart static
		[ -n "$cublas_library" ] &&
			compile library_calls tests/gpu/library_calls.cu -cudart shared -Xlinker "$cublas_library" -Xlinker -rpath="$(dirname "$cublas_library")"
	fi
	wait
	run_check programs
}

check_torch() {
	# shellcheck disable=SC2046
	LD_LIBRARY_PATH=$before within python3 tests/gpu/torch_check.py --python "$python" --build "$build" --machine "$machine" ${evidence:+--evidence "$evidence"} \
		$(limit) ${models:+--simulated $models}
}

check_calibration() {
	if [ ! -e "$build/cudasim/13/libcuda.so.1" ]; then
		say "the simulated device is not built; nothing is compared with it"
		return 0
	fi
	mkdir -p "$programs"
	# shellcheck disable=SC2086
	if ! ${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 $includes -fPIC -shared -o "$programs/call_log.so" tests/gpu/call_log.c -lpthread -ldl; then
		say "CUPTI was not found to compile with; nothing is compared with the simulated device"
		return 0
	fi
	# shellcheck disable=SC2046
	LD_LIBRARY_PATH=$before within python3 tests/gpu/calibrate.py --python "$python" --library "$programs/call_log.so" --build "$build" ${evidence:+--evidence "$evidence"} \
		$(limit) ${models:+--simulated $models}
}

probed=''
case " $parts " in *" probe "*) probed=1 ;; esac
for part in $parts; do
	begin_part
	case $part in
	probe) check_probe || status=1 ;;
	programs)
		[ -n "$probed" ] || check_probe || status=1
		check_programs || status=1
		;;
	torch) check_torch || status=1 ;;
	calibration) check_calibration || status=1 ;;
	*) say "unknown part '$part'; parts are probe, programs, torch and calibration"; status=64 ;;
	esac
done
exit $status
