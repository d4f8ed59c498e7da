/* SPDX-License-Identifier: MIT
 * test_dump.c: the views `dump` and `info`: every record a line, in order, with its exact bytes;
 * what a trace says of itself.
 */
#include "tests/support/run_report.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lines of `dump -f json` but for those of CLOCK and of nodes. */
static char *dumped(struct trace_builder *builder)
{
	struct report_run run = run_report(builder, "dump trace.bin -f json");
	char *to = run.out;

	ck_assert_str_eq(run.err, "");
	ck_assert_int_eq(run.status, 0);
	for (char *line = run.out, *next; *line; line = next) {
		next = (char *)rawmemchr(line, '\n') + 1;
		if (memmem(line, (size_t)(next - line), "\"clock\"", 7) ||
			memmem(line, (size_t)(next - line), "\"kind\":\"node\"", 13))
			continue;
		memmove(to, line, (size_t)(next - line));
		to += next - line;
	}
	*to = '\0';
	return run.out;
}

START_TEST(ranges_come_with_depth_domain_and_duration)
{
	struct trace_builder *builder = builder_new();

	build_push(builder, 1, 100, "step");
	build_push_node(builder, 1, 110, build_node(builder, 1, "layer", "red", TRACE_NODE_RANGE));
	build_push(builder, 2, 120, "other");
	build_pop_at(builder, 1, 130, 0);
	build_pop(builder, 1, 140);
	build_seal(builder, 1, SEAL_WHOLE);
	ck_assert_str_eq(dumped(builder),
		"{\"t_ns\":100,\"pid\":100,\"tid\":1001,\"kind\":\"push\",\"name\":\"step\","
		"\"domain\":null,\"depth\":"
		"0,\"node\":1}\n"
		"{\"t_ns\":110,\"pid\":100,\"tid\":1001,\"kind\":\"push\",\"name\":\"layer\","
		"\"domain\":\"red\","
		"\"depth\":1,\"node\":2}\n"
		"{\"t_ns\":120,\"pid\":100,\"tid\":1002,\"kind\":\"push\",\"name\":\"other\","
		"\"domain\":null,\"depth\":"
		"0,\"node\":3}\n"
		"{\"t_ns\":130,\"pid\":100,\"tid\":1001,\"kind\":\"pop\",\"name\":\"step\","
		"\"domain\":null,\"depth\":0,"
		"\"node\":1,\"duration_ns\":30,\"begin_ns\":100}\n"
		"{\"t_ns\":140,\"pid\":100,\"tid\":1001,\"kind\":\"pop\",\"name\":\"layer\","
		"\"domain\":\"red\","
		"\"depth\":0,\"node\":2,\"duration_ns\":30,\"begin_ns\":110}\n"
		"{\"t_ns\":140,\"pid\":100,\"tid\":1002,\"kind\":\"left_open\",\"name\":\"other\","
		"\"domain\":null,"
		"\"depth\":0,\"node\":3,\"begin_ns\":120,\"last_ns\":120}\n");
}
END_TEST

START_TEST(a_node_has_a_line_before_the_first_record_that_refers_to_it)
{
	struct trace_builder *builder = builder_new();
	const uint32_t outer = build_node(builder, 0, "step", NULL, TRACE_NODE_STEP),
		       inner = build_node(builder, outer, "layer", "red", TRACE_NODE_MODULE);
	struct report_run run;

	build_push_node(builder, 1, 100, inner);
	build_push_node(builder, 1, 110, outer);
	build_seal(builder, 1, SEAL_WHOLE);
	run = run_report(builder, "dump trace.bin -f json");
	ck_assert_ptr_nonnull(strstr(run.out,
		"{\"t_ns\":100,\"pid\":100,\"tid\":1001,\"kind\":\"node\",\"name\":\"step\","
		"\"domain\":null,\"node\":1,\"node_kind\":\"step\"}\n"
		"{\"t_ns\":100,\"pid\":100,\"tid\":1001,\"kind\":\"node\",\"name\":\"layer\","
		"\"domain\":\"red\",\"node\":2,\"parent\":1,\"node_kind\":\"module\"}\n"
		"{\"t_ns\":100,\"pid\":100,\"tid\":1001,\"kind\":\"push\",\"name\":\"layer\","
		"\"domain\":\"red\",\"depth\":0,\"node\":2}\n"
		"{\"t_ns\":110,\"pid\":100,\"tid\":1001,\"kind\":\"push\""));
}
END_TEST

