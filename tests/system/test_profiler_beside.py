#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Libraries that harm the program, each in its own way: the comparison of tests/hosts must notice
each."""
from profiler_beside import *

# Prints how a child ended and which descriptors it has.
HOST = [sys.executable, "-c", "import os, sys; child = os.fork() or os._exit(3); print(os.waitpid(child, 0)[1], os.listdir('/proc/self/fd')); sys.exit(7)"]
BAD = PROGRAMS / "lib_harms_program.so"


def host(folder, bad, **options):
    return same(folder, *HOST, env={"HARM": bad}, library=str(BAD), **options)


@case
def a_library_that_does_nothing_is_not_blamed(folder):
    assert host(folder, None)["status"] == 7


@case
def each_kind_of_harm_is_noticed(folder):
    for bad, sign in {"prints": "stdout", "complains": "stderr", "crashes": "status", "children": "stdout", "file": "files", "status": "status",
                      "process": "still runs", "descriptor": "stdout"}.items():
        try:
            host(folder / bad, bad)
        except AssertionError as error:
            assert sign in str(error), (bad, str(error))
        else:
            raise AssertionError("nobody noticed a library that does this: " + bad)


@case
def a_slow_start_is_noticed(folder):
    os.environ["HARM"] = "slow"
    try:
        under, plain = cost(folder, "true", rounds=5, library=str(BAD))
    finally:
        del os.environ["HARM"]
    assert under - plain > 0.010, (under, plain)


main()
