#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""readers.py [ROUNDS]: what HTA, TraceLens and pperf take to read the same files of torch.profiler, and
whether they find the same GPU time; a section of bench/RESULTS.md. CPU time, in turns, so that others'
work on the machine matters little. `make export-peers` has HTA; TRACELENS names the folders with
TraceLens and its dependencies, as PYTHONPATH does (the package of that name on PyPI is another one);
PPERF_TEST_DATA the folder of the files."""
import datetime, json, os, pathlib, shutil, statistics, subprocess, sys, time
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "bench" / "peers"))
import machine, results

FILES = ("hta__negative_queue_length_values_check~rank0.json.gz", "kineto__resnet50_num_workers_0.1623143089861.pt.trace.json.gz",
         "tl__h100~Falconsai_nsfw_image_detection__1016002.json.gz", "tl__h100~gaunernst_bert-small-uncased__1016001.json.gz", "param__dlrm_worker0_step_12.1694128201545.pt.trace.json.gz")
# Each prints {"busy": ns, "idle": ns} of the file's GPU, from its first operation to the end of its last one.
HTA = """
import json, logging, sys
logging.disable(50)
from hta.trace_analysis import TraceAnalysis
if len(sys.argv) > 1:
    row = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="", include_last_profiler_step=True).get_temporal_breakdown(visualize=False).iloc[0]
    print(json.dumps({"busy": 1e3 * float(row["compute_time(us)"] + row["non_compute_time(us)"]), "idle": 1e3 * float(row["idle_time(us)"])}))
"""
TRACELENS = """
import json, sys
from TraceLens.TreePerf.tree_perf import TreePerfAnalyzer
if len(sys.argv) > 1:
    table = TreePerfAnalyzer.from_file(sys.argv[1]).get_df_gpu_timeline()
    ms = dict(zip(table["type"], table["time ms"]))
    print(json.dumps({"busy": 1e6 * float(ms["busy_time"]), "idle": 1e6 * float(ms["idle_time"])}))
"""


def measured(command, **env):
    """(CPU seconds, MB at most, standard output) of a process."""
    reading, writing = os.pipe()
    process = subprocess.Popen(command, stdout=writing, stderr=subprocess.DEVNULL, env={**os.environ, **env})
    os.close(writing)
    with os.fdopen(reading) as output:
        text = output.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text if process.returncode == 0 else ""


class Tool:
    def __init__(self, name, version, command, env=None):
        self.name, self.version, self.command, self.env = name, version, command, env or {}

    def read(self, path=None):
        return measured(self.command(path), **self.env)

    def figures(self, text):
        found = json.loads(text[text.index("{"):]) if "{" in text else None
        if found and "totals" in found:
            gpu, = (gpu["launched"] for gpu in found["totals"]["gpus"])
            found = {"busy": gpu["busy_ns"], "idle": gpu["idle_ns"] + gpu["unknown_ns"]}
        return found


def python(code, path):
    return [sys.executable, "-c", code, *([str(path)] if path else [])]


def tools():
    """(tools, sentences on what was not measured)"""
    report, peers, missing = ROOT / "build" / "pperf-report", ROOT / "build" / "export-peers", []
    found = [Tool("pperf", subprocess.run([report, "--version"], capture_output=True, text=True).stdout.split()[-1],
                  lambda path: [str(report), "tree", "-f", "json", str(path)] if path else [str(report), "--version"])]
    if (peers / "hta").is_dir():
        version = next(peers.glob("holistictraceanalysis-*.dist-info")).name.split("-")[1].removesuffix(".dist")
        found.append(Tool("HTA", version, lambda path: python(HTA, path), {"PYTHONPATH": str(peers)}))
    else:
        missing.append("HTA: not installed (`make export-peers`)")
    if os.environ.get("TRACELENS"):
        found.append(Tool("TraceLens", os.environ.get("TRACELENS_VERSION", "from its sources"), lambda path: python(TRACELENS, path), {"PYTHONPATH": os.environ["TRACELENS"]}))
    else:
        missing.append("TraceLens: its sources are not given (`TRACELENS`)")
    missing.append("`nsys recipe`: measured by nobody yet, it reads .nsys-rep files" if shutil.which("nsys") else "`nsys recipe`: nsys is not installed on this machine")
    return found, missing


def agreement(ours, theirs):
    if not theirs:
        return "no GPU time found"
    far = max(abs(ours[key] - theirs[key]) for key in ("busy", "idle"))
    return "equal" if far < 1000 else "%.3f and %.3f ms" % (theirs["busy"] / 1e6, theirs["idle"] / 1e6)


def section(found, missing, rounds):
    """`found`: {(tool, file or None): [(CPU s, MB, figures)]}"""
    names, rows = sorted({key[0] for key in found}, key=[tool for tool, _ in found].index), []
    for file in FILES:
        if (names[0], file) not in found:
            continue
        ours = found[names[0], file][0][2]
        row = ["`%s`" % file.split(".")[0], "%.3f and %.3f ms" % (ours["busy"] / 1e6, ours["idle"] / 1e6)]
        for name in names:
            runs = found[name, file]
            row.append("%s s, %.0f MB" % (results.spread([run[0] for run in runs], 2), statistics.median(run[1] for run in runs)) +
                       ("" if name == names[0] else "; " + agreement(ours, runs[0][2])))
        rows.append(row)
    rows.append(["start alone", "-"] + ["%s s, %.0f MB" % (results.spread([run[0] for run in found[name, None]], 2), statistics.median(run[1] for run in found[name, None])) for name in names])
    return """%s
## Reading torch.profiler's files

Written by `make bench-readers`, %s, %s: user and system CPU time and peak memory of a process that reads a file and finds how long its GPU
was busy and idle, medians of %d [lowest to highest], in turns. Figures that are not *equal* to pperf's to the microsecond are given. All are of
GPU work whose launch is in the file, as HTA and TraceLens count it; in the first file 872 of 7,747 records have none, and pperf's views count these, too,
and call 270 ms of that GPU's idle time unknown, because graphs are recorded as a whole. HTA reads the last step, too
(`include_last_profiler_step`), and rounds each time to microseconds. TraceLens knows no categories of 2021. Less memory than the measuring
process has, 19 MB, is not seen.

%s

%s
%s
""" % (results.READERS_BEGIN, machine.description(), datetime.date.today().isoformat(), rounds,
       results.table(["file", "GPU busy and idle"] + ["%s %s" % (name, found[name, None][0][3]) for name in names], rows),
       "\n".join("- Not measured: %s." % line for line in missing), results.READERS_END)


def main(rounds=5):
    folder = pathlib.Path(os.environ.get("PPERF_TEST_DATA", "/nonexistent")) / "kineto"
    files = [file for file in FILES if (folder / file).exists()]
    if not files:
        sys.exit("bench-readers: PPERF_TEST_DATA has none of the files")
    (given, missing), found = tools(), {}
    for number in range(int(rounds)):
        for file in [None] + files:
            for tool in given if number % 2 else given[::-1]:
                seconds, size, text = tool.read(folder / file if file else None)
                found.setdefault((tool.name, file), []).append((seconds, size, tool.figures(text) if file else None, tool.version))
                print("%d %-10s %-60s %7.2f s %6.0f MB" % (number, tool.name, file, seconds, size), flush=True)
                time.sleep(0.1)
    found = {(tool.name, file): found[tool.name, file] for tool in given for file in [None] + files}
    results.write_readers(ROOT, section(found, missing, int(rounds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
