# SPDX-License-Identifier: MIT
"""Other profilers, as reference and as neighbours: perf, py-spy, gperftools. Each function raises harness.Skip where its tool is not installed
(scripts/setup.sh profilers)."""
import collections, glob, shutil, struct, subprocess
from harness import ROOT, Skip
from cpu_samples import functions_of


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
