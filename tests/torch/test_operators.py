#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's operators, autograd nodes and record_function ranges, with PyTorch itself and without a
GPU. None is lost, each is at its node, every autograd node is linked to the operator that created
it, and the program cannot detect the recording."""
import json, os, re, sys, textwrap
import reference_decoder as decoder
from harness import *

ENVIRONMENT = {"GLOO_SOCKET_IFNAME": "lo"}


def python(folder, code, *arguments, options=("-W", "error"), env=None, check=0):
    """Runs the code under the library and returns its output."""
    result = traced(folder, sys.executable, *options, "-c", "import torch\n" + textwrap.dedent(code), *arguments, timeout=300,
                    env={**ENVIRONMENT, **(env or {})}, check=check)
    return result.stdout.decode()


def meta(path):
    return info(path)["rows"][0]["meta"]


def links(path):
    """{path of an autograd node: paths of the operators that created it}, without PyTorch's own
    ranges around each."""
    found = {}
    for names, kind, link, _ in decoder.nodes(path).values():
        if kind == "BACKWARD":
            found.setdefault(names[-1], set()).add(" > ".join(n for n in link if not n.startswith("autograd::engine")))
    return found


def kinds(path):
    return {names[-1]: kind for names, kind, _, _ in decoder.nodes(path).values()}


def balance(path):
    """Fails unless every push has its pop and every start its end."""
    count = {kind: len(dump(path, {kind})) for kind in ("push", "pop", "start", "end")}
    assert count["push"] == count["pop"] and count["start"] == count["end"], count
    assert info(path)["rows"][0]["meta"].get("torch.unlinked") is None
    return count["push"]


# ---- operators and threads ----

MEASURED = """
    import json, sys
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
                              torch.nn.Conv1d(4, 2, 3), torch.nn.LSTM(14, 3))
    optimizer = torch.optim.AdamW(net.parameters())
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x * 2
        @staticmethod
        def backward(ctx, g): return g * 2
    def step():
        optimizer.zero_grad()
        out, _ = net(torch.randn(3, 4, 8))
        with torch.profiler.record_function("loss"):
            loss = Double.apply(out).square().mean()
        with torch.no_grad():
            loss.item()
        loss.backward()
        optimizer.step()
    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        with torch.profiler.record_function("measured"):
            step()
            step()
    events = [e for e in profiler.profiler.kineto_results.events() if e.device_type() == torch.autograd.DeviceType.CPU]
    print(json.dumps([[e.name(), e.start_ns(), e.duration_ns()] if hasattr(e, "start_ns") else [e.name(), 1000 * e.start_us(), 1000 * e.duration_us()]
                      for e in events]))
"""


def inside(records):
    """The records from `measured` to its end, without the program's modules."""
    names = [r["name"] for r in records]
    begin = names.index("measured")
    return records[begin:begin + names[begin + 1:].index("measured") + 2]


@case
def there_are_the_operators_that_PyTorchs_own_profiler_sees(folder):
    said = python(folder, MEASURED, options=())
    theirs = json.loads(said)
    modules = {node for node, facts in decoder.nodes(folder / "trace.bin").items() if facts[1] == "MODULE"}
    records = [r for r in inside(dump(folder / "trace.bin", {"push", "pop"})) if r["node"] not in modules]
    ours = [r["name"] for r in records if r["kind"] == "push"]
    assert len(ours) > 800, len(ours)
    names = [name for name, _, _ in theirs]
    assert sorted(names) == sorted(ours), {n: (names.count(n), ours.count(n)) for n in {*names, *ours} if names.count(n) != ours.count(n)}
    if not any(start % 1000 for _, start, _ in theirs):
        return  # an older release, whose order is more reliable than its times
    # Both observe the operators one after the other, so their orders differ only for equal times.
    ordered = [name for name, _, _ in sorted(theirs, key=lambda e: (e[1], -e[2]))]
    assert sum(a != b for a, b in zip(ordered, ours)) <= len(ours) // 50, [p for p in zip(ordered, ours) if p[0] != p[1]][:10]


@case
def ranges_are_of_the_kind_that_PyTorch_has_them_for(folder):
    python(folder, """
        net = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        with torch.profiler.record_function("Optimizer of mine"):
            net(torch.ones(2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        for _ in torch.utils.data.DataLoader([1, 2]): pass
    """)
    found = kinds(folder / "trace.bin")
    wanted = {"Optimizer of mine": "RANGE", "Optimizer.step#SGD.step": "OPTIMIZER", "Optimizer.zero_grad#SGD.zero_grad": "OPTIMIZER",
              "aten::linear": "OP", "SumBackward0": "BACKWARD", "torch::autograd::AccumulateGrad": "BACKWARD",
              "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": "RANGE"}
    assert {name: found.get(name) for name in wanted} == wanted, found
    balance(folder / "trace.bin")


