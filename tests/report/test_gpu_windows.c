/* SPDX-License-Identifier: MIT
 * test_gpu_windows.c: the interval in which the GPU ran a step, for a host that keeps up with the
 * GPU and for one that is ahead of it.
 */
#include "report/base/alloc.h"
#include "report/steps/find_steps.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <stdlib.h>

#define STEP_NS 1000u

/* Returns `count` steps of STEP_NS, one after the other, each with a launch at its begin and one at
 * its end. Their work begins `delay` later, and takes `gpu_ns` a step. */
static struct steps *launched_steps(size_t count, uint64_t delay, uint64_t gpu_ns)
{
	struct steps *steps = xcalloc(sizeof *steps);

	steps->steps = xcalloc(count * sizeof *steps->steps);
	steps->count = count;
	steps->p50_ns = STEP_NS;
	for (size_t i = 0; i < count; i++)
		steps->steps[i] = (struct step){
			.begin_ns = i * STEP_NS, .end_ns = (i + 1) * STEP_NS, .number = i
		};
	for (size_t i = 0; i < count; i++) {
		const uint64_t begin = delay + i * gpu_ns;

		steps_add_gpu_work(steps, i * STEP_NS, begin, begin + 100);
		steps_add_gpu_work(
			steps, (i + 1) * STEP_NS - 1, begin + gpu_ns - 200, begin + gpu_ns - 50);
	}
	return steps;
}

static void expect_window(const struct steps *steps, size_t index, uint64_t begin, uint64_t end)
{
	ck_assert_uint_eq(steps->steps[index].window_begin_ns, begin);
	ck_assert_uint_eq(steps->steps[index].window_end_ns, end);
}

START_TEST(a_host_that_keeps_up_has_its_own_steps)
{
	struct steps *steps = launched_steps(4, 300, STEP_NS);

	steps_finish_gpu(steps);
	ck_assert(!steps->on_gpu);
	for (size_t i = 0; i < 4; i++)
		expect_window(steps, i, i * STEP_NS, (i + 1) * STEP_NS);
	ck_assert_uint_eq(steps->window_sum_ns, 4 * STEP_NS);
	steps_free(steps);
}
END_TEST

START_TEST(a_host_that_is_ahead_has_the_steps_of_the_gpu)
{
	struct steps *steps = launched_steps(4, 2500, 1200);

	steps_finish_gpu(steps);
	ck_assert(steps->on_gpu);
	expect_window(steps, 0, 2500, 3700);
	expect_window(steps, 1, 3700, 4900);
	expect_window(steps, 2, 4900, 6100);
	expect_window(steps, 3, 6100, 6100 + 1200 - 50); /* the last one ends with its work */
	ck_assert_uint_eq(steps->window_p50_ns, 1200);
	ck_assert_uint_eq(steps->window_sum_ns, 4 * 1200 - 50);
	/* delays of the first work: 2500, 2700, 2900 and 3100; those of the last are larger */
	ck_assert_uint_eq(steps->ahead_ns, 2700);
	steps_free(steps);
}
END_TEST

START_TEST(late_first_work_alone_is_no_lead)
{
	struct steps *steps = launched_steps(3, 0, STEP_NS);

	for (size_t i = 0; i < 3; i++)
		steps->steps[i].window_begin_ns = i * STEP_NS + 700;
	steps_finish_gpu(steps);
	ck_assert(!steps->on_gpu);
	steps_free(steps);
}
END_TEST

START_TEST(a_pause_of_the_host_is_in_no_window)
{
	struct steps *steps = launched_steps(2, 2500, 1200);

	steps->steps[0].end_ns -= 200;
	steps_finish_gpu(steps);
	ck_assert(steps->on_gpu);
	expect_window(steps, 0, 2500, 3650);
	expect_window(steps, 1, 3700, 4850);
	steps_free(steps);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("gpu_windows");
	TCase *windows = tcase_create("windows");

	suite_add_tcase(suite, windows);
	tcase_add_test(windows, a_host_that_keeps_up_has_its_own_steps);
	tcase_add_test(windows, a_host_that_is_ahead_has_the_steps_of_the_gpu);
	tcase_add_test(windows, late_first_work_alone_is_no_lead);
	tcase_add_test(windows, a_pause_of_the_host_is_in_no_window);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
