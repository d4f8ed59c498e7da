#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The map of device memory (memory --map) is PyTorch's own: each segment, block and gap of
torch.cuda.memory_snapshot(), to the byte, at every moment. On the simulated device."""
import difflib, os, pickle
from device import *

SCRIPT = ROOT / "tests" / "torch" / "snapshots.py"
QUICK = bool(os.environ.get("PPERF_TEST_QUICK"))
SEEDS = range(1, 2) if QUICK else range(1, 6)
MODES = {"plain": None, "record_stream": None, "graph": None, "max_split": "max_split_size_mb:64", "roundup": "roundup_power2_divisions:4",
         "gc": "garbage_collection_threshold:0.6"}
# A mode with this prefix is the same with segments that grow by cuMemMap.
EXPANDABLE = "expandable_"
STORIES, SCREENS = ROOT / "tests" / "torch" / "memory_stories.py", ROOT / "tests" / "torch" / "screens"
SNAPSHOTS = 40
CAPACITY = 2 << 30  # of the device: less than the program would take


def of_pytorch(snapshot):
    """Segments, blocks in use, and gaps (neighbouring free blocks joined) of PyTorch's snapshot."""
    segments, blocks, gaps = {}, {}, {}
    for segment in snapshot:
        segments[segment["address"]] = segment["total_size"]
        at = free_from = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                blocks[at] = block["size"]
                if at > free_from:
                    gaps[free_from] = at - free_from
                free_from = at + block["size"]
            at += block["size"]
        if at > free_from:
            gaps[free_from] = at - free_from
    return segments, blocks, gaps


def of_view(rows):
    """The same of the rows below one moment, whose figures must be the sums of them."""
    moment, parts = rows[0], {kind: {r["address"]: r["bytes"] for r in rows if r["kind"] == kind} for kind in ("segment", "block", "gap")}
    segments, blocks, gaps = parts["segment"], parts["block"], parts["gap"]
    assert moment["kind"] == "moment" and len(rows) == 1 + sum(map(len, parts.values())), moment
    assert moment["reserved_bytes"] == sum(segments.values()) and moment["segments"] == len(segments), moment
    assert moment["tensor_bytes"] == sum(blocks.values()) and moment["tensors"] == len(blocks), moment
    assert moment["free_inside_bytes"] == sum(gaps.values()) and moment["gaps"] == len(gaps), moment
    assert moment["largest_gap_bytes"] == max(gaps.values(), default=0), moment
    assert moment["reserved_bytes"] == moment["tensor_bytes"] + moment["free_inside_bytes"], moment
    inside = {r["id"]: 0 for r in rows if r["kind"] == "segment"}
    for row in rows:
        if row["kind"] in ("block", "gap"):
            inside[row["parent"]] += row["bytes"]
    assert all(inside[r["id"]] == r["bytes"] == r["tensor_bytes"] + r["free_inside_bytes"] for r in rows if r["kind"] == "segment")
    return segments, blocks, gaps


def check_streams(snapshot, rows):
    """PyTorch says the same of a segment: for which stream it is, and whether its pool is private.
    Nothing is said of segments that grow."""
    theirs = {s["address"]: (s["stream"], "private" if any(s["segment_pool_id"]) else "shared") for s in snapshot if not s["is_expandable"]}
    ours = {r["address"]: (int(r["for_stream"], 16), r["memory_pool"]) for r in rows if r["kind"] == "segment" and r.get("for_stream")}
    assert theirs == ours, set(theirs.items()) ^ set(ours.items())
    return len(ours)


def check_groups(rows):
    """Below each root, the rows have all of its bytes."""
    for root in (r for r in rows if r["parent"] is None):
        parts = [r["bytes"] for r in rows if r["parent"] == root["id"]]
        assert sum(parts) == root["bytes"], (root, sum(parts))
        assert root["kind"] == "unknown" or root["bytes"] == root["tensor_bytes"] + root.get("unrecorded_bytes", 0), root
        assert root["kind"] == "moment" or root["bytes"] > 0, root


def check_history(rows):
    for moment in rows:
        assert moment["kind"] == "moment", moment
        known = moment["reserved_bytes"] - moment.get("unknown_bytes", 0)
        inside = moment["tensor_bytes"] - moment.get("outside_bytes", 0)
        assert known == inside + moment.get("free_inside_bytes", 0) + moment.get("overlapped_bytes", 0), moment


