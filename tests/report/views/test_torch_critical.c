/* SPDX-License-Identifier: MIT
 * test_torch_critical.c: the worst step of a training: its backward by the modules that it was of,
 * on whatever thread, many small operators as one row, and a value that is the tree's.
 */
#include "report/profile/profile.h"
#include "tests/support/profile_fixture.h"
#include "tests/support/training_trace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENGINE "autograd::engine::evaluate_function: "

enum { MAIN = 1, AUTOGRAD = 7, GPU = 99, LAYERS_MOST = 128 };

/* A net of so many equal layers, and what the last forward of it left for backward. */
struct net {
	struct training training;
	unsigned layers, small_steps; /* small_steps: operators in an optimizer's step */
	uint32_t addmm[LAYERS_MOST];
	uint64_t backward_ns, slow_ns; /* of a layer, and of layer 2 */
	uint64_t gpu_ns;               /* of what a layer launches; 0: it launches nothing */
	struct {
		uint64_t correlation, ns;
	} work[4096];
	size_t launched;
};

static struct net net_new(unsigned layers)
{
	return (struct net){
		.training = training_new(), .layers = layers, .backward_ns = 100, .slow_ns = 100
	};
}

static void open_place(struct training *training, uint32_t place)
{
	build_push_node(training->builder, training->stream, training->now++, place);
	training->nodes[training->depth++] = place;
}

static uint32_t open_new(struct training *training, const char *name, enum trace_node_kind kind,
	uint32_t link, const char *class)
{
	const uint32_t parent = training->depth ? training->nodes[training->depth - 1] : 0;

	open_place(training, build_linked_node(training->builder, parent, name, kind, link, class));
	return training->nodes[training->depth - 1];
}

static void launch(struct net *net, struct training *on, uint64_t ns)
{
	if (!net->gpu_ns)
		return;
	on->now += 5;
	build_launch(on->builder, on->stream, on->now, net->launched + 1);
	net->work[net->launched].correlation = net->launched + 1;
	net->work[net->launched++].ns = ns;
}

/* An operator of so many ticks. */
static void operate(
	struct net *net, struct training *on, const char *name, uint64_t ticks, uint64_t gpu_ns)
{
	const uint64_t end = on->now + ticks - 1;

	open_new(on, name, TRACE_NODE_OP, 0, NULL);
	launch(net, on, gpu_ns);
	on->now = on->now < end ? end : on->now;
	train_close(on);
}

static void forward(struct net *net)
{
	struct training *training = &net->training;

	open_new(training, "Net", TRACE_NODE_MODULE, 0, "Net");
	for (unsigned i = 0; i < net->layers; i++) {
		char name[32];

		snprintf(name, sizeof name, "layers.%u", i);
		open_new(training, name, TRACE_NODE_MODULE, 0, "Block");
		open_new(training, "fc", TRACE_NODE_MODULE, 0, "Linear");
		open_new(training, "aten::linear", TRACE_NODE_OP, 0, NULL);
		net->addmm[i] = open_new(training, "aten::addmm", TRACE_NODE_OP, 0, NULL);
		launch(net, training, net->gpu_ns);
		training->now += 20;
		train_close(training);
		train_close(training);
		train_close(training);
		train_close(training);
	}
	train_close(training);
}

/* The engine at work on one function: of `link`, or AccumulateGrad. */
static void evaluate(
	struct net *net, struct training *on, uint32_t link, uint64_t ticks, uint64_t gpu_ns)
{
	open_new(on, link ? ENGINE "AddmmBackward0" : ENGINE "torch::autograd::AccumulateGrad",
		TRACE_NODE_OP, 0, NULL);
	open_new(on, link ? "AddmmBackward0" : "torch::autograd::AccumulateGrad",
		TRACE_NODE_BACKWARD, link, NULL);
	operate(net, on, link ? "aten::mm" : "aten::detach", ticks, gpu_ns);
	train_close(on);
	train_close(on);
}

