/* SPDX-License-Identifier: MIT
 * Calls that are told by an earlier one: what the library writes of repeated calls is read back as
 * if each had been written whole, and what cannot be repeated is.
 */
#include "collector/file/dictionary.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"
#include "preload/cuda/traced_call.h"
#include "tests/support/collector_fixture.h"
#include "tests/support/event_text.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is written is read ---- */

#define CALLS 20000
#define WORDS_MOST CALL_WORDS(trace_launch)

static struct traced_function functions[4] = {
	{ .name = "cudaMalloc", .type = CALL_ALLOC },
	{ .name = "cudaFree", .type = CALL_FREE },
	{ .name = "cuLaunchKernel", .type = CALL_LAUNCH, .flags = TRACE_CALL_DRIVER },
	{ .name = "cuMemcpyHtoDAsync_v2", .flags = TRACE_CALL_DRIVER | TRACE_CALL_CALLBACK },
};

struct made { /* a call, and how its record must begin */
	enum trace_kind kind;
	struct trace_call call; /* without what only the writer knows */
	uint64_t rest[WORDS_MOST];
	size_t words;
};

static struct made made[CALLS];
static uint32_t made_count;

static uint32_t chance(uint32_t below)
{
	static uint64_t state = 4711;

	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static size_t words_of(enum trace_kind kind)
{
	switch (kind) {
	case TRACE_LAUNCH:
		return CALL_WORDS(trace_launch);
	case TRACE_ALLOC:
	case TRACE_FREE:
		return CALL_WORDS(trace_memory);
	default:
		return CALL_WORDS(trace_copy);
	}
}
static_assert(CALL_WORDS(trace_copy) == CALL_WORDS(trace_sync) &&
		      CALL_WORDS(trace_copy) == CALL_WORDS(trace_graph_launch),
	"words_of");

/* One call, as the program's would come. */
static void make(struct made *one, struct traced_function *traced, uint64_t duration)
{
	const uint32_t outer = call_begin(one);

	call_tls.begin -= duration;
	call_correlate(one->call.correlation);
	call_set_context(one->call.device, 0);
	one->call.duration = duration;
	one->call.head.flags = traced->flags;
	call_write(traced, one->kind, (int)one->call.result, CALL_NO_STREAM, one->rest, one->words);
	call_end(outer);
}

/* Few values, so that most calls repeat an earlier one, but not always the last. */
static void make_any(struct made *one)
{
	static uint64_t correlation;

	one->kind = TRACE_LAUNCH + chance(TRACE_FREE - TRACE_LAUNCH + 1);
	one->words = words_of(one->kind);
	for (size_t i = 0; i < one->words; i++)
		one->rest[i] = chance(3) ? 7 : chance(4) + UINT64_C(0x700000000);
	correlation += chance(100) ? chance(20) : chance(100000);
	one->call.correlation = chance(10) ? correlation : 0;
	one->call.result = chance(20) == 0 ? 2 : 0;
	one->call.device = chance(20) == 0;
	make(one, &functions[2 + chance(2)],
		chance(200) ? chance(5000) : UINT64_C(1) << (30 + chance(5)));
}

static void begin(void)
{
	collector_start(0);
	call_configure(true, "off");
	call_prepare();
}

static void expect_call(const struct trace_event *event, const struct made *one)
{
	const struct trace_call *call = event->record;

	ck_assert_uint_eq(event->kind, one->kind);
	ck_assert_uint_eq(call->head.kind, one->kind);
	ck_assert_uint_eq(call->head.size, sizeof *call + 8 * one->words);
	ck_assert_uint_eq(call->head.flags, one->call.head.flags);
	ck_assert_uint_eq(call->correlation, one->call.correlation);
	ck_assert_uint_eq(call->result, one->call.result);
	ck_assert_uint_eq(call->device, one->call.device);
	ck_assert_uint_eq(call->stack, 0);
	ck_assert_uint_ne(call->api, 0);
	ck_assert_uint_ge(call->duration, one->call.duration);
	ck_assert_uint_lt(call->duration, one->call.duration + UINT32_MAX);
	ck_assert_mem_eq(call + 1, one->rest, 8 * one->words);
}

/* The calls that the trace tells, held against those that were made, in their order. How many bytes
 * the file has. */
static uint64_t expect_all(void)
{
	struct trace_reader *reader = collector_open_trace();
	struct trace_event event;
	uint64_t bytes = reader_header(reader)->end, last = 0;
	uint32_t read = 0;

	while (reader_next(reader, &event) > 0)
		if (event.kind >= TRACE_LAUNCH && event.kind <= TRACE_FREE) {
			const struct trace_call *call = event.record;

			ck_assert_uint_lt(read, made_count);
			ck_assert_uint_ge(call->stamp, last);
			last = call->stamp;
			expect_call(&event, &made[read++]);
		} else {
			ck_assert_uint_ne(event.kind, TRACE_AGAIN);
		}
	ck_assert_uint_eq(read, made_count);
	ck_assert(reader_integrity(reader)->complete);
	ck_assert_uint_eq(reader_integrity(reader)->clock_violations, 0);
	reader_close(reader);
	return bytes;
}

START_TEST(any_row_of_calls_is_read_as_it_was_made)
{
	begin();
	for (made_count = 0; made_count < CALLS; made_count++)
		make_any(&made[made_count]);
	collector_finish();
	expect_all();
}
END_TEST

START_TEST(a_trace_that_is_being_written_is_read_as_well)
{
	begin();
	for (made_count = 0; made_count < CALLS; made_count++)
		make_any(&made[made_count]);
	expect_all();
}
END_TEST

/* What one call more takes in the file, on average. */
static uint64_t cost_of(enum trace_kind kind, struct traced_function *traced, uint64_t address_step,
	uint64_t bytes_step)
{
	uint64_t bytes;

	begin();
	for (made_count = 0; made_count < CALLS; made_count++) {
		struct made *one = &made[made_count];

		*one = (struct made){ .kind = kind,
			.words = words_of(kind),
			.rest = { address_step * made_count, bytes_step * made_count, 3 } };
		one->call.device = UINT32_MAX;
		make(one, traced, 10);
	}
	collector_finish();
	bytes = expect_all() / CALLS;
	return bytes;
}

/* Slots and dictionary are a part of the file, too: some 10 bytes a call. */
START_TEST(launches_take_24_bytes)
{
	ck_assert_uint_le(cost_of(TRACE_LAUNCH, &functions[2], 0, 0), 24 + 12);
}
END_TEST

START_TEST(releases_take_32_bytes)
{
	ck_assert_uint_le(cost_of(TRACE_FREE, &functions[1], 4096, 0), 32 + 12);
}
END_TEST

START_TEST(allocations_take_40_bytes)
{
	ck_assert_uint_le(cost_of(TRACE_ALLOC, &functions[0], 4096, 16), 40 + 12);
}
END_TEST

/* ---- what does not make sense ---- */

static struct trace_builder *builder;

static void set_up(void)
{
	builder = builder_new();
}

static void tear_down(void)
{
	builder_free(builder);
}

/* A payload: CLOCK at 0, LAUNCH at 4 words of 8 bytes, then an AGAIN of `of` with `more` words,
 * then a MARK. */
static void build_again(uint64_t at, uint16_t of, size_t more)
{
	struct trace_launch *launch = build_record(
		builder, 1, TRACE_LAUNCH, sizeof *launch, at + 10);
	struct trace_again *again;

	launch->call.correlation = 100;
	launch->stream = 1;
	launch->function = 2;
	launch->shared_bytes = 64;
	again = build_record(builder, 1, TRACE_AGAIN, sizeof *again + 8 * more, at + 20);
	again->of = of;
	again->correlation = 5;
	again->duration = 3;
	for (size_t i = 0; i < more; i++)
		((uint64_t *)(again + 1))[i] = 50 + i;
	build_record(builder, 1, TRACE_MARK, sizeof(struct trace_range), at + 30);
}

START_TEST(an_again_is_the_call_with_what_it_says)
{
	struct trace_reader *reader;
	struct trace_event event;
	uint32_t launches = 0;

	build_push(builder, 1, 5, "step");
	build_again(0, 4 + 1, 2);
	reader = open_built(builder);
	while (reader_next(reader, &event) > 0)
		if (event.kind == TRACE_LAUNCH && launches++) {
			const struct trace_launch *launch = event.record;

			ck_assert_uint_eq(event.time_ns, 20);
			ck_assert_uint_eq(event.node, 1);
			ck_assert_uint_eq(launch->call.head.node, 1);
			ck_assert_uint_eq(launch->call.correlation, 105);
			ck_assert_uint_eq(launch->call.duration, 3);
			ck_assert_uint_eq(launch->stream, 50);
			ck_assert_uint_eq(launch->function, 51);
			ck_assert_uint_eq(launch->shared_bytes, 64);
		}
	ck_assert_uint_eq(launches, 2);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
}
END_TEST

START_TEST(an_again_of_nothing_ends_its_payload)
{
	/* the payload's beginning, no record, itself, behind itself, far off, more words than a
	 * launch has */
	static const struct {
		uint16_t of;
		size_t more;
	} bad[] = { { 0, 0 }, { 5, 0 }, { 16, 0 }, { 17, 0 }, { UINT16_MAX, 0 }, { 4, 7 } };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct trace_reader *reader;
		char *events;

		build_again(0, bad[i].of, bad[i].more);
		build_seal(builder, 1, SEAL_WHOLE);
		build_record(builder, 1, TRACE_MARK, sizeof(struct trace_range), 40);
		reader = open_built(builder);
		events = events_to_text(reader);
		ck_assert_str_eq(events, "10 s1 LAUNCH\n"
					 "40 s1 gap 0 seen 10\n"
					 "40 s1 MARK ?\n"
					 "40 s1 end\n");
		ck_assert_uint_eq(reader_integrity(reader)->damaged_payloads, 1);
		ck_assert_ptr_nonnull(strstr(reader_warning(reader, 0), "repeats"));
		free(events);
		reader_close(reader);
		tear_down();
		set_up();
	}
}
END_TEST

