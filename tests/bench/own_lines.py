#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""own_lines.py BEFORE AFTER [ENVIRONMENT [RUNS]]: what PPERF_PYSTACKS=own costs. CPU time of a
tensor that is allocated and freed at once, of 1 KiB and of 1 MiB, on the simulated device, under
two builds of libpperf.so in turns. Prints for each size both medians and minima, and their
difference, in ns. ENVIRONMENT: build/torch-2.15.0."""
import os, pathlib, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import time, torch
def measure(size, pairs=20000):
    torch.empty(size, device="cuda", dtype=torch.uint8)
    best = float("inf")
    for _ in range(9):
        begin = time.process_time_ns()
        for _ in range(pairs): torch.empty(size, device="cuda", dtype=torch.uint8)
        best = min(best, (time.process_time_ns() - begin) / pairs)
    return best
def below(depth): return below(depth - 1) if depth else (measure(1 << 10), measure(1 << 20))
print(*below(5))
"""


def run(library, environment):
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PPERF_OUTPUT=folder + "/trace.bin", OMP_NUM_THREADS="1")
        line = subprocess.run([ROOT / "tests/cudasim/torch.sh", "-b", ROOT / "build", "-p", library, environment, "-c", PROGRAM],
                              env=env, check=True, capture_output=True, text=True).stdout
    return [float(word) for word in line.split()]


def main(before, after, environment=ROOT / "build/torch-2.15.0", runs=9):
    results = {before: [], after: []}
    for _ in range(int(runs)):
        for library in results:
            results[library].append(run(library, environment))
    for at, size in enumerate(("1 KiB", "1 MiB")):
        medians = [statistics.median(r[at] for r in results[library]) for library in (before, after)]
        minima = [min(r[at] for r in results[library]) for library in (before, after)]
        print("%s  median %.0f -> %.0f (%+.0f)  minimum %.0f -> %.0f (%+.0f) ns" %
              (size, *medians, medians[1] - medians[0], *minima, minima[1] - minima[0]))


if not 3 <= len(sys.argv) <= 5:
    sys.exit(__doc__)
main(*sys.argv[1:])
