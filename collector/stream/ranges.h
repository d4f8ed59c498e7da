/* SPDX-License-Identifier: MIT
 * ranges.h: the open ranges of a thread, and what opens and closes them, whoever asks. Texts are copied during the call.
 * Each function does its own stream_enter; from any thread. domain: a name id, 0 the default domain.
 */
#ifndef PPERF_COLLECTOR_STREAM_RANGES_H
#define PPERF_COLLECTOR_STREAM_RANGES_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* Of a range or mark; see struct trace_range. */
struct range_attributes {
	uint32_t flags; /* TRACE_HAS_COLOR, TRACE_HAS_CATEGORY, TRACE_EXTENDED_PAYLOAD */
	uint32_t category, color, payload_type;
	uint64_t payload;
};

#define RANGE_REFUSED (-1)

/* The level of the range just opened, the outermost of its domain on this thread being 0; it counts also if its record was lost.
 * attributes: NULL for none. RANGE_REFUSED: recording is off or was re-entered. */
int range_push(uint32_t domain, const char *text, const struct range_attributes *attributes);

/* The level of the range just closed; RANGE_REFUSED if the domain has none open on this thread. */
int range_pop(uint32_t domain);

/* The same of the default domain, without attributes: what programs call most. */
int range_push_plain(const char *text);
int range_pop_plain(void);

/* A range that an object of the program stands for, such as a running operator: its end names the object, and closes that range wherever it
 * stands in the thread's row of open ones; no range_pop does. The caller's word for `owner` need not be an address, and one owner may have
 * several open: the innermost closes first. kind, link, detail: of struct trace_node. The node it opened; 0: none could be had, or recording is
 * off, and then no range_close is expected, but does no harm. */
uint32_t range_open(const void *object, const char *text, enum trace_node_kind kind, uint32_t link,
	uint32_t detail);

/* Whether the innermost open range of this thread is of that node. */
bool range_is_innermost(uint32_t node);

/* false: this thread has no range of that owner open. */
bool range_close(const void *object);

/* The same of a range that leaves no record: its instances are only counted, and their time added up, by node (totals.h). What happens in it
 * has its node as any other. range_close closes it too; range_close_counted is the quick way. */
uint32_t range_open_counted(const void *object, const char *text, enum trace_node_kind kind,
	uint32_t link, uint32_t detail);
bool range_close_counted(const void *object);

/* A range that may end on any thread. The id is unique in the process and never 0. */
uint64_t range_start(uint32_t domain, const char *text, const struct range_attributes *attributes);
void range_end(uint64_t id);

/* The same for a tool that gives the ids itself. */
void range_start_as(
	uint64_t id, uint32_t domain, const char *text, const struct range_attributes *attributes);

void range_mark(uint32_t domain, const char *text, const struct range_attributes *attributes);

#endif