static void backward(struct net *net)
{
	struct training on = net->training;

	if (on.backward_stream) {
		on.stream = on.backward_stream;
		on.depth = 0;
	}
	for (unsigned i = net->layers; i-- > 0;) {
		evaluate(net, &on, net->addmm[i], i == 2 ? net->slow_ns : net->backward_ns,
			net->gpu_ns * (i == 2 ? 8 : 2));
		evaluate(net, &on, 0, 10, net->gpu_ns);
	}
	net->training.now = on.now;
}

static void optimize(struct net *net)
{
	open_new(&net->training, "Optimizer.step#SGD.step", TRACE_NODE_OPTIMIZER, 0, NULL);
	for (unsigned i = 0; i < net->small_steps; i++)
		operate(net, &net->training, i % 2 ? "aten::add_" : "aten::mul_", 10, net->gpu_ns);
	net->training.now += 20;
	train_close(&net->training);
}

static void step(struct net *net)
{
	train_data(&net->training);
	train_zero(&net->training);
	forward(net);
	backward(net);
	optimize(net);
	net->training.now += 20;
}

/* The GPU's records of all that was launched. */
static struct trace_builder *trained(struct net *net)
{
	struct trace_builder *builder = net->training.builder;
	uint64_t at = net->training.now + 1000;

	if (net->gpu_ns)
		build_device(builder, 0, "GPU");
	for (size_t i = 0; i < net->launched; i++) {
		build_kernel(builder, GPU, at, net->work[i].correlation, "gemm", at,
			at + net->work[i].ns);
		at += net->work[i].ns;
	}
	return builder;
}

/* Ten steps, of which number 6 is the worst. */
static struct net train(
	unsigned layers, unsigned small_steps, uint32_t backward_stream, uint64_t gpu_ns)
{
	struct net net = net_new(layers);

	net.training.backward_stream = backward_stream;
	net.small_steps = small_steps;
	for (unsigned i = 0; i < 10; i++) {
		net.slow_ns = i == 6 ? 300 : 100;
		net.gpu_ns = i == 6 ? gpu_ns * 2 : gpu_ns;
		step(&net);
	}
	return net;
}

static void expect(struct report_run run, const char *out)
{
	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out, out);
	ck_assert_int_eq(run.status, 0);
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "`%s` is not there", part);
}

START_TEST(what_has_little_of_it_is_left_out)
{
	struct net net = train(4, 0, 0, 0);
	struct report_run run = run_report(trained(&net), "critical trace.bin --min-percent 30");

	ck_assert_ptr_nonnull(strstr(run.out, "layers.2 (Block)"));
	ck_assert_ptr_null(strstr(run.out, "layers.0 (Block)"));
}
END_TEST

