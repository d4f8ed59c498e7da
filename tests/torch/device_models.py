# SPDX-License-Identifier: MIT
"""device_models.py NAME: trains a small model on cuda for some steps, as unmodified scripts do.
After each step it prints the memory that PyTorch reports as allocated and reserved. The empty range
"levels" marks these points in the trace."""
import os, sys, time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

STEPS, BATCH, WIDTH, CLASSES = 4, 32, 256, 16
DEVICE = "cuda"


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*(part for _ in range(3) for part in (nn.Linear(WIDTH, WIDTH), nn.GELU())))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.head(self.body(x))


class Attention(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, depth=3, again=False):
        super().__init__()
        self.again, self.embed = again, nn.Embedding(64, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(depth))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.again else layer(x)
        return self.head(x.mean(1))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()) for _ in range(2))
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(WIDTH, WIDTH, num_layers=2, batch_first=True), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def images():
    return torch.randn(BATCH, 3, 32, 32, device=DEVICE)


def words():
    return torch.randint(64, (BATCH, 64), device=DEVICE)


def rows():
    return torch.randn(BATCH, WIDTH, device=DEVICE)


def training(model, inputs, optimizer=lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9)):
    model, loss = model.to(DEVICE), nn.CrossEntropyLoss()
    optimizer, inputs = optimizer(model.parameters()), inputs()
    targets = torch.zeros(BATCH, dtype=torch.long, device=DEVICE)

    def step():
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()
    return step


def amp():
    scaler = torch.amp.GradScaler(DEVICE) if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()
    model, loss = Transformer().to(DEVICE), nn.CrossEntropyLoss()
    optimizer, inputs, targets = torch.optim.AdamW(model.parameters()), words(), torch.zeros(BATCH, dtype=torch.long, device=DEVICE)

    def step():
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.float16):
            value = loss(model(inputs), targets)
        scaler.scale(value).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return step


def accumulation():
    model, loss = Mlp().to(DEVICE), nn.CrossEntropyLoss()
    optimizer, inputs, targets = torch.optim.AdamW(model.parameters()), rows(), torch.zeros(BATCH, dtype=torch.long, device=DEVICE)

    def step():
        optimizer.zero_grad()
        for _ in range(4):
            (loss(model(inputs), targets) / 4).backward()
        optimizer.step()
    return step


def streams():
    """Two branches on separate CUDA streams, joined by events."""
    left, right, loss = Mlp().to(DEVICE), Mlp().to(DEVICE), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD([*left.parameters(), *right.parameters()], lr=0.01)
    side, inputs, targets = torch.cuda.Stream(), rows(), torch.zeros(BATCH, dtype=torch.long, device=DEVICE)

    def step():
        optimizer.zero_grad()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            second = right(inputs)
        first = left(inputs)
        torch.cuda.current_stream().wait_stream(side)
        second.record_stream(torch.cuda.current_stream())
        loss(first + second, targets).backward()
        optimizer.step()
    return step


def loader():
    data = torch.utils.data.TensorDataset(torch.zeros(BATCH * STEPS * 2, WIDTH), torch.zeros(BATCH * STEPS * 2, dtype=torch.long))
    batches = iter(torch.utils.data.DataLoader(data, BATCH, shuffle=True, pin_memory=True, num_workers=2))
    model, loss = Mlp().to(DEVICE), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step():
        inputs, targets = (part.to(DEVICE, non_blocking=True) for part in next(batches))
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()
    return step


def graph():
    """A whole step, captured once and replayed."""
    model, loss = Mlp().to(DEVICE), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    inputs, targets = rows(), torch.zeros(BATCH, dtype=torch.long, device=DEVICE)

    def whole():
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            whole()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        whole()
    return captured.replay


def compiled():
    return training(torch.compile(Mlp()), rows, torch.optim.AdamW)


class Halves(nn.Module):
    """A model that is too large for one device: half of it on each."""
    def __init__(self):
        super().__init__()
        self.first, self.second = Mlp().body.to("cuda:0"), Mlp().to("cuda:1")

    def forward(self, x):
        return self.second(self.first(x).to("cuda:1"))


def two_devices():
    model, loss = Halves(), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters())
    inputs, targets = rows(), torch.zeros(BATCH, dtype=torch.long, device="cuda:1")

    def step():
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()
        levels("second half", 1)
    return step


def oom():
    """Each step keeps the results of the one before, in a list that grows."""
    model, kept = Mlp().to(DEVICE), []
    inputs = torch.randn(64 * BATCH, WIDTH, device=DEVICE)

    def step():
        kept.append(model.body(inputs))
        kept.append(model.body[0](inputs))
    return step


WORK = {
    "mlp": lambda: training(Mlp(), rows),
    "transformer": lambda: training(Transformer(), words, torch.optim.AdamW),
    "bfloat16": lambda: training(Transformer().to(torch.bfloat16), words, torch.optim.AdamW),
    "convolutional": lambda: training(Convolutional(), images),
    "recurrent": lambda: training(Recurrent(), lambda: torch.randn(BATCH, 16, WIDTH, device=DEVICE)),
    "amp": amp,
    "foreach": lambda: training(Mlp(), rows, lambda p: torch.optim.AdamW(p, foreach=True)),
    "fused": lambda: training(Mlp(), rows, lambda p: torch.optim.AdamW(p, fused=True)),
    "accumulation": accumulation,
    "checkpointing": lambda: training(Transformer(again=True), words, torch.optim.AdamW),
    "streams": streams,
    "loader": loader,
    "graph": graph,
    "compiled": compiled,
    "two_devices": two_devices,
    "oom": oom,
}


def levels(step, device=None):
    with torch.profiler.record_function("levels of 1" if device else "levels"):
        pass
    print("%s %s: %s %d reserved %d" % ("of" if device else "step", step, "holds" if device else "allocated",
                                        torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)), flush=True)


def train(step, steps=STEPS):
    for number in range(steps):
        step()
        levels(number)
    torch.cuda.synchronize()


def until_out_of_memory(step):
    try:
        train(step, 1000)
    except torch.cuda.OutOfMemoryError as error:
        levels(-1)
        print(str(error).split(". ")[0])


def distributed(rank, world, file):
    import torch.distributed as dist
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", store=dist.FileStore(file, world), rank=rank, world_size=world)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Mlp().to(DEVICE), device_ids=[rank])
    train(training(model, rows, torch.optim.AdamW))
    dist.destroy_process_group()


def main():
    torch.manual_seed(0)
    name = sys.argv[1]
    if name == "distributed":
        distributed(int(os.environ["RANK"]), 2, sys.argv[2])
        return
    step = WORK[name]()
    (until_out_of_memory if name == "oom" else train)(step)


if __name__ == "__main__":
    main()
    time.sleep(0.2)  # autograd's thread releases its objects: doing so while Python 3.11 ends aborts the process
