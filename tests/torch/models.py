# SPDX-License-Identifier: MIT
"""models.py NAME: builds a model, calls it three times, prints for each call of a module the path that it should have, as JSON.

What it prints comes from named_modules() and from hooks of PyTorch's own, in a second run of the same model without the library (PLAIN=1).
"""
import json, os, sys, threading

import torch
import torch.nn as nn


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Sequential(nn.Linear(16, 16), nn.Tanh()), nn.Linear(16, 8))


def transformer():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 3, enable_nested_tensor=False)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        return torch.softmax(self.q(x) @ self.k(x).mT, -1) @ self.v(x)


class Nested(nn.Module):
    """ModuleLists and ModuleDicts in each other. None of them is called."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.ModuleList([nn.ModuleDict({"attention": Attention(), "out": nn.Linear(8, 8)}) for _ in range(2)]) for _ in range(3)])

    def forward(self, x):
        for stage in self.stages:
            for block in stage:
                x = block["out"](block["attention"](x))
        return x


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(*(nn.Sequential(nn.Conv2d(1 if not i else 4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()) for i in range(3)))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 8)

    def forward(self, x):
        return self.head(self.pool(self.features(x[None, None])).flatten(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.lstm, self.head = nn.LSTMCell(8, 8), nn.LSTM(8, 8, 2), nn.Linear(8, 8)

    def forward(self, x):
        return self.head(self.lstm(self.cell(x)[0])[0])


MODELS = {"mlp": mlp, "transformer": transformer, "nested": Nested, "convolutional": Convolutional, "recurrent": Recurrent}


def expected(model, call):
    """[path of names, class, calls] of each module. The path is below the caller and begins with
    the callers' names."""
    paths, open, counts = dict((m, name) for name, m in model.named_modules()), [], {}

    def name(module):
        if not open:
            return type(module).__name__
        above = paths[open[-1][0]]
        assert paths[module].startswith(above + "." if above else ""), (above, paths[module])
        return paths[module][len(above) + 1 if above else 0:]

    def enters(module, arguments):
        open.append((module, name(module)))
        key = (tuple(n for _, n in open), type(module).__name__)
        counts[key] = counts.get(key, 0) + 1
    handles = [nn.modules.module.register_module_forward_pre_hook(enters),
               nn.modules.module.register_module_forward_hook(lambda *_: open.pop() and None)]
    call()
    for handle in handles:
        handle.remove()
    return sorted([list(path), kind, count] for (path, kind), count in counts.items())


def main():
    torch.manual_seed(0)
    model = MODELS[sys.argv[1]]()
    call = lambda: [model(torch.ones(4, 8)) for _ in range(3)]
    if os.environ.get("PLAIN"):
        print(json.dumps(expected(model, call)))
    else:
        call()


main()
