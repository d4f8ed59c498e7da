/* SPDX-License-Identifier: MIT
 * test_diagnose.c: each rule of the checklist, on a program that has what it looks for and on one
 * that has not; and what is said of a healthy program, in text, JSON and few bytes.
 */
#include "tests/support/run_report.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US 1000u
#define MS 1000000u

/* A program that is being made: a launching thread, and the GPU behind it. */
struct program {
	struct trace_builder *builder;
	uint64_t correlation;
	struct {
		const char *name;
		uint64_t correlation, start, end, grid;
		uint64_t bytes; /* of a copy */
		uint32_t copy_kind, memory_kind;
	} work[1024];
	size_t count;
};

static struct program program_on(const char *gpu)
{
	struct program program = { .builder = builder_new() };

	build_device(program.builder, 0, gpu);
	return program;
}

static struct program program_new(void)
{
	return program_on("a GPU");
}

/* Launched at `at`, on the GPU from `start` on for so long. */
static struct trace_launch *launch(
	struct program *program, const char *name, uint64_t at, uint64_t start, uint64_t length)
{
	struct trace_launch *record = build_launch(program->builder, 1, at, ++program->correlation);

	ck_assert_uint_lt(program->count, 1024);
	program->work[program->count].name = name;
	program->work[program->count].correlation = program->correlation;
	program->work[program->count].grid = 1024;
	program->work[program->count].start = start;
	program->work[program->count++].end = start + length;
	return record;
}

static void kernel(
	struct program *program, const char *name, uint64_t at, uint64_t start, uint64_t length)
{
	launch(program, name, at, start, length);
}

static struct trace_copy *copy(struct program *program, uint32_t kind, uint32_t memory, uint64_t at,
	uint64_t start, uint64_t length)
{
	struct trace_copy *call = build_copy(
		program->builder, 1, at, TRACE_COPY, ++program->correlation, 4096);

	program->work[program->count].correlation = program->correlation;
	program->work[program->count].bytes = 4096;
	program->work[program->count].copy_kind = kind;
	program->work[program->count].memory_kind = memory;
	program->work[program->count].start = start;
	program->work[program->count++].end = start + length;
	return call;
}

/* What the GPU did reaches the trace at its end. */
static struct trace_builder *program_end(struct program *program, uint64_t at)
{
	for (size_t i = 0; i < program->count; i++)
		if (program->work[i].bytes) {
			struct trace_gpu_copy *record = build_gpu_copy(program->builder, 9, at,
				TRACE_GPU_COPY, program->work[i].correlation,
				program->work[i].bytes, program->work[i].start,
				program->work[i].end);

			record->copy_kind = program->work[i].copy_kind;
			record->source_kind = program->work[i].memory_kind;
			record->target_kind = TRACE_MEMORY_DEVICE;
		} else {
			build_kernel(program->builder, 9, at, program->work[i].correlation,
				program->work[i].name, program->work[i].start, program->work[i].end)
				->grid[0] = (uint32_t)program->work[i].grid;
		}
	return program->builder;
}

static const char *const names[] = { "k_a", "k_b", "k_c", "k_d", "k_e" };

/* Kernels one right after the other, launched long before. */
static struct trace_builder *healthy(void)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 100; i++)
		kernel(&program, names[i % 5], 1000 + i * 1000, 10 * US + i * 10 * US, 10 * US);
	build_pop(program.builder, 1, 1100 * US);
	return program_end(&program, 1200 * US);
}

/* The same, but the first begins 5 ms after its launch: the GPU had other work. */
static struct trace_builder *late_at_first(void)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 100; i++)
		kernel(&program, names[i % 5], 1000 + i * 1000, 5 * MS + 1000 + i * 10 * US,
			10 * US);
	build_pop(program.builder, 1, 6 * MS);
	return program_end(&program, 7 * MS);
}

/* `count` kernels of `length`, launched one each `period`, which begin 1 us later. */
static struct trace_builder *regular(
	unsigned count, uint64_t period, uint64_t length, unsigned kinds)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < count; i++)
		kernel(&program, names[i % 5 < kinds ? i % 5 : 0], (i + 1) * period,
			(i + 1) * period + 1000, length);
	build_pop(program.builder, 1, (count + 1) * period);
	return program_end(&program, (count + 2) * period);
}

/* Steps of a kernel of 10 us and an all-reduce of 8 us, of which `hidden` are at the same time. */
static struct trace_builder *all_reduces(uint64_t hidden)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 20; i++) {
		const uint64_t at = 100 * US + i * 20 * US;

		kernel(&program, names[i % 5], 1000 + i * 2000, at, 10 * US);
		kernel(&program, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2000 + i * 2000,
			at + 10 * US - hidden, 8 * US);
	}
	build_pop(program.builder, 1, 90 * US);
	return program_end(&program, MS);
}

static struct trace_builder *exposed(void)
{
	return all_reduces(2 * US);
}

static struct trace_builder *overlapped(void)
{
	return all_reduces(8 * US);
}

/* Steps of a kernel and an all-reduce of 8 ranks, of 1, 2 or 4 MB. Each takes `fixed` and
 * `each_mb`, and `other`, which has nothing to do with the size, up to seven times. */
static struct trace_builder *sized_reduces(uint64_t fixed, uint64_t each_mb, uint64_t other)
{
	struct program program = program_new();
	uint32_t nodes[3];
	uint64_t at = 100 * US;

	for (unsigned size = 0; size < 3; size++) {
		char detail[64];

		snprintf(detail, sizeof detail, "\t\t\t\tallreduce %u %u 8", 1000000u << size,
			1000000u << size);
		nodes[size] = build_linked_node(
			program.builder, 0, "record_param_comms", TRACE_NODE_OP, 0, detail);
	}
	for (unsigned i = 0; i < 30; i++) {
		const uint64_t length = fixed + (each_mb << i % 3) + other * (i * 5 % 7);

		build_push_node(program.builder, 1, 1000 + i * 2000, nodes[i % 3]);
		kernel(&program, names[i % 5], 1100 + i * 2000, at, 10 * US);
		kernel(&program, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1200 + i * 2000,
			at + 10 * US, length);
		build_pop(program.builder, 1, 2000 + i * 2000);
		at += 10 * US + length;
	}
	return program_end(&program, at + MS);
}

/* Steps whose first bucket is hidden behind a kernel, and whose last one, which is larger, begins
 * `pause` after it. */
static struct trace_builder *last_buckets(uint64_t pause)
{
	struct program program = program_new();
	uint32_t nodes[2];

	for (unsigned size = 0; size < 2; size++)
		nodes[size] = build_linked_node(program.builder, 0, "record_param_comms",
			TRACE_NODE_OP, 0,
			size ? "\t\t\t\tallreduce 4000000 4000000 8"
			     : "\t\t\t\tallreduce 1000000 1000000 8");
	for (unsigned i = 0; i < 10; i++) {
		const uint64_t call = 1000 + i * 4000, at = 100 * US + i * 400 * US;

		build_push_node(program.builder, 1, call, nodes[0]);
		kernel(&program, names[i % 5], call + 100, at, 40 * US);
		kernel(&program, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", call + 200, at,
			40 * US);
		build_pop(program.builder, 1, call + 1000);
		build_push_node(program.builder, 1, call + 1100, nodes[1]);
		kernel(&program, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", call + 1200,
			at + 40 * US + pause, 70 * US);
		build_pop(program.builder, 1, call + 2000);
	}
	return program_end(&program, 5 * MS);
}

static struct trace_builder *back_to_back(void)
{
	return last_buckets(2 * US);
}

static struct trace_builder *with_a_pause(void)
{
	return last_buckets(200 * US);
}

static struct trace_builder *late_ranks(void)
{
	return sized_reduces(2 * MS, 100 * US, 0);
}

static struct trace_builder *slow_start_of_messages(void)
{
	return sized_reduces(40 * US, 2 * US, 0);
}

static struct trace_builder *slow_links(void)
{
	return sized_reduces(10 * US, 100 * US, 0);
}

static struct trace_builder *uneven_ranks(void)
{
	return sized_reduces(10 * US, US, 900 * US);
}

/* Matrix products by one kernel, beside other kernels. */
static struct trace_builder *products_on_v100(const char *name)
{
	struct program program = program_on("Tesla V100-SXM2-16GB");

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 40; i++)
		kernel(&program, i % 4 ? names[i % 4] : name, 1000 + i * 1000,
			100 * US + i * 10 * US, 10 * US);
	build_pop(program.builder, 1, 90 * US);
	return program_end(&program, MS);
}

static struct trace_builder *single_precision(void)
{
	return products_on_v100("volta_sgemm_64x64_nt");
}

static struct trace_builder *half_precision(void)
{
	return products_on_v100("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn");
}

static struct trace_builder *slow_host(void)
{
	return regular(60, 40 * US, 10 * US, 5);
}

static struct trace_builder *one_kernel_above_all(void)
{
	return regular(60, 12 * US, 10 * US, 3); /* k_a has three of five */
}

static struct trace_builder *crumbs(void)
{
	return regular(200, 8 * US, 2 * US, 5);
}

/* `count` launches one each 40 us, of which every `alone`-th is of one kernel of 2 us, and the
 * others of a graph of one kernel. */
static struct trace_builder *with_graphs(unsigned count, unsigned alone)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < count; i++) {
		const uint64_t at = (i + 1) * 40 * US;

		if (i % alone == 0) {
			kernel(&program, names[i % 5], at, at + 1000, 2 * US);
			continue;
		}
		build_graph_launch(program.builder, 1, at, ++program.correlation, 5);
		build_kernel(program.builder, 9, at + 20 * US, program.correlation, "k_graph",
			at + 1000, at + 11 * US)
			->gpu.graph_node = 7;
	}
	build_pop(program.builder, 1, (count + 1) * 40 * US);
	return program_end(&program, (count + 2) * 40 * US);
}

static struct trace_builder *half_in_graphs(void)
{
	return with_graphs(120, 2);
}

static struct trace_builder *all_in_graphs(void)
{
	return with_graphs(60, 30);
}

/* As many kernels again have no launch in the trace. */
static struct trace_builder *crumbs_of_unknown_launch(void)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 200; i++) {
		kernel(&program, names[i % 5], (i + 1) * 8 * US, (i + 1) * 8 * US + US, 2 * US);
		program.work[program.count - 1].correlation += i % 2 * 100000;
	}
	build_pop(program.builder, 1, 2 * MS);
	return program_end(&program, 3 * MS);
}

static struct trace_builder *long_pauses(void)
{
	return regular(6, 5 * MS, 100 * US, 5);
}

static struct trace_builder *many_long_pauses(void)
{
	return regular(12, 5 * MS, 100 * US, 5);
}

static struct trace_builder *small_grids(void)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 20; i++) {
		kernel(&program, names[i % 5], 1000 + i * 1000, 100 * US + i * 100 * US, 100 * US);
		program.work[i].grid = 4;
	}
	build_pop(program.builder, 1, 2 * MS);
	return program_end(&program, 3 * MS);
}

/* Steps of 1 ms with 40 kernels of 20 us each; `before` is done in each step from 1 us on, for
 * 100 us at most; the first takes `first` longer. */
