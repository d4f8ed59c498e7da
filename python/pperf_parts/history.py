# SPDX-License-Identifier: MIT
"""A history of runs, such as nightly ones: Hive-partitioned Parquet in a folder, one file per table
and run, and the search for places that became slower.

The value of a place is its GPU time per rank and step (CPU time if the job has no GPU). Its baseline
is the last WINDOW nights that were not regressions themselves: their median, and their spread by the
quartiles. A place is slower in a night if its value exceeds the baseline by PERCENT % and by
DEVIATIONS robust deviations. One slow night is a suspicion; two in a row are a regression. Nights
that were slower stay out of the baseline until somebody accepts them."""
import datetime, os, re
from pperf_parts import PartsError

TABLES = ("runs", "place_runs", "rank_runs", "step_runs", "spread_runs", "accepted")
WINDOW, NIGHTS_MIN, PERCENT, DEVIATIONS, FLOOR, CONFIRMED = 14, 7, 3.0, 3.0, 0.002, 2
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
    for command in regressions, accept:
        command.add_argument("history", metavar="HISTORY")
    for command in add, regressions, accept:
        command.add_argument("--job", required=True, metavar="NAME", help="the name of the job")
        command.add_argument("--night", metavar="YYYY-MM-DD", help="the night (add: that of the run's begin, UTC; else the newest)")
    regressions.add_argument("-f", "--format", choices=("text", "json", "csv"), default="text")
    regressions.add_argument("-n", "--top", type=int, default=20, metavar="N", help="rows of text; 0: all (20)")


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


def rows_of(db, folder, table, job, columns):
    from pperf_parts.parts import engine, quoted
    pattern = os.path.join(folder, table, "job=" + job, "*", "*.parquet")
    try:
        return db.execute("select %s from read_parquet(%s, hive_partitioning = true, hive_types = {'night': varchar, 'job': varchar}, "
                          "union_by_name = true)" % (columns, quoted(pattern))).fetchall()
    except engine().IOException:
        return []
    except engine().Error as error:
        raise PartsError("%s: table %s of job %s cannot be read: %s" % (folder, table, job, str(error).split("\n")[0][:300]))


def values_of(db, folder, job):
    """(nights, places, matrix of values by night and place; NaN: absent). The last run of a night counts."""
    import numpy as np
    runs = {}
    for night, name, started, step in rows_of(db, folder, "runs", job, "night, filename, started_unix_ns, step_p50_ns"):
        key = os.path.basename(name)
        if night not in runs or (started, key) > runs[night][:2]:
            runs[night] = started, key, step
    rows = rows_of(db, folder, "place_runs", job, "night, filename, path, kind, ranks, coalesce(steps, 0), coalesce(gpu_total_ns, 0), coalesce(cpu_total_ns, 0)")
    gpu = any(row[6] for row in rows)
    nights = sorted(runs)
    number = {night: i for i, night in enumerate(nights)}
    places, cells = {(STEPS, "step"): 0}, []
    for night, name, path, kind, ranks, steps, on_gpu, on_cpu in rows:
        value = (on_gpu if gpu else on_cpu) / ranks / max(steps, 1)
        if night in runs and os.path.basename(name) == runs[night][1] and value > 0:
            cells.append((number[night], places.setdefault((path, kind), len(places)), value))
    matrix = np.full((len(nights), len(places)), np.nan)
    for night, place, value in cells:
        matrix[night, place] = value
    for night in nights:
        if runs[night][2]:
            matrix[number[night], 0] = runs[night][2]
    return nights, list(places), matrix


def accepted_of(db, folder, job):
    """{night: paths; None: all}"""
    accepted = {}
    for night, path in rows_of(db, folder, "accepted", job, "night, path"):
        accepted.setdefault(night, set()).add(path or None)
    return accepted


def baselines(window):
    """(number of nights, median, deviation) of each place. `window`: values by place, NaN at the end."""
    import numpy as np
    ordered = np.sort(window, axis=1)
    count = (~np.isnan(ordered)).sum(axis=1)
    rows = np.arange(len(window))

    def quantile(q):
        at = q * np.maximum(count - 1, 0)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, np.maximum(count - 1, 0))
        return ordered[rows, low] + (ordered[rows, high] - ordered[rows, low]) * (at - low)
    middle = quantile(0.5)
    return count, middle, np.maximum((quantile(0.75) - quantile(0.25)) / 1.349, FLOOR * middle)


