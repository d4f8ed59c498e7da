#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A stand-in for PyTorch under the library (tests/torch/fake): operators, backward nodes and
modules are recorded whatever the layout of PyTorch's objects. The program cannot detect it, however
it imports, forks or ends."""
import os, re, shutil, sys, sysconfig, textwrap
import reference_decoder as decoder
from harness import *
from torch_trace import *

FAKE = BUILD / "tests" / "fake"
PYTHON = os.path.realpath(sys.executable)
LINKED = "sequence %d, forward thread %d, asynchronous %s, "

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(), nn.ReLU()) for _ in range(2)])

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return x.sum()

net = Net()
"""
TRAIN = NET + """
optimizer = torch.optim.SGD(net.parameters())
for _ in range(2):
    optimizer.zero_grad()
    loss = net(torch.tensor(1))
    loss.backward()
    optimizer.step()
print(loss.item())
"""


def arguments(code, *options, python=PYTHON):
    return (python, *options, "-c", textwrap.dedent(code))


def environment_of(env, package=FAKE):
    return {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}


def alike(folder, code, *options, env=None, package=FAKE, python=PYTHON, check=0):
    """Runs the code without and with the library, fails if output or status differ, and returns the
    second output. Warnings are errors."""
    command = arguments(code, "-W", "error", *options, python=python)
    bare = run(folder, *command, env=environment_of(env, package), check=check)
    under = traced(folder, *command, env=environment_of(env, package), check=check)
    assert (bare.stdout, bare.stderr) == (under.stdout, under.stderr), (bare.stdout, under.stdout, bare.stderr[-900:], under.stderr[-900:])
    return under.stdout.decode()


def traced_net(folder, code=TRAIN, env=None, **more):
    alike(folder, code, env=env, **more)
    assert losses(folder / "trace.bin") == {}, losses(folder / "trace.bin")
    return Trace(folder / "trace.bin")


@case
def operators_stand_in_the_modules_that_ran_them(folder):
    trace = traced_net(folder, NET + "net(torch.tensor(1))")
    assert trace.tree() == """
Net
  embed
    aten::linear
      aten::t
      aten::addmm
  layers.0
    0
      aten::linear
        aten::t
        aten::addmm
    1
      aten::relu
  layers.1
    0
      aten::linear
        aten::t
        aten::addmm
    1
      aten::relu
  aten::sum
""".strip().splitlines(), trace.tree()
    assert [p.detail for p in trace.calls(MODULE)] == ["Net", "Linear", "Sequential", "Linear", "ReLU", "Sequential", "Linear", "ReLU"]
    assert trace.is_balanced()


def accumulations_follow(linked):
    """The number of AccumulateGrad nodes. Each belongs to the function that ran before it."""
    count, last = 0, None
    for name, path in linked:
        if name == "torch::autograd::AccumulateGrad":
            assert path == last and path, linked
            count += 1
        last = path
    return count


@case
def each_backward_node_knows_the_operator_that_made_it(folder):
    trace = traced_net(folder)
    linked = trace.linked("torch::autograd::AccumulateGrad")
    step = [("SumBackward0", ("Net", "aten::sum"))]
    for layer in "layers.1", "layers.0":
        step += [("ReluBackward0", ("Net", layer, "1", "aten::relu")), ("AddmmBackward0", ("Net", layer, "0", "aten::linear", "aten::addmm")),
                 ("TBackward0", ("Net", layer, "0", "aten::linear", "aten::t"))]
    step += [("AddmmBackward0", ("Net", "embed", "aten::linear", "aten::addmm")), ("TBackward0", ("Net", "embed", "aten::linear", "aten::t"))]
    assert linked == step * 2, linked
    assert accumulations_follow(trace.linked()) == 12
    assert [p.name for p in trace.calls(OPTIMIZER)] == ["Optimizer.zero_grad#SGD.zero_grad", "Optimizer.step#SGD.step"] * 2
    assert trace.is_balanced() and "torch.unlinked" not in facts(folder / "trace.bin")


@case
def a_backward_pass_on_a_thread_of_its_own_is_linked_too(folder):
    trace = traced_net(folder, NET.replace("nn.Linear()", "nn.Linear('cuda')") + "loss = net(torch.tensor(1, device='cuda'))\nloss.backward()")
    links = trace.linked("torch::autograd::AccumulateGrad")
    assert len(links) == 9 and all(path for _, path in links), links
    assert len({r["tid"] for r in trace.records}) == 2


@case
def what_is_computed_again_has_nodes_of_its_own(folder):
    code = NET + "from torch.utils import checkpoint\ncheckpoint(net, torch.tensor(1, requires_grad=True)).backward()"
    trace = traced_net(folder, code)
    again = [trace.path(p.id) for p in trace.calls(MODULE) if p.name == "Net"]
    assert again == [("Net",), ("autograd::engine::evaluate_function: SumBackward0", "SumBackward0", "Net")], again
    assert all(path for _, path in trace.linked("torch::autograd::AccumulateGrad")), trace.linked()


