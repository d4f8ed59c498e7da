/* SPDX-License-Identifier: MIT
 * test_trace_damage.c: traces that were cut, changed, swapped and made up: read up to there, or
 * refused with a sentence; never a crash, never a loop, never more memory than the file is worth.
 * Under ASan and UBSan this is where most of the reader's mistakes would show.
 */
#include "report/trace/record_check.h"
#include "tests/support/event_text.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED /* needs memory of its own */
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

static struct trace_builder *builder;
static int file = -1; /* in memory */
static char path[64];

static void set_up(void)
{
	builder = builder_new();
	file = memfd_create("trace", MFD_CLOEXEC);
	ck_assert_int_ge(file, 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
}

static void tear_down(void)
{
	builder_free(builder);
	close(file);
}

/* Check's own assertions each tell its runner where they are: too slow for millions. */
#define require(condition) ((condition) ? (void)0 : require_failed(#condition, __LINE__))

static void require_failed(const char *condition, int line)
{
	ck_abort_msg("line %d: %s", line, condition);
}

/* What a pass over a trace came to. */
struct outcome {
	bool refused, complete;
	uint64_t records; /* recorded, not inferred */
	uint64_t hash;    /* of all events and texts */
};

static void mix(struct outcome *outcome, uint64_t value)
{
	outcome->hash = (outcome->hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	outcome->hash ^= outcome->hash >> 29;
}

static void touch_text(struct outcome *outcome, struct trace_text text)
{
	require(text.bytes != NULL);
	for (uint32_t i = 0; i < text.length; i++)
		mix(outcome, (unsigned char)text.bytes[i]);
}

static void touch_module(struct outcome *outcome, const struct trace_module *module)
{
	const uint32_t length = module->path_bytes + module->build_id_bytes;

	touch_text(outcome, (struct trace_text){ (const char *)(module + 1), length, true });
}

static void touch_frames(struct outcome *outcome, struct trace_reader *reader,
	const struct trace_python_stack *stack)
{
	const struct trace_python_frame *frames = (const void *)(stack + 1);

	require(reader_python_stack(reader, stack->stack) != NULL);
	for (uint32_t i = 0; i < stack->frames; i++) {
		touch_text(outcome, reader_name(reader, frames[i].function));
		touch_text(outcome, reader_name(reader, frames[i].file));
	}
}

/* Everything that the dictionary offers is looked at. */
static void touch_dictionary(struct trace_reader *reader, struct outcome *outcome)
{
	struct trace_text key, value;

	for (uint32_t id = 0; id < reader_node_count(reader); id++) {
		const struct trace_node_info *place = reader_node(reader, id);

		require(id == 0 || place->parent < id);
		touch_text(outcome, reader_name(reader, place->name));
	}
	for (uint32_t i = 0; i < reader_meta_count(reader); i++) {
		reader_meta_at(reader, i, &key, &value);
		touch_text(outcome, key);
		touch_text(outcome, value);
	}
	for (unsigned kind = 0; kind < TRACE_KINDS; kind++)
		for (uint32_t i = 0; i < reader_dictionary_count(reader, kind); i++) {
			const struct trace_head *head = reader_dictionary(reader, kind, i);

			for (unsigned byte = 0; byte < head->size; byte++)
				mix(outcome, ((const unsigned char *)head)[byte]);
			if (kind == TRACE_MODULE)
				touch_module(outcome, (const void *)head);
			if (kind == TRACE_STACK)
				require(reader_stack(reader,
						((const struct trace_stack *)(const void *)head)
							->stack) != NULL);
			if (kind == TRACE_PYTHON_STACK)
				touch_frames(outcome, reader, (const void *)head);
			if (kind == TRACE_SOURCE)
				require(reader_source(reader, head->node) != NULL);
		}
}

/* What must hold of every event of any file, and the depth that each stream must have. */
static void check_event(
	struct trace_reader *reader, const struct trace_event *event, uint64_t *last_ns)
{
	require(event->time_ns >= *last_ns);
	require(event->time_ns <= READER_TIME_MAX);
	require(event->node < reader_node_count(reader));
	require(event->kind < EVENT_KINDS);
	require(event->stream->ordinal < reader_stream_count(reader));
	*last_ns = event->time_ns;
	if (event->kind == TRACE_PUSH ||
		(event->kind >= EVENT_POP && event->kind <= EVENT_LEFT_OPEN)) {
		require(event->begin_ns <= event->time_ns);
		require(event->node != 0);
	}
	if (event->kind < TRACE_KINDS && event->kind != TRACE_PUSH)
		require(event->record != NULL);
}

static void keep_depth(const struct trace_event *event)
{
	uintptr_t depth = (uintptr_t)event->stream->user;

	switch (event->kind) {
	case TRACE_PUSH:
	case EVENT_RESUMED:
		require(event->depth == depth);
		event->stream->user = (void *)(depth + 1);
		break;
	case EVENT_POP:
		require(event->depth < depth);
		event->stream->user = (void *)(depth - 1);
		break;
	case EVENT_UNENDED:
	case EVENT_LEFT_OPEN:
		require(event->depth == depth - 1);
		event->stream->user = (void *)(depth - 1);
		break;
	case EVENT_STREAM_END:
		require(depth == 0);
		break;
	default:
		require(event->depth == depth);
	}
}

static void touch_record(
	struct trace_reader *reader, const struct trace_event *event, struct outcome *outcome)
{
	const struct trace_head *head = event->record;
	uint64_t start, end;

	mix(outcome, event->kind + event->time_ns * 64);
	touch_text(outcome, reader_event_text(reader, event));
	for (unsigned i = 0; head && i < head->size; i++)
		mix(outcome, ((const unsigned char *)head)[i]);
	if (event->kind == TRACE_KERNEL) {
		const struct trace_gpu *gpu = event->record;

		reader_gpu_times(reader, gpu->start_ns, gpu->end_ns, &start, &end);
		require(start <= end);
	}
}

static struct outcome read_file(uint64_t bytes)
{
	char error[READER_ERROR_BYTES];
	struct trace_reader *reader = reader_open(path, error);
	struct outcome outcome = { .refused = !reader };
	struct trace_event event;
	uint64_t events = 0, last_ns = 0;
	int status;

	if (!reader) {
		require(!strncmp(error, path, strlen(path)) && strlen(error) > strlen(path) + 10);
		return outcome;
	}
	touch_dictionary(reader, &outcome);
	while ((status = reader_next(reader, &event)) > 0) {
		check_event(reader, &event, &last_ns);
		keep_depth(&event);
		touch_record(reader, &event, &outcome);
		outcome.records += event.kind < TRACE_KINDS || event.kind == EVENT_POP ||
				   event.kind == EVENT_UNMATCHED;
		require(events++ < bytes * 4 + 64);
	}
	require(status == 0);
	outcome.complete = reader_integrity(reader)->complete;
	reader_close(reader);
	return outcome;
}

/* A record of every kind that streams have, with texts where there may be some. */
static void build_every_kind(uint32_t stream, uint64_t at)
{
	static const uint16_t sizes[TRACE_KINDS] = {
#define X(kind, type, timed, text) [TRACE_##kind] = sizeof(struct type),
		TRACE_RECORDS(X)
#undef X
	};

	for (unsigned kind = TRACE_CLOCK; kind < TRACE_KINDS; kind++) {
		struct trace_range *range;

		if (kind == TRACE_OPEN || kind == TRACE_PUSH || kind == TRACE_POP_AT ||
			kind == TRACE_AGAIN || kind_is_dictionary(kind))
			continue;
		range = build_record(builder, stream, kind, sizes[kind] + 13u, at + kind);
		if (kind == TRACE_START || kind == TRACE_MARK) {
			range->head.flags = TRACE_HAS_TEXT;
			range->text_bytes = 13;
			memcpy(range + 1, "inline text \xff", 13);
		}
		if (kind == TRACE_CLOCK) {
			struct trace_clock_record *clock = (void *)range;

			clock->monotonic_ns = clock->stamp;
			clock->realtime_ns = BUILDER_START_UNIX_NS + clock->stamp - BUILDER_START;
		}
	}
}

static void build_every_dictionary_kind(void)
{
	struct trace_stack *stack = build_dictionary(builder, TRACE_STACK, sizeof *stack + 16);
	struct trace_python_stack *of_python;
	struct trace_mixed_stack *mixed;
	struct trace_module *module;
	struct trace_counter *counter;

	stack->stack = 1;
	stack->frames = 2;
	of_python = build_dictionary(builder, TRACE_PYTHON_STACK,
		sizeof *of_python + 2 * sizeof(struct trace_python_frame));
	of_python->stack = 2;
	of_python->frames = 2;
	mixed = build_dictionary(builder, TRACE_MIXED_STACK, sizeof *mixed);
	mixed->stack = 3;
	mixed->native = 1;
	mixed->python = 2;
	build_dictionary(builder, TRACE_SOURCE, sizeof(struct trace_source));
	module = build_dictionary(builder, TRACE_MODULE, sizeof *module + 8);
	module->path_bytes = 5;
	module->build_id_bytes = 3;
	memcpy(module + 1, "/a.soABC", 8);
	counter = build_dictionary(builder, TRACE_COUNTER, sizeof *counter);
	counter->counter = 1;
	build_dictionary(builder, TRACE_DEVICE, sizeof(struct trace_device));
	build_dictionary(builder, TRACE_CONTEXT, sizeof(struct trace_context));
	build_dictionary(builder, TRACE_GRAPH_NODE, sizeof(struct trace_graph_node));
	build_dictionary(builder, TRACE_GRAPH_EXEC, sizeof(struct trace_graph_exec));
	build_meta(builder, "exe", "/bin/true");
	build_meta(builder, "env.PPERF_MAX", "4G");
}

/* Three streams, two sealed, payloads of every form; `sealed`: no slots, so that a crc covers
 * everything. */
static void build_small(bool sealed)
{
	build_every_dictionary_kind();
	for (uint32_t stream = 1; stream <= 3; stream++) {
		build_push(builder, stream, 10, "step");
		build_push(builder, stream, 20 * stream, "layer");
		build_seal(builder, stream, SEAL_WHOLE);
		build_pop(builder, stream, 100);
		build_every_kind(stream, 1000);
		build_push(builder, stream, 100000, "far");
		build_push(builder, stream, 90000000, "inner");
		build_pop_at(builder, stream, 90000010, 1);
		build_pop(builder, stream, 90000020);
		if (stream < 3 || sealed)
			build_seal(builder, stream, SEAL_WHOLE);
		if (stream == 2)
			build_pop(builder, stream, 90000030);
	}
	if (sealed) {
		build_seal(builder, 2, SEAL_WHOLE);
		build_dictionary_seal(builder);
	}
}

static size_t put_file(void)
{
	size_t bytes;
	const unsigned char *from = builder_bytes(builder, &bytes);

	ck_assert_int_eq(ftruncate(file, 0), 0);
	ck_assert_int_eq(pwrite(file, from, bytes, 0), (ssize_t)bytes);
	return bytes;
}

START_TEST(a_file_cut_anywhere_is_read_up_to_there)
{
	struct outcome whole, last = { .records = 0 };
	size_t bytes;

	build_small(false);
	bytes = put_file();
	whole = read_file(bytes);
	ck_assert(whole.complete && whole.records > 100);
	for (size_t cut = 0; cut <= bytes; cut++) {
		struct outcome outcome;

		put_file();
		ck_assert_int_eq(ftruncate(file, (off_t)cut), 0);
		outcome = read_file(cut);
		ck_assert(outcome.refused == (cut < sizeof(struct trace_header)));
		ck_assert_msg(outcome.records >= last.records,
			"cut at %zu: %lu records, one byte earlier %lu", cut,
			(unsigned long)outcome.records, (unsigned long)last.records);
		ck_assert_msg(cut == bytes || !outcome.complete || outcome.records == whole.records,
			"cut at %zu goes unnoticed", cut);
		last = outcome;
	}
	ck_assert_uint_eq(last.hash, whole.hash);
}
END_TEST

/* Where changes in a trace must be noticed: heads and payloads of blocks, not what is unused behind
 * them. */
static bool is_covered(const unsigned char *bytes, size_t count, size_t at)
{
	for (size_t block = 4096; block + sizeof(struct trace_block) <= count;) {
		struct trace_block head;

		memcpy(&head, bytes + block, sizeof head);
		if (at >= block && at < block + head.extent)
			return at < block + sizeof head + head.used;
		block += head.extent;
	}
	return false;
}

START_TEST(every_byte_may_be_changed_and_in_sealed_blocks_that_is_noticed)
{
	static const unsigned char changes[] = { 1, 128, 255 };
	const unsigned char *original;
	struct outcome whole;
	size_t bytes;

	build_small(true);
	original = builder_bytes(builder, &bytes);
	put_file();
	whole = read_file(bytes);
	ck_assert(whole.complete);
	for (size_t at = 0; at < bytes; at++)
		for (size_t i = 0; i < sizeof changes; i++) {
			unsigned char changed = original[at] ^ changes[i];
			struct outcome outcome;

			if (at >= 512 && at < 4096 && (i || at % 16))
				continue; /* nothing is there */
			require(pwrite(file, &changed, 1, (off_t)at) == 1);
			outcome = read_file(bytes);
			if (is_covered(original, bytes, at) && !outcome.refused && outcome.complete)
				ck_abort_msg(
					"byte %zu changed by 0x%x goes unnoticed", at, changes[i]);
			require(pwrite(file, original + at, 1, (off_t)at) == 1);
		}
}
END_TEST

START_TEST(every_byte_of_slots_may_be_changed)
{
	static const unsigned char changes[] = { 1, 128, 255 };
	const unsigned char *original;
	size_t bytes;

	build_small(false);
	original = builder_bytes(builder, &bytes);
	put_file();
	for (size_t at = 4096; at < bytes; at++)
		for (size_t i = 0; i < sizeof changes; i++) {
			unsigned char changed = original[at] ^ changes[i];

			require(pwrite(file, &changed, 1, (off_t)at) == 1);
			read_file(bytes);
			require(pwrite(file, original + at, 1, (off_t)at) == 1);
		}
}
END_TEST

/* A small generator, so that a failure can be had again. */
static uint64_t seed;

static uint64_t chance(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return below ? (seed >> 11) % below : 0;
}

static uint64_t interesting(void)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 7, 8, 63, 64, 65, 255, 65535, 65536,
		0x7fffffff, 0x80000000, 0xffffffff, UINT64_C(1) << 32, UINT64_C(1) << 62,
		UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 63, BUILDER_START,
		BUILDER_START_UNIX_NS };

	return chance(3) ? values[chance(sizeof values / sizeof *values)] : seed;
}

