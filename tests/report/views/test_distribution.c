/* SPDX-License-Identifier: MIT
 * test_distribution.c: how durations are spread, against what was put into a trace: percentiles,
 * bins, modes, outliers.
 */
#include "report/analysis/duration_distribution.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 88172645463325252u;

static double chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) / 9007199254740992.0;
}

/* About normal: mean 0, deviation 1. */
static double noise(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += chance();
	return sum - 6;
}

/* Twelve instances of `op` in `step`: 100, 101 ... 110 ns, and the fifth of all 1000. */
static struct trace_builder *twelve(void)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 10;

	build_push(builder, 1, 0, "step");
	for (unsigned i = 0; i < 12; i++) {
		const uint64_t took = i == 4 ? 1000 : 100 + (i > 4 ? i - 1 : i);

		build_push(builder, 1, at, "op");
		build_pop(builder, 1, at + took);
		at += took + 10;
	}
	build_pop(builder, 1, at);
	return builder;
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "`%s` is not in:\n%s", part, text);
}

static unsigned times(const char *text, const char *part)
{
	unsigned count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

START_TEST(figures_are_those_of_the_instances)
{
	const struct report_run run = run_report(twelve(), "distribution op trace.bin -f json");

	ck_assert_str_eq(run.err, "");
	ck_assert_int_eq(run.status, 0);
	has(run.out, "{\"name\": \"op\", \"kind\": \"distribution\", \"path\": [\"step\", "
		     "\"op\"], \"measure\": \"cpu\", "
		     "\"calls\": 12, \"share\": 1, \"mean_ns\": 180, \"min_ns\": 100, "
		     "\"p25_ns\": 102, \"p50_ns\": 105, "
		     "\"p75_ns\": 108, \"p95_ns\": 1000, \"p99_ns\": 1000, \"max_ns\": 1000, "
		     "\"outliers\": 1}");
	has(run.out, "\"kind\": \"bin\", \"path\": [\"step\", \"op\"], \"measure\": \"cpu\", "
		     "\"calls\": 11, "
		     "\"share\": 0.9166666666666666, \"from_ns\": 100, \"to_ns\": 145}");
	has(run.out,
		"\"calls\": 1, \"share\": 0.08333333333333333, \"from_ns\": 955, \"to_ns\": 1000}");
	ck_assert_uint_eq(times(run.out, "\"kind\": \"bin\""), 20);
	ck_assert_uint_eq(times(run.out, "\"kind\": \"mode\""), 1);
	/* four before it, each 10 apart: 100 + 101 + 102 + 103 + 4 * 10 behind the first one's
	 * begin */
	has(run.out, "\"kind\": \"outlier\", \"path\": [\"step\", \"op\"], \"measure\": \"cpu\", "
		     "\"share\": 0.08333333333333333, \"number\": 5, \"start_ns\": 456, "
		     "\"duration_ns\": 1000}");
}
END_TEST

/* Then the trace is read once more for each thing that is asked of all of them. */
START_TEST(more_instances_than_are_held_are_shown_the_same)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;
	uint64_t at = 10;

	for (unsigned i = 0; i < DISTRIBUTION_HELD_MAX + 2; i++) {
		const uint64_t took = i == 7                       ? 1000
				      : i == DISTRIBUTION_HELD_MAX ? 2000
								   : 100 + i % 10;

		build_push(builder, 1, at, "op");
		build_pop(builder, 1, at + took);
		at += took + 10;
	}
	run = run_report(builder, "distribution op trace.bin --ascii --width 200");
	ck_assert_int_eq(run.status, 0);
	has(run.out, "op on the CPU: 1,048,578 instances, ");
	has(run.out, "  outliers: 2, above ");
	has(run.out, "#1,048,577 at ");
	has(run.out, "    1.00 us  #8 at 801 ns\n");
}
END_TEST

