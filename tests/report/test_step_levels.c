/* SPDX-License-Identifier: MIT
 * test_step_levels.c: the level of the program's counter at the end of each step and its highest
 * value in it, also from other threads, and before the counter has a value.
 */
#include "tests/support/view_test.h"

#include <stdio.h>
#include <string.h>

static uint32_t build_counter(struct trace_builder *builder, uint32_t id, const char *name)
{
	const uint32_t text = build_name(builder, name);
	struct trace_counter *counter = build_dictionary(builder, TRACE_COUNTER, sizeof *counter);

	counter->counter = id;
	counter->name = text;
	return id;
}

static void build_real(
	struct trace_builder *builder, uint32_t stream, uint64_t at, uint32_t counter, double value)
{
	struct trace_metric *record = build_record(
		builder, stream, TRACE_METRIC, sizeof *record, at);

	record->counter = counter;
	record->type = TRACE_METRIC_F64;
	memcpy(&record->value, &value, sizeof value);
}

static void build_step(struct trace_builder *builder, uint32_t stream, uint64_t number,
	uint64_t begin, uint64_t end)
{
	char name[32];

	snprintf(name, sizeof name, "step %llu", (unsigned long long)number);
	build_push(builder, stream, begin, name);
	build_pop(builder, stream, end);
}

/* Ten steps of 100 ns each. In step i the counter rises to 10 * i + 5 and falls to 2 * i. Nothing is
 * known of it in step 0, and it has no value for a time in step 7. */
static struct trace_builder *ten_steps(void)
{
	struct trace_builder *builder = builder_new();
	const uint32_t other = build_counter(builder, 1, "other"),
		       counter = build_counter(builder, 2, "queue");

	for (uint64_t i = 0; i < 10; i++) {
		char name[32];

		snprintf(name, sizeof name, "step %llu", (unsigned long long)i);
		build_push(builder, 1, 1000 * i + 1000, name);
		if (i > 0) {
			build_real(builder, 1, 1000 * i + 1020, counter, 10.0 * (double)i + 5);
			build_real(builder, 1, 1000 * i + 1030, other, 1e9);
			build_real(builder, 1, 1000 * i + 1040, counter, 2.0 * (double)i);
		}
		if (i == 7)
			build_real(builder, 1, 1000 * i + 1050, counter, 0.0 / 0.0);
		build_pop(builder, 1, 1000 * i + 1100);
	}
	return builder;
}

START_TEST(each_step_has_the_level_at_its_end_and_its_peak)
{
	const struct report_run run = run_report(ten_steps(),
		"steps trace.bin -m queue --step-marker step -f csv --columns "
		"name,counter_end,counter_peak");

	ck_assert_int_eq(run.status, 0);
	ck_assert_str_eq(run.out, "name,counter_end,counter_peak\r\n"
				  "step 0,,\r\n"
				  "step 1,2,15\r\n"
				  "step 2,4,25\r\n"
				  "step 3,6,35\r\n"
				  "step 4,8,45\r\n"
				  "step 5,10,55\r\n"
				  "step 6,12,65\r\n"
				  "step 7,14,75\r\n"
				  "step 8,16,85\r\n"
				  "step 9,18,95\r\n"
				  "median (steady state),10,55\r\n"
				  "MAD,4,20\r\n"
				  "slope per step,2,10\r\n");
}
END_TEST

START_TEST(without_a_counter_the_columns_are_empty)
{
	const struct report_run run = run_report(ten_steps(),
		"steps trace.bin --step-marker step -f csv --columns name,counter_end");

	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "step 5,\r\n");
	output_lacks(run.out, "10");
}
END_TEST

/* The counter is of the process, whichever thread reports it. */
START_TEST(values_of_other_threads_count)
{
	struct trace_builder *builder = builder_new();
	const uint32_t counter = build_counter(builder, 1, "queue");
	struct report_run run;

	for (uint64_t i = 0; i < 5; i++) {
		build_step(builder, 1, i, 1000 * i + 1200, 1000 * i + 1900);
		build_real(builder, 2, 1000 * i + 1300, counter, 100);
		build_real(builder, 3, 1000 * i + 1600, counter, (double)i);
		build_real(builder, 2, 1000 * i + 1950, counter, 7000);
	}
	run = run_report(builder, "steps trace.bin -m queue --step-marker step -f csv --columns "
				  "name,start_ns,counter_end,counter_peak");
	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "\r\nstep 0,1200,0,100\r\nstep 1,2200,1,7000\r\n");
}
END_TEST

/* A range that was open when the counter had its first value began at that value, not at 0. */
START_TEST(a_first_value_is_the_level_of_ranges_that_are_open)
{
	struct trace_builder *builder = builder_new();
	const uint32_t counter = build_counter(builder, 1, "queue");
	struct report_run run;

	build_push(builder, 1, 100, "outer");
	build_push(builder, 1, 110, "inner");
	build_real(builder, 1, 120, counter, 8);
	build_pop(builder, 1, 130);
	build_real(builder, 1, 140, counter, 9);
	build_pop(builder, 1, 150);
	run = run_report(builder, "critical trace.bin -m queue --ascii");
	ck_assert_int_eq(run.status, 0);
	output_has(run.out, "| 8.00 -> 9.00 (1.0000 d)");
	output_lacks(run.out, "0.00 ->");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { each_step_has_the_level_at_its_end_and_its_peak,
		without_a_counter_the_columns_are_empty, values_of_other_threads_count,
		a_first_value_is_the_level_of_ranges_that_are_open };

	return run_view_suite("step_levels", tests, sizeof tests / sizeof *tests);
}
