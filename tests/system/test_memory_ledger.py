#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memory --ledger: who uses the capacity of a GPU. On the simulated device, whose contexts and other
processes hold known amounts; the rows add up to the capacity, to the byte."""
import json
from harness import BUILD, Skip, case, dump, main, report, traced

MIB = 1 << 20
CAPACITY, OTHER, CONTEXT = 1024 * MIB, 300 * MIB, 100 * MIB
NVML = BUILD / "cudasim" / "13" / "libnvidia-ml.so.1"
POOL_CHUNK = 32 * MIB  # what the simulated pool reserves at a time


def ran(folder, *words, **env):
    program = BUILD / "cudasim" / "13" / "ledger"
    if not program.exists():
        raise Skip("the simulated device is not built (no %s)" % program)
    library = BUILD / "tests" / "programs" / "lib_workspace.so"
    traced(folder, program, library, *words, env={"SIM_MEM": str(CAPACITY), "SIM_OTHER": str(OTHER), "SIM_CONTEXT": str(CONTEXT), **env})
    return folder / "trace.bin"


def ledger(trace, *options):
    """The rows by kind, after a check that each level adds up."""
    rows = json.loads(report("memory", "--ledger", trace, "-f", "json", *options).stdout)["rows"]
    for row in rows:
        below = [r["bytes"] for r in rows if r["parent"] == row["id"]]
        assert not below or sum(below) == row["bytes"], (row, below)
    assert [r["kind"] for r in rows if r["parent"] is None] == ["ledger"], rows
    return {r["kind"]: r["bytes"] for r in rows if r["depth"] < 2}, rows


def samples(trace):
    return [r for r in dump(trace, {"device_memory"})]


@case
def a_ledger_adds_up_to_the_capacity(folder):
    trace = ran(folder, NVML)
    kinds, rows = ledger(trace)
    assert kinds == {"ledger": CAPACITY, "program": (64 + 16) * MIB, "pool": 32 * MIB, "library": 4 * MIB, "context": CONTEXT,
                     "others": OTHER, "free": CAPACITY - OTHER - CONTEXT - (64 + 16 + 4) * MIB - POOL_CHUNK}, kinds
    assert [r["name"] for r in rows if r["kind"] == "library"] == ["lib_workspace.so"], rows
    text = " ".join(report("memory", "--ledger", trace).stdout.decode().split())
    assert "ledger GPU 0 when it was fullest, of " in text and "Of memory pools (cudaMallocAsync) only the bytes requested are known" in text, text


@case
def without_nvml_contexts_and_others_are_one_row(folder):
    trace = ran(folder)
    kinds, _ = ledger(trace)
    assert kinds["context_and_others"] == CONTEXT + OTHER and "others" not in kinds, kinds
    assert [s["reason"] for s in samples(trace)] == ["first_allocation", "query"], samples(trace)
    assert b"are one row with other processes" in b" ".join(report("memory", "--ledger", trace).stdout.split())


@case
def samples_say_what_nvml_and_the_driver_say(folder):
    trace = ran(folder, NVML)
    taken = samples(trace)
    assert {s["reason"] for s in taken} == {"first_allocation", "nvml", "query"}, taken
    last = [s for s in taken if s["reason"] == "nvml"][-1]
    held = (64 + 16 + 4) * MIB + POOL_CHUNK
    assert (last["total_bytes"], last["free_bytes"], last["process_bytes"]) == (CAPACITY, CAPACITY - OTHER - CONTEXT - held, CONTEXT + held), last
    costs = [r["duration_ns"] for r in dump(trace, {"self"}) if r["action"] == "sample"]
    assert costs and all(0 < cost < 10**9 for cost in costs), costs


@case
def memory_that_stays_mapped_after_its_release_counts(folder):
    """The program released the handle of 16 MiB that it still maps."""
    trace = ran(folder)
    actions = [r["action"] for r in dump(trace, {"mapping"})]
    assert actions == ["reserve", "map"], actions
    levels = [r for r in json.loads(report("memory", trace, "-f", "json").stdout)["rows"] if r["depth"] == 0 and r["memory_kind"] == "device"]
    assert [r["held_bytes"] for r in levels] == [(64 + 32 + 16 + 4) * MIB], levels


@case
def allocations_from_pools_are_no_segments_with_gaps(folder):
    trace = ran(folder)
    text = b" ".join(report("memory", "--map", trace).stdout.split())
    assert b"1 segment is an allocation from CUDA's memory pools (cudaMallocAsync): what a pool keeps beyond them, and its gaps, are not known" in text, text


@case
def without_stacks_the_program_is_the_caller(folder):
    kinds, _ = ledger(ran(folder, PPERF_STACKS="off"))
    assert kinds["program"] == (64 + 16 + 4) * MIB and "library" not in kinds, kinds


@case
def a_cut_trace_has_a_ledger_that_adds_up(folder):
    whole = ran(folder, NVML).read_bytes()
    found = 0
    for cut in range(len(whole) // 12, len(whole), len(whole) // 12):
        (folder / "cut.bin").write_bytes(whole[:cut])
        if b"no sample" not in report("memory", "--ledger", folder / "cut.bin").stdout:
            ledger(folder / "cut.bin")
            found += 1
    assert found, len(whole)


main()
