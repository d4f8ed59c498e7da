#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPU samples have the distribution that other profilers find in the same run: native functions against perf, Python functions against py-spy."""
from cpu_samples import *
from harness import *
from other_profilers import *
from python_versions import interpreters

PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]
SCRIPT = ROOT / "tests/programs/sampled.py"


@case
def functions_of_c_have_the_distribution_that_perf_finds(folder):
    compare_with_perf(folder, program("sampled_functions"), 5, functions=50)


@case
def functions_below_python_have_the_distribution_that_perf_finds(folder):
    if not PYTHONS:
        raise Skip("no Python with a global interpreter lock")
    compare_with_perf(folder, PYTHONS[-1], SCRIPT, "dozen", 5, functions=10)


@case
def python_functions_have_the_shares_that_py_spy_finds(folder):
    spy = tool("py-spy")
    if SANITIZED:
        raise Skip("a sanitizer's runtime changes what takes time")
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
