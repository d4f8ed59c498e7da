#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The report on a pseudo terminal of a given size: it pages, shows its progress and suggests
commands."""
import fcntl, gzip, json, os, pty, re, select, signal, struct, subprocess, termios, time
from harness import REPORT, case, environment, main, report


def X(category, name, start, duration, tid=1, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid, "ts": start, "dur": duration, "args": args}


def events(operators=6, longer=1):
    made = []
    for step in range(30):
        base = step * 100000
        made.append(X("user_annotation", "ProfilerStep#%d" % step, base, 90000))
        for i in range(operators):
            at = base + 100 + i * 200
            made += [X("cpu_op", "aten::op%d/it's" % i, at, 150), X("cuda_runtime", "cudaLaunchKernel", at + 10, 5, correlation=step * 10000 + i + 1),
                     X("kernel", "gemm%d" % i, at + 50, (100 + step) * longer, 7, correlation=step * 10000 + i + 1, device=0, stream=7, grid=[4, 1, 1], block=[32, 1, 1])]
    return made


def write(folder, name="trace.json", rank=0, **more):
    path = folder / name
    path.write_text(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": events(**more)}))
    return path


def terminal(folder, *arguments, rows=24, columns=80, env=None, keys=b"", stdout=None, stderr=None, timeout=60, command=None, foreground=True):
    """The output of a report on a terminal, and its exit status. stdin is the terminal, and so are
    stdout and stderr unless given."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def take():
        os.setsid()
        if foreground:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    plain = {"LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": None, "PAGER": None, "LESS": None, "NO_COLOR": "1", **(env or {})}
    process = subprocess.Popen(command or [str(REPORT), *map(str, arguments)], cwd=folder, env=environment(**plain), stdin=slave,
                               stdout=slave if stdout is None else stdout, stderr=slave if stderr is None else stderr, preexec_fn=take)
    os.close(slave)
    out, end = b"", time.monotonic() + timeout
    try:
        while time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    got = os.read(master, 65536)
                except OSError: # the other end is closed
                    break
                if not got:
                    break
                out += got
                if keys:
                    os.write(master, keys)
                    keys = b""
        else:
            process.send_signal(signal.SIGKILL)
            raise AssertionError("it did not end: %r" % out[-300:])
        return out.replace(b"\r\n", b"\n"), process.wait(timeout=20)
    finally:
        os.close(master)


def next_of(text):
    found = [line for line in re.sub(rb"\x1b\[[0-9;]*m", b"", text).decode().splitlines() if line.startswith("next \u00b7 ")]
    assert len(found) <= 1, found
    return found[0][len("next \u00b7 "):] if found else None


# ---- suggested commands ----

@case
def each_command_that_is_suggested_works(folder):
    write(folder, "a'b c.json"), write(folder, "tree", longer=2), write(folder, "x\x1b\xb5.json")
    asked, seen = [["ranks"], ["tui"], ["dump"]], {}
    views = [line.split()[0] for line in report("--help").stdout.decode().split("views")[1].split("options")[0].splitlines() if re.match(r"  [a-z]", line)]
    assert {"tree", "critical", "kernels", "diff"} <= set(views), views
    for view in views:
        if [view] in asked:
            continue
        for file in "a'b c.json", "./tree", "x\x1b\xb5.json":
            files = [file, "./tree"] if view in ("diff", "gate") else [file]
            text, status = terminal(folder, view, *files, "--no-pager", rows=5000)
            suggested = next_of(text)
            if not suggested:
                continue
            assert status in (0, 1) and b"\x1b\xb5" not in text and "next" in text.decode().splitlines()[-1], (view, text[-300:])
            words = subprocess.run(["bash", "-c", 'printf "%%s\\0" %s' % suggested], cwd=folder, capture_output=True, check=True).stdout.split(b"\0")
            done = subprocess.run(["bash", "-c", '%s %s' % (REPORT, suggested[len("pperf-report "):])], cwd=folder, capture_output=True, env=environment(LC_ALL="C.UTF-8"))
            assert done.returncode in (0, 1) and done.stdout and words[0] == b"pperf-report", (view, suggested, done.stderr)
            seen.setdefault(view, suggested)
    for file in "a'b c.json", "./tree", "x\x1b\xb5.json":
        text, _ = terminal(folder, file, "./tree", "--no-pager", "--width", 400, rows=5000)
        [line] = [line for line in text.decode().splitlines() if line.startswith("next ")]
        done = subprocess.run(["bash", "-c", "%s %s" % (REPORT, line.split("pperf-report ", 1)[1])], cwd=folder, capture_output=True, env=environment(LC_ALL="C.UTF-8"))
        assert done.returncode == 0 and done.stdout, (line, done.stderr)
    assert {"tree", "critical", "table", "kernels", "info", "diff"} <= set(seen), seen
    assert "--focus" in seen["kernels"] and "--focus" in seen["critical"], seen


@case
def nothing_is_suggested_to_a_pipe_and_not_in_other_formats(folder):
    path = write(folder)
    assert b"next" not in report("tree", path).stdout
    assert b"next" not in terminal(folder, "tree", path, "-f", "json", "--no-pager")[0]


# ---- the pager ----

MARK = "sed 's/^/paged: /'"


