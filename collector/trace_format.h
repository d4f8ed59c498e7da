/* SPDX-License-Identifier: MIT
 *
 * trace_format.h: the trace file, whole. The only description of the format, and all that report/ may see of collector/.
 *
 * A trace is one file a process: a header, then blocks.
 *
 *   offset 0                  struct trace_header, in a page of its own (header_bytes)
 *   offset header_bytes ...   blocks, each at a multiple of TRACE_ALIGN, `extent` bytes long, begun by struct trace_block
 *
 * Space is handed out by adding to header.end, so blocks lie in the order in which they were begun. A block that was
 * handed out and never written is a hole of zero bytes: a reader goes on in steps of TRACE_ALIGN until a head checks out.
 * header.end is a hint (a killed process has it right; a cut file is shorter).
 *
 * Four types of block; of any other type a block is passed over, by its extent:
 *   TRACE_SLOT   one thread's present tail, mapped by the process and used again and again. `used` is stored last, with
 *                release: every byte below it is whole. When full it is sealed: written as a TRACE_CHUNK elsewhere; only
 *                then is the slot emptied (used = 0), given the next sequence and filled again. stream == 0: nobody's.
 *   TRACE_CHUNK  a sealed slot. `crc` is the CRC-32C of the head's bytes from `stream` on, with crc = 0, and then of the payload.
 *   TRACE_DICT   names, nodes, modules, devices ...: written once, never reused. Grows like a slot until full; then and
 *                at a clean end `crc` is set as in a chunk (0: not set). Dictionary blocks have stream == 0 and count by sequence.
 *   TRACE_TOTALS a row of struct trace_total, mapped and added to in place: what came of the ranges that are only counted
 *                (PPERF_OPS=totals). `used` grows by a row at a time, stored with release when the row's node is filled; rows are never taken
 *                away. stream == 0, crc == 0. One node may have rows in several blocks (of several threads): they add up. A row of a process
 *                that was killed may be off by the event that was being added. Readers older than this type take such a block for a
 *                damaged one, say so, and read all else.
 * A slot and a chunk of the same (stream, sequence) hold the same records: keep the chunk. A chunk whose crc is wrong was
 * torn by the kill and is dropped whole: the slot still has it.
 *
 * The payload is a row of 32-bit little-endian words. The two lowest bits of a record's first word are its form:
 *   00  a struct below, begun by struct trace_head, at a multiple of 8 bytes; `size` (a multiple of 8) leads to the next.
 *       The word 0 is padding, 4 bytes long, and stands where an 8-byte boundary must be reached.
 *   01  PUSH4: bits 2..15 ticks since the stream's last stamp, bits 16..31 the node that was entered
 *   10  POP4:  bits 2..31 ticks since the last stamp; the innermost open range closes
 *   11  PUSH8: bits 2..31 the node, second word: ticks since the last stamp
 * A call to CUDA that is like an earlier one of its payload is told in a quarter of the bytes by AGAIN: see struct trace_again.
 * The last stamp is at first the block's base_stamp; each of these and each struct of a kind marked TIMED sets it.
 * A kind that a reader does not know is skipped by its size.
 *
 * Losses. Where the head's `lost` has grown since the stream's last payload, events are missing before this payload: what is open is what its
 * OPEN records say, not what the records before it left. Likewise where a sequence is missing.
 *
 * Order. Records of a thread are in order of their stamps. Every payload of a slot or chunk begins with one CLOCK and one
 * OPEN for each recorded range that is open at that point (outermost first, TRACE_OPEN_MOST at most), so that it can be read alone. A record never names
 * a node or name that is not yet in a dictionary block.
 *
 * Stamps are raw ticks of header.clock_kind. CLOCK records pair them with CLOCK_MONOTONIC and CLOCK_REALTIME; times that
 * come from CUPTI are CLOCK_REALTIME nanoseconds. Durations of calls are ticks.
 *
 * META keys: exe, command (arguments, blanks between, quoted where needed), directory, host, rank (absent: none), env.PPERF_*
 * (each setting in force), version.pperf, version.cuda_runtime, version.cuda_driver, version.cupti (numbers as CUDA and CUPTI give them; several runtimes: `12080, 13000`),
 * version.torch, version.python, cupti.library (path), source.nvtx, source.cuda_symbols, source.cupti, source.torch_ops,
 * source.torch_modules, source.torch_memory, source.python_stacks: `on`, `off: REASON (CODE)` or `partial: REASON`; a key not given: absent from this program.
 * schedule: what PPERF_SCHEDULE was understood as: `skip_first:0,wait:1,warmup:1,active:3,repeat:1`; absent: everything is recorded.
 * cupti.yielded: how often CUPTI was left to another client: there are AWAY records; absent: never.
 * torch.allocator: how PyTorch's allocator was configured (PYTORCH_ALLOC_CONF). torch.abi: 1 if its strings are of C++11's ABI, else 0. torch.layout: where its
 * objects have what we read, as measured. torch.unlinked: backward functions whose operator is not known, at least so many. warning.*: a sentence for the reader.
 * import.format: of a trace that was made of another tool's file: which; import.left_out: what of that file is in no record;
 * import.processes: whose events it holds, if it is more than one process.
 *
 * Ids. stream: a thread that recorded, from 1, never reused. name: a text; 0 is none. node: a place in the tree of
 * contexts (parent, name, domain, kind); 0 is the root, "no range open". domain: the name id of an NVTX domain, 0 the
 * default one. stack: a call stack; 0 is none. Correlation ids are CUPTI's, extended to 64 bits; 0 is none.
 */
