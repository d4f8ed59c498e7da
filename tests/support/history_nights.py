# SPDX-License-Identifier: MIT
"""history_nights.py FOLDER: writes a history of the job `nightly` from JSON on standard input, a list
of [night, steps, duration of a step, [[path, kind, ns per rank and step] ...]]. `make scale-peers` has
the Python for it. In place of a list of places, [count, seed, slower from night, percent] makes some
with noise of 1 %; of these, number 500 becomes slower."""
import datetime, json, os, random, sys

RANKS = 2


def made(night, count, seed, since, percent):
    base = [random.Random(seed + i).randrange(10**5, 10**8) for i in range(count)]
    noise = random.Random(seed * 1000003 + night)
    return [["step/layer.%d/op%d" % (i // 50, i), "op", round(ns * (1 + noise.gauss(0, .01)) * (1 + percent / 100 if i == 500 and night >= since else 1))] for i, ns in enumerate(base)]


def literal(value):
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else "%d" % value


def main(folder):
    import duckdb
    db = duckdb.connect()

    def write(table, night, number, columns, rows):
        place = os.path.join(folder, table, "job=nightly", "night=" + night)
        os.makedirs(place, exist_ok=True)
        db.execute("copy (select * from (values %s) t(%s)) to '%s' (format parquet)" % (
            ", ".join("(%s)" % ", ".join(map(literal, row)) for row in rows), columns, os.path.join(place, "run=%016x.parquet" % number)))
    for number, (night, steps, step_ns, places) in enumerate(json.load(sys.stdin)):
        if places and not isinstance(places[0], list):
            places = made(number, *places)
        start = int(datetime.datetime.fromisoformat(night + "T02:00:00+00:00").timestamp()) * 10**9
        times = max(steps, 1) * RANKS
        write("place_runs", night, number, "path, kind, ranks, steps, gpu_total_ns, cpu_total_ns", [[path, kind, RANKS, steps, ns * times, ns * times] for path, kind, ns in places])
        write("runs", night, number, "started_unix_ns, step_p50_ns, steps, wall_ns, gpu_busy_ns, processes, damaged", [[start, step_ns, steps, step_ns * max(steps, 1), step_ns, RANKS, 0]])


main(*sys.argv[1:])
