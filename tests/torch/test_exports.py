#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces written by PyTorch's own profiler, against its own results for the same run: its table of
operators, and its memory events (exports.py)."""
import re, sys
from collections import Counter, defaultdict
from types import SimpleNamespace
from harness import *
from torch_trace import facts

SCRIPT = ROOT / "tests" / "torch" / "exports.py"
WAYS = "plain", "shapes", "memory", "stack", "modules", "everything", "schedule"
NEAR_NS = 2000  # per call: both sides round to whole microseconds, each by its own rule


def ranges(path, modules):
    """Yields every range except modules, which the profiler's table lacks, at its end: name, time,
    self time, and number of children."""
    open, found = defaultdict(list), []
    for record in map(json.loads, report("dump", path, "-f", "json").stdout.splitlines()):
        if record["kind"] not in ("push", "pop") or record["name"] in modules:
            continue
        inside = open[record["tid"]]
        if record["kind"] == "push":
            around = inside[-1] if inside else None
            inside.append(SimpleNamespace(node=record["node"], name=re.sub(r"^(ProfilerStep)#\d+$", r"\1*", record["name"]), around=around, children=0, below=0))
            if around:
                around.children += 1
        else:
            ended = next(range for range in reversed(inside) if range.node == record["node"])
            inside.remove(ended)
            ended.total, ended.self = record["duration_ns"], record["duration_ns"] - ended.below
            if ended.around:
                ended.around.below += ended.total
            found.append(ended)
    return found


def table(found):
    """{name: calls, time and self time}. A call that is the only content of one with the same name
    is no call of its own there."""
    sums = defaultdict(lambda: [0, 0, 0])
    for range in found:
        alone = range.around and range.around.name == range.name and range.around.children == 1
        for i, value in enumerate((0 if alone else 1, 0 if alone else range.total, range.self)):
            sums[range.name][i] += value
    return dict(sums)


def memory_is_what_the_profiler_was_told(path, taken):
    said = facts(path).get("import.cpu_memory")
    assert (list(map(int, re.findall(r"\d+", said)))[:4] if said else [0] * 4) == taken, (said, taken)


def check(path):
    truth = json.loads(path.with_suffix(".truth").read_text())
    tree = json.loads(report("tree", path, "-f", "json", "--no-fold", "--no-steps").stdout)
    found = ranges(path, {row["name"] for row in tree["rows"] if row["kind"] == "module"})
    have, wanted = table(found), truth["rows"]
    assert wanted and tree["integrity"]["complete"] and set(have) == set(wanted), (path.name, set(have) ^ set(wanted))
    calls = Counter(range.name for range in found)
    assert calls == {name: truth["calls"].get(name) or sum(n for of, n in truth["calls"].items() if of.startswith("ProfilerStep#")) for name in wanted}, path.name
    if truth["exact"]:  # self times of ranges that call Python may exclude Python functions, which have no row (2.15, not 2.9)
        less = {name for name in wanted if truth["python"] and have[name][:2] == wanted[name][:2] and have[name][2] > wanted[name][2]}
        assert all(have[name] == wanted[name] or name in less for name in wanted), (path.name, [(name, have[name], wanted[name]) for name in wanted if have[name] != wanted[name]][:4])
    far = {name: (have[name], row) for name, row in wanted.items() if have[name][0] == row[0] and abs(have[name][1] - row[1]) > NEAR_NS * row[0]}
    assert not far, (path.name, far)
    memory_is_what_the_profiler_was_told(path, truth["memory"])


@case
def operators_and_memory_are_those_of_the_profilers_own_table(folder):
    run(folder, sys.executable, SCRIPT, folder, check=0, timeout=300, env={"OMP_NUM_THREADS": "1"})
    for way in WAYS:
        check(folder / (way + ".json"))


main()
