#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`pperf-report tui` in a terminal (tmux): the screen after keys, changes of size and signals, and
that the terminal is restored. Tests wait for texts on the screen, never for a fixed time."""
import contextlib, json, os, pathlib, shutil, signal, subprocess, time
from harness import SANITIZED, REPORT, Skip, case, environment, main, run

PATIENCE_S = 90


def X(category, name, start, duration, tid=1, pid=7, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


def op(name, start, duration, kernel, took, number):
    return [X("cpu_op", name, start, duration), X("cuda_runtime", "cudaLaunchKernel", start + 1, 2, correlation=number),
            X("kernel", kernel, start + 5, took, pid=0, tid=7, correlation=number, device=0, stream=7, grid=[64, 1, 1], block=[128, 1, 1])]


def program(folder, name="trace.json", slower=1, names=("aten::mm", "aten::relu", "aten::add")):
    events = []
    for index, operator in enumerate(names):
        events += op(operator, 100 + 1000 * index, 500, "kernel_%d" % index, 400 * slower if index == 0 else 100 - index, index + 1)
    (folder / name).write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return name


class Terminal:
    """A pane in which a shell runs the tool between two lines of its own."""
    count = 0

    def __init__(self, folder, arguments, width=80, height=24, env=None):
        Terminal.count += 1
        self.folder, self.socket = folder, "socket%d" % Terminal.count
        settings = {"LC_ALL": "C.UTF-8", "TERM": "screen", "NO_COLOR": None, "COLUMNS": None, "LINES": None, "TMUX": None, **(env or {})}
        words = " ".join("%s=%s" % (k, v) for k, v in settings.items() if v is not None)
        unset = " ".join("-u " + k for k, v in settings.items() if v is None)
        script = folder / "shell"
        script.write_text("echo line before\nstty -g > modes.before\nenv %s %s %s %s\necho status $?\nstty -g > modes.after\necho done; read line\n"
                          % (unset, words, REPORT, arguments))
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, "sh", "shell")

    def tmux(self, *arguments):
        result = subprocess.run(["tmux", "-u", "-S", self.socket, *map(str, arguments)], cwd=self.folder, capture_output=True, timeout=PATIENCE_S,
                                env=environment(LC_ALL="C.UTF-8", TMUX=None))
        assert result.returncode == 0, "tmux %s: %s" % (arguments[0], result.stderr.decode(errors="replace"))
        return result.stdout.decode()

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def fact(self, name):
        return self.tmux("display-message", "-p", "#{%s}" % name).strip()

    def until(self, *wanted, missing=()):
        """Waits until the screen has the texts `wanted` and none of `missing`."""
        end = time.monotonic() + PATIENCE_S
        while True:
            text = self.screen()
            if all(w in text for w in wanted) and not any(m in text for m in missing):
                return text
            assert time.monotonic() < end, "%s (without %s) did not appear:\n%s" % (wanted, missing, text)
            time.sleep(0.02)

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", width, "-y", height)

    def pid(self):
        """The process id of the tool."""
        pane = self.fact("pane_pid")
        children = pathlib.Path("/proc/%s/task/%s/children" % (pane, pane)).read_text().split()
        return next(int(pid) for pid in children if pathlib.Path("/proc/%s/comm" % pid).read_text().startswith("pperf-report"))

    def check_left(self, status):
        """Fails unless the tool has ended and the terminal is as before."""
        self.until("line before", "status %d" % status, "done")
        assert self.fact("alternate_on") == "0" and self.fact("cursor_flag") == "1"
        assert self.fact("keypad_flag") == "0" and self.fact("keypad_cursor_flag") == "0"
        assert (self.folder / "modes.before").read_text() == (self.folder / "modes.after").read_text()


@contextlib.contextmanager
def terminal(folder, arguments, *size, **settings):
    if not shutil.which("tmux"):
        raise Skip("there is no tmux to be a terminal: scripts/setup.sh test")
    it = Terminal(folder, arguments, *size, **settings)
    try:
        yield it
    finally:
        subprocess.run(["tmux", "-S", it.socket, "kill-server"], cwd=folder, capture_output=True)


TREE = """ trace.json  metric gpu, by gpu                                             1/9
name                                        gpu        cpu          %      calls
▾ aten::mm                            400.00 µs  500.00 µs     67.0 %          1
    kernel_0                          400.00 µs                67.0 %          1
    cudaLaunchKernel                               2.00 µs                     1
