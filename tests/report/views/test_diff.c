/* SPDX-License-Identifier: MIT
 * test_diff.c: two runs compared: what noise does not change is not told, what changed is named.
 */
#include "report/base/error.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAIN = 1, GPU = 2 }; /* streams */
enum { OPS = 50, STEPS = 100 };

static uint64_t state;

static double uniform(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* A run: in each step each operator, with noise of 2.5 %; op_17 `factor` times as long. */
struct run {
	bool marked; /* in steps */
	bool gpu;    /* each operator launches a kernel, which has the time */
	double factor;
	double slower;     /* of all operators; 0: as usual */
	double likeness;   /* of a step's noise and that of the one before */
	const char *extra; /* an operator more in each step; NULL: none */
	const char *prefix;
	/* a fifth of the operators and half of the steps: of what is done a hundred times */
	bool is_small;
};

static uint64_t op(
	struct trace_builder *builder, const struct run *run, uint64_t at, int number, double noise)
{
	const double base = 20000 + 1000 * (number % 7);
	const uint64_t took = (uint64_t)(base * (number == 17 ? run->factor : 1) *
					 (1 + run->slower) * (1 + 0.025 * noise));
	static uint64_t correlation;
	char name[32];

	snprintf(name, sizeof name, "%s%d", run->prefix ? run->prefix : "op_", number);
	build_push(builder, MAIN, at, name);
	if (run->gpu) {
		char kernel[40];

		snprintf(kernel, sizeof kernel, "kernel_%d", number);
		build_launch(builder, MAIN, at + 10, ++correlation);
		build_kernel(builder, GPU, at + 50, correlation, kernel, at + 20, at + 20 + took);
	}
	build_pop(builder, MAIN, at + took + 100);
	return at + took + 200;
}

static void write_run(const char *path, const struct run *run)
{
	struct trace_builder *builder = builder_new();
	double noise[OPS] = { 0 };
	uint64_t at = 1000;

	if (run->gpu)
		build_device(builder, 0, "device");
	for (int step = 0; step < (run->is_small ? STEPS / 2 : STEPS); step++) {
		if (run->marked)
			build_push(builder, MAIN, at, "turn");
		for (int number = 0; number < (run->is_small ? OPS / 5 : OPS); number++) {
			noise[number] = run->likeness * noise[number] +
					sqrt(1 - run->likeness * run->likeness) * normal();
			at = op(builder, run, at, number, noise[number]);
		}
		if (run->extra) {
			build_push(builder, MAIN, at, run->extra);
			build_pop(builder, MAIN, at + 30000);
			at += 30100;
		}
		if (run->marked)
			build_pop(builder, MAIN, at);
		at += 500;
	}
	builder_write(builder, path);
	builder_free(builder);
}

static struct report_run diff(
	const struct run *before, const struct run *after, const char *options)
{
	char arguments[200];

	write_run("a.bin", before);
	write_run("b.bin", after);
	snprintf(arguments, sizeof arguments, "diff a.bin b.bin --step-marker turn %s", options);
	return run_report(NULL, arguments);
}

static void has(const char *text, const char *wanted)
{
	ck_assert_msg(strstr(text, wanted) != NULL, "`%s` is not in:\n%.3000s", wanted, text);
}

static void has_not(const char *text, const char *unwanted)
{
	ck_assert_msg(strstr(text, unwanted) == NULL, "`%s` is in:\n%.3000s", unwanted, text);
}

static int found_in(int pairs, const struct run *run)
{
	int found = 0;

	for (int pair = 0; pair < pairs; pair++) {
		struct report_run result = diff(run, run, "");

		ck_assert_int_lt(result.status, 2);
		found += result.status;
	}
	return found;
}

START_TEST(equal_runs_differ_in_5_of_100_at_most)
{
	state = 1;
	ck_assert_int_le(
		found_in(100, &(struct run){ .marked = true, .factor = 1, .is_small = true }), 5);
}
END_TEST

START_TEST(nor_do_those_whose_steps_are_like_the_one_before)
{
	state = 2;
	ck_assert_int_le(
		found_in(40,
			&(struct run){
				.marked = true, .factor = 1, .likeness = 0.6, .is_small = true }),
		2);
}
END_TEST

START_TEST(nor_those_without_steps)
{
	state = 3;
	ck_assert_int_le(found_in(40, &(struct run){ .factor = 1, .is_small = true }), 2);
}
END_TEST

/* Ends the text before the changes that are not significant. */
static void keep_significant(struct report_run *result)
{
	char *rest = strstr(result->out, "not significant (n=");

	if (rest)
		*rest = '\0';
}

static void check_named(const struct run *before, const struct run *after)
{
	struct report_run result = diff(before, after, "");

	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "op_17");
	has(result.out, "<0.0001");
	keep_significant(&result);
	for (int number = 0; number < OPS; number++) {
		char name[32];

		snprintf(name, sizeof name, "op_%d\n", number);
		if (number != 17)
			has_not(result.out, name);
	}
}

START_TEST(five_percent_in_one_of_50_operators_is_named)
{
	for (state = 10; state < 14; state++) {
		check_named(&(struct run){ .marked = true, .factor = 1 },
			&(struct run){ .marked = true, .factor = 1.05 });
		check_named(&(struct run){ .marked = true, .factor = 1 },
			&(struct run){ .marked = true, .factor = 0.95 });
	}
}
END_TEST

