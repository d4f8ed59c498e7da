/* SPDX-License-Identifier: MIT
 * test_collectives.c: the collectives of a process, read in the pass that makes the profile and in
 * one of their own.
 */
#include "report/analysis/collective_calls.h"
#include "report/analysis/ranks/collectives.h"
#include "tests/support/view_test.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH "trace.bin"

static const struct options usual = { .device = -1,
	.rank = -1,
	.min_percent = -1,
	.format = FORMAT_TEXT,
	.demangle = DEMANGLE_SHORT,
	.no_cache = true,
	.metric = METRIC_CPU };

static void add_collectives(const struct options *options, struct shared_pass *pass)
{
	(void)options;
	collectives_read_in(pass);
}

static long long relative(int64_t unix_ns)
{
	return (long long)(unix_ns - (int64_t)BUILDER_START_UNIX_NS);
}

/* Writes a line for each collective: `all-reduce 1/7 100-160 launched 10 requested 10 exposed 60, 0
 * bytes`. The first two numbers are of its communicator: the key, or else the CUDA stream. */
static void put_lines(FILE *out, const struct collectives *collectives)
{
	for (size_t i = 0; i < collectives->count; i++) {
		const struct collective *one = &collectives->all[i];
		const struct communicator *of = &collectives->communicators[one->communicator];

		fprintf(out,
			"%s %s%llu %lld-%lld launched %lld requested %lld exposed %llu, %llu "
			"bytes\n",
			collective_name((enum collective_kind)one->kind), of->key ? "key " : "",
			of->key ? (unsigned long long)of->key : of->stream, relative(one->start_ns),
			relative(one->end_ns), (long long)one->launched_ns,
			(long long)one->requested_ns, (unsigned long long)one->exposed_ns,
			(unsigned long long)one->bytes);
	}
	fprintf(out, "untimed %llu\n", (unsigned long long)collectives->untimed);
}

/* Returns the lines of the trace, which the caller frees. `joins`: the collectives are read in the
 * pass that makes the profile. */
static char *lines_of(bool joins)
{
	struct shared_pass pass = { .add = joins ? add_collectives : NULL };
	const struct process_join join = shared_pass_join(&pass);
	struct categories *categories = categories_read(NULL);
	struct process process = { .path = (char *)PATH, .categories = categories, .join = &join };
	const struct communicator_requests *requests;
	struct collectives collectives;
	char error[READER_ERROR_BYTES], *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	ck_assert_msg(process_read(&process, &usual, error), "%s", error);
	process.join = NULL;
	collectives = collectives_take(&process);
	put_lines(out, &collectives);
	requests = &collective_calls_of(&process)->requests;
	for (size_t i = 0; i < requests->count; i++)
		fprintf(out, "%llu requests of %llu\n", (unsigned long long)requests->all[i].count,
			(unsigned long long)requests->all[i].key);
	fclose(out);
	collectives_free(&collectives);
	process_close(&process);
	categories_free(categories);
	free(process.command);
	return text;
}

/* Both ways of reading find `wanted`. Frees the builder. */
static void finds(struct trace_builder *builder, const char *wanted)
{
	builder_write(builder, PATH);
	builder_free(builder);
	for (int joins = 0; joins < 2; joins++) {
		char *found = lines_of(joins);

		ck_assert_str_eq(found, wanted);
		free(found);
	}
}

static struct trace_builder *with_gpu(const char *name)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, name);
	return builder;
}

/* Builds a kernel on a CUDA stream of its own. */
static void add_kernel(struct trace_builder *builder, uint64_t at, uint64_t correlation,
	const char *name, uint64_t start, uint64_t end, uint32_t stream)
{
	build_kernel(builder, 9, at, correlation, name, start, end)->gpu.stream = stream;
}

START_TEST(kernels_have_the_times_of_their_launches)
{
	struct trace_builder *builder = with_gpu("a GPU");

	build_push(builder, 1, 10, "step");
	build_launch(builder, 1, 20, 1);
	build_launch(builder, 1, 30, 2);
	build_launch(builder, 1, 40, 3);
	build_pop(builder, 1, 50);
	add_kernel(builder, 900, 1, "gemm", 100, 130, 7);
	add_kernel(builder, 900, 2, "ncclDevKernel_AllReduce", 120, 180, 8);
	add_kernel(builder, 900, 3, "ncclDevKernel_AllGather", 0, 0, 8);
	finds(builder, "all-reduce 8 120-180 launched 25 requested 25 exposed 50, 0 bytes\n"
		       "untimed 1\n");
}
END_TEST

START_TEST(a_record_may_come_before_its_launch_or_without_one)
{
	struct trace_builder *builder = with_gpu("a GPU");

	build_launch(builder, 1, 20, 1);
	add_kernel(builder, 30, 2, "ncclDevKernel_AllReduce", 25, 28, 8);
	add_kernel(builder, 31, 3, "ncclDevKernel_AllReduce", 28, 29, 8);
	build_launch(builder, 1, 40, 2);
	add_kernel(builder, 900, 1, "ncclDevKernel_AllReduce", 120, 180, 8);
	finds(builder, "all-reduce 8 25-28 launched 35 requested 35 exposed 3, 0 bytes\n"
		       "all-reduce 8 28-29 launched -1 requested -1 exposed 1, 0 bytes\n"
		       "all-reduce 8 120-180 launched 15 requested 15 exposed 60, 0 bytes\n"
		       "untimed 0\n");
}
END_TEST

