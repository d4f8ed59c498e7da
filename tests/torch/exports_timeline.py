# SPDX-License-Identifier: MIT
"""FOLDER DEVICE: trains a small model under torch.profiler, and exports its memory timeline in the
three forms that PyTorch has as JSON. Writes to known.json what PyTorch itself computes of it."""
import json, sys, warnings
import torch
import torch.nn as nn
from torch.profiler import _memory_profiler, profile

folder, device = sys.argv[1:3]
warnings.simplefilter("ignore", FutureWarning)  # exporting timelines is deprecated
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(device)
optimizer = torch.optim.Adam(model.parameters())
with profile(record_shapes=True, profile_memory=True, with_stack=True) as profiler:
    for _ in range(4):
        loss = model(torch.randn(64, 256, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
for ending in "json", "json.gz", "raw.json.gz":
    profiler.export_memory_timeline("%s/timeline.%s" % (folder, ending), device)
timeline = _memory_profiler.MemoryProfileTimeline(profiler._memory_profile())
times, sizes = timeline._coalesce_timeline(device)
names = [getattr(category, "name", "UNKNOWN") for category in _memory_profiler._CATEGORY_TO_INDEX]
with open(folder + "/known.json", "w") as file:
    json.dump({"times": times, "sizes": sizes, "names": names}, file)
