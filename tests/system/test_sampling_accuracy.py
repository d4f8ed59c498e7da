#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPU samples have the distribution that other profilers find in the same run: native functions against perf, Python functions against py-spy."""
import random
from cpu_samples import *
from harness import *
from other_profilers import *
from python_versions import interpreters

PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]
SCRIPT = ROOT / "tests/programs/sampled.py"
SPLITS = 20
RUNS = 3  # two samples of one distribution are farther apart than all twenty splits in one run of 21


def distance(some, others):
    """The total variation distance of two distributions: 0 if they are equal, 1 if they have nothing in common."""
    sums = sum(some.values()), sum(others.values())
    return sum(abs(some[name] / sums[0] - others[name] / sums[1]) for name in set(some) | set(others)) / 2


def distance_by_chance(some, others):
    """The largest distance of two parts of all samples together, by random splits."""
    pool, numbers, largest = list((some + others).elements()), random.Random(1), 0
    for _ in range(SPLITS):
        numbers.shuffle(pool)
        at = sum(some.values())
        largest = max(largest, distance(collections.Counter(pool[:at]), collections.Counter(pool[at:])))
    return largest


def against_perf(folder, *command, env=None):
    """The leaf functions of our samples and of perf's in one run. On a busy machine the sampler halves its rate, which changes no share."""
    folder.mkdir()
    run(folder, *perf_record(499, folder / "perf.data"), "env", "LD_PRELOAD=" + preload(), *command, check=0, timeout=300,
        env={"PPERF_SAMPLE": "299", "PPERF_OUTPUT": str(folder / "trace.bin"), **(env or {})})
    samples = Samples(folder / "trace.bin")
    if samples.meta["sample.source"] != "perf":
        raise Skip(samples.meta["source.cpu_samples"])
    threads = {r.tid for r in samples.native}
    theirs = collections.Counter(samples.function(at) for tid, at in perf_samples(folder / "perf.data") if tid in threads)
    represented = samples.weight() / 1e9 + samples.lost / 299
    assert abs(represented - sum(theirs.values()) / 499) < 0.1 * represented, (represented, sum(theirs.values()))
    return samples.leaves(), theirs


def compare(folder, *command, functions, **options):
    if SANITIZED:
        raise Skip("a sanitizer's runtime changes what takes time")
    for number in range(RUNS):
        ours, theirs = against_perf(folder / str(number), *command, **options)
        chance, apart = distance_by_chance(ours, theirs), distance(ours, theirs)
        print("# %d and %d samples in %d functions: distance %.3f, by chance up to %.3f" % (
            sum(ours.values()), sum(theirs.values()), len(ours), apart, chance))
        assert len(ours) >= functions and min(sum(ours.values()), sum(theirs.values())) > 400, (len(ours), sum(ours.values()), sum(theirs.values()))
        if apart <= chance:
            break
    assert apart <= chance, (apart, chance)
    # The comparison would find it if every sixth sample were in a wrong function.
    wrong = collections.Counter({name: count - count // 6 for name, count in ours.items()})
    wrong["none"] += sum(ours.values()) - sum(wrong.values())
    assert distance(wrong, theirs) > chance, (distance(wrong, theirs), chance)


@case
def functions_of_c_have_the_distribution_that_perf_finds(folder):
    compare(folder, program("sampled_functions"), 5, functions=60)


@case
def functions_below_python_have_the_distribution_that_perf_finds(folder):
    if not PYTHONS:
        raise Skip("no Python with a global interpreter lock")
    compare(folder, PYTHONS[-1], SCRIPT, "dozen", 5, functions=10)


@case
def python_functions_have_the_shares_that_py_spy_finds(folder):
    spy = tool("py-spy")
    if not PYTHONS:
        raise Skip("no Python with a global interpreter lock")
    for number, env in enumerate(({}, {"PPERF_SAMPLE_KIND": "clock"})):
        trace, raw = folder / ("%d.bin" % number), folder / ("%d.txt" % number)
        process = subprocess.Popen([PYTHONS[-1], str(SCRIPT), "dozen", "5"], cwd=folder,
                                   env=environment(LD_PRELOAD=preload(), PPERF_SAMPLE="199", PPERF_OUTPUT=str(trace), **env))
        result = subprocess.run([spy, "record", "--pid", str(process.pid), "--nonblocking", "--format", "raw", "--rate", "199", "--duration", "600",
                                 "--output", str(raw)], capture_output=True, text=True, timeout=300)
        assert process.wait() == 0
        if result.returncode and "permi" in (result.stdout + result.stderr).lower():
            raise Skip("py-spy may not attach")
        samples, ours = Samples(trace), collections.Counter()
        for r in samples.samples:
            stack = samples.stack(r)
            ours[stack[-1] if stack else "none"] += r.weight
        theirs = py_spy_leaves(raw)
        work = lambda leaves: collections.Counter({name: count for name, count in leaves.items() if name.startswith("work_")})
        apart = distance(work(ours), work(theirs))
        # Samples of a thread that waits for a core are not independent: py-spy counts it as active.
        share = sum(work(theirs).values()) / len(samples.samples)
        chance = distance_by_chance(collections.Counter({name: int(count / share) for name, count in work(theirs).items()}), work(theirs))
        print("# %d samples, %d of py-spy: distance %.3f, by chance up to %.3f; in no function of the dozen: %.3f" % (
            len(samples.samples), sum(theirs.values()), apart, chance, 1 - sum(work(ours).values()) / sum(ours.values())))
        assert len(work(ours)) == len(work(theirs)) == 12 and apart < 0.1 + chance, (apart, chance, ours, theirs)
        assert sum(work(ours).values()) > 0.8 * sum(ours.values()), ours


main()
