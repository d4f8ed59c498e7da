/* SPDX-License-Identifier: MIT */
#include "report/stats/line_fit.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <math.h>
#include <stdlib.h>

COMPARE_BY_TWO(by_position, struct line_point, x, y)

static int by_number(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return COMPARE(left, right);
}

/* Returns the value with `share` of the sorted values below it. Between two values: their mean
 * where they are the middle ones. */
static double sorted_quantile(const double *values, size_t count, double share)
{
	const double at = share * (double)(count - 1);
	const size_t below = (size_t)at;

	return below + 1 < count
		       ? values[below] + (at - (double)below) * (values[below + 1] - values[below])
		       : values[below];
}

static double median_of(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_number);
	return sorted_quantile(values, count, 0.5);
}

/* Returns the median of what the slope leaves of y. */
static double intercept_of(
	const struct line_point *points, size_t count, double slope, double *values)
{
	for (size_t i = 0; i < count; i++)
		values[i] = points[i].y - slope * points[i].x;
	return median_of(values, count);
}

/* Fills `slopes` with those between points of different x, sorted. Returns their number. */
static size_t slopes_between(const struct line_point *points, size_t count, double *slopes)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			if (points[j].x > points[i].x)
				slopes[found++] = (points[j].y - points[i].y) /
						  (points[j].x - points[i].x);
	qsort(slopes, found, sizeof *slopes, by_number);
	return found;
}

bool line_fit(struct line_point *points, size_t count, struct line_fit *fit)
{
	const size_t used = count < LINE_FIT_POINTS_MAX ? count : LINE_FIT_POINTS_MAX;
	struct line_point chosen[LINE_FIT_POINTS_MAX];
	double values[LINE_FIT_POINTS_MAX], *slopes;
	size_t pairs;

	if (count < LINE_FIT_POINTS_MIN)
		return false;
	qsort(points, count, sizeof *points, by_position);
	for (size_t i = 0; i < used; i++)
		chosen[i] = points[i * (count - 1) / (used - 1)];
	slopes = xcalloc(used * used / 2 * sizeof *slopes);
	pairs = slopes_between(chosen, used, slopes);
	if (pairs) {
		fit->slope = sorted_quantile(slopes, pairs, 0.5);
		fit->intercept_low = intercept_of(
			chosen, used, sorted_quantile(slopes, pairs, 0.9), values);
		fit->intercept_high = intercept_of(
			chosen, used, sorted_quantile(slopes, pairs, 0.1), values);
		fit->intercept = intercept_of(chosen, used, fit->slope, values);
		for (size_t i = 0; i < used; i++)
			values[i] = fabs(chosen[i].y - fit->intercept - fit->slope * chosen[i].x);
		fit->spread = median_of(values, used);
		fit->median_y = intercept_of(chosen, used, 0, values);
	}
	free(slopes);
	return pairs > 0;
}