static struct trace_builder *steps_of(unsigned count, uint64_t first,
	void (*before)(struct program *program, unsigned step, uint64_t at))
{
	struct program program = program_new();

	for (unsigned step = 0; step < count; step++) {
		const uint64_t begin = 1000 + step * MS + (step ? first : 0),
			       late = begin + 200 * US + (step ? 0 : first);
		char name[32];

		snprintf(name, sizeof name, "ProfilerStep#%u", step);
		build_push(program.builder, 1, begin, name);
		if (before)
			before(&program, step, begin + 1000);
		for (unsigned i = 0; i < 39; i++)
			kernel(&program, names[i % 5], late + i * 1000, late + 1000 + i * 20 * US,
				20 * US);
		build_pop(program.builder, 1, begin + MS - 100 + (step ? 0 : first));
	}
	return program_end(&program, first + (10 + count) * MS);
}

static struct trace_builder *steps(
	uint64_t first, void (*before)(struct program *program, unsigned step, uint64_t at))
{
	return steps_of(10, first, before);
}

static struct trace_builder *even_steps(void)
{
	return steps(0, NULL);
}

static struct trace_builder *slow_first_step(void)
{
	return steps(9 * MS, NULL);
}

/* A kernel 100 ms before five steps of 5 ms each; their pauses are of 5 ms less 100 us in the
 * middle, but for one of 8 ms that is another place's. */
static struct trace_builder *a_long_start(uint64_t pause)
{
	struct program program = program_new();

	build_push(program.builder, 1, 1000, "ready");
	kernel(&program, "k_a", 2000, 3000, 100 * US);
	build_pop(program.builder, 1, 4000);
	for (unsigned step = 0; step < 5; step++) {
		const uint64_t begin = 100 * MS + step * 5 * MS;
		char name[32];

		snprintf(name, sizeof name, "ProfilerStep#%u", step);
		build_push(program.builder, 1, begin, name);
		build_push(program.builder, 1, begin + 100, "first");
		kernel(&program, "k_b", begin + 1000, begin + 2000, 5 * MS - pause - 2000);
		build_pop(program.builder, 1, begin + 1100);
		build_push(program.builder, 1, begin + 1200, step == 3 ? "rare" : "usual");
		if (step != 3)
			kernel(&program, "k_c", begin + 5 * MS - 3000, begin + 5 * MS - 2000, 1000);
		build_pop(program.builder, 1, begin + 5 * MS - 2000);
		build_pop(program.builder, 1, begin + 5 * MS - 100);
	}
	return program_end(&program, 200 * MS);
}

static struct trace_builder *a_long_start_only(void)
{
	return a_long_start(500 * US);
}

static struct trace_builder *a_long_start_and_pauses(void)
{
	return a_long_start(4 * MS);
}

/* A kernel 200 ms before ten steps of 2 ms each, in which the host is late with each of 40 kernels
 * of 10 us. */
static struct trace_builder *slow_host_after_a_long_start(void)
{
	struct program program = program_new();

	build_push(program.builder, 1, 1000, "ready");
	kernel(&program, "k_a", 2000, 3000, 100 * US);
	build_pop(program.builder, 1, 4000);
	for (unsigned step = 0; step < 10; step++) {
		const uint64_t begin = 200 * MS + step * 2 * MS;
		char name[32];

		snprintf(name, sizeof name, "ProfilerStep#%u", step);
		build_push(program.builder, 1, begin, name);
		for (unsigned i = 1; i <= 40; i++)
			kernel(&program, names[i % 5], begin + i * 40 * US,
				begin + i * 40 * US + 1000, 10 * US);
		build_pop(program.builder, 1, begin + 2 * MS - 100);
	}
	return program_end(&program, 400 * MS);
}

static void ask(struct program *program, unsigned step, uint64_t at)
{
	(void)step;
	for (unsigned i = 0; i < 20; i++)
		build_api(program->builder, "cudaFuncGetAttributes", at + i * 1000,
			at + i * 1000 + 900);
}

