#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""parts.py BUILD [RANKS]: what writing and merging the parts of many ranks costs, here and on two workers of Dask, by processor time. Needs
`make scale-peers`. The parts of RANKS (10,000) with 1,500 collectives each are made without traces. Exits with 1 if a gate is missed.

The cluster runs before. What its three processes use in that time when they do nothing is subtracted."""
import datetime, json, os, pathlib, shutil, statistics, subprocess, sys, tempfile, time

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["PPERF_TEST_BUILD"] = str(BUILD)
sys.path.insert(0, str(ROOT / "tests" / "support"))
from harness import environment
from part_tools import ENGINES, Cluster

RANKS, COLLECTIVES, TASKS = int(sys.argv[2]) if len(sys.argv) > 2 else 10000, 1500, 64
ROUNDS = 3
SECONDS, MIB, PIECES = 30, 2048, 1.5  # of 15 million rows; of the pieces over the whole
TRACES, STEPS, OF_A_TASK, JOB = 64, 64, 16, 1024  # traces of 10 MB, and how many the job has
SHARE, BYTES, DASK, JOB_SECONDS = 0.9, 0.01, 0.8, 75
NIGHTS, PLACES, QUERY_SECONDS = 365, 1000, 1
missed = []


def gate(name, value, limit, unit, is_least=False):
    kept = value >= limit if is_least else value <= limit
    print("%-6s %-54s %8.3f %s (at %s %g)" % ("ok" if kept else "MISSED", name, value, unit, "least" if is_least else "most", limit), flush=True)
    if not kept:
        missed.append(name)


def run(*command, output=os.devnull, status=0, **env):
    """Processor time in seconds, and peak memory in MiB, of a command and its children."""
    pid = os.posix_spawn(str(command[0]), [str(word) for word in command], environment(PPERF_PYTHON=str(ENGINES), PPERF_REPORT=str(BUILD / "pperf-report"), **env),
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)])
    _, ended, use = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(ended) != status:
        sys.exit("%s ended with %d" % (" ".join(map(str, command[:3])), os.waitstatus_to_exitcode(ended)))
    return use.ru_utime + use.ru_stime, use.ru_maxrss / 1024


def pperf(*words, **options):
    return run(ROOT / "scripts" / "pperf", *words, **options)


class Busy:
    """What the processes of a cluster use, less what they use when they do nothing."""

    def __init__(self, cluster):
        self.cluster, begin, start = cluster, cluster.cpu_seconds(), time.monotonic()
        time.sleep(10)
        self.idle = (cluster.cpu_seconds() - begin) / (time.monotonic() - start)

    def pperf(self, *words, **options):
        """Processor time of a command, here and on the cluster."""
        begin, start = self.cluster.cpu_seconds(), time.monotonic()
        here, _ = pperf(*words, "--dask", self.cluster.file, **options)
        return here + self.cluster.cpu_seconds() - begin - self.idle * (time.monotonic() - start)


# ---- the map ----

def bench_map(folder, busy):
    """Traces of 10 MB, by one process, by two, and by Dask."""
    job, numbers = folder / "job", iter(range(1000))
    job.mkdir()
    run(BUILD / "tests/programs/job_load", job, TRACES, STEPS, "straggler=3")

    def one(*words, **env):
        return run(BUILD / "pperf-report", "part", job, "-o", folder / ("parts%d" % next(numbers)), *words, **env)[0]

    def on_dask():
        return busy.pperf("part", job, "-o", folder / ("parts%d" % next(numbers)), "--no-findings", "--tasks", TRACES // OF_A_TASK)
    rounds = [(one("--no-findings"), sum(one("--no-findings", "--share", "--tasks", 2, JOB_COMPLETION_INDEX=str(index)) for index in range(2)), on_dask()) for _ in range(ROUNDS)]
    gate("part, one process over two by --share", statistics.median(whole / shared for whole, shared, _ in rounds), SHARE, "x", True)
    gate("part, one process over Dask, %d traces a task" % OF_A_TASK, statistics.median(whole / dask for whole, _, dask in rounds), DASK, "x", True)
    size = lambda path: sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    gate("bytes of the parts over those of the traces", size(folder / "parts0") / size(job), BYTES, "x")
    return statistics.median(whole for whole, *_ in rounds), one()


# ---- the reduce ----

def synthetic(folder, ranks, collectives, tasks):
    parts = folder / ("%dx%d" % (ranks, collectives))
    subprocess.run([str(ENGINES), str(ROOT / "tests/support/synthetic_parts.py"), str(parts), str(ranks), str(collectives), str(tasks)], check=True)
    return parts


def bench_reduce(folder, busy, ranks, collectives, tasks, rounds):
    """Returns the processor time of the whole."""
    parts, ratios, answers = synthetic(folder, ranks, collectives, tasks), [], [folder / "whole.json", folder / "pieces.json"]
    for _ in range(rounds):
        whole, _ = pperf("ranks", parts, "-f", "json", output=answers[0])
        ratios.append(busy.pperf("ranks", parts, "-f", "json", "--dask-from", "0", output=answers[1]) / whole)
        if answers[0].read_bytes() != answers[1].read_bytes():
            sys.exit("the answers differ")
    return whole, statistics.median(ratios)


def bench_memory(folder):
    parts, answers = folder / ("%dx%d" % (RANKS, COLLECTIVES)), [folder / "whole.json", folder / "limited.json"]
    whole, _ = pperf("ranks", parts, "-f", "json", output=answers[0])
    limited, mib = pperf("ranks", parts, "-f", "json", "--memory", "1GB", output=answers[1])
    gate("processor time, %d ranks x %d" % (RANKS, COLLECTIVES), whole, SECONDS, "s")
    gate("with a limit of 1 GB", limited, SECONDS, "s")
    gate("peak memory with a limit of 1 GB", mib, MIB, "MiB")
    if answers[0].read_bytes() != answers[1].read_bytes():
        sys.exit("the answers differ")


# ---- the history ----

def bench_history(folder):
    nights = [[str(datetime.date(2024, 1, 1) + datetime.timedelta(n)), 10, 5500000, [PLACES, 7, NIGHTS - 15, 8]] for n in range(NIGHTS)]
    subprocess.run([str(ENGINES), str(ROOT / "tests/support/history_nights.py"), str(folder / "history")], input=json.dumps(nights), text=True, check=True)
    start = statistics.median(run(ENGINES, "-c", "import duckdb, numpy")[0] for _ in range(ROUNDS))
    query = statistics.median(pperf("history", "regressions", folder / "history", "--job", "nightly", status=1)[0] for _ in range(ROUNDS))
    gate("regressions of %d nights x %d places, less %.1f s of start" % (NIGHTS, PLACES, start), query - start, QUERY_SECONDS, "s")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-parts-", dir=BUILD))
    try:
        with Cluster(folder) as cluster:
            busy = Busy(cluster)
            map_seconds, with_findings = bench_map(folder, busy)
            reduce_seconds, _ = bench_reduce(folder, busy, JOB, 24 * STEPS, TASKS, 1)
            for words, seconds in ("without findings", map_seconds), ("with findings", with_findings):
                gate("%d x 10 MB on two cores, projected, %s" % (JOB, words), (seconds * JOB / TRACES + reduce_seconds) / 2, JOB_SECONDS, "s")
            gate("pieces on two workers over the whole", bench_reduce(folder, busy, RANKS, COLLECTIVES, TASKS, ROUNDS)[1], PIECES, "x")
        bench_memory(folder)
        bench_history(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
