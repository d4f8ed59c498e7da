/* SPDX-License-Identifier: MIT
 * test_command_line.c: the command line, the formats, the exit status, and what happens to bad
 * input.
 */
#include "tests/support/run_report.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Two steps with a layer each, which launches a kernel; one copy outside of any range; a hostile
 * name. */
static struct trace_builder *a_run(void)
{
	struct trace_builder *builder = builder_new();

	build_meta(builder, "command", "./train --steps 2");
	build_meta(builder, "host", "node7");
	build_meta(builder, "version.pperf", "0.1");
	build_meta(builder, "source.nvtx", "on");
	build_meta(builder, "source.cupti", "off: not found (-1)");
	build_device(builder, 0, "NVIDIA H100");
	build_alloc(builder, 1, 5, 0x1000, 1000);
	for (unsigned i = 0; i < 2; i++) {
		char label[16];

		snprintf(label, sizeof label, "step %u", i);
		build_push(builder, 1, 100 + i * 100, label);
		build_push(builder, 1, 110 + i * 100, "lay/er");
		build_launch(builder, 1, 120 + i * 100, 10 + i);
		build_alloc(builder, 1, 125 + i * 100, 0x2000 + i * 0x1000, 500);
		build_pop(builder, 1, 130 + i * 100);
		build_pop(builder, 1, 150 + i * 100);
	}
	build_push(builder, 2, 300, "=cmd\x1b[2J\xff,\"q\"");
	build_pop(builder, 2, 310);
	build_copy(builder, 1, 320, TRACE_COPY, 30, 64);
	build_kernel(builder, 9, 1000, 10, "_Z4gemmPf", 400, 500);
	build_kernel(builder, 9, 1000, 11, "_Z4gemmPf", 500, 640);
	build_gpu_copy(builder, 9, 1000, TRACE_GPU_COPY, 30, 64, 700, 710);
	return builder;
}

static void write_run(const char *path)
{
	struct trace_builder *builder = a_run();

	builder_write(builder, path);
	builder_free(builder);
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "`%s` is not in:\n%s", part, text);
}

static void expect_usage(const char *arguments, const char *sentence)
{
	const struct report_run run = run_report_with("", arguments);

	ck_assert_str_eq(run.err, sentence);
	ck_assert_str_eq(run.out, "");
	ck_assert_int_eq(run.status, 64);
}

