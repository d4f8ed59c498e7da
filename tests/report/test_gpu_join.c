/* SPDX-License-Identifier: MIT
 * test_gpu_join.c: what the GPU did finds the range that asked for it, whatever the order in which
 * things are told.
 */
#include "report/trace/correlation_join.h"
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static const struct node *must(const struct profile_fixture *fixture, const char *path)
{
	const struct node *node = fixture_node(fixture, path);

	ck_assert_msg(node != NULL, "there is no `%s`", path);
	return node;
}

static void expect_gpu(const struct node *node, uint64_t total, uint64_t self, uint64_t calls)
{
	ck_assert_ptr_nonnull(node->gpu);
	ck_assert_uint_eq(node->gpu->total_ns, total);
	ck_assert_uint_eq(node->gpu->self_ns, self);
	ck_assert_uint_eq(node->gpu->total_calls, calls);
}

/* step { layer { launch 1 } launch 2, copy 3, set 4 }; the records come later, on another thread.
 */
static struct trace_builder *a_step(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 100, "step");
	build_push(builder, 1, 110, "layer");
	build_launch(builder, 1, 120, 1);
	build_pop(builder, 1, 130);
	build_launch(builder, 1, 140, 2);
	build_copy(builder, 1, 150, TRACE_COPY, 3, 4096);
	build_copy(builder, 1, 160, TRACE_SET, 4, 512);
	build_pop(builder, 1, 200);
	return builder;
}

static void deliver(struct trace_builder *builder, uint64_t at)
{
	build_record(builder, 9, TRACE_GPU_BATCH, sizeof(struct trace_gpu_batch), at);
	build_kernel(builder, 9, at, 1, "_Z4gemmPf", 300, 400);
	build_kernel(builder, 9, at, 2, "relu", 400, 450);
	build_gpu_copy(builder, 9, at, TRACE_GPU_COPY, 3, 4096, 460, 467);
	build_gpu_copy(builder, 9, at, TRACE_GPU_SET, 4, 512, 470, 473);
}

static void expect_a_step(const struct profile_fixture *fixture)
{
	const struct profile_counts *counts = &fixture->profile->counts;

	expect_gpu(must(fixture, "step"), 160, 60, 4);
	expect_gpu(must(fixture, "step/layer"), 100, 100, 1);
	expect_gpu(must(fixture, "step/layer/gemm"), 100, 100, 1);
	expect_gpu(must(fixture, "step/relu"), 50, 50, 1);
	expect_gpu(must(fixture, "step/memcpy HtoD"), 7, 7, 1);
	expect_gpu(must(fixture, "step/memset"), 3, 3, 1);
	ck_assert_uint_eq(must(fixture, "step/memcpy HtoD")->gpu->bytes, 4096);
	ck_assert_uint_eq(counts->launches, 2);
	ck_assert_uint_eq(counts->kernels, 2);
	ck_assert_uint_eq(counts->copies_called, 1);
	ck_assert_uint_eq(counts->sets_called, 1);
	ck_assert_uint_eq(counts->attributed, 4);
	ck_assert_uint_eq(counts->unattributed, 0);
	ck_assert_uint_eq(counts->missing_records, 0);
	ck_assert_uint_eq(fixture->profile->totals.gpu_sum_ns, 160);
	ck_assert_int_eq(must(fixture, "step/relu")->gpu->method, METHOD_CORRELATION);
	fixture_check(fixture);
}

START_TEST(work_belongs_to_the_range_that_launched_it)
{
	struct trace_builder *builder = a_step();
	struct profile_fixture fixture;

	deliver(builder, 1000);
	fixture = fixture_of(builder, NULL);
	expect_a_step(&fixture);
	/* The calls are leaves of their own, and stay in the range's self. */
	ck_assert_uint_eq(must(&fixture, "step/cudaMemcpyAsync")->calls, 1);
	ck_assert_uint_eq(must(&fixture, "step/cudaLaunchKernel")->total_ns, 5);
	ck_assert_uint_eq(must(&fixture, "step")->self_ns, 80);
	ck_assert_uint_eq(must(&fixture, "step")->call_ns, 15);
	fixture_free(&fixture);
}
END_TEST

