# SPDX-License-Identifier: MIT
"""A history of runs, such as nightly ones: Hive-partitioned Parquet in a folder, one file per table
and run. trends.py finds what became slower."""
import argparse, contextlib, datetime, difflib, glob, os, re, sys
from pperf_parts import PartsError
from pperf_parts.output import escaped, put_warnings

TABLES = ("runs", "place_runs", "rank_runs", "step_runs", "spread_runs", "accepted")
JOB, NIGHT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"), re.compile(r"\d{4}-\d{2}-\d{2}")
STEPS = "(duration of a step)"
NAMED_MAX, NEAR_MAX = 8, 3

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
    add.add_argument("--to", required=True, type=not_empty, metavar="HISTORY", help="the folder of the history")
    add.add_argument("--run", metavar="ID", help="the run to add, if the parts are of several (the one with the most ranks; if several have as many, the last)")
    regressions = which.add_parser("regressions", help="what became slower; exit status 1 if there is a regression")
    accept = which.add_parser("accept", help="take the newest night, or --night, as the new normal")
    accept.add_argument("--path", type=not_empty, metavar="PATH", help="only this place (all)")
    trends = which.add_parser("trends", help="all nights: the job's time, and what changed since when")
    html = which.add_parser("html", help="the trends as one page of HTML, which loads nothing from a network")
    html.add_argument("-o", "--output", required=True, metavar="FILE", help="the page")
    for command in regressions, accept, trends, html:
        command.add_argument("history", type=not_empty, metavar="HISTORY")
    for command in add, regressions, accept, trends, html:
        command.add_argument("--job", required=True, type=job_name, metavar="NAME", help="the name of the job")
        command.add_argument("--night", type=night_of, metavar="YYYY-MM-DD", help="the night (add: that of the run's begin, UTC; else the newest)")
    for command in regressions, trends:
        command.add_argument("-f", "--format", choices=("text", "json", "csv"), default="text")
        command.add_argument("-n", "--top", type=int, default=20, metavar="N", help="rows of text; 0: all (20)")


# The types of arguments. The parser prints what they raise, and exits with 64.

def not_empty(text):
    if not text:
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def job_name(text):
    if not JOB.fullmatch(text):
        raise argparse.ArgumentTypeError("'%s' is no name of a job: it has letters, digits, '.', '_' and '-', at most 100, and begins with a letter or digit" % escaped(text[:100]))
    return text


def night_of(text):
    try:
        if not NIGHT.fullmatch(text):
            raise ValueError
        return str(datetime.date.fromisoformat(text))
    except ValueError:
        raise argparse.ArgumentTypeError("'%s' is no night such as 2026-11-23" % escaped(text[:100]))


def warn(warnings):
    put_warnings(warnings, sys.stderr, rest="")


def counted(number, one, several=None):
    return "%d %s" % (number, one if number == 1 else several or one + "s")


def reason_of(error):
    """The reason of an OSError or an error of DuckDB in one line."""
    return getattr(error, "strerror", None) or " ".join(str(error).split("\n")[0].split())[:300]


# ---- adding ----

def write(db, folder, table, job, night, name, sql):
    from pperf_parts.parts import engine, quoted
    path = file_of(folder, table, job, night, name + ".parquet")
    temporary = "%s.%d.tmp" % (path, os.getpid())
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        db.execute("copy (%s) to %s (format parquet, compression zstd)" % (sql, quoted(temporary)))
        os.replace(temporary, path)
    except (OSError, engine().Error) as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise PartsError(escaped("%s: cannot be written: %s; see that the disk has space and that you may write to the folder, and run the command again" % (path, reason_of(error))))


def file_of(folder, table, job, night, name):
    return os.path.join(folder, table, "job=" + job, "night=" + night, name)


# ---- what is not added ----

def named_run(run):
    return "run %016x" % (run & ((1 << 64) - 1))


def other_runs(inputs):
    """A warning for each run that the parts have beside the one that is added."""
    runs = {}
    for item in inputs:
        if item.status == "other_run":
            runs.setdefault(item.run_id, []).append(item)
    return ["%s is not added: the parts have %s of it, such as %s (--run %x adds it)" % (named_run(run), counted(len(members), "trace"), members[0].file, run) for run, members in runs.items()]


def missing_ranks(shown):
    """Where the traces do not say how many ranks there are, these end with the last one that has a trace."""
    ranks = {item.rank for item in shown}
    world_size = max(item.world_size or 0 for item in shown)
    end = max(max(ranks) + 1, world_size)
    missing = sorted(set(range(end)) - ranks) if min(ranks) >= 0 and (world_size or end <= 2 * len(ranks)) else []
    if not missing:
        return []
    more = " and %d more" % (len(missing) - NAMED_MAX) if len(missing) > NAMED_MAX else ""
    return ["rank%s %s%s of %d %s no usable trace" % ("s" if len(missing) > 1 else "", ", ".join(map(str, missing[:NAMED_MAX])), more, end, "have" if len(missing) > 1 else "has")]


