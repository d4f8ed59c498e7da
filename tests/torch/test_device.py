#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models that train on the simulated device (tests/cudasim): the trace and the report must agree
with the model and with PyTorch. Every launch, copy and memset is linked, GPU time is under
operators and modules, backward is beside forward, memory equals PyTorch's at each step, everything
is conserved, and nothing is printed.

Counts, bytes and paths are the program's; times are of the simulator's cost model, and alike in every run.
"""
import os, re, socket
from collections import Counter, defaultdict
from device import *

SCRIPT = ROOT / "tests" / "torch" / "device_models.py"
STEPS = 4
WORK = ("kernel", "memcpy", "memset")
# Operators outside of modules: creating the model and its inputs, and the gradient of the loss.
SETUP = {"aten::to", "aten::randn", "aten::randint", "aten::zeros", "aten::full", "aten::_cudnn_rnn_flatten_weight"}
BESIDE = {"aten::ones_like", "Optimizer.step#SGD.step", "Optimizer.step#AdamW.step", "Optimizer.zero_grad#SGD.zero_grad", "Optimizer.zero_grad#AdamW.zero_grad"}
SCREENS = pathlib.Path(__file__).parent / "screens"
# The launches of operators, and so exact screens, differ by release. The compiled model needs a
# release with Triton.
RELEASE, NEWEST, SCREENS_OF = ENVIRONMENT.name, "torch-2.15.0", {"compiled": "torch"}


class Report:
    """The tree of one trace, of the whole run, with the rows below and above each row."""

    def __init__(self, path):
        self.path, self.tree = path, json.loads(report("tree", path, "-f", "json", "--no-steps").stdout)
        self.rows = self.tree["rows"]
        self.by_id, self.integrity = {row["id"]: row for row in self.rows}, self.tree["integrity"]

    def above(self, row):
        """The row and its ancestors, up to the root."""
        while row:
            yield row
            row = self.by_id.get(row["parent"])

    def work(self):
        return [row for row in self.rows if row["kind"] in WORK]

    def at(self, *path):
        found = [row for row in self.rows if row["path"] == list(path)]
        assert len(found) == 1, (path, len(found))
        return found[0]

    def skeleton(self, row, depth=0):
        """Lines of a module, the modules in it and the operators directly in them: name, class,
        calls, launches."""
        of_class = " (%s)" % row["class"] if row.get("class") and depth else ""
        lines = ["%s%s%s %s %d" % ("  " * depth, row["name"], of_class, row.get("calls", "-"), row["gpu_calls"])]
        inside = [r for r in self.rows if r["parent"] == row["id"] and r.get("gpu_calls") and r["kind"] not in WORK]
        for inner in sorted(inside, key=lambda r: (r["name"], r.get("class") or "")) if row["kind"] == "module" else []:
            lines += self.skeleton(inner, depth + 1)
        return lines


def everything_is_linked(tree, graphs=0):
    seen = tree.integrity
    assert seen["complete"] and seen["conserved"], seen
    assert (seen["missing_records"], seen["dropped"], seen["untimed"], seen["lost_events"], seen["left_open"], seen["unmatched_ends"]) == (0,) * 6, seen
    assert seen["kernels"] - seen.get("graph_kernels", 0) == seen["launches"] and seen["copies"] == seen["copies_called"], seen
    assert seen["sets"] - seen.get("graph_sets", 0) == seen["sets_called"] and seen["graph_launches"] == graphs, seen
    methods = Counter(row["method"] for row in tree.work())
    assert seen["unattributed"] == 0 and set(methods) == ({"correlation", "graph-node"} if graphs else {"correlation"}), (seen, methods)


def time_is_conserved(tree):
    """To the nanosecond: rows of GPU work add up to the whole, and each row is the sum of its
    children."""
    totals = tree.tree["totals"]
    assert sum(row["gpu_total_ns"] for row in tree.work()) == totals["gpu_sum_ns"] == totals["attributed_ns"] + totals["unattributed_ns"], totals
    inside = Counter()
    for row in tree.rows:
        inside[row["parent"]] += row.get("gpu_total_ns", 0)
    wrong = [(row["path"], row.get("gpu_total_ns"), inside[row["id"]]) for row in tree.rows if inside[row["id"]] and inside[row["id"]] != row.get("gpu_total_ns")]
    assert not wrong and inside[None] == totals["gpu_sum_ns"], wrong[:3]


def time_is_under_operators_and_modules(tree, beside=()):
    """98 % of GPU time is below an operator. 95 % of it is below a module, apart from the optimizer
    and the named operators that the program calls itself."""
    whole = below_operator = below_module = 0
    names = Counter()
    for row in tree.work():
        kinds = [r["kind"] for r in tree.above(row)]
        whole += row["gpu_total_ns"]
        below_operator += row["gpu_total_ns"] if "op" in kinds or "backward" in kinds else 0
        if "module" not in kinds:
            names[next(name for name in row["path"] if not re.fullmatch(r"\(graph replays\)|graph \d+", name))] += row["gpu_total_ns"]
        below_module += row["gpu_total_ns"] if "module" in kinds else 0
    unknown = set(names) - SETUP - BESIDE - set(beside)
    apart = sum(ns for name, ns in names.items() if name in SETUP or name.startswith("Optimizer.") or name in beside)
    assert below_operator >= 0.98 * whole and not unknown, (below_operator / whole, unknown)
    assert below_module >= 0.95 * (whole - apart), (below_module, whole - apart, names)


def backward_stands_beside_forward(tree, trace):
    """Each module with operators has their backward beside them, and backward ran on another
    thread."""
    inside = defaultdict(set)
    for row in tree.rows:
        above = tree.by_id.get(row["parent"])
        if above and above["kind"] == "module" and row.get("gpu_total_ns"):
            inside[" / ".join(above["path"])].add(row["name"])
    lonely = [path for path, names in inside.items() if any(n.startswith("aten::") and n.endswith(" (bwd)") for n in names)
              and not any(not n.endswith(" (bwd)") for n in names)]
    both_ways = [path for path, names in inside.items() if any(n.endswith(" (bwd)") for n in names)]
    assert both_ways and not lonely, (both_ways, lonely)
    threads = {r["tid"] for r in trace if r["kind"] == "push" and r["name"].startswith("autograd::engine::evaluate_function")}
    mains = {r["tid"] for r in trace if r["kind"] == "push" and r["name"] == "levels"}
    assert len(threads) == 1 and not threads & mains, (threads, mains)


def levels(trace, device=0, marker="levels"):
    """At each range named `marker`: the last levels of tensors and of the allocator, and the memory
    allocated by CUDA."""
    allocated = reserved = held = 0
    blocks, found = {}, []
    for r in trace:
        if r["kind"] == "tensor" and r.get("device") == device:
            allocated, reserved = r["allocated"], r["reserved"]
        elif r["kind"] == "alloc" and r["memory_kind"] == "device" and r["device"] == device and not r["result"]:
            blocks[r["address"]] = r["bytes"]
            held += r["bytes"]
        elif r["kind"] == "free" and not r["result"]:
            held -= blocks.pop(r["address"], 0)
        elif r["kind"] == "push" and r["name"] == marker:
            found.append((allocated, reserved, held))
    return found


def memory_is_as_PyTorch_says(trace, said, device=0, word="allocated", marker="levels"):
    wanted = [tuple(map(int, pair)) for pair in re.findall(word + r" (\d+) reserved (\d+)", said)]
    found = levels(trace, device, marker)
    assert len(wanted) == len(found) and wanted, (len(wanted), len(found))
    for number, ((allocated, reserved), level) in enumerate(zip(wanted, found)):
        assert level[:2] == (allocated, reserved), (number, allocated, reserved, level)
        assert level[2] == reserved, (number, reserved, level)


def trained(folder, name, *arguments, env=None, graphs=0, beside=(), backward=True):
    said = both(folder, SCRIPT, name, *arguments, env=env)
    path = folder / "under" / "trace.bin"
    tree, trace = Report(path), dump(path)
    everything_is_linked(tree, graphs)
    time_is_conserved(tree)
    time_is_under_operators_and_modules(tree, beside)
    if backward:
        backward_stands_beside_forward(tree, trace)
    memory_is_as_PyTorch_says(trace, said)
    return tree


# Modules and the operators directly in them: calls, and the number of kernels, copies and memsets
# launched there and below.
MLP = """
Mlp 4 84
  body (Sequential) 4 68
    * (GELU) 12 24
      aten::gelu 12 12
      aten::gelu (bwd) - 12
    * (Linear) 12 44
      aten::linear 12 12
      aten::linear (bwd) - 32
  head (Linear) 4 16
    aten::linear 4 4
    aten::linear (bwd) - 12
