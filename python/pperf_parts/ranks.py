# SPDX-License-Identifier: MIT
"""Compares the ranks of one run from their parts. The result is that of `pperf-report ranks -f json`:
the same integers, whatever the number of parts and workers."""
import math
import numpy as np
from pperf_parts import PartsError
from pperf_parts.clocks import Clocks, explain_unaligned
from pperf_parts.communicators import LOST, NAMES, Communicator, find_groups
from pperf_parts.distributed import Here
from pperf_parts.hangs import Hangs, json_of_hang
from pperf_parts.parts import path_of, text_of
from pperf_parts.rank_inputs import STATUSES, read_inputs

QUORUM, STRAGGLERS, PEERS, PLACES, MISSING_NAMED, RATE_RESIDUALS = 95, 3, 32, 32, 8, 4
CELLS = 1 << 21  # of a block of members and instances


class Rank:
    def __init__(self, item, comms, number):
        self.input, self.comms, self.number = item, comms, number
        self.matched = self.decided = self.last = self.late_ns = self.late_median_ns = 0
        self.wait_ns = self.transfer_ns = self.unmatched = self.unmatched_ns = 0


class Outcomes:
    """The matched collectives of one group, as arrays; `last` is the index of a rank, or -1. `has`
    and `wait` are of each member, if they are kept."""

    def __init__(self, number, group, members, **arrays):
        self.number, self.group, self.members = number, group, members
        self.__dict__.update(arrays)


# ---- reading ----

def read_communicators(parts, traces):
    """{trace: its communicators}"""
    rows = {}
    for row in parts.rows("select trace, comm, name, named, key, high, first_sequence, requested, count from communicators order by trace, comm"):
        rows.setdefault(row["trace"], []).append(row)
    arrays = parts.arrays("select trace, comm, start_ns, end_ns, kind::utinyint kind, exposed_ns, site, bytes, bus_bytes from collectives order by trace, comm, seq")
    arrays = {name: np.ma.getdata(array) for name, array in arrays.items()}
    if len(arrays["kind"]) and arrays["kind"].max() >= len(NAMES):
        raise PartsError("table collectives has the kind %d, which this pperf does not know" % arrays["kind"].max())
    result, columns = {}, ("start_ns", "end_ns", "kind", "exposed_ns", "site", "bytes", "bus_bytes")
    for trace in traces:
        result[trace] = []
        first, end = np.searchsorted(arrays["trace"], [trace, trace + 1])
        for row in rows.get(trace, []):
            a, b = first + np.searchsorted(arrays["comm"][first:end], [row["comm"], row["comm"] + 1])
            if b - a != row["count"]:
                raise PartsError("table communicators says %d collectives of communicator %d, and table collectives has %d" % (row["count"], row["comm"], b - a))
            result[trace].append(Communicator({**row, "name": text_of(row["name"])}, [arrays[name][a:b] for name in columns]))
    return result


def missing_ranks(ranks, by_file, world_size):
    end = max(ranks[-1].number + 1, world_size)
    if by_file or end > 2 * len(ranks):
        return []
    return sorted(set(range(end)) - {rank.number for rank in ranks})


def refusal(inputs, ranks):
    refused = next((item.why for item in inputs if item.status != "no_collectives" and item.why), None)
    if len(ranks) < 2 and refused:
        return refused
    if not ranks:
        return "these traces contain no collective: neither NCCL or RCCL kernels nor ranges such as gloo:all_reduce"
    return "only %s has collectives; give parts of several ranks" % ranks[0].input.file


# ---- waits ----

def block_of(members, clocks, first, end):
    """Starts on the island's clock, durations and presence, by member and instance."""
    shape = (len(members), end - first)
    start, duration, has = np.full(shape, LOST, np.int64), np.zeros(shape, np.int64), np.zeros(shape, bool)
    for row, member in enumerate(members):
        low, high = max(first + member.shift, 0), min(end + member.shift, len(member.comm))
        if high <= low:
            continue
        at = slice(low - member.shift - first, high - member.shift - first)
        has[row, at] = member.comm.end[low:high] != LOST
        start[row, at] = np.where(has[row, at], clocks.fit[member.rank].map(member.comm.start[low:high]), LOST)
        duration[row, at] = np.where(has[row, at], member.comm.end[low:high] - member.comm.start[low:high], 0)
    return start, duration, has