/* The engine takes a tick before a function and one behind it, which are in (backward) alone. */
START_TEST(a_step_shows_whose_backward_made_it_slow)
{
	struct net net = train(4, 0, 0, 0);

	expect(run_report(trained(&net), "critical trace.bin -n 2"),
		"step 6 ────────────────────────────────────────────│ 848.00 ns (100 %)\n"
		"  ├── (backward) ──────────────────────────────────│ 672.00 ns (79.2 %)\n"
		"  │   ├── Net ─────────────────────────────────────│ 608.00 ns (71.7 %)\n"
		"  │   │   ├── layers.2 (Block) ────────────────────│ 302.00 ns (35.6 %)\n"
		"  │   │   │   └── fc (Linear) ─────────────────────│ 302.00 ns (35.6 %)\n"
		"  │   │   │       └── aten::linear (bwd) ──────────│ 302.00 ns (35.6 %)\n"
		"  │   │   │           └── AddmmBackward0 ──────────│ 302.00 ns (35.6 %)\n"
		"  │   │   │               └── aten::mm ────────────│ 300.00 ns (35.4 %)\n"
		"  │   │   └── layers.0 (Block) ────────────────────│ 102.00 ns (12.0 %)\n"
		"  │   │       └── fc (Linear) ─────────────────────│ 102.00 ns (12.0 %)\n"
		"  │   │           └── aten::linear (bwd) ──────────│ 102.00 ns (12.0 %)\n"
		"  │   │               └── AddmmBackward0 ──────────│ 102.00 ns (12.0 %)\n"
		"  │   │                   └── aten::mm ────────────│ 100.00 ns (11.8 %)\n"
		"  │   └── (gradient accumulation) ─────────────────│ 48.00 ns (5.7 %)\n"
		"  │       └── torch::autograd::AccumulateGrad ×4 ──│ 48.00 ns (5.7 %)\n"
		"  │           └── aten::detach ×4 ─────────────────│ 40.00 ns (4.7 %)\n"
		"  └── Net ─────────────────────────────────────────│ 114.00 ns (13.4 %)\n"
		"      ├── layers.3 (Block) ────────────────────────│ 28.00 ns (3.3 %)\n"
		"      │   └── fc (Linear) ─────────────────────────│ 26.00 ns (3.1 %)\n"
		"      │       └── aten::linear ────────────────────│ 24.00 ns (2.8 %)\n"
		"      │           └── aten::addmm ─────────────────│ 22.00 ns (2.6 %)\n"
		"      └── layers.2 (Block) ────────────────────────│ 28.00 ns (3.3 %)\n"
		"          └── fc (Linear) ─────────────────────────│ 26.00 ns (3.1 %)\n"
		"              └── aten::linear ────────────────────│ 24.00 ns (2.8 %)\n"
		"                  └── aten::addmm ─────────────────│ 22.00 ns (2.6 %)\n"
		"not shown: 7 more (--top 0)\n");
}
END_TEST

START_TEST(what_another_thread_ran_backward_is_in_the_step)
{
	struct net net = train(4, 0, AUTOGRAD, 1000);

	/* forward 4 × 2 µs, backward 16 and 3 × 4, sums of gradients 4 × 2 */
	expect(run_report(trained(&net), "critical trace.bin -m gpu -n 1"),
		"step 6 ────────────────────────────────────────────────────────────│ 44.00 µs "
		"(100 %)\n"
		"  └── (backward) ──────────────────────────────────────────────────│ 36.00 µs "
		"(81.8 %)\n"
		"      └── Net ─────────────────────────────────────────────────────│ 28.00 µs "
		"(63.6 %)\n"
		"          └── layers.2 (Block) ────────────────────────────────────│ 16.00 µs "
		"(36.4 %)\n"
		"              └── fc (Linear) ─────────────────────────────────────│ 16.00 µs "
		"(36.4 %)\n"
		"                  └── aten::linear (bwd) ──────────────────────────│ 16.00 µs "
		"(36.4 %)\n"
		"                      └── AddmmBackward0 ──────────────────────────│ 16.00 µs "
		"(36.4 %)\n"
		"                          └── aten::mm ────────────────────────────│ 16.00 µs "
		"(36.4 %)\n"
		"                              └── gemm  <<<(64,1,1),(128,1,1)>>> ──│ 16.00 µs "
		"(36.4 %)\n"
		"not shown: 5 more (--top 0)\n");
	has(run_report(NULL, "tree trace.bin -f json --steps 6-6").out,
		"\"name\": \"step\", \"label\": \"step\", \"kind\": \"step\", \"path\": "
		"[\"step\"], \"share\": 1, \"calls\": 1, \"gpu_total_ns\": 44000,");
	ck_assert_str_eq(run_report(NULL, "critical trace.bin -m gpu").out,
		run_report(NULL, "critical trace.bin -m gpu").out);
}
END_TEST

/* The step's own range, which is around the operators, is not told again of what their backward is.
 */
