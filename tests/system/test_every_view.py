#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every view of every kind of trace, in every format and width. It ends without a crash, and its
output is well-formed: no line wider than requested, no NaN in JSON, the same number of fields in
each line of a table, no control character and no damaged text.

PPERF_TEST_SOAK=1 (`make soak-views`) tries every option with every view, on all traces of PPERF_TEST_DATA and of PPERF_TEST_TRACES, folders with more of them."""
import concurrent.futures, csv, io, itertools, json, os, pathlib, re, subprocess, unicodedata
from harness import BUILD, REPORT, case, environment, main, report, traced

SOAK = bool(os.environ.get("PPERF_TEST_SOAK"))
LIMIT_S = 120
LINES_OF_JSON = ("dump",)
TAKE_TWO, TAKE_A_NAME, NEED_A_TERMINAL = ("diff", "gate"), ("distribution",), ("tui", "export", "part")
PAGES = ("flame", "html") # HTML (test_flame.py, test_html.py)
SEVERAL_TABLES = ("summary", "info", "dump", "gate")
LISTS_OF_FACTS = ("info", "dump") # one line each, never cut
COPIED_WHOLE = ("warning: ", "also ", "not shown: ", "  next", "no range has ") # texts to be read once or copied into a shell are not cut either
NARROW = 60 # on a terminal with fewer columns, a heading may be wider
TEXTS = (["--width", "40"], ["--width", "80", "--ascii"], ["--width", "200"])
DATA = (["-f", "json"], ["-f", "csv"])
OPTIONS = [["--steps", "1-2"], ["--no-steps"], ["--device", "1"], ["--depth", "1"], ["--top", "3"], ["--min-percent", "0"], ["--redact"], ["--strict"],
           ["--columns", "calls,cpu_total"], ["--no-fold"], ["--iec"], ["--sources"], ["--all"], ["--rank", "0"], ["--assume-type", "fp16"]]
OPTIONS += [["--by", key] for key in "name shape module stack category stream thread rank step".split()]
OPTIONS += [["--instances", which] for which in "worst first last all".split()]
OPTIONS += [["--metric", metric] for metric in "gpu cpu wall idle calls reserved allocated alloc tensors".split()]
OPTIONS += [["--demangle", form] for form in "short base full no".split()]

HOSTILE = ["evil \x1b[31mred\x07", "tab\tand\nline", "wide 張量運算 名前", "combining e\u0301\u0301\u0301 \u200b\u202e", "lone \ud800 surrogate", "=1+1,\"quoted\"", "x" * 3000,
           "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_nn_align4>(cutlass_80_tensorop_s1688gemm_128x64_nn_align4::Params)",
           "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_kernel_cudnn"]


def views():
    """The names of the views, from --help. `export` has formats of its own (test_export.py)."""
    text = report("--help").stdout.decode().split("\nviews\n")[1].split("\noptions\n")[0]
    return [name for name in re.findall(r"^  ([\w-]+) ", text, re.M) if name not in NEED_A_TERMINAL + PAGES]


def event(category, name, start, duration, tid=1, pid=7, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


def imported(folder):
    """A trace of torch.profiler: three steps on two GPUs, with hostile names."""
    events, at, correlation = [], 1000, 0
    for step in range(3):
        events.append(event("user_annotation", "ProfilerStep#%d" % step, at, 2000))
        for number, name in enumerate(HOSTILE):
            correlation += 1
            begin = at + 10 + 200 * number
            events += [event("cpu_op", name, begin, 100, **{"Input Dims": [[8, 16], [16, 4]], "Sequence number": correlation}),
                       event("cuda_runtime", "cudaLaunchKernel", begin + 10, 20, correlation=correlation),
                       event("kernel", name, begin + 40, 50 + number, pid=0, tid=7, correlation=correlation, device=number % 2, stream=7, grid=[4, 1, 1], block=[128, 1, 1])]
        at += 2500
    path = folder / "imported.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU \x1b[0m"}, {"id": 1, "name": "GPU"}], "traceEvents": events}))
    return path


def simulated(folder):
    """Traces of a program on the simulated device, whole and cut in the middle, if that device is
    built."""
    program = BUILD / "cudasim" / "13" / "known_work"
    if not program.exists():
        return []
    folder = folder / "simulated"
    folder.mkdir()
    traced(folder, str(program), "2", "2", "2")
    whole = (folder / "trace.bin").read_bytes()
    (folder / "cut").mkdir()
    (folder / "cut" / "cut.bin").write_bytes(whole[:len(whole) // 2])
    return [folder / "trace.bin", folder / "cut" / "cut.bin"]


def ranges(folder):
    folder = folder / "ranges"
    folder.mkdir()
    traced(folder, "ranges", "2", "5")
    return folder / "trace.bin"


def given():
    """The traces in the folders that the environment names."""
    folders = [pathlib.Path(os.environ[name]) for name in ("PPERF_TEST_DATA", "PPERF_TEST_TRACES") if os.environ.get(name)]
    return sorted(path for folder in folders for pattern in ("*.bin", "kineto/*.json*", "kineto/micro/test_*.json", "nsys/*.sqlite", "nsys/*.json.gz", "*.json*")
                  for path in folder.glob(pattern))


def cells(text):
    """The columns that a line takes on a terminal."""
    return sum(0 if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def refuse_constant(name):
    raise ValueError("%s is no JSON" % name)


def may_be_wide(line, files):
    """True for a line that is never cut: a message, or a single word or path, which wrapping leaves
    whole."""
    words = line.split()
    return line.startswith(COPIED_WHOLE) or any(str(file) in line for file in files) or len(words) <= 1 or (line[0] != " " and len(words) == 2)


def check_text(view, files, text, options):
    limit = int(options[options.index("--width") + 1])
    assert "--ascii" not in options or text.isascii(), "a character beyond ASCII: %r" % next(c for c in text if ord(c) > 126)
    for line in text.split("\n"):
        assert line.isprintable() or all(c.isprintable() or unicodedata.category(c) == "Zs" for c in line), "a control character in %r" % line[:200]
        wide = (limit < NARROW and not line.startswith(" ")) or view in LISTS_OF_FACTS or may_be_wide(line, files)
        assert wide or cells(line) <= limit, "%d columns instead of %d: %r" % (cells(line), limit, line[:300])


def check_csv(text, view):
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    if view not in SEVERAL_TABLES:
        assert len({len(row) for row in rows}) <= 1, "lines of %s fields" % sorted({len(row) for row in rows})


def flags(value):
    """Each `conserved` of a JSON document."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from [part] if key == "conserved" else flags(part)
    elif isinstance(value, list):
        for part in value:
            yield from flags(part)


