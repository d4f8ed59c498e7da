# SPDX-License-Identifier: MIT
"""The story that pperf was written for. Memory grows in one rare step (a loop closure with 24 times
as many edges), in one gate of one module. Map points that live long settle in what it leaves. The
pool is fragmented, and a later request fails although enough is free."""
import torch
import torch.nn as nn
import pperf

MB = 1 << 20


class Gates(nn.Module):
    def __init__(self):
        super().__init__()
        self.z, self.q = nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1)

    def forward(self, x, edges, points):
        with pperf.trace("z-gate"):
            z = torch.sigmoid(self.z(x))
        with pperf.trace("q-gate"):
            parts = []
            for edge in range(0, edges, 16):
                parts.append(self.q(x.repeat(min(16, edges - edge), 1, 1, 1)))
            if edges > 16:  # each part becomes map points, which are kept, and a smaller rest
                for number in range(len(parts)):
                    parts[number] = None
                    points.append(torch.empty(2 * MB, dtype=torch.uint8, device="cuda"))
                    parts[number] = torch.empty(13 * MB, dtype=torch.uint8, device="cuda")
                return z
            return torch.tanh(parts[0]).mean(0, keepdim=True) * z


gates, points = Gates().cuda(), []
with torch.no_grad(), pperf.trace("slam"):
    for frame in range(20):
        with pperf.trace(f"track - kf: {frame}"):
            x = torch.randn(1, 64, 64, 64, device="cuda")
            gates(x, 4, points)
            if frame == 13:
                with pperf.trace(f"loop closure - kf: {frame}"):
                    gates(x, 384, points)
    try:
        with pperf.trace("bundle adjustment"):
            torch.empty(100 * MB, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        print("out of memory")
