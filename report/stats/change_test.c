/* SPDX-License-Identifier: MIT */
#include "report/stats/change_test.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/stats/mann_whitney.h"
#include "report/stats/student_t.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RANKED_MIN 20u         /* samples of each side from which on ranks are compared */
#define TRIMMED_SHARE 5u       /* a fifth of the samples is trimmed at each end */
#define PRIOR_VARIANCES_MIN 5u /* that a prior is fitted to */
#define PRIOR_FREEDOM_MAX 200.0
#define OUTLYING_VARIANCE 0.01
/* Relative. Logarithms of equal values differ by rounding. */
#define ERROR_MIN 1e-9
#define USE_LOGARITHMS 0.0 /* scale_of: the logarithms of the values are compared */

/* One side of a pair: what the t test needs. */
struct side_moments {
	double mean, variance; /* trimmed mean; winsorized variance */
	double freedom;        /* 0: not computed */
	double used;           /* samples that are not trimmed */
};

struct pair_moments {
	struct side_moments sides[2];
	double inflation;
};

/* The distribution of variances of one run's call paths. freedom 0: no prior. */
struct variance_prior {
	double variance, freedom;
};

/* Sets `mean` and `variance` of the sorted values: of all but the `cut` at each end, and of all
 * with these replaced by their nearest neighbours. */
static void measure_moments(
	struct side_moments *side, const double *sorted, size_t count, size_t cut)
{
	double winsorized_mean, squares = 0;

	side->used = (double)(count - 2 * cut);
	side->freedom = side->used - 1;
	for (size_t i = cut; i < count - cut; i++)
		side->mean += sorted[i] / side->used;
	winsorized_mean = (side->mean * side->used +
				  (double)cut * (sorted[cut] + sorted[count - 1 - cut])) /
			  (double)count;
	for (size_t i = 0; i < count; i++) {
		const size_t at = i < cut ? cut : i >= count - cut ? count - 1 - cut : i;

		squares += (sorted[at] - winsorized_mean) * (sorted[at] - winsorized_mean);
	}
	side->variance = squares / side->freedom;
}

/* Returns the divisor of all values, or USE_LOGARITHMS if all are positive. */
static double scale_of(const struct sample_pair *pair)
{
	double sum = 0;
	bool positive = true;

	for (unsigned which = 0; which < 2; which++) {
		double side_sum = 0;

		for (size_t i = 0; i < pair->count[which]; i++) {
			side_sum += fabs(pair->values[which][i]);
			positive &= pair->values[which][i] > 0;
		}
		sum += side_sum / (double)pair->count[which];
	}
	return positive ? USE_LOGARITHMS : sum > 0 ? sum / 2 : 1;
}

static void measure_pair(const struct sample_pair *pair, bool trimmed, struct pair_moments *moments)
{
	const double scale = scale_of(pair);

	*moments = (struct pair_moments){ .inflation = 1 };
	for (unsigned which = 0; which < 2; which++) {
		const size_t count = pair->count[which];
		double *scaled = xcalloc(count * sizeof *scaled);

		for (size_t i = 0; i < count; i++)
			scaled[i] = scale == USE_LOGARITHMS ? log(pair->values[which][i])
							    : pair->values[which][i] / scale;
		qsort(scaled, count, sizeof *scaled, compare_double);
		measure_moments(
			&moments->sides[which], scaled, count, trimmed ? count / TRIMMED_SHARE : 0);
		free(scaled);
	}
	moments->inflation = mann_whitney_variance_inflation(
		pair->values[0], pair->count[0], pair->values[1], pair->count[1]);
}

/* Returns whether a side has enough samples to be trimmed. */
static bool is_trimmable(const struct sample_pair *pair)
{
	return pair->count[0] >= TRIMMED_SHARE || pair->count[1] >= TRIMMED_SHARE;
}

/* Fits a scaled inverse chi-squared distribution to the variances of one side, by the mean and the
 * variance of their logarithms (Smyth 2004, section 6.2). */
