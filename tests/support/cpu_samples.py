# SPDX-License-Identifier: MIT
"""Reads the CPU samples of a trace (PPERF_SAMPLE), with the functions of their addresses."""
import bisect, collections, functools, os, pathlib, resource, subprocess
import raw_trace
from harness import Skip

ON_CPU, WAITS, BLOCKED, KERNEL = 1, 2, 3, 4
HAS_NODE, GUESSED, CUT, MOVED, NO_PYTHON, UNEQUAL = 1, 2, 4, 8, 16, 32
RESUMED = 1
LOST_SAMPLES = 9
WEIGHT_NS = 16


@functools.lru_cache(maxsize=None)
def functions_of(path):
    """The addresses of the functions in a file, in order, and their names."""
    found = {}
    for table in ("--dynamic", "--defined-only"):
        lines = subprocess.run(["nm", "--numeric-sort", "--defined-only", table, path], capture_output=True, text=True, errors="replace").stdout
        words = (line.split(None, 2) for line in lines.split("\n"))
        found.update((int(w[0], 16), w[2].split("@")[0]) for w in words if len(w) == 3 and w[1] in "tTwWiu")
    at = sorted(found)
    return at, [found[a] for a in at]


class Samples:
    """The samples of a trace, and the clocks of the threads that they are of."""

    def __init__(self, path):
        self.trace = raw_trace.whole(path)
        self.bytes = os.path.getsize(path)
        self.meta, self.lost = self.trace.meta, self.trace.lost[LOST_SAMPLES]
        self.samples = [r for r in self.trace.records if r.kind == "SAMPLE"]
        self.native = [r for r in self.samples if r.pc]
        self.frames = {f.frame: f for f in self.trace.dictionary["PYTHON_FRAME"]}
        self.native_frames = {f.frame: f for f in self.trace.dictionary["FRAME"]}
        self.nodes = {n.node: n for n in self.trace.dictionary["NODE"]}
        self.modules = sorted(self.trace.modules, key=lambda m: m.start)
        self.starts = [m.start for m in self.modules]
        self.clocks, last = {}, {}
        for record in self.trace.records:
            if record.kind == "SAMPLED_THREAD":
                passed = 0 if record.flags & RESUMED else record.cpu_ns - last[record.tid]
                self.clocks[record.tid] = self.clocks.get(record.tid, 0) + passed
                last[record.tid] = record.cpu_ns

    def weight(self, of=lambda r: True):
        return sum(WEIGHT_NS * r.weight for r in self.samples if of(r))

    def by_node(self, of=lambda r: True):
        sums = collections.Counter()
        for r in filter(of, self.samples):
            sums[self.trace.names.get(self.nodes[r.node].name) if r.node else None] += WEIGHT_NS * r.weight
        return sums

    def stack(self, sample):
        """The names of the Python functions, the outermost first."""
        names, frame = [], sample.python
        while frame:
            names.append(self.trace.names[self.frames[frame].function])
            frame = self.frames[frame].parent
        return names[::-1]

    def addresses(self, sample):
        """The native frames of a sample, the innermost first."""
        found, frame = [sample.pc], sample.native
        while frame:
            found.append(self.native_frames[frame].address)
            frame = self.native_frames[frame].parent
        return found

    def function(self, address):
        """The function of an address, or the name of the file where none is known."""
        at = bisect.bisect(self.starts, address) - 1
        if at < 0 or address >= self.modules[at].end:
            return "?"
        module = self.modules[at]
        starts, names = functions_of(module.path)
        at = bisect.bisect(starts, address - module.bias) - 1
        return names[at] if at >= 0 else os.path.basename(module.path)

    def leaves(self):
        """How many samples each function has as the innermost."""
        return collections.Counter(self.function(r.pc) for r in self.native)

    def complete(self):
        """The share of native stacks that reach the first frame of their thread."""
        return sum(not r.flags & CUT for r in self.native) / len(self.native)

    def check(self):
        """What holds in every trace of the CPU clock."""
        lost = self.lost * 1e9 / int(self.meta["sample.hz"])  # counted: the kernel had no room for them
        for tid, clock in self.clocks.items():
            weight = self.weight(lambda r: r.tid == tid and r.state in (ON_CPU, KERNEL))
            assert -0.01 * clock - 1000 <= clock - weight <= 0.01 * clock + 1000 + lost, (tid, weight, clock, self.lost)
        assert self.samples and all(r.tid in self.clocks for r in self.samples)
        return self


def traced_samples(folder):
    """The samples of the only trace in a folder."""
    trace, = [p for p in pathlib.Path(folder).iterdir() if ".bin" in p.name]
    return Samples(trace)


def can_open_events():
    return open("/proc/sys/kernel/perf_event_paranoid").read().strip() in ("-1", "0", "1", "2") and os.uname().machine == "x86_64"


def nobody_without_locked_memory(folder, *command):
    """Returns what makes a new process one of a user without privileges that may lock no memory, and lets that user write to the folder. `command`: is
    tried first, because that user may not be able to read the build."""
    if os.getuid():
        raise Skip("needs root, to become a user without privileges")
    os.chmod(folder, 0o777)
    for parent in [folder.parent, folder.parent.parent]:
        if parent.name.startswith("pperf-test-"):
            os.chmod(parent, 0o711)  # made by the runner, for this test alone

    def become_nobody():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        os.setgid(65534)
        os.setuid(65534)
    if subprocess.run(command, preexec_fn=become_nobody, capture_output=True).returncode:
        raise Skip("another user cannot read the build")
    return become_nobody
