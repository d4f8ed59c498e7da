#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A job of eight ranks on the simulated NCCL, as 2 x 2 x 2 (tests/programs/nccl_job.c): its communicators, and what
the report says of it if it hangs. Jobs that hang are read while they hang and after they were killed."""
import json, subprocess, time
from harness import BUILD, case, dump, environment, main, preload, report

RANKS, STEPS = 8, 4
TP, PP, DP = 1, 2, 4  # in a rank's number


class Job:
    def __init__(self, folder, major, *hang, without=()):
        self.folder, self.ranks = folder, {}
        folder.mkdir()
        for rank in range(RANKS):
            if rank not in without:
                (folder / str(rank)).mkdir()
                self.ranks[rank] = subprocess.Popen([BUILD / "cudasim" / major / "nccl_job", str(rank), folder, str(STEPS), *map(str, hang)], cwd=folder / str(rank),
                                                    env=environment(RANK=str(rank), WORLD_SIZE=str(RANKS), LD_PRELOAD=preload()), stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def traces(self):
        return [self.folder / str(rank) / "trace.bin" for rank in self.ranks]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.ranks.values():
            process.kill()
        for process in self.ranks.values():
            process.communicate()

    def ended(self):
        said = [process.communicate() for process in self.ranks.values()]
        assert [process.returncode for process in self.ranks.values()] == [0] * len(said), said

    def hangs(self, expected):
        """Reads the traces until one of the hangs is as expected. The test's own time limit ends it."""
        while True:
            if all(path.exists() for path in self.traces()):
                done = report("ranks", *self.traces(), "-f", "json", check=None)
                got = json.loads(done.stdout)["hangs"] if done.returncode == 0 else []
                if any(expected(hang) for hang in got):
                    return got
            time.sleep(0.1)


def is_for(rank, operation, waiting):
    """The hang in which as many ranks as `waiting` wait for `rank`, which waits for nobody."""
    return lambda hang: hang["operation"] == operation and len(hang["waiting"]) == waiting and [(a["rank"], a["waits_elsewhere"]) for a in hang["absent"]] == [(rank, False)]


def only(hangs, wanted):
    [hang] = filter(wanted, hangs)
    return hang


@case
def communicators_on_several_streams_are_one_each(folder):
    """4 + 4 of two ranks, one of all, and 4 pairs: in each step all of them once. Two alternate between CUDA streams."""
    for major in "12", "13":
        with Job(folder / major, major) as job:
            job.ended()
            got = json.loads(report("ranks", *job.traces(), "-f", "json").stdout)
            rows = {row["name"]: row for row in got["collectives"]}
            # On a loaded machine, a simulated rank may end a collective before another begins it. Such a collective is not matched.
            assert got["communicators"] == 4 + 4 + 1 + 4 and STEPS * 13 - 3 <= got["matched"] <= STEPS * 13 and got["hangs"] == [], got
            assert set(rows) == {"all-reduce", "send/receive"} and sum(row["calls"] for row in rows.values()) == got["matched"], rows
            names = {call.get("communicator_name") for call in dump(job.traces()[6], {"collective"})}
            assert names == {None, "mesh_tp:6", "mesh_pp:4", "mesh_dp:2"}, names
            assert all(row["matched"] + row["unmatched"] == STEPS * 4 for row in got["rows"]), got["rows"]


def absent_of(hang):
    [absent] = hang["absent"]
    return absent["rank"], absent["ended"], absent["has_trace"], [(thread["path"], thread["nccl_call"]) for thread in absent["threads"]]


@case
def the_rank_that_is_not_in_a_collective_is_named(folder):
    with Job(folder / "job", "12", "collective", 5) as job:
        wanted = is_for(5, "ncclAllReduce", 1)
        live = job.hangs(wanted)
        job.__exit__()
        killed = json.loads(report("ranks", *job.traces(), "-f", "json").stdout)["hangs"]
        for hangs in live, killed:
            hang = only(hangs, wanted)
            assert (hang["number"], hang["waiting"], hang["from"]) == (STEPS, [5 ^ DP], None) and hang["communicator"].startswith("mesh_dp:1 (NCCL "), hang
            assert absent_of(hang) == (5, False, True, [(["step", "load"], None)]), hang
        # the others wait for ranks that wait
        assert all(absent["waits_elsewhere"] for other in hangs for absent in other["absent"] if absent["rank"] != 5), hangs
        text = " ".join(report("ranks", *job.traces()).stdout.decode().split())
        assert "1 rank waits for 1 other in collective %d (ncclAllReduce) of communicator mesh_dp:1 (NCCL" % STEPS in text, text
        assert "rank 5 has not requested it: thread" in text and "`step / load`, open for" in text, text


@case
def the_rank_that_does_not_send_or_receive_is_named(folder):
    for where, absent, waits, operation in ("send", 5, 5 ^ PP, "ncclRecv"), ("receive", 6, 6 ^ PP, "ncclSend"):
        with Job(folder / where, "12", where, absent) as job:
            wanted = is_for(absent, operation, 1)
            hang = only(job.hangs(wanted), wanted)
            assert (hang["number"], hang["waiting"], hang["from"], hang["to"]) == (STEPS, [waits], 0, 1), hang
            assert absent_of(hang) == (absent, False, True, [(["step", "load"], None)]), hang
            text = " ".join(report("ranks", *job.traces()).stdout.decode().split())
            assert "in message %d from rank 0 to rank 1 (%s) of communicator mesh_pp:%d (NCCL" % (STEPS, operation, absent & ~PP) in text, text


@case
def a_communicator_that_not_all_ranks_make_or_split_is_a_hang(folder):
    for where, operation, number in ("init", "ncclCommInitRank", 0), ("split", "ncclCommSplit", STEPS + 1):
        with Job(folder / where, "12", where, 3) as job:
            wanted = is_for(3, operation, 7)
            hang = only(job.hangs(wanted), wanted)
            assert hang["communicator"].startswith("NCCL "), hang
            assert (hang["number"], hang["waiting"], hang["absent_unknown"]) == (number, [0, 1, 2, 4, 5, 6, 7], 0), hang
            assert absent_of(hang) == (3, False, True, [(["load"], None)]), hang


@case
def a_rank_without_a_trace_keeps_the_others_from_making_a_communicator(folder):
    """Rank 1 does not run. No collective of any rank has run. The numbers of the ranks of a part of the job are not known."""
    with Job(folder / "job", "12", without=(1,)) as job:
        [hang] = [h for h in job.hangs(lambda hang: hang["waiting"] == [0]) if h["waiting"] == [0]]
        assert (hang["operation"], hang["number"], hang["absent"], hang["absent_unknown"]) == ("ncclCommInitRank", 0, [], 1), hang


main()
