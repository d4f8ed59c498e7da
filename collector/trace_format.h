/* SPDX-License-Identifier: MIT
 * Defines the trace file. This is the only description of the format, and the only header of
 * collector/ that report/ includes.
 *
 * A trace is one file per process: a header, then blocks.
 *
 *   offset 0                  struct trace_header, in a page of its own (header_bytes)
 *   offset header_bytes ...   blocks, each at a multiple of TRACE_ALIGN and `extent` bytes long;
 *                             each begins with struct trace_block
 *
 * Space is allocated by adding to header.end, so blocks are in the order in which they were begun.
 * A block that was allocated and never written is a hole of zero bytes. A reader skips it in steps
 * of TRACE_ALIGN until it finds a valid block head. header.end is a hint: it is right in a killed
 * process, but a truncated file is shorter.
 *
 * There are five types of block. A reader skips a block of any other type by its extent.
 *
 *   TRACE_SLOT    The current tail of one thread's records, mapped by the process and reused.
 *                 `used` is stored last, with release: every byte below it is complete.
 *                 A full slot is sealed: it is written as a TRACE_CHUNK elsewhere. Only then is
 *                 it emptied (used = 0), given the next sequence and filled again.
 *                 stream == 0: no thread owns it.
 *   TRACE_CHUNK   A sealed slot. `crc` is the CRC-32C of the head's bytes from `stream` on,
 *                 with crc = 0, and then of the payload.
 *   TRACE_DICT    Names, nodes, modules, devices and so on, written once and never reused.
 *                 It grows like a slot until it is full. Then, and at a clean end, `crc` is set
 *                 as in a chunk (0: not set). stream == 0; sequence counts dictionary blocks.
 *   TRACE_TOTALS  An array of struct trace_total, mapped and added to in place. It holds the
 *                 ranges that are only counted (PPERF_OPS=totals). `used` grows by one row at a
 *                 time, stored with release when the row's node is set. Rows are never removed.
 *                 stream == 0 and crc == 0. Several blocks (of several threads) may have rows of
 *                 one node: add them up. A row of a killed process may be off by the event that
 *                 was being added. Readers older than this type report such a block as damaged
 *                 and read everything else.
 * A slot and a chunk of the same (stream, sequence) hold the same records: keep the chunk. A chunk
 * with a wrong crc was being written when the process was killed. It is dropped whole, because the
 * slot still has its records.
 *
 * The ring. With PPERF_RING, chunks are only in the segments of a ring. A segment is a part of the
 * file that begins as one TRACE_UNUSED block; chunks are taken off its beginning. If the ring has
 * reached its size, the oldest segment becomes one TRACE_UNUSED block again, and its chunks are
 * counted in header.ring. So the payloads of a stream begin with a sequence greater than 0, which
 * is no loss. `reserved` of such a chunk is the number of its events, as far as the program made
 * them.
 *
 * A stream restates from time to time what holds then: a WINDOW record (RESTATES), the records
 * below, a WINDOW record (RESTATED). No thread records anything of these kinds in between.
 *
 *   OBJECT   the name of each object
 *   METRIC   the last value of each counter
 *   START    each start/end range that is open; a text without an id may be cut
 *   AWAY     the last one
 *   ALLOC    each CUDA allocation that is held (duration 0), also of physical memory
 *   MAPPING  each RESERVE, MAP and IMPORT that is in force, and RETAIN (without an address) for
 *            further references
 *   FREE     for physical memory that is mapped, but has no reference
 *   TENSOR   with TRACE_TENSOR_LEVEL for each device, then each block of PyTorch's allocator
 *
 * header.ring.window_stamp is the stamp of the first RESTATES after which nothing was overwritten.
 * The window of the trace begins there. A reader leaves out what is before it, except that ranges
 * may have begun there. It leaves out what was restated at any other time.
 *
 * The payload is a sequence of 32-bit little-endian words. The two lowest bits of a record's first
 * word are its form:
 *
 *   00  A struct below, which begins with struct trace_head at a multiple of 8 bytes. Adding `size`
 *       (a multiple of 8) gives the next record. The word 0 is 4 bytes of padding, used where a
 *       struct must be aligned to 8 bytes.
 *   01  PUSH4: bits 2..15 ticks since the stream's last stamp, bits 16..31 the node that is entered
 *   10  POP4:  bits 2..31 ticks since the last stamp; the innermost open range closes
 *   11  PUSH8: bits 2..31 the node; second word: ticks since the last stamp
 * "The last stamp" is at first the block's base_stamp. Each of these forms sets it, and so does
 * each struct of a kind marked TIMED. A reader that does not know a kind uses `size` to skip the
 * record. If a CUDA call resembles an earlier one of the same payload, an AGAIN record stores only
 * the differences, which takes a quarter of the bytes (struct trace_again).
 *
 * Losses. If the head's `lost` has grown since the stream's last payload, events are missing before
 * this payload, perhaps also starts and ends of ranges. The reader then replaces its stack of open
 * ranges by the ranges of the payload's OPEN records. It does the same if a sequence number is
 * missing.
 *
 * Order. Records of a thread are in the order of their stamps. Every payload of a slot or chunk can
 * be read alone. It begins with one CLOCK, then one OPEN for each recorded range that is open at
 * that point (outermost first, TRACE_OPEN_MAX at most). A record never refers to a node or name
 * that is not yet in a dictionary block.
 *
 * Stamps are raw ticks of header.clock_kind. CLOCK records pair them with CLOCK_MONOTONIC and
 * CLOCK_REALTIME. Times that come from CUPTI are CLOCK_REALTIME nanoseconds. Durations of calls are
 * ticks.
 *
 * META keys:
 *
 *   exe, directory, host    of the process
 *   command                 its arguments, separated by blanks, quoted where needed
 *   rank                    absent: none
 *   distributed.world_size  number of ranks of the job; absent: not known
 *   env.PPERF_*             each setting in force
 *   version.cuda_runtime, version.cuda_driver, version.cupti
 *                           numbers as CUDA and CUPTI give them; several runtimes: `12080, 13000`
 *   version.pperf, version.torch, version.python
 *   version.nccl            of the NCCL that the program called first: `2.27.5`
 *   cupti.library           its path
 *   source.nvtx, source.cuda_symbols, source.cupti, source.torch_ops, source.torch_modules,
 *   source.torch_compile, source.torch_memory, source.python_stacks, source.cpu_samples
 *                           `on`, `off: REASON (CODE)` or `partial: REASON`;
 *                           absent: the program does not use it
 *   sample.hz               samples a second of each thread (PPERF_SAMPLE); absent: no CPU samples
 *   sample.clock            PPERF_SAMPLE_CLOCK: cpu or wall
 *   sample.source           what takes samples: clock (the threads' CPU clocks) or perf
 *   python.eval_part        addresses `0xBEGIN-0xEND` of the second part of
 *                           _PyEval_EvalFrameDefault, which the compiler placed apart from the
 *                           first; absent: it has one part, or is not known
 *   schedule                PPERF_SCHEDULE as parsed:
 *                           `skip_first:0,wait:1,warmup:1,active:3,repeat:1`;
 *                           absent: everything is recorded
 *   cupti.known.*           a sentence on an issue of this version of CUPTI
 *   cupti.yielded           how often CUPTI was handed over to a second client, which the AWAY
 *                           records show; absent: never
 *   cupti.gpu_ids           `driver` or `runtime`: whose id GPU records carry if the runtime call
 *                           and the driver call inside it both have one; absent: not known
 *   graphs                  how launches of CUDA graphs are recorded (PPERF_GRAPHS): `whole`,
 *                           or `auto: ` with what was chosen and when; absent: every node
 *   torch.allocator         the configuration of PyTorch's allocator (PYTORCH_ALLOC_CONF)
 *   torch.abi               1 if PyTorch's strings have the C++11 ABI, else 0
 *   torch.layout            measured offsets of the members that pperf reads in PyTorch
 *   cost.event_ns           what recording one event of PyTorch took, in ns, as measured at the
 *                           end of the program
 *   cost.metric.NAME        of a metric whose callback takes more than 1 ms in the mean: the number
 *                           of its calls and their nanoseconds, `8 33230000`; a lower bound if the
 *                           process was killed
 *   torch.unlinked          number of backward functions whose operator is unknown (a lower bound)
 *   warning.*               a sentence for the user
 *   import.format           in a trace made of another tool's file: that file's format
 *   import.begin_ns         the time in that file at which the trace begins
 *   import.left_out         what that file holds and no record has
 *   import.markers          the tool's own markers in that file, which no record has
 *   import.devices          which GPU was renumbered, as a sentence; absent: none
 *   import.processes        the processes whose events it holds, if there are several
 *   import.process_groups   how many CUDA streams with kernels of NCCL have the name of their
 *                           process group, as a sentence; absent: there are no such kernels
 *   import.graphs           with a second file that has captures: how many graph launches match
 *                           one, `N of M`
 * Words. A stream is the sequence of records of one thread; a stream of CUDA is called "CUDA
 * stream", except in members of structs that describe CUDA calls and GPU work. A node is one of the
 * calling-context tree; those of CUDA graphs are called "graph node". A MODULE record is a loaded
 * ELF object; TRACE_NODE_MODULE is a torch.nn.Module. SET means memset, SELF for pperf itself.
 *
 * Ids. stream: a thread that recorded, counted from 1, never reused. name: a text; 0 is none. node:
 * a node of the calling-context tree (parent, name, domain, kind); 0 is the root, which means that
 * no range is open. domain: the name id of an NVTX domain; 0 is the default one. stack: a call
 * stack; 0 is none. Correlation ids are CUPTI's, extended to 64 bits; 0 is none.
 */
