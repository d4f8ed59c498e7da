#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`export`: files for other tools have the totals of the text views, and their readers open them.
For the demo of the simulated device, and with PPERF_TEST_DATA for traces of other tools."""
import glob, gzip, json, os, pathlib, re, shutil, subprocess
from harness import BUILD, REPORT, SANITIZED, Skip, case, environment, main, traced

GIVEN = pathlib.Path(os.environ.get("PPERF_TEST_DATA", "/nonexistent"))
# Of each sum in speedscope's file, the total of `tree` that it equals.
TOTALS = {"GPU time": "gpu_sum_ns", "GPU idle": "gpu_idle_ns", "Tensors allocated": "tensor_alloc_bytes", "Tensors at their peak": "allocated_peak_bytes",
          "Device memory allocated": "alloc_bytes", "Device memory at its peak": "reserved_peak_bytes"}


def export(form, trace, *options, status=0):
    result = subprocess.run([str(REPORT), "export", form, *map(str, options), str(trace)], capture_output=True, env=environment(LC_ALL="C.UTF-8"), timeout=300)
    assert result.returncode == status, (form, trace, result.returncode, result.stderr[-500:])
    return result.stdout


def totals(trace):
    return json.loads(subprocess.run([str(REPORT), "tree", "-f", "json", str(trace)], capture_output=True, env=environment(), check=True).stdout)["totals"]


def given():
    paths = sorted(glob.glob(str(GIVEN / "kineto" / "**" / "*.json*"), recursive=True) + glob.glob(str(GIVEN / "nsys" / "*.sqlite")) + glob.glob(str(GIVEN / "verdicts" / "*.gz")))
    paths = [path for path in paths if "EXPECTED" not in path]
    return paths[::6] if SANITIZED else paths


def demo(folder):
    program = BUILD / "cudasim" / "13" / "demo_train"
    if not program.exists():
        raise Skip("the simulated device is not built: make cudasim")
    if not (folder / "trace.bin").exists():
        traced(folder, program, "8")
    return folder / "trace.bin"


def folded(text):
    """{stack: amount} of folded stacks; every line has the form that speedscope accepts."""
    stacks = {}
    for line in text.decode().splitlines():
        assert re.fullmatch(r"[^;]+(;[^;]+)* [1-9]\d*", line), line
        stack, amount = line.rsplit(" ", 1)
        stacks[stack] = stacks.get(stack, 0) + int(amount)
    return stacks


def speedscope(text):
    """{profile: {stack: amount}}; checks what speedscope's schema does not."""
    data = json.loads(text)
    frames = [frame["name"] for frame in data["shared"]["frames"]]
    profiles = {}
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json" and len(set(frames)) == len(frames)
    for profile in data["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] in ("nanoseconds", "bytes", "none") and profile["startValue"] == 0
        assert len(profile["samples"]) == len(profile["weights"]) and profile["endValue"] == sum(profile["weights"]) and min(profile["weights"]) > 0
        stacks = profiles.setdefault(profile["name"], {})
        for sample, weight in zip(profile["samples"], profile["weights"]):
            stack = ";".join(frames[frame].replace(";", ":") for frame in sample)
            stacks[stack] = stacks.get(stack, 0) + weight
    return profiles


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """The fields of a protobuf message: (number, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 in (0, 2), key
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def packed(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def pprof(data):
    """{type of value: {stack: amount}} of a pprof file."""
    message = list(fields(gzip.decompress(data)))
    strings = [value.decode() for number, value in message if number == 6]
    functions = {dict(fields(value))[1]: dict(fields(value))[2] for number, value in message if number == 5}
    locations = {dict(fields(value))[1]: dict(fields(dict(fields(value))[4]))[1] for number, value in message if number == 4}
    types = [strings[dict(fields(value))[1]] for number, value in message if number == 1]
    values = {name: {} for name in types}
    assert strings[0] == "" and len(set(strings)) == len(strings)
    for number, value in message:
        if number != 2:
            continue
        sample = dict(fields(value))
        stack = ";".join(strings[functions[locations[at]]].replace(";", ":") for at in reversed(list(packed(sample[1]))))
        for name, amount in zip(types, packed(sample[2]), strict=True):
            if amount:
                values[name][stack] = values[name].get(stack, 0) + amount
    return values


def check_trace(trace):
    expected, profiles = totals(trace), speedscope(export("speedscope", trace))
    for name, total in TOTALS.items():
        assert sum(profiles.get(name, {}).values()) == (expected.get(total) or 0), (trace, name, sum(profiles.get(name, {}).values()), expected.get(total))
    types = pprof(export("pprof", trace))
    keys = {"GPU time": "gpu", "GPU idle": "idle", "CPU time": "cpu", "Calls": "calls", "Tensors allocated": "tensors", "Tensors at their peak": "allocated_peak",
            "Device memory allocated": "alloc", "Device memory at its peak": "reserved_peak"}
    assert {keys[name]: stacks for name, stacks in profiles.items()} == types, trace
    for name, stacks in profiles.items():
        assert folded(export("folded", trace, "-m", keys[name])) == stacks, (trace, name)
    return profiles


@case
def the_demo_has_the_same_stacks_in_all_formats(folder):
    profiles = check_trace(demo(folder))
    assert profiles["CPU time"] and profiles["GPU time"], list(profiles)


@case
def sums_are_those_of_the_text_views_in_given_traces(folder):
    if not given():
        raise Skip("PPERF_TEST_DATA has no traces")
    for trace in given():
        check_trace(trace)


@case
def go_reads_the_pprof_file(folder):
    if not shutil.which("go"):
        raise Skip("go is not installed")
    trace = demo(folder)
    (folder / "p.pb.gz").write_bytes(export("pprof", trace))
    top = subprocess.run(["go", "tool", "pprof", "-top", "-nodefraction=0", "-unit=ns", "-sample_index=gpu", "p.pb.gz"], cwd=folder, capture_output=True, text=True,
                         env={**os.environ, "HOME": str(folder), "GOCACHE": str(folder)}, timeout=300)
    total, = re.findall(r"of (\d+)ns total", top.stdout) or re.findall(r"of ([\d.]+)\w+ total", top.stdout)
    assert top.returncode == 0 and int(total) == totals(trace)["gpu_sum_ns"], (top.stdout[:300], top.stderr[-300:])


@case
def graphviz_draws_the_tree(folder):
    if not shutil.which("dot"):
        raise Skip("graphviz is not installed")
    text = export("dot", demo(folder))
    drawn = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, timeout=120)
    assert drawn.returncode == 0 and not drawn.stderr, drawn.stderr
    boxes = text.count(b"fillcolor=")
    assert 3 < boxes <= 400 and drawn.stdout.count(b'class="node"') == boxes, (boxes, drawn.stdout.count(b'class="node"'))


@case
def the_levels_of_a_drawing_add_up(folder):
    for trace in [demo(folder), *given()[::12]]:
        text = export("dot", trace, "--min-percent", "5").decode()
        amounts = {box: float(share) for box, share in re.findall(r'"([\d.]+(?:\.others)?)" \[.*\\n[^"]*\(([\d.]+) %\)"\]', text)}
        for box in amounts:
            children = [amounts[child] for parent, child in re.findall(r'"([\d.]+)" -> "([^"]+)"', text) if parent == box]
            assert sum(children) <= amounts[box] + 0.06 * (len(children) + 1), (trace, box)


@case
def a_graph_has_no_times_and_does_not_change(folder):
    trace = demo(folder)
    text = export("graph", trace).decode()
    assert text == export("graph", trace).decode() and "<<<(" in text and " ms" not in text, text[:400]
    calls = sum(int(count) for count in re.findall(r"×(\d+) <<<\(", text))
    kernels = json.loads(subprocess.run([str(REPORT), "kernels", "-f", "json", str(trace)], capture_output=True, env=environment(), check=True).stdout)["rows"]
    assert calls == sum(row["calls"] for row in kernels if row.get("grid")), (calls, text[:600])


@case
def a_file_appears_whole_or_not_at_all(folder):
    trace = demo(folder)
    export("folded", trace, "-o", folder / "out.folded")
    assert (folder / "out.folded").read_bytes() == export("folded", trace) and not list(folder.glob("*.tmp"))
    result = subprocess.run([str(REPORT), "export", "folded", str(trace), "-o", "/dev/full"], capture_output=True, text=True)
    assert result.returncode == 2 and "cannot be written" in result.stderr, result
    (folder / "sealed").mkdir(mode=0o555)
    if os.geteuid():
        assert b"cannot be written" in subprocess.run([str(REPORT), "export", "folded", str(trace), "-o", str(folder / "sealed" / "x")], capture_output=True).stderr


@case
def what_is_wrong_is_one_sentence(folder):
    trace = demo(folder)
    for words, status, text in ((["foldet"], 64, "did you mean `folded`?"), (["folded", "-m", "reserved"], 64, "does not add up over the tree"), ([], 64, "FORMAT")):
        result = subprocess.run([str(REPORT), "export", *words, *([str(trace)] if words else [])], capture_output=True, text=True)
        assert result.returncode == status and text in result.stderr and result.stderr.count("\n") == 1, (words, result)


@case
def hostile_names_stay_in_their_place(folder):
    names = ['a;b', 'quote " and \\ back', "line\nbreak", "</script>", "x" * 100000, "\u202eright", "", "ends with 5", "tab\there"]
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5} for i, name in enumerate(names)]
    (folder / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    profiles = check_trace(folder / "t.json")
    assert sum(profiles["CPU time"].values()) == 5000 * len(names) and all(len(stack) < 500 for stack in profiles["CPU time"]), profiles
    if shutil.which("dot"):
        assert subprocess.run(["dot", "-Tsvg"], input=export("dot", folder / "t.json"), capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
