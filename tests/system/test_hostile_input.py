#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hostile files in a folder of traces, and changes to a trace while it is read. The report stays
quick, reads nothing else, and names what it left out."""
import os, random, resource, socket, struct
from harness import *

PID, HEADER_BYTES = 72, 4096  # collector/trace_format.h


def with_siblings(folder, count):
    """A trace, and the first bytes of `count` others of the same run."""
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


@case
def what_is_beside_a_trace_is_passed_over(folder):
    traced(folder, "ranges", 1, 5)
    plain = report("tree", folder / "trace.bin", "-f", "csv").stdout
    os.mkfifo(folder / "pipe.bin")
    (folder / "folder.bin").mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.getcwd()
        os.chdir(folder) # a socket's path may have 107 bytes
        try:
            bound.bind("socket.bin")
        finally:
            os.chdir(here)
        for name, target in {"zero": "/dev/zero", "input": "/dev/stdin", "itself": "itself.bin", "nowhere": "nowhere", "memory": "/proc/self/mem", "messages": "/proc/kmsg",
                             "another": "pipe.bin", "above": ".."}.items():
            (folder / (name + ".bin")).symlink_to(target)
        shutil.copy(folder / "trace.bin", folder / "shut.bin")
        (folder / "shut.bin").chmod(0)
        result = report("tree", folder / "trace.bin", "-f", "csv", timeout=60)
    assert result.stdout == plain and not result.stderr, result.stderr


@case
def a_trace_that_shrinks_and_grows_while_it_is_read_ends_no_report(folder):
    traced(folder, "ranges", 2, 300000)
    image, chance = (folder / "trace.bin").read_bytes(), random.Random(4711)
    for view in ("summary", "critical", "dump", "table") * (1 if SANITIZED else 4):
        (folder / "trace.bin").write_bytes(image)
        process = subprocess.Popen([REPORT, view, folder / "trace.bin"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        fd = os.open(folder / "trace.bin", os.O_RDWR)
        for _ in range(20):
            os.truncate(fd, chance.choice([0, 100, 4096, len(image) // 3, len(image)]))
            os.pwrite(fd, chance.randbytes(5000), chance.randrange(len(image)))
            time.sleep(0.002)
        os.close(fd)
        said = process.communicate(timeout=120)[1]
        assert process.returncode in (0, 2) and (process.returncode == 0 or said), (view, process.returncode, said[-500:])


main()
