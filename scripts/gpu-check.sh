#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu-check.sh BUILD [--simulated]: the claims about CUDA and CUPTI, checked on a real GPU. Says first which machine it is. Without a GPU it
# says so and exits 77. What was measured is written to tests/golden/NAME-OF-THE-GPU/. Where PyTorch can be imported (PPERF_CHECK_PYTHON, python3), it
# runs on the GPU and on the simulated device, and where these differ is listed.
# --simulated: on the simulated device instead, to try the programs and this script; nothing is kept, and no figure of it is one of a GPU.
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: gpu-check.sh BUILD [--simulated]}
mode=${2:-}
nvcc=${NVCC:-$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")}
programs=$build/gpu before=${LD_LIBRARY_PATH:-}

if [ "$mode" = --simulated ]; then
	machine="the simulated device; its figures say nothing about a GPU"
	architecture=${GPU_ARCH:-sm_90}
	evidence=
	LD_LIBRARY_PATH=$PWD/$build/cudasim/13${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	case $build in /*) LD_LIBRARY_PATH=$build/cudasim/13 ;; esac
	export LD_LIBRARY_PATH
else
	if ! command -v nvidia-smi > /dev/null || ! nvidia-smi -L 2> /dev/null | grep -q '^GPU 0'; then
		echo "gpu-check: there is no NVIDIA GPU on this machine, nothing was checked" >&2
		exit 77
	fi
	machine=$(nvidia-smi --query-gpu=name,driver_version,compute_cap,mig.mode.current --format=csv,noheader | sort | uniq -c | sed 's/^ *//')
	architecture=${GPU_ARCH:-sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)}
	evidence=tests/golden/$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr 'A-Z ' 'a-z-')
fi
echo "machine: $machine"
if [ ! -x "$nvcc" ]; then
	echo "gpu-check: there is no nvcc; install the CUDA toolkit or set NVCC" >&2
	exit 77
fi
echo "compiler: $("$nvcc" --version | sed -n 's/.*release/release/p') for $architecture"
echo "kernel: $(uname -sr), clock source $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2> /dev/null || echo unknown)"

compile() { # PROGRAM SOURCE FLAGS...
	name=$1 source=$2
	shift 2
	"$nvcc" -O2 -arch="$architecture" -Itests/programs -Wno-deprecated-gpu-targets -o "$programs/$name" "$source" "$@" -lpthread -ldl
}
mkdir -p "$programs"
compile known_work_shared tests/programs/known_work.c -x cu -cudart shared
compile cuda_guest tests/programs/cuda_guest.c -x cu -cudart shared
compile launch_cost tests/gpu/launch_cost.cu -cudart shared
rm -f "$programs/known_work_static" "$programs/library_calls" "$programs/probe_cupti"
home=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
cupti=$home/extras/CUPTI
compile probe_cupti tests/gpu/probe_cupti.cu -cudart shared -I"$cupti/include" -L"$cupti/lib64" -L"$home/lib64" -lcupti -Xlinker -rpath="$cupti/lib64:$home/lib64" ||
	echo "gpu-check: there is no CUPTI to compile with; its own answers are left out" >&2
if [ "$mode" != --simulated ]; then # which replaces the shared runtime only
	compile known_work_static tests/programs/known_work.c -x cu -cudart static
	compile library_calls tests/gpu/library_calls.cu -cudart shared -lcublas ||
		echo "gpu-check: there is no cuBLAS to compile with; that part is left out" >&2
fi
status=0
PPERF_TEST_BUILD=$build PYTHONDONTWRITEBYTECODE=1 python3 tests/gpu/check.py --programs "$programs" --machine "$machine" ${evidence:+--evidence "$evidence"} || status=1

# The simulated device against this one, by what PyTorch does on both; on it itself only to try that.
python=${PPERF_CHECK_PYTHON:-python3} models=
if [ "$mode" = --simulated ]; then
	models="mlp graph"
	newest=$(ls -d "$build"/torch-*/bin/python build/torch-*/bin/python 2> /dev/null | sort -V | tail -n 1)
	python=${PPERF_CHECK_PYTHON:-${newest:-python3}}
fi
if [ ! -e "$build/cudasim/13/libcuda.so.1" ]; then
	echo "gpu-check: the simulated device could not be built; it is compared with nothing" >&2
elif ! ${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -I"$cupti/include" -I"$home/include" -I"${CUDA_INCLUDE:-$home/include}" -fPIC -shared -o "$programs/call_log.so" \
	tests/gpu/call_log.c -lpthread -ldl; then
	echo "gpu-check: there is no CUPTI to compile with; the simulated device is compared with nothing" >&2
else
	LD_LIBRARY_PATH=$before PYTHONDONTWRITEBYTECODE=1 python3 tests/gpu/calibrate.py --python "$python" --library "$programs/call_log.so" --build "$build" \
		${evidence:+--evidence "$evidence"} ${models:+--simulated $models} || status=1
fi
exit $status
