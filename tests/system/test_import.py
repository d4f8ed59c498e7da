#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small traces of torch.profiler, made here: every version of the format, and every trap that real
files contain. Real ones are in test_import_reference.py."""
import gzip, json, os, random, re, resource
from harness import REPORT, case, main, report, run

ENGINE = "autograd::engine::evaluate_function: "
PARTS = {"sum_us": "gpu_sum_ns", "busy_us": "gpu_busy_ns", "idle_us": "gpu_idle_ns", "computation_us": "gpu_computation_ns",
         "comm_us": "gpu_communication_ns", "exposed_comm_us": "gpu_exposed_communication_ns", "memcpy_us": "gpu_copy_ns",
         "exposed_memcpy_us": "gpu_exposed_copy_ns"}


def view(name, *arguments):
    return json.loads(report(name, *arguments, "-f", "json").stdout)


def tree(*arguments):
    """The tree as torch.profiler shows it: no folded labels, no steps, kernel names unchanged."""
    return view("tree", *arguments, "--no-fold", "--no-steps", "--demangle", "no")


def write(folder, events, name="trace.json", **facts):
    path = folder / name
    path.write_text(json.dumps({"schemaVersion": 1, **facts, "traceEvents": events}))
    return path


def X(category, name, start, duration, tid=1, pid=7, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


def op(name, start, duration, **more):
    return X("cpu_op", name, start, duration, **more)


def launch(start, duration, correlation, name="cudaLaunchKernel", **more):
    return X("cuda_runtime", name, start, duration, correlation=correlation, **more)


def kernel(start, duration, correlation, name="gemm", stream=7, **more):
    return X("kernel", name, start, duration, pid=0, tid=stream, correlation=correlation, device=0, stream=stream, **more)


def rows(view, kind=None):
    return {row["name"]: row for row in view["rows"] if kind is None or row["kind"] == kind}


# ---- small ones ----

@case
def times_are_the_digits_in_the_file(folder):
    """As doubles these would be off by up to 128 ns."""
    start = 1682000000000000
    text = '{"schemaVersion":1,"traceEvents":[%s]}' % ",".join(
        '{"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":%d.%03d,"dur":%s}' % (start + i * 10, i, "1.001") for i in range(50))
    (folder / "trace.json").write_text(text)
    pushes = [json.loads(line)["t_ns"] for line in report("dump", folder / "trace.json", "-f", "json").stdout.splitlines() if b'"push"' in line]
    assert pushes == [i * 10000 + i for i in range(50)], pushes
    got = rows(tree(folder / "trace.json"))["op"]
    assert got["cpu_total_ns"] == 50 * 1001 and got["min_ns"] == got["max_ns"] == 1001


@case
def the_old_words_mean_the_same(folder):
    events = [X("Operator", "ProfilerStep#1", 0, 100, tid="1"), X("Operator", "aten::mm", 10, 50, tid=1), X("Runtime", "cudaLaunchKernel", 20, 5, tid="1", correlation=3),
              X("Kernel", "gemm", 30, 40, pid=0, tid="stream 7", correlation=3), X("Memcpy", "Memcpy HtoD (Pageable -> Device)", 80, 4, pid=0, tid="stream 7", correlation=4, bytes=64),
              X("Memset", "Memset (Device)", 90, 2, pid=0, tid="stream 7", correlation=5, bytes=8)]
    got = tree(write(folder, events))
    assert [row["kind"] for row in got["rows"] if row["name"] in ("ProfilerStep#1", "aten::mm")] == ["range", "op"], got["rows"]
    assert rows(got)["gemm"]["path"] == ["ProfilerStep#1", "aten::mm", "gemm"]
    assert (got["integrity"]["copies"], got["integrity"]["sets"], got["integrity"]["without_launch"]) == (1, 1, 2)
    assert rows(got)["memcpy HtoD"]["bytes"] == 64


LOSSES = ("captured", "empty_calls", "before_gpu", "after_gpu", "range_profiled", "missing_records")


def losses(folder, events, name="losses.json", strict=None):
    """The counts of calls without a GPU record that are not 0. --strict passes a complete trace."""
    path = write(folder, events, name)
    counts = tree(path)["integrity"]
    status = report("tree", path, "--strict", check=None).returncode
    assert status == (2 if counts["missing_records"] else 0), (status, counts)
    return {key: counts[key] for key in LOSSES if counts[key]}


@case
def what_needs_no_gpu_record_is_no_loss(folder):
    """Each reason for a launch without a GPU record, and beside each a record that is lost."""
    usual = [op("step", 0, 1000), launch(10, 5, 1), kernel(20, 10, 1), launch(800, 5, 9), kernel(810, 10, 9)]
    memset = dict(name="cudaMemsetAsync")
    assert losses(folder, usual) == {}
    assert losses(folder, usual + [launch(100, 0.9, 2, **memset), launch(110, 1, 3, name="hipMemcpyAsync"), launch(120, 2.1, 4, **memset)]) == {"empty_calls": 2, "missing_records": 1}
    assert losses(folder, usual + [launch(100, 0.5, 2)]) == {"missing_records": 1}  # a kernel is never empty
    capture = [launch(100, 1, 90, name="cudaStreamBeginCapture_v10000"), launch(200, 1, 91, name="cudaStreamEndCapture")]
    inside = [launch(150, 5, 2), launch(160, 5, 3, tid=2), launch(170, 0.5, 4, **memset)]
    assert losses(folder, usual + capture + inside + [launch(210, 5, 5)]) == {"captured": 3, "missing_records": 1}
    assert losses(folder, usual + capture[:1] + inside) == {"captured": 3}  # the trace ends in the capture
    assert losses(folder, usual + capture[1:] + inside + [launch(300, 5, 6)]) == {"captured": 3, "missing_records": 1}
    assert losses(folder, usual + [launch(1, 2, 2), launch(900, 2, 10)]) == {"before_gpu": 1, "after_gpu": 1}
    waited = launch(950, 20, 11, name="cudaDeviceSynchronize")
    assert losses(folder, usual + [launch(900, 2, 10), waited]) == {"missing_records": 1}  # so it had finished
    early = kernel(0.5, 0.2, 77)
    assert losses(folder, usual + [launch(1, 2, 78), early]) == {"missing_records": 1}  # the GPU was recorded by then
    ranges = [X("cuda_profiler_range", "__cupti_profiler__", 0, 100)]
    assert losses(folder, [op("step", 0, 100), launch(10, 5, 1), launch(20, 5, 2, **memset)] + ranges) == {"range_profiled": 2}
    assert losses(folder, [op("step", 0, 100), launch(10, 5, 1)]) == {"missing_records": 1}


@case
def a_cut_file_says_so_before_the_rows(folder):
    path = write(folder, [op("step", i * 10, 5) for i in range(200)])
    path.write_text(path.read_text()[:8000])
    for name in ("tree", "table", "summary"):
        assert report(name, path).stdout.decode().startswith("warning: %s: byte " % path), name
        assert report(name, path, "--strict", check=2)
    for name in ("table", "dump"):
        assert b"warning: " in report(name, path, "-f", "csv").stderr, name
    assert " of the JSON: ends in the middle" in view("tree", path)["warnings"][0]


@case
def a_choice_that_selects_nothing_is_refused(folder):
    path = write(folder, [op("training step %d" % i, i * 10, 5) for i in range(9)] + [launch(1, 1, 1), kernel(5, 4, 1)])
    said = report("tree", path, "--step-marker", "trainin step", check=64).stderr.decode()
    assert "no range is named `trainin step`" in said and "did you mean `training step`?" in said, said
    for name in ("tree", "kernels", "idle"):
        assert "no records of GPU 99" in report(name, path, "--device", 99, check=64).stderr.decode()
    assert "no records of GPU 99" in report("diff", path, path, "--device", 99, check=64).stderr.decode()


@case
def the_gpu_of_amd_is_not_recorded_by_cupti(folder):
    amd = [op("step", 0, 1000), launch(10, 5, 1, name="hipLaunchKernel"), kernel(20, 10, 1)]
    path = write(folder, amd)
    sources = view("tree", path)["capture"]["sources"]
    assert sources["roctracer"] == "on" and sources["cupti"] == "absent", sources
    for name in ("summary", "info"):
        screen = report(name, path).stdout.decode()
        assert "roctracer on" in screen and "cupti" not in screen, screen
    nvidia = [op("step", 0, 1000), launch(10, 5, 1), kernel(20, 10, 1)]
    assert "roctracer" not in view("tree", write(folder, nvidia))["capture"]["sources"]


@case
def the_first_screen_keeps_losses_errors_and_notes_apart(folder):
    usual = [op("step", 0, 1000), launch(10, 5, 1), kernel(20, 10, 1), launch(100, 0.5, 2, name="cudaMemsetAsync"), launch(800, 5, 9), kernel(810, 10, 9), kernel(1, 2, -1)]
    screen = report(write(folder, usual)).stdout.decode()
    assert "\nnotes     copies and memsets of 0 bytes (executed nothing): 1\nlosses    none\n" in screen, screen
    screen = report(write(folder, usual + [launch(200, 5, 3), kernel(5, 1, 0)])).stdout.decode()
    assert "\nLOSSES    launches, copies and memsets without a matching GPU record: 1\n" in screen, screen


@case
def work_without_launch_and_launches_outside_operators_are_shown(folder):
    events = [op("a", 0, 10), launch(2, 1, 1), launch(20, 1, 2), kernel(5, 4, 1), kernel(25, 8, 2), kernel(40, 16, 99), kernel(60, 32, 0)]
    got = tree(write(folder, events))
    assert got["integrity"]["without_launch"] == 2 and got["integrity"]["unattributed"] == 3
    assert got["totals"]["attributed_ns"] == 4000 and got["totals"]["unattributed_ns"] == 56000
    assert rows(got)["unattributed"]["gpu_total_ns"] == 56000
    screen = " ".join(report(folder / "trace.json").stdout.decode().split())
    assert "GPU records / calls: 4 / 2 launches; 2 records have no launch in the trace" in screen, screen


@case
def a_shape_that_is_not_in_the_file_is_not_shown_as_zeros(folder):
    """Kernels of ROCm in graphs have no shape."""
    path = write(folder, [op("aten::mm", 0, 50), launch(2, 3, 1), kernel(20, 10, 1)])
    assert "<<<" not in report("tree", path).stdout.decode()
    path = write(folder, [op("aten::mm", 0, 50), launch(2, 3, 1), {**kernel(20, 10, 1), "args": {**kernel(20, 10, 1)["args"], "grid": [4, 1, 1], "block": [32, 1, 1]}}])
    assert "<<<(4,1,1),(32,1,1)>>>" in report("tree", path).stdout.decode()


@case
def gpus_of_one_name_are_one_line(folder):
    events = [op("aten::mm", 0, 50), launch(2, 3, 1), kernel(20, 10, 1)]

    def lines(names):
        path = write(folder, events, deviceProperties=[{"id": i, "name": name} for i, name in enumerate(names)])
        text = report(path).stdout.decode()
        return [line.strip() for line in text[text.index("device "):text.index("imported ")].splitlines()]
    assert lines(["A", "A", "B", "A"]) == ["device    GPU 0 had work, of GPUs 0-1 A", "GPU 2 B", "GPU 3 A"], lines(["A", "A", "B", "A"])
    assert " ".join(lines(["", ""])) == "device    GPU 0 had work, of GPUs 0-1 (the trace does not record the name of them)"


@case
def a_gpu_that_the_file_numbers_twice_is_one_gpu(folder):
    """HIP_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES renumber the GPUs in the descriptions only."""
    def read(numbers, described):
        events = [op("aten::mm", 0, 50), {"ph": "i", "name": "[memory]", "pid": 7, "tid": 1, "ts": 5, "args": {
            "Device Type": 1, "Device Id": 0, "Addr": 64, "Bytes": 512, "Total Allocated": 512, "Total Reserved": 1024}}]
        for i, number in enumerate(numbers, 1):
            work = kernel(20 * i, 10, i)
            events += [launch(2 + i, 0.5, i), {**work, "pid": number, "args": {**work["args"], "device": number}}]
        path = write(folder, events, deviceProperties=[{"id": i, "name": "MI300X", "numSms": 304} for i in described])
        warnings = [warning for warning in view("tree", path)["warnings"] if "describes only" in warning]
        return path, warnings, report("info", path).stdout.decode()
    path, warnings, text = read([9], [0])
    assert not warnings and "only GPU as number 0, its records name it 9\n" in text and "devices     9 MI300X," in text and ", 304 multiprocessors" in text, (warnings, text)
    assert "device    GPU 9 MI300X" in report(path).stdout.decode() and "tensor memory, device 9" in report("memory", path).stdout.decode()
    for numbers, described, said in (([9], [0, 1], "name GPU 9, but the file describes only GPUs 0, 1; "), ([8, 9], [0], "name GPUs 8, 9, but the file describes only GPU 0; "),
                                     ([0, 9], [0], "name GPU 9, but the file describes only GPU 0; ")):
        _, warnings, text = read(numbers, described)
        assert len(warnings) == 1 and said in warnings[0] and "GPU numbers" not in text, (numbers, described, warnings)
    for numbers, described in (([0], [0]), ([2], [0, 1, 2]), ([4], [])):
        _, warnings, text = read(numbers, described)
        assert not warnings and "GPU numbers" not in text, (numbers, described, warnings)


@case
def a_graphs_kernels_belong_to_its_launch(folder):
    events = [op("replay", 0, 50), launch(2, 10, 1, name="cudaGraphLaunch")] + [kernel(20 + i, 1, 1, name="k%d" % (i % 3)) for i in range(30)]
    got = tree(write(folder, events))
    assert got["totals"]["methods"]["graph-level"] == {"records": 30, "ns": 30000}
    assert rows(got)["k0"]["path"] == ["replay", "graph", "k0"] and rows(got)["graph"]["calls"] == 1
    got = view("table", folder / "trace.json")
    once = [row["gpu_self_ns"] - row["gpu_self_again_ns"] for row in got["rows"] if row.get("gpu_self_ns") is not None]
    assert sum(once) == got["totals"]["gpu_sum_ns"] < sum(row.get("gpu_self_ns") or 0 for row in got["rows"]), got["rows"]


@case
def touching_is_not_nesting_and_a_child_may_outlast_its_parent(folder):
    events = [op("first", 0, 10), op("second", 10, 10), op("none", 20, 0), op("outer", 30, 10), op("longer", 35, 10), op("inside", 41, 1), op("after", 45, 1)]
    random.Random(1).shuffle(events)
    got = tree(write(folder, events))
    paths = {row["name"]: row["path"] for row in got["rows"]}
    assert paths["second"] == ["second"] and paths["none"] == ["none"] and paths["after"] == ["after"], paths
    assert paths["longer"] == ["outer", "longer"] and paths["inside"] == ["outer", "longer", "inside"], paths
    assert [rows(got)[name]["cpu_total_ns"] for name in ("outer", "longer")] == [10000, 10000]
    assert any("1 ranges end before a range inside them does" in warning for warning in got["warnings"]), got["warnings"]


@case
def self_times_add_up_to_the_time_in_which_there_was_any_range(folder):
    """Ranges may overlap. If a child outlasts its parent, the part inside is subtracted. No time is
    in two self times or in none."""
    got = rows(tree(write(folder, [op("outer", 0, 10), op("longer", 5, 10), op("third", 8, 20), op("inside", 12, 1)])))
    assert {name: row["cpu_self_ns"] for name, row in got.items()} == {"outer": 5000, "longer": 3000, "third": 19000, "inside": 1000}, got
    assert {name: row["cpu_total_ns"] for name, row in got.items()} == {"outer": 10000, "longer": 10000, "third": 20000, "inside": 1000}, got
    for seed in range(8):
        dice = random.Random(seed)
        events = [op("op%d" % (i % 11), dice.randrange(400), dice.randrange(1, 60), tid=1 + i % 2) for i in range(40)]
        moments = {(event["tid"], moment) for event in events for moment in range(event["ts"], event["ts"] + event["dur"])}
        got = tree(write(folder, events), "--all")["rows"]
        assert sum(row.get("cpu_self_ns") or 0 for row in got) == 1000 * len(moments), (seed, len(moments))
        assert sum(row.get("cpu_total_ns") or 0 for row in got) == 1000 * sum(event["dur"] for event in events), seed


@case
def ranges_that_overlap_without_end_take_no_room_without_end(folder):
    events = [op("op%d" % (i % 7), i * 10, 25) for i in range(20000)]
    got = tree(write(folder, events))
    assert len(got["rows"]) < 2000, len(got["rows"])
    assert sum(row["calls"] for row in got["rows"]) == 20000 and got["integrity"]["conserved"]


@case
def backward_finds_its_operator_by_number_and_thread(folder):
    def with_number(event, number, forward=0):
        return {**event, "args": {**event["args"], "Sequence number": number, "Fwd thread id": forward}}
    events = [X("python_function", "nn.Module: Net_0", 0, 30), with_number(op("aten::linear", 1, 10), 5), with_number(op("aten::addmm", 2, 5), 5), launch(3, 1, 1), kernel(4, 2, 1, name="forward"),
              op(ENGINE + "AddmmBackward0", 50, 20, tid=2), with_number(op("AddmmBackward0", 51, 18, tid=2), 5, 1), launch(52, 1, 2, tid=2), kernel(60, 7, 2, name="backward")]
    got = view("tree", write(folder, events))
    assert rows(got)["backward"]["path"] == ["Net.*", "aten::linear (bwd)", "AddmmBackward0", "backward"], rows(got)["backward"]
    assert rows(got)["Net.*"]["gpu_total_ns"] == 9000 and rows(got)["Net.*"]["class"] == "Net"


@case
def names_decide_which_operator_created_a_node(folder):
    def numbered(name, start, duration, number, forward=0, tid=1):
        return X("cpu_op", name, start, duration, tid=tid, **{"Sequence number": number, "Fwd thread id": forward})
    node = "torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>"
    events = [op("bounds_check_indices", 0, 10), numbered("aten::zero_", 1, 5, 7), op("split_embedding_codegen_lookup_adagrad_function", 20, 10), op("aten::empty", 22, 3),
              numbered("aten::sum", 40, 4, 8), numbered("record_stream", 46, 4, 8), numbered("aten::cat", 52, 4, 9), op("lookup_adagrad_of_later", 60, 5),
              numbered(node, 100, 10, 7, 1, 2), launch(102, 1, 1, tid=2), kernel(110, 2, 1), numbered("SumBackward2", 120, 10, 8, 1, 2), launch(122, 1, 2, tid=2), kernel(130, 2, 2)]
    got = rows(view("tree", write(folder, events)))
    assert got[node]["path"][0] == "split_embedding_codegen_lookup_adagrad_function (bwd)", got[node]["path"]
    assert got["SumBackward2"]["path"][0] == "aten::sum (bwd)", got["SumBackward2"]["path"]


@case
def collectives_have_the_size_that_pytorch_describes(folder):
    def comms(at, correlation, elements, duration):
        described = {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "dtype": "BFloat16", "Group size": 4}
        return [op("c10d::allreduce_", at, 20), X("cpu_op", "record_param_comms", at + 1, 18, **described), op("nccl:all_reduce", at + 2, 10), launch(at + 3, 2, correlation),
                kernel(at + 40, duration, correlation, name="ncclDevKernel_Generic")]
    path = write(folder, comms(0, 1, 1000000, 100) + comms(200, 2, 1000000, 1000) + comms(1300, 3, 2000000, 200) + [op("aten::mm", 2000, 10), launch(2001, 2, 4), kernel(2005, 50, 4)])
    got = next(row for row in view("overlap", path)["rows"] if row["kind"] == "communication")
    assert got["bytes"] == 2 * (1000000 + 1000000 + 2000000), got
    assert abs(got["message_bytes_per_s"] - 8e6 / 1.3e-3) < 2 and abs(got["bus_bytes_per_s"] - 8e6 / 1.3e-3 * 2 * 3 / 4) < 2, got
    finding = next(row for row in view("diagnose", path)["rows"] if row["name"] == "exposed-communication")
    assert "a message of 2.00 MB takes 1.00 ms, the fastest of that size 100.00 \N{MICRO SIGN}s: the rest is a wait for other ranks" in finding["evidence"], finding
    for wrong in ({"dtype": "Unheard"}, {"dtype": "BFloat16", "In msg nelems": 2**63}, {"dtype": "Float\"", "In msg nelems": 1}):
        events = comms(0, 1, 1000000, 100)
        events[1]["args"] = {**events[1]["args"], **wrong}
        assert "bytes" not in next(row for row in view("overlap", write(folder, events))["rows"] if row["kind"] == "communication") or wrong["dtype"][0] == "F", wrong


@case
def step_markers_on_several_threads_are_steps_of_each(folder):
    events, correlation = [], 0
    for i in range(6):
        for tid, length in ((1, 80), (2, 60)):
            begin, correlation = i * 100 + 30 * tid, correlation + 1
            events += [X("user_annotation", "step %d" % i, begin, length, tid=tid), op("aten::mm", begin + 5, length - 10, tid=tid), launch(begin + 6, 3, correlation, tid=tid),
                       kernel(begin + 12, 10 * tid, correlation, stream=tid)]
    path = write(folder, events)
    got = view("steps", path)
    threads = {row["thread"]: (row["calls"], row["p50_ns"], row["gpu_total_ns"]) for row in got["rows"] if row["kind"] == "thread"}
    assert threads == {1: (6, 80000, 60000), 2: (6, 60000, 120000)}, threads
    assert len([row for row in got["rows"] if row["kind"] == "step"]) == 12
    whole = view("tree", path)
    assert whole["integrity"]["conserved"] and sum(row["calls"] for row in whole["rows"] if row["name"] == "step *") == 12, whole["rows"]
    assert sum(row.get("cpu_self_ns") or 0 for row in whole["rows"] if row["kind"] != "section") == 6 * 140000
    assert rows(view("tree", path, "--steps", "2-3"))["gemm"]["gpu_calls"] == 2
    events = [event for event in events if event["tid"] == 1 or "kernel" == event["cat"]] + [X("user_annotation", "step %d" % i, i * 100 + 40, 30, tid=2) for i in range(6)]
    assert not [row for row in view("steps", write(folder, events))["rows"] if row["kind"] == "thread"] # parts of the other's steps


@case
def a_number_that_two_threads_have_leads_where_the_arrow_does(folder):
    def numbered(name, start, tid, forward=0):
        return X("cpu_op", name, start, 5, tid=tid, **{"Sequence number": 1, "Fwd thread id": forward})
    arrow = [{"ph": "s", "id": 9, "cat": "fwdbwd", "name": "fwdbwd", "pid": 7, "tid": 1, "ts": 0}, {"ph": "f", "id": 9, "cat": "fwdbwd", "name": "fwdbwd", "pid": 7, "tid": 3, "ts": 50, "bp": "e"}]
    events = [numbered("left", 0, 1), numbered("right", 10, 2), numbered("MulBackward0", 50, 3, forward=4), launch(51, 1, 1, tid=3), kernel(60, 1, 1)]
    with_arrow, without = (rows(view("tree", write(folder, events + more)))["MulBackward0"]["path"] for more in (arrow, []))
    assert with_arrow == ["left (bwd)", "MulBackward0"] and without == ["MulBackward0"], (with_arrow, without)


@case
def an_operators_id_decides_at_its_very_edge(folder):
    ids = {"External id": 2}, {"External id": 4}
    events = [X("cpu_op", "outer", 0, 100, **ids[0]), X("cpu_op", "inner", 20, 50, **ids[1])]
    events += [X("cuda_runtime", "cudaLaunchKernel", 20, 0, correlation=i, **ids[i % 2]) for i in (1, 2)] + [kernel(30, 5, 1), kernel(40, 3, 2)]
    got = tree(write(folder, events))
    assert {tuple(row["path"]): row["gpu_self_ns"] for row in got["rows"] if row["kind"] == "kernel"} == {("outer", "gemm"): 3000, ("outer", "inner", "gemm"): 5000}


@case
def memory_is_of_the_operator_and_the_cpus_is_not_mixed_in(folder):
    def memory(time, size, total, kind=1, address=64):
        return {"ph": "i", "s": "t", "name": "[memory]", "pid": 7, "tid": 1, "ts": time,
                "args": {"Device Type": kind, "Device Id": 0 if kind else -1, "Bytes": size, "Addr": address, "Total Allocated": total, "Total Reserved": 4096}}
    events = [op("a", 0, 10), memory(2, 512, 1536), memory(3, 100, 100, kind=0), op("b", 20, 10), memory(25, 1024, 2560, address=128), memory(40, -512, 2048)]
    got = tree(write(folder, events))
    assert (got["totals"]["tensor_alloc_bytes"], got["totals"]["tensor_free_bytes"], got["totals"]["allocated_peak_bytes"]) == (1536, 512, 2560)
    assert [rows(got)[name]["tensor_alloc_bytes"] for name in "ab"] == [512, 1024]
    assert got["integrity"]["tensor_differences"] == 0 and got["capture"]["sources"]["torch_memory"] == "on"


@case
def the_rows_of_memory_add_up_to_the_peak(folder):
    """With what was allocated before the trace; without the allocator's totals a level is a lower bound."""
    def memory(time, size, total, address):
        known = {"Total Allocated": total, "Total Reserved": 8192, "Addr": address} if total is not None else {}
        return {"ph": "i", "name": "[memory]", "pid": 7, "tid": 1, "ts": time, "args": {"Device Type": 1, "Device Id": 0, "Bytes": size, **known}}

    def sums(path):
        got = view("memory", path)["rows"]
        return {key: (got[0][key], sum(row[key] for row in got[1:])) for key in ("at_peak_bytes", "held_bytes")}
    # the most that the trace's own tensors hold (1536) is not at the allocator's peak, 4608
    events = [op("a", 0, 10), memory(2, 512, 4608, 64), op("b", 20, 30), memory(25, -2048, 2560, 4096), memory(30, 1024, 3584, 128), memory(40, -512, 3072, 64)]
    path = write(folder, events)
    assert sums(path) == {"at_peak_bytes": (4608, 4608), "held_bytes": (3072, 3072)}, sums(path)
    text = " ".join(report("memory", path).stdout.decode().split())
    assert "live at the peak: 4.10 kB (88.9 %) allocated before the trace began, 512 B (11.1 %) allocated in `a`" in text, text
    assert "peak of tensor memory 4.61 kB, reached in `a`" in text and "3.07 kB still allocated" in text and "(allocated before the trace began)" in text and "at least" not in text, text
    for freed, said in ((-1024, None), (-512, "; at least 512 B still allocated at the end")):
        path = write(folder, [op("a", 0, 10), memory(2, 1024, None, 0), memory(8, freed, None, 0)])
        assert all(level == parts for level, parts in sums(path).values()), sums(path)
        for text in (report("memory", path).stdout.decode(), report(path).stdout.decode()):
            text = " ".join(text.split())
            assert "at least 1.02 kB (what was allocated before the trace is unknown), reached in" in text, text
            assert said in text if said else "still allocated" not in text, text


