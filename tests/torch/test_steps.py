#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The steps of unmodified programs, as the report finds them, with PyTorch itself and without a
GPU."""
import json, signal, sys, textwrap
from harness import *

COMMON = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
"""


def found(folder, code, *options, env=None, kill=False):
    """The field capture.steps, and {path: row} of steps and sections. `kill`: the program ends
    itself by SIGKILL."""
    script = folder / "program.py"
    script.write_text(COMMON + textwrap.dedent(code))
    traced(folder, sys.executable, script, env=env, timeout=300, check=-signal.SIGKILL if kill else 0)
    assert report("summary", folder / "trace.bin", "--strict", check=None).returncode in (0, 2)
    view = json.loads(report("tree", folder / "trace.bin", "-f", "json", *options).stdout)
    assert view["integrity"]["conserved"], view["integrity"]
    rows = {"/".join(r["path"]): r for r in view["rows"] if r["kind"] in ("step", "section") or not r["depth"]}
    return view["capture"]["steps"], rows


def calls_of(rows, *paths):
    return [rows.get(path, {}).get("calls", 0) for path in paths]


@case
def a_training_with_evaluation_after_each_epoch(folder):
    steps, rows = found(folder, """
        net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
        data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
        batches, loss = torch.utils.data.DataLoader(data, batch_size=8), nn.CrossEntropyLoss()
        optimizer = torch.optim.AdamW(net.parameters())
        for epoch in range(3):
            for x, y in batches:
                optimizer.zero_grad()
                loss(net(x), y).backward()
                optimizer.step()
            with torch.no_grad():
                [loss(net(x), y).item() for x, y in batches]
    """)
    assert (steps["count"], steps["evidence"], steps["confidence"], steps["unfinished"]) == (24, "optimizer.step", "high", 0), steps
    usual, warm = calls_of(rows, "step", "step (warm-up)")
    assert usual == 24 - steps["warmup"] and warm == steps["warmup"], rows
    before, between, after = calls_of(rows, "(before first step)", "(between steps)", "(after last step)")
    # The evaluations, and pauses of the machine, which are no part of a step.
    assert before == after == 1 and between >= 2, rows
    assert set(rows) <= {"step", "step (warm-up)", "(before first step)", "(between steps)", "(after last step)"}, set(rows)


@case
def a_step_of_two_optimizers(folder):
    steps, rows = found(folder, """
        G, D = nn.Linear(4, 8), nn.Linear(8, 1)
        for_G, for_D = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(10):
            for_D.zero_grad()
            (D(torch.randn(4, 8)) - D(G(torch.randn(4, 4)).detach())).mean().backward()
            for_D.step()
            for_G.zero_grad()
            D(G(torch.randn(4, 4))).mean().backward()
            for_G.step()
    """)
    assert (steps["count"], steps["confidence"]) == (10, "high"), steps


@case
def accumulated_gradients_and_ranges_around(folder):
    steps, rows = found(folder, """
        net = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        with torch.profiler.record_function("train"):
            for i in range(24):
                with torch.profiler.record_function("forward"):
                    loss = net(torch.randn(4, 4)).mean()
                loss.backward()
                if i % 4 == 3:
                    optimizer.step()
                    optimizer.zero_grad()
    """)
    assert steps["count"] == 6, steps
    assert sum(calls_of(rows, "train/step", "train/step (warm-up)")) == 6, rows
    assert "step" not in rows and rows["train"]["calls"] == 1, rows


@case
def calls_of_a_model(folder):
    steps, rows = found(folder, """
        net = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        with torch.inference_mode():
            for _ in range(12):
                net(torch.randn(4, 64)).sum().item()
    """)
    assert (steps["count"], steps["evidence"], steps["confidence"]) == (12, "calls of the outermost module", "medium"), steps


@case
def a_model_that_several_threads_call(folder):
    """Each thread has steps of its own. What the threads do between calls, and what the main thread does,
    is in no step."""
    steps, rows = found(folder, """
        import threading

        net = nn.Sequential(nn.Linear(64, 64), nn.ReLU()).eval()

        def serve(count):
            with torch.inference_mode():
                for _ in range(count):
                    net(torch.ones(4, 64)).argmax()

        threads = [threading.Thread(target=serve, args=[count]) for count in (12, 20)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    assert (steps["count"], steps["confidence"], len(steps["threads"])) == (32, "medium", 2), steps
    assert sorted(thread["count"] for thread in steps["threads"]) == [12, 20], steps
    assert set(rows) <= {"step", "step (warm-up)", "(before first step)", "(between steps)", "(after last step)",
                         "(threads without steps)"}, set(rows)
    assert sum(calls_of(rows, "step", "step (warm-up)")) == 32, rows
    view = json.loads(report("table", folder / "trace.bin", "--by", "step", "-f", "json").stdout)
    whole = json.loads(report("table", folder / "trace.bin", "--by", "thread", "-f", "json").stdout)
    assert sum(r["cpu_self_ns"] for r in view["rows"]) == sum(r["cpu_self_ns"] for r in whole["rows"]), view["rows"]


@case
def a_program_that_is_killed_in_a_step(folder):
    steps, rows = found(folder, """
        import os, signal

        net = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(8):
            optimizer.zero_grad()
            net(torch.randn(4, 4)).mean().backward()
            if i == 7:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step()
    """, kill=True)
    assert (steps["count"], steps["unfinished"]) == (8, 1), steps
    assert calls_of(rows, "step (unfinished)") == [1], rows


@case
def steps_that_the_program_names(folder):
    code = """
        for i in range(5):
            with torch.profiler.record_function(f"lap {i}"):
                (torch.randn(8, 8) @ torch.randn(8, 8)).sum().item()
    """
    steps, rows = found(folder, code, env={"PPERF_STEP_MARKER": "lap"})
    assert (steps["count"], steps["own_ranges"], steps["evidence"]) == (5, True, "ranges like `lap 0`"), steps
    assert calls_of(rows, "lap *", "(between steps)", "step") == [5, 4, 0], rows
    steps, rows = found(folder, code, "--step-marker", "lap")
    assert steps["count"] == 5, steps
    steps, rows = found(folder, code)
    assert (steps["count"], steps["confidence"]) == (0, "none"), steps


main()
