#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""diagnose on traces of real GPUs (PPERF_TEST_DATA): the known problem of each trace is found,
every finding has evidence, each suggested command works, and --brief is brief."""
import collections, functools, gzip, json, math, os, pathlib, re, shlex, subprocess, sys

from harness import REPORT, Skip, case, environment, main


def traces():
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder:
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    folder = pathlib.Path(folder)
    return sorted([*folder.glob("kineto/*.json*"), *folder.glob("verdicts/*.json*"), *folder.glob("nsys/*.sqlite")])


def report(*arguments):
    run = subprocess.run([str(REPORT), *map(str, arguments)], capture_output=True, text=True, env=environment(), timeout=120)
    assert run.returncode == 0, (arguments, run.returncode, run.stderr)
    return run.stdout


@functools.cache
def rows_of(trace):
    return json.loads(report("diagnose", trace, "-f", "json"))["rows"]


def said(trace, kind):
    return [row["name"] for row in rows_of(trace) if row["kind"] == kind]


def named(part):
    found = [trace for trace in traces() if part in trace.name]
    assert len(found) == 1, (part, found)
    return found[0]


@case
def what_is_the_matter_is_found(folder):
    # ResNet-50 that loads its data on the training thread: five steps of about 60 ms
    rows = {row["name"]: row for row in rows_of(named("resnet50_num_workers_0"))}
    data, classes = rows["data-loading"], {row["name"]: row["impact_ns"] for row in rows.values() if row["kind"] == "class"}
    assert data["kind"] == "finding" and data["impact_ns"] > 350_000_000 and data["path"][-1].startswith("enumerate(DataLoader)#_SingleProcess"), data
    # the finding has the figure of the verdict, and no other finding has that time again
    assert data["impact_ns"] == classes["data loading"] and data["impact_of"] == "the steady-state steps", (data, classes)
    assert rows["launch-bound"]["kind"] == "finding", rows["launch-bound"]
    # BERT, one sequence at a time on an H100
    assert said(named("gaunernst_bert-small"), "finding")[0] == "launch-bound"
    # CUDA graphs whose kernels are not in the file: why the GPU was idle is unknown, and nobody is blamed
    rows = {row["name"]: row for row in rows_of(named("negative_queue_length"))}
    assert rows["launch-bound"]["kind"] == "not checked" and "CUDA graphs" in rows["launch-bound"]["why"], rows["launch-bound"]
    assert rows["unexplained-wait"]["kind"] == "clear", rows["unexplained-wait"]
    # all of the decoding runs in CUDA graphs
    assert said(named("graph_execution"), "finding") == [] and said(named("graph_execution"), "verdict") == ["compute"]
    # a synchronising copy of an index that is on the CPU, and results copied to pageable memory: the advice is about these
    rows = {row["name"]: row for row in rows_of(named("dlrm_worker1"))}
    assert "The index is in pageable memory of the CPU" in rows["blocking-calls"]["next"] and ".item()" not in rows["blocking-calls"]["next"], rows["blocking-calls"]
    assert rows["pageable-copies"]["kind"] == "note" and "10 of 15" in rows["pageable-copies"]["evidence"], rows["pageable-copies"]
    # 60 copies to pageable memory block the host, 24 of them in aten::item, where pinned memory does not help
    rows = {row["name"]: row for row in rows_of(named("trace_diff~control~"))}
    blocking = rows["blocking-calls"]
    assert "in calls that wait for a copy, or before it for its stream: 60 calls, 75.66" in blocking["evidence"] and "such as .item(): 24 calls, 36.80" in blocking["evidence"], blocking
    assert blocking["next"].startswith("The host reads values of tensors (.item()") and "In the other 36 calls, the host waits for copies from the GPU to pageable memory" in blocking["next"], blocking
    assert "the host waits for 39.06" in rows["pageable-copies"]["finding"] and ".item()" not in rows["pageable-copies"]["next"], rows["pageable-copies"]
    # copies of 262 MB from pageable memory, and a grid of two blocks on 108 multiprocessors
    found = said(named("saxpy-mpi-cuda_nsys_perlmutter0.sqlite"), "finding")
    assert "pageable-copies" in found and "small-grids" in found, found


@case
def every_finding_has_what_it_takes(folder):
    for trace in traces():
        rows = [row for row in rows_of(trace) if row["kind"] not in ("verdict", "class")]
        assert len({row["name"] for row in rows}) == len(rows) == 44, trace
        for row in rows:
            if row["kind"] == "not checked":
                assert row["why"], (trace, row)
            if row["kind"] in ("finding", "note"):
                assert all(row[key] for key in ("finding", "evidence", "confidence", "why", "next", "command", "count")), (trace, row)
            if row["kind"] == "finding":
                assert (row.get("impact_ns") or row["impact_bytes"]) > 0 and row["bound"] in ("measured", "upper bound", "upper bound together", "concerned"), (trace, row)
        # the profiler's own cost comes after what was found about the program
        timed = [row for row in rows if row["kind"] == "finding" and "impact_ns" in row]
        gains = [row.get("gain_ns", row["impact_ns"]) for row in timed]
        shares = {row["name"]: row["impact_share"] * gain / row["impact_ns"] for row, gain in zip(timed, gains)}
        # nor does it compete with what is gained only if the host does not need what it waits for
        uncertain = [row["name"] for row in rows if row["name"] == "blocking-calls" and row.get("confidence") == "low"]
        large = [gain for gain, (name, share) in zip(gains, shares.items()) if share >= 0.01 and name not in ("profiler-cost", *uncertain)]
        assert large == sorted(large, reverse=True), trace
        # what gains less than 1 % of the run comes after everything else that was found
        kinds = [row["kind"] if row["kind"] == "note" or shares.get(row["name"], 1) >= 0.01 else "minor"
                 for row in rows if row["kind"] in ("finding", "note")]
        assert kinds == sorted(kinds, key=["finding", "note", "minor"].index), (trace, kinds)


@case
def the_place_of_a_finding_is_the_one_with_the_largest_sum(folder):
    # weight gradients have more FP32 kernels than any other place, if each place has all of its kernels
    row = [row for row in rows_of(named("resnet50_num_workers_0")) if row["name"] == "tensor-cores-unused"][0]
    assert row["path"][-1] == "aten::cudnn_convolution_backward_weight" and 0.3 < row["share"] < 0.4, row
    # idle time of all layers alike: the share of its largest place says so, and what they have in common is named
    row = [row for row in rows_of(named("gaunernst_bert-small")) if row["name"] == "launch-bound"][0]
    assert 0.2 < row["share"] < 0.3 and "71.7 % of this time is below BertLayer.*." in row["finding"], row
    assert "The largest part (21 %)" in " ".join(report(named("gaunernst_bert-small")).split())
    # by hand: the step has 3.07 ms of idle time, 2.89 ms of it before the first kernel and after the last
    row = [row for row in rows_of(named("cuda_event_sync~event_sync")) if row["name"] == "host-bound"][0]
    assert row["share"] < 0.05 and "The largest part (94.2 %) is in no call path" in row["finding"], row
    screen = " ".join(report(named("cuda_event_sync~event_sync")).split())
    assert "Of the call paths, the largest part (3 %) is in `ProfilerStep#*`" in screen and " The largest part (3 %)" not in screen, screen


@case
def the_share_of_a_place_is_one_of_the_cost(folder):
    for trace in traces():
        for row in [row for row in rows_of(trace) if row["kind"] == "finding" and "share" in row]:
            # what tensor cores would save is modelled: the place is that of the kernels, and it says so
            assert (row["share_of_ns"] > row["impact_ns"] if row.get("share_of") == "of these kernels" else row["share_of_ns"] == row["impact_ns"]) and row["share"] <= 1, (trace, row)
    # some of its communication was launched before the trace, outside any step: the cost has none of it, nor has the place
    trace = named("mi300~resnet")
    row = [row for row in rows_of(trace) if row["name"] == "exposed-communication"][0]
    assert row["share"] > 0.99 and row["path"][-1] == "nccl:all_reduce" and "nccl:all_reduce; 100 % of it" in report("diagnose", trace, "--width", "300"), row


@case
def a_blocked_host_costs_the_idle_time_until_it_is_blocked_again(folder):
    # 60 copies of a few bytes to pageable memory block the host for 75.66 ms. The next copy waits for the same work, so that one alone costs little
    row = [row for row in rows_of(named("trace_diff~control")) if row["name"] == "blocking-calls"][0]
    assert row["kind"] == "finding" and "60 calls, 75.66" in row["evidence"] and "memcpy DtoH" in row["evidence"], row
    assert row["bound"] == "upper bound together" and 57e6 < row["impact_ns"] < 58e6 and row["same_idle_as"] == "launch-bound", row
    assert "To remove those at one call path saves little, because the host then waits at the next one." in row["finding"], row
    screen = report("diagnose", named("trace_diff~control"), "--width", "300")
    assert re.search(r"2\. blocking-calls: up to 57\.\d\d.ms \(12\.3 % of the steady-state steps\) if all of them are removed", screen), screen
    # here the index of one operator is copied from the CPU, and the host waits 6.56 ms for communication: 1.30 ms of idle time follow
    row = [row for row in rows_of(named("dlrm_worker1")) if row["name"] == "blocking-calls"][0]
    assert row["kind"] == "finding" and 1.3e6 < row["impact_ns"] < 1.6e6 and row["same_idle_as"] == "launch-bound", row
    assert "aten::index" in row["path"] and row["share"] > 0.8 and "SendRecv" in row["evidence"] and row["path"][-1] == "aten::copy_", row
    # the host waits for a kernel and a copy of its result, and then computes: whether it can do that before is not known
    rows = rows_of(named("saxpy-mpi-cuda_nsys_perlmutter0.sqlite"))
    row = [row for row in rows if row["name"] == "blocking-calls"][0]
    assert row["confidence"] == "low" and row["same_idle_as"] == "host-bound" and "saxpy for 88.5" in row["evidence"], row
    order = [one["name"] for one in rows if one["kind"] == "finding"]
    assert order.index("small-grids") < order.index("blocking-calls"), order
    # a host that is blocked once, at the end, costs nothing
    assert "blocking-calls" in said(named("resnet50_num_workers_0"), "clear")


@case
def the_verdict_begins_with_the_first_finding(folder):
    began = 0
    for trace in traces():
        rows = rows_of(trace)
        for begin in re.findall("Begin with the finding ([a-z-]+)", " ".join(row.get("next") or "" for row in rows if row["kind"] == "verdict")):
            assert begin == [row["name"] for row in rows if row["kind"] == "finding"][0], (trace, begin)
            began += 1
    assert began >= 2
    # idle time before the first operation of a step is the host's as well: the finding is that of the verdict
    rows = rows_of(named("resnet50_num_workers_4"))
    assert "The run is limited by the host: it has 56.4 % of the critical path" in rows[0]["finding"] and "faster kernels at most 5.3 %." in rows[0]["finding"], rows[0]
    # its first and last step, in which the recording begins and ends, are no steady state
    row = [row for row in rows if row["name"] == "launch-bound"][0]
    assert row["kind"] == "finding" and 0.14 < row["impact_share"] < 0.15 and "Begin with the finding launch-bound: up to 69.29" in rows[0]["next"], row
    # here idle time costs more than exposed communication, which has more time but less of the critical path
    row = [row for row in rows_of(named("dlrm_worker3")) if row["kind"] == "verdict"][0]
    assert row["name"] == "communication" and "Begin with the finding launch-bound: up to 6.93" in row["next"], row


@case
def the_gain_of_communication_is_that_of_the_critical_path(folder):
    for part, low, high in (("trace_diff~control", 34.1e6, 34.3e6), ("mi300~resnet", 26.8e6, 35.1e6)):
        row = [row for row in rows_of(named(part)) if row["name"] == "exposed-communication"][0]
        path = json.loads(report("critical-path", named(part), "-f", "json"))["rows"]
        gain, = [one["gain_ns"] for one in path if one["kind"] == "work" and "nccl" in one["name"] and one.get("gain_ns")]
        assert low < row["gain_ns"] < high and abs(row["gain_ns"] - gain) < gain / 50, (row, gain)
        assert abs(row["gain_share"] - row["gain_ns"] * row["impact_share"] / row["impact_ns"]) < 1e-6, row


@case
def a_class_of_the_verdict_is_found_or_below_the_threshold(folder):
    trace = named("resnet50_num_workers_0")
    row = [row for row in rows_of(trace) if row["name"] == "launch-bound"][0]
    # below the threshold of its rule, but larger than the finding tensor-cores-unused
    assert row["kind"] == "finding" and 0.093 < row["impact_share"] < 0.095, row
    assert "\n2. launch-bound: up to 98.79" in report("diagnose", trace, "--width", "300")
    below = re.search("(?m)^below threshold (.*)", report("diagnose", named("event_sync_multi_stream"), "--width", "300"))
    assert below and "steady-allocation 408.00" in below[1], below


@case
def what_is_measured_below_a_threshold_is_shown(folder):
    """A wait on the critical path in which the GPU runs other work is no idle time, but it is not nothing."""
    seen = 0
    for trace in traces():
        rows = {row["name"]: row for row in rows_of(trace) if row["kind"] == "clear"}
        path = json.loads(report("critical-path", trace, "-f", "json"))["rows"]
        kind = "steady" if any(row["kind"] == "steady" for row in path) else "path"
        part = "steady part" if kind == "steady" else "part"
        whole = sum(row["path_ns"] for row in path if row["kind"] == kind)
        for name, rule in ("event wait", "event-wait"), ("unexplained wait", "unexplained-wait"):
            ns = sum(row["path_ns"] for row in path if row["kind"] == part and row["name"] == name)
            if rule in rows and ns >= whole / 1000 and rows[rule].get("same_idle_as") is None:
                assert rows[rule]["impact_ns"] >= ns, (trace, rows[rule], ns, whole)
                seen += ns > 10_000_000
    assert seen >= 1
    assert "unexplained-wait 13.13 ms (2.8 % of the critical path)" in report("diagnose", named("trace_diff~control"), "--width", "300")


@case
def shorter_gpu_work_gains_no_more_than_its_critical_path(folder):
    # on the H100, the host has nearly all of the critical path: grids are no matter for the first screen
    trace = named("gaunernst_bert-small")
    row = [row for row in rows_of(trace) if row["name"] == "small-grids"][0]
    assert row["gain_ns"] < row["impact_ns"] and "the run gets shorter hardly at all" in row["evidence"], row
    assert "small-grids" not in report(trace) and "launch-bound" in report(trace)
    # not in --brief either, which lists its name
    brief = report("diagnose", trace, "--brief")
    assert "no gain: small-grids\n" in brief and "\nsmall-grids: " not in brief and "(0.0 %" not in brief, brief
    brief = json.loads(report("diagnose", trace, "--brief", "-f", "json"))
    assert brief["no_gain"] == ["small-grids"] and "small-grids" not in [row["rule"] for row in brief["findings"]], brief
    # while the host fetches data, faster kernels shorten the rest of the path only
    row = [row for row in rows_of(named("resnet50_num_workers_0")) if row["name"] == "tensor-cores-unused"][0]
    assert 10 * row["gain_ns"] < row["impact_ns"] and re.search("369.91.ms of 603.56.ms of GPU time", row["evidence"]) and "because the host has 93.7 % of the critical path" in row["evidence"] and "wgrad_alg0_engine" in row["evidence"], row
    # a kernel of two blocks whose end the host waits for is on it
    row = [row for row in rows_of(named("saxpy-mpi-cuda_nsys_perlmutter0.sqlite")) if row["name"] == "small-grids"][0]
    assert row["gain_ns"] == row["impact_ns"] and "Launch at least 108 blocks" in row["next"], row


@case
def the_first_screen_sends_to_what_proves_its_verdict(folder):
    for part, views in {"gaunernst_bert-small": ["idle", "diagnose", "critical-path"], "dlrm_worker1": ["overlap", "diagnose", "critical-path"],
        "torch_compile_triton": ["categories", "diagnose", "critical-path"]}.items():
        first, others = re.search(r"\nnext +pperf-report ([\w-]+) .*\n +then, with the same trace: (.*)\n", report(named(part), "--width", "300")).groups()
        assert [first, *others.split(", ")] == views, (part, first, others)


@case
def a_rank_that_is_late_is_named(folder):
    ranks = [trace for trace in traces() if "dlrm_worker" in trace.name]
    assert len(ranks) == 4, ranks
    row = [row for row in json.loads(report("diagnose", *ranks, "-f", "json"))["rows"] if row["name"] == "collective-waits"][0]
    # rank 1 has the most GPU time and is shown; it waits for rank 2 (as the view ranks says)
    assert row["kind"] == "finding" and "rank 1 wait for other ranks" in row["finding"] and "rank 2" in row["next"], row


@case
def every_command_works(folder):
    done = set()
    for trace in traces():
        for row in rows_of(trace):
            # one command of each rule, and every command that names a node
            if row.get("command") and (row["name"] not in done or "--focus" in row["command"] or "distribution" in row["command"]):
                done.add(row["name"])
                words = shlex.split(row["command"])
                assert words[0] == "pperf-report" and report(*words[1:]), row


@case
def a_copy_and_its_own_synchronisation_are_one_call(folder):
    row = [row for row in rows_of(named("trace_diff~control")) if row["name"] == "blocking-calls"][0]
    # by hand: 60 copies to the host with 60 waits of 3 us each; 24 of them are in aten::item
    assert row["count"] == 60 and "such as .item(): 24 calls" in row["evidence"] and "In the other 36 calls" in row["next"], row
    assert re.search(r"; 2\d of the calls have 95 % of this time", row["evidence"]), row


@case
def a_copy_from_pageable_memory_waits_for_its_stream(folder):
    rows = {row["name"]: row for row in rows_of(named("resnet50_num_workers_4")) if row["kind"] != "class"}
    # by hand: the four copies of steps 17 to 20 start 5.83, 6.42, 6.44 and 7.28 ms into their calls, as the kernels before them end
    blocked, cores = rows["blocking-calls"], rows["tensor-cores-unused"]
    assert blocked["path"][-2:] == ["aten::to", "aten::copy_"] and blocked["evidence"].startswith("the host waits for 37.") and "pageable memory to the GPU" in blocked["next"], blocked
    assert 23_000_000 < cores["gain_ns"] < 26_000_000 and "faster kernels at most 5.3 %" in rows["compute"]["finding"], (cores, rows["compute"])


@case
def little_that_can_be_gained_is_no_finding(folder):
    rows = {row["name"]: row for row in rows_of(named("Qwen_Qwen1.5")) if row["kind"] != "class"}
    # most calls set attributes, and where the host asks it is ahead of the GPU; 541 MB are 0.7 % of the GPU's 80 GB
    assert rows["attribute-queries"]["kind"] == "clear" and rows["memory-fragmentation"]["kind"] == "note", rows
    traces()
    tiny = [row for row in rows_of(named("resnet_act_checkpoint")) if row["name"] == "tiny-calls"][0]
    # by hand: 2.58 of 3.92 ms are beside communication
    assert tiny["gain_ns"] < tiny["impact_ns"] / 2 and tiny["confidence"] == "medium" and "upper bound" in tiny["why"], tiny
    assert "2 of 3 findings are shown; see them all: diagnose" in report(named("trace_diff~control")), report(named("trace_diff~control"))


@case
def a_verdict_about_kernels_says_what_limits_them_and_what_to_do(folder):
    qwen = [row for row in rows_of(named("Qwen_Qwen1.5")) if row["kind"] == "verdict"][0]
    # by hand: of 45.65 ms, 6.26 ms reach 60 % of the memory bandwidth and 8.85 ms 60 % of the peak rate; 13.32 ms reach less; the rest is in no model
    assert qwen["name"] == "compute" and "at least 13.7 % is limited by memory, 19.4 % by arithmetic, 29.2 % is in operators that reach less than 60 % of either roof, and for 37.7 % the limit is not known" in qwen["finding"], qwen
    # all that a model knows is far below both roofs
    triton = [row for row in rows_of(named("torch_compile_triton")) if row["kind"] == "verdict"][0]
    assert "of all GPU time 93.3 % is in operators that reach less than 60 % of either roof" in triton["finding"] and "limited by" not in triton["finding"], triton
    assert qwen["next"].startswith("Fuse elementwise operations, copies, norms"), qwen
    decode = [row for row in rows_of(named("graph_execution")) if row["kind"] == "verdict"][0]
    assert "limit" not in decode["finding"] and decode["next"].startswith("Make matrix products, convolutions and attention (8"), decode


@case
def collectives_are_divided_by_the_size_of_their_messages(folder):
    # the last bucket of a step is exposed, the other is hidden in part; all sizes of a node are its sized collectives
    traces()
    trace = pathlib.Path(os.environ["PPERF_TEST_DATA"], "verdicts", "tl__mi300~resnet_act_checkpoint.json.gz")
    rows = json.loads(report("overlap", trace, "-f", "json"))["rows"]
    sizes = {row["name"]: row for row in rows if row["kind"] == "size"}
    large, small = sizes["17.63 MB each"], sizes["5.75 MB each"]
    assert large["calls"] == small["calls"] == 3 and large["exposed_ns"] == large["busy_ns"] and small["exposed_ns"] < small["busy_ns"] / 2, (large, small)
    assert 8.6e6 < large["min_ns"] <= large["p50_ns"] <= large["max_ns"] < 9.3e6, large
    places = {row["id"]: row for row in rows if row["kind"] == "place"}
    del sizes["size not recorded"]
    for key in ("calls", "bytes"):
        assert sum(row[key] for row in sizes.values()) == sum(places[number][key] for number in {row["parent"] for row in sizes.values()}), key
    row = [row for row in rows_of(trace) if row["name"] == "exposed-communication"][0]
    assert re.search(r"exposed-communication, saves at most 32.92.ms \(58.3 % of the steady-state steps\) of run time, and 35.09.ms of GPU time:", " ".join(report(trace).split())), report(trace)
    assert "3 messages of 17.63 MB each: 8.66 ms to 9.21 ms (algorithm bandwidth 1.97 GB/s, bus bandwidth 3.45 GB/s), 100 % exposed" in row["evidence"], row
    # through two sizes there always is a line, which is said
    assert "a line through only two sizes" in row["evidence"] and "5.69 ms of each call does not depend on the size" in row["evidence"], row
    assert "transfer at 5.44 GB/s" in row["evidence"] and "the host has" not in row["evidence"], row
    # the largest messages begin 0.02 ms after the smaller ones end: buckets of other sizes end no sooner
    assert "make the last bucket smaller" not in row["next"] and "begin when the collective before them ends" in row["next"], row
    assert "Compare the ranks first" in row["next"] and "fewer calls" in row["next"], row


@case
def all_messages_compete_for_the_most_exposed(folder):
    trace = named("negative_queue_length")
    row = [row for row in rows_of(trace) if row["name"] == "exposed-communication"][0]
    # by hand: 447,923,396 floats each, described on the annotation `nccl:all_reduce` only
    assert "5 messages of 1.79 GB each: 22.00 ms to 25.95 ms (algorithm bandwidth 72.79 GB/s)" in row["evidence"], row
    # other operations have the same kernel: they are not in one line with these
    assert "all-reduce, 10 calls of 2 sizes (1.47 MB to 1.79 GB): most of the time is transfer" in row["evidence"], row
    rows = json.loads(report("overlap", trace, "-f", "json"))["rows"]
    names = {(row["name"], row["calls"]) for row in rows if row["kind"] == "size"}
    assert ("size not recorded", 5) in names and ("2.62 MB", 1) in names, names


@case
def rates_of_collectives_are_derived_from_the_file(folder):
    """Bytes of the larger tensor of the operator or annotation around the launch, by the kernels' time; the bus bandwidth by the formulas of nccl-tests."""
    trace = named("negative_queue_length")
    with gzip.open(trace) as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    tids = {event["args"]["correlation"]: event for event in events if event.get("cat") == "cuda_runtime" and "correlation" in event["args"]}
    around = [event for event in events if event["name"].startswith(("nccl:", "c10d::")) and event.get("cat") in ("cpu_op", "user_annotation")]
    sums = collections.defaultdict(lambda: [0, 0])
    for kernel in [event for event in events if event.get("cat") == "kernel" and "nccl" in event["name"]]:
        call = tids.get(kernel["args"]["correlation"])
        ops = [op for op in around if call and op["tid"] == call["tid"] and op["ts"] <= call["ts"] < op["ts"] + op["dur"]]
        tensors = [math.prod(dims) * {"float": 4, "long": 8, "int": 4}[kind] for op in ops for dims, kind in list(zip(op["args"]["Input Dims"], op["args"]["Input type"]))[:2] if dims]
        name = [op["name"] for op in ops if op["name"].startswith("nccl:")]
        if tensors and name:
            sums[name[0], max(tensors)][0] += kernel["dur"]
            sums[name[0], max(tensors)][1] += 1
    large = sums["nccl:all_reduce", 447923396 * 4]
    assert large[1] == 5 and f"{5 * 447923396 * 4 / large[0] / 1e3:.2f}" == "72.79", large
    rows = {row["id"]: row for row in json.loads(report("overlap", trace, "-f", "json"))["rows"]}
    sizes = [row for row in rows.values() if row["kind"] == "size" and row.get("bytes")]
    checked = 0
    for row in sizes:
        name, each = rows[row["parent"]]["name"].rpartition(" / ")[2], row["bytes"] // row["calls"]
        took, calls = sums[name, each]
        if calls != row["calls"]:
            continue  # the same size at several call paths
        checked += 1
        assert abs(row["message_bytes_per_s"] - row["bytes"] / took * 1e6) <= 1e-6 * row["message_bytes_per_s"], (row, took)
        # 65,536 rows come out where 8,192 go in: 8 ranks; for other operations the file does not say
        if name in ("nccl:_all_gather_base", "nccl:_reduce_scatter_base"):
            assert abs(row["bus_bytes_per_s"] - 7 / 8 * row["message_bytes_per_s"]) <= 1, row
        else:
            assert row.get("bus_bytes_per_s") is None, row
    assert checked >= 6, (checked, len(sizes))


