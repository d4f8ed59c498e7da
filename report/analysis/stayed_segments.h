/* SPDX-License-Identifier: MIT
 *
 * Finds the segments of device memory that an instance of a range left behind: they were allocated
 * in it, their tensors were freed by its end, and they stayed reserved and empty to the end of the
 * trace. A pass over the trace of its own.
 */
#ifndef PPERF_REPORT_ANALYSIS_STAYED_SEGMENTS_H
#define PPERF_REPORT_ANALYSIS_STAYED_SEGMENTS_H

#include "report/run/process.h"

struct stayed_segments {
	uint64_t count, bytes;
	/* The most bytes that tensors occupied in each of them, summed. */
	uint64_t tensors;
	/* Of the segments that were allocated in the instance: those with tensors later on, and
	 * those in which no tensor was ever seen. */
	uint64_t used_later, used_later_bytes;
	uint64_t unknown, unknown_bytes;
	/* The innermost range of the program below (or at) `root` in which all of `count` were
	 * allocated and emptied. Without one: the innermost module, else `root`. */
	const struct instance *range;
};

/* `root`: of process_critical. `count` is 0 if there are none. */
struct stayed_segments stayed_segments_find(struct process *process, const struct instance *root);

#endif
