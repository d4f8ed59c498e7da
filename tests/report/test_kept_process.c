/* SPDX-License-Identifier: MIT
 * test_kept_process.c: the profile of a trace as bytes and back, and damaged bytes, which are
 * refused or read within bounds.
 */
#include "report/analysis/sample_cells.h"
#include "report/base/alloc.h"
#include "report/run/kept_process.h"
#include "report/table/column.h"
#include "tests/support/kept_program.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define PATH "trace.bin"

static const struct options usual = { .device = -1,
	.rank = -1,
	.min_percent = -1,
	.format = FORMAT_JSON,
	.demangle = DEMANGLE_SHORT,
	.metric = METRIC_CPU };

static void open_process(struct process *process)
{
	char error[READER_ERROR_BYTES];

	*process = (struct process){ .path = (char *)PATH, .categories = categories_read(NULL) };
	ck_assert_msg(process_open(process, error), "%s", error);
}

/* Writes the trace and returns its profile as bytes. */
static char *encode(struct process *process, size_t *bytes)
{
	char *kept = NULL, error[READER_ERROR_BYTES];
	FILE *file;

	*process = (struct process){ .path = (char *)PATH, .categories = categories_read(NULL) };
	ck_assert_msg(process_read(process, &usual, error), "%s", error);
	file = open_memstream(&kept, bytes);
	ck_assert(kept_process_encode(process, file));
	fclose(file);
	return kept;
}

static char *encode_program(struct process *process, size_t *bytes)
{
	struct trace_builder *builder = kept_program();

	builder_write(builder, PATH);
	builder_free(builder);
	return encode(process, bytes);
}

static bool decode(struct process *process, const char *kept, size_t bytes)
{
	FILE *file = fmemopen((char *)kept, bytes ? bytes : 1, "rb");
	const bool good = kept_process_decode(process, &usual, file, bytes);

	fclose(file);
	return good;
}

static void free_process(struct process *process)
{
	categories_free((struct categories *)process->categories);
	process->categories = NULL;
	process_close(process);
	free(process->command);
}

/* Forgets what was decoded, but not the trace. */
static void forget(struct process *process)
{
	profile_free(process->profile);
	steps_free(process->steps);
	timeline_free(process->timeline);
	process->profile = NULL;
	process->steps = NULL;
	process->timeline = NULL;
}

/* Computes all columns of all nodes, which visits what a view reads. Returns a sum of them. */
static uint64_t use_tree(struct process *process)
{
	const struct tree *tree = process->profile->tree;
	const struct rows rows = { .count = 0 };
	uint64_t sum = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct row row = tree_row(process, tree, id);

		for (size_t i = 0; i < all_column_count; i++) {
			const struct cell cell = column_value(&all_columns[i], &row, &rows);
			long double number;

			sum = sum * 31 + cell.kind + cell.text.length;
			if (cell_number(&cell, &number))
				sum = sum * 31 +
				      (number >= 0 && number < 1e18L ? (uint64_t)number : 7);
		}
	}
	return sum;
}

/* Visits what else a view reads: the times of steps, devices and memory. */
static void use_rest(struct process *process)
{
	const struct profile *profile = process->profile;
	const struct memory_owners *memory = profile->memory;
	const struct timeline_device *devices;
	const size_t count = timeline_devices(profile->timeline, &devices);

	for (size_t i = 0; i < count; i++)
		timeline_unknown_within(
			profile->timeline, devices[i].device, HANDOVER_TRACE_TIME, 0, 1000);
	for (uint32_t i = 0; i < memory->site_count; i++)
		ck_assert_ptr_nonnull(
			memory_kind_name(memory->levels[memory->sites[i].level].kind));
	for (uint32_t i = 0; i < memory->oom_count; i++)
		for (uint32_t open = 0; open < memory->ooms[i].open; open++)
			string_table_get(process->texts,
				profile->oom_ranges[memory->ooms[i].first_open + open].label);
	for (uint32_t i = 0; i < profile->kernels->count; i++)
		percentiles_get(&profile->kernels->kernels[i].samples, 950);
	for (size_t i = 0; process->steps && i < process->steps->count; i++)
		steps_step_at(process->steps, process->steps->steps[i].begin_ns);
}

