#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A stand-in for PyTorch under the library, in every CPython found here: the code locations that
first call each module, and the Python stacks of allocations and launches."""
import json, os, textwrap
from harness import *
from python_versions import interpreters
from raw_trace import whole

FAKE = BUILD / "tests" / "fake"
PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]

MODEL = """
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.layer = nn.ReLU(), nn.Linear()

    def forward(self, x):
        return self.layer(
            self.norm(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.last = nn.Linear()

    def forward(self, x):
        x = self.blocks(x)
        return self.last(x)
"""
SCRIPT = """
import torch
from model import Net

def main(net):
    for _ in range(3):
        net(torch.tensor(1))

main(Net())
"""


def written(folder, name, text):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def line_of(text, part):
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def under(folder, python, script, *arguments, env=None, options=()):
    return traced(folder, python, *options, script, *arguments, env={"PYTHONPATH": str(FAKE), "PYTHONDONTWRITEBYTECODE": "1", "PPERF_CUPTI": "0", **(env or {})})


def last_part(function):
    """The last part of a function's name, which is qualified from Python 3.11 on."""
    return function.rpartition(".")[2]


def stack_of(record):
    return [(os.path.basename(f["file"]), f["line"], last_part(f["function"])) for f in record.get("python_stack", [])]


def sources(path):
    """{module's name: code location of its first call}. Modules of the same name must have the
    same."""
    found = {}
    for record in dump(path, {"source"}):
        found.setdefault(record["name"], set()).update(stack_of(record))
    return found


def meta(path):
    return info(path)["rows"][0]["meta"]


@case
def each_module_has_the_code_location_that_called_it_first(folder):
    written(folder, "model.py", MODEL)
    script = written(folder, "train.py", SCRIPT)
    call = ("train.py", line_of(SCRIPT, "net(torch"), "main")
    through = ("model.py", line_of(MODEL, "self.blocks(x)"), "forward") # called by nn.Sequential, that by Net
    layer, norm, last = (("model.py", line_of(MODEL, part), "forward") for part in ("self.layer(", "self.norm(x)", "self.last(x)"))
    for python in PYTHONS:
        assert not under(folder, python, script).stderr
        assert meta(folder / "trace.bin")["source.python_stacks"] == "on", python
        found = sources(folder / "trace.bin")
        assert found == {"Net": {call}, "blocks": {through}, "0": {through}, "1": {through}, "layer": {layer}, "norm": {norm}, "last": {last}}, (python, found)
        rows = json.loads(report("tree", folder / "trace.bin", "-f", "json").stdout)["rows"]
        assert {r["source"] for r in rows if r["name"] == "Net"} == {"%s:%d main" % (script, call[1])}, python
        assert b"train.py:%d main" % call[1] in report("tree", folder / "trace.bin", "--sources", "--width", "120", "--min-percent", "0").stdout


@case
def each_code_location_is_recorded_once_however_many_threads_call(folder):
    written(folder, "model.py", MODEL)
    script = written(folder, "threads.py", """
        import threading, torch
        from model import Net

        net = Net()
        def work():
            for _ in range(20):
                net(torch.tensor(1))
        threads = [threading.Thread(target=work) for _ in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    """)
    for python in PYTHONS:
        under(folder, python, script)
        nodes = [r["node"] for r in dump(folder / "trace.bin", {"source"})]
        assert len(nodes) == 9 and len(set(nodes)) == 9, (python, nodes)


ALLOCATES = """
    import ctypes, sys, torch
    cuda, address = ctypes.CDLL(None), ctypes.c_void_p()
    if len(sys.argv) > 1:
        ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)

    class Holder:
        def take(self):
            if len(sys.argv) > 1:
                assert cuda.cudaMalloc(ctypes.byref(address), 4096) == 0 # device
            self.tensor = torch.empty(1, device="cuda") # tensor
    def outer():
        for _ in range(2): [Holder().take() for _ in range(2)] # there
    outer()
"""


def simulated():
    path = BUILD / "cudasim" / "13" / "libcudart.so.13"
    if not path.exists():
        raise Skip("the simulated device is not built: make cudasim")
    return path


def is_taken_by(record, part, file="holder.py"):
    """True if the stack is the program's own code. Lines of the standard library and of PyTorch are
    left out."""
    text = textwrap.dedent(ALLOCATES)
    own = [f for f in stack_of(record) if f[0] == file and f[2] != "<listcomp>"]
    return own == [(file, line_of(text, part), "take"), (file, line_of(text, "# there"), "outer"), (file, len(text.rstrip().splitlines()), "<module>")]


@case
def allocations_say_which_python_code_made_them_where_that_is_enabled(folder):
    script = written(folder, "holder.py", ALLOCATES)
    for python in PYTHONS:
        for setting, wanted in ("alloc", True), ("launch", True), ("off", False):
            for native in "alloc", "off":
                assert not under(folder, python, script, simulated(), env={"PPERF_PYSTACKS": setting, "PPERF_STACKS": native}).stderr
                device = dump(folder / "trace.bin", {"alloc"})
                tensors = [r for r in dump(folder / "trace.bin", {"tensor"}) if r["bytes"] > 0]
                assert len(device) == len(tensors) == 4, (len(device), len(tensors))
                assert all(is_taken_by(r, "# device") == wanted for r in device) and all(is_taken_by(r, "# tensor") == wanted for r in tensors), (python, device)
                assert all(bool(r.get("stack")) == (wanted or native == "alloc") for r in device), (python, device)
                assert len({r.get("stack") for r in tensors}) == 1, tensors
        assert all(("python_stack" in r) == False for r in dump(folder / "trace.bin", {"free"}))


@case
def without_a_setting_large_allocations_have_the_line_of_the_programs_own_code(folder):
    script = written(folder, "holder.py", ALLOCATES + """
    def large(): return torch._C._cuda_malloc(1 << 20) # large
    large()
""")
    lines = {part: line_of(script.read_text(), part) for part in ("# device", "# large")}
    for python in PYTHONS:
        for setting in "own", "":
            for native in "alloc", "off":
                assert not under(folder, python, script, simulated(), env={"PPERF_PYSTACKS": setting, "PPERF_STACKS": native}).stderr
                device, tensors = dump(folder / "trace.bin", {"alloc"}), dump(folder / "trace.bin", {"tensor"})
                large, = [r for r in tensors if r["bytes"] == 1 << 20]
                assert [stack_of(r) for r in device] == [[("holder.py", lines["# device"], "take")]] * 4, (python, device)
                assert stack_of(large) == [("holder.py", lines["# large"], "large")], (python, large)
                assert not any("stack" in r for r in tensors if r is not large), tensors
                mixed = whole(folder / "trace.bin").dictionary["MIXED_STACK"]
                assert {m.stack for m in mixed} == ({r["stack"] for r in device} if native == "alloc" else set()), (python, mixed)


@case
def the_memory_view_tells_python_code_apart(folder):
    script = written(folder, "holder.py", ALLOCATES)
    under(folder, PYTHONS[-1], script, simulated(), env={"PPERF_PYSTACKS": "alloc"})
    shown = report("memory", folder / "trace.bin", "--width", "160").stdout.decode()
    assert "holder.py:%d Holder.take" % line_of(textwrap.dedent(ALLOCATES), "# device") in shown, shown


@case
def what_it_costs_is_said(folder):
    script = written(folder, "holder.py", ALLOCATES)
    under(folder, PYTHONS[-1], script, env={"PPERF_PYSTACKS": "alloc"})
    assert [r["action"] for r in dump(folder / "trace.bin", {"self"})].count("stack") == 4


@case
def a_forked_child_reads_its_own(folder):
    script = written(folder, "forks.py", """
        import os, torch
        from model import Net

        def main(net):
            net(torch.tensor(1))
        def child(net):
            torch.empty(1, device="cuda")
            net(torch.tensor(1))
        net = Net()
        main(net)
        if os.fork():
            assert os.wait()[1] == 0
        else:
            child(net)
    """)
    written(folder, "model.py", MODEL)
    for python in PYTHONS:
        for old in folder.glob("trace*"):
            old.unlink()
        under(folder, python, script, env={"PPERF_PYSTACKS": "alloc", "PPERF_CHILDREN": "all"})
        (trace,) = folder.glob("trace.*.bin")
        (tensor,) = [r for r in dump(trace, {"tensor"}) if r["bytes"] > 0]
        assert [f[2] for f in stack_of(tensor) if f[0] == "forks.py"] == ["child", "<module>"], (python, tensor)
        assert sources(trace)["Net"] == {("forks.py", 6, "main")}, (python, sources(trace))


@case
def a_setting_that_is_none_is_said(folder):
    script = written(folder, "holder.py", ALLOCATES)
    under(folder, PYTHONS[-1], script, env={"PPERF_PYSTACKS": "yes"})
    assert "PPERF_PYSTACKS=yes is not valid" in meta(folder / "trace.bin")["warning.settings"]


@case
def without_python_nothing_is_read(folder):
    script = written(folder, "holder.py", ALLOCATES)
    under(folder, PYTHONS[-1], script, env={"PPERF_PYSTACKS": "alloc", "PPERF_PYTHON": "0"})
    assert meta(folder / "trace.bin")["source.python_stacks"] == "off: PPERF_PYTHON=0 (0)"
    assert not any("python_stack" in r for r in dump(folder / "trace.bin"))


@case
def names_that_are_not_text_come_out_as_they_are(folder):
    script = written(folder, "holder.py", ALLOCATES)
    odd = os.fsencode(folder / "odd") + b"\xff\x1b\xc3\xa4.py"
    os.rename(script, odd)
    under(folder, PYTHONS[-1], os.fsdecode(odd), env={"PPERF_PYSTACKS": "alloc"})
    shown = report("dump", folder / "trace.bin").stdout
    assert rb"odd\xff\x1b" + "ä.py".encode() in shown and b"\x1b" not in shown, shown


main()
