# SPDX-License-Identifier: MIT
"""The commands part, ranks, tree, steps, diagnose, query and history of pperf."""
import argparse, os, re, sys
from pperf_parts import PartsError

USAGE, UNREADABLE, INTERRUPTED = 64, 2, 130
# For fewer rows Dask's client alone takes about as long as merging them here (bench/SCALE.md).
DASK_ROWS = 500000
TEXT_KEYS = {
    "tree": ["ranks", "calls", "gpu_total_ns", "cpu_total_ns", "p50_ns", "p95_ns", "max_ns", "most_ns", "most_rank", "path"],
    "steps": ["step", "ranks", "usual", "min_ns", "p50_ns", "max_ns", "max_rank", "busy_ns", "idle_ns", "kernels", "step_kind"],
    "diagnose": ["kind", "ranks", "impact_ns", "most_ns", "most_rank", "count", "name", "finding"],
}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(USAGE, "pperf: %s; see %s --help\n" % (message, self.prog))


def a_size(text):
    if not re.fullmatch(r"[1-9][0-9]*(\.[0-9]+)? ?[KMGTkmgt]i?[Bb]", text):
        raise argparse.ArgumentTypeError("%r is no size such as 500MB or 2GB" % text)
    return text


def a_percentage(text):
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError("%r is no percentage from 1 to 100" % text)
    return int(text)


