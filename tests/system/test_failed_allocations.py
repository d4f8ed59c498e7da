#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A C++ program that ends because cudaMalloc fails: the report names call, size, call path and
what held the memory. On the simulated device with too little memory for the demo's sixth step."""
import json
from harness import BUILD, Skip, case, main, report, traced


def exhausted(folder):
    program = BUILD / "cudasim" / "13" / "demo_train"
    if not program.exists():
        raise Skip("the simulated device is not built (no %s)" % program)
    traced(folder, program, env={"SIM_MEM": "2000000000"}, check=1)
    return folder / "trace.bin"


@case
def the_demo_without_enough_memory_says_where_it_ran_out(folder):
    trace = exhausted(folder)
    screen = " ".join(report(trace).stdout.decode().split())
    assert "cudaMalloc(402.65 MB) in `training / step: 6 / forward / layers.2 / attention / window: 0 / scores`" in screen, screen
    assert "allocated by this process: 1.92 GB of the GPU's 2.00 GB; the driver reported 81.11 MB free" in screen, screen
    assert "live at that time: 1.61 GB (84.0 %) allocated in no range, called from " in screen, screen
    memory = report("memory", trace).stdout.decode()
    assert "cudaMalloc(402.65 MB)" in memory and "at OOM" in memory, memory
    first = report("diagnose", trace).stdout.decode().splitlines()[0]
    assert first == "1. out-of-memory: 402.65 MB", first


@case
def the_figures_are_those_of_the_trace(folder):
    view = json.loads(report("memory", exhausted(folder), "-f", "json").stdout)
    failed, = view["totals"]["failed_allocations"]
    level, = (row for row in view["rows"] if row["depth"] == 0 and row["memory_kind"] == "device")
    held = sum(row.get("at_oom_bytes", 0) for row in view["rows"] if row.get("parent") == level["id"])
    assert failed["requested_bytes"] == 384 << 20 and failed["device_bytes"] == 2000000000, failed
    assert failed["held_bytes"] == level["at_oom_bytes"] == held, (failed, level, held)


main()
