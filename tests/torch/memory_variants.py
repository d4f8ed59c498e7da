# SPDX-License-Identifier: MIT
"""memory_variants.py PROGRAM: four more programs of each situation of memory_situations.py, which
differ in what they do, in sizes and in steps. PROGRAM is the situation and a number."""
import collections, copy, ctypes, sys
import torch
import torch.nn as nn

MB = 1 << 20


def take(megabytes):
    return torch.empty(int(megabytes * MB), dtype=torch.uint8, device="cuda")


def cuda_call(name, *arguments):
    assert getattr(ctypes.CDLL(None), name)(*arguments) == 0


def convolutional():
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()).cuda()


def mlp(width=768, depth=3):
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)]).cuda()


class Loop:
    """A training loop; `after` runs at the end of each step."""

    def __init__(self, net, make=lambda: torch.randn(256, 768, device="cuda"), optimizer=None):
        self.net, self.make = net, make
        self.optimizer = optimizer or torch.optim.Adam(net.parameters())

    def step(self):
        self.optimizer.zero_grad()
        out = self.net(self.make())
        out.square().mean().backward()
        self.optimizer.step()
        return out

    def run(self, steps, after=lambda number, out: None):
        for number in range(steps):
            after(number, self.step())


IMAGES = lambda: torch.randn(8, 3, 64, 64, device="cuda")


# leak: features, a dictionary, hooks that keep inputs, batches
def leak1():
    features = []
    Loop(mlp()).run(20, lambda i, out: features.append(out.detach().clone().repeat(4, 1)))


def leak2():
    seen = {}
    Loop(convolutional(), IMAGES).run(24, lambda i, out: seen.update({i: out.detach().float()}))


def leak3():
    net, kept = mlp(), []
    net[1].register_forward_hook(lambda module, inputs, output: kept.append(output.detach().clone()))
    Loop(net, lambda: torch.randn(1024, 768, device="cuda")).run(30)


def leak4():
    batches = []

    def make():
        batches.append(torch.randn(700, 768, device="cuda"))
        return batches[-1]
    Loop(mlp(), make).run(18)


# fragmentation: other sizes, other patterns, until memory is exhausted
def until_exhausted(body, rounds=1000):
    try:
        for i in range(rounds):
            body(i)
    except torch.OutOfMemoryError:
        print("out of memory")


def fragmentation1():
    kept, held = [], collections.deque(maxlen=4)

    def body(i):
        held.append(take(30 + (i * 11) % 40))
        kept.append(take(3))
    until_exhausted(body)


def fragmentation2():
    blocks = [take(24) for _ in range(50)]
    del blocks[::2]
    until_exhausted(lambda i: blocks.append(take(30)))


def fragmentation3():
    pool = []

    def body(i):
        pool.extend(take(12 + j) for j in range(6))
        del pool[-5::2]
        pool.append(take(40 + i))
    until_exhausted(body)


def fragmentation4():
    whole = take(1200)
    del whole
    parts = [take(100) for _ in range(12)]
    del parts[::2]
    until_exhausted(lambda i: parts.append(take(150 + i)))


# pinned segments: summaries in the place of buffers that were consumed
def consume(kept, count, size, bytes_kept, rest):
    buffers = [take(size) for _ in range(count)]
    for number in range(count):
        buffers[number] = None
        kept.append(take(bytes_kept))
        buffers[number] = take(rest)


def pinned_segment1():
    kept = []
    Loop(mlp()).run(24, lambda i, out: consume(kept, 3, 120, 11, 108) if i in (2, 9) else None)


def pinned_segment2():
    kept = []
    Loop(convolutional(), IMAGES).run(30, lambda i, out: consume(kept, 5, 90, 3, 86) if i == 4 else None)


def pinned_segment3():
    kept = []
    with torch.profiler.record_function("calibrate"):
        consume(kept, 5, 150, 20, 128)
    for i in range(400):
        with torch.profiler.record_function("serve"):
            take(1).fill_(1)


