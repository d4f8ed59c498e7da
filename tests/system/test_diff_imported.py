#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""diff and gate on traces of torch.profiler (PPERF_TEST_DATA): what changed is named, diff and gate
agree, a trace does not differ from itself, and the runs in reverse give the mirror image."""
import collections, functools, gzip, itertools, json, math, os, pathlib, subprocess

from harness import REPORT, Skip, case, environment, main


def traces():
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder:
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    return sorted(path for part in ("kineto", "verdicts") for path in pathlib.Path(folder, part).glob("*.json*"))


def named(part):
    found = [trace for trace in traces() if part in trace.name]
    if not found:
        raise Skip("no trace %s in PPERF_TEST_DATA" % part)
    return found[0]


def run(*arguments):
    done = subprocess.run([str(REPORT), *map(str, arguments)], capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode in (0, 1), (arguments, done.returncode, done.stderr)
    return done


@functools.cache
def differences(before, after, metric="gpu"):
    return json.loads(run("diff", before, after, "-m", metric, "-f", "json").stdout)


PAIRS = (("hta__trace_diff~control", "hta__trace_diff~test"), ("resnet50_num_workers_0", "resnet50_num_workers_4"),
         ("Falconsai_nsfw", "gaunernst_bert"), ("dlrm_worker0", "dlrm_worker1"))


def launched_in_steps(trace):
    """GPU operations by name, as (calls, microseconds) of each ProfilerStep in which they were launched; read without pperf."""
    opened = gzip.open(trace) if trace.suffix == ".gz" else open(trace)
    with opened as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    steps = sorted((event["ts"], event["ts"] + event["dur"]) for event in events
                   if event["name"].startswith("ProfilerStep") and event.get("cat") != "gpu_user_annotation")
    launches = {event["args"]["correlation"]: event["ts"] for event in events if event.get("cat") == "cuda_runtime"}
    found = collections.defaultdict(lambda: [[0, 0] for _ in steps])
    for event in events:
        at = launches.get(event.get("args", {}).get("correlation")) if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") else None
        for number, (begin, end) in enumerate(steps):
            if at is not None and begin <= at < end:
                found[event["name"]][number][0] += 1
                found[event["name"]][number][1] += event["dur"]
    return found


@case
def what_changed_in_six_steps_is_named(folder):
    before, after = named("hta__trace_diff~control"), named("hta__trace_diff~test")
    done = run("diff", before, after, "--width", "120")
    assert done.returncode == 1 and "; significant (p " in done.stdout and "n = 6 v 6" in done.stdout, done.stdout[:2000]
    told = differences(before, after)
    rows = [row for row in told["rows"] if row["significant"]]
    truth = [launched_in_steps(trace) for trace in (before, after)]
    kinds = {"nccl all-reduce": ("kernel", lambda name: name.startswith("ncclKernel_AllReduce")),
             "copies on the device": ("memcpy", lambda name: "DtoD" in name), "copies to the device": ("memcpy", lambda name: "HtoD" in name)}
    for what, (kind, wanted) in kinds.items():
        for side in ("before", "after"):
            steps = [[sum(found[number][field] for name, found in truth[side == "after"].items() if wanted(name)) for field in (0, 1)] for number in range(6)]
            here = [row for row in told["rows"] if row["kind"] == kind and wanted(row["name"]) and row["path"][0] != "unattributed"] # launched before the trace
            assert here, what
            calls, ns = sum(row["calls_" + side] for row in here), sum(row[side] for row in here)
            assert math.isclose(calls, sum(step[0] for step in steps) / 6), (what, side, calls, steps)
            assert math.isclose(ns, sum(step[1] for step in steps) / 6 * 1000, rel_tol=1e-6), (what, side, ns, steps)
    # 3 copies on the device became 768, the all-reduce takes twice as long, and the dense layers are compiled
    assert sum(row["after"] for row in rows if row["kind"] == "memcpy" and "DtoD" in row["name"] and row["status"] == "new") > 10e6
    assert any("AllReduce" in row["name"] and row["relative"] > 1 for row in rows)
    assert any(row["name"] == "CompiledFunction" and row["status"] == "new" for row in rows)
    assert "CompiledFunction" in done.stdout and "memcpy DtoD" in done.stdout and "allreduce" in done.stdout


@case
def a_loader_with_workers_is_named(folder):
    rows = differences(named("resnet50_num_workers_0"), named("resnet50_num_workers_4"), "cpu")["rows"]
    assert any(row["significant"] and row["status"] == "gone" and "_SingleProcessDataLoaderIter" in row["name"] for row in rows)


@case
def gate_and_diff_have_the_same_figures(folder):
    for (before, after), metric in itertools.product(PAIRS, ("gpu", "cpu", "wall")):
        before, after = named(before), named(after)
        whole = differences(before, after, metric)["whole"]
        done = run("gate", before, after, "-m", metric, "-f", "json")
        row = json.loads(done.stdout)["rows"][0]
        assert [row[key] for key in ("before", "after", "p", "n_before", "n_after")] == [whole[key] for key in ("before", "after", "p", "n_before", "n_after")], (row, whole)
        if done.returncode and row["p"] is not None:
            assert whole["significant"] and run("diff", before, after, "-m", metric).returncode == 1, (before, metric)


@case
def a_trace_does_not_differ_from_itself(folder):
    compared = 0
    for trace in traces():
        done = subprocess.run([str(REPORT), "diff", trace, trace], capture_output=True, text=True, env=environment(), timeout=120)
        if done.returncode == 2: # nothing to compare
            continue
        compared += 1
        assert done.returncode == 0 and "no statistically significant change" in done.stdout, (trace, done.stdout[:2000])
        assert "largest changes" not in done.stdout and "replaced" not in done.stdout and "renamed" not in done.stdout, trace
    assert compared > 5, compared


def flat(told, forth):
    """The rows by their names in both runs, (first, second); the figures of the same order."""
    rows, names = [], {}
    sides = ("before", "after") if forth else ("after", "before")
    swapped = {"new": "gone", "gone": "new"}
    for row in told["rows"]:
        own = {"after": row["name"] + "|" + row.get("class", ""), "before": row.get("name_before", row["name"]) + "|" + row.get("class_before", row.get("class", ""))}
        above = names.get(row["parent"], ("", ""))
        names[row["id"]] = tuple(above[i] + "/" + own[side] + "|" + row["kind"] + row.get("domain", "") for i, side in enumerate(sides))
        status = row["status"] if forth else swapped.get(row["status"], row["status"])
        p = None if row["p"] is None else round(row["p"], 9)
        rows.append((names[row["id"]], status, row["significant"], row["outlier"], p, *(row[side] for side in sides), *(row["calls_" + side] for side in sides)))
    return sorted(rows, key=repr)


@case
def the_runs_in_reverse_give_the_mirror_image(folder):
    for before, after in PAIRS:
        before, after = named(before), named(after)
        forth, back = differences(before, after), differences(after, before)
        assert (forth["tested"], forth["found"]) == (back["tested"], back["found"]), (before, forth["tested"], back["tested"], forth["found"], back["found"])
        one, other = flat(forth, True), flat(back, False)
        assert one == other, (before, [pair for pair in zip(one, other) if pair[0] != pair[1]][:3])


main()
