#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch on a GPU under the library: that a script prints what it prints alone, that each launch has its record and each record its launch, that
torch.profiler sees what it sees alone, and what all of it costs. Prints TAP and what was measured; with --evidence FOLDER writes both there as they come, with
the traces. Needs a Python with PyTorch for CUDA; no network. Called by scripts/gpu-check.sh."""
import argparse, collections, json, pathlib, statistics, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import pytorch
from bounded import TooLong
from evidence import Evidence
from gpu_reference import calls, gpu, owners, paths
from pytorch import MODELS, Side
from raw_trace import whole

# The most telling first. `compiled` are Triton's kernels, and takes a minute of compiling.
ALL = ("mlp", "transformer", "graph", "compiled", "streams", "loader", "amp", "checkpointing", "convolutional", "recurrent", "fused", "bfloat16")
ROUNDS = 3
NODE_BACKWARD = 4  # enum trace_node_kind
LIMIT_S = 150
PROFILED = r"""
import collections, json, sys, torch
from torch.profiler import ProfilerActivity, profile

x = torch.ones(512, 512, device="cuda")

def work(times):
    for _ in range(times):
        y = (x * 2) @ x
        y.copy_(x)
        torch.cuda.synchronize()

work(20)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
    work(3)  # what only a first session does
for times in 10, 40:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        work(times)
    seen.export_chrome_trace("seen.json")
    events = json.load(open("seen.json"))["traceEvents"]
    of_gpu = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    early = sum(e["ts"] < calls[e["args"]["correlation"]]["ts"] for e in of_gpu if e["args"]["correlation"] in calls)
    print(json.dumps({"gpu": sorted(collections.Counter("%s %s" % (e["cat"], e["name"]) for e in of_gpu).items()),
                      "of a call": sum(e["args"]["correlation"] in calls for e in of_gpu), "before their call": early}))
    work(7)
"""
# A step of a model that is bound by its launches, and of one that is bound by the GPU; argv: the folder of the models, whose profiler, the width.
STEPS = r"""
import json, statistics, sys, time
sys.path.insert(0, sys.argv[1])
import torch
from device_models import Transformer, training, words
width = int(sys.argv[3])
wide = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(4)]).to("cuda", torch.bfloat16)
optimizer = torch.optim.SGD(wide.parameters(), lr=0.001)
data = torch.randn(width, width, device="cuda", dtype=torch.bfloat16)

def wide_step():
    optimizer.zero_grad()
    wide(data).float().mean().backward()
    optimizer.step()

def measure(step, times):
    found = []
    for _ in range(times):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        queued = time.perf_counter()
        torch.cuda.synchronize()
        found.append((queued - begin, time.perf_counter() - begin))
    return {what: round(statistics.median(t[i] for t in found) * 1e6, 1) for i, what in enumerate(("calls_us", "step_us"))}

steps = {"launch-bound": (training(Transformer(depth=6), words, torch.optim.AdamW), 60), "GPU-bound": (wide_step, 20)}
for step, _ in steps.values():
    for _ in range(20):
        step()
if sys.argv[2] == "Proton":
    import triton.profiler
    triton.profiler.start("proton")
found = {}
for name, (step, times) in steps.items():
    if sys.argv[2] == "torch.profiler":
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]):
            step()  # the first one waits for the profiler to begin
            found[name] = measure(step, times)
    else:
        found[name] = measure(step, times)
