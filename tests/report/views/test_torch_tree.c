/* SPDX-License-Identifier: MIT
 * test_torch_tree.c: PyTorch's hierarchy: modules, operators, and what runs backward beside the
 * operator it is for.
 */
#include "report/profile/module_group.h"
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAIN = 1, AUTOGRAD = 2, GPU = 3 }; /* streams */

#define ENGINE "autograd::engine::evaluate_function: "

/* A range without anything in it. */
static void span(
	struct trace_builder *builder, uint32_t stream, uint64_t from, uint64_t to, uint32_t place)
{
	build_push_node(builder, stream, from, place);
	build_pop(builder, stream, to);
}

/* The same with a kernel of that many ns. */
static void work(struct trace_builder *builder, uint32_t stream, uint64_t from, uint64_t to,
	uint32_t place, uint64_t gpu)
{
	static uint64_t correlation;

	correlation++;
	build_push_node(builder, stream, from, place);
	build_launch(builder, stream, from + 6, correlation);
	build_pop(builder, stream, to);
	build_kernel(builder, GPU, to, correlation, "gemm", to, to + gpu);
}

static uint32_t op(struct trace_builder *builder, uint32_t parent, const char *name)
{
	return build_linked_node(builder, parent, name, TRACE_NODE_OP, 0, NULL);
}

static uint32_t module(
	struct trace_builder *builder, uint32_t parent, const char *name, const char *class)
{
	return build_linked_node(builder, parent, name, TRACE_NODE_MODULE, 0, class);
}

static uint32_t backward(
	struct trace_builder *builder, uint32_t parent, const char *name, uint32_t link)
{
	return build_linked_node(builder, parent, name, TRACE_NODE_BACKWARD, link, NULL);
}

/* What autograd's engine does for one function: the place of the function, which is open, below it.
 */
static uint32_t engine_push(struct trace_builder *builder, uint32_t stream, uint64_t at,
	uint32_t parent, const char *name, uint32_t link)
{
	char text[128];
	uint32_t engine;

	snprintf(text, sizeof text, ENGINE "%s", name);
	engine = op(builder, parent, text);
	build_push_node(builder, stream, at, engine);
	return build_push_node(builder, stream, at + 1, backward(builder, engine, name, link));
}

static void engine_pop(struct trace_builder *builder, uint32_t stream, uint64_t at)
{
	build_pop(builder, stream, at);
	build_pop(builder, stream, at + 1);
}

static const struct node *must(const struct profile_fixture *fixture, const char *path)
{
	const struct node *node = fixture_node(fixture, path);

	ck_assert_msg(node != NULL, "there is no `%s`", path);
	return node;
}

static void expect(const struct profile_fixture *fixture, const char *path, uint64_t calls,
	uint64_t cpu, uint64_t gpu)
{
	const struct node *node = must(fixture, path);

	ck_assert_msg(node->calls == calls && node->total_ns == cpu &&
			      (node->gpu ? node->gpu->total_ns : 0) == gpu,
		"%s: %llu calls, cpu %llu, gpu %llu", path, (unsigned long long)node->calls,
		(unsigned long long)node->total_ns,
		(unsigned long long)(node->gpu ? node->gpu->total_ns : 0));
}

/* The own time of all ranges makes up what the outermost ranges of all threads took. */
static uint64_t own_times(const struct profile_fixture *fixture)
{
	uint64_t sum = 0;

	for (uint32_t id = 1; id < fixture->profile->tree->count; id++)
		if (node_kind_class(fixture->profile->tree->nodes[id].kind) == NODE_RANGES)
			sum += fixture->profile->tree->nodes[id].self_ns;
	return sum;
}

/* One step of a model of one linear layer: forward on the main thread, backward on autograd's. */
static struct trace_builder *linear_step(void)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = module(builder, 0, "Net", "Net"),
		       fc = module(builder, net, "fc", "Linear"),
		       linear = op(builder, fc, "aten::linear"),
		       addmm = op(builder, linear, "aten::addmm");
	uint32_t place;

	build_device(builder, 0, "GPU of a test");
	build_push_node(builder, MAIN, 0, net);
	build_push_node(builder, MAIN, 10, fc);
	build_push_node(builder, MAIN, 20, linear);
	work(builder, MAIN, 30, 80, addmm, 1000);
	build_pop(builder, MAIN, 90);
	build_pop(builder, MAIN, 95);
	build_pop(builder, MAIN, 100);
	place = engine_push(builder, AUTOGRAD, 200, 0, "AddmmBackward0", addmm);
	work(builder, AUTOGRAD, 210, 240, op(builder, place, "aten::mm"), 700);
	build_alloc(builder, AUTOGRAD, 250, 0x1000, 4096);
	work(builder, AUTOGRAD, 260, 290, op(builder, place, "aten::mm"), 800);
	build_pop(builder, AUTOGRAD, 300);
	work(builder, AUTOGRAD, 305, 325,
		op(builder, op(builder, 0, ENGINE "AddmmBackward0"), "aten::add_"), 50);
	build_pop(builder, AUTOGRAD, 330);
	place = engine_push(builder, AUTOGRAD, 340, 0, "torch::autograd::AccumulateGrad", 0);
	work(builder, AUTOGRAD, 345, 365, op(builder, place, "aten::copy_"), 20);
	engine_pop(builder, AUTOGRAD, 370);
	span(builder, MAIN, 400, 450,
		build_linked_node(
			builder, 0, "Optimizer.step#SGD.step", TRACE_NODE_OPTIMIZER, 0, NULL));
	return builder;
}

START_TEST(backward_stands_beside_its_operator)
{
	struct profile_fixture fixture = fixture_of(linear_step(), NULL);

	expect(&fixture, "Net", 1, 100, 2500);
	expect(&fixture, "Net/fc", 1, 85, 2500);
	expect(&fixture, "Net/fc/aten::linear", 1, 70, 1000);
	expect(&fixture, "Net/fc/aten::linear/aten::addmm", 1, 50, 1000);
	expect(&fixture, "Net/fc/aten::linear (bwd)", 0, 99, 1500);
	expect(&fixture, "Net/fc/aten::linear (bwd)/AddmmBackward0", 1, 99, 1500);
	expect(&fixture, "Net/fc/aten::linear (bwd)/AddmmBackward0/aten::mm", 2, 60, 1500);
	expect(&fixture, "(backward)", 2, 130 + 31, 70);
	expect(&fixture, "(backward)/(gradient accumulation)", 0, 20 + 29, 70);
	expect(&fixture, "(backward)/(gradient accumulation)/aten::add_", 1, 20, 50);
	expect(&fixture,
		"(backward)/(gradient accumulation)/torch::autograd::AccumulateGrad/aten::copy_", 1,
		20, 20);
	expect(&fixture, "Optimizer.step#SGD.step", 1, 50, 0);
	ck_assert_int_eq(must(&fixture, "Net/fc")->kind, NODE_MODULE);
	ck_assert_int_eq(must(&fixture, "Net/fc/aten::linear (bwd)")->kind, NODE_BACKWARD);
	ck_assert(must(&fixture, "Net/fc/aten::linear (bwd)/AddmmBackward0")->ran_elsewhere);
	ck_assert(!must(&fixture, "(backward)")->ran_elsewhere);
	ck_assert_int_eq(must(&fixture, "Optimizer.step#SGD.step")->kind, NODE_OPTIMIZER);
	fixture_free(&fixture);
}
END_TEST