def check_map(rows):
    """The sums of a map, also where tensors are in no known segment."""
    for moment in (r for r in rows if r["kind"] == "moment"):
        segments = {r["id"]: r for r in rows if r["kind"] == "segment" and r["parent"] == moment["id"]}
        parts = [r for r in rows if r["parent"] in segments]
        assert sum(r["bytes"] for r in segments.values()) == moment["reserved_bytes"], moment
        for segment in segments.values():
            inside = sum(r["bytes"] for r in parts if r["parent"] == segment["id"]) + segment.get("overlapped_bytes", 0)
            assert inside == segment["bytes"] or segment["fill"] == "unknown", segment
        strays = [r["bytes"] for r in rows if r["kind"] == "block" and r["parent"] == moment["id"]]
        assert sum(strays) == moment.get("outside_bytes", 0), moment
        assert moment["tensors"] == len(strays) + sum(r["kind"] == "block" for r in parts), moment
        assert sum(r["bytes"] for r in parts if r["kind"] == "block") + sum(strays) == moment["tensor_bytes"], moment
    check_history([r for r in rows if r["kind"] == "moment"])


def check_conserved(trace):
    def rows(*options):
        return json.loads(report("memory", trace, *options, "-f", "json").stdout)["rows"]
    check_map(rows("--map", "--at", "peak,end,oom,100ms"))
    check_history(rows("--over-time"))
    check_history(rows("--over-time", "--top", "0"))
    for key in "path", "module", "step", "line", "size", "library":
        check_groups(rows("--by", key, "--at", "peak,end"))


def compare(folder, mode, seed):
    """Returns how many segments, blocks and gaps were compared, and how many cudaMallocs failed."""
    place = folder / ("%s-%d" % (mode, seed))
    plain = mode.removeprefix(EXPANDABLE)
    settings = ["expandable_segments:True"] * (plain != mode) + [MODES[plain]] * (MODES[plain] is not None)
    env = {"SIM_MEM": str(CAPACITY), **({"PYTORCH_CUDA_ALLOC_CONF": ",".join(settings)} if settings else {})}
    launch(traced, place, SCRIPT, seed, place / "snapshots", plain, env=env, timeout=600)
    trace = place / "trace.bin"
    snapshots = pickle.loads((place / "snapshots").read_bytes())
    # The program waits before each mark, and allocates nothing between the mark and the snapshot.
    times = [r["t_ns"] for r in dump(trace, {"mark"}) if r["name"].startswith("snap ")]
    assert len(times) == len(snapshots) == SNAPSHOTS
    rows = json.loads(report("memory", trace, "--map", "--at", ",".join("%dns" % t for t in times), "-f", "json").stdout)["rows"]
    begins = [i for i, r in enumerate(rows) if r["kind"] == "moment"] + [len(rows)]
    assert len(begins) == SNAPSHOTS + 1
    failed = [r for r in dump(trace, {"alloc"}) if r["result"]]
    counts, streams = [0, 0, 0, len(failed)], 0
    for number, snapshot in enumerate(snapshots):
        theirs, ours = of_pytorch(snapshot), of_view(rows[begins[number]:begins[number + 1]])
        for kind in range(3):
            assert theirs[kind] == ours[kind], (mode, seed, number, ("segments", "blocks", "gaps")[kind], set(theirs[kind].items()) ^ set(ours[kind].items()))
            counts[kind] += len(ours[kind])
        if ENVIRONMENT.name == "torch-2.15.0":  # older snapshots have no pools
            streams += check_streams(snapshot, rows[begins[number]:begins[number + 1]])
    assert streams == (0 if plain != mode or ENVIRONMENT.name != "torch-2.15.0" else counts[0]), (streams, counts)
    return counts


def compare_mode(folder, mode):
    counts = [compare(folder, mode, seed) for seed in SEEDS]
    totals = [sum(c[kind] for c in counts) for kind in range(4)]
    print("# %s: %d snapshots: %d segments, %d blocks, %d gaps, all equal; %d refused allocations" % (mode, SNAPSHOTS * len(counts), *totals))
    assert all(n > SNAPSHOTS * len(counts) for n in totals[:3]) and (totals[3] or mode.endswith("gc")), totals


@case
def the_map_is_pytorchs_own_snapshot(folder):
    compare_mode(folder, "plain")


@case
def of_blocks_that_another_stream_still_uses(folder):
    compare_mode(folder, "record_stream")