@case
def findings_refer_only_to_what_is_printed(folder):
    for trace in traces():
        rows = rows_of(trace)
        printed = {row["name"] for row in rows if row["kind"] == "finding"}
        for row in rows:
            for name in re.findall(r"(?:the finding|\(finding) ([a-z-]+)", row.get("finding") or ""):
                assert name in printed, (trace, row["name"], name)
    note = [row for row in rows_of(named("dlrm_worker1")) if row["name"] == "pageable-copies"][0]
    assert note["finding"].endswith("See the finding blocking-calls."), note


@case
def the_same_idle_time_takes_one_place_of_the_first_screen(folder):
    screen = report(named("trace_diff~control"))
    assert "exposed-communication, saves" in screen and "blocking-calls" not in screen, screen
    for trace in traces():
        assert "This is the same idle time" not in " ".join(report(trace).split()), trace


@case
def advice_that_is_followed_is_not_given(folder):
    launch = [row for row in rows_of(named("nccl_data")) if row["name"] == "launch-bound"][0]
    assert "CUDA graphs" in launch["next"] and "foreach" not in launch["next"], launch


@case
def fragmentation_is_no_advice_without_segments(folder):
    """Files of torch.profiler have what is reserved and in tensors, and not in which segments: nothing is known to be fragmented."""
    notes = {}
    for trace in traces():
        for row in rows_of(trace):
            if row["name"] == "memory-fragmentation" and row["kind"] in ("finding", "note"):
                notes[trace.name] = row
    for row in notes.values():
        assert row["kind"] == "note" and "expandable_segments" not in row["next"] and "Record the segments" in row["next"] and "has no segments" in row["why"], row
    assert any("Qwen" in name for name in notes), notes.keys()


