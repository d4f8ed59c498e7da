# SPDX-License-Identifier: MIT
"""Matches the communicators of different ranks: report/analysis/ranks/rank_communicators.c, with the
same result."""
import numpy as np
from pperf_parts.clock_fit import DRIFT_PPM_MAX, Fit, fit_clock
from pperf_parts.collectives import LOST, SAMPLED, TOGETHER

SHIFT_MAX, RESIDUAL_MAX_NS = 32, 50000


class Member:
    __slots__ = ("rank", "index", "comm", "shift")

    def __init__(self, rank, index, comm, shift=0):
        self.rank, self.index, self.comm, self.shift = rank, index, comm, shift


class Group:
    """Instance i of the group is collective i + shift of a member."""

    def __init__(self, member):
        self.members, self.longest, self.begin, self.end, self.island, self.quorum = [], 0, 0, 0, None, 2
        self.add(member)

    def add(self, member):
        count, first = len(member.comm), -member.shift
        self.begin = first if not self.members else min(self.begin, first)
        self.end = first + count if not self.members else max(self.end, first + count)
        self.members.append(member)
        if count > len(self.members[self.longest].comm):
            self.longest = len(self.members) - 1

    @property
    def name(self):
        comm = self.members[0].comm
        return comm.name if comm.named else None


class Trial:
    """How well two communicators match if one is shifted."""
    __slots__ = ("same", "fit", "median", "common")

    def __init__(self, common=0):
        self.same, self.fit, self.median, self.common = False, Fit(), 0, common

    @property
    def is_good(self):
        return bool(self.same and self.fit.pairs and self.fit.residual <= residual_limit(self.median))