▾ aten::relu                           99.00 µs  500.00 µs     16.6 %          1
    kernel_1                           99.00 µs                16.6 %          1
    cudaLaunchKernel                               2.00 µs                     1
▾ aten::add                            98.00 µs  500.00 µs     16.4 %          1
    kernel_2                           98.00 µs                16.4 %          1
    cudaLaunchKernel                               2.00 µs                     1
"""


@case
def a_screen_of_80_by_24(folder):
    with terminal(folder, "tui " + program(folder)) as it:
        text = it.until("? keys")
        assert text.startswith(TREE), text
        assert text.rstrip("\n").endswith("\nenter open  d details  f focus  / find  s sort  m metric  w worst  ? keys  q"), text
        assert it.fact("alternate_on") == "1" and it.fact("cursor_flag") == "0"
        it.keys("q")
        it.check_left(0)


@case
def keys_change_it(folder):
    with terminal(folder, "tui " + program(folder)) as it:
        it.until("? keys")
        it.keys("Left")
        it.until("▸ aten::mm", missing=["kernel_0"])
        it.keys("End", "Up", "Up", "f")
        it.until("u: back", "▾ aten::add", missing=["aten::mm"])
        it.keys("BSpace")
        it.until("▸ aten::mm")
        it.keys("/", "k", "e", "r", "n", "e", "l", "_", "0")
        it.until("\n/kernel_0\n", "    kernel_0")
        it.keys("Enter", "Enter")
        it.until("details", "launch configurations of this kernel", "gpu_total_ns")
        it.keys("q")
        it.until("▾ aten::mm")
        it.keys("m")
        it.until("metric: what rows are sorted by")
        it.keys("Down", "Enter")
        it.until("metric cpu, by cpu")
        it.keys("%")
        it.until("in %", "33.3 %")
        it.keys("W")
        it.until("critical, level")
        it.keys("q")
        it.check_left(0)


@case
def it_follows_the_window(folder):
    with terminal(folder, "tui " + program(folder)) as it:
        it.until("calls")
        it.resize(50, 12)
        text = it.until("\nenter open  d details  / find  ? keys  q quit\n", "1/9\n", missing=["calls"])
        assert max(map(len, text.splitlines())) <= 50, text
        it.resize(30, 6)
        it.until("40x8 needed; q quits", missing=["aten"])
        it.resize(100, 30)
        it.until("aten::mm", "calls", "p50")
        it.resize(20, 2)
        it.until("40x8 needed; q quits")
        it.keys("q")
        it.resize(80, 24)
        it.check_left(0)


@case
def every_terminal_will_do(folder):
    program(folder)
    for term in ("xterm", "screen", "tmux", "linux", "vt100", "xterm-256color"):
        if subprocess.run(["infocmp", term], capture_output=True).returncode:
            continue
        with terminal(folder, "tui trace.json", env={"TERM": term}) as it:
            text = it.until("? keys", "aten::add")
            assert text.startswith(TREE), (term, text)
            it.keys("Down", "Down", "Up", "Enter")
            it.until("details", "kernel_0")
            it.keys("q")
            it.until("? keys", "aten::add")
            it.keys("q")
            it.until("status 0")


@case
def an_unknown_terminal_is_named(folder):
    program(folder)
    for term in ("no-such-thing", "dumb"):
        with terminal(folder, "tui trace.json", env={"TERM": term}) as it:
            it.check_left(64)
            it.until("the terminal type `%s` is unknown" % term)


COLORS = tuple("\x1b[%dm" % number for number in (31, 32, 33))


@case
def colours_where_they_are_wanted(folder):
    program(folder)
    for env, wanted in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "vt100"}, False)):
        with terminal(folder, "tui trace.json", env=env) as it:
            it.until("? keys")
            it.keys(*"jjjjjjjj")
            it.until("9/9")
            text = it.screen("-e")
            assert any(color in text for color in COLORS) == wanted, (env, text)


@case
def hostile_names_stay_on_their_row(folder):
    names = ("\x1b]0;owned\x07\x1b[2J", "\u202eevil\r\n\x9b31m", "深層学習モデル")
    program(folder, names=names)
    with terminal(folder, "tui trace.json") as it:
        lines = it.until("? keys", "深層学習モデル").splitlines()
        assert lines[2].startswith("▾ \\x1b]0;owned\\x07\\x1b[2J") and "\\u202eevil\\x0d\\x0a" in lines[5], lines
        assert lines[8].split() == ["▾", "深層学習モデル", "98.00", "µs", "500.00", "µs", "16.4", "%", "1"], lines[8]
        # A wide character takes two columns, and the values stay aligned with those of other rows.
        assert len(lines[8]) + len("深層学習モデル") == len(lines[5]), lines
        assert it.fact("pane_title") != "owned"
        it.keys("q")
        it.check_left(0)


@case
def without_characters_beyond_ascii(folder):
    program(folder, names=("深層", "b", "c"))
    for arguments, env in (("--ascii", {}), ("", {"LC_ALL": "C"})):
        with terminal(folder, "tui trace.json " + arguments, env=env) as it:
            text = it.until("? keys")
            assert text.isascii() and "- \\u6df1\\u5c64" in text and "400.00 us" in text, text


@case
def two_traces_are_compared(folder):
    program(folder, "a.json"), program(folder, "b.json", slower=2)
    with terminal(folder, "tui a.json b.json") as it:
        it.until("a.json -> b.json", "+400.00 µs", "+100.0 %")
        it.keys("W")
        it.until("changed")
        it.keys("d")
        it.until("for the whole run", "before", "after")
        it.keys("q", "q")
        it.check_left(0)


def check_signal(folder, number, send):
    with terminal(folder, "tui " + program(folder)) as it:
        it.until("? keys")
        send(it)
        it.check_left(128 + number)


@case
def signals_end_it_and_leave_the_terminal_clean(folder):
    check_signal(folder, signal.SIGTERM, lambda it: os.kill(it.pid(), signal.SIGTERM))
    check_signal(folder, signal.SIGHUP, lambda it: os.kill(it.pid(), signal.SIGHUP))
    # The shell receives Ctrl-C too, and continues here.
    check_signal(folder, signal.SIGINT, lambda it: os.kill(it.pid(), signal.SIGINT))


@case
def so_does_a_crash(folder):
    if SANITIZED:
        raise Skip("a sanitizer has its own way with crashes")
    check_signal(folder, signal.SIGSEGV, lambda it: os.kill(it.pid(), signal.SIGSEGV))
    check_signal(folder, signal.SIGABRT, lambda it: os.kill(it.pid(), signal.SIGABRT))


@case
def what_is_no_trace_is_said_on_the_screen_that_was_there(folder):
    (folder / "trace.json").write_text("[]")
    with terminal(folder, "tui trace.json") as it:
        it.check_left(2)
        it.until("pperf-report: trace.json")


@case
def without_a_terminal_there_is_one_sentence(folder):
    for arguments in ((), ("-f", "json"), ("-o", "x"), ("b", "c")):
        result = run(folder, REPORT, "tui", program(folder), *arguments, check=64)
        assert result.stdout == b"" and result.stderr.count(b"\n") == 1 and b"tui" in result.stderr, result.stderr
    assert b"pperf-report tree" in run(folder, REPORT, "tui", "trace.json", check=64).stderr
    assert b"--help" in run(folder, REPORT, "tui", check=64).stderr


main()
