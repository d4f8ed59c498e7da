#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tree, table, kernels and the integrity line have exactly what known_work counted, on the
simulated device of both major versions, with one to sixteen threads and several CUDA streams. When
CUPTI misbehaves, they have how much is missing and why."""
import collections, json
from gpu_reference import said
from harness import BUILD, Skip, case, main, report, traced

MAJORS = ("12", "13")
SIZES = ((1, 1, 10), (2, 3, 5), (8, 2, 3), (16, 1, 3))
COPIES = {"memcpy HtoD": "h2d", "memcpy DtoH": "d2h", "memcpy DtoD": "d2d"}


def work(folder, major, *arguments, env=None):
    """Runs known_work: its output and the path of its trace."""
    program = BUILD / "cudasim" / major / "known_work"
    if not program.exists():
        raise Skip("the simulated device is not built (no %s)" % program)
    for path in folder.glob("*.bin*"):
        path.unlink()
    return json.loads(traced(folder, str(program), *arguments, env=env).stdout), folder / "trace.bin"


def view(name, trace, *options):
    return json.loads(report(name, trace, "-f", "json", *options).stdout)


def everything(folder, *arguments, **options):
    for major in MAJORS:
        for size in SIZES:
            output, trace = work(folder, major, *size)
            yield output, trace


def counted(row, count):
    """The counters that a row of GPU work adds to its path."""
    what = "kernels" if row["kind"] == "kernel" else "sets" if row["kind"] == "memset" else COPIES[row["name"]]
    count[what] += row["calls"]
    if row["kind"] != "kernel":
        count[{"sets": "set"}.get(what, what) + "_bytes"] += row["bytes"]


def tree_counts(tree):
    """known_work's counters by path, from the rows of the tree."""
    rows, counts = {r["id"]: r for r in tree["rows"]}, collections.defaultdict(collections.Counter)
    for row in tree["rows"]:
        parent = rows.get(row["parent"])
        if row["kind"] not in ("kernel", "memcpy", "memset", "graph"):
            continue
        if row["kind"] == "graph":
            counts[tuple(row["path"][:-1])]["graph_launches"] += row["calls"]
        elif parent["kind"] == "graph":
            inside = collections.Counter()
            counted(row, inside)
            counts[tuple(parent["path"][:-1])].update({"graph_" + k: v for k, v in inside.items()})
        else:
            count = counts[tuple(parent["path"])]
            counted(row, count)
            if "kernels" in count:
                count["launches"] = count.pop("kernels") + count["launches"]
    return counts


def of_the_gpu(counts):
    """The counters without those of host memory."""
    only = {path: {k: v for k, v in count.items() if v and not k.startswith(("alloc", "free"))} for path, count in counts.items()}
    return {path: count for path, count in only.items() if count}


@case
def the_tree_has_each_path_with_its_counts_and_bytes(folder):
    for output, trace in everything(folder):
        wanted, got = of_the_gpu(said(output)), of_the_gpu(tree_counts(view("tree", trace)))
        assert wanted == got, (output["threads"], {p: (wanted.get(p), got.get(p)) for p in wanted.keys() | got.keys() if wanted.get(p) != got.get(p)})


@case
def the_tree_has_each_allocation_where_it_was_made(folder):
    for output, trace in everything(folder):
        rows = {tuple(r["path"]): r for r in view("tree", trace)["rows"] if r["kind"] == "range"}
        counts = said(output)
        for path, row in rows.items(): # the flows of a row include those below it; a free is charged to the allocating node, and all
# memory was freed
            taken = sum(c["alloc_bytes"] for p, c in counts.items() if p[:len(path)] == path)
            assert (row.get("alloc_bytes", 0), row.get("free_bytes", 0)) == (taken, taken), path


@case
def integrity_says_that_all_is_there_and_adds_up(folder):
    for output, trace in everything(folder):
        whole = view("tree", trace)
        integrity, totals, total = whole["integrity"], whole["totals"], output["total"]
        wanted = {
            "launches": total["launches"], "graph_launches": total["graph_launches"], "kernels": total["launches"] + total["graph_kernels"],
            "copies_called": total["h2d"] + total["d2h"] + total["d2d"],
            "copies": total["h2d"] + total["d2h"] + total["d2d"] + total["graph_h2d"],
            "sets_called": total["sets"], "sets": total["sets"] + total["graph_sets"], "missing_records": 0, "unattributed": 0, "untimed": 0,
            "dropped": 0, "lost_events": 0, "clock_violations": 0, "complete": True, "conserved": True,
        }
        wanted["attributed"] = wanted["kernels"] + wanted["copies"] + wanted["sets"]
        assert {k: integrity[k] for k in wanted} == wanted
        assert totals["attributed_ns"] == totals["gpu_sum_ns"] and totals["unattributed_ns"] == 0
        assert sum(r["gpu_self_ns"] for r in whole["rows"] if r["kind"] in ("kernel", "memcpy", "memset")) == totals["gpu_sum_ns"]
        assert sum(r.get("gpu_total_ns", 0) for r in whole["rows"] if r["parent"] is None) == totals["gpu_sum_ns"]
        assert totals["alloc_bytes"] == total["alloc_bytes"] and totals["free_bytes"] == total["free_bytes"]
        report("tree", trace, "--strict")


