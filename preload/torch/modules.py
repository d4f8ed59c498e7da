# SPDX-License-Identifier: MIT
"""torch_modules.py: what of the library runs in Python: the end of `import torch` is made known, and torch.nn.Module.__call__ tells which module runs.

It is part of libpperf.so (torch_modules.c), which runs it while torch is imported, in a dictionary that nobody else sees, with these functions of its own:

    recorder() -> calls                calls[module] = call: it is called, on this thread; del calls[call]: that call ends
    identify(class_name) -> number     a number for a module, for ever its own; its class is part of it
    ask(known, places, number_of, path_below)  what is below is asked of these
    forget(reference)                  to be called when a module is gone. It is written in C: an interrupt never comes there, and what Python's
                                       own text raised there would be lost
    imported()                         torch has been imported
    wanted() -> bool                   whether modules are
    outcome(text)                      source.torch_modules in the trace

The program must not notice. So no attribute is put on a module, nothing of the program's own is called but what a dictionary holds, and nothing that
fails here gets out. But what its handlers of signals raise is the program's, wherever they run: who calls us hands it back, so nothing that runs in a
call catches it (at_end, once, does). PyTorch's compiler must not look at any of it either: hide().
"""
import sys
from _weakref import ref

torch = sys.modules.get("torch")

# ---- which module is which ----

class Reference(ref):
    __slots__ = ("key", "number")


known = {}  # id of a module: its number; until it dies, when the id may become another's
places = {}  # number: Place, as long
class_name = type.__dict__["__name__"].__get__  # whatever the class of the class says


def number_of(module):
    """Makes a module known."""
    reference = Reference(module, forget)
    reference.key = id(module)
    reference.number = identify(class_name(type(module)))
    places[reference.number] = Place(reference)
    known[reference.key] = reference.number
    return reference.number


# ---- what it is called below another ----

def submodules(module):
    """[(name, module), ...] as they are now, by none of the program's code."""
    try:
        return list(dict.items(object.__getattribute__(module, "__dict__")["_modules"]))
    except (AttributeError, KeyError, TypeError):
        return ()


def stands_at(root, path, wanted):
    for name in path.split("."):
        root = dict(submodules(root)).get(name)
    return root is wanted


WALKED = 16384  # modules that are looked at again, for each that calls others, before it has to be worth it


class Place:
    """A module that calls others: where they are below it. It is searched level by level, and no further than is asked for, so that a large model is not
    searched from each of its parts; a submodule that is found at two places has the shorter path."""
    __slots__ = ("reference", "paths", "queue", "next", "looked_at", "misses")

    def __init__(self, reference):
        self.reference = reference
        self.looked_at = self.misses = 0
        self.begin()

    def begin(self):
        self.paths = {}  # id: path; whether it is still that one's is checked
        self.queue = [("", self.reference)]
        self.next = 0  # in the queue

    def find(self, wanted):
        """The path. None: it is not below this one. False: that would have to be searched once more, which has led to nothing too often."""
        root = self.reference()
        path = self.paths.get(id(wanted))
        if path is not None and stands_at(root, path, wanted):
            return path
        path = self.search(wanted)
        if path is None:  # something may have been put in its place since
            self.misses += 1
            if self.looked_at > WALKED + 8 * self.misses:
                return False
            self.begin()
            path = self.search(wanted)
        return path

    def search(self, wanted):
        paths, queue = self.paths, self.queue
        while self.next < len(queue) and id(wanted) not in paths:
            prefix, reference = queue[self.next]
            self.next += 1
            for name, module in submodules(reference()):
                self.looked_at += 1
                if module is not None and id(module) not in paths:
                    paths[id(module)] = prefix + name
                    if submodules(module):
                        queue.append((prefix + name + ".", ref(module)))
        path = paths.get(id(wanted))
        return path if path is not None and stands_at(self.reference(), path, wanted) else None


def path_below(number, *open):
    """The path of a module below the nearest of the open ones (their numbers, innermost first) that it is part of. None: of none of them. False: not
    known this time."""
    wanted = places[number].reference()
    answer = None
    for other in open:
        place = places.get(other)
        path = place.find(wanted) if place and other != number else None
        if path:
            return path
        if path is False:
            answer = False
    return answer


# ---- the call ----

def wrapping(original, calls):
    """For a __call__ that we do not know."""
    def __call__(self, *args, **kwargs):
        try:
            calls[self] = kwargs  # an object that this call alone has
            return original(self, *args, **kwargs)
        finally:
            del calls[kwargs]
    return __call__


