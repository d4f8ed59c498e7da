#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pperf doctor names each problem, and reports none where there is none."""
import os, re, signal, struct
from harness import *

CC = os.environ.get("CC", "cc")


def doctor(folder, *command, library=LIBRARY, env=None, check=None):
    """The output of pperf doctor for the folder or for a command. `library`: another file to
    examine as the library."""
    home = folder / "installed"
    if not home.exists():
        install_tools(home, library)
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
    assert "ended with 0" in text and "\nok       nvtx\n" in text and "cupti: not used by this program" in text and "losses    none" in text, text


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
    assert "PPERF_OUTPTU is set, but pperf has no such setting (did you mean 'PPERF_OUTPUT'?)" in text, text
    assert "nothing is recorded" in doctor(folder, env={"PPERF_DISABLE": "1"}, check=1)
    known = {"PPERF_MAX": "1G", "PPERF_STACKS": "off", "PPERF_CUPTI": "1", "PPERF_OPS": "totals", "PPERF_SHAPES": "1", "PPERF_QUIET": "1"}
    assert "no setting" not in doctor(folder, env=known, check=0)


@case
def a_folder_that_is_not_there_is_a_problem(folder):
    plain_only()
    assert "nowhere, does not exist" in doctor(folder, env={"PPERF_OUTPUT": "nowhere/trace.bin"}, check=1)
    (folder / "file").touch()
    assert "problem" in doctor(folder, env={"PPERF_OUTPUT": str(folder / "file" / "trace.bin")}, check=1)


@case
def a_value_that_is_not_understood_is_a_problem(folder):
    plain_only()
    for name, value in {"PPERF_MAX": "12Q", "PPERF_STACKS": "sometimes", "PPERF_CUPTI": "yeild", "PPERF_SCHEDULE": "now", "PPERF_NVTX": "ture", "PPERF_SHAPES": "2"}.items():
        for command in ([], ["--", program("ranges"), 1, 5]):
            text = doctor(folder, *command, env={name: value}, check=1)
            assert text.count("%s=%s is not valid" % (name, value)) == 1, (command, text)
    assert "PPERF_MAX=10  is not valid" in doctor(folder, env={"PPERF_MAX": "10 "}, check=1)


@case
def a_name_under_which_no_trace_can_be_is_a_problem(folder):
    plain_only()
    for name in ("/dev/null", str(folder)):
        assert "%s is not a file" % name in doctor(folder, env={"PPERF_OUTPUT": name}, check=1)


@case
def a_preload_that_does_not_happen_is_a_problem(folder):
    plain_only()
    assert "LD_PRELOAD names lib/none.so, which does not exist" in doctor(folder, env={"LD_PRELOAD": "lib/none.so"}, check=1)
    text = doctor(folder, "--", program("ranges"), 1, 5, env={"LD_PRELOAD": LIBRARY}, check=0)
    assert "problem" not in text and "\nok       nvtx\n" in text, text


@case
def what_LD_LIBRARY_PATH_leads_to_is_found(folder):
    plain_only()
    (folder / "libs").mkdir()
    for name in ("libunwind.so.8", "libcuda.so.1"):
        (folder / "libs" / name).touch()
    text = doctor(folder, env={"LD_LIBRARY_PATH": "/nonexistent:%s" % (folder / "libs")}, check=None)
    assert "%s/libs/libunwind.so.8" % folder in text and "%s/libs/libcuda.so.1" % folder in text, text


