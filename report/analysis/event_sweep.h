/* SPDX-License-Identifier: MIT
 * edges.h: when work begins and ends on GPUs, one moment after the other, over all devices: what unions, overlaps and
 * gaps are made of. In the GPU's own nanoseconds (activity.start_unix_ns), so that sums are exact; what ends at a moment
 * comes before what begins at it. Memory: what runs at once.
 */
#ifndef PPERF_REPORT_ANALYSIS_EVENT_SWEEP_H
#define PPERF_REPORT_ANALYSIS_EVENT_SWEEP_H

#include "report/analysis/activities.h"

/* What whoever asks wants to know again as work ends. */
struct sweep_mark {
	uint32_t device, first, second;
};

struct event_sweep_visitor {
	void *context;
	/* Fills the mark. at_ns: its start; never earlier than a moment before: where the clock was set back, later. */
	void (*begins)(void *context, const struct activity *work, uint64_t at_ns,
		struct sweep_mark *mark);
	void (*ends)(void *context, const struct sweep_mark *mark, uint64_t at_ns);
	/* Everything else, as it comes: calls, what CUPTI told, work without times. NULL: not wanted. */
	void (*other)(void *context, const struct activity *activity);
};

/* All of it, from the first. Work that does not count is left out, unless `uncounted`. */
void event_sweep_run(
	struct activities *activities, const struct event_sweep_visitor *visitor, bool uncounted);

/* How long something held while time went on: of a union, or of two things at once. */
struct active_time {
	uint64_t active;   /* how many are at work */
	uint64_t since_ns; /* if any: since when */
	uint64_t total_ns; /* of the times when any was, up to since_ns */
};

/* Up to now, the present one included. */
static inline uint64_t active_time_total(const struct active_time *timer, uint64_t now_ns)
{
	return timer->total_ns + (timer->active ? now_ns - timer->since_ns : 0);
}

static inline void active_time_begin(struct active_time *timer, uint64_t now_ns)
{
	if (!timer->active++)
		timer->since_ns = now_ns;
}

/* Whether it was the last. */
static inline bool active_time_end(struct active_time *timer, uint64_t now_ns)
{
	if (--timer->active)
		return false;
	timer->total_ns += now_ns - timer->since_ns;
	return true;
}

#endif
