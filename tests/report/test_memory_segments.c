/* SPDX-License-Identifier: MIT
 * test_memory_segments.c: the map of device memory says what an array of all addresses says, and
 * its sums hold to the byte, also where records are missing or contradict each other.
 */
#include "report/analysis/memory_segments.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define UNIT 512u
#define UNITS 4096u /* of the small address space */
#define BASE UINT64_C(0x700000000000)

static struct memory_segments *map;
static uint64_t now_ns;

static uint64_t noise;

static uint64_t draw(uint64_t limit)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return (noise >> 20) % limit;
}

static void change(uint32_t kind, const void *record, const struct memory_change *what)
{
	const struct trace_event event = { .kind = kind, .record = record, .time_ns = ++now_ns };

	memory_segments_change(map, &(struct observed_memory){ .event = &event, .change = what });
}

static void take_segment(uint64_t address, uint64_t bytes, uint32_t device, uint32_t flags)
{
	const struct trace_memory record = {
		.flags = flags, .address = address, .memory_kind = TRACE_MEMORY_DEVICE
	};

	change(TRACE_ALLOC, &record,
		&(struct memory_change){ .address = address,
			.kind = TRACE_MEMORY_DEVICE,
			.device = device,
			.allocated_bytes = bytes,
			.known = true });
}

static void free_segment(uint64_t address, uint64_t bytes, uint32_t device)
{
	const struct trace_memory record = { .address = address };

	change(TRACE_FREE, &record,
		&(struct memory_change){ .address = address,
			.freed_address = address,
			.freed_kind = TRACE_MEMORY_DEVICE,
			.freed_device = device,
			.freed_bytes = bytes,
			.known = true });
}

static void take_block(uint64_t address, uint64_t bytes, uint32_t device)
{
	const struct trace_tensor record = { .device = device };

	change(TRACE_TENSOR, &record,
		&(struct memory_change){ .address = address,
			.kind = MEMORY_TENSOR,
			.device = device,
			.allocated_bytes = bytes,
			.known = true });
}

static void free_block(uint64_t address, uint64_t bytes, uint32_t device)
{
	const struct trace_tensor record = { .device = device };

	change(TRACE_TENSOR, &record,
		&(struct memory_change){ .address = address,
			.freed_address = address,
			.freed_kind = MEMORY_TENSOR,
			.freed_device = device,
			.freed_bytes = bytes,
			.known = true });
}

/* What a visit of one device found. */
struct found {
	uint64_t segments, bytes, in_blocks, in_gaps, overlapped, unknown, empty;
	uint64_t blocks, gaps, largest, strays, stray_bytes;
	uint64_t last_address;
	uint8_t used[UNITS], free[UNITS]; /* of the small address space */
};

static void paint(uint8_t *units, uint64_t address, uint64_t bytes)
{
	for (uint64_t at = address; at < address + bytes; at += UNIT)
		if (at >= BASE && (at - BASE) / UNIT < UNITS)
			units[(at - BASE) / UNIT]++;
}

static void on_block(void *context, const struct memory_block *block, uint64_t bytes)
{
	struct found *found = context;

	found->blocks++;
	if (bytes == block->bytes && bytes <= UNITS * UNIT)
		paint(found->used, block->address, bytes);
}

static void on_gap(void *context, uint64_t address, uint64_t bytes)
{
	struct found *found = context;

	ck_assert_uint_gt(bytes, 0);
	ck_assert_uint_ge(address, found->last_address);
	found->last_address = address;
	found->gaps++;
	if (bytes > found->largest)
		found->largest = bytes;
	if (bytes <= UNITS * UNIT)
		paint(found->free, address, bytes);
}

static void on_segment(void *context, const struct segment_parts *parts)
{
	struct found *found = context;

	found->segments++;
	found->bytes += parts->segment->bytes;
	if (!parts->has_blocks_known) {
		found->unknown += parts->segment->bytes;
		ck_assert_uint_eq(parts->in_blocks + parts->in_gaps + parts->blocks, 0);
		return;
	}
	ck_assert_uint_eq(
		parts->in_blocks + parts->in_gaps + parts->overlapped, parts->segment->bytes);
	found->in_blocks += parts->in_blocks;
	found->in_gaps += parts->in_gaps;
	found->overlapped += parts->overlapped;
	found->empty += parts->blocks == 0;
}

