#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the system refuses costs records, which are counted, and the program nothing: each call of ours to the system that may fail does."""
import errno, os, signal, struct, time
from harness import *

PAIRS = 8000
THREADS = 2
MADE = 2 * THREADS * PAIRS
REFUSED = {"fallocate": errno.ENOSPC, "pwrite": errno.ENOSPC, "pwritev": errno.ENOSPC, "mmap": errno.ENOMEM, "madvise": errno.ENOMEM, "open": errno.EMFILE,
           "fcntl": errno.EMFILE, "ftruncate": errno.EFBIG, "linkat": errno.EMLINK}


def refusing(folder, call, first=0, count=None, error=None, pairs=PAIRS):
    """Runs ranges under the library with some of its calls refused; how many such calls there were."""
    env = {"LD_PRELOAD": "%s/lib_refuses.so %s" % (PROGRAMS, preload()), "REFUSE": call, "REFUSE_FROM": str(first), "REFUSE_SEEN": "seen",
           "REFUSE_COUNT": None if count is None else str(count), "REFUSE_ERROR": str(REFUSED.get(call, 0) if error is None else error)}
    result = run(folder, "ranges", THREADS, pairs, 300, env=env, check=0)
    assert result.stdout == result.stderr == b"", (result.stdout, result.stderr)
    return int((folder / "seen").read_text())


def accounted(path, made=MADE):
    """Found and lost events, which must be what was made."""
    text = report("dump", path, "-f", "json").stdout
    found, lost = text.count(b'"kind":"push"') + text.count(b'"kind":"pop"'), info(path)["integrity"]["lost_events"]
    assert found + lost == made, "%d found and %d lost of %d" % (found, lost, made)
    return found, lost


def sweep(folder, call, count):
    """Refuses the first call, then the second, ...: `count` of them, or all from there on."""
    there = refusing(folder, call, first=1 << 40)
    results = []
    accounted(folder / "trace.bin")
    for first in range(there):
        for path in traces(folder):
            path.unlink()
        refusing(folder, call, first, count)
        left = traces(folder)
        assert not [p for p in left if p.name != "trace.bin"], (call, first, left)
        try:
            results.append(accounted(left[0]) if left else None)
        except AssertionError as error:
            raise AssertionError("%s refused from the %dth on (%s times): %s" % (call, first, count, error))
    return results


@case
def each_call_to_the_system_may_fail_once_or_for_ever(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime calls the system, too")
    for call in REFUSED:
        for count in (1, None):
            results = sweep(folder, call, count)
            assert results, "%s is never called" % call


@case
def a_write_may_be_short(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime calls the system, too")
    for count in (1, None):
        for first in range(refusing(folder, "pwritev", first=1 << 40)):
            for path in traces(folder):
                path.unlink()
            refusing(folder, "pwritev", first, count, error=0)
            accounted(folder / "trace.bin")


@case
def a_disk_that_is_full_for_a_while_costs_what_is_counted_and_no_more(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime calls the system, too")
    refusing(folder, "pwritev", 5, 10, pairs=150000)
    found, lost = accounted(folder / "trace.bin", 2 * THREADS * 150000)
    assert 0 < lost < found, (found, lost)


@case
def a_clock_that_is_set_while_it_is_recorded_moves_no_event(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime calls the system, too")
    for step in (3600, -3600, 86400 * 365 * 20):
        refusing(folder, "clock", 4, error=step)
        accounted(folder / "trace.bin")
        said = info(folder / "trace.bin")
        assert said["totals"]["wall_ns"] < 60e9 and said["integrity"]["clock_violations"] == 0, (step, said)
        (folder / "trace.bin").unlink()


@case
def descriptors_may_all_be_taken(folder):
    result = traced(folder, "crowd", "descriptors", 5000)
    assert result.stdout == result.stderr == b"" and not traces(folder), (result, traces(folder))
    traced(folder, "crowd", "late", 5000)
    assert accounted(folder / "trace.bin", 30000)[1] == 0


@case
def two_thousand_threads_at_once_each_have_their_range(folder):
    if SANITIZED:
        raise Skip("the sanitizer's threads need larger stacks")
    if traced(folder, "crowd", "threads", 2000, check=None).returncode == 77:
        raise Skip("there may not be so many threads here")
    assert names(folder / "trace.bin") == ["in the crowd"] * 2000
    assert info(folder / "trace.bin")["integrity"]["complete"]


@case
def a_storm_of_forks_leaves_a_trace_of_each_child(folder):
    if traced(folder, "crowd", "children", 150, check=None).returncode == 77:
        raise Skip("there may not be so many processes here")
    assert len(traces(folder)) == 151, len(traces(folder))
    for path in traces(folder)[::10]:
        assert info(path)["integrity"]["complete"], path


@case
def runs_that_begin_at_once_in_one_folder_keep_their_traces(folder):
    command = [program("ranges"), "1", "100"]
    together = [subprocess.Popen(command, cwd=folder, env=environment(LD_PRELOAD=preload())) for _ in range(16)]
    assert all(process.wait(60) == 0 for process in together)
    left = [len(names(path)) for path in traces(folder)]
    assert left and set(left) == {100} and not list(folder.glob("*.part")), (left, os.listdir(folder))
    assert {p.name for p in traces(folder)} >= {"trace.bin"}, traces(folder)


@case
def containers_whose_processes_have_the_same_numbers_keep_their_traces(folder):
    command = ["unshare", "-rpf", "--mount-proc", program("killed"), "progress", "3000"]
    together = []
    for name in ("one", "two", "three"):
        command[-2] = name
        together.append(subprocess.Popen(command, cwd=folder, env=environment(LD_PRELOAD=preload()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True))
    try:
        if any(process.stdout.readline() != b"ready\n" for process in together):
            raise Skip("no container can be made here")
        deadline, found = time.monotonic() + 30, {}
        while time.monotonic() < deadline and sorted(found.values()) != [9000] * 3:
            time.sleep(0.1)
            found = {t.name: len(names(t, "mark")) for t in traces(folder) if not t.name.endswith(".part")}
        assert sorted(found.values()) == [9000] * 3, found
    finally:
        for process in together:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
            process.stderr.close()


@case
def the_folder_of_a_trace_may_go_and_may_become_read_only(folder):
    for change in ("rm -r gone", "chmod 500 gone", "mv gone elsewhere", "rm -r gone && mkdir gone && touch gone/trace.bin"):
        (folder / "gone").mkdir()
        process = subprocess.Popen([program("killed"), "progress", "20000"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment(LD_PRELOAD=preload(), PPERF_OUTPUT="gone/trace.bin"))
        assert process.stdout.readline() == b"ready\n"
        subprocess.run(["sh", "-c", change], cwd=folder, check=True)
        progress, deadline = folder / "progress", time.monotonic() + 60
        while min(struct.unpack_from("<6Q", progress.read_bytes())[1::2]) < 20000:
            assert process.poll() is None and time.monotonic() < deadline, (change, process.poll())
            time.sleep(0.01)
        process.kill()
        assert process.communicate() == (b"", b""), change
        subprocess.run(["sh", "-c", "chmod -f 700 gone; rm -rf gone elsewhere"], cwd=folder)


main()
