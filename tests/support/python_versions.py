# SPDX-License-Identifier: MIT
"""The CPythons of this machine whose frames are read."""
import glob, os, shutil, subprocess, sys

WANTED = [(3, minor) for minor in range(9, 15)]
WHO = "import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:2], int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), " \
      "sys.executable)"


def interpreters():
    """One of each version, and of each way of building it that tells itself apart by its prefix: (version, free-threaded, path)."""
    places = [sys.executable, "/usr/bin/python3", *(shutil.which("python3.%d%s" % (minor, t)) for _, minor in WANTED for t in ("", "t"))]
    places += glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3"))
    places += os.environ.get("PPERF_TEST_PYTHONS", "").split()
    found = {}
    for place in filter(None, places):
        try:
            result = subprocess.run([place, "-c", WHO], capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        words = result.stdout.split()
        if result.returncode or len(words) != 5 or words[0] != "cpython":
            continue
        version = (int(words[1]), int(words[2]))
        if version in WANTED:
            found.setdefault(os.path.realpath(words[4]), (version, words[3] == "1", words[4]))
    return sorted(found.values())