static void set_text(struct trace_range *range, const char *text, size_t bytes)
{
	range->head.flags |= TRACE_HAS_TEXT;
	range->text_bytes = (uint32_t)bytes;
	memcpy(range + 1, text, bytes);
}

START_TEST(names_keep_their_bytes)
{
	struct trace_builder *builder = builder_new();
	const char hostile[] =
		"a\"b\\c\n\x1b[31m\xff\xc3(\xc3\xa9 \xed\xa0\x80 \xe2\x80\xae\xc2\x9b";
	uint32_t inlined = build_node(builder, 0, NULL, NULL, TRACE_NODE_RANGE);
	struct trace_range *range;
	char *lines;

	range = build_push_record(builder, 1, 10, inlined, sizeof *range + sizeof hostile - 1);
	set_text(range, hostile, sizeof hostile - 1);
	range = build_push_record(builder, 1, 20, inlined, sizeof *range + 5);
	set_text(range, "inner", 5);
	build_pop(builder, 1, 30);
	build_pop(builder, 1, 40);
	build_seal(builder, 1, SEAL_WHOLE);
	lines = dumped(builder);
#define HOSTILE                                                                              \
	"\"name\":\"a\\\"b\\\\c\\n\\u001b[31m\\uefff\\uefc3(\xc3\xa9 \\uefed\\uefa0\\uef80 " \
	"\\u202e\\u009b\",\"domain\":null"
	ck_assert_ptr_nonnull(strstr(lines, "\"kind\":\"push\"," HOSTILE));
	ck_assert_ptr_nonnull(strstr(lines, "\"kind\":\"pop\",\"name\":\"inner\""));
	ck_assert_ptr_nonnull(strstr(lines, "\"kind\":\"pop\"," HOSTILE));
}
END_TEST

static void build_mark(struct trace_builder *builder, uint64_t at, uint32_t type, uint64_t payload)
{
	struct trace_range *mark = build_record(builder, 1, TRACE_MARK, sizeof *mark, at);

	mark->name = build_name(builder, "m");
	mark->payload = payload;
	mark->payload_type = type;
	if (type == 1) {
		mark->head.flags = TRACE_HAS_COLOR | TRACE_HAS_CATEGORY;
		mark->color = 0x80ff00abu;
		mark->category = 7;
		mark->domain = build_name(builder, "blue");
	}
}

static uint64_t bits(double value)
{
	uint64_t number;

	memcpy(&number, &value, sizeof number);
	return number;
}

static uint64_t narrow_bits(float value)
{
	uint32_t number;

	memcpy(&number, &value, sizeof number);
	return number;
}

START_TEST(payloads_have_their_types)
{
	struct trace_builder *builder = builder_new();

	build_mark(builder, 1, 1, UINT64_MAX);
	build_mark(builder, 2, 2, (uint64_t)INT64_MIN);
	build_mark(builder, 3, 3, bits(0.1));
	build_mark(builder, 4, 4, UINT64_C(0xffffffffffffffff));
	build_mark(builder, 5, 5, (uint32_t)-5);
	build_mark(builder, 6, 6, narrow_bits(0.5f));
	build_mark(builder, 7, 3, bits(1e300 * 1e300));
	build_mark(builder, 8, 99, 3);
	build_seal(builder, 1, SEAL_WHOLE);
#define MARK(t) "{\"t_ns\":" #t ",\"pid\":100,\"tid\":1001,\"kind\":\"mark\",\"name\":\"m\","
	ck_assert_str_eq(dumped(builder),
		MARK(1) "\"domain\":\"blue\",\"category\":7,\"color\":\"0x80FF00AB\","
			"\"payload\":\"0xffffffffffffffff\",\"payload_type\":\"u64\"}\n" MARK(2) "\"domain\":null,\"payload\":\"-9223372036854775808\",\"payload_type\":\"i64\"}\n" MARK(
				3) "\"domain\":null,\"payload\":0.1,\"payload_type\":"
				   "\"double\"}\n" MARK(
					   4) "\"domain\":null,\"payload\":"
					      "4294967295,\"payload_type\":"
					      "\"u32\"}\n" MARK(
						      5) "\"domain\":"
							 "null,"
							 "\"payload\":"
							 "-5,"
							 "\"payload_"
							 "type\":"
							 "\"i32\"}"
							 "\n" MARK(6) "\"domain\":null,\"payload\":"
								      "0.5,\"payload_type\":"
								      "\"float\"}\n" MARK(
									      7) "\"domain\":null,"
										 "\"payload\":"
										 "\"inf\","
										 "\"payload_type\":"
										 "\"double\"}"
										 "\n" MARK(8) "\"do"
											      "main"
											      "\":"
											      "null"
											      ",\"p"
											      "aylo"
											      "ad\""
											      ":\"0"
											      "x3\""
											      ",\"p"
											      "aylo"
											      "ad_"
											      "type"
											      "\":"
											      "99}"
											      "\n");
}
END_TEST