#ifndef PPERF_COLLECTOR_TRACE_FORMAT_H
#define PPERF_COLLECTOR_TRACE_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC "pperf\r\n\032" /* 8 bytes; the line end shows a transfer in text mode */
#define TRACE_VERSION 2u
#define TRACE_ENDIAN \
	0x01020304u /* read back as another number: written on a machine of the other byte order */
#define TRACE_ALIGN 64u               /* of every block in the file */
#define TRACE_BLOCK_MAGIC 0x4b6c4250u /* "PBlK" */
#define TRACE_OPEN_MAX 240u           /* OPEN records at the head of a payload */
#define TRACE_TEXT_MAX \
	60000u /* longest text stored, in bytes; longer ones are cut and end in TRACE_TEXT_CUT */
#define TRACE_TEXT_CUT "...[cut]"

enum trace_clock_kind {
	TRACE_CLOCK_TSC = 1,
	TRACE_CLOCK_MONOTONIC = 2 /* ticks are nanoseconds */
};

enum trace_header_flag {
	TRACE_TAIL_AT_RISK =
		1, /* the file system cannot be mapped safely: slots live in memory and reach the file when sealed */
	TRACE_ENDED =
		2, /* the process ended through exit(); absent: it was killed, is alive, or called _exit */
	TRACE_FORKED = 4, /* of a child made by fork that did not exec */
	TRACE_PAUSED =
		8, /* PPERF_SCHEDULE: recording has stopped, or has not begun yet; changed while running */
};

/* Why something was not recorded. One counter each in header.lost. */
#define TRACE_LOSSES(X)                                                                \
	X(FULL_DISK, "the disk is full or a limit was reached")                        \
	X(FULL_FILE, "the trace reached PPERF_MAX")                                    \
	X(NO_MEMORY, "no memory for a thread's buffers")                               \
	X(BAD_FILE, "the trace's file descriptor was closed or reused by the program") \
	X(REENTERED, "the call came from a signal handler inside pperf")               \
	X(TOO_DEEP, "ranges nested deeper than the limit")                             \
	X(CUPTI_DROPPED, "dropped by CUPTI before it reached pperf")                   \
	X(CUPTI_UNREAD, "unreadable records in a CUPTI buffer")

enum trace_loss {
#define X(name, text) TRACE_LOST_##name,
	TRACE_LOSSES(X)
#undef X
		TRACE_LOSS_KINDS
};

/* What was seen outside of the windows of PPERF_SCHEDULE, and not recorded. */
#define TRACE_SKIPS(X)                                             \
	X(RANGES, "range starts and ends")                         \
	X(CALLS, "CUDA calls")                                     \
	X(TENSORS, "allocations and frees of PyTorch's allocator") \
	X(OTHERS, "marks, counters, start/end ranges")             \
	X(GPU, "GPU records")

enum trace_skip_kind {
#define X(name, text) TRACE_SKIPPED_##name,
	TRACE_SKIPS(X)
#undef X
		TRACE_SKIP_KINDS
};

/* What looking at them cost: some were measured, in pperf's own code. Threads add to it now and then, and as windows begin and end. */
struct trace_skip {
	uint64_t events, measured, ticks; /* ticks: of those that were measured */
};

struct trace_clock { /* one moment, three clocks; raw is the middle of a bracket around the other two */
	uint64_t raw, monotonic_ns, realtime_ns;
};

struct trace_header {
	char magic[8];
	uint32_t version, endian;
	uint32_t header_bytes; /* where blocks begin */
	uint32_t clock_kind;   /* enum trace_clock_kind */
	uint8_t build_id[20];  /* of the libpperf.so that wrote it; zeros if it had none */
	uint8_t reserved[20];
	/* 64 bytes so far */
	uint64_t run_id; /* PPERF_RUN: shared by a program and its children */
	uint32_t pid, parent_pid;
	uint32_t flags; /* enum trace_header_flag; changed while running */
	uint32_t page_bytes;
	uint64_t limit_bytes; /* PPERF_MAX */
	struct trace_clock start;
	struct trace_clock last;      /* at the end, with TRACE_ENDED; zeros before */
	uint64_t end;                 /* next free byte of the file */
	uint64_t streams;             /* ids given so far */
	uint64_t lost[16];            /* by enum trace_loss; events */
	uint64_t steps;               /* PPERF_SCHEDULE: that have ended so far, recorded or not */
	struct trace_skip skipped[8]; /* by enum trace_skip_kind */
};
static_assert(offsetof(struct trace_header, run_id) == 64, "part of the file format");
static_assert(offsetof(struct trace_header, steps) == 288 && sizeof(struct trace_header) == 488,
	"part of the file format");
static_assert(TRACE_SKIP_KINDS <= 8, "part of the file format");
static_assert(TRACE_LOSS_KINDS <= 16, "part of the file format");

enum trace_block_type { TRACE_SLOT = 1, TRACE_CHUNK = 2, TRACE_DICT = 3, TRACE_TOTALS = 4 };

