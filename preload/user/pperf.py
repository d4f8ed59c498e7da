# SPDX-License-Identifier: MIT
"""Ranges and metrics of a Python program, recorded by libpperf.so, and its reports as Python data.

    import pperf

    @pperf.register_metric("Memory Reserved", "GB")
    def memory_reserved():
        return torch.cuda.memory_reserved() * 1e-9

    with pperf.trace(f"loop closure - kf: {n}"):
        ...

Without libpperf.so every function does nothing, so the calls can stay in the program. CPython 3.8
and later.

libpperf.so embeds this file and makes it importable in the programs that it is loaded into
(python_module.c). The wheel installs the same file. These functions are written in C there:

    open(trace, label), close(trace)    a range that belongs to the object `trace`
    begin(label) -> number, end(number) a range that may overlap others and cross threads
    mark(label)
    metric(name, unit) -> number, push(number, float)
    cost(number, ns)                    a call of the metric's callback took `ns`
    warn(key, text)                     sets a warning of the trace
    recorded() -> 1 or 0

open, begin and mark return False if the label is no str, or has a NUL or a lone surrogate.
"""
import sys
from _thread import _local
from functools import partial
from itertools import repeat
from time import perf_counter_ns

__all__ = ["enabled", "load", "mark", "Metric", "parts", "places", "query", "ranks", "register_metric", "steps", "trace"]


def _library():
    """Returns the functions of libpperf.so as a dict, or None."""
    for finder in reversed(sys.meta_path):
        functions = getattr(type(finder), "pperf_functions", None)
        if functions:
            return functions(finder)
    return None


_functions = _library()

# ---- texts ----


def _text(label):
    """Returns any label as a str that can be recorded: bytes are decoded as UTF-8, NULs and what
    is no valid text are written as escapes."""
    if isinstance(label, (bytes, bytearray)):
        label = bytes(label).decode("utf-8", "backslashreplace")
    elif type(label) is not str:
        label = str(label)
    return label.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


# ---- metrics ----

TRACE, STEP = "trace", "step"
FAILURES_MAX = 3  # a callback that raised this often is not called again

_metrics = {}  # name -> Metric
_at_traces = ()  # metrics whose callbacks are called at the begin and the end of each trace
_at_steps = ()  # the same, at the end of each optimizer step
_thread = _local()  # sampling: True while this thread calls callbacks


def _number(value):
    """Returns a float; NaN if `value` is no number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


class Metric:
    """A metric of the program: a level that keeps its value until the next one."""

    def __init__(self, name, unit, every):
        self.name, self.unit, self.every = name, unit, every
        self.callback, self.failures = None, 0
        self._number = _functions["metric"](name, unit) if _functions else 0

    def __call__(self, callback):
        """Makes a function without arguments the metric's callback, and returns it."""
        self.callback, self.failures = callback, 0
        if _functions:
            _register(self)
        return callback

    def __repr__(self):
        return "<pperf.Metric %r, %r>" % (self.name, self.unit)

    if _functions:
        def push(self, value):
            """Records a value. NaN, infinity and what is no number: it has no value now."""
            _push(self._number, value if type(value) is float else _number(value))
    else:
        def push(self, value):
            """Records a value. NaN, infinity and what is no number: it has no value now."""

    def _sample(self):
        """Calls the callback and records what it returns."""
        begin = perf_counter_ns()
        try:
            value = float(self.callback())
        except Exception as error:
            self._failed(error)
            value = float("nan")
        _functions["cost"](self._number, perf_counter_ns() - begin)
        _push(self._number, value)

    def _failed(self, error):
        self.failures += 1
        try:
            text = "%s: %s" % (type(error).__name__, error)
        except Exception:
            text = type(error).__name__
        text = _text(text[:300])
        if self.failures < FAILURES_MAX:
            text = "raised %s%s" % (text, " (%d times)" % self.failures if self.failures > 1 else "")
        else:
            text = "raised %d times and is not called any more; the last time: %s" % (self.failures, text)
            _register(self, False)
        _functions["warn"]("metric." + self.name[:100], "the callback of the metric `%s` %s" % (self.name, text))


