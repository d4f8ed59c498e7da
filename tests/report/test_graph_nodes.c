/* SPDX-License-Identifier: MIT
 * test_graph_nodes.c: the work of a CUDA graph stands below what was captured into it, where the
 * trace knows that.
 */
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdlib.h>

enum { EXEC = 4, GRAPH = 1, COPY = 2, UNKNOWN_NODE = 99, REPLAYS = 3 };

/* warm { Net { fc { aten::addmm } aten::relu } }: what was captured; the graph was instantiated in
 * `instantiated`. */
struct capture {
	struct trace_builder *builder;
	uint32_t warm, addmm, relu;
};

static struct capture capture_begin(void)
{
	struct capture capture = { .builder = builder_new() };
	struct trace_builder *builder = capture.builder;
	uint32_t net, fc;

	build_device(builder, 0, "a GPU");
	capture.warm = build_node(builder, 0, "warm", NULL, TRACE_NODE_RANGE);
	net = build_linked_node(builder, capture.warm, "Net", TRACE_NODE_MODULE, 0, "Net");
	fc = build_linked_node(builder, net, "fc", TRACE_NODE_MODULE, 0, "Linear");
	capture.addmm = build_linked_node(builder, fc, "aten::addmm", TRACE_NODE_OP, 0, NULL);
	capture.relu = build_linked_node(builder, net, "aten::relu", TRACE_NODE_OP, 0, NULL);
	return capture;
}

static void node(const struct capture *capture, uint64_t id, uint64_t original, uint32_t graph,
	uint32_t place)
{
	struct trace_graph_node *record = build_dictionary(
		capture->builder, TRACE_GRAPH_NODE, sizeof *record);

	record->head.node = place;
	record->graph_node = id;
	record->original = original;
	record->graph = graph;
}

/* Nodes 11 and 12 and their copies 21 and 22. */
static struct capture captured(uint32_t graph_of_exec)
{
	struct capture capture = capture_begin();
	struct trace_graph_exec *exec;

	node(&capture, 11, 0, GRAPH, capture.addmm);
	node(&capture, 12, 0, GRAPH, capture.relu);
	node(&capture, 21, 11, COPY, capture.warm);
	node(&capture, 22, 12, COPY, capture.warm);
	exec = build_dictionary(capture.builder, TRACE_GRAPH_EXEC, sizeof *exec);
	exec->exec_id = EXEC;
	exec->graph = graph_of_exec;
	return capture;
}

static void replay(const struct capture *capture, unsigned number, const char *range,
	const uint64_t *nodes, unsigned count)
{
	const uint64_t at = 1000 + number * 100;

	if (range)
		build_push(capture->builder, 1, at, range);
	build_graph_launch(capture->builder, 1, at + 10, 50 + number, EXEC);
	if (range)
		build_pop(capture->builder, 1, at + 20);
	for (unsigned k = 0; k < count; k++) {
		struct trace_kernel *kernel = build_kernel(capture->builder, 9, at + 90,
			50 + number, "k", at + 30 + k * 10, at + 38 + k * 10);

		kernel->gpu.graph = EXEC;
		kernel->gpu.graph_node = nodes[k];
	}
}

static struct profile_fixture replayed(
	const struct capture *capture, const char *range, const uint64_t *nodes, unsigned count)
{
	struct profile_fixture fixture;

	for (unsigned i = 0; i < REPLAYS; i++)
		replay(capture, i, range, nodes, count);
	fixture = fixture_of(capture->builder, NULL);
	fixture_check(&fixture);
	return fixture;
}

static void expect(const struct profile_fixture *fixture, const char *path, uint64_t total,
	uint64_t self, enum node_kind kind)
{
	const struct node *found = fixture_node(fixture, path);

	ck_assert_msg(found && found->gpu, "there is no `%s`, or it did nothing", path);
	ck_assert_msg(found->gpu->total_ns == total && found->gpu->self_ns == self,
		"%s: %llu and %llu ns", path, (unsigned long long)found->gpu->total_ns,
		(unsigned long long)found->gpu->self_ns);
	ck_assert_int_eq(found->kind, kind);
}

static const uint64_t BOTH[] = { 21, 22 };

