/* SPDX-License-Identifier: MIT
 * info_json.h: one trace's `info` as a JSON object.
 */
#ifndef PPERF_REPORT_VIEWS_INFO_JSON_H
#define PPERF_REPORT_VIEWS_INFO_JSON_H

#include "report/gpu/cupti_handover.h"
#include "report/text/output.h"
#include "report/trace/trace_reader.h"

/* What `info` shows of one trace. */
struct info {
	struct trace_reader *reader;
	uint64_t records
		[EVENT_KINDS]; /* by event.kind; those that the reader inferred are not in `recorded` */
	uint64_t recorded;
	uint64_t dropped, unread; /* as CUPTI's batches say */
	struct trace_integrity integrity;
	struct handover_list *handovers; /* NULL: CUPTI was never another client's */
};

void info_write_json(struct output *out, const struct info *info);

#endif
