/* SPDX-License-Identifier: MIT
 * training_trace.h: traces of programs that train, made in a test: what PyTorch's own ranges look
 * like, with times that the test decides.
 *
 *	struct training training = training_new();
 *
 *	train_step(&training, "Net");
 *	builder_write(training.builder, "trace.bin");
 */
#ifndef PPERF_TESTS_SUPPORT_TRAINING_TRACE_H
#define PPERF_TESTS_SUPPORT_TRAINING_TRACE_H

#include "tests/support/trace_builder.h"

#include <stdbool.h>

struct training {
	struct trace_builder *builder;
	uint32_t stream;
	uint64_t now;       /* time of the next event; every event advances it */
	uint32_t nodes[16]; /* open ranges */
	unsigned depth;
	uint64_t forward_ns;      /* 100 at first */
	uint64_t correlation;     /* of the last launch; 0: a forward launches nothing */
	uint32_t backward_stream; /* 0: gradients are computed on the thread itself */
};

struct training training_new(void);

/* Open and close a range. Each takes a tick. */
void train_open(struct training *training, const char *name, enum trace_node_kind kind);
void train_close(struct training *training);
/* A range of `ticks`. */
void train_range(
	struct training *training, const char *name, enum trace_node_kind kind, uint64_t ticks);

void train_data(struct training *training); /* 10 ticks */
void train_zero(struct training *training); /* 10 */
void train_forward(
	struct training *training, const char *model); /* forward_ns, with an operator in it */
void train_backward(struct training *training);        /* 100, of two operators */
void train_optimizer(struct training *training, const char *name); /* 50 */
/* Batch, zero_grad, forward, backward, SGD: 280 ticks; and a pause of 20. */
void train_step(struct training *training, const char *model);

#endif
