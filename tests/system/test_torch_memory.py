#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's allocator, as a model on the simulated device: its reports are recorded, and passed on
as without pperf."""
import json, shutil
from harness import BUILD, PROGRAMS, Skip, case, dump, info, main, report, run, traced
from raw_trace import whole

MIB = 1 << 20


def program(major="13"):
    path = BUILD / "cudasim" / major / "tensors"
    if not path.exists():
        raise Skip("the simulated device is not built: make cudasim")
    return str(path)


def libraries(folder, suffix=""):
    """Builds the model under the names of PyTorch's libraries. Returns the one to load."""
    for name in "c10", "c10_cuda":
        shutil.copy(PROGRAMS / ("lib_%s.so" % name), folder / ("lib%s.so%s" % (name, suffix if name == "c10_cuda" else "")))
    return folder / ("libc10_cuda.so" + suffix)


def tensors(folder, manner, env=None, how=traced, suffix=""):
    env = {"SIM_DEVICES": "2", "SIM_MEM": str(512 * MIB), **(env or {})}
    return how(folder, program(), libraries(folder, suffix), folder / "list", manner, env=env, check=0)


def listed(folder):
    return [json.loads(line) for line in (folder / "list").read_text().splitlines()]


def recorded(folder):
    keys = ("kind", "tid", "address", "bytes", "allocated", "reserved", "device")
    return [{k: int(r[k], 16) if k == "address" and k in r else r.get(k, 0) for k in keys} for r in dump(folder / "trace.bin", {"tensor", "oom"})]


@case
def every_report_is_recorded_in_the_order_in_which_it_was_made(folder):
    for manner in "native", "old":
        tensors(folder, manner)
        want, have = listed(folder), recorded(folder)
        assert len(want) == 4 * 50 * 4 + 4 * 8 + 4 * 4, len(want)
        for device in 0, 1: # each device has a lock of its own, so order is defined per device only
            assert [r for r in want if r["device"] == device] == [r for r in have if r["device"] == device], manner
        state = info(folder / "trace.bin")["rows"][0]["meta"]["source.torch_memory"]
        assert state == "on", state


@case
def pytorchs_own_functions_are_notified_as_without_us(folder):
    for manner in "native", "old", "exhaust", "silent":
        for env in None, {"PPERF_TENSORS": "0"}, {"PPERF_CUDA": "0"}, {"PPERF_DISABLE": "1"}:
            bare, under = tensors(folder, manner, how=run), tensors(folder, manner, env=env)
            assert bare.stdout.startswith(b"usages ") and not under.stderr, under
            if manner in ("exhaust", "silent"): # on one thread the sums agree too
                assert bare.stdout == under.stdout, (manner, env, bare.stdout, under.stdout)
            else:
                assert bare.stdout.split(b"check")[0] == under.stdout.split(b"check")[0], (manner, env, bare.stdout, under.stdout)


@case
def a_record_is_at_its_node_and_on_its_thread(folder):
    tensors(folder, "native")
    trace = whole(folder / "trace.bin")
    nodes = {n.node: n for n in trace.dictionary["NODE"]}
    sizes = {}
    for record in trace.records:
        if record.kind in ("TENSOR", "TENSOR_NEXT"):
            name = trace.names[nodes[record.node].name]
            bytes_ = record.bytes if record.kind == "TENSOR" else (record.block >> 40) * 512 * (-1 if record.flags & 128 else 1)
            sizes.setdefault(name, []).append(bytes_)
    assert sorted(sizes) == ["clean", "even", "keeps", "odd"]
    assert len(sizes["keeps"]) == 32 and min(sizes["keeps"]) > 0 and max(sizes["clean"]) < 0 and len(sizes["clean"]) == 16