@case
def of_the_private_pool_of_a_cuda_graph(folder):
    compare_mode(folder, "graph")


@slow
def with_large_blocks_that_are_never_split(folder):
    compare_mode(folder, "max_split")


@slow
def with_sizes_rounded_up(folder):
    compare_mode(folder, "roundup")


@slow
def with_segments_given_back_early(folder):
    compare_mode(folder, "gc")


def screen(folder, name, *commands, env=None):
    """What the commands print of a program of memory_stories.py, with its times masked."""
    place = folder / name
    launch(traced, place, STORIES, name, env=env, check=0, timeout=600)
    text = b"".join(report(*command, place / "trace.bin", "--width", "400").stdout for command in commands).decode()
    text = re.sub(r"\d+(\.\d+)? (ns|µs|ms|s)\b", "TIME", text.replace(str(place) + "/", ""))
    text = re.sub(r" +TIME", " TIME", text)
    return "\n".join(line if "│" in line else re.sub(r"(?<=\S) {2,}", "  ", line) for line in text.split("\n"))


def check_screen(text, name):
    """Operators, and so paths, differ by release."""
    if ENVIRONMENT.name == "torch-2.15.0":
        expected = (SCREENS / name).read_text()
        assert text == expected, "\n".join(difflib.unified_diff(expected.splitlines(), text.splitlines(), lineterm=""))


@case
def a_pool_that_mixed_sizes_fragmented_until_memory_ran_out(folder):
    text = screen(folder, "fragmented", ("memory", "--map"), ("memory", "--by", "line"), env={"SIM_MEM": str(1500 << 20), "PPERF_PYSTACKS": "alloc"})
    assert "GPU 0 when memory ran out" in text and "(memory_stories.py:17 frame)" in text, text
    check_screen(text, "memory-fragmented.txt")


@case
def a_spike_of_one_layer_leaves_segments_that_stay_empty(folder):
    text = screen(folder, "spike", ("critical", "-m", "reserved"), ("memory", "--map", "--at", "end"), ("memory", "--at", "peak"))
    assert "2 segments (201.33 MB) that were allocated in `loop closure - kf: 13` stayed reserved to the end. Tensors had occupied up to 201.33 MB of them. " \
        "At the end, 2 segments (201.33 MB) were empty, since that range ended; 201.33 MB stayed reserved and empty." in text, text
    check_screen(text, "memory-spike.txt")


@case
def a_segment_that_small_tensors_keep(folder):
    text = screen(folder, "pinned", ("memory", "--map", "--at", "end"), ("memory", "--at", "end"))
    assert re.search(r"26\.7 %  8 tensors, gap 46\.14 MB", text), text
    check_screen(text, "memory-pinned.txt")


@case
def bytes_are_conserved_in_every_view_of_whole_and_cut_traces(folder):
    launch(traced, folder / "whole", SCRIPT, 7, folder / "whole" / "snapshots", "plain", env={"SIM_MEM": str(CAPACITY)}, timeout=600)
    whole = (folder / "whole" / "trace.bin").read_bytes()
    for cut in (len(whole), *(len(whole) * part // 16 for part in (range(9, 16, 3) if QUICK else range(1, 16)))):
        (folder / "cut.bin").write_bytes(whole[:cut])
        check_conserved(folder / "cut.bin")


@case
def of_segments_that_grow(folder):
    """Adjacent mappings of one reserved range are a segment."""
    compare_mode(folder, EXPANDABLE + "plain")


@case
def of_segments_that_grow_in_a_private_pool(folder):
    compare_mode(folder, EXPANDABLE + "graph")


@slow
def of_segments_that_grow_with_other_settings(folder):
    for mode in "record_stream", "max_split", "roundup", "gc":
        compare_mode(folder, EXPANDABLE + mode)


@case
def bytes_of_segments_that_grow_are_conserved(folder):
    launch(traced, folder / "whole", SCRIPT, 3, folder / "whole" / "snapshots", "plain", timeout=600,
           env={"SIM_MEM": str(CAPACITY), "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
    whole = (folder / "whole" / "trace.bin").read_bytes()
    for cut in (len(whole), *(len(whole) * part // 16 for part in (range(9, 16, 3) if QUICK else range(1, 16)))):
        (folder / "cut.bin").write_bytes(whole[:cut])
        check_conserved(folder / "cut.bin")


main()
