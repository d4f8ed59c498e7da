# SPDX-License-Identifier: MIT
"""Prints what PyTorch's TensorBoard plugin computes for Chrome traces: {path: {table: value}}. To be
run with the folder of `make export-peers` as PYTHONPATH."""
import json, logging, pathlib, sys, tempfile, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from torch_tb_profiler.profiler.data import RunProfileData

WANTED = ("steps_names", "steps_costs", "op_list_groupby_name", "kernel_list_groupby_name_op", "kernel_stat", "used_devices", "has_communication", "has_kernel",
          "has_memcpy_or_memset", "use_ddp")
MEMBERS = ("name", "op_name", "calls", "host_duration", "device_duration", "self_host_duration", "self_device_duration", "tc_eligible", "min_duration", "max_duration",
           "blocks_per_sm", "costs")


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "to_csv"):
        return value.drop(columns=["occupancy"], errors="ignore").to_csv()
    if isinstance(value, (int, float, str, type(None))):
        return value
    return {name: plain(item) for name, item in vars(value).items() if name in MEMBERS}


def tables(path):
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(path).read_bytes()
        trace = pathlib.Path(folder, "worker.pt.trace.json" + (".gz" if data[:2] == b"\x1f\x8b" else ""))
        trace.write_bytes(data)
        try:
            profile = RunProfileData.parse("worker", 0, str(trace), folder)
        except Exception as error:
            return {"load": "%s: %s" % (type(error).__name__, error)}
    return {name: plain(getattr(profile, name)) for name in WANTED}


json.dump({path: tables(path) for path in sys.argv[1:]}, sys.stdout)