#ifndef PPERF_COLLECTOR_TRACE_FORMAT_H
#define PPERF_COLLECTOR_TRACE_FORMAT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC "pperf\r\n\032" /* 8 bytes; the line end shows a transfer in text mode */
#define TRACE_VERSION 2u
/* Reads as another number if the file was written on a machine of the other byte order. */
#define TRACE_ENDIAN 0x01020304u
#define TRACE_ALIGN 64u               /* alignment of every block in the file */
#define TRACE_BLOCK_MAGIC 0x4b6c4250u /* "PBlK" */
#define TRACE_OPEN_MAX 240u           /* maximum number of OPEN records at the head of a payload */
/* Longest stored text, in bytes. Longer ones are cut and end in TRACE_TEXT_CUT. */
#define TRACE_TEXT_MAX 60000u
#define TRACE_TEXT_CUT "...[cut]"

enum trace_clock_kind {
	TRACE_CLOCK_TSC = 1,
	TRACE_CLOCK_MONOTONIC = 2 /* ticks are nanoseconds */
};

enum trace_header_flag {
	/* The file system cannot be mapped safely: slots are in private memory and reach the file
	 * when they are sealed. If the process is killed, the tail of each stream is lost. */
	TRACE_TAIL_AT_RISK = 1,
	/* The process ended through exit(). Absent: it was killed, is alive, or called _exit. */
	TRACE_ENDED = 2,
	TRACE_FORKED = 4, /* of a child made by fork that did not exec */
	/* PPERF_SCHEDULE: recording has stopped, or has not begun yet. Changes while the process
	 * runs. */
	TRACE_PAUSED = 8,
};

/* Why something was not recorded. One counter each in header.lost. */
#define TRACE_LOSSES(X)                                                                \
	X(FULL_DISK, "the disk is full or a limit was reached")                        \
	X(FULL_FILE, "the trace reached PPERF_MAX")                                    \
	X(NO_MEMORY, "no memory for a thread's buffers")                               \
	X(BAD_FILE, "the trace's file descriptor was closed or reused by the program") \
	X(REENTERED, "the call came from a signal handler inside pperf")               \
	X(TOO_DEEP, "starts and ends of ranges nested deeper than the limit")          \
	X(CUPTI_DROPPED, "dropped by CUPTI before it reached pperf")                   \
	X(CUPTI_UNREAD, "unreadable records in a CUPTI buffer")                        \
	X(STOPPED, "the ring was stopped, by `pperf ctl` or PPERF_RING_KEEP")          \
	X(SAMPLES, "CPU samples that could not be kept or read")

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

/* The number of skipped events and their cost, of which pperf's own code measures a sample. Threads
 * add to it now and then, and whenever a recording window begins or ends. */
struct trace_skip {
	uint64_t events, measured, ticks; /* ticks: of the measured ones */
};

/* The three clocks at one time. The raw clock is read before and after the other two; `raw` is the
 * mean of both readings. */
struct trace_clock {
	uint64_t raw, monotonic_ns, realtime_ns;
};

/* The ring of PPERF_RING, and what is no longer in it. */
struct trace_ring {
	uint64_t bytes; /* its largest size; 0: there is no ring */
	/* What was overwritten: chunks, events of the program in them, bytes in the file. */
	uint64_t chunks, events, chunk_bytes;
	/* Nothing with a stamp above this one was overwritten. 0: nothing was overwritten. */
	uint64_t last_overwritten;
	uint64_t window_stamp; /* where the window begins; 0: with the trace */
	uint64_t unlisted;     /* records that had no place in a table of what is held */
};

/* Requests of `pperf ctl`, which maps the header and writes to it. The process looks at each seal,
 * and in the thread that flushes CUPTI's buffers. */
