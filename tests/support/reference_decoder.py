# SPDX-License-Identifier: MIT
"""A second reader of traces, written from the prose of collector/trace_format.h alone. It shares
nothing with the report, and must find what `pperf-report dump` prints. It is slow, and reads only
what NVTX records."""
import pathlib, re, struct

HEADER = (pathlib.Path(__file__).resolve().parents[2] / "collector" / "trace_format.h").read_text()
KINDS = [None] + re.findall(r"^\tX\((\w+), trace_\w+, [01],", HEADER, re.M)
SLOT, CHUNK, DICT, TOTALS = 1, 2, 3, 4


def crc_table():
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        yield value


TABLE = list(crc_table())


def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


class Block:
    def __init__(self, data, offset):
        (self.magic, self.type, self.extent, self.head_crc, self.stream, self.sequence, self.tid, self.base_stamp, self.lost,
         self.crc, _, self.used) = struct.unpack_from("<IIQIIIIQQIIQ", data, offset)
        self.payload = data[offset + 64:offset + 64 + self.used]
        self.covered = data[offset + 20:offset + 48] + bytes(4) + data[offset + 52:offset + 64] + self.payload

    def is_whole(self):
        """False for a chunk that the end of the process has torn."""
        return self.type != CHUNK or crc(self.covered) == self.crc


def heads(data):
    """Every block whose head is written."""
    at = struct.unpack_from("<I", data, 16)[0]
    while at + 64 <= len(data):
        block = Block(data, at)
        if block.magic != 0x4B6C4250:
            at += 64
            continue
        yield block
        at += block.extent


def blocks(data):
    """Slots, chunks and dictionary blocks. A slot is left out if its payload is also a chunk."""
    found = {}
    for block in heads(data):
        key = (block.type == DICT, block.stream, block.sequence)
        if (block.stream or block.type == DICT) and (key not in found or block.type == CHUNK) and block.is_whole():
            found[key] = block
    return [found[key] for key in sorted(found)]


def structs(payload, visit_short):
    """The struct records of a payload as (kind, node, record). Short records are passed to
    visit_short."""
    at = 0
    while at + 4 <= len(payload):
        word = struct.unpack_from("<I", payload, at)[0]
        form = word & 3
        if word == 0:
            at += 4
        elif form:
            visit_short(form, word, struct.unpack_from("<I", payload, at + 4)[0] if form == 3 else 0)
            at += 8 if form == 3 else 4
        else:
            size, kind, _, node = struct.unpack_from("<HBBI", payload, at)
            yield KINDS[kind] if kind < len(KINDS) else None, node, payload[at:at + size]
            at += size


class Dictionary:
    def __init__(self, found):
        self.names, self.nodes = {0: b""}, {}
        for block in found:
            for kind, node, record in structs(block.payload, None):
                if kind == "NAME":
                    name, count = struct.unpack_from("<II", record, 8)
                    self.names[name] = record[16:16 + count]
                elif kind == "NODE":
                    self.nodes[node] = struct.unpack_from("<IIII", record, 8)  # parent, name, domain, kind


def read(path):
    """{tid: [(kind, name, domain)]} of pushes, pops, starts, ends and marks, in order. Names are bytes."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"pperf\r\n\x1a"
    found = blocks(data)
    dictionary, threads, stacks, started, ends = Dictionary([b for b in found if b.type == DICT]), {}, {}, {}, []
    for block in (b for b in found if b.type != DICT):
        events, stack = threads.setdefault(block.tid, []), stacks.setdefault(block.stream, [])

        def push(node, name=None):
            _, own, domain, _ = dictionary.nodes[node]
            stack.append((dictionary.names[own] if name is None else name, dictionary.names[domain]))
            events.append(("push", *stack[-1]))

        def pop(index=-1):
            events.append(("pop", *stack.pop(index)))

        def short(form, word, second):
            if form == 1:
                push(word >> 16)
            elif form == 2:
                pop()
            else:
                push(word >> 2)

        for kind, node, record in structs(block.payload, short):
            if kind in ("PUSH", "START", "MARK"):
                identity, _, name, domain, _, _, _, count = struct.unpack_from("<QQIIIIII", record, 16)
                text = record[56:56 + count] if record[3] & 4 else dictionary.names[name]
                if kind == "PUSH":
                    push(node, text)
                else:
                    events.append((kind.lower(), text, dictionary.names[domain]))
                if kind == "START":
                    started[identity] = events[-1][1:]
            elif kind == "POP_AT":
                index = struct.unpack_from("<I", record, 16)[0]
                events.append(("pop", b"", b"")) if index == 0xFFFFFFFF else pop(index)  # a pop without a push
            elif kind == "END":
                events.append(("end", struct.unpack_from("<Q", record, 16)[0], None))
                ends.append((events, len(events) - 1))
    for events, at in ends:
        events[at] = ("end", *started.get(events[at][1], (b"", b"")))
    return threads


def nodes(path):
    """{node: (names from the root on, kind, names of the linked node, detail)} of all nodes."""
    data, kinds = pathlib.Path(path).read_bytes(), re.findall(r"TRACE_NODE_(\w+)", re.search(r"enum trace_node_kind \{.*?\}", HEADER, re.S)[0])
    dictionary, found = Dictionary([b for b in blocks(data) if b.type == DICT]), {}
    for block in (b for b in blocks(data) if b.type == DICT):
        for what, node, record in structs(block.payload, None):
            if what != "NODE":
                continue
            parent, name, _, kind, link, detail = struct.unpack_from("<IIIIII", record, 8)
            above = found[parent][0] if parent else ()
            found[node] = (*above, dictionary.names[name].decode()), kinds[kind - 1], link, dictionary.names[detail].decode()
    return {node: (names, kind, found[link][0] if link else (), detail) for node, (names, kind, link, detail) in found.items()}


def totals(path):
    """{node: (calls, ticks, longest)} of ranges that were only counted."""
    found = {}
    for block in (b for b in heads(pathlib.Path(path).read_bytes()) if b.type == TOTALS):
        for at in range(0, len(block.payload) - 31, 32):
            node, _, *row = struct.unpack_from("<IIQQQ", block.payload, at)
            before = found.get(node, (0, 0, 0))
            found[node] = before[0] + row[0], before[1] + row[1], max(before[2], row[2])
    return found
