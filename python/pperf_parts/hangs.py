# SPDX-License-Identifier: MIT
"""Finds collectives that some ranks wait in and others have not requested:
report/analysis/ranks/rank_hang.c and rank_hang_requests.c, with the same result."""
from pperf_parts.parts import path_of, text_of

U64 = (1 << 64) - 1


class Hang:
    """`absent`: (number, index of the rank or None, its process or None)."""

    def __init__(self, communicator, number, operation=None, pair=(-1, -1)):
        self.communicator, self.number, self.operation, self.pair = communicator, number, operation, pair
        self.waiting, self.absent, self.unknown, self.is_cause = [], [], 0, False


class Request:
    """What one rank requested of a communicator of NCCL."""

    def __init__(self, rank, row):
        self.__dict__.update(row)
        self.rank, self.key = rank, row["key"] & U64
        self.pair = row["from_rank"], row["to_rank"]
        self.is_pair = row["from_rank"] >= 0


class Hangs:
    def __init__(self, ranks):
        self.ranks, self.all, self.waits = ranks, [], set()
        ends = [self.time(i, r.input.wall_ns) for i, r in enumerate(ranks.ranks) if ranks.clocks.aligned[i]]
        self.latest = max(ends, default=-(1 << 63))
        if any(not rank.input.ended for rank in ranks.ranks):
            for group in ranks.groups:
                self.examine_group(group)
            self.examine_requests()
        for hang in self.all:
            hang.is_cause = any(index is None or index not in self.waits for _, index, _ in hang.absent)
        self.all.sort(key=lambda h: (not h.is_cause, -len(h.waiting), h.waiting[:1], (h.communicator or "").encode("utf-8", "surrogatepass")))

    def add(self, hang, waiting=(), absent=()):
        self.all.append(hang)
        self.waits.update(waiting)
        hang.waiting += waiting
        hang.absent += [(self.ranks.ranks[i].number, i, self.ranks.ranks[i].input) for i in absent]
        return hang

    # ---- times ----

    def time(self, rank, since_start):
        return int(self.ranks.clocks.fit[rank].map(self.ranks.ranks[rank].input.started_unix_ns + since_start))

    def open_ns(self, index, item, begin):
        own = max(item.wall_ns - begin, 0)
        if index is None or not self.ranks.clocks.aligned[index]:
            return own
        return max(self.latest - self.time(index, begin), own)

    # ---- communicators without a key ----

    def requested(self, member):
        item = self.ranks.ranks[member.rank].input
        if item.status != "ok":
            return None
        return (len(member.comm) if item.ended else member.comm.requested) - member.shift

    def is_running(self, rank):
        return not self.ranks.ranks[rank].input.ended

    def examine_group(self, group):
        known = [(m.rank, self.requested(m)) for m in group.members]
        known = [(rank, number) for rank, number in known if number is not None]
        if len(group.members) < 2 or group.members[0].comm.key or not known:
            return
        lowest, most = min(n for _, n in known), max(n for _, n in known)
        if lowest < most and any(self.is_running(rank) for rank, n in known if n == most):
            self.add(Hang(group.name, lowest - group.begin + 1), [r for r, n in known if n > lowest], [r for r, n in known if n <= lowest])

    # ---- communicators with a key ----

    def examine_requests(self):
        by_key = {}
        for index, rank in enumerate(self.ranks.ranks):
            for row in self.ranks.requests.get(rank.input.trace, []):
                request = Request(index, row)
                by_key.setdefault(request.key, []).append(request)
        for key in sorted(by_key):
            requests = sorted(by_key[key], key=lambda r: (not r.is_pair, r.pair, r.rank))
            members = [r for r in requests if not r.is_pair]
            name = text_of((members or requests)[0].name)
            for request in requests:
                request.communicator = "%s (NCCL %016x)" % (name, key) if name else "NCCL %016x" % key
            if members and len({m.rank for m in members}) == len(members):
                self.examine_collectives(members)
                self.examine_making(members)
                self.examine_pairs([r for r in requests if r.is_pair], members)

    def is_judged(self, request):
        item = self.ranks.ranks[request.rank].input
        return item.status == "ok" and not (item.lacks_events and (request.is_pair or request.pairs))

    @staticmethod
    def hang_of(request, number):
        return Hang(request.communicator, number, text_of(request.operation) or None, request.pair)

    def examine_collectives(self, members):
        judged = [m for m in members if self.is_judged(m)]
        if not judged:
            return
        lowest, furthest = min(m.count for m in judged), max(judged, key=lambda m: m.count)
        running = any(self.is_running(m.rank) for m in judged if m.count == furthest.count)
        if running and lowest < furthest.count:
            self.add(self.hang_of(furthest, lowest), [m.rank for m in judged if m.count > lowest], [m.rank for m in judged if m.count <= lowest])

    def has_job_numbers(self, members):
        ranks, size = self.ranks, members[0].ranks
        return (size == ranks.world_size and size > ranks.ranks[-1].number and not ranks.by_file
                and all(ranks.ranks[m.rank].number == m.own_rank for m in members))

    def absent_of_number(self, number):
        for index, rank in enumerate(self.ranks.ranks):
            if rank.number == number:
                return number, index, rank.input
        item = next((i for i in self.ranks.inputs if i.rank == number and not i.ended and i.status in ("ok", "no_collectives")), None)
        return number, None, item

    def examine_making(self, members):
        size = members[0].ranks
        if size <= len(members) or not any(m.making and self.is_running(m.rank) for m in members):
            return
        hang = self.add(self.hang_of(members[0], 0), [m.rank for m in members])
        if not self.has_job_numbers(members) or size > 2 * len(self.ranks.ranks):
            hang.unknown = size - len(members)
            return
        there = {m.own_rank for m in members}
        hang.absent = [self.absent_of_number(number) for number in range(size) if number not in there]

    def other_end(self, pair, members):
        wanted = pair.to_rank if pair.own_rank == pair.from_rank else pair.from_rank
        other = next((m for m in members if m.own_rank == wanted), None)
        if not other or not self.is_judged(other) or other.rank == pair.rank or self.ranks.ranks[other.rank].input.more_pairs:
            return None
        return other

    def examine_pair(self, pair, behind, count):
        if pair.count > count and self.is_running(pair.rank):
            self.add(self.hang_of(pair, count + 1), [pair.rank], [behind.rank])

    def examine_pairs(self, pairs, members):
        by_pair = {}
        for pair in pairs:
            by_pair.setdefault(pair.pair, []).append(pair)
        for (first, second), ends in by_pair.items():
            if first == second or len(ends) > 2 or not self.is_judged(ends[0]):
                continue
            if len(ends) == 1:
                other = self.other_end(ends[0], members)
                if other:
                    self.examine_pair(ends[0], other, 0)
            elif self.is_judged(ends[1]):
                self.examine_pair(ends[0], ends[1], ends[1].count)
                self.examine_pair(ends[1], ends[0], ends[0].count)


def json_of_thread(hangs, index, item, thread):
    return {"tid": thread["thread"], "path": path_of(thread["path"]), "open_ns": hangs.open_ns(index, item, thread["begin_ns"]),
            "source": text_of(thread["source"]) or None, "stack": path_of(thread["frames"]), "nccl_call": text_of(thread["call"]) or None}


def json_of_hang(ranks, hangs, hang):
    absent = []
    for number, index, item in hang.absent:
        threads = ranks.ends.get(item.trace, []) if item and not item.ended else []
        absent.append({"rank": number, "ended": bool(item and item.ended), "waits_elsewhere": index is not None and index in hangs.waits,
                       "threads": [json_of_thread(hangs, index, item, t) for t in threads], "has_trace": item is not None})
    return {"communicator": hang.communicator, "number": hang.number, "waiting": [ranks.ranks[i].number for i in hang.waiting], "absent": absent,
            "absent_unknown": hang.unknown, "operation": hang.operation, "from": hang.pair[0] if hang.pair[0] >= 0 else None,
            "to": hang.pair[1] if hang.pair[1] >= 0 else None}