"""
CONVOLUTIONAL = """
Convolutional 4 216
  aten::add 8 8
  aten::mean 4 4
  aten::mean (bwd) - 4
  blocks.* (Sequential) 8 120
    * (BatchNorm2d) 8 24
      aten::add_ 8 8
      aten::batch_norm 8 8
      aten::batch_norm (bwd) - 8
    * (Conv2d) 8 80
      aten::conv2d 8 24
      aten::conv2d (bwd) - 56
    * (ReLU) 8 16
      aten::relu 8 8
      aten::relu (bwd) - 8
  head (Linear) 4 16
    aten::linear 4 4
    aten::linear (bwd) - 12
  stem (Sequential) 4 64
    * (BatchNorm2d) 4 12
      aten::add_ 4 4
      aten::batch_norm 4 4
      aten::batch_norm (bwd) - 4
    * (Conv2d) 4 32
      aten::conv2d 4 16
      aten::conv2d (bwd) - 16
    * (MaxPool2d) 4 12
      aten::max_pool2d 4 4
      aten::max_pool2d (bwd) - 8
    * (ReLU) 4 8
      aten::relu 4 4
      aten::relu (bwd) - 4
"""
RECURRENT = """
Recurrent 4 108
  aten::select (bwd) - 8
  head (Linear) 4 16
    aten::linear 4 4
    aten::linear (bwd) - 12
  lstm (LSTM) 4 84
    aten::lstm 4 20
    aten::lstm (bwd) - 56
    aten::zeros 8 8
