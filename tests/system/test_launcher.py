#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/pperf: it returns the command's exit status, finds its library at any path, and reports
mistakes in a sentence."""
import os, signal
from harness import *

PPERF = ROOT / "scripts" / "pperf"


def installed(folder):
    """The launcher as `make install` installs it, with the tools of this variant."""
    for name in ("bin", "lib"):
        (folder / name).mkdir(parents=True)
    shutil.copy(PPERF, folder / "bin" / "pperf")
    shutil.copy(REPORT, folder / "bin" / "pperf-report")
    shutil.copy(LIBRARY, folder / "lib" / "libpperf.so")
    return folder / "bin" / "pperf"


def launch(folder, *arguments, script=None, env=None, **options):
    env = {"LD_PRELOAD": " ".join(PRELOADS) or None, "XDG_RUNTIME_DIR": str(folder), **(env or {})}
    if SANITIZED:  # the launcher puts our library in front of the sanitizer's
        env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    if script is None:
        script = installed(folder / "installed")
    return run(folder, str(script), *arguments, env=env, **options)


@case
def the_exit_status_is_the_commands(folder):
    script = installed(folder / "installed")
    assert launch(folder, "run", "--", "sh", "-c", "exit 5", script=script).returncode == 5
    assert launch(folder, "run", "sh", "-c", "kill -9 $$", script=script).returncode == -signal.SIGKILL
    assert launch(folder, "run", "sh", "-c", "kill -INT $$", script=script).returncode == -signal.SIGINT


@case
def own_failures_are_125_to_127(folder):
    script = installed(folder / "installed")
    (folder / "text").write_text("no program\n")
    for arguments, status in (([], 125), (["run"], 125), (["run", "--nonsense", "true"], 125), (["run", "-o"], 125), (["walk"], 125),
                              (["run", "--stacks", "some", "true"], 125), (["run", "--max", "12Q", "true"], 125), (["run", "--max=", "true"], 125), (["run", "./text"], 126), (["run", "no-such-program"], 127)):
        result = launch(folder, *arguments, script=script)
        assert result.returncode == status and result.stderr and not result.stdout, (arguments, result)
    (folder / "installed" / "lib" / "libpperf.so").unlink()
    result = launch(folder, "run", "true", script=script)
    assert result.returncode == 125 and b"libpperf.so" in result.stderr, result


@case
def options_become_settings(folder):
    result = launch(folder, "run", "-o", "a b.bin", "--max=64M", "--stacks", "off", "--children=none", "-q", "--", "env", check=0)
    variables = dict(line.split("=", 1) for line in result.stdout.decode().splitlines() if "=" in line)
    wanted = {"PPERF_OUTPUT": "a b.bin", "PPERF_MAX": "64M", "PPERF_STACKS": "off", "PPERF_CHILDREN": "none", "PPERF_QUIET": "1"}
    assert {k: variables.get(k) for k in wanted} == wanted, variables


@case
def a_misspelt_word_is_answered_with_the_nearest_known_one(folder):
    script = installed(folder / "installed")
    for wrong, near in ((("rnu", "true"), "run"), (("doctr",), "doctor"), (("run", "--stakcs", "off", "true"), "--stacks"),
                        (("run", "--stacks", "lanch", "true"), "launch"), (("run", "--childern=all", "true"), "--children"), (("run", "--children", "al", "true"), "all")):
        result = launch(folder, *wrong, script=script, check=125)
        assert b"(did you mean '%s'?)" % near.encode() in result.stderr, (wrong, result)
    for far in (("xyz",), ("run", "--nothing", "true"), ("run", "--stacks", "*", "true"), ("run", "--children", "", "true")):
        result = launch(folder, *far, script=script, check=125)
        assert b"did you mean" not in result.stderr, (far, result)


@case
def the_trace_is_where_it_was_requested(folder):
    result = launch(folder, "run", "-o", "my trace.bin", program("ranges"), 1, 10, check=0)
    assert len(names(folder / "my trace.bin")) == 10
    assert b"my trace.bin" in result.stderr and result.stderr.count(b"\n") == 1 and not result.stdout, result


@case
def quiet_says_nothing(folder):
    assert launch(folder, "run", "-q", program("ranges"), 1, 10, check=0).stderr == b""


@case
def a_program_that_recorded_nothing_says_so(folder):
    script = installed(folder / "installed")
    for arguments in (("true",), ("env", "true"), ("bash", "-c", "true; true")):
        result = launch(folder, "run", *arguments, script=script, check=0)
        assert result.stderr.startswith(b"pperf: no trace: the program used no CUDA, NVTX or PyTorch") and result.stderr.count(b"\n") == 1, (arguments, result)
        assert not launch(folder, "run", "-q", *arguments, script=script, check=0).stderr
    result = launch(folder, "run", "bash", "-c", "%s 1 5; true" % program("ranges"), script=script, check=0)
    assert b"no trace" not in result.stderr and b"trace.bin" in result.stderr, result # a child recorded
    result = launch(folder, "run", "bash", "-c", "true; true", script=script, check=0)
    assert result.stderr.startswith(b"pperf: no trace") or time.time() - (folder / "trace.bin").stat().st_mtime < 2, result # an old trace is not of this run


@case
def a_program_that_no_loader_starts_is_named_before_it_runs(folder):
    (folder / "static.c").write_text("int main(void) { return 3; }\n")
    if run(folder, "cc", "-static", "static.c", "-o", "static").returncode:
        raise Skip("no static C library")
    result = launch(folder, "run", "./static", check=3)
    assert b"pperf: nothing will be recorded: " in result.stderr and b"is linked statically" in result.stderr and result.stderr.count(b"\n") == 1, result
    assert not launch(folder / "..", "run", "-q", folder / "static", script=folder / "installed" / "bin" / "pperf", check=3).stderr


@case
def a_path_with_blanks_and_colons_works(folder):
    script = installed(folder / "in stalled: here")
    launch(folder, "run", program("ranges"), 1, 10, script=script, check=0)
    launch(folder, "run", program("ranges"), 1, 20, script=script, check=0)
    assert len(names(folder / "trace.bin")) == 20
    launch(folder, "run", program("chdirs"), "/", script=script, check=0)
    assert names(folder / "trace.bin") == ["elsewhere"]


@case
def a_preload_that_is_set_stays(folder):
    other = str(PROGRAMS / "lib_nvtx_copy.so")
    before = " ".join([*PRELOADS, other])
    result = launch(folder, "run", "sh", "-c", "echo $LD_PRELOAD; grep -c lib_nvtx_copy /proc/self/maps", env={"LD_PRELOAD": before}, check=0)
    assert other in result.stdout.decode().splitlines()[0] and result.stdout.split()[-1] != b"0", result


@case
def a_link_to_the_launcher_finds_the_library(folder):
    script = installed(folder / "installed")
    os.symlink(script, folder / "pperf")
    launch(folder, "run", program("ranges"), 1, 10, script=folder / "pperf", check=0)
    assert len(names(folder / "trace.bin")) == 10
    launch(folder, "report", "dump", "trace.bin", "-f", "json", script=folder / "pperf", check=0)


@case
def help_and_version_are_for_stdout(folder):
    script = installed(folder / "installed")
    shown = launch(folder, "--help", script=script, check=0)
    assert b"pperf run" in shown.stdout and not shown.stderr
    own, reports = launch(folder, "--version", script=script, check=0), report("--version")
    assert own.stdout == reports.stdout and own.stdout, (own, reports)


@case
def make_install_installs_everything_and_make_uninstall_removes_it(folder):
    if SANITIZED:
        raise Skip("as in the plain build")
    make = ["make", "--no-print-directory", "-C", ROOT, "BUILD=%s" % BUILD, "DESTDIR=%s" % (folder / "root"), "PREFIX=/opt/pperf"]
    run(folder, *make, "install", check=0)
    prefix = folder / "root" / "opt" / "pperf"
    files = {str(p.relative_to(prefix)) for p in prefix.rglob("*") if p.is_file()}
    pages = {"share/man/man%s/%s" % (p.suffix[1:], p.name) for p in (ROOT / "doc").glob("*.[1-8]")}
    others = {"share/bash-completion/completions/pperf", "share/bash-completion/completions/pperf-report", "share/zsh/site-functions/_pperf",
              "share/fish/vendor_completions.d/pperf.fish", "share/fish/vendor_completions.d/pperf-report.fish", "share/pperf/magic", "share/pperf/doctor.sh",
              "share/pperf/python/pperf.py", "include/pperf.h"} | {
                  "share/pperf/python/pperf_parts/" + p.name for p in (ROOT / "python" / "pperf_parts").glob("*.py")}
    assert files == {"bin/pperf", "bin/pperf-report", "lib/libpperf.so"} | pages | others, files
    launch(folder, "run", program("ranges"), 1, 10, script=prefix / "bin" / "pperf", check=0)
    assert len(names(folder / "trace.bin")) == 10
    run(folder, *make, "uninstall", check=0)
    assert not [p for p in prefix.rglob("*") if p.is_file()]


main()
