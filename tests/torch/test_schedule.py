#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PPERF_SCHEDULE with PyTorch itself and unmarked programs. A recording window has the events of
its steps and no others, PyTorch does not call pperf outside of it, and the program cannot detect
it."""
import collections, json, re, sys, textwrap
from harness import *

TRAIN = """
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(net.parameters())
    for i in range(12):
        optimizer.zero_grad()
        for _ in range(i):              # each step has a number of operators of its own
            torch.ones(3).cosh_()
        loss = net(torch.randn(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
    print(float(loss.detach()))
"""
INFER = """
    import torch
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    with torch.no_grad():
        for i in range(10):
            for _ in range(i):
                torch.ones(3).cosh_()
            net(torch.ones(1, 8))
"""
LOADER = """
    import torch
    torch.set_num_threads(1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12, 8)))
    net, other = torch.nn.Linear(8, 1), torch.nn.Linear(8, 1)
    first, second = torch.optim.SGD(net.parameters(), lr=0.001), torch.optim.SGD(other.parameters(), lr=0.001)
    for i, (x,) in enumerate(data):
        for optimizer, model in (first, net), (second, other):
            optimizer.zero_grad()
            for _ in range(i):
                torch.ones(3).cosh_()
            model(x).sum().backward()
            optimizer.step()
"""


def python(folder, code, plan, check=0, **env):
    return traced(folder, sys.executable, "-W", "error", "-c", textwrap.dedent(code), timeout=300, env={"PPERF_SCHEDULE": plan, **env}, check=check)


def count(folder):
    return collections.Counter(names(folder / "trace.bin"))


def capture(folder):
    tree = json.loads(report("tree", folder / "trace.bin", "-f", "json", "--strict").stdout)
    return tree["capture"], tree["rows"]


@case
def a_window_has_the_operators_of_its_steps_and_no_others(folder):
    python(folder, TRAIN, "wait:3,warmup:1,active:3,repeat:1")
    calls = count(folder)
    assert calls["aten::cosh_"] == 3 + 4 + 5 + 6 and calls["aten::addmm"] == 8 and calls["Sequential"] == 4, calls
    assert calls["Optimizer.step#AdamW.step"] == calls["Optimizer.zero_grad#AdamW.zero_grad"] == calls["AddmmBackward0"] / 2 == 4
    said, rows = capture(folder)
    assert said["window"]["steps"] == 12 and said["window"]["recorded"][0] == {**said["window"]["recorded"][0], "first_step": 3, "steps": 4, "warmup": 1, "ended": True}
    assert (said["steps"]["count"], said["steps"]["warmup"]) == (4, 1), said["steps"]
    steps = {r["name"]: r["calls"] for r in rows if r["kind"] == "step"}
    assert steps == {"step": 3, "step (warm-up)": 1}, steps
    assert sum(r["calls"] for r in rows if r["name"] == "aten::cosh_" and r["path"][0] == "step") == 4 + 5 + 6
    # operators of the other steps were not observed at all: only modules and the optimizer are left
    assert said["window"]["skipped"]["ranges"] < 8 * 2 * (4 + 2) + 60, said["window"]
    assert json.loads(report("info", folder / "trace.bin", "-f", "json").stdout)["rows"][0]["meta"].get("torch.unlinked") is None


@case
def windows_come_again(folder):
    python(folder, TRAIN, "wait:2,active:1")
    assert count(folder)["aten::cosh_"] == 2 + 5 + 8 + 11
    assert [w["first_step"] for w in capture(folder)[0]["window"]["recorded"]] == [2, 5, 8, 11]
    screen = report(folder / "trace.bin", "--width", "160").stdout.decode()
    assert "window    steps 2, 5, 8, 11 of 12 recorded" in screen, screen


@case
def calls_of_a_model_are_steps_without_gradients(folder):
    python(folder, INFER, "wait:4,active:2,repeat:1")
    calls = count(folder)
    # a step is a call and everything until the next one
    assert calls["Sequential"] == 2 and calls["aten::cosh_"] == 5 + 6, calls
    assert capture(folder)[0]["window"]["recorded"][0]["first_step"] == 4


@case
def with_several_optimizers_a_step_is_a_batch(folder):
    python(folder, LOADER, "wait:5,active:2,repeat:1")
    calls = count(folder)
    assert calls["aten::cosh_"] == 2 * (5 + 6) and calls["Optimizer.step#SGD.step"] == 4, calls
    assert calls["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 2
    assert capture(folder)[0]["window"]["recorded"][0]["steps"] == 2


@case
def counted_operators_are_counted_in_the_window_only(folder):
    python(folder, TRAIN, "wait:3,active:3,repeat:1", PPERF_OPS="totals")
    _, rows = capture(folder)
    assert sum(r["calls"] for r in rows if r["name"] == "aten::cosh_") == 3 + 4 + 5
    assert sum(r["calls"] for r in rows if r["name"] == "aten::addmm") == 6


@case
def the_program_cannot_tell(folder):
    for code in TRAIN, LOADER:
        bare = run(folder, sys.executable, "-W", "error", "-c", textwrap.dedent(code), timeout=300, check=0)
        under = python(folder, code, "wait:1,active:1")
        said = [re.sub(rb"/tmp\w{8}\b", b"/*", result.stderr) for result in (bare, under)] # 2.5 removes a folder only at exit, and Python warns
        assert bare.stdout == under.stdout and said[0] == said[1], (bare, under)


main()
