# SPDX-License-Identifier: MIT
"""Where the reduce holds the collectives and computes: in this process, or on the workers of a Dask
cluster that the user started."""
import collections, itertools
import numpy as np
from pperf_parts.collectives import COLUMNS, SELECTED, Held, summaries
from pperf_parts.distributed import RETRIES, connect, result_of, workers_of
from pperf_parts.parts import Parts

IN_FLIGHT_PER_WORKER, KEPT_HERE, LOCAL, ROWS_A_BATCH = 2, 64, -1, 1 << 21


class Here:
    """Computes in this process."""

    def load(self, parts):
        """Reads the collectives. Returns what is known of each communicator without its arrays."""
        self.held = parts.held or Held([parts.arrays("select %s from collectives" % SELECTED)])
        return summaries(self.held)

    def arrays_of(self, comm):
        return self.held.slice(comm.key_of_arrays, 0, comm.count, COLUMNS)

    @staticmethod
    def map(function, requests, names, _at_a_time):
        """Calls the function with slices of communicators, for each of `requests`: a list of
        (communicator, first, end), and further arguments."""
        for slices, arguments in requests:
            yield function([comm.slice(low, high, names) for comm, low, high in slices], *arguments)


# ---- on workers ----

def load_tasks(tasks):
    """Reads the collectives of some tasks, in a worker, which keeps them."""
    with Parts([], (), threads=1, tasks=tasks, holds=True) as parts:
        return parts.held


def batches_of(tasks, count):
    """The tasks in at most `count` lists with about equally many rows."""
    total, batches, before = sum(task[0]["tables"]["collectives"]["rows"] for task in tasks), [[] for _ in range(count)], 0
    for task in tasks:
        batches[min(before * count // max(total, 1), count - 1)].append(task)
        before += task[0]["tables"]["collectives"]["rows"]
    return [batch for batch in batches if batch]


def slices_of(held, wanted, names):
    """Slices one after the other in one array for each name, which are sent faster than many small
    ones: (where each begins, and the end of all; the arrays by name)."""
    slices = [held.slice(*each, names) for each in wanted]
    return np.cumsum([0, *(high - low for _, low, high in wanted)]), {name: np.concatenate([one[name] for one in slices]) for name in names}


def unpacked(bounds, arrays):
    bounds = bounds.tolist()
    return [{name: array[first:end] for name, array in arrays.items()} for first, end in zip(bounds, bounds[1:])]


def compute(function, packed, local, items):
    """`packed`: results of slices_of by task. In the items, a slice is (task, number in it)."""
    pieces = {**{task: unpacked(*one) for task, one in packed.items()}, LOCAL: local}
    return [function([pieces[of][number] for of, number in slices], *arguments) for slices, arguments in items]


class OnDask:
    """Keeps the collectives in the memory of the workers, and computes there. Only slices travel. At
    most a few computations wait at a time. What a worker had that dies is read by another one."""

    def __init__(self, scheduler):
        self.client = connect(scheduler)
        self.most = workers_of(self.client) * IN_FLIGHT_PER_WORKER
        self.held, self.task_of, self.read = [], {}, collections.deque()

    def submit(self, function, *arguments):
        return self.client.submit(function, *arguments, retries=RETRIES, pure=False)

    def load(self, parts):
        manifests = [({key: value for key, value in manifest.items() if key != "traces"}, traces) for manifest, traces in parts.tasks]
        rows = sum(manifest["tables"]["collectives"]["rows"] for manifest, _ in manifests)
        self.held = [self.submit(load_tasks, batch) for batch in batches_of(manifests, max(self.most, rows // ROWS_A_BATCH))]
        result = {}
        for number, future in enumerate([self.submit(summaries, held) for held in self.held]):
            found = result_of(future)
            self.task_of.update(dict.fromkeys(found, number))
            result.update(found)
        return result

    def arrays_of(self, comm):
        """Brings all of one communicator here. Those that were used last are kept."""
        self.read.append(comm)
        if len(self.read) > KEPT_HERE:
            self.read.popleft().forget()
        wanted = [(comm.key_of_arrays, 0, comm.count)]
        return unpacked(*result_of(self.submit(slices_of, self.held[self.task_of[comm.key_of_arrays]], wanted, list(COLUMNS))))[0]

    def map(self, function, requests, names, at_a_time):
        waiting, requests = collections.deque(), iter(requests)
        while True:
            some = list(itertools.islice(requests, at_a_time))
            if some:
                waiting.append(self.start(function, some, list(names)))
            if waiting and (not some or len(waiting) >= self.most):
                yield from result_of(waiting.popleft())
            elif not some:
                return

    def start(self, function, requests, names):
        """Starts one computation of several requests. Slices of one task travel together, and those
        that several of the requests need once."""
        wanted, local, items = {}, [], []
        for slices, arguments in requests:
            places = []
            for comm, low, high in slices:
                if comm.is_changed:
                    local.append(comm.slice(low, high, names))
                    places.append((LOCAL, len(local) - 1))
                    continue
                of_task = wanted.setdefault(self.task_of[comm.key_of_arrays], {})
                places.append((self.task_of[comm.key_of_arrays], of_task.setdefault((comm.key_of_arrays, low, high), len(of_task))))
            items.append((places, arguments))
        pieces = {task: self.submit(slices_of, self.held[task], list(of_task), names) for task, of_task in wanted.items()}
        return self.submit(compute, function, pieces, local, items)
