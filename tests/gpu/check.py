#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the programs of this folder under the library, on whatever device there is, and compares what the traces say with what the programs
know. Prints TAP and what was measured; with --evidence FOLDER writes both there as they come, with small traces and those of what failed. Called by
scripts/gpu-check.sh.

Claims are checks: a wrong one is a failure. What only a real GPU can tell (whose numbers the programs cannot know) is an observation: it is printed
and kept, and nothing is assumed of it. A claim for which no time was left is neither: it is printed as skipped.

--part probe: only asks CUPTI itself, without the library; its evidence is probe.json. --part programs: everything else; its evidence is gpu-check.json."""
import argparse, bisect, collections, gzip, json, os, pathlib, re, shutil, signal, statistics, struct, subprocess, sys, tempfile, traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from bounded import TooLong, bounded
from evidence import Evidence
from gpu_reference import CALLBACK, CAPTURED, calls, complete, differences, gpu, measured, owners, said
from harness import environment, preload
from raw_trace import SLOT, CHUNK, blocks, structs, whole

ROUNDS = 7
LIMIT_S = 60  # for one program, which takes a second or two
NO_TIME = "left out: no time was left"
PATIENCE_S = 12  # the library's limit for the end of CUPTI is 10 s
results = []
programs = evidence = None


class NotCompiled(Exception):
    pass


def run(folder, name, *arguments, env=None, check=None, timeout=LIMIT_S, look=None):
    """Runs a program in `folder` without the library. `check`: the exit status that it must have."""
    ended = bounded([program(name), *arguments], folder, environment(**(env or {})), evidence.limit(timeout), look)
    if check is not None:
        assert ended.returncode == check, "%s ended with %d, not %d: %s" % (name, ended.returncode, check, ended.stderr.decode(errors="replace")[-600:])
    return ended


def traced(folder, name, *arguments, env=None, **options):
    return run(folder, name, *arguments, env={"LD_PRELOAD": preload(), **(env or {})}, **options)


def attempt(function, folder):
    """None, or what was wrong."""
    if evidence.left() <= 0:
        return NO_TIME
    try:
        function(folder)
    except Exception as error:
        if isinstance(error, TooLong) and evidence.left() <= 0:
            return NO_TIME
        for path in sorted(folder.glob("*.bin")):
            evidence.keep(path, "failed-%d-%s" % (len(results) + 1, path.stem))
        return "%s: %s" % (type(error).__name__, str(error)[:1500])


def check(name):
    """Marks a claim: a function that raises where it does not hold."""
    def mark(function):
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            problem = attempt(function, pathlib.Path(folder))
        results.append((name, problem))
        evidence.put("checks", name, problem or "ok")
        if problem == NO_TIME:
            print("ok %d - %s # SKIP %s" % (len(results), name, problem), flush=True)
            return function
        print("%s %d - %s" % ("not ok" if problem else "ok", len(results), name), flush=True)
        for line in (problem or "").splitlines():
            print("#   " + line, flush=True)
        return function
    return mark


def observe(name, value):
    evidence.put("observations", name, value)
    print("# %s: %s" % (name, json.dumps(value)), flush=True)


def compiled(name):
    return (programs / name).exists()


def not_compiled(name):
    """What the compiler says, or that the program cannot be built here."""
    log = programs / (name + ".log")
    text = log.read_text(errors="replace").strip() if log.exists() else ""
    return "it did not compile: " + text[-1500:] if text else "it cannot be built here"


def program(name):
    if not compiled(name):
        raise NotCompiled("%s was not built; its own check says why" % name)
    return str(programs / name)


def trace_of(folder, name, *arguments, env=None, status=0):
    """Runs it bare and under the library: the same output and status. The output, and the trace."""
    for path in folder.glob("*.bin*"):
        path.unlink()
    bare = run(folder, name, *arguments, env=env, check=status)
    under = traced(folder, name, *arguments, env=env, check=status)
    assert (under.stdout, under.stderr) == (bare.stdout, bare.stderr), (bare.stdout[-500:], under.stdout[-500:], under.stderr[-500:])
    return bare.stdout.decode(), whole(folder / "trace.bin")


def realtime_of(path):
    """From raw ticks to CLOCK_REALTIME nanoseconds, by the trace's own samples."""
    data = path.read_bytes()
    samples = sorted({struct.unpack_from("<QQQ", data, at) for kind, stream, _, start, end in blocks(data) if kind in (SLOT, CHUNK) and stream
                      for name, _, _, at, _ in structs(data, start, end) if name == "CLOCK"})
    (raw0, _, real0), (raw1, _, real1) = samples[0], samples[-1]
    if raw1 == raw0:
        return lambda raw: real0
    ticks = [s[0] for s in samples]

    def convert(raw):
        i = min(max(bisect.bisect(ticks, raw), 1), len(samples) - 1)
        (a, _, real_a), (b, _, real_b) = samples[i - 1], samples[i]
        slope = (real_b - real_a) / (b - a) if b - a > 1000000 else (real1 - real0) / (raw1 - raw0)
        return real_a + (raw - a) * slope
    return convert


