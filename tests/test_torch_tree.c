/* SPDX-License-Identifier: MIT
 * test_torch_tree.c: PyTorch's hierarchy: modules, operators, and what runs backward beside the operator it is for.
 */
#include "tests/folded.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAIN = 1, AUTOGRAD = 2, GPU = 3 }; /* streams */

#define ENGINE "autograd::engine::evaluate_function: "

/* A range without anything in it. */
static void span(struct trace_builder *builder, uint32_t stream, uint64_t from, uint64_t to, uint32_t place)
{
	build_push_node(builder, stream, from, place);
	build_pop(builder, stream, to);
}

/* The same with a kernel of that many ns. */
static void work(struct trace_builder *builder, uint32_t stream, uint64_t from, uint64_t to, uint32_t place, uint64_t gpu)
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
	return build_place(builder, parent, name, TRACE_NODE_OP, 0, NULL);
}

static uint32_t module(struct trace_builder *builder, uint32_t parent, const char *name, const char *class)
{
	return build_place(builder, parent, name, TRACE_NODE_MODULE, 0, class);
}

static uint32_t backward(struct trace_builder *builder, uint32_t parent, const char *name, uint32_t link)
{
	return build_place(builder, parent, name, TRACE_NODE_BACKWARD, link, NULL);
}

/* What autograd's engine does for one function: the place of the function, which is open, below it. */
static uint32_t engine_push(
	struct trace_builder *builder, uint32_t stream, uint64_t at, uint32_t parent, const char *name, uint32_t link)
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

static const struct node *must(const struct folded *folded, const char *path)
{
	const struct node *node = folded_node(folded, path);

	ck_assert_msg(node != NULL, "there is no `%s`", path);
	return node;
}

static void expect(const struct folded *folded, const char *path, uint64_t calls, uint64_t cpu, uint64_t gpu)
{
	const struct node *node = must(folded, path);

	ck_assert_msg(node->calls == calls && node->total_ns == cpu && (node->gpu ? node->gpu->total_ns : 0) == gpu,
		"%s: %llu calls, cpu %llu, gpu %llu", path, (unsigned long long)node->calls,
		(unsigned long long)node->total_ns, (unsigned long long)(node->gpu ? node->gpu->total_ns : 0));
}

/* The own time of all ranges makes up what the outermost ranges of all threads took. */
static uint64_t own_times(const struct folded *folded)
{
	uint64_t sum = 0;

	for (uint32_t id = 1; id < folded->fold->tree->count; id++)
		if (node_kind_class(folded->fold->tree->nodes[id].kind) == NODE_RANGES)
			sum += folded->fold->tree->nodes[id].self_ns;
	return sum;
}

/* One step of a model of one linear layer: forward on the main thread, backward on autograd's. */
static struct trace_builder *linear_step(void)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = module(builder, 0, "Net", "Net"), fc = module(builder, net, "fc", "Linear"),
		       linear = op(builder, fc, "aten::linear"), addmm = op(builder, linear, "aten::addmm");
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
	work(builder, AUTOGRAD, 305, 325, op(builder, op(builder, 0, ENGINE "AddmmBackward0"), "aten::add_"), 50);
	build_pop(builder, AUTOGRAD, 330);
	place = engine_push(builder, AUTOGRAD, 340, 0, "torch::autograd::AccumulateGrad", 0);
	work(builder, AUTOGRAD, 345, 365, op(builder, place, "aten::copy_"), 20);
	engine_pop(builder, AUTOGRAD, 370);
	span(builder, MAIN, 400, 450, build_place(builder, 0, "Optimizer.step#SGD.step", TRACE_NODE_OPTIMIZER, 0, NULL));
	return builder;
}

