#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compilations of torch.compile, with PyTorch itself and without a profiler in the program: which
function, which version, in which phases, and that the program cannot detect the recording."""
import json, sys, textwrap
from harness import *

PROGRAM = """
    import torch
    torch.manual_seed(0)
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(8, 8)
        def forward(self, x):
            return torch.relu(self.fc(x))
    @torch.compile(backend="aot_eager")
    def scale(x):
        return x * 2
    net = Net()
    compiled = torch.compile(net, backend="aot_eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(8):
        compiled(scale(torch.ones(4 if i < 5 else 6, 8))).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print([round(p.sum().item(), 3) for p in net.parameters()])
"""


def python(folder, code, check=0, env=None):
    return traced(folder, sys.executable, "-c", textwrap.dedent(code), timeout=600, check=check, env=env)


def bare(folder, code, check=0):
    return run(folder, sys.executable, "-c", textwrap.dedent(code), timeout=600, check=check)


def rows(folder):
    return json.loads(report("tree", folder / "trace.bin", "-f", "json", "--no-fold", "--min-percent", "0").stdout)["rows"]


def compilations(folder):
    """{name: calls} of the compilations."""
    found = {}
    for row in rows(folder):
        if row["name"].startswith("torch.compile "):
            name = row["name"].split(" (")[0] + "," + row["name"].split("),")[1]
            found[name] = found.get(name, 0) + row["calls"]
    return found


def findings(folder):
    return {row["name"]: row for row in json.loads(report("diagnose", folder / "trace.bin", "-f", "json").stdout)["rows"]}


@case
def compilations_have_their_function_and_version(folder):
    assert python(folder, PROGRAM).stdout == bare(folder, PROGRAM).stdout
    found = compilations(folder)
    versions = {name.split(",")[0]: set() for name in found}
    for name, calls in found.items():
        assert calls == 1, found
        versions[name.split(",")[0]].add(name.split("version ")[1])
    assert versions["torch.compile Net.forward"] == {"0", "1"} or sys.version_info < (3, 11), found
    assert versions["torch.compile scale"] == {"0", "1"}, found
    assert any("compile_inner (dynamo_timed)" in row["name"] for row in rows(folder))
    assert info(folder / "trace.bin")["rows"][0]["meta"]["source.torch_compile"] == "on"


@case
def diagnose_finds_what_compiling_costs(folder):
    python(folder, PROGRAM)
    found = findings(folder)
    again = found["recompilation"]
    assert again["kind"] == "finding" and again["impact_ns"] > 1_000_000, again
    assert "2 additional versions of 2 functions" in again["evidence"], again
    first = found["compilation"]
    assert first["kind"] == "finding" and first["impact_ns"] > again["impact_ns"], (first, again)


@case
def a_program_that_does_not_compile_is_left_alone(folder):
    code = "import sys, torch; torch.ones(3).sum(); print('torch._dynamo.convert_frame' in sys.modules, [str(getattr(f, '__name__', type(f))) for f in sys.meta_path])"
    ours = b", \"<class 'pperf.finder'>\"" # for `import pperf` (test_program_api.py)
    assert python(folder, code).stdout.replace(ours, b"") == bare(folder, code).stdout
    state = info(folder / "trace.bin")["rows"][0]["meta"].get("source.torch_compile")
    assert state is None or state == "on", state


@case
def the_compiler_runs_the_same_frames(folder):
    code = """
    import collections, sys, torch
    counts = collections.Counter()
    def trace(frame, event, argument):
        if frame.f_code.co_filename.endswith(("contextlib.py", "convert_frame.py", "_dynamo/utils.py")):
            counts[frame.f_code.co_name, event] += 1
            return trace
    @torch.compile(backend="eager", dynamic=False)
    def warm(x):
        return x + 1
    @torch.compile(backend="eager", dynamic=False)
    def f(x):
        return x * 2
    warm(torch.ones(2))
    sys.settrace(trace)
    f(torch.ones(2))
    sys.settrace(None)
    print(sorted(counts.items()))
    """
    assert python(folder, code).stdout == bare(folder, code).stdout


@case
def errors_of_the_compiler_are_the_programs(folder):
    code = """
    import torch, traceback
    def broken(graph, inputs):
        raise ValueError("boom")
    @torch.compile(backend=broken)
    def f(x):
        return x + 1
    for i in range(2):
        try:
            f(torch.ones(2))
        except Exception as error:
            print(type(error).__name__, "boom" in str(error), [entry.name for entry in traceback.extract_tb(error.__traceback__)])
        torch._dynamo.reset()
    torch._dynamo.config.suppress_errors = True
    print(f(torch.ones(2)).tolist())
    """
    assert python(folder, code).stdout == bare(folder, code).stdout
    assert info(folder / "trace.bin")["rows"][0].get("left_open", 0) == 0


@case
def phases_are_recorded_once_beside_a_profiler(folder):
    code = """
    import torch
    def f(x):
        return x * 2
    with torch.profiler.profile():
        torch.compile(f, backend="aot_eager")(torch.ones(2))
    """
    python(folder, code)
    found = [row for row in rows(folder) if row["name"] == "_compile.compile_inner (dynamo_timed)"]
    assert sum(row["calls"] for row in found) <= 1, found
    assert compilations(folder), rows(folder)


main()
