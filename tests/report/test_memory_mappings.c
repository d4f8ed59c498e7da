/* SPDX-License-Identifier: MIT
 * test_memory_mappings.c: physical memory is free when nothing refers to it and nothing of it is
 * mapped; adjacent mappings of a reserved range are one segment of the map of device memory.
 */
#include "report/analysis/memory_segments.h"
#include "report/profile/memory_mappings.h"
#include "tests/support/profile_fixture.h"
#include "tests/support/run_report.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define PIECE UINT64_C(0x200000)
#define BASE UINT64_C(0x700000000000)

static struct trace_mapping *build_mapping(struct trace_builder *builder, uint64_t at,
	enum trace_mapping_action action, uint64_t address, uint64_t bytes, uint64_t handle)
{
	struct trace_mapping *record = build_record(builder, 1, TRACE_MAPPING, sizeof *record, at);

	record->action = action;
	record->address = address;
	record->bytes = bytes;
	record->handle = handle;
	return record;
}

static void create(struct trace_builder *builder, uint64_t at, uint64_t handle, uint64_t bytes)
{
	build_memory(builder, 1, at, TRACE_ALLOC, handle, bytes, TRACE_MEMORY_DEVICE, 0)->flags =
		TRACE_MEMORY_MAPPED;
}

static void release(struct trace_builder *builder, uint64_t at, uint64_t handle)
{
	build_memory(builder, 1, at, TRACE_FREE, handle, 0, TRACE_MEMORY_UNKNOWN, 0)->flags =
		TRACE_MEMORY_MAPPED;
}

/* What is held after all records of the builder, which is freed. */
static uint64_t held_after(struct trace_builder *builder, struct memory_counts *counts)
{
	struct profile_fixture fixture = fixture_of(builder, NULL);
	const uint64_t held = (uint64_t)fixture.profile->totals.reserved_now;

	*counts = fixture.profile->memory->counts;
	fixture_check(&fixture);
	fixture_free(&fixture);
	return held;
}

START_TEST(memory_is_free_when_it_is_released_and_unmapped_in_either_order)
{
	static const uint64_t expected[] = { 4 * PIECE + 100, PIECE + 100, 100, 100 };
	struct trace_builder *builder = builder_new();
	struct memory_counts counts;

	build_mapping(builder, 1, TRACE_MAPPING_RESERVE, BASE, 8 * PIECE, 0);
	create(builder, 10, 0x111, PIECE);
	build_mapping(builder, 11, TRACE_MAPPING_MAP, BASE, PIECE, 0x111);
	create(builder, 20, 0x222, 3 * PIECE);
	build_mapping(builder, 21, TRACE_MAPPING_MAP, BASE + PIECE, 3 * PIECE, 0x222);
	create(builder, 30, 0x333, 100);
	release(builder, 40, 0x111); /* still mapped */
	if (_i > 0) {
		build_mapping(builder, 50, TRACE_MAPPING_UNMAP, BASE + PIECE, 3 * PIECE, 0);
		release(builder, 51, 0x222);
	}
	if (_i > 1)
		build_mapping(builder, 60, TRACE_MAPPING_UNMAP, BASE, PIECE, 0);
	if (_i > 2)
		build_mapping(builder, 70, TRACE_MAPPING_UNMAP, BASE, PIECE, 0)->call.result = 1;
	ck_assert_uint_eq(held_after(builder, &counts), expected[_i]);
	ck_assert_uint_eq(counts.unknown_frees + counts.replaced, 0);
}
END_TEST

