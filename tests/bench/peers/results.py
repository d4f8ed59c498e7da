# SPDX-License-Identifier: MIT
"""What bench-peers found, as bench/RESULTS.md and as the part of it that README.md shows between two marks."""
import collections, datetime, pathlib, statistics
import machine

BEGIN, END = "<!-- bench-peers: from bench/RESULTS.md -->", "<!-- bench-peers: end -->"
READERS_BEGIN, READERS_END = "<!-- bench-readers: begin -->", "<!-- bench-readers: end -->"
Measured = collections.namedtuple("Measured", "tools skipped rounds reads lost gates shares discarded seconds")

METHOD = """\
Every recorder has the same load: ranges five deep among 1000 names of 31 to 35 bytes, opened and closed in a loop in the program's own
threads, which stay on one CPU each; what a recorder runs beside them has the other CPUs. A range's time is the loop's, elapsed,
after every name has been seen once; with two threads it is the CPU time of the slower, as recorders with a process of their own otherwise wait
for a CPU. A whole run ends when the trace is complete. Start-up is a process with five ranges, less the same without a tool, the least of twenty a round, in a
folder where no trace is yet.
What kill -9 takes is counted: the program says how many ranges it has closed and kills itself; what its trace then shows is subtracted.
Readers have one CPU, the trace is in the page cache, a range is two events.

A round measures everything once, each round in another order. Between two measures all that is ours sleeps, and what the machine does then
is what others use of it: a round in which that is more than %d %% of the machine, or in which the floor's loop was interrupted for more than
%d %% of its time, does not count, and too few rounds that do write no result. Figures are medians of rounds, [lowest to highest]; a ratio is
one of the same round, and the median is taken of the ratios.""" % (100 * machine.OTHERS, round(100 * (machine.PREEMPTED - 1)))


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def spread(values, digits=1):
    values = list(values)
    return "%.*f [%.*f to %.*f]" % (digits, statistics.median(values), digits, min(values), digits, max(values))


def middle(values, digits=1):
    return "%.*f" % (digits, statistics.median(values))


def of(found, key, what, threads=1):
    return [getattr(r[key, threads], what) for r in found.rounds if (key, threads) in r]


def started(found, key):
    """Milliseconds that a recorder adds to a process."""
    return [1e3 * (r[key, "start"] - r["nothing", "start"]) for r in found.rounds]


def shown(found):
    return [key for key in ("pperf", "lttng", "uftrace", "tracy") if key in found.tools]


def summary(found):
    """The table that README.md has, too."""
    keys = shown(found)
    best = {"pperf": "pperf-report tree", "lttng": "babeltrace2, decoding only", "uftrace": "uftrace report"}
    ours = statistics.median(of(found, "pperf", "elapsed"))
    rows = [
        ["a range, opened and closed"] + ["%.0f ns" % statistics.median(of(found, key, "elapsed")) for key in keys],
        ["as a multiple of pperf's"] + ["%.1f" % (statistics.median(of(found, key, "elapsed")) / ours) for key in keys],
        ["added to the start of a process"] + [middle(started(found, key)) + " ms" for key in keys],
        ["in the trace"] + [middle(b / r for b, r in zip(of(found, key, "bytes"), of(found, key, "ranges"))) + " bytes a range"
                           if found.tools[key].keeps else "-" for key in keys],
        ["lost by kill -9"] + ["%d of %d ranges" % found.lost[key] if key in found.lost else "-" for key in keys],
        ["read, events a second"] + [middle([r[best[key]] for r in found.reads], 0 if key == "pperf" else 1) + " million"
                                    if key in best else "-" for key in keys],
    ]
    if ("pperf", 2) in found.rounds[0]:
        rows.insert(2, ["by two threads at once, CPU time"] + ["%.0f ns" % statistics.median(of(found, key, "cpu", 2)) for key in keys])
    head = ["%s %s" % (found.tools[key].name, found.tools[key].version) for key in keys]
    return "%s, %s:\n\n%s" % (machine.description(), datetime.date.today().isoformat(), table([""] + head, rows))


