/* SPDX-License-Identifier: MIT
 * test_memory_growth.c: the end of the run for memory, what grows from step to step, and how long
 * memory lives. Random traces are compared with an expectation that the test computes from the
 * blocks it made, by other means than the tool.
 */
#include "tests/support/view_test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US 1000u
#define STEP_NS (100 * US)
#define KB 1000u
#define MIB (1u << 20)
#define MEMORY_BYTES (16ull << 30)
#define NEVER 0x7fffffffu

/* ---- traces of blocks ---- */

/* A tensor. Steps are numbered from 0; BEFORE is before the first. */
#define BEFORE -1
struct block {
	unsigned path;
	int step;
	uint32_t freed; /* the step that frees it; NEVER: none */
	uint64_t bytes;
};

#define BLOCKS_MAX 20000u
#define PATHS_MAX 16u

struct blocks {
	struct block all[BLOCKS_MAX];
	unsigned count, paths;
	int steps;
};

static void add(struct blocks *blocks, unsigned path, int step, uint32_t freed, uint64_t bytes)
{
	ck_assert_uint_lt(blocks->count, BLOCKS_MAX);
	blocks->all[blocks->count++] = (struct block){ path, step, freed, bytes };
	blocks->paths = path >= blocks->paths ? path + 1 : blocks->paths;
}

static uint64_t step_begin(int step)
{
	return 10 * STEP_NS + (uint64_t)(step + 1) * STEP_NS;
}

/* The tensors' level, which each record has. */
static void record(
	struct trace_builder *builder, uint64_t at, unsigned block, int64_t bytes, uint64_t *level)
{
	*level += (uint64_t)bytes;
	build_tensor(builder, 1, at, 0x100000 + 512ull * block, bytes, *level, MEMORY_BYTES);
}

/* Frees what a step frees, 20 us after its begin, then allocates, 30 us after its begin. */
static void build_step_blocks(
	struct trace_builder *builder, const struct blocks *blocks, int step, uint64_t *level)
{
	uint64_t at = step_begin(step) + 20 * US;
	char name[32];

	for (unsigned i = 0; i < blocks->count; i++)
		if (blocks->all[i].freed == (uint32_t)step && blocks->all[i].step < step)
			record(builder, at++, i, -(int64_t)blocks->all[i].bytes, level);
	at = step_begin(step) + 30 * US;
	for (unsigned i = 0; i < blocks->count; i++) {
		if (blocks->all[i].step != step)
			continue;
		snprintf(name, sizeof name, "path %c", 'a' + (int)blocks->all[i].path);
		build_push(builder, 1, at++, name);
		record(builder, at++, i, (int64_t)blocks->all[i].bytes, level);
		build_pop(builder, 1, at++);
		if (blocks->all[i].freed == (uint32_t)step)
			record(builder, at++, i, -(int64_t)blocks->all[i].bytes, level);
	}
}

/* A program of Python whose interpreter frees everything after the last step if `shutdown`. */
static struct trace_builder *trace_of(const struct blocks *blocks, bool shutdown)
{
	struct trace_builder *builder = builder_new();
	struct trace_device *device = build_dictionary(builder, TRACE_DEVICE, sizeof *device);
	uint64_t level = 0;
	char name[32];

	device->memory_bytes = MEMORY_BYTES;
	build_meta(builder, "version.python", "3.11.7");
	build_step_blocks(builder, blocks, BEFORE, &level);
	for (int step = 0; step < blocks->steps; step++) {
		snprintf(name, sizeof name, "ProfilerStep#%d", step);
		build_push(builder, 1, step_begin(step), name);
		build_step_blocks(builder, blocks, step, &level);
		build_pop(builder, 1, step_begin(step) + STEP_NS - 100);
	}
	for (unsigned i = 0; shutdown && i < blocks->count; i++)
		if (blocks->all[i].freed == NEVER)
			record(builder, step_begin(blocks->steps) + STEP_NS + i, i,
				-(int64_t)blocks->all[i].bytes, &level);
	return builder;
}

