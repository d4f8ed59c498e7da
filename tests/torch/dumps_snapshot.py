# SPDX-License-Identifier: MIT
"""FILE [ENTRIES]: dumps a snapshot of PyTorch's allocator with a history of at most so many events,
and keeps what torch.cuda.memory._snapshot() says of the segments, and the allocator's statistics, in
FILE.json."""
import json, random, sys
import torch

entries = int(sys.argv[2]) if len(sys.argv) > 2 else 100000
torch.cuda.memory._record_memory_history(max_entries=entries, stacks="python")
draw, live = random.Random(7), []
for number in range(400):
    if draw.random() < 0.6 or not live:
        live.append(torch.empty(draw.choice((1000, 100000, 3 << 20, 30 << 20)), dtype=torch.uint8, device="cuda"))
    else:
        del live[draw.randrange(len(live))]
    if number % 150 == 149:
        torch.cuda.empty_cache()
live.append(torch.empty(1000, dtype=torch.uint8, device="cuda"))  # the last operator
torch.cuda.synchronize()
torch.cuda.memory._dump_snapshot(sys.argv[1])
with open(sys.argv[1] + ".json", "w") as file:
    json.dump([torch.cuda.memory._snapshot()["segments"], torch.cuda.memory_stats()], file)