struct trace_block {
	uint32_t magic;
	uint32_t type;
	uint64_t extent;   /* bytes in the file, head included */
	uint32_t head_crc; /* CRC-32C of the 16 bytes before it */
	uint32_t stream;   /* from here on a slot changes */
	uint32_t sequence; /* of the stream's payloads, from 0 */
	uint32_t tid;      /* the kernel's thread id */
	uint64_t base_stamp;
	uint64_t lost; /* events of this stream that were not recorded, so far */
	uint32_t crc;
	uint32_t reserved;
	uint64_t used; /* payload bytes, stored last with release */
};
static_assert(sizeof(struct trace_block) == 64, "part of the file format");

/* Of TRACE_TOTALS: the instances of a node that have ended, on the threads that use the row. They are in no stream; what happened in them names the
 * node, and ranges inside them that were recorded have it as their parent. The time of what is inside, counted or recorded, is in `ticks`. */
struct trace_total {
	uint32_t node, reserved;
	uint64_t calls, ticks, longest; /* ticks: of all; longest: of one of them */
};
static_assert(sizeof(struct trace_total) == 32, "part of the file format");

/* Every kind of struct record: kind, struct, 1 if TIMED, what it is. New kinds go to the end. */
#define TRACE_RECORDS(X)                                                                           \
	/* in every stream */                                                                      \
	X(CLOCK, trace_clock_record, 1, "the three clocks at the same time")                       \
	X(OPEN, trace_open, 0, "a range that is open at the start of this payload")                \
	X(PUSH, trace_range, 1, "a range opens, with attributes or inline text")                   \
	X(POP_AT, trace_pop_at, 1, "a range that is not the innermost one closes")                 \
	X(START, trace_range, 1, "a start/end range begins")                                       \
	X(END, trace_end, 1, "a start/end range ends, perhaps on another thread")                  \
	X(MARK, trace_range, 1, "a mark: a point in time with a name")                             \
	X(OBJECT, trace_object, 1, "a category, thread, stream ... is given a name")               \
	X(NVTX_SYNC, trace_nvtx_sync, 1, "a user-defined lock is waited for, acquired, released")  \
	X(METRIC, trace_metric, 1, "a counter has a value")                                        \
	X(LOST, trace_lost, 1, "events were lost before this one")                                 \
	X(SELF, trace_self, 1, "time spent in pperf itself")                                       \
	/* calls to CUDA, written when they return */                                              \
	X(LAUNCH, trace_launch, 1, "a kernel was launched")                                        \
	X(GRAPH_LAUNCH, trace_graph_launch, 1, "a graph was launched")                             \
	X(COPY, trace_copy, 1, "a copy was requested")                                             \
	X(SET, trace_copy, 1, "a memset was requested")                                            \
	X(SYNC, trace_sync, 1, "the CPU waited, or a wait was queued")                             \
	X(ALLOC, trace_memory, 1, "memory was allocated")                                          \
	X(FREE, trace_memory, 1, "memory was freed")                                               \
	/* what CUPTI delivered, on the stream of the thread that delivered it */                  \
	X(GPU_BATCH, trace_gpu_batch, 1, "a CUPTI buffer arrived; its records follow")             \
	X(KERNEL, trace_kernel, 0, "a kernel executed by the GPU")                                 \
	X(GPU_COPY, trace_gpu_copy, 0, "a copy executed by the GPU")                               \
	X(GPU_SET, trace_gpu_copy, 0, "a memset executed by the GPU")                              \
	X(GPU_SYNC, trace_gpu_sync, 0, "a synchronisation or event, timed by CUPTI")               \
	X(GPU_MEMORY, trace_gpu_memory, 0, "an allocation or release, seen by CUPTI")              \
	X(API, trace_api, 0, "a runtime or driver call, timed by CUPTI")                           \
	X(OVERHEAD, trace_overhead, 0, "overhead of CUPTI or the driver")                          \
	/* the dictionary */                                                                       \
	X(META, trace_meta, 0, "a fact about the process: key and value")                          \
	X(NAME, trace_name, 0, "gives an id to a string")                                          \
	X(NODE, trace_node, 0, "gives an id to a node of the tree of contexts")                    \
	X(COUNTER, trace_counter, 0, "gives an id to a counter")                                   \
	X(MODULE, trace_module, 0, "a loaded object, to resolve addresses")                        \
	X(STACK, trace_stack, 0, "gives an id to a call stack")                                    \
	X(DEVICE, trace_device, 0, "a GPU and its limits")                                         \
	X(CONTEXT, trace_context, 0, "a CUDA context or stream")                                   \
	X(GRAPH_NODE, trace_graph_node, 0, "a node of a CUDA graph and who created it")            \
	X(GRAPH_EXEC, trace_graph_exec, 0, "an executable graph")                                  \
	/* in every stream */                                                                      \
	X(AGAIN, trace_again, 1, "a call described by an earlier record of this payload")          \
	/* of PyTorch */                                                                           \
	X(TENSOR, trace_tensor, 1, "PyTorch's allocator allocated or freed a block")               \
	X(TENSOR_OOM, trace_tensor, 1, "PyTorch's allocator ran out of memory")                    \
	X(PYTHON_STACK, trace_python_stack, 0, "gives an id to a Python call stack")               \
	X(SOURCE, trace_source, 0, "where in the program's own code a node was first entered")     \
	X(TENSOR_NEXT, trace_tensor_next, 1, "a TENSOR whose totals follow from the previous one") \
	/* in every stream */                                                                      \
	X(WINDOW, trace_window, 1, "recording starts or pauses, by PPERF_SCHEDULE")                \
	/* of CUPTI */                                                                             \
	X(AWAY, trace_away, 1, "CUPTI is released to another client, or acquired again")           \
	/* of CUDA */                                                                              \
	X(DEVICE_RATES, trace_device_rates, 0, "maximum clock rates of a GPU")

