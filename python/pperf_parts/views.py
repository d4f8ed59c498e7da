# SPDX-License-Identifier: MIT
"""Merges trees, steps and findings over all ranks by SQL. Sums are of integers, a maximum names its
rank (of equal ones the lowest), and percentiles are of added buckets, at most 0.8 % off."""
from pperf_parts import PartsError
from pperf_parts.parts import fill, path_of, text_of
from pperf_parts.rank_inputs import read_inputs

SUMS = "calls cpu_total_ns cpu_self_ns gpu_total_ns gpu_self_ns gpu_calls idle_ns bytes alloc_bytes free_bytes tensor_alloc_bytes tensor_free_bytes".split()
PEAKS = "reserved_peak_bytes allocated_peak_bytes".split()
# The middle of a bucket of table spreads.
MACRO = """create or replace macro bucket_ns(b) as case when b < 64 then b
    else ((64 + b % 64)::hugeint << (b // 64 - 1)::int) + (((1::hugeint << (b // 64 - 1)::int)) >> 1) end"""

TREE = """
with own as (select p.* from places p join shown using (trace)),
nodes as (select key, min(path) as path, max(path) as other, min(name) as name, min(kind) as kind, min(depth) as depth, count(*) as ranks, %s,
    min(min_ns) as min_ns, max(max_ns) as max_ns, %s,
    max(coalesce(gpu_total_ns, cpu_total_ns)) as most_ns, arg_max(number, (coalesce(gpu_total_ns, cpu_total_ns, -1), -number)) most_rank,
    min(coalesce(gpu_total_ns, cpu_total_ns)) as least_ns from own join shown using (trace) group by key),
running as (select key, bucket, sum(sum(count)) over (partition by key order by bucket) c, sum(sum(count)) over (partition by key) total
    from spreads join shown using (trace) where "of" = 'duration' group by key, bucket),
middle as (select key, bucket_ns(min(bucket) filter (c >= (total * 500 + 999) // 1000))::bigint p50_ns,
    bucket_ns(min(bucket) filter (c >= (total * 950 + 999) // 1000))::bigint p95_ns from running group by key)
select nodes.* exclude (key), greatest(min_ns, least(p50_ns, max_ns)) p50_ns, greatest(min_ns, least(p95_ns, max_ns)) p95_ns from nodes left join middle using (key) order by path, kind, key
""" % (", ".join("sum(%s)::bigint as %s" % (c, c) for c in SUMS), ", ".join("max(%s) as %s" % (c, c) for c in PEAKS))

STEPS = """
select step, min(step_kind) as step_kind, count(*) as ranks, count(*) filter (state = 'usual') as usual, min(duration_ns) as min_ns,
    quantile_disc(duration_ns, 0.5) as p50_ns, max(duration_ns) as max_ns, arg_max(number, (duration_ns, -number)) as max_rank,
    sum(duration_ns)::bigint as duration_ns, sum(busy_ns)::bigint as busy_ns, sum(idle_ns)::bigint as idle_ns, sum(gpu_total_ns)::bigint as gpu_total_ns,
    sum(kernels)::bigint as kernels, max(reserved_peak_bytes) as reserved_peak_bytes, max(allocated_peak_bytes) as allocated_peak_bytes
from steps join shown using (trace) group by step order by step
"""

FINDINGS = """
select name, kind, count(distinct trace) as ranks, sum(impact_ns)::bigint as impact_ns, max(impact_ns) as most_ns,
    arg_max(number, (coalesce(impact_ns, -1), coalesce(impact_bytes, -1), -number)) most_rank, sum(impact_bytes)::bigint as impact_bytes,
    max(impact_bytes) as most_bytes, sum(count)::bigint as count,
    arg_max(finding, (coalesce(impact_ns, -1), coalesce(impact_bytes, -1), -number)) finding,
    arg_max(evidence, (coalesce(impact_ns, -1), coalesce(impact_bytes, -1), -number)) evidence,
    arg_max(path, (coalesce(impact_ns, -1), coalesce(impact_bytes, -1), -number)) path
from findings join shown using (trace) group by name, kind order by kind, max(coalesce(impact_ns, -1)) desc, name
"""
NEEDS = {"tree": ("processes", "places", "spreads"), "steps": ("processes", "steps"), "diagnose": ("processes", "findings")}


def show(parts, rank=None, run=None):
    """Makes the table `shown`: the processes of the chosen run, each rank once, and their numbers."""
    inputs, _ = read_inputs(parts, run)
    shown = [item for item in inputs if item.is_used or item.status == "no_collectives"]
    if rank is not None:
        shown = [item for item in shown if item.rank == rank]
    if not shown:
        raise PartsError("no process of the parts can be shown" if rank is None else "no process of the parts has rank %d" % rank)
    parts.db.execute("create or replace temp table shown (trace bigint, number bigint)")
    fill(parts.db, "shown", [(item.trace, item.rank if item.rank >= 0 else i) for i, item in enumerate(shown)])
    parts.db.execute(MACRO)
    return inputs


def tree(parts):
    rows = parts.rows(TREE)
    for row in rows:
        if row["path"] != row.pop("other"):
            raise PartsError("two call paths have one hash: %s" % row["path"])
        row["path"], row["name"] = path_of(row["path"]), text_of(row["name"])
    # Parents come before their children.
    return sorted(rows, key=lambda row: (row["path"], row["kind"]))


def steps(parts):
    return parts.rows(STEPS)


def diagnose(parts):
    if not any(manifest.get("findings") for manifest, _ in parts.tasks):
        raise PartsError("the parts have no findings: they were written with --no-findings")
    rows = parts.rows(FINDINGS)
    for row in rows:
        row["path"] = path_of(row["path"])
        row["finding"], row["evidence"] = text_of(row["finding"]), text_of(row["evidence"])
    return rows


ROWS = {"tree": tree, "steps": steps, "diagnose": diagnose}
