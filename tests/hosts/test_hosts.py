#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that others wrote, under the library: the same output, the same status, no file left."""
import json, re
from profiler_beside import *
from gpu_reference import differences
from raw_trace import whole


@case
def a_compiler_makes_the_same_program(folder):
    source = ROOT / "tests" / "programs" / "describes_itself.c"
    include = subprocess.run([ROOT / "scripts" / "setup.sh", "--cuda"], capture_output=True, text=True).stdout.strip() + "/include"
    found = same(folder, "cc", "-D_GNU_SOURCE", "-O2", "-isystem", include, "-I", ROOT, "-o", "program", source, "-ldl", output="program")
    assert found["status"] == 0, found


@case
def make_builds_this_project_in_parallel(folder):
    found = same(folder, "sh", "-c", 'make -s -j4 -C "$0" BUILD="$PWD/build" "$PWD/build/pperf-report"', ROOT)
    assert found["status"] == 0, found


@case
def git_clones_checks_and_counts(folder):
    needs("git")
    if not (ROOT / ".git").exists():
        raise Skip("this is not a clone")
    script = "git clone -q %s copy && cd copy && git fsck --no-progress && git log --format=%%H | sha256sum && git status --short | wc -l" % ROOT
    assert same(folder, "sh", "-c", script, leave=("files",))["status"] == 0


@case
def shells_pipe_and_wait(folder):
    needs("bash", "xargs", "tar", "gzip")
    script = """set -e; seq 1 20000 | sort -R --random-source=/dev/zero | sort -n | tail -1
        seq 1 40 | xargs -P 4 -n 1 sh -c 'exit 0'; (sleep 0.1; exit 3) & wait $! || echo "child $?"
        mkdir -p d && seq 1 9999 > d/f && tar c --mtime=@0 d | gzip -n | sha256sum; trap 'echo trapped' USR1; kill -USR1 $$; false"""
    assert same(folder, "bash", "-c", script)["status"] == 1


@case
def Pythons_own_tests_pass(folder):
    found = subprocess.run([sys.executable, "-c", "import test.test_json; print(test.__path__[0])"], capture_output=True, text=True)
    if found.returncode:
        raise Skip("this Python came without its tests")
    library = pathlib.Path(found.stdout.strip())
    suites = ["test_json", "test_threading", "test_fork1", "test_signal", "test_subprocess", "test_mmap", "test_os", "test_ctypes"]
    suites = [name for name in suites if (library / name).exists() or (library / (name + ".py")).exists()]
    results = []
    for runner in (run, traced):
        result = runner(folder, sys.executable, "-m", "test", "-q", *suites, timeout=1500, check=None)
        said = result.stdout.decode(errors="replace").splitlines()
        results.append((result.returncode, sorted(line for line in said if line.startswith("    test_")), [line for line in said if line.startswith("Result")]))
    assert results[0] == results[1], results
    assert results[0][2], "the tests were not run: %s" % said[-5:]
    assert not traces(folder)


MULTIPROCESSING = """import unittest
from test import _test_multiprocessing as tests
tests.install_tests_in_module_dict(globals(), 'fork')
if __name__ == '__main__':
    unittest.main()
"""


@case
def Pythons_own_tests_of_forked_workers_pass(folder):
    if subprocess.run([sys.executable, "-c", "import test._test_multiprocessing"], capture_output=True).returncode:
        raise Skip("this Python came without its tests")
    (folder / "forked.py").write_text(MULTIPROCESSING) # not in every release a test that regrtest finds
    results = []
    for runner in (run, traced):
        said = runner(folder, sys.executable, "forked.py", timeout=900, check=None).stderr.decode(errors="replace")
        results.append((sorted(re.findall(r"^(?:FAIL|ERROR): .*", said, re.M)), re.findall(r"^Ran (\d+) tests", said, re.M)))
    assert results[0] == results[1] and results[0][1], results
    assert not traces(folder)


@case
def Python_workers_come_and_go(folder):
    code = "import multiprocessing as m, concurrent.futures as f, warnings\nwarnings.simplefilter('error')\n" \
           "def square(x): return x * x\n" \
           "if __name__ == '__main__':\n    with m.get_context('fork').Pool(4) as pool:\n        print(sum(pool.map(square, range(1000))))\n" \
           "    print(sum(f.ProcessPoolExecutor(3).map(square, range(50))), sum(f.ThreadPoolExecutor(8).map(square, range(500))))"
    for name in ("plain", "under"):
        (folder / name / "here").mkdir(parents=True)
        (folder / name / "here" / "workers.py").write_text(code)
    assert same(folder, sys.executable, "workers.py")["status"] == 0


@case
def other_languages_run(folder):
    for command in (["perl", "-e", "print join(',', map { fork() ? wait : exit } 1..3) ? 'ok' : '', $!+0, \"\\n\""], ["awk", "BEGIN { print 1/3; exit 4 }"],
                    ["node", "-e", "console.log([3,1,2].sort()); process.exitCode = 5"], ["bc", "-q"], ["cmake", "--version"]):
        if shutil.which(command[0]):
            same(folder, *command, stdin=b"2^100\n")


# What the simulated device itself reads of a program: it does not know how large a kernel's arguments are, and looks.
GUESSES = "".join("{\n%s\nMemcheck:%s\nobj:*/libcuda.so.1\n}\n" % (kind, kind) for kind in ("Cond", "Value8"))


@case
def valgrind_sees_a_healthy_program(folder):
    needs("valgrind")
    valgrind = ["valgrind", "-q", "--error-exitcode=9", "--trace-children=no"]
    result = run(folder, *valgrind, PROGRAMS / "ranges", 2, 20000, env={"LD_PRELOAD": preload()}, timeout=300)
    assert result.returncode == 0, result.stderr[-1500:]
    assert len(names(folder / "trace.bin")) == 40000


@case
def valgrind_and_strace_see_a_healthy_program_with_a_device(folder):
    needs("valgrind", "strace")
    if not (BUILD / "cudasim" / "13" / "known_work").exists():
        raise Skip("the simulated device is not built")
    (folder / "guesses").write_text(GUESSES)
    for under in (["valgrind", "-q", "--error-exitcode=9", "--suppressions=guesses"], ["valgrind", "-q", "--tool=massif", "--massif-out-file=massif"],
                  ["strace", "-f", "-o", "calls"], []):
        result = run(folder, *under, BUILD / "cudasim" / "13" / "known_work", 2, 2, 3, env={"LD_PRELOAD": preload(), "PPERF_STACKS": "off"}, timeout=300)
        trace = next(t for t in traces(folder) if len(dump(t, {"kernel"})))
        assert result.returncode == 0 and not result.stderr, (under, result.stderr[-1500:])
        wrong = differences(json.loads(result.stdout), whole(trace))
        assert not wrong and info(trace)["integrity"]["clock_violations"] == 0, (under, wrong)
        for path in traces(folder):
            path.unlink()


main()
