# SPDX-License-Identifier: MIT
"""device_ladder.py NAME...: small programs on the simulated CUDA device, called rungs. Each prints
`NAME = RESULT`, the same in every run.

Kernels compute nothing there: what only copies touched is exact, all else reads as zeros. So a rung asserts shapes, devices, sizes, counts and copied
values, and never a computed one.
"""
import os, sys, time, threading
import torch
import torch.nn as nn
import torch.nn.functional as F

D = "cuda"
MIB = 1 << 20
RELEASE = tuple(map(int, torch.__version__.split(".")[:2]))
rungs = {}


def rung(function):
    rungs[function.__name__] = function
    return function


def random(*shape, **options):
    return torch.randn(*shape, device=D, requires_grad=True, **options)


@rung
def properties():
    p = torch.cuda.get_device_properties(0)
    assert torch.cuda.is_available() and torch.cuda.device_count() == int(os.environ.get("SIM_DEVICES", "1"))
    assert p.name == torch.cuda.get_device_name(0)
    return p.name, (p.major, p.minor), p.total_memory, p.multi_processor_count, torch.cuda.get_device_capability(), torch.cuda.current_device()


@rung
def values():
    """Copies in all directions, between kernels with other operands."""
    x = torch.arange(1000).to(D)
    y = x + 1
    z = torch.randn(1000, device=D)
    (z * 2).sum().add_(1)
    assert x.cpu().equal(torch.arange(1000)) and x.clone().cpu().equal(torch.arange(1000)), "what only copies touched"
    assert not y.cpu().any() and not z.cpu().any(), "what kernels would have written"
    x.add_(1)
    assert not x.cpu().any(), "what kernels would have written over"
    many = [torch.full((37,), float(i)).to(D) for i in range(50)]
    # A list of tensors is passed to a kernel in a struct that is only partly filled. The rest may
    # contain the address of the last copy.
    torch.zeros(1).to(D)
    torch._foreach_mul_(many[::2], 2.0)
    assert [t.cpu()[36].item() for t in many] == [float(i % 2 and i) for i in range(50)]
    assert torch.zeros(5, dtype=torch.long, device=D).tolist() == [0] * 5
    assert torch.randn(8, device=D).nonzero().shape == (0, 1) and torch.randn(8, device=D).unique().shape == (0,)
    pinned = torch.ones(8).pin_memory()
    assert pinned.is_pinned() and pinned.to(D, non_blocking=True).cpu().equal(torch.ones(8)) and not torch.ones(8).is_pinned()
    return str(torch.arange(3.0).to(D))


@rung
def streams():
    side = torch.cuda.Stream()
    x = torch.arange(64.0).to(D)
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream())
        y = x * 2
        assert torch.cuda.current_stream() == side
    torch.cuda.current_stream().wait_stream(side)
    y.record_stream(torch.cuda.current_stream())
    side.synchronize()
    high = torch.cuda.Stream(priority=-1)
    assert high.priority < side.priority and side.query()
    return side.priority, high.priority


@rung
def events():
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    x = torch.randn(1 << 20, device=D)
    begin.record()
    for _ in range(200):
        x = x * 2
    end.record()
    busy = end.query()
    end.synchronize()
    # 200 kernels of several microseconds, one behind the other.
    assert end.query() and begin.elapsed_time(end) > 0.5, begin.elapsed_time(end)
    return busy in (True, False)


@rung
def memory():
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    assert total - free == torch.cuda.memory_reserved() == 0
    x = torch.empty(10 * MIB, dtype=torch.uint8, device=D)
    free, total = torch.cuda.mem_get_info()
    assert total - free == torch.cuda.memory_reserved() >= torch.cuda.memory_allocated() >= 10 * MIB
    del x
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == torch.cuda.memory_allocated() == 0
    return torch.cuda.max_memory_allocated(), total


@rung
def backward():
    x = random(8, 8)
    (x * x).sin().sum().backward()
    torch.cuda.synchronize()
    names = sorted(open("/proc/self/task/%s/comm" % task).read().strip() for task in os.listdir("/proc/self/task"))
    assert "pt_autograd_0" in names or RELEASE < (2, 5) and len(names) > 1, names
    return tuple(x.grad.shape), str(x.grad.device)


@rung
def threads():
    def work():
        x = random(8, 8)
        (x @ x).sum().backward()
    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    torch.cuda.synchronize()
    return len(workers)


