#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Parts: what `pperf-report part` writes is what the views of each trace show, and what `pperf` merges
of it is what `pperf-report ranks` computes, to the integer. `make scale-peers` installs the engines
that merge; without them those cases are skipped."""
import csv, datetime, gzip, io, json, os, pathlib, shutil, signal, subprocess, time, zlib
from harness import BUILD, REPORT, ROOT, SANITIZED, Skip, case, environment, main, preload, report, run, traced, unsanitized
from part_tools import ENGINES, Cluster, job, manifests, mpirun, part, pperf, replaced, rewritten, table

GIVEN = pathlib.Path(os.environ.get("PPERF_TEST_DATA", "/nonexistent"))
RANKS = 64


def same(traces, parts, *options):
    """Compares the merge of the parts with C's answer."""
    want = json.loads(report("ranks", *(traces if isinstance(traces, list) else [traces]), "-f", "json", *options).stdout)
    got = json.loads(pperf("ranks", parts, "-f", "json", *options))
    assert list(got) == list(want), set(got) ^ set(want)
    for key in want:
        if isinstance(want[key], list):
            assert len(got[key]) == len(want[key]), (key, len(got[key]), len(want[key]))
            for number, (left, right) in enumerate(zip(got[key], want[key])):
                assert left == right, (key, number, left, right)
        assert got[key] == want[key], (key, got[key], want[key])
    return got


# ---- the map ----

def of_rank(view, traces, rank, form="json"):
    """The rows of a view of one rank."""
    text = report(view, traces, "--rank", rank, "-f", form).stdout.decode()
    return json.loads(text)["rows"] if form == "json" else list(csv.DictReader(io.StringIO(text)))


def findings_of(traces, rank):
    """Without the finding that compares ranks."""
    return [r for r in of_rank("diagnose", traces, rank) if r["kind"] in ("finding", "note") and r["name"] != "collective-waits"]


@case
def the_tables_of_a_trace_add_up_to_its_views(folder):
    traces, parts = job(folder / "job", 2, 10, "straggler=1"), folder / "parts"
    part(traces, parts)
    for rank in range(2):
        mine = [row for row in table(parts, "places") if int(row["rank"]) == rank]
        tree = of_rank("tree", traces, rank, "csv")
        for key in ("calls", "cpu_total_ns", "gpu_total_ns", "gpu_calls", "idle_ns"):
            assert sum(int(r[key] or 0) for r in mine) == sum(int(r[key] or 0) for r in tree), (rank, key)
        assert {r["path"]: r["gpu_total_ns"] for r in mine if r["gpu_total_ns"] not in ("", "0")} == {
            r["path"]: r["gpu_total_ns"] for r in tree if r["gpu_total_ns"] not in ("", "0")}
        steps = [r for r in of_rank("steps", traces, rank) if r["kind"] == "step"]
        assert [(int(r["step"]), int(r["duration_ns"]), int(r["busy_ns"])) for r in table(parts, "steps") if int(r["rank"]) == rank] == [
            (r["step"], r["duration_ns"], r["busy_ns"]) for r in steps]
        findings = findings_of(traces, rank)
        assert [(r["name"], r["impact_ns"]) for r in table(parts, "findings") if int(r["rank"]) == rank] == [
            (r["name"], str(r.get("impact_ns") or "")) for r in findings]
        whole = json.loads(report("ranks", traces, "-f", "json").stdout)["rows"][rank]
        process = [r for r in table(parts, "processes") if int(r["rank"]) == rank][0]
        assert [int(process[k]) for k in ("wall_ns", "gpu_busy_ns", "pid")] == [whole[k] for k in ("wall_ns", "gpu_busy_ns", "pid")]


@case
def steps_of_any_trace_are_those_of_the_view(folder):
    """The steps are read in the pass that makes the profile, which may begin again."""
    (folder / "random").mkdir()
    run(folder, "random_traces", folder / "random", 12, 7, check=0)
    checked = 0
    for number, path in enumerate(sorted((folder / "random").iterdir()) + [p for p in sorted(GIVEN.glob("kineto/*")) if p.is_file()]):
        part(path, folder / str(number), "--no-findings")
        rows = table(folder / str(number), "steps")
        found = report("steps", path, "-f", "csv", check=None)
        want = [r for r in csv.DictReader(io.StringIO(found.stdout.decode())) if r["kind"] == "step"] if found.returncode == 0 else []
        keys = [key for key in (rows[0] if rows else []) if want and key in want[0] and key not in ("rank", "trace")]
        if len({row["trace"] for row in rows}) == 1:
            assert [[r[k] for k in keys] for r in rows] == [[r[k] for k in keys] for r in want], path
            checked += bool(rows)
    assert checked >= 4, checked


