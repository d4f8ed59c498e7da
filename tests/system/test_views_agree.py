#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The views of one trace agree with each other: the same interval has one cause and one length in
all of them, parts add up to the whole, and no share exceeds 100 %. Holds for 200 generated traces,
for a recording of the simulated device, and with PPERF_TEST_DATA for traces of other tools."""
import concurrent.futures, glob, json, os, pathlib, re, subprocess
from harness import BUILD, PROGRAMS, REPORT, SANITIZED, Skip, case, environment, main, run, traced

VIEWS = ("tree", "idle", "queue", "overlap", "streams", "categories", "table --by category", "table --by stream", "critical-path", "diagnose", "steps")
GENERATED = 20 if SANITIZED else 200
BEFORE_LAUNCH, AFTER_LAUNCH = ("launch-bound", "host-bound", "data loading", "compilation", "synchronisation", "allocation"), ("launch latency", "gap between kernels", "event wait", "unexplained wait")
MAY_EXCEED = ("roof_share",) # more than the peak of memory: part came from a cache


def asked(view, *traces, status=(0,)):
    result = subprocess.run([str(REPORT), *view.split(), *map(str, traces), "-f", "json"], capture_output=True, env=environment(), timeout=120)
    assert result.returncode in status, (view, traces, result.returncode, result.stderr[-400:])
    return json.loads(result.stdout or "null")


class Views:
    """The rows and totals of all views of a trace, each read once."""
    def __init__(self, trace):
        self.trace = str(trace)
        self.all = {view: asked(view, trace) for view in VIEWS}
        self.totals, self.capture = self.all["tree"]["totals"], self.all["tree"]["capture"]

    def rows(self, view, *kinds, **cells):
        return [row for row in self.all[view]["rows"] if (not kinds or row.get("kind") in kinds) and all(row.get(key) == value for key, value in cells.items())]

    def sum(self, view, key, *kinds, **cells):
        return sum(row.get(key) or 0 for row in self.rows(view, *kinds, **cells))

    def same(self, what, *figures):
        assert len(set(figures)) == 1, (self.trace, what, figures)


def totals_are_equal_in_all_views(views):
    for view, output in views.all.items():
        if "totals" in output: # steps has the same; diagnose has none of the time line
            for key in ("gpu_sum_ns", "gpu_busy_ns", "gpu_idle_ns", "gpu_unknown_ns", "gpu_communication_ns", "wall_ns"):
                views.same((view, key), output["totals"].get(key, views.totals[key]), views.totals[key])


def busy_idle_and_unknown_are_the_span(views):
    for gpu in views.totals["gpus"]:
        for part in (gpu, gpu["launched"]):
            views.same("span", part["busy_ns"] + part["idle_ns"] + part["unknown_ns"], part["span_ns"])
    for key in ("busy_ns", "idle_ns", "unknown_ns"):
        views.same(key, sum(gpu[key] for gpu in views.totals["gpus"]), views.totals["gpu_" + key])


def causes_are_the_idle_time(views):
    gpus = views.totals["gpus"]
    several = len(views.capture["processes"]) > 1 # devices of several processes have equal numbers
    for kind in ("device", "cause", "place"):
        views.same(("idle", kind), views.sum("idle", "gap_ns", kind), views.totals["gpu_idle_ns"])
    views.same("unknown", views.sum("idle", "unknown_ns", "device"), views.totals["gpu_unknown_ns"])
    views.same("idle before", sum(row.get("idle_before_ns") or 0 for row in views.rows("tree", depth=0)), views.totals["gpu_idle_ns"])
    for gpu in gpus if not several else ():
        of = dict(device=gpu["device"])
        views.same("device", views.sum("idle", "gap_ns", "device", **of), views.sum("idle", "gap_ns", "cause", **of), gpu["idle_ns"])
        assert views.sum("idle", "gaps", "device", **of) <= views.sum("idle", "gaps", "cause", **of), views.trace
    for row in views.rows("idle", "cause"):
        assert row["gap_max_ns"] <= row["gap_ns"] and row["gaps"] > 0, (views.trace, row)


def the_queue_splits_gaps_where_idle_does(views):
    by_cause = {cause: views.sum("idle", "gap_ns", "cause", cause=cause) for cause in {row["cause"] for row in views.rows("idle", "cause")}}
    before, after = (views.sum("queue", key, "device") for key in ("queue_empty_ns", "queue_asked_ns"))
    views.same("queue and idle", before + after + views.sum("queue", "queue_unknown_ns", "device"), views.totals["gpu_idle_ns"])
    views.same("unknown cause", views.sum("queue", "queue_unknown_ns", "device"), by_cause.get("unknown", 0))
    for figure, causes in ((before, BEFORE_LAUNCH), (after, AFTER_LAUNCH)):
        least, either = sum(by_cause.get(cause, 0) for cause in causes), sum(by_cause.get(cause, 0) for cause in ("copy calls", "first calls")) # on both sides
        assert least <= figure <= least + either, (views.trace, causes, least, figure, by_cause)


def the_queue_names_the_stream_that_waited(views):
    """The stream whose wait a finding names has that wait after a launch in the view `queue`, which a verdict about waits names."""
    for row in views.rows("diagnose", "finding"):
        said = re.search(r"the longest ([0-9.]+) (ms|s), at [^,]*, on stream ([0-9]+)", row.get("evidence") or "")
        if said:
            longest_ns = float(said[1]) * {"ms": 1e6, "s": 1e9}[said[2]]
            waited = [stream["queue_asked_ns"] for stream in views.rows("queue", "stream", stream=int(said[3]))]
            assert waited and max(waited) >= 0.999 * longest_ns, (views.trace, row["evidence"], waited)


def gpu_time_is_the_same_by_every_key(views):
    whole = views.totals["gpu_sum_ns"]
    views.same("roots", sum(row.get("gpu_total_ns") or 0 for row in views.rows("tree", depth=0)), whole)
    views.same("streams", views.sum("streams", "gpu_total_ns", "stream"), views.sum("streams", "gpu_total_ns", "device"), whole)
    views.same("categories", views.sum("categories", "gpu_total_ns", "category"), whole)
    views.same("rows of categories", sum(row["gpu_total_ns"] for row in views.rows("categories", depth=1)), whole)
    views.same("overlap", views.sum("overlap", "gpu_total_ns", "device"), views.sum("overlap", "gpu_total_ns", "communication", "copies", "computation"), whole)
    for by in ("category", "stream"):
        views.same(by, views.sum("table --by " + by, "gpu_self_ns") - views.sum("table --by " + by, "gpu_self_again_ns"), whole)


def busy_time_is_a_union_everywhere(views):
    views.same("busy", views.sum("overlap", "busy_ns", "device"), views.sum("streams", "busy_ns", "device"), views.totals["gpu_busy_ns"])
    for key, kind in (("communication", "communication"), ("copy", "copies"), ("computation", "computation")):
        views.same(kind, views.sum("overlap", "busy_ns", kind), views.totals["gpu_%s_ns" % key])
        if kind != "computation":
            views.same(kind, views.sum("overlap", "exposed_ns", kind), views.totals["gpu_exposed_%s_ns" % key])
            views.same(kind, views.sum("overlap", "exposed_ns", kind) + views.sum("overlap", "hidden_ns", kind), views.sum("overlap", "busy_ns", kind))
    views.same("communication", views.sum("overlap", "gpu_total_ns", "communication"), views.sum("categories", "gpu_total_ns", "category", name="communication"))


def a_latency_is_divided_by_what_the_work_waited_for(views):
    parts = ["delay_%s_ns" % part for part in ("stream", "start", "event", "others", "unknown")]
    for row in views.all["queue"]["rows"]:
        if row.get("delay_total_ns") is not None:
            views.same(("latency", row["name"]), sum(row[part] for part in parts), row["delay_total_ns"])
    for cause, part in ("unexplained wait", "delay_unknown_ns"), ("event wait", "delay_event_ns"):
        idle = sum(row["gap_ns"] for row in views.rows("idle", "cause") if row["cause"] == cause)
        # inside a graph, work that is not the first of its stream has no latency
        assert idle <= views.sum("queue", part, "device") or views.rows("tree", "graph"), (views.trace, cause, idle)


def the_critical_path_is_within_the_run(views):
    rows = views.rows("critical-path", "path")
    whole, ends = sum(row["path_ns"] for row in rows), sum(row["path_gpu_ns"] for row in rows)
    for kind in ("part", "place"):
        views.same(("critical path", kind), views.sum("critical-path", "path_ns", kind), whole)
    for row in views.all["critical-path"]["rows"]:
        parts = [row.get("path_%s_ns" % part) or 0 for part in ("gpu", "host", "launch", "wait", "sync", "unknown")]
        views.same(row, sum(parts), row.get("path_ns") or 0)
    assert ends <= views.totals["gpu_busy_ns"] and whole <= views.totals["wall_ns"], (views.trace, whole, ends, views.totals["wall_ns"])
    assert views.sum("critical-path", "path_ns", "part", name="communication") <= views.totals["gpu_communication_ns"], views.trace
    if len(views.totals["gpus"]) == 1 and whole: # while the path waits on the GPU's only stream, the GPU is idle
        streams = views.rows("streams", "stream")
        idle, outside = (views.totals[key] for key in ("gpu_idle_ns", "gpu_unknown_ns")), max(0, whole - views.totals["gpus"][0]["span_ns"])
        assert len(streams) > 1 or sum(row["path_wait_ns"] for row in rows) <= sum(idle) + outside, (views.trace, rows)


def a_part_gains_no_more_than_the_whole(views):
    """What the run gains without all kernels is no less than what it gains without one of them."""
    whole = {row["name"]: row["gain_ns"] for row in views.rows("critical-path", "part") if row.get("gain_ns") is not None}
    communication = {row["id"] for row in views.rows("categories", "category", name="communication")}
    communicates = {row["name"] for row in views.all["categories"]["rows"] if row.get("parent") in communication}
    for row in views.rows("critical-path", "work"):
        part = "communication" if row["name"] in communicates else "memsets" if row["name"].startswith("memset") else "copies" if row["name"].startswith("memcpy") else "kernels"
        assert (row.get("gain_ns") or 0) <= whole.get(part, 0), (views.trace, part, row, whole)
    for total in views.rows("critical-path", "path") if len(views.capture["processes"]) == 1 else ():
        for row in views.rows("critical-path", "part", "place", "work"):
            assert (row.get("gain_ns") or 0) <= total["gain_ns"] <= total["path_ns"], (views.trace, row, total)


def findings_on_idle_time_are_idle_time(views):
    """A finding about a class of the verdict has its time in the steps, or that of the view `idle` in the GPU span."""
    causes = {"synchronisation": ("synchronisation",), "launch-bound": ("launch-bound", "host-bound", "launch latency"),
        "host-bound": ("launch-bound", "host-bound", "launch latency"), "data-loading": ("data loading",), "event-wait": ("event wait", "unexplained wait"), "unexplained-wait": ("event wait", "unexplained wait")}
    classes = {"synchronisation": ("synchronisation",), "launch-bound": ("launch", "host"), "host-bound": ("launch", "host"), "data-loading": ("data loading",)}
    span = sum(views.totals[key] for key in ("gpu_busy_ns", "gpu_idle_ns", "gpu_unknown_ns"))
    for row in views.rows("diagnose", "finding"):
        if row["name"] in causes and "In steps" not in row["finding"]:
            idle = sum(views.sum("idle", "gap_ns", "cause", cause=cause) for cause in causes[row["name"]])
            if row["impact_of"] == "the GPU span" or row["name"] not in classes:
                assert 0 < row["impact_ns"] <= idle <= span, (views.trace, row)
                assert abs(row["impact_share"] - row["impact_ns"] / span) < 1e-6, (views.trace, row, span)
            else:
                views.same(row, row["impact_ns"], sum(views.sum("diagnose", "impact_ns", "class", name=name) for name in classes[row["name"]]))


def verdict_without_steps_is_idle_time(views):
    """Without steps, the classes of idle time are the causes of the view `idle`, to the nanosecond."""
    verdict = views.rows("diagnose", "verdict")
    if not verdict or "from the first GPU operation" not in (verdict[0].get("evidence") or ""):
        return
    for names, causes in {("launch", "host"): ("launch-bound", "host-bound", "launch latency"), ("copy calls",): ("copy calls",), ("kernel gaps",): ("gap between kernels",), ("data loading",): ("data loading",),
        ("compilation",): ("compilation",), ("allocation",): ("allocation",), ("synchronisation",): ("synchronisation",), ("event wait",): ("event wait",), ("unexplained wait",): ("unexplained wait",)}.items():
        views.same(("class", names), sum(views.sum("diagnose", "impact_ns", "class", name=name) for name in names), sum(views.sum("idle", "gap_ns", "cause", cause=cause) for cause in causes))


def idle_shows_the_figures_of_findings(views):
    """The sums in steps of the view `idle` are the classes of the verdict, and parts add up to their whole."""
    rows = views.all["idle"]["rows"]
    views.same("classes of steps", views.sum("idle", "gap_ns", "steps"), views.sum("idle", "gap_ns", "class"))
    views.same("meanwhile", views.sum("idle", "gap_ns", "meanwhile"), views.sum("idle", "gap_ns", "host"))
    for row in views.rows("idle", "class"):
        parts = [part["gap_ns"] for part in rows if part.get("kind") == "part" and part["parent"] == row["id"]]
        assert not parts or sum(parts) == row["gap_ns"], (views.trace, row, parts)
    if not views.rows("diagnose", "class") or len(views.capture["processes"]) > 1:
        return
    said = re.search(r"late launches ([0-9.]+) % \(([^)]*)\)", (views.rows("diagnose", "verdict") or [{}])[0].get("evidence") or "")
    base = views.sum("diagnose", "impact_ns", "class")
    for row in views.rows("idle", "class", name="late launches") if said else ():
        shown = {"%s %.1f %%" % (part["name"], 100 * part["gap_ns"] / base) for part in rows if part.get("kind") == "part" and part["parent"] == row["id"]}
        assert said[1] == "%.1f" % (100 * row["gap_ns"] / base) and set(said[2].split(", ")) <= shown, (views.trace, said[0], row, shown)
    for name, classes in {"late launches": ("launch", "host"), "gap between kernels": ("kernel gaps",), "data loading": ("data loading",),
        "compilation": ("compilation",), "first calls": ("first calls",), "allocation": ("allocation",), "synchronisation": ("synchronisation",)}.items():
        views.same(("figure of", name), views.sum("idle", "gap_ns", "class", name=name), sum(views.sum("diagnose", "impact_ns", "class", name=one) for one in classes))


def steps_have_the_idle_time_of_the_view_idle(views):
    """The idle time of steady-state steps includes that before a GPU's first operation and after its last."""
    sums, steps = views.rows("idle", "steps"), views.rows("steps", "step", state="usual")
    if not sums or not steps or any(row.get("thread") for row in steps) or len(views.capture["processes"]) > 1:
        return
    if " step" in sums[0]["name"]:
        off = abs(sums[0]["gap_ns"] - sum(row["idle_ns"] for row in steps))
        assert off <= len(steps) + views.totals["gpu_unknown_ns"], (views.trace, off, sums, steps)