@rung
def operators():
    """Operators whose output size only the device knows, and operators with kernels of all kinds.
    """
    x = torch.randn(64, 64, device=D)
    shapes = [x.topk(4).values, x.sort().values, x.cumsum(0), x.argmax(1), x[x > 0], torch.cat([x, x]), torch.where(x > 0, x, x), x.unique(), x.T.contiguous(),
              torch.bincount(torch.zeros(9, dtype=torch.long, device=D)), x.histc(10), x.index_select(0, torch.tensor([1, 2], device=D)),
              torch.randperm(100, device=D), torch.randint(0, 5, (7,), device=D), x.var(0), x.norm(), x.softmax(-1), x.to(torch.bfloat16), x.tril(), x.flip(0), x.std(), x.median(),
              x.mv(x[0]), x[0].dot(x[1])]
    if RELEASE > (2, 1): # which checks on the device that a weight is not zero
        shapes.append(torch.multinomial(torch.ones(8, device=D), 2))
    return [tuple(s.shape) for s in shapes]


@rung
def layers():
    """Layers with their backward."""
    ids = torch.randint(0, 100, (64, 128)).to(D)
    made = [nn.LayerNorm(64), nn.RMSNorm(64) if hasattr(nn, "RMSNorm") else nn.Identity(), nn.GroupNorm(4, 64), nn.Dropout(0.5), nn.Linear(64, 32), nn.GELU(), nn.Softmax(-1)]
    for layer in made:
        x = random(8, 64)
        layer.to(D)(x).sum().backward()
        assert x.grad.shape == x.shape
    nn.Embedding(100, 32).to(D)(ids).sum().backward()
    for dtype in torch.float16, torch.bfloat16, torch.float64:
        nn.Linear(64, 32).to(D, dtype)(random(8, 64, dtype=dtype)).sum().backward()
    torch.bmm(random(3, 8, 16), random(3, 16, 8)).sum().backward()
    F.cross_entropy(random(8, 64), torch.zeros(8, dtype=torch.long, device=D)).backward()
    return len(made)


def mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)).to(D)


def steps(model, optimizer, count=3):
    for _ in range(count):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randn(8, 64, device=D)), torch.zeros(8, dtype=torch.long, device=D))
        loss.backward()
        optimizer.step()
    return loss.item(), torch.cuda.memory_allocated() > 0


@rung
def optimizers():
    results = []
    for make in (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.Adam(p, foreach=True), lambda p: torch.optim.Adam(p, foreach=False),
                 lambda p: torch.optim.AdamW(p, fused=True), lambda p: torch.optim.RMSprop(p)):
        model = mlp()
        results.append(steps(model, make(model.parameters())))
    return results


@rung
def mixed_precision():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.cuda.amp.GradScaler() if not hasattr(torch.amp, "GradScaler") else torch.amp.GradScaler()
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.randn(8, 64, device=D)).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return loss.dtype == torch.float16, scaler.is_enabled()


@rung
def transformer():
    model = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).to(D)
    optimizer = torch.optim.AdamW(model.parameters())
    for length in 16, 17, 16:
        optimizer.zero_grad()
        loss = model(torch.randn(2, length, 64, device=D)).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


@rung
def attention():
    for dtype in torch.float16, torch.bfloat16, torch.float32:
        q, k, v = (random(2, 4, 16, 64, dtype=dtype) for _ in range(3))
        F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
        assert q.grad.shape == q.shape
    return tuple(q.grad.shape)


@rung
def checkpoints():
    from torch.utils.checkpoint import checkpoint
    layer, x = nn.Linear(16, 16).to(D), random(4, 16)
    checkpoint(layer, x, use_reentrant=False).sum().backward()
    return tuple(layer.weight.grad.shape)


@rung
def saved():
    model = mlp()
    kept = [p.detach().cpu() for p in model.parameters()]
    torch.save(model.state_dict(), "model.pt")
    loaded = torch.load("model.pt", map_location=D)
    os.unlink("model.pt")
    assert all(a.cpu().equal(b) for a, b in zip(loaded.values(), kept)), "a model comes back as it was saved"
    return [str(t.device) for t in loaded.values()]


