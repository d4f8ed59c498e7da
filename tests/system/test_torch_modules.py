#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""preload/torch/modules.py alone, in this Python, with a torch of a few lines: the names of
modules, and that the program cannot detect the recording."""
import copy, gc, inspect, pickle, sys, threading, traceback, types, warnings
from harness import *

SOURCE = (ROOT / "preload" / "torch" / "modules.py").read_text()


class Module:
    """The part of torch.nn.Module that calls need."""

    def __init__(self, **modules):
        self.__dict__.update(_modules=modules, _compiled_call_impl=None)

    def __setattr__(self, name, value):
        (self._modules if isinstance(value, Module) else self.__dict__)[name] = value

    def __getattr__(self, name):
        try:
            return self.__dict__["_modules"][name]
        except KeyError:
            raise AttributeError(name) from None

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)  # what torch has
        else:
            return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, x):
        return x

    __call__ = _wrapped_call_impl


ORIGINAL = Module.__dict__["__call__"]


class Each(Module):
    """Calls the modules below it, through containers that are not called."""

    def forward(self, x):
        def all(module):
            for child in module._modules.values():
                if type(child) is List:
                    all(child)
                else:
                    child(x)
        all(self)
        return x


class List(Module):
    def __init__(self, *modules):
        super().__init__(**{str(i): m for i, m in enumerate(modules)})


class Library:
    """The work of torch_modules.c, in short."""

    def __init__(self, wanted=True):
        self.calls, self.open, self.outcomes, self.skipped, self.closed, self.ends, self.number = [], threading.local(), [], [], 0, 0, 0
        self.asked_for, self.is_wanted = 0, wanted

    def identify(self, name):
        self.number += 1
        return self.number << 20 | intern(name)

    def recorder(self):
        return self

    def __setitem__(self, module, call):
        self.enter(self.known.get(id(module)) or self.number_of(module), call)

    def __delitem__(self, call):
        self.leave(call)

    def enter(self, number, call):
        open = self.open.__dict__.setdefault("rows", [])
        text = None
        if open:
            self.asked_for += 1
            text = self.path_below(number, *[n for n, _ in reversed(open)])
        open.append((number, call))
        self.calls.append("/".join(["  " * (len(open) - 1) + (text or texts[number & 0xFFFFF])]))

    def leave(self, call):
        open = self.open.__dict__.setdefault("rows", [])
        if open and open[-1][1] is call:
            open.pop()
            self.closed += 1

    def ask(self, known, places, number_of, path_below):
        self.known, self.places, self.number_of, self.path_below = known, places, number_of, path_below

    def forget(self, reference):
        self.known.pop(reference.key, None)
        self.places.pop(reference.number, None)

    def imported(self):
        self.ends += 1

    def wanted(self):
        return self.is_wanted

    def outcome(self, text):
        self.outcomes.append(text)


FUNCTIONS = "identify", "recorder", "ask", "imported", "wanted", "outcome", "forget"
texts = []


def intern(name):
    if name not in texts:
        texts.append(name)
    return texts.index(name)


def torch_of(library, dynamo="strategy"):
    """A module `torch`, complete except for its import."""
    torch = types.ModuleType("torch")
    frames = types.SimpleNamespace()
    if dynamo == "skip_code":
        frames.skip_code = library.skipped.append
    elif dynamo == "strategy":
        frames._FrameAction = types.SimpleNamespace(SKIP=1, DEFAULT=0)
        frames._FrameExecStrategy = lambda *pair: pair
        frames.set_code_exec_strategy = lambda code, pair: library.skipped.append(code) if pair == (1, 0) else None
    torch._C = types.SimpleNamespace(_dynamo=types.SimpleNamespace(eval_frame=frames))
    torch.nn = types.SimpleNamespace(Module=Module)
    sys.modules["torch"] = torch
    Module.__call__ = Module._wrapped_call_impl = ORIGINAL
    return torch


def start(library=None, **options):
    """Starts the library."""
    library = library or Library()
    torch_of(library, **options)
    space = {name: getattr(library, name) for name in FUNCTIONS}
    exec(compile(SOURCE, "<pperf>", "exec"), space)
    library.space = space
    return library


def rows(module, library=None):
    """The recorded rows of a call, indented."""
    library = library or start()
    del library.calls[:]
    module(0)
    assert library.closed and not library.open.rows, library.open.rows
    return list(library.calls)


@case
def a_module_is_named_below_the_module_that_called_it(folder):
    block = lambda: Each(norm=Module(), fc=Module())
    net = Each(embed=Module(), layers=List(block(), block()), deep=List(List(Module())), head=Module())
    assert rows(net) == ["Each", "  embed", "  layers.0", "    norm", "    fc", "  layers.1", "    norm", "    fc", "  deep.0.0", "  head"]


@case
def a_call_beside_the_tree_has_the_path_below_the_nearest_module_that_it_is_part_of(folder):
    class Decoder(Module):
        def forward(self, x):
            return outer._modules["encoder"]._modules["embed"](x)
    outer = Each(encoder=Each(embed=Module()), decoder=Decoder())
    assert rows(outer) == ["Each", "  encoder", "    embed", "  decoder", "    encoder.embed"]


@case
def a_shared_module_has_a_name_below_each_of_its_callers(folder):
    act = Module()
    assert rows(Each(a=Each(first=act), b=Each(inner=List(act)), act=act)) == \
        ["Each", "  a", "    first", "  b", "    inner.0", "  act"]


@case
def modules_without_an_owner_have_the_name_of_their_class(folder):
    class Fresh(Module):
        pass

    class Maker(Module):
        def forward(self, x):
            return Fresh()(x)
    library, maker = start(), Each(maker=Maker())
    for _ in range(3):
        assert rows(maker, library) == ["Each", "  maker", "    Fresh"]


@case
def a_module_that_replaces_another_has_its_name(folder):
    library, net = start(), Each(layers=List(Module(), Module()))
    assert rows(net, library) == ["Each", "  layers.0", "  layers.1"]
    for _ in range(50):
        net.layers._modules["1"] = Module()
        net.late = Module()
        assert rows(net, library) == ["Each", "  layers.0", "  layers.1", "  late"]


@case
def a_module_that_moved_is_looked_for_again(folder):
    library, net = start(), Each(a=Module(), b=List(Module()))
    rows(net, library)
    net._modules["c"] = net._modules.pop("a")
    assert rows(net, library) == ["Each", "  b.0", "  c"]


@case
def nothing_is_kept_of_freed_modules(folder):
    library = start()
    for _ in range(20):
        rows(Each(a=Module(), b=List(Module())), library)
    cycle = Each(a=Module())
    cycle.__dict__["me"] = cycle
    rows(cycle, library)
    del cycle
    gc.collect()
    assert not library.space["known"] and not library.space["places"]


@case
def a_model_of_ten_thousand_modules_is_searched_once_a_level(folder):
    blocks = [Each(a=Each(b=Module(), c=Module()), d=Module()) for _ in range(2500)]
    library, net = start(), Each(blocks=List(*blocks))
    assert len(rows(net, library)) == 12501
    looked_at = sum(p.looked_at for p in library.space["places"].values())
    assert looked_at <= 4 * 12501, looked_at


@case
def modules_that_are_no_part_of_a_large_model_do_not_have_it_searched_each_time(folder):
    class Maker(Module):
        def forward(self, x):
            for _ in range(2000):
                Module()(x)
    library, net = start(), Maker(blocks=List(*[Module() for _ in range(5000)]))
    rows(net, library)
    place = library.space["places"][library.space["known"][id(net)]]
    assert place.looked_at < 16384 + 8 * 2000 + 2 * 5000, place.looked_at


@case
def a_persistent_module_outside_is_settled(folder):
    library, outside = start(), Module()

    class Caller(Module):
        def forward(self, x):
            return outside(x)
    rows(Caller(), library)
    number = library.space["known"][id(outside)]
    caller = Caller()
    library.enter(library.space["number_of"](caller), 1)
    assert library.path_below(number, library.space["known"][id(caller)]) is None


@case
def a_module_that_calls_itself_is_named_as_it_is_called(folder):
    class Again(Module):
        def forward(self, n):
            return self(n - 1) if n else 0
    library, net = start(), Again()
    Each(again=net)(0)
    del library.calls[:]
    net(2)
    assert library.calls == ["Again", "  Again", "    Again"]


@case
def none_of_a_modules_own_code_runs(folder):
    class Odd(Each):
        armed = False

        def __getattribute__(self, name):
            if Odd.armed and name not in ("_compiled_call_impl", "_call_impl", "forward", "_modules"):
                raise MemoryError(name)
            return super().__getattribute__(name)

        def __eq__(self, other):
            raise MemoryError
        __hash__ = None

        def __len__(self):
            raise MemoryError

        def __bool__(self):
            raise MemoryError

        def named_modules(self):
            raise MemoryError
    library, odd = start(), Odd(inner=Odd(fc=Module()))
    Odd.armed = True
    assert rows(odd, library) == ["Odd", "  inner", "    fc"]


@case
def the_class_is_what_python_calls_it(folder):
    class Meta(type):
        __name__ = property(lambda self: 1 / 0)

    class Strange(Module, metaclass=Meta):
        pass
    assert rows(Strange()) == ["Strange"]


@case
def an_exception_closes_what_it_leaves_and_looks_as_ever(folder):
    class Bad(Module):
        def forward(self, x):
            raise ValueError("boom")

    def failing():
        try:
            Each(a=Each(b=Bad()))(0)
        except ValueError:
            return traceback.format_exc()
    library = start()
    with_us = failing()
    assert len(library.calls) == library.closed == 3 and not library.open.rows
    Module.__call__ = Module._wrapped_call_impl = ORIGINAL
    assert failing() == with_us, with_us


@case
def as_deep_as_ever(folder):
    class Deep(Module):
        def forward(self, n):
            seen[0] = n
            return self(n + 1)

    def depth():
        seen[0] = 0
        try:
            Deep()(0)
        except RecursionError:
            return seen[0]
    seen, library = [0], start()
    with_us = depth()
    assert not library.open.rows
    Module.__call__ = Module._wrapped_call_impl = ORIGINAL
    assert depth() == with_us, (depth(), with_us)


@case
def warnings_name_the_line_that_they_named(folder):
    class Warns(Module):
        def forward(self, x):
            for level in range(1, 5):
                warnings.warn("deprecated", stacklevel=level)

    def warned():
        with warnings.catch_warnings(record=True) as all:
            warnings.simplefilter("always")
            Warns()(0)
        return [(w.filename, w.lineno) for w in all][:3], len(all)
    start()
    with_us = warned()
    Module.__call__ = Module._wrapped_call_impl = ORIGINAL
    assert warned() == with_us, with_us


@case
def an_interrupt_at_any_call_leaves_nothing_open(folder):
    class Interrupts(Library):
        def enter(self, number, call):
            if before:
                raise KeyboardInterrupt
            super().enter(number, call)
            raise KeyboardInterrupt
    for before in True, False:
        library = start(Interrupts())
        try:
            Module()(0)
            raise AssertionError("the interrupt was swallowed")
        except KeyboardInterrupt:
            assert not library.open.__dict__.get("rows")


@case
def the_function_looks_like_the_one_it_stands_for(folder):
    start()
    ours = Module.__call__
    assert ours is not ORIGINAL and ours.__wrapped__ is ORIGINAL
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "__globals__"):
        assert getattr(ours, name) == getattr(ORIGINAL, name), name
    for name in ("co_name", "co_filename", "co_firstlineno", "co_argcount", "co_flags"):
        mask = 15 if name == "co_flags" else -1
        both = [getattr(f.__code__, name) for f in (ours, ORIGINAL)]
        assert both[0] == both[1] or mask == 15 and both[0] & mask == both[1] & mask, (name, both)
    assert ours.__code__.co_varnames[:3] == ("self", "args", "kwargs")
    assert inspect.getsource(ours) == inspect.getsource(ORIGINAL) and inspect.signature(ours) == inspect.signature(ORIGINAL)
    assert pickle.loads(pickle.dumps(ours)) is ours and Module._wrapped_call_impl is ours and copy.deepcopy(ours) is ours


@case
def nothing_is_put_on_a_module(folder):
    net = Each(fc=Module())
    before = {k: v for k, v in vars(net).items()}
    rows(net)
    assert vars(net) == before and vars(net.fc).keys() == {"_modules", "_compiled_call_impl"}


@case
def where_the_compiler_meets_the_function_it_reads_the_original(folder):
    helper = sys.modules["torch._dynamo.utils"] = types.ModuleType("torch._dynamo.utils")
    helper.unpatched_nn_module_call = ORIGINAL
    try:
        start()
    finally:
        del sys.modules["torch._dynamo.utils"]
    assert Module.__call__._torchdynamo_inline is ORIGINAL and helper.unpatched_nn_module_call is Module.__call__


@case
def the_compiler_is_notified_of_every_function_that_runs_in_the_program(folder):
    for way in "skip_code", "strategy":
        library = start(dynamo=way)
        assert library.outcomes == ["on"]
        seen, skipped = set(), {id(code) for code in library.skipped}

        def look(frame, event, argument):
            if event == "call" and frame.f_code.co_filename == "<pperf>":
                seen.add((frame.f_code.co_name, id(frame.f_code) in skipped))
        sys.setprofile(look)
        try:
            for _ in range(2):
                net = Each(a=Each(b=Module()), c=List(Module()))
                net(0)
                net.late = Module()
                net(0)
                del net
        finally:
            sys.setprofile(None)
        assert len(seen) >= 7 and all(marked for _, marked in seen), seen
        assert id(Module.__call__.__code__) in skipped


@case
def without_a_way_to_tell_the_compiler_everything_stays_as_it_was(folder):
    library = start(dynamo="none")
    assert library.outcomes[-1].startswith("off: this PyTorch's compiler") and Module.__call__ is ORIGINAL and library.ends == 1


@case
def a_call_replaced_by_another_tool_is_wrapped(folder):
    library = Library()
    torch_of(library)

    def patched(self, *args, **kwargs):
        """Theirs."""
        return ORIGINAL(self, *args, **kwargs)
    Module.__call__ = patched
    space = {name: getattr(library, name) for name in FUNCTIONS}
    exec(SOURCE, space)
    assert Module.__call__.__wrapped__ is patched and Module.__call__.__doc__ == "Theirs." and Module._wrapped_call_impl is ORIGINAL
    assert rows(Each(fc=Module()), library) == ["Each", "  fc"]


@case
def what_is_not_wanted_is_not_done_but_the_import_is_reported(folder):
    library = start(Library(wanted=False))
    assert Module.__call__ is ORIGINAL and library.ends == 1 and not library.outcomes


PACKAGE = """
import sys, types
from pperf_test import begin
class Module: pass
Module.__call__ = lambda self: None
nn = types.SimpleNamespace(Module=Module)
begin()
%s
done = True
"""


def imported(folder, end):
    """Imports a torch from a file. The library starts during the import."""
    library, lengths = Library(wanted=False), []
    sys.modules.pop("torch", None)
    (folder / "torch.py").write_text(PACKAGE % end)
    space = {name: getattr(library, name) for name in FUNCTIONS}
    space["imported"] = lambda: lengths.append((hasattr(sys.modules["torch"], "done"), sys.modules["torch"].__spec__._initializing))
    helper = types.ModuleType("pperf_test")
    helper.begin = lambda: exec(SOURCE, space)
    sys.modules["pperf_test"] = helper
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        import torch
        kind = type(torch.__spec__)
        assert kind.__name__ == "ModuleSpec" and kind.__module__.startswith(("importlib", "_frozen")), kind
    except ZeroDivisionError:
        pass
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("torch", None)
    return library, lengths


@case
def the_end_of_the_import_is_reported_once_when_torch_is_whole(folder):
    library, ends = imported(folder, "")
    assert ends == [(True, False)] and not library.outcomes


@case
def an_import_that_fails_fails_as_ever(folder):
    library, ends = imported(folder, "1 / 0")
    assert not ends and library.outcomes == ["off: import torch failed (3)"]


@case
def threads_have_their_own_callers(folder):
    library, net, all = start(), Each(a=Each(b=Module()), c=Module()), []
    for _ in range(16):
        all.append(threading.Thread(target=lambda: [net(0) for _ in range(50)]))
    for thread in all:
        thread.start()
    for thread in all:
        thread.join()
    assert sorted(set(library.calls)) == ["    b", "  a", "  c", "Each"] and library.closed == 16 * 50 * 4


main()