START_TEST(backward_stands_beside_its_operator)
{
	struct folded folded = folded_of(linear_step(), NULL);

	expect(&folded, "Net", 1, 100, 2500);
	expect(&folded, "Net/fc", 1, 85, 2500);
	expect(&folded, "Net/fc/aten::linear", 1, 70, 1000);
	expect(&folded, "Net/fc/aten::linear/aten::addmm", 1, 50, 1000);
	expect(&folded, "Net/fc/aten::linear (bwd)", 0, 99, 1500);
	expect(&folded, "Net/fc/aten::linear (bwd)/AddmmBackward0", 1, 99, 1500);
	expect(&folded, "Net/fc/aten::linear (bwd)/AddmmBackward0/aten::mm", 2, 60, 1500);
	expect(&folded, "(backward)", 2, 130 + 31, 70);
	expect(&folded, "(backward)/(gradient accumulation)", 0, 20 + 29, 70);
	expect(&folded, "(backward)/(gradient accumulation)/aten::add_", 1, 20, 50);
	expect(&folded, "(backward)/(gradient accumulation)/torch::autograd::AccumulateGrad/aten::copy_", 1, 20, 20);
	expect(&folded, "Optimizer.step#SGD.step", 1, 50, 0);
	ck_assert_int_eq(must(&folded, "Net/fc")->kind, NODE_MODULE);
	ck_assert_int_eq(must(&folded, "Net/fc/aten::linear (bwd)")->kind, NODE_BACKWARD);
	ck_assert(must(&folded, "Net/fc/aten::linear (bwd)/AddmmBackward0")->elsewhere);
	ck_assert(!must(&folded, "(backward)")->elsewhere);
	ck_assert_int_eq(must(&folded, "Optimizer.step#SGD.step")->kind, NODE_OPTIMIZER);
	folded_free(&folded);
}
END_TEST

START_TEST(time_on_the_cpu_is_nobodys_twice)
{
	struct folded folded = folded_of(linear_step(), NULL);

	folded_check(&folded);
	ck_assert_uint_eq(own_times(&folded), 100 + 130 + 31 + 50);
	/* The engine's own: without the function it ran and without the sum it made. */
	ck_assert_uint_eq(must(&folded, "(backward)")->self_ns, 130 - 99 - 20 + 31 - 29);
	ck_assert_uint_eq(must(&folded, "Net/fc")->self_ns, 15);
	ck_assert_uint_eq(must(&folded, "Net/fc")->max_ns, 85);
	folded_free(&folded);
}
END_TEST

START_TEST(memory_taken_backward_is_the_modules)
{
	struct folded folded = folded_of(linear_step(), NULL);

	ck_assert_uint_eq(must(&folded, "Net/fc")->memory->alloc_bytes, 4096);
	ck_assert_uint_eq(must(&folded, "Net")->memory->alloc_bytes, 4096);
	ck_assert_uint_eq(must(&folded, "Net/fc/aten::linear (bwd)/AddmmBackward0")->memory->alloc_self, 4096);
	ck_assert(!must(&folded, "(backward)")->memory || !must(&folded, "(backward)")->memory->alloc_bytes);
	folded_check(&folded);
	folded_free(&folded);
}
END_TEST

START_TEST(backward_without_a_known_operator_stays_where_it_ran)
{
	struct trace_builder *builder = builder_new();
	struct folded folded;
	const uint32_t step = build_node(builder, 0, "step", NULL, TRACE_NODE_RANGE);

	build_push_node(builder, MAIN, 0, step);
	engine_push(builder, MAIN, 10, step, "MulBackward0", 0);
	engine_pop(builder, MAIN, 20);
	engine_push(builder, MAIN, 30, step, "SinBackward0", 60000); /* as a damaged trace may say */
	engine_pop(builder, MAIN, 40);
	build_pop(builder, MAIN, 50);
	folded = folded_of(builder, NULL);
	expect(&folded, "step/(backward)", 2, 22, 0);
	expect(&folded, "step/(backward)/MulBackward0", 1, 9, 0);
	expect(&folded, "step/(backward)/SinBackward0", 1, 9, 0);
	ck_assert_uint_eq(own_times(&folded), 50);
	folded_free(&folded);
}
END_TEST

START_TEST(without_folding_the_engine_is_shown_for_each_function)
{
	struct fold_options apart = { .no_fold = true, .device = -1, .metric = METRIC_CPU };
	struct folded folded = folded_of(linear_step(), &apart);

	expect(&folded, ENGINE "AddmmBackward0", 1, 130, 50);
	expect(&folded, ENGINE "AddmmBackward0/(gradient accumulation)/aten::add_", 1, 20, 50);
	expect(&folded, "Net/fc/aten::linear (bwd)/AddmmBackward0", 1, 99, 1500);
	folded_free(&folded);
}
END_TEST

