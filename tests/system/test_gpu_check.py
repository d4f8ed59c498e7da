#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The check of a GPU (tests/gpu, scripts/gpu-check.sh), as far as it can run without one. A GPU may
be available for minutes only, so the check itself must not fail."""
import gzip, io, json, os, pathlib, shutil, subprocess, sys, tarfile, time
from harness import BUILD, LIBRARY, ROOT, SANITIZED, Skip, case, main

sys.path.insert(0, str(ROOT / "tests" / "gpu"))
import evidence
from evidence import Evidence

CXX = os.environ.get("CXX", "c++")
# Stands in for nvcc: notes what it is asked, and makes shell scripts that stand in for the programs.
NVCC = """#!/bin/sh
[ "$1" = --version ] && echo 'Cuda compilation tools, release 13.0, V13.0.88' && exit
echo "$*" >> "$STAND_IN/asked"
while [ $# -gt 0 ]; do [ "$1" = -o ] && made=$2; shift; done
name=${made##*/}
[ -e "$STAND_IN/$name" ] || { echo "fatal error: $name is none of ours"; exit 1; }
cp "$STAND_IN/$name" "$made" && chmod +x "$made"
"""
# Prints an answer; where the libraries are searched; what it is made to do by the file `act`.
PROBE = """#!/bin/sh
[ -e "$STAND_IN/act" ] && . "$STAND_IN/act"
echo "{\\"asked\\": \\"$*\\", \\"searched\\": \\"$LD_LIBRARY_PATH\\"}"
"""
SMI = """#!/bin/sh
case $* in
-L) echo 'GPU 0: a stand-in (UUID: none)' ;;
*name,driver*) echo 'NVIDIA Stand-In, 580.0, 9.0, Disabled' ;;
*compute_cap*) echo 9.0 ;;
*) echo 'NVIDIA Stand-In' ;;
esac
"""
PYTHON = """#!/bin/sh
case "$*" in *nvidia*) echo "$STAND_IN/wheel" ;; esac
"""


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
    done = gpu_check(folder, build, "--simulated", "probe", "nonsense", "calibration", NVCC=str(folder / "none"), PPERF_CHECK_PYTHON="false")
    assert done.returncode == 64 and done.stdout.startswith("machine: the simulated device"), (done.returncode, done.stderr)
    said = [line.split("gpu-check: ")[1] for line in done.stderr.splitlines()]
    assert [line.split(";")[0] for line in said] == ["nvcc was not found", "unknown part 'nonsense'",
                                                    "the simulated device is not built"], said


class Machine:
    """A machine with a stand-in GPU: nvidia-smi, nvcc without CUPTI, and a Python with CUPTI in a wheel."""

    def __init__(self, folder):
        self.folder, self.tools, self.kept = folder, folder / "tools", folder / "kept"
        for path in (self.tools, self.kept, folder / "build", folder / "wheel" / "cu13" / "lib", folder / "toolkit" / "bin"):
            path.mkdir(parents=True)
        (folder / "build" / "libpperf.so").symlink_to(LIBRARY)
        (folder / "wheel" / "cu13" / "lib" / "libcupti.so.13").touch()
        for path, text in ((self.tools / "nvidia-smi", SMI), (folder / "toolkit" / "bin" / "nvcc", NVCC), (folder / "python", PYTHON),
                           (folder / "probe_cupti", PROBE)):
            path.write_text(text)
            path.chmod(0o755)

    def check(self, *parts, **env):
        return gpu_check(self.folder, self.folder / "build", *parts, path="%s:%s" % (self.tools, os.environ["PATH"]), STAND_IN=str(self.folder),
                         NVCC=str(self.folder / "toolkit" / "bin" / "nvcc"), PPERF_CHECK_PYTHON=str(self.folder / "python"), OUT=str(self.kept), **env)

    def evidence(self, name):
        return json.loads((self.kept / (name + ".json")).read_text())


@case
def cupti_may_be_in_a_wheel_only(folder):
    machine = Machine(folder)
    done = machine.check("probe", PPERF_CHECK_SECONDS="50", LD_LIBRARY_PATH="/before")
    wheel = str(folder / "wheel" / "cu13" / "lib")
    assert done.returncode == 0, (done.stdout, done.stderr)
    # nvcc refuses a library that is not called .so or .a.
    assert "-Xlinker %s/libcupti.so.13 " % wheel in (folder / "asked").read_text(), (folder / "asked").read_text()
    found = machine.evidence("probe")["observations"]
    assert len(found) >= 20 and all(a["searched"] == wheel + ":/before" for a in found.values()), found
    assert {a["asked"].split()[0] for a in found.values()} == {"ids", "kineto", "nodes", "busy", "queries", "threads", "replay", "lengths", "flush",
                                                               "memory", "dump"}


@case
def a_program_that_does_not_compile_loses_nothing_else(folder):
    if SANITIZED:
        raise Skip("programs of gpu-check are preloaded without the sanitizer's runtime")
    machine = Machine(folder)
    done = machine.check("programs", "torch", PPERF_CHECK_SECONDS="50")
    assert done.returncode == 1 and "cuda_guest does not compile" in done.stderr, (done.stdout, done.stderr)
    assert len(machine.evidence("probe")["observations"]) >= 20
    found = machine.evidence("gpu-check")
    assert "cuda_guest is none of ours" in found["observations"]["cuda_guest"], found
    assert "cuda_guest is none of ours" in found["checks"]["cuda_guest"], found
    graphs = next(text for name, text in found["checks"].items() if name.startswith("graphs"))
    assert "NotCompiled: cuda_guest was not built" in graphs, found
    assert found["checks"]["a program that ends in a GPU fault: it ends as it does alone, at most 12 s later"] == "ok", found
    assert "has none for CUDA" in machine.evidence("torch-check")["observations"]["PyTorch"]
    assert len(list(machine.kept.iterdir())) <= 6  # the machine's owner brings eight files home


@case
def a_part_that_is_killed_leaves_what_it_found(folder):
    machine = Machine(folder)
    (folder / "act").write_text('case $1 in nodes) kill -9 $PPID ;; esac\n')
    done = machine.check("probe", "torch", PPERF_CHECK_SECONDS="50")
    assert done.returncode == 1 and "what it found until then is kept" in done.stderr, (done.stdout, done.stderr)
    found = machine.evidence("probe")["observations"]
    assert [a["asked"] for a in found.values()] == ["ids driver calls", "kineto alone", "kineto driver", "kineto both", "ids driver", "ids runtime",
                                                    "ids both"], found
    assert "PyTorch" in machine.evidence("torch-check")["observations"]


@case
def no_program_holds_up_a_part(folder):
    machine = Machine(folder)
    # The second question does not end, and leaves a child behind that keeps its output open.
    (folder / "act").write_text('[ "$*" = "kineto alone" ] && { sleep 30 & echo begun; sleep 20; }\n')
    begin = time.monotonic()
    done = machine.check("probe", PPERF_CHECK_SECONDS="5")
    assert time.monotonic() - begin < 15, time.monotonic() - begin
    found = list(machine.evidence("probe")["observations"].values())
    assert "did not end within" in found[1]["error"] and "begun" in found[1]["error"], found[1]
    assert found[0]["asked"] == "ids driver calls" and set(found[2:]) == {"left out: no time was left"}, (found, done.stderr)


@case
def what_no_time_was_left_for_is_no_failure(folder):
    machine = Machine(folder)
    done = machine.check("probe", "programs", PPERF_CHECK_SECONDS="0")
    assert "# SKIP left out: no time was left" in done.stdout and "checks were left out" in done.stdout, done.stdout
    assert all(line.endswith(" is built") for line in done.stdout.splitlines() if line.startswith("not ok")), done.stdout


@case
def a_graphs_memset_may_be_a_kernel(folder):
    sys.path.insert(0, str(ROOT / "tests" / "gpu"))
    import check
    program = {"graph_kernels": 4, "graph_sets": 2, "graph_set_bytes": 64, "launches": 7}
    assert check.converted_memsets(program, {"graph_kernels": 6, "launches": 7})
    assert check.converted_memsets(program, {"graph_kernels": 5, "graph_sets": 1, "graph_set_bytes": 32, "launches": 7})
    assert not check.converted_memsets(program, dict(program)) and not check.converted_memsets(program, {"graph_kernels": 5, "launches": 7})
    assert not check.converted_memsets(program, {"graph_kernels": 6, "launches": 8})


@case
def what_differs_without_the_library_too_is_no_failure(folder):
    import torch_check
    session = lambda copies, memsets: [{"gpu": [["kernel a", 40], ["gpu_memcpy b", copies], ["gpu_memset c", memsets]], "of a call": 40 + copies + memsets}]
    assert torch_check.seen_otherwise(session(10, 1), session(10, 2), session(10, 3)) == []
    assert torch_check.seen_otherwise(session(10, 1), session(10, 1), session(9, 1)) == [
        "session 1: gpu_memcpy b: 10 times alone, 9 beside the library"]
    unlinked = [{**session(10, 1)[0], "of a call": 0}]
    assert torch_check.seen_otherwise(session(10, 1), session(10, 1), unlinked) == [
        "session 1: GPU work without its call: 0 and 0 alone, 51 beside the library"]


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
