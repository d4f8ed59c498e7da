#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `make bench-peers` writes, and that it writes nothing if the machine was too busy. No test
measures."""
import sys
from harness import *

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/bench/peers"))
import machine, peers, results, tools


def tool(key, name, keeps=True):
    made = type(key, (), {})()
    made.key, made.name, made.version, made.what, made.keeps, made.threads = key, name, "1.2", "a load", keeps, (1, 2)
    return made


def measured(ours=30.0, lost=0):
    """Three rounds. The middle one is the median."""
    there = {key: tool(key, name, keeps) for key, name, keeps in (("nothing", "nothing", False), ("floor", "floor", False), ("pperf", "pperf", True),
                                                                   ("uftrace", "uftrace", True), ("tracy", "Tracy", False))}
    rounds = []
    for more in (0, 1, 5):
        values = {}
        for key, time in (("nothing", 2), ("floor", 20), ("pperf", ours), ("uftrace", 90.0), ("tracy", 70.0)):
            for threads in (1, 2):
                values[key, threads] = tools.Run(time + more, time + more, time + more, 1000, 8000 if key == "pperf" else 32000)
            values[key, "start"] = 0.001 if key == "nothing" else 0.0015
        rounds.append(values)
    reads, gone = [{"pperf-report tree": 100.0, "uftrace report": 8.0}] * 3, {"pperf": (lost, 2000), "uftrace": (7, 2000)}
    return results.Measured(there, ["LTTng-UST: not installed"], rounds, reads, gone, peers.gates(there, rounds, reads, gone), [0.01, 0.02], 0, 60)


def others(share):
    machine.others = lambda seconds=0: share


@case
def rounds_on_a_busy_machine_are_not_counted_and_too_few_are_no_result(folder):
    others(0.5)
    try:
        machine.in_rounds({"a": lambda: 1}, 3)
        assert False, "a result of a busy machine"
    except machine.Busy as busy:
        assert "0 of 6 rounds were quiet, 3 are needed" in str(busy)
    try:
        machine.check_quiet()
        assert False, "a busy machine called quiet"
    except machine.Busy:
        pass
    others(0.0)
    machine.check_quiet()
    turns = iter((1, 9, 2, 9, 3))
    rounds, shares = machine.in_rounds({"a": lambda: next(turns)}, 3, lambda values: values["a"] < 9)
    assert [r["a"] for r in rounds] == [1, 2, 3] and shares == [0, 0, 0]


@case
def each_round_has_every_measure_in_another_order(folder):
    others(0.0)
    seen = []
    rounds, _ = machine.in_rounds({name: lambda name=name: seen.append(name) or name for name in "abc"}, 3)
    assert "".join(seen) == "abcbcacab" and all(r == {"a": "a", "b": "b", "c": "c"} for r in rounds)


@case
def a_gate_is_the_median_of_the_ratios_and_can_be_missed(folder):
    good = {row[0]: row for row in measured().gates}
    assert all(row[4] for row in good.values()), good
    assert sorted(good["a range, elapsed, of uftrace's"][3])[1] == 31 / 91
    assert good["events a second, of uftrace report"][3][0] == 12.5
    assert [name for name, *_, kept in measured(ours=46, lost=1).gates if not kept] == [
        "a range, elapsed, of uftrace's", "a whole run, of uftrace's", "a range, CPU time, of Tracy's, not connected", "ranges lost by kill -9"]


@case
def the_document_says_what_was_measured_and_what_not(folder):
    text = results.document(measured(lost=3))
    for part in ("| a range, opened and closed | 31 ns | 91 ns | 71 ns |", "| lost by kill -9 | 3 of 2000 ranges | 7 of 2000 ranges | - |",
                 "| in the trace | 8.0 bytes a range | 32.0 bytes a range | - |", "| added to the start of a process | 0.5 ms | 0.5 ms | 0.5 ms |",
                 "31.0 [30.0 to 35.0]", "- Not measured: LTTng-UST: not installed.", "others used 1.5 % of the machine, at most 2.0 % in a round",
                 "**missed**", "pperf 1.2, uftrace 1.2, Tracy 1.2"):
        assert part in text, part


@case
def the_readme_gets_the_table_and_keeps_the_rest(folder):
    (folder / "README.md").write_text("before\n%s\nold\n%s\nafter\n" % (results.BEGIN, results.END))
    found = measured()
    for _ in range(2):
        results.write(folder, found)
    readme = (folder / "README.md").read_text()
    assert readme == "before\n%s\nafter\n" % results.block(found)
    assert results.block(found) in (folder / "bench/RESULTS.md").read_text()


main()