"""
# In older releases backward also passes through the slice.
SLICED = RECURRENT.replace("4 108", "4 116").replace("  head", "  aten::slice (bwd) - 8\n  head")
# Launches in the graph, summed over all four replays.
GRAPH = """
Mlp - 84
  body (Sequential) - 68
    * (GELU) - 24
      aten::gelu - 12
      aten::gelu (bwd) - 12
    * (Linear) - 44
      aten::linear - 12
      aten::linear (bwd) - 32
  head (Linear) - 16
    aten::linear - 4
    aten::linear (bwd) - 12
"""


def is_shaped(tree, wanted, *around):
    lines = wanted.strip().splitlines()
    found = tree.skeleton(tree.at(*around, lines[0].split()[0]))
    assert found == lines, "\n".join(found)


def shows(name, *arguments):
    """Fails unless the screen is that of screens/NAME.txt. PPERF_TEST_SCREENS=write updates the
    file, to be reviewed and committed."""
    if RELEASE != SCREENS_OF.get(name, NEWEST):
        return
    wanted = SCREENS / (name + ".txt")
    shown = report(*arguments, "--width", "100").stdout.decode()
    if os.environ.get("PPERF_TEST_SCREENS") == "write":
        wanted.write_text(shown)
    assert shown == wanted.read_text(), shown


def shows_by_gpu(name, tree):
    """The screen of the last step. Which earlier steps are warm-up depends on the machine's load.
    """
    shows(name, "critical", tree.path, "-m", "gpu", "-d", "5", "--steps", str(STEPS - 1))


@case
def an_mlp(folder):
    tree = trained(folder, "mlp")
    is_shaped(tree, MLP)
    shows_by_gpu("mlp", tree)


@case
def a_transformer_with_fused_attention(folder):
    """Forward and backward of each part of a layer are below that part. Attention kernels differ by
    release."""
    tree = trained(folder, "bfloat16")
    attention = tree.at("Transformer", "layers.*", "attention")
    rows = {row["name"]: row for row in tree.rows if row["parent"] == attention["id"]}
    forward, backward = rows["aten::scaled_dot_product_attention"], rows["aten::scaled_dot_product_attention (bwd)"]
    assert forward["calls"] == forward["gpu_calls"] == 3 * STEPS and backward["gpu_calls"] in (3 * STEPS, 9 * STEPS), (forward, backward)
    parts = {row["name"]: (row["class"], row["gpu_calls"]) for row in tree.rows if tree.by_id.get(row["parent"]) is attention and row["kind"] == "module"}
    assert parts == {"qkv": ("Linear", 5 * 3 * STEPS), "out": ("Linear", 6 * 3 * STEPS)}, parts
    shows_by_gpu("transformer", tree)


@case
def a_convolutional_net_with_batch_norm(folder):
    tree = trained(folder, "convolutional")
    is_shaped(tree, CONVOLUTIONAL)
    shows_by_gpu("convolutional", tree)


@slow
def a_transformer_in_single_precision(folder):
    shows_by_gpu("transformer-float32", trained(folder, "transformer"))


@slow
def a_recurrent_net(folder):
    tree = trained(folder, "recurrent")
    is_shaped(tree, SLICED if RELEASE in ("torch-2.1.2", "torch-2.5.1") else RECURRENT)
    shows_by_gpu("recurrent", tree)


@slow
def mixed_precision_with_a_scaler(folder):
    tree = trained(folder, "amp", beside={"aten::reciprocal", "aten::mul", "aten::mul (bwd)", "aten::_foreach_norm", "aten::_foreach_mul_",
                                          "aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_update_scale_", "aten::linalg_vector_norm",
                                          "aten::stack", "aten::add", "aten::clamp", "aten::cat", "aten::item", "aten::fill_", "aten::div"})
    shows_by_gpu("amp", tree)


@slow
def an_optimizer_of_many_tensors_at_once(folder):
    shows_by_gpu("foreach", trained(folder, "foreach"))


@slow
def an_optimizer_in_one_kernel(folder):
    tree = trained(folder, "fused")
    step = [row for row in tree.rows if row["name"] == "aten::_fused_adamw_"]
    assert len(step) == 1 and step[0]["gpu_calls"] == STEPS and step[0]["path"][0] == "Optimizer.step#AdamW.step", step
    shows_by_gpu("fused", tree)


@slow
def gradients_that_are_accumulated(folder):
    tree = trained(folder, "accumulation", beside={"aten::div", "aten::div (bwd)"})
    adds = [row for row in tree.rows if row["name"] == "torch::autograd::AccumulateGrad" and row.get("gpu_calls")]
    assert sum(row["gpu_calls"] for row in adds) == STEPS * 3 * 8 and all(row["path"][0] == "Mlp" for row in adds), adds
    shows_by_gpu("accumulation", tree)


@slow
def what_is_computed_again(folder):
    tree = trained(folder, "checkpointing")
    again = [row for row in tree.rows if row["name"] == "layers.* (recompute)"]
    assert sum(row["calls"] for row in again) == STEPS * 3, again
    shows_by_gpu("checkpointing", tree)


@slow
def two_streams(folder):
    tree = trained(folder, "streams", beside={"aten::add", "aten::add (bwd)"})
    used = {r["stream"] for r in dump(tree.path, {"kernel"})}
    assert len(used) == 2, used
    shows_by_gpu("streams", tree)


@slow
def batches_from_other_processes_by_pinned_memory(folder):
    tree = trained(folder, "loader")
    copies = [r for r in dump(tree.path, {"copy"})]
    assert len(copies) >= 2 * STEPS and tree.integrity["copies"] == len(copies)
    assert len(traces(folder / "under")) == 1
    shows_by_gpu("loader", tree)


@slow
def a_graph_of_a_whole_step(folder):
    tree = trained(folder, "graph", graphs=STEPS, beside={"aten::fill_"}) # older releases set the seeds at each replay
    seen = tree.integrity
    assert seen["graph_kernels"] + seen.get("graph_sets", 0) == STEPS * seen["captured"], seen
    is_shaped(tree, GRAPH, "(graph replays)", "graph 1")
    warm, graph = tree.at("Mlp"), tree.at("(graph replays)", "graph 1", "Mlp")
    assert graph["gpu_calls"] * 3 == warm["gpu_calls"] * STEPS, (warm, graph) # three times before the capture
    shows("graph", "tree", tree.path, "--no-steps", "--focus", "(graph replays)", "-d", "6")


@slow
def memory_in_segments_that_grow(folder):
    tree = trained(folder, "mlp", env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
    shows("segments", "memory", tree.path, "--no-steps")


@slow
def memory_by_the_allocator_of_cuda(folder):
    """It reports no tensors. Requested sizes are known, and its pool rounds each up to 512 bytes.
    """
    said = both(folder, SCRIPT, "mlp", env={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
    wanted = [int(n) for n in re.findall(r"allocated (\d+)", said)]
    trace = dump(folder / "under" / "trace.bin")
    for level, said in zip(levels(trace), wanted):
        assert said - 512 * 100 < level[2] <= said, (level, said)
    tree = Report(folder / "under" / "trace.bin")
    everything_is_linked(tree)
    shows("malloc-async", "memory", tree.path, "--no-steps")


# Work of DistributedDataParallel belongs to many modules.
NCCL = {"(backward)", "torch.distributed.ddp.reducer::copy_bucket_to_grad", "c10d::broadcast_", "c10d::allgather_", "aten::flatten_dense_tensors",
        "aten::copy_", "aten::item"}


@slow
def two_processes_with_nccl(folder):
    script, file = SCRIPT, folder / "store"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        ranks = list(pool.map(lambda rank: launch(traced, folder / "ranks", script, "distributed", file, env={"RANK": rank, "SIM_DEVICES": "2"}), ("0", "1")))
    found = traces(folder / "ranks")
    assert len(found) == 2 and not any(rank.stderr for rank in ranks), (found, [rank.stderr for rank in ranks])
    for path in found:
        tree, rank = Report(path), int(info(path)["capture"]["rank"])
        everything_is_linked(tree)
        time_is_conserved(tree)
        time_is_under_operators_and_modules(tree, NCCL)
        memory_is_as_PyTorch_says(dump(path), ranks[rank].stdout.decode(), device=rank)
        shows_by_gpu("distributed", tree) # both ranks do the same


@slow
def two_devices(folder):
    """Half of a model on each device. Their work is kept apart and adds up, and copies between them
    belong to the requesting module."""
    said = both(folder, SCRIPT, "two_devices", env={"SIM_DEVICES": "2"})
    path = folder / "under" / "trace.bin"
    whole, trace = Report(path), dump(path)
    everything_is_linked(whole)
    time_is_conserved(whole)
    memory_is_as_PyTorch_says(trace, said, 0)
    memory_is_as_PyTorch_says(trace, said, 1, "holds", "levels of 1")
    ones = [json.loads(report("tree", path, "-f", "json", "--no-steps", "--device", str(device)).stdout) for device in (0, 1)]
    assert [d["id"] for d in whole.tree["capture"]["devices"]] == [0, 1]
    assert sum(one["totals"]["gpu_sum_ns"] for one in ones) == whole.tree["totals"]["gpu_sum_ns"] and all(one["totals"]["gpu_sum_ns"] for one in ones)
    inside = [{row["path"][1] for row in one["rows"] if row["path"][0] == "Halves" and len(row["path"]) > 1 and row.get("gpu_total_ns") and row["kind"] == "module"}
              for one in ones]
    assert inside == [{"first"}, {"second"}], inside
    copies = Counter(r["copy_kind"] for r in trace if r["kind"] == "memcpy")
    assert copies["PtoP"] == 2 * STEPS, copies # there and back
    shows_by_gpu("two-devices", whole)


@slow
def an_allocation_that_is_refused_once(folder):
    """PyTorch frees its cache and requests again. The program goes on, and the refusal is in the
    report."""
    tree = trained(folder, "mlp", env={"SIM_FAIL_MALLOC": "3"})
    assert tree.integrity["failed_calls"] == 1 and not tree.tree["totals"]["ooms"], tree.integrity


@slow
def a_compiled_model(folder):
    if not (pathlib.Path(sys.prefix) / "lib" / ("python3.%d" % sys.version_info[1]) / "site-packages" / "triton").exists():
        raise Skip("there is no Triton in this environment")
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "TRITON_CACHE_DIR": str(folder / "triton")}
    launch(run, folder / "first", SCRIPT, "compiled", env=cache, check=0)
    shows_by_gpu("compiled", trained(folder, "compiled", env=cache))


OOM = """
OOM       out of memory on GPU 0 after ...: 2.10 MB requested in `step / Sequential / * (GELU)
          / aten::gelu`, called from device_models.py:226 oom.<locals>.step
          allocated by tensors: 1.07 GB; reserved by PyTorch: 1.07 GB of the GPU's 1.07 GB, 1.29 MB
          (0.1 %) of it unallocated
          growth of tensor memory since the start of: step 72 +10.49 MB, Sequential +10.49 MB
          live at that time: 459.28 MB (42.9 %) allocated in `step / Sequential / * (Linear) /
          aten::linear / aten::addmm`, called from device_models.py:226 oom.<locals>.step; 457.18 MB
          (42.7 %) allocated in `step / Sequential / * (GELU) / aten::gelu`, called from
          device_models.py:226 oom.<locals>.step; 150.99 MB (14.1 %) allocated in `Linear /
          aten::linear / aten::addmm`, called from device_models.py:227 oom.<locals>.step; 2.10 MB
          (0.2 %) allocated in `aten::randn / aten::empty`, called from device_models.py:223 oom;
          the rest at 1 other call path
