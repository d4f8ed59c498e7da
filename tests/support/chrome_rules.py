# SPDX-License-Identifier: MIT
"""Checks a Chrome trace by the rules that its readers have, stricter than any of them:

  - RFC 8259: UTF-8, no NaN or Infinity, no key twice
  - pid and tid are integers; ts and dur are numbers, dur is not negative
  - phase X events of one thread nest
  - an arrow begins once, ends at least once, and both ends are inside an event of their thread
  - names of processes and threads have a name
"""
import bisect, gzip, json, math


class BadTrace(AssertionError):
    pass


def require(condition, *words):
    if not condition:
        raise BadTrace(" ".join(map(str, words)))


def unique_keys(pairs):
    keys = [key for key, _ in pairs]
    require(len(set(keys)) == len(keys), "a key twice:", keys)
    return dict(pairs)


def refuse(word):
    raise BadTrace("the constant " + word)


def load(data):
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return json.loads(data.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=refuse)


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def check_event(event):
    require(event["ph"] in "XMsfbeiC", event)
    require(is_number(event["ts"]) and event["ts"] >= 0, event)
    require(type(event["pid"]) is int and type(event["tid"]) is int, event)
    require(isinstance(event["name"], str) and event["name"], event)
    if event["ph"] == "X":
        require(is_number(event["dur"]) and event["dur"] >= 0, event)
    if event["ph"] == "M":
        require(event["args"], event)
    if event["ph"] == "C":
        require(all(is_number(value) for value in event["args"].values()), event)


def check_nesting(spans):
    open_ends = []
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        require(not open_ends or end <= open_ends[-1] + 1, "overlap at", begin, end, open_ends)
        open_ends.append(end)


def check_arrows(arrows, spans):
    for key, ends in arrows.items():
        require([end["ph"] for end in ends].count("s") == 1 and len(ends) > 1, "arrow", key, ends)
        for end in ends:
            at, around = nanoseconds(end["ts"]), spans.get((end["pid"], end["tid"]), [])
            last = bisect.bisect(around, (at + 1, math.inf))
            require(any(begin - 1 <= at <= finish + 1 for begin, finish in around[:last][::-1]), "an arrow ends in no event:", end)


def check(data, nests=True):
    """Returns the trace as a dictionary, or raises BadTrace."""
    trace, spans, arrows = load(data), {}, {}
    require(trace["displayTimeUnit"] in ("ms", "ns") and type(trace["baseTimeNanoseconds"]) is int, trace.keys())
    for event in trace["traceEvents"]:
        check_event(event)
        if event["ph"] == "X":
            begin = nanoseconds(event["ts"])
            spans.setdefault((event["pid"], event["tid"]), []).append((begin, begin + nanoseconds(event["dur"])))
        elif event["ph"] in "sf":
            arrows.setdefault((event["cat"], event["name"], event["id"]), []).append(event)
    for thread in spans.values():
        thread.sort()
        if nests:
            check_nesting(thread)
    check_arrows(arrows, spans)
    return trace
