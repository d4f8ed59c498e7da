# SPDX-License-Identifier: MIT
from torch import _C


def memory_allocated():
    return _C._memory()[0]


def memory_reserved():
    return _C._memory()[1]


def is_available():
    return False
