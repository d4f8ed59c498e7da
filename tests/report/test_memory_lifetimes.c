/* SPDX-License-Identifier: MIT
 * test_memory_lifetimes.c: the class of single blocks, as other views ask for it, and the sign test
 * and the growth test by themselves.
 */
#include "report/analysis/memory_lifetimes.h"
#include "report/stats/sign_test.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KB 1000u

struct opened {
	struct process process;
	char path[64];
};

static struct opened open_process(struct trace_builder *builder)
{
	struct opened opened = { .path = "/tmp/pperf-lifetimes.XXXXXX" };
	struct profile_options options = { .device = -1, .demangle = DEMANGLE_SHORT };
	char error[READER_ERROR_BYTES];
	const int fd = mkstemp(opened.path);

	ck_assert(fd >= 0 && close(fd) == 0);
	builder_write(builder, opened.path);
	builder_free(builder);
	opened.process.reader = reader_open(opened.path, error);
	ck_assert_msg(opened.process.reader != NULL, "%s", error);
	opened.process.texts = string_table_new();
	opened.process.steps = steps_find(opened.process.reader, NULL, NULL);
	options.found_steps = opened.process.steps;
	options.pick_metric = true;
	opened.process.profile = profile_build(
		opened.process.reader, opened.process.texts, &options);
	return opened;
}

static void close_process(struct opened *opened)
{
	process_detach_all(&opened->process);
	profile_free(opened->process.profile);
	steps_free(opened->process.steps);
	string_table_free(opened->process.texts);
	reader_close(opened->process.reader);
	unlink(opened->path);
}

/* Twelve steps of 1000 from 10000 on. Each leaves 2 kB in `leak`, and the first one 5 kB in `once`.
 */
static struct trace_builder *leaking(void)
{
	struct trace_builder *builder = builder_new();
	uint64_t level = 0;
	char name[32];

	for (unsigned step = 0; step < 12; step++) {
		const uint64_t at = 10000 + 1000 * step;

		snprintf(name, sizeof name, "ProfilerStep#%u", step);
		build_push(builder, 1, at, name);
		build_push(builder, 1, at + 100, "leak");
		build_tensor(builder, 1, at + 200, 0x1000 + 512 * step, 2 * KB, level += 2 * KB, 0);
		build_pop(builder, 1, at + 300);
		if (!step) {
			build_push(builder, 1, at + 400, "once");
			build_tensor(builder, 1, at + 500, 0x100000, 5 * KB, level += 5 * KB, 0);
			build_pop(builder, 1, at + 600);
		}
		build_pop(builder, 1, at + 900);
	}
	return builder;
}

static uint32_t site_of(const struct opened *opened, const char *name)
{
	const struct profile *profile = opened->process.profile;

	for (uint32_t i = 0; i < profile->memory->site_count; i++) {
		const struct string_view text = string_table_get(opened->process.texts,
			profile->tree->nodes[profile->memory->sites[i].node].name);

		if (text.length == strlen(name) && !memcmp(text.bytes, name, text.length))
			return i;
	}
	ck_abort_msg("no site %s", name);
}

