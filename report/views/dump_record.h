/* SPDX-License-Identifier: MIT
 * dump_record.h: the records as lines: which keys each kind has.
 */
#ifndef PPERF_REPORT_VIEWS_DUMP_RECORD_H
#define PPERF_REPORT_VIEWS_DUMP_RECORD_H

#include "report/views/dump_line.h"
#include "report/gpu/record_order.h"

/* Adds what is particular to a record with a stamp. NVTX's ranges are not among them: dump.c knows their names.
 * false: it is not shown. */
bool dump_record_line(
	struct trace_reader *reader, const struct trace_event *event, struct dump_line *line);
/* The same for what CUPTI delivered. */
void dump_gpu_line(
	struct trace_reader *reader, const struct gpu_entry *entry, struct dump_line *line);
/* Where a place was first entered. It has no time of its own. */
void dump_source_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_source *source);
/* Domain (the given one), category, colour and payload of a PUSH, START or MARK. */
void dump_range_line(struct dump_line *line, const struct trace_range *range);

#endif
