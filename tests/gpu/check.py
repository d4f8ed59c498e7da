#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the programs of this folder under the library, on whatever device there is, and compares what the traces say with what the programs
know. Prints TAP and what was measured; with --evidence FOLDER writes both there, with a small trace. Called by scripts/gpu-check.sh.

Claims are checks: a wrong one is a failure. What only a real GPU can tell (whose numbers the programs cannot know) is an observation: it is printed
and kept, and nothing is assumed of it."""
import argparse, bisect, collections, gzip, json, os, pathlib, signal, statistics, struct, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from gpu_truth import CALLBACK, CAPTURED, calls, complete, differences, gpu, owners
from harness import run, traced
from raw_trace import SLOT, CHUNK, blocks, structs, whole

ROUNDS = 7
results, observations = [], {}
programs = None


def check(name):
    """Marks a claim: a function that raises where it does not hold."""
    def mark(function):
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            try:
                function(pathlib.Path(folder))
                results.append((name, None))
            except Exception as error:
                results.append((name, "%s: %s" % (type(error).__name__, str(error)[:1500])))
        verdict, problem = results[-1]
        print("%s %d - %s" % ("not ok" if problem else "ok", len(results), verdict), flush=True)
        for line in (problem or "").splitlines():
            print("#   " + line, flush=True)
        return function
    return mark


def observe(name, value):
    observations[name] = value
    print("# %s: %s" % (name, json.dumps(value)), flush=True)


def program(name):
    return str(programs / name)


def trace_of(folder, name, *arguments, env=None, status=0):
    """Runs it bare and under the library: the same output and status. The output, and the trace."""
    for path in folder.glob("*.bin*"):
        path.unlink()
    bare = run(folder, program(name), *arguments, env=env, check=status, timeout=300)
    under = traced(folder, program(name), *arguments, env=env, check=status, timeout=300)
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


def check_known_work(evidence):
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

        if evidence:
            @check("a small trace is kept (%s runtime)" % runtime)
            def _(folder):
                traced(folder, program("known_work_" + runtime), 2, 2, 2, check=0)
                with gzip.GzipFile(evidence / ("known_work_%s.bin.gz" % runtime), "wb", mtime=0) as file:
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
                      "memory that CUPTI itself takes": ("memory",)})
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        for question, arguments in questions.items():
            try:
                result = run(folder, program("probe_cupti"), *arguments, timeout=60)
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
                said = json.loads(how(pathlib.Path(folder), program("launch_cost"), env=env, check=0, timeout=300).stdout)
                for what, time in said.items():
                    times[name][what].append(time["median_ns"])
    for what in times["bare"]:
        medians = {name: statistics.median(times[name][what]) for name in variants}
        observe("cost of a %s, ns, and times the bare one (median of %d runs)" % (what, ROUNDS),
                {name: [round(value), round(value / medians["bare"], 2)] for name, value in medians.items()})


def main():
    global programs
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--machine", required=True, help="what is written into the evidence about the machine")
    parser.add_argument("--evidence", type=pathlib.Path)
    options = parser.parse_args()
    programs = options.programs.resolve()
    if options.evidence:
        options.evidence.mkdir(parents=True, exist_ok=True)
    check_known_work(options.evidence)
    check_libraries()
    check_graphs()
    check_exits()
    check_threads()
    observe_memory_and_clocks()
    observe_cupti_itself()
    observe_cost()
    failed = [name for name, problem in results if problem]
    print("1..%d" % len(results))
    if options.evidence:
        report = {"machine": options.machine, "checks": {name: problem or "ok" for name, problem in results}, "observations": observations}
        (options.evidence / "gpu-check.json").write_text(json.dumps(report, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
