#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The description of the format suffices to read a trace: a reader that shares no code with the
report finds the same."""
import reference_decoder as decoder
from exact_times import exact
from harness import *

KINDS = {"push", "pop", "start", "end", "mark"}


def agree(path):
    own = {tid: events for tid, events in decoder.read(path).items() if events}
    said = {}
    for record in dump(path, KINDS):
        said.setdefault(record["tid"], []).append((record["kind"], exact(record.get("name")), exact(record.get("domain"))))
    assert set(own) == set(said), (sorted(own), sorted(said))
    for tid in own:
        for number, (mine, theirs) in enumerate(zip(own[tid], said[tid])):
            assert mine == theirs, "event %d of thread %d: %s, not %s" % (number, tid, theirs, mine)
        assert len(own[tid]) == len(said[tid]), (tid, len(own[tid]), len(said[tid]))
    return sum(event != ("pop", b"", b"") for events in own.values() for event in events)  # but pops without a push


@case
def two_readers_agree_on_every_kind_of_call(folder):
    traced(folder, "nvtx_calls", "expected", PROGRAMS / "lib_nvtx_copy.so")
    assert agree(folder / "trace.bin") > 2500


@case
def two_readers_agree_on_sealed_slots_and_several_threads(folder):
    traced(folder, "ranges", 3, 60000)
    assert agree(folder / "trace.bin") == 360000


@case
def two_readers_agree_on_a_killed_process(folder):
    traced(folder, "ending", "kill", check=None)
    assert agree(folder / "trace.bin") == 2002


@case
def two_readers_agree_on_the_traces_of_children(folder):
    traced(folder, "forks", "nested", 3)
    assert sum(agree(path) for path in traces(folder)) == 4 + 3 * 2


main()
