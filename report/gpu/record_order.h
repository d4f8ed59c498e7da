/* SPDX-License-Identifier: MIT
 * gpu_order.h: the records that CUPTI delivered, in the order in which the GPU did the work. They arrive long
 * afterwards and in no strict order, so a trace is read once to sort them; GPU_ORDER_HELD at a time in memory, the
 * rest in a temporary file that has no name.
 */
#ifndef PPERF_REPORT_GPU_RECORD_ORDER_H
#define PPERF_REPORT_GPU_RECORD_ORDER_H

#include "report/trace/trace_reader.h"

#define RECORD_ORDER_IN_MEMORY 32768u

struct gpu_entry {
	uint64_t time_ns; /* when it began; what CUPTI could not time: when it was delivered */
	uint64_t duration_ns;
	uint64_t arrival;     /* 0, 1, ... as the trace has them */
	uint32_t stream, tid; /* that delivered it */
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

/* Reads the trace from where it stands to its end, then rewinds it. Never NULL. Ends the program with a sentence if
 * there is no room. */
struct record_order *record_order_read(struct trace_reader *reader);
void record_order_free(struct record_order *order);

/* The next one by time, then stream, then arrival; NULL: no more. Lives until gpu_order_next. */
const struct gpu_entry *record_order_peek(const struct record_order *order);
void record_order_next(struct record_order *order);

#endif
