#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The code locations in the program's own files that first call each module, with PyTorch itself
and without a GPU."""
import json, sys, textwrap
from harness import *

MODEL = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x):
        return x + self.layer(
            self.norm(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.last = nn.Linear(4, 1)

    def forward(self, x):
        x = self.blocks(x)
        return self.last(x)
"""
SCRIPT = """
import torch
from model import Net

def main(net):
    for _ in range(3):
        net(torch.ones(2, 4)).sum().backward()

main(Net())
"""


def written(folder, name, text):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def line_of(text, part):
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def sources(path):
    """{module's name: (last part of the file, line, function)}. Modules of the same name must have
    the same location."""
    found = {}
    for record in dump(path, {"source"}):
        (frame,) = record["python_stack"]
        found.setdefault(record["name"], set()).add((os.path.basename(frame["file"]), frame["line"], frame["function"].rpartition(".")[2]))
    return found


def state(path):
    return info(path)["rows"][0]["meta"].get("source.python_stacks")


@case
def each_module_has_the_code_location_that_called_it_first(folder):
    written(folder, "model.py", MODEL)
    script = written(folder, "train.py", SCRIPT)
    traced(folder, sys.executable, script, timeout=300)
    assert state(folder / "trace.bin") == "on"
    through = ("model.py", line_of(MODEL, "self.blocks(x)"), "forward") # called by nn.Sequential, that by Net
    layer, norm = (("model.py", line_of(MODEL, part), "forward") for part in ("self.layer(", "self.norm(x)"))
    assert sources(folder / "trace.bin") == {
        "Net": {("train.py", line_of(SCRIPT, "net(torch"), "main")}, "blocks": {through}, "0": {through}, "1": {through},
        "layer": {layer}, "norm": {norm}, "last": {("model.py", line_of(MODEL, "self.last(x)"), "forward")}}, sources(folder / "trace.bin")
    rows = json.loads(report("tree", folder / "trace.bin", "-f", "json").stdout)["rows"]
    of = {r["name"]: r.get("source") for r in rows if r["kind"] == "module"}
    assert of["Net"] == "%s:%d main" % (script, line_of(SCRIPT, "net(torch")), of
    assert "train.py:%d main" % line_of(SCRIPT, "net(torch") in report("tree", folder / "trace.bin", "--sources", "--width", "120").stdout.decode()


@case
def each_code_location_is_recorded_once_however_many_threads_call(folder):
    written(folder, "model.py", MODEL)
    script = written(folder, "threads.py", """
        import threading, torch
        from model import Net

        net = Net()
        def work():
            for _ in range(20):
                net(torch.ones(2, 4))
        threads = [threading.Thread(target=work) for _ in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    """)
    traced(folder, sys.executable, script, timeout=300)
    nodes = [r["node"] for r in dump(folder / "trace.bin", {"source"})]
    assert nodes and len(nodes) == len(set(nodes)), nodes


main()
