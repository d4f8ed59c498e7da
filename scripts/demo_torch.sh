#!/bin/sh
# SPDX-License-Identifier: MIT
# demo_torch.sh BUILD PYTHON...: trains a small model, an unmodified script, under the library, and shows the tree of it and what raised the memory
# of its tensors. The first PYTHON that can import torch runs it: on a GPU where there is one, else on the simulated device, as far as it is an
# environment of ours (build/torch-2.15.0) with a PyTorch that was built for CUDA, else on the CPU. Exit status 3: none can.
set -eu
build=$1
shift
trace=$build/demo_torch.bin

show() {
	echo
	echo "\$ $*"
	"$@"
}

# What torch.sh needs for that environment. The reason if it cannot be.
prepare_device() {
	case $1 in build/*) ;; *) echo 'this machine has no GPU, and the simulated device supports environments in build only'; return 1 ;; esac
	[ "$2" != None ] || { echo 'this PyTorch was built without CUDA'; return 1; }
	"${MAKE:-make}" --no-print-directory -s BUILD="$build" "$build/cudasim/torch/${1#build/}/libcudasim_rest.so" > "$build/demo_torch.log" 2>&1 ||
		{ echo "the simulated device could not be prepared (see $build/demo_torch.log)"; return 1; }
}

train() {
	rm -f "$trace" "$trace.old"
	library=$(realpath "$build")/libpperf.so
	if [ "$where" = simulated ]; then
		show env PPERF_OUTPUT="$trace" tests/cudasim/torch.sh -b "$build" -p "$library" "${python%/bin/python}" scripts/demo_train.py
	else
		show env LD_PRELOAD="$library" PPERF_OUTPUT="$trace" "$python" scripts/demo_train.py
	fi
	show "$build/pperf-report" "$trace"
	[ "$where" = CPU ] || show "$build/pperf-report" critical "$trace" -m allocated --min-percent 20
}

for python; do
	facts=$("$python" -c 'import torch; print(torch.__version__, torch.version.cuda, torch.cuda.get_device_name() if torch.cuda.is_available() else "")' 2> /dev/null) ||
		continue
	version=${facts%% *} gpu=${facts#* }
	cuda=${gpu%% *} gpu=${gpu#* }
	if [ -n "$gpu" ]; then
		where=$gpu
		echo "pperf demo: PyTorch $version ($python) on $gpu"
	elif reason=$(prepare_device "${python%/bin/python}" "$cuda"); then
		where=simulated
		echo "pperf demo: PyTorch $version ($python) on the simulated device, where kernels compute nothing: losses are 0, times are not those of a GPU"
	else
		where=CPU
		echo "pperf demo: PyTorch $version ($python) on the CPU: $reason"
	fi
	train
	exit 0
done
echo "pperf demo: no Python can import torch (tried: $*); run \`make torch\` to download PyTorch into build, or set PYTHON=/path/to/python"
exit 3