static void on_stray(void *context, const struct memory_block *block)
{
	struct found *found = context;

	found->strays++;
	found->stray_bytes += block->bytes;
}

static struct found visit(uint32_t device)
{
	struct found found = { .segments = 0 };

	memory_segments_visit(map, device,
		&(struct segment_visitor){ .context = &found,
			.block = on_block,
			.gap = on_gap,
			.segment = on_segment,
			.stray = on_stray });
	return found;
}

static void begin(void)
{
	map = memory_segments_new();
	now_ns = 0;
}

static void end(void)
{
	memory_segments_free(map);
}

/* ---- a consistent program ---- */

/* The reference: what each unit of the small address space is, by brute force. */
static struct {
	uint16_t segment[UNITS]; /* number of units from here; 0: none begins here */
	uint16_t block[UNITS];
	uint8_t reserved[UNITS], occupied[UNITS];
} space;

static bool is_clear(const uint8_t *units, uint32_t first, uint32_t count, uint8_t value)
{
	for (uint32_t i = 0; i < count; i++)
		if (first + i >= UNITS || units[first + i] != value)
			return false;
	return true;
}

static void change_segment_at(uint32_t unit)
{
	const uint32_t count = 1 + (uint32_t)draw(200);

	if (space.segment[unit] && is_clear(space.occupied, unit, space.segment[unit], 0)) {
		free_segment(BASE + unit * UNIT, (uint64_t)space.segment[unit] * UNIT, 0);
		memset(&space.reserved[unit], 0, space.segment[unit]);
		space.segment[unit] = 0;
	} else if (is_clear(space.reserved, unit, count, 0)) {
		take_segment(BASE + unit * UNIT, (uint64_t)count * UNIT, 0, 0);
		memset(&space.reserved[unit], 1, count);
		space.segment[unit] = (uint16_t)count;
	}
}

/* Whether a segment begins inside the units, where a block cannot continue. */
static bool crosses_segment(uint32_t unit, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (space.segment[unit + i])
			return true;
	return false;
}

static void change_block_at(uint32_t unit)
{
	const uint32_t count = 1 + (uint32_t)draw(20);

	if (space.block[unit]) {
		free_block(BASE + unit * UNIT, (uint64_t)space.block[unit] * UNIT, 0);
		memset(&space.occupied[unit], 0, space.block[unit]);
		space.block[unit] = 0;
	} else if (is_clear(space.reserved, unit, count, 1) &&
		   is_clear(space.occupied, unit, count, 0) && !crosses_segment(unit, count)) {
		take_block(BASE + unit * UNIT, (uint64_t)count * UNIT, 0);
		memset(&space.occupied[unit], 1, count);
		space.block[unit] = (uint16_t)count;
	}
}

/* Every unit of a segment whose blocks are known is in exactly one block or gap. */
static void compare_with_space(void)
{
	const struct found found = visit(0);
	const struct memory_device *device = memory_segments_device(map, 0);
	uint64_t reserved = 0, occupied = 0, blocks = 0;

	for (uint32_t i = 0; i < UNITS; i++) {
		reserved += space.reserved[i];
		occupied += space.occupied[i];
		blocks += space.block[i] > 0;
		ck_assert_uint_eq(found.used[i], space.occupied[i]);
		ck_assert_uint_le(found.used[i] + found.free[i], space.reserved[i]);
	}
	ck_assert_uint_eq(found.bytes, reserved * UNIT);
	ck_assert_uint_eq(found.in_blocks, occupied * UNIT);
	ck_assert_uint_eq(found.blocks, blocks);
	ck_assert_uint_eq(found.in_blocks + found.in_gaps + found.unknown, found.bytes);
	ck_assert_uint_eq(found.overlapped + found.strays, 0);
	if (device) {
		ck_assert_uint_eq(device->held, found.bytes);
		ck_assert_uint_eq(device->tensors, found.in_blocks);
	}
}