START_TEST(a_run_that_is_slower_as_a_whole_hides_no_node)
{
	const struct run before = { .marked = true, .factor = 1 };
	struct report_run result;

	state = 25;
	result = diff(&before, &(struct run){ .marked = true, .factor = 1.2, .slower = 0.06 },
		"--width 200");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "; significant (p <0.0001, n = 100 v 100)");
	has(result.out, "median change of all call paths +6.");
	has(result.out, "51 call paths changed significantly (51 call paths tested, n = 100 v "
			"100), 1 of them outliers\n");
	result = run_report(NULL, "diff a.bin b.bin --step-marker turn -f json");
	has(strstr(result.out, "\"name\":\"op_17\""), "\"significant\":true,\"outlier\":true");
	has(strstr(result.out, "\"name\":\"op_16\""), "\"significant\":true,\"outlier\":false");
}
END_TEST

START_TEST(also_without_steps)
{
	struct report_run result;

	state = 30;
	result = diff(&(struct run){ .factor = 1 }, &(struct run){ .factor = 1.05 }, "");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "of the whole run (no steady-state steps were found)");
	has(result.out, "op_17  n=100, 100");
	keep_significant(&result);
	has(result.out, "1 call path changed significantly");
}
END_TEST

START_TEST(on_the_gpu_the_kernel_and_its_operator)
{
	const struct run before = { .marked = true, .gpu = true, .factor = 1 },
			 after = { .marked = true, .gpu = true, .factor = 1.05 };
	struct report_run result;

	state = 40;
	result = diff(&before, &after, "");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "gpu of a steady-state step (mean; 100 before, 100 after");
	has(result.out, "op_17\n");
	has(result.out, "kernel_17\n");
	keep_significant(&result);
	has_not(result.out, "kernel_18");
	result = diff(&before, &before, "--width 200");
	ck_assert_int_eq(result.status, STATUS_OK);
	/* a kernel is all of its operator, and is not tested again */
	has(result.out, "no statistically significant change (51 call paths tested, n = 100 v "
			"100)");
}
END_TEST

START_TEST(what_is_new_and_what_is_missing)
{
	const struct run plain = { .marked = true, .factor = 1 },
			 more = { .marked = true, .factor = 1, .extra = "extra" };
	struct report_run result;

	state = 50;
	result = diff(&plain, &more, "");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "        0 ns    30.00 \u00b5s   +30.00 \u00b5s         -  new       ");
	has(result.out, "; 1 new\n");
	result = diff(&more, &plain, "-f csv");
	has(result.out, "turn/extra,range,gone,30000,0,-30000,-1,-30000,");
}
END_TEST

START_TEST(json_has_all_rows)
{
	const struct run before = { .marked = true, .factor = 1 },
			 after = { .marked = true, .factor = 1.05 };
	struct report_run result, again;

	state = 60;
	result = diff(&before, &after, "-f json");
	has(result.out,
		"{\"schema\":\"pperf.report/"
		"1\",\"view\":\"diff\",\"files\":[\"a.bin\",\"b.bin\"],\"metric\":\"cpu\","
		"\"unit\":\"ns\",\"basis\":\"step\",\"steps_before\":100,\"steps_after\":100,");
	has(result.out, "\"common_change\":");
	has(result.out, "\"tested\":51,");
	has(result.out, "\"path\":[\"turn\",\"op_49\"],\"status\":\"both\",\"before\":");
	has(result.out,
		"\"significant\":true,\"outlier\":true,\"n\":100,\"n_before\":100,\"n_after\":100,"
		"\"calls_before\":1,\"calls_after\":1}");
	again = run_report(NULL, "diff a.bin b.bin --step-marker turn -f json");
	ck_assert_str_eq(result.out, again.out);
}
END_TEST

START_TEST(one_value_is_not_tested)
{
	static const char *const paths[] = { "a.bin", "b.bin" };
	struct report_run result;

	for (uint64_t i = 0; i < 2; i++) {
		struct trace_builder *builder = builder_new();

		build_push(builder, MAIN, 100, "once");
		build_pop(builder, MAIN, 1100 + 1000 * i);
		builder_write(builder, paths[i]);
		builder_free(builder);
	}
	result = run_report(NULL, "diff a.bin b.bin");
	ck_assert_int_eq(result.status, STATUS_OK);
	has(result.out, "once  not tested (n=1)");
	has(result.out, "+100.0 %");
}
END_TEST

/* Steps of three kernels in one operator, in which a program can change what it does. */
struct step_kernels {
	const char *gemm;   /* name of the first kernel */
	const char *module; /* around the operator */
	int copies;         /* kernels `copy` */
	bool fused;         /* one kernel more, `fused` */
	double noise;
	double factor; /* of the first kernel */
};

static uint64_t put_kernel(
	struct trace_builder *builder, uint64_t at, const char *name, double took, double noise)
{
	static uint64_t correlation = 1000000;
	const uint64_t ns = (uint64_t)(took * (1 + noise * normal()));

	build_launch(builder, MAIN, at + 10, ++correlation);
	build_kernel(builder, GPU, at + 50, correlation, name, at + 20, at + 20 + ns);
	return at + ns + 100;
}

static void write_steps(const char *path, const struct step_kernels *program, int steps)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;

	build_device(builder, 0, "device");
	for (int step = 0; step < steps; step++, at += 1000) {
		build_push(builder, MAIN, at, "turn");
		build_push(builder, MAIN, at + 1, program->module);
		build_push(builder, MAIN, at + 2, "aten::mm");
		at = put_kernel(
			builder, at + 3, program->gemm, 40000 * program->factor, program->noise);
		for (int copy = 0; copy < program->copies; copy++)
			at = put_kernel(builder, at, "copy", 2000, program->noise);
		if (program->fused)
			at = put_kernel(builder, at, "fused", 9000, program->noise);
		build_pop(builder, MAIN, at + 1);
		build_pop(builder, MAIN, at + 2);
		build_pop(builder, MAIN, at + 3);
	}
	builder_write(builder, path);
	builder_free(builder);
}

