/* SPDX-License-Identifier: MIT
 * test_gpu_owners.c: what a place has of the GPU beside its time: the idle moments that its work
 * ended, how long its launches waited, and which part of it ran forward, backward, again or in an
 * optimizer.
 */
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdlib.h>

static const struct node *must(const struct profile_fixture *fixture, const char *path)
{
	const struct node *node = fixture_node(fixture, path);

	ck_assert_msg(node != NULL, "there is no `%s`", path);
	return node;
}

static uint64_t idle_before(const struct profile_fixture *fixture, const char *path)
{
	return must(fixture, path)->gpu->idle_before_ns;
}

static uint64_t delay(const struct profile_fixture *fixture, const char *path, unsigned per_mille)
{
	const uint32_t node = (uint32_t)(must(fixture, path) - fixture->profile->tree->nodes);
	uint64_t value = 0;

	ck_assert(launch_delays_percentile(fixture->profile->tree, node, per_mille, &value));
	return value;
}

static uint64_t idle_of_roots(const struct profile_fixture *fixture)
{
	const struct tree *tree = fixture->profile->tree;
	uint64_t sum = 0;

	for (uint32_t id = tree->nodes[0].first_child; id; id = tree->nodes[id].next)
		sum += tree->nodes[id].gpu ? tree->nodes[id].gpu->idle_before_ns : 0;
	return sum;
}

/* One GPU works 100..200, 150..250, 400..500, 600..610, 610..620 and again 700..710: idle for 150,
 * 100 and 80. */
static struct trace_builder *gaps(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "a");
	build_launch(builder, 1, 10, 1);
	build_launch(builder, 1, 20, 2);
	build_push(builder, 1, 25, "b");
	build_launch(builder, 1, 30, 3);
	build_pop(builder, 1, 35);
	build_pop(builder, 1, 40);
	build_push(builder, 1, 50, "c");
	build_launch(builder, 1, 60, 4);
	build_launch(builder, 1, 65, 5);
	build_pop(builder, 1, 70);
	build_kernel(builder, 9, 2000, 3, "late", 400, 500); /* delivered in no order */
	build_kernel(builder, 9, 2000, 1, "k", 100, 200);
	build_kernel(builder, 9, 2000, 2, "k", 150, 250); /* beside it, on another stream */
	build_kernel(builder, 9, 2000, 5, "second", 610, 620);
	build_kernel(builder, 9, 2000, 4, "first", 600, 610);
	build_kernel(builder, 9, 2000, 77, "nobody's", 700, 710);
	return builder;
}

START_TEST(idle_belongs_to_what_ended_it)
{
	struct profile_fixture fixture = fixture_of(gaps(), NULL);

	ck_assert_uint_eq(fixture.profile->totals.gpu_idle_ns, 150 + 100 + 80);
	ck_assert_uint_eq(fixture.profile->totals.gpu_idle_charged_ns, 150 + 100 + 80);
	ck_assert_uint_eq(idle_before(&fixture, "a"), 150);
	ck_assert_uint_eq(idle_before(&fixture, "a/k"), 0);
	ck_assert_uint_eq(idle_before(&fixture, "a/b"), 150);
	ck_assert_uint_eq(idle_before(&fixture, "a/b/late"), 150);
	ck_assert_uint_eq(idle_before(&fixture, "c"), 100);
	ck_assert_uint_eq(idle_before(&fixture, "c/first"), 100);
	ck_assert_uint_eq(
		idle_before(&fixture, "c/second"), 0); /* it began as the other one ended */
	ck_assert_uint_eq(idle_before(&fixture, "unattributed"), 80);
	ck_assert_uint_eq(idle_of_roots(&fixture), fixture.profile->totals.gpu_idle_ns);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

static struct trace_builder *two_devices(void)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "a");
	for (unsigned i = 1; i <= 4; i++)
		build_launch(builder, 1, i * 10, i);
	build_pop(builder, 1, 50);
	build_kernel(builder, 9, 900, 1, "k", 100, 200);
	build_kernel(builder, 9, 900, 2, "other", 150, 160)->gpu.device = 1;
	build_kernel(builder, 9, 900, 3, "k", 250, 300);
	build_kernel(builder, 9, 900, 4, "other", 190, 200)->gpu.device = 1;
	return builder;
}

