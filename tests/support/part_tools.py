# SPDX-License-Identifier: MIT
"""Parts of synthetic jobs, and the Python that merges them, for tests. `make scale-peers` installs it."""
import csv, gzip, io, json, os, pathlib, shutil, subprocess, time
from harness import REPORT, ROOT, Skip, environment, run

ENGINES = ROOT / "build" / "scale" / "bin" / "python"


def job(folder, ranks, steps, *settings):
    folder.mkdir(exist_ok=True)
    run(folder, "job_load", folder, ranks, steps, *settings, check=0)
    return folder


def part(traces, parts, *options, check=0, env=None):
    result = subprocess.run([str(REPORT), "part", *map(str, traces if isinstance(traces, list) else [traces]), "-o", str(parts), *map(str, options)],
                            capture_output=True, text=True, env=environment(LC_ALL="C.UTF-8", **(env or {})), timeout=300)
    assert result.returncode == check, (result.returncode, result.stderr[-600:])
    return result.stdout + result.stderr


def pperf(*arguments, check=0, **env):
    """Runs scripts/pperf with the Python that has the engines."""
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    result = subprocess.run([str(ROOT / "scripts" / "pperf"), *map(str, arguments)], capture_output=True, text=True, timeout=300,
                            env=environment(LC_ALL="C.UTF-8", PPERF_PYTHON=str(ENGINES), PPERF_REPORT=str(REPORT), **env))
    assert result.returncode == check, "pperf %s ended with %d: %s" % (" ".join(map(str, arguments)), result.returncode, (result.stdout + result.stderr)[-1500:])
    return result.stdout if check < 2 else result.stdout + result.stderr


def mpirun():
    """The launcher of Debian, or that of `make scale-peers`."""
    found = shutil.which("mpirun") or shutil.which("mpirun", path=ENGINES.parent)
    if not found:
        raise Skip("mpirun is not installed")
    return found


def table(parts, name):
    """The rows of a table of all tasks, as dictionaries of texts."""
    rows = []
    for path in sorted((parts / name).glob("*.csv.gz")):
        rows += csv.DictReader(io.StringIO(gzip.open(path, "rt", encoding="utf-8", newline="").read()))
    return rows


def manifests(parts):
    return sorted((parts / "manifest").glob("*.json"))


def rewritten(parts, change):
    """Changes the manifest of the only task."""
    path = manifests(parts)[0]
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(change(manifest) or manifest))


def replaced(parts, name, content):
    """Replaces the bytes of a table, and the number of bytes in the manifest."""
    path = next((parts / name).glob("*.csv.gz"))
    path.write_bytes(content)
    rewritten(parts, lambda m: m["tables"][name].update(bytes=len(content)))


class Cluster:
    """A Dask scheduler and workers, as processes on the loopback interface."""

    def __init__(self, folder, workers=2):
        if not ENGINES.exists():
            raise Skip("make scale-peers is needed")
        self.file, self.folder, self.processes = folder / "scheduler.json", folder, []
        try:
            self.start_all(workers)
        except BaseException:
            self.__exit__()
            raise

    def start_all(self, workers):
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(self.file))
        for _ in range(workers):
            self.start("worker", "--scheduler-file", str(self.file), "--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1",
                       "--local-directory", str(self.folder))
        code = "import sys; from dask.distributed import Client; Client(scheduler_file=sys.argv[1], timeout=250).wait_for_workers(int(sys.argv[2]), timeout=250)"
        subprocess.run([str(ENGINES), "-c", code, str(self.file), str(workers)], check=True, capture_output=True, timeout=300)

    def start(self, kind, *options):
        env = environment(PYTHONPATH=str(ROOT / "python"), DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="5", DASK_TEMPORARY_DIRECTORY=str(self.folder))
        log = open(self.folder / ("%s%d.log" % (kind, len(self.processes))), "wb")
        self.processes.append(subprocess.Popen([str(ENGINES.parent / "dask"), kind, *options], env=env, stdout=log, stderr=log, cwd=self.folder))
        deadline = time.monotonic() + 90
        while kind == "scheduler" and not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)

    def cpu_seconds(self):
        """What the scheduler, the workers and their children have used so far, user and system time."""
        fields = [pathlib.Path("/proc/%d/stat" % process.pid).read_text().rsplit(")", 1)[1].split() for process in self.processes]
        return sum(int(value) for one in fields for value in one[11:15]) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
