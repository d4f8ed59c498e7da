# SPDX-License-Identifier: MIT
"""Prints the tables of Holistic Trace Analysis (HTA) for Chrome traces: {path: {table: text}}. To be
run with the folder of `make export-peers` as PYTHONPATH. A table is CSV, or the exception that HTA
raised."""
import contextlib, io, json, logging, sys, tempfile, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.common.trace_call_graph import CallGraph
from hta.trace_analysis import TraceAnalysis


MOST_EVENTS = 15000  # HTA takes a minute for the two tables with this limit in larger traces


def text_of(value):
    if isinstance(value, dict):
        return {str(key): text_of(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [text_of(item) for item in value]
    return value.to_csv() if hasattr(value, "to_csv") else str(value)


def critical_path(analysis):
    """The parts of the critical path of the second step, or of the whole trace without steps, by
    what they are part of. """
    if len(analysis.t.get_trace(0)) > MOST_EVENTS:
        return "not computed"
    steps = analysis.get_profiler_steps()
    found = analysis.critical_path_analysis(rank=0, annotation="ProfilerStep" if steps else "", instance_id=min(1, len(steps) - 1) if steps else None)
    if not found or not found[1]:
        return "none"
    graph, _ = found
    parts = graph.get_critical_path_breakdown()
    parts["s_name"] = parts["s_name"].fillna("")
    return parts.groupby(["s_name", "type", "bound_by"], dropna=False).duration.agg(["sum", "count"]).reset_index()


def kernel_sequences(analysis):
    """The sequences of kernels of the operator that is called most often with three or more."""
    if len(analysis.t.get_trace(0)) > MOST_EVENTS:
        return "not computed"
    CallGraph(analysis.t, ranks=[0])
    names, rows = analysis.t.symbol_table.get_sym_table(), analysis.t.get_trace(0)
    launching = [names[name] for name in rows[rows["stream"].eq(-1) & rows["num_kernels"].ge(3)]["name"]]
    if not launching:
        return "none"
    operator = min(set(launching), key=lambda name: (-launching.count(name), name))
    with tempfile.TemporaryDirectory() as folder:
        return analysis.get_frequent_cuda_kernel_sequences(operator_name=operator, output_dir=folder, rank=0, top_k=5, visualize=False)


FURTHER = {"critical_path": critical_path, "kernel_sequences": kernel_sequences, "queue_length_summary": lambda analysis: analysis.get_queue_length_summary(),
           "time_blocked_on_full_queue": lambda analysis: analysis.get_time_spent_blocked_on_full_queue(analysis.get_queue_length_time_series(), max_queue_length=16),
           "potential_stragglers": lambda analysis: analysis.get_potential_stragglers(),
           "cupti_counters": lambda analysis: analysis.get_cupti_counter_data_with_operators()}


def tables(path):
    try:
        analysis = TraceAnalysis(trace_files={0: path}, trace_dir="")
    except Exception as error:
        return {"load": "%s: %s" % (type(error).__name__, error)}
    found = {}
    for name, options in (("get_profiler_steps", {}), ("get_temporal_breakdown", {"visualize": False}), ("get_comm_comp_overlap", {"visualize": False}),
                          ("get_gpu_kernel_breakdown", {"visualize": False}), ("get_gpu_kernels_with_user_annotations", {"rank": 0}),
                          ("get_gpu_user_annotation_breakdown", {"visualize": False}), ("get_gpu_user_annotation_breakdown", {"visualize": False, "use_gpu_annotation": False}),
                          ("get_aten_op_kernels_and_delay", {}), ("get_cuda_kernel_launch_stats", {"visualize": False}), ("get_queue_length_time_series", {}),
                          ("get_memory_bw_time_series", {}), ("get_memory_bw_summary", {}), ("get_idle_time_breakdown", {"visualize": False})):
        key = "cpu_annotations" if "use_gpu_annotation" in options else name[len("get_"):]
        try:
            found[key] = text_of(getattr(analysis, name)(**options))
        except Exception as error:
            found[key] = type(error).__name__
    for name, compute in FURTHER.items():
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found[name] = text_of(compute(analysis))
        except Exception as error:
            found[name] = type(error).__name__
    return found


json.dump({path: tables(path) for path in sys.argv[1:]}, sys.stdout)
