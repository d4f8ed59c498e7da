/* SPDX-License-Identifier: MIT
 * test_shared_pass.c: analyses find the same in the pass that makes the profile as in one of their
 * own.
 */
#include "report/analysis/activities.h"
#include "report/analysis/first_calls.h"
#include "report/analysis/host_events.h"
#include "report/analysis/host_ranges.h"
#include "report/analysis/memory_waste.h"
#include "report/analysis/step_stats.h"
#include "tests/support/kept_program.h"
#include "tests/support/run_report.h"
#include "tests/support/training_trace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "trace.bin"
#define STEPS 8u

static const struct options usual = { .device = -1,
	.rank = -1,
	.min_percent = -1,
	.format = FORMAT_JSON,
	.demangle = DEMANGLE_SHORT,
	.no_cache = true,
	.metric = METRIC_CPU };

static void add_all(const struct options *options, struct shared_pass *pass)
{
	(void)options;
	host_events_keep_in(pass);
	activities_keep_in(pass);
	step_table_read_in(pass);
	if (pass->process->profile->is_new)
		memory_waste_try_in(pass);
	else
		memory_waste_read_in(pass);
}

/* Reads the trace. `joins`: the analyses are in the pass that makes the profile. */
static void read_process(struct process *process, bool joins)
{
	struct shared_pass pass = { .add = joins ? add_all : NULL };
	const struct process_join join = shared_pass_join(&pass);
	char error[READER_ERROR_BYTES];

	*process = (struct process){
		.path = (char *)PATH, .categories = categories_read(NULL), .join = &join
	};
	ck_assert_msg(process_read(process, &usual, error), "%s", error);
	process->join = NULL;
}

/* Returns how many analyses have yet to read the trace, and lets them. */
static unsigned read_rest(struct process *process)
{
	struct shared_pass pass = { .process = process };
	unsigned count;

	add_all(&usual, &pass);
	count = pass.count;
	shared_pass_run(&pass);
	return count;
}

static void free_process(struct process *process)
{
	process_close(process);
	categories_free((struct categories *)process->categories);
	free(process->command);
}

static void put_activities(FILE *out, struct process *process)
{
	struct activities *activities = activities_read(process);
	const struct activity *one;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities)) {
		struct activity copy = *one;
		const struct string_view name = string_table_get(process->texts, one->name);

		copy.name = 0; /* other texts may have come before */
		fwrite(&copy, sizeof copy, 1, out);
		fwrite(name.bytes, name.length, 1, out);
	}
}

static void put_host_event(void *context, const struct host_event *event)
{
	fwrite(event, sizeof *event, 1, context);
}

static void put_steps(FILE *out, struct process *process)
{
	const struct step_table *table = step_table_of(process);

	for (size_t i = 0; i < table->count; i++) {
		struct step_stats step = table->steps[i];

		step.step = NULL;
		fwrite(&step, sizeof step, 1, out);
	}
}

static void put_waste(FILE *out, struct process *process)
{
	struct memory_waste waste = *memory_waste_of(process);

	fprintf(out, "%zu segments, %llu tensors at %llu;", waste.end->segment_count,
		(unsigned long long)waste.end->figures.tensors,
		(unsigned long long)waste.end->at_ns);
	waste.end = NULL;
	waste.moments = (struct memory_moments){ .count = 0 };
	fwrite(&waste, sizeof waste, 1, out);
}

/* Returns what the analyses found as bytes, which the caller frees. */
static char *found_in(struct process *process, size_t *bytes)
{
	const struct host_ranges *ranges = host_ranges_of(process);
	const struct first_calls *first = first_calls_of(process);
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);
	const struct host_event_sink sink = { .context = out, .add = put_host_event };

	put_activities(out, process);
	put_steps(out, process);
	put_waste(out, process);
	fwrite(ranges->ranges, sizeof *ranges->ranges, ranges->count, out);
	for (size_t i = 0; i < first->count; i++)
		fwrite(&first->calls[i].begin_ns, 16, 1, out);
	if (host_events_of(process))
		host_events_visit(host_events_of(process), &sink);
	fclose(out);
	return text;
}

