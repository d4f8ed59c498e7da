# SPDX-License-Identifier: MIT
"""exports.py FOLDER: trains a model under torch.profiler in several ways. Writes each trace, and
the profiler's own table of it (key_averages)."""
import json, pathlib, sys
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

torch.set_num_threads(1)
torch.manual_seed(0)
FOLDER = pathlib.Path(sys.argv[1])
WAYS = {
    "plain": {},
    "shapes": {"record_shapes": True, "with_flops": True},
    "memory": {"profile_memory": True},
    "stack": {"with_stack": True},
    "modules": {"with_modules": True, "with_stack": True},
    "everything": {"record_shapes": True, "with_flops": True, "profile_memory": True, "with_stack": True, "with_modules": True},
    "schedule": {"schedule": schedule(wait=1, warmup=1, active=2, repeat=1), "record_shapes": True},
}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8, 10)

    def forward(self, x):
        with record_function("body of it"):
            x = self.body(x)
        return self.head(x.mean((2, 3)))


def train(model, optimizer, steps, profiler):
    for _ in range(steps):
        with record_function("step"):
            loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 3, 16, 16)), torch.zeros(4, dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        profiler.step()


def ns(us):
    return round(us * 1000)


def keep(name, profiler):
    profiler.export_chrome_trace(str(FOLDER / (name + ".json")))
    events = profiler.profiler.kineto_results.events()
    taken = [event.nbytes() for event in events if event.name() == "[memory]"]
    (FOLDER / (name + ".truth")).write_text(json.dumps({
        "memory": [sum(n > 0 for n in taken), sum(n for n in taken if n > 0), sum(n < 0 for n in taken), -sum(n for n in taken if n < 0)],
        "exact": hasattr(next(iter(events)), "start_ns"),  # otherwise times are whole microseconds, rounded differently in file and table
        "python": "with_stack" in WAYS[name] and tuple(map(int, torch.__version__.split(".")[:2])) > (2, 9),  # Python functions are subtracted from self times
        "calls": Counter(event.name() for event in events),
        "rows": {row.key: [row.count, ns(row.cpu_time_total), ns(row.self_cpu_time_total)] for row in profiler.key_averages() if row.key != "[memory]"}}))


model = Net()
optimizer = torch.optim.Adam(model.parameters())
for name, way in WAYS.items():
    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=lambda profiler, name=name: keep(name, profiler), **way) as profiler:
        train(model, optimizer, 5 if "schedule" in way else 2, profiler)