enum trace_command {
	TRACE_COMMAND_STATUS = 1, /* answers; nothing else */
	TRACE_COMMAND_STOP = 2,   /* overwrite nothing from now on: later events are lost */
	TRACE_COMMAND_START = 3,  /* go on; the window begins now */
	TRACE_COMMAND_MARK = 4,   /* record a MARK with `text` */
};
enum trace_command_result {
	TRACE_COMMAND_DONE = 0,
	TRACE_COMMAND_UNKNOWN = 1,
	TRACE_COMMAND_NO_RING = 2, /* STOP and START need PPERF_RING */
	TRACE_COMMAND_FAILED = 3,  /* no space for the record */
};
/* Why the ring stopped. */
enum trace_stop { TRACE_STOP_NONE, TRACE_STOP_COMMAND, TRACE_STOP_OOM, TRACE_STOP_SLOW_STEP };
struct trace_control {
	/* Set by the tool: `request` last, to a number that is neither the last request nor 0. */
	uint32_t request, command;
	/* Set by the process: `answer` last, to the number of the request. */
	uint32_t answer, result;
	uint32_t tool; /* pid of the tool that makes a request; 0: none */
	/* stop: enum trace_stop; stopped: 1 when nothing is overwritten any more, a while later */
	uint32_t stop, stopped;
	uint32_t text_bytes;  /* MARK */
	uint64_t stop_stamp;  /* of the command, or of what triggered the stop */
	uint64_t stop_value;  /* SLOW_STEP: ticks of the step; OOM: bytes that were requested */
	uint64_t stop_median; /* SLOW_STEP: median of the steps before */
	/* In a copy made by `pperf ctl PID snapshot`: payloads that begin later are not complete,
	 * and not part of the trace. 0: no copy. */
	uint64_t copied_at;
	char text[120];
};

struct trace_header {
	char magic[8];
	uint32_t version, endian;
	uint32_t header_bytes; /* offset of the first block */
	uint32_t clock_kind;   /* enum trace_clock_kind */
	uint8_t build_id[20];  /* of the libpperf.so that wrote the file; zeros if it has none */
	uint8_t reserved[20];
	uint64_t run_id; /* PPERF_RUN: shared by a program and its children */
	uint32_t pid, parent_pid;
	uint32_t flags; /* enum trace_header_flag; changes while the process runs */
	uint32_t page_bytes;
	uint64_t limit_bytes; /* PPERF_MAX */
	struct trace_clock start;
	struct trace_clock last; /* set at the end, with TRACE_ENDED; zeros before */
	uint64_t end;            /* next free byte of the file */
	uint64_t streams;        /* ids given out so far */
	uint64_t lost[16];       /* events, by enum trace_loss */
	uint64_t steps;          /* PPERF_SCHEDULE: steps that have ended so far, recorded or not */
	struct trace_skip skipped[8]; /* by enum trace_skip_kind */
	struct trace_ring ring;
	struct trace_control control;
};
static_assert(offsetof(struct trace_header, run_id) == 64, "part of the file format");
static_assert(
	offsetof(struct trace_header, steps) == 288 && offsetof(struct trace_header, ring) == 488 &&
		offsetof(struct trace_header, control) == 544 && sizeof(struct trace_header) == 728,
	"part of the file format");
static_assert(TRACE_SKIP_KINDS <= 8, "part of the file format");
static_assert(TRACE_LOSS_KINDS <= 16, "part of the file format");

enum trace_block_type {
	TRACE_SLOT = 1,
	TRACE_CHUNK = 2,
	TRACE_DICT = 3,
	TRACE_TOTALS = 4,
	TRACE_UNUSED = 5
};

struct trace_block {
	uint32_t magic;
	uint32_t type;
	uint64_t extent;   /* bytes in the file, head included */
	uint32_t head_crc; /* CRC-32C of the 16 bytes before it */
	uint32_t stream;   /* from here on, the head of a slot changes */
	uint32_t sequence; /* number of the payload in its stream, from 0 */
	uint32_t tid;      /* the kernel's thread id */
	uint64_t base_stamp;
	uint64_t lost; /* events of this stream that were not recorded, so far */
	uint32_t crc;
	/* Of a ring, else 0. A chunk: the program's events in it. A slot: records that restate. */
	uint32_t reserved;
	uint64_t used; /* payload bytes, stored last with release */
};
static_assert(sizeof(struct trace_block) == 64, "part of the file format");

/* A row of TRACE_TOTALS: the instances of a node that have ended on the threads that use the row.
 * These instances are in no stream. Records of what happened in them name the node, and recorded
 * ranges inside them have it as their parent. `ticks` includes the time of ranges inside, counted
 * or recorded. */
struct trace_total {
	uint32_t node, reserved;
	uint64_t calls, ticks, longest; /* ticks: sum of all; longest: of one call */
};
static_assert(sizeof(struct trace_total) == 32, "part of the file format");

/* The kinds of struct records: X(kind, struct, timed, text). The number of a kind is its position
 * in the list, so new kinds go to the end, and none is removed. `timed` is 1 if a uint64_t stamp
 * follows the head, as in struct trace_timed; nothing checks that. The kind is then called TIMED.
 * `text` says what the record is, as doc/pperf.format.5 does. */
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
	X(DEVICE_RATES, trace_device_rates, 0, "maximum clock rates of a GPU")                     \
	X(MIXED_STACK, trace_mixed_stack, 0,                                                       \
		"gives an id to a native call stack with its Python line")                         \
	X(DEVICE_MEMORY, trace_device_memory, 1, "how much memory of a GPU is free")               \
	X(MAPPING, trace_mapping, 1, "addresses are reserved, freed, mapped or unmapped")          \
	/* in a trace made of another tool's file */                                               \
	X(CPU_SAMPLE, trace_cpu_sample, 1, "the function that a thread was sampled in")            \
	/* of NCCL */                                                                              \
	X(COMMUNICATOR, trace_communicator, 0, "gives an id to a communicator of NCCL")            \
	X(COLLECTIVE, trace_collective, 1, "a call of NCCL that communicates began or returned")   \
	/* of PPERF_SAMPLE */                                                                      \
	X(FRAME, trace_frame, 0, "gives an id to a native frame and its callers")                  \
	X(PYTHON_FRAME, trace_python_node, 0, "gives an id to a Python frame and its callers")     \
	X(SAMPLE, trace_sample, 1, "where a thread was when it was sampled")                       \
	X(SAMPLED_THREAD, trace_sampled_thread, 1, "the clocks of a thread that is sampled")       \
	X(SAMPLE_PYTHON, trace_sample_python, 1, "the Python frames of earlier samples")

enum trace_kind {
	TRACE_NONE,
#define X(kind, type, timed, text) TRACE_##kind,
	TRACE_RECORDS(X)
#undef X
		TRACE_KINDS
};

