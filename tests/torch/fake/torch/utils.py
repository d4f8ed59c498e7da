# SPDX-License-Identifier: MIT
from torch._tensor import tensor


def checkpoint(function, x):
    """Keeps no intermediate results: the first node of the backward pass computes them again, inside itself."""
    result = function(x)

    def again():
        function(tensor(x.value, requires_grad=True))

    if result.grad_fn:
        result.grad_fn.before = again
    return result
