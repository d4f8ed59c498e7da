# SPDX-License-Identifier: MIT
"""Compares the ranks of one run from their parts. The result is that of `pperf-report ranks -f json`:
the same integers, whatever the number of parts and workers."""
import math
import numpy as np
from pperf_parts import PartsError
from pperf_parts.clocks import Clocks, explain_unaligned
from pperf_parts.collectives import LOST, NAMES, Communicator, check_counts
from pperf_parts.communicators import find_groups
from pperf_parts.executors import Here
from pperf_parts.hangs import Hangs, json_of_hang
from pperf_parts.parts import path_of, text_of
from pperf_parts.rank_inputs import STATUSES, read_inputs

QUORUM, STRAGGLERS, PEERS, PLACES, MISSING_NAMED, RATE_RESIDUALS = 95, 3, 32, 32, 8, 4
CELLS = 1 << 21  # of a block of members and instances


class Rank:
    def __init__(self, item, comms, number):
        self.input, self.comms, self.number = item, comms, number
        self.matched = self.decided = self.last = self.late_ns = self.late_median_ns = 0
        self.wait_ns = self.transfer_ns = self.unmatched = self.unmatched_ns = self.matched_ns = 0


class Outcomes:
    """The matched collectives of one group, as arrays; `last` is the index of a rank, or -1. Which
    of them a member has is known by piece: `absences` has (first outcome, end, {row: which it has}),
    where rows that have all are left out."""

    def __init__(self, number, group, members, absences, arrays):
        self.number, self.group, self.members, self.absences = number, group, members, absences
        self.__dict__.update(arrays)

    def has(self, row):
        result = np.ones(len(self.instance), bool)
        for first, end, of_rows in self.absences:
            if row in of_rows:
                result[first:end] = of_rows[row]
        return result

    def has_all(self, row):
        return not any(row in of_rows for _, _, of_rows in self.absences)


# ---- reading ----

def read_communicators(parts, traces, executor):
    """{trace: its communicators}"""
    rows = parts.rows("select trace, comm, name, named, key, high, first_sequence, requested, count from communicators order by trace, comm")
    result, found = {trace: [] for trace in traces}, executor.load(parts)
    rows = [row for row in rows if row["trace"] in result]
    check_counts(rows, found)
    for row in rows:
        result[row["trace"]].append(Communicator(row, text_of(row["name"]), found.get((row["trace"], row["comm"])), executor))
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

WAIT_COLUMNS = ("start", "end", "kind", "exposed", "bytes", "bus_bytes")