enum trace_kind {
	TRACE_NONE,
#define X(kind, type, timed, text) TRACE_##kind,
	TRACE_RECORDS(X)
#undef X
		TRACE_KINDS
};

struct trace_head {    /* begins every struct record */
	uint16_t size; /* of the whole record, a multiple of 8 */
	uint8_t kind;  /* enum trace_kind */
	uint8_t flags; /* of the kind */
	uint32_t
		node; /* where it happened: the innermost open range; in dictionary records the id that is given, if a node's */
};
struct trace_timed { /* begins every record of a TIMED kind */
	struct trace_head head;
	uint64_t stamp;
};

struct trace_clock_record {
	struct trace_head head;
	uint64_t stamp, monotonic_ns, realtime_ns;
};
struct trace_open {
	struct trace_head head; /* node: the open range */
	uint64_t begin_stamp;
};

/* The attributes as NVTX gave them. PUSH: head.node is the new node. */
enum trace_range_flag {
	TRACE_HAS_COLOR = 1,
	TRACE_HAS_CATEGORY = 2,
	TRACE_HAS_TEXT = 4,
	TRACE_EXTENDED_PAYLOAD = 8
};
struct trace_range {
	struct trace_head head;
	uint64_t stamp;
	uint64_t id;      /* START: process-wide, not 0. Else 0 */
	uint64_t payload; /* the union's 8 bytes; narrower types in the low bytes */
	uint32_t
		name; /* 0 with TRACE_HAS_TEXT: text_bytes of text follow the struct (a text that was not worth an id) */
	uint32_t domain;
	uint32_t category;
	uint32_t color;        /* ARGB */
	uint32_t payload_type; /* NVTX's: 0 none, 1 u64, 2 i64, 3 double, 4 u32, 5 i32, 6 float */
	uint32_t text_bytes;
};
struct trace_pop_at {
	struct trace_head head; /* node: the one that closes */
	uint64_t stamp;
	uint32_t index; /* in the row of open ranges that were recorded, outermost 0 */
	uint32_t reserved;
};
struct trace_end {
	struct trace_head head;
	uint64_t stamp, id;
};

enum trace_object_type {           /* what `object` is */
	TRACE_OBJECT_CATEGORY = 1, /* a number, in a domain */
	TRACE_OBJECT_THREAD,       /* a kernel thread id */
	TRACE_OBJECT_CU_DEVICE,
	TRACE_OBJECT_CU_CONTEXT,
	TRACE_OBJECT_CU_STREAM,
	TRACE_OBJECT_CU_EVENT,
	TRACE_OBJECT_CUDA_DEVICE,
	TRACE_OBJECT_CUDA_STREAM,
	TRACE_OBJECT_CUDA_EVENT,
	TRACE_OBJECT_RESOURCE, /* nvtxDomainResourceCreate: our handle; subtype is NVTX's identifier type, other its identifier */
	TRACE_OBJECT_SYNC,      /* nvtxDomainSyncUserCreate */
	TRACE_OBJECT_DESTROYED, /* a resource, lock or domain handle that is no longer used; name 0 */
};
struct trace_object {
	struct trace_head head;
	uint64_t stamp, object, other;
	uint32_t type, subtype, name, domain;
};

enum trace_nvtx_sync_action {
	TRACE_ACQUIRE_START = 1,
	TRACE_ACQUIRE_FAILED,
	TRACE_ACQUIRE_SUCCESS,
	TRACE_RELEASING
};
struct trace_nvtx_sync {
	struct trace_head head;
	uint64_t stamp, object;
	uint32_t action, reserved;
};

enum trace_metric_type {
	TRACE_METRIC_I64 = 1,
	TRACE_METRIC_F64 = 2,
	TRACE_METRIC_NONE = 3 /* value: NVTX's reason */
};
struct trace_metric {
	struct trace_head head;
	uint64_t stamp;
	uint32_t counter, type;
	uint64_t value; /* the bits of an int64_t or a double */
};
struct trace_lost {
	struct trace_head head;
	uint64_t stamp, events;
	uint32_t reason, reserved; /* enum trace_loss */
};
/* A call is written once it has returned; where it found no room, the SEAL that made some lies between its begin and its stamp, and is no part of it. */
enum trace_self_what { TRACE_SELF_SEAL = 1, TRACE_SELF_START, TRACE_SELF_FLUSH, TRACE_SELF_STACK };
struct trace_self {
	struct trace_head head;
	uint64_t stamp, duration; /* stamp: its end */
	uint32_t what, reserved;
};

