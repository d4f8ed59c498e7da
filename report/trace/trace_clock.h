/* SPDX-License-Identifier: MIT
 * Converts raw stamps and CLOCK_REALTIME to one axis: nanoseconds of CLOCK_MONOTONIC since the
 * start of the trace.
 *
 * Between clock samples the axis is piecewise linear. Each piece connects two samples at least 0.1
 * s apart. After the last sample it continues at the mean rate. The axis never runs backwards, and
 * at the samples where pieces meet it is exact to the nanosecond. A sample that contradicts its
 * neighbours is refused. A jump that the next sample confirms (a suspended machine) is accepted.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_CLOCK_H
#define PPERF_REPORT_TRACE_TRACE_CLOCK_H

#include "report/trace/read_warnings.h"

#define READER_SCALE_BITS 56

struct clock_piece {
	/* `ns` is the time at `raw`. Up to the `raw` of the next piece, a stamp is at ns +
	 * (stamp - raw) * scale >> READER_SCALE_BITS. */
	uint64_t raw, ns, scale;
};

/* CLOCK_REALTIME minus the axis. The offset took effect at some time between `after` and `seen`,
 * both on the axis. */
struct clock_offset {
	uint64_t after, seen;
	int64_t offset;
};

struct clock_map {
	struct clock_piece *pieces; /* the first starts at 0, the last extends to UINT64_MAX */
	uint32_t count;
	struct clock_offset *offsets;
	uint32_t offset_count;
	uint64_t last_ns; /* time of the last sample */
	double ticks_per_second;
};

/* Builds `map` from the clocks in `header` and from `samples`, which need not be sorted. Reports
 * refused samples and changes of CLOCK_REALTIME in `warnings`. */
void clock_build(struct clock_map *map, const struct trace_header *header,
	struct trace_clock *samples, uint32_t count, struct read_warnings *warnings);
void clock_free(struct clock_map *map);

static inline uint64_t reader_scale(uint64_t ticks, uint64_t scale)
{
	return (uint64_t)((wide_uint)ticks * scale >> READER_SCALE_BITS);
}

/* Returns the index of the piece that contains `stamp`. The search tries piece `near` first. */
uint32_t clock_find(const struct clock_map *map, uint64_t stamp, uint32_t near);
uint64_t clock_ns(const struct clock_map *map, uint64_t stamp);

/* Converts a CLOCK_REALTIME time that is expected at about `hint` or before. Where the clock was
 * set back, two times may fit: the latest one that is not after `hint` is returned. The result
 * is never below 0. */
uint64_t clock_from_realtime(const struct clock_map *map, uint64_t realtime_ns, uint64_t hint);

#endif