START_TEST(each_device_idles_by_itself)
{
	const struct profile_options second = { .device = 1, .metric = METRIC_GPU };
	struct profile_fixture fixture = fixture_of(two_devices(), NULL);

	ck_assert_uint_eq(idle_before(&fixture, "a/k"), 50);
	ck_assert_uint_eq(idle_before(&fixture, "a/other"), 30);
	ck_assert_uint_eq(idle_before(&fixture, "a"), 80);
	ck_assert_uint_eq(fixture.profile->totals.gpu_idle_ns, 80);
	fixture_free(&fixture);
	fixture = fixture_of(two_devices(), &second);
	ck_assert_uint_eq(idle_before(&fixture, "a"), 30);
	ck_assert_uint_eq(fixture.profile->totals.gpu_idle_ns, 30);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_launch_waits_from_its_call_to_its_work)
{
	struct profile_fixture fixture = fixture_of(gaps(), NULL);

	/* calls that return at t began 5 before: 100 - 5, 150 - 15, 400 - 25 */
	ck_assert_uint_eq(delay(&fixture, "a/k", 500), 95);
	ck_assert_uint_eq(delay(&fixture, "a/k", 950), 135);
	ck_assert_uint_eq(delay(&fixture, "a", 500), 135);
	ck_assert_uint_eq(delay(&fixture, "a", 950), 375);
	ck_assert_uint_eq(delay(&fixture, "a/b", 500), 375);
	ck_assert_uint_eq(delay(&fixture, "c", 500), 545);
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_was_not_seen_launched_did_not_wait)
{
	struct profile_fixture fixture = fixture_of(gaps(), NULL);
	const uint32_t node = (uint32_t)(must(&fixture, "unattributed") -
					 fixture.profile->tree->nodes);
	uint64_t value;

	ck_assert(!launch_delays_percentile(fixture.profile->tree, node, 500, &value));
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_graph_waits_until_the_first_of_its_work)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "replay");
	build_graph_launch(builder, 1, 25, 50, 4);
	build_pop(builder, 1, 30);
	for (unsigned i = 3; i > 0; i--) /* the last of them first */
		build_kernel(builder, 9, 1000, 50, "node", i * 100, i * 100 + 50)->gpu.graph = 4;
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(delay(&fixture, "replay", 500), 80);
	ck_assert_uint_eq(delay(&fixture, "replay/graph 4", 950), 80);
	ck_assert_uint_eq(idle_before(&fixture, "replay/graph 4"), 100);
	ck_assert_uint_eq(idle_before(&fixture, "replay"), 100);
	fixture_free(&fixture);
}
END_TEST

static void run(struct trace_builder *builder, uint32_t stream, uint64_t at, uint32_t place,
	uint64_t correlation, uint64_t gpu)
{
	build_push_node(builder, stream, at, place);
	build_launch(builder, stream, at + 6, correlation);
	build_pop(builder, stream, at + 10);
	build_kernel(builder, 9, at + 10, correlation, "gemm", at + 10, at + 10 + gpu);
}

static void expect_parts(const struct profile_fixture *fixture, const char *path, uint64_t forward,
	uint64_t backward, uint64_t again, uint64_t optimizer)
{
	const uint64_t expected[NODE_PARTS] = { [PART_FORWARD] = forward,
		[PART_BACKWARD] = backward,
		[PART_RECOMPUTE] = again,
		[PART_OPTIMIZER] = optimizer };
	const struct node_gpu *gpu = must(fixture, path)->gpu;

	for (int part = 0; part < NODE_PARTS; part++)
		ck_assert_msg(gpu->part_ns[part] == expected[part], "%s: part %d is %llu, not %llu",
			path, part, (unsigned long long)gpu->part_ns[part],
			(unsigned long long)expected[part]);
	ck_assert_uint_eq(gpu->total_ns, forward + backward + again + optimizer);
}

/* Net { fc: 1000 }, its backward 700, in which the module runs again (300); the engine's own 40;
 * the optimizer 50. */