@case
def an_operator_that_raises_closes_what_it_opened(folder):
    said = python(folder, """
        for _ in range(3):
            try:
                with torch.profiler.record_function("tried"): torch.ones(2) @ torch.ones(3)
            except RuntimeError: print("raised")
        torch.neg(torch.ones(2))
    """)
    assert said == "raised\n" * 3
    pushed = [r for r in dump(folder / "trace.bin", {"push"})]
    assert [r.get("depth", 0) for r in pushed if r["name"] in ("tried", "aten::neg")] == [0] * 4, pushed
    balance(folder / "trace.bin")


@case
def every_thread_is_seen_and_a_thousand_of_them(folder):
    said = python(folder, """
        import threading
        def work():
            x = torch.ones(3, requires_grad=True)
            (x * 3).exp().sum().backward()
        for _ in range(10):
            threads = [threading.Thread(target=work) for _ in range(100)]
            for t in threads: t.start()
            for t in threads: t.join()
        print(threading.active_count())
    """)
    pushes = dump(folder / "trace.bin", {"push"})
    exponents = [r for r in pushes if r["name"] == "ExpBackward0"]
    assert said == "1\n" and len(exponents) == 1000 and len({r["tid"] for r in exponents}) > 900, len(exponents)
    assert links(folder / "trace.bin")["ExpBackward0"] == {"aten::exp"}
    balance(folder / "trace.bin")


# ---- backward ----

@case
def each_autograd_node_is_linked_to_the_operator_that_made_it(folder):
    python(folder, """
        w = torch.randn(4, 4, requires_grad=True)
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): return g * 2
        with torch.profiler.record_function("a"): y = Double.apply(w @ w)
        with torch.profiler.record_function("b"): y = torch.nn.functional.linear(y, w).relu()
        y.sum().backward()
        with torch.no_grad(): w * 3
    """)
    found = links(folder / "trace.bin")
    wanted = {"DoubleBackward": {"a > Double"}, "MmBackward0": {"a > aten::matmul > aten::mm", "b > aten::linear > aten::matmul > aten::mm"},
              "ReluBackward0": {"b > aten::relu"}, "SumBackward0": {"aten::sum"}, "torch::autograd::AccumulateGrad": {"a > aten::matmul > aten::mm"}}
    assert {name: found[name] for name in wanted} == wanted, found
    assert not {name for name, made in found.items() if "" in made}, found


@case
def what_the_engine_computes_for_a_function_is_linked_as_the_function(folder):
    python(folder, """
        bias, w = torch.randn(4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
        for _ in range(2):
            with torch.profiler.record_function("twice"): y = w.sin() + w.cos()
            with torch.profiler.record_function("broadcast"): y = y.exp() + bias
            y.mean().backward()
    """)
    found = {}
    for names, kind, link, _ in decoder.nodes(folder / "trace.bin").values():
        if len(names) == 2 and names[0].startswith("autograd::engine"):
            found.setdefault((names[0].split(": ")[1], names[1].replace("aten::add_", "aten::add")), set()).add(" > ".join(link))
    add = {"broadcast > aten::add"}
    wanted = {("AddBackward0", "aten::sum"): add, ("AddBackward0", "AddBackward0"): add | {"twice > aten::add"}, ("SinBackward0", "aten::add"): {"twice > aten::sin"}}
    assert {key: found.get(key) for key in wanted} == wanted, found
    gradients = found["torch::autograd::AccumulateGrad", "torch::autograd::AccumulateGrad"]
    assert gradients == {"broadcast > aten::add", "twice > aten::sin"}, gradients
    balance(folder / "trace.bin")


@case
def links_hold_across_threads_and_in_backward_of_backward(folder):
    python(folder, """
        import threading
        w, out = torch.randn(4, 4, requires_grad=True), []
        def forward():
            with torch.profiler.record_function("elsewhere"): out.append((w * 5).exp().sum())
        t = threading.Thread(target=forward); t.start(); t.join()
        for _ in range(20): w * 3                       # other nodes with these numbers, on this thread
        out[0].backward()
        x = torch.ones(3, requires_grad=True)
        with torch.profiler.record_function("cube"): y = x.sinh().sum()
        g, = torch.autograd.grad(y, x, create_graph=True)
        g.sum().backward()
    """)
    found = links(folder / "trace.bin")
    assert found["ExpBackward0"] == {"elsewhere > aten::exp"} and found["SinhBackward0"] == {"cube > aten::sinh"}, found
    assert found["CoshBackward0"] == {"SinhBackward0 > aten::cosh"}, found
    assert not [name for name, made in found.items() if "" in made], found
    balance(folder / "trace.bin")


