/* SPDX-License-Identifier: MIT
 * test_counted_ranges.c: operators that were only counted (PPERF_OPS=totals), in the tree: calls,
 * times, and that nothing is owned twice; and what of it is read from damaged files.
 */
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAIN = 1, AUTOGRAD = 2, GPU = 3 }; /* streams */

static uint32_t op(struct trace_builder *builder, uint32_t parent, const char *name)
{
	return build_linked_node(builder, parent, name, TRACE_NODE_OP, 0, NULL);
}

static struct trace_total row(uint32_t node, uint64_t calls, uint64_t ticks, uint64_t longest)
{
	return (struct trace_total){
		.node = node, .calls = calls, .ticks = ticks, .longest = longest
	};
}

#define BUILD_ROWS(builder, ...)                                         \
	do {                                                             \
		const struct trace_total rows_[] = { __VA_ARGS__ };      \
		build_block(builder, TRACE_TOTALS, rows_, sizeof rows_); \
	} while (0)

static void expect(const struct profile_fixture *fixture, const char *path, uint64_t calls,
	uint64_t total, uint64_t self)
{
	const struct node *node = fixture_node(fixture, path);

	ck_assert_msg(node != NULL, "%s is not there", path);
	ck_assert_msg(node->calls == calls && node->total_ns == total && node->self_ns == self,
		"%s: %llu calls, total %llu, self %llu", path, (unsigned long long)node->calls,
		(unsigned long long)node->total_ns, (unsigned long long)node->self_ns);
}

/* All self times are the outermost totals. */
static void expect_conserved(const struct profile_fixture *fixture)
{
	const struct tree *tree = fixture->profile->tree;
	uint64_t outermost = 0, self = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		ck_assert_int_ge((int64_t)tree->nodes[id].self_ns, 0);
		if (node_kind_class(tree->nodes[id].kind) != NODE_RANGES)
			continue;
		self += tree->nodes[id].self_ns;
		outermost += tree->nodes[id].parent || tree->nodes[id].ran_elsewhere
				     ? 0
				     : tree->nodes[id].total_ns;
	}
	ck_assert_uint_eq(self, outermost);
	fixture_check(fixture);
}

START_TEST(what_was_counted_takes_its_time_from_what_is_around_it)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = build_linked_node(builder, 0, "Net", TRACE_NODE_MODULE, 0, "Net"),
		       linear = op(builder, net, "aten::linear"),
		       addmm = op(builder, linear, "aten::addmm");
	struct profile_fixture fixture;

	build_push_node(builder, MAIN, 100, net);
	build_pop(builder, MAIN, 1100);
	BUILD_ROWS(builder, row(linear, 4, 600, 200), row(addmm, 5, 450, 100));
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "Net", 1, 1000, 400);
	expect(&fixture, "Net/aten::linear", 4, 600, 150);
	expect(&fixture, "Net/aten::linear/aten::addmm", 5, 450, 450);
	ck_assert(fixture_node(&fixture, "Net/aten::linear")->is_counted);
	ck_assert_uint_eq(fixture_node(&fixture, "Net/aten::linear")->max_ns, 200);
	ck_assert(!fixture_node(&fixture, "Net")->is_counted);
	ck_assert_uint_eq(fixture.profile->counts.counted, 9);
	expect_conserved(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(rows_of_several_threads_add_up)
{
	struct trace_builder *builder = builder_new();
	const uint32_t mm = op(builder, 0, "aten::mm");
	struct profile_fixture fixture;

	build_push(builder, MAIN, 10, "idle");
	build_pop(builder, MAIN, 20);
	BUILD_ROWS(builder, row(mm, 1, 100, 100));
	BUILD_ROWS(builder, row(mm, 3, 90, 40), row(mm, 2, 300, 200));
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "aten::mm", 6, 490, 490);
	ck_assert_uint_eq(fixture_node(&fixture, "aten::mm")->max_ns, 200);
	expect_conserved(&fixture);
	fixture_free(&fixture);
}
END_TEST

/* Net > aten::checkpoint (counted) > Block > aten::mm (counted): Block lies in Net's row of open
 * ranges. */
