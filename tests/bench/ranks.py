#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ranks.py BUILD: what `pperf-report ranks` costs for many ranks: processor time in proportion to their number, and little memory.
The traces are those of tests/programs/job_load.c, 1.7 MB each. Of shorter ones, 32 of all ranks name the place of a straggler, which is
another one in each job. Exits with 1 if a gate is missed."""
import json, os, pathlib, shutil, statistics, subprocess, sys, tempfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
REPORT, LOAD = BUILD / "pperf-report", BUILD / "tests/programs/job_load"
MOST, STEPS, ROUNDS = 1024, 10, 5
# The ranks of one run over those of another, and the most that its time may be of the other's.
RATIOS = (256, 128, 2.2), (512, 128, 4.5)
SECONDS, MIB = 30, 256  # of all ranks
SEEDS, SEED_STEPS, PLACE = 20, 4, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
missed = []


def gate(name, value, most, unit):
    print("%-6s %-44s %8.2f %s (at most %g)" % ("ok" if value <= most else "MISSED", name, value, unit, most), flush=True)
    if value > most:
        missed.append(name)


def cost(folder):
    """Processor time in seconds and peak memory in MiB."""
    out = os.open(os.devnull, os.O_WRONLY)
    pid = os.posix_spawn(str(REPORT), [str(REPORT), "ranks", str(folder), "-f", "json"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
    _, status, use = os.wait4(pid, 0)
    os.close(out)
    if status:
        sys.exit("pperf-report ended with %d" % os.waitstatus_to_exitcode(status))
    return use.ru_utime + use.ru_stime, use.ru_maxrss / 1024


def place_is_named(folder, seed):
    """Whether the straggler of a job has its rank and its place."""
    traces, straggler = folder / "seed", (seed * 389 + 3) % MOST
    traces.mkdir()
    subprocess.run([str(LOAD), str(traces), str(MOST), str(SEED_STEPS), "straggler=%d" % straggler, "seed=%d" % seed], check=True)
    found = json.loads(subprocess.run([str(REPORT), "ranks", str(traces), "-f", "json"], check=True, capture_output=True).stdout)["stragglers"]
    shutil.rmtree(traces)
    return [(one["rank"], one["path"]) for one in found] == [(straggler, [PLACE])]


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-ranks-", dir=BUILD))
    try:
        (folder / str(MOST)).mkdir()
        subprocess.run([str(LOAD), str(folder / str(MOST)), str(MOST), str(STEPS), "straggler=3"], check=True)
        counts = sorted({count for ratio in RATIOS for count in ratio[:2]})
        for count in counts:
            (folder / str(count)).mkdir()
            for rank in range(count):
                os.link(folder / str(MOST) / ("rank%05d.bin" % rank), folder / str(count) / ("rank%05d.bin" % rank))
        rounds = [{count: cost(folder / str(count))[0] for count in counts} for _ in range(ROUNDS)]
        for large, small, most in RATIOS:
            gate("processor time, %d over %d ranks" % (large, small), statistics.median(r[large] / r[small] for r in rounds), most, "x")
        seconds, mib = cost(folder / str(MOST))
        gate("processor time, %d ranks" % MOST, seconds, SECONDS, "s")
        gate("peak memory, %d ranks" % MOST, mib, MIB, "MiB")
        gate("jobs of %d whose straggler has another place or rank" % SEEDS, sum(not place_is_named(folder, seed) for seed in range(SEEDS)), 0, "jobs")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