def register_metric(name, unit="", fn=None, every=TRACE):
    """Registers a metric and returns it. Its callback is a function without arguments that returns
    a number: `fn`, or the function that the returned Metric decorates.

    `every`: when the callback is called. "trace": at the begin and the end of each trace. "step":
    at the end of each step of a torch.optim.Optimizer. A number: after so many seconds, on a
    thread. None: never; use push(). A metric with the name of an earlier one replaces it.
    """
    if every not in (TRACE, STEP, None) and not (isinstance(every, (int, float)) and every > 0):
        raise ValueError('every: "trace", "step", a number of seconds or None, not %r' % (every,))
    metric = Metric(_text(name), _text(unit), every)
    if _functions:
        earlier = _metrics.get(metric.name)
        if earlier:
            _register(earlier, False)
        _metrics[metric.name] = metric
    if fn:
        metric(fn)
    return metric


def _register(metric, add=True):
    """Adds a metric to those whose callbacks are called, or removes it."""
    global _at_traces, _at_steps
    _at_traces = tuple(each for each in _at_traces if each is not metric)
    _at_steps = tuple(each for each in _at_steps if each is not metric)
    if not add:
        metric.callback = None
    elif metric.every == TRACE:
        _at_traces += (metric,)
    elif metric.every == STEP:
        _at_steps += (metric,)
        _follow_steps()
    elif metric.every:
        _sample_in_background(metric)


def _sample(metrics):
    """Samples metrics, unless recording is paused, or this thread is in a callback: what a callback
    traces itself is recorded without metrics."""
    if getattr(_thread, "sampling", False) or not _functions["recorded"]():
        return
    _thread.sampling = True
    try:
        for metric in metrics:
            if metric.callback:
                metric._sample()
    finally:
        _thread.sampling = False


def _sample_in_background(metric):
    """Starts a thread that samples the metric until its callback is replaced or removed. It is not
    registered with the module threading, and ends with the process."""
    from _thread import start_new_thread
    from time import sleep
    callback = metric.callback

    def run():
        while metric.callback is callback:
            _sample((metric,))
            sleep(metric.every)
    try:
        start_new_thread(run, ())
    except RuntimeError:  # no more threads, or Python is shutting down
        _functions["warn"]("metric." + metric.name[:100], "no thread could be started for the metric `%s`" % metric.name)


_follows_steps = False  # the hook is registered
_awaits_torch = False  # it will be, at the first trace after the import of PyTorch


def _follow_steps():
    """Samples at the end of each optimizer step, as soon as PyTorch is imported (2.0 or later)."""
    global _follows_steps, _awaits_torch
    optimizer = None if _follows_steps else sys.modules.get("torch.optim.optimizer")
    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if register:
        _follows_steps = True
        register(lambda *_: _sample(_at_steps))
    _awaits_torch = not _follows_steps


# ---- ranges ----

GENERATOR, COROUTINE, ITERABLE_COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200
_SUSPENDS = GENERATOR | COROUTINE | ITERABLE_COROUTINE | ASYNC_GENERATOR
_analysed = {}  # (id of a code object, offset) -> (the code object, whether the body may suspend)


def _body(code, offset):
    """Yields the instructions in the body of the `with` statement whose __enter__ is called at
    `offset` of the code. Yields None if there is no such statement."""
    import dis
    instructions = list(dis.get_instructions(code))
    at = [each.offset for each in instructions].index(offset)
    entered = instructions[at]
    if entered.opname == "SETUP_WITH":  # up to Python 3.10
        yield from (each for each in instructions if offset < each.offset < entered.argval)
        return
    special = any(each.opname == "LOAD_SPECIAL" for each in instructions[max(0, at - 6):at])  # from 3.14 on
    if entered.opname != "BEFORE_WITH" and not special:
        yield None
        return
    # The body are the instructions of the same handler, and of the handlers inside of it.
    handlers = dis._parse_exception_table(code)
    first = instructions[at + 1].offset
    targets = {each.target for each in handlers if each.start <= first < each.end}
    if not targets:
        yield None
    found = -1
    while found != len(targets):
        found = len(targets)
        ranges = [(each.start, each.end) for each in handlers if each.target in targets]
        targets |= {each.target for each in handlers if any(start <= each.target < end for start, end in ranges)}
    yield from (each for each in instructions if any(start <= each.offset < end for start, end in ranges))


def _suspends(frame):
    """Whether the frame of a generator or coroutine may be suspended in the body of the `with`
    statement that is being entered. If that is unknown: True."""
    code, offset = frame.f_code, frame.f_lasti
    known = _analysed.get((id(code), offset))
    if known:
        return known[1]
    try:
        answer = any(each is None or each.opname in ("YIELD_VALUE", "YIELD_FROM") for each in _body(code, offset))
    except Exception:
        answer = True
    if len(_analysed) > 4096:
        _analysed.clear()
    _analysed[id(code), offset] = code, answer
    return answer


