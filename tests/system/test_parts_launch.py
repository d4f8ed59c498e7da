#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How `pperf part` starts and stops its processes, what it says if they fail, and what `pperf` says of a Dask scheduler that is not there, does not
answer or has no workers. `make scale-peers` installs Dask; without it these cases are skipped."""
import json, os, shutil, signal, socket, subprocess, sys, time
from harness import REPORT, ROOT, Skip, case, environment, main, unsanitized
from part_tools import ENGINES, Cluster, job, part, pperf

# In the place of pperf-report. A share of number 1 fails.
SLOW = '#!/bin/sh\necho $$ >> "$PIDS"\nexec sleep 100\n'
HALF = '#!/bin/sh\n[ $JOB_COMPLETION_INDEX != 1 ] || { echo "pperf-report: disk full" >&2; %s; }\necho "3 traces: 3 written, 0 were there"\n'
LIMITED = """
import sys
from pperf_parts import __main__, distributed
distributed.FILE_S = distributed.SCHEDULER_S = distributed.WORKERS_S = 1
sys.exit(__main__.main())
"""


def launcher(folder, program):
    """A launcher beside a pperf-report that is a shell script."""
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    (folder / "bin").mkdir()
    (folder / "python").symlink_to(ROOT / "python")
    shutil.copy(ROOT / "scripts" / "pperf", folder / "bin" / "pperf")
    (folder / "bin" / "pperf-report").write_text(program)
    (folder / "bin" / "pperf-report").chmod(0o755)
    return str(folder / "bin" / "pperf")


def is_running(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


def started(file, count):
    """The pids that so many processes have written."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pids = [int(line) for line in (file.read_text().splitlines() if file.exists() else [])]
        if len(pids) == count:
            return pids
        time.sleep(0.02)
    raise AssertionError("no %d processes of %s" % (count, file))