struct image {
	unsigned char *bytes;
	size_t count;
	size_t blocks[64];
	size_t block_count;
};

static void find_blocks(struct image *image)
{
	image->block_count = 0;
	for (size_t at = 4096;
		at + sizeof(struct trace_block) <= image->count && image->block_count < 64;) {
		struct trace_block head;

		memcpy(&head, image->bytes + at, sizeof head);
		image->blocks[image->block_count++] = at;
		at += head.extent;
	}
}

/* One change of a block: its head, a word of its payload, its place. */
static void change_block(struct image *image)
{
	size_t at = image->blocks[chance(image->block_count)],
	       other = image->blocks[chance(image->block_count)];
	struct trace_block *head = (void *)(image->bytes + at);
	uint64_t value = interesting();
	size_t words = (size_t)(head->used < 4 ? 1 : head->used / 4),
	       room = image->count - at - sizeof *head;
	size_t word = at + sizeof *head + 4 * chance(words < room / 4 ? words : room / 4);

	switch (chance(10)) {
	case 0:
		memcpy(image->bytes + at + 4 * chance(16), &value, 4);
		break;
	case 1:
		memcpy(image->bytes + at + 8 * chance(8), &value, 8);
		break;
	case 2:
		head->stream = (uint32_t)chance(4);
		head->sequence = (uint32_t)chance(4);
		break;
	case 3:
		head->type = (uint32_t)chance(5);
		break;
	case 4:
		memmove(image->bytes + at, image->bytes + other,
			image->count - (at > other ? at : other) < 256 ? 64 : 256);
		break;
	case 5:
		head->used = chance(2) ? head->used - chance(head->used + 1) : value;
		break;
	default:
		if (word + 8 <= image->count)
			memcpy(image->bytes + word, &value, chance(3) ? 4 : 1 + chance(8));
	}
}

