#!/bin/sh
# SPDX-License-Identifier: MIT
# demo_torch.sh BUILD PYTHON...: trains a small model, an unmodified script, under the library, and shows the tree of it. The first PYTHON that can
# import torch runs it.
set -eu
build=$1
shift
trace=$build/demo_torch.bin

show() {
	echo
	echo "\$ $*"
	"$@"
}

for python; do
	if version=$("$python" -c 'import torch; print(torch.__version__, "on", torch.cuda.get_device_name() if torch.cuda.is_available() else "the CPU")' 2> /dev/null); then
		echo "pperf demo: PyTorch $version ($python)"
		rm -f "$trace" "$trace.old"
		show env LD_PRELOAD="$(realpath "$build")/libpperf.so" PPERF_OUTPUT="$trace" "$python" scripts/demo_train.py
		show "$build/pperf-report" "$trace"
		exit 0
	fi
done
echo "pperf demo: no Python here can import torch (tried: $*); \`make torch\` fetches one into build, or say PYTHON=/path/to/python" >&2
exit 1
