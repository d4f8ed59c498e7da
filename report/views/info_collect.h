/* SPDX-License-Identifier: MIT
 * info_collect.h: what `info` shows of one trace: everything counted in one pass.
 */
#ifndef PPERF_REPORT_VIEWS_INFO_COLLECT_H
#define PPERF_REPORT_VIEWS_INFO_COLLECT_H

#include "report/gpu/cupti_handover.h"
#include "report/trace/trace_reader.h"

struct info {
	struct trace_reader *reader;
	uint64_t records
		[EVENT_KINDS]; /* by event.kind; those that the reader inferred are not in `recorded` */
	uint64_t recorded;
	uint64_t dropped, unread; /* as CUPTI's batches say */
	struct trace_integrity integrity;
	struct handover_list *handovers; /* NULL: CUPTI was never another client's */
};

/* Opens and reads. Ends the program with a sentence if the trace cannot be read. */
void info_collect(struct info *info, const char *path);
void info_release(struct info *info);

#endif
