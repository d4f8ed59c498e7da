# SPDX-License-Identifier: MIT
"""What a trace has of PyTorch, in the form that tests compare: nodes, and the range stack of each
thread."""
import json
from types import SimpleNamespace
from harness import dump, info
from raw_trace import described, dictionary

# enum trace_node_kind of collector/trace_format.h
_, RANGE, MODULE, OP, BACKWARD, OPTIMIZER = KINDS = [None, "range", "module", "op", "backward", "optimizer"]


def facts(path):
    return info(path)["rows"][0]["meta"]


def losses(path):
    return {k: v for k, v in info(path)["integrity"].items() if v and k in (
        "lost_events", "unmatched_ends", "left_open", "unended", "clock_violations", "truncated_streams", "damaged", "unknown_kinds", "tensor_differences")}


class Trace:
    def __init__(self, path):
        data = open(path, "rb").read()
        texts = dictionary(data)[0]
        texts[0] = None
        self.nodes = {n.node: SimpleNamespace(id=n.node, name=texts.get(n.name), kind=KINDS[n.kind], parent=n.parent, link=n.link, detail=texts.get(n.detail))
                       for n in described(data)["NODE"]}
        self.records = dump(path, {"push", "pop"})

    def path(self, id):
        names = []
        while id in self.nodes:
            names.append(self.nodes[id].name)
            id = self.nodes[id].parent
        return tuple(reversed(names))

    def calls(self, *kinds):
        """The nodes entered, in order. `kinds`: only nodes of these kinds."""
        return [self.nodes[r["node"]] for r in self.records if r["kind"] == "push" and (not kinds or self.nodes[r["node"]].kind in kinds)]

    def tree(self):
        """The names of the ranges entered, indented by depth."""
        return ["  " * r["depth"] + r["name"] for r in self.records if r["kind"] == "push"]

    def linked(self, *except_names):
        """Pairs of a backward node's name and the path of the operator linked to it, or None."""
        return [(p.name, self.path(p.link) if p.link else None) for p in self.calls(BACKWARD) if p.name not in except_names]

    def is_balanced(self):
        """True if each thread closes the ranges that it opens, the innermost first."""
        open = {}
        for record in self.records:
            stack = open.setdefault(record["tid"], [])
            if record["kind"] == "push":
                stack.append(record["node"])
            elif not stack or stack.pop() != record["node"]:
                return False
        return not any(open.values())