START_TEST(a_recorded_range_in_a_counted_one_takes_its_time_from_that)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = build_linked_node(builder, 0, "Net", TRACE_NODE_MODULE, 0, "Net"),
		       checkpoint = op(builder, net, "checkpoint"),
		       block = build_linked_node(
			       builder, checkpoint, "Block", TRACE_NODE_MODULE, 0, "Block"),
		       mm = op(builder, block, "aten::mm");
	struct profile_fixture fixture;

	build_push_node(builder, MAIN, 0, net);
	build_push_node(builder, MAIN, 100, block);
	build_pop(builder, MAIN, 400);
	build_push_node(builder, MAIN, 500, block);
	build_pop(builder, MAIN, 600);
	build_pop(builder, MAIN, 1000);
	BUILD_ROWS(builder, row(checkpoint, 2, 500, 310), row(mm, 2, 150, 100));
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "Net", 1, 1000, 500);
	expect(&fixture, "Net/checkpoint", 2, 500, 100);
	expect(&fixture, "Net/checkpoint/Block", 2, 400, 250);
	expect(&fixture, "Net/checkpoint/Block/aten::mm", 2, 150, 150);
	expect_conserved(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_is_below_a_node_is_in_its_total_even_if_it_never_ended)
{
	struct trace_builder *builder = builder_new();
	const uint32_t run = build_linked_node(builder, 0, "run", TRACE_NODE_RANGE, 0, NULL),
		       outer = op(builder, run, "outer"), inner = op(builder, outer, "inner"),
		       block = build_linked_node(
			       builder, inner, "Block", TRACE_NODE_MODULE, 0, NULL);
	struct profile_fixture fixture;

	build_push_node(builder, MAIN, 0, run);
	build_push_node(builder, MAIN, 100, block);
	build_pop(builder, MAIN, 400);
	build_pop(builder, MAIN, 1000);
	BUILD_ROWS(
		builder, row(outer, 1, 200,
				 200)); /* of `inner` nothing has ended, of `outer` a shorter one */
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "run/outer/inner/Block", 1, 300, 300);
	expect(&fixture, "run/outer/inner", 0, 300, 0);
	expect(&fixture, "run/outer", 1, 300, 0);
	expect(&fixture, "run", 1, 1000, 700);
	expect_conserved(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_range_that_closes_under_a_counted_ones_child_keeps_the_sums)
{
	struct trace_builder *builder = builder_new();
	const uint32_t a = build_linked_node(builder, 0, "a", TRACE_NODE_RANGE, 0, NULL),
		       o = op(builder, a, "o"),
		       b = build_linked_node(builder, o, "b", TRACE_NODE_RANGE, 0, NULL);
	struct profile_fixture fixture;

	build_push_node(builder, MAIN, 0, a);
	build_push_node(builder, MAIN, 100, b);
	build_pop_at(builder, MAIN, 500, 0);
	build_pop(builder, MAIN, 900);
	BUILD_ROWS(builder, row(o, 1, 820, 820));
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "a/o/b", 1, 800, 800);
	expect(&fixture, "a/o", 1, 820, 20);
	expect(&fixture, "a", 1, 820, 0);
	expect_conserved(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(backward_stands_beside_forward_and_has_its_time_where_it_ran)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = build_linked_node(builder, 0, "Net", TRACE_NODE_MODULE, 0, "Net"),
		       linear = op(builder, net, "aten::linear"),
		       addmm = op(builder, linear, "aten::addmm"),
		       engine = op(
			       builder, 0, "autograd::engine::evaluate_function: AddmmBackward0"),
		       function = build_linked_node(
			       builder, engine, "AddmmBackward0", TRACE_NODE_BACKWARD, addmm, NULL),
		       mm = op(builder, function, "aten::mm");
	struct profile_fixture fixture;

	build_push_node(builder, MAIN, 0, net);
	build_pop(builder, MAIN, 100);
	BUILD_ROWS(builder, row(linear, 1, 60, 60), row(addmm, 1, 50, 50), row(engine, 1, 40, 40),
		row(function, 1, 30, 30), row(mm, 2, 20, 12));
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "Net/aten::linear (bwd)/AddmmBackward0", 1, 30, 10);
	expect(&fixture, "Net/aten::linear (bwd)/AddmmBackward0/aten::mm", 2, 20, 20);
	expect(&fixture, "(backward)", 1, 40, 10);
	expect(&fixture, "Net", 1, 100, 40);
	expect_conserved(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(gpu_work_is_owned_by_the_counted_node_that_launched_it)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = build_linked_node(builder, 0, "Net", TRACE_NODE_MODULE, 0, "Net"),
		       mm = op(builder, net, "aten::mm");
	struct trace_launch *launch;
	struct profile_fixture fixture;

	build_push_node(builder, MAIN, 0, net);
	launch = build_launch(builder, MAIN, 50, 7);
	launch->call.head.node = mm;
	build_pop(builder, MAIN, 100);
	build_kernel(builder, GPU, 200, 7, "gemm", 120, 180);
	BUILD_ROWS(builder, row(mm, 1, 60, 60));
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture_node(&fixture, "Net/aten::mm")->gpu->self_ns, 60);
	ck_assert_uint_eq(fixture_node(&fixture, "Net")->gpu->total_ns, 60);
	expect(&fixture, "Net", 1, 100, 40);
	expect_conserved(&fixture);
	fixture_free(&fixture);
}
END_TEST

