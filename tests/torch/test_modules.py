#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls of PyTorch modules, with PyTorch itself and without a GPU: their names, that none is lost,
and that the program cannot detect the recording."""
import json, re, sys, textwrap
from harness import *

SCRIPTS = ROOT / "tests" / "torch"


def python(folder, code, *options, env=None, **more):
    """Runs the code under the library."""
    return traced(folder, sys.executable, *options, "-c", textwrap.dedent(code), timeout=300, env=env, **more)


def bare(folder, code, *options, env=None):
    return run(folder, sys.executable, *options, "-c", textwrap.dedent(code), timeout=300, env=env, check=0)


def rows(path):
    """{path of names: calls} of the modules. Operators and others between them are left out."""
    all = json.loads(report("tree", path, "-f", "json", "--no-fold").stdout)["rows"]
    by_id, found = {r["id"]: r for r in all}, {}
    for row in all:
        names, at = [], row
        while at is not None:
            names += [at["name"]] if at["kind"] == "module" else []
            at = by_id.get(at["parent"])
        if row["kind"] == "module":
            key = tuple(reversed(names))
            found[key] = found.get(key, 0) + row["calls"]
    return found


def same(folder, code, *options, env=None, blank=rb"0x[0-9a-f]+|\d{12,}|[WIE]\d{4} [\d:.]+ \d+|[A-Z]+:[-\d: ]+|\[\d{4}-[-\d:, ]+\]"):
    """Fails if the program prints anything else under the library, and returns its output."""
    without, under = bare(folder, code, *options, env=env), python(folder, code, *options, env=env)
    said = [[re.sub(blank, b"N", text) for text in (r.stdout, r.stderr)] for r in (without, under)]
    assert said[0] == said[1], said
    return under.stdout.decode()


def meta(path):
    return info(path)["rows"][0]["meta"]


def is_named_as_pytorch_names_it(folder, model):
    plain = json.loads(run(folder, sys.executable, SCRIPTS / "models.py", model, env={"PLAIN": "1"}, check=0, timeout=300).stdout)
    traced(folder, sys.executable, SCRIPTS / "models.py", model, timeout=300)
    assert rows(folder / "trace.bin") == {tuple(path): calls for path, _, calls in plain}
    assert meta(folder / "trace.bin")["source.torch_modules"] == "on"


for name in "mlp", "transformer", "nested", "convolutional", "recurrent":
    def named(folder, name=name):
        is_named_as_pytorch_names_it(folder, name)
    named.__name__ = "modules_of_a_model_are_named_as_named_modules_says_%s" % name
    case(named)


NET = """
    import torch, torch.nn as nn, threading
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.fc = nn.LayerNorm(8), nn.Linear(8, 8)
        def forward(self, x):
            return x + self.fc(self.norm(x))
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Block(), Block()])
        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    torch.manual_seed(0)
    net, x = Net(), torch.ones(4, 8)
