#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recording with CUPTI on the simulated device. The trace must have exactly what programs know of
their own work. Whatever CUPTI does wrong, the program is unaffected and the trace has what is
missing."""
import collections, errno, json, os, re, shutil, signal, subprocess, time
from concurrent.futures import ThreadPoolExecutor
from harness import BUILD, PROGRAMS, REPORT, SANITIZED, Skip, case, environment, main, preload, report, run, traced, waits
from gpu_reference import CALLBACK, CAPTURED, GPU, calls, complete, differences, gpu, owners
from raw_trace import whole

MAJORS = ("12", "13")
DROPPED, UNREAD = 6, 7
FEW = (2, 2, 2)
ALL = 8 # TRACE_MEMORY_ALL


def simulated(major, name):
    path = BUILD / "cudasim" / major / name
    if not path.exists():
        raise Skip("the simulated device is not built (no %s)" % path)
    return str(path)


def known_work(folder, major, *arguments, env=None, check=0):
    """Runs known_work under the library: its output and its trace."""
    for path in folder.glob("*.bin*"):
        path.unlink()
    result = traced(folder, simulated(major, "known_work"), *arguments, env=env, check=check)
    assert result.stderr == b"", result.stderr
    return json.loads(result.stdout), whole(folder / "trace.bin")


def same_under_library(folder, major, *arguments, env=None, check=0):
    """Runs cuda_guest without and with the library, fails if anything differs, and returns its
    output."""
    bare = run(folder, simulated(major, "cuda_guest"), *arguments, env=env, check=check)
    under = traced(folder, simulated(major, "cuda_guest"), *arguments, env=env, check=check)
    assert under.stdout == bare.stdout, (bare.stdout, under.stdout)
    assert under.stderr == bare.stderr, under.stderr
    return bare.stdout.decode()


def exactly(folder, major, *arguments, env=None):
    output, trace = known_work(folder, major, *arguments, env=env)
    wrong = differences(output, trace)
    assert not wrong, "\n".join(wrong)
    complete(trace)
    return trace


# ---- contexts that end ----

def ended(folder, major, how, env=None):
    """The memory held at the end by kind, and the record that ended the context."""
    bare = run(folder, simulated(major, "ends_contexts"), how)
    under = traced(folder, simulated(major, "ends_contexts"), how, env=env)
    assert under.stdout == bare.stdout and under.stderr == bare.stderr
    rows = json.loads(subprocess.run([REPORT, "memory", folder / "trace.bin", "-f", "json"], capture_output=True, check=True).stdout)
    assert rows["integrity"]["conserved"]
    records = [c for c in whole(folder / "trace.bin").calls if c.kind == "FREE" and c.mflags & ALL]
    return rows, records


@case
def what_a_context_had_is_freed_with_it(folder):
    for major in MAJORS:
        for how, env, name in (("reset", None, "cudaDeviceReset"), ("reset", {"PPERF_CUPTI": "0"}, "cudaDeviceReset"),
                               ("primary", None, "(context destroyed)"), ("contexts", None, "(context destroyed)")):
            rows, records = ended(folder, major, how, env)
            assert [(c.api, c.result, c.device, c.address) for c in records] == [(name, 0, 0, 0)], (how, env, records)
            assert (records[0].mflags >> 16 > 0) == (env is None)
            held = collections.Counter()
            for row in rows["rows"]:
                held[row["memory_kind"]] += 0 if row.get("path") else row["held_bytes"]
            assert +held == {"device": 5 << 20}, (how, env, held)
            tree = json.loads(subprocess.run([REPORT, "tree", folder / "trace.bin", "-f", "json"], capture_output=True, check=True).stdout)
            delta = {r["name"]: r["reserved_delta_bytes"] for r in tree["rows"] if r["name"] in ("before", "end", "after")}
            assert delta == ({"before": 8 << 20, "end": -3 << 20, "after": 0} if how == "contexts" else
                             {"before": 3 << 20, "end": -3 << 20, "after": 5 << 20}), (how, env, delta)


# ---- programs that know what they did ----

@case
def each_path_has_the_counts_and_bytes_that_the_program_knows(folder):
    for major in MAJORS:
        for threads, streams, iterations in ((1, 1, 50), (2, 3, 20), (4, 1, 20), (16, 2, 8)):
            exactly(folder, major, threads, streams, iterations)


@case
def a_program_that_is_stopped_now_and_then_is_recorded_exactly(folder):
    for major in MAJORS:
        with open(folder / "said", "wb") as said:
            process = subprocess.Popen([simulated(major, "known_work"), "4", "2", "60"], cwd=folder, env=environment(LD_PRELOAD=preload()), stdout=said)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            for number in (signal.SIGSTOP, signal.SIGCONT):
                process.send_signal(number)
                time.sleep(0.01)
        process.kill()
        assert process.wait() == 0, process.returncode
        trace = whole(folder / "trace.bin")
        wrong = differences(json.loads((folder / "said").read_text()), trace)
        assert not wrong, "\n".join(wrong)
        complete(trace)


@case
def without_a_thread_of_ours_all_comes_at_the_end_and_it_is_said(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime has pthread_create, too")
    env = {"LD_PRELOAD": "%s/lib_refuses.so %s" % (PROGRAMS, preload()), "REFUSE": "thread", "REFUSE_ERROR": str(errno.EAGAIN)}
    for major in MAJORS:
        said, trace = known_work(folder, major, 2, 2, 20, env=env)
        wrong = differences(said, trace)
        assert not wrong, "\n".join(wrong)
        text = report("info", folder / "trace.bin").stdout.decode()
        assert "CUPTI's buffers could not be created" in text and "(error %d)" % errno.EAGAIN in text, text


@case
def every_release_of_cupti_is_read(folder):
    for major, versions in (("12", (19, 20, 21, 22, 23, 24, 26, 27, 28)), ("13", (130000, 130001))):
        for version in versions:
            trace = exactly(folder, major, *FEW, env={"SIM_CUPTI_VERSION": str(version)})
            assert trace.meta["version.cupti"] == str(version)
            assert ("warning.cupti" in trace.meta) == (version == 130000), trace.meta
            known = {key.split(".")[2]: text for key, text in trace.meta.items() if key.startswith("cupti.known.")}
            assert set(known) == {"memory", "cpu", "names"} and all(text.startswith("CUPTI %d " % version) for text in known.values()), known
            text = report("info", folder / "trace.bin").stdout.decode()
            assert all(sentence in text for sentence in known.values()), text
            assert trace.meta["cupti.library"].endswith("cudasim/%s/libcupti.so.%s" % (major, major))
            assert {r.name for r in trace.records if r.kind == "API"} <= trace.names.keys()


@case
def a_program_sees_no_error_of_ours_in_dlerror(folder):
    for major in MAJORS:
        for env in ({}, {"PPERF_STACKS": "launch", "PPERF_PYSTACKS": "alloc,launch"}, {"PPERF_CUPTI": "0"}, {"PPERF_CUPTI": "/nowhere/libcupti.so"}):
            output = same_under_library(folder, major, "looks_up", env=env)
            assert output.count(": (null)\n") == 5, output


@case
def kernels_have_their_shape_their_name_and_a_time(folder):
    for major in MAJORS:
        trace = exactly(folder, major, 1, 1, 2)
        kernels = [r for r in trace.records if r.kind == "KERNEL"]
        assert {trace.names[k.name] for k in kernels} == {"_Z%d%sPfm" % (len(n), n) for n in
                                                         ("forward_kernel", "layer_kernel", "backward_kernel", "graph_kernel")}
        assert all(k.block == (128, 1, 1) and k.start_ns < k.end_ns and k.device == 0 for k in kernels)
        assert {k.grid for k in kernels if trace.names[k.name] == "_Z14forward_kernelPfm"} == {(256, 1, 1)}
        streams = {c.stream for c in trace.dictionary["CONTEXT"]} | {c.null_stream for c in trace.dictionary["CONTEXT"]}
        assert {k.gpu_stream for k in kernels} <= streams


@case
def the_device_is_described(folder):
    for major in MAJORS:
        trace = exactly(folder, major, 1, 1, 1)
        devices = trace.dictionary["DEVICE"]
        assert len(devices) == 1
        device = devices[0]
        assert trace.names[device.name] == "pperf simulated device"
        assert device.device == 0 and any(device.uuid)
        assert all(v > 0 for k, v in vars(device).items() if k not in ("device", "minor", "node", "uuid")), device
        assert trace.meta["version.cuda_driver"].startswith(major)


@case
def graphs_are_known_by_their_nodes(folder):
    for major in MAJORS:
        same_under_library(folder, major, "captures", 5)
        trace = whole(folder / "trace.bin")
        captured = [c for c in trace.calls if c.flags & CAPTURED]
        assert collections.Counter(c.kind for c in captured) == {"LAUNCH": 5, "SET": 1}
        nodes = {n.graph_node: n for n in sorted(trace.dictionary["GRAPH_NODE"], key=lambda node: node.original)}
        made, clones = [n for n in nodes.values() if not n.original], [n for n in nodes.values() if n.original]
        assert collections.Counter(n.type for n in made) == {0: 5, 2: 1} == collections.Counter(n.type for n in clones)
        assert all(nodes[c.original].type == c.type for c in clones)
        (exec_,), launches = trace.dictionary["GRAPH_EXEC"], calls(trace, "GRAPH_LAUNCH")
        assert [(g.exec, g.exec_id) for g in launches] == [(exec_.handle, exec_.exec_id)] * 2
        work = [r for r in gpu(trace) if r.graph_node]
        assert collections.Counter(r.graph_node for r in work) == {c.graph_node: 2 for c in clones}
        assert {r.graph for r in work} == {exec_.exec_id}
        assert len([r for r in gpu(trace) if not r.graph_node]) == 1
        complete(trace)
        (folder / "trace.bin").unlink()


@case
def a_memset_of_a_graph_that_is_reported_as_a_kernel_is_placed_as_a_memset_is(folder):
    """CUDA converts memsets between kernels of a graph into kernels, and CUPTI reports those (release
    notes of 11.0)."""
    for major in MAJORS:
        seen = {}
        for reported, env in (("kernel", {}), ("memset", {"SIM_CUPTI_GRAPH_MEMSET": "memset"})):
            same_under_library(folder, major, "captures", 5, env=env)
            trace = whole(folder / "trace.bin")
            types = {n.graph_node: n.type for n in trace.dictionary["GRAPH_NODE"]}
            sets = [r for r in gpu(trace) if types.get(r.graph_node) == 2]
            assert [r.kind for r in sets] == {"kernel": ["KERNEL"] * 2, "memset": ["GPU_SET"] * 2}[reported], sets
            launches = [c.correlation for c in calls(trace, "GRAPH_LAUNCH")]
            assert [r.correlation for r in sets] == launches
            complete(trace)
            rows = json.loads(report("tree", folder / "trace.bin", "-f", "json").stdout)["rows"]
            seen[reported], = [(row["path"][:-1], row["calls"]) for row in rows if row["name"] in ("simulated_memset_node", "memset")]
            (folder / "trace.bin").unlink()
        assert seen["kernel"] == seen["memset"] == (["unattributed", "graph 1"], 2), seen


@case
def the_work_of_a_graph_is_where_it_was_captured_in_whichever_order_clones_are_reported(folder):
    """The library reports a node that cuGraphInstantiate makes as cloned, and perhaps as created
    too, before or after that."""
    for major in MAJORS:
        for order in ("before", "after", "never"):
            exactly(folder, major, 2, 1, 3, env={"SIM_CUPTI_CLONE_CREATED": order})
            rows = json.loads(report("tree", folder / "trace.bin", "-f", "json").stdout)["rows"]
            kernels = [row["path"] for row in rows if row["kind"] == "kernel" and "graph_kernel" in row["name"]]
            assert {tuple(path[path.index("replay"):-1])[2:] for path in kernels} == {()}, (order, kernels)
            nodes = [n.graph_node for n in whole(folder / "trace.bin").dictionary["GRAPH_NODE"]]
            assert len(nodes) == len(set(nodes)), (order, nodes) # a clone has one record


def graph_records(folder, major, iterations, **env):
    """The trace of known_work, its graph launches, and their records by correlation id: how many
    name a node, and how many are a whole graph."""
    _, trace = known_work(folder, major, 1, 1, iterations, env=env)
    launches = calls(trace, "GRAPH_LAUNCH")
    nodes = collections.Counter(r.correlation for r in gpu(trace) if r.graph_node)
    whole_ = collections.Counter(r.correlation for r in gpu(trace) if r.kind == "KERNEL" and trace.names[r.name] == "whole graph")
    complete(trace)
    return trace, launches, nodes, whole_


@case
def a_graph_is_one_record_for_each_launch_if_graphs_are_recorded_whole(folder):
    for major in MAJORS:
        trace, launches, nodes, whole_ = graph_records(folder, major, 20, PPERF_GRAPHS="whole")
        assert not nodes and whole_ == {c.correlation: 1 for c in launches} and len(launches) == 20, (nodes, whole_)
        assert trace.meta["graphs"] == "whole" and "warning.graphs" not in trace.meta, trace.meta
        record = next(r for r in gpu(trace) if r.kind == "KERNEL" and r.graph)
        assert record.graph == launches[0].exec_id and record.device == 0 and record.start_ns < record.end_ns
        rows = json.loads(report("tree", folder / "trace.bin", "-f", "json").stdout)["rows"]
        below = [(r["name"], r["calls"]) for r in rows if "replay" in r["path"] and r["path"].index("replay") == len(r["path"]) - 3]
        assert below == [("whole graph", 20)], below
        _, _, nodes, whole_ = graph_records(folder, major, 2, PPERF_GRAPHS="nodes")
        assert not whole_ and set(nodes.values()) == {4}


@waits
@case
def graphs_are_recorded_whole_from_the_rate_on_that_auto_permits(folder):
    """Under both readings of CUPTI: what was enabled at the launch decides, or at the
    instantiation. Then nodes remain, and that is written."""
    for reading, iterations in (("launch", 2500), ("instantiation", 4500)):
        trace, launches, nodes, whole_ = graph_records(folder, "13", iterations, PPERF_GRAPHS="auto:500", SIM_CUPTI_GRAPH_TRACE=reading, SIM_KERNEL_NS="100000")
        text, warning = trace.meta["graphs"], trace.meta["warning.graphs"]
        assert text.startswith("auto: nodes until ") and text.endswith(" nodes per second, limit 500)"), text
        assert set(nodes.values()) == {4} and set(whole_.values()) <= {1}
        assert nodes.keys() | whole_.keys() == {c.correlation for c in launches} and not nodes.keys() & whole_.keys()
        if reading == "launch":
            assert len(whole_) > 100 and max(nodes) < min(whole_), (len(nodes), len(whole_))
            assert warning.startswith("From ") and "PPERF_GRAPHS=nodes" in warning, warning
        else:
            assert not whole_ and warning.startswith("CUPTI still recorded "), (len(whole_), warning)
        assert text in report("info", folder / "trace.bin").stdout.decode()
    trace, _, nodes, whole_ = graph_records(folder, "13", 20, PPERF_GRAPHS="auto")
    assert not whole_ and trace.meta["graphs"] == "auto: nodes"


@case
def what_no_symbol_shows_is_seen_by_callbacks_once(folder):
    for major in MAJORS:
        same_under_library(folder, major, "hidden", 20)
        trace = whole(folder / "trace.bin")
        launches, memory = calls(trace, "LAUNCH"), calls(trace, "ALLOC", "FREE")
        assert len(launches) == 20 and all(c.api == "cuLaunchKernel" and c.flags & CALLBACK for c in launches)
        assert {(c.grid, c.block, c.shared_bytes, trace.names[c.name], c.device) for c in launches} == \
            {((3, 2, 1), (64, 1, 1), 256, "_Z12guest_kernelPfm", 0)}
        assert [(c.kind, c.bytes, c.memory_kind) for c in memory] == [("ALLOC", 4096, 3), ("FREE", 0, 0)]
        assert memory[0].address == memory[1].address != 0
        assert [(c.kind, c.bytes, c.value) for c in calls(trace, "COPY", "SET")] == [("SET", 1024, 7), ("COPY", 2048, 0)]
        complete(trace)
        (folder / "trace.bin").unlink()


@case
def the_symbol_of_a_launch_that_failed_is_not_read(folder):
    for major in MAJORS:
        assert same_under_library(folder, major, "misfires", 3) == "3 refused\n"
        launches = calls(whole(folder / "trace.bin"), "LAUNCH")
        assert [(c.api, c.result != 0, c.name) for c in launches] == [("cuLaunchKernel", True, 0)] * 3, launches
        (folder / "trace.bin").unlink()


@case
def allocations_agree_with_what_cupti_says_of_them(folder):
    for major in MAJORS:
        trace = exactly(folder, major, 2, 2, 5)
        ours = collections.Counter((c.correlation, c.address, c.kind == "ALLOC") for c in calls(trace, "ALLOC", "FREE"))
        theirs = collections.Counter((r.correlation, r.address, r.operation == 1) for r in trace.records if r.kind == "GPU_MEMORY")
        assert ours == theirs
        sizes = {c.correlation: c.bytes for c in calls(trace, "ALLOC")}
        assert all(sizes[r.correlation] == r.bytes for r in trace.records if r.kind == "GPU_MEMORY" and r.operation == 1)


@case
def ids_that_begin_again_are_distinguished(folder):
    for major in MAJORS:
        trace = exactly(folder, major, 2, 1, 200, env={"SIM_CUPTI_WRAP": "1"})
        ids = [c.correlation for c in trace.calls if c.correlation]
        assert min(ids) < 2**32 < max(ids) and max(ids) - min(ids) < 20000


@case
def ids_may_be_those_of_the_outermost_call(folder):
    for major in MAJORS:
        exactly(folder, major, 2, 1, 20, env={"SIM_CUPTI_KERNEL_ID": "outer"})


# ---- another profiler beside us ----

# Which calls have ids and records, and whose id a kernel carries.
ID_RULES = {"driver": {}, "runtime": {"SIM_CUPTI_KERNEL_ID": "outer"}, "nested": {"SIM_CUPTI_NESTED": "1"},
            "nested runtime": {"SIM_CUPTI_NESTED": "1", "SIM_CUPTI_KERNEL_ID": "outer"}}


def beside_client(folder, major, *arguments, env=None):
    """Runs kineto_like without and with the library: both outputs and the trace."""
    for path in folder.glob("*.bin*"):
        path.unlink()
    bare = run(folder, simulated(major, "kineto_like"), *arguments, env=env)
    under = traced(folder, simulated(major, "kineto_like"), *arguments, env=env)
    assert under.stderr == bare.stderr == b"", under.stderr
    return bare.stdout.decode().splitlines(), under.stdout.decode().splitlines(), whole(folder / "trace.bin")


def unlinked(trace):
    """GPU records without their launch, and launches without records."""
    started = collections.Counter(c.correlation for c in calls(trace, "LAUNCH", "COPY"))
    done = collections.Counter(r.correlation for r in gpu(trace))
    return (started - done) + (done - started)


@case
def another_profiler_finds_its_calls_and_so_do_we_whichever_id_kernels_carry(folder):
    for major in MAJORS:
        for rule, env in ID_RULES.items():
            for sessions in (1, 3):
                alone, beside, trace = beside_client(folder, major, 20, sessions, env=env)
                assert all(line.startswith("kernels 23 linked 23 external 20 copies 20 linked 20 external 20 ") for line in alone), alone
                assert beside == alone, (rule, beside, alone)
                assert not unlinked(trace), (rule, unlinked(trace))
                assert len(gpu(trace)) == sessions * (10 + 43) + 10
                assert trace.meta["cupti.gpu_ids"] == ("runtime" if "runtime" in rule else "driver"), trace.meta
                assert trace.meta["source.cupti"] == "on" and not [k for k in trace.meta if k.startswith("warning.")], trace.meta
                assert not any(r.kind == "API" and r.domain == 2 for r in trace.records)
                complete(trace)


@case
def calls_that_we_make_ourselves_are_not_in_another_profiler_s_records(folder):
    for major in MAJORS:
        _, beside, _ = beside_client(folder, major, 20)
        assert beside[0].split()[-2:] == ["cuLaunchKernel", "3"], beside # those that the program makes by the driver
        # On a slow machine, the GPU is queried while the client records.
        _, beside, trace = beside_client(folder, major, 20, 1, 400, env={"SIM_QUERY_NS": "10000000"})
        assert beside[0].split()[12:] == ["cuLaunchKernel", "3"], beside
        assert not unlinked(trace) and trace.dictionary["DEVICE"], trace.meta


@case
def ids_may_begin_again_beside_another_profiler(folder):
    for major in MAJORS:
        for rule, env in ID_RULES.items():
            alone, beside, trace = beside_client(folder, major, 400, 2, env={**env, "SIM_CUPTI_WRAP": "1"})
            assert beside == alone and not unlinked(trace), (rule, beside, alone)


@case
def where_no_id_matches_cupti_is_left_to_the_other_profiler(folder):
    env = {"SIM_CUPTI_KERNEL_ID": "other"}
    for major in MAJORS:
        # A short session ends before the first flush shows this, unless the machine is slow. CUPTI is then handed over during the session, and no kernel is
        # lost. The sessions that follow are the client's alone.
        alone, beside, trace = beside_client(folder, major, 20, 3, env=env)
        linked = [" ".join(line.split()[:12]) for line in beside]
        assert linked[1:] == [" ".join(line.split()[:12]) for line in alone[1:]], (beside, alone)
        assert re.match(r"kernels (\d+) linked (\d+) external (\d+) ", beside[0]), beside
        assert beside[0].split()[1] == "23" and int(beside[0].split()[3]) < 23, beside # the first records came before the rule was known
        assert "neither the id of the runtime call nor" in trace.meta["warning.cupti_ids"] and trace.meta["cupti.yielded"] == "2", trace.meta
        _, beside, trace = beside_client(folder, major, 40, 2, 700, env=env)
        assert [line.split()[:4] for line in beside] == ["kernels 43 linked 23".split(), "kernels 43 linked 43".split()], beside
        assert trace.meta["cupti.yielded"] == "2"
        assert [r.edge for r in sorted((r for r in trace.records if r.kind == "AWAY"), key=lambda r: r.stamp)] == [1, 2, 1, 2]
        screen = " ".join(report(folder / "trace.bin").stdout.decode().split())
        assert "CUPTI was released to another profiler for" in screen and "neither the id of the runtime call nor" in screen, screen


@case
def if_only_calls_with_records_have_ids_records_of_calls_are_enabled_and_it_is_said(folder):
    for major in MAJORS:
        traced(folder, simulated(major, "cuda_guest"), "returns", 20, env={"SIM_CUPTI_IDS": "records"})
        trace = whole(folder / "trace.bin")
        assert len(calls(trace, "LAUNCH")) == 40 and len(gpu(trace)) == 40
        assert [c.correlation != 0 for c in calls(trace, "LAUNCH")] == 20 * [False] + 20 * [True]
        assert not unlinked(trace), unlinked(trace)
        assert "gave the first GPU records no id" in trace.meta["warning.cupti_no_ids"], trace.meta
        assert not any(r.kind == "API" and "Launch" in trace.names[r.name] for r in trace.records)
        (folder / "trace.bin").unlink()


# ---- what CUPTI may do wrong ----

def degraded(folder, major, arguments=FEW, **env):
    """Runs known_work with a CUPTI that misbehaves. Its output and the calls in the trace must be
    unaffected. Returns the trace."""
    fine, _ = known_work(folder, major, *arguments)
    output, trace = known_work(folder, major, *arguments, env=env)
    assert output == fine
    total = fine["total"]
    assert len(calls(trace, "LAUNCH")) == total["launches"] and len(calls(trace, "GRAPH_LAUNCH")) == total["graph_launches"]
    return trace


def works_missing(trace):
    """The number of calls that started GPU work and have no record."""
    there = {r.correlation for r in gpu(trace)}
    return [c for c in calls(trace, "LAUNCH", "COPY", "SET", "GRAPH_LAUNCH") if c.correlation not in there]


@case
def refused_the_host_side_goes_on_and_the_code_is_reported(folder):
    for major in MAJORS:
        for code, reason in ((39, "another tool uses CUPTI"), (35, "does not let this user profile"), (999, "found no driver"), (15, "")):
            trace = degraded(folder, major, SIM_CUPTI_REFUSE=str(code))
            source = trace.meta["source.cupti"]
            assert source.startswith("off: ") and reason in source and source.endswith("(%d)" % code), source
            assert not gpu(trace) and not any(trace.lost)
            assert [trace.names[d.name] for d in trace.dictionary["DEVICE"]] == ["pperf simulated device"]


@case
def a_kind_that_is_refused_is_named_and_the_others_come(folder):
    for major in MAJORS:
        trace = degraded(folder, major, SIM_CUPTI_ENABLE_FAIL="10:14,49:21")
        assert trace.meta["source.cupti"] == "partial: CUPTI refused kernels (14), memory (21)"
        kinds = collections.Counter(r.kind for r in trace.records)
        assert kinds["KERNEL"] == 0 == kinds["GPU_MEMORY"] and kinds["GPU_COPY"] > 0 < kinds["GPU_SET"]


@case
def dropped_records_are_counted(folder):
    for major in MAJORS:
        trace = degraded(folder, major, (2, 2, 20), SIM_CUPTI_DROP="10")
        dropped = sum(r.dropped for r in trace.records if r.kind == "GPU_BATCH")
        assert trace.lost[DROPPED] == dropped > 0
        assert works_missing(trace)
        trace = degraded(folder, major, (2, 2, 20), SIM_CUPTI_SILENT_DROP="10")
        assert not any(trace.lost) and works_missing(trace)


@case
def the_trend_of_flushes_and_of_memory_is_shown(folder):
    for major in MAJORS:
        command = ("/bin/sh", "-c", '"$0" grows 40; exit $?', simulated(major, "cuda_guest")) # a peak counts what was there before exec
        under = traced(folder, *command, env={"SIM_CUPTI_SLOW_FLUSH": "5"})
        assert not under.stdout + under.stderr
        (row,) = json.loads(report("info", folder / "trace.bin", "-f", "json").stdout)["rows"]
        first, _, last = row["flushes"]
        assert all(part["count"] > 0 and part["total_ns"] / part["count"] > 5e6 for part in row["flushes"]), row["flushes"]
        assert 25 << 20 < last["peak_memory_bytes"] - first["peak_memory_bytes"] < 60 << 20, row["flushes"]
        text = report("info", folder / "trace.bin").stdout.decode()
        assert re.search(r"^flushes +[0-9]+ of CUPTI's buffers; average in each third of the run: (([0-9.]+ .?s|no flush)(, )?){3}$", text, re.M), text
        assert re.search(r"^memory +peak of the process in each third of the run: [0-9.]+ M", text, re.M), text
        (folder / "trace.bin").unlink()


@case
def untimed_kernels_stay_and_are_recognisable(folder):
    for major in MAJORS:
        trace = degraded(folder, major, (1, 1, 10), SIM_CUPTI_UNTIMED="3")
        kernels = [r for r in trace.records if r.kind == "KERNEL"]
        untimed = [k for k in kernels if k.start_ns == 0 == k.end_ns]
        assert len(untimed) == len(kernels) // 3
        complete(trace)


@case
def late_and_disordered_records_find_their_calls(folder):
    for major in MAJORS:
        trace = degraded(folder, major, (4, 2, 20), SIM_CUPTI_ORDER="shuffle")
        complete(trace)
        trace = degraded(folder, major, (2, 1, 200), SIM_CUPTI_LATE="20")
        ids = {c.correlation for c in trace.calls}
        assert gpu(trace) and all(r.correlation in ids for r in gpu(trace))


@case
def records_may_come_from_threads_that_end_and_a_flush_may_be_slow(folder):
    for major in MAJORS:
        complete(degraded(folder, major, (4, 2, 20), SIM_CUPTI_THREAD="new"))
        complete(degraded(folder, major, (2, 2, 20), SIM_CUPTI_SLOW_FLUSH="300"))


@case
def an_allocation_that_fails_is_the_programs_and_is_recorded(folder):
    for major in MAJORS:
        result = traced(folder, simulated(major, "cuda_guest"), "works", 5, env={"SIM_FAIL_MALLOC": "1"}, check=1)
        assert result.stderr == b"cuda_guest: cudaMalloc((void **)&data, BYTES): 2\n", result.stderr
        failed, = [r for r in whole(folder / "trace.bin").records if r.kind == "ALLOC"]
        assert failed.result == 2 and failed.bytes == 4096, failed
        (folder / "trace.bin").unlink()


@case
def unknown_records_are_counted_and_the_rest_is_read(folder):
    for major in MAJORS:
        trace = degraded(folder, major, (1, 1, 10), SIM_CUPTI_UNKNOWN="5")
        assert trace.lost[UNREAD] > 0 and not works_missing(trace)


@case
def a_buffer_that_breaks_off_is_read_up_to_there(folder):
    for major in MAJORS:
        trace = degraded(folder, major, (2, 1, 10), SIM_CUPTI_INVALID="1")
        batches = [r for r in trace.records if r.kind == "GPU_BATCH"]
        assert trace.lost[UNREAD] == sum(b.unread for b in batches) > 0
        counted = [r for r in trace.records if r.kind in (*GPU, "GPU_SYNC", "GPU_MEMORY", "API", "OVERHEAD")]
        assert sum(b.records for b in batches) >= len(counted) > 0 and works_missing(trace)


@case
def cupti_that_gives_up_leaves_the_host_side(folder):
    for major in MAJORS:
        output, trace = known_work(folder, major, 1, 1, 20, env={"SIM_CUPTI_FATAL": "20"})
        assert trace.meta["source.cupti"].startswith("partial: CUPTI failed during the run: "), trace.meta["source.cupti"]
        assert len(calls(trace, "LAUNCH")) == output["total"]["launches"]


@case
def too_few_buffers_lose_records_and_nothing_else(folder):
    for major, version in (("12", 26), ("12", 28), ("13", 130001)):
        env = {"SIM_CUPTI_VERSION": str(version), "PPERF_CUPTI_BUFFERS": "2M"}
        trace = degraded(folder, major, (16, 4, 20), **env)
        missing = works_missing(trace)
        assert bool(missing) <= bool(trace.lost[DROPPED] + trace.lost[UNREAD]), (len(missing), trace.lost)
        by_id = owners(trace)
        assert all(r.correlation in by_id for r in gpu(trace))


@waits
@case
def another_client_that_takes_our_buffers_past_us_is_noticed(folder):
    for major in MAJORS:
        same_under_library(folder, major, "robs", 5)
        trace = whole(folder / "trace.bin")
        assert trace.meta["source.cupti"].startswith("partial: another profiler in the program has replaced CUPTI's buffer callbacks"), trace.meta["source.cupti"]
        assert len(calls(trace, "LAUNCH")) == 10 and len([r for r in trace.records if r.kind == "KERNEL"]) == 5
        (folder / "trace.bin").unlink()
        same_under_library(folder, major, "works", 5)
        assert whole(folder / "trace.bin").meta["source.cupti"] == "on"
        (folder / "trace.bin").unlink()


OVERDUE = "partial: GPU records of the last %d s or more have not arrived"


@case
def a_client_with_a_clock_takes_no_kernels_time_in_a_handover(folder):
    for major in MAJORS:
        for env in ({"SIM_CUPTI_CLOCK": "zero"}, {}): # CUPTI 12.6 Update 2 to 13.0 with any timestamp callback
            result = traced(folder, simulated(major, "cuda_guest"), "clocked", 5, env={"PPERF_CUPTI": "yield", **env})
            assert result.stdout == b"5 kernels, 5 timed\n" and not result.stderr, result
            trace = whole(folder / "trace.bin")
            kernels = [r for r in trace.records if r.kind == "KERNEL"]
            assert len(kernels) == 10 and all(r.start_ns for r in kernels), [r.start_ns for r in kernels]
            assert trace.meta["warning.cupti_handover"].startswith("CUPTI %s may confuse the launches of CUDA graphs" % trace.meta["version.cupti"])
            (folder / "trace.bin").unlink()


@case
def queries_that_find_work_unfinished_are_no_waits(folder):
    for major in MAJORS:
        for answer, records in (("all", 2), ("done", 2), ("none", 1)): # the wait, and the query that found the kernel done
            same_under_library(folder, major, "queries", 20, env={"SIM_KERNEL_NS": "200000000", "SIM_CUPTI_QUERIES": answer})
            trace = whole(folder / "trace.bin")
            syncs = [r for r in trace.records if r.kind == "GPU_SYNC" and r.type != 5]
            assert len(syncs) == records and trace.meta["source.cupti"] == "on" and not any(trace.lost), (answer, len(syncs))
            waits = [c.correlation for c in calls(trace, "SYNC") if c.api == "cuEventSynchronize"]
            assert len(waits) == 1 and [r.correlation for r in syncs].count(waits[0]) == 1
            assert not [r for r in trace.records if r.kind == "GPU_SYNC" and r.type == 5] # cuEventRecord's own callback says it
            (folder / "trace.bin").unlink()


@case
def work_that_takes_long_is_no_other_client(folder):
    for major in MAJORS:
        same_under_library(folder, major, "works", 5, env={"SIM_CUPTI_LATE": "3600000"})
        assert whole(folder / "trace.bin").meta["source.cupti"] == "on"
        (folder / "trace.bin").unlink()
    for late, kernels, source in (("2200", 5, "on"), ("3600000", 0, "partial: GPU records of the last ")):
        traced(folder, simulated("13", "cuda_guest"), "outlasts", 5, env={"SIM_CUPTI_LATE": late}, check=-9)
        trace = whole(folder / "trace.bin")
        assert trace.meta["source.cupti"].startswith(source), trace.meta["source.cupti"]
        assert len([r for r in trace.records if r.kind == "KERNEL"]) == kernels
        (folder / "trace.bin").unlink()


@waits
@case
def a_call_that_leaves_no_record_is_not_waited_for(folder):
    for major in MAJORS:
        same_under_library(folder, major, "marks", 2700)
        assert whole(folder / "trace.bin").meta["source.cupti"] == "on", whole(folder / "trace.bin").meta["source.cupti"]
        (folder / "trace.bin").unlink()


@case
def of_a_busy_gpu_a_kill_loses_a_fraction_of_a_second(folder):
    for major, kernel_ns, ms in (("12", 200000, 1900), ("13", 200000, 1900), ("13", 200000, 3900), ("13", 1000000, 3700), ("13", 10000000, 3300)):
        result = traced(folder, simulated(major, "cuda_guest"), "busy", ms, env={"SIM_KERNEL_NS": str(kernel_ns)}, check=-9)
        trace = whole(folder / "trace.bin")
        last = max(r.end_ns for r in trace.records if r.kind == "KERNEL")
        assert int(result.stdout) - last < 500e6, (major, kernel_ns, ms, (int(result.stdout) - last) / 1e6)
        assert trace.meta["source.cupti"] == "on", trace.meta["source.cupti"]
        (folder / "trace.bin").unlink()


@waits
@case
def another_client_that_ends_cupti_is_noticed(folder):
    for major in MAJORS:
        ended = "partial: another profiler in the program has ended CUPTI's session"
        # After two seconds without records we flush once a second. On a slow machine one of these flushes is between the end and the kill.
        for ms, source in ((300, ended), (2500, (OVERDUE % 2, ended))):
            traced(folder, simulated(major, "cuda_guest"), "finalizes", ms, check=-9)
            trace = whole(folder / "trace.bin")
            assert trace.meta["source.cupti"].startswith(source), trace.meta["source.cupti"]
            (folder / "trace.bin").unlink()


@case
def no_libcupti_is_a_sentence(folder):
    for major in MAJORS:
        home = folder / ("alone" + major)
        home.mkdir()
        for name in ("known_work", "libcuda.so.1", "libcudart.so.%s" % major):
            shutil.copy(simulated(major, name), home)
        result = traced(folder, str(home / "known_work"), *FEW, env={"CUDA_HOME": None, "LD_LIBRARY_PATH": None})
        trace = whole(folder / "trace.bin")
        assert trace.meta["source.cupti"].startswith("off: "), trace.meta["source.cupti"]
        assert len(calls(trace, "LAUNCH")) == json.loads(result.stdout)["total"]["launches"]
        (folder / "trace.bin").unlink()


@case
def another_libcupti_can_be_named_and_cupti_can_be_left_alone(folder):
    for major in MAJORS:
        shutil.copy(simulated(major, "libcupti.so.%s" % major), folder / "mine.so")
        named = folder / "mine.so"
        os.symlink(simulated(major, "libcuda.so.1"), folder / "libcuda.so.1")
        trace = exactly(folder, major, *FEW, env={"PPERF_CUPTI": str(named)})
        assert trace.meta["cupti.library"] == str(named)
        os.unlink(folder / "libcuda.so.1")
        trace = degraded(folder, major, PPERF_CUPTI="/nonexistent/libcupti.so")
        assert trace.meta["source.cupti"].startswith("off: PPERF_CUPTI names a library that cannot be loaded: /nonexistent/")
        trace = degraded(folder, major, PPERF_CUPTI="0")
        assert trace.meta["source.cupti"] == "off: PPERF_CUPTI=0 (0)" and "version.cupti" not in trace.meta


@case
def another_tools_injection_does_not_keep_us_out(folder):
    for major in MAJORS:
        exactly(folder, major, 1, 2, 5, env={"CUDA_INJECTION64_PATH": "/nonexistent/tool.so"})
        output, trace = known_work(folder, major, 8, 1, 5, env={"CUDA_INJECTION64_PATH": "/nonexistent/tool.so"})
        by_id, total = owners(trace), output["total"]
        assert trace.meta["source.cupti"] == "on"
        # Calls that other threads had begun when the first one started CUPTI have no id.
        assert all(r.correlation in by_id for r in gpu(trace) if r.correlation)
        assert len(calls(trace, "LAUNCH")) == total["launches"]
        assert any(r.kind == "KERNEL" for r in trace.records)


# ---- beside another client, and as a program ends ----

@case
def the_first_call_may_come_from_a_thread_with_little_stack(folder):
    if SANITIZED:
        raise Skip("the sanitizer's frames need more")
    for major in MAJORS:
        for kibibytes in (32, 48, 64, 128):
            bare = run(folder, simulated(major, "small_stack"), kibibytes, check=0)
            under = traced(folder, simulated(major, "small_stack"), kibibytes)
            assert (under.stdout, under.stderr) == (bare.stdout, bare.stderr) and [r.kind for r in gpu(whole(folder / "trace.bin"))] == ["KERNEL"], (kibibytes, under)
            (folder / "trace.bin").unlink()


@case
def the_program_may_end_from_a_thread_with_little_stack(folder):
    if SANITIZED:
        raise Skip("the sanitizer's frames need more")
    for major in MAJORS:
        for kibibytes in (16, 20, 64):
            bare = run(folder, simulated(major, "small_stack"), kibibytes, "exits", check=0)
            under = traced(folder, simulated(major, "small_stack"), kibibytes, "exits")
            trace = whole(folder / "trace.bin")
            assert (under.stdout, under.stderr) == (bare.stdout, bare.stderr) and [r.kind for r in gpu(trace)] == ["KERNEL"], (kibibytes, under)
            assert trace.meta["source.cupti"] == "on"
            (folder / "trace.bin").unlink()


@case
def a_thread_of_ours_comes_with_the_first_context_and_takes_no_signal(folder):
    for major in MAJORS:
        result = traced(folder, simulated(major, "cuda_guest"), "tasks").stdout.decode().splitlines()
        ours = 1 + (1 if SANITIZED else 0)  # a sanitizer may have one of its own
        before, asked, made = [int(line.split(": ")[1].split()[0]) for line in result]
        assert before <= ours and asked <= before + 1 and asked < made, result
        assert result[1].endswith(", 0 that take signals") and result[2].endswith(", 0 that take signals"), result


@case
def a_program_that_only_asks_has_no_trace(folder):
    for major in MAJORS:
        same_under_library(folder, major, "asks")
        assert not list(folder.glob("*.bin*"))


@case
def what_was_complete_survives_a_kill(folder):
    for major in MAJORS:
        for way, status in (("idles", -signal.SIGKILL), ("leaves", 3)):
            same_under_library(folder, major, way, 100, check=status)
            trace = whole(folder / "trace.bin")
            assert len([r for r in trace.records if r.kind == "KERNEL"]) == 100, way
            complete(trace)
            (folder / "trace.bin").unlink()


@case
def an_exit_from_any_thread_brings_everything(folder):
    for major in MAJORS:
        same_under_library(folder, major, "thread_exits", 100, check=4)
        complete(whole(folder / "trace.bin"))
        (folder / "trace.bin").unlink()


def ends(folder, major, way, count, env):
    """Runs cuda_guest without and with the library. Returns the seconds by which the library made
    it longer, and the trace. Output and status must be the same."""
    folder.mkdir()
    seconds, results = [], []
    for preloaded in ({}, {"LD_PRELOAD": preload()}):
        began = time.monotonic()
        results.append(run(folder, simulated(major, "cuda_guest"), way, count, env={**env, **preloaded}, check=None))
        seconds.append(time.monotonic() - began)
    bare, under = ((r.returncode, r.stdout, r.stderr) for r in results)
    assert under == bare, (under, bare)
    return seconds[1] - seconds[0], whole(folder / "trace.bin")


def killed_in_a_flush(folder, major):
    """Runs a program that hangs in CUPTI because a flush does, and kills it. Returns the trace."""
    folder.mkdir()
    with subprocess.Popen([simulated(major, "cuda_guest"), "finalizes", "500"], cwd=folder,
                          env=environment(LD_PRELOAD=preload(), SIM_CUPTI_HANG="flush")) as process:
        time.sleep(17)
        process.kill()
    assert process.returncode == -9, process.returncode
    return whole(folder / "trace.bin")


@waits
@case
def a_flush_that_does_not_return_is_stated(folder):
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(killed_in_a_flush, folder / major, major) for major in MAJORS]
    for ran in runs:
        warning = ran.result().meta["warning.cupti_flush"]
        assert "had not returned after 10 s" in warning and "CUDA_MODULE_LOADING=EAGER" in warning, warning


LIMIT = 10
LEFT = "partial: CUPTI did not return from its last flush within %d s" % LIMIT
ENDLESS = {"SIM_KERNEL_NS": "60000000000"}


@waits
@case
def no_program_waits_for_cupti_longer_than_the_limit(folder):
    cases = [("works", 5, {"SIM_CUPTI_HANG": "flush"}, LEFT, 0), ("works", 5, {"SIM_CUPTI_HANG": "forced"}, LEFT, 5),
             ("works", 5, {"SIM_CUPTI_HANG": "disable"}, LEFT, 5), ("thread_exits", 5, {"SIM_CUPTI_HANG": "disable"}, LEFT, 5),
             ("unfinished", 5, {**ENDLESS, "SIM_CUPTI_FORCED_WAITS": "1"}, LEFT, 0), ("unfinished", 5, {**ENDLESS, "SIM_CUPTI_HANG": "disable"}, LEFT, 0)]
    with ThreadPoolExecutor() as pool:
        runs = [(case, pool.submit(ends, folder / ("%s%d" % (major, i)), major, *case[:3])) for major in MAJORS for i, case in enumerate(cases)]
    for (way, count, env, source, kernels), ran in runs:
        longer, trace = ran.result()
        assert longer < LIMIT + 5, (way, env, longer)
        assert trace.meta["source.cupti"].startswith(source), (way, env, trace.meta["source.cupti"])
        assert len([r for r in trace.records if r.kind == "KERNEL"]) == kernels, (way, env)
        assert len(calls(trace, "LAUNCH")) == count


@waits
@case
def an_end_after_a_cuda_error_or_with_work_left_does_not_wait(folder):
    for major in MAJORS:
        for i, (way, env, kernels) in enumerate((("unfinished", ENDLESS, 0), ("faults", {"SIM_FAULT": "5"}, 4),
                                                 ("faults", {"SIM_FAULT": "5", "SIM_CUPTI_HANG": "disable"}, 4))):
            longer, trace = ends(folder / ("%s%d" % (major, i)), major, way, 5, env)
            assert longer < LIMIT / 2, (way, env, longer)
            assert trace.meta["source.cupti"] == "on", (way, env, trace.meta["source.cupti"])
            assert len([r for r in trace.records if r.kind == "KERNEL"]) == kernels, (way, env)


@case
def children_never_call_cupti_and_do_not_hang(folder):
    for major in MAJORS:
        log = folder / "calls"
        same_under_library(folder, major, "forks", 10, env={"SIM_CUPTI_HANG_FORK": "1", "SIM_CUPTI_LOG": str(log)})
        assert len({line.split()[0] for line in log.read_text().splitlines()}) == 1, "a child called CUPTI"
        trace = whole(folder / "trace.bin")
        assert len([r for r in trace.records if r.kind == "KERNEL"]) == 20
        complete(trace)
        for path in folder.glob("trace*"):
            path.unlink()
        log.unlink()


main()