static void has(const char *text, const char *wanted)
{
	ck_assert_msg(strstr(text, wanted) != NULL, "`%s` is not in:\n%s", wanted, text);
}

START_TEST(metrics_of_a_counted_node_are_those_that_are_known)
{
	struct trace_builder *builder = builder_new();
	const uint32_t mm = op(builder, 0, "aten::mm");
	struct report_run run;

	build_push(builder, MAIN, 0, "range");
	build_pop(builder, MAIN, 500000);
	BUILD_ROWS(builder, row(mm, 6, 490000, 200000));
	run = run_report(builder, "tree trace.bin --width 100");
	ck_assert_str_eq(run.out,
		"                cpu       %  calls        p50        max   cpu self        p95\n"
		"range     500.00 µs  50.5 %      1  500.00 µs  500.00 µs  500.00 µs  500.00 µs\n"
		"aten::mm  490.00 µs  49.5 %      6          -  200.00 µs  490.00 µs          -\n");
	run = run_report(NULL, "tree trace.bin -f json");
	has(run.out, "\"calls\": 6");
	has(run.out, "\"cpu_total_ns\": 490000");
	has(run.out, "\"min_ns\": null, \"p50_ns\": null, \"p95_ns\": null, \"p99_ns\": null, "
		     "\"max_ns\": 200000");
	has(run.out, "\"provenance\": \"counted\"");
	run = run_report(NULL, "trace.bin");
	has(run.out, "operators 6 calls were counted, not recorded (PPERF_OPS=totals)");
	run = run_report(NULL, "info trace.bin");
	has(run.out, "counted     6 calls at 1 nodes, in 1 blocks");
}
END_TEST

/* ---- what a file may be ---- */

static void *bytes_of(struct trace_builder *builder, size_t *count)
{
	const unsigned char *bytes = builder_bytes(builder, count);
	void *copy = malloc(*count);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, bytes, *count);
	builder_free(builder);
	return copy;
}

static struct trace_reader *read_bytes(const void *bytes, size_t count)
{
	char path[] = "/tmp/pperf-counted.XXXXXX", error[READER_ERROR_BYTES];
	FILE *file = fdopen(mkstemp(path), "wb");
	struct trace_reader *reader;

	ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
	fclose(file);
	reader = reader_open(path, error);
	remove(path);
	return reader;
}

static struct trace_builder *with_rows(uint32_t type)
{
	struct trace_builder *builder = builder_new();
	const uint32_t mm = op(builder, 0, "aten::mm"), add = op(builder, 0, "aten::add");

	build_push(builder, MAIN, 10, "range");
	build_pop(builder, MAIN, 20);
	build_seal(builder, MAIN, SEAL_WHOLE);
	if (type == TRACE_TOTALS)
		BUILD_ROWS(builder, row(mm, 3, 90, 40), row(add, 2, 300, 200));
	else
		build_block(builder, type, "of the future", 13);
	build_push(builder, MAIN, 30, "range");
	build_pop(builder, MAIN, 40);
	build_seal(builder, MAIN, SEAL_WHOLE);
	return builder;
}

static uint64_t pushes(struct trace_reader *reader)
{
	struct trace_event event;
	uint64_t count = 0;

	while (reader_next(reader, &event) > 0)
		count += event.kind == TRACE_PUSH;
	return count;
}

