#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The memory map of the view `html`: its rows are those of memory --map and --over-time, and its
blocks and gaps add up to each segment.

PPERF_TEST_PICTURES=FOLDER keeps the pictures that the cases take."""
import json, pickle, re
from harness import case, main, report, unsanitized
from pages import browser, check_colours_differ, data_of, HOSTILE, imported, json_of, keep, operators, pixels, scaled, snapshot


def page(folder, trace, *options):
    path = folder / "page.html"
    report("html", trace, *options, "-o", path)
    return path


def map_of(folder, trace, *options):
    return data_of(page(folder, trace, *options))["memory_map"]


def opened(folder, trace, fragment="", theme="light"):
    window = browser()
    window.open(page(folder, trace), fragment, theme)
    return window


def cells(table, key, part="text"):
    return next((column[part] for column in table["columns"] if column["key"] == key), [None] * table["rows"])


def moments_of(table):
    """The rows of each moment and of its segments."""
    found = []
    for row, kind in enumerate(table["kind"]):
        if kind == "moment":
            found.append((row, []))
        else:
            found[-1][1].append(row)
    return found


def words_of(command):
    """What --at has in the command of the page."""
    return re.search(r"--at (\S+)", command)[1]


@case
def rows_are_those_of_the_map_and_of_the_history(folder):
    trace = snapshot(folder / "a.pickle")
    data = map_of(folder, trace)
    assert data["command"].endswith("a.pickle") and words_of(data["command"]).startswith("peak,oom,end,")
    rows = [row for row in json_of("memory", trace, "--map", "--at", words_of(data["command"]), "--top", "64")["rows"] if row["kind"] in ("moment", "segment")]
    table, compared = data["memory_map"], 0
    assert table["rows"] == len(rows)
    for number, row in enumerate(rows):
        assert (table["kind"][number], table["label"][number]) == (row["kind"], row["label"])
        for column in table["columns"]:
            wanted, unit = row.get(column["key"]), {"_ns": "time", "es": "bytes"}.get(column["key"][-3:] if column["key"].endswith("_ns") else "es" if column["key"].endswith("bytes") else "")
            if unit and wanted is not None and wanted > 0:
                assert column["value"][number] == wanted and column["text"][number] == scaled(wanted, unit), (column["key"], row)
                compared += 1
    assert compared > 200, compared
    history, rows = data["memory_history"], json_of("memory", trace, "--over-time", "--top", "200")["rows"]
    assert history["rows"] == len(rows) > 50
    for key in ("at_ns", "reserved_bytes", "tensor_bytes", "free_inside_bytes", "largest_gap_bytes", "empty_bytes"):
        assert [value or 0 for value in cells(history, key, "value")] == [row.get(key) or 0 for row in rows], key


@case
def blocks_and_gaps_add_up_to_each_segment(folder):
    trace = snapshot(folder / "a.pickle")
    data = map_of(folder, trace)
    table, seen = data["memory_map"], 0
    bytes_, used, gaps, largest, address = (cells(table, key, "value") for key in ("bytes", "tensors", "gaps", "largest_gap_bytes", "address"))
    free = cells(table, "free_inside_bytes", "value")
    assert len(data["moments"]) == len(moments_of(table)) == 7
    for (row, segments), parts in zip(moments_of(table), data["moments"]):
        assert sum(free[at] for at in segments) == free[row]
        for at in segments:
            if address[at] not in parts["address"]:
                assert free[at] == bytes_[at], "an empty segment"
                continue
            blocks = parts["blocks"][parts["address"].index(address[at])]
            after = bytes_[at] - sum(blocks["begin"]) - sum(blocks["bytes"])
            between = [gap for gap in [*blocks["begin"], after] if gap]
            assert after >= 0 and sum(between) == free[at] and len(between) == gaps[at] and max(between, default=0) == (largest[at] or 0), (row, at)
            assert sum(blocks["count"]) == used[at] and all(0 <= holder < len(data["holders"]) for holder in blocks["holder"])
            seen += 1
    assert seen > 20, seen


@case
def a_moment_is_chosen_by_button_and_click(folder):
    window = opened(folder, snapshot(folder / "a.pickle"))
    chosen = "document.querySelector('#memory-map [aria-pressed=\"true\"]').textContent"
    facts = "document.querySelector('#memory-map .note[role=status]').textContent"
    assert window.run(chosen) == "out of memory" and "requested: 734.00 MB" in window.run(facts)
    rows = window.run("document.querySelectorAll('#segment-table tbody tr').length")
    window.click("#memory-map .moments [data-moment='0']")
    assert window.run(chosen) != "out of memory" and window.run("location.hash") == "#map=0"
    assert window.run("document.querySelectorAll('#segment-table tbody tr').length") < rows
    x, y = window.run("(() => { const box = document.querySelector('.map-chart').getBoundingClientRect(); return [box.x + box.width - 6, box.y + 30]; })()")
    for kind in ("mousePressed", "mouseReleased"):
        window.mouse(kind, x, y, button="left", clickCount=1)
    assert window.run(chosen) in ("end", "out of memory")
    window.open(folder / "page.html", "#map=1")
    assert window.run("document.querySelector('#memory-map [aria-pressed=\"true\"]').dataset.moment") == "1"
    for wrong in ("#map=99", "#map=x"):
        window.open(folder / "page.html", wrong)
        assert window.run(chosen) == "out of memory" and not window.messages(), wrong
    assert len(window.requests()) == 1


@case
def tips_name_tensors_gaps_and_levels(folder):
    window = opened(folder, snapshot(folder / "a.pickle"))
    seen = ""
    for row in range(1, 5):
        window.run("document.querySelector('#segment-table tbody tr:nth-child(%d)').scrollIntoView({block: 'center'})" % row)
        left, width, y = window.run("(() => { const box = document.querySelector('#segment-table tbody tr:nth-child(%d) .segment').getBoundingClientRect(); return [box.x, box.width, box.y + 7]; })()" % row)
        for share in range(1, 100, 7):
            window.mouse("mouseMoved", left + width * share / 100, y)
            seen += window.run("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    assert "tensor of" in seen and "gap of" in seen and "an empty segment" in seen and "empty since" in seen, seen
    window.hover(".map-chart")
    window.mouse("mouseMoved", *window.run("(() => { const box = document.querySelector('.map-chart').getBoundingClientRect(); return [box.x + 800, box.y + 40]; })()"))
    tip = window.run("document.getElementById('tip').textContent")
    assert "reserved at" in tip and "in tensors" in tip and "fragmentation" in tip, tip
    assert not window.messages()


@case
def two_traces_have_maps_on_one_scale(folder):
    whole, part = snapshot(folder / "a.pickle"), folder / "b.pickle"
    content = pickle.loads(whole.read_bytes())
    content["device_traces"][0] = content["device_traces"][0][:len(content["device_traces"][0]) * 2 // 3]
    part.write_bytes(pickle.dumps(content, protocol=4))
    window = browser()
    report("html", whole, part, "-o", folder / "both.html")
    window.open(folder / "both.html")
    data, names = data_of(folder / "both.html"), ("before", "after")
    assert [side["memory_map"]["memory_map"] == map_of(folder, trace)["memory_map"] for side, trace in zip(data["sides"], (whole, part))] == [True, True]
    chosen = lambda name: window.run("document.querySelector('#%s-memory-map [aria-pressed=\"true\"]').textContent" % name)
    assert [chosen(name) for name in names] == ["peak", "peak"], "one of them did not run out of memory"
    widths = {}
    for name in names:
        for size, width in window.run("[...document.querySelectorAll('#%s-segment-table tbody tr')].map(row => [row.cells[0].textContent, Number(row.querySelector('.segment rect').getAttribute('width'))])" % name):
            widths.setdefault(size, set()).add(width)
    assert len(widths) > 1 and all(len(found) == 1 for found in widths.values()), widths
    window.click("#before-memory-map .moments [data-moment='0']")
    assert chosen("before") != "peak" and chosen("after") == "peak", "a time of one trace is not one of the other"
    window.run("[...document.querySelectorAll('#after-memory-map button')].find(button => button.textContent === 'end').click()")
    assert [chosen(name) for name in names] == ["end", "end"] and "map=" in window.run("location.hash") and "map2=" in window.run("location.hash")
    fragment = window.run("location.hash")
    window.resize(600, 900)
    window.open(folder / "both.html", fragment, "dark")
    assert [chosen(name) for name in names] == ["end", "end"] and window.run("document.documentElement.scrollWidth") <= 600
    assert not window.messages() and len(window.requests()) == 1
    report("html", whole, imported(folder / "a.json", operators(["aten::a"])), "-o", folder / "both.html")
    window.open(folder / "both.html")
    assert window.run("document.querySelectorAll('.memory-map').length") == 1 and not window.messages()


@case
def traces_without_blocks_have_no_map(folder):
    data = data_of(page(folder, imported(folder / "a.json", operators(["aten::a"]))))
    assert "memory_map" not in data
    window = browser()
    window.open(folder / "page.html")
    assert window.run("document.getElementById('memory-map')") is None and not window.messages()


@case
def many_small_blocks_are_merged_and_the_page_stays_small(folder):
    trace = folder / "many.pickle"
    events, base, now = [{"action": "segment_alloc", "addr": 1 << 40, "size": 1 << 30, "stream": 0, "time_us": 1, "frames": []}], 1 << 40, 1
    for number in range(6000):
        now += 1
        if number % 8 != 7: # a gap after each seven blocks
            events.append({"action": "alloc", "addr": base + number * 4096, "size": 4096, "stream": 0, "time_us": now, "frames": []})
    trace.write_bytes(pickle.dumps({"segments": [], "device_traces": [events], "allocator_settings": {}}, protocol=4))
    data = map_of(folder, trace)
    blocks = data["moments"][-1]["blocks"][0]
    assert sum(blocks["count"]) == 5250 and len(blocks["count"]) == 750 and sum(blocks["bytes"]) == 5250 * 4096
    assert (folder / "page.html").stat().st_size <= 1 << 20


@case
def a_segment_of_too_many_blocks_is_drawn_in_cells(folder):
    trace, base = folder / "cells.pickle", 1 << 40
    events = [{"action": "segment_alloc", "addr": base, "size": 1 << 30, "stream": 0, "time_us": 1, "frames": []}]
    events += [{"action": "alloc", "addr": base + number * 8192, "size": 4096, "stream": 0, "time_us": 2 + number, "frames": []} for number in range(5000)]
    trace.write_bytes(pickle.dumps({"segments": [], "device_traces": [events], "allocator_settings": {}}, protocol=4))
    window = opened(folder, trace, "#map=0")
    moments = data_of(folder / "page.html")["memory_map"]["moments"]
    cells_ = moments[-1]["blocks"][0]["cells"]
    assert len(cells_) == 200 and sum(cells_) == 5000 * 4096 and not any(cells_[8:])
    window.run("document.querySelector('#memory-map [data-moment=\"%d\"]').click()" % (len(moments) - 1))
    window.run("document.querySelector('#segment-table .segment').scrollIntoView({block: 'center'})")
    window.mouse("mouseMoved", *window.run("(() => { const box = document.querySelector('#segment-table .segment').getBoundingClientRect(); return [box.x + 4, box.y + 7]; })()"))
    assert "here are in use" in window.run("document.getElementById('tip').textContent") and "1.9 %" in window.run("document.getElementById('segment-table').textContent")
    assert not window.messages()


@case
def hostile_names_are_shown_as_text(folder):
    window = opened(folder, snapshot(folder / "a.pickle", names=HOSTILE[:2]))
    assert window.run("String(window.owned) + document.querySelectorAll('img, iframe, object, main script').length") == "undefined0"
    assert not window.messages() and len(window.requests()) == 1


@unsanitized
def light_dark_narrow_and_printed(folder):
    window, path = browser(), page(folder, snapshot(folder / "a.pickle"))
    for theme in ("light", "dark"):
        window.open(path, theme=theme)
        window.run("document.getElementById('memory-map').scrollIntoView({block: 'start'})")
        image = window.picture()
        keep("map-%s.png" % theme, image)
        assert len(pixels(image)) > 20, theme
    window.resize(600, 900)
    window.open(path)
    assert window.run("document.documentElement.scrollWidth") <= 600
    window.run("document.getElementById('memory-map').scrollIntoView({block: 'start'})")
    keep("map-narrow.png", window.picture())
    window.resize(1440, 900)
    window.open(path, theme="dark")
    keep("map.pdf", window.pdf())
    assert not window.messages()


@case
def colours_of_the_map_differ(folder):
    check_colours_differ("map-")


main()
