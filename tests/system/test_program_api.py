#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python module pperf and pperf.h: programs that report ranges, marks and metrics to pperf
itself, with and without the library, in every CPython found here."""
import json, os, re, shutil, subprocess, sys, textwrap, time
from harness import *
from python_versions import interpreters

MODULE = ROOT / "preload" / "user" / "pperf.py"
PYTHONS = [path for _, _, path in interpreters()]
NEWEST = PYTHONS[-1]

# The two snippets of the article that pperf was founded on, as they are there. What they call is
# made up around them: the memory of a SLAM system whose GRU reserves 0.4048 GB at each step of a
# loop closure.
SNIPPETS = '''
@register_metric("Memory Reserved", "GB")
def memory_reserved():
    return float(torch.cuda.memory_reserved() * 1e-9)


def close_loop(n_keyframes):
    with pperf.trace(f"loop closure - kf: {n_keyframes}"):
        droid_steps(2)
'''
AROUND = '''
import pperf
from pperf import register_metric


class torch:
    class cuda:
        reserved = 7_970_000_000

        @staticmethod
        def memory_reserved():
            return torch.cuda.reserved


def gru(grows):
    with pperf.trace("gru"):
        with pperf.trace("gates"):
            with pperf.trace("q-gate"):
                torch.cuda.reserved += 404_761_905 * grows


def droid_steps(count, grows=True):
    for step in range(count):
        with pperf.trace(f"droid - step: {step}"):
            gru(grows)
''' + SNIPPETS + '''
for kf in range(60, 73):
    with pperf.trace("slam"):
        with pperf.trace(f"track - kf: {kf}"):
            with pperf.trace("motion filter"):
                pass
            if kf == 71:
                close_loop(kf)
            else:
                droid_steps(1, False)
print("done", pperf.enabled())
'''
FOUNDING_TREE = """\
slam ──────────────────────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 ∆)
  └── track - kf: 71 ──────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 ∆)
      └── loop closure - kf: 71 ───────────────────│ 7.97 GB → 8.78 GB (0.8095 ∆)
          ├── droid - step: 1 ─────────────────────│ 8.37 GB → 8.78 GB (0.4048 ∆)
          │   └── gru ─────────────────────────────│ 8.37 GB → 8.78 GB (0.4048 ∆)
          │       └── gates ───────────────────────│ 8.37 GB → 8.78 GB (0.4048 ∆)
          │           └── q-gate ──────────────────│ 8.37 GB → 8.78 GB (0.4048 ∆)
          └── droid - step: 0 ─────────────────────│ 7.97 GB → 8.37 GB (0.4048 ∆)
              └── gru ─────────────────────────────│ 7.97 GB → 8.37 GB (0.4048 ∆)
                  └── gates ───────────────────────│ 7.97 GB → 8.37 GB (0.4048 ∆)
                      └── q-gate ──────────────────│ 7.97 GB → 8.37 GB (0.4048 ∆)
