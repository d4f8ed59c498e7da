/* SPDX-License-Identifier: MIT
 * fold_totals.h: what was only counted (reader_counted) in the tree: operators, in a trace of PPERF_OPS=totals. Only
 * the fold includes it.
 *
 * Such a place has calls, a total and the longest, of the whole run, and is in no thread's row of open ranges. So the
 * time of a range that was recorded inside it is not its parent's there, but the counted place's. Times without what
 * is inside are made place by place:
 *
 *	self = total - what was counted or recorded directly in it
 *
 * Totals are ticks, added up, and exact to the mean rate of the clock; where the parts of a place come to more than
 * it has itself, or it has not ended yet, it has what they have. So nothing is negative, and all self times still are
 * the outermost totals.
 *
 * With --steps nothing that was counted is in the tree: nobody knows when it was.
 */
#ifndef PPERF_REPORT_PROFILE_COUNTED_RANGES_H
#define PPERF_REPORT_PROFILE_COUNTED_RANGES_H

#include "report/profile/profile_state.h"

/* In fold_state.counted: NULL if nothing was counted, or it is not wanted. After the tree has its places. */
void counted_ranges_begin(struct profile *profile);
void counted_ranges_free(struct counted_ranges *counted);

/* The range lies directly in a place that is only counted, not in the range around it on its thread. */
bool counted_ranges_contain(const struct profile *profile, const struct open_range *frame);

/* A range has closed that took so long, and so long without those recorded directly in it. */
void counted_ranges_add(struct profile *profile, const struct open_range *frame, uint64_t total_ns,
	uint64_t self_ns);

/* When all ranges have closed: into the tree. */
void counted_ranges_finish(struct profile *profile);

#endif