@case
def what_is_longer_than_the_screen_is_paged_and_nothing_else(folder):
    path = write(folder)
    env = {"PPERF_PAGER": MARK}
    plain = report("tree", path).stdout
    lines = plain.count(b"\n")
    text, status = terminal(folder, "tree", path, rows=lines, env=env)
    assert status == 0 and text.count(b"paged: ") == text.count(b"\n"), text
    text, status = terminal(folder, "tree", path, rows=lines + 3, env=env)
    assert status == 0 and b"paged" not in text, text
    assert b"paged" not in terminal(folder, "tree", path, "--no-pager", rows=5, env=env)[0]
    assert b"paged" not in terminal(folder, "tree", path, rows=5, env=env, stdout=subprocess.DEVNULL)[0]
    terminal(folder, "tree", path, "-o", "out", rows=5, env=env)
    assert (folder / "out").read_bytes() == plain
    assert b"paged: " in terminal(folder, "tree", path, rows=8, env={"PAGER": MARK})[0]
    for none in "", "cat":
        assert b"paged" not in terminal(folder, "tree", path, rows=5, env={"PPERF_PAGER": none, "PAGER": MARK})[0]


@case
def a_long_line_counts_for_the_lines_that_it_takes(folder):
    path = write(folder)
    text, _ = terminal(folder, "tree", path, "-f", "json", rows=24, env={"PPERF_PAGER": MARK}) # one line
    assert text.startswith(b"paged: {"), text[:80]


@case
def everything_comes_through_and_a_pager_that_quits_early_is_no_error(folder):
    path = write(folder, operators=40)
    records = report("dump", path).stdout
    assert len(records) > 200000
    text, status = terminal(folder, "dump", path, env={"PPERF_PAGER": "cat > paged; echo all"})
    assert status == 0 and text == b"all\n" and (folder / "paged").read_bytes() == records
    for command in "head -1", "true":
        text, status = terminal(folder, "dump", path, env={"PPERF_PAGER": command})
        assert status == 0 and len(text) < 500 and b"pperf-report" not in text, text


@case
def who_is_another_user_by_sudo_may_run_nothing_from_less(folder):
    path = write(folder)
    for user, wanted in ((None, b"-\n"), ("1000", b"1\n")):
        text, _ = terminal(folder, "tree", path, rows=5, env={"PPERF_PAGER": "cat > /dev/null; echo ${LESSSECURE:--}", "SUDO_UID": user, "LESSSECURE": None})
        assert text == wanted, text


@case
def settings_of_less_are_those_of_git_unless_the_user_has_others(folder):
    path = write(folder)
    for less, wanted in (None, b"FRX -c\n"), ("Q", b"Q -c\n"):
        text, _ = terminal(folder, "tree", path, rows=5, env={"PPERF_PAGER": "cat > /dev/null; echo $LESS $LV", "LESS": less, "LV": None})
        assert text == wanted, text


@case
def a_pager_that_is_not_there_is_named(folder):
    text, status = terminal(folder, "tree", write(folder), rows=5, env={"PPERF_PAGER": "no-such-pager-anywhere"})
    assert status == 2 and b"`no-such-pager-anywhere` cannot be run; --no-pager" in text, text


@case
def an_interrupt_is_the_pagers(folder):
    """^C interrupts the pager, not the report, and the terminal is restored when both have ended.
    """
    path = write(folder)
    text, status = terminal(folder, "tree", path, rows=5, keys=b"\x03", env={"PPERF_PAGER": "trap 'echo interrupted; exit 0' INT; echo ready; cat > /dev/null; while :; do sleep 0.1; done"})
    assert status == 0 and b"interrupted" in text, (status, text)


# ---- progress ----


def long_trace(folder):
    """A trace that takes most of a second of processor time on any machine: a gzip file of equal
    parts, compressed once."""
    event = json.dumps(X("cpu_op", "aten::some_operator", 5, 1, **{"Input Dims": [[1, 2, 3]] * 40})) + ",\n"
    part, path, parts, seconds = gzip.compress((event * 20000).encode(), 1), folder / "long.json.gz", 2, 0
    while seconds < 0.9:
        path.write_bytes(gzip.compress(b'{"traceEvents": [\n') + part * parts + gzip.compress(json.dumps(X("cpu_op", "last", 9, 1)).encode() + b"]}"))
        before = os.times()
        report("info", path)
        seconds = os.times().children_user - before.children_user
        parts = int(parts * max(1.3, min(20, 1.2 / seconds)))
    return path


@case
def reading_that_takes_long_says_how_far_it_is_and_takes_it_back(folder):
    path = long_trace(folder)
    text, status = terminal(folder, "info", path, stdout=subprocess.DEVNULL)
    assert status == 0 and re.search(rb"\r\x1b\[Kreading .*long.json.gz: \d+ %, \d+ MB/s", text), text[:400]
    assert text.endswith(b"\r\x1b[K") and b"\n" not in text, text[-100:]
    percents = [int(p) for p in re.findall(rb": (\d+) %", text)]
    assert max(percents) <= 100
    text, _ = terminal(folder, "info", path, "--no-pager")
    assert b"reading" in text and text.rindex(b"\x1b[K") < text.index(b"records"), text[:300]
    for arguments, more in (("--no-progress",), {}), ((), {"env": {"TERM": "dumb"}}), ((), {"foreground": False}):
        text, _ = terminal(folder, "info", path, *arguments, stdout=subprocess.DEVNULL, **more)
        assert text == b"", (arguments, more, text[:200])
    assert report("info", path).stderr == b"" # no terminal


@case
def what_is_read_at_once_says_nothing(folder):
    text, _ = terminal(folder, "tree", write(folder), stdout=subprocess.DEVNULL)
    assert b"\x1b" not in text or b"%" in text, text # a machine that needs half a second for it may say so


main()