def stacks_of(pid):
    """Where each thread of a process is, as a debugger tells it."""
    debugger = shutil.which("gdb") or shutil.which("cuda-gdb")
    if not debugger:
        return "no debugger here"
    try:
        said = subprocess.run([debugger, "-p", str(pid), "-batch", "-ex", "thread apply all bt 24"], capture_output=True, timeout=30, stdin=subprocess.DEVNULL)
        return said.stdout.decode(errors="replace")[-12000:]
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def begins(env):
    """Whether the smallest program gets through its first steps under the library, and where it stands if it does not."""
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        try:
            done = traced(folder, "cuda_guest", "works", 5, env=env, look=stacks_of)
            ended = {"status": done.returncode, "output": (done.stdout + done.stderr).decode(errors="replace")[-2000:]}
        except TooLong as error:
            ended = {"status": "hangs", "output": str(error), "stacks": error.stacks}
        path = pathlib.Path(folder) / "trace.bin"
        if path.exists():
            ended["meta"] = whole(path).meta
            evidence.keep(path, "first")
        observe("the first program, " + (" ".join("%s=%s" % pair for pair in env.items()) or "as it is"), ended)
        return ended["status"] == 0


def check_first():
    """false: nothing more can be learnt here with CUPTI; what can without was said."""
    if not compiled("cuda_guest") or begins({}):
        return True
    print("# it does not get through", flush=True)
    results.append(("the first program", "does not end as it ought to"))
    evidence.put("checks", *results[-1])
    print("not ok %d - %s" % (len(results), results[-1][0]), flush=True)
    begins({"PPERF_CUPTI": "0"})
    begins({"PPERF_CUDA": "0"})
    return False


def missing(name):
    """Whether a program that not every machine can build is missing. One that does not compile is a failure of its own."""
    if compiled(name):
        return False
    said = not_compiled(name)
    observe(name, said)
    if "did not compile" in said:
        results.append((name, said))
        evidence.put("checks", name, said)
        print("not ok %d - %s is built" % (len(results), name), flush=True)
    return True


def converted_memsets(program_says, trace_says):
    """Whether they differ only in memsets of graphs that CUPTI calls kernels, which it may since CUDA 11.0: the driver makes kernels of some."""
    def merged(counts):
        both = {k: v for k, v in counts.items() if k not in ("graph_kernels", "graph_sets", "graph_set_bytes")}
        return both, counts.get("graph_kernels", 0) + counts.get("graph_sets", 0)
    return merged(program_says) == merged(trace_says) and trace_says.get("graph_sets", 0) < program_says.get("graph_sets", 0)


def check_known_work():
    for runtime in "shared", "static":
        if missing("known_work_" + runtime):
            continue

        @check("known work, %s runtime: every path has the counts and bytes that the program knows, every call its record" % runtime)
        def _(folder):
            for threads, streams, iterations in ((1, 1, 20), (4, 2, 20), (16, 3, 10)):
                output, trace = trace_of(folder, "known_work_" + runtime, threads, streams, iterations)
                wanted, got = said(json.loads(output)), measured(trace)
                known = [p for p in wanted if p in got and converted_memsets(wanted[p], got[p])]
                if known:
                    observe("paths whose graph memsets CUPTI calls kernels", len(known))
                wrong = [text for text in differences(json.loads(output), trace) if text.split(": ")[0] not in {"/".join(p) for p in known}]
                assert not wrong, "\n".join(wrong)
                complete(trace)
            observe("cupti", {k: v for k, v in trace.meta.items() if k.startswith(("version.", "warning.", "source.", "cupti."))})
            if runtime == "static":
                launches = calls(trace, "LAUNCH")
                assert launches and all(c.flags & CALLBACK for c in launches)
                kernels = {k.correlation: k for k in gpu(trace) if k.kind == "KERNEL"}
                observe("launches whose name, as the callback has it, is the record's",
                        [sum(c.name == kernels[c.correlation].name for c in launches if c.correlation in kernels), len(launches)])

        if evidence.folder:
            @check("a small trace is kept (%s runtime)" % runtime)
            def _(folder):
                traced(folder, "known_work_" + runtime, 2, 2, 2, check=0)
                with gzip.GzipFile(evidence.folder / ("known_work_%s.bin.gz" % runtime), "wb", mtime=0) as file:
                    file.write((folder / "trace.bin").read_bytes())


