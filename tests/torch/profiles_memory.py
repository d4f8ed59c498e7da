# SPDX-License-Identifier: MIT
"""profiles_memory.py: prints the memory events that the user's own torch.profiler receives: every
size allocated or freed, and how often."""
from collections import Counter
import torch
from torch.profiler import ProfilerActivity, profile

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
x = torch.randn(32, 64)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
    for step in range(5):
        y = model(x).sum()
        y.backward()
        del y
sizes = Counter(e.nbytes() for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]")
assert sum(sizes.values()) > 50 and any(n < 0 for n in sizes), sizes
print(sorted(sizes.items()))