START_TEST(records_may_come_before_their_launch_is_recorded)
{
	struct trace_builder *builder = a_step();
	struct profile_fixture fixture;

	deliver(builder, 50);
	fixture = fixture_of(builder, NULL);
	expect_a_step(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_trace_that_describes_no_device_is_joined_too)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 10, "a");
	build_launch(builder, 1, 20, 7);
	build_pop(builder, 1, 30);
	build_kernel(builder, 9, 100, 7, "k", 40, 60);
	fixture = fixture_of(builder, NULL);
	expect_gpu(must(&fixture, "a"), 20, 20, 1);
	ck_assert_uint_eq(fixture.profile->totals.gpu_busy_ns, 20);
	fixture_free(&fixture);
}
END_TEST

START_TEST(work_of_no_range_is_a_root_of_its_own)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_launch(builder, 1, 10, 1); /* in no range */
	build_push(builder, 1, 20, "a");
	build_pop(builder, 1, 30);
	build_kernel(builder, 9, 100, 1, "lone", 20, 30);
	build_kernel(builder, 9, 101, 99, "stray", 30, 50); /* no such launch */
	build_kernel(builder, 9, 102, 0, "nobody", 50, 90); /* no id at all */
	fixture = fixture_of(builder, NULL);
	expect_gpu(must(&fixture, "unattributed"), 70, 70, 3);
	expect_gpu(must(&fixture, "unattributed/stray"), 20, 20, 1);
	ck_assert_int_eq(must(&fixture, "unattributed/lone")->gpu->method, METHOD_NONE);
	ck_assert_uint_eq(fixture.profile->counts.unattributed, 3);
	ck_assert_uint_eq(fixture.profile->counts.without_launch, 2);
	ck_assert_uint_eq(fixture.profile->totals.unattributed_ns, 70);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_cupti_could_not_time_is_counted_and_has_no_time)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 10, "a");
	build_launch(builder, 1, 20, 1);
	build_launch(builder, 1, 25, 2);
	build_pop(builder, 1, 30);
	build_kernel(builder, 9, 100, 1, "k", 0, 0);
	build_kernel(builder, 9, 101, 2, "k", 50, 60);
	fixture = fixture_of(builder, NULL);
	expect_gpu(must(&fixture, "a/k"), 10, 10, 2);
	ck_assert_uint_eq(must(&fixture, "a/k")->gpu->untimed, 1);
	ck_assert_uint_eq(must(&fixture, "a/k")->calls, 2);
	ck_assert_uint_eq(must(&fixture, "a/k")->min_ns, 10);
	ck_assert_uint_eq(fixture.profile->counts.untimed, 1);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(only_untimed_work_makes_no_time_and_no_restart)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_launch(builder, 1, 20, 1);
	build_kernel(builder, 9, 100, 1, "k", 0, 0);
	fixture = fixture_of(builder, NULL);
	ck_assert_ptr_null(fixture.profile->timeline);
	ck_assert_uint_eq(fixture.profile->counts.kernels, 1);
	fixture_free(&fixture);
}
END_TEST

