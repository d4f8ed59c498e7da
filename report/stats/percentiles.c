/* SPDX-License-Identifier: MIT */
#include "report/stats/percentiles.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

static size_t value_bytes(const struct percentiles *samples)
{
	return samples->is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
}

static uint64_t value_at(const struct percentiles *samples, unsigned index)
{
	return samples->is_wide ? samples->values.wide[index] : samples->values.narrow[index];
}

static void histogram_count_value(struct histogram *histogram, uint64_t value, uint32_t times)
{
	const unsigned exponent = 63u - (unsigned)__builtin_clzll(value | 32);
	const uint64_t step = exponent < 6 ? value : value >> (exponent - 6);
	uint32_t **octave = &histogram->octaves[exponent - 5];
	uint32_t *count;

	if (!*octave)
		*octave = xcalloc(64 * sizeof **octave);
	count = *octave + (step & 63);
	*count = times > UINT32_MAX - *count ? UINT32_MAX : *count + times;
}

/* Returns the middle of a step. */
static uint64_t histogram_step_value(unsigned octave, unsigned step)
{
	if (octave == 0)
		return step;
	return ((uint64_t)(64 + step) << (octave - 1)) + ((UINT64_C(1) << (octave - 1)) >> 1);
}

static void histogram_add_pending(struct percentiles *samples)
{
	for (unsigned i = 0; i < samples->used; i++)
		histogram_count_value(samples->histogram, value_at(samples, i), 1);
	samples->used = 0;
}

/* Returns the bytes of an array that count against the budget. */
static size_t counted_bytes(size_t bytes)
{
	return bytes > PERCENTILES_SMALL_BYTES ? bytes : 0;
}

static void switch_to_histogram(struct percentiles *samples, struct percentiles_budget *budget)
{
	samples->histogram = xcalloc(sizeof *samples->histogram);
	histogram_add_pending(samples);
	budget->bytes -= counted_bytes(samples->room * value_bytes(samples));
	free(samples->values.narrow);
	samples->values.narrow = xcalloc(PERCENTILES_PENDING_MAX * sizeof *samples->values.narrow);
	samples->room = PERCENTILES_PENDING_MAX;
	samples->is_wide = false;
}

/* Resizes the array to `room` values of `bytes` bytes. Returns false if that would exceed the
 * budget. */
static bool resize_values(
	struct percentiles *samples, unsigned room, size_t bytes, struct percentiles_budget *budget)
{
	const size_t before = counted_bytes(samples->room * value_bytes(samples)),
		     after = counted_bytes(room * bytes);
	void *values;

	if (after && budget->bytes - before + after > PERCENTILES_BYTES_MAX)
		return false;
	values = xcalloc(room * bytes);
	if (bytes == value_bytes(samples) && samples->used)
		memcpy(values, samples->values.narrow, samples->used * bytes);
	else
		for (unsigned i = 0; i < samples->used; i++)
			((uint64_t *)values)[i] = samples->values.narrow[i];
	free(samples->values.narrow);
	samples->values.narrow = values;
	samples->room = (uint16_t)room;
	samples->is_wide = bytes == sizeof(uint64_t);
	budget->bytes += after - before;
	return true;
}

static bool make_value_room(
	struct percentiles *samples, uint64_t value, struct percentiles_budget *budget)
{
	unsigned room = samples->room;

	if (samples->used == PERCENTILES_EXACT_MAX)
		return false;
	if (samples->used == room)
		room = room ? room * 2 : 4;
	if (resize_values(samples, room,
		    value > UINT32_MAX || samples->is_wide ? sizeof(uint64_t) : sizeof(uint32_t),
		    budget))
		return true;
	budget->early++;
	return false;
}

void percentiles_add_slow(
	struct percentiles *samples, uint64_t value, struct percentiles_budget *budget)
{
	const bool fits = samples->used < samples->room &&
			  (samples->is_wide || value <= UINT32_MAX);

	if (samples->is_disabled)
		return;
	if (!samples->histogram && !fits && !make_value_room(samples, value, budget))
		switch_to_histogram(samples, budget);
	if (samples->histogram) {
		histogram_add_pending(samples);
		histogram_count_value(samples->histogram, value, 1);
	} else if (samples->is_wide) {
		samples->values.wide[samples->used++] = value;
	} else {
		samples->values.narrow[samples->used++] = (uint32_t)value;
	}
}

