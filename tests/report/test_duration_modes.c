/* SPDX-License-Identifier: MIT
 * test_duration_modes.c: modes of durations against mixtures whose modes are known. The table in
 * doc/metrics.md, section `distribution`, is what this program prints with an argument.
 */
#include "report/analysis/duration_distribution.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PARTS_MAX 4
#define SAMPLES 100 /* of each mixture and size */

/* A part of a mixture: log-normal, or uniform up to twice `at` if `sigma` is negative. */
struct part {
	double weight, at, sigma;
};

struct mixture {
	const char *name;
	struct part parts[PARTS_MAX];
	uint32_t modes;
	double tail;       /* share of instances that an exponential tail makes slower */
	uint64_t rounding; /* unit of the clock, in ns */
};

static const struct mixture mixtures[] = {
	{ "one, ±2 %", { { 1, 25000, .02 } }, 1, 0, 1 },
	{ "one, ±30 %", { { 1, 25000, .3 } }, 1, 0, 1 },
	{ "one, uniform from 1 to 2", { { 1, 25000, -1 } }, 1, 0, 1 },
	{ "one, ±5 %, 10 % in a tail", { { 1, 25000, .05 } }, 1, .1, 1 },
	{ "one, clock of 4 %", { { 1, 25000, .1 } }, 1, 0, 1000 },
	{ "two that overlap", { { .5, 25000, .05 }, { .5, 27000, .05 } }, 1, 0, 1 },
	{ "two of 50 %, 10 % apart", { { .5, 25000, .02 }, { .5, 27500, .02 } }, 2, 0, 1 },
	{ "90 and 10 %, 25 % apart", { { .9, 20000, .03 }, { .1, 25000, .03 } }, 2, 0, 1 },
	{ "90 and 10 %, ten times", { { .9, 20000, .1 }, { .1, 200000, .1 } }, 2, 0, 1 },
	{ "a sharp and a wide one", { { .5, 20000, .01 }, { .5, 40000, .2 } }, 2, 0, 1 },
	{ "three of 60, 25, 15 %", { { .6, 19200, .05 }, { .25, 25700, .05 }, { .15, 31900, .05 } },
		3, 0, 1 },
	{ "three, 5 % in a tail", { { .8, 19200, .03 }, { .1, 25700, .03 }, { .1, 38000, .03 } }, 3,
		.05, 1 },
	{ "four of 25 %",
		{ { .25, 10000, .05 }, { .25, 14000, .05 }, { .25, 20000, .05 },
			{ .25, 40000, .05 } },
		4, 0, 1 },
};

static const uint32_t sizes[] = { 20, 50, 200, 1000, 10000 };

/* What was found in the samples of a mixture: how often the number of modes was right, in percent,
 * and the mean distance of a mode from the nearest true one, in percent. */
struct hits {
	unsigned right;
	double error;
};

static uint64_t seed = 88172645463325252u;

static double chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	const double radius = sqrt(-2 * log(chance() + 1e-300));

	return radius * cos(6.283185307179586 * chance());
}

