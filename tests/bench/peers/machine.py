# SPDX-License-Identifier: MIT
"""The machine that is measured on: what it is, whether it was quiet enough to be believed, and rounds of measures in turns."""
import os, pathlib, platform, re, subprocess, time

OTHERS = 0.10  # of the machine, that others may use while ours sleep
PREEMPTED = 1.05  # elapsed time by CPU time of a loop that never waits


class Busy(Exception):
    """The machine does too much else for any figure to be believed."""


def used():
    """Ticks of all CPUs that were not idle; what the host of a virtual machine took away counts too."""
    fields = list(map(int, open("/proc/stat").readline().split()[1:9]))
    return sum(fields) - fields[3] - fields[4]


def others(seconds=0.2):
    """The share of the machine that is in use while this process and all that it started sleep."""
    before, start = used(), time.monotonic()
    time.sleep(seconds)
    return (used() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - start) / os.cpu_count()


def check_quiet():
    share = others(3)
    if share > OTHERS:
        raise Busy("others use %.0f %% of the machine before anything is measured (at most %.0f %%)" % (100 * share, 100 * OTHERS))


def in_rounds(measures, count, sound=lambda values: True, anyway=False):
    """`count` rounds in which the machine was quiet, each with one of every measure, each round in another order: a list of
    {name: value}, and what others used of the machine in each. Too few of them in twice the rounds is Busy."""
    good, shares, names = [], [], list(measures)
    for turn in range(2 * count):
        values, busy = {}, []
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            busy.append(others())
            values[name] = measures[name]()
        share = sum(busy) / len(busy)
        if anyway or (share <= OTHERS and sound(values)):
            good.append(values)
            shares.append(share)
        if len(good) == count:
            return good, shares
    raise Busy("%d of %d rounds were quiet, %d are needed (others use at most %.0f %%, the floor's loop is not interrupted)"
               % (len(good), 2 * count, count, 100 * OTHERS))


def description():
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    guest = " hypervisor" in open("/proc/cpuinfo").read()
    clock = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return "%s, %d CPUs%s, Linux %s%s" % (cpu[1] if cpu else platform.machine(), os.cpu_count(), ", a virtual machine" if guest else "",
                                           platform.release(), ", clock source " + clock.read_text().strip() if clock.exists() else "")


def first_line(*command):
    """What a program says first of itself, or nothing."""
    try:
        return (subprocess.run(command, capture_output=True, text=True).stdout.splitlines() or [""])[0]
    except OSError:
        return ""
