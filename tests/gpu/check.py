#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the programs of this folder under the library, on whatever device there is, and compares what the traces say with what the programs
know. Prints TAP and what was measured; with --evidence FOLDER writes both there as they come, with small traces and those of what failed. Called by
scripts/gpu-check.sh.

Claims are checks: a wrong one is a failure. What only a real GPU can tell (whose numbers the programs cannot know) is an observation: it is printed
and kept, and nothing is assumed of it."""
import argparse, bisect, collections, gzip, json, os, pathlib, shutil, signal, statistics, struct, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from evidence import Evidence
from gpu_reference import CALLBACK, CAPTURED, calls, complete, differences, gpu, owners
from harness import environment, preload, run, traced
from raw_trace import SLOT, CHUNK, blocks, structs, whole

ROUNDS = 7
LIMIT_S = 60  # for one program, which takes a second or two
NO_TIME = "left out: no time was left"
results = []
programs = evidence = None


def attempt(function, folder):
    """None, or what was wrong."""
    if evidence.left() <= 0:
        return NO_TIME
    try:
        function(folder)
    except Exception as error:
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
        print("%s %d - %s" % ("not ok" if problem else "ok", len(results), name), flush=True)
        for line in (problem or "").splitlines():
            print("#   " + line, flush=True)
        return function
    return mark


def observe(name, value):
    evidence.put("observations", name, value)
    print("# %s: %s" % (name, json.dumps(value)), flush=True)


def program(name):
    return str(programs / name)


def trace_of(folder, name, *arguments, env=None, status=0):
    """Runs it bare and under the library: the same output and status. The output, and the trace."""
    for path in folder.glob("*.bin*"):
        path.unlink()
    bare = run(folder, program(name), *arguments, env=env, check=status, timeout=evidence.limit(LIMIT_S))
    under = traced(folder, program(name), *arguments, env=env, check=status, timeout=evidence.limit(LIMIT_S))
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
        said = subprocess.run([debugger, "-p", str(pid), "-batch", "-ex", "thread apply all bt 24"], capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        return said.stdout.decode(errors="replace")[-12000:]
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def begins(env):
    """Whether the smallest program gets through its first steps under the library, and where it stands if it does not."""
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        process = subprocess.Popen([program("cuda_guest"), "works", "5"], cwd=folder, env=environment(LD_PRELOAD=preload(), **env), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            output, _ = process.communicate(timeout=evidence.limit(LIMIT_S))
            ended = {"status": process.returncode, "output": output.decode(errors="replace")[-2000:]}
        except subprocess.TimeoutExpired:
            ended = {"status": "hangs", "stacks": stacks_of(process.pid)}
            process.kill()
            process.communicate()
        path = pathlib.Path(folder) / "trace.bin"
        if path.exists():
            ended["meta"] = whole(path).meta
            evidence.keep(path, "first")
        observe("the first program, " + (" ".join("%s=%s" % pair for pair in env.items()) or "as it is"), ended)
        return ended["status"] == 0


def check_first():
    """false: nothing more can be learnt here with CUPTI; what can without was said."""
    if begins({}):
        return True
    print("# it does not get through", flush=True)
    results.append(("the first program", "does not end as it ought to"))
    evidence.put("checks", *results[-1])
    begins({"PPERF_CUPTI": "0"})
    begins({"PPERF_CUDA": "0"})
    return False


def check_known_work():
    for runtime in "shared", "static":
        if not (programs / ("known_work_" + runtime)).exists():
            observe("the %s runtime" % runtime, "not to be had here")
            continue

        @check("known work, %s runtime: every path has the counts and bytes that the program knows, every call its record" % runtime)
        def _(folder):
            for threads, streams, iterations in ((1, 1, 20), (4, 2, 20), (16, 3, 10)):
                output, trace = trace_of(folder, "known_work_" + runtime, threads, streams, iterations)
                wrong = differences(json.loads(output), trace)
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
                traced(folder, program("known_work_" + runtime), 2, 2, 2, check=0)
                with gzip.GzipFile(evidence.folder / ("known_work_%s.bin.gz" % runtime), "wb", mtime=0) as file:
                    file.write((folder / "trace.bin").read_bytes())


def check_libraries():
    if not (programs / "library_calls").exists():
        observe("cuBLAS", "not installed")
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
    @check("no thread of ours before the first context, and ours takes no signal")
    def _(folder):
        lines = traced(folder, program("cuda_guest"), "tasks", check=0).stdout.decode().splitlines()
        bare = run(folder, program("cuda_guest"), "tasks", check=0).stdout.decode().splitlines()
        count = lambda text: [int(line.split(": ")[1].split()[0]) for line in text]
        taking = lambda text: [int(line.split(", ")[1].split()[0]) for line in text]
        observe("threads before CUDA, after asking, with a context: bare, under the library", [count(bare), count(lines)])
        assert count(lines)[:2] == count(bare)[:2] or count(lines)[1] <= count(bare)[1] + 1, (bare, lines)
        observe("of them taking signals", [taking(bare), taking(lines)])


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
        present = {(c.address, c.correlation) for c in calls(trace, "ALLOC", "FREE") if c.address}
        told = {(r.address, r.correlation) for r in trace.records if r.kind == "GPU_MEMORY"}
        assert present <= told, "%d allocations of which CUPTI has no record" % len(present - told)


def observe_cupti_itself():
    """What its documentation leaves open, asked without pperf."""
    if not (programs / "probe_cupti").exists():
        observe("CUPTI itself", "could not be compiled with")
        return
    questions = {"whose id the records carry, callbacks of %s on" % d: ("ids", d) for d in ("driver", "runtime", "both")}
    questions.update({"bytes from record to record by kind": ("lengths",), "a flush while a kernel runs": ("flush",),
                      "memory that CUPTI itself takes": ("memory",),
                      "whose id the records carry, callbacks of driver and records of both kinds of calls on": ("ids", "driver", "calls"),
                      "a record that CUPTI has at once, again and again, and while a kernel runs": ("dump",)})
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        for question, arguments in questions.items():
            try:
                result = run(folder, program("probe_cupti"), *arguments, timeout=evidence.limit(LIMIT_S))
                observe(question, json.loads(result.stdout) if result.stdout else "ended with %d" % result.returncode)
            except Exception as error:
                observe(question, "%s: %s" % (type(error).__name__, error))


def observe_cost():
    variants = {"bare": (run, {}), "symbols only": (traced, {"PPERF_CUPTI": "0"}), "with CUPTI": (traced, {})}
    times = {name: collections.defaultdict(list) for name in variants}
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        for _ in range(ROUNDS):
            for name, (how, env) in variants.items():
                for path in pathlib.Path(folder).glob("*.bin*"):
                    path.unlink()
                try:
                    said = json.loads(how(pathlib.Path(folder), program("launch_cost"), env=env, check=0, timeout=evidence.limit(LIMIT_S)).stdout)
                except Exception as error:
                    observe("cost, " + name, "%s: %s" % (type(error).__name__, str(error)[:500]))
                    return
                for what, time in said.items():
                    times[name][what].append(time["median_ns"])
    for what in times["bare"]:
        medians = {name: statistics.median(times[name][what]) for name in variants}
        observe("cost of a %s, ns, and times the bare one (median of %d runs)" % (what, ROUNDS),
                {name: [round(value), round(value / medians["bare"], 2)] for name, value in medians.items()})


def main():
    global programs, evidence
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--machine", required=True, help="what is written into the evidence about the machine")
    parser.add_argument("--evidence", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, help="nothing begins later than so")
    options = parser.parse_args()
    programs = options.programs.resolve()
    evidence = Evidence(options.evidence, "gpu-check", options.seconds, machine=options.machine)
    first = check_first()
    observe_cupti_itself()
    if first:
        check_known_work()
        check_libraries()
        check_graphs()
        check_exits()
        check_threads()
        observe_memory_and_clocks()
        observe_cost()
    print("1..%d" % len(results))
    return 1 if any(problem for _, problem in results) else 0


if __name__ == "__main__":
    sys.exit(main())
