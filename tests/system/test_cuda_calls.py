#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The interposed CUDA runtime on the simulated device, 12 and 13, with and without CUPTI. A program
sees no difference, and each of its calls is in the trace once, with its result and correlation id.
"""
import os, re
from harness import BUILD, Skip, case, info, main, run, traced
from raw_trace import CALLS, whole

MAJORS = ("12", "13")
CAPTURED, CALLBACK = 1, 4
RECORDED = re.compile(r"^(cuda(?:Malloc|Free|Host|Launch|GraphLaunch)\w*|LAUNCH): (\d+), errno", re.M)


def program(major):
    path = BUILD / "cudasim" / major / "cuda_calls"
    if not path.exists():
        raise Skip("the simulated device is not built: make cudasim")
    return str(path)


def both(folder, major, *arguments, env=None, check=0):
    bare = run(folder, program(major), *arguments, env=env, check=check)
    under = traced(folder, program(major), *arguments, env=env, check=check)
    assert under.stdout == bare.stdout and under.stderr == bare.stderr, "the program saw something else:\n%s" % under.stdout.decode()
    return bare.stdout.decode()


def by_symbol(trace):
    return [c for c in trace.calls if not c.flags & CALLBACK]


def made(output, major):
    launch = "cudaLaunchKernel" if major == "12" else "__cudaLaunchKernel"
    return [(launch if name == "LAUNCH" else name, int(result)) for name, result in RECORDED.findall(output)]


def all_settings():
    for major in MAJORS:
        for env in {}, {"PPERF_CUPTI": "0"}, {"PPERF_STACKS": "launch"}, {"PPERF_STACKS": "off", "PPERF_CUPTI": "0"}:
            yield major, env


@case
def a_program_sees_no_difference_and_its_calls_are_recorded_once(folder):
    for major, env in all_settings():
        output = both(folder, major, env=env)
        trace = whole(folder / "trace.bin")
        assert [(c.api, c.result) for c in by_symbol(trace)] == made(output, major)
        assert not any(trace.lost) and trace.meta["source.cuda_symbols"] == "on"
        if "PPERF_CUPTI" in env: # and nothing else sees them either
            assert trace.calls == by_symbol(trace)
        os.unlink(folder / "trace.bin")


@case
def calls_that_fail_are_recorded_as_such(folder):
    for major in MAJORS:
        output = both(folder, major, env={"SIM_FAIL_MALLOC": "1"})
        trace = whole(folder / "trace.bin")
        assert [(c.api, c.result) for c in by_symbol(trace)] == made(output, major)
        assert all(c.address == 0 for c in trace.calls if c.kind == "ALLOC" and c.result)
        assert len([c for c in by_symbol(trace) if c.kind == "ALLOC" and c.result == 2]) >= 2
        os.unlink(folder / "trace.bin")


@case
def ids_of_launches_are_theirs_alone(folder):
    for major in MAJORS:
        both(folder, major)
        trace = whole(folder / "trace.bin")
        if trace.meta.get("source.cupti") != "on":
            raise Skip("CUPTI: " + trace.meta.get("source.cupti", "absent"))
        launches = [c for c in by_symbol(trace) if c.kind in ("LAUNCH", "GRAPH_LAUNCH") and not c.result]
        assert {c.device for c in launches} == {0}
        ids = [c.correlation for c in launches]
        assert all(ids) and len(set(ids)) == len(ids), ids
        os.unlink(folder / "trace.bin")
        traced(folder, program(major), env={"PPERF_CUPTI": "0"})
        assert not any(c.correlation for c in whole(folder / "trace.bin").calls)
        os.unlink(folder / "trace.bin")


@case
def what_was_captured_is_marked(folder):
    for major, env in all_settings():
        traced(folder, program(major), env=env)
        trace = whole(folder / "trace.bin")
        marked = [(c.grid[0], bool(c.flags & CAPTURED)) for c in trace.calls if c.kind == "LAUNCH" and c.grid[0] >= 5]
        assert marked == [(5, True), (6, True), (7, False)], marked
        assert not any(c.flags & CAPTURED for c in trace.calls if c.kind != "LAUNCH")
        os.unlink(folder / "trace.bin")


@case
def memory_is_of_the_current_device(folder):
    for major in MAJORS:
        traced(folder, program(major), env={"PPERF_CUPTI": "0"})
        trace = whole(folder / "trace.bin")
        assert {c.device for c in trace.calls if c.kind in ("ALLOC", "FREE")} == {0}
        assert {c.device for c in trace.calls if c.kind not in ("ALLOC", "FREE")} == {0xFFFFFFFF}
        sizes = {c.api: c.bytes for c in trace.calls if c.kind == "ALLOC" and not c.result and c.api != "cudaMalloc"}
        assert sizes == {"cudaMallocPitch": 10240, "cudaMalloc3D": 25600, "cudaMallocManaged": 5000, "cudaMallocArray": 1024,
                         "cudaMalloc3DArray": 4096, "cudaMallocMipmappedArray": 4096 + 512 + 64, "cudaMallocHost": 777, "cudaHostAlloc": 888,
                         "cudaHostRegister": 8192, "cudaMallocAsync": 4001, "cudaMallocFromPoolAsync": 4002}, sizes
        os.unlink(folder / "trace.bin")


@case
def threads_record_all_they_do(folder):
    for major in MAJORS:
        for threads, each in (1, 500), (8, 100):
            traced(folder, program(major), "threads", threads, each)
            trace = whole(folder / "trace.bin")
            own = by_symbol(trace)
            assert len(own) == 3 * threads * each and not any(trace.lost)
            assert len({c.thread for c in own}) == threads
            for kind in "ALLOC", "LAUNCH", "FREE":
                assert len([c for c in own if c.kind == kind and not c.result]) == threads * each
            os.unlink(folder / "trace.bin")


@case
def a_forked_child_sees_what_it_would_have_seen(folder):
    for major in MAJORS:
        both(folder, major, "fork")
        for path in folder.glob("trace*.bin"):
            calls = by_symbol(whole(path))
            assert [c.api for c in calls] in (["cudaMalloc", "cudaFree"],), [c.api for c in calls]
            os.unlink(path)


@case
def every_address_that_was_given_is_given_back(folder):
    for major in MAJORS:
        traced(folder, program(major), "threads", 16, 100)
        trace = whole(folder / "trace.bin")
        events = [(c.stamp if c.kind == "ALLOC" else c.stamp - c.duration, c.kind, c.address) for c in by_symbol(trace) if c.kind in CALLS and c.kind in ("ALLOC", "FREE")]
        live = set()
        for _, kind, address in sorted(events):
            assert (address in live) == (kind == "FREE"), "a free takes effect where its call begins"
            (live.add if kind == "ALLOC" else live.remove)(address)
        assert not live
        os.unlink(folder / "trace.bin")


@case
def the_device_is_named_with_and_without_cupti(folder):
    for major, env in all_settings():
        traced(folder, program(major), env=env)
        devices = info(folder / "trace.bin")["capture"]["devices"]
        assert [d["name"] for d in devices] == ["pperf simulated device"] and devices[0]["simulated"], (env, devices)
        os.unlink(folder / "trace.bin")


main()
