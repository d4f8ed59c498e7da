#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""doc/pperf-report.schema.json describes what every view prints with -f json: every key, and its
type. A key that is printed and not in the schema fails."""
import concurrent.futures, itertools, os, pathlib, re
from harness import *
from json_schema import Schema

SCHEMA = Schema(ROOT / "doc" / "pperf-report.schema.json")
NEED_A_TERMINAL, TAKE_TWO, TAKE_A_NAME = ("tui", "part"), ("diff", "gate"), ("distribution",)
PAGES = ("flame", "html") # HTML (test_flame.py, test_html.py)
LINES = 3000 # of a dump
MORE = (["tree", "--instances", "worst"], ["diagnose", "--brief"], ["critical", "-m", "calls"], ["critical", "-m", "allocated_peak"], ["tree", "--steps", "1-2"],
        ["critical", "-m", "reserved"], ["memory", "--map"], ["memory", "--over-time"], ["memory", "--by", "size"],
        *(["table", "--by", key] for key in "shape module stack category stream thread rank step".split()))


def views():
    text = report("--help").stdout.decode().split("\nviews\n")[1].split("\noptions\n")[0]
    return [name for name in re.findall(r"^  ([\w-]+) ", text, re.M) if name not in NEED_A_TERMINAL + PAGES]


def commands(trace):
    for view in views():
        yield [view, *([trace, trace] if view in TAKE_TWO else ["cudaLaunchKernel", trace] if view in TAKE_A_NAME else [trace])]
    for view, *options in MORE:
        yield [view, trace, *options]


def problems(arguments):
    result = report(*arguments, "-f", "json", check=None)
    assert result.returncode in (0, 1, 2, 64), (arguments, result)
    if not result.stdout:
        assert result.stderr, (arguments, "no output and no reason")
        return []
    if arguments[0] == "dump":
        found = [error for line in result.stdout.splitlines()[:LINES] for error in SCHEMA.errors(json.loads(line), "dump_line")]
    else:
        found = SCHEMA.errors(json.loads(result.stdout))
    return ["%s: %s" % (" ".join(map(str, arguments)), error) for error in found[:5]]


def each(traces, more=()):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = [one for some in pool.map(problems, [*itertools.chain(*map(commands, traces)), *more]) for one in some]
    first = {} # one command for each kind of difference
    for one in found:
        first.setdefault(re.sub(r"\d+", "N", one.split(": $", 1)[1]), one)
    assert not found, "%d differences:\n%s" % (len(found), "\n".join(list(first.values())[:30]))


@case
def ranges_and_a_program_on_the_simulated_device(folder):
    traced(folder, "ranges", 2, 20, env={"PPERF_OUTPUT": "ranges.bin"})
    found = [folder / "ranges.bin"]
    for name, *arguments in (("known_work", 2, 2, 2), ("demo_train",)):
        program = BUILD / "cudasim" / "13" / name
        if program.exists():
            traced(folder, str(program), *arguments, env={"PPERF_OUTPUT": name + ".bin"})
            found.append(folder / (name + ".bin"))
    each(found)


@case
def the_given_traces(folder):
    if not os.environ.get("PPERF_TEST_DATA"):
        raise Skip("PPERF_TEST_DATA is not set")
    data = pathlib.Path(os.environ["PPERF_TEST_DATA"])
    found = sorted(path for pattern in ("kineto/*.json*", "verdicts/*.json*", "nsys/*.sqlite") for path in data.glob(pattern))
    found = found[::3] if SANITIZED else found # the schema is the same for all; what is slow here is looked at once
    ranks = sorted(data.glob("kineto/param__*"))
    each(found, [["ranks", *ranks], ["tree", "--all", *ranks], ["diagnose", "--all", "--brief", *ranks]] if len(ranks) > 1 else [])


@case
def every_column_is_in_the_schema_and_nothing_else(folder):
    legend = report("--legend", "--width", "10000").stdout.decode()
    keys = set(re.findall(r"^  ([a-z][a-z0-9_.]*) ", legend.split("\ncolumns")[1], re.M)) if "\ncolumns" in legend else set()
    row = SCHEMA.root["$defs"]["row"]["properties"]
    known = {name for name in row if row[name].get("type") != "object"} | {"%s.%s" % (name, part) for name in row if row[name].get("type") == "object" for part in row[name]["properties"]}
    assert keys and keys == known, (sorted(keys - known), sorted(known - keys))


@case
def the_validator_finds_what_is_wrong(folder):
    good = json.loads(report("table", imported(folder), "-f", "json").stdout)
    assert not SCHEMA.errors(good)
    for change, sentence in ((lambda d: d.update(schema="other"), "is not 'pperf.report/1'"), (lambda d: d.pop("totals"), "'totals' is missing"), (lambda d: d.update(more=1), "'more' is not in the schema"),
                             (lambda d: d["rows"][0].update(calls="1"), "is no integer or null"), (lambda d: d["rows"][0].update(grid=[1, 2]), "2 items, fewer than 3"),
                             (lambda d: d["capture"].update(pid=True), "is no integer")):
        wrong = json.loads(json.dumps(good))
        change(wrong)
        assert any(sentence in error for error in SCHEMA.errors(wrong)), (sentence, SCHEMA.errors(wrong))


def imported(folder):
    path = folder / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 7, "tid": 1, "ts": 1, "dur": 5}]}))
    return path


main()
