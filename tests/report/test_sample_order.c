/* SPDX-License-Identifier: MIT
 * test_sample_order.c: passes that leave out samples return all else as passes with them.
 */
#include "report/trace/trace_reader.h"
#include "tests/support/trace_builder.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "trace.bin"
#define SAMPLER 9u
#define SAMPLES 400u
#define UNKNOWN_NODE 77u

/* What a pass returned. */
struct pass {
	struct {
		uint64_t time_ns;
		uint32_t kind, node;
	} others[3 * SAMPLES];
	uint32_t count, samples;
	uint64_t last_stamp, unknown_nodes;
};

/* Ranges of a thread, and samples that were written after some of them ended. The last record is a
 * sample, which no range comes after. */
static void write_trace(void)
{
	struct trace_builder *builder = builder_new();

	for (uint32_t i = 0; i < SAMPLES; i++) {
		const uint64_t at = 1000 + 100 * (uint64_t)i;
		struct trace_sample *sample = build_record(
			builder, SAMPLER, TRACE_SAMPLE, sizeof *sample, at + 90);

		sample->ago = i % 7 * 30;
		sample->tid = 1001;
		sample->state = TRACE_SAMPLE_ON_CPU;
		sample->weight = 1;
		if (i == SAMPLES / 2)
			sample->head.node = UNKNOWN_NODE;
		build_push(builder, 1, at, "range");
		build_pop(builder, 1, at + 50);
	}
	builder_write(builder, PATH);
	builder_free(builder);
}

static void read_pass(struct trace_reader *reader, bool leaves_out, struct pass *pass)
{
	struct trace_event event;

	memset(pass, 0, sizeof *pass);
	reader_rewind(reader);
	if (leaves_out)
		reader_leave_out_samples(reader);
	while (reader_next(reader, &event) > 0) {
		if (event.kind == TRACE_SAMPLE) {
			pass->samples++;
			continue;
		}
		ck_assert_uint_lt(pass->count, 3 * SAMPLES);
		pass->others[pass->count].time_ns = event.time_ns;
		pass->others[pass->count].kind = event.kind;
		pass->others[pass->count++].node = event.node;
	}
	pass->last_stamp = reader_last_stamp(reader);
	pass->unknown_nodes = reader_integrity(reader)->unknown_nodes;
}

START_TEST(what_is_not_a_sample_stays_the_same)
{
	static struct pass whole, without;
	char error[READER_ERROR_BYTES];
	struct trace_reader *reader;

	write_trace();
	reader = reader_open(PATH, error);
	ck_assert_msg(reader != NULL, "%s", error);
	read_pass(reader, false, &whole);
	read_pass(reader, true, &without);
	ck_assert_uint_eq(whole.samples, SAMPLES);
	ck_assert_uint_lt(without.samples, 20);
	ck_assert_uint_gt(whole.count, 2 * SAMPLES - 1);
	ck_assert_uint_eq(whole.unknown_nodes, 1);
	whole.samples = without.samples = 0;
	ck_assert_int_eq(memcmp(&whole, &without, sizeof whole), 0);
	read_pass(reader, false, &whole);
	ck_assert_uint_eq(whole.samples, SAMPLES);
	reader_close(reader);
}
END_TEST

static char folder[4096];

static void enter_folder(void)
{
	const char *temporary = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/pperf-XXXXXX", temporary ? temporary : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
	unlink(PATH);
	rmdir(folder);
}

int main(void)
{
	Suite *suite = suite_create("sample_order");
	TCase *tests = tcase_create("passes");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, enter_folder, leave_folder);
	tcase_add_test(tests, what_is_not_a_sample_stays_the_same);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
