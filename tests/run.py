#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py --build FOLDER VARIANT...: builds and runs the tests of the variants (plain, asan, tsan, torch, torch-quick, hosts, soak, arm64).

torch: those of PyTorch, in each environment that is there; torch-quick: what is not long of them, in one (tests/torch/torch.mk).

Check suites are counted by their summary line, tests/system/test_*.py and scripts/check-* by TAP or else by their exit status.
Each runs with a limit in time and a TMPDIR of its own that must be empty when it is done. The last line is the result.

What fails beside other tests is run once more alone, when all others are done. If it passes then, its first output stays on the screen and it is named
UNSTABLE: a test that needs repairing. More than three of these fail the run.
"""
import argparse, concurrent.futures, glob, os, re, shutil, signal, subprocess, sys, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT_S = {"suite": 120, "python": 400, "script": 240}
SLOWER = {"plain": 1, "asan": 3, "tsan": 5, "torch": 3, "torch-quick": 3, "hosts": 4, "soak": 20, "arm64": 6}
SANITIZED = ("asan", "tsan")
UNSTABLE_MAX = 3 # tests that may pass only when they are run alone
# What is for aarch64 runs under qemu's user mode. Cases with this tag need what only a kernel gives: memory that a raw clone finds empty, process_vm_readv, a
# limit on address space, /proc/self/maps as itself.
QEMU = {"QEMU_LD_PREFIX": "/usr/aarch64-linux-gnu", "QEMU_SET_ENV": "LD_LIBRARY_PATH=" + os.path.join(ROOT, "build/aarch64/usr/lib/aarch64-linux-gnu"),
        "PPERF_TEST_UNDER": "qemu-aarch64-static", "CK_EXCLUDE_TAGS": "real-kernel"}
# Scripts of tests/torch that leave out slow cases if PPERF_TEST_QUICK is set.
QUICK = ("test_battery.py", "test_compile.py", "test_device.py", "test_device_ladder.py", "test_device_memory.py", "test_exit.py", "test_interrupts.py",
         "test_memory_situations.py", "test_modules.py", "test_ooms.py", "test_profiler_beside.py", "test_sampling.py", "test_segments.py",
         "test_snapshot_import.py", "test_steps.py", "test_timeline_import.py", "test_truth.py")
GIVEN = ("PPERF_TEST_DATA", "PPERF_TEST_PROGRAMS", "PPERF_TEST_PACKAGES")  # folders of files that are not part of the project
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=98",
}


running = set()


def stop(signal_number, frame):
    """Kills the running tasks, which are sessions of their own and would survive this process."""
    for process in list(running):
        os.killpg(process.pid, signal.SIGKILL)
    os._exit(128 + signal_number)


class Task:
    def __init__(self, variant, kind, name, command):
        self.variant, self.kind, self.name, self.command = variant, kind, name, command


def torch_tasks(variant):
    """Tasks in each environment with PyTorch, the newest first. torch-quick runs in the newest
    only."""
    environments = sorted(glob.glob(os.path.join(ROOT, "build/torch*/.installed")), key=lambda path: [int(n) for n in re.findall(r"\d+", path[len(ROOT):])])
    environments = [os.path.dirname(path) for path in reversed(environments)]
    if variant == "torch-quick":
        environments = [path for path in environments if "-" in os.path.basename(path)][:1]
        if not environments:
            print("PyTorch's own tests are skipped: `make torch` fetches it (0.6 GB)", flush=True)
    scripts = sorted(glob.glob(os.path.join(ROOT, "tests/torch/test_*.py")))
    if variant == "torch-quick":
        scripts = [s for s in scripts if os.path.basename(s) in QUICK]
    return [Task(variant, "python", "%s %s" % (os.path.basename(path), os.path.basename(s)), [os.path.join(path, "bin/python"), s])
            for path in environments for s in scripts]


class Result:
    def __init__(self, passed, failed, skipped, output):
        self.passed, self.failed, self.skipped, self.output = passed, failed, skipped, output


def count(output, status):
    """Passed, failed and skipped tests of one task."""
    summary = re.findall(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", output, re.M)
    if summary:
        checks, bad = sum(int(s[0]) for s in summary), sum(int(s[1]) + int(s[2]) for s in summary)
        return checks - bad, bad or (status != 0), 0
    ok = len(re.findall(r"^ok ", output, re.M))
    skipped = len(re.findall(r"^ok .*# SKIP", output, re.M))
    bad = len(re.findall(r"^not ok ", output, re.M))
    if ok + bad:
        return ok - skipped, bad or int(status != 0), skipped
    return (1, 0, 0) if status == 0 else (0, 1, 0)


def environment(task, build, directory):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PPERF_", "NVTX_INJECTION", "CUDA_INJECTION")) or k in GIVEN or k.startswith("PPERF_SOAK_")}
    variant_build = os.path.join(build, task.variant) if task.variant in SANITIZED else build
    env.update(TMPDIR=directory, LC_ALL="C.UTF-8", TZ="UTC", PPERF_TEST_BUILD=build, PPERF_TEST_VARIANT=task.variant,
               PPERF_TEST_TOOLS=variant_build, CK_DEFAULT_TIMEOUT="60", CK_TIMEOUT_MULTIPLIER=str(SLOWER[task.variant]), CK_FORK="yes",
               PPERF_CACHE="0", PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=os.path.join(ROOT, "tests/support"), **SANITIZER_OPTIONS)
    if task.variant == "torch-quick":
        env["PPERF_TEST_QUICK"] = "1"
    if task.variant == "arm64":
        env.update(QEMU)
    return env


def rest_of(process):
    """The output of a process that was stopped at its time limit. Its children may still hold the
    pipe open."""
    try:
        return process.communicate(timeout=5)[0].decode(errors="replace")
    except subprocess.TimeoutExpired as stopped:
        return (stopped.stdout or b"").decode(errors="replace")


def run(task, build):
    directory = tempfile.mkdtemp(prefix="pperf-test-")
    limit = LIMIT_S[task.kind] * SLOWER[task.variant]
    process = subprocess.Popen(task.command, cwd=ROOT, env=environment(task, build, directory), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    running.add(process)
    try:
        output = process.communicate(timeout=limit)[0].decode(errors="replace")
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = rest_of(process) + "\nstopped: it ran longer than %d s\n" % limit
        status = 1
    running.discard(process)
    passed, failed, skipped = count(output, status)
    left = sorted(os.listdir(directory))
    if left and not failed:
        output += "\nit left in its TMPDIR: %s\n" % " ".join(left[:10])
        failed = 1
    shutil.rmtree(directory, ignore_errors=True)
    return Result(passed, failed, skipped, output)


def without_job_slots(flags):
    """MAKEFLAGS without the job server of an outer make. Its pipe is closed here, and each inner
    make would warn."""
    return " ".join(f for f in flags.split() if not f.startswith(("-j", "--jobserver")))


def make(build, *targets):
    return subprocess.run(["make", "--no-print-directory", "-s", "-k", "BUILD=" + build, *targets], cwd=ROOT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def arm64_tasks(build):
    print("arm64: what needs a real kernel is left out: tests with the tag real-kernel", flush=True)
    suites = [os.path.relpath(path, ROOT)[:-2] for path in sorted(sum((glob.glob(os.path.join(ROOT, "tests", folder, "**/test_*.c"), recursive=True) for folder in ("collector", "preload", "report")), []))]
    return ([Task("arm64", "suite", os.path.basename(s), ["qemu-aarch64-static", os.path.join(ROOT, build, "arm64", s)]) for s in suites] +
            [Task("arm64", "python", os.path.basename(s), [sys.executable, s]) for s in sorted(glob.glob(os.path.join(ROOT, "tests/arm64/test_*.py")))])


def variant_tasks(variant, build):
    """All tasks of a variant, built or not. A task that was not built fails when it is run."""
    if variant.startswith("torch"):
        return torch_tasks(variant)
    if variant == "arm64":
        return arm64_tasks(build)
    if variant in ("hosts", "soak"):
        return [Task(variant, "python", os.path.basename(s), [sys.executable, s]) for s in sorted(glob.glob(os.path.join(ROOT, "tests", variant, "test_*.py")))]
    suites = make(build, "list-threaded" if variant == "tsan" else "list-suites").stdout.split()
    folder = os.path.join(build, variant) if variant in SANITIZED else build
    tasks = [Task(variant, "suite", os.path.basename(s), [os.path.join(ROOT, folder, s)]) for s in suites]
    if variant != "tsan":
        for script in sorted(glob.glob(os.path.join(ROOT, "tests/system/test_*.py"))):
            tasks.append(Task(variant, "python", os.path.basename(script), [sys.executable, script]))
    if variant == "plain":
        for script in sorted(glob.glob(os.path.join(ROOT, "scripts/check-*"))):
            tasks.append(Task(variant, "script", os.path.basename(script), [script]))
    return tasks


def root_files():
    names = set(os.listdir(ROOT))
    for folder in ("tests", "scripts", "doc"):
        for path, _, files in os.walk(os.path.join(ROOT, folder)):
            names.update(os.path.join(path, f) for f in files if re.search(r"\.bin|^core", f))
    return names - {"build"}


class Board:
    """Prints the result of each task and counts passed and failed tests."""

    def __init__(self, only):
        self.passed, self.failed, self.lock, self.only = 0, 0, threading.Lock(), only
        self.repeat = [] # tasks that failed, with their results

    def add(self, result, sign=1):
        self.passed += sign * result.passed
        self.failed += sign * result.failed

    def show(self, name, result, seconds):
        with self.lock:
            self.add(result)
            notes = "%d passed" % result.passed
            notes += ", %d skipped" % result.skipped if result.skipped else ""
            notes += ", %d FAILED" % result.failed if result.failed else ""
            print("%-8s %-40s %s, %.1f s" % ("FAILED" if result.failed else "ok", name, notes, seconds))
            if result.failed:
                lines = [l for l in result.output.splitlines() if not l.startswith("ok ")]
                print("\n".join("    " + l for l in lines[:12] + (["..."] if len(lines) > 60 else []) + lines[max(12, len(lines) - 48):]))
            for line in re.findall(r"^ok .*# SKIP.*", result.output, re.M):
                print("    " + line)
            sys.stdout.flush()

    def run(self, task, build):
        start = time.monotonic()
        try:
            result = run(task, build)
        except OSError as error:
            result = Result(0, 1, 0, "it was not built: %s" % error)
        self.show("%s/%s" % (task.variant, task.name), result, time.monotonic() - start)
        if result.failed:
            self.repeat.append((task, result))

    def repeat_failed(self, build):
        """Runs once more, alone, what failed while other tests ran. The second result counts instead of the first."""
        first, self.repeat = self.repeat[:2 * UNSTABLE_MAX], []
        for task, result in first:
            self.add(result, -1)
            self.run(task, build)
        unstable = [task for task, _ in first if task not in [again for again, _ in self.repeat]]
        for task in unstable:
            print("UNSTABLE %s/%s failed beside other tests and passed alone" % (task.variant, task.name))
        self.failed += len(unstable) if len(unstable) > UNSTABLE_MAX else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", default="", help="only tasks whose name has this in it")
    parser.add_argument("variants", nargs="+", choices=sorted(SLOWER))
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["MAKEFLAGS"] = without_job_slots(os.environ.get("MAKEFLAGS", ""))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    before, board, tasks = root_files(), Board(options.only), []
    for variant in options.variants:
        start = time.monotonic()
        built = make(options.build, "-j%d" % os.cpu_count(), variant if variant in ("plain", *SANITIZED) else "programs")
        noise = built.stdout.strip()
        board.show(variant + "/build without a warning", Result(int(not noise and not built.returncode), int(bool(noise) or built.returncode != 0), 0, noise),
                   time.monotonic() - start)
        tasks += [t for t in variant_tasks(variant, options.build) if options.only in t.name]
    if options.only and not tasks:
        parser.exit(2, "run.py: no task of %s has \"%s\" in its name\n" % (" ".join(options.variants), options.only))
    tasks.sort(key=lambda t: {"python": 0, "suite": 1, "script": 2}[t.kind])
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        list(pool.map(lambda task: board.run(task, options.build), tasks))
    board.repeat_failed(options.build)
    left = sorted(root_files() - before)
    board.show("no file is left behind", Result(int(not left), int(bool(left)), 0, " ".join(left)), 0)
    print("%d passed, %d failed" % (board.passed, board.failed))
    return 1 if board.failed else 0


if __name__ == "__main__":
    sys.exit(main())
