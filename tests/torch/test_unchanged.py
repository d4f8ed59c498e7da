#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch programs do the same under the library as without it: output, exit status, the events that
a trace function sees, and the figures of PyTorch's allocator. Here are programs that leave the usual
training loop; test_battery.py and test_device_ladder.py have the usual ones."""
import re, sys
from device import *

# At the end it waits for the autograd threads, as without the library a program that ends soon after backward() sometimes aborts.
BEGIN = """
import atexit, gc, os, sys, threading, time, torch
atexit.register(time.sleep, 0.2)
torch.manual_seed(0)
torch.set_num_threads(1)
device = sys.argv[1]
"""
# Sees every event of the main thread in the second call of work(). The first one imports what PyTorch imports late. Objects that a collection frees
# at a time of its own would be seen too.
SEEN = """
work()
seen = []
def trace(frame, event, argument):
    seen.append((os.path.basename(frame.f_code.co_filename), frame.f_lineno, event, frame.f_code.co_name))
    return trace
gc.collect()
gc.disable()
for function in sys.settrace, sys.setprofile:
    function(trace)
    work()
    function(None)
print(len(seen))
print(*seen, sep="\\n")
"""
CHECKPOINT = """
from torch.utils.checkpoint import checkpoint
class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(context, gradient):
        return 2 * gradient * context.saved_tensors[0]
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    def inner(self, x):
        return self.second(torch.relu(self.first(x))) + Square.apply(x)
    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)
blocks = torch.nn.ModuleList(Block() for _ in range(2)).to(device)
optimizer = torch.optim.AdamW(blocks.parameters(), foreach=False)
def work():
    x = torch.ones(4, 8, device=device)
    for block in blocks:
        x = block(x)
    loss = x.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""
CLOSURE = """
model = torch.nn.Linear(8, 1).to(device)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
def closure():
    optimizer.zero_grad()
    loss = (model(torch.ones(4, 8, device=device)) + 1).square().mean()
    loss.backward()
    return loss
def work():
    for _ in range(2):
        print(optimizer.step(closure).item())
"""
EPISODES = """
policy = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for length in 3, 40, 5:
    chosen = []
    for _ in range(length):
        scores = policy(torch.randn(4).to(device)).log_softmax(-1)
        chosen.append(scores[scores.argmax().item()])
    loss = -torch.stack(chosen).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(length, loss.item())
"""
SERVER = """
import asyncio, concurrent.futures
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(device).eval()
two = concurrent.futures.ThreadPoolExecutor(2)
def infer(value):
    with torch.no_grad():
        return model(torch.full((1, 8), value, device=device)).sum().item()
async def main():
    loop = asyncio.get_running_loop()
    print(await asyncio.gather(*[loop.run_in_executor(two, infer, float(i)) for i in range(40)]))
asyncio.run(main())
"""
FAILURE = """
model = torch.nn.Linear(8, 8).to(device)
threading.Thread(target=lambda: model(torch.ones(8, device=device)).missing).start()
[t.join() for t in threading.enumerate() if t is not threading.main_thread()]
model.register_full_backward_hook(lambda *_: sys.exit(3) if sys.argv[2] == "exit" else model.missing)
model(torch.ones(2, 8, device=device, requires_grad=True)).sum().backward()
"""
MEMORY = """
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).to(device)
optimizer, kept, cache = torch.optim.Adam(model.parameters()), [], []
for step in range(20):
    loss = model(torch.randn(4000 if step == 11 else 64 + 7 * step, 64, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(model(torch.randn(64, 64, device=device)).mean())  # with its graph: a leak
    cache.append(torch.empty(77777 * (step % 5 + 1), device=device))
    if step % 3 == 2:
        cache.pop(step % len(cache))
for name, value in torch.cuda.memory_stats().items():
    print(name, value)
"""
BLANK = rb"0x[0-9a-f]+|Thread-\d+ \S+"


def outcome(result):
    """Everything that a user sees of a program."""
    return result.returncode, result.stdout, re.sub(BLANK, b"N", result.stderr)


def same(folder, device, code, *arguments, status=0):
    """Runs the code without the library and with it, on `device`. Fails if the outcome differs, or
    the status is another one. Returns its stdout."""
    arguments = ["-c", code, device, *arguments]
    if device == "cpu":
        bare, under = [runner(folder, sys.executable, *arguments, check=None, timeout=300) for runner in (run, traced)]
    else:
        bare, under = [launch(runner, folder, *arguments, check=None, timeout=300) for runner in (run, traced)]
    assert outcome(bare) == outcome(under), differing(outcome(bare), outcome(under))
    assert under.returncode == status, outcome(under)
    assert (folder / "trace.bin").stat().st_size > 0
    return under.stdout.decode()


def differing(bare, under):
    """The status, and the first lines of stdout and stderr that differ."""
    found = [(bare[0], under[0])]
    for one, other in zip(bare[1:], under[1:]):
        pairs = [pair for pair in zip(one.splitlines() + [b""] * 9, other.splitlines() + [b""] * 9) if pair[0] != pair[1]]
        found.append(pairs[:4])
    return found


WHERE = {"cpu": "the_processor", "cuda": "the_simulated_device"}


def on(devices, name, code, *arguments, status=0):
    for device in devices:
        def program(folder, device=device):
            same(folder, device, BEGIN + code, *arguments, status=status)
        program.__name__ = "%s_on_%s" % (name, WHERE[device])
        case(program)


on(("cpu", "cuda"), "what_a_checkpoint_computes_again_and_how_it_is_traced", CHECKPOINT + SEEN)
on(("cpu", "cuda"), "an_optimizer_with_a_closure_and_how_it_is_traced", CLOSURE + SEEN)
on(("cpu", "cuda"), "episodes_of_any_length", EPISODES)
on(("cpu", "cuda"), "a_server_with_two_threads", SERVER)
on(("cpu",), "an_exception_in_the_backward_pass", FAILURE, "raise", status=1)
on(("cpu",), "sys_exit_in_the_backward_pass", FAILURE, "exit", status=3)


@case
def the_allocator_counts_what_it_counted(folder):
    assert "allocated_bytes.all.peak" in same(folder, "cuda", BEGIN + MEMORY)


main()