static uint64_t draw(const struct mixture *mixture)
{
	const struct part *part = mixture->parts;
	double pick = chance(), value;

	while (part + 1 < mixture->parts + PARTS_MAX && part[1].weight > 0 && pick > part->weight)
		pick -= part++->weight;
	value = part->at * (part->sigma < 0 ? 1 + chance() : exp(part->sigma * normal()));
	if (chance() < mixture->tail)
		value *= 1 - 0.7 * log(chance() + 1e-12);
	return (uint64_t)(value / (double)mixture->rounding + 0.5) * mixture->rounding;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static struct distribution *find_modes(const uint64_t *sorted, uint32_t count, uint64_t rounding)
{
	struct distribution *found = calloc(1, sizeof *found);
	struct mode_histogram *modes;

	found->count = count;
	found->min_ns = sorted[0];
	found->max_ns = sorted[count - 1];
	modes = mode_histogram_new(found, rounding);
	for (uint32_t i = 0; i < count; i++)
		mode_histogram_add(modes, sorted[i]);
	mode_histogram_find(modes, found);
	return found;
}

static double nearest(const struct mixture *mixture, double value)
{
	double least = 1e9;

	for (int i = 0; i < PARTS_MAX && mixture->parts[i].weight > 0; i++)
		least = fmin(least, fabs(value / mixture->parts[i].at - 1) * 100);
	return least;
}

static struct hits try_mixture(const struct mixture *mixture, uint32_t count)
{
	uint64_t *values = calloc(count, sizeof *values);
	struct hits hits = { .right = 0 };
	unsigned modes = 0;

	for (int sample = 0; sample < SAMPLES; sample++) {
		struct distribution *found;

		for (uint32_t i = 0; i < count; i++)
			values[i] = draw(mixture);
		qsort(values, count, sizeof *values, by_value);
		found = find_modes(values, count, mixture->rounding);
		hits.right += found->mode_count == mixture->modes;
		for (uint32_t i = 0; i < found->mode_count; i++, modes++)
			hits.error += nearest(mixture, (double)found->modes[i].value);
		free(found);
	}
	free(values);
	hits.right = hits.right * 100 / SAMPLES;
	hits.error /= modes ? modes : 1;
	return hits;
}

static void print_table(void)
{
	for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++) {
		printf("| %s |", mixtures[i].name);
		for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
			const struct hits hits = try_mixture(&mixtures[i], sizes[at]);

			if (mixtures[i].parts[0].sigma < 0)
				printf(" %u |", hits.right);
			else
				printf(" %u (%.1f) |", hits.right, hits.error);
		}
		printf("\n");
	}
}

START_TEST(one_mode_is_not_split)
{
	for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
		for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++)
			if (mixtures[i].modes == 1)
				ck_assert_msg(try_mixture(&mixtures[i], sizes[at]).right >= 90,
					"%s of %u", mixtures[i].name, sizes[at]);
}
END_TEST

START_TEST(all_modes_of_a_thousand_are_found_where_they_are)
{
	for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
		for (size_t at = 3; at < sizeof sizes / sizeof *sizes; at++) {
			const struct hits hits = try_mixture(&mixtures[i], sizes[at]);

			if (mixtures[i].modes == 1)
				continue;
			ck_assert_msg(hits.right >= 95, "%s of %u: %u %%", mixtures[i].name,
				sizes[at], hits.right);
			ck_assert_msg(hits.error <= 1, "%s: %.2f %%", mixtures[i].name, hits.error);
		}
}
END_TEST

/* A low peak beside a high one must not join the high one with a third. */
START_TEST(a_low_peak_does_not_join_its_neighbours)
{
	static const unsigned counts[] = { 104, 132, 52, 29, 131, 564, 550, 640, 235, 44, 62, 41,
		87, 85, 33, 56, 27, 11 };
	static uint64_t values[4000];
	struct distribution *found;
	uint32_t count = 0;

	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
		for (unsigned at = 0; at < counts[i]; at++)
			values[count++] = (19 + i) * 1000;
	found = find_modes(values, count, 1000);
	ck_assert_uint_eq(found->mode_count, 3);
	ck_assert_uint_le(found->modes[0].value - 19000, 1000);
	ck_assert_uint_le(found->modes[1].value - 25000, 1000);
	ck_assert_uint_le(found->modes[2].value - 31000, 1000);
	free(found);
}
END_TEST

/* Durations of a clock of 1 us that are all 1 or 2 us. */
START_TEST(a_coarse_clock_does_not_move_a_mode)
{
	static uint64_t values[1000];
	struct distribution *found;

	for (unsigned i = 0; i < 1000; i++)
		values[i] = i < 990 ? 1000 : 2000;
	found = find_modes(values, 1000, 1000);
	ck_assert_uint_eq(found->mode_count, 1);
	ck_assert_uint_eq(found->modes[0].value, 1000);
	free(found);
}
END_TEST

int main(int count, char **arguments)
{
	Suite *suite = suite_create("duration_modes");
	TCase *cases = tcase_create("duration_modes");
	SRunner *runner = srunner_create(suite);
	int failed;

	if (count > 1 && arguments[1]) {
		print_table();
		return 0;
	}
	suite_add_tcase(suite, cases);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, one_mode_is_not_split);
	tcase_add_test(cases, all_modes_of_a_thousand_are_found_where_they_are);
	tcase_add_test(cases, a_low_peak_does_not_join_its_neighbours);
	tcase_add_test(cases, a_coarse_clock_does_not_move_a_mode);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