"""
OOM_BY_ALLOCATED = """
step 71 ───────────────────────────────────────────│ 1.05 GB → 1.06 GB (0.0126 ∆)
  └── Sequential ──────────────────────────────────│ 1.05 GB → 1.06 GB (0.0126 ∆)
      ├── 5 (GELU) ────────────────────────────────│ 1.06 GB → 1.06 GB (0.0021 ∆)
      │   └── aten::gelu ──────────────────────────│ 1.06 GB → 1.06 GB (0.0021 ∆)
      ├── 4 (Linear) ──────────────────────────────│ 1.05 GB → 1.06 GB (0.0021 ∆)
      │   └── aten::linear ────────────────────────│ 1.05 GB → 1.06 GB (0.0021 ∆)
      │       └── aten::addmm ─────────────────────│ 1.05 GB → 1.06 GB (0.0021 ∆)
      ├── 3 (GELU) ────────────────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
      │   └── aten::gelu ──────────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
      ├── 2 (Linear) ──────────────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
      │   └── aten::linear ────────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
      │       └── aten::addmm ─────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
      ├── 1 (GELU) ────────────────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
      │   └── aten::gelu ──────────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
      └── 0 (Linear) ──────────────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
          └── aten::linear ────────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
              └── aten::addmm ─────────────────────│ 1.05 GB → 1.05 GB (0.0021 ∆)
