#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""import.py BUILD [MEGABYTES]: what it costs to make a table of a trace of torch.profiler, against others that only read it: Python's json.load and, where they
are installed, Jansson (a DOM in C), ijson (yajl, one event after the other), simdjson and orjson; and what it takes until there is something to look at, against
Holistic Trace Analysis, which loads such traces into pandas. Of ranges that lie in each other, and of ranges that overlap. CPU times of whole processes, in
turns, of each the least: what else the machine does only adds to them. Only the ratios are promises. Exits with 1 if one is not kept."""
import gzip, json, os, pathlib, random, resource, subprocess, sys, tempfile

REPORT, BYTES, ROUNDS = pathlib.Path(sys.argv[1]).resolve() / "pperf-report", int(sys.argv[2] if len(sys.argv) > 2 else 200) * 1000000, 5
SEEN_BYTES, SECONDS = min(BYTES, 20000000), 60  # of the first screen, as HTA takes minutes for more; what takes longer on the clock is ended
# Name: what must be there, what it is, and how it reads the file that is named.
READERS = {
    "json.load": ("import json", "Python's own, a DOM", "json.load(open(path))"),
    "Jansson": ("import ctypes; ctypes.CDLL('libjansson.so.4')", "libjansson4, a DOM in C",
                "load = ctypes.CDLL('libjansson.so.4').json_load_file; load.restype = ctypes.c_void_p; sys.exit(not load(path.encode(), 0, None))"),
    "ijson": ("import ijson; ijson.get_backend('yajl2_c')", "PyPI's ijson with its C part: yajl, an event at a time",
              "print(sum(1 for event in ijson.get_backend('yajl2_c').items(open(path, 'rb'), 'traceEvents.item')))"),
    "simdjson": ("import simdjson", "PyPI's pysimdjson, a DOM that becomes Python's as it is asked for", "print(len(simdjson.Parser().load(path)['traceEvents']))"),
    "orjson": ("import orjson", "PyPI's orjson, a DOM", "orjson.loads(open(path, 'rb').read())"),
    "HTA": ("from hta.trace_analysis import TraceAnalysis", "PyPI's HolisticTraceAnalysis: pandas", "TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path))"),
}
OPTIONAL, OPTIONAL_ROUNDS = ("ijson", "simdjson", "orjson", "HTA"), 2  # nothing is promised against these
OPERATORS = ["aten::linear", "aten::addmm", "aten::mul", "aten::add", "aten::view", "aten::softmax", "aten::layer_norm", "aten::copy_"]
KERNELS = ["void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >"
           "(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
           "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"]
RANGE = '{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 41233, "tid": 41233, "ts": %.3f, "dur": %.3f, "args": {"External id": %d, ' \
    '"Record function id": 0, "Concrete Inputs": ["", "", "1"], "Input type": ["float", "float", "Scalar"], "Input Dims": [[64, 1024], [1024], []], "Ev Idx": %d}}'
SHORT = '{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 41233, "tid": 41233, "ts": %.3f, "dur": %.3f, "args": {"External id": %d, "Record function id": 0, "Ev Idx": %d}}'
LAUNCH = '{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 41233, "tid": 41233, "ts": %.3f, "dur": %.3f, ' \
    '"args": {"External id": %d, "cbid": 211, "correlation": %d}}'
ARROW = '{"ph": "s", "id": %d, "pid": 41233, "tid": 41233, "ts": %.3f, "cat": "ac2g", "name": "ac2g"}'
KERNEL = '{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %.3f, "dur": %.3f, "args": {"External id": %d, "queued": 0, ' \
    '"device": 0, "context": 1, "stream": 7, "correlation": %d, "registers per thread": 32, "shared memory": 0, "blocks per SM": 1.5, ' \
    '"warps per SM": 12.0, "grid": [%d, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 19}}'


def nested(number, time, gpu, dice):
    """Two operators, one in the other, a launch, its arrow and its kernel."""
    outer, inner = dice.choices(OPERATORS, k=2)
    gpu = max(gpu, time + 5)
    return [RANGE % (outer, time, 18.5, number, number), RANGE % (inner, time + 2.25, 12.125, number + 1, number + 1), LAUNCH % (time + 4.5, 6.001, number + 1, number),
            ARROW % (number, time + 4.5), KERNEL % (KERNELS[number % 2], gpu, 9.876, number + 1, number, number % 4000)], time + 20, gpu + 10


def overlapping(number, time, gpu, dice):
    """Operators that end in the middle of later ones, as coroutines and wrong clocks make them, and few arguments, which json.load likes."""
    lines, start = [], time + dice.random() * 8
    for i in (0, 1):
        lines.append(SHORT % (OPERATORS[(2 * number + i) % len(OPERATORS)], start + 8 * i, dice.random() * 40, number, number))
    lines.append(LAUNCH % (start + 12, dice.random() * 9, number, number))
    lines.append(KERNEL % (KERNELS[number % 2], start + 34, dice.random() * 90, number, number, dice.randrange(1, 4000)))
    return lines, time + 16, gpu


def write(path, block, size):
    """One block after the other."""
    dice, time, gpu, number, used = random.Random(1), 5843200000.0, 5843200010.0, 0, 0
    with open(path, "w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "distributedInfo": {"rank": 0}, "traceEvents": [\n')
        while used < size:
            number += 1
            lines, time, gpu = block(number, time, gpu, dice)
            used += file.write((",\n" if used else "") + ",\n".join(lines))
        file.write("\n]}\n")
    return number


def measure(*command):
    """CPU seconds and KiB at most; None: it failed, or took too long."""
    child = os.fork()
    if child == 0:
        with open(os.devnull, "wb") as null:
            try:
                subprocess.run(command, stdout=null, stderr=null, check=True, timeout=SECONDS)
            except subprocess.SubprocessError:
                os._exit(1)
        use = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(result, "w") as file:
            file.write("%f %d" % (use.ru_utime + use.ru_stime, use.ru_maxrss))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        return None
    time, room = open(result).read().split()
    return float(time), int(room)


def gate(what, value, most, detail):
    print("%-58s %6.3f  (at most %.2f)  %s%s" % (what, value, most, detail, "" if value <= most else "  MISSED"), flush=True)
    return value > most


def is_there(name):
    return subprocess.run([sys.executable, "-c", READERS[name][0]], capture_output=True).returncode == 0


def command(name, path):
    return sys.executable, "-c", "import os, sys; path = sys.argv[1]\n%s\n%s" % READERS[name][::2], path


def turns(commands):
    """Of each command the least time, and the most that was resident in KiB; of one that failed nothing."""
    times, room = {name: [] for name in commands}, dict.fromkeys(commands, 0)
    for turn in range(ROUNDS):
        for name in [name for name in times if turn < OPTIONAL_ROUNDS or name not in OPTIONAL]:
            taken = measure(*map(str, commands[name]))
            if taken:
                times[name].append(taken[0])
                room[name] = max(room[name], taken[1])
            elif name in OPTIONAL:
                print("%s did not read the file in %d s: it is not compared" % (name, SECONDS))
                del times[name]
            else:
                sys.exit("%s: it failed, or took more than %d s" % (name, SECONDS))
    return {name: min(all) for name, all in times.items()}, room


def check(path, launches):
    counted = json.loads(subprocess.run([REPORT, "table", path, "-f", "json"], check=True, capture_output=True).stdout)["integrity"]
    if (counted["kernels"], counted["conserved"], counted["complete"]) != (launches, True, True):
        sys.exit("the table is not of the whole file: %s" % counted)


def compare(folder, what, block, size, readers):
    """A table of a file, and its ratios to what others take only to read it. True: a promise is not kept."""
    plain, packed = folder + "/trace.json", folder + "/trace.json.gz"
    check(plain, write(plain, block, size))
    with open(plain, "rb") as source, gzip.open(packed, "wb", 1) as target:
        target.write(source.read())
    times, room = turns({"ours": (REPORT, "table", plain), "packed": (REPORT, "table", packed), **{name: command(name, plain) for name in readers}})
    print("a trace of torch.profiler of %d MB, %s: %s" % (size / 1e6, what, ", ".join("%s %.2f s, %d MiB" % (name, times[name], room[name] // 1024) for name in times)))
    missed = gate("table of it, time against json.load", times["ours"] / times["json.load"], 0.2, "of CPU time")
    if "Jansson" in readers:
        missed |= gate("table of it, time against Jansson", times["ours"] / times["Jansson"], 0.25, "of CPU time")
        missed |= gate("table of it, memory against Jansson", room["ours"] / room["Jansson"], 0.1, "of the most that was resident")
    for name in [name for name in OPTIONAL if name in times]:
        print("%-58s %6.3f  time, %.3f memory; %s" % ("table of it, against " + name, times["ours"] / times[name], room["ours"] / room[name], READERS[name][1]))
    return missed | gate("packed, more than plain, seconds a 200 MB", (times["packed"] - times["ours"]) * 2e8 / size, 0.3, "of CPU time")


def until_it_is_seen(folder, readers):
    """From the start to the first screen: what others take before anything can be asked of them."""
    plain = folder + "/trace.json"
    write(plain, nested, SEEN_BYTES)
    times, room = turns({"pperf-report": (REPORT, plain), **{name: command(name, plain) for name in readers}})
    print("\nuntil there is something to look at, %d MB: CPU seconds, most MiB resident\n%-14s %7s %7s" % (SEEN_BYTES / 1e6, "", "s", "MiB"))
    for name in ("pperf-report", *readers):
        figures = "%7.2f %7d" % (times[name], room[name] // 1024) if name in times else "%7s %7s" % ("-", "-")
        print("%-14s %s  %s" % (name, figures, READERS[name][1] if name in READERS else "the first screen"))


with tempfile.TemporaryDirectory(prefix="import-") as folder:
    result = folder + "/result"
    here = [name for name in READERS if is_there(name)]
    for name in READERS:
        if name not in here:
            print("%s is not installed: it is not compared (%s)" % (name, READERS[name][1]))
    quick = [name for name in here if name != "HTA"]
    missed = compare(folder, "ranges in each other", nested, BYTES, quick)
    missed |= compare(folder, "ranges that overlap", overlapping, BYTES // 2, quick)
    until_it_is_seen(folder, here)
sys.exit(1 if missed else 0)
