#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory timelines of torch.profiler (export_memory_timeline), made here: sizes by category, and
single events. PyTorch's own are in tests/torch/test_timeline_import.py."""
import gzip, json, random, resource, subprocess
from harness import REPORT, SANITIZED, Skip, case, environment, main, report

NAMES = ["parameters", "optimizer state", "inputs", "temporary tensors", "activations", "gradients", "autograd's details", "unknown"]
BEGIN = 1700000000000000  # us


def made(seed, count):
    """Events as PyTorch writes them, and the bytes of each category after each us."""
    draw, live, events, levels, level, now = random.Random(seed), [], [], [], [0] * 8, BEGIN * 1000
    for number in range(count):
        if number < 5:
            stamp = -1
        else:
            now += draw.choice((1, 700, 40000))
            stamp = now
        if live and draw.random() < 0.45 and stamp > 0:
            category, size = live.pop(draw.randrange(len(live)))
            events.append([stamp, 4, -size, category])
            level[category] -= size
        elif live and draw.random() < 0.2 and stamp > 0:
            at = draw.randrange(len(live))
            category, size = live[at]
            live[at] = draw.randrange(8), size
            events += [[stamp, 3, -size, category], [stamp, 3, size, live[at][0]]]
            level[category] -= size
            level[live[at][0]] += size
        else:
            live.append((draw.randrange(8), draw.choice((512, 4096, 1 << 20))))
            events.append([stamp, 1 if stamp < 0 else 2, live[-1][1], live[-1][0]])
            level[live[-1][0]] += live[-1][1]
        time = BEGIN if stamp < 0 else stamp // 1000
        if levels and levels[-1][0] == time:
            levels.pop()
        levels.append((time, list(level)))
    return events, levels


def sizes_of(levels):
    return [[time for time, _ in levels], [[0] + level for _, level in levels]]


def rows(file, *options):
    return json.loads(report("memory", file, *options, "-f", "json", "-n", "0").stdout)["rows"]


def at(file, times):
    """Bytes by category at each time, in ns since the trace's begin."""
    found = []
    for part in range(0, len(times), 100):
        shown = rows(file, "--by", "path", "--at", ",".join("%dns" % time for time in times[part:part + 100]))
        for moment in (row for row in shown if row["kind"] == "moment"):
            found.append({row["name"]: row["bytes"] for row in shown if row["parent"] == moment["id"]})
            assert moment["tensor_bytes"] == sum(found[-1].values()), moment
    return found


@case
def each_category_has_the_files_size_at_each_time(folder):
    for seed in range(4):
        events, levels = made(seed, 400)
        (folder / "t.json").write_text(json.dumps(sizes_of(levels)))
        with gzip.open(folder / "t.raw.json.gz", "wt") as file:
            json.dump(events, file)
        first = min(event[0] for event in events if event[0] >= 0)
        known = [{name: size for name, size in zip(NAMES, level) if size} for _, level in levels]
        assert len(known) > 100, len(known)
        assert at(folder / "t.json", [(time - levels[0][0]) * 1000 for time, _ in levels]) == known, seed
        last = {event[0] // 1000: event[0] for event in events if event[0] >= 0}
        whole = [(last[time] - first, sizes) for (time, _), sizes in zip(levels, known) if time in last]
        assert at(folder / "t.raw.json.gz", [time for time, _ in whole]) == [sizes for _, sizes in whole], seed
        # Of single events, what was allocated and freed is the file's as well.
        for name, number in zip(NAMES, range(8)):
            shown = next(row for row in rows(folder / "t.raw.json.gz") if row["name"] == name)
            assert shown["alloc_bytes"] == sum(event[2] for event in events if event[3] == number and event[2] > 0), shown
            assert shown["free_bytes"] == -sum(event[2] for event in events if event[3] == number and event[2] < 0), shown
            assert shown["allocs"] == sum(event[3] == number and event[2] > 0 for event in events), shown


@case
def a_cut_file_is_read_up_to_the_cut_and_says_so(folder):
    events, levels = made(9, 300)
    for name, content in ("sizes.json", sizes_of(levels)), ("events.json", events):
        text = json.dumps(content)
        for cut in range(len(text) // 2, len(text), len(text) // 40):
            (folder / name).write_text(text[:cut])
            result = report("memory", folder / name, check=None)
            if name == "events.json" or cut > text.index("]"):
                assert result.returncode == 0 and b"ends in the middle; the rest is missing, what comes before is shown" in b" ".join(result.stdout.split()), (name, cut, result)
            assert result.returncode in (0, 2), result


@case
def what_is_no_timeline_is_refused_in_one_sentence(folder):
    for content in "[[1, 2], 3]", "[[], []]", '[["a"]]', "[[1], [[0, 1e400]]]", "[[[[[[", "[[3, 2], [[0, 1], [0, 1]]]":
        (folder / "t.json").write_text(content)
        result = subprocess.run([str(REPORT), "memory", "t.json"], cwd=folder, capture_output=True, env=environment(LC_ALL="C.UTF-8"))
        assert result.returncode == 2 and result.stderr.count(b"\n") == 1 and b"not a trace" in result.stderr, (content, result)


@case
def memory_is_bounded_by_the_file(folder):
    if SANITIZED:
        raise Skip("a sanitizer reserves address space of its own")
    events, levels = made(3, 200000)
    (folder / "t.json").write_text(json.dumps(sizes_of(levels)))
    bytes_ = (folder / "t.json").stat().st_size

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (bytes_ * 8 + (96 << 20),) * 2)
    result = subprocess.run([str(REPORT), "memory", "t.json"], cwd=folder, capture_output=True, env=environment(LC_ALL="C.UTF-8"), preexec_fn=limit)
    assert result.returncode == 0 and b"parameters" in result.stdout, result


main()