def check_libraries():
    if missing("library_calls"):
        return

    @check("cuBLAS: what it launches is seen and has records, and so do the program's own kernels")
    def _(folder):
        output, trace = trace_of(folder, "library_calls", 25)
        names = collections.Counter(trace.names[r.name] for r in gpu(trace) if r.kind == "KERNEL")
        own = sum(n for name, n in names.items() if "own_kernel" in name)
        assert own == json.loads(output)["own_kernels"], names
        complete(trace)
        assert sum(names.values()) - own >= 25, names
        observe("kernels of cuBLAS", {name: n for name, n in names.items() if "own_kernel" not in name})


def check_graphs():
    @check("graphs: each record of a launch has the node that was cloned from the captured one")
    def _(folder):
        _, trace = trace_of(folder, "cuda_guest", "captures", 5)
        nodes = {n.graph_node: n for n in trace.dictionary["GRAPH_NODE"]}
        work = [r for r in gpu(trace) if r.graph_node]
        captured = [c for c in trace.calls if c.flags & CAPTURED]
        assert collections.Counter(c.kind for c in captured) == {"LAUNCH": 5, "SET": 1}, collections.Counter(c.kind for c in captured)
        assert len(work) == 12 and all(r.graph_node in nodes and nodes[r.graph_node].original in nodes for r in work)
        observe("a graph's id in its records, and of the executable graph", [sorted({r.graph for r in work}),
                                                                             [e.exec_id for e in trace.dictionary["GRAPH_EXEC"]]])


def check_exits():
    for way, status, least in (("works", 0, 500), ("thread_exits", 4, 500), ("idles", -signal.SIGKILL, 500), ("leaves", 3, 500), ("forks", 0, 1000)):
        @check("a program that %s: its output is unchanged and no record is lost" % way)
        def _(folder):
            output, trace = trace_of(folder, "cuda_guest", way, 500, status=status)
            kernels = [r for r in trace.records if r.kind == "KERNEL"]
            observe("%s: kernels launched, delivered" % way, [len(calls(trace, "LAUNCH")), len(kernels)])
            assert len(kernels) == least, len(kernels)
            assert "hangs" not in output, output


def check_threads():
    @check("no thread before the program uses CUDA, and none more that takes the program's signals")
    def _(folder):
        lines = traced(folder, "cuda_guest", "tasks", check=0).stdout.decode().splitlines()
        bare = run(folder, "cuda_guest", "tasks", check=0).stdout.decode().splitlines()
        count = lambda text: [int(re.search(r": (\d+) thread", line)[1]) for line in text]
        taking = lambda text: [int(re.search(r", (\d+) that take", line)[1]) for line in text]
        # How many threads CUPTI makes, and when, is its own affair: `probe_cupti threads` says it.
        observe("threads before CUDA, after asking, with a context: bare, under the library", [count(bare), count(lines)])
        observe("of them taking signals", [taking(bare), taking(lines)])
        assert count(lines)[0] == count(bare)[0], (bare, lines)
        assert all(ours <= alone for ours, alone in zip(taking(lines), taking(bare))), (bare, lines)


