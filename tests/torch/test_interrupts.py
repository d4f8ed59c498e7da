#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exceptions raised by a program's signal handlers reach the program, also where Python runs the
handler in pperf's own code: none is lost or printed, and no range stays open."""
import sys, textwrap
from harness import *

# Only the program's thread: Python may handle a signal late if another thread receives it
# (libpperf(7), NOTES).
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

# In a loop that creates a module, calls it once and frees it, most of the time is spent in pperf.
PROGRAM = """
    import signal, sys, time, torch, torch.nn as nn
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Identity()
        def forward(self, x):
            return self.inner(x)
    class Late(Exception):
        pass
    kind, raised, came = %s, 0, 0
    def handler(*_):
        global raised
        raised += 1
        raise kind(raised)
    def until_interrupted():
        global came
        end = time.monotonic() + 20
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * (50 + 37 * raised %% 700))
            while time.monotonic() < end:
                for _ in range(10):
                    Block()(0)
        except kind as error:
            assert error.args == (raised,), (error.args, raised)
            files, at = [], error.__traceback__
            while at:
                files.append(at.tb_frame.f_code.co_filename)
                at = at.tb_next
            assert "<pperf>" not in files and files[-1] == "<string>", files
            came += 1
    signal.signal(signal.SIGALRM, handler)
    for turn in range(400):
        until_interrupted()
        assert came == raised == turn + 1, (came, raised, turn)
"""


def interrupted(folder, code):
    result = traced(folder, sys.executable, "-c", code, env=ALONE, timeout=300)
    assert result.stdout == result.stderr == b"", result.stderr.decode()[-2000:]
    records = dump(folder / "trace.bin", {"push", "pop"})
    opened, closed = (sum(r["kind"] == kind for r in records) for kind in ("push", "pop"))
    assert opened == closed > 400 and info(folder / "trace.bin")["integrity"]["complete"], (opened, closed)


@case
def an_exception_of_a_handler_comes_where_the_program_goes_on(folder):
    interrupted(folder, textwrap.dedent(PROGRAM % "Late"))


@case
def exit_in_a_handler_reaches_the_program(folder):
    interrupted(folder, textwrap.dedent(PROGRAM % "SystemExit"))


@case
def an_interrupted_notebook_goes_on(folder):
    interrupted(folder, textwrap.dedent(PROGRAM % "KeyboardInterrupt"))


@case
def ctrl_c_is_never_lost(folder):
    """The exception is raised by Python's default handler."""
    code = textwrap.dedent(PROGRAM % "KeyboardInterrupt")
    for old, new in (("signal.signal(signal.SIGALRM, handler)", "import _thread; signal.signal(signal.SIGALRM, lambda *_: _thread.interrupt_main())"),
                     ("assert error.args == (raised,), (error.args, raised)", "raised += 1"), ("    global came", "    global came, raised"),
                     (' and files[-1] == "<string>"', "")):
        assert old in code
        code = code.replace(old, new)
    interrupted(folder, code)


main()