START_TEST(time_on_the_cpu_is_counted_once)
{
	struct profile_fixture fixture = fixture_of(linear_step(), NULL);

	fixture_check(&fixture);
	ck_assert_uint_eq(own_times(&fixture), 100 + 130 + 31 + 50);
	/* The engine's own: without the function it ran and without the sum it made. */
	ck_assert_uint_eq(must(&fixture, "(backward)")->self_ns, 130 - 99 - 20 + 31 - 29);
	ck_assert_uint_eq(must(&fixture, "Net/fc")->self_ns, 15);
	ck_assert_uint_eq(must(&fixture, "Net/fc")->max_ns, 85);
	fixture_free(&fixture);
}
END_TEST

START_TEST(memory_taken_backward_is_the_modules)
{
	struct profile_fixture fixture = fixture_of(linear_step(), NULL);

	ck_assert_uint_eq(must(&fixture, "Net/fc")->memory->alloc_bytes, 4096);
	ck_assert_uint_eq(must(&fixture, "Net")->memory->alloc_bytes, 4096);
	ck_assert_uint_eq(
		must(&fixture, "Net/fc/aten::linear (bwd)/AddmmBackward0")->memory->alloc_self,
		4096);
	ck_assert(!must(&fixture, "(backward)")->memory ||
		  !must(&fixture, "(backward)")->memory->alloc_bytes);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(backward_without_a_known_operator_stays_where_it_ran)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const uint32_t step = build_node(builder, 0, "step", NULL, TRACE_NODE_RANGE);

	build_push_node(builder, MAIN, 0, step);
	engine_push(builder, MAIN, 10, step, "MulBackward0", 0);
	engine_pop(builder, MAIN, 20);
	engine_push(
		builder, MAIN, 30, step, "SinBackward0", 60000); /* as a damaged trace may say */
	engine_pop(builder, MAIN, 40);
	build_pop(builder, MAIN, 50);
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "step/(backward)", 2, 22, 0);
	expect(&fixture, "step/(backward)/MulBackward0", 1, 9, 0);
	expect(&fixture, "step/(backward)/SinBackward0", 1, 9, 0);
	ck_assert_uint_eq(own_times(&fixture), 50);
	fixture_free(&fixture);
}
END_TEST

/* The sum for a bias that was broadcast, and AccumulateGrad; communication is of many modules. */
START_TEST(what_the_engine_computes_for_a_function_stands_with_it)
{
	struct trace_builder *builder = builder_new();
	const uint32_t fc = module(builder, 0, "fc", "Linear"),
		       linear = op(builder, fc, "aten::linear"),
		       engine = op(builder, 0, ENGINE "AddmmBackward0"),
		       adds = op(builder, 0, ENGINE "torch::autograd::AccumulateGrad");
	struct profile_fixture fixture;

	build_device(builder, 0, "GPU of a test");
	build_push_node(builder, MAIN, 0, fc);
	span(builder, MAIN, 10, 50, linear);
	build_pop(builder, MAIN, 60);
	build_push_node(builder, AUTOGRAD, 100, engine);
	work(builder, AUTOGRAD, 110, 130, backward(builder, engine, "AddmmBackward0", linear),
		1000);
	work(builder, AUTOGRAD, 140, 150,
		build_linked_node(builder, engine, "aten::sum", TRACE_NODE_OP, linear, NULL), 200);
	build_pop(builder, AUTOGRAD, 160);
	build_push_node(builder, AUTOGRAD, 170, adds);
	work(builder, AUTOGRAD, 180, 190,
		backward(builder, adds, "torch::autograd::AccumulateGrad", linear), 30);
	work(builder, AUTOGRAD, 200, 210,
		build_linked_node(builder, adds, "c10d::allreduce_", TRACE_NODE_OP, linear, NULL),
		4);
	build_pop(builder, AUTOGRAD, 220);
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "fc", 1, 60, 1230);
	expect(&fixture, "fc/aten::linear (bwd)", 0, 40, 1230);
	expect(&fixture, "fc/aten::linear (bwd)/aten::sum", 1, 10, 200);
	expect(&fixture, "fc/aten::linear (bwd)/torch::autograd::AccumulateGrad", 1, 10, 30);
	expect(&fixture, "(backward)", 2, 110, 4);
	expect(&fixture, "(backward)/c10d::allreduce_", 1, 10, 4);
	ck_assert_ptr_null(fixture_node(&fixture, "(backward)/(gradient accumulation)"));
	ck_assert_uint_eq(own_times(&fixture), 60 + 110);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(without_folding_the_engine_is_shown_for_each_function)
{
	struct profile_options apart = { .no_fold = true, .device = -1, .metric = METRIC_CPU };
	struct profile_fixture fixture = fixture_of(linear_step(), &apart);

	expect(&fixture, ENGINE "AddmmBackward0", 1, 130, 50);
	expect(&fixture, ENGINE "AddmmBackward0/(gradient accumulation)/aten::add_", 1, 20, 50);
	expect(&fixture, "Net/fc/aten::linear (bwd)/AddmmBackward0", 1, 99, 1500);
	fixture_free(&fixture);
}
END_TEST

/* y = x * x; dy = grad(y, create_graph); dy.backward(): the second backward is beside the operator
 * of the first. */
START_TEST(double_backward_stands_in_the_first)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const uint32_t net = module(builder, 0, "Net", "Net"), mul = op(builder, net, "aten::mul");
	uint32_t first, inner;

	build_push_node(builder, MAIN, 0, net);
	span(builder, MAIN, 10, 20, mul);
	build_pop(builder, MAIN, 30);
	first = engine_push(builder, MAIN, 40, 0, "MulBackward0", mul);
	inner = op(builder, first, "aten::mul");
	span(builder, MAIN, 45, 55, inner);
	engine_pop(builder, MAIN, 60);
	engine_push(builder, MAIN, 70, 0, "MulBackward0", inner);
	engine_pop(builder, MAIN, 80);
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "Net/aten::mul (bwd)/MulBackward0", 1, 19, 0);
	expect(&fixture, "Net/aten::mul (bwd)/MulBackward0/aten::mul", 1, 10, 0);
	expect(&fixture, "Net/aten::mul (bwd)/MulBackward0/aten::mul (bwd)/MulBackward0", 1, 9, 0);
	ck_assert_uint_eq(own_times(&fixture), 30 + 21 + 11);
	fixture_free(&fixture);
}
END_TEST

