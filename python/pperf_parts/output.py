# SPDX-License-Identifier: MIT
"""Prints rows as text, JSON or CSV."""
import csv, decimal, json, math, sys, unicodedata


WARNINGS = 20


def escaped(text):
    """Text without characters that control the terminal."""
    return "".join(c if c == " " or unicodedata.category(c)[0] not in "CZ" else "\\u%04x" % ord(c) for c in text)


def time_text(ns):
    for size, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if abs(ns) >= size:
            return "%.2f %s" % (ns / size, unit)
    return "%d ns" % ns


def bytes_text(count):
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if abs(count) >= size:
            return "%.2f %s" % (count / size, unit)
    return "%d B" % count


def cell_text(key, value):
    if value is None:
        return ""
    if isinstance(value, list):
        return escaped(" / ".join(map(str, value)))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and key.endswith("_ns"):
        return time_text(value)
    if isinstance(value, int) and key.endswith("bytes"):
        return bytes_text(value)
    return "{:,}".format(value) if isinstance(value, int) else "%.4g" % value if isinstance(value, float) else escaped(str(value))


def put_table(rows, keys, out, top=None):
    """Prints the columns `keys`; the last one is not cut."""
    shown = rows[:top] if top else rows
    cells = [[cell_text(key, row[key]) for key in keys] for row in shown]
    heads = [key[:-3] if key.endswith("_ns") else key for key in keys]
    widths = [max([len(head)] + [len(line[i]) for line in cells]) for i, head in enumerate(heads)]
    for line in [heads] + cells:
        out.write("  ".join(cell.rjust(width) if i < len(keys) - 1 else cell for i, (cell, width) in enumerate(zip(line, widths))).rstrip() + "\n")
    if len(rows) > len(shown):
        out.write("%d more (-n 0 shows all)\n" % (len(rows) - len(shown)))


def put_json(document, out):
    out.write(json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")


def plain(value):
    """A value of a query as JSON has it: a number that is not finite is null, bytes are in hexadecimal, and other types are texts."""
    if isinstance(value, (float, decimal.Decimal)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def put_warnings(warnings, out, rest=" (-f json lists all)"):
    for warning in warnings[:WARNINGS]:
        out.write("warning: %s\n" % escaped(warning))
    if len(warnings) > WARNINGS:
        out.write("%d more warnings%s\n" % (len(warnings) - WARNINGS, rest))


def put_csv(rows, out, keys=None):
    """`keys`: the columns, also of no rows."""
    writer = csv.writer(out)
    if keys or rows:
        writer.writerow(keys or rows[0].keys())
    for row in rows:
        writer.writerow(["/".join(map(str, v)) if isinstance(v, list) else ("true" if v else "false") if isinstance(v, bool) else v for v in row.values()])


def put_ranks(document, aligned, out, top):
    """The text of `pperf ranks`. `aligned`: of each rank, also of those that are not shown."""
    rows = document["rows"]
    out.write("ranks      %d of %d aligned to the clock of rank %d, by the ends of collectives\n" % (sum(aligned), len(aligned), document["reference"]))
    out.write("matched    %d collectives in %d communicator%s" % (document["matched"], document["communicators"], "s" if document["communicators"] != 1 else ""))
    if document["incomplete"]:
        out.write("; %d lack a rank (of each, %d %% of the ranks suffice)" % (document["incomplete"], document["quorum_percent"]))
    unmatched = sum(row["unmatched"] for row in rows)
    if unmatched:
        out.write("; %d of single ranks have no match, or fewer than %d %% of the ranks have them (--quorum)" % (unmatched, document["quorum_percent"]))
    out.write("\n")
    for hang in document["hangs"][:3]:
        put_hang(hang, out)
    for straggler in document["stragglers"]:
        out.write("straggler  rank %d was last in %d of %d collectives, by %s (median), %s in total; %s\n" % (
            straggler["rank"], straggler["last"], straggler["of"], time_text(straggler["late_median_ns"]), time_text(straggler["late_ns"]),
            cause_of(straggler)))
    if not document["stragglers"]:
        out.write("straggler  none: no rank was last more often than by chance\n")
    out.write("exposed    %s of communication in all ranks while their GPUs compute nothing\n\n" % time_text(document["exposed_ns"]))
    keys = ["rank", "wait_ns", "transfer_ns", "last", "late_median_ns", "gpu_exposed_communication_ns", "gpu_busy_ns", "wall_ns"]
    put_table(sorted(rows, key=lambda row: (-(row["late_ns"] or 0), row["rank"])), keys, out, top)
    out.write("\n")
    put_table(document["collectives"], ["wait_ns", "transfer_ns", "calls", "last_rank", "last", "name", "path"], out, top)
    put_warnings(document["warnings"], out)


def put_hang(hang, out):
    """Which ranks wait, and where each of those that they wait for is."""
    waiting = len(hang["waiting"])
    out.write("hang       %d rank%s for %s in collective %d of %s\n" % (waiting, " waits" if waiting == 1 else "s wait", ", ".join(
        "rank %d" % absent["rank"] for absent in hang["absent"][:8]) or "others", hang["number"], escaped(hang["communicator"] or "a communicator without a name")))
    for absent in hang["absent"][:4]:
        out.write("           rank %d %s\n" % (absent["rank"], state_of(absent)))


def state_of(absent):
    """What a rank does that others wait for."""
    if not absent["has_trace"]:
        return "has no usable trace"
    if absent["waits_elsewhere"]:
        return "waits in another collective"
    if absent["ended"]:
        return "has ended"
    threads = ["thread %d is in %s, open for %s or longer" % (
        thread["tid"], "`%s`" % escaped(" / ".join(thread["path"] + ([thread["nccl_call"]] if thread["nccl_call"] else []))) if thread["path"] or thread["nccl_call"]
        else "no recorded range", time_text(thread["open_ns"])) for thread in absent["threads"][:3]]
    return "has not requested it: " + "; ".join(threads) if threads else "was in no recorded range"


def cause_of(straggler):
    if not straggler["more_ns"]:
        return "what it did before them is not known"
    return "before them it spent %s more %s than the others in `%s` (%s, the others %s)" % (
        time_text(straggler["more_ns"]), "of GPU work" if straggler["meanwhile"] == "gpu" else "on the CPU", escaped(" / ".join(straggler["path"])),
        time_text(straggler["own_ns"]), time_text(straggler["others_ns"]))


def stream():
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return sys.stdout
