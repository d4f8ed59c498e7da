/* SPDX-License-Identifier: MIT
 * test_critical.c: the critical tree as its reader sees it, to the character.
 */
#include "tests/support/view_test.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A SLAM program in which one loop closure takes memory in two steps. */
static struct trace_builder *slam(void)
{
	struct trace_builder *builder = builder_new();

	build_alloc(builder, 1, 10, 0x1000, 7970000000);
	build_push(builder, 1, 100, "slam");
	build_push(builder, 1, 200, "track - kf: 13");
	build_pop(builder, 1, 300);
	build_push(builder, 1, 400, "track - kf: 71");
	build_push(builder, 1, 410, "loop closure - kf: 71");
	build_push(builder, 1, 420, "droid - step: 0");
	build_push(builder, 1, 425, "gru");
	build_alloc(builder, 1, 430, 0x2000, 404750000);
	build_pop(builder, 1, 435);
	build_pop(builder, 1, 440);
	build_push(builder, 1, 450, "droid - step: 1");
	build_push(builder, 1, 455, "gru");
	build_alloc(builder, 1, 460, 0x3000, 404750000);
	build_pop(builder, 1, 465);
	build_pop(builder, 1, 470);
	build_pop(builder, 1, 480);
	build_push(builder, 1, 485, "motion filter");
	build_pop(builder, 1, 490);
	build_pop(builder, 1, 500);
	build_pop(builder, 1, 600);
	build_free(builder, 1, 700, 0x2000);
	build_free(builder, 1, 700, 0x3000);
	return builder;
}

static void expect(struct report_run run, const char *out)
{
	ck_assert_str_eq(run.err, "");
	ck_assert_str_eq(run.out, out);
	ck_assert_int_eq(run.status, 0);
}

START_TEST(a_level_shows_before_after_and_difference)
{
	expect(run_report(slam(), "critical trace.bin -m reserved"),
		"slam ──────────────────────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 "
		"∆)\n"
		"  └── track - kf: 71 ──────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 "
		"∆)\n"
		"      └── loop closure - kf: 71 ───────────────────│ 7.97 GB → 8.78 GB (0.8095 "
		"∆)\n"
		"          ├── droid - step: 1 ─────────────────────│ 8.37 GB → 8.78 GB (0.4048 "
		"∆)\n"
		"          │   └── gru ─────────────────────────────│ 8.37 GB → 8.78 GB (0.4048 "
		"∆)\n"
		"          └── droid - step: 0 ─────────────────────│ 7.97 GB → 8.37 GB (0.4048 "
		"∆)\n"
		"              └── gru ─────────────────────────────│ 7.97 GB → 8.37 GB (0.4048 "
		"∆)\n");
}
END_TEST

START_TEST(it_starts_at_the_node_in_focus)
{
	expect(run_report(slam(), "critical trace.bin -m reserved --focus 'slam/track - kf: "
				  "*/loop closure - kf: *'"),
		"loop closure - kf: 71 ─────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 "
		"∆)\n"
		"  ├── droid - step: 1 ─────────────────────────────│ 8.37 GB → 8.78 GB (0.4048 "
		"∆)\n"
		"  │   └── gru ─────────────────────────────────────│ 8.37 GB → 8.78 GB (0.4048 "
		"∆)\n"
		"  └── droid - step: 0 ─────────────────────────────│ 7.97 GB → 8.37 GB (0.4048 "
		"∆)\n"
		"      └── gru ─────────────────────────────────────│ 7.97 GB → 8.37 GB (0.4048 "
		"∆)\n");
	ck_assert_int_eq(
		run_report(NULL, "critical trace.bin -m reserved --focus nowhere").status, 64);
}
END_TEST

