#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The view `html` of several traces: the ranks of a run on one clock, two traces side by side. Their
figures are those of the views `ranks` and `diff`.

PPERF_TEST_PICTURES=FOLDER keeps the pictures that the cases take."""
import json, pathlib, random, re
from harness import case, main, report, unsanitized
from pages import browser, check_colours_differ, DATA, data_of, HOSTILE, imported, json_of, keep, operators, pixels, scaled

BASE = 5000000000 # microseconds; small enough for a double to be exact to the nanosecond


# ---- ranks ----

def rank_events(rank, late, offset=0, steps=12, name="gemm", collective="AllReduce_Sum_f32_RING_LL"):
    """A rank whose clock is ahead by `offset` us. Each step computes, and waits in a collective for
    the rank that begins it last: late(rank, step) us after 4 ms."""
    events, correlation = [], 0

    def add(category, name, start, duration, tid, **args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid, "ts": BASE + offset + start, "dur": duration, "args": args})
    for step in range(steps):
        begin = 1000 + 10000 * step + 317 * (step * step % 7)
        last = max(late(other, step) for other in range(rank.count))
        add("user_annotation", "ProfilerStep#%d" % step, begin, 9000, 1)
        add("cpu_op", "load", begin + 100, 500 + late(rank.number, step), 1)
        for kernel, asked, start, end, stream in ((name, begin + 1000, begin + 1100 + late(rank.number, step), begin + 3900 + late(rank.number, step), 7),
                                                  ("ncclDevKernel_" + collective, begin + 3800, begin + 4000 + late(rank.number, step), begin + 4300 + last, 20)):
            correlation += 1
            add("cuda_runtime", "cudaLaunchKernel", asked, 5, 1, correlation=correlation)
            events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": stream, "ts": BASE + offset + start, "dur": end - start,
                           "args": {"correlation": correlation, "device": 0, "stream": stream, "grid": [4, 1, 1], "block": [128, 1, 1]}})
    return events


class Rank:
    def __init__(self, number, count):
        self.number, self.count = number, count


def job(folder, count, late=lambda rank, step: (0, 100, 1500, 30)[rank % 4], offset=5000, **options):
    """The traces of a run."""
    (folder / "job").mkdir(exist_ok=True)
    found = []
    for number in range(count):
        path = folder / "job" / ("rank%d.json" % number)
        events = rank_events(Rank(number, count), late, offset if number else 0, **options)
        path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": number}, "deviceProperties": [{"id": 0, "name": "GPU <b>"}], "traceEvents": events}))
        found.append(path)
    return found


def dlrm():
    return sorted(pathlib.Path(DATA, "kineto").glob("param__dlrm_worker*.json.gz")) if DATA else []


def jobs(folder):
    return [traces for traces in (job(folder, 3), dlrm()) if traces]


def page(folder, traces, *options):
    path = folder / "page.html"
    report("html", *traces, *options, "-o", path)
    return path


def opened(folder, traces, fragment="", theme="light"):
    window = browser()
    window.open(page(folder, traces), fragment, theme)
    return window


def column(table, key):
    return next(column for column in table["columns"] if column["key"] == key)


def series(lane):
    return {one["name"]: (one["total_ns"], sum(one["ns"])) for one in lane.get("series", [])}


@case
def lanes_and_cells_of_ranks_are_those_of_the_view_ranks(folder):
    for traces in jobs(folder):
        data, ranks = data_of(page(folder, traces))["ranks"], json_of("ranks", traces[0], *traces[1:])
        lanes = data["scene"]["whole"]["lanes"]
        assert len(lanes) == 2 * len(traces)
        for number, row in enumerate(ranks["rows"]):
            gpu, collectives = series(lanes[2 * number]), series(lanes[2 * number + 1])
            assert all(total == columns for total, columns in [*gpu.values(), *collectives.values()]), "columns add up to the total"
            exposed = gpu.get("exposed communication", (0,))[0]
            assert exposed == row["gpu_exposed_communication_ns"] and exposed + gpu["busy"][0] == row["gpu_busy_ns"], (number, gpu, row)
            assert [collectives.get(part, (0,))[0] for part in ("wait", "transfer", "unmatched")] == [row["wait_ns"], row["transfer_ns"], row["unmatched_ns"]], (number, collectives)
            idle = {one["name"]: one["gap_ns"] for one in json_of("idle", traces[number])["rows"] if one["kind"] == "cause"}
            assert {name: total for name, (total, _) in gpu.items() if name not in ("busy", "exposed communication")} == {name: ns for name, ns in idle.items() if ns}, (number, gpu, idle)
            for of in data["table"]["columns"]:
                assert of["value"][number] == row[of["key"]], of["key"]
                if of["key"].endswith("_ns") and of["key"] != "offset_ns" and row[of["key"]] is not None:
                    assert of["text"][number] == scaled(row[of["key"]], "time"), of["key"]


@case
def sentences_and_rows_are_those_of_the_text_of_ranks(folder):
    for traces in jobs(folder):
        text = " ".join(report("ranks", *traces, "--width", "5000", "-n", "0").stdout.decode().split())
        data = data_of(page(folder, traces))["ranks"]
        assert data["alignment"] in text and data["matched"] in text, data["matched"]
        assert all(one["text"] in text for one in data["stragglers"]) and (data["stragglers"] or data["no_straggler"] in text)
        assert all(one["clock"] in text for one in data["all"] if "clock" in one)
        rows, table = json_of("ranks", traces[0], *traces[1:])["collectives"], data["collectives"]
        assert table["rows"] == len(rows)
        for number, row in enumerate(rows):
            assert table["label"][number] == row["name"] and column(table, "calls")["value"][number] == row["calls"]
            cells = " ".join(column(table, key)["text"][number] for key in ("wait_ns", "transfer_ns", "calls", "last"))
            # Before the name, the text has a rate, if that of some row is known.
            assert re.search(re.escape(cells) + r" (unknown |[0-9.]+ \S+/s )?" + re.escape(row["name"]), text), (cells, row["name"])


@case
def lanes_are_on_one_clock(folder):
    # Clocks differ by 5 ms. On the common one, each collective ends at the same time on all ranks.
    scene = data_of(page(folder, job(folder, 3)))["ranks"]["scene"]
    ends = []
    for lane in scene["whole"]["lanes"][1::2]:
        begin, found = 0, []
        for difference, duration, kind in zip(lane["events"]["begin_ns"], lane["events"]["duration_ns"], lane["events"]["kind"]):
            begin += difference
            if lane["events"]["kinds"][kind] == "transfer":
                found.append(begin + duration)
        ends.append(found)
    assert len(ends[0]) == 12 and all(abs(a - b) <= 2 for other in ends[1:] for a, b in zip(ends[0], other)), ends


@case
def a_rank_is_chosen_by_click_key_and_address(folder):
    window = opened(folder, job(folder, 3))
    shown = "document.querySelector('#rank-facts b').textContent + ' ' + document.querySelector('#rank h2').textContent"
    assert window.run(shown) == "rank 2 Verdict", "the straggler first"
    window.click("#rank-table tr[data-rank='0'] .to-rank")
    assert window.run(shown) == "rank 0 Verdict" and window.run("location.hash") == "#rank=0"
    assert window.run("pperf.data.runs[0].verdict.sentences[0].text.replace(/`/g, '')") in window.run("document.getElementById('rank').textContent")
    window.key("Tab")
    assert window.run("document.activeElement.dataset.rank") == "1" and window.run("document.activeElement.getAttribute('aria-pressed')") == "false"
    window.run("document.activeElement.click()")
    assert window.run(shown) == "rank 1 Verdict", window.run(shown)
    window.open(folder / "page.html", "#rank=1&q=gemm")
    assert window.run(shown) == "rank 1 Verdict" and window.run("pperf.graph.input.value") == "gemm"
    for wrong in ("#rank=9", "#rank=x", "#rank=-1"):
        window.open(folder / "page.html", wrong)
        assert window.run(shown) == "rank 2 Verdict" and not window.messages(), wrong
    assert not window.messages() and len(window.requests()) == 1


@case
def the_lanes_of_ranks_zoom_and_name_what_is_there(folder):
    window = opened(folder, job(folder, 3))
    interval = "pperf.ranksChart.interval"
    before = window.run(interval)
    window.click("#ranks-in")
    assert window.run(interval)[1] - window.run(interval)[0] < before[1] - before[0] and "r=" in window.run("location.hash")
    window.click("#ranks-whole")
    assert window.run(interval) == [0, window.run("pperf.ranksChart.scene.end")]
    events = window.run("(() => { const chart = pperf.ranksChart, row = chart.rows.find(one => one.index === 1), {events} = chart.scene.source(1, 0, chart.scene.end);"
                        "chart.show(events.begin[0] - 1e6, events.begin[0] + 3e6); const box = chart.box.getBoundingClientRect();"
                        "return [box.x + chart.x(events.begin[0] + events.duration[0] / 2), box.y + row.y + row.height / 2, events.duration[0]]; })()")
    window.mouse("mouseMoved", events[0], events[1])
    tip = window.run("document.getElementById('tip').textContent")
    assert "all-reduce, rank 2 last by 1.40 ms" in tip and scaled(events[2], "time") in tip, tip
    window.hover("#rank-table tr[data-rank='1'] .share-bar")
    tip = window.run("document.getElementById('tip').textContent")
    assert "exposed communication" in tip and "idle: " in tip, tip
    assert not window.messages()


@case
def parts_of_ranks_that_do_not_fit_are_named_with_a_command(folder):
    path = page(folder, job(folder, 11, steps=4))
    data = data_of(path)
    missing = [rank for rank, run in enumerate(data["runs"]) if run is None]
    assert len(missing) == 3 and 2 not in missing, "eight ranks, the stragglers first"
    for rank in missing:
        one = data["ranks"]["all"][rank]
        assert "left out" in one["left_out"] and one["command"].endswith("rank%d.json --rank %d -o rank.html" % (rank, rank)), one
        report(*one["command"].split()[1:-1], folder / "one.html")
        assert "tables" in data_of(folder / "one.html")
    window = browser()
    window.open(path, "#rank=%d" % missing[0])
    assert "left out" in window.run("document.getElementById('rank-facts').textContent") and window.run("document.getElementById('rank').children.length") == 0
    assert path.stat().st_size <= 6 << 20 and not window.messages()


@case
def a_folder_and_a_run_without_ranks_are_shown(folder):
    traces = job(folder, 2)
    assert len(data_of(page(folder, [folder / "job"]))["ranks"]["all"]) == 2
    assert len(data_of(page(folder, traces))["ranks"]["all"]) == 2, "two different ranks are not before and after"
    assert "ranks" not in data_of(page(folder, traces[:1]))
    plain = [imported(folder / ("%d.json" % i), operators(["aten::a"])) for i in range(3)]
    result = report("html", *plain, check=64)
    assert b"no collective" in result.stderr and result.stdout == b"", result.stderr


@case
def hostile_names_of_ranks_are_shown_as_text(folder):
    traces = job(folder, 2, name=HOSTILE[0])
    for path, name in zip(traces, ("<img src=x onerror=window.owned=1>.json", "b.json")):
        path.rename(folder / name)
    window = opened(folder, [folder / "<img src=x onerror=window.owned=1>.json", folder / "b.json"])
    assert window.run("String(window.owned) + document.querySelectorAll('img, iframe, object, main script').length") == "undefined0"
    assert not window.messages() and len(window.requests()) == 1


# ---- two traces ----

def two(folder):
    before = imported(folder / "before.json", operators(["aten::a", "aten::b", "aten::c"], steps=8))
    return [before, imported(folder / "after.json", operators(["aten::a", "aten::b", "aten::d"], steps=8, slower="aten::b"))]


def pairs(folder):
    found = [two(folder)]
    if DATA:
        found.append([pathlib.Path(DATA, "kineto", "hta__trace_compare~%s~%s.json.gz" % (name, name)) for name in ("base", "test")])
    return found


@case
def sentences_and_cells_of_two_traces_are_those_of_diff(folder):
    for traces in pairs(folder):
        data = data_of(page(folder, traces))["diff"]
        text = " ".join(report("diff", *traces, "--width", "5000", check=None).stdout.decode().split())
        for key in ("compared", "method", "whole", "runs", "result"):
            assert key not in data or data[key] in text, (key, data[key])
        rows = {(tuple(row["path"]), row["name"]): row for row in json.loads(report("diff", *traces, "-f", "json", check=None).stdout)["rows"]}
        table, compared = data["table"], 0
        assert table["rows"]
        for number, path in enumerate(table["path"]):
            row = next((row for (names, _), row in rows.items() if len(names) == len(path) and all(name.startswith(end) for name, end in zip(path[:-1], names[:-1])) and names[-1] in path[-1]), None)
            assert row, path
            assert [column(table, key)["value"][number] for key in ("before", "after")] == [row["before"], row["after"]] and table["significant"][number] == row["significant"], row
            cells = " ".join(column(table, key)["text"][number] for key in ("before", "after", "delta", "relative", "p"))
            assert cells in text, (cells, text)
            compared += 1
        assert compared == table["rows"]
        flame = data_of(folder / "page.html")["flame"]
        assert flame["sides"] == 2


@case
def both_verdicts_and_what_changed_are_on_the_page(folder):
    traces = two(folder)
    window = opened(folder, traces)
    for side, trace in zip(("before", "after"), traces):
        shown = window.run("document.getElementById('verdict-%s').textContent" % side)
        for one in json_of("summary", trace)["verdict"]["sentences"][:2]:
            assert one["text"].replace("`", "") in shown, (side, one)
        assert trace.name in shown
    changes = window.run("document.getElementById('change-table').textContent")
    assert "kernel_of_b" in changes and "significant" in changes and "new" in changes and "gone" in changes, changes
    assert window.run("document.querySelector('#flame, .flame, [role=tree]') !== null") and not window.messages() and len(window.requests()) == 1


@case
def both_timelines_show_the_same_length_of_time(folder):
    window = opened(folder, two(folder))
    intervals = "pperf.charts.map(chart => chart.interval[1] - chart.interval[0])"

    def same():
        before, after = window.run(intervals)
        assert abs(before - after) < 1, (before, after)
        return before
    whole = same()
    for button in ("#before-in", "#after-in", "#after-worst", "#before-out"):
        window.click(button)
        assert same() <= whole, button
        left = window.run("pperf.charts.map(chart => chart.interval[0] - chart.usual[0].begin)")
        assert abs(left[0] - left[1]) < 1, "they begin at the same distance from the first steady-state step"
    window.click("#before-whole")
    assert same() == whole
    window.run("pperf.charts[1].box.focus()")
    window.key("+")
    assert abs(same() - whole / 2) < 1 and "t2=" in window.run("location.hash") and "t=" in window.run("location.hash")
    address = window.run("location.hash")
    kept = window.run("pperf.charts.map(chart => chart.interval)")
    window.open(folder / "page.html", address)
    assert all(abs(a - b) <= 1 for one, other in zip(kept, window.run("pperf.charts.map(chart => chart.interval)")) for a, b in zip(one, other))
    assert not window.messages()


@case
def hostile_names_of_two_traces_are_shown_as_text(folder):
    traces = [imported(folder / ("%d<img src=x onerror=alert(1)>.json" % number), operators(HOSTILE[number:], steps=5)) for number in range(2)]
    window = opened(folder, traces)
    assert window.run("String(window.owned) + document.querySelectorAll('img, iframe, object, main script').length") == "undefined0"
    assert not window.messages() and len(window.requests()) == 1


@case
def two_traces_that_have_nothing_in_common_make_a_page(folder):
    empty = imported(folder / "empty.json", [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
                                             {"ph": "X", "cat": "user_annotation", "name": "nothing", "pid": 1, "tid": 1, "ts": 1, "dur": 0, "args": {}}])
    window = browser()
    window.open(page(folder, [empty, two(folder)[0]]))
    assert not window.messages()
    window.open(page(folder, [empty, empty]))
    assert not window.messages()


# ---- look ----

def pictures(folder, name, traces, fragment=""):
    window, path = browser(), page(folder, traces)
    for theme in ("light", "dark"):
        window.open(path, fragment, theme=theme)
        image = window.picture()
        keep("%s-%s.png" % (name, theme), image)
        assert len(pixels(image)) > 20, (name, theme)
    window.resize(600, 900)
    window.open(path, fragment)
    assert window.run("document.documentElement.scrollWidth") <= 600, name
    keep(name + "-narrow.png", window.picture())
    window.resize(1440, 900)
    window.open(path, fragment, theme="dark")
    document = window.pdf()
    keep(name + ".pdf", document)
    assert document.startswith(b"%PDF") and not window.messages() and window.run("document.documentElement.dataset.theme || ''") == ""


@unsanitized
def ranks_light_dark_narrow_and_printed(folder):
    for number, traces in enumerate(jobs(folder)):
        pictures(folder, "ranks-%d" % number, traces)


@unsanitized
def two_traces_light_dark_narrow_and_printed(folder):
    for number, traces in enumerate(pairs(folder)):
        pictures(folder, "two-%d" % number, traces)


@case
def colours_of_parts_of_a_rank_differ(folder):
    check_colours_differ("idle-|busy|exposed|collective-")


main()
