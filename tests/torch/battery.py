# SPDX-License-Identifier: MIT
"""battery.py PART...: what PyTorch programs do, each part with its result on a line; an exception is a result too.

Run without and with the library, the output must be the same to the byte. Nothing in it depends on time, addresses or processes.
"""
import copy, io, os, sys, threading

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)  # a forked child could not use the others
parts = {}


def part(function):
    parts[function.__name__] = function
    return function


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.fc, self.act = nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()

    def forward(self, x):
        return x + self.act(self.fc(self.norm(x)))


class Net(nn.Module):
    def __init__(self, width=16, depth=2):
        super().__init__()
        self.embed, self.head = nn.Linear(8, width), nn.Linear(width, 2)
        self.layers = nn.ModuleList([Block(width) for _ in range(depth)])

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Broken(nn.Module):
    """A module whose graph breaks twice, as do the graphs of the modules in it."""

    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x):
            x = self.fc(x)
            torch._dynamo.graph_break()
            return torch.relu(x)

    def __init__(self):
        super().__init__()
        self.first, self.second = Broken.Half(), Broken.Half()

    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        x = self.second(x * 2)
        torch._dynamo.graph_break()
        return x + 1


def data():
    torch.manual_seed(1)
    return torch.randn(4, 8)


def net():
    torch.manual_seed(2)
    return Net()


def value(tensor):
    return round(tensor.detach().sum().item(), 4)


def steps(call, parameters, x, count=3):
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    for _ in range(count):
        optimizer.zero_grad()
        loss = call(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    return round(loss.item(), 5)


def counters():
    """dynamo's counters since the last reset, without those that depend on time."""
    from torch._dynamo.utils import counters
    return {k: dict(sorted(v.items())) for k, v in sorted(counters.items()) if k in ("stats", "frames", "graph_break", "unimplemented", "recompiles")}


def compiled(model, call=lambda f, x: value(f(x)), **options):
    import torch._dynamo
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    result = call(torch.compile(model, **options), data())
    return result, counters()


@part
def eager():
    return value(net()(data()))


@part
def train():
    model = net()
    return steps(model, model.parameters(), data())


@part
def adamw():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        model(data()).sum().backward()
        optimizer.step()
    return value(model.head.weight)


@part
def raises():
    class Bad(nn.Module):
        def forward(self, x):
            raise ValueError("boom")
    return nn.Sequential(nn.Linear(8, 8), Bad())(data())


@part
def random_numbers():
    """No other code draws random numbers."""
    return torch.rand(2).tolist(), torch.initial_seed(), torch.get_rng_state().sum().item()


@part
def fx():
    return [str(n) for n in torch.fx.symbolic_trace(net()).graph.nodes]


@part
def export():
    return [str(n) for n in torch.export.export(net(), (data(),)).graph.nodes]


@part
def script():
    return value(torch.jit.script(net())(data()))


@part
def trace():
    return value(torch.jit.trace(net(), data())(data()))


@part
def deepcopy():
    return value(copy.deepcopy(net())(data()))


@part
def save_and_load():
    file = io.BytesIO()
    model = net()
    model(data())
    torch.save(model, file)
    file.seek(0)
    return value(torch.load(file, weights_only=False)(data())), sorted(vars(model))


@part
def vmap():
    from torch.func import functional_call, grad, vmap
    model = net()
    parameters = dict(model.named_parameters())
    each = vmap(lambda t: functional_call(model, parameters, (t,)))(data())
    slope = grad(lambda p: functional_call(model, p, (data(),)).sum())(parameters)
    return value(each), value(slope["embed.weight"])


@part
def double_backward():
    x = data().requires_grad_()
    first, = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    return value(torch.autograd.grad(first.sum(), x)[0])


@part
def custom_function():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, gradient):
            return 3 * ctx.saved_tensors[0] ** 2 * gradient
    x = data().requires_grad_()
    Cube.apply(x).sum().backward()
    return value(x.grad)


@part
def threads():
    model, x, found = net(), data(), []
    all = [threading.Thread(target=lambda: found.append(value(model(x)))) for _ in range(8)]
    for each in all:
        each.start()
    for each in all:
        each.join()
    return found == [found[0]] * 8, found[0]


@part
def checkpoints():
    from torch.utils.checkpoint import checkpoint
    model, x = net(), data().requires_grad_()
    checkpoint(model, x, use_reentrant=False).sum().backward()
    checkpoint(model, x, use_reentrant=True).sum().backward()
    return value(x.grad)


@part
def hooks():
    model, seen = net(), []
    model.register_forward_pre_hook(lambda m, a: seen.append("pre"))
    model.register_forward_hook(lambda m, a, o: seen.append("post"))
    model.embed.register_full_backward_hook(lambda m, i, o: seen.append("back"))
    handle = nn.modules.module.register_module_forward_hook(lambda m, a, o: seen.append(type(m).__name__))
    model(data()).sum().backward()
    handle.remove()
    return seen