START_TEST(what_is_read_is_what_was_written)
{
	struct process made, read;
	size_t bytes, again_bytes;
	char *kept = encode_program(&made, &bytes), *again = NULL;
	FILE *file;

	open_process(&read);
	ck_assert(decode(&read, kept, bytes));
	ck_assert_uint_eq(made.profile->tree->count, read.profile->tree->count);
	ck_assert_uint_gt(made.profile->memory->oom_count, 0);
	ck_assert_uint_gt(made.profile->memory->failed_count, 0);
	ck_assert_uint_gt(made.profile->kernels->count, 1);
	ck_assert_ptr_nonnull(made.timeline);
	ck_assert_uint_eq(made.steps->count, read.steps->count);
	ck_assert_uint_ge(read.steps->count, KEPT_PROGRAM_STEPS - 1);
	file = open_memstream(&again, &again_bytes);
	ck_assert(kept_process_encode(&read, file));
	fclose(file);
	ck_assert_uint_eq(bytes, again_bytes);
	for (size_t at = 0; at < bytes; at++)
		ck_assert_msg(kept[at] == again[at], "byte %zu of %zu differs", at, bytes);
	read.metric = made.metric;
	read.whole = made.whole;
	ck_assert_uint_eq(use_tree(&made), use_tree(&read));
	ck_assert_int_eq(
		memcmp(&made.profile->totals, &read.profile->totals, sizeof(struct profile_totals)),
		0);
	ck_assert_uint_eq(reader_duration_ns(made.reader), reader_duration_ns(read.reader));
	free(again);
	free(kept);
	free_process(&made);
	free_process(&read);
}
END_TEST

/* The times of GPU work are not kept: they are read from the trace when a pass needs them. */
START_TEST(a_kept_timeline_says_the_same_at_all_times)
{
	struct process made, read;
	size_t bytes;
	char *kept = encode_program(&made, &bytes);

	open_process(&read);
	ck_assert(decode(&read, kept, bytes));
	timeline_rewind(made.timeline);
	timeline_rewind(read.timeline);
	for (uint64_t at = 0; at < 6000; at += 7) {
		ck_assert_uint_eq(
			timeline_busy(made.timeline, at), timeline_busy(read.timeline, at));
		ck_assert_uint_eq(
			timeline_idle(made.timeline, at), timeline_idle(read.timeline, at));
	}
	ck_assert_uint_gt(timeline_busy(read.timeline, UINT64_MAX), 0);
	ck_assert_uint_eq(reader_duration_ns(made.reader), reader_duration_ns(read.reader));
	process_measure(&made, METRIC_IDLE, NULL);
	process_measure(&read, METRIC_IDLE, NULL);
	ck_assert_uint_eq(use_tree(&made), use_tree(&read));
	free(kept);
	free_process(&made);
	free_process(&read);
}
END_TEST

START_TEST(a_trace_that_lacks_something_is_not_kept)
{
	struct trace_builder *builder = kept_program();
	struct process process = { .path = (char *)PATH, .categories = categories_read(NULL) };
	char error[READER_ERROR_BYTES];
	FILE *file = tmpfile();

	build_lost(builder, 1, 3);
	build_seal(builder, 1, SEAL_TORN);
	build_push(builder, 1, 900000, "after");
	build_pop(builder, 1, 900001);
	builder_write(builder, PATH);
	builder_free(builder);
	ck_assert_msg(process_read(&process, &usual, error), "%s", error);
	ck_assert(!kept_process_encode(&process, file));
	fclose(file);
	free_process(&process);
}
END_TEST

START_TEST(what_is_cut_anywhere_is_refused)
{
	struct process made, read;
	size_t bytes;
	char *kept = encode_program(&made, &bytes), *longer;

	open_process(&read);
	for (size_t count = 0; count < bytes; count++) {
		ck_assert(!decode(&read, kept, count));
		ck_assert_ptr_null(read.profile);
	}
	longer = xcalloc(bytes + 1);
	memcpy(longer, kept, bytes);
	ck_assert(!decode(&read, longer, bytes + 1));
	free(longer);
	free(kept);
	free_process(&made);
	free_process(&read);
}
END_TEST

/* A view may make an array with an element for each text. */
static void check_texts(const struct process *process)
{
	const struct tree *tree = process->profile->tree;
	const uint32_t texts = string_table_count(process->texts);

	for (uint32_t id = 0; id < tree->count; id++) {
		ck_assert_uint_lt(tree->nodes[id].name, texts);
		ck_assert_uint_lt(tree->nodes[id].domain, texts);
		ck_assert_uint_lt(tree->nodes[id].class, texts);
	}
}

/* Each byte with some values: refused, or usable. */
START_TEST(damaged_bytes_are_refused_or_usable)
{
	static const unsigned char values[] = { 1, 0xff };
	struct process made, read;
	size_t bytes, accepted = 0;
	char *kept = encode_program(&made, &bytes);

	open_process(&read);
	for (size_t at = 0; at < bytes * sizeof values; at++) {
		char *const byte = &kept[at / sizeof values];
		const char was = *byte;

		*byte = (char)values[at % sizeof values];
		if (decode(&read, kept, bytes)) {
			check_texts(&read);
			accepted++;
			use_rest(&read);
			if (at % 31 == 0)
				use_tree(&read);
			forget(&read);
		}
		*byte = was;
	}
	ck_assert_uint_gt(accepted, 0);
	ck_assert_uint_lt(accepted, bytes * sizeof values);
	free(kept);
	free_process(&made);
	free_process(&read);
}
END_TEST