"""


def script(folder, text, name="program.py"):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def under(folder, python, text, check=0, env=None, **options):
    """Runs Python code under the library and returns its output and the records of its trace."""
    result = traced(folder, python, script(folder, text), check=check, env={"PYTHONDONTWRITEBYTECODE": "1", **(env or {})}, **options)
    path = folder / "trace.bin"
    records = dump(path) if path.exists() else []
    return result, records


def without(folder, python, text, check=0):
    """Runs it without the library, beside an installed pperf.py."""
    modules = folder / "modules"
    modules.mkdir(exist_ok=True)
    shutil.copy(MODULE, modules)
    return run(folder, python, script(folder, text), env={"PYTHONPATH": str(modules), "PYTHONDONTWRITEBYTECODE": "1"}, check=check)


def everywhere(function):
    """Runs the case that was registered last in each interpreter, in a folder of its own."""
    def in_each(folder):
        assert PYTHONS, "no CPython from 3.9 to 3.15 was found"
        for number, python in enumerate(PYTHONS):
            own = folder / str(number)
            own.mkdir()
            try:
                function(own, python)
            except AssertionError as error:
                raise AssertionError("%s: %s" % (python, error)) from error
    in_each.__name__ = function.__name__
    cases[-1] = in_each
    return in_each


def opened(records):
    """{name of each recorded range: the name of the range that it was opened in, or None}"""
    found, stacks = {}, {}
    for record in records:
        stack = stacks.setdefault(record.get("tid", 0), [])
        if record["kind"] == "push":
            found[record["name"]] = stack[-1] if stack else None
            stack.append(record["name"])
        elif record["kind"] in ("pop", "pop_at"):
            if record["name"] in stack:
                stack.remove(record["name"])
    return found


def values(records, name):
    return [record.get("value") for record in records if record["kind"] == "metric" and record["name"] == name]


def warnings(folder):
    return {key: value for key, value in info(folder / "trace.bin")["rows"][0]["meta"].items() if key.startswith("warning.")}


# ---- the founding article ----


@everywhere
@case
def the_snippets_of_the_article_run_as_they_are_and_give_its_tree(folder, python):
    plain = without(folder, python, AROUND)
    assert plain.stdout == b"done False\n" and not plain.stderr, plain
    result, _ = under(folder, python, AROUND)
    assert result.stdout == b"done True\n" and not result.stderr, result
    shown = report("critical", folder / "trace.bin", "-m", "Memory Reserved").stdout.decode()
    assert shown == FOUNDING_TREE, shown


@case
def a_metric_of_the_program_is_a_level_in_every_view(folder):
    under(folder, NEWEST, AROUND)
    trace = folder / "trace.bin"
    json_of = lambda *arguments: json.loads(report(*arguments, "-f", "json").stdout)["rows"]
    for view in ("tree", "table"):
        rows = {row["name"]: row["worst"] for row in json_of(view, trace, "-m", "Memory Reserved", "--min-percent", "0")}
        row = rows["loop closure - kf: *"]
        assert abs(row["before"] - 7.97) < 1e-9 and abs(row["delta"] - 0.80952381) < 1e-8, (view, row)
        assert abs(rows["motion filter"]["delta"]) < 1e-12, rows
    steps = [row for row in json_of("steps", trace, "-m", "Memory Reserved", "--step-marker", "slam") if row["kind"] == "step"]
    ends = [round(row["counter_end"], 4) for row in steps]
    assert ends == [7.97] * 11 + [8.7795] * 2, ends
    assert [round(row["counter_peak"], 4) for row in steps] == ends, steps
    compared = report("diff", trace, trace, "-m", "Memory Reserved").stdout.decode()
    assert "Memory Reserved" in compared, compared
    first = report(trace).stdout.decode()
    assert "metrics   `Memory Reserved` (GB)" in first, first


@case
def the_first_screen_names_the_metrics_and_what_slow_callbacks_cost(folder):
    under(folder, NEWEST, '''
        import pperf, time
        pperf.register_metric("Slow", "items", lambda: time.sleep(0.003) or 1)
        pperf.register_metric("Quick", "", lambda: 2)
        for _ in range(4):
            with pperf.trace("step"):
                pass
    ''')
    words = " ".join(report(folder / "trace.bin").stdout.decode().split())
    assert "metrics `Slow` (items), `Quick`, levels of the program" in words, words
    assert re.search(r"the callback of the metric `Slow` takes \d+\.\d+ ms each time", words) and "in 8 calls" in words, words
    assert "`Quick` takes" not in words, words


# ---- callbacks ----


@everywhere
@case
def hostile_callbacks_do_not_disturb_the_program(folder, python):
    text = '''
        import pperf, sys

        calls = {}

        def count(name):
            calls[name] = calls.get(name, 0) + 1

        class Unprintable(Exception):
            def __str__(self):
                raise ValueError("no text")

        @pperf.register_metric("Raises", "x")
        def raises():
            count("raises")
            raise RuntimeError("no queue: %d" % calls["raises"])

        @pperf.register_metric("Unprintable")
        def unprintable():
            raise Unprintable()

        pperf.register_metric("NaN", "", lambda: float("nan"))
        pperf.register_metric("Infinite", "", lambda: float("inf"))
        pperf.register_metric("Text", "", lambda: "seven")
        pperf.register_metric("None", "", lambda: None)

        @pperf.register_metric("Recurses")
        def recurses():
            count("recurses")
            with pperf.trace("in the callback"):
                return 5

        pperf.register_metric("Twice", "a", lambda: 1)
        pperf.register_metric("Twice", "a", lambda: 2)
        pperf.register_metric("Late", "", lambda: 3, every=None)
        for step in range(5):
            with pperf.trace("step %d" % step):
                pass
        print(calls.get("raises", 0), calls.get("recurses", 0))
        try:
            with pperf.trace("body"):
                raise KeyError("the program's own")
        except KeyError as error:
            print(repr(error), error.__context__)
        try:
            pperf.register_metric("Wrong", every="sometimes")
        except ValueError as error:
            print(error)
    '''
    plain = without(folder, python, text)
    result, records = under(folder, python, text)
    assert plain.stdout.splitlines()[0] == b"0 0", plain
    assert result.stdout.splitlines()[0] == b"3 10", result
    assert result.stdout.splitlines()[1:] == plain.stdout.splitlines()[1:], (result, plain)
    assert not result.stderr and not plain.stderr, (result, plain)
    assert values(records, "Twice")[:10] == [2] * 10, values(records, "Twice")
    assert values(records, "Recurses")[:10] == [5] * 10, values(records, "Recurses")
    assert not values(records, "Late"), values(records, "Late")
    for name in ("NaN", "Infinite", "Text", "None", "Raises", "Unprintable"):
        found = values(records, name)
        assert found and not any(isinstance(value, (int, float)) for value in found), (name, found)
    said = warnings(folder)
    assert said["warning.metric.Raises"] == ("the callback of the metric `Raises` raised 3 times and is not called any more; "
                                             "the last time: RuntimeError: no queue: 3"), said
    assert "Unprintable" in said["warning.metric.Unprintable"], said
    assert "seven" in said["warning.metric.Text"], said
    assert len([r for r in records if r["kind"] == "push" and r["name"] == "in the callback"]) == 12, "a callback's own range calls no callbacks"


@everywhere
@case
def an_interrupt_in_a_callback_is_the_programs(folder, python):
    """KeyboardInterrupt and SystemExit leave the `with` statement, and the range is closed."""
    result, records = under(folder, python, '''
        import pperf

        interrupt = None

        @pperf.register_metric("Level")
        def level():
            if interrupt:
                raise interrupt
            return 1
        try:
            with pperf.trace("interrupted"):
                interrupt = KeyboardInterrupt
        except KeyboardInterrupt:
            print("interrupted")
        interrupt = None
        with pperf.trace("after"):
            interrupt = SystemExit(7)
    ''', check=7)
    assert result.stdout == b"interrupted\n" and not result.stderr, result
    assert opened(records) == {"interrupted": None, "after": None}, opened(records)
    assert not [r for r in records if r["kind"] == "left_open"], records


@case
def metrics_are_sampled_in_the_background_and_at_steps(folder):
    _, records = under(folder, NEWEST, '''
        import pperf, sys, threading, time, types

        pperf.register_metric("Background", "s", time.monotonic, every=0.01)
        pperf.register_metric("Steps", "", lambda: 4, every="step")
        optimizer = types.ModuleType("torch.optim.optimizer")  # imported after that
        hooks = []
        optimizer.register_optimizer_step_post_hook = hooks.append
        sys.modules["torch.optim.optimizer"] = optimizer
        for _ in range(3):
            with pperf.trace("step"):
                time.sleep(0.05)
            (hook,) = hooks
            hook(None, (), {})
        assert threading.active_count() == 1, threading.enumerate()
        metric = pperf.register_metric("Pushed", "m")
        for value in (1, 2.5, True, "x", None, 10 ** 400):
            metric.push(value)
    ''')
    background = values(records, "Background")
    assert 4 <= len(background) <= 40 and background == sorted(background), background
    assert values(records, "Steps") == [4, 4, 4], values(records, "Steps")
    assert [value for value in values(records, "Pushed") if isinstance(value, (int, float))] == [1, 2.5, 1], values(records, "Pushed")
    assert len(values(records, "Pushed")) == 6, values(records, "Pushed")


# ---- ranges ----


@everywhere
@case
def labels_of_any_kind_are_recorded(folder, python):
    text = '''
        import pperf

        class Label:
            def __str__(self):
                return "an object"

        for label in ("a\\0b", "\\udc80", b"\\xff\\xfe", "", 12, None, Label(), "é€\\U0001f600", "x" * 70000, "\\x1b[31m", "new\\nline"):
            with pperf.trace(label):
                pass
            pperf.mark(label)

            @pperf.trace(label)
            def function():
                return 1
            assert function() == 1
        pperf.register_metric("m\\0\\udc80", b"\\xff", lambda: 1)
        with pperf.trace("last"):
            pass
    '''
    assert not without(folder, python, text).stderr
    result, records = under(folder, python, text)
    assert not result.stderr, result
    wanted = ["a\\x00b", "\\udc80", "\\xff\\xfe", "", "12", "None", "an object", "é€\U0001f600"]
    for kind in ("push", "mark"):
        found = [record["name"] for record in records if record["kind"] == kind]
        assert [name for name in wanted if name not in found] == [], (kind, [name[:40] for name in found])
        assert any(name.startswith("xxx") and name.endswith("...[cut]") for name in found), kind
    assert [r["unit"] for r in records if r["kind"] == "metric"] == ["\\xff"] * 2, records
    shown = report("tree", folder / "trace.bin").stdout
    assert b"\x1b" not in shown, shown


@everywhere
@case
def interleaved_tasks_do_not_mix_their_ranges(folder, python):
    """A body that is suspended is a range that may overlap others. All else is on the stack of the
    thread, and no task's range is in another task's."""
    result, records = under(folder, python, '''
        import asyncio, contextlib, pperf

        async def request(number):
            with pperf.trace("request %d" % number):
                with pperf.trace("parse %d" % number):
                    sum(range(100))
                await asyncio.sleep(0.001)
                with pperf.trace("compute %d" % number):
                    try:
                        int("x")
                    except ValueError:
                        work(number)
                await asyncio.sleep(0.001)

        def work(number):
            with pperf.trace("work %d" % number):
                pass

        @pperf.trace("decorated")
        async def decorated(number):
            work(10 + number)
            await asyncio.sleep(0.001)
            work(20 + number)
            return number

        @contextlib.contextmanager
        def helper(label):
            with pperf.trace(label):
                yield

        async def with_helper():
            with helper("helper in a task"):
                await asyncio.sleep(0.001)

        async def main():
            found = await asyncio.gather(*(request(n) for n in range(8)), *(decorated(n) for n in range(8)), with_helper())
            assert found == [None] * 8 + list(range(8)) + [None], found

        asyncio.run(main())
        with helper("helper"):
            work(99)
    ''')
    assert not result.stderr, result
    parents = opened(records)
    started = [record["name"] for record in records if record["kind"] == "start"]
    assert sorted(started) == sorted(["request %d" % n for n in range(8)] + ["decorated"] * 8 + ["helper in a task"]), started
    assert len([record for record in records if record["kind"] == "end"]) == len(started)
    for n in range(8):
        assert parents["parse %d" % n] is None and parents["compute %d" % n] is None, parents
        assert parents["work %d" % n] == "compute %d" % n, parents
        assert parents["work %d" % (10 + n)] == parents["work %d" % (20 + n)] == "decorated", parents
    assert parents["work 99"] == "helper" and parents["helper"] is None, parents


@everywhere
@case
def decorated_functions_of_every_kind_behave_as_before(folder, python):
    text = '''
        import asyncio, inspect, pperf

        @pperf.trace("function")
        def function(a, b=2, *, c=3):
            """doc"""
            return a + b + c

        @pperf.trace("generator")
        def generator():
            try:
                got = yield 1
                yield got
            except KeyError as error:
                yield repr(error)
            finally:
                closed.append("generator")
            return 9

        @pperf.trace("coroutine")
        async def coroutine(fails):
            await asyncio.sleep(0)
            if fails:
                raise OSError("from the coroutine")
            return 4

        @pperf.trace("async generator")
        async def async_generator():
            try:
                for i in range(3):
                    try:
                        got = yield i
                        if got:
                            yield got
                    except KeyError:
                        yield "caught"
                    await asyncio.sleep(0)
            finally:
                closed.append("async generator")

        class Class:
            @pperf.trace("method")
            def method(self):
                return self

            @staticmethod
            @pperf.trace("static")
            def static():
                return 8

        closed = []
        assert function(1) == 6 and function(1, c=0) == 3 and function.__doc__ == "doc"
        assert str(inspect.signature(function)) == "(a, b=2, *, c=3)"
        assert inspect.isgeneratorfunction(generator) and inspect.iscoroutinefunction(coroutine)
        assert inspect.isasyncgenfunction(async_generator)
        g = generator()
        assert next(g) == 1 and g.send("sent") == "sent" and g.throw(KeyError("x")) == "KeyError('x')"
        g.close()
        assert closed.pop() == "generator"

        def delegates():
            return (yield from generator())
        d = delegates()
        assert list(d) == [1, None]

        async def main():
            assert await coroutine(False) == 4
            try:
                await coroutine(True)
            except OSError as error:
                assert str(error) == "from the coroutine" and error.__context__ is None
            task = asyncio.ensure_future(coroutine(False))
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                pass
            assert [i async for i in async_generator()] == [0, 1, 2]
            a = async_generator()
            assert await a.__anext__() == 0 and await a.asend("sent") == "sent"
            assert await a.__anext__() == 1 and await a.athrow(KeyError()) == "caught"
            await a.aclose()
        closed.clear()
        asyncio.run(main())
        assert closed == ["async generator"] * 2, closed
        c = Class()
        assert c.method() is c and Class.static() == 8
        with pperf.trace("outer") as outer:
            with outer:
                pass
        print("all right")
    '''
    plain = without(folder, python, text)
    assert plain.stdout == b"all right\n" and not plain.stderr, plain
    result, records = under(folder, python, text)
    assert result.stdout == b"all right\n" and not result.stderr, result
    pushed = [record["name"] for record in records if record["kind"] == "push"]
    assert {"function", "generator", "coroutine", "async generator", "method", "static"} <= set(pushed), pushed
    assert pushed.count("function") == 2 and pushed.count("outer") == 2, pushed
    assert not [r for r in records if r["kind"] == "left_open"], records
    assert len([r for r in records if r["kind"] == "start"]) == len([r for r in records if r["kind"] == "end"]), "each range ends"


@everywhere
@case
def threads_have_their_own_ranges(folder, python):
    _, records = under(folder, python, '''
        import pperf, threading
        value = [0]
        pperf.register_metric("Shared", "", lambda: value[0])

        def run(number):
            for i in range(50):
                with pperf.trace("thread %d" % number):
                    value[0] += 1
                    with pperf.trace("inner %d" % number):
                        pass
        threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    ''')
    parents = opened(records)
    assert parents == {**{"thread %d" % n: None for n in range(6)}, **{"inner %d" % n: "thread %d" % n for n in range(6)}}, parents
    assert len(values(records, "Shared")) == 6 * 50 * 4, len(values(records, "Shared"))


@case
def a_count_becomes_a_rate(folder):
    _, records = under(folder, NEWEST, '''
        import pperf, time
        for _ in range(3):
            with pperf.trace("batch", count=0, unit="images") as t:
                time.sleep(0.01)
                t.count += 640
    ''')
    rates = values(records, "images/s")
    assert len(rates) == 3 and all(1000 < rate <= 64000 for rate in rates), rates
    assert [r["unit"] for r in records if r["kind"] == "metric"] == ["images/s"] * 3


# ---- a guest in the program ----

STATE = '''
import sys
before = set(sys.modules)
import gc, os, threading, warnings
print(sorted(before))
print(sys.path, sys.builtin_module_names, sorted(sys.path_importer_cache), [type(f) if not isinstance(f, type) else f for f in sys.meta_path][:3])
print(sys.gettrace(), sys.getprofile(), threading.active_count(), gc.get_threshold(), gc.isenabled(), warnings.filters)
print(sorted(k for k in os.environ if k not in ("LD_PRELOAD", "NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "PPERF_RUN")))
try:
    import no_such_module_of_anybody
except ImportError as error:
    print(repr(error), error.__traceback__.tb_next)
'''


@everywhere
@case
def a_program_that_does_not_import_pperf_sees_one_finder_more(folder, python):
    path = script(folder, STATE)
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    plain = run(folder, python, path, env=env, check=0)
    result = traced(folder, python, path, env=env)
    assert result.stdout == plain.stdout and result.stderr == plain.stderr, (result.stdout[-900:], plain.stdout[-900:])
    finders = "import sys; print(len(sys.meta_path), type(sys.meta_path[-1]).__name__)"
    count = int(run(folder, python, "-c", finders, check=0).stdout.split()[0])
    assert traced(folder, python, "-c", finders).stdout == b"%d finder\n" % (count + 1)
    for disabled in ("PPERF_PYTHON", "PPERF_DISABLE"):
        value = "0" if disabled == "PPERF_PYTHON" else "1"
        assert traced(folder, python, "-c", finders, env={disabled: value}).stdout.split()[0] == b"%d" % count, disabled
        missing = traced(folder, python, "-c", "import pperf", env={disabled: value}, check=1)
        assert b"No module named 'pperf'" in missing.stderr, missing
    assert not traces(folder), traces(folder)


@everywhere
@case
def an_installed_module_goes_first(folder, python):
    """Also if it is pperf's own: it finds the library all the same."""
    own = script(folder, "whose = 'of the program'\n", "pperf.py")
    result = traced(folder, python, script(folder, "import pperf; print(pperf.whose)"))
    assert result.stdout == b"of the program\n", result
    shutil.copy(MODULE, own)
    result, records = under(folder, python, '''
        import pperf
        assert pperf.__file__.endswith("pperf.py"), pperf
        with pperf.trace("recorded"):
            pass
        print(pperf.enabled())
    ''')
    assert result.stdout == b"True\n" and [r["name"] for r in records if r["kind"] == "push"] == ["recorded"], result