@case
def what_a_checkpoint_computes_again_is_linked_to_where_it_was_computed_again(folder):
    python(folder, """
        from torch.utils.checkpoint import checkpoint
        w = torch.randn(4, 4, requires_grad=True)
        for reentrant in False, True:
            checkpoint(lambda t: (t @ t).tanh(), w, use_reentrant=reentrant).sum().backward()
    """)
    found = links(folder / "trace.bin")
    assert found["TanhBackward0"] == {"aten::tanh", "CheckpointFunctionBackward > aten::tanh"}, found
    assert found["CheckpointFunctionBackward"] == {"CheckpointFunction"}, found
    balance(folder / "trace.bin")


@case
def a_node_whose_operator_is_too_long_ago_is_counted(folder):
    python(folder, """
        x = torch.ones(1, requires_grad=True)
        old = x.exp()
        for _ in range(140000): x * 2
        old.backward()
    """, env={"PPERF_MODULES": "0"})
    assert links(folder / "trace.bin")["ExpBackward0"] == {""}
    assert meta(folder / "trace.bin")["torch.unlinked"] == "1"


# ---- ranges that end elsewhere ----

GLOO = """
    import sys, torch.distributed as dist
    rank = int(sys.argv[1])
    dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
    t = torch.ones(8)
    for _ in range(5):
        work = dist.all_reduce(t, async_op=True)
        torch.neg(torch.ones(2))
        work.wait()
    with torch.profiler.record_function("after"): torch.exp(torch.ones(2))
    print(t[0].item())
    dist.destroy_process_group()
"""


@case
def work_of_a_process_group_is_a_range_of_its_own_and_nothing_stands_below_it(folder):
    code = ["-W", "error", "-c", "import torch\n" + textwrap.dedent(GLOO)]
    env = {**environment(**ENVIRONMENT), "LD_PRELOAD": preload(), "PPERF_OUTPUT": str(folder / "rank%q{RANK}.bin")}
    ranks = [subprocess.Popen([sys.executable, *code, str(r), str(folder / "meeting")], env={**env, "RANK": str(r)}, stdout=subprocess.PIPE, cwd=folder)
             for r in range(2)]
    said = [r.communicate(timeout=200)[0] for r in ranks]
    assert [s.splitlines()[-1] for s in said] == [b"32.0"] * 2, said
    for rank in range(2):
        path = folder / ("rank%d.bin" % rank)
        assert [r["name"] for r in dump(path, {"start"})].count("gloo:all_reduce") == 5
        assert not [names for names, *_ in decoder.nodes(path).values() if any("gloo:" in n for n in names)]
        assert [names for names, *_ in decoder.nodes(path).values() if names[-1] == "aten::exp"] == [("after", "aten::exp")]
        balance(path)


@case
def a_record_function_that_another_thread_ends_is_closed_where_it_was_opened(folder):
    python(folder, """
        import threading
        for i in range(3):
            begun = torch.ops.profiler._record_function_enter_new("wandering", None)
            t = threading.Thread(target=lambda: torch.ops.profiler._record_function_exit._RecordFunction(begun)); t.start(); t.join()
            with torch.profiler.record_function("after"): torch.exp(torch.ones(2))
    """)
    paths = [names for names, *_ in decoder.nodes(folder / "trace.bin").values()]
    assert ("after", "aten::exp") in paths and ("wandering",) in paths, paths
    assert not [p for p in paths if p[0] == "wandering" and "after" in p], paths
    balance(folder / "trace.bin")


# ---- processes ----

@case
def a_forked_child_computes_on_and_records_only_if_that_is_enabled(folder):
    code = """
        import os
        x = torch.ones(3, requires_grad=True)
        with torch.profiler.record_function("before"):
            y = x.exp()
            child = os.fork()
        if child == 0:
            y.sum().backward()
            os._exit(0 if torch.equal(x.grad, x.exp()) else 1)
        print(os.waitpid(child, 0)[1])
    """
    assert python(folder, code) == "0\n"
    assert [t.name for t in traces(folder)] == ["trace.bin"], traces(folder)
    assert python(folder, code, env={"PPERF_CHILDREN": "all", "PPERF_OUTPUT": "all%p.bin"}) == "0\n"
    forked = [t for t in folder.glob("all*.bin") if "ExpBackward0" in links(t)]
    assert len(forked) == 1 and links(forked[0])["ExpBackward0"] == {"before > aten::exp"}, [links(t) for t in forked]


