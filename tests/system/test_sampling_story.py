#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first screen of a sampled program without ranges names the line of the program that works, and the lines that wait."""
import re, sys
from harness import *
from python_versions import interpreters

PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]
SCRIPT = ROOT / "tests/programs/sampled_loader.py"


def place(function, comment):
    """Returns how the first screen names the line of the script with this comment."""
    lines = SCRIPT.read_text().split("\n")
    return "%s [%s:%d]" % (function, SCRIPT.name, 1 + next(i for i, line in enumerate(lines) if line.endswith("# " + comment)))


def first_screen(folder, **env):
    python = PYTHONS[-1] if PYTHONS else None
    if not python:
        raise Skip("no Python with a global interpreter lock")
    traced(folder, python, SCRIPT, 40, env={"PPERF_SAMPLE": "99", **env})
    return " ".join(report(folder / "trace.bin", "--width", "200").stdout.decode().split())


def works_in(screen, line):
    """Whether the first sentence has the line. Samples whose inner frames moved are at the line that calls, so it need not be first."""
    verdict = screen[:screen.index("innermost:")] if "innermost:" in screen else screen
    return re.search(r" % (of the sampled CPU time is )?in " + re.escape(line), verdict)


@case
def the_line_that_works_and_those_that_wait_are_named(folder):
    screen = first_screen(folder, PPERF_SAMPLE_CLOCK="wall")
    assert works_in(screen, place("tokenise", "the line that works")), screen
    assert place("<module>", "the line that waits") + " waits for " in screen, screen
    assert re.search("; in another thread, " + re.escape(place("metric", "the line that holds the lock")) + r" waits for \S+ \S+ of the \S+ m?s", screen), screen
    assert re.search(r"cpu_samples \S.* \(99 Hz of wall time, by (perf|clock)\)", screen), screen


@case
def samples_of_cpu_time_name_no_line_that_waits(folder):
    screen = first_screen(folder, PPERF_SAMPLE_KIND="clock")
    assert works_in(screen, place("tokenise", "the line that works")), screen
    assert " waits for " not in screen and "(99 Hz of cpu time, by clock)" in screen, screen
    assert "the frames are tried" not in screen, screen


main()
