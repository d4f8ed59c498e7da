# SPDX-License-Identifier: MIT
"""memory_situations.py PROGRAM: programs that waste, leak or run out of device memory, each in one
way, and programs that do not although their memory changes (test_memory_situations.py)."""
import ctypes, sys
import torch
import torch.nn as nn

MB = 1 << 20
STEPS = 16
BYTES = {"dtype": torch.uint8, "device": "cuda"}


def take(megabytes):
    return torch.empty(int(megabytes * MB), **BYTES)


def model(width=1024, depth=4):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers).cuda()


def train(net, optimizer, rows=512, width=1024):
    optimizer.zero_grad()
    loss = net(torch.randn(rows, width, device="cuda")).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss


def adam(net):
    return torch.optim.AdamW(net.parameters())


# ---- one situation each ----


def leak():
    net = model()
    optimizer, history = adam(net), []
    for _ in range(STEPS):
        train(net, optimizer)
        with torch.no_grad():
            history.append(net(torch.randn(512, 1024, device="cuda")))


def fragmentation():
    """Two temporary sizes and a map point that is kept, until no gap is large enough."""
    kept = []
    try:
        for i in range(400):
            temporary = [take(21 + 2 * (i * 7 % 13)) for _ in range(3)]
            del temporary[1]
            kept.append(take(2 + i / 256))
    except torch.OutOfMemoryError:
        print("out of memory")


def pinned_segment():
    """Summaries settle in the segments of large buffers, each of which was just consumed. It is the
    first step that takes the buffers: in a later one they would be a spike, too."""
    net, kept = model(), []
    optimizer = adam(net)
    for i in range(STEPS):
        train(net, optimizer)
        if i == 0:
            buffers = [take(60) for _ in range(6)]
            for number in range(6):
                buffers[number] = None
                kept.append(take(2))
                buffers[number] = take(57)
            del buffers


def dynamic_shapes():
    """Each batch has its own length."""
    net = model(512, 6)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for i in range(4 * STEPS):
        train(net, optimizer, 5000 + 160 * (i * 29 % 64), 512)


def cuda_call(name, *arguments):
    assert getattr(ctypes.CDLL(None), name)(*arguments) == 0


def library_workspace():
    """An extension takes its own memory past PyTorch's allocator."""
    net = model()
    optimizer, workspace = adam(net), ctypes.c_void_p()
    for i in range(STEPS):
        train(net, optimizer)
        if i == 2:
            with torch.profiler.record_function("solver"):
                cuda_call("cudaMalloc", ctypes.byref(workspace), ctypes.c_size_t(200 * MB))


def optimizer_twice():
    """A new optimizer for the second phase, while the first one is kept."""
    net = model(2048)
    first = adam(net)
    for _ in range(STEPS // 2):
        train(net, first, 64, 2048)
    second = adam(net)
    for _ in range(STEPS // 2):
        train(net, second, 64, 2048)
    return first


def activations():
    """Deep, and nearly too large for the GPU."""
    net = model(256, 40)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(STEPS):
        train(net, optimizer, 4096, 256)


def forgotten_item():
    net = model()
    optimizer, losses = adam(net), []
    for _ in range(STEPS):
        train(net, optimizer)
        losses.append(net(torch.randn(512, 1024, device="cuda")).mean())


def pinned_host():
    net = model()
    optimizer, batches = adam(net), []
    for _ in range(STEPS):
        train(net, optimizer)
        batches.append(torch.empty(8 * MB, dtype=torch.uint8, pin_memory=True))


def managed():
    """A table in managed memory that is larger than the GPU."""
    table = ctypes.c_void_p()
    cuda_call("cudaMallocManaged", ctypes.byref(table), ctypes.c_size_t(700 * MB), ctypes.c_uint(1))
    net = model()
    optimizer = adam(net)
    for _ in range(STEPS):
        train(net, optimizer)


def idle_cache():
    """One rare step needs far more, and its segments stay."""
    net = model()
    optimizer = adam(net)
    for i in range(2 * STEPS):
        train(net, optimizer)
        if i == 10:
            with torch.profiler.record_function("loop closure"), torch.no_grad():
                net(torch.randn(16384, 1024, device="cuda"))


def another_process():
    """The test lets another process hold most of the GPU."""
    kept = [take(100)]
    try:
        kept.append(take(1500))
    except torch.OutOfMemoryError:
        print("out of memory")


# ---- healthy programs ----


def steady():
    net = model()
    optimizer = adam(net)
    for _ in range(STEPS):
        train(net, optimizer)


def accumulation():
    net = model()
    optimizer = adam(net)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(4):
            (net(torch.randn(256, 1024, device="cuda")).pow(2).mean() / 4).backward()
        optimizer.step()


def evaluation():
    net = model()
    optimizer = adam(net)
    for i in range(STEPS):
        train(net, optimizer)
        if i % 4 == 3:
            net.eval()
            with torch.no_grad():
                scores = [net(torch.randn(4096, 1024, device="cuda")).mean() for _ in range(4)]
            torch.stack(scores).mean().item()
            net.train()


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(256, 256)

    def forward(self, x, cache):
        cache.append(self.project(x).repeat(8192, 1))
        return torch.cat([part[:1] for part in cache]).mean(0, keepdim=True)


def requests():
    """A cache that grows with each token and is freed with its request."""
    decoder = Decoder().cuda()
    with torch.no_grad():
        for _ in range(8):
            cache, x = [], torch.randn(1, 256, device="cuda")
            for _ in range(12):
                x = decoder(x, cache)


def warm_up():
    """Buffers that are made in the first steps and used by all."""
    net = model()
    optimizer, buffers = adam(net), {}
    for i in range(2 * STEPS):
        if i < 6:
            buffers[i] = take(16)
        train(net, optimizer)


def large_first_batch():
    net = model()
    optimizer = adam(net)
    for i in range(STEPS):
        train(net, optimizer, 8192 if i == 0 else 512)


globals()[sys.argv[1]]()