START_TEST(captured_and_failed_launches_wait_for_nothing)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_device(builder, 0, "a GPU");
	build_launch(builder, 1, 10, 1)->call.head.flags = TRACE_CALL_CAPTURED;
	build_launch(builder, 1, 20, 2)->call.result = 9;
	build_launch(builder, 1, 30, 3);
	build_launch(builder, 1, 40, 0); /* CUPTI was not there */
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->counts.launches, 2);
	ck_assert_uint_eq(fixture.profile->counts.captured, 1);
	ck_assert_uint_eq(fixture.profile->counts.failed_calls, 1);
	ck_assert_uint_eq(fixture.profile->counts.missing_records, 1);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_copy_of_no_bytes_needs_no_record)
{
	struct trace_builder *builder = builder_new();
	const struct profile_counts *counts;
	struct profile_fixture fixture;

	build_copy(builder, 1, 10, TRACE_SET, 1, 0);
	build_copy(builder, 1, 20, TRACE_COPY, 2, 0);
	build_copy(builder, 1, 30, TRACE_COPY, 3, 0); /* its size is unknown: it has a record */
	build_copy(builder, 1, 40, TRACE_SET, 4, 1);
	build_gpu_copy(builder, 9, 100, TRACE_GPU_COPY, 3, 64, 50, 60);
	fixture = fixture_of(builder, NULL);
	counts = &fixture.profile->counts;
	ck_assert_uint_eq(counts->empty_calls, 2);
	ck_assert_uint_eq(counts->missing_records, 1);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_lower_id_than_every_launch_was_launched_before_the_trace)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_launch(builder, 1, 10, 50);
	build_kernel(builder, 9, 100, 49, "earlier", 5, 9);
	build_kernel(builder, 9, 100, 50, "own", 20, 30);
	build_kernel(builder, 9, 100, 51, "of no launch", 30, 40);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->counts.without_launch, 2);
	ck_assert_uint_eq(fixture.profile->counts.launched_before, 1);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_call_that_an_importer_explains_misses_no_record)
{
	static const unsigned char flags[] = { TRACE_CALL_EMPTY, TRACE_CALL_BEFORE_GPU,
		TRACE_CALL_AFTER_GPU, TRACE_CALL_PROFILED, 0 };
	struct trace_builder *builder = builder_new();
	const struct profile_counts *counts;
	struct profile_fixture fixture;

	for (unsigned i = 0; i < sizeof flags; i++)
		build_launch(builder, 1, i * 10 + 10, i + 1)->call.head.flags = flags[i];
	fixture = fixture_of(builder, NULL);
	counts = &fixture.profile->counts;
	ck_assert_uint_eq(counts->empty_calls, 1);
	ck_assert_uint_eq(counts->before_gpu, 1);
	ck_assert_uint_eq(counts->after_gpu, 1);
	ck_assert_uint_eq(counts->range_profiled, 1);
	ck_assert_uint_eq(counts->missing_records, 1);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_graph_is_under_its_launch_and_its_kernels_under_it)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_device(builder, 0, "a GPU");
	for (unsigned i = 0; i < 3; i++) {
		build_push(builder, 1, i * 100, "replay");
		build_graph_launch(builder, 1, i * 100 + 10, 50 + i, 4);
		build_pop(builder, 1, i * 100 + 20);
	}
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 5; k++) {
			struct trace_kernel *kernel = build_kernel(builder, 9, 1000 + i, 50 + i,
				"node", i * 100 + 30 + k * 10, i * 100 + 38 + k * 10);

			kernel->gpu.graph = 4;
			kernel->gpu.graph_node = k + 1;
		}
	fixture = fixture_of(builder, NULL);
	expect_gpu(must(&fixture, "replay"), 120, 120, 15);
	expect_gpu(must(&fixture, "replay/graph 4"), 120, 120, 15);
	expect_gpu(must(&fixture, "replay/graph 4/node"), 120, 120, 15);
	ck_assert_int_eq(must(&fixture, "replay/graph 4")->kind, NODE_GRAPH);
	ck_assert_uint_eq(must(&fixture, "replay/graph 4")->calls, 3);
	ck_assert_int_eq(must(&fixture, "replay/graph 4/node")->gpu->method, METHOD_GRAPH_LEVEL);
	ck_assert_uint_eq(fixture.profile->counts.graph_kernels, 15);
	ck_assert_uint_eq(fixture.profile->counts.missing_records, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(busy_is_a_union_and_idle_what_is_left_of_the_span)
{
	struct trace_builder *builder = builder_new();
	const struct timeline_device *devices;
	struct profile_fixture fixture;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "a");
	for (unsigned i = 1; i <= 4; i++)
		build_launch(builder, 1, i * 10, i);
	build_pop(builder, 1, 100);
	build_push(builder, 1, 900, "b");
	build_pop(builder, 1, 1000);
	build_kernel(builder, 9, 2000, 3, "k", 400, 500); /* delivered in no order */
	build_kernel(builder, 9, 2000, 1, "k", 100, 200);
	build_kernel(builder, 9, 2000, 2, "k", 150, 250); /* beside it, on another stream */
	build_kernel(builder, 9, 2000, 4, "k", 950, 960)->gpu.device = 1;
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->totals.gpu_sum_ns, 310);
	ck_assert_uint_eq(fixture.profile->totals.gpu_busy_ns, 150 + 100 + 10);
	ck_assert_uint_eq(fixture.profile->totals.gpu_idle_ns, 150);
	ck_assert_uint_eq(timeline_devices(fixture.profile->timeline, &devices), 2);
	ck_assert_uint_eq(devices[0].all.first_ns, BUILDER_START_UNIX_NS + 100);
	ck_assert_uint_eq(devices[0].all.last_ns, BUILDER_START_UNIX_NS + 500);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_range_knows_how_long_the_gpu_was_idle_in_it)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "whole");
	build_launch(builder, 1, 10, 1);
	build_launch(builder, 1, 20, 2);
	build_push(builder, 1, 150, "first"); /* 150..300: busy to 200, then idle */
	build_pop(builder, 1, 300);
	build_push(builder, 1, 380, "second"); /* 380..450: idle to 400, then busy */
	build_pop(builder, 1, 450);
	build_pop(builder, 1, 1000); /* after the last work nothing is idle */
	build_kernel(builder, 9, 2000, 1, "k", 100, 200);
	build_kernel(builder, 9, 2000, 2, "k", 400, 500);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(must(&fixture, "whole")->gpu->idle_ns, 200);
	ck_assert_uint_eq(must(&fixture, "whole/first")->gpu->idle_ns, 100);
	ck_assert_uint_eq(must(&fixture, "whole/second")->gpu->idle_ns, 20);
	fixture_free(&fixture);
}
END_TEST