class Block:
    """Collectives by member and instance, from slices of the members. Starts are on the island's
    clock."""

    def __init__(self, rows, slices, offsets, fits, count):
        """`rows`: of the members in the group."""
        shape = (len(slices), count)
        self.start, self.duration, self.has = np.full(shape, LOST, np.int64), np.zeros(shape, np.int64), np.zeros(shape, bool)
        self.rows, self.slices, self.offsets, self.fits = rows, slices, offsets, fits
        for row, (piece, first, fit) in enumerate(zip(slices, offsets, fits)):
            at, has = slice(first, first + len(piece["end"])), piece["end"] != LOST
            self.has[row, at] = has
            self.start[row, at] = np.where(has, fit.map(piece["start"]), LOST)
            self.duration[row, at] = np.where(has, piece["end"] - piece["start"], 0)

    def column(self, row, name):
        """An array of a member, 0 where it has no collective."""
        result, piece = np.zeros(self.has.shape[1], np.int64), self.slices[row]
        result[self.offsets[row]:self.offsets[row] + len(piece[name])] = piece[name]
        return np.where(self.has[row], result, 0)

    def kinds(self):
        """The kind of each instance, by the first member that has it."""
        result, known = np.zeros(self.has.shape[1], np.int64), np.zeros(self.has.shape[1], bool)
        for row in range(len(self.has)):
            new = self.has[row] & ~known
            if new.any():
                result[new] = self.column(row, "kind")[new]
                known |= new
            if known.all():
                break
        return result


    def rates(self, wait, tolerance):
        """Bytes of the message, their time, bytes on the bus, their time, and residuals, of each
        instance."""
        total = np.zeros((5, self.has.shape[1]), np.int64)
        for row, piece in enumerate(self.slices):
            if not piece["bytes"].any():
                continue
            bytes_, on_bus = self.column(row, "bytes"), self.column(row, "bus_bytes")
            sized, transfer = bytes_ != 0, self.duration[row] - wait[row]
            total += [bytes_, transfer * sized, on_bus * sized, transfer * (sized & (on_bus != 0)), tolerance * sized]
        return total

    def leaders(self):
        """What each instance needs of all its members: how many have it, which are the last and when,
        when the second last came, its tolerance and its kind. Rows are those of the group."""
        start, at = self.start, np.arange(self.has.shape[1])
        last = start.argmax(axis=0)
        top = start[last, at]
        start[last, at] = LOST
        second = start.max(axis=0)
        start[last, at] = top
        residuals = np.array([fit.residual for fit in self.fits], np.int64)[:, None]
        return Leaders(self.has.sum(axis=0), self.rows[last], top, second, np.where(self.has, residuals, 0).max(axis=0), self.rows[self.has.argmax(axis=0)], self.kinds())

    def sums(self, leaders, counts, decided):
        """Sums by member, arrays by instance that counts, and which of them the members have that have
        not all."""
        some = slice(None) if counts.all() else counts
        wait = np.where(self.has, np.minimum(np.maximum(leaders.top - self.start, 0), self.duration), 0)
        transfer = self.duration - wait
        by_member = {name: values[:, some].sum(axis=1) for name, values in {
            "matched": self.has, "decided": self.has & decided, "wait_ns": wait, "transfer_ns": transfer, "matched_ns": self.duration}.items()}
        exposed = sum(self.column(row, "exposed") for row in range(len(self.slices)))
        by_instance = {"wait": wait.sum(axis=0)[some], "transfer": transfer.sum(axis=0)[some], "exposed": exposed[some], "rates": self.rates(wait, leaders.tolerance)[:, some].T}
        has = self.has[:, some]
        return by_member, by_instance, {int(self.rows[row]): has[row] for row in np.flatnonzero(~has.all(axis=1))}


class Leaders:
    """Arrays by instance. `last` and `first_row`: rows of the group's members; `kind` is that of the
    first member that has it."""
    __slots__ = ("present", "last", "top", "second", "tolerance", "first_row", "kind")

    def __init__(self, *arrays):
        self.present, self.last, self.top, self.second, self.tolerance, self.first_row, self.kind = arrays

    def merge(self, other):
        """With those of other members of the group."""
        later = (other.top > self.top) | ((other.top == self.top) & (other.last < self.last))
        earlier = (other.present > 0) & ((self.present == 0) | (other.first_row < self.first_row))
        self.second = np.maximum(np.minimum(self.top, other.top), np.maximum(self.second, other.second))
        self.last, self.top = np.where(later, other.last, self.last), np.maximum(self.top, other.top)
        self.first_row, self.kind = np.where(earlier, other.first_row, self.first_row), np.where(earlier, other.kind, self.kind)
        self.present, self.tolerance = self.present + other.present, np.maximum(self.tolerance, other.tolerance)


class Range:
    """Instances of a group that are computed at a time, in blocks of the members of one home."""

    def __init__(self, number, members, clocks, first, count, executor):
        self.number, self.first, self.count, self.homes = number, first, count, {}
        for row, member in enumerate(members):
            low = max(first + member.shift, 0)
            high = max(min(first + count + member.shift, len(member.comm)), low)
            home, key = executor.home_of(member.comm)
            rows, spans, offsets, fits = self.homes.setdefault(home, ([], [], [], []))
            rows.append(row)
            spans.append((key, low, high))
            offsets.append(min(low - member.shift - first, count))
            fits.append(clocks.fit[member.rank])

    @property
    def cells(self):
        return self.count * sum(len(rows) for rows, *_ in self.homes.values())


def make_blocks(held, requests):
    return [Block(np.array(rows), [held.slice(*span, WAIT_COLUMNS) for span in spans], offsets, fits, count) for (rows, spans, offsets, fits), count in requests]


def leaders_of(_, blocks):
    return [block.leaders() for block in blocks]


def sums_of(_, blocks, of_instances):
    return [block.sums(*one) for block, one in zip(blocks, of_instances)]


