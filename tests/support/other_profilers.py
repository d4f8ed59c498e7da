# SPDX-License-Identifier: MIT
"""Other profilers, as reference and as neighbours: perf, py-spy, gperftools. Each function raises harness.Skip where its tool is not installed
(scripts/setup.sh profilers)."""
import collections, glob, random, shutil, struct, subprocess
from harness import ROOT, SANITIZED, Skip, preload, run
from cpu_samples import Samples, functions_of

SPLITS = 20
RUNS = 3  # two samples of one distribution are farther apart than all twenty splits in one run of 21


def tool(name):
    path = shutil.which(name) or str(ROOT / "build/py-spy" / name)
    if not shutil.which(path):
        raise Skip("%s is not installed (scripts/setup.sh profilers)" % name)
    return path


def profiler_library():
    """gperftools' CPU profiler, which uses SIGPROF."""
    found = glob.glob("/usr/lib/*/libprofiler.so.0")
    if not found:
        raise Skip("gperftools is not installed (scripts/setup.sh profilers)")
    return found[0]


def perf_record(hz, output):
    """The start of a command that perf records. It samples CPU time outside of the kernel."""
    command = [tool("perf"), "record", "--quiet", "--no-buildid", "--no-buildid-cache", "-e", "task-clock:u", "-F", str(hz), "-o"]
    if subprocess.run([*command, "/dev/null", "true"], capture_output=True).returncode:
        raise Skip("perf may not record here")
    return [*command, str(output), "--"]


def perf_samples(path):
    """The threads and addresses of perf's samples."""
    text = subprocess.run([tool("perf"), "script", "-i", str(path), "-F", "tid,ip"], capture_output=True, text=True, check=True).stdout
    return [(int(words[0]), int(words[1], 16)) for words in map(str.split, text.splitlines()) if len(words) >= 2]


def py_spy_leaves(path):
    """How many samples each Python function has as the innermost, of py-spy's raw output."""
    leaves = collections.Counter()
    for line in filter(str.strip, path.read_text().splitlines()):
        stack, _, count = line.rpartition(" ")
        leaves[stack.split(";")[-1].split(" (")[0]] += int(count)
    return leaves


def gperftools_leaves(path):
    """How many samples each function has as the innermost, of gperftools' binary file."""
    data, at, leaves, counts = path.read_bytes(), 5 * 8, collections.Counter(), []
    while True:
        count, depth = struct.unpack_from("<2Q", data, at)
        if not count:  # the end: the memory map follows as text
            break
        counts.append((struct.unpack_from("<Q", data, at + 16)[0], count))
        at += 16 + 8 * depth
    objects, bias = [], {}
    for line in data[at + 24:].decode(errors="replace").splitlines():
        words = line.split()
        if len(words) == 6 and words[5].startswith("/"):
            start, end = (int(number, 16) for number in words[0].split("-"))
            objects.append((start, end, words[5]))
            bias[words[5]] = min(start, bias.get(words[5], start))
    for address, count in counts:
        path = next((path for start, end, path in objects if start <= address < end), None)
        name = "?"
        if path:
            starts, names = functions_of(path)
            name = max(((s, n) for s, n in zip(starts, names) if s <= address - bias[path]), default=(0, "?"))[1]
        leaves[name] += count
    return leaves


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


def compare_with_perf(folder, *command, functions, **options):
    """Fails unless perf finds the same distribution of leaf functions in the same run, of so many functions at least."""
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
    # The comparison would find it if every third sample were in a wrong function.
    wrong = collections.Counter({name: count - (count + 2) // 3 for name, count in ours.items()})
    wrong["none"] += sum(ours.values()) - sum(wrong.values())
    assert distance(wrong, theirs) > chance, (distance(wrong, theirs), chance)