/* Begins every struct record. */
struct trace_head {
	uint16_t size; /* bytes of the whole record, a multiple of 8 */
	uint8_t kind;  /* enum trace_kind */
	uint8_t flags; /* their meaning depends on the kind */
	/* Node of the innermost range that was open; in a dictionary record 0. Kinds that use it
	 * differently say so at their struct. */
	uint32_t node;
};
/* Begins every record of a TIMED kind. */
struct trace_timed {
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

/* The attributes that NVTX gave. In a PUSH, head.node is the new node. */
enum trace_range_flag {
	TRACE_HAS_COLOR = 1,
	TRACE_HAS_CATEGORY = 2,
	TRACE_HAS_TEXT = 4,
	TRACE_EXTENDED_PAYLOAD = 8
};
struct trace_range {
	struct trace_head head;
	uint64_t stamp;
	uint64_t id;      /* START: unique in the process, not 0; else 0 */
	uint64_t payload; /* the 8 bytes of NVTX's union; narrower types are in the low bytes */
	/* 0 with TRACE_HAS_TEXT: the text was given no id, and its text_bytes bytes follow the
	 * struct. */
	uint32_t name;
	uint32_t domain;
	uint32_t category;
	uint32_t color;        /* ARGB */
	uint32_t payload_type; /* NVTX's: 0 none, 1 u64, 2 i64, 3 double, 4 u32, 5 i32, 6 float */
	uint32_t text_bytes;
};
struct trace_pop_at {
	struct trace_head head; /* node: the range that closes */
	uint64_t stamp;
	/* Among the recorded open ranges; 0 is the outermost. UINT32_MAX: no range was open. */
	uint32_t index;
	uint32_t reserved;
};
struct trace_end {
	struct trace_head head;
	uint64_t stamp, id;
};

/* The meaning of `object`. */
enum trace_object_type {
	TRACE_OBJECT_CATEGORY = 1, /* a number, in a domain */
	TRACE_OBJECT_THREAD,       /* a kernel thread id */
	TRACE_OBJECT_CU_DEVICE,
	TRACE_OBJECT_CU_CONTEXT,
	TRACE_OBJECT_CU_STREAM,
	TRACE_OBJECT_CU_EVENT,
	TRACE_OBJECT_CUDA_DEVICE,
	TRACE_OBJECT_CUDA_STREAM,
	TRACE_OBJECT_CUDA_EVENT,
	/* nvtxDomainResourceCreate. object: our handle; subtype: NVTX's identifier type; other: the
	 * identifier. */
	TRACE_OBJECT_RESOURCE,
	TRACE_OBJECT_SYNC,      /* nvtxDomainSyncUserCreate */
	TRACE_OBJECT_DESTROYED, /* a resource, lock or domain handle that was destroyed; name 0 */
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
	/* reason: enum trace_loss */
	uint32_t reason, reserved;
};
/* A record of time that the thread spent in pperf. SEAL: a full slot was written to the file.
 * FLUSH: CUPTI's buffers were flushed, and its records written to the trace.
 *
 * A call record is written after the call has returned. If the slot is full then, it is sealed
 * first. The SEAL record precedes the call record, and its interval is between the begin and the
 * stamp of the call. Readers subtract the SEAL's duration from the call's. */
enum trace_self_what {
	TRACE_SELF_SEAL = 1,
	TRACE_SELF_START,
	TRACE_SELF_FLUSH,
	TRACE_SELF_STACK,
	TRACE_SELF_SAMPLE, /* DEVICE_MEMORY records from NVML */
	/* The sampler of PPERF_SAMPLE. `duration` is the CPU time that its thread has used since
	 * its last such record. It is not an interval of any other thread. */
	TRACE_SELF_SAMPLER
};
struct trace_self {
	struct trace_head head;
	uint64_t stamp, duration; /* stamp: end of the interval */
	/* peak_kib: FLUSH: the process's peak resident memory in KiB, also of what it was before it
	 * executed its program (ru_maxrss); 0: unknown */
	uint32_t what, peak_kib;
};

/* A profiler interrupted the thread and saw which function it was in: the innermost one of the call
 * chain. Only importers write it. head.flags: TRACE_SAMPLE_IN_CALL if the thread was in a call that
 * has a record. */
#define TRACE_SAMPLE_IN_CALL 1u
struct trace_cpu_sample {
	struct trace_head head;
	uint64_t stamp;
	/* Name ids. function: 0 if the profiler could not resolve it. module: name of the
	 * loaded object's file, without its folder; 0: not known. */
	uint32_t function, module;
};

/* PPERF_SAMPLE. A thread of pperf, the sampler, looks at the other threads of the process. It
 * records what each is doing, without interrupting them. Its records are in a stream of its own,
 * and name the sampled threads by their kernel thread ids. The report gives a sample to the ranges
 * that were open on that thread at its moment.
 *
 * A frame id identifies a frame together with all its callers: frames form a tree. FRAME and
 * PYTHON_FRAME are dictionary records and share one sequence of ids, counted from 1. A parent
 * precedes its children. */
struct trace_frame {
	struct trace_head head;
	uint32_t frame, parent; /* parent: the caller's id; 0: `frame` is the outermost */
	uint64_t address;       /* where the frame continues when its callee returns */
};
struct trace_python_frame {
	/* function, file: name ids. The function's name is qualified if Python knows a qualified
	 * one. */
	uint32_t function, file, line, reserved;
};
struct trace_python_node {
	struct trace_head head;
	uint32_t frame, parent;
	/* at.reserved: 1 if C code entered the interpreter for this frame (an entry frame). */
	struct trace_python_frame at;
};

/* What the thread did in the time that a sample represents. */
enum trace_sample_state {
	TRACE_SAMPLE_ON_CPU = 1,
	TRACE_SAMPLE_WAITS_FOR_CORE = 2, /* it could run, but no core was free */
	TRACE_SAMPLE_BLOCKED = 3,        /* it waited in the kernel: sleeping, a lock, I/O */
	/* It was in the kernel on behalf of the thread (page faults, system calls), which the
	 * source of samples cannot see. The time is what the thread's CPU clock has beyond its
	 * samples. */
	TRACE_SAMPLE_KERNEL = 4,
};
/* head.flags of a SAMPLE. */
enum trace_sample_flag {
	TRACE_SAMPLE_HAS_NODE = 1,   /* head.node was read with the sample; else it is 0 */
	TRACE_SAMPLE_GUESSED = 2,    /* frames above code without unwind rules were searched */
	TRACE_SAMPLE_CUT = 4,        /* the native stack does not reach the thread's first frame */
	TRACE_SAMPLE_MOVED = 8,      /* `python` has the outer frames only: the inner ones moved */
	TRACE_SAMPLE_NO_PYTHON = 16, /* the thread runs Python, but its frames were not readable */
	TRACE_SAMPLE_UNEQUAL = 32,   /* `python` was left out: it contradicted the native frames */
};
#define TRACE_SAMPLE_WEIGHT_NS 16u /* unit of `weight`, in nanoseconds */
struct trace_sample {
	struct trace_head head;
	uint64_t stamp; /* when the record was written */
	uint64_t pc;    /* address of the innermost instruction; 0: not known */
	uint32_t ago;   /* ticks before `stamp` at which the sample was taken */
	uint32_t tid;   /* the sampled thread */
	/* The time that the sample represents, in units of TRACE_SAMPLE_WEIGHT_NS. ON_CPU, KERNEL:
	 * CPU time. The weights of these states add up to the CPU time of the thread. */
	uint32_t weight;
	uint32_t state;  /* enum trace_sample_state */
	uint32_t native; /* id of the frame that called the one of `pc`; 0: not known */
	uint32_t python; /* id of the innermost Python frame; 0: none */
};
/* The clocks of a sampled thread, since the thread began. The sampler writes one such record when
 * it first samples a thread, one when it looks at the thread last, and some between. head.flags:
 * TRACE_SAMPLED_THREAD_RESUMED if no sample represents the CPU time since the record before: it is
 * the thread's first record, or recording was paused in between. The samples between two records
 * represent the difference of their `cpu_ns`. */
#define TRACE_SAMPLED_THREAD_RESUMED 1u
struct trace_sampled_thread {
	struct trace_head head;
	uint64_t stamp;
	uint64_t cpu_ns;    /* time on a core */
	uint64_t waited_ns; /* time in which it could run, but no core was free; 0: not known */
	uint32_t tid;
	uint32_t name; /* name id of the thread's name in the kernel (comm) */
};
/* The sampled thread itself read its Python frames, when an operator ended. They hold for each
 * SAMPLE of this thread between `since` and `stamp`: a thread that is inside an operator does not
 * change its Python frames. A SAMPLE with more frames, and without TRACE_SAMPLE_MOVED, keeps its
 * own: the operator called Python. The record is in the thread's own stream. */
struct trace_sample_python {
	/* head.node: the innermost of the ranges that were open from `since` to `stamp` */
	struct trace_head head;
	uint64_t stamp, since;
	uint32_t python, reserved; /* python: id of the innermost Python frame */
};

/* A recording window of PPERF_SCHEDULE begins or ends. The record is in the stream of the thread
 * that ended the step.
 *
 *   BEGINS  From here on everything is recorded.
 *   STEP    The next step begins.
 *   ENDS    From here on only these are recorded: ends of open ranges, calls that allocate or
 *           free memory, TENSOR_OOM, and names.
 *
 * With PPERF_RING:
 *
 *   RESTATES  The records up to RESTATED restate what holds then.
 *   RESTATED  The end of it.
 *
 * Without a ring: if the first WINDOW of a trace is not BEGINS, recording began with the process
 * and step 0. If a trace has none, TRACE_PAUSED says whether anything was recorded. */
enum trace_window_edge {
	TRACE_WINDOW_BEGINS = 1,
	TRACE_WINDOW_ENDS = 2,
	TRACE_WINDOW_STEP = 3,
	TRACE_WINDOW_RESTATES = 4,
	TRACE_WINDOW_RESTATED = 5
};
struct trace_window {
	struct trace_head head;
	uint64_t stamp;
	/* The program's step, from 0. BEGINS, STEP: the step that begins. ENDS: the step after the
	 * last recorded one. */
	uint64_t step;
	uint32_t edge, cycle; /* edge: enum trace_window_edge; cycle: of the schedule, from 0 */
	/* warmup (BEGINS): number of steps from `step` on that are left out of averages. */
	uint32_t warmup, reserved;
};

/* A CUPTI handover: from BEGINS to ENDS, another client used CUPTI (PPERF_CUPTI=yield). What the
 * GPU did is then unknown. Calls are recorded only if pperf interposes the symbol of the function
 * (preload/cuda/real.h), and have no correlation id. Without ENDS, the handover lasts to the end of
 * the trace. */
enum trace_away_edge { TRACE_AWAY_BEGINS = 1, TRACE_AWAY_ENDS = 2 };
struct trace_away {
	struct trace_head head;
	uint64_t stamp;
	uint64_t realtime_ns;    /* the time of `stamp` on the clock of GPU records */
	uint32_t edge, reserved; /* edge: enum trace_away_edge */
};

/* Begins every call record. head.flags is of enum trace_call_flag. */
enum trace_call_flag {
	/* The CUDA stream was being captured: a graph node was made, and nothing ran. */
	TRACE_CALL_CAPTURED = 1,
	TRACE_CALL_DRIVER = 2,   /* `result` is a CUresult, not a cudaError_t */
	TRACE_CALL_CALLBACK = 4, /* seen by a CUPTI callback, not by an interposed symbol */
	/* Why a call has no GPU record. In imported traces only, by inference. */
	TRACE_CALL_EMPTY = 8,       /* a copy or memset of 0 bytes: nothing ran */
	TRACE_CALL_BEFORE_GPU = 16, /* made before the GPU's activity was recorded */
	TRACE_CALL_AFTER_GPU = 32,  /* its GPU work had not finished when the recording ended */
	TRACE_CALL_PROFILED = 64,   /* CUPTI's range profiler measured it, without a GPU record */
};
/* The flags of calls for which no GPU record is expected. */
#define TRACE_CALL_NO_RECORD                                                                     \
	(TRACE_CALL_CAPTURED | TRACE_CALL_EMPTY | TRACE_CALL_BEFORE_GPU | TRACE_CALL_AFTER_GPU | \
		TRACE_CALL_PROFILED)
struct trace_call {
	struct trace_head head;
	uint64_t stamp;       /* when the call returned */
	uint64_t duration;    /* ticks inside the call */
	uint64_t correlation; /* of the outermost call; 0 without CUPTI */
	uint32_t result;      /* 0: success */
	uint32_t api;         /* name of the function */
	uint32_t stack;
	/* The thread's current device. UINT32_MAX: unknown (launches without CUPTI). */
	uint32_t device;
};
struct trace_launch {
	struct trace_call call;
	uint64_t stream; /* handle */
	/* What the caller named: host stub address, cudaKernel_t or CUfunction. */
	uint64_t function;
	uint32_t grid[3], block[3]; /* zeros: unknown */
	uint32_t shared_bytes;      /* dynamic shared memory */
	/* The kernel's mangled name. 0: not known to this record. */
	uint32_t name;
};
struct trace_graph_launch {
	struct trace_call call;
	uint64_t stream, exec;      /* handles */
	uint32_t exec_id, reserved; /* exec_id: CUPTI's id of the executable graph; 0: unknown */
};
/* The kind of memory, as in CUPTI's CUpti_ActivityMemoryKind. */
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
/* The direction of a copy, as in CUPTI's CUpti_ActivityMemcpyKind. */
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
	uint64_t stream, bytes;    /* bytes: 0 if unknown */
	uint32_t copy_kind, value; /* value: of a SET; COPY: 0 */
};
/* What the CPU or a CUDA stream waited for. 0: another call, which only imported traces have,
 * because they keep all calls of their files. */
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
	/* Host memory: mapped into the device's address space, and `address` is its address there.
	 * Device memory: physical memory made by cuMemCreate. `address` is its handle, and it
	 * belongs to no context. */
	TRACE_MEMORY_MAPPED = 4,
	/* FREE with address 0: the context on call.device has ended, and all its memory is freed.
	 * Memory made by cuMemCreate stays. */
	TRACE_MEMORY_ALL = 8,
	/* ALLOC by PyTorch's caching allocator: `stream` is the CUDA stream whose tensors the
	 * memory is for. The allocation itself is not ordered by it. */
	TRACE_MEMORY_FOR_STREAM = 16,
	/* With FOR_STREAM: that stream is being captured, so the memory is for a private pool. */
	TRACE_MEMORY_FOR_CAPTURE = 32,
};
/* The bits of `flags` from this one on are the last 16 bits of the context's id. ALLOC: 0 if
 * unknown. With TRACE_MEMORY_ALL: 0 means any context. */