print(json.dumps(found))
"""
NO_TIME = "left out: no time was left"
results = []


def check(evidence, name, function):
    problem = NO_TIME
    if evidence.left() > 0:
        try:
            problem = function()
        except Exception as error:
            if not isinstance(error, TooLong) or evidence.left() > 0:
                problem = "%s: %s" % (type(error).__name__, str(error)[:2000])
    evidence.put("checks", name, problem or "ok")
    if problem == NO_TIME:
        results.append(None)
        print("ok %d - %s # SKIP %s" % (len(results), name, problem), flush=True)
        return
    results.append(problem)
    print("%s %d - %s" % ("not ok" if problem else "ok", len(results), name), flush=True)
    for line in (problem or "").splitlines():
        print("#   " + line, flush=True)


def observe(evidence, name, value):
    evidence.put("observations", name, value)
    print("# %s: %s" % (name, json.dumps(value)), flush=True)


def incomplete(trace):
    """What is wrong with how launches and records fit, "" if nothing."""
    ids = collections.Counter(r.correlation for r in gpu(trace))
    started = {c.correlation: c for c in calls(trace, "LAUNCH", "COPY", "SET", "GRAPH_LAUNCH") if not c.result}
    without = collections.Counter("%s without a record: %s" % (c.kind, c.api) for i, c in started.items() if i not in ids)
    of_none = collections.Counter("%s of no call: %s" % (r.kind, trace.names.get(getattr(r, "name", 0), "")) for r in gpu(trace) if r.correlation not in started)
    several = collections.Counter("%s with %d records" % (c.kind, ids[i]) for i, c in started.items() if ids[i] > 1 and c.kind != "GRAPH_LAUNCH")
    problems = ["%d x %s" % (n, what) for what, n in (without + of_none + several).most_common(12)]
    if any(trace.lost):
        problems.append("lost: %s" % trace.lost)
    problems += ["source.%s: %s" % (what, trace.meta.get("source." + what)) for what in ("cupti", "torch_ops", "torch_modules", "torch_memory")
                 if trace.meta.get("source." + what) != "on"]
    return "\n".join(problems)


def describe(evidence, model, trace):
    by_node, by_id = paths(trace), owners(trace)
    backward = [n for n in trace.dictionary["NODE"] if n.kind == NODE_BACKWARD]
    kinds = collections.Counter(r.kind for r in trace.records)
    found = {"records": dict(kinds), "meta": trace.meta, "launches by": dict(collections.Counter(c.api for c in calls(trace, "LAUNCH", "GRAPH_LAUNCH")))}
    found["work in no range"] = sum(1 for r in gpu(trace) if r.correlation not in by_id or not by_node[by_id[r.correlation].node])
    found["untimed"] = sum(1 for r in gpu(trace) if not r.start_ns)
    found["backward functions, those with a forward operator"] = [len(backward), sum(1 for n in backward if n.link)]
    found["kernels"] = collections.Counter(trace.names.get(r.name, "?")[:120] for r in trace.records if r.kind == "KERNEL").most_common(20)
    observe(evidence, model, found)


def check_models(evidence, side, library, models):
    for model in models:
        with tempfile.TemporaryDirectory(prefix="torch-check-") as folder:
            folder, said = pathlib.Path(folder), {}

            def same():
                for name, with_library in ("alone", None), ("under", library):
                    said[name] = side.run(folder, MODELS, model, library=with_library, timeout=evidence.limit(LIMIT_S), PPERF_OUTPUT=str(folder / "trace.bin"))
                return None if said["alone"] == said["under"] else "alone:\n%s\nunder the library:\n%s" % (said["alone"][-600:], said["under"][-600:])

            def fits():
                trace = whole(folder / "trace.bin")
                describe(evidence, model, trace)
                return incomplete(trace)
            check(evidence, "%s: it prints what it prints alone" % model, same)
            evidence.keep(folder / "trace.bin", model)
            if (folder / "trace.bin").exists():
                check(evidence, "%s: each launch has its record, each record its launch" % model, fits)


def seen_otherwise(alone, again, beside):
    """What torch.profiler sees beside the library and not alone, a sentence each. What differs between two runs without the library (a memset of a
    first call, a workspace) says nothing."""
    problems = []
    for number, sessions in enumerate(zip(alone, again, beside), 1):
        first, second, third = (dict(s["gpu"]) for s in sessions)
        for what in sorted(first.keys() | second.keys() | third.keys()):
            one, two, three = first.get(what, 0), second.get(what, 0), third.get(what, 0)
            if one == two != three:
                problems.append("session %d: %s: %d times alone, %d beside the library" % (number, what, one, three))
        unlinked = [sum(counts.values()) - s["of a call"] for counts, s in zip((first, second, third), sessions)]
        if unlinked[2] > max(unlinked[:2]):
            problems.append("session %d: GPU work without its call: %d and %d alone, %d beside the library" % (number, *unlinked))
    return problems


def check_profiler(evidence, side, library):
    with tempfile.TemporaryDirectory(prefix="torch-check-") as folder:
        folder = pathlib.Path(folder)

        def alike():
            runs = [[json.loads(line) for line in side.run(folder, "-c", PROFILED, library=with_library, timeout=evidence.limit(LIMIT_S),
                                                           PPERF_OUTPUT=str(folder / "trace.bin")).splitlines()] for with_library in (None, None, library)]
            observe(evidence, "torch.profiler alone, alone again, and beside the library", runs)
            trace = whole(folder / "trace.bin")
            evidence.keep(folder / "trace.bin", "profiled")
            return "\n".join(seen_otherwise(*runs) + [incomplete(trace)]).strip()
        check(evidence, "torch.profiler sees what it sees alone, and the trace is complete", alike)


def observe_cost(evidence, side, library, rounds, width):
    """What a step takes under each profiler. They take turns, so that what changes with time changes all of them."""
    variants = {"alone": (None, "", {}), "symbols only": (library, "", {"PPERF_CUPTI": "0"}), "operators counted": (library, "", {"PPERF_OPS": "totals"}),
                "as it is": (library, "", {}), "torch.profiler": (None, "torch.profiler", {}), "Proton": (None, "Proton", {})}
    times = {name: [] for name in variants}
    with tempfile.TemporaryDirectory(prefix="torch-check-") as folder:
        for _ in range(rounds):
            for name, (with_library, profiler, env) in list(variants.items()):
                if evidence.left() <= 0:
                    print("# a step: %s" % NO_TIME, flush=True)
                    return
                try:
                    said = side.run(pathlib.Path(folder), "-c", STEPS, MODELS.parent, profiler, width, library=with_library, timeout=evidence.limit(LIMIT_S),
                                    PPERF_OUTPUT=folder + "/trace.bin", **env)
                    times[name].append(json.loads(said))
                except Exception as error:
                    observe(evidence, "a step, %s" % name, NO_TIME if evidence.left() <= 0 else str(error)[-800:])
                    del variants[name]
                evidence.put("observations", "a step, us, in each of %d runs" % rounds, times)
    for model in "launch-bound", "GPU-bound":
        medians = {name: statistics.median(t[model]["step_us"] for t in found) for name, found in times.items() if found}
        if medians.get("alone"):
            observe(evidence, "a %s step, us, and times the one alone (median of %d runs)" % (model, rounds),
                    {name: [round(value, 1), round(value / medians["alone"], 3)] for name, value in medians.items()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default="python3", help="one that can import torch")
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--machine", required=True, help="what is written into the evidence about the machine")
    parser.add_argument("--evidence", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, help="nothing begins later than so")
    parser.add_argument("--simulated", action="store_true", help="on the simulated device: tries this program")
    parser.add_argument("models", nargs="*", default=ALL)
    options = parser.parse_args()
    python, build = pytorch.absolute(options.python), options.build.resolve()
    evidence = Evidence(options.evidence, "torch-check", options.seconds, machine=options.machine)
    torch = pytorch.of_python(python)
    if not torch:
        observe(evidence, "PyTorch", "%s has none for CUDA; left out" % python)
        return 0
    observe(evidence, "PyTorch", torch[1:])
    side, library = Side("the device", python, pytorch.simulation(build, torch)[0] if options.simulated else ()), build / "libpperf.so"
    check_profiler(evidence, side, library)
    check_models(evidence, side, library, options.models[:2])
    observe_cost(evidence, side, library, 1 if options.simulated else ROUNDS, 64 if options.simulated else 8192)
    check_models(evidence, side, library, options.models[2:])
    print("1..%d" % len(results))
    return 1 if any(results) else 0


if __name__ == "__main__":
    sys.exit(main())
