#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh BUILD: runs a training-like program under the library and shows what raised its memory. On a GPU where there is one and a
# compiler for it, else on the simulated device.
set -eu
build=$1
trace=$build/demo.bin

has_gpu() { command -v nvidia-smi > /dev/null && nvidia-smi -L 2> /dev/null | grep -q '^GPU'; }

# The demo program for the real device, by nvcc; prints the reason if that cannot be.
compile_for_gpu() {
	has_gpu || { echo 'this machine has no GPU'; return 1; }
	nvcc=$(command -v nvcc || echo "$(scripts/setup.sh --cuda)/bin/nvcc")
	[ -x "$nvcc" ] || { echo 'this machine has a GPU, but no nvcc to compile for it'; return 1; }
	mkdir -p "$build/demo"
	"$nvcc" -x cu -cudart shared -arch=native -O2 -o "$build/demo/demo_train" tests/programs/demo_train.c \
		-Xlinker -rpath -Xlinker "$(dirname "$(dirname "$nvcc")")/lib64" > "$build/demo/nvcc.log" 2>&1 ||
		{ echo "nvcc could not compile the demo (see $build/demo/nvcc.log)"; return 1; }
}

show() {
	echo
	echo "\$ $*"
	"$@"
}

if reason=$(compile_for_gpu); then
	program=$build/demo/demo_train
	echo "pperf demo: on $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)"
else
	program=$build/cudasim/13/demo_train
	echo "pperf demo: $reason, so the program runs on the simulated device; its times are not those of a GPU"
fi
rm -f "$trace" "$trace.old"
show env LD_PRELOAD="$(realpath "$build")/libpperf.so" PPERF_OUTPUT="$trace" "$program"
show "$build/pperf-report" "$trace"
show "$build/pperf-report" critical "$trace" -m reserved
