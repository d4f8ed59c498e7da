/* SPDX-License-Identifier: MIT
 * Adds ranges that were only counted (reader_counted) to the tree.
 *
 * These are the operators in a trace of PPERF_OPS=totals. Their nodes have calls, a total and a
 * longest duration of the whole run. They are on no range stack. So the time of a range recorded
 * inside such a node is not subtracted from its parent's frame, but from the counted node. Self
 * times are computed node by node:
 *
 *	self = total - what was counted or recorded directly in it
 *
 * Totals are sums of ticks, exact to the mean rate of the clock. If the children of a node have
 * more than the node itself, or if it has not ended yet, its total is raised to theirs. So
 * nothing is negative, and all self times still add up to the outermost totals.
 *
 * With --steps nothing that was counted is in the tree, because it is unknown when it happened.
 */
#ifndef PPERF_REPORT_PROFILE_COUNTED_RANGES_H
#define PPERF_REPORT_PROFILE_COUNTED_RANGES_H

#include "report/profile/profile_state.h"

/* Sets profile_state.counted_ranges, which is NULL if nothing was counted or with --steps.
 * Called when the tree has its nodes. */
void counted_ranges_begin(struct profile *profile);
void counted_ranges_free(struct counted_ranges *counted);

/* Whether the trace node directly around the range `frame` is only counted. */
bool counted_ranges_contain(const struct profile *profile, const struct open_range *frame);

/* A range has closed. `self_ns`: its time without the ranges recorded directly in it. */
void counted_ranges_add(struct profile *profile, const struct open_range *frame, uint64_t total_ns,
	uint64_t self_ns);

/* Adds everything to the tree. Called when all ranges have closed. */
void counted_ranges_finish(struct profile *profile);

#endif