/* Events of a file that need not make sense: whatever they are, they hold together. How many. */
static uint32_t survive(const void *bytes, size_t count)
{
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t last = 0, sum = 0;
	uint32_t events = 0;

	if (refusal_of(bytes, count))
		return 0;
	reader = open_bytes(bytes, count);
	for (; reader_next(reader, &event) > 0; events++) {
		const struct trace_head *head = event.record;

		ck_assert_uint_ge(event.time_ns, last);
		last = event.time_ns;
		ck_assert_uint_ne(event.kind, TRACE_AGAIN);
		ck_assert_uint_lt(event.node, reader_node_count(reader));
		for (unsigned i = 0; head && i < head->size; i++)
			sum += ((const unsigned char *)head)[i];
	}
	ck_assert_uint_ne(sum, 1); /* every byte of every record could be read */
	reader_close(reader);
	return events;
}

/* A slot, which no crc protects. */
static unsigned char *build_many(size_t *count)
{
	const unsigned char *from;
	unsigned char *bytes;

	for (uint16_t i = 0; i < 8; i++)
		build_again(i * 100u, 4, i % 5);
	from = builder_bytes(builder, count);
	bytes = malloc(*count);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, from, *count);
	return bytes;
}

START_TEST(a_slot_cut_anywhere_is_read_up_to_there)
{
	size_t count;
	unsigned char *bytes = build_many(&count);
	uint32_t events = 0, most = survive(bytes, count);

	ck_assert_uint_eq(most, 8 * 3 + 2);
	for (size_t cut = 4096; cut < count; cut++) {
		uint32_t now = survive(bytes, cut);

		ck_assert_uint_le(now, most);
		ck_assert_uint_ge(now + 1, events);
		events = now;
	}
	free(bytes);
}
END_TEST

