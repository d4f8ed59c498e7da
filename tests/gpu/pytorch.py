# SPDX-License-Identifier: MIT
"""Where PyTorch runs, for the checks of a GPU: on the device that is there, or on the simulated one."""
import os, pathlib, subprocess, sys
from bounded import bounded

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "tests" / "torch" / "device_models.py"
IMPORT_S = 180  # for the first import of PyTorch on a machine


class Side:
    """A device: how a script of Python runs on it."""

    def __init__(self, name, python, preload=()):
        self.name, self.python, self.preload = name, python, [str(path) for path in preload]

    def run(self, folder, *arguments, library=None, timeout=120, **env):
        """The output; an error where it ends with another status than 0."""
        preload = ([str(library)] if library else []) + self.preload
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TMPDIR": str(folder), "LD_PRELOAD": " ".join(preload), **env}
        done = bounded([self.python, *arguments], folder, env, timeout)
        if done.returncode:
            raise RuntimeError("%s, %s: %d: %s" % (" ".join(map(str, arguments))[:80], self.name, done.returncode, done.stderr.decode(errors="replace")[-800:]))
        return done.stdout.decode()


def of_python(python):
    """Where PyTorch is, its release, and the major of the CUDA that it was built for; None: there is none for CUDA."""
    script = "import torch; print(torch.__path__[0], torch.__version__, torch.version.cuda)"
    words = bounded([python, "-c", script], None, None, IMPORT_S).stdout.decode().split()
    return (pathlib.Path(words[0]), words[1], words[2].split(".")[0]) if len(words) == 3 and words[2] != "None" else None


def absolute(python):
    return os.path.abspath(python) if "/" in python else python


def simulation(build, torch):
    """What is preloaded in place of NVIDIA's libraries, and the names of the functions that PyTorch asks for and that are not simulated."""
    folder, _, major = torch
    libraries, stubs = build / "cudasim" / major, build / "cudasim" / "calibration"
    subprocess.run([sys.executable, str(ROOT / "tests/cudasim/wheel_stubs.py"), str(folder), str(libraries), str(stubs)], check=True, timeout=300)
    names = subprocess.run(["nm", "-D", "--defined-only", str(stubs / "libcudasim_rest.so")], capture_output=True).stdout.decode()
    preload = sorted(libraries.glob("lib*.so.*")) + sorted(stubs.glob("lib*.so.*")) + [stubs / "libcudasim_rest.so"]
    return preload, sorted(line.split()[-1] for line in names.splitlines())
