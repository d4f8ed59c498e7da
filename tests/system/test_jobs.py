#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""-j N: every view prints the same bytes and has the same status for any number of cores, of whole, cut, damaged and imported traces. Large lists are then sorted and
merged in a second thread (tests/report/test_external_sort.c)."""
import json, os, random, resource, signal, subprocess
from harness import PROGRAMS, REPORT, VARIANT, case, environment, main, run

VIEWS = "summary tree critical table categories steps kernels memory api streams queue idle overlap roofline diagnose critical-path info".split()
STEPS = 30 # about 55000 GPU operations and calls: more than are sorted in memory


def native(folder):
    """A trace of a training program, the same one cut in the middle, and with changed bytes."""
    run(folder, str(PROGRAMS / "job_load"), folder, 1, STEPS, check=0)
    whole = next(folder.glob("rank*")).read_bytes()
    changed, dice = bytearray(whole), random.Random(3)
    for _ in range(8):
        changed[dice.randrange(1 << 16, len(whole))] ^= 0x55
    paths = []
    for name, content in ("whole", whole), ("cut", whole[:len(whole) * 3 // 4]), ("changed", bytes(changed)):
        (folder / name).mkdir()
        paths.append(folder / name / "trace.bin")
        paths[-1].write_bytes(content)
    return paths


def imported(folder):
    """A trace of torch.profiler."""
    events = []
    for number in range(20000):
        at = 1000 + 25 * number
        events += [{"ph": "X", "cat": "cpu_op", "name": "aten::op%d" % (number % 40), "pid": 7, "tid": 7, "ts": at, "dur": 20},
                   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": at + 2, "dur": 5, "args": {"correlation": number + 1}},
                   {"ph": "X", "cat": "kernel", "name": "gemm%d" % (number % 7), "pid": 0, "tid": 7, "ts": at + 12, "dur": 9 + number % 5,
                    "args": {"correlation": number + 1, "device": 0, "stream": 7, "grid": [4, 1, 1], "block": [128, 1, 1]}}]
    path = folder / "imported.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}))
    return path


def told(*words, **options):
    env = environment(LC_ALL="C.UTF-8", PPERF_CACHE="0")
    result = subprocess.run([str(REPORT), *map(str, words)], env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=300, **options)
    return result.returncode, result.stdout, result.stderr


@case
def the_number_of_cores_changes_nothing(folder):
    views = VIEWS if VARIANT == "plain" else "idle queue diagnose".split() # with a sanitizer each command takes seconds
    for path in [*native(folder), imported(folder)]:
        for view in views:
            one = told(view, "-j", 1, "-f", "json", path)
            assert one[0] == 0 and len(one[1]) > 100, (view, path, one)
            for cores in 2, 3:
                assert told(view, "-j", cores, "-f", "json", path) == one, (view, path, cores)


@case
def an_error_in_a_second_thread_is_the_same_error(folder):
    path = native(folder)[0]

    def few_bytes():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    one = told("queue", "-j", 1, path, preexec_fn=few_bytes)
    assert one[0] == 2 and one[2].count(b"\n") == 1 and b"temporary file" in one[2], one
    for cores in 2, 3:
        assert told("queue", "-j", cores, path, preexec_fn=few_bytes) == one, cores


@case
def all_rules_share_one_pass(folder):
    """The bytes that a command has read: tree reads the trace twice, idle and diagnose three times, and some times what they have written themselves."""
    path = native(folder)[0]

    def bytes_read(view):
        process = subprocess.Popen([str(REPORT), view, "-j", "1", str(path)], env=environment(PPERF_CACHE="0"), stdout=subprocess.DEVNULL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with open("/proc/%d/io" % process.pid) as counts:
            count = int(counts.readline().split()[1])
        assert process.wait() == 0
        return count

    tree, idle, diagnose = (bytes_read(view) / path.stat().st_size for view in ("tree", "idle", "diagnose"))
    print("# times the trace that is read: tree %.2f, idle %.2f, diagnose %.2f" % (tree, idle, diagnose))
    assert tree < 2.5 and idle < 4.8 and diagnose < 6


main()