START_TEST(what_is_around_backward_is_shown_once)
{
	struct net net = net_new(1);
	struct training *training = &net.training;

	training->backward_stream = AUTOGRAD;
	net.gpu_ns = 1000;
	for (unsigned i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof name, "ProfilerStep#%u", i);
		open_new(training, name, TRACE_NODE_STEP, 0, NULL);
		forward(&net);
		backward(&net);
		train_close(training);
	}
	expect(run_report(trained(&net), "critical trace.bin -m gpu -d 4"),
		"ProfilerStep#2 ────────────────────────────────────│ 4.00 µs (100 %)\n"
		"  ├── (backward) ──────────────────────────────────│ 3.00 µs (75.0 %)\n"
		"  │   ├── Net ─────────────────────────────────────│ 2.00 µs (50.0 %)\n"
		"  │   │   └── layers.0 (Block) ────────────────────│ 2.00 µs (50.0 %)\n"
		"  │   └── (gradient accumulation) ─────────────────│ 1.00 µs (25.0 %)\n"
		"  │       └── torch::autograd::AccumulateGrad ─────│ 1.00 µs (25.0 %)\n"
		"  └── Net ─────────────────────────────────────────│ 1.00 µs (25.0 %)\n"
		"      └── layers.0 (Block) ────────────────────────│ 1.00 µs (25.0 %)\n"
		"          └── fc (Linear) ─────────────────────────│ 1.00 µs (25.0 %)\n"
		"not shown: 3 deeper (--depth)\n");
}
END_TEST

/* Layer 0 runs again in the backward of its only operator: 3 us, and 2 us of its own. */
START_TEST(gpu_time_of_a_recomputation_is_beside_its_forward_pass)
{
	struct net net = net_new(1);
	struct training *training = &net.training;

	net.gpu_ns = 1000;
	for (unsigned i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof name, "ProfilerStep#%u", i);
		open_new(training, name, TRACE_NODE_STEP, 0, NULL);
		forward(&net);
		open_new(training, ENGINE "AddmmBackward0", TRACE_NODE_OP, 0, NULL);
		open_new(training, "AddmmBackward0", TRACE_NODE_BACKWARD, net.addmm[0], NULL);
		open_new(training, "Block", TRACE_NODE_MODULE, 0, "Block");
		operate(&net, training, "aten::relu", 20, 3000);
		train_close(training);
		operate(&net, training, "aten::mm", 20, 2000);
		train_close(training);
		train_close(training);
		train_close(training);
	}
	expect(run_report(trained(&net), "critical trace.bin -m gpu -d 5 --min-percent 20"),
		"ProfilerStep#2 ────────────────────────────────────│ 6.00 µs (100 %)\n"
		"  └── (backward) ──────────────────────────────────│ 5.00 µs (83.3 %)\n"
		"      └── Net ─────────────────────────────────────│ 5.00 µs (83.3 %)\n"
		"          ├── layers.0 (recompute) (Block) ────────│ 3.00 µs (50.0 %)\n"
		"          │   └── aten::relu ──────────────────────│ 3.00 µs (50.0 %)\n"
		"          └── layers.0 (Block) ────────────────────│ 2.00 µs (33.3 %)\n"
		"              └── fc (Linear) ─────────────────────│ 2.00 µs (33.3 %)\n"
		"not shown: 2 deeper (--depth)\n");
	has(run_report(NULL, "critical trace.bin -m cpu -d 9").out, "layers.0 (recompute) (Block)");
}
END_TEST

