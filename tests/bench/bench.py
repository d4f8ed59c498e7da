#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench.py BUILD: measures the costs that pperf promises to keep, in turns with its floors, and checks them. Absolute times are
this machine's; only the ratios are promises."""
import glob, json, os, pathlib, platform, re, resource, shutil, statistics, subprocess, sys, tempfile, time

BUILD = pathlib.Path(sys.argv[1]).resolve()
LIBRARY, REPORT, LOAD, FLOOR = BUILD / "libpperf.so", BUILD / "pperf-report", BUILD / "tests/bench/nvtx_load", BUILD / "tests/bench/lib_floor.so"
ROUNDS, PAIRS = 9, 3000000
folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=BUILD))
missed = []


def environment(**more):
    return {**{k: v for k, v in os.environ.items() if not k.startswith(("PPERF_", "NVTX_"))}, **{k: str(v) for k, v in more.items()}}


def run(command, **env):
    result = subprocess.run([str(c) for c in command], env=environment(**env), cwd=folder, capture_output=True, text=True)
    if result.returncode:
        sys.exit("%s: ended with %d: %s" % (command[0], result.returncode, result.stderr[-400:]))
    return result.stdout


def floor(threads):
    """Nanoseconds a pair: elapsed, and of CPU time."""
    return tuple(map(float, run([LOAD, PAIRS, threads], NVTX_INJECTION64_PATH=FLOOR).split()))


def ours(threads, pairs=PAIRS):
    """The same, and the size of the trace, which is then removed: pages that are written back would disturb the next."""
    time = tuple(map(float, run([LOAD, pairs, threads], LD_PRELOAD=LIBRARY).split()))
    size = (folder / "trace.bin").stat().st_size
    (folder / "trace.bin").unlink()
    return time, size


def machine_use():
    fields = list(map(int, open("/proc/stat").readline().split()[1:]))
    return sum(fields[:8]) - fields[3] - fields[4]


def in_turns(*measures):
    """Rounds of one of each, elapsed times. Where other processes took more than an eighth of the machine in all but a few, all rounds
    count, and CPU times."""
    quiet, noisy, ticks = [], [], os.sysconf("SC_CLK_TCK")
    while len(quiet) < ROUNDS and len(quiet) + len(noisy) < 3 * ROUNDS:
        before, own = machine_use(), resource.getrusage(resource.RUSAGE_CHILDREN)
        start = os.times().elapsed
        values = [m() for m in measures]
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = (now.ru_utime + now.ru_stime) - (own.ru_utime + own.ru_stime)
        others = (machine_use() - before) / ticks - spent
        (quiet if others < 0.125 * os.cpu_count() * (os.times().elapsed - start) else noisy).append(values)
    if len(quiet) >= 5:
        return [[value[0] for value in values] for values in quiet]
    print("note: the machine was busy: CPU time instead of elapsed time in what follows, and more of it than on a quiet machine")
    return [[value[1] for value in values] for values in quiet + noisy]


def gate(name, value, limit, unit, detail, least=False):
    good = value >= limit if least else value <= limit
    print("%-6s %-52s %8.3f %s (%s %g)  %s" % ("ok" if good else "MISSED", name, value, unit, "at least" if least else "at most", limit, detail))
    if not good:
        missed.append(name)


def pair_cost():
    rounds = in_turns(lambda: floor(1), lambda: ours(1)[0], lambda: ours(2)[0])
    f0, one, two = (statistics.median(r[i] for r in rounds) for i in range(3))
    spread = "[%.1f-%.1f]" % (min(r[1] for r in rounds), max(r[1] for r in rounds))
    gate("NVTX push and pop, one thread", statistics.median(r[1] / r[0] for r in rounds), 1.5, "x floor",
         "%.1f ns %s, floor %.1f ns, %d rounds" % (one, spread, f0, len(rounds)))
    gate("two threads against one", statistics.median(r[2] / r[1] for r in rounds), 1.15, "x", "%.1f ns against %.1f" % (two, one))


def pair_bytes():
    small, large = ours(1, 1000000)[1], ours(1, 4000000)[1]
    gate("bytes in the trace", (large - small) / 3e6, 16, "a pair", "%d and %d bytes" % (small, large))


def instructions(pairs, **env):
    out = folder / "callgrind.out"
    run(["valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file=%s" % out, LOAD, pairs, 1], **env)
    total = int(re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.M)[1])
    for path in (out, folder / "trace.bin"):
        path.unlink(missing_ok=True)
    return total