def residual_limit(median):
    return max(median // 2, RESIDUAL_MAX_NS)


def fit_is_possible(other, own, limit):
    """Whether half of the ends may be near a line with a possible drift."""
    count, half = len(own), len(own) // 2
    if not count:
        return False
    if half < 2:
        return True
    differences = np.sort(other.astype(np.float64) - own.astype(np.float64))
    window = 2 * float(limit) + 4 * 512 + (float(own.max()) - float(own.min())) * DRIFT_PPM_MAX * 1e-6
    return bool((differences[half - 1:] - differences[:count - half + 1] <= window).any())


def sampled(left, right, from_left, from_right, count):
    """Indices of collectives that end together, evenly sampled."""
    index = np.arange(0, count, (count + SAMPLED - 1) // SAMPLED)
    return index[left.together[from_left + index] & (left.end[from_left + index] != LOST) & (right.end[from_right + index] != LOST)]


def try_all(left, right):
    """As try_shift for two whole communicators of one length, from their summaries."""
    trial = Trial(len(left))
    trial.same = left.summary.kinds == right.summary.kinds
    if trial.same:
        set_fit(trial, *left.summary.sample, *right.summary.sample)
    return trial


def set_fit(trial, left_start, left_end, right_start, right_end):
    durations = np.sort(np.maximum(left_end - left_start, right_end - right_start))
    trial.median = int(durations[len(durations) // 2]) if len(durations) else 0
    if fit_is_possible(left_end, right_end, residual_limit(trial.median)):
        trial.fit = fit_clock(left_end, right_end)


def try_shift(left, right, shift):
    from_left, from_right = max(-shift, 0), max(shift, 0)
    if from_left >= len(left) or from_right >= len(right):
        return Trial()
    if not shift and len(left) == len(right) and not left.is_changed and not right.is_changed:
        return try_all(left, right)
    count = min(len(left) - from_left, len(right) - from_right)
    trial = Trial(count)
    if not np.array_equal(left.kind[from_left:from_left + count], right.kind[from_right:from_right + count]):
        return trial
    trial.same = True
    index = sampled(left, right, from_left, from_right, count)
    a, b = from_left + index, from_right + index
    set_fit(trial, left.start[a], left.end[a], right.start[b], right.end[b])
    return trial


def best_shift(left, right):
    """(the best trial, its shift). A shift other than 0 must be clearly better."""
    best, chosen = try_shift(left, right, 0), 0
    if left.sequence >= 0 and right.sequence >= 0:
        trial = try_shift(left, right, left.sequence - right.sequence)
        if trial.is_good:
            return trial, left.sequence - right.sequence
    if len(left) == len(right) and best.is_good:
        return best, 0
    for i in range(2, 2 * SHIFT_MAX + 2):
        shift = -(i // 2) if i % 2 else i // 2
        trial = try_shift(left, right, shift)
        if trial.is_good and trial.common * 2 >= min(len(left), len(right)) and not (
                best.is_good and trial.fit.residual * 4 + 1000 >= best.fit.residual):
            best, chosen = trial, shift
    return best, chosen


def compare_names(left, right):
    """-1: they differ, 1: they are equal, 0: one is unknown."""
    if not left.named or not right.named:
        return 0
    return 1 if left.name == right.name else -1


# ---- collectives whose records are lost ----

def count_lost(longest, at, own_kind, own_end, distance, before):
    """How many collectives of `longest` from `at` on are lost, if the own one is the first after
    them; None: not known."""
    drifted = float(own_end - before) * DRIFT_PPM_MAX * 1e-6
    change = (longest.end[at:] - own_end).astype(np.float64) - float(distance)
    fits = (longest.kind[at:] == own_kind) & (longest.end[at:] != LOST) & (np.abs(change) <= RESIDUAL_MAX_NS + drifted)
    found = np.flatnonzero(fits)
    return int(found[0]) if len(found) else None


def insert_lost(longest, own):
    at = 1
    while at < len(own) and at < len(longest):
        if TOGETHER[own.kind[at]] and longest.end[at - 1] != LOST:
            lost = count_lost(longest, at, own.kind[at], int(own.end[at]), int(longest.end[at - 1]) - int(own.end[at - 1]), int(own.end[at - 1]))
            if lost is None:
                return
            if lost:
                own.insert_lost(at, longest.kind[at:at + lost])
            at += lost
        at += 1


# ---- groups ----

class Finder:
    def __init__(self, may_have_lost):
        self.groups, self.by_name, self.unnamed, self.may_have_lost = [], {}, [], may_have_lost

    def try_group(self, group, member, best):
        """`best`: (group, shift, least residual) so far."""
        longest = group.members[group.longest]
        same = compare_names(longest.comm, member.comm)
        if group.members[-1].rank == member.rank or same < 0:
            return best
        if same > 0 and self.may_have_lost[member.rank] and len(member.comm) < len(longest.comm):
            insert_lost(longest.comm, member.comm)
        trial, shift = best_shift(longest.comm, member.comm)
        a, b = longest.comm, member.comm
        named_same = ((a.is_pair and b.is_pair) or (a.key and a.key == b.key)) and trial.same and len(a) == len(b)
        if not (named_same or (trial.is_good and (same or best[2] is None or trial.fit.residual < best[2]))):
            return best
        return group, shift + longest.shift, 0 if same else trial.fit.residual

    def join(self, member):
        best = (None, 0, None)
        if member.comm.named:
            for group in self.by_name.get(member.comm.name, []):
                best = self.try_group(group, member, best)
            for group in self.unnamed:
                if not best[0]:
                    best = self.try_group(group, member, best)
        else:
            for group in self.groups:
                best = self.try_group(group, member, best)
        if best[0]:
            member.shift = best[1]
            best[0].add(member)
        else:
            self.new_group(member)

    def new_group(self, member):
        group = Group(member)
        self.groups.append(group)
        if member.comm.named:
            self.by_name.setdefault(member.comm.name, []).append(group)
        else:
            self.unnamed.append(group)


def find_groups(ranks, may_have_lost, quorum):
    """`ranks`: a list of communicators of each rank."""
    finder = Finder(may_have_lost)
    for rank, comms in enumerate(ranks):
        for index, comm in enumerate(comms):
            if len(comm):
                finder.join(Member(rank, index, comm))
    for group in finder.groups:
        group.quorum = max((len(group.members) * quorum + 99) // 100, 2)
    return finder.groups