def check_json(text, view):
    lines = text.splitlines() if view in LINES_OF_JSON else [text]
    for line in lines:
        document = json.loads(line, parse_constant=refuse_constant)
        assert False not in list(flags(document)), "what is not conserved"
        json.dumps(document, ensure_ascii=False).encode()  # a strict parser refuses a surrogate without its pair


def check(view, files, options):
    """The first problem in the output of a command, or None."""
    command = [str(REPORT), view, *map(str, files), *options]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, env=environment(LC_ALL="C.UTF-8"))
        assert done.returncode in (0, 1, 2, 64), "status %d" % done.returncode
        errors = done.stderr.decode()
        assert "ERROR: " not in errors and "runtime error" not in errors, errors[:1500]
        assert all(c.isprintable() or c == "\n" for c in errors), "a control character in %r" % errors[:300]
        assert done.returncode == 0 or errors or view == "diff" or view == "gate" or "--strict" in options, "status %d without a word" % done.returncode
        text = done.stdout.decode()
        if not text:
            return None
        if "-f" not in options:
            check_text(view, files, text, options)
        elif "json" in options:
            check_json(text, view)
        else:
            check_csv(text, view)
    except (AssertionError, ValueError, csv.Error, subprocess.TimeoutExpired) as error:
        return "%s: %s" % (" ".join(command[1:]), str(error)[:1500])


