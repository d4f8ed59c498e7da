#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What GPU work is, over all given traces (PPERF_TEST_DATA): one set of rules decides it for every view. So communication and copies are the same in categories,
table --by category, overlap and the totals, and hardly any work is of the category other. Without data: a trace made here, with rules of the user's own."""
import json, os, pathlib
from harness import Skip, case, main, report

# Kernels without a name that says anything: TensorBoard's tests call theirs kernel1.
NAMELESS = ("test_group_by_kernel_columns",)
OTHER_MAX = 0.05


def traces():
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder or not pathlib.Path(folder).is_dir():
        raise Skip("PPERF_TEST_DATA does not name the folder with traces and what they hold")
    paths = [path for name in ("kineto", "verdicts", "nsys") for path in sorted((pathlib.Path(folder) / name).rglob("*"))
             if path.name.endswith((".json", ".json.gz", ".sqlite"))]
    return [path for path in paths if not {"expected", "reference"} & set(path.parts) and "expected" not in path.name.lower()]


def view(*arguments):
    return json.loads(report(*arguments, "-f", "json").stdout)


def total(rows, key):
    return sum(row.get(key) or 0 for row in rows)


def check_agreement(path, *options):
    """Returns the GPU time of each category."""
    categories = view("categories", path, "--all", "--top", "0", "--min-percent", "0", *options)
    by = view("table", path, "--all", "--by", "category", "--top", "0", "--min-percent", "0", *options)
    overlap = view("overlap", path, "--all", "--top", "0", "--min-percent", "0", *options)
    tree = view("tree", path, "--all", *options)
    of = {}
    for row in categories["rows"]:
        if row["depth"] == 0:
            of[row["name"]] = of.get(row["name"], 0) + row["gpu_total_ns"]
    assert sum(of.values()) == (categories["totals"]["gpu_sum_ns"] or 0), path
    # the bytes of a category with collectives are those of overlap
    sized = [total([row for row in rows if row["depth"] == depth and row["name"] == "communication"], "bytes") for rows, depth in ((categories["rows"], 0), (overlap["rows"], 1))]
    assert sized[0] == sized[1], (path, sized)
    for name in of:
        assert total([row for row in by["rows"] if row["name"] == name], "gpu_self_ns") == of[name], (path, name)
    for kind, category, key in (("communication", "communication", "gpu_communication_ns"), ("copies", "memcpy", "gpu_copy_ns")):
        rows = [row for row in overlap["rows"] if row["kind"] == kind]
        assert total(rows, "gpu_total_ns") == of.get(category, 0), (path, kind, total(rows, "gpu_total_ns"), of)
        busy = total(rows, "busy_ns")
        for one in (categories, by, overlap, tree):
            assert (one["totals"].get(key) or 0) == busy, (path, kind, one["view"], one["totals"].get(key), busy)
    return of


@case
def communication_and_copies_are_the_same_in_every_view(folder):
    seen = 0
    for path in traces():
        seen += check_agreement(path).get("communication", 0) > 0
    assert seen >= 9, seen


@case
def hardly_any_work_is_of_no_category(folder):
    for path in traces():
        if any(name in path.name for name in NAMELESS):
            continue
        categories = view("categories", path, "--all", "-d", "1")
        whole, other = categories["totals"]["gpu_sum_ns"] or 0, total([row for row in categories["rows"] if row["name"] == "other"], "gpu_total_ns")
        assert other <= OTHER_MAX * whole, "%s: %.1f %% is other" % (path, 100 * other / whole)


@case
def work_that_only_its_name_shows_is_communication(folder):
    """A kernel of a library of expert parallelism, and one of the user's own, by a rule of the user's own."""
    path, rules = folder / "trace.json", folder / "rules"
    names = ["void deep_ep::intranode::dispatch<8>(int)", "ring_exchange(float*)", "triton_poi_fused_add_all_reduce_1", "nvjet_tst_64x64"]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": name, "ts": 100 + 50 * number, "dur": 10 + number, "pid": 0, "tid": 7,
         "args": {"correlation": 1 + number, "device": 0, "stream": 7}} for number, name in enumerate(names)]}))
    assert check_agreement(path) == {"communication": 10000, "other": 11000, "elementwise": 12000, "GEMM": 13000}
    rules.write_text("communication kernel ring_*\ninclude built-in\n")
    assert check_agreement(path, "--categories", rules) == {"communication": 21000, "elementwise": 12000, "GEMM": 13000}
    rules.write_text("mine kernel ring_*\n")
    assert check_agreement(path, "--categories", rules) == {"mine": 11000, "other": 35000}


main()
