#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real traces of torch.profiler (PPERF_TEST_DATA) against the results of independent readers. Every
metric of every expected answer is either compared here or listed in NOT_SHOWN with the reason."""
import collections, gzip, json, os, pathlib, re
from harness import Skip, case, info, main, report

WORK = ("kernel", "memcpy", "memset")
RANGES = ("op", "backward", "range", "optimizer", "step")
PARTS = {"events": "records", "sum_us": "sum_ns", "span_us": "span_ns", "busy_us": "busy_ns", "idle_us": "idle_ns", "computation_us": "computation_ns",
         "comm_us": "communication_ns", "exposed_comm_us": "exposed_communication_ns", "memcpy_us": "copy_ns", "exposed_memcpy_us": "exposed_copy_ns",
         "kernel_only_busy_us": "kernel_ns"}
ENGINE = "autograd::engine::evaluate_function: "
NOT_SHOWN = {
    "file": "which trace it is of",
    "by_ph_cat/*": "how the file is written; how many events it has is compared, and what is in no view is told by category",
    "flows/*": "arrows of the file: they say what correlation ids and sequence numbers say",
    "ops/*/self_cuda_ext_us": "by External ids, which name wrong operators in files of 2022 and 2023: they are not used but at an operator's very edge",
    "attribution/no_op_ext/*": "by External ids",
    "attribution/ext_us": "by External ids",
    "attribution/nest_vs_ext/*": "by External ids",
    "memory/by_device_type/0/peak_total_reserved": "the CPU's allocator reserves nothing: always 0",
}


def ns(us):
    return round(us * 1000)


def view(name, *arguments):
    return json.loads(report(name, *arguments, "-f", "json").stdout)


def tree(*arguments):
    """The tree as torch.profiler shows it: no folded labels, no steps, kernel names unchanged."""
    return view("tree", *arguments, "--no-fold", "--no-steps", "--demangle", "no")


def data():
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder or not (pathlib.Path(folder) / "expected").is_dir():
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of torch.profiler and what they hold")
    return pathlib.Path(folder)


def leaves(value, *path):
    """Every number of a document by its path. A named row of a list has its name in the path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, *path, key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for row in value:
            yield from leaves({key: inner for key, inner in row.items() if key != "name"}, *path, row["name"])
    else:
        yield path, value


def not_shown(path):
    return any(len(pattern) == len(path) and all(part in ("*", name) for part, name in zip(pattern, path)) for pattern in (key.split("/") for key in NOT_SHOWN))


# ---- what the tree says, by name ----

def add_up(view, operators):
    """Sums by operator, call and kernel. `operators`: names that count as operators whatever their
    kind."""
    by_id = {row["id"]: row for row in view["rows"]}
    sums = {what: collections.defaultdict(collections.Counter) for what in ("ops", "ranges", "calls", "kernels", "backward")}
    sums["nest"] = collections.Counter()
    for row in view["rows"]:
        name, kind = row["name"], row["kind"]
        if kind in RANGES and row.get("calls"):
            into = sums["ops" if name in operators else "ranges"][name]
            into.update({"count": row["calls"], "total_cpu_us": row["cpu_total_ns"], "self_cpu_us": row["cpu_self_ns"],
                         "self_cpu_x_rt_us": row["cpu_self_x_ns"], "total_cuda_us": row.get("gpu_total_ns", 0)})
            if kind == "backward" and not any(name.startswith(ENGINE) for name in row["path"][:-1]):
                sums["backward"][name]["total_cuda_us"] += row.get("gpu_total_ns", 0)
        if kind in ("api", "sync"):
            sums["calls"][name].update({"count": row["calls"], "total_us": row["cpu_total_ns"]})
        if kind in WORK:
            owner = by_id.get(row["parent"])
            while owner and not (owner["kind"] in ("op", "backward") or owner["name"] in operators):
                owner = by_id.get(owner["parent"])
            if owner:
                sums["ops"][owner["name"]].update({"self_cuda_us": row["gpu_self_ns"], "gpu_events": row["calls"]})
            sums["nest"].update({"inside" if owner else "outside": row["calls"], "ns inside" if owner else "ns outside": row["gpu_self_ns"]})
        if kind == "kernel":
            into = sums["kernels"][name]
            into.update({"count": row["calls"], "sum_us": row["gpu_self_ns"]})
            into["min_us"] = min(into.get("min_us", row["min_ns"]), row["min_ns"])
            into["max_us"] = max(into["max_us"], row["max_ns"])
    return sums


