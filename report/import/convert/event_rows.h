/* SPDX-License-Identifier: MIT
 * Defines the neutral rows that every importer fills: ranges, calls, GPU work, memory events and
 * the like. The field names follow torch.profiler's (Kineto's) traces.
 *
 * Times are integer nanoseconds, computed from the file's digits. Start and duration are read
 * separately. Their sum has a rounding error only if the file has more than three decimals of a
 * microsecond. Memory: about 50 to 110 bytes per event that is used, each text once, and nothing
 * for other events.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_EVENT_ROWS_H
#define PPERF_REPORT_IMPORT_CONVERT_EVENT_ROWS_H

#include "report/base/alloc.h"
#include "report/text/json_scanner.h"
#include "report/text/string_table.h"

/* A thread, by the file's names of its process and of itself. These are numbers, or texts such
 * as `stream 7`. */
struct imported_thread {
	uint32_t pid, tid; /* texts */
	uint32_t process;  /* its row; 0 if there are no process rows */
};

#define IMPORTED_NO_SEQUENCE INT64_MIN
#define IMPORTED_NOT_ENDED UINT64_MAX /* duration of a range that has no end */

/* An operator, an annotation or a module call. */
struct imported_range {
	int64_t start;
	uint64_t duration;
	uint64_t external; /* the range's own External id; 0: none */
	int64_t sequence;  /* autograd's sequence number */
	uint32_t name, thread;
	/* logical number of the thread that ran the forward operator; 0: not a backward function */
	uint32_t forward;
	/* inputs of an operator, in the form of `detail` of struct trace_node; 0: not known */
	uint32_t shapes;
	/* Python stack as in files of 2021 and 2022: `FILE(LINE): FUNCTION;...`, innermost
	 * first. 0: none. */
	uint32_t stack;
	uint16_t kind;   /* enum trace_node_kind */
	uint16_t domain; /* NVTX domain: its row + 1; 0: the default domain */
};

/* A call of a Python function that is not a module. */
struct imported_frame {
	int64_t start;
	uint64_t duration;
	uint32_t name, thread; /* name: `FILE(LINE): FUNCTION`, or another text of Kineto */
};

/* An NVTX event that is not a nested range: a mark, an end of a start/end range, or a thread's
 * name. */
struct imported_instant {
	int64_t time;
	uint64_t id; /* equal in a START and its END, not 0 */
	uint32_t name, thread;
	/* kind: TRACE_MARK, TRACE_START, TRACE_END or TRACE_OBJECT. domain: as in
	 * imported_range. */
	uint16_t kind, domain;
};

struct imported_domain {
	uint32_t name; /* 0: not in the file */
};

/* A call of the CUDA runtime or driver. */
struct imported_call {
	int64_t start;
	uint64_t duration, correlation, external;
	uint32_t name, thread;
	uint32_t result; /* 0: success, or not in the file */
	uint32_t flags;  /* enum trace_call_flag, set by the conversion */
};

enum imported_gpu_kind { IMPORTED_KERNEL, IMPORTED_COPY, IMPORTED_MEMSET };

/* A GPU operation. */
struct imported_gpu {
	int64_t start;
	uint64_t duration, correlation, graph_node, bytes;
	uint32_t name, device, stream, context, graph;
	/* shared: total shared memory, or the dynamic part if static_shared is set. */
	uint32_t grid[3], block[3], registers, shared, static_shared;
	uint64_t external; /* External id of the range that was open at the launch; 0: not known */
	uint32_t process;
	uint16_t kind; /* enum imported_gpu_kind */
	bool enclosed; /* the call was found by `external` only */
};

/* A wait as the profiler recorded it. */
struct imported_sync {
	int64_t start;
	uint64_t duration, correlation;
	/* Correlation id of the call that recorded the awaited event in waited_stream. 0: not
	 * known. */
	uint64_t record;
	uint32_t name, stream, context, event, waited_stream, process;
};

/* An allocation (bytes > 0) or a free (bytes < 0) of PyTorch's allocator. */
struct imported_memory {
	int64_t time, bytes;
	uint64_t address, allocated, reserved;
	uint32_t thread, device, type; /* type: 0 is the CPU, 1 CUDA, others other vendors */
	bool has_totals;               /* false: the file has neither `allocated` nor `reserved` */
};

/* One end of a flow arrow from an operator to its backward function. */
struct imported_flow {
	uint64_t id;
	int64_t time;
	uint32_t thread;
	bool finish;
};

struct imported_overhead {
	int64_t start;
	uint64_t duration;
	uint32_t process;
};

/* A process, in files that assign events to processes. */
struct imported_process {
	uint32_t pid; /* a text */
};

struct imported_device {
	uint64_t id, memory_bytes, major, minor, multiprocessors, warp_threads, threads_per_sm,
		threads_per_block, registers_per_sm, registers_per_block, shared_per_sm,
		shared_per_block;
	uint32_t name;
	uint8_t uuid[16]; /* zeros: not known */
};

/* A property of the file. Key and value are texts. */
struct imported_metadata {
	uint32_t key, value;
	uint64_t min_value; /* for numbers: the smallest one found */
};

#define IMPORTED_OTHERS "of other categories" /* used if there are too many categories */

/* The number of events of a category that are not imported. */
struct imported_skip {
	uint32_t category;
	uint64_t events;
};

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
	X(flow, flows)         \
	X(overhead, overheads) \
	X(device, devices)     \
	X(metadata, metadata)  \
	X(skip, skips)

struct event_rows {
	struct string_table *texts;
#define X(type, rows)                 \
	struct imported_##type *rows; \
	size_t type##_count, type##_room;
	EVENT_ROWS(X)
#undef X
	int64_t base_ns;             /* baseTimeNanoseconds; 0: none */
	uint64_t events;             /* number of all events in the file */
	uint64_t unreadable;         /* events left out because time or name is unreadable */
	uint64_t nonstandard_values; /* values that JSON does not define */
	uint64_t unended;            /* ranges without an end */
	uint32_t pid;                /* process of these rows, a text; 0: the one with most rows */
	bool is_kineto;              /* the file contains something that only Kineto writes */
	bool truncated;              /* the file ends early or is damaged */
	uint64_t problem_at;         /* byte offset of the damage */
	const char *problem;         /* what is wrong there */
	char producer[96];           /* tool that wrote the file; "": torch.profiler */
	char problem_table[128];     /* table with the damage; "": not a database */
	/* Graph launches that were recorded as one operation, from the first start to the last
	 * end. */
	uint64_t unsplit_graphs;
};

/* Adds an uninitialised row and returns a pointer to it. */
#define EVENT_ROWS_ADD(imported, type, rows)                                                   \
	(array_grow(&(imported)->rows, &(imported)->type##_room, (imported)->type##_count + 1, \
		 sizeof *(imported)->rows),                                                    \
		&(imported)->rows[(imported)->type##_count++])

void event_rows_free(struct event_rows *imported);

/* Returns a text as a number, or 0 if it is none. For `stream 7`, returns 7. */
uint32_t event_rows_number(const struct event_rows *imported, uint32_t text);

#endif