def no_share_exceeds_the_whole(views):
    for view, output in views.all.items():
        for row in output["rows"]:
            for key, value in row.items():
                if key.endswith("share") and key not in MAY_EXCEED and value is not None:
                    assert 0 <= value <= 1.0000001, (views.trace, view, key, row)
    for row in views.rows("steps", "step"):
        assert (row.get("busy_ns") or 0) + (row.get("idle_ns") or 0) <= (row.get("step_gpu_ns") or row["duration_ns"]) * max(1, len(views.totals["gpus"])), (views.trace, row)


def a_trace_does_not_differ_from_itself(trace):
    same = asked("diff", trace, trace)
    assert same, trace
    changed = [row for row in same["rows"] if row.get("significant") or row.get("delta")]
    assert not changed and not same["found"], (str(trace), changed[:2])


def differences(view, mirrored):
    """What a comparison shows, without names: a row that was renamed or replaced has the name of the second run."""
    sides = ("after", "before") if mirrored else ("before", "after")
    return sorted(([row.get(side) or 0 for side in sides] + [row["depth"], row["kind"], bool(row.get("significant"))] for row in view["rows"]), key=str)


def a_comparison_is_the_mirror_of_its_reverse(pair):
    forth, back = (asked("diff", *traces, status=(0, 1, 2)) for traces in (pair, pair[::-1]))
    if not forth or not back: # nothing in common
        assert forth == back, pair
        return
    assert differences(forth, False) == differences(back, True), pair
    assert (forth["found"], forth["tested"]) == (back["found"], back["tested"]), pair


