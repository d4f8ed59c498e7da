#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables of traces of torch.profiler: a small one made here and, with PPERF_TEST_DATA, real ones.
Self times add up to the whole for every --by, operators have their known metrics, and GPU work has
a category."""
import json, os, pathlib
from harness import Skip, case, main, report

KEYS = ("module", "category", "rank", "step", "thread", "stream", "shape", "stack")
WORK = ("kernel", "memcpy", "memset", "graph")
# A kernel that somebody made up for a test, by what is in the name of its trace: its name says nothing. It is `other`, and nothing else may be: a rule for it
# would call work of programs by a wrong name.
NAMELESS = {"test_group_by_kernel_columns": "kernel1"}


def traces():
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder or not (pathlib.Path(folder) / "kineto").is_dir():
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of torch.profiler and what they hold")
    return [path for path in sorted((pathlib.Path(folder) / "kineto").rglob("*.json*"))
            if "expected" not in path.name.lower()]


def view(*arguments):
    return json.loads(report(*arguments, "-f", "json").stdout)


def total(rows, key):
    return sum(row.get(key) or 0 for row in rows)


def imported(folder, **args):
    path = folder / "trace.json"
    rows = [("cpu_op", "aten::mm", 100, 50, 1, args), ("cuda_runtime", "cudaLaunchKernel", 110, 10, 1, {"correlation": 1}),
            ("kernel", "gemm", 200, 30, 7, {"correlation": 1, "device": 0, "stream": 7})]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "pid": 0 if category == "kernel" else 7, "tid": tid, "args": more}
        for category, name, start, duration, tid, more in rows]}))
    return path


@case
def shapes_of_torch_profiler_are_keys_and_missing_ones_a_sentence(folder):
    rows = view("table", imported(folder, **{"Input Dims": [[2, 3], [3, 4]]}), "--by", "shape")["rows"]
    assert [(row["name"], row["gpu_self_ns"], row["cpu_self_ns"]) for row in rows] == [("aten::mm  [[2, 3], [3, 4]]", 30000, 50000)], rows
    for key, setting in (("shape", "record_shapes=True"), ("stack", "with_stack=True"), ("module", "with_modules=True")):
        table = view("table", imported(folder), "--by", key)
        assert not table["rows"] and [text for text in table["warnings"] if setting in text], table["warnings"]


@case
def own_times_add_up_for_every_key(folder):
    for path in traces():
        table = view("table", path)
        gpu, cpu = table["totals"]["gpu_sum_ns"], total(table["rows"], "cpu_self_ns")
        assert total([row for row in table["rows"] if row["kind"] not in WORK], "gpu_self_ns") == gpu, path
        for key in KEYS:
            by = view("table", path, "--by", key)
            assert by["rows"] or by["warnings"], (path, key)
            if not by["rows"]:
                continue
            assert total(by["rows"], "gpu_self_ns") == gpu, (path, key)
            assert key in ("stream", "stack") or total(by["rows"], "cpu_self_ns") == cpu, (path, key)
            for row in by["rows"]:
                assert (row.get("gpu_self_ns") or 0) <= (row.get("gpu_total_ns") or 0) <= gpu, (path, key, row)
                assert (row.get("cpu_self_ns") or 0) <= (row.get("cpu_total_ns") or 0) <= cpu, (path, key, row)


@case
def streams_have_the_figures_that_are_known(folder):
    for path in traces():
        expected = path.parent.parent / "expected" / path.name.replace(".gz", "")
        if not expected.exists():
            continue
        known = json.loads(expected.read_text())["gpu_per_stream"]
        rows = {row["name"]: row for row in view("table", path, "--by", "stream")["rows"]}
        assert len(rows) == len(known), (path, rows.keys(), known.keys())
        for name, figures in known.items():
            row = rows["device %s, stream %s" % tuple(name.split("/"))]
            assert (row["calls"], row["gpu_self_ns"]) == (figures["events"], round(figures["sum_us"] * 1000)), (path, name)


@case
def nearly_all_work_has_a_category(folder):
    for path in traces():
        nameless = next((NAMELESS[name] for name in NAMELESS if name in path.name), None)
        unsaid = total((row for row in view("kernels", path)["rows"] if row["name"] == nameless), "gpu_total_ns")
        assert (unsaid > 0) == (nameless is not None), path
        categories = view("categories", path)
        gpu = categories["totals"]["gpu_sum_ns"]
        rows = {row["name"]: row["gpu_total_ns"] for row in categories["rows"] if row["depth"] == 0}
        assert sum(rows.values()) == gpu, path
        assert unsaid <= rows.get("other", 0) <= unsaid + 0.05 * gpu, "%s: %.1f %% is other" % (path, 100 * rows["other"] / gpu)


@case
def what_a_convolutional_network_is_made_of(folder):
    path = next(path for path in traces() if "resnet50_num_workers_0" in path.name)
    rows = {row["name"]: row for row in view("table", path, "--by", "category")["rows"]}
    assert rows["convolution"]["gpu_self_ns"] > 0.6 * 603558000 and rows["norm"]["gpu_self_ns"] > 0.1 * 603558000
    assert rows["memcpy"]["gpu_self_ns"] == 11492000 and rows["memset"]["gpu_self_ns"] == 534000


main()
