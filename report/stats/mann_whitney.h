/* SPDX-License-Identifier: MIT
 * Tests whether two samples of one metric differ by more than noise.
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

#include <stdbool.h>
#include <stddef.h>

#define MANN_WHITNEY_METHOD                                                                  \
	"Mann-Whitney U, variance corrected for autocorrelation; shift: Hodges-Lehmann; p: " \
	"Holm's correction over all tested"
#define MANN_WHITNEY_ALPHA 0.01    /* a corrected p below this means more than noise */
#define MANN_WHITNEY_VALUES_MIN 5u /* values of each side; smaller samples are not tested */

struct mann_whitney_result {
	/* Probability to measure at least this difference if the samples have the same
	 * distribution; 1 if not tested. */
	double p;
	double shift;  /* after - before */
	double median; /* of the values before */
	bool tested;
};

/* Compares two samples. The values must be in the order in which they were measured. */
struct mann_whitney_result mann_whitney_test(
	const double *before, size_t before_count, const double *after, size_t after_count);

/* Two samples of one metric, and the result of their test. */
struct sample_pair {
	const double *values[2]; /* before, after */
	size_t count[2];
	struct mann_whitney_result *result;
};

/* Compares each pair, and corrects the probabilities for all that were tested. Returns their
 * number. */
size_t mann_whitney_test_all(const struct sample_pair *pairs, size_t count);

/* Applies Holm's correction for `count` tests to `p`, in place. */
void mann_whitney_holm(double *p, size_t count);

/* Returns the median of at least one value, which need not be sorted. */
double median_of(const double *values, size_t count);

#endif
