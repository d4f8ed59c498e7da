#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Steps and modes of real traces of torch.profiler (PPERF_TEST_DATA)."""
import json, os, pathlib
from harness import Skip, case, main, report


def trace(pattern):
    folder = pathlib.Path(os.environ.get("PPERF_TEST_DATA") or "/nonexistent")
    found = [path for part in ("kineto", "verdicts") for path in sorted((folder / part).glob(pattern + ".json*"))]
    if not found:
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    return found[0]


@case
def a_low_peak_between_high_ones_does_not_join_them(folder):
    rows = json.loads(report("distribution", "aten::add_", trace("kineto__resnet50_num_workers_0*"), "-f", "json").stdout)["rows"]
    modes = [row["duration_ns"] for row in rows if row["kind"] == "mode" and row["measure"] == "cpu"]
    assert len(modes) == 3, modes
    for found, right in zip(modes, (19200, 25700, 31900)):
        assert abs(found - right) <= 0.04 * right, modes


@case
def one_marked_step_is_a_step(folder):
    for pattern in ("hta__triton_example*", "param__dlrm_worker0*", "tl__h100~Qwen*", "hta__rank_non_gpu*"):
        view = json.loads(report("steps", trace(pattern), "-f", "json").stdout)
        assert [row["kind"] for row in view["rows"]] == ["step"], (pattern, view["rows"])
        assert not view["warnings"], view["warnings"]


@case
def no_row_of_a_table_is_all_that_the_others_are(folder):
    for by, none, pattern in ("category", "other", "kineto__resnet50_num_workers_0*"), ("module", "(in no module)", "tl__h100~gaunernst*"):
        view = json.loads(report("table", "--by", by, trace(pattern), "-f", "json").stdout)
        rows = {row["name"]: row for row in view["rows"]}
        assert sum(row.get("gpu_self_ns") or 0 for row in view["rows"]) == view["totals"]["gpu_sum_ns"], by
        assert (rows[none].get("gpu_total_ns") or 0) == (rows[none].get("gpu_self_ns") or 0), rows[none]
        assert rows[none]["cpu_total_ns"] == rows[none]["cpu_self_ns"], rows[none]


@case
def a_share_of_a_small_part_of_the_steps_is_not_that_of_the_steps(folder):
    # The GPU works for 4 us of 222 ms of steps, without a pause.
    path = trace("hta__trace_compare~test*")
    screen = report(path, "--width", "300").stdout.decode()
    assert "the GPU was busy 0.6 % of the 274.35 ms from its first operation to its last" in screen, screen
    assert "in steady-state steps the GPU" not in screen, screen


@case
def what_steps_wait_for_is_in_the_tree_although_it_has_no_gpu_work(folder):
    for view in ("summary", "tree"):
        screen = report(view, trace("kineto__resnet50_num_workers_0*")).stdout.decode()
        assert "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" in screen.split("ProfilerStep#*", 1)[1] and "415.79 ms" in screen, (view, screen)


main()