START_TEST(a_graph_has_the_modules_and_operators_that_were_captured)
{
	const struct capture capture = captured(GRAPH);
	struct profile_fixture fixture = replayed(&capture, "replay", BOTH, 2);

	expect(&fixture, "replay", 48, 48, NODE_RANGE);
	expect(&fixture, "replay/graph 4", 48, 48, NODE_GRAPH);
	expect(&fixture, "replay/graph 4/Net", 48, 0, NODE_MODULE);
	expect(&fixture, "replay/graph 4/Net/fc", 24, 0, NODE_MODULE);
	expect(&fixture, "replay/graph 4/Net/fc/aten::addmm", 24, 24, NODE_OP);
	expect(&fixture, "replay/graph 4/Net/fc/aten::addmm/k", 24, 24, NODE_KERNEL);
	expect(&fixture, "replay/graph 4/Net/aten::relu/k", 24, 24, NODE_KERNEL);
	ck_assert_ptr_null(fixture_node(&fixture, "replay/graph 4/warm"));
	ck_assert(fixture_node(&fixture, "replay/graph 4/Net")->captured);
	ck_assert_uint_eq(fixture_node(&fixture, "replay/graph 4/Net")->calls, 0);
	ck_assert_uint_eq(fixture.profile->totals.method_ns[METHOD_GRAPH_NODE], 48);
	ck_assert_uint_eq(fixture.profile->totals.method_ns[METHOD_GRAPH_LEVEL], 0);
	ck_assert_uint_eq(fixture.profile->counts.graph_kernels, 2 * REPLAYS);
	fixture_free(&fixture);
}
END_TEST

/* Whichever of the graph and its copy CUPTI names. */
START_TEST(a_graph_launched_in_no_range_has_those_that_it_was_captured_in)
{
	const struct capture capture = captured(_i ? COPY : GRAPH);
	struct profile_fixture fixture = replayed(&capture, NULL, BOTH, 2);

	expect(&fixture, "(graph replays)", 48, 48, NODE_RANGE);
	expect(&fixture, "(graph replays)/graph 4/Net/fc/aten::addmm/k", 24, 24, NODE_KERNEL);
	ck_assert_uint_eq(fixture.profile->counts.attributed, 2 * REPLAYS);
	ck_assert_uint_eq(fixture.profile->totals.unattributed_ns, 0);
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_is_not_known_of_a_graph_stays_with_it)
{
	static const uint64_t nodes[] = { 21, UNKNOWN_NODE, 0 };
	const struct capture capture = captured(GRAPH);
	struct profile_fixture fixture = replayed(&capture, "replay", nodes, 3);

	expect(&fixture, "replay/graph 4", 72, 72, NODE_GRAPH);
	expect(&fixture, "replay/graph 4/Net", 24, 0, NODE_MODULE);
	expect(&fixture, "replay/graph 4/k", 48, 48, NODE_KERNEL);
	ck_assert_int_eq(
		fixture_node(&fixture, "replay/graph 4/k")->gpu->method, METHOD_GRAPH_LEVEL);
	ck_assert_uint_eq(fixture.profile->totals.method_records[METHOD_GRAPH_NODE], REPLAYS);
	ck_assert_uint_eq(fixture.profile->totals.method_records[METHOD_GRAPH_LEVEL], 2 * REPLAYS);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_graph_of_which_nothing_is_known_belongs_to_no_range_if_it_was_launched_in_none)
{
	const struct capture capture = capture_begin();
	struct profile_fixture fixture = replayed(&capture, NULL, BOTH, 2);

	expect(&fixture, "unattributed/graph 4/k", 48, 48, NODE_KERNEL);
	ck_assert_uint_eq(fixture.profile->totals.unattributed_ns, 48);
	ck_assert_uint_eq(fixture.profile->totals.method_records[METHOD_NONE], 2 * REPLAYS);
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_is_captured_in_no_range_is_not_known)
{
	const struct capture capture = capture_begin();
	struct profile_fixture fixture;

	node(&capture, 11, 0, GRAPH, 0);
	node(&capture, 21, 11, COPY, capture.warm);
	fixture = replayed(&capture, "replay", BOTH, 1);
	expect(&fixture, "replay/graph 4/k", 24, 24, NODE_KERNEL);
	ck_assert_uint_eq(fixture.profile->totals.method_records[METHOD_GRAPH_LEVEL], REPLAYS);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_graph_made_elsewhere_has_all_that_was_open_around_the_capture)
{
	const struct capture capture = capture_begin();
	struct profile_fixture fixture;

	node(&capture, 11, 0, GRAPH, capture.relu);
	node(&capture, 21, 11, COPY, 0);
	fixture = replayed(&capture, "replay", BOTH, 1);
	expect(&fixture, "replay/graph 4/warm/Net/aten::relu/k", 24, 24, NODE_KERNEL);
	fixture_free(&fixture);
}
END_TEST