#define TRACE_MEMORY_CONTEXT_SHIFT 16
/* An ALLOC takes effect when the call returned. A FREE takes effect when the call began (stamp -
 * duration), because from then on another thread may be given the address. */
struct trace_memory {
	struct trace_call call;
	uint64_t address; /* 0: failed, or freeing NULL */
	/* The requested size. FREE: 0, because the reader finds the ALLOC by its address. */
	uint64_t bytes;
	uint64_t stream;
	uint32_t memory_kind, flags;
};
/* What a call of CUDA's virtual memory management did, and the members that it sets. Others are 0.
 *
 *   RESERVE    cuMemAddressReserve: the range `address`, `bytes` is reserved
 *   UNRESERVE  cuMemAddressFree: it is free again
 *   MAP        cuMemMap: the first `bytes` of the memory `handle` are at `address`
 *   UNMAP      cuMemUnmap: all mappings in the range `address`, `bytes` end
 *   RETAIN     cuMemRetainAllocationHandle: one more reference to `handle`, which is mapped at
 *              `address`
 *   IMPORT     cuMemImportFromShareableHandle: `handle` refers to memory that another handle,
 *              perhaps of another process, was created for
 *
 * `handle` is the `address` of the ALLOC of cuMemCreate (TRACE_MEMORY_MAPPED). The FREE of
 * cuMemRelease drops one reference. The memory is free when no reference and no mapping is left.
 * RESERVE, MAP, RETAIN and IMPORT take effect when the call returned, UNRESERVE and UNMAP when it
 * began. */
