# SPDX-License-Identifier: MIT
"""truth.py MODEL OUT: trains a model for some steps, and writes PyTorch's own results: the modules
that ran, by named_modules(), and what torch.profiler saw of the same steps, which are those inside
the range "window"."""
import json, sys
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
WARM_UP, STEPS = 2, 5
WIDTH = 192


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH), nn.ReLU())
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        return self.head(self.body(x))


class Attention(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) / width ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm1, self.norm2 = Attention(), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.embed = nn.Embedding(50, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(depth)])
        self.head = nn.Linear(WIDTH, 50)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.block = nn.ModuleDict({"conv": nn.Conv2d(16, 16, 3, padding=1), "norm": nn.BatchNorm2d(16)})
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        x = x + F.relu(self.block["norm"](self.block["conv"](x)))
        return self.head(x.mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 64, num_layers=2, batch_first=True), nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, gradient):
        return 3 * ctx.saved_tensors[0] ** 2 * gradient


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x):
        return self.second(Cube.apply(self.first(x)))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        return self.body(x)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.second(F.leaky_relu(self.first(x)))


def training(model, inputs, classes, optimizer=torch.optim.SGD):
    optimizer = optimizer(model.parameters(), lr=0.01)
    targets = torch.randint(classes, inputs.shape if not inputs.is_floating_point() else inputs.shape[:1])

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten()).backward()
        optimizer.step()
    return step


def gan_training(generator, critic):
    optimizers = [torch.optim.Adam(part.parameters()) for part in (generator, critic)]
    real, noise = torch.randn(64, WIDTH), torch.randn(64, 16)

    def step():
        made = generator(noise)
        optimizers[1].zero_grad()
        (F.softplus(critic(made.detach())) + F.softplus(-critic(real))).mean().backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        F.softplus(-critic(made)).mean().backward()
        optimizers[0].step()
    return step


def of(name):
    """The model, and a function that makes a step."""
    if name == "gan":
        models = Generator(), Critic()
        return models, gan_training(*models)
    make, inputs, classes = {
        "mlp": (Mlp, torch.randn(128, WIDTH), 10),
        "transformer": (Transformer, torch.randint(50, (4, 32)), 50),
        "convolutional": (Convolutional, torch.randn(4, 3, 32, 32), 10),
        "recurrent": (Recurrent, torch.randn(16, 12, 32), 10),
        "custom": (Custom, torch.randn(128, WIDTH), 10)}[name]
    model = make()
    return [model], training(model, inputs, classes, torch.optim.AdamW if name == "transformer" else torch.optim.SGD)


def called(models, step):
    """{path: (class, calls in a step)}. The path begins with the model's class. Hooks count the
    calls and are removed again."""
    counts, handles, classes = Counter(), [], {}
    for path, module in [(".".join(filter(None, (type(model).__name__, path))), module) for model in models for path, module in model.named_modules()]:
        handles.append(module.register_forward_hook(lambda *_, path=path: counts.update([path])))
        classes[path] = type(module).__name__
    step()
    for handle in handles:
        handle.remove()
    return {path: (classes[path], count) for path, count in counts.items()}


def seen(event):
    """The fields of one of the profiler's own events, before its post-processing. Times are in ns.
    """
    times = [getattr(event, name + "_ns")() if hasattr(event, name + "_ns") else 1000 * getattr(event, name + "_us")() for name in ("start", "duration")]
    return {"name": event.name(), "thread": event.start_thread_id(), "start": times[0], "total": times[1], "sequence": event.sequence_nr(),
            "forward_thread": event.fwd_thread_id(), "scope": event.scope()}


def main():
    models, step = of(sys.argv[1])
    modules = called(models, step)
    for _ in range(WARM_UP):
        step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        with torch.profiler.record_function("window"):
            for _ in range(STEPS):
                step()
    json.dump({"modules": modules, "steps": STEPS, "runs": 1 + WARM_UP + STEPS, "events":
               [seen(e) for e in profile.profiler.kineto_results.events() if e.correlation_id() or e.scope()]}, open(sys.argv[2], "w"))


main()
