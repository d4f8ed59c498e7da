# SPDX-License-Identifier: MIT
"""Finds what delayed the stragglers, from the traces of few ranks: report/analysis/ranks/rank_stragglers.c,
with the same result. pperf-report says where each of these ranks spent its time before the collectives
for which a straggler was last."""
import csv, io, os, shutil, subprocess, tempfile
import numpy as np
from pperf_parts import PartsError
from pperf_parts.collectives import LOST, UNKNOWN
from pperf_parts.parts import path_of


def report_program():
    program = os.environ.get("PPERF_REPORT") or shutil.which("pperf-report")
    if not program:
        raise PartsError("pperf-report was not found; run pperf, which is beside it")
    return program


def late_in(ranks, straggler, index):
    """(communicator, numbers in it) of the collectives of a rank for which the straggler was last."""
    for outcomes in ranks.outcomes:
        if outcomes.number != straggler.group:
            continue
        for row, member in enumerate(outcomes.members):
            if member.rank == index:
                at = outcomes.instance[outcomes.has(row) & (outcomes.last == straggler.rank)] + member.shift
                # Collectives whose records are lost are not in the part.
                return member.index, set((at - np.cumsum(member.comm.end == LOST)[at]).tolist())
    return None, set()


def requests_of(comms):
    """Arrays of all collectives of a rank by their order: when it was requested, communicator and
    number in it, without those whose records are lost."""
    asked, comm, seq = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, one in enumerate(comms):
        asked.append(one.asked[one.end != LOST])
        comm.append(np.full(len(asked[-1]), number))
        seq.append(np.arange(len(asked[-1])))
    asked, comm, seq = np.concatenate(asked), np.concatenate(comm), np.concatenate(seq)
    order = np.argsort(asked, kind="stable")
    return asked[order], comm[order], seq[order]


def trace_of(ranks, item):
    """The file of a process: where its part was written from, or under its name in the current folder."""
    name, real = ranks.files.get(item.trace, (None, None))
    if name and real and os.path.isabs(real) and os.path.exists(real) and item.file.startswith(name):
        return real + item.file[len(name):]
    return os.path.join(".", item.file)


def stretches_of(ranks, index):
    """Lines (straggler, begin, end): from the request of the collective before to that of the one in
    which the straggler was last."""
    requested, comm, seq = requests_of(ranks.ranks[index].comms)
    lines = []
    for number, straggler in enumerate(ranks.stragglers):
        own, late = late_in(ranks, straggler, index)
        for i in range(1, len(requested)):
            if requested[i] == UNKNOWN:
                break
            if comm[i] == own and int(seq[i]) in late:
                lines.append((number, int(requested[i - 1]), int(requested[i])))
    return lines


def times_of(ranks, index):
    """Rows of a rank: where it spent its time in the stretches of each straggler."""
    item = ranks.ranks[index].input
    with tempfile.NamedTemporaryFile("w", suffix=".stretches") as file:
        file.write("process %x %d %d\n" % (item.run_id, item.pid, item.started_unix_ns))
        file.writelines("%d %d %d\n" % line for line in stretches_of(ranks, index))
        file.flush()
        result = subprocess.run([report_program(), "part", "--stretches", file.name, trace_of(ranks, item)], capture_output=True, text=True)
    if result.returncode:
        raise PartsError(result.stderr.strip().split("\n")[-1][:300])
    rows = []
    for row in csv.DictReader(io.StringIO(result.stdout)):
        rows.append({key: value if key == "path" else int(value) for key, value in row.items()})
    return rows


class Peer:
    """Times of a rank by site, and its nodes, in the stretches of one straggler."""

    def __init__(self, rank, rows, number):
        self.rank, self.rows = rank, sorted((row for row in rows if row["list"] == number), key=lambda row: row["node"])
        self.children, self.by_site = {}, {"cpu_ns": {}, "gpu_ns": {}}
        for row in self.rows:
            self.children.setdefault(row["parent"], []).append(row)
            for key, times in self.by_site.items():
                times[row["site"]] = times.get(row["site"], 0) + row[key]


def median_of(values):
    values = sorted(values)
    count = len(values)
    if not count:
        return 0
    if count % 2:
        return values[count // 2]
    return values[count // 2 - 1] + (values[count // 2] - values[count // 2 - 1]) // 2


def largest_of(rows, own, others, key, least=0):
    """(more, own, others, row) of the row with the largest excess above `least`, or None."""
    best = None
    for row in rows:
        time = own.by_site[key].get(row["site"], 0)
        if time <= (best[0] if best else least) or row["async"]:
            continue
        median = median_of([peer.by_site[key].get(row["site"], 0) for peer in others])
        if time - median > (best[0] if best else least):
            best = time - median, time, median, row
    return best


def follow_excess(own, others, key):
    """Starts at the node with the largest excess, and descends while one child has 60 % of it."""
    at = largest_of(own.rows, own, others, key)
    while at:
        following = largest_of(own.children.get(at[3]["node"], []), own, others, key)
        if not following or following[0] * 10 < at[0] * 6:
            break
        at = following
    return at


def explain(straggler, own, others):
    on_cpu, on_gpu = follow_excess(own, others, "cpu_ns"), follow_excess(own, others, "gpu_ns")
    more_gpu, more_cpu = on_gpu[0] if on_gpu else 0, on_cpu[0] if on_cpu else 0
    straggler.gpu = more_gpu >= straggler.typical_ns // 2 or more_gpu > more_cpu
    found = on_gpu if straggler.gpu else on_cpu
    if found and found[0] >= straggler.typical_ns // 10:
        straggler.more_ns, straggler.own_ns, straggler.others_ns = found[:3]
        straggler.path = path_of(found[3]["path"])


def blame(ranks):
    """Explains the stragglers. Where the trace of one of the ranks is not there, a warning says so."""
    peers, unread = {number: [] for number in range(len(ranks.stragglers))}, []
    for index in sorted(rank for rank, of in ranks.reads.items() if of):
        try:
            rows = times_of(ranks, index)
        except (PartsError, OSError) as error:
            unread.append((ranks.ranks[index].number, error))
            continue
        for number in ranks.reads[index]:
            peers[number].append(Peer(index, rows, number))
    if unread:
        ranks.warnings.append("what the ranks did before the stragglers were late is read from their traces; %d of them cannot be read, such as that of rank %d: %s" % (
            len(unread), *unread[0]))
    for number, straggler in enumerate(ranks.stragglers):
        own = [peer for peer in peers[number] if peer.rank == straggler.rank]
        if own:
            explain(straggler, own[0], [peer for peer in peers[number] if peer.rank != straggler.rank])
