#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What pictures are drawn from (the hidden view scene): its columns add up to the figures of the
views, to the nanosecond and the byte, on own traces, on those of other tools (PPERF_TEST_DATA), on
cut and on empty ones. Also the verdict of summary, and the times and nodes of dump."""
import json, os, pathlib, re, shutil
from harness import BUILD, Skip, case, dump, main, report, run, traced
from scene import check_conservation, column_sums, events, paths, running, scenes, view


def data():
    if not os.environ.get("PPERF_TEST_DATA"):
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    return pathlib.Path(os.environ["PPERF_TEST_DATA"])


def simulated(folder, name, *arguments):
    program = BUILD / "cudasim" / "13" / name
    if not program.exists():
        raise Skip("%s is not built" % name)
    traced(folder, str(program), *arguments)
    return folder / "trace.bin"


@case
def own_traces_add_up(folder):
    for number, (name, *arguments) in enumerate((("demo_train",), ("known_work", 2, 2, 2))):
        (folder / str(number)).mkdir()
        trace = simulated(folder / str(number), name, *arguments)
        scene = check_conservation(trace)["scene"]
        assert {lane["kind"] for lane in scene["whole"]["lanes"]} >= {"gpu", "stream"}
    traced(folder, "ranges", 2, 2000)
    whole = check_conservation(folder / "trace.bin")["scene"]["whole"]
    assert [lane["kind"] for lane in whole["lanes"]] == ["thread", "thread"] and not whole["memory"]


@case
def more_threads_than_lanes_are_summed_in_one(folder):
    traced(folder, "ranges", 12, 100)
    whole = check_conservation(folder / "trace.bin")["scene"]["whole"]
    assert [lane.get("rest", False) for lane in whole["lanes"]] == [False] * 8 + [True]
    level = sum(ns for key, ns in column_sums(whole, "thread").items() if key[2] == 0)
    assert level == sum(record["duration_ns"] for record in dump(folder / "trace.bin", {"pop"}) if record["depth"] == 0)


@case
def selected_steps_add_up(folder):
    trace = simulated(folder, "demo_train")
    whole = check_conservation(trace, "--steps", "2-4")["scene"]["whole"]
    first, last = (row for row in view("steps", trace)["rows"] if row.get("step") in (2, 4))
    assert whole["origin_ns"] == first["start_ns"] and whole["end_ns"] >= last["start_ns"] + last["duration_ns"]
    check_conservation(trace, "--device", "0")


@case
def windows_show_the_steps_and_the_peak(folder):
    trace = simulated(folder, "demo_train")
    scene = scenes(trace)[0]["scene"]
    kinds = {kind: window for window in scene["windows"] for kind in window["kinds"]}
    usual = sorted((row for row in view("steps", trace)["rows"] if row.get("state") == "usual"), key=lambda row: row["duration_ns"])
    assert kinds["worst step"]["step"] == usual[-1]["step"] and kinds["median step"]["step"] == usual[(len(usual) - 1) // 2]["step"]
    assert kinds["first usual step"]["step"] == min(row["step"] for row in usual)
    assert kinds["worst step"]["begin_ns"] <= usual[-1]["start_ns"] and kinds["worst step"]["end_ns"] >= usual[-1]["start_ns"] + usual[-1]["duration_ns"]
    memory, = scene["whole"]["memory"]
    peak = kinds["memory peak"]
    assert peak["begin_ns"] <= memory["peak_ns"] < peak["end_ns"] and max(peak["span"]["memory"][0]["level"]) == memory["peak_bytes"]
    for window in scene["windows"]:
        assert window["span"]["width_ns"] <= scene["whole"]["width_ns"]
        assert all("events" in whole for lane, whole in zip(window["span"]["lanes"], scene["whole"]["lanes"]) if lane.get("in_whole"))


@case
def events_are_those_of_the_dump(folder):
    trace = simulated(folder, "demo_train")
    scene = scenes(trace)[0]["scene"]
    names = paths(scene)
    streams = {(lane["device"], lane["stream"]): events(lane) for lane in scene["whole"]["lanes"] if lane["kind"] == "stream"}
    for (device, stream), found in streams.items():
        wanted = sorted((record["begin_ns"], record["duration_ns"]) for record in dump(trace, {"kernel", "memcpy", "memset"})
                        if (record["device"], record["stream"]) == (device, stream))
        assert [event[:2] for event in found] == wanted
        assert all(names[event[3]] for event in found)


@case
def cut_and_empty_traces_add_up(folder):
    trace = simulated(folder, "demo_train")
    whole = trace.read_bytes()
    for part in (0.2, 0.5, 0.8):
        (folder / "cut.bin").write_bytes(whole[:int(len(whole) * part)])
        check_conservation(folder / "cut.bin")
    run(folder, "true", env={"LD_PRELOAD": ""})
    traced(folder, "ranges", 1, 0, env={"PPERF_OUTPUT": "empty.bin"})
    if (folder / "empty.bin").exists():
        assert check_conservation(folder / "empty.bin")["scene"]["windows"] == []


@case
def traces_of_other_tools_add_up(folder):
    for trace in [*sorted((data() / "kineto").glob("*.json.gz")), *sorted((data() / "kineto/micro").glob("test_*.json")), *sorted((data() / "nsys").glob("*.sqlite"))]:
        check_conservation(trace)


@case
def a_large_trace_stays_small(folder):
    traced(folder, "ranges", 4, 500000)
    text = report("scene", folder / "trace.bin").stdout
    scene = json.loads(text)["processes"][0]["scene"]
    assert len(text) < 2000000 and not any("events" in lane for lane in scene["whole"]["lanes"])
    for lane in scene["whole"]["lanes"]:
        found = {series["level"]: sum(series["ns"]) for series in lane["series"]}
        assert len(found) == 5 and all(found[level] >= found[level + 1] for level in range(4))
        for dominants in lane["dominants"]:
            columns = dict(zip(running(lane["series"][dominants["level"]]["at"]), lane["series"][dominants["level"]]["ns"]))
            assert all(ns <= columns[at] for at, ns in zip(running(dominants["at"]), dominants["ns"]))


@case
def summary_has_the_verdict_as_data(folder):
    trace = simulated(folder, "demo_train")
    verdict = view("summary", trace)["verdict"]
    first = view("diagnose", trace)["rows"][0]
    assert first["kind"] == "verdict" and (verdict["bound"], verdict["confidence"], verdict["command"]) == (first["name"], first["confidence"], first["command"])
    text = " ".join(report("summary", trace, "--ascii").stdout.decode().split())
    sentences = {sentence["topic"]: sentence for sentence in verdict["sentences"]}
    # text leaves the critical path to diagnose
    assert all(re.sub("; critical path: [^;]*", "", " ".join(sentence["text"].split())).replace("µ", "u") in text for sentence in verdict["sentences"]), (verdict, text)
    assert sentences["gpu time"]["path"] and 0 < sentences["gpu time"]["amount"] <= sentences["gpu time"]["whole"] == view("table", trace)["totals"]["gpu_sum_ns"]
    steps = [row for row in view("steps", trace)["rows"] if row.get("state") == "usual"]
    busy, idle = (sum(row[key] for row in steps) for key in ("busy_ns", "idle_ns"))
    assert verdict["usual_steps"] == {"busy_ns": busy, "idle_ns": idle, "busy_share": busy / (busy + idle)}


@case
def dump_says_when_things_began_and_where(folder):
    trace = simulated(folder, "demo_train")
    records = [json.loads(line) for line in report("dump", trace, "-f", "json").stdout.splitlines()]
    nodes = {}
    for record in records:
        if record["kind"] == "node":
            assert record["node"] not in nodes and record.get("parent", 0) in {0, *nodes}, record
            nodes[record["node"]] = record
            continue
        assert record.get("node", 0) in {0, *nodes}, record
        if "duration_ns" in record:
            gpu = record["kind"] in ("kernel", "memcpy", "memset", "api", "overhead", "gpu_sync")
            assert record["begin_ns"] == record["t_ns"] - (0 if gpu else record["duration_ns"]), record
    pushes = [record for record in records if record["kind"] == "push"]
    assert pushes and all(nodes[record["node"]]["name"] == record["name"] for record in pushes)
    begins = sorted((record["tid"], record["t_ns"]) for record in pushes)
    assert begins == sorted((record["tid"], record["begin_ns"]) for record in records if record["kind"] == "pop")
    text = report("dump", trace).stdout.decode()
    assert "parent=" not in text and not any(word in text for word in (" node_kind=", "  node "))


@case
def an_imported_file_that_does_not_say_what_is_reserved(folder):
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 1, "dur": 9},
              {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5,
               "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 512}}]
    (folder / "memory.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    record, = dump(folder / "memory.json", {"tensor"})
    assert record["reserved"] is None and record["allocated"] == 512, record
    memory, = check_conservation(folder / "memory.json")["scene"]["whole"]["memory"]
    assert memory["peak_bytes"] == 512 and "reserved" not in memory


main()