START_TEST(wrong_usage_is_one_sentence_and_64)
{
	write_run("trace.bin");
	expect_usage(
		"", "pperf-report: no trace file given; try pperf-report trace.bin, or --help\n");
	expect_usage("tree",
		"pperf-report: no trace file given; try pperf-report trace.bin, or --help\n");
	expect_usage("tre trace.bin", "pperf-report: there is no view and no file named `tre`; did "
				      "you mean `tree`?\n");
	expect_usage("forest trace.bin", "pperf-report: there is no view and no file named "
					 "`forest`; see pperf-report --help\n");
	expect_usage("--colums=calls trace.bin",
		"pperf-report: unknown option or ambiguous abbreviation --colums=calls; did you "
		"mean `--columns`?\n");
	expect_usage("trace.bin --color alwyas", "pperf-report: --color needs one of auto, always, "
						 "never, not `alwyas`; did you mean `always`?\n");
	expect_usage("trace.bin --demangle ful", "pperf-report: --demangle needs one of no, short, "
						 "base, full, not `ful`; did you mean `full`?\n");
	expect_usage("tree trace.bin --instances al",
		"pperf-report: --instances needs one of worst, first, last, all, not `al`; did you "
		"mean `all`?\n");
	expect_usage("table trace.bin --by nmae",
		"pperf-report: --by needs one of name, shape, module, stack, category, stream, "
		"thread, rank, step, path, line, size, library, function, python, native, all, "
		"class, not `nmae`; did you mean "
		"`name`?\n");
	expect_usage("trace.bin -m gppu", "pperf-report: unknown metric `gppu`: the trace has no "
					  "counters; did you mean `gpu`?\n");
	expect_usage("diff trace.bin trace.bin -m gppu",
		"pperf-report: unknown metric `gppu`: it is not a counter in both traces; did you "
		"mean `gpu`?\n");
	expect_usage("gate trace.bin trace.bin -m tensor",
		"pperf-report: unknown metric; supported: gpu, cpu, wall, idle, calls, alloc, "
		"tensors, reserved_peak, allocated_peak, waste_peak, fragmentation_peak, "
		"growth_per_step, largest_place_peak, retries "
		"and ooms, not `tensor`; did you mean "
		"`tensors`?\n");
	expect_usage("trace.bin -s gpu_totl", "pperf-report: there is no column `gpu_totl` to sort "
					      "by; did you mean `gpu_total_ns`?\n");
	expect_usage("trace.bin --columns calls,gpu_totl",
		"pperf-report: there is no column `gpu_totl`; did you mean `gpu_total_ns`?\n");
	expect_usage("-x trace.bin", "pperf-report: unknown option -x; see pperf-report --help\n");
	expect_usage("--nonsense trace.bin", "pperf-report: unknown option or ambiguous "
					     "abbreviation --nonsense; see pperf-report --help\n");
	expect_usage("trace.bin -f", "pperf-report: -f needs a value; see pperf-report --help\n");
	expect_usage("trace.bin -f xml",
		"pperf-report: --format needs one of text, json, csv, html, svg, not `xml`\n");
	expect_usage("trace.bin -d -1",
		"pperf-report: --depth needs a whole number up to 4294967295, not `-1`\n");
	expect_usage("trace.bin --min-percent 101",
		"pperf-report: --min-percent needs a number from 0 to 100, not `101`\n");
	expect_usage("trace.bin --steps 5-3", "pperf-report: --steps 5-3 ends before it begins\n");
	expect_usage("trace.bin --steps x",
		"pperf-report: --steps needs numbers such as 10-20 or 7, not `x`\n");
	expect_usage("trace.bin --steps 5-",
		"pperf-report: --steps needs numbers such as 10-20 or 7, not `5-`\n");
	expect_usage("trace.bin --columns ,",
		"pperf-report: --columns needs column names separated by "
		"commas; pperf-report --legend lists them\n");
	expect_usage("idle trace.bin --focus main",
		"pperf-report: --focus works with the views tree, critical and tui only: "
		"pperf-report tree --focus PATH FILE\n");
	expect_usage(
		"trace.bin --width 3", "pperf-report: --width needs at least 20 columns, not 3\n");
	expect_usage("trace.bin --all=1",
		"pperf-report: --all=1 takes no value; see pperf-report --help\n");
	expect_usage("trace.bin -s nothing", "pperf-report: there is no column `nothing` to sort "
					     "by; pperf-report --legend lists the columns\n");
	expect_usage("trace.bin --rank 3",
		"pperf-report: no process of the run of trace.bin has rank 3\n");
	expect_usage("tree trace.bin --focus nowhere",
		"pperf-report: there is no node `nowhere`; names are joined by /, a / in a name is "
		"written \\/\n");
}
END_TEST

START_TEST(what_cannot_be_read_is_a_sentence_and_2)
{
	struct report_run run;

	run = run_report_with("", "gone.bin");
	ck_assert_int_eq(run.status, 2);
	has(run.err, "gone.bin");
	ck_assert_ptr_eq(strchr(run.err, '\n'), run.err + strlen(run.err) - 1);
	if (system("echo hello > text.bin; : > empty.bin; mkdir folder"))
		ck_abort();
	ck_assert_int_eq(run_report_with("", "text.bin").status, 2);
	ck_assert_int_eq(run_report_with("", "empty.bin").status, 2);
	ck_assert_int_eq(run_report_with("", "folder").status, 2);
}
END_TEST

START_TEST(a_trace_may_be_called_like_a_view)
{
	write_run("tree");
	ck_assert_int_eq(run_report_with("", "./tree").status, 0);
	ck_assert_int_eq(run_report_with("", "tree ./tree").status, 0);
	ck_assert_int_eq(
		run_report_with("", "tree tree").status, 0); /* only the first word can be a view */
}
END_TEST

