#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPU samples of PyTorch training on the processor: native stacks through MKL and oneDNN, Python frames that agree with them, the bytes that samples
take, and torch.profiler beside them."""
import bisect, json, pathlib, sys
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cpu_samples import *
from harness import *
from other_profilers import compare_with_perf

OPERATORS = (3, 4)  # kinds of nodes: operators and functions of autograd
TRAINING = r"""
import random, sys, torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.into, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, 4, width // 4).transpose(1, 2) for part in self.into(self.norm(x)).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(x)

net = nn.Sequential(nn.Linear(32, 64), *[Block(64) for _ in range(4)], nn.Linear(64, 32))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)

def load(count):
    value, rows = 1, []
    for _ in range(count):
        value = (value * 1103515245 + 12345) & 0x7fffffff
        rows.append(value / 0x7fffffff)
    return rows

def step():
    x = torch.tensor(load(8 * 32 * 32)).view(8, 32, 32)
    optimizer.zero_grad()
    loss = (net(x) - x).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
STEPS = TRAINING + """
import time
while time.process_time() < float(sys.argv[1]):
    step()
"""
PROFILED = TRAINING + """
import json
from torch.profiler import ProfilerActivity, profile
step()
with profile(activities=[ProfilerActivity.CPU]) as seen:
    for _ in range(10):
        step()
print(json.dumps(sorted((e.key, e.count) for e in seen.key_averages())))
"""


def train(folder, seconds, hz=199, **env):
    run(folder, sys.executable, "-c", STEPS, seconds, check=0, timeout=1000,
        env={"LD_PRELOAD": preload(), "PPERF_SAMPLE": str(hz), "PPERF_OUTPUT": str(folder / "trace.bin"), **env})
    return Samples(folder / "trace.bin")


def needs_rings(samples):
    if samples.meta["sample.source"] != "perf":
        raise Skip(samples.meta["source.cpu_samples"])


@case
def stacks_are_complete_and_python_frames_agree_with_them(folder):
    samples = train(folder, 20)
    needs_rings(samples)
    leaves = samples.leaves()
    blas = sum(count for name, count in leaves.items() if "gemm" in name.lower() or "mkl" in name.lower())
    print("# %d native stacks, %.1f %% complete, %d guessed, %d in MKL; %d lost" % (
        len(samples.native), 100 * samples.complete(), sum(bool(r.flags & GUESSED) for r in samples.native), blas, samples.lost))
    assert len(samples.native) > 300 and blas > 0, (len(samples.native), leaves.most_common(20))
    assert samples.complete() >= 0.9, samples.complete()
    check_callers_in_mkl(samples)

    read = [r for r in samples.native if not r.flags & (NO_PYTHON | CUT) and (r.python or r.flags & (MOVED | UNEQUAL))]
    stayed = [r for r in read if not r.flags & MOVED]
    equal = sum(not r.flags & UNEQUAL for r in stayed) / max(1, len(stayed))
    print("# the threads of %d of %d samples had not moved; %.1f %% of these have equal Python frames" % (len(stayed), len(read), 100 * equal))
    assert len(stayed) > 50 and equal >= 0.95, (len(stayed), len(read), equal)
    # How many have moved depends on when the sampler gets a core: 20 to 35 % while one is idle.
    assert len(stayed) >= 0.4 * len(read), (len(stayed), len(read))


def check_callers_in_mkl(samples):
    """MKL's kernels have no unwind rules, and call nothing but each other: what calls them is in MKL, too."""
    kernels = [[samples.function(a) for a in samples.addresses(r)[:2]] for r in samples.native if r.native]
    kernels = [(kernel, caller) for kernel, caller in kernels if "mkl_blas" in kernel and "kernel" in kernel]
    right = sum("mkl_blas" in caller for _, caller in kernels)
    print("# %d of %d kernels of MKL have a caller in MKL" % (right, len(kernels)))
    assert right >= 0.9 * len(kernels), [pair for pair in kernels if "mkl_blas" not in pair[1]]


@case
def samples_in_operators_have_the_frames_that_their_thread_read(folder):
    samples = train(folder, 12, PPERF_SAMPLE_KIND="clock")
    exact = sorted((r.since, r.stamp, r.python) for r in samples.trace.records if r.kind == "SAMPLE_PYTHON")
    begins, main = [e[0] for e in exact], samples.samples[0].tid
    inside = [r for r in samples.samples if r.node and samples.nodes[r.node].kind in OPERATORS and r.tid == main and r.python]

    def own(r):
        at = bisect.bisect(begins, r.stamp - r.ago) - 1
        return at >= 0 and r.stamp - r.ago <= exact[at][1]
    moved = [r for r in inside if r.flags & (MOVED | UNEQUAL)]
    left = [r for r in moved if not own(r)]
    print("# %d samples in operators; the thread read the frames of %.1f %%; %d had moved, of them %d without frames of the thread" % (
        len(inside), 100 * sum(map(own, inside)) / len(inside), len(moved), len(left)))
    # A thread that is descheduled while it leaves the operator has not seen the request.
    assert len(inside) > 100 and sum(map(own, inside)) >= 0.97 * len(inside) and len(left) <= 0.01 * len(inside), (len(inside), len(left))
    names = {samples.trace.names[samples.frames[python].function] for _, _, python in exact}
    assert {"step", "Linear.forward"} <= names, names


def bytes_of(samples):
    """For each sample, in order: the CPU time until then, and the bytes that it takes. These are its record, and frames and names that are new."""
    native, python, names, sizes, cpu_ns = set(), set(), set(), [], 0
    for r in sorted(samples.samples, key=lambda r: r.stamp):
        size, frame = 48, r.native
        while frame and frame not in native:
            native.add(frame)
            size, frame = size + 24, samples.native_frames[frame].parent
        frame = r.python
        while frame and frame not in python:
            python.add(frame)
            at = samples.frames[frame]
            for name in {at.function, at.file} - names:
                names.add(name)
                size += 16 + len(samples.trace.names[name])
            size, frame = size + 32, at.parent
        cpu_ns += WEIGHT_NS * r.weight
        sizes.append((cpu_ns, size))
    return sizes


@slow
def samples_take_few_bytes(folder):
    samples = train(folder, 40, hz=99)
    sizes = bytes_of(samples)
    parts = [[size for at, size in sizes if at < 5e9], [size for at, size in sizes if at > 2 / 3 * sizes[-1][0]]]
    means = [sum(part) / len(part) for part in parts]
    print("# %d samples; bytes of one in the first 5 s: %.0f, in the last third: %.0f" % (len(sizes), *means))
    # The import has stacks of 150 frames, most of them new. Where the sampler has halved its rate, a sample has more new frames.
    assert len(parts[1]) > 100 and means[1] <= 100 and means[0] <= 1000, means


@slow
def functions_have_the_distribution_that_perf_finds(folder):
    compare_with_perf(folder, sys.executable, "-c", STEPS, 12, functions=100)


@case
def torch_profiler_counts_what_it_counts_alone(folder):
    counts = []
    for env in ({}, {"LD_PRELOAD": preload(), "PPERF_SAMPLE": "199", "PPERF_OUTPUT": str(folder / "trace.bin")}):
        result = run(folder, sys.executable, "-c", PROFILED, env=env, check=0, timeout=390)
        counts.append(json.loads(result.stdout.decode().splitlines()[-1]))
    assert counts[0] == counts[1] and len(counts[0]) > 30, (counts[0], counts[1])
    assert len(Samples(folder / "trace.bin").samples) > 50


main()
