/* SPDX-License-Identifier: MIT
 * test_percentiles.c: percentiles against a sorted array, exact and beyond.
 */
#include "report/stats/percentiles.h"

#include <check.h>
#include <stdlib.h>

static uint64_t seed = 88172645463325252u;

static uint64_t chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Of many magnitudes, as durations are. */
static uint64_t some_duration(void)
{
	return chance() >> (chance() % 60);
}

static uint64_t nearest_rank(const uint64_t *sorted, size_t count, unsigned per_mille)
{
	const size_t rank = (count * per_mille + 999) / 1000;

	return sorted[rank ? rank - 1 : 0];
}

static void compare(size_t count, bool exactly)
{
	uint64_t *values = calloc(count, sizeof *values);
	struct percentiles samples = { .used = 0 };
	struct percentiles_budget budget = { .bytes = 0 };

	for (size_t i = 0; i < count; i++)
		percentiles_add(&samples, values[i] = some_duration(), &budget);
	qsort(values, count, sizeof *values, by_value);
	ck_assert_int_eq(percentiles_are_exact(&samples), exactly);
	for (unsigned per_mille = 0; per_mille <= 1000; per_mille += 50) {
		const uint64_t right = nearest_rank(values, count, per_mille),
			       found = percentiles_get(&samples, per_mille);
		const uint64_t off = found > right ? found - right : right - found;

		if (exactly)
			ck_assert_uint_eq(found, right);
		else
			ck_assert_msg(off <= right / 100, "%llu is %llu off",
				(unsigned long long)right, (unsigned long long)off);
	}
	percentiles_free(&samples);
	ck_assert_uint_eq(exactly ? 0 : budget.bytes, 0);
	free(values);
}

START_TEST(percentiles_are_exact_up_to_4096_values)
{
	compare(1, true);
	compare(2, true);
	compare(999, true);
	compare(4096, true);
}
END_TEST

START_TEST(beyond_that_they_are_at_most_1_percent_off)
{
	compare(4097, false);
	compare(100000, false);
}
END_TEST

START_TEST(equal_values_are_what_they_are)
{
	struct percentiles samples = { .used = 0 };
	struct percentiles_budget budget = { .bytes = 0 };

	ck_assert_uint_eq(percentiles_get(&samples, 500), 0);
	for (int i = 0; i < 10; i++)
		percentiles_add(&samples, 7, &budget);
	ck_assert_uint_eq(percentiles_get(&samples, 500), 7);
	ck_assert_uint_eq(percentiles_get(&samples, 950), 7);
	percentiles_add(
		&samples, UINT64_MAX, &budget); /* does not fit 32 bits: the others move to 64 */
	ck_assert_uint_eq(percentiles_get(&samples, 1000), UINT64_MAX);
	ck_assert_uint_eq(percentiles_get(&samples, 500), 7);
	percentiles_free(&samples);
}
END_TEST

START_TEST(merging_is_as_adding_all_to_one)
{
	struct percentiles one = { .used = 0 }, two = { .used = 0 }, all = { .used = 0 };
	struct percentiles_budget budget = { .bytes = 0 };

	for (int i = 0; i < 2000; i++) {
		const uint64_t value = some_duration();

		percentiles_add(i % 2 ? &one : &two, value, &budget);
		percentiles_add(&all, value, &budget);
	}
	percentiles_merge(&one, &two, &budget);
	for (unsigned per_mille = 0; per_mille <= 1000; per_mille += 100)
		ck_assert_uint_eq(
			percentiles_get(&one, per_mille), percentiles_get(&all, per_mille));
	for (int i = 0; i < 5000; i++)
		percentiles_add(&two, 1000000, &budget);
	percentiles_merge(&one, &two, &budget);
	ck_assert(!percentiles_are_exact(&one));
	ck_assert_uint_le(percentiles_get(&one, 500), 1010000);
	ck_assert_uint_ge(percentiles_get(&one, 500), 990000);
	percentiles_free(&one);
	percentiles_free(&two);
	percentiles_free(&all);
}
END_TEST

/* As many nodes as do not fit into memory with `count` values each. */
static void compare_spilled(unsigned count, uint64_t largest)
{
	enum { NODES = 2000 };
	static struct percentiles many[NODES];
	struct percentiles_budget budget = { .bytes = 0 };
	uint64_t *values = calloc(count, sizeof *values);
	size_t most = 0;

	for (unsigned round = 0; round < count; round++) {
		values[round] = round * 7919u % count * (largest / count);
		for (unsigned i = 0; i < NODES; i++) {
			percentiles_add(&many[i], values[round] + i, &budget);
			most = budget.bytes > most ? budget.bytes : most;
		}
	}
	qsort(values, count, sizeof *values, by_value);
	ck_assert_uint_le(most, PERCENTILES_BYTES_MAX);
	ck_assert_uint_gt(budget.spills, 0);
	for (unsigned i = 0; i < NODES; i++) {
		ck_assert(percentiles_are_exact(&many[i]));
		for (unsigned per_mille = 0; per_mille <= 1000; per_mille += 125)
			ck_assert_uint_eq(percentiles_get(&many[i], per_mille),
				nearest_rank(values, count, per_mille) + i);
		percentiles_free(&many[i]);
	}
	free(values);
}

