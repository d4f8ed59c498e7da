# SPDX-License-Identifier: MIT
"""Where the collectives of the ranks are, and where the reduce computes with them: in this process, or
on the workers of a Dask cluster that the user started. What is computed of the ranks of one home is
computed there, and small arrays are brought here and merged."""
import collections
from pperf_parts.collectives import COLUMNS, LOCAL, SELECTED, Held, summaries
from pperf_parts.distributed import RETRIES, connect, gathered, workers_of
from pperf_parts.parts import Parts

IN_FLIGHT_PER_WORKER, ROWS_A_BATCH = 2, 1 << 21
BROUGHT_ROWS = 1 << 20 # of communicators that are kept here


class Communicators:
    """Holds what is in this process: the key of a communicator is itself."""

    @staticmethod
    def slice(comm, low, high, names):
        return comm.slice(low, high, names)


class Here:
    """Computes in this process."""
    homes = 1

    def load(self, parts):
        """Reads the collectives. Returns what is known of each communicator without its arrays."""
        self.held = parts.held or Held([parts.arrays("select %s from collectives" % SELECTED)])
        return summaries(self.held)

    def arrays_of(self, comm):
        return self.held.slice(comm.key_of_arrays, 0, comm.count, COLUMNS)

    def bring(self, comms):
        """Reads several communicators, if they are elsewhere."""

    @staticmethod
    def home_of(comm):
        """(home, key): where a communicator is, and what it is called there."""
        return LOCAL, comm

    @staticmethod
    def at(home, function, *arguments):
        """Calls function(held, *arguments) at a home. `held`: has slice(key, low, high, names). Returns
        a handle, which can be an argument of further calls."""
        return function(Communicators, *arguments)

    @staticmethod
    def results(handles):
        return list(handles)


# ---- on workers ----

def load_tasks(tasks):
    """Reads the collectives of some tasks, in a worker, which keeps them."""
    with Parts([], (), threads=1, tasks=tasks.value, holds=True) as parts:
        return parts.held


def batches_of(tasks, count):
    """The tasks in at most `count` lists with about equally many rows."""
    total, batches, before = sum(task[0]["tables"]["collectives"]["rows"] for task in tasks), [[] for _ in range(count)], 0
    for task in tasks:
        batches[min(before * count // max(total, 1), count - 1)].append(task)
        before += task[0]["tables"]["collectives"]["rows"]
    return [batch for batch in batches if batch]


class Opaque:
    """An argument that Dask does not search for futures."""
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def call(function, held, *arguments):
    return function(held, *(one.value if isinstance(one, Opaque) else one for one in arguments))


def arrays_at(held, keys):
    return [held.slice(*key, COLUMNS) for key in keys]


class OnDask:
    """Keeps the collectives in the memory of the workers, and computes there. What a worker had that
    dies is read by another one."""

    def __init__(self, scheduler):
        self.client = connect(scheduler)
        self.most = workers_of(self.client) * IN_FLIGHT_PER_WORKER
        self.held, self.task_of, self.read = [], {}, collections.deque()

    def submit(self, function, *arguments):
        return self.client.submit(function, *arguments, retries=RETRIES, pure=False)

    def load(self, parts):
        manifests = [({key: value for key, value in manifest.items() if key != "traces"}, traces) for manifest, traces in parts.tasks]
        rows = sum(manifest["tables"]["collectives"]["rows"] for manifest, _ in manifests)
        self.held = [self.submit(load_tasks, Opaque(batch)) for batch in batches_of(manifests, max(self.most, rows // ROWS_A_BATCH))]
        self.homes, result = len(self.held), {}
        for number, found in enumerate(self.results([self.submit(summaries, held) for held in self.held])):
            self.task_of.update(dict.fromkeys(found, number))
            result.update(found)
        return result

    def home_of(self, comm):
        return (LOCAL, comm) if comm.is_changed else (self.task_of[comm.key_of_arrays], comm.key_of_arrays)

    def at(self, home, function, *arguments):
        if home == LOCAL:
            return function(Communicators, *self.results(arguments))
        return self.submit(call, function, self.held[home], *(one if self.is_future(one) else Opaque(one) for one in arguments))

    @staticmethod
    def is_future(value):
        from dask.distributed import Future
        return isinstance(value, Future)

    def results(self, handles):
        there = iter(gathered(self.client, [one for one in handles if self.is_future(one)]))
        return [next(there) if self.is_future(one) else one for one in handles]

    def arrays_of(self, comm):
        """Brings all of one communicator here. Those that were used last are kept."""
        self.bring([comm], at_least=1)
        return comm.__dict__

    def bring(self, comms, at_least=0):
        """Brings communicators here as long as there is room."""
        homes, rows = {}, 0
        for comm in comms:
            rows += comm.count
            if comm.is_changed or comm in self.read or (rows > BROUGHT_ROWS and at_least < 1):
                continue
            at_least -= 1
            homes.setdefault(self.task_of[comm.key_of_arrays], []).append(comm)
        asked = [(some, self.at(home, arrays_at, [(comm.key_of_arrays, 0, comm.count) for comm in some])) for home, some in homes.items()]
        for some, arrays in zip([some for some, _ in asked], self.results([handle for _, handle in asked])):
            for comm, one in zip(some, arrays):
                comm.__dict__.update(one)
                self.read.append(comm)
        while len(self.read) > 1 and sum(comm.count for comm in self.read) > 2 * BROUGHT_ROWS:
            self.read.popleft().forget()
