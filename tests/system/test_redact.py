#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PPERF_REDACT keeps private text out of a trace, and --redact out of a report."""
import re, socket
from harness import *

SECRET = "token-5f3a"


def recorded(folder, **env):
    """A trace of a program with a secret in an argument, in its folder's name and in a setting."""
    work = folder / ("of-" + SECRET)
    work.mkdir()
    traced(work, "ranges", 1, 5, 1, "--key=" + SECRET, env={"PPERF_OUTPUT": str(work / "trace.bin"), **env})
    (work / "trace.bin").rename(folder / "trace.bin")
    return folder / "trace.bin"


def every_view():
    text = report("--help").stdout.decode()
    return re.findall(r"^  ([a-z][a-z-]*)  ", text[text.index("\nviews"):text.index("\noptions")], re.M)


@case
def without_either_they_are_shown(folder):
    trace = recorded(folder)
    assert SECRET in report("info", trace).stdout.decode() and SECRET.encode() in trace.read_bytes()


@case
def a_redacted_trace_does_not_hold_them(folder):
    trace = recorded(folder, PPERF_REDACT="1")
    content = trace.read_bytes()
    assert SECRET.encode() not in content and b"[redacted]" in content
    assert not re.search(rb"host\0*" + re.escape(socket.gethostname().encode()), content)
    assert info(trace)["capture"]["host"] == "[redacted]" and len(names(trace)) == 5


@case
def a_redacted_report_shows_none_in_any_view_and_form(folder):
    trace = recorded(folder)
    (folder / "two.bin").write_bytes(trace.read_bytes())
    for view in every_view():
        if view == "tui":
            continue
        for form in ("text", "json", "csv", "html", "svg"):
            files = [trace, folder / "two.bin"] if view in ("diff", "gate") else [trace]
            result = report(view, *files, "--redact", "-f", form, check=None)
            assert result.returncode in (0, 1, 2, 64), (view, result)
            assert SECRET not in result.stdout.decode() + result.stderr.decode(), (view, form)
    text = report("info", trace, "--redact").stdout.decode()
    assert re.search(r"^command +ranges$", text, re.M) and re.search(r"^host +\[redacted\]$", text, re.M), text


main()
