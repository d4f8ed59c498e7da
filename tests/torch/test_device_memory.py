#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory that grows from step to step, by PyTorch on the simulated device: what grows is named with
its rate, call path, line and cause, and of programs that do not leak nothing is said.

Counts and bytes are the program's. Times are those of the simulated device.
"""
import os
from concurrent.futures import ThreadPoolExecutor
from device import *

SCRIPT = ROOT / "tests" / "torch" / "device_memory.py"
SCREENS = pathlib.Path(__file__).parent / "screens"
NEWEST = "torch-2.15.0"
HEALTHY = ("keeps_numbers", "is_steady", "accumulates", "evaluates_between", "caches_by_request", "warms_up", "begins_with_a_large_batch", "keeps_the_last_few",
           "has_a_spike")
VIEWS = (), ("memory",), ("steps",), ("diagnose",)


def recorded(folder, program, env=None):
    result = launch(traced, folder, SCRIPT, program, env=env, timeout=300)
    assert result.stderr == b"", result.stderr[-600:]
    return folder / "trace.bin"


def rows(trace, *arguments):
    return json.loads(report("memory", trace, "-f", "json", "-n", "0", *arguments).stdout)["rows"]


def growing(trace):
    """The rows of what grows as a whole, and of its call paths by their outermost name."""
    found = rows(trace, "--growth")
    return found[0], {row["path"][0]: row for row in found[1:]}


def shows(name, *arguments):
    """Fails unless the screen is that of screens/NAME.txt. PPERF_TEST_SCREENS=write updates it."""
    if ENVIRONMENT.name != NEWEST:
        return
    wanted, shown = SCREENS / (name + ".txt"), report(*arguments, "--width", "110").stdout.decode()
    if os.environ.get("PPERF_TEST_SCREENS") == "write":
        wanted.write_text(shown)
    assert shown == wanted.read_text(), shown


def everything_adds_up(trace):
    """Of each kind of memory: the rows of owners, and those of classes, are all that was allocated,
    freed and held."""
    owners, classes = rows(trace), rows(trace, "--by", "class", "-d", "2")
    for level in [row for row in owners if row["depth"] == 0]:
        below = [row for row in owners if row["parent"] == level["id"]]
        for key in "alloc_bytes", "free_bytes", "allocs", "frees", "held_bytes":
            assert sum(row.get(key) or 0 for row in below) == level[key], (key, level)
        after = [row for row in below if row["name"] in ("(shutdown)", "(after last step)")]
        same = [row for row in classes if row["depth"] == 0 and row["memory_kind"] == level["memory_kind"] and row["device"] == level["device"]]
        of_class = [row for row in classes if same and row["parent"] == same[0]["id"]]
        for key in "alloc_bytes", "allocs":
            assert sum(row[key] for row in of_class) == level[key] - sum(row[key] for row in after), (key, level)
        assert sum(row["held_bytes"] for row in of_class) == level["held_bytes"], (level, of_class)


@case
def losses_that_are_kept_with_their_graph(folder):
    trace = recorded(folder, "keeps_losses", env={"PPERF_PYSTACKS": "alloc"})
    whole, paths = growing(trace)
    relu, scalar = paths["Sequential"], paths["aten::mean"]
    assert (whole["growth_bytes"], whole["grown_steps"], whole["late_steps"], round(whole["p_value"], 9)) == (2 * 2**20 + 2**19 + 512, 7, 7, 2**-7), whole
    assert (relu["growth_bytes"], relu["growth_cause"], scalar["growth_bytes"], scalar["growth_cause"]) == (2**21, "graph", 512, "scalar"), paths
    line = next(number for number, text in enumerate(SCRIPT.read_text().splitlines(), 1) if "losses.append(net(x).mean())" in text)
    assert relu["line"] == scalar["line"] == "device_memory.py:%d keeps_losses" % line, paths
    for view in VIEWS:
        assert b"2.62 MB" in report(*view, trace, "--width", "110").stdout, view
    first = report(trace, "--width", "150").stdout.decode()
    assert "memory    grows 2.62 MB a step, 80 %% of it in 1 (ReLU) at device_memory.py:%d keeps_losses: outputs kept by their graph, " % line in first, first
    assert ".item() or .detach()" in report("diagnose", trace, "--width", "200").stdout.decode()
    everything_adds_up(trace)


@case
def the_screens_of_a_leak(folder):
    trace = recorded(folder, "keeps_losses_in_marked_steps", env={"PPERF_PYSTACKS": "alloc"})
    everything_adds_up(trace)
    shows("memory-growth", "memory", trace, "--growth")
    shows("memory-classes", "memory", trace, "--by", "class")


@case
def outputs_and_pinned_buffers_that_are_kept(folder):
    with ThreadPoolExecutor(2) as pool:
        outputs, pinned = pool.map(lambda name: recorded(folder / name, name), ("keeps_outputs", "pins"))
    whole, paths = growing(outputs)
    assert whole["growth_bytes"] == paths["aten::repeat"]["growth_bytes"] == 4 * 512 * 256 * 4 and whole["growth_cause"] == "program", (whole, paths)
    whole, paths = growing(pinned)
    assert (whole["memory_kind"], whole["growth_bytes"], whole["growth_cause"]) == ("pinned", 4 << 20, "pinned"), whole
    assert b"pinned memory of the host grows 4.19 MB a step" in report(pinned, "--width", "150").stdout
    assert b"cudaFreeHost" in report("diagnose", pinned).stdout
    for trace in outputs, pinned:
        everything_adds_up(trace)


@case
def programs_that_do_not_leak(folder):
    """Training, accumulation, evaluation between steps, a cache by request, warm-up, one large
    batch, a bounded history, and one large instance: nothing is said in any view."""
    with ThreadPoolExecutor(2) as pool:
        traces = list(pool.map(lambda name: recorded(folder / name, name), HEALTHY))
    for name, trace in zip(HEALTHY, traces):
        for view in VIEWS:
            shown = report(*view, trace)
            assert b"grows" not in shown.stdout + shown.stderr, (name, view, shown.stdout.decode())
        found = {row["name"]: row["kind"] for row in json.loads(report("diagnose", trace, "-f", "json").stdout)["rows"]}
        assert found["memory-growth"] == "clear", (name, found)
        assert not [row for row in rows(trace, "--growth") if row.get("growth_bytes", 0) >= 1 << 20], name
        everything_adds_up(trace)


@case
def what_python_frees_at_the_end_is_held_until_then(folder):
    """The end is that of the last step. What comes later has rows of its own."""
    trace = recorded(folder, "is_steady")
    level, *owners = [row for row in rows(trace) if row["memory_kind"] == "tensor"]
    weights = 4 * (256 * 1024 + 1024 + 1024 * 256 + 256)
    assert level["held_bytes"] >= 4 * weights, level
    after = {row["name"]: row for row in owners if row["name"].startswith("(") and "path" not in row}
    assert sum(row["free_bytes"] for row in after.values()) >= 4 * weights, after
    assert level["alloc_bytes"] == level["free_bytes"], level


main()