class Waits:
    """The waits of one group, range by range: arrays of the outcomes, sums by member, and the
    absences (Outcomes)."""

    def __init__(self, members):
        self.members, self.pieces, self.absences, self.at = members, [], [], 0
        self.sums = {name: np.zeros(len(members), np.int64) for name in ("matched", "decided", "wait_ns", "transfer_ns", "matched_ns", "last", "late_ns")}

    def add(self, first, leaders, counts, decided, late, results):
        """`results`: what sums_of gave for the blocks, with the rows of each."""
        some, missing = counts & decided, {}
        arrays = {"instance": first + np.flatnonzero(counts), "present": leaders.present[counts], "late": late[counts], "kind": leaders.kind[counts],
                  "last": np.where(decided, np.array([m.rank for m in self.members])[leaders.last], -1)[counts]}
        np.add.at(self.sums["last"], leaders.last[some], 1)
        np.add.at(self.sums["late_ns"], leaders.last[some], late[some])
        for rows, (by_member, by_instance, absent) in results:
            missing.update(absent)
            for name, values in by_member.items():
                self.sums[name][rows] += values
            for name, values in by_instance.items():
                arrays[name] = arrays[name] + values if name in arrays else values
        self.absences.append((self.at, self.at + len(arrays["instance"]), missing))
        self.at += len(arrays["instance"])
        self.pieces.append(arrays)

    def arrays(self):
        return {name: np.concatenate([piece[name] for piece in self.pieces]) for name in self.pieces[0]}


def batches(ranges, cells):
    """Lists of ranges with at most so many cells, at least one."""
    batch, count = [], 0
    for one in ranges:
        if batch and count + one.cells > cells:
            yield batch
            batch, count = [], 0
        batch.append(one)
        count += one.cells
    if batch:
        yield batch


def compute_batch(batch, waits, quorums, executor):
    """Adds the outcomes of some ranges to the waits of their groups."""
    requests, parts = {}, {}
    for index, one in enumerate(batch):
        for home, request in one.homes.items():
            requests.setdefault(home, []).append((request, one.count))
            parts.setdefault(home, []).append(index)
    blocks = {home: executor.at(home, make_blocks, some) for home, some in requests.items()}
    leaders = [None] * len(batch)
    for home, found in zip(blocks, executor.results([executor.at(home, leaders_of, handle) for home, handle in blocks.items()])):
        for index, one in zip(parts[home], found):
            if leaders[index]:
                leaders[index].merge(one)
            else:
                leaders[index] = one
    late = [np.where(one.present >= 2, one.top - one.second, 0) for one in leaders]
    counts = [one.present >= quorums[piece.number] for piece, one in zip(batch, leaders)]
    decided = [time > one.tolerance for time, one in zip(late, leaders)]
    handles = [executor.at(home, sums_of, handle, [(leaders[i], counts[i], decided[i]) for i in parts[home]]) for home, handle in blocks.items()]
    results = [[] for _ in batch]
    for home, found in zip(blocks, executor.results(handles)):
        for index, result in zip(parts[home], found):
            results[index].append((batch[index].homes[home][0], result))
    for index, piece in enumerate(batch):
        waits[piece.number].add(piece.first, leaders[index], counts[index], decided[index], late[index], results[index])


def member_sites(members, instances):
    """The sites of instances, by the first member that has each."""
    sites, known = np.zeros(len(instances), np.int64), np.zeros(len(instances), bool)
    for member in members:
        index = instances + member.shift
        inside = (index >= 0) & (index < len(member.comm)) & ~known
        inside[inside] &= member.comm.end[index[inside]] != LOST
        sites[inside] = member.comm.site[index[inside]]
        known |= inside
        if known.all():
            break
    return sites


# ---- the whole ----

