/* SPDX-License-Identifier: MIT
 * Compares two samples of one metric by ranks. report/stats/change_test.h decides when.
 *
 * The test is the two-sided Mann-Whitney test in its normal approximation, corrected for ties
 * and continuity. It assumes no distribution, and outliers have little effect. Consecutive
 * values of one run are rarely independent, as a slow step often follows a slow one. So the
 * variance is multiplied by (1 + r) / (1 - r), if r is positive. r is the lag-1 autocorrelation of
 * the ranks: the correlation of each value's rank with that of the value measured after it. The
 * shift is the Hodges-Lehmann estimate, the median of the differences between any value of one
 * sample and any value of the other.
 *
 * The result is deterministic.
 */
#ifndef PPERF_REPORT_STATS_MANN_WHITNEY_H
#define PPERF_REPORT_STATS_MANN_WHITNEY_H

#include <stddef.h>

struct mann_whitney_result {
	/* Probability to measure at least this difference if the samples have the same
	 * distribution. */
	double p;
	double deviations; /* of the rank sum from its expected value, in standard deviations */
};

/* Compares two samples. The values must be in the order in which they were measured. */
struct mann_whitney_result mann_whitney_test(
	const double *before, size_t before_count, const double *after, size_t after_count);

/* Returns the factor by which the variance of a mean exceeds that of independent values: 1 for
 * fewer than 10 values of a side. */
double mann_whitney_variance_inflation(
	const double *before, size_t before_count, const double *after, size_t after_count);

/* Returns the Hodges-Lehmann estimate of after - before. Neither sample may be empty. */
double hodges_lehmann_shift(
	const double *before, size_t before_count, const double *after, size_t after_count);

/* Returns the median of at least one value, which need not be sorted. */
double median_of(const double *values, size_t count);

#endif
