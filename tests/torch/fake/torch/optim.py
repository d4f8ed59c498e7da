# SPDX-License-Identifier: MIT
from torch._tensor import apply, no_grad, tensor
from torch.autograd import record_function


class SGD:
    def __init__(self, parameters, lr=0.1):
        self.parameters, self.lr = list(parameters), lr

    def zero_grad(self):
        def body():
            for each in self.parameters:
                each.grad = None
        record_function("Optimizer.zero_grad#SGD.zero_grad", body)

    def step(self):
        def body():
            with no_grad():
                for each in self.parameters:
                    if each.grad is not None:
                        each.value = apply("add_", None, [each, tensor(0)], lambda: each.value - self.lr * each.grad.value, []).value
        record_function("Optimizer.step#SGD.step", body)