def details(found):
    rows = []
    for key, tool in found.tools.items():
        two, start = of(found, key, "cpu", 2), (key, "start") in found.rounds[0] and key != "nothing"
        rows.append([tool.name, tool.what, spread(of(found, key, "elapsed")), spread(of(found, key, "cpu")), spread(two) if two else "-",
                     spread(of(found, key, "whole"), 3), spread(started(found, key)) if start else "-"])
    return table(["", "what", "ns a range", "CPU ns", "CPU ns, two threads", "whole run, s", "start-up, ms"], rows)


def document(found):
    gates = [[name, "%s %g" % (word, limit), spread(values, 3 if max(values) < 10 else 1), "kept" if kept else "**missed**"]
             for name, word, limit, values, kept in found.gates]
    reads = [[name, spread(r[name] for r in found.reads)] for name in found.reads[0]]
    ranges = max(of(found, "pperf", "ranges"))
    commit = machine.first_line("git", "-C", str(pathlib.Path(__file__).parent), "rev-parse", "--short", "HEAD")
    compiler = machine.first_line("cc", "--version")
    notes = ["%d rounds of recording with %d ranges each, %d of reading, %.0f s; others used %.1f %% of the machine, at most %.1f %% in a round."
             % (len(found.rounds), ranges, len(found.reads), found.seconds, 100 * statistics.mean(found.shares), 100 * max(found.shares)),
             "Versions: %s; %s%s." % (", ".join("%s %s" % (found.tools[key].name, found.tools[key].version) for key in shown(found)), compiler, "; pperf's commit %s" % commit if commit else "")]
    if "lttng" in found.tools:
        notes.append("LTTng-UST discarded %d events in all runs." % found.discarded)
    if "uftrace" in found.tools:
        notes.append("uftrace records calls, the others ranges that a program names: as deep and as many names, but not the same instrument. The call itself is in its figure.")
    if "tracy" in found.tools:
        notes.append("Tracy's client without its server keeps everything in memory; nothing is on disk that could be read or survive.")
    notes += ["Not measured: " + line + "." for line in found.skipped]
    notes.append("Not measured either: the Perfetto SDK and Caliper, which Debian does not have; memray: it writes each malloc, free and mmap of a program with the "
                 "Python stack, pperf each tensor and each of CUDA's allocations with the open range and no malloc, so no load makes both write the same.")
    notes.append("What following PyTorch costs against its own tools: `make bench-torch`; against the floor: `make bench`.")
    return """\
# What recording and reading cost here and elsewhere

Written by `make bench-peers`, which measures anew, its last section by `make bench-readers`; not edited by hand.

%s

## Gates

%s

## Recording

%s

## Reading, million events a second

%s

## How it is measured

%s

%s
""" % (block(found), table(["", "gate", "measured", ""], gates), details(found), table(["", ""], reads), METHOD, "\n".join("- " + note for note in notes))


def block(found):
    return "%s\n%s\n%s" % (BEGIN, summary(found), END)


def readers_of(text):
    """The section of bench-readers, which has measured it apart."""
    return READERS_BEGIN + text.split(READERS_BEGIN)[1].split(READERS_END)[0] + READERS_END + "\n" if READERS_BEGIN in text else ""


def write_readers(root, section):
    path = root / "bench/RESULTS.md"
    text = path.read_text()
    path.write_text(text.replace(readers_of(text) or "\0", "").rstrip("\n") + "\n\n" + section)


def write(root, found):
    """The document, and its table in the README."""
    (root / "bench").mkdir(exist_ok=True)
    path = root / "bench/RESULTS.md"
    readers = readers_of(path.read_text()) if path.exists() else ""
    path.write_text(document(found) + (readers and "\n" + readers))
    readme = root / "README.md"
    text = readme.read_text()
    before, rest = text.split(BEGIN)
    readme.write_text(before + block(found) + rest.split(END)[1])
