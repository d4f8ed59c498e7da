#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch programs that run out of memory on the simulated device and are killed right afterwards:
the report names the cause, with its figures, and the program's own lines."""
import json, signal
from device import *

SCRIPT = ROOT / "tests" / "torch" / "ooms.py"
MB = 1 << 20


def exhausted(folder, way, memory=1500, others=0):
    env = {"SIM_MEM": str(memory * MB), "SIM_OTHER": str(others * MB)}
    result = launch(traced, folder / way, SCRIPT, way, env=env, check=None)
    assert result.returncode == -signal.SIGKILL, result.stderr[-900:]
    return folder / way / "trace.bin"


def line_of(part):
    return next(i for i, line in enumerate(SCRIPT.read_text().splitlines(), 1) if part in line)


def last_oom(trace):
    return json.loads(report("memory", trace, "-f", "json").stdout)["totals"]["ooms"][-1]


def screen(trace):
    return " ".join(report(trace).stdout.decode().split())


@case
def five_programs_have_five_causes(folder):
    texts = {
        "large": ("too_large", "too large: 4.29 GB were requested, and the GPU has 1.57 GB"),
        "limit": ("limit", "a limit of PyTorch's allocator: it made no call of CUDA, and "),
        "others": ("others", "other processes: 7.86 GB of the GPU's 8.59 GB were neither free nor allocated by this process"),
        "fragmentation": ("fragmentation", "fragmentation: "),
        "leak": ("leak", "growth: each step left 20.97 MB of tensors, "),
    }
    for way, (cause, text) in texts.items():
        trace = exhausted(folder, way, *((8192, 7500) if way == "others" else ()))
        oom, shown = last_oom(trace), screen(trace)
        assert oom["cause"] == cause, (way, oom)
        assert "OOM out of memory on GPU 0 after " in shown and " cause " + text in shown, (way, shown)
        assert text in " ".join(report("diagnose", trace).stdout.decode().split("2. ")[0].split()), way
        assert (oom["failed_calls"] == 0) == (way == "limit"), (way, oom)


@case
def fragmentation_has_its_gaps_and_lines(folder):
    trace = exhausted(folder, "fragmentation")
    oom = last_oom(trace)
    assert oom["gap_bytes"] == oom["reserved_bytes"] - oom["allocated_bytes"] and oom["gaps"] > 50, oom
    assert oom["largest_gap_bytes"] < oom["asked_bytes"] < oom["gap_bytes"], oom
    shown = report("memory", trace, "--width", "160").stdout.decode()
    assert "ooms.py:%d fragmentation" % line_of("# kept") in shown, shown


@case
def a_request_that_is_too_large_has_its_line(folder):
    trace = exhausted(folder, "large")
    (record,) = dump(trace, {"oom"})
    assert [(f["line"], f["function"]) for f in record["python_stack"]] == [(line_of("def take") + 1, "take")], record


@case
def the_places_of_all_threads_are_known(folder):
    trace = exhausted(folder, "threads")
    oom = last_oom(trace)
    places = sorted([r["label"] for r in thread["open"]] for thread in oom["threads"])
    assert places == [["worker %d" % i, "inner"] for i in range(3)], oom
    assert [r["label"] for r in oom["open"]][0] == "train", oom
    assert "in `worker 1 / inner`" in screen(trace)


main()
