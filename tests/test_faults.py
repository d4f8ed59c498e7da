#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the system refuses costs records, which are counted, and the program nothing: each call of ours to the system that may fail does."""
import errno, signal, threading
from harness import *

PAIRS = 8000
THREADS = 2
MADE = 2 * THREADS * PAIRS
REFUSED = {"fallocate": errno.ENOSPC, "pwrite": errno.ENOSPC, "pwritev": errno.ENOSPC, "mmap": errno.ENOMEM, "madvise": errno.ENOMEM, "open": errno.EMFILE,
           "fcntl": errno.EMFILE, "ftruncate": errno.EFBIG, "link": errno.EMLINK}


def refusing(folder, call, first=0, count=None, error=None, pairs=PAIRS):
    """Runs ranges under the library with some of its calls refused; how many such calls there were."""
    env = {"LD_PRELOAD": "%s/lib_refuses.so %s" % (PROGRAMS, preload()), "REFUSE": call, "REFUSE_FROM": str(first), "REFUSE_SEEN": "seen",
           "REFUSE_COUNT": None if count is None else str(count), "REFUSE_ERROR": str(REFUSED.get(call, 0) if error is None else error)}
    result = run(folder, "ranges", THREADS, pairs, 300, env=env, check=0)
    assert result.stdout == result.stderr == b"", (result.stdout, result.stderr)
    return int((folder / "seen").read_text())


def accounted(path, made=MADE):
    """Found and lost events, which must be what was made."""
    text = report("dump", path, "-f", "json").stdout
    found, lost = text.count(b'"kind":"push"') + text.count(b'"kind":"pop"'), info(path)["integrity"]["lost_events"]
    assert found + lost == made, "%d found and %d lost of %d" % (found, lost, made)
    return found, lost


def sweep(folder, call, count):
    """Refuses the first call, then the second, ...: `count` of them, or all from there on."""
    there = refusing(folder, call, first=1 << 40)
    results = []
    accounted(folder / "trace.bin")
    for first in range(there):
        for path in traces(folder):
            path.unlink()
        refusing(folder, call, first, count)
        left = traces(folder)
        assert not [p for p in left if p.name != "trace.bin"], (call, first, left)
        try:
            results.append(accounted(left[0]) if left else None)
        except AssertionError as error:
            raise AssertionError("%s refused from the %dth on (%s times): %s" % (call, first, count, error))
    return results


@case
def each_call_to_the_system_may_fail_once_or_for_ever(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime calls the system, too")
    for call in REFUSED:
        for count in (1, None):
            results = sweep(folder, call, count)
            assert results, "%s is never called" % call


main()
