#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's memory reports, with PyTorch itself and without a GPU: those for the CPU, which use the
same functions."""
import re, sys
from harness import *

SCRIPTS = ROOT / "tests" / "torch"


def said(result):
    """A message without times and process ids, which PyTorch's messages contain."""
    return result.stdout, re.sub(rb"\d+", b"N", result.stderr)


@case
def the_users_own_profiler_sees_the_same_memory_with_and_without_us(folder):
    bare = run(folder, sys.executable, "-W", "error", SCRIPTS / "profiles_memory.py", check=0, timeout=300)
    for env in None, {"PPERF_TENSORS": "0"}:
        under = traced(folder, sys.executable, "-W", "error", SCRIPTS / "profiles_memory.py", timeout=300, env=env)
        assert said(bare) == said(under), (bare, under)


@case
def how_the_allocator_is_configured_is_in_the_trace(folder):
    script = "import os, sys\nif len(sys.argv) > 1: os.environ['PYTORCH_CUDA_ALLOC_CONF'] = sys.argv[1]\nimport torch\ntorch.ones(2) + 1"
    for given, set_in_python, state in (("expandable_segments:True", None, "on"), (None, "max_split_size_mb:64", "on"),
                                        ("max_split_size_mb:32", "backend:cudaMallocAsync", "partial: the backend cudaMallocAsync")):
        env = {"PYTORCH_CUDA_ALLOC_CONF": given, "PYTORCH_ALLOC_CONF": None}
        traced(folder, sys.executable, "-c", script, *[a for a in [set_in_python] if a], env=env, timeout=300)
        meta = info(folder / "trace.bin")["rows"][0]["meta"]
        assert meta["torch.allocator"] == (set_in_python or given) and meta["source.torch_memory"].startswith(state), meta
        (folder / "trace.bin").unlink()


main()