/* Lets the crcs be right again, so that the change is believed. */
static void believe(struct image *image)
{
	for (size_t i = 0; i < image->block_count; i++) {
		struct trace_block *head = (void *)(image->bytes + image->blocks[i]);
		size_t room = image->count - image->blocks[i] - sizeof *head;

		head->head_crc = trace_crc32c(0, head, offsetof(struct trace_block, head_crc));
		if (head->type != TRACE_SLOT && head->used <= room)
			head->crc = trace_block_crc(head, head + 1);
	}
}

START_TEST(twenty_thousand_random_files_are_survived)
{
	struct image image = { .bytes = NULL };
	const unsigned char *original;
	size_t room;

	seed = UINT64_C(88172645463325252) + (uint64_t)_i;
	build_small(_i % 2);
	original = builder_bytes(builder, &image.count);
	room = (image.count + 63) / 64 * 64;
	image.bytes = aligned_alloc(64, room);
	ck_assert_ptr_nonnull(image.bytes);
	memcpy(image.bytes, original, image.count);
	find_blocks(&image);
	for (int i = 0; i < 5000; i++) {
		size_t bytes = image.count;

		memcpy(image.bytes, original, image.count);
		for (uint64_t changes = 1 + chance(6); changes; changes--)
			change_block(&image);
		if (chance(4))
			believe(&image);
		if (chance(8) == 0)
			memcpy(image.bytes + 8 * chance(36), &(uint64_t){ interesting() }, 8);
		if (chance(8) == 0)
			bytes = chance(image.count);
		require(ftruncate(file, (off_t)bytes) == 0);
		require(pwrite(file, image.bytes, bytes, 0) == (ssize_t)bytes);
		read_file(bytes);
	}
	free(image.bytes);
}
END_TEST

