#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPU samples (PPERF_SAMPLE): their weights are the threads' CPU time, they are where it was used, and the sampled program behaves as without them."""
import collections, re, signal
from cpu_samples import *
from harness import *
from python_versions import interpreters
import raw_trace

PYTHONS = [path for _, free_threaded, path in interpreters() if not free_threaded]
SCRIPT = ROOT / "tests/programs/sampled.py"


def sampled(folder, *arguments, hz=99, env=None, **options):
    return traced(folder, *arguments, env={"PPERF_SAMPLE": str(hz), "PPERF_SAMPLE_KIND": "clock", **(env or {})}, **options)


@case
def a_program_without_ranges_is_sampled_and_the_weights_are_its_cpu_time(folder):
    used = int(sampled(folder, "sampled", "burn", 1).stdout)
    samples = Samples(folder / "trace.bin").check()
    # What is before the sampler's first look and after its last is in no sample.
    assert 0.9 * used < samples.weight() <= used, (samples.weight(), used)
    assert samples.trace.meta["sample.hz"] == "99" and samples.trace.meta["sample.clock"] == "cpu"
    assert samples.trace.meta["source.cpu_samples"].startswith(("on", "partial: "))


@case
def samples_are_in_the_range_that_used_the_time(folder):
    sums = collections.Counter()
    # 1,600 samples have a standard error of 1.1 points, so a run that is not within two is continued by another.
    for number in range(3):
        trace = folder / ("%d.bin" % number)
        sampled(folder, "sampled", "split", 8, hz=199, env={"PPERF_OUTPUT": str(trace)})
        sums.update(Samples(trace).check().by_node())
        share = sums["three"] / (sums["three"] + sums["one"])
        if abs(share - 0.75) < 0.02:
            break
    assert abs(share - 0.75) < 0.02, sums


@case
def python_functions_get_the_samples_of_their_time_in_every_python(folder):
    assert PYTHONS
    for path in PYTHONS:
        sampled(folder, path, SCRIPT, "split", 3, hz=299, env={"PPERF_OUTPUT": str(folder / "one.bin")})
        samples = Samples(folder / "one.bin").check()
        weights, whole = collections.Counter(), 0
        for r in samples.samples:
            stack = samples.stack(r)
            weights.update({name: r.weight for name in {"three", "one"} & set(stack)})
            whole += bool(stack) and stack[0] == "<module>"
        share = weights["three"] / (weights["three"] + weights["one"])
        assert abs(share - 0.75) < 0.06, (path, weights)
        assert whole > 0.7 * len(samples.samples), (path, whole, len(samples.samples))
        assert "warning.sample_python" not in samples.trace.meta, (path, samples.trace.meta["warning.sample_python"])


@case
def no_name_is_invented_while_frames_and_code_objects_come_and_go(folder):
    names = re.compile(r"(made_\d+|<module>|(churn\.<locals>\.)?<listcomp>|churn|made|nested|generator)$")
    for path in PYTHONS:
        sampled(folder, path, SCRIPT, "churn", 3, hz=999, env={"PPERF_OUTPUT": str(folder / "one.bin")})
        samples = Samples(folder / "one.bin")
        own = [samples.trace.names[f.function] for f in samples.frames.values() if samples.trace.names[f.file] in (str(SCRIPT), "<string>")]
        assert len(own) >= 5, (path, len(own))
        assert all(names.match(name) for name in own), (path, [n for n in own if not names.match(n)])
        files = {samples.trace.names[f.file] for f in samples.frames.values()}
        assert all(f.startswith(("/", "<")) for f in files), files


@case
def no_call_is_interrupted_and_no_signal_is_used(folder):
    # A sanitizer's runtime handles signals of its own.
    bare = run(folder, "sampled", "calls", 3, env={"LD_PRELOAD": " ".join(PRELOADS)}, check=0).stdout
    for clock in ("cpu", "wall"):
        for kind in ("clock", None):
            trace = folder / ("%s-%s.bin" % (clock, kind))
            with_samples = sampled(folder, "sampled", "calls", 5, hz=999,
                                   env={"PPERF_SAMPLE_CLOCK": clock, "PPERF_SAMPLE_KIND": kind, "PPERF_OUTPUT": str(trace)}).stdout
            assert b"usleep 0\n" in bare and with_samples == bare, (bare, with_samples)
            samples = Samples(trace)
            assert len(samples.samples) > 20
            assert kind or samples.meta["sample.source"] == "perf" or not can_open_events(), samples.meta["source.cpu_samples"]


