# SPDX-License-Identifier: MIT
"""A program of others is run without a library in LD_PRELOAD and with it, and nothing may differ: what it says, how it ends, which files it
leaves, what it left running; and what it costs is measured as a ratio of runs that take turns.

    result = same(folder, "sh", "-c", "echo hello")    # fails with what differs
"""
import hashlib, statistics, stat
from harness import *


def needs(*commands):
    for command in commands:
        if not shutil.which(command):
            raise Skip("there is no " + command)


def open_to_others(folder):
    """Another user can come to what lies in it; the runner's own TMPDIR above it is shut otherwise."""
    folder.chmod(0o755)
    if stat.S_IMODE(folder.parent.stat().st_mode) == 0o700:
        folder.parent.chmod(0o711)


def files_of(place):
    return sorted(str(p.relative_to(place)) for p in place.rglob("*"))


def runs_on(place):
    """Processes that have this folder as theirs, by number."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd") == str(place):
                found.append(entry.name)
        except OSError:
            pass
    return found


def still_on(place):
    """The same, once those that are about to end have had a second."""
    deadline = time.monotonic() + 1
    while runs_on(place) and time.monotonic() < deadline:
        time.sleep(0.02)
    return runs_on(place)


def one(place, command, library, stdin, timeout, env):
    place.mkdir(parents=True, exist_ok=True)
    variables = dict(env or {})
    if library:
        variables["LD_PRELOAD"] = " ".join(filter(None, [variables.get("LD_PRELOAD"), library]))
    result = run(place, *command, stdin=stdin, timeout=timeout, env=variables)
    said = [stream.replace(str(place).encode(), b"HERE") for stream in (result.stdout, result.stderr)]
    return {"status": result.returncode, "stdout": said[0], "stderr": said[1], "files": files_of(place), "still runs": len(still_on(place))}


def same(folder, *command, stdin=None, timeout=600, output=None, env=None, library=None, leave=()):
    """Runs a command twice, in two folders. What `leave` names (stdout, stderr, files) is not compared, but that no trace is left; the content of
    the file `output` is. Returns what the plain run gave."""
    places = [folder / name / "here" for name in ("plain", "under")]
    results = [one(place, command, with_it, stdin, timeout, env) for place, with_it in zip(places, (None, library or preload()))]
    for result, place in zip(results, places):
        if output:
            result["content"] = hashlib.sha256((place / output).read_bytes()).hexdigest() if (place / output).exists() else None
    unlike = [key for key in results[0] if key not in leave and results[0][key] != results[1][key]]
    assert not unlike, "; ".join("%s without: %.700r with: %.700r" % (key, results[0][key], results[1][key]) for key in unlike)
    left = [name for name in results[1]["files"] if "trace" in name and ".bin" in name]
    assert not left, "a trace was left: %s" % left
    return results[0]


def seconds(place, command, library):
    start = time.monotonic()
    run(place, *command, env={"LD_PRELOAD": library})
    return time.monotonic() - start


def cost(folder, *command, rounds=15, library=None):
    """How long a command takes with the library and without, in seconds: medians of runs that take turns."""
    plain, under = [], []
    for number in range(rounds + 1):
        for times, with_it in ((plain, None), (under, library or preload())) if number % 2 else ((under, library or preload()), (plain, None)):
            times.append(seconds(folder, command, with_it))
    return statistics.median(under[1:]), statistics.median(plain[1:])