/* ---- the expectation ---- */

struct sum {
	uint64_t blocks, bytes;
};

enum { TEMPORARY, ACROSS_1, ACROSS_2, ACROSS_MORE, GROWING, ONCE, AT_END, CLASSES };
static const char *const class_names[] = { "temporary", "across 1 step", "across 2 steps",
	"across 3", "growing", "once", "at end" };

struct expected {
	struct sum of_class[CLASSES];
	bool grows[PATHS_MAX + 1]; /* the last one: all paths together */
	double rate[PATHS_MAX + 1], p[PATHS_MAX + 1];
	unsigned left_steps[PATHS_MAX + 1];
};

static uint64_t left_by(const struct blocks *blocks, unsigned path, int step)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < blocks->count; i++)
		if (blocks->all[i].step == step && blocks->all[i].freed == NEVER &&
			(path == PATHS_MAX || blocks->all[i].path == path))
			bytes += blocks->all[i].bytes;
	return bytes;
}

static int by_double(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* The median slope of what the steps from `from` on and before `to` left, summed up. */
static double theil_sen(const struct blocks *blocks, unsigned path, int from, int to)
{
	const int count = to - from;
	double *slopes = calloc((size_t)(count * count + 1), sizeof *slopes), sums[128], sum = 0,
	       median;
	unsigned pairs = 0;

	for (int i = 0; i < count; i++)
		sums[i] = sum += (double)left_by(blocks, path, from + i);
	for (int i = 0; i < count; i++)
		for (int j = i + 1; j < count; j++)
			slopes[pairs++] = (sums[j] - sums[i]) / (j - i);
	qsort(slopes, pairs, sizeof *slopes, by_double);
	median = pairs % 2 ? slopes[pairs / 2] : (slopes[pairs / 2 - 1] + slopes[pairs / 2]) / 2;
	free(slopes);
	return median;
}

/* The share of all sequences of `count` coin tosses with at least `heads` heads. */
static double tossed(unsigned heads, unsigned count)
{
	double row[130] = { 1 }, sum = 0;

	for (unsigned n = 1; n <= count; n++)
		for (unsigned k = n; k > 0; k--)
			row[k] += row[k - 1];
	for (unsigned k = heads; k <= count; k++)
		sum += row[k];
	return sum / exp2(count);
}

static void expect_growth(const struct blocks *blocks, unsigned path, struct expected *expected)
{
	const int from = blocks->steps / 3, to = blocks->steps - 1, half = from + (to - from) / 2;
	uint64_t replaced = 0, later = 0;
	unsigned left = 0;

	for (int step = from; step < to; step++) {
		left += left_by(blocks, path, step) > 0;
		later += step >= half ? left_by(blocks, path, step) : 0;
	}
	for (unsigned i = 0; i < blocks->count; i++)
		if ((path == PATHS_MAX || blocks->all[i].path == path) &&
			blocks->all[i].step < half && blocks->all[i].freed != NEVER &&
			(int)blocks->all[i].freed >= half &&
			(int)blocks->all[i].freed - blocks->all[i].step > 2)
			replaced += blocks->all[i].bytes;
	expected->left_steps[path] = left;
	expected->p[path] = tossed(left, (unsigned)(to - from));
	expected->grows[path] = 10 * left >= 8 * (unsigned)(to - from) && 2 * replaced <= later;
	expected->rate[path] = expected->grows[path] ? theil_sen(blocks, path, from, to) : 0;
}

static struct expected expect(const struct blocks *blocks)
{
	struct expected expected = { .grows = { false } };

	for (unsigned path = 0; path < blocks->paths; path++)
		expect_growth(blocks, path, &expected);
	expect_growth(blocks, PATHS_MAX, &expected);
	for (unsigned i = 0; i < blocks->count; i++) {
		const struct block *block = &blocks->all[i];
		const int across = block->freed == NEVER ? 0 : (int)block->freed - block->step;
		const int class = block->freed != NEVER             ? (block->step == BEFORE ? ONCE
									      : across > 2   ? ACROSS_MORE
											     : across)
				  : block->step == BEFORE           ? ONCE
				  : expected.grows[block->path]     ? GROWING
				  : block->step < blocks->steps / 3 ? ONCE
								    : AT_END;

		expected.of_class[class].blocks++;
		expected.of_class[class].bytes += block->bytes;
	}
	return expected;
}

/* ---- the comparison ---- */

/* Returns the value of `key` after `at` in the same row, or -1 if the row does not have it. */
static double number_in_row(const char *at, const char *key)
{
	const char *end = strchr(at, '}'), *found;
	char quoted[64];

	snprintf(quoted, sizeof quoted, "\"%s\": ", key);
	found = strstr(at, quoted);
	return found && (!end || found < end) ? strtod(found + strlen(quoted), NULL) : -1;
}

static const char *row_of(const char *out, const char *name)
{
	char quoted[96];

	snprintf(quoted, sizeof quoted, "\"name\": \"%s", name);
	return strstr(out, quoted);
}

static void compare_classes(const struct blocks *blocks, const struct expected *expected)
{
	const struct report_run run = run_report(
		trace_of(blocks, true), "memory trace.bin --by class -d 2 -f json");
	uint64_t bytes = 0;

	ck_assert_int_eq(run.status, 0);
	for (int class = 0; class < CLASSES; class ++) {
		const char *row = row_of(run.out, class_names[class]);
		const double allocs = row ? number_in_row(row, "allocs") : 0;

		ck_assert_msg(allocs == (double)expected->of_class[class].blocks,
			"%s: %g, not %llu", class_names[class], allocs,
			(unsigned long long)expected->of_class[class].blocks);
		bytes += expected->of_class[class].bytes;
		if (row)
			ck_assert_double_eq(number_in_row(row, "alloc_bytes"),
				(double)expected->of_class[class].bytes);
	}
	ck_assert_double_eq(
		number_in_row(row_of(run.out, "tensor memory"), "alloc_bytes"), (double)bytes);
}

static void compare_growth_row(const char *row, const struct expected *expected, unsigned path)
{
	if (!expected->grows[path] || expected->rate[path] < 1) {
		ck_assert_msg(!row || number_in_row(row, "growth_bytes") < 0, "%u: %s", path, row);
		return;
	}
	ck_assert_msg(row != NULL, "path %u grows", path);
	ck_assert_double_eq(number_in_row(row, "growth_bytes"), round(expected->rate[path]));
	ck_assert_double_eq(number_in_row(row, "grown_steps"), expected->left_steps[path]);
	ck_assert_double_eq_tol(
		number_in_row(row, "p_value"), expected->p[path], 1e-9 * expected->p[path]);
}

static void compare_growth(const struct blocks *blocks, const struct expected *expected)
{
	const struct report_run run = run_report(NULL, "memory trace.bin --growth -f json -n 0");
	char name[32];

	ck_assert_int_eq(run.status, 0);
	compare_growth_row(row_of(run.out, "tensor memory"), expected, PATHS_MAX);
	for (unsigned path = 0; path < blocks->paths; path++) {
		snprintf(name, sizeof name, "path %c", 'a' + (int)path);
		compare_growth_row(row_of(run.out, name), expected, path);
	}
}

static unsigned below(uint64_t *state, unsigned limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*state >> 33) % limit;
}