@case
def the_table_and_the_kernels_have_the_sums(folder):
    for output, trace in everything(folder):
        total = output["total"]
        table = {(r["kind"], r["name"]): r for r in view("table", trace)["rows"]}
        for name, what in COPIES.items():
            row = table["memcpy", name]
            assert (row["calls"], row["bytes"]) == (total[what] + total.get("graph_" + what, 0), total[what + "_bytes"] + total.get("graph_%s_bytes" % what, 0))
        assert table["memset", "memset"]["bytes"] == total["set_bytes"] + total["graph_set_bytes"]
        wanted, per = collections.Counter(), {"layer": "layer_kernel", "forward": "forward_kernel", "backward": "backward_kernel", "replay": "graph_kernel"}
        for path in output["paths"]:
            wanted[per.get(path["path"][-1])] += path["launches"] + path["graph_kernels"]
        del wanted[None]
        kernels = collections.Counter()
        for row in view("kernels", trace)["rows"]:
            kernels[row["name"]] += row["calls"]
        assert kernels == wanted
        assert {name: table["kernel", name]["calls"] for name in wanted} == wanted


@case
def the_device_is_marked_as_simulated_wherever_it_is_shown(folder):
    for major in MAJORS:
        _, trace = work(folder, major, 1, 1, 2)
        device, = view("tree", trace)["capture"]["devices"]
        assert device["simulated"] is True and device["name"] == "pperf simulated device"
        assert b"SIMULATED" in report(trace).stdout


@case
def several_devices_have_what_was_done_on_each(folder):
    for major in MAJORS:
        program, trace = str(BUILD / "cudasim" / major / "cuda_guest"), folder / "trace.bin"
        for path in folder.glob("*.bin*"):
            path.unlink()
        assert traced(folder, program, "devices", 4, env={"SIM_DEVICES": "3"}).stdout == b"used 3 devices\n"
        whole = view("tree", trace)
        assert [d["id"] for d in whole["capture"]["devices"]] == [0, 1, 2] and whole["integrity"]["complete"]
        busy = 0
        for device in range(3):
            one = view("tree", trace, "--device", str(device))
            kernels = sum(r["calls"] for r in one["rows"] if r["kind"] == "kernel")
            copies = sum(r["bytes"] for r in one["rows"] if r["kind"] == "memcpy")
            # A copy between devices is work of the device whose CUDA stream it is in.
            assert kernels == 4 + device and copies == (4096 if device else 0), (device, kernels, copies)
            assert one["totals"]["reserved_peak_bytes"] == (4 + device) << 20, one["totals"]
            busy += one["totals"]["gpu_sum_ns"]
        assert busy == whole["totals"]["gpu_sum_ns"] == sum(r["gpu_self_ns"] for r in whole["rows"] if r["kind"] in ("kernel", "memcpy"))


@case
def what_is_missing_is_said_with_its_reason(folder):
    for major in MAJORS:
        for env, source, check in (
            ({"SIM_CUPTI_REFUSE": "39"}, "off: another tool uses CUPTI; run without it (39)", lambda i, t: i["kernels"] == 0),
            ({"SIM_CUPTI_REFUSE": "35"}, "off: the driver does not let this user profile (35)", lambda i, t: i["kernels"] == 0),
            ({"SIM_CUPTI_ENABLE_FAIL": "10:14"}, "partial: CUPTI refused kernels (14)", lambda i, t: i["kernels"] == 0 < i["copies"]),
            ({"SIM_CUPTI_DROP": "10"}, "on", lambda i, t: i["dropped"] > 0 and not i["complete"]),
            ({"SIM_CUPTI_SILENT_DROP": "10"}, "on", lambda i, t: i["dropped"] == 0 < i["missing_records"] and not i["complete"]),
            ({"SIM_CUPTI_UNTIMED": "3"}, "on", lambda i, t: i["untimed"] == i["kernels"] // 3),
            ({"SIM_CUPTI_LATE": "3600000"}, "on", lambda i, t: i["missing_records"] == t["launches"] + t["graph_launches"] + t["h2d"] + t["d2h"] + t["d2d"] + t["sets"]),
            ({"SIM_CUPTI_UNKNOWN": "5"}, "on", lambda i, t: i["unread_buffers"] > 0 and not i["complete"] and i["missing_records"] == 0),
            ({"SIM_CUPTI_ORDER": "shuffle"}, "on", lambda i, t: i["complete"]),
            ({"SIM_CUPTI_THREAD": "new"}, "on", lambda i, t: i["complete"]),
            ({"SIM_CUPTI_SLOW_FLUSH": "300"}, "on", lambda i, t: i["complete"]),
            ({"SIM_CUPTI_VERSION": {"12": "19", "13": "130000"}[major]}, "on", lambda i, t: i["complete"]),
            ({"SIM_CUPTI_INVALID": "1"}, "on", lambda i, t: i["missing_records"] > 0 and not i["complete"]),
        ):
            output, trace = work(folder, major, 2, 1, 30, env=env)
            whole = view("tree", trace)
            integrity = whole["integrity"]
            assert whole["capture"]["sources"]["cupti"] == source, whole["capture"]["sources"]
            assert integrity["launches"] == output["total"]["launches"] and integrity["conserved"], integrity
            assert check(integrity, output["total"]), (env, integrity)
            screen = report(trace).stdout.decode()
            assert source == "on" or source.split(": ", 1)[1].split(";")[0].split(" (")[0].split()[0] in screen, screen


main()