START_TEST(each_reference_is_released_by_itself)
{
	struct trace_builder *builder = builder_new();
	struct memory_counts counts;

	/* as ncclMemFree does it */
	build_mapping(builder, 1, TRACE_MAPPING_RESERVE, BASE, 8 * PIECE, 0);
	create(builder, 10, 0x111, PIECE);
	build_mapping(builder, 11, TRACE_MAPPING_MAP, BASE, PIECE, 0x111);
	build_mapping(builder, 20, TRACE_MAPPING_RETAIN, BASE + 5, 0, 0x111);
	release(builder, 21, 0x111);
	build_mapping(builder, 22, TRACE_MAPPING_UNMAP, BASE, PIECE, 0);
	if (_i)
		release(builder, 23, 0x111);
	build_mapping(builder, 24, TRACE_MAPPING_UNRESERVE, BASE, 8 * PIECE, 0);
	ck_assert_uint_eq(held_after(builder, &counts), _i ? 0 : PIECE);
	ck_assert_uint_eq(counts.unknown_frees, 0);
}
END_TEST

START_TEST(imported_memory_has_no_bytes_and_its_release_is_known)
{
	struct trace_builder *builder = builder_new();
	struct memory_counts counts;

	build_mapping(builder, 1, TRACE_MAPPING_IMPORT, 0, 0, 0x111);
	build_mapping(builder, 2, TRACE_MAPPING_MAP, BASE, PIECE, 0x111);
	build_mapping(builder, 3, TRACE_MAPPING_UNMAP, BASE, PIECE, 0);
	release(builder, 4, 0x111);
	ck_assert_uint_eq(held_after(builder, &counts), 0);
	ck_assert_uint_eq(counts.unknown_frees, 0);
	builder = builder_new();
	release(builder, 4, 0x111);
	ck_assert_uint_eq(held_after(builder, &counts), 0);
	ck_assert_uint_eq(counts.unknown_frees, 1);
}
END_TEST

START_TEST(a_handle_that_is_used_again_is_other_memory)
{
	struct trace_builder *builder = builder_new();
	struct memory_counts counts;

	create(builder, 10, 0x111, 1000);
	build_mapping(builder, 11, TRACE_MAPPING_MAP, BASE, PIECE, 0x111);
	release(builder, 12, 0x111);
	create(builder, 20, 0x111, 30); /* the first memory is still mapped */
	ck_assert_uint_eq(held_after(builder, &counts), 1030);
	ck_assert_uint_eq(counts.replaced, 0);
	builder = builder_new();
	create(builder, 10, 0x111, 1000);
	create(builder, 20, 0x111, 30); /* the release was not seen */
	ck_assert_uint_eq(held_after(builder, &counts), 30);
	ck_assert_uint_eq(counts.replaced, 1);
}
END_TEST

/* ---- segments ---- */

#define SLOTS 48u /* pieces of two adjacent reserved ranges */
#define FIRST_RANGE 20u

static struct memory_segments *map;
static struct {
	uint64_t key[SLOTS]; /* of the memory that is mapped there; 0: none */
	bool block[SLOTS];   /* a block of half a piece */
	uint64_t last_key;
	uint64_t spare[8], spare_count; /* memory that is not mapped */
} space;
static uint64_t noise;

static uint64_t draw(uint64_t limit)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return (noise >> 20) % limit;
}

static void change(uint32_t kind, const void *record, const struct memory_change *what)
{
	static uint64_t now_ns;
	const struct trace_event event = { .kind = kind, .record = record, .time_ns = ++now_ns };

	memory_segments_change(map, &(struct observed_memory){ .event = &event, .change = what });
}

static void change_physical(uint64_t key, bool allocates)
{
	const struct trace_memory record = { .memory_kind = TRACE_MEMORY_DEVICE };

	change(allocates ? TRACE_ALLOC : TRACE_FREE, &record,
		&(struct memory_change){ .address = key,
			.freed_address = key,
			.kind = TRACE_MEMORY_DEVICE,
			.freed_kind = TRACE_MEMORY_DEVICE,
			.allocated_bytes = allocates ? PIECE : 0,
			.freed_bytes = allocates ? 0 : PIECE,
			.known = true });
}

