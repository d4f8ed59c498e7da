#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PPERF_OPS=totals with PyTorch itself: each operator is counted at the node where it would have
been recorded, and a killed process has its counters."""
import collections, json, signal, sys, textwrap
import reference_decoder as decoder
from harness import *

NETS = {
    "mlp": "torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))",
    "transformer": "torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)",
}
TRAIN = """
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = %s
    optimizer = torch.optim.AdamW(net.parameters())
    for i in range(%d):
        optimizer.zero_grad()
        with torch.profiler.record_function("loss"):
            loss = net(torch.randn(3, 4, 8)).square().mean()
        loss.backward()
        optimizer.step()
    print(float(loss.detach()) > 0, flush=True)
"""


def trained(folder, net, steps, ops, code=TRAIN, **options):
    return traced(folder, sys.executable, "-W", "error", "-c", textwrap.dedent(code) % (NETS[net], steps), timeout=300, env={"PPERF_OPS": ops}, **options)


def calls(path):
    """{(names, kind, link): calls} of every node, recorded or counted."""
    nodes, found = decoder.nodes(path), collections.Counter()
    for record in dump(path, {"push"}):
        found[nodes[record["node"]][:3]] += 1
    for node, (times, _, _) in decoder.totals(path).items():
        found[nodes[node][:3]] += times
    return found


@case
def every_operator_is_counted_where_it_would_be_recorded(folder):
    for net in NETS:
        trained(folder, net, 6, "events")
        recorded, events = calls(folder / "trace.bin"), len(dump(folder / "trace.bin"))
        trained(folder, net, 6, "totals")
        counted = calls(folder / "trace.bin")
        assert counted == recorded, (counted - recorded, recorded - counted)
        assert {kind for _, kind, _ in counted} >= {"OP", "BACKWARD", "MODULE", "OPTIMIZER", "RANGE"}
        assert not decoder.totals(folder / "trace.bin.old") and len(dump(folder / "trace.bin")) < events / 5


@case
def times_add_up_and_steps_are_found(folder):
    trained(folder, "transformer", 10, "totals")
    tree = json.loads(report("tree", folder / "trace.bin", "-f", "json", "--strict").stdout)
    assert tree["integrity"]["complete"] and tree["integrity"]["conserved"]
    rows = tree["rows"]
    outermost = sum(r["cpu_total_ns"] for r in rows if r["parent"] is None and not r.get("ran_elsewhere") and "cpu_total_ns" in r)
    assert outermost == sum(r.get("cpu_self_ns", 0) for r in rows), outermost
    linear = next(r for r in rows if r["name"] == "aten::linear")
    assert linear["p50_ns"] is None and linear["provenance"] == "counted" and linear["max_ns"] <= linear["cpu_total_ns"]
    assert not [r for r in rows if r["kind"] in ("step", "section")]
    assert tree["capture"]["steps"]["count"] >= 8, tree["capture"]["steps"]


@case
def what_was_counted_outlives_a_kill(folder):
    code = TRAIN + "    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    trained(folder, "mlp", 6, "totals")
    whole = calls(folder / "trace.bin")
    trained(folder, "mlp", 6, "totals", code, check=-signal.SIGKILL)
    assert calls(folder / "trace.bin") == whole


main()
