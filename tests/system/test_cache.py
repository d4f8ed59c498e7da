#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What pperf-report keeps between commands on the same trace: every view prints the same bytes with and without it, and after the trace or what is kept was
changed. What an entry must be to be believed is tested in tests/report/test_cache.c."""
import glob, json, os, random, re, shutil, subprocess, time
from harness import PROGRAMS, REPORT, VARIANT, Skip, case, environment, main, run, unsanitized

VIEWS = "summary tree critical table categories steps kernels memory api streams queue idle overlap roofline diagnose critical-path info".split()
KEEPING = "diagnose idle queue streams overlap critical-path steps roofline".split() # views whose rows are kept
OTHERS = "distribution diff gate ranks part export flame html tui".split() # they need more than a trace, or write pages
OPTIONS = [["--steps", "2-3"], ["--no-steps"], ["--device", "0"], ["--depth", "1"], ["--top", "2"], ["--min-percent", "3"], ["--redact"], ["--strict"], ["--no-fold"],
           ["--iec"], ["--ascii"], ["--sources"], ["--all"], ["--rank", "0"], ["--assume-type", "fp16"], ["--metric", "wall"], ["--metric", "idle"], ["--sort", "count"],
           ["--sort", "idle_before_ns"], ["--columns", "calls,idle_ns"], ["--demangle", "full"], ["--step-marker", "forward"], ["--width", "60"], ["--color", "always"]]
AGE_S = 2.05 # what is younger is not kept
FEW = VARIANT != "plain" # with a sanitizer each command takes seconds


def aged(path):
    """Waits until the file is old enough to be kept."""
    while time.time() < os.stat(path).st_ctime + AGE_S:
        time.sleep(0.05)
    return path


def job(folder, ranks=1, steps=16):
    run(folder, str(PROGRAMS / "job_load"), folder, ranks, steps, check=0)
    return aged(sorted(folder.glob("rank*"))[-1])


def kineto(folder, count=3200):
    """A trace of torch.profiler of more than 1 MiB."""
    events, at = [], 1000
    for number in range(count):
        events += [{"ph": "X", "cat": "cpu_op", "name": "aten::op%d" % (number % 40), "pid": 7, "tid": 7, "ts": at, "dur": 20},
                   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": at + 2, "dur": 5, "args": {"correlation": number + 1}},
                   {"ph": "X", "cat": "kernel", "name": "gemm%d" % (number % 7), "pid": 0, "tid": 7, "ts": at + 12, "dur": 9 + number % 5,
                    "args": {"correlation": number + 1, "device": 0, "stream": 7, "grid": [4, 1, 1], "block": [128, 1, 1]}}]
        at += 25
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}))
    assert path.stat().st_size > 1 << 20
    return aged(path)


def given():
    """The traces of other tools that are large enough to be kept."""
    folder = os.environ.get("PPERF_TEST_DATA")
    paths = [p for pattern in ("kineto/*.json*", "nsys/*.sqlite") for p in sorted(glob.glob(os.path.join(folder, pattern)))] if folder else []
    return [p for p in paths if os.path.getsize(p) >= 1 << 20]


def command(cache, *words, **settings):
    env = environment(LC_ALL="C.UTF-8", XDG_CACHE_HOME=str(cache), PPERF_CACHE=None)
    env.update(settings)
    return [str(REPORT), *map(str, words)], env


def told(cache, *words, **settings):
    """Status, output and messages of a command in the folder of the cache."""
    words, env = command(cache, *words, **settings)
    result = subprocess.run(words, env=env, cwd=cache.parent, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    return result.returncode, result.stdout, result.stderr


def entries(cache, kind=""):
    return sorted(p for p in (cache / "pperf").glob("*.entry") if "-%s" % kind in p.name) if cache.exists() else []


def check_equal(cache, *words):
    plain = told(cache, *words, "--no-cache")
    for turn in "first", "second":
        assert told(cache, *words) == plain, "%s of %s differs" % (turn, " ".join(map(str, words)))


def kinds(cache):
    """How many entries of each kind there are."""
    return {kind: len(entries(cache, kind)) for kind in ("trace", "profile", "rows") if entries(cache, kind)}


def check_views(cache, path):
    for view in VIEWS[::4] + KEEPING[:2] if FEW else VIEWS:
        for form in ("text",) if FEW else ("text", "json", "csv"):
            check_equal(cache, view, path, "-f", form)


@case
def views_of_a_trace_are_the_same(folder):
    cache = folder / "cache"
    check_views(cache, job(folder))
    assert entries(cache, "rows") and entries(cache, "profile") and not entries(cache, "trace")


@case
def these_are_all_views(folder):
    listed = re.findall(r"^  ([a-z-]+) +", subprocess.run([str(REPORT), "--help"], capture_output=True, text=True).stdout.split("\nviews\n")[1].split("\n\n")[0], re.M)
    assert sorted(VIEWS + OTHERS + ["dump"]) == sorted(listed), listed


@case
def what_needs_more_than_a_trace_is_the_same(folder):
    cache, path = folder / "cache", job(folder, 2)
    other = path.with_name("rank00000.bin")
    for words in [["distribution", "forward", path], ["diff", other, path], ["gate", other, path], ["ranks", folder], ["export", "folded", path], ["export", "chrome", path],
                  ["flame", path, "-o", "page"], ["html", path, "-o", "page"], ["tree", path, "--all"], ["table", path, "--by", "rank"]][:: 4 if FEW else 1]:
        page = folder / "page"
        pages = []
        for turn in ["--no-cache"], [], []:
            result = told(cache, *words, *turn)
            pages.append((result, page.read_bytes() if page.exists() else b""))
            page.unlink(missing_ok=True)
        assert result[0] in (0, 1), result
        assert pages[0] == pages[1] == pages[2], words
    assert len(entries(cache, "profile")) >= 2


@case
def a_profile_serves_other_views_and_options(folder):
    cache, path = folder / "cache", job(folder)
    told(cache, "diagnose", path)
    told(cache, "tree", path, "-f", "json")
    kept = entries(cache, "profile")
    assert len(kept) == 2 # the second has percentiles
    for entry in kept:
        os.utime(entry, (1000, 1000))
    for words in (["tree", "--sort", "cpu_total_ns"], ["table", "-f", "csv"], ["table", "--top", "3"], ["memory"], ["kernels", "-f", "json"], ["memory", "-f", "json"],
                  ["tree", "--depth", "2"], ["idle"], ["table", "--by", "stream"], ["critical"]):
        assert told(cache, *words, path) == told(cache, *words, path, "--no-cache"), words
        assert entries(cache, "profile") == kept, words
    assert all(entry.stat().st_mtime > 1000 for entry in kept)


@case
def another_build_reads_its_own_entries(folder):
    cache, path, copy = folder / "cache", job(folder), folder / "pperf-report"
    shutil.copy(REPORT, copy)
    plain = told(cache, "tree", path)
    before = entries(cache)
    words, env = command(cache, "tree", path)
    for turn in range(2):
        result = subprocess.run([str(copy), *words[1:]], env=env, cwd=folder, capture_output=True, timeout=300)
        assert (result.returncode, result.stdout, result.stderr) == plain
    assert kinds(cache) == {"profile": 2} and set(before) < set(entries(cache))


@case
def views_of_another_tools_trace_are_the_same(folder):
    cache = folder / "cache"
    check_views(cache, kineto(folder))
    assert len(entries(cache, "trace")) == 1 and entries(cache, "rows")


@case
def views_of_given_traces_are_the_same(folder):
    if not given():
        raise Skip("PPERF_TEST_DATA does not name the folder with traces of other tools")
    for path in given()[:1] if FEW else given():
        check_views(folder / "cache", path)
    assert entries(folder / "cache", "trace")


@unsanitized
def other_options_never_get_what_was_kept_for_these(folder):
    for path in job(folder), kineto(folder):
        cache = folder / ("cache-" + path.name)
        for number, view in enumerate(KEEPING[:1] if FEW else KEEPING + ["tree"]):
            told(cache, view, path)
            told(cache, view, path, "-f", "json")
            for option in OPTIONS[::5] if FEW else OPTIONS[number % 4 :: 4] if path.suffix == ".json" else OPTIONS:
                for form in ("text", "json")[: 1 + (view in ("diagnose", "tree"))]:
                    words = [view, path, "-f", form, *option]
                    assert told(cache, *words) == told(cache, *words, "--no-cache"), words


@case
def the_first_screen_and_diagnose_share_what_is_kept(folder):
    cache, path = folder / "cache", job(folder)
    told(cache, path)
    kept = entries(cache)
    assert kept
    for entry in kept:
        os.utime(entry, (1000, 1000))
    for words in (["diagnose"], ["diagnose", "-n", "2"], ["diagnose", "--brief"], ["summary", "--width", "70"]):
        assert told(cache, *words, path) == told(cache, *words, path, "--no-cache")
        assert entries(cache) == kept, words
    assert all(entry.stat().st_mtime > 1000 for entry in kept) # they were used


@case
def a_trace_under_another_name_is_called_by_it(folder):
    cache, path = folder / "cache", job(folder)
    other = folder / "another name.bin"
    os.link(path, other)
    assert told(cache, "diagnose", aged(path))[1] != told(cache, "diagnose", "./" + path.name, "--no-cache")[1]
    for name in path, other, str(folder) + "/./" + path.name:
        check_equal(cache, "diagnose", name)


@case
def a_changed_trace_is_read_again(folder):
    cache, path = folder / "cache", kineto(folder)
    before = told(cache, "tree", path)
    stamp = path.stat()
    path.write_text(path.read_text().replace("aten::op39", "aten::op41"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns)) # of equal length and time, just changed
    after = told(cache, "tree", path)
    assert after == told(cache, "tree", path, "--no-cache") and after != before
    assert told(cache, "tree", aged(path)) == after and told(cache, "tree", path) == after
    assert len(entries(cache, "trace")) == 2


@case
def damaged_entries_are_made_again(folder):
    cache, path, dice = folder / "cache", kineto(folder), random.Random(1)
    plain = told(cache, "idle", path, "--no-cache")
    for turn in range(3 if FEW else 6):
        assert told(cache, "idle", path) == plain
        assert kinds(cache) == {"trace": 1, "profile": 1, "rows": 1}
        for entry in entries(cache):
            content = bytearray(entry.read_bytes())
            if turn % 2:
                del content[dice.randrange(len(content)):]
            else:
                content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
            entry.write_bytes(content)
    assert told(cache, "idle", path) == plain


@case
def commands_at_the_same_time_agree(folder):
    cache, path = folder / "cache", kineto(folder)
    plain = told(cache, "idle", path, "--no-cache")
    words, env = command(cache, "idle", path)
    for turn in range(2):
        several = [subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
        for process in several:
            out, err = process.communicate(timeout=300)
            assert (process.returncode, out, err) == plain
    assert kinds(cache) == {"trace": 1, "profile": 1, "rows": 1} and not list((cache / "pperf").glob("*.new"))


@case
def it_can_be_off(folder):
    cache, path = folder / "cache", kineto(folder)
    told(cache, "tree", path, "--no-cache")
    told(cache, "tree", path, PPERF_CACHE="0")
    assert not cache.exists()
    told(cache, "tree", path, XDG_CACHE_HOME="", HOME=str(folder / "home"))
    assert not (folder / "home").exists() # a home that does not exist is not made
    (folder / "home").mkdir()
    told(cache, "tree", path, XDG_CACHE_HOME="", HOME=str(folder / "home"))
    assert entries(folder / "home" / ".cache")


@case
def some_traces_are_not_kept(folder):
    """A small one, standard input, a trace whose process has not ended; of several ranks the rows of diagnose."""
    cache = folder / "cache"
    run(folder, str(PROGRAMS / "job_load"), folder, 1, 2, check=0)
    small = aged(folder / "rank00000.bin")
    told(cache, "diagnose", small)
    small.unlink()
    assert not entries(cache)
    path = job(folder, 2)
    told(folder / "of ranks", "diagnose", path)
    assert kinds(folder / "of ranks") == {"profile": 2}
    alone = folder / "alone" / "trace.bin"
    alone.parent.mkdir()
    content = bytearray(path.read_bytes())
    ended = content.copy()
    flags = 80 # of the header
    assert content[flags] & 2
    content[flags] &= ~2 # TRACE_ENDED
    alone.write_bytes(content)
    told(cache, "idle", aged(alone))
    with open(alone, "rb") as pipe:
        words, env = command(cache, "idle", "-")
        subprocess.run(words, env=env, stdin=subprocess.Popen(["cat"], stdin=pipe, stdout=subprocess.PIPE).stdout, capture_output=True, timeout=300)
    assert not entries(cache)
    alone.write_bytes(ended)
    told(cache, "idle", aged(alone))
    assert kinds(cache) == {"profile": 1, "rows": 1}


main()
