# SPDX-License-Identifier: MIT
"""Parts of synthetic jobs, and the Python that merges them, for tests. `make scale-peers` installs it."""
import csv, gzip, io, json, subprocess
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
