# SPDX-License-Identifier: MIT
"""The harness of the system tests. A case is a function marked @case. Each case gets a folder of
its own, which is removed afterwards.

    from harness import case, run, traced, dump, main

    @case
    def a_range_is_recorded(folder):
        traced(folder, "ranges", "1", "5")
        assert len(dump(folder / "trace.bin")) > 0

    main()
"""
import concurrent.futures, json, os, pathlib, shutil, struct, subprocess, sys, tempfile, time, traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANT = os.environ.get("PPERF_TEST_VARIANT", "plain")
BUILD = ROOT / os.environ.get("PPERF_TEST_BUILD", "build")
TOOLS = ROOT / os.environ.get("PPERF_TEST_TOOLS", os.environ.get("PPERF_TEST_BUILD", "build"))
LIBRARY, REPORT, PROGRAMS = TOOLS / "libpperf.so", TOOLS / "pperf-report", BUILD / "tests" / "programs"
SANITIZED = VARIANT in ("asan", "tsan")
# Files of PyTorch itself are removed with the case. 2.15 always makes a cache for its compiler,
# and 2.5 leaves a generated module behind when it is killed.
WITH_PYTORCH = VARIANT.startswith("torch")
# An uninstrumented program that preloads an instrumented library needs the sanitizer's runtime in front of it.
PRELOADS = []
if VARIANT == "asan":
    PRELOADS = [subprocess.run([os.environ.get("CC", "cc"), "-print-file-name=lib%s.so" % name], capture_output=True, text=True).stdout.strip()
                for name in ("asan", "ubsan")]
OURS = ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "PPERF_RUN")
cases, waiting = [], set()


class Skip(Exception):
    """Raised by a case that cannot run here, with the reason."""


def case(function):
    cases.append(function)
    return function


def waits(function):
    """Marks a case, above @case, whose programs mostly wait. It runs beside the others."""
    waiting.add(function)
    return function


def slow(function):
    """A case that takes long, and is left out where PPERF_TEST_QUICK is set."""
    return function if os.environ.get("PPERF_TEST_QUICK") else case(function)


def unsanitized(function):
    """A case that spends its time in other programs: browsers, query engines. What it runs of pperf-report is run with sanitizers elsewhere."""
    return function if SANITIZED else case(function)


def preload():
    return " ".join([*PRELOADS, str(LIBRARY)])


def environment(**changes):
    """The environment of this process without any setting of pperf, and without the cache of
    pperf-report, with the changes applied. None removes a variable."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PPERF_") and k not in OURS}
    env["PPERF_CACHE"] = "0"
    env.update({k: v for k, v in changes.items() if v is not None})
    return {k: v for k, v in env.items() if not (k in changes and changes[k] is None)}


def program(name):
    return str(PROGRAMS / name) if "/" not in str(name) and (PROGRAMS / name).exists() else str(name)


def run(folder, name, *arguments, env=None, stdin=None, timeout=120, check=None):
    """Runs a program in `folder` without the library. `check`: the exit status that it must have.
    """
    env = {"TMPDIR": str(folder), **(env or {})} if WITH_PYTORCH else env or {}
    result = subprocess.run([program(name), *map(str, arguments)], cwd=folder, env=environment(**env), input=stdin,
                            stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True, timeout=timeout)
    if check is not None:
        assert result.returncode == check, "%s ended with %d, not %d: %s" % (name, result.returncode, check, result.stderr.decode(errors="replace")[-600:])
    return result


def traced(folder, name, *arguments, env=None, check=0, **options):
    """Runs a program in `folder` under the library. Its trace is in `folder` too."""
    return run(folder, name, *arguments, env={"LD_PRELOAD": preload(), **(env or {})}, check=check, **options)


def noted(progress):
    """The progress of a running `killed`, from its file: for each thread its id and the number of
    marks it has set."""
    numbers = struct.unpack_from("<6Q", progress.read_bytes())
    return list(zip(numbers[::2], numbers[1::2]))


def await_marks(process, progress, least):
    """Waits until every thread of a running `killed` has set `least` marks."""
    deadline = time.monotonic() + 60
    while min(done for _, done in noted(progress)) < least:
        assert process.poll() is None and time.monotonic() < deadline, "%s: no %d marks in %s" % (process.poll(), least, noted(progress))
        time.sleep(0.001)


def report(*arguments, check=0, timeout=300):
    result = subprocess.run([str(REPORT), *map(str, arguments)], capture_output=True, env=environment(LC_ALL="C.UTF-8"), timeout=timeout)
    if check is not None:
        assert result.returncode == check, "pperf-report %s ended with %d: %s" % (" ".join(map(str, arguments)), result.returncode,
                                                                               result.stderr.decode(errors="replace")[-600:])
    return result


def install_tools(home, library=LIBRARY):
    """Makes the folders of an installation, with its launcher, in a new folder. Returns the launcher."""
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    for source, target in ((ROOT / "scripts/pperf", "bin/pperf"), (ROOT / "scripts/doctor.sh", "bin/doctor.sh"), (REPORT, "bin/pperf-report"),
                           (library, "lib/libpperf.so")):
        shutil.copy(source, home / target)
    return str(home / "bin" / "pperf")


def dump(path, kinds=None):
    """The records of one trace, ordered by time, without the lines of nodes. `kinds`: only records
    of these kinds."""
    records = [json.loads(line) for line in report("dump", path, "-f", "json").stdout.decode().splitlines()]
    return [r for r in records if (r["kind"] != "node" if kinds is None else r["kind"] in kinds)]


def info(path):
    return json.loads(report("info", path, "-f", "json").stdout)


def names(path, kind="push"):
    return [r["name"] for r in dump(path, {kind})]


def traces(folder):
    return sorted(p for p in pathlib.Path(folder).iterdir() if ".bin" in p.name)


def run_case(function):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="case-"))
    try:
        function(folder)
        return "ok", ""
    except Skip as reason:
        return "ok", " # SKIP %s" % reason
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = "%s: %s (%s:%d)" % (type(error).__name__, error, os.path.basename(frame.filename), frame.lineno)
        return "not ok", "\n" + "\n".join("# " + line for line in text[:3000].splitlines())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def timed_case(function):
    start = time.monotonic()
    return *run_case(function), time.monotonic() - start


def main():
    """Runs the cases, or those whose names contain an argument, and prints TAP."""
    wanted = [c for c in cases if len(sys.argv) == 1 or any(a in c.__name__ for a in sys.argv[1:])]
    failed = 0
    print("1..%d" % len(wanted))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        begun = {c: pool.submit(timed_case, c) for c in wanted if c in waiting}
        for number, function in enumerate(wanted, 1):
            verdict, detail, seconds = begun[function].result() if function in begun else timed_case(function)
            failed += verdict != "ok"
            print("%s %d - %s%s" % (verdict, number, function.__name__.replace("_", " "), detail), flush=True)
            if os.environ.get("PPERF_TEST_TIMES"):
                print("# %.2f s" % seconds, flush=True)
    sys.exit(1 if failed else 0)