@case
def the_version_of_the_driver_is_read_of_both_kinds(folder):
    plain_only()
    (folder / "libs").mkdir()
    (folder / "libs" / "libcuda.so.1").touch()
    doctor(folder, check=0)
    for line in ("NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023",
                 "NVIDIA UNIX Open Kernel Module for x86_64  535.54.03  Release Build  (dvs-builder@U16-I3-B03-4-3)  Fri Aug 16 21:42:42 UTC 2024"):
        script = 'mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia || exit 77; echo "NVRM version: %s" > /proc/driver/nvidia/version; "$0" doctor' % line
        result = run(folder, "unshare", "-rm", "sh", "-c", script, folder / "installed" / "bin" / "pperf", env={"LD_LIBRARY_PATH": str(folder / "libs")})
        if result.returncode == 77 or b"unshare" in result.stderr:
            raise Skip("nothing can be mounted here")
        assert b"ok       NVIDIA driver 535.54.03, " in result.stdout, result.stdout.decode()


@case
def the_known_issues_of_the_CUPTI_found_are_named(folder):
    plain_only()
    cupti = BUILD / "cudasim" / "13" / "libcupti.so.13"
    if not cupti.exists():
        raise Skip("the simulated device is not built")
    for version, known in (("130000", True), ("130001", False)):
        text = doctor(folder, env={"PPERF_CUPTI": str(cupti), "SIM_CUPTI_VERSION": version}, check=0)
        assert ("note     CUPTI %s is known to crash and to hang\n         → use 13.0 Update 1 or later.\n" % version in text) == known, text
        assert "note     CUPTI %s may leak host memory" % version in text, text


@case
def what_CUPTI_refuses_has_a_remedy(folder):
    plain_only()
    known_work = BUILD / "cudasim" / "13" / "known_work"
    if not known_work.exists():
        raise Skip("the simulated device is not built")
    for code, remedy in ((35, "NVreg_RestrictProfilingToAdminUsers=0"), (39, "without the other profiler"), (15, "make libcupti of the same CUDA")):
        text = doctor(folder, "--", known_work, 1, 1, 1, env={"SIM_CUPTI_REFUSE": str(code)}, check=1)
        assert remedy in text and "problem  cupti off: " in text, text


def moved_interpreter(image):
    """The program with the name of its dynamic linker moved to the end of the file, as patchelf
    does."""
    image = bytearray(image)
    at, size, count = struct.unpack_from("<Q", image, 32)[0], *struct.unpack_from("<HH", image, 54)
    for head in range(at, at + size * count, size):
        if struct.unpack_from("<I", image, head)[0] == 3:
            offset, = struct.unpack_from("<Q", image, head + 8)
            length, = struct.unpack_from("<Q", image, head + 32)
            name = bytes(image[offset:offset + length])
            image[offset:offset + length] = bytes(length)
            struct.pack_into("<Q", image, head + 8, len(image))
            return bytes(image) + name


@case
def programs_that_ignore_LD_PRELOAD_are_distinguished(folder):
    plain_only()
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    run(folder, CC, "-o", "dynamic", "empty.c", check=0)
    assert "it wrote no trace" in doctor(folder, folder / "dynamic", check=1)
    (folder / "moved").write_bytes(moved_interpreter((folder / "dynamic").read_bytes()))
    (folder / "moved").chmod(0o755)
    assert "linked statically" not in doctor(folder, folder / "moved", check=1)
    for flags, name, said in ((["-static"], "static", "linked statically"), (["-static-pie"], "static-pie", "linked statically"), (["-m32"], "32", "a 32-bit program")):
        if run(folder, CC, *flags, "-o", name, "empty.c").returncode == 0:
            assert said in doctor(folder, folder / name, check=1), name
    if shutil.which("musl-gcc"):
        run(folder, "musl-gcc", "-o", "musl", "empty.c", check=0)
        assert "uses musl" in doctor(folder, folder / "musl", check=1)


@case
def a_privileged_program_is_one_whose_rights_are_not_the_users(folder):
    plain_only()
    doctor(folder, check=0)
    shutil.copy(program("ranges"), folder / "own")
    (folder / "own").chmod(0o4755)
    text = doctor(folder, folder / "own", 1, 5, check=0)
    assert "setuid" not in text and "\nok       nvtx\n" in text, text
    if os.geteuid() != 0:
        raise Skip("only root can make programs of other users")
    os.chown(folder / "own", 65534, 65534)
    (folder / "own").chmod(0o4755)
    text = doctor(folder, folder / "own", 1, 5, check=1)
    assert "setuid" in text and "nvtx" not in text, text


