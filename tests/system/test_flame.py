#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The view `flame`: its values are those of the text views, its page works by mouse and keys in a
browser, and names of a trace stay text.

PPERF_TEST_PICTURES=FOLDER keeps the pictures that the cases take."""
import json, os, pathlib, pty, random, re, subprocess, xml.etree.ElementTree
from harness import REPORT, ROOT, Skip, case, environment, main, report, run, traced
from pages import browser, check_policy, contrast, DATA, data_of, empty_and_cut, event, HOSTILE, hostile, imported, json_of, keep, LEAST_CONTRAST, mixed, open_hostile, operators, PAGE, pixels, samples, scaled, simulated, theme_colours


# ---- pages ----

def page(folder, *arguments):
    path = folder / "page.html"
    report("flame", *arguments, "-o", path)
    return path


def own_values(data, shape, metric):
    number = next(m["number"] for m in data["flame"]["metrics"] if m["key"] == metric)
    return data["flame"]["shapes"][shape]["values"][str(number)]["own"]


# ---- values ----

TREE_KEYS = {"gpu": "gpu_total_ns", "idle": "idle_before_ns", "tensors": "tensor_alloc_bytes", "alloc": "alloc_bytes", "allocated": "at_peak_bytes"}


@case
def the_sum_of_all_frames_is_the_total_of_the_text_views(folder):
    for trace in samples(folder):
        data, totals = data_of(page(folder, trace)), json_of("tree", trace)["totals"]
        expected = {"gpu": "gpu_sum_ns", "idle": "gpu_idle_ns", "allocated": "allocated_peak_bytes", "reserved": "reserved_peak_bytes",
                    "tensors": "tensor_alloc_bytes", "alloc": "alloc_bytes"}
        shown = {metric["key"]: metric["shapes"] for metric in data["flame"]["metrics"]}
        for metric, key in expected.items():
            assert bool(totals[key]) == (metric in shown), "%s: %s of %s" % (trace, metric, totals[key])
            for shape in shown.get(metric, ()):
                assert sum(own_values(data, shape, metric)) == totals[key], "%s: %s by %s" % (trace, metric, shape)


@case
def memory_by_native_call_stack_is_the_total_too(folder):
    trace = simulated(folder)
    data, totals = data_of(page(folder, "--by", "stack", "-m", "reserved", trace)), json_of("tree", trace)["totals"]
    assert data["flame"]["shape"] == "stack" and data["flame"]["metric"] == "reserved"
    assert sum(own_values(data, "stack", "reserved")) == totals["reserved_peak_bytes"] and sum(own_values(data, "stack", "alloc")) == totals["alloc_bytes"]
    assert "stack" not in data_of(page(folder, trace))["flame"]["shapes"] and data_of(folder / "page.html")["flame"]["more_stacks"]


@case
def gpu_time_by_call_stack_is_that_of_the_table(folder):
    compared = 0
    for trace in samples(folder):
        stacks = data_of(page(folder, trace))["flame"]["shapes"].get("stack", {"values": {}})
        if "0" not in stacks["values"]:
            continue
        rows, totals = (json_of("table", trace, "--by", "stack", "--top", "0")[key] for key in ("rows", "totals"))
        data, compared = data_of(folder / "page.html"), compared + 1
        outermost = [data["strings"][name] if parent < 0 else None for name, parent in zip(stacks["name"], stacks["parent"])]
        without = sum(own for own, name in zip(own_values(data, "stack", "gpu"), outermost) if name == "(no call stack)")
        assert sum(own_values(data, "stack", "gpu")) == totals["gpu_sum_ns"], trace
        assert without == sum(row["gpu_total_ns"] for row in rows if row["name"] == "(no call stack)"), trace
    if not compared:
        raise Skip("no trace with call stacks of launches is at hand (PPERF_TEST_DATA)")


@case
def cpu_time_of_frames_is_that_of_all_ranges_and_calls(folder):
    for trace in samples(folder):
        data = data_of(page(folder, trace))
        for shape, options in (("folded", []), ("each", ["--no-fold"])):
            rows = json_of("tree", trace, *options)["rows"]
            ranges = sum(row.get("cpu_self_ns", 0) for row in rows)
            outside = [row for row in rows if row["kind"] in ("api", "sync", "alloc") and (row["parent"] is None or rows[row["parent"]]["kind"] == "unattributed")]
            assert sum(own_values(data, shape, "cpu")) == ranges + sum(row["cpu_total_ns"] for row in outside), (trace, shape)


@case
def fifty_random_frames_of_each_metric_show_what_the_tree_shows(folder):
    window, picks = browser(), random.Random(7)
    for trace in samples(folder):
        path = page(folder, trace)
        data, rows = data_of(path), json_of("tree", trace)["rows"]
        by_path = {tuple(row["path"]): row for row in rows}
        window.open(path)
        for metric in data["flame"]["metrics"]:
            if metric["key"] not in TREE_KEYS or "folded" not in metric["shapes"]:
                continue
            window.click("#metric [data-key=%s]" % metric["key"])
            if len(metric["shapes"]) > 1:
                window.click("#shape [data-key=folded]")
            own, frames = own_values(data, "folded", metric["key"]), data["flame"]["shapes"]["folded"]
            totals = list(own)
            for i in reversed(range(len(totals))):
                if frames["parent"][i] >= 0:
                    totals[frames["parent"][i]] += totals[i]
            candidates = [i for i, total in enumerate(totals) if total > 0]
            for frame in picks.sample(candidates, min(50, len(candidates))):
                names, at = [], frame
                while at >= 0:
                    names.insert(0, data["strings"][frames["name"][at]])
                    at = frames["parent"][at]
                row = by_path.get(tuple(names))
                if row is None and names[-1].startswith("(allocated "):
                    continue
                shown = window.run("pperf.graph.select(%d), document.querySelector('#details dd').textContent" % frame)
                wanted = scaled(row[TREE_KEYS[metric["key"]]], metric["unit"])
                assert shown.split(" (")[0] == wanted, "%s: %s of %s is shown as %s, not %s" % (trace, metric["key"], names, shown, wanted)
    assert not window.messages(), window.messages()


@case
def the_page_formats_numbers_as_the_text_views_do(folder):
    window, path = browser(), page(folder, imported(folder / "a.json", operators(["aten::a"])))
    window.open(path)
    cases = [line.split("\t") for line in (ROOT / "tests/report/page/numbers.tsv").read_text().splitlines() if not line.startswith("#")]
    assert len(cases) > 30
    for unit, first, second, wanted in cases:
        script = "pperf.percent(%s, %s)" % (first, second) if unit == "percent" else "pperf.number(%s, '%s')" % (first, {"count": "number"}.get(unit, unit))
        assert window.run(script) == wanted, "%s %s %s: %s, not %s" % (unit, first, second, window.run(script), wanted)


@case
def a_program_s_own_counter_is_a_metric(folder):
    traced(folder, "user_metrics")
    data = data_of(page(folder, folder / "trace.bin"))
    metrics = {metric["title"]: metric for metric in data["flame"]["metrics"] if metric["is_counter"]}
    assert metrics, [metric["key"] for metric in data["flame"]["metrics"]]
    assert increases(folder / "trace.bin", set(metrics)) == {title: sum(own_values(data, "folded", metric["key"])) for title, metric in metrics.items()}


def increases(trace, names):
    """The sum of what each counter increased by, from the records."""
    last, sums = {}, {name: 0 for name in names}
    for line in report("dump", trace, "-f", "json").stdout.decode().splitlines():
        record = json.loads(line)
        if record["kind"] != "metric" or record.get("name") not in names:
            continue
        value = record["value"]
        value = float(value) if isinstance(value, str) else value
        sums[record["name"]] += max(0, value - last.get(record["name"], value))
        last[record["name"]] = value
    return sums


@case
def small_frames_are_summed_so_that_a_tree_has_at_most_20000(folder):
    names = ["aten::operator %s" % "".join(random.Random(i).choices("abcdefghijklmnopqrstuvwxyz", k=12)) for i in range(15000)]
    trace = imported(folder / "large.json", operators(names, steps=1))
    path = page(folder, trace)
    data, totals = data_of(path), json_of("tree", trace, "--depth", "1")["totals"]
    frames = data["flame"]["shapes"]["folded"]
    assert len(json_of("tree", trace)["rows"]) > 40000 and 15000 < len(frames["parent"]) <= 20000, len(frames["parent"])
    assert sum(own_values(data, "folded", "gpu")) == totals["gpu_sum_ns"] and sum(own_values(data, "folded", "tensors")) == totals["tensor_alloc_bytes"]
    more = [data["strings"][frames["name"][i]] for i, kind in enumerate(frames["kind"]) if data["flame"]["kinds"][kind].startswith("small")]
    assert more and all(re.fullmatch(r"\d+ more", name) for name in more), more[:5]
    assert path.stat().st_size < 6000000, path.stat().st_size


# ---- the page in a browser ----

def width_of(window, frame):
    return window.run("document.querySelector('#f%d rect').getBoundingClientRect().width" % frame)


def frame_named(window, name):
    return window.run("pperf.graph.tree.frames.label.findIndex(label => pperf.text(label).startsWith(%s))" % json.dumps(name))


def opened(folder, *options, fragment="", **how):
    window = browser()
    window.open(page(folder, imported(folder / "a.json", operators(["aten::a", "aten::b", "aten::c", "my_copy"])), *options), fragment, **how)
    return window


def marked(window):
    """The number of frames that a search found, and that of the others."""
    return window.run("['.hit', '.dim'].map(name => document.querySelectorAll('#flame ' + name).length)")


@case
def mouse_and_keys_hover_zoom_search_and_reset(folder):
    window = opened(folder)
    whole = window.run("document.querySelector('#flame').clientWidth")
    frame = frame_named(window, "aten::b")
    before = width_of(window, frame)
    window.hover("#f%d" % frame)
    tip = window.run("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    assert "aten::b" in tip and "GPU time" in tip and "calls" in tip, tip
    window.click("#f%d" % frame)
    assert width_of(window, frame) > whole - 2 > before, "a click zooms"
    assert "aten::b" in window.run("document.getElementById('details').textContent")
    assert "pperf-report tree" in window.run("document.querySelector('#details code').textContent")
    window.key("Escape")
    assert width_of(window, frame) < whole - 2, "Escape goes one up"
    window.click("#reset")
    assert abs(width_of(window, frame) - before) < 1, "reset"
    window.run("document.getElementById('flame').focus()")
    window.key("ArrowDown", "ArrowDown", "ArrowRight")
    selected = window.run("document.getElementById('flame').getAttribute('aria-activedescendant')")
    assert selected and window.run("document.getElementById('live').textContent") == window.run("document.getElementById('%s').getAttribute('aria-label')" % selected)
    window.key("Enter")
    assert window.run("document.querySelector('#%s rect').getBoundingClientRect().width" % selected) > whole - 2, "Enter zooms"
    window.key("0")
    assert abs(width_of(window, frame) - before) < 1
    window.key("/", "c", "o", "p", "y")
    assert window.run("document.activeElement.id") == "search"
    found, total = window.run("document.getElementById('found').textContent"), window.run("pperf.graph.tree.totals[%d]" % frame_named(window, "my_copy"))
    assert found.startswith("2 found, " + scaled(int(total), "time")), "the kernel in the operator counts once: " + found
    assert marked(window) == [2, window.run("pperf.graph.drawn.size") - 2] and marked(window)[1] > 2
    window.key("Enter")
    assert window.run("pperf.graph.found.hits[pperf.graph.selected]") == 1
    window.run("pperf.graph.draw()")
    assert marked(window) == [2, window.run("pperf.graph.drawn.size") - 2], "what is drawn again stays marked"
    window.key("z")
    assert marked(window) == [0, window.run("pperf.graph.drawn.size")], "nothing has this name"
    window.key("Escape")
    assert marked(window) == [0, 0]
    assert not window.messages() and len(window.requests()) == 1, (window.messages(), window.requests())


@case
def each_metric_and_shape_has_a_button_and_parts_add_up(folder):
    for trace in samples(folder):
        window = browser()
        window.open(page(folder, trace))
        for metric in window.run("pperf.data.flame.metrics.map(metric => metric.key)"):
            if window.run("pperf.data.flame.metrics.length") > 1:
                window.click("#metric [data-key='%s']" % metric)
            for shape in window.run("pperf.graph.metric.shapes"):
                if window.run("pperf.graph.metric.shapes.length") > 1:
                    window.click("#shape [data-key=%s]" % shape)
                assert window.run("pperf.graph.metric.key + pperf.graph.shape") == metric + shape
                assert window.run("(() => { const {tree} = pperf.graph; return tree.totals.every((total, i) => total === tree.own[i] + "
                                  "tree.children[i].reduce((sum, child) => sum + tree.totals[child], 0)); })()"), (trace, metric, shape)
        assert not window.messages(), window.messages()


@case
def the_address_keeps_what_is_shown(folder):
    window = opened(folder)
    window.click("#metric [data-key=cpu]")
    frame = frame_named(window, "aten::c")
    window.click("#f%d" % frame)
    window.run("document.getElementById('search').focus()")
    window.key("a")
    window.click("#theme")
    fragment = window.run("location.hash")
    assert all(word in fragment for word in ("m=cpu", "zoom=%d" % frame, "q=a", "theme=dark")), fragment
    window.open(folder / "page.html", fragment)
    assert window.run("[pperf.graph.metric.key, pperf.graph.zoom, document.getElementById('search').value, document.documentElement.dataset.theme]") == ["cpu", frame, "a", "dark"]
    for wrong in ("#m=nothing&zoom=999999&shape=x&q=/(/&theme=%22", "#zoom=-5&m=__proto__", "#zoom=1.5&q=%00"):
        window.open(folder / "page.html", wrong)
        assert window.run("pperf.graph.drawn.size") > 0 and not window.messages(), wrong


def after_a_long_start(path):
    start = [event("cpu_op", "aten::load", 1000, 95000), event("cuda_runtime", "cudaLaunchKernel", 1500, 20, correlation=9999),
             event("kernel", "load_kernel", 2000, 80000, pid=0, correlation=9999, device=0, stream=7, grid=[4, 1, 1], block=[128, 1, 1])]
    return imported(path, start + [{**one, "ts": one["ts"] + 100000} for one in operators(["aten::a", "aten::b"])])


@case
def after_a_long_start_the_steps_come_first(folder):
    window, pressed = browser(), "document.querySelector('#scope [aria-pressed=true]')?.dataset.key"
    window.open(page(folder, after_a_long_start(folder / "start.json")))
    totals = json_of("tree", folder / "start.json")["totals"]
    width = window.run("document.querySelector('#flame').clientWidth")
    for metric in ("gpu", "cpu"):
        window.click("#metric [data-key=%s]" % metric)
        for shape in ("folded", "each"):
            window.click("#shape [data-key=%s]" % shape)
            steps_in_it = window.run("[...document.querySelectorAll('#flame g[data-frame]')].filter(g => g.getAttribute('aria-label').startsWith('ProfilerStep#'))"
                                     ".reduce((sum, g) => sum + g.querySelector('rect').getBoundingClientRect().width, 0)")
            assert window.run(pressed) == "steps" and steps_in_it > .7 * width, (metric, shape, steps_in_it)
            assert "load" not in window.run("document.getElementById('flame').textContent")
    window.click("#metric [data-key=gpu]")
    assert scaled(totals["gpu_sum_ns"], "time") in window.run("document.getElementById('note').textContent"), "the note has the whole"
    window.click("#scope [data-key=all]")
    assert window.run("pperf.graph.tree.total") == totals["gpu_sum_ns"] and "scope=all" in window.run("location.hash")
    window.open(folder / "page.html", "#scope=all")
    frame = frame_named(window, "aten::load")
    assert window.run(pressed) == "all" and width_of(window, frame) > .9 * width
    window.open(folder / "page.html")
    window.run("pperf.graph.select(%d)" % frame)
    assert window.run(pressed) == "all" and width_of(window, frame) > .9 * width, "what is not in the steps shows the whole run"
    window.open(folder / "page.html", "#m=allocated")
    assert window.run(pressed) in (None, "all"), "memory is held from before the steps"
    window.open(page(folder, imported(folder / "plain.json", operators(["aten::a"]))))
    assert window.run(pressed) in (None, "all") and not window.messages()


@case
def light_dark_narrow_and_printed(folder):
    window = opened(folder)
    for theme in ("light", "dark"):
        window.media(theme)
        window.resize(1440, 900)
        keep("flame-%s.png" % theme, window.picture())
        window.resize(480, 300)
        colours = pixels(window.picture())
        background = window.run("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", background)[:3])) > 600) == (theme == "light"), background
        assert len(colours) > 10, "a blank picture"
    window.media("light")
    window.click("#theme")
    assert window.run("getComputedStyle(document.body).backgroundColor") != "rgb(245, 246, 248)", "the button switches the theme"
    for width in (600, 900, 2560):
        window.resize(width, 900)
        window.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert window.run("document.documentElement.scrollWidth") <= width, "%d wide" % width
        keep("flame-%d.png" % width, window.picture())
    window.resize(1440, 900)
    document = window.pdf()
    keep("flame.pdf", document)
    assert document.startswith(b"%PDF") and len(document) > 5000
    window.call("Emulation.setEmulatedMedia", media="print")
    assert window.run("getComputedStyle(document.querySelector('#search')).display") == "none"
    assert window.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    window.call("Emulation.setEmulatedMedia", media="")
    window.media("light", forced_colors="active", prefers_reduced_motion="reduce")
    assert window.run("getComputedStyle(document.querySelector('#flame rect')).transitionDuration") == "0s"
    keep("flame-forced-colors.png", window.picture())
    assert not window.messages(), window.messages()


@case
def no_text_leaves_its_frame(folder):
    for trace in samples(folder):
        window = browser()
        window.open(page(folder, trace))
        for width in (1440, 600):
            window.resize(width, 900)
            window.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            outside = window.run("[...document.querySelectorAll('#flame g')].filter(group => { const box = group.firstChild.getBoundingClientRect();"
                                 "return [...group.querySelectorAll('text')].some(text => { const inner = text.getBoundingClientRect();"
                                 "return inner.left < box.left || inner.right > box.right + 1; }); }).map(group => group.textContent)")
            overlap = window.run("[...document.querySelectorAll('#flame g')].filter(group => { const texts = [...group.querySelectorAll('text')].map(text => text.getBoundingClientRect());"
                                 "return texts.length === 2 && texts[0].right > texts[1].left; }).map(group => group.textContent)")
            assert not outside and not overlap, (trace, width, outside[:3], overlap[:3])


@case
def a_screen_reader_gets_a_tree_with_names(folder):
    window = opened(folder)
    assert window.run("document.getElementById('flame').getAttribute('role')") == "tree"
    assert window.run("[...document.querySelectorAll('#flame g')].every(item => item.getAttribute('role') === 'treeitem' && item.getAttribute('aria-label') && item.getAttribute('aria-level'))")
    assert window.run("[...document.querySelectorAll('button, input')].every(control => control.textContent || control.getAttribute('aria-label'))")
    assert window.run("document.querySelector('#metric [aria-pressed=true]').textContent") == "GPU time"
    assert window.run("document.documentElement.lang") == "en"


@case
def every_text_has_a_contrast_of_4_5(folder):
    for theme, colours in enumerate(theme_colours()):
        frames = [name for name in colours if re.match(r"frame-\d|up-|down-|same", name)]
        pairs = [("frame-ink", colours[frame]) for frame in frames]
        pairs += [("ink", mixed(colours[frame], colours["card"], opacity)) for frame in frames for opacity in (.25, .55)]
        pairs += [(text, colours[ground]) for text in ("ink", "soft", "good", "bad", "accent", "warn") for ground in ("bg", "card")]
        pairs += [("warn", colours["warn-soft"]), ("ink", colours["accent-soft"]), ("card", colours["accent"])]
        for text, ground in pairs:
            assert contrast(colours[text], ground) >= LEAST_CONTRAST, "%s on %s in theme %d: %.2f" % (text, ground, theme, contrast(colours[text], ground))
    assert len(frames) == 20


@case
def the_policy_allows_only_the_page_s_own_styles_and_scripts(folder):
    text = page(folder, imported(folder / "a.json", operators(["aten::a"]))).read_text()
    check_policy(text)
    assert not re.findall(r"<[^>]* (?:on\w+|style|src|href)=", re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.S))
    scripts = "".join(path.read_text() for path in PAGE.glob("*.js"))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|fetch\(|XMLHttp|localStorage|sessionStorage|clipboard", scripts)


@case
def hostile_names_are_shown_as_text(folder):
    window = browser()
    open_hostile(window, page(folder, hostile(folder)))
    assert window.run("performance.now()") < 20000
    strings = data_of(folder / "page.html")["strings"]
    assert all(len(text) <= 400 and text.isprintable() for text in strings), [text[:80] for text in strings if len(text) > 400 or not text.isprintable()]
    for metric in ("gpu", "cpu", "tensors"):
        window.click("#metric [data-key=%s]" % metric)
    for query in ("<script", "__proto__", "\\u202e"):
        window.run("pperf.graph.input.value = %s; pperf.graph.search()" % json.dumps(query))
        assert not window.run("document.getElementById('found').textContent").startswith("0 "), query
    frame = frame_named(window, "<img")
    window.run("pperf.graph.select(%d)" % frame)
    assert "<img src=x" in window.run("document.getElementById('details').textContent")
    assert "<img src=x" in window.run("document.querySelector('h1').textContent")
    assert not window.messages() and len(window.requests()) == 1, (window.messages(), window.requests())


@case
def the_command_below_a_frame_shows_its_value(folder):
    window = browser()
    for trace in samples(folder)[:2]:
        window.open(page(folder, trace))
        for frame in window.run("[...pperf.graph.drawn.keys()].slice(0, 30)"):
            window.run("pperf.graph.select(%d)" % frame)
            command, shown = window.run("[document.querySelector('#details code').textContent, document.querySelector('#details dd').textContent]")
            result = run(folder, "sh", "-c", command.replace("pperf-report", str(REPORT), 1) + " --width 200 --min-percent 0", env={"LC_ALL": "C.UTF-8"}, check=0)
            assert shown.split(" (")[0] in result.stdout.decode(), "%s does not show %s" % (command, shown)


# ---- differential ----

@case
def a_differential_graph_names_what_changed(folder):
    before = imported(folder / "before.json", operators(["aten::a", "aten::b", "aten::gone"]))
    after = imported(folder / "after.json", operators(["aten::a", "aten::b", "aten::new"], slower="aten::b"))
    window = browser()
    window.open(page(folder, before, after))
    changes = window.run("[...document.querySelectorAll('#largest button')].map(row => row.textContent)")
    assert changes[0].startswith("+150.00 µs") and "kernel_of_b" in changes[0], changes
    assert any("new, " in row and "aten::new" in row for row in changes) and any("gone, was " in row and "aten::gone" in row for row in changes), changes
    classes = {name: window.run("document.querySelector('#f%d rect').getAttribute('class')" % frame_named(window, name)) for name in ("aten::a", "aten::b", "aten::gone", "aten::new")}
    assert classes["aten::a"] == "same" and classes["aten::b"].startswith("up") and classes["aten::gone"].startswith("down") and classes["aten::new"].startswith("up"), classes
    data = data_of(folder / "page.html")
    number = str(next(m["number"] for m in data["flame"]["metrics"] if m["key"] == "gpu"))
    values = data["flame"]["shapes"]["folded"]["values"][number]
    assert [sum(values[side]) for side in ("before", "own")] == [json_of("tree", trace)["totals"]["gpu_sum_ns"] for trace in (before, after)]
    assert not window.messages()
    window.open(page(folder, before, before))
    assert window.run("document.querySelectorAll('#flame .same').length === document.querySelectorAll('#flame rect').length")
    assert "Nothing changed." in window.run("document.getElementById('details').textContent")


@case
def two_real_traces_of_a_changed_program_differ_where_it_was_compiled(folder):
    sides = [pathlib.Path(DATA or "/", "verdicts", "hta__trace_diff~%s~%s.json.gz" % (side, side)) for side in ("control", "test")]
    if not all(side.exists() for side in sides):
        raise Skip("PPERF_TEST_DATA has no such traces")
    window = browser()
    window.open(page(folder, *sides))
    text = window.run("document.getElementById('largest').textContent")
    assert "CompiledFunction" in text and "all_reduce" in text, text[:500]
    keep("flame-diff.png", window.picture())


# ---- files and errors ----

def elements(text):
    """The root of an SVG file, and its frames."""
    root = xml.etree.ElementTree.fromstring(text)
    return root, [group for group in root.iter("{http://www.w3.org/2000/svg}g")]


@case
def a_static_picture_has_titles_and_no_script(folder):
    trace = imported(folder / "a.json", operators(["aten::a", *HOSTILE[:6]]))
    text = report("flame", "-f", "svg", trace).stdout.decode()
    root, frames = elements(text)
    titles = [group.find("{http://www.w3.org/2000/svg}title").text for group in frames]
    assert "script" not in {element.tag.split("}")[1] for element in root.iter()} and "href" not in text
    assert any(title.startswith("ProfilerStep#") and "100 %" in title for title in titles), titles[:3]
    assert any("</script>" in title for title in titles)
    root, frames = elements(report("flame", "-f", "svg", "-m", "cpu", trace, imported(folder / "b.json", operators(["aten::b"]))).stdout.decode())
    assert any(group.get("class").startswith("down") for group in frames) and any("→" in group[0].text for group in frames)


@case
def a_static_picture_has_the_part_of_the_run_that_the_page_opens_with(folder):
    trace, whole = after_a_long_start(folder / "start.json"), imported(folder / "a.json", operators(["aten::a", "aten::b"]))

    def drawn(*options):
        text = report("flame", "-f", "svg", *options).stdout.decode()
        return text, [group.find("{http://www.w3.org/2000/svg}title").text for group in elements(text)[1]]
    outside, total = 80000 * 1000, json_of("tree", trace)["totals"]["gpu_sum_ns"]
    text, titles = drawn(trace)
    assert titles[0].startswith("ProfilerStep#*") and titles[0].endswith(", 100 %") and not any("load" in title for title in titles), titles
    assert "GPU time %s<" % scaled(total - outside, "time") in text and "without %s outside of them (--whole draws all)" % scaled(outside, "time") in text, text[:3000]
    text, titles = drawn(trace, "--whole")
    assert "GPU time %s<" % scaled(total, "time") in text and "--whole" not in text and any("load" in title for title in titles), titles
    assert drawn(whole) == drawn(whole, "--whole"), "most is in the steps"
    text, titles = drawn(trace, trace)
    assert not any("load" in title for title in titles) and "--whole" in text, titles
    assert b"--whole works with flame -f svg only" in report("flame", "--whole", trace, check=64).stderr


@case
def traces_without_values_and_cut_traces_make_a_page(folder):
    window = browser()
    for trace in empty_and_cut(folder):
        path = page(folder, trace)
        data, totals = data_of(path), json_of("tree", trace)["totals"]
        for metric in data["flame"]["metrics"]:
            if metric["key"] in ("gpu", "alloc"):
                assert sum(own_values(data, "folded", metric["key"])) == totals[{"gpu": "gpu_sum_ns", "alloc": "alloc_bytes"}[metric["key"]]], trace.stat().st_size
        window.open(path)
        assert not window.messages(), window.messages()


@case
def wrong_usage_says_what_is_wrong(folder):
    trace = imported(folder / "a.json", operators(["aten::a"]))
    for arguments, word in ((["-m", "nothing", trace], "gpu"), ([trace, trace, trace], "BEFORE AFTER"), (["--by", "module", trace], "path, stack, python, native and all"),
                            (["-f", "csv", trace], "html or svg"), (["-m", "gpu", "--by", "stack", trace], "memory")):
        result = report("flame", *arguments, check=64)
        assert result.stdout == b"" and result.stderr.count(b"\n") == 1 and word.encode() in result.stderr, result.stderr
    assert b"flame" in report("tree", "-f", "html", trace, check=64).stderr
    assert report("flame", trace, "-o", folder / "no" / "page.html", check=2).stderr
    assert report("flame", trace, "-o", trace, check=64).stderr and json.loads(trace.read_text())
    assert sorted(path.name for path in folder.iterdir()) == ["a.json"]


@case
def a_page_replaces_the_file_only_when_it_is_complete(folder):
    trace, target = imported(folder / "a.json", operators(["aten::a"])), folder / "out.html"
    target.write_text("before")
    report("flame", trace, "-o", target)
    assert target.read_text().startswith("<!doctype html>") and sorted(path.name for path in folder.iterdir()) == ["a.json", "out.html"]
    report("flame", trace, "-o", "/dev/null")
    assert not pathlib.Path("/dev/null").is_file()
    assert report("flame", trace).stdout.startswith(b"<!doctype html>")


@case
def on_a_terminal_the_page_is_written_beside_the_trace(folder):
    trace = imported(folder / "a.json", operators(["aten::a"]))
    main_end, terminal = pty.openpty()
    for options, name in (([], "a.json.flame.html"), (["-f", "svg"], "a.json.flame.svg")):
        result = subprocess.run([str(REPORT), "flame", str(trace), *options], stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE,
                                env=environment(LC_ALL="C.UTF-8", TERM="xterm"), timeout=60)
        assert result.returncode == 0 and name.encode() in result.stderr and (folder / name).exists(), result.stderr
    os.close(terminal)
    os.close(main_end)


main()