static void fetch_for(struct program *program, uint64_t at, uint64_t length)
{
	build_push(program->builder, 1, at,
		"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
	build_pop(program->builder, 1, at + length);
}

static void fetch_slowly(struct program *program, unsigned step, uint64_t at)
{
	fetch_for(program, at, step ? 110 * US : 150 * US);
}

static void fetch_quickly(struct program *program, unsigned step, uint64_t at)
{
	(void)step;
	fetch_for(program, at, 50 * US);
}

static struct trace_builder *slow_data(void)
{
	return steps(0, fetch_slowly);
}

static struct trace_builder *quick_data(void)
{
	return steps(0, fetch_quickly);
}

static void ask_at_first(struct program *program, unsigned step, uint64_t at)
{
	if (step == 0)
		ask(program, step, at);
}

static struct trace_builder *asking(void)
{
	return steps(0, ask);
}

static struct trace_builder *asking_at_first(void)
{
	return steps(9 * MS, ask_at_first);
}

static void take(struct program *program, unsigned step, uint64_t at)
{
	const uint32_t api = build_name(program->builder, "cudaMalloc");
	struct trace_memory *memory = build_memory(program->builder, 1, at + 50 * US, TRACE_ALLOC,
		0x10000 * (step + 1), 1 << 20, TRACE_MEMORY_DEVICE, 0);

	memory->call.duration = 50 * US;
	memory->call.api = api;
}

static void take_at_first(struct program *program, unsigned step, uint64_t at)
{
	if (step == 0)
		take(program, step, at);
}

static struct trace_builder *taking(void)
{
	return steps(0, take);
}

static struct trace_builder *taking_at_first(void)
{
	return steps(9 * MS, take_at_first);
}

static void compile(struct program *program, unsigned step, uint64_t at)
{
	if (step == 0 || step == 5) {
		build_push(program->builder, 1, at, "_compile.compile_inner (dynamo_timed)");
		build_pop(program->builder, 1, at + 90 * US);
	}
}

static void compile_at_first(struct program *program, unsigned step, uint64_t at)
{
	if (step == 0)
		compile(program, step, at);
}

static struct trace_builder *compiling(void)
{
	return steps(9 * MS, compile);
}

static struct trace_builder *compiling_at_first(void)
{
	return steps(9 * MS, compile_at_first);
}

static void in_range(struct program *program, const char *name, uint64_t at, uint64_t length)
{
	build_push(program->builder, 1, at, name);
	build_pop(program->builder, 1, at + length);
}

/* Two versions of a function, one in the first step and one in a later step. Its calls are at two
 * nodes. */
static void compile_by_name(struct program *program, unsigned step, uint64_t at)
{
	if (step == 0) {
		build_push(program->builder, 1, at, "torch.compile f (a.py:3), frame 0, version 0");
		in_range(program, "_compile.compile_inner (dynamo_timed)", at + 1000, 800 * US);
		build_pop(program->builder, 1, at + 810 * US);
		in_range(program, "CachingAutotuner.benchmark_all_configs (dynamo_timed)",
			at + 900 * US, 700 * US);
	}
	if (step == 5)
		in_range(program, "torch.compile f (a.py:3), frame 0, version 1", at, 80 * US);
	build_push(program->builder, 1, at + 2 * MS * !step + 82 * US, step % 2 ? "a" : "b");
	in_range(program, step < 5 ? "Torch-Compiled Region: 0/0" : "Torch-Compiled Region: 0/1",
		at + 2 * MS * !step + 83 * US, 1 * US);
	build_pop(program->builder, 1, at + 2 * MS * !step + 85 * US);
}

static struct trace_builder *compiling_by_name(void)
{
	return steps(9 * MS, compile_by_name);
}

static void call_a_version(struct program *program, unsigned step, uint64_t at)
{
	build_push(program->builder, 1, at, step % 3 ? "a" : "b");
	in_range(program, step % 2 ? "Torch-Compiled Region: 0/0" : "Torch-Compiled Region: 0/1",
		at + 1000, 1 * US);
	build_pop(program->builder, 1, at + 3 * US);
}

static struct trace_builder *switching_versions(void)
{
	return steps(0, call_a_version);
}

#define MB 1000000u

static void hold(struct program *program, const char *name, uint64_t at, uint64_t address,
	int64_t bytes, uint64_t allocated)
{
	build_push(program->builder, 1, at, name);
	build_tensor(program->builder, 1, at + 100, address, bytes, allocated, 500 * MB);
	build_pop(program->builder, 1, at + 200);
}

/* 400 MB of parameters, and 2 MB more in each step. */
static void keep(struct program *program, unsigned step, uint64_t at)
{
	if (!step)
		hold(program, "model", at, 0x1000, 400 * MB, 400 * MB);
	hold(program, "aten::relu", at + 1000, 0x10000 + step * 16, 2 * MB, (402 + 2 * step) * MB);
}

static struct trace_builder *growing(void)
{
	return steps_of(13, 9 * MS, keep);
}

/* 700 steps, of which the last 466 but one are examined. Memory grows in the last 600. */
static struct trace_builder *growing_for_long(void)
{
	struct program program = program_new();

	hold(&program, "model", 500, 0x1000, 400 * MB, 400 * MB);
	for (unsigned step = 0; step < 700; step++) {
		const uint64_t begin = 10000 + step * 100 * US;
		char name[32];

		snprintf(name, sizeof name, "ProfilerStep#%u", step);
		build_push(program.builder, 1, begin, name);
		kernel(&program, "k", begin + 1000, begin + 2000, 20 * US);
		if (step >= 100)
			hold(&program, "aten::relu", begin + 30 * US, 0x10000 + step * 16, MB,
				(301 + step) * MB);
		build_pop(program.builder, 1, begin + 90 * US);
	}
	return program_end(&program, 71 * MS);
}

static struct trace_builder *growing_shortly(void)
{
	return steps_of(10, 9 * MS, keep);
}

/* A buffer of 2 MB of pinned memory in each step, and no device memory. */
static void pin(struct program *program, unsigned step, uint64_t at)
{
	build_memory(program->builder, 1, at + 1000, TRACE_ALLOC, 0x20000 + step * 16, 2 * MB,
		TRACE_MEMORY_PINNED, UINT32_MAX);
}

static struct trace_builder *pinning(void)
{
	return steps_of(13, 9 * MS, pin);
}

/* A cache that is full after the fifth step. */
static void fill(struct program *program, unsigned step, uint64_t at)
{
	if (step < 5)
		keep(program, step, at);
}

static struct trace_builder *filling(void)
{
	return steps_of(13, 9 * MS, fill);
}

/* Each step holds 100 MB for a while, and step 6 holds 450. */
static void hold_for_a_while(struct program *program, unsigned step, uint64_t at)
{
	const int64_t bytes = step == 6 ? 450 * MB : 100 * MB;

	hold(program, "aten::relu", at + 1000, 0x1000, bytes, (uint64_t)bytes);
	hold(program, "aten::sum", at + 2000, 0x1000, -bytes, 0);
}

static struct trace_builder *one_large_step(void)
{
	return steps_of(13, 9 * MS, hold_for_a_while);
}

static void hold_evenly(struct program *program, unsigned step, uint64_t at)
{
	hold_for_a_while(program, step == 6 ? 7 : step, at);
}

/* PyTorch reserves 500 MB for 100. */
static struct trace_builder *fragmented(void)
{
	return steps(9 * MS, hold_evenly);
}

static uint64_t segment_bytes, tensor_bytes; /* so far, as the allocator reports them */

static void segment(struct program *program, uint64_t at, uint64_t address, uint64_t bytes)
{
	segment_bytes += bytes;
	build_memory(program->builder, 1, at, TRACE_ALLOC, address, bytes, TRACE_MEMORY_DEVICE, 0);
}

static void tensor(struct program *program, uint64_t at, uint64_t address, int64_t bytes)
{
	tensor_bytes += (uint64_t)bytes;
	build_tensor(program->builder, 1, at, address, bytes, tensor_bytes, segment_bytes);
}

#define AT(number) (UINT64_C(0x100000000) + (number)*UINT64_C(0x10000000))

/* 200 MB of parameters in step 0. In step 2 a segment of 100 MB is used and freed. */
static void leave_a_segment(struct program *program, unsigned step, uint64_t at)
{
	if (step != 0 && step != 2)
		return;
	segment(program, at, AT(step), (uint64_t)(step ? 100 : 200) * MB);
	tensor(program, at + 1000, AT(step), (step ? 100 : 200) * (int64_t)MB);
	if (step)
		tensor(program, at + 2000, AT(step), -100 * (int64_t)MB);
}

static struct trace_builder *with_idle_cache(void)
{
	return steps_of(13, 0, leave_a_segment);
}

/* The same in the first step: a large first batch. */
static void leave_a_segment_first(struct program *program, unsigned step, uint64_t at)
{
	if (step)
		return;
	leave_a_segment(program, 0, at);
	leave_a_segment(program, 2, at + 10 * US);
}

static struct trace_builder *with_large_first_batch(void)
{
	return steps_of(13, 0, leave_a_segment_first);
}

/* And with a tensor of 1 MB in its place. `again`: 60 MB of it are used in each step. */
static void settle(struct program *program, unsigned step, uint64_t at, bool again)
{
	leave_a_segment(program, step, at);
	if (step == 2)
		tensor(program, at + 3000, AT(2), MB);
	if (step < 3 || !again)
		return;
	tensor(program, at + 4000, AT(2) + MB, 60 * (int64_t)MB);
	tensor(program, at + 5000, AT(2) + MB, -60 * (int64_t)MB);
}

static void settle_alone(struct program *program, unsigned step, uint64_t at)
{
	settle(program, step, at, false);
}

static void settle_together(struct program *program, unsigned step, uint64_t at)
{
	settle(program, step, at, true);
}

static struct trace_builder *with_pinned_segment(void)
{
	return steps_of(13, 0, settle_alone);
}

static struct trace_builder *with_shared_segment(void)
{
	return steps_of(13, 0, settle_together);
}

/* A segment of its own for each of 12 sizes. */
static void change_sizes(struct program *program, unsigned step, uint64_t at)
{
	const int64_t bytes = (100 - (int64_t)step) * (int64_t)MB;

	build_push(program->builder, 1, at, "layer");
	segment(program, at + 100, AT(step), (uint64_t)bytes);
	tensor(program, at + 1000, AT(step), bytes);
	tensor(program, at + 2000, AT(step), -bytes);
	build_pop(program->builder, 1, at + 3000);
}

static struct trace_builder *with_dynamic_shapes(void)
{
	return steps_of(13, 0, change_sizes);
}

/* 80 MB of a segment of 100 MB are free in two gaps of 40, and `bytes` are requested. */
static void refuse(struct program *program, unsigned step, uint64_t at, uint64_t bytes)
{
	if (step != 2)
		return;
	segment(program, at, AT(2), 100 * MB);
	tensor(program, at + 1000, AT(2), 40 * (int64_t)MB);
	tensor(program, at + 2000, AT(2) + 40 * MB, 20 * (int64_t)MB);
	tensor(program, at + 3000, AT(2), -40 * (int64_t)MB);
	build_tensor_oom(program->builder, 1, at + 5000, bytes, 20 * MB, 100 * MB);
}

static void refuse_50(struct program *program, unsigned step, uint64_t at)
{
	refuse(program, step, at, 50 * MB);
}

static void refuse_90(struct program *program, unsigned step, uint64_t at)
{
	refuse(program, step, at, 90 * MB);
}

static struct trace_builder *with_refused_request(void)
{
	return steps_of(13, 0, refuse_50);
}

static struct trace_builder *with_too_large_request(void)
{
	return steps_of(13, 0, refuse_90);
}

/* Beside 200 MB of tensors, a library allocates 80 MB. */
static void allocate_outside(struct program *program, unsigned step, uint64_t at)
{
	if (step == 0)
		leave_a_segment(program, 0, at);
	if (step == 3)
		segment(program, at, AT(3), 80 * MB);
}

static struct trace_builder *with_library(void)
{
	return steps_of(13, 0, allocate_outside);
}

/* A GPU of 40 GB, of which a program in C holds 4 and needs `bytes` more. */
static struct trace_builder *refused_by_cuda(uint64_t bytes, uint32_t kind)
{
	struct program program = { .builder = builder_new() };
	struct trace_memory *memory;

	build_device(program.builder, 0, "a GPU")->memory_bytes = UINT64_C(40000) * MB;
	build_memory(program.builder, 1, 1000, TRACE_ALLOC, AT(0), UINT64_C(4000) * MB,
		TRACE_MEMORY_DEVICE, 0);
	memory = build_memory(program.builder, 1, 5000, TRACE_ALLOC,
		kind == TRACE_MEMORY_DEVICE ? 0 : AT(400), bytes, kind, 0);
	memory->call.result = kind == TRACE_MEMORY_DEVICE ? 2 : 0;
	return program_end(&program, MS);
}

static struct trace_builder *beside_another_process(void)
{
	return refused_by_cuda(UINT64_C(2000) * MB, TRACE_MEMORY_DEVICE);
}

static struct trace_builder *alone_and_too_large(void)
{
	return refused_by_cuda(UINT64_C(35000) * MB, TRACE_MEMORY_DEVICE);
}

static struct trace_builder *oversubscribed(void)
{
	return refused_by_cuda(UINT64_C(60000) * MB, TRACE_MEMORY_MANAGED);
}

static struct trace_builder *managed_that_fits(void)
{
	return refused_by_cuda(UINT64_C(30000) * MB, TRACE_MEMORY_MANAGED);
}

static void run_out(struct program *program, unsigned step, uint64_t at)
{
	keep(program, step, at);
	if (step == 9)
		build_tensor_oom(program->builder, 1, at + 5000, 64 * MB, 420 * MB, 500 * MB);
}

static struct trace_builder *out_of_memory(void)
{
	return steps_of(13, 9 * MS, run_out);
}

static void call_compiled(struct program *program, uint64_t at, uint64_t tax, uint64_t graph)
{
	build_push(program->builder, 1, at, "TorchDynamo Cache Lookup");
	build_pop(program->builder, 1, at + tax);
	build_push(program->builder, 1, at + tax, "Torch-Compiled Region: 0/0");
	build_push(program->builder, 1, at + tax + 100, "## Call CompiledFxGraph x ##");
	kernel(program, "triton_a", at + tax + 1000, at + tax + 2000, 10 * US);
	build_pop(program->builder, 1, at + tax + 100 + graph);
	build_pop(program->builder, 1, at + tax + 200 + graph);
}

static struct trace_builder *taxed(void)
{
	struct program program = program_new();

	for (unsigned i = 0; i < 20; i++)
		call_compiled(&program, 1000 + i * 100 * US, 40 * US, 30 * US);
	return program_end(&program, 3 * MS);
}

static struct trace_builder *hardly_taxed(void)
{
	struct program program = program_new();

	for (unsigned i = 0; i < 20; i++)
		call_compiled(&program, 1000 + i * 100 * US, 1 * US, 80 * US);
	return program_end(&program, 3 * MS);
}

/* A copy on the device and a product, ten times, in one operator or in two. */
static struct trace_builder *products(bool together)
{
	struct program program = program_new();

	for (unsigned i = 0; i < 10; i++) {
		const uint64_t at = 1000 + i * 100 * US;

		build_push(program.builder, 1, at, together ? "aten::addmm" : "copying");
		copy(&program, TRACE_COPY_DTOD, TRACE_MEMORY_DEVICE, at + 1000, at + 2000, 5 * US);
		if (!together) {
			build_pop(program.builder, 1, at + 5 * US);
			build_push(program.builder, 1, at + 6 * US, "aten::addmm");
		}
		kernel(&program, "ampere_sgemm_128x64_tn", at + 8 * US, at + 10 * US, 80 * US);
		build_pop(program.builder, 1, at + 90 * US);
	}
	return program_end(&program, 3 * MS);
}

static struct trace_builder *products_with_copies(void);
static struct trace_builder *beside(
	struct trace_builder *builder, uint64_t start, uint64_t end, uint64_t written);

/* Another CUDA stream is busy all the time. */
static struct trace_builder *products_with_copies_beside(void)
{
	return beside(products_with_copies(), 2 * US, 1100 * US, 3 * MS);
}

static struct trace_builder *products_with_copies(void)
{
	return products(true);
}

static struct trace_builder *products_beside_copies(void)
{
	return products(false);
}

static struct trace_builder *copies(uint32_t memory)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "load");
	for (unsigned i = 0; i < 10; i++)
		copy(&program, TRACE_COPY_HTOD, memory, 1000 + i * 50 * US, 2000 + i * 50 * US,
			40 * US);
	build_pop(program.builder, 1, MS);
	return program_end(&program, 2 * MS);
}

static struct trace_builder *pageable(void)
{
	return copies(TRACE_MEMORY_PAGEABLE);
}

static struct trace_builder *pinned(void)
{
	return copies(TRACE_MEMORY_PINNED);
}

static struct trace_builder *from_somewhere(void)
{
	return copies(TRACE_MEMORY_UNKNOWN);
}

/* The host waits for each kernel, and only then launches the next. The last `others` of 20 waits are
 * not in aten::item. */
static struct trace_builder *waiting_in_others(unsigned others)
{
	struct program program = program_new();
	const uint32_t api = build_name(program.builder, "cudaStreamSynchronize");

	build_push(program.builder, 1, 100, "gate");
	for (unsigned i = 0; i < 20; i++) {
		const uint64_t at = 10 * US + i * 100 * US;
		struct trace_sync *sync;

		build_push(program.builder, 1, at - US, "aten::linear");
		kernel(&program, names[i % 5], at, at + 2 * US, 50 * US);
		build_pop(program.builder, 1, at + US);
		build_push(
			program.builder, 1, at + US, i + others < 20 ? "aten::item" : "aten::to");
		sync = build_record(program.builder, 1, TRACE_SYNC, sizeof *sync, at + 90 * US);
		sync->call.duration = 88 * US;
		sync->call.api = api;
		sync->type = TRACE_SYNC_STREAM;
		build_pop(program.builder, 1, at + 91 * US);
	}
	build_pop(program.builder, 1, 3 * MS);
	return program_end(&program, 4 * MS);
}

static struct trace_builder *waiting(void)
{
	return waiting_in_others(0);
}

static struct trace_builder *waiting_in_two_operators(void)
{
	return waiting_in_others(5);
}

