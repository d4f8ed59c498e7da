# SPDX-License-Identifier: MIT
from torch import _C
from torch._tensor import USER_SCOPE, Node  # noqa: F401


def record_function(name, body):
    return _C._op(name, USER_SCOPE, -1, 0, body)