START_TEST(a_flow_shows_its_share)
{
	expect(run_report(slam(), "critical trace.bin -m cpu"),
		"slam ──────────────────────────────────────────────│ 500.00 ns (100 %)\n"
		"  ├── track - kf: 71 ──────────────────────────────│ 100.00 ns (20.0 %)\n"
		"  │   ├── loop closure - kf: 71 ───────────────────│ 70.00 ns (14.0 %)\n"
		"  │   │   ├── droid - step: 1 ─────────────────────│ 20.00 ns (4.0 %)\n"
		"  │   │   │   └── gru ─────────────────────────────│ 10.00 ns (2.0 %)\n"
		"  │   │   └── droid - step: 0 ─────────────────────│ 20.00 ns (4.0 %)\n"
		"  │   │       └── gru ─────────────────────────────│ 10.00 ns (2.0 %)\n"
		"  │   └── motion filter ───────────────────────────│ 5.00 ns (1.0 %)\n"
		"  └── track - kf: 13 ──────────────────────────────│ 100.00 ns (20.0 %)\n");
	expect(run_report(NULL, "critical trace.bin -m alloc --iec -d 2"),
		"slam ──────────────────────────────────────────────│ 772.00 MiB (100 %)\n"
		"  └── track - kf: 71 ──────────────────────────────│ 772.00 MiB (100 %)\n"
		"not shown: 1 deeper (--depth)\n");
	expect(run_report(NULL, "critical trace.bin -m calls -d 1"),
		"slam ──────────────────────────────────────────────│ 11 (100 %)\n"
		"not shown: 2 deeper (--depth)\n");
}
END_TEST

START_TEST(ascii_has_no_other_character)
{
	expect(run_report(slam(), "critical trace.bin -m reserved --ascii"),
		"slam ----------------------------------------------| 7.97 GB -> 8.78 GB (0.8095 "
		"d)\n"
		"  +-- track - kf: 71 ------------------------------| 7.97 GB -> 8.78 GB (0.8095 "
		"d)\n"
		"      +-- loop closure - kf: 71 -------------------| 7.97 GB -> 8.78 GB (0.8095 "
		"d)\n"
		"          |-- droid - step: 1 ---------------------| 8.37 GB -> 8.78 GB (0.4048 "
		"d)\n"
		"          |   +-- gru -----------------------------| 8.37 GB -> 8.78 GB (0.4048 "
		"d)\n"
		"          +-- droid - step: 0 ---------------------| 7.97 GB -> 8.37 GB (0.4048 "
		"d)\n"
		"              +-- gru -----------------------------| 7.97 GB -> 8.37 GB (0.4048 "
		"d)\n");
	ck_assert_ptr_nonnull(strstr(
		run_report_with("LC_ALL=C", "critical trace.bin -m reserved").out, "(0.8095 d)"));
}
END_TEST

START_TEST(a_width_shortens_labels_in_their_middle)
{
	expect(run_report(slam(), "critical trace.bin -m reserved --width 62"),
		"slam ───────────────────────────│ 7.97 GB → 8.78 GB (0.8095 ∆)\n"
		"  └── track - kf: 71 ───────────│ 7.97 GB → 8.78 GB (0.8095 ∆)\n"
		"      └── loop clos… - kf: 71 ──│ 7.97 GB → 8.78 GB (0.8095 ∆)\n"
		"          ├── droid - step: 1 ──│ 8.37 GB → 8.78 GB (0.4048 ∆)\n"
		"          │   └── gru ──────────│ 8.37 GB → 8.78 GB (0.4048 ∆)\n"
		"          └── droid - step: 0 ──│ 7.97 GB → 8.37 GB (0.4048 ∆)\n"
		"              └── gru ──────────│ 7.97 GB → 8.37 GB (0.4048 ∆)\n");
	/* Where there is no room for them, the tree's lines are narrow, and in the end a number. */
	expect(run_report(slam(), "critical trace.bin -m reserved --width 46"),
		"slam ───────────│ 7.97 GB → 8.78 GB (0.8095 ∆)\n"
		"└ track…f: 71 ──│ 7.97 GB → 8.78 GB (0.8095 ∆)\n"
		"  └ loop…: 71 ──│ 7.97 GB → 8.78 GB (0.8095 ∆)\n"
		"    ├ dro…: 1 ──│ 8.37 GB → 8.78 GB (0.4048 ∆)\n"
		"    │ └ gru ────│ 8.37 GB → 8.78 GB (0.4048 ∆)\n"
		"    └ dro…: 0 ──│ 7.97 GB → 8.37 GB (0.4048 ∆)\n"
		"      └ gru ────│ 7.97 GB → 8.37 GB (0.4048 ∆)\n");
	/* Without one, and off a terminal, the layout does not depend on the surroundings. */
	ck_assert_str_eq(run_report_with("COLUMNS=60", "critical trace.bin -m reserved").out,
		run_report_with("COLUMNS=200", "critical trace.bin -m reserved").out);
}
END_TEST

