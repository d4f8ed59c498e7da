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

#define BINS_PER_OCTAVE 64.0
#define VALLEY 0.7
#define MODE_MIN_SHARE 0.05
#define MODE_MIN_COUNT 5
#define MODE_SIGNIFICANCE 3.0
#define WIDEST_TRIANGLE 64u /* half width of a triangle, in bins */
#define NARROWEST_TRIANGLE 4u
#define PEAK_TOP 0.9 /* share of the highest density: denser bins give the peak's position */

struct mode_histogram {
	double *counts; /* instances, by bin */
	double first;   /* lower edge of the first bin, in bins above 1 ns */
	size_t count;
	uint64_t granularity;
};

/* A peak. */
struct mode_peak {
	size_t bin;      /* of the highest density */
	size_t from, to; /* its first bin, and the one after its last */
};

/* The smoothed histogram. */
struct mode_density {
	double *values; /* density in instances per bin, by bin */
	size_t count;   /* bins */
	size_t width;   /* half width of the triangle, in bins */
};

/* Returns the position of a duration `value` (ns), in bins above 1 ns. */
static double bins_above_1ns(double value)
{
	return BINS_PER_OCTAVE * log2(value < 1 ? 1 : value);
}

struct mode_histogram *mode_histogram_new(
	const struct distribution *distribution, uint64_t granularity)
{
	struct mode_histogram *histogram = xcalloc(sizeof *histogram);
	const double half = (double)granularity / 2;

	histogram->first = floor(bins_above_1ns((double)distribution->min_ns - half));
	histogram->count = (size_t)(floor(bins_above_1ns((double)distribution->max_ns + half)) -
				    histogram->first) +
			   1;
	histogram->counts = xcalloc(histogram->count * sizeof *histogram->counts);
	histogram->granularity = granularity;
	return histogram;
}

static size_t bin_of_value(const struct mode_histogram *histogram, double value)
{
	const double bin = floor(bins_above_1ns(value)) - histogram->first;

	return bin <= 0 ? 0 : bin >= (double)histogram->count ? histogram->count - 1 : (size_t)bin;
}

void mode_histogram_add(struct mode_histogram *histogram, uint64_t value)
{
	histogram->counts[bin_of_value(histogram, (double)value)]++;
}

/* Spreads the count of each bin over the bins that its values may have come from. */
static double *resample(const struct mode_histogram *histogram)
{
	double *out = xcalloc(histogram->count * sizeof *out);

	for (size_t i = 0; i < histogram->count; i++) {
		const double value = exp2((histogram->first + (double)i + 0.5) / BINS_PER_OCTAVE),
			     half = (double)histogram->granularity / 2;
		const size_t from = bin_of_value(histogram, value - half),
			     to = bin_of_value(histogram, value + half);

		for (size_t bin = from; histogram->counts[i] > 0 && bin <= to; bin++)
			out[bin] += histogram->counts[i] / (double)(to - from + 1);
	}
	return out;
}

/* Smooths `counts` by a triangle of density->width. */
static void smooth(const double *counts, struct mode_density *density)
{
	const size_t count = density->count, width = density->width;

	memset(density->values, 0, count * sizeof *density->values);
	for (size_t i = 0; i < count; i++)
		for (size_t bin = i >= width ? i - width + 1 : 0;
			counts[i] > 0 && bin < count && bin < i + width; bin++)
			density->values[bin] += counts[i] *
						(double)(width - (bin > i ? bin - i : i - bin)) /
						(double)(width * width);
}

/* Returns the bin with the lowest density among `from` to `to`, which is excluded. */
static size_t lowest_between(const double *density, size_t from, size_t to)
{
	size_t lowest = from;

	for (size_t i = from; i < to; i++)
		if (density[i] < density[lowest])
			lowest = i;
	return lowest;
}

static bool is_local_peak(const double *density, size_t count, size_t bin)
{
	return density[bin] > 0 && (bin == 0 || density[bin - 1] <= density[bin]) &&
	       (bin + 1 == count || density[bin + 1] < density[bin]);
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
	const double *values = density->values;

	for (; used; used--) {
		const struct mode_peak *last = &peaks[used - 1];
		const size_t valley = lowest_between(values, last->bin, next->bin);

		next->from = valley;
		if (separates(density, values[valley], fmin(values[last->bin], values[next->bin])))
			break;
		if (values[last->bin] >= values[next->bin])
			next->bin = last->bin;
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
		struct mode_peak next = { .bin = i, .to = density->count };

		if (!is_local_peak(density->values, density->count, i))
			continue;
		used = merge_peaks(density, peaks, used, &next);
		if (used)
			peaks[used - 1].to = next.from;
		peaks[used++] = next;
	}
	return used;
}

