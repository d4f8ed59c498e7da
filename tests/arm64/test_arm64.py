#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces of aarch64 and of x86-64, read by the report of either: the same bytes come out."""
import os, subprocess
from cpu_samples import ON_CPU, Samples
from harness import *

ARM64 = BUILD / "arm64"
VIEWS = (("summary",), ("tree", "-f", "json"), ("table", "-f", "csv"), ("critical", "-m", "cpu", "-f", "json"), ("info", "-f", "json"), ("dump", "-f", "json"))


def emulated(folder, name, *arguments, env=None):
    """Runs a program of aarch64; env is what it finds, not qemu."""
    settings = [word for key, value in (env or {}).items() for word in ("-E", "%s=%s" % (key, value))]
    return run(folder, "qemu-aarch64-static", *settings, str(name), *arguments, check=0)


def recorded(folder, *arguments, env=None):
    emulated(folder, ARM64 / "tests" / "programs" / "ranges", *arguments, env={"LD_PRELOAD": ARM64 / "libpperf.so", **(env or {})})
    return folder / "trace.bin"


def expect_the_same(folder, trace):
    for view in VIEWS:
        ours = report(view[0], trace, *view[1:]).stdout
        theirs = emulated(folder, ARM64 / "pperf-report", view[0], trace, *view[1:]).stdout
        assert ours and ours == theirs, view


@case
def a_program_of_aarch64_is_recorded_whole(folder):
    trace = recorded(folder, 3, 1000)
    assert len(dump(trace, {"push"})) == 3000 == len(dump(trace, {"pop"}))
    about = info(trace)
    assert info(trace)["rows"][0]["clock"]["kind"] == "monotonic"
    report("--strict", trace)


@case
def both_reports_say_the_same_of_a_trace_of_aarch64(folder):
    expect_the_same(folder, recorded(folder, 2, 50))


@case
def both_reports_say_the_same_of_a_trace_of_x86_64(folder):
    traced(folder, "ranges", 2, 50)
    expect_the_same(folder, folder / "trace.bin")


@case
def threads_are_sampled_by_their_clocks(folder):
    for clock in ("cpu", "wall"):
        trace = folder / (clock + ".bin")
        settings = {"LD_PRELOAD": ARM64 / "libpperf.so", "PPERF_SAMPLE": 99, "PPERF_SAMPLE_CLOCK": clock, "PPERF_OUTPUT": trace}
        used = int(emulated(folder, ARM64 / "tests" / "programs" / "sampled", "split", 3, env=settings).stdout)
        samples = Samples(trace).check()
        by_node = samples.by_node(lambda r: r.state == ON_CPU)
        on_cpu = sum(by_node.values())
        share = by_node["three"] / (by_node["three"] + by_node["one"])
        assert abs(share - 0.75) < 0.08 and 0.8 * used < on_cpu <= used, (by_node, on_cpu, used)
        # qemu has neither process_vm_readv nor events.
        assert samples.meta["sample.source"] == "clock" and "(ENOSYS)" in samples.meta["source.cpu_samples"], samples.meta


@case
def the_library_shows_and_needs_what_it_does_everywhere(folder):
    result = run(ROOT, str(ROOT / "scripts" / "check-exports.sh"), str(ARM64 / "libpperf.so"), "preload/exports.map")
    assert result.returncode == 0, result.stdout.decode()


@case
def the_tarball_for_it_runs_on_every_glibc_since_2_17(folder):
    made = subprocess.run(["make", "--no-print-directory", "-s", "BUILD=%s" % os.environ.get("PPERF_TEST_BUILD", "build"), "dist-arm64"], cwd=ROOT, capture_output=True, timeout=1200)
    assert made.returncode == 0 and b"needs GLIBC_2.17 " in made.stdout, made
    tree = next((ARM64 / "dist").glob("pperf-*-aarch64-linux"))
    settings = ["-E", "LD_PRELOAD=%s" % (tree / "lib" / "libpperf.so")]
    run(folder, "qemu-aarch64-static", *settings, ARM64 / "tests" / "programs" / "ranges", 1, 100, check=0)
    assert emulated(folder, tree / "bin" / "pperf-report", "summary", folder / "trace.bin").stdout == report("summary", folder / "trace.bin").stdout


main()