START_TEST(a_slot_with_any_byte_changed_is_survived)
{
	size_t count;
	unsigned char *bytes = build_many(&count);

	for (size_t at = 4096; at < count; at++)
		for (int all = 0; all < 2; all++) {
			const unsigned char change = (unsigned char)(all ? 0xff : 1u << at % 8);

			bytes[at] ^= change;
			survive(bytes, count);
			bytes[at] ^= change;
		}
	free(bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("again");
	TCase *written = tcase_create("written"), *read = tcase_create("read");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(written, NULL, collector_remove_folder);
	tcase_add_test(written, any_row_of_calls_is_read_as_it_was_made);
	tcase_add_test(written, a_trace_that_is_being_written_is_read_as_well);
	tcase_add_test(written, launches_take_24_bytes);
	tcase_add_test(written, releases_take_32_bytes);
	tcase_add_test(written, allocations_take_40_bytes);
	suite_add_tcase(suite, written);
	tcase_add_checked_fixture(read, set_up, tear_down);
	tcase_add_test(read, an_again_is_the_call_with_what_it_says);
	tcase_add_test(read, an_again_of_nothing_ends_its_payload);
	tcase_add_test(read, a_slot_cut_anywhere_is_read_up_to_there);
	tcase_add_test(read, a_slot_with_any_byte_changed_is_survived);
	tcase_set_timeout(read, 60);
	suite_add_tcase(suite, read);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