/* The timeline keeps all work of device 0 as few intervals. They must be read before the range
 * begins, although 70,000 intervals of device 1 are noted meanwhile. */
START_TEST(a_device_that_is_always_busy_is_not_idle_beside_one_with_many_gaps)
{
	enum { KERNELS = 70000, PERIOD = 20, END = 100 + KERNELS * PERIOD };
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "whole");
	build_push(builder, 1, 1000, "early");
	build_pop(builder, 1, 2000);
	build_pop(builder, 1, END);
	for (uint64_t at = 100; at < END; at += PERIOD) {
		build_kernel(builder, 9, END, 0, "k", at, at + PERIOD);
		build_kernel(builder, 9, END, 0, "k", at, at + PERIOD / 2)->gpu.device = 1;
	}
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(must(&fixture, "whole/early")->gpu->idle_ns, 500);
	ck_assert_uint_eq(timeline_late_records(fixture.profile->timeline), 0);
	fixture_free(&fixture);
}
END_TEST

START_TEST(one_device_can_be_selected)
{
	const struct profile_options second = { .device = 1, .metric = METRIC_GPU };
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 0, "a");
	build_launch(builder, 1, 10, 1);
	build_launch(builder, 1, 20, 2);
	build_pop(builder, 1, 30);
	build_kernel(builder, 9, 100, 1, "k", 40, 50);
	build_kernel(builder, 9, 100, 2, "k", 40, 60)->gpu.device = 1;
	fixture = fixture_of(builder, &second);
	expect_gpu(must(&fixture, "a"), 20, 20, 1);
	ck_assert_uint_eq(
		fixture.profile->counts.kernels, 2); /* what the trace holds is told whole */
	fixture_free(&fixture);
}
END_TEST

