#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The interposed CUDA runtime, on stand-in runtimes without CUDA. The program sees no difference,
its calls go to the same library as without pperf, and each call is recorded once with its
arguments."""
import os, re, subprocess
from harness import BUILD, LIBRARY, PRELOADS, ROOT, SANITIZED, Skip, case, main, run, traced
from raw_trace import whole

SYMBOLS = BUILD / "tests" / "symbols"
DIRECT12, DIRECT13 = str(SYMBOLS / "direct12"), str(SYMBOLS / "direct13")
HOST = str(SYMBOLS / "host")
PATHS = {"LD_LIBRARY_PATH": ":".join(str(SYMBOLS / f) for f in ("12", "13", "renamed", "driver"))}
FUNCTIONS = re.findall(r"^\tX\((\w+), ", (ROOT / "preload/cuda/real.h").read_text(), re.M)
UNRECORDED = [f for f in FUNCTIONS if "apture" in f or f == "__cudaGetKernel"]


def client(name):
    return str(SYMBOLS / ("client%s.so" % name))


def both(folder, *command, env=None, preload=None, check=0):
    """Runs the client without and with the library, fails if the output differs, and returns it."""
    bare = run(folder, *command, env={**PATHS, **(env or {})}, check=check)
    more = {"LD_PRELOAD": preload} if preload else {}
    under = traced(folder, *command, env={**PATHS, **(env or {}), **more}, check=check)
    assert under.stdout == bare.stdout, "the program saw something else:\n%s\n%s" % (bare.stdout.decode(), under.stdout.decode())
    assert under.stderr == bare.stderr, under.stderr.decode()
    return bare.stdout.decode()


def calls_made(output):
    """(function, result) of each call that pperf records, as the client printed them."""
    lines = re.findall(r"^(\w+): (\d+), errno", output, re.M)
    made = [(f, int(r)) for f, r in lines if f in FUNCTIONS and f not in UNRECORDED]
    return [c for c in made for _ in range(2 if c[0] == "cudaLaunchCooperativeKernelMultiDevice" else 1)]


def compare(output, trace):
    assert [(c.api, c.result) for c in trace.calls] == calls_made(output)
    assert not any(trace.lost)


def one(trace, api, **wanted):
    found = [c for c in trace.calls if c.api == api and all(getattr(c, k) == v for k, v in wanted.items())]
    assert len(found) == 1, "%d records of %s with %s" % (len(found), api, wanted)
    return found[0]


@case
def the_list_and_the_map_agree(folder):
    exported = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in exported.splitlines()}
    assert len(FUNCTIONS) == 42 and set(FUNCTIONS) <= names, set(FUNCTIONS) - names
    assert {n for n in names if "cuda" in n} == set(FUNCTIONS)


@case
def a_program_linked_with_the_runtime_sees_no_difference(folder):
    for major, version in ("12", "12080"), ("13", "13000"):
        output = both(folder, {"12": DIRECT12, "13": DIRECT13}[major])
        trace = whole(folder / "trace.bin")
        compare(output, trace)
        assert trace.meta["source.cuda_symbols"] == "on" and trace.meta["version.cuda_runtime"] == version
        os.unlink(folder / "trace.bin")


@case
def every_function_of_the_list_is_called_by_the_client(folder):
    output = both(folder, DIRECT12)
    assert set(re.findall(r"^(\w+): ", output, re.M)) >= set(FUNCTIONS) - {"cudaStreamBeginCaptureToGraph_ptsz"}


@case
def calls_go_to_the_runtime_that_the_linker_would_have_chosen(folder):
    rows = [
        (["local", "12", "local", "13"], "12080, 13000"),
        (["local", "13", "local", "_renamed", "local", "12"], "13000, 12040, 12080"),
        (["local", "13", "global", "12", "local", "_renamed"], "13000, 12080"),
        (["global", "_renamed", "local", "12", "local", "13", "local", "_silent"], "12040, 13000"),
        (["global", "13", "local", "_silent"], "13000"),
        (["local", "12", "local", "12"], "12080"),
    ]
    for row, versions in rows:
        output = both(folder, HOST, *[a if a in ("local", "global") else client(a) for a in row])
        trace = whole(folder / "trace.bin")
        compare(output, trace)
        assert trace.meta["version.cuda_runtime"] == versions, trace.meta["version.cuda_runtime"]
        os.unlink(folder / "trace.bin")


@case
def another_interposer_is_called_as_it_would_be_without_us(folder):
    other, library = str(SYMBOLS / "other.so"), " ".join([*PRELOADS, str(LIBRARY)])
    for order in (library + " " + other, " ".join([*PRELOADS, other, str(LIBRARY)])):
        bare = run(folder, DIRECT13, env={**PATHS, "LD_PRELOAD": other}, check=0)
        under = run(folder, DIRECT13, env={**PATHS, "LD_PRELOAD": order}, check=0)
        assert b"the other one saw 3" in bare.stdout and bare.stdout == under.stdout
        compare(bare.stdout.decode(), whole(folder / "trace.bin"))
        os.unlink(folder / "trace.bin")


@case
def allocations_say_how_much_where_and_of_what_kind(folder):
    both(folder, DIRECT13)
    trace = whole(folder / "trace.bin")
    device, array, pinned, managed = 3, 4, 2, 5
    pool, registered, mapped = 1, 2, 4
    rows = [
        ("cudaMallocPitch", 512 * 20, device, 0), ("cudaMalloc3D", 512 * 10 * 5, device, 0), ("cudaMallocManaged", 5000, managed, 0),
        ("cudaMallocArray", 8 * 16 * 8, array, 0), ("cudaMalloc3DArray", 8 * 16 * 8 * 4, array, 0),
        ("cudaMallocMipmappedArray", 8 * (16 * 8 + 8 * 4 + 4 * 2), array, 0), ("cudaMallocHost", 777, pinned, 0),
        ("cudaHostAlloc", 888, pinned, mapped), ("cudaHostRegister", 64, pinned, registered), ("cudaMallocAsync_ptsz", 4002, device, pool),
        ("cudaMallocFromPoolAsync", 4003, device, pool), ("cudaMallocFromPoolAsync_ptsz", 4004, device, pool),
    ]
    for api, size, kind, flags in rows:
        record = one(trace, api)
        assert (record.bytes, record.memory_kind, record.mflags, record.device) == (size, kind, flags, 1), record
    assert one(trace, "cudaMalloc", result=0).bytes == 1000
    assert one(trace, "cudaMalloc", result=2).bytes == 3 << 30 and one(trace, "cudaMalloc", result=2).address == 0
    given = {r.address for r in trace.calls if r.kind == "ALLOC" and r.address}
    returned = {r.address for r in trace.calls if r.kind == "FREE" and not r.result and r.address}
    assert len(given) == 15 and given - returned == {one(trace, "cudaMallocAsync", bytes=4005).address}
    assert one(trace, "cudaFree", result=1).address == 1


@case
def streams_are_those_that_were_meant(folder):
    both(folder, DIRECT13)
    trace = whole(folder / "trace.bin")
    for record in trace.calls:
        if record.api.endswith("_ptsz") and record.api != "cudaLaunchKernelExC_ptsz":
            assert record.stream == 2, record
        elif record.api in ("cudaMallocFromPoolAsync", "cudaFreeAsync", "cudaLaunchCooperativeKernel", "__cudaLaunchKernel"):
            assert record.stream == 0x5000, record


@case
def launches_say_what_was_launched_and_how(folder):
    both(folder, DIRECT12)
    trace = whole(folder / "trace.bin")
    stub = one(trace, "cudaLaunchCooperativeKernel", flags=0).function
    assert one(trace, "cudaLaunchKernel", result=9).block == (2048, 1, 1)
    config = one(trace, "cudaLaunchKernelExC", result=0)
    assert (config.grid, config.block, config.shared_bytes, config.stream, config.function) == ((4, 3, 2), (64, 2, 1), 48, 0x5000, stub)
    assert [(r.grid, r.block, r.shared_bytes) for r in trace.calls if "MultiDevice" in r.api] == [((4, 3, 2), (64, 2, 1), 8), ((64, 2, 1), (4, 3, 2), 9)]
    assert config.name == 0
    handles = [(r.shared_bytes, trace.names[r.name]) for r in trace.calls if r.api.startswith("__")]
    assert handles == [(0, "_Z7nvcc_13Pf")] * 3 + [(1, "_Z5laterPf")], handles
    assert any(m.start <= stub < m.end and m.path.endswith("direct12") and len(m.build_id) == 40 for m in trace.modules)
    assert [r.exec for r in trace.calls if r.kind == "GRAPH_LAUNCH"] == [0x88, 0x88, 0, 0x88]


@case
def what_was_captured_is_marked(folder):
    both(folder, DIRECT13)
    trace = whole(folder / "trace.bin")
    captured = [(r.api, r.stream) for r in trace.calls if r.flags & 1]
    assert captured == [("cudaLaunchKernel", 0x5000), ("cudaMallocAsync", 0x5000), ("cudaLaunchKernel", 0x5000), ("cudaLaunchKernel_ptsz", 2),
                        ("cudaGraphLaunch", 0x5000), ("cudaLaunchCooperativeKernel", 0x5000)], captured


@case
def stacks_begin_at_the_call_and_lie_in_objects_that_are_described(folder):
    for setting, kinds in (None, {"ALLOC"}), ("alloc", {"ALLOC"}), ("launch", {"ALLOC", "LAUNCH", "GRAPH_LAUNCH"}), ("off", set()):
        both(folder, HOST, "local", client("13"), env={"PPERF_STACKS": setting})
        trace = whole(folder / "trace.bin")
        assert "warning.stacks" not in trace.meta, trace.meta["warning.stacks"]
        assert {r.kind for r in trace.calls if r.stack} == kinds
        assert all(r.stack for r in trace.calls if r.kind in kinds)
        assert len([r for r in trace.records if r.kind == "SELF" and r.what == 4]) == len([r for r in trace.calls if r.stack])
        for frames in trace.stacks.values():
            homes = [[os.path.basename(m.path) for m in trace.modules if m.start <= f < m.end] for f in frames]
            assert homes[0] == ["client13.so"] and ["host"] in homes and all(homes) and 3 <= len(frames) <= 64, homes
        os.unlink(folder / "trace.bin")


@case
def without_libunwind_the_reason_is_said(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime must stay loadable")
    hidden = folder / "empty"
    hidden.mkdir()
    (hidden / "libunwind.so.8").write_text("not a library")
    traced(folder, DIRECT13, env={"LD_LIBRARY_PATH": str(hidden) + ":" + PATHS["LD_LIBRARY_PATH"]}, check=0)
    trace = whole(folder / "trace.bin")
    assert "libunwind.so.8" in trace.meta["warning.stacks"] and trace.meta["source.cuda_symbols"] == "on"
    assert not any(r.stack for r in trace.calls) and len(trace.calls) > 40


@case
def without_a_runtime_calls_fail_and_nothing_recurses(folder):
    output = traced(folder, HOST, "ask", check=0).stdout.decode()
    assert output == "cudaMalloc: there, 3\n", output
    trace = whole(folder / "trace.bin")
    assert trace.meta["source.cuda_symbols"].startswith("off: ") and trace.meta["source.cuda_symbols"].endswith(" (3)")
    assert [(c.api, c.result, c.device) for c in trace.calls] == [("cudaMalloc", 3, 0xFFFFFFFF)]


@case
def switched_off_calls_pass_and_leave_nothing(folder):
    for setting in {"PPERF_CUDA": "0"}, {"PPERF_DISABLE": "1"}:
        both(folder, DIRECT13, env=setting)
        assert not (folder / "trace.bin").exists()


@case
def a_call_site_that_has_called_once_needs_the_linker_no_more(folder):
    both(folder, str(SYMBOLS / "sites"))
    trace = whole(folder / "trace.bin")
    assert len(trace.calls) == 4000 and {c.api for c in trace.calls} == {"cudaFree"} and not any(trace.lost)


@case
def the_first_call_of_many_threads_at_once_fails_in_none(folder):
    """More threads look for the runtime than runtimes are kept. None of them waits for another."""
    both(folder, str(SYMBOLS / "first_calls"), 40)
    trace = whole(folder / "trace.bin")
    assert [(c.api, c.result) for c in trace.calls] == [("cudaFree", 0)] * 40 and not any(trace.lost)


@case
def threads_record_all_they_do(folder):
    for threads, each in (1, 20000), (16, 2000):
        traced(folder, HOST, "threads", client("12"), threads, each, env=PATHS, check=0)
        trace = whole(folder / "trace.bin")
        assert len(trace.calls) == 2 * threads * each and len({c.thread for c in trace.calls}) == threads and not any(trace.lost)
        for thread in {c.thread for c in trace.calls}:
            own = [c for c in trace.calls if c.thread == thread]
            assert all(a.address == f.address and a.kind == "ALLOC" and f.kind == "FREE" for a, f in zip(own[::2], own[1::2]))
            assert all(a.stamp <= f.stamp - f.duration for a, f in zip(own[::2], own[1::2]))
        os.unlink(folder / "trace.bin")


@case
def a_forked_child_has_its_own(folder):
    traced(folder, HOST, "fork", client("12"), env=PATHS, check=0)
    sizes = sorted(len(whole(path).calls) for path in folder.glob("trace*.bin"))
    assert sizes == [10, 60], sizes


main()