/* Waits of 900 us for a kernel, each followed by 50 kernels of 2 us that are launched every 10 us. */
static struct trace_builder *refills(unsigned count)
{
	struct program program = program_new();
	const uint32_t api = build_name(program.builder, "cudaDeviceSynchronize");

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < count; i++) {
		const uint64_t at = 10 * US + i * 1510 * US;
		struct trace_sync *sync;

		kernel(&program, "k_a", at, at + 2 * US, 900 * US);
		sync = build_record(program.builder, 1, TRACE_SYNC, sizeof *sync, at + 905 * US);
		sync->call.duration = 900 * US;
		sync->call.api = api;
		sync->type = TRACE_SYNC_CONTEXT;
		for (unsigned k = 0; k < 50; k++)
			kernel(&program, names[k % 5], at + 910 * US + k * 10 * US,
				at + 912 * US + k * 10 * US, 2 * US);
		kernel(&program, "k_e", at + 1411 * US, at + 1412 * US, 90 * US);
	}
	build_pop(program.builder, 1, count * 1510 * US + 20 * US);
	return program_end(&program, (count + 1) * 5 * MS);
}

static struct trace_builder *one_refill(void)
{
	return refills(1);
}

static struct trace_builder *many_refills(void)
{
	return refills(10);
}

static void wait_at(struct program *program, const char *range, uint64_t from, uint64_t to)
{
	const uint32_t api = build_name(program->builder, "cudaStreamSynchronize");
	struct trace_sync *sync;

	build_push(program->builder, 1, from - 10, range);
	sync = build_record(program->builder, 1, TRACE_SYNC, sizeof *sync, to);
	sync->call.duration = to - from;
	sync->call.api = api;
	sync->type = TRACE_SYNC_STREAM;
	build_pop(program->builder, 1, to + 10);
}

/* Rounds in which the host waits until `first_ends`, when the GPU is idle or nearly so, a second
 * time after `later`, and launches the next kernel long after that. */
static struct trace_builder *blocked_twice(
	const char *first, uint64_t first_ends, const char *second, uint64_t later)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 10; i++) {
		const uint64_t at = 10 * US + i * 200 * US;

		kernel(&program, names[i % 5], at, at + 2 * US, 50 * US);
		wait_at(&program, first, at + 30 * US, at + first_ends);
		wait_at(&program, second, at + first_ends + later, at + 55 * US + later);
		kernel(&program, names[i % 5], at + 100 * US, at + 102 * US, 50 * US);
	}
	build_pop(program.builder, 1, 3 * MS);
	return program_end(&program, 4 * MS);
}

/* The lead that the first wait costs is lost at the second one, after 6 us and in the wait. */
static struct trace_builder *blocked(void)
{
	return blocked_twice("read", 54 * US, "check", 6 * US);
}

/* As `blocked`; of its first kernel, all but the begin is another one, which begins and ends in the
 * first wait. */
static struct trace_builder *blocked_while_one_begins(void)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 10; i++) {
		const uint64_t at = 10 * US + i * 200 * US;

		kernel(&program, "before", at, at + 2 * US, 29 * US);
		kernel(&program, "inside", at + 5 * US, at + 31 * US, 21 * US);
		wait_at(&program, "read", at + 30 * US, at + 54 * US);
		wait_at(&program, "check", at + 60 * US, at + 61 * US);
		kernel(&program, names[i % 5], at + 100 * US, at + 102 * US, 50 * US);
	}
	build_pop(program.builder, 1, 3 * MS);
	return program_end(&program, 4 * MS);
}

static struct trace_builder *blocked_again_at_once(void)
{
	return blocked_twice("read", 54 * US, "check", 100);
}

/* Both waits are one: the whole 25 us could be bridged. */
static struct trace_builder *blocked_at_one_path(void)
{
	return blocked_twice("read", 54 * US, "read", 100);
}

/* The first wait reads a value of a tensor. */
static struct trace_builder *blocked_by_item(void)
{
	return blocked_twice("aten::item", 54 * US, "check", 6 * US);
}

/* So it does, and the second one waits for nearly as long. */
static struct trace_builder *blocked_by_item_and_more(void)
{
	return blocked_twice("aten::item", 52 * US, "check", 500);
}

/* Rounds of a kernel, a copy whose call of 65 us cannot feed it before the kernel is over, and a
 * kernel that is launched long after that. The GPU is idle for 49 us behind the copy, and for 30 us
 * behind the second kernel. */
static struct trace_builder *copies_behind_kernels(uint32_t memory)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 10; i++) {
		const uint64_t at = 10 * US + i * 200 * US;

		kernel(&program, names[i % 5], at, at + 2 * US, 60 * US);
		copy(&program, TRACE_COPY_HTOD, memory, at + 70 * US, at + 63 * US, 10 * US)
			->call.duration = 65 * US;
		kernel(&program, names[i % 5], at + 120 * US, at + 122 * US, 50 * US);
	}
	build_pop(program.builder, 1, 3 * MS);
	return program_end(&program, 4 * MS);
}

static struct trace_builder *pageable_behind_kernels(void)
{
	return copies_behind_kernels(TRACE_MEMORY_PAGEABLE);
}

static struct trace_builder *pinned_behind_kernels(void)
{
	return copies_behind_kernels(TRACE_MEMORY_PINNED);
}

/* Two hundred of one kernel at one place; which take longer is `length`'s matter. Of those with a
 * grid of 0 the trace does not know it, and without launches it has the work alone. */
static struct trace_builder *spread_of(
	uint64_t (*length)(unsigned i), uint32_t grid, bool has_launches)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 200; i++) {
		kernel(&program, "k", 1000 + 2 * i * 1000, 100 * US + i * 100 * US, length(i));
		program.work[program.count - 1].grid = grid;
		if (!has_launches)
			program.work[program.count - 1].correlation += 100000;
		kernel(&program, "other", 2000 + 2 * i * 1000, 150 * US + i * 100 * US, 20 * US);
	}
	build_pop(program.builder, 1, MS);
	return program_end(&program, 40 * MS);
}

static struct trace_builder *spread(uint64_t (*length)(unsigned i))
{
	return spread_of(length, 1024, true);
}

static uint64_t two_values(unsigned i)
{
	return (i % 3 ? 20 * US : 40 * US) + i % 7 * 10;
}

static uint64_t rarely_slow(unsigned i)
{
	return i % 50 == 7 ? 45 * US : 10 * US + i % 7 * 10;
}

static uint64_t alike(unsigned i)
{
	return 40 * US + i % 5 * 100;
}

static struct trace_builder *bimodal(void)
{
	return spread(two_values);
}

static struct trace_builder *of_unknown_grid(void)
{
	return spread_of(two_values, 0, true);
}

static struct trace_builder *of_unknown_launch(void)
{
	return spread_of(two_values, 1024, false);
}

static struct trace_builder *rare(void)
{
	return spread(rarely_slow);
}

static struct trace_builder *as_ever(void)
{
	return spread(alike);
}

/* For a third of the trace all kernels take half as long again. */
static struct trace_builder *throttled(void)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 200; i++) {
		const uint64_t slow = i > 120 && i < 180;

		kernel(&program, "k", 1000 + 2 * i * 1000, 100 * US + i * 100 * US,
			20 * US + slow * 10 * US + i % 4 * 100);
		kernel(&program, "other", 2000 + 2 * i * 1000, 150 * US + i * 100 * US,
			20 * US + slow * 10 * US + i % 3 * 100);
	}
	build_pop(program.builder, 1, MS);
	return program_end(&program, 40 * MS);
}

/* An operator of 100 us and its backward, which is linked to it if `linked`; before them a kernel
 * of 1 ms outside of any range. */
static struct trace_builder *passes(uint64_t backward, bool linked)
{
	struct program program = program_new();
	const uint32_t forward = build_node(program.builder, 0, "aten::mm", NULL, TRACE_NODE_OP),
		       back = build_linked_node(program.builder, 0, "MmBackward0",
			       TRACE_NODE_BACKWARD, linked ? forward : 0, NULL);

	kernel(&program, "k_e", 10, 2 * MS, MS);
	build_push_node(program.builder, 1, 100, forward);
	kernel(&program, "k_a", 1000, 10 * US, 100 * US);
	build_pop(program.builder, 1, 2000);
	build_push_node(program.builder, 1, 3000, back);
	kernel(&program, "k_b", 4000, 110 * US, backward);
	build_pop(program.builder, 1, 5000);
	return program_end(&program, 5 * MS);
}

static struct trace_builder *long_backward(void)
{
	return passes(900 * US, true);
}

/* Adds a kernel of another CUDA stream, launched by another thread. */
static struct trace_builder *beside(
	struct trace_builder *builder, uint64_t start, uint64_t end, uint64_t written)
{
	build_launch(builder, 2, start - 1000, 999);
	build_kernel(builder, 8, written, 999, "k_beside", start, end)->gpu.stream = 77;
	return builder;
}

/* Another CUDA stream is busy for longer. */
static struct trace_builder *long_backward_beside(void)
{
	return beside(long_backward(), 10 * US, 3100 * US, 5 * MS);
}

static struct trace_builder *usual_backward(void)
{
	return passes(200 * US, true);
}

/* As a pipeline schedule runs it, whose backward passes begin between other forward passes. */
static struct trace_builder *unlinked_backward(void)
{
	return passes(900 * US, false);
}

/* Asked for at once, and begun long after the one before had ended. */
static struct trace_builder *held_up(void)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 8; i++)
		kernel(&program, names[i % 5], 1000 + i * 1000, 20 * US + i * 900 * US, 100 * US);
	build_pop(program.builder, 1, MS);
	return program_end(&program, 9 * MS);
}

static struct trace_builder *dear(void)
{
	struct trace_builder *builder = healthy();
	struct trace_overhead *overhead = build_record(
		builder, 9, TRACE_OVERHEAD, sizeof *overhead, 1200 * US);

	overhead->start_ns = BUILDER_START_UNIX_NS + 1000;
	overhead->end_ns = BUILDER_START_UNIX_NS + 500 * US;
	return builder;
}

/* The same time, in which the driver loaded a kernel at its first use. */
static struct trace_builder *loading(void)
{
	struct trace_builder *builder = healthy();
	struct trace_overhead *overhead = build_record(
		builder, 9, TRACE_OVERHEAD, sizeof *overhead, 1200 * US);

	overhead->start_ns = BUILDER_START_UNIX_NS + 1000;
	overhead->end_ns = BUILDER_START_UNIX_NS + 500 * US;
	overhead->type = TRACE_OVERHEAD_LAZY_LOADING;
	return builder;
}

/* An operator that takes 5 ms at its first call, and the GPU waits for it, and `later` afterwards.
 */
static struct trace_builder *calls_of_an_operator(uint64_t later)
{
	struct program program = program_new();
	uint64_t at = 100 * US;

	kernel(&program, "k_a", 1000, 2000, 10 * US);
	for (unsigned i = 0; i < 20; i++) {
		const uint64_t takes = i ? later : 5 * MS;

		build_push(program.builder, 1, at, "aten::mm");
		kernel(&program, names[i % 5], at + takes, at + takes + 1000, 10 * US);
		build_pop(program.builder, 1, at + takes + 2000);
		at += takes + 20 * US;
	}
	return program_end(&program, at + MS);
}

static struct trace_builder *slow_first_call(void)
{
	return calls_of_an_operator(50 * US);
}

/* The second call has other shapes, and takes 3 ms. */
static struct trace_builder *two_slow_first_calls(void)
{
	struct program program = program_new();
	uint64_t at = 100 * US;

