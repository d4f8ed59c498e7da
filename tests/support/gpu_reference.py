# SPDX-License-Identifier: MIT
"""What a program did on the GPU, computed from its trace alone in the form that
programs/known_work.c prints: counts and bytes by path, joined by correlation ids. Works for the
simulated device and for real ones."""
import collections

CAPTURED, CALLBACK = 1, 4
COPY_NAMES = {1: "h2d", 2: "d2h", 8: "d2d"}
GPU = ("KERNEL", "GPU_COPY", "GPU_SET")


def paths(trace):
    """The path of each node, by node id."""
    found = {0: ()}
    for node in sorted(trace.dictionary["NODE"], key=lambda n: n.node):
        found[node.node] = found[node.parent] + (trace.names.get(node.name, "?"),)
    return found


def gpu(trace):
    return [r for r in trace.records if r.kind in GPU]


def calls(trace, *kinds):
    return [c for c in trace.calls if c.kind in kinds and not c.flags & CAPTURED]


def owners(trace):
    """The call of each correlation id. Fails if two calls have the same id."""
    found = {}
    for call in trace.calls:
        if call.correlation:
            assert call.correlation not in found, "two calls have the id %d" % call.correlation
            found[call.correlation] = call
    return found


def measured(trace):
    """The counters of known_work by path, from the trace alone."""
    by_node, by_id = paths(trace), owners(trace)
    counts = collections.defaultdict(collections.Counter)
    sizes = {}
    for r in trace.records:
        there = counts[by_node[r.node]] if r.kind in ("GRAPH_LAUNCH", "ALLOC", "FREE") else None
        if r.kind == "GRAPH_LAUNCH":
            there["graph_launches"] += 1
        elif r.kind == "ALLOC" and r.memory_kind == 3:
            there.update(allocs=1, alloc_bytes=r.bytes)
            sizes[r.address] = r.bytes
        elif r.kind == "FREE" and r.memory_kind != 2:
            there.update(frees=1, free_bytes=sizes[r.address])
        elif r.kind in GPU:
            owner = by_id[r.correlation]
            there, prefix = counts[by_node[owner.node]], "graph_" if r.graph_node else ""
            assert (owner.kind == "GRAPH_LAUNCH") == bool(r.graph_node), (owner, r)
            if r.kind == "KERNEL":
                there[prefix + "kernels" if prefix else "launches"] += 1
            else:
                what = COPY_NAMES[r.copy_kind] if r.kind == "GPU_COPY" else "set"
                there[prefix + (what if what != "set" else "sets")] += 1
                there[prefix + what + "_bytes"] += r.bytes
    return {path: count for path, count in counts.items() if count}


def said(output):
    """The counters that the program printed, in the form of measured()."""
    return {tuple(p["path"]): collections.Counter({k: v for k, v in p.items() if k != "path" and v}) for p in output["paths"]
            if any(v for k, v in p.items() if k != "path")}


def complete(trace):
    """Fails unless every call that starts GPU work has its records, every record has its call, and
    nothing is lost."""
    ids = collections.Counter(r.correlation for r in gpu(trace))
    started = calls(trace, "LAUNCH", "COPY", "SET", "GRAPH_LAUNCH")
    assert set(ids) == {c.correlation for c in started}
    assert all(ids[c.correlation] == 1 for c in started if c.kind != "GRAPH_LAUNCH")
    assert not any(trace.lost), trace.lost
    assert trace.meta["source.cupti"] == "on", trace.meta["source.cupti"]


def differences(output, trace):
    """The differences between the trace and the output of known_work, a sentence each."""
    wanted, got = said(output), measured(trace)
    return ["%s: the program says %s, the trace %s" % ("/".join(path), dict(wanted.get(path, {})), dict(got.get(path, {})))
            for path in sorted(wanted.keys() | got.keys()) if wanted.get(path) != got.get(path)]
