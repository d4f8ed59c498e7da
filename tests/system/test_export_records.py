#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`export` of single events: chrome, perfetto, sqlite and opprof. pperf reads its chrome files back,
and every figure is that of the first trace; the others have the sums of the text views. For the
demo of the simulated device, and with PPERF_TEST_DATA for traces of other tools."""
import collections, glob, gzip, json, os, pathlib, sqlite3, subprocess
import chrome_rules, perfetto_rules
from harness import BUILD, REPORT, SANITIZED, Skip, case, environment, main, traced

GIVEN = pathlib.Path(os.environ.get("PPERF_TEST_DATA", "/nonexistent"))
# What a file cannot say: its own path and ids, and the counts of an import.
ASIDE = {"files", "file", "path_of_file", "capture", "integrity", "warnings", "command", "next", "id"}
VIEWS = ("tree", "idle", "overlap", "streams", "categories", "kernels", "queue", "table", "steps", "memory", "critical-path", "ranks", "roofline", "table --by stack")


def export(form, trace, *options):
    result = subprocess.run([str(REPORT), "export", form, *map(str, options), str(trace)], capture_output=True, env=environment(LC_ALL="C.UTF-8"), timeout=300)
    assert result.returncode == 0, (form, trace, result.returncode, result.stderr[-500:])
    return result.stdout


def view(name, trace):
    result = subprocess.run([str(REPORT), *name.split(), "-f", "json", str(trace)], capture_output=True, env=environment(), timeout=300)
    return json.loads(result.stdout) if result.stdout else {"rows": [], "totals": {}}


def comparable(value):
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in ASIDE}
    return [comparable(item) for item in value] if isinstance(value, list) else value


def kineto_files():
    paths = sorted(glob.glob(str(GIVEN / "kineto" / "*.json*")) + glob.glob(str(GIVEN / "kineto" / "micro" / "test*.json")) + glob.glob(str(GIVEN / "verdicts" / "*.gz")))
    if not paths:
        raise Skip("PPERF_TEST_DATA has no traces")
    return paths[::9] if SANITIZED else paths[::3]


def demo(folder):
    program = BUILD / "cudasim" / "13" / "demo_train"
    if not program.exists():
        raise Skip("the simulated device is not built: make cudasim")
    if not (folder / "trace.bin").exists():
        traced(folder, program, "8")
    return folder / "trace.bin"


def written(folder, events, **members):
    """A file of torch.profiler with these events."""
    path = folder / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, **members, "traceEvents": events}))
    return path


def span(category, name, begin, duration, tid=1, pid=4100, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": begin, "dur": duration, "args": args}


def kernel(name, begin, duration, correlation, stream=7):
    return span("kernel", name, begin, duration, stream, 0, correlation=correlation, stream=stream, device=0, context=1, grid=[2, 1, 1], block=[64, 1, 1])


def work_by_name(rows):
    sums = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        sums[row["name"]][0] += row["calls"]
        sums[row["name"]][1] += row["gpu_total_ns"]
    return sums


# ---- chrome ----

@case
def a_file_of_torch_profiler_survives_chrome_with_every_figure(folder):
    for trace in kineto_files():
        path = folder / "out.json.gz"
        export("chrome", trace, "-o", path)
        chrome_rules.check(path.read_bytes())
        for name in VIEWS:
            assert comparable(view(name, path)) == comparable(view(name, trace)), (trace, name)


@case
def the_demo_survives_chrome_with_its_sums(folder):
    trace, path = demo(folder), folder / "out.json"
    path.write_bytes(export("chrome", trace))
    chrome_rules.check(path.read_bytes())
    before, after = view("tree", trace)["totals"], view("tree", path)["totals"]
    for key in ("gpu_sum_ns", "gpu_busy_ns", "gpu_idle_ns", "gpu_copy_ns", "gpu_exposed_copy_ns", "gpu_computation_ns", "attributed_ns"):
        assert before[key] == after[key], (key, before[key], after[key])
    assert work_by_name(view("kernels", trace)["rows"]) == work_by_name(view("kernels", path)["rows"])
    roots = [{row["name"]: row.get("gpu_total_ns") for row in view("tree", one)["rows"] if row["depth"] == 0} for one in (trace, path)]
    assert roots[0] == roots[1], roots


@case
def copies_have_the_names_that_readers_know(folder):
    names = {event["name"] for event in json.loads(export("chrome", demo(folder)))["traceEvents"] if event.get("cat") in ("gpu_memcpy", "gpu_memset")}
    assert names and all(name.startswith(("Memcpy HtoD (", "Memcpy DtoH (", "Memcpy DtoD (", "Memset (")) for name in names), names


@case
def overlapping_kernels_get_a_thread_of_their_own(folder):
    events = [span("user_annotation", "all", 0, 100), span("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=1), span("cuda_runtime", "cudaLaunchKernel", 3, 1, correlation=2),
              kernel("first", 10, 20, 1), kernel("second", 25, 20, 2)]
    path = written(folder, events)
    trace = chrome_rules.check(export("chrome", path))
    first, second = (event for event in trace["traceEvents"] if event.get("cat") == "kernel")
    assert first["tid"] == 7 and second["tid"] != 7 and first["args"]["stream"] == second["args"]["stream"] == 7, (first, second)
    labels = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name" and event["pid"] == 0}
    assert labels == {7: "stream 7", second["tid"]: "stream 7 (2)"}, labels
    slices = perfetto_rules.check(export("perfetto", path)).slices
    assert sum(end - begin for _, name, category, begin, end in slices if category == "kernel") == 40000, slices


@case
def arrows_join_operators_and_backward(folder):
    events = [span("cpu_op", "aten::mm", 0, 10, **{"Sequence number": 5, "External id": 1}), span("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=1),
              span("cpu_op", "MmBackward0", 30, 10, tid=2, **{"Sequence number": 5, "Fwd thread id": 1, "External id": 2}), kernel("k", 3, 5, 1)]
    arrows = collections.Counter((event["cat"], event["ph"], event["tid"]) for event in chrome_rules.check(export("chrome", written(folder, events)))["traceEvents"] if event["ph"] in "sf")
    assert arrows == {("fwdbwd", "s", 1): 1, ("fwdbwd", "f", 2): 1, ("ac2g", "s", 1): 1, ("ac2g", "f", 7): 1}, arrows


@case
def processes_have_pids_of_their_own(folder):
    trace = demo(folder)
    (folder / "again.bin").write_bytes(trace.read_bytes())
    result = subprocess.run([str(REPORT), "export", "chrome", str(trace), str(folder / "again.bin"), "--all"], capture_output=True, env=environment(), timeout=300)
    assert result.returncode == 0, result.stderr
    events = chrome_rules.check(result.stdout)["traceEvents"]
    pids = collections.Counter(event["pid"] for event in events if event["name"] == "process_name")
    assert len(pids) == 4 and set(pids.values()) == {1}, pids


@case
def annotations_of_gpu_work_are_those_of_the_file(folder):
    for trace in kineto_files():
        events = {path: chrome_rules.load(data)["traceEvents"] for path, data in ((trace, pathlib.Path(trace).read_bytes()), ("ours", export("chrome", trace)))}
        found = [sorted((event["name"], round(event["dur"])) for event in events[path] if event.get("cat") == "gpu_user_annotation") for path in (trace, "ours")]
        # Kineto makes them longer than their work, so that viewers put the work inside: by 2 ns, once by 1.5 us.
        assert len(found[0]) == len(found[1]) and all(a[0] == b[0] and abs(a[1] - b[1]) <= 2 for a, b in zip(*found)), (trace, found)
    path = written(folder, [span("user_annotation", "outer", 0, 100), span("user_annotation", "inner", 20, 20), span("gpu_user_annotation", "outer", 1, 1, 7, 0),
                            *(span("cuda_runtime", "cudaLaunchKernel", at, 1, correlation=at) for at in (10, 30, 50)), kernel("a", 12, 5, 10), kernel("b", 32, 5, 30), kernel("c", 52, 5, 50)])
    own = [event for event in chrome_rules.check(export("chrome", path))["traceEvents"] if event.get("cat") == "gpu_user_annotation"]
    assert [(event["name"], event["ts"] - own[0]["ts"], event["dur"], event["tid"]) for event in own] == [("outer", 0, 45, 7), ("inner", 20, 5, 7)], own


@case
def only_the_steps_that_are_wanted_are_written(folder):
    trace = demo(folder)
    steps = [row for row in view("steps", trace)["rows"] if row["kind"] == "step"]
    if not steps:
        raise Skip("the demo has no steps")
    number = steps[-2]["step"]
    whole, part = (json.loads(export("chrome", trace, *options))["traceEvents"] for options in ((), ("--steps", number)))
    begin, end = (sum(steps[-2][key] for key in keys) for keys in (("start_ns",), ("start_ns", "duration_ns")))
    host = [event for event in part if event["ph"] == "X" and event["cat"] in ("user_annotation", "cuda_runtime")]
    base = json.loads(export("chrome", trace))["baseTimeNanoseconds"]
    shift = view("tree", trace)["capture"]["start_unix_ns"] - base
    assert 0 < len(part) < len(whole) / 2, (len(part), len(whole))
    assert all(begin - 1 <= round(event["ts"] * 1000) - shift <= end + 1 for event in host), (begin, end)


# ---- perfetto ----

def perfetto_is_as_the_text(trace):
    data = export("perfetto", trace)
    found = perfetto_rules.check(data)
    gpus, sums = view("tree", trace)["totals"], collections.Counter()
    for _, name, category, begin, end in found.slices:
        sums[category] += end - begin
    assert sum(sums[kind] for kind in ("kernel", "gpu_memcpy", "gpu_memset")) == gpus["gpu_sum_ns"], (trace, sums)
    causes = collections.Counter()
    for row in view("idle", trace)["rows"]:
        if row["kind"] == "cause" and row["depth"] == 1:
            causes[row["name"]] += row["gap_ns"]
    idle = collections.Counter()
    for _, name, category, begin, end in found.slices:
        if category == "idle":
            idle[name] += end - begin
    assert sum(idle.values()) == sum(causes.values()) and idle == causes, (trace, idle, causes)
    tensors = [max(values) for track, values in found.counters.items() if found.tracks[track]["name"] == "allocated"]
    assert not tensors or max(tensors) >= (gpus["allocated_peak_bytes"] or 0), (trace, tensors)
    return found


@case
def perfetto_has_the_sums_of_the_text_views(folder):
    found = perfetto_is_as_the_text(demo(folder))
    assert found.flows and any(track["name"].startswith("stream ") for track in found.tracks.values())
    assert perfetto_rules.check(gzip.compress(export("perfetto", demo(folder)))).slices == found.slices
    lengths = {found.tracks[track]["name"]: values for track, values in found.counters.items() if found.tracks[track]["name"].startswith("queue of ")}
    assert all(values[-1] == 0 for values in lengths.values()), lengths
    most = {"queue of " + row["name"]: row["outstanding_max"] for row in view("queue", demo(folder))["rows"] if row["kind"] == "stream"}
    assert most == {name: max(values) for name, values in lengths.items()}, (most, lengths)


@case
def perfetto_has_the_sums_of_given_traces(folder):
    for trace in kineto_files()[::3]:
        perfetto_is_as_the_text(trace)


# ---- sqlite ----

def path_of(rows, row):
    return (*path_of(rows, rows[row["parent"]]), row["name"]) if row["parent"] is not None else (row["name"],)


def check_database(folder, trace):
    path = folder / "out.sqlite"
    export("sqlite", trace, "-o", path)
    database = sqlite3.connect(path)
    query = lambda text: database.execute(text).fetchall()
    assert query("PRAGMA integrity_check") == [("ok",)] and query("PRAGMA user_version") == [(1,)]
    tree = view("tree", trace)
    rows, keys = {row["id"]: row for row in tree["rows"]}, ("calls", "cpu_total_ns", "cpu_self_ns", "gpu_total_ns")
    text, places = collections.Counter(), dict(query("SELECT place, path FROM path"))
    for row in tree["rows"]:
        for key in keys:
            text[" / ".join(path_of(rows, row)), key] += row.get(key) or 0
    own = collections.Counter()
    for place, *values in query("SELECT id, %s FROM tree" % ", ".join(keys)):
        for key, value in zip(keys, values):
            own[places[place], key] += value or 0
    short = {item: value for item, value in text.items() if all(len(name) < 200 for name in item[0].split(" / "))}
    assert short and all(own[item] == value for item, value in short.items()), (trace, [(item, value, own[item]) for item, value in short.items() if own[item] != value][:3])
    kernels = sorted((row["calls"], row["gpu_total_ns"]) for row in view("kernels", trace)["rows"])
    assert kernels == sorted(query("SELECT calls, gpu_total_ns FROM kernels")), trace
    idle = sorted((row["device"], row["name"], row["gap_ns"], row["gaps"], row["gap_max_ns"]) for row in view("idle", trace)["rows"] if row["kind"] == "cause" and row["depth"] == 1)
    assert idle == sorted(query("SELECT device, cause, gap_ns, gaps, gap_max_ns FROM idle")), trace
    steps = [tuple(row.get(key) for key in ("step", "duration_ns", "busy_ns", "idle_ns", "kernels")) for row in view("steps", trace)["rows"] if row["kind"] == "step"]
    assert steps == query("SELECT number, duration_ns, busy_ns, idle_ns, kernels FROM steps"), trace
    peak = query("SELECT coalesce(sum(allocated_at_peak), 0), coalesce(sum(reserved_at_peak), 0) FROM memory_peak")[0]
    assert peak == (tree["totals"]["allocated_peak_bytes"] or 0, tree["totals"]["reserved_peak_bytes"] or 0), (trace, peak)
    return query


@case
def views_of_the_database_equal_the_text_views(folder):
    query = check_database(folder, demo(folder))
    assert query("SELECT count(*) FROM gpu")[0][0] > 100 and query("SELECT count(*) FROM gap")[0][0] > 0
    dump = "\n".join(sqlite3.connect(folder / "out.sqlite").iterdump())
    assert "CREATE VIEW memory_peak" in dump


@case
def databases_of_given_traces_equal_the_text_views(folder):
    for trace in kineto_files()[::2]:
        check_database(folder, trace)


# ---- opprof ----

def of(value, *types):
    return type(value) in types


def check_opprof_kernel(item, attributed):
    assert all(of(item[key], str) for key in ("kernel_id", "kernel_name", "attribution_method", "confidence")), item
    assert all(of(item[key], int) for key in ("stream_id", "device_id", "start_ns", "end_ns", "duration_ns")), item
    assert item["duration_ns"] == item["end_ns"] - item["start_ns"] >= 0, item
    assert all(item[key] is None or [type(number) for number in item[key]] == [int] * 3 for key in ("grid_dim", "block_dim")), item
    assert item["attribution_method"] in ("torch_profiler", "nvtx", "inductor_fusion", "unattributed") and item["confidence"] in ("high", "medium", "low", "unattributed"), item
    assert (item["attribution_method"] == "unattributed") == (item["confidence"] == "unattributed") == (not attributed), item
    assert all(of(value, int, float, str) for value in item["metrics"]["raw"].values()), item


def check_opprof(trace):
    data = json.loads(export("opprof", trace))
    meta, seen = data["capture_metadata"], []
    assert data["schema_version"] == "1.0" and all(of(meta[key], str) for key in ("model_name", "torch_version", "compile_mode", "capture_timestamp_utc")), meta
    for operator in data["operators"]:
        kernels, sums = operator["kernels"], operator["aggregated"]
        assert of(operator["operator_id"], str) and of(operator["operator_name"], str) and of(operator["call_index"], int) and of(operator["is_fused"], bool), operator
        assert operator["nvtx_range"]["end_ns"] >= operator["nvtx_range"]["start_ns"]
        assert sums["kernel_count"] == len(kernels) > 0 and sums["total_duration_ns"] == sum(item["duration_ns"] for item in kernels)
        assert sums["dominant_kernel_id"] in {item["kernel_id"] for item in kernels}
        for item in kernels:
            check_opprof_kernel(item, True)
        seen += kernels
    for item in data["unattributed_kernels"]:
        check_opprof_kernel(item, False)
    seen += data["unattributed_kernels"]
    ids = [operator["operator_id"] for operator in data["operators"]]
    assert len({item["kernel_id"] for item in seen}) == len(seen) and len(set(ids)) == len(ids), trace
    kernels = view("kernels", trace)["rows"]
    assert sum(item["duration_ns"] for item in seen) == sum(row["gpu_total_ns"] for row in kernels) and len(seen) == sum(row["calls"] for row in kernels), trace
    return data


@case
def operators_have_all_kernels_once(folder):
    assert check_opprof(demo(folder))["unattributed_kernels"]
    events = [span("cpu_op", "aten::mm", 0, 10, **{"External id": 1}), span("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=1), span("cpu_op", "aten::mm", 20, 10, **{"External id": 2}),
              span("cuda_runtime", "cudaLaunchKernel", 21, 1, correlation=2), kernel("triton_poi_fused_add_0", 3, 5, 1), kernel("b", 30, 6, 2)]
    first, second = check_opprof(written(folder, events))["operators"]
    assert first["operator_id"] == "aten::mm_0" and first["is_fused"] and second["operator_id"] == "aten::mm_1" and not second["is_fused"], (first, second)


@case
def operators_of_given_traces_have_all_kernels_once(folder):
    for trace in kineto_files()[::2]:
        check_opprof(trace)


# ---- all formats ----

@case
def hostile_names_stay_in_their_place(folder):
    names = ['quote " and \\ back', "line\nbreak", "</script>", "x" * 100000, "\u202eright", "", "tab\there", "\x00zero", "__proto__", "' OR 1=1; DROP TABLE gpu; --"]
    events = [span("cpu_op", name, 10 * i, 5, **{"External id": i + 1}) for i, name in enumerate(names)]
    events += [span("cuda_runtime", "cudaLaunchKernel", 10 * i + 1, 1, correlation=i + 1) for i in range(len(names))]
    events += [kernel(name, 10 * i + 2, 3, i + 1) for i, name in enumerate(names)]
    path = written(folder, events)
    got = [event["name"] for event in json.loads(export("chrome", path))["traceEvents"] if event.get("cat") == "kernel"]
    assert len(got) == len(names) and got[0] == names[0] and got[-1] == names[-1], [name[:50] for name in got]
    assert sum(end - begin for _, _, category, begin, end in perfetto_rules.check(export("perfetto", path)).slices if category == "kernel") == 3000 * len(names)
    export("sqlite", path, "-o", folder / "out.sqlite")
    assert sqlite3.connect(folder / "out.sqlite").execute("SELECT sum(duration_ns) FROM gpu").fetchall() == [(3000 * len(names),)]
    assert len(json.loads(export("opprof", path))["operators"]) == len(names)


@case
def nothing_of_the_environment_is_written(folder):
    token = "hf_SeCrEtToKeN"
    secrets = {"environment": {"HF_TOKEN": token}, "ENV": [token], "PROC": {"environ": token}, "env.HF_TOKEN": token}
    events = [span("cpu_op", "aten::mm", 0, 10, **{"External id": 1, "env": token}), span("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=1, environ=token), kernel("k", 3, 5, 1),
              *({"ph": "M", "name": name, "pid": 4100, "tid": 0, "ts": 0, "args": {"HF_TOKEN": token, "env": token}} for name in ("process_env", "PROC", "ENV"))]
    traced(folder, BUILD / "tests" / "programs" / "ranges", "1", "100", env={"HF_TOKEN": token})
    for trace in (written(folder, events, **secrets), *folder.glob("*.bin")):
        for form in ("chrome", "perfetto", "sqlite", "opprof", "folded", "speedscope", "pprof", "dot", "graph"):
            data = export(form, trace)
            assert token.encode() not in (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data), (form, trace)


@case
def empty_and_cut_traces_are_written_too(folder):
    trace = demo(folder)
    data = trace.read_bytes()
    (folder / "cut.bin").write_bytes(data[:len(data) * 2 // 3])
    for path in (folder / "cut.bin", written(folder, [])):
        chrome_rules.check(export("chrome", path))
        perfetto_rules.check(export("perfetto", path))
        assert export("sqlite", path).startswith(b"SQLite format 3\0")
        assert json.loads(export("opprof", path))["schema_version"] == "1.0"


if __name__ == "__main__":
    main()