void percentiles_merge(struct percentiles *samples, const struct percentiles *from,
	struct percentiles_budget *budget)
{
	if (from->histogram && !samples->histogram)
		switch_to_histogram(samples, budget);
	for (unsigned i = 0; i < from->used; i++)
		percentiles_add(samples, value_at(from, i), budget);
	for (unsigned octave = 0; from->histogram && octave < PERCENTILES_OCTAVES; octave++)
		for (unsigned step = 0; from->histogram->octaves[octave] && step < 64; step++)
			if (from->histogram->octaves[octave][step])
				histogram_count_value(samples->histogram,
					histogram_step_value(octave, step),
					from->histogram->octaves[octave][step]);
}

static bool is_sorted(const uint32_t *values, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (values[i - 1] > values[i])
			return false;
	return true;
}

/* One pass of a radix sort, by the byte at `shift`. */
static void sort_by_byte(const uint32_t *from, uint32_t *to, size_t count, unsigned shift)
{
	uint32_t ends[256] = { 0 };

	for (size_t i = 0; i < count; i++)
		ends[from[i] >> shift & 255]++;
	for (unsigned byte = 1; byte < 256; byte++)
		ends[byte] += ends[byte - 1];
	for (size_t i = count; i-- > 0;)
		to[--ends[from[i] >> shift & 255]] = from[i];
}

/* Sorts by radix, a byte at a time from the lowest one: four passes over the values. */
static void sort_narrow(uint32_t *values, size_t count)
{
	uint32_t *scratch;

	if (is_sorted(values, count))
		return;
	if (count < 64) {
		qsort(values, count, sizeof *values, compare_u32);
		return;
	}
	scratch = xcalloc(count * sizeof *scratch);
	for (unsigned shift = 0; shift < 32; shift += 16) {
		sort_by_byte(values, scratch, count, shift);
		sort_by_byte(scratch, values, count, shift + 8);
	}
	free(scratch);
}

static uint64_t nearest_rank(uint64_t count, unsigned per_mille)
{
	const uint64_t rank = (count * per_mille + 999) / 1000;

	return rank ? rank : 1;
}

static uint64_t histogram_percentile(const struct histogram *histogram, unsigned per_mille)
{
	uint64_t count = 0, rank;

	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		for (unsigned step = 0; histogram->octaves[octave] && step < 64; step++)
			count += histogram->octaves[octave][step];
	rank = nearest_rank(count, per_mille);
	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		for (unsigned step = 0; histogram->octaves[octave] && step < 64; step++) {
			if (rank <= histogram->octaves[octave][step])
				return histogram_step_value(octave, step);
			rank -= histogram->octaves[octave][step];
		}
	return 0;
}

uint64_t percentiles_get(struct percentiles *samples, unsigned per_mille)
{
	if (samples->histogram) {
		histogram_add_pending(samples);
		return histogram_percentile(samples->histogram, per_mille);
	}
	if (samples->used == 0)
		return 0;
	if (samples->is_wide)
		qsort(samples->values.wide, samples->used, sizeof *samples->values.wide,
			compare_u64);
	else
		sort_narrow(samples->values.narrow, samples->used);
	return value_at(samples, (unsigned)nearest_rank(samples->used, per_mille) - 1);
}

static void emit_buckets(const struct histogram *histogram,
	void (*add)(void *context, unsigned bucket, uint64_t count), void *context)
{
	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		for (unsigned step = 0; histogram->octaves[octave] && step < 64; step++)
			if (histogram->octaves[octave][step])
				add(context, octave * 64 + step, histogram->octaves[octave][step]);
}

static void free_octaves(struct histogram *histogram)
{
	for (unsigned octave = 0; octave < PERCENTILES_OCTAVES; octave++)
		free(histogram->octaves[octave]);
}

void percentiles_buckets(struct percentiles *samples,
	void (*add)(void *context, unsigned bucket, uint64_t count), void *context)
{
	struct histogram exact = { { NULL } };

	if (samples->histogram) {
		histogram_add_pending(samples);
		emit_buckets(samples->histogram, add, context);
		return;
	}
	for (unsigned i = 0; i < samples->used; i++)
		histogram_count_value(&exact, value_at(samples, i), 1);
	emit_buckets(&exact, add, context);
	free_octaves(&exact);
}

bool percentiles_are_exact(const struct percentiles *samples)
{
	return !samples->histogram;
}

void percentiles_free(struct percentiles *samples)
{
	if (samples->histogram)
		free_octaves(samples->histogram);
	free(samples->histogram);
	free(samples->values.narrow);
	*samples = (struct percentiles){ .used = 0 };
}