START_TEST(an_end_has_the_name_of_its_start_on_another_thread)
{
	struct trace_builder *builder = builder_new();
	struct trace_range *start;
	struct trace_end *end;

	for (uint32_t i = 1; i <= 200; i++) {
		start = build_record(builder, 1, TRACE_START, sizeof *start + 8, i);
		start->id = UINT64_C(0x100000000) * i;
		set_text(start, i % 2 ? "odd" : "even", i % 2 ? 3 : 4);
	}
	for (uint32_t i = 1; i <= 200; i++) {
		end = build_record(builder, 2, TRACE_END, sizeof *end, 1000 + i);
		end->id = UINT64_C(0x100000000) * i;
	}
	end = build_record(builder, 2, TRACE_END, sizeof *end, 2000);
	end->id = UINT64_C(0x100000000);
	build_seal(builder, 1, SEAL_WHOLE);
	build_seal(builder, 2, SEAL_WHOLE);
	char *lines = dumped(builder);

	ck_assert_ptr_nonnull(strstr(lines,
		"{\"t_ns\":1,\"pid\":100,\"tid\":1001,\"kind\":\"start\",\"name\":\"odd\","
		"\"domain\":null,\"id\":\"0x100000000\"}\n"));
	for (uint32_t i = 1; i <= 200; i++) {
		char line[256];

		snprintf(line, sizeof line,
			"{\"t_ns\":%u,\"pid\":100,\"tid\":1002,\"kind\":\"end\",\"name\":\"%s\","
			"\"domain\":null,\"id\":"
			"\"0x%x00000000\",\"duration_ns\":1000,\"begin_ns\":%u}\n",
			1000 + i, i % 2 ? "odd" : "even", i, i);
		ck_assert_msg(strstr(lines, line) != NULL, "no %s", line);
	}
	ck_assert_ptr_nonnull(strstr(lines,
		"{\"t_ns\":2000,\"pid\":100,\"tid\":1002,\"kind\":\"end\",\"name\":null,"
		"\"domain\":null,\"id\":\"0x100000000\"}\n"));
}
END_TEST

START_TEST(gpu_work_stands_where_the_gpu_did_it)
{
	struct trace_builder *builder = builder_new();
	const unsigned count = 70000; /* more than are sorted in memory */
	struct trace_gpu_batch *batch;
	unsigned kernels = 0;
	uint64_t last = 0;
	char *lines;

	build_push(builder, 1, 5, "step");
	for (unsigned i = 0; i < count; i++) {
		if (i % 100 == 0) {
			batch = build_record(
				builder, 2, TRACE_GPU_BATCH, sizeof *batch, UINT64_C(10000000) + i);
			batch->records = 100;
		}
		build_kernel(builder, 2, UINT64_C(10000000) + i / 100 * 100, i, "k",
			10 + (i * UINT64_C(7919)) % count * 100,
			20 + (i * UINT64_C(7919)) % count * 100);
		if (i % 400 == 399)
			build_seal(builder, 2, SEAL_WHOLE);
	}
	build_pop(builder, 1, 3500000);
	build_seal(builder, 1, SEAL_WHOLE);
	lines = dumped(builder);
	ck_assert_int_eq(
		strncmp(lines, "{\"t_ns\":5,\"pid\":100,\"tid\":1001,\"kind\":\"push\"", 44), 0);
	ck_assert_ptr_nonnull(
		strstr(lines, "\"kind\":\"kernel\",\"name\":\"k\",\"correlation\":\"0x0\","));
	for (char *line = lines, *next; *line; line = next) {
		uint64_t now = 0;

		/* sscanf and strstr look for the end of the whole text first. */
		next = rawmemchr(line, '\n');
		*next++ = '\0';
		if (sscanf(line, "{\"t_ns\":%" SCNu64, &now) != 1 || now < last)
			ck_abort_msg("after %" PRIu64 ": %.80s", last, line);
		last = now;
		kernels += !strncmp(strstr(line, "\"kind\":"), "\"kind\":\"kernel\"", 15);
	}
	ck_assert_uint_eq(kernels, count);
}
END_TEST

