/* SPDX-License-Identifier: MIT
 * Finds the innermost range that was open on a thread at a time. Queries must be in the order of
 * time, over all threads.
 *
 * Makes one more pass over the trace, and sorts its ranges with an external sort (external_sort.h).
 * 65536 of them, a part of each sorted run, and the open ranges are in memory. Not thread-safe.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_RANGE_AT_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_RANGE_AT_H

#include "report/run/process.h"

struct range_lookup;

/* Reads the ranges of the trace. Free the result with range_lookup_free. */
struct range_lookup *range_lookup_read(struct process *process);
void range_lookup_free(struct range_lookup *lookup); /* `lookup` must not be NULL */

/* Calls `visit` for each part of the time from `begin_ns` to `end_ns`, with the node of the
 * innermost range that was open on the thread `tid` or, if none was, on the thread `other`. 0: none
 * was. Successive parts may have the same node. `begin_ns` must not be before the `end_ns` of an
 * earlier call. */
void range_lookup_within(struct range_lookup *lookup, uint32_t tid, uint32_t other,
	uint64_t begin_ns, uint64_t end_ns,
	void (*visit)(void *context, uint32_t node, uint64_t from_ns, uint64_t to_ns),
	void *context);

#endif