@case
def a_shell_that_starts_the_program_leaves_no_trace(folder):
    sampled(folder, "/bin/sh", "-c", "/bin/true; exec " + program("sampled") + " burn 1")
    assert len(traces(folder)) == 1, traces(folder)
    samples = Samples(traces(folder)[0]).check()
    # What it used before is no sample's.
    assert 0.5e9 < samples.weight() < 1.1e9, samples.weight()


@case
def many_short_threads_lose_nothing_silently(folder):
    used = int(sampled(folder, "sampled", "threads", 20000).stdout)
    samples = Samples(folder / "trace.bin")
    # What is lost of the samples is no loss of anything else.
    integrity = info(folder / "trace.bin")["integrity"]
    assert integrity["complete"] and integrity["lost_events"] == 0 and samples.lost > 0, (integrity, samples.lost)
    # One lost sample stands for a period of CPU time.
    counted = samples.weight() + samples.lost * 1e9 / 99
    # CPU time before the first look, and the sampler's own, is the process's too.
    own = sum(r.duration for r in samples.trace.records if r.kind == "SELF" and r.what == 6) / 1e9 * 1e9 / samples.trace.ticks_per_ns
    assert 0.85 * used < counted + own < 1.1 * used, (used, samples.weight(), samples.lost, own)


@waits
@case
def the_states_of_a_thread_add_up_to_the_time_that_has_passed(folder):
    sampled(folder, "sampled", "waits", 6, env={"PPERF_SAMPLE_CLOCK": "wall"})
    samples = Samples(folder / "trace.bin").check()
    by_node, states = samples.by_node(), collections.Counter()
    for r in samples.samples:
        states[r.state] += 16 * r.weight
    assert states[BLOCKED] > 6 * 2.4e9, states
    for name in ("lock", "sleep", "pipe"):
        assert 0.85 * 6e9 < by_node[name] < 1.1 * 6e9 + 1e9, (name, by_node)
    main = min(r.tid for r in samples.samples)
    of_main = [r for r in samples.samples if r.tid == main]
    first = min(r.stamp - r.ago for r in of_main)
    # The samples of the first look represent the time before it. A blocked one is written later, for the place of the look before.
    before = 16 * sum(r.weight for r in of_main if r.stamp - r.ago == first and r.state != BLOCKED)
    passed = (max(r.stamp for r in of_main) - first) / samples.trace.ticks_per_ns + before
    sum_ns = samples.weight(lambda r: r.tid == main)
    assert abs(sum_ns - passed) < 0.01 * passed, (sum_ns, passed)


@case
def forked_children_are_sampled_in_files_of_their_own(folder):
    env = {"PPERF_CHILDREN": "all", "PPERF_OUTPUT": str(folder / "trace.%p.bin")}
    sampled(folder, "sampled", "fork", 1, env=env)
    children = [Samples(t) for t in traces(folder)]
    # The parent has used little, and may have a file or not.
    assert 0.8e9 < max(child.check().weight() for child in children) < 1.1e9, [child.weight() for child in children]
    for path in PYTHONS:
        for trace in traces(folder):
            trace.unlink()
        result = sampled(folder, path, SCRIPT, "fork", 0.5, env=env)
        assert not result.stderr, result.stderr # CPython 3.12 and later warns of a fork with threads
        both = [Samples(t) for t in traces(folder)]
        assert len(both) == 2, (path, traces(folder))
        for samples in both:
            assert samples.weight() > 0.35e9 and any("burn" in samples.stack(r) for r in samples.samples), path


@case
def a_child_without_events_leaves_no_file_by_default(folder):
    sampled(folder, "sampled", "fork", 0.5, env={"PPERF_OUTPUT": str(folder / "trace.%p.bin")})
    assert not traces(folder), traces(folder)


