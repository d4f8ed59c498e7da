/* SPDX-License-Identifier: MIT
 * test_cupti_handover.c: times in which CUPTI was another client's (PPERF_CUPTI=yield): they are
 * neither busy nor idle, and every view that counts says so.
 */
#include "report/gpu/cupti_handover.h"
#include "report/gpu/device_timeline.h"
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <string.h>

enum { MAIN = 1, GPU = 9 }; /* streams */

static struct trace_builder *yielded(void)
{
	struct trace_builder *builder = builder_new();

	build_meta(builder, "cupti.yielded", "1");
	build_device(builder, 0, "a GPU");
	return builder;
}

static void edge(struct trace_builder *builder, uint64_t at, enum trace_away_edge what)
{
	struct trace_away *record = build_record(builder, MAIN, TRACE_AWAY, sizeof *record, at);

	record->edge = what;
	record->realtime_ns = BUILDER_START_UNIX_NS + at;
}

static void has(const char *text, const char *wanted)
{
	ck_assert_msg(strstr(text, wanted) != NULL, "`%s` is not in:\n%.2500s", wanted, text);
}

/* From 250 to 400 it was away; the kernel before ran on up to 300. */
static struct trace_builder *once(void)
{
	struct trace_builder *builder = yielded();

	build_push(builder, MAIN, 0, "before");
	build_launch(builder, MAIN, 10, 1);
	build_launch(builder, MAIN, 20, 2);
	build_pop(builder, MAIN, 210);
	build_push(builder, MAIN, 240, "meanwhile");
	edge(builder, 250, TRACE_AWAY_BEGINS);
	build_launch(builder, MAIN, 260, 0);
	edge(builder, 400, TRACE_AWAY_ENDS);
	build_pop(builder, MAIN, 410);
	build_push(builder, MAIN, 420, "after");
	build_launch(builder, MAIN, 430, 3);
	build_pop(builder, MAIN, 560);
	build_kernel(builder, GPU, 1000, 1, "k", 100, 200);
	build_kernel(builder, GPU, 1000, 2, "k", 220, 300);
	build_kernel(builder, GPU, 1000, 3, "k", 500, 600);
	return builder;
}

START_TEST(what_is_not_known_is_neither_busy_nor_idle)
{
	const struct timeline_device *devices;
	struct profile_fixture fixture = fixture_of(once(), NULL);

	ck_assert_uint_eq(fixture.profile->totals.gpu_busy_ns, 100 + 80 + 100);
	ck_assert_uint_eq(fixture.profile->totals.gpu_unknown_ns, 100);
	ck_assert_uint_eq(fixture.profile->totals.gpu_idle_ns, 500 - 280 - 100);
	ck_assert_uint_eq(
		fixture.profile->totals.gpu_idle_charged_ns, fixture.profile->totals.gpu_idle_ns);
	ck_assert_uint_eq(timeline_devices(fixture.profile->timeline, &devices), 1);
	ck_assert_uint_eq(devices[0].unknown_ns, 100);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_range_with_a_handover_in_it_is_not_idle_then)
{
	struct profile_fixture fixture = fixture_of(once(), NULL);

	ck_assert_uint_eq(fixture_node(&fixture, "before")->gpu->idle_ns, 10);    /* 200 to 210 */
	ck_assert_uint_eq(fixture_node(&fixture, "meanwhile")->gpu->idle_ns, 10); /* 400 to 410 */
	ck_assert_uint_eq(fixture_node(&fixture, "after")->gpu->idle_ns, 80);     /* 420 to 500 */
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_did_not_end_goes_on_to_the_end)
{
	struct trace_builder *builder = yielded();
	struct profile_fixture fixture;

	build_push(builder, MAIN, 0, "all");
	build_launch(builder, MAIN, 10, 1);
	build_launch(builder, MAIN, 11, 2);
	edge(builder, 300, TRACE_AWAY_BEGINS);
	build_pop(builder, MAIN, 900);
	build_kernel(builder, GPU, 1000, 1, "k", 100, 200);
	build_kernel(builder, GPU, 1000, 2, "k", 700,
		800); /* of another time than the rest: no trace of ours has that */
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->totals.gpu_busy_ns, 200);
	ck_assert_uint_eq(fixture.profile->totals.gpu_unknown_ns, 400);
	ck_assert_uint_eq(fixture.profile->totals.gpu_idle_ns, 100);
	fixture_free(&fixture);
}
END_TEST