def pair_instructions():
    if not shutil.which("valgrind"):
        missed.append("instructions: no valgrind")
        return
    counts = {}
    for name, env in (("ours", {"LD_PRELOAD": LIBRARY}), ("floor", {"NVTX_INJECTION64_PATH": FLOOR})):
        counts[name] = (instructions(60000, **env) - instructions(20000, **env)) / 40000
    gate("instructions", counts["ours"], 240, "a pair", "floor %.0f, both with the caller's and NVTX's own" % counts["floor"])


def start_up():
    """What is between the start of a process and its end, by the least of many in turns: what is in the way only adds. Python pays as any other; that its modules
    and operators are followed begins with `import torch` (make bench-torch)."""
    for name, command, rounds, most, ratio in (("a start, nothing recorded", ["/bin/true"], 300, 1, None), ("a start, with five ranges", [LOAD, 5, 1], 300, 1, None),
                                        ("python3 -c pass", [sys.executable, "-c", "pass"], 60, 1, 1.05)):
        bare, under = [], []
        for _ in range(rounds):
            for taken, env in ((bare, {}), (under, {"LD_PRELOAD": LIBRARY})):
                taken.append(one_start(command, environment(**env)))
                (folder / "trace.bin").unlink(missing_ok=True)
        (wall, cpu), (wall_under, cpu_under) = ([1e3 * min(t[i] for t in taken) for i in range(2)] for taken in (bare, under))
        detail = "%.2f ms of %.2f, CPU %.2f of %.2f" % (wall_under - wall, wall, cpu_under - cpu, cpu)
        busy = wall > 1.5 * cpu  # it waited for a CPU even at its best: then CPU time, of the more of it that a busy machine takes
        with_us, without = (cpu_under, cpu) if busy else (wall_under, wall)
        gate(name, with_us - without, most, "ms more", detail + (", a busy machine" if busy else ""))
        if ratio:
            gate(name, with_us / without, ratio, "x bare", detail)


def one_start(command, env):
    """Seconds, elapsed and of CPU time."""
    start, before = time.perf_counter(), os.getcwd()
    os.chdir(folder)
    pid = os.posix_spawn(str(command[0]), [str(c) for c in command], env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    os.chdir(before)
    _, status, use = os.wait4(pid, 0)
    if status:
        sys.exit("%s ended with %d" % (command[0], os.waitstatus_to_exitcode(status)))
    return time.perf_counter() - start, use.ru_utime + use.ru_stime


def report_memory():
    """The peak of a report on a trace of 640 MB against what its tree needs."""
    _, size = ours(1, 1000000)
    pairs = int(640e6 / (size / 1e6))
    run([LOAD, pairs, 1], LD_PRELOAD=LIBRARY, PPERF_MAX="2G")
    trace = folder / "trace.bin"
    pid = os.posix_spawn(str(REPORT), [str(REPORT), "tree", str(trace), "-f", "json", "-o", str(folder / "tree.json")], environment())
    _, status, use = os.wait4(pid, 0)
    if status:
        sys.exit("pperf-report ended with %d" % os.waitstatus_to_exitcode(status))
    tree = json.loads((folder / "tree.json").read_text())
    nodes, events = len(tree["rows"]), 2 * sum(row["calls"] for row in tree["rows"] if row["kind"] == "range")
    detail = "%d nodes, %.0f MB, %.1f s, %.0f million events a second" % (
        nodes, trace.stat().st_size / 1e6, use.ru_utime + use.ru_stime, events / 1e6 / max(use.ru_utime + use.ru_stime, 1e-9))
    gate("memory of the report", use.ru_maxrss / 1024, 32 + 1100 * nodes / 1048576, "MiB", detail)
    trace.unlink()


def brought_along():
    for path in sorted(glob.glob(str(BUILD / "tests" / "bench" / "bench_*"))):
        if not os.access(path, os.X_OK) or "." in os.path.basename(path):
            continue
        print(os.path.basename(path) + ":", flush=True)
        if subprocess.run([path], cwd=folder, env=environment()).returncode:
            missed.append(os.path.basename(path))


def main():
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    print("%s, %d CPUs, Linux %s, clock source %s" % (cpu[1] if cpu else platform.machine(), os.cpu_count(), platform.release(),
          open("/sys/devices/system/clocksource/clocksource0/current_clocksource").read().strip()))
    try:
        pair_cost()
        pair_bytes()
        pair_instructions()
        start_up()
        report_memory()
        brought_along()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("%d gates missed%s" % (len(missed), ": " + ", ".join(missed) if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
