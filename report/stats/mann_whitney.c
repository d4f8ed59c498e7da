/* SPDX-License-Identifier: MIT */
#include "report/stats/mann_whitney.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* values of each side from which on the correlation of neighbours is computed */
#define NEIGHBOURS_MIN 10u
/* Values of each side that are used for differences, at evenly spaced ranks. */
#define DIFFERENCES_MAX 64u

struct ranked_value {
	double value;
	size_t index;
};

COMPARE_BY_TWO(compare_ranked_values, struct ranked_value, value, index)

/* Stores the rank of each value at its index in `ranks`. Equal values share the mean of their
 * ranks. Returns the sum of t³ - t over groups of t equal values. */
static double rank_all(struct ranked_value *all, size_t count, double *ranks)
{
	double ties = 0;

	qsort(all, count, sizeof *all, compare_ranked_values);
	for (size_t first = 0, end; first < count; first = end) {
		double size;

		for (end = first + 1; end < count && all[end].value == all[first].value; end++)
			;
		size = (double)(end - first);
		ties += size * size * size - size;
		for (size_t i = first; i < end; i++)
			ranks[all[i].index] = (double)first + (size + 1) / 2;
	}
	return ties;
}

/* Adds the sums of one side from which the correlation of neighbours' ranks is computed.
 * `together`: products of neighbours. `alone`: squares. */
static void add_neighbour_products(
	const double *ranks, size_t count, double *together, double *alone)
{
	double mean = 0;

	for (size_t i = 0; i < count; i++)
		mean += ranks[i]; /* ranks are multiples of 1/2, so the sum is exact */
	mean /= (double)count;
	for (size_t i = 0; i < count; i++) {
		*alone += (ranks[i] - mean) * (ranks[i] - mean);
		if (i)
			*together += (ranks[i] - mean) * (ranks[i - 1] - mean);
	}
}

/* Returns the factor by which the variance exceeds that of independent values. */
static double variance_inflation(const double *ranks, size_t before_count, size_t after_count)
{
	double together = 0, alone = 0, correlation;

	if (before_count < NEIGHBOURS_MIN || after_count < NEIGHBOURS_MIN)
		return 1;
	add_neighbour_products(ranks, before_count, &together, &alone);
	add_neighbour_products(ranks + before_count, after_count, &together, &alone);
	correlation = alone > 0 ? together / alone : 0;
	if (correlation <= 0)
		return 1;
	if (correlation > 0.98)
		correlation = 0.98;
	return (1 + correlation) / (1 - correlation);
}

/* Ranks both samples together; `ranks` has room for both. Returns the sum of t³ - t. */
static double rank_both(const double *before, size_t before_count, const double *after,
	size_t after_count, double *ranks)
{
	struct ranked_value *all = xcalloc((before_count + after_count) * sizeof *all);
	double ties;

	for (size_t i = 0; i < before_count + after_count; i++)
		all[i] = (struct ranked_value){
			.value = i < before_count ? before[i] : after[i - before_count], .index = i
		};
	ties = rank_all(all, before_count + after_count, ranks);
	free(all);
	return ties;
}

double mann_whitney_variance_inflation(
	const double *before, size_t before_count, const double *after, size_t after_count)
{
	double *ranks, inflation;

	if (before_count < NEIGHBOURS_MIN || after_count < NEIGHBOURS_MIN)
		return 1;
	ranks = xcalloc((before_count + after_count) * sizeof *ranks);
	rank_both(before, before_count, after, after_count, ranks);
	inflation = variance_inflation(ranks, before_count, after_count);
	free(ranks);
	return inflation;
}

/* Returns how many standard deviations the rank sum is off. 0 if all values are equal. */
static double deviations_of(
	const double *ranks, double ties, size_t before_count, size_t after_count)
{
	const double n = (double)before_count, m = (double)after_count, all = n + m;
	const double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
	double sum = 0, off;

	for (size_t i = 0; i < before_count; i++)
		sum += ranks[i];
	off = fabs(sum - n * (all + 1) / 2) - 0.5;
	return variance <= 0 || off <= 0
		       ? 0
		       : off / sqrt(variance *
				       variance_inflation(ranks, before_count, after_count));
}

static double *sorted_copy(const double *values, size_t count)
{
	double *copy = xcalloc(count * sizeof *copy);

	memcpy(copy, values, count * sizeof *copy);
	qsort(copy, count, sizeof *copy, compare_double);
	return copy;
}

static double median_of_sorted(const double *values, size_t count)
{
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double median_of(const double *values, size_t count)
{
	double *sorted = sorted_copy(values, count);
	const double median = median_of_sorted(sorted, count);

	free(sorted);
	return median;
}

/* Returns the value with number `i` of `wanted` evenly spaced ones. */
static double evenly_spaced_value(const double *values, size_t count, size_t i, size_t wanted)
{
	return values[(2 * i + 1) * count / (2 * wanted)];
}

static double median_difference(
	const double *before, size_t before_count, const double *after, size_t after_count)
{
	const size_t n = before_count < DIFFERENCES_MAX ? before_count : DIFFERENCES_MAX,
		     m = after_count < DIFFERENCES_MAX ? after_count : DIFFERENCES_MAX;
	double *differences = xcalloc(n * m * sizeof *differences), shift;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < m; j++)
			differences[i * m + j] = evenly_spaced_value(after, after_count, j, m) -
						 evenly_spaced_value(before, before_count, i, n);
	qsort(differences, n * m, sizeof *differences, compare_double);
	shift = median_of_sorted(differences, n * m);
	free(differences);
	return shift;
}

double hodges_lehmann_shift(
	const double *before, size_t before_count, const double *after, size_t after_count)
{
	double *left = sorted_copy(before, before_count), *right = sorted_copy(after, after_count);
	const double shift = median_difference(left, before_count, right, after_count);

	free(left);
	free(right);
	return shift;
}

struct mann_whitney_result mann_whitney_test(
	const double *before, size_t before_count, const double *after, size_t after_count)
{
	double *ranks = xcalloc((before_count + after_count) * sizeof *ranks);
	const double ties = rank_both(before, before_count, after, after_count, ranks);
	struct mann_whitney_result result = { .deviations = deviations_of(
						      ranks, ties, before_count, after_count) };

	result.p = erfc(result.deviations / sqrt(2));
	free(ranks);
	return result;
}