static uint64_t recompute_ns(const struct profile_fixture *fixture, const char *path)
{
	const struct node_gpu *gpu = must(fixture, path)->gpu;

	return gpu ? gpu->part_ns[PART_RECOMPUTE] : 0;
}

/* torch.utils.checkpoint of a block: the backward of its last layer needs a tensor first, and so the
 * block runs again inside of it. The trace does not say which module that is: its class does. */
START_TEST(a_module_computed_again_is_beside_its_forward_pass)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const uint32_t net = module(builder, 0, "Net", "Net"),
		       block = module(builder, net, "blocks.0", "Block"),
		       last = module(builder, block, "last", "Linear"),
		       mm = op(builder, last, "aten::mm");
	uint32_t again, place;

	build_device(builder, 0, "GPU of a test");
	build_push_node(builder, MAIN, 0, net);
	build_push_node(builder, MAIN, 5, block);
	build_push_node(builder, MAIN, 8, last);
	work(builder, MAIN, 10, 20, mm, 100);
	build_pop(builder, MAIN, 22);
	build_pop(builder, MAIN, 25);
	build_pop(builder, MAIN, 30);
	place = engine_push(builder, AUTOGRAD, 40, 0, "MmBackward0", mm);
	again = module(builder, place, "Block", "Block");
	build_push_node(builder, AUTOGRAD, 50, again);
	work(builder, AUTOGRAD, 60, 70,
		op(builder, module(builder, again, "fc", "Linear"), "aten::mm"), 3000);
	build_pop(builder, AUTOGRAD, 80);
	work(builder, AUTOGRAD, 82, 90, op(builder, place, "aten::mm"), 200);
	engine_pop(builder, AUTOGRAD, 95);
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "Net", 1, 30, 3300);
	expect(&fixture, "Net/blocks.*", 1, 20, 300);
	expect(&fixture, "Net/blocks.*/last", 1, 14, 300);
	expect(&fixture, "Net/blocks.*/last/aten::mm (bwd)/MmBackward0", 1, 54, 200);
	expect(&fixture, "Net/blocks.* (recompute)", 1, 30, 3000);
	expect(&fixture, "Net/blocks.* (recompute)/fc/aten::mm", 1, 10, 3000);
	ck_assert(must(&fixture, "Net/blocks.* (recompute)")->ran_elsewhere);
	ck_assert_uint_eq(recompute_ns(&fixture, "Net"), 3000);
	ck_assert_uint_eq(recompute_ns(&fixture, "Net/blocks.*"), 0);
	ck_assert_uint_eq(own_times(&fixture), 30 + 56);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

/* A function of Layer that is checkpointed: it calls two modules of one class and an operator. */
START_TEST(what_is_computed_again_in_no_module_is_in_the_layer_around)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const uint32_t net = module(builder, 0, "Net", "Net"),
		       layer = module(builder, net, "layer", "Layer"),
		       a = module(builder, layer, "a", "Linear"),
		       b = module(builder, layer, "b", "Linear"), mm = op(builder, b, "aten::mm");
	uint32_t again, place;

	build_device(builder, 0, "GPU of a test");
	build_push_node(builder, MAIN, 0, net);
	build_push_node(builder, MAIN, 5, layer);
	span(builder, MAIN, 6, 8, a);
	build_push_node(builder, MAIN, 9, b);
	work(builder, MAIN, 10, 20, mm, 100);
	build_pop(builder, MAIN, 22);
	build_pop(builder, MAIN, 25);
	build_pop(builder, MAIN, 30);
	place = engine_push(builder, AUTOGRAD, 40, 0, "MmBackward0", mm);
	work(builder, AUTOGRAD, 45, 55,
		build_linked_node(builder, place, "aten::relu", TRACE_NODE_OP, mm, NULL), 7);
	again = build_linked_node(builder, place, "Linear", TRACE_NODE_MODULE, a, "Linear");
	build_push_node(builder, AUTOGRAD, 60, again);
	work(builder, AUTOGRAD, 65, 75, op(builder, again, "aten::mm"), 1000);
	build_pop(builder, AUTOGRAD, 80);
	engine_pop(builder, AUTOGRAD, 90);
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "Net/layer", 1, 20, 1107);
	expect(&fixture, "Net/layer/b", 1, 13, 100);
	expect(&fixture, "Net/layer/a (recompute)", 1, 20, 1000);
	expect(&fixture, "Net/layer/(recompute)", 0, 10, 7);
	expect(&fixture, "Net/layer/(recompute)/aten::relu", 1, 10, 7);
	ck_assert_ptr_null(fixture_node(&fixture, "Net/layer/b (recompute)"));
	ck_assert_uint_eq(recompute_ns(&fixture, "Net/layer"), 1007);
	ck_assert_uint_eq(recompute_ns(&fixture, "Net/layer/b"), 0);
	ck_assert_uint_eq(own_times(&fixture), 30 + 51);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

/* A module that only a backward function calls has no forward pass to be beside. */
START_TEST(a_module_without_a_forward_pass_stays_in_the_backward_function)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const uint32_t net = module(builder, 0, "Net", "Net"), mm = op(builder, net, "aten::mm");
	uint32_t place;

	build_push_node(builder, MAIN, 0, net);
	span(builder, MAIN, 10, 20, mm);
	build_pop(builder, MAIN, 30);
	place = engine_push(builder, AUTOGRAD, 40, 0, "MmBackward0", mm);
	span(builder, AUTOGRAD, 50, 80, module(builder, place, "Other", "Other"));
	engine_pop(builder, AUTOGRAD, 90);
	fixture = fixture_of(builder, NULL);
	expect(&fixture, "Net/aten::mm (bwd)/MmBackward0/Other (recompute)", 1, 30, 0);
	ck_assert_uint_eq(own_times(&fixture), 30 + 51);
	fixture_free(&fixture);
}
END_TEST

START_TEST(one_trace_stands_below_several_nodes)
{
	struct profile_fixture fixture = fixture_of(linear_step(), NULL);
	struct tree *tree = fixture.profile->tree;
	const uint32_t step = tree_child(tree, 0, string_table_intern(fixture.texts, "step", 4), 0,
			       NODE_STEP),
		       *nodes = node_names_nodes(fixture.profile->names, step);
	const uint32_t places = reader_node_count(fixture.reader) -
				1; /* the last stands for unknown ids */

	ck_assert_ptr_eq(nodes, node_names_nodes(fixture.profile->names, step));
	ck_assert_uint_eq(nodes[0], step);
	for (uint32_t place = 1; place < places; place++) {
		uint32_t node = nodes[place];

		while (tree->nodes[node].parent)
			node = tree->nodes[node].parent;
		ck_assert_uint_eq(node, step);
	}
	must(&fixture, "step/Net/fc/aten::linear (bwd)/AddmmBackward0/aten::mm");
	must(&fixture, "step/(backward)/(gradient accumulation)");
	ck_assert_uint_eq(must(&fixture, "step/Net")->calls, 0);
	fixture_free(&fixture);
}
END_TEST

