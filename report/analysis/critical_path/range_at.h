/* SPDX-License-Identifier: MIT
 * path_places.h: in which place a thread was at a moment: the innermost range that was open there. Asked in the order of
 * time, over all threads.
 *
 * One more fold of the trace, whose ranges are sorted outside of memory (sorter.h); in memory are those that are open.
 * Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_RANGE_AT_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_RANGE_AT_H

#include "report/run/process.h"

struct range_lookup;

struct range_lookup *range_lookup_read(struct process *process);
void range_lookup_free(struct range_lookup *lookup);

/* Tells, piece by piece, in which node the thread was from begin to end; 0: in none. */
void range_lookup_within(struct range_lookup *lookup, uint32_t tid, uint64_t begin_ns,
	uint64_t end_ns,
	void (*visit)(void *context, uint32_t node, uint64_t from_ns, uint64_t to_ns),
	void *context);

#endif