def of_memory():
    """The other tables of the view memory."""
    return [["--map"], ["--over-time"], ["--ledger"], ["--at", "peak,end,1,1ms"], ["--map", "--at", "end"], *(["--by", key] for key in "path module step line size library".split())]


def files_of(view, trace):
    return [trace, trace] if view in TAKE_TWO else ["cudaLaunchKernel", trace] if view in TAKE_A_NAME else [trace]


def commands(traces):
    asked = [*TEXTS, *DATA]
    for trace, view in itertools.product(traces, views()):
        for options in asked:
            yield view, files_of(view, trace), options
        for options, table in itertools.product(asked, of_memory()) if view == "memory" else []:
            yield view, files_of(view, trace), [*options, *table]
        for how, options in itertools.product([["--width", "80"], *DATA], OPTIONS) if SOAK else []:
            yield view, files_of(view, trace), [*how, *options]


def each(traces):
    """Checks all commands and fails with those that have a problem."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [found for found in pool.map(lambda command: check(*command), commands(traces)) if found]
    assert not wrong, "%d commands:\n%s" % (len(wrong), "\n".join(wrong[:None if SOAK else 12]))


@case
def names_that_no_view_should_print(folder):
    each([imported(folder)])


@case
def ranges_alone(folder):
    each([ranges(folder)])


@case
def a_gpu_and_a_trace_cut_in_the_middle(folder):
    each(simulated(folder))


@case
def devices_that_are_alike_share_a_line(folder):
    def told(*names):
        path = folder / "devices.json"
        path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": i, **({"name": name} if name else {})} for i, name in enumerate(names)],
                                    "traceEvents": [event("cpu_op", "aten::mm", 0, 10)]}))
        from_there = report(path).stdout.decode().split("\ndevice ")[1] # a long file name wraps the lines before it
        return [line.strip() if i == 0 else line[10:] for i, line in enumerate(from_there.split("\nimported")[0].splitlines())]
    assert told("H100", "H100", "H100", "A100") == ["GPUs 0-2 H100", "GPU 3 A100"]
    assert told(None, None) == ["GPUs 0-1 (the trace does not record the name of them)"]


@case
def a_launch_that_is_not_known_has_no_numbers(folder):
    """An unknown launch configuration is empty, not a grid of 0 blocks."""
    path = folder / "graph.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [
        event("cuda_runtime", "cudaLaunchKernel", 0, 10, correlation=1), event("kernel", "k", 20, 30, pid=0, tid=7, correlation=1, device=0, stream=7)]}))
    for view in "tree", "table", "kernels", "summary":
        assert b"(0,0,0)" not in report(view, path, "--min-percent", "0").stdout, view
    [row] = json.loads(report("kernels", path, "-f", "json").stdout)["rows"]
    assert "grid" not in row and "block" not in row, row


@case
def what_is_no_trace_gets_one_sentence(folder):
    trace = imported(folder)
    (folder / "text").write_text("hello\n")
    (folder / "empty").write_text("")
    (folder / "empty-folder").mkdir()
    (folder / "end.bin").write_bytes(b"pperf\r\n\x1a")
    cases = [([], 64), (["tree"], 64), ([folder / "empty-folder"], 2), ([folder / "none.bin"], 2), ([folder / "text"], 2), ([folder / "empty"], 2), ([folder / "end.bin"], 2),
             ([trace, folder / "text", trace], 2), (["tree", trace, "-o", folder], 2), (["tree", trace, "-o", "/dev/full"], 2), (["tre", trace], 64),
             (["tree", trace, "--columns", "none"], 64), (["diff", trace], 64), (["tree", trace, "--focus", "none"], 64)]
    for arguments, status in cases:
        errors = report(*arguments, check=status).stderr.decode()
        assert errors.startswith("pperf-report: ") and errors.count("\n") == 1, (arguments, errors)
    assert "no records of GPU 7" in report("tree", trace, "--device", "7", check=64).stderr.decode()
    assert "no records of GPU" not in report("tree", trace, "--device", "1").stdout.decode()


if SOAK:
    @case
    def every_trace_that_there_is(folder):
        each(given())


if __name__ == "__main__":
    main()
