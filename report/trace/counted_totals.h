/* SPDX-License-Identifier: MIT
 * Reads the rows of TRACE_TOTALS blocks and adds them up by node.
 */
#ifndef PPERF_REPORT_TRACE_COUNTED_TOTALS_H
#define PPERF_REPORT_TRACE_COUNTED_TOTALS_H

#include "report/trace/trace_blocks.h"

struct counted_totals {
	/* one per node; times are in ticks until counted_totals_scale */
	struct trace_counted *nodes;
	uint32_t count;
	size_t room;
};

/* Reads all TRACE_TOTALS blocks into `totals`. Returns false with errno if a read fails. Call it
 * before dictionary_read: a live process adds a node to the dictionary first, then the row that
 * names it. */
bool counted_totals_read(struct counted_totals *totals, const struct trace_blocks *blocks,
	struct read_warnings *warnings);
/* Converts the times to nanoseconds. A row whose node is 0 or not below `node_end` moves to
 * `node_end` and is counted in integrity.unknown_nodes. */
void counted_totals_scale(struct counted_totals *totals, double ticks_per_second, uint32_t node_end,
	struct read_warnings *warnings);
void counted_totals_free(struct counted_totals *totals);

#endif