static const char *refused_with(size_t at, const void *bytes, size_t count)
{
	size_t size;
	unsigned char *copy;
	const char *sentence;
	const unsigned char *whole;

	build_push(builder, 1, 1, "a");
	whole = builder_bytes(builder, &size);
	copy = malloc(size);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, whole, size);
	memcpy(copy + at, bytes, count);
	sentence = refusal_of(copy, size);
	free(copy);
	ck_assert_ptr_nonnull(sentence);
	return sentence;
}

START_TEST(what_is_no_trace_is_refused_with_what_to_do)
{
	size_t size;
	const unsigned char *bytes;

	ck_assert_ptr_nonnull(strstr(refusal_of("", 0), "the file is empty"));
	ck_assert_ptr_nonnull(strstr(refusal_of("\177ELF", 4), "not a trace of pperf"));
	ck_assert_ptr_nonnull(strstr(refused_with(0, "\177ELF", 4), "not a trace of pperf"));
	ck_assert_ptr_nonnull(strstr(refused_with(5, "\n\032", 2), "text mode"));
	ck_assert_ptr_nonnull(strstr(refused_with(5, "\r\r\n", 3), "text mode"));
	ck_assert_ptr_nonnull(strstr(refused_with(8, "\1\0\0\0", 4),
		"format version 1, but this pperf-report reads version 2"));
	ck_assert_ptr_nonnull(strstr(refused_with(12, "\1\2\3\4", 4), "other byte order"));
	ck_assert_ptr_nonnull(strstr(refused_with(12, "\1\1\1\1", 4), "damaged"));
	ck_assert_ptr_nonnull(strstr(refused_with(16, "\0\0\0\0", 4), "offset 16"));
	ck_assert_ptr_nonnull(strstr(refused_with(20, "\7\0\0\0", 4), "clock kind 7"));
	bytes = builder_bytes(builder, &size);
	ck_assert_ptr_nonnull(
		strstr(refusal_of(bytes, 200), "offset 200: the file ends within the header"));
}
END_TEST