START_TEST(the_bar_moves_right_for_a_long_label)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 0, "a label of exactly forty-nine columns, no more 123");
	build_push(builder, 1, 10, "\xe4\xb8\xad\xe6\x96\x87 wide\x1b[2J");
	build_pop(builder, 1, 90);
	build_pop(builder, 1, 100);
	expect(run_report(builder, "critical trace.bin"),
		"a label of exactly forty-nine columns, no more 123 ──│ 100.00 ns (100 %)\n"
		"  └── 中文 wide\\x1b[2J ──────────────────────────────│ 80.00 ns (80.0 %)\n");
}
END_TEST

START_TEST(memory_that_shrinks_has_a_negative_difference)
{
	struct trace_builder *builder = builder_new();

	build_alloc(builder, 1, 1, 0x1000, 404750000);
	build_push(builder, 1, 10, "a");
	build_alloc(builder, 1, 11, 0x2000, 1000000000);
	build_push(builder, 1, 20, "gives");
	build_free(builder, 1, 21, 0x1000);
	build_pop(builder, 1, 30);
	build_pop(builder, 1, 40);
	expect(run_report(builder, "critical trace.bin -m reserved"),
		"a ─────────────────────────────────────────────────│ 0.40 GB → 1.00 GB (0.5952 "
		"∆)\n"
		"  └── gives ───────────────────────────────────────│ 1.40 GB → 1.00 GB (-0.4048 "
		"∆)\n");
}
END_TEST

START_TEST(what_makes_up_less_than_1_percent_is_left_out)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 0, "root");
	build_push(builder, 1, 100, "exactly");
	build_pop(builder, 1, 200); /* 1 % */
	build_push(builder, 1, 300, "below");
	build_pop(builder, 1, 399);
	build_pop(builder, 1, 10000);
	expect(run_report(builder, "critical trace.bin"),
		"root ──────────────────────────────────────────────│ 10.00 µs (100 %)\n"
		"  └── exactly ─────────────────────────────────────│ 0.10 µs (1.0 %)\n");
}
END_TEST

START_TEST(the_root_with_the_most_shows_its_worst_instance)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 0;

	build_push(builder, 1, at, "init"); /* the longest single one, but less than all steps */
	build_pop(builder, 1, at += 500);
	for (unsigned i = 0; i < 10; i++) {
		char label[16];

		snprintf(label, sizeof label, "round %u", i);
		build_push(builder, 1, at += 10, label);
		build_pop(builder, 1, at += i == 7 || i == 4 ? 110 : 100);
	}
	expect(run_report(builder, "critical trace.bin"),
		"round 7 ───────────────────────────────────────────│ 110.00 ns (100 %)\n");
	expect(run_report(NULL, "critical trace.bin --no-fold"),
		"init ──────────────────────────────────────────────│ 500.00 ns (100 %)\n");
}
END_TEST

START_TEST(by_gpu_time_kernels_are_the_leaves)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	for (unsigned i = 0; i < 2; i++) {
		build_push(builder, 1, i * 100, "step");
		build_push(builder, 1, i * 100 + 10, "layer");
		build_launch(builder, 1, i * 100 + 20, 10 + i);
		build_pop(builder, 1, i * 100 + 30);
		build_graph_launch(builder, 1, i * 100 + 40, 20 + i, 3);
		build_pop(builder, 1, i * 100 + 50);
	}
	for (unsigned i = 0; i < 2; i++) {
		build_kernel(
			builder, 9, 9000, 10 + i, "_Z4gemmPf", 1000 + i * 10000, 1642 + i * 10000);
		build_kernel(builder, 9, 9000, 20 + i, "fused", 2000 + i * 10000,
			2300 + i * 10000 + i * 50);
		build_kernel(builder, 9, 9000, 20 + i, "tiny", 3000 + i * 10000, 3008 + i * 10000);
	}
	expect(run_report(builder, "critical trace.bin -m gpu"),
		"step ──────────────────────────────────────────────│ 1.00 µs (100 %)\n"
		"  ├── layer ───────────────────────────────────────│ 0.64 µs (64.2 %)\n"
		"  │   └── gemm  <<<(64,1,1),(128,1,1)>>> ──────────│ 0.64 µs (64.2 %)\n"
		"  └── graph 3 ─────────────────────────────────────│ 0.36 µs (35.8 %)\n"
		"      └── fused  <<<(64,1,1),(128,1,1)>>> ─────────│ 0.35 µs (35.0 %)\n");
	expect(run_report(NULL, "critical trace.bin -m idle -d 1"),
		"no range has a value of this metric; `pperf-report info` shows what was "
		"recorded\n");
}
END_TEST

