#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs in unusual circumstances: limits set before they begin, closed descriptors, other
libraries in LD_PRELOAD, other users, other architectures. They behave as without pperf, and are
recorded where possible."""
import collections, stat
from profiler_beside import *

QUICK = ["sh", "-c", "echo hello; ls / | wc -l; cat; (exit 3); echo $?"]


def plain_only():
    if SANITIZED:
        raise Skip("the sanitizer's runtime is another library with needs of its own")


def compiled(folder, text, *flags, compiler="cc"):
    """Compiles a program from `text`. Skips the case if the compiler cannot."""
    source = folder / ("made.cc" if compiler == "c++" else "made.c")
    source.write_text(text)
    made = subprocess.run([compiler, *flags, "-o", folder / "made", source], capture_output=True)
    if made.returncode:
        raise Skip("programs cannot be made with %s" % " ".join(flags))
    return str(folder / "made")


HELLO = "#include <stdio.h>\nint main(int n, char **a) { printf(\"%s %d\\n\", a[0] ? \"hello\" : \"\", n); return 5; }\n"


@case
def limits_set_before_it_begins_change_nothing(folder):
    plain_only()
    for number, limit in enumerate(["ulimit -n 8", "ulimit -f 0", "ulimit -v 60000", "ulimit -s 64", "ulimit -s unlimited", "umask 777", "ulimit -t 5", "ulimit -l 0",
                                    "ulimit -u 40 2> /dev/null", "ulimit -c 0", "trap '' INT TERM PIPE CHLD XFSZ"]):
        for name, command in (("quick", QUICK), ("python", [sys.executable, "-c", "import os; print(os.getpid() > 0, os.umask(0))"])):
            if command is not QUICK and "-s 64" in limit:
                continue
            same(folder / ("%s%d" % (name, number)), "sh", "-c", limit + "; exec \"$@\"", "sh", *command, stdin=b"in\n")


@case
def what_records_under_limits_is_not_hurt_by_them(folder):
    plain_only()
    wanted = {"ulimit -n 8": 1, "ulimit -f 0": 0, "ulimit -v 200000": 1, "ulimit -s 64": 1, "umask 777": 1, "ulimit -l 0": 1}
    for limit, recorded in wanted.items():
        result = traced(folder, "sh", "-c", limit + "; exec %s 1 100" % (PROGRAMS / "ranges"))
        assert result.stdout == result.stderr == b"", (limit, result)
        assert len(traces(folder)) == recorded, (limit, traces(folder))
        for path in traces(folder):
            assert len(names(path)) == 100, limit
            path.unlink()


@case
def memory_that_is_hardly_enough_fails_nowhere_but_where_it_would(folder):
    plain_only()
    for kilobytes in [*range(3000, 30000, 900), 100000]:
        command = "ulimit -v %d; exec %s 1 100" % (kilobytes, PROGRAMS / "ranges")
        bare, under = run(folder, "sh", "-c", command), traced(folder, "sh", "-c", command, check=None)
        # The program has less memory and may fail (2), as may the dynamic linker (127), but not crash.
        assert under.returncode in (bare.returncode, 2, 127), (kilobytes, bare, under)
        for path in traces(folder):
            path.unlink()
    assert under.returncode == 0


@case
def standard_descriptors_may_be_closed(folder):
    for number, closed in enumerate(("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-")):
        same(folder / str(number), "bash", "-c", "exec %s; ls / > here.txt; echo $? >> here.txt" % closed, output="here.txt")
        traced(folder, "sh", "-c", "exec %s 1 50 %s" % (PROGRAMS / "ranges", closed))
        assert len(names(folder / "trace.bin")) == 50
        (folder / "trace.bin").unlink()


@case
def a_host_that_closes_everything_and_opens_its_own_finds_it(folder):
    code = "import os; os.closerange(3, 5000); fds = [os.open('/dev/null', os.O_RDONLY) for _ in range(20)]; print(fds)"
    if not SANITIZED:
        assert same(folder, sys.executable, "-c", code)["stdout"].startswith(b"[3, 4, 5")
    traced(folder, "closes", "victim", "reuse")
    assert (folder / "victim").read_bytes() == b"precious"


@case
def a_host_that_records_has_the_descriptors_it_would_have(folder):
    plain_only()
    code = """import ctypes, os
here = ctypes.CDLL(None)
def mark():
    if hasattr(here, "nvtxMarkA"):
        here.nvtxMarkA(b"x")
