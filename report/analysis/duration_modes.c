/* SPDX-License-Identifier: MIT
 *
 * Finds out whether durations have one usual value or several.
 *
 * 1. A histogram of the logarithm of durations has 64 bins an octave (1.1 % each).
 * 2. Each value is spread over the values that it may have had before it was rounded. The unit of
 *    rounding is the greatest common divisor of all values.
 * 3. The histogram is smoothed by triangles with half widths of 64, 32, 16, 8 and 4 bins. One width
 *    does not fit all: a wide one joins modes, a narrow one makes modes of noise.
 * 4. Peaks are modes. Two peaks are one mode unless the valley between them is below 70 % of the
 *    lower peak, and lower than chance makes it: by MODE_SIGNIFICANCE standard errors of the
 *    difference (counts are Poisson distributed). Peaks with less than 5 % of the instances, or
 *    fewer than 5, are dropped.
 * 5. The widest triangle that finds the most modes is used.
 *
 * tests/report/test_duration_modes.c holds how often the number of modes is right on mixtures with
 * known modes. doc/metrics.md has the table.
 */
#include "report/analysis/duration_distribution.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BINS_PER_OCTAVE 64.0 /* of an octave */
#define VALLEY 0.7
#define MODE_MIN_SHARE 0.05
#define MODE_MIN_COUNT 5
#define MODE_SIGNIFICANCE 3.0
#define WIDEST_KERNEL 64u /* half width of a triangle, in bins */
#define NARROWEST_KERNEL 4u
#define PEAK_TOP 0.9 /* what is denser than this share of the peak gives its position */

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

/* The smoothed histogram. */
struct mode_density {
	double *at; /* instances per bin, by bin */
	size_t count, width;
};

static double bins_below(double value)
{
	return BINS_PER_OCTAVE * log2(value < 1 ? 1 : value);
}

struct modes *modes_new(const struct distribution *distribution, uint64_t granularity)
{
	struct modes *modes = xcalloc(sizeof *modes);
	const double half = (double)granularity / 2;

	modes->first = floor(bins_below((double)distribution->min_ns - half));
	modes->count = (size_t)(floor(bins_below((double)distribution->max_ns + half)) -
				modes->first) +
		       1;
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

static void smooth(const double *counts, struct mode_density *density)
{
	const size_t count = density->count, width = density->width;

	memset(density->at, 0, count * sizeof *density->at);
	for (size_t i = 0; i < count; i++)
		for (size_t at = i >= width ? i - width + 1 : 0;
			counts[i] > 0 && at < count && at < i + width; at++)
			density->at[at] += counts[i] *
					   (double)(width - (at > i ? at - i : i - at)) /
					   (double)(width * width);
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

/* Returns whether a valley separates two peaks. `lower`: the density at the lower one. The variance
 * of a density of Poisson counts that a triangle smooths is 2 / (3 * width) of the density. */
static bool separates(const struct mode_density *density, double valley, double lower)
{
	const double variance = (lower + valley) * 2 / (3 * (double)density->width);

	return valley < VALLEY * lower && lower - valley > MODE_SIGNIFICANCE * sqrt(variance);
}

/* Merges the last of `used` peaks into `next`, and those before it, as long as no valley separates
 * them. Returns how many remain. */
static size_t merge_peaks(const struct mode_density *density, const struct mode_peak *peaks,
	size_t used, struct mode_peak *next)
{
	const double *at = density->at;

	for (; used; used--) {
		const struct mode_peak *last = &peaks[used - 1];
		const size_t valley = lowest_between(at, last->at, next->at);

		next->from = valley;
		if (separates(density, at[valley], fmin(at[last->at], at[next->at])))
			break;
		if (at[last->at] >= at[next->at])
			next->at = last->at;
		next->from = last->from;
	}
	return used;
}

/* Finds the peaks that valleys separate. `peaks` has room for an element per bin. Returns their
 * number. */
static size_t find_peaks(const struct mode_density *density, struct mode_peak *peaks)
{
	size_t used = 0;

	for (size_t i = 0; i < density->count; i++) {
		struct mode_peak next = { .at = i, .to = density->count };

		if (!is_local_peak(density->at, density->count, i))
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

/* Returns the centre of the peak's top, in bins. The highest bin itself depends on chance. */
static double peak_centre(const struct mode_density *density, const struct mode_peak *peak)
{
	const double least = PEAK_TOP * density->at[peak->at];
	double sum = 0, weighted = 0;
	size_t from = peak->at;

	while (from > peak->from && density->at[from - 1] >= least)
		from--;
	for (; from < peak->to && density->at[from] >= least; from++) {
		sum += density->at[from];
		weighted += density->at[from] * ((double)from + 0.5);
	}
	return weighted / sum;
}

static bool add_mode(const struct modes *modes, struct distribution *distribution,
	const struct mode_density *density, const struct mode_peak *peak)
{
	struct distribution_row *mode = &distribution->modes[distribution->mode_count];
	const double centre = exp2((modes->first + peak_centre(density, peak)) / BINS_PER_OCTAVE);
	double count = 0;

	for (size_t i = peak->from; i < peak->to; i++)
		count += modes->counts[i];
	if (count < MODE_MIN_COUNT || count < MODE_MIN_SHARE * (double)distribution->count ||
		distribution->mode_count == DISTRIBUTION_MODES_MAX)
		return false;
	*mode = (struct distribution_row){ .kind = DISTRIBUTION_MODE,
		.of = distribution,
		.count = clamp_to_u64(count),
		.from = max_u64(duration_at_bin(modes, (double)peak->from), distribution->min_ns),
		.to = min_u64(duration_at_bin(modes, (double)peak->to), distribution->max_ns),
		.node = distribution->whole.node };
	mode->value = max_u64(min_u64(clamp_to_u64(centre + 0.5), mode->to), mode->from);
	distribution->mode_count++;
	return true;
}

/* Replaces the modes of `distribution` by those of a density if they are more. */
static void take_modes(const struct modes *modes, struct distribution *distribution,
	const struct mode_density *density, struct mode_peak *peaks)
{
	struct distribution *found = xcalloc(sizeof *found);
	const size_t count = find_peaks(density, peaks);

	*found = (struct distribution){ .count = distribution->count,
		.min_ns = distribution->min_ns,
		.max_ns = distribution->max_ns,
		.whole = distribution->whole };
	for (size_t i = 0; i < count; i++)
		add_mode(modes, found, density, &peaks[i]);
	if (found->mode_count > distribution->mode_count) {
		memcpy(distribution->modes, found->modes, sizeof found->modes);
		distribution->mode_count = found->mode_count;
		for (uint32_t i = 0; i < found->mode_count; i++)
			distribution->modes[i].of = distribution;
	}
	free(found);
}

void modes_find(struct modes *modes, struct distribution *distribution)
{
	double *spread_out = resample(modes);
	struct mode_density density = { .at = xcalloc(modes->count * sizeof *density.at),
		.count = modes->count };
	struct mode_peak *peaks = xcalloc((modes->count + 1) * sizeof *peaks);

	for (density.width = WIDEST_KERNEL;
		density.width >= NARROWEST_KERNEL && distribution->count >= DISTRIBUTION_COUNT_MIN;
		density.width /= 2) {
		smooth(spread_out, &density);
		take_modes(modes, distribution, &density, peaks);
	}
	free(peaks);
	free(density.at);
	free(spread_out);
	free(modes->counts);
	free(modes);
}
