# SPDX-License-Identifier: MIT
"""ooms.py WAY: runs out of device memory on the simulated device in a known way, and is killed by
SIGKILL at once. WAY: large, limit, others, fragmentation, leak or threads."""
import os, signal, sys, threading
import torch

MB = 1 << 20


def take(megabytes):
    return torch.empty(megabytes * MB, dtype=torch.uint8, device="cuda")


def large():
    keep = take(100)
    take(4096) # the request
    return keep


def limit():
    torch.cuda.set_per_process_memory_fraction(0.25)
    return [take(40) for _ in range(100)]


def others():
    keep = take(100)
    take(1024)
    return keep


def fragmentation():
    kept = []
    for i in range(400):
        blocks = [take(21 + 2 * (i * 7 % 13)) for _ in range(3)]
        del blocks[1]
        kept.append(torch.empty(2 * MB + 4096 * i, dtype=torch.uint8, device="cuda")) # kept
        del blocks
    return kept


def leak():
    model = torch.nn.Linear(64, 64).cuda()
    optimizer, history = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(100):
        optimizer.zero_grad()
        model(torch.zeros(8, 64, device="cuda")).sum().backward()
        history.append(take(20)) # leaks
        optimizer.step()


def threads():
    inside, over = threading.Barrier(4), threading.Event()
    torch.cuda.init()

    def work(name):
        with torch.profiler.record_function(name), torch.profiler.record_function("inner"):
            inside.wait()
            over.wait()
    for i in range(3):
        threading.Thread(target=work, args=("worker %d" % i,), daemon=True).start()
    inside.wait()
    large()


with torch.profiler.record_function("train"):
    try:
        globals()[sys.argv[1]]()
    except torch.OutOfMemoryError:
        os.kill(os.getpid(), signal.SIGKILL)
sys.exit("there was enough memory")
