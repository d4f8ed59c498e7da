#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cache.py BUILD: what the second command on the same trace takes of the first one's processor time, and what keeping it costs the first.
The trace is that of tests/programs/job_load.c. Exits with 1 if a gate is missed."""
import os, pathlib, shutil, statistics, subprocess, sys, tempfile, time

BUILD = pathlib.Path(sys.argv[1]).resolve()
REPORT, LOAD = BUILD / "pperf-report", BUILD / "tests/programs/job_load"
STEPS, ROUNDS, AGE_S = 640, 5, 2.1  # about 100 MB; what is younger is not kept
VIEWS = "summary tree table kernels memory api streams queue idle overlap diagnose critical-path".split()
SECOND, KEEPING = 0.3, 1.15
missed = []


def gate(name, value, most):
    print("%-6s %-44s %8.3f x (at most %g)" % ("ok" if value <= most else "MISSED", name, value, most), flush=True)
    if value > most:
        missed.append(name)


def cost(cache, *words):
    """Processor time in seconds, and what is printed."""
    out = os.open(cache.parent / "out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("PPERF_")}, "XDG_CACHE_HOME": str(cache)}
    pid = os.posix_spawn(str(REPORT), [str(REPORT), *map(str, words)], env, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
    _, status, use = os.wait4(pid, 0)
    os.close(out)
    if status:
        sys.exit("pperf-report %s ended with %d" % (words[0], os.waitstatus_to_exitcode(status)))
    return use.ru_utime + use.ru_stime, (cache.parent / "out").read_bytes()


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-cache-", dir=BUILD))
    trace, cache = folder / "rank00000.bin", folder / "cache"
    try:
        subprocess.run([str(LOAD), str(folder), "1", str(STEPS)], check=True)
        time.sleep(AGE_S)
        keeping = []
        for view in VIEWS:
            rounds = []
            for _ in range(ROUNDS):
                shutil.rmtree(cache, ignore_errors=True)
                plain, first, second = cost(cache, view, trace, "--no-cache"), cost(cache, view, trace), cost(cache, view, trace)
                if not plain[1] == first[1] == second[1]:
                    sys.exit("%s prints something else the second time" % view)
                rounds.append((first[0] / plain[0], second[0] / first[0]))
            gate("%s: the second command over the first" % view, statistics.median(r[1] for r in rounds), SECOND)
            keeping += [r[0] for r in rounds]
        gate("the first command over --no-cache", statistics.median(keeping), KEEPING)
        shutil.rmtree(cache, ignore_errors=True)
        cost(cache, "diagnose", trace)
        gate("memory after diagnose over memory alone", cost(cache, "memory", trace)[0] / cost(cache, "memory", trace, "--no-cache")[0], SECOND)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
