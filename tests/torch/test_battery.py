#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch programs without and with the library: the same output, warnings, exit status and
compiler counters. Nothing is printed or left open by pperf.

Runs in any environment that has PyTorch. PPERF_TEST_QUICK: without what takes more than some seconds.
"""
import re, socket, sys, sysconfig
from harness import *

SCRIPT = ROOT / "tests" / "torch" / "battery.py"
# PyTorch's log lines begin with a time and a process id.
STAMPS = [rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+:\d+", rb"\b[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ \d+", rb"\[rank\d\]:", rb"\(pid=\d+\)", rb"0x[0-9a-f]{6,}", rb"/(bare|under)/[\w./-]*"]


def plain(text):
    for stamp in STAMPS:
        text = re.sub(stamp, b"*", text)
    return sorted(text.splitlines())


def site():
    return sysconfig.get_paths()["purelib"]


def changes(folder, name):
    """Environment in which each run compiles for itself."""
    cache = folder / name
    cache.mkdir()
    return {"TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "USER": "user", "TMPDIR": str(cache), "OMP_NUM_THREADS": "1"}


def alike(folder, *arguments, env=None, timeout=280):
    """Runs Python without the library and with it, fails if they differ, and returns the second
    result."""
    bare = run(folder, sys.executable, *arguments, env={**changes(folder, "bare"), **(env or {})}, timeout=timeout)
    under = traced(folder, sys.executable, *arguments, env={**changes(folder, "under"), **(env or {})}, check=None, timeout=timeout)
    for one, other in (plain(bare.stdout), plain(under.stdout)), (plain(bare.stderr), plain(under.stderr)):
        gone, new = [l for l in one if l not in other], [l for l in other if l not in one]
        assert one == other, "without: %s\nwith: %s" % (b"\n".join(gone).decode()[-900:], b"\n".join(new).decode()[-900:])
    assert bare.returncode == under.returncode, (bare.returncode, under.returncode)
    return under


def whole(path):
    facts = info(path)["integrity"]
    assert facts["lost_events"] == 0 and facts["unmatched_ends"] == 0 and facts["left_open"] == 0, facts


def battery(folder, *parts, options=(), **more):
    result = alike(folder, *options, SCRIPT, *parts, **more)
    lines = [line.split(" = ")[0] for line in result.stdout.decode().splitlines()]
    assert result.returncode == 0 and lines == list(parts), (result.returncode, lines, result.stderr.decode()[-600:])
    for trace in traces(folder):
        whole(trace)
    found = set(names(folder / "trace.bin")) if (folder / "trace.bin").exists() else set()
    assert any(name.startswith("aten::") for name in found), sorted(found)[:20]
    return result


@case
def what_a_program_does_with_modules_and_autograd(folder):
    battery(folder, "eager", "train", "adamw", "raises", "random_numbers", "double_backward", "custom_function", "threads", "checkpoints", "hooks",
            "dispatch_mode", "record_function", "deepcopy", "save_and_load", "vmap", "forked")


@case
def graphs_and_scripts_made_of_modules(folder):
    battery(folder, "fx", "export", "script", "trace")


@case
def profilers_of_the_program_s_own_see_what_they_saw(folder):
    battery(folder, "profiler", "profiler_schedule", "module_tracker", "flops")


@case
def compiled_programs_are_compiled_as_often_and_as_whole(folder):
    battery(folder, "compile_eager", "compile_breaks", "compile_function", "compile_module", "compile_train", "compile_shapes")


@case
def no_warning_more_where_warnings_are_errors(folder):
    battery(folder, "eager", "train", "custom_function", "fx", "compile_breaks", options=("-W", "error"))


@slow
def export_and_compile_where_warnings_are_errors(folder):
    battery(folder, "export", "compile_eager", "compile_train", "checkpoints", "vmap", "save_and_load", options=("-W", "error"))


@slow
def programs_that_inductor_compiles(folder):
    battery(folder, "inductor", "inductor_train")


@case
def workers_of_a_DataLoader_that_are_forked(folder):
    battery(folder, "loader_fork")


@slow
def workers_of_a_DataLoader_that_are_spawned(folder):
    battery(folder, "loader_spawn")


@slow
def workers_of_a_DataLoader_from_a_fork_server(folder):
    battery(folder, "loader_forkserver")


@case
def an_interpreter_that_takes_nothing_from_its_surroundings(folder):
    code = "import sys; sys.path.append(%r); import torch; print(torch.nn.Linear(2, 2)(torch.zeros(1, 2)).shape)" % site()
    alike(folder, "-I", "-S", "-E", "-c", code)
    assert "aten::linear" in names(folder / "trace.bin")
    whole(folder / "trace.bin")


@slow
def a_program_that_is_not_Python_but_runs_it(folder):
    library = pathlib.Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
    if ".so" not in library.name or not library.exists():
        raise Skip("this Python has no shared library")
    code = "import sys\nsys.path.append(%r)\nsys.argv = ['', 'train', 'threads', 'checkpoints']\n" \
           "sys.path.insert(0, %r)\nimport battery\nbattery.main()" % (site(), str(SCRIPT.parent))
    env = {"PYTHONHOME": sys.base_prefix}
    bare, under = [how(folder, "embeds_python", library, code, env=env, check=0) for how in (run, traced)]
    assert (plain(bare.stdout), plain(bare.stderr)) == (plain(under.stdout), plain(under.stderr)) and b"train = " in under.stdout, (bare, under)
    assert "aten::linear" in names(folder / "trace.bin")
    whole(folder / "trace.bin")


def torchrun(folder, part):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = "--master-port=%d" % free.getsockname()[1]
    return alike(folder, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2", "--master-addr=127.0.0.1", port, SCRIPT, part)


@slow
def two_processes_under_torchrun(folder):
    result = torchrun(folder, "distributed")
    assert result.returncode == 0 and result.stdout.count(b"distributed = ([3.0, 3.0, 3.0, 3.0]") == 2, (result.stdout, result.stderr[-600:])
    files = [t for t in traces(folder) if any(name.startswith("DistributedDataParallel") for name in names(t))]
    assert len(files) == 2, (traces(folder), [sorted(set(names(t)))[:9] for t in traces(folder)])
    ranks = json.loads(report("ranks", *files, "-f", "json").stdout) # collectives of gloo are ranges
    assert [(row["rank"], row["aligned"]) for row in ranks["rows"]] == [(0, True), (1, True)] and ranks["matched"] >= 3, ranks
    for trace in files:
        whole(trace)


@slow
def a_model_in_shards(folder):
    import torch
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise Skip("this PyTorch shards on GPUs only, or has no fully_shard")
    result = torchrun(folder, "sharded")
    assert result.returncode == 0 and result.stdout.count(b"sharded = [") == 2, (result.stdout, result.stderr[-600:])
    files = [t for t in traces(folder) if {"FullyShardedDataParallel.forward", "FSDP::all_gather"} <= set(names(t))]
    assert len(files) == 2, (traces(folder), [sorted(n for n in set(names(t)) if "FSDP" in n or "Sharded" in n) for t in traces(folder)])
    for trace in files:
        whole(trace)


main()