/* In one range 10 kernels `many` of 100 each, `one` of 700, and four `odd`, of which one has 250
 * and the others 20 each. The trace does not say how they were launched. */
static struct trace_builder *kernels_in_a_row(void)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 10, "step");
	for (unsigned i = 1; i <= 15; i++)
		build_launch(builder, 1, 10 + 10 * i, i);
	build_pop(builder, 1, 200);
	for (unsigned i = 1; i <= 15; i++) {
		const uint64_t ns = i <= 10 ? 100 : i == 11 ? 700 : i == 12 ? 250 : 20;
		struct trace_kernel *kernel = build_kernel(builder, 9, 9000, i,
			i <= 10   ? "many"
			: i == 11 ? "one"
				  : "odd",
			at, at + ns);

		kernel->grid[0] = 0;
		at += ns + 10;
	}
	return builder;
}

START_TEST(kernels_that_do_not_stand_out_are_one_row)
{
	expect(run_report(kernels_in_a_row(), "critical trace.bin -m gpu"),
		"step ──────────────────────────────────────────────│ 2.01 µs (100 %)\n"
		"  ├── many ×10 ────────────────────────────────────│ 1.00 µs (49.8 %)\n"
		"  ├── one ─────────────────────────────────────────│ 0.70 µs (34.8 %)\n"
		"  ├── odd ─────────────────────────────────────────│ 0.25 µs (12.4 %)\n"
		"  └── odd ×3 ──────────────────────────────────────│ 0.06 µs (3.0 %)\n");
}
END_TEST

START_TEST(names_cut_in_their_middle_can_be_distinguished)
{
	struct trace_builder *builder = builder_new();
	static const char *const names[] = {
		"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_NTA0_NTB0_NTC0_NTD4_WS64_WG32",
		"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_NTA4_NTB0_NTC0_NTD4_WS64_WG32"
	};
	struct report_run run;

	build_push(builder, 1, 10, "step");
	for (unsigned i = 0; i < 2; i++) {
		build_push(builder, 1, 100 + i * 100, names[i]);
		build_pop(builder, 1, 180 + i * 100);
	}
	build_pop(builder, 1, 400);
	run = run_report(builder, "critical trace.bin -m cpu --ascii --width 70");
	ck_assert_msg(strstr(run.out, "NTA0") && strstr(run.out, "NTA4"), "%s", run.out);
	for (char *line = strtok(run.out, "\n"); line; line = strtok(NULL, "\n"))
		ck_assert_msg(strlen(line) <= 70, "%s", line);
}
END_TEST

/* Names are whole in a file and in a pipe, and shortened to a width that is given. */
START_TEST(off_a_terminal_names_are_whole)
{
	struct trace_builder *builder = builder_new();
	char name[1000] = { [999] = '\0' };

	memset(name, 'x', sizeof name - 1);
	build_push(builder, 1, 100, name);
	build_pop(builder, 1, 200);
	ck_assert_ptr_nonnull(
		strstr(run_report(builder, "critical trace.bin -m cpu --ascii").out, name));
	ck_assert_ptr_nonnull(strstr(run_report(NULL, "tree trace.bin --ascii").out, name));
	ck_assert_ptr_nonnull(strstr(run_report(NULL, "table trace.bin --ascii").out, name));
	ck_assert_uint_lt(
		strlen(run_report(NULL, "critical trace.bin -m cpu --ascii --width 80").out), 160);
}
END_TEST

