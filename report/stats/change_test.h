/* SPDX-License-Identifier: MIT
 * Tests whether a metric changed between two runs, from the samples of each run. This is the one
 * engine of `diff` and `gate`.
 *
 * | samples of the smaller side | test                                                          |
 * |-----------------------------|---------------------------------------------------------------|
 * | 1 or 2                      | none                                                          |
 * | 3 to 19                     | Welch's t test on logarithms, with all samples and trimmed    |
 * | 20 or more                  | Mann-Whitney (report/stats/mann_whitney.h)                    |
 *
 * A rank test has no power in few samples: the smallest p of 3 against 3 is 0.1, of 6 against 6
 * 0.002, and no multiplicity correction of hundreds of call paths leaves any of it. The t test
 * works on logarithms, because noise is a share of a duration. Where a value is 0 or negative,
 * values are divided by the mean of all instead. The sides may have different variances (Welch
 * 1947). If a side has 5 samples or more, the test is made twice: with all samples, and with a
 * fifth of each side trimmed at each end (Yuen 1974). So one slow step does not hide a change. The
 * smaller p is doubled.
 *
 * Three samples say little about their variance. change_test_all moderates the variance of each
 * call path towards that of all call paths of the same run (empirical Bayes, Smyth 2004), but only
 * upwards. A variance that would be improbably large under this prior (p < 0.01) is not changed.
 *
 * Values of one run are rarely independent. From 10 samples of each side on, the variance is
 * inflated by their autocorrelation, as in the Mann-Whitney test.
 *
 * The results of (a, b) and (b, a) have equal p, and shifts of opposite sign.
 */
#ifndef PPERF_REPORT_STATS_CHANGE_TEST_H
#define PPERF_REPORT_STATS_CHANGE_TEST_H

#include <stdbool.h>
#include <stddef.h>

#define CHANGE_TEST_METHOD                                                              \
	"Welch's t test on logarithms, variances moderated by those of all call paths " \
	"(n < 20), else Mann-Whitney U corrected for autocorrelation; shift: Hodges-Lehmann"
/* Significant: p of a metric of the whole step or run is below this. */
#define CHANGE_TEST_ALPHA 0.01
/* Significant: p of a call path, adjusted by Benjamini and Hochberg (1995), is below this false
 * discovery rate. With CHANGE_TEST_ALPHA it adds up to 0.04, and the prior is an estimate: of 100
 * pairs of equal runs at most 5 are reported to differ (measured by tests/bench/bench_diff.c). */
#define CHANGE_TEST_FDR 0.03
#define CHANGE_TEST_SAMPLES_MIN 3u /* of each side; fewer are not tested */

struct change_test {
	/* Probability to measure at least this difference if the runs do not differ; of
	 * change_test_all: adjusted for all pairs. 1 if not tested. */
	double p;
	double shift;     /* after - before */
	double median[2]; /* of the samples before and after */
	double error;     /* standard error of the shift, relative to the mean of both medians */
	bool tested;
};

/* The samples of one metric in both runs, in the order in which they were measured, and the result
 * of the test. */
struct sample_pair {
	const double *values[2]; /* before, after */
	size_t count[2];
	struct change_test *result;
};

/* Tests one pair, without moderated variances and without adjustment for multiple tests. If a side
 * has fewer than CHANGE_TEST_SAMPLES_MIN samples, `tested` is false and p is 1. */
struct change_test change_test_alone(
	const double *before, size_t before_count, const double *after, size_t after_count);

/* Tests each pair with moderated variances, and adjusts the probabilities for all that were tested.
 * Returns their number. */
size_t change_test_all(const struct sample_pair *pairs, size_t count);

/* Adjusts the probabilities of the pairs that were tested for the false discovery rate. Returns
 * their number. Reads nothing of a pair but its result. */
size_t change_test_adjust(const struct sample_pair *pairs, size_t count);

/* Returns (after - before) divided by the mean of |before| and |after|. 2 is "new", -2 is "gone".
 * Swapping the arguments changes the sign. Returns 0 if both are 0. */
double symmetric_change(double before, double after);

#endif
