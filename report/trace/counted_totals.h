/* SPDX-License-Identifier: MIT
 * trace_totals.h: the rows of TRACE_TOTALS blocks, added up by place.
 */
#ifndef PPERF_REPORT_TRACE_COUNTED_TOTALS_H
#define PPERF_REPORT_TRACE_COUNTED_TOTALS_H

#include "report/trace/trace_blocks.h"

struct counted_totals {
	struct trace_counted *nodes; /* by node, one each; times in ticks until totals_scale */
	uint32_t count;
	size_t room;
};

/* Before the dictionary is read: a process that is alive adds places to it, and then rows of theirs. false: errno. */
bool counted_totals_read(struct counted_totals *totals, const struct trace_blocks *blocks,
	struct read_warnings *warnings);
/* To nanoseconds; what names no place (not below place_end) goes to place_end and is counted. */
void counted_totals_scale(struct counted_totals *totals, double ticks_per_second, uint32_t node_end,
	struct read_warnings *warnings);
void counted_totals_free(struct counted_totals *totals);

#endif