@case
def the_layout_of_PyTorch_s_objects_is_found_out(folder):
    known = {"new": ("on", LINKED % (200, 304, "320"), "1"), "old": ("on", LINKED % (176, 280, "296"), "0"),
             "without-kwinputs": ("on", LINKED % (200, 248, "264"), "1"), "moved": ("on", LINKED % (208, 264, "not 0"), "1"),
             "hidden": ("partial: backward is not linked to forward: no offset holds the sequence number", "", "1")}
    for layout, (source, said, abi) in known.items():
        for release in None, "2.1.0":
            trace = traced_net(folder, env={"FAKE_LAYOUT": layout, "FAKE_VERSION": release or "2.9.0"})
            found = facts(folder / "trace.bin")
            assert found["source.torch_ops"] == source and found.get("torch.layout", "").startswith(said) and found["torch.abi"] == abi, found
            linked = trace.linked("torch::autograd::AccumulateGrad")
            assert len(linked) == 18 and all((path is not None) == (layout != "hidden") for _, path in linked), (layout, release, linked)


@case
def nothing_of_the_measuring_is_seen(folder):
    code = """
        import threading, torch
        print(torch._C._thread_id(), torch._C._peek(), threading.active_count(), torch.ones(1, requires_grad=True).grad_fn)
        print(torch._C._memory(), torch._C._heard())
    """
    assert alike(folder, code).startswith("1 0 1 None")
    assert Trace(folder / "trace.bin").tree() == ["aten::ones"]


