#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cost of a process before and after its own work, in system calls and pages. Times differ
between machines and are measured by `make bench`."""
import re, shutil, subprocess
from harness import LIBRARY, PROGRAMS, SANITIZED, Skip, case, main, run, traced

# System calls and pages that may come on top: somewhat more than there are, as C libraries and kernels differ. A system call takes a tenth of a microsecond to
# one (making the file: thirty), a page one to two.
NOTHING = (34, 38)
RANGES = (112, 84)


def counted(folder, library, *command):
    if SANITIZED:
        raise Skip("a sanitizer's runtime has calls and pages of its own")
    result = run(folder, "counts_system_calls", library, *command)
    if result.returncode == 77:
        raise Skip("this user may not trace a process")
    assert result.returncode == 0, result.stderr
    return tuple(map(int, result.stdout.split()[-2:]))


def adds_at_most(folder, most, *command):
    bare, ours = counted(folder, "", *command), counted(folder, str(LIBRARY), *command)
    added = tuple(mine - theirs for mine, theirs in zip(ours, bare))
    print("# %s: %d system calls, %d pages more" % (command[0], *added))
    assert added[0] <= most[0], "%d system calls more than without the library, at most %d" % (added[0], most[0])
    assert added[1] <= most[1], "%d pages more than without the library, at most %d" % (added[1], most[1])


@case
def a_process_that_records_nothing_pays_little(folder):
    adds_at_most(folder, NOTHING, "/bin/true")
    assert not list(folder.iterdir())


@case
def a_process_with_a_few_ranges_pays_little(folder):
    adds_at_most(folder, RANGES, PROGRAMS / "ranges", "1", "5")
    assert (folder / "trace.bin").stat().st_size < 24576


def pair_instructions(folder, **env):
    """The instructions of one push and pop on the thread that makes them, those of valgrind's other threads left out."""
    def of_thread(pairs):
        traced(folder, "valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", "--callgrind-out-file=" + str(folder / "counts"),
               PROGRAMS / "ranges", 1, pairs, env=env, timeout=300)
        found = [int(re.search(r"^totals: (\d+)", path.read_text(), re.M)[1]) for path in folder.glob("counts-*")]
        for path in folder.glob("*"):
            path.unlink()
        return max(found)
    return (of_thread(60000) - of_thread(20000)) / 40000


@case
def a_range_takes_the_same_instructions_with_and_without_cpu_samples(folder):
    if SANITIZED or not shutil.which("valgrind"):
        raise Skip("needs valgrind, and a library without a sanitizer")
    off, on = pair_instructions(folder), pair_instructions(folder, PPERF_SAMPLE="99")
    print("# instructions of a push and a pop: %.1f without CPU samples, %.1f with them" % (off, on))
    assert abs(on - off) <= 0.02 * off and off <= 200, (off, on)


@case
def few_pages_of_the_library_are_other_in_each_process(folder):
    """Pages that the dynamic linker relocates are copied for each process, so tables of addresses
    are small."""
    listed = subprocess.run(["readelf", "-rW", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    if SANITIZED:
        raise Skip("a sanitizer has tables of its own")
    pages = {int(line.split()[0], 16) >> 12 for line in listed.splitlines() if " R_" in line}
    assert 0 < len(pages) <= 4, "relocations in %d pages" % len(pages)


@case
def the_processor_is_not_queried_at_the_start(folder):
    """libgcc's __builtin_cpu_supports adds a constructor with five CPUID instructions, which take
    150 us in a nested virtual machine."""
    names = subprocess.run(["nm", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    assert "__cpu_indicator_init" not in names and "__cpu_model" not in names


main()