@case
def a_precision_that_products_have_is_not_advised(folder):
    # the operands of the products are c10::BFloat16
    compiled = [row for row in rows_of(named("torch_compile_triton")) if row["kind"] == "verdict"][0]
    assert "a lower precision (fp8, quantised weights)" in compiled["next"], compiled
    # _matmul_ogs_NNT_bf16xbf16xmxfp4 has 65.6 % of all GPU time: its weights are quantised
    decode = [row for row in rows_of(named("graph_execution")) if row["kind"] == "verdict"][0]
    assert "precision" not in decode["next"] and "a larger batch" in decode["next"], decode


@case
def too_little_gpu_work_is_judged_by_no_class(folder):
    """Where there is no verdict, no class that would be the verdict is below a threshold, and the first screen says where the host's time went."""
    seen = 0
    for trace in traces():
        rows = rows_of(trace)
        if "unjudged" not in [row["name"] for row in rows if row["kind"] == "verdict"]:
            continue
        seen += 1
        assert all(row.get("impact_share") is None or row["impact_share"] < 0.3 for row in rows if row["kind"] == "clear"), rows
        assert "\ncpu time  " in report(trace, "--width", "300"), trace
    assert seen >= 2, seen
    captured = [row for row in rows_of(named("bs_32_rank0")) if row["kind"] == "verdict"][0]
    assert "544 calls were captured in a CUDA graph" in captured["finding"], captured


