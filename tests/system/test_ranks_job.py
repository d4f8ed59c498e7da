#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs of many ranks: faults, communicators, descriptors, order, hangs. The traces are those of
tests/programs/job_load.c, whose schedule is computed here again."""
import json, os, pathlib, random, resource, shutil, subprocess
from harness import REPORT, case, environment, main, report, run

LAYERS, STEP, LATE, TRANSFER, PLACE = 24, 8000000, 400000, 40000, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MASK = 2 ** 64 - 1


def job(folder, ranks, steps, *settings):
    folder.mkdir(exist_ok=True)
    run(folder, "job_load", folder, ranks, steps, *settings, check=0)
    return folder


def trace(folder, rank):
    return folder / ("rank%05d.bin" % rank)


def view(*arguments, **options):
    return json.loads(report("ranks", *arguments, "-f", "json", **options).stdout)


def cut_in_half(path):
    os.truncate(path, path.stat().st_size // 2)


def rows_of(got):
    return {row["rank"]: row for row in got["rows"]}


# ---- the schedule of job_load.c ----

def mix(x):
    x ^= x >> 33
    x = x * 0xff51afd7ed558ccd & MASK
    x ^= x >> 33
    x = x * 0xc4ceb9fe1a85ec53 & MASK
    return x ^ x >> 33


def members(rank, group, sizes):
    stride = 1
    for size in sizes[:group]:
        stride *= size
    first = rank - rank // stride % sizes[group] * stride
    return tuple(first + m * stride for m in range(sizes[group]))


def schedule(ranks, steps, straggler, sizes):
    """Yields, for each collective, its members with their begins, and its end."""
    free = [0] * ranks
    for step in range(steps):
        for layer in range(LAYERS):
            group, number = 0 if layer < 16 else 1 if layer < 20 else 2, step * LAYERS + layer
            begins = []
            for rank in range(ranks):
                own = 1000000 + step * STEP + 3400000 + layer * 80000 + mix(rank << 32 | number) % 8000
                own += (0 if layer else mix(number + 7777777) % 200000) + (LATE if rank == straggler and step % 4 else 0)
                begins.append(max(own, free[rank] + 1000 + mix((rank << 33 | number) & MASK) % 500))
            for first in range(ranks):
                of = members(first, group, sizes)
                if of[0] != first:
                    continue
                end = max(begins[m] for m in of) + TRANSFER
                for m in of:
                    free[m] = end
                yield {m: begins[m] for m in of}, end


# ---- faults ----

@case
def of_64_ranks_each_fault_is_named_and_counted(folder):
    """One is cut, one empty, one missing, one no trace, one there twice, one restarted twice, one
    damaged in its middle; and one of another run."""
    traces, steps = job(folder / "job", 64, 10, "straggler=3"), 10
    whole = view(traces)
    assert (whole["matched"], whole["faults"], whole["missing_ranks"], whole["warnings"]) == (240, [], [], []), whole["faults"]
    cut_in_half(trace(traces, 10))
    trace(traces, 11).write_bytes(b"")
    trace(traces, 12).unlink()
    trace(traces, 17).write_bytes(b"garbage")
    shutil.copy(trace(traces, 13), traces / "copy.bin")
    job(traces, 64, steps, "first=14", "count=1", "pid=5000", "prefix=early", "start=1699999990000000000")
    job(traces, 64, steps, "first=14", "count=1", "pid=6000", "prefix=later", "start=1700000090000000000")
    cut_in_half(traces / "later00014.bin")
    job(traces, 64, steps, "first=20", "count=1", "prefix=other", "start=1600000000000000000", "run=77")
    with open(trace(traces, 16), "r+b") as file:
        file.seek(trace(traces, 16).stat().st_size * 3 // 5)
        file.write(bytes(60000))
    got = view(traces)
    assert {(pathlib.Path(f["file"]).name, f["status"]) for f in got["faults"]} == {
        ("rank00010.bin", "cut"), ("rank00011.bin", "empty"), ("rank00017.bin", "unreadable"), ("rank00013.bin", "copy"),
        ("early00014.bin", "superseded"), ("later00014.bin", "superseded"), ("other00020.bin", "other_run"), ("rank00016.bin", "damaged")}, got["faults"]
    assert got["missing_ranks"] == [11, 12, 17] and got["traces"]["ok"] == 64 - 5, (got["missing_ranks"], got["traces"])
    for fault in got["faults"]:
        assert fault["why"] in got["warnings"], fault
    assert any("ranks 11, 12, 17 have no usable trace" in w for w in got["warnings"]), got["warnings"]
    # All others are as before: the same collectives, and the same straggler at the same place.
    rows, before = rows_of(got), rows_of(whole)
    assert got["matched"] == 240 and got["incomplete"] > 0 and sorted(set(range(64)) - set(rows)) == [11, 12, 17], sorted(rows)
    assert [(s["rank"], s["path"]) for s in got["stragglers"]] == [(3, [PLACE])], got["stragglers"]
    for rank in set(rows) - {10, 16}:
        assert rows[rank]["matched"] == 240 and abs(rows[rank]["wait_ns"] - before[rank]["wait_ns"]) <= 20 * 240, (rank, rows[rank], before[rank])
    for rank in 10, 16:
        assert 0 < rows[rank]["matched"] <= 240 and rows[rank]["residual_most_ns"] <= 2 and rows[rank]["aligned"], rows[rank]
        assert rows[rank]["wait_ns"] <= before[rank]["wait_ns"] and rows[rank]["unmatched"] == 0, rows[rank]
    report("ranks", traces, "--strict", check=2)
    text = report("ranks", traces, "--width", 200).stdout.decode()
    assert text.count("warning: ") == 9 and "lack a rank" in text, text


@case
def one_cut_trace_of_64_costs_its_own_figures_only(folder):
    traces = job(folder / "job", 64, 10, "straggler=3")
    whole = view(traces)
    report("ranks", traces, "--strict")
    for rank in 40, 0: # 0: the reference
        kept = trace(traces, rank).read_bytes()
        cut_in_half(trace(traces, rank))
        got = view(traces)
        rows, before = rows_of(got), rows_of(whole)
        assert (got["matched"], got["incomplete"], rows[rank]["matched"]) == (240, 192, 48), (got["matched"], got["incomplete"], rows[rank])
        assert [f["status"] for f in got["faults"]] == ["cut"] and "rank%05d.bin" % rank in got["warnings"][0], got["warnings"]
        [straggler] = got["stragglers"]
        assert (straggler["rank"], straggler["path"]) == (3, [PLACE]) and abs(straggler["last"] - whole["stragglers"][0]["last"]) <= 8, straggler
        assert all(abs(rows[r]["wait_ns"] - before[r]["wait_ns"]) <= 240 * 20 for r in rows if r != rank)
        assert view(traces, "--quorum", 100)["matched"] == 48
        trace(traces, rank).write_bytes(kept)


@case
def two_files_that_claim_one_rank_are_both_refused(folder):
    traces = job(folder / "job", 8, 2)
    shutil.copy(trace(traces, 5), folder / "kept.bin")
    run(folder, "job_load", traces, 8, 2, "straggler=5", "first=5", "count=1", "prefix=changed", check=0)
    got = view(traces)
    assert sorted(f["status"] for f in got["faults"]) == ["conflict"] * 2 and got["missing_ranks"] == [5] and got["matched"] == 48, got["faults"]
    assert all("rank00005.bin" in f["why"] and "changed00005.bin" in f["why"] for f in got["faults"]), got["faults"]


@case
def of_two_runs_the_larger_one_is_shown_and_the_other_can_be_chosen(folder):
    traces = job(folder / "job", 8, 2, "run=17", "straggler=3")
    job(traces, 4, 2, "run=18", "start=1700086400000000000", "prefix=night")
    got = view(traces)
    assert [row["rank"] for row in got["rows"]] == list(range(8)) and got["traces"]["other_run"] == 4, got["traces"]
    assert all("--run" in f["why"] and "%016x" % 18 in f["why"] for f in got["faults"]), got["faults"]
    other = view(traces, "--run", "%x" % 18)
    assert [pathlib.Path(row["file"]).name for row in other["rows"]] == ["night%05d.bin" % r for r in range(4)], other["rows"]
    assert b"--run" in report("ranks", traces, "--run", "99", check=64).stderr


@case
def ranks_that_are_runs_of_their_own_are_one_job(folder):
    """srun starts each rank by itself, so that each is a run."""
    for rank in range(4):
        job(folder / "job", 4, 2, "run=%d" % (rank + 1), "first=%d" % rank, "count=1")
    got = view(folder / "job")
    assert (len(got["rows"]), got["matched"], got["faults"]) == (4, 48, []), got["faults"]
    assert view(*[trace(folder / "job", r) for r in range(4)]) == got


# ---- arguments and order ----

@case
def directories_patterns_and_files_in_any_order_give_the_same(folder):
    traces = job(folder / "job", 24, 2, "straggler=7")
    wanted = report("ranks", traces, "-f", "json").stdout
    files = [trace(traces, r) for r in range(24)]
    random.Random(3).shuffle(files)
    for arguments in (files, [str(traces / "rank*.bin")], [traces, files[3]], [files[0]], [str(folder / "j?b")], [traces, traces]):
        assert report("ranks", *arguments, "-f", "json").stdout == wanted, arguments
    assert report("ranks", *files).stdout == report("ranks", traces).stdout
    assert b"no such file" in report("ranks", traces / "none*.bin", check=64).stderr.lower()
    (folder / "empty").mkdir()
    assert b"without a trace in it" in report("ranks", folder / "empty", check=64).stderr


@case
def few_descriptors_are_enough_for_many_traces(folder):
    traces = job(folder / "job", 512, 1)
    limited = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    done = subprocess.run([str(REPORT), "ranks", str(traces), "-f", "json"], capture_output=True, env=environment(), preexec_fn=limited)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert (len(got["rows"]), got["matched"], got["warnings"]) == (512, 24, []), got["warnings"]


@case
def few_descriptors_are_enough_for_many_traces_of_other_tools(folder):
    """A converted trace is an open file without a name."""
    for rank in range(80):
        event = lambda category, name, start, duration, **args: {
            "ph": "X", "cat": category, "name": name, "pid": rank, "tid": 1, "ts": start, "dur": duration, "args": args}
        events = [event("cpu_op", "train", 0, 90)]
        for number in range(4):
            events.append(event("cuda_runtime", "cudaLaunchKernel", number * 10, 1, correlation=number + 1))
            events.append(event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", number * 10 + 2, 5, correlation=number + 1, device=0, stream=20))
        (folder / ("rank%d.json" % rank)).write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": rank}, "traceEvents": events}))
    limited = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    done = subprocess.run([str(REPORT), "ranks", str(folder), "-f", "json"], capture_output=True, env=environment(), preexec_fn=limited)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert (len(got["rows"]), got["matched"], got["faults"]) == (80, 4, []), got["faults"]


@case
def ranks_after_the_last_one_are_missing_too(folder):
    """Ranks 6 and 7 of 8 have no trace. Without the size of the job nobody misses them, and of 8 of 32 no more than half."""
    for size, missing, words in (8, [6, 7], "ranks 6, 7 of 8 have no usable trace"), (0, [], None), (12, [6, 7, 8, 9, 10, 11], "ranks 6, 7, 8, 9, 10, 11 of 12 have no usable trace"), (13, [], None):
        got = view(job(folder / str(size), 8, 2, "count=6", "world=%d" % size))
        assert (got["missing_ranks"], got["world_size"]) == (missing, size or None), got["missing_ranks"]
        assert got["warnings"] == ([words] if words else []), got["warnings"]
    assert "rank 7 of 8 has no usable trace" in view(job(folder / "one", 8, 2, "count=7", "world=8"))["warnings"]


# ---- communicators ----

@case
def waits_of_each_communicator_are_those_worked_out(folder):
    """256 ranks as 8 x 4 x 8: each has three communicators."""
    sizes, steps, late = (8, 4, 8), 4, 37
    got = view(job(folder / "job", 256, steps, "groups=8x4x8", "straggler=%d" % late))
    wait, transfer, last = [0] * 256, [0] * 256, [0] * 256
    for begins, end in schedule(256, steps, late, sizes):
        ordered = sorted(begins.values())
        for rank, begin in begins.items():
            wait[rank] += ordered[-1] - begin
            transfer[rank] += end - ordered[-1]
        last[max(begins, key=begins.get)] += ordered[-1] - ordered[-2] > 4
    rows, each = rows_of(got), LAYERS * steps
    assert got["communicators"] == 256 // 8 + 256 // 4 + 256 // 8 and len(got["islands"]) == 1, got["communicators"]
    for rank in range(256):
        row = rows[rank]
        assert row["matched"] == each and row["aligned"] and row["unmatched"] == 0, row
        assert abs(row["wait_ns"] - wait[rank]) <= 12 * each and abs(row["transfer_ns"] - transfer[rank]) <= 12 * each, (row, wait[rank], transfer[rank])
        assert abs(row["last"] - last[rank]) <= 2, (row, last[rank])
    assert got["stragglers"][0]["rank"] == late and got["stragglers"][0]["path"] == [PLACE], got["stragglers"]
    assert {tuple(row["path"]) for row in got["exposed"]} >= {("nccl:all_reduce",), ("nccl:all_gather",), ("nccl:reduce_scatter",)}, got["exposed"]


@case
def exposed_time_by_place_adds_up_to_that_of_the_ranks(folder):
    got = view(job(folder / "job", 16, 3, "groups=4x2x2", "straggler=5"))
    total = sum(row["gpu_exposed_communication_ns"] for row in got["rows"])
    assert got["exposed_ns"] == total and sum(row["exposed_ns"] for row in got["exposed"]) == total > 0, (got["exposed"], total)
    assert got["exposed"] == sorted(got["exposed"], key=lambda row: -row["exposed_ns"])


@case
def ranks_without_a_common_communicator_are_islands(folder):
    """Two halves of a job, whose communicators have different names. Each is aligned by itself."""
    settings = "groups=4x2x1", "straggler=6"
    whole = view(job(folder / "whole", 8, 3, *settings))
    job(folder / "job", 8, 3, "count=4", "label=a", *settings)
    got = view(job(folder / "job", 8, 3, "first=4", "label=b", *settings))
    assert got["islands"] == [{"reference": 0, "ranks": 4}, {"reference": 4, "ranks": 4}] and len(whole["islands"]) == 1, got["islands"]
    rows, before = rows_of(got), rows_of(whole)
    assert [rows[r]["aligned"] for r in range(8)] == [True] * 4 + [False] * 4 and "shares no process group" in rows[5]["not_aligned_because"], rows[5]
    # The communicators of four ranks are compared in both; those of two are split.
    for rank in range(8):
        assert (rows[rank]["matched"], before[rank]["matched"], rows[rank]["unmatched"]) == (48, 60, 24), rows[rank]
    assert got["stragglers"][0]["rank"] == 6 and got["stragglers"][0]["path"] == [PLACE], got["stragglers"]
    assert b"2 islands that share no communicator" in b" ".join(report("ranks", folder / "job").stdout.split())


# ---- hangs ----

@case
def the_rank_that_others_wait_for_is_named_with_where_it_is(folder):
    traces = job(folder / "job", 8, 6, "hang=4", "absent=5")
    got = view(traces)
    [hang] = got["hangs"]
    assert (hang["communicator"], hang["number"], hang["waiting"]) == ("all of 0", 97, [0, 1, 2, 3, 4, 6, 7]), hang
    [absent] = hang["absent"]
    assert (absent["rank"], absent["ended"], absent["waits_elsewhere"]) == (5, False, False), absent
    assert [thread["path"] for thread in absent["threads"]] == [[PLACE, "aten::to"]] and absent["threads"][0]["open_ns"] > 0, absent
    text = " ".join(report("ranks", traces).stdout.decode().split())
    assert "7 ranks wait for 1 other in collective 97 of communicator all of 0" in text and "rank 5 has not requested it: thread 1 is in" in text, text
    assert view(job(folder / "ended", 4, 2))["hangs"] == []


@case
def of_several_communicators_the_cause_of_a_hang_comes_first(folder):
    got = view(job(folder / "job", 16, 6, "hang=4", "absent=5", "groups=4x2x2"))
    assert [a["rank"] for hang in got["hangs"] for a in hang["absent"]] == [5, 5, 5], got["hangs"]
    assert got["hangs"][0]["communicator"] == "tp of 4" and got["hangs"][0]["waiting"] == [4, 6, 7], got["hangs"][0]


@case
def a_cut_trace_is_not_taken_for_a_hanging_rank(folder):
    traces = job(folder / "job", 8, 6, "hang=4", "absent=5")
    cut_in_half(trace(traces, 2))
    [hang] = view(traces)["hangs"]
    assert [a["rank"] for a in hang["absent"]] == [5] and hang["waiting"] == [0, 1, 3, 4, 6, 7], hang


main()