START_TEST(steps_are_all_that_counts)
{
	struct trace_builder *builder = builder_new();

	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 0, "train");
	for (unsigned i = 0; i < 4; i++) {
		char label[16];

		snprintf(label, sizeof label, "step %u", i);
		build_push(builder, 1, 100 + i * 100, label);
		build_launch(builder, 1, 120 + i * 100, 10 + i);
		build_pop(builder, 1, 150 + i * 100);
	}
	build_pop(builder, 1, 1000);
	for (unsigned i = 0; i < 4; i++)
		build_kernel(
			builder, 9, 2000, 10 + i, "k", 2000 + i * 1000, 2100 + i * 1000 + i * 100);
	expect(run_report(builder, "critical trace.bin -m gpu --steps 1-2"),
		"train ─────────────────────────────────────────────│ 500.00 ns (100 %)\n"
		"  ├── step 2 ──────────────────────────────────────│ 300.00 ns (60.0 %)\n"
		"  │   └── k  <<<(64,1,1),(128,1,1)>>> ─────────────│ 300.00 ns (60.0 %)\n"
		"  └── step 1 ──────────────────────────────────────│ 200.00 ns (40.0 %)\n"
		"      └── k  <<<(64,1,1),(128,1,1)>>> ─────────────│ 200.00 ns (40.0 %)\n");
}
END_TEST

/* PyTorch was recorded, and its tensors were not on a GPU. */
static struct trace_builder *run_on_the_cpu(void)
{
	struct trace_builder *builder = builder_new();

	build_meta(builder, "source.torch_memory", "on");
	build_push(builder, 1, 10, "step");
	build_pop(builder, 1, 20);
	return builder;
}

START_TEST(tensors_memory_is_not_made_up)
{
	expect(run_report(slam(), "critical trace.bin -m allocated"),
		"no GPU tensor in this trace (CPU tensors are not recorded); try -m reserved\n");
	expect(run_report(run_on_the_cpu(), "critical trace.bin -m allocated"),
		"no GPU tensor and no other memory of a GPU in this trace (CPU tensors are not "
		"recorded)\n");
	expect(run_report(NULL, "memory trace.bin --width 120"),
		"no rows   the trace has no memory events: the program allocated no memory of a "
		"GPU (CPU tensors are not recorded)\n");
}
END_TEST

START_TEST(a_counter_is_shown_in_its_own_unit)
{
	struct trace_builder *builder = builder_new();
	const uint32_t name = build_name(builder, "Memory Reserved"),
		       unit = build_name(builder, "GB");
	struct trace_counter *counter = build_dictionary(builder, TRACE_COUNTER, sizeof *counter);
	const double values[] = { 7.97, 8.7795 };

	counter->counter = 5;
	counter->name = name;
	counter->unit = unit;
	for (int i = 0; i < 2; i++) {
		struct trace_metric *metric;

		if (i)
			build_push(builder, 1, 100, "slam");
		metric = build_record(
			builder, 1, TRACE_METRIC, sizeof *metric, 50 + 100 * (uint64_t)i);
		metric->counter = 5;
		metric->type = TRACE_METRIC_F64;
		memcpy(&metric->value, &values[i], sizeof metric->value);
	}
	build_pop(builder, 1, 200);
	expect(run_report(builder, "critical trace.bin -m 'Memory Reserved'"),
		"slam ──────────────────────────────────────────────│ 7.97 GB → 8.78 GB (0.8095 "
		"∆)\n");
	ck_assert_int_eq(run_report(NULL, "critical trace.bin -m 'Memory Reserve'").status, 64);
}
END_TEST

START_TEST(a_hundred_thousand_small_children_are_one_row)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 10;

	build_push(builder, 1, 0, "root");
	for (unsigned i = 0; i < 100000; i++) {
		build_push(builder, 1, at += 1, "child");
		build_pop(builder, 1,
			at += i % 1000 == 500 ? 2000 : 1); /* the long ones are 0.4 % each */
	}
	build_push(builder, 1, at += 1, "large");
	build_pop(builder, 1, at += 100000);
	build_pop(builder, 1, at += 10);
	expect(run_report(builder, "critical trace.bin"),
		"root ──────────────────────────────────────────────│ 499.92 µs (100 %)\n"
		"  ├── child ×100000 ───────────────────────────────│ 299.90 µs (60.0 %)\n"
		"  └── large ───────────────────────────────────────│ 100.00 µs (20.0 %)\n");
}
END_TEST

