# SPDX-License-Identifier: MIT
"""Defines two classes for compile.c.

libpperf.so embeds this file and runs it once, at the end of `import torch`, with these functions
written in C:

    Entry
        returns the base class of Phase
    get_initializing(spec), set_initializing(spec, value)
        the property of a module's spec whose import is watched
    classes(Phase, Watched, spec_class)
        sets both classes, and the class of specs that are not watched

Neither class has a function written in Python: what runs later is written in C, which Python's
trace functions do not see.
"""
import sys


class Phase(Entry()):
    """The context manager of a phase. `context`: PyTorch's own; `name`: the range's name."""
    __slots__ = ("context", "name")


spec_class = type(sys.__spec__)
# importlib sets spec._initializing before the module's code runs, and clears it afterwards.
Watched = type(spec_class.__name__, (spec_class,), {"_initializing": property(get_initializing, set_initializing), "__module__": spec_class.__module__})
classes(Phase, Watched, spec_class)
