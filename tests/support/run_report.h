/* SPDX-License-Identifier: MIT
 * run_report.h: the tool as its user sees it, run on traces made in a test. Everything that could
 * differ between machines is pinned: locale, terminal, width, colours, time zone.
 *
 *	struct report_run run = run_report(builder, "critical trace.bin -m reserved");
 *
 *	ck_assert_str_eq(run.out, "slam ────...");
 *
 */
#ifndef PPERF_TESTS_SUPPORT_RUN_REPORT_H
#define PPERF_TESTS_SUPPORT_RUN_REPORT_H

#include "tests/support/trace_builder.h"

struct report_run {
	char *out, *err; /* terminated; freed by run_report_teardown() */
	int status;      /* of exit; 128 + n: killed by signal n */
};

/* The checked fixture of each test: makes a folder and enters it; removes it. */
void run_report_setup(void);
void run_report_teardown(void);

/* Writes `builder` (NULL: nothing) as trace.bin, frees it, runs `pperf-report ARGUMENTS` by the
 * shell. */
struct report_run run_report(struct trace_builder *builder, const char *arguments);
/* Runs pperf-report with NAME=VALUE settings: "NO_COLOR=1 TERM=dumb". */
struct report_run run_report_with(const char *settings, const char *arguments);

/* Runs pperf-report with stdout in the file `path`. .out is empty. */
struct report_run run_report_to(const char *path, const char *arguments);

/* Functions that build records many tests need. `at`: when the call returned, or when the batch of
 * GPU records came. */
void build_alloc(struct trace_builder *builder, uint32_t stream, uint64_t at, uint64_t address,
	uint64_t bytes);
void build_free(struct trace_builder *builder, uint32_t stream, uint64_t at, uint64_t address);
struct trace_memory *build_memory(struct trace_builder *builder, uint32_t stream, uint64_t at,
	enum trace_kind kind, uint64_t address, uint64_t bytes, uint32_t memory_kind,
	uint32_t device);
/* Builds the allocation of a tensor, or with negative `bytes` its free. Afterwards tensors hold
 * `allocated` of `reserved` bytes. */
struct trace_tensor *build_tensor(struct trace_builder *builder, uint32_t stream, uint64_t at,
	uint64_t address, int64_t bytes, uint64_t allocated, uint64_t reserved);
/* Builds a failed request of PyTorch for `bytes` bytes. */
struct trace_tensor *build_tensor_oom(struct trace_builder *builder, uint32_t stream, uint64_t at,
	uint64_t bytes, uint64_t allocated, uint64_t reserved);
/* Builds a launch of 5 ticks. */
struct trace_launch *build_launch(
	struct trace_builder *builder, uint32_t stream, uint64_t at, uint64_t correlation);
/* Builds a graph launch of 5 ticks. */
struct trace_graph_launch *build_graph_launch(struct trace_builder *builder, uint32_t stream,
	uint64_t at, uint64_t correlation, uint32_t exec_id);
/* Builds a call of 5 ticks that copies or sets `bytes` bytes. `kind`: TRACE_COPY or TRACE_SET. */
struct trace_copy *build_copy(struct trace_builder *builder, uint32_t stream, uint64_t at,
	enum trace_kind kind, uint64_t correlation, uint64_t bytes);
/* Builds a kernel that ran from `start` to `end`, in ticks since the start of the trace. Both 0:
 * without times. */
struct trace_kernel *build_kernel(struct trace_builder *builder, uint32_t stream, uint64_t at,
	uint64_t correlation, const char *name, uint64_t start, uint64_t end);
/* Builds the GPU record of a copy or memset. `start` and `end` are those of build_kernel(). */
struct trace_gpu_copy *build_gpu_copy(struct trace_builder *builder, uint32_t stream, uint64_t at,
	enum trace_kind kind, uint64_t correlation, uint64_t bytes, uint64_t start, uint64_t end);
/* Builds a call that CUPTI timed, of the thread of stream 1. */
struct trace_api *build_api(
	struct trace_builder *builder, const char *name, uint64_t begin, uint64_t end);
/* Builds a device with 108 multiprocessors and 80 GiB of memory. */
struct trace_device *build_device(struct trace_builder *builder, uint32_t device, const char *name);
/* Builds a communicator of NCCL with the key `id`, for rank 0 of `ranks`. */
void build_communicator(
	struct trace_builder *builder, uint32_t id, uint32_t ranks, uint32_t device);
/* Builds a call of NCCL of 8 ticks that ended at `at`, by stream 1. */
struct trace_collective *build_collective(struct trace_builder *builder, uint64_t at,
	enum trace_nccl_operation operation, uint64_t bytes, uint32_t communicator);

#endif