/* A root of 10 µs, of which so many children take so much each, and the last one takes as much as
 * is given. */
static struct trace_builder *children(
	unsigned count, uint64_t each_ns, uint64_t last_ns, const char *label)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1;

	build_push(builder, 1, 0, "root");
	for (unsigned i = 1; i <= count; i++) {
		char name[32];

		snprintf(name, sizeof name, label, i);
		build_push(builder, 1, at, name);
		build_push(builder, 1, at, "inside");
		build_pop(builder, 1, at += (i == count ? last_ns : each_ns));
		build_pop(builder, 1, at);
	}
	build_pop(builder, 1, 10000);
	return builder;
}

START_TEST(many_of_one_name_are_one_row)
{
	expect(run_report(children(6, 1000, 2000, "work"), "critical trace.bin"),
		"root ──────────────────────────────────────────────│ 10.00 µs (100 %)\n"
		"  └── work ×6 ─────────────────────────────────────│ 7.00 µs (70.0 %)\n"
		"      └── inside ×6 ───────────────────────────────│ 7.00 µs (70.0 %)\n");
	/* Of few each is shown, and of all where the user wants to see all. */
	expect(run_report(children(3, 1000, 1000, "work"), "critical trace.bin -d 2"),
		"root ──────────────────────────────────────────────│ 10.00 µs (100 %)\n"
		"  ├── work ────────────────────────────────────────│ 1.00 µs (10.0 %)\n"
		"  ├── work ────────────────────────────────────────│ 1.00 µs (10.0 %)\n"
		"  └── work ────────────────────────────────────────│ 1.00 µs (10.0 %)\n"
		"not shown: 3 deeper (--depth)\n");
	ck_assert_ptr_null(strstr(
		run_report(children(6, 1000, 2000, "work"), "critical trace.bin --min-percent 0")
			.out,
		"×"));
}
END_TEST

START_TEST(of_many_of_one_name_the_odd_one_stays)
{
	expect(run_report(children(6, 500, 1500, "work"), "critical trace.bin -d 2"),
		"root ──────────────────────────────────────────────│ 10.00 µs (100 %)\n"
		"  ├── work ×5 ─────────────────────────────────────│ 2.50 µs (25.0 %)\n"
		"  └── work ────────────────────────────────────────│ 1.50 µs (15.0 %)\n"
		"not shown: 2 deeper (--depth)\n");
}
END_TEST

START_TEST(what_has_a_number_of_its_own_is_shown_by_itself)
{
	expect(run_report(children(6, 1000, 1000, "kf: %u"), "critical trace.bin -d 2 -n 2"),
		"root ──────────────────────────────────────────────│ 10.00 µs (100 %)\n"
		"  ├── kf: 6 ───────────────────────────────────────│ 1.00 µs (10.0 %)\n"
		"  └── kf: 5 ───────────────────────────────────────│ 1.00 µs (10.0 %)\n"
		"not shown: 2 deeper (--depth), 4 more (--top 0)\n");
}
END_TEST

START_TEST(colour_only_paints)
{
	char *plain = run_report(slam(), "critical trace.bin -m reserved").out,
	     *painted = run_report(NULL, "critical trace.bin -m reserved --color always").out;
	size_t used = 0;

	ck_assert_ptr_null(strchr(plain, '\033'));
	ck_assert_ptr_nonnull(strchr(painted, '\033'));
	for (size_t i = 0; painted[i]; i++) { /* without ESC [ ... m it is the same */
		if (painted[i] == '\033')
			i += strcspn(painted + i, "m");
		else
			painted[used++] = painted[i];
	}
	painted[used] = '\0';
	ck_assert_str_eq(painted, plain);
}
END_TEST

#define MB UINT64_C(1000000)

/* What a program of PyTorch holds, so that the allocator's totals in the records are right. */
static uint64_t allocated, reserved;