@case
def an_interrupt_ends_the_command_and_not_the_doctor(folder):
    plain_only()
    doctor(folder, check=0)
    (folder / "tmp").mkdir()
    process = subprocess.Popen([folder / "installed" / "bin" / "pperf", "doctor", "--", program("killed"), folder / "progress", "1000"], cwd=folder / "work",
                               env=environment(TMPDIR=str(folder / "tmp")), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while b"ready" not in process.stdout.readline():
        assert process.poll() is None
    await_marks(process, folder / "progress", 1)
    os.killpg(process.pid, signal.SIGINT)
    text = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 0 and "ended with 130" in text and "\nok       nvtx\n" in text, text
    assert not list((folder / "tmp").iterdir()), "it left something behind"


def states_of_the_library():
    """(source, state): what it writes into META source.*, as far as it is a constant."""
    for path in [*(ROOT / "preload").rglob("*.c"), *(ROOT / "collector").rglob("*.c"), ROOT / "preload" / "torch" / "modules.py"]:
        text = re.sub(r'"\s*"', "", path.read_text())
        for source, arguments in re.findall(r'"source\.(\w+)",(.*?);', text, re.S):
            yield from ((source, state) for state in re.findall(r'"((?:off|partial): [^"%]+)"', arguments))
        for name, source in (("tensor_memory.c", "torch_memory"), ("modules.py", "torch_modules")):
            if path.name == name:
                yield from ((source, state) for state in re.findall(r'"((?:off|partial): [^"%]+)"', text))
    text = re.sub(r'"\s*"', "", (ROOT / "preload" / "python" / "layout.h").read_text())
    yield from (("python_stacks", "off: " + trouble) for trouble in re.findall(r'X\([A-Z_]+, "([^"]+)"\)', text))


@case
def every_reason_that_the_library_writes_has_a_remedy(folder):
    table = report("--legend", "--width", "10000").stdout.decode().split("\nsources that")[1].split("\n\n")[0].splitlines()[1:]
    known = [(line.split()[0], line.split(None, 1)[1]) for line in table]
    states = list(states_of_the_library())
    assert len(states) > 20 and len({source for source, _ in states}) == 9, states
    for source, state in states:
        assert any(name in (source, "any") and (about.startswith("otherwise: ") or about.rsplit(": ", 1)[0] in state or about.split(": ")[0] in state)
                   for name, about in known) or "an error in Python" in state, (source, state)


@case
def what_the_first_screen_advises_info_and_doctor_advise(folder):
    plain_only()
    run(folder, program("ranges"), 1, 5, env={"LD_PRELOAD": LIBRARY, "PPERF_CUPTI": "0", "PPERF_PYTHON": "0"}, check=0)
    for view in ("summary", "info"):
        shown = " ".join(report(view, folder / "trace.bin").stdout.decode().split())
        assert "→ no times of kernels and copies: unset that variable" in shown, shown
        assert "→ no source lines of the program's Python files: unset that variable" in shown, shown
    text = doctor(folder, program("ranges"), 1, 5, env={"PPERF_CUPTI": "0"}, check=1)
    assert "problem  cupti off: PPERF_CUPTI=0 (0)\n         → no times of kernels and copies: unset that variable\n" in text, text


@case
def a_source_that_was_left_out_is_a_problem(folder):
    plain_only()
    text = doctor(folder, program("ranges"), 1, 5, env={"PPERF_NVTX": "0"}, check=1)
    assert "nvtx off: PPERF_NVTX=0" in text or "it wrote no trace" in text, text


@case
def a_command_that_is_not_there_is_127(folder):
    plain_only()
    doctor(folder, "no-such-program", check=127)


main()
