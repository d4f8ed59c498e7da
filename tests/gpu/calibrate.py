#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The simulated device (tests/cudasim) against the real one: the same scripts of PyTorch on both, and where they differ. Needs a Python with PyTorch for
CUDA, a C compiler and CUDA's headers; no network. Nothing that differs is a failure: each difference is one that the simulation is to be mended by, or
that stands among its known ones. Called by scripts/gpu-check.sh.

Compared are: what a script prints (memory as PyTorch says it, step by step); the calls of both APIs and the records of CUPTI, counted (call_log.c); and
what was launched in each module and operator, from a trace.
"""
import argparse, collections, concurrent.futures, os, pathlib, re, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import pytorch
from evidence import Evidence
from gpu_reference import calls, gpu, owners, paths
from pytorch import MODELS, Side
from raw_trace import whole

MODELS_TRIED = ("mlp", "bfloat16", "convolutional", "recurrent", "amp", "foreach", "fused", "accumulation", "checkpointing", "streams", "graph")
SHOWN = 25 # differences of one kind and model; all of them are in the evidence
LIMIT_S = 120


def said(side, folder, model, options, limit):
    """What it prints, and the counts of its calls and records."""
    log = folder / "calls"
    output = side.run(folder, MODELS, model, timeout=limit, CUDA_INJECTION64_PATH=str(options.library.resolve()), CALL_LOG=str(log))
    if not log.exists():
        return output, {}
    return output, {what: int(count) for what, count in (line.rsplit("\t", 1) for line in log.read_text().splitlines())}


def places(side, folder, model, options, limit):
    """What was launched in each module and operator, whatever the libraries call their kernels."""
    path = folder / "trace.bin"
    side.run(folder, MODELS, model, library=options.build / "libpperf.so", timeout=limit, PPERF_OUTPUT=str(path))
    trace = whole(path)
    by_node, by_id, found = paths(trace), owners(trace), collections.Counter()
    for record in gpu(trace):
        owner = by_id.get(record.correlation)
        found["%s: %s" % (record.kind, " / ".join(by_node[owner.node]) if owner else "of no call")] += 1
    for kind in ("LAUNCH", "GRAPH_LAUNCH", "COPY", "SET", "SYNC", "ALLOC", "FREE"):
        found["calls: " + kind] = len(calls(trace, kind))
    return dict(found)


def tried(side, model, options, limit):
    with tempfile.TemporaryDirectory(prefix="calibrate-") as folder:
        folder = pathlib.Path(folder)
        output, counts = said(side, folder, model, options, limit)
        return dict(enumerate(output.splitlines(), 1)), counts, places(side, folder, model, options, limit)


def differences(real, simulated):
    """(what, on the device, simulated), the largest difference first."""
    both = [(what, real.get(what, 0), simulated.get(what, 0)) for what in real.keys() | simulated.keys()]
    return sorted((d for d in both if d[1] != d[2]), key=lambda d: (-abs(d[1] - d[2]), d[0]))


def print_differences(title, found):
    print("# %s: %s" % (title, "%d differences" % len(found) if found else "the same"), flush=True)
    for what, real, simulated in found[:SHOWN]:
        print("#   %s: %s on the device, %s simulated" % (what, real, simulated))
    if len(found) > SHOWN:
        print("#   and %d more" % (len(found) - SHOWN), flush=True)


def compare(model, of_device, of_simulation):
    found = {}
    real, simulated = of_device[0], of_simulation[0]
    found["output"] = [("line %d" % n, real.get(n), simulated.get(n)) for n in sorted(real.keys() | simulated.keys()) if real.get(n) != simulated.get(n)]
    for index, title in ((1, "calls and records"), (2, "places")):
        found[title] = differences(of_device[index], of_simulation[index])
    for title, rows in found.items():
        print_differences("%s, %s" % (model, title), rows)
    return found


def of_wheel(torch):
    """Of each of PyTorch's libraries: where it looks for others, and what it needs."""
    found = {}
    for path in sorted((torch / "lib").glob("*.so")):
        text = subprocess.run(["readelf", "-d", str(path)], capture_output=True).stdout.decode()
        found[path.name] = {"rpath": re.findall(r"\((R(?:UN)?PATH)\).*\[(.*)\]", text), "needed": re.findall(r"\(NEEDED\).*\[(.*)\]", text)}
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default="python3", help="one that can import torch")
    parser.add_argument("--library", required=True, type=pathlib.Path, help="call_log.so")
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--evidence", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, help="nothing begins later than so")
    parser.add_argument("--simulated", action="store_true", help="both sides are the simulated device: tries this program")
    parser.add_argument("models", nargs="*", default=MODELS_TRIED)
    options = parser.parse_args()
    options.build = options.build.resolve()
    python = pytorch.absolute(options.python)
    evidence = Evidence(options.evidence, "calibration", options.seconds)
    torch = pytorch.of_python(python)
    if not torch:
        evidence.put("observations", "PyTorch", "%s has none for CUDA; left out" % python)
        print("# calibration: %s has no PyTorch for CUDA; left out" % python)
        return 0
    folder, release, major = torch
    try:
        preload, lacking = pytorch.simulation(options.build, torch)
    except (subprocess.SubprocessError, OSError) as error:
        evidence.put("observations", "the simulated device", str(error))
        print("# calibration: what this PyTorch asks for could not be made up for: %s" % error)
        return 1
    wheel = of_wheel(folder)
    print("# PyTorch %s for CUDA %s, %s" % (release, major, folder))
    for name, of in wheel.items():
        if of["rpath"] and name.startswith(("libtorch_cuda.so", "libtorch_cpu.so", "libc10_cuda.so")):
            print("# %s: %s; needs %s" % (name, "; ".join("%s %s" % pair for pair in of["rpath"]), " ".join(of["needed"])))
    print("# %d functions that it asks for are not simulated: %s" % (len(lacking), dict(collections.Counter(re.match("cu[a-z]+|[a-z]+", n).group() for n in lacking))))
    device, simulated = Side("the device", python, preload if options.simulated else ()), Side("simulated", python, preload)
    evidence.found.update({"torch": release, "wheel": wheel, "not simulated": lacking})
    wrong = []
    # What is simulated needs no device, and is tried meanwhile.
    with concurrent.futures.ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 1) // 2 - 1))) as pool:
        simulations = {model: pool.submit(tried, simulated, model, options, LIMIT_S) for model in options.models}
        for model in options.models:
            if evidence.left() <= 0:
                evidence.put("differences", model, "left out: no time was left")
                simulations[model].cancel()
                continue
            try:
                found = compare(model, tried(device, model, options, evidence.limit(LIMIT_S)), simulations[model].result(evidence.limit(2 * LIMIT_S)))
            except Exception as error:
                found = "%s: %s" % (type(error).__name__, error)
                print("# %s: %s" % (model, found), flush=True)
            evidence.put("differences", model, found)
            if options.simulated and (isinstance(found, str) or any(found.values())):
                wrong.append(model)
    if wrong:
        print("calibrate: the simulated device differs from itself in %s" % ", ".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
