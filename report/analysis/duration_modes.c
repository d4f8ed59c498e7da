/* SPDX-License-Identifier: MIT
 *
 * Finds out whether durations have one usual value or several.
 *
 * 1. A histogram of the logarithm of durations has 64 bins an octave (1.1 % each).
 * 2. Each value is spread over the values that it may have had before it was rounded. The unit of
 *    rounding is the greatest common divisor of all values.
 * 3. The histogram is smoothed by a triangle. Its half width is 2 * IQR / cbrt(n) (Freedman and
 *    Diaconis), at least two bins and at most an octave.
 * 4. Peaks are modes. Two peaks are one mode unless the valley between them is below 70 % of the
 *    lower peak. Peaks with less than 5 % of the instances, or fewer than 5, are dropped.
 */
#include "report/analysis/duration_distribution.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include <math.h>
#include <stdlib.h>

#define BINS_PER_OCTAVE 64.0 /* of an octave */
#define VALLEY 0.7
#define MODE_MIN_SHARE 0.05
#define MODE_MIN_COUNT 5

struct modes {
	double *counts; /* by bin */
	double first;   /* lower edge of the first bin, in bins above 1 ns */
	size_t count;
	uint64_t granularity;
};

/* A peak and its extent, in bins. */
struct mode_peak {
	size_t at, from, to; /* to: exclusive */
};

static double bins_below(double value)
{
	return BINS_PER_OCTAVE * log2(value < 1 ? 1 : value);
}

struct modes *modes_new(const struct distribution *distribution, uint64_t granularity)
{
	struct modes *modes = xcalloc(sizeof *modes);

	modes->first = floor(bins_below((double)distribution->min_ns));
	modes->count = (size_t)(floor(bins_below((double)distribution->max_ns)) - modes->first) + 1;
	modes->counts = xcalloc(modes->count * sizeof *modes->counts);
	modes->granularity = granularity;
	return modes;
}

static size_t bin_of_value(const struct modes *modes, double value)
{
	const double bin = floor(bins_below(value)) - modes->first;

	return bin <= 0 ? 0 : bin >= (double)modes->count ? modes->count - 1 : (size_t)bin;
}

void modes_add(struct modes *modes, uint64_t value)
{
	modes->counts[bin_of_value(modes, (double)value)]++;
}

/* Spreads the count of each bin over the bins that its values may have come from. */
static double *resample(const struct modes *modes)
{
	double *out = xcalloc(modes->count * sizeof *out);

	for (size_t i = 0; i < modes->count; i++) {
		const double value = exp2((modes->first + (double)i + 0.5) / BINS_PER_OCTAVE),
			     half = (double)modes->granularity / 2;
		const size_t from = bin_of_value(modes, value - half),
			     to = bin_of_value(modes, value + half);

		for (size_t at = from; modes->counts[i] > 0 && at <= to; at++)
			out[at] += modes->counts[i] / (double)(to - from + 1);
	}
	return out;
}

static double *smooth(const double *counts, size_t count, size_t width)
{
	double *out = xcalloc(count * sizeof *out);

	for (size_t i = 0; i < count; i++)
		for (size_t at = i >= width ? i - width + 1 : 0; at < count && at < i + width; at++)
			out[i] += counts[at] * (double)(width - (at > i ? at - i : i - at)) /
				  (double)(width * width);
	return out;
}

static size_t lowest_between(const double *density, size_t from, size_t to)
{
	size_t lowest = from;

	for (size_t i = from; i < to; i++)
		if (density[i] < density[lowest])
			lowest = i;
	return lowest;
}

static bool is_local_peak(const double *density, size_t count, size_t at)
{
	return density[at] > 0 && (at == 0 || density[at - 1] <= density[at]) &&
	       (at + 1 == count || density[at + 1] < density[at]);
}

/* Merges the last of `used` peaks into `next`, and those before it, as long as no valley separates
 * them. Returns how many remain. */
static size_t merge_peaks(
	const double *density, const struct mode_peak *peaks, size_t used, struct mode_peak *next)
{
	const size_t added = next->at;

	for (; used; used--) {
		const struct mode_peak *last = &peaks[used - 1];
		const size_t valley = lowest_between(density, last->at, added);

		next->from = valley;
		if (density[valley] < VALLEY * fmin(density[last->at], density[added]))
			break;
		if (density[last->at] >= density[added])
			next->at = last->at;
		next->from = last->from;
	}
	return used;
}

/* Finds the peaks that valleys separate. `peaks` has room for `count` elements. Returns their
 * number. */
static size_t find_peaks(const double *density, size_t count, struct mode_peak *peaks)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		struct mode_peak next = { .at = i, .to = count };

		if (!is_local_peak(density, count, i))
			continue;
		used = merge_peaks(density, peaks, used, &next);
		if (used)
			peaks[used - 1].to = next.from;
		peaks[used++] = next;
	}
	return used;
}

/* Returns the duration at a point of the histogram, in bins from its first. */
static uint64_t duration_at_bin(const struct modes *modes, double bins)
{
	return clamp_to_u64(exp2((modes->first + bins) / BINS_PER_OCTAVE));
}

static void add_mode(
	const struct modes *modes, struct distribution *distribution, const struct mode_peak *peak)
{
	struct distribution_row *mode = &distribution->modes[distribution->mode_count];
	const double middle = exp2((modes->first + (double)peak->at + 0.5) / BINS_PER_OCTAVE);
	double count = 0;

	for (size_t i = peak->from; i < peak->to; i++)
		count += modes->counts[i];
	if (count < MODE_MIN_COUNT || count < MODE_MIN_SHARE * (double)distribution->count ||
		distribution->mode_count == DISTRIBUTION_MODES_MAX)
		return;
	*mode = (struct distribution_row){ .kind = DISTRIBUTION_MODE,
		.of = distribution,
		.count = clamp_to_u64(count),
		.from = max_u64(duration_at_bin(modes, (double)peak->from), distribution->min_ns),
		.to = min_u64(duration_at_bin(modes, (double)peak->to), distribution->max_ns),
		.node = distribution->whole.node };
	mode->value = max_u64(min_u64(clamp_to_u64(middle + 0.5), mode->to), mode->from);
	distribution->mode_count++;
}

void modes_find(struct modes *modes, struct distribution *distribution)
{
	const double range = bins_below((double)distribution->p75) -
			     bins_below((double)distribution->p25),
		     wanted = 2 * range / cbrt((double)distribution->count);
	double *spread_out = resample(modes),
	       *density = smooth(spread_out, modes->count,
		       wanted < 2                 ? 2
		       : wanted > BINS_PER_OCTAVE ? (size_t)BINS_PER_OCTAVE
						  : (size_t)wanted);
	struct mode_peak *peaks = xcalloc((modes->count + 1) * sizeof *peaks);
	const size_t count = find_peaks(density, modes->count, peaks);

	for (size_t i = 0; i < count && distribution->count >= DISTRIBUTION_COUNT_MIN; i++)
		add_mode(modes, distribution, &peaks[i]);
	free(peaks);
	free(density);
	free(spread_out);
	free(modes->counts);
	free(modes);
}