@rung
def random_state():
    torch.cuda.manual_seed_all(7)
    state = torch.cuda.get_rng_state()
    torch.randn(100, device=D)
    changed = not torch.cuda.get_rng_state().equal(state)
    torch.cuda.set_rng_state(state)
    assert torch.cuda.get_rng_state().equal(state)
    return torch.cuda.initial_seed(), changed


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((16,), float(index)), index


@rung
def loader():
    """Two loading processes, a pinning thread, and asynchronous copies."""
    seen = []
    for x, y in torch.utils.data.DataLoader(Rows(), batch_size=8, num_workers=2, pin_memory=True):
        assert x.is_pinned() and y.is_pinned()
        seen += x.to(D, non_blocking=True).cpu()[:, 3].tolist()
    assert seen == [float(i) for i in range(64)]
    return len(seen)


@rung
def forked():
    """PyTorch refuses the device in a forked child of a process that has used it."""
    pid = os.fork()
    if pid == 0:
        try:
            torch.zeros(4, device=D)
        except RuntimeError as error:
            os._exit(0 if "forked subprocess" in str(error) else 4)
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def warmed_up(function, count=3):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(count):
            function()
    torch.cuda.current_stream().wait_stream(side)


@rung
def graph_of_values():
    """A captured copy and memset take effect at each replay, and only then."""
    x, kept, source = torch.arange(4.0).to(D), torch.arange(4.0).to(D), torch.full((4,), 5.0).to(D)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(source)
        y = x * 2
    assert x.tolist() == [0, 1, 2, 3]
    graph.replay()
    assert x.tolist() == [5, 5, 5, 5] and kept.tolist() == [0, 1, 2, 3] and y.tolist() == [0, 0, 0, 0]
    return x.tolist()


@rung
def graph_of_a_model():
    model, x = mlp(), torch.randn(8, 64, device=D)
    warmed_up(lambda: model(x))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    return tuple(y.shape), torch.cuda.memory_reserved() > 0


@rung
def graph_of_two_streams():
    x, side, graph = torch.randn(64, device=D), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = y + 1
        torch.cuda.current_stream().wait_stream(side)
        w = z * 3
    graph.replay()
    return tuple(w.shape)


@rung
def graph_of_a_step():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    x = torch.randn(8, 64, device=D)

    def step():
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    warmed_up(step)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad()
    with torch.cuda.graph(graph):
        model(x).sum().backward()
        optimizer.step()
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    return 5


@rung
def graphed_callable():
    model, x = mlp(), random(8, 64)
    graphed = torch.cuda.make_graphed_callables(model, (x,))
    graphed(x).sum().backward()
    return tuple(x.grad.shape)


@rung
def graph_that_waits():
    """Synchronizing with the device invalidates a capture."""
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.ones(4, device=D).sum().item()
    except RuntimeError as error:
        return str(error).split("\n")[0]


def free_words(error):
    return [word in str(error) for word in ("out of memory", "Tried to allocate 100.00 GiB", "of 16.00 GiB")] # 2.1 writes "total capacty"


@rung
def out_of_memory():
    """Requests more memory than the device has, then more than is free."""
    results, taken = [], []
    try:
        torch.empty(100 << 30, dtype=torch.uint8, device=D)
    except torch.cuda.OutOfMemoryError as error:
        results += free_words(error)
    try:
        while True:
            taken.append(torch.empty(1 << 30, dtype=torch.uint8, device=D))
    except torch.cuda.OutOfMemoryError as error:
        results.append("Tried to allocate 1024.00 MiB" in str(error) or "Tried to allocate 1.00 GiB" in str(error))
    results.append(len(taken))
    del taken
    torch.cuda.empty_cache()
    stats = torch.cuda.memory_stats()
    return results, torch.cuda.memory_reserved(), stats["num_ooms"], stats["num_alloc_retries"]


@rung
def growing():
    """Segments that are freed, or grow."""
    parts = [torch.empty(5 * MIB, device=D) for _ in range(20)]
    del parts[::2]
    big = torch.empty(100 * MIB, device=D)
    reserved, allocated = torch.cuda.memory_reserved(), torch.cuda.memory_allocated()
    free, total = torch.cuda.mem_get_info()
    del parts, big
    torch.cuda.empty_cache()
    return torch.cuda.get_allocator_backend(), reserved, allocated, total - free, torch.cuda.memory_reserved()


