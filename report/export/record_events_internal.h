/* SPDX-License-Identifier: MIT
 * Shares the state of record_events.c and record_collect.c, and nothing for other files.
 */
#ifndef PPERF_REPORT_EXPORT_RECORD_EVENTS_INTERNAL_H
#define PPERF_REPORT_EXPORT_RECORD_EVENTS_INTERNAL_H

#include "report/base/external_sort.h"
#include "report/export/record_events.h"

/* The innermost range around a launch that is neither an operator nor a module. */
struct record_annotation {
	uint64_t number; /* 0: none */
	uint32_t name;
	bool own_name;
};

/* A call that may have issued GPU work. */
struct record_launch {
	struct host_event call;
	struct record_annotation annotation;
};

/* The begin or the end of a start/end range. */
struct record_async {
	uint64_t id, at_ns, number;
	uint32_t tid, node, name;
	bool own_name, ends;
};

/* The device of a context. */
struct record_context {
	uint32_t context, device;
};

struct record_events {
	const struct process *process;
	struct trace_reader *reader;
	struct string_table *texts; /* texts without an id, and kernel names */
	uint32_t own_names;
	uint32_t *kernels; /* by name of the trace: text + 1; 0: not made yet */
	size_t kernel_room;
	int64_t device;               /* -1: all */
	uint64_t begin_ns, finish_ns; /* what is outside is left out */
	struct external_sort *hosts, *gpus;
	struct external_sort *annotations; /* gpu_annotation, in the order of their begins */
	struct external_sort *pieces;      /* of annotations, while they are collected */
	struct gpu_annotation piece;       /* that grows now; range_number 0: none */
	struct gpu_annotation current_annotation, *open_annotations;
	size_t open_count, open_room;
	struct record_lane *lanes;
	size_t lane_count, lane_room;
	struct host_event current_host;
	struct gpu_event current; /* with its lane */
	uint64_t untimed;
};

/* Makes one pass over the trace, which fills `hosts` and `gpus`. */
void record_collect(struct record_events *events);

/* Begins to collect annotations, adds an operation to that of its launch, and joins the pieces of
 * each when there are no more. */
void annotations_begin(struct record_events *events);
void annotations_add(struct record_events *events, const struct gpu_event *gpu,
	const struct record_annotation *annotation);
void annotations_join(struct record_events *events);

/* Whether an interval is to be exported. It is then cut at the edges of what is. */
bool record_events_cut(const struct record_events *events, uint64_t *begin_ns, uint64_t *end_ns);

#endif
