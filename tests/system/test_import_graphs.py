#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Launches of CUDA graphs in one file of torch.profiler, their captures in another (--graphs). The
kernels get the ranges that they had at the capture. One real pair: sglang (PPERF_TEST_DATA)."""
import json, os, pathlib
from harness import REPORT, Skip, case, main, report, run

BEGIN, END, LAUNCH = "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaLaunchKernel"


def X(category, name, start, duration, tid=1, pid=7, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


def call(name, start, correlation=0, **more):
    return X("cuda_runtime", name, start, 2, correlation=correlation or start, **more)


def module(name, start, duration, **more):
    return X("python_function", "nn.Module: " + name, start, duration, **more)


def write(folder, name, events):
    path = folder / name
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def capture(at=1000, names=(None, None, None), net="Net_0"):
    """A step, in it a capture: Net_0 { Linear_0 { aten::addmm: 2 kernels } aten::relu: 1 } and,
    before the capture, a kernel that runs."""
    def launch(start, kernel):
        return call(LAUNCH, start, **({"kernel": kernel} if kernel else {}))
    return [X("user_annotation", "capture_32", at, 900), call(LAUNCH, at + 10, at + 10), X("kernel", "eager", at + 20, 5, pid=0, tid=7, correlation=at + 10, device=0, stream=7),
            call(BEGIN, at + 50), module(net, at + 100, 500), module("Linear_0", at + 110, 200), X("cpu_op", "aten::addmm", at + 120, 100),
            launch(at + 130, names[0]), launch(at + 140, names[1]), X("cpu_op", "aten::relu", at + 400, 50), launch(at + 410, names[2]),
            call(END, at + 800), call("cudaGraphInstantiate", at + 810)]


def replay(names=("a", "b", "c"), launches=2, starts=(0, 20, 40)):
    events = [X("user_annotation", "decode", 5000, 1000 * launches)]
    for i in range(launches):
        at = 5000 + 1000 * i
        events.append(call("cudaGraphLaunch", at + 10, 90 + i))
        events += [X("kernel", name, at + 100 + start, 10, pid=0, tid=7, correlation=90 + i, device=0, stream=7) for name, start in zip(names, starts)]
    return events


def paths(trace, captures):
    """The paths of kernels below the graph, with their calls; and the warnings."""
    arguments = ["tree", trace, "--graphs", captures, "-f", "json", "--no-fold", "--no-steps"]
    view = json.loads(report(*arguments).stdout)
    assert view["integrity"]["conserved"] and view["integrity"]["unattributed"] == 0
    found = {"/".join(row["path"][row["path"].index("graph") + 1:]): row["calls"] for row in view["rows"] if row["kind"] == "kernel" and "graph" in row["path"]}
    info = json.loads(report("info", trace, "--graphs", captures, "-f", "json").stdout)["rows"][0]["meta"]
    return found, info["import.graphs"], info.get("warning.import_captures", "")


ADDMM, RELU = "Net.0/Linear.0/aten::addmm/", "Net.0/aten::relu/"
PLACED = {ADDMM + "a": 2, ADDMM + "b": 2, RELU + "c": 2}


@case
def kernels_of_a_graph_have_the_ranges_of_the_capture(folder):
    """By their order, and by their names where the capture has them. What was open around the
    capture is left out."""
    for names in ((None, None, None), ("a", "b", "c")):
        found = paths(write(folder, "replay.json", replay()), write(folder, "capture.json", capture(names=names)))
        assert found == (PLACED, "2 of 2", ""), (names, found)


@case
def without_the_capture_kernels_are_directly_below_the_graph(folder):
    view = json.loads(report("tree", write(folder, "replay.json", replay()), "-f", "json").stdout)
    assert {tuple(row["path"]) for row in view["rows"] if row["kind"] == "kernel"} == {("decode", "graph", name) for name in "abc"}


@case
def of_several_captures_the_one_with_the_same_kernels_counts(folder):
    captures = write(folder, "capture.json", capture(1000, ("a", "x", "c"), "Other_0") + capture(3000, ("a", "b", "c")))
    assert paths(write(folder, "replay.json", replay()), captures) == (PLACED, "2 of 2", "")


@case
def kernels_that_ran_in_another_order_are_known_by_their_names(folder):
    trace = write(folder, "replay.json", replay(("c", "b", "a")))
    assert paths(trace, write(folder, "capture.json", capture(names=("a", "b", "c")))) == (PLACED, "2 of 2", "")
    found, count, warning = paths(trace, write(folder, "capture.json", capture(names=("a", "b", "d"))))
    assert found == {"a": 2, "b": 2, "c": 2} and count == "0 of 2" and "2 of 2 graph launches match no capture" in warning, (found, warning)


@case
def captures_with_different_ranges_are_not_guessed_between(folder):
    trace = write(folder, "replay.json", replay())
    found, count, warning = paths(trace, write(folder, "capture.json", capture(1000, net="Other_0") + capture(3000)))
    assert found == {"a": 2, "b": 2, "c": 2} and count == "0 of 2" and "several with other ranges" in warning, (found, warning)
    assert paths(trace, write(folder, "capture.json", capture(1000) + capture(3000))) == (PLACED, "2 of 2", "")


@case
def a_launch_with_another_number_of_kernels_is_left_as_it_is(folder):
    trace = write(folder, "replay.json", replay(("a", "b"), 1))
    found, count, warning = paths(trace, write(folder, "capture.json", capture()))
    assert found == {"a": 1, "b": 1} and count == "0 of 1" and "--graphs" in warning, (found, warning)
    assert "match no capture" in report("info", trace, "--graphs", folder / "capture.json").stdout.decode()


@case
def a_captured_memset_may_run_as_a_kernel(folder):
    events = capture()
    events[7]["name"] = "cudaMemsetAsync"
    assert paths(write(folder, "replay.json", replay()), write(folder, "capture.json", events)) == (PLACED, "2 of 2", "")


@case
def autograd_captures_from_a_thread_of_its_own(folder):
    events = capture()
    for event in events[9:11]:
        event["tid"] = 2
    found, count, _ = paths(write(folder, "replay.json", replay()), write(folder, "capture.json", events))
    assert found == {ADDMM + "a": 2, ADDMM + "b": 2, "aten::relu/c": 2} and count == "2 of 2", found


@case
def a_file_that_cannot_be_used_is_refused_with_a_sentence(folder):
    trace, captures = write(folder, "replay.json", replay()), write(folder, "capture.json", capture())
    for path, expected in ((folder / "absent.json", "absent.json"), (trace, "has no captures of CUDA graphs"), (REPORT, "is not a file of")):
        said = report("tree", trace, "--graphs", path, check=2).stderr.decode()
        assert expected in said and said.count("\n") == 1, said
    text = captures.read_text()
    for cut in range(0, len(text), 211): # a file that ends in the middle: refused, or what precedes it is used
        (folder / "cut.json").write_text(text[:cut])
        result = run(folder, str(REPORT), "tree", str(trace), "--graphs", str(folder / "cut.json"))
        assert result.returncode in (0, 2), (cut, result)


@case
def sglang_decodes_what_it_captured(folder):
    data = pathlib.Path(os.environ.get("PPERF_TEST_DATA") or "/nonexistent") / "verdicts"
    trace, captures = data / "tl__inference~sglang_decode~sglang_Qwen3-8B_decode.json.gz", data / "tl__inference~sglang_decode~capture_traces~bs_32_rank0.json.gz"
    if not trace.exists() or not captures.exists():
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    found, count, warning = paths(trace, captures)
    assert count == "1 of 1" and not warning and sum(found.values()) == 544, (count, warning, sum(found.values()))
    layers = {path.split("/")[1] for path in found if path.startswith("Qwen3Model.0/Qwen3DecoderLayer.")}
    assert layers == {"Qwen3DecoderLayer.%d" % i for i in range(36)}, layers
    attention = {path for path in found if "/Qwen3Attention.7/" in path}
    assert len({path.split("/")[3] for path in attention}) >= 4 and any("paged_attention" in path for path in attention), attention


if __name__ == "__main__":
    main()
