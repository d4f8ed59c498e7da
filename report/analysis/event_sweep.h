/* SPDX-License-Identifier: MIT
 *
 * Visits the begin and end events of GPU operations of all devices in time order. Unions, overlaps
 * and gaps are computed from these events.
 *
 * Times are the GPU's own nanoseconds (start_unix_ns), so that sums are exact. At equal times, ends
 * come before begins. Memory: proportional to the number of operations that run at once.
 */
#ifndef PPERF_REPORT_ANALYSIS_EVENT_SWEEP_H
#define PPERF_REPORT_ANALYSIS_EVENT_SWEEP_H

#include "report/analysis/activities.h"

/* Values that the visitor stores at the begin of an operation and receives at its end. */
struct sweep_mark {
	uint32_t device, first, second;
};

struct event_sweep_visitor {
	void *context;
	/* Fills the mark. `at_ns` is the start; it never decreases. If the clock was set back, it
	 * is later than the recorded start. */
	void (*begins)(void *context, const struct activity *work, uint64_t at_ns,
		struct sweep_mark *mark);
	void (*ends)(void *context, const struct sweep_mark *mark, uint64_t at_ns);
	/* All other activities in order: calls, CUPTI's records, untimed work. May be NULL. */
	void (*other)(void *context, const struct activity *activity);
};

/* Returns what visits the events, for activities_visit. It is freed at the end of the list. GPU
 * operations that do not count are skipped unless `uncounted`. */
struct activity_visitor event_sweep_begin(
	const struct event_sweep_visitor *visitor, bool uncounted);
/* Visits all events from the first. GPU operations that do not count are skipped unless
 * `uncounted`. */
void event_sweep_run(
	struct activities *activities, const struct event_sweep_visitor *visitor, bool uncounted);

/* Adds up the time in which something was active: for unions, or for two things at once. */
struct active_time {
	uint64_t active;   /* number of those active now */
	uint64_t since_ns; /* if any are active: since when */
	uint64_t total_ns; /* of the intervals that have ended */
};

/* Total up to `now_ns`, with the interval that has not ended. */
static inline uint64_t active_time_total(const struct active_time *timer, uint64_t now_ns)
{
	return timer->total_ns + (timer->active ? now_ns - timer->since_ns : 0);
}

static inline void active_time_begin(struct active_time *timer, uint64_t now_ns)
{
	if (!timer->active++)
		timer->since_ns = now_ns;
}

/* Returns true if the last one ended. */
static inline bool active_time_end(struct active_time *timer, uint64_t now_ns)
{
	if (--timer->active)
		return false;
	timer->total_ns += now_ns - timer->since_ns;
	return true;
}

#endif