START_TEST(a_block_has_the_class_of_its_birth_its_end_and_its_path)
{
	struct opened opened = open_process(leaking());
	const struct memory_lifetimes *made = memory_lifetimes_of(&opened.process);
	const uint32_t leak = site_of(&opened, "leak"), once = site_of(&opened, "once");
	static const struct {
		uint64_t since_ns, freed_ns;
		enum memory_lifetime of_leak, of_once;
		uint64_t across;
	} blocks[] = {
		{ 500, 600, MEMORY_TEMPORARY, MEMORY_TEMPORARY, 0 }, /* before the first step */
		{ 500, 10200, MEMORY_ONCE, MEMORY_ONCE, 1 },
		{ 500, UINT64_MAX, MEMORY_ONCE, MEMORY_ONCE, 0 },
		{ 11200, 11800, MEMORY_TEMPORARY, MEMORY_TEMPORARY, 0 },
		{ 11200, 12100, MEMORY_ACROSS_1, MEMORY_ACROSS_1, 1 },
		{ 11200, 13100, MEMORY_ACROSS_2, MEMORY_ACROSS_2, 2 },
		{ 11200, 16100, MEMORY_ACROSS_MORE, MEMORY_ACROSS_MORE, 5 },
		{ 11950, 12100, MEMORY_TEMPORARY, MEMORY_TEMPORARY, 0 }, /* between steps */
		{ 11200, UINT64_MAX, MEMORY_GROWING, MEMORY_ONCE, 0 },
		{ 18200, UINT64_MAX, MEMORY_GROWING, MEMORY_AT_END, 0 },
		{ 18200, 90000, MEMORY_GROWING, MEMORY_AT_END, 0 }, /* after the end */
	};
	uint64_t across;

	ck_assert(made->has_steps && made->count == 12);
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
		ck_assert_msg(memory_lifetimes_class(made, leak, blocks[i].since_ns,
				      blocks[i].freed_ns, &across) == blocks[i].of_leak,
			"block %zu of leak", i);
		ck_assert_uint_eq(across, blocks[i].across);
		ck_assert_msg(memory_lifetimes_class(made, once, blocks[i].since_ns,
				      blocks[i].freed_ns, &across) == blocks[i].of_once,
			"block %zu of once", i);
	}
	ck_assert_ptr_eq(memory_lifetimes_of(&opened.process), made);
	close_process(&opened);
}
END_TEST

START_TEST(a_trace_without_memory_has_no_lifetimes)
{
	struct trace_builder *builder = builder_new();
	struct opened opened;

	build_push(builder, 1, 100, "a");
	build_pop(builder, 1, 200);
	opened = open_process(builder);
	ck_assert_uint_eq(memory_lifetimes_of(&opened.process)->path_count, 0);
	close_process(&opened);
}
END_TEST

START_TEST(the_sign_test_counts_tosses)
{
	ck_assert_double_eq_tol(sign_test(7, 7), 1 / 128.0, 1e-12);
	ck_assert_double_eq_tol(sign_test(6, 7), 8 / 128.0, 1e-12);
	ck_assert_double_eq_tol(sign_test(4, 8), 163 / 256.0, 1e-12);
	ck_assert_double_eq_tol(sign_test(1, 3), 7 / 8.0, 1e-12);
	ck_assert_double_eq(sign_test(0, 5), 1);
	ck_assert_double_eq(sign_test(0, 0), 1);
	/* 1 - the probability of at most 499,999 heads in a million tosses */
	ck_assert_double_eq_tol(sign_test(500000, 1000000), 0.500399, 1e-5);
	ck_assert_double_lt(sign_test(520000, 1000000), 1e-300);
}
END_TEST

START_TEST(growth_needs_late_steps_that_leave_more_than_they_replace)
{
	struct left_by_step steps[30];
	struct memory_growth growth;

	for (unsigned i = 0; i < 30; i++)
		steps[i] = (struct left_by_step){ .bytes = i == 27 ? 900 : 100, .blocks = 1 };
	growth = memory_growth_test(steps, 30, 0);
	ck_assert(growth.grows && memory_growth_is_certain(&growth));
	ck_assert_double_eq(growth.rate, 100); /* one large step near the end does not matter */
	ck_assert_uint_eq(growth.late, 19);
	/* the second half of the late steps, 19 to 28, left 1,800 */
	ck_assert(memory_growth_test(steps, 30, 900).grows);
	ck_assert(!memory_growth_test(steps, 30, 901).grows);
	for (unsigned i = 10; i < 14; i++)
		steps[i].bytes = 0;
	ck_assert(!memory_growth_test(steps, 30, 0).grows); /* 15 of 19: below 80 % */
	ck_assert(!memory_growth_test(steps, 0, 0).grows);
	ck_assert(!memory_growth_test(steps, 1, 0).grows);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory lifetimes");
	TCase *cases = tcase_create("lifetimes");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, a_block_has_the_class_of_its_birth_its_end_and_its_path);
	tcase_add_test(cases, a_trace_without_memory_has_no_lifetimes);
	tcase_add_test(cases, the_sign_test_counts_tosses);
	tcase_add_test(cases, growth_needs_late_steps_that_leave_more_than_they_replace);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