/* A model of `layers` blocks that each run one operator; layer `slow` takes as long as it says. Two
 * steps. */
static struct trace_builder *model(unsigned layers, unsigned slow, uint64_t slow_ns)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = module(builder, 0, "GPT", "GPT");
	uint64_t at = 0;

	for (unsigned step = 0; step < 2; step++) {
		build_push_node(builder, MAIN, at, net);
		for (unsigned i = 0; i < layers; i++) {
			char name[32];
			uint32_t block, head;

			snprintf(
				name, sizeof name, i == 1 ? "_orig_mod.layers.%u" : "layers.%u", i);
			block = module(builder, net, name, "Block");
			head = module(builder, block, i % 2 ? "1" : "0", i % 2 ? "ReLU" : "Linear");
			build_push_node(builder, MAIN, at += 10, block);
			build_push_node(builder, MAIN, at += 10, head);
			span(builder, MAIN, at, at + (i == slow ? slow_ns : 1000 + i),
				op(builder, head, "aten::op"));
			at += i == slow ? slow_ns : 1000 + i;
			build_pop(builder, MAIN, at += 10);
			build_pop(builder, MAIN, at += 10);
		}
		build_pop(builder, MAIN, at += 10);
	}
	return builder;
}

START_TEST(layers_are_one_node_and_each_counts_apart)
{
	struct profile_fixture fixture = fixture_of(model(12, 7, 2400), NULL);
	const struct node *node = must(&fixture, "GPT/layers.*");
	struct module_spread spread;

	ck_assert_uint_eq(node->labels, 12);
	ck_assert_uint_eq(node->calls, 24);
	ck_assert_str_eq(string_table_get(fixture.texts, node->class).bytes, "Block");
	ck_assert(module_group_spread(node_names_module_group(fixture.profile->names),
		(uint32_t)(node - fixture.profile->tree->nodes), false, &spread));
	ck_assert_uint_eq(spread.count, 12);
	ck_assert_uint_eq(spread.least, 2 * 1030);
	ck_assert_uint_eq(spread.median, 2 * 1035);
	ck_assert_uint_eq(spread.most, 2 * 2430);
	ck_assert_uint_eq(spread.outlier_ns, 2 * 2430);
	ck_assert_str_eq(string_table_get(fixture.texts, spread.outlier->label).bytes, "layers.7");
	ck_assert_str_eq(string_table_get(fixture.texts, node->worst->label).bytes, "layers.7");
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_is_numbered_within_a_member_counts_for_that_member)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = module(builder, 0, "Net", "Net");
	struct profile_fixture fixture;
	struct module_spread spread;
	const struct node *node;

	build_push_node(builder, MAIN, 100, net);
	for (unsigned layer = 0; layer < 4; layer++) {
		char name[16];
		uint32_t block;

		snprintf(name, sizeof name, "layers.%u", layer);
		block = module(builder, net, name, "Block");
		build_push_node(builder, MAIN, 1000 * (layer + 1), block);
		for (unsigned i = 0; i < 2; i++) {
			uint32_t inner = module(builder, block, i ? "1" : "0", "Linear");
			const uint64_t at = 1000 * (layer + 1) + 100 * (i + 1);

			build_push_node(builder, MAIN, at, inner);
			work(builder, MAIN, at + 10, at + 50, op(builder, inner, "aten::linear"),
				30);
			build_pop(builder, MAIN, at + 60);
		}
		build_pop(builder, MAIN, 1000 * (layer + 1) + 500);
	}
	build_pop(builder, MAIN, 6000);
	fixture = fixture_of(builder, NULL);
	module_group_finish(node_names_module_group(fixture.profile->names));
	node = must(&fixture, "Net/layers.*");
	ck_assert(module_group_spread(node_names_module_group(fixture.profile->names),
		(uint32_t)(node - fixture.profile->tree->nodes), true, &spread));
	ck_assert_uint_eq(spread.count, 4);
	ck_assert_uint_eq(spread.least, 60);
	ck_assert_uint_eq(spread.most, 60);
	ck_assert_ptr_null(spread.outlier);
	node = must(&fixture, "Net/layers.*/*");
	ck_assert(module_group_spread(node_names_module_group(fixture.profile->names),
		(uint32_t)(node - fixture.profile->tree->nodes), true, &spread));
	ck_assert_uint_eq(spread.count, 2);
	ck_assert_uint_eq(spread.most, 120);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_member_is_odd_only_when_it_plainly_is)
{
	const uint64_t slow[] = { 1007, 1450, 1600, 600, 800 };
	const bool odd[] = { false, false, true, true, false };

	for (unsigned i = 0; i < 5; i++) {
		struct profile_fixture fixture = fixture_of(model(12, 7, slow[i]), NULL);
		const struct node *node = must(&fixture, "GPT/layers.*");
		struct module_spread spread;

		module_group_spread(node_names_module_group(fixture.profile->names),
			(uint32_t)(node - fixture.profile->tree->nodes), false, &spread);
		ck_assert_msg(
			(spread.outlier != NULL) == odd[i], "%llu", (unsigned long long)slow[i]);
		fixture_free(&fixture);
	}
}
END_TEST

START_TEST(modules_of_different_classes_do_not_fold_together)
{
	struct profile_fixture fixture = fixture_of(model(12, 7, 2400), NULL);
	const struct tree *tree = fixture.profile->tree;
	const uint32_t layers = (uint32_t)(must(&fixture, "GPT/layers.*") - tree->nodes);
	unsigned found = 0;

	for (uint32_t id = tree->nodes[layers].first_child; id; id = tree->nodes[id].next) {
		ck_assert_str_eq(string_table_get(fixture.texts, tree->nodes[id].name).bytes, "*");
		ck_assert_uint_eq(tree->nodes[id].calls, 12);
		found++;
	}
	ck_assert_uint_eq(found, 2);
	fixture_free(&fixture);
}
END_TEST

static void show(struct report_run run, const char *out)
{
	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out, out);
	ck_assert_int_eq(run.status, 0);
}

