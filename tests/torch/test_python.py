#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The nvtx package and PyTorch, both as they come from PyPI, under the library and without a GPU."""
import importlib.util, sys
from exact_times import compare
from harness import *

SCRIPTS = ROOT / "tests" / "torch"


def python(folder, script, *arguments, **options):
    """Runs Python under the library with its recording of PyTorch switched off."""
    return traced(folder, sys.executable, SCRIPTS / script, *arguments, timeout=300, env={"PPERF_OPS": "off", "PPERF_MODULES": "0"}, **options)


@case
def the_nvtx_package_is_recorded_call_by_call(folder):
    if not importlib.util.find_spec("nvtx"):
        raise Skip("there is no nvtx package in this environment")
    python(folder, "calls_nvtx_package.py", "expected")
    compare(folder / "expected", folder / "trace.bin", kinds={"push", "pop", "start", "end", "mark"})


@case
def torch_cuda_nvtx_is_recorded_call_by_call(folder):
    python(folder, "calls_torch.py", "expected")
    compare(folder / "expected", folder / "trace.bin", kinds={"push", "pop", "start", "end", "mark"})


@case
def operators_that_PyTorch_annotates_itself_stand_inside_the_steps(folder):
    count = int(python(folder, "calls_emit_nvtx.py").stdout)
    found = names(folder / "trace.bin")
    operators = [n.split(",")[0] for n in found]
    assert operators.count("step") == count and operators.count("aten::linear") == count, sorted(set(operators))
    assert operators.count("AddmmBackward0") >= count, sorted(set(operators))


@case
def a_torch_program_behaves_as_without_us(folder):
    code = "import torch, os, threading; x = torch.randn(64, 64, generator=torch.Generator().manual_seed(1)); print((x @ x).sum().item(), " \
           "torch.cuda.is_available(), threading.active_count())"
    plain = run(folder, sys.executable, "-W", "error", "-c", code, check=0, timeout=300)
    under = traced(folder, sys.executable, "-W", "error", "-c", code, timeout=300)
    assert (plain.stdout, plain.stderr) == (under.stdout, under.stderr), (plain, under)


@case
def data_loader_workers_neither_hang_nor_litter(folder):
    code = "import torch\nfrom torch.utils.data import DataLoader\n" \
           "for batch in DataLoader(range(64), num_workers=2, batch_size=8):\n    torch.cuda.nvtx.mark('batch')"
    traced(folder, sys.executable, "-c", code, timeout=300)
    assert names(folder / "trace.bin", "mark") == ["batch"] * 8
    assert [t.name for t in traces(folder)] == ["trace.bin"], traces(folder)


main()
