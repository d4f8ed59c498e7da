# SPDX-License-Identifier: MIT
"""SEED FILE MODE: allocates and frees tensors of random sizes on two streams. At each of 40 marks
`snap N`, keeps PyTorch's own snapshot of its allocator, and writes all to FILE (test_segments.py)."""
import pickle, random, sys
import torch

seed, out, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3]
SNAPSHOTS, ROUND = 40, 60
KB, MB = 1 << 10, 1 << 20
draw = random.Random(seed)
side = torch.cuda.Stream()
if mode == "gc":
    torch.cuda.set_per_process_memory_fraction(0.9)  # the threshold is a share of this
live, snapshots = [], []


def size():
    return draw.choice([draw.randint(1, 4 * KB), draw.randint(4 * KB, MB), draw.randint(MB, 10 * MB), draw.randint(10 * MB, 64 * MB)])


def allocate():
    stream = side if draw.random() < 0.3 else torch.cuda.current_stream()
    with torch.cuda.stream(stream):
        tensor = torch.empty(size(), dtype=torch.uint8, device="cuda")
    if mode == "record_stream" and draw.random() < 0.2:
        tensor.record_stream(side)
    live.append(tensor)


def capture():
    """A CUDA graph has a private pool of segments."""
    graph, x = torch.cuda.CUDAGraph(), torch.zeros(1000, 1000, device="cuda")
    with torch.cuda.graph(graph):
        y = x * 2
        z = y + 1
    live.extend([y, z])


for number in range(SNAPSHOTS):
    for _ in range(ROUND):
        if draw.random() < 0.55 or not live:
            try:
                allocate()
            except torch.OutOfMemoryError:
                del live[::2]
        else:
            del live[draw.randrange(len(live))]
    if number % 9 == 8:
        torch.cuda.empty_cache()
    if number == 20 and mode == "graph":
        capture()
    torch.cuda.synchronize()
    torch.cuda.nvtx.mark(f"snap {number}")
    snapshots.append(torch.cuda.memory_snapshot())
with open(out, "wb") as file:
    pickle.dump(snapshots, file)