START_TEST(edges_that_cannot_be_do_no_harm)
{
	struct trace_builder *builder = yielded();
	struct trace_away *wrong;
	struct profile_fixture fixture;
	struct handover_list *handovers;

	edge(builder, 50, TRACE_AWAY_ENDS); /* of nothing */
	edge(builder, 100, TRACE_AWAY_BEGINS);
	edge(builder, 110, TRACE_AWAY_BEGINS);
	edge(builder, 200, TRACE_AWAY_ENDS);
	edge(builder, 300, TRACE_AWAY_BEGINS);
	wrong = build_record(builder, MAIN, TRACE_AWAY, sizeof *wrong, 350);
	wrong->edge = TRACE_AWAY_ENDS; /* long before it began, by CUPTI's clock */
	edge(builder, 400, TRACE_AWAY_BEGINS);
	build_push(builder, MAIN, 1000, "x");
	build_pop(builder, MAIN, 1100);
	fixture = fixture_of(builder, NULL);
	handovers = handover_list_read(fixture.reader);
	ck_assert_uint_eq(handovers->count, 3);
	ck_assert(handovers->open);
	ck_assert_uint_eq(handovers->ns, 100 + 50 + 700);
	ck_assert_uint_eq(handover_list_overlap_ns(handovers, HANDOVER_TRACE_TIME, 0, 100), 0);
	ck_assert_uint_eq(
		handover_list_overlap_ns(handovers, HANDOVER_TRACE_TIME, 150, 320), 50 + 20);
	ck_assert_uint_eq(handover_list_overlap_ns(handovers, HANDOVER_TRACE_TIME, 320, 150), 0);
	ck_assert_uint_eq(handover_list_overlap_ns(
				  handovers, HANDOVER_REALTIME, 0, BUILDER_START_UNIX_NS + 399),
		100);
	ck_assert_uint_eq(handover_list_overlap_ns(NULL, HANDOVER_TRACE_TIME, 0, 100), 0);
	handover_list_free(handovers);
	fixture_free(&fixture);
}
END_TEST

START_TEST(every_view_says_so)
{
	struct report_run run = run_report(once(), "trace.bin");

	has(run.out, "away      CUPTI was released to another profiler for 150 ns: from 250 ns "
		     "to\n          400 ns");
	has(run.out, "memsets requested in that\n          time: 1");
	has(run.out, "the GPU was busy 70.0 % of the 400 ns");
	has(run.out, "100 ns in which another profiler used CUPTI");
	has(run.out, "LOSSES    intervals in which CUPTI was released to another profiler (GPU");
	run = run_report(once(), "tree trace.bin -f json");
	has(run.out, "\"away\": {\"ns\": 150, \"spans\": [{\"begin_ns\": 250, \"end_ns\": 400}]}");
	has(run.out, "\"gpu_idle_ns\": 120, \"gpu_unknown_ns\": 100,");
	has(run.out, "\"yielded\": 1, \"yielded_calls\": 1");
	run = run_report(once(), "idle trace.bin -f json");
	has(run.out, "\"gap_ns\": 120");
	run = run_report(once(), "info trace.bin");
	has(run.out, "from 250 ns to 400 ns another profiler used CUPTI");
	run = run_report(once(), "info trace.bin -f json");
	has(run.out, "\"away\":[{\"begin_ns\":250,\"end_ns\":400}]");
	run = run_report(once(), "dump trace.bin");
	has(run.out, "action=begins");
	has(run.out, "action=ends");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("away");
	TCase *all = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(all, run_report_setup, run_report_teardown);
	tcase_add_test(all, what_is_not_known_is_neither_busy_nor_idle);
	tcase_add_test(all, a_range_with_a_handover_in_it_is_not_idle_then);
	tcase_add_test(all, what_did_not_end_goes_on_to_the_end);
	tcase_add_test(all, edges_that_cannot_be_do_no_harm);
	tcase_add_test(all, every_view_says_so);
	suite_add_tcase(suite, all);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
