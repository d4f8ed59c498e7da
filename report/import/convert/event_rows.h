/* SPDX-License-Identifier: MIT
 * Defines the neutral rows that every importer fills: ranges, calls, GPU work, memory events and
 * the like. The field names follow torch.profiler's (Kineto's) traces.
 *
 * Texts. A member that is called a text, and every `name`, is the id of a string in `texts`, made
 * by string_table_intern. 0 is the empty text.
 *
 * Row numbers. `thread` and `process` are indexes of rows, counted from 0. The row must exist when
 * the reader returns. `device`, `stream`, `context` and `graph` are CUPTI's numbers, not rows.
 *
 * Times. `start`, `time` and `duration` are nanoseconds, computed from the file's digits as
 * integers, never through a double. All times of a file count from the same zero (base_ns). A
 * start must be between -INT64_MAX / 4 and INT64_MAX / 4, a duration at most INT64_MAX / 4. The
 * reader checks this, because the conversion does not. It leaves out other events and counts them
 * in `unreadable`.
 *
 * Rows may be in any order. Members that the file does not have are 0, except `sequence`. Memory:
 * about 50 to 110 bytes per event that is used, each text once, and nothing for other events.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_EVENT_ROWS_H
#define PPERF_REPORT_IMPORT_CONVERT_EVENT_ROWS_H

#include "report/base/alloc.h"
#include "report/text/json_scanner.h"
#include "report/text/string_table.h"

/* A thread, by the file's names of its process and of itself. The names are decimal numbers, or
 * others such as `stream 7`. */
struct imported_thread {
	uint32_t pid, tid; /* texts */
	uint32_t process;  /* 0 if there are no process rows */
};

#define IMPORTED_NO_SEQUENCE INT64_MIN
/* Duration of a range whose end the reader has not found. Before it returns, the reader replaces it
 * by the time until the latest event of the file, and counts the range in `unended`. */
#define IMPORTED_NOT_ENDED UINT64_MAX

/* An operator, an annotation, an NVTX range or a module call. Nesting follows from the times of
 * the ranges of a thread. */
struct imported_range {
	int64_t start;
	uint64_t duration;
	uint64_t external; /* Kineto's id of this operator (`External id`); 0: none */
	int64_t sequence;  /* autograd's sequence number, or IMPORTED_NO_SEQUENCE */
	uint32_t name, thread;
	/* logical number of the thread that ran the forward operator; 0: not a backward function */
	uint32_t forward;
	/* A text: inputs of an operator, in the form of trace_node.detail. 0: not
	 * known. */
	uint32_t shapes;
	/* A text: the Python stack in the form `FILE(LINE): FUNCTION;...`, innermost first. 0:
	 * none. */
	uint32_t stack;
	/* TRACE_NODE_RANGE, _MODULE, _OP or _OPTIMIZER of enum trace_node_kind. The conversion
	 * finds the backward functions among the operators. */
	uint16_t kind;
	uint16_t domain; /* NVTX domain: its row + 1; 0: the default domain */
};

/* A call of a Python function that is not a module. Without an end in the file, its duration is
 * INT64_MAX / 4. */
struct imported_frame {
	int64_t start;
	uint64_t duration;
	uint32_t name, thread; /* name: `FILE(LINE): FUNCTION`, or another text */
};

/* An NVTX event that is not a nested range: a mark, the start or the end of a start/end range, or
 * a thread's name. */
struct imported_instant {
	int64_t time;
	uint64_t id; /* TRACE_START and its TRACE_END: the same number, not 0; others: 0 */
	uint32_t name, thread;
	/* kind: TRACE_MARK, TRACE_START, TRACE_END or TRACE_OBJECT. domain: as in
	 * imported_range. */
	uint16_t kind, domain;
};

struct imported_domain {
	uint32_t name; /* 0: not in the file */
};

/* A call of the CUDA runtime or driver. It belongs to the innermost range that is open on its
 * thread at `start`. */