@case
def a_module_of_another_interpreter_and_of_importlib_is_the_same(folder):
    result, _ = under(folder, NEWEST, '''
        import importlib, importlib.util, pickle, sys
        spec = importlib.util.find_spec("pperf")
        assert spec and spec.name == "pperf" and "pperf" not in sys.modules
        pperf = importlib.import_module("pperf")
        assert pperf is sys.modules["pperf"] and pperf.__doc__
        assert importlib.reload(pperf) is pperf
        assert pickle.loads(pickle.dumps(pperf.load)) is pperf.load
        with pperf.trace("x"):
            pass
        print("same", pperf.enabled())
    ''')
    assert result.stdout == b"same True\n", result


@case
def a_schedule_takes_ranges_of_the_program_for_steps(folder):
    result, records = under(folder, NEWEST, '''
        import pperf
        for step in range(10):
            with pperf.trace("step %d" % step):
                with pperf.trace("inside"):
                    print(int(pperf.enabled()), end="")
    ''', env={"PPERF_SCHEDULE": "wait:2,warmup:1,active:2,repeat:1", "PPERF_STEP_MARKER": "step"})
    assert result.stdout == b"0011100000", result
    assert [r["name"] for r in records if r["kind"] == "push" and r["name"] != "inside"] == ["step 2", "step 3", "step 4"], records