# What PyTorch's own does since 2.1, and what takes its place then: the same with ours around it, in one and the same frame, so that call stacks, warnings
# that count frames, recursion limits and profilers of Python show what they showed.
ORIGINAL = """
class Module:
    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        else:
            return self._call_impl(*args, **kwargs)
"""
REPLACED = """
def replacing(original, calls):
  def _wrapped_call_impl(self, *args, **kwargs):
    try:
        calls[self] = kwargs
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        else:
            return self._call_impl(*args, **kwargs)
    finally:
        del calls[kwargs]
  return _wrapped_call_impl
"""
FIRST = 6  # the line of REPLACED that is the first of ORIGINAL's body
ONLY_TREE = 1024  # ast.PyCF_ONLY_AST


def functions_in(code):
    yield code
    for constant in code.co_consts:
        if type(constant) is type(code):
            yield from functions_in(constant)


def does(code):
    """Everything that says what a function does, and which line does it."""
    lines = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    return code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_consts, code.co_flags & 15, lines


def is_as_expected(function):
    return any(does(code) == does(function.__code__) for code in functions_in(compile(ORIGINAL, "", "exec", 0, True)) if code.co_argcount)


def move(node, line):
    """Puts REPLACED where the original is, whose `def` is in `line`: the lines that are the original's to their own, ours to the `def`."""
    if type(node) is list:
        for each in node:
            move(each, line)
    if not hasattr(node, "_fields"):
        return
    for name in ("lineno", "end_lineno"):
        if hasattr(node, name):
            own = getattr(node, name) - FIRST
            setattr(node, name, line + 1 + own if 0 <= own < 4 else line)
    for name in node._fields:
        move(getattr(node, name, None), line)


def in_place_of(original):
    """What makes the function that takes the place of the original; it lives among the same global names."""
    code = original.__code__
    tree = compile(REPLACED, "", "exec", ONLY_TREE, True)
    move(tree, code.co_firstlineno)
    made = {}
    exec(compile(tree, code.co_filename, "exec", 0, True), original.__globals__, made)
    return made["replacing"]


def dress(function, original):
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotate__" if hasattr(original, "__annotate__") else "__annotations__"):
        setattr(function, name, getattr(original, name))
    if hasattr(function.__code__, "co_qualname"):
        function.__code__ = function.__code__.replace(co_qualname=original.__code__.co_qualname)
    function.__dict__.update(original.__dict__)
    function.__wrapped__ = original


# ---- PyTorch's compiler ----

def skipper():
    """Tells the compiler to leave a function alone, without loading it. None: this PyTorch has no way."""
    frames = torch._C._dynamo.eval_frame
    if hasattr(frames, "skip_code"):
        return frames.skip_code
    if not hasattr(frames, "set_code_exec_strategy"):
        return None
    skip = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
    return lambda code: frames.set_code_exec_strategy(code, skip)


def hide(skip, *objects):
    for each in objects:
        if isinstance(each, type):
            hide(skip, *(value for value in vars(each).values() if hasattr(value, "__code__")))
        else:
            for code in functions_in(each.__code__):
                skip(code)


def stand_in(function, original):
    """Where the compiler meets the function, it is to read the original; and a __call__ that nobody has changed is this one."""
    function._torchdynamo_inline = original
    for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        module = sys.modules.get(name)
        if getattr(module, "unpatched_nn_module_call", None) is original:
            module.unpatched_nn_module_call = function


# ---- installing ----

def install():
    Module = torch.nn.Module
    original, skip = Module.__dict__["__call__"], skipper()
    if type(original) is not type(install):
        return "off: torch.nn.Module.__call__ is not a function of Python's (1)"
    if not skip:
        return "off: this PyTorch's compiler cannot be told to leave us alone (2)"
    make = in_place_of(original) if is_as_expected(original) else wrapping
    ask(known, places, number_of, path_below)
    function = make(original, recorder())
    dress(function, original)
    stand_in(function, original)
    hide(skip, function, Place, number_of, submodules, stands_at, path_below)
    for name in [name for name, value in vars(Module).items() if value is original]:
        setattr(Module, name, function)
    return "on"


def at_end():
    """torch has been imported, or that has failed."""
    try:
        if sys.modules.get("torch") is not torch or not hasattr(torch, "nn"):
            return outcome("off: import torch failed (3)")
        if wanted():
            outcome(install())
        imported()
    except Exception as error:
        outcome("off: %s: %s (4)" % (type(error).__name__, error))


def watch(spec):
    """importlib sets spec._initializing when a module's code is about to run, and clears it when it has run, before anybody gets the module."""
    kind = type(spec)

    class Watched(kind):
        @property
        def _initializing(self):
            return self.__dict__.get("_initializing", False)

        @_initializing.setter
        def _initializing(self, value):
            self.__dict__["_initializing"] = value
            if not value:
                self.__class__ = kind
                at_end()

    Watched.__name__ = Watched.__qualname__ = kind.__name__
    spec.__class__ = Watched


if getattr(getattr(torch, "__spec__", None), "_initializing", False):
    watch(torch.__spec__)
else:
    at_end()