@case
def a_PyTorch_without_the_symbols_still_has_modules(folder):
    package = folder / "package"
    shutil.copytree(FAKE / "torch", package / "torch", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(FAKE / "bare" / "libtorch_cpu.so", package / "torch" / "lib")
    trace = traced_net(folder, package=package)
    assert {p.kind for p in trace.calls()} == {MODULE} and len(trace.calls()) == 16
    assert facts(folder / "trace.bin")["source.torch_ops"] == "off: this PyTorch has no known callback interface (1)"


@case
def a_PyTorch_that_cannot_compute_still_has_its_operators(folder):
    trace = traced_net(folder, "import torch\ntorch._C._op('aten::it', 0, -1, 0, lambda: None)", env={"FAKE_TENSORS": "no"})
    assert trace.tree() == ["aten::it"], trace.tree()
    assert facts(folder / "trace.bin")["source.torch_ops"] == "partial: backward is not linked to forward: the test operator was not observed"


@case
def compilers_are_asked_to_skip_our_code_in_the_way_they_offer(folder):
    code = "import torch\nprint(bool(torch._C._dynamo.eval_frame.skipped), torch.nn.Module.__call__.__qualname__)"
    for kind, there in ("skip_code", 1), ("strategy", 1), ("none", 0):
        for call in None, "other":
            env = environment_of({"FAKE_DYNAMO": kind, "FAKE_CALL": call} if call else {"FAKE_DYNAMO": kind})
            name = "Module._other_call" if call else "Module._wrapped_call_impl"
            assert traced(folder, *arguments(code), env=env).stdout.decode() == "%s %s\n" % (bool(there), name)
            modules = traced_net(folder, NET + "net(torch.tensor(1))", env={k: env[k] for k in env if k.startswith("FAKE")}).calls(MODULE)
            assert len(modules) == 8 * there, (kind, call, modules)
    assert facts(folder / "trace.bin")["source.torch_modules"] == "off: this PyTorch's compiler cannot be made to skip pperf's code (2)"


@case
def an_exception_closes_what_it_leaves(folder):
    code = NET + """
class Bad(nn.Module):
    def forward(self, x):
        raise ValueError("boom")

net.layers._modules["1"] = Bad()
for _ in range(2):
    try:
        net(torch.tensor(1))
    except ValueError as error:
        print(error, len(error.__traceback__.tb_frame.f_code.co_name))
try:
    torch._C._op("aten::raises", 0, -1, 0, lambda: 1 / 0)
except ZeroDivisionError as error:
    print(error)
torch.ones(1)
"""
    trace = traced_net(folder, code)
    assert trace.is_balanced() and trace.tree()[-2:] == ["aten::raises", "aten::ones"], trace.tree()


@case
def an_import_that_fails_fails_as_before(folder):
    for env in {"FAKE_IMPORT_FAILS": "1"}, {"FAKE_INIT_FAILS": "1"}:
        code = """
            import sys
            for _ in range(2):
                try:
                    import torch
                    print("imported")
                except BaseException as error:
                    print(type(error).__name__, error, sys.exc_info()[2].tb_next is None, sorted(m for m in sys.modules if m.startswith("torch")))
        """
        alike(folder, code, env=env)
        alike(folder, "import torch", env=env, check=1)


@case
def an_interpreter_that_takes_nothing_from_its_surroundings(folder):
    alike(folder, "import sys; sys.path.append(%r)\n" % str(FAKE) + TRAIN, "-I", "-S", "-E")
    assert len(Trace(folder / "trace.bin").calls(MODULE)) == 16


@case
def a_program_that_is_not_Python_but_runs_it(folder):
    library = os.path.join(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or "")
    if ".so" not in library or not os.path.exists(library):
        raise Skip("this Python has no shared library")
    env = environment_of({"PYTHONHOME": sys.base_prefix})
    bare, under = [how(folder, "embeds_python", library, TRAIN, env=env, check=0) for how in (run, traced)]
    assert (bare.stdout, bare.stderr) == (under.stdout, under.stderr) and under.stdout == b"5.944\n", (bare, under)
    trace = Trace(folder / "trace.bin")
    assert len(trace.calls(MODULE)) == 16 and all(path for _, path in trace.linked("torch::autograd::AccumulateGrad")) and trace.is_balanced()


@case
def a_virtual_environment(folder):
    run(folder, PYTHON, "-m", "venv", "--without-pip", folder / "venv", check=0)
    site = next((folder / "venv").glob("lib/python*/site-packages"))
    (site / "torch").symlink_to(FAKE / "torch")
    alike(folder, TRAIN, env={"PYTHONPATH": ""}, python=folder / "venv" / "bin" / "python")
    assert len(Trace(folder / "trace.bin").calls(MODULE)) == 16


@case
def every_Python_that_is_here(folder):
    others = [shutil.which("python3.%d" % minor) for minor in range(9, 20)]
    folders = sorted(os.path.realpath(path) for path in filter(None, others))
    roots = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
    folders += [os.path.join(roots, v, "bin", "python3") for v in (os.listdir(roots) if os.path.isdir(roots) else []) if re.match(r"3\.(9|1\d)\.\d+$", v)]
    tried = set()
    for python in folders:
        answer = run(folder, python, "-c", "import sys; print(*sys.version_info[:2])") if os.access(python, os.X_OK) and "/shims/" not in python else None
        if not answer or answer.returncode or answer.stdout in tried:
            continue
        tried.add(answer.stdout)
        trace = traced_net(folder, python=python)
        assert len(trace.calls(MODULE)) == 16 and all(path for _, path in trace.linked("torch::autograd::AccumulateGrad")), python
    assert tried


@case
def processes_that_are_forked_and_spawned(folder):
    code = NET + """
import multiprocessing, os

def work(x, q):
    q.put(net(torch.tensor(x)).item())

if __name__ == "__main__":
    print(net(torch.tensor(1)).item())
    for how in "fork", "spawn", "forkserver":
        context = multiprocessing.get_context(how)
        queue = context.SimpleQueue()
        process = context.Process(target=work, args=(2, queue))
        process.start()
        print(queue.get())
        process.join()
        print(how, process.exitcode)
"""
    (folder / "program.py").write_text(code)
    for children in "gpu", "all":
        results = [how(folder, PYTHON, "-W", "error", folder / "program.py", env=environment_of({"PPERF_CHILDREN": children}), check=0) for how in (run, traced)]
        assert (results[0].stdout, results[0].stderr) == (results[1].stdout, results[1].stderr), results
        for trace in traces(folder):
            assert losses(trace) == {}, (trace, losses(trace))
        modules = [len(Trace(t).calls(MODULE)) for t in traces(folder)]
        assert sorted(modules, reverse=True)[0] == 8, modules
        for trace in traces(folder):
            trace.unlink()


@case
def an_operation_may_end_on_another_thread(folder):
    code = """
        import threading, torch
        torch.ones(1)
        def end(which):
            thread = threading.Thread(target=torch._C._end, args=(which,))
            thread.start()
            thread.join()
        end(torch._C._begin("nccl:all_reduce", 7))
        torch.ones(1)
        end(torch._C._begin("gloo:broadcast", 7))
    """
    for layout in "new", "old", "moved", "hidden":
        trace = traced_net(folder, code, env={"FAKE_LAYOUT": layout})
        assert trace.tree() == ["aten::ones", "aten::ones"] and trace.is_balanced(), (layout, trace.tree())
        kinds = [(r["kind"], r["name"]) for r in dump(folder / "trace.bin", {"start", "end"})]
        assert [name for kind, name in kinds if kind == "start"] == ["nccl:all_reduce", "gloo:broadcast"] and len(kinds) == 4, (layout, kinds)


@case
def an_end_that_comes_when_the_process_is_ending(folder):
    code = """
        import atexit, torch
        open = torch._C._begin("record_function", 7)
        atexit.register(torch._C._end, open)
        torch.ones(1)
        class Late:
            def __del__(self, op=torch._C._op):
                op("aten::late", 0, -1, 0, lambda: None)
        torch._late = Late()
    """
    alike(folder, code)
    assert "aten::ones" in names(folder / "trace.bin")


@case
def a_thousand_threads(folder):
    trace = traced_net(folder, "import torch\ntorch._C._threads(1000, 5)")
    assert trace.tree().count("aten::outer") == 5000 and trace.tree().count("  aten::inner") == 5000 and trace.is_balanced()


@case
def no_thread_of_ours_is_there_when_the_program_forks(folder):
    """CPython from 3.12 on warns when a process with several threads forks."""
    alike(folder, NET + "import os, threading\nnet(torch.tensor(1))\nif not os.fork():\n    os._exit(0)\nos.wait()\n"
                        "print(len(os.listdir('/proc/self/task')), threading.active_count())")


@case
def a_program_that_replaces_ours_by_exec_is_left_alone(folder):
    code = NET + "import os, sys\nnet(torch.tensor(1))\nsys.stdout.flush()\nos.execv('/bin/sh', ['sh', '-c', 'echo exec; cat /proc/self/environ | tr \"\\\\0\" \"\\\\n\" | grep -c ^FAKE='])"
    bare, under = [how(folder, *arguments(code), env=environment_of({"FAKE": "1"}), check=None) for how in (run, traced)]
    assert (bare.stdout, bare.stderr, bare.returncode) == (under.stdout, under.stderr, under.returncode) and b"exec\n1" in under.stdout, (bare, under)
    assert [t.name for t in traces(folder)] == ["trace.bin"], traces(folder)


@case
def a_foreign_library_may_have_a_function_of_that_name(folder):
    both = [PROGRAMS / "lib_asks_init_module.so", PROGRAMS / "lib_init_module.so"]
    bare, under = run(folder, "loads_init_module", *both, check=0), traced(folder, "loads_init_module", *both)
    assert bare.stdout == under.stdout == b"not PyTorch's\n", (bare, under)
    assert traces(folder) == []


@case
def memory_is_reported_as_PyTorch_does_and_passed_on(folder):
    code = """
        import torch
        kept = [torch.tensor(n, device="cuda") for n in range(4)]
        del kept[1:]
        block = torch._C._cuda_malloc(3 << 20)
        try:
            torch._C._cuda_malloc(1 << 30)
        except MemoryError as error:
            print(error)
        torch._C._cuda_free(block)
        print(torch._C._memory(), torch._C._heard())
    """
    for release in None, "1.13":
        said = alike(folder, code, env={"FAKE_REPORT": release} if release else {})
        assert said.endswith("(512, 4194304) (9, 1, 512)\n"), said
        tensors = dump(folder / "trace.bin", {"tensor"})
        sizes = [t["bytes"] for t in tensors]
        assert sizes == [512] * 4 + [-512] * 3 + [3 << 20, -3 << 20, -512], sizes
        assert [t["allocated"] for t in tensors][-3:] == [512 + (3 << 20), 512, 0], tensors
        assert len(dump(folder / "trace.bin", {"oom"})) == 1 and facts(folder / "trace.bin")["source.torch_memory"] == "on"


@case
def operators_may_be_counted_and_leave_no_record(folder):
    traced_net(folder)
    nodes = decoder.nodes(folder / "trace.bin")
    paths = [nodes[r["node"]][:3] for r in dump(folder / "trace.bin", {"push"})]
    trace = traced_net(folder, env={"PPERF_OPS": "totals"})
    nodes, counted = decoder.nodes(folder / "trace.bin"), decoder.totals(folder / "trace.bin")
    again = [nodes[r["node"]][:3] for r in trace.records if r["kind"] == "push"]
    assert {path[1] for path in again} == {"MODULE", "OPTIMIZER"} and trace.is_balanced()
    for node, (calls, ticks, longest) in counted.items():
        again += [nodes[node][:3]] * calls
        assert calls and 0 < longest <= ticks
    assert sorted(again) == sorted(paths), set(again) ^ set(paths)


@case
def without_operators_or_modules_the_others_are_there(folder):
    for name, value, left in ("PPERF_OPS", "off", {MODULE}), ("PPERF_MODULES", "0", {OP, BACKWARD, OPTIMIZER}), ("PPERF_PYTHON", "0", {OP, BACKWARD, OPTIMIZER}):
        trace = traced_net(folder, env={name: value})
        assert {p.kind for p in trace.calls()} == left, (name, {p.kind for p in trace.calls()})


main()
