#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The history of nightly runs: what became slower is found, and nothing else; the page of its trends
shows the figures of its JSON. `make scale-peers` installs the engine that reads it."""
import csv, datetime, gzip, io, json, pathlib, shutil, subprocess, zlib
from harness import ROOT, SANITIZED, Skip, case, environment, main, report, unsanitized
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
    for options in (["--job", "other"], ["--job", "../x"], ["--job", "nightly", "--night", day(17)], ["--job", "nightly", "--night", "x"]):
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
        assert "no place is slower" in window.run("document.getElementById('verdict').textContent") and not window.messages(), (count, window.messages())
    places = [[day(n), 10, 0, []] for n in range(2)]
    places[1][3] = [["only", "range", 5]]
    places[0][3] = [["other", "op", 7]]
    window.open(page(folder, nights_of(folder / "steps", places)))
    assert not window.messages(), window.messages()


if __name__ == "__main__":
    main()