static struct report_run diff_steps(const struct step_kernels *before, int before_steps,
	const struct step_kernels *after, int after_steps, const char *options)
{
	char arguments[200];

	write_steps("a.bin", before, before_steps);
	write_steps("b.bin", after, after_steps);
	snprintf(arguments, sizeof arguments, "diff a.bin b.bin --step-marker turn --width 160 %s",
		options);
	return run_report(NULL, arguments);
}

static const struct step_kernels usual = {
	.gemm = "ampere_sgemm_128x64_nn", .module = "layer", .copies = 3, .noise = 0.02, .factor = 1
};

START_TEST(three_steps_are_enough_for_a_change_of_half)
{
	struct step_kernels slower = usual;
	struct report_run result;

	slower.factor = 1.5;
	for (state = 200; state < 210; state++) {
		result = diff_steps(&usual, 3, &slower, 4, "");
		ck_assert_int_eq(result.status, STATUS_DIFFERENT);
		has(result.out, "(mean; 3 before, 4 after; warm-up excluded)");
		has(result.out, "; significant (p ");
		has(result.out, "n = 3 v 4)");
		has(result.out, "ampere_sgemm_128x64_nn\n");
		result = run_report(NULL, "gate a.bin b.bin --step-marker turn");
		ck_assert_int_eq(result.status, STATUS_DIFFERENT);
		has(result.out, "n=3, 4");
	}
}
END_TEST

/* Runs without steps, in which one range is new: it cannot be tested. */
START_TEST(what_is_new_in_a_whole_run_is_not_called_significant)
{
	static const char *const paths[] = { "a.bin", "b.bin" };
	struct report_run result;

	for (uint64_t run = 0; run < 2; run++) {
		struct trace_builder *builder = builder_new();

		build_push(builder, MAIN, 100, "once");
		build_pop(builder, MAIN, 1100);
		if (run) {
			build_push(builder, MAIN, 1200, "more");
			build_pop(builder, MAIN, 2200);
		}
		builder_write(builder, paths[run]);
		builder_free(builder);
	}
	result = run_report(NULL, "diff a.bin b.bin --width 160");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "no statistically significant change (0 call paths tested); 1 of 1 % or "
			"more are new or gone, not tested; 1 new\n");
	has(result.out, "  new     more\n");
}
END_TEST

START_TEST(the_largest_changes_are_shown_although_they_are_noise)
{
	struct report_run result;

	state = 220;
	result = diff_steps(&usual, 6, &usual, 6, "");
	ck_assert_int_eq(result.status, STATUS_OK);
	has(result.out, "; not significant (p ");
	has(result.out, "no statistically significant change (");
	has(result.out, " call paths tested, n = 6 v 6)\n");
	has(result.out, "largest changes that are not significant (n=6 v 6):\n");
	has(strstr(result.out, "largest changes"),
		"  turn/layer/aten::mm/ampere_sgemm_128x64_nn\n");
}
END_TEST

START_TEST(a_trace_does_not_differ_from_itself)
{
	struct report_run result;

	state = 230;
	write_steps("a.bin", &usual, 6);
	result = run_report(NULL, "diff a.bin a.bin --step-marker turn");
	ck_assert_int_eq(result.status, STATUS_OK);
	has(result.out, "no statistically significant change");
	has_not(result.out, "largest changes");
	has_not(result.out, "turn");
}
END_TEST

START_TEST(calls_kernels_and_modules_that_changed_are_told_apart)
{
	struct step_kernels after = usual;
	struct report_run result;

	state = 240;
	after.copies = 12;
	result = diff_steps(&usual, 6, &after, 6, "");
	has(result.out, "copy  3 → 12 calls\n");
	after = usual;
	after.gemm = "volta_sgemm_128x64_nn";
	after.factor = 2;
	result = diff_steps(&usual, 6, &after, 6, "");
	has(result.out, "ampere_sgemm_128x64_nn → volta_sgemm_128x64_nn  replaced\n");
	has(result.out, "; 1 replaced\n");
	has(run_report(NULL, "diff a.bin b.bin --step-marker turn -f json").out,
		"\"status\":\"replaced\",\"name_before\":\"ampere_sgemm_128x64_nn\",");
	after = usual;
	after.module = "block";
	after.factor = 2;
	result = diff_steps(&usual, 6, &after, 6, "");
	has(result.out, "layer → block  renamed\n");
	has(result.out, "ampere_sgemm_128x64_nn\n"); /* the same kernel, below another name */
	after = usual;
	after.gemm = "cutlass_gemm_sm90";
	after.copies = 3;
	result = diff_steps(&usual, 6, &after, 6, ""); /* the only other kernel that is left */
	has(result.out, "ampere_sgemm_128x64_nn → cutlass_gemm_sm90  replaced\n");
	after = usual;
	after.fused = true;
	result = diff_steps(&usual, 6, &after, 6, "");
	has(result.out, "  new         fused\n");
	has_not(result.out, "replaced");
}
END_TEST

