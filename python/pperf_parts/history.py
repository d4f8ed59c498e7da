# SPDX-License-Identifier: MIT
"""A history of runs, such as nightly ones: Hive-partitioned Parquet in a folder, one file per table
and run. trends.py finds what became slower."""
import datetime, os, re
from pperf_parts import PartsError

TABLES = ("runs", "place_runs", "rank_runs", "step_runs", "spread_runs", "accepted")
JOB, NIGHT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"), re.compile(r"\d{4}-\d{2}-\d{2}")
STEPS = "(duration of a step)"

PLACES = """
select path, kind, min(depth) as depth, count(*) as ranks, sum(calls)::bigint as calls, sum(gpu_total_ns)::bigint as gpu_total_ns,
    sum(cpu_total_ns)::bigint as cpu_total_ns, min(gpu_total_ns) as gpu_min_ns, max(gpu_total_ns) as gpu_max_ns,
    arg_max(number, (coalesce(gpu_total_ns, -1), -number)) gpu_max_rank, quantile_disc(gpu_total_ns, 0.5) as gpu_p50_ns,
    quantile_disc(gpu_total_ns, 0.95) as gpu_p95_ns, (select max(steps) from processes join shown using (trace)) as steps,
    max(reserved_peak_bytes) as reserved_peak_bytes, max(allocated_peak_bytes) as allocated_peak_bytes
from (select path, kind, min(depth) as depth, number, sum(calls) as calls, sum(gpu_total_ns)::bigint as gpu_total_ns, sum(cpu_total_ns)::bigint as cpu_total_ns,
    max(reserved_peak_bytes) as reserved_peak_bytes, max(allocated_peak_bytes) as allocated_peak_bytes
    from places join shown using (trace) group by path, kind, number)
where calls > 0 or gpu_total_ns > 0 group by path, kind order by path, kind
"""
RUNS = """
select min(run_id) as run_id, min(started_unix_ns) as started_unix_ns, count(*) as processes, max(steps) as steps, max(wall_ns) as wall_ns,
    sum(gpu_busy_ns)::bigint as gpu_busy_ns, sum(gpu_exposed_communication_ns)::bigint as gpu_exposed_communication_ns,
    (select quantile_disc(duration_ns, 0.5) from steps join shown using (trace) where state = 'usual') as step_p50_ns,
    count(*) filter (status <> 'ok' and status <> 'no_collectives') as damaged, max(reserved_peak_bytes) as reserved_peak_bytes,
    coalesce(max(torch), '') as torch, coalesce(max(cuda), '') as cuda, coalesce(max(device), '') as device from processes join shown using (trace)
"""
RANK_RUNS = """
select number as rank, host, wall_ns, gpu_busy_ns, gpu_computation_ns, gpu_communication_ns, gpu_exposed_communication_ns, reserved_peak_bytes, status
from processes join shown using (trace) order by number, trace
"""
SPREADS = """
select path, kind, "of", bucket, sum(count)::bigint as count from spreads join shown using (trace) join (select distinct trace, key, path, kind from places) using (trace, key)
group by path, kind, "of", bucket order by path, kind, "of", bucket
"""


def add_commands(commands):
    history = commands.add_parser("history", help="a history of runs: add one, find what became slower")
    which = history.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=type(history))
    add = which.add_parser("add", help="add the run of parts")
    add.add_argument("parts", nargs="+", metavar="PARTS")
    add.add_argument("--to", required=True, metavar="HISTORY", help="the folder of the history")
    add.add_argument("--run", metavar="ID", help="the run to add, if the parts are of several")
    regressions = which.add_parser("regressions", help="what became slower; exit status 1 if there is a regression")
    accept = which.add_parser("accept", help="take the newest night, or --night, as the new normal")
    accept.add_argument("--path", metavar="PATH", help="only this place (all)")
    trends = which.add_parser("trends", help="all nights: the job's time, and what changed since when")
    html = which.add_parser("html", help="the trends as one page of HTML, which loads nothing from a network")
    html.add_argument("-o", "--output", required=True, metavar="FILE", help="the page")
    for command in regressions, accept, trends, html:
        command.add_argument("history", metavar="HISTORY")
    for command in add, regressions, accept, trends, html:
        command.add_argument("--job", required=True, metavar="NAME", help="the name of the job")
        command.add_argument("--night", metavar="YYYY-MM-DD", help="the night (add: that of the run's begin, UTC; else the newest)")
    for command in regressions, trends:
        command.add_argument("-f", "--format", choices=("text", "json", "csv"), default="text")
        command.add_argument("-n", "--top", type=int, default=20, metavar="N", help="rows of text; 0: all (20)")


