# SPDX-License-Identifier: MIT
"""The nights of a job as a document: JSON, text, and a page of HTML, which `pperf-report html --trends`
writes of it. The page draws these figures and computes none."""
import json, os, shutil, subprocess, tempfile
from pperf_parts import PartsError
from pperf_parts.history import STEPS, lost_sentence, read_trends, warn
from pperf_parts.output import escaped, put_csv, put_json, put_table, time_text

SCHEMA = "pperf.history/1"
CELLS_MAX, TEXT_MAX, TEXT_HEAD = 400000, 400, 260  # texts are cut as report/page/page_text.h does


def whole(value):
    return None if value != value else round(float(value))


def night_rows(trends, runs):
    for n, night in enumerate(trends.nights):
        run = runs[night]
        yield {"night": night, "step_ns": whole(trends.values[n, 0]), "before_ns": whole(trends.medians[n, 0]), "wall_ns": run["wall_ns"], "gpu_busy_ns": run["gpu_busy_ns"],
               "processes": run["processes"], "steps": run["steps"], "damaged": run["damaged"], "slower": int((trends.slow[n, 1:] > 0).sum())}


def state_of(trends, place):
    """Of a place in the newest night."""
    for state, has in (("regression", trends.confirmed), ("suspicion", trends.streaks), ("accepted", trends.taken_streaks)):
        if has[-1, place]:
            return state
    absent = trends.values[-1, place] != trends.values[-1, place]
    return "gone" if absent else "no baseline" if trends.medians[-1, place] != trends.medians[-1, place] else "as before"


def place_row(trends, place):
    """`before`: the median of the baseline by night, of the step and of what became slower."""
    changed = not place or trends.regressed[:, place].any() or trends.slow[-1, place]
    last, values = len(trends.nights) - 1, [whole(value) for value in trends.values[:, place]]
    median, value = trends.medians[last, place], trends.values[last, place]
    state = state_of(trends, place)
    return {"path": trends.places[place][0], "kind": trends.places[place][1], "state": state, "value_ns": values[-1], "before_ns": whole(median),
            "percent": None if state in ("gone", "no baseline") else round(float(100 * (value / median - 1)), 2), "values": values,
            "before": [whole(value) for value in trends.medians[:, place]] if changed else [], "slow": (trends.slow[:, place] > 0).nonzero()[0].tolist()}


