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


@case
def the_cost_of_recording_is_measured_and_leaves_no_event(folder):
    code = "import torch\nx = torch.ones(4)\nfor _ in range(100): x + x"
    traced(folder, sys.executable, "-c", code, timeout=300)
    cost = int(info(folder / "trace.bin")["rows"][0]["meta"]["cost.event_ns"])
    assert 5 <= cost <= 5000, cost
    assert names(folder / "trace.bin").count("aten::add") == 100 and "aten::detach" not in names(folder / "trace.bin")
    screen = report("summary", folder / "trace.bin", "--width", "200").stdout.decode()
    assert "%d ns an event, as measured at the program's end" % cost in screen, screen


# Prints the least time of the thread in one of 300 steps, which other programs on the machine hardly change.
TINY = textwrap.dedent("""
    import time, torch
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()) for _ in range(10)])
    optimizer, x, took = torch.optim.AdamW(model.parameters()), torch.randn(4, 16), []
    for _ in range(300):
        begin = time.thread_time_ns()
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        took.append(time.thread_time_ns() - begin)
    print(min(took))
""")


@case
def the_cost_that_is_told_is_what_a_step_takes_longer(folder):
    """The measured overhead and the estimate together, for each step, against the time that the least step takes longer."""
    plain, under = [], []
    for number in range(9): # in turns; the processor's speed changes while other programs run
        plain.append(int(run(folder, sys.executable, "-c", TINY, check=0, timeout=300).stdout))
        under.append(int(traced(folder, sys.executable, "-c", TINY, timeout=300).stdout))
        added = 300 * (min(under) - min(plain))
        rows = info(folder / "trace.bin")["rows"][0]
        told = rows["recorded"] * int(rows["meta"]["cost.event_ns"])
        if number >= 2 and told / 3 < added < told * 3:
            break
    assert added > 0 and told / 3 < added < told * 3, (added, told, plain, under)


@case
def what_is_not_known_of_CPU_tensors_is_said(folder):
    traced(folder, sys.executable, "-c", "import torch\nx = torch.ones(4) + 1", timeout=300)
    screen = report("summary", folder / "trace.bin", "--width", "200").stdout.decode()
    assert "torch_memory on (no GPU tensor; CPU tensors are not recorded)" in screen, screen


@case
def the_programs_own_modes_of_PyTorch_see_nothing_of_ours(folder):
    code = "import atexit, torch\nfrom torch.utils._python_dispatch import TorchDispatchMode\n" \
           "class Mode(TorchDispatchMode):\n    def __torch_dispatch__(self, f, types, args=(), kwargs=None):\n" \
           "        print(f)\n        return f(*args, **(kwargs or {}))\n" \
           "mode = Mode()\nmode.__enter__()\ntorch.ones(2) + 1"
    plain = run(folder, sys.executable, "-c", code, check=None, timeout=300)
    under = traced(folder, sys.executable, "-c", code, check=None, timeout=300)
    assert (plain.returncode, plain.stdout, plain.stderr) == (under.returncode, under.stdout, under.stderr), (plain, under)


main()