CHECKS = (totals_are_equal_in_all_views, busy_idle_and_unknown_are_the_span, causes_are_the_idle_time, the_queue_splits_gaps_where_idle_does,
    a_latency_is_divided_by_what_the_work_waited_for, the_queue_names_the_stream_that_waited,
    gpu_time_is_the_same_by_every_key, busy_time_is_a_union_everywhere, the_critical_path_is_within_the_run, findings_on_idle_time_are_idle_time, verdict_without_steps_is_idle_time,
    a_part_gains_no_more_than_the_whole, idle_shows_the_figures_of_findings, steps_have_the_idle_time_of_the_view_idle,
    no_share_exceeds_the_whole)


def check(trace):
    views = Views(trace)
    failures = []
    for one in CHECKS:
        try:
            one(views)
        except AssertionError as error:
            failures.append("%s: %s" % (one.__name__, str(error)[:600]))
    try:
        a_trace_does_not_differ_from_itself(trace)
    except AssertionError as error:
        failures.append(str(error)[:600])
    return failures


def check_pair(pair):
    try:
        a_comparison_is_the_mirror_of_its_reverse(pair)
    except AssertionError as error:
        return [str(error)[:600]]
    return []


def check_all(traces, pairs):
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        failures = [failure for result in pool.map(check, traces) for failure in result] + [failure for result in pool.map(check_pair, pairs) for failure in result]
    assert not failures, "%d of %d traces:\n%s" % (len(failures), len(traces), "\n".join(failures[:8]))