@case
def a_forked_child_keeps_its_metrics(folder):
    traced(folder, NEWEST, script(folder, '''
        import os, pperf
        pperf.register_metric("Level", "MB", lambda: 3)
        with pperf.trace("parent"):
            pass
        pid = os.fork()
        if not pid:
            with pperf.trace("child"):
                pass
            os._exit(0)
        os.waitpid(pid, 0)
    '''), env={"PPERF_CHILDREN": "all"})
    found = {path.name == "trace.bin": dump(path) for path in traces(folder)}
    assert len(found) == 2, traces(folder)
    assert values(found[False], "Level") == [3, 3] and [r["name"] for r in found[False] if r["kind"] == "push"] == ["child"], found[False]


# ---- reports as data ----


@case
def load_gives_views_as_plain_data(folder):
    under(folder, NEWEST, AROUND)
    result = run(folder, NEWEST, script(folder, '''
        import importlib.util, sys
        spec = importlib.util.spec_from_file_location("pperf", sys.argv[1])
        pperf = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(pperf)
        run = pperf.load(sys.argv[2])
        tree = run.tree(min_percent=0)
        assert type(tree["rows"]) is list and tree.rows[0]["name"] == "slam", tree.rows[0]
        critical = run.view("critical", metric="Memory Reserved")
        assert [row["label"] for row in critical.rows][:3] == ["slam", "track - kf: 71", "loop closure - kf: 71"], critical.rows
        assert run.distribution("gru").rows and run.critical_path() is not None
        assert not any(row["significant"] for row in run.diff(sys.argv[2])["rows"])
        assert any(key == "worst.delta" for key in run.tree(metric="Memory Reserved")._flat()[0])
        for name in ("pandas", "polars"):
            if importlib.util.find_spec(name):
                frame = getattr(tree, "to_" + name)()
                assert len(frame) == len(tree.rows)
        for wrong in (lambda: run.tree(metric="nothing"), lambda: run.no_such_view(), lambda: pperf.load("/nonexistent")):
            try:
                wrong()
            except (RuntimeError, OSError) as error:
                print(error)
            else:
                raise SystemExit("no error")
    '''), MODULE, folder / "trace.bin", env={"PPERF_REPORT": str(REPORT)}, check=0)
    lines = result.stdout.decode().splitlines()
    assert "nothing" in lines[0] and "no_such_view" in lines[1].replace("-", "_") and "/nonexistent" in lines[2], lines