START_TEST(copies_of_copies_lead_to_the_capture_and_circles_nowhere)
{
	static const uint64_t nodes[] = { 31, 41, 43 };
	const struct capture capture = captured(GRAPH);
	struct profile_fixture fixture;

	node(&capture, 31, 21, 3, capture.warm);
	node(&capture, 41, 42, 3, capture.warm);
	node(&capture, 42, 41, 3, capture.warm);
	node(&capture, 43, 0, 3, UINT32_MAX);
	fixture = replayed(&capture, "replay", nodes, 3);
	expect(&fixture, "replay/graph 4/Net/fc/aten::addmm/k", 24, 24, NODE_KERNEL);
	expect(&fixture, "replay/graph 4/k", 48, 48, NODE_KERNEL);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_clone_reported_as_created_too_is_where_it_was_captured)
{
	struct capture capture = captured(GRAPH); /* cloned, then created */
	struct profile_fixture fixture;

	node(&capture, 21, 0, COPY, capture.warm);
	node(&capture, 32, 0, COPY, capture.warm); /* created, then cloned */
	node(&capture, 32, 12, COPY, capture.warm);
	fixture = replayed(&capture, "replay", (const uint64_t[]){ 21, 32 }, 2);
	expect(&fixture, "replay/graph 4/Net/fc/aten::addmm/k", 24, 24, NODE_KERNEL);
	expect(&fixture, "replay/graph 4/Net/aten::relu/k", 24, 24, NODE_KERNEL);
	fixture_free(&fixture);
}
END_TEST

/* An optimizer's step and backward in a graph are that of the graph, too, and of who launched it.
 */
START_TEST(a_graph_is_forward_backward_and_optimizer_as_what_was_captured)
{
	static const uint64_t nodes[] = { 21, 22, 23 };
	const struct capture capture = captured(GRAPH);
	const struct node_gpu *gpu;
	struct profile_fixture fixture;

	node(&capture, 13, 0, GRAPH,
		build_linked_node(capture.builder, capture.warm, "Optimizer.step#SGD.step",
			TRACE_NODE_OPTIMIZER, 0, NULL));
	node(&capture, 23, 13, COPY, capture.warm);
	fixture = replayed(&capture, "replay", nodes, 3);
	for (const char *const *path = (const char *const[]){ "replay", "replay/graph 4", NULL };
		*path; path++) {
		gpu = fixture_node(&fixture, *path)->gpu;
		ck_assert_uint_eq(gpu->total_ns, 72);
		ck_assert_uint_eq(gpu->part_ns[PART_OPTIMIZER], 24);
		ck_assert_uint_eq(gpu->part_ns[PART_FORWARD], 48);
	}
	fixture_free(&fixture);
}
END_TEST

/* One operator, run by itself and as part of a graph. */
START_TEST(work_outside_of_the_graph_stays_apart)
{
	const struct capture capture = captured(GRAPH);
	struct profile_fixture fixture;

	build_push_node(capture.builder, 1, 100, capture.warm);
	build_push_node(capture.builder, 1, 110, capture.relu);
	build_launch(capture.builder, 1, 120, 7);
	build_pop(capture.builder, 1, 130);
	build_pop(capture.builder, 1, 140);
	build_kernel(capture.builder, 9, 200, 7, "k", 150, 155);
	fixture = replayed(&capture, "replay", BOTH, 2);
	expect(&fixture, "warm", 5, 0, NODE_RANGE);
	expect(&fixture, "warm/Net/aten::relu/k", 5, 5, NODE_KERNEL);
	expect(&fixture, "replay", 48, 48, NODE_RANGE);
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("graph_nodes");
	TCase *graphs = tcase_create("graphs");
	SRunner *runner;
	int failed;

	tcase_add_test(graphs, a_graph_has_the_modules_and_operators_that_were_captured);
	tcase_add_loop_test(
		graphs, a_graph_launched_in_no_range_has_those_that_it_was_captured_in, 0, 2);
	tcase_add_test(graphs, what_is_not_known_of_a_graph_stays_with_it);
	tcase_add_test(graphs,
		a_graph_of_which_nothing_is_known_belongs_to_no_range_if_it_was_launched_in_none);
	tcase_add_test(graphs, what_is_captured_in_no_range_is_not_known);
	tcase_add_test(graphs, a_graph_made_elsewhere_has_all_that_was_open_around_the_capture);
	tcase_add_test(graphs, copies_of_copies_lead_to_the_capture_and_circles_nowhere);
	tcase_add_test(graphs, a_clone_reported_as_created_too_is_where_it_was_captured);
	tcase_add_test(graphs, a_graph_is_forward_backward_and_optimizer_as_what_was_captured);
	tcase_add_test(graphs, work_outside_of_the_graph_stays_apart);
	suite_add_tcase(suite, graphs);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