def pinned_segment4():
    kept = []
    consume(kept, 4, 200, 2, 197)
    Loop(mlp(512), lambda: torch.randn(128, 512, device="cuda")).run(40)
    return kept


# dynamic shapes: sequences, images, attention, generation
def dynamic_shapes1():
    draw = iter(torch.randint(1000, 9000, (60,), generator=torch.Generator().manual_seed(3)).tolist())
    Loop(mlp(512, 4), lambda: torch.randn(next(draw), 512, device="cuda")).run(60)


def dynamic_shapes2():
    sides = iter([96 + 8 * (i * 7 % 19) for i in range(48)])
    Loop(convolutional(), lambda: torch.randn(8, 3, next(sides), 128, device="cuda")).run(48)


def dynamic_shapes3():
    cache = None
    with torch.no_grad():
        for i in range(60):
            with torch.profiler.record_function("token"):
                part = torch.randn(2 * MB // 4, device="cuda")
                cache = part if cache is None else torch.cat([cache, part])


def dynamic_shapes4():
    lengths = iter([300 + 37 * (i * 13 % 40) for i in range(40)])

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k = nn.Linear(128, 128), nn.Linear(128, 128)

        def forward(self, x):
            return torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), -1) @ x
    Loop(Attention().cuda(), lambda: torch.randn(8, next(lengths), 128, device="cuda")).run(40)


# library workspace: one, many, before the steps, grown
def workspace(sizes):
    for size in sizes:
        cuda_call("cudaMalloc", ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(int(size * MB)))


def library_workspace1():
    workspace([32] * 8)
    Loop(mlp()).run(16)


def library_workspace2():
    Loop(mlp()).run(16, lambda i, out: workspace([96]) if i == 9 else None)


def library_workspace3():
    Loop(convolutional(), IMAGES).run(20, lambda i, out: workspace([40 + 10 * i]) if i < 3 else None)


def library_workspace4():
    workspace([512])
    with torch.no_grad():
        net = mlp()
        for _ in range(20):
            net(torch.randn(512, 768, device="cuda"))


