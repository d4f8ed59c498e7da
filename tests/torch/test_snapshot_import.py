#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A snapshot that PyTorch itself dumped is shown as it is: every segment, tensor and gap, with the
whole history, with a part of it and without any. On the simulated device."""
import collections, pickle
from device import *

SCRIPT = ROOT / "tests" / "torch" / "dumps_snapshot.py"


def of_pytorch(segments):
    parts = {segment["address"]: segment["total_size"] for segment in segments}
    blocks = {}
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                blocks[at] = block["size"]
            at += block["size"]
    return parts, blocks


@case
def the_map_of_a_snapshot_is_pytorchs(folder):
    for entries in 100000, 100, 1:
        file = folder / ("%d.pickle" % entries)
        launch(run, folder / "run", SCRIPT, file, entries, env={"SIM_MEM": str(4 << 30)}, timeout=300)
        rows = json.loads(report("memory", file, "--map", "--at", "end", "-f", "json", "-n", "0").stdout)["rows"]
        stated, stats = json.loads(pathlib.Path(str(file) + ".json").read_text())
        segments, blocks = of_pytorch(stated)
        shown = {kind: {row["address"]: row["bytes"] for row in rows if row["kind"] == kind} for kind in ("segment", "block")}
        assert shown["segment"] == segments and shown["block"] == blocks, (entries, set(shown["block"].items()) ^ set(blocks.items()))
        assert len(segments) > 5 and len(blocks) > 50, (len(segments), len(blocks))
        moment = rows[0]
        assert moment["reserved_bytes"] == moment["tensor_bytes"] + moment["free_inside_bytes"] + moment.get("unknown_bytes", 0) == sum(segments.values()), moment
        assert moment["tensor_bytes"] == sum(segment["allocated_size"] for segment in stated) == stats["allocated_bytes.all.current"], (moment, stats)
        assert moment["reserved_bytes"] == stats["reserved_bytes.all.current"], (moment, stats)
        print("# %d entries: %d segments and %d tensors are equal" % (entries, len(segments), len(blocks)))
        for options in ("--over-time",), ("--by", "line"), ("--by", "size"), ():
            assert b"warning" not in report("memory", file, *options).stderr, options
    named = report("memory", folder / "100000.pickle", "--by", "line").stdout.decode()
    line = next(i for i, text in enumerate(SCRIPT.read_text().splitlines(), 1) if "live.append(" in text)
    assert "dumps_snapshot.py:%d <module>" % line in named, named


@case
def a_trace_becomes_a_snapshot_that_memory_viz_reads(folder):
    from torch.cuda import _memory_viz
    theirs = folder / "theirs.pickle"
    launch(traced, folder / "run", SCRIPT, theirs, env={"SIM_MEM": str(4 << 30)}, timeout=300)
    report("memory", folder / "run" / "trace.bin", "--snapshot", folder / "ours.pickle")
    ours, theirs = (pickle.loads(file.read_bytes()) for file in (folder / "ours.pickle", theirs))
    for left, right in zip(of_pytorch(ours["segments"]), of_pytorch(theirs["segments"])):
        assert left == right, set(left.items()) ^ set(right.items())
    sums = [{segment["address"]: [segment[key] for key in ("total_size", "allocated_size", "active_size", "device")] for segment in snapshot["segments"]}
            for snapshot in (ours, theirs)]
    assert sums[0] == sums[1], set(sums[0]) ^ set(sums[1])
    # The shape is PyTorch's: all that memory_viz may read of a segment, a block, an event and a frame.
    for left, right, missing in ((ours, theirs, {"host_segments", "host_traces"}), (ours["segments"][0], theirs["segments"][0], set()),
                                 (ours["device_traces"][0][0], theirs["device_traces"][0][0], {"compile_context", "user_metadata", "pool_id"})):
        assert set(right) - set(left) <= missing, (set(left), set(right))
    blocks = [[block for segment in snapshot["segments"] for block in segment["blocks"] if block["state"] == "active_allocated"] for snapshot in (ours, theirs)]
    assert set(blocks[0][0]) == set(blocks[1][0]) and set(blocks[0][0]["frames"][0]) == {"name", "filename", "line"}, blocks[0][0]
    events = [collections.Counter(event["action"] for event in snapshot["device_traces"][0] if event["action"] != "snapshot") for snapshot in (ours, theirs)]
    assert events[0] == events[1] and events[0]["alloc"] > 200, events
    kinds = [{type(event[key]) for key in ("addr", "size", "time_us")} for event in ours["device_traces"][0]]
    assert all(kind == {int} for kind in kinds), kinds
    assert abs(ours["device_traces"][0][0]["time_us"] - theirs["device_traces"][0][0]["time_us"]) < 2e6
    # PyTorch's own readers of snapshots take it, and it is read here as it was written.
    assert "segments: %d" % len(ours["segments"]) in _memory_viz.segsum(ours) and _memory_viz.trace(ours)
    assert "MemoryViz.js" in _memory_viz.trace_plot(ours)
    back = json.loads(report("memory", folder / "ours.pickle", "--map", "--at", "end", "-f", "json", "-n", "0").stdout)["rows"]
    assert {r["address"]: r["bytes"] for r in back if r["kind"] == "block"} == of_pytorch(theirs["segments"])[1]


@case
def a_pickle_that_would_run_code_is_refused(folder):
    hostile = folder / "hostile.pickle"
    hostile.write_bytes(b"\x80\x02cposix\nsystem\nq\x00X\x05\x00\x00\x00falseq\x01\x85q\x02Rq\x03.")
    refused = report("memory", hostile, check=None)
    assert refused.returncode == 2 and b"opcode 0x63" in refused.stderr and b"not executed" in refused.stderr, refused


main()