START_TEST(the_tree_of_a_training_step)
{
	show(run_report(linear_step(), "tree trace.bin"),
		"                                            gpu      cpu       %  calls      p50\n"
		"Net                                     2.50 µs   100 ns  97.3 %      1   100 ns\n"
		"  └── fc (Linear)                       2.50 µs    85 ns  97.3 %      1    85 ns\n"
		"      ├── aten::linear                  1.00 µs    70 ns  38.9 %      1    70 ns\n"
		"      │   └── aten::addmm               1.00 µs    50 ns  38.9 %      1    50 ns\n"
		"      │       └── gemm                  1.00 µs           38.9 %      1  1.00 µs\n"
		"      └── aten::linear (bwd)            1.50 µs  (99 ns)  58.4 %\n"
		"          └── AddmmBackward0            1.50 µs    99 ns  58.4 %      1    99 ns\n"
		"              └── aten::mm              1.50 µs    60 ns  58.4 %      2    30 ns\n"
		"                  └── gemm              1.50 µs           58.4 %      2   700 ns\n"
		"(backward)                                70 ns   161 ns   2.7 %      2    31 ns\n"
		"  └── (gradient accumulation)             70 ns    49 ns   2.7 %\n"
		"      └── aten::add_                      50 ns    20 ns   1.9 %      1    20 ns\n"
		"          └── gemm                        50 ns            1.9 %      1    50 ns\n"
		"not shown: 6 below 1 % (--min-percent 0)\n");
	show(run_report(NULL, "tree trace.bin -m cpu --width 100"),
		"                                               cpu      gpu       %  calls     "
		"p50     max  reserved\n"
		"(backward)                                  161 ns    70 ns  51.8 %      2   31 "
		"ns  130 ns   4.10 kB\n"
		"  ├── (shown in modules, as (bwd))           99 ns           31.8 %\n"
		"  └── (gradient accumulation)                49 ns    70 ns  15.8 %\n"
		"      ├── torch::autograd::AccumulateGrad    29 ns    20 ns   9.3 %      1   29 "
		"ns   29 ns       0 B\n"
		"      │   └── aten::copy_                    20 ns    20 ns   6.4 %      1   20 "
		"ns   20 ns       0 B\n"
		"      │       └── cudaLaunchKernel            5 ns            1.6 %      1    5 "
		"ns    5 ns\n"
		"      └── aten::add_                         20 ns    50 ns   6.4 %      1   20 "
		"ns   20 ns       0 B\n"
		"          └── cudaLaunchKernel                5 ns            1.6 %      1    5 "
		"ns    5 ns\n"
		"Net                                         100 ns  2.50 µs  32.2 %      1  100 "
		"ns  100 ns\n"
		"  └── fc (Linear)                            85 ns  2.50 µs  27.3 %      1   85 "
		"ns   85 ns\n"
		"      ├── aten::linear                       70 ns  1.00 µs  22.5 %      1   70 "
		"ns   70 ns\n"
		"      │   └── aten::addmm                    50 ns  1.00 µs  16.1 %      1   50 "
		"ns   50 ns\n"
		"      │       └── cudaLaunchKernel            5 ns            1.6 %      1    5 "
		"ns    5 ns\n"
		"      └── aten::linear (bwd)               (99 ns)  1.50 µs  31.8 %\n"
		"          └── AddmmBackward0                 99 ns  1.50 µs  31.8 %      1   99 "
		"ns   99 ns   4.10 kB\n"
		"              └── aten::mm                   60 ns  1.50 µs  19.3 %      2   30 "
		"ns   30 ns       0 B\n"
		"                  └── cudaLaunchKernel       10 ns            3.2 %      2    5 "
		"ns    5 ns\n"
		"Optimizer.step#SGD.step                      50 ns           16.1 %      1   50 "
		"ns   50 ns       0 B\n"
		"not shown: 5 below 1 % (--min-percent 0)\n");
}
END_TEST

START_TEST(the_tree_of_folded_layers)
{
	show(run_report(model(12, 7, 2400), "tree trace.bin --width 100"),
		"                                                cpu        %  calls          "
		"members       p50\n"
		"GPT                                        27.90 µs  100.0 %      2               "
		"    13.95 µs\n"
		"  └── layers.* (Block) ×12                 27.64 µs   99.1 %     24  2.06 to 4.86 "
		"µs   1.04 µs\n"
		"      ├── * (ReLU)                         14.98 µs   53.7 %     12               "
		"     1.02 µs\n"
		"      │   └── aten::op                     14.86 µs   53.3 %     12               "
		"     1.00 µs\n"
		"      ├── * (Linear)                       12.18 µs   43.7 %     12               "
		"     1.01 µs\n"
		"      │   └── aten::op                     12.06 µs   43.2 %     12               "
		"     1.00 µs\n"
		"      └── layers.7: 2.35 times the median   4.86 µs   17.4 %\n");
	show(run_report(NULL, "tree trace.bin --width 80 --ascii"),
		"                                                cpu        %  calls       p50\n"
		"GPT                                        27.90 us  100.0 %      2  13.95 us\n"
		"  +-- layers.* (Block) x12                 27.64 us   99.1 %     24   1.04 us\n"
		"      |-- * (ReLU)                         14.98 us   53.7 %     12   1.02 us\n"
		"      |   +-- aten::op                     14.86 us   53.3 %     12   1.00 us\n"
		"      |-- * (Linear)                       12.18 us   43.7 %     12   1.01 us\n"
		"      |   +-- aten::op                     12.06 us   43.2 %     12   1.00 us\n"
		"      +-- layers.7: 2.35 times the median   4.86 us   17.4 %\n");
	show(run_report(NULL, "tree trace.bin --width 40"),
		"                                     cpu\n"
		"GPT                             27.90 µs\n"
		"└ layers.* (Block) ×12          27.64 µs\n"
		"  ├ * (ReLU)                    14.98 µs\n"
		"  │ └ aten::op                  14.86 µs\n"
		"  ├ * (Linear)                  12.18 µs\n"
		"  │ └ aten::op                  12.06 µs\n"
		"  └ layers.7: 2.…es the median   4.86 µs\n");
	show(run_report(NULL, "tree trace.bin --no-fold --top 2"),
		"                              cpu        %  calls       p50       max  cpu self\n"
		"GPT                      27.90 µs  100.0 %      2  13.95 µs  13.95 µs    260 ns\n"
		"  ├── layers.7 (Block)    4.86 µs   17.4 %      2   2.43 µs   2.43 µs     40 ns\n"
		"  │   └── 1 (ReLU)        4.82 µs   17.3 %      2   2.41 µs   2.41 µs     20 ns\n"
		"  │       └── aten::op    4.80 µs   17.2 %      2   2.40 µs   2.40 µs   4.80 µs\n"
		"  └── layers.11 (Block)   2.08 µs    7.5 %      2   1.04 µs   1.04 µs     40 ns\n"
		"      └── 1 (ReLU)        2.04 µs    7.3 %      2   1.02 µs   1.02 µs     20 ns\n"
		"          └── aten::op    2.02 µs    7.2 %      2   1.01 µs   1.01 µs   2.02 µs\n"
		"not shown: 10 more (--top 0)\n");
	show(run_report(NULL, "tree trace.bin --focus 'GPT/layers.*/* (ReLU)'"),
		"                     cpu       %  calls      p50      max  cpu self      p95\n"
		"* (ReLU)        14.98 µs  53.7 %     12  1.02 µs  2.41 µs    120 ns  2.41 µs\n"
		"  └── aten::op  14.86 µs  53.3 %     12  1.00 µs  2.40 µs  14.86 µs  2.40 µs\n");
}
END_TEST

