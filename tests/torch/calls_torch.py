# SPDX-License-Identifier: MIT
"""calls_torch.py EXPECTED: torch.cuda.nvtx without a GPU: nested ranges, start/end across threads, marks, a module's layers."""
import sys, threading
import torch
from torch.cuda import nvtx
from expect import event


def push(name, level):
    event("push", name)
    assert nvtx.range_push(name) == level, "range_push did not return %d" % level


def pop(name, level):
    event("pop", name)
    assert nvtx.range_pop() == level, "range_pop did not return %d" % level


def mark(name):
    event("mark", name)
    nvtx.mark(name)


def annotate(module):
    """Makes every layer a range, as helpers of profilers do."""
    for name, layer in module.named_modules():
        def before(_, __, name=name):
            event("push", name)
            nvtx.range_push(name)

        def after(_, __, ___, name=name):
            event("pop", name)
            nvtx.range_pop()
        layer.register_forward_pre_hook(before)
        layer.register_forward_hook(after)


def other_thread(handle):
    event("end", "crosses threads")
    nvtx.range_end(handle)
    for i in range(200):
        push("thread %d" % i, 0)
        pop("thread %d" % i, 0)


assert torch.version.cuda and not torch.cuda.is_available()
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(16, 4)))
annotate(model)
for step in range(20):
    push("step: %d" % step, 0)
    loss = model(torch.randn(3, 8)).sum()
    push("backward", 1)
    loss.backward()
    pop("backward", 1)
    mark("loss %d é 中" % step)
    pop("step: %d" % step, 0)
event("start", "crosses threads")
handle = nvtx.range_start("crosses threads")
thread = threading.Thread(target=other_thread, args=(handle,))
thread.start()
thread.join()
with_name = nvtx.range("as a context: {}", 7)
event("push", "as a context: 7")
with with_name:
    mark("inside")
    event("pop", "as a context: 7")
sys.stdout.flush()
