# SPDX-License-Identifier: MIT
"""Tensors of one number, and their backward pass in the order of PyTorch's engine."""
import os, threading
from torch import _C

FUNCTION, BACKWARD_FUNCTION, USER_SCOPE = 0, 1, 7
_state = threading.local()


def is_grad_enabled():
    return getattr(_state, "grad", True)


class no_grad:
    def __enter__(self):
        self.before, _state.grad = is_grad_enabled(), False

    def __exit__(self, *_):
        _state.grad = self.before


class _FunctionBase:
    """Of PyTorch since 2.2; before, numbers could only be read."""

    if os.environ.get("FAKE_VERSION", "") != "2.1.0":
        def _set_sequence_nr(self, number):
            self.sequence = number


_C._FunctionBase = _FunctionBase
float32 = "torch.float32"


class Node(_FunctionBase):
    """A node of the graph: its gradient function, and the nodes or leaves that it hands gradients to."""

    def __init__(self, name, inputs, gradients):
        self._name, self.inputs, self.gradients, self.before = name, inputs, gradients, None
        self.sequence, self.thread = _C._next(), _C._thread_id()

    def name(self):
        return self._name

    def _sequence_nr(self):
        return self.sequence

    def __call__(self, gradient):
        """The node by itself, without the engine."""
        return _C._op(self._name, BACKWARD_FUNCTION, self.sequence, self.thread, lambda: self.run(getattr(gradient, "value", gradient)))

    def run(self, gradient):
        if self.before:
            self.before()
        return [_C._op("aten::mul", FUNCTION, -1, 0, lambda scale=scale: gradient * scale) for scale in self.gradients]


class Tensor:
    def __init__(self, value, requires_grad=False, grad_fn=None, device="cpu"):
        self.value, self.requires_grad, self.grad_fn, self.grad, self.device = float(value), requires_grad, grad_fn, None, device
        self.address = _C._cuda_malloc(4) if device == "cuda" else None

    def __del__(self):
        if getattr(self, "address", None):
            _C._cuda_free(self.address)

    def __mul__(self, other):
        other = other if isinstance(other, Tensor) else Tensor(other)
        return apply("mul", "MulBackward0", [self, other], lambda: self.value * other.value, [other.value, self.value])

    def __add__(self, other):
        other = other if isinstance(other, Tensor) else Tensor(other)
        return apply("add", "AddBackward0", [self, other], lambda: self.value + other.value, [1, 1])

    def sum(self):
        return apply("sum", "SumBackward0", [self], lambda: self.value, [1])

    def requires_grad_(self, wanted=True):
        self.requires_grad = wanted
        return self

    def detach(self):
        return Tensor(self.value, device=self.device)

    def item(self):
        return _C._op("aten::item", FUNCTION, -1, 0, lambda: self.value)

    def backward(self):
        if self.device == "cuda":
            thread = threading.Thread(target=run_backward, args=(self,))
            thread.start()
            thread.join()
        else:
            run_backward(self)


def apply(name, node, inputs, compute, gradients):
    """An operator of the dispatcher. Its sequence number is the one that the node will get which it makes."""
    graph = is_grad_enabled() and any(i.requires_grad or i.grad_fn for i in inputs)

    def body():
        result = Tensor(compute(), device=inputs[0].device)
        if graph:
            result.grad_fn = Node(node, [i.grad_fn or (i if i.requires_grad else None) for i in inputs], gradients)
        return result

    return _C._op("aten::" + name, FUNCTION, _C._peek() if graph else -1, 0, body)


def relu(x):
    return apply("relu", "ReluBackward0", [x], lambda: max(x.value, 0.0), [1.0 if x.value > 0 else 0.0])


def linear(x, weight, bias):
    """As in PyTorch: aten::linear has the number of the node that aten::t in it makes."""
    graph = is_grad_enabled() and any(i.requires_grad or i.grad_fn for i in (x, weight, bias))

    def body():
        turned = apply("t", "TBackward0", [weight], lambda: weight.value, [1])
        return apply("addmm", "AddmmBackward0", [bias, x, turned], lambda: bias.value + x.value * turned.value, [1, turned.value, x.value])

    return _C._op("aten::linear", FUNCTION, _C._peek() if graph else -1, 0, body)


def accumulate(leaf, gradient):
    leaf.grad = Tensor(gradient + (leaf.grad.value if leaf.grad else 0))


def run_backward(root):
    """Nodes by falling sequence number; each in the engine's own range."""
    ready = {root.grad_fn: 1.0}
    while ready:
        node = max(ready, key=lambda n: n.sequence)
        gradient = ready.pop(node)
        outputs = []
        engine = "autograd::engine::evaluate_function: "
        _C._op(engine + node.name(), FUNCTION, -1, 0, lambda: outputs.extend(node(gradient)))
        for target, output in zip(node.inputs, outputs):
            if isinstance(target, Node):
                ready[target] = ready.get(target, 0) + output
            elif target is not None:
                name = "torch::autograd::AccumulateGrad"
                _C._op(engine + name, FUNCTION, -1, 0, lambda: _C._op(name, BACKWARD_FUNCTION, -1, 0, lambda: accumulate(target, output)))


def ones(*_, requires_grad=False, device="cpu", dtype=float32):
    return _C._op("aten::ones", FUNCTION, -1, 0, lambda: Tensor(1, requires_grad, device=device))


def empty(*_, device="cpu", dtype=float32):
    return _C._op("aten::empty", FUNCTION, -1, 0, lambda: Tensor(0, device=device))


def neg(x):
    return apply("neg", "NegBackward0", [x], lambda: -x.value, [-1])


def tensor(value, requires_grad=False, device="cpu"):
    return Tensor(value if isinstance(value, (int, float)) else value[0], requires_grad, device=device)
