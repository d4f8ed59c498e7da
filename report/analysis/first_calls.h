/* SPDX-License-Identifier: MIT
 *
 * Finds first calls that take much longer than later ones: the first range of each name and of each
 * call path, and the first launch of each kernel. At a first call the driver loads kernels, and
 * libraries make handles and select algorithms.
 *
 * Memory: 40 bytes for each name and each node of the call tree.
 */
#ifndef PPERF_REPORT_ANALYSIS_FIRST_CALLS_H
#define PPERF_REPORT_ANALYSIS_FIRST_CALLS_H

#include "report/run/process.h"

/* A first call is slow if it takes so many times the mean of the later ones. */
#define FIRST_CALL_RATIO 4u
/* Of fewer later calls the mean is no measure. */
#define FIRST_CALL_LATER_MIN 2u

struct first_call {
	uint64_t begin_ns, end_ns; /* since the start of the trace */
	uint64_t later, later_ns;  /* later calls of that name or path: their number and sum */
	uint32_t name;             /* text; 0: not called */
	uint32_t tid;
};

struct first_calls {
	struct first_call *calls; /* slow ones */
	size_t count, room;
};

/* Reads the trace once more. */
struct first_calls first_calls_read(struct process *process);
void first_calls_free(struct first_calls *calls);

/* Returns the mean duration of the later calls. */
uint64_t first_call_later_mean(const struct first_call *call);
/* Returns how much of the interval the call takes more than a later one would. */
uint64_t first_call_excess(const struct first_call *call, uint64_t from_ns, uint64_t to_ns);
/* Returns the shortest slow first call of the thread `tid` without which half of the interval or
 * more would not be: so much longer it is than a later call. NULL: there is none. */
const struct first_call *first_calls_find(
	const struct first_calls *calls, uint32_t tid, uint64_t from_ns, uint64_t to_ns);

#endif