enum trace_mapping_action {
	TRACE_MAPPING_RESERVE = 1,
	TRACE_MAPPING_UNRESERVE,
	TRACE_MAPPING_MAP,
	TRACE_MAPPING_UNMAP,
	TRACE_MAPPING_RETAIN,
	TRACE_MAPPING_IMPORT,
};
struct trace_mapping {
	struct trace_call call;
	uint64_t address, bytes, handle;
	uint32_t action, reserved; /* action: enum trace_mapping_action */
};
/* Replaces a call record that repeats the one at `of`. That one is in the same payload, before this
 * one, and is no AGAIN. The repeated record has these differences:
 *  - head.node, stamp and duration are those of this record,
 *  - `correlation` is added to its own,
 *  - the 8-byte words that follow this struct, up to its size, replace the first ones after struct
 *    trace_call, such as the address of an allocation.
 *
 * head.flags is 0. */
struct trace_again {
	struct trace_head head;
	uint64_t stamp;
	uint32_t duration;
	/* 8-byte words from the payload's beginning to that LAUNCH, GRAPH_LAUNCH, COPY, SET, SYNC,
	 * ALLOC, FREE or MAPPING. */
	uint16_t of;
	uint16_t correlation;
};

/* A block of PyTorch's caching allocator, as reported under the allocator's lock. `allocated` is
 * what the tensors of the device hold afterwards, `reserved` what the allocator holds. */
struct trace_tensor {
	struct trace_head head;
	uint64_t stamp, address; /* address: 0 in a TENSOR_OOM */
	int64_t bytes;           /* below 0: freed */
	uint64_t allocated, reserved;
	uint32_t device, stack;
};
/* head.flags of a TENSOR: no block was allocated or freed, and bytes and address are 0. The record
 * restates the totals, because earlier records may have been skipped. */
#define TRACE_TENSOR_LEVEL 1u
/* Replaces a TENSOR whose totals follow from the device's last record of these kinds, by stamps and
 * of any thread. The writer has compared them: `allocated` is that record's plus the bytes of this
 * one, and `reserved` is the same. Among any TRACE_TENSOR_RUN consecutive records of a device, at
 * least one is a TENSOR with all members.
 *
 * head.flags is the device, with TRACE_TENSOR_FREED if the bytes are below 0. If there is a stack,
 * the record is a struct trace_tensor_next_stack, by its size. */
struct trace_tensor_next {
	struct trace_head head;
	uint64_t stamp;
	/* Low bits: the address / TRACE_TENSOR_UNIT. From bit TRACE_TENSOR_BYTES_BIT on: the bytes,
	 * without their sign, / TRACE_TENSOR_UNIT. */
	uint64_t block;
};
struct trace_tensor_next_stack {
	struct trace_tensor_next next;
	uint32_t stack, reserved;
};
/* Flag and limits of struct trace_tensor_next. */
#define TRACE_TENSOR_FREED 0x80u
#define TRACE_TENSOR_DEVICES 0x80u
#define TRACE_TENSOR_UNIT 512u
#define TRACE_TENSOR_BYTES_BIT 40
#define TRACE_TENSOR_RUN 64u

/* How much memory of a GPU was free, as CUDA's driver or NVML reported it. Other processes,
 * contexts and libraries hold what is neither free nor allocated by records.
 *
 *   FIRST    after the first allocation on the GPU: the thread's record before this one
 *   FAILED   after one that failed for want of memory: the thread's record before this one
 *   QUERY    the program called cudaMemGetInfo
 *   NVML     sampled by pperf's own thread; `process_bytes` is what this process uses, with its
 *            contexts, or 0 if that is not known
 */
enum trace_memory_sample {
	TRACE_SAMPLE_FIRST = 0,
	TRACE_SAMPLE_FAILED = 1,
	TRACE_SAMPLE_QUERY = 2,
	TRACE_SAMPLE_NVML = 3
};
struct trace_device_memory {
	struct trace_head head;
	uint64_t stamp, free_bytes, total_bytes;
	uint64_t process_bytes;
	uint32_t device;
	uint32_t reason; /* enum trace_memory_sample */
};

/* A CUPTI buffer. In the records that follow it, start_ns and end_ns are CLOCK_REALTIME. Both are 0
 * if CUPTI could not time the operation. */
struct trace_gpu_batch {
	struct trace_head head;
	uint64_t stamp;
	uint64_t dropped; /* records that CUPTI dropped since the last batch */
	/* records: number in this buffer. unread: 1 if the buffer ended in a record that could not
	 * be read. */
	uint32_t records, unread;
};
/* head.flags of KERNEL, GPU_COPY and GPU_SET. Only importers set them, because they read all calls
 * of their file before they write a GPU record. */

/* No call in the file launched this operation. */
#define TRACE_GPU_NO_LAUNCH 1u
/* The file had no correlation id for the operation. The importer set it to that of a call inside
 * the range that was open at the launch. */
#define TRACE_GPU_ENCLOSED 2u
/* Begins KERNEL, GPU_COPY and GPU_SET. */
struct trace_gpu {
	struct trace_head head;
	/* graph_node: 0 if not part of a graph, or if it is a whole one */
	uint64_t start_ns, end_ns, correlation, graph_node;
	/* CUPTI's ids. graph: id of the executable graph. */
	uint32_t device, context, stream, graph;
};
/* Name of the KERNEL that is the launch of a CUDA graph, recorded as a whole: from the first start
 * to the last end of its nodes. It has no launch configuration, and no graph_node. */
