#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python module pperf in a PyTorch program on the simulated device: a metric of the program
that reads PyTorch's reserved memory is the level that the library records itself, on every path."""
from device import *

SPIKE = '''
import torch, pperf
from pperf import register_metric


class Gru(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.z, self.q = torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, x):
        with pperf.trace("gates"):
            with pperf.trace("z-gate"):
                z = self.z(x)
            with pperf.trace("q-gate"):
                return torch.tanh(self.q(x)) * z


@register_metric("Memory Reserved", "GB")
def memory_reserved():
    return float(torch.cuda.memory_reserved() * 1e-9)


pperf.register_metric("Tensors", "B", torch.cuda.memory_allocated, every="step")
model = Gru().cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for n_keyframes in range(16):
    with pperf.trace("slam"):
        with pperf.trace(f"track - kf: {n_keyframes}"):
            y = model(torch.randn(4, 16, 64, 64, device="cuda"))
            if n_keyframes == 13:
                with pperf.trace(f"loop closure - kf: {n_keyframes}"):
                    edges = torch.randn(96, 16, 64, 64, device="cuda")
                    for step in range(2):
                        with pperf.trace(f"droid - step: {step}"), torch.no_grad():
                            model(edges)
            y.mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch.cuda.memory_reserved())
'''
PATH = ["slam", "track - kf: 13", "loop closure - kf: 13", "droid - step: 0", "Gru", "gates", "q-gate"]


def levels(trace, metric, scale):
    """{label: (level before, level after) in bytes} of the critical tree."""
    rows = json.loads(report("critical", trace, "-m", metric, "-f", "json", "--no-steps").stdout)["rows"]
    return {row["label"]: (round(row["before"] * scale), round(row["after"] * scale)) for row in rows if "before" in row}


@case
def reserved_memory_as_a_metric_is_the_level_that_is_recorded(folder):
    script = folder / "spike.py"
    script.write_text(SPIKE)
    reserved = int(launch(traced, folder, script).stdout)
    trace = folder / "trace.bin"
    of_program, recorded = levels(trace, "Memory Reserved", 1e9), levels(trace, "reserved", 1)
    assert [label for label in PATH if label not in of_program] == [], of_program
    assert {label: of_program[label] for label in PATH} == {label: recorded[label] for label in PATH}, (of_program, recorded)
    assert of_program["slam"][1] == reserved and of_program["q-gate"][1] == reserved, (of_program, reserved)
    samples = [record["value"] for record in dump(trace, {"metric"}) if record["name"] == "Tensors"]
    assert len(samples) == 16 and all(value > 0 for value in samples), samples


@case
def the_same_program_runs_without_the_library(folder):
    script = folder / "spike.py"
    script.write_text(SPIKE)
    result = launch(run, folder, script, env={"PYTHONPATH": str(ROOT / "preload" / "user"), "PYTHONDONTWRITEBYTECODE": "1"})
    assert result.returncode == 0 and int(result.stdout) > 0, result.stderr[-600:]


@case
def a_trace_in_a_compiled_function_gives_the_same_result(folder):
    script = folder / "compiled.py"
    script.write_text('''
import torch, pperf
pperf.register_metric("Level", "", lambda: 1.0)


loss = pperf.register_metric("Loss")


@torch.compile(backend="eager")
def inside(x):
    with pperf.trace("inside"):
        y = torch.relu(x) * 2
    pperf.mark("half")
    loss.push(1.0)
    return y + 1


around = pperf.trace("around")(torch.compile(lambda x: x * 3, backend="eager"))
x = torch.arange(-2.0, 3.0)
for _ in range(3):
    print(inside(x).tolist(), around(x).tolist())
''')
    env = {"PYTHONPATH": str(ROOT / "preload" / "user"), "PYTHONDONTWRITEBYTECODE": "1"}
    bare, under = launch(run, folder, script, env=env), launch(traced, folder, script, env=env)
    assert bare.returncode == 0 and bare.stdout == under.stdout and bare.stdout.count(b"[1.0, 1.0, 1.0, 3.0, 5.0]") == 3, (bare, under.stdout)
    assert b"Dynamo does not know" not in under.stderr, under.stderr[-600:]
    pushed = names(folder / "trace.bin")
    assert pushed.count("inside") == 3 and pushed.count("around") == 3, pushed


main()