struct imported_call {
	int64_t start;
	/* correlation: equal in the GPU work that the call issued. external: that of the operator
	 * that made the call. 0: not known. */
	uint64_t duration, correlation, external;
	/* name: the function, without a version suffix such as `_v3020`. It decides the kind of
	 * record (call_words in cuda_calls.c), unless GPU work has the correlation id. */
	uint32_t name, thread;
	uint32_t result; /* 0: success, or not in the file */
	uint32_t flags;  /* enum trace_call_flag, set by the conversion */
	uint32_t kernel; /* name of the launched kernel, a text; 0: not in the file */
	uint32_t stack;  /* a text, as in imported_range; 0: none */
};

enum imported_gpu_kind { IMPORTED_KERNEL, IMPORTED_COPY, IMPORTED_MEMSET };

/* A GPU operation. It belongs to the range of the call that has its correlation id. Without such a
 * call it is shown as unattributed. */
struct imported_gpu {
	int64_t start;
	/* correlation: 0 if there is none. graph_node: 0 if not part of a graph. bytes: of a copy
	 * or memset. */
	uint64_t duration, correlation, graph_node, bytes;
	/* name: of a kernel, mangled if the file has it so. Of a copy `Memcpy HtoD (Pageable ->
	 * Device)`, of a memset `Memset (Device)`, because direction and memory are parsed from
	 * it (gpu_events.c). */
	uint32_t name, device, stream, context, graph;
	/* grid: blocks. block: threads. registers: per thread. shared, static_shared: bytes per
	 * block. shared is the total, or the dynamic part if static_shared is set. */
	uint32_t grid[3], block[3], registers, shared, static_shared;
	uint64_t external; /* `external` of the operator that launched it; 0: not known */
	uint32_t process;  /* 0 if there are no process rows */
	uint16_t kind;     /* enum imported_gpu_kind */
	bool enclosed;     /* set by the conversion: the call was found by `external` only */
};

/* A wait as the profiler recorded it. `name` decides its type: it contains "Wait" (a CUDA stream
 * waits for an event), else "Event", else "Stream", else it is a wait for the context. */
struct imported_sync {
	int64_t start;
	uint64_t duration, correlation;
	/* Correlation id of the call that recorded the awaited event in waited_stream. 0: not
	 * known. */
	uint64_t record;
	uint32_t name, stream, context, event, waited_stream, process;
};

enum imported_memory_kind { IMPORTED_TENSOR, IMPORTED_SEGMENT, IMPORTED_OOM };

/* An allocation (bytes > 0) or a free (bytes < 0) of PyTorch's allocator: of a tensor, or of a
 * segment of device memory. OOM: a request that failed. */
struct imported_memory {
	int64_t time, bytes;
	/* address: 0 if it is not in the file. allocated, reserved: bytes of the device after this
	 * event. */
	uint64_t address, allocated, reserved;
	uint32_t thread, device, type; /* type: 0 is the CPU, 1 CUDA, others other vendors */
	uint32_t stack;                /* a text, as in imported_range; 0: none */
	/* A text: the name of a node inside the innermost open range, to which the event belongs.
	 * 0: it belongs to the range itself. */
	uint32_t place;
	uint8_t kind;    /* enum imported_memory_kind */
	bool has_totals; /* false: the file has neither `allocated` nor `reserved` */
};

/* A CPU sample: the innermost function of a thread's call chain. */
struct imported_sample {
	int64_t time;
	/* Texts; 0: not known. function: 0 also if it was not resolved. module: the file's name
	 * without its folder. */
	uint32_t function, module, thread;
};

/* One end of a flow arrow from an operator to its backward function. */
struct imported_flow {
	uint64_t id; /* equal in both ends */
	int64_t time;
	uint32_t thread;
	bool finish; /* false: the end at the operator */
};

/* An interval in which the profiler itself was busy, or the driver loaded a kernel. */
struct imported_overhead {
	int64_t start;
	uint64_t duration;
	uint32_t process;
	uint32_t name; /* a text: says which (overhead_type) */
};

/* A process, in files that assign events to processes. Two rows or more: each process becomes a
 * trace. Else the file becomes one trace, whatever pids its threads have. */
struct imported_process {
	uint32_t pid; /* a text */
};

/* A GPU. 0 in a member: not known. `id` is the number that GPU rows have in `device`. The members
 * per block and per SM (streaming multiprocessor) are numbers, or bytes of shared memory. */
