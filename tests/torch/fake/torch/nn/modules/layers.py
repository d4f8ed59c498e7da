# SPDX-License-Identifier: MIT
from torch._tensor import linear, relu, tensor
from torch.nn.modules.module import Module


class Linear(Module):
    def __init__(self, device="cpu"):
        super().__init__()
        self.weight, self.bias = tensor(2, requires_grad=True, device=device), tensor(1, requires_grad=True, device=device)

    def forward(self, x):
        return linear(x, self.weight, self.bias)


class ReLU(Module):
    def forward(self, x):
        return relu(x)


class ModuleList(Module):
    def __init__(self, modules=()):
        super().__init__()
        for number, module in enumerate(modules):
            self._modules[str(number)] = module

    def __iter__(self):
        return iter(self._modules.values())


class Sequential(ModuleList):
    def __init__(self, *modules):
        super().__init__(modules)

    def forward(self, x):
        for module in self:
            x = module(x)
        return x