@part
def module_tracker():
    from torch.utils.module_tracker import ModuleTracker
    model, seen = net(), []
    with ModuleTracker() as tracker:
        model.layers[0].fc.register_forward_hook(lambda *_: seen.append(sorted(tracker.parents)))
        model(data())
    return seen


@part
def flops():
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counter:
        net()(data()).sum().backward()
    return counter.get_total_flops(), sorted(counter.get_flop_counts())


@part
def dispatch_mode():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))
    seen = []
    with Log():
        net()(data())
    return seen


@part
def profiler():
    """The program's own profiler sees what it sees without pperf."""
    model = net()
    model(data()).sum().backward()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, with_modules=True, profile_memory=True,
                                record_shapes=True) as profile:
        model(data()).sum().backward()
    events = profile.events()
    operators = sorted(e.name for e in events if not e.name.startswith(("<built-in", "nn.Module", "[memory]")) and ".py(" not in e.name and ": " not in e.name)
    memory = [e.cpu_memory_usage for e in profile.key_averages() if e.key == "aten::addmm"]
    return operators, sorted({e.name for e in events if e.name.startswith("nn.Module")}), memory


@part
def profiler_schedule():
    model, found = net(), []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
                                on_trace_ready=lambda p: found.append(len([e for e in p.events() if e.name.startswith("ProfilerStep")]))) as profile:
        for _ in range(5):
            model(data())
            profile.step()
    return found


@part
def record_function():
    with torch.profiler.record_function("mine"):
        with torch.inference_mode():
            return value(net()(data()))


@part
def compile_eager():
    return compiled(net(), backend="eager", fullgraph=True)


@part
def compile_breaks():
    return compiled(Broken(), lambda f, x: [value(f(x)) for _ in range(3)], backend="eager")


@part
def compile_function():
    model = net()
    return compiled(lambda x: model(x) + 1, backend="eager", fullgraph=True)


@part
def compile_module():
    import torch._dynamo
    torch._dynamo.reset()
    model = net()
    model.compile(backend="eager", fullgraph=True)
    return value(model(data()))


@part
def compile_train():
    model = net()
    return compiled(model, lambda f, x: steps(f, model.parameters(), x), backend="aot_eager")


@part
def compile_shapes():
    """Another shape compiles once more, and not more often."""
    return compiled(net(), lambda f, x: [value(f(torch.ones(n, 8))) for n in (2, 3, 4, 5)], backend="eager")


@part
def inductor():
    return compiled(net(), fullgraph=True)


@part
def inductor_train():
    model = net()
    return compiled(model, lambda f, x: steps(f, model.parameters(), x))


def loaded(context):
    from torch.utils.data import DataLoader, TensorDataset
    numbers = TensorDataset(torch.arange(32).float().view(32, 1))
    return [batch[0].sum().item() for batch in DataLoader(numbers, batch_size=8, num_workers=2, multiprocessing_context=context)]


@part
def loader_fork():
    return loaded("fork")


@part
def loader_spawn():
    return loaded("spawn")


@part
def loader_forkserver():
    return loaded("forkserver")


@part
def forked():
    """A child that continues with the parent's model."""
    model = net()
    before = value(model(data()))
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(0 if value(model(data())) == before else 1)
    return before, os.waitpid(child, 0)[1]


@part
def distributed():
    """Under torchrun: two processes with gloo, and DistributedDataParallel."""
    import torch.distributed as dist
    dist.init_process_group("gloo")
    x = torch.ones(4) * (dist.get_rank() + 1)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    model = nn.parallel.DistributedDataParallel(net())
    loss = steps(model, model.parameters(), data(), 2)
    dist.barrier()
    dist.destroy_process_group()
    return x.tolist(), loss


@part
def sharded():
    """Under torchrun: both versions of FSDP on the CPU, with gloo. The older one only where this
    PyTorch supports it without a GPU."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    dist.init_process_group("gloo")
    older = FullyShardedDataParallel(net(), device_id=torch.device("cpu"))
    losses = [steps(older, older.parameters(), data(), 2)]
    newer = fully_shard(net(), mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    losses.append(steps(newer, newer.parameters(), data(), 2))
    dist.barrier()
    dist.destroy_process_group()
    return losses


def main():
    for name in sys.argv[1:]:
        try:
            result = parts[name]()
        except Exception as error:
            result = "%s: %s" % (type(error).__name__, str(error)[:200])
        sys.stdout.write("%s = %s\n" % (name, result)) # at once: several processes may write
        sys.stdout.flush()


if __name__ == "__main__":
    main()
