#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several ranks in one report. The traces are made here, with clocks that are off by known amounts
and waits that were computed by hand."""
import csv, gzip, io, json, random
from harness import case, main, report

OFFSET_US, PPM = 5000, 20 # offset and drift of the clocks of ranks 1 and higher
BASE = 5000000000 # small enough for a double to be exact to the nanosecond


def X(category, name, start, duration, tid, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid, "ts": start, "dur": duration, "args": args}


class Rank:
    """The trace of one rank. Times are microseconds on the true clock, from which the rank's own
    clock deviates."""

    def __init__(self, number, offset=0, ppm=0):
        self.number, self.offset, self.ppm, self.events, self.correlation = number, offset, ppm, [], 0

    def own(self, time):
        return round(BASE + time + self.offset + time * self.ppm / 1e6, 3)

    def add(self, category, name, start, end, tid, **args):
        begin = self.own(start)
        self.events.append(X(category, name, begin, round(self.own(end) - begin, 3), tid, **args))

    def op(self, name, start, end):
        self.add("cpu_op", name, start, end, 1)

    def kernel(self, name, asked, start, end, stream=7):
        self.correlation += 1
        self.add("cuda_runtime", "cudaLaunchKernel", asked, asked + 1, 1, correlation=self.correlation)
        self.add("kernel", name, start, end, stream, correlation=self.correlation, device=0, stream=stream)

    def write(self, folder, numbered=True):
        path = folder / ("rank%d.json" % self.number)
        facts = {"distributedInfo": {"rank": self.number}} if numbered else {}
        path.write_text(json.dumps({"schemaVersion": 1, **facts, "traceEvents": self.events}))
        return path


def job(count, late, steps=40, skip=lambda rank, step: False, kind="AllReduce_Sum_f32_RING_LL", **clock):
    """Steps of 10 ms. Rank r begins its collective late(r, step) us after 4 ms. It ends on all
    ranks 300 us after the last begin. The lateness is CPU time in `load`."""
    ranks, jitter = [Rank(r, **(clock if r else {})) for r in range(count)], random.Random(7)
    for step in range(steps):
        base = 1000 + step * 10000 + jitter.randrange(2000) # all steps differ
        end = base + 4000 + max(late(r, step) for r in range(count)) + 300
        for rank in ranks:
            if skip(rank.number, step):
                continue
            start = base + 4000 + late(rank.number, step)
            rank.op("train", base, end + 10)
            rank.op("load", base + 100, base + 500 + late(rank.number, step))
            rank.kernel("gemm", base + 1000 + late(rank.number, step), base + 1100 + late(rank.number, step), base + 3900 + late(rank.number, step))
            rank.op("c10d::allreduce_", start - 100, start - 50)
            rank.kernel("ncclDevKernel_%s" % kind, start - 90, start, end, stream=20)
    return ranks


def view(ranks, folder, *arguments):
    return json.loads(report("ranks", *[r.write(folder) for r in ranks], "-f", "json", *arguments).stdout)


def near(value, wanted, by=3000):
    assert abs(value - wanted) <= by, (value, wanted)


@case
def clocks_are_aligned_and_waits_distinguished(folder):
    # In each of 40 collectives rank 2 begins 1,500 us after rank 0 and 1,400 us after rank 1. So rank 0 waits 1,500 us, rank 1 waits 1,400 us, each transfers
    # for 300 us.
    got = view(job(3, lambda r, step: (0, 100, 1500)[r], offset=OFFSET_US, ppm=PPM), folder)
    rows = {row["rank"]: row for row in got["rows"]}
    assert (got["matched"], got["decided"], got["undecided"], got["communicators"]) == (40, 40, 0, 1), got
    for rank in 1, 2:
        near(rows[rank]["offset_ns"], -OFFSET_US * 1000, 200) # at its first end: some ms later, 20 ppm are negligible
        near(rows[rank]["drift_ppm"], -PPM, 0.01)
        assert rows[rank]["residual_most_ns"] <= 2 and rows[rank]["aligned_by"] == 40, rows[rank]
    for rank, wait in (0, 1500), (1, 1400), (2, 0):
        near(rows[rank]["wait_ns"], wait * 1000 * 40)
        near(rows[rank]["transfer_ns"], 300 * 1000 * 40)
        assert (rows[rank]["matched"], rows[rank]["unmatched"]) == (40, 0)
    assert [rows[r]["last"] for r in range(3)] == [0, 0, 40]
    near(rows[2]["late_median_ns"], 1400000, 100)


@case
def the_straggler_is_named_with_what_it_did_meanwhile(folder):
    got = view(job(3, lambda r, step: 1500 if r == 1 and step % 8 else 0, offset=OFFSET_US, ppm=PPM), folder)
    [straggler] = got["stragglers"]
    assert (straggler["rank"], straggler["last"], straggler["of"], straggler["meanwhile"]) == (1, 35, 40, "cpu"), straggler
    assert straggler["path"] == ["train", "load"], straggler
    near(straggler["more_ns"], 1500000 * 35)
    near(straggler["late_median_ns"], 1500000, 10)
    assert got["undecided"] == 5, got
    [row] = got["collectives"]
    assert (row["name"], row["calls"], row["last"], row["last_rank"]) == ("all-reduce", 40, 35, 1) and row["path"] == ["train", "c10d::allreduce_"], row
    text = report("ranks", *[folder / ("rank%d.json" % r) for r in range(3)]).stdout.decode()
    assert "rank 1 was last in 87.5 % of 40 collectives, by 1.50 ms" in text and "`train / load`" in " ".join(text.split()), text


@case
def what_is_not_known_is_said_in_words(folder):
    # ranks 0 and 2 are never last, and no rank is last where all begin together
    for late, words in (lambda r, step: 1500 if r == 1 else 0, ["never", "1 in 40"]), (lambda r, step: 0, ["never", "undecided"]):
        text = report("ranks", *[r.write(folder) for r in job(3, late)], "--width", "400").stdout.decode()
        assert not [line for line in text.splitlines() if " - " in line or line.endswith(" -")] and words[0] in text, text
        assert words[1] in text, text


@case
def one_launch_that_is_missing_changes_no_other_collective(folder):
    late = lambda r, step: (0, 100, 1500)[r]
    whole, lacking = job(3, late), job(3, late)
    launches = [event for event in lacking[2].events if event["cat"] == "cuda_runtime"]
    lacking[2].events.remove(launches[2 * 17 + 1]) # that of the collective of step 17
    tables = []
    for ranks in whole, lacking:
        parts = folder / ("parts%d" % len(tables))
        report("part", *[r.write(folder) for r in ranks], "-o", parts, "--no-findings")
        rows = [row for path in sorted((parts / "collectives").iterdir()) for row in csv.DictReader(io.TextIOWrapper(gzip.open(path)))]
        tables.append([{key: row[key] for key in ("rank", "seq", "start_ns", "requested_ns", "launched_ns", "site")} for row in rows])
    whole, lacking = tables
    assert len(whole) == len(lacking) == 120
    differ = [(row, other) for row, other in zip(whole, lacking) if row != other]
    assert len(differ) == 1, differ
    assert (differ[0][0]["rank"], differ[0][0]["seq"]) == ("2", "17"), differ
    assert differ[0][0]["launched_ns"] and not differ[0][1]["launched_ns"], differ


@case
def a_rank_whose_gpu_has_more_to_do_is_distinguished_from_one_whose_cpu_has(folder):
    ranks = [Rank(r) for r in range(2)]
    for step in range(30):
        base = step * 10000
        for rank in ranks:
            end = base + 3000 + 2000 * rank.number
            rank.op("train", base, base + 1000)
            rank.op("aten::bmm", base + 100, base + 200)
            rank.kernel("gemm", base + 110, base + 120, end)
            rank.op("c10d::allreduce_", base + 300, base + 400)
            rank.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", base + 310, end, base + 5500, stream=20)
    [straggler] = view(ranks, folder)["stragglers"]
    assert (straggler["rank"], straggler["meanwhile"], straggler["path"]) == (1, "gpu", ["train", "aten::bmm", "gemm"]), straggler
    near(straggler["more_ns"], 2000000 * 29) # time before the first collective is not between two collectives


@case
def no_rank_is_named_that_is_last_by_chance(folder):
    got = view(job(2, lambda r, step: (step * 7 + r * 3) % 5 * 100), folder)
    assert got["stragglers"] == [] and got["matched"] == 40, got
    assert b"no rank was last more often than by chance" in report("ranks", folder / "rank0.json", folder / "rank1.json").stdout


@case
def a_trace_that_begins_later_is_matched_all_the_same(folder):
    late = lambda r, step: (step * 37 % 11) * 50 + r * 400
    got = view(job(2, late, skip=lambda r, step: r == 1 and step < 3), folder)
    rows = {row["rank"]: row for row in got["rows"]}
    assert got["matched"] == 37 and (rows[0]["unmatched"], rows[1]["unmatched"]) == (3, 0), got
    near(rows[0]["wait_ns"], 400000 * 37)
    assert abs(rows[1]["offset_ns"]) < 100 and rows[0]["unmatched_ns"] > 0


@case
def ranks_that_did_other_things_are_not_aligned_and_it_says_why(folder):
    one, other = job(1, lambda r, step: 0)[0], job(1, lambda r, step: 0, kind="AllGather_RING_LL")[0]
    other.number = 1
    got = view([one, other], folder)
    row = got["rows"][1]
    assert not row["aligned"] and "another order" in row["not_aligned_because"] and row["wait_ns"] is None and row["offset_ns"] is None, row
    assert got["matched"] == 0 and [r["unmatched"] for r in got["rows"]] == [40, 40]
    text = report("ranks", folder / "rank0.json", folder / "rank1.json").stdout.decode()
    assert "cannot be aligned" in text and "unknown" in text, text
    few = job(2, lambda r, step: 0, steps=2)
    assert "3 are needed" in view(few, folder)["rows"][1]["not_aligned_because"]


@case
def two_groups_of_ranks_are_kept_apart(folder):
    """Ranks 0 and 1, and ranks 2 and 3, reduce on CUDA stream 21. All four gather on stream 20."""
    ranks = job(4, lambda r, step: 0, kind="AllGather_RING_LL")
    for step in range(40):
        for rank in ranks:
            base = 7500 + step * 10000 + random.Random(step).randrange(1500) + rank.number // 2 * random.Random(-step).randrange(900)
            rank.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", base, base + (50 if rank.number % 2 else 10), base + 100, stream=21)
    got = view(ranks, folder)
    assert got["communicators"] == 3 and got["matched"] == 120, got
    for row in got["rows"]:
        near(row["wait_ns"], 0 if row["rank"] % 2 else 40000 * 40, 100)


@case
def process_groups_that_the_trace_names_are_believed(folder):
    """Two groups of two ranks with identical times. Only their names distinguish them."""
    def made(named):
        ranks = [Rank(r) for r in range(4)]
        for step in range(20):
            base = 1000 + step * 10000 + random.Random(step).randrange(1500)
            for rank in ranks:
                rank.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", base, base + 10 * rank.number, base + 100, stream=20)
                if named:
                    rank.events[-1]["args"].update({"Process Group Name": "3", "Process Group Ranks": "[%d, %d]" % ((0, 1) if rank.number < 2 else (2, 3))})
        return ranks
    assert view(made(False), folder)["communicators"] == 1
    got = view(made(True), folder)
    assert got["communicators"] == 2, got
    rows = got["rows"]
    # They share no collective with ranks 0 and 1: no metrics, and a warning.
    assert [row["aligned"] for row in rows] == [True, True, False, False] and rows[0]["wait_ns"] == 20 * 10000, rows
    assert "shares no" in rows[2]["not_aligned_because"], rows[2]


@case
def an_all_to_all_is_distinguished_from_sends_and_receives(folder):
    """NCCL has one kernel name for both, and the range around the launch distinguishes them. In
    each of 20 steps rank 1 begins its all-to-all 700 us late. Kernels without such a range are
    counted."""
    ranks = [Rank(r, **({"offset": OFFSET_US, "ppm": PPM} if r else {})) for r in range(2)]
    for step in range(20):
        base = 1000 + step * 10000 + random.Random(step).randrange(1500)
        for rank in ranks:
            rank.op("nccl:all_to_all", base, base + 20)
            rank.kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", base + 5, base + 100 + 700 * rank.number, base + 1000, stream=20)
    ranks[0].kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", 300000, 300010, 300020, stream=20)
    got = view(ranks, folder)
    assert got["matched"] == 20 and [row["pairs"] for row in got["rows"]] == [1, 0], got
    near(got["rows"][0]["wait_ns"], 700000 * 20, 100)
    assert got["rows"][1]["last"] == 20 and got["collectives"][0]["name"] == "all-to-all", got
    text = " ".join(report("ranks", folder / "rank0.json", folder / "rank1.json").stdout.decode().split())
    assert "1 sends and receives are not compared: the ranges around their launches do not name the peers" in text, text
    assert "process groups are not named in these traces" in text, text


@case
def what_two_ranks_send_each_other_is_compared(folder):
    """A pipeline of three: in each step rank 0 sends to 1, and 1 to 2. Rank 1 is ready to receive
    400 us after rank 0 began to send. Rank 2 waits 250 us for rank 1. An all-reduce of all three
    aligns the clocks."""
    ranks = job(3, lambda r, step: 0, offset=OFFSET_US, ppm=PPM)
    for step in range(40):
        base = 5500 + step * 10000 + random.Random(step).randrange(900) # after the all-reduce and before the next one
        for name, rank, start, end in (("nccl:send 0->1", 0, 0, 500), ("nccl:recv 1<-0", 1, 400, 500), ("nccl:send 1->2", 1, 850, 1000), ("nccl:recv 2<-1", 2, 600, 1000)):
            ranks[rank].op(name, base + start - 200, base + start - 190)
            ranks[rank].kernel("ncclDevKernel_SendRecv", base + start - 198, base + start, base + end, stream=21)
    got = view(ranks, folder)
    assert (got["matched"], got["communicators"]) == (120, 3), got
    rows = got["rows"]
    assert [row["pairs"] for row in rows] == [0, 0, 0] and [row["unmatched"] for row in rows] == [0, 0, 0], rows
    for row, wait in zip(rows, (400, 0, 250)):
        near(row["wait_ns"], wait * 1000 * 40, 100)
    assert sum(row["calls"] for row in got["collectives"] if row["name"] == "send/receive") == 80, got["collectives"]


@case
def numbers_of_collectives_say_how_far_one_trace_is_behind(folder):
    """Rank 1 lacks the first 60 of 100 collectives, more than the search tries. PyTorch's own
    sequence numbers show it."""
    def made(numbered):
        ranks = job(2, lambda r, step: 300 * r, steps=100, skip=lambda rank, step: rank == 1 and step < 60, offset=OFFSET_US, ppm=PPM)
        for rank, first in zip(ranks, (7, 67)):
            kernels = [e for e in rank.events if e["name"].startswith("nccl")]
            for number, kernel in enumerate(kernels):
                kernel["args"].update({"Process Group Name": "0", "Process Group Ranks": "[0, 1]"}, **({"Seq": first + number} if numbered else {}))
        return ranks
    assert b"do not keep a constant distance" in b" ".join(report("ranks", *[r.write(folder) for r in made(False)]).stdout.split())
    got = view(made(True), folder)
    assert got["matched"] == 40 and [row["unmatched"] for row in got["rows"]] == [60, 0], got
    near(got["rows"][0]["wait_ns"], 300000 * 40, 100)


@case
def what_cannot_be_compared_is_refused_in_a_sentence(folder):
    ranks = job(2, lambda r, step: 0)
    first, second = [r.write(folder) for r in ranks]
    assert b"give several ranks" in report("ranks", first, check=64).stderr
    ranks[1].number = 0
    (folder / "other").mkdir()
    assert b"both have rank 0" in report("ranks", first, ranks[1].write(folder / "other"), check=64).stderr
    empty = Rank(0)
    empty.op("a", 1, 2)
    assert b"these traces contain no collective" in report("ranks", empty.write(folder), check=64).stderr


@case
def one_rank_can_be_selected_and_every_format_has_the_same(folder):
    ranks = job(3, lambda r, step: 200 * r)
    paths = [r.write(folder) for r in ranks]
    [row] = view(ranks, folder, "--rank", 1)["rows"]
    near(row["wait_ns"], 200000 * 40, 100)
    table = list(csv.DictReader(io.StringIO(report("ranks", *paths, "-f", "csv").stdout.decode())))
    legend = {line.split()[0] for line in report("--legend").stdout.decode().split("\nranks (JSON, CSV)\n")[1].splitlines() if line.strip()}
    assert set(table[0]) - {"rank", "file", "aligned"} <= legend, set(table[0]) - legend
    rows = view(ranks, folder)["rows"]
    assert [(int(r["rank"]), int(r["wait_ns"]), int(r["last"])) for r in table] == [(r["rank"], r["wait_ns"], r["last"]) for r in rows]
    assert set(table[0]) - {"rank", "file", "aligned", "drift_ppm"} <= set(rows[0])
    text = report("ranks", *paths, "--ascii", "--width", 200).stdout
    assert text.isascii() and text == report("ranks", *reversed(paths), "--ascii", "--width", 200).stdout


@case
def an_offset_of_years_is_still_whole_nanoseconds(folder):
    years = view(job(2, lambda r, step: 500 * r, offset=3 * 10 ** 14), folder)["rows"][1]["offset_ns"]
    assert isinstance(years, int) and abs(years + 3 * 10 ** 17) < 10 ** 6, years


@case
def paths_of_collectives_are_distinguished_in_whatever_width(folder):
    """All of the paths end in PyTorch's own functions for collectives, which do not show the
    caller."""
    paths, ranks = ("an awaitable that somebody gave a long name: indices", "an awaitable that somebody gave a long name: offsets"), [Rank(r) for r in range(2)]
    for step in range(30):
        base = step * 10000
        for rank in ranks:
            rank.op("a step of the training loop", base, base + 2000)
            rank.op(paths[step % 2], base + 10, base + 1990)
            for depth, name in enumerate(("c10d::alltoall_base_", "record_param_comms", "nccl:all_to_all")):
                rank.op(name, base + 20 + depth, base + 1900 - depth)
            rank.kernel("ncclDevKernel_SendRecv_alltoall", base + 30, base + 100 + 50 * rank.number, base + 1000 + step)
    paths = [r.write(folder) for r in ranks]
    for width in (40, 60, 80, 120):
        text = report("ranks", *paths, "--width", width).stdout.decode()
        assert all(len(line) <= width or " " not in line.strip() for line in text.splitlines()), (width, text)
        [first, second] = [line for line in text.split(" collective\n")[1].splitlines()[:2]]
        assert first.split(" in ")[-1] != second.split(" in ")[-1] and "nccl:" not in first + second and max(len(first), len(second)) <= width, (width, first, second)


@case
def bus_bandwidth_is_that_of_the_transfer_without_the_wait(folder):
    """An all-reduce of 3,000,000 bytes on three ranks, which transfers in 300 us: 10 GB/s, on the bus 2 * 2/3 of it."""
    def described(rank, **facts):
        for event in list(rank.events):
            if event["name"] == "c10d::allreduce_":
                rank.events.append({**event, "name": "record_param_comms", "ts": event["ts"] + 1, "dur": event["dur"] - 2, "args": facts})
        return rank
    sizes = {"Collective name": "allreduce", "In msg nelems": 750000, "Out msg nelems": 750000, "dtype": "Float", "Group size": 3}
    for facts, message, bus, title in (sizes, 1e10, 4e10 / 3, "bus rate"), ({**sizes, "Group size": 0}, 1e10, None, " rate"), ({}, None, None, None):
        ranks = [described(r, **facts) for r in job(3, lambda r, step: (0, 100, 1500)[r], offset=OFFSET_US, ppm=PPM)]
        [row] = view(ranks, folder)["collectives"]
        for got, wanted in (row["message_bytes_per_s"], message), (row["bus_bytes_per_s"], bus):
            assert (got is None) == (wanted is None) and abs((got or 0) - (wanted or 0)) <= 2e-4 * (wanted or 1), (row, wanted)
        text = report("ranks", *[folder / ("rank%d.json" % r) for r in range(3)], "--width", 80).stdout.decode()
        assert (title or "transfer") in text and ("13.33 GB/s" in text) == bool(bus) and (" rate" in text) == bool(title), text


@case
def files_without_a_number_count_in_their_order(folder):
    ranks = job(2, lambda r, step: 300 * r)
    paths = [r.write(folder, numbered=False) for r in ranks]
    got = json.loads(report("ranks", *paths, "-f", "json").stdout)
    assert [(r["rank"], r["file"], r["last"]) for r in got["rows"]] == [(0, str(paths[0]), 0), (1, str(paths[1]), 40)]
    assert b"numbered in file order" in b" ".join(report("ranks", *paths).stdout.split())


@case
def of_many_clocks_the_worst_is_reported(folder):
    text = report("ranks", *[r.write(folder) for r in job(11, lambda r, step: 100 * r, offset=OFFSET_US)]).stdout.decode()
    assert text.count("clock     ") == 8 and "`train / load`" in " ".join(text.split()) and "2 more, residual" in text and "1 communicator;" in text, text


@case
def names_of_strangers_do_not_reach_the_terminal(folder):
    ranks = job(2, lambda r, step: 900 * r)
    for rank in ranks:
        for event in rank.events:
            event["name"] = event["name"].replace("load", "lo\x1b[31mad\n")
    text = report("ranks", *[r.write(folder) for r in ranks]).stdout
    assert b"\x1b" not in text and b"lo" in text


@case
def the_first_screen_points_there(folder):
    paths = [r.write(folder) for r in job(2, lambda r, step: 0)]
    assert ("pperf-report ranks %s %s" % tuple(paths)) in " ".join(report(*paths, "--width", 400).stdout.decode().split())
    assert b"pperf-report ranks" not in report(paths[0]).stdout


main()