/* On the thread that did the step. From BEGINS on everything is recorded; STEP: the next step begins; from ENDS on only ends of ranges that are open, calls that take memory or give
 * it back, TENSOR_OOM and names. Where the first of a trace is not BEGINS, recording began with the process and step 0; where there is none, TRACE_SHUT says whether
 * anything was recorded. */
enum trace_window_edge { TRACE_WINDOW_BEGINS = 1, TRACE_WINDOW_ENDS = 2, TRACE_WINDOW_STEP = 3 };
struct trace_window {
	struct trace_head head;
	uint64_t stamp;
	uint64_t
		step; /* of the program, from 0. BEGINS, STEP: the one that comes; ENDS: the one behind the last that was recorded */
	uint32_t edge, cycle;      /* cycle: from 0 */
	uint32_t warmup, reserved; /* BEGINS: so many steps from `step` on count in no average */
};

/* From BEGINS to ENDS CUPTI was another's (PPERF_CUPTI=yield): nothing is known of what the GPU did, and of calls only those that were seen by symbol, without
 * correlation. Without ENDS: to the end of the trace. */
enum trace_away_edge { TRACE_AWAY_BEGINS = 1, TRACE_AWAY_ENDS = 2 };
struct trace_away {
	struct trace_head head;
	uint64_t stamp;
	uint64_t realtime_ns; /* the same moment as the GPU's records have theirs */
	uint32_t edge, reserved;
};

/* Begins every call record. head.flags: enum trace_call_flag. */
enum trace_call_flag {
	TRACE_CALL_CAPTURED =
		1, /* the stream was being captured: a graph node was made, nothing ran */
	TRACE_CALL_DRIVER = 2,   /* the result is a CUresult, not a cudaError_t */
	TRACE_CALL_CALLBACK = 4, /* seen by a CUPTI callback, not by symbol */
};
struct trace_call {
	struct trace_head head;
	uint64_t stamp;       /* when it returned */
	uint64_t duration;    /* ticks inside */
	uint64_t correlation; /* of the outermost call; 0 without CUPTI */
	uint32_t result;      /* 0 is success */
	uint32_t api;         /* name of the function */
	uint32_t stack;
	uint32_t
		device; /* current device of the thread; UINT32_MAX: not known (launches without CUPTI) */
};
struct trace_launch {
	struct trace_call call;
	uint64_t stream; /* the handle */
	uint64_t
		function; /* what the caller named: host stub address, cudaKernel_t or CUfunction */
	uint32_t grid[3], block[3]; /* zeros: unknown */
	uint32_t shared_bytes;      /* dynamic */
	uint32_t name;              /* the kernel's name if it is known here, mangled; else 0 */
};
struct trace_graph_launch {
	struct trace_call call;
	uint64_t stream, exec;      /* handles */
	uint32_t exec_id, reserved; /* CUPTI's id of the executable graph; 0 unknown */
};
/* Where bytes lie. As in CUPTI's CUpti_ActivityMemoryKind. */
enum trace_memory_kind {
	TRACE_MEMORY_UNKNOWN = 0,
	TRACE_MEMORY_PAGEABLE = 1,
	TRACE_MEMORY_PINNED = 2,
	TRACE_MEMORY_DEVICE = 3,
	TRACE_MEMORY_ARRAY = 4,
	TRACE_MEMORY_MANAGED = 5,
	TRACE_MEMORY_DEVICE_STATIC = 6,
	TRACE_MEMORY_MANAGED_STATIC = 7,
};
/* As in CUPTI's CUpti_ActivityMemcpyKind. */
enum trace_copy_kind {
	TRACE_COPY_UNKNOWN = 0,
	TRACE_COPY_HTOD = 1,
	TRACE_COPY_DTOH = 2,
	TRACE_COPY_HTOA = 3,
	TRACE_COPY_ATOH = 4,
	TRACE_COPY_ATOA = 5,
	TRACE_COPY_ATOD = 6,
	TRACE_COPY_DTOA = 7,
	TRACE_COPY_DTOD = 8,
	TRACE_COPY_HTOH = 9,
	TRACE_COPY_PTOP = 10,
};
struct trace_copy {
	struct trace_call call;
	uint64_t stream, bytes;    /* bytes 0: unknown */
	uint32_t copy_kind, value; /* SET: the value; COPY: 0 */
};
/* 0: a call of another kind (imported traces have all that their files have). */
enum trace_sync_type {
	TRACE_SYNC_EVENT = 1,
	TRACE_SYNC_STREAM_WAIT = 2,
	TRACE_SYNC_STREAM = 3,
	TRACE_SYNC_CONTEXT = 4,
	TRACE_EVENT_RECORD = 5
};
struct trace_sync {
	struct trace_call call;
	uint64_t stream, event; /* handles */
	uint32_t type, reserved;
};
enum trace_memory_flag {
	TRACE_MEMORY_POOL = 1, /* stream-ordered, from a pool */
	TRACE_MEMORY_REGISTERED = 2,
	TRACE_MEMORY_MAPPED =
		4, /* of the host's: where the device sees it; of a device: physical memory, known by its handle, which is no context's */
	TRACE_MEMORY_ALL =
		8, /* FREE, address 0: what the context had on call.device, which has ended, but for physical memory */
};
#define TRACE_MEMORY_CONTEXT_SHIFT \
	16 /* from this bit of the flags on the last 16 bits of the context's id, of ALLOC and with ALL; 0: not known, with ALL: any */
