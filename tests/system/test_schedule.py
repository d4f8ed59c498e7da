#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PPERF_SCHEDULE with programs that mark their steps, on the simulated device. A recording window
has what a whole trace has of its steps. Memory is tracked throughout. Skipped events are counted
and cost next to nothing in the file."""
import json, os, signal
from harness import *

PLAN = "wait:2,warmup:1,active:3,repeat:1"


def simulated(name):
    path = BUILD / "cudasim" / "13" / name
    if not path.exists():
        raise Skip("the simulated device is not built (no %s)" % path)
    return str(path)


def train(folder, steps, plan=None, check=0, **env):
    for path in traces(folder):
        path.unlink()
    settings = {"PPERF_STEP_MARKER": "step", **({"PPERF_SCHEDULE": plan} if plan else {}), **env}
    return traced(folder, simulated("demo_train"), steps, env=settings, check=check)


def tree(path, *arguments):
    return json.loads(report("tree", path, "-f", "json", "--strict", *arguments).stdout)


COUNTED = ("calls", "gpu_calls", "bytes", "alloc_bytes", "reserved_delta_bytes", "reserved_peak_bytes", "allocs", "frees")


def figures(path, *arguments):
    """The metrics that do not depend on time, by path, in steps."""
    return {"/".join(r["path"]): [r.get(k) for k in COUNTED] for r in tree(path, *arguments)["rows"] if "step: *" in r["path"]}


@case
def a_window_has_exactly_what_its_steps_did(folder):
    train(folder, 10)
    whole, levels = figures(folder / "trace.bin", "--steps", "3-5"), tree(folder / "trace.bin")["totals"]
    train(folder, 10, PLAN)
    part = tree(folder / "trace.bin")
    assert figures(folder / "trace.bin", "--steps", "3-5") == figures(folder / "trace.bin") == whole and len(whole) > 30
    assert part["capture"]["window"]["recorded"][0]["first_step"] == 2 and part["capture"]["window"]["recorded"][0]["steps"] == 4
    assert part["capture"]["window"]["steps"] == 10 and part["capture"]["steps"] == {**part["capture"]["steps"], "count": 4, "warmup": 1, "unfinished": 0}
    assert part["integrity"]["missing_records"] == part["integrity"]["unattributed"] == part["integrity"]["unknown_frees"] == 0, part["integrity"]
    skipped = part["capture"]["window"]["skipped"]
    assert skipped["ranges"] > 500 and skipped["calls"] > 200 and skipped["gpu"] > 200, skipped
    assert part["totals"]["reserved_peak_bytes"] == levels["reserved_peak_bytes"]
    step = next(r for r in part["rows"] if r["name"].startswith("step"))
    assert step["calls"] == 3, step
    assert part["totals"]["wall_ns"] < part["capture"]["duration_ns"]


@case
def the_first_screen_says_what_was_recorded_and_what_the_rest_cost(folder):
    train(folder, 10, PLAN)
    screen = report(folder / "trace.bin", "--width", "200").stdout.decode()
    assert "window    steps 2-5 of 10 recorded, " in screen and "(PPERF_SCHEDULE=%s)" % PLAN in screen, screen
    assert "seen but not recorded: " in screen and " range starts and ends, " in screen and "; estimated cost about " in screen, screen
    assert "losses    none" in screen, screen
    edges = [(r["action"], r["value"]) for r in dump(folder / "trace.bin", {"window"})]
    assert edges == [("begins", 2), ("step", 3), ("step", 4), ("step", 5), ("ends", 6)], edges
    train(folder, 30, "wait:4,warmup:1,active:2")
    assert "steps 4-6, 11-13, 18-20, 25-27 of 30 recorded" in report(folder / "trace.bin", "--width", "200").stdout.decode()


@case
def the_program_does_what_it_does_without_it(folder):
    bare = run(folder, simulated("demo_train"), 9, check=0)
    under = train(folder, 9, PLAN)
    assert (bare.stdout, bare.stderr) == (under.stdout, under.stderr), under


@case
def a_trace_grows_with_its_windows_not_with_the_program(folder):
    train(folder, 20, PLAN)
    short = (folder / "trace.bin").stat().st_size
    train(folder, 500, PLAN)
    long = (folder / "trace.bin").stat().st_size
    calls = {k: len(dump(folder / "trace.bin", {k})) for k in ("launch", "kernel", "push", "alloc", "free")}
    # allocations and frees of CUDA memory are recorded with their nodes, and nothing else
    assert long < short + 480 * (80 * 8 + 100), (long, short)
    train(folder, 20, PLAN)
    assert all(len(dump(folder / "trace.bin", {k})) == calls[k] for k in ("launch", "kernel", "push")), calls
    train(folder, 500)
    assert long < (folder / "trace.bin").stat().st_size / 8, ((folder / "trace.bin").stat().st_size, long)


@case
def a_wrong_schedule_is_said_and_all_is_recorded(folder):
    for wrong in "wait:1", "active:3,wait", "3", "active:0":
        train(folder, 4, wrong)
        warning = info(folder / "trace.bin")["rows"][0]["meta"]["warning.settings"]
        assert warning.startswith("PPERF_SCHEDULE=%s is not valid (such as wait:1," % wrong), warning
        assert len([n for n in names(folder / "trace.bin") if n.startswith("step")]) == 4
        assert "window" not in tree(folder / "trace.bin")["capture"]


@case
def what_was_passed_outlives_a_kill(folder):
    traced(folder, "ending", "kill", env={"PPERF_SCHEDULE": "skip_first:9,active:1", "PPERF_STEP_MARKER": "none"}, check=-signal.SIGKILL)
    window = tree(folder / "trace.bin")["capture"]["window"]
    assert window["recorded"] == [] and window["skipped"]["others"] > 1800, window
    assert names(folder / "trace.bin") == []


@case
def a_program_without_steps_records_none(folder):
    traced(folder, "ranges", 2, 1000, env={"PPERF_SCHEDULE": "wait:1,active:1"})
    assert names(folder / "trace.bin") == []
    assert "window    no step of 0 recorded" in report(folder / "trace.bin").stdout.decode()
    traced(folder, "ranges", 2, 1000, env={"PPERF_SCHEDULE": "active:1"})
    assert len(names(folder / "trace.bin")) == 2000


@case
def a_schedule_may_begin_with_the_program(folder):
    train(folder, 8, "warmup:1,active:2,repeat:1")
    part = tree(folder / "trace.bin")
    assert [(w["first_step"], w["steps"], w["warmup"]) for w in part["capture"]["window"]["recorded"]] == [(0, 3, 1)]
    assert next(r for r in part["rows"] if r["name"].startswith("step"))["calls"] == 2
    assert part["integrity"]["missing_records"] == 0


main()