def observe_memory_and_clocks():
    @check("allocations agree with CUPTI's own records of them; kernels begin after their launch did")
    def _(folder):
        _, trace = trace_of(folder, "known_work_shared", 2, 2, 50)
        ours = {(c.address, c.correlation) for c in calls(trace, "ALLOC", "FREE")}
        extra = [r for r in trace.records if r.kind == "GPU_MEMORY" and (r.address, r.correlation) not in ours]
        observe("memory records of CUPTI that are no call of the program (operation, kind, bytes)", [[r.operation, r.memory_kind, r.bytes] for r in extra[:20]])
        realtime, by_id = realtime_of(folder / "trace.bin"), owners(trace)
        lead = sorted(r.start_ns - realtime(by_id[r.correlation].stamp - by_id[r.correlation].duration) for r in gpu(trace) if r.start_ns)
        early = [l for l in lead if l < 0]
        observe("from the beginning of a launch to the beginning of its work, ns: least, median, most", [round(lead[0]), round(lead[len(lead) // 2]), round(lead[-1])])
        observe("work that begins before its launch", [len(early), len(lead)])
        batches = [r for r in trace.records if r.kind == "GPU_BATCH"]
        observe("buffers, records in them, CUPTI's overhead records by kind", [len(batches), sum(b.records for b in batches),
                collections.Counter(r.type for r in trace.records if r.kind == "OVERHEAD")])
        check_memory_records(trace)


def check_memory_records(trace):
    """Each allocation and release has a record of its address. Whether its id is the driver call's is not documented."""
    ours = [c for c in calls(trace, "ALLOC", "FREE") if c.address]
    theirs = [r for r in trace.records if r.kind == "GPU_MEMORY"]
    same_id = {(c.address, c.correlation) for c in ours} & {(r.address, r.correlation) for r in theirs}
    observe("allocations and releases, of them with a memory record of the same id", [len(ours), len(same_id)])
    lacking = collections.Counter(c.address for c in ours) - collections.Counter(r.address for r in theirs)
    assert not lacking, "%d allocations and releases of which CUPTI has no record" % sum(lacking.values())


# The open questions that most depends on come first. (question, arguments, seconds at most)
QUESTIONS = [
    ("whose id the records carry, callbacks of driver and records of both kinds of calls on", ("ids", "driver", "calls"), 30),
    *[("ids beside a client like Kineto, callbacks of it: %s" % d, ("kineto", d), 30) for d in ("alone", "driver", "both")],
    *[("whose id the records carry, callbacks of %s on" % d, ("ids", d), 30) for d in ("driver", "runtime", "both")],
    ("resource callbacks of graphs", ("nodes",), 30),
    *[("when buffers of %s bytes come from a busy GPU" % n, ("busy", n, 5), 40) for n in (131072, 1048576)],
    *[("records of queries, cuptiActivityEnableAllSyncRecords: %s" % s, ("queries", s), 30) for s in ("default", 0, 1)],
    *[("threads, signals: %s" % s, ("threads", s), 30) for s in ("inherit", "blocked")],
    *[("a graph's replay, records: %s" % s, ("replay", s), 30) for s in ("none", "nodes", "whole")],
    ("bytes from record to record by kind", ("lengths",), 30),
    ("a flush while a kernel runs", ("flush",), 30),
    ("memory that CUPTI itself takes", ("memory",), 30),
    ("a record that CUPTI has at once, again and again, and while a kernel runs", ("dump",), 30)]
# These end with a GPU that is at fault or at work, so they come after everything else.
BAD_ENDS = [("faults", v) for v in ("bare", "cupti", "flush")] + [("endless", v, 12) for v in ("bare", "cupti", "flush")]


def answer(done):
    """An answer is JSON. What is not, because the program ended before, is kept as it is."""
    try:
        return json.loads(done.stdout)
    except ValueError:
        return (done.stdout + done.stderr).decode(errors="replace")[-1500:]


def end_of(how, folder, arguments, env=None):
    try:
        done = how(pathlib.Path(folder), "probe_cupti", *arguments, env=env, timeout=LIMIT_S, look=stacks_of)
        return {"status": done.returncode, "seconds": done.seconds, "said": answer(done), "stderr": done.stderr.decode(errors="replace")[-600:]}
    except TooLong as error:
        return {"status": "hangs", "said": str(error), "stacks": error.stacks}


def observe_cupti_itself():
    """What its documentation leaves open, asked without pperf."""
    if missing("probe_cupti"):
        return
    for question, arguments, seconds in QUESTIONS:
        if evidence.left() <= 0:
            observe(question, NO_TIME)
            continue
        try:
            with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
                done = run(folder, "probe_cupti", *arguments, timeout=seconds, look=stacks_of)
                said = answer(done)
            observe(question, {"ended with": done.returncode, "said": said} if done.returncode else said)
        except Exception as error:
            observe(question, {"error": "%s: %s" % (type(error).__name__, error), "stacks": getattr(error, "stacks", "")})


def observe_replays():
    """The GPU's time for a graph's replays under the library."""
    if not compiled("probe_cupti"):
        return
    for env in {}, {"PPERF_GRAPHS": "nodes"}, {"PPERF_GRAPHS": "whole"}, {"PPERF_CUPTI": "0"}:
        if evidence.left() <= 0:
            return
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            observe("a graph's replay under the library, " + (" ".join("%s=%s" % pair for pair in env.items()) or "as it is"),
                    end_of(traced, folder, ("replay", "none"), env))


def check_bad_ends():
    if not compiled("probe_cupti"):
        return
    for way, name in (("faults", "ends in a GPU fault"), ("endless", "exits while a kernel runs")):
        # 30 s: longer than the library waits
        @check("a program that %s: it ends as it does alone, at most %d s later" % (name, PATIENCE_S))
        def _(folder):
            arguments = (way, "bare") if way == "faults" else (way, "bare", 30)
            alone, under = end_of(run, folder, arguments), end_of(traced, folder, arguments)
            observe("%s: alone, under the library" % way, [alone, under])
            if (folder / "trace.bin").exists():
                observe("%s: what the trace says" % way, {k: v for k, v in whole(folder / "trace.bin").meta.items() if k.startswith(("warning.", "source."))})
            if alone["status"] == "hangs":
                return
            assert under["status"] != "hangs", "it hangs"
            same = ("status", "said", "stderr") if way == "faults" else ("status", "stderr")  # whether the kernel runs yet is by chance
            assert [under.get(w) for w in same] == [alone.get(w) for w in same], "it ends otherwise"
            assert under["seconds"] <= alone["seconds"] + PATIENCE_S, "it ends %.1f s later" % (under["seconds"] - alone["seconds"])
    for arguments in BAD_ENDS:
        if arguments[1] != "bare" and evidence.left() > 0:
            with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
                observe("CUPTI alone at a bad end: %s, %s" % arguments[:2], end_of(run, folder, arguments))


def observe_growth():
    """Memory and processor time of a program that launches for a minute, in five parts. Older CUPTIs let both grow."""
    if not compiled("launch_cost"):
        return
    for name, how in (("bare", run), ("under the library", traced)):
        if evidence.left() <= 35:
            observe("memory and processor time over 30 s, " + name, NO_TIME)
            continue
        try:
            with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
                observe("memory and processor time over 30 s, " + name, answer(how(pathlib.Path(folder), "launch_cost", "grows", 30, check=0)))
        except Exception as error:
            observe("memory and processor time over 30 s, " + name, "%s: %s" % (type(error).__name__, str(error)[:500]))


def observe_cost():
    variants = {"bare": (run, {}), "symbols only": (traced, {"PPERF_CUPTI": "0"}), "with CUPTI": (traced, {})}
    times = {name: collections.defaultdict(list) for name in variants}
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        for _ in range(ROUNDS):
            for name, (how, env) in variants.items():
                for path in pathlib.Path(folder).glob("*.bin*"):
                    path.unlink()
                if evidence.left() <= 0:
                    return
                try:
                    said = json.loads(how(pathlib.Path(folder), "launch_cost", env=env, check=0).stdout)
                except Exception as error:
                    observe("cost, " + name, "%s: %s" % (type(error).__name__, str(error)[:500]))
                    return
                for what, time in said.items():
                    times[name][what].append(time["median_ns"])
                evidence.put("observations", "cost, ns, in each of %d runs" % ROUNDS, times)
    for what in times["bare"]:
        medians = {name: statistics.median(times[name][what]) for name in variants}
        observe("cost of a %s, ns, and times the bare one (median of %d runs)" % (what, ROUNDS),
                {name: [round(value), round(value / medians["bare"], 2)] for name, value in medians.items()})


def guard(section):
    """Runs a section. What it found is kept even if it fails itself. Returns what it returns, or True."""
    try:
        return section()
    except Exception as error:
        results.append((section.__name__, "%s: %s" % (type(error).__name__, error)))
        evidence.put("checks", section.__name__, traceback.format_exc()[-2000:])
        print("not ok %d - %s: %s" % (len(results), section.__name__, results[-1][1][:600]), flush=True)
        return True


def check_programs():
    for name in "cuda_guest", "launch_cost":
        missing(name)
    if not guard(check_first):
        return
    for section in (check_known_work, check_libraries, check_graphs, check_exits, check_threads, observe_memory_and_clocks, observe_replays, observe_cost,
                    check_bad_ends, observe_growth):
        guard(section)


def main():
    global programs, evidence
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--machine", required=True, help="what is written into the evidence about the machine")
    parser.add_argument("--part", choices=("probe", "programs"), required=True)
    parser.add_argument("--evidence", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, help="nothing begins later than so")
    options = parser.parse_args()
    programs = options.programs.resolve()
    evidence = Evidence(options.evidence, "probe" if options.part == "probe" else "gpu-check", options.seconds, machine=options.machine)
    guard(observe_cupti_itself if options.part == "probe" else check_programs)
    left_out = sum(problem == NO_TIME for _, problem in results)
    if left_out:
        print("# %d checks were left out because no time was left" % left_out, flush=True)
    print("1..%d" % len(results))
    return 1 if any(problem and problem != NO_TIME for _, problem in results) else 0


if __name__ == "__main__":
    sys.exit(main())