def _is_interleaved(frame):
    """Whether other code of this thread may run between the begin and the end of a `with` statement
    in this frame: its frame, or one for which contextlib enters, may be suspended in between."""
    while frame:
        code = frame.f_code
        if code.co_filename == _contextlib:
            frame = frame.f_back
            continue
        if not code.co_flags & _SUSPENDS:
            return False
        if not _suspends(frame):
            return False
        back = frame.f_back
        # A generator of contextlib.contextmanager is suspended while the body of another `with` runs.
        if code.co_flags & _SUSPENDS != GENERATOR or not back or back.f_code.co_filename != _contextlib:
            return True
        frame = back
    return False


class _Trace:
    """trace(label, count=None, unit=None): records a range, as a context manager or a decorator.

    A `with` statement in which a coroutine or generator may be suspended becomes a range that may
    overlap others: it has a wall time and levels, but owns no GPU work. Every other range is a node
    of the tree.

    A decorated coroutine or generator function has both: a range for each piece that runs, in the
    tree, and one range from its call to its end, which may overlap others.

    `count`: the number of elements that are handled in the range, which may be changed in it by the
    attribute `count`. `unit`: what they are. The metric UNIT/s is then set to elements per second.
    """
    __slots__ = ("label", "count", "unit", "_numbers", "_begin")

    def __init__(self, label, count=None, unit=None):
        self.label = label
        self.count = count
        self.unit = unit
        self._numbers = None

    def __enter__(self):
        if _awaits_torch:
            _follow_steps()
        if _at_traces:
            _sample(_at_traces)
        if self.unit is not None or self.count is not None:
            self._begin = perf_counter_ns()
        frame = _getframe(1)
        code = frame.f_code
        if (code.co_flags & _SUSPENDS or code.co_filename == _contextlib) and _is_interleaved(frame):
            number = _begin(self.label)
            if number is False:
                number = _begin(_text(self.label))
            self._numbers = number, self._numbers
        elif _open(self, self.label) is False:
            self.label = _text(self.label)
            _open(self, self.label)
        return self

    def __exit__(self, kind, error, traceback):
        try:
            if self.count is not None or self.unit is not None:
                self._push_rate()
            if _at_traces:
                _sample(_at_traces)
        finally:
            if self._numbers is None:
                _close(self)
            else:
                number, self._numbers = self._numbers
                _end(number)

    def _push_rate(self):
        seconds = (perf_counter_ns() - self._begin) * 1e-9
        name = "%s/s" % ("elements" if self.unit is None else _text(self.unit))
        if seconds > 0:
            _push(_functions["metric"](name, name), _number(self.count or 0) / seconds)

    def __call__(self, function):
        return _decorate(self, function)

    def _again(self):
        return _Trace(self.label, self.count, self.unit)


class _Pieces:
    """Runs a coroutine or generator, with a range around each piece between two suspensions."""
    __slots__ = ("inner", "trace")

    def __init__(self, inner, trace):
        self.inner, self.trace = inner, trace

    def __await__(self):
        return self

    __iter__ = __await__

    def __next__(self):
        return self.send(None)

    def send(self, value):
        with self.trace:
            return self.inner.send(value)

    def throw(self, *error):
        with self.trace:
            return self.inner.throw(*error)

    def close(self):
        with self.trace:
            self.inner.close()


class _Whole:
    """A range from the call of a coroutine or generator function to its end."""
    __slots__ = ("number",)

    def __init__(self, label):
        self.number = _begin(label)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        _end(self.number)


async def _run_async_generator(inner, trace):
    """Runs an async generator, with ranges as _Pieces has them."""
    step = inner.__anext__()
    while True:
        try:
            item = await _Pieces(step.__await__(), trace)
        except StopAsyncIteration:
            return
        try:
            step = inner.asend((yield item))
        except GeneratorExit:
            await _Pieces(inner.aclose().__await__(), trace)
            raise
        except BaseException as error:
            step = inner.athrow(error)


