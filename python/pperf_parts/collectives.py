# SPDX-License-Identifier: MIT
"""The collectives of traces, as arrays. They stay where they were read: in this process, or in the
memory of Dask's workers."""
import hashlib
import numpy as np
from pperf_parts import PartsError

UNKNOWN = np.iinfo(np.int64).max
SAMPLED = 48
LOCAL = -1  # the home of what this process holds (executors.py)
LOST = -(1 << 63)  # the end of a collective whose record is lost
TOGETHER = np.array([True] * 7 + [False] * 6)
NAMES = ["reduce-scatter", "all-reduce", "all-reduce", "all-gather", "all-gather", "all-to-all", "barrier", "broadcast", "gather", "scatter",
         "reduce", "other", "send/receive"]
COLUMNS = {"start": "start_ns", "end": "end_ns", "kind": "kind::utinyint", "exposed": "exposed_ns", "site": "site", "bytes": "bytes",
           "bus_bytes": "bus_bytes", "asked": "coalesce(requested_ns, %d)" % UNKNOWN}


SELECTED = "trace, comm, seq, " + ", ".join('%s as "%s"' % (column, name) for name, column in COLUMNS.items())


def no_collectives():
    return {name: np.zeros(0, np.uint8 if name == "kind" else np.int64) for name in COLUMNS}


def firsts_of(arrays):
    """Where another communicator begins."""
    trace, comm = arrays["trace"], arrays["comm"]
    return [0, *(np.flatnonzero((trace[1:] != trace[:-1]) | (comm[1:] != comm[:-1])) + 1).tolist()] if len(trace) else []


def in_order(arrays):
    """The rows of some traces, sorted by trace, communicator and order in it: as they are, if they are."""
    firsts, falls = firsts_of(arrays), np.flatnonzero(arrays["seq"][1:] <= arrays["seq"][:-1]) + 1
    keys = set(zip(arrays["trace"][firsts].tolist(), arrays["comm"][firsts].tolist()))
    if len(keys) == len(firsts) and np.isin(falls, firsts).all():
        return arrays
    order = np.lexsort((arrays["seq"], arrays["comm"], arrays["trace"]))
    return {name: array[order] for name, array in arrays.items()}


class Held:
    """The collectives of some traces, sorted by communicator and order in it."""

    def __init__(self, pieces):
        """`pieces`: arrays of the columns SELECTED, each of whole traces."""
        self.ranges, columns, at = {}, {name: [] for name in COLUMNS}, 0
        for piece in pieces:
            piece = in_order(piece)
            self.add_ranges(piece, at)
            at += len(piece["trace"])
            for name, arrays in columns.items():
                arrays.append(piece[name])
        none = no_collectives()
        self.arrays = {name: np.concatenate(columns.pop(name) or [none[name]]) for name in COLUMNS}
        if at and self.arrays["kind"].max() >= len(NAMES):
            raise PartsError("table collectives has the kind %d, which this pperf does not know" % self.arrays["kind"].max())

    def __sizeof__(self):
        """By which Dask decides whether the arrays or a computation with them move."""
        return sum(array.nbytes for array in self.arrays.values())

    def add_ranges(self, piece, at):
        firsts = firsts_of(piece)
        for first, end in zip(firsts, [*firsts[1:], len(piece["trace"])]):
            key = int(piece["trace"][first]), int(piece["comm"][first])
            if key in self.ranges:
                raise PartsError("table collectives has trace %d in two tasks" % key[0])
            self.ranges[key] = at + first, at + end

    def slice(self, key, low, high, names):
        first = self.ranges[key][0]
        return {name: self.arrays[name][first + low:first + high] for name in names}


class Summary:
    """What is known of a communicator without its arrays. The sample is of collectives that end
    together: their starts and ends."""
    __slots__ = ("count", "kinds", "together", "time_ns", "sample")

    def __init__(self, arrays):
        kind, start, end = arrays["kind"], arrays["start"], arrays["end"]
        self.count, self.kinds = len(kind), hashlib.blake2b(kind.tobytes(), digest_size=16).digest()
        self.together, self.time_ns = int(TOGETHER[kind].sum()), int((end - start).sum())
        index = np.arange(0, len(kind), max((len(kind) + SAMPLED - 1) // SAMPLED, 1))
        index = index[TOGETHER[kind[index]]]
        self.sample = start[index], end[index]


def summaries(held):
    """{(trace, communicator): its summary}"""
    return {key: Summary(held.slice(key, 0, end - first, ("kind", "start", "end"))) for key, (first, end) in held.ranges.items()}


class Communicator:
    """The collectives of one rank in one communicator. The arrays of COLUMNS are attributes, which
    are read when they are needed."""

    def __init__(self, row, name, summary, executor):
        self.key_of_arrays, self.executor, self.summary = (row["trace"], row["comm"]), executor, summary
        self.name, self.named, self.key, self.is_pair = name, row["named"], row["key"], row["high"] != 0
        self.sequence, self.requested = row["first_sequence"], row["requested"]
        self.count, self.is_changed = row["count"], False
        if not self.count:
            self.summary, self.is_changed = Summary(no_collectives()), True
            self.__dict__.update(no_collectives())

    def __getattr__(self, name):
        if name not in COLUMNS:
            raise AttributeError(name)
        self.__dict__.update(self.executor.arrays_of(self))
        return self.__dict__[name]

    def __len__(self):
        return self.count

    @property
    def together(self):
        return TOGETHER[self.kind]

    def forget(self):
        """Frees the arrays, which are read again when they are needed."""
        for name in () if self.is_changed else COLUMNS:
            self.__dict__.pop(name, None)

    def slice(self, low, high, names):
        return {name: getattr(self, name)[low:high] for name in names}

    def insert_lost(self, at, kinds):
        for name in COLUMNS:
            value = {"start": LOST, "end": LOST, "kind": kinds, "asked": UNKNOWN}.get(name, 0)
            setattr(self, name, np.insert(getattr(self, name), [at] * len(kinds), value))
        self.is_changed = True
        self.count = len(self.end)


def check_counts(rows, found):
    """The tables must agree on the number of collectives."""
    for row in rows:
        count = found[row["trace"], row["comm"]].count if (row["trace"], row["comm"]) in found else 0
        if count != row["count"]:
            raise PartsError("table communicators says %d collectives of communicator %d, and table collectives has %d" % (row["count"], row["comm"], count))