START_TEST(text_draws_bars)
{
	const struct report_run run = run_report(
		twelve(), "distribution op trace.bin --ascii --width 60");

	has(run.out, "op on the CPU: 12 instances, 2.16 us\n  min 100 ns  p25 102 ns  p50 105 ns\n"
		     "  p75 108 ns  p95 1.00 us  p99 1.00 us\n  max 1.00 us\n"
		     "      100 ns to     145 ns        11  ######################\n"
		     "      145 ns to     190 ns         0\n");
	has(run.out, "      955 ns to    1.00 us         1  ##\n  one mode: ");
	has(run.out, "  outliers: 1, above 126 ns or below 84 ns (3 interquartile ranges away)\n"
		     "     1.00 us  #5 at 456 ns  in step\n");
	for (const char *c = run.out; *c; c++)
		ck_assert_int_lt((unsigned char)*c, 128);
}
END_TEST

START_TEST(no_line_is_wider_than_a_narrow_screen)
{
	const struct report_run screen = run_report(
		twelve(), "distribution op trace.bin --ascii --width 40");

	has(screen.out, "  outliers: 1, above 126 ns\n            or below 84 ns\n");
	for (const char *line = screen.out; *line; line += strcspn(line, "\n") + 1)
		ck_assert_uint_le(strcspn(line, "\n"), 40);
}
END_TEST

START_TEST(work_of_a_gpu_is_counted_for_kernels_and_for_ranges)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_device(builder, 0, "a GPU");
	for (unsigned i = 0; i < 3; i++) { /* the third launches nothing */
		build_push(builder, 1, i * 100, "layer");
		for (unsigned k = 0; k < 2 && i < 2; k++)
			build_launch(builder, 1, i * 100 + 10 + k, 1 + 2 * i + k);
		build_pop(builder, 1, i * 100 + 50);
	}
	for (unsigned i = 0; i < 4; i++)
		build_kernel(builder, 9, 2000, 1 + i, "gemm", 1000 + i * 100, 1010 + i * 110);
	builder_write(builder, "kept.bin");
	run = run_report(builder, "distribution layer trace.bin -f json");
	has(run.out, "\"measure\": \"cpu\", \"calls\": 3, \"share\": 1, \"mean_ns\": 50, "
		     "\"min_ns\": 50");
	has(run.out, "\"measure\": \"gpu\", \"calls\": 2, \"share\": 1, \"mean_ns\": 50, "
		     "\"min_ns\": 30, \"p25_ns\": 30, "
		     "\"p50_ns\": 30, \"p75_ns\": 70");
	run = run_report(NULL, "distribution gemm kept.bin -f json");
	has(run.out, "\"measure\": \"gpu\", \"calls\": 4, \"share\": 1, \"mean_ns\": 25, "
		     "\"min_ns\": 10, \"p25_ns\": 10, "
		     "\"p50_ns\": 20, \"p75_ns\": 30");
	ck_assert_ptr_null(strstr(run.out, "\"measure\": \"cpu\""));
	run = run_report(NULL, "distribution layer/gemm kept.bin");
	has(run.out, "gemm on the GPU: 4 instances, 100 ns\n");
	has(run.out, "too few instances for modes and outliers (10)");
}
END_TEST

START_TEST(a_name_is_one_or_says_which)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 0, "outer");
	build_push(builder, 1, 10, "inner one");
	build_pop(builder, 1, 20);
	build_push(builder, 1, 30, "inner \x1b[2Jtwo");
	build_pop(builder, 1, 40);
	build_pop(builder, 1, 50);
	builder_write(builder, "kept.bin");
	run = run_report(builder, "distribution 'ner one' trace.bin");
	has(run.out, "inner one on the CPU: 1 instance, 10 ns\n");
	run = run_report(NULL, "distribution inner kept.bin");
	ck_assert_int_eq(run.status, 64);
	has(run.err, "`inner` is ambiguous");
	ck_assert_ptr_null(strchr(run.err, '\x1b'));
	run = run_report(NULL, "distribution nothing kept.bin");
	ck_assert_int_eq(run.status, 64);
	has(run.err, "no name contains `nothing`");
	run = run_report(NULL, "distribution kept.bin");
	ck_assert_int_eq(run.status, 64);
	has(run.err, "the view distribution needs a NAME before the trace: pperf-report "
		     "distribution NAME trace.bin");
	run = run_report(NULL, "distribution two kept.bin");
	ck_assert_int_eq(run.status, 0);
	ck_assert_ptr_null(strchr(run.out, '\x1b'));
}
END_TEST