def outcomes_of_block(start, duration, has, residuals, quorum, member_ranks):
    """Arrays of the instances that count, and sums by member."""
    present = has.sum(axis=0)
    counts = present >= quorum
    start, duration, has, present = start[:, counts], duration[:, counts], has[:, counts], present[counts]
    last = start.argmax(axis=0)
    two = np.partition(start, len(start) - 2, axis=0)[-2:]
    late = two[1] - two[0]
    tolerance = np.where(has, residuals[:, None], 0).max(axis=0)
    decided = late > tolerance
    wait = np.where(has, np.minimum(np.maximum(two[1] - start, 0), duration), 0)
    wait[~has] = 0
    is_last = (np.arange(len(start))[:, None] == last) & decided
    sums = {"matched": has.sum(axis=1), "decided": (has & decided).sum(axis=1), "wait_ns": wait.sum(axis=1),
            "transfer_ns": (duration - wait).sum(axis=1), "last": is_last.sum(axis=1), "late_ns": np.where(is_last, late, 0).sum(axis=1)}
    arrays = {"instance": np.flatnonzero(counts), "present": present, "last": np.where(decided, member_ranks[last], -1), "late": late,
              "last_start": two[1], "tolerance": tolerance, "wait": wait.sum(axis=0), "transfer": (duration - wait).sum(axis=0)}
    return arrays, sums, has


def waits_of(members, clocks, begin, end, quorum, executor):
    """Arrays of the outcomes of instances begin to end - 1, the sums by member, and which member has
    which outcome."""
    residuals = np.array([clocks.fit[m.rank].residual for m in members], np.int64)
    member_ranks, pieces, totals, has = np.array([m.rank for m in members]), [], {}, []
    step = max(CELLS // max(len(members), 1), 1)
    blocks = (block_of(members, clocks, first, min(first + step, end)) + (residuals, quorum, member_ranks) for first in range(begin, end, step))
    for first, (arrays, sums, present) in zip(range(begin, end, step), executor.map(outcomes_of_block, blocks)):
        arrays["instance"] += first
        pieces.append(arrays)
        has.append(present)
        for name, values in sums.items():
            totals[name] = totals.get(name, 0) + values
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}, totals, np.concatenate(has, axis=1)


def member_kinds(group_members, instances, name):
    """The values of an array of the communicators at the instances, by the first member that has each."""
    values, known = np.zeros(len(instances), np.int64), np.zeros(len(instances), bool)
    for member in group_members:
        index = instances + member.shift
        inside = (index >= 0) & (index < len(member.comm)) & ~known
        inside[inside] &= member.comm.end[index[inside]] != LOST
        values[inside] = getattr(member.comm, name)[index[inside]]
        known |= inside
        if known.all():
            break
    return values, known


# ---- the whole ----

