#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Committed records are in the file however the process ends, and neither children nor the program
damage it."""
import json, os, random, re, signal, time
from harness import *


def marks(path):
    """The numbers of the marks of each thread, in order. A regular expression reads them, because
    there are many."""
    found, text = {}, report("dump", path, "-f", "json").stdout.decode()
    for line in text.splitlines():
        if '"mark"' in line:
            record = json.loads(line)
            found.setdefault(record["tid"], []).append(record["payload"])
    return found


def kill_once(folder, least):
    """Kills a recording program once it has set `least` marks. Returns the progress of each thread.
    """
    progress = folder / "progress"
    process = subprocess.Popen([program("killed"), str(progress)], cwd=folder, env=environment(LD_PRELOAD=preload()),
                               stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    deadline = time.monotonic() + 5
    while sum(done for _, done in noted(progress)) < least and time.monotonic() < deadline:
        pass
    process.kill()
    process.wait()
    process.stdout.close()
    return noted(progress)


@case
def killed_at_200_moments_every_committed_record_is_read_back(folder):
    chance, kills, seen = random.Random(4711), 200 if VARIANT == "plain" else 10, 0
    for _ in range(kills):
        progress = kill_once(folder, chance.choice([0, 1, chance.randrange(10), chance.randrange(1000), chance.randrange(10000)]))
        if not (folder / "trace.bin").exists():
            assert all(done == 0 for _, done in progress), "records were committed, and there is no file"
            continue
        found = marks(folder / "trace.bin")
        for tid, done in progress:
            got = found.get(tid, [])
            assert got == list(range(len(got))), "a mark is missing or damaged"
            assert done <= len(got) <= done + 1, "%d marks had returned, %d are in the trace" % (done, len(got))
            seen += done
        assert info(folder / "trace.bin")["integrity"]["complete"]
        (folder / "trace.bin").unlink()
    assert seen > kills, "killed too early to show anything"


@case
def every_way_to_end_keeps_every_event(folder):
    statuses = {"return": 0, "exit": 3, "_exit": 4, "quick_exit": 5, "thread": 0, "abort": -signal.SIGABRT, "kill": -signal.SIGKILL,
                "interrupt": -signal.SIGINT, "terminate": -signal.SIGTERM, "overflow": -signal.SIGSEGV, "memory": -signal.SIGABRT,
                "segv": 1 if SANITIZED else -signal.SIGSEGV}
    if SANITIZED: # ASan's shadow memory does not fit into such a limit
        del statuses["memory"]
    for how, status in statuses.items():
        result = traced(folder, "ending", how, check=None)
        assert result.returncode == status or SANITIZED and result.returncode, (how, result.returncode, result.stderr[-300:])
        assert sorted(names(folder / "trace.bin", "mark")) == ["first thread"] * 1000 + ["second thread"] * 1000, how
        assert names(folder / "trace.bin").count("left open") == 2, how
        (folder / "trace.bin").unlink()


@case
def a_process_that_ends_while_its_trace_is_being_made_leaves_it_whole(folder):
    for after in range(0, 400, 5):
        traced(folder, "ending", "race", after)
        assert not [t for t in traces(folder) if t.name != "trace.bin"], traces(folder)
        for path in traces(folder):
            info(path)
            path.unlink()


@case
def a_program_that_leaves_from_a_signal_handler_is_not_held_up(folder):
    recorded = 0
    for moment in range(2000, 6000, 100): # on a busy machine some end before the first record
        traced(folder, "interrupted", "exit", moment, timeout=20)
        for path in traces(folder):
            assert path.name == "trace.bin" and info(path)["integrity"]["complete"], path
            path.unlink()
            recorded += 1
    assert recorded >= 10, recorded


@case
def a_thread_goes_on_after_a_signal_handler_has_jumped_out_of_our_work(folder):
    for how in "jump", "leave":
        traced(folder, "interrupted", how, timeout=40)
        found = names(folder / "trace.bin")
        lost = info(folder / "trace.bin")["integrity"]["lost_events"]
        assert found.count("after") == 1000, (how, found.count("after"), lost)
        assert lost <= 3 * 300, (how, lost)
        (folder / "trace.bin").unlink()


@case
def a_child_that_a_signal_handler_forks_goes_on_with_what_was_interrupted(folder):
    traced(folder, "interrupted", "fork", env={"PPERF_CHILDREN": "none"}, timeout=60)
    for path in traces(folder):
        path.unlink()
    traced(folder, "interrupted", "fork", 12, timeout=60)
    found = by_pid(folder)
    made = [name for names in found.values() for name in names if name.startswith("name ")]
    assert made == ["name %d" % i for i in range(10)] * len(found) and len(found) > 3, {p: n[-11:] for p, n in found.items()}
    # Events of a handler that interrupts pperf's own code are not recorded, but counted.
    lost = [info(t)["integrity"]["lost_events"] for t in traces(folder)]
    assert sum(lost) <= 3, lost


@case
def a_thread_that_a_signal_stops_anywhere_holds_up_no_other(folder):
    traced(folder, "interrupted", "stop", timeout=30)


@case
def a_thread_is_cancelled_where_it_would_be_without_us(folder):
    result = traced(folder, "interrupted", "cancel", timeout=20)
    assert result.stdout == b"8\n", result.stdout
    assert len(names(folder / "trace.bin")) == 8 * 2000 + 10


@case
def a_live_trace_can_be_read(folder):
    process = subprocess.Popen([program("killed"), "progress", "30000"], cwd=folder, env=environment(LD_PRELOAD=preload()), stdout=subprocess.PIPE)
    process.stdout.readline()
    last = 0
    try:
        await_marks(process, folder / "progress", 1)
        for _ in range(5):
            time.sleep(0.02)
            found = marks(folder / "trace.bin")
            count = sum(map(len, found.values()))
            assert all(numbers == list(range(len(numbers))) for numbers in found.values()) and count >= last, (count, last)
            last = count
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert last > 0


def by_pid(folder):
    found = {}
    for path in traces(folder):
        for record in dump(path, {"push"}):
            found.setdefault(record["pid"], []).append(record["name"])
    return found


@case
def forked_children_that_call_NVTX_have_traces_of_their_own(folder):
    traced(folder, "forks", "fork", 5)
    found = by_pid(folder)
    assert sorted(found.values()) == [["child %d" % i] for i in range(5)] + [["parent", "afterwards"]], found
    assert (folder / "trace.bin").exists() and len(traces(folder)) == 6, traces(folder)


@case
def children_of_children_do_too(folder):
    traced(folder, "forks", "nested", 4)
    assert sorted(by_pid(folder).values()) == [["child %d" % i] for i in range(4)] + [["parent", "afterwards"]], by_pid(folder)


@case
def a_fork_beside_a_recording_thread_does_not_hang_or_mix(folder):
    traced(folder, "forks", "thread", 30, timeout=60)
    found = by_pid(folder)
    children = [n for n in found.values() if n[0].startswith("child")]
    assert sorted(children) == sorted(["child %d" % i] for i in range(30)), found
    assert all(info(t)["integrity"]["complete"] for t in traces(folder))


@case
def children_that_record_nothing_leave_nothing(folder):
    for how in ("silent", "vfork", "spawn"):
        traced(folder, "forks", how, 5)
        assert [t.name for t in traces(folder)] == ["trace.bin"], (how, traces(folder))
        (folder / "trace.bin").unlink()


@case
def PPERF_CHILDREN_none_keeps_children_out(folder):
    traced(folder, "forks", "fork", 3, env={"PPERF_CHILDREN": "none"})
    assert list(by_pid(folder).values()) == [["parent", "afterwards"]], by_pid(folder)


@case
def a_child_of_the_bare_system_call_cannot_spoil_the_trace(folder):
    traced(folder, "forks", "clone", 3)
    found = by_pid(folder)
    assert ["parent", "afterwards"] in found.values(), found
    assert info(folder / "trace.bin")["integrity"]["complete"]


@case
def every_program_that_a_process_becomes_has_a_trace(folder):
    traced(folder, "execs", 3)
    found = sorted(n for t in traces(folder) for n in names(t))
    assert found == ["%d left" % i for i in range(4)], (found, traces(folder))


@case
def a_program_that_closes_our_descriptor_loses_at_most_what_is_counted(folder):
    for how in ("close", "reuse"):
        traced(folder, "closes", "victim", how)
        if how == "reuse":
            assert (folder / "victim").read_bytes() == b"precious"
        found = len(dump(folder / "trace.bin", {"push", "pop"}))
        integrity = info(folder / "trace.bin")["integrity"]
        assert found >= 2000 and found + integrity["lost_events"] == 402000, (how, found, integrity)
        (folder / "trace.bin").unlink()


@case
def a_limit_on_file_sizes_costs_records_and_nothing_else(folder):
    result = traced(folder, "sh", "-c", "ulimit -f 256; exec %s 2 1000000" % (PROGRAMS / "ranges"))
    found = len(dump(folder / "trace.bin", {"push", "pop"}))
    integrity = info(folder / "trace.bin")["integrity"]
    assert found > 0 and found + integrity["lost_events"] == 4000000, (found, integrity)
    assert result.stdout == result.stderr == b""


@case
def a_full_disk_costs_records_and_nothing_else(folder):
    (folder / "small").mkdir()
    script = """mount -t tmpfs -o size=512k none small || exit 77
        cd small && LD_PRELOAD="$PRELOAD" "$PROGRAM" 2 1000000; echo $? > ../status
        dd if=/dev/zero of=rest bs=4k 2> /dev/null
        PPERF_OUTPUT=second.bin LD_PRELOAD="$PRELOAD" "$PROGRAM" 2 10; echo $? >> ../status
        cp trace.bin .."""
    result = run(folder, "unshare", "-rm", "sh", "-c", script, env={"PRELOAD": preload(), "PROGRAM": program("ranges")})
    if result.returncode == 77 or b"unshare" in result.stderr:
        raise Skip("no file system can be mounted here")
    assert (folder / "status").read_text() == "0\n0\n", (folder / "status").read_text()
    found = len(dump(folder / "trace.bin", {"push", "pop"}))
    integrity = info(folder / "trace.bin")["integrity"]
    assert found > 0 and found + integrity["lost_events"] == 4000000, (found, integrity)


main()