def without_ranks(shown):
    """Processes without a rank are never of another run."""
    runs = {item.run_id for item in shown if item.rank < 0}
    return ["the parts have traces without ranks of %d runs, which are added as one run" % len(runs)] if len(runs) > 1 else []


def warnings_of(inputs):
    shown = [item for item in inputs if item.is_used or item.status == "no_collectives"]
    return other_runs(inputs) + missing_ranks(shown) + without_ranks(shown) + [item.why for item in inputs if item.is_fault and item.status != "other_run" and item.why]


def which_counts(db, folder, job, night, file, started):
    """Which run of a night counts, in words, if the night has others than the one in `file`."""
    found = read_table(db, folder, "runs", job, "select parse_filename(filename), started_unix_ns from %s", night, but=file)
    others = found.fetchall() if found else []
    if not others:
        return ""
    newest = max((started, file) for file, started in others)
    last = "this one" if (started, file) > newest else newest[1][:-len(".parquet")].replace("=", " ") + ", not this one"
    return "; of the %d runs of this night only the one that began last counts: %s" % (len(others) + 1, last)


def add(options, out):
    from pperf_parts import views
    from pperf_parts.parts import Parts, engine, fill, text_of
    job, results = options.job, {}
    with Parts(options.parts, ("processes", "places", "steps", "spreads")) as parts:
        warn(warnings_of(views.show(parts, run=options.run)))
        tables = {"place_runs": PLACES, "rank_runs": RANK_RUNS, "step_runs": views.STEPS, "spread_runs": SPREADS, "runs": RUNS}
        for name, sql in tables.items():
            found = parts.execute(sql, ())
            results[name] = found.description, found.fetchall()
    run = dict(zip([d[0] for d in results["runs"][0]], results["runs"][1][0]))
    night = options.night or str(datetime.datetime.fromtimestamp(run["started_unix_ns"] // 10 ** 9, datetime.timezone.utc).date())
    name = "run=%016x" % ((run["run_id"] or run["started_unix_ns"]) & ((1 << 64) - 1))
    db = engine().connect(config={"memory_limit": "2GB"})
    counts = which_counts(db, options.to, job, night, name + ".parquet", run["started_unix_ns"])
    for table, (description, rows) in results.items(): # runs is the last: a run is there if its row is
        db.execute("create table incoming (%s)" % ", ".join('"%s" %s' % (d[0], d[1]) for d in description))
        fill(db, "incoming", [[text_of(v) if isinstance(v, str) else v for v in row] for row in rows])
        write(db, options.to, table, job, night, name, "select * from incoming")
        db.execute("drop table incoming")
    db.close()
    out.write("added %s to the night %s of job %s: %s, %s%s\n" % (
        name.replace("=", " "), night, job, counted(run["processes"], "process", "processes"), counted(len(results["place_runs"][1]), "place"), counts))
    return 0


# ---- reading ----

def connect(folder, job):
    from pperf_parts.parts import engine
    if not os.path.isdir(os.path.join(folder, "runs", "job=" + job)):
        name = escaped(folder)
        raise PartsError("%s: has no run of job %s; add one by: pperf history add PARTS --to %s --job %s" % (name, job, name, job))
    return engine().connect(config={"memory_limit": "2GB", "autoinstall_known_extensions": "false"})


def read_table(db, folder, table, job, sql, night="*", file="*.parquet", but=None):
    """Executes SQL with %s for a table of the history: of all nights, or one; of all files, or one, or
    all `but` one. None: there is no such file."""
    from pperf_parts.parts import engine, quoted
    paths = [path for path in glob.glob(file_of(glob.escape(folder), table, job, night, file)) if os.path.basename(path) != but]
    if not paths:
        return None
    try:
        return db.execute(sql % ("read_parquet([%s], hive_partitioning = true, hive_types = {'night': varchar, 'job': varchar}, union_by_name = true, "
                                 "filename = true)" % ", ".join(map(quoted, paths))))
    except engine().Error as error:
        raise PartsError(escaped("%s: table %s of job %s cannot be read: %s; remove the damaged file, and add its run again" % (folder, table, job, reason_of(error))))


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
    read_table(db, folder, "place_runs", job, "create table cells as select %s from %s read join shown on read.night = shown.night and parse_filename(filename) = file" % (cells, "%s"))
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


def chosen_run(runs, folder, job, night):
    """The run of `night`, or of the newest one. It has its places, or is refused."""
    night = night or max(runs, default=None)
    if night not in runs:
        raise PartsError("job %s has no run in the night %s" % (job, night) if night else escaped("%s: has no run of job %s that can be read" % (folder, job)))
    missing = [table for table in TABLES[1:5] if not has_table(folder, table, job, runs[night])]
    if "place_runs" in missing:
        raise PartsError(escaped("the night %s of job %s cannot be compared: its table place_runs is missing (%s); add its run again, or choose another night with --night" % (
            night, job, file_of(folder, "place_runs", job, night, runs[night]["file"]))))
    if missing:
        warn(["the night %s has no table %s; its places are compared all the same" % (night, ", ".join(missing))])
    return runs[night]


def has_table(folder, table, job, run):
    return os.path.isfile(file_of(folder, table, job, run["night"], run["file"]))


def lost_sentence(lost):
    """Of nights without places."""
    more = " and %d more" % (len(lost) - NAMED_MAX) if len(lost) > NAMED_MAX else ""
    return "%s left out because the table place_runs is missing: %s%s" % ("1 night is" if len(lost) == 1 else "%d nights are" % len(lost), ", ".join(lost[:NAMED_MAX]), more)


def read_trends(folder, job, night=None):
    """The nights up to `night`, or the newest: (Trends, runs by night, accepted, whether values are GPU
    time, nights that are left out because they have no places)."""
    from pperf_parts.trends import Trends
    db = connect(folder, job)
    runs, accepted = read_runs(db, folder, job), accepted_of(db, folder, job)
    night = chosen_run(runs, folder, job, night)["night"]
    lost = sorted(key for key, run in runs.items() if key <= night and not has_table(folder, "place_runs", job, run))
    if lost:
        warn([lost_sentence(lost)])
    runs = {key: run for key, run in runs.items() if key <= night and key not in lost}
    places, values, gpu = read_values(db, folder, job, runs)
    db.close()
    nights = sorted(runs)
    return Trends(nights, places, values, [runs[night]["steps"] > 0 for night in nights], accepted), runs, accepted, gpu, lost


def regressions(options, out):
    from pperf_parts import output
    trends, *_, lost = read_trends(options.history, options.job, options.night)
    night, rows, not_compared = trends.nights[-1], trends.rows(len(trends.nights) - 1), trends.not_compared()
    if options.format == "json":
        output.put_json(dict({"schema": "pperf.history/1", "job": options.job, "night": night}, **trends.extent(), nights_left_out=lost, rows=rows), out)
    elif options.format == "csv":
        output.put_csv(rows, out)
        if not_compared and not trends.extent()["compared"]:
            warn([not_compared])
    elif rows:
        output.put_table(rows, ["state", "since", "nights", "before_ns", "after_ns", "percent", "deviations", "p", "path", "in"], out, options.top)
    elif trends.no_place_is_slower():
        out.write("job %s: %s\n" % (options.job, trends.no_place_is_slower()))
    if not_compared and options.format == "text":
        out.write("job %s: %s\n" % (options.job, not_compared))
    return 1 if any(row["state"] == "regression" for row in rows) else 0


def accept(options, out):
    from pperf_parts.parts import quoted
    db = connect(options.history, options.job)
    run = chosen_run(read_runs(db, options.history, options.job), options.history, options.job, options.night)
    night = run["night"]
    path = place_named(db, options.history, options.job, run, options.path) if options.path else ""
    name = "accepted=%s" % (hex(hash_of(path))[2:])
    write(db, options.history, "accepted", options.job, night, name, "select %s path, %d accepted_unix_ns" % (
        quoted(path), int(datetime.datetime.now(datetime.timezone.utc).timestamp()) * 10 ** 9))
    db.close()
    out.write("accepted %s of job %s in the night %s as the new normal\n" % (escaped(path) or "all places", options.job, night))
    return 0


def place_named(db, folder, job, run, text):
    """The path of the place of a run that is printed as `text`."""
    found = read_table(db, folder, "place_runs", job, "select distinct path from %s order by path", run["night"], run["file"])
    paths = [STEPS] + [row[0] for row in found.fetchall()]
    for path in paths:
        if text in (path, escaped(path)):
            return path
    near = ([path for path in paths if text.lower() in path.lower()] + difflib.get_close_matches(text, paths, NEAR_MAX))[:NEAR_MAX]
    raise PartsError(escaped("the night %s of job %s has no place %s%s" % (run["night"], job, text[:300], "; near ones are " + ", ".join(near) if near else "; pperf history trends -f json lists them")))


def hash_of(text):
    import zlib
    return zlib.crc32(text.encode())


def run(options, out):
    actions = {"add": add, "regressions": regressions, "accept": accept}
    if options.action not in actions:
        from pperf_parts import history_page
        actions = {"trends": history_page.trends, "html": history_page.html}
    try:
        return actions[options.action](options, out)
    except OSError as error:
        if not error.filename:  # of standard output
            raise
        raise PartsError(escaped("%s: %s; see that the disk has space and that you may read and write there" % (error.filename, reason_of(error))))