def a_count(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("%r is no number from 0 on" % text)
    return int(text)


def a_positive_count(text):
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError("%r is no number from 1 on" % text)
    return int(text)


def a_name(text):
    if not text:
        raise argparse.ArgumentTypeError("the name of a file or folder is empty")
    return text


def add_reading(command, formats=("text", "json", "csv")):
    command.add_argument("-f", "--format", choices=formats, default="text", help="output format (text)")
    command.add_argument("-n", "--top", type=a_count, default=40, metavar="N", help="rows of text; 0: all (40)")
    command.add_argument("--memory", default="2GB", metavar="SIZE", type=a_size, help="memory of DuckDB; more goes to TMPDIR (2GB)")


def parser():
    main = Parser(prog="pperf", description="Merges parts of traces. `pperf-report part` writes them; doc/scale.md tells how for Slurm and Kubernetes.")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    part = commands.add_parser("part", help="write the parts of traces, in several processes or on Dask")
    part.add_argument("traces", nargs="+", metavar="TRACE", help="traces, folders and patterns")
    part.add_argument("-o", "--output", required=True, type=a_name, metavar="PARTS", help="the folder of the parts")
    part.add_argument("-j", "--jobs", type=a_positive_count, default=1, metavar="N", help="processes at a time (1)")
    part.add_argument("--no-findings", action="store_true", help="leave out the findings of diagnose, which cost most of the time")
    part.add_argument("--parquet", action="store_true", help="convert the tables to Parquet, for other engines")
    part.add_argument("--dask", metavar="SCHEDULER", help="a scheduler file or an address: its workers write the parts")
    part.add_argument("--tasks", type=a_positive_count, metavar="N", help="with --dask: in how many tasks the traces are written (64)")
    part.add_argument("--redact", action="store_true", help="leave out arguments, folders and hosts")
    for name, text in (("ranks", "waits, stragglers and clocks of all ranks"), ("tree", "every call path, summed over the ranks"),
                       ("steps", "each step over the ranks"), ("diagnose", "findings over the ranks")):
        command = commands.add_parser(name, help=text)
        command.add_argument("parts", nargs="+", type=a_name, metavar="PARTS", help="folders of parts")
        command.add_argument("--rank", type=int, metavar="N", help="only this rank")
        command.add_argument("--run", metavar="ID", help="the run to show, if the parts are of several")
        add_reading(command, ("text", "json") if name == "ranks" else ("text", "json", "csv"))
        if name == "ranks":
            command.add_argument("--quorum", type=a_percentage, default=95, metavar="P", help="percent of the ranks that a collective needs (95)")
            command.add_argument("--dask", metavar="SCHEDULER", help="a scheduler file or an address: its workers compute the waits")
            command.add_argument("--dask-from", type=int, default=DASK_ROWS, metavar="ROWS", help="with --dask: fewer collectives are merged here (%d)" % DASK_ROWS)
            command.add_argument("--strict", action="store_true", help="exit with 2 if a trace is damaged or a rank has none")
    query = commands.add_parser("query", help="SQL over the tables of the parts")
    query.add_argument("parts", metavar="PARTS")
    query.add_argument("sql", metavar="SQL")
    add_reading(query)
    from pperf_parts import history
    history.add_commands(commands)
    return main


# ---- commands ----

def executor_of(options, rows):
    """None: this process."""
    if options.dask and rows >= options.dask_from:
        from pperf_parts.executors import OnDask
        return OnDask(options.dask)
    if options.dask:
        sys.stderr.write("pperf: %d collectives are merged here: Dask is used from %d on (--dask-from)\n" % (rows, options.dask_from))
    return None


def ranks(options, out):
    from pperf_parts.blame import blame
    from pperf_parts.output import put_json, put_ranks
    from pperf_parts.parts import Parts, chosen_tasks, manifests_of
    from pperf_parts.ranks import Ranks, as_json
    tasks = list(chosen_tasks(manifests_of(options.parts)))
    executor = executor_of(options, sum(manifest["tables"]["collectives"]["rows"] for manifest, _ in tasks))
    tables = "processes", "communicators", "sites", "requests", "ends"
    with Parts(options.parts, tables, options.memory, tasks=tasks, holds=executor is None) as parts:
        result = Ranks(parts, options.quorum, options.run, executor)
        blame(result)
        document = as_json(result, options.rank)
    if options.rank is not None and not document["rows"]:
        raise PartsError("no process of the parts has rank %d" % options.rank)
    if options.format == "json":
        put_json(document, out)
    else:
        put_ranks(document, result.clocks.aligned, out, options.top)
    damaged = bool(document["faults"] or document["missing_ranks"] or not all(r.input.complete for r in result.ranks))
    return UNREADABLE if options.strict and damaged else 0


def rows_view(options, out):
    from pperf_parts import output, views
    from pperf_parts.parts import Parts
    with Parts(options.parts, views.NEEDS[options.command], options.memory) as parts:
        inputs = views.show(parts, options.rank, options.run)
        rows = views.ROWS[options.command](parts)
    if options.format == "csv":
        output.put_csv(rows, out)
    elif options.format == "json":
        output.put_json({"schema": "pperf.parts/1", "view": options.command, "processes": sum(i.is_used or i.status == "no_collectives" for i in inputs),
                         "faults": [{"file": i.file, "status": i.status, "why": i.why} for i in inputs if i.is_fault], "rows": rows}, out)
    else:
        order = {"tree": lambda r: -(r["gpu_total_ns"] or r["cpu_total_ns"] or 0)}.get(options.command)
        output.put_table(sorted(rows, key=order) if order else rows, TEXT_KEYS[options.command], out, options.top)
        output.put_warnings([item.why for item in inputs if item.is_fault], out)
    return 0


def query(options, out):
    from pperf_parts import output, relations, views
    from pperf_parts.parts import Parts
    with Parts([options.parts], memory=options.memory) as parts:
        views.show(parts)
        if relations.names_rank_waits(options.sql):
            relations.add_rank_waits(parts)
        keys, rows = parts.table(options.sql)
    rows = [dict(zip(keys, map(output.plain, row))) for row in rows]
    if options.format == "json":
        output.put_json({"schema": "pperf.parts/1", "view": "query", "rows": rows}, out)
    elif options.format == "csv":
        output.put_csv(rows, out, keys)
    else:
        output.put_table(rows, keys, out, options.top)
    return 0


def part(options, out):
    from pperf_parts import distributed
    if options.dask:
        return distributed.part_on_dask(options, out)
    return distributed.part_in_processes(options, out)


def main():
    options = parser().parse_args()
    from pperf_parts.output import escaped, stream
    try:
        out = stream()
        if options.command == "history":
            from pperf_parts import history
            status = history.run(options, out)
        else:
            status = {"part": part, "ranks": ranks, "query": query}.get(options.command, rows_view)(options, out)
        out.flush()
        return status
    except PartsError as error:
        sys.stderr.write("pperf: %s\n" % escaped(str(error)))
        return UNREADABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except RuntimeError as error: # DuckDB's own, where it looks for signals itself
        if "interrupted" not in str(error):
            raise
        return INTERRUPTED
    except ImportError as error:
        sys.stderr.write("pperf: %s is not installed: pip install 'pperf[%s]'\n" % (error.name, "dask" if error.name in ("dask", "distributed") else "query"))
        return UNREADABLE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stderr.write("pperf: %s%s\n" % (escaped("%s: " % error.filename if error.filename else "the output cannot be written: "), error.strerror))
        return UNREADABLE


if __name__ == "__main__":
    sys.exit(main())
