/* SPDX-License-Identifier: MIT
 * Lists when it is unknown whether a device was busy. Such time is neither busy nor idle.
 *
 * Two things make it unknown, while no GPU operation of the trace runs:
 *
 * - CUPTI was handed over to another client (cupti_handover.h).
 * - The interval is between two operations of one CUDA graph launch, more than GRAPH_HOLE_NS
 *   apart, and the operations name no graph nodes. A GPU goes from one node to the next within
 *   microseconds. So nodes ran in between that are not in the trace. Profilers leave out nodes if
 *   the graph was instantiated before they started.
 *
 * Memory: 48 bytes per interval; once a graph was launched, UNKNOWN_TIME_GAPS gaps and
 * UNKNOWN_TIME_GRAPHS launches. Gaps and launches that are older are forgotten: their time stays
 * idle. Not thread-safe.
 */
#ifndef PPERF_REPORT_GPU_UNKNOWN_TIME_H
#define PPERF_REPORT_GPU_UNKNOWN_TIME_H

#include "report/gpu/cupti_handover.h"

/* Time between two nodes of a graph that ran one after the other. Measured: below 5 us, with copies
 * between them up to 14 us. */
#define GRAPH_HOLE_NS 20000u
#define UNKNOWN_TIME_GAPS 65536u
#define UNKNOWN_TIME_GRAPHS 65536u /* a power of two */

struct unknown_span {
	/* by time axis; before_ns: total length of all earlier spans */
	uint64_t begin_ns[HANDOVER_AXES], end_ns[HANDOVER_AXES], before_ns[HANDOVER_AXES];
};

/* The unknown time of one device. A zeroed one is empty. */
struct unknown_time {
	struct unknown_span *spans; /* by time, after unknown_time_end */
	size_t count, room;
	struct unknown_gap *gaps; /* the latest, by time; without what is in `spans` */
	size_t gap_count, gap_room;
	struct graph_progress *graphs; /* by the low bits of the correlation id; NULL: none yet */
	uint64_t handover_ns;          /* the part that is due to handovers */
};

/* Adds an interval without any operation. Intervals come in the order of time, in
 * CLOCK_REALTIME. `handovers` may be NULL. `has_graphs`: a graph of unknown nodes was launched. */
void unknown_time_add_gap(struct unknown_time *unknown, uint64_t from_ns, uint64_t to_ns,
	const struct handover_list *handovers, bool has_graphs);
/* Adds an operation of a CUDA graph of unknown nodes, in the order of starts, and after the gap
 * that it ended. `launch`: the low bits of the launch's correlation id. */
void unknown_time_add_node(
	struct unknown_time *unknown, uint32_t launch, uint64_t start_ns, uint64_t end_ns);
/* Orders the spans. All gaps and operations were added. */
void unknown_time_end(struct unknown_time *unknown, struct trace_reader *reader);
void unknown_time_free(struct unknown_time *unknown);

/* Returns how much of the time from `from_ns` to `to_ns` is unknown. After unknown_time_end. */
uint64_t unknown_time_within(const struct unknown_time *unknown, enum handover_axis axis,
	uint64_t from_ns, uint64_t to_ns);

#endif