START_TEST(the_table_keeps_classes_apart)
{
	show(run_report(model(12, 7, 2400), "table trace.bin --width 100"),
		"     cpu  cpu self  calls        %   cpu avg  cpu self %       p50       max  "
		"name\n"
		"27.90 µs    260 ns      2  100.0 %  13.95 µs       0.9 %  13.95 µs  13.95 µs  "
		"GPT\n"
		"27.64 µs    480 ns     24   99.1 %   1.15 µs       1.7 %   1.04 µs   2.43 µs  "
		"layers.* (Block) ×12\n"
		"26.92 µs  26.92 µs     24   96.5 %   1.12 µs      96.5 %   1.00 µs   2.40 µs  "
		"aten::op\n"
		"14.98 µs    120 ns     12   53.7 %   1.25 µs       0.4 %   1.02 µs   2.41 µs  * "
		"(ReLU)\n"
		"12.18 µs    120 ns     12   43.7 %   1.02 µs       0.4 %   1.01 µs   1.02 µs  * "
		"(Linear)\n"
		"legend    %, cpu self %: of the time of all threads in ranges, 27.90 µs\n");
	show(run_report(linear_step(), "table trace.bin --width 100"),
		"    gpu   gpu self  cpu self  calls        %     cpu  gpu avg  name\n"
		"2.57 µs  (2.57 µs)                5  100.0 %           514 ns  gemm  "
		"<<<(64,1,1),(128,1,1)>>>\n"
		"2.50 µs       0 ns     15 ns      1   97.3 %  100 ns  2.50 µs  Net\n"
		"2.50 µs       0 ns     15 ns      1   97.3 %   85 ns  2.50 µs  fc (Linear)\n"
		"1.50 µs       0 ns     39 ns      1   58.4 %   99 ns  1.50 µs  AddmmBackward0\n"
		"1.50 µs       0 ns                    58.4 %   99 ns           aten::linear "
		"(bwd)\n"
		"1.50 µs    1.50 µs     60 ns      2   58.4 %   60 ns   750 ns  aten::mm\n"
		"1.00 µs       0 ns     20 ns      1   38.9 %   70 ns  1.00 µs  aten::linear\n"
		"1.00 µs    1.00 µs     50 ns      1   38.9 %   50 ns  1.00 µs  aten::addmm\n"
		"  70 ns       0 ns     13 ns      2    2.7 %  161 ns    35 ns  (backward)\n"
		"  70 ns       0 ns                     2.7 %   49 ns           (gradient "
		"accumulation)\n"
		"  50 ns      50 ns     20 ns      1    1.9 %   20 ns    50 ns  aten::add_\n"
		"  20 ns       0 ns      9 ns      1    0.8 %   29 ns    20 ns  "
		"torch::autograd::AccumulateGrad\n"
		"  20 ns      20 ns     20 ns      1    0.8 %   20 ns    20 ns  aten::copy_\n"
		"                       50 ns      1            50 ns           "
		"Optimizer.step#SGD.step\n"
		"                                  5            25 ns           cudaLaunchKernel\n"
		"                                  1             0 ns           (allocation)\n"
		"legend    %: of all GPU time, 2.57 µs\n");
}
END_TEST

START_TEST(the_worst_step_names_its_layers)
{
	show(run_report(model(12, 7, 2400), "critical trace.bin --top 3"),
		"GPT ───────────────────────────────────────────────│ 13.95 µs (100 %)\n"
		"  ├── layers.7 (Block) ────────────────────────────│ 2.43 µs (17.4 %)\n"
		"  │   └── 1 (ReLU) ────────────────────────────────│ 2.41 µs (17.3 %)\n"
		"  │       └── aten::op ────────────────────────────│ 2.40 µs (17.2 %)\n"
		"  ├── layers.11 (Block) ───────────────────────────│ 1.04 µs (7.5 %)\n"
		"  │   └── 1 (ReLU) ────────────────────────────────│ 1.02 µs (7.3 %)\n"
		"  │       └── aten::op ────────────────────────────│ 1.01 µs (7.2 %)\n"
		"  └── layers.10 (Block) ───────────────────────────│ 1.04 µs (7.5 %)\n"
		"      └── 0 (Linear) ──────────────────────────────│ 1.02 µs (7.3 %)\n"
		"          └── aten::op ────────────────────────────│ 1.01 µs (7.2 %)\n"
		"not shown: 9 more (--top 0)\n");
}
END_TEST

/* A step in which `count` views do nothing, and tracing with fake tensors takes most of the time.
 */
static struct trace_builder *much_ado(unsigned count)
{
	struct trace_builder *builder = linear_step();
	const uint32_t net = module(builder, 0, "Net", "Net"),
		       region = op(builder, net, "Torch-Compiled Region: 0/0"),
		       trace = op(builder, region, "PythonDispatchMode");
	uint64_t at = 1000;

	build_push_node(builder, MAIN, at, net);
	for (unsigned i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof name, "aten::view_%u", i);
		span(builder, MAIN, at, at + 5, op(builder, net, name));
		at += 5;
	}
	build_push_node(builder, MAIN, at, region);
	build_push_node(builder, MAIN, at, trace);
	build_pop(builder, MAIN, at += 500);
	build_pop(builder, MAIN, at);
	build_push_node(builder, MAIN, at, op(builder, net, "Torch-Compiled Region: 0/1"));
	build_pop(builder, MAIN, at += 100);
	build_pop(builder, MAIN, at);
	return builder;
}

