/* SPDX-License-Identifier: MIT */
#include "report/stats/mann_whitney.h"
#include "report/base/alloc.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEIGHBOURS_LEAST 10u /* values from which on neighbours are looked at */
#define DIFFERENCES 64u      /* of each side so many values at most make differences: evenly spaced ranks */

struct ranked {
	double value;
	size_t index;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	if (left->value != right->value)
		return left->value < right->value ? -1 : 1;
	return (left->index > right->index) - (left->index < right->index);
}

static int by_double(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Fills `ranks`, by index; equal values share theirs. Returns the sum of t³ - t over groups of t equal ones. */
static double rank_all(struct ranked *all, size_t count, double *ranks)
{
	double ties = 0;

	qsort(all, count, sizeof *all, by_value);
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

/* Sums over neighbours, of one side: what the correlation is made of. */
static void add_neighbours(const double *ranks, size_t count, double *together, double *alone)
{
	double mean = 0;

	for (size_t i = 0; i < count; i++)
		mean += ranks[i]; /* halves: exact, so equal ranks are no distance from it */
	mean /= (double)count;
	for (size_t i = 0; i < count; i++) {
		*alone += (ranks[i] - mean) * (ranks[i] - mean);
		if (i)
			*together += (ranks[i] - mean) * (ranks[i - 1] - mean);
	}
}

/* By how much the variance is larger than that of independent values. */
static double inflation(const double *ranks, size_t befores, size_t afters)
{
	double together = 0, alone = 0, correlation;

	if (befores < NEIGHBOURS_LEAST || afters < NEIGHBOURS_LEAST)
		return 1;
	add_neighbours(ranks, befores, &together, &alone);
	add_neighbours(ranks + befores, afters, &together, &alone);
	correlation = alone > 0 ? together / alone : 0;
	if (correlation <= 0)
		return 1;
	if (correlation > 0.98)
		correlation = 0.98;
	return (1 + correlation) / (1 - correlation);
}

static double probability(const double *ranks, double ties, size_t befores, size_t afters)
{
	const double n = (double)befores, m = (double)afters, all = n + m;
	double sum = 0, variance, off;

	for (size_t i = 0; i < befores; i++)
		sum += ranks[i];
	variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
	if (variance <= 0)
		return 1; /* all are equal */
	off = fabs(sum - n * (all + 1) / 2) - 0.5;
	if (off <= 0)
		return 1;
	return erfc(off / sqrt(variance * inflation(ranks, befores, afters)) / sqrt(2));
}

static double *sorted(const double *values, size_t count)
{
	double *copy = need(count * sizeof *copy);

	memcpy(copy, values, count * sizeof *copy);
	qsort(copy, count, sizeof *copy, by_double);
	return copy;
}

static double middle(const double *values, size_t count)
{
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The i-th of `wanted` values that stand for all. */
static double spaced(const double *values, size_t count, size_t i, size_t wanted)
{
	return values[(2 * i + 1) * count / (2 * wanted)];
}

static double hodges_lehmann(const double *before, size_t befores, const double *after, size_t afters)
{
	const size_t n = befores < DIFFERENCES ? befores : DIFFERENCES, m = afters < DIFFERENCES ? afters : DIFFERENCES;
	double *differences = need(n * m * sizeof *differences), shift;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < m; j++)
			differences[i * m + j] = spaced(after, afters, j, m) - spaced(before, befores, i, n);
	qsort(differences, n * m, sizeof *differences, by_double);
	shift = middle(differences, n * m);
	free(differences);
	return shift;
}

struct comparison compare(const double *before, size_t befores, const double *after, size_t afters)
{
	struct comparison comparison = { .p = 1, .tested = befores >= COMPARE_LEAST && afters >= COMPARE_LEAST };
	struct ranked *all;
	double *ranks, *left, *right;

	if (!comparison.tested)
		return comparison;
	all = need((befores + afters) * sizeof *all);
	ranks = need((befores + afters) * sizeof *ranks);
	for (size_t i = 0; i < befores + afters; i++)
		all[i] = (struct ranked){ .value = i < befores ? before[i] : after[i - befores], .index = i };
	comparison.p = probability(ranks, rank_all(all, befores + afters, ranks), befores, afters);
	left = sorted(before, befores);
	right = sorted(after, afters);
	comparison.median = middle(left, befores);
	comparison.shift = hodges_lehmann(left, befores, right, afters);
	free(left);
	free(right);
	free(ranks);
	free(all);
	return comparison;
}

void compare_holm(double *p, size_t count)
{
	struct ranked *all = need((count + 1) * sizeof *all);
	double highest = 0;

	for (size_t i = 0; i < count; i++)
		all[i] = (struct ranked){ .value = p[i], .index = i };
	qsort(all, count, sizeof *all, by_value);
	for (size_t i = 0; i < count; i++) {
		const double worth = all[i].value * (double)(count - i);

		highest = worth > highest ? worth : highest;
		p[all[i].index] = highest < 1 ? highest : 1;
	}
	free(all);
}
