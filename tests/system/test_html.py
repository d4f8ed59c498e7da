#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The view `html`: its figures are those of the text views, its timeline and tables work by mouse
and keys in a browser, and names of a trace stay text.

PPERF_TEST_PICTURES=FOLDER keeps the pictures that the cases take."""
import json, pathlib, random, re
from harness import ROOT, Skip, case, main, report, unsanitized
from pages import browser, check_colours_differ, check_policy, contrast, DATA, data_of, empty_and_cut, hostile, imported, json_of, keep, LEAST_CONTRAST, open_hostile, operators, pixels, samples, scaled, simulated, theme_colours

TABLES = ("steps", "kernels", "idle", "memory", "categories")


def page(folder, trace, *options):
    path = folder / "page.html"
    report("html", trace, *options, "-o", path)
    return path


def traces(folder):
    """Traces of each origin, and larger ones of torch.profiler."""
    found = samples(folder)
    if DATA:
        found += [pathlib.Path(DATA, "kineto", name) for name in ("kineto__resnet50_num_workers_0.1623143089861.pt.trace.json.gz", "hta__nccl_parser_config~nccl_data.json.gz")]
    return [path for path in found if path.exists()]


def opened(folder, trace, fragment="", theme="light"):
    window = browser()
    window.open(page(folder, trace), fragment, theme)
    return window


def interval(window):
    return window.run("pperf.chart.interval")


def point(window, row, share):
    """A point of a row of the timeline, at a share of its width."""
    window.run("document.getElementById('timeline').scrollIntoView({block: 'center'})")
    return window.run("(() => { const box = pperf.chart.box.getBoundingClientRect(), row = pperf.chart.rows.find(one => one.kind === %s);"
                      "return [box.x + pperf.chart.left + pperf.chart.width * %f, box.y + row.y + row.height / 2]; })()" % (json.dumps(row), share))


# ---- values ----

def cells(table, key):
    return next((column["text"] for column in table["columns"] if column["key"] == key), None)


@case
def fifty_random_cells_of_each_table_are_those_of_the_text_views(folder):
    picks, compared = random.Random(3), 0
    units = {"_ns": "time", "_bytes": "bytes"}
    for trace in traces(folder):
        data = data_of(page(folder, trace))
        for view in TABLES:
            table, rows = data["tables"][view], json_of(view, trace)["rows"]
            assert table["rows"] + table["left_out"] == len(rows), (trace, view)
            columns = [column for column in table["columns"] if column["key"].endswith(tuple(units))]
            if not columns or len(rows) > table["rows"]:
                continue
            for _ in range(50):
                column, row = picks.choice(columns), picks.randrange(len(rows))
                value = rows[row].get(column["key"])
                if value is None or value < 0:
                    continue
                unit = next(unit for ending, unit in units.items() if column["key"].endswith(ending))
                assert column["value"][row] == value, (trace, view, column["key"], row)
                assert column["text"][row] in (scaled(value, unit), ""), (trace, view, column["key"], row, column["text"][row], scaled(value, unit))
                compared += 1
    assert compared > 200, compared


@case
def cells_of_the_page_are_lines_of_the_text_views(folder):
    trace = samples(folder)[-1]
    window = opened(folder, trace)
    for view, name in (("kernels", "kernel-table"), ("steps", "step-table")):
        shown = window.run("[...document.querySelectorAll('#%s tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))" % name)
        assert shown or view == "steps", view
        text = report(view, trace, "--width", "400", "--top", "1000").stdout.decode()
        for row in random.Random(1).sample(shown, min(10, len(shown))):
            assert all(cell in text for cell in row[1:] if re.match(r"\d.* (ns|µs|ms|s|B|kB|MB|GB)$", cell)), (view, row)


@case
def sentences_are_whole(folder):
    if not DATA:
        raise Skip("PPERF_TEST_DATA is not set")
    trace = pathlib.Path(DATA, "verdicts", "hta__trace_diff~control~control.json.gz")
    page(folder, trace)
    shown = data_of(folder / "page.html")["findings"]
    rows = {row["name"]: row for row in json_of("diagnose", trace)["rows"] if row["kind"] == "finding"}
    assert shown and max(len(one[key]) for one in shown for key in ("finding", "evidence", "next")) > 400, shown
    assert all(one[key] == rows[one["name"]][key] for one in shown for key in ("finding", "evidence", "next")), shown


@case
def figures_and_legends_are_the_totals_of_the_text_views(folder):
    for trace in traces(folder):
        window, totals = opened(folder, trace), json_of("tree", trace)["totals"]
        figures = dict(window.run("[...document.querySelectorAll('.figures > div')].map(one => [one.children[0].textContent, one.children[1].textContent])"))
        if totals["gpu_idle_ns"]:
            assert figures["GPU idle, in all"] == scaled(totals["gpu_idle_ns"], "time"), (trace, figures)
        if totals["allocated_peak_bytes"]:
            assert figures["Memory peak"] == scaled(totals["allocated_peak_bytes"], "bytes"), (trace, figures)
        sentences = [one["text"] for one in json_of("summary", trace)["verdict"]["sentences"]]
        shown = window.run("document.getElementById('main').textContent")
        assert all(text.replace("`", "") in shown for text in sentences), (trace, sentences)
        legend = window.run("document.querySelector('.legends').textContent")
        for row in json_of("idle", trace)["rows"]:
            if row["kind"] == "cause" and len([one for one in json_of("idle", trace)["rows"] if one["kind"] == "device"]) == 1:
                assert "%s %s" % (row["name"], scaled(row["gap_ns"], "time")) in legend, (trace, row["name"], legend)
        assert not window.messages(), window.messages()


@case
def the_tip_of_an_event_is_the_record_of_dump(folder):
    trace = imported(folder / "a.json", operators(["aten::a", "aten::b"]))
    window = opened(folder, trace)
    x, y = point(window, "stream", 0)
    events = window.run("(() => { const {begin, duration} = pperf.scene.source(pperf.chart.rows.find(row => row.kind === 'stream').index, 0, pperf.scene.end).events;"
                        "return [...begin].map((at, i) => [at, duration[i], pperf.chart.x(at + duration[i] / 2)]); })()")
    left = window.run("pperf.chart.box.getBoundingClientRect().x")
    assert len(events) == 6
    for begin, duration, at in events:
        window.mouse("mouseMoved", left + at, y)
        tip = window.run("document.getElementById('tip').textContent")
        assert scaled(round(duration), "time") in tip and "kernel_of_" in tip and "ProfilerStep#" in tip, tip


# ---- mouse and keys ----

@case
def drag_wheel_buttons_and_keys_zoom(folder):
    window = opened(folder, imported(folder / "a.json", operators(["aten::a", "aten::b", "aten::c"])), "#t=0-1")
    window = opened(folder, folder / "a.json")
    whole = interval(window)
    x, y = point(window, "steps", .25)
    right = point(window, "steps", .5)[0]
    window.mouse("mousePressed", x, y, button="left", clickCount=1)
    window.mouse("mouseMoved", right, y, button="left")
    assert not window.run("pperf.chart.brush.hidden")
    window.mouse("mouseReleased", right, y, button="left", clickCount=1)
    dragged = interval(window)
    assert abs(dragged[0] - .25 * whole[1]) < .01 * whole[1] and abs(dragged[1] - .5 * whole[1]) < .01 * whole[1], (whole, dragged)
    assert window.run("location.hash").startswith("#t=%d" % round(dragged[0])), window.run("location.hash")
    window.key("+")
    assert interval(window)[1] - interval(window)[0] < dragged[1] - dragged[0]
    before = interval(window)
    window.key("ArrowRight")
    assert interval(window)[0] > before[0]
    window.key("0")
    assert interval(window) == [0, window.run("pperf.scene.end")]
    window.click("#in")
    assert interval(window)[1] - interval(window)[0] == window.run("pperf.scene.end") / 2
    window.click("#whole")
    window.run("pperf.chart.box.dispatchEvent(new WheelEvent('wheel', {deltaY: -1, ctrlKey: true, clientX: 700, cancelable: true}))")
    assert interval(window)[1] - interval(window)[0] < window.run("pperf.scene.end")
    window.click("#worst")
    assert "of" in window.run("document.getElementById('interval').textContent")
    assert not window.messages() and len(window.requests()) == 1


@case
def a_crosshair_and_a_tip_follow_the_pointer(folder):
    window = opened(folder, simulated(folder))
    for row in ("steps", "gpu", "thread"):
        if not window.run("pperf.chart.rows.some(row => row.kind === '%s')" % row):
            continue
        seen = set()
        for share in range(2, 98, 6):
            window.mouse("mouseMoved", *point(window, row, share / 100))
            assert not window.run("pperf.chart.cross.hidden")
            if not window.run("document.getElementById('tip').hidden"):
                seen.add(window.run("document.getElementById('tip').textContent"))
        assert seen, row
    window.mouse("mouseMoved", 2, 2)
    assert window.run("pperf.chart.cross.hidden && document.getElementById('tip').hidden")
    assert not window.messages()


@case
def tables_sort_and_filter(folder):
    window = opened(folder, simulated(folder))
    names = "[...document.querySelectorAll('#kernel-table tbody tr td:first-child')].map(cell => cell.textContent)"
    values = "[...document.querySelectorAll('#kernel-table tbody tr')].map(row => pperf.column(pperf.data.tables.kernels, '%s').value[row.dataset.row])"
    sums = window.run(values % "gpu_total_ns")
    assert sums == sorted(sums, reverse=True) and window.run("document.querySelector('#kernel-table th[aria-sort]').getAttribute('aria-sort')") == "descending"
    window.click("#kernel-table [data-key=calls]")
    assert window.run(values % "calls") == sorted(window.run(values % "calls"), reverse=True)
    window.click("#kernel-table [data-key=calls]")
    assert window.run(values % "calls") == sorted(window.run(values % "calls")) and window.run("document.activeElement.dataset.key") == "calls"
    everything = len(window.run(names))
    window.click("#kernel-filter")
    window.key(*window.run("pperf.data.tables.kernels.label[0]")[:6])
    assert 0 < len(window.run(names)) < everything and all(window.run("pperf.data.tables.kernels.label[0]")[:6].lower() in name.lower() for name in window.run(names))
    assert "kernel-table=" in window.run("location.hash") and not window.messages()


@case
def findings_show_their_window_and_their_frame(folder):
    for trace in traces(folder):
        window = opened(folder, trace)
        window.run("document.querySelectorAll('.findings details').forEach(one => one.setAttribute('open', ''))")
        if window.run("!!document.querySelector('.to-time')"):
            window.click(".to-time")
            begin, end = window.run("(one => [one.begin, one.end])(pperf.scene.windows.find(one => one.findings.length))")
            assert begin >= interval(window)[0] or window.run("pperf.scene.windows.filter(one => one.findings.length).length") > 1, trace
            assert end > begin and interval(window)[1] - interval(window)[0] <= window.run("pperf.scene.end"), trace
        if window.run("!!document.querySelector('.to-frame')"):
            window.click(".to-frame")
            assert window.run("pperf.graph.selected") >= 0, trace
        commands = window.run("[...document.querySelectorAll('.findings code')].map(one => one.textContent).filter(text => text.startsWith('pperf-report '))")
        assert len(commands) == window.run("pperf.data.findings.length") and not window.messages()


@case
def the_address_keeps_what_is_shown(folder):
    trace = imported(folder / "a.json", operators(["aten::a"]))
    window = opened(folder, trace, "#t=100000-200000&theme=dark&m=cpu&kernel-table=kernel")
    assert interval(window) == [100000, 200000] and window.run("pperf.graph.metric.key") == "cpu"
    assert window.run("document.documentElement.dataset.theme") == "dark" and window.run("document.getElementById('kernel-filter').value") == "kernel"
    for wrong in ("#t=5-1", "#t=x", "#t=-5-7", "#t=999999999999999-9999999999999999"):
        window.open(folder / "page.html", wrong)
        assert interval(window)[1] > interval(window)[0] and not window.messages(), wrong


# ---- look ----

@unsanitized
def light_dark_narrow_and_printed(folder):
    window = browser()
    for number, trace in enumerate(traces(folder)):
        path = page(folder, trace)
        for theme in ("light", "dark"):
            window.open(path, theme=theme)
            image = window.picture()
            keep("html-%d-%s.png" % (number, theme), image)
            assert len(pixels(image)) > 20, (trace, theme)
        window.resize(600, 900)
        window.open(path)
        assert window.run("document.documentElement.scrollWidth") <= 600, (trace, window.run("document.documentElement.scrollWidth"))
        keep("html-%d-narrow.png" % number, window.picture())
        window.resize(1440, 900)
        window.open(path, theme="dark")
        document = window.pdf()
        keep("html-%d.pdf" % number, document)
        assert document.startswith(b"%PDF") and not window.messages(), window.messages()
        assert window.run("document.documentElement.dataset.theme || ''") == "" and not window.run("pperf.chart.printing")


@case
def the_theme_changes_the_colours_of_the_timeline(folder):
    window = opened(folder, imported(folder / "a.json", operators(["aten::a"])))
    light = window.run("pperf.chart.canvas.toDataURL()")
    window.click("#theme")
    assert window.run("pperf.chart.canvas.toDataURL()") != light


@case
def every_text_on_a_colour_has_a_contrast_of_4_5(folder):
    for theme, colours in enumerate(theme_colours()):
        pairs = [("dark-ink", name) for name in colours if re.match(r"category-", name)] + [("frame-ink", name) for name in colours if re.match(r"step-", name)]
        pairs += [("soft", "card"), ("peak", "card"), ("ink", "accent-soft"), ("soft", "accent-soft"), ("accent", "card")]
        for text, ground in pairs:
            assert contrast(colours[text], colours[ground]) >= LEAST_CONTRAST, "%s on %s in theme %d: %.2f" % (text, ground, theme, contrast(colours[text], colours[ground]))


@case
def colours_of_one_kind_differ(folder):
    check_colours_differ("idle-|busy", "category-", "owner-")


@case
def every_cause_of_idle_time_has_a_colour(folder):
    """A class without a rule is drawn black."""
    source, rules = (ROOT / "report" / "analysis" / "gap_cause.h").read_text(), (ROOT / "report" / "page" / "run.css").read_text()
    causes = re.findall(r'X\([A-Z]+, "([^"]+)"\)', source[source.index("#define GAP_CAUSES"):source.index("enum gap_cause")])
    window = browser()
    window.open(page(folder, imported(folder / "a.json", operators(["aten::a"]))))
    classes = {cause: window.run("pperf.causeClass(%s)" % json.dumps(cause)) for cause in causes + ["host-bound", "busy", "exposed communication", "unrecorded"]}
    classes.pop("exposed communication")  # a rule of several.css
    assert len(causes) > 10 and len(set(classes.values())) == len(classes), classes
    colours = theme_colours()[0]
    assert all(name in colours and ".%s {" % name in rules for name in classes.values()), [name for name in classes.values() if name not in colours]


# ---- safety, sizes, errors ----

@case
def the_policy_allows_only_the_page_s_own_styles_and_scripts(folder):
    text = page(folder, imported(folder / "a.json", operators(["aten::a"]))).read_text()
    check_policy(text)


@case
def hostile_names_are_shown_as_text(folder):
    window = browser()
    open_hostile(window, page(folder, hostile(folder)))

    def texts(value):
        return [value] if isinstance(value, str) else [text for one in (value.values() if isinstance(value, dict) else value) for text in texts(one)] if isinstance(value, (dict, list)) else []
    data = data_of(folder / "page.html")
    data.pop("node_kinds")
    # our own sentences, with names in them, may be longer than a name
    sentences = texts(data.pop("verdict")) + [text for one in data["findings"] for text in (one.pop("finding"), one.pop("evidence"), one.pop("next"), one.pop("command"))]
    assert sentences and all(len(text) <= 2000 and (not text or text.isprintable()) for text in sentences), sentences
    assert all(len(text) <= 400 and (not text or text.isprintable()) for text in texts(data)), [text[:80] for text in texts(data) if len(text) > 400 or not text.isprintable()]
    window.resize(1440, 3000)
    for y in range(400, 2900, 150):
        window.mouse("mouseMoved", 700, y)
    assert "<img src=x" in window.run("document.getElementById('kernels').textContent") + window.run("document.getElementById('flame').textContent") + window.run("document.querySelector('h1').textContent")
    assert not window.messages() and len(window.requests()) == 1, (window.messages(), window.requests())


@case
def pages_are_small(folder):
    for trace in traces(folder):
        assert page(folder, trace).stat().st_size <= 6 << 20, trace


@case
def traces_without_values_and_cut_traces_make_a_page(folder):
    window = browser()
    for trace in empty_and_cut(folder):
        window.open(page(folder, trace))
        assert not window.messages(), window.messages()


@case
def wrong_usage_says_what_is_wrong(folder):
    trace = imported(folder / "a.json", operators(["aten::a"]))
    for arguments, word in ((["--all", trace, trace], "no collective"), (["-f", "json", trace], "HTML"), (["-f", "svg", trace], "HTML")):
        result = report("html", *arguments, check=64)
        assert result.stdout == b"" and word.encode() in result.stderr, result.stderr
    assert report("html", trace, "-o", folder / "no" / "page.html", check=2).stderr


main()