@case
def most_records_are_short_and_one_in_64_is_whole(folder):
    tensors(folder, "native")
    kinds = [r.kind for r in whole(folder / "trace.bin").records if r.kind.startswith("TENSOR")]
    short, long = kinds.count("TENSOR_NEXT"), kinds.count("TENSOR")
    segments = 2 * (max(r["reserved"] for r in listed(folder)) // (2 * MIB)) # each changes the reserved memory
    assert len(kinds) == len(listed(folder)) and len(kinds) // 64 <= long <= len(kinds) // 64 + segments + 4, (short, long, segments)


@case
def memory_of_the_cpu_is_passed_on_and_not_recorded(folder):
    result = tensors(folder, "silent")
    assert result.stdout.startswith(b"usages 1 and 0, out of memory 0 and 0, 777 bytes"), result.stdout
    assert not recorded(folder)


@case
def with_PPERF_TENSORS_0_nothing_of_it_is_recorded(folder):
    tensors(folder, "native", env={"PPERF_TENSORS": "0"})
    assert not recorded(folder) and dump(folder / "trace.bin", {"alloc"})
    assert info(folder / "trace.bin")["rows"][0]["meta"]["source.torch_memory"] == "off: PPERF_TENSORS=0 (0)"


@case
def an_allocator_that_does_not_report_is_said_to(folder):
    for manner, words in ("async", "cudaMallocAsync"), ("silent", "reported no tensor"):
        tensors(folder, manner)
        state = info(folder / "trace.bin")["rows"][0]["meta"]["source.torch_memory"]
        assert not recorded(folder) and state.startswith("partial: ") and words in state, (manner, state)


@case
def the_last_words_before_memory_runs_out_are_recorded(folder):
    tensors(folder, "exhaust")
    want, have = listed(folder), recorded(folder)
    assert want == have and have[-1]["kind"] == "oom", have[-1]


@case
def what_the_screen_says_of_it_is_what_happened(folder):
    tensors(folder, "exhaust")
    last = listed(folder)[-1]
    view = json.loads(report("memory", folder / "trace.bin", "-f", "json").stdout)
    oom, = view["totals"]["ooms"]
    assert oom["path"] == ["train", "step: *", "history"] and oom["tid"] == last["tid"], oom
    assert (oom["asked_bytes"], oom["allocated_bytes"], oom["reserved_bytes"]) == (20 * MIB, last["allocated"], last["reserved"]), oom
    tensor_rows = {r["id"] for r in view["rows"] if r["depth"] == 0 and r["memory_kind"] == "tensor"}
    owners = {tuple(r["path"]): r["at_oom_bytes"] for r in view["rows"] if r.get("parent") in tensor_rows and "at_oom_bytes" in r}
    assert owners == {("train", "(before first step)", "weights"): 100 * MIB, ("train", "step: *", "forward"): 60 * MIB,
                      ("train", "step: *", "history"): last["allocated"] - 160 * MIB}, owners
    assert view["integrity"]["tensor_differences"] == view["integrity"]["unknown_tensor_frees"] == 0 and view["integrity"]["conserved"]
    text = report(folder / "trace.bin").stdout.decode()
    assert text.startswith("OOM       out of memory on GPU 0 after ") and "20.97 MB requested in" in text, text


@case
def no_byte_of_many_threads_is_lost_or_counted_twice(folder):
    tensors(folder, "native")
    view = json.loads(report("tree", folder / "trace.bin", "-f", "json").stdout)
    taken = sum(r["bytes"] for r in listed(folder) if r["bytes"] > 0)
    assert view["totals"]["tensor_alloc_bytes"] == taken and view["integrity"]["tensor_differences"] == 0, view["totals"]
    assert view["integrity"]["conserved"] and view["integrity"]["complete"], (view["integrity"], view["warnings"])
    for device in (0, 1): # without --device, the GPU that is first in the trace
        peak = max(r["allocated"] for r in listed(folder) if r["device"] == device)
        view = json.loads(report("tree", folder / "trace.bin", "-f", "json", "--device", str(device)).stdout)
        assert view["totals"]["allocated_peak_bytes"] == peak, (device, view["totals"], peak)


main()
