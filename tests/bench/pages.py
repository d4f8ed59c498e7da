#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pages.py BUILD [PAGE...]: how fast a browser draws the pages of `flame` and `html` at the limit of
their size: 20,000 frames in the flame graph, 16 lanes and more in the timeline. Measured by the
page's own clock; of several rounds the least counts, because other programs only add. Exits with 1
if a gate is missed. With PAGE, those pages are measured instead."""
import json, pathlib, random, subprocess, sys, tempfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(BUILD.parent / "tests" / "support"))
from browser import Browser, chromium

FRAMES, LANES, THREADS, STREAMS, DEVICES, STEPS, OPERATORS = 20000, 16, 5, 9, 2, 3, 15000
ROUNDS, REDRAWS = 5, 40
FIRST_PICTURE_MS, REDRAW_MS, SEARCH_MS, PAGE_BYTES = 2000, 100, 50, 6000000

# The time of a call with what the browser does for it at once: layout, and what is on the canvas.
TIMED = """(() => { const took = call => { const begin = performance.now(); call(); document.body.offsetHeight;
  for (const canvas of document.querySelectorAll('canvas')) if (canvas.width) canvas.getContext('2d').getImageData(0, 0, 1, 1);
  return performance.now() - begin; }; return %s; })()"""
REDRAWN = """(() => { const {chart} = pperf, whole = (chart.show(0, Infinity), chart.interval.slice());
  return Array.from({length: %d}, (_, i) => { const length = (whole[1] - whole[0]) / 2 ** (i %% 10), at = whole[0] + (whole[1] - whole[0] - length) * (i * 7 %% 10) / 10;
    return took(() => { chart.show(at, at + length); }); }); })()"""
FLAME_REDRAWN = "Array.from({length: 10}, () => took(() => pperf.graph.draw()))"
SEARCHED = """(() => { const search = text => { pperf.graph.input.value = text; pperf.graph.search(); };
  return ['a', 'kernel', 'zq', '/^aten::[a-f]/'].map(text => Math.min(...Array.from({length: 5}, () => { took(() => search('')); return took(() => search(text)); }))); })()"""


def event(category, name, start, duration, tid, pid=7, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


def write_trace(path):
    """A file of torch.profiler: each step calls each operator, by turns on all threads, and each
    operator launches a kernel, by turns on all streams."""
    picks, events, correlation, at = random.Random(5), [], 0, 1000
    names = ["aten::" + "".join(picks.choices("abcdefghijklmnopqrstuvwxyz", k=12)) for _ in range(OPERATORS)]
    for step in range(STEPS):
        events.append(event("user_annotation", "ProfilerStep#%d" % step, at, 100 * len(names) + 50, 1))
        for number, name in enumerate(names):
            correlation += 1
            begin, tid = at + 10 + 100 * number, 1 + number % THREADS
            events += [event("cpu_op", name, begin, 60, tid), event("cuda_runtime", "cudaLaunchKernel", begin + 10, 20, tid, correlation=correlation),
                       event("kernel", "kernel_" + name[6:], begin + 40, 40 + number % 70, 7 + number % STREAMS, pid=number % DEVICES, correlation=correlation,
                             device=number % DEVICES, stream=7 + number % STREAMS, grid=[4, 1, 1], block=[128, 1, 1])]
        at += 100 * len(names) + 100
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": i, "name": "GPU"} for i in range(DEVICES)], "traceEvents": events}))


def measure(window, page):
    """Milliseconds until the first picture, of redraws, and of searches."""
    window.open(page)
    first = window.run("Math.max(performance.getEntriesByType('navigation')[0].domContentLoadedEventStart,"
                       "...performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime))")
    redraws = window.run(TIMED % FLAME_REDRAWN)
    if window.run("!!pperf.chart"):
        redraws += window.run(TIMED % (REDRAWN % REDRAWS))
    searches = window.run(TIMED % SEARCHED)
    return [first], redraws, searches


def gate(name, value, most, unit):
    print("%-6s %-34s %10.1f %s (at most %g)" % ("ok" if value <= most else "MISSED", name, value, unit, most))
    return value <= most


def make_pages(folder):
    trace, pages = folder / "large.json", []
    write_trace(trace)
    for view in ("flame", "html"):
        pages.append(folder / (view + ".html"))
        subprocess.run([BUILD / "pperf-report", view, trace, "-o", pages[-1]], check=True, stderr=subprocess.DEVNULL)
    return pages


def measure_page(window, page):
    """Whether the page keeps to the gates. Prints them."""
    rounds = [measure(window, page) for _ in range(ROUNDS)]
    [first], redraws, searches = ([min(values) for values in zip(*kind)] for kind in zip(*rounds))
    redraw, search = sorted(redraws)[len(redraws) * 95 // 100], max(searches)
    frames, lanes = window.run("[Math.max(...Object.values(pperf.data.flame.shapes).map(shape => shape.parent.length)), (pperf.scene?.whole.lanes || []).length]")
    print("%s: %d frames, %d lanes, %d rounds" % (page.name, frames, lanes, ROUNDS))
    return all([gate("first picture", first, FIRST_PICTURE_MS, "ms"), gate("redraw, 95th percentile", redraw, REDRAW_MS, "ms"),
                gate("search", search, SEARCH_MS, "ms"), gate("page", page.stat().st_size, PAGE_BYTES, "bytes")]), frames, lanes


def main():
    if not chromium():
        print("skipped: no Chromium, so no page was drawn")
        return 0
    with tempfile.TemporaryDirectory() as scratch, Browser(1440, 900) as window:
        given = [pathlib.Path(name) for name in sys.argv[2:]]
        good, frames, lanes = zip(*(measure_page(window, page) for page in given or make_pages(pathlib.Path(scratch))))
    if not given and (max(frames) < 0.9 * FRAMES or max(lanes) < LANES):
        print("MISSED the pages are too small: %d frames and %d lanes were wanted" % (FRAMES, LANES))
        return 1
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
