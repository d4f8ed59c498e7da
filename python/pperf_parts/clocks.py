# SPDX-License-Identifier: MIT
"""Aligns the clocks of the ranks along a spanning tree of their groups:
report/analysis/ranks/rank_clocks.c, with the same result."""
import heapq
import numpy as np
from pperf_parts.clock_fit import Fit, PAIRS_MIN, fit_clock
from pperf_parts.collectives import LOCAL, LOST, TOGETHER
from pperf_parts.communicators import compare_names, sampled

END_COLUMNS = "end", "kind"


def ends_of(held, key, count):
    return held.slice(key, 0, count, END_COLUMNS)


def fit_ranks(held, hub, spans_of_ranks, *of_hub):
    return [fit_rank(held, hub, spans, of_hub) for spans in spans_of_ranks]


def fit_rank(held, hub, spans, of_hub):
    """Fits a rank to the clock of the hub's island by the times at which common collectives ended.
    `spans`: (number of the hub's communicator, first in it, communicator, first in it, count)."""
    other, own = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, from_left, key, from_right, count in spans:
        left, right = {name: array[from_left:from_left + count] for name, array in of_hub[number].items()}, held.slice(key, from_right, from_right + count, END_COLUMNS)
        both = (left["end"] != LOST) & (right["end"] != LOST) & TOGETHER[left["kind"]]
        other.append(hub.map(left["end"][both]))
        own.append(right["end"][both])
    other, own = np.concatenate(other), np.concatenate(own)
    order = np.argsort(own, kind="stable")
    return fit_clock(other[order], own[order])


class Clocks:
    """`fit`, `island` and `with_` of each rank; islands as [reference, number of ranks]."""

    def __init__(self, groups, rank_count, is_whole, executor):
        self.groups, self.is_whole, self.executor = groups, is_whole, executor
        self.fit, self.island, self.with_ = [Fit() for _ in range(rank_count)], [None] * rank_count, [0] * rank_count
        self.memberships = [[] for _ in range(rank_count)]
        for number, group in enumerate(groups):
            for member in group.members:
                self.memberships[member.rank].append((number, member))
        self.ends = [group.members[group.longest].comm.summary.together for group in groups]
        self.reached, self.heap, self.islands = [False] * len(groups), [], []
        for whole in True, False:
            for rank in range(rank_count):
                if self.island[rank] is None and is_whole[rank] == whole:
                    self.grow_island(rank)
        for group in groups:
            self.set_group_island(group)
        largest = max(range(len(self.islands)), key=lambda i: (self.islands[i][1], -i), default=None)
        self.reference = self.islands[largest][0] if self.islands else 0
        self.aligned = [rank == self.reference or (largest is not None and self.island[rank] == largest) for rank in range(rank_count)]

    def reach(self, rank, island):
        self.island[rank] = island
        self.islands[island][1] += 1
        for number, _ in self.memberships[rank]:
            if not self.reached[number]:
                self.reached[number] = True
                heapq.heappush(self.heap, (-self.ends[number], rank, number))

    def grow_island(self, reference):
        island = len(self.islands)
        self.islands.append([reference, 0])
        self.reach(reference, island)
        while self.heap:
            self.grow_by_group(self.groups[heapq.heappop(self.heap)[2]], island)
        if self.islands[island][1] > 1:
            return
        self.island[reference] = None
        self.islands.pop()
        for number, _ in self.memberships[reference]:
            self.reached[number] = False

    def grow_by_group(self, group, island):
        inside = [m.rank for m in group.members if self.island[m.rank] == island]
        hub = next((rank for rank in inside if self.is_whole[rank]), inside[0] if inside else None)
        outside = [m.rank for m in group.members if self.island[m.rank] is None]
        fits = self.fits_of(hub, outside)
        for rank in outside:
            if fits[rank].pairs:
                self.fit[rank], self.with_[rank] = fits[rank], hub
                self.reach(rank, island)

    def fits_of(self, hub, ranks):
        """{rank: its fit to the hub}, each computed where the collectives of the rank are."""
        of_hub, homes, used = dict(self.memberships[hub]), {}, []
        for rank in ranks:
            home, spans = self.common_spans(of_hub, rank, used)
            homes.setdefault(home, []).append((rank, spans))
        handles = []
        for comm in used:
            home, key = self.executor.home_of(comm)
            handles.append(self.executor.at(home, ends_of, key, comm.count))
        fits = [self.executor.at(home, fit_ranks, self.fit[hub], [spans for _, spans in some], *handles) for home, some in homes.items()]
        return {rank: fit for some, result in zip(homes.values(), self.executor.results(fits)) for (rank, _), fit in zip(some, result)}

    def common_spans(self, of_hub, rank, used):
        """The home of a rank, and the spans of the communicators that the hub has, too. These are added
        to `used`."""
        found = []
        for number, right in self.memberships[rank]:
            left = of_hub.get(number)
            if not left:
                continue
            first = max(-left.shift, -right.shift)
            count = min(len(left.comm) - left.shift, len(right.comm) - right.shift) - first
            if count > 0:
                if left.comm not in used:
                    used.append(left.comm)
                found.append((used.index(left.comm), first + left.shift, right.comm, first + right.shift, count))
        homes = {self.executor.home_of(span[2])[0] for span in found}
        if len(homes) != 1:
            return LOCAL, found
        return homes.pop(), [(*span[:2], self.executor.home_of(span[2])[1], *span[3:]) for span in found]

    def set_group_island(self, group):
        most = 0
        for member in group.members:
            island = self.island[member.rank]
            if island is None or island == group.island:
                continue
            count = sum(self.island[m.rank] == island for m in group.members)
            if count > most:
                most, group.island = count, island


def explain_unaligned(comms, of_reference, reference_number):
    """Why a rank shares no island with the reference. `comms`: its communicators."""
    together = int(sum(comm.together.sum() for comm in comms))
    if together < PAIRS_MIN:
        return "it has %d collectives that end at the same time on all ranks; %d are needed" % (together, PAIRS_MIN)
    if all(compare_names(a, b) < 0 for a in of_reference for b in comms):
        return "it shares no process group with rank %d, directly or through other ranks" % reference_number
    left, right = of_reference[0], comms[0]
    count = min(len(left), len(right))
    if not count or not np.array_equal(left.kind[:count], right.kind[:count]):
        return "its collectives differ from those of the others, or are in another order"
    index = sampled(left, right, 0, 0, count)
    return ("the ends of its collectives do not keep a constant distance to the others' (median deviation %d ns)"
            % fit_clock(left.end[index], right.end[index]).residual)