/* Ranges with samples in them, of a view that shows their functions. */
static char *encode_samples(struct process *process, size_t *bytes)
{
	struct trace_builder *builder = builder_new();
	struct options options = usual;
	char *kept = NULL, error[READER_ERROR_BYTES];
	FILE *file;

	options.shows_samples = true;
	for (uint32_t i = 0; i < 4; i++) {
		struct trace_sample *sample = build_record(
			builder, 9, TRACE_SAMPLE, sizeof *sample, 1100 + 1000 * i);

		sample->tid = 1001;
		sample->pc = 0x1000 + i / 2;
		sample->state = i < 3 ? TRACE_SAMPLE_ON_CPU : TRACE_SAMPLE_BLOCKED;
		sample->weight = 1 + i;
		build_push(builder, 1, 1000 + 1000 * i, "range");
		build_pop(builder, 1, 1500 + 1000 * i);
	}
	builder_write(builder, PATH);
	builder_free(builder);
	*process = (struct process){ .path = (char *)PATH, .categories = categories_read(NULL) };
	ck_assert_msg(process_read(process, &options, error), "%s", error);
	file = open_memstream(&kept, bytes);
	ck_assert(kept_process_encode(process, file));
	fclose(file);
	return kept;
}

START_TEST(places_of_samples_are_kept)
{
	struct process made, read;
	size_t bytes;
	char *kept = encode_samples(&made, &bytes);
	const struct sample_places *before = made.profile->sample_places, *after;

	open_process(&read);
	ck_assert(decode(&read, kept, bytes));
	after = read.profile->sample_places;
	ck_assert_ptr_nonnull(after);
	ck_assert_uint_eq(before->count, 3);
	ck_assert_uint_eq(after->count, before->count);
	ck_assert_uint_eq(after->counted_count, 3);
	ck_assert_int_eq(memcmp(after->all, before->all, 3 * sizeof *after->all), 0);
	ck_assert_int_eq(memcmp(after->counted, before->counted, 3 * sizeof *after->counted), 0);
	ck_assert_uint_eq(read.profile->sampled.samples, 3);
	ck_assert_uint_eq(read.profile->sampled.blocked_ns, 4 * TRACE_SAMPLE_WEIGHT_NS);
	free(kept);
	free_process(&made);
	free_process(&read);
}
END_TEST

static void check_cells(struct process *process)
{
	const struct sample_cells *cells = sample_cells_of(process);

	for (size_t i = 0; cells && i < cells->count; i++) {
		ck_assert_uint_lt(cells->cells[i].node, process->profile->tree->count);
		ck_assert_uint_lt(cells->cells[i].thread, process->profile->sampled_thread_count);
	}
	process_detach_all(process);
}

START_TEST(damaged_places_are_refused_or_usable)
{
	struct process made, read;
	size_t bytes, accepted = 0;
	char *kept = encode_samples(&made, &bytes);

	open_process(&read);
	for (size_t at = 0; at < bytes; at++) {
		kept[at] = (char)~kept[at];
		if (decode(&read, kept, bytes)) {
			check_cells(&read);
			forget(&read);
			accepted++;
		}
		kept[at] = (char)~kept[at];
	}
	ck_assert_uint_gt(accepted, 0);
	ck_assert_uint_lt(accepted, bytes);
	free(kept);
	free_process(&made);
	free_process(&read);
}
END_TEST

/* ---- profiles that no pass makes, with a right checksum ---- */

static void forget_the_calls_of_a_kernel(struct process *process)
{
	process->profile->kernels->kernels[0].calls = 0;
}

static void use_a_metric_that_was_not_wanted(struct process *process)
{
	process->profile->options.metric = METRIC_USER;
}

/* Replaces the failures by `count` times the first one. */
static void repeat_failure(struct process *process, uint32_t count)
{
	struct memory_owners *memory = process->profile->memory;
	struct memory_oom *ooms = xcalloc(count * sizeof *ooms);

	for (uint32_t i = 0; i < count; i++)
		ooms[i] = memory->ooms[0];
	free(memory->ooms);
	memory->ooms = ooms;
	memory->oom_count = count;
}

static void share_ranges_of_two_failures(struct process *process)
{
	ck_assert_uint_gt(process->profile->memory->ooms[0].open, 0);
	repeat_failure(process, 2);
}