class Ranks:
    """`executor`: where fits and waits are computed (distributed.py)."""

    def __init__(self, parts, quorum=QUORUM, run=None, executor=None):
        executor = executor or Here()
        self.quorum, self.warnings = quorum, []
        self.inputs, self.run_id = read_inputs(parts, run)
        self.files = parts.files()
        comms = read_communicators(parts, [item.trace for item in self.inputs if item.is_used], executor)
        self.select(comms)
        self.warnings += [item.why for item in self.inputs if item.is_fault]
        self.warn_of_missing()
        self.groups = find_groups([rank.comms for rank in self.ranks],
                                  [r.input.status == "damaged" or r.input.dropped > 0 for r in self.ranks], quorum)
        self.clocks = Clocks(self.groups, len(self.ranks), [r.input.status == "ok" for r in self.ranks], executor)
        self.compute_waits(executor)
        self.find_stragglers()
        self.choose_places()
        executor.bring([comm for rank in sorted(self.reads) for comm in self.ranks[rank].comms])
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
        waits, quorums = {}, {}
        for number, group in enumerate(self.groups):
            members = [m for m in group.members if group.island is not None and self.clocks.island[m.rank] == group.island]
            if len(members) >= group.quorum:
                waits[number], quorums[number] = Waits(members), group.quorum
        most = CELLS * executor.homes
        for batch in batches(self.ranges_of(waits, most, executor), most):
            compute_batch(batch, waits, quorums, executor)
        self.outcomes, self.incomplete, self.undecided = [], 0, 0
        late = {}
        for number, found in waits.items():
            self.add_outcomes(number, found, late)
        for rank, values in late.items():
            self.ranks[rank].late_median_ns = median_of(np.concatenate(values))
        self.count_unmatched()

    def ranges_of(self, waits, cells, executor):
        for number, found in waits.items():
            group, step = self.groups[number], max(cells // len(found.members), 1)
            for first in range(group.begin, group.end, step):
                yield Range(number, found.members, self.clocks, first, min(step, group.end - first), executor)

    def add_outcomes(self, number, waits, late):
        """`late`: lists of arrays by rank that was last."""
        group, arrays = self.groups[number], waits.arrays()
        self.outcomes.append(Outcomes(number, group, waits.members, waits.absences, arrays))
        self.incomplete += int((arrays["present"] < len(group.members)).sum())
        self.undecided += int((arrays["last"] < 0).sum())
        for name, values in waits.sums.items():
            for member, value in zip(waits.members, values.tolist()):
                setattr(self.ranks[member.rank], name, getattr(self.ranks[member.rank], name) + value)
        for rank in np.unique(arrays["last"][arrays["last"] >= 0]):
            late.setdefault(int(rank), []).append(arrays["late"][arrays["last"] == rank])

    def count_unmatched(self):
        for rank in self.ranks:
            rank.unmatched = sum(comm.summary.count for comm in rank.comms) - rank.matched
            rank.unmatched_ns = sum(comm.summary.time_ns for comm in rank.comms) - rank.matched_ns

    @property
    def matched(self):
        return sum(len(o.instance) for o in self.outcomes)

    # ---- stragglers ----

    def chances(self):
        """How often each rank would be last by chance, and the variance of it."""
        expected, variance = np.zeros(len(self.ranks)), np.zeros(len(self.ranks))
        for outcomes in self.outcomes:
            decided, of_all = outcomes.last >= 0, {}
            chance = 1.0 / outcomes.present
            for row, member in enumerate(outcomes.members):
                before = expected[member.rank], variance[member.rank]
                if outcomes.has_all(row) and before in of_all:
                    after = of_all[before]
                else:
                    own = chance[decided & outcomes.has(row)]
                    after = added(before[0], own), added(before[1], own * (1 - own))
                if outcomes.has_all(row):
                    of_all[before] = after
                expected[member.rank], variance[member.rank] = after
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
        return member_sites(sorted(read, key=lambda m: m.rank != self.clocks.reference), outcomes.instance)

    def make_rows(self, parts):
        rows, last = {}, {}
        for outcomes in self.outcomes:
            kinds, exposed, sites = outcomes.kind, outcomes.exposed, self.places_of(outcomes)
            for i in range(len(kinds)):
                key = int(kinds[i]), int(sites[i])
                row = rows.setdefault(key, dict(kind=key[0], site=key[1], calls=0, wait_ns=0, transfer_ns=0, exposed_ns=0, decided=0, last=0, last_rank=-1, rate=[0] * 5))
                row["calls"] += 1
                row["wait_ns"] += int(outcomes.wait[i])
                row["transfer_ns"] += int(outcomes.transfer[i])
                row["exposed_ns"] += int(exposed[i])
                row["rate"] = [a + int(b) for a, b in zip(row["rate"], outcomes.rates[i])]
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

    @property
    def exposed_ns(self):
        return sum(rank.input.gpu_exposed_communication_ns for rank in self.ranks)


def added(value, numbers):
    """Adds floating-point numbers to a value, one after the other."""
    return float(np.add.accumulate(np.concatenate([[value], numbers]))[-1])


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