# ---- what the dump says, instance by instance ----

class Instance:
    def __init__(self, record, parent):
        self.name, self.node, self.parent, self.begin, self.end = record["name"], record["node"], parent, record["t_ns"], None
        self.children, self.gpu, self.gpu_below = [], 0, 0


class Instances:
    """Every range of a trace, its parent range, and the launches and allocations in it."""

    def __init__(self, path):
        self.all, self.open, self.calls, self.tensors, self.work, self.copies = [], collections.defaultdict(list), {}, [], [], collections.defaultdict(collections.Counter)
        records = [json.loads(line) for line in report("dump", path, "-f", "json").stdout.splitlines()]
        for record in records:
            if record["kind"] in ("push", "pop"):
                self.take_range(record)
        self.by_node = collections.defaultdict(list)
        for instance in self.all:
            self.by_node[instance.node].append(instance)
        for record in records:
            self.take(record)
        for record in self.work:
            self.own(record)

    def take_range(self, record):
        stack = self.open[record["tid"]]
        if record["kind"] == "push":
            parent = stack[-1] if stack else None
            stack.append(Instance(record, parent))
            self.all.append(stack[-1])
            if parent:
                parent.children.append(stack[-1])
        else:
            gone = next(instance for instance in reversed(stack) if instance.node == record["node"])
            gone.end = record["t_ns"]
            stack.remove(gone)

    def at(self, record):
        """The instance of the record's node that is open at the record's time."""
        for instance in reversed(self.by_node[record.get("node", 0)]):
            if instance.begin <= record["t_ns"] <= instance.end:
                return instance
        return None

    def take(self, record):
        kind = record["kind"]
        if "api" in record:
            instance = self.at(record)
            if instance:
                instance.children.append(None)
            self.calls.setdefault(record.get("correlation"), (record, instance))
        elif kind == "tensor":
            self.tensors.append((record, self.at(record)))
        elif kind in WORK:
            self.work.append(record)

    def own(self, record):
        if record["kind"] != "kernel":
            source, target = (str(record.get(key, "unknown")).title() for key in ("source_kind", "memory_kind" if record["kind"] == "memset" else "target_kind"))
            name = "Memset (%s)" % target if record["kind"] == "memset" else "Memcpy %s (%s -> %s)" % (record["copy_kind"], source, target)
            self.copies[name].update({"count": 1, "sum_us": record["duration_ns"], "bytes": record["bytes"]})
        call, instance = self.calls.get(record["correlation"], (None, None))
        while instance:
            instance.gpu_below += record["duration_ns"]
            instance = instance.parent

    def merged(self, operators):
        """Sums by name, as torch.profiler has them: an operator that is the only content of one
        with the same name is no call of its own."""
        sums = collections.defaultdict(collections.Counter)
        for instance in self.all:
            parent = instance.parent
            if not (parent and parent.name == instance.name and len(parent.children) == 1):
                sums[instance.name].update({"count_dedup": 1, "total_cpu_dedup_us": instance.end - instance.begin, "total_cuda_dedup_us": instance.gpu_below})
        return sums

    def launches(self):
        work, sums = collections.Counter(record["correlation"] for record in self.work), collections.defaultdict(collections.Counter)
        for correlation, count in work.items():
            if correlation in self.calls:
                sums[self.calls[correlation][0]["api"]].update({"launches": 1, "gpu_events": count, "several": count > 1})
        return {name: row for name, row in sums.items() if row["several"]}

    def memory(self, operators):
        sums = collections.defaultdict(collections.Counter)
        for record, instance in self.tensors:
            while instance and instance.name not in operators:
                instance = instance.parent
            taken = record["bytes"] >= 0
            sums[instance.name if instance else "(none)"].update({"events": 1, "allocs": taken, "frees": not taken, "alloc_bytes": record["bytes"] if taken else 0,
                                                                  "free_bytes": 0 if taken else -record["bytes"]})
        return sums