mark(); print([os.open("/dev/null", os.O_RDONLY) for _ in range(5)])
os.close(0); mark(); print(os.open("/dev/null", os.O_RDONLY)); mark(); print(os.dup(0), os.pipe())
"""
    results = [runner(folder, sys.executable, "-c", code, check=0).stdout for runner in (run, traced)]
    assert results[0] == results[1] and results[0].startswith(b"[3, 4, 5"), results
    assert len(names(folder / "trace.bin", "mark")) == 3


@case
def NVTX_may_be_called_before_main_and_after_it(folder):
    plain = run(folder, "odd_host", check=0)
    assert traced(folder, "odd_host").stdout == plain.stdout
    found = collections.Counter(names(folder / "trace.bin"))
    assert found == {"a static constructor": 1, "a static destructor": 1, "an exit handler": 1, "a signal handler": 10, "a thread": 10,
                     "a thread_local destructor": 10, "the destructor of a key": 10, "on the way of an exception": 210}, found
    assert info(folder / "trace.bin")["integrity"]["left_open"] == 0


@case
def exceptions_and_ends_of_threads_pass_through_our_functions(folder):
    plain_only()
    shutil.copy(PROGRAMS / "lib_calls_back.so", folder / "libcudart.so.13")
    plain = run(folder, "throws", "./libcudart.so.13", 20, check=0)
    under = traced(folder, "throws", "./libcudart.so.13", 20)
    assert (under.stdout, under.stderr) == (plain.stdout, plain.stderr), under
    assert len(dump(folder / "trace.bin", {"alloc"})) == 20


@case
def a_static_program_is_as_without_us(folder):
    assert same(folder, compiled(folder, HELLO, "-static"))["status"] == 5


@case
def a_program_of_32_bits_runs_and_says_what_it_said(folder):
    program_of_32 = compiled(folder, HELLO, "-m32")
    assert same(folder, program_of_32, leave=("stderr",))["status"] == 5 # the dynamic linker warns that it cannot preload a 64-bit library


@case
def a_program_built_with_ASan_runs_beside_us(folder):
    plain_only()
    text = HELLO.replace("printf", "char *volatile p = __builtin_malloc(9); p[8] = 1; __builtin_free(p); printf")
    made = compiled(folder, text, "-fsanitize=address")
    assert same(folder, made, env={"ASAN_OPTIONS": "verify_asan_link_order=0"})["status"] == 5
    runtime = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    assert same(folder / "in front", made, env={"LD_PRELOAD": runtime})["status"] == 5
    nvtx = subprocess.run([ROOT / "scripts" / "setup.sh", "--cuda"], capture_output=True, text=True).stdout.strip() + "/include"
    made = compiled(folder, "#include <nvtx3/nvToolsExt.h>\nint main(void) { for (int i = 0; i < 50; i++) { nvtxRangePushA(\"range\"); nvtxRangePop(); } return 0; }\n",
                    "-fsanitize=address", "-isystem", nvtx, "-ldl")
    result = run(folder, made, env={"LD_PRELOAD": "%s %s" % (runtime, LIBRARY), "ASAN_OPTIONS": "detect_leaks=1"}, check=0)
    assert result.stderr == b"" and len(names(folder / "trace.bin")) == 50, result.stderr


@case
def another_user_without_rights_here_is_not_bothered(folder):
    plain_only()
    if os.geteuid() != 0:
        raise Skip("only root can be another user")
    needs("setpriv")
    open_to_others(folder)
    shutil.copy(LIBRARY, folder / "library.so")
    shutil.copy(PROGRAMS / "ranges", folder / "ranges")
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    assert same(folder, *as_nobody, *QUICK, stdin=b"in\n", library=str(folder / "library.so"))["status"] == 0
    result = run(folder, *as_nobody, folder / "ranges", 1, 10, env={"LD_PRELOAD": str(folder / "library.so")}, check=0)
    assert result.stderr == result.stdout == b"" and not traces(folder), (result, traces(folder))
    (folder / "own").mkdir()
    os.chown(folder / "own", 65534, 65534)
    run(folder / "own", *as_nobody, folder / "ranges", 1, 10, env={"LD_PRELOAD": str(folder / "library.so")}, check=0)
    made = traces(folder / "own")
    assert len(made) == 1 and made[0].stat().st_uid == 65534 and stat.S_IMODE(made[0].stat().st_mode) == 0o600, made


@case
def fakeroot_stands_beside_us_in_LD_PRELOAD(folder):
    plain_only()
    needs("fakeroot")
    script = "touch a; chown 7:8 a; stat -c '%u %g' a; tar cf - --mtime=@0 a | sha256sum; id -u"
    assert b"7 8" in same(folder, "fakeroot", "sh", "-c", script)["stdout"]
    traced(folder, "fakeroot", program("ranges"), 1, 10)
    assert len(names(folder / "trace.bin")) == 10


@case
def bubblewrap_shuts_us_in_with_the_program(folder):
    plain_only()
    needs("bwrap")
    box = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net", "--die-with-parent"]
    if run(folder, *box, "true").returncode:
        raise Skip("bubblewrap cannot be used here")
    assert same(folder, *box, *QUICK, stdin=b"in\n")["status"] == 0
    result = traced(folder, *box, program("ranges"), 1, 10)
    assert result.stderr == result.stdout == b"" and not traces(folder)
    traced(folder, *box[:3], *box[3:], "--bind", folder, folder, program("ranges"), 1, 10)
    assert len(names(folder / "trace.bin")) == 10


@case
def a_child_with_privileges_is_left_alone(folder):
    plain_only()
    if os.geteuid() != 0:
        raise Skip("only root can make a program privileged")
    needs("setpriv")
    open_to_others(folder)
    privileged = folder / "privileged"
    shutil.copy(compiled(folder, HELLO), privileged)
    privileged.chmod(0o4755)
    same(folder, "setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", "%s; echo $?" % privileged, leave=("stderr",))


main()