START_TEST(help_version_and_legend_need_no_trace)
{
	struct report_run run = run_report_with("", "--help");

	ck_assert_int_eq(run.status, 0);
	has(run.out, "usage: pperf-report [VIEW] TRACE... [options]");
	has(run.out, "critical");
	has(run.out, "--min-percent P");
	run = run_report_with("", "distribution --help");
	has(run.out, "usage: pperf-report distribution NAME TRACE... [options]\n\n  "
		     "distribution of the durations of one node");
	has(run.out, "p75_ns");
	has(run.out, "--min-percent P");
	ck_assert_ptr_null(strstr(run.out, "critical-path"));
	has(run_report_with("", "diff --help").out,
		"usage: pperf-report diff BEFORE AFTER [options]\n");
	run = run_report_with("", "--version");
	ck_assert_int_eq(strncmp(run.out, "pperf-report ", 13), 0);
	run = run_report_with("", "--legend");
	has(run.out, "nearest rank");
	has(run.out, "gpu_total_ns");
	has(run.out, "reserved");
	run = run_report_to("/dev/full", "--help");
	ck_assert_int_eq(run.status, 2);
}
END_TEST

/* Everything that a reader of the JSON may rely on is there, in every view. */
START_TEST(every_view_has_the_whole_envelope)
{
	static const char *const views[] = { "", "tree ", "critical ", "table ", "kernels ",
		"memory " };
	static const char *const parts[] = { "\"schema\": \"pperf.report/1\"",
		"\"view\": ", "\"files\": [\"trace.bin\"]", "\"command\": \"./train --steps 2\"",
		"\"pid\": 100", "\"rank\": null", "\"start_unix_ns\": 1700000000000000000",
		"\"duration_ns\": ", "\"host\": \"node7\"", "\"versions\": {\"pperf\": \"0.1\"",
		"\"torch\": null", "\"cuda_runtime\": null", "\"cuda_driver\": null",
		"\"cupti\": null", "\"compile_mode\": null",
		"\"devices\": [{\"id\": 0, \"name\": \"NVIDIA H100\", \"uuid\": ",
		"null, \"simulated\": false", "\"nvtx\": \"on\"", "\"torch_ops\": \"absent\"",
		"\"cuda_symbols\": \"absent\"", "\"cupti\": \"off: not found (-1)\"",
		"\"processes\": [{", "\"launches\": 2", "\"kernels\": 2", "\"copies_called\": 1",
		"\"copies\": 1", "\"sets_called\": 0", "\"sets\": 0", "\"graph_launches\": 0",
		"\"missing_records\": 0", "\"attributed\": 2", "\"unattributed\": 1",
		"\"untimed\": 0", "\"dropped\": 0", "\"lost_events\": 0", "\"lost_samples\": 0",
		"\"unmatched_ends\": 0", "\"left_open\": 0", "\"clock_violations\": 0",
		"\"truncated_streams\": 0", "\"complete\": true", "\"conserved\": true",
		"\"wall_ns\": ", "\"gpu_sum_ns\": 250", "\"gpu_busy_ns\": 250",
		"\"gpu_idle_ns\": 60", "\"attributed_ns\": 240", "\"unattributed_ns\": 10",
		"\"reserved_peak_bytes\": 2000", "\"allocated_peak_bytes\": null",
		"\"self_cost_ns\": 0", "\"warnings\": []", "\"rows\": [" };
	char arguments[64];
	struct report_run run;

	write_run("trace.bin");
	snprintf(arguments, sizeof arguments, "%strace.bin -f json", views[_i]);
	run = run_report_with("", arguments);
	ck_assert_int_eq(run.status, 0);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		has(run.out, parts[i]);
}
END_TEST