def _decorate(trace, function):
    from functools import wraps
    code = getattr(function, "__code__", None)
    flags = code.co_flags if code else 0
    label, pieces = _text(trace.label), _Trace(trace.label)

    if flags & ASYNC_GENERATOR:
        @wraps(function)
        async def call(*arguments, **keywords):
            inner = _run_async_generator(function(*arguments, **keywords), pieces)
            with _Whole(label):
                try:
                    sent = await inner.__anext__()
                    while True:
                        try:
                            value = yield sent
                        except GeneratorExit:
                            await inner.aclose()
                            raise
                        except BaseException as error:
                            sent = await inner.athrow(error)
                        else:
                            sent = await inner.asend(value)
                except StopAsyncIteration:
                    return
    elif flags & COROUTINE:
        @wraps(function)
        async def call(*arguments, **keywords):
            with _Whole(label):
                return await _Pieces(function(*arguments, **keywords), pieces)
    elif flags & GENERATOR:
        @wraps(function)
        def call(*arguments, **keywords):
            with _Whole(label):
                return (yield from _Pieces(function(*arguments, **keywords), pieces))
    else:
        @wraps(function)
        def call(*arguments, **keywords):
            with trace._again():
                return function(*arguments, **keywords)
    return call


# ---- the public functions ----

if _functions:
    _open, _close, _begin, _end, _push = (_functions[name] for name in ("open", "close", "begin", "end", "push"))
    _mark, _recorded, _getframe = _functions["mark"], _functions["recorded"], sys._getframe
    import contextlib
    _contextlib = contextlib.contextmanager.__code__.co_filename
    del contextlib
    trace = _Trace
    trace.__name__ = trace.__qualname__ = "trace"

    def mark(text):
        """Records a point in time."""
        if _mark(text) is False:
            _mark(_text(text))

    def enabled():
        """Returns whether libpperf.so records now: False without it, and while PPERF_SCHEDULE has
        paused recording. For programs that compute a label or a value only for pperf."""
        return _recorded() == 1

    # PyTorch's compiler calls these instead of tracing them. It would warn of functions written in C.
    for _function in (_Trace.__enter__, _Trace.__exit__, Metric.push, mark, enabled):
        _function._torchdynamo_disable = True
    del _function
else:
    class _Nothing:
        """What trace() returns without libpperf.so: one object, as context manager and decorator.
        __enter__ and __exit__ are callables written in C, which take any arguments and return the
        object and "". They cost a third of methods written in Python."""
        __slots__ = ()
        count = property(lambda self: 0, lambda self, value: None)
        label = unit = None
        __exit__ = "".format

        def __call__(self, function):
            return function

    _nothing = _Nothing()
    _Nothing.__enter__ = staticmethod(partial(next, repeat(_nothing)))

    def trace(label, count=None, unit=None, nothing=_nothing):
        """Records a range, as a context manager or a decorator. Does nothing without libpperf.so."""
        return nothing

    def mark(text):
        """Records a point in time. Does nothing without libpperf.so."""

    def enabled():
        """Returns whether libpperf.so records now: False without it."""
        return False


# ---- reports ----

class View(dict):
    """The JSON of a view of pperf-report, as dicts and lists (`pperf-report --format json`)."""

    @property
    def rows(self):
        return self["rows"] if "rows" in self else self.get("records", [])

    def _flat(self):
        """Rows without objects in them: {"worst": {"label": 1}} becomes {"worst.label": 1}."""
        flat = []
        for row in self.rows:
            cells = {}
            for key, value in row.items():
                if isinstance(value, dict):
                    cells.update(("%s.%s" % (key, inner), each) for inner, each in value.items())
                else:
                    cells[key] = value
            flat.append(cells)
        return flat

    def to_pandas(self):
        """Returns the rows as a pandas.DataFrame. Requires pandas."""
        import pandas
        return pandas.DataFrame(self._flat())

    def to_polars(self):
        """Returns the rows as a polars.DataFrame. Requires polars."""
        import polars
        return polars.DataFrame(self._flat(), infer_schema_length=None)


class Page:
    """A page of HTML that needs no other file. Jupyter shows it in a frame of its own, in which
    scripts run but cannot reach the notebook or the network."""

    def __init__(self, text, height):
        self.text, self.height = text, height

    def __repr__(self):
        return "<pperf.Page of %d bytes>" % len(self.text)

    def _repr_html_(self):
        import html
        return ('<iframe srcdoc="%s" sandbox="allow-scripts allow-modals" title="pperf" style="width:100%%;height:%dpx;border:0"></iframe>'
                % (html.escape(self.text, True), self.height))

    def save(self, path):
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)