# ---- C and C++ ----


@case
def a_c_program_runs_with_and_without_the_library(folder):
    plain = run(folder, "user_metrics", check=0)
    assert plain.stdout == b"recorded 0\nerrno 1, callbacks 0\n", plain
    assert not traces(folder)
    result = traced(folder, "user_metrics")
    assert result.stdout == b"recorded 1\nerrno 1, callbacks 20\n", result
    records = dump(folder / "trace.bin")
    assert values(records, "Queue") == [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 7, 7, 7, 7, 11, 11], values(records, "Queue")
    assert [v for v in values(records, "Loss")] == [0, 0.5, 1, 1.5, 2], values(records, "Loss")
    assert not any(isinstance(v, (int, float)) for v in values(records, "Nothing")), values(records, "Nothing")
    assert len(values(records, "Shared")) == 400
    parents = opened(records)
    assert parents["track"].startswith("frame - kf: ") and parents["frame - kf: 0"] is None and parents["thread 3"] is None, parents
    assert [r["name"] for r in records if r["kind"] in ("start", "mark")] == ["request", "half"]
    assert traced(folder, "user_metrics", env={"PPERF_DISABLE": "1"}).stdout == plain.stdout
    shown = report("critical", folder / "trace.bin", "-m", "Queue").stdout.decode()
    assert shown.startswith("frame - kf: 4 ") and "7.00 frames → 11.00 frames (4.0000 ∆)" in shown, shown


