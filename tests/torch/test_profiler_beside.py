#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch.profiler and the library in one process, on the simulated device. CUPTI has one client, and
both are served. torch.profiler shows what it shows alone, and the library's records are complete
before, in and after torch.profiler's sessions."""
import collections, json, pathlib, sys
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
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
# All ways in which a profiler is begun and ended, one after the other: before CUDA is used, several times, by a schedule, beside a second
# thread. For each session a line: its events and what torch.profiler makes of them.
WAYS = r"""
import json, threading, torch
from torch.profiler import ProfilerActivity, profile, schedule

BOTH = {"activities": [ProfilerActivity.CPU, ProfilerActivity.CUDA]}

def work(times):
    x = torch.ones(64, 64, device="cuda")
    for _ in range(times):
        y = x * 2
        y @ x
        y.copy_(x)
    torch.cuda.synchronize()

def tell(way, seen):
    seen.export_chrome_trace("seen.json")
    sums = sorted((e.key, e.count, getattr(e, "device_time_total", None) or getattr(e, "cuda_time_total", 0)) for e in seen.key_averages())
    print(json.dumps([way, json.load(open("seen.json"))["traceEvents"], sums]))

with profile(**BOTH) as seen:
    work(5)
tell("before CUDA", seen)
work(7)
for times in (4, 6, 3):
    with profile(**BOTH) as seen:
        work(times)
    tell("again", seen)
    work(7)
with profile(**BOTH, schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=lambda seen: tell("scheduled", seen)) as seen:
    for _ in range(10):
        work(2)
        seen.step()
work(7)
with profile(**BOTH) as seen:
    other = threading.Thread(target=work, args=(6,))
    other.start()
    work(6)
    other.join()
tell("two threads", seen)
work(7)
"""
# The program ends before its profiler does; some releases of PyTorch crash then, by themselves.
UNENDED = r"""
import torch
from torch.profiler import profile

def work(times):
    x = torch.ones(64, 64, device="cuda")
    for _ in range(times):
        y = x * 2
        y @ x
        y.copy_(x)
    torch.cuda.synchronize()

work(7)
unended = profile()
unended.start()
work(3)
"""
# Training steps, profiled by a schedule, or ("plain") only with the ranges that torch.profiler makes of steps.
TRAINING = r"""
import json, sys, time, torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batches = [torch.ones(32, 64).pin_memory() for _ in range(12)]

def train(batch):
    optimizer.zero_grad()
    loss = model(batch.cuda(non_blocking=True)).square().mean()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()

def show(seen):
    time = lambda event, of: getattr(event, "device" + of, None) or getattr(event, "cuda" + of, 0)
    rows = [(e.key, e.count, time(e, "_time_total"), getattr(e, "self_device_time_total", None) or getattr(e, "self_cuda_time_total", 0)) for e in seen.key_averages()]
    print(json.dumps(sorted(rows)))

if sys.argv[1] == "plain":
    for number, batch in enumerate(batches):
        with record_function("ProfilerStep#%d" % number):
            train(batch)
    with record_function("ProfilerStep#%d" % len(batches)):
        pass
else:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=3, repeat=2), on_trace_ready=show) as seen:
        for batch in batches:
            train(batch)
            seen.step()
time.sleep(0.5)  # a thread of autograd's that still asks for the interpreter's lock at the end aborts the program, with and without us
"""
ID_RULES = {"driver": {}, "runtime": {"SIM_CUPTI_KERNEL_ID": "outer"}}  # whose id a kernel carries (tests/system/test_cupti.py)
OUTSIDE = 7 * 6  # rounds of work outside of sessions, without those that the schedule skips

# Older releases read buffers in the order of their addresses, and lose links from a kernel to its operator when alone, too, now this one and now that;
# still older ones make up an operator's number where there is none.
LINKS = bool(list(ENVIRONMENT.glob("lib/python3*/site-packages/torch-2.1[5-9].*")))
CLOCK = 0.05 if LINKS else 0.1  # older releases measure the length of a clock tick less exactly
LAUNCHES = 3  # of one round of work: two kernels, one copy


def launch(runner, folder, *arguments, env=None, script=SCRIPT, **options):
    if not (BUILD / "cudasim" / "torch" / ENVIRONMENT.name / "libcudasim_rest.so").exists():
        raise Skip("make cudasim-torch prepares the simulated device for this environment")
    folder.mkdir(exist_ok=True)
    done = runner(folder, LAUNCHER, "-b", BUILD, ENVIRONMENT, "-c", script, *arguments, env={"OMP_NUM_THREADS": "1", "TMPDIR": str(folder), **(env or {})},
                  timeout=150, **options)
    if script is UNENDED:
        return done.returncode
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-900:]
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def shape(session):
    """The content of a session without times and CUPTI's call numbers: names, counts and operators.
    """
    kinds = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver")
    seen = collections.Counter((e["cat"], e["name"], e["args"].get("External id") if LINKS else None)
                               for e in session if e.get("cat") in kinds)
    if not LINKS:
        return seen, None
    flows = collections.Counter((e["cat"], e["ph"]) for e in session if e.get("cat") == "ac2g")
    return seen, flows