START_TEST(a_tree_row_says_all_that_it_knows)
{
	const struct report_run run = run_report(a_run(), "tree trace.bin -f json");

	has(run.out,
		"{\"id\": 0, \"parent\": null, \"depth\": 0, \"name\": \"step *\", \"label\": "
		"\"step * \xc3\x97"
		"2\", \"kind\": \"range\", \"path\": [\"step *\"], "
		"\"share\": 0.96, \"calls\": 2, \"gpu_total_ns\": 240, \"gpu_self_ns\": 0, "
		"\"gpu_calls\": 2, "
		"\"cpu_total_ns\": 100, \"cpu_self_ns\": 60, \"cpu_self_x_ns\": 60, "
		"\"idle_ns\": 0, \"idle_before_ns\": 0, \"delay_p50_ns\": 285, \"delay_p95_ns\": "
		"285, "
		"\"min_ns\": 50, \"p50_ns\": 50, \"p95_ns\": 50, \"p99_ns\": 50, \"max_ns\": 50, "
		"\"reserved_delta_bytes\": 1000, \"reserved_peak_bytes\": 2000, "
		"\"alloc_bytes\": 1000, \"free_bytes\": 0, \"labels\": 2, \"worst\": {\"metric\": "
		"\"gpu\", "
		"\"label\": \"step 1\", \"start_ns\": 200, \"value\": 140}}");
	has(run.out, "\"name\": \"gemm\", \"label\": \"gemm  <<<(64,1,1),(128,1,1)>>>\", "
		     "\"kind\": \"kernel\", "
		     "\"path\": [\"step *\", \"lay/er\", \"gemm\"]");
	has(run.out, "\"grid\": [64, 1, 1], \"block\": [128, 1, 1], \"shared_bytes\": 0, "
		     "\"registers\": 32, "
		     "\"waves_per_sm\": ");
	has(run.out, "\"method\": \"correlation\", \"confidence\": \"high\"");
	has(run.out, "\"kind\": \"unattributed\"");
	has(run.out, "\"name\": \"=cmd\\u001b[2J\\uefff,\\\"q\\\"\"");
}
END_TEST

START_TEST(csv_is_rfc_4180_and_no_formula)
{
	const struct report_run run = run_report(a_run(), "tree trace.bin -f csv --columns all");

	ck_assert_int_eq(run.status, 0);
	ck_assert_int_eq(strncmp(run.out, "id,parent,depth,name,label,kind,", 32), 0);
	has(run.out, "\r\n0,,0,step *,step * \xc3\x97"
		     "2,range,,step *,");
	has(run.out, ",step */lay\\\\/er,"); /* a slash in a name, and RFC-quoted nothing */
	has(run.out, "\"\\x3dcmd\\x1b[2J\\xff,\"\"q\"\"\"");
	ck_assert_ptr_null(strchr(run.out, '\033'));
	ck_assert_ptr_null(strstr(run.out, "\r\n\r\n"));
}
END_TEST

static const char *header_of(const char *arguments)
{
	char *header = strdup(run_report(NULL, arguments).out);

	header[strcspn(header, "\r")] = '\0';
	return header;
}

START_TEST(csv_leaves_out_columns_without_a_value)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 100, "a");
	build_pop(builder, 1, 200);
	run_report(builder, "tree trace.bin");
	ck_assert_str_eq(header_of("tree trace.bin -f csv"),
		"id,parent,depth,name,label,kind,path,share,calls,cpu_total_ns,cpu_self_ns,cpu_"
		"self_"
		"x_ns,min_ns,p50_ns,p95_ns,p99_ns,max_ns,worst_metric,worst_label,worst_start_ns,"
		"worst_value");
	ck_assert_str_eq(header_of("tree trace.bin -f csv --columns domain,calls"),
		"id,parent,depth,name,domain,calls");
	ck_assert_int_eq(
		strncmp(header_of("tree trace.bin -f csv --columns all"),
			"id,parent,depth,name,label,kind,section,path,domain,pid,rank,", 61),
		0);
	ck_assert_str_eq(header_of("tree trace.bin -f csv --columns all --focus a"),
		header_of("tree trace.bin -f csv --columns all"));
}
END_TEST