def examine(nights, places, matrix, accepted):
    """By night and place: the baseline, the deviations from it, and how many nights in a row it was
    slower (missing nights apart)."""
    import numpy as np
    shape = matrix.shape
    window, at = np.full((shape[1], WINDOW), np.nan), np.zeros(shape[1], int)
    middles, deviations, streaks = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, int)
    streak = np.zeros(shape[1], int)
    for n, night in enumerate(nights):
        value, here = matrix[n], ~np.isnan(matrix[n])
        count, middle, deviation = baselines(window)
        enough = here & (count >= NIGHTS_MIN)
        middles[n, enough] = middle[enough]
        deviations[n, enough] = ((value - middle) / deviation)[enough]
        slower = enough & (value > middle * (1 + PERCENT / 100)) & (value - middle > DEVIATIONS * deviation)
        streak = np.where(slower, streak + 1, np.where(here, 0, streak))
        streaks[n] = np.where(slower, streak, 0)
        paths = accepted.get(night, set())
        taken = np.array([None in paths or place[0] in paths for place in places])
        # The level of an accepted night is the new normal. The spread of the baseline is kept.
        window[taken & slower] *= (value / middle)[taken & slower, None]
        streak[taken], streaks[n, taken] = 0, 0
        keep = here & (~slower | taken)
        window[np.flatnonzero(keep), at[keep]] = value[keep]
        at[keep] = (at[keep] + 1) % WINDOW
    return middles, deviations, streaks


def descend(rows):
    """Of the places that became slower, the outermost ones, and for each the deepest place in it that
    has more than half of the excess."""
    by_path = sorted(rows, key=lambda row: row["path"].count("/"))
    inside = [(a, b) for a in by_path for b in by_path if b["path"].startswith(a["path"] + "/")]
    within = {id(row): [b for a, b in inside if a is row] for row in by_path}
    outermost = [row for row in by_path if not any(b is row for _, b in inside)]
    for row in outermost:
        place = row
        while True:
            deeper = [b for b in within[id(place)] if b["more_ns"] * 2 > place["more_ns"]]
            if not deeper:
                break
            place = min(deeper, key=lambda b: (b["path"].count("/"), -b["more_ns"]))
        row["in"] = place["path"]
    return sorted(outermost, key=lambda row: -row["more_ns"])


def regressions_of(folder, job, night=None):
    """(night, rows of the places that are slower in that night)."""
    db = connect(folder, job)
    nights, places, matrix = values_of(db, folder, job)
    accepted = accepted_of(db, folder, job)
    db.close()
    night = night_of(night) if night else nights[-1]
    if night not in nights:
        raise PartsError("job %s has no run in the night %s" % (job, night))
    last = nights.index(night)
    middles, deviations, streaks = examine(nights[:last + 1], places, matrix[:last + 1], accepted)
    rows = []
    for place in (streaks[last] > 0).nonzero()[0]:
        streak = int(streaks[last, place])
        slow = (streaks[:, place] > 0).nonzero()[0]
        value, middle = matrix[last, place], middles[last, place]
        rows.append({"state": "regression" if streak >= CONFIRMED else "suspicion", "path": places[place][0], "kind": places[place][1],
                     "since": nights[slow[-streak]], "nights": streak, "before_ns": round(middle), "after_ns": round(value), "more_ns": round(value - middle),
                     "percent": round(100 * (value / middle - 1), 2), "deviations": round(float(deviations[last, place]), 1)})
    steps = [dict(row, **{"in": row["path"]}) for row in rows if row["path"] == STEPS]
    return night, steps + descend([row for row in rows if row["path"] != STEPS])


def regressions(options, out):
    from pperf_parts import output
    night, rows = regressions_of(options.history, options.job, options.night)
    if options.format == "json":
        output.put_json({"schema": "pperf.history/1", "job": options.job, "night": night, "rows": rows}, out)
    elif options.format == "csv":
        output.put_csv(rows, out)
    elif rows:
        output.put_table(rows, ["state", "since", "nights", "before_ns", "after_ns", "percent", "deviations", "path", "in"], out, options.top)
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
    return {"add": add, "regressions": regressions, "accept": accept}[options.action](options, out)