/* One path of blocks: `kind` is how it behaves. */
static void add_path(struct blocks *blocks, unsigned path, unsigned kind, uint64_t *state)
{
	const unsigned chance = below(state, 101), across = 1 + below(state, 5);

	for (int step = BEFORE; step < blocks->steps; step++) {
		const uint64_t bytes = 512 * (1 + below(state, 9999));
		const uint32_t later = (uint32_t)(step + (int)across),
			       end = (uint32_t)blocks->steps;

		if (kind == 0) /* temporary */
			add(blocks, path, step, step == BEFORE ? NEVER : (uint32_t)step, bytes);
		else if (kind == 1) /* given on to a later step */
			add(blocks, path, step, later < end ? later : NEVER, bytes);
		else if (kind == 2) /* left in some steps */
			add(blocks, path, step,
				below(state, 100) < chance || step == BEFORE ? NEVER
									     : (uint32_t)step,
				bytes);
		else if (kind == 3 && step <= (int)across) /* once */
			add(blocks, path, step, NEVER, bytes);
		else if (kind == 4) /* a leak, of a steady size */
			add(blocks, path, step, NEVER, 512 * (path + 1));
		else if (kind == 5) /* a cache of half the run */
			add(blocks, path, step,
				step + blocks->steps / 2 < blocks->steps
					? (uint32_t)(step + blocks->steps / 2)
					: NEVER,
				512);
	}
}

