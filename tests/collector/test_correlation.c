/* SPDX-License-Identifier: MIT */
#include "collector/cupti/correlation.h"

#include <check.h>
#include <stdlib.h>

START_TEST(none_stays_none)
{
	ck_assert_uint_eq(correlation_near(0, 0), 0);
	ck_assert_uint_eq(correlation_near(UINT64_C(7) << 32, 0), 0);
	ck_assert_uint_eq(correlation_of_call(0), 0);
}
END_TEST

START_TEST(the_first_id_may_be_any)
{
	ck_assert_uint_eq(correlation_near(0, 1), 1);
	ck_assert_uint_eq(correlation_near(0, UINT32_MAX - 5), UINT32_MAX - 5);
}
END_TEST

START_TEST(ids_go_on_beyond_32_bits)
{
	ck_assert_uint_eq(correlation_near(UINT32_MAX - 5, 3), (UINT64_C(1) << 32) + 3);
	ck_assert_uint_eq(
		correlation_near((UINT64_C(1) << 32) + 3, UINT32_MAX - 5), UINT32_MAX - 5);
	ck_assert_uint_eq(
		correlation_near((UINT64_C(5) << 32) + 3, UINT32_MAX), (UINT64_C(5) << 32) - 1);
}
END_TEST

/* CUPTI's count, 0 left out, as the calls and, up to a billion calls later, their records carry it.
 */
START_TEST(records_find_their_calls_over_many_rounds)
{
	uint64_t call = 1, wrong = 0;

	srandom(1);
	correlation_newest = 0;
	for (int i = 0; i < 2000000; i++) {
		uint64_t late = call - ((uint64_t)random() % (UINT64_C(1) << 30));

		if ((uint32_t)call)
			wrong += correlation_of_call((uint32_t)call) != call;
		if (late < call && (uint32_t)late)
			wrong += correlation_extend((uint32_t)late) != late;
		call += (uint64_t)random() % 50000;
	}
	ck_assert_uint_gt(call, UINT64_C(10) << 32);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

START_TEST(the_newest_id_is_written_rarely)
{
	correlation_newest = 0;
	correlation_of_call(100);
	ck_assert_uint_eq(correlation_newest, 100);
	correlation_of_call(5000);
	ck_assert_uint_eq(correlation_newest, 100);
	correlation_of_call(101 + (uint32_t)CORRELATION_STEP);
	ck_assert_uint_eq(correlation_newest, 101 + CORRELATION_STEP);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("correlation");
	TCase *cases = tcase_create("correlation");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, none_stays_none);
	tcase_add_test(cases, the_first_id_may_be_any);
	tcase_add_test(cases, ids_go_on_beyond_32_bits);
	tcase_add_test(cases, records_find_their_calls_over_many_rounds);
	tcase_add_test(cases, the_newest_id_is_written_rarely);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