/* Ten turns of 100, a pause of 10 after each, and a worker's range in each of them. */
static void write_two_threads(const char *path, uint64_t worker)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 100;

	for (uint64_t i = 0; i < 10; i++, at += 110) {
		build_push(builder, MAIN, at, "turn");
		build_push(builder, 3, at, "load");
		build_pop(builder, 3, at + worker);
		build_pop(builder, MAIN, at + 100);
	}
	builder_write(builder, path);
	builder_free(builder);
}

START_TEST(wall_is_how_long_it_took_and_cpu_what_all_threads_did)
{
	struct report_run result;

	write_two_threads("a.bin", 80);
	write_two_threads("b.bin", 100);
	result = run_report(NULL, "diff a.bin b.bin -m cpu"); /* 10 times 180, 10 times 200 */
	has(result.out, "1.80 \u00b5s     2.00 \u00b5s     +200 ns   +11.1 %          total");
	result = run_report(NULL,
		"diff a.bin b.bin -m wall"); /* from the trace's start, which is 0, to its end */
	has(result.out, "1.19 \u00b5s     1.19 \u00b5s        0 ns    +0.0 %          total");
	result = run_report(NULL, "diff a.bin b.bin --step-marker turn -m wall");
	has(result.out, "100 ns      100 ns        0 ns    +0.0 %          total");
	result = run_report(NULL, "gate a.bin b.bin --ascii -m wall,cpu");
	has(result.out, "pass wall: 1.19 us -> 1.19 us, +0.0 %");
	has(result.out, "FAIL cpu: 1.80 us -> 2.00 us, +11.1 %");
}
END_TEST

START_TEST(memory_that_a_step_takes)
{
	static const char *const paths[] = { "a.bin", "b.bin" };
	struct report_run result;

	for (uint64_t run = 0; run < 2; run++) {
		struct trace_builder *builder = builder_new();
		uint64_t at = 100;

		for (uint64_t i = 0; i < 20; i++, at += 100) {
			build_push(builder, MAIN, at, "turn");
			build_push(builder, MAIN, at + 1, "loss");
			build_alloc(builder, MAIN, at + 10, 4096, 1000 + 1000 * run);
			build_free(builder, MAIN, at + 20, 4096);
			build_pop(builder, MAIN, at + 40);
			build_pop(builder, MAIN, at + 50);
		}
		builder_write(builder, paths[run]);
		builder_free(builder);
	}
	result = run_report(NULL, "diff a.bin b.bin --step-marker turn -m alloc");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "     1.00 kB     2.00 kB    +1.00 kB  +100.0 %  <0.0001 turn");
	result = run_report(NULL, "diff a.bin b.bin --step-marker turn -m reserved");
	ck_assert_int_eq(result.status, STATUS_OK);
}
END_TEST

/* The figures keep their place, and the name what is left of the line, whatever the width. */
START_TEST(lines_are_as_wide_as_requested)
{
	static const int widths[] = { 40, 60, 80, 120 };
	struct report_run result;

	state = 7;
	result = diff(&(struct run){ .marked = true, .factor = 1 },
		&(struct run){ .marked = true,
			.factor = 1,
			.extra = "an operator with a name that is far too long for a line of a "
				 "terminal, in which it stands beside five columns" },
		"");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		char command[100];

		snprintf(command, sizeof command,
			"diff a.bin b.bin --step-marker turn --ascii --width %d", widths[i]);
		result = run_report(NULL, command);
		has(result.out, "an op");
		for (char *line = result.out; *line; line += strcspn(line, "\n") + 1)
			ck_assert_msg(strcspn(line, "\n") <= (size_t)widths[i], "%.120s", line);
	}
}
END_TEST

START_TEST(what_cannot_be_compared)
{
	struct report_run result;

	state = 70;
	result = diff(
		&(struct run){ .factor = 1 }, &(struct run){ .factor = 1, .prefix = "other_" }, "");
	ck_assert_int_eq(result.status, STATUS_UNREADABLE);
	has(result.err, "have no node in common with `cpu`");
	ck_assert_int_eq(run_report(NULL, "diff a.bin b.bin -m gpu").status, STATUS_UNREADABLE);
	ck_assert_int_eq(run_report(NULL, "diff a.bin b.bin -m nothing").status, STATUS_USAGE);
	ck_assert_int_eq(run_report(NULL, "diff a.bin").status, STATUS_USAGE);
	ck_assert_int_eq(run_report(NULL, "diff a.bin none.bin").status, STATUS_UNREADABLE);
}
END_TEST

static struct report_run gate(
	const struct run *before, const struct run *after, const char *options)
{
	char arguments[200];

	write_run("a.bin", before);
	write_run("b.bin", after);
	snprintf(arguments, sizeof arguments, "gate a.bin b.bin --step-marker turn %s", options);
	return run_report(NULL, arguments);
}

START_TEST(a_gate_fails_and_says_who_it_was)
{
	const struct run before = { .marked = true, .gpu = true, .factor = 1 }, after = {
		.marked = true, .gpu = true, .factor = 5
	}; /* 1/50 of a step: 8 % more */
	struct report_run result;

	state = 80;
	result = gate(&before, &after, "");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	ck_assert_int_eq(strncmp(result.out, "FAIL gpu: 1.15 ms → 1.2", 24), 0);
	has(result.out, "% (limit +5 %; p <0.0001, n=100, 100); largest increase in "
			"turn/op_17/kernel_17 (+");
	ck_assert_ptr_eq(strchr(result.out, '\n') + 1, strstr(result.out, "method"));
	ck_assert_int_eq(
		run_report(NULL, "gate a.bin b.bin --step-marker turn --max-regression 20%").status,
		STATUS_OK);
	result = run_report(
		NULL, "gate a.bin b.bin --step-marker turn --metric cpu,gpu --max-regression 3");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "FAIL cpu: ");
	has(result.out, "FAIL gpu: ");
	result = run_report(NULL, "gate b.bin a.bin --step-marker turn");
	ck_assert_int_eq(result.status, STATUS_OK);
	has(result.out, "pass gpu: ");
}
END_TEST