START_TEST(calls_and_metrics_say_what_they_know)
{
	struct trace_builder *builder = builder_new();
	struct trace_counter *counter;
	struct trace_metric *metric;
	struct trace_lost *lost;
	struct trace_object *object;
	struct trace_memory *memory;
	char *lines;

	counter = build_dictionary(builder, TRACE_COUNTER, sizeof *counter);
	counter->counter = 3;
	builder_header(builder)->lost[TRACE_LOST_FULL_DISK] = 9;
	metric = build_record(builder, 1, TRACE_METRIC, sizeof *metric, 10);
	metric->counter = 3;
	metric->type = TRACE_METRIC_I64;
	metric->value = (uint64_t)-4;
	metric = build_record(builder, 1, TRACE_METRIC, sizeof *metric, 11);
	metric->counter = 4;
	metric->type = TRACE_METRIC_NONE;
	lost = build_record(builder, 1, TRACE_LOST, sizeof *lost, 12);
	lost->events = 9;
	lost->reason = TRACE_LOST_FULL_DISK;
	object = build_record(builder, 1, TRACE_OBJECT, sizeof *object, 13);
	object->type = TRACE_OBJECT_CUDA_STREAM;
	object->object = 0x55aa;
	object->name = build_name(builder, "copies");
	memory = build_memory(builder, 1, 100, TRACE_ALLOC, 0x7f0000, 4096, TRACE_MEMORY_DEVICE, 0);
	memory->call.result = 2;
	memory->flags = TRACE_MEMORY_POOL | TRACE_MEMORY_MAPPED;
	build_seal(builder, 1, SEAL_WHOLE);
	lines = dumped(builder);
	ck_assert_ptr_nonnull(strstr(lines,
		"{\"t_ns\":10,\"pid\":100,\"tid\":1001,\"kind\":\"metric\",\"name\":null,"
		"\"domain\":null,\"value\":-4,\"counter\":3}\n"));
	ck_assert_ptr_nonnull(strstr(lines, "\"value\":null,\"counter\":4}\n"));
	ck_assert_ptr_nonnull(strstr(lines, "\"kind\":\"lost\",\"events\":9,\"reason\":\"the disk "
					    "is full or a limit was reached\"}\n"));
	ck_assert_ptr_nonnull(
		strstr(lines, "\"kind\":\"name\",\"name\":\"copies\",\"domain\":null,\"object\":"
			      "\"0x55aa\",\"object_type\":\"cuda_stream\"}\n"));
	ck_assert_ptr_nonnull(strstr(lines, "\"kind\":\"alloc\""));
	ck_assert_ptr_nonnull(strstr(lines,
		"\"bytes\":4096,\"address\":\"0x7f0000\",\"device\":0,\"stream\":\"0x0\","
		"\"memory_kind\":\"device\",\"flags\":\"pool mapped\",\"result\":2,"));
}
END_TEST

START_TEST(csv_has_a_cell_for_every_key)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;
	size_t commas = 0;

	build_push(builder, 1, 10, "=cmd|' /C calc'!A0");
	build_push(builder, 1, 20, "a,\"b\"\r\nc\\");
	build_seal(builder, 1, SEAL_WHOLE);
	run = run_report(builder, "dump trace.bin -f csv");
	ck_assert_int_eq(strncmp(run.out, "t_ns,pid,tid,kind,name,domain,", 30), 0);
	for (char *c = run.out; *c != '\n'; c++)
		commas += *c == ',';
	for (char *line = strchr(run.out, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
		size_t here = 0;

		for (char *c = line; *c != '\n'; c++)
			here += *c == ',';
		ck_assert_uint_eq(here, commas + (memmem(line, (size_t)(strchr(line, '\n') - line),
							  ",\"a,", 4) != NULL));
	}
	ck_assert_ptr_nonnull(strstr(run.out, "push,\\x3dcmd|' /C calc'!A0,"));
	ck_assert_ptr_nonnull(strstr(run.out, "push,\"a,\"\"b\"\"\\x0d\\x0ac\\\\\","));
}
END_TEST