@case
def a_cpp_program_closes_ranges_by_scope(folder):
    assert run(folder, "user_metrics_cpp", check=0).stdout == b"recorded 0\n"
    assert traced(folder, "user_metrics_cpp").stdout == b"recorded 1\n"
    records = dump(folder / "trace.bin")
    parents = opened(records)
    assert parents["batch"].startswith("epoch - n: ") and parents["fails"] == "batch", parents
    assert not [r for r in records if r["kind"] == "left_open"], records
    rates = values(records, "images/s")
    assert len(rates) == 3 and all(rate > 0 for rate in rates), rates
    assert values(records, "Level")[-1] == 8, values(records, "Level")


@case
def the_header_compiles_without_a_warning(folder):
    both = '#include "pperf.h"\nint main(void) { pperf_range_push("x"); pperf_range_pop(); return pperf_enabled(); }\n'
    other = '#include "pperf.h"\nvoid other(void);\nvoid other(void) { pperf_mark("y"); }\n'
    strict = ["-I", str(MODULE.parent), "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-O1"]
    compilers = [("c", name, standard) for name in ("gcc", "clang") for standard in ("c11", "gnu17")]
    compilers += [("cc", name, standard) for name in ("g++", "clang++") for standard in ("c++11", "c++17", "c++20")]
    found = 0
    for extension, compiler, standard in compilers:
        if not shutil.which(compiler):
            continue
        found += 1
        for name, text in (("main", both), ("other", other)):
            (folder / (name + "." + extension)).write_text(text)
        output = folder / "program"
        result = run(folder, compiler, "-std=" + standard, *strict, "main." + extension, "other." + extension, "-o", output, "-ldl")
        assert result.returncode == 0, (compiler, standard, result.stderr.decode()[-800:])
        assert run(folder, output).returncode == 0 and (SANITIZED or traced(folder, output, check=None).returncode == 1), (compiler, standard)
    assert found, "no compiler"
    if shutil.which("gcc"):
        static = run(folder, "gcc", "-std=c11", "-static", "-I", str(MODULE.parent), "main.c", "-o", folder / "static")
        assert static.returncode or run(folder, folder / "static").returncode == 0, "a static program does nothing"


