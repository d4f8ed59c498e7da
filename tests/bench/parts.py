#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""parts.py BUILD [RANKS]: what merging the parts of many ranks costs, here and on two workers of Dask, by processor time. Needs
`make scale-peers`. The parts of RANKS (10,000) with 1,500 collectives each are made without traces. Exits with 1 if a gate is missed."""
import os, pathlib, shutil, subprocess, sys, tempfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["PPERF_TEST_BUILD"] = str(BUILD)
sys.path.insert(0, str(ROOT / "tests" / "support"))
from harness import environment
from part_tools import ENGINES, Cluster

RANKS, COLLECTIVES, TASKS = int(sys.argv[2]) if len(sys.argv) > 2 else 10000, 1500, 64
SECONDS, MIB, PIECES = 30, 2048, 1.5  # of 15 million rows; of the pieces over the whole
missed = []


def gate(name, value, most, unit):
    print("%-6s %-44s %8.2f %s (at most %g)" % ("ok" if value <= most else "MISSED", name, value, unit, most), flush=True)
    if value > most:
        missed.append(name)


def merge(parts, folder, *options):
    """Processor time in seconds, peak memory in MiB, and the answer."""
    answer = folder / "answer.json"
    pid = os.posix_spawn(str(ROOT / "scripts" / "pperf"), ["pperf", "ranks", str(parts), "-f", "json", *options],
                         environment(PPERF_PYTHON=str(ENGINES), PPERF_REPORT=str(BUILD / "pperf-report")),
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, str(answer), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)])
    _, status, use = os.wait4(pid, 0)
    if status:
        sys.exit("pperf ranks ended with %d" % os.waitstatus_to_exitcode(status))
    return use.ru_utime + use.ru_stime, use.ru_maxrss / 1024, answer.read_bytes()


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-parts-", dir=BUILD))
    try:
        parts, rows = folder / "parts", "%d ranks x %d" % (RANKS, COLLECTIVES)
        subprocess.run([str(ENGINES), str(ROOT / "tests/support/synthetic_parts.py"), str(parts), str(RANKS), str(COLLECTIVES), str(TASKS)], check=True)
        whole, limited = merge(parts, folder), merge(parts, folder, "--memory", "1GB")
        gate("processor time, " + rows, whole[0], SECONDS, "s")
        gate("with a limit of 1 GB", limited[0], SECONDS, "s")
        gate("peak memory with a limit of 1 GB", limited[1], MIB, "MiB")
        with Cluster(folder) as cluster:
            before = cluster.cpu_seconds()
            pieces = merge(parts, folder, "--dask", str(cluster.file))
            gate("pieces on two workers over the whole", (pieces[0] + cluster.cpu_seconds() - before) / whole[0], PIECES, "x")
        if not whole[2] == limited[2] == pieces[2]:
            sys.exit("the answers differ")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