START_TEST(a_gap_is_a_line_and_only_strict_minds)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "a");
	build_seal(builder, 1, SEAL_WHOLE);
	build_push(builder, 1, 20, "b");
	build_seal(builder, 1, SEAL_MISSING);
	build_pop(builder, 1, 30);
	build_seal(builder, 1, SEAL_WHOLE);
	run = run_report(builder, "dump trace.bin -f json --strict");
	ck_assert_int_eq(run.status, 2);
	ck_assert_ptr_nonnull(strstr(run.out, "{\"t_ns\":30,\"pid\":100,\"tid\":1001,\"kind\":"
					      "\"gap\",\"last_ns\":10,\"missing\":1}\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "\"kind\":\"resumed\",\"name\":\"b\",\"domain\":"
					      "null,\"depth\":1,\"node\":2,\"begin_ns\":20}\n"));
	run = run_report(NULL, "info trace.bin --strict");
	ck_assert_int_eq(run.status, 2);
	ck_assert_ptr_nonnull(strstr(run.out, "complete    no\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "1 missing blocks\n"));
	run = run_report(NULL, "info trace.bin");
	ck_assert_int_eq(run.status, 0);
}
END_TEST

START_TEST(info_says_what_ran_and_how_the_file_is_made_up)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_meta(builder, "command", "./train --steps 2");
	build_meta(builder, "host", "node7");
	build_meta(builder, "env.PPERF_MAX", "64M");
	build_meta(builder, "source.nvtx", "on");
	build_meta(builder, "source.cupti", "off: refused (35)");
	build_meta(builder, "version.pperf", "0.1");
	build_device(builder, 0, "Some GPU");
	build_push(builder, 1, 10, "a");
	build_pop(builder, 1, 20);
	build_seal(builder, 1, SEAL_WHOLE);
	run = run_report(builder, "info trace.bin");
	ck_assert_str_eq(run.err, "");
	ck_assert_ptr_nonnull(strstr(run.out, "command     ./train --steps 2\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "process     100, child of 99\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "started     2023-11-14 22:13:20.000000000 UTC\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "ended       cleanly\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "settings    PPERF_MAX 64M\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "cupti off: refused (35)\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "devices     0 Some GPU"));
	ck_assert_ptr_nonnull(strstr(run.out, "clock       CLOCK_MONOTONIC, 1000.000 MHz\n"));
	ck_assert_ptr_nonnull(strstr(run.out, "records     3, "));
	ck_assert_ptr_nonnull(strstr(run.out, "complete    yes\n"));
	run = run_report(NULL, "info trace.bin -f json");
	ck_assert_ptr_nonnull(strstr(run.out, "\"view\": \"info\""));
	ck_assert_ptr_nonnull(strstr(run.out, "\"records\":{\"clock\":1,\"push\":1,\"pop\":1}"));
	ck_assert_ptr_nonnull(strstr(run.out, "\"env.PPERF_MAX\":\"64M\""));
	ck_assert_ptr_nonnull(strstr(run.out, "\"complete\":true"));
	run = run_report(NULL, "info trace.bin -f csv");
	ck_assert_str_eq(run.out, "file,pid,kind,records\r\ntrace.bin,100,clock,1\r\ntrace.bin,"
				  "100,push,1\r\ntrace.bin,100,pop,1\r\n");
}
END_TEST

/* A program that pops too often has lost nothing. */
START_TEST(info_calls_pops_without_a_push_no_loss)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_push(builder, 1, 10, "a");
	build_pop(builder, 1, 20);
	build_pop_without_push(builder, 1, 30);
	build_pop_without_push(builder, 1, 40);
	build_seal(builder, 1, SEAL_WHOLE);
	run = run_report(builder, "info trace.bin");
	ck_assert_ptr_nonnull(strstr(run.out, "complete    yes\n"));
	ck_assert_ptr_null(strstr(run.out, "losses"));
	ck_assert_ptr_nonnull(
		strstr(run.out, "notes                  2 pops of the program without a push\n"));
	ck_assert_ptr_nonnull(strstr(run_report(NULL, "trace.bin").out,
		"notes     range ends without an open range: 2\nlosses    none\n"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dump and info");
	TCase *cases = tcase_create("dump");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, run_report_setup, run_report_teardown);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, ranges_come_with_depth_domain_and_duration);
	tcase_add_test(cases, a_node_has_a_line_before_the_first_record_that_refers_to_it);
	tcase_add_test(cases, names_keep_their_bytes);
	tcase_add_test(cases, payloads_have_their_types);
	tcase_add_test(cases, an_end_has_the_name_of_its_start_on_another_thread);
	tcase_add_test(cases, gpu_work_stands_where_the_gpu_did_it);
	tcase_add_test(cases, calls_and_metrics_say_what_they_know);
	tcase_add_test(cases, csv_has_a_cell_for_every_key);
	tcase_add_test(cases, a_gap_is_a_line_and_only_strict_minds);
	tcase_add_test(cases, info_says_what_ran_and_how_the_file_is_made_up);
	tcase_add_test(cases, info_calls_pops_without_a_push_no_loss);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
