#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What bounds a run, beside the answer that a person had written down before the rule was made
(run_bounds.tsv), and beside the figures of other views. Needs PPERF_TEST_DATA."""
import functools, json, os, pathlib, re, subprocess

from harness import REPORT, Skip, case, environment, main

HERE = pathlib.Path(__file__).parent


@functools.cache
def traces():
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder:
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    lines = [line.split("\t") for line in (HERE / "run_bounds.tsv").read_text().splitlines() if line[0] != "#"]
    found = {name: list(pathlib.Path(folder).glob(name + "*")) for name, _, _ in lines}
    assert all(len(paths) == 1 for paths in found.values()), {name: paths for name, paths in found.items() if len(paths) != 1}
    return [(found[name][0], bound) for name, bound, _ in lines]


@functools.cache
def rows(view, trace):
    run = subprocess.run([REPORT, view, trace, "-f", "json"], capture_output=True, text=True, env=environment(), timeout=120)
    assert run.returncode == 0, (view, trace, run.stderr)
    return json.loads(run.stdout)


def verdict(trace):
    found = [row for row in rows("diagnose", trace)["rows"] if row["kind"] == "verdict"]
    return found[0] if found else {"name": "unjudged", "confidence": "low"}


@case
def nine_of_ten_verdicts_are_those_of_a_person(folder):
    # whether memory limits a kernel, a person cannot see in a trace without a model; that person wrote
    # `launch` for a late host, whether in short gaps (`launch`) or in long ones (`host`)
    same = {"memory bandwidth": "compute", "host": "launch"}
    wrong = [(trace.name, bound, verdict(trace)) for trace, bound in traces()
             if same.get(verdict(trace)["name"], verdict(trace)["name"]) != bound]
    assert len(wrong) <= len(traces()) // 10, wrong
    assert all(row["confidence"] == "low" for _, _, row in wrong), wrong


@case
def a_run_is_host_bound_by_long_gaps_and_launch_bound_by_short_ones(folder):
    for trace, bound in traces():
        if verdict(trace)["name"] not in ("launch", "host"):
            continue
        classes = {row["name"]: row["impact_ns"] for row in rows("diagnose", trace)["rows"] if row["kind"] == "class"}
        name = max(("launch", "host"), key=lambda name: classes.get(name, 0))
        found = [row["name"] for row in rows("diagnose", trace)["rows"] if row["kind"] == "finding" and row["name"] in ("launch-bound", "host-bound")]
        assert verdict(trace)["name"] == name and found == [name + "-bound"], (trace, classes, found)
    names = {trace.name: verdict(trace)["name"] for trace, _ in traces()}
    assert names["pipit_saxpy-mpi-cuda_nsys_perlmutter0.sqlite"] == "host" and names["tl__b200~eager_trace.json.gz"] == "launch", names


@case
def classes_are_the_whole_time_of_the_gpus(folder):
    for trace, _ in traces():
        classes = {row["name"]: row for row in rows("diagnose", trace)["rows"] if row["kind"] == "class"}
        totals = rows("diagnose", trace)["totals"]
        if not classes:
            continue
        assert abs(sum(row["share"] for row in classes.values()) - 1) < 1e-9, (trace, classes)
        if "from the first GPU operation" not in (verdict(trace).get("evidence") or ""):
            continue  # of steps; totals are of the whole trace
        whole = sum(row["impact_ns"] for row in classes.values())
        assert abs(whole - totals["gpu_busy_ns"] - totals["gpu_idle_ns"] - totals["gpu_unknown_ns"]) <= whole / 1000, (trace, whole, totals)
        for name, key in (("communication", "gpu_exposed_communication_ns"),):
            assert abs(classes.get(name, {"impact_ns": 0})["impact_ns"] - totals[key]) <= whole / 1000, (trace, name, classes, totals)


@case
def a_verdict_about_kernels_agrees_with_other_views(folder):
    """The host's share of the critical path is that of the view `critical-path`, categories are those of the view, and kernels are named."""
    checked = 0
    for trace, bound in traces():
        row = verdict(trace)
        if row["name"] not in ("compute", "memory bandwidth"):
            continue
        # one lever: the host's part where that is longest, otherwise the largest kernels
        assert ("Begin with the " if "limited by the host" in row["finding"] else "The largest kernels") in row["next"], row
        for name, percent in re.findall(r"(?:time: |, )(\S+) ([0-9.]+) %", row["evidence"].split("of all GPU time")[1].split(";")[0]):
            categories = {one["name"]: one["gpu_total_ns"] for one in rows("categories", trace)["rows"] if one["parent"] is None}
            assert abs(100 * categories[name] / rows("categories", trace)["totals"]["gpu_sum_ns"] - float(percent)) <= 0.06, (trace, name, percent)
        parts = {one["name"]: one["path_ns"] for one in rows("critical-path", trace)["rows"] if one["kind"] in ("path", "part")}
        if parts["critical path"] < 1.01 * rows("diagnose", trace)["totals"]["gpu_busy_ns"] / 0.85 and "steady-state" in row["evidence"]:
            host = 100 * (parts.get("host", 0) + parts.get("calls", 0)) / parts["critical path"]
            said = float(re.search(r"critical path: host ([0-9.]+) %", row["evidence"]).group(1))
            assert abs(host - said) < 1.5 and ("limited by the host" in row["finding"]) == (said >= 50), (trace, host, row)
            checked += 1
    assert checked, "no trace has steps that are nearly all of it"