START_TEST(work_is_split_into_what_it_was_for)
{
	static const char engine[] = "autograd::engine::evaluate_function: MmBackward0";
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const uint32_t net = build_linked_node(builder, 0, "Net", TRACE_NODE_MODULE, 0, "Net"),
		       mm = build_linked_node(builder, net, "aten::mm", TRACE_NODE_OP, 0, NULL),
		       evaluate = build_linked_node(builder, 0, engine, TRACE_NODE_OP, 0, NULL),
		       function = build_linked_node(
			       builder, evaluate, "MmBackward0", TRACE_NODE_BACKWARD, mm, NULL),
		       again = build_linked_node(
			       builder, function, "Net", TRACE_NODE_MODULE, 0, "Net");

	build_device(builder, 0, "GPU of a test");
	build_push_node(builder, 1, 0, net);
	run(builder, 1, 10, mm, 1, 1000);
	build_pop(builder, 1, 90);
	build_push_node(builder, 2, 100, evaluate);
	build_push_node(builder, 2, 101, function);
	run(builder, 2, 110,
		build_linked_node(builder, function, "aten::mm", TRACE_NODE_OP, 0, NULL), 2, 700);
	build_push_node(builder, 2, 130, again);
	run(builder, 2, 140, build_linked_node(builder, again, "aten::mm", TRACE_NODE_OP, 0, NULL),
		3, 300);
	build_pop(builder, 2, 155);
	build_pop(builder, 2, 160);
	run(builder, 2, 170,
		build_linked_node(builder, evaluate, "aten::add_", TRACE_NODE_OP, 0, NULL), 4, 40);
	build_pop(builder, 2, 190);
	run(builder, 1, 200,
		build_linked_node(
			builder, 0, "Optimizer.step#SGD.step", TRACE_NODE_OPTIMIZER, 0, NULL),
		5, 50);
	fixture = fixture_of(builder, NULL);
	ck_assert(fixture.profile->tree->has_parts);
	expect_parts(&fixture, "Net", 1000, 700, 0, 0);
	expect_parts(&fixture, "Net/aten::mm", 1000, 0, 0, 0);
	expect_parts(&fixture, "Net/aten::mm (bwd)", 0, 700, 0, 0);
	expect_parts(&fixture, "Net (recompute)", 0, 0, 300, 0);
	expect_parts(&fixture, "(backward)", 0, 40, 0, 0);
	expect_parts(&fixture, "Optimizer.step#SGD.step", 0, 0, 0, 50);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

/* LBFGS calls the model in a closure: Net { mm: 1000 }, the loss of 30 with its backward of 60, the
 * optimizer's own 50. */
START_TEST(a_model_that_the_optimizer_calls_is_forward)
{
	static const char engine[] = "autograd::engine::evaluate_function: MeanBackward0";
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const uint32_t step = build_linked_node(builder, 0, "Optimizer.step#LBFGS.step",
			       TRACE_NODE_OPTIMIZER, 0, NULL),
		       net = build_linked_node(builder, step, "Net", TRACE_NODE_MODULE, 0, "Net"),
		       mm = build_linked_node(builder, net, "aten::mm", TRACE_NODE_OP, 0, NULL),
		       mean = build_linked_node(
			       builder, step, "aten::mean", TRACE_NODE_OP, 0, NULL),
		       dot = build_linked_node(builder, step, "aten::dot", TRACE_NODE_OP, 0, NULL),
		       evaluate = build_linked_node(builder, step, engine, TRACE_NODE_OP, 0, NULL);

	build_device(builder, 0, "GPU of a test");
	build_push_node(builder, 1, 0, step);
	build_push_node(builder, 1, 5, net);
	run(builder, 1, 10, mm, 1, 1000);
	build_pop(builder, 1, 30);
	run(builder, 1, 40, mean, 2, 30);
	build_push_node(builder, 1, 60, evaluate);
	run(builder, 1, 70,
		build_linked_node(
			builder, evaluate, "MeanBackward0", TRACE_NODE_BACKWARD, mean, NULL),
		3, 60);
	build_pop(builder, 1, 90);
	run(builder, 1, 100, dot, 4, 50);
	build_pop(builder, 1, 120);
	fixture = fixture_of(builder, NULL);
	expect_parts(&fixture, "Optimizer.step#LBFGS.step", 1030, 60, 0, 50);
	expect_parts(&fixture, "Optimizer.step#LBFGS.step/Net", 1000, 0, 0, 0);
	expect_parts(&fixture, "Optimizer.step#LBFGS.step/aten::mean", 30, 0, 0, 0);
	expect_parts(&fixture, "Optimizer.step#LBFGS.step/aten::mean (bwd)", 0, 60, 0, 0);
	expect_parts(&fixture, "Optimizer.step#LBFGS.step/aten::dot", 0, 0, 0, 50);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("owners");
	TCase *owners = tcase_create("owners");
	SRunner *runner;
	int failed;

	tcase_add_test(owners, idle_belongs_to_what_ended_it);
	tcase_add_test(owners, each_device_idles_by_itself);
	tcase_add_test(owners, a_launch_waits_from_its_call_to_its_work);
	tcase_add_test(owners, what_was_not_seen_launched_did_not_wait);
	tcase_add_test(owners, a_graph_waits_until_the_first_of_its_work);
	tcase_add_test(owners, work_is_split_into_what_it_was_for);
	tcase_add_test(owners, a_model_that_the_optimizer_calls_is_forward);
	suite_add_tcase(suite, owners);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
