#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The trace of models in training, against PyTorch's own results for the same steps:
named_modules() and torch.profiler (truth.py)."""
import statistics, sys
from collections import Counter, defaultdict
from types import SimpleNamespace
from harness import *
from torch_trace import *

SCRIPT = ROOT / "tests" / "torch" / "truth.py"
SHORT_NS = 50000  # shorter times are not compared: both tools add their own cost
NEAR = 0.05
EACH_NS = 500 # the part of either tool's own cost that may be in the outer range
ACCUMULATES = "torch::autograd::AccumulateGrad"


def ranges(trace):
    """The ranges inside "window", in order: node, time, time without children that PyTorch's
    profiler sees too, and the open modules."""
    found, open, inside = [], [], False
    for record in trace.records:
        node = trace.nodes[record["node"]]
        if record["kind"] == "push":
            inside = inside or node.name == "window"
            open.append(SimpleNamespace(node=node, total=0, children=0, count=0))
            if inside:
                found.append(open[-1])
            continue
        ended = open.pop()
        assert ended.node is node, (ended.node, node)
        ended.total = record["duration_ns"]
        inside = inside and node.name != "window"
        around = next((o for o in reversed(open) if o.node.kind != MODULE), None)
        if around and node.kind != MODULE:
            around.children += ended.total
            around.count += 1
    return found


def forward_of(events):
    """{index of a backward event: name of its operator}: the last operator to start with its thread
    and sequence number."""
    latest, found = {}, {}
    for index, event in enumerate(events):
        if event["scope"] != 1 and not event["forward_thread"]: # the engine's own range has its node's number
            latest[event["thread"], event["sequence"]] = event["name"]
        elif event["sequence"] >= 0 and event["forward_thread"]:
            found[index] = latest.get((event["forward_thread"], event["sequence"]))
    return found


def operators_are_the_profiler_s(ours, events):
    names, theirs = [o.node.name for o in ours], [e["name"] for e in events]
    assert names == theirs, (Counter(names) - Counter(theirs), Counter(theirs) - Counter(names),
                             next((pair for pair in zip(names, theirs) if pair[0] != pair[1]), None))


def modules_are_those_of_the_model(trace, ours, truth):
    """A node's path is that of its modules' names."""
    def path(node):
        names, at = [], node
        while at:
            names += [at.name] if at.kind == MODULE else []
            at = trace.nodes.get(at.parent)
        return ".".join(reversed(names))

    found = Counter((path(o.node), o.node.detail) for o in ours if o.node.kind == MODULE)
    wanted = Counter({(path, name): calls * truth["steps"] for path, (name, calls) in truth["modules"].items()})
    assert found == wanted, (found - wanted, wanted - found)


def backward_is_linked(trace, ours, events):
    """AccumulateGrad counts as the function that ran before it."""
    wanted, before = forward_of(events), None
    assert wanted and all(wanted.values()), "the profiler's own events have no forward operators"
    for index, range in enumerate(ours):
        if range.node.kind != BACKWARD:
            continue
        link = trace.nodes.get(range.node.link)
        assert (range.node.name == ACCUMULATES) == (index not in wanted), range.node.name
        assert link and link.name == wanted.get(index, before), (range.node.name, link, wanted.get(index))
        before = link.name


def without_children(events):
    """Adds the self time to the profiler's events, which are ordered by time."""
    open = defaultdict(list)
    for event in events:
        row = open[event["thread"]]
        while row and row[-1]["start"] + row[-1]["total"] <= event["start"]:
            row.pop()
        if row:
            row[-1]["self"] -= event["total"]
        row.append(event)
        event["self"] = event["total"]


def times_are_near(ours, events):
    """{name: median relative difference of the two times over all long calls}, where PyTorch's
    clock is exact enough. Names with few long calls are left out: the machine interrupted those,
    and either clock may have been read first."""
    apart, each = defaultdict(list), EACH_NS if any(e["total"] % 1000 for e in events) else EACH_NS + 1000
    without_children(events)
    for range, event in zip(ours, events):
        for what, mine, theirs, inner in ("total", range.total, event["total"], 0), ("self", range.total - range.children, event["self"], range.count):
            apart[what, range.node.name].append(max(abs(mine - theirs) - each * (inner + 1), 0) / theirs if theirs > SHORT_NS else None)
    judged = {key: [a for a in all if a is not None] for key, all in apart.items()}
    judged = {key: long for key, long in judged.items() if len(long) > 2 and len(long) * 4 >= len(apart[key])}
    far = {key: round(statistics.median(long), 3) for key, long in judged.items() if statistics.median(long) > NEAR}
    assert judged and not far, far


def tree_has_them_all(path, trace, truth):
    """The report's rows have the calls of each module and operator over the whole run, under the
    model's names."""
    rows = json.loads(report("tree", path, "-f", "json", "--no-fold").stdout)["rows"]
    names, modules, operators = {}, Counter(), Counter()
    for row in rows:
        names[row["id"]] = names.get(row["parent"], ()) + ((row["name"],) if row["kind"] == "module" else ())
        if row["kind"] == "module":
            modules[".".join(names[row["id"]])] += row.get("calls", 0)
        elif row["kind"] in ("op", "backward") and "cpu_total_ns" in row:
            operators[row["name"]] += row.get("calls", 0)
    wanted = {path: calls * truth["runs"] for path, (_, calls) in truth["modules"].items()}
    assert modules == wanted, {path: (modules[path], wanted.get(path)) for path in {*modules, *wanted} if modules[path] != wanted.get(path)}
    seen = Counter(p.name for p in trace.calls(OP, BACKWARD))
    missing = {name: (operators[name], seen[name]) for name in seen if operators[name] != seen[name]}
    assert not missing, missing


def check(folder, model):
    traced(folder, sys.executable, SCRIPT, model, folder / "truth.json", timeout=280, env={"OMP_NUM_THREADS": "1", "TMPDIR": str(folder)})
    truth = json.loads((folder / "truth.json").read_text())
    path = folder / "trace.bin"
    trace = Trace(path)
    ours = ranges(trace)
    recorded = [o for o in ours if o.node.kind != MODULE]
    assert losses(path) == {} and trace.is_balanced() and "torch.unlinked" not in facts(path), (losses(path), facts(path))
    operators_are_the_profiler_s(recorded, truth["events"])
    modules_are_those_of_the_model(trace, ours, truth)
    backward_is_linked(trace, recorded, truth["events"])
    times_are_near(recorded, truth["events"])
    tree_has_them_all(path, trace, truth)


for name in "mlp", "transformer", "convolutional", "recurrent", "gan", "custom":
    def model(folder, name=name):
        check(folder, name)
    model.__name__ = "modules_operators_links_and_times_are_PyTorch_s_own_%s" % name
    case(model)


main()
