# SPDX-License-Identifier: MIT
"""Finds the CPythons on this machine whose frames pperf can read."""
import glob, os, shutil, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WANTED = [(3, minor) for minor in range(9, 16)]
WHO = "import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:2], int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), " \
      "sys.executable)"


def interpreters():
    """One interpreter of each version and build: (version, free-threaded, path). Builds are
    distinguished by their prefix."""
    candidates = [sys.executable, "/usr/bin/python3", *(shutil.which("python3.%d%s" % (minor, t)) for _, minor in WANTED for t in ("", "t"))]
    candidates += glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3"))
    candidates += sorted(glob.glob(os.path.join(ROOT, "build/pythons/*/usr/bin/python3.*[0-9]")))
    candidates += os.environ.get("PPERF_TEST_PYTHONS", "").split()
    found = {}
    for path in filter(None, candidates):
        try:
            result = subprocess.run([path, "-c", WHO], capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        words = result.stdout.split()
        if result.returncode or len(words) != 5 or words[0] != "cpython":
            continue
        version = (int(words[1]), int(words[2]))
        if version in WANTED:
            found.setdefault(os.path.realpath(words[4]), (version, words[3] == "1", words[4]))
    return sorted(found.values())
