#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What torch.profiler's export_memory_timeline writes is shown as PyTorch computes it: the sizes of
every category at every time, to the byte, in each of its forms. On the simulated device and a CPU."""
import gzip, pickle
from device import *

SCRIPT = ROOT / "tests" / "torch" / "exports_timeline.py"
FORMS = "timeline.json", "timeline.json.gz", "timeline.raw.json.gz"
NAMES = {"PARAMETER": "parameters", "OPTIMIZER_STATE": "optimizer state", "INPUT": "inputs", "TEMPORARY": "temporary tensors", "ACTIVATION": "activations",
         "GRADIENT": "gradients", "AUTOGRAD_DETAIL": "autograd's details", "UNKNOWN": "unknown"}


def known_sizes(folder):
    """By time in us: bytes by category, those that are not 0. Of equal times the last holds."""
    known = json.loads((folder / "known.json").read_text())
    names = [NAMES[name] for name in known["names"]]
    assert len(names) == 8 and all(len(row) == 9 and not row[0] and min(row) >= 0 for row in known["sizes"]), known["names"]
    return {time: {name: size for name, size in zip(names, row[1:]) if size} for time, row in zip(known["times"], known["sizes"])}


def moments_of(file, known):
    """When each time of PyTorch's begins to hold in the trace, in ns since its begin. Of a raw file, the
    last event that PyTorch, by float division, puts at this us."""
    content = json.loads((gzip.open(file) if file.suffix == ".gz" else open(file)).read())
    if "raw" not in file.name:
        return {time: (time - min(known)) * 1000 for time in known}
    stamps = sorted(event[0] for event in content if event[0] >= 0)
    return {int(stamp / 1000): stamp - stamps[0] for stamp in stamps}


def check_times(file, known):
    times, at = sorted(known), moments_of(file, known)
    assert set(at) == set(known), set(at) ^ set(known)
    for part in range(0, len(times), 100):
        group = times[part:part + 100]
        words = ",".join("%dns" % at[time] for time in group)
        rows = json.loads(report("memory", file, "--by", "path", "--at", words, "-f", "json", "-n", "0").stdout)["rows"]
        moments = [row for row in rows if row["kind"] == "moment"]
        assert len(moments) == len(group), (len(moments), len(group))
        for time, moment in zip(group, moments):
            parts = {row["name"]: row["bytes"] for row in rows if row["parent"] == moment["id"]}
            assert parts == known[time] and moment["tensor_bytes"] == sum(parts.values()), (file.name, time, parts, known[time])
    return len(times)


def check_forms(folder, device):
    launch(run, folder / "run", SCRIPT, folder, device, env={"SIM_MEM": str(4 << 30)}, timeout=600)
    known = known_sizes(folder)
    peak = max(sum(sizes.values()) for sizes in known.values())
    for form in FORMS:
        compared = check_times(folder / form, known)
        level = next(row for row in json.loads(report("memory", folder / form, "-f", "json", "-n", "0").stdout)["rows"] if row["depth"] == 0)
        # Within a us, only raw files have the order of events: their peak may be higher.
        assert level["at_peak_bytes"] == peak or "raw" in form and level["at_peak_bytes"] > peak, (form, level["at_peak_bytes"], peak)
        assert level["held_bytes"] == sum(known[max(known)].values()), (form, level)
        print("# %s %s: %d times are equal in all categories; peak %d bytes" % (device, form, compared, level["at_peak_bytes"]))
        assert compared > 50, compared


@case
def on_the_simulated_device_all_forms_are_pytorchs_own_sizes(folder):
    check_forms(folder, "cuda:0")


@case
def of_a_cpu_as_well(folder):
    check_forms(folder, "cpu")


@case
def views_say_what_a_timeline_lacks(folder):
    launch(run, folder / "run", SCRIPT, folder, "cuda:0", env={"SIM_MEM": str(4 << 30)}, timeout=600)
    for form in FORMS:
        file = folder / form
        summary = " ".join(report(file).stdout.decode().split())
        assert "categories and sizes of one device, which the file does not name (shown as GPU 0), without addresses, segments" in summary, summary
        assert "no range was recorded" in summary and "0 ns" not in summary, summary
        shown = {options: " ".join(report("memory", file, *options).stdout.decode().split()) for options in
                 ((), ("--map",), ("--by", "line"), ("--by", "module"), ("--by", "size"), ("--by", "class"), ("--over-time",), ("--growth",))}
        assert "in segments that the trace does not have" in shown[("--map",)], shown[("--map",)]
        assert "(no call stack)" in shown[("--by", "line")] and "(in no module)" in shown[("--by", "module")], shown
        assert "parameters" in shown[()] and "optimizer state" in shown[()], shown[()]
        snapshot = folder / "out.pickle"
        report("memory", file, "--snapshot", snapshot)
        from torch.cuda import _memory_viz
        assert _memory_viz.trace_plot(pickle.loads(snapshot.read_bytes()))


main()