def _notebook_display():
    """Returns the function with which a notebook shows an object, or None outside of notebooks."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return None
    from IPython.display import display
    return display


class Report:
    """The views of a trace. report.tree(), report.view("critical", metric="reserved", top=3),
    report.view("distribution", "gemm"): keywords are options of pperf-report, with _ for -; True is
    an option without a value. report.show() is the page of `pperf-report html` in a notebook."""

    def __init__(self, path, program):
        self.path, self._program = path, program

    def __repr__(self):
        return "<pperf.Report %r>" % (self.path,)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *names, **options: self.view(name.replace("_", "-"), *names, **options)

    @property
    def verdict(self):
        """What bounds the run, and the sentences of the first screen, as a dict."""
        return self.view("summary")["verdict"]

    def page(self, view="html", height=900, **options):
        """Returns the Page of the view html or flame."""
        return Page(self._run([view], (), options, "-o", "-"), height)

    def show(self, view="html", height=900, **options):
        """Shows the page in the cell of a notebook. Outside of notebooks: returns it."""
        page = self.page(view, height, **options)
        display = _notebook_display()
        return display(page) if display else page

    def _repr_html_(self):
        return self.page()._repr_html_()

    def view(self, view, *names, **options):
        """Returns a View. `names`: what stands between the view and the trace (`distribution
        NAME`); for `diff` and `gate` the other trace, which comes second."""
        import json
        return View(json.loads(self._run([view, "--format", "json"], names, options)))

    def _run(self, command, names, options, *last):
        """Returns what pperf-report prints."""
        import os
        import subprocess
        view, command = command[0], [self._program, *command]
        for key, value in options.items():
            if value is not None and value is not False:
                option = "--" + key.replace("_", "-")
                command += [option] if value is True else [option, _option(value)]
        files = [os.fspath(self.path), *map(str, names)] if view in ("diff", "gate") else [*map(str, names), os.fspath(self.path)]
        result = subprocess.run([*command, *last, "--", *files], env=dict(os.environ, PPERF_DISABLE="1"), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not result.stdout:
            raise RuntimeError(result.stderr.decode("utf-8", "replace").strip() or "pperf-report ended with status %d" % result.returncode)
        return result.stdout.decode("utf-8", "replace")


def _option(value):
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _find_report():
    """Returns the path of pperf-report: of the variable PPERF_REPORT, beside the libpperf.so that is
    preloaded, beside python, or in PATH."""
    import os
    import shutil
    folders = [os.path.dirname(os.path.abspath(each)) for each in os.environ.get("LD_PRELOAD", "").replace(":", " ").split() if "libpperf" in each]
    folders = [*folders, *(os.path.join(each, "..", "bin") for each in folders), os.path.dirname(sys.executable or "")]
    candidates = [os.environ.get("PPERF_REPORT"), *(os.path.join(each, "pperf-report") for each in folders), shutil.which("pperf-report")]
    for path in candidates:
        if path and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError("pperf-report is neither beside python nor in PATH; set PPERF_REPORT to its path")


def load(path):
    """Returns the Report of a trace: of pperf, torch.profiler or Nsight Systems."""
    import os
    os.stat(path)
    return Report(path, _find_report())


# ---- parts of many ranks ----


def parts(folders, run=None, memory="2GB"):
    """Returns the parts that pperf-report part wrote to a folder, or to several, with the methods
    ranks(), places(), steps() and query(sql). They return relations of DuckDB, with .df(), .arrow()
    and .pl(). `run`: the run, if the parts are of several. `memory`: of DuckDB. Requires the wheel
    and its extra: pip install 'pperf[query]'."""
    try:
        from pperf_parts.relations import PartsOfRun
    except ImportError as error:
        raise ImportError("%s is not installed: pip install 'pperf[query]'" % error.name) from error
    return PartsOfRun(folders, run, memory)


def ranks(folders):
    """Returns a relation with a row for each rank: pperf.parts(folders).ranks()."""
    return parts(folders).ranks()


def places(folders):
    """Returns a relation with a row for each call path: pperf.parts(folders).places()."""
    return parts(folders).places()


def steps(folders):
    """Returns a relation with a row for each step: pperf.parts(folders).steps()."""
    return parts(folders).steps()


def query(folders, sql):
    """Returns the result of SQL over the tables of the parts: pperf.parts(folders).query(sql)."""
    return parts(folders).query(sql)
