/* SPDX-License-Identifier: MIT */
#include "report/stats/theil_sen.h"
#include "report/base/alloc.h"
#include "report/stats/median.h"
#include <math.h>
#include <stdlib.h>

/* Copies at most THEIL_SEN_PAIRS_MAX evenly spaced pairs, with the first and the last. Returns
 * their number. */
static size_t pick_evenly(
	const struct clock_readings *pairs, size_t count, struct clock_readings *picked)
{
	const size_t most = count < THEIL_SEN_PAIRS_MAX ? count : THEIL_SEN_PAIRS_MAX;

	for (size_t i = 0; i < most; i++)
		picked[i] = pairs[most > 1 ? i * (count - 1) / (most - 1) : 0];
	return most;
}

static double clock_difference(const struct clock_readings *pair)
{
	return (double)(pair->other_ns - pair->own_ns);
}

/* Returns the drift: the median, over any two of the `pairs`, of the change of the clocks'
 * difference per nanosecond. Returns 0 if all were read at one time. */
static double median_slope(const struct clock_readings *pairs, size_t count)
{
	double *slopes = xcalloc(count * count / 2 * sizeof *slopes), slope;
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			if (pairs[j].own_ns != pairs[i].own_ns)
				slopes[used++] = (clock_difference(&pairs[j]) -
							 clock_difference(&pairs[i])) /
						 (double)(pairs[j].own_ns - pairs[i].own_ns);
	slope = used ? median_unsorted(slopes, used) : 0;
	free(slopes);
	return slope;
}

static void fit_offset(
	struct theil_sen_fit *fit, const struct clock_readings *pairs, size_t count, double drift)
{
	double *rest = xcalloc(count * sizeof *rest), most = 0;
	/* Kept as an integer, because a double has only 53 bits. */
	const int64_t first = pairs[0].other_ns - pairs[0].own_ns;

	fit->drift = drift;
	for (size_t i = 0; i < count; i++)
		rest[i] = (double)(pairs[i].other_ns - pairs[i].own_ns - first) -
			  drift * (double)(pairs[i].own_ns - fit->origin_ns);
	fit->offset_ns = first + llround(median_unsorted(rest, count));
	for (size_t i = 0; i < count; i++) {
		rest[i] = fabs((double)(pairs[i].other_ns - theil_sen_map(fit, pairs[i].own_ns)));
		most = rest[i] > most ? rest[i] : most;
	}
	fit->residual_ns = (uint64_t)llround(median_unsorted(rest, count));
	fit->residual_max_ns = (uint64_t)llround(most);
	free(rest);
}

struct theil_sen_fit theil_sen_fit(const struct clock_readings *pairs, size_t count)
{
	struct theil_sen_fit fit = { .pairs = 0 }, drifting;
	struct clock_readings picked[THEIL_SEN_PAIRS_MAX];
	bool significant;
	size_t used;
	double slope;

	if (count < THEIL_SEN_PAIRS_MIN)
		return fit;
	used = pick_evenly(pairs, count, picked);
	fit.pairs = count;
	fit.origin_ns = picked[0].own_ns;
	fit_offset(&fit, picked, used, 0);
	if (used < THEIL_SEN_DRIFT_PAIRS_MIN)
		return fit;
	drifting = fit;
	slope = median_slope(picked, used);
	fit_offset(&drifting, picked, used, slope);
	/* Accepts a drift only if it reduces the residual by more than a fifth, because noise
	 * has a slope too. */
	significant = drifting.residual_ns * 5 < fit.residual_ns * 4;
	return significant && fabs(slope) * 1e6 <= THEIL_SEN_DRIFT_PPM_MAX ? drifting : fit;
}

int64_t theil_sen_map(const struct theil_sen_fit *fit, int64_t own_ns)
{
	return own_ns + fit->offset_ns + llround(fit->drift * (double)(own_ns - fit->origin_ns));
}