START_TEST(small_ones_of_a_name_are_one_row)
{
	struct net net = train(120, 120, AUTOGRAD, 0);
	struct report_run run;

	expect(run_report(trained(&net), "critical trace.bin"),
		"step 6 ──────────────────────────────────────────────│ 18.98 µs (100 %)\n"
		"  ├── (backward) ────────────────────────────────────│ 14.36 µs (75.6 %)\n"
		"  │   ├── Net ───────────────────────────────────────│ 12.44 µs (65.5 %)\n"
		"  │   │   ├── layers.* (Block) ×119 ─────────────────│ 12.14 µs (63.9 %)\n"
		"  │   │   │   └── fc (Linear) ×119 ──────────────────│ 12.14 µs (63.9 %)\n"
		"  │   │   │       └── aten::linear (bwd) ────────────│ 12.14 µs (63.9 %)\n"
		"  │   │   │           └── AddmmBackward0 ×119 ───────│ 12.14 µs (63.9 %)\n"
		"  │   │   │               └── aten::mm ×119 ─────────│ 11.90 µs (62.7 %)\n"
		"  │   │   └── layers.2 (Block) ──────────────────────│ 0.30 µs (1.6 %)\n"
		"  │   │       └── fc (Linear) ───────────────────────│ 0.30 µs (1.6 %)\n"
		"  │   │           └── aten::linear (bwd) ────────────│ 0.30 µs (1.6 %)\n"
		"  │   │               └── AddmmBackward0 ────────────│ 0.30 µs (1.6 %)\n"
		"  │   │                   └── aten::mm ──────────────│ 0.30 µs (1.6 %)\n"
		"  │   └── (gradient accumulation) ───────────────────│ 1.44 µs (7.6 %)\n"
		"  │       └── torch::autograd::AccumulateGrad ×120 ──│ 1.44 µs (7.6 %)\n"
		"  │           └── aten::detach ×120 ─────────────────│ 1.20 µs (6.3 %)\n"
		"  ├── Net ───────────────────────────────────────────│ 3.36 µs (17.7 %)\n"
		"  │   └── layers.* (Block) ×120 ─────────────────────│ 3.36 µs (17.7 %)\n"
		"  │       └── fc (Linear) ×120 ──────────────────────│ 3.12 µs (16.4 %)\n"
		"  │           └── aten::linear ×120 ─────────────────│ 2.88 µs (15.2 %)\n"
		"  │               └── aten::addmm ×120 ──────────────│ 2.64 µs (13.9 %)\n"
		"  └── Optimizer.step#SGD.step ───────────────────────│ 1.22 µs (6.4 %)\n"
		"      ├── aten::add_ ×60 ────────────────────────────│ 0.60 µs (3.2 %)\n"
		"      └── aten::mul_ ×60 ────────────────────────────│ 0.60 µs (3.2 %)\n");
	run = run_report(NULL, "critical trace.bin -f json");
	has(run.out, "\"label\": \"(backward)\", \"kind\": \"backward\", \"path\": [\"step\", "
		     "\"(backward)\"], \"calls\": 240, ");
	has(run.out,
		"\"label\": \"layers.* (Block) ×119\", \"kind\": \"module\", \"class\": \"Block\", "
		"\"path\": [\"step\", \"Net\", \"layers.*\"], \"calls\": 119, ");
	has(run.out, "\"duration_ns\": 12138, \"value\": 12138, ");
}
END_TEST

/* What tensors hold falls as backward goes on. */
START_TEST(a_level_falls_in_backward)
{
	struct net net = net_new(1);
	struct training *training = &net.training;
	uint64_t held = 1000000, address = 0x1000;

	for (unsigned i = 0; i < 6; i++) {
		train_data(training);
		if (!i)
			build_tensor(training->builder, MAIN, training->now, 0x9000000,
				(int64_t)held, held, 4000000);
		build_tensor(training->builder, MAIN, training->now, address, 500000 + 100000 * i,
			held + 500000 + 100000 * i, 4000000);
		forward(&net);
		for (unsigned part = 0; part < 2; part++) {
			open_new(training, ENGINE "AddmmBackward0", TRACE_NODE_OP, 0, NULL);
			open_new(training, "AddmmBackward0", TRACE_NODE_BACKWARD, net.addmm[0],
				NULL);
			if (part)
				build_tensor(training->builder, MAIN, training->now, address,
					-(int64_t)(500000 + 100000 * i), held, 4000000);
			train_close(training);
			train_close(training);
			training->now += 10;
		}
		optimize(&net);
		training->now += 20;
	}
	expect(run_report(training->builder, "critical trace.bin -m allocated"),
		"step 0 ────────────────────────────────────────────│ 0.00 MB → 1.00 MB (1.0000 "
		"∆)\n"
		"  └── (backward) ──────────────────────────────────│ 1.50 MB → 1.00 MB (-0.5000 "
		"∆)\n"
		"      └── Net ─────────────────────────────────────│ 1.50 MB → 1.00 MB (-0.5000 "
		"∆)\n"
		"          └── layers.0 (Block) ────────────────────│ 1.50 MB → 1.00 MB (-0.5000 "
		"∆)\n"
		"              └── fc (Linear) ─────────────────────│ 1.50 MB → 1.00 MB (-0.5000 "
		"∆)\n"
		"                  └── aten::linear (bwd) ──────────│ 1.50 MB → 1.00 MB (-0.5000 "
		"∆)\n"
		"                      └── AddmmBackward0 ──────────│ 1.50 MB → 1.00 MB (-0.5000 "
		"∆)\n");
}
END_TEST

