# SPDX-License-Identifier: MIT
"""fragmented|spike|pinned: three programs whose memory test_segments.py shows."""
import sys
import torch
import torch.nn as nn

MB = 1 << 20
BYTES = {"dtype": torch.uint8, "device": "cuda"}


def frame(kept, i):
    """A map point that is kept settles in the block of a temporary tensor."""
    temporary = []
    for _ in range(3):
        temporary.append(torch.empty((21 + 2 * (i * 7 % 13)) * MB, **BYTES))
    del temporary[1]
    kept.append(torch.empty(2 * MB + 4096 * i, **BYTES))


def fragmented():
    """Until no gap is large enough for the next temporary tensor."""
    kept = []
    try:
        for i in range(400):
            frame(kept, i)
    except torch.OutOfMemoryError:
        print("out of memory in frame", i)


class Gates(nn.Module):
    def __init__(self):
        super().__init__()
        self.z, self.q = nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1)

    def forward(self, x, edges):
        z = torch.sigmoid(self.z(x))
        q = self.q(x.repeat(edges, 1, 1, 1))
        q = torch.tanh(q).mean(0, keepdim=True)
        return z * q


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = Gates()

    def forward(self, x, edges):
        return self.gates(x, edges)


def spike():
    """One loop closure has 24 times as many edges as any other frame."""
    model = Gru().cuda()
    with torch.no_grad():
        for frame in range(20):
            torch.cuda.nvtx.range_push(f"track - kf: {frame}")
            x = torch.randn(1, 64, 64, 64, device="cuda")
            model(x, 4)
            if frame == 13:
                torch.cuda.nvtx.range_push(f"loop closure - kf: {frame}")
                model(x, 96)
                torch.cuda.nvtx.range_pop()
            torch.cuda.nvtx.range_pop()


def pinned():
    """Each calibration leaves 2 MB in the segment of a temporary tensor of 60 MB."""
    cache = {}
    for i in range(8):
        torch.cuda.nvtx.range_push(f"step {i}")
        temporary = torch.empty(60 * MB, **BYTES)
        del temporary
        cache[i] = torch.empty(2 * MB, **BYTES)
        work = torch.empty((59 + i) * MB, **BYTES)
        del work
        torch.cuda.empty_cache()
        torch.cuda.nvtx.range_pop()


{"fragmented": fragmented, "spike": spike, "pinned": pinned}[sys.argv[1]]()
