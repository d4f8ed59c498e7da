/* SPDX-License-Identifier: MIT
 * kineto.h: what a trace of torch.profiler (Kineto's Chrome JSON, plain or gzip) holds, as rows of events, of all its
 * eras: `Operator` and `Kernel` of 2021, `cpu_op` and `kernel` since.
 *
 * Times are integer nanoseconds, made of the digits in the file; durations are read by themselves, so an end is the sum
 * of two rounded numbers only where the file has more than three decimals of a microsecond. Memory: some 50 to 110
 * bytes an event that is of use, each text once; nothing for the others.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_EVENT_ROWS_H
#define PPERF_REPORT_IMPORT_CONVERT_EVENT_ROWS_H

#include "report/base/alloc.h"
#include "report/text/json_scanner.h"
#include "report/text/string_table.h"

struct gzip_file;

/* A thread, by what the file calls its process and itself: numbers, or texts such as `stream 7`. */
struct imported_thread {
	uint32_t pid, tid; /* texts */
	uint32_t process;  /* its row; 0 where there are none */
};

#define IMPORTED_NO_SEQUENCE INT64_MIN
#define IMPORTED_NOT_ENDED UINT64_MAX /* the duration of what has begun, and not ended */

/* An operator, an annotation, a module. */
struct imported_range {
	int64_t start;
	uint64_t duration;
	uint64_t external; /* its own id; 0: none */
	int64_t sequence;  /* of autograd */
	uint32_t name, thread;
	uint32_t forward; /* the logical thread that it runs backward for; 0: it does not */
	uint32_t shapes;  /* an operator's inputs, as struct trace_node's `detail`; 0: not known */
	uint32_t
		stack; /* Python's, as files of 2021 and 2022 have it: `FILE(LINE): FUNCTION;...`, innermost first; 0: none */
	uint16_t kind; /* enum trace_node_kind */
	uint16_t domain; /* of NVTX: its row + 1; 0: the default one */
};

/* A call of a Python function that is no module. */
struct imported_frame {
	int64_t start;
	uint64_t duration;
	uint32_t name, thread; /* `FILE(LINE): FUNCTION`, or what else Kineto says of it */
};

/* NVTX besides nested ranges: marks, the ends of start/end ranges, what a thread is called. */
struct imported_instant {
	int64_t time;
	uint64_t id; /* START, END: the same, not 0 */
	uint32_t name, thread;
	uint16_t kind, domain; /* TRACE_MARK, _START, _END, _OBJECT; as above */
};

struct imported_domain {
	uint32_t name; /* 0: the file does not say */
};

/* A call to the runtime or the driver. */
struct imported_call {
	int64_t start;
	uint64_t duration, correlation, external;
	uint32_t name, thread;
};

enum imported_gpu_kind { IMPORTED_KERNEL, IMPORTED_COPY, IMPORTED_MEMSET };

/* What a GPU did. */
struct imported_gpu {
	int64_t start;
	uint64_t duration, correlation, graph_node, bytes;
	uint32_t name, device, stream, context, graph;
	uint32_t grid[3], block[3], registers, shared,
		static_shared; /* shared: all of it, or what static_shared does not have */
	uint64_t external;     /* of what was open at its launch; 0: not said */
	uint32_t process;
	uint16_t kind; /* enum kineto_work */
	bool enclosed; /* its call is known by `external` only */
};

/* The profiler's own view of a wait. */
struct imported_sync {
	int64_t start;
	uint64_t duration, correlation;
	uint64_t
		record; /* of an event: the correlation of the call that recorded it, into that stream; 0: not said */
	uint32_t name, stream, context, event, waited_stream, process;
};

/* PyTorch's allocator gave memory, or took it back. */
struct imported_memory {
	int64_t time, bytes;
	uint64_t address, allocated, reserved;
	uint32_t thread, device, type; /* type: 0 the CPU, 1 CUDA, others of other makers */
	bool has_totals;               /* false: the file says neither allocated nor reserved */
};

/* One end of an arrow from an operator to what runs backward for it. */
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

/* Of files that tell apart what belongs to whom. */
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

/* A fact of the file: key and value as texts. */
struct imported_metadata {
	uint32_t key, value;
	uint64_t min_value; /* of a number, the least that was met */
};

#define IMPORTED_OTHERS "of other categories" /* where there are very many */

/* Events that nothing is made of, by category. */
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
	int64_t base_ns;     /* baseTimeNanoseconds; 0: none */
	uint64_t events;     /* all that the file has */
	uint64_t unreadable; /* without a time or a name that can be read; they are left out */
	uint64_t nonstandard_values; /* values that JSON does not have */
	uint64_t unended;            /* B without E */
	uint32_t pid;                /* whose rows these are, a text; 0: of who has most of them */
	bool is_kineto;              /* something in it is Kineto's alone */
	bool truncated;              /* it ends, or breaks, in the middle */
	uint64_t problem_at;         /* the byte */
	const char *problem;         /* what is wrong there */
	char producer[96];           /* what wrote the file, where that is not torch.profiler */
	char problem_table[128];     /* the part that is, where it is no byte of JSON */
	uint64_t
		unsplit_graphs; /* pieces of work that are graphs, from the first start to the last end */
};

/* A row more; what is in it is to be set. */
#define EVENT_ROWS_ADD(imported, type, rows)                                                   \
	(array_grow(&(imported)->rows, &(imported)->type##_room, (imported)->type##_count + 1, \
		 sizeof *(imported)->rows),                                                    \
		&(imported)->rows[(imported)->type##_count++])

/* Reads all of it. False: this is no JSON with trace events; `problem` says what it is instead. */
bool kineto_read(struct event_rows *imported, struct gzip_file *file);
void event_rows_free(struct event_rows *imported);

/* A text as a number, 0 if it is none; of `stream 7` the 7. */
uint32_t event_rows_number(const struct event_rows *imported, uint32_t text);

#endif
