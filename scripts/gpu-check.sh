#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu-check.sh BUILD [--simulated] [PART...]: the claims about CUDA and CUPTI, checked on a real GPU. Says first which machine it is. Without a GPU it
# says so and exits 77. PART: programs (nvcc's, and CUPTI asked itself), torch (PyTorch under the library), calibration (PyTorch on the GPU and on the
# simulated device, and where these differ); all of them without one. PyTorch is that of PPERF_CHECK_PYTHON, else python3.
# --simulated: on the simulated device instead, to try the programs and this script; nothing is kept unless a folder is named, and no figure of it is one of
# a GPU.
#
# What was measured is written to PPERF_CHECK_EVIDENCE, else tests/golden/NAME-OF-THE-GPU/, as it comes, so that a check that is stopped has it as well. A
# part begins nothing new after PPERF_CHECK_SECONDS. Of BUILD only libpperf.so is needed, and for the calibration cudasim/; both may have been built on
# another machine. A part that cannot be had is left out and said.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:?usage: gpu-check.sh BUILD [--simulated] [PART...]}
shift
mode=
if [ "${1-}" = --simulated ]; then
	mode=$1
	shift
fi
parts=${*:-programs torch calibration}
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
	LD_LIBRARY_PATH=$PWD/$build/cudasim/13${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	case $build in /*) LD_LIBRARY_PATH=$build/cudasim/13 ;; esac
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
	evidence=${PPERF_CHECK_EVIDENCE:-tests/golden/$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr 'A-Z ' 'a-z-')}
	models=
fi
if [ -n "$evidence" ]; then
	mkdir -p "$evidence"
	[ $# -gt 0 ] || rm -f "$evidence/traces.tar"
fi
machine="$machine; $(uname -sr), clock source $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2> /dev/null || echo unknown)"
echo "machine: $machine"
export PPERF_TEST_BUILD="$build" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

# CUPTI and NVTX: the toolkit's, else those of PyTorch's wheels, else those that the library was built with. Options for the compiler, and for nvcc.
wheels=$("$python" -c 'import nvidia, os; print(os.path.realpath(list(nvidia.__path__)[0]))' 2> /dev/null) || wheels=
includes='' nvcc_includes='' cupti_library=''
for folder in "$home/extras/CUPTI/include" "$home/include" ${wheels:+"$wheels"/cu13/include "$wheels"/cuda_cupti/include} "${CUDA_INCLUDE:-build/cuda/include}"; do
	[ -d "$folder" ] && includes="$includes -idirafter $folder" nvcc_includes="$nvcc_includes -Xcompiler -idirafter,$folder"
done
for folder in "$home/extras/CUPTI/lib64" "$home/lib64" ${wheels:+"$wheels"/cu13/lib "$wheels"/cuda_cupti/lib}; do
	[ -z "$cupti_library" ] && for file in "$folder"/libcupti.so "$folder"/libcupti.so.1[2-9]; do [ -e "$file" ] && cupti_library=$file && break; done
done

compile() { # PROGRAM SOURCE FLAGS...: in the background
	name=$1 source=$2
	shift 2
	rm -f "$programs/$name"
	# shellcheck disable=SC2086 # options are words
	"$nvcc" -O2 -arch="$architecture" -Itests/programs $nvcc_includes -Wno-deprecated-gpu-targets -o "$programs/$name" "$source" "$@" \
		-Xlinker --enable-new-dtags -Xlinker -rpath="$home/lib64" -lpthread -ldl > "$programs/$name.log" 2>&1 ||
		say "$name does not compile and is skipped: $(grep -m 3 -i 'error\|cannot find' "$programs/$name.log" | tr '\n' ' ')" &
}

check_programs() {
	if [ ! -x "$nvcc" ]; then
		say "nvcc was not found; install the CUDA toolkit or set NVCC"
		return 1
	fi
	echo "compiler: $("$nvcc" --version | sed -n 's/.*release/release/p') for $architecture"
	mkdir -p "$programs"
	compile known_work_shared tests/programs/known_work.c -x cu -cudart shared
	compile cuda_guest tests/programs/cuda_guest.c -x cu -cudart shared
	compile launch_cost tests/gpu/launch_cost.cu -cudart shared
	rm -f "$programs/known_work_static" "$programs/library_calls"
	if [ -n "$cupti_library" ]; then
		compile probe_cupti tests/gpu/probe_cupti.cu -cudart shared "$cupti_library" -Xlinker -rpath="$(dirname "$cupti_library")"
	else
		say "CUPTI was not found to link with; those checks are skipped"
	fi
	if [ "$mode" != --simulated ]; then # which replaces the shared runtime only
		compile known_work_static tests/programs/known_work.c -x cu -cudart static
		compile library_calls tests/gpu/library_calls.cu -cudart shared -lcublas
	fi
	wait
	[ "$mode" = --simulated ] && export LD_LIBRARY_PATH
	python3 tests/gpu/check.py --programs "$programs" --machine "$machine" ${evidence:+--evidence "$evidence"} ${PPERF_CHECK_SECONDS:+--seconds "$PPERF_CHECK_SECONDS"}
}

check_torch() {
	LD_LIBRARY_PATH=$before python3 tests/gpu/torch_check.py --python "$python" --build "$build" --machine "$machine" ${evidence:+--evidence "$evidence"} \
		${PPERF_CHECK_SECONDS:+--seconds "$PPERF_CHECK_SECONDS"} ${models:+--simulated $models}
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
	LD_LIBRARY_PATH=$before python3 tests/gpu/calibrate.py --python "$python" --library "$programs/call_log.so" --build "$build" ${evidence:+--evidence "$evidence"} \
		${PPERF_CHECK_SECONDS:+--seconds "$PPERF_CHECK_SECONDS"} ${models:+--simulated $models}
}

for part in $parts; do
	case $part in
	programs) check_programs || status=1 ;;
	torch) check_torch || status=1 ;;
	calibration) check_calibration || status=1 ;;
	*) say "unknown part '$part'; parts are programs, torch and calibration"; status=64 ;;
	esac
done
exit $status
