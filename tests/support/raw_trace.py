# SPDX-License-Identifier: MIT
"""A second reader of traces in Python, written from the prose and structs of
collector/trace_format.h alone. It serves tests of fields that no view shows, and shares nothing
with the report. It checks nothing, so traces must be whole.

    for record in records("trace.bin"):
        record.kind, record.flags, record.node, record.stream, record.name, ...
"""
import struct
from types import SimpleNamespace

KINDS = """NONE CLOCK OPEN PUSH POP_AT START END MARK OBJECT NVTX_SYNC METRIC LOST SELF LAUNCH GRAPH_LAUNCH COPY SET SYNC ALLOC FREE GPU_BATCH
KERNEL GPU_COPY GPU_SET GPU_SYNC GPU_MEMORY API OVERHEAD META NAME NODE COUNTER MODULE STACK DEVICE CONTEXT GRAPH_NODE GRAPH_EXEC
AGAIN TENSOR TENSOR_OOM PYTHON_STACK SOURCE TENSOR_NEXT WINDOW AWAY DEVICE_RATES MIXED_STACK DEVICE_MEMORY MAPPING CPU_SAMPLE
COMMUNICATOR COLLECTIVE FRAME PYTHON_FRAME SAMPLE SAMPLED_THREAD SAMPLE_PYTHON""".split()
HEADER_BYTES_AT, HEADER_CLOCKS_AT, HEADER_LOST_AT = 16, 96, 160
SLOT, CHUNK, DICT = 1, 2, 3
CALL = "stamp:Q duration:Q correlation:Q result:I api:I stack:I device:I "
GPU = "start_ns:Q end_ns:Q correlation:Q graph_node:Q device:I context:I gpu_stream:I graph:I "
FIELDS = {
    "LAUNCH": CALL + "stream:Q function:Q grid:3I block:3I shared_bytes:I name:I",
    "GRAPH_LAUNCH": CALL + "stream:Q exec:Q exec_id:I reserved:I",
    "COPY": CALL + "stream:Q bytes:Q copy_kind:I value:I",
    "SET": CALL + "stream:Q bytes:Q copy_kind:I value:I",
    "SYNC": CALL + "stream:Q event:Q type:I reserved:I",
    "ALLOC": CALL + "address:Q bytes:Q stream:Q memory_kind:I mflags:I",
    "FREE": CALL + "address:Q bytes:Q stream:Q memory_kind:I mflags:I",
    "MAPPING": CALL + "address:Q bytes:Q handle:Q action:I reserved:I",
    "GPU_BATCH": "stamp:Q dropped:Q records:I unread:I",
    "KERNEL": GPU + "grid:3I block:3I static_shared:I dynamic_shared:I registers:I local_bytes:I name:I carveout:I",
    "GPU_COPY": GPU + "bytes:Q copy_kind:I source_kind:I target_kind:I other_device:I value:I is_async:I",
    "GPU_SET": GPU + "bytes:Q copy_kind:I source_kind:I target_kind:I other_device:I value:I is_async:I",
    "GPU_SYNC": "start_ns:Q end_ns:Q correlation:Q type:I context:I gpu_stream:I event:I",
    "GPU_MEMORY": "time_ns:Q correlation:Q address:Q bytes:Q operation:I memory_kind:I device:I gpu_stream:I",
    "API": "start_ns:Q end_ns:Q correlation:Q domain:I cbid:I tid:I result:I name:I reserved:I",
    "OVERHEAD": "start_ns:Q end_ns:Q correlation:Q type:I tid:I",
    "CLOCK": "stamp:Q monotonic_ns:Q realtime_ns:Q",
    "SELF": "stamp:Q duration:Q what:I reserved:I",
    "TENSOR": "stamp:Q address:Q bytes:q allocated:Q reserved:Q device:I stack:I",
    "TENSOR_OOM": "stamp:Q address:Q bytes:q allocated:Q reserved:Q device:I stack:I",
    "TENSOR_NEXT": "stamp:Q block:Q",
    "DEVICE_MEMORY": "stamp:Q free_bytes:Q total_bytes:Q process_bytes:Q device:I reason:I",
    "CPU_SAMPLE": "stamp:Q function:I module:I",
    "SAMPLE": "stamp:Q pc:Q ago:I tid:I weight:I state:I native:I python:I",
    "SAMPLED_THREAD": "stamp:Q cpu_ns:Q waited_ns:Q tid:I thread_name:I",
    "SAMPLE_PYTHON": "stamp:Q since:Q python:I reserved:I",
    "COLLECTIVE": "stamp:Q duration:Q bytes:Q number:Q gpu_stream:Q communicator:I operation:I data_type:I peer:I result:I calls:I",
    "WINDOW": "stamp:Q step:Q edge:I cycle:I warmup:I reserved:I",
    "AWAY": "stamp:Q realtime_ns:Q edge:I reserved:I",
    "LOST": "stamp:Q events:Q reason:I reserved:I",
}
DICTIONARY = { # records of the dictionary
    "NODE": "parent:I name:I domain:I kind:I link:I detail:I",
    "SOURCE": "function:I file:I line:I",
    "MIXED_STACK": "stack:I native:I python:I",
    "DEVICE": "device:I major:I minor:I multiprocessors:I warp_threads:I threads_per_sm:I blocks_per_sm:I threads_per_block:I registers_per_sm:I "
              "registers_per_block:I shared_per_sm:I shared_per_block:I reserved_shared:I name:I memory_bytes:Q uuid:16B",
    "DEVICE_RATES": "device:I clock_khz:I memory_clock_khz:I bus_bits:I",
    "FRAME": "frame:I parent:I address:Q",
    "PYTHON_FRAME": "frame:I parent:I function:I file:I line:I entry:I",
    "COMMUNICATOR": "key:Q communicator:I ranks:I rank:I device:I",
    "CONTEXT": "context:I device:I stream:I null_stream:I handle:Q priority:I",
    "GRAPH_NODE": "graph_node:Q original:Q type:I graph:I",
    "GRAPH_EXEC": "handle:Q exec_id:I graph:I",
}
CALLS = ("LAUNCH", "GRAPH_LAUNCH", "COPY", "SET", "SYNC", "ALLOC", "FREE", "MAPPING")