# ---- one beside the other ----

def part(work):
    return {key: work[of] + (work["unknown_ns"] if key == "idle_us" else 0) for key, of in PARTS.items()} if work else None # they call unknown time idle


def device_parts(got):
    devices = got["totals"]["gpus"]
    for key, of in (("gpu_all", lambda device: device), ("gpu_linked", lambda device: device["launched"])):
        yield (key,), part(of(devices[0])) if devices else None
    for device in devices:
        yield ("gpu_per_device", str(device["device"])), part(device)
        for stream in device["streams"]:
            yield ("gpu_per_stream", "%d/%d" % (device["device"], stream["stream"])), {"events": stream["records"], "sum_us": stream["sum_ns"], "busy_us": stream["busy_ns"]}


def cpu_memory(meta):
    if "import.cpu_memory" not in meta:
        return {}
    allocs, alloc_bytes, frees, free_bytes, *peak = map(int, re.findall(r"\d+", meta["import.cpu_memory"]))
    return {"events": allocs + frees, "allocs": allocs, "frees": frees, "alloc_bytes": alloc_bytes, "free_bytes": free_bytes, "peak_total_allocated": peak[0] if peak else None}


def gpu_memory(got, instances, operators):
    """Peaks that are missing in the file are computed from its events, and marked."""
    sums = dict(sum(instances.memory(operators).values(), collections.Counter()))
    said = not got["capture"]["sources"]["torch_memory"].startswith("partial")
    return {**sums, "peak_total_allocated": got["totals"]["allocated_peak_bytes"] if said else None,
            "peak_total_reserved": max((record["reserved"] for record, _ in instances.tensors), default=0) if said else None}


def figures(path, expected):
    """Every metric of the report, by the path that the expected answer has it under."""
    got, instances, meta = tree(path), Instances(path), info(path)["rows"][0]["meta"]
    operators = set(expected["ops"])
    sums, totals, counted = add_up(got, operators), got["totals"], got["integrity"]
    for name, backward in sums["backward"].items():  # backward work is below the operator that created it
        if ENGINE + name in sums["ops"]:
            sums["ops"][ENGINE + name]["total_cuda_us"] += backward["total_cuda_us"]
    yield ("gpus",), [device["name"] for device in got["capture"]["devices"]]
    yield ("events",), int(meta["import.events"])
    for kind in WORK:
        rows = [row for row in got["rows"] if row["kind"] == kind]
        yield (kind,), {"count": sum(row["calls"] for row in rows), "sum_us": sum(row["gpu_self_ns"] for row in rows)}
    yield from device_parts(got)
    yield ("kernel_names",), len(sums["kernels"])
    for what, key in (("kernels", "kernels"), ("ops", "ops"), ("calls", "runtime"), ("ranges", "user_annotations")):
        for name, row in sums[what].items():
            yield (key, name), row
    for name, row in instances.merged(operators).items():
        yield ("ops", name), row
    for name, row in instances.copies.items():
        yield ("memops", name), {**row, "without_bytes": 0}
    for name, row in instances.launches().items():
        yield ("multi_event_launches", name), row
    orphans = {"ns": sum(device["sum_ns"] - device["launched"]["sum_ns"] for device in totals["gpus"])}
    yield ("attribution", "orphan"), {"count": counted["without_launch"], "us": orphans["ns"]}
    yield ("attribution", "nest"), {"count": sums["nest"]["inside"], "us": sums["nest"]["ns inside"]}
    yield ("attribution", "no_op_nest"), {"count": sums["nest"]["outside"] - counted["without_launch"], "us": sums["nest"]["ns outside"] - orphans["ns"]}
    yield ("memory", "by_device_type", "0"), cpu_memory(meta)
    yield ("memory", "by_device_type", "1"), gpu_memory(got, instances, operators)
    for name, row in instances.memory(operators).items():
        yield ("memory", "cuda_by_op", name), row