START_TEST(no_control_byte_reaches_the_screen)
{
	static const char *const views[] = { "", "tree ", "table ", "memory ", "kernels ",
		"critical ", "info ", "dump " };
	char arguments[64];
	struct report_run run;

	write_run("trace.bin");
	snprintf(arguments, sizeof arguments, "%strace.bin -m cpu --min-percent 0", views[_i]);
	run = run_report_with("", arguments);
	ck_assert_int_eq(run.status, 0);
	for (const char *c = run.out; *c; c++)
		ck_assert_msg(*c == '\n' || (unsigned char)*c >= ' ', "byte %d", *c);
	ck_assert_ptr_null(strchr(run.out, '\377'));
}
END_TEST

START_TEST(no_line_of_text_is_wider_than_requested)
{
	static const unsigned widths[] = { 40, 60, 80, 120, 200 };
	static const char *const views[] = { "tree", "table", "kernels", "memory" };

	write_run("trace.bin");
	for (size_t width = 0; width < sizeof widths / sizeof *widths; width++)
		for (size_t view = 0; view < sizeof views / sizeof *views; view++) {
			char arguments[96];
			struct report_run run;

			snprintf(arguments, sizeof arguments,
				"%s trace.bin --min-percent 0 --ascii --width %u", views[view],
				widths[width]);
			run = run_report_with("", arguments);
			for (const char *line = run.out; *line; line += strcspn(line, "\n") + 1)
				ck_assert_msg(strcspn(line, "\n") <= widths[width] ||
						      strncmp(line, "not shown", 9) == 0,
					"%s, %u: %.*s", views[view], widths[width],
					(int)strcspn(line, "\n"), line);
		}
}
END_TEST

START_TEST(the_same_trace_gives_the_same_bytes)
{
	static const char *const arguments[] = { "trace.bin", "trace.bin -f json",
		"table trace.bin -f csv", "critical trace.bin", "kernels trace.bin -f json" };

	write_run("trace.bin");
	for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
		ck_assert_str_eq(run_report_with("", arguments[i]).out,
			run_report_with("", arguments[i]).out);
}
END_TEST

START_TEST(rows_are_pruned_only_when_requested)
{
	struct report_run run;

	run = run_report(a_run(), "tree trace.bin -f json -d 1");
	ck_assert_ptr_null(strstr(run.out, "\"depth\": 1"));
	run = run_report(NULL, "tree trace.bin -f json --no-steps --min-percent 50");
	ck_assert_ptr_null(strstr(run.out, "cmd"));
	has(run.out, "\"kind\": \"unattributed\"");
	run = run_report(NULL, "tree trace.bin -f json --no-steps -n 1");
	ck_assert_ptr_null(strstr(run.out, "unattributed\","));
	run = run_report(NULL, "tree trace.bin --focus 'step 1/lay\\/er' -f json");
	has(run.out, "{\"id\": 0, \"parent\": null, \"depth\": 0, \"name\": \"lay/er\"");
	run = run_report(NULL, "tree trace.bin -s name -f json");
	ck_assert_int_eq(run.status, 0);
}
END_TEST

START_TEST(a_file_can_be_written)
{
	struct report_run run = run_report(a_run(), "tree trace.bin -o out.txt");
	struct stat about;

	ck_assert_int_eq(run.status, 0);
	ck_assert_str_eq(run.out, "");
	ck_assert(stat("out.txt", &about) == 0 && about.st_size > 0);
	run = run_report(NULL, "tree trace.bin -o no/such/folder");
	ck_assert_int_eq(run.status, 2);
	has(run.err, "no/such/folder");
}
END_TEST

START_TEST(what_cannot_be_printed_is_said)
{
	struct report_run run;

	write_run("trace.bin");
	run = run_report_to("/dev/full", "tree trace.bin");
	ck_assert_int_eq(run.status, 2);
	has(run.err, "cannot be written");
	run = run_report_with("", "tree trace.bin -f json -o /dev/full");
	ck_assert_int_eq(run.status, 2);
}
END_TEST