/* Checkpointing: a module is computed once more inside of a backward function, and has its backward
 * there. */
START_TEST(backward_inside_of_backward_stands_in_it)
{
	struct net net = net_new(0);
	struct training *training = &net.training, on;

	for (unsigned i = 0; i < 6; i++) {
		uint32_t outer, inner;

		train_data(training);
		open_new(training, "Net", TRACE_NODE_MODULE, 0, "Net");
		outer = open_new(training, "CheckpointFunction", TRACE_NODE_OP, 0, NULL);
		training->now += 10;
		train_close(training);
		train_close(training);
		on = *training;
		on.stream = AUTOGRAD;
		on.depth = 0;
		open_new(&on, ENGINE "CheckpointFunctionBackward", TRACE_NODE_OP, 0, NULL);
		open_new(&on, "CheckpointFunctionBackward", TRACE_NODE_BACKWARD, outer, NULL);
		open_new(&on, "block", TRACE_NODE_MODULE, 0, "Block");
		inner = open_new(&on, "aten::linear", TRACE_NODE_OP, 0, NULL);
		on.now += 50;
		train_close(&on);
		train_close(&on);
		evaluate(&net, &on, inner, 100, 0);
		train_close(&on);
		train_close(&on);
		training->now = on.now;
		optimize(&net);
	}
	expect(run_report(training->builder, "critical trace.bin"),
		"step 5 ─────────────────────────────────────────────────────────────│ 208.00 ns "
		"(100 %)\n"
		"  ├── (backward) ───────────────────────────────────────────────────│ 162.00 ns "
		"(77.9 %)\n"
		"  │   └── Net ──────────────────────────────────────────────────────│ 160.00 ns "
		"(76.9 %)\n"
		"  │       └── CheckpointFunction (bwd) ─────────────────────────────│ 160.00 ns "
		"(76.9 %)\n"
		"  │           └── CheckpointFunctionBackward ───────────────────────│ 160.00 ns "
		"(76.9 %)\n"
		"  │               ├── (backward) ───────────────────────────────────│ 104.00 ns "
		"(50.0 %)\n"
		"  │               │   └── block (Block) ────────────────────────────│ 102.00 ns "
		"(49.0 %)\n"
		"  │               │       └── aten::linear (bwd) ───────────────────│ 102.00 ns "
		"(49.0 %)\n"
		"  │               │           └── AddmmBackward0 ───────────────────│ 102.00 ns "
		"(49.0 %)\n"
		"  │               │               └── aten::mm ─────────────────────│ 100.00 ns "
		"(48.1 %)\n"
		"  │               └── block (Block) ────────────────────────────────│ 54.00 ns "
		"(26.0 %)\n"
		"  │                   └── aten::linear ─────────────────────────────│ 52.00 ns "
		"(25.0 %)\n"
		"  ├── Optimizer.step#SGD.step ──────────────────────────────────────│ 22.00 ns "
		"(10.6 %)\n"
		"  ├── Net ──────────────────────────────────────────────────────────│ 14.00 ns "
		"(6.7 %)\n"
		"  │   └── CheckpointFunction ───────────────────────────────────────│ 12.00 ns "
		"(5.8 %)\n"
		"  └── enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ ──│ 10.00 ns "
		"(4.8 %)\n");
}
END_TEST