static void change_mapping(uint32_t slot, uint64_t key, bool ends)
{
	const struct trace_event event = { .kind = TRACE_MAPPING };
	const struct memory_mapping mapping = { .address = BASE + slot * PIECE,
		.bytes = PIECE,
		.key = key,
		.reserved = slot < FIRST_RANGE ? BASE : BASE + FIRST_RANGE * PIECE };

	memory_segments_map(map,
		&(struct observed_mapping){ .event = &event, .mapping = &mapping, .ends = ends });
}

static void change_block(uint32_t slot)
{
	const struct trace_tensor record = { .device = 0 };
	const uint64_t address = BASE + slot * PIECE;
	const bool frees = space.block[slot];

	space.block[slot] = !frees;
	change(TRACE_TENSOR, &record,
		&(struct memory_change){ .address = address,
			.freed_address = address,
			.kind = MEMORY_TENSOR,
			.freed_kind = MEMORY_TENSOR,
			.allocated_bytes = frees ? 0 : PIECE / 2,
			.freed_bytes = frees ? PIECE / 2 : 0,
			.known = true });
}

static uint64_t any_memory(void)
{
	if (space.spare_count)
		return space.spare[--space.spare_count];
	change_physical(PIECE | PHYSICAL_KEY | ++space.last_key, true);
	return PIECE | PHYSICAL_KEY | space.last_key;
}

static void change_slot(uint32_t slot)
{
	const uint64_t key = space.key[slot];

	if (!key) {
		space.key[slot] = any_memory();
		change_mapping(slot, space.key[slot], false);
	} else if (draw(2)) {
		change_block(slot);
	} else if (!space.block[slot]) {
		change_mapping(slot, key, true);
		space.key[slot] = 0;
		if (space.spare_count < 8 && draw(2))
			space.spare[space.spare_count++] = key;
		else
			change_physical(key, false);
	}
}

struct found {
	uint64_t begins[SLOTS], bytes[SLOTS], segments;
	uint64_t unmapped, blocks, in_blocks, in_gaps, unknown;
};

static void on_segment(void *context, const struct segment_parts *parts)
{
	struct found *found = context;

	if (parts->segment->is_unmapped) {
		found->unmapped += parts->segment->bytes;
		return;
	}
	ck_assert_uint_lt(found->segments, SLOTS);
	found->begins[found->segments] = parts->segment->address;
	found->bytes[found->segments++] = parts->segment->bytes;
	found->in_blocks += parts->in_blocks;
	found->in_gaps += parts->in_gaps;
	found->unknown += parts->has_blocks_known ? 0 : parts->segment->bytes;
	ck_assert_uint_eq(parts->overlapped, 0);
	if (parts->has_blocks_known) {
		ck_assert_uint_eq(parts->blocks, parts->segment->blocks);
		ck_assert_uint_eq(parts->in_blocks, parts->segment->occupied);
	} else {
		ck_assert_uint_eq(parts->segment->blocks, 0);
	}
}

static void compare_with_space(void)
{
	struct found found = { .segments = 0 };
	uint64_t segments = 0, mapped = 0, occupied = 0;

	memory_segments_visit(
		map, 0, &(struct segment_visitor){ .context = &found, .segment = on_segment });
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (!space.key[i])
			continue;
		if (i == 0 || i == FIRST_RANGE || !space.key[i - 1])
			ck_assert_uint_eq(found.begins[segments++], BASE + i * PIECE);
		mapped += PIECE;
		occupied += space.block[i] ? PIECE / 2 : 0;
	}
	ck_assert_uint_eq(found.segments, segments);
	for (uint32_t i = 0; i < segments; i++)
		mapped -= found.bytes[i];
	ck_assert_uint_eq(mapped, 0);
	ck_assert_uint_eq(found.unmapped, space.spare_count * PIECE);
	ck_assert_uint_eq(found.in_blocks, occupied);
	if (memory_segments_device(map, 0))
		ck_assert_uint_eq(memory_segments_device(map, 0)->held,
			found.unmapped + found.in_blocks + found.in_gaps + found.unknown);
}