@case
def workers_that_load_data_in_any_way_leave_nothing(folder):
    (folder / "loads.py").write_text(textwrap.dedent("""
        import sys, torch
        from torch.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            torch.manual_seed(1)
            for batch, in DataLoader(TensorDataset(torch.arange(32.).reshape(16, 2)), batch_size=4, num_workers=2, shuffle=True,
                                     multiprocessing_context=sys.argv[1]):
                print(batch.tolist())
    """))
    for method in "fork", "forkserver":
        bare = run(folder, sys.executable, "-W", "error", "loads.py", method, check=0, timeout=300)
        under = traced(folder, sys.executable, "-W", "error", "loads.py", method, timeout=300)
        assert (bare.stdout, bare.stderr) == (under.stdout, under.stderr), (bare, under)
        assert [t.name for t in traces(folder) if t.name.count(".") == 1] == ["trace.bin"], traces(folder)
        assert method == "forkserver" or len(traces(folder)) == 1, traces(folder)


@case
def operators_after_the_end_of_main_are_recorded_and_do_no_harm(folder):
    python(folder, """
        import atexit
        class Late:
            def __del__(self, neg=torch.neg, x=torch.ones(2)): neg(x)
        late = Late()
        atexit.register(lambda: torch.exp(torch.ones(2)))
        torch.late = [torch.ones(2, requires_grad=True) * 2, Late()]
    """)
    assert "aten::exp" in names(folder / "trace.bin")
    balance(folder / "trace.bin")


@case
def a_library_that_comes_late_sees_what_follows(folder):
    said = run(folder, sys.executable, "-W", "error", "-c", textwrap.dedent("""
        import ctypes, sys, torch
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        with torch.no_grad():
            ctypes.CDLL(sys.argv[1]).InitializeInjection()
            torch.neg(x)
        m = torch.nn.Linear(3, 2)
        for i in range(2): m(x).sum().backward()
        print(x.grad_fn, (x * 2).grad_fn._sequence_nr())
    """), LIBRARY, check=0, timeout=300, env={"PPERF_CUPTI": "0"}).stdout.decode()
    assert meta(folder / "trace.bin")["source.torch_ops"] == "on", meta(folder / "trace.bin")
    assert any(made.endswith("aten::addmm") for made in links(folder / "trace.bin")["AddmmBackward0"]), links(folder / "trace.bin")
    assert "aten::neg" in names(folder / "trace.bin") and said.startswith("None"), said


# ---- the program cannot tell ----

@case
def the_program_cannot_tell(folder):
    code = textwrap.dedent("""
        import gc, os, sys, threading, torch, warnings
        print(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_num_threads(), torch.get_default_dtype(), threading.active_count(),
              len(os.listdir("/proc/self/task")), [t.name for t in threading.enumerate()])
        print((torch.ones(1, requires_grad=True) * 2).grad_fn._sequence_nr(), torch.manual_seed(3) and torch.rand(3).tolist())
        print(sorted(k for k in sys.modules if "pperf" in k), len([o for o in gc.get_objects() if type(o).__name__ == "MulBackward0"]))
        t = threading.Thread(target=lambda: print(threading.current_thread().name)); t.start(); t.join()
        pid = os.fork()
        if pid == 0:
            x = torch.ones(3, requires_grad=True)
            (x * 2).sum().backward()
            os._exit(7)
        print(os.waitpid(pid, 0)[1])
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True) as p:
            x = torch.ones(2, 3, requires_grad=True)
            (x @ x.t()).sum().backward()
        print([(e.key, e.count, e.input_shapes) for e in sorted(p.key_averages(group_by_input_shape=True), key=lambda e: (e.key, str(e.input_shapes)))])
        print(sorted({(e.name, e.thread, e.sequence_nr) for e in p.events() if e.name.startswith(("aten::mm", "MmB"))}))
    """)
    for env in {}, {"PPERF_SHAPES": "1"}, {"PPERF_OPS": "off"}, {"PPERF_PYTHON": "0"}, {"PPERF_DISABLE": "1"}:
        bare = run(folder, sys.executable, "-W", "error", "-c", code, check=0, timeout=300)
        under = traced(folder, sys.executable, "-W", "error", "-c", code, timeout=300, env=env)
        clean = [(r.stdout, re.sub(rb"\d+", b"N", r.stderr)) for r in (bare, under)]
        assert clean[0] == clean[1], (env, clean)