/* Ten thousand ranges in each other, all of them small, many times. */
START_TEST(depth_is_no_danger)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 10;

	build_push(builder, 1, 0, "root");
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < 10000; i++)
			build_push(builder, 1, at++, i % 3 ? "a" : "b");
		for (unsigned i = 0; i < 10000; i++)
			build_pop(builder, 1, at++);
	}
	build_pop(builder, 1, at + 1000000000);
	expect(run_report(builder, "critical trace.bin"),
		"root ──────────────────────────────────────────────│ 1.00 s (100 %)\n");
}
END_TEST

/* Anything on some threads, over the edges of steps: by each metric that adds up, a step's instance
 * has what happened in the step, as has the tree, and what is kept of it is no more. */
struct chaos {
	struct trace_builder *builder;
	struct step row[20];
	struct steps steps;
	uint64_t gpu_ns[20], alloc_bytes[20], tensor_bytes[20];
	uint32_t state;
};

static uint32_t dice(struct chaos *chaos, uint32_t sides)
{
	chaos->state = chaos->state * 1664525u + 1013904223u;
	return (chaos->state >> 8) % sides;
}

static void happen(
	struct chaos *chaos, unsigned thread, uint64_t at, unsigned *depth, uint32_t *linear)
{
	static const char *const names[] = { "a", "b 1", "b 2", ENGINE "AddmmBackward0",
		"aten::linear", "AddmmBackward0" };
	const unsigned what = dice(chaos, 12), name = dice(chaos, 6);
	const size_t step = (at - 3) / 1000;
	const uint64_t id = at * 8 + thread, amount = 1 + dice(chaos, 1000);

	if (what < 5 && *depth < 6) {
		const uint32_t place = build_linked_node(chaos->builder, 0, names[name],
			name == 5  ? TRACE_NODE_BACKWARD
			: name > 2 ? TRACE_NODE_OP
				   : TRACE_NODE_RANGE,
			name == 5 ? *linear : 0, NULL);

		if (name == 4)
			*linear = place;
		build_push_node(chaos->builder, thread, at, place);
		++*depth;
	} else if (what < 9 && *depth) {
		build_pop(chaos->builder, thread, at);
		--*depth;
	} else if (what == 9) {
		build_launch(chaos->builder, thread, at, id);
		build_kernel(chaos->builder, GPU, 100000, id, "gemm", 100000, 100000 + amount);
		chaos->gpu_ns[step] += amount;
	} else if (what == 10) {
		build_alloc(chaos->builder, thread, at, id << 20, amount);
		chaos->alloc_bytes[step] += amount;
	} else if (what == 11) {
		build_tensor(
			chaos->builder, thread, at, id << 20, (int64_t)amount, amount, 1u << 30);
		chaos->tensor_bytes[step] += amount;
	}
}

static struct chaos make_chaos(uint32_t seed)
{
	struct chaos chaos = { .builder = builder_new(), .state = seed };
	unsigned depth[4] = { 0 };
	uint32_t linear[4] = { 0 };

	build_device(chaos.builder, 0, "GPU");
	build_push(chaos.builder, 1, 1, "first");
	build_pop(chaos.builder, 1, 2);
	for (uint64_t at = 10; at < 20000; at += 10) {
		const unsigned thread = dice(&chaos, 3);

		happen(&chaos, thread + 1, at, &depth[thread], &linear[thread]);
	}
	build_push(chaos.builder, 1, 20010, "last"); /* the thread of the steps outlives them */
	for (unsigned i = 0; i < 20; i++)
		chaos.row[i] = (struct step){
			.begin_ns = i * 1000 + 3, .end_ns = i * 1000 + 1003, .number = i
		};
	return chaos;
}

/* For flows that nest: no row has less than those below it. */
static void check_kept(const struct instance *instance)
{
	long double sum = 0;

	for (const struct instance *kid = instance->children; kid; kid = kid->next) {
		sum += kid->value;
		ck_assert(!kid->next || !instance_worse(kid->next, kid));
		check_kept(kid);
	}
	ck_assert(sum <= instance->value);
	ck_assert_ptr_null(instance->groups);
}

