#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How a PyTorch program ends under the library."""
import sys, textwrap
from harness import *

# A stand-in for PyTorch's autograd thread, which is known by its name. It computes without the GIL while the main thread ends, and requests the GIL
# later. Once Python's finalization has begun, CPython ends such a thread; the frames of PyTorch then abort the process.
LATE = textwrap.dedent("""
    import ctypes, hashlib, os, sys, threading, torch
    def free_the_graph():
        ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
        running.set()
        hashlib.pbkdf2_hmac("sha256", b"", b"", int(sys.argv[2]))
        os.write(1, b"has the GIL")
    running = threading.Event()
    torch.ones(1) + 1
    threading.Thread(target=free_the_graph, daemon=True).start()
    running.wait()
""")
SHORT, LONG = "20000", "3000000"  # about 15 ms, and 2 s


@case
def an_autograd_thread_gets_the_GIL_before_Python_ends(folder):
    assert traced(folder, sys.executable, "-c", LATE, "pt_autograd_0", SHORT, timeout=300).stdout == b"has the GIL"


@case
def the_end_waits_neither_for_other_threads_nor_for_ever(folder):
    """As without the library: these threads never get the GIL again."""
    for name, amount in ("other", LONG), ("pt_autograd_0", LONG):
        assert traced(folder, sys.executable, "-c", LATE, name, amount, timeout=300).stdout == b"", name


@case
def a_program_whose_autograd_threads_idle_ends_as_without_us(folder):
    code = "import torch\nx = torch.ones(4, requires_grad=True)\nfor _ in range(3): (x * x).sum().backward()\nprint(x.grad)"
    plain = run(folder, sys.executable, "-c", code, check=0, timeout=300)
    under = traced(folder, sys.executable, "-c", code, timeout=300)
    assert (plain.stdout, plain.stderr) == (under.stdout, under.stderr), (plain, under)


main()
