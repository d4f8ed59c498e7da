#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls of NCCL, on the simulated one: two ranks of a program, each under the library. The program
sees no difference. Each call is recorded once with its size and its communicator, and the kernels
have the sizes of their calls."""
import json, re, subprocess
from harness import BUILD, LIBRARY, ROOT, case, dump, environment, main, preload, report
from raw_trace import whole

MAJORS = ("12", "13")
RANKS = 2
BUFFER = 1 << 20  # bytes
MAKING = ["ncclCommInitRank", "ncclCommSplit"]  # in the order of the program
FUNCTIONS = re.findall(r"^\tX\((nccl\w+),", (ROOT / "preload/nccl/real.h").read_text(), re.M)


def job(folder, major, **env):
    """Runs all ranks, and returns what they print. The trace of rank N is in the folder N."""
    folder.mkdir()
    program, ranks = BUILD / "cudasim" / major / "nccl_ranks", []
    for rank in range(RANKS):
        (folder / str(rank)).mkdir()
        ranks.append(subprocess.Popen([program, str(rank), str(RANKS), folder / "id"], cwd=folder / str(rank), env=environment(RANK=str(rank), **env),
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    said = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * RANKS, said
    return said


def recorded(folder, major, **env):
    said = job(folder, major, LD_PRELOAD=preload(), **env)
    return said, [folder / str(rank) / "trace.bin" for rank in range(RANKS)]


@case
def the_list_and_the_map_agree(folder):
    exported = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    assert len(FUNCTIONS) == 21 and {name for name in exported.split() if name.startswith("nccl")} == set(FUNCTIONS)


@case
def ranks_see_no_difference(folder):
    for major in MAJORS:
        bare, (under, _) = job(folder / ("bare" + major), major), recorded(folder / ("under" + major), major)
        assert under == bare and all(out and not err for out, err in under), (bare, under)


@case
def each_call_is_recorded_with_its_communicator(folder):
    for major in MAJORS:
        _, traces = recorded(folder / major, major)
        keys = []
        for rank, path in enumerate(traces):
            trace, records = whole(path), dump(path, {"collective"})
            calls = [c for c in records if c.get("flags") != "begin" and c["name"] not in MAKING]
            assert [(c["name"], c.get("flags")) for c in records if c["name"] in MAKING] == [(name, flag) for name in MAKING for flag in ("begin", None)], records
            part, small = BUFFER // RANKS, {"flags": ["grouped"]}
            wanted = [("ncclAllReduce", BUFFER)] * 3 + [("ncclAllGather", part), ("ncclReduceScatter", part), ("ncclBroadcast", BUFFER // 2),
                      ("ncclAllReduce", 4000), ("ncclAllReduce", 12000), ("ncclGroupEnd", 2)] + [("ncclSend", part), ("ncclRecv", part)] * RANKS + [
                      ("ncclGroupEnd", 2 * RANKS), ("ncclAllReduce", BUFFER // 4)]
            assert [(c["name"], c.get("bytes", c.get("calls"))) for c in calls] == wanted, calls
            assert all(c["result"] == 0 and c["duration_ns"] > 0 for c in calls), calls
            of_communicator = [c for c in calls if "communicator" in c]
            assert len(of_communicator) == len(calls) - 2 and all((c["ranks"], c["rank"]) == (RANKS, rank) for c in of_communicator), calls
            assert [c["sequence"] for c in of_communicator] == [*range(8 + 2 * RANKS), 0], calls
            # A call has a begin, except in a group, whose end has one.
            begun = [(c["name"], c.get("sequence")) for c in records if c.get("flags") == "begin"]
            assert begun == [(c["name"], c.get("sequence")) for c in records if c.get("flags") is None], records
            assert {c["data_type"] for c in of_communicator} == {"float32"}
            assert [c.get("peer") for c in calls if c["name"] in ("ncclSend", "ncclRecv", "ncclBroadcast")] == [0, 0, 0, 1, 1]
            assert [bool(c.get("flags")) for c in calls] == [False] * 6 + [True, True, False] + [True] * 2 * RANKS + [False, False]
            assert re.fullmatch(r"2\.\d+\.\d+", trace.meta["version.nccl"]) and not any(trace.lost)
            keys.append([c["key"] for c in of_communicator])
        assert keys[0] == keys[1] and len(set(keys[0])) == 2, keys # that of the split is another one


@case
def kernels_have_the_sizes_of_their_calls(folder):
    for major in MAJORS:
        _, traces = recorded(folder / major, major)
        for path in traces:
            rows = json.loads(report("overlap", path, "-f", "json").stdout)["rows"]
            sizes = {row["bytes"] // row["calls"]: row["calls"] for row in rows if row["kind"] == "size"}
            # three all-reduces, an all-gather, a reduce-scatter and an all-to-all of the whole buffer; the group's two are one kernel
            assert sizes == {BUFFER: 6, BUFFER // 2: 1, 16000: 1, BUFFER // 4: 1}, rows
            (row,) = [row for row in rows if row["kind"] == "communication"]
            on_bus = (3 * 2 + 1 + 1 + 1) * BUFFER // 2 + BUFFER // 2 + 16000 + BUFFER // 4 # (n - 1) / n = 1/2
            assert row["bytes"] == 6 * BUFFER + BUFFER // 2 + 16000 + BUFFER // 4 and abs(row["bus_bytes_per_s"] * row["gpu_total_ns"] / 1e9 - on_bus) < 1000, row


@case
def ranks_match_communicators_by_their_keys(folder):
    _, traces = recorded(folder / "job", "12")
    got = json.loads(report("ranks", *traces, "-f", "json").stdout)
    # that of all ranks, and the one that was split off: on the same CUDA stream, and kept apart
    assert (got["communicators"], got["matched"]) == (2, 9), got
    assert {(row["name"], row["calls"]) for row in got["collectives"]} == {("all-reduce", 5), ("all-gather", 1), ("reduce-scatter", 1), ("broadcast", 1), ("all-to-all", 1)}, got["collectives"]
    for row in got["collectives"]: # on the bus of two ranks; null if the clocks are not good enough
        message, bus = row["message_bytes_per_s"], row["bus_bytes_per_s"]
        assert (message is None) == (bus is None) and (bus is None or abs(bus / message - {"all-reduce": 1, "broadcast": 1}.get(row["name"], 0.5)) < 0.01), row
    assert b"process groups are not named" not in report("ranks", *traces).stdout.replace(b"\n", b" ")


@case
def ranks_of_different_communicators_are_not_compared(folder):
    (_, (first, _)), (_, (_, second)) = recorded(folder / "one", "12"), recorded(folder / "other", "12")
    text = " ".join(report("ranks", first, second, check=None).stdout.decode().split())
    assert "1 of 2 aligned" in text and "shares no process group with rank 0" in text, text


@case
def without_cuda_recording_there_are_no_calls(folder):
    (out, _), traces = recorded(folder / "off", "12", PPERF_CUDA="0")
    assert not traces[0].exists() or not dump(traces[0], {"collective"})


main()