@case
def another_librarys_initModule_is_called_through_ours(folder):
    (folder / "other.c").write_text("void *initModule(void) { return (void *)42; }\n")
    (folder / "uses.c").write_text("void *initModule(void);\nvoid *call(void) { return initModule(); }\n")
    for name, more in ("other", []), ("uses", ["-L.", "-lother", "-Wl,-rpath,$ORIGIN"]):
        run(folder, os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", "lib%s.so" % name, name + ".c", *more, check=0)
    code = "import ctypes; f = ctypes.CDLL('./libuses.so').call; f.restype = ctypes.c_void_p; print(f())"
    assert traced(folder, sys.executable, "-c", code).stdout == b"42\n"
    code = "import ctypes; f = ctypes.PyDLL(None).initModule; f.restype = ctypes.py_object\ntry: f()\nexcept ImportError as e: print(e)"
    assert traced(folder, sys.executable, "-c", code).stdout == b"undefined symbol: initModule\n"


@case
def a_failed_import_fails_as_without_us(folder):
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['torch._C._dynamo_made_up'] = None\nsys.modules['torch.functional'] = None\n")
    code = "try: import torch\nexcept BaseException as e: print(type(e).__name__, str(e)[:60])"
    both = [f(folder, sys.executable, "-c", code, env={"PYTHONPATH": str(folder)}, check=0, timeout=300) for f in (run, traced)]
    assert both[0].stdout == both[1].stdout != b"" and both[0].stderr == both[1].stderr, both


# ---- settings ----

@case
def the_facts_are_in_the_trace(folder):
    said = python(folder, "import platform; torch.ones(1) * 2; print(torch.__version__, platform.python_version(), int(torch._C._GLIBCXX_USE_CXX11_ABI))")
    facts = meta(folder / "trace.bin")
    assert [facts["version.torch"], facts["version.python"], facts["torch.abi"]] == said.split(), (facts, said)
    assert facts["source.torch_ops"] == "on" and re.match(r"sequence \d+, forward thread \d+, asynchronous \d+", facts["torch.layout"]), facts


@case
def without_Python_or_operators_the_trace_says_so(folder):
    program = "x = torch.ones(3, requires_grad=True); x.exp().sum().backward(); torch.cuda.nvtx.mark('here')"
    python(folder, program, env={"PPERF_PYTHON": "0"})
    facts = meta(folder / "trace.bin")
    assert facts["source.torch_ops"] == "partial: backward is not linked to forward: PPERF_PYTHON=0", facts
    assert links(folder / "trace.bin")["ExpBackward0"] == {""} and "torch.unlinked" not in facts
    python(folder, program, env={"PPERF_OPS": "off", "PPERF_OUTPUT": "off.bin"})
    assert meta(folder / "off.bin")["source.torch_ops"] == "off: PPERF_OPS=off (0)" and names(folder / "off.bin") == []
    python(folder, program, env={"PPERF_OPS": "some", "PPERF_OUTPUT": "some.bin"})
    assert "PPERF_OPS=some is not valid" in meta(folder / "some.bin")["warning.settings"] and names(folder / "some.bin")


@case
def shapes_are_those_of_the_tensors(folder):
    python(folder, """
        a, b = torch.ones(64, 128), torch.ones(128, 32)
        a @ b
        torch.neg(torch.ones(2, 1, 3, 1, 4, 1, 5))
        torch.neg(torch.tensor(3.0))
        torch.cat([a, a])
        a.to(torch.float64)
    """, env={"PPERF_SHAPES": "1"})
    found = {(names[-1], detail) for names, _, _, detail in decoder.nodes(folder / "trace.bin").values()}
    wanted = {("aten::matmul", "[[64, 128], [128, 32]]"), ("aten::mm", "[[64, 128], [128, 32]]"), ("aten::neg", "[[2, 1, 3, 1, 4, 1, 5]]"), ("aten::neg", "[[]]"),
              ("aten::cat", "[[], []]")}
    assert wanted <= found, found
    assert {detail for _, _, _, detail in decoder.nodes(folder / "trace.bin").values() if _ == "BACKWARD"} <= {""}
    python(folder, "torch.neg(torch.ones(2))", env={"PPERF_OUTPUT": "plain.bin"})
    assert {detail for _, _, _, detail in decoder.nodes(folder / "plain.bin").values()} == {""}


main()