@case
def a_verdict_about_the_host_has_both_bounds(folder):
    """Without idle time: that of the view `idle`; with faster kernels: what the view `critical-path` has as the gain of kernels and as waits without a known reason."""
    said = {trace: re.search(r"Removing all idle time of the GPU saves at most ([0-9.]+) % of the run(?:, faster kernels (?:at most|less than) ([0-9.]+) %)?\.", verdict(trace).get("finding") or "") for trace, _ in traces()}
    assert sum(map(bool, said.values())) >= 2, said
    for trace, match in said.items():
        assert bool(match) == ("The run is limited by the host" in (verdict(trace).get("finding") or "")), (trace, verdict(trace))
        if not match:
            continue
        idle, = [row for row in rows("idle", trace)["rows"] if row["kind"] == "steps"]
        assert abs(100 * idle["time_share"] - float(match[1])) <= 0.051, (trace, match[0], idle)
        path = [row for row in rows("critical-path", trace)["rows"] if row["kind"] in ("steady", "steady part")]
        path = {row["name"]: row for row in path or [row for row in rows("critical-path", trace)["rows"] if row["kind"] in ("path", "part")]}
        waits = sum(path.get(name, {"path_ns": 0})["path_ns"] for name in ("event wait", "unexplained wait", "unknown"))
        whole = idle["gap_ns"] / idle["time_share"]
        most = min(path["kernels"]["gain_ns"] + waits, whole - path["host"]["path_ns"] - path.get("calls", {"path_ns": 0})["path_ns"])
        assert abs(100 * most / whole - float(match[2])) <= 0.11 or "less than" in match[0] and 100 * most / whole < 0.1, (trace, match[0], most, whole)


@case
def the_critical_path_of_the_verdict_is_in_the_view(folder):
    for trace, _ in traces():
        said = re.search(r"critical path: host ([0-9.]+) %(?: \([^)]*\))?, GPU work ([0-9.]+) %", verdict(trace).get("evidence") or "")
        path = rows("critical-path", trace)["rows"]
        of = [row for row in path if row.get("kind") == "steady"] or [row for row in path if row.get("kind") == "path"]
        if said:
            shares = [100 * of[0][key] / of[0]["path_ns"] for key in ("path_host_ns", "path_gpu_ns")]
            assert all(abs(share - float(text)) <= 0.051 for share, text in zip(shares, said.groups())), (trace, shares, said.groups())


@case
def what_the_host_has_of_the_critical_path_is_divided(folder):
    """The host's share of the path is no share of idle time: what it is made of is listed, and its parts sum to it."""
    divided = 0
    for trace, _ in traces():
        evidence = verdict(trace).get("evidence") or ""
        host, parts = re.search(r"critical path: host ([0-9.]+) %", evidence), re.search(r"critical path: host [0-9.]+ % \(([^)]*)\)", evidence)
        if parts:
            divided += 1
            assert abs(sum(map(float, re.findall(r"([0-9.]+) %", parts[1]))) - float(host[1])) <= 0.21, (trace, evidence)
    assert divided >= 3, divided
    evidence = {trace.name: verdict(trace).get("evidence") for trace, _ in traces()}
    # the copies of pageable memory run in their calls, and nothing overlaps: the path has them as GPU work
    assert "copy calls 0.1 %), compute 8.1 %; critical path: host 66.0 %, GPU work 34.0 %" in [text for name, text in evidence.items() if "saxpy" in name][0], evidence
    assert "data loading 35.4 %, CUDA calls 8.4 %" in [text for name, text in evidence.items() if "resnet50_num_workers_0" in name][0], evidence
    # kernels of an embedding, which fill the GPU, leave no room for the work behind cudaStreamWaitEvent: that time is theirs
    assert "critical path: host 70.0 % (CUDA calls 12.4 %, other host time 57.6 %), GPU work 26.6 %" in [text for name, text in evidence.items() if "~control~" in name][0], evidence


