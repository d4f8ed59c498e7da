#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The history of nightly runs: what became slower is found, and nothing else; the page of its trends
shows the figures of its JSON. `make scale-peers` installs the engine that reads it."""
import csv, datetime, gzip, io, json, pathlib, shutil, subprocess, zlib
from harness import REPORT, ROOT, SANITIZED, Skip, case, environment, main, report, unsanitized
from pages import HOSTILE, browser, check_policy, data_of, keep, pixels, scaled
from part_tools import ENGINES, job, part, pperf, replaced, table


SLOW = "step/Transformer/layers.*/mlp"


def night_parts(base, folder, night, scale):
    """Copies parts as those of another night: `scale` gives the factor of the GPU time of a path."""
    shutil.copytree(base, folder)
    start = 1700000000000000000 + night * 86400 * 10 ** 9
    for name, change in (("processes", lambda r: r.update(started_unix_ns=start + int(r["rank"]), run_id=night + 1)),
                         ("places", lambda r: r.update(gpu_total_ns=r["gpu_total_ns"] and round(int(r["gpu_total_ns"]) * scale(r["path"])))),
                         ("steps", lambda r: r.update(duration_ns=round(int(r["duration_ns"]) * scale("step"))))):
        rows = table(folder, name)
        for row in rows:
            change(row)
        text = io.StringIO()
        writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        replaced(folder, name, gzip.compress(text.getvalue().encode(), 1))
    return folder


def noise(night, path):
    """A factor of 1 +- 1 %, the same in each run of the test."""
    return 1 + (zlib.crc32(("%d %s" % (night, path)).encode()) % 2001 - 1000) / 100000


def histories(folder, nights, change):
    """A history of nights, which are added in one process."""
    base = folder / "base"
    part(job(folder / "job", 2, 4), base)
    names = [str(night_parts(base, folder / ("night%02d" % n), n, lambda path, n=n: noise(n, path) * change(n, path))) for n in nights]
    code = ("import sys, types\nfrom pperf_parts import history\nfor n in sys.argv[2:]:\n"
            "    history.add(types.SimpleNamespace(parts=[n], to=sys.argv[1], job='nightly', night=None, run=None), sys.stderr)")
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    subprocess.run([str(ENGINES), "-c", code, str(folder / "history"), *names], check=True, capture_output=True, timeout=300,
                   env=environment(PYTHONPATH=str(ROOT / "python")))
    return folder / "history"


def slower(history, *options, check=0):
    result = pperf("history", "regressions", history, "--job", "nightly", "-f", "json", *options, check=check)
    return json.loads(result)["rows"]


def day(night):
    return str(datetime.date(2023, 11, 14) + datetime.timedelta(night))


@unsanitized
def a_regression_is_found_from_its_night_on_until_it_is_accepted(folder):
    """Of 30 nights with noise of 1 %, one is missing, one is slow, and from the 25th on a place takes 8 % more."""
    history = histories(folder, [n for n in range(30) if n != 17],
                        lambda n, path: 1.08 if path.startswith(SLOW) and n >= 24 else 1.2 if n == 15 and path.startswith(SLOW) else 1)
    assert not slower(history, "--night", day(23)) and not slower(history, "--night", day(16))
    assert [r["state"] for r in slower(history, "--night", day(15))] == ["suspicion"]
    assert [r["state"] for r in slower(history, "--night", day(24))] == ["suspicion"]
    for night in range(25, 30):
        rows = slower(history, "--night", day(night), check=1)
        assert [(r["state"], r["path"], r["since"], r["nights"]) for r in rows] == [("regression", SLOW, day(24), night - 23)], rows
        assert 6 < rows[0]["percent"] < 10, rows
    text = pperf("history", "accept", history, "--job", "nightly")
    assert "new normal" in text and not slower(history), text
    names = {path.parent.name for path in (history / "place_runs" / "job=nightly").glob("*/*.parquet")}
    assert len(names) == 29 and "night=" + day(0) in names
    for options in (["--job", "other"], ["--job", "nightly", "--night", day(17)]):
        assert len(pperf("history", "regressions", history, *options, check=2).splitlines()) == 1, options


# ---- nights without runs of a program ----

PLACES = [["step", "range", 5000000], ["step/forward", "range", 2000000], ["step/forward/mlp", "module", 1200000], ["step/backward", "range", 2500000],
          ["step/backward/mlp", "module", 1500000], ["step/optimizer", "range", 400000]]


def nights_of(folder, nights):
    """A history of [night, steps, duration of a step, places]."""
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    subprocess.run([str(ENGINES), str(ROOT / "tests" / "support" / "history_nights.py"), str(folder / "history")], input=json.dumps(nights), text=True, check=True, timeout=300,
                   env=environment())
    return folder / "history"


def made(count, change=lambda n, path: 1, steps=10, name=lambda n, path: path, places=PLACES):
    return [[day(n), steps, round(5500000 * noise(n, "a step") * change(n, "a step")), [[name(n, path), kind, round(ns * noise(n, path) * change(n, path))] for path, kind, ns in places]]
            for n in range(count)]


def trends(history, *options):
    return json.loads(pperf("history", "trends", history, "--job", "nightly", "-f", "json", *options))


@unsanitized
def one_slow_night_is_no_regression_and_no_part_of_the_baseline(folder):
    history = nights_of(folder, made(20, lambda n, path: 1.3 if n == 15 else 1))
    rows = slower(history, "--night", day(15))
    assert {row["state"] for row in rows} == {"suspicion"} and {row["path"] for row in rows} == {"(duration of a step)", "step"}, rows
    assert not slower(history, "--night", day(16)) and not trends(history)["changes"]


@unsanitized
def the_place_is_named_as_deep_as_more_than_half_of_the_increase_is(folder):
    """As `gate` does: the outermost place, then down."""
    inside = {"step": 1 + .2 * 1500 / 5000, "step/backward": 1 + .2 * 1500 / 2500, "step/backward/mlp": 1.2}
    history = nights_of(folder, made(20, lambda n, path: inside.get(path, 1) if n >= 15 else 1))
    row, = slower(history, check=1)
    assert (row["path"], row["in"], row["since"], row["state"]) == ("step", "step/backward/mlp", day(15), "regression"), row
    assert row["p"] < .01 and row["after_ns"] - row["before_ns"] == row["more_ns"], row
    halves = {"step": 1.14, "step/forward": 1 + 250 / 2000, "step/backward": 1.1}
    row, = slower(nights_of(folder / "halves", made(20, lambda n, path: halves.get(path, 1) if n >= 15 else 1)), check=1)
    assert row["in"] == "step", "no place in it has more than half"


@unsanitized
def a_renamed_place_keeps_its_history(folder):
    renamed = lambda n, path: path.replace("backward", "backprop") if n >= 20 else path
    history = nights_of(folder, made(24, name=renamed))
    document = trends(history)
    assert document["renamed"] == [{"night": day(20), "from": "step/backward", "to": "step/backprop"}, {"night": day(20), "from": "step/backward/mlp", "to": "step/backprop/mlp"}], document["renamed"]
    assert not document["changes"] and not document["rows"] and not slower(history)
    place = next(place for place in document["places"] if place["path"] == "step/backprop/mlp")
    assert None not in place["values"] and place["state"] == "as before", place
    history = nights_of(folder / "slow", made(24, lambda n, path: 1.08 if path.endswith("backward/mlp") and n >= 20 else 1, name=renamed))
    row, = slower(history, check=1)
    assert (row["path"], row["since"]) == ("step/backprop/mlp", day(20)), row
    appeared = made(24)
    for night in appeared[20:]:
        night[3].append(["step/loss", "range", 300000])
    document = trends(nights_of(folder / "new", appeared), "--night", day(20))
    assert [place["path"] for place in document["new"]] == ["step/loss"] and not document["gone"] and not document["renamed"] and not document["rows"], document["new"]


@unsanitized
def of_a_thousand_places_one_is_found_in_each_night_and_no_other(folder):
    history = nights_of(folder, [[day(n), 10, 5500000, [1000, 7, 24, 8]] for n in range(30)])
    document = trends(history)
    assert [(row["path"], row["since"], row["nights"], row["end"]) for row in document["changes"]] == [("step/layer.10/op500", day(24), 6, "open")], document["changes"]
    for night in range(20, 30):
        found = {row["path"]: row["state"] for row in slower(history, "--night", day(night), check=int(night > 24))}
        assert found.get("step/layer.10/op500") == (None if night < 24 else "suspicion" if night == 24 else "regression"), (night, found)
        assert {state for path, state in found.items() if path != "step/layer.10/op500"} <= {"suspicion"}, (night, found)


@case
def without_steps_nights_are_not_tested(folder):
    history = nights_of(folder, made(20, lambda n, path: 1.08 if path == "step/optimizer" and n >= 15 else 1, steps=0))
    row, = slower(history, check=1)
    assert row["p"] is None and row["state"] == "regression", row


@case
def tails_of_student_and_holm_are_those_of_tables(folder):
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    code = ("import numpy as np\nfrom pperf_parts.trends import holm, parent_of, upper_tail\n"
            "for t, df, p in ((1.440, 6, .1), (3.707, 6, .005), (5.208, 6, .001), (1.771, 13, .05), (3.852, 13, .001), (1.895, 7, .05), (12.706, 1, .025), (0, 9, .5)):\n"
            "    assert abs(upper_tail(np.array([float(t)]), np.array([df]))[0] / p - 1) < 2e-3, (t, df)\n"
            "assert np.allclose(holm(np.array([.01, .04, .03, .005])), [.03, .06, .06, .02])\n"
            "assert [parent_of(path) for path in ('a', 'a/b', 'a/b\\\\/c', '')] == ['', 'a', 'a', '']\n")
    subprocess.run([str(ENGINES), "-c", code], check=True, timeout=100, env=environment(PYTHONPATH=str(ROOT / "python")))


# ---- nights that cannot be compared ----

def said(*arguments, check=0, **env):
    """(standard output, standard error) of pperf history."""
    if not ENGINES.exists():
        raise Skip("make scale-peers is needed")
    result = subprocess.run([str(ROOT / "scripts" / "pperf"), "history", *map(str, arguments)], capture_output=True, text=True, timeout=300,
                            env=environment(LC_ALL="C.UTF-8", PPERF_PYTHON=str(ENGINES), PPERF_REPORT=str(REPORT), **env))
    assert result.returncode == check, (arguments, result.returncode, result.stdout, result.stderr[-900:])
    return result.stdout, result.stderr


NIGHTLY = "--job", "nightly"


@unsanitized
def too_few_nights_are_named_and_are_not_called_no_regression(folder):
    history = nights_of(folder, made(10, lambda n, path: 1.5 if n >= 6 else 1))
    for night in (0, 1, 6):
        text = said("regressions", history, *NIGHTLY, "--night", day(night))[0]
        assert "nothing was compared" in text and "%d of the 7" % night in text and "no place" not in text, text
        document = json.loads(pperf("history", "regressions", history, *NIGHTLY, "--night", day(night), "-f", "json"))
        assert (document["compared"], document["nights_before"], document["nights_needed"], document["places_compared"], document["rows"]) == (False, night, 7, 0, []), document
        for action in "regressions", "trends":
            assert "nothing was compared" in said(action, history, *NIGHTLY, "--night", day(night), "-f", "csv")[1]
        sentence, = trends(history, "--night", day(night))["sentences"]
        assert sentence.startswith("Nothing was compared"), sentence
        assert sentence in pperf("history", "trends", history, *NIGHTLY, "--night", day(night))
    appeared = made(12)
    appeared[11][3].append(["step/loss", "range", 300000])
    history = nights_of(folder / "new", appeared)
    assert "no place is slower" in pperf("history", "regressions", history, *NIGHTLY, "--night", day(10))
    text = pperf("history", "regressions", history, *NIGHTLY)
    assert "no place is slower" in text and "1 of 8 places were not compared" in text, text
    for night in appeared:
        night[3] = [["another" if night is appeared[11] else "one", "range", 500 if night is appeared[11] else 5]]
        night[2] = 0
    text = pperf("history", "regressions", nights_of(folder / "other", appeared), *NIGHTLY)
    assert "nothing was compared: no place of the night %s was there" % day(11) in text and "slower" not in text, text


def removed(history, table, night):
    path, = (history / table / "job=nightly" / ("night=" + day(night))).glob("*.parquet")
    path.unlink()


@unsanitized
def a_night_without_its_places_is_left_out_and_cannot_be_compared(folder):
    history = nights_of(folder, made(12))
    removed(history, "place_runs", 4)
    _, errors = said("regressions", history, *NIGHTLY)
    assert "1 night is left out because the table place_runs is missing: " + day(4) in errors, errors
    document = json.loads(pperf("history", "regressions", history, *NIGHTLY, "-f", "json"))
    assert (document["nights_left_out"], document["nights_before"]) == ([day(4)], 10), document
    document = trends(history)
    assert len(document["nights"]) == 11 and any("left out" in sentence and day(4) in sentence for sentence in document["sentences"]), document["sentences"]
    assert not document["gone"] and not document["new"]
    removed(history, "place_runs", 11)
    for action in (["regressions"], ["trends"], ["html", "-o", folder / "x.html"], ["accept"], ["accept", "--path", "step"]):
        line, = pperf("history", action[0], history, *NIGHTLY, *action[1:], check=2).splitlines()
        assert "its table place_runs is missing" in line and day(11) in line, line
    assert "no place is slower" in pperf("history", "regressions", history, *NIGHTLY, "--night", day(10))
    (folder / "whole").mkdir()
    history = histories(folder / "whole", range(2), lambda n, path: 1)
    assert not said("regressions", history, *NIGHTLY)[1]
    removed(history, "spread_runs", 1)
    assert "%s has no table spread_runs;" % day(1) in said("regressions", history, *NIGHTLY)[1]


@unsanitized
def only_a_place_of_the_night_is_accepted(folder):
    appeared = made(9)
    appeared[8][3].append(["step/a\nb", "range", 300000])
    history = nights_of(folder, appeared)
    for path, near in (("mlp", "step/backward/mlp, step/forward/mlp"), ("step/optimiser", "step/optimizer"), ("qqq\n", "qqq\\u000a; pperf history trends")):
        line = pperf("history", "accept", history, *NIGHTLY, "--path", path, check=2).splitlines()[-1]
        assert "has no place" in line and near in line, line
    assert not (history / "accepted").exists()
    pperf("history", "accept", history, *NIGHTLY, "--night", day(7), "--path", "step/a\nb", check=2)
    for path in ("(duration of a step)", "step", "step/a\\u000ab"):
        assert "accepted " + path in pperf("history", "accept", history, *NIGHTLY, "--path", path)
    assert {row["path"] for row in trends(history)["accepted"]} == {"(duration of a step)", "step", "step/a\nb"}


@unsanitized
def an_accepted_night_is_the_last_of_its_regression(folder):
    slow = lambda n, path: 1.5 if path == "step/optimizer" and n >= 8 else 1
    for last in (9, 10):
        history = nights_of(folder / str(last), made(last + 1, slow))
        pperf("history", "accept", history, *NIGHTLY)
        document = trends(history)
        place = next(place for place in document["places"] if place["path"] == "step/optimizer")
        assert place["state"] == "accepted" and place["percent"] > 45 and place["slow"] == list(range(8, last + 1)), place
        assert [(row["path"], row["since"], row["until"], row["nights"], row["end"], row["state"]) for row in document["changes"]] == [
            ("step/optimizer", day(8), day(last), last - 7, "accepted", "regression")], document["changes"]
        assert document["sentences"] == ["In the night %s no place is slower than before, but for 1 that is accepted." % day(last)], document["sentences"]
        assert "but for 1 that is accepted" in pperf("history", "regressions", history, *NIGHTLY)
    history = nights_of(folder / "after", made(14, slow))
    pperf("history", "accept", history, *NIGHTLY, "--night", day(10))
    document = trends(history)
    assert [(row["until"], row["end"]) for row in document["changes"]] == [(day(10), "accepted")] and not document["rows"], document["changes"]
    assert {place["state"] for place in document["places"]} == {"as before"}


# ---- adding and arguments ----

@unsanitized
def what_is_not_added_is_named(folder):
    """Parts of two runs, two runs of one night, then a run with a damaged trace and without a rank."""
    first, second = folder / "first", folder / "second"
    part(job(folder / "job", 3, 4), first)
    part(job(folder / "next", 3, 4, "run=2", "start=1700086400000000000"), second)
    out, errors = said("add", first, second, "--to", folder / "history", *NIGHTLY)
    assert "added run 0000000000000002 to the night %s" % day(1) in out and "counts" not in out, out
    assert errors.startswith("warning: run 0000000000000001 is not added: the parts have 3 traces of it") and "(--run 1 adds it)" in errors and len(errors.splitlines()) == 1, errors
    assert "added run 0000000000000001" in said("add", first, second, "--to", folder / "history", *NIGHTLY, "--run", 1)[0]
    out, errors = said("add", first, "--to", folder / "history", *NIGHTLY, "--night", day(1))
    assert "of the 2 runs of this night only the one that began last counts: run 0000000000000002, not this one" in out and not errors, (out, errors)
    out, _ = said("add", second, "--to", folder / "history", *NIGHTLY)
    assert "began last counts: this one" in out, out
    (folder / "fewer").mkdir()
    for path in sorted((folder / "job").iterdir())[1:]:
        shutil.copy(path, folder / "fewer")
    damaged = min((folder / "fewer").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-200])
    part(folder / "fewer", folder / "fewer.parts")
    _, errors = said("add", folder / "fewer.parts", "--to", folder / "fewer.history", *NIGHTLY)
    assert "warning: rank 0 of 3 has no usable trace\n" in errors and damaged.name in errors, errors


@unsanitized
def a_history_that_cannot_be_written_or_read_is_told_in_one_line(folder):
    part(job(folder / "job", 2, 4), folder / "parts")
    (folder / "file").write_text("")
    for to in (folder / "file", folder / "file" / "history", "/proc/pperf-history"):
        line, = said("add", folder / "parts", "--to", to, *NIGHTLY, check=2)[1].splitlines()
        assert str(to) in line and "cannot be written" in line and "run the command again" in line, line
    full = folder / "full"
    result = subprocess.run(["sh", "-c", "ulimit -f 0; exec \"$@\"", "sh", str(ROOT / "scripts" / "pperf"), "history", "add", str(folder / "parts"), "--to", str(full), *NIGHTLY],
                            capture_output=True, text=True, timeout=300, env=environment(PPERF_PYTHON=str(ENGINES), PYTHONDONTWRITEBYTECODE="1"))
    assert result.returncode == 2 and "cannot be written" in result.stderr and len(result.stderr.splitlines()) == 1, result
    assert not [path for path in full.rglob("*") if path.is_file()]
    history = nights_of(folder, made(9))
    for table in ("place_runs", "runs"):
        path = next((history / table).glob("*/*/*.parquet"))
        path.write_bytes(b"damaged")
        for action in ("regressions", "trends"):
            line = pperf("history", action, history, *NIGHTLY, check=2).splitlines()[-1]
            assert "table %s of job nightly cannot be read" % table in line and path.name in line, line
    for path in (history / "runs").glob("*/*/*.parquet"):
        path.unlink()
    for action in ("regressions", "accept"):
        line, = pperf("history", action, history, *NIGHTLY, check=2).splitlines()
        assert "has no run of job nightly" in line, line


@unsanitized
def wrong_arguments_are_refused_with_64(folder):
    history = nights_of(folder, made(1))
    for action, options, why in (
            ("regressions", [history, "--job", "../x\x1b"], "'../x\\u001b' is no name of a job"), ("regressions", [history, "--job", ""], "is no name of a job"),
            ("trends", [history, *NIGHTLY, "--night", "x\n"], "'x\\u000a' is no night such as"), ("accept", [history, *NIGHTLY, "--night", "2023-02-30"], "is no night such as"),
            ("regressions", ["", *NIGHTLY], "argument HISTORY: the name is empty"), ("accept", [history, *NIGHTLY, "--path", ""], "argument --path: the name is empty"),
            ("add", [folder, "--to", "", *NIGHTLY], "argument --to: the name is empty"), ("add", [folder, "--to", history, "--job", "a/b"], "is no name of a job")):
        line, = said(action, *options, check=64)[1].splitlines()
        assert why in line, line


# ---- the page ----

def eventful(folder):
    """Forty nights: two are missing, a place became slower and was accepted, one still is, one was renamed."""
    names = PLACES + [["step/" + name.replace("\x00", " ").replace("\ud800", "?"), "op", 100000] for name in HOSTILE if "/" not in name]
    nights = made(40, lambda n, path: (1.08 if path == "step/backward/mlp" and n >= 25 else 1) * (1.12 if path == "step/optimizer" and n >= 35 else 1),
                  name=lambda n, path: path.replace("mlp", "ffn") if n >= 33 and "forward" in path else path, places=names)
    history = nights_of(folder, [night for n, night in enumerate(nights) if n not in (11, 28)])
    pperf("history", "accept", history, "--job", "nightly", "--night", day(30), "--path", "step/backward/mlp")
    return history


def page(folder, history):
    pperf("history", "html", history, "--job", "nightly", "-o", folder / "nights.html")
    return folder / "nights.html"


@unsanitized
def figures_of_the_page_are_those_of_the_json(folder):
    history = eventful(folder)
    document, window = trends(history), browser()
    path = page(folder, history)
    data = data_of(path)
    for key in ("job", "nights", "accepted", "renamed", "left_out"):
        assert data[key] == document[key], key
    for key in ("rows", "changes", "places"):
        assert [{k: v for k, v in row.items() if k not in ("path", "in")} for row in data[key]] == [{k: v for k, v in row.items() if k not in ("path", "in")} for row in document[key]], key
    assert [(row["path"], row["end"]) for row in document["changes"]] == [("step/optimizer", "open"), ("step/backward/mlp", "accepted")], document["changes"]
    window.open(path)
    rows = window.run("[...document.querySelectorAll('#changes-table tbody tr')].map(row => [...row.cells].slice(1).map(cell => cell.textContent))")
    for row, one in zip(rows, document["changes"]):
        assert row[:6] == [one["since"], one["until"], {"open": "still slower", "accepted": "accepted"}[one["end"]], str(one["nights"]), scaled(one["before_ns"], "time"), scaled(one["after_ns"], "time")], row
        assert row[6] == "+%.1f %%" % one["percent"], row
    nights = window.run("[...document.querySelectorAll('#night-table tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
    assert [row[:2] for row in nights] == [[one["night"], scaled(one["step_ns"], "time")] for one in document["nights"]]
    shown = window.run("[...document.querySelectorAll('#places tbody tr')].map(row => [Number(row.dataset.row), row.cells[1].textContent, row.cells[2].textContent])")
    assert shown and all((newest, before) == tuple("-" if ns is None else scaled(ns, "time") for ns in (document["places"][row]["value_ns"], document["places"][row]["before_ns"])) for row, newest, before in shown)
    assert document["sentences"][0].replace("`", "") in window.run("document.getElementById('verdict').textContent")
    text = pperf("history", "trends", history, "--job", "nightly")
    assert document["sentences"][0].replace("`", "") in text and "still" not in text and day(25) in text, text
    assert not window.messages() and len(window.requests()) == 1


@case
def hostile_names_of_places_are_text_and_the_policy_is_strict(folder):
    history = eventful(folder)
    path, window = page(folder, history), browser()
    check_policy(path.read_text())
    window.open(path)
    assert window.run("String(window.owned) + document.querySelectorAll('img, iframe, object, main script, header script').length") == "undefined0"
    assert "<img src=x" in window.run("document.getElementById('places').textContent") and not window.messages()
    (folder / "evil.json").write_text('{"a":"</script><script>window.owned=1</script>"}')
    report("html", "--trends", folder / "evil.json", "-o", folder / "evil.html")
    assert (folder / "evil.html").read_text().count("<script>") == path.read_text().count("<script>")
    for wrong, why in ((folder / "none", b"cannot be read"), (history / "runs", b"is a directory"), (ROOT / "Makefile", b"is not the data of a page")):
        assert why in report("html", "--trends", wrong, "-o", folder / "wrong.html", check=2).stderr, wrong
    assert not (folder / "wrong.html").exists()


@unsanitized
def a_place_is_shown_by_click_key_and_address_and_found_by_search(folder):
    path, window = page(folder, eventful(folder)), browser()
    window.open(path)
    chosen, slow = "document.getElementById('chosen').textContent", "document.querySelectorAll('#nights-chart .trend-slow').length"
    assert window.run(chosen) == "(duration of a step)" and window.run("document.querySelectorAll('#nights-chart [data-night]').length") == 38
    window.click("#changes-table tr[data-change='0'] .to-place")
    assert window.run(chosen).startswith("step/optimizer") and window.run(slow) == 5 and "place=" in window.run("location.hash")
    address = window.run("location.hash")
    window.click("#show-steps")
    assert window.run(chosen) == "(duration of a step)" and window.run("location.hash") == ""
    window.open(path, address + "&places=backward")
    assert window.run(chosen).startswith("step/optimizer") and window.run("document.querySelectorAll('#places tbody tr').length") == 2
    window.key("/")
    assert window.run("document.activeElement.id") == "place-filter"
    window.hover("#nights-chart [data-night='37'] .hidden-bar")
    tip = window.run("document.getElementById('tip').textContent")
    assert day(39) in tip and "Slower than the nights before." in tip, tip
    window.click("#theme")
    assert window.run("document.documentElement.dataset.theme") == "dark"
    for wrong in ("#place=9999", "#place=x", "#place=-1", "#places=/(/"):
        window.open(path, wrong)
        assert window.run(chosen) == "(duration of a step)" and not window.messages(), wrong


@unsanitized
def nights_light_dark_narrow_and_printed(folder):
    path, window = page(folder, eventful(folder)), browser()
    for theme in ("light", "dark"):
        window.open(path, theme=theme)
        image = window.picture()
        keep("nights-%s.png" % theme, image)
        assert len(pixels(image)) > 20, theme
    window.resize(600, 900)
    window.open(path)
    assert window.run("document.documentElement.scrollWidth") <= 600
    keep("nights-narrow.png", window.picture())
    window.resize(1440, 900)
    window.open(path, theme="dark")
    document = window.pdf()
    keep("nights.pdf", document)
    assert document.startswith(b"%PDF") and not window.messages()


@unsanitized
def a_short_history_makes_a_page(folder):
    window = browser()
    for count in (1, 2, 8):
        window.open(page(folder, nights_of(folder / str(count), made(count))))
        verdict, badge = window.run("document.getElementById('verdict').textContent"), window.run("document.querySelector('#head .badge').textContent")
        assert ("no place is slower" if count == 8 else "there are too few nights before the night %s, %d of the 7" % (day(count - 1), count - 1)) in verdict, (count, verdict)
        assert badge == ("no regression" if count == 8 else "too few nights") and not window.messages(), (count, badge, window.messages())
    places = [[day(n), 10, 0, []] for n in range(2)]
    places[1][3] = [["only", "range", 5]]
    places[0][3] = [["other", "op", 7]]
    window.open(page(folder, nights_of(folder / "steps", places)))
    assert not window.messages(), window.messages()


if __name__ == "__main__":
    main()
