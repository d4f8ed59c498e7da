#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory that grows from step to step in a program of NVTX ranges and CUDA calls, without Python,
on the simulated device. Bytes are the program's."""
import json
from harness import BUILD, Skip, case, main, report, traced

MIB = 1 << 20


def recorded(folder, how, major="13"):
    """The bytes held at the end of the last step, and the trace."""
    program = BUILD / "cudasim" / major / "keeps_buffers"
    if not program.exists():
        raise Skip("the simulated device is not built (no %s)" % program)
    (folder / how).mkdir()
    result = traced(folder / how, program, how)
    assert result.stderr == b"", result.stderr
    return int(result.stdout), folder / how / "trace.bin"


def rows(trace, *arguments):
    return json.loads(report("memory", trace, "-f", "json", "-n", "0", *arguments).stdout)["rows"]


@case
def buffers_that_are_never_freed_are_named_with_their_call(folder):
    for how, kind, cause, advice in (("leaks", "device", "CUDA call", b"(cudaFree)"), ("pins", "pinned", "pinned", b"cudaFreeHost"),
                                     ("manages", "managed", "managed", b"managed memory")):
        held, trace = recorded(folder, how)
        whole, path = rows(trace, "--growth")
        assert (whole["memory_kind"], whole["growth_bytes"], whole["growth_cause"]) == (kind, 2 * MIB, cause), whole
        assert (path["growth_bytes"], path["left_bytes"], path["grown_steps"], path["late_steps"]) == (2 * MIB, 40 * MIB, 13, 13), path
        assert path["path"][-1] == "keep" and path["line"].endswith("(keeps_buffers)"), path
        for view in (), ("steps",), ("memory",):
            shown = report(*view, trace, "--iec", "--width", "200").stdout
            # warnings always have decimal units
            assert (b"grows 2.10 MB a step" if view == ("steps",) else b"grows 2.00 MiB a step, 100 % of it in keep") in shown, (how, view, shown.decode())
        assert advice in report("diagnose", trace, "--width", "200").stdout, how
        assert sum(row["held_bytes"] for row in rows(trace) if row["depth"] == 0) == held, how


@case
def what_is_freed_bounded_or_made_once_is_no_growth(folder):
    for how in "frees", "rotates", "enlarges":
        held, trace = recorded(folder, how)
        for view in (), ("steps",), ("memory",), ("diagnose",):
            assert b"grows" not in report(*view, trace).stdout, (how, view)
        assert sum(row["held_bytes"] for row in rows(trace) if row["depth"] == 0) == held, how
        kinds = {row["name"]: row["kind"] for row in json.loads(report("diagnose", trace, "-f", "json").stdout)["rows"]}
        assert kinds["memory-growth"] == "clear", (how, kinds)


@case
def classes_and_rows_after_the_last_step_add_up(folder):
    held, trace = recorded(folder, "rotates")
    level, *below = [row for row in rows(trace) if row["memory_kind"] == "device"]
    for key in "alloc_bytes", "free_bytes", "allocs", "frees", "held_bytes":
        assert sum(row.get(key) or 0 for row in below) == level[key], (key, level)
    assert level["held_bytes"] == held == (32 + 12) * MIB, level
    after = [row for row in below if row["name"] == "(after last step)"]
    assert [row["free_bytes"] for row in after] == [32 * MIB], below
    classes = {row["name"]: row["alloc_bytes"] // MIB for row in rows(trace, "--by", "class", "-d", "2") if row["depth"]}
    assert classes == {"temporary": 160, "across 3 to 6 steps": 28, "once": 32, "at end": 12}, classes


main()