/* Taken when the call returned, given back when it began (stamp - duration): from then on another thread may be given the address. */
struct trace_memory {
	struct trace_call call;
	uint64_t address; /* 0: failed, or freeing NULL */
	uint64_t bytes;   /* as asked for; FREE: 0, the reader finds the ALLOC by address */
	uint64_t stream;
	uint32_t memory_kind, flags;
};
/* Stands for a call record: for the one that lies at `of`, which is no AGAIN, of this payload and before this one, but with this head.node, stamp
 * and duration, and with `correlation` added to its own. As many words of 8 bytes as this record is longer than its struct follow, and
 * take the place of the first ones behind struct trace_call there, such as the address of an allocation. head.flags is 0. */
struct trace_again {
	struct trace_head head;
	uint64_t stamp;
	uint32_t duration;
	uint16_t
		of; /* words of 8 bytes from the payload's beginning to that LAUNCH, GRAPH_LAUNCH, COPY, SET, SYNC, ALLOC or FREE */
	uint16_t correlation;
};

/* As PyTorch's caching allocator reports it, under its lock: a block of `bytes`, and what the device's tensors (allocated) and the allocator itself
 * (reserved) hold after it. */
struct trace_tensor {
	struct trace_head head;
	uint64_t stamp, address; /* TENSOR_OOM: 0 */
	int64_t bytes;           /* below 0: given back */
	uint64_t allocated, reserved;
	uint32_t device, stack;
};
/* head.flags of a TENSOR: no block was given or taken back (bytes and address are 0), this is where the totals stand. After what came before it, some
 * may have been skipped. */
#define TRACE_TENSOR_LEVEL 1u
/* Stands for a TENSOR without a stack whose `allocated` is that of the device's last record of these kinds (of whatever thread, by stamps) plus
 * its bytes, and whose `reserved` is the same: who wrote it has compared. At least one in TRACE_TENSOR_RUN is whole. head.flags: the device, and
 * TRACE_TENSOR_GIVEN_BACK if its bytes are below 0. */
struct trace_tensor_next {
	struct trace_head head;
	uint64_t stamp;
	uint64_t
		block; /* the address / TRACE_TENSOR_UNIT, and from bit TRACE_TENSOR_BYTES_BIT on the bytes (without their sign) / TRACE_TENSOR_UNIT */
};
#define TRACE_TENSOR_FREED 0x80u
#define TRACE_TENSOR_DEVICES 0x80u
#define TRACE_TENSOR_UNIT 512u
#define TRACE_TENSOR_BYTES_BIT 40
#define TRACE_TENSOR_RUN 64u

/* start_ns and end_ns: CLOCK_REALTIME; both 0: CUPTI could not time it. */
struct trace_gpu_batch {
	struct trace_head head;
	uint64_t stamp;
	uint64_t dropped; /* records that CUPTI dropped since the last batch */
	uint32_t records,
		unread; /* in this buffer; unread: 1 if it ended in a record that could not be read */
};
/* head.flags of KERNEL, GPU_COPY and GPU_SET: whoever wrote the trace had all calls before him, and the one that asked for this was not among them. */
#define TRACE_GPU_NO_LAUNCH 1u
#define TRACE_GPU_ENCLOSED \
	2u /* it had no correlation id; the one here was given to it, for a call that was made where its launch was */
struct trace_gpu { /* begins KERNEL, GPU_COPY and GPU_SET */
	struct trace_head head;
	uint64_t start_ns, end_ns, correlation, graph_node; /* graph_node 0: not of a graph */
	uint32_t device, context, stream, graph; /* CUPTI's ids; graph: of the executable graph */
};
struct trace_kernel {
	struct trace_gpu gpu;
	uint32_t grid[3], block[3];
	uint32_t static_shared_bytes, dynamic_shared_bytes;
	uint32_t registers;   /* a thread */
	uint32_t local_bytes; /* a thread */
	uint32_t name;        /* mangled */
	uint32_t
		shared_carveout_bytes; /* shared memory configured on the SM as it ran; 0 unknown */
};
struct trace_gpu_copy {
	struct trace_gpu gpu;
	uint64_t bytes;
	uint32_t copy_kind;                /* GPU_SET: 0 */
	uint32_t source_kind, target_kind; /* enum trace_memory_kind */
	uint32_t other_device;             /* PTOP: the destination; else UINT32_MAX */
	uint32_t value, async;
};
struct trace_gpu_sync {
	struct trace_head head;
	uint64_t start_ns, end_ns, correlation;
	uint32_t type, context, stream, event; /* enum trace_sync_type */
};
struct trace_gpu_memory {
	struct trace_head head;
	uint64_t time_ns, correlation, address, bytes;
	uint32_t operation; /* 1 taken, 2 given back */
	uint32_t memory_kind, device, stream;
};
struct trace_api {
	struct trace_head head;
	uint64_t start_ns, end_ns, correlation;
	uint32_t domain, cbid, tid, result; /* domain: 1 driver, 2 runtime */
	uint32_t name, reserved;
};
struct trace_overhead {
	struct trace_head head;
	uint64_t start_ns, end_ns, correlation;
	uint32_t type, tid; /* type: CUpti_ActivityOverheadKind */
};