def found(path, expected):
    """The metrics of the report, each by its own path."""
    flat = {}
    for where, row in figures(path, expected):
        if isinstance(row, dict):
            flat.update({(*where, key): value for key, value in row.items()})
        else:
            flat[where] = row
    return flat


def differences(expected, flat):
    for path, value in leaves(expected):
        wanted = ns(value) if (path[-1] == "us" or path[-1].endswith("_us")) and value is not None else value
        have = flat.get(path, 0 if isinstance(wanted, int) else None if wanted is None else wanted if wanted in ([], {}) else "nothing")
        if not not_shown(path) and have != wanted:
            yield "%s: %s, not %s" % (" / ".join(path), have, wanted)


@case
def every_figure_of_real_traces_is_as_known(folder):
    wrong, compared = [], collections.Counter()
    for path in sorted((data() / "expected").glob("*.json")):
        expected = json.loads(path.read_text())
        flat = found(data() / "kineto" / expected["file"], expected)
        here = list(differences(expected, flat))
        compared.update("not shown" if not_shown(where) else "compared" for where, _ in leaves(expected))
        wrong += ["%s: %s" % (path.name, difference) for difference in here]
    assert not wrong, "%d of %d differ: %s" % (len(wrong), compared["compared"], "; ".join(wrong[:40]))
    assert compared["compared"] > 15000, compared
    print("# %d figures compared, %d not shown" % (compared["compared"], compared["not shown"]))


def operators_of(path, operators):
    """Operators as torch.profiler and its viewer have them: one that repeats its caller's name
    counts as the caller."""
    got, instances = tree(path), Instances(path)
    sums, merged = add_up(got, operators), instances.merged(operators)
    for name in operators:
        row = sums["ops"][name]
        yield name, (merged[name]["count_dedup"], merged[name]["total_cpu_dedup_us"], row["self_cpu_x_rt_us"], merged[name]["total_cuda_dedup_us"], row["self_cuda_us"])


@case
def small_traces_are_as_another_reader_has_them(folder):
    """Except three traces whose launches are on another thread than the operator of their ids. That
    reader trusts the ids, which real files of two years have wrong."""
    micro = data() / "kineto" / "micro"
    for name, known in json.loads((micro / "EXPECTED_torch_tb_profiler.json").read_text()).items():
        if name in ("test_group_by_kernel_columns", "test_group_by_kernel_columns_invalid_input", "test_memory_view"):
            continue
        path = micro / (name + ".json")
        rows = {row["name"]: tuple([row["calls"], *(1000 * row[key] for key in ("host_total", "host_self", "device_total", "device_self"))]) for row in known["ops"]}
        assert dict(operators_of(path, set(rows))) == rows, (name, dict(operators_of(path, set(rows))), rows)
        kernels = add_up(tree(path), set())["kernels"]
        assert {row["name"]: (row["count"], 1000 * row["sum"]) for row in known["kernels"] or []} == {kernel: (row["count"], row["sum_us"]) for kernel, row in kernels.items()}, name
        steps = {row["name"].split("#")[1]: row["cpu_total_ns"] for row in tree(path)["rows"] if row["name"].startswith("ProfilerStep#")}
        if steps and "kernel" not in name and "overlap" not in name:
            assert sorted(steps) == sorted(known["step_names"]), (name, steps, known["step_names"])


