#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch.profiler and the library in one process, on the simulated device: CUPTI has one client, and both are served. What torch.profiler shows is what
it shows alone; what the library recorded is complete before, in and after torch.profiler's sessions."""
import collections, json, pathlib, sys
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import *
from raw_trace import whole

ENVIRONMENT = pathlib.Path(sys.prefix)
LAUNCHER = ROOT / "tests" / "cudasim" / "torch.sh"
SCRIPT = r"""
import json, sys, torch
from torch.profiler import ProfilerActivity, profile

x = torch.ones(64, 64, device="cuda")

def work(times):
    for _ in range(times):
        y = x * 2
        y @ x
        y.copy_(x)
    if WAITS:
        torch.cuda.synchronize()

WAITS = sys.argv[1] == "waits"
work(20)
for times in map(int, sys.argv[2:]):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        WAITS = True
        work(times)
        WAITS = sys.argv[1] == "waits"
    seen.export_chrome_trace("seen.json")
    print(json.dumps(json.load(open("seen.json"))["traceEvents"]))
    work(7)
torch.cuda.synchronize()
"""
# Older releases read buffers in the order of their addresses, and lose links from a kernel to its operator when alone, too, now this one and now that;
# still older ones make up an operator's number where there is none.
LINKS = bool(list(ENVIRONMENT.glob("lib/python3*/site-packages/torch-2.1[5-9].*")))
LAUNCHES = 3  # of one round of work: two kernels, one copy


def launch(runner, folder, *arguments, env=None, **options):
    if not (BUILD / "cudasim" / "torch" / ENVIRONMENT.name / "libcudasim_rest.so").exists():
        raise Skip("make cudasim-torch prepares the simulated device for this environment")
    folder.mkdir(exist_ok=True)
    done = runner(folder, LAUNCHER, "-b", BUILD, ENVIRONMENT, "-c", SCRIPT, *arguments, env={"OMP_NUM_THREADS": "1", "TMPDIR": str(folder), **(env or {})},
                  timeout=150, **options)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-900:]
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def shape(session):
    """What a session holds, without times and without the numbers that CUPTI counts calls by: what, how often, under which operator."""
    kinds = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver")
    seen = collections.Counter((e["cat"], e["name"], e["args"].get("External id") if LINKS else None)
                               for e in session if e.get("cat") in kinds)
    if not LINKS:
        return seen, None
    flows = collections.Counter((e["cat"], e["ph"]) for e in session if e.get("cat") == "ac2g")
    return seen, flows


def linked(session):
    """The kernels, and the call of each one's correlation id; of copies torch.profiler does not ask for the driver's calls."""
    calls = {e["args"]["correlation"]: e for e in session if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    gpu = [e for e in session if e.get("cat") == "kernel"]
    return gpu, [calls.get(e["args"]["correlation"]) for e in gpu]


def alike(alone, beside):
    """A session alone and one beside ours hold the same; else what only one of them has."""
    (mine, flows), (theirs, other_flows) = shape(alone), shape(beside)
    assert mine == theirs and flows == other_flows, (mine - theirs, theirs - mine, flows, other_flows)


def both(folder, *arguments, env=None):
    alone = launch(run, folder / "alone", *arguments)
    beside = launch(traced, folder / "beside", *arguments, env=env, check=None)
    return alone, beside, folder / "beside" / "trace.bin"


def complete(path, rounds):
    """Ours: every launch and copy has its record, once, and nothing is lost."""
    trace = whole(path)
    calls = collections.Counter(c.correlation for c in trace.calls if c.kind in ("LAUNCH", "COPY"))
    gpu = collections.Counter(r.correlation for r in trace.records if r.kind in ("KERNEL", "GPU_COPY"))
    assert calls == gpu and sum(gpu.values()) >= LAUNCHES * rounds, (calls - gpu, gpu - calls)
    assert not any(trace.lost) and trace.meta["source.cupti"] == "on", (trace.lost, trace.meta["source.cupti"])
    # Calls that only torch.profiler asked for are not in our trace.
    assert not any(r.kind == "API" and r.domain == 2 for r in trace.records)


@case
def both_are_complete(folder):
    alone, beside, path = both(folder, "waits", 10, 30)
    for mine, theirs, times in zip(alone, beside, (10, 30), strict=True):
        alike(mine, theirs)
        gpu, calls = linked(theirs)
        assert len(gpu) == 2 * times and all(calls)
    complete(path, 20 + 10 + 7 + 30 + 7)


@case
def what_was_launched_before_a_session_is_not_in_it(folder):
    alone, beside, path = both(folder, "goes on", 5, 5, 5)
    for mine, theirs in zip(alone, beside, strict=True):
        alike(mine, theirs)
        assert len(linked(theirs)[0]) == 2 * 5
    complete(path, 20 + 3 * 12)


@case
def times_are_of_the_other_s_own_clock(folder):
    (session,) = launch(traced, folder, "waits", 50, check=None)
    gpu, calls = linked(session)
    operators = [e for e in session if e.get("cat") == "cpu_op"]
    begins, ends = min(e["ts"] for e in operators), max(e["ts"] + e["dur"] for e in session if e.get("cat") == "cuda_runtime")
    for record, call in zip(gpu, calls, strict=True):
        assert record["ts"] >= call["ts"] - 50, (record, call)
        assert begins <= record["ts"] and record["ts"] + record["dur"] <= ends + 1000, record
        assert 1 <= record["dur"] <= 20, record  # as the simulation says, in microseconds: the clock's rate is right


@case
def more_than_a_buffer_of_records(folder):
    alone, beside, path = both(folder, "waits", 6000)
    alike(alone[0], beside[0])
    complete(path, 20 + 6000 + 7)


@case
def it_has_cupti_to_itself_where_we_leave_it_alone(folder):
    alone, beside, path = both(folder, "waits", 5, env={"PPERF_CUPTI": "0"})
    alike(alone[0], beside[0])
    assert whole(path).meta["source.cupti"] == "off: PPERF_CUPTI=0 (0)"
    (disabled,) = launch(traced, folder / "disabled", "waits", 5, env={"PPERF_DISABLE": "1"}, check=None)
    alike(alone[0], disabled)


main()
