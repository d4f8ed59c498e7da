/* SPDX-License-Identifier: MIT
 * trace_clock.h: raw stamps and CLOCK_REALTIME brought to one axis, nanoseconds of CLOCK_MONOTONIC since the
 * trace's start.
 *
 * Between samples the axis is a row of straight pieces, each through two samples at least 0.1 s apart; after the
 * last one it goes on at the mean rate. It never runs backwards, and meets each sample that a piece ends on to the
 * nanosecond. A sample that contradicts its neighbours is refused; a change that they confirm (a suspended machine)
 * is believed.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_CLOCK_H
#define PPERF_REPORT_TRACE_TRACE_CLOCK_H

#include "report/trace/read_warnings.h"

struct clock_piece {
	uint64_t raw, ns,
		scale; /* ns + (stamp - raw) * scale >> READER_SCALE_BITS, up to the next piece's raw */
};

/* CLOCK_REALTIME minus the axis, since some moment between `after` and `seen` (both on the axis). */
struct clock_offset {
	uint64_t after, seen;
	int64_t offset;
};

struct clock_map {
	struct clock_piece *pieces; /* the first from 0 on, the last to UINT64_MAX */
	uint32_t count;
	struct clock_offset *offsets;
	uint32_t offset_count;
	uint64_t last_ns; /* of the last sample */
	double ticks_per_second;
};

/* `samples` are put in order. clock_kind: enum trace_clock_kind. */
void clock_build(struct clock_map *map, const struct trace_header *header,
	struct trace_clock *samples, uint32_t count, struct read_warnings *warnings);
void clock_free(struct clock_map *map);

/* The piece that holds `stamp`; `near` is where to look first. */
uint32_t clock_find(const struct clock_map *map, uint64_t stamp, uint32_t near);
uint64_t clock_ns(const struct clock_map *map, uint64_t stamp);

/* The time of a CLOCK_REALTIME moment that lies before `hint`, roughly: where the clock was set back, the latest
 * such. Not before 0. */
uint64_t clock_from_realtime(const struct clock_map *map, uint64_t realtime_ns, uint64_t hint);

#endif
