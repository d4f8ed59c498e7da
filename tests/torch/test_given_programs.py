#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each script of a folder has the same stdout, stderr and exit status under the library as without
it, on CPU tensors and on the simulated device. PPERF_TEST_PROGRAMS is the folder, and
PPERF_TEST_PACKAGES one with packages that the scripts import beside PyTorch."""
import pathlib, re, signal
from device import *

PROGRAMS = os.environ.get("PPERF_TEST_PROGRAMS")
PACKAGES = os.environ.get("PPERF_TEST_PACKAGES")
# On Python before 3.14, a program that ends while autograd's threads run may abort (preload/torch/README.md). Then it runs again.
ATTEMPTS = 5
# Scripts that need arguments.
ARGUMENTS = {"overhead2": ["bare", "tiny"]}
# What is different in each run: times that a program measures, random numbers without a seed, and names of threads and objects.
MEASURED = {"overhead2": rb"\d+\.\d+", "endrace": rb"-?\d+\.\d+"}
BLANK = rb"0x[0-9a-f]+|Thread-\d+ \S+|, line \d+, in <string>"


def outcome(name, result):
    out, errors = (re.sub(MEASURED.get(name, BLANK), b"N", text) for text in (result.stdout, result.stderr))
    return result.returncode, out, plain(re.sub(BLANK, b"N", errors))


def once(runner, folder, device, script):
    folder.mkdir(exist_ok=True)
    arguments = [script, *ARGUMENTS.get(script.stem, [])]
    env = {"DEV": device, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TMPDIR": str(folder), "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
           **({"PYTHONPATH": PACKAGES} if PACKAGES else {})}
    if device == "cpu":
        return runner(folder, sys.executable, *arguments, env=env, check=None, timeout=1000)
    return launch(runner, folder, *arguments, env=env, check=None, timeout=1000)


def without_abort(runner, folder, device, script):
    """Returns the result of the first run that the end of the interpreter does not abort."""
    for _ in range(ATTEMPTS):
        result = once(runner, folder, device, script)
        if result.returncode != -signal.SIGABRT:
            break
    return result


def compare(folder, device, script):
    bare = outcome(script.stem, without_abort(run, folder / "bare", device, script))
    if any(b"ModuleNotFoundError" in line for line in bare[2]):
        raise Skip("%s imports packages that PPERF_TEST_PACKAGES does not have" % script.name)
    under = outcome(script.stem, once(traced, folder / "under", device, script))
    assert bare == under, (bare[0], under[0], [pair for b, u in zip(bare[1:], under[1:]) for pair in [(b[-400:], u[-400:])] if b != u])
    assert (folder / "under" / "trace.bin").stat().st_size > 0


def programs():
    return sorted(pathlib.Path(PROGRAMS).glob("*.py")) if PROGRAMS else []


def on(device, script):
    def program(folder):
        compare(folder, device, script)
    program.__name__ = "%s_on_%s" % (script.stem, {"cpu": "the_processor", "cuda": "the_simulated_device"}[device])
    case(program)


for path in programs():
    for device in ("cpu", "cuda"):
        if device == "cuda" or ".cuda()" not in path.read_text():
            on(device, path)


@case
def the_folder_of_programs_is_given(folder):
    if not programs():
        raise Skip("PPERF_TEST_PROGRAMS is a folder of PyTorch scripts, which are not part of the project")


main()