	kernel(&program, "k_a", 1000, 2000, 10 * US);
	for (unsigned i = 0; i < 20; i++) {
		const uint64_t takes = i == 0 ? 5 * MS : i == 1 ? 3 * MS : 50 * US;

		build_push(program.builder, 1, at, "aten::mm");
		kernel(&program, names[i % 5], at + takes, at + takes + 1000, 10 * US);
		build_pop(program.builder, 1, at + takes + 2000);
		at += takes + 20 * US;
	}
	return program_end(&program, at + MS);
}

/* The first call of an operator frees memory several times: a library that initialises itself. */
static struct trace_builder *freeing_in_first_call(void)
{
	struct program program = program_new();
	const uint32_t api = build_name(program.builder, "cudaFree");
	uint64_t at = 100 * US;

	kernel(&program, "k_a", 1000, 2000, 10 * US);
	for (unsigned i = 0; i < 20; i++) {
		const uint64_t takes = i ? 50 * US : 5 * MS;

		build_push(program.builder, 1, at, "aten::mm");
		for (unsigned k = 1; k <= 10 && !i; k++) {
			struct trace_memory *memory = build_memory(program.builder, 1,
				at + k * 450 * US, TRACE_FREE, 0x10000 * k, 0, TRACE_MEMORY_DEVICE,
				0);

			memory->call.duration = 400 * US;
			memory->call.api = api;
		}
		kernel(&program, names[i % 5], at + takes, at + takes + 1000, 10 * US);
		build_pop(program.builder, 1, at + takes + 2000);
		at += takes + 20 * US;
	}
	return program_end(&program, at + MS);
}

/* A kernel that runs once, and whose launch takes 8 ms: the driver loads its module. */
static struct trace_builder *slow_first_launch(void)
{
	struct program program = program_new();
	uint64_t at = 100 * US;

	kernel(&program, "k_a", 1000, 2000, 10 * US);
	launch(&program, "k_once", at + 8 * MS, at + 8 * MS, 10 * US)->call.duration = 8 * MS;
	for (unsigned i = 0; i < 20; i++) {
		at += 50 * US;
		kernel(&program, names[i % 5], 8 * MS + at, 8 * MS + at + 1000, 10 * US);
	}
	return program_end(&program, at + 9 * MS);
}

/* Ten steps of 1 ms with ten kernels of 20 us; in every `period`-th from step 5 on, one launch takes
 * 4 ms, for which the GPU is idle. Its kernel is `name`. */
static struct trace_builder *with_slow_launches(const char *name, unsigned period)
{
	struct program program = program_new();
	uint64_t at = 1000;

	for (unsigned step = 0; step < 10; step++) {
		const bool slow = step >= 5 && (step - 5) % period == 0;
		char text[32];

		snprintf(text, sizeof text, "ProfilerStep#%u", step);
		build_push(program.builder, 1, at, text);
		for (unsigned i = 0; i < 10; i++) {
			const uint64_t length = slow && i == 5 ? 4 * MS : 5;

			launch(&program, slow && i == 5 ? name : names[i % 5], at + 1000 + length,
				at + 2000 + length, 20 * US)
				->call.duration = length;
			at += 30 * US + length;
		}
		build_pop(program.builder, 1, at);
		at += 1000;
	}
	return program_end(&program, at + MS);
}

static struct trace_builder *an_outlier_launch(void)
{
	return with_slow_launches("k_a", 5);
}

static struct trace_builder *a_late_first_launch(void)
{
	return with_slow_launches("k_once", 5);
}

static struct trace_builder *launches_that_are_slow_again_and_again(void)
{
	return with_slow_launches("k_a", 1);
}

/* Kernels of 50 us, with a copy of 20 us after each; `beside`: the next kernel runs meanwhile. */
static struct trace_builder *with_copies(uint32_t kind, uint32_t memory, bool beside)
{
	struct program program = program_new();

	build_push(program.builder, 1, 100, "train");
	for (unsigned i = 0; i < 20; i++) {
		const uint64_t at = 100 * US + i * (beside ? 50u : 70u) * US;

		kernel(&program, names[i % 5], 1000 + i * 1000, at, 50 * US);
		copy(&program, kind, memory, 1500 + i * 1000, at + 50 * US, 20 * US);
	}
	kernel(&program, "k_a", 30 * US, 100 * US + 20 * (beside ? 50u : 70u) * US, 50 * US);
	build_pop(program.builder, 1, 2 * MS);
	return program_end(&program, 3 * MS);
}

static struct trace_builder *copies_within_the_gpu(void)
{
	return with_copies(TRACE_COPY_DTOD, TRACE_MEMORY_DEVICE, false);
}

static struct trace_builder *copies_of_pinned_memory(void)
{
	return with_copies(TRACE_COPY_HTOD, TRACE_MEMORY_PINNED, false);
}

static struct trace_builder *copies_of_pageable_memory(void)
{
	return with_copies(TRACE_COPY_HTOD, TRACE_MEMORY_PAGEABLE, false);
}

static struct trace_builder *copies_beside_kernels(void)
{
	return with_copies(TRACE_COPY_DTOD, TRACE_MEMORY_DEVICE, true);
}

/* Steps without a GPU, in which the DataLoader takes most of the time. */
static struct trace_builder *slow_data_on_the_cpu(void)
{
	struct program program = program_new();

	for (unsigned step = 0; step < 10; step++) {
		const uint64_t at = 1000 + step * MS;
		char text[32];

		snprintf(text, sizeof text, "ProfilerStep#%u", step);
		build_push(program.builder, 1, at, text);
		build_push(program.builder, 1, at + 100,
			"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
		build_pop(program.builder, 1, at + 900 * US);
		for (unsigned i = 0; i < 3; i++) {
			build_push(program.builder, 1, at + (910 + i * 20) * US, names[i]);
			build_pop(program.builder, 1, at + (920 + i * 20) * US);
		}
		build_pop(program.builder, 1, at + 999 * US);
	}
	return program_end(&program, 11 * MS);
}

static struct trace_builder *slow_calls(void)
{
	return calls_of_an_operator(4 * MS);
}

/* The cost of the profiler is after the last GPU operation. */
static struct trace_builder *dear_end(void)
{
	struct trace_builder *builder = healthy();
	struct trace_overhead *overhead = build_record(
		builder, 9, TRACE_OVERHEAD, sizeof *overhead, 1200 * US);

	overhead->start_ns = BUILDER_START_UNIX_NS + 7 * MS;
	overhead->end_ns = BUILDER_START_UNIX_NS + 8 * MS;
	return builder;
}

/* No GPU: one of three ranges takes nearly all. */
static struct trace_builder *waiting_ranges(void)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 100, "gloo:all_reduce");
	build_pop(builder, 1, 900);
	build_push(builder, 1, 910, "load");
	build_pop(builder, 1, 950);
	build_push(builder, 1, 960, "compute");
	build_pop(builder, 1, 990);
	return builder;
}

/* Steps of three operators that take equally long, and a long time before the first step. */
static struct trace_builder *a_long_start_on_the_cpu(void)
{
	static const char *const operators[] = { "load", "compute", "store" };
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 100, "import");
	build_pop(builder, 1, 200);
	for (unsigned i = 0; i < 6; i++) {
		const uint64_t at = 100 * MS + i * 3 * MS;
		char label[32];

		snprintf(label, sizeof label, "step: %u", i);
		build_push(builder, 1, at, label);
		for (unsigned k = 0; k < 3; k++) {
			build_push(builder, 1, at + k * MS, operators[k]);
			build_pop(builder, 1, at + (k + 1) * MS);
		}
		build_pop(builder, 1, at + 3 * MS);
	}
	return builder;
}

static struct trace_builder *only_ranges(void)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 100, "work");
	build_pop(builder, 1, 900);
	return builder;
}

