#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays inputs of the fuzzers (tests/fuzz): the seeds, a few mutations of them, and every earlier
find. None may be a find now."""
import re
from harness import *

FUZZ = TOOLS / "tests" / "fuzz"
FOUND = ROOT / "tests" / "fuzz" / "found"
TARGETS = sorted(re.sub(r"^fuzz_|\.c$", "", path.name) for path in (ROOT / "tests" / "fuzz").glob("fuzz_*.c"))
CHANGES = 1 if SANITIZED else 3


def replay(target, folder, *arguments):
    result = subprocess.run([FUZZ / ("replay_" + target), *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=200,
                            env={**os.environ, "TMPDIR": str(folder)})
    assert result.returncode == 0, (result.stdout + result.stderr)[:4000]
    return int(re.search(r"^(\d+) inputs, 0 finds$", result.stdout, re.M).group(1))


def check(target):
    @case
    def inputs(folder):
        made = folder / "seeds"
        subprocess.run([FUZZ / "seeds", made], cwd=ROOT, check=True, timeout=60)
        seeds = list((made / target).iterdir())
        assert seeds
        assert replay(target, folder, "--changes", CHANGES, made / target) == len(seeds) * (CHANGES + 1)
        if (FOUND / target).is_dir():
            assert replay(target, folder, FOUND / target) > 0
    inputs.__name__ = "no_input_of_%s_is_a_find" % target


for name in TARGETS:
    check(name)


@case
def a_find_is_reported(folder):
    """The harness must be able to fail: a report that prints a control character is a find."""
    (folder / "input").write_bytes(b"\x07\x00\x1b[31m")
    result = subprocess.run([FUZZ / "replay_text", folder / "input"], cwd=ROOT, capture_output=True, text=True, errors="replace",
                            env={**os.environ, "TMPDIR": str(folder), "PPERF_FUZZ_BROKEN": "1"})
    assert result.returncode == 1 and "1 finds" in result.stdout, result.stdout


main()