/* Steps of 2 to 40 us that are mostly noise, `factor` as long. */
static void write_noise(const char *path, double factor, int steps)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;

	for (int step = 0; step < steps; step++) {
		build_push(builder, MAIN, at, "turn");
		build_push(builder, MAIN, at + 1, "work");
		at += (uint64_t)(factor * (2000 + 38000 * uniform()));
		build_pop(builder, MAIN, at);
		build_pop(builder, MAIN, at + 1);
		at += 500;
	}
	builder_write(builder, path);
	builder_free(builder);
}

START_TEST(a_gate_does_not_fail_for_noise)
{
	const char *command = "gate a.bin b.bin --step-marker turn -m cpu --max-regression 0";
	int failed = 0, beyond = 0;
	struct report_run result;

	state = 100;
	for (int pair = 0; pair < 60; pair++) {
		write_noise("a.bin", 1, 40);
		write_noise("b.bin", 1, 40);
		result = run_report(NULL, command);
		ck_assert_int_lt(result.status, 2);
		failed += result.status;
		beyond += strstr(result.out, "beyond the limit, but not significant") != NULL;
	}
	ck_assert_int_le(failed, 3);
	ck_assert_int_ge(beyond, 15); /* so many would have failed it */
	write_noise("b.bin", 2, 40);
	result = run_report(NULL, command);
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "FAIL cpu: ");
	has(result.out, "largest increase in turn/work");
	has(result.out, "Mann-Whitney");
}
END_TEST

/* Steps are not compared if a run has too few of them. */
START_TEST(a_gate_says_how_many_steps_whole_runs_have)
{
	const char *command = "gate a.bin b.bin --step-marker turn -m cpu";
	struct report_run result;

	state = 100;
	write_noise("a.bin", 1, 2);
	write_noise("b.bin", 1, 8);
	result = run_report(NULL, command);
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "whole runs are compared, of 2 and 8 steps");
	write_noise("a.bin", 1, 8);
	ck_assert_ptr_null(strstr(run_report(NULL, command).out, "whole runs"));
}
END_TEST

START_TEST(a_gate_says_what_distinguished_a_change_from_noise)
{
	struct report_run result;

	state = 101;
	write_noise("a.bin", 1, 40);
	write_noise("b.bin", 4, 30);
	result = run_report(NULL, "gate a.bin b.bin --step-marker turn -m cpu");
	has(result.out, "(limit +5 %; p <0.0001, n=40, 30)");
	result = run_report(NULL, "gate a.bin b.bin --step-marker turn -m cpu -f json");
	has(result.out, "\"ranks\":[null,null],\"method\":\"Welch's t");
	has(result.out, "\"passed\":false,\"beyond\":true,\"p\":");
	has(result.out, "\"n_before\":40,\"n_after\":30,");
	result = run_report(
		NULL, "gate a.bin b.bin --step-marker none -m cpu"); /* a run is one value */
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "(limit +5 %); largest increase in turn");
	has_not(result.out, "Mann-Whitney");
}
END_TEST

START_TEST(a_gate_names_an_operator_that_takes_5_percent_more)
{
	for (state = 110; state < 113; state++) {
		struct report_run result = gate(
			&(struct run){ .marked = true, .gpu = true, .factor = 20 },
			&(struct run){ .marked = true, .gpu = true, .factor = 21 },
			"-m gpu --max-regression 1%");

		ck_assert_int_eq(result.status, STATUS_DIFFERENT);
		has(result.out, "largest increase in turn/op_17/kernel_17");
	}
}
END_TEST

/* Two runs of two ranks; rank 1 of the second is slower. */
static void write_ranks(void)
{
	for (int file = 0; file < 4; file++) {
		struct trace_builder *builder = builder_new();
		const uint64_t took = 1000 + 1000 * (file == 3);
		char path[16], rank[2] = { (char)('0' + file % 2), 0 };

		snprintf(path, sizeof path, "%c%d.bin", "ab"[file / 2], file % 2);
		builder_header(builder)->run_id = 7 + (uint64_t)(file / 2);
		builder_header(builder)->pid = 100 + (uint32_t)file;
		build_meta(builder, "rank", rank);
		for (uint64_t step = 0, at = 100; step < 20; step++, at += took + 100) {
			build_push(builder, MAIN, at, "turn");
			build_pop(builder, MAIN, at + took);
		}
		builder_write(builder, path);
		builder_free(builder);
	}
}