static void take_segment(
	struct trace_builder *builder, uint64_t at, uint64_t address, uint64_t bytes)
{
	build_alloc(builder, 1, at, address, bytes);
	reserved += bytes;
}

static void take_tensor(struct trace_builder *builder, uint64_t at, uint64_t address, int64_t bytes)
{
	allocated += (uint64_t)bytes;
	build_tensor(builder, 1, at, address, bytes, allocated, reserved);
}

/* `slam` with a `loop closure` whose gate allocates three segments of 40, 20 and 10 MB. Of 40 and
 * 20 MB of tensors, those in the second are freed in it. `keeps`: a map point of 4 MB settles in
 * the first after its tensor was freed; else nothing is left. */
static struct trace_builder *closure(bool keeps)
{
	struct trace_builder *builder = builder_new();

	allocated = reserved = 0;
	build_device(builder, 0, "a GPU");
	build_push(builder, 1, 1000, "slam");
	build_push(builder, 1, 1100, "loop closure - kf: 13");
	build_push(builder, 1, 1200, "q-gate");
	take_segment(builder, 1300, 0x100000000, 40 * MB);
	take_tensor(builder, 1310, 0x100000000, 40 * MB);
	take_segment(builder, 1320, 0x200000000, 20 * MB);
	take_tensor(builder, 1330, 0x200000000, 20 * MB);
	take_tensor(builder, 1400, 0x100000000, -40 * (int64_t)MB);
	take_tensor(builder, 1410, 0x200000000, -20 * (int64_t)MB);
	if (keeps)
		take_tensor(builder, 1420, 0x100000000 + 8 * MB, 4 * MB);
	build_pop(builder, 1, 1500);
	build_pop(builder, 1, 1600);
	return builder;
}

/* Ends `slam`. */
static struct trace_builder *ended(struct trace_builder *builder)
{
	build_pop(builder, 1, 3000);
	return builder;
}

START_TEST(segments_that_stayed_empty_are_named_with_their_range)
{
	struct report_run run = run_report(ended(closure(false)), "critical trace.bin -m reserved");

	output_has(run.out,
		"stayed    2 segments (60.00 MB) that were allocated in `loop closure - kf: 13 /\n"
		"          q-gate` stayed reserved to the end. Tensors had occupied up to\n"
		"          60.00 MB of them. At the end, 2 segments (60.00 MB) were empty, since\n"
		"          that range ended; 60.00 MB stayed reserved and empty.\n");
	/* An instance that takes nothing, and another metric: nothing stayed. */
	ck_assert_ptr_null(strstr(run_report(NULL, "critical trace.bin -m cpu").out, "stayed"));
}
END_TEST

START_TEST(what_holds_a_segment_is_told_where_memory_ran_out)
{
	struct trace_builder *builder = closure(true);
	struct report_run run;

	build_push(builder, 1, 2000, "adjust");
	build_tensor_oom(builder, 1, 2100, 50 * MB, allocated, reserved);
	/* What happens afterwards is another story. */
	take_tensor(builder, 2200, 0x100000000 + 8 * MB, -4 * (int64_t)MB);
	build_free(builder, 1, 2300, 0x100000000);
	build_pop(builder, 1, 2400);
	run = run_report(ended(builder),
		"critical trace.bin -m reserved --focus 'slam/loop closure - kf: *'");
	output_has(run.out,
		"stayed    2 segments (60.00 MB) that were allocated in `q-gate` stayed reserved\n"
		"          until memory ran out. Tensors had occupied up to 60.00 MB of them.\n"
		"          When memory ran out, 1 segment (40.00 MB) was held by 4.00 MB of\n"
		"          tensors, and 1 segment (20.00 MB) was empty, since that range ended;\n"
		"          56.00 MB stayed reserved and empty.\n");
	run = run_report(NULL,
		"critical trace.bin -m reserved -f csv --focus 'slam/loop closure - kf: *' "
		"--columns name,kind,start_ns,duration_ns,segments,reserved_bytes,"
		"tensor_bytes,free_inside_bytes,empty_segments,empty_bytes,unknown_bytes");
	output_has(run.out, ",q-gate,stayed,1200,60000000,4000000,56000000,2,1,20000000,,300\r\n");
}
END_TEST

