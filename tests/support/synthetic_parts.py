#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""synthetic_parts.py PARTS RANKS COLLECTIVES [TASKS]: writes the parts of a job whose traces were
never made: each rank has so many all-reduces in one communicator. The same arguments give the same
tables. Needs DuckDB. The tables are Parquet, as `pperf part --parquet` writes them.

Collectives begin every 5 ms. A rank comes 0 to 8 us late by chance, and rank 3 another 400 us in
three of four. All end 40 us after the last began. Rank r has a clock that is off by up to 10 ms and
20 ppm."""
import json, os, pathlib, sys
import duckdb

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from pperf_parts.parts import SCHEMA, TABLES, columns_of

STRAGGLER, APART_NS, LATE_NS, TRANSFER_NS, BEGIN_NS = 3, 5000000, 400000, 40000, 1700000000000000000


def select_list(table, values):
    """The columns of a table, of which those without a value are 0, empty or false."""
    none = {"BIGINT": "0::bigint", "VARCHAR": "''", "BOOLEAN": "false"}
    return ", ".join('%s as "%s"' % (values.get(name, none[kind]), name) for name, kind in columns_of(table))


def rows_of(table, collectives):
    """SQL of the rows of a table, from the table `ranks`."""
    if table == "processes":
        return select_list(table, {
            "trace": "rank + 1000", "rank": "rank", "run_id": "1", "pid": "rank + 1000", "file": "'rank' || lpad(rank::varchar, 5, '0') || '.bin'",
            "status": "'ok'", "ended": "true", "complete": "true", "has_gpu": "true", "gpu_count": "1", "bytes": "1", "content": "rank",
            "started_unix_ns": "%d" % BEGIN_NS, "wall_ns": "%d" % (APART_NS * (collectives + 1))}), "ranks"
    if table == "communicators":
        return select_list(table, {"trace": "rank + 1000", "rank": "rank", "name": "'all'", "named": "true", "first_sequence": "-1",
                                   "count": "%d" % collectives, "requested": "%d" % collectives}), "ranks"
    if table == "sites":
        return select_list(table, {"trace": "rank + 1000", "rank": "rank", "site": "7", "path": "'nccl:all_reduce'"}), "ranks"
    if table == "collectives":
        def clock(time):
            return "%d + %s + off_ns + (%s) * ppb // 1000000000" % (BEGIN_NS, time, time)
        return select_list(table, {
            "trace": "rank + 1000", "rank": "rank", "seq": "seq", "kind": "1", "start_ns": clock("begin_ns"), "end_ns": clock("end_ns"),
            "requested_ns": "begin_ns - 100", "launched_ns": "begin_ns - 100", "exposed_ns": "end_ns - begin_ns", "site": "7"}), \
            "ranks join begins using (rank) join ends using (seq)"
    return select_list(table, {}), "ranks where false"


def make(db, ranks, collectives):
    late = "case when rank = %d and seq %% 4 <> 0 then %d else 0 end" % (STRAGGLER, LATE_NS)
    db.execute("create table ranks as select rank, case when rank = 0 then 0 else (hash(rank) %% 20000000)::bigint - 10000000 end as off_ns, "
               "case when rank = 0 then 0 else (hash(rank, 1) %% 40001)::bigint - 20000 end as ppb from range(%d) t(rank)" % ranks)
    db.execute("create view begins as select rank, seq, 1000000 + seq * %d + (hash(rank, seq) %% 8000)::bigint + %s as begin_ns "
               "from range(%d) r(rank), range(%d) s(seq)" % (APART_NS, late, ranks, collectives))
    db.execute("create table ends as select seq, max(begin_ns) + %d as end_ns from begins group by seq" % TRANSFER_NS)


def write_task(db, parts, number, first, end, collectives):
    name, tables = "%016x" % (number + 1), {}
    for table in TABLES:
        columns, source = rows_of(table, collectives)
        of_task = "rank between %d and %d" % (first, end - 1)
        query = "select %s from %s %s %s" % (columns, source, "and" if " where " in source else "where", of_task)
        path = parts / table / (name + ".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        order = " order by rank, seq" if table == "collectives" else ""
        db.execute("copy (%s%s) to '%s' (format parquet, compression zstd)" % (query, order, path))
        rows = {"processes": end - first, "communicators": end - first, "sites": end - first, "collectives": (end - first) * collectives}.get(table, 0)
        tables[table] = {"rows": rows, "bytes": max(path.stat().st_size, rows), "columns": columns_of(table)}
    manifest = {"schema": SCHEMA, "task": name, "written_unix_ns": BEGIN_NS, "redacted": False, "findings": False, "tables": tables,
                "traces": [{"trace": "%016x" % (rank + 1000), "input": "%016x" % rank, "version": "%016x" % rank, "file": None, "rank": rank, "status": "ok",
                            "bytes": 1} for rank in range(first, end)]}
    (parts / "manifest").mkdir(exist_ok=True)
    (parts / "manifest" / (name + ".json")).write_text(json.dumps(manifest))


def write(parts, ranks, collectives, tasks):
    db = duckdb.connect(config={"threads": "2", "memory_limit": "4GB"})
    make(db, ranks, collectives)
    for number in range(tasks):
        write_task(db, pathlib.Path(parts), number, ranks * number // tasks, ranks * (number + 1) // tasks, collectives)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1)
