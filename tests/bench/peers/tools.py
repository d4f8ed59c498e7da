# SPDX-License-Identifier: MIT
"""The recorders, each with the same load (tests/bench/load.h): how a program is run under it, how large its trace is, how many ranges are
in it, and how it is read."""
import collections, json, os, pathlib, re, shutil, subprocess, sys, time
from machine import first_line

# elapsed and cpu: nanoseconds a range of the slowest thread; whole: seconds until the trace is complete; ranges: closed in all.
Run = collections.namedtuple("Run", "elapsed cpu whole ranges bytes")
STRIPPED = ("PPERF_", "NVTX_", "LTTNG_", "UFTRACE_", "TRACY_", "LD_PRELOAD")


def environment(**more):
    return {**{k: v for k, v in os.environ.items() if not k.startswith(STRIPPED)}, "LC_ALL": "C", **{k: str(v) for k, v in more.items()}}


def size(path):
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) if path.is_dir() else path.stat().st_size if path.exists() else 0


class Tool:
    """A recorder. `folder` is its own; `trace` what it leaves there."""
    readers = ()
    threads = (1, 2)
    keeps = True  # a trace on disk
    anew = False  # each process begins one, and takes an older one away

    def __init__(self, build, folder):
        self.build, self.folder = build, folder / self.key
        self.folder.mkdir()
        self.trace = self.folder / "trace.bin"
        self.load = build / "tests/bench" / self.program

    def command(self):
        return [self.load]

    def environment(self):
        return environment()

    def before(self):
        """Makes ready for a run; its time does not count."""

    def after(self):
        """Completes the trace; its time does."""

    def run(self, pairs, threads, *more):
        self.remove()
        self.before()
        start = time.perf_counter()
        result = subprocess.run([str(c) for c in [*self.command(), pairs, threads, *more]], env=self.environment(), cwd=self.folder,
                                capture_output=True, text=True, timeout=300)
        self.after()
        whole = time.perf_counter() - start
        said = re.findall(r"^(\d+\.\d+) (\d+\.\d+) (\d+)$", result.stdout, re.M)
        if not said or (result.returncode and not more):
            sys.exit("bench-peers: %s ended with %d: %s" % (self.name, result.returncode, result.stderr[-400:]))
        return Run(float(said[0][0]), float(said[0][1]), whole, int(said[0][2]), size(self.trace))

    def measure(self, pairs, threads):
        """A run whose trace is then removed: pages that are written back would disturb the next."""
        run = self.run(pairs, threads)
        self.remove()
        return run

    def start_up(self, times):
        """Seconds that a process with five ranges takes, the least of some: what is in the way only adds. No trace is there before: to take one away
        that has just been written is the file system's affair, and takes longer than the start (ext4: 1 to 6 ms)."""
        taken = []
        self.before()
        for _ in range(times):
            if self.anew:
                self.remove()
            start = time.perf_counter()
            subprocess.run([str(c) for c in [*self.command(), 5, 1]], env=self.environment(), cwd=self.folder, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=True, timeout=60)
            taken.append(time.perf_counter() - start)
        self.after()
        self.remove()
        return min(taken)

    def lost(self, pairs):
        """How many of the ranges that were closed before a kill -9 are not in the trace, and of how many."""
        closed = self.run(pairs, 1, "kill").ranges
        found = self.found()
        self.remove()
        return closed - found, closed

    def remove(self):
        if self.trace.is_dir():
            shutil.rmtree(self.trace)
        else:
            self.trace.unlink(missing_ok=True)

    def close(self):
        """Ends what it left running."""


class Nothing(Tool):
    key, name, program, keeps = "nothing", "nothing", "nvtx_load", False
    what = "NVTX without a tool"


class Floor(Nothing):
    key, name = "floor", "floor"
    what = "two time stamps and two stores a range into a ring, no file"

    def environment(self):
        return environment(NVTX_INJECTION64_PATH=self.build / "tests/bench/lib_floor.so")


class Pperf(Tool):
    key, name, program, anew = "pperf", "pperf", "nvtx_load", True
    what = "NVTX ranges by name, `LD_PRELOAD=libpperf.so`"

    def __init__(self, build, folder):
        super().__init__(build, folder)
        report = str(build / "pperf-report")
        self.version = first_line(report, "--version").replace("pperf-report ", "")
        self.readers = {"pperf-report tree": [report, "tree", str(self.trace), "-f", "json"]}

    def environment(self):
        return environment(LD_PRELOAD=self.build / "libpperf.so")

    def found(self):
        tree = json.loads(subprocess.run(self.readers["pperf-report tree"], capture_output=True, check=True).stdout)
        return sum(row["calls"] for row in tree["rows"] if row["kind"] == "range")


