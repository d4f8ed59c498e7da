#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Native frames of CPU samples: stacks are complete, functions get their share, and where the kernel refuses events the clocks are sampled and
the reason is said."""
from cpu_samples import *
from harness import *
from python_versions import interpreters

PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]

def run_sampled(folder, seconds, threads, hz=199, before=(), env=None, **options):
    result = subprocess.run([*before, "env", "LD_PRELOAD=" + preload(), program("native_stacks"), str(seconds), str(threads)], cwd=folder,
                            capture_output=True, text=True, timeout=300, env=environment(PPERF_SAMPLE=str(hz), **(env or {})), **options)
    assert result.returncode == 0 and result.stdout == "done\n" and not result.stderr, result
    return traced_samples(folder)


@case
def stacks_of_running_threads_are_complete_and_functions_get_their_share(folder):
    samples = run_sampled(folder, 3, 2, hz=499)
    assert samples.meta["source.cpu_samples"] == "on" and samples.meta["sample.source"] == "perf", samples.meta
    assert len(samples.native) > 1000 and samples.complete() >= 0.99, (len(samples.native), samples.complete())
    assert sum(bool(r.flags & GUESSED) for r in samples.native) <= 0.005 * len(samples.native)
    functions = samples.leaves()
    share = functions["spend_three"] / (functions["spend_three"] + functions["spend_one"])
    assert abs(share - 0.75) < 0.05 and sum(functions.values()) - functions["spend_three"] - functions["spend_one"] < 0.05 * len(samples.native), functions
    depths = [len(samples.addresses(r)) for r in samples.native]
    assert max(depths) >= 8 and min(depths) >= 3, (min(depths), max(depths))


@case
def a_stack_with_much_room_is_copied_up_to_its_callers(folder):
    # With 16 KiB of the stack the callers are read 0.1 ms later, when they are over.
    result = run(folder, program("aligned_stack"), 3, env={"LD_PRELOAD": preload(), "PPERF_SAMPLE": "299"})
    assert result.stdout == b"done\n", result
    samples = traced_samples(folder)
    inside = [[samples.function(a) for a in samples.addresses(r)[:3]] for r in samples.native if samples.function(r.pc) == "?"]
    called = [names for names in inside if names[1:] == ["call_kernel", "call_below_room"]]
    print("# %d samples in the kernel, %d with its callers; %.1f %% complete" % (len(inside), len(called), 100 * samples.complete()))
    assert len(inside) > 500 and len(called) >= 0.97 * len(inside) and samples.complete() >= 0.97, (len(inside), len(called), samples.complete())


@case
def eight_threads_at_the_highest_rate_lose_little_and_count_it(folder):
    samples = run_sampled(folder, 1, 8, hz=999)
    # 1 to 2 % on an idle machine: the program's eight threads leave the sampler little of two cores.
    assert samples.lost <= 0.1 * len(samples.native), (samples.lost, len(samples.native))
    used = sum(16 * r.weight for r in samples.samples if r.state in (ON_CPU, KERNEL)) / 1e9 + samples.lost / 999
    assert abs(used - 8) < 0.4, used


@case
def where_a_filter_refuses_events_the_clocks_are_sampled_and_the_reason_is_said(folder):
    samples = run_sampled(folder, 1, 1, before=(program("sampled_storms"), "refuse", "perf_event_open"))
    assert samples.meta["source.cpu_samples"].startswith("partial: no native frames of threads on a core: perf_event_open was refused (EPERM)"), \
        samples.meta
    assert samples.meta["sample.source"] == "clock" and not samples.native
    assert sum(16 * r.weight for r in samples.samples) > 0.8e9


@case
def the_source_and_the_stack_can_be_chosen(folder):
    samples = run_sampled(folder, 0.5, 1, env={"PPERF_SAMPLE_KIND": "clock"})
    assert "PPERF_SAMPLE_KIND" in samples.meta["source.cpu_samples"] and not samples.native
    (folder / "none").mkdir()
    samples = run_sampled(folder / "none", 0.5, 1, env={"PPERF_SAMPLE_STACK": "0"})
    assert "PPERF_SAMPLE_STACK" in samples.meta["source.cpu_samples"] and not samples.native
    (folder / "small").mkdir()
    samples = run_sampled(folder / "small", 1, 1, env={"PPERF_SAMPLE_STACK": "64"})
    assert samples.complete() >= 0.7, samples.complete() # what is read from memory may have moved


@case
def few_descriptors_are_enough_for_many_threads(folder):
    samples = run_sampled(folder, 0.3, 40, before=("sh", "-c", 'ulimit -n 20; exec "$@"', "sh"))
    assert samples.meta["source.cpu_samples"] == "on", samples.meta
    assert len({r.tid for r in samples.native}) == 40


@case
def where_little_memory_may_be_locked_some_threads_are_sampled_by_their_clock(folder):
    become_nobody = nobody_without_locked_memory(folder, program("native_stacks"), "0", "0")
    # The kernel counts what all processes of this user lock, also those of a test that runs beside this one.
    samples = run_sampled(folder, 0.3, 60, preexec_fn=become_nobody)
    assert "lock no more memory" in samples.meta["source.cpu_samples"], samples.meta
    assert len({r.tid for r in samples.samples}) >= 55
    assert samples.native or "a ring was refused (EPERM)" in samples.meta["source.cpu_samples"], samples.meta


@case
def python_frames_fit_the_native_ones_in_every_python(folder):
    # In Debian's Pythons from 3.13 on, the compiler placed most of the interpreter's function apart from its entry, and there are no symbols.
    if not PYTHONS:
        raise Skip("no CPython is installed")
    for path in PYTHONS:
        trace = folder / "python.bin"
        traced(folder, path, ROOT / "tests/programs/sampled.py", "split", 2, env={"PPERF_SAMPLE": "299", "PPERF_OUTPUT": str(trace)})
        samples = Samples(trace).check()
        unequal = sum(bool(r.flags & UNEQUAL) for r in samples.samples)
        assert samples.meta["source.cpu_samples"] == "on" and unequal <= 0.1 * len(samples.native), (path, unequal, len(samples.native))
        shown = json.loads(report("table", "--by", "function", "--format", "json", trace).stdout)
        module = [row for row in shown["rows"] if row["label"] == "<module> [sampled.py]"]
        assert len(module) == 1 and module[0]["cpu_sampled_total_ns"] > 0.8 * shown["cpu_samples"][0]["cpu_sampled_ns"], (path, module)


if not can_open_events():
    print("1..0 # skip: this kernel refuses perf_event_open")
else:
    main()