START_TEST(random_traces_have_the_classes_and_rates_that_their_blocks_make)
{
	static struct blocks blocks;
	uint64_t state = (uint64_t)_i * 7919 + 1;
	struct expected expected;

	blocks = (struct blocks){ .steps = 11 + (int)below(&state, 60) };
	for (unsigned path = 0, count = 3 + below(&state, 8); path < count; path++)
		add_path(&blocks, path, below(&state, 6), &state);
	expected = expect(&blocks);
	compare_classes(&blocks, &expected);
	compare_growth(&blocks, &expected);
}
END_TEST

/* ---- screens ---- */

/* 12 steps leave 2 MiB each, 2 MiB live across a step, and the optimizer's state is made once. */
static struct blocks *leaking(void)
{
	static struct blocks blocks;

	blocks = (struct blocks){ .steps = 12 };
	add(&blocks, 0, BEFORE, NEVER, 64 * MIB);
	for (int step = 0; step < 12; step++) {
		add(&blocks, 1, step, NEVER, 2 * MIB);
		add(&blocks, 2, step, (uint32_t)step, 8 * MIB);
		add(&blocks, 3, step, step < 11 ? (uint32_t)step + 1 : NEVER, MIB);
	}
	return &blocks;
}

START_TEST(a_leak_is_shown_with_its_path_and_rate)
{
	const struct report_run run = run_report(
		trace_of(leaking(), true), "memory trace.bin --growth --ascii --iec --width 100");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out,
		"tensors   GPU 0: peak of tensor memory 96.00 MiB, reached in"
		" `ProfilerStep#* / path c`; 89.00 MiB\n"
		"          still allocated at the end; at the peak PyTorch re"
		"served 16.00 GiB, 15.91 GiB (99.4 %) of\n"
		"          it unallocated; part of it was reserved before the"
		" trace began\n"
		"          live at the peak: 64.00 MiB (66.7 %) allocated in "
		"`path a`, 24.00 MiB (25.0 %) allocated\n"
		"          in `ProfilerStep#* / path b`, the rest at 1 other node\n"
		"memory    grows 2.00 MiB a step, 100 % of it in path b: kept"
		" by the program\n"
		"\n"
		"                               per step  of growth  cause   "
		"      left  steps  late steps      p\n"
		"tensor memory, device 0        2.00 MiB             program "
		" 25.00 MiB      7           7  0.8 %\n"
		"  +-- ProfilerStep#* / path b  2.00 MiB    100.0 %  program "
		" 24.00 MiB      7           7  0.8 %\n");
}
END_TEST