@case
def a_training_is_as_its_viewer_has_it(folder):
    """The second reader's tables of a real training: operators, and kernels with the demangler of
    its time."""
    path = data() / "kineto" / "reference" / "tb_plugin" / "result_check_file.txt"
    tables = [json.loads(line) for line in path.read_text().splitlines()]
    trace = next((data() / "kineto").glob("kineto__resnet50_num_workers_0*"))
    rows = {row["name"]: tuple(row[key] * 1000 if key != "calls" else row[key] for key in ("calls", "host_total_duration", "host_self_duration", "device_total_duration",
                                                                                         "device_self_duration")) for row in tables[2]["data"]}
    have = dict(operators_of(trace, set(rows)))
    assert have == rows, [(name, have[name], rows[name]) for name in rows if have[name] != rows[name]][:4]
    kernels = add_up(tree(trace), set())["kernels"]
    known = {row[0]: (row[2], 1000 * row[3], 1000 * row[5], 1000 * row[6]) for row in tables[3]["data"]["rows"]}
    assert {name: (row["count"], row["sum_us"], row["max_us"], row["min_us"]) for name, row in kernels.items()} == known


@case
def a_gpus_utilisation_is_as_a_viewer_draws_it(folder):
    """For each millisecond the percentage in which a kernel ran. Their sum is the kernel time. The
    viewer's estimate of used multiprocessors is not compared: the report has no such metric."""
    folder = data() / "kineto" / "reference" / "tb_plugin"
    drawn = [(event["ts"], event["args"]["GPU Utilization"]) for event in json.loads((folder / "gpu_metrics_expected.json").read_text())["traceEvents"]
             if event["ph"] == "C" and event["name"] == "GPU 0 Utilization"]
    percents = sum(share * (after - time) for (time, share), (after, _) in zip(drawn, drawn[1:]))
    assert round(percents * 10) == tree(folder / "gpu_metrics_input.json")["totals"]["gpus"][0]["kernel_ns"] > 0, percents


# The one file of real traces with a launch whose record is lost: `cudaDeviceSynchronize` waited for it.
INCOMPLETE = {"hta__trace_compare~test~test.json.gz": 1}


@case
def a_complete_real_trace_is_said_to_be_complete(folder):
    for path in sorted([*(data() / "kineto").glob("*.json*"), *(data() / "verdicts").glob("*.json*"), *(data() / "kineto/micro").glob("test*.json"), *(data() / "nsys").glob("*.sqlite")]):
        lost = INCOMPLETE.get(path.name, 0)
        assert tree(path)["integrity"]["missing_records"] == lost, path.name
        result = report("tree", path, "--strict", check=None)
        assert result.returncode == (2 if lost else 0), (path.name, result.stderr[-300:])


@case
def no_share_of_a_real_trace_is_above_one(folder):
    """Rows of `table` include what is outside of steps, and so does the whole that they are parts of."""
    for path in sorted([*(data() / "kineto").glob("*.json*"), *(data() / "verdicts").glob("*.json*"), *(data() / "kineto/micro").glob("test*.json")]):
        for name, *options in (("table",), ("table", "-m", "cpu"), ("table", "-m", "wall"), ("table", "--by", "module", "-m", "cpu"), ("tree", "-m", "cpu")):
            over = [(row["name"], row["share"]) for row in view(name, path, *options)["rows"] if (row.get("share") or 0) > 1 + 1e-9]
            assert not over, (path.name, name, options, over[:3])


@case
def nothing_of_a_real_trace_is_lost_or_out_of_order(folder):
    for path in sorted((data() / "kineto").glob("*.json*")):
        got = tree(path)
        assert got["integrity"]["conserved"] and not got["integrity"]["clock_violations"], path.name
        totals = got["totals"]
        assert totals["attributed_ns"] + totals["unattributed_ns"] == totals["gpu_sum_ns"] == sum(device["sum_ns"] for device in totals["gpus"]), path.name