START_TEST(what_did_nothing_is_one_row)
{
	show(run_report(much_ado(60), "tree trace.bin --width 100 -d 2"),
		"                                           gpu      cpu       %  calls     p50    "
		" max  reserved\n"
		"Net                                    2.50 µs  1.00 µs  97.3 %      2  100 ns  "
		"900 ns       0 B\n"
		"  ├── fc (Linear)                      2.50 µs    85 ns  97.3 %      1   85 ns   "
		"85 ns\n"
		"  ├── Torch-Compiled Region: 0/* ×2              600 ns              2  100 ns  "
		"500 ns       0 B\n"
		"  └── (60 operators without GPU work)            300 ns\n"
		"(backward)                               70 ns   161 ns   2.7 %      2   31 ns  "
		"130 ns   4.10 kB\n"
		"  └── (gradient accumulation)            70 ns    49 ns   2.7 %\n"
		"not shown: 1 below 1 % (--min-percent 0), 5 deeper (--depth)\n");
	show(run_report(much_ado(2), "tree trace.bin --width 100 -d 2"),
		"                                          gpu     cpu       %  calls     p50     "
		"max  reserved\n"
		"Net                                   2.50 µs  710 ns  97.3 %      2  100 ns  610 "
		"ns       0 B\n"
		"  ├── fc (Linear)                     2.50 µs   85 ns  97.3 %      1   85 ns   85 "
		"ns\n"
		"  ├── Torch-Compiled Region: 0/* ×2            600 ns              2  100 ns  500 "
		"ns       0 B\n"
		"  └── (2 operators without GPU work)            10 ns\n"
		"(backward)                              70 ns  161 ns   2.7 %      2   31 ns  130 "
		"ns   4.10 kB\n"
		"  └── (gradient accumulation)           70 ns   49 ns   2.7 %\n"
		"not shown: 1 below 1 % (--min-percent 0), 5 deeper (--depth)\n");
	ck_assert_ptr_nonnull(
		strstr(run_report(NULL, "tree trace.bin --min-percent 0").out, "aten::view_1 "));
	ck_assert_ptr_nonnull(
		strstr(run_report(NULL, "tree trace.bin -f json").out, "\"aten::view_1\""));
	ck_assert_ptr_null(strstr(run_report(NULL, "tree trace.bin -f json").out, "without work"));
}
END_TEST

/* Four optimizer steps with the model in a closure (LBFGS), or after it: kernels of 100 in the
 * model, 100 backward, and 150 and 150 of the optimizer. */
static struct trace_builder *optimizer_with_a_closure(bool closure)
{
	struct trace_builder *builder = builder_new();
	const uint32_t optimizer = build_linked_node(builder, 0, "Optimizer.step#LBFGS.step",
			       TRACE_NODE_OPTIMIZER, 0, NULL),
		       net = module(builder, closure ? optimizer : 0, "Net", "Net"),
		       mm = op(builder, net, "aten::mm"), dot = op(builder, optimizer, "aten::dot"),
		       mul = op(builder, optimizer, "aten::mul");

	build_device(builder, 0, "GPU");
	for (uint64_t i = 0, at = 1000; i < 4; i++, at += 2000) {
		const uint32_t engine = op(builder, closure ? optimizer : 0, ENGINE "MmBackward0");

		if (closure)
			build_push_node(builder, MAIN, at, optimizer);
		build_push_node(builder, MAIN, at + 10, net);
		work(builder, MAIN, at + 20, at + 30, mm, 100);
		build_pop(builder, MAIN, at + 40);
		build_push_node(builder, MAIN, at + 150, engine);
		work(builder, MAIN, at + 160, at + 170,
			backward(builder, engine, "MmBackward0", mm), 100);
		build_pop(builder, MAIN, at + 180);
		if (!closure)
			build_push_node(builder, MAIN, at + 500, optimizer);
		work(builder, MAIN, at + 510, at + 520, dot, 150);
		work(builder, MAIN, at + 521, at + 529, mul, 150);
		build_pop(builder, MAIN, at + 530);
	}
	return builder;
}

START_TEST(work_in_an_optimizers_closure_is_not_said_to_be_the_optimizers)
{
	struct report_run run = run_report(
		optimizer_with_a_closure(true), "summary trace.bin --width 400");

	ck_assert_msg(
		strstr(run.out, "100 % was launched in `step / "
				"Optimizer.step#LBFGS.step`, which calls the model in a closure: "
				"forward 20.0 %, backward 20.0 %, optimizer 60.0 %\n") != NULL,
		"%s", run.out);
	ck_assert_msg(
		strstr(run.out, "the model may be called in a closure") != NULL, "%s", run.out);
	run = run_report(optimizer_with_a_closure(false), "summary trace.bin --width 400");
	ck_assert_msg(strstr(run.out, "60.0 % was launched in `step / "
				      "Optimizer.step#LBFGS.step`\n") != NULL,
		"%s", run.out);
	ck_assert_ptr_null(strstr(run.out, "closure"));
}
END_TEST

/* Three calls of a model, each with four kernels of 100, and behind it the backward pass with
 * another, or none. */
static struct trace_builder *model_and_backward(bool trains)
{
	static const char *const names[] = { "aten::mm", "aten::add", "aten::mul", "aten::sub" };
	struct trace_builder *builder = builder_new();
	const uint32_t net = module(builder, 0, "Net", "Net");
	uint32_t ops[4];

	build_device(builder, 0, "GPU");
	for (int i = 0; i < 4; i++)
		ops[i] = op(builder, net, names[i]);
	for (uint64_t i = 0, at = 1000; i < 3; i++, at += 2000) {
		const uint32_t engine = op(builder, 0, ENGINE "MmBackward0");

		build_push_node(builder, MAIN, at + 10, net);
		for (uint64_t k = 0; k < 4; k++)
			work(builder, MAIN, at + 20 + 20 * k, at + 30 + 20 * k, ops[k], 100);
		build_pop(builder, MAIN, at + 110);
		if (!trains)
			continue;
		build_push_node(builder, MAIN, at + 650, engine);
		work(builder, MAIN, at + 660, at + 670,
			backward(builder, engine, "MmBackward0", ops[0]), 100);
		build_pop(builder, MAIN, at + 680);
	}
	return builder;
}

START_TEST(the_backward_pass_beside_a_range_is_not_said_to_be_launched_in_it)
{
	struct report_run run = run_report(
		model_and_backward(true), "summary trace.bin --width 400");

	ck_assert_msg(strstr(run.out, "100 % is in `step / Net`, with its backward pass") != NULL,
		"%s", run.out);
	run = run_report(model_and_backward(false), "summary trace.bin --width 400");
	ck_assert_msg(strstr(run.out, "100 % was launched in `") != NULL, "%s", run.out);
}
END_TEST

/* The row of that name, from its brace to the end of the line. */
static const char *json_row(const char *out, const char *name)
{
	static char row[2048];
	char key[128];
	const char *at;

	snprintf(key, sizeof key, "\"name\": \"%s\"", name);
	at = strstr(out, key);
	ck_assert_msg(at != NULL, "no row %s in %s", name, out);
	snprintf(row, sizeof row, "%.*s", (int)strcspn(at, "\n"), at);
	return row;
}

