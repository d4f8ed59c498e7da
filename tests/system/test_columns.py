#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--columns in every format. With PPERF_TEST_DATA also on real traces: the metrics charged to
owners add up to the whole."""
import csv, io, json, os, pathlib
from harness import Skip, case, main, report

PARTS = ("gpu_forward_ns", "gpu_backward_ns", "gpu_recompute_ns", "gpu_optimizer_ns")


def X(category, name, start, duration, tid=1, pid=7, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


def trace(folder):
    """Two operators with one kernel each, at 10 to 30 us and 50 to 90 us."""
    events = [X("cpu_op", "aten::mm", 0, 10), X("cuda_runtime", "cudaLaunchKernel", 2, 3, correlation=1),
              X("cpu_op", "aten::relu", 20, 10), X("cuda_runtime", "cudaLaunchKernel", 22, 3, correlation=2),
              X("kernel", "gemm", 10, 20, tid=7, pid=0, correlation=1, device=0, stream=7),
              X("kernel", "relu", 50, 40, tid=7, pid=0, correlation=2, device=0, stream=7)]
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def rows(path, *options):
    return json.loads(report("tree", path, "-f", "json", *options).stdout)["rows"]


@case
def a_tree_of_rows_that_are_all_too_small_is_reported(folder):
    """Each of 200 roots has a 200th, less than the 1 % that text shows."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "mine::op_%s" % (chr(97 + i // 26) + chr(97 + i % 26)), "pid": 1, "tid": 1, "ts": i * 10, "dur": 5, "args": {}} for i in range(200)]
    path = folder / "small.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    for view in ("tree", "summary"):
        out = report(view, path).stdout.decode()
        assert "200 below 1 %" in out, out


@case
def text_has_the_requested_columns_in_their_order(folder):
    lines = report("tree", trace(folder), "--columns", "idle_before_ns,calls,delay_p50_ns", "--width", "80").stdout.decode().splitlines()
    assert lines[0].split() == ["idle", "before", "calls", "lat", "p50"], lines[0]
    relu = next(line for line in lines if line.startswith("aten::relu"))
    assert relu.split()[1:] == ["20.00", "µs", "1", "28.00", "µs"], relu
    mm = next(line for line in lines if line.startswith("aten::mm"))
    assert mm.split()[1:] == ["0", "ns", "1", "8.00", "µs"], mm


@case
def json_and_csv_have_them_and_what_says_which_row_it_is(folder):
    path = trace(folder)
    by_name = {row["name"]: row for row in rows(path, "--columns", "delay_p95_ns,calls")}
    assert set(by_name["aten::mm"]) == {"id", "parent", "depth", "name", "calls", "delay_p95_ns"}, by_name["aten::mm"]
    table = list(csv.DictReader(io.StringIO(report("tree", path, "-f", "csv", "--columns", "worst.label,calls,worst.value,calls").stdout.decode())))
    assert list(table[0]) == ["id", "parent", "depth", "name", "calls", "worst_label", "worst_value"], table[0]
    inside = rows(path, "--columns", "worst.value,calls,worst.label")[0]
    assert set(inside["worst"]) == {"label", "value"}, inside


@case
def an_unknown_column_is_named(folder):
    result = report("tree", trace(folder), "--columns", "calls,gpu_totl", check=64)
    assert "there is no column `gpu_totl`" in result.stderr.decode(), result.stderr
    for wrong in (("dump",), ("critical",)):
        result = report(*wrong, trace(folder), "--columns", "calls", check=64)
        assert "--columns works with" in result.stderr.decode(), result.stderr


@case
def more_columns_than_have_room_are_all_shown(folder):
    keys = [row.split()[0] for row in report("--legend").stdout.decode().split("columns (-s")[1].splitlines()[1:] if row.startswith("  ") and row[2] != " "]
    assert len(keys) > 60, keys
    first = report("tree", trace(folder), "--columns", ",".join(keys), "--width", "80").stdout.decode().splitlines()
    assert "lat p95" in first[0] and "worst delta" in first[0]


def real():
    data = os.environ.get("PPERF_TEST_DATA")
    if not data:
        raise Skip("PPERF_TEST_DATA names no folder with real traces")
    return sorted(pathlib.Path(data, "kineto").glob("*.json*"))


@case
def of_real_traces_the_roots_have_all_idle_time_and_the_parts_all_of_the_gpu(folder):
    for path in real():
        whole = json.loads(report("tree", path, "-f", "json").stdout)
        roots = [row for row in whole["rows"] if row["parent"] is None]
        assert sum(row.get("idle_before_ns", 0) for row in roots) == whole["totals"]["gpu_idle_ns"], path
        for row in whole["rows"]:
            assert not PARTS[0] in row or sum(row[part] for part in PARTS) == row["gpu_total_ns"], (path, row)


@case
def of_real_traces_the_instances_of_a_root_are_all_of_it(folder):
    for path in real()[::4]:
        tree = rows(path, "-d", "1", "--no-steps")
        alone = rows(path, "--instances", "all", "--top", "0", "--no-steps", "-m", "cpu", "--columns", "duration_ns,number")
        for name in {row["name"] for row in alone}:
            root, mine = [row for row in tree if row["name"] == name], [row for row in alone if row["name"] == name]
            assert len(mine) == sum(row["calls"] for row in root), (path, name)
            assert sum(row["duration_ns"] for row in mine) == sum(row["cpu_total_ns"] for row in root), (path, name)
            assert len({row["number"] for row in mine}) > len(mine) * 0.9, (path, name)


if __name__ == "__main__":
    main()