START_TEST(lifetimes_are_shown_by_class)
{
	const struct report_run run = run_report(
		trace_of(leaking(), true), "memory trace.bin --by class --ascii --iec --width 100");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(strstr(run.out, "\n\n"),
		"\n"
		"\n"
		"                                      at end  allocs  of memory       alloc\n"
		"tensor memory, device 0            89.00 MiB      37             196.00 MiB\n"
		"  |-- temporary                          0 B      12     49.0 %   96.00 MiB\n"
		"  |   +-- ProfilerStep#* / path c        0 B      12              96.00 MiB\n"
		"  |-- across 1 step                      0 B      11      5.6 %   11.00 MiB\n"
		"  |   +-- ProfilerStep#* / path d        0 B      11              11.00 MiB\n"
		"  |-- growing                      24.00 MiB      12     12.2 %   24.00 MiB\n"
		"  |   +-- ProfilerStep#* / path b  24.00 MiB      12              24.00 MiB\n"
		"  |-- once                         64.00 MiB       1     32.7 %   64.00 MiB\n"
		"  |   +-- path a                   64.00 MiB       1              64.00 MiB\n"
		"  +-- at end                        1.00 MiB       1      0.5 %    1.00 MiB\n"
		"      +-- ProfilerStep#* / path d   1.00 MiB       1               1.00 MiB\n");
}
END_TEST

START_TEST(what_the_interpreter_frees_is_no_part_of_the_end)
{
	const struct report_run run = run_report(
		trace_of(leaking(), true), "memory trace.bin --ascii --iec --width 100");

	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(strstr(run.out, "\n\n"), "\n"
						  "\n"
						  "                                 at peak     at "
						  "end  allocs  frees       peak       alloc\n"
						  "tensor memory, device 0        96.00 MiB  89.00 "
						  "MiB      37     37  96.00 MiB  196.00 MiB\n"
						  "  |-- path a                   64.00 MiB  64.00 "
						  "MiB       1      0  64.00 MiB   64.00 MiB\n"
						  "  |-- ProfilerStep#* / path b  24.00 MiB  24.00 "
						  "MiB      12      0  24.00 MiB   24.00 MiB\n"
						  "  |-- ProfilerStep#* / path c   8.00 MiB        "
						  "0 B      12     12   8.00 MiB   96.00 MiB\n"
						  "  |-- ProfilerStep#* / path d        0 B   1.00 "
						  "MiB      12     11   1.00 MiB   12.00 MiB\n"
						  "  +-- (shutdown)                                "
						  "          0     14                    0 B\n");
}
END_TEST

/* The rows of a level add up to it, and at the end each holds what it allocated and did not free.
 */
START_TEST(the_rows_add_up_with_what_follows_the_end)
{
	for (int shutdown = 0; shutdown < 2; shutdown++) {
		const struct report_run run = run_report(
			trace_of(leaking(), shutdown), "memory trace.bin -f json");
		const char *row = row_of(run.out, "tensor memory");
		const double allocs = number_in_row(row, "allocs"),
			     frees = number_in_row(row, "frees"),
			     held = number_in_row(row, "held_bytes");
		double sums[3] = { 0 };

		ck_assert_double_eq(held, 89 * (double)MIB);
		while ((row = strstr(row + 1, "\"name\": "))) {
			const double at_end = number_in_row(row, "held_bytes");

			sums[0] += number_in_row(row, "allocs");
			sums[1] += number_in_row(row, "frees");
			sums[2] += at_end < 0 ? 0 : at_end;
			if (at_end >= 0)
				ck_assert_double_eq(
					at_end, number_in_row(row, "alloc_bytes") -
							number_in_row(row, "free_bytes"));
		}
		ck_assert_double_eq(sums[0], allocs);
		ck_assert_double_eq(sums[1], frees);
		ck_assert_double_eq(sums[2], held);
		ck_assert_int_eq(strstr(run.out, "(shutdown)") != NULL, shutdown);
	}
}
END_TEST