@case
def a_view_without_rows_says_how_to_record_them(folder):
    def said(name, events):
        text = " ".join(report(name, write(folder, events)).stdout.decode().split())
        return text[text.index("no rows"):]
    gpu = "no rows the trace has no GPU work: record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
    for name in ("kernels", "streams", "queue", "idle", "overlap", "critical-path"):
        assert said(name, [op("a", 0, 10)]) == gpu, (name, said(name, [op("a", 0, 10)]))
    assert said("api", [op("a", 0, 10)]).startswith("no rows the trace has no CUDA calls: record with torch.profiler.profile(")
    events = [op("a", 0, 10), launch(1, 2, 1), kernel(5, 4, 1)]
    assert said("memory", events) == "no rows the trace has no memory events: record with torch.profiler.profile(profile_memory=True)"


@case
def rows_of_memory_can_be_told_apart(folder):
    """By the model's code where no module is in the path; those that read alike are one row, those without memory are counted."""
    def memory(time, size, address):
        return {"ph": "i", "name": "[memory]", "pid": 7, "tid": 1, "ts": time,
                "args": {"Device Type": 1, "Device Id": 0, "Bytes": size, "Addr": address, "Total Allocated": 4096, "Total Reserved": 8192}}

    def python(name, start, duration):
        return X("python_function", name, start, duration)
    events = [python("train.py(3): main", 0, 400)]
    # two layers of a model, the first of them called from two lines of PyTorch; the last allocation is freed at once
    for i, (line, torch) in enumerate(((7, 1), (7, 2), (8, 1), (9, 1))):
        at = 100 * i
        events += [python("/lib/python3/site-packages/torchvision/net.py(%d): forward" % line, at, 50), python("torch/nn/conv.py(%d): forward" % torch, at + 1, 40),
                   op("aten::conv2d", at + 2, 10), memory(at + 3, 1024, 64 + 4096 * i)]
    events += [memory(304, -1024, 64 + 4096 * 3)]
    path = write(folder, events)
    text = report("memory", path, "--width", "200").stdout.decode()
    lines = [line.split("aten::conv2d")[1].split("  ")[0] for line in text.splitlines() if "< net.py" in line]
    assert lines == [" < net.py:7 forward < train.py:3 main", " < net.py:8 forward < train.py:3 main"] and "not shown: 1 more (--top 0)" in text, text
    assert "net.py:9 forward" in report("memory", path, "--width", "200", "--top", "50").stdout.decode()
    assert len([row for row in view("memory", path)["rows"] if row["depth"] == 1 and "path" in row]) == 4