START_TEST(the_selected_rank_is_compared)
{
	struct report_run result;

	write_ranks();
	result = run_report(NULL, "diff a0.bin b0.bin --step-marker turn");
	ck_assert_int_eq(result.status, STATUS_OK);
	has(result.out, "a0.bin (rank 0; --rank N selects another)");
	result = run_report(NULL, "diff a0.bin b0.bin --step-marker turn --rank 1");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "a1.bin (rank 1)");
	has(result.out, "b1.bin (rank 1)");
	has(run_report(NULL, "diff a0.bin b0.bin --step-marker turn --rank 1 -f json").out,
		"\"ranks\":[1,1],");
	result = run_report(NULL, "gate a0.bin b0.bin --step-marker turn");
	ck_assert_int_eq(result.status, STATUS_OK);
	has(result.out, "rank 0 before, 0 after; --rank N selects another\n");
	result = run_report(NULL, "gate a0.bin b0.bin --step-marker turn --rank 1");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "rank 1 before, 1 after\n");
	ck_assert_int_eq(run_report(NULL, "gate a0.bin --rank 1 --write-baseline base.json").status,
		STATUS_OK);
	has(run_report(NULL, "gate base.json b0.bin --rank 1").out, "rank 1 before, 1 after\n");
	result = run_report(NULL, "diff a0.bin b0.bin --rank 5");
	ck_assert_int_eq(result.status, STATUS_USAGE);
	has(result.err, "no process of the run of a0.bin has rank 5");
	result = run_report(NULL, "gate a0.bin b0.bin --all");
	ck_assert_int_eq(result.status, STATUS_USAGE);
	has(result.err, "diff compares one process of each run");
	ck_assert_int_eq(run_report(NULL, "diff a0.bin b0.bin --all").status, STATUS_USAGE);
}
END_TEST

/* Each step works on two GPUs; on the second it takes twice the time in the second run. */
START_TEST(only_the_selected_device)
{
	static const char *const paths[] = { "a.bin", "b.bin" };

	for (uint64_t run = 0; run < 2; run++) {
		struct trace_builder *builder = builder_new();
		uint64_t at = 1000, correlation = 0;

		build_device(builder, 0, "device");
		for (int step = 0; step < 20; step++, at += 10000) {
			build_push(builder, MAIN, at, "turn");
			for (uint32_t device = 0; device < 2; device++) {
				build_launch(builder, MAIN, at + 10 + 100 * device, ++correlation);
				build_kernel(builder, GPU, at + 9000, correlation, "kernel",
					at + 500, at + 1500 + 1000 * run * device)
					->gpu.device = device;
			}
			build_pop(builder, MAIN, at + 9500);
		}
		builder_write(builder, paths[run]);
		builder_free(builder);
	}
	ck_assert_int_eq(
		run_report(NULL, "diff a.bin b.bin --step-marker turn -m gpu --device 0").status,
		STATUS_OK);
	ck_assert_int_eq(
		run_report(NULL, "diff a.bin b.bin --step-marker turn -m gpu --device 1").status,
		STATUS_DIFFERENT);
	ck_assert_int_eq(
		run_report(NULL, "gate a.bin b.bin --step-marker turn -m gpu --device 0").status,
		STATUS_OK);
	has(run_report(NULL, "gate a.bin b.bin --step-marker turn -m gpu --device 1").out,
		", +100.0 %");
}
END_TEST

START_TEST(a_gate_with_a_baseline_says_the_same)
{
	const struct run before = { .marked = true,
		.gpu = true,
		.factor = 1,
		.prefix = "op/\\ä\xff" },
			 after = {
				 .marked = true, .gpu = true, .factor = 5, .prefix = "op/\\ä\xff"
			 };
	struct report_run traces, baseline;

	state = 90;
	traces = gate(&before, &after, "-m gpu,cpu,calls -f csv");
	ck_assert_int_eq(traces.status, STATUS_DIFFERENT);
	ck_assert_int_eq(
		run_report(NULL, "gate --write-baseline base.json a.bin --step-marker turn").status,
		STATUS_OK);
	baseline = run_report(
		NULL, "gate base.json b.bin --step-marker turn -m gpu,cpu,calls -f csv");
	ck_assert_int_eq(baseline.status, STATUS_DIFFERENT);
	ck_assert_str_eq(baseline.out, traces.out);
	ck_assert_int_eq(
		run_report(NULL, "gate base.json a.bin --step-marker turn --max-regression 0")
			.status,
		STATUS_OK);
	ck_assert_int_eq(run_report(NULL, "gate base.json b.bin --step-marker none").status,
		STATUS_UNREADABLE);
	ck_assert_int_eq(truncate("base.json", 300), 0);
	ck_assert_int_eq(run_report(NULL, "gate base.json a.bin --step-marker turn").status,
		STATUS_UNREADABLE);
}
END_TEST

static const char *const damaged_baselines[] = {
	"\"figures\":[{\"name\":\"gpu\",\"rows\":[[]]}]",
	"\"steps\":-1,\"figures\":[{\"name\":\"gpu\",\"value\":1}]",
	"\"steps\":1e308,\"figures\":[{\"name\":\"gpu\",\"value\":1}]",
	"\"steps\":18446744073709551616,\"figures\":[{\"name\":\"gpu\",\"value\":1}]",
	"\"rank\":-1e300,\"figures\":[{\"name\":\"gpu\",\"value\":1}]",
	"\"rank\":9223372036854775808,\"figures\":[{\"name\":\"gpu\",\"value\":1}]",
	"\"figures\":[{\"name\":\"gpu\",\"value\":1e999}]",
	"\"figures\":[{\"name\":\"gpu\",\"value\":1,\"values\":[-1e999]}]",
	"\"figures\":[{\"name\":\"gpu\",\"value\":1,\"rows\":[[\"a\",1e999]]}]",
};

START_TEST(a_baseline_with_numbers_that_are_none_is_damaged)
{
	const struct run run = { .marked = true, .gpu = true, .factor = 1, .prefix = "op/" };
	FILE *file;

	state = 90;
	gate(&run, &run, "-m gpu");
	file = fopen("base.json", "w");
	fprintf(file, "{\"schema\":\"pperf.baseline/1\",%s}", damaged_baselines[_i]);
	fclose(file);
	ck_assert_int_eq(run_report(NULL, "gate base.json a.bin --step-marker turn").status,
		STATUS_UNREADABLE);
}
END_TEST