@case
def a_killed_program_keeps_its_samples(folder):
    for number, env in enumerate(({"PPERF_SAMPLE_KIND": "clock"}, {}, {"PPERF_SAMPLE_CLOCK": "wall"})):
        trace = folder / ("%d.bin" % number)
        process = subprocess.Popen([program("sampled"), "split", "60"], cwd=folder, stdout=subprocess.DEVNULL,
                                   env=environment(LD_PRELOAD=preload(), PPERF_SAMPLE="199", PPERF_OUTPUT=str(trace), **env))
        cpu = lambda: sum(map(int, open("/proc/%d/stat" % process.pid).read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        while cpu() < 1.5:
            time.sleep(0.01)
        used = cpu()
        process.send_signal(signal.SIGKILL)
        process.wait()
        samples = Samples(trace)
        weight = samples.weight(lambda r: r.state in (ON_CPU, KERNEL)) / 1e9 + samples.lost / 199
        # The last two periods are with the kernel, where there are events.
        assert weight > used - (0.1 if "PPERF_SAMPLE_KIND" in env else 0.2), (env, weight, used)


@case
def without_the_setting_nothing_is_made_and_with_it_only_the_thread(folder):
    sampled(folder, "sampled", "burn", 0.3, hz=0)
    assert not traces(folder)
    for value in ("abc", "-1", "1001"):
        sampled(folder, "ranges", "1", "5", hz=value)
        assert "PPERF_SAMPLE" in raw_trace.whole(folder / "trace.bin").meta["warning.settings"]
        assert not Samples(folder / "trace.bin").samples
    process = subprocess.Popen([program("sampled"), "sleep", "2"], cwd=folder, stdout=subprocess.DEVNULL,
                               env=environment(LD_PRELOAD=preload(), PPERF_SAMPLE="99"))
    time.sleep(0.7)
    names = sorted(open(task + "/comm").read().strip() for task in map(str, pathlib.Path("/proc/%d/task" % process.pid).iterdir()))
    process.wait()
    assert names == ["pperf", "sampled"], names


@case
def few_descriptors_are_enough(folder):
    result = subprocess.run(["sh", "-c", "ulimit -n 12; exec %s split 1" % program("sampled")], cwd=folder, capture_output=True, timeout=60,
                            env=environment(LD_PRELOAD=preload(), PPERF_SAMPLE="99", PPERF_SAMPLE_CLOCK="wall"))
    assert result.returncode == 0 and not result.stderr, result
    assert Samples([t for t in traces(folder)][0]).check().weight() > 0.5e9


COUNTS_DESCRIPTORS = """
import os, time
def seen():
    return [os.stat(f"/proc/self/fd/{fd}").st_ino for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")]
while time.process_time() < 0.5:
    pass
print(seen(), flush=True)
if not os.fork():
    print(seen(), flush=True)
    os._exit(0)
os.wait()
"""


@case
def the_program_and_its_child_see_no_descriptor(folder):
    for kind, clock in [("perf", "cpu"), ("clock", "wall")]:
        result = sampled(folder, PYTHONS[0], "-c", COUNTS_DESCRIPTORS, hz=999, env={"PPERF_SAMPLE_KIND": kind, "PPERF_SAMPLE_CLOCK": clock, "PPERF_OUTPUT": "t.bin"})
        assert result.stdout == b"[]\n" * 2, (kind, result)
        assert Samples(folder / "t.bin").samples


@case
def a_schedule_and_a_ring_pause_and_keep_samples(folder):
    sampled(folder, "sampled", "split", 2, env={"PPERF_RING": "1M"})
    assert len(Samples(folder / "trace.bin").samples) > 50
    sampled(folder, "sampled", "split", 2, env={"PPERF_SCHEDULE": "wait:50,active:50,repeat:3", "PPERF_STEP_MARKER": "three"})
    samples = Samples(folder / "trace.bin").check()
    assert 0.1e9 < samples.weight() < 1.5e9, samples.weight()


main()