START_TEST(a_trace_through_a_text_mode_transfer_is_recognised)
{
	size_t size, used = 0;
	const unsigned char *bytes;
	unsigned char *changed;

	build_small(false);
	bytes = builder_bytes(builder, &size);
	changed = malloc(2 * size);
	ck_assert_ptr_nonnull(changed);
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != '\r' || bytes[i + 1] != '\n')
			changed[used++] = bytes[i];
	ck_assert_ptr_nonnull(strstr(refusal_of(changed, used), "text mode"));
	used = 0;
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '\n')
			changed[used++] = '\r';
		changed[used++] = bytes[i];
	}
	ck_assert_ptr_nonnull(strstr(refusal_of(changed, used), "text mode"));
	free(changed);
}
END_TEST

START_TEST(a_huge_hole_is_jumped_over)
{
	size_t bytes;

	build_small(true);
	bytes = put_file();
	ck_assert_int_eq(ftruncate(file, (off_t)1 << 40), 0);
	ck_assert(read_file(bytes).complete);
}
END_TEST

START_TEST(a_small_file_cannot_ask_for_much_memory)
{
	const struct rlimit limit = { 256u << 20, 256u << 20 };
	struct trace_name *name = build_dictionary(builder, TRACE_NAME, sizeof *name);
	struct trace_stack *stack;

	name->name = UINT32_MAX;
	name->bytes = 0;
	stack = build_dictionary(builder, TRACE_STACK, sizeof *stack);
	stack->stack = UINT32_MAX;
	for (uint32_t i = 0; i < 1000; i++)
		build_push_node(builder, 1u << 31 | i, 1, UINT32_MAX - i);
	put_file();
	/* ASan's own memory would not fit. */
#ifndef SANITIZED
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
#else
	(void)limit;
#endif
	ck_assert_uint_gt(read_file(1u << 20).records, 1000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace damage");
	TCase *cases = tcase_create("damage");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_set_timeout(cases, 300);
	tcase_add_test(cases, a_file_cut_anywhere_is_read_up_to_there);
	tcase_add_test(cases, every_byte_may_be_changed_and_in_sealed_blocks_that_is_noticed);
	tcase_add_test(cases, every_byte_of_slots_may_be_changed);
	tcase_add_loop_test(cases, twenty_thousand_random_files_are_survived, 0, 4);
	tcase_add_test(cases, what_is_no_trace_is_refused_with_what_to_do);
	tcase_add_test(cases, a_trace_through_a_text_mode_transfer_is_recognised);
	tcase_add_test(cases, a_huge_hole_is_jumped_over);
	tcase_add_test(cases, a_small_file_cannot_ask_for_much_memory);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