/* Returns the duration at a position in the histogram. `bins`: the position from the first bin. */
static uint64_t duration_at_bin(const struct mode_histogram *histogram, double bins)
{
	return clamp_to_u64(exp2((histogram->first + bins) / BINS_PER_OCTAVE));
}

/* Returns the mean position, in bins, of the peak's top: the bins around the highest one with at
 * least PEAK_TOP of its density, weighted by density. The highest bin itself depends on chance. */
static double peak_top_mean(const struct mode_density *density, const struct mode_peak *peak)
{
	const double least = PEAK_TOP * density->values[peak->bin];
	double sum = 0, weighted = 0;
	size_t from = peak->bin;

	while (from > peak->from && density->values[from - 1] >= least)
		from--;
	for (; from < peak->to && density->values[from] >= least; from++) {
		sum += density->values[from];
		weighted += density->values[from] * ((double)from + 0.5);
	}
	return weighted / sum;
}

/* Adds the peak to the modes of `distribution`. Returns false if it is too small, or if there are
 * DISTRIBUTION_MODES_MAX modes. */
static bool add_mode(const struct mode_histogram *histogram, struct distribution *distribution,
	const struct mode_density *density, const struct mode_peak *peak)
{
	struct distribution_row *mode = &distribution->modes[distribution->mode_count];
	const double position = exp2(
		(histogram->first + peak_top_mean(density, peak)) / BINS_PER_OCTAVE);
	double count = 0;

	for (size_t i = peak->from; i < peak->to; i++)
		count += histogram->counts[i];
	if (count < MODE_MIN_COUNT || count < MODE_MIN_SHARE * (double)distribution->count ||
		distribution->mode_count == DISTRIBUTION_MODES_MAX)
		return false;
	*mode = (struct distribution_row){ .kind = DISTRIBUTION_MODE,
		.of = distribution,
		.count = clamp_to_u64(count),
		.from = max_u64(
			duration_at_bin(histogram, (double)peak->from), distribution->min_ns),
		.to = min_u64(duration_at_bin(histogram, (double)peak->to), distribution->max_ns),
		.node = distribution->whole.node };
	mode->value = max_u64(min_u64(clamp_to_u64(position + 0.5), mode->to), mode->from);
	distribution->mode_count++;
	return true;
}

/* Replaces the modes of `distribution` by those of a density if they are more. */
static void take_modes(const struct mode_histogram *histogram, struct distribution *distribution,
	const struct mode_density *density, struct mode_peak *peaks)
{
	struct distribution *found = xcalloc(sizeof *found);
	const size_t count = find_peaks(density, peaks);

	*found = (struct distribution){ .count = distribution->count,
		.min_ns = distribution->min_ns,
		.max_ns = distribution->max_ns,
		.whole = distribution->whole };
	for (size_t i = 0; i < count; i++)
		add_mode(histogram, found, density, &peaks[i]);
	if (found->mode_count > distribution->mode_count) {
		memcpy(distribution->modes, found->modes, sizeof found->modes);
		distribution->mode_count = found->mode_count;
		for (uint32_t i = 0; i < found->mode_count; i++)
			distribution->modes[i].of = distribution;
	}
	free(found);
}

void mode_histogram_find(struct mode_histogram *histogram, struct distribution *distribution)
{
	double *spread_out = resample(histogram);
	struct mode_density density = { .values = xcalloc(
						histogram->count * sizeof *density.values),
		.count = histogram->count };
	struct mode_peak *peaks = xcalloc((histogram->count + 1) * sizeof *peaks);

	for (density.width = WIDEST_TRIANGLE; density.width >= NARROWEST_TRIANGLE &&
					      distribution->count >= DISTRIBUTION_COUNT_MIN;
		density.width /= 2) {
		smooth(spread_out, &density);
		take_modes(histogram, distribution, &density, peaks);
	}
	free(peaks);
	free(density.values);
	free(spread_out);
	free(histogram->counts);
	free(histogram);
}