START_TEST(json_says_where_time_was_spent)
{
	const char *out = run_report(linear_step(), "tree trace.bin -f json").out;

	ck_assert_str_eq(json_row(out, "AddmmBackward0"),
		"\"name\": \"AddmmBackward0\", \"label\": \"AddmmBackward0\", \"kind\": "
		"\"backward\", "
		"\"path\": [\"Net\", \"fc\", \"aten::linear (bwd)\", \"AddmmBackward0\"], "
		"\"share\": 0.5836575875486382, \"calls\": 1, \"gpu_total_ns\": 1500, "
		"\"gpu_self_ns\": 0, "
		"\"gpu_calls\": 2, \"gpu_forward_ns\": 0, \"gpu_backward_ns\": 1500, "
		"\"gpu_recompute_ns\": 0, "
		"\"gpu_optimizer_ns\": 0, \"cpu_total_ns\": 99, \"cpu_self_ns\": 39, "
		"\"cpu_self_x_ns\": 39, "
		"\"idle_ns\": 0, \"idle_before_ns\": 0, \"delay_p50_ns\": 29, \"delay_p95_ns\": "
		"29, "
		"\"min_ns\": 99, \"p50_ns\": 99, \"p95_ns\": 99, \"p99_ns\": 99, \"max_ns\": 99, "
		"\"reserved_delta_bytes\": 4096, \"reserved_peak_bytes\": 4096, \"alloc_bytes\": "
		"4096, "
		"\"free_bytes\": 0, \"allocs\": 1, \"ran_elsewhere\": true, \"worst\": "
		"{\"metric\": \"gpu\", "
		"\"label\": \"AddmmBackward0\", \"start_ns\": 201, \"value\": 1500}},");
	ck_assert_str_eq(json_row(out, "aten::linear (bwd)"),
		"\"name\": \"aten::linear (bwd)\", \"label\": \"aten::linear (bwd)\", \"kind\": "
		"\"backward\", "
		"\"path\": [\"Net\", \"fc\", \"aten::linear (bwd)\"], \"share\": "
		"0.5836575875486382, "
		"\"gpu_total_ns\": 1500, \"gpu_self_ns\": 0, \"gpu_calls\": 2, \"gpu_forward_ns\": "
		"0, "
		"\"gpu_backward_ns\": 1500, \"gpu_recompute_ns\": 0, \"gpu_optimizer_ns\": 0, "
		"\"cpu_total_ns\": 99, "
		"\"idle_before_ns\": 0, \"delay_p50_ns\": 29, \"delay_p95_ns\": 29, "
		"\"alloc_bytes\": 4096, \"free_bytes\": 0, \"ran_elsewhere\": true},");
	ck_assert_str_eq(json_row(out, "(backward)"),
		"\"name\": \"(backward)\", \"label\": \"(backward)\", \"kind\": \"backward\", "
		"\"path\": [\"(backward)\"], \"share\": 0.027237354085603113, \"calls\": 2, "
		"\"gpu_total_ns\": 70, \"gpu_self_ns\": 0, \"gpu_calls\": 2, \"gpu_forward_ns\": "
		"0, "
		"\"gpu_backward_ns\": 70, \"gpu_recompute_ns\": 0, \"gpu_optimizer_ns\": 0, "
		"\"cpu_total_ns\": 161, "
		"\"cpu_self_ns\": 13, \"cpu_self_x_ns\": 13, \"idle_ns\": 0, \"idle_before_ns\": "
		"0, \"delay_p50_ns\": 19, "
		"\"delay_p95_ns\": 19, \"min_ns\": 31, \"p50_ns\": 31, "
		"\"p95_ns\": 130, \"p99_ns\": 130, \"max_ns\": 130, \"reserved_delta_bytes\": "
		"4096, "
		"\"reserved_peak_bytes\": 4096, \"worst\": {\"metric\": \"gpu\", "
		"\"label\": \"autograd::engine::evaluate_function: AddmmBackward0\", \"start_ns\": "
		"200, "
		"\"value\": 1550}},");
	ck_assert_ptr_null(strstr(json_row(out, "(backward)"), "ran_elsewhere"));
	out = run_report(model(12, 7, 2400), "tree trace.bin -f json").out;
	ck_assert_str_eq(json_row(out, "layers.*"),
		"\"name\": \"layers.*\", \"label\": \"layers.* (Block) ×12\", \"kind\": "
		"\"module\", "
		"\"path\": [\"GPT\", \"layers.*\"], \"share\": 0.9906803355079217, \"calls\": 24, "
		"\"cpu_total_ns\": 27638, \"cpu_self_ns\": 480, \"cpu_self_x_ns\": 480, "
		"\"min_ns\": 1030, "
		"\"p50_ns\": 1035, \"p95_ns\": 2430, \"p99_ns\": 2430, \"max_ns\": 2430, "
		"\"labels\": 12, \"class\": \"Block\", "
		"\"members\": {\"count\": 12, \"metric\": \"cpu\", \"min_ns\": 2060, \"p50_ns\": "
		"2070, "
		"\"max_ns\": 4860}, \"odd\": {\"label\": \"layers.7\", \"ns\": 4860, \"calls\": "
		"2}, "
		"\"worst\": {\"metric\": \"cpu\", \"label\": \"layers.7\", \"start_ns\": 21260, "
		"\"value\": 2430}},");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("torch tree");
	TCase *backward_case = tcase_create("backward"), *modules = tcase_create("modules"),
	      *screens = tcase_create("screens");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(backward_case, backward_stands_beside_its_operator);
	tcase_add_test(backward_case, time_on_the_cpu_is_counted_once);
	tcase_add_test(backward_case, memory_taken_backward_is_the_modules);
	tcase_add_test(backward_case, backward_without_a_known_operator_stays_where_it_ran);
	tcase_add_test(backward_case, what_the_engine_computes_for_a_function_stands_with_it);
	tcase_add_test(backward_case, without_folding_the_engine_is_shown_for_each_function);
	tcase_add_test(backward_case, double_backward_stands_in_the_first);
	tcase_add_test(backward_case, a_module_computed_again_is_beside_its_forward_pass);
	tcase_add_test(backward_case, what_is_computed_again_in_no_module_is_in_the_layer_around);
	tcase_add_test(
		backward_case, a_module_without_a_forward_pass_stays_in_the_backward_function);
	tcase_add_test(backward_case, one_trace_stands_below_several_nodes);
	suite_add_tcase(suite, backward_case);
	tcase_add_test(modules, layers_are_one_node_and_each_counts_apart);
	tcase_add_test(modules, what_is_numbered_within_a_member_counts_for_that_member);
	tcase_add_test(modules, a_member_is_odd_only_when_it_plainly_is);
	tcase_add_test(modules, modules_of_different_classes_do_not_fold_together);
	suite_add_tcase(suite, modules);
	tcase_add_checked_fixture(screens, run_report_setup, run_report_teardown);
	tcase_set_timeout(screens, 60);
	tcase_add_test(screens, the_tree_of_a_training_step);
	tcase_add_test(screens, the_tree_of_folded_layers);
	tcase_add_test(screens, the_table_keeps_classes_apart);
	tcase_add_test(screens, the_worst_step_names_its_layers);
	tcase_add_test(screens, what_did_nothing_is_one_row);
	tcase_add_test(screens, json_says_where_time_was_spent);
	tcase_add_test(screens, work_in_an_optimizers_closure_is_not_said_to_be_the_optimizers);
	tcase_add_test(screens, the_backward_pass_beside_a_range_is_not_said_to_be_launched_in_it);
	suite_add_tcase(suite, screens);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
