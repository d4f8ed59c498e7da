#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""import.py BUILD [MEGABYTES]: what it costs to make a table of a trace of torch.profiler, against others that only read it: Python's json.load and, where it
is installed, Jansson. CPU times of whole processes, in turns; only the ratios are promises. Exits with 1 if one is not kept."""
import gzip, json, os, pathlib, random, resource, statistics, subprocess, sys, tempfile

REPORT, BYTES, ROUNDS = pathlib.Path(sys.argv[1]).resolve() / "pperf-report", int(sys.argv[2] if len(sys.argv) > 2 else 200) * 1000000, 5
JANSSON = "import ctypes, sys; library = ctypes.CDLL('libjansson.so.4'); library.json_load_file.restype = ctypes.c_void_p; " \
    "sys.exit(not library.json_load_file(sys.argv[1].encode(), 0, None))"
OPERATORS = ["aten::linear", "aten::addmm", "aten::mul", "aten::add", "aten::view", "aten::softmax", "aten::layer_norm", "aten::copy_"]
KERNELS = ["void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >"
           "(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
           "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"]
RANGE = '{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 41233, "tid": 41233, "ts": %.3f, "dur": %.3f, "args": {"External id": %d, ' \
    '"Record function id": 0, "Concrete Inputs": ["", "", "1"], "Input type": ["float", "float", "Scalar"], "Input Dims": [[64, 1024], [1024], []], "Ev Idx": %d}}'
LAUNCH = '{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 41233, "tid": 41233, "ts": %.3f, "dur": %.3f, ' \
    '"args": {"External id": %d, "cbid": 211, "correlation": %d}}'
ARROW = '{"ph": "s", "id": %d, "pid": 41233, "tid": 41233, "ts": %.3f, "cat": "ac2g", "name": "ac2g"}'
KERNEL = '{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %.3f, "dur": %.3f, "args": {"External id": %d, "queued": 0, ' \
    '"device": 0, "context": 1, "stream": 7, "correlation": %d, "registers per thread": 32, "shared memory": 0, "blocks per SM": 1.5, ' \
    '"warps per SM": 12.0, "grid": [%d, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 19}}'


def write(path):
    """Two operators, one in the other, a launch, its arrow and its kernel, again and again."""
    dice, time, gpu, number, size = random.Random(1), 5843200000.0, 5843200010.0, 0, 0
    with open(path, "w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": [\n')
        while size < BYTES:
            number += 1
            outer, inner = dice.choices(OPERATORS, k=2)
            gpu = max(gpu, time + 5)
            lines = [RANGE % (outer, time, 18.5, number, number), RANGE % (inner, time + 2.25, 12.125, number + 1, number + 1),
                     LAUNCH % (time + 4.5, 6.001, number + 1, number), ARROW % (number, time + 4.5), KERNEL % (KERNELS[number % 2], gpu, 9.876, number + 1, number, number % 4000)]
            time, gpu = time + 20, gpu + 10
            block = (",\n" if size else "") + ",\n".join(lines)
            size += file.write(block)
        file.write("\n]}\n")
    return number


def measure(*command):
    """CPU seconds and KiB at most."""
    child = os.fork()
    if child == 0:
        with open(os.devnull, "wb") as null:
            subprocess.run(command, stdout=null, check=True)
        use = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(result, "w") as file:
            file.write("%f %d" % (use.ru_utime + use.ru_stime, use.ru_maxrss))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        sys.exit("%s: it failed" % command[0])
    time, room = open(result).read().split()
    return float(time), int(room)


def gate(what, value, most, detail):
    print("%-44s %6.3f  (at most %.2f)  %s%s" % (what, value, most, detail, "" if value <= most else "  MISSED"), flush=True)
    return value > most


def has_jansson():
    return subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libjansson.so.4')"], capture_output=True).returncode == 0


with tempfile.TemporaryDirectory(prefix="import-") as folder:
    plain, packed, result = folder + "/trace.json", folder + "/trace.json.gz", folder + "/result"
    launches = write(plain)
    with open(plain, "rb") as source, gzip.open(packed, "wb", 1) as target:
        target.write(source.read())
    counted = json.loads(subprocess.run([REPORT, "table", plain, "-f", "json"], check=True, capture_output=True).stdout)["integrity"]
    if (counted["kernels"], counted["attributed"], counted["complete"]) != (launches, launches, True):
        sys.exit("the table is not of the whole file: %s" % counted)
    commands = {"ours": (REPORT, "table", plain), "packed": (REPORT, "table", packed),
                "python": (sys.executable, "-c", "import json, sys; json.load(open(sys.argv[1]))", plain)}
    if has_jansson():
        commands["jansson"] = (sys.executable, "-c", JANSSON, plain)
    rounds = [{name: measure(*map(str, command)) for name, command in commands.items()} for _ in range(ROUNDS)]

middle = {name: statistics.median(r[name][0] for r in rounds) for name in commands}
room = {name: max(r[name][1] for r in rounds) for name in commands}
print("a trace of torch.profiler of %d MB: %s" % (BYTES / 1e6, ", ".join("%s %.2f s, %d MiB" % (name, middle[name], room[name] // 1024) for name in commands)))
missed = gate("table of it, time against json.load", statistics.median(r["ours"][0] / r["python"][0] for r in rounds), 0.2, "of CPU time")
if "jansson" in commands:
    missed |= gate("table of it, time against Jansson", statistics.median(r["ours"][0] / r["jansson"][0] for r in rounds), 0.25, "of CPU time")
    missed |= gate("table of it, memory against Jansson", room["ours"] / room["jansson"], 0.1, "of the most that was resident")
else:
    print("Jansson is not installed: its memory is not compared (libjansson4)")
missed |= gate("packed, more than plain, seconds a 200 MB", statistics.median(r["packed"][0] - r["ours"][0] for r in rounds) * 2e8 / BYTES, 0.3, "of CPU time")
sys.exit(1 if missed else 0)