def fields(kind, data, at):
    result = {}
    for field in FIELDS.get(kind, DICTIONARY.get(kind, "")).split():
        name, form = field.split(":")
        values = struct.unpack_from("<" + form, data, at)
        result[name] = values if len(values) > 1 else values[0]
        at += struct.calcsize("<" + form)
    return result


def blocks(data):
    at = struct.unpack_from("<I", data, HEADER_BYTES_AT)[0]
    while at + 64 <= len(data):
        magic, kind, extent = struct.unpack_from("<IIQ", data, at)
        if magic != 0x4B6C4250:
            at += 64
            continue
        stream, sequence = struct.unpack_from("<II", data, at + 20)
        used = struct.unpack_from("<Q", data, at + 56)[0]
        # A kill during a write leaves a part of the block.
        yield kind, stream, sequence, at + 64, min(at + 64 + used, len(data))
        at += extent


def structs(data, at, end):
    while at < end:
        word = struct.unpack_from("<I", data, at)[0]
        if word & 3 or not word:
            at += 8 if word & 3 == 3 else 4
            continue
        if at + 8 > end or at + word % 65536 > end:
            return
        size, kind, flags, node = struct.unpack_from("<HBBI", data, at)
        yield KINDS[kind], flags, node, at + 8, at + size
        at += size


