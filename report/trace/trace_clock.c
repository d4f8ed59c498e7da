/* SPDX-License-Identifier: MIT */
#include "report/trace/trace_clock.h"

#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"

#include <stdlib.h>

/* Shortest piece. A sample is off by less than 0.1 us, so the slope is right to 1e-6. */
#define PIECE_NS 100000000u
#define LAST_PIECE_NS 50000000u
/* possible error of a sample whose process was interrupted between reading two clocks */
#define SAMPLE_SLACK_NS 1000000
#define RATE_SLACK 0.01
#define RATE_MIN 0.001 /* ns per tick: 1 THz */
#define RATE_MAX 100.0 /* ns per tick: 10 MHz */
/* a change of CLOCK_REALTIME against CLOCK_MONOTONIC that the next sample confirms */
#define STEP_NS 200000
#define STEP_LAST_NS 1000000  /* such a change at the last sample, which nothing confirms */
#define BASELINE_NS 10000000u /* a rate over less than this is inaccurate */
#define SAMPLES_MAX READER_TIME_MAX

COMPARE_BY_TWO(compare_raw_stamps, struct trace_clock, raw, monotonic_ns)

static double ticks_between(const struct trace_clock *from, const struct trace_clock *to)
{
	return (double)(to->raw - from->raw);
}

static double ns_between(const struct trace_clock *from, const struct trace_clock *to)
{
	return (double)to->monotonic_ns - (double)from->monotonic_ns;
}

/* The rate between two adjacent samples, weighted by the ticks between them. */
struct rate_vote {
	double rate, weight;
};

COMPARE_BY(compare_vote_rates, struct rate_vote, rate)

COMPARE_BY(compare_vote_weights, struct rate_vote, weight)

static uint32_t collect_votes(
	const struct trace_clock *samples, uint32_t count, struct rate_vote *votes)
{
	uint32_t used = 0;

	for (uint32_t i = 1; i < count; i++) {
		double ticks = ticks_between(&samples[i - 1], &samples[i]),
		       ns = ns_between(&samples[i - 1], &samples[i]);

		if (ticks > 0 && ns >= ticks * RATE_MIN && ns <= ticks * RATE_MAX)
			votes[used++] = (struct rate_vote){ ns / ticks, ticks };
	}
	return used;
}

/* Returns the nanoseconds per tick, 0 if unknown. It is the weighted median of the rates between
 * adjacent samples. A longer distance weighs more, but at most three times the median weight. So
 * neither a damaged sample nor a suspension of the machine decides. */
static double nominal_rate(const struct trace_clock *samples, uint32_t count)
{
	struct rate_vote *votes = xcalloc(count * sizeof *votes);
	uint32_t used = collect_votes(samples, count, votes);
	double most, total = 0, rate = 0;

	if (used == 0) {
		free(votes);
		return 0;
	}
	qsort(votes, used, sizeof *votes, compare_vote_weights);
	most = 3 * votes[used / 2].weight;
	for (uint32_t i = 0; i < used; i++) {
		votes[i].weight = votes[i].weight < most ? votes[i].weight : most;
		total += votes[i].weight;
	}
	qsort(votes, used, sizeof *votes, compare_vote_rates);
	for (uint32_t i = 0; i < used && total > 0; i++) {
		rate = votes[i].rate;
		total -= 2 * votes[i].weight;
	}
	free(votes);
	return rate;
}

/* Returns true if `to` fits `from` and the rate, within the error that an interruption can
 * cause. */
static bool samples_agree(const struct trace_clock *from, const struct trace_clock *to, double rate)
{
	double expected = ticks_between(from, to) * rate, off = ns_between(from, to) - expected;

	if (to->monotonic_ns < from->monotonic_ns)
		return false;
	return off <= expected * RATE_SLACK + SAMPLE_SLACK_NS &&
	       off >= -expected * RATE_SLACK - SAMPLE_SLACK_NS;
}

/* Returns true if samples[i] is to be kept. `kept` is the last kept sample, or NULL. If they
 * contradict each other, the next sample decides. */
static bool sample_is_kept(const struct trace_clock *kept, const struct trace_clock *samples,
	uint32_t i, uint32_t count, double rate)
{
	const struct trace_clock *sample = &samples[i],
				 *next = i + 1 < count ? &samples[i + 1] : NULL;

	if (sample->raw >= SAMPLES_MAX || sample->monotonic_ns >= SAMPLES_MAX ||
		sample->realtime_ns >= SAMPLES_MAX)
		return false;
	if (!kept)
		return !next || samples_agree(sample, next, rate) || i + 2 >= count ||
		       !samples_agree(next, &samples[i + 2], rate);
	if (samples_agree(kept, sample, rate))
		return true;
	return next && !samples_agree(kept, next, rate) && samples_agree(sample, next, rate) &&
	       sample->monotonic_ns >= kept->monotonic_ns &&
	       ns_between(kept, sample) <= ticks_between(kept, sample) * RATE_MAX;
}

