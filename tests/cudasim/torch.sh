#!/bin/sh
# SPDX-License-Identifier: MIT
# torch.sh [-b BUILD] [-p LIBRARY] ENVIRONMENT ARGUMENT...: the Python of that environment (build/torch-2.15.0) on the simulated device, of the CUDA
# that its PyTorch was built for; LIBRARY is preloaded in front of all. Everything is preloaded, by its path: then PyTorch finds the simulated
# libraries by their names (SONAME) before it looks where NVIDIA's would be. Builds nothing: `make cudasim-torch` does.
here=$(cd "$(dirname "$0")/../.." && pwd)
build=$here/build front=
while getopts b:p: option; do
	case $option in
	b) build=$(cd "$OPTARG" && pwd) ;;
	p) front=$OPTARG ;;
	*) exit 64 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || { echo 'usage: torch.sh [-b BUILD] [-p LIBRARY] ENVIRONMENT ARGUMENT...' >&2; exit 64; }
environment=$1
shift
major=$(sed -n "s/^cuda.*'\([0-9]*\)\.[0-9]*'.*/\1/p" "$environment"/lib/python3*/site-packages/torch/version.py)
[ -n "$major" ] || { echo "torch.sh: $environment has no PyTorch that was built for CUDA" >&2; exit 69; }
case $build in *[[:space:]:]*) echo "torch.sh: LD_PRELOAD splits paths at blanks, and $build has some" >&2; exit 69 ;; esac
libraries=$build/cudasim/$major
stubs=$build/cudasim/torch/${environment##*/}
[ -e "$stubs/libcudasim_rest.so" ] || { echo "torch.sh: $stubs is not built: make BUILD=$build cudasim-torch" >&2; exit 69; }
preload=$front
for library in "$libraries"/lib*.so.* "$stubs"/lib*.so.* "$stubs"/libcudasim_rest.so; do
	[ -e "$library" ] && preload="$preload $library"
done
# Where Triton links its launchers from.
export TRITON_LIBCUDA_PATH="$libraries"
LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD }${preload# }" exec "$environment/bin/python" "$@"
