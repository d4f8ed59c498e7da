#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What may be given as a trace: pipes and standard input, directories; and for files of other
tools a sentence with the command that converts them."""
import gzip, io, os, tarfile
from harness import *


def event(name, start, duration):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 1, "ts": start, "dur": duration, "args": {}}


def imported(path, name="aten::mm"):
    """A trace of torch.profiler with one operator."""
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [event(name, 1000, 50)]}))
    return path


def shell(folder, script, **variables):
    return subprocess.run(["bash", "-c", script.replace("REPORT", str(REPORT))], cwd=folder, capture_output=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=environment(LC_ALL="C.UTF-8", **variables))


@case
def a_pipe_is_read_as_a_file_is(folder):
    traced(folder, "ranges", 2, 50)
    imported(folder / "kineto.json")
    for name in "trace.bin", "kineto.json":
        for view in "summary", "table", "dump", "info", "critical -m cpu":
            want = report(*view.split(), folder / name, "-f", "csv" if view != "info" else "text", "--no-progress").stdout
            for given in "cat %s | REPORT %s -", "REPORT %s - < %s", "REPORT %s <(cat %s)", "cat %s | REPORT %s /dev/stdin":
                words = (view, name) if given.startswith("REPORT") else (name, view)
                got = shell(folder, given % words + " -f %s" % ("csv" if view != "info" else "text"))
                assert got.returncode == 0 and not got.stderr, (given, got.stderr)
                assert view == "info" or got.stdout == want, (given % words, got.stdout[:300], want[:300])
    got = shell(folder, "REPORT diff <(cat trace.bin) <(cat trace.bin)")
    assert got.returncode == 0 and b"total" in got.stdout, got


@case
def no_output_replaces_an_input(folder):
    traced(folder, "ranges", 2, 50)
    trace, link = folder / "trace.bin", folder / "link.bin"
    os.link(trace, link)
    before = trace.read_bytes()
    for arguments in (("tree", trace, "-o", trace), ("memory", trace, "--snapshot", trace), ("memory", trace, "--snapshot", link), ("gate", trace, "--write-baseline", link)):
        assert b"is also an input" in report(*arguments, check=64).stderr, arguments
        assert trace.read_bytes() == before, arguments


@case
def compressed_json_may_be_piped(folder):
    imported(folder / "t.json")
    (folder / "t.json.gz").write_bytes(gzip.compress((folder / "t.json").read_bytes()))
    assert b"aten::mm" in shell(folder, "cat t.json.gz | REPORT table -").stdout
    assert b"aten::mm" in shell(folder, "gzip -dc t.json.gz | REPORT table -").stdout


@case
def a_pipe_that_is_no_trace_is_refused_at_once(folder):
    for script, sentence in (("yes | REPORT -", b"standard input: not a trace"), ("REPORT - < /dev/null", b"standard input"), ("true | REPORT -", b"standard input: has no data"),
                             ("printf '\\375\\067zXZ\\0more' | REPORT -", b"xz -dc FILE | pperf-report -")):
        got = shell(folder, script)
        assert got.returncode == 2 and sentence in got.stderr and got.stderr.count(b"\n") == 1, (script, got)


@case
def without_a_temporary_folder_a_pipe_is_kept_in_memory(folder):
    imported(folder / "t.json")
    got = shell(folder, "cat t.json | REPORT table -", TMPDIR="/nonexistent")
    assert got.returncode == 0 and b"aten::mm" in got.stdout, got


FORMATS = {
    "run.nsys-rep": (b"\x08\x01report", "nsys export --type sqlite run.nsys-rep` and open run.sqlite"),
    "run.qdrep": (b"\x08\x01report", "nsys export --type sqlite run.qdrep` and open run.sqlite"),
    "run.qdstrm": (b"\x08\x01report", "QdstrmImporter -i run.qdstrm"),
    "run.ncu-rep": (b"NVR\0\x10", "ncu --import run.ncu-rep"),
    "renamed": (b"NVR\0\x10", "ncu --import renamed"),
    "snapshot.pickle": (b"\x80\x04\x95abc", "a pickle that ends in the middle"),
    "t.json.xz": (b"\xfd7zXZ\0abc", "xz -dc t.json.xz | pperf-report -"),
    "t.json.zst": (b"\x28\xb5\x2f\xfdabc", "zstd -dc t.json.zst | pperf-report -"),
    "t.json.lz4": (b"\x04\x22\x4d\x18abc", "lz4 -dc t.json.lz4 | pperf-report -"),
    "t.json.bz2": (b"BZh91AY", "bzip2 -dc t.json.bz2 | pperf-report -"),
    "t.zip": (b"PK\3\4abc", "unzip -p t.zip | pperf-report -"),
    "trace.perfetto-trace": (b"\x0a\x12\x01\x00\x08abcdef", "traceconv json trace.perfetto-trace trace.json"),
    "binary": (b"\x0a\x12\x01\x00\x08abcdef", "traceconv json binary binary.json"),
    "perf.data": (b"PERFILE2abc", "perf report -i perf.data"),
    "page.json": (b"<!DOCTYPE html><html>", "web page"),
    "lfs.bin": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "a b'.nsys-rep": (b"report", "nsys export --type sqlite FILE` and open FILE.sqlite"),
}


@case
def a_file_of_another_tool_is_answered_with_the_command_that_converts_it(folder):
    for name, (head, hint) in FORMATS.items():
        (folder / name).write_bytes(head)
        result = subprocess.run([str(REPORT), name], cwd=folder, capture_output=True, env=environment(LC_ALL="C.UTF-8"))
        errors = result.stderr.decode()
        assert result.returncode == 2 and hint in errors and errors.count("\n") == 1, (name, errors)


@case
def so_is_what_is_in_an_archive(folder):
    imported(folder / "t.json")
    with tarfile.open(folder / "t.tgz", "w:gz") as archive:
        archive.add(folder / "t.json", "t.json")
    with tarfile.open(folder / "t.tar", "w") as archive:
        archive.add(folder / "t.json", "t.json")
    for name in "t.tgz", "t.tar":
        assert ("tar -xf %s" % (folder / name)).encode() in report(folder / name, check=2).stderr or b"tar -xf FILE" in report(folder / name, check=2).stderr
    traced(folder, "ranges", 1, 5)
    (folder / "packed").write_bytes(gzip.compress((folder / "trace.bin").read_bytes()))
    assert b"gzip -dc FILE | pperf-report -" in report(folder / "packed", check=2).stderr
    assert b"ranges" in shell(folder, "gzip -dc packed | REPORT -").stdout


@case
def a_misspelt_name_is_answered_with_the_nearest_one(folder):
    path = folder / "kineto.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event("forward", 1000, 90), event("aten::linear", 1010, 50)]}))
    for arguments, near in ((["tree", folder / "kinetto.json"], "kineto.json"), (["tree", path, "--focus", "foward"], "forward"),
                            (["tree", path, "--focus", "forward/aten::liner"], "aten::linear"), (["critical", path, "--focus", "forward/aten::liner"], "aten::linear"),
                            (["distribution", "aten::liner", path], "aten::linear"), (["table", path, "--assume-type", "fp23"], "fp32"), (["table", path, "--kind", "opp"], "op"), (["table", path, "--step-marker", "foward"], "forward")):
        errors = report(*arguments, check=None).stderr.decode()
        assert "did you mean `%s`?" % near in errors and errors.count("\n") == 1, (arguments, errors)


@case
def a_directory_means_the_one_run_in_it(folder):
    traced(folder, "ranges", 2, 50)
    (folder / "notes.txt").write_text("no trace\n")
    (folder / "config.json").write_text("{\"lr\": 0.1}\n")
    for view in "tree", "info", "table":
        assert report(view, folder, "--no-progress").stdout.replace(str(folder).encode(), b"") == report(view, folder / "trace.bin").stdout.replace(str(folder).encode(), b"")
    (folder / "alone").mkdir()
    imported(folder / "alone" / "t.json")
    assert b"aten::mm" in report("table", folder / "alone").stdout
    assert b"total" in report("diff", folder / "alone", folder / "alone" / "t.json").stdout


@case
def a_directory_of_several_runs_says_what_to_name(folder):
    assert b"is a directory without a trace in it" in report(folder, check=2).stderr
    traced(folder, "ranges", 1, 5, env={"PPERF_OUTPUT": "first.bin"})
    traced(folder, "ranges", 1, 5, env={"PPERF_OUTPUT": "second.bin"})
    errors = report(folder, check=2).stderr.decode()
    assert "traces of 2 runs of pperf (the newest: %s/second.bin); name one of them" % folder in errors, errors
    imported(folder / "t.json")
    errors = report(folder, check=2).stderr.decode()
    assert "2 runs of pperf" in errors and "1 trace of other tools" in errors and errors.count("\n") == 1, errors


@case
def all_processes_of_a_run_are_read_from_its_directory(folder):
    traced(folder, "forks", check=None)
    if len(traces(folder)) < 2:
        raise Skip("the program left one trace")
    found = json.loads(report("tree", folder, "--all", "-f", "json").stdout)
    assert len(found["capture"]["processes"]) == len(traces(folder)), found["capture"]["processes"]
    if found["capture"]["processes"][0]["rank"] is None:
        assert b"processes of one run; choose one with --rank N" in report("diff", folder, folder, check=64).stderr


main()
