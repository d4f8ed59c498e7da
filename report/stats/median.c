/* SPDX-License-Identifier: MIT */
#include "report/stats/median.h"
#include <stdint.h>

static void swap(double *a, double *b)
{
	const double kept = *a;

	*a = *b;
	*b = kept;
}

/* Reorders the values so that the one at `at` is where sorting would put it, and none before it is
 * greater. Pivots are chosen at random, so that no order of the values is slow. */
static void select_value(double *values, size_t count, size_t at)
{
	size_t low = 0, high = count - 1;
	uint32_t random = 1;

	while (low < high) {
		size_t i = low, j = high;
		double pivot;

		random = random * 1664525u + 1013904223u;
		pivot = values[low + ((uint64_t)random * (high - low + 1) >> 32)];
		while (i <= j) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i > j)
				break;
			swap(&values[i++], &values[j]);
			if (!j)
				break;
			j--;
		}
		if (at <= j && j < high)
			high = j;
		else if (at >= i)
			low = i;
		else
			return;
	}
}

double median_unsorted(double *values, size_t count)
{
	const size_t middle = count / 2;
	double before;

	select_value(values, count, middle);
	if (count % 2)
		return values[middle];
	before = values[0];
	for (size_t i = 1; i < middle; i++)
		before = values[i] > before ? values[i] : before;
	return (before + values[middle]) / 2;
}
