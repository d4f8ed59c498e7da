#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""C programs without Python that run out of device memory and are killed by SIGKILL right
afterwards: the first screen names the place, the cause and where the other threads were."""
import json, signal
from harness import BUILD, Skip, case, dump, main, report, traced

MB = 1 << 20


def killed(folder, way, **env):
    program = BUILD / "cudasim" / "13" / "ooms"
    if not program.exists():
        raise Skip("the simulated device is not built (no %s)" % program)
    result = traced(folder, program, way, env={"SIM_MEM": str(512 * MB), **env}, check=None)
    assert result.returncode == (0 if way == "retry" else -signal.SIGKILL), result
    return folder / "trace.bin"


def screen(trace):
    return " ".join(report(trace).stdout.decode().split())


def failures(trace):
    totals = json.loads(report("memory", trace, "-f", "json").stdout)["totals"]
    assert not totals["ooms"]
    return totals["failed_allocations"]


@case
def each_cause_is_named_and_shown(folder):
    mem = {"large": 512 * MB, "leak": 512 * MB, "others": 8192 * MB}
    causes = {
        "large": ("too_large", "cudaMalloc(4.29 GB) in `train / load / table`", "too large: 4.29 GB were requested, and the GPU has 536.87 MB"),
        "leak": ("leak", "in `train / step: 22 / history`", "growth: each step left 20.97 MB of device memory, "),
        "others": ("others", "cudaMalloc(1.07 GB) in `train / load`", "other processes: 7.86 GB of the GPU's 8.59 GB were neither free nor allocated by this process"),
    }
    for way, (cause, place, text) in causes.items():
        trace = killed(folder, way, SIM_MEM=str(mem[way]), SIM_OTHER=str(7500 * MB if way == "others" else 0))
        shown, failed = screen(trace), failures(trace)
        assert "OOM out of memory on GPU 0 after " in shown and place in shown and " cause " + text in shown, (way, shown)
        assert [f["cause"] for f in failed] == [cause], (way, failed)
        found = report("diagnose", trace).stdout.decode()
        assert "1. out-of-memory: " in found and text in " ".join(found.split()), found


@case
def the_figures_are_the_drivers(folder):
    failed, = failures(killed(folder, "others", SIM_MEM=str(8192 * MB), SIM_OTHER=str(7500 * MB)))
    assert (failed["total_bytes"], failed["free_bytes"], failed["others_bytes"]) == (8192 * MB, 592 * MB, 7500 * MB), failed
    assert (failed["requested_bytes"], failed["held_bytes"], failed["succeeded_later"], failed["retry_ns"]) == (1024 * MB, 100 * MB, False, None), failed
    failed, = failures(killed(folder, "leak"))
    assert [(r["label"], r["grown_bytes"]) for r in failed["open"]][0] == ("train", failed["held_bytes"]), failed
    assert failed["growth_per_step_bytes"] == 20 * MB, failed


@case
def the_places_of_all_threads_are_shown(folder):
    trace = killed(folder, "threads")
    failed, = failures(trace)
    places = sorted([r["label"] for r in thread["open"]] for thread in failed["threads"])
    assert places == [["load %d" % i, "inner"] for i in (1, 2, 3)], failed
    assert len({t["tid"] for t in failed["threads"]} | {failed["tid"]}) == 4, failed
    shown = screen(trace)
    assert "threads thread %d ran out of memory; meanwhile " % failed["tid"] in shown and "in `load 2 / inner`" in shown, shown


@case
def the_driver_is_asked_after_the_first_and_each_failed_allocation_but_not_during_a_capture(folder):
    for way, reasons in ("large", ["first_allocation", "failed_allocation"]), ("capture", []):
        records = [r["reason"] for r in dump(killed(folder, way), {"device_memory"})]
        assert records == reasons, (way, records)
    failed, = failures(folder / "trace.bin")
    assert failed["free_bytes"] is None and failed["cause"] == "too_large", failed


@case
def what_a_retry_cost_and_released_is_shown(folder):
    trace = killed(folder, "retry")
    failed, = failures(trace)
    assert failed["succeeded_later"] and failed["released_bytes"] == 400 * MB and failed["retry_ns"] > 0, failed
    shown = screen(trace)
    assert "retry 2 calls of CUDA in " in shown and "meanwhile 419.43 MB were released in 4 calls" in shown, shown
    assert "1. out-of-memory" not in report("diagnose", trace).stdout.decode()


main()
