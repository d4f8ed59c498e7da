# SPDX-License-Identifier: MIT
"""Compares the calls that a program lists (programs/expect.h) with those in its trace, thread by
thread."""
import json, struct
from harness import dump

SEQUENCE = {"push", "pop", "start", "end", "mark", "metric", "name"}
PAYLOADS = {1: ("<Q", "u64"), 2: ("<q", "i64"), 3: ("<d", "double"), 4: ("<I", "u32"), 5: ("<i", "i32"), 6: ("<f", "float")}


def exact(text):
    """The bytes of a text in the dump, which holds bytes that are not UTF-8 as U+EF80 to U+EFFF."""
    return b"".join(bytes([ord(c) & 255]) if "\uef80" <= c <= "\uefff" else c.encode() for c in text or "")


def wanted_payload(event):
    form, name = PAYLOADS[event["payload_type"]]
    value = struct.unpack_from(form, bytes.fromhex(event["payload"]))[0]
    return ("0x%x" % value if name == "u64" else str(value) if name == "i64" else value), name


def difference(wanted, got):
    """The field in which the two events differ, or None."""
    if wanted["kind"] != got["kind"]:
        return "kind"
    for key in ("name", "domain"):
        if key in wanted and bytes.fromhex(wanted[key] or "") != exact(got.get(key)):
            return key
    for key in ("category", "object_type", "value"):
        if key in wanted and key not in ("object_type",) and got.get(key) != wanted[key] and str(got.get(key)) != str(wanted[key]):
            return key
    if "color" in wanted and got.get("color") != "0x%08X" % wanted["color"]:
        return "color"
    if "payload" in wanted and (got.get("payload"), got.get("payload_type")) != wanted_payload(wanted):
        return "payload"
    return None


def by_thread(events):
    threads = {}
    for event in events:
        threads.setdefault(event["tid"], []).append(event)
    return threads


def compare(expected_path, trace_path, kinds=SEQUENCE):
    expected = by_thread(json.loads(line) for line in open(expected_path))
    # A pop without a push is in the trace, but has no name and is no event of a range.
    recorded = by_thread(event for event in dump(trace_path, kinds) if event["kind"] != "pop" or event["name"] is not None)
    ids = {}
    assert set(expected) == set(recorded), "threads %s, not %s" % (sorted(recorded), sorted(expected))
    for tid, wanted in expected.items():
        got = recorded[tid]
        for number, (want, have) in enumerate(zip(wanted, got)):
            wrong = difference(want, have)
            assert not wrong, "event %d of thread %d: %s differs: wanted %s, got %s" % (number, tid, wrong, want, have)
            if want["kind"] in ("start", "end"):
                ids.setdefault(have["id"], []).append(want["kind"])
        assert len(got) == len(wanted), "thread %d: %d events, not %d; the next is %s" % (
            tid, len(got), len(wanted), (got[len(wanted):] or wanted[len(got):])[0])
    assert all(sorted(kinds) == ["end", "start"] for kinds in ids.values()), "a start without its end, or an id used twice"
    assert ids
