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


main()
