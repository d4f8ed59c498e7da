#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench_torch.py BUILD PYTHON: the cost of recording PyTorch, against that of PyTorch's own tools,
in alternating runs on CPU tensors. Each measurement is a process that runs one loop. A tool's cost
is its time per call less that of the bare process of the same round. Absolute times are this
machine's, and only the ratios have gates. Exits with 1 if one is missed."""
import os, pathlib, platform, re, shutil, statistics, subprocess, sys, tempfile

OPERATORS, MODULES, ROUNDS = 60000, 30000, int(os.environ.get("BENCH_ROUNDS", "9"))

LOADS = """
import sys, time, torch
what, tool, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)

class Nothing(torch.nn.Module):
    def forward(self, x):
        return x

def operators(count):
    x = torch.zeros(1)
    negate = x.neg_ # one operator, and none within
    for _ in range(count):
        negate()

def modules(count):
    module, x = Nothing(), 1
    for _ in range(count):
        module(x)

load = {"operators": operators, "modules": modules}[what]

def timed():
    best = None
    for _ in range(3):
        load(2000)
        start = time.process_time_ns()
        load(count)
        spent = (time.process_time_ns() - start) / count
        best = spent if best is None else min(best, spent)
    return best

if tool == "nvtx":
    from torch.autograd.profiler import ProfilerConfig, ProfilerState
    from torch._C._profiler import _ExperimentalConfig
    torch._C._autograd._enable_profiler(ProfilerConfig(ProfilerState.NVTX, False, False, False, False, False, _ExperimentalConfig()), set())
    print(timed())
    torch._C._autograd._disable_profiler()
elif tool == "profiler":
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        print(timed())
elif tool == "hooks":
    torch.nn.modules.module.register_module_forward_pre_hook(lambda module, args: None)
    torch.nn.modules.module.register_module_forward_hook(lambda module, args, result: None)
    print(timed())
else:
    print(timed())
"""

build, python = pathlib.Path(sys.argv[1]).resolve(), str(pathlib.Path(sys.argv[2]).absolute())
library = build / "libpperf.so"
folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-torch-", dir=build))
missed = []


def run(what, tool, count, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PPERF_", "NVTX_", "LD_PRELOAD"))}
    env.update({k: str(v) for k, v in more.items()})
    result = subprocess.run([python, "-c", LOADS, what, tool, str(count)], env=env, cwd=folder, capture_output=True, text=True, timeout=300)
    if result.returncode:
        sys.exit("bench-torch: %s under %s ended with %d: %s" % (what, tool, result.returncode, result.stderr[-400:]))
    return float(result.stdout)


def pperf(what, count, **more):
    cost = run(what, "pperf", count, LD_PRELOAD=library, **more)
    return cost


def size(**more):
    run("operators", "pperf", size.count, LD_PRELOAD=library, **more)
    bytes_ = (folder / "trace.bin").stat().st_size
    (folder / "trace.bin").unlink()
    return bytes_


def gate(name, value, limit, detail, unit="x"):
    good = value <= limit
    print("%-6s %-58s %7.3f %s (at most %g)  %s" % ("ok" if good else "MISSED", name, value, unit, limit, detail), flush=True)
    if not good:
        missed.append(name)


def in_turns(**measures):
    """{name: one value for each round}, measured in alternating runs."""
    figures = {name: [] for name in measures}
    for _ in range(ROUNDS):
        for name, measure in measures.items():
            figures[name].append(measure())
        for path in folder.glob("trace*.bin*"):
            path.unlink()
    return figures


def ratio(figures, ours, theirs):
    """The median over the rounds of our added time divided by theirs, and both medians as text."""
    added = {name: [value - bare for value, bare in zip(figures[name], figures["bare"])] for name in (ours, theirs)}
    detail = "adds %.0f ns to %.0f; %s adds %.0f" % (statistics.median(added[ours]), statistics.median(figures["bare"]), theirs,
                                                   statistics.median(added[theirs]))
    return statistics.median(a / b for a, b in zip(added[ours], added[theirs])), detail


def main():
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    version = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True).stdout.strip()
    print("%s, %d CPUs, Linux %s, PyTorch %s" % (cpu[1] if cpu else platform.machine(), os.cpu_count(), platform.release(), version), flush=True)
    figures = in_turns(bare=lambda: run("operators", "bare", OPERATORS), pperf=lambda: pperf("operators", OPERATORS),
                       totals=lambda: pperf("operators", OPERATORS, PPERF_OPS="totals"),
                       emit_nvtx=lambda: run("operators", "nvtx", OPERATORS), profiler=lambda: run("operators", "profiler", OPERATORS // 3))
    gate("an operator against emit_nvtx without a tool", *with_limit(ratio(figures, "pperf", "emit_nvtx"), 0.5))
    gate("an operator against torch.profiler (CPU)", *with_limit(ratio(figures, "pperf", "profiler"), 0.5))
    gate("an operator, PPERF_OPS=totals, against emit_nvtx", *with_limit(ratio(figures, "totals", "emit_nvtx"), 0.35))
    figures = in_turns(bare=lambda: run("modules", "bare", MODULES), pperf=lambda: pperf("modules", MODULES),
                       hooks=lambda: run("modules", "hooks", MODULES))
    gate("a module's call against a pair of global forward hooks", *with_limit(ratio(figures, "pperf", "hooks"), 0.4))
    size.count = 20000
    small = size()
    size.count = 120000
    large = size()
    gate("an operator in the trace", (large - small) / 300000, 16, "%d and %d bytes" % (small, large), "bytes")
    print("%d gates missed%s" % (len(missed), ": " + ", ".join(missed) if missed else ""))
    return 1 if missed else 0


def with_limit(result, limit):
    return result[0], limit, result[1]


if __name__ == "__main__":
    try:
        status = main()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(status)