CLASS_RULES = ("launch-bound", "host-bound", "exposed-communication", "data-loading", "compilation", "steady-allocation", "synchronisation", "event-wait", "unexplained-wait")


@case
def no_finding_is_above_a_larger_loss_that_is_hidden(folder):
    for trace, _ in traces():
        all = rows("diagnose", trace)["rows"]
        shown = [row for row in all if row["kind"] == "finding" and row.get("impact_share") and row["name"] != "profiler-cost"]
        least = min([row.get("gain_ns", row["impact_ns"]) for row in shown if row.get("gain_share", row["impact_share"]) >= 0.01], default=1 << 64)
        # what a rule without a class measured is no loss yet, and in waits of the path the GPU may work
        hidden = [(row["name"], row["impact_ns"]) for row in all if row["kind"] == "clear" and row["name"] in CLASS_RULES and row.get("impact_of") != "the critical path" and (row.get("impact_ns") or 0) > least]
        assert not hidden, (trace, least, hidden)


@case
def a_finding_that_gains_nothing_is_named_only(folder):
    named = 0
    for trace, _ in traces():
        text = subprocess.run([REPORT, "diagnose", trace, "--width", "110"], capture_output=True, text=True, env=environment(), timeout=120).stdout
        assert not re.search(r"up to 0.ns|\(0\.0 %", text), (trace, text)
        named += bool(re.search(r"^no gain  +[a-z-]+", text, re.M))
    assert named >= 3, named


@case
def work_of_the_step_before_is_told(folder):
    trace, = [trace for trace, _ in traces() if "Qwen_Qwen1.5" in trace.name]
    # by hand: the step opens with a cudaDeviceSynchronize of 14.10 ms on 509 kernels that were launched before the trace
    assert "of 43.27 ms of GPU time in the step, 13.48 ms (31.1 %) were launched earlier" in verdict(trace)["evidence"], verdict(trace)


@case
def time_before_an_operation_of_unknown_launch_is_unknown(folder):
    """The first 64 operations of this trace were launched before it began."""
    trace, = [trace for trace, _ in traces() if "dlrm_worker1" in trace.name]
    evidence, classes = verdict(trace)["evidence"], {row["name"]: row["impact_ns"] for row in rows("diagnose", trace)["rows"] if row["kind"] == "class"}
    assert "late launches 31.2 % (launch-bound 24.9 %, launch latency 5.7 %, before the first operation or after the last 0.6 %)" in evidence and "unknown 5.7 %" in evidence, evidence
    idle = {row["name"]: row["gap_ns"] for row in rows("idle", trace)["rows"] if row["kind"] == "class"}
    assert idle["unknown"] == classes["unknown"] == 1127000 and idle["late launches"] == classes["launch"], (idle, classes)


@case
def a_long_time_before_the_first_operation_is_said(folder):
    said = {trace.name: (re.findall(r"; before the first GPU operation ([^;]*)", verdict(trace).get("evidence") or "") or [""])[0] for trace, _ in traces()}
    assert said["pipit_saxpy-mpi-cuda_nsys_perlmutter0.sqlite"] == "837.81 ms: MPI_Init 645.68 ms (of it cudaHostRegister 316.43 ms), MPI_Send 47.49 ms, elsewhere 144.65 ms", said
    assert sum(map(bool, said.values())) <= 3, said


@case
def a_run_without_a_gpu_says_where_self_time_is(folder):
    folder = traces()[0][0].parent # skips without the data
    for pattern, said in {"hta__cpu_only*": "62.1 % is in `ProfilerStep#* / gloo:all_reduce`, 37.9 % in `ProfilerStep#*`",
        "hta__rank_non_gpu*": "45.1 % is in `ProfilerStep#* / ## backward ##`"}.items():
        trace, = folder.glob(pattern)
        screen = subprocess.run([REPORT, trace, "--width", "400"], capture_output=True, text=True, env=environment(), timeout=120).stdout
        shares = [float(share) for share in re.findall(r"([0-9.]+) %", screen.splitlines()[0])]
        assert said in screen.splitlines()[0] and sum(shares) <= 100.1, screen[:600]


