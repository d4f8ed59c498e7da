#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ten thousand kills, at moments spread over whole programs: what was committed is read back, nothing is damaged, and no next run is in the way of what
a former one has left. PPERF_SOAK_KILLS: how many instead; PPERF_SOAK_SEED: which moments."""
import concurrent.futures, os, random, re, signal, struct
from harness import *

signal.signal(signal.SIGINT, signal.default_int_handler) # a shell's background job, and what it starts, would not be ended by it
KILLS = int(os.environ.get("PPERF_SOAK_KILLS", "10000"))
SEED = int(os.environ.get("PPERF_SOAK_SEED", "4711"))
SIGNALS = [signal.SIGKILL] * 8 + [signal.SIGINT, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV]
BROKEN = ("damaged", "unknown_kinds", "clock_violations", "lost_events", "unended", "unmatched_ends")
SIM = BUILD / "cudasim" / "13"


def programs():
    """Each with its arguments. Those of the simulated device where it is built."""
    found = [["killed", "progress", "20000"], ["ranges", "4", "200000", "3000"], ["churn", "3000"], ["crowd", "children", "30"], ["crowd", "threads", "200"],
             ["forks", "thread", "20"], ["nvtx_calls", "expected", str(PROGRAMS / "lib_nvtx_copy.so")], ["ending", "exit"], ["execs", "4"]]
    if (SIM / "known_work").exists():
        found += [[str(SIM / "known_work"), "4", "2", "30"], [str(SIM / "cuda_guest"), "works", "200"]]
    return found


def duration(folder, command):
    """How long it takes when it is left alone, a tenth of a second at most; it is the range of the moments."""
    process = start(folder, command)
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() < begin + 0.1:
        time.sleep(0.0005)
    end(process, signal.SIGKILL)
    return time.monotonic() - begin


def start(folder, command):
    return subprocess.Popen([program(command[0]), *command[1:]], cwd=folder, env=environment(LD_PRELOAD=preload()), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def end(process, how):
    """It and its children, all at once."""
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        pass
    process.wait()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def check(folder, command):
    """How many traces there are, all of which must be whole; and how many marks of `killed`."""
    seen = 0
    for path in traces(folder):
        if path.name.endswith(".part"): # killed between making the file and naming it: nothing had been recorded
            assert path.stat().st_size <= 65536, path
            continue
        integrity = info(path)["integrity"]
        assert not any(integrity[key] for key in BROKEN), (command, path.name, integrity)
    if command[0] == "killed" and (folder / "progress").exists():
        seen = check_marks(folder)
    return len(traces(folder)), seen


def check_marks(folder):
    """Every mark whose call had returned."""
    noted, found = (folder / "progress").read_bytes(), {}
    noted = struct.unpack_from("<6Q", noted) if len(noted) >= 48 else [0] * 6
    text = report("dump", folder / "trace.bin", "-f", "json").stdout.decode() if (folder / "trace.bin").exists() else ""
    for tid, payload in re.findall(r'"tid":(\d+),"kind":"mark".*?"payload":(\d+)', text): # by pattern: there are many
        found.setdefault(int(tid), []).append(int(payload))
    for tid, done in zip(noted[::2], noted[1::2]):
        got = found.get(tid, [])
        assert got == list(range(len(got))) and done <= len(got) <= done + 1, "%d marks of thread %d had returned, %d are in the %s; %d bytes of disk are free" % (
            done, tid, len(got), "trace" if text else "trace, which is not there", shutil.disk_usage(folder).free)
    return sum(noted[1::2])


def kill_many(folder, command, times, seed):
    """Traces that were there, marks that were read back, unnamed files that were left."""
    chance, sums = random.Random("%d %s" % (seed, command)), [0, 0, 0]
    (folder / "calm").mkdir(parents=True)
    longest = duration(folder / "calm", command)
    for number in range(times):
        case_folder = folder / ("at %d" % number)
        case_folder.mkdir()
        process = start(case_folder, command)
        time.sleep(chance.uniform(0, longest))
        end(process, chance.choice(SIGNALS))
        there, seen = check(case_folder, command)
        sums = [sums[0] + there, sums[1] + seen, sums[2] + len(list(case_folder.glob("*.part")))]
        shutil.rmtree(case_folder, ignore_errors=True)
    return sums


@case
def killed_at_any_moment_programs_leave_whole_traces(folder):
    commands = programs()
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        jobs = [pool.submit(kill_many, folder / str(i), c, KILLS // len(commands) + 1, SEED) for i, c in enumerate(commands)]
        sums = [job.result() for job in jobs]
    for command, (there, seen, unnamed) in zip(commands, sums):
        print("# %s: %d kills, %d traces, %d marks read back, %d files without a name yet" % (" ".join(map(os.path.basename, command[:2])), KILLS // len(commands) + 1, there, seen, unnamed))
    assert sum(s[0] for s in sums) > KILLS / 4 and sum(s[1] for s in sums) > 0, sums


main()
