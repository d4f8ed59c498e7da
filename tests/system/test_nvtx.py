#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every NVTX call is in the trace: its exact bytes, domain, category, colour, payload, in order for each thread."""
import json, os, shutil
from exact_times import compare
from harness import *

@case
def every_call_in_C_is_recorded_exactly(folder):
    traced(folder, "nvtx_calls", "expected", PROGRAMS / "lib_nvtx_copy.so")
    compare(folder / "expected", folder / "trace.bin")


@case
def every_call_in_CPP_is_recorded_exactly(folder):
    traced(folder, "nvtx_calls_cpp", "expected")
    compare(folder / "expected", folder / "trace.bin")


@case
def a_library_that_NVTX_itself_loads_records_the_same(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime cannot be loaded late")
    run(folder, "nvtx_calls", "expected", PROGRAMS / "lib_nvtx_copy.so", env={"NVTX_INJECTION64_PATH": str(LIBRARY)}, check=0)
    compare(folder / "expected", folder / "trace.bin")


@case
def a_process_with_threads_that_loads_us_keeps_its_environment(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime cannot be loaded late")
    for thread, variables in (((), OURS), (("thread",), OURS[:1])):
        result = run(folder, "late", *thread, env={"NVTX_INJECTION64_PATH": str(LIBRARY)}, check=0)
        assert result.stdout.decode().split() == list(variables), (thread, result.stdout)
        assert names(folder / "trace.bin") == ["late"]
        (folder / "trace.bin").unlink()


@case
def extensions_of_early_headers_begin_too(folder):
    assert traced(folder, "old_extension", LIBRARY).stdout == b"1 filled filled 4711\n"


@case
def instances_that_come_and_go_and_begin_at_once_are_recorded(folder):
    traced(folder, "reloads", PROGRAMS / "lib_nvtx_copy.so", 50)
    found = names(folder / "trace.bin")
    assert found.count("reloaded") == 50 and found.count("at once") == 8, (found.count("reloaded"), found.count("at once"))


@case
def another_injection_behaves_as_without_us(folder):
    other = PROGRAMS / "lib_other_injection.so"
    tool = {"NVTX_INJECTION64_PATH": str(other)}
    alone = run(folder, "nvtx_calls", "expected", env={**tool, "OTHER_TOOL": str(folder / "alone")})
    both = traced(folder, "nvtx_calls", "expected", env={**tool, "OTHER_TOOL": str(folder / "both")}, check=None)
    # Ends of ranges whose start it does not handle carry an id that is not its own.
    seen = [sorted(line for line in (folder / name).read_bytes().splitlines() if not line.startswith(b"end") or line == b"end 4711")
            for name in ("alone", "both")]
    assert seen[0] == seen[1] and len(seen[0]) > 1000, (len(seen[0]), [set(a) ^ set(b) for a, b in [seen]])
    assert alone.returncode == both.returncode == 1 and alone.stdout == both.stdout
    levels = [{line for line in result.stderr.splitlines() if b"returned 10" in line or b"returned 200" in line} for result in (alone, both)]
    assert levels[0] == levels[1] and levels[0], levels
    found = traces(folder)
    assert not found or dump(found[0], {"push"}), "a trace without ranges"


@case
def another_tool_that_cannot_start_leaves_no_error_to_the_program(folder):
    for tool in ("libm.so.6", "/no/such/library.so"):
        result = traced(folder, "late", env={"NVTX_INJECTION64_PATH": tool})
        assert b"undefined symbol" not in result.stdout and b"cannot open" not in result.stdout, result.stdout
        assert "could not be started" in info(folder / "trace.bin")["rows"][0]["meta"]["warning.nvtx_chain"]


@case
def threads_that_call_while_another_tool_is_starting_are_recorded(folder):
    tool = {"NVTX_INJECTION64_PATH": str(PROGRAMS / "lib_other_injection.so"), "OTHER_TOOL": "/dev/null", "OTHER_TOOL_SLOW": "1"}
    traced(folder, "reloads", PROGRAMS / "lib_nvtx_copy.so", 1, env=tool)
    assert names(folder / "trace.bin").count("at once") == 8, names(folder / "trace.bin")


@case
def pperf_named_as_the_other_tool_is_not_called_by_itself(folder):
    shutil.copy(LIBRARY, folder / "libpperf.so")
    shutil.copy(LIBRARY, folder / "tool.so")
    os.symlink(LIBRARY, folder / "link.so")
    for there, recorded in (("link.so", {10}), ("libpperf.so", {10}), ("tool.so", {10, 20})):
        traced(folder, "ranges", 1, 10, env={"NVTX_INJECTION64_PATH": str(folder / there)})
        assert sum(len(names(t)) for t in traces(folder)) in recorded, (there, traces(folder))
        for path in traces(folder):
            path.unlink()
    traced(folder, "ranges", 1, 10, env={"LD_PRELOAD": preload() + " " + str(folder / "libpperf.so")})
    assert sum(len(names(t)) for t in traces(folder)) == 10, traces(folder)


@case
def a_signal_handler_may_call_NVTX_anywhere(folder):
    result = traced(folder, "signals", 2000)
    marks, ranges = map(int, result.stdout.split())
    records = dump(folder / "trace.bin")
    lost = info(folder / "trace.bin")["integrity"]["lost_events"]
    found = [sum(r["kind"] == kind for r in records) for kind in ("mark", "push", "pop")]
    assert found[1] == found[2] == ranges, (found, ranges)
    assert found[0] + lost == marks, (found, lost, marks)


def counted(folder, threads, pairs):
    traced(folder, "ranges", threads, pairs)
    opened, closed = {}, {}
    for record in dump(folder / "trace.bin", {"push", "pop"}):
        counts = opened if record["kind"] == "push" else closed
        counts[record["tid"]] = counts.get(record["tid"], 0) + 1
    assert len(opened) == threads and set(opened.values()) == {pairs} and opened == closed, (threads, opened)
    assert info(folder / "trace.bin")["integrity"]["complete"]


@case
def one_to_sixty_four_threads_lose_nothing(folder):
    for threads, pairs in ((1, 20000), (2, 10000), (3, 5000), (16, 1000), (64, 500)):
        counted(folder, threads, pairs)
        (folder / "trace.bin").unlink()


@case
def a_hundred_thousand_short_threads_are_all_there_and_leave_a_small_file(folder):
    count = 100000 if VARIANT == "plain" else 3000
    traced(folder, "churn", count, timeout=300)
    records = dump(folder / "trace.bin", {"push", "pop"})
    assert len(records) == 2 * count, len(records)
    assert len({r["tid"] for r in records}) > 1
    size = (folder / "trace.bin").stat().st_size
    assert size < 600 * count + (1 << 20), "%d bytes, %d a thread" % (size, size // count)


@case
def ten_million_ranges_are_counted_to_the_last(folder):
    pairs = 5000000 if VARIANT == "plain" else 100000
    traced(folder, "ranges", 2, pairs, 1000, timeout=300)
    tree = json.loads(report("tree", folder / "trace.bin", "-f", "json", "--no-fold").stdout)
    calls = sum(row["calls"] for row in tree["rows"] if row["kind"] == "range")
    assert calls == 2 * pairs and tree["integrity"]["complete"], (calls, tree["integrity"])
    size = (folder / "trace.bin").stat().st_size
    assert VARIANT != "plain" or size < 16 * 2 * pairs, "%.1f bytes a pair" % (size / 2 / pairs)


@case
def texts_beyond_the_budget_do_not_grow_the_memory_and_are_all_there(folder):
    traced(folder, "ranges", 1, 400000, 400000)
    found = names(folder / "trace.bin")
    assert len(found) == 400000 and len(set(found)) == 400000, (len(found), len(set(found)))


main()
