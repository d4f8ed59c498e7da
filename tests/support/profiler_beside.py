# SPDX-License-Identifier: MIT
"""Runs another project's program without and with a library in LD_PRELOAD and compares output, exit
status, files and processes left behind. Also measures the cost, as a ratio of alternating runs.

    result = same(folder, "sh", "-c", "echo hello")    # fails with what differs
"""
import hashlib, statistics, stat
from harness import *


def needs(*commands):
    for command in commands:
        if not shutil.which(command):
            raise Skip("there is no " + command)


def open_to_others(folder):
    """Lets other users read `folder`. The runner's TMPDIR above it is otherwise closed to them."""
    folder.chmod(0o755)
    if stat.S_IMODE(folder.parent.stat().st_mode) == 0o700:
        folder.parent.chmod(0o711)


def files_of(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def runs_on(folder):
    """The ids of the processes whose working directory is `folder`."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd") == str(folder):
                found.append(entry.name)
        except OSError:
            pass
    return found


def still_on(folder):
    """The processes that still run in `folder` after a second for ending."""
    deadline = time.monotonic() + 1
    while runs_on(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    return runs_on(folder)


def one(folder, command, library, stdin, timeout, env):
    folder.mkdir(parents=True, exist_ok=True)
    variables = dict(env or {})
    if library:
        variables["LD_PRELOAD"] = " ".join(filter(None, [variables.get("LD_PRELOAD"), library]))
    result = run(folder, *command, stdin=stdin, timeout=timeout, env=variables)
    said = [stream.replace(str(folder).encode(), b"HERE") for stream in (result.stdout, result.stderr)]
    return {"status": result.returncode, "stdout": said[0], "stderr": said[1], "files": files_of(folder), "still runs": len(still_on(folder))}


def same(folder, *command, stdin=None, timeout=600, output=None, env=None, library=None, leave=()):
    """Runs a command twice, in two folders, and fails if the results differ. `leave`: results that
    are not compared (stdout, stderr, files). No trace may be left in any case. `output`: a file
    whose content is compared. Returns the results of the plain run."""
    folders = [folder / name / "here" for name in ("plain", "under")]
    results = [one(home, command, with_it, stdin, timeout, env) for home, with_it in zip(folders, (None, library or preload()))]
    for result, home in zip(results, folders):
        if output:
            result["content"] = hashlib.sha256((home / output).read_bytes()).hexdigest() if (home / output).exists() else None
    unlike = [key for key in results[0] if key not in leave and results[0][key] != results[1][key]]
    assert not unlike, "; ".join("%s without: %.700r with: %.700r" % (key, results[0][key], results[1][key]) for key in unlike)
    left = [name for name in results[1]["files"] if "trace" in name and ".bin" in name]
    assert not left, "a trace was left: %s" % left
    return results[0]


def seconds(folder, command, library):
    start = time.monotonic()
    run(folder, *command, env={"LD_PRELOAD": library})
    return time.monotonic() - start


def cost(folder, *command, rounds=15, library=None):
    """The seconds that a command takes with the library and without: medians of alternating runs.
    """
    plain, under = [], []
    for number in range(rounds + 1):
        for times, with_it in ((plain, None), (under, library or preload())) if number % 2 else ((under, library or preload()), (plain, None)):
            times.append(seconds(folder, command, with_it))
    return statistics.median(under[1:]), statistics.median(plain[1:])