static int by_value(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* How many modes values have. Sorts them. */
static struct distribution modes_of(uint64_t *values, size_t count, uint64_t granularity)
{
	struct distribution of = { .count = count };
	struct mode_histogram *modes;

	qsort(values, count, sizeof *values, by_value);
	of.min_ns = values[0];
	of.max_ns = values[count - 1];
	of.p25 = values[count / 4];
	of.p75 = values[count * 3 / 4];
	modes = mode_histogram_new(&of, granularity);
	for (size_t i = 0; i < count; i++)
		mode_histogram_add(modes, values[i]);
	mode_histogram_find(modes, &of);
	return of;
}

START_TEST(two_usual_values_are_two_modes)
{
	for (unsigned round = 0; round < 20; round++) {
		uint64_t values[200];
		struct distribution of;

		for (unsigned i = 0; i < 200; i++)
			values[i] = (uint64_t)((i % 4 ? 100000 : 115000) * (1 + noise() / 100));
		of = modes_of(values, 200, 1);
		ck_assert_uint_eq(of.mode_count, 2);
		ck_assert(of.modes[0].value > 98000 && of.modes[0].value < 102000);
		ck_assert(of.modes[1].value > 113000 && of.modes[1].value < 117000);
		ck_assert(of.modes[0].count > 140 && of.modes[0].count < 160);
		ck_assert_uint_eq(of.modes[0].count + of.modes[1].count, 200);
	}
}
END_TEST

START_TEST(one_usual_value_is_one_mode)
{
	static const size_t counts[] = { 12, 30, 300, 3000 };
	static uint64_t values[3000];
	unsigned several = 0, rounds = 0;

	for (unsigned i = 0; i < 4; i++)
		for (unsigned round = 0; round < 100; round++, rounds++) {
			for (size_t k = 0; k < counts[i]; k++)
				values[k] = (uint64_t)(50000 *
						       exp(noise() * (round % 2 ? 0.05 : 0.5)));
			several += modes_of(values, counts[i], 1).mode_count != 1;
		}
	ck_assert_uint_le(several, rounds / 20);
}
END_TEST

/* A clock that tells whole microseconds makes no modes. */
START_TEST(rounding_makes_no_modes)
{
	uint64_t values[400];

	for (unsigned i = 0; i < 400; i++)
		values[i] = 1000 * (uint64_t)(6.5 + 1.5 * noise());
	for (unsigned i = 0; i < 400; i++)
		values[i] = values[i] ? values[i] : 1000;
	ck_assert_uint_eq(modes_of(values, 400, 1000).mode_count, 1);
	for (unsigned i = 0; i < 400; i++)
		values[i] = 7000;
	ck_assert_uint_eq(modes_of(values, 400, 7000).mode_count, 1);
	ck_assert_uint_eq(modes_of(values, 400, 7000).modes[0].value, 7000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("distribution");
	TCase *screens = tcase_create("screens"), *modes = tcase_create("modes");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(screens, run_report_setup, run_report_teardown);
	tcase_add_test(screens, figures_are_those_of_the_instances);
	tcase_add_test(screens, more_instances_than_are_held_are_shown_the_same);
	tcase_add_test(screens, text_draws_bars);
	tcase_add_test(screens, no_line_is_wider_than_a_narrow_screen);
	tcase_add_test(screens, work_of_a_gpu_is_counted_for_kernels_and_for_ranges);
	tcase_add_test(screens, a_name_is_one_or_says_which);
	tcase_add_test(modes, two_usual_values_are_two_modes);
	tcase_add_test(modes, one_usual_value_is_one_mode);
	tcase_add_test(modes, rounding_makes_no_modes);
	suite_add_tcase(suite, screens);
	suite_add_tcase(suite, modes);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
