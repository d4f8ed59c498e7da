/* SPDX-License-Identifier: MIT */
#include "tests/support/kept_program.h"
#include "tests/support/run_report.h"
#include "tests/support/training_trace.h"

#define HOT 4200u /* more than PERCENTILES_EXACT_MAX */

/* Memory that ran out, for PyTorch and for a call of CUDA, with ranges open. */
static void build_exhausted_memory(struct training *training)
{
	struct trace_builder *builder = training->builder;
	uint64_t at = training->now;

	build_push(builder, training->stream, at, "eval");
	build_alloc(builder, training->stream, at + 10, 0x10000, 1 << 20);
	build_tensor(builder, training->stream, at + 11, 0x10000, 4096, 4096, 1 << 20);
	build_memory(
		builder, training->stream, at + 30, TRACE_ALLOC, 0, 1 << 30, TRACE_MEMORY_DEVICE, 0)
		->call.result = 2;
	build_tensor_oom(builder, training->stream, at + 40, 1 << 30, 4096, 1 << 20);
	build_pop(builder, training->stream, at + 50);
	training->now = at + 60;
}

struct trace_builder *kept_program(void)
{
	struct training training = training_new();
	struct trace_builder *builder = training.builder;
	uint64_t id = 1;

	build_device(builder, 0, "GPU");
	training.correlation = 1;
	for (unsigned step = 0; step < KEPT_PROGRAM_STEPS; step++)
		train_step(&training, "Net");
	build_exhausted_memory(&training);
	for (unsigned i = 0; i < HOT; i++, training.now += 2) {
		build_push(builder, training.stream, training.now, "hot");
		build_pop(builder, training.stream, training.now + 1 + i % 2);
	}
	for (; id <= training.correlation; id++)
		build_kernel(builder, 9, training.now + id, id, id % 2 ? "gemm" : "ncclAllReduce",
			100 + 90 * id, 160 + 90 * id + id % 3);
	return builder;
}