class Lttng(Tool):
    """One session of its own for each run. A session daemon that is there already is used, else one is started for the while."""
    key, name, program = "lttng", "LTTng-UST", "lttng_load"
    what = "events with the range's name, user-space buffers of 8 times 4 MiB a CPU, written by its daemon"
    need = "lttng", "lttng-sessiond", "babeltrace2"
    daemon = None
    discarded = 0

    def __init__(self, build, folder):
        super().__init__(build, folder)
        self.version = (re.findall(r"\d+(?:\.\d+)+", first_line("lttng", "--version")) or [""])[0]
        babeltrace = ["babeltrace2", str(self.trace)]
        self.readers = {"babeltrace2, decoding only": babeltrace + ["-c", "sink.utils.dummy"], "babeltrace2, as text": babeltrace}

    def environment(self):
        """Its settings, and for a user who is not root its daemon, are ours and not the user's."""
        return environment(LTTNG_HOME=self.folder.parent)

    def listening(self):
        return subprocess.run(["lttng", "--no-sessiond", "list"], env=self.environment(), capture_output=True).returncode == 0

    def control(self, *arguments):
        result = subprocess.run(["lttng", "--no-sessiond", *arguments], env=self.environment(), cwd=self.folder, capture_output=True, text=True, timeout=60)
        if result.returncode:
            sys.exit("bench-peers: lttng %s ended with %d: %s" % (" ".join(arguments), result.returncode, (result.stdout + result.stderr)[-400:]))
        for count in re.findall(r"(\d+) events? (?:was|were) discarded", result.stdout + result.stderr):
            Lttng.discarded += int(count)

    def before(self):
        if not Lttng.daemon and not self.listening():
            Lttng.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until = time.monotonic() + 10
            while not self.listening():
                if time.monotonic() > until:
                    sys.exit("bench-peers: lttng-sessiond did not start")
                time.sleep(0.1)
        self.session = "pperf-peers-%d" % os.getpid()
        self.control("create", self.session, "--output=%s" % self.trace)
        self.control("enable-channel", "-u", "channel", "--subbuf-size=4M", "--num-subbuf=8", "--discard")
        self.control("enable-event", "-u", "ranges:*", "-c", "channel")
        self.control("start")

    def after(self):
        self.control("stop")
        self.control("destroy", self.session)

    def found(self):
        text = subprocess.run(["babeltrace2", str(self.trace)], capture_output=True, text=True, check=True).stdout
        return text.count("ranges:close")

    def close(self):
        if Lttng.daemon:
            Lttng.daemon.terminate()
            Lttng.daemon.wait(timeout=30)
            Lttng.daemon = None


class LttngNumber(Lttng):
    key, name, program, threads = "lttng_number", "LTTng-UST, numbers", "lttng_number_load", (1,)
    what = "the same, with a number of 32 bits for the name"


class Uftrace(Tool):
    key, name, program, anew = "uftrace", "uftrace", "calls_load", True
    what = "calls of functions of the same names, built with -finstrument-functions, `uftrace record --no-libcall --no-event`"
    need = ("uftrace",)

    def __init__(self, build, folder):
        super().__init__(build, folder)
        self.version = (re.findall(r"\d+(?:\.\d+)+", first_line("uftrace", "--version")) or [""])[0]
        self.readers = {"uftrace report": ["uftrace", "report", "--no-pager", "-d", str(self.trace)]}

    def command(self):
        return ["uftrace", "record", "--no-pager", "--no-libcall", "--no-event", "-d", self.trace, self.load]

    def found(self):
        text = subprocess.run([*self.readers["uftrace report"], "-f", "call"], capture_output=True, text=True, check=True).stdout
        return sum(int(calls) for calls in re.findall(r"^\s*(\d+)\s+transformer_layer_", text, re.M))


class Tracy(Tool):
    key, name, program, keeps = "tracy", "Tracy, not connected", "tracy_load", False
    what = "zones of its client, each a place in the source; no server, so all stays in the program's memory"

    def __init__(self, build, folder):
        super().__init__(build, folder)
        header = pathlib.Path(os.environ["TRACY"], "public/common/TracyVersion.hpp").read_text()
        self.version = ".".join(re.findall(r"(?:Major|Minor|Patch) = (\d+)", header))


def there(build, folder):
    """The tools that can be measured, and a line for each of those that cannot."""
    tools, skipped = [kind(build, folder) for kind in (Nothing, Floor, Pperf)], []
    for kind in (Lttng, LttngNumber, Uftrace):
        if not (build / "tests/bench" / kind.program).exists() or not all(map(shutil.which, kind.need)):
            skipped.append("%s: not installed; scripts/setup.sh peers does that where Debian's packages are" % kind.name)
        else:
            tools.append(kind(build, folder))
    if (build / "tests/bench/tracy_load").exists() and os.environ.get("TRACY"):
        tools.append(Tracy(build, folder))
    else:
        skipped.append("Tracy: its sources are in no package of Debian's; TRACY=their folder make bench-peers")
    return {tool.key: tool for tool in tools}, skipped
