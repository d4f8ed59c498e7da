/* SPDX-License-Identifier: MIT
 * edges.h: when work begins and ends on GPUs, one moment after the other, over all devices: what unions, overlaps and
 * gaps are made of. In the GPU's own nanoseconds (activity.start_unix_ns), so that sums are exact; what ends at a moment
 * comes before what begins at it. Memory: what runs at once.
 */
#ifndef PPERF_REPORT_ANALYSIS_EVENT_SWEEP_H
#define PPERF_REPORT_ANALYSIS_EVENT_SWEEP_H

#include "report/analysis/activities.h"

/* What whoever asks wants to know again as work ends. */
struct edge_mark {
	uint32_t device, first, second;
};

struct edges_visitor {
	void *context;
	/* Fills the mark. at_ns: its start; never earlier than a moment before: where the clock was set back, later. */
	void (*begins)(void *context, const struct activity *work, uint64_t at_ns, struct edge_mark *mark);
	void (*ends)(void *context, const struct edge_mark *mark, uint64_t at_ns);
	/* Everything else, as it comes: calls, what CUPTI told, work without times. NULL: not wanted. */
	void (*other)(void *context, const struct activity *activity);
};

/* All of it, from the first. Work that does not count is left out, unless `uncounted`. */
void edges_visit(struct activities *activities, const struct edges_visitor *visitor, bool uncounted);

/* How long something held while time went on: of a union, or of two things at once. */
struct stretch {
	uint64_t active;   /* how many are at work */
	uint64_t since_ns; /* if any: since when */
	uint64_t total_ns; /* of the times when any was, up to since_ns */
};

/* Up to now, the present one included. */
static inline uint64_t stretch_total(const struct stretch *stretch, uint64_t now_ns)
{
	return stretch->total_ns + (stretch->active ? now_ns - stretch->since_ns : 0);
}

static inline void stretch_begin(struct stretch *stretch, uint64_t now_ns)
{
	if (!stretch->active++)
		stretch->since_ns = now_ns;
}

/* Whether it was the last. */
static inline bool stretch_end(struct stretch *stretch, uint64_t now_ns)
{
	if (--stretch->active)
		return false;
	stretch->total_ns += now_ns - stretch->since_ns;
	return true;
}

#endif