def whole_call(data, start, at, end):
    """Expands an AGAIN record of the payload at `start`: kind, flags, and the bytes behind the
    head."""
    stamp, duration, of, more = struct.unpack_from("<QIHH", data, at)
    size, kind, flags, _ = struct.unpack_from("<HBBI", data, start + 8 * of)
    body = bytearray(data[start + 8 * of + 8:start + 8 * of + size])
    assert KINDS[kind] in CALLS and start + 8 * of + size < at
    struct.pack_into("<QQQ", body, 0, stamp, duration, struct.unpack_from("<Q", body, 16)[0] + more)
    body[40:40 + end - at - 16] = data[at + 16:end]
    return KINDS[kind], flags, body


def dictionary(data):
    """Names by id, metadata, modules and stacks of the dictionary."""
    names, meta, modules, stacks = {}, {}, [], {}
    for _, _, _, start, end in [b for b in blocks(data) if b[0] == DICT]:
        for kind, _, _, at, _ in structs(data, start, end):
            if kind == "NAME":
                name, size = struct.unpack_from("<II", data, at)
                names[name] = data[at + 8:at + 8 + size].decode(errors="surrogateescape")
            elif kind == "META":
                key, value = struct.unpack_from("<II", data, at)
                meta[data[at + 8:at + 8 + key].decode()] = data[at + 8 + key:at + 8 + key + value].decode(errors="surrogateescape")
            elif kind == "MODULE":
                low, high, bias, path, build_id = struct.unpack_from("<QQQII", data, at)
                text = at + 32
                modules.append(SimpleNamespace(start=low, end=high, bias=bias, path=data[text:text + path].decode(),
                                               build_id=data[text + path:text + path + build_id].hex()))
            elif kind == "STACK":
                stack, count = struct.unpack_from("<II", data, at)
                stacks[stack] = struct.unpack_from("<%dQ" % count, data, at + 8)
    return names, meta, modules, stacks


def described(data):
    """The other records of the dictionary by kind, in order. `node` of a NODE is its own id."""
    found = {kind: [] for kind in DICTIONARY}
    for _, _, _, start, end in [b for b in blocks(data) if b[0] == DICT]:
        for kind, _, node, at, _ in structs(data, start, end):
            if kind in DICTIONARY:
                found[kind].append(SimpleNamespace(node=node, **fields(kind, data, at)))
    return found


def ticks_per_ns(data):
    """By the clocks of the header at the start and at the end; 0 if the program did not end
    through exit()."""
    start, last = struct.unpack_from("<3Q", data, HEADER_CLOCKS_AT), struct.unpack_from("<3Q", data, HEADER_CLOCKS_AT + 24)
    return (last[0] - start[0]) / (last[1] - start[1]) if last[1] > start[1] else 0


def whole(path):
    """The records of every thread in order, with the names, metadata, modules and stacks of the
    trace."""
    with open(path, "rb") as file:
        data = file.read()
    names, meta, modules, stacks = dictionary(data)
    chunks = {(stream, sequence) for kind, stream, sequence, _, _ in blocks(data) if kind == CHUNK}
    result = []
    for kind, stream, sequence, start, end in blocks(data):
        if kind == DICT or not stream or kind == SLOT and (stream, sequence) in chunks:
            continue
        for name, flags, node, at, after in structs(data, start, end):
            bytes_of, again = data, name == "AGAIN"
            if again:
                (name, flags, bytes_of), at = whole_call(data, start, at, after), 0
            record = SimpleNamespace(kind=name, flags=flags, node=node, thread=stream, sequence=sequence, again=again, **fields(name, bytes_of, at))
            if name in CALLS:
                record.api = names[record.api]
            result.append(record)
    result.sort(key=lambda r: (r.thread, r.sequence))
    return SimpleNamespace(records=result, calls=[r for r in result if r.kind in CALLS], names=names, meta=meta, modules=modules,
                           stacks=stacks, dictionary=described(data), lost=struct.unpack_from("<16Q", data, HEADER_LOST_AT),
                           ticks_per_ns=ticks_per_ns(data))