/* Texts of META, NAME, MODULE ... follow their struct, not terminated, padded with zeros to the size. */
struct trace_meta { /* a later one of the same key replaces an earlier one */
	struct trace_head head;
	uint32_t key_bytes, value_bytes;
};
struct trace_name {
	struct trace_head head;
	uint32_t name, bytes;
};
enum trace_node_kind {
	TRACE_NODE_RANGE = 1,
	TRACE_NODE_MODULE,
	TRACE_NODE_OP,
	TRACE_NODE_BACKWARD,
	TRACE_NODE_OPTIMIZER,
	TRACE_NODE_STEP
};
struct trace_node {
	struct trace_head head; /* node: its id */
	uint32_t parent,
		name; /* name 0: texts that were not worth an id; each PUSH carries its own */
	uint32_t domain, kind; /* enum trace_node_kind */
	uint32_t
		link; /* BACKWARD: the node of the operator that created it, or 0; OP, called by autograd's engine: that of the function it is for */
	/* A name or 0. MODULE: its class. OP: the sizes of its inputs, `[[64, 128], []]`, and behind these, a tab before each, what is known of
	 * their types, `["float","Scalar"]`, of the values of what is no tensor, `["","2"]`, and the FLOPs that the recorder reckoned. */
	uint32_t detail;
};
struct trace_counter {
	struct trace_head head;
	uint32_t counter, name, domain, unit; /* unit: a name id or 0 */
};
struct trace_module {
	struct trace_head head;
	uint64_t start, end,
		bias; /* of its mapped segments; address - bias is the address in the file */
	uint32_t path_bytes, build_id_bytes; /* path, then build id, follow */
};
struct trace_stack {
	struct trace_head head;
	uint32_t stack, frames; /* that many uint64_t return addresses follow, innermost first */
};
struct trace_python_frame {
	uint32_t function, file, line, reserved; /* names; qualified where Python has it so */
};
struct trace_python_stack { /* its id is of the same row as those of STACK: wherever one stands, the other may */
	struct trace_head head;
	uint32_t stack, frames; /* that many struct trace_python_frame follow, innermost first */
};
struct trace_source { /* head.node: the place */
	struct trace_head head;
	struct trace_python_frame at;
};
struct trace_device {
	struct trace_head head;
	uint32_t device; /* CUDA's ordinal in this process */
	uint32_t compute_major, compute_minor;
	uint32_t multiprocessors, warp_threads;
	uint32_t max_threads_per_sm, max_blocks_per_sm, max_threads_per_block;
	uint32_t registers_per_sm, registers_per_block;
	uint32_t shared_bytes_per_sm, shared_bytes_per_block, reserved_shared_bytes_per_block;
	uint32_t name;
	uint64_t memory_bytes;
	uint8_t uuid[16];
};
struct trace_device_rates { /* as the driver says; 0: it does not */
	struct trace_head head;
	uint32_t device; /* as in DEVICE */
	uint32_t clock_khz, memory_clock_khz, bus_bits;
};
struct trace_context { /* a context: stream == UINT32_MAX */
	struct trace_head head;
	uint32_t context, device, stream, null_stream;
	uint64_t handle;
	uint32_t priority, reserved;
};
struct trace_graph_node { /* head.node: the range in which it was created; original: the node it is a clone of, or 0 */
	struct trace_head head;
	uint64_t graph_node, original;
	uint32_t type, graph; /* type: CUgraphNodeType */
};
struct trace_graph_exec {
	struct trace_head head; /* node: where it was instantiated */
	uint64_t handle;
	uint32_t exec_id, graph;
};

#define X(kind, type, timed, text)                                                              \
	static_assert(                                                                          \
		sizeof(struct type) % 8 == 0, "structs of the file format are 8-byte aligned"); \
	static_assert(                                                                          \
		!(timed) || offsetof(struct trace_timed, stamp) == 8, "a stamp lies at offset 8");
TRACE_RECORDS(X)
#undef X
static_assert(TRACE_KINDS <= 256 && sizeof(struct trace_head) == 8, "part of the file format");
static_assert(sizeof(struct trace_range) == 56 && sizeof(struct trace_call) == 48,
	"part of the file format");
static_assert(sizeof(struct trace_launch) == 96 && sizeof(struct trace_memory) == 80,
	"part of the file format");
static_assert(sizeof(struct trace_again) == 24 && sizeof(struct trace_window) == 40,
	"part of the file format");
static_assert(sizeof(struct trace_tensor) == 56 && sizeof(struct trace_tensor_next) == 24,
	"part of the file format");
static_assert(sizeof(struct trace_gpu) == 56 && sizeof(struct trace_kernel) == 104,
	"part of the file format");
static_assert(sizeof(struct trace_gpu_copy) == 88 && sizeof(struct trace_device) == 88,
	"part of the file format");
static_assert(sizeof(struct trace_open) == 16 && sizeof(struct trace_clock_record) == 32,
	"part of the file format");

