/* SPDX-License-Identifier: MIT */
#include "tests/support/training_trace.h"
#include "tests/support/run_report.h"

#include <stdio.h>

struct training training_new(void)
{
	return (struct training){
		.builder = builder_new(), .stream = 1, .now = 1000, .forward_ns = 100
	};
}

static void open_at(struct training *training, const char *name, enum trace_node_kind kind)
{
	const uint32_t parent = training->depth ? training->nodes[training->depth - 1] : 0;
	const uint32_t node = build_node(training->builder, parent, name, NULL, kind);

	build_push_node(training->builder, training->stream, training->now, node);
	training->nodes[training->depth++] = node;
}

void train_open(struct training *training, const char *name, enum trace_node_kind kind)
{
	open_at(training, name, kind);
	training->now++;
}

void train_close(struct training *training)
{
	training->now++;
	training->depth--;
	build_pop(training->builder, training->stream, training->now);
}

void train_range(
	struct training *training, const char *name, enum trace_node_kind kind, uint64_t ticks)
{
	open_at(training, name, kind);
	training->now += ticks - 1;
	train_close(training);
}

void train_data(struct training *training)
{
	train_range(training, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
		TRACE_NODE_RANGE, 10);
}

void train_zero(struct training *training)
{
	train_range(training, "Optimizer.zero_grad#SGD.zero_grad", TRACE_NODE_RANGE, 10);
}

void train_forward(struct training *training, const char *model)
{
	const uint64_t end = training->now + training->forward_ns;

	open_at(training, model, TRACE_NODE_MODULE);
	training->now += 10;
	open_at(training, "aten::linear", TRACE_NODE_OP);
	if (training->correlation) {
		training->now += 10;
		build_launch(training->builder, training->stream, training->now,
			++training->correlation);
	}
	training->now = end - 2;
	train_close(training);
	train_close(training);
}

void train_backward(struct training *training)
{
	struct training other = *training;

	if (training->backward_stream) {
		other.stream = training->backward_stream;
		other.depth = 0;
	}
	for (unsigned i = 0; i < 2; i++) {
		open_at(&other, "autograd::engine::evaluate_function: AddmmBackward0",
			TRACE_NODE_OP);
		other.now += 5;
		open_at(&other, "AddmmBackward0", TRACE_NODE_BACKWARD);
		if (other.correlation)
			build_launch(
				other.builder, other.stream, other.now + 10, ++other.correlation);
		other.now += 40;
		train_close(&other);
		other.now += 3;
		train_close(&other);
	}
	training->now = other.now;
	training->correlation = other.correlation;
}

void train_optimizer(struct training *training, const char *name)
{
	char label[64];

	snprintf(label, sizeof label, "Optimizer.step#%s.step", name);
	train_range(training, label, TRACE_NODE_OPTIMIZER, 50);
}

void train_step(struct training *training, const char *model)
{
	train_data(training);
	train_zero(training);
	train_forward(training, model);
	train_backward(training);
	train_optimizer(training, "SGD");
	training->now += 20;
}
