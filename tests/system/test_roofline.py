#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The roofline of real traces of torch.profiler. Every nanosecond of GPU work is in one row, and a
metric is empty where the file lacks its inputs."""
import json, os, pathlib
from harness import Skip, case, main, report


def real():
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder or not (pathlib.Path(folder) / "kineto").is_dir():
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    return pathlib.Path(folder) / "kineto"


def roofline(path, *options):
    return json.loads(report("roofline", path, "-f", "json", *options).stdout)


@case
def each_nanosecond_is_in_one_row(folder):
    for path in sorted(real().glob("*.json*")):
        whole = roofline(path)
        rows = whole["rows"]
        for device in (row for row in rows if row["kind"] == "device"):
            inside = [row for row in rows if row["parent"] == device["id"]]
            assert sum(row["gpu_total_ns"] for row in inside) == device["gpu_total_ns"], path
        assert sum(row["gpu_total_ns"] for row in rows if row["depth"] == 0) == whole["totals"]["gpu_sum_ns"], path
        for row in rows:
            assert row.get("basis") or row["kind"] in ("device", "unknown", "kernel") or not row.get("flops") and not row.get("bytes"), (path, row)
            assert row["kind"] != "unknown" or "flops" not in row and "bytes" not in row, (path, row)


@case
def without_shapes_only_copies_and_sets_are_known(folder):
    path = next(real().glob("*alexnet*"))
    kinds = {row["kind"] for row in roofline(path)["rows"] if row.get("bytes_per_s")}
    assert kinds <= {"memcpy", "memset"}, kinds


@case
def a_vision_model_on_an_h100(folder):
    rows = roofline(next(real().glob("tl__h100~Falcon*")))["rows"]
    linear = next(row for row in rows if row["name"] == "aten::linear  [[4, 197, 768], [768, 768], [768]]")
    assert linear["flops"] == 2 * 4 * 197 * 768 * 768 * linear["calls"], linear
    assert linear["bytes"] == 2 * (2 * 4 * 197 * 768 + 768 * 768 + 768) * linear["calls"], linear
    assert linear["element_type"] == "bf16" and linear["peak_flops_per_s"] == 989400000000000 and linear["roof"] == "memory", linear
    reached = linear["flops_per_s"] / min(989.4e12, linear["intensity"] * 3352e9)
    assert abs(linear["roof_share"] - reached) < 1e-6, (linear, reached)
    assert rows[0]["known_share"] > 0.99, rows[0]


@case
def a_kineto_file_with_flops(folder):
    """with_flops=True: the file's own value overrides a formula, and gives one to operators without
    a formula."""
    events = []
    for number, (name, flops) in enumerate((("aten::mm", 100), ("mine::op", 1000)), 1):
        at = number * 100
        events += [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 50,
                    "args": {"External id": number, "Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"], "flops": flops}},
                   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 5, "dur": 5, "args": {"correlation": number}},
                   {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at + 20, "dur": 10,
                    "args": {"correlation": number, "device": 0, "stream": 7, "context": 1}}]
    path = folder / "flops.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    rows = {row["name"].split()[0]: row for row in roofline(path)["rows"] if row["kind"] == "op"}
    assert rows["aten::mm"]["flops"] == 100 and rows["aten::mm"]["bytes"] == 104 and rows["aten::mm"]["basis"] == "recorded", rows
    assert rows["mine::op"]["flops"] == 1000 and rows["mine::op"].get("bytes") is None, rows
    shapes = json.loads(report("table", path, "--by", "shape", "-f", "json").stdout)["rows"]
    assert "aten::mm  [[2, 3], [3, 4]]" in {row["name"] for row in shapes}, shapes


if __name__ == "__main__":
    main()
