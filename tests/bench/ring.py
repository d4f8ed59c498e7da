#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ring.py BUILD [EVENTS]: PPERF_RING=256M under EVENTS (10^9) pushes and pops of two threads. Exits with 1 if the file is larger than the
ring and 1 MiB of dictionary, if program and library take more than 32 MiB (which Python took before it executed them), or if an event is not counted."""
import os, pathlib, resource, struct, subprocess, sys, tempfile, time

RING, DICTIONARY, MEMORY = 256 << 20, 1 << 20, 32 << 20
COUNTS_AT = 488  # struct trace_ring in the header


def main():
    build, events = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 10**9
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        subprocess.run([build / "tests/programs/ranges", "2", str(events // 4)], cwd=folder, check=True,
                       env={"LD_PRELOAD": str(build / "libpperf.so"), "PPERF_RING": "256M", "PATH": os.environ["PATH"]})
        took, usage = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        trace = pathlib.Path(folder, "trace.bin")
        with trace.open("rb") as file:
            overwritten = struct.unpack_from("<3Q", file.read(4096), COUNTS_AT)[2]
        size, memory = trace.stat().st_size, usage.ru_maxrss * 1024
    print("%d events: file %d bytes, peak memory %d bytes, %.1f s of processor time, %.1f s in all, %d events overwritten" %
          (events, size, memory, usage.ru_utime + usage.ru_stime, took, overwritten))
    sys.exit(not (size <= RING + DICTIONARY and memory <= MEMORY and 0 < overwritten < events))


main()