START_TEST(the_map_is_that_of_an_array_of_all_addresses)
{
	begin();
	noise = (uint64_t)_i + 1;
	memset(&space, 0, sizeof space);
	for (uint32_t i = 0; i < 40000; i++) {
		const uint32_t unit = (uint32_t)draw(UNITS);

		if (draw(20) == 0)
			change_segment_at(unit);
		else
			change_block_at(unit);
		if (i % 500 == 0)
			compare_with_space();
	}
	compare_with_space();
	end();
}
END_TEST

/* ---- records that are missing, or contradict each other ---- */

START_TEST(sums_hold_whatever_the_records_say)
{
	static const uint64_t sizes[] = { 0, 1, UNIT, 100 * UNIT, UINT64_C(1) << 62, UINT64_MAX };
	uint64_t held[64][2] = { { 0 } }, tensors[64][2] = { { 0 } }; /* address, bytes */

	begin();
	noise = 99 + (uint64_t)_i;
	for (uint32_t i = 0; i < 20000; i++) {
		const uint64_t address = 1 +
					 (draw(4) ? BASE + draw(UNITS) * UNIT : draw(UINT64_MAX));
		const uint64_t bytes = draw(3) ? sizes[draw(6)] : draw(64 * UNIT) + 1;
		const size_t slot = draw(64);
		uint64_t(*of)[2] = draw(3) ? tensors : held;
		struct found found;

		/* An address that is held is freed first, as memory_owners does. */
		for (size_t j = 0; j < 64; j++)
			if (of[j][1] && (j == slot || of[j][0] == address)) {
				(of == held ? free_segment : free_block)(of[j][0], of[j][1], 0);
				of[j][1] = 0;
			}
		if (!bytes)
			continue;
		of[slot][0] = address;
		of[slot][1] = bytes;
		if (of == held)
			take_segment(address, bytes, 0, draw(8) ? 0 : TRACE_MEMORY_MAPPED);
		else
			take_block(address, bytes, 0);
		if (i % 20)
			continue;
		found = visit(0); /* checks each segment */
		ck_assert_uint_eq(found.bytes, memory_segments_device(map, 0)->held);
		ck_assert_uint_eq(found.bytes,
			found.in_blocks + found.in_gaps + found.overlapped + found.unknown);
		ck_assert_uint_le(found.blocks + found.strays, 128);
	}
	end();
}
END_TEST

START_TEST(a_segment_without_tensors_is_not_called_empty)
{
	struct found found;

	begin();
	take_segment(BASE, 100 * UNIT, 0, 0);
	found = visit(0);
	ck_assert_uint_eq(found.unknown, 100 * UNIT);
	ck_assert_uint_eq(found.gaps + found.empty, 0);
	take_block(BASE + UNIT, UNIT, 0);
	found = visit(0);
	ck_assert_uint_eq(found.unknown, 0);
	ck_assert_uint_eq(found.gaps, 2);
	ck_assert_uint_eq(found.largest, 98 * UNIT);
	free_block(BASE + UNIT, UNIT, 0);
	found = visit(0);
	ck_assert_uint_eq(found.empty, 1);
	ck_assert_uint_eq(found.in_gaps, 100 * UNIT);
	end();
}
END_TEST

static struct memory_segment the_segment;

static void keep_segment(void *context, const struct segment_parts *parts)
{
	(void)context;
	the_segment = *parts->segment;
}

START_TEST(a_segment_knows_how_full_it_was_and_since_when_it_is_empty)
{
	begin();
	take_segment(BASE, 10 * UNIT, 0, 0);  /* at 1 */
	take_block(BASE, 4 * UNIT, 0);        /* 2 */
	take_block(BASE + 4 * UNIT, UNIT, 0); /* 3 */
	free_block(BASE, 4 * UNIT, 0);        /* 4 */
	free_block(BASE + 4 * UNIT, UNIT, 0); /* 5 */
	memory_segments_visit(map, 0, &(struct segment_visitor){ .segment = keep_segment });
	ck_assert_uint_eq(the_segment.since_ns, 1);
	ck_assert_uint_eq(the_segment.emptied_ns, 5);
	ck_assert_uint_eq(the_segment.occupied_most, 5 * UNIT);
	ck_assert_uint_eq(the_segment.ever, 2);
	ck_assert(the_segment.byte_ns == (4 + 5 + 1) * UNIT);
	end();
}
END_TEST