def peak_kib(*command):
    pid = os.posix_spawn(str(REPORT), [str(REPORT), *map(str, command)], environment(), file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, use = os.wait4(pid, 0)
    assert status == 0, command
    return use.ru_maxrss


@case
def a_step_takes_little_memory(folder):
    """The rows of the view steps, all at a time, took 4 KB a step."""
    if SANITIZED:
        raise Skip("the sanitizer's memory is in the way")
    peaks = []
    for steps in 1000, 41000:
        traced(folder, "ranges", 1, 5 * steps, 5)
        peaks.append(peak_kib("part", folder / "trace.bin", "-o", folder / str(steps), "--no-findings", "--step-marker", "transformer.layer.0.attention_0"))
        assert len(table(folder / str(steps), "steps")) == steps
    assert peaks[1] - peaks[0] < 40000, peaks


@case
def spreads_count_each_call_once(folder):
    traces, parts = job(folder / "job", 1, 10), folder / "parts"
    part(traces, parts)
    calls, buckets = {}, {}
    for row in table(parts, "places"):
        if row["kind"] in ("range", "op", "module", "kernel", "step"):
            calls[row["key"]] = int(row["calls"])
    for row in table(parts, "spreads"):
        if row["of"] == "duration" and row["key"] in calls:
            buckets[row["key"]] = buckets.get(row["key"], 0) + int(row["count"])
    assert calls and buckets == {key: count for key, count in calls.items() if key in buckets} and len(buckets) > len(calls) / 2


@case
def a_second_run_writes_only_what_is_missing_or_changed(folder):
    traces, parts = job(folder / "job", 4, 4), folder / "parts"
    assert "4 written, 0 were there" in part(traces, parts)
    before = {path: path.stat().st_mtime_ns for path in parts.rglob("*") if path.is_file()}
    assert "0 written, 4 were there" in part(traces, parts)
    assert before == {path: path.stat().st_mtime_ns for path in parts.rglob("*") if path.is_file()}
    os.truncate(traces / "rank00002.bin", 200000)
    assert "1 written, 3 were there" in part(traces, parts)
    manifests(parts)[0].unlink()
    assert " there" in part(traces, parts) and "0 written, 4 were there" in part(traces, parts)
    assert not list(parts.rglob("*.tmp"))


@case
def shares_are_disjoint_and_complete(folder):
    traces, parts = job(folder / "job", 7, 2), folder / "parts"
    for index in range(3):
        part(traces, parts, "--share", env={"SLURM_PROCID": str(index), "SLURM_NTASKS": "3"})
    assert len(manifests(parts)) == 3 and sorted(int(r["rank"]) for r in table(parts, "processes")) == list(range(7))
    assert "4 traces: 0 written, 4 were there" in part([traces / ("rank%05d.bin" % i) for i in range(4)], parts)
    assert "0 written" in part(traces, parts, "--share", "--tasks", 2, env={"JOB_COMPLETION_INDEX": "1"})
    assert "--tasks N" in part(traces, parts, "--share", check=64, env={"JOB_COMPLETION_INDEX": "1"})
    assert "needs SLURM_PROCID" in part(traces, parts, "--share", check=64)
    assert "needs the folder" in report("part", traces, check=64).stderr.decode()


@case
def the_order_of_arguments_and_the_number_of_shares_change_no_row(folder):
    traces = sorted(job(folder / "job", 9, 3).glob("*.bin"))
    part(traces, folder / "whole")
    rows = {name: sorted(tuple(row.items()) for row in table(folder / "whole", name)) for name in os.listdir(folder / "whole") if name != "manifest"}
    shuffled = traces[4:] + traces[3::-1] + traces[2:5]
    part(shuffled, folder / "shuffled")
    assert contents(folder / "shuffled") == contents(folder / "whole")
    for index in range(4):
        part(shuffled if index % 2 else traces, folder / "shares", "--share", "--tasks", 4, env={"JOB_COMPLETION_INDEX": str(index)})
    for name, want in rows.items():
        assert sorted(tuple(row.items()) for row in table(folder / "shares", name)) == want, name


@case
def many_traces_need_few_descriptors(folder):
    traces, parts = job(folder / "job", 512, 1), folder / "parts"
    limited = subprocess.run(["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", str(REPORT), "part", str(traces), "-o", str(parts), "--no-findings"],
                             capture_output=True, text=True, env=environment(), timeout=300)
    assert limited.returncode == 0 and "512 traces: 512 written" in limited.stdout, limited.stderr[-600:]


@case
def processes_of_mpirun_take_their_shares(folder):
    launcher, traces, parts = mpirun(), job(folder / "job", 7, 2), folder / "parts"
    result = subprocess.run([launcher, "--allow-run-as-root", "--oversubscribe", "-np", "3", str(REPORT), "part", "--share", str(traces), "-o", str(parts)],
                            capture_output=True, text=True, env=environment(), timeout=300)
    assert result.returncode == 0, result.stderr[-600:]
    assert len(manifests(parts)) == 3 and sorted(int(r["rank"]) for r in table(parts, "processes")) == list(range(7))


@case
def damaged_and_empty_traces_have_a_status(folder):
    traces, parts = job(folder / "job", 5, 4), folder / "parts"
    os.truncate(traces / "rank00001.bin", (traces / "rank00001.bin").stat().st_size // 2)
    (traces / "rank00002.bin").write_bytes(b"")
    (traces / "rank00003.bin").write_bytes(b"garbage")
    part(traces, parts)
    assert [r["status"] for r in sorted(table(parts, "processes"), key=lambda r: r["file"])] == ["ok", "cut", "empty", "unreadable", "ok"]
    shutil.rmtree(parts)
    part(traces, parts, "--strict", check=2)


@case
def what_cannot_be_read_is_named_and_a_retry_does_not_hide_it(folder):
    traces, parts = job(folder / "job", 3, 4), folder / "parts"
    os.truncate(traces / "rank00001.bin", (traces / "rank00001.bin").stat().st_size // 2)
    said = part(traces, parts, "--strict", check=2)
    assert "rank00001.bin: is cut off" in said and "3 traces: 3 written" in said, said
    assert "0 written, 3 were there" in part(traces, parts, "--strict", check=2)
    part(traces, parts)
    for wrong in folder / "nothing", folder / "*.foo":
        said = part(wrong, folder / "wrong", check=2)
        assert "cannot be opened" in said and "1 trace: 1 written" in said, said
    (folder / "empty").mkdir()
    assert "is a directory, not a trace" in part(folder / "empty", folder / "wrong", check=2)
    assert "-o needs the name" in report("part", traces, "-o", "", check=64).stderr.decode()


@case
def parts_of_other_options_are_not_taken_for_these(folder):
    traces, parts = job(folder / "job", 2, 4), folder / "parts"
    part(traces, parts, "--no-findings")
    assert "2 written, 0 were there" in part(traces, parts)
    for options in (), ("--no-findings",): # with findings there is more than without
        assert "0 written, 2 were there" in part(traces, parts, *options)
    assert "2 written, 0 were there" in part(traces, parts, "--step-marker", "step")
    assert "2 written, 0 were there" in part(traces, parts, "--no-steps")
    said = part(traces, parts, "--redact", check=64)
    assert "has parts that are not redacted" in said, said
    part(traces, folder / "redacted", "--redact")
    assert "0 written, 2 were there" in part(traces, folder / "redacted", "--redact")


@case
def shares_that_are_none_are_refused_in_a_sentence(folder):
    traces, parts = job(folder / "job", 2, 2), folder / "parts"
    for env, options, sentence in (({"SLURM_PROCID": "x", "SLURM_NTASKS": "2"}, (), "SLURM_PROCID is `x`, which is no number from 0 on"),
                                   ({"SLURM_PROCID": "-1"}, ("--tasks", 2), "SLURM_PROCID is `-1`"),
                                   ({"SLURM_PROCID": "1", "SLURM_NTASKS": "0"}, (), "more than the 0 tasks that SLURM_NTASKS says"),
                                   ({"SLURM_PROCID": "3"}, ("--tasks", 2), "more than the 2 tasks that --tasks says")):
        said = part(traces, parts, "--share", *options, check=64, env=env)
        assert sentence in said and len(said.splitlines()) == 1, said


@case
def redacted_parts_have_no_names_of_files_and_hosts(folder):
    traces, parts = job(folder / "secret-job", 2, 2), folder / "parts"
    os.truncate(traces / "rank00001.bin", 100000)
    part(traces, parts, "--redact")
    text = "".join(gzip.open(p, "rt").read() for p in parts.rglob("*.gz")) + "".join(p.read_text() for p in manifests(parts))
    assert "secret" not in text and "train.py" not in text and "python" in text, [line for line in text.splitlines() if "secret" in line][:3]


# ---- other readers ----

NAMES = ["a,b", 'quo"te', "two\nlines", "back\\slash", "\\x41", "a/b", "\r\t\x1b[m", "\u00e9\u2028\U0001f600", "=SUM(A)", " blank ", "'; drop table places; --", "null", "NaN", "-"]
READERS = """
import csv, gzip, json, sys
import duckdb, polars, pyarrow, pyarrow.csv, pyarrow.parquet
parts, counts = sys.argv[1], {}
task = json.load(open(sys.argv[2]))
kinds = {"BIGINT": (pyarrow.int64(), polars.Int64), "VARCHAR": (pyarrow.string(), polars.String), "BOOLEAN": (pyarrow.bool_(), polars.Boolean)}
for table, about in task["tables"].items():
    base = "%s/%s/%s" % (parts, table, task["task"])
    columns = about["columns"]
    names = [name for name, _ in columns]
    plain = [tuple("" if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in row) for row in
             duckdb.read_parquet(base + ".parquet").fetchall()]
    with gzip.open(base + ".csv.gz", "rt", encoding="utf-8", newline="") as file:
        head, *want = csv.reader(file)
    assert head == names and len(want) == about["rows"], table
    arrow = pyarrow.parquet.read_table(base + ".parquet")
    options = {"include_columns": names, "column_types": {name: kinds[kind][0] for name, kind in columns}, "strings_can_be_null": False}
    arrow_csv = pyarrow.csv.read_csv(base + ".csv.gz", parse_options=pyarrow.csv.ParseOptions(escape_char=False), convert_options=pyarrow.csv.ConvertOptions(null_values=[""], **options))
    frame = polars.read_parquet(base + ".parquet")
    frame_csv = polars.read_csv(base + ".csv.gz", schema={name: kinds[kind][1] for name, kind in columns})
    read = {"duckdb": plain, "arrow": [tuple(row.values()) for row in arrow.to_pylist()],
            "arrow csv": [tuple(row.values()) for row in arrow_csv.to_pylist()], "polars": frame.rows(), "polars csv": frame_csv.rows()}
    for reader, rows in read.items():
        rows = [tuple("" if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in row) for row in rows]
        assert sorted(rows) == sorted(map(tuple, want)), (table, reader, sorted(set(rows) ^ set(map(tuple, want)))[:4])
    assert [str(kind) for kind in arrow.schema.types] == [str(kinds[kind][0]) for _, kind in columns], (table, arrow.schema)
    counts[table] = len(want)
print(json.dumps(counts))
"""


@unsanitized
def other_readers_have_the_same_rows(folder):
    """DuckDB, pyarrow and Polars, of CSV and of Parquet, with names that are hostile and tables without rows."""
    traces, parts = job(folder / "job", 2, 2, "hang=1", "absent=1"), folder / "parts"
    event = lambda number, name: {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 100 * number, "dur": 50}
    (traces / "names.json").write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 2}, "traceEvents": [event(n, name) for n, name in enumerate(NAMES)]}))
    pperf("part", traces, "-o", parts, "--parquet")
    result = subprocess.run([str(ENGINES), "-c", READERS, str(parts), str(manifests(parts)[0])], capture_output=True, text=True, timeout=300, env=environment())
    assert result.returncode == 0, result.stderr[-1500:]
    counts = json.loads(result.stdout)
    assert counts["processes"] == 3 and counts["ends"] == 2 and counts["requests"] == 0 and counts["collectives"] > 0, counts
    found = {row["name"] for row in json.loads(pperf("tree", parts, "--rank", 2, "-f", "json"))["rows"]}
    assert set(NAMES) <= found, set(NAMES) - found


