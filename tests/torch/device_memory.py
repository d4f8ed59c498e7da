#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""device_memory.py PROGRAM: programs whose memory grows from step to step, or does not although it
changes. Each prints what PyTorch's allocator counted."""
import sys

import torch
from torch import nn

STEPS = 24


def model():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    return net, torch.optim.Adam(net.parameters())


def train(net, optimizer, rows=512):
    x = torch.randn(rows, 256, device="cuda")
    optimizer.zero_grad()
    loss = (net(x) - x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return x, loss


def keeps_losses(marked=False):
    """A forgotten .item(): each loss keeps the graph that made it."""
    net, optimizer = model()
    losses = []
    for number in range(12):
        if marked:
            torch.cuda.nvtx.range_push("step: %d" % number)
        x, _ = train(net, optimizer)
        losses.append(net(x).mean())
        if marked:
            torch.cuda.nvtx.range_pop()


def keeps_losses_in_marked_steps():
    """The ends of steps, and so all figures, are alike in every run."""
    keeps_losses(marked=True)


def keeps_numbers():
    net, optimizer = model()
    losses = []
    for _ in range(STEPS):
        x, _ = train(net, optimizer)
        losses.append(net(x).mean().item())


def keeps_outputs():
    """Outputs of an evaluation that nobody needs, without a gradient."""
    net, optimizer = model()
    outputs = []
    for _ in range(STEPS):
        x, _ = train(net, optimizer)
        with torch.no_grad():
            outputs.append(net(x).repeat(4, 1))


def pins():
    net, optimizer = model()
    batches = []
    for _ in range(STEPS):
        train(net, optimizer)
        batches.append(torch.empty(4 << 20, dtype=torch.uint8, pin_memory=True))


def has_a_spike():
    """One large instance of a layer among small ones."""
    convolution = nn.Conv2d(64, 64, 3, padding=1).cuda()
    with torch.no_grad():
        for number in range(STEPS):
            torch.cuda.nvtx.range_push("step: %d" % number)
            x = torch.randn(1, 64, 32, 32, device="cuda")
            torch.tanh(convolution(x.repeat(64 if number == 13 else 4, 1, 1, 1))).mean(0)
            torch.cuda.nvtx.range_pop()


def is_steady():
    net, optimizer = model()
    for _ in range(STEPS):
        train(net, optimizer)


def accumulates():
    net, optimizer = model()
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(4):
            x = torch.randn(128, 256, device="cuda")
            ((net(x) - x).pow(2).mean() / 4).backward()
        optimizer.step()


def evaluates_between():
    net, optimizer = model()
    for number in range(STEPS):
        train(net, optimizer)
        if number % 4 == 3:
            net.eval()
            with torch.no_grad():
                scores = [net(torch.randn(2048, 256, device="cuda")).mean() for _ in range(8)]
            torch.stack(scores).mean().item()
            net.train()


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(256, 256)

    def forward(self, x, cache):
        cache.append(self.project(x).repeat(512, 1))
        return torch.cat(cache).mean(0, keepdim=True)


def caches_by_request():
    """A cache that grows with each token and is freed with its request."""
    decoder = Decoder().cuda()
    with torch.no_grad():
        for _ in range(6):
            cache, x = [], torch.randn(1, 256, device="cuda")
            for _ in range(12):
                x = decoder(x, cache)


def warms_up():
    """Sizes that are cached in the first steps and used by all."""
    net, optimizer = model()
    cache = {}
    for number in range(STEPS):
        if number < 6:
            cache[number] = torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
        train(net, optimizer)


def begins_with_a_large_batch():
    net, optimizer = model()
    for number in range(STEPS):
        train(net, optimizer, 8192 if number == 0 else 512)


def keeps_the_last_few():
    """A history of bounded length: each step leaves a tensor and frees an old one."""
    net, optimizer = model()
    history = []
    for _ in range(STEPS):
        x, _ = train(net, optimizer, 4096)
        history = (history + [x])[-12:]


torch.manual_seed(1)
globals()[sys.argv[1]]()
print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