def linked(session):
    """The kernels, and the call of each one's correlation id. torch.profiler does not enable driver
    calls for copies."""
    calls = {e["args"]["correlation"]: e for e in session if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    gpu = [e for e in session if e.get("cat") == "kernel"]
    return gpu, [calls.get(e["args"]["correlation"]) for e in gpu]


def alike(alone, beside):
    """Fails with the differences unless a session alone and one beside ours have the same content.
    """
    (mine, flows), (theirs, other_flows) = shape(alone), shape(beside)
    assert mine == theirs and flows == other_flows, (mine - theirs, theirs - mine, flows, other_flows)


def both(folder, *arguments, env=None):
    alone = launch(run, folder / "alone", *arguments)
    beside = launch(traced, folder / "beside", *arguments, env=env, check=None)
    return alone, beside, folder / "beside" / "trace.bin"


def complete(path, rounds):
    """Fails unless every launch and copy in our trace has one record, and nothing is lost."""
    trace = whole(path)
    calls = collections.Counter(c.correlation for c in trace.calls if c.kind in ("LAUNCH", "COPY"))
    gpu = collections.Counter(r.correlation for r in trace.records if r.kind in ("KERNEL", "GPU_COPY"))
    assert calls == gpu and sum(gpu.values()) >= LAUNCHES * rounds, (calls - gpu, gpu - calls)
    assert not any(trace.lost) and trace.meta["source.cupti"] == "on", (trace.lost, trace.meta["source.cupti"])
    # Calls that only torch.profiler enabled are not in our trace.
    assert not any(r.kind == "API" and r.domain == 2 for r in trace.records)


def links(session):
    """Each kernel and copy in GPU order: its name, its call, and its operator."""
    calls = {e["args"]["correlation"]: e["name"] for e in session if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    operators = {e["args"].get("External id"): e["name"] for e in session if e.get("cat") == "cpu_op"}
    gpu = sorted((e for e in session if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")), key=lambda e: e["ts"])
    return [(e["name"], calls.get(e["args"]["correlation"]), operators.get(e["args"].get("External id")) if LINKS else None) for e in gpu]


def same_values(alone, beside):
    assert [way for way, *_ in alone] == [way for way, *_ in beside] == ["before CUDA"] + 3 * ["again"] + 2 * ["scheduled"] + ["two threads"]
    for (way, session, sums), (_, other_session, other_sums) in zip(alone, beside, strict=True):
        mine, theirs = links(session), links(other_session)
        assert mine == theirs if way != "two threads" else collections.Counter(mine) == collections.Counter(theirs), (way, mine, theirs)
        assert len(mine) >= LAUNCHES * 3
        if way != "two threads":
            alike(session, other_session)
        # With two threads, or with lost links, its calls and operators vary between runs, alone too. Its
        # GPU work does not.
        of_gpu = {name for name, *_ in mine}
        sums, other_sums = ([s for s in all_sums if s[2] and (LINKS and way != "two threads" or s[0] in of_gpu)] for all_sums in (sums, other_sums))
        assert [s[:2] for s in sums] == [s[:2] for s in other_sums], way
        # Microseconds; the profiler counts ticks of its own clock, and how long one is it measures anew, in each session, on a busy machine badly.
        # A step's time is from its first work to its last, including pauses of the machine.
        times = [(name, count, mine, theirs) for (name, count, mine), (_, _, theirs) in zip(sums, other_sums, strict=True) if not name.startswith("ProfilerStep")]
        tick = sum(theirs for *_, theirs in times) / sum(mine for *_, mine, _ in times)
        assert 1 / 3 < tick < 3, (way, tick)
        for name, count, mine, theirs in times:
            assert abs(mine * tick - theirs) <= CLOCK * theirs + 0.05 * count, (way, name, mine, theirs, tick)


@case
def in_every_way_it_is_begun_and_ended_its_values_are_the_same(folder):
    alone = launch(run, folder / "alone", script=WAYS)
    for how in ("share", "yield"):
        same_values(alone, launch(traced, folder / how, script=WAYS, env={"PPERF_CUPTI": how}, check=None))
    complete(folder / "share" / "trace.bin", OUTSIDE)
    trace = whole(folder / "share" / "trace.bin")
    assert "cupti.yielded" not in trace.meta and not [r for r in trace.records if r.kind == "AWAY"]
    left_alone(folder / "yield" / "trace.bin", sessions=1 + 3 + 2 + 1, rounds=OUTSIDE)


@case
def one_that_the_program_s_end_ends(folder):
    status = launch(run, folder / "alone", script=UNENDED)
    for how in ("share", "yield"):
        assert launch(traced, folder / how, script=UNENDED, env={"PPERF_CUPTI": how}, check=None) == status, how
    complete(folder / "share" / "trace.bin", 7 + 3)
    left_alone(folder / "yield" / "trace.bin", sessions=1, rounds=7, ends=False)


def left_alone(path, sessions, rounds, ends=True):
    """Our trace, if CUPTI was handed over during the sessions: it has the intervals, and is
    complete outside of them."""
    trace = whole(path)
    edges = sorted((r.stamp, r.edge) for r in trace.records if r.kind == "AWAY")
    assert [edge for _, edge in edges] == (sessions * [1, 2] if ends else [1]), edges
    assert trace.meta["cupti.yielded"] == str(sessions) and trace.meta["source.cupti"] == "on", trace.meta
    inside = lambda stamp: sum(1 for at, edge in edges if at <= stamp) % 2 == 1
    calls = collections.Counter(c.correlation for c in trace.calls if c.kind in ("LAUNCH", "COPY") and not inside(c.stamp))
    gpu = collections.Counter(r.correlation for r in trace.records if r.kind in ("KERNEL", "GPU_COPY"))
    assert calls == gpu and sum(gpu.values()) >= LAUNCHES * rounds, (calls - gpu, gpu - calls)
    assert all(c.correlation == 0 for c in trace.calls if c.kind in ("LAUNCH", "COPY") and inside(c.stamp))
    assert any(inside(c.stamp) for c in trace.calls) and not any(trace.lost), trace.lost
    assert not any(r.kind == "API" and r.domain == 2 for r in trace.records)
    screen = report(path).stdout.decode()
    assert "CUPTI was released to another profiler for" in screen and ("to the end" in " ".join(screen.split())) != ends, screen
    run_of = json.loads(report("tree", path, "-f", "json").stdout)
    totals = run_of["totals"]
    assert (totals["gpu_unknown_ns"] > 0 or not ends) and not run_of["integrity"]["complete"], (totals, run_of["integrity"])


def same_averages(alone, beside):
    """Fails unless two sessions' key_averages() are the same. Ranges that torch.profiler shows on the
    GPU, and the requests of buffers, depend on the machine's speed."""
    mine, theirs = ({row[0]: row[1:] for row in rows if row[0] != "Activity Buffer Request"} for rows in (alone, beside))
    counts, other_counts = ({name: count for name, (count, *_) in rows.items()} for rows in (mine, theirs))
    assert counts == other_counts, set(counts.items()) ^ set(other_counts.items())
    timed = [name for name in mine if "#" not in name and not name.startswith("ProfilerStep")]
    assert sum(mine[name][2] > 0 for name in timed) > 20
    for name in timed:
        for one, other in zip(mine[name][1:], theirs[name][1:], strict=True):
            assert abs(one - other) <= CLOCK * one + 0.05 * mine[name][0], (name, mine[name], theirs[name])


def gpu_tree(path):
    """What the tree says of GPU work, calls and tensors. torch.profiler synchronises by itself."""
    answer = json.loads(report("tree", path, "-f", "json", "--min-percent", "0", "--depth", "100").stdout)
    columns = ("calls", "gpu_calls", "gpu_total_ns", "tensor_alloc_bytes")
    tree = collections.Counter()
    for row in answer["rows"]:
        if "cuCtxSynchronize" not in row["name"]:
            tree.update({(*row.get("path", [row["name"]]), column): row.get(column) or 0 for column in columns})
    return +tree, answer["totals"]


@case
def by_a_schedule_both_show_what_they_show_alone(folder):
    alone = launch(run, folder / "alone", "profiled", script=TRAINING)
    assert len(alone) == 2
    assert launch(traced, folder / "plain", "plain", script=TRAINING, check=None) == []
    tree, totals = gpu_tree(folder / "plain" / "trace.bin")
    for rule, env in ID_RULES.items():
        beside = launch(traced, folder / rule, "profiled", script=TRAINING, env=env, check=None)
        for mine, theirs in zip(alone, beside, strict=True):
            if LINKS:
                same_averages(mine, theirs)
        path = folder / rule / "trace.bin"
        complete(path, 12)
        other_tree, other_totals = gpu_tree(path)
        differing = {key: (tree[key], other_tree[key]) for key in set(tree) | set(other_tree) if tree[key] != other_tree[key]}
        assert not differing, (rule, dict(list(differing.items())[:9]))
        for total in ("gpu_sum_ns", "attributed_ns", "unattributed_ns", "methods", "tensor_alloc_bytes", "alloc_bytes"):
            assert totals[total] == other_totals[total], (rule, total, totals[total], other_totals[total])
        assert totals["unattributed_ns"] == 0 < totals["gpu_sum_ns"]
        if LINKS:
            assert whole(path).meta["cupti.gpu_ids"] == rule


if os.environ.get("PPERF_TEST_QUICK"):
    main()
    sys.exit()


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
        assert 1 <= record["dur"] <= 20, record  # in microseconds, as simulated: the clock's rate is right


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
