#!/bin/sh
# SPDX-License-Identifier: MIT
# environment.sh [--if-reachable] RELEASE: that release of PyTorch in build/torch-RELEASE, a virtual environment. The wheel is the one that
# everybody gets, built for CUDA, but without NVIDIA's libraries: tests/torch/without_cuda.py puts what says "no device" in their place, which
# saves three gigabytes and all but half a minute. --if-reachable: it is no error that the wheel cannot be downloaded; a line says so.
set -eu
cd "$(dirname "$0")/../.."
optional=
[ "$1" = --if-reachable ] && optional=1 && shift
release=$1
folder=build/torch-$release
# numpy 2 came after the first of them.
case $release in 2.[012].*) numpy=1.26.4 ;; *) numpy=2.2.6 ;; esac

mkdir -p build
exec 9> "build/.torch-$release"
flock 9 # one at a time
up_to_date() { [ -e "$folder/.installed" ] && [ "$folder/.installed" -nt "$0" ] && [ "$folder/.installed" -nt tests/torch/without_cuda.py ]; }
up_to_date && exit 0

fetch() {
	rm -rf "$folder"
	"${PYTHON:-python3}" -m venv "$folder"
	if ! "$folder/bin/pip" install --quiet --no-deps --no-cache-dir "torch==$release" > "$folder/pip.log" 2>&1; then
		tail -2 "$folder/pip.log" >&2
		rm -rf "$folder"
		[ -n "$optional" ] || { echo "PyTorch $release cannot be had for $(${PYTHON:-python3} -V) from where pip looks" >&2; exit 1; }
		echo "PyTorch $release cannot be downloaded here: its tests are skipped"
		exit 0
	fi
	# sympy and what follows are what PyTorch imports; the versions that it names differ by release and are not what is tested.
	"$folder/bin/pip" install --quiet --no-cache-dir filelock typing-extensions 'sympy>=1.13.1,<1.14' networkx jinja2 fsspec setuptools "numpy==$numpy" \
		2> "$folder/pip.log" || { cat "$folder/pip.log" >&2; exit 1; }
	touch "$folder/.fetched"
}

[ -e "$folder/.fetched" ] || fetch
site=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
if [ -e "$folder/without_cuda.log" ]; then # what it made before
	sed 's/:.*//' "$folder/without_cuda.log" | while read -r library; do rm -f "$site/torch/lib/$library"; done
fi
"$folder/bin/python" tests/torch/without_cuda.py "$site/torch" > "$folder/without_cuda.log"
"$folder/bin/python" -c 'import torch; assert torch.__version__.split("+")[0] == "'"$release"'"; torch.nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()'
touch "$folder/.installed"