# ---- what calls cost ----

COSTS = '''
import pperf, sys, timeit

metric = pperf.register_metric("m", "")
names = {"pperf": pperf, "push": metric.push, "trace": pperf.trace, "mark": pperf.mark, "enabled": pperf.enabled}


def cost(statement, calls=20000):
    """Nanoseconds, of which an empty loop takes a part that is subtracted."""
    best = lambda text: min(timeit.repeat(text, globals=names, number=calls, repeat=15)) / calls * 1e9
    return best(statement) - best("pass")


print(*("%.1f" % cost(each) for each in ("trace('x')", "with trace('x'): pass", "push(1.5)", "mark('x')", "enabled()")))
'''


def costs_of(output):
    return dict(zip(("trace", "with", "push", "mark", "enabled"), map(float, output.split())))


@case
def calls_without_the_library_cost_next_to_nothing(folder):
    """The bound is loose, because the machine may be busy: `make bench-api` prints the figures."""
    if SANITIZED:
        raise Skip("a sanitizer takes time")
    figures = dict(line.split() for line in run(folder, "user_metrics", "200000", check=0).stdout.decode().splitlines())
    assert float(figures["range"]) < 60 and float(figures["metric"]) < 60, figures
    for python in PYTHONS:
        costs = costs_of(without(folder, python, COSTS).stdout)
        assert costs["trace"] < 200 and costs["with"] < 400 and costs["push"] < 200, (python, costs)


main()
