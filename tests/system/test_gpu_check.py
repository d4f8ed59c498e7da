#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The check of a GPU (tests/gpu, scripts/gpu-check.sh), as far as it can run without one. A GPU may
be available for minutes only, so the check itself must not fail."""
import gzip, io, json, os, pathlib, shutil, subprocess, sys, tarfile, time
from harness import BUILD, LIBRARY, ROOT, Skip, case, main

sys.path.insert(0, str(ROOT / "tests" / "gpu"))
import evidence
from evidence import Evidence

CXX = os.environ.get("CXX", "c++")


def gpu_check(folder, *arguments, path=os.environ["PATH"], **env):
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("PPERF_")}, "PATH": path, "TMPDIR": str(folder), **env}
    return subprocess.run([str(ROOT / "scripts" / "gpu-check.sh"), *map(str, arguments)], env=env, capture_output=True, text=True, timeout=60)


@case
def what_was_found_is_there_whatever_ends_the_check(folder):
    found = Evidence(folder / "kept", "check", seconds=100, machine="this one")
    assert 90 < found.left() <= 100 and found.limit(60) == 60 and found.limit(1000) <= 100
    found.put("checks", "first", "ok")
    found.put("checks", "second", "wrong")
    found.put("observations", "times", {"a": [1, 2]})
    assert json.loads((folder / "kept" / "check.json").read_text()) == {
        "machine": "this one", "checks": {"first": "ok", "second": "wrong"}, "observations": {"times": {"a": [1, 2]}}}
    assert not list((folder / "kept").glob("*.part"))
    over = Evidence(None, "check", seconds=-1)
    over.put("checks", "kept nowhere", "ok")
    assert over.left() < 0 and over.limit(60) == 1 and Evidence(None, "check").limit(60) == 60


@case
def traces_are_kept_together_up_to_a_size(folder):
    kept, trace = Evidence(folder, "check"), folder / "trace.bin"
    kept.keep(trace, "there is none")
    for name, data in ("first", b"x" * 1000), ("second", os.urandom(50000)), ("too large", os.urandom(60000)), ("third", b"y" * 1000):
        trace.write_bytes(data)
        evidence.TRACES_MOST = 90000
        kept.keep(trace, name)
    with tarfile.open(folder / "traces.tar") as file:
        assert file.getnames() == ["first.bin.gz", "second.bin.gz", "third.bin.gz"]
        assert gzip.decompress(file.extractfile("third.bin.gz").read()) == b"y" * 1000


@case
def without_a_gpu_it_says_so(folder):
    tools = folder / "tools"
    tools.mkdir()
    for name in ("sh", "dirname", "readlink", "env"):
        (tools / name).symlink_to(shutil.which(name))
    done = gpu_check(folder, os.path.relpath(BUILD, ROOT), path=str(tools), NVCC="/usr/bin/false")
    assert done.returncode == 77 and "this machine has no NVIDIA GPU" in done.stderr, (done.returncode, done.stderr)


@case
def what_it_lacks_is_said_and_the_rest_goes_on(folder):
    build = folder / "build"
    done = gpu_check(folder, build, "--simulated")
    assert done.returncode == 1 and "libpperf.so is not built" in done.stderr, done.stderr
    build.mkdir()
    (build / "libpperf.so").symlink_to(LIBRARY)
    done = gpu_check(folder, build, "--simulated", "programs", "nonsense", "calibration", NVCC=str(folder / "none"), PPERF_CHECK_PYTHON="false")
    assert done.returncode == 64 and done.stdout.startswith("machine: the simulated device"), (done.returncode, done.stderr)
    said = [line.split("gpu-check: ")[1] for line in done.stderr.splitlines()]
    assert [line.split(";")[0] for line in said] == ["nvcc was not found", "unknown part 'nonsense'",
                                                    "the simulated device is not built"], said


@case
def what_nvcc_compiles_is_cxx(folder):
    cuda = subprocess.run([str(ROOT / "scripts" / "setup.sh"), "--cuda"], capture_output=True, text=True).stdout.strip()
    if not cuda or not shutil.which(CXX):
        raise Skip("there are no headers of CUDA's, or no C++ compiler")
    for name in "known_work", "cuda_guest":
        done = subprocess.run([CXX, "-fsyntax-only", "-x", "c++", "-D_GNU_SOURCE", "-I.", "-Itests/programs", "-isystem", cuda + "/include",
                               "tests/programs/%s.c" % name], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-1500:]


@case
def its_programs_compile(folder):
    for path in sorted((ROOT / "tests" / "gpu").glob("*.py")):
        compile(path.read_text(), str(path), "exec")


main()
