#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""program_api.py BUILD: what a call of pperf.h and of the Python module pperf costs, with and without the library, in nanoseconds. Exits with 1 if a
limit is exceeded: without the library 60 ns a call, with it 1.5 times the floor for a push or pop of C. A `with` statement is three calls."""
import os, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from python_versions import interpreters

OFF_NS, FLOOR_TIMES = 60, 1.5
STATEMENTS = ("trace('x')", "with trace('x'): pass", "push(1.5)", "mark('x')", "enabled()")
PYTHON = """
import pperf, timeit
names = {"push": pperf.register_metric("m", "").push, "trace": pperf.trace, "mark": pperf.mark, "enabled": pperf.enabled}
best = lambda text: min(timeit.repeat(text, globals=names, number=20000, repeat=25)) / 20000 * 1e9
empty = best("pass")
print(*("%%.1f" %% (best(text) - empty) for text in %r))
""" % (STATEMENTS,)


def figures(build, library, *command):
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PPERF_OUTPUT=os.path.join(folder, "trace.bin"), PYTHONPATH=os.path.join(ROOT, "preload", "user"), PYTHONDONTWRITEBYTECODE="1")
        if library:
            env["LD_PRELOAD"] = os.path.join(build, "libpperf.so")
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=300).stdout


def main():
    build = os.path.abspath(sys.argv[1])
    program, exceeded = os.path.join(build, "tests", "programs", "user_metrics"), []
    for library in (False, True):
        values = {name: float(value) for name, value in map(str.split, figures(build, library, program, "20000").splitlines())}
        print("C, %s the library: push or pop %.1f ns, value of a metric %.1f ns; floor %.1f ns" %
              ("with" if library else "without", values["range"], values["metric"], values["floor"]))
        if library and values["range"] > FLOOR_TIMES * values["floor"]:
            exceeded.append("a push or pop takes %.2f times the floor" % (values["range"] / values["floor"]))
        if not library and max(values["range"], values["metric"]) > OFF_NS:
            exceeded.append("a call without the library takes more than %d ns" % OFF_NS)
    for version, free_threaded, python in interpreters():
        for library in (False, True):
            values = list(map(float, figures(build, library, python, "-c", PYTHON).split()))
            print("Python %d.%d%s, %s the library: %s" % (*version, "t" if free_threaded else "", "with" if library else "without",
                                                         ", ".join("%s %.0f ns" % pair for pair in zip(STATEMENTS, values))))
            if not library:
                exceeded += ["Python %d.%d: %s takes %.0f ns" % (*version, text, value) for text, value in zip(STATEMENTS, values)
                             if value > OFF_NS and not text.startswith("with")]
    print(*("EXCEEDED: " + text for text in exceeded), sep="\n", end="\n" if exceeded else "")
    return 1 if exceeded else 0


sys.exit(main())