START_TEST(a_gate_of_peaks)
{
	static const char *const paths[] = { "a.bin", "b.bin" };
	struct report_run result;

	for (uint64_t run = 0; run < 2; run++) {
		struct trace_builder *builder = builder_new();

		build_push(builder, MAIN, 1, "model");
		build_alloc(builder, MAIN, 10, 4096, 1000000);
		build_pop(builder, MAIN, 20);
		build_push(builder, MAIN, 21, "loss");
		build_alloc(builder, MAIN, 30, 8192, 1000 + 200000 * run);
		build_free(builder, MAIN, 40, 8192);
		build_pop(builder, MAIN, 50);
		builder_write(builder, paths[run]);
		builder_free(builder);
	}
	result = run_report(NULL, "gate a.bin b.bin --metric reserved_peak --max-regression 10%");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "FAIL reserved_peak: 1.00 MB → 1.20 MB, +20.0 % (limit +10 %); largest "
			"increase in loss (+200.00 kB)\n");
	result = run_report(NULL, "gate a.bin b.bin --metric largest_place_peak,retries,ooms");
	ck_assert_int_eq(result.status, STATUS_OK);
	has(result.out, "pass largest_place_peak: 1.00 MB → 1.00 MB, +0.0 % (limit +5 %)\n");
	has(result.out, "pass retries: 0 → 0 (limit +5 %)\npass ooms: 0 → 0 (limit +5 %)\n");
	ck_assert_int_eq(
		run_report(NULL, "gate a.bin b.bin --metric waste_peak").status, STATUS_UNREADABLE);
}
END_TEST

static void write_exhausted(const char *path, bool repeated)
{
	struct trace_builder *builder = builder_new();
	struct trace_memory *failed;

	build_push(builder, MAIN, 1, "model");
	build_alloc(builder, MAIN, 10, 4096, 500000);
	failed = build_record(builder, MAIN, TRACE_ALLOC, sizeof *failed, 20);
	failed->call.result = 2;
	failed->bytes = 700000;
	failed->memory_kind = TRACE_MEMORY_DEVICE;
	build_free(builder, MAIN, 30, 4096);
	if (repeated)
		build_alloc(builder, MAIN, 40, 8192, 700000);
	build_pop(builder, MAIN, 50);
	builder_write(builder, path);
	builder_free(builder);
}

START_TEST(a_gate_of_exhausted_memory)
{
	struct report_run result;

	write_exhausted("a.bin", true);
	write_exhausted("b.bin", false);
	result = run_report(NULL, "gate a.bin b.bin --metric retries,ooms,largest_place_peak");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "pass retries: 1 → 0, -100.0 % (limit +5 %)\n");
	has(result.out, "FAIL ooms: 0 → 1 (limit +5 %)\n");
	has(result.out, "pass largest_place_peak: 700.00 kB → 500.00 kB, -28.6 % (limit +5 %)\n");
}
END_TEST

/* At the peak, tensors of 10, 30 and 10 MB are in a segment of 100 MB. With `apart` the free 50 MB
 * are gaps of 20 and 30 MB, else one gap. */
static void write_gaps(const char *path, bool apart)
{
	struct trace_builder *builder = builder_new();
	const uint64_t segment = 1 << 30, mb = 1000000, last = segment + (apart ? 60 : 40) * mb;

	build_push(builder, MAIN, 1, "model");
	build_alloc(builder, MAIN, 10, segment, 100 * mb);
	build_tensor(builder, MAIN, 20, segment, (int64_t)(10 * mb), 10 * mb, 100 * mb);
	build_tensor(builder, MAIN, 30, segment + (apart ? 30 : 10) * mb, (int64_t)(30 * mb),
		40 * mb, 100 * mb);
	build_tensor(builder, MAIN, 40, last, (int64_t)(10 * mb), 50 * mb, 100 * mb);
	build_pop(builder, MAIN, 50);
	builder_write(builder, path);
	builder_free(builder);
}

START_TEST(a_gate_of_fragmentation_at_the_peak)
{
	struct report_run result;

	write_gaps("a.bin", false);
	write_gaps("b.bin", true);
	result = run_report(NULL, "gate a.bin b.bin --metric fragmentation_peak,waste_peak");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "FAIL fragmentation_peak: 0.0 % → 40.0 % (limit +5 %)\n");
	has(result.out, "pass waste_peak: 50.00 MB → 50.00 MB, +0.0 % (limit +5 %)\n");
	ck_assert_int_eq(
		run_report(NULL, "gate --write-baseline base.json a.bin").status, STATUS_OK);
	result = run_report(NULL, "gate base.json b.bin --metric fragmentation_peak");
	has(result.out, "FAIL fragmentation_peak: 0.0 % → 40.0 % (limit +5 %)\n");
	ck_assert_int_eq(
		run_report(NULL, "gate b.bin a.bin --metric fragmentation_peak").status, STATUS_OK);
	write_exhausted("a.bin", true); /* without PyTorch */
	ck_assert_int_eq(run_report(NULL, "gate a.bin b.bin --metric fragmentation_peak").status,
		STATUS_UNREADABLE);
}
END_TEST