# ---- the reduce ----

@case
def ranks_are_those_of_pperf_report(folder):
    traces, parts = job(folder / "job", RANKS, 10, "straggler=3"), folder / "parts"
    part(traces, parts)
    got = same(traces, parts)
    assert got["matched"] == 240 and got["stragglers"][0]["rank"] == 3


@unsanitized
def a_thousand_ranks_are_those_of_pperf_report(folder):
    traces, parts = job(folder / "job", 1024, 4, "straggler=3"), folder / "parts"
    part(traces, parts, "--no-findings")
    got = same(traces, parts)
    assert len(got["rows"]) == 1024 and got["matched"] == 96 and got["stragglers"][0]["rank"] == 3


@unsanitized
def six_faults_of_a_job_are_as_worked_out(folder):
    """Of 64: one cut, one empty, one missing, one twice, one restarted, one of another run."""
    traces, parts = job(folder / "job", 64, 10, "straggler=3"), folder / "parts"
    os.truncate(traces / "rank00010.bin", (traces / "rank00010.bin").stat().st_size // 2)
    (traces / "rank00011.bin").write_bytes(b"")
    (traces / "rank00012.bin").unlink()
    shutil.copy(traces / "rank00013.bin", traces / "copy.bin")
    job(traces, 64, 10, "first=14", "count=1", "pid=5000", "prefix=early", "start=1699999990000000000")
    job(traces, 64, 10, "first=20", "count=1", "prefix=other", "start=1600000000000000000", "run=77")
    part(traces, parts)
    got = same(traces, parts)
    assert sorted(f["status"] for f in got["faults"]) == ["copy", "cut", "empty", "other_run", "superseded"]
    assert got["missing_ranks"] == [11, 12] and got["matched"] == 240 and len(got["rows"]) == 62
    assert got["stragglers"][0]["rank"] == 3 and any("rank" in w and "11, 12" in w for w in got["warnings"])
    cut = [row for row in got["rows"] if row["rank"] == 10][0]
    assert 0 < cut["matched"] < 240 and got["incomplete"] == 240 - cut["matched"]
    assert all(row["matched"] == 240 for row in got["rows"] if row["rank"] != 10)


@case
def faults_are_those_of_pperf_report(folder):
    traces, parts = job(folder / "job", 24, 10, "straggler=3"), folder / "parts"
    os.truncate(traces / "rank00010.bin", (traces / "rank00010.bin").stat().st_size // 2)
    (traces / "rank00011.bin").write_bytes(b"")
    (traces / "rank00012.bin").unlink()
    shutil.copy(traces / "rank00013.bin", traces / "copy.bin")
    job(traces, 24, 10, "first=14", "count=1", "pid=5000", "prefix=early", "start=1699999990000000000")
    job(traces, 24, 10, "first=20", "count=1", "prefix=other", "start=1600000000000000000", "run=77")
    with open(traces / "rank00016.bin", "r+b") as file:
        file.seek((traces / "rank00016.bin").stat().st_size * 3 // 5)
        file.write(bytes(60000))
    part(traces, parts)
    got = same(traces, parts)
    assert got["missing_ranks"] == [11, 12] and {f["status"] for f in got["faults"]} == {"cut", "damaged", "empty", "copy", "superseded", "other_run"}
    pperf("ranks", parts, "--strict", check=2)
    same(traces, parts, "--quorum", "100")


@case
def communicators_of_groups_and_without_names(folder):
    for number, settings in enumerate((["groups=4x2x3", "straggler=5"], ["groups=2x2x2", "named=0"], ["straggler=1", "named=0"])):
        traces, parts = job(folder / str(number), 24 if number == 0 else 8, 6, *settings), folder / ("parts%d" % number)
        part(traces, parts)
        same(traces, parts)


@case
def a_hang_is_that_of_pperf_report(folder):
    traces, parts = job(folder / "job", 8, 6, "hang=4", "absent=2"), folder / "parts"
    part(traces, parts)
    assert same(traces, parts)["hangs"], "no hang"


class NcclJob:
    """Eight ranks on the simulated NCCL that hang (tests/programs/nccl_job.c), killed when they do."""

    def __init__(self, folder, *hang):
        program = BUILD / "cudasim" / "13" / "nccl_job"
        if not program.exists():
            raise Skip("the simulated device is not built: make cudasim")
        folder.mkdir()
        self.traces, ranks = [folder / str(rank) / "trace.bin" for rank in range(8)], []
        for rank, path in enumerate(self.traces):
            path.parent.mkdir()
            ranks.append(subprocess.Popen([program, str(rank), folder, "4", *map(str, hang)], cwd=path.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                          env=environment(RANK=str(rank), WORLD_SIZE="8", LD_PRELOAD=preload())))
        try:
            self.wait_until_it_hangs()
        finally:
            for process in ranks:
                process.kill()
                process.wait()

    def wait_until_it_hangs(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            done = report("ranks", *self.traces, "-f", "json", check=None) if all(path.exists() for path in self.traces) else None
            if done and done.returncode == 0 and json.loads(done.stdout)["hangs"]:
                return
            time.sleep(0.1)


@case
def hangs_in_calls_of_nccl_are_those_of_pperf_report(folder):
    if SANITIZED:
        raise Skip("as in the plain build")
    for number, hang in enumerate((("collective", 5), ("send", 5), ("receive", 6), ("init", 3), ("split", 3))):
        made = NcclJob(folder / hang[0], *hang)
        part(made.traces, folder / str(number))
        assert same(made.traces, folder / str(number))["hangs"], hang


@case
def ranks_of_the_given_traces_are_those_of_pperf_report(folder):
    groups = [sorted((GIVEN / "kineto").glob("param__dlrm_worker*"))]
    groups += [sorted(path.glob("*")) for path in sorted(GIVEN.glob("kineto/*")) if path.is_dir()]
    groups = [group for group in groups if len(group) > 1 and report("ranks", *group, check=None).returncode == 0]
    if not groups:
        raise Skip("PPERF_TEST_DATA has no traces of several ranks")
    for number, group in enumerate(groups):
        part(group, folder / str(number))
        same(group, folder / str(number))


@case
def trees_steps_and_findings_add_up_over_ranks(folder):
    traces, parts = job(folder / "job", 6, 6, "straggler=3"), folder / "parts"
    part(traces, parts)
    tree = json.loads(pperf("tree", parts, "-f", "json"))["rows"]
    for key in ("calls", "cpu_total_ns", "gpu_total_ns", "gpu_calls"):
        want = sum(int(r[key] or 0) for rank in range(6) for r in of_rank("tree", traces, rank, "csv"))
        assert sum(row[key] or 0 for row in tree) == want, key
    steps = json.loads(pperf("steps", parts, "-f", "json"))["rows"]
    each = [[r for r in of_rank("steps", traces, rank) if r["kind"] == "step"] for rank in range(6)]
    for number, row in enumerate(steps):
        values = [rank[number]["duration_ns"] for rank in each]
        assert (row["ranks"], row["min_ns"], row["max_ns"], row["max_rank"], row["duration_ns"]) == (
            6, min(values), max(values), values.index(max(values)), sum(values)), row
    one = json.loads(pperf("tree", parts, "--rank", 3, "-f", "json"))["rows"]
    assert sum(row["calls"] or 0 for row in one) < sum(row["calls"] or 0 for row in tree) and all(row["most_rank"] == 3 for row in one)
    findings = json.loads(pperf("diagnose", parts, "-f", "json"))["rows"]
    assert findings and sum(r["impact_ns"] or 0 for r in findings) == sum(
        r.get("impact_ns") or 0 for rank in range(6) for r in findings_of(traces, rank))


@unsanitized
def a_query_reads_tables_and_nothing_else(folder):
    traces, parts = job(folder / "job", 3, 4), folder / "parts"
    part(traces, parts)
    rows = json.loads(pperf("query", parts, "select rank, count(*) n from collectives group by rank order by rank", "-f", "json"))["rows"]
    assert rows == [{"rank": rank, "n": 96} for rank in range(3)]
    assert len(json.loads(pperf("query", parts, "select rank, wait_ns from rank_waits", "-f", "json"))["rows"]) == 3
    for sql in ("select * from read_text('/etc/passwd')", "copy places to '%s'" % (folder / "out.csv"), "set enable_external_access = true",
                "attach '%s' as other" % (folder / "db"), "install httpfs", "select nothing from nowhere"):
        text = pperf("query", parts, sql, check=2)
        assert text.startswith("pperf: the query fails") and len(text.splitlines()) == 1, text
    assert not (folder / "out.csv").exists() and not (folder / "db").exists()


@unsanitized
def a_query_prints_any_value_and_any_number_of_rows(folder):
    traces, parts = job(folder / "job", 2, 2), folder / "parts"
    part(traces, parts)
    sql = "select [1, 2] l, 1 a, 2 a, 'NaN'::double n, -'infinity'::double i, {'k': [1.5]} s, 'ab'::blob b, date '2026-11-30' d, null x"
    assert json.loads(pperf("query", parts, sql, "-f", "json"), parse_constant=None)["rows"] == [
        {"l": [1, 2], "a": 1, "a_1": 2, "n": None, "i": None, "s": {"k": [1.5]}, "b": "6162", "d": "2026-11-30", "x": None}]
    assert pperf("query", parts, sql, "-f", "csv").splitlines()[0] == "l,a,a_1,n,i,s,b,d,x" and "1 / 2" in pperf("query", parts, sql)
    for form in "text", "csv":
        assert pperf("query", parts, "select 1 as one where false", "-f", form).split() == ["one"]
    for sql in "", "-- nothing":
        assert pperf("query", parts, sql, check=2) == "pperf: the query is empty\n"


@unsanitized
def ctrl_c_ends_a_query(folder):
    traces, parts = job(folder / "job", 2, 2), folder / "parts"
    part(traces, parts)
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    sql = "select count(*) from range(100000000000) where range % 7 = 3"
    process = subprocess.Popen([str(ENGINES), "-m", "pperf_parts", "query", str(parts), sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment(PYTHONPATH=str(ROOT / "python")))
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (130, b"", b""), (process.returncode, out, error)


@unsanitized
def a_wrong_argument_is_refused_in_a_sentence(folder):
    traces, parts = job(folder / "job", 2, 2), folder / "parts"
    part(traces, parts)
    for arguments in (("ranks", parts, "--quorum", 200), ("ranks", parts, "--quorum", "x"), ("tree", parts, "--memory", "1foo"), ("tree", parts, "--memory", "-5"),
                      ("tree", parts, "-n", "-1"), ("part", traces, "-o", ""), ("part", traces, "-o", parts, "-j", 0), ("ranks", "")):
        text = pperf(*arguments, check=64)
        assert text.startswith("pperf: argument ") and len(text.splitlines()) == 1, text
    for arguments in ("ranks", parts, "--rank", 99), ("tree", parts, "--rank", 99):
        assert pperf(*arguments, check=2) == "pperf: no process of the parts has rank 99\n"
    assert "no trace with collectives is of rank 99" in report("ranks", traces, "--rank", 99, check=64).stderr.decode()
    assert pperf("ranks", parts, "--rank", 1).startswith("ranks      2 of 2 aligned")
    assert "\\u001b" in pperf("ranks", "n\x1b[31m", check=2)


@unsanitized
def a_full_disk_is_said_in_a_sentence(folder):
    traces, parts = job(folder / "job", 2, 2), folder / "parts"
    part(traces, parts)
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    result = subprocess.run(["sh", "-c", '"$@" > /dev/full', "sh", str(ENGINES), "-m", "pperf_parts", "ranks", str(parts)], capture_output=True, text=True,
                            env=environment(PYTHONPATH=str(ROOT / "python"), PPERF_REPORT=str(REPORT)))
    assert (result.returncode, result.stderr) == (2, "pperf: the output cannot be written: No space left on device\n"), result


@unsanitized
def a_folder_that_is_given_twice_counts_once(folder):
    traces, parts = job(folder / "job", 3, 4), folder / "parts"
    part(traces, parts)
    (folder / "link").symlink_to(parts)
    for view in "tree", "steps", "ranks", "diagnose":
        assert pperf(view, parts, str(parts) + "/", folder / "link", "-f", "json") == pperf(view, parts, "-f", "json"), view


@unsanitized
def the_place_of_a_straggler_is_read_from_its_own_trace(folder):
    """Also from another folder. A trace that was replaced says nothing."""
    traces, parts = job(folder / "job", 8, 12, "straggler=5"), folder / "parts"
    os.chdir(folder)
    part("job", "parts")
    other = job(folder / "other", 8, 12, "straggler=3", "seed=9")
    (other / "job").symlink_to(other)
    os.chdir(other) # where job/rank00005.bin is another trace
    place = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    [straggler] = json.loads(pperf("ranks", parts, "-f", "json"))["stragglers"]
    assert straggler["rank"] == 5 and straggler["path"] == [place], straggler
    os.chdir("/")
    for path in other.glob("rank*.bin"):
        os.replace(path, traces / path.name)
    found = json.loads(pperf("ranks", parts, "-f", "json"))
    assert found["stragglers"][0]["path"] == [] and len(found["warnings"]) == 1, found["warnings"]
    assert "another process wrote it" in found["warnings"][0], found["warnings"]


@unsanitized
def a_damaged_table_is_written_again_as_it_says(folder):
    traces, parts = job(folder / "job", 3, 4), folder / "parts"
    part(traces, parts)
    path = next((parts / "collectives").iterdir())
    path.write_bytes(path.read_bytes()[:100])
    text = pperf("ranks", parts, check=2)
    assert "remove %s" % manifests(parts)[0] in text and len(text.splitlines()) == 1, text
    manifests(parts)[0].unlink()
    assert "3 written" in part(traces, parts)
    same(traces, parts)


@unsanitized
def a_hang_says_where_the_absent_rank_is(folder):
    traces, parts = job(folder / "job", 8, 20, "hang=12", "absent=3"), folder / "parts"
    part(traces, parts)
    text = pperf("ranks", parts)
    assert "hang       7 ranks wait for rank 3 in collective" in text, text
    assert "rank 3 has not requested it: thread 1 is in `enumerate(DataLoader)" in text and " or longer\n" in text, text


@unsanitized
def a_restart_is_compared_with_its_own_attempt(folder):
    """Rank 2 of the second attempt is cut: its whole trace of the first one is not taken."""
    traces, parts = job(folder / "job", 4, 24, "prefix=old"), folder / "parts"
    job(folder / "job", 4, 24, "prefix=new", "start=1700000100000000000", "pid=2000")
    os.truncate(traces / "new00002.bin", (traces / "new00002.bin").stat().st_size * 3 // 4)
    part(traces, parts)
    found = same(traces, parts)
    assert found["traces"]["superseded"] == 4 and found["traces"]["cut"] == 1 and 0 < found["matched"] < 24 * 24, found["traces"]
    assert all("new" in row["file"] for row in found["rows"]) and all(abs(row["offset_ns"] or 0) < 10 ** 9 for row in found["rows"])
    text = pperf("ranks", parts)
    assert "of single ranks have no match, or fewer than 95 % of the ranks have them (--quorum)" in text, text


PYTHON = """
import gc, importlib.util, json, sys
import pperf
folder, none = sys.argv[1:3]
ranks, places, steps = pperf.ranks(folder), pperf.places(folder), pperf.steps(folder)
gc.collect()
parts = pperf.parts(folder)
of_each = parts.query("select rank, count(*) n from collectives group by rank order by rank")
waits = parts.query("select rank, wait_ns from rank_waits order by rank").fetchall()
assert waits == ranks.project("rank, wait_ns").fetchall() == parts.ranks().project("rank, wait_ns").fetchall()
made = {"df": "pandas", "pl": "polars", "arrow": "pyarrow"}
for method, module in made.items():
    if importlib.util.find_spec(module):
        table = getattr(of_each, method)()
        assert getattr(table, "num_rows", None) or len(table.read_all() if hasattr(table, "read_all") else table) == 3, method
for wrong in (lambda: parts.query("select * from read_text('/etc/passwd')"), lambda: parts.query("select nothing"), lambda: pperf.ranks(none)):
    try:
        wrong()
        raise SystemExit("not refused")
    except Exception as error:
        assert type(error).__name__ == "PartsError" and len(str(error).splitlines()) == 1, repr(error)
columns = {name: relation.columns for name, relation in (("ranks", ranks), ("places", places), ("steps", steps))}
print(json.dumps([columns, of_each.fetchall(), sum(n or 0 for n, in places.project("calls").fetchall()), len(steps.fetchall())]))
with pperf.parts([folder]) as again:
    assert again.query("select count(*) from processes").fetchall() == [(3,)]
"""


@unsanitized
def python_has_relations_of_the_parts(folder):
    traces, parts = job(folder / "job", 3, 4), folder / "parts"
    part(traces, parts)
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    result = subprocess.run([str(ENGINES), "-c", PYTHON, str(parts), str(folder / "none")], capture_output=True, text=True, timeout=300,
                            env=environment(PYTHONPATH="%s:%s" % (ROOT / "python", ROOT / "preload" / "user")))
    assert result.returncode == 0, result.stderr[-1500:]
    columns, counts, calls, steps = json.loads(result.stdout)
    assert counts == [[rank, 96] for rank in range(3)] and steps == 4
    assert calls == sum(row["calls"] or 0 for row in json.loads(pperf("tree", parts, "-f", "json"))["rows"])
    assert columns["steps"] == list(json.loads(pperf("steps", parts, "-f", "json"))["rows"][0]) and "wait_ns" in columns["ranks"]
    assert columns["places"] == list(json.loads(pperf("tree", parts, "-f", "json"))["rows"][0])


# ---- hostile parts ----

@unsanitized
def hostile_parts_are_refused_in_a_sentence(folder):
    traces, good = job(folder / "job", 2, 2), folder / "parts"
    part(traces, good)
    name = manifests(good)[0].stem
    header = gzip.decompress((good / "collectives" / (name + ".csv.gz")).read_bytes()).split(b"\n")[0] + b"\n"
    rows = len(table(good, "collectives"))
    bomb = gzip.compress(header + b"1,0,0,0,1,1,2,,,0,0,0,0\n" * 3000000, 9)
    cases = {
        "no manifest": lambda p: shutil.rmtree(p / "manifest"),
        "not JSON": lambda p: manifests(p)[0].write_text("{"),
        "deep JSON": lambda p: manifests(p)[0].write_text("[" * 100000),
        "another schema": lambda p: rewritten(p, lambda m: m.update(schema="pperf.part/2")),
        "a list": lambda p: rewritten(p, lambda m: [1]),
        "another task": lambda p: rewritten(p, lambda m: m.update(task="../../../etc/pas")),
        "an SQL column": lambda p: rewritten(p, lambda m: m["tables"]["collectives"]["columns"].append(["x'); drop", "BIGINT"])),
        "another type": lambda p: rewritten(p, lambda m: m["tables"]["collectives"]["columns"][3].__setitem__(1, "VARCHAR")),
        "a column less": lambda p: rewritten(p, lambda m: m["tables"]["collectives"]["columns"].pop()),
        "rows that cannot be": lambda p: rewritten(p, lambda m: m["tables"]["collectives"].update(rows=10 ** 15)),
        "negative rows": lambda p: rewritten(p, lambda m: m["tables"]["collectives"].update(rows=-1)),
        "fewer rows": lambda p: rewritten(p, lambda m: m["tables"]["collectives"].update(rows=rows + 1)),
        "more rows": lambda p: rewritten(p, lambda m: m["tables"]["collectives"].update(rows=rows - 1)),
        "a file less": lambda p: (p / "sites" / (name + ".csv.gz")).unlink(),
        "a cut file": lambda p: os.truncate(p / "collectives" / (name + ".csv.gz"), 1000),
        "cut, and the manifest agrees": lambda p: replaced(p, "collectives", (p / "collectives" / (name + ".csv.gz")).read_bytes()[:1000]),
        "not gzip": lambda p: replaced(p, "collectives", b"x" * 5000),
        "wrong types": lambda p: replaced(p, "collectives", gzip.compress(header + b"a,b,c,d,e,f,g,h,i,j,k,l,m\n" * rows)),
        "other columns": lambda p: replaced(p, "collectives", gzip.compress(b"a\n" + b"1\n" * rows)),
        "huge numbers": lambda p: replaced(p, "collectives", gzip.compress(header + b"1,0,0,0,1,99999999999999999999,2,,,0,0,0,0\n" * rows)),
        "an unknown kind": lambda p: replaced(p, "collectives", gzip.compress(header + b"%d,0,0,0,99,1,2,,,0,0,0,0\n" % 1 * rows)),
        "a bomb": lambda p: replaced(p, "collectives", bomb),
    }
    for what, change in cases.items():
        parts = folder / what.replace(" ", "-")
        shutil.copytree(good, parts)
        change(parts)
        text = pperf("ranks", parts, check=2)
        assert text.startswith("pperf: ") and len(text.splitlines()) == 1 and len(text) < 900 and "Traceback" not in text, (what, text)


# ---- Dask ----

def contents(parts):
    """The tables of all tasks, without the manifests, which have times."""
    return {str(path.relative_to(parts)): path.read_bytes() for path in parts.rglob("*.csv.gz")}


def written_file(parts, deadline):
    """Waits until a task has written something. False: not until the deadline."""
    while time.monotonic() < deadline:
        if list(parts.glob("*/*")):
            return True
        time.sleep(0.01)
    return False


def overwrite(paths):
    """Makes traces unreadable that look as before, so that reading one of them shows."""
    for path in map(pathlib.Path, paths):
        before = path.stat()
        path.write_bytes(b"x" * before.st_size)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@unsanitized
def dask_has_the_same_answer_with_a_killed_worker_and_resumes(folder):
    traces, parts, quiet = job(folder / "job", 32, 10, "straggler=3"), folder / "parts", folder / "quiet"
    with Cluster(folder) as cluster:
        pperf("part", traces, "-o", quiet, "--dask", cluster.file)
        running = subprocess.Popen([str(ROOT / "scripts" / "pperf"), "part", str(traces), "-o", str(parts), "--dask", str(cluster.file)],
                                   env=environment(PPERF_PYTHON=str(ENGINES), PPERF_REPORT=str(REPORT)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert written_file(parts, time.monotonic() + 120)
        cluster.processes[-1].kill()
        out, error = running.communicate(timeout=240)
        assert running.returncode == 0, error[-800:]
        assert contents(parts) == contents(quiet) and not list(parts.rglob("*.tmp"))
        want, got = (json.loads(pperf("ranks", p, "-f", "json", *o)) for p, o in ((quiet, ()), (parts, ("--dask", cluster.file, "--dask-from", 0))))
        assert want == got and got["matched"] == 240
        assert want == json.loads(report("ranks", traces, "-f", "json").stdout)
        lost = manifests(parts)[:3]
        count = sum(len(json.loads(path.read_text())["traces"]) for path in lost)
        for path in lost:
            path.unlink()
        overwrite({entry["file"] for path in manifests(parts) for entry in json.loads(path.read_text())["traces"]})
        assert "32 traces: %d written, %d were there" % (count, 32 - count) in pperf("part", traces, "-o", parts, "--dask", cluster.file)
        assert contents(parts) == contents(quiet)


PIECES = """
import os, sys
from pperf_parts import executors, output, parts, ranks
folder, scheduler, ranks.CELLS = sys.argv[1], sys.argv[2], int(sys.argv[3])
executor = executors.OnDask(scheduler) if scheduler else executors.Here()
started = []
if scheduler:
    at = executor.at
    def counted(home, function, *rest):
        started.append(function.__name__)
        if function.__name__ == "sums_of" and len(sys.argv) > 4:
            os.kill(int(sys.argv.pop()), 9)
        return at(home, function, *rest)
    executor.at = counted
tables = [t for t in parts.TABLES if t not in ("places", "spreads", "steps", "findings") and not (scheduler and t == "collectives")]
with parts.Parts(folder, tables) as opened:
    document = ranks.as_json(ranks.Ranks(opened, executor=executor))
output.put_json(document, sys.stdout)
print(started.count("make_blocks"), len(executor.read) if scheduler else 0, file=sys.stderr)
"""


@unsanitized
def pieces_on_any_number_of_workers_have_the_same_bytes(folder):
    """The workers hold the collectives. Of 48 ranks, only those are brought that name the call paths."""
    traces, parts = job(folder / "job", 48, 10, "groups=4x3x4", "straggler=5"), folder / "parts"
    os.truncate(traces / "rank00010.bin", (traces / "rank00010.bin").stat().st_size // 2)
    for index in range(5):
        part(traces, parts, "--share", "--no-findings", env={"SLURM_PROCID": str(index), "SLURM_NTASKS": "5"})

    def answer(scheduler, cells, *killed):
        result = subprocess.run([str(ENGINES), "-c", PIECES, str(parts), str(scheduler), str(cells), *map(str, killed)], capture_output=True, text=True, timeout=300,
                                env=environment(PYTHONPATH=str(ROOT / "python")))
        assert result.returncode == 0, result.stderr[-1500:]
        return result.stdout, *map(int, result.stderr.split()[-2:])
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    whole = answer("", 1 << 21)[0]
    assert answer("", 300)[0] == whole
    for workers in 1, 2, 3:
        (folder / str(workers)).mkdir()
        with Cluster(folder / str(workers), workers) as cluster:
            text, pieces, brought = answer(cluster.file, 300)
            assert text == whole and pieces > 10 and brought <= 4 * 40, (pieces, brought)
            if workers == 2: # one dies while the other computes: what it held is read again
                assert answer(cluster.file, 300, cluster.processes[-1].pid)[0] == whole


IMPATIENT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}


@unsanitized
def few_collectives_are_merged_without_dask(folder):
    """Dask's client alone takes about as long. A scheduler that is not there does no harm then."""
    traces, parts = job(folder / "job", 4, 4), folder / "parts"
    part(traces, parts)
    nowhere = "--dask", "tcp://127.0.0.1:1"
    assert pperf("ranks", parts, "-f", "json", *nowhere) == pperf("ranks", parts, "-f", "json")
    result = subprocess.run([str(ROOT / "scripts" / "pperf"), "ranks", str(parts), *nowhere], capture_output=True, text=True,
                            env=environment(PPERF_PYTHON=str(ENGINES), PPERF_REPORT=str(REPORT)))
    assert result.stderr == "pperf: 384 collectives are merged here: Dask is used from 500000 on (--dask-from)\n", result.stderr
    assert "no Dask scheduler can be reached" in pperf("ranks", parts, *nowhere, "--dask-from", 384, check=2, **IMPATIENT)


PEERS = """
import pathlib, sys
from pperf_parts import blame, parts, ranks
for folder in sys.argv[1:]:
    with parts.Parts(folder, ("processes", "communicators", "collectives", "sites", "requests", "ends")) as opened:
        found, result = [], ranks.Ranks(opened)
        for ranks.PEERS in 2, 1000:
            result.find_stragglers()
            result.choose_places()
            blame.blame(result)
            found.append((result.stragglers[0].rank, result.stragglers[0].path, len(result.reads)))
    print(pathlib.Path(folder).name, found[0][:2] == found[1][:2], found[0][2], found[1][2], *found[0][:2])
"""


@unsanitized
def few_peers_name_the_place_that_all_name(folder):
    """Of 9 ranks 2 are compared with the straggler, which is another one in each of 20 jobs."""
    for seed in range(20):
        traces = job(folder / ("job%d" % seed), 9, 4, "straggler=%d" % (seed * 7 % 9), "seed=%d" % seed)
        part(traces, folder / str(seed), "--no-findings")
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    result = subprocess.run([str(ENGINES), "-c", PEERS, *(str(folder / str(seed)) for seed in range(20))], capture_output=True, text=True, timeout=300,
                            env=environment(PYTHONPATH=str(ROOT / "python"), PPERF_REPORT=str(REPORT)))
    assert result.returncode == 0, result.stderr[-1500:]
    place = "['enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__']"
    lines = [line.split() for line in result.stdout.splitlines()]
    assert len(lines) == 20
    for seed, (name, same_place, few, every, rank, *path) in enumerate(lines):
        assert (name, same_place, rank, "".join(path)) == (str(seed), "True", str(seed * 7 % 9), place) and int(few) <= 4 and int(every) == 9, lines[seed]


@unsanitized
def little_memory_has_the_same_answer(folder):
    """The tables of 200,000 collectives, in one task or in nine, in their order or in none."""
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    for name, tasks in ("one", 1), ("many", 9):
        subprocess.run([str(ENGINES), str(ROOT / "tests" / "support" / "synthetic_parts.py"), str(folder / name), "400", "500", str(tasks)], check=True)
    want = pperf("ranks", folder / "one", "-f", "json")
    path = next((folder / "one" / "collectives").glob("*.parquet"))
    code = "import duckdb, sys; duckdb.sql(\"copy (select * from '%s' order by hash(seq, rank)) to '%s.new' (format parquet)\" % (sys.argv[1], sys.argv[1]))"
    subprocess.run([str(ENGINES), "-c", code, str(path)], check=True)
    os.replace(str(path) + ".new", path)
    answers = [pperf("ranks", folder / name, "-f", "json", *options) for name, options in
               (("one", ()), ("many", ()), ("many", ("--memory", "40MB")))]
    assert all(answer == want for answer in answers)
    found = json.loads(want)
    assert found["matched"] == 500 and len(found["rows"]) == 400 and [one["rank"] for one in found["stragglers"]] == [3], found["stragglers"]


@unsanitized
def processes_and_parquet_have_the_same_answer(folder):
    traces, parts = job(folder / "job", 8, 6, "straggler=3"), folder / "parts"
    assert "8 traces: 8 written, 0 were there" in pperf("part", traces, "-o", parts, "-j", 3, "--parquet")
    assert len(manifests(parts)) == 3 and len(list(parts.glob("*/*.parquet"))) == 30
    for path in parts.glob("*/*.csv.gz"):
        path.unlink()
    same(traces, parts)
    path = next(parts.glob("collectives/*.parquet"))
    path.write_bytes(path.read_bytes()[:200])
    assert len(pperf("ranks", parts, check=2).splitlines()) == 1


@unsanitized
def a_scheduler_that_is_not_there_is_named(folder):
    traces, parts = job(folder / "job", 2, 2), folder / "parts"
    text = pperf("part", traces, "-o", parts, "--dask", "tcp://127.0.0.1:1", check=2, **IMPATIENT)
    assert "pperf: no Dask scheduler can be reached" in text, text


@case
def without_the_engine_a_sentence_says_what_to_install(folder):
    traces, parts = job(folder / "job", 2, 2), folder / "parts"
    part(traces, parts)
    result = subprocess.run([str(ROOT / "scripts" / "pperf"), "ranks", str(parts)], capture_output=True, text=True,
                            env=environment(PPERF_PYTHON="/usr/bin/python3", PYTHONNOUSERSITE="1", PYTHONPATH=""))
    assert result.returncode == 0 or "pip install 'pperf[query]'" in result.stderr, result.stderr


if __name__ == "__main__":
    main()