START_TEST(times_that_cannot_be_are_counted)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_launch(builder, 1, 50100, 1); /* called at 50095 */
	build_launch(builder, 1, 50200, 2);
	build_launch(builder, 1, 50300, 3); /* called at 50295 */
	build_kernel(builder, 9, 60300, 1, "early", 30090, 30120);
	build_kernel(builder, 9, 60300, 2, "backwards", 50250, 50240);
	build_kernel(builder, 9, 60300, 3, "by the clocks' distance", 30295, 30300);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->counts.early, 1);
	ck_assert_uint_eq(fixture.profile->counts.backwards, 1);
	ck_assert_uint_eq(must(&fixture, "unattributed/backwards")->gpu->total_ns, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(the_worst_instance_by_gpu_time_is_known_although_records_come_late)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const struct node *node;

	build_device(builder, 0, "a GPU");
	for (unsigned i = 0; i < 5; i++) {
		char label[32];

		snprintf(label, sizeof label, "step %u", i);
		build_push(builder, 1, i * 100, label);
		build_push(builder, 1, i * 100 + 5, "layer");
		build_launch(builder, 1, i * 100 + 20, 10 + i);
		build_pop(builder, 1, i * 100 + 30);
		build_launch(builder, 1, i * 100 + 40, 20 + i);
		build_pop(builder, 1, i * 100 + 50);
	}
	for (unsigned i = 0; i < 5; i++) {
		build_kernel(builder, 9, 3000, 10 + i, "k", 1000 + i * 100,
			1010 + i * 100 + (i == 3 ? 50 : 0));
		build_kernel(builder, 9, 3000, 20 + i, "k", 1070 + i * 100,
			1075 + i * 100 + (i == 1 ? 20 : 0));
	}
	fixture = fixture_of(builder, NULL);
	node = must(&fixture, "step *");
	ck_assert_str_eq(string_table_get(fixture.texts, node->worst->label).bytes, "step 3");
	ck_assert(node->worst->value == 65);
	ck_assert_uint_eq(node->worst->begin_ns, 300);
	ck_assert_uint_eq(must(&fixture, "step */layer")->worst->begin_ns, 305);
	fixture_free(&fixture);
}
END_TEST

START_TEST(launches_that_nothing_comes_of_do_not_pile_up)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "a");
	for (unsigned i = 1; i <= JOIN_WAITING + 10; i++)
		build_launch(builder, 1, i * 10, i);
	build_pop(builder, 1, 10000000);
	build_kernel(builder, 9, 20000000, 1, "late", 100, 200); /* pushed out by then */
	build_kernel(builder, 9, 20000000, 1000, "in time", 300, 400);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->counts.missing_records, JOIN_WAITING + 9);
	ck_assert_uint_eq(fixture.profile->counts.attributed, 1);
	ck_assert_uint_eq(fixture.profile->counts.without_launch, 1);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

/* The first of so many launches, each with its record, gets another record. */
static struct profile_fixture with_a_late_record(unsigned launches)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "a");
	for (unsigned i = 1; i <= launches; i++)
		build_launch(builder, 1, i * 10, i);
	build_pop(builder, 1, 10000000);
	for (unsigned i = 1; i <= launches; i++)
		build_kernel(
			builder, 9, 20000000, i, "first", 20000000 + i * 10, 20000005 + i * 10);
	build_kernel(builder, 9, 30000000, 1, "second", 30000000, 30000005);
	return fixture_of(builder, NULL);
}

START_TEST(launches_that_have_their_record_wait_for_another_one_for_a_while)
{
	struct profile_fixture fixture = with_a_late_record(JOIN_MATCHED);

	ck_assert_uint_eq(fixture.profile->counts.attributed, JOIN_MATCHED + 1);
	fixture_check(&fixture);
	fixture_free(&fixture);
	fixture = with_a_late_record(JOIN_MATCHED * 2);
	ck_assert_uint_eq(fixture.profile->counts.attributed, JOIN_MATCHED * 2);
	ck_assert_uint_eq(fixture.profile->counts.without_launch, 1);
	ck_assert_uint_eq(fixture.profile->counts.missing_records, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(an_id_given_twice_is_the_later_launch)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 0, "a");
	build_launch(builder, 1, 10, 1);
	build_pop(builder, 1, 20);
	build_push(builder, 1, 30, "b");
	build_launch(builder, 1, 40, 1);
	build_pop(builder, 1, 50);
	build_kernel(builder, 9, 100, 1, "k", 60, 70);
	fixture = fixture_of(builder, NULL);
	expect_gpu(must(&fixture, "b"), 10, 10, 1);
	ck_assert_uint_eq(fixture.profile->counts.missing_records, 1);
	fixture_free(&fixture);
}
END_TEST