START_TEST(a_file_cut_anywhere_has_the_rows_before_the_cut)
{
	size_t count;
	unsigned char *bytes = bytes_of(with_rows(TRACE_TOTALS), &count);
	uint32_t last = 0;

	for (size_t cut = sizeof(struct trace_header); cut <= count; cut++) {
		struct trace_reader *reader = read_bytes(bytes, cut);
		uint32_t rows;

		if (!reader)
			continue;
		reader_counted(reader, &rows);
		ck_assert_uint_ge(rows, last);
		ck_assert_uint_le(pushes(reader), 2);
		ck_assert(cut == count || !reader_integrity(reader)->complete ||
			  cut % TRACE_ALIGN == 0 || rows == 2);
		last = rows;
		reader_close(reader);
	}
	ck_assert_uint_eq(last, 2);
	free(bytes);
}
END_TEST

START_TEST(damaged_rows_do_no_harm)
{
	struct trace_builder *builder = builder_new();
	const uint32_t mm = op(builder, 0, "aten::mm");
	const struct trace_counted *all;
	struct profile_fixture fixture;
	uint32_t count;

	build_push(builder, MAIN, 10, "range");
	build_pop(builder, MAIN, 20);
	BUILD_ROWS(builder, row(mm, 1, 100, 500), row(0, 7, 8, 9), row(123456, 1, 2, 3),
		row(mm, UINT64_MAX, UINT64_MAX, 1), row(mm, 0, 5, 5));
	build_block(builder, TRACE_TOTALS, "half a row", 10);
	fixture = fixture_of(builder, NULL);
	all = reader_counted(fixture.reader, &count);
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(all[0].node, mm);
	ck_assert_uint_eq(all[0].calls, UINT64_MAX);
	ck_assert_uint_eq(all[0].total_ns, READER_TIME_MAX);
	ck_assert_uint_eq(all[0].longest_ns, 100);
	ck_assert_uint_eq(all[1].node, reader_node_count(fixture.reader) - 1);
	ck_assert_uint_eq(reader_integrity(fixture.reader)->unknown_nodes, 2);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_block_of_an_unknown_type_is_passed_over_and_counted)
{
	size_t count;
	unsigned char *bytes = bytes_of(with_rows(77), &count);
	struct trace_reader *reader = read_bytes(bytes, count);

	ck_assert_uint_eq(pushes(reader), 2);
	ck_assert_uint_eq(reader_integrity(reader)->unknown_kinds, 1);
	ck_assert_uint_eq(reader_integrity(reader)->damaged_blocks, 0);
	ck_assert_uint_eq(reader_integrity(reader)->skipped_bytes, 0);
	reader_close(reader);
	free(bytes);
}
END_TEST

START_TEST(of_some_steps_nothing_that_was_counted_is_shown)
{
	const struct profile_options options = {
		.device = -1, .metric = METRIC_CPU, .steps = true, .first_step = 0, .last_step = 0
	};
	struct trace_builder *builder = builder_new();
	const uint32_t step = build_linked_node(builder, 0, "step 0", TRACE_NODE_STEP, 0, NULL),
		       mm = op(builder, step, "aten::mm");
	struct profile_fixture fixture;

	build_push_node(builder, MAIN, 100, step);
	build_pop(builder, MAIN, 300);
	BUILD_ROWS(builder, row(mm, 9, 90, 90));
	fixture = fixture_of(builder, &options);
	ck_assert_uint_eq(fixture.profile->counts.counted, 0);
	expect(&fixture, "step *", 1, 200, 200);
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("counted");
	TCase *cases = tcase_create("counted");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(cases, 60);
	tcase_add_checked_fixture(cases, run_report_setup, run_report_teardown);
	tcase_add_test(cases, what_was_counted_takes_its_time_from_what_is_around_it);
	tcase_add_test(cases, rows_of_several_threads_add_up);
	tcase_add_test(cases, a_recorded_range_in_a_counted_one_takes_its_time_from_that);
	tcase_add_test(cases, what_is_below_a_node_is_in_its_total_even_if_it_never_ended);
	tcase_add_test(cases, a_range_that_closes_under_a_counted_ones_child_keeps_the_sums);
	tcase_add_test(cases, backward_stands_beside_forward_and_has_its_time_where_it_ran);
	tcase_add_test(cases, gpu_work_is_owned_by_the_counted_node_that_launched_it);
	tcase_add_test(cases, metrics_of_a_counted_node_are_those_that_are_known);
	tcase_add_test(cases, a_file_cut_anywhere_has_the_rows_before_the_cut);
	tcase_add_test(cases, damaged_rows_do_no_harm);
	tcase_add_test(cases, a_block_of_an_unknown_type_is_passed_over_and_counted);
	tcase_add_test(cases, of_some_steps_nothing_that_was_counted_is_shown);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