@case
def ranges_of_several_threads_cost_no_more_than_the_run(folder):
    # two threads are in gloo:all_reduce for 2.14 s together, of a run of 1.28 s
    row = [row for row in rows_of(named("rank-34")) if row["name"] == "dominant-event"][0]
    assert row["impact_share"] <= 1 and row["impact_of"] == "the run" and row["impact_ns"] < 1_290_000_000, row


@case
def an_unknown_verdict_says_what_it_excludes_and_what_to_record(folder):
    rows = {row["name"]: row for row in rows_of(named("negative_queue_length")) if row["kind"] != "class"}
    verdict = rows["unknown"]
    # by hand: 760 of 1,074 ms in calls that wait
    assert "For 70.9 % of the time it is not the host" in verdict["finding"], verdict
    assert "70 launches of CUDA graphs" in verdict["next"] and "--cuda-graph-trace=node" in verdict["next"], verdict
    # one split: 39.6 + 22.7 = 62.3
    assert "unknown 62.3 % (idle, cause unknown 39.6 %, busy or idle 22.7 %)" in verdict["evidence"], verdict
    assert "idle for 39.6 % of the steady-state steps for an unknown cause" in rows["launch-bound"]["why"], rows["launch-bound"]


@case
def words_are_those_of_the_views(folder):
    saxpy = named("saxpy-mpi-cuda_nsys_perlmutter0.sqlite")
    screen = " ".join(report(saxpy).split())
    # the idle time is in MPI and in the program's own code: only the launch after it is in no range
    assert "After most of it (100 %) the next operation is launched in no range." in screen, screen
    assert "pageable-copies, saves a part of 284.70" in screen and "concerns" not in screen, screen
    control = report("diagnose", named("trace_diff~control"), "--width", "400")
    # by hand: one of 8,568 launches takes 1.14 ms, all others 0.04 ms or less; the GPU is idle for 0.68 ms in it
    assert "late launches 14.3 % (launch-bound 8.5 %, host-bound 2.9 %, launch latency 2.8 %, before the first operation or after the last 0.1 %)" in control and "other host time 57.6 %" in control, control
    # its step begins with data loading, before the critical path begins
    resnet = report("diagnose", named("resnet50_num_workers_0"), "--width", "400")
    assert re.search(r"critical path: host [0-9.]+ % \([^)]*\), GPU work [0-9.]+ %[^;]* of 980\.06.ms", resnet), resnet


