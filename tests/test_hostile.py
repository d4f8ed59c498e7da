#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What somebody may put into a folder of traces, or do to a trace while it is read: the report stays quick, reads nothing else, and says what it left out."""
import os, resource, struct
from harness import *

PID, HEADER_BYTES = 72, 4096  # collector/trace_format.h


def with_siblings(folder, count):
    """A trace, and the beginnings of so many others of its run."""
    folder.mkdir()
    traced(folder, "ranges", 1, 5)
    image = bytearray((folder / "trace.bin").read_bytes()[:HEADER_BYTES])
    for number in range(count):
        struct.pack_into("<I", image, PID, 1000000 + number)
        (folder / ("t%d.bin" % number)).write_bytes(image)
    return folder / "trace.bin"


@case
def a_thousand_processes_of_a_run_cost_ten_times_what_a_hundred_do(folder):
    if SANITIZED:
        raise Skip("a sanitizer's runtime calls the system, too")
    calls = []
    for count in (100, 1000):
        trace = with_siblings(folder / str(count), count)
        result = run(folder, "counts_system_calls", "", REPORT, "table", trace)
        if result.returncode == 77:
            raise Skip("this user may not trace a process")
        calls.append(int(result.stdout.split()[-2]))
    assert calls[1] < 11 * calls[0], calls


@case
def all_processes_are_read_where_there_may_be_so_many_open_files(folder):
    trace = with_siblings(folder / "many", 150)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        found = json.loads(report("table", "--all", trace, "-f", "json").stdout)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(found["capture"]["processes"]) == 151 and not [w for w in found["warnings"] if "open files" in w], found["warnings"][-3:]


main()