@case
def one_long_wait_is_said_to_be_one(folder):
    row = [verdict(trace) for trace, _ in traces() if "sglang_Qwen3-8B" in trace.name][0]
    assert "is idle for 97.8 % of the time while launched work waits" in row["finding"] and "It is one wait of 463.25" in row["finding"] and "of the other 10.50" in row["finding"] and row["next"], row


@case
def what_a_wait_is_for_is_not_invented(folder):
    """The GPU was idle when hipStreamWaitEvent was called, and no record of its event is in the file: the event is not the likely cause."""
    trace = [trace for trace, _ in traces() if "sglang_Qwen3-8B" in trace.name][0]
    assert "does not show for what (unexplained wait); most likely for work from before the trace began." in verdict(trace)["finding"], verdict(trace)
    finding = [row for row in rows("diagnose", trace)["rows"] if row["name"] == "unexplained-wait"][0]
    assert "earlier work of its stream or, less likely, for the event" in finding["finding"] and "on stream 3" in finding["evidence"] and finding["confidence"] == "medium", finding
    assert "Find what the work waited for: most likely work from before the trace began, because the longest wait begins with the trace; else " in finding["next"], finding # the wait begins 128 us after the trace
    gap = [row for row in rows("idle", trace)["rows"] if row["kind"] == "gap"][0]
    assert (gap["waits_for"], gap["stream"]) == ("earlier work or event", 3), gap


@case
def a_recorded_python_stack_is_used_and_is_a_cost(folder):
    """Where the work that waited was launched; and that stacks slow the host, in the verdict that blames the host."""
    seen = 0
    for trace, _ in traces():
        stacks = rows("diagnose", trace)["capture"]["sources"]["python_stacks"] == "on"
        said = "Python stacks were recorded, which slows the host" in (verdict(trace).get("finding") or "")
        assert said == (stacks and verdict(trace)["name"] in ("launch", "host")), (trace, verdict(trace))
        seen += said
    assert seen >= 2, seen
    trace = [trace for trace, _ in traces() if "sglang_Qwen3-8B" in trace.name][0]
    text = subprocess.run([REPORT, "diagnose", trace, "--width", "300"], capture_output=True, text=True, env=environment(), timeout=120).stdout
    assert re.search(r"^  where  .*; launched at resolve_future_token_ids.py:30 resolve_future_token_ids_cuda; example at", text, re.M), text


@case
def screens_have_no_private_words(folder):
    words = re.compile(r"sized collective|counted above|of their own in the trace|(?<!saves) a part of [0-9]|what takes longest|lead is lost|hardly anything is gained|other code|launch or host|\bconcern|outside the GPU span|less GPU work|starve|of which the host has 0\.0|waiting [0-9.]+ %|not[ -]started|\bqueued [0-9]")
    for trace, _ in traces():
        for view in "", "diagnose", "idle", "critical-path":
            screen = subprocess.run([REPORT, *view.split(), trace, "--width", "400"], capture_output=True, text=True, env=environment(), timeout=120).stdout
            assert not words.search(screen), (trace, view, words.search(screen))
    ranks = subprocess.run([REPORT, "ranks", *sorted((traces()[0][0].parent.parent / "kineto").glob("param__dlrm*")), "--width", "200"], capture_output=True, text=True, env=environment(), timeout=120).stdout
    assert " undecided " in ranks and not re.search(r"\s-(\s|$)", ranks), ranks


@case
def the_first_screen_begins_with_the_verdict(folder):
    for trace, _ in traces():
        screen = subprocess.run([REPORT, trace, "--width", "300"], capture_output=True, text=True, env=environment(), timeout=120).stdout
        if "finding" in verdict(trace):
            assert screen.startswith("verdict   " + verdict(trace)["finding"] + " (confidence: "), (trace, screen[:400])
        else:
            assert screen.startswith("verdict   "), (trace, screen[:400])


@case
def the_first_screen_fits_a_screen(folder):
    for trace, _ in traces():
        for width, most in (110, 46), (80, 60):
            # The trace is given by its name alone: a longer path would fill more lines of the screen.
            command = [REPORT, trace.name, "--width", str(width)]
            screen = subprocess.run(command, cwd=trace.parent, capture_output=True, text=True, env=environment(), timeout=120).stdout
            assert screen.count("\n") <= most, (trace, width, screen)
            assert screen.split("\nnext ")[1].split("\n\n")[0].count(trace.name) == 1, (trace, width, screen)


main()