/* What is said of a rule: its kind, and what its line has in it. */
static const struct rule_case {
	struct trace_builder *(*build)(void);
	const char *rule, *kind, *part;
} rule_cases[] = {
	{ slow_host, "launch-bound", "finding", "1770000,,upper bound" },
	{ healthy, "launch-bound", "clear", "" },
	{ slow_host_after_a_long_start, "launch-bound", "finding",
		"In steps 0 to 9: The GPU is idle because the host has" },
	{ slow_host_after_a_long_start, "launch-bound", "finding",
		"pperf-report idle trace.bin --steps 0-9" },
	{ slow_host_after_a_long_start, "synchronisation", "clear", "" },
	{ healthy, "compute", "verdict", "compute for 100 % of the time" },
	{ slow_host, "launch", "verdict", "for 74.7 % of the time the GPU is idle" },
	{ many_long_pauses, "host", "verdict", "11 intervals of 1.00 ms or more (the longest" },
	{ long_pauses, "launch-bound", "clear", "" },
	{ exposed, "communication", "verdict", "for 30.3 % of the time the GPU communicates" },
	{ waiting, "synchronisation", "verdict", "the host had waited for it" },
	{ pageable, "copies", "verdict", "bound by copies" },
	{ held_up, "unjudged", "verdict", "too little GPU work" },
	{ one_kernel_above_all, "dominant-event", "finding", "60.0 % of all GPU time: k_a" },
	{ healthy, "dominant-event", "clear", "" },
	{ waiting_ranges, "dominant-event", "finding", "On the CPU, gloo:all_reduce takes 92.0 %" },
	{ a_long_start_on_the_cpu, "dominant-event", "clear", "" },
	{ only_ranges, "dominant-event", "clear", "" },
	{ exposed, "exposed-communication", "finding", "120000,,upper bound,20" },
	{ exposed, "exposed-communication", "finding", "160.00 us of communication" },
	{ late_ranks, "exposed-communication", "finding",
		", 30 calls of 3 sizes (1.00 MB to 4.00 MB): " },
	{ late_ranks, "exposed-communication", "finding",
		"2.00 ms of each call does not depend on the size" },
	{ late_ranks, "exposed-communication", "finding",
		", which is longer than latency (assumed: at most 420.00 us): most of it is a wait "
		"for other ranks" },
	{ slow_start_of_messages, "exposed-communication", "finding",
		"40.00 us of each call does not depend on the size, which is latency (assumed: at "
		"most" },
	{ slow_start_of_messages, "exposed-communication", "finding", "Send fewer, larger" },
	{ slow_links, "exposed-communication", "finding",
		"most of the time is transfer, at 10.00 GB/s" },
	{ slow_links, "exposed-communication", "finding", "Send fewer bytes" },
	{ uneven_ranks, "exposed-communication", "finding",
		"their times do not depend on the size" },
	{ uneven_ranks, "exposed-communication", "finding", "Compare the ranks first" },
	{ overlapped, "exposed-communication", "clear", "" },
	{ with_a_pause, "exposed-communication", "finding", "make the last bucket smaller" },
	{ with_a_pause, "exposed-communication", "finding",
		"; most exposed: 10 messages of 4.00 MB each: 70.00 us to 70.00 us (algorithm "
		"bandwidth 57.14 GB/s, bus bandwidth 100.00 GB/s)" },
	{ back_to_back, "exposed-communication", "finding",
		"begin when the collective before them ends, so buckets of other sizes" },
	{ back_to_back, "exposed-communication", "finding",
		"a line through only two sizes, which waits for other ranks may bend: 30.00 us of "
		"each call" },
	{ exposed, "dominant-event", "clear", "" },
	{ exposed, "collective-waits", "not checked", "traces of other ranks were not given" },
	{ single_precision, "tensor-cores-unused", "finding", "25.0 % of all GPU time" },
	{ single_precision, "tensor-cores-unused", "finding", "FP32 21.2 TFLOP/s, FP16" },
	/* 100 us * (1 - 15.7 / 125): the rates of the real GPU, whose ratio any number of SMs has */
	{ single_precision, "tensor-cores-unused", "finding", ",87440," },
	{ half_precision, "tensor-cores-unused", "clear", "" },
	{ healthy, "tensor-cores-unused", "not checked", "peak rates of the GPU are not known" },
	{ crumbs, "tiny-calls", "finding", "200 of 200 kernels" },
	{ crumbs, "tiny-calls", "finding", "100 % of all kernels run for" },
	{ crumbs_of_unknown_launch, "tiny-calls", "finding", "100 of 100 kernels" },
	{ crumbs_of_unknown_launch, "tiny-calls", "finding",
		"100 % of the kernels that were launched one by one run for" },
	{ healthy, "tiny-calls", "clear", "" },
	{ small_grids, "small-grids", "finding",
		"4 blocks for 108 multiprocessors (0.00 waves per SM)" },
	{ small_grids, "small-grids", "finding", "Launch at least 108 blocks" },
	{ healthy, "small-grids", "clear", "" },
	{ long_pauses, "host-bound", "finding", "24.49 ms in 5 intervals of 1.00 ms or more" },
	{ a_long_start_only, "launch-bound", "note",
		"Before the first step the GPU is idle for 99.90 ms" },
	{ a_long_start_and_pauses, "host-bound", "finding",
		"intervals before the first step are excluded: 99.90 ms" },
	{ slow_data, "data-loading", "finding",
		"fetching 10 batches took the host 1.14 ms of 10.00 ms" },
	{ slow_data, "data-loading", "finding", "1140000,,upper bound,10" },
	{ quick_data, "data-loading", "clear", "" },
	{ even_steps, "data-loading", "not checked", "the trace has no PyTorch DataLoader" },
	{ slow_first_step, "cold-start", "finding", "9000000,,measured,1" },
	{ even_steps, "cold-start", "clear", "" },
	{ healthy, "cold-start", "not checked", "no steps were found" },
	{ products_with_copies, "copy-before-gemm", "finding", "50000,40960,upper bound,10" },
	{ products_with_copies_beside, "copy-before-gemm", "finding",
		"the run gets shorter hardly at all" },
	{ products_beside_copies, "copy-before-gemm", "clear", "" },
	{ asking, "attribute-queries", "finding", "180000,,upper bound,200" },
	{ asking_at_first, "attribute-queries", "clear", "" },
	{ waiting, "synchronisation", "finding", "cudaStreamSynchronize" },
	{ waiting, "synchronisation", "finding", ".item()" },
	{ half_in_graphs, "launch-bound", "finding",
		"per launch: CUDA graphs also for the 60 kernels that are still launched one by "
		"one, fused kernels, a larger batch." },
	{ half_in_graphs, "tiny-calls", "finding",
		"or capture them in the program's CUDA graphs, too." },
	{ all_in_graphs, "launch-bound", "finding",
		"per launch: fewer, larger CUDA graphs (now 58 launches), fused kernels" },
	{ one_refill, "launch-bound", "finding", "so CUDA graphs would gain little" },
	{ one_refill, "launch-bound", "finding",
		"cudaDeviceSynchronize that returns at 915.00 us" },
	{ many_refills, "launch-bound", "finding", "more work per launch: CUDA graphs" },
	/* 19 waits of 38 us are followed by a gap; one line names both operators */
	{ waiting_in_two_operators, "synchronisation", "finding",
		"it is idle after waits in aten::item 570.00 us, aten::to 152.00 us" },
	{ waiting, "synchronisation", "finding", "gate/aten::item,722000," },
	{ slow_host, "synchronisation", "clear", "" },
	{ waiting, "blocking-calls", "clear", "" },
	{ slow_host, "blocking-calls", "clear", "" },
	/* 7 us behind each first wait, 1 us behind each second one */
	{ blocked, "blocking-calls", "finding", "80000,,upper bound,20" },
	{ blocked, "blocking-calls", "finding", "train/read," },
	{ blocked, "blocking-calls", "finding", "same idle time as in the finding launch-bound" },
	{ blocked, "blocking-calls", "finding", "meanwhile the GPU runs k_a for 44.00 us" },
	{ blocked_while_one_begins, "blocking-calls", "finding",
		"meanwhile the GPU runs inside for 210.00 us" },
	{ blocked, "blocking-calls", "finding", "Remove the wait" },
	{ blocked_by_item, "blocking-calls", "finding",
		"reads of tensor values, such as .item(): 10 calls, 240.00 us" },
	{ blocked_by_item, "blocking-calls", "finding",
		"keep the values on the GPU, gather several and read them in one copy, or read "
		"them every N steps.\"" },
	{ blocked_by_item_and_more, "blocking-calls", "finding",
		"In the other 10 calls, remove the wait" },
	{ blocked_again_at_once, "blocking-calls", "finding", "250000,,upper bound together" },
	{ blocked_again_at_once, "blocking-calls", "finding",
		"To remove those at one call path saves little" },
	{ blocked_at_one_path, "blocking-calls", "finding", "250000,,upper bound,20" },
	{ late_at_first, "unexplained-wait", "note",
		"The first GPU operation began 5.00 ms after its launch" },
	{ late_at_first, "unexplained-wait", "note", "launched at 1.00 us on stream 0" },
	{ late_at_first, "compute", "verdict",
		"before that, the first operation waits for 5.00 ms after its launch" },
	{ healthy, "unexplained-wait", "clear", "" },
	{ pageable_behind_kernels, "blocking-calls", "finding", "634000,,upper bound,10" },
	{ pageable_behind_kernels, "blocking-calls", "finding",
		"in calls that wait for a copy, or before it for its stream: 10 calls, 650.00 us" },
	{ pinned_behind_kernels, "blocking-calls", "clear", "" },
	{ pageable, "pageable-copies", "finding", "400000,40960,concerned,10" },
	{ pinned, "pageable-copies", "clear", "" },
	{ from_somewhere, "pageable-copies", "not checked", "kind of host memory" },
	{ taking, "steady-allocation", "finding", "450000,,upper bound,9" },
	{ taking_at_first, "steady-allocation", "clear", "" },
	{ taxed, "compile-tax", "finding", "spends 40.20" },
	{ hardly_taxed, "compile-tax", "clear", "" },
	{ compiling, "recompilation", "finding", "90000,,measured,1" },
	{ compiling_at_first, "recompilation", "clear", "" },
	{ compiling_by_name, "recompilation", "finding", "80000,,measured,1" },
	{ compiling_by_name, "recompilation", "finding", "1 additional version of 1 function;" },
	{ compiling_by_name, "recompilation", "finding", "f (a.py:3): 2 compilations" },
	{ switching_versions, "recompilation", "note", "1 additional version of 1 function; the" },
	{ compiling_by_name, "compilation", "finding", "1510000,,measured,1" },
	{ compiling_by_name, "compilation", "finding", "1 compilation in 810.00 us" },
	{ compiling_by_name, "compilation", "finding", "apart from that: 1 kernel in 700.00 us" },
	{ even_steps, "compilation", "clear", "" },
	{ growing, "memory-growth", "finding", ",,26000000,measured,8" },
	{ growing, "memory-growth", "finding", "each step leaves 2.00 MB allocated" },
	{ growing, "memory-growth", "finding", "8 of 8 late steps left 2.00 MB; 26.00 MB of what" },
	{ growing, "memory-growth", "finding", "100 % of it by the path below" },
	{ growing_for_long, "memory-growth", "finding", ",,600000000,measured,466" },
	{ pinning, "pinned-memory-growth", "finding",
		"Pinned memory of the host grows: each step" },
	{ pinning, "pinned-memory-growth", "finding", "Free pinned buffers" },
	{ growing_shortly, "memory-growth", "not checked", "too few steps" },
	{ filling, "memory-growth", "clear", "" },
	{ one_large_step, "memory-growth", "clear", "" },
	{ even_steps, "memory-growth", "not checked", "the trace has no device memory" },
	{ one_large_step, "memory-spike", "finding", "Step 6 needs 4.5 times" },
	{ one_large_step, "memory-spike", "finding", ",,350000000,measured,1" },
	{ growing, "memory-spike", "clear", "" },
	{ fragmented, "memory-fragmentation", "note", ",,400000000,measured,1" },
	{ fragmented, "memory-spike", "clear", "" },
	{ one_large_step, "memory-fragmentation", "clear", "" },
	{ with_idle_cache, "idle-cache", "finding", ",,100000000,measured,1" },
	{ with_idle_cache, "memory-fragmentation", "clear", "" },
	{ with_large_first_batch, "idle-cache", "clear", "" },
	{ with_shared_segment, "idle-cache", "clear", "" },
	{ with_pinned_segment, "pinned-segments", "finding", ",,99000000,measured,1" },
	{ with_pinned_segment, "idle-cache", "clear", "" },
	{ with_shared_segment, "pinned-segments", "clear", "" },
	{ with_idle_cache, "pinned-segments", "clear", "" },
	{ with_dynamic_shapes, "dynamic-shapes", "finding", "13 different sizes" },
	{ with_dynamic_shapes, "idle-cache", "clear", "" },
	{ with_idle_cache, "dynamic-shapes", "clear", "" },
	{ fragmented, "dynamic-shapes", "not checked", "no segments" },
	{ with_refused_request, "memory-fragmentation", "finding",
		"50.00 MB failed although 80.00 MB were free inside segments: no gap was larger "
		"than 40.00 MB" },
	{ with_refused_request, "memory-fragmentation", "finding", ",,80000000,measured,1" },
	{ with_too_large_request, "memory-fragmentation", "clear", "" },
	{ with_library, "memory-outside-pytorch", "finding", ",,80000000,measured,1" },
	{ with_idle_cache, "memory-outside-pytorch", "clear", "" },
	{ beside_another_process, "other-process", "finding", "34" },
	{ alone_and_too_large, "other-process", "clear", "" },
	{ growing, "other-process", "clear", "" },
	{ oversubscribed, "managed-memory", "finding", "4.00 GB of device memory" },
	{ managed_that_fits, "managed-memory", "clear", "" },
	{ growing, "scalar-keeps-graph", "clear", "" },
	{ growing, "pinned-memory-growth", "clear", "" },
	{ pinning, "memory-growth", "clear", "" },
	{ growing, "activations-kept", "clear", "" },
	{ growing, "optimizer-state-twice", "not checked", "no optimizer" },
	{ only_ranges, "other-process", "not checked", "no allocations" },
	{ out_of_memory, "out-of-memory", "finding", ",,64000000,measured,1" },
	{ out_of_memory, "out-of-memory", "finding",
		"most of it was allocated by model: 400.00 MB" },
	{ growing, "out-of-memory", "clear", "" },
	{ bimodal, "kernel-variability", "finding", "bimodal: 2 typical values" },
	{ of_unknown_grid, "kernel-variability", "not checked", "the grids or the launches" },
	{ of_unknown_launch, "kernel-variability", "not checked", "the grids or the launches" },
	{ rare, "kernel-variability", "finding", "rare slow instances: 4 of 200" },
	{ throttled, "kernel-variability", "finding", "correlated with clock rate" },
	{ as_ever, "kernel-variability", "clear", "" },
	{ long_backward, "forward-backward", "finding", "9.0 times" },
	{ long_backward_beside, "forward-backward", "finding",
		"the run gets shorter hardly at all" },
	{ usual_backward, "forward-backward", "clear", "" },
	{ unlinked_backward, "forward-backward", "not checked", "does not link most of" },
	{ healthy, "forward-backward", "not checked", "the trace has no backward pass" },
	{ held_up, "unexplained-wait", "finding", "5600000,,upper bound,7" },
	{ slow_host, "unexplained-wait", "clear", "" },
	{ dear, "profiler-cost", "finding", "499.00" },
	{ dear, "profiler-cost", "finding", "where host figures and idle times are larger" },
	{ dear_end, "profiler-cost", "finding", "idle times of the GPU are not" },
	{ healthy, "profiler-cost", "clear", "" },
	{ loading, "profiler-cost", "clear", "" },
	{ loading, "cold-start", "finding", "loads kernels at their first use, for 499.00 us" },
	{ slow_first_call, "cold-start", "finding",
		"aten::mm: idle for 5.00 ms in the call of 5.00 ms at 100.00 us, later 52.00 us "
		"(median of 19)" },
	{ slow_first_call, "first calls", "class", "" },
	{ slow_first_call, "host-bound", "clear", "" },
	{ two_slow_first_calls, "cold-start", "finding", "8002000," },
	{ freeing_in_first_call, "first calls", "verdict", "The run is bound by first calls" },
	{ freeing_in_first_call, "cold-start", "finding",
		"aten::mm: idle for 5.00 ms in the call of 5.00 ms at 100.00 us, later 52.00 us" },
	{ freeing_in_first_call, "steady-allocation", "clear", "" },
	{ slow_first_launch, "first calls", "verdict", "" },
	{ slow_first_launch, "cold-start", "finding",
		"launch of k_once: idle for 8.00 ms in the call of 8.00 ms at 100.00 us, other "
		"launches 5 ns (median of 21)" },
	{ copies_within_the_gpu, "exposed-copies", "finding",
		"of 400.00 us of copies in 20 operations, 4.10 kB on average, 100 % is exposed" },
	{ copies_within_the_gpu, "exposed-copies", "finding", ",\"Copy less within the GPU" },
	{ copies_of_pinned_memory, "exposed-copies", "finding",
		",\"Overlap the copies from and to the host" },
	{ copies_of_pageable_memory, "exposed-copies", "clear", ",pageable-copies," },
	{ copies_beside_kernels, "exposed-copies", "clear", "" },
	{ slow_first_step, "cold-start", "finding", "slower than later ones: it takes " },
	{ slow_data_on_the_cpu, "data-loading", "finding", "Steps wait" },
	{ slow_data_on_the_cpu, "dominant-event", "clear", "" },
	{ an_outlier_launch, "first calls", "verdict", "bound by single slow launches" },
	{ an_outlier_launch, "cold-start", "finding",
		"launch of k_a: idle for 4.00 ms in the call of 4.00 ms at 1.66 ms (not its first "
		"launch), other launches 5 ns (median of 99)" },
	{ an_outlier_launch, "launch-bound", "clear", ",1000495," },
	{ a_late_first_launch, "first calls", "verdict", "" },
	{ a_late_first_launch, "cold-start", "finding", "at 1.66 ms, other launches 5 ns" },
	{ launches_that_are_slow_again_and_again, "cold-start", "clear", "" },
	{ launches_that_are_slow_again_and_again, "host", "verdict", "" },
	{ slow_calls, "cold-start", "not checked", "no steps were found" },
	{ only_ranges, "launch-bound", "not checked", "GPU work with timestamps" },
};

