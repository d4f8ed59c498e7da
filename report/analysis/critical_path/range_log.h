/* SPDX-License-Identifier: MIT
 * Finds the innermost range that was open on a thread at a time. Queries must go backwards in time,
 * over all threads.
 *
 *	struct range_log *log = range_log_new();
 *	const struct profile_observer observer = range_log_observer(log);
 *
 *	... a pass over the trace with the observer ...
 *	range_log_rewind(log);
 *	range_log_within(log, tid, tid, 500, 900, visit, context);
 *	range_log_within(log, tid, tid, 100, 500, visit, context);
 *	range_log_free(log);
 *
 * Ranges come in the order in which they end, with few exceptions. Read backwards, a range opens at
 * its end and closes at its begin, so no sort is needed. They are in a temporary file
 * (number_log.h), about 6 bytes each, whose space is freed while it is read. Exceptions, and the
 * ranges that are open at the time of the query, are in memory up to a limit. Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_RANGE_LOG_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_RANGE_LOG_H

#include "report/profile/profile.h"

struct range_log;

struct range_log *range_log_new(void);
void range_log_free(struct range_log *log); /* `log` may be NULL */

/* Returns the observer that adds the ranges of a pass. */
struct profile_observer range_log_observer(struct range_log *log);
/* Adds a range of the thread `tid`. A range that takes no time is left out. */
void range_log_add(
	struct range_log *log, uint32_t tid, uint32_t node, uint64_t begin_ns, uint64_t end_ns);
/* Begins the queries. To be called once, after all ranges were added. */
void range_log_rewind(struct range_log *log);

/* Calls `visit` for each part of the time from `begin_ns` to `end_ns`, the last part first, with
 * the node of the innermost range that was open on the thread `tid` or, if none was, on the thread
 * `other`. 0: none was. Of ranges that overlap without being nested, the one that began last is the
 * innermost. A part ends where that range ends, and where any range of any thread begins.
 * `end_ns` must not be after the `begin_ns` of an earlier call. */
void range_log_within(struct range_log *log, uint32_t tid, uint32_t other, uint64_t begin_ns,
	uint64_t end_ns,
	void (*visit)(void *context, uint32_t node, uint64_t from_ns, uint64_t to_ns),
	void *context);

#endif