@case
def a_place_is_named_by_its_module_and_operator(folder):
    text = " ".join(report("diagnose", named("trace_diff~control")).split())
    assert "where backward of aten::linear in ## forward ## / ## forward:over_arch ##, at aten::mm; 22 % of it" in text, text
    assert "is in `backward of aten::linear in ## forward ## / ## forward:over_arch ##, at aten::mm`" in " ".join(report(named("trace_diff~control")).split())
    text = " ".join(report("diagnose", named("resnet_act_checkpoint")).split())
    assert re.search(r"where backward of aten::conv2d in BasicBlock\.\* / Conv2d\.\*, at ", text), text
    # the whole path is in JSON
    row = [row for row in rows_of(named("trace_diff~control")) if row["name"] == "launch-bound"][0]
    assert row["path"][-3:] == ["aten::linear (bwd)", "AddmmBackward0", "aten::mm"], row


@case
def communication_that_hides_the_host_is_reconciled_with_the_critical_path(folder):
    for trace in traces():
        row = [row for row in rows_of(trace) if row["kind"] == "verdict"]
        if not row or row[0]["name"] not in ("communication", "copies"):
            continue
        said, host = row[0]["finding"], float(re.search(r"critical path: host ([0-9.]+) %", row[0]["evidence"])[1])
        assert ("Meanwhile the host works on: it has %.1f %% of the critical path" % host in said) == (host >= 50), (trace, said)
    text = [row for row in rows_of(named("dlrm_worker1")) if row["kind"] == "verdict"][0]["finding"]
    assert "so removing the communication alone would save at most 37.2 %." in text, text


