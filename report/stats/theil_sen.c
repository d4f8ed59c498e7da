/* SPDX-License-Identifier: MIT */
#include "report/stats/theil_sen.h"
#include "report/base/alloc.h"
#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Every so manieth; the first and the last are among them. */
static size_t thin(const struct moment *moments, size_t count, struct moment *few)
{
	const size_t most = count < CLOCK_FIT_MOST ? count : CLOCK_FIT_MOST;

	for (size_t i = 0; i < most; i++)
		few[i] = moments[most > 1 ? i * (count - 1) / (most - 1) : 0];
	return most;
}

static double difference(const struct moment *moment)
{
	return (double)(moment->other_ns - moment->own_ns);
}

/* The median of the slopes of all pairs. */
static double slope_of(const struct moment *moments, size_t count)
{
	double *slopes = need(count * count / 2 * sizeof *slopes), slope;
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			if (moments[j].own_ns != moments[i].own_ns)
				slopes[used++] = (difference(&moments[j]) - difference(&moments[i])) /
						 (double)(moments[j].own_ns - moments[i].own_ns);
	slope = used ? median(slopes, used) : 0;
	free(slopes);
	return slope;
}

static void place(struct clock_fit *fit, const struct moment *moments, size_t count, double drift)
{
	double *rest = need(count * sizeof *rest);
	const int64_t first = moments[0].other_ns - moments[0].own_ns; /* kept apart: a double has 53 bits */

	fit->drift = drift;
	for (size_t i = 0; i < count; i++)
		rest[i] = (double)(moments[i].other_ns - moments[i].own_ns - first) -
			  drift * (double)(moments[i].own_ns - fit->origin_ns);
	fit->offset_ns = first + llround(median(rest, count));
	for (size_t i = 0; i < count; i++)
		rest[i] = fabs((double)(moments[i].other_ns - clock_fitted(fit, moments[i].own_ns)));
	fit->residual_ns = (uint64_t)llround(median(rest, count));
	fit->residual_most_ns = (uint64_t)llround(rest[count - 1]);
	free(rest);
}

struct clock_fit clock_fit(const struct moment *moments, size_t count)
{
	struct clock_fit fit = { .moments = 0 }, drifting;
	struct moment few[CLOCK_FIT_MOST];
	size_t used;
	double slope;

	if (count < CLOCK_FIT_LEAST)
		return fit;
	used = thin(moments, count, few);
	fit.moments = count;
	fit.origin_ns = few[0].own_ns;
	place(&fit, few, used, 0);
	if (used < CLOCK_FIT_DRIFT)
		return fit;
	drifting = fit;
	slope = slope_of(few, used);
	place(&drifting, few, used, slope);
	/* It must explain something: noise has a slope, too. */
	return fabs(slope) * 1e6 <= CLOCK_FIT_PPM && drifting.residual_ns * 5 < fit.residual_ns * 4 ? drifting : fit;
}

int64_t clock_fitted(const struct clock_fit *fit, int64_t own_ns)
{
	return own_ns + fit->offset_ns + llround(fit->drift * (double)(own_ns - fit->origin_ns));
}