START_TEST(values_beyond_their_budget_stay_exact)
{
	compare_spilled(4096, 1u << 30);
	compare_spilled(4095, UINT64_C(1) << 40);
	compare_spilled(2100, UINT64_C(1) << 40);
}
END_TEST

/* Of several sorts of nodes whose values are in the file: merged ones, those that get more values
 * after a percentile was asked for, and those that get too many to be exact. */
START_TEST(spilled_values_are_merged_and_added_to)
{
	enum { NODES = 3000, COUNT = 1500 };
	static struct percentiles many[NODES];
	struct percentiles_budget budget = { .bytes = 0 };
	struct percentiles all = { .used = 0 };

	for (unsigned round = 0; round < COUNT; round++)
		for (unsigned i = 0; i < NODES; i++)
			percentiles_add(
				&many[i], round < 1000 ? 2 * round : UINT64_C(1) << 40, &budget);
	percentiles_merge(&all, &many[NODES - 1], &budget);
	percentiles_merge(&all, &many[NODES - 2], &budget);
	ck_assert(percentiles_are_exact(&all));
	ck_assert_uint_eq(percentiles_get(&all, 500), 1498);
	ck_assert_uint_eq(percentiles_get(&many[NODES - 1], 500), 1498);
	percentiles_add(&many[NODES - 1], 1, &budget);
	ck_assert_uint_eq(percentiles_get(&many[NODES - 1], 0), 0);
	ck_assert_uint_eq(percentiles_get(&many[NODES - 1], 500), 1498);
	ck_assert_uint_eq(percentiles_get(&many[NODES - 1], 1000), UINT64_C(1) << 40);
	percentiles_merge(&all, &many[0], &budget);
	ck_assert(!percentiles_are_exact(&all));
	ck_assert_uint_le(percentiles_get(&all, 500), 1513);
	ck_assert_uint_ge(percentiles_get(&all, 500), 1483);
	percentiles_free(&all);
	for (unsigned i = 0; i < NODES; i++)
		percentiles_free(&many[i]);
}
END_TEST

struct bucket_sum {
	uint64_t count;
	unsigned last;
	bool is_in_order;
};

/* Checks that the buckets ascend, and adds up their counts. */
static void add_bucket(void *context, unsigned bucket, uint64_t count)
{
	struct bucket_sum *sum = context;

	sum->is_in_order &= !sum->count || bucket > sum->last;
	sum->last = bucket;
	sum->count += count;
}

START_TEST(buckets_count_each_value_once_whether_exact_or_not)
{
	struct percentiles_budget budget = { .bytes = 0 };
	const int counts[] = { 1, 64, 4096, 10000 };

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct percentiles samples = { .used = 0 };
		struct bucket_sum sum = { .is_in_order = true };

		for (int k = 0; k < counts[i]; k++)
			percentiles_add(&samples, (uint64_t)k * 17, &budget);
		percentiles_buckets(&samples, add_bucket, &sum);
		ck_assert_uint_eq(sum.count, (uint64_t)counts[i]);
		ck_assert(sum.is_in_order);
		percentiles_free(&samples);
	}
}
END_TEST

START_TEST(a_bucket_begins_where_the_header_says)
{
	struct percentiles_budget budget = { .bytes = 0 };

	for (uint64_t value = 1; value < UINT64_MAX / 5; value = value * 3 + 1) {
		struct percentiles samples = { .used = 0 };
		struct bucket_sum sum = { .is_in_order = true };
		uint64_t begin, steps;

		percentiles_add(&samples, value, &budget);
		percentiles_buckets(&samples, add_bucket, &sum);
		steps = sum.last < 64 ? 1 : UINT64_C(1) << (sum.last / 64 - 1);
		begin = sum.last < 64 ? sum.last : (64 + sum.last % 64) * steps;
		ck_assert_uint_ge(value, begin);
		ck_assert_uint_lt(value - begin, steps);
		percentiles_free(&samples);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("samples");
	TCase *percentiles = tcase_create("percentiles");
	SRunner *runner;
	int failed;

	tcase_add_test(percentiles, percentiles_are_exact_up_to_4096_values);
	tcase_add_test(percentiles, beyond_that_they_are_at_most_1_percent_off);
	tcase_add_test(percentiles, equal_values_are_what_they_are);
	tcase_add_test(percentiles, merging_is_as_adding_all_to_one);
	tcase_add_test(percentiles, buckets_count_each_value_once_whether_exact_or_not);
	tcase_add_test(percentiles, a_bucket_begins_where_the_header_says);
	tcase_add_test(percentiles, values_beyond_their_budget_stay_exact);
	tcase_add_test(percentiles, spilled_values_are_merged_and_added_to);
	tcase_set_timeout(percentiles, 60);
	suite_add_tcase(suite, percentiles);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