# optimizer twice: SGD with momentum, per phase, a restart, a copy that trains on
def optimizer_twice1():
    net = mlp(2048)
    kept = []
    for _ in range(2):
        kept.append(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
        Loop(net, lambda: torch.randn(16, 2048, device="cuda"), kept[-1]).run(8)


def optimizer_twice2():
    net, kept = mlp(1536, 4), []
    for _ in range(3):
        kept.append(torch.optim.Adam(net.parameters()))
        Loop(net, lambda: torch.randn(32, 1536, device="cuda"), kept[-1]).run(6)


def optimizer_twice3():
    net = mlp(2048)
    one, two = torch.optim.AdamW(net.parameters()), torch.optim.RAdam(net.parameters())
    loops = [Loop(net, lambda: torch.randn(16, 2048, device="cuda"), optimizer) for optimizer in (one, two)]
    for i in range(16):
        loops[i % 2].step()


def optimizer_twice4():
    net = mlp(2048)
    loop = Loop(net, lambda: torch.randn(16, 2048, device="cuda"))
    loop.run(8)
    state = copy.deepcopy(loop.optimizer.state_dict())
    loop.run(8)
    return state


# activations: wide, convolutional, recurrent, at the limit
def activations1():
    Loop(nn.Sequential(*[layer for _ in range(10) for layer in (nn.Linear(512, 512), nn.GELU())]).cuda(),
         lambda: torch.randn(4096, 512, device="cuda")).run(10)


def activations2():
    Loop(nn.Sequential(*[layer for _ in range(6) for layer in (nn.Conv2d(16 if _ else 3, 16, 3, padding=1), nn.ReLU())]).cuda(),
         lambda: torch.randn(8, 3, 128, 128, device="cuda")).run(10)


def activations3():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(256, 256)

        def forward(self, x):
            for _ in range(50):
                x = torch.tanh(self.cell(x))
            return x
    Loop(Steps().cuda(), lambda: torch.randn(4096, 256, device="cuda")).run(10)


def activations4():
    loop = Loop(nn.Sequential(*[layer for _ in range(30) for layer in (nn.Linear(256, 256), nn.Sigmoid())]).cuda(),
                lambda: torch.randn(rows[0], 256, device="cuda"))
    rows = [1024]
    try:
        for i in range(30):
            rows[0] = 1024 * (i + 1)
            loop.step()
    except torch.OutOfMemoryError:
        print("out of memory")


# forgotten .item(): a sum, a dictionary, an average, another model
def forgotten_item1():
    total = []
    Loop(mlp()).run(20, lambda i, out: total.append(out.square().mean()))


def forgotten_item2():
    log = {}
    Loop(convolutional(), IMAGES).run(24, lambda i, out: log.update({i: out.abs().mean()}))


def forgotten_item3():
    state = {"sum": 0}
    net = mlp()

    def after(i, out):
        state["sum"] = state["sum"] + net(torch.randn(256, 768, device="cuda")).mean()
    Loop(net).run(20, after)


def forgotten_item4():
    history = []
    net = mlp(512, 5)
    Loop(net, lambda: torch.randn(1024, 512, device="cuda")).run(30, lambda i, out: history.append((i, out.max())))


# pinned host memory
def pinned_host1():
    queue = []
    Loop(mlp()).run(20, lambda i, out: queue.append(torch.randn(256, 768).pin_memory()))


def pinned_host2():
    queue = []
    Loop(convolutional(), IMAGES).run(24, lambda i, out: queue.append(torch.empty(3 * MB, pin_memory=True)))


def pinned_host3():
    Loop(mlp()).run(20, lambda i, out: cuda_call("cudaMallocHost", ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(6 * MB)))


def pinned_host4():
    results = []

    def after(i, out):
        results.append(torch.empty(out.shape, dtype=out.dtype, pin_memory=True).copy_(out.detach(), non_blocking=True))
    Loop(mlp(), lambda: torch.randn(2048, 768, device="cuda")).run(16, after)


# managed memory
def managed_call(megabytes):
    cuda_call("cudaMallocManaged", ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(megabytes * MB), ctypes.c_uint(1))


def managed1():
    for _ in range(10):
        managed_call(80)
    take(1)


def managed2():
    Loop(mlp()).run(10, lambda i, out: managed_call(700) if i == 4 else None)


def managed3():
    Loop(mlp(1536, 6)).run(4) if False else None
    held = take(300)
    managed_call(400)
    return held


def managed4():
    managed_call(2000)
    with torch.no_grad():
        net = mlp()
        for _ in range(10):
            net(torch.randn(64, 768, device="cuda"))


# idle cache: an evaluation, an export, a rare large batch, no steps at all
def idle_cache1():
    net = mlp()

    def after(i, out):
        if i == 6:
            with torch.no_grad():
                net(torch.randn(40000, 768, device="cuda"))
    Loop(net).run(24, after)


def idle_cache2():
    rows = iter([256] * 8 + [30000] + [256] * 21)
    Loop(mlp(), lambda: torch.randn(next(rows), 768, device="cuda")).run(30)


def idle_cache3():
    with torch.no_grad():
        net = mlp()
        for i in range(30):
            with torch.profiler.record_function("request"):
                net(torch.randn(30000 if i == 12 else 100, 768, device="cuda"))


def idle_cache4():
    def after(i, out):
        if i == 10:
            parts = [take(50) for _ in range(8)]
            del parts
    Loop(convolutional(), IMAGES).run(40, after)


# another process: the test holds most of the GPU
def another_process1():
    Loop(mlp()).run(3)
    until_exhausted(lambda i: take(2000))


def another_process2():
    kept = []
    until_exhausted(lambda i: kept.append(take(64)))


def another_process3():
    until_exhausted(lambda i: take(1024), 1)


def another_process4():
    nets = []
    until_exhausted(lambda i: nets.append(mlp(4096)))


until_exhausted(lambda i: globals()[sys.argv[1]](), 1)
