/* SPDX-License-Identifier: MIT
 * Sorts the GPU records of a trace by the time at which the GPU did the work. CUPTI delivers them
 * much later and in no strict order. One pass over the trace sorts them: RECORD_ORDER_IN_MEMORY at
 * a time in memory, the rest in a temporary file without a name.
 */
#ifndef PPERF_REPORT_GPU_RECORD_ORDER_H
#define PPERF_REPORT_GPU_RECORD_ORDER_H

#include "report/trace/trace_reader.h"

#define RECORD_ORDER_IN_MEMORY 32768u

struct gpu_record {
	uint64_t time_ns; /* start of the work; if CUPTI could not time it, when it was delivered */
	uint64_t duration_ns;
	uint64_t arrival;     /* 0, 1, ... in the order of the trace */
	uint32_t stream, tid; /* stream and thread that delivered it */
	uint32_t kind, node;
	bool timed;
	union {
		struct trace_head head;
		struct trace_kernel kernel;
		struct trace_gpu_copy copy;
		struct trace_gpu_sync sync;
		struct trace_gpu_memory memory;
		struct trace_api api;
		struct trace_overhead overhead;
	} record;
};

struct record_order;

/* Reads the trace from its current position to the end, then rewinds it. Never returns NULL.
 * Exits with a message if the temporary file cannot be written. */
struct record_order *record_order_read(struct trace_reader *reader);
void record_order_free(struct record_order *order);

/* Returns the next record by time, stream and arrival, or NULL at the end. It is valid until
 * record_order_next. */
const struct gpu_record *record_order_peek(const struct record_order *order);
void record_order_next(struct record_order *order);

#endif