@rung
def convolutions():
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(16, 10)).to(D)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for dtype in torch.float32, torch.bfloat16:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = F.cross_entropy(net(torch.randn(4, 3, 32, 32, device=D)), torch.zeros(4, dtype=torch.long, device=D))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item(), torch.backends.cudnn.is_available()


@rung
def searched_convolutions():
    """Convolutions of all dimensions and both directions, with cuDNN's search for the fastest
    algorithm."""
    torch.backends.cudnn.benchmark = True
    made = [(nn.Conv1d(16, 8, 3, groups=4), (2, 16, 9)), (nn.Conv2d(16, 8, 3, stride=2), (2, 16, 9, 9)), (nn.Conv3d(4, 8, 3), (2, 4, 6, 6, 6)), (nn.ConvTranspose2d(16, 8, 3), (2, 16, 8, 8))]
    shapes = []
    for layer, shape in made:
        out = layer.to(D)(random(*shape))
        out.sum().backward()
        shapes.append(tuple(out.shape))
    last = nn.Conv2d(16, 8, 3).to(D, memory_format=torch.channels_last)(random(2, 16, 8, 8).to(memory_format=torch.channels_last))
    assert last.is_contiguous(memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = False
    return shapes


@rung
def recurrent():
    for make in nn.LSTM, nn.GRU:
        out = make(8, 16, num_layers=2).to(D)(random(5, 2, 8))[0]
        out.sum().backward()
    return tuple(out.shape)


@rung
def recurrent_kinds():
    """Bidirectional, without biases, with a projection, and for sequences of different lengths."""
    shapes = []
    for options in {"bidirectional": True, "dropout": 0.5}, {"bias": False}, {"proj_size": 4}, {"batch_first": True}:
        net = nn.LSTM(8, 16, 2, **options).to(D)
        x = random(5, 5, 8)
        out = net(x)[0]
        out.sum().backward()
        assert all(p.grad.shape == p.shape for p in net.parameters())
        net(nn.utils.rnn.pack_padded_sequence(x, [5, 4, 4, 2, 1], batch_first=net.batch_first))
        net.eval()(x)
        shapes.append(tuple(out.shape))
    shapes.append(tuple(nn.RNN(8, 16, nonlinearity="relu").to(D)(random(5, 2, 8))[0].shape))
    return shapes


@rung
def attention_kinds():
    """Each available implementation of attention."""
    kinds = {"MATH": "enable_math", "FLASH_ATTENTION": "enable_flash", "EFFICIENT_ATTENTION": "enable_mem_efficient", "CUDNN_ATTENTION": "enable_cudnn"}
    if RELEASE < (2, 5):
        del kinds["CUDNN_ATTENTION"]
    for name in kinds:
        q = random(2, 4, 64, 64, dtype=torch.float16)
        if RELEASE < (2, 3):
            only = torch.backends.cuda.sdp_kernel(**{option: kind == name for kind, option in kinds.items()})
        else:
            only = torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, name))
        with only:
            for causal in False, True:
                (F.scaled_dot_product_attention(q, q, q, is_causal=causal) * 2).sum().backward()
    return list(kinds)


@rung
def transforms():
    x = torch.randn(4, 64, device=D)
    made = [torch.fft.fft(x), torch.fft.rfft(x), torch.fft.irfft(torch.fft.rfft(x)), torch.fft.fft2(torch.randn(2, 30, 31, device=D)), torch.fft.fftn(torch.randn(2, 8, 8, 8, device=D, dtype=torch.float64)),
            torch.stft(x[0].repeat(8), 64, window=torch.ones(64, device=D), return_complex=True)]
    y = random(4, 64)
    torch.fft.rfft(y).abs().sum().backward()
    return [(tuple(m.shape), str(m.dtype)) for m in made] + [tuple(y.grad.shape)]


@rung
def linear_algebra():
    shapes = []
    for dtype in torch.float32, torch.complex64:
        one, many, right = (torch.randn(*shape, device=D, dtype=dtype) for shape in ((8, 8), (5, 8, 8), (8, 3)))
        for a in one, many:
            made = [torch.linalg.inv(a), torch.linalg.cholesky(a), *torch.linalg.svd(a), *torch.linalg.qr(a), *torch.linalg.eigh(a), torch.linalg.det(a), *torch.linalg.lu(a)]
            shapes.append([tuple(m.shape) for m in made])
        made = [torch.linalg.solve(one, right), torch.linalg.solve_triangular(one, right, upper=True), torch.cholesky_solve(right, one), torch.linalg.lstsq(one, right).solution, torch.linalg.pinv(one)]
        shapes.append([tuple(m.shape) for m in made])
    a = random(6, 6)
    (torch.linalg.inv(a).sum() + torch.linalg.slogdet(a)[1]).backward()
    return shapes, tuple(a.grad.shape)