START_TEST(segments_are_the_runs_of_mapped_memory_of_each_reserved_range)
{
	map = memory_segments_new();
	memset(&space, 0, sizeof space);
	noise = (uint64_t)_i + 1;
	for (uint32_t i = 0; i < 20000; i++) {
		change_slot((uint32_t)draw(SLOTS));
		compare_with_space();
	}
	memory_segments_free(map);
}
END_TEST

START_TEST(memory_at_two_addresses_counts_once)
{
	struct found found = { .segments = 0 };

	map = memory_segments_new();
	change_physical(PHYSICAL_KEY | 1, true);
	change_mapping(0, PHYSICAL_KEY | 1, false);
	change_mapping(2, PHYSICAL_KEY | 1, false);
	change_mapping(4, 0, false); /* of memory that is not in the trace */
	memory_segments_visit(
		map, 0, &(struct segment_visitor){ .context = &found, .segment = on_segment });
	ck_assert_uint_eq(found.segments, 1);
	ck_assert_uint_eq(found.bytes[0], PIECE);
	change_mapping(2, PHYSICAL_KEY | 1, true);
	change_mapping(0, PHYSICAL_KEY | 1, true);
	change_mapping(4, 0, true);
	change_physical(PHYSICAL_KEY | 1, false);
	ck_assert_uint_eq(memory_segments_device(map, 0)->held, 0);
	memory_segments_free(map);
}
END_TEST

START_TEST(mappings_show_in_dump_and_in_the_map)
{
	struct trace_builder *builder = builder_new();
	struct report_run run;

	build_mapping(builder, 1, TRACE_MAPPING_RESERVE, BASE, 8 * PIECE, 0)->call.device =
		UINT32_MAX;
	create(builder, 10, 0x111, PIECE);
	create(builder, 12, 0x222, PIECE);
	build_mapping(builder, 20, TRACE_MAPPING_MAP, BASE, PIECE, 0x111);
	build_tensor(builder, 1, 30, BASE, 512, 512, 2 * PIECE);
	run = run_report(builder, "dump trace.bin -f json");

	ck_assert_ptr_nonnull(strstr(run.out,
		"\"kind\":\"mapping\",\"bytes\":16777216,\"address\":"
		"\"0x700000000000\",\"device\":null,\"action\":\"reserve\",\"result\":0,"));
	ck_assert_ptr_nonnull(strstr(run.out, "\"bytes\":2097152,\"address\":\"0x700000000000\","
					      "\"handle\":\"0x111\",\"device\":0,\"action\":"
					      "\"map\","));
	run = run_report(NULL, "memory trace.bin --map --at end -f json");
	ck_assert_str_eq(run.err, "");
	ck_assert_ptr_nonnull(strstr(run.out, "\"name\": \"segment 0x700000000000\""));
	ck_assert_ptr_nonnull(strstr(run.out, "\"name\": \"not mapped\""));
	ck_assert_ptr_nonnull(strstr(run.out, "\"free_inside_bytes\": 2096640"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory mappings");
	TCase *tests = tcase_create("mappings");
	TCase *screens = tcase_create("screens");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(
		tests, memory_is_free_when_it_is_released_and_unmapped_in_either_order, 0, 4);
	tcase_add_loop_test(tests, each_reference_is_released_by_itself, 0, 2);
	tcase_add_test(tests, imported_memory_has_no_bytes_and_its_release_is_known);
	tcase_add_test(tests, a_handle_that_is_used_again_is_other_memory);
	tcase_add_loop_test(
		tests, segments_are_the_runs_of_mapped_memory_of_each_reserved_range, 0, 3);
	tcase_add_test(tests, memory_at_two_addresses_counts_once);
	tcase_add_checked_fixture(screens, run_report_setup, run_report_teardown);
	tcase_add_test(screens, mappings_show_in_dump_and_in_the_map);
	suite_add_tcase(suite, tests);
	suite_add_tcase(suite, screens);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
