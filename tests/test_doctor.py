#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pperf doctor: it names what stands in the way, and finds nothing where nothing does."""
import os
from harness import *

CC = os.environ.get("CC", "cc")


def doctor(folder, *command, library=LIBRARY, env=None, check=None):
    """What it says of the folder, or of a command; with an image of a library if need be."""
    home = folder / "installed"
    if not home.exists():
        (home / "bin").mkdir(parents=True)
        (home / "lib").mkdir()
        shutil.copy(ROOT / "scripts" / "pperf", home / "bin")
        shutil.copy(ROOT / "scripts" / "doctor.sh", home / "bin")
        shutil.copy(REPORT, home / "bin" / "pperf-report")
        shutil.copy(library, home / "lib" / "libpperf.so")
    (folder / "work").mkdir(exist_ok=True)
    result = run(folder / "work", str(home / "bin" / "pperf"), "doctor", *command, env={"XDG_RUNTIME_DIR": str(folder), **(env or {})}, check=check)
    assert not list((folder / "work").iterdir()), "it left something behind"
    return result.stdout.decode()


def plain_only():
    if SANITIZED:
        raise Skip("as in the plain build")


@case
def where_nothing_stands_in_the_way_it_says_so(folder):
    plain_only()
    text = doctor(folder, check=0)
    assert "libpperf.so can be preloaded" in text and "the trace can be written" in text and "problem" not in text, text


@case
def a_command_is_run_and_its_sources_are_named(folder):
    plain_only()
    text = doctor(folder, "--", program("ranges"), 1, 5, check=0)
    assert "ended with 0" in text and "\nok       nvtx\n" in text and "cupti: nothing of it" in text and "losses    none" in text, text


@case
def a_library_that_cannot_be_preloaded_is_a_problem(folder):
    plain_only()
    image = LIBRARY.read_bytes()
    for name, content, said in (("text", b"no library\n", "the dynamic linker ignores"), ("cut", image[:4096], "ends with"),
                                ("other", image[:18] + b"\x28\0" + image[20:], "the dynamic linker ignores")): # of an ARM
        (folder / name).mkdir()
        (folder / name / "lib.so").write_bytes(content)
        text = doctor(folder / name, library=folder / name / "lib.so", check=1)
        assert said in text and "can be preloaded\n" not in text, text


@case
def settings_that_do_nothing_are_problems(folder):
    plain_only()
    text = doctor(folder, env={"PPERF_OUTPTU": "x"}, check=1)
    assert "PPERF_OUTPTU is set, and is no setting" in text, text
    assert "nothing is recorded" in doctor(folder, env={"PPERF_DISABLE": "1"}, check=1)
    known = {"PPERF_MAX": "1G", "PPERF_STACKS": "off", "PPERF_CUPTI": "1", "PPERF_OPS": "totals", "PPERF_SHAPES": "1", "PPERF_QUIET": "1"}
    assert "no setting" not in doctor(folder, env=known, check=0)


@case
def a_folder_that_is_not_there_is_a_problem(folder):
    plain_only()
    assert "nowhere is not there" in doctor(folder, env={"PPERF_OUTPUT": "nowhere/trace.bin"}, check=1)
    (folder / "file").touch()
    assert "problem" in doctor(folder, env={"PPERF_OUTPUT": str(folder / "file" / "trace.bin")}, check=1)


@case
def a_static_program_a_privileged_one_and_one_that_does_nothing_are_told_apart(folder):
    plain_only()
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    run(folder, CC, "-o", "dynamic", "empty.c", check=0)
    assert "it left no trace" in doctor(folder, folder / "dynamic", check=1)
    os.chmod(folder / "dynamic", 0o4755)
    assert "setuid" in doctor(folder, folder / "dynamic", check=1)
    if run(folder, CC, "-static", "-o", "static", "empty.c").returncode == 0:
        assert "linked statically" in doctor(folder, folder / "static", check=1)


@case
def a_source_that_was_left_out_is_a_problem(folder):
    plain_only()
    text = doctor(folder, program("ranges"), 1, 5, env={"PPERF_NVTX": "0"}, check=1)
    assert "nvtx off: PPERF_NVTX=0" in text or "it left no trace" in text, text


@case
def a_command_that_is_not_there_is_127(folder):
    plain_only()
    doctor(folder, "no-such-program", check=127)


main()
