# SPDX-License-Identifier: MIT
"""Runs PyTorch, built for CUDA and unmodified, on the simulated device (tests/cudasim): a script
without the library and with it."""
import concurrent.futures, pathlib, re, sys
from harness import *

ENVIRONMENT = pathlib.Path(sys.prefix)
LAUNCHER = ROOT / "tests" / "cudasim" / "torch.sh"
# Parts of messages on stderr that differ in each run: addresses, process ids and times.
VOLATILE = [rb"0x[0-9a-f]{6,}", rb"\[?[IWE]\d{4} \d\d:\d\d:\d\d\.\d+( +\d+)?", rb"\(pid=\d+\)", rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+:\d+"]


def launch(runner, folder, *arguments, env=None, **options):
    if not (BUILD / "cudasim" / "torch" / ENVIRONMENT.name / "libcudasim_rest.so").exists():
        raise Skip("make cudasim-torch prepares the simulated device for this environment")
    folder.mkdir(exist_ok=True)
    return runner(folder, LAUNCHER, "-b", BUILD, ENVIRONMENT, *arguments,
                  env={"OMP_NUM_THREADS": "1", "TMPDIR": str(folder), "PYTORCH_KERNEL_CACHE_PATH": str(folder), "PYTHONHASHSEED": "0", **(env or {})}, **options)


def plain(text):
    for stamp in VOLATILE:
        text = re.sub(stamp, b"*", text)
    return sorted(text.splitlines())


def both(folder, *arguments, **options):
    """Runs the script in folder/bare without the library and in folder/under with it. Fails if
    stdout or stderr differ, and returns stdout."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        bare = pool.submit(launch, run, folder / "bare", *arguments, **options)
        under = pool.submit(launch, traced, folder / "under", *arguments, check=None, **options)
        bare, under = bare.result(), under.result()
    for result in bare, under:
        assert result.returncode == 0, result.stderr.decode(errors="replace")[-900:]
    assert bare.stdout == under.stdout, (bare.stdout[-600:], under.stdout[-600:])
    assert plain(bare.stderr) == plain(under.stderr), (bare.stderr[-600:], under.stderr[-600:])
    return under.stdout.decode()
