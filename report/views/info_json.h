/* SPDX-License-Identifier: MIT
 *
 * Writes what the view `info` shows of one trace as a JSON object.
 */
#ifndef PPERF_REPORT_VIEWS_INFO_JSON_H
#define PPERF_REPORT_VIEWS_INFO_JSON_H

#include "report/gpu/cupti_handover.h"
#include "report/text/output.h"
#include "report/trace/trace_reader.h"

/* The recorded time is shown in as many equal parts, to see whether flushes of CUPTI's buffers and
 * the process's memory grow. */
#define INFO_PARTS 3u
struct info_flushes {
	uint64_t count, total_ns;
	uint64_t peak_memory_bytes; /* 0: unknown */
};

/* What the view `info` shows of one trace. */
struct info {
	struct trace_reader *reader;
	/* by event.kind; events that the reader inferred are not counted in `recorded` */
	uint64_t records[EVENT_KINDS];
	uint64_t recorded;
	uint64_t dropped, unread; /* sums over CUPTI's batch records */
	struct trace_integrity integrity;
	struct info_flushes flushes[INFO_PARTS];
	struct handover_list *handovers; /* NULL: CUPTI was never handed over */
};

void info_write_json(struct output *out, const struct info *info);

#endif