/* Everything at random: launches with and without ranges, records early, late, missing, untimed. */
START_TEST(nothing_is_owned_twice_or_not_at_all)
{
	static const char *const names[] = { "a", "b 1", "b 2", "c" };
	struct trace_builder *builder = builder_new();
	unsigned depth = 0;
	uint64_t sum = 0;
	struct profile_fixture fixture;

	srand((unsigned)_i);
	for (unsigned i = 1; i <= 3000; i++) {
		const uint64_t at = i * 100, start = at + (uint64_t)rand() % 5000,
			       length = (uint64_t)rand() % 1000;

		if (rand() % 3 == 0)
			build_push(builder, 1, at, names[rand() % 4]), depth++;
		else if (depth && rand() % 2)
			build_pop(builder, 1, at), depth--;
		if (rand() % 8)
			build_launch(builder, 1, at + 10, i);
		if (rand() % 5 == 0)
			build_graph_launch(builder, 1, at + 20, 100000 + i, i % 3);
		if (rand() % 10 == 0)
			continue;
		build_kernel(builder, 9, at + 5, i, names[rand() % 4], start, start + length);
		sum += length;
		build_kernel(
			builder, 9, at + 6, rand() % 2 ? 100000 + i : i, names[rand() % 4], 0, 0);
	}
	fixture = fixture_of(builder, NULL);
	fixture_check(&fixture);
	ck_assert_uint_eq(fixture.profile->totals.gpu_sum_ns, sum);
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gpu_join");
	TCase *join = tcase_create("join");
	SRunner *runner;
	int failed;

	tcase_set_timeout(join, 60);
	tcase_add_test(join, work_belongs_to_the_range_that_launched_it);
	tcase_add_test(join, records_may_come_before_their_launch_is_recorded);
	tcase_add_test(join, a_trace_that_describes_no_device_is_joined_too);
	tcase_add_test(join, work_of_no_range_is_a_root_of_its_own);
	tcase_add_test(join, what_cupti_could_not_time_is_counted_and_has_no_time);
	tcase_add_test(join, only_untimed_work_makes_no_time_and_no_restart);
	tcase_add_test(join, captured_and_failed_launches_wait_for_nothing);
	tcase_add_test(join, a_copy_of_no_bytes_needs_no_record);
	tcase_add_test(join, a_lower_id_than_every_launch_was_launched_before_the_trace);
	tcase_add_test(join, a_call_that_an_importer_explains_misses_no_record);
	tcase_add_test(join, a_graph_is_under_its_launch_and_its_kernels_under_it);
	tcase_add_test(join, busy_is_a_union_and_idle_what_is_left_of_the_span);
	tcase_add_test(join, a_range_knows_how_long_the_gpu_was_idle_in_it);
	tcase_add_test(join, a_device_that_is_always_busy_is_not_idle_beside_one_with_many_gaps);
	tcase_add_test(join, one_device_can_be_selected);
	tcase_add_test(join, times_that_cannot_be_are_counted);
	tcase_add_test(join, the_worst_instance_by_gpu_time_is_known_although_records_come_late);
	tcase_add_test(join, launches_that_nothing_comes_of_do_not_pile_up);
	tcase_add_test(join, launches_that_have_their_record_wait_for_another_one_for_a_while);
	tcase_add_test(join, an_id_given_twice_is_the_later_launch);
	tcase_add_loop_test(join, nothing_is_owned_twice_or_not_at_all, 0, 10);
	suite_add_tcase(suite, join);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
