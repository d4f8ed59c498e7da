#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NVTX 2 in NVIDIA's own libnvToolsExt.so.1, which came with PyTorch's packages. Each call is
counted once, whichever way it is made."""
import sys
from collections import Counter
from harness import *

NVTX2 = next((pathlib.Path(p) for p in sys.path if (pathlib.Path(p) / "nvidia" / "nvtx").is_dir()), pathlib.Path("/nonexistent")) / "nvidia" / "nvtx"


def need_nvtx2():
    if not NVTX2.is_dir():
        raise Skip("there is no libnvToolsExt in this environment")


def counted(path):
    return Counter((r["kind"], r.get("name")) for r in dump(path, {"push", "pop", "mark", "start", "end"}))


@case
def a_program_linked_with_it_is_recorded_once(folder):
    need_nvtx2()
    library = NVTX2 / "lib"
    run(folder, "cc", "-D_GNU_SOURCE", "-isystem", NVTX2 / "include", "-o", "calls", ROOT / "tests/torch/calls_v2.c", library / "libnvToolsExt.so.1",
        "-Wl,-rpath,%s" % library, check=0)
    traced(folder, folder / "calls")
    assert counted(folder / "trace.bin") == {(kind, name): 100 for kind, name in (
        ("push", "outer"), ("pop", "outer"), ("push", "inner"), ("pop", "inner"), ("mark", "mark"), ("push", "in a domain"),
        ("pop", "in a domain"), ("start", "started"), ("end", "started"))}, counted(folder / "trace.bin")


@case
def a_program_that_looks_its_functions_up_is_recorded_once(folder):
    need_nvtx2()
    code = "import ctypes\nlibrary = ctypes.CDLL(%r)\nfor i in range(50):\n    assert library.nvtxRangePushA(b'looked up') == 0\n" \
           "    assert library.nvtxRangePop() == 0" % str(NVTX2 / "lib" / "libnvToolsExt.so.1")
    traced(folder, sys.executable, "-c", code)
    assert counted(folder / "trace.bin") == {("push", "looked up"): 50, ("pop", "looked up"): 50}, counted(folder / "trace.bin")


main()
