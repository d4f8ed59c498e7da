#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch, built for CUDA and unmodified, on the simulated device, without and with the library:
the same output, warnings and exit status.

These are results on a simulation (tests/cudasim): that a step is taken and its sizes are right, never what it computes.
"""
import re
from device import *

SCRIPT = ROOT / "tests" / "torch" / "device_ladder.py"


def climb(folder, *rungs, env=None, timeout=200):
    """The lines that the rungs print. They must be the same without and with the library."""
    lines = dict(line.split(" = ", 1) for line in both(folder, SCRIPT, *rungs, env=env, timeout=timeout).splitlines())
    assert list(lines) == list(rungs), lines
    return lines


@case
def properties_copies_streams_events_memory(folder):
    lines = climb(folder, "properties", "memory", "values", "streams", "events", "backward", "threads", "random_state", "saved", "forked", "unused_libraries")
    assert "pperf simulated device" in lines["properties"] and "17179869184" in lines["memory"], lines
    assert lines["forked"] == "0" and lines["unused_libraries"] == "[]", lines


@case
def layers_optimizers_and_steps(folder):
    climb(folder, "operators", "layers", "optimizers", "mixed_precision", "transformer", "attention", "checkpoints")


@case
def data_loaders_that_pin(folder):
    assert climb(folder, "loader")["loader"] == "64"


@case
def graphs_are_captured_and_replayed(folder):
    climb(folder, "graph_of_values", "graph_of_a_model", "graph_of_two_streams", "graph_of_a_step", "graphed_callable")


@case
def waiting_within_a_capture_is_refused(folder):
    assert "previous error during capture" in climb(folder, "graph_that_waits")["graph_that_waits"]


@case
def out_of_memory_is_said_as_on_a_device(folder):
    lines = climb(folder, "out_of_memory", "growing")
    assert lines["out_of_memory"].startswith("([True, True, True, True, 1"), lines
    assert lines["growing"].startswith("('native', "), lines


@case
def expandable_segments(folder):
    backend, reserved, allocated, taken, left = eval(climb(folder, "growing", env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})["growing"])
    # Memory between freed tensors is reused or freed, so less is reserved than without.
    assert backend == "native" and allocated <= reserved == taken < allocated + (220 << 20) and left == 0, (reserved, allocated, taken, left)


@case
def the_allocator_of_cuda(folder):
    backend, reserved, allocated, taken, left = eval(climb(folder, "growing", env={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})["growing"])
    assert backend == "cudaMallocAsync" and allocated <= reserved and left == 0, (backend, reserved, allocated, left)


@case
def convolutions_and_recurrent_nets(folder):
    climb(folder, "convolutions", "searched_convolutions", "recurrent", "recurrent_kinds")


@case
def all_kinds_of_attention(folder):
    assert ("EFFICIENT" if ENVIRONMENT.name == "torch-2.1.2" else "CUDNN") + "_ATTENTION" in climb(folder, "attention_kinds")["attention_kinds"]


@case
def transforms_and_linear_algebra(folder):
    climb(folder, "transforms", "linear_algebra")


@case
def what_inductor_compiles(folder):
    if not list(ENVIRONMENT.glob("lib/python3*/site-packages/triton")):
        raise Skip("this environment has no Triton")
    climb(folder, "compiled")


@case
def two_processes_train_together(folder):
    assert climb(folder, "distributed", env={"SIM_DEVICES": "2", "MASTER_ADDR": "localhost"})["distributed"] == "2"


@case
def three_processes_exchange(folder):
    assert climb(folder, "collectives", env={"SIM_DEVICES": "3", "MASTER_ADDR": "localhost"})["collectives"] == "3"


def launches(folder, name):
    """The work of the device in order, with durations. Addresses differ between runs and are left
    out."""
    log = folder / (name + ".log")
    result = launch(run, folder / name, SCRIPT, "layers", "transformer", env={"SIM_LOG": str(log)})
    assert result.returncode == 0, result.stderr[-600:]
    return re.sub(r"address=\S+", "", log.read_text()).splitlines()


@case
def the_same_script_does_the_same(folder):
    one, other = launches(folder, "one"), launches(folder, "other")
    assert len(one) > 300 and any(" ns=" in line for line in one), one[:3]
    assert one == other, [pair for pair in zip(one, other) if pair[0] != pair[1]][:3]


main()
