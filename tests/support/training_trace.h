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
	uint64_t now;       /* time of the next event; each event advances it */
	uint32_t nodes[16]; /* open ranges */
	unsigned depth;
	uint64_t forward_ns;      /* initially 100 */
	uint64_t correlation;     /* of the last launch; 0: nothing is launched */
	uint32_t backward_stream; /* 0: backward runs on the same thread */
};

struct training training_new(void);

/* Opens a range, and advances the time by one tick. */
void train_open(struct training *training, const char *name, enum trace_node_kind kind);
/* Advances the time by one tick, and closes the innermost range. */
void train_close(struct training *training);
/* Builds a range that lasts `ticks` ticks. */
void train_range(
	struct training *training, const char *name, enum trace_node_kind kind, uint64_t ticks);

void train_data(struct training *training); /* a batch, 10 ticks */
void train_zero(struct training *training); /* zero_grad, 10 ticks */
/* Builds a module call of forward_ns ticks with an operator in it. */
void train_forward(struct training *training, const char *model);
void train_backward(struct training *training);                    /* 100 ticks, two operators */
void train_optimizer(struct training *training, const char *name); /* 50 ticks */
/* Builds a step of 280 ticks with forward_ns at 100: batch, zero_grad, forward, backward, SGD. A
 * pause of 20 ticks follows. */
void train_step(struct training *training, const char *model);

#endif