static struct variance_prior fit_prior(
	const struct pair_moments *moments, size_t count, unsigned which)
{
	double sum = 0, squares = 0, expected = 0, used = 0, excess;
	struct variance_prior prior = { .freedom = 0 };

	for (size_t i = 0; i < count; i++) {
		const struct side_moments *side = &moments[i].sides[which];
		double e;

		if (side->freedom <= 0 || side->variance <= ERROR_MIN * ERROR_MIN)
			continue;
		e = log(side->variance) - digamma(side->freedom / 2) + log(side->freedom / 2);
		used++;
		sum += e;
		squares += e * e;
		expected += trigamma(side->freedom / 2);
	}
	if (used < PRIOR_VARIANCES_MIN)
		return prior;
	excess = (squares - sum * sum / used) / (used - 1) - expected / used;
	prior.freedom = excess > 0 ? 2 * trigamma_inverse(excess) : PRIOR_FREEDOM_MAX;
	if (prior.freedom > PRIOR_FREEDOM_MAX)
		prior.freedom = PRIOR_FREEDOM_MAX;
	prior.variance = exp(sum / used + digamma(prior.freedom / 2) - log(prior.freedom / 2));
	return prior;
}

/* Moderates the variance only upwards: noise differs between call paths by more than the prior
 * says, and a large variance must not be made small. */
static void moderate(struct side_moments *side, const struct variance_prior *prior)
{
	double moderated;

	if (prior->freedom <= 0 || f_upper_tail(side->variance / prior->variance, side->freedom,
					   prior->freedom) < OUTLYING_VARIANCE)
		return;
	moderated = (prior->freedom * prior->variance + side->freedom * side->variance) /
		    (prior->freedom + side->freedom);
	if (moderated > side->variance)
		side->variance = moderated;
	side->freedom += prior->freedom;
}

struct welch_result {
	double p, error;
};

/* Returns p and the standard error, by Welch's approximation of the degrees of freedom. */
static struct welch_result compare_moments(const struct pair_moments *moments)
{
	const struct side_moments *a = &moments->sides[0], *b = &moments->sides[1];
	const double floor = ERROR_MIN * ERROR_MIN,
		     before = moments->inflation * a->variance / a->used + floor,
		     after = moments->inflation * b->variance / b->used + floor,
		     square = before + after,
		     freedom = square * square /
			       (before * before / a->freedom + after * after / b->freedom);

	/* Counters of the program may have values whose squares are not finite. */
	if (!isfinite(square) || !isfinite(a->mean) || !isfinite(b->mean))
		return (struct welch_result){ 1, 0 };
	return (struct welch_result){
		student_t_two_sided((b->mean - a->mean) / sqrt(square), freedom), sqrt(square)
	};
}

static void set_welch(struct change_test *result, struct welch_result welch)
{
	result->p = welch.p;
	result->error = welch.error;
}

/* Adds the result of the test with trimmed samples: the smaller p counts twice (Bonferroni). */
static void keep_smaller_p(struct change_test *result, struct welch_result trimmed)
{
	if (trimmed.p < result->p) {
		result->p = trimmed.p;
		result->error = trimmed.error;
	}
	result->p = result->p < 0.5 ? 2 * result->p : 1;
}

static bool is_ranked(const struct sample_pair *pair)
{
	return pair->count[0] >= RANKED_MIN && pair->count[1] >= RANKED_MIN;
}

/* Sets p, and estimates the standard error: the difference of the medians is `deviations` standard
 * errors away from 0. */
static void compare_ranks(struct change_test *result, const struct sample_pair *pair)
{
	const struct mann_whitney_result ranked = mann_whitney_test(
		pair->values[0], pair->count[0], pair->values[1], pair->count[1]);

	result->p = ranked.p;
	result->error = ranked.deviations > 0
				? fabs(symmetric_change(result->median[0], result->median[1])) /
					  ranked.deviations
				: 0;
}