def end_of_signal(folder, program, number, to_group):
    """Sends a signal to pperf part while its three processes run. Returns (exit status, stderr, processes that still run)."""
    pids_file = folder / "pids"
    pids_file.unlink(missing_ok=True)
    process = subprocess.Popen([program, "part", str(folder), "-o", str(folder / "parts"), "-j", "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment(PPERF_PYTHON=str(ENGINES), PIDS=str(pids_file)), start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        pids = started(pids_file, 3)
        (os.killpg if to_group else os.kill)(process.pid, number)
        status = process.wait(timeout=30)
        left = [pid for pid in pids if is_running(pid)]
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        errors = process.communicate()[1]
    return status, errors, left


@unsanitized
def a_signal_ends_the_processes_too(folder):
    """SIGTERM and SIGINT to pperf part only, and Ctrl-C, which the processes get too."""
    program = launcher(folder, SLOW)
    for number, to_group in (signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGINT, True):
        assert end_of_signal(folder, program, number, to_group) == (128 + number, "", []), (number, to_group)


@unsanitized
def if_no_process_succeeds_nothing_is_promised(folder):
    traces = job(folder / "job", 3, 2)
    (folder / "afile").write_text("")
    for count in "2", "5": # of which two have no trace, and succeed
        text = pperf("part", traces, "-o", folder / "afile", "-j", count, check=2)
        assert text.count("afile") == 1 and "Not a directory" in text and text.endswith("\npperf: pperf-report ended with 2\n"), text


def said_of_failure(folder, name, program, status=2):
    (folder / name).mkdir()
    result = subprocess.run([launcher(folder / name, program), "part", str(folder), "-o", str(folder / "parts"), "-j", "3"], capture_output=True, text=True,
                            env=environment(PPERF_PYTHON=str(ENGINES)), timeout=60)
    assert result.returncode == status, result
    return result.stdout + result.stderr


@unsanitized
def if_one_process_fails_the_parts_of_the_others_are_named(folder):
    rest = "; the other processes' parts are written, and a second run does the rest\n"
    assert said_of_failure(folder, "exit", HALF % "exit 3") == "pperf-report: disk full\npperf: pperf-report ended with 3" + rest
    counts = "echo 1 trace: 1 written, 0 were there; exit 2" # none of its traces can be read
    assert said_of_failure(folder, "counts", HALF % counts, 0) == "7 traces: 7 written, 0 were there\npperf-report: disk full\n"
    assert said_of_failure(folder, "kill", HALF % "kill -9 $$") == "pperf-report: disk full\npperf: pperf-report was killed by signal 9" + rest


@case
def a_python_that_is_no_program_is_named(folder):
    (folder / "data").write_text("")
    for python in "/nonexist", "no-such-python", str(folder), str(folder / "data"), "test", "python3 -X dev":
        result = subprocess.run([str(ROOT / "scripts" / "pperf"), "ranks", str(folder)], capture_output=True, text=True,
                                env=environment(PPERF_PYTHON=python))
        assert result.returncode == 125, (python, result)
        assert result.stderr == "pperf: PPERF_PYTHON names no program: '%s'; set it to a Python 3, or unset it\n" % python, result.stderr


@case
def a_python_without_engines_says_what_to_install(folder):
    """By its name in PATH, as python3 is."""
    (folder / "bare-python").write_text('#!/bin/sh\nexec "%s" -S "$@"\n' % sys.executable)
    (folder / "bare-python").chmod(0o755)
    part(job(folder / "job", 1, 1), folder / "parts")
    result = subprocess.run([str(ROOT / "scripts" / "pperf"), "ranks", str(folder / "parts")], capture_output=True, text=True,
                            env=environment(PPERF_PYTHON="bare-python", PATH="%s:%s" % (folder, environment()["PATH"]), PYTHONPATH=""))
    assert result.returncode == 2 and result.stderr.endswith(" is not installed: pip install 'pperf[query]'\n"), result


# ---- Dask ----

def needs_dask():
    if not ENGINES.exists() or subprocess.run([str(ENGINES), "-c", "import dask.distributed"], capture_output=True).returncode:
        raise Skip("Dask is not installed: make scale-peers is needed")


def limited(*arguments):
    """What pperf says with limits of one second, in an exit status of 2."""
    result = subprocess.run([str(ENGINES), "-c", LIMITED, *map(str, arguments)], capture_output=True, text=True, timeout=30,
                            env=environment(PYTHONPATH=str(ROOT / "python"), PPERF_REPORT=str(REPORT), LC_ALL="C.UTF-8"))
    assert result.returncode == 2, result
    return result.stderr


@unsanitized
def a_scheduler_file_that_is_not_there_is_refused(folder):
    needs_dask()
    traces, parts = job(folder / "job", 1, 2), folder / "parts"
    (folder / "list.json").write_text("[1]")
    part(traces, parts)
    refused = "pperf: waiting up to 1 s for the scheduler file {0}\npperf: there is no scheduler file {0}, and that is no address such as tcp://HOST:PORT; start one: dask scheduler --scheduler-file FILE\n"
    assert limited("ranks", parts, "--dask", "nos.json", "--dask-from", 1) == refused.format("nos.json")
    assert limited("part", traces, "-o", parts, "--dask", folder / "nos.json") == refused.format(folder / "nos.json")
    for file in folder / "list.json", folder:
        assert "is no scheduler file; start a scheduler" in limited("part", traces, "-o", parts, "--dask", file)


@unsanitized
def an_address_that_is_none_ends_the_process(folder):
    needs_dask()
    for address, why in ("tcp://127.0.0.1", "missing port number"), ("foo://a:1", "unknown address scheme"):
        text = limited("part", folder, "-o", folder / "parts", "--dask", address)
        assert text.startswith("pperf: no Dask scheduler can be reached by %s: %s" % (address, why)) and text.count("\n") == 1, text


@unsanitized
def a_scheduler_that_does_not_answer_is_given_up(folder):
    """What listens there accepts connections and writes nothing."""
    needs_dask()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "127.0.0.1:%d" % server.getsockname()[1]
        (folder / "s.json").write_text(json.dumps({"address": "tcp://" + address}))
        for scheduler in address, folder / "s.json":
            text = limited("part", folder, "-o", folder / "parts", "--dask", scheduler)
            assert "no Dask scheduler can be reached by %s: " % scheduler in text and "does not answer in 1 s; if the scheduler has ended, start one\n" in text, text


class Scheduler(Cluster):
    """A scheduler without workers."""

    def start_all(self, workers):
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(self.file))
        deadline = time.monotonic() + 60
        while not self.file.read_text().endswith("}") and time.monotonic() < deadline:
            time.sleep(0.02)


@unsanitized
def a_scheduler_without_workers_is_waited_for_and_given_up(folder):
    needs_dask()
    with Scheduler(folder) as scheduler:
        assert limited("part", folder, "-o", folder / "parts", "--dask", scheduler.file) == (
            "pperf: the Dask scheduler has no workers; waiting up to 1 s for one; start some: dask worker ADDRESS\n"
            "pperf: the Dask scheduler had no workers in 1 s; start some: dask worker ADDRESS\n")
    text = limited("part", folder, "-o", folder / "parts", "--dask", scheduler.file) # which has ended
    assert "no Dask scheduler can be reached" in text and text.count("\n") == 1, text


if __name__ == "__main__":
    main()