/* Reads the trace in both ways. Returns how many analyses had to read it again after the pass that
 * makes the profile. Frees the builder. */
static unsigned compare_ways(struct trace_builder *builder)
{
	struct process joined, apart;
	size_t joined_bytes, apart_bytes;
	char *of_joined, *of_apart;
	unsigned rest;

	builder_write(builder, PATH);
	builder_free(builder);
	read_process(&joined, true);
	read_process(&apart, false);
	rest = read_rest(&joined);
	ck_assert_uint_gt(read_rest(&apart), 3);
	of_joined = found_in(&joined, &joined_bytes);
	of_apart = found_in(&apart, &apart_bytes);
	ck_assert_uint_gt(joined_bytes, 1000);
	ck_assert_uint_eq(joined_bytes, apart_bytes);
	ck_assert(!memcmp(of_joined, of_apart, joined_bytes));
	free(of_joined);
	free(of_apart);
	free_process(&joined);
	free_process(&apart);
	unlink(PATH);
	return rest;
}

/* A training program with a segment, and with tensors in each step. `before`: bytes of tensors that
 * were allocated before the trace began. */
static struct training train_with_memory(uint64_t before)
{
	struct training training = training_new();
	struct trace_builder *builder = training.builder;
	uint64_t address = 0x100000, held = before;

	build_device(builder, 0, "GPU");
	build_alloc(builder, training.stream, ++training.now, 0x100000, 64 << 20);
	training.correlation = 1;
	for (unsigned step = 0; step < STEPS; step++) {
		build_push(builder, training.stream, ++training.now, "enumerate(DataLoader)#next");
		build_pop(builder, training.stream, ++training.now);
		train_step(&training, "Net");
		held += 2 << 20;
		build_tensor(
			builder, training.stream, training.now, address, 2 << 20, held, 64 << 20);
		address += 2 << 20;
	}
	return training;
}

static void add_kernels(struct training *training)
{
	for (uint64_t id = 1; id <= training->correlation; id++)
		build_kernel(training->builder, 9, training->now + id, id,
			id % 2 ? "gemm" : "ncclAllReduce", 100 + 2000000 * id,
			160 + 2000000 * id + id % 3);
}

START_TEST(one_pass_finds_what_two_find)
{
	struct training training = train_with_memory(0);

	training.now += 100;
	build_tensor(training.builder, training.stream, training.now, 0x100000, -(2 << 20),
		(STEPS - 1) * (UINT64_C(2) << 20), 64 << 20);
	add_kernels(&training);
	ck_assert_uint_eq(compare_ways(training.builder), 0);
}
END_TEST

START_TEST(a_pass_that_begins_again_finds_the_same)
{
	struct training training = train_with_memory(10 << 20);

	training.now += 100;
	build_tensor(training.builder, training.stream, training.now, 0x100000, -(2 << 20),
		(STEPS + 4) * (UINT64_C(2) << 20), 64 << 20);
	add_kernels(&training);
	ck_assert_uint_eq(compare_ways(training.builder), 0);
}
END_TEST

START_TEST(memory_that_ends_elsewhere_is_read_in_another_pass)
{
	ck_assert_uint_eq(compare_ways(kept_program()), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shared_pass");
	TCase *the_case = tcase_create("shared_pass");
	SRunner *runner;
	int failed;

	tcase_set_timeout(the_case, 60);
	tcase_add_test(the_case, one_pass_finds_what_two_find);
	tcase_add_test(the_case, a_pass_that_begins_again_finds_the_same);
	tcase_add_test(the_case, memory_that_ends_elsewhere_is_read_in_another_pass);
	suite_add_tcase(suite, the_case);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
