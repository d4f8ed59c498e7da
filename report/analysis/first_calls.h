/* SPDX-License-Identifier: MIT
 *
 * Finds first calls that take much longer than later ones: the first ranges of each name and of
 * each call path, and the first launch of each kernel. At a first call the driver loads kernels,
 * and libraries make handles, allocate and select algorithms. The calls after it are first calls,
 * too, as long as each takes so much longer: the second one may have other shapes. Where there are
 * steps to compare, only single launches that take so much longer are found (slow_launches.h).
 *
 * Memory: up to FIRST_CALLS_KEPT times 24 bytes for each name and each node of the call tree of
 * which a range takes FIRST_CALL_NS_MIN.
 */
#ifndef PPERF_REPORT_ANALYSIS_FIRST_CALLS_H
#define PPERF_REPORT_ANALYSIS_FIRST_CALLS_H

#include "report/analysis/shared_pass.h"

/* A first call is slow if it takes so many times the median of the later ones... */
#define FIRST_CALL_RATIO 10u
/* ... and as long as this. */
#define FIRST_CALL_NS_MIN UINT64_C(1000000)
/* Of fewer later calls the median is no measure. */
#define FIRST_CALL_LATER_MIN 2u
/* Of so many calls of a name or a path the median is taken. */
#define FIRST_CALLS_KEPT 32u
/* With as many steps, slow first steps are found by comparing steps, and of first calls only slow
 * launches are read. */
#define STEPS_COMPARED_MIN 3u

struct first_call {
	uint64_t begin_ns, end_ns;       /* since the start of the trace */
	uint64_t later, later_median_ns; /* later calls of that name or path */
	uint32_t name;                   /* text */
	uint32_t tid;
	/* A launch of a kernel with too few later ones: they are the launches of all kernels. */
	bool of_launches;
	bool is_outlier; /* it is no first one */
};

/* When a thread was in slow first calls. */
struct first_call_span {
	uint64_t begin_ns, end_ns;
	uint32_t tid;
};

struct first_calls {
	struct first_call *calls; /* slow ones */
	size_t count, room;
	struct first_call_span *spans; /* by thread and begin; those of a thread do not overlap */
	size_t span_count;
};

/* Returns the slow first calls; with STEPS_COMPARED_MIN steps or more slow launches. The first call
 * for a process reads the trace once more. They belong to the process. */
const struct first_calls *first_calls_of(struct process *process);
/* Reads slow launches in a pass that other analyses share, for later calls of first_calls_of. It
 * may be the pass that makes the profile. Does nothing with fewer steps. */
void first_calls_read_in(struct shared_pass *pass);

/* Returns the first span of the thread that ends after `from_ns` and begins before `to_ns`; NULL:
 * there is none. */
const struct first_call_span *first_calls_span(
	const struct first_calls *calls, uint32_t tid, uint64_t from_ns, uint64_t to_ns);
/* Returns the shortest slow first call of the thread `tid` that has the whole interval; NULL: there
 * is none. */
const struct first_call *first_calls_find(
	const struct first_calls *calls, uint32_t tid, uint64_t from_ns, uint64_t to_ns);

#endif