START_TEST(devices_and_handles_are_apart)
{
	struct found found;

	begin();
	take_segment(BASE, 10 * UNIT, 0, 0);
	take_segment(BASE + 10 * UNIT, 10 * UNIT, 1, 0);
	take_segment(PHYSICAL_KEY | 1, 20 * UNIT, 1, TRACE_MEMORY_MAPPED); /* not mapped */
	take_block(BASE, UNIT, 0);
	take_block(BASE + 10 * UNIT, 2 * UNIT, 1);
	take_block(BASE + 100 * UNIT, 3 * UNIT, 1); /* in no segment */
	found = visit(0);
	ck_assert_uint_eq(found.bytes, 10 * UNIT);
	ck_assert_uint_eq(found.in_blocks, UNIT);
	found = visit(1);
	ck_assert_uint_eq(found.bytes, 30 * UNIT);
	ck_assert_uint_eq(found.unknown, 20 * UNIT);
	ck_assert_uint_eq(found.in_blocks, 2 * UNIT);
	ck_assert_uint_eq(found.strays, 1);
	ck_assert_uint_eq(found.stray_bytes, 3 * UNIT);
	ck_assert_uint_eq(memory_segments_device(map, 1)->tensors, 5 * UNIT);
	ck_assert_ptr_null(memory_segments_device(map, 2));
	end();
}
END_TEST

START_TEST(when_recording_begins_again_the_tensors_are_unknown)
{
	const struct trace_window window = { .edge = TRACE_WINDOW_BEGINS };
	const struct trace_event event = { .kind = TRACE_WINDOW, .record = &window };
	struct found found;

	begin();
	take_segment(BASE, 10 * UNIT, 0, 0);
	take_block(BASE, UNIT, 0);
	memory_segments_mark(map, &event);
	found = visit(0);
	ck_assert_uint_eq(found.unknown, 10 * UNIT);
	ck_assert_uint_eq(memory_segments_device(map, 0)->tensors, 0);
	take_block(BASE + UNIT, UNIT, 0);
	found = visit(0);
	ck_assert_uint_eq(found.in_blocks, UNIT);
	end();
}
END_TEST

START_TEST(memory_follows_what_is_held_at_the_same_time)
{
	size_t bytes;

	begin();
	take_segment(BASE, UNITS * UNIT, 0, 0);
	for (uint32_t i = 0; i < UNITS; i++)
		take_block(BASE + i * UNIT, UNIT, 0);
	bytes = memory_segments_bytes(map);
	ck_assert_uint_le(bytes, UNITS * 120);
	for (uint32_t round = 0; round < 50; round++)
		for (uint32_t i = 0; i < UNITS; i++) {
			const uint64_t address = BASE + i * 37 % UNITS * UNIT;

			free_block(address, UNIT, 0);
			take_block(address, UNIT, 0);
		}
	ck_assert_uint_le(memory_segments_bytes(map), bytes + bytes / 2);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory_segments");
	TCase *cases = tcase_create("map");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(cases, the_map_is_that_of_an_array_of_all_addresses, 0, 3);
	tcase_add_loop_test(cases, sums_hold_whatever_the_records_say, 0, 3);
	tcase_add_test(cases, a_segment_without_tensors_is_not_called_empty);
	tcase_add_test(cases, a_segment_knows_how_full_it_was_and_since_when_it_is_empty);
	tcase_add_test(cases, devices_and_handles_are_apart);
	tcase_add_test(cases, when_recording_begins_again_the_tensors_are_unknown);
	tcase_add_test(cases, memory_follows_what_is_held_at_the_same_time);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