static uint32_t drop_outliers(
	struct trace_clock *samples, uint32_t count, double rate, struct read_warnings *warnings)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct trace_clock sample = samples[i];

		if (sample_is_kept(kept ? &samples[kept - 1] : NULL, samples, i, count, rate))
			samples[kept++] = sample;
		else
			warnings->integrity.clock_samples_refused++;
	}
	return kept;
}

static void add_clock_piece(
	struct clock_map *map, size_t *room, uint64_t raw, uint64_t ns, uint64_t scale)
{
	array_grow_zeroed(&map->pieces, room, (size_t)map->count + 1, sizeof *map->pieces);
	map->pieces[map->count++] = (struct clock_piece){ raw, ns, scale };
}

static uint64_t scale_between(const struct trace_clock *from, const struct trace_clock *to)
{
	wide_uint ns = to->monotonic_ns - from->monotonic_ns;

	return (uint64_t)((ns << READER_SCALE_BITS) / (to->raw - from->raw));
}

/* Moves the samples at which pieces meet to the front of `samples`. Returns their number. */
static uint32_t choose_knots(struct trace_clock *samples, uint32_t count)
{
	uint32_t knots = 1;
	const struct trace_clock last = samples[count - 1];

	for (uint32_t i = 1; i < count; i++)
		if (samples[i].monotonic_ns - samples[knots - 1].monotonic_ns >= PIECE_NS &&
			samples[i].raw > samples[knots - 1].raw)
			samples[knots++] = samples[i];
	if (knots > 1 && last.monotonic_ns - samples[knots - 1].monotonic_ns < LAST_PIECE_NS)
		knots--;
	if (last.raw > samples[knots - 1].raw &&
		last.monotonic_ns > samples[knots - 1].monotonic_ns)
		samples[knots++] = last;
	return knots;
}

/* Adds a piece of slope 0 from READER_TIME_MAX on, so that no time overflows. */
static void add_last_piece(struct clock_map *map, size_t *room)
{
	const struct clock_piece *last = &map->pieces[map->count - 1];
	wide_uint ticks;

	if (last->scale == 0)
		return;
	ticks = ((wide_uint)(READER_TIME_MAX - last->ns) << READER_SCALE_BITS) / last->scale;
	if (ticks < UINT64_MAX - last->raw)
		add_clock_piece(map, room, last->raw + (uint64_t)ticks, READER_TIME_MAX, 0);
}

static void build_pieces(
	struct clock_map *map, struct trace_clock *knots, uint32_t count, double rate)
{
	const uint64_t nominal = clamp_to_u64(rate * (double)(UINT64_C(1) << READER_SCALE_BITS));
	const uint64_t zero = knots[0].monotonic_ns;
	size_t room = 0;

	add_clock_piece(map, &room, 0, 0, 0);
	for (uint32_t i = 0; i + 1 < count; i++)
		add_clock_piece(map, &room, knots[i].raw, knots[i].monotonic_ns - zero,
			scale_between(&knots[i], &knots[i + 1]));
	add_clock_piece(map, &room, knots[count - 1].raw, knots[count - 1].monotonic_ns - zero,
		count > 1 ? scale_between(&knots[0], &knots[count - 1]) : nominal);
	add_last_piece(map, &room);
	map->ticks_per_second = 1e9 / rate;
	if (count > 1)
		map->ticks_per_second = ticks_between(&knots[0], &knots[count - 1]) /
					ns_between(&knots[0], &knots[count - 1]) * 1e9;
}

/* Builds the map of a clock whose ticks are nanoseconds. */
static void build_single_piece(struct clock_map *map, const struct trace_clock *start)
{
	size_t room = 0;

	add_clock_piece(map, &room, 0, 0, 0);
	add_clock_piece(map, &room, start->raw, 0, UINT64_C(1) << READER_SCALE_BITS);
	add_last_piece(map, &room);
	map->ticks_per_second = 1e9;
}

static int64_t sample_realtime_offset(const struct trace_clock *sample, uint64_t zero)
{
	return (int64_t)(sample->realtime_ns - (sample->monotonic_ns - zero));
}

static bool is_step(const struct trace_clock *samples, uint32_t i, uint32_t count, uint64_t zero,
	int64_t present)
{
	int64_t now = sample_realtime_offset(&samples[i], zero), off = now - present, next;

	if (i + 1 == count)
		return llabs(off) > STEP_LAST_NS;
	next = sample_realtime_offset(&samples[i + 1], zero);
	return llabs(off) > STEP_NS && llabs(next - now) < llabs(next - present);
}

static void build_offsets(struct clock_map *map, const struct trace_clock *samples, uint32_t count,
	struct read_warnings *warnings)
{
	const uint64_t zero = samples[0].monotonic_ns;
	size_t room = 0;

