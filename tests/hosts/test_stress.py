#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""stress-ng's processes, threads, faults and loads of libraries, and what the library costs a program that records nothing."""
import re
from profiler_beside import *

STRESSORS = {"fork": 1000, "vfork": 1000, "clone": 50, "pthread": 1000, "dynlib": 300, "sigsegv": 1000, "exec": 300, "daemon": 200, "sigchld": 300,
             "forkheavy": 20, "close": 500, "sigabrt": 100, "zombie": 300, "spawn": 200, "fault": 500, "signal": 2000}
SMALL_FILES = ["prlimit", "--fsize=16777216"] # forkheavy reserves what the disk has left, for a second: other programs on the machine, and other tests, lose what they write
BAD = r"fail:|Segmentation|aborted unexpectedly|unsuccessful"


@case
def stress_ng_is_content(folder):
    needs("stress-ng")
    for name, operations in STRESSORS.items():
        command = [*SMALL_FILES, "stress-ng", "--no-rand-seed", "--" + name, "2", "--%s-ops" % name, str(operations), "--timeout", "60", "--temp-path", "."]
        result = run(folder, *command, env={"LD_PRELOAD": preload()}, timeout=120)
        bare = run(folder, *command, timeout=120)
        said = (result.stdout + result.stderr).decode(errors="replace")
        assert result.returncode == bare.returncode, (name, result.returncode, bare.returncode, said[-1000:])
        assert not re.search(BAD, said) or re.search(BAD, (bare.stdout + bare.stderr).decode(errors="replace")), (name, said[-1500:])
        assert not traces(folder) and not still_on(folder), (name, traces(folder), runs_on(folder))


def cheap_enough(folder, name, command, times, rounds):
    """At most so many times as long, and a millisecond for the start. Others may be at work here, too: of three attempts one must do."""
    for _ in range(3):
        under, plain = cost(folder, *command, rounds=rounds)
        if under <= times * plain + 0.001:
            return
    raise AssertionError("%s: %.2f ms, without %.2f ms" % (name, under * 1e3, plain * 1e3))


@case
def a_process_begins_at_most_a_millisecond_later(folder):
    cheap_enough(folder, "a start", ["true"], 1, 101)


@case
def a_program_that_records_nothing_takes_at_most_a_twentieth_longer(folder):
    loads = {"python": [sys.executable, "-c", "import json\nfor i in range(30000): json.loads(json.dumps({'a': [i] * 20}))"],
             "threads": [sys.executable, "-c", "import threading, zlib\nfor i in range(600):\n    t = threading.Thread(target=zlib.crc32, args=(b'x' * 100000,)); t.start(); t.join()"],
             "sort": ["sh", "-c", "seq 1 200000 | sort -R --random-source=/dev/zero | sort -n | tail -1"]}
    for name, command in loads.items():
        cheap_enough(folder, name, command, 1.05, 9)


main()
