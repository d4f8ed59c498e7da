#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""threads.py BUILD: how views share their work between two threads (-j 2), by processor time. The thread that does most bounds the time
on two idle cores. Exits with 1 if a gate is missed."""
import os, pathlib, shutil, subprocess, sys, tempfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
MEGABYTES, ROUNDS = 24, 5
# By view: the first thread with -j 2, and both threads, over the only one with -j 1.
MOST = {"tree": (0.95, 1.3), "idle": (0.95, 1.3), "diagnose": (0.95, 1.3)}
missed = []


def run(view, jobs, trace):
    """Seconds of processor time of the first thread, and of all."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    pid = os.posix_spawn(str(BUILD / "pperf-report"), ["pperf-report", view, "-j", str(jobs), "--no-cache", str(trace)],
                         os.environ, file_actions=quiet)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    first = int(pathlib.Path("/proc/%d/schedstat" % pid).read_text().split()[0]) / 1e9
    _, status, use = os.wait4(pid, 0)
    if status:
        sys.exit("%s ended with %d" % (view, os.waitstatus_to_exitcode(status)))
    return first, use.ru_utime + use.ru_stime


def gate(name, value, most):
    print("%-6s %-44s %6.2f x (at most %g)" % ("ok" if value <= most else "MISSED", name, value, most), flush=True)
    if value > most:
        missed.append(name)


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-threads-", dir=BUILD))
    try:
        subprocess.run([str(BUILD / "tests/programs/job_load"), str(folder), "1", str(MEGABYTES * 6)], check=True)
        trace = folder / "rank00000.bin"
        for view, (most_first, most_all) in MOST.items():
            rounds = [(run(view, 1, trace), run(view, 2, trace)) for _ in range(ROUNDS)]
            alone = min(one[1] for one, _ in rounds)
            gate("the first of two threads over one, " + view, min(two[0] for _, two in rounds) / alone, most_first)
            gate("both of two threads over one, " + view, min(two[1] for _, two in rounds) / alone, most_all)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