#define TRACE_WHOLE_GRAPH "whole graph"
struct trace_kernel {
	struct trace_gpu gpu;
	uint32_t grid[3], block[3];
	uint32_t static_shared_bytes, dynamic_shared_bytes;
	uint32_t registers;   /* per thread */
	uint32_t local_bytes; /* per thread */
	uint32_t name;        /* mangled */
	/* Shared memory configured on the SM while the kernel ran. 0: unknown. */
	uint32_t shared_carveout_bytes;
};
struct trace_gpu_copy {
	struct trace_gpu gpu;
	uint64_t bytes;
	uint32_t copy_kind;                /* 0 in a GPU_SET */
	uint32_t source_kind, target_kind; /* enum trace_memory_kind */
	uint32_t other_device;             /* PTOP: the destination; else UINT32_MAX */
	uint32_t value, async;
};
struct trace_gpu_sync {
	struct trace_head head;
	uint64_t start_ns, end_ns, correlation;
	/* type: enum trace_sync_type */
	uint32_t type, context, stream, event;
};
struct trace_gpu_memory {
	struct trace_head head;
	uint64_t time_ns, correlation, address, bytes;
	uint32_t operation; /* 1: allocation, 2: release */
	uint32_t memory_kind, device, stream;
};
struct trace_api {
	struct trace_head head;
	uint64_t start_ns, end_ns, correlation;
	uint32_t domain, cbid, tid, result; /* domain: 1 driver, 2 runtime */
	uint32_t name, reserved;
};
/* CUPTI's numbers (CUpti_ActivityOverheadKind). */
enum trace_overhead_type {
	TRACE_OVERHEAD_UNKNOWN =
		0, /* imported: the profiler's, of a kind that CUPTI does not have */
	TRACE_OVERHEAD_DRIVER_COMPILER = 1,
	TRACE_OVERHEAD_BUFFER_FLUSH = 1 << 16,
	TRACE_OVERHEAD_INSTRUMENTATION = 2 << 16,
	TRACE_OVERHEAD_RESOURCE = 3 << 16,
	TRACE_OVERHEAD_MODULE_LOADING = 4 << 16,
	TRACE_OVERHEAD_LAZY_LOADING = 5 << 16,
	TRACE_OVERHEAD_COMMAND_BUFFER_FULL = 6 << 16,
	TRACE_OVERHEAD_BUFFER_REQUEST = 7 << 16,
	TRACE_OVERHEAD_UVM_INIT = 8 << 16
};
/* What the profiler or the driver was busy with. The driver compiles and loads kernels at their
 * first use, and waits for room in a command buffer, without a profiler, too. */
struct trace_overhead {
	struct trace_head head;
	uint64_t start_ns, end_ns, correlation;
	uint32_t type, tid; /* type: enum trace_overhead_type */
};
static inline bool trace_overhead_is_first_use(uint32_t type)
{
	return type == TRACE_OVERHEAD_DRIVER_COMPILER || type == TRACE_OVERHEAD_MODULE_LOADING ||
	       type == TRACE_OVERHEAD_LAZY_LOADING;
}
static inline bool trace_overhead_is_driver(uint32_t type)
{
	return trace_overhead_is_first_use(type) || type == TRACE_OVERHEAD_COMMAND_BUFFER_FULL;
}

/* A function of NCCL that communicates. It launches its kernel on the calling thread before it
 * returns: in the time from stamp - duration to stamp. Inside a group (ncclGroupStart) nothing is
 * launched before the outermost group ends. The record with TRACE_NCCL_GROUP is that end: the
 * `calls` records before it in this stream with TRACE_COLLECTIVE_GROUPED are its calls, and their
 * kernels were launched in its time. NCCL makes one kernel of several calls for one communicator
 * and CUDA stream. */
enum trace_nccl_operation {
	TRACE_NCCL_GROUP = 1, /* ncclGroupEnd: only stamp, duration, result and calls are set */
	TRACE_NCCL_ALL_REDUCE,
	TRACE_NCCL_ALL_GATHER,
	TRACE_NCCL_REDUCE_SCATTER,
	TRACE_NCCL_BROADCAST,
	TRACE_NCCL_REDUCE,
	TRACE_NCCL_ALL_TO_ALL,
	TRACE_NCCL_GATHER,
	TRACE_NCCL_SCATTER,
	TRACE_NCCL_SEND,
	TRACE_NCCL_RECV,
	TRACE_NCCL_INIT, /* ncclCommInitRank*: `communicator` is being made */
	TRACE_NCCL_SPLIT /* ncclCommSplit: of `communicator` */
};
/* head.flags of a COLLECTIVE.
 *
 * | flag    | meaning                                                                          |
 * |---------|----------------------------------------------------------------------------------|
 * | GROUPED | a call in a group; see TRACE_NCCL_GROUP                                          |
 * | BEGIN   | the call begins at `stamp`. Another record follows when it returns. Without that |
 * |         | the thread was in the call at the end. Calls in a group have no such record.     |
 */
#define TRACE_COLLECTIVE_GROUPED 1u
#define TRACE_COLLECTIVE_BEGIN 2u
struct trace_collective {
	struct trace_head head;
	uint64_t stamp;    /* when the call returned; BEGIN: when it began */
	uint64_t duration; /* ticks inside the call */
	/* The count that the call was given times the size of an element. So of ALL_GATHER,
	 * REDUCE_SCATTER, ALL_TO_ALL, GATHER and SCATTER the part of one rank. */
	uint64_t bytes;
	uint64_t sequence;     /* of this process's calls on the communicator, from 0 */
	uint64_t stream;       /* handle */
	uint32_t communicator; /* id of a COMMUNICATOR; 0: unknown */
	uint32_t operation;    /* enum trace_nccl_operation */
	uint32_t data_type;    /* number of the type in NCCL: 7 is float32 */
	/* SEND, RECV: the other rank. BROADCAST, REDUCE, GATHER, SCATTER: the root. Else
	 * UINT32_MAX. */
	uint32_t peer;
	uint32_t result; /* what the call returned; 0: success */
	uint32_t calls;  /* GROUP: how many COLLECTIVE records are in it */
};

/* Dictionary records. Texts and arrays follow the struct (META, NAME, MODULE, STACK,
 * PYTHON_STACK). Texts have no terminator, and zeros pad them to the record's size. */

/* A later META of the same key replaces an earlier one. */
struct trace_meta {
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
	struct trace_head head; /* node: the id of this node */
	/* name: 0 for texts without an id, which each PUSH carries inline. */
	uint32_t parent, name;
	uint32_t domain, kind; /* kind: enum trace_node_kind */
	/* 0, or the node that this one serves:
	 *  - BACKWARD: the operator that created the function.
	 *  - OP called by autograd's engine: the operator of the function that the engine runs.
	 *  - OP called by a BACKWARD that computes the forward pass again (activation
	 *    checkpointing): the operator of that function.
	 *  - MODULE called by a BACKWARD: the last call of that module in a forward pass. */
	uint32_t link;
	/* A name id or 0. MODULE: its class. OP: up to five fields, separated by tabs:
	 *  - the sizes of its inputs, `[[64, 128], []]`,
	 *  - what is known of their types, `["float","Scalar"]`,
	 *  - the values of inputs that are no tensors, `["","2"]`,
	 *  - the FLOPs that the recorder computed,
	 *  - of record_param_comms: the collective, the bytes of a rank in and out, and the number
	 *    of ranks (0: unknown), `allreduce 4096 4096 8`.
	 */
	uint32_t detail;
};
struct trace_counter {
	struct trace_head head;
	uint32_t counter, name, domain, unit; /* unit: a name id or 0 */
};
struct trace_module {
	struct trace_head head;
	/* start, end: of the mapped segments. An address minus bias is the address in the file. */
	uint64_t start, end, bias;
	uint32_t path_bytes, build_id_bytes; /* path, then build id, follow */
};
struct trace_stack {
	struct trace_head head;
	/* Then `frames` return addresses (uint64_t) follow, innermost first. */
	uint32_t stack, frames;
};
/* STACK, PYTHON_STACK and MIXED_STACK share one sequence of ids, so that the `stack` of a record
 * may be of any of these kinds. */
