# SPDX-License-Identifier: MIT
"""Prints the tables of Holistic Trace Analysis (HTA) for Chrome traces: {path: {table: text}}. To be
run with the folder of `make export-peers` as PYTHONPATH. A table is CSV, or the exception that HTA
raised."""
import json, logging, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis


def text_of(value):
    if isinstance(value, dict):
        return {str(key): text_of(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [text_of(item) for item in value]
    return value.to_csv() if hasattr(value, "to_csv") else str(value)


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
    return found


json.dump({path: tables(path) for path in sys.argv[1:]}, sys.stdout)
