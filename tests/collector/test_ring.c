/* SPDX-License-Identifier: MIT
 * test_ring.c: the segments of PPERF_RING in a file that is memory here, looked at after every single
 * write, as a kill would leave it; and the table of what is held.
 */
#include "collector/file/ring.h"
#include "collector/stream/held_table.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_BYTES (4u << 20)
#define RING (1u << 20)

static unsigned char image[IMAGE_BYTES];
static uint64_t reserved = 4096, limit = IMAGE_BYTES;
static struct trace_header header;
static uint64_t present_chunks, writes;
static bool looks_at_writes;

static struct trace_header *get_header(void)
{
	return &header;
}

static uint64_t reserve(uint64_t bytes)
{
	if (reserved + bytes > limit)
		return 0;
	reserved += bytes;
	return reserved - bytes;
}

static bool allocate(uint64_t offset, uint64_t bytes)
{
	return offset + bytes <= IMAGE_BYTES;
}

/* Every byte belongs to a block, and every chunk is whole. */
static void check_image(void)
{
	struct trace_block head;

	present_chunks = 0;
	for (uint64_t at = 4096; at < reserved; at += head.extent) {
		memcpy(&head, image + at, sizeof head);
		if (!head.magic) { /* a segment that is being added */
			ck_assert_uint_eq(at + (128u << 10), reserved);
			return;
		}
		ck_assert_uint_eq(head.magic, TRACE_BLOCK_MAGIC);
		ck_assert_uint_eq(head.head_crc,
			trace_crc32c(0, &head, offsetof(struct trace_block, head_crc)));
		ck_assert(head.type == TRACE_CHUNK || head.type == TRACE_UNUSED);
		ck_assert(head.extent && head.extent % TRACE_ALIGN == 0);
		if (head.type == TRACE_UNUSED)
			continue;
		ck_assert_uint_eq(head.crc, trace_block_crc(&head, image + at + sizeof head));
		present_chunks++;
	}
}

static bool write_image(const void *bytes, size_t count, uint64_t offset)
{
	ck_assert_uint_le(offset + count, reserved);
	memcpy(image + offset, bytes, count);
	writes++;
	if (looks_at_writes)
		check_image();
	return true;
}

/* Writes a chunk of random length at the time `stamp`. */
static bool write_chunk(uint64_t stamp)
{
	static unsigned char payload[100000];
	enum trace_loss reason;
	struct trace_block head = { .magic = TRACE_BLOCK_MAGIC, .type = TRACE_CHUNK };

	head.used = (uint64_t)rand() % (rand() % 4 ? 20000 : sizeof payload) / 8 * 8;
	memset(payload, (int)stamp, (size_t)head.used);
	head.reserved = (uint32_t)(head.used / 8);
	head.extent = (sizeof head + head.used + TRACE_ALIGN - 1) / TRACE_ALIGN * TRACE_ALIGN;
	head.stream = 1;
	head.base_stamp = stamp;
	head.head_crc = trace_crc32c(0, &head, offsetof(struct trace_block, head_crc));
	head.crc = trace_block_crc(&head, payload);
	return ring_write(&head, payload, stamp, &reason);
}

static void setup_ring(void)
{
	const struct ring_file access = { reserve, allocate, write_image, get_header };

	srand(8);
	ck_assert(ring_setup(RING, &access));
}

START_TEST(each_write_leaves_whole_blocks)
{
	setup_ring();
	looks_at_writes = true;
	for (uint64_t i = 1; i <= 150; i++) {
		ck_assert(write_chunk(i));
		ck_assert_uint_eq(present_chunks + header.ring.chunks, i);
	}
	ck_assert_uint_gt(header.ring.chunks, 60);
	ck_assert_uint_eq(reserved, 4096 + RING);
	ck_assert_uint_gt(writes, 600);
}
END_TEST

START_TEST(the_window_begins_where_all_was_restated)
{
	uint64_t restated = 0;

	setup_ring();
	for (uint64_t i = 1; i <= 400; i++) {
		ck_assert(write_chunk(10 * i));
		if (ring_wants_restatement())
			ring_note_restated(restated = 10 * i + 5, 1000);
		ck_assert_uint_le(header.ring.window_stamp, restated);
		ck_assert(!header.ring.chunks ||
			  header.ring.window_stamp > header.ring.last_overwritten);
		ck_assert(!header.ring.chunks || header.ring.window_stamp % 10 == 5);
	}
	ck_assert_uint_gt(header.ring.window_stamp, 2000);
}
END_TEST

