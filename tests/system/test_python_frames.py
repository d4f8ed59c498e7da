#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What pperf reads of Python frames without the GIL is what Python itself reports, in every CPython
from 3.9 on that is found here. Each case is a function of programs/python_frames.py."""
from harness import *
from python_versions import interpreters

PYTHONS = interpreters()


def every(folder, name, *options, among=PYTHONS):
    assert among
    for _, free_threaded, path in among:
        result = run(folder, path, *options, ROOT / "tests/programs/python_frames.py", PROGRAMS / "lib_python_frames.so", name, check=0, timeout=200,
                     env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"})
        state = result.stdout.decode().splitlines()[-1]
        assert state == "on" or free_threaded and state.startswith("off: the frames of a free-threaded Python"), (path, state, result.stderr)
        assert not result.stderr, (path, result.stderr)


@case
def a_layout_that_is_wrong_anywhere_is_found_out_before_it_is_used(folder):
    every(folder, "wrong")


@case
def functions_comprehensions_generators_classes_and_callbacks_of_C_are_read_exactly(folder):
    every(folder, "shapes")


@case
def a_thousand_frames_give_the_innermost_64(folder):
    every(folder, "deep")


@case
def coroutines_and_asynchronous_generators_are_read_exactly(folder):
    every(folder, "coroutines")


@case
def frames_are_read_while_others_are_taken_down(folder):
    every(folder, "teardown", "-X", "dev")


@case
def threads_with_exceptions_read_their_own(folder):
    every(folder, "threads", "-X", "dev")


@case
def signal_handlers_in_Python_read_exactly(folder):
    every(folder, "signals", "-X", "dev")


@case
def code_objects_at_the_address_of_others_are_distinguished(folder):
    every(folder, "reused")


@case
def tracers_and_profilers_of_the_program_make_no_difference(folder):
    every(folder, "traced")


@case
def a_thread_that_is_not_Pythons_has_no_frames(folder):
    every(folder, "elsewhere")


@case
def the_first_frame_of_the_programs_own_is_found_once_for_each_code_location(folder):
    every(folder, "source")


@case
def greenlets_read_their_own(folder):
    with_greenlet = [p for p in PYTHONS if not run(folder, p[2], "-c", "import greenlet").returncode]
    if not with_greenlet:
        raise Skip("no Python here has greenlet")
    every(folder, "greenlets", among=with_greenlet)


main()