static void check_step(struct profile_fixture *fixture, struct chaos *chaos, unsigned number,
	enum metric metric, uint64_t value)
{
	const struct profile_target target = {
		.stream = 1,
		.node = (uint32_t)(fixture_node(fixture, "step") - fixture->profile->tree->nodes),
		.begin_ns = chaos->row[number].begin_ns,
		.end_ns = chaos->row[number].end_ns,
		.value = value,
	};
	const struct profile_options wanted = {
		.device = -1, .metric = metric, .found_steps = &chaos->steps, .target = &target
	};

	fixture_rebuild(fixture, &wanted);
	ck_assert_ptr_nonnull(fixture->profile->target);
	ck_assert_msg(fixture->profile->target->value == value, "step %u: %llu, not %llu", number,
		(unsigned long long)fixture->profile->target->value, (unsigned long long)value);
	check_kept(fixture->profile->target);
}

START_TEST(a_steps_instance_has_what_the_tree_has)
{
	struct chaos chaos = make_chaos((uint32_t)_i);
	const struct profile_options options = {
		.device = -1, .metric = METRIC_GPU, .found_steps = &chaos.steps
	};
	struct profile_fixture fixture = { .texts = string_table_new() };
	const struct node *step;
	char error[READER_ERROR_BYTES];
	uint64_t gpu_ns = 0, alloc_bytes = 0, tensor_bytes = 0, most = 0;

	chaos.steps = (struct steps){ .steps = chaos.row, .count = 20, .stream = 1 };
	builder_write(chaos.builder, "trace.bin");
	builder_free(chaos.builder);
	fixture.reader = reader_open("trace.bin", error);
	ck_assert_msg(fixture.reader != NULL, "%s", error);
	fixture_rebuild(&fixture, &options);
	fixture_check(&fixture);
	step = fixture_node(&fixture, "step");
	for (unsigned i = 0; i < 20; i++) {
		gpu_ns += chaos.gpu_ns[i];
		alloc_bytes += chaos.alloc_bytes[i];
		tensor_bytes += chaos.tensor_bytes[i];
		most = chaos.gpu_ns[i] > most ? chaos.gpu_ns[i] : most;
	}
	ck_assert_uint_eq(step->gpu->total_ns, gpu_ns);
	ck_assert_uint_eq(step->memory->alloc_bytes, alloc_bytes);
	ck_assert_uint_eq(step->tensors->total.alloc_bytes, tensor_bytes);
	ck_assert_msg(step->worst->value == most, "%Lg %llu", step->worst->value,
		(unsigned long long)most);
	for (unsigned i = 0; i < 20; i++) {
		check_step(&fixture, &chaos, i, METRIC_GPU, chaos.gpu_ns[i]);
		check_step(&fixture, &chaos, i, METRIC_ALLOC, chaos.alloc_bytes[i]);
		check_step(&fixture, &chaos, i, METRIC_TENSORS, chaos.tensor_bytes[i]);
	}
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("torch critical");
	TCase *screens = tcase_create("screens"), *figures = tcase_create("figures");
	SRunner *runner;
	int failed;

	tcase_set_timeout(screens, 60);
	tcase_add_checked_fixture(screens, run_report_setup, run_report_teardown);
	tcase_add_test(screens, a_step_shows_whose_backward_made_it_slow);
	tcase_add_test(screens, what_has_little_of_it_is_left_out);
	tcase_add_test(screens, what_another_thread_ran_backward_is_in_the_step);
	tcase_add_test(screens, what_is_around_backward_is_shown_once);
	tcase_add_test(screens, gpu_time_of_a_recomputation_is_beside_its_forward_pass);
	tcase_add_test(screens, small_ones_of_a_name_are_one_row);
	tcase_add_test(screens, a_level_falls_in_backward);
	tcase_add_test(screens, backward_inside_of_backward_stands_in_it);
	tcase_add_test(screens, depth_is_no_danger);
	tcase_set_timeout(figures, 60);
	tcase_add_checked_fixture(figures, run_report_setup, run_report_teardown);
	tcase_add_loop_test(figures, a_steps_instance_has_what_the_tree_has, 0, 10);
	suite_add_tcase(suite, screens);
	suite_add_tcase(suite, figures);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
