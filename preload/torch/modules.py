# SPDX-License-Identifier: MIT
"""Records which torch.nn.Module runs, and runs hooks at the end of `import torch`.

libpperf.so embeds this file (modules.c) and runs it while torch is imported. It runs in a private
dictionary, with these functions written in C:

    recorder() -> calls
        calls[module] -> call: `module` is called on this thread, until `call` is freed
        call[result] -> result
    identify(class_name) -> number
        a number that is never used for another module; it includes the class
    ask(known, places, number_of, path_below)
        sets the objects that the C code uses
    forget(reference)
        called when a module is freed; in C, because an exception raised there by the handler of a
        signal would be lost in Python code
    imported()
        runs the hooks: torch has been imported
    wanted() -> bool
        whether modules are recorded
    python_ends(measure)
        measures the cost of recording, if it can, and lets PyTorch's autograd threads finish before
        Python ends (record_cost.h, autograd_threads.h)
    outcome(text)
        sets source.torch_modules in the trace

The program must not notice any of this:

  - No attribute is put on a module.
  - None of the program's code is called. Modules are read through dictionaries only.
  - No error of this code reaches the program. An exception that its signal handlers raise here
    does reach it, because the C code passes it on. So nothing that runs in a call catches
    exceptions. Only at_end does, once.
  - PyTorch's compiler does not trace this code: hide().
"""
import gc
import sys
from _weakref import ref
from atexit import register
from time import perf_counter_ns

torch = sys.modules.get("torch")

# ---- numbers of modules ----

class Reference(ref):
    __slots__ = ("key", "number")


known = {}  # id of a module -> number; removed when the module is freed, as ids are reused
places = {}  # number -> Place; removed at the same time
class_name = type.__dict__["__name__"].__get__  # a metaclass may define another __name__


def number_of(module):
    """Registers a module and returns its number."""
    reference = Reference(module, forget)
    reference.key = id(module)
    reference.number = identify(class_name(type(module)))
    places[reference.number] = Place(reference)
    known[reference.key] = reference.number
    return reference.number


# ---- paths of modules ----

def submodules(module):
    """Returns the current [(name, module), ...] without calling the program's code."""
    try:
        return list(dict.items(object.__getattribute__(module, "__dict__")["_modules"]))
    except (AttributeError, KeyError, TypeError):
        return ()


def stands_at(root, path, wanted):
    for name in path.split("."):
        root = dict(submodules(root)).get(name)
    return root is wanted


WALKED = 16384  # modules that a Place may examine before find() limits its repeated searches


class Place:
    """A module that calls others, and the paths of modules below it.

    The search goes level by level and stops when the wanted module is found, so that a large
    model is not searched completely from each of its parts. A submodule with two paths has the
    shorter one.
    """
    __slots__ = ("reference", "paths", "queue", "next", "looked_at", "misses")

    def __init__(self, reference):
        self.reference = reference
        self.looked_at = self.misses = 0
        self.begin()

    def begin(self):
        self.paths = {}  # id -> path; stands_at checks whether it is still valid
        self.queue = [("", self.reference)]
        self.next = 0  # index in the queue

    def find(self, wanted):
        """Returns the path, or None if `wanted` is not below this module. Returns False if another
        search is needed but too many searches have failed."""
        root = self.reference()
        path = self.paths.get(id(wanted))
        if path is not None and stands_at(root, path, wanted):
            return path
        path = self.search(wanted)
        if path is None:  # the submodules may have changed since the last search
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
    """Returns the path of a module below the nearest open module that contains it.

    `open`: the numbers of the open modules, innermost first. Returns None if none contains it, and
    False if the path is unknown this time.
    """
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
    """Wraps a __call__ whose code is not ORIGINAL."""
    def __call__(self, *args, **kwargs):
        return calls[self][original(self, *args, **kwargs)]
    return __call__