static void fail_too_often(struct process *process)
{
	process->profile->memory->ooms[0].open = process->profile->memory->ooms[0].threads = 0;
	repeat_failure(process, MEMORY_OOMS_MAX + 1);
}

static void list_steps_of_a_thread_twice(struct process *process)
{
	process->steps->threads[1].first = 0;
}

/* Adds a thread behind the others. */
static struct steps_thread *add_thread(struct steps *steps)
{
	struct steps_thread *threads = xcalloc((steps->thread_count + 1) * sizeof *threads);

	memcpy(threads, steps->threads, steps->thread_count * sizeof *threads);
	free(steps->threads);
	steps->threads = threads;
	threads[steps->thread_count] = (struct steps_thread){ .tid = UINT32_MAX,
		.first = steps->count };
	return &threads[steps->thread_count++];
}

static void add_a_thread_without_steps(struct process *process)
{
	add_thread(process->steps);
}

static void forget_a_thread(struct process *process)
{
	process->steps->thread_count--;
}

static void give_a_step_to_another_thread(struct process *process)
{
	process->steps->steps[0].tid++;
}

static void list_a_step_twice(struct process *process)
{
	process->steps->by_thread[1] = process->steps->by_thread[0];
}

static void divide_the_last_thread(struct process *process)
{
	struct steps_thread *added = add_thread(process->steps), *last = added - 1;

	added->tid = last->tid;
	added->count = last->count / 2;
	added->first = process->steps->count - added->count;
	last->usual = 0;
	last->count -= added->count;
}

/* Reads the trace PATH, changes what the pass made of it, and writes and reads that. Returns
 * whether it is believed. `change`: NULL: none. */
static bool is_believed(void (*change)(struct process *process))
{
	struct process made, read;
	char *kept = NULL, error[READER_ERROR_BYTES];
	size_t bytes;
	FILE *file = open_memstream(&kept, &bytes);
	bool good;

	made = (struct process){ .path = (char *)PATH, .categories = categories_read(NULL) };
	ck_assert_msg(process_read(&made, &usual, error), "%s", error);
	if (change)
		change(&made);
	ck_assert(kept_process_encode(&made, file));
	fclose(file);
	open_process(&read);
	good = decode(&read, kept, bytes);
	free(kept);
	free_process(&made);
	free_process(&read);
	return good;
}

START_TEST(a_profile_that_no_pass_makes_is_refused)
{
	static void (*const changes[])(struct process *) = { forget_the_calls_of_a_kernel,
		use_a_metric_that_was_not_wanted, share_ranges_of_two_failures, fail_too_often };
	struct trace_builder *builder = kept_program();

	builder_write(builder, PATH);
	builder_free(builder);
	ck_assert(is_believed(NULL));
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		ck_assert_msg(!is_believed(changes[i]), "change %zu", i);
}
END_TEST

/* A server, two threads of which call the same model. */
static void write_server(void)
{
	struct trace_builder *builder = builder_new();
	const uint32_t model = build_node(builder, 0, "Net", NULL, TRACE_NODE_MODULE);

	for (uint64_t i = 0; i < 6; i++)
		for (uint32_t thread = 1; thread <= 2; thread++) {
			build_push_node(builder, thread, 1000 * i + 10 * thread, model);
			build_pop(builder, thread, 1000 * i + 700 + 10 * thread);
		}
	builder_write(builder, PATH);
	builder_free(builder);
}

START_TEST(steps_of_threads_that_do_not_fit_are_refused)
{
	static void (*const changes[])(struct process *) = { list_steps_of_a_thread_twice,
		add_a_thread_without_steps, forget_a_thread, give_a_step_to_another_thread,
		list_a_step_twice, divide_the_last_thread };

	write_server();
	ck_assert(is_believed(NULL));
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		ck_assert_msg(!is_believed(changes[i]), "change %zu", i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kept_process");
	TCase *all = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_set_timeout(all, 600); /* with a sanitizer, on a busy machine */
	tcase_add_checked_fixture(all, run_report_setup, run_report_teardown);
	tcase_add_test(all, what_is_read_is_what_was_written);
	tcase_add_test(all, a_kept_timeline_says_the_same_at_all_times);
	tcase_add_test(all, a_trace_that_lacks_something_is_not_kept);
	tcase_add_test(all, what_is_cut_anywhere_is_refused);
	tcase_add_test(all, damaged_bytes_are_refused_or_usable);
	tcase_add_test(all, places_of_samples_are_kept);
	tcase_add_test(all, damaged_places_are_refused_or_usable);
	tcase_add_test(all, a_profile_that_no_pass_makes_is_refused);
	tcase_add_test(all, steps_of_threads_that_do_not_fit_are_refused);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
