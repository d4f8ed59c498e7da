# SPDX-License-Identifier: MIT
"""Reads the hidden view `scene`, and compares it with the views that users read."""
import collections, json
from harness import dump, report

LEVELS = 5


def view(name, trace, *options):
    return json.loads(report(name, trace, "-f", "json", *options).stdout)


def scenes(trace, *options):
    """The processes of the scene of a trace: {"pid", "verdict", "scene"} each."""
    return json.loads(report("scene", trace, *options).stdout)["processes"]


def running(differences):
    """The values of a list of differences."""
    values, at = [], 0
    for difference in differences:
        at += difference
        values.append(at)
    return values


def paths(scene):
    """{node: names from the root}."""
    nodes, found = scene["nodes"], {0: []}
    for node, parent, name in zip(nodes["id"], nodes["parent"], nodes["name"]):
        found[node] = found[parent] + [scene["strings"][name]]
    return found


def events(lane):
    """(begin, duration, kind, node, name) of each event of a lane."""
    of = lane["events"]
    return list(zip(running(of["begin_ns"]), of["duration_ns"], (of["kinds"][kind] for kind in of["kind"]), of["node"], of["name"]))


def column_sums(span, kind):
    """{(device, stream or thread, series): ns} of the lanes of a kind, added up from their
    columns."""
    found = collections.Counter()
    for lane in span["lanes"]:
        for series in lane.get("series", []) if lane["kind"] == kind else []:
            assert sum(series["ns"]) == series["total_ns"] and sum(series["counts"]) == series["count"], series
            assert len(series["at"]) == len(series["ns"]) == len(series["counts"])
            assert not series["at"] or running(series["at"])[-1] < span["columns"] <= 2048
            found[lane.get("device"), lane.get("stream", lane.get("thread")), series.get("name", series.get("level"))] += sum(series["ns"])
    return found


def without(sums, *parts):
    """The sums by the parts of the key with these indices."""
    found = collections.Counter()
    for key, value in sums.items():
        found[tuple(key[part] for part in parts)] += value
    return dict(+found)


def check_gpu(span, trace, *options):
    """Busy, idle by cause, streams and categories are those of the views. Returns the busy time."""
    gpu, streams = column_sums(span, "gpu"), column_sums(span, "stream")
    rows = view("streams", trace, *options)["rows"]
    busy = {(row["device"],): row["busy_ns"] for row in rows if row["kind"] == "device" and row.get("busy_ns")}
    assert without({key: ns for key, ns in gpu.items() if key[2] == "busy"}, 0) == busy, (gpu, busy)
    of_streams = {(row["device"], row["stream"]): row["gpu_total_ns"] for row in rows if row["kind"] == "stream" and row.get("gpu_total_ns")}
    if not any(lane.get("rest") for lane in span["lanes"]):
        assert without(streams, 0, 1) == of_streams, (without(streams, 0, 1), of_streams)
    causes = {(row["device"], row["cause"]): row["gap_ns"] for row in view("idle", trace, "-n", "0", *options)["rows"] if row["kind"] == "cause"}
    assert without({key: ns for key, ns in gpu.items() if key[2] not in ("busy", "unrecorded")}, 0, 2) == causes, (gpu, causes)
    categories = {(row["name"],): row["gpu_total_ns"] for row in view("categories", trace, *options)["rows"] if row["depth"] == 0 and row.get("gpu_total_ns")}
    assert without(streams, 2) == categories, (without(streams, 2), categories)
    return sum(busy.values())


def check_threads(span, trace):
    """Each level of the ranges of each thread is the sum of its ranges in the dump."""
    if any(lane.get("rest") for lane in span["lanes"] if lane["kind"] == "thread"):
        return
    wanted = collections.Counter()
    for record in dump(trace, {"pop", "left_open"}):
        if record.get("depth", LEVELS) < LEVELS:
            wanted[record["tid"], record["depth"]] += record["t_ns"] - record["begin_ns"]
    found = without(column_sums(span, "thread"), 1, 2)
    assert found == dict(+wanted), (found, dict(wanted))


def check_memory(span, totals, rows):
    """The highest column is the peak of the views, and the parts of each column add up. `rows`: of
    the view memory."""
    peaks = []
    levels = {(row.get("device"), row["memory_kind"]): row for row in rows if row["depth"] == 0 and row.get("memory_kind")}
    for memory in span["memory"]:
        at = running(memory["at"])
        assert at[0] == 0 and at[-1] < span["columns"] and len(at) == len(memory["level"]) and all(after > before for before, after in zip(at, at[1:]))
        parts = zip(*memory["owner"], memory["others"], memory["before"])
        assert [sum(column) for column in parts] == memory["level"]
        assert max(memory["level"]) == memory["peak_bytes"], (max(memory["level"]), memory["peak_bytes"])
        assert sum(owner["at_peak_bytes"] for owner in memory["owners"]) + memory["others_at_peak_bytes"] + memory["before_at_peak_bytes"] == memory["peak_bytes"]
        assert running(memory["at_ns"])[memory["level"].index(memory["peak_bytes"])] == memory["peak_ns"]
        peaks.append(memory["peak_bytes"])
        if memory["of"] == "tensors":
            row = levels[memory["device"], "tensor"]
            assert (memory["peak_bytes"], memory["peak_ns"]) == (row["at_peak_bytes"], row["peak_ns"]), row
        if memory["of"] == "tensors" and len(span["memory"]) == 1:
            assert memory["peak_bytes"] == totals["allocated_peak_bytes"], (memory["peak_bytes"], totals["allocated_peak_bytes"])
        if memory.get("reserved_max") and len(span["memory"]) == 1 and totals["reserved_peak_bytes"]:
            assert max(memory["reserved_max"]) == totals["reserved_peak_bytes"], (max(memory["reserved_max"]), totals["reserved_peak_bytes"])
        if memory["of"] == "device memory" and len(span["memory"]) == 1:
            assert memory["peak_bytes"] == totals["reserved_peak_bytes"]
    return peaks


def check_events(span):
    """The events of a lane that has all of them add up to its columns."""
    for lane in span["lanes"]:
        if "events" not in lane or "series" not in lane:
            continue
        sums = collections.Counter()
        for _, duration, kind, _, _ in events(lane):
            sums[kind] += duration
        series = {of.get("name", of.get("level")): of["total_ns"] for of in lane["series"] if of.get("name") != "busy"}
        assert dict(+sums) == {kind: ns for kind, ns in series.items() if ns}, (lane["label"], sums, series)
        assert len(lane["events"]["node"]) == lane["events_seen"]


def check_conservation(trace, *options):
    """Compares the scene of a trace with its views, to the nanosecond and the byte. Returns it."""
    process, = scenes(trace, *options)
    span = process["scene"]["whole"]
    totals = view("table", trace, *options)["totals"]
    assert check_gpu(span, trace, *options) == totals["gpu_busy_ns"]
    if not options:
        check_threads(span, trace)
        check_memory(span, totals, view("memory", trace)["rows"])
        unknown = sum(ns for key, ns in column_sums(span, "gpu").items() if key[2] == "unrecorded")
        assert unknown == totals.get("gpu_unknown_ns", 0), unknown
    check_events(span)
    return process
