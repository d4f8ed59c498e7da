/* SPDX-License-Identifier: MIT
 * Joins GPU records to the launches that issued them, by correlation id and never by time. Either
 * may come first: launches wait for their records, and records wait for their launch.
 *
 * It is done by the thread that decodes the events (decode_ahead.h). A launch gets a slot, which is
 * the index of what the reader's user keeps about it. The slot is used again once the launch is
 * evicted.
 *
 * Memory is bounded. The table holds at most:
 *
 *	JOIN_WAITING	launches without a record
 *	JOIN_REPLAYED	matched graph launches, which have many records
 *	JOIN_MATCHED	other matched launches, which rarely have a second record
 *	JOIN_HELD	records without a launch
 *
 * What exceeds these limits is evicted, oldest first. A launch is also evicted by a later one with
 * the same id.
 */
#ifndef PPERF_REPORT_TRACE_CORRELATION_JOIN_H
#define PPERF_REPORT_TRACE_CORRELATION_JOIN_H

#include "report/trace/trace_reader.h"

#define JOIN_WAITING 131072u
#define JOIN_REPLAYED 16384u
/* Small, because a range is final only when all of its launches are evicted. The ranges that wait
 * then fit into the processor's cache. */
#define JOIN_MATCHED 2048u
#define JOIN_HELD 16384u

struct join_steps {
	struct join_step *steps;
	size_t count, room;
};

struct correlation_join;

struct correlation_join *join_new(void);
void join_free(struct correlation_join *join); /* NULL is allowed */

/* Sets slot and steps of an event that is a launch or a GPU record; others are ignored. Appends its
 * steps to `steps`. */
void join_event(struct correlation_join *join, struct trace_event *event, struct join_steps *steps);
/* Appends the steps after the last event: nothing waits any longer. */
void join_end(struct correlation_join *join, struct join_steps *steps);

/* Removes all steps, and frees their records. */
void join_steps_clear(struct join_steps *steps);

#endif