def neighbours(traces):
    return list(zip(traces, traces[1:]))


def given(*patterns):
    folder = os.environ.get("PPERF_TEST_DATA")
    if not folder or not (pathlib.Path(folder) / "kineto").is_dir():
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    return [path for pattern in patterns for path in sorted(glob.glob(os.path.join(folder, pattern)))]


@case
def generated_traces_agree(folder):
    run(folder, str(PROGRAMS / "random_traces"), folder, GENERATED, 1, check=0)
    traces = sorted(folder.glob("*.bin"))
    assert len(traces) == GENERATED
    check_all(traces, neighbours(traces)[::5])


@case
def recordings_of_the_simulated_device_agree(folder):
    traces = []
    for major in ("12", "13"):
        for name, *arguments in ("known_work", "4", "2", "4"), ("demo_train", "8"):
            program, place = BUILD / "cudasim" / major / name, folder / (name + major)
            if not program.exists():
                raise Skip("the simulated device is not built (no %s)" % program)
            place.mkdir()
            traced(place, str(program), *arguments)
            traces.append(place / "trace.bin")
    check_all(traces, [tuple(traces[::2]), tuple(traces[1::2])])


@case
def traces_of_other_tools_agree(folder):
    traces = given("kineto/*.json*", "verdicts/*.json*", "nsys/*.sqlite")[::3 if SANITIZED else 1]
    check_all(traces, [tuple(given("verdicts/hta__trace_diff~*")), tuple(given("kineto/hta__trace_compare~*")), tuple(given("kineto/kineto__resnet50*", "verdicts/kineto__resnet50*"))])


