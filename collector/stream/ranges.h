/* SPDX-License-Identifier: MIT
 * Opens and closes the ranges of the calling thread, for NVTX and PyTorch. Texts are copied during
 * the call, unless said otherwise. Each function calls stream_enter itself and may be called from
 * any thread. `domain`: a name id, 0 for the default domain.
 */
#ifndef PPERF_COLLECTOR_STREAM_RANGES_H
#define PPERF_COLLECTOR_STREAM_RANGES_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* The attributes of a range or mark (struct trace_range). */
struct range_attributes {
	uint32_t flags; /* TRACE_HAS_COLOR, TRACE_HAS_CATEGORY, TRACE_EXTENDED_PAYLOAD */
	uint32_t category, color, payload_type;
	uint64_t payload;
};

#define RANGE_REFUSED (-1)

/* Opens a range and returns its level, also if its record was lost. The outermost range of a domain
 * on a thread has level 0. `attributes`: NULL for none. RANGE_REFUSED: recording is off, or pperf
 * is already working on this thread. */
int range_push(uint32_t domain, const char *text, const struct range_attributes *attributes);

/* Closes the innermost range of `domain` and returns its level. RANGE_REFUSED: the domain has none
 * open on this thread, or the thread was refused. */
int range_pop(uint32_t domain);

/* The calls that programs make most: the default domain, without attributes. */
int range_push_plain(const char *text);
int range_pop_plain(void);

/* Opens a range that belongs to an object of the program, such as a running operator. Only
 * range_close closes it, with the same `object`, wherever it is in the range stack. `object` need
 * not be an address. If an object has several ranges open, the innermost closes first. `kind`,
 * `link`, `detail`: of struct trace_node. While recording is paused, `text` is not copied and must
 * stay valid until the range closes. Returns the range's node. 0: recording is paused, or no range
 * was opened, because recording is off or there is no room. range_close may be called in each of
 * these cases. */
uint32_t range_open(const void *object, const char *text, enum trace_node_kind kind, uint32_t link,
	uint32_t detail);

/* True if the innermost open range of this thread has this node. */
bool range_is_innermost(uint32_t node);

/* Closes the innermost range of `object`. Returns false if this thread has none open. */
bool range_close(const void *object);

/* As range_open, for a range without a record: its instances are counted and their time added up,
 * by node (counted_totals.h). Records inside it carry its node. range_close closes it too;
 * range_close_counted is the fast path. */
uint32_t range_open_counted(const void *object, const char *text, enum trace_node_kind kind,
	uint32_t link, uint32_t detail);
bool range_close_counted(const void *object);

/* Begins a range that may end on any thread. Returns its id, which is unique in the process and
 * never 0. */
uint64_t range_start(uint32_t domain, const char *text, const struct range_attributes *attributes);
void range_end(uint64_t id);

/* As range_start, with an id that the caller chooses. */
void range_start_as(
	uint64_t id, uint32_t domain, const char *text, const struct range_attributes *attributes);

void range_mark(uint32_t domain, const char *text, const struct range_attributes *attributes);

#endif
