# SPDX-License-Identifier: MIT
"""Decides which processes of the parts are the ranks of one run: report/analysis/ranks/rank_inputs.h
has the rules."""
import functools
from pperf_parts import PartsError
from pperf_parts.parts import text_of

STATUSES = ["ok", "cut", "damaged", "unreadable", "empty", "no_collectives", "copy", "conflict", "superseded", "other_run"]
USED = ("ok", "cut", "damaged")
APART_NS = 60000000000
U64 = (1 << 64) - 1


class Input:
    """A process, with the columns of table processes as attributes."""

    def __init__(self, row):
        self.__dict__.update(row)
        for name in ("host", "file", "command", "status", "why"):
            setattr(self, name, text_of(row[name]))
        self.run_id &= U64
        self.attempt = 0

    def refuse(self, status, why):
        self.status, self.why = status, why

    @property
    def is_used(self):
        return self.status in USED

    @property
    def is_fault(self):
        return self.status not in ("ok", "no_collectives")

    @property
    def end_ns(self):
        return self.started_unix_ns + self.wall_ns


def compare_start(left, right):
    """process_compare_start() of report/run/process.c."""
    if left.rank != right.rank and left.rank >= 0 and right.rank >= 0:
        return -1 if left.rank < right.rank else 1
    a, b = (left.started_unix_ns, left.pid, left.file), (right.started_unix_ns, right.pid, right.file)
    return (a > b) - (a < b)


def by_run(left, right):
    return (left.run_id > right.run_id) - (left.run_id < right.run_id) or compare_start(left, right)


def by_rank(left, right):
    return (left.rank > right.rank) - (left.rank < right.rank) or compare_start(left, right)


def runs_of(used):
    runs = {}
    for item in used:
        if item.run_id and item.rank >= 0:
            runs.setdefault(item.run_id, []).append(item)
    return [(run, members, min(m.started_unix_ns for m in members), max(m.end_ns for m in members)) for run, members in runs.items()]


def choose_run(used, wanted):
    """Refuses the processes of other runs than the job's. Returns its id, or 0."""
    used.sort(key=functools.cmp_to_key(by_run))
    runs = sorted(runs_of(used), key=lambda run: (-len(run[1]), -run[2]))
    if not runs:
        return 0
    if wanted is not None:
        chosen = [run for run in runs if "%x" % run[0] == wanted.lower().lstrip("0")]
        if not chosen:
            raise PartsError("no trace of a rank is of run %s (--run)" % wanted)
        runs = chosen + [run for run in runs if run is not chosen[0]]
    job, (begin, end), ranks = runs[0][0], runs[0][2:], set()
    for number, (run, members, first, last) in enumerate(runs):
        own = [m for m in used if m.run_id == run]
        fits = wanted is None and first <= end + APART_NS and begin <= last + APART_NS and not ranks & {m.rank for m in own if m.rank >= 0}
        if number == 0 or fits:
            begin, end = min(begin, first), max(end, last)
            ranks |= {m.rank for m in own if m.rank >= 0}
            continue
        for member in own:
            member.refuse("other_run", "%s: is of run %016x, not of run %016x (--run chooses one)" % (member.file, run, job))
    return job


def same_process(left, right):
    return (left.run_id, left.pid, left.started_unix_ns) == (right.run_id, right.pid, right.started_unix_ns)


def last_begins(used):
    """{run: when its last whole trace began}. A process that ended before is of an earlier attempt of the job."""
    begins = {}
    for item in used:
        if item.status == "ok":
            begins[item.run_id] = max(begins.get(item.run_id, 0), item.started_unix_ns)
    return begins


def choose_one(earlier, later, begin_ns):
    """Refuses one of two processes of one rank, or both. Returns the one that is left. `begin_ns`: that of last_begins for their run."""
    left, refused = later, earlier
    one_is_whole = (earlier.status == "ok") != (later.status == "ok")
    is_of_earlier_attempt = not same_process(earlier, later) and earlier.end_ns < begin_ns
    if one_is_whole and earlier.status == "ok" and not is_of_earlier_attempt:
        left, refused = earlier, later
    if same_process(earlier, later) and (earlier.bytes, earlier.content) == (later.bytes, later.content):
        later.refuse("copy", "%s is a copy of %s: both have rank %d; it is taken once" % (later.file, earlier.file, later.rank))
        return earlier
    if same_process(earlier, later) and one_is_whole:
        refused.refuse("copy", "%s is a part of %s: both have rank %d; the whole one is taken" % (refused.file, left.file, later.rank))
        return left
    if not same_process(earlier, later) and earlier.run_id and earlier.run_id == later.run_id:
        left.attempt = earlier.attempt + 1
        refused.refuse("superseded", "%s: is another attempt of rank %d; %s is shown" % (refused.file, later.rank, left.file))
        return left
    earlier.refuse("conflict", "%s and %s both have rank %d; give one trace per rank" % (earlier.file, later.file, later.rank))
    later.refuse("conflict", earlier.why)
    return None


def choose_traces(used):
    used.sort(key=functools.cmp_to_key(by_rank))
    chosen = before = None
    begins = last_begins(used)
    for item in used:
        if not item.is_used:
            continue
        one_rank = before and before.rank == item.rank and (item.rank >= 0 or (item.run_id and same_process(before, item)))
        if not one_rank:
            chosen = item
        elif chosen:
            chosen = choose_one(chosen, item, begins.get(item.run_id, 0))
        else:
            item.refuse("conflict", before.why)
        before = item


def read_inputs(parts, run=None):
    """All processes in the order of pperf-report, and the id of the run that was chosen."""
    inputs = [Input(row) for row in parts.rows("select * from processes order by file, trace")]
    used = [item for item in inputs if item.is_used]
    job = choose_run(used, run)
    choose_traces(used)
    inputs.sort(key=functools.cmp_to_key(compare_start))
    return inputs, job