simulated device: GPU figures are not measurements
"""


@case
def out_of_memory(folder):
    """The first lines have where, how much, and since when memory had grown."""
    tree = trained(folder, "oom", env={"SIM_MEM": str(1 << 30)}, backward=False)
    shown = report(tree.path, "--width", "100").stdout.decode()
    if RELEASE != NEWEST:
        assert "requested in `" in shown and "growth of tensor memory since the start of: " in shown and "+0 B" not in shown, shown
        return
    story = re.search(r"^OOM .*?\n(?=\S)", shown, re.S | re.M).group()
    words = re.sub(r"after \S+ .?s:", "after ...:", story).split() # the time's width moves the line breaks
    assert words == OOM.split(), story
    shown = report("critical", tree.path, "-m", "allocated", "--width", "100").stdout.decode()
    assert shown.split("warning:")[0] == OOM_BY_ALLOCATED.lstrip(), shown


@slow
def the_slow_rank_of_two(folder):
    """The slow rank is named with its cause, and the other one waited for as long."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = "--master-port=%d" % free.getsockname()[1]
    result = launch(traced, folder, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2", "--master-addr=127.0.0.1", port,
                    ROOT / "tests" / "torch" / "device_ranks.py", check=None)
    assert result.returncode == 0, result.stderr.decode(errors="replace")[-900:]
    got = json.loads(report("ranks", *traces(folder), "-f", "json").stdout)
    [straggler], rows = got["stragglers"], {row["rank"]: row for row in got["rows"]}
    assert straggler["rank"] == 1 and straggler["meanwhile"] == "cpu" and straggler["path"][-1] == "prepare", straggler
    assert rows[1]["aligned"] and rows[0]["wait_ns"] > 19 * 40e6 > rows[1]["wait_ns"], rows
    reduced = [row for row in got["collectives"] if row["name"] == "all-reduce" and "c10d::allreduce_" in row["path"]]
    assert sum(row["calls"] for row in reduced) >= 20 and reduced[0]["last_rank"] == 1, got["collectives"]
    if RELEASE == NEWEST: # the name of the group of all ranks
        assert {c["communicator_name"] for path in traces(folder) for c in dump(path, {"collective"}) if "communicator" in c} == {"0"}
    shown = report("ranks", *traces(folder)).stdout
    assert b"SIMULATED" in shown.upper() and b"prepare" in shown, shown


main()