def shown_places(trends):
    """The duration of a step if it is known, then the places with most time, until there are many cells."""
    import numpy as np
    known = ~np.isnan(trends.values)
    newest = np.where(known[-1], np.nan_to_num(trends.values[-1]), 0)
    order = sorted(np.flatnonzero(known.any(axis=0)), key=lambda place: (place != 0, -newest[place], trends.places[place]))
    most = max(1, CELLS_MAX // len(trends.nights))
    return order[:most], max(0, len(order) - most)


def come_and_gone(trends):
    """The places of the newest night that no night before has, and those of the night before that it lacks."""
    import numpy as np
    if len(trends.nights) < 2:
        return [], []
    known = ~np.isnan(trends.values[:, 1:])
    new, gone = known[-1] & ~known[:-1].any(axis=0), known[-2] & ~known[-1]

    def listed(of, night):
        return [{"path": trends.places[place + 1][0], "kind": trends.places[place + 1][1], "ns": whole(trends.values[night, place + 1])} for place in np.flatnonzero(of)]
    return listed(new, -1), listed(gone, -2)


def capital(text):
    return text[:1].upper() + text[1:]


def sentences_of(document, verdict):
    """The first one says whether something is slower. Names stand between grave accents."""
    rows = document["rows"]
    regressions = [row for row in rows if row["state"] == "regression"]
    named = lambda path: "`%s`" % path.replace("`", "'")
    found = []
    for row in regressions[:3]:
        deeper = "" if row["in"] == row["path"] else ", most of it in %s" % named(row["in"])
        found.append("%s takes %s instead of %s (+%.1f %%) since %s%s" % (named(row["path"]), time_text(row["after_ns"]), time_text(row["before_ns"]), row["percent"], row["since"], deeper))
    if not regressions:
        found = [capital(verdict or document["not_compared"])]
    if len(regressions) > 3:
        found.append("%d more places are slower" % (len(regressions) - 3))
    suspicions = len(rows) - len(regressions)
    if suspicions:
        found.append("%d place%s slower in a way that is no regression yet: in one night, or not significant among all places" % (suspicions, " is" if suspicions == 1 else "s are"))
    if document["compared"] and document["not_compared"]:
        found.append(capital(document["not_compared"]))
    if document["nights_left_out"]:
        found.append(capital(lost_sentence(document["nights_left_out"])))
    return [sentence + "." for sentence in found]


def document_of(trends, runs, accepted, gpu, lost, job):
    shown, left_out = shown_places(trends)
    numbers = {trends.places[place]: i for i, place in enumerate(shown)}
    new, gone = come_and_gone(trends)
    document = {"schema": SCHEMA, "view": "trends", "job": job, "value_name": "%s time per rank and step" % ("GPU" if gpu else "CPU"), "step_name": STEPS,
                "nights": list(night_rows(trends, runs)), "rows": trends.rows(len(trends.nights) - 1),
                "changes": [dict(row, place=numbers.get((row["path"], row["kind"]), -1)) for row in trends.changes()],
                "accepted": [{"night": night, "path": path} for night in sorted(accepted) if night <= trends.nights[-1] for path in sorted(accepted[night], key=lambda path: path or "")],
                "renamed": trends.renamed, "new": new, "gone": gone, "places": [place_row(trends, place) for place in shown], "left_out": left_out,
                "not_compared": trends.not_compared(), "nights_left_out": lost, **trends.extent()}
    return dict(document, sentences=sentences_of(document, trends.no_place_is_slower()))


# ---- commands ----

def trends(options, out):
    found = read_trends(options.history, options.job, options.night)
    document = document_of(*found, options.job)
    if options.format == "json":
        put_json(document, out)
    elif options.format == "csv":
        put_csv(document["changes"], out)
        if not document["compared"]:
            warn([document["not_compared"]])
    else:
        for sentence in document["sentences"]:
            out.write(escaped(sentence.replace("`", "")) + "\n")
        out.write("\n")
        put_table(document["nights"][::-1], ["night", "step_ns", "before_ns", "wall_ns", "gpu_busy_ns", "processes", "damaged", "slower"], out, options.top)
        if document["changes"]:
            out.write("\n")
            put_table(document["changes"], ["since", "until", "nights", "before_ns", "after_ns", "percent", "end", "path", "in"], out, options.top)
    return 0


def prepared(value):
    """All texts of a document without control characters, and not longer than a page can show."""
    if isinstance(value, dict):
        return {key: prepared(one) for key, one in value.items()}
    if isinstance(value, list):
        return [prepared(one) for one in value]
    if not isinstance(value, str):
        return value
    text = escaped(value)
    return text if len(text) <= TEXT_MAX else text[:TEXT_HEAD] + "…" + text[len(text) - (TEXT_MAX - TEXT_HEAD - 1):]


def html(options, out):
    program = os.environ.get("PPERF_REPORT") or shutil.which("pperf-report")
    if not program:
        raise PartsError("pperf-report is not found, which writes the page; set PPERF_REPORT")
    document = prepared(document_of(*read_trends(options.history, options.job, options.night), options.job))
    with tempfile.TemporaryDirectory(prefix="pperf-history-") as folder:
        path = os.path.join(folder, options.job + ".json")
        with open(path, "w", encoding="ascii") as file:
            json.dump(document, file, separators=(",", ":"))
        out.flush()
        result = subprocess.run([program, "html", "--trends", path, "-o", options.output])
    if result.returncode:
        raise PartsError("%s could not write the page %s" % (program, options.output))
    return 0