START_TEST(colour_follows_flag_then_environment)
{
	write_run("trace.bin");
	ck_assert_ptr_null(
		strchr(run_report_with("", "tree trace.bin").out, '\033')); /* no terminal */
	ck_assert_ptr_nonnull(
		strchr(run_report_with("FORCE_COLOR=1", "tree trace.bin").out, '\033'));
	ck_assert_ptr_nonnull(
		strchr(run_report_with("NO_COLOR=1", "tree trace.bin --color always").out, '\033'));
	ck_assert_ptr_null(
		strchr(run_report_with("NO_COLOR=1 FORCE_COLOR=1", "tree trace.bin").out, '\033'));
	ck_assert_ptr_null(strchr(
		run_report_with("FORCE_COLOR=1", "tree trace.bin --color never").out, '\033'));
}
END_TEST

START_TEST(a_cut_trace_is_shown_and_only_strict_minds)
{
	struct trace_builder *builder = a_run();
	const unsigned char *bytes;
	struct report_run run;
	size_t count;
	FILE *file;

	builder_header(builder)->flags = 0;
	bytes = builder_bytes(builder, &count);
	file = fopen("cut.bin", "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, count - 200, file), count - 200);
	fclose(file);
	builder_free(builder);
	run = run_report_with("", "cut.bin");
	ck_assert_int_eq(run.status, 0);
	has(run.out, "LOSSES");
	ck_assert_int_eq(run_report_with("", "tree cut.bin --strict").status, 2);
	has(run_report_with("", "cut.bin -f json").out, "\"complete\": false");
}
END_TEST

START_TEST(the_simulated_device_is_named_on_every_screen)
{
	static const char *const views[] = { "", "tree ", "table ", "memory ", "kernels ",
		"critical " };
	struct trace_builder *builder = builder_new();
	char arguments[64];
	struct report_run run;

	build_device(builder, 0, "pperf simulated device");
	build_push(builder, 1, 10, "a");
	build_alloc(builder, 1, 11, 0x1000, 10);
	build_launch(builder, 1, 12, 1);
	build_pop(builder, 1, 20);
	build_kernel(builder, 9, 100, 1, "k", 30, 40);
	builder_write(builder, "trace.bin");
	builder_free(builder);
	snprintf(arguments, sizeof arguments, "%strace.bin", views[_i]);
	run = run_report_with("", arguments);
	ck_assert_msg(strstr(run.out, "simulated") || strstr(run.out, "SIMULATED"), "%s", run.out);
	strcat(arguments, " -f json");
	run = run_report_with("", arguments);
	has(run.out, "\"simulated\": true");
	has(run.out, "\"provenance\": \"simulated\"");
}
END_TEST

/* Three processes of one run: the parent only makes ranges, one child has the most GPU time. */
static void write_family(void)
{
	for (unsigned i = 0; i < 3; i++) {
		static const char *const paths[] = { "trace.bin", "trace.201.bin",
			"trace.202.bin" };
		struct trace_builder *builder = builder_new();

		builder_header(builder)->pid = 200 + i;
		if (i) {
			char rank[8];

			snprintf(rank, sizeof rank, "%u", i - 1);
			build_meta(builder, "rank", rank);
		}
		build_push(builder, 1, 100, i ? "child" : "parent");
		if (i)
			build_launch(builder, 1, 110, 1);
		build_pop(builder, 1, 120);
		if (i)
			build_kernel(builder, 9, 500, 1, "k", 200, 200 + i * 50);
		builder_write(builder, paths[i]);
		builder_free(builder);
	}
}

START_TEST(of_a_run_the_process_that_did_most_is_shown)
{
	struct report_run run;

	write_family();
	run = run_report_with("", "tree trace.bin");
	has(run.out, "child");
	has(run.out, "also pid 200: ");
	has(run.out, "also rank 0, pid 201: ");
	ck_assert_ptr_null(strstr(run.out, "also pid 202"));
	run = run_report_with("", "tree trace.bin -f json --rank 0");
	has(run.out, "\"pid\": 201, \"rank\": 0, \"start_unix_ns\"");
	has(run.out, "\"gpu_sum_ns\": 50, ");
	run = run_report_with("", "tree trace.201.bin -f json --all");
	has(run.out, "\"kind\": \"process\", \"pid\": 200");
	has(run.out, "\"kind\": \"process\", \"pid\": 202");
	has(run.out, "\"gpu_sum_ns\": 150, ");
	run = run_report_with("", "critical trace.bin --all");
	has(run.out, "pid 200\nparent ");
}
END_TEST

START_TEST(the_first_screen_says_what_ran_and_where_the_time_went)
{
	const struct report_run run = run_report(a_run(), "trace.bin");

	has(run.out, "ran       ./train --steps 2 \xc2\xb7 pid 100 \xc2\xb7 ");
	has(run.out, " trace.bin\n");
	has(run.out, "node7");
	has(run.out, "device    GPU 0 NVIDIA H100\n");
	has(run.out, "cupti off: not found (-1)");
	has(run.out, "→ no times of kernels and copies: ");
	has(run.out,
		"coverage  66.7 % of 3 GPU records attributed to the range that launched them");
	ck_assert_ptr_null(strstr(run.out, "GPU records / calls")); /* each call has its record */
	has(run.out, "gpu time  in steady-state steps the GPU was busy 100 % of the time");
	has(run.out, "80.6 % of the 310 ns from its first operation to its last; 96.0 % was\n");
	has(run.out, "on the GPU 100 ns: the host is 300 ns ahead");
	has(run.out, "losses    none\n");
	ck_assert_ptr_null(strstr(run.out, "worst     "));
	has(run.out, "cost      overhead in pperf not measured: the trace has no record of it; "
		     "without\n");
	has(run.out, "next      pperf-report critical trace.bin -m reserved_peak\n");
}
END_TEST

/* Eight ranges with a kernel of 400 us each, the last one with one of `last`; 100 us apart. */
static struct trace_builder *eight_turns(uint64_t last)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;

	build_device(builder, 0, "a GPU");
	for (unsigned i = 0; i < 8; i++) {
		const uint64_t length = i < 7 ? 400000 : last;

		build_push(builder, 1, at, "turn");
		build_launch(builder, 1, at + 100, i + 1);
		build_kernel(builder, 9, 100000000 + i, i + 1, "k", at + 1000, at + 1000 + length);
		build_pop(builder, 1, at + 1000 + length);
		at += 1000 + length + 100000;
	}
	return builder;
}