/* Each step allocates two tensors and keeps one of `kept` bytes (0: none). */
static void write_growth(const char *path, int64_t kept)
{
	struct trace_builder *builder = builder_new();
	uint64_t held = 0;
	char name[32];

	build_alloc(builder, MAIN, 5, 1 << 30, 1 << 29);
	for (uint64_t step = 0; step < 30; step++) {
		const uint64_t at = 1000 * (step + 1), address = (1 << 30) + (step << 24);

		snprintf(name, sizeof name, "step %d", (int)step);
		build_push(builder, MAIN, at, name);
		build_tensor(builder, MAIN, at + 10, address, 4096, held + 4096, 1 << 29);
		build_tensor(builder, MAIN, at + 20, address, -4096, held, 1 << 29);
		held += (uint64_t)kept;
		if (kept)
			build_tensor(builder, MAIN, at + 30, address + 4096, kept, held, 1 << 29);
		build_pop(builder, MAIN, at + 900);
	}
	builder_write(builder, path);
	builder_free(builder);
}

START_TEST(a_gate_of_growth_per_step)
{
	struct report_run result;

	write_growth("a.bin", 0);
	write_growth("b.bin", 2000000);
	write_growth("c.bin", 2080000);
	result = run_report(NULL, "gate a.bin b.bin --metric growth_per_step");
	ck_assert_int_eq(result.status, STATUS_DIFFERENT);
	has(result.out, "FAIL growth_per_step: 0 B → 2.00 MB (limit +5 %)\n");
	result = run_report(NULL, "gate b.bin c.bin --metric growth_per_step");
	ck_assert_int_eq(result.status, STATUS_OK);
	has(result.out, "pass growth_per_step: 2.00 MB → 2.08 MB, +4.0 % (limit +5 %)\n");
	write_gaps("a.bin", true); /* without steps */
	ck_assert_int_eq(run_report(NULL, "gate a.bin b.bin --metric growth_per_step").status,
		STATUS_UNREADABLE);
}
END_TEST

START_TEST(what_a_gate_cannot_do)
{
	struct report_run result;

	state = 95;
	result = gate(&(struct run){ .factor = 1 }, &(struct run){ .factor = 1 }, "-m gpu");
	ck_assert_int_eq(result.status, STATUS_UNREADABLE);
	has(result.err, "a.bin has no values of `gpu` to compare");
	ck_assert_int_eq(run_report(NULL, "gate a.bin").status, STATUS_USAGE);
	ck_assert_int_eq(run_report(NULL, "gate a.bin b.bin -m nothing").status, STATUS_USAGE);
	ck_assert_int_eq(
		run_report(NULL, "gate a.bin b.bin --max-regression much").status, STATUS_USAGE);
	ck_assert_int_eq(run_report(NULL, "gate a.bin none.bin").status, STATUS_UNREADABLE);
	ck_assert_int_eq(run_report(NULL, "gate a.bin b.bin").status, STATUS_OK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("diff");
	TCase *runs = tcase_create("runs");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(runs, run_report_setup, run_report_teardown);
	tcase_set_timeout(runs, 120);
	tcase_add_test(runs, equal_runs_differ_in_5_of_100_at_most);
	tcase_add_test(runs, nor_do_those_whose_steps_are_like_the_one_before);
	tcase_add_test(runs, nor_those_without_steps);
	tcase_add_test(runs, five_percent_in_one_of_50_operators_is_named);
	tcase_add_test(runs, a_run_that_is_slower_as_a_whole_hides_no_node);
	tcase_add_test(runs, also_without_steps);
	tcase_add_test(runs, on_the_gpu_the_kernel_and_its_operator);
	tcase_add_test(runs, what_is_new_and_what_is_missing);
	tcase_add_test(runs, json_has_all_rows);
	tcase_add_test(runs, one_value_is_not_tested);
	tcase_add_test(runs, three_steps_are_enough_for_a_change_of_half);
	tcase_add_test(runs, what_is_new_in_a_whole_run_is_not_called_significant);
	tcase_add_test(runs, the_largest_changes_are_shown_although_they_are_noise);
	tcase_add_test(runs, a_trace_does_not_differ_from_itself);
	tcase_add_test(runs, calls_kernels_and_modules_that_changed_are_told_apart);
	tcase_add_test(runs, wall_is_how_long_it_took_and_cpu_what_all_threads_did);
	tcase_add_test(runs, memory_that_a_step_takes);
	tcase_add_test(runs, lines_are_as_wide_as_requested);
	tcase_add_test(runs, what_cannot_be_compared);
	tcase_add_test(runs, a_gate_fails_and_says_who_it_was);
	tcase_add_test(runs, a_gate_does_not_fail_for_noise);
	tcase_add_test(runs, a_gate_says_how_many_steps_whole_runs_have);
	tcase_add_test(runs, a_gate_says_what_distinguished_a_change_from_noise);
	tcase_add_test(runs, a_gate_names_an_operator_that_takes_5_percent_more);
	tcase_add_test(runs, the_selected_rank_is_compared);
	tcase_add_test(runs, only_the_selected_device);
	tcase_add_test(runs, a_gate_with_a_baseline_says_the_same);
	tcase_add_loop_test(runs, a_baseline_with_numbers_that_are_none_is_damaged, 0,
		sizeof damaged_baselines / sizeof *damaged_baselines);
	tcase_add_test(runs, a_gate_of_peaks);
	tcase_add_test(runs, a_gate_of_exhausted_memory);
	tcase_add_test(runs, a_gate_of_fragmentation_at_the_peak);
	tcase_add_test(runs, a_gate_of_growth_per_step);
	tcase_add_test(runs, what_a_gate_cannot_do);
	suite_add_tcase(suite, runs);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