START_TEST(each_rule_speaks_where_it_should_and_nowhere_else)
{
	const struct rule_case *rule_case = &rule_cases[_i];
	const struct report_run run = run_report(
		rule_case->build(), "diagnose trace.bin -f csv --columns all --ascii");
	char head[64], *line, *end;

	ck_assert_int_eq(run.status, 0);
	/* Some classes of time have the name of a rule. */
	snprintf(head, sizeof head, ",%s,%s,", rule_case->rule, rule_case->kind);
	line = strstr(run.out, head);
	ck_assert_msg(line != NULL, "no row of %s in\n%.3000s", rule_case->rule, run.out);
	if ((end = strstr(line, "\r\n")))
		*end = '\0';
	snprintf(head, sizeof head, ",%s,%s,", rule_case->rule, rule_case->kind);
	ck_assert_msg(strncmp(line, head, strlen(head)) == 0, "%s is not %s: %s", rule_case->rule,
		rule_case->kind, line);
	ck_assert_msg(
		strstr(line, rule_case->part) != NULL, "no `%s` in %s", rule_case->part, line);
}
END_TEST

/* Two pauses of 5 ms before work in a, one of 8 ms before that in b: a has most of it, so the
 * moment that is shown is one of a's, though b's is the longest. */
START_TEST(the_suggested_time_is_one_at_the_node)
{
	static const char *const places[] = { "s", "a", "b", "a" };
	const uint64_t at[] = { 1000 * US, 6100 * US, 14200 * US, 19300 * US };
	struct program program = program_new();
	struct report_run run;

	for (unsigned i = 0; i < 4; i++) {
		build_push(program.builder, 1, at[i] - 3000, places[i]);
		kernel(&program, "k_a", at[i] - 1000, at[i], 100 * US);
		build_pop(program.builder, 1, at[i]);
	}
	run = run_report(program_end(&program, 30 * MS), "diagnose trace.bin --ascii");
	ck_assert_msg(strstr(run.out, "in 3 intervals of 1.00 ms or more,") &&
			      strstr(run.out, "the longest 8.00 ms, at\n              6.20 ms;") &&
			      strstr(run.out, "  where       a; 56 % of it; example at 1.10 ms\n"),
		"%s", run.out);
}
END_TEST

/* All-reduces of 4 ms in ten steps, and of 30 ms before the first one. */
static struct trace_builder *communication_before_steps(void)
{
	static const char *const reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
	struct program program = program_new();

	build_push(program.builder, 1, 1000, "setup");
	kernel(&program, reduce, 2000, 3000, 30 * MS);
	build_pop(program.builder, 1, 4000);
	for (unsigned step = 0; step < 10; step++) {
		const uint64_t begin = 31 * MS + step * 2 * MS;
		char name[32];

		snprintf(name, sizeof name, "ProfilerStep#%u", step);
		build_push(program.builder, 1, begin, name);
		kernel(&program, names[step % 5], begin + 1000, begin + 2000, 1500 * US);
		build_push(program.builder, 1, begin + 1000, "reduce");
		kernel(&program, reduce, begin + 1100, begin + 2000 + 1500 * US, 400 * US);
		build_pop(program.builder, 1, begin + 2000);
		build_pop(program.builder, 1, begin + 2 * MS - 100);
	}
	return program_end(&program, 60 * MS);
}

/* The cost is that of the steps, so the place is the one with most of it there. */
START_TEST(the_place_of_a_cost_in_steps_is_in_steps)
{
	const struct report_run run = run_report(
		communication_before_steps(), "diagnose trace.bin --ascii --width 120");

	ck_assert_msg(
		strstr(run.out,
			"2.0 % of the steady-state steps) of run time, and 4.00 ms of GPU time") &&
			strstr(run.out, "  where       ProfilerStep#* / reduce; 100 % of it\n"),
		"%.2000s", run.out);
}
END_TEST

/* Of the 500 ms before the first kernel, 300 are in a range with a call of 100 ms, of which half is
 * before the range, 20 in another one, and 110 in calls outside of them, of which one is inside
 * another one. */
START_TEST(the_time_before_the_first_operation_is_divided)
{
	struct program program = program_new();
	struct report_run run;

	build_push(program.builder, 1, 100 * MS, "init");
	build_api(program.builder, "cudaHostRegister", 50 * MS, 150 * MS);
	build_pop(program.builder, 1, 400 * MS);
	build_api(program.builder, "cuMemAlloc", 410 * MS, 450 * MS);
	build_api(program.builder, "cudaMalloc", 405 * MS, 465 * MS);
	build_push(program.builder, 1, 470 * MS, "send");
	build_pop(program.builder, 1, 490 * MS);
	for (unsigned i = 0; i < 50; i++)
		kernel(&program, names[i % 5], 500 * MS + i * 10 * MS - 1000,
			500 * MS + i * 10 * MS, 10 * MS);
	run = run_report(
		program_end(&program, 1100 * MS), "diagnose trace.bin --ascii --width 400");
	ck_assert_msg(
		strstr(run.out, "before the first GPU operation 500.00 ms: init 300.00 ms (of it "
				"cudaHostRegister 50.00 ms), send 20.00 ms, CUDA calls in no range "
				"110.00 ms (of it cudaMalloc 60.00 ms, cudaHostRegister 50.00 ms), "
				"elsewhere 70.00 ms"),
		"%.2000s", run.out);
}
END_TEST

/* A program that is shown by the command of each of its findings. */
START_TEST(the_command_of_each_finding_works)
{
	const struct report_run run = run_report(
		rule_cases[_i].build(), "diagnose trace.bin --brief");
	static const char mark[] = "  shown by: pperf-report ";

	ck_assert_int_eq(run.status, 0);
	for (char *at = run.out; (at = strstr(at, mark));) {
		char *const end = strchr(at, '\n');
		struct report_run shown;

		ck_assert_ptr_nonnull(end);
		*end = '\0';
		shown = run_report(NULL, at + strlen(mark));
		ck_assert_msg(shown.status == 0 && strlen(shown.out) > 0, "%s: %d %s", at,
			shown.status, shown.err);
		at = end + 1;
	}
}
END_TEST

/* Without a GPU, 600 of 1000 us are the compiler's, most of it in one range that it calls. */
START_TEST(compilation_bounds_a_run_without_a_gpu)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 1 * US, "train");
	build_push(builder, 1, 10 * US, "torch.compile f (a.py:3), frame 0, version 0");
	build_push(builder, 1, 20 * US, "async_compile.wait (dynamo_timed)");
	build_pop(builder, 1, 600 * US);
	build_pop(builder, 1, 610 * US);
	build_push(builder, 1, 620 * US, "compute");
	build_pop(builder, 1, 900 * US);
	build_push(builder, 1, 910 * US, "store");
	build_pop(builder, 1, 950 * US);
	build_pop(builder, 1, 1000 * US);
	run = run_report(builder, "trace.bin --ascii --width 200");
	ck_assert_msg(strstr(run.out, "verdict   The run is bound by compilation: torch.compile "
				      "takes 600.00 us of 1.00 ms (60.0 %). (confidence: high)\n"),
		"%s", run.out);
	ck_assert_msg(!strstr(run.out, "dominant-event"), "%s", run.out);
	run = run_report(NULL, "trace.bin -f json");
	ck_assert_ptr_nonnull(strstr(run.out, "The run is bound by compilation: torch.compile"));
}
END_TEST

