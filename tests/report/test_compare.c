/* SPDX-License-Identifier: MIT
 * test_compare.c: comparators order whole ranges of their types, and the macros use the members
 * that they name. A binary search counts what precedes a limit.
 */
#include "report/base/compare.h"
#include "report/base/search.h"

#include <check.h>
#include <stdlib.h>

struct sample {
	const char *name;
	uint64_t bytes;
	int64_t change;
};

COMPARE_BY(by_change, struct sample, change)
COMPARE_BY_TWO(by_bytes, struct sample, bytes, change)
COMPARE_BY_LARGEST(by_most_bytes, struct sample, bytes, change)
COMPARE_BY_THREE(by_three, struct sample, bytes, change, name)
COMPARE_POINTERS_BY_LARGEST(by_most_pointed, struct sample, bytes)
DEFINE_COUNT_WHILE(samples_up_to, struct sample, item->bytes <= limit)

START_TEST(numbers_far_apart_are_ordered)
{
	uint32_t narrow[] = { UINT32_MAX, 0, 1u << 31, 1 };
	uint64_t wide[] = { UINT64_MAX, 0, UINT64_C(1) << 63, 1 };
	int64_t whole[] = { INT64_MAX, INT64_MIN, 0, -1 };
	double real[] = { 1e300, -1e300, 0.25, 0 };

	qsort(narrow, 4, sizeof *narrow, compare_u32);
	qsort(wide, 4, sizeof *wide, compare_u64);
	qsort(whole, 4, sizeof *whole, compare_i64);
	qsort(real, 4, sizeof *real, compare_double);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_lt(narrow[i], narrow[i + 1]);
		ck_assert_uint_lt(wide[i], wide[i + 1]);
		ck_assert_int_lt(whole[i], whole[i + 1]);
		ck_assert_double_lt(real[i], real[i + 1]);
	}
}
END_TEST

START_TEST(equal_numbers_compare_as_zero)
{
	const uint64_t wide[] = { 7, 7 };
	const double real[] = { -0.0, 0.0 };

	ck_assert_int_eq(compare_u64(&wide[0], &wide[1]), 0);
	ck_assert_int_eq(compare_double(&real[0], &real[1]), 0);
}
END_TEST

START_TEST(structs_are_ordered_by_the_named_members)
{
	struct sample samples[] = { { "a", 1, 5 }, { "b", 9, -3 }, { "c", 1, -8 } };

	qsort(samples, 3, sizeof *samples, by_change);
	ck_assert_str_eq(samples[0].name, "c");
	ck_assert_str_eq(samples[2].name, "a");
	qsort(samples, 3, sizeof *samples, by_bytes);
	ck_assert_str_eq(samples[0].name, "c");
	ck_assert_str_eq(samples[1].name, "a");
	ck_assert_str_eq(samples[2].name, "b");
	qsort(samples, 3, sizeof *samples, by_most_bytes);
	ck_assert_str_eq(samples[0].name, "b");
	ck_assert_str_eq(samples[1].name, "c");
	ck_assert_str_eq(samples[2].name, "a");
	ck_assert_int_eq(by_most_bytes(&samples[1], &samples[1]), 0);
}
END_TEST

START_TEST(a_third_member_and_pointers_decide_between_equal_ones)
{
	static const char names[] = "ab";
	const struct sample samples[] = { { names + 1, 1, 5 }, { names, 1, 5 }, { names, 2, 0 } };
	const struct sample *pointers[] = { &samples[1], &samples[0], &samples[2] };

	ck_assert_int_gt(by_three(&samples[0], &samples[1]), 0);
	ck_assert_int_lt(by_three(&samples[0], &samples[2]), 0);
	ck_assert_int_eq(by_three(&samples[0], &samples[0]), 0);
	qsort(pointers, 3, sizeof *pointers, by_most_pointed);
	ck_assert_ptr_eq(pointers[0], &samples[2]);
	ck_assert_ptr_eq(pointers[1], &samples[0]);
	ck_assert_ptr_eq(pointers[2], &samples[1]);
}
END_TEST

START_TEST(a_search_counts_the_items_up_to_a_limit)
{
	const struct sample samples[] = { { "a", 2, 0 }, { "b", 4, 0 }, { "c", 4, 0 },
		{ "d", UINT64_MAX, 0 } };

	ck_assert_uint_eq(samples_up_to(samples, 0, 5), 0);
	ck_assert_uint_eq(samples_up_to(samples, 4, 1), 0);
	ck_assert_uint_eq(samples_up_to(samples, 4, 2), 1);
	ck_assert_uint_eq(samples_up_to(samples, 4, 4), 3);
	ck_assert_uint_eq(samples_up_to(samples, 3, UINT64_MAX), 3);
	ck_assert_uint_eq(samples_up_to(samples, 4, UINT64_MAX), 4);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("compare");
	TCase *cases = tcase_create("compare");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, numbers_far_apart_are_ordered);
	tcase_add_test(cases, equal_numbers_compare_as_zero);
	tcase_add_test(cases, structs_are_ordered_by_the_named_members);
	tcase_add_test(cases, a_third_member_and_pointers_decide_between_equal_ones);
	tcase_add_test(cases, a_search_counts_the_items_up_to_a_limit);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
