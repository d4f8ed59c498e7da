#!/bin/sh
# SPDX-License-Identifier: MIT
# export_peers.sh [--if-reachable]: other projects' readers of our exports in build/export-peers, from PyPI. The packages are those of
# export_peers.txt, and speedscope's page, which is in ray's wheel; the rest of that wheel is not kept.
# --if-reachable: it is no error that they cannot be downloaded; a line says so.
set -eu
cd "$(dirname "$0")/../.."
optional=
[ "${1-}" = --if-reachable ] && optional=1
packages=tests/support/export_peers.txt
speedscope=ray==2.60.0
folder=build/export-peers
pip="${PYTHON:-python3} -m pip --quiet --disable-pip-version-check"
export PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore

mkdir -p build
exec 9> build/.export-peers
flock 9 # one at a time
wanted=$(cat "$packages"; echo "$speedscope"; "${PYTHON:-python3}" -V)
[ "$wanted" != "$(cat "$folder/.installed" 2> /dev/null)" ] || exit 0

rm -rf "$folder" "$folder.new"
mkdir "$folder.new"
if ! { $pip install --no-deps --target "$folder.new" -r "$packages" && $pip download --no-deps --dest "$folder.new/wheel" "$speedscope"; } > build/export-peers.log 2>&1; then
	tail -2 build/export-peers.log >&2
	rm -rf "$folder.new"
	[ -n "$optional" ] || { echo "the readers of exports cannot be had for $(${PYTHON:-python3} -V) from where pip looks" >&2; exit 1; }
	echo "The readers of exports (HTA, TensorBoard's plugin, Perfetto, speedscope, DuckDB, Jupyter) cannot be downloaded here: their tests are skipped"
	exit 0
fi
"${PYTHON:-python3}" tests/support/speedscope_of_wheel.py "$folder.new/wheel" "$folder.new/speedscope"
rm -rf "$folder.new/wheel"
echo "$wanted" > "$folder.new/.installed"
mv "$folder.new" "$folder"
