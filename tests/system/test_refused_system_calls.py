#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""When system calls of pperf fail, records are lost and counted, and the program is unaffected.
Every call that may fail is made to fail here."""
import collections, errno, os, resource, signal, time
from harness import *

PAIRS = 8000
THREADS = 2
MADE = 2 * THREADS * PAIRS
REFUSED = {"fallocate": errno.ENOSPC, "pwrite": errno.ENOSPC, "pwritev": errno.ENOSPC, "mmap": errno.ENOMEM, "madvise": errno.ENOMEM, "open": errno.EMFILE,
           "fcntl": errno.EMFILE, "ftruncate": errno.EFBIG, "linkat": errno.EMLINK}


def refusing(folder, call, first=0, count=None, error=None, pairs=PAIRS):
    """Runs `ranges` under the library with some of its system calls refused. Returns how many such
    calls were made."""
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
    """Refuses the first call, then the second, and so on: `count` calls, or all from that one on.
    """
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
    for error in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        refusing(folder, "pwritev", 5, 10, error=error, pairs=150000)
        found, lost = accounted(folder / "trace.bin", 2 * THREADS * 150000)
        assert 0 < lost < found, (error, found, lost)
        (folder / "trace.bin").unlink()


class Phases:
    """The program `phases`: it makes its ranges one phase at a time, and the test acts between
    phases."""

    def __init__(self, folder, *wrapped, env=None):
        self.process = subprocess.Popen([*wrapped, program("phases")], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment(LD_PRELOAD=preload(), **(env or {})))
        self.made = []

    def phase(self, pairs):
        self.made.append(pairs)
        self.process.stdin.write(b"%d\n" % pairs)
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        assert said == b"phase %d\n" % len(self.made), (said, self.process.poll())

    def end(self):
        assert self.process.communicate(timeout=60) == (b"", b"")
        assert self.process.returncode == 0, self.process.returncode

    def accounted(self, path):
        """How many ranges of each phase were found; what is not there was counted."""
        found = collections.Counter(names(path))
        accounted(path, 2 * sum(self.made))
        return [found["phase %d" % (i + 1)] for i in range(len(self.made))]

    def stop(self):
        """Stops the program until it is continued."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)


@case
def a_program_that_is_stopped_for_a_while_is_read_and_goes_on(folder):
    host, paused_s = Phases(folder), 0.3
    host.phase(3000)
    host.stop()
    begin = time.monotonic()
    assert names(folder / "trace.bin") == ["phase 1"] * 3000
    traced(folder, "ranges", 1, 10, timeout=20)
    assert len(traces(folder)) == 2, traces(folder)
    time.sleep(max(0, begin + paused_s - time.monotonic()))
    host.process.send_signal(signal.SIGCONT)
    host.phase(3000)
    host.end()
    assert sorted(len(names(t)) for t in traces(folder)) == [10, 6000]
    for path in traces(folder):
        said = info(path)
        assert said["integrity"]["complete"] and said["integrity"]["clock_violations"] == 0, said["integrity"]
    times = [r["t_ns"] for r in dump(next(t for t in traces(folder) if len(names(t)) == 6000), {"push"})]
    assert max(b - a for a, b in zip(times, times[1:])) > paused_s * 0.9e9


@case
def a_limit_that_another_sets_and_lifts_while_it_runs_costs_what_is_counted(folder):
    host = Phases(folder)
    host.phase(20000)
    _, most = resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, (1, most))
    resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE, (1, resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE)[1]))
    host.phase(30000)
    resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, (most, most))
    host.phase(20000)
    host.end()
    found = host.accounted(folder / "trace.bin")
    assert found[0] == 20000 and found[1] < 10000 and found[2] > 10000, found


SMALL_DISK = "mount -t tmpfs -o size=1m none small && cd small && exec \"$0\""


@case
def a_small_disk_that_becomes_full_and_then_free_is_used_again(folder):
    (folder / "small").mkdir()
    host = Phases(folder, "unshare", "-rm", "sh", "-c", SMALL_DISK, env={"PPERF_OUTPUT": "small/trace.bin"})
    try:
        host.phase(20000)
    except (AssertionError, OSError):
        host.process.kill()
        raise Skip("no file system can be mounted here: %s" % host.process.communicate()[1].decode(errors="replace").strip())
    disk = pathlib.Path("/proc/%d/cwd" % host.process.pid)
    filler = open(disk / "filler", "wb")
    try:
        while True:
            filler.write(bytes(65536))
    except OSError:
        pass
    host.phase(30000)
    os.unlink(disk / "filler")
    filler.close()
    host.phase(20000)
    shutil.copy(disk / "trace.bin", folder)
    host.end()
    found = host.accounted(folder / "trace.bin")
    assert found[0] == 20000 and found[1] < 10000 and found[2] > 10000, found


class MemoryGroup:
    """A cgroup with a memory limit, which includes the page cache of its files."""

    def __init__(self, megabytes):
        old = pathlib.Path("/sys/fs/cgroup/memory")
        self.folder = (old if old.is_dir() else old.parent) / ("pperf-test-%d" % os.getpid())
        try:
            self.folder.mkdir()
            (self.folder / ("memory.limit_in_bytes" if old.is_dir() else "memory.max")).write_text("%d\n" % (megabytes << 20))
            if (self.folder / "memory.swap.max").exists():
                (self.folder / "memory.swap.max").write_text("0\n")
        except OSError as error:
            if self.folder.is_dir():
                self.folder.rmdir()
            raise Skip("no group with a limit on memory can be made here: %s" % error)

    def __enter__(self):
        return ["sh", "-c", "echo $$ > %s/cgroup.procs && exec \"$@\"" % self.folder, "sh"]

    def __exit__(self, *unused):
        self.folder.rmdir()


@case
def what_the_kernel_kills_for_want_of_memory_leaves_every_event(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime takes more memory than that")
    with MemoryGroup(64) as within:
        traced(folder, *within, PROGRAMS / "ending", "starve", check=-signal.SIGKILL)
    assert sorted(names(folder / "trace.bin", "mark")) == ["first thread"] * 1000 + ["second thread"] * 1000
    assert info(folder / "trace.bin")["integrity"]["complete"]


@case
def a_trace_may_be_larger_than_the_memory_that_the_program_may_have(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime takes more memory than that")
    with MemoryGroup(8) as within:
        traced(folder, *within, PROGRAMS / "ranges", 2, 1500000)
    assert (folder / "trace.bin").stat().st_size > 16 << 20
    assert info(folder / "trace.bin")["integrity"]["complete"]


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
        await_marks(process, folder / "progress", 20000)
        process.kill()
        assert process.communicate() == (b"", b""), change
        subprocess.run(["sh", "-c", "chmod -f 700 gone; rm -rf gone elsewhere"], cwd=folder)


main()