@case
def views_of_some_steps_agree(folder):
    for trace in given("kineto/*.json.gz", "verdicts/*.json.gz"):
        steps = [row["step"] for row in asked("steps", trace)["rows"] if row["kind"] == "step" and row.get("step") is not None]
        if len(steps) < 3:
            continue
        chosen = "%d-%d" % (steps[1], steps[-2])
        idle, queue = (asked("%s --steps %s" % (view, chosen), trace) for view in ("idle", "queue"))
        sums = [sum(row["gap_ns"] for row in idle["rows"] if row["kind"] == kind) for kind in ("device", "cause", "place")]
        sums.append(sum(row.get("queue_%s_ns" % part) or 0 for row in queue["rows"] if row["kind"] == "device" for part in ("empty", "asked", "unknown")))
        assert set(sums) == {idle["totals"]["gpu_idle_ns"]}, (trace, chosen, sums, idle["totals"]["gpu_idle_ns"])


@case
def a_wait_without_a_known_reason_has_one_name_in_all_views(folder):
    """A kernel was launched 38 us into a gap, behind a wait of its stream for an event that is not recorded, and started 463 ms later."""
    views = Views(*given("verdicts/tl__inference~sglang_decode~sglang*"))
    waited = views.sum("idle", "gap_ns", "cause", cause="unexplained wait")
    assert 463_200_000 < waited < 463_300_000 and views.sum("idle", "gap_ns", "cause", cause="launch-bound") < 400_000, views.rows("idle", "cause")
    gap = views.rows("idle", "gap")[0]
    assert (gap["cause"], gap.get("blocked_by"), gap["gap_ns"]) == ("unexplained wait", None, waited), gap
    assert views.sum("queue", "queue_empty_ns", "device") < 400_000 < waited <= views.sum("queue", "queue_asked_ns", "device")
    views.same("path", views.sum("critical-path", "path_wait_ns", "path"), views.sum("critical-path", "path_ns", "part", name="unexplained wait"), waited)
    findings = [row["name"] for row in views.rows("diagnose", "finding")]
    assert findings[0] == "unexplained-wait" and "idle-gaps" not in findings, findings
    views.same("finding", views.rows("diagnose", "finding")[0]["impact_ns"], waited)
    views.same("verdict", views.sum("diagnose", "impact_ns", "class", name=views.rows("diagnose", "verdict")[0]["name"]), waited)
    for view in "", "idle", "queue", "critical-path", "diagnose":
        screen = subprocess.run([str(REPORT), *view.split(), views.trace, "--width", "200"], capture_output=True, text=True, env=environment(), timeout=120).stdout
        others = re.findall(r"event wait|waiting [0-9]|\bqueued\b|not[ -]started|does not start", screen)
        assert not others and (view == "queue" or "unexplained wait" in screen), (view, others, screen)


@case
def inside_graphs_with_missing_records_nothing_is_known(folder):
    """252.6 ms lie between two records of one cudaGraphLaunch, 17.6 ms in graphs that were launched before the trace."""
    views = Views(*given("kineto/hta__negative_queue_length*"))
    assert views.totals["gpu_unknown_ns"] == 270_193_000, views.totals["gpu_unknown_ns"]
    assert views.totals["gpu_idle_ns"] == 793_037_000 - 270_193_000, views.totals["gpu_idle_ns"]
    assert views.sum("idle", "gap_ns", "cause", cause="launch-bound") < 2_000_000, views.rows("idle", "cause") # after synchronisation has returned
    assert not views.rows("diagnose", "finding", name="unexplained-wait")
    # a graph whose records are all there, with copies of other streams between its nodes
    assert Views(*given("verdicts/hta__trace_diff~test*")).totals["gpu_unknown_ns"] == 0


main()