/* The record of the kernel comes while the call of NCCL has not returned. */
START_TEST(a_call_says_the_size_of_a_kernel_that_ended_in_it)
{
	struct trace_builder *builder = with_gpu("a GPU");

	build_communicator(builder, 5, 4, 0);
	build_push(builder, 1, 10, "step");
	build_launch(builder, 1, 96, 1);
	add_kernel(builder, 98, 1, "ncclDevKernel_AllReduce", 96, 97, 8);
	build_collective(builder, 99, TRACE_NCCL_ALL_REDUCE, 1000, 5);
	build_pop(builder, 1, 100);
	builder_write(builder, PATH);
	output_has(run_report(NULL, "overlap trace.bin -f csv --columns name,bytes").out,
		"step,1000\r\n");
	finds(builder, "all-reduce key 5 96-97 launched 91 requested 91 exposed 1, 1000 bytes\n"
		       "untimed 0\n1 requests of 5\n");
}
END_TEST

/* On the simulated device a collective begins with the call in which it waits, or else with the
 * innermost range around its launch. */
START_TEST(a_collective_can_wait_in_its_call)
{
	struct trace_builder *builder = with_gpu("pperf simulated device");

	build_communicator(builder, 5, 4, 0);
	build_push(builder, 1, 10, "step");
	build_push(builder, 1, 12, "all_reduce");
	build_launch(builder, 1, 29, 1);
	build_pop(builder, 1, 30);
	build_push(builder, 1, 31, "optimizer");
	build_pop(builder, 1, 32);
	build_launch(builder, 1, 97, 2);
	build_collective(builder, 99, TRACE_NCCL_ALL_REDUCE, 1000, 5);
	build_launch(builder, 1, 110, 3);
	build_pop(builder, 1, 120);
	build_launch(builder, 1, 129, 4);
	for (uint64_t i = 1; i <= 4; i++)
		add_kernel(builder, 900, i, "ncclDevKernel_AllReduce", 200 * i, 200 * i + 60, 8);
	finds(builder, "all-reduce 8 10-660 launched 105 requested 10 exposed 60, 0 bytes\n"
		       "all-reduce 8 12-260 launched 24 requested 12 exposed 60, 0 bytes\n"
		       "all-reduce 8 800-860 launched 124 requested 124 exposed 60, 0 bytes\n"
		       "all-reduce key 5 91-460 launched 92 requested 91 exposed 60, 1000 bytes\n"
		       "untimed 0\n1 requests of 5\n");
}
END_TEST

/* The pass begins again at the tensor, which shows that others were there before: a kernel and a
 * part of a group have been read then. */
START_TEST(a_pass_that_begins_again_counts_nothing_twice)
{
	struct trace_builder *builder = with_gpu("a GPU");

	build_communicator(builder, 5, 4, 0);
	build_collective(builder, 90, TRACE_NCCL_ALL_REDUCE, 1000, 5)->head.flags =
		TRACE_COLLECTIVE_GROUPED;
	build_launch(builder, 1, 96, 1);
	add_kernel(builder, 97, 1, "ncclDevKernel_AllReduce", 120, 180, 8);
	build_tensor(builder, 1, 98, 0x1000, 100, 1100, 4096);
	build_collective(builder, 99, TRACE_NCCL_GROUP, 0, 0)->calls = 1;
	build_launch(builder, 1, 100, 2);
	add_kernel(builder, 900, 2, "gemm", 300, 400, 7);
	finds(builder, "all-reduce key 5 120-180 launched 91 requested 91 exposed 60, 1000 bytes\n"
		       "untimed 0\n2 requests of 5\n");
}
END_TEST

/* Two threads launched at the same time. */
START_TEST(a_range_of_another_thread_is_not_around_a_launch)
{
	struct trace_builder *builder = with_gpu("pperf simulated device");

	build_push(builder, 1, 10, "one");
	build_push(builder, 2, 15, "other");
	build_launch(builder, 1, 29, 1);
	build_launch(builder, 2, 29, 2);
	build_pop(builder, 1, 30);
	build_pop(builder, 2, 31);
	add_kernel(builder, 900, 1, "ncclDevKernel_AllReduce", 200, 260, 7);
	add_kernel(builder, 900, 2, "ncclDevKernel_AllReduce", 300, 360, 8);
	finds(builder, "all-reduce 7 10-260 launched 24 requested 10 exposed 60, 0 bytes\n"
		       "all-reduce 8 15-360 launched 24 requested 15 exposed 60, 0 bytes\n"
		       "untimed 0\n");
}
END_TEST

static void build_start(struct trace_builder *builder, uint64_t at, uint64_t id, const char *name)
{
	const uint32_t text = build_name(builder, name);
	struct trace_range *record = build_record(builder, 1, TRACE_START, sizeof *record, at);

	record->id = id;
	record->name = text;
}

static void build_end(struct trace_builder *builder, uint64_t at, uint64_t id)
{
	struct trace_end *record = build_record(builder, 2, TRACE_END, sizeof *record, at);

	record->id = id;
}

START_TEST(without_kernels_ranges_are_the_collectives)
{
	struct trace_builder *builder = builder_new();

	build_start(builder, 10, 1, "gloo:all_reduce");
	build_start(builder, 20, 2, "load");
	build_start(builder, 30, 3, "gloo:broadcast");
	build_end(builder, 40, 1);
	build_end(builder, 50, 2);
	finds(builder, "all-reduce 0 10-40 launched -1 requested 10 exposed 0, 0 bytes\n"
		       "untimed 1\n");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { kernels_have_the_times_of_their_launches,
		a_record_may_come_before_its_launch_or_without_one,
		a_call_says_the_size_of_a_kernel_that_ended_in_it,
		a_collective_can_wait_in_its_call, a_pass_that_begins_again_counts_nothing_twice,
		a_range_of_another_thread_is_not_around_a_launch,
		without_kernels_ranges_are_the_collectives };

	return run_view_suite("collectives", tests, sizeof tests / sizeof *tests);
}