# ORIGINAL is PyTorch's __call__ since 2.1. Each of its `return`s returns through RECORDED, with the
# same call in place of None. One frame is kept, so that call stacks, warnings that count frames,
# recursion limits and profilers of Python do not change. No line, position, handler or variable is
# added, so that sys.settrace sees the same events and tracebacks show the same text.
#
# While the module runs, calls[self] is only on the frame's stack of values. Python frees it when the
# frame is left, also by an exception.
ORIGINAL = """
class Module:
    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        else:
            return self._call_impl(*args, **kwargs)
"""
RECORDED = "calls[self][None]"
REPLACED = """
def replacing(original, calls):
    return None
"""
FIRST = 3  # the line of ORIGINAL's `def`
ONLY_TREE = 1024  # ast.PyCF_ONLY_AST
POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def functions_in(code):
    yield code
    for constant in code.co_consts:
        if type(constant) is type(code):
            yield from functions_in(constant)


def does(code):
    """Returns everything that defines what a function does, and on which line."""
    lines = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    return code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_consts, code.co_flags & 15, lines


def is_as_expected(function):
    return any(does(code) == does(function.__code__) for code in functions_in(compile(ORIGINAL, "", "exec", 0, True)) if code.co_argcount)


def parse(source):
    return compile(source, "", "exec", ONLY_TREE, True).body[0]


def nodes_below(node):
    """Returns the node and all below it. A list is a node here."""
    found = []
    if hasattr(node, "_fields"):
        found.append(node)
        node = [getattr(node, name, None) for name in node._fields]
    for each in node if type(node) is list else ():
        found += nodes_below(each)
    return found


def record(statement):
    """Makes `statement`, a `return`, return through RECORDED, at the same position."""
    call, value = statement.value, parse(RECORDED).value
    for node in nodes_below(value):
        for name in POSITION:
            if hasattr(node, name):
                setattr(node, name, getattr(call, name))
    if hasattr(value.slice, "value") and hasattr(value.slice.value, "lineno"):
        value.slice.value = call  # Python 3.8 has a node around the index
    else:
        value.slice = call
    statement.value = value


def in_place_of(original):
    """Returns replacing(), compiled with the file name, lines and globals of the original."""
    code = original.__code__
    tree, function = compile(REPLACED, "", "exec", ONLY_TREE, True), parse(ORIGINAL).body[0]
    record(function.body[0].body[0])
    record(function.body[0].orelse[0])
    for node in nodes_below(function):
        for name in ("lineno", "end_lineno"):
            if hasattr(node, name):
                setattr(node, name, getattr(node, name) + code.co_firstlineno - FIRST)
    tree.body[0].body.insert(0, function)
    tree.body[0].body[1].value = parse(function.name).value
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
    """Returns a function that makes torch.compile skip a code object. Does not load the compiler.
    Returns None if this PyTorch has no such function."""
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
    """Makes torch.compile read `original` instead of `function`, and take `function` for the
    unpatched __call__."""
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
        return "off: this PyTorch's compiler cannot be made to skip pperf's code (2)"
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
    """Called when the import of torch has ended, successfully or not."""
    try:
        if sys.modules.get("torch") is not torch or not hasattr(torch, "nn"):
            return outcome("off: import torch failed (3)")
        if wanted():
            outcome(install())
        imported()
    except Exception as error:
        outcome("off: %s: %s (4)" % (type(error).__name__, error))


def watch(spec):
    """Calls at_end when the module of `spec` is imported. importlib sets spec._initializing before
    the module's code runs, and clears it afterwards, before the import returns."""
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



BATCHES = 16
CALLS = 16  # in each batch


def batch(operator):
    began = perf_counter_ns()
    for _ in range(CALLS):
        operator()
    return perf_counter_ns() - began


def measure(switch):
    """Returns what recording adds to BATCHES batches of operators, or None. Of each kind, the fastest
    batch counts. The program's own modes of PyTorch are not called. Nothing is collected, because
    the records of what would be freed are removed."""
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return None
    collects = gc.isenabled()
    gc.disable()
    try:
        switch(False)
        operator = torch.empty((), device="cpu").detach
        with_us, without = [], []
        for _ in range(BATCHES):
            without.append(batch(operator))
            switch(True)
            with_us.append(batch(operator))
            switch(False)
        return (min(with_us) - min(without)) * BATCHES
    finally:
        if collects:
            gc.enable()


register(python_ends, measure)  # early, in the middle of the import, because the last registered runs first
if getattr(getattr(torch, "__spec__", None), "_initializing", False):
    watch(torch.__spec__)
else:
    at_end()
