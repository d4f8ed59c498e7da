# SPDX-License-Identifier: MIT
"""What `pperf ranks`, `tree`, `steps` and `query` show, as relations of DuckDB: pperf.parts(folder)."""
import re
from pperf_parts import PartsError, views
from pperf_parts.parts import Parts, engine, fill


def add_rank_waits(parts, run=None):
    """Makes the table rank_waits: the rows of `pperf ranks`."""
    from pperf_parts.ranks import Ranks, as_json
    rows = as_json(Ranks(parts, run=run))["rows"]
    keys = [key for key in rows[0] if key not in ("not_aligned_because",)]
    types = {"file": "varchar", "simulated": "boolean", "aligned": "boolean", "drift_ppm": "double"}
    parts.db.execute("create temp table rank_waits (%s)" % ", ".join('"%s" %s' % (key, types.get(key, "bigint")) for key in keys))
    fill(parts.db, "rank_waits", [[row[key] for key in keys] for row in rows])


def names_rank_waits(sql):
    return re.search(r"\brank_waits\b", sql) is not None


class PartsOfRun:
    """The parts of the traces of one run. Its methods return relations of DuckDB, with .fetchall(),
    .df(), .arrow() and .pl(), which also filter, join and sort (duckdb.DuckDBPyRelation). The texts
    in them are written as in the tables of the parts."""

    def __init__(self, folders, run=None, memory="2GB"):
        self.folders, self.run, self.parts, self.has_waits = folders, run, Parts(folders, memory=memory), False
        try:
            views.show(self.parts, run=run)
        except BaseException:
            self.parts.close()
            raise

    def __repr__(self):
        return "<pperf.parts %r>" % (self.folders,)

    def ranks(self):
        """A row for each rank: its waits, its clock, how often it was last."""
        if not self.has_waits:
            add_rank_waits(self.parts, self.run)
            self.has_waits = True
        return self.relation("select * from rank_waits order by rank")

    def places(self):
        """A row for each call path, summed over the ranks."""
        for row in self.relation("select path from (%s) where path <> other limit 1" % views.TREE).fetchall():
            raise PartsError("two call paths have one hash: %s" % row[0])
        return self.relation("select * exclude other from (%s)" % views.TREE)

    def steps(self):
        """A row for each step, over the ranks."""
        return self.relation(views.STEPS)

    def query(self, sql):
        """The result of SQL over the tables of the parts, and over rank_waits, which ranks() shows."""
        if names_rank_waits(sql):
            self.ranks()
        return self.relation(sql)

    def relation(self, sql):
        try:
            relation = self.parts.db.sql(sql)
        except engine().Error as error:
            raise PartsError("the query fails: %s" % " ".join(str(error).split())[:500])
        if relation is None:
            raise PartsError("the query fails: it is no query")
        return relation

    def close(self):
        """Frees the tables. Relations cannot be used any more."""
        self.parts.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