@case
def what_to_do_next_is_behind_the_findings(folder):
    screen = report(named("trace_diff~control")).splitlines()
    next = [i for i, line in enumerate(screen) if line.startswith("next ")][0]
    assert screen[next - 1].strip() == "2 of 3 findings are shown; see them all: diagnose", screen
    assert not any(line.startswith(("ran ", "device ", "coverage ")) for line in screen[:next]), screen
    # the critical path is in diagnose, which repeats no more of the first screen than it needs
    assert not any("critical path: host" in line for line in screen) and "critical path: host 70.0 %" in " ".join(report("diagnose", named("trace_diff~control")).split())


@case
def rules_that_lack_the_same_are_listed_together(folder):
    text = report("diagnose", named("trace_diff~control"))
    assert text.count("the trace has no device memory") == 1 and "the trace has no device memory: memory-growth," in text, text


@case
def calls_that_allocate_are_counted_without_their_sizes(folder):
    text = " ".join(report("memory", named("saxpy-mpi-cuda_nsys_perlmutter0.sqlite")).split())
    assert "device memory was allocated in 15 calls and freed in 3, of unknown sizes (pperf-report api)" in text, text


@case
def a_first_use_without_later_calls_is_named(folder):
    # the only call of one aten::mm, with records of lazy loading at its begin and its end
    row = [row for row in rows_of(named("tl__b200")) if row["name"] == "cold-start"][0]
    assert "2 long intervals more in which the GPU waits for the host are probably in first calls too" in row["finding"] and "RowParallelLinear.*: idle for 2.94 ms" in row["evidence"], row


@case
def copies_within_the_gpu_are_launches(folder):
    """146 of the 161 copies are from device to device: their calls return after 19 us and wait for nothing."""
    trace = named("b200~eager")
    idle = {row["name"]: row for row in json.loads(report("idle", trace, "-f", "json"))["rows"] if row["kind"] == "cause"}
    assert idle["copy calls"]["gaps"] <= 15 and idle["copy calls"]["gap_ns"] < 200_000 and idle["launch latency"]["gap_ns"] > 8_800_000, idle


@case
def brief_is_brief(folder):
    for trace in traces():
        text, words = report("diagnose", "--brief", trace), report("diagnose", "--brief", trace, "-f", "json")
        assert len(text.encode()) <= 8192 and len(words.encode()) <= 8192, trace
        brief = json.loads(words)
        assert brief["left_out"] == 0, trace
        listed = [row["name"] for row in rows_of(trace) if row["kind"] in ("finding", "note") and row["name"] not in brief["no_gain"]]
        assert [one["rule"] for one in brief["findings"]] == listed and not re.search(r"up to 0.ns|\(0\.0 %", text), trace


main()
