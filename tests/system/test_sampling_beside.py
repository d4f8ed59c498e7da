#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPU samples beside other profilers and debuggers: each finds what it finds alone, and so do ours. (torch.profiler: tests/torch/test_sampling.py)"""
import collections, re
from cpu_samples import *
from harness import *
from other_profilers import *
from python_versions import interpreters

PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]
SCRIPT = ROOT / "tests/programs/sampled.py"
NATIVE = [program("native_stacks"), "2", "1"]  # three parts of four in spend_three, one in spend_one
LATER = """
import faulthandler, sys, time
sys.path.insert(0, %r)
import sampled
with open("dumps.txt", "w") as file:
    faulthandler.dump_traceback_later(0.05, repeat=True, file=file)
    sampled.split(2)
    faulthandler.cancel_dump_traceback_later()
print("done")
""" % str(SCRIPT.parent)


def python():
    if not PYTHONS:
        raise Skip("no Python with a global interpreter lock")
    return PYTHONS[-1]


def plain_only():
    if SANITIZED:
        raise Skip("a sanitizer's runtime changes what others see")


def share(leaves, three="spend_three", one="spend_one"):
    return leaves[three] / (leaves[three] + leaves[one])


def alone_and_beside(folder, command, before=(), preloads=(), env=None, beside=None):
    """Runs a command without the library, then with it and its samples. `beside`: called with each running process. Returns the two folders, and our
    samples, whose weights are checked. Both runs print the same."""
    outputs, folders = [], [folder / "alone", folder / "sampled"]
    for at, library, hz in ((folders[0], [], None), (folders[1], [str(LIBRARY)], "199")):
        at.mkdir()
        process = subprocess.Popen([*before, "env", "LD_PRELOAD=" + " ".join([*preloads, *library]), *map(str, command)], cwd=at,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment(PPERF_SAMPLE=hz, PPERF_OUTPUT=str(at / "trace.bin"), PPERF_CHILDREN="gpu", **(env or {})))
        if beside:
            beside(at, process)
        output, errors = process.communicate(timeout=300)
        outputs.append((output, re.sub(rb"PROFILE: interrupts\S* = \S+\n", b"", errors), process.returncode))  # gperftools prints its counts
    assert outputs[0] == outputs[1] and outputs[0][2] == 0, outputs
    samples = Samples(folders[1] / "trace.bin")
    period = 1e9 / 199
    for tid, clock in samples.clocks.items():
        weight = samples.weight(lambda r: r.tid == tid and r.state in (ON_CPU, KERNEL))
        assert abs(weight - clock) <= 0.01 * clock + 3 * period + samples.lost * period, (tid, weight, clock, samples.lost)
    return folders[0], folders[1], samples


def expect_functions(samples):
    """Our samples of native_stacks. Without native frames there is nothing to expect."""
    if samples.meta["sample.source"] == "perf":
        assert abs(share(samples.leaves()) - 0.75) < 0.08 and samples.complete() > 0.97, (samples.leaves(), samples.complete())


@case
def perf_record_finds_what_it_finds_alone(folder):
    plain_only()
    shares = []
    before = perf_record(499, "perf.data")
    alone, beside, samples = alone_and_beside(folder, NATIVE, before=before)
    for at in (alone, beside):
        found = collections.Counter(samples.function(address) if at is beside else None for _, address in perf_samples(at / "perf.data"))
        shares.append((sum(found.values()), share(found) if at is beside else None))
    expect_functions(samples)
    # perf's own end of the program's two seconds, and what the sampler uses itself
    assert abs(shares[0][0] - 998) < 150 and abs(shares[1][0] - shares[0][0]) < 150 and abs(shares[1][1] - 0.75) < 0.08, shares


@case
def py_spy_finds_what_it_finds_alone(folder):
    plain_only()
    spy, leaves = tool("py-spy"), []

    def record(at, process):
        time.sleep(0.3)
        result = subprocess.run([spy, "record", "--pid", str(process.pid), "--format", "raw", "--rate", "99", "--duration", "600", "--output", "spy.txt"],
                                cwd=at, capture_output=True, text=True, timeout=300)
        if "permi" in (result.stdout + result.stderr).lower():
            raise Skip("py-spy may not attach")
    alone, beside, samples = alone_and_beside(folder, [python(), SCRIPT, "split", 3], beside=record)
    for at in (alone, beside):
        stacks = [line.rpartition(" ") for line in (at / "spy.txt").read_text().splitlines()]
        leaves.append(collections.Counter())
        for stack, _, count in stacks:
            leaves[-1].update({name: int(count) for name in ("three", "one") if " %s (" % name in stack.replace(";", " ")})
    shares = [share(found, "three", "one") for found in leaves]
    ours = collections.Counter()
    for r in samples.samples:
        ours.update({name: r.weight for name in {"three", "one"} & set(samples.stack(r))})
    assert all(abs(found - 0.75) < 0.12 for found in shares) and abs(share(ours, "three", "one") - 0.75) < 0.08, (shares, ours)


@case
def gdb_attaches_shows_the_stack_and_leaves(folder):
    plain_only()
    gdb, texts = tool("gdb"), []

    def attach(at, process):
        for _ in range(3):
            time.sleep(0.2)
            result = subprocess.run([gdb, "-p", str(process.pid), "-batch", "-ex", "thread apply all bt", "-ex", "detach"], cwd=at,
                                    capture_output=True, text=True, timeout=120)
            if "Operation not permitted" in result.stderr:
                raise Skip("gdb may not attach")
            texts.append(result.stdout)
    _, beside, samples = alone_and_beside(folder, [program("native_stacks"), "4", "1"], beside=attach)
    for text in texts:
        assert len(re.findall(r"\bwork \(|\bclone", text)) >= 1 and "main (" in text, text
    threads = [len(re.findall(r"^Thread \d+", text, re.M)) for text in texts]
    assert threads == [2, 2, 2, 3, 3, 3], threads
    expect_functions(samples)


@case
def gperftools_finds_what_it_finds_alone(folder):
    plain_only()
    alone, beside, samples = alone_and_beside(folder, NATIVE, preloads=[profiler_library()], env={"CPUPROFILE": "profile", "CPUPROFILE_FREQUENCY": "250"})
    found = [gperftools_leaves(next(at.glob("profile*"))) for at in (alone, beside)]
    counts = [sum(leaves.values()) for leaves in found]
    # SIGPROF comes by the kernel's own ticks: fewer on a busy machine.
    assert min(counts) > 100 and 0.6 * counts[0] < counts[1] < 1.7 * counts[0], counts
    assert all(abs(share(leaves) - 0.75) < 0.12 for leaves in found), found
    expect_functions(samples)


@case
def faulthandler_dumps_what_it_dumps_alone(folder):
    plain_only()
    alone, beside, samples = alone_and_beside(folder, [python(), "-c", LATER])
    dumps = [(at / "dumps.txt").read_text().split("Timeout (")[1:] for at in (alone, beside)]
    frames = [collections.Counter(re.sub(r", line \d+", "", line) for dump in part for line in dump.splitlines()[1:]) for part in dumps]
    assert len(dumps[0]) > 20 and len(dumps[1]) > 20, [len(part) for part in dumps]
    # Threads are named by addresses.
    names = [{line for line in part if line.startswith("  File")} for part in frames]
    assert names[0] == names[1] and any("in three" in line for line in names[0]), names
    # One thread of Python, as without the sampler.
    assert all(dump.count("most recent call first") == 1 for part in dumps for dump in part)
    assert any("three" in samples.stack(r) for r in samples.samples)


main()
