/* SPDX-License-Identifier: MIT
 * compare.h: whether two samples of one figure differ by more than noise.
 *
 * The test is that of Mann and Whitney, two-sided, by the normal approximation with corrections for ties and
 * continuity: no distribution is assumed, and a few far values do not matter. Values of one run that come one after
 * the other are rarely independent (a slow step is followed by a slow one); so the variance is made larger by
 * (1 + r) / (1 - r), r: the correlation of neighbours' ranks, where that is above 0. The change is the estimate of
 * Hodges and Lehmann, the median of all differences.
 *
 * Nothing is random here: the same values give the same answer.
 */
#ifndef PPERF_REPORT_STATS_MANN_WHITNEY_H
#define PPERF_REPORT_STATS_MANN_WHITNEY_H

#include <stdbool.h>
#include <stddef.h>

#define MANN_WHITNEY_METHOD                                                                        \
	"Mann-Whitney U, neighbours' correlation in its variance; shift: Hodges-Lehmann; p: Holm " \
	"over all tested"
#define MANN_WHITNEY_ALPHA 0.01    /* of p, corrected: what is below is more than noise */
#define MANN_WHITNEY_VALUES_MIN 5u /* values on each side; fewer are not tested */

struct mann_whitney_result {
	double p; /* how likely is so much of a difference, or more, where there is none; 1 if not tested */
	double shift;  /* after - before */
	double median; /* of the values before */
	bool tested;
};

/* The values in the order in which they were measured. */
struct mann_whitney_result mann_whitney_test(
	const double *before, size_t before_count, const double *after, size_t after_count);

/* Holm's correction, in place: `p` of `count` tests become what they are worth together. */
void mann_whitney_holm(double *p, size_t count);

#endif