/* y = x * x; dy = grad(y, create_graph); dy.backward(): the second backward is beside the operator of the first. */
START_TEST(double_backward_stands_in_the_first)
{
	struct trace_builder *builder = builder_new();
	struct folded folded;
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
	folded = folded_of(builder, NULL);
	expect(&folded, "Net/aten::mul (bwd)/MulBackward0", 1, 19, 0);
	expect(&folded, "Net/aten::mul (bwd)/MulBackward0/aten::mul", 1, 10, 0);
	expect(&folded, "Net/aten::mul (bwd)/MulBackward0/aten::mul (bwd)/MulBackward0", 1, 9, 0);
	ck_assert_uint_eq(own_times(&folded), 30 + 21 + 11);
	folded_free(&folded);
}
END_TEST

/* torch.utils.checkpoint: the module runs again inside the function that needs what it made. */
START_TEST(what_a_checkpoint_computes_again_is_named_so)
{
	struct trace_builder *builder = builder_new();
	struct folded folded;
	const uint32_t net = module(builder, 0, "Net", "Net"), block = module(builder, net, "blocks.0", "Block"),
		       mm = op(builder, block, "aten::mm");
	uint32_t again, fc, place;

	build_push_node(builder, MAIN, 0, net);
	build_push_node(builder, MAIN, 5, block);
	span(builder, MAIN, 10, 20, mm);
	build_pop(builder, MAIN, 25);
	build_pop(builder, MAIN, 30);
	place = engine_push(builder, AUTOGRAD, 40, 0, "MmBackward0", mm);
	again = module(builder, place, "blocks.0", "Block");
	fc = module(builder, again, "fc", "Linear");
	build_push_node(builder, AUTOGRAD, 50, again);
	build_push_node(builder, AUTOGRAD, 55, fc);
	span(builder, AUTOGRAD, 60, 70, op(builder, fc, "aten::mm"));
	build_pop(builder, AUTOGRAD, 75);
	build_pop(builder, AUTOGRAD, 80);
	engine_pop(builder, AUTOGRAD, 90);
	folded = folded_of(builder, NULL);
	expect(&folded, "Net/blocks.*/aten::mm", 1, 10, 0);
	expect(&folded, "Net/blocks.*/aten::mm (bwd)/MmBackward0/blocks.* (recompute)", 1, 30, 0);
	expect(&folded, "Net/blocks.*/aten::mm (bwd)/MmBackward0/blocks.* (recompute)/fc/aten::mm", 1, 10, 0);
	ck_assert_uint_eq(own_times(&folded), 30 + 51);
	folded_free(&folded);
}
END_TEST

START_TEST(one_trace_stands_below_several_nodes)
{
	struct folded folded = folded_of(linear_step(), NULL);
	struct tree *tree = folded.fold->tree;
	const uint32_t step = tree_child(tree, 0, text_id(folded.texts, "step", 4), 0, NODE_STEP),
		       *nodes = names_nodes_below(folded.fold->names, step);
	const uint32_t places = reader_nodes(folded.reader) - 1; /* the last stands for unknown ids */

	ck_assert_ptr_eq(nodes, names_nodes_below(folded.fold->names, step));
	ck_assert_uint_eq(nodes[0], step);
	for (uint32_t place = 1; place < places; place++) {
		uint32_t node = nodes[place];

		while (tree->nodes[node].parent)
			node = tree->nodes[node].parent;
		ck_assert_uint_eq(node, step);
	}
	must(&folded, "step/Net/fc/aten::linear (bwd)/AddmmBackward0/aten::mm");
	must(&folded, "step/(backward)/(gradient accumulation)");
	ck_assert_uint_eq(must(&folded, "step/Net")->calls, 0);
	folded_free(&folded);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("torch tree");
	TCase *backward_case = tcase_create("backward");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(backward_case, backward_stands_beside_its_operator);
	tcase_add_test(backward_case, time_on_the_cpu_is_nobodys_twice);
	tcase_add_test(backward_case, memory_taken_backward_is_the_modules);
	tcase_add_test(backward_case, backward_without_a_known_operator_stays_where_it_ran);
	tcase_add_test(backward_case, without_folding_the_engine_is_shown_for_each_function);
	tcase_add_test(backward_case, double_backward_stands_in_the_first);
	tcase_add_test(backward_case, what_a_checkpoint_computes_again_is_named_so);
	tcase_add_test(backward_case, one_trace_stands_below_several_nodes);
	suite_add_tcase(suite, backward_case);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
