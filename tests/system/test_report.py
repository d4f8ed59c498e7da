#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The report of programs that know their own work, on the simulated device. Every view has every
count and byte by path, attributed and conserved. Also: the memory that the report needs."""
import collections, csv, io, json, os, resource, subprocess
from harness import BUILD, REPORT, SANITIZED, Skip, case, main, run, traced

MAJORS = ("12", "13")
SHAPES = ((1, 1, 40), (2, 3, 20), (4, 1, 20), (16, 2, 8))
COPIES = {"memcpy HtoD": "h2d", "memcpy DtoH": "d2h", "memcpy DtoD": "d2d", "memset": "set"}


def report(folder, *arguments, check=0):
    result = run(folder, str(REPORT), *arguments)
    assert result.returncode == check, (arguments, result.returncode, result.stderr)
    return result.stdout


def view(folder, name, *arguments):
    return json.loads(report(folder, name, "trace.bin", "-f", "json", *arguments))


def known_work(folder, major, *arguments):
    path = BUILD / "cudasim" / major / "known_work"
    if not path.exists():
        raise Skip("the simulated device is not built (no %s)" % path)
    for old in folder.glob("*.bin*"):
        old.unlink()
    said = json.loads(traced(folder, str(path), *arguments, check=0).stdout)
    return {tuple(p["path"]): collections.Counter({k: v for k, v in p.items() if k != "path" and v}) for p in said["paths"]}


def counts_of(rows):
    """The counters of known_work by path, from the rows of a tree. Leaves below a path count for
    it."""
    counts, by_id = collections.defaultdict(collections.Counter), {row["id"]: row for row in rows}
    for row in rows:
        path = tuple(row["path"])
        if row["kind"] in ("kernel", "memcpy", "memset"):
            of_graph = by_id[row["parent"]]["kind"] == "graph"
            there, prefix = counts[path[:-2] if of_graph else path[:-1]], "graph_" if of_graph else ""
            if row["kind"] == "kernel":
                there["graph_kernels" if of_graph else "launches"] += row["calls"]
            else:
                what = COPIES[row["name"]]
                there[prefix + ("sets" if what == "set" else what)] += row["calls"]
                there[prefix + what + "_bytes"] += row["bytes"]
        elif row["kind"] == "graph":
            counts[path[:-1]]["graph_launches"] += row["calls"]
    return {path: there for path, there in counts.items() if there}


@case
def the_tree_has_exactly_what_the_program_did(folder):
    for major in MAJORS:
        for shape in SHAPES:
            said = known_work(folder, major, *shape)
            tree = view(folder, "tree")
            found = counts_of(tree["rows"])
            memory = ("allocs", "alloc_bytes", "frees", "free_bytes")
            expected = {p: collections.Counter({k: v for k, v in c.items() if k not in memory}) for p, c in said.items()}
            assert found == {p: c for p, c in expected.items() if c}, (major, shape)


@case
def integrity_says_the_same_and_nothing_is_missing(folder):
    for major in MAJORS:
        for shape in SHAPES:
            total = sum(known_work(folder, major, *shape).values(), collections.Counter())
            tree = view(folder, "tree", "--strict")
            integrity, totals = tree["integrity"], tree["totals"]
            assert integrity["launches"] == total["launches"] == integrity["kernels"] - integrity["graph_kernels"]
            assert integrity["graph_kernels"] == total["graph_kernels"] and integrity["graph_launches"] == total["graph_launches"]
            copies = total["h2d"] + total["d2h"] + total["d2d"]
            assert integrity["copies_called"] == copies == integrity["copies"] - integrity["graph_copies"]
            assert integrity["sets_called"] == total["sets"] == integrity["sets"] - integrity["graph_sets"]
            assert integrity["unattributed"] == integrity["missing_records"] == integrity["dropped"] == 0
            assert integrity["complete"] and integrity["conserved"]
            assert totals["unattributed_ns"] == 0 and totals["attributed_ns"] == totals["gpu_sum_ns"] > 0
            roots = [row for row in tree["rows"] if row["parent"] is None]
            assert sum(row.get("gpu_total_ns", 0) for row in roots) == totals["gpu_sum_ns"]
            assert sum(row["gpu_self_ns"] for row in tree["rows"] if row["kind"] in ("kernel", "memcpy", "memset")) == totals["gpu_sum_ns"]


@case
def bytes_belong_to_the_path_that_took_them(folder):
    for major in MAJORS:
        for shape in SHAPES:
            said = known_work(folder, major, *shape)
            tree = view(folder, "tree")
            rows = [row for row in tree["rows"] if row["kind"] == "range"]
            inclusive = collections.Counter()
            for path, there in said.items():
                for depth in range(1, len(path) + 1):
                    inclusive[path[:depth]] += there["alloc_bytes"]
            assert {tuple(r["path"]): r["alloc_bytes"] for r in rows if r.get("alloc_bytes")} == {p: b for p, b in inclusive.items() if b}
            total = sum(said.values(), collections.Counter())
            assert tree["totals"]["alloc_bytes"] == total["alloc_bytes"] and tree["totals"]["free_bytes"] == total["free_bytes"]
            calls = collections.Counter()
            for row in rows:
                calls.update(allocs=row.get("allocs", 0), frees=row.get("frees", 0))
            assert calls["allocs"] >= total["allocs"] and calls["frees"] >= total["frees"]


@case
def table_and_kernels_agree_with_the_tree(folder):
    for major in MAJORS:
        known_work(folder, major, 4, 2, 10)
        tree, table, kernels = view(folder, "tree"), view(folder, "table"), view(folder, "kernels")
        by_name = collections.Counter()
        for row in tree["rows"]:
            if row["kind"] == "kernel":
                by_name[row["name"]] += row["calls"]
        assert {r["name"]: r["calls"] for r in table["rows"] if r["kind"] == "kernel"} == by_name
        seen = collections.Counter()
        for row in kernels["rows"]:
            seen[row["name"]] += row["calls"]
            assert row["occupancy_theoretical"] > 0 and row["waves_per_sm"] > 0 and row["provenance"] == "simulated", row
        assert seen == by_name
        assert sum(r["gpu_total_ns"] for r in kernels["rows"]) == sum(r["gpu_total_ns"] for r in tree["rows"] if r["kind"] == "kernel")
        assert tree["integrity"] == table["integrity"] == kernels["integrity"] and tree["totals"] == table["totals"]


@case
def every_format_says_the_same(folder):
    known_work(folder, "13", 2, 2, 10)
    rows = view(folder, "tree")["rows"]
    cells = list(csv.DictReader(io.StringIO(report(folder, "tree", "trace.bin", "-f", "csv").decode(), newline="")))
    assert len(cells) == len(rows)
    for row, cell in zip(rows, cells):
        for key in ("id", "depth", "name", "kind", "calls", "gpu_total_ns", "gpu_self_ns", "cpu_total_ns", "p50_ns", "alloc_bytes"):
            assert cell[key] == ("" if row.get(key) is None else str(row[key])), (key, row, cell)
    text = report(folder, "tree", "trace.bin", "--min-percent", "0", "--width", "400").decode()
    assert len([line for line in text.splitlines() if line]) == len(rows) + 2, text # the header, and the line that names the simulated device


@case
def a_part_of_a_trace_is_read_whatever_the_part(folder):
    known_work(folder, "13", 2, 2, 4)
    whole = (folder / "trace.bin").read_bytes()
    step = max(1, len(whole) // (40 if SANITIZED else 150))
    for size in range(4096, len(whole), step):
        (folder / "cut.bin").write_bytes(whole[:size])
        for name in ("summary", "tree", "critical", "memory"):
            result = run(folder, str(REPORT), name, "cut.bin", "-f", "json" if size % 2 else "text")
            assert result.returncode in (0, 2) and (result.returncode == 0) == (result.stderr == b""), (size, name, result)
            if result.returncode == 0 and size % 2:
                envelope = json.loads(result.stdout)
                assert envelope["integrity"]["conserved"], (size, envelope["warnings"])


@case
def flipped_bytes_are_survived(folder):
    known_work(folder, "13", 2, 2, 2)
    whole = (folder / "trace.bin").read_bytes()
    step = max(1, len(whole) // (60 if SANITIZED else 400))
    for at in range(0, len(whole), step):
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        (folder / "flipped.bin").write_bytes(damaged)
        result = run(folder, str(REPORT), "flipped.bin", timeout=60)
        assert result.returncode in (0, 2), (at, result)
        assert not any(byte < 32 and byte != 10 for byte in result.stdout), at


@case
def what_is_read_is_never_written_over(folder):
    traced(folder, "ranges", 1, 5, 1)
    whole = (folder / "trace.bin").read_bytes()
    (folder / "other.bin").write_bytes(whole)
    (folder / "link").symlink_to("trace.bin")
    for arguments in (("tree", "trace.bin", "-o", "trace.bin"), ("dump", "trace.bin", "-o", "link"), ("tree", "trace.bin", "-o", "other.bin"),
                      ("gate", "--write-baseline", "trace.bin", "trace.bin"), ("gate", "trace.bin", "other.bin", "-o", "other.bin")):
        said = run(folder, str(REPORT), *arguments)
        assert said.returncode == 64 and said.stderr.count(b"\n") == 1, (arguments, said)
    assert (folder / "trace.bin").read_bytes() == (folder / "other.bin").read_bytes() == whole


@case
def a_sentence_shows_hostile_names_harmlessly(folder):
    for name in (b"no\x1b]0;such\x07", b"\xe2\x80\xaefile", b"x\xff\n"):
        said = run(folder, str(REPORT), name)
        assert said.returncode == 2 and not any(byte < 32 or byte > 126 for byte in said.stderr.rstrip(b"\n").replace("…".encode(), b"")), said


@case
def memory_does_not_grow_with_events(folder):
    if SANITIZED:
        raise Skip("the sanitizers' own memory grows")
    peaks = []
    for iterations in (20, 400):
        known_work(folder, "13", 4, 2, iterations)
        with open(os.devnull, "w") as nothing:
            process = subprocess.Popen([str(REPORT), "tree", "trace.bin", "-f", "json"], cwd=folder, stdout=nothing)
            _, status, use = os.wait4(process.pid, 0)
        assert status == 0
        peaks.append(use.ru_maxrss)
    assert peaks[1] < peaks[0] + 12 * 1024, "%d and %d KiB" % tuple(peaks)


if __name__ == "__main__":
    main()
