#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The views of a GPU's time line agree with the totals to the nanosecond: gaps add up to the idle
time, the work of CUDA streams to that of the GPU. Uses traces of the simulated device and, with
PPERF_TEST_DATA, real ones of torch.profiler and Nsight Systems."""
import json, os, pathlib
from harness import BUILD, REPORT, SANITIZED, Skip, case, main, report, run, traced

VIEWS = ("streams", "queue", "idle", "overlap", "api", "critical-path")


def view(name, trace, *options):
    return json.loads(report(name, trace, "-f", "json", *options).stdout)


def real():
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder or not (pathlib.Path(folder) / "kineto").is_dir():
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    folder = pathlib.Path(folder)
    return sorted(folder.glob("kineto/*.json*")) + sorted(folder.glob("nsys/*.sqlite"))


def simulated(folder):
    """A trace of each CUDA major version, with several threads and CUDA streams."""
    for major in ("12", "13"):
        program = BUILD / "cudasim" / major / "known_work"
        if not program.exists():
            raise Skip("the simulated device is not built (no %s)" % program)
        for old in folder.glob("*.bin*"):
            old.unlink()
        traced(folder, str(program), "4", "2", "4")
        yield folder / "trace.bin"


def summed(rows, kind, key):
    return sum(row.get(key, 0) for row in rows if row["kind"] == kind)


def check_idle(trace):
    whole = view("idle", trace)
    rows, totals = whole["rows"], whole["totals"]
    for kind in ("device", "cause", "place"):
        assert summed(rows, kind, "gap_ns") == totals["gpu_idle_ns"], (trace, kind, summed(rows, kind, "gap_ns"), totals["gpu_idle_ns"])
    assert summed(rows, "device", "gaps") <= summed(rows, "cause", "gaps") == summed(rows, "place", "gaps"), trace


def check_streams(trace):
    whole = view("streams", trace)
    rows, totals, integrity = whole["rows"], whole["totals"], whole["integrity"]
    assert summed(rows, "device", "busy_ns") == totals["gpu_busy_ns"], trace
    assert summed(rows, "stream", "gpu_total_ns") == totals["gpu_sum_ns"], trace
    for kind, counted in (("kernels", "kernels"), ("copies", "copies"), ("sets", "sets")):
        assert summed(rows, "stream", kind) == integrity[counted], (trace, kind)
    for row in rows:
        assert row["concurrent_ns"] <= row["busy_ns"] <= row["gpu_total_ns"], (trace, row)


def check_overlap(trace):
    whole = view("overlap", trace)
    rows, totals = whole["rows"], whole["totals"]
    for kind in ("communication", "copies"):
        word = kind.replace("copies", "copy")
        assert summed(rows, kind, "busy_ns") == totals["gpu_%s_ns" % word], (trace, kind)
        assert summed(rows, kind, "exposed_ns") == totals["gpu_exposed_%s_ns" % word], (trace, kind)
        assert summed([row for row in rows if row.get("traffic") == kind], "place", "exposed_ns") >= summed(rows, kind, "exposed_ns"), (trace, kind)
    assert summed(rows, "computation", "busy_ns") == totals["gpu_computation_ns"], trace
    assert summed(rows, "device", "busy_ns") == totals["gpu_busy_ns"], trace


def check_queue(trace, clocks_apart):
    whole = view("queue", trace)
    for kind in ("device", "stream", "place", "work"):
        assert summed(whole["rows"], kind, "delay_total_ns") == summed(whole["rows"], "device", "delay_total_ns"), (trace, kind)
        assert summed(whole["rows"], kind, "calls") == sum(whole["integrity"][what] for what in ("kernels", "copies", "sets")), (trace, kind)
    idle = sum(summed(whole["rows"], "device", "queue_%s_ns" % part) for part in ("empty", "asked", "unknown"))
    assert abs(idle - whole["totals"]["gpu_idle_ns"]) <= clocks_apart, (trace, idle, whole["totals"]["gpu_idle_ns"])


def check_critical_path(trace):
    rows = view("critical-path", trace)["rows"]
    whole = summed(rows, "path", "path_ns")
    if not whole:
        assert not rows, trace
        return
    parts = ("path_gpu_ns", "path_host_ns", "path_launch_ns", "path_wait_ns", "path_sync_ns", "path_unknown_ns")
    for kind in ("part", "place"):
        assert summed(rows, kind, "path_ns") == whole, (trace, kind)
    assert summed(rows, "step", "path_ns") <= whole, trace
    for row in rows:
        assert sum(row.get(part, 0) for part in parts) == row.get("path_ns", 0), (trace, row)
        assert row.get("gain_ns", 0) <= whole, (trace, row)


def check_api(trace):
    rows, table = view("api", trace)["rows"], view("table", trace)["rows"]
    calls = {}
    for row in table:
        if row["kind"] in ("api", "sync", "alloc"):
            calls[row["name"]] = calls.get(row["name"], 0) + row["calls"]
    assert {row["name"]: row["calls"] for row in rows} == calls, (trace, calls)


@case
def real_traces_add_up(folder):
    for trace in real():
        check_idle(trace)
        check_streams(trace)
        check_queue(trace, 0)
        check_overlap(trace)
        check_api(trace)
        check_critical_path(trace)


@case
def traces_of_ours_add_up(folder):
    for trace in simulated(folder):
        check_idle(trace)
        check_streams(trace)
        check_overlap(trace)
        check_api(trace)
        check_critical_path(trace)
        check_queue(trace, view("idle", trace)["totals"]["gpu_idle_ns"] // 1000) # GPU times are converted to the host's clock interval by interval


def span(cat, name, begin, end, thread, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": begin, "dur": end - begin, "pid": 1, "tid": thread, "args": args}


@case
def events_of_an_imported_trace_hold_streams_up(folder):
    """As CUPTI records them: a wait names the call that recorded its event, and the CUDA stream."""
    events = [span("cpu_op", "aten::mm", 1090, 1160, 1),
        span("cuda_runtime", "cudaLaunchKernel", 1095, 1100, 1, correlation=1), span("cuda_runtime", "cudaEventRecord", 1105, 1110, 1, correlation=5),
        span("cuda_runtime", "cudaLaunchKernel", 1115, 1120, 1, correlation=2), span("cuda_runtime", "cudaStreamWaitEvent", 1125, 1130, 1, correlation=6),
        span("cuda_runtime", "cudaLaunchKernel", 1135, 1140, 1, correlation=3),
        span("cuda_sync", "Stream Wait Event", 1126, 1129, 8, correlation=6, stream=8, wait_on_stream=7, wait_on_cuda_event_record_corr_id=5, wait_on_cuda_event_id=3,
            device=0, context=1),
        span("kernel", "a", 1110, 1310, 7, correlation=1, stream=7, device=0), span("kernel", "b", 1125, 1175, 8, correlation=2, stream=8, device=0),
        span("kernel", "c", 1312, 1400, 8, correlation=3, stream=8, device=0)]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": events}))
    rows = view("critical-path", folder / "trace.json")["rows"]
    parts = {row["name"]: row["path_ns"] for row in rows if row["kind"] == "part"}
    assert parts == {"kernels": 288000, "launch latency": 15000, "gap between kernels": 2000}, parts
    slack = {row["name"]: row["slack_min_ns"] for row in rows if row["kind"] == "work"}
    assert slack == {"a": 0, "b": 135000, "c": 0}, slack
    assert rows[0]["stream_waits"] == 1 and rows[0]["stream_waits_unknown"] == 0, rows[0]


@case
def damaged_traces_are_shown_as_far_as_they_go(folder):
    whole = next(simulated(folder)).read_bytes()
    for number in range(6 if SANITIZED else 24):
        damaged = bytearray(whole[:len(whole) * (number + 1) // 24]) if number % 2 else bytearray(whole)
        for at in range(4096 + number * 97, len(damaged), 1999):
            damaged[at] ^= 0x41 + number
        (folder / "damaged.bin").write_bytes(damaged)
        for name in VIEWS:
            result = run(folder, str(REPORT), name, "damaged.bin", "-f", "json" if number % 3 else "text", timeout=60)
            assert result.returncode in (0, 2), (number, name, result)
            if result.returncode == 0 and number % 3:
                json.loads(result.stdout)


if __name__ == "__main__":
    main()