@case
def steps_and_backward_of_real_traces_are_found(folder):
    got = view("tree", data() / "kineto" / "hta__nccl_parser_config~nccl_data.json.gz")
    steps, backward = got["capture"]["steps"], [row for row in got["rows"] if row["name"].endswith(" (bwd)")]
    assert steps["count"] == 3 and steps["confidence"] == "high", steps
    assert sum(row.get("gpu_total_ns", 0) for row in backward) > 0.3 * got["totals"]["gpu_sum_ns"]
    assert next(row for row in got["rows"] if row["name"] == "aten::conv2d (bwd)")["gpu_total_ns"] > 0


@case
def steps_are_those_of_the_gpu_where_the_host_is_ahead(folder):
    path = data() / "verdicts" / "tl__mi300~resnet_act_checkpoint.json.gz"
    if not path.exists():
        return
    steps = [row for row in view("steps", path)["rows"] if row["kind"] == "step"]
    events = json.loads(gzip.open(path).read())["traceEvents"]
    marks = sorted(event["ts"] for event in events if event["name"].startswith("ProfilerStep#") and event["cat"] == "gpu_user_annotation")
    between = [later - earlier for earlier, later in zip(marks, marks[1:])]
    assert len(steps) == 3 and [abs(row["step_gpu_ns"] / 1000 - length) < 150 for row, length in zip(steps, between)] == [True] * 2, (steps, between)
    assert all(row["busy_ns"] + row["idle_ns"] == row["step_gpu_ns"] and row["step_ahead_ns"] > row["duration_ns"] for row in steps), steps
    verdict = next(row for row in view("diagnose", path)["rows"] if row["kind"] == "verdict")
    assert "56.52 ms in 3 steady-state steps" in verdict["evidence"], verdict


@case
def the_backward_of_a_lookup_is_named_after_the_lookup(folder):
    got = view("tree", data() / "kineto" / "param__dlrm_worker1_step_12.1694128201556.pt.trace.json.gz")
    backward = {row["name"] for row in got["rows"] if row["name"].endswith(" (bwd)")}
    assert "fbgemm::split_embedding_codegen_lookup_adagrad_function (bwd)" in backward, backward
    assert not any("bounds_check" in name for name in backward), backward


@case
def a_collective_is_compared_with_equal_ones(folder):
    finding, = (row for row in view("diagnose", data() / "kineto" / "param__dlrm_worker1_step_12.1694128201556.pt.trace.json.gz")["rows"] if row["name"] == "exposed-communication")
    assert "a message of 24.58 kB takes 7.64 ms, the fastest of that size 545.00" in finding["evidence"], finding
    assert "the rest is a wait for other ranks" in finding["evidence"], finding
    got = next(row for row in view("overlap", data() / "kineto" / "hta__nccl_parser_config~nccl_data.json.gz")["rows"] if row["kind"] == "communication")
    assert got["bytes"] == 307323096 and got["bus_bytes_per_s"] == got["message_bytes_per_s"], got # two ranks: the factor of all-reduce is 1


@case
def the_gpu_with_work_is_named(folder):
    screen = report(data() / "kineto" / "param__dlrm_worker1_step_12.1694128201556.pt.trace.json.gz").stdout.decode()
    assert "device    GPU 1 had work, of GPUs 0-7 Tesla V100" in screen, screen


@case
def several_files_are_the_ranks_of_a_run(folder):
    files = sorted((data() / "kineto").glob("param__dlrm_worker*.gz"))
    got = view("tree", *files, "--all")
    assert sorted(p["rank"] for p in got["capture"]["processes"]) == [0, 1, 2, 3]
    assert got["totals"]["gpu_sum_ns"] == ns(6851 + 12601 + 4579 + 11042)
    assert view("tree", *files, "--rank", "2")["totals"]["gpu_sum_ns"] == ns(4579)


@case
def any_view_takes_a_real_trace(folder):
    path = data() / "kineto" / "tl__h100~Falconsai_nsfw_image_detection__1016002.json.gz"
    for name in ("table", "kernels", "memory", "critical", "info"):
        assert report(name, path).stdout
    screen = report(path).stdout.decode()
    assert "a file of torch.profiler" in screen 
    assert "ViTLayer.* (ViTLayer) ×12" in screen, screen


main()