@case
def memory_without_totals_is_added_up_and_said_to_be(folder):
    def memory(time, size):
        return {"ph": "i", "s": "t", "name": "[memory]", "pid": 7, "tid": 1, "ts": time, "args": {"Device Type": 1, "Device Id": 0, "Bytes": size}}
    got = tree(write(folder, [op("a", 0, 100)] + [memory(10 * i, size) for i, size in enumerate((512, 512, -512, -1024, 512, -512, -512))]))
    assert got["totals"]["allocated_peak_bytes"] == 2048 and got["totals"]["tensor_alloc_bytes"] == 1536
    assert got["integrity"]["tensor_differences"] == 0
    assert got["capture"]["sources"]["torch_memory"].startswith("partial: the file does not give")


@case
def memory_that_no_machine_has_is_the_most_that_a_number_holds(folder):
    for size in (2 ** 63 - 1, -(2 ** 63 - 1)):
        events = [{"ph": "i", "s": "t", "name": "[memory]", "pid": 7, "tid": 1, "ts": 10 * i, "args": {"Device Type": 1, "Device Id": 0, "Bytes": size}} for i in range(1, 9)]
        got = tree(write(folder, [op("a", 0, 100)] + events))
        assert got["totals"]["allocated_peak_bytes"] == (2 ** 63 - 1 if size > 0 else 0), got["totals"]