"""
BLOCKS = {("Net", "layers.%d" % i, *rest): 1 for i in range(2) for rest in ((), ("norm",), ("fc",))}


def times(count):
    return {("Net",): count, **{path: count for path in BLOCKS}}


@case
def the_class_of_a_module_is_recorded(folder):
    python(folder, NET + "\n    net(x)")
    raw = (folder / "trace.bin").read_bytes()
    assert all(name in raw for name in (b"LayerNorm", b"Linear", b"Block")), "a class is missing"
    assert meta(folder / "trace.bin")["version.python"].startswith("%d.%d." % sys.version_info[:2])


@case
def recomputed_modules_are_recorded_again_inside_the_backward(folder):
    python(folder, NET + """
    from torch.utils.checkpoint import checkpoint
    checkpoint(net, x, use_reentrant=False).sum().backward()
    """)
    found = {}
    for path, calls in rows(folder / "trace.bin").items():
        inner = max(i for i, name in enumerate(path) if name.startswith("Net"))  # the recomputation is somewhere below
        found[path[inner:]] = calls
    assert found == {**times(1), **{("Net (recompute)", *path[1:]): 1 for path in times(1)}}, found


@case
def what_a_checkpoint_computes_again_is_beside_its_forward_pass(folder):
    python(folder, NET + """
    from torch.utils.checkpoint import checkpoint
    class Layers(Net):
        def loose(self, x):
            return torch.relu(self.layers[1](x)).exp()
        def forward(self, x):
            return checkpoint(self.loose, checkpoint(self.layers[0], x, use_reentrant=False), use_reentrant=False)
    net = Layers()
    net(x).sum().backward()
    """)
    tree = json.loads(report("tree", folder / "trace.bin", "-f", "json").stdout)["rows"]
    names = {r["id"]: r["name"] for r in tree}
    beside = {r["name"]: (names.get(r["parent"]), r.get("calls")) for r in tree if "(recompute)" in r["name"]}
    assert beside == {"layers.* (recompute)": ("Layers", 2), "(recompute)": ("Layers", None)}, beside
    loose = {r["name"] for r in tree if names.get(r["parent"]) == "(recompute)"}
    assert loose == {"aten::relu", "aten::exp"}, loose


@case
def an_exception_closes_the_modules_it_leaves(folder):
    python(folder, NET + """
    class Bad(nn.Module):
        def forward(self, x):
            raise ValueError("boom")
    for _ in range(3):
        try:
            nn.Sequential(net, Bad())(x)
        except ValueError:
            pass
    net(x)
    """)
    found = rows(folder / "trace.bin")
    assert found.pop(("Sequential",)) == 3 and found.pop(("Sequential", "1")) == 3
    assert {k: v for k, v in found.items() if k[0] == "Net"} == times(1), found
    assert info(folder / "trace.bin")["rows"][0].get("left_open", 0) == 0


@case
def what_an_uncaught_exception_prints_is_the_same(folder):
    code = """
    import torch, torch.nn as nn, warnings
    class Bad(nn.Module):
        def forward(self, x):
            for level in range(1, 6):
                warnings.warn("once %d" % level, stacklevel=level)
            x.missing
    nn.Sequential(nn.ReLU(), nn.Sequential(Bad()))(torch.ones(1))
    """
    without = run(folder, sys.executable, "-c", textwrap.dedent(code), check=1)
    under = python(folder, code, check=1)
    assert without.stderr == under.stderr and b"_wrapped_call_impl" in under.stderr, (without.stderr, under.stderr)


@case
def recursion_goes_as_deep_as_it_went(folder):
    assert int(same(folder, """
    import torch
    class Deep(torch.nn.Module):
        depth = 0
        def forward(self, x):
            Deep.depth += 1
            return self(x)
    try:
        Deep()(0)
    except RecursionError:
        print(Deep.depth)
    """)) > 100


@case
def sixty_four_threads_are_recorded_each_by_itself(folder):
    python(folder, NET + """
    torch.set_num_threads(1)
    all = [threading.Thread(target=lambda: [net(x) for _ in range(20)]) for _ in range(64)]
    [t.start() for t in all]
    [t.join() for t in all]
    """)
    assert rows(folder / "trace.bin") == times(64 * 20)


@slow
def modules_that_come_and_go_leave_nothing_behind(folder):
    out = python(folder, NET + """
    import resource
    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    def work(count):
        for _ in range(count):
            one = Net()
            one(x)
            net.layers[1] = Block()
            net(x)
            nn.ReLU()(x)
    work(200)
    before = peak()
    work(600)
    print(peak() - before)
    """).stdout
    assert int(out) < 6000, "%d KiB more" % int(out)
    found = rows(folder / "trace.bin")
    assert found.pop(("ReLU",)) == 800 and found == times(1600), found


@case
def ten_thousand_modules_cost_what_ten_times_a_thousand_do(folder):
    """The first call, which finds the names, compared with a bare traversal of the model."""
    out = python(folder, """
    import gc, time, torch, torch.nn as nn
    class Same(nn.Module):
        def forward(self, x):
            return x
    class Each(nn.Module):
        def __init__(self, *parts):
            super().__init__()
            self.parts = nn.ModuleList(parts)
        def forward(self, x):
            for part in self.parts:
                part(x)
            return x
    def first(blocks):
        model = Each(*[Each(*[Same() for _ in range(9)]) for _ in range(blocks)])
        start = time.process_time()
        model(0)
        return time.process_time() - start
    gc.disable()
    first(10)
    print(min(first(100) for _ in range(5)), min(first(1000) for _ in range(3)))
    """).stdout
    small, large = map(float, out.split())
    assert large < 40 * small and large < 2, (small, large)


@case
def wrappers_keep_their_raw_names(folder):
    python(folder, NET + """
    torch.compile(net, backend="eager")(x)
    nn.DataParallel(net)(x)
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    checkpoint_wrapper(net)(x)
    """)
    found = rows(folder / "trace.bin")
    assert ("OptimizedModule", "_orig_mod") in found, found
    assert ("DataParallel", "module", "layers.0", "fc") in found, found
    assert ("CheckpointWrapper", "_checkpoint_wrapped_module", "layers.1", "norm") in found, found


@case
def scripted_and_traced_models_are_one_row(folder):
    python(folder, NET + """
    torch.jit.trace(net, x)(x)
    """)
    assert ("TopLevelTracedModule",) in rows(folder / "trace.bin"), rows(folder / "trace.bin")


COUNTERS = """
    import torch._dynamo, warnings
    from torch._dynamo.utils import counters
    class Breaks(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.fc, self.i = nn.Linear(8, 8), i
        def forward(self, x):
            y = self.fc(x)
            torch._dynamo.graph_break()
            return torch.relu(y) + self.i
    model = nn.Sequential(*[Breaks(i) for i in range(20)])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        compiled = torch.compile(model, backend="eager")
        for size in 2, 2, 3, 4:
            compiled(torch.ones(size, 8))
        torch.compile(net, backend="eager", fullgraph=True)(x)
        other = Net()
        other.compile(backend="aot_eager", fullgraph=True)
        other(x)
        torch.export.export(net, (x,))
    print({k: dict(v) for k, v in counters.items() if k in ("stats", "frames", "graph_break", "unimplemented", "recompiles")}, [str(w.message) for w in warned])
"""


@slow
def the_compiler_counts_what_it_counted(folder):
    same(folder, NET + COUNTERS, env={"TORCH_LOGS": "recompiles,graph_breaks", "TORCH_LOGS_FORMAT": "%(message)s"})
    found = rows(folder / "trace.bin")
    assert sum(n for path, n in found.items() if path[-1] == "fc" and "OptimizedModule" in path) == 0, "a module inside a compiled region"
    assert any(path[-1] == "_orig_mod" for path in found), found


@slow
def the_compiler_sees_nothing_where_it_was_loaded_before_the_import_ended(folder):
    """A device's plug-in is loaded at the end of the import, and this one loads the compiler."""
    (folder / "early-1.dist-info").mkdir()
    (folder / "early-1.dist-info" / "METADATA").write_text("Name: early\nVersion: 1\n")
    (folder / "early-1.dist-info" / "entry_points.txt").write_text("[torch.backends]\nearly = early:start\n")
    (folder / "early.py").write_text("def start():\n    import torch._dynamo\n    assert not hasattr(torch.nn.Module.__call__, '__wrapped__')\n    print('early')\n")
    said = same(folder, NET + COUNTERS, env={"PYTHONPATH": str(folder), "TORCH_LOGS_FORMAT": "%(message)s"})
    if not said.startswith("early"):
        raise Skip("this PyTorch has no plug-ins")


@slow
def hooks_inside_a_compiled_region_are_compiled_as_ever(folder):
    same(folder, NET + """
    import torch._dynamo
    from torch._dynamo.utils import counters
    seen = []
    net.layers[0].fc.register_forward_hook(lambda m, a, out: out * 2)
    net.layers[1].register_forward_pre_hook(lambda m, a: (a[0] + 1,))
    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net
        def forward(self, x):
            return self.net.__call__(x) + nn.Module.__call__(self.net, x)
    for model in net, Calls():
        print(torch.compile(model, backend="eager", fullgraph=True)(x).sum().item())
        print(torch.compile(lambda x: model(x), backend="eager", fullgraph=True)(x).sum().item())
    print(dict(counters["stats"]), dict(counters["frames"]))
    """)


@slow
def the_users_profilers_see_what_they_saw(folder):
    """Except the search for the name of a module that is called for the first time."""
    same(folder, NET + """
    import cProfile, pstats, re
    from torch.profiler import profile
    net(x)
    with profile(with_stack=True, with_modules=True, record_shapes=True) as p:
        net(x).sum().backward()
    def walk(event, depth=0):
        try:
            yield depth, re.sub(r"^torch/nested/_internal/\w+\.py\(0\): .*", "forgotten", event.name)
        except UnicodeDecodeError:
            yield depth, "forgotten"  # by 2.5, with us and without: these names are what lies there by now
        for child in event.children:
            yield from walk(child, depth + 1)
    for root in p.profiler.kineto_results.experimental_event_tree():
        for depth, name in walk(root):
            print(" " * depth, re.sub("0x[0-9a-f]+|object at .*", "", name))
    c = cProfile.Profile()
    c.runcall(net, x)
    print(sorted((name, stat[:2]) for name, stat in pstats.Stats(c).stats.items() if "_lsprof" not in name[2]))
    """)


@case
def fork_spawn_and_forkserver_workers_work_and_say_nothing(folder):
    (folder / "load.py").write_text(textwrap.dedent("""
    import sys, torch
    from torch.utils.data import DataLoader, Dataset
    class Data(Dataset):
        def __init__(self):
            self.model = torch.nn.Sequential(torch.nn.Linear(4, 4))
        def __len__(self):
            return 32
        def __getitem__(self, i):
            with torch.no_grad():
                return self.model(torch.full((4,), float(i)))
    if __name__ == "__main__":
        torch.manual_seed(0)
        for way in "fork", "spawn", "forkserver":
            print(sum(b.sum().item() for b in DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context=way)))
    """))
    without = run(folder, sys.executable, "-W", "error", "load.py", check=0, timeout=300)
    under = traced(folder, sys.executable, "-W", "error", "load.py", timeout=300)
    assert (without.stdout, without.stderr) == (under.stdout, under.stderr), (without, under)


@case
def a_forked_worker_that_only_computes_leaves_no_file(folder):
    code = NET + """
    import os
    for _ in range(2):
        if not os.fork():
            net(x)
            os._exit(0)
        os.wait()
    net(x)
    """
    python(folder, code)
    assert [t.name for t in traces(folder)] == ["trace.bin"] and rows(folder / "trace.bin") == times(1)
    python(folder, code, env={"PPERF_CHILDREN": "all"})
    assert len([t for t in traces(folder) if t.suffix == ".bin"]) == 3, traces(folder)
    for trace in traces(folder):
        assert trace.suffix != ".bin" or rows(trace) == times(1), trace


@case
def isolated_python_is_recorded_too(folder):
    site = [p for p in sys.path if p.endswith("site-packages")][0]
    python(folder, "import sys; sys.path.insert(0, %r)\n" % site + textwrap.dedent(NET) + "net(x)", "-I", "-S", "-E", "-W", "error")
    assert rows(folder / "trace.bin") == times(1)


@case
def without_modules_there_are_operators_only(folder):
    for setting, source in ("PPERF_MODULES", "off: PPERF_MODULES=0 (0)"), ("PPERF_PYTHON", "off: PPERF_PYTHON=0 (0)"):
        for left in traces(folder):
            left.unlink()
        out = python(folder, NET + "\n    net(x); print(hasattr(nn.Module.__call__, '__wrapped__'))", env={setting: "0"}).stdout
        assert out == b"False\n" and rows(folder / "trace.bin") == {}
        assert meta(folder / "trace.bin")["source.torch_modules"] == source, meta(folder / "trace.bin")


TRACED = NET + """
    import os, sys
    seen = []
    def trace(frame, event, argument):
        seen.append((os.path.basename(frame.f_code.co_filename), frame.f_lineno, event, frame.f_code.co_name))
        return trace
    class Bad(nn.Module):
        def forward(self, x):
            raise ValueError("boom")
    def work(bad):
        net(x).sum().backward()
        try:
            bad(x)
        except ValueError as error:
            at = error.__traceback__.tb_next
            print(at.tb_lineno, at.tb_frame.f_lineno)
    for function in sys.settrace, sys.setprofile:
        %s
        function(trace)
        work(Bad())
        function(None)
    print(*seen, sep="\\n")
"""


@case
def a_trace_function_sees_no_event_and_no_line_of_ours(folder):
    same(folder, TRACED % "work(Bad())")


@case
def first_calls_are_hidden_from_trace_functions(folder):
    if sys.version_info < (3, 11):
        raise Skip("this Python cannot hide a call from trace functions")
    same(folder, TRACED % "pass")


main()
