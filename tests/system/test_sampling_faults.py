#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPU samples where the kernel refuses what they need, and of programs that are hard to sample: the program's output and status are the same, every loss
is counted, and the reason is in the trace, on the first screen and in what `pperf doctor` says."""
from cpu_samples import *
from harness import *
from python_versions import interpreters

PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]
STORMS = program("sampled_storms")
RUNGS = ({}, {"PPERF_SAMPLE_KIND": "clock"}, {"PPERF_SAMPLE_CLOCK": "wall"})
HZ = 299


def storm(folder, *arguments, env=None, before=(), threads=1, **options):
    """Runs a storm in a folder of its own and returns its samples, whose weights and losses are checked against the threads' clocks."""
    folder.mkdir()
    result = subprocess.run([*before, "env", "LD_PRELOAD=" + preload(), *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=300,
                            env=environment(PPERF_SAMPLE=str(HZ), **(env or {})), **options)
    if result.returncode == 77:
        raise Skip("this kernel or processor does not permit it")
    assert result.returncode == 0 and result.stdout == "done\n" and not result.stderr, result
    samples = traced_samples(folder)
    for tid, clock in sorted(samples.clocks.items())[:threads + 1]:
        weight = samples.weight(lambda r: r.tid == tid and r.state in (ON_CPU, KERNEL))
        assert -0.01 * clock - 3e9 / HZ <= clock - weight <= 0.01 * clock + (3 + samples.lost) * 1e9 / HZ, (tid, weight, clock, samples.lost)
    assert samples.samples
    return samples


def in_each_rung(folder, *arguments, **options):
    return [storm(folder / str(number), *arguments, env=env, **options) for number, env in enumerate(RUNGS)]


def functions_of_all(samples):
    """How many native stacks have each function in them."""
    return collections.Counter(name for r in samples.native for name in {samples.function(at) for at in samples.addresses(r)})


def plain_only():
    if SANITIZED:
        raise Skip("a sanitizer's runtime has stacks, handlers and wrappers of its own")


# ---- hard to sample ----

@case
def a_library_is_loaded_and_unloaded_ten_thousand_times(folder):
    plain_only()
    for number, env in enumerate(RUNGS[:2]):
        samples = storm(folder / str(number), STORMS, "loads", 10000, BUILD / "tests/programs/lib_spends.so", env=env)
        if samples.meta["sample.source"] == "perf":
            assert samples.complete() > 0.9, samples.complete()


@case
def jumps_out_of_recursion_and_handlers_are_survived(folder):
    plain_only()
    for samples in in_each_rung(folder, STORMS, "jumps", 0.7):
        if samples.meta["sample.source"] == "perf":
            # A stack that was left while its outer part was read is cut.
            recursions = sum(count for name, count in functions_of_all(samples).items() if name.startswith("recurse"))  # the compiler adds ".isra.0"
            assert samples.complete() > 0.9 and recursions > 10, (samples.complete(), functions_of_all(samples))


@case
def callers_of_code_made_at_run_time_are_found(folder):
    plain_only()
    for samples in in_each_rung(folder, STORMS, "made", 0.7):
        if samples.meta["sample.source"] == "perf":
            guessed = [r for r in samples.native if r.flags & GUESSED]
            above = sum("main" in {samples.function(at) for at in samples.addresses(r)} for r in guessed)
            assert len(guessed) > 30 and above > 0.9 * len(guessed), (len(guessed), above)


@case
def a_storm_of_forks_beside_a_working_thread(folder):
    plain_only()
    in_each_rung(folder, STORMS, "forks", 300)


@case
def the_smallest_stacks_and_a_small_limit(folder):
    plain_only()
    in_each_rung(folder, STORMS, "small", 200, before=("sh", "-c", 'ulimit -s 128; exec "$@"', "sh"))


@case
def twenty_thousand_short_threads_are_sampled_or_counted(folder):
    plain_only()
    result = traced(folder, "sampled", "threads", 20000, env={"PPERF_SAMPLE": str(HZ)}, timeout=300)
    samples, used = Samples(folder / "trace.bin"), int(result.stdout)
    own = sum(r.duration for r in samples.trace.records if r.kind == "SELF" and r.what == 6) / samples.trace.ticks_per_ns
    counted = samples.weight() + samples.lost * 1e9 / HZ
    assert 0.8 * used < counted + own < 1.15 * used, (used, counted, samples.lost, own)


# ---- refused ----

def expect_reason(folder, samples, reason):
    """The reason is in the trace and on the first screen."""
    assert reason in samples.meta["source.cpu_samples"], samples.meta["source.cpu_samples"]
    screen = " ".join(report(*traces(folder), "--width", "500").stdout.decode().split())
    assert reason in screen, screen
    return samples


def doctor_says(folder, before, reason, **options):
    result = subprocess.run([*before, install_tools(folder / "installed"), "doctor"], cwd=folder, capture_output=True, text=True, timeout=120,
                            env=environment(XDG_RUNTIME_DIR=str(folder)), **options)
    assert reason in " ".join(result.stdout.split()), result


def is_refused(folder, before, reason, doctor=True, **options):
    """The reason is named in each place, and the clocks are sampled."""
    samples = storm(folder / "run", program("native_stacks"), 0.5, 1, before=before, **options)
    expect_reason(folder / "run", samples, reason)
    assert samples.weight() > 0.4e9, samples.weight()
    if doctor and not SANITIZED:
        doctor_says(folder, before, reason, **options)
    return samples


@case
def a_filter_that_refuses_perf_event_open_is_named(folder):
    if not can_open_events():
        raise Skip("this kernel refuses perf_event_open anyway")
    is_refused(folder, (STORMS, "refuse", "perf_event_open"), "perf_event_open was refused (EPERM)")


@case
def a_filter_that_refuses_to_read_memory_is_named(folder):
    samples = is_refused(folder, (STORMS, "refuse", "process_vm_readv"), "process_vm_readv was refused (EPERM)")
    assert not samples.native
    if PYTHONS:
        folder = folder / "python"
        folder.mkdir()
        result = subprocess.run([STORMS, "refuse", "process_vm_readv", "env", "LD_PRELOAD=" + preload(), PYTHONS[-1], "-c",
                                 "sum(range(20000000)); print('done')"], cwd=folder, capture_output=True, text=True, timeout=120,
                                env=environment(PPERF_SAMPLE=str(HZ)))
        assert result.returncode == 0 and result.stdout == "done\n" and not result.stderr, result
        samples = traced_samples(folder)
        assert samples.samples and not any(r.python for r in samples.samples)


@case
def no_memory_that_may_be_locked_is_named(folder):
    become_nobody = nobody_without_locked_memory(folder, program("native_stacks"), "0", "0")
    if not can_open_events():
        raise Skip("this kernel refuses perf_event_open")
    # 60 threads need more than the kernel permits each user to lock, without a limit of the process.
    result = subprocess.run([program("native_stacks"), "0.05", "60"], cwd=folder, capture_output=True, text=True, timeout=300,
                            preexec_fn=become_nobody, env=environment(LD_PRELOAD=preload(), PPERF_SAMPLE=str(HZ)))
    assert result.returncode == 0 and result.stdout == "done\n" and not result.stderr, result
    expect_reason(folder, traced_samples(folder), "RLIMIT_MEMLOCK")


@case
def sixty_four_descriptors_are_enough(folder):
    shell = ("sh", "-c", 'ulimit -n 64; exec "$@"', "sh")
    for number, env in enumerate(RUNGS):
        samples = storm(folder / str(number), program("native_stacks"), 0.05, 60, before=shell, env=env, threads=60)
        assert len(samples.clocks) >= 55
        # The clock alone has no native frames of running threads; events need no descriptor once they are mapped.
        expected = "PPERF_SAMPLE_KIND" if "PPERF_SAMPLE_KIND" in env else "on" if can_open_events() else "refused"
        assert expected in samples.meta["source.cpu_samples"], samples.meta["source.cpu_samples"]


main()