START_TEST(a_file_that_cannot_grow_makes_it_small)
{
	setup_ring();
	limit = 4096 + 3 * (128u << 10);
	for (uint64_t i = 1; i <= 200; i++) {
		ck_assert(write_chunk(10 * i));
		if (ring_wants_restatement())
			ring_note_restated(10 * i + 5, 100);
		ck_assert(i < 100 || header.ring.window_stamp % 10 == 5);
	}
	ck_assert_uint_eq(reserved, limit);
}
END_TEST

START_TEST(a_ring_that_stops_keeps_what_it_has)
{
	uint64_t stopped = 0, overwritten;

	setup_ring();
	for (uint64_t i = 1; i <= 200; i++)
		ck_assert(write_chunk(i));
	ring_stop(TRACE_STOP_SLOW_STEP, false, 7, 3);
	for (uint64_t i = 201; i <= 400; i++)
		stopped += !write_chunk(i);
	overwritten = header.ring.chunks;
	check_image();
	ck_assert(stopped > 100 && stopped < 195); /* a quarter of the ring was written */
	ck_assert_uint_eq(present_chunks + overwritten + stopped, 400);
	ck_assert_uint_eq(header.control.stop_value, 7);
	ck_assert_uint_eq(header.control.stopped, 1);
	ring_restart();
	ck_assert(write_chunk(401));
	ck_assert(ring_wants_restatement());
	ck_assert_uint_eq(header.control.stopped, 0);
}
END_TEST

/* ---- the table ---- */

#define KEYS 500u

struct entry {
	struct held_key key;
	uint64_t value;
};

/* Compares the whole table with `values`, where 0 is no entry. */
static void compare(const struct held_table *table, const uint64_t values[2][KEYS])
{
	uint32_t found = 0, expected = 0;

	for (uint32_t space = 1; space <= 2; space++)
		for (uint64_t key = 0; key < KEYS; key++) {
			const struct entry *entry = held_table_find(table, space, key << 9);

			ck_assert_uint_eq(entry ? entry->value : 0, values[space - 1][key]);
			expected += values[space - 1][key] != 0;
		}
	for (uint32_t i = 0; i < table->slots; i++)
		found += held_table_at(table, i) != NULL;
	ck_assert_uint_eq(found, expected);
	ck_assert_uint_eq(table->count, expected);
}

START_TEST(a_table_has_what_was_added_and_not_removed)
{
	static uint64_t values[2][KEYS];
	struct held_table table = { .entry_bytes = sizeof(struct entry), .max = 600 };
	unsigned refused = 0;

	srand(9);
	for (uint64_t i = 1; i < 60000; i++) {
		const uint32_t space = 1 + (uint32_t)rand() % 2;
		const uint64_t key = (uint64_t)rand() % KEYS;
		uint64_t *value = &values[space - 1][key];
		struct entry *entry;

		if (rand() % 100 < (i / 10000 % 2 ? 20 : 70)) {
			entry = held_table_add(&table, space, key << 9);
			ck_assert(entry || table.count == 600);
			refused += !entry;
			if (entry)
				entry->value = *value = i;
		} else if (*value) {
			held_table_remove(&table, held_table_find(&table, space, key << 9));
			*value = 0;
		}
		if (i % 500 == 0)
			compare(&table, (const uint64_t(*)[KEYS])values);
	}
	ck_assert_uint_gt(refused, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring");
	TCase *ring = tcase_create("ring"), *table = tcase_create("table");
	SRunner *runner;
	int failed;

	tcase_add_test(ring, each_write_leaves_whole_blocks);
	tcase_add_test(ring, the_window_begins_where_all_was_restated);
	tcase_add_test(ring, a_file_that_cannot_grow_makes_it_small);
	tcase_add_test(ring, a_ring_that_stops_keeps_what_it_has);
	tcase_add_test(table, a_table_has_what_was_added_and_not_removed);
	suite_add_tcase(suite, ring);
	suite_add_tcase(suite, table);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