struct trace_python_stack {
	struct trace_head head;
	/* Then `frames` structs trace_python_frame follow, innermost first. */
	uint32_t stack, frames;
};
/* A call that has both: the id of a STACK, and of a PYTHON_STACK. Both precede this record. */
struct trace_mixed_stack {
	struct trace_head head;
	uint32_t stack, native, python, reserved;
};
/* The line of the program's code where head.node was first entered. */
struct trace_source {
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
/* As the driver reports them. 0: not reported. */
struct trace_device_rates {
	struct trace_head head;
	uint32_t device; /* as in DEVICE */
	uint32_t clock_khz, memory_clock_khz, bus_bits;
};
/* A CUDA stream, or a context if stream == UINT32_MAX. null_stream: of a context, its default
 * stream; UINT32_MAX: unknown. */
struct trace_context {
	struct trace_head head;
	uint32_t context, device, stream, null_stream;
	uint64_t handle;
	uint32_t priority, reserved;
};
/* head.node: the range in which the graph node was created. original: the graph node it is a clone
 * of, or 0. A clone may have a second record without its original, before or after this one. */
struct trace_graph_node {
	struct trace_head head;
	uint64_t graph_node, original;
	uint32_t type, graph; /* type: CUgraphNodeType */
};
struct trace_graph_exec {
	struct trace_head head; /* node: the range in which the graph was instantiated */
	uint64_t handle;
	uint32_t exec_id, graph;
};

/* A communicator of NCCL as this process has it. `key` is the same on all its ranks, and differs
 * between communicators. It is a hash of the unique id or, of one that was split off, of the
 * parent's key, the number of the split and the color. 0: unknown. */
struct trace_communicator {
	struct trace_head head;
	uint64_t key;
	uint32_t communicator; /* from 1 */
	uint32_t ranks, rank;
	uint32_t device; /* CUDA's ordinal; UINT32_MAX: unknown */
	uint32_t name;   /* of its configuration, a name id; 0: none */
	uint32_t reserved;
};

#define X(kind, type, timed, text)                                                              \
	static_assert(                                                                          \
		sizeof(struct type) % 8 == 0, "structs of the file format are 8-byte aligned"); \
	static_assert(!(timed) || sizeof(struct type) >= sizeof(struct trace_timed), "a stamp");
TRACE_RECORDS(X)
#undef X
static_assert(offsetof(struct trace_timed, stamp) == 8, "part of the file format");
static_assert(TRACE_KINDS <= 256 && sizeof(struct trace_head) == 8, "part of the file format");
static_assert(sizeof(struct trace_range) == 56 && sizeof(struct trace_call) == 48,
	"part of the file format");
static_assert(sizeof(struct trace_launch) == 96 && sizeof(struct trace_memory) == 80,
	"part of the file format");
static_assert(sizeof(struct trace_again) == 24 && sizeof(struct trace_window) == 40,
	"part of the file format");
static_assert(sizeof(struct trace_tensor) == 56 && sizeof(struct trace_tensor_next) == 24 &&
		      sizeof(struct trace_tensor_next_stack) == 32 &&
		      sizeof(struct trace_mixed_stack) == 24 &&
		      sizeof(struct trace_device_memory) == 48,
	"part of the file format");
static_assert(sizeof(struct trace_gpu) == 56 && sizeof(struct trace_kernel) == 104,
	"part of the file format");
static_assert(sizeof(struct trace_gpu_copy) == 88 && sizeof(struct trace_device) == 88,
	"part of the file format");
static_assert(
	sizeof(struct trace_mapping) == sizeof(struct trace_memory), "part of the file format");
static_assert(sizeof(struct trace_collective) == 72 && sizeof(struct trace_communicator) == 40,
	"part of the file format");
static_assert(sizeof(struct trace_frame) == 24 && sizeof(struct trace_python_node) == 32 &&
		      sizeof(struct trace_sample) == 48 &&
		      sizeof(struct trace_sampled_thread) == 40 &&
		      sizeof(struct trace_sample_python) == 32,
	"part of the file format");
static_assert(sizeof(struct trace_open) == 16 && sizeof(struct trace_clock_record) == 32,
	"part of the file format");

/* Continues the CRC-32C (Castagnoli, reflected, initial and final ~0) `crc` over `count` bytes.
 * Begin with 0. This is part of the format, so it is defined here. */
static inline uint32_t trace_crc32c_portable(uint32_t crc, const void *bytes, size_t count)
{
	static const uint32_t nibble[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
		0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6,
		0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
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

/* What glibc 2.33 and later found out about the processor when the process began. The function is
 * weak, so that the code also works with an older glibc. */
struct trace_cpu_leaf {
	uint32_t cpuid_bits[4], usable_bits[4];
};
extern const struct trace_cpu_leaf *__x86_get_cpuid_feature_leaf(unsigned leaf)
	__attribute__((weak));

/* Returns the processor's features (ecx of CPUID leaf 1). The cpuid instruction leaves a virtual
 * machine each time: 1 us, nested 30. It is therefore not executed if glibc has the answer.
 * __builtin_cpu_supports is not used, because it adds a constructor that executes cpuid five times
 * in every process. */
static inline uint32_t trace_cpu_features(void)
{
	/* 0: not known yet. Threads that test it concurrently get the same result. */
	static uint32_t cached_features;
	uint32_t a = 1, b, c = __atomic_load_n(&cached_features, __ATOMIC_RELAXED), d;

	if (__x86_get_cpuid_feature_leaf)
		return __x86_get_cpuid_feature_leaf(0)->usable_bits[2];
	if (!c) {
		__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		__atomic_store_n(&cached_features, c | 1, __ATOMIC_RELAXED);
	}
	return c;
}

/* CRC-32C of three adjacent lanes at once. The crc instruction takes three cycles, and one can
 * begin in every cycle. To append n bits to a lane, its crc is multiplied by the polynomial x^n
 * (carry-less). The constants are x^(n - 33), because the product and the crc instruction together
 * multiply by another x^33. */
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

/* Returns the crc of a sealed block: of `block` with its crc taken as 0, then of the payload, which
 * follows it in memory. */
static inline uint32_t trace_block_crc(const struct trace_block *block, const void *payload)
{
	struct trace_block plain = *block;
	uint32_t crc;

	plain.crc = 0;
	crc = trace_crc32c(0, &plain.stream, sizeof plain - offsetof(struct trace_block, stream));
	return trace_crc32c(crc, payload, (size_t)plain.used);
}

#endif