START_TEST(a_segment_that_was_emptied_later_was_in_use)
{
	struct trace_builder *builder = closure(false);

	take_tensor(builder, 2000, 0x200000000, 10 * MB);
	take_tensor(builder, 2100, 0x200000000, -10 * (int64_t)MB);
	output_has(run_report(ended(builder), "critical trace.bin -m reserved").out,
		"At the end, 2 segments (60.00 MB) were empty;\n");
}
END_TEST

START_TEST(segments_that_tensors_fill_are_not_told)
{
	struct trace_builder *builder = closure(false);

	take_tensor(builder, 2000, 0x100000000, 38 * MB);
	take_tensor(builder, 2100, 0x200000000, 17 * MB);
	ck_assert_ptr_null(
		strstr(run_report(ended(builder), "critical trace.bin -m reserved").out, "stayed"));
}
END_TEST

START_TEST(of_memory_without_tensors_only_the_range_is_known)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 1000, "slam");
	build_push(builder, 1, 1100, "loop closure - kf: 13");
	build_alloc(builder, 1, 1200, 0x100000000, 40 * MB);
	build_pop(builder, 1, 1500);
	build_alloc(builder, 1, 1600, 0x200000000, 30 * MB);
	output_has(run_report(ended(builder), "critical trace.bin -m reserved").out,
		"stayed    1 segment (40.00 MB) that was allocated in `loop closure - kf: 13`\n"
		"          stayed reserved to the end. What is in it is not known: only PyTorch's\n"
		"          allocator reports what it hands out.\n");
	/* Of the root itself, this would say no more than the tree. */
	ck_assert_ptr_null(strstr(run_report(NULL, "critical trace.bin -m reserved --focus "
						   "'slam/loop closure - kf: *'")
					  .out,
		"stayed"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("critical");
	TCase *layout = tcase_create("layout");
	SRunner *runner;
	int failed;

	tcase_set_timeout(layout, 60);
	tcase_add_checked_fixture(layout, run_report_setup, run_report_teardown);
	tcase_add_test(layout, a_level_shows_before_after_and_difference);
	tcase_add_test(layout, it_starts_at_the_node_in_focus);
	tcase_add_test(layout, a_flow_shows_its_share);
	tcase_add_test(layout, ascii_has_no_other_character);
	tcase_add_test(layout, a_width_shortens_labels_in_their_middle);
	tcase_add_test(layout, the_bar_moves_right_for_a_long_label);
	tcase_add_test(layout, memory_that_shrinks_has_a_negative_difference);
	tcase_add_test(layout, what_makes_up_less_than_1_percent_is_left_out);
	tcase_add_test(layout, the_root_with_the_most_shows_its_worst_instance);
	tcase_add_test(layout, by_gpu_time_kernels_are_the_leaves);
	tcase_add_test(layout, kernels_that_do_not_stand_out_are_one_row);
	tcase_add_test(layout, names_cut_in_their_middle_can_be_distinguished);
	tcase_add_test(layout, off_a_terminal_names_are_whole);
	tcase_add_test(layout, steps_are_all_that_counts);
	tcase_add_test(layout, tensors_memory_is_not_made_up);
	tcase_add_test(layout, a_counter_is_shown_in_its_own_unit);
	tcase_add_test(layout, a_hundred_thousand_small_children_are_one_row);
	tcase_add_test(layout, many_of_one_name_are_one_row);
	tcase_add_test(layout, of_many_of_one_name_the_odd_one_stays);
	tcase_add_test(layout, what_has_a_number_of_its_own_is_shown_by_itself);
	tcase_add_test(layout, colour_only_paints);
	tcase_add_test(layout, segments_that_stayed_empty_are_named_with_their_range);
	tcase_add_test(layout, what_holds_a_segment_is_told_where_memory_ran_out);
	tcase_add_test(layout, a_segment_that_was_emptied_later_was_in_use);
	tcase_add_test(layout, segments_that_tensors_fill_are_not_told);
	tcase_add_test(layout, of_memory_without_tensors_only_the_range_is_known);
	suite_add_tcase(suite, layout);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
