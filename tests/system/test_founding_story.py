#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The story that pperf was written for, as a C++ program with its own allocator: memory grows in the
q-gate of one loop closure, stays reserved, and a later request fails. One run, with plain NVTX ranges
and cudaMalloc, on the simulated device. The figures are those that the program prints."""
import difflib, json, pathlib, re
from harness import BUILD, Skip, case, main, report, traced

SCREENS = pathlib.Path(__file__).parent / "screens"
MIB = 1 << 20
PRINTED = re.compile(rb"out of memory: (\d+) bytes; (\d+) in (\d+) segments, (\d+) in (\d+) blocks, the largest gap (\d+)\n")


def recorded(folder, major="13", capacity=480):
    """What the program knows of itself (requested, reserved, segments, used, blocks, largest gap), and
    the trace."""
    program = BUILD / "cudasim" / major / "slam"
    if not program.exists():
        raise Skip("the simulated device is not built (no %s)" % program)
    (folder / major).mkdir(exist_ok=True)
    result = traced(folder / major, program, env={"SIM_MEM": str(capacity * MIB)})
    assert result.stderr == b"", result.stderr
    return [int(figure) for figure in PRINTED.fullmatch(result.stdout).groups()], folder / major / "trace.bin"


def rows(view, trace, *options):
    return json.loads(report(view, trace, "-f", "json", "-n", "0", *options).stdout)["rows"]


def screen(trace, *view):
    """A screen without times, and without the function that the compiler may have inlined."""
    text = report(*view, trace, "--width", "110").stdout.decode()
    text = re.sub(r"after \d+(\.\d+)? (ns|µs|ms|s)\b", "after TIME", text.replace(str(trace.parent) + "/", ""))
    return re.sub(r"called\s+from \S+ \(slam\)", "called from PLACE", text)


@case
def one_run_says_where_memory_grew_what_stayed_and_why_it_ran_out(folder):
    _, trace = recorded(folder)
    summary = screen(trace)
    shown = "\n".join(("$ pperf-report trace.bin | sed '/^verdict/,$d'", summary[:summary.index("verdict")],
                       "$ pperf-report critical -m reserved trace.bin", screen(trace, "critical", "-m", "reserved"),
                       "$ pperf-report memory trace.bin", screen(trace, "memory")))
    expected = (SCREENS / "slam.txt").read_text()
    assert shown == expected, "\n".join(difflib.unified_diff(expected.splitlines(), shown.splitlines(), lineterm=""))


@case
def the_figures_are_the_programs_own(folder):
    for major in "12", "13":
        (requested, reserved, segments, used, blocks, gap), trace = recorded(folder, major)
        # The program's own account: enough was free for the request, but not in one piece.
        assert reserved - used > requested > gap and blocks == 24, (reserved, used, requested, gap)
        memory = json.loads(report("memory", trace, "-f", "json", "-n", "0").stdout)
        failed = memory["totals"]["failed_allocations"][-1]
        assert failed["requested_bytes"] == requested and failed["held_bytes"] == reserved, failed
        moment, *parts = rows("memory", trace, "--map", "--at", "oom")
        assert moment["reserved_bytes"] == reserved == sum(part["bytes"] for part in parts) and moment["segments"] == segments, moment
        # 24 parts of 16 MiB were allocated in the loop closure's q-gate. The allocator gave one back,
        # with the buffer of the other frames' q-gate, before its last attempt.
        tree = rows("critical", trace, "-m", "reserved")
        gate = next(row for row in tree if row["name"] == "q-gate" and "loop closure - kf: *" in row["path"])
        assert gate["delta"] == 24 * 16 * MIB, gate
        stayed = tree[-1]
        assert stayed["kind"] == "stayed" and stayed["parent"] is None, stayed
        assert stayed["name"] == "track - kf: 13 / loop closure - kf: 13 / gru / gates / q-gate", stayed
        assert stayed["segments"] == 23 and stayed["reserved_bytes"] == stayed["unknown_bytes"] == 23 * 16 * MIB, stayed
        assert stayed["start_ns"] == gate["start_ns"] and "free_inside_bytes" not in stayed, stayed
        first = next(row for row in rows("diagnose", trace) if row["kind"] == "finding")
        assert first["name"] == "out-of-memory" and "most of it was allocated by q-gate: 385.88 MB" in first["evidence"], first


@case
def with_more_memory_what_stayed_is_told_at_the_end(folder):
    program = BUILD / "cudasim" / "13" / "slam"
    if not program.exists():
        raise Skip("the simulated device is not built (no %s)" % program)
    result = traced(folder, program, env={"SIM_MEM": str(4096 * MIB)})
    assert result.stdout == b"", result.stdout
    text = " ".join(report("critical", "-m", "reserved", folder / "trace.bin").stdout.decode().split())
    assert "24 segments (402.65 MB) that were allocated in `track - kf: 13 / loop closure - kf: 13 / gru / gates / q-gate` stayed reserved to the end." in text, text


main()