	for (uint32_t i = 0; i < count; i++) {
		int64_t present = i ? map->offsets[map->offset_count - 1].offset : 0;
		uint64_t seen = samples[i].monotonic_ns - zero;

		if (i && !is_step(samples, i, count, zero, present))
			continue;
		*ARRAY_ADD(map->offsets, room, map->offset_count) = (struct clock_offset){
			i ? samples[i - 1].monotonic_ns - zero : 0, seen,
			sample_realtime_offset(&samples[i], zero)
		};
		if (i == 0)
			continue;
		warnings->integrity.clock_steps++;
		read_warnings_add(warnings, UINT64_MAX,
			"the system clock was set by %.6f s, %.3f s after the start: times of GPU "
			"work near that time are uncertain",
			(double)(sample_realtime_offset(&samples[i], zero) - present) * 1e-9,
			(double)seen * 1e-9);
	}
}

static void check_baseline(const struct trace_header *header, const struct trace_clock *first,
	const struct trace_clock *last, struct read_warnings *warnings)
{
	if (header->clock_kind == TRACE_CLOCK_TSC && !(header->flags & TRACE_ENDED) &&
		last->monotonic_ns - first->monotonic_ns < BASELINE_NS)
		read_warnings_add(warnings, UINT64_MAX,
			"the clocks were compared only over %.3f ms before the process was killed: "
			"durations may be off by 0.1 %% or more",
			(double)(last->monotonic_ns - first->monotonic_ns) * 1e-6);
}

void clock_build(struct clock_map *map, const struct trace_header *header,
	struct trace_clock *found, uint32_t found_count, struct read_warnings *warnings)
{
	uint32_t count = 0;
	struct trace_clock *samples = xcalloc(((size_t)found_count + 2) * sizeof *samples);
	double rate;

	*map = (struct clock_map){ 0 };
	samples[count++] = header->start;
	for (uint32_t i = 0; i < found_count; i++)
		if (found[i].raw >= header->start.raw)
			samples[count++] = found[i];
		else
			warnings->integrity.clock_samples_refused++;
	if (header->last.raw > header->start.raw)
		samples[count++] = header->last;
	qsort(samples + 1, count - 1, sizeof *samples, compare_raw_stamps);
	rate = nominal_rate(samples, count);
	if (rate == 0 && header->clock_kind == TRACE_CLOCK_TSC)
		read_warnings_add(warnings, UINT64_MAX,
			"the trace has no two clock samples: the counter is assumed to run at 1 "
			"GHz, so times are not reliable");
	rate = rate > 0 ? rate : 1;
	count = drop_outliers(samples, count, rate, warnings);
	if (count == 0)
		samples[count++] = (struct trace_clock){ 0 };
	build_offsets(map, samples, count, warnings);
	map->last_ns = samples[count - 1].monotonic_ns - samples[0].monotonic_ns;
	check_baseline(header, &samples[0], &samples[count - 1], warnings);
	if (header->clock_kind == TRACE_CLOCK_MONOTONIC)
		build_single_piece(map, &samples[0]);
	else
		build_pieces(map, samples, choose_knots(samples, count), rate);
	free(samples);
}

void clock_free(struct clock_map *map)
{
	free(map->pieces);
	free(map->offsets);
}

uint32_t clock_find(const struct clock_map *map, uint64_t stamp, uint32_t near)
{
	uint32_t low = 0, high = map->count;

	if (near < map->count && map->pieces[near].raw <= stamp) {
		low = near;
		if (near + 1 == map->count || map->pieces[near + 1].raw > stamp)
			return near;
	}
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (map->pieces[middle].raw <= stamp)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t clock_ns(const struct clock_map *map, uint64_t stamp)
{
	const struct clock_piece *piece = &map->pieces[clock_find(map, stamp, map->count / 2)];

	return piece->ns + reader_scale(stamp - piece->raw, piece->scale);
}

uint64_t clock_from_realtime(const struct clock_map *map, uint64_t realtime_ns, uint64_t hint)
{
	uint64_t latest = hint + SAMPLE_SLACK_NS;
	uint32_t i = map->offset_count;

	if (realtime_ns >= SAMPLES_MAX)
		return hint;
	while (i > 1 && map->offsets[i - 1].after > hint)
		i--;
	while (i-- > 0) {
		const struct clock_offset *offset = &map->offsets[i];
		int64_t time = (int64_t)realtime_ns - offset->offset;
		bool is_too_late = i + 1 < map->offset_count && (uint64_t)time > offset[1].seen;

		if (i > 0 && (time < (int64_t)offset->after || time > (int64_t)latest))
			continue;
		if (time < 0)
			return 0;
		return is_too_late && (uint64_t)time > hint ? hint : (uint64_t)time;
	}
	return 0;
}