struct imported_device {
	uint64_t id, memory_bytes, major, minor, multiprocessors, warp_threads, threads_per_sm,
		threads_per_block, registers_per_sm, registers_per_block, shared_per_sm,
		shared_per_block;
	uint32_t name;
	uint8_t uuid[16]; /* zeros: not known */
};

/* A property of the file, which becomes a META record (keys: collector/trace_format.h). The key
 * `process.PID` is an exception: its value becomes the key "command" in the trace of process
 * PID. */
struct imported_metadata {
	uint32_t key, value; /* texts */
};

#define IMPORTED_OTHERS "of other categories" /* used if there are too many categories */

/* The number of events of a category that are not imported. One row per category. The user reads
 * `EVENTS CATEGORY`, such as `12 names of NVTX categories`. */
struct imported_skip {
	uint32_t category; /* a text */
	uint64_t events;
	bool is_marker; /* the tool's own, of which a user misses nothing */
};

/* X(gpu, gpus) means that struct event_rows has an array `gpus` of struct imported_gpu, with
 * gpu_count rows. */
#define EVENT_ROWS(X)          \
	X(process, processes)  \
	X(thread, threads)     \
	X(range, ranges)       \
	X(frame, frames)       \
	X(instant, instants)   \
	X(domain, domains)     \
	X(call, calls)         \
	X(gpu, gpus)           \
	X(sync, syncs)         \
	X(memory, memories)    \
	X(sample, samples)     \
	X(flow, flows)         \
	X(overhead, overheads) \
	X(device, devices)     \
	X(metadata, metadata)  \
	X(skip, skips)

/* What a reader returns. The reader sets it to zero first, with a new string table in `texts`. */
struct event_rows {
	struct string_table *texts;
#define X(type, rows)                 \
	struct imported_##type *rows; \
	size_t type##_count, type##_room;
	EVENT_ROWS(X)
#undef X
	/* Unix time in ns of the file's zero. 0: not known, or the times are Unix times. */
	int64_t base_ns;
	bool counts_from_start; /* that zero is the start of the recording, and the tool shows it */
	uint64_t events;        /* number of all events in the file, imported or not */
	uint64_t unreadable;    /* events left out because a time is unreadable or out of range */
	uint64_t nonstandard_values; /* Kineto's reader only: values that JSON does not define */
	uint64_t unended;            /* ranges without an end */
	/* Process of these rows, a text. A reader leaves 0, which means the process of the thread
	 * with most ranges and calls. */
	uint32_t pid;
	bool is_kineto;      /* Kineto's reader only: the file has what only Kineto writes */
	bool truncated;      /* the file ends early or is damaged; the rows are what precedes it */
	uint64_t problem_at; /* byte offset of the damage, if problem_table is empty */
	/* What is wrong there, such as `ends in the middle`. Set if `truncated` is. A literal, or a
	 * string of `texts`. */
	const char *problem;
	/* Name and version of the tool that wrote the file, which become META `import.format`.
	 * Empty: torch.profiler. */
	char producer[96];
	char problem_table[128]; /* table with the damage; empty: the file is not a database */
	/* Graph launches that were recorded as one operation, from the first start to the last
	 * end. */
	uint64_t unsplit_graphs;
	/* The captures of the graphs that this file launches, from another file. NULL: none. Not
	 * freed with the rows. */
	const struct graph_captures *captures;
};

/* Adds an uninitialised row and returns a pointer to it, valid until the next row of its type is
 * added. Ends the program if there is no memory.
 *
 *	*EVENT_ROWS_ADD(imported, gpu, gpus) = (struct imported_gpu){ .start = start, ... };
 */
#define EVENT_ROWS_ADD(imported, type, rows)                                                   \
	(array_grow(&(imported)->rows, &(imported)->type##_room, (imported)->type##_count + 1, \
		 sizeof *(imported)->rows),                                                    \
		&(imported)->rows[(imported)->type##_count++])

/* Frees the rows and the texts, but not `imported` itself. */
void event_rows_free(struct event_rows *imported);

/* Returns a text as a number. Returns 0 if it is not one, or above UINT32_MAX. For `stream 7`,
 * returns 7. */
uint32_t event_rows_number(const struct event_rows *imported, uint32_t text);

#endif