static bool describe_pair(const struct sample_pair *pair)
{
	struct change_test *result = pair->result;

	*result = (struct change_test){ .p = 1 };
	if (pair->count[0] < CHANGE_TEST_SAMPLES_MIN || pair->count[1] < CHANGE_TEST_SAMPLES_MIN)
		return false;
	result->tested = true;
	for (unsigned which = 0; which < 2; which++)
		result->median[which] = median_of(pair->values[which], pair->count[which]);
	result->shift = hodges_lehmann_shift(
		pair->values[0], pair->count[0], pair->values[1], pair->count[1]);
	return true;
}

struct change_test change_test_alone(
	const double *before, size_t before_count, const double *after, size_t after_count)
{
	struct change_test result;
	const struct sample_pair pair = { { before, after }, { before_count, after_count },
		&result };
	struct pair_moments moments;

	if (!describe_pair(&pair))
		return result;
	if (is_ranked(&pair)) {
		compare_ranks(&result, &pair);
		return result;
	}
	measure_pair(&pair, false, &moments);
	set_welch(&result, compare_moments(&moments));
	if (is_trimmable(&pair)) {
		measure_pair(&pair, true, &moments);
		keep_smaller_p(&result, compare_moments(&moments));
	}
	return result;
}

struct ranked_p {
	double p;
	size_t index;
};

COMPARE_BY_TWO(compare_ranked_p, struct ranked_p, p, index)

size_t change_test_adjust(const struct sample_pair *pairs, size_t count)
{
	struct ranked_p *all = xcalloc((count + 1) * sizeof *all);
	double lowest = 1;
	size_t tested = 0;

	for (size_t i = 0; i < count; i++)
		if (pairs[i].result->tested)
			all[tested++] = (struct ranked_p){ pairs[i].result->p, i };
	qsort(all, tested, sizeof *all, compare_ranked_p);
	for (size_t i = tested; i-- > 0;) {
		const double adjusted = all[i].p * (double)tested / (double)(i + 1);

		lowest = adjusted < lowest ? adjusted : lowest;
		pairs[all[i].index].result->p = lowest;
	}
	free(all);
	return tested;
}

/* Tests the pairs with fewer than RANKED_MIN samples on a side, with moderated variances.
 * `trimmed`: trims the samples at both ends, and keeps the smaller p of this call and of the one
 * with all samples, which must come first. */
static void compare_moderated(const struct sample_pair *pairs, size_t count, bool trimmed)
{
	struct pair_moments *moments = xcalloc((count + 1) * sizeof *moments);
	struct variance_prior priors[2];

	for (size_t i = 0; i < count; i++)
		if (pairs[i].result->tested && !is_ranked(&pairs[i]))
			measure_pair(&pairs[i], trimmed, &moments[i]);
	priors[0] = fit_prior(moments, count, 0);
	priors[1] = fit_prior(moments, count, 1);
	for (size_t i = 0; i < count; i++) {
		if (!pairs[i].result->tested || is_ranked(&pairs[i]) ||
			(trimmed && !is_trimmable(&pairs[i])))
			continue;
		moderate(&moments[i].sides[0], &priors[0]);
		moderate(&moments[i].sides[1], &priors[1]);
		if (trimmed)
			keep_smaller_p(pairs[i].result, compare_moments(&moments[i]));
		else
			set_welch(pairs[i].result, compare_moments(&moments[i]));
	}
	free(moments);
}

size_t change_test_all(const struct sample_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (describe_pair(&pairs[i]) && is_ranked(&pairs[i]))
			compare_ranks(pairs[i].result, &pairs[i]);
	compare_moderated(pairs, count, false);
	compare_moderated(pairs, count, true);
	return change_test_adjust(pairs, count);
}

double symmetric_change(double before, double after)
{
	const double both = fabs(before) + fabs(after);

	return both > 0 ? 2 * (after - before) / both : 0;
}
