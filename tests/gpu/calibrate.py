#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The simulated device (tests/cudasim) against the real one: the same scripts of PyTorch on both, and where they differ. Needs a Python with PyTorch for
CUDA, a C compiler and CUDA's headers; no network. Nothing that differs is a failure: each difference is one that the simulation is to be mended by, or
that stands among its known ones. Called by scripts/gpu-check.sh.

Compared are: what a script prints (memory as PyTorch says it, step by step); the calls of both APIs and the records of CUPTI, counted (call_log.c); and
what was launched in each module and operator, from a trace.
"""
import argparse, collections, json, os, pathlib, re, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from gpu_truth import calls, gpu, owners, paths
from raw_trace import whole

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCRIPT = ROOT / "tests" / "torch" / "device_models.py"
MODELS = ("mlp", "bfloat16", "convolutional", "recurrent", "amp", "foreach", "fused", "accumulation", "checkpointing", "streams", "graph")
SHOWN = 25 # differences of one kind and model; all of them are in the evidence


class Side:
    """One of the two devices: how a script runs on it."""

    def __init__(self, name, options, preload=()):
        self.name, self.options, self.preload = name, options, [str(path) for path in preload]

    def run(self, folder, model, library=None, **env):
        preload = ([str(library)] if library else []) + self.preload
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TMPDIR": str(folder), "LD_PRELOAD": " ".join(preload), **env}
        done = subprocess.run([self.options.python, str(SCRIPT), model], cwd=folder, env=env, capture_output=True, timeout=300)
        if done.returncode:
            raise RuntimeError("%s, %s: %d: %s" % (model, self.name, done.returncode, done.stderr.decode(errors="replace")[-500:]))
        return done.stdout.decode()

    def said(self, folder, model):
        """What it prints, and the counts of its calls and records."""
        log = folder / "calls"
        said = self.run(folder, model, CUDA_INJECTION64_PATH=str(self.options.library.resolve()), CALL_LOG=str(log))
        if not log.exists():
            return said, {}
        return said, {what: int(count) for what, count in (line.rsplit("\t", 1) for line in log.read_text().splitlines())}

    def places(self, folder, model):
        """What was launched in each module and operator, whatever the libraries call their kernels."""
        path = folder / "trace.bin"
        self.run(folder, model, self.options.build / "libpperf.so", PPERF_OUTPUT=str(path))
        trace = whole(path)
        by_node, by_id, found = paths(trace), owners(trace), collections.Counter()
        for record in gpu(trace):
            owner = by_id.get(record.correlation)
            found["%s: %s" % (record.kind, " / ".join(by_node[owner.node]) if owner else "of no call")] += 1
        for kind in ("LAUNCH", "GRAPH_LAUNCH", "COPY", "SET", "SYNC", "ALLOC", "FREE"):
            found["calls: " + kind] = len(calls(trace, kind))
        return dict(found)


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


def compare(sides, model):
    found, results = {}, []
    for side in sides:
        with tempfile.TemporaryDirectory(prefix="calibrate-") as folder:
            folder = pathlib.Path(folder)
            said, counts = side.said(folder, model)
            results.append((dict(enumerate(said.splitlines(), 1)), counts, side.places(folder, model)))
    (real, *_), (simulated, *_) = results
    found["output"] = [("line %d" % n, real.get(n), simulated.get(n)) for n in sorted(real.keys() | simulated.keys()) if real.get(n) != simulated.get(n)]
    for index, title in ((1, "calls and records"), (2, "places")):
        found[title] = differences(results[0][index], results[1][index])
    for title, rows in found.items():
        print_differences("%s, %s" % (model, title), rows)
    return found


def torch_of(python):
    """Where PyTorch is, its release, and the major of the CUDA that it was built for; None: there is none for CUDA."""
    script = "import torch; print(torch.__path__[0], torch.__version__, torch.version.cuda)"
    done = subprocess.run([python, "-c", script], capture_output=True)
    words = done.stdout.decode().split()
    return (pathlib.Path(words[0]), words[1], words[2].split(".")[0]) if len(words) == 3 and words[2] != "None" else None


def of_wheel(torch):
    """Of each of PyTorch's libraries: where it looks for others, and what it needs."""
    found = {}
    for path in sorted((torch / "lib").glob("*.so")):
        text = subprocess.run(["readelf", "-d", str(path)], capture_output=True).stdout.decode()
        found[path.name] = {"rpath": re.findall(r"\((R(?:UN)?PATH)\).*\[(.*)\]", text), "needed": re.findall(r"\(NEEDED\).*\[(.*)\]", text)}
    return found


def stubs_of(torch, libraries, out):
    """Stubs for what the wheel asks for and the simulation lacks: their names."""
    subprocess.run([sys.executable, str(ROOT / "tests/cudasim/wheel_stubs.py"), str(torch), str(libraries), str(out)], check=True)
    names = subprocess.run(["nm", "-D", "--defined-only", str(out / "libcudasim_rest.so")], capture_output=True).stdout.decode()
    return sorted(line.split()[-1] for line in names.splitlines())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default="python3", help="one that can import torch")
    parser.add_argument("--library", required=True, type=pathlib.Path, help="call_log.so")
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--evidence", type=pathlib.Path)
    parser.add_argument("--simulated", action="store_true", help="both sides are the simulated device: tries this program")
    parser.add_argument("models", nargs="*", default=MODELS)
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.python = os.path.abspath(options.python) if "/" in options.python else options.python
    torch = torch_of(options.python)
    if not torch:
        print("# calibration: %s has no PyTorch for CUDA; left out" % options.python)
        return 0
    folder, release, major = torch
    libraries = options.build / "cudasim" / major
    stubs = options.build / "cudasim" / "calibration"
    try:
        lacking = stubs_of(folder, libraries, stubs)
    except subprocess.SubprocessError as error:
        print("# calibration: what this PyTorch asks for could not be made up for: %s" % error)
        return 1
    wheel = of_wheel(folder)
    print("# PyTorch %s for CUDA %s, %s" % (release, major, folder))
    for name, of in wheel.items():
        if of["rpath"] and name.startswith(("libtorch_cuda.so", "libtorch_cpu.so", "libc10_cuda.so")):
            print("# %s: %s; needs %s" % (name, "; ".join("%s %s" % pair for pair in of["rpath"]), " ".join(of["needed"])))
    print("# %d functions that it asks for are not simulated: %s" % (len(lacking), dict(collections.Counter(re.match("cu[a-z]+|[a-z]+", n).group() for n in lacking))))
    preload = sorted(libraries.glob("lib*.so.*")) + sorted(stubs.glob("lib*.so.*")) + [stubs / "libcudasim_rest.so"]
    sides = Side("the device", options, preload if options.simulated else ()), Side("simulated", options, preload)
    evidence = {"torch": release, "wheel": wheel, "not simulated": lacking, "differences": {}}
    for model in options.models:
        try:
            evidence["differences"][model] = compare(sides, model)
        except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
            evidence["differences"][model] = "%s: %s" % (type(error).__name__, error)
            print("# %s: %s" % (model, evidence["differences"][model]), flush=True)
    if options.evidence:
        (options.evidence / "calibration.json").write_text(json.dumps(evidence, indent=1) + "\n")
    wrong = [model for model, found in evidence["differences"].items() if options.simulated and (isinstance(found, str) or any(found.values()))]
    if wrong:
        print("calibrate: the simulated device differs from itself in %s" % ", ".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