@rung
def compiled():
    """torch.compile with inductor and Triton: launched eagerly, then as CUDA graphs."""
    lines = []
    for mode in "default", "reduce-overhead":
        net = mlp()
        run = torch.compile(net, mode=mode)
        for _ in range(4):
            net.zero_grad()
            out = run(torch.randn(8, 64, device=D))
            out.square().mean().backward()
        torch.cuda.synchronize()
        lines.append(tuple(out.shape))
    return lines


def worker(rank, world):
    import torch.distributed as dist
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", store=dist.FileStore("store", world), rank=rank, world_size=world)
    model = nn.parallel.DistributedDataParallel(mlp(), device_ids=[rank])
    steps(model, torch.optim.AdamW(model.parameters()))
    # Copied values are summed. Values computed by a kernel would be zeros.
    x = torch.full((8,), float(rank + 1)).to(D)
    dist.all_reduce(x)
    assert x.tolist() == [world * (world + 1) / 2] * 8, x.tolist()
    torch.cuda.synchronize()
    dist.destroy_process_group()
    time.sleep(0.2)


@rung
def distributed():
    import torch.multiprocessing as mp
    world = torch.cuda.device_count()
    mp.spawn(worker, (world,), world)
    return world


def exchanger(rank, world):
    import torch.distributed as dist
    torch.cuda.set_device(rank)
    bound = {"device_id": torch.device(D, rank)} if RELEASE >= (2, 3) else {}
    dist.init_process_group("nccl", store=dist.FileStore("exchanged", world), rank=rank, world_size=world, **bound)
    own = lambda *values, dtype=torch.float32: torch.tensor(values, dtype=dtype).to(D)
    gathered = [torch.empty(2, device=D) for _ in range(world)]
    dist.all_gather(gathered, own(rank, rank + 10.0))
    assert [g.tolist() for g in gathered] == [[r, r + 10.0] for r in range(world)]
    half = own(1.5 * (rank + 1), dtype=torch.bfloat16)
    dist.all_reduce(half, dist.ReduceOp.AVG)
    assert half.tolist() == [0.75 * (world + 1)]
    said = own(rank)
    dist.broadcast(said, 1)
    part = torch.empty(1, device=D)
    dist.reduce_scatter_tensor(part, own(*range(world)))
    assert said.tolist() == [1] and part.tolist() == [rank * world]
    swapped = torch.empty(world, device=D)
    dist.all_to_all_single(swapped, own(*[10 * rank + r for r in range(world)]))
    assert swapped.tolist() == [10 * r + rank for r in range(world)]
    sent = own(rank)
    requests = dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, (rank + 1) % world), dist.P2POp(dist.irecv, part, (rank - 1) % world)])
    for request in requests:
        request.wait()
    assert part.tolist() == [(rank - 1) % world]
    dist.barrier(dist.new_group(list(range(world))))
    torch.cuda.synchronize()
    dist.destroy_process_group()
    time.sleep(0.2)


@rung
def collectives():
    """The values that ranks exchange arrive unchanged."""
    import torch.multiprocessing as mp
    world = torch.cuda.device_count()
    mp.spawn(exchanger, (world,), world)
    return world


@rung
def unused_libraries():
    """No library of NVIDIA's that would use a device is mapped. PyTorch opens NVIDIA's compilers by
    path, where they are installed."""
    mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
    names = sorted(os.path.basename(path) for path in mapped if "/nvidia/" in path)
    return [name for name in names if not name.startswith(("libnvrtc", "libnvJitLink"))]


if __name__ == "__main__":
    torch.manual_seed(1)
    for name in sys.argv[1:]:
        print("%s = %s" % (name, rungs[name]()), flush=True)
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    # A thread of autograd that releases Python objects while Python ends aborts the process (PyTorch
    # with Python 3.11).
    time.sleep(0.2)