@case
def the_busy_time_is_split_by_what_it_was_spent_on(folder):
    events = [kernel(0, 10, 1), kernel(5, 10, 2, name="ncclDevKernel_AllReduce", stream=8), kernel(30, 10, 3, name="RCCL_generic", stream=8),
              X("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 35, 10, pid=0, tid=9, device=0, stream=9, bytes=1), X("gpu_memset", "Memset (Device)", 60, 1, pid=0, tid=7, device=0, stream=7)]
    totals = tree(write(folder, events))["totals"]
    assert [totals[PARTS[key]] // 1000 for key in ("sum_us", "busy_us", "idle_us", "computation_us", "comm_us", "exposed_comm_us", "memcpy_us", "exposed_memcpy_us")] \
        == [41, 31, 30, 11, 20, 15, 10, 5], totals


@case
def what_the_file_knows_of_itself_is_kept(folder):
    device = {"id": 3, "name": "H100", "totalGlobalMem": 85018279936, "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    name = {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 0, "args": {"name": "python3"}}
    path = write(folder, [name, op("a", 1000, 1)], deviceProperties=[device], distributedInfo={"rank": 5, "world_size": 8}, cuda_runtime_version=12040,
                 baseTimeNanoseconds=1711964646000000000)
    capture = tree(path)["capture"]
    assert (capture["rank"], capture["command"], capture["pid"]) == (5, "python3", 7), capture
    assert capture["versions"]["cuda_runtime"] == "12040" and capture["start_unix_ns"] == 1711964646001000000
    assert (capture["devices"][0]["id"], capture["devices"][0]["name"], capture["devices"][0]["multiprocessors"]) == (3, "H100", 132)
    assert capture["sources"]["torch_ops"] == "on" and capture["sources"]["nvtx"] == capture["sources"]["cupti"] == "absent"


@case
def info_says_nothing_of_a_library_that_did_not_write_it(folder):
    """No parent 0, run 0 and build id 0, and no end of the program, which is unknown."""
    text = report("info", write(folder, [op("a", 0, 10)])).stdout.decode()
    assert "process     7\n" in text and "read as" in text and not any(word in text for word in ("child of", "libpperf", "MHz", "cleanly", "started")), text


@case
def what_json_does_not_have_is_read_where_programs_write_it(folder):
    text = b"""\xef\xbb\xbf{"traceEvents": [
      {"args": {"x": NaN, "y": [Infinity, -Infinity], "Call stack": "\xff\xfe", "deep": %s}, "dur": 5, "ts": 10, "tid": 1, "pid": 1, "name": "bad \xff\\ud800 utf", "cat": "cpu_op", "ph": "X"},
      {"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 1, "tid": 1, "ts": NaN, "dur": 1}, 17, null, "text", [],
      {"ph": "B", "cat": "cpu_op", "name": "begun", "pid": 1, "tid": 1, "ts": 20}, {"ph": "E", "pid": 1, "tid": 1, "ts": 27},
      {"ph": "C", "name": "counter", "pid": 1, "ts": 3, "args": {"v": 1}}], "deviceProperties": "none", "other": {"a": []}}""" % (b"[" * 3000 + b"]" * 3000)
    (folder / "trace.json").write_bytes(text)
    got = tree(folder / "trace.json")
    assert sorted(row["cpu_total_ns"] for row in got["rows"]) == [5000, 7000], got["rows"]
    assert any("1 events have no readable time" in warning for warning in got["warnings"]), got["warnings"]


@case
def a_compressed_file_says_if_no_descriptor_is_free(folder):
    (folder / "trace.json.gz").write_bytes(gzip.compress(write(folder, [op("a", 0, 10)]).read_bytes()))
    for limit in range(4, 8):
        said = run(folder, "sh", "-c", 'ulimit -n %d; exec "$0" tree trace.json.gz' % limit, REPORT, check=None)
        assert said.returncode in (0, 2) and b"memory" not in said.stderr, (limit, said)
        assert limit > 4 or b"cannot duplicate a descriptor: Too many open files" in said.stderr, said


@case
def a_damaged_description_of_a_device_adds_no_device(folder):
    path = write(folder, [op("a", 0, 10)], deviceProperties=[{"id": 0, "name": "Good"}, {"id": 1, "name": "Damaged"}])
    assert b"Damaged" in report("info", path).stdout
    whole = path.read_text()
    for damaged in ('{"id": 1 "name": "Damaged"}', '{"id": 1, "name": "Damaged" 5}', '{"id": 1, "name": "Damaged", 5: 1}'):
        path.write_text(whole.replace('{"id": 1, "name": "Damaged"}', damaged))
        said = report("info", path).stdout
        assert b"Good" in said and said.count(b"compute capability") == 1, (damaged, said)


@case
def the_first_screen_says_where_cpu_time_went_for_every_metric(folder):
    events = [X("user_annotation", "train", 0, 100), X("user_annotation", "load", 200, 60), op("aten::mm", 10, 80)]
    path = write(folder, events)
    for metric in ("cpu", "wall", "calls", "gpu", "tensors", "allocated"):
        said = " ".join(report(path, "-m", metric).stdout.decode().split())
        assert "50.0 % of the time in ranges (80.00 µs of 160.00 µs, all threads) is spent in `train / aten::mm`" in said, (metric, said)
        assert "no range was recorded" not in said, (metric, said)
    path = write(folder, [launch(0, 10, 1)])
    assert "no range was recorded" in " ".join(report(path, "-m", "calls").stdout.decode().split())


@case
def a_file_that_was_cut_is_read_up_to_there(folder):
    path = write(folder, [op("op%d" % (i % 5), i * 10, 5) for i in range(400)])
    whole = path.read_bytes()
    (folder / "cut.json").write_bytes(whole[:len(whole) // 2])
    got = tree(folder / "cut.json")
    assert 190 < sum(row["calls"] for row in got["rows"]) < 210 and not got["integrity"]["complete"]
    assert any("of the JSON: ends in the middle" in warning for warning in got["warnings"]), got["warnings"]
    packed = gzip.compress(whole)
    (folder / "cut.json.gz").write_bytes(packed[:len(packed) - 20])
    assert not tree(folder / "cut.json.gz")["integrity"]["complete"]
    report("tree", folder / "cut.json", "--strict", check=2)


@case
def a_file_is_read_in_parts_that_may_end_anywhere(folder):
    """The read buffer has 1 MiB. It ends at each byte of an event and of the text between two
    events."""
    before, event = '{"traceEvents": [{"ph": "M", "name": "', '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"External id": 12}}'
    for offset in range(0, len(event) + 6):
        text = before + "x" * ((1 << 20) - len(before) - 3 - offset) + '"},\n' + event + " ,\n " + event.replace("10", "30") + ' ] , "distributedInfo": {"rank": 3}}'
        (folder / "trace.json").write_text(text)
        got = tree(folder / "trace.json")
        assert rows(got)["a"]["calls"] == 2 and got["capture"]["rank"] == 3 and got["integrity"]["complete"], (offset, got["warnings"])


@case
def a_comma_before_a_closing_bracket_is_no_damage(folder):
    """Also where the read buffer ends at it."""
    def name_of(size):
        return {"ph": "M", "name": "x" * size}
    text = json.dumps({"schemaVersion": 1, "traceEvents": [name_of(0), op("a", 0, 10, odd=1), launch(2, 1, 1), kernel(5, 4, 1, grid=[4, 1, 1])], "distributedInfo": {"rank": 3}})
    ended = text.replace("}", ", }").replace("]", " ,\r\n]")
    for offset in (None, *range(-4, len(ended) - ended.index("grid") + 4)):
        size = 0 if offset is None else (1 << 20) - ended.index("grid") - offset
        (folder / "trace.json").write_text(ended.replace('"name": ""', '"name": "%s"' % ("x" * size)), newline="")
        got = tree(folder / "trace.json")
        assert got["integrity"]["complete"] and not got["warnings"], (offset, got["warnings"])
        assert rows(got)["a"]["gpu_total_ns"] == 4000 and got["capture"]["rank"] == 3, offset
    for wrong in (",,]", "[,"):
        (folder / "trace.json").write_text(json.dumps([op("a", 0, 10), op("b", 20, 10)]).replace(wrong[-1], wrong))
        assert not (report("tree", folder / "trace.json", "-f", "json", check=None).returncode == 0 and tree(folder / "trace.json")["integrity"]["complete"]), wrong


@case
def events_that_end_with_the_file_are_whole(folder):
    """As from a program that was killed while it wrote the file: only the end of the document is
    missing."""
    text = json.dumps([op("a", 0, 10), op("b", 20, 10)])[:-1]
    for end in ("", ",", ",\n", " , "):
        (folder / "trace.json").write_text(text + end)
        got = tree(folder / "trace.json")
        assert set(rows(got)) == {"a", "b"} and not got["integrity"]["complete"], (end, got["rows"])


@case
def work_without_correlation_is_of_a_call_where_its_external_id_says(folder):
    def without(event, external):
        return {**event, "args": {**{key: value for key, value in event["args"].items() if key != "correlation"}, "External id": external}}
    events = [op("outer", 0, 100, **{"External id": 4}), op("first", 10, 10, **{"External id": 5}), op("second", 30, 20, **{"External id": 6}),
              without(launch(11, 1, 0, name="cudaStreamIsCapturing"), 5), without(launch(12, 1, 0), 5), without(launch(14, 1, 0), 5), without(launch(32, 1, 0), 6),
              without(launch(35, 1, 0, name="cudaMemcpyAsync"), 6), without(launch(70, 1, 0), 4), launch(80, 1, 77),
              *(without(kernel(start, 2, 0, name=name), external) for start, name, external in ((40, "a", 5), (43, "b", 5), (46, "c", 5), (50, "d", 6), (75, "e", 4), (78, "too early", 9), (5, "before", 5))),
              without(X("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 55, 4, pid=0, tid=7, device=0, stream=7, bytes=64), 6), kernel(90, 1, 77, name="with id")]
    got = tree(write(folder, events))
    paths = {row["name"]: row["path"] for row in got["rows"]}
    assert [paths[name] for name in "abc"] == [["outer", "first", name] for name in "abc"] and paths["d"] == ["outer", "second", "d"] and paths["e"] == ["outer", "e"], paths
    assert paths["memcpy DtoD"] == ["outer", "second", "memcpy DtoD"] and paths["with id"] == ["outer", "with id"], paths
    assert got["integrity"]["without_launch"] == 2 and got["totals"]["methods"]["enclosure"] == {"records": 6, "ns": 14000} and got["totals"]["methods"]["correlation"]["records"] == 1, got["totals"]
    assert rows(got)["a"]["method"] == "enclosure" and rows(got)["a"]["confidence"] == "medium" and got["integrity"]["conserved"]


@case
def shapes_of_inputs_are_kept_whatever_the_white_space(folder):
    dims = op("aten::mm", 0, 10, **{"Input Dims": [[64, 1024], [1024], []], "Input type": ["float", "float", "Scalar"]})
    old = op("aten::mm", 20, 10, **{"Input dims": [[64, 1024], [1024], []], "Input type": ["float", "float", "Scalar"]})
    none = op("aten::mm", 40, 10, **{"Input Dims": []})
    path = write(folder, [dims, old, none])
    path.write_text(path.read_text().replace("[64, 1024]", "[64,\n1024 ]", 1))
    records = [json.loads(line) for line in report("dump", path, "-f", "json").stdout.splitlines()]
    nodes = [record["node"] for record in records if record["kind"] == "push"]
    assert nodes[0] == nodes[1] != nodes[2], nodes
    assert rows(tree(path))["aten::mm"]["calls"] == 3


def stacks(path):
    return {record.get("api", record["kind"]): [(f["file"], f["line"], f["function"]) for f in record.get("python_stack", [])]
            for record in map(json.loads, report("dump", path, "-f", "json").stdout.splitlines()) if "api" in record or record["kind"] == "tensor"}


@case
def pythons_functions_are_the_stack_of_what_they_call(folder):
    def python(name, start, duration, **more):
        return X("python_function", name, start, duration, **more)
    memory = {"ph": "i", "name": "[memory]", "pid": 7, "tid": 1, "ts": 25, "args": {"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0, "Total Allocated": 512, "Total Reserved": 1024}}
    events = [python("train.py(7): <module>", 0, 100), python("nn.Module: Net_0", 10, 80), python("net.py(3): forward", 11, 50), python("<built-in function linear at 0x7f00>", 20, 10),
              op("aten::linear", 21, 8), launch(22, 1, 1), memory, launch(70, 1, 2, name="cudaMemcpyAsync"), launch(200, 1, 3, name="cudaMemsetAsync"), python("other.py(1): run", 0, 500, tid=2)]
    got = stacks(write(folder, events))
    inner = [(None, 0, "<built-in function linear>"), ("net.py", 3, "forward"), ("train.py", 7, "<module>")]
    assert got == {"cudaLaunchKernel": inner, "tensor": inner, "cudaMemcpyAsync": inner[2:], "cudaMemsetAsync": []}, got
    assert view("tree", write(folder, events))["capture"]["sources"]["python_stacks"] == "on"


@case
def the_stack_of_an_operator_as_old_files_have_it(folder):
    text = "net.py(12): forward;/a b/train.py(3): step;;train.py(9): <module>"
    events = [op("outer", 0, 100, **{"Call stack": text}), op("inner", 10, 20, **{"Call stack": ""}), launch(15, 1, 1), launch(120, 1, 2, name="cudaFree"), launch(50, 1, 3, name="cudaMalloc")]
    got = stacks(write(folder, events))
    assert got["cudaLaunchKernel"] == got["cudaMalloc"] == [("net.py", 12, "forward"), ("/a b/train.py", 3, "step"), ("train.py", 9, "<module>")] and not got["cudaFree"], got


@case
def stacks_without_bottom_and_names_without_form_take_no_room_without_end(folder):
    deep = [X("python_function", "f%d" % (i % 400), i, 100000 - 2 * i) for i in range(5000)]
    odd = [X("python_function", name, 6000 + i, 50000, tid=2) for i, name in enumerate(["(1): x", "a(99999999999): b", "a(): b", "): ", ":", "a(1):b", " at 0x", ""])]
    got = stacks(write(folder, deep + odd + [launch(5500, 1, 1), launch(6100, 1, 2, name="cudaFree", tid=2)]))
    assert len(got["cudaLaunchKernel"]) == 128 and len(got["cudaFree"]) == 8, got


@case
def packed_and_plain_are_the_same_whatever_they_are_called(folder):
    path = write(folder, [op("a", 1, 2), launch(1, 1, 1), kernel(3, 4, 1)])
    (folder / "trace.bin").write_bytes(gzip.compress(path.read_bytes()))
    plain, packed = (report("tree", name, "-f", "csv").stdout for name in (path, folder / "trace.bin"))
    assert plain == packed and plain


@case
def a_file_that_is_none_is_refused_in_one_sentence(folder):
    for content in (b"{}", b"[1, 2", b"{\"traceEvents\": 5}", b"{\"a\": {}}", b"[]", b"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"v8\", \"name\": \"a\", \"ts\": 1, \"dur\": 1}]}",
                    b"{nonsense", b"[" * 100000, gzip.compress(b"hello"), gzip.compress(b"{}")[:-12], b"\x1f\x8b", b"\x1f\x8bnot gzip at all", b"   "):
        (folder / "file").write_bytes(content)
        said = report(folder / "file", check=2)
        assert said.stderr.count(b"\n") == 1 and not said.stdout, (content[:40], said.stderr)


FULL = {"Input Dims": [[8, 8], []], "Call stack": "a.py(1): f;b.py(2): g", "External id": 3, "Sequence number": 5, "Fwd thread id": 0}


def of_everything():
    """One event of each kind, in the newest format."""
    def raw(**event):
        return {"pid": 7, "tid": 1, **event}
    return [X("user_annotation", "ProfilerStep#1", 0, 500), X("python_function", "a.py(1): f", 1, 400), X("python_function", "nn.Module: Net_0", 2, 300), op("aten::mm", 10, 50, **FULL),
            launch(20, 5, 1), launch(30, 5, 2, name="cudaMemcpyAsync"), launch(40, 5, 3, name="cudaGraphLaunch"), launch(50, 5, 4, name="cudaStreamSynchronize"), kernel(60, 7, 1, grid=[4, 1, 1], block=[128, 1, 1]),
            X("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 70, 3, pid=0, tid=7, device=0, stream=7, correlation=2, bytes=64), kernel(80, 7, 3), kernel(90, 7, 3, name="nccl"),
            X("cuda_sync", "Stream Sync", 50, 5, pid=0, tid=7, device=0, stream=7, correlation=4), X("overhead", "Buffer Flush", 95, 3), X("gpu_user_annotation", "ProfilerStep#1", 60, 60, pid=0, tid=7),
            raw(ph="i", name="[memory]", ts=25, args={"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0, "Total Allocated": 512, "Total Reserved": 1024}),
            raw(ph="s", cat="fwdbwd", name="fwdbwd", id=1, ts=10), raw(ph="f", cat="fwdbwd", name="fwdbwd", id=1, ts=200, tid=2, bp="e"), raw(ph="s", cat="ac2g", name="ac2g", id=1, ts=20),
            op("MmBackward0", 200, 30, tid=2, **{**FULL, "Fwd thread id": 1}), raw(ph="M", name="process_name", ts=0, args={"name": "python3"}), raw(ph="B", cat="cpu_op", name="begun", ts=300), raw(ph="E", ts=310)]


@case
def the_era_of_a_file_makes_no_difference(folder):
    """The same run in the formats since 2021: times as integers, decimals and texts, absolute or
    relative to a base, with the metadata first or last."""
    events, now = of_everything(), {"cpu_op": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset"}
    base, day = 1711964646000000000, 1711964646000000

    def figures(events, text=str, **facts):
        path = folder / "era.json"
        path.write_text(text(json.dumps({"schemaVersion": 1, **facts, "traceEvents": events})))
        got = tree(path)
        return [(row["path"], row.get("calls"), row.get("cpu_total_ns"), row.get("cpu_self_x_ns"), row.get("gpu_total_ns")) for row in got["rows"]], got["totals"]["gpus"], got["capture"]["start_unix_ns"]
    rows_now, gpus, start = figures(events, baseTimeNanoseconds=base)
    assert len(rows_now) > 10 and start == base
    old = [{**event, "cat": now.get(event.get("cat"), event.get("cat"))} for event in events]
    for event in old:
        if event["cat"] == "Kernel":
            event.update(tid="stream 7")
    later = [{**event, "ts": event["ts"] + day} for event in events]
    decimals = [{**event, "ts": "@%d.000@" % event["ts"], **({"dur": "@%d.0@" % event["dur"]} if "dur" in event else {})} for event in events]
    for variant, changed, text, facts, begin in (
            ("2021", old, str, {"baseTimeNanoseconds": base}, start), ("now in microseconds", later, str, {}, start), ("both", later, str, {"baseTimeNanoseconds": base}, None),
            ("decimals", decimals, lambda text: text.replace('"@', "").replace('@"', ""), {"baseTimeNanoseconds": base}, start),
            ("exponents", decimals, lambda text: text.replace('"@', "").replace('.0@"', "0e-1").replace('.000@"', "00.0E-2"), {"baseTimeNanoseconds": base}, start),
            ("nanoseconds shown", events, str, {"baseTimeNanoseconds": base, "displayTimeUnit": "ns"}, start),
            ("facts last", events, lambda text: '{"traceEvents"' + text.split('"traceEvents"')[1][:-1] + ', "baseTimeNanoseconds": %d, "schemaVersion": 1}' % base, {}, start),
            ("pids as texts", [{**event, "pid": str(event["pid"])} for event in events], str, {"baseTimeNanoseconds": base}, start),
            ("keys turned round", [dict(reversed(event.items())) for event in events], str, {"baseTimeNanoseconds": base}, start),
            ("events turned round", sorted(events, key=lambda event: -event["ts"] if event["ph"] not in "BE" else 0), str, {"baseTimeNanoseconds": base}, start),
            ("one line an event", events, lambda text: text.replace("}, {", "},\n  {").replace(", ", " ,\r\n\t"), {"baseTimeNanoseconds": base}, start)):
        rows_then, gpus_then, start_then = figures(changed, text, **facts)
        assert rows_then == rows_now and gpus_then == gpus, (variant, [pair for pair in zip(rows_then, rows_now) if pair[0] != pair[1]][:3], gpus_then)
        assert begin is None or start_then == begin, (variant, start_then)


def shown(path):
    return [(row["path"], row["kind"], row.get("calls"), row.get("cpu_total_ns"), row.get("cpu_self_ns"), row.get("gpu_total_ns")) for row in tree(path)["rows"]]


@case
def the_form_of_a_file_makes_no_difference(folder):
    events = [op("outer", 0, 100), op("inner", 10, 50), launch(20, 5, 1), kernel(30, 40, 1), launch(70, 5, 2), kernel(80, 10, 2, name="second")]
    whole = json.dumps({"schemaVersion": 1, "traceEvents": events})
    want, number = shown(write(folder, events)), r'"(ts|dur)": (\d+)'
    for variant, text in (
            ("events alone", json.dumps(events)),
            ("lines end as on Windows", "\ufeff" + json.dumps(json.loads(whole), indent=1).replace("\n", "\r\n")),
            ("displayTimeUnit is no unit", whole.replace("{", '{"displayTimeUnit": "ns", ', 1)),
            ("a base", whole.replace("{", '{"baseTimeNanoseconds": 1711964646000000000, ', 1)),
            ("exponents", re.sub(number, lambda match: '"%s": %.3E' % (match[1], int(match[2])), whole)),
            ("exponents below 0", re.sub(number, r'"\1": \g<2>0e-1', whole)),
            ("times as texts", re.sub(number, r'"\1": "\2.000"', whole)),
            ("before the clock's zero", re.sub(r'"ts": (\d+)', lambda match: '"ts": %d' % (int(match[1]) - 50), whole)),
            ("more behind the end", whole + "\n" + whole[:40])):
        (folder / "variant.json").write_text(text, newline="")
        assert shown(folder / "variant.json") == want, (variant, shown(folder / "variant.json"))
    for variant, packed in (("zeros behind it", gzip.compress(whole.encode()) + b"\0" * 512), ("anything behind it", gzip.compress(whole.encode()) + b"anything")):
        (folder / "variant").write_bytes(packed)
        assert shown(folder / "variant") == want, variant


@case
def an_event_with_an_impossible_time_is_reported_and_is_in_no_metric(folder):
    events = [op("a", 0, 100), launch(20, 5, 1), kernel(30, 40, 1)]
    want = shown(write(folder, events))
    for odd in ({"ts": 10 ** 25}, {"dur": 10 ** 25}, {"dur": 2 ** 63 - 1}, {"dur": -3}, {"ts": -10 ** 25}, {"dur": None}, {"ts": "soon"}, {"ts": [1]}, {"dur": True}):
        for event in (op("odd", 50, 1), launch(50, 1, 9), kernel(80, 1, 9)):
            path = write(folder, events + [{**event, **odd}])
            assert shown(path) == want and any("1 events have no readable time" in warning for warning in tree(path)["warnings"]), (odd, event, shown(path))


def begins(name, time, category="cpu_op", tid=1):
    return {"ph": "B", "cat": category, "name": name, "pid": 7, "tid": tid, "ts": time}


def ends(time, tid=1):
    return {"ph": "E", "pid": 7, "tid": tid, "ts": time}


@case
def an_end_ends_what_its_thread_began_last(folder):
    """Also a begin of which no range is made: its end closes no other range."""
    events = [begins("outer", 0), begins("elsewhere", 1, tid=2), begins("unknown", 10, "of nobody"), ends(20), begins("inner", 30), begins("call", 32, "cuda_runtime"),
              ends(34), ends(40), ends(41, tid=2), begins("left open", 60, tid=3), ends(100), op("last", 110, 10)]
    got = tree(write(folder, events))
    assert {name: row["cpu_total_ns"] for name, row in rows(got).items()} == {
        "outer": 100000, "elsewhere": 40000, "inner": 10000, "last": 10000, "left open": 60000}, rows(got)
    assert any("1 ranges have no end in the file; they are counted up to its last event" in warning for warning in got["warnings"]), got["warnings"]


@case
def an_end_before_its_beginning_ends_nothing(folder):
    """Such an end made the outer range last longer. An invalid time lost the thread."""
    events = [op("outer", 0, 200), op("later", 120, 10)]
    for bad, odd in ((1, [begins("odd", 100), ends(50)]), (2, [begins("odd", -(2 ** 63 - 1) // 1000), ends(2 ** 61 // 1000)]), (2, [begins("odd", 2 ** 62 // 1000), ends(0)])):
        got = tree(write(folder, events + odd))
        assert rows(got)["outer"]["cpu_total_ns"] == 200000 and any("%d events have no readable time" % bad in warning for warning in got["warnings"]), (odd, got["rows"], got["warnings"])


@case
def what_is_left_out_is_counted_whatever_there_is_of_it(folder):
    """A line shows some categories and a trace keeps more of them. The rest is counted together."""
    events = [op("a", 0, 10)] + [X("category %d" % i, "b", i, 1) for i in range(90) for _ in range(2)] + [X("category 0", "b", 99, 1)]
    said = view("info", write(folder, events))["rows"][0]["meta"]["import.left_out"]
    assert said.startswith("3 category 0, 2 category 1, ") and said.endswith(" of other categories"), said
    assert sum(int(part.split()[0]) for part in said.split(", ")) == 181, said


@case
def markers_of_the_profiler_are_not_what_a_user_misses(folder):
    def instant(name, **more):
        return {"ph": "i", "name": name, "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": 1, "s": "g", **more}
    events = [op("a", 0, 10), X("Trace", "PyTorch Profiler (0)", 0, 20), instant("Iteration Start: PyTorch Profiler"), instant("Record Window End")]
    mine = [instant("Record Window"), instant("Record Window End", cat="mine"), X("gpu_user_annotation", "a", 1, 2)]
    said = report(write(folder, events)).stdout.decode()
    assert "imported  a file of torch.profiler (Kineto)\n" in said and "not shown" not in said, said
    meta = view("info", write(folder, events + mine))["rows"][0]["meta"]
    assert meta["import.markers"] == "1 Trace, 1 Iteration Start: PyTorch Profiler, 1 Record Window End", meta
    assert meta["import.left_out"] == "1 Record Window, 1 mine, 1 gpu_user_annotation", meta


@case
def gpus_of_other_makers_are_read_by_the_same_rules(folder):
    """Only names of calls and copies, and their categories, differ."""
    def copy(name, start, correlation):
        return X("gpu_memcpy", name, start, 1, pid=2, tid=0, device=0, stream=7, correlation=correlation, bytes=64)
    for category, launches, copied in (
            ("cuda_runtime", ("hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemcpyWithStream"), "CopyHostToDevice"),
            ("cuda_driver", ("cuLaunchKernelEx", "cudaLaunchKernelExC", "cudaMemcpyAsync"), "Memcpy HtoD (Pageable -> Device)"),
            ("xpu_runtime", ("urEnqueueKernelLaunch", "urEnqueueKernelLaunchWithArgsExp", "urEnqueueUSMMemcpy"), "Memcpy HtoD (Host -> Device)"),
            ("xpu_driver", ("zeCommandListAppendLaunchKernel", "zeCommandListAppendLaunchKernel", "zeCommandListAppendMemoryCopy"), "zeCommandListAppendMemoryCopy(HostToDevice)"),
            ("privateuse1_runtime", ("aclrtLaunchKernel", "aclnnAdd", "aclrtMemcpy"), "MEMCPY_HtoD")):
        calls = [X(category, name, 12 + 10 * i, 5, correlation=i + 1) for i, name in enumerate(launches)]
        got = tree(write(folder, [op("outer", 0, 100), op("inner", 10, 40), *calls, kernel(50, 20, 1, name="one"), kernel(70, 10, 2, name="two"), copy(copied, 90, 3)]))
        assert rows(got)["inner"]["gpu_self_ns"] == got["totals"]["attributed_ns"] == 31000 and got["totals"]["unattributed_ns"] == 0, (category, got["rows"])
        assert rows(got)["memcpy HtoD"]["path"] == ["outer", "inner", "memcpy HtoD"] and got["integrity"]["without_launch"] == 0, (category, got["rows"])


@case
def a_file_that_holds_events_twice_counts_them_twice_but_no_launch(folder):
    events = [op("a", 0, 50), launch(10, 5, 1), kernel(20, 4, 1)]
    got = tree(write(folder, events + events))
    assert got["integrity"]["conserved"] and got["totals"]["gpu_sum_ns"] == 8000 and got["totals"]["gpus"][0]["busy_ns"] == 4000, got["totals"]
    assert rows(got)["gemm"]["calls"] == 2 and got["integrity"]["launches"] == 1 and got["integrity"]["without_launch"] == 0, got["integrity"]


@case
def ids_that_are_no_ids_lead_nowhere(folder):
    for odd in (-1, 0, None, "", "x", 1.5, True, [1], 18446744073709551615, 18446744073709551616, 1e300):
        got = tree(write(folder, [op("a", 0, 50), launch(10, 5, odd), kernel(20, 4, odd), launch(12, 5, 1), kernel(30, 4, 1)]))
        assert got["integrity"]["conserved"] and got["totals"]["gpu_sum_ns"] == 8000 and rows(got)["a"]["gpu_total_ns"] >= 4000, odd


@case
def several_processes_in_a_file_keep_their_threads_apart(folder):
    events = [op("a", 0, 50, pid=1, tid=1), op("b", 10, 20, pid=2, tid=1), launch(15, 1, 1, pid=1, tid=1), launch(16, 1, 2, pid=2, tid=1), kernel(20, 1, 1, name="ka"), kernel(22, 1, 2, name="kb")]
    paths = {row["name"]: row["path"] for row in tree(write(folder, events))["rows"]}
    assert paths["ka"] == ["a", "ka"] and paths["kb"] == ["b", "kb"] and paths["b"] == ["b"], paths


@case
def each_of_many_threads_is_found_again(folder):
    """The first lookup meets an empty table, later ones meet collisions."""
    threads = [(pid, tid) for tid in [0, 2 ** 31, 2 ** 53, *range(1, 200)] for pid in (0, 7)]
    events = [op("a", 10 * turn, 5, pid=pid, tid=tid) for turn in range(2) for pid, tid in threads]
    got = tree(write(folder, events), "--all")
    assert sum(row["calls"] for row in got["rows"] if row["name"] == "a") == len(events), got["rows"]


@case
def gzip_may_have_members_and_an_end_that_is_missing(folder):
    path = write(folder, of_everything())
    whole = path.read_bytes()
    want = report("tree", path, "-f", "csv").stdout
    members = b"".join(gzip.compress(whole[i:i + 777], 1 + i % 9) for i in range(0, len(whole), 777))
    for name, content in (("members", members), ("empty members", gzip.compress(b"") + members + gzip.compress(b""))):
        (folder / "packed").write_bytes(content)
        assert report("tree", folder / "packed", "-f", "csv").stdout == want, name
    for cut in (900, len(members) // 2, len(members) * 4 // 5):
        (folder / "packed").write_bytes(members[:-cut])
        said = report("tree", folder / "packed", "-f", "json", check=None)
        assert said.returncode == 0 and not json.loads(said.stdout)["integrity"]["complete"], (cut, said)
    (folder / "packed").write_bytes(members[:9000] + b"\0" * 40 + members[9040:])
    assert report("tree", folder / "packed", check=None, timeout=20).returncode in (0, 2)


@case
def a_file_of_random_damage_is_survived(folder):
    path = write(folder, [X("python_function", "nn.Module: Net_0", 0, 900)] + [op("op%d" % i, i * 10, 5) for i in range(30)] + [launch(i * 10 + 1, 2, i + 1) for i in range(30)] +
                 [kernel(i * 10 + 5, 7, i + 1, grid=[4, 1, 1], block=[128, 1, 1]) for i in range(30)], deviceProperties=[{"id": 0, "name": "G"}])
    whole, dice = path.read_bytes(), random.Random(7)
    for round in range(int(os.environ.get("PPERF_TEST_ROUNDS", "60"))):
        broken = bytearray(whole)
        for _ in range(dice.randint(1, 8)):
            at = dice.randrange(len(broken))
            broken[at:at + dice.randint(0, 3)] = bytes(dice.choice(b'{}[]":,\\0-9e\x00\xff') for _ in range(dice.randint(0, 4)))
        (folder / "broken.json").write_bytes(broken)
        said = report("tree", folder / "broken.json", "-f", "json", check=None, timeout=20)
        assert said.returncode in (0, 2), (round, said.returncode, said.stderr)


def processor_time(path):
    """The processor time of the report alone, whatever else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    report("tree", path, "-f", "json")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@case
def numbers_that_thousands_share_take_no_longer(folder):
    """Each backward function used to be compared with every operator of its number, which took 6 s
    here."""
    forward, backward = ({"Sequence number": 4, "Fwd thread id": thread} for thread in (0, 1))
    path = write(folder, [event for i in range(20000) for event in
                          ({**op("aten::mm", i, 1), "args": forward}, {**op("MmBackward0", 20000 + i, 1, tid=2), "args": backward})])
    assert processor_time(path) < 5 * (processor_time(write(folder, [op("aten::mm", i, 1) for i in range(40000)], "plain.json")) + 0.05)


@case
def what_thousands_have_in_common_takes_no_longer(folder):
    """Shared External ids, ends on another thread, arrows to one time, CUDA streams of many process
    groups: each used to be compared with all others."""
    many = range(20000)
    plain = processor_time(write(folder, [event for i in many for event in (op("aten::mm", i, 1), launch(i, 1, i + 1), kernel(i, 1, i + 1))], "plain.json"))
    for name, events in (
            ("id", [event for i in many for event in ({**launch(i * 10, 1, i + 1), "args": {"correlation": i + 1, "External id": 5}},
                                                      {**kernel(i * 10 + 1, 1, 0), "args": {"device": 0, "stream": 7, "External id": 5}})]),
            ("ends", [begins("a", i) for i in many] + [ends(20000 + i, tid=2) for i in many]),
            ("arrows", [op("a", 0, 1)] + [event for i in many for event in (X("cpu_op", "b", 10, 1, tid=2), *({"ph": ph, "cat": "fwdbwd", "name": "fwdbwd", "id": i, "pid": 7, "tid": tid, "ts": ts}
                                                                                                       for ph, tid, ts in (("s", 1, 0), ("f", 2, 10))))]),
            ("groups", [op("a", 0, 1)] + [kernel(i, 1, i + 1, stream=i % 4000, **{"Process Group Name": str(i % 4000), "Seq": i}) for i in many])):
        took = processor_time(write(folder, events, name + ".json"))
        assert took < 6 * (plain + 0.05), (name, took, plain)


@case
def process_groups_are_named_wherever_the_file_names_them(folder):
    """On the kernels, on the operators that launched them, or only in pg_config, which also has
    the ranks that the kernels abbreviate."""
    def trace(name, kernels, operators=(), groups=(), world=40):
        events = [op("a", 0, 1)]
        for at, (stream, external, args) in enumerate(kernels, 1):
            events += [launch(at * 100, 2, at), kernel(at * 100 + 5, 10, at, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=stream, **({"External id": external} if external else {}), **args)]
        events += [X("cpu_op", "record_param_comms", at * 100 - 1, 20, **{"External id": external, **args}) for at, (external, args) in enumerate(operators, 1)]
        path = write(folder, events, name, distributedInfo={"rank": 0, "world_size": world, "pg_config": list(groups)})
        facts = report("info", path, "-f", "json").stdout.decode()
        return dict(re.findall(r'"stream\.0\.(\d+)\.group": *"([^"]*)"', facts)), " ".join(report("info", path).stdout.decode().split())
    def group(name, **args):
        return {"Process Group Name": name, **({"Process Group Ranks": args["ranks"]} if args else {})}
    everyone = "[" + ", ".join(map(str, range(40))) + "]"
    cut = "[" + ", ".join(map(str, range(30))) + ", ...]"
    nccl = {"backend_config": "cuda:nccl"}
    default = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 40, "ranks": [], **nccl} # []: all ranks of the job
    pair = {"pg_name": "1", "pg_size": 2, "ranks": [0, 8], **nccl}
    # Ranks that are cut off, or missing, are those of pg_config.
    found, text = trace("kernels.json", [(20, 0, group("0", ranks=cut)), (21, 0, group("1"))], groups=[default, pair])
    assert found == {"20": "0 " + everyone, "21": "1 [0, 8]"}, found
    assert "2 of 2 streams with kernels of NCCL have one" in text and "not list" not in text, text
    found, text = trace("cut.json", [(20, 0, group("0", ranks=cut)), (21, 0, group("1"))])
    assert found == {"20": "0 " + cut, "21": "1 "} and "of 1 the file does not list the ranks" in text, (found, text)
    # Kernels without the name, whose operator has it. Stream 22 has two groups, stream 23 no operator.
    found, text = trace("operators.json", [(20, 5, {}), (22, 5, {}), (22, 6, {}), (23, 0, {})], operators=[(5, group("0", ranks=cut)), (6, group("1", ranks="[0, 8]"))], groups=[default])
    assert found == {"20": "0 " + everyone}, found
    assert "1 of 3 streams with kernels of NCCL have one; 1 have several, and are not named; of 1 the file names none" in text, text
    # Only pg_config: one group of several ranks and one stream, or no name at all.
    alone = {"pg_name": "2", "pg_size": 1, "ranks": [0], **nccl}
    gloo = {"pg_name": "3", "pg_size": 40, "ranks": [], "backend_config": "cpu:gloo,cuda:gloo"}
    found, text = trace("only.json", [(20, 0, {})], groups=[gloo, alone, pair])
    assert found == {"20": "1 [0, 8]"} and "1 of 1 streams" in text, (found, text)
    for name, streams, groups in (("two.json", (20,), (default, pair)), ("streams.json", (20, 21), (pair,))):
        found, text = trace(name, [(stream, 0, {}) for stream in streams], groups=groups)
        assert not found and "0 of %d streams" % len(streams) in text, (found, text)
    assert "streams with kernels of NCCL" not in " ".join(report("info", write(folder, [op("a", 0, 1)], "none.json")).stdout.decode().split())


@case
def ranges_that_all_outlast_each_other_are_left_out_at_a_depth_no_program_has(folder):
    path = write(folder, [op("op", i, 10000) for i in range(5000)])
    process = view("info", path)
    assert "904 ranges are nested deeper than the limit; they are left out" in json.dumps(process), process
    assert sum(row["calls"] for row in tree(path)["rows"]) == 4096

main()