/* Without steps the end is the last operator. A program without Python frees before its end. */
START_TEST(without_steps_the_end_is_the_last_thing_done)
{
	for (int python = 0; python < 2; python++) {
		struct trace_builder *builder = builder_new();
		struct report_run run;

		if (python)
			build_meta(builder, "version.python", "3.11.7");
		build_push(builder, 1, 1000, "work");
		build_tensor(builder, 1, 1100, 0x1000, 4 * KB, 4 * KB, 9 * KB);
		build_tensor(builder, 1, 1200, 0x9000, 5 * KB, 9 * KB, 9 * KB);
		build_pop(builder, 1, 1300);
		build_tensor(builder, 1, 1400, 0x1000, -4 * (int64_t)KB, 5 * KB, 9 * KB);
		build_push(builder, 1, 1500, "more work");
		build_pop(builder, 1, 1600);
		build_tensor(builder, 1, 1700, 0x9000, -5 * (int64_t)KB, 0, 9 * KB);
		run = run_report(
			builder, "memory trace.bin -f csv --columns name,held_bytes,frees");
		output_has(run.out, python ? "0,,0,\"tensor memory, device 0\",2,5000\r\n"
					     "1,0,1,work,1,5000\r\n"
					     "2,0,1,(shutdown),1,\r\n"
					   : "0,,0,\"tensor memory, device 0\",2,0\r\n"
					     "1,0,1,work,2,0\r\n");
	}
}
END_TEST

START_TEST(growth_has_one_engine_for_all_views)
{
	static const char sentence[] =
		"grows 2.10 MB a step, 100 % of it in path b: kept by the program";

	output_has(run_report(trace_of(leaking(), true), "trace.bin --width 120").out, sentence);
	output_has(run_report(NULL, "steps trace.bin --width 120").out, sentence);
	output_has(run_report(NULL, "memory trace.bin --width 120").out, sentence);
	output_has(run_report(NULL, "diagnose trace.bin --width 120").out,
		"7 of 7 late steps left 2.10 MB; 25.17 MB of what steps left there is held");
}
END_TEST

/* A step too few for a p-value below 0.01, and a growth that is too small to matter. */
START_TEST(what_may_be_chance_or_is_small_is_no_leak)
{
	struct blocks *blocks = leaking();
	struct report_run run;

	blocks->steps = 10;
	blocks->count = 1 + 3 * 10;
	run = run_report(trace_of(blocks, true), "memory trace.bin");
	output_lacks(run.out, "grows");
	output_has(run_report(NULL, "diagnose trace.bin --width 120").out,
		"too few steps to detect a trend: 11 are needed: memory-growth");
	blocks = leaking();
	for (unsigned i = 0; i < blocks->count; i++)
		blocks->all[i].bytes /= 4;
	output_lacks(run_report(trace_of(blocks, true), "memory trace.bin").out, "grows");
	output_has(run_report(NULL, "memory trace.bin --growth -f csv").out, "path b");
}
END_TEST

START_TEST(the_options_belong_to_the_view_memory)
{
	output_has(run_report(trace_of(leaking(), true), "tree trace.bin --growth").err,
		"--growth works with the view memory only");
	output_has(run_report(NULL, "table trace.bin --by class").err,
		"the view table has --by name, shape");
	output_has(run_report(NULL, "memory trace.bin --by class --growth").err,
		"are different tables; give one");
	output_has(run_report(NULL, "memory trace.bin --growth --at peak").err,
		"--growth shows the whole run, and needs no --at");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory growth");
	TCase *cases = tcase_create("screens");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(cases, run_report_setup, run_report_teardown);
	tcase_add_loop_test(
		cases, random_traces_have_the_classes_and_rates_that_their_blocks_make, 0, 20);
	tcase_add_test(cases, a_leak_is_shown_with_its_path_and_rate);
	tcase_add_test(cases, lifetimes_are_shown_by_class);
	tcase_add_test(cases, what_the_interpreter_frees_is_no_part_of_the_end);
	tcase_add_test(cases, the_rows_add_up_with_what_follows_the_end);
	tcase_add_test(cases, without_steps_the_end_is_the_last_thing_done);
	tcase_add_test(cases, growth_has_one_engine_for_all_views);
	tcase_add_test(cases, what_may_be_chance_or_is_small_is_no_leak);
	tcase_add_test(cases, the_options_belong_to_the_view_memory);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
