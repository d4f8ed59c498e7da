#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's reports of memory, with PyTorch itself and without a GPU: those of the CPU's, which go through the same functions."""
import re, sys
from harness import *

SCRIPTS = ROOT / "tests" / "torch"


def said(result):
    """But for times and process ids, which PyTorch's own messages have."""
    return result.stdout, re.sub(rb"\d+", b"N", result.stderr)


@case
def the_users_own_profiler_sees_the_same_memory_with_and_without_us(folder):
    bare = run(folder, sys.executable, "-W", "error", SCRIPTS / "profiles_memory.py", check=0, timeout=300)
    for env in None, {"PPERF_TENSORS": "0"}:
        under = traced(folder, sys.executable, "-W", "error", SCRIPTS / "profiles_memory.py", timeout=300, env=env)
        assert said(bare) == said(under), (bare, under)


main()