/* Two rules are about the time of one class: that without a finding has not found nothing. */
START_TEST(a_class_in_another_finding_is_not_nothing)
{
	const struct report_run run = run_report(crumbs(), "diagnose trace.bin --ascii");

	ck_assert_ptr_nonnull(strstr(run.out, "\n1. launch-bound: "));
	ck_assert_ptr_nonnull(strstr(run.out,
		"\nfound above     host-bound: its time is in the finding launch-bound\n"));
	ck_assert_ptr_null(strstr(run.out, "nothing found   host-bound"));
	ck_assert_ptr_null(
		strstr(run_report(NULL, "diagnose trace.bin --brief").out, "by: host-bound"));
}
END_TEST

START_TEST(of_a_healthy_program_nothing_stands_out)
{
	const struct report_run run = run_report(healthy(), "diagnose trace.bin --ascii");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out,
		"verdict   The run is bound by the GPU's kernels, which compute for 100 % of the\n"
		"          time.\n"
		"  evidence    1.00 ms from the first GPU operation to the last, of a run of\n"
		"              1.20 ms: compute 100 %; critical path: host 0.0 %, GPU work 100 %\n"
		"  confidence  high: measured; these shares add up to the time of the GPUs\n"
		"  next        The largest kernels, by share of all GPU time: k_a 20.0 % in\n"
		"              train; k_b 20.0 % in train; k_c 20.0 % in train.\n"
		"  shown by    pperf-report categories trace.bin\n"
		"no findings\n"
		"nothing found   launch-bound, host-bound, dominant-event, exposed-communication,\n"
		"                collective-waits, tiny-calls, small-grids, copy-before-gemm,\n"
		"                attribute-queries, synchronisation, blocking-calls,\n"
		"                pageable-copies, exposed-copies, steady-allocation, compile-tax,\n"
		"                compilation, recompilation, kernel-variability, event-wait,\n"
		"                unexplained-wait, profiler-cost\n"
		"not checked     the peak rates of the GPU are not known: tensor-cores-unused\n"
		"                the trace has no PyTorch DataLoader: data-loading\n"
		"                no steps were found in the trace (see --step-marker): cold-start\n"
		"                the trace has no device memory: memory-growth,\n"
		"                scalar-keeps-graph, pinned-memory-growth, memory-spike,\n"
		"                memory-fragmentation, pinned-segments, dynamic-shapes,\n"
		"                idle-cache, memory-outside-pytorch, optimizer-state-twice,\n"
		"                activations-kept, managed-memory\n"
		"                the trace has no allocations: other-process, out-of-memory\n"
		"                the trace has no backward pass: forward-backward\n"
		"                the trace has no CPU samples (PPERF_SAMPLE=99): python-bound,\n"
		"                garbage-collection, lock-wait, oversubscribed-cores, kernel-time\n");
}
END_TEST

/* Idle time in a DataLoader has one cause, the same in both views, and one finding. */
START_TEST(waiting_for_data_has_one_name)
{
	struct report_run run = run_report(slow_data(), "idle trace.bin -f csv");

	ck_assert_msg(strstr(run.out, ",cause,data loading,"), "%s", run.out);
	ck_assert_msg(strstr(run.out, ",place,data loading,ProfilerStep#*/enumerate(DataLoader)#"),
		"%s", run.out);
	run = run_report(NULL, "diagnose trace.bin -f csv");
	ck_assert_msg(strstr(run.out, "data loading,class,"), "%s", run.out);
	ck_assert_ptr_nonnull(strstr(run.out, "data-loading,finding,"));
	ck_assert_ptr_nonnull(strstr(run.out, "launch-bound,clear,"));
}
END_TEST

/* What costs less than 1 % has one sentence, after everything else. */
START_TEST(what_costs_little_is_said_briefly)
{
	const struct report_run run = run_report(steps(9 * MS, ask), "diagnose trace.bin --ascii");
	const char *brief = strstr(run.out, "\n-  attribute-queries: up to 162.00 us (0.6 % of");

	ck_assert_msg(brief && strstr(run.out, "1. cold-start: 9.00 ms") &&
			      !strstr(brief, "  evidence") && strstr(brief, "nothing found"),
		"%.3000s", run.out);
}
END_TEST

START_TEST(little_that_could_be_checked_is_no_health)
{
	ck_assert_ptr_nonnull(strstr(run_report(only_ranges(), "diagnose trace.bin").out,
		"no findings in 5 of 44 rules checked\n"));
	ck_assert_ptr_nonnull(strstr(run_report(NULL, "diagnose trace.bin --brief").out,
		"no findings in 5 of 44 rules checked\n"));
	ck_assert_ptr_nonnull(strstr(run_report(NULL, "diagnose trace.bin --width 58").out,
		"no findings in 5 of 44 rules checked\n"));
	for (int columns = 20; columns < 36; columns += 15) {
		char words[64];

		snprintf(words, sizeof words, "diagnose trace.bin --width %d", columns);
		ck_assert_ptr_nonnull(strstr(
			run_report(NULL, words).out, "no findings in\n  5 of 44 rules checked\n"));
	}
}
END_TEST

/* What costs most comes first. */
START_TEST(findings_are_ranked_by_what_they_cost)
{
	const struct report_run run = run_report(crumbs(), "diagnose trace.bin --ascii");
	const char *first = strstr(
			   run.out, "1. launch-bound: up to 1.19 ms (74.9 % of the GPU span)\n"),
		   *second = strstr(
			   run.out, "2. tiny-calls: up to 400.00 us (25.1 % of the GPU span)\n");

	ck_assert_msg(first && second && first < second, "%s", run.out);
	ck_assert_ptr_nonnull(strstr(run_report(NULL, "diagnose trace.bin -n 1 --ascii").out,
		"not shown: 1 more (--top 0)\n"));
}
END_TEST

/* Running out of memory comes first of all, what costs bytes after what costs time. */
START_TEST(findings_about_bytes_have_their_place)
{
	const struct report_run run = run_report(out_of_memory(), "diagnose trace.bin --ascii");
	const char *first = strstr(run.out, "1. out-of-memory: 64.00 MB\n"),
		   *time = strstr(run.out, ". cold-start: 9.00 ms"),
		   *bytes = strstr(run.out, ". memory-growth: 26.00 MB\n");

	ck_assert_msg(first && time && bytes && first < time && time < bytes, "%s", run.out);
}
END_TEST

/* The cost of measuring is not known by step, so --steps does not hide it. */
START_TEST(what_measuring_costs_is_of_the_whole_run)
{
	struct trace_builder *builder = slow_host_after_a_long_start();
	struct trace_overhead *overhead = build_record(
		builder, 9, TRACE_OVERHEAD, sizeof *overhead, 401 * MS);

	overhead->start_ns = BUILDER_START_UNIX_NS + 1000;
	overhead->end_ns = BUILDER_START_UNIX_NS + 7 * MS + 1000;
	ck_assert_ptr_nonnull(strstr(
		run_report(builder, "diagnose trace.bin --steps 0-9 -f csv --columns all").out,
		",profiler-cost,clear,"));
}
END_TEST

/* Names and a path as long as they can be, in each finding. */
START_TEST(brief_is_brief)
{
	static char name[40001];
	struct program program = program_new();
	struct report_run run;

	for (size_t i = 0; i + 1 < sizeof name; i++)
		name[i] = i % 7 ? (char)('a' + i % 26) : '\x1b';
	build_push(program.builder, 1, 100, name);
	for (unsigned i = 0; i < 200; i++)
		kernel(&program, i % 4 ? name : names[i % 5], 8 * US + i * 8 * US,
			9 * US + i * 8 * US, 2 * US);
	build_pop(program.builder, 1, 2 * MS);
	run = run_report(program_end(&program, 3 * MS), "diagnose trace.bin --brief");
	ck_assert_uint_le(strlen(run.out), 8192);
	ck_assert_ptr_null(strchr(run.out, '\x1b'));
	ck_assert_ptr_nonnull(strstr(run.out, "launch-bound"));
	run = run_report(NULL, "diagnose trace.bin --brief -f json");
	ck_assert_uint_le(strlen(run.out), 8192);
	ck_assert_ptr_nonnull(strstr(run.out, "{\"schema\": \"pperf.diagnose-brief/1\", "
					      "\"findings\": [{\"rule\":\"launch-bound\""));
	ck_assert_ptr_nonnull(strstr(run.out, "\"not_checked\": [\"tensor-cores-unused\""));
}
END_TEST

/* Two programs of one run, both with work at that time; of ranks each has a GPU of its own. */
START_TEST(another_process_of_the_run_is_named)
{
	struct trace_builder *own = held_up(), *other = slow_host();
	struct report_run run;

	builder_header(other)->pid = 200;
	builder_write(other, "other.bin");
	builder_free(other);
	run = run_report(own, "diagnose trace.bin other.bin -f csv --columns all");
	ck_assert_ptr_nonnull(
		strstr(run.out, ",unexplained-wait,finding,\"Process 200 of the same run"));
	ck_assert_ptr_nonnull(strstr(run.out, "5600000,,upper bound,1,,medium,"));
	other = slow_host();
	builder_header(other)->pid = 200;
	build_meta(other, "rank", "1");
	builder_write(other, "other.bin");
	builder_free(other);
	own = healthy();
	build_meta(own, "rank", "0");
	run = run_report(own, "diagnose trace.bin other.bin -f csv --columns all");
	ck_assert_ptr_nonnull(strstr(run.out, ",unexplained-wait,clear,"));
}
END_TEST

START_TEST(brief_is_of_diagnose)
{
	ck_assert_int_eq(run_report(healthy(), "tree trace.bin --brief").status, 64);
	ck_assert_int_eq(
		run_report(NULL, "diagnose trace.bin --brief -f csv --columns all").status, 64);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("diagnose");
	TCase *tests = tcase_create("diagnose");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, run_report_setup, run_report_teardown);
	tcase_add_loop_test(tests, each_rule_speaks_where_it_should_and_nowhere_else, 0,
		sizeof rule_cases / sizeof *rule_cases);
	tcase_add_test(tests, the_suggested_time_is_one_at_the_node);
	tcase_add_test(tests, the_place_of_a_cost_in_steps_is_in_steps);
	tcase_add_test(tests, the_time_before_the_first_operation_is_divided);
	tcase_add_loop_test(tests, the_command_of_each_finding_works, 0,
		sizeof rule_cases / sizeof *rule_cases);
	tcase_add_test(tests, of_a_healthy_program_nothing_stands_out);
	tcase_add_test(tests, a_class_in_another_finding_is_not_nothing);
	tcase_add_test(tests, compilation_bounds_a_run_without_a_gpu);
	tcase_add_test(tests, little_that_could_be_checked_is_no_health);
	tcase_add_test(tests, what_costs_little_is_said_briefly);
	tcase_add_test(tests, waiting_for_data_has_one_name);
	tcase_add_test(tests, findings_are_ranked_by_what_they_cost);
	tcase_add_test(tests, findings_about_bytes_have_their_place);
	tcase_add_test(tests, what_measuring_costs_is_of_the_whole_run);
	tcase_add_test(tests, brief_is_brief);
	tcase_add_test(tests, another_process_of_the_run_is_named);
	tcase_add_test(tests, brief_is_of_diagnose);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