/* Eight ranges of 400 us each, but one of 900 us, without GPU work. */
static struct trace_builder *eight_host_turns(unsigned which)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 1000;

	for (unsigned i = 0; i < 8; i++) {
		build_push(builder, 1, at, "turn");
		at += i == which ? 900000 : 400000;
		build_pop(builder, 1, at);
	}
	return builder;
}

/* Of equal instances the worst says nothing. */
START_TEST(the_first_screen_shows_the_worst_instance_if_it_is_an_outlier)
{
	ck_assert_ptr_null(strstr(run_report(eight_turns(400000), "trace.bin").out, "worst     "));
	has(run_report(eight_turns(900000), "trace.bin").out,
		"worst     one of 8 instances of `turn` has 900.00 \xc2\xb5s of GPU time (summed "
		"over\n"
		"          streams), 1.9 times their mean: pperf-report critical\n");
	ck_assert_ptr_null(strstr(run_report(eight_turns(500000), "trace.bin").out, "worst     "));
	/* Wherever it stands: instances after it count as well. */
	for (unsigned which = 0; which < 8; which++)
		has(run_report(eight_host_turns(which), "trace.bin").out,
			"worst     one of 8 instances of `turn` has 900.00 \xc2\xb5s of cpu, 1.9 "
			"times their\n"
			"          mean: pperf-report critical\n");
}
END_TEST

/* The layers of a list are one row, `*`. Alone, that name says nothing. */
START_TEST(the_worst_layer_of_a_list_has_its_class)
{
	struct trace_builder *builder = builder_new();
	const uint32_t net = build_linked_node(builder, 0, "Net", TRACE_NODE_MODULE, 0, "Net");
	uint64_t at = 1000;

	build_push_node(builder, 1, at, net);
	for (unsigned i = 0; i < 8; i++) {
		const uint32_t layer = build_linked_node(
			builder, net, i % 2 ? "1" : "0", TRACE_NODE_MODULE, 0, "Linear");

		build_push_node(builder, 1, at, layer);
		at += i == 3 ? 4000000 : 400000;
		build_pop(builder, 1, at);
	}
	build_pop(builder, 1, at + 1000);
	has(run_report(builder, "trace.bin").out, "one of 8 instances of `* (Linear)` has 4.00 ");
}
END_TEST

