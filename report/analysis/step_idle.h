/* SPDX-License-Identifier: MIT
 *
 * Sums idle time in the steady-state steps: that of the gaps, by cause, and the time of steps
 * before a GPU's first operation and after its last, in which the view `idle` has no gap. The
 * verdict (report/diagnose/run_bound.h) counts the same time, so that a finding and the view that
 * shows it have the same figure.
 *
 *	struct step_idle sums = step_idle_begin(process);
 *
 *	visitors[0] = idle_parts_begin(...);  calls step_idle_add for each part
 *	visitors[1] = step_idle_ends_begin(&sums, process);
 *	activities_visit(activities, visitors, 2);
 */
#ifndef PPERF_REPORT_ANALYSIS_STEP_IDLE_H
#define PPERF_REPORT_ANALYSIS_STEP_IDLE_H

#include "report/analysis/idle_parts.h"

/* An interval for which the host was late and that is as long as this is no launch overhead: the
 * host program did something else. */
#define STEP_IDLE_LONG_NS UINT64_C(1000000)
/* The sum of launch-bound, host-bound and launch latency, for text. */
#define STEP_IDLE_LATE_NAME "late launches"
#define IDLE_HOST_NAME "host-bound" /* the cause of such an interval in the view `idle` */

/* The causes in the view `idle`: those of enum gap_cause, and host-bound. A launch-bound part of
 * STEP_IDLE_LONG_NS or more is host-bound, as in the verdict. */
#define IDLE_HOST GAP_CAUSE_COUNT
#define IDLE_CAUSES (GAP_CAUSE_COUNT + 1u)
unsigned idle_cause(enum gap_cause cause, uint64_t length_ns);
const char *idle_cause_name(unsigned cause);
/* Returns the node of a part of a gap that `work` ended: of the call that blocked the thread, else
 * where the work was launched. */
uint32_t idle_part_node(const struct gap_part *part, const struct activity *work);

struct step_idle {
	const struct process *process;
	/* Steady-state steps. 0: none, they overlap, or --steps selects some: then each sum is over
	 * the whole time between a GPU's first operation and its last. */
	size_t steps;
	uint64_t steps_ns; /* the duration of their windows (struct step) */
	uint64_t ns[GAP_CAUSE_COUNT], gaps[GAP_CAUSE_COUNT];
	/* Before a GPU's first operation and after its last: GAP_DATA, GAP_COMPILATION, GAP_LAUNCH
	 * otherwise. GAP_UNEXPLAINED from the launch of a first operation that waited on the GPU.
	 * GAP_UNKNOWN before a first operation of which the launch is not in the trace: it may have
	 * been launched before the trace began. */
	uint64_t ends_ns[GAP_CAUSE_COUNT];
	/* Of ns[GAP_LAUNCH], ns[GAP_LATENCY] and ends_ns[GAP_LAUNCH]: what is in intervals of
	 * STEP_IDLE_LONG_NS or more, their number, and the longest. */
	uint64_t long_ns, long_gaps, longest_ns;
	uint64_t long_launch_ns, long_launch_gaps; /* of ns[GAP_LAUNCH] alone */
	size_t devices;                            /* set by step_idle_ends_begin's visitor */
	/* Called with each interval that counts and is at a node: that of idle_part_node or, before
	 * a GPU's first operation and after its last, of the range that the host was in. NULL: not
	 * needed. */
	void (*counted)(void *context, enum gap_cause cause, uint32_t node, uint64_t ns);
	void *context;
};

struct step_idle step_idle_begin(const struct process *process);
/* Returns how much of an interval of trace time is in the windows of the steady-state steps, or all
 * of it if there are none. */
uint64_t step_idle_counted(const struct step_idle *sums, uint64_t from_ns, uint64_t to_ns);
/* As step_idle_counted, for many intervals that come nearly by time. `near`: 0 at first; it is kept
 * from call to call. */
uint64_t step_idle_counted_near(
	const struct step_idle *sums, size_t *near, uint64_t from_ns, uint64_t to_ns);
void step_idle_add(struct step_idle *sums, const struct idle_part *idle);
/* Returns what adds the time before a GPU's first operation and after its last to `sums`, at the
 * end of activities_visit. It needs no activities if there are no steps. */
struct activity_visitor step_idle_ends_begin(struct step_idle *sums, struct process *process);

#endif
