#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports of Nsight Systems: small ones made here, of several versions, with contents of real and
of hostile files. With PPERF_TEST_DATA also a real one, whose every metric is known."""
import collections, json, os, pathlib, random, re, sqlite3, struct, subprocess
from harness import REPORT, Skip, case, dump, environment, info, main, report

RUN, OTHER = 7, 9  # processes
GEMM = "_Z4gemmPfi"
TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "EXPORT_META_DATA": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": "vmId INTEGER, id INTEGER, name TEXT, totalMemory INTEGER, uuid TEXT, smCount INTEGER, cuDevice INTEGER, threadsPerWarp INTEGER, maxWarpsPerSm INTEGER",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER, priority INTEGER, globalTid INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
                                  "demangledName INTEGER, shortName INTEGER, mangledName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, "
                                  "blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
                                  "bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
                                  "bytes INTEGER, value INTEGER, memKind INTEGER",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER",
    "COMPOSITE_EVENTS": "id INTEGER NOT NULL PRIMARY KEY, start INTEGER, cpu INTEGER, threadState INTEGER, globalTid INTEGER, cpuCycles INTEGER",
    "SAMPLING_CALLCHAINS": "id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL, kernelMode INTEGER, unresolved INTEGER, specialEntry INTEGER, stackDepth INTEGER NOT NULL",
    "MPI_P2P_EVENTS": "start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER, size INTEGER, remoteRank INTEGER, requestHandle INTEGER",
    "MPI_COLLECTIVES_EVENTS": "start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER, size INTEGER, rootRank INTEGER",
    "MPI_START_WAIT_EVENTS": "start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER, requestHandle INTEGER",
    "MPI_OTHER_EVENTS": "start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER",
    "OSRT_API": "start INTEGER NOT NULL, end INTEGER, nameId INTEGER, globalTid INTEGER",
    "GPU_METRICS": "timestamp INTEGER, metricId INTEGER, value INTEGER",
    "PROFILER_OVERHEAD": "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER",
}


def tid(thread, process=RUN):
    return 1 << 48 | process << 24 | thread


class Export:
    """A database. A table is created when the first row is put into it."""

    def __init__(self, path):
        self.path, self.db, self.strings, self.made = path, sqlite3.connect(path), {}, set()

    def put(self, table, **columns):
        if table not in self.made:
            self.made.add(table)
            self.db.execute("CREATE TABLE %s (%s)" % (table, TABLES[table]))
        self.db.execute('INSERT INTO %s ("%s") VALUES (%s)' % (table, '","'.join(columns), ",".join("?" * len(columns))), list(columns.values()))
        return self

    def string(self, text):
        if text not in self.strings:
            self.strings[text] = len(self.strings) + 100
            self.put("StringIds", id=self.strings[text], value=text)
        return self.strings[text]

    def range(self, name, start, end, thread=1, process=RUN, type=59, **more):
        return self.put("NVTX_EVENTS", start=start, end=end, eventType=type, text=name, globalTid=tid(thread, process), **more)

    def call(self, name, start, end, correlation, thread=1, process=RUN, result=0):
        return self.put("CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, eventClass=0, globalTid=tid(thread, process), correlationId=correlation, nameId=self.string(name), returnValue=result)

    def work(self, kind, start, end, correlation, process=RUN, **more):
        return self.put("CUPTI_ACTIVITY_KIND_" + kind, start=start, end=end, deviceId=0, contextId=1, streamId=7, correlationId=correlation, globalPid=tid(0, process), **more)

    def kernel(self, start, end, correlation, name=GEMM, **more):
        return self.work("KERNEL", start, end, correlation, mangledName=self.string(name), demangledName=self.string("gemm(float *, int)"), shortName=self.string("gemm"), **more)

    def done(self):
        self.db.commit()
        self.db.close()
        return self.path


def usual(path):
    export = Export(path)
    export.put("EXPORT_META_DATA", name="EXPORT_PRODUCT_VERSION", value="2025.1.1.0")
    export.put("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1700000000123456789)
    export.put("TARGET_INFO_GPU", id=4, cuDevice=0, name="NVIDIA H200", totalMemory=150 << 30, uuid="74e128b2-90b6-b409-07c8-33bee5ff6f88", smCount=132, threadsPerWarp=32, maxWarpsPerSm=64)
    export.put("PROCESSES", globalPid=tid(0), pid=RUN, name="python3").put("PROCESSES", globalPid=tid(0, 1), pid=1, name="systemd")
    export.range("step", 1001, 90007).put("NVTX_EVENTS", start=2003, end=50011, eventType=59, textId=export.string("forward"), globalTid=tid(1), domainId=0)
    export.call("cudaLaunchKernel_v7000", 3001, 4003, 11).call("cudaMemcpyAsync_v3020", 60001, 60101, 12).call("cudaMemsetAsync_v3020", 95000, 95100, 13)
    export.kernel(5003, 45009, 11, gridX=26, gridY=2, gridZ=1, blockX=256, blockY=1, blockZ=1, registersPerThread=40, staticSharedMemory=1024, dynamicSharedMemory=16384)
    export.work("MEMCPY", 61001, 62013, 12, bytes=4096, copyKind=1, srcKind=0, dstKind=2).work("MEMSET", 96001, 96020, 13, bytes=64, memKind=2)
    return export


def view(name, *arguments):
    return json.loads(report(name, *arguments, "-f", "json").stdout)


def tree(*arguments):
    return view("tree", *arguments, "--no-fold", "--no-steps", "--demangle", "no")


def rows(view):
    return {row["name"]: row for row in view["rows"]}


@case
def a_database_may_be_piped_and_its_process_named(folder):
    path = usual(folder / "run.sqlite").done()
    (folder / "a b?%#").mkdir() # of which SQLite gets a URI
    want = view("tree", path)["rows"]
    for temporary in folder, folder / "a b?%#":
        with open(path, "rb") as file:
            cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
            got = subprocess.run([str(REPORT), "tree", "-", "-f", "json"], stdin=cat.stdout, capture_output=True, env=environment(TMPDIR=str(temporary)))
            cat.communicate()
        assert got.returncode == 0 and json.loads(got.stdout)["rows"] == want, got.stderr
        assert not list(temporary.glob("pperf-*"))
    assert view("tree", "%s#%d" % (path, RUN))["rows"] == want
    assert b"there is no process 77 in it" in report("tree", "%s#77" % path, check=2).stderr


# ---- the real one ----

def data():
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder or not list(pathlib.Path(folder).glob("nsys/*.sqlite")):
        raise Skip("PPERF_TEST_DATA does not name the folder with an export of Nsight Systems and what it holds")
    return sorted((pathlib.Path(folder) / "nsys").glob("*.sqlite"))


@case
def every_figure_of_a_real_export_is_as_known(folder):
    for path in data():
        known, got = json.loads(path.with_suffix(".expected_nvtx.json").read_text()), tree(path)
        ranges = [row for row in got["rows"] if row["kind"] == "range"]
        assert sum(row["calls"] for row in ranges) == known["nvtx_ranges"] and max(len(row["path"]) for row in ranges) == known["max_depth"]
        again = int(re.search(r"(\d+) calls that the file has twice", view("info", path)["rows"][0]["meta"]["import.left_out"])[1])
        calls = collections.Counter()
        for row in got["rows"]:
            if row["kind"] in ("api", "sync"):
                calls[row["name"]] += row["calls"]
        assert sum(calls.values()) + again == known["runtime"] and calls["cudaMemcpy"] == 15 and calls["cudaLaunchKernel"] == known["by_innermost_range"]["saxpy"]["count"], calls
        work = [row for row in got["rows"] if row["kind"] in ("kernel", "memcpy", "memset")]
        assert sum(row["calls"] for row in work) == known["gpu"] and got["totals"]["gpu_sum_ns"] == known["gpu_ns"]
        for name, figures in known["by_innermost_range"].items():
            inside = [row for row in work if (row["path"][-2] if row["path"][0] != "unattributed" else "(no range)") == name]
            assert (sum(row["calls"] for row in inside), sum(row["gpu_total_ns"] for row in inside)) == (figures["count"], figures["ns"]), name
        assert got["integrity"]["conserved"] and got["integrity"]["complete"] and not got["integrity"]["clock_violations"]


@case
def a_real_export_says_what_the_same_as_json_says(folder):
    for path in data():
        export, twin = tree(path), tree(path.with_suffix(".kineto.json.gz"))
        assert {key: value for key, value in export["totals"].items() if key.startswith("gpu_")} == {key: value for key, value in twin["totals"].items() if key.startswith("gpu_")}
        figures = [{row["name"]: (row["calls"], row["cpu_total_ns"], row.get("gpu_total_ns", 0)) for row in got["rows"] if row["kind"] in ("range", "op", "api", "sync")}
                   for got in (export, twin)]
        assert figures[0] == figures[1], figures


@case
def any_view_takes_a_real_export(folder):
    for path in data():
        for name in ("table", "kernels", "memory", "critical", "info", "dump"):
            assert report(name, path).stdout
        screen = report(path).stdout.decode()
        assert "a file of Nsight Systems 2022" in screen and "SCHED_EVENTS" in screen and "losses    none" in screen, screen
        # what CPU samples would say is not passed over, and times can be found in the tool's own display
        words = " ".join(screen.split())
        assert "7 CPU samples before the first event or after the last" in words and "times here are 50.04 ms less than in the file" in words, screen


@case
def samples_of_a_real_export_say_what_the_host_did(folder):
    """The samples in the gaps, and those of them in no range or call, are counted in the database itself."""
    for path in data():
        found = view("idle", path, "--min-percent", "0")["rows"]
        db, begin = sqlite3.connect("file:%s?mode=ro&immutable=1" % path, uri=True), int(view("info", path)["rows"][0]["meta"]["import.begin_ns"])
        ranges = db.execute("SELECT start, end FROM NVTX_EVENTS WHERE end IS NOT NULL UNION ALL SELECT start, end FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchall()
        gaps = [(row["start_ns"] + begin, row["start_ns"] + begin + row["gap_ns"]) for row in found if row["kind"] == "gap" and row["cause"] == "host-bound"]
        inside = [at for at, in db.execute("SELECT start FROM COMPOSITE_EVENTS") if any(first <= at < last for first, last in gaps)]
        alone = [at for at in inside if not any(first <= at < last for first, last in ranges)]
        hosts = {row["name"]: row for row in found if row["kind"] == "host"}
        functions = {row["name"]: row["samples"] for row in found if row["kind"] == "function" and row["parent"] == hosts["(in no recorded range or call)"]["id"]}
        assert hosts["(in no recorded range or call)"]["samples"] == len(alone) == sum(functions.values()) and functions["main [saxpy-mpi-cuda]"] > 2000, (functions, len(alone))
        assert sum(row["samples"] for row in hosts.values()) == len(inside), (len(inside), hosts)
        assert sum(record["kind"] == "cpu_sample" for record in dump(path)) + 7 == db.execute("SELECT count(*) FROM COMPOSITE_EVENTS").fetchone()[0]
        words = " ".join(report(path).stdout.decode().split())
        assert "in which the host is in MPI for 24.1 % of the time" in words and "(2,779 CPU samples: main [saxpy-mpi-cuda] 86.0 %" in words, words


# ---- small ones ----

@case
def ranges_calls_and_work_are_joined_to_the_nanosecond(folder):
    got = tree(usual(folder / "export").done())
    by = rows(got)
    assert by[GEMM]["path"] == ["step", "forward", GEMM] and by["memcpy HtoD"]["path"] == ["step", "memcpy HtoD"], by
    assert by["memset"]["path"] == ["unattributed", "memset"], by
    assert [by[name]["cpu_total_ns"] for name in ("step", "forward", "cudaLaunchKernel", "cudaMemcpyAsync")] == [89006, 48008, 1002, 100]
    assert (by[GEMM]["gpu_total_ns"], by["memcpy HtoD"]["gpu_total_ns"], by["memcpy HtoD"]["bytes"], by["memset"]["gpu_total_ns"]) == (40006, 1012, 4096, 19)
    assert got["integrity"]["conserved"] and got["integrity"]["complete"] and got["totals"]["gpu_sum_ns"] == 41037
    kernel = dump(folder / "export", {"kernel"})[0]
    assert (kernel["grid"], kernel["block"], kernel["registers"]) == ([26, 2, 1], [256, 1, 1], 40), kernel
    assert (kernel["shared_bytes"], kernel["static_shared_bytes"], kernel["stream"], kernel["device"]) == (16384, 1024, 7, 0), kernel


@case
def facts_of_the_run_are_kept(folder):
    export = usual(folder / "export").put("ThreadNames", nameId=0, priority=0, globalTid=tid(1))
    export.put("StringIds", id=0, value="main thread").put("OSRT_API", start=5, end=9, globalTid=tid(1)).put("GPU_METRICS", timestamp=5, value=3)
    got = info(export.done())
    text = json.dumps(got)
    assert "Nsight Systems 2025.1.1.0" in text and "1 OSRT_API" in text and "1 GPU_METRICS" in text and "NVIDIA H200" in text and "python3" in text and "systemd" not in text, text
    assert [r["name"] for r in dump(folder / "export") if r.get("name") == "main thread"], "the thread's name"
    assert "2023-11-14 22:13:20.1234577" in report("info", folder / "export").stdout.decode()
    assert view("tree", folder / "export")["capture"]["devices"][0]["uuid"] == "GPU-74e128b2-90b6-b409-07c8-33bee5ff6f88"


@case
def processes_with_the_same_ids_are_kept_apart(folder):
    export = usual(folder / "export").put("PROCESSES", globalPid=tid(0, OTHER), pid=OTHER, name="worker")
    export.range("other", 1000, 99000, process=OTHER).call("cudaLaunchKernel_v7000", 2000, 2100, 11, process=OTHER).kernel(46000, 46500, 11, "_Z5otherv", process=OTHER)
    export.range("only here", 5000, 6000, process=11)
    path = export.done()
    got, processes = tree(path), tree(path)["capture"]["processes"]
    assert rows(got)[GEMM]["path"] == ["step", "forward", GEMM] and not {"_Z5otherv", "other"} & set(rows(got)), rows(got)
    assert sorted((p["pid"], p["command"], p["shown"], p["gpu_sum_ns"]) for p in processes) == [(RUN, "python3", True, 41037), (OTHER, "worker", False, 500), (11, "", False, 0)], processes
    for name in (path, str(path) + "#9"):
        both = tree(name, "--all")
        assert rows(both)["_Z5otherv"]["path"][-2:] == ["other", "_Z5otherv"] and (GEMM in rows(both)) == (name == path), rows(both)
        assert both["integrity"]["conserved"] and both["integrity"]["without_launch"] == 0
    assert sum(row["gpu_self_ns"] for row in tree(path, "--all")["rows"] if row["kind"] in ("kernel", "memcpy", "memset")) == 41537
    assert b"there is no process 8" in report("tree", str(path) + "#8", check=2).stderr
    assert [r["name"] for r in dump(str(path) + "#11", {"push"})] == ["only here"]
    assert "7 python3, 9 worker" in report("info", path).stdout.decode()


@case
def redacted_processes_have_no_folder(folder):
    export = usual(folder / "export").put("PROCESSES", globalPid=tid(0, OTHER), pid=OTHER, name="/home/someone/worker")
    path = export.range("other", 1000, 99000, process=OTHER).done()
    for view in ("info", "tree", "dump"):
        for form in ("text", "json"):
            words = (view, path, "--all", "-f", form) if view != "dump" else (view, path)
            assert b"someone" not in report(*words, "--redact").stdout, words
    assert b"someone" in report("info", path).stdout


@case
def nvtx_is_more_than_nested_ranges(folder):
    export = usual(folder / "export")
    export.put("NVTX_EVENTS", start=10, eventType=75, text="library", globalTid=tid(1), domainId=5)
    export.range("in a domain", 2500, 2600, domainId=5).range("span", 3000, 80000, type=60, endGlobalTid=tid(2)).range("moment", 2800, None, type=34)
    export.range("never ends", 70000, None).range("of no kind", 71000, 71001, type=4711)
    got = tree(export.done())
    by = rows(got)
    assert by["in a domain"]["domain"] == "library" and by["in a domain"]["path"] == ["step", "forward", "in a domain"], by
    assert by["span"]["cpu_total_ns"] == 77000 and by["span"]["calls"] == 1, by["span"]
    assert by["moment"]["calls"] == 1 and by["moment"]["kind"] == "mark", by
    assert any("1 ranges have no end" in warning for warning in got["warnings"]), got["warnings"]
    assert "1 NVTX events of other kinds" in " ".join(report(folder / "export").stdout.decode().split())


@case
def a_sample_has_its_innermost_function(folder):
    export = usual(folder / "export")
    frames = {1: ((0, "inner", "/lib/libm.so", {}), (1, "main", "/bin/program", {})),
              2: ((1, "main", "/bin/program", {}), (0, "0x7f0012", "/lib/libcuda.so", {"unresolved": 1})),
              3: ((0, "[Max depth]", "[Max depth]", {"specialEntry": 1}), (1, "main", "/bin/program", {})),
              5: ((0, "worker", "/bin/program", {}),)}
    for number, (start, thread) in enumerate(((3500, 1), (3600, 1), (50, 1), (60000, 1), (4000, 8), (None, 1), (70000, 1)), 1):
        export.put("COMPOSITE_EVENTS", id=number, start=start, globalTid=tid(thread))
        for depth, symbol, module, more in frames.get(number, ()):
            export.put("SAMPLING_CALLCHAINS", id=number, symbol=export.string(symbol), module=export.string(module), stackDepth=depth, **more)
    path = export.done()
    samples = [(record["t_ns"] + 1001, record["name"], record["module"], record.get("flags")) for record in dump(path, {"cpu_sample"})]
    assert samples == [(3500, "inner", "libm.so", "in_call"), (3600, None, "libcuda.so", "in_call"), (60000, None, None, None), (70000, None, None, None)], samples
    said = view("info", path)["rows"][0]["meta"]["import.left_out"]
    assert "1 CPU samples of threads without ranges or calls" in said and "1 CPU samples before the first event or after the last" in said, said
    assert any("1 events have no readable time" in warning for warning in tree(path)["warnings"])


@case
def calls_of_mpi_are_ranges_once(folder):
    """A wait for several requests has a row for each of them, and a call that sends and receives has one for each direction."""
    export = usual(folder / "export")
    name = lambda text: dict(textId=export.string(text), globalTid=tid(1))
    export.put("MPI_P2P_EVENTS", start=51000, end=52000, **name("MPI_Sendrecv")).put("MPI_P2P_EVENTS", start=53000, end=53500, **name("MPI_Isend"))
    for _ in range(3):
        export.put("MPI_START_WAIT_EVENTS", start=54000, end=55000, **name("MPI_Waitall"))
    export.put("MPI_P2P_EVENTS", start=51000, end=52000, **name("MPI_Sendrecv")).put("MPI_COLLECTIVES_EVENTS", start=56000, end=57000, **name("MPI_Allreduce"))
    export.put("MPI_OTHER_EVENTS", start=500, end=900, **name("MPI_Init"))
    path = export.done()
    by = rows(tree(path))
    assert {text: (by[text]["calls"], by[text]["cpu_total_ns"], by[text]["domain"]) for text in by if text.startswith("MPI_")} == {
        "MPI_Sendrecv": (1, 1000, "MPI"), "MPI_Isend": (1, 500, "MPI"), "MPI_Waitall": (1, 1000, "MPI"), "MPI_Allreduce": (1, 1000, "MPI"), "MPI_Init": (1, 400, "MPI")}, by
    assert by["MPI_Waitall"]["path"] == ["step", "MPI_Waitall"] and "3 more rows of one MPI call" in view("info", path)["rows"][0]["meta"]["import.left_out"]


@case
def what_a_version_does_not_have_is_not_missed(folder):
    db = sqlite3.connect(folder / "old")
    db.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT)")
    db.execute("INSERT INTO StringIds VALUES (1, 'short'), (2, 'cudaLaunchKernel')")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER, correlationId INTEGER, streamId INTEGER)")
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 205, 1, 4, 7), (300, 310, 99, 5, 7)")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (START INTEGER, End INTEGER, nameId INTEGER, correlationId INTEGER, globalTid INTEGER)")
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, 2, 4, %d)" % tid(1))
    db.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER)")
    db.execute("INSERT INTO NVTX_EVENTS VALUES (40, 90, 59, 'step', %d)" % tid(1))
    db.commit()
    got = tree(folder / "old")
    assert rows(got)["short"]["gpu_total_ns"] == 105 and rows(got)["short"]["path"] == ["step", "short"]
    assert got["totals"]["gpu_sum_ns"] == 115 and got["integrity"]["without_launch"] == 1, got


@case
def a_call_that_is_recorded_around_itself_is_one(folder):
    """Whichever of the two comes first in the file. A driver call inside is a call of its own."""
    for turn, order in enumerate(((0, 1, 2), (1, 2, 0))):
        export = Export(folder / ("export%d" % turn))
        calls = ("cudaLaunchKernel", 10, 40, 1), ("cudaLaunchKernel_v7000", 15, 35, 1), ("cuLaunchKernel", 20, 30, 1)
        for i in order:
            export.call(*calls[i])
        path = export.kernel(50, 60, 1).done()
        got = tree(path)
        assert got["integrity"]["launches"] == 1 and not got["integrity"]["missing_records"] and got["totals"]["gpu_sum_ns"] == 10 and not got["integrity"]["without_launch"], got["integrity"]
        assert {row["name"]: (row["calls"], row["cpu_total_ns"]) for row in view("api", path)["rows"]} == {"cudaLaunchKernel": (1, 30), "cuLaunchKernel": (1, 0)}
        assert view("info", path)["rows"][0]["meta"]["import.left_out"] == "1 calls that the file has twice"


@case
def a_call_that_failed_is_no_loss(folder):
    export = Export(folder / "export").call("cudaLaunchKernel", 10, 20, 1).kernel(30, 40, 1)
    export.call("cudaLaunchKernel", 50, 60, 2, result=701).call("cudaMalloc", 60, 70, 3, result=2).call("cudaLaunchKernel", 80, 90, 4).kernel(100, 110, 4)
    path = export.done()
    got = tree(path)["integrity"]
    assert got["failed_calls"] == 2 and got["missing_records"] == 0 and got["launches"] == 2 and got["complete"], got
    screen = report(path, "--strict").stdout.decode()
    assert "\nerrors    failed CUDA calls: 2\nlosses    none\n" in screen, screen


@case
def start_end_ranges_have_calls_and_a_section_and_no_share(folder):
    export = Export(folder / "export").range("step", 0, 100)
    for i in range(10):
        export.range("all_reduce", i * 10, 500 + i * 10, type=60)
    path = export.done()
    for name in ("table", "tree"):
        row = rows(view(name, path, "-m", "cpu"))["all_reduce"]
        assert (row["calls"], row["section"], row["cpu_total_ns"]) == (10, "start/end", 5000) and row.get("share") is None, row
    assert rows(view("table", path, "-m", "cpu"))["step"]["share"] == 1
    assert "start-end ranges" not in rows(view("table", path, "-m", "cpu"))


@case
def a_graph_as_a_whole_is_said_to_be_one(folder):
    export = usual(folder / "export").call("cudaGraphLaunch_v10000", 80000, 80100, 20).work("GRAPH_TRACE", 80200, 80500, 20, graphId=3)
    export.work("SYNCHRONIZATION", 81000, 81100, 21, syncType=3)
    got = tree(export.done())
    assert rows(got)["whole graph"]["gpu_total_ns"] == 300 and any("recorded as a whole" in warning for warning in got["warnings"]), got["warnings"]


@case
def times_that_cannot_be_are_counted(folder):
    export = usual(folder / "export").range("backwards", 50, 40).range("far", 1 << 62, (1 << 62) + 5).kernel(9, 8, 3)
    got = tree(export.done())
    assert any("3 events have no readable time" in warning for warning in got["warnings"]), got["warnings"]
    assert "backwards" not in rows(got)


@case
def a_database_that_is_none_is_refused_in_one_sentence(folder):
    db = sqlite3.connect(folder / "other")
    db.execute("CREATE TABLE t (start INTEGER, end INTEGER)")
    db.commit()
    whole = usual(folder / "export").done().read_bytes()
    hidden = sqlite3.connect(folder / "view")
    hidden.execute("CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start FROM n")
    hidden.commit()
    for name, content in (("cut", whole[:5000]), ("empty", whole[:16]), ("noise", whole[:100] + bytes(random.Random(1).randbytes(8000)))):
        (folder / name).write_bytes(content)
    for name in ("other", "view", "cut", "empty", "noise"):
        said = report(folder / name, check=2)
        assert said.stderr.count(b"\n") == 1 and b"SQLite" in said.stderr and not said.stdout, (name, said.stderr)


@case
def what_precedes_a_broken_page_is_shown(folder):
    export = Export(folder / "export")
    for i in range(4000):
        export.range("range %d" % (i % 10), i * 10, i * 10 + 5)
    for i in range(50):
        export.kernel(i * 10 + 3, i * 10 + 8, i)
    broken = bytearray(export.done().read_bytes())
    page = len(broken) // 4096 // 2
    broken[page * 4096:(page + 1) * 4096] = b"\xff" * 4096
    (folder / "export").write_bytes(broken)
    got = tree(folder / "export")
    assert any("the table NVTX_EVENTS" in warning for warning in got["warnings"]) and got["totals"]["gpu_sum_ns"] == 250, got["warnings"]
    assert 0 < sum(row["calls"] for row in got["rows"] if row["kind"] == "range") < 4000 and not got["integrity"]["complete"]


@case
def a_view_where_a_table_should_be_is_reported(folder):
    export = usual(folder / "export")
    export.db.execute("ALTER TABLE NVTX_EVENTS RENAME TO ranges")
    export.db.execute("CREATE VIEW NVTX_EVENTS AS SELECT * FROM ranges")
    export.db.execute("CREATE VIEW nobodys AS SELECT 1")
    got = tree(export.done())
    assert [w for w in got["warnings"] if "the table NVTX_EVENTS: it is a view" in w] and "nobodys" not in str(got["warnings"]), got["warnings"]
    assert not got["integrity"]["complete"] and got["totals"]["gpu_sum_ns"] == 41037, got["totals"]


# A database written byte by byte, as SQLite itself would never write it.
PAGE = 512


def varint(number):
    out = [number & 0x7f]
    while number := number >> 7:
        out.insert(0, number & 0x7f | 0x80)
    return bytes(out)


def record(*values):
    types, body = b"", b""
    for value in values:
        types += varint(0 if value is None else 1 if isinstance(value, int) else 13 + 2 * len(value))
        body += b"" if value is None else struct.pack(">b", value) if isinstance(value, int) else value
    return varint(len(types) + 1) + types + body


def page(kind, cells, at=0, rightmost=None):
    start, content, pointers = PAGE, b"", b""
    for cell in cells:
        start, content = start - len(cell), cell + content
        pointers += struct.pack(">H", start)
    head = struct.pack(">BHHHB", kind, 0, len(cells), start, 0) + (struct.pack(">I", rightmost) if rightmost else b"")
    return (head + pointers).ljust(PAGE - at - len(content), b"\0") + content


def leaf(*rows):
    return page(13, [varint(len(row)) + varint(number + 1) + row for number, row in enumerate(rows)])


def below(number, rightmost):
    return struct.pack(">I", number) + varint(1 + (number == rightmost))


def endless(levels):
    """Each page of the table list has the same page below it sixty times: 5 KB with 60 ** levels
    rows."""
    last = 3 + levels
    table = record(b"table", b"StringIds", b"StringIds", last + 1, b"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT UNIQUE)")
    index = record(b"index", b"sqlite_autoindex_StringIds_1", b"StringIds", last + 2, None)
    pages = [page(5, [below(2, 3)] + [below(3, 3)] * 50, 100, 3), leaf(table, index)]
    pages += [page(5, [below(number + 1, number + 1)] * 60, 0, number + 1) for number in range(3, last)]
    pages += [leaf(*[index] * 5), leaf(), page(10, [])]
    head = b"SQLite format 3\0" + struct.pack(">HBBBBBB11I", PAGE, 1, 1, 0, 64, 32, 32, 1, len(pages), 0, 0, 1, 4, 0, 0, 1, 0, 0)
    return head.ljust(92, b"\0") + struct.pack(">II", 1, 3040001) + b"".join(pages)


@case
def pages_that_lead_to_each_other_without_end_are_left(folder):
    (folder / "small").write_bytes(endless(1))
    assert b"not an export of Nsight Systems" in report(folder / "small", check=2).stderr  # so that SQLite accepts it
    (folder / "endless").write_bytes(endless(6))
    assert b"its pages form a cycle" in report(folder / "endless", check=2, timeout=60).stderr


@case
def random_damage_is_survived_and_the_file_is_left_alone(folder):
    whole, dice = usual(folder / "export").done().read_bytes(), random.Random(11)
    for round in range(int(os.environ.get("PPERF_TEST_ROUNDS", "60"))):
        broken = bytearray(whole)
        for _ in range(dice.randint(1, 20)):
            broken[dice.randrange(16, len(broken))] = dice.randrange(256)
        (folder / "broken").write_bytes(broken)
        said = report("tree", folder / "broken", "-f", "json", check=None, timeout=20)
        assert said.returncode in (0, 2), (round, said.returncode, said.stderr)
        assert (folder / "broken").read_bytes() == broken and not list(folder.glob("broken-*"))


main()
