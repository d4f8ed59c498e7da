#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of a trace with CPU samples: the flame graph of functions and the table of functions have the figures of `table --by function`."""
import json
from harness import ROOT, Skip, case, main, report, traced
from pages import browser, samples
from python_versions import interpreters

PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]
SHAPES = ["functions", "python", "native", "all"]


def opened(folder):
    if not PYTHONS:
        raise Skip("no Python with a global interpreter lock")
    traced(folder, PYTHONS[-1], ROOT / "tests/programs/sampled_loader.py", 8, env={"PPERF_SAMPLE": "199", "PPERF_SAMPLE_CLOCK": "wall"})
    report("html", folder / "trace.bin", "-o", folder / "page.html")
    window = browser()
    window.open(folder / "page.html")
    return window, json.loads(report("table", "--by", "function", "-f", "json", folder / "trace.bin").stdout)


@case
def the_flame_graph_is_switched_to_functions(folder):
    window, table = opened(folder)
    whole = sum(row.get("cpu_sampled_ns") or 0 for row in table["rows"])
    sums = "pperf.data.flame.shapes[%s].values[pperf.graph.metric.number].own.reduce((sum, value) => sum + value, 0)"
    assert window.run("pperf.graph.metric.key") == "sampled" and window.run("pperf.graph.metric.shapes") == SHAPES and whole
    buttons = window.run("[...document.querySelectorAll('#shape button')].map(button => button.textContent)")
    assert buttons == ["by path", "Python", "native", "all frames"], buttons
    for number, shape in enumerate(SHAPES):
        assert window.run(sums % json.dumps(shape)) == whole, shape
        window.click("#shape button:nth-child(%d)" % (number + 1))
        assert window.run("pperf.graph.shape") == shape and window.run("document.querySelectorAll('#flame g').length") > 1
    window.click("#shape button:nth-child(2)")
    names = window.run("[...document.querySelectorAll('#flame g')].map(group => group.getAttribute('aria-label'))")
    assert any(name.startswith("tokenise [sampled_loader.py]") for name in names), names
    assert "shape=python" in window.run("location.hash") and not window.messages()
    assert window.run("pperf.chart.element.offsetParent === null") == (not window.run("pperf.scene.facts.length"))


@case
def the_table_of_functions_is_that_of_the_text_view(folder):
    window, table = opened(folder)
    data = window.run("pperf.data.tables.functions")
    own = {row["label"]: row["cpu_sampled_ns"] for row in table["rows"] if row.get("samples")}
    times, errors = (next(column for column in data["columns"] if column["key"] == key) for key in ("cpu_sampled_ns", "cpu_sampled_error_ns"))
    shown = {label: ns for label, ns in zip(data["label"], times["value"]) if ns}
    assert shown == own, (shown, own)
    expected = {row["label"]: row["cpu_sampled_error_ns"] for row in table["rows"] if row.get("samples")}
    assert {label: error for label, error in zip(data["label"], errors["value"]) if error} == {label: error for label, error in expected.items() if error}
    window.click("#function-filter")
    window.key(*"tokenise")
    rows = window.run("[...document.querySelectorAll('#function-table tbody tr td:first-child')].map(cell => cell.textContent)")
    assert rows and all("tokenise" in row for row in rows), rows
    assert "function-table=tokenise" in window.run("location.hash") and not window.messages()


@case
def a_page_without_samples_has_no_functions(folder):
    report("html", samples(folder)[0], "-o", folder / "page.html")
    window = browser()
    window.open(folder / "page.html")
    assert window.run("document.getElementById('functions') === null && pperf.data.tables.functions === undefined")
    assert not set(window.run("Object.keys(pperf.data.flame.shapes)")) & set(SHAPES)


main()
