/* SPDX-License-Identifier: MIT
 * Fills the lines of the view `dump` from records, and decides which keys each kind of record has.
 */
#ifndef PPERF_REPORT_VIEWS_DUMP_RECORD_H
#define PPERF_REPORT_VIEWS_DUMP_RECORD_H

#include "report/views/dump_line.h"
#include "report/gpu/record_order.h"

/* Adds the keys of an event to `line`. dump.c itself handles ranges and marks, because it knows
 * their names. Returns false if the event is not shown here: a record of CUPTI, or a kind without a
 * word (event_kind_name). */
bool dump_record_line(
	struct trace_reader *reader, const struct trace_event *event, struct dump_line *line);
/* Adds the keys of a record that CUPTI delivered (kind_is_gpu). */
void dump_gpu_line(
	struct trace_reader *reader, const struct gpu_record *entry, struct dump_line *line);
/* Adds the keys of the code location at which a node was first entered. It has no time of its
 * own. */
void dump_source_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_source *source);
/* Fills the line of a node: its name, kind and parent. */
void dump_node_line(struct trace_reader *reader, struct dump_line *line, uint32_t node);
/* Adds category, colour and payload of a PUSH, START or MARK record. */
void dump_range_line(struct dump_line *line, const struct trace_range *range);

#endif