class Ranks:
    """`executor`: where fits and waits are computed (distributed.py)."""

    def __init__(self, parts, quorum=QUORUM, run=None, executor=None):
        executor = executor or Here()
        self.quorum, self.warnings = quorum, []
        self.inputs, self.run_id = read_inputs(parts, run)
        comms = read_communicators(parts, [item.trace for item in self.inputs if item.is_used])
        self.select(comms)
        self.warnings += [item.why for item in self.inputs if item.is_fault]
        self.warn_of_missing()
        self.groups = find_groups([rank.comms for rank in self.ranks],
                                  [r.input.status == "damaged" or r.input.dropped > 0 for r in self.ranks], quorum)
        self.clocks = Clocks(self.groups, len(self.ranks), [r.input.status == "ok" for r in self.ranks], executor)
        self.compute_waits(executor)
        self.find_stragglers()
        self.choose_places()
        self.make_rows(parts)
        self.ends, self.requests = {}, {}
        for name, rows in (("ends", self.ends), ("requests", self.requests)):
            for row in parts.rows("select * from %s order by rowid" % name):
                rows.setdefault(row["trace"], []).append(row)

    def select(self, comms):
        ranks = [Rank(item, comms[item.trace], item.rank) for item in self.inputs if item.is_used and (comms[item.trace] or item.requests)]
        self.by_file = any(rank.input.rank < 0 for rank in ranks)
        if self.by_file:
            for number, rank in enumerate(ranks):
                rank.number = number
        self.ranks = sorted(ranks, key=lambda rank: rank.number)
        if len(self.ranks) < 2:
            raise PartsError(refusal(self.inputs, self.ranks))
        self.world_size = max(rank.input.world_size for rank in self.ranks)
        self.missing = missing_ranks(self.ranks, self.by_file, self.world_size)

    def warn_of_missing(self):
        if not self.missing:
            return
        text = ", ".join(map(str, self.missing[:MISSING_NAMED]))
        if len(self.missing) > MISSING_NAMED:
            text += " and %d more" % (len(self.missing) - MISSING_NAMED)
        if self.world_size:
            text += " of %d" % self.world_size
        self.warnings.append("rank%s %s %s no usable trace" % ("s" if len(self.missing) > 1 else "", text, "have" if len(self.missing) > 1 else "has"))

    def compute_waits(self, executor):
        self.outcomes, self.incomplete, self.undecided = [], 0, 0
        late = {}
        for number, group in enumerate(self.groups):
            members = [m for m in group.members if group.island is not None and self.clocks.island[m.rank] == group.island]
            if len(members) < group.quorum:
                continue
            arrays, sums, has = waits_of(members, self.clocks, group.begin, group.end, group.quorum, executor)
            self.outcomes.append(Outcomes(number, group, members, has=has, **arrays))
            self.incomplete += int((arrays["present"] < len(group.members)).sum())
            self.undecided += int((arrays["last"] < 0).sum())
            for row, member in enumerate(members):
                for name, values in sums.items():
                    setattr(self.ranks[member.rank], name, getattr(self.ranks[member.rank], name) + int(values[row]))
                self.count_matched(member, arrays["instance"][has[row]])
            for rank in np.unique(arrays["last"][arrays["last"] >= 0]):
                late.setdefault(int(rank), []).append(arrays["late"][arrays["last"] == rank])
        for rank, values in late.items():
            self.ranks[rank].late_median_ns = median_of(np.concatenate(values))
        self.count_unmatched()

    def count_matched(self, member, instances):
        index = instances + member.shift
        rank = self.ranks[member.rank]
        rank.matched_time = getattr(rank, "matched_time", 0) + int((member.comm.end[index] - member.comm.start[index]).sum())

    def count_unmatched(self):
        for rank in self.ranks:
            count = time = 0
            for comm in rank.comms:
                known = comm.end != LOST
                count += int(known.sum())
                time += int((comm.end[known] - comm.start[known]).sum())
            rank.unmatched, rank.unmatched_ns = count - rank.matched, time - getattr(rank, "matched_time", 0)

    @property
    def matched(self):
        return sum(len(o.instance) for o in self.outcomes)

    # ---- stragglers ----

    def chances(self):
        """How often each rank would be last by chance, and the variance of it."""
        expected, variance = np.zeros(len(self.ranks)), np.zeros(len(self.ranks))
        for outcomes in self.outcomes:
            ranks = np.array([m.rank for m in outcomes.members])
            for i in np.flatnonzero(outcomes.last >= 0):
                chance, there = 1.0 / int(outcomes.present[i]), ranks[outcomes.has[:, i]]
                expected[there] += chance
                variance[there] += chance * (1 - chance)
        return expected, variance

    def find_stragglers(self):
        expected, variance = self.chances()
        found = [(-rank.late_ns, i) for i, rank in enumerate(self.ranks)
                 if rank.last >= 3 and rank.last > expected[i] + 2.5 * math.sqrt(variance[i])]
        self.stragglers = [Straggler(self, i, float(expected[i])) for _, i in sorted(found)[:STRAGGLERS]]

    def choose_places(self):
        """Chooses the ranks by which collectives are named, and with which stragglers are compared."""
        self.reads, own = {}, {s.rank for s in self.stragglers}
        for number, straggler in enumerate(self.stragglers):
            members = [m.rank for m in self.groups[straggler.group].members]
            others = [rank for rank in members if rank not in own and self.ranks[rank].matched]
            most = min(len(others), PEERS)
            for rank in [rank for rank in members if rank in own] + [others[i * (len(others) - 1) // (most - 1) if most > 1 else 0] for i in range(most)]:
                self.reads.setdefault(rank, set()).add(number)
        self.reads.setdefault(self.clocks.reference, set())
        added = 0
        for group in self.groups:
            if added >= PLACES:
                break
            if len(group.members) < 2 or group.island is None or any(m.rank in self.reads for m in group.members):
                continue
            first = next((m.rank for m in group.members if self.clocks.island[m.rank] == group.island), None)
            if first is not None:
                self.reads[first] = set()
                added += 1

    # ---- rows by kind and call path ----

    def places_of(self, outcomes):
        """The site of each outcome: of the reference, else of the first member that is read."""
        read = [m for m in outcomes.members if m.rank in self.reads]
        return member_kinds(sorted(read, key=lambda m: m.rank != self.clocks.reference), outcomes.instance, "site")[0]

    def make_rows(self, parts):
        rows, last = {}, {}
        for outcomes in self.outcomes:
            kinds, sites = member_kinds(outcomes.members, outcomes.instance, "kind")[0], self.places_of(outcomes)
            exposed, rates = self.exposed_of(outcomes), self.rates_of(outcomes)
            for i in range(len(kinds)):
                key = int(kinds[i]), int(sites[i])
                row = rows.setdefault(key, dict(kind=key[0], site=key[1], calls=0, wait_ns=0, transfer_ns=0, exposed_ns=0, decided=0, last=0, last_rank=-1, rate=[0] * 5))
                row["calls"] += 1
                row["wait_ns"] += int(outcomes.wait[i])
                row["transfer_ns"] += int(outcomes.transfer[i])
                row["exposed_ns"] += int(exposed[i])
                if rates is not None:
                    row["rate"] = [a + int(b) for a, b in zip(row["rate"], rates[:, i])]
                rank = int(outcomes.last[i])
                if rank < 0:
                    continue
                row["decided"] += 1
                count = last[key + (rank,)] = last.get(key + (rank,), 0) + 1
                if count > row["last"]:
                    row["last"], row["last_rank"] = count, rank
        paths = {row["site"]: path_of(row["path"]) for row in parts.rows("select site, min(path) path from sites group by site")}
        for row in rows.values():
            row["path"] = paths.get(row["site"], []) if row["site"] else []
        self.rows = sorted(rows.values(), key=lambda r: (-r["wait_ns"], -r["transfer_ns"], r["kind"], r["path"]))

    def exposed_of(self, outcomes):
        total = np.zeros(len(outcomes.instance), np.int64)
        for row, member in enumerate(outcomes.members):
            has = outcomes.has[row]
            total[has] += member.comm.exposed[outcomes.instance[has] + member.shift]
        return total

    def rates_of(self, outcomes):
        """Bytes of the message, their time, bytes on the bus, their time, and residuals, of each
        outcome; None: no size is known."""
        total, known = np.zeros((5, len(outcomes.instance)), np.int64), False
        for row, member in enumerate(outcomes.members):
            has = outcomes.has[row]
            index = outcomes.instance[has] + member.shift
            comm, bytes_ = member.comm, member.comm.bytes[index]
            if not bytes_.any():
                continue
            known, duration = True, comm.end[index] - comm.start[index]
            waited = outcomes.last_start[has] - self.clocks.fit[member.rank].map(comm.start[index])
            transfer = duration - np.minimum(np.maximum(waited, 0), duration)
            sized, on_bus = bytes_ != 0, (bytes_ != 0) & (comm.bus_bytes[index] != 0)
            total[:, has] += [bytes_, transfer * sized, comm.bus_bytes[index] * sized, transfer * on_bus, outcomes.tolerance[has] * sized]
        return total if known else None

    @property
    def exposed_ns(self):
        return sum(rank.input.gpu_exposed_communication_ns for rank in self.ranks)


def rate_of(row, on_bus):
    """Bytes per second and rank while the collectives of a row transfer, or None."""
    count, time, bus_count, bus_time, residual = row["rate"]
    time_of = bus_time if on_bus else time
    if not time_of or time < residual * RATE_RESIDUALS:
        return None
    return min(int(float(bus_count if on_bus else count) * 1e9 / float(time_of)), (1 << 63) - 1) or None


def median_of(values):
    values = np.sort(values)
    low, high = int(values[(len(values) - 1) // 2]), int(values[len(values) // 2])
    return low + (high - low) // 2


class Straggler:
    """A rank that was last more often than by chance. What it did is compared with other members of
    `group`, before the collectives of it for which it was last."""

    def __init__(self, ranks, rank, expected):
        self.rank, self.expected = rank, expected
        self.more_ns = self.own_ns = self.others_ns = 0
        self.gpu, self.path = False, []
        worst = [(int(o.late[o.last == rank].sum()), -o.number) for o in ranks.outcomes]
        most = max(worst, default=(0, 0))
        self.group = -most[1] if most[0] else 0
        late = [o.late[o.last == rank] for o in ranks.outcomes if o.number == self.group]
        late = late[0] if late else np.zeros(0, np.int64)
        self.typical_ns = len(late) * median_of(late) if len(late) else 0


# ---- JSON ----

def json_of_rank(ranks, index):
    rank, fit, item = ranks.ranks[index], ranks.clocks.fit[index], ranks.ranks[index].input
    aligned, gpu, matched = ranks.clocks.aligned[index], item.has_gpu, rank.matched

    def known(value, condition):
        return value if condition else None
    reason = None if aligned else explain_unaligned(rank.comms, ranks.ranks[ranks.clocks.reference].comms, ranks.ranks[ranks.clocks.reference].number)
    return {"rank": rank.number, "file": item.file, "pid": item.pid, "simulated": item.simulated, "aligned": aligned, "not_aligned_because": reason,
            "wait_ns": known(rank.wait_ns, matched), "transfer_ns": known(rank.transfer_ns, matched), "last": known(rank.last, matched),
            "late_median_ns": known(rank.late_median_ns, rank.last), "gpu_exposed_communication_ns": known(item.gpu_exposed_communication_ns, gpu),
            "gpu_busy_ns": known(item.gpu_busy_ns, gpu), "wall_ns": item.wall_ns, "gpu_computation_ns": known(item.gpu_computation_ns, gpu),
            "gpu_communication_ns": known(item.gpu_communication_ns, gpu), "matched": matched, "unmatched": rank.unmatched,
            "unmatched_ns": rank.unmatched_ns, "late_ns": known(rank.late_ns, matched), "decided": rank.decided, "pairs": item.pairs,
            "untimed": item.untimed, "residual_ns": known(fit.residual, fit.pairs), "residual_most_ns": known(fit.most, fit.pairs),
            "offset_ns": known(fit.offset, fit.pairs), "drift_ppm": known(fit.drift * 1e6, fit.pairs), "aligned_by": fit.pairs}


def json_of_straggler(ranks, straggler):
    rank = ranks.ranks[straggler.rank]
    return {"rank": rank.number, "last": rank.last, "of": rank.matched, "by_chance": straggler.expected, "late_median_ns": rank.late_median_ns,
            "late_ns": rank.late_ns, "meanwhile": ("gpu" if straggler.gpu else "cpu") if straggler.more_ns else None, "path": straggler.path,
            "more_ns": straggler.more_ns, "own_ns": straggler.own_ns, "others_ns": straggler.others_ns}


def as_json(ranks, rank=None):
    """The document of `pperf-report ranks -f json`."""
    hangs, number = Hangs(ranks), lambda index: ranks.ranks[index].number
    return {
        "schema": "pperf.report/1", "view": "ranks", "reference": number(ranks.clocks.reference), "matched": ranks.matched,
        "decided": ranks.matched - ranks.undecided, "undecided": ranks.undecided, "communicators": len(ranks.groups),
        "without_collectives": sum(item.status == "no_collectives" for item in ranks.inputs),
        "rows": [json_of_rank(ranks, i) for i in range(len(ranks.ranks)) if rank is None or number(i) == rank],
        "stragglers": [json_of_straggler(ranks, s) for s in ranks.stragglers],
        "collectives": [{"name": NAMES[r["kind"]], "path": r["path"], "calls": r["calls"], "wait_ns": r["wait_ns"], "transfer_ns": r["transfer_ns"],
                         "decided": r["decided"], "last": r["last"], "last_rank": number(r["last_rank"]) if r["last_rank"] >= 0 else None,
                         "message_bytes_per_s": rate_of(r, False), "bus_bytes_per_s": rate_of(r, True)} for r in ranks.rows],
        "warnings": ranks.warnings,
        "traces": {status: sum(item.status == status for item in ranks.inputs) for status in STATUSES},
        "faults": [{"file": i.file, "rank": i.rank if i.rank >= 0 else None, "status": i.status, "why": i.why} for i in ranks.inputs if i.is_fault],
        "missing_ranks": ranks.missing, "world_size": ranks.world_size or None, "quorum_percent": ranks.quorum, "incomplete": ranks.incomplete,
        "islands": [{"reference": number(reference), "ranks": count} for reference, count in ranks.clocks.islands],
        "exposed": [{"name": NAMES[r["kind"]], "path": r["path"], "calls": r["calls"], "exposed_ns": r["exposed_ns"], "total_ns": r["wait_ns"] + r["transfer_ns"]}
                    for r in sorted(ranks.rows, key=lambda r: -r["exposed_ns"]) if r["exposed_ns"]],
        "exposed_ns": ranks.exposed_ns, "hangs": [json_of_hang(ranks, hangs, hang) for hang in hangs.all]}