def checked(pattern, text, what):
    if not pattern.fullmatch(text):
        raise PartsError("%s is no %s" % (text[:100], what))
    return text


def night_of(text):
    try:
        return str(datetime.date.fromisoformat(checked(NIGHT, text, "night such as 2026-11-23")))
    except ValueError:
        raise PartsError("%s is no day" % text)


# ---- adding ----

def write(db, folder, table, job, night, name, sql):
    from pperf_parts.parts import quoted
    place = os.path.join(folder, table, "job=" + job, "night=" + night)
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, name + ".parquet")
    temporary = "%s.%d.tmp" % (path, os.getpid())
    db.execute("copy (%s) to %s (format parquet, compression zstd)" % (sql, quoted(temporary)))
    os.replace(temporary, path)


def add(options, out):
    from pperf_parts import views
    from pperf_parts.parts import Parts, engine, fill, text_of
    job = checked(JOB, options.job, "name of a job: letters, digits, . _ and -")
    with Parts(options.parts, ("processes", "places", "steps", "spreads")) as parts:
        views.show(parts, run=options.run)
        tables = {"place_runs": PLACES, "rank_runs": RANK_RUNS, "step_runs": views.STEPS, "spread_runs": SPREADS, "runs": RUNS}
        results = {name: parts.db.execute(sql) and (parts.db.description, parts.db.fetchall()) for name, sql in tables.items()}
    run = dict(zip([d[0] for d in results["runs"][0]], results["runs"][1][0]))
    night = night_of(options.night) if options.night else str(datetime.datetime.fromtimestamp(run["started_unix_ns"] // 10 ** 9, datetime.timezone.utc).date())
    name = "run=%016x" % ((run["run_id"] or run["started_unix_ns"]) & ((1 << 64) - 1))
    db = engine().connect(config={"memory_limit": "2GB"})
    for table, (description, rows) in results.items(): # runs is the last: a run is there if its row is
        db.execute("create table incoming (%s)" % ", ".join('"%s" %s' % (d[0], d[1]) for d in description))
        fill(db, "incoming", [[text_of(v) if isinstance(v, str) else v for v in row] for row in rows])
        write(db, options.to, table, job, night, name, "select * from incoming")
        db.execute("drop table incoming")
    db.close()
    out.write("added the run of %s to job %s: %d processes, %d places\n" % (night, job, run["processes"], len(results["place_runs"][1])))
    return 0


# ---- reading ----

def connect(folder, job):
    from pperf_parts.parts import engine
    checked(JOB, job, "name of a job")
    if not os.path.isdir(os.path.join(folder, "runs", "job=" + job)):
        raise PartsError("%s: has no run of job %s; add one by: pperf history add PARTS --to %s --job %s" % (folder, job, folder, job))
    return engine().connect(config={"memory_limit": "2GB", "autoinstall_known_extensions": "false"})


def read_table(db, folder, table, job, sql):
    """Executes SQL with %s for a table of the history. None: the history has no such table."""
    from pperf_parts.parts import engine, quoted
    pattern = os.path.join(folder, table, "job=" + job, "*", "*.parquet")
    try:
        return db.execute(sql % ("read_parquet(%s, hive_partitioning = true, hive_types = {'night': varchar, 'job': varchar}, union_by_name = true, "
                                 "filename = true)" % quoted(pattern)))
    except engine().Error as error:
        if "No files found" in str(error):
            return None
        raise PartsError("%s: table %s of job %s cannot be read: %s" % (folder, table, job, str(error).split("\n")[0][:300]))


def rows_of(db, folder, table, job, columns):
    found = read_table(db, folder, table, job, "select " + columns + " from %s")
    return found.fetchall() if found else []


def read_runs(db, folder, job):
    """{night: row of its run}. The last run of a night counts."""
    runs = {}
    for row in rows_of(db, folder, "runs", job, "night, parse_filename(filename), started_unix_ns, step_p50_ns, coalesce(steps, 0), wall_ns, gpu_busy_ns, processes, damaged"):
        run = dict(zip(("night", "file", "started", "step_ns", "steps", "wall_ns", "gpu_busy_ns", "processes", "damaged"), row))
        if run["night"] not in runs or (run["started"], run["file"]) > (runs[run["night"]]["started"], runs[run["night"]]["file"]):
            runs[run["night"]] = run
    return runs


def read_values(db, folder, job, runs):
    """(places, matrix of values by night and place, NaN: absent; whether they are GPU time)"""
    import numpy as np
    from pperf_parts.parts import fill
    nights = sorted(runs)
    db.execute("create table shown (night varchar, number bigint, file varchar)")
    fill(db, "shown", [[night, i, runs[night]["file"]] for i, night in enumerate(nights)])
    cells = ("number, path, kind, coalesce(gpu_total_ns, 0) / greatest(ranks, 1) / greatest(coalesce(steps, 0), 1) gpu, "
             "coalesce(cpu_total_ns, 0) / greatest(ranks, 1) / greatest(coalesce(steps, 0), 1) cpu")
    if not read_table(db, folder, "place_runs", job, "create table cells as select %s from %s read join shown on read.night = shown.night and parse_filename(filename) = file" % (cells, "%s")):
        return [(STEPS, "step")], step_column(runs, nights), False
    gpu = db.execute("select count(*) from cells where gpu > 0").fetchone()[0] > 0
    db.execute("create table numbered as select path, kind, row_number() over (order by path, kind) as place from cells where %s > 0 group by path, kind" % ("gpu" if gpu else "cpu"))
    places = [(STEPS, "step")] + db.execute("select path, kind from numbered order by place").fetchall()
    found = db.execute("select number, place, %s v from cells join numbered using (path, kind) where v > 0" % ("gpu" if gpu else "cpu")).fetchnumpy()
    matrix = np.full((len(nights), len(places)), np.nan)
    matrix[:, 0] = step_column(runs, nights)[:, 0]
    matrix[found["number"], found["place"]] = found["v"]
    return places, matrix, gpu


def step_column(runs, nights):
    import numpy as np
    return np.array([[runs[night]["step_ns"] or np.nan] for night in nights], dtype=float)


def accepted_of(db, folder, job):
    """{night: paths; None: all}"""
    accepted = {}
    for night, path in rows_of(db, folder, "accepted", job, "night, path"):
        accepted.setdefault(night, set()).add(path or None)
    return accepted


def read_trends(folder, job, night=None):
    """The nights up to `night`, or the newest: (Trends, runs by night, accepted, whether values are GPU time)."""
    from pperf_parts.trends import Trends
    db = connect(folder, job)
    runs, accepted = read_runs(db, folder, job), accepted_of(db, folder, job)
    night = night_of(night) if night else max(runs, default=None)
    if night not in runs:
        raise PartsError("job %s has no run in the night %s" % (job, night))
    runs = {key: run for key, run in runs.items() if key <= night}
    places, values, gpu = read_values(db, folder, job, runs)
    db.close()
    nights = sorted(runs)
    return Trends(nights, places, values, [runs[night]["steps"] > 0 for night in nights], accepted), runs, accepted, gpu


def regressions(options, out):
    from pperf_parts import output
    trends = read_trends(options.history, options.job, options.night)[0]
    night, rows = trends.nights[-1], trends.rows(len(trends.nights) - 1)
    if options.format == "json":
        output.put_json({"schema": "pperf.history/1", "job": options.job, "night": night, "rows": rows}, out)
    elif options.format == "csv":
        output.put_csv(rows, out)
    elif rows:
        output.put_table(rows, ["state", "since", "nights", "before_ns", "after_ns", "percent", "deviations", "p", "path", "in"], out, options.top)
    else:
        out.write("no place of job %s is slower in the night %s than before\n" % (options.job, night))
    return 1 if any(row["state"] == "regression" for row in rows) else 0


def accept(options, out):
    from pperf_parts.parts import quoted
    db = connect(options.history, options.job)
    nights = sorted(row[0] for row in rows_of(db, options.history, "runs", options.job, "distinct night"))
    night = night_of(options.night) if options.night else nights[-1]
    if night not in nights:
        raise PartsError("job %s has no run in the night %s" % (options.job, night))
    path = options.path or ""
    name = "accepted=%s" % (hex(hash_of(path))[2:])
    write(db, options.history, "accepted", options.job, night, name, "select %s path, %d accepted_unix_ns" % (
        quoted(path), int(datetime.datetime.now(datetime.timezone.utc).timestamp()) * 10 ** 9))
    db.close()
    out.write("accepted %s of job %s in the night %s as the new normal\n" % (path or "all places", options.job, night))
    return 0


def hash_of(text):
    import zlib
    return zlib.crc32(text.encode())


def run(options, out):
    if options.action in ("trends", "html"):
        from pperf_parts import history_page
        return getattr(history_page, options.action)(options, out)
    return {"add": add, "regressions": regressions, "accept": accept}[options.action](options, out)
