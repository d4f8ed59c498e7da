#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""peers.py BUILD: the same load under pperf and under other recorders, in turns, on one machine; then what reading their traces takes.
Writes bench/RESULTS.md and the table in README.md. Exits with 1 if a gate is missed; with 2, and writes nothing, if the machine was too
busy to be believed, or if there is nothing to compare with. BENCH_ANYWAY=0.1, a share of the load, prints what a busy machine gives, and writes nothing either."""
import os, pathlib, shutil, statistics, subprocess, sys, tempfile, time
import machine, results, tools

ROOT = pathlib.Path(__file__).resolve().parents[3]
ANYWAY = bool(os.environ.get("BENCH_ANYWAY"))  # a share of the load: 0.1
SCALE = float(os.environ["BENCH_ANYWAY"]) if ANYWAY else 1
ROUNDS = 3 if ANYWAY else 9
PAIRS, TWO, READ, KILLED, STARTS = int(4e6 * SCALE), int(2e6 * SCALE), int(4e6 * SCALE), int(2e5 * SCALE), 20
# Name, what of theirs, limit; ours in each round by theirs in the same round.
GATES = (
    ("a range, elapsed, of LTTng-UST's with names", ("elapsed", "lttng"), 0.25),
    ("a range, elapsed, of LTTng-UST's with numbers", ("elapsed", "lttng_number"), 0.28),
    ("a range, elapsed, of uftrace's", ("elapsed", "uftrace"), 0.50),
    ("a whole run, of uftrace's", ("whole", "uftrace"), 0.50),
    ("a range, CPU time, of Tracy's, not connected", ("cpu", "tracy"), 0.50),
)
READ_GATES = (("uftrace report", 10), ("babeltrace2, decoding only", 12), ("babeltrace2, as text", 50))


def recording(there):
    """Rounds of every tool: one thread, two threads, start-up."""
    measures = {}
    for key, tool in there.items():
        for threads in tool.threads:
            if threads <= os.cpu_count():
                measures[key, threads] = lambda tool=tool, threads=threads: tool.measure(PAIRS if threads == 1 else TWO, threads)
        if 2 in tool.threads and key != "floor":
            measures[key, "start"] = lambda tool=tool: tool.start_up(STARTS)
    steady = lambda values: values["floor", 1].elapsed < machine.PREEMPTED * values["floor", 1].cpu
    return machine.in_rounds(measures, ROUNDS, steady, ANYWAY)


def read(command):
    """Seconds on one CPU."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=300, env=tools.environment(),
                   preexec_fn=lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}))
    return time.perf_counter() - start


def reading(there):
    """Rounds of every reader on a trace of the same ranges: million events a second, of which a range has two."""
    measures = {}
    for tool in there.values():
        if not tool.readers or 2 not in tool.threads:
            continue
        ranges = tool.run(READ, 1).ranges
        for name, command in tool.readers.items():
            measures[name] = lambda command=command, ranges=ranges: 2e-6 * ranges / read(command)
    rounds = machine.in_rounds(measures, 2 if ANYWAY else 5, anyway=ANYWAY)
    for tool in there.values():
        tool.remove()
    return rounds


def gates(there, rounds, reads, lost):
    """(name, value, lowest, highest, limit, kept) of each."""
    rows = []
    for name, (what, key), limit in GATES:
        if key in there:
            ratios = [getattr(r["pperf", 1], what) / getattr(r[key, 1], what) for r in rounds]
            rows.append((name, "at most", limit, ratios, statistics.median(ratios) <= limit))
    for name, limit in READ_GATES:
        if name in reads[0]:
            ratios = [r["pperf-report tree"] / r[name] for r in reads]
            rows.append(("events a second, of %s" % name, "at least", limit, ratios, statistics.median(ratios) >= limit))
    taken = [r["pperf", 1].bytes / r["pperf", 1].ranges for r in rounds]
    rows.append(("bytes a range", "at most", 16, taken, statistics.median(taken) <= 16))
    rows.append(("ranges lost by kill -9", "at most", 0, [lost["pperf"][0]], lost["pperf"][0] == 0))
    return rows


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="peers-", dir=build))
    there = {}
    try:
        there, skipped = tools.there(build, folder)
        for line in skipped:
            print("skipped: " + line)
        if "lttng" not in there and "uftrace" not in there and "tracy" not in there:
            print("bench-peers: there is nothing to compare with")
            return 2
        if not ANYWAY:
            machine.check_quiet()
        start = time.monotonic()
        print("recording: %d rounds of %s" % (ROUNDS, ", ".join(tool.name for tool in there.values())), flush=True)
        rounds, shares = recording(there)
        print("kill -9, then reading", flush=True)
        lost = {key: tool.lost(KILLED) for key, tool in there.items() if tool.keeps and 2 in tool.threads}
        reads, read_shares = reading(there)
        found = results.Measured(there, skipped, rounds, reads, lost, gates(there, rounds, reads, lost), shares + read_shares,
                                 tools.Lttng.discarded, time.monotonic() - start)
    except machine.Busy as busy:
        print("bench-peers: the machine is too busy to be believed: %s; nothing is written" % busy)
        return 2
    finally:
        for tool in there.values():
            tool.close()
        shutil.rmtree(folder, ignore_errors=True)
    print(results.document(found))
    if ANYWAY:
        print("bench-peers: measured whatever else the machine did; nothing is written")
        return 2
    results.write(ROOT, found)
    missed = [row[0] for row in found.gates if not row[4]]
    print("%d gates missed%s" % (len(missed), ": " + ", ".join(missed) if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