/* Sixty children of one range, of 1000 to 1590 ns. */
static struct trace_builder *a_large_run(void)
{
	struct trace_builder *builder = builder_new();
	uint64_t at = 100;

	build_push(builder, 1, at, "whole");
	for (unsigned i = 0; i < 60; i++) {
		char label[32];

		snprintf(label, sizeof label, "part%c%c", 'a' + (int)(i / 10), 'a' + (int)(i % 10));
		build_push(builder, 1, at, label);
		at += 1000 + 10 * i;
		build_pop(builder, 1, at);
	}
	build_push(builder, 1, at, "heavy");
	build_pop(builder, 1, at + 40000);
	build_pop(builder, 1, at + 40000);
	return builder;
}

static size_t lines_of(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

START_TEST(a_large_tree_is_cut_to_a_screen_and_says_so)
{
	struct report_run run = run_report(a_large_run(), "trace.bin");

	has(run.out, "not shown: ");
	has(run.out, " smaller rows, 18 below 1 %: pperf-report tree\n");
	has(run.out, "(35 more)   40.95 \xc2\xb5s   34.8 %"); /* all of `whole` is shown */
	ck_assert_uint_le(lines_of(run.out), 45);
	has(run.out, "of self time in ranges (all threads), 34.0 % is in");
	has(run.out, "heavy`");
	ck_assert_ptr_null(strstr(run.out, "partaa"));
	run = run_report(NULL, "tree trace.bin");
	has(run.out, "partfj");
	run = run_report(NULL, "trace.bin --min-percent 1");
	has(run.out, "partfj");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tool");
	TCase *tool = tcase_create("tool");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tool, 60);
	tcase_add_checked_fixture(tool, run_report_setup, run_report_teardown);
	tcase_add_test(tool, wrong_usage_is_one_sentence_and_64);
	tcase_add_test(tool, what_cannot_be_read_is_a_sentence_and_2);
	tcase_add_test(tool, a_trace_may_be_called_like_a_view);
	tcase_add_test(tool, help_version_and_legend_need_no_trace);
	tcase_add_loop_test(tool, every_view_has_the_whole_envelope, 0, 6);
	tcase_add_test(tool, a_tree_row_says_all_that_it_knows);
	tcase_add_test(tool, csv_is_rfc_4180_and_no_formula);
	tcase_add_test(tool, csv_leaves_out_columns_without_a_value);
	tcase_add_loop_test(tool, no_control_byte_reaches_the_screen, 0, 8);
	tcase_add_test(tool, no_line_of_text_is_wider_than_requested);
	tcase_add_test(tool, the_same_trace_gives_the_same_bytes);
	tcase_add_test(tool, rows_are_pruned_only_when_requested);
	tcase_add_test(tool, a_file_can_be_written);
	tcase_add_test(tool, what_cannot_be_printed_is_said);
	tcase_add_test(tool, colour_follows_flag_then_environment);
	tcase_add_test(tool, a_cut_trace_is_shown_and_only_strict_minds);
	tcase_add_loop_test(tool, the_simulated_device_is_named_on_every_screen, 0, 6);
	tcase_add_test(tool, of_a_run_the_process_that_did_most_is_shown);
	tcase_add_test(tool, the_first_screen_shows_the_worst_instance_if_it_is_an_outlier);
	tcase_add_test(tool, the_worst_layer_of_a_list_has_its_class);
	tcase_add_test(tool, the_first_screen_says_what_ran_and_where_the_time_went);
	tcase_add_test(tool, a_large_tree_is_cut_to_a_screen_and_says_so);
	suite_add_tcase(suite, tool);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