/* CRC-32C (Castagnoli, reflected, initial and final ~0), continued from `crc` (0 to begin). Part of the format, so it stands here. */
static inline uint32_t trace_crc32c_portable(uint32_t crc, const void *bytes, size_t count)
{
	static const uint32_t nibble[16] = {
		0x00000000,
		0x105ec76f,
		0x20bd8ede,
		0x30e349b1,
		0x417b1dbc,
		0x5125dad3,
		0x61c69362,
		0x7198540d,
		0x82f63b78,
		0x92a8fc17,
		0xa24bb5a6,
		0xb21572c9,
		0xc38d26c4,
		0xd3d3e1ab,
		0xe330a81a,
		0xf36e6f75,
	};
	const unsigned char *p = bytes;

	crc = ~crc;
	for (size_t i = 0; i < count; i++) {
		crc ^= p[i];
		crc = nibble[crc & 15] ^ (crc >> 4);
		crc = nibble[crc & 15] ^ (crc >> 4);
	}
	return ~crc;
}

#if defined(__x86_64__)
#define TRACE_CPU_PCLMUL (1u << 1)
#define TRACE_CPU_SSE42 (1u << 20)

/* What glibc found out about the processor when the process began (2.33 and later; weak, so that an older one does as well). */
struct trace_cpu_leaf {
	uint32_t cpuid_bits[4], usable_bits[4];
};
extern const struct trace_cpu_leaf *__x86_get_cpuid_feature_leaf(unsigned leaf)
	__attribute__((weak));

/* To ask the processor leaves a virtual machine each time: 1 us, nested 30. So not where glibc has asked, and not as __builtin_cpu_supports does, which
 * brings a constructor that asks five times in every process. */
static inline uint32_t trace_cpu_features(void)
{
	static uint32_t
		cached_features; /* 0: not yet; threads that ask at once get the same answer */
	uint32_t a = 1, b, c = __atomic_load_n(&cached_features, __ATOMIC_RELAXED), d;

	if (__x86_get_cpuid_feature_leaf)
		return __x86_get_cpuid_feature_leaf(0)->usable_bits[2];
	if (!c) {
		__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		__atomic_store_n(&cached_features, c | 1, __ATOMIC_RELAXED);
	}
	return c;
}

/* The crc instruction takes three cycles and can begin in every one, so three lanes of a block go side by side. A lane's crc is moved past the
 * bytes that follow it by a multiplication with x to the power of their bits (less 33, which the product and the instruction add). */
#define TRACE_CRC_LANE 512u
#define TRACE_CRC_PAST_ONE 0xdd7e3b0cu
#define TRACE_CRC_PAST_TWO 0x170076fau
typedef long long trace_crc_pair __attribute__((vector_size(16)));

__attribute__((target("sse4.2,pclmul"))) static inline uint32_t trace_crc32c_lanes(
	uint32_t crc, const unsigned char *p)
{
	uint64_t a = crc, b = 0, c = 0, word;
	trace_crc_pair first, second;

	for (size_t i = 0; i < TRACE_CRC_LANE; i += 8) {
		__builtin_memcpy(&word, p + i, 8);
		a = __builtin_ia32_crc32di(a, word);
		__builtin_memcpy(&word, p + TRACE_CRC_LANE + i, 8);
		b = __builtin_ia32_crc32di(b, word);
		__builtin_memcpy(&word, p + 2 * TRACE_CRC_LANE + i, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	first = __builtin_ia32_pclmulqdq128(
		(trace_crc_pair){ (long long)a, 0 }, (trace_crc_pair){ TRACE_CRC_PAST_TWO, 0 }, 0);
	second = __builtin_ia32_pclmulqdq128(
		(trace_crc_pair){ (long long)b, 0 }, (trace_crc_pair){ TRACE_CRC_PAST_ONE, 0 }, 0);
	return (uint32_t)(__builtin_ia32_crc32di(0, (uint64_t)(first[0] ^ second[0])) ^ c);
}

__attribute__((target("sse4.2"))) static inline uint32_t trace_crc32c_sse42(
	uint32_t crc, const void *bytes, size_t count)
{
	const unsigned char *p = bytes;
	uint64_t wide = ~crc, word;

	if (trace_cpu_features() & TRACE_CPU_PCLMUL)
		for (; count >= 3 * TRACE_CRC_LANE;
			count -= 3 * TRACE_CRC_LANE, p += 3 * TRACE_CRC_LANE)
			wide = trace_crc32c_lanes((uint32_t)wide, p);
	for (; count >= 8; count -= 8, p += 8) {
		__builtin_memcpy(&word, p, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	while (count--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return ~crc;
}
#endif

static inline uint32_t trace_crc32c(uint32_t crc, const void *bytes, size_t count)
{
#if defined(__x86_64__)
	if (trace_cpu_features() & TRACE_CPU_SSE42)
		return trace_crc32c_sse42(crc, bytes, count);
#endif
	return trace_crc32c_portable(crc, bytes, count);
}

/* The crc of a sealed block: `block` with its crc taken as 0, then the payload that follows it in memory. */
static inline uint32_t trace_block_crc(const struct trace_block *block, const void *payload)
{
	struct trace_block plain = *block;
	uint32_t crc;

	plain.crc = 0;
	crc = trace_crc32c(0, &plain.stream, sizeof plain - offsetof(struct trace_block, stream));
	return trace_crc32c(crc, payload, (size_t)plain.used);
}

#endif
