/* SPDX-License-Identifier: MIT
 * test_memory_owners.c: levels and flows of memory, whoever takes and whoever gives back.
 */
#include "tests/support/profile_fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct node_memory *memory_of(const struct profile_fixture *fixture, const char *path)
{
	const struct node *node = fixture_node(fixture, path);

	ck_assert_msg(node != NULL, "there is no `%s`", path);
	ck_assert_ptr_nonnull(node->memory);
	return node->memory;
}

static const struct memory_level *level_of(const struct profile_fixture *fixture, uint32_t kind)
{
	const struct memory_owners *memory = fixture->profile->memory;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == kind)
			return &memory->levels[i];
	ck_abort_msg("no memory of kind %u", kind);
	return NULL;
}

START_TEST(a_range_has_a_level_at_its_edges_and_a_peak)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_alloc(builder, 1, 5, 0x1000, 1000);
	build_push(builder, 1, 10, "a");
	build_push(builder, 1, 20, "spike");
	build_alloc(builder, 1, 30, 0x2000, 500);
	build_free(builder, 1, 40, 0x2000);
	build_pop(builder, 1, 50);
	build_alloc(builder, 1, 60, 0x3000, 50);
	build_pop(builder, 1, 70);
	fixture = fixture_of(builder, NULL);
	ck_assert_int_eq(memory_of(&fixture, "a")->reserved_delta, 50);
	ck_assert_int_eq(memory_of(&fixture, "a")->reserved_peak, 1500);
	ck_assert_int_eq(memory_of(&fixture, "a/spike")->reserved_delta, 0);
	ck_assert_int_eq(memory_of(&fixture, "a/spike")->reserved_peak, 1500);
	ck_assert_int_eq(fixture.profile->totals.reserved_peak, 1500);
	ck_assert_int_eq(fixture.profile->totals.reserved_now, 1050);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(what_is_freed_elsewhere_is_a_flow_of_its_owner)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 10, "owner");
	build_alloc(builder, 1, 20, 0x1000, 4096);
	build_alloc(builder, 1, 21, 0x9000, 100);
	build_pop(builder, 1, 30);
	build_push(builder, 2, 40, "other");
	build_free(builder, 2, 50, 0x1000);
	build_pop(builder, 2, 60);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(memory_of(&fixture, "owner")->alloc_bytes, 4196);
	ck_assert_uint_eq(memory_of(&fixture, "owner")->free_bytes, 4096);
	ck_assert_uint_eq(memory_of(&fixture, "owner")->allocs, 2);
	ck_assert_uint_eq(memory_of(&fixture, "other")->free_bytes, 0);
	ck_assert_uint_eq(memory_of(&fixture, "other")->frees, 1);
	ck_assert_int_eq(memory_of(&fixture, "other")->reserved_delta, -4096);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_level_includes_other_threads)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 10, "waits");
	build_push(builder, 2, 15, "takes");
	build_alloc(builder, 2, 20, 0x1000, 4096);
	build_pop(builder, 2, 25);
	build_pop(builder, 1, 30);
	fixture = fixture_of(builder, NULL);
	ck_assert_int_eq(memory_of(&fixture, "waits")->reserved_delta, 4096);
	ck_assert_int_eq(memory_of(&fixture, "waits")->reserved_peak, 4096);
	ck_assert_uint_eq(memory_of(&fixture, "waits")->alloc_bytes, 0);
	fixture_free(&fixture);
}
END_TEST

START_TEST(an_address_may_be_given_again)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	for (unsigned i = 0; i < 100; i++) {
		build_alloc(builder, 1, i * 10, 0x1000, 100 + i);
		build_free(builder, 1, i * 10 + 5, 0x1000);
	}
	fixture = fixture_of(builder, NULL);
	ck_assert_int_eq(fixture.profile->totals.reserved_now, 0);
	ck_assert_int_eq(fixture.profile->totals.reserved_peak, 199);
	ck_assert_uint_eq(fixture.profile->memory->counts.replaced, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(an_address_given_again_before_its_release_was_recorded_is_released_once)
{
	struct trace_builder *builder = builder_new();
	struct trace_memory *record;
	struct profile_fixture fixture;

	build_alloc(builder, 1, 100, 0x1000, 1000);
	build_alloc(builder, 2, 250, 0x1000,
		700); /* thread 1 is still inside its cudaFree of 200 to 300 */
	record = build_memory(builder, 1, 300, TRACE_FREE, 0x1000, 0, TRACE_MEMORY_DEVICE, 0);
	record->call.duration = 100;
	fixture = fixture_of(builder, NULL);
	ck_assert_int_eq(fixture.profile->totals.reserved_now, 700);
	ck_assert_uint_eq(fixture.profile->memory->counts.replaced, 1);
	ck_assert_uint_eq(fixture.profile->memory->counts.unknown_frees, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(failures_null_and_strangers_change_nothing_and_are_counted)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 1, "a");
	build_memory(builder, 1, 10, TRACE_ALLOC, 0, UINT64_C(1) << 40, TRACE_MEMORY_DEVICE, 0)
		->call.result = 2;
	build_alloc(builder, 1, 20, 0x1000, 10);
	build_free(builder, 1, 30, 0);
	build_free(builder, 1, 40, 0xdead00);
	build_memory(builder, 1, 50, TRACE_FREE, 0x1000, 0, TRACE_MEMORY_DEVICE, 0)->call.result =
		700;
	build_pop(builder, 1, 60);
	fixture = fixture_of(builder, NULL);
	ck_assert_int_eq(fixture.profile->totals.reserved_now, 10);
	ck_assert_uint_eq(memory_of(&fixture, "a")->failed, 2);
	ck_assert_uint_eq(memory_of(&fixture, "a")->allocs, 1);
	ck_assert_uint_eq(fixture.profile->memory->counts.unknown_frees, 1);
	ck_assert_uint_eq(fixture.profile->memory->counts.null_frees, 1);
	ck_assert_uint_eq(fixture.profile->memory->counts.failed_frees, 1);
	ck_assert_uint_eq(fixture.profile->counts.failed_calls, 2);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(only_device_memory_is_reserved_and_the_rest_is_kept_apart)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 1, "a");
	build_memory(builder, 1, 10, TRACE_ALLOC, 0x1000, 1, TRACE_MEMORY_DEVICE, 0);
	build_memory(builder, 1, 20, TRACE_ALLOC, 0x2000, 10, TRACE_MEMORY_PINNED, 0);
	build_memory(builder, 1, 30, TRACE_ALLOC, 0x3000, 100, TRACE_MEMORY_MANAGED, 0);
	build_memory(builder, 1, 40, TRACE_ALLOC, 0x2000, 1000, TRACE_MEMORY_ARRAY,
		0); /* a handle, equal to an address */
	build_memory(builder, 1, 50, TRACE_ALLOC, 0x4000, 10000, TRACE_MEMORY_DEVICE, 0)->flags =
		TRACE_MEMORY_POOL;
	build_memory(builder, 1, 60, TRACE_FREE, 0x3000, 0, TRACE_MEMORY_DEVICE,
		0); /* cudaFree does not say that it was managed */
	build_memory(builder, 1, 70, TRACE_FREE, 0x2000, 0, TRACE_MEMORY_ARRAY, 0);
	build_pop(builder, 1, 80);
	fixture = fixture_of(builder, NULL);
	ck_assert_int_eq(fixture.profile->totals.reserved_now, 10001);
	ck_assert_uint_eq(memory_of(&fixture, "a")->alloc_bytes, 10001);
	ck_assert_uint_eq(level_of(&fixture, TRACE_MEMORY_PINNED)->flow.held, 10);
	ck_assert_uint_eq(level_of(&fixture, TRACE_MEMORY_MANAGED)->flow.held, 0);
	ck_assert_uint_eq(level_of(&fixture, TRACE_MEMORY_MANAGED)->flow.held_max, 100);
	ck_assert_uint_eq(level_of(&fixture, TRACE_MEMORY_ARRAY)->flow.free_bytes, 1000);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

static void alloc_in(struct trace_builder *builder, uint64_t at, uint64_t address, uint64_t bytes,
	uint32_t device, uint32_t context)
{
	struct trace_memory *record = build_memory(
		builder, 1, at, TRACE_ALLOC, address, bytes, TRACE_MEMORY_DEVICE, device);

	record->flags = context << TRACE_MEMORY_CONTEXT_SHIFT;
}

static struct trace_memory *end_context(
	struct trace_builder *builder, uint64_t at, uint32_t device, uint32_t context)
{
	struct trace_memory *record = build_memory(
		builder, 1, at, TRACE_FREE, 0, 0, TRACE_MEMORY_UNKNOWN, device);

	record->flags = TRACE_MEMORY_ALL | context << TRACE_MEMORY_CONTEXT_SHIFT;
	return record;
}

START_TEST(what_a_context_had_goes_with_it_and_nothing_else)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 1, "a");
	alloc_in(builder, 10, 0x1000, 1, 0, 1);
	alloc_in(builder, 20, 0x2000, 10, 0, 2);
	alloc_in(builder, 30, 0x3000, 100, 0, 0); /* whose it is is not known */
	alloc_in(builder, 40, 0x4000, 1000, 1, 1);
	build_memory(builder, 1, 50, TRACE_ALLOC, 0x5000, 10000, TRACE_MEMORY_DEVICE, 0)->flags =
		TRACE_MEMORY_MAPPED;
	build_memory(builder, 1, 55, TRACE_ALLOC, 0x6000, 7, TRACE_MEMORY_PINNED, 0);
	end_context(builder, 60, 0, 1)->call.result = 1; /* it did not come to that */
	build_pop(builder, 1, 70);
	build_push(builder, 1, 80, "end");
	end_context(builder, 90, 0, 1);
	build_pop(builder, 1, 100);
	fixture = fixture_of(builder, NULL);
	ck_assert_int_eq(fixture.profile->totals.reserved_now, 10010);
	ck_assert_int_eq(memory_of(&fixture, "end")->reserved_delta, -101);
	ck_assert_uint_eq(memory_of(&fixture, "a")->free_bytes, 101);
	ck_assert_uint_eq(memory_of(&fixture, "end")->frees, 1);
	ck_assert_uint_eq(memory_of(&fixture, "a")->failed, 1);
	ck_assert_uint_eq(level_of(&fixture, TRACE_MEMORY_PINNED)->flow.held, 0);
	ck_assert_uint_eq(fixture.profile->memory->counts.null_frees, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_reset_by_whom_the_context_is_not_known_takes_what_the_device_has)
{
	const struct profile_options second = { .device = 1, .metric = METRIC_RESERVED };
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	for (uint64_t i = 1; i <= 1000; i++)
		alloc_in(builder, i, i << 12, 1, (uint32_t)i % 2, 1 + (uint32_t)i % 3);
	end_context(builder, 2000, 1, 0);
	alloc_in(builder, 2001, 1 << 12, 3, 1, 9);
	fixture = fixture_of(builder, &second);
	ck_assert_int_eq(fixture.profile->totals.reserved_now, 3);
	ck_assert_uint_eq(fixture.profile->memory->counts.replaced, 0);
	fixture_check(&fixture);
	fixture_free(&fixture);
}
END_TEST

START_TEST(a_level_is_that_of_one_device)
{
	const struct profile_options second = { .device = 1, .metric = METRIC_RESERVED };
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	build_push(builder, 1, 1, "a");
	build_memory(builder, 1, 10, TRACE_ALLOC, 0x1000, 5, TRACE_MEMORY_DEVICE, 0);
	build_memory(builder, 1, 20, TRACE_ALLOC, 0x2000, 70, TRACE_MEMORY_DEVICE, 1);
	build_pop(builder, 1, 30);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(fixture.profile->totals.level_device, 0);
	ck_assert_int_eq(memory_of(&fixture, "a")->reserved_delta, 5);
	ck_assert_uint_eq(memory_of(&fixture, "a")->alloc_bytes, 75);
	fixture_rebuild(&fixture, &second);
	ck_assert_int_eq(memory_of(&fixture, "a")->reserved_delta, 70);
	fixture_free(&fixture);
}
END_TEST

/* Levels are looked through one by one: 60,000 took 13 s. */
START_TEST(more_devices_than_a_machine_has_are_one_that_is_not_known)
{
	struct trace_builder *builder = builder_new();
	uint64_t taken = 0, of_unknown = 0;
	struct profile_fixture fixture;

	build_push(builder, 1, 1, "a");
	for (uint32_t device = 0; device < 3000; device++)
		build_memory(builder, 1, 10 + device, TRACE_ALLOC, 0x1000 * (device + 1), 5,
			TRACE_MEMORY_DEVICE, device);
	build_pop(builder, 1, 4000);
	fixture = fixture_of(builder, NULL);
	ck_assert_uint_eq(memory_of(&fixture, "a")->alloc_bytes, 15000);
	ck_assert_uint_le(fixture.profile->memory->level_count, 1025);
	for (uint32_t i = 0; i < fixture.profile->memory->level_count; i++) {
		taken += fixture.profile->memory->levels[i].flow.alloc_bytes;
		if (fixture.profile->memory->levels[i].device == UINT32_MAX)
			of_unknown = fixture.profile->memory->levels[i].flow.alloc_bytes;
	}
	ck_assert_uint_eq(taken, 15000);
	ck_assert_uint_eq(of_unknown, (3000 - 1024) * 5);
	fixture_free(&fixture);
}
END_TEST

START_TEST(who_held_what_at_the_peak_is_known)
{
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;
	const struct memory_owners *memory;

	build_push(builder, 1, 1, "a");
	build_alloc(builder, 1, 10, 0x1000, 100);
	build_pop(builder, 1, 11);
	build_push(builder, 1, 12, "b");
	build_alloc(builder, 1, 20, 0x2000, 50); /* the peak: 150 */
	build_free(builder, 1, 30, 0x1000);
	build_alloc(builder, 1, 40, 0x3000, 90); /* 140 */
	build_pop(builder, 1, 50);
	fixture = fixture_of(builder, NULL);
	memory = fixture.profile->memory;
	ck_assert_uint_eq(memory->site_count, 2);
	ck_assert_uint_eq(memory->sites[0].flow.at_peak, 100);
	ck_assert_uint_eq(memory->sites[0].flow.held, 0);
	ck_assert_uint_eq(memory->sites[1].flow.at_peak, 50);
	ck_assert_uint_eq(memory->sites[1].flow.held, 140);
	ck_assert_uint_eq(memory->levels[0].flow.held_max, 150);
	ck_assert_uint_eq(memory->levels[0].peak_ns, 20);
	fixture_free(&fixture);
}
END_TEST

/* Against a plain model: the level and the sum of every site, at random. */
START_TEST(levels_and_flows_agree_with_a_plain_sum)
{
	static const char *const names[] = { "a", "b", "c" };
	uint64_t held[64] = { 0 }, now = 0, peak = 0, taken = 0, given = 0;
	struct trace_builder *builder = builder_new();
	struct profile_fixture fixture;

	srand((unsigned)_i);
	for (unsigned i = 0; i < 3000; i++) {
		const unsigned slot = (unsigned)rand() % 64, thread = 1 + (unsigned)rand() % 3;

		build_push(builder, thread, i * 10, names[rand() % 3]);
		if (held[slot]) {
			build_free(builder, thread, i * 10 + 2, 0x100000 + slot * 256);
			now -= held[slot];
			given += held[slot];
			held[slot] = 0;
		} else {
			held[slot] = 1 + (uint64_t)rand() % 100000;
			build_alloc(builder, thread, i * 10 + 2, 0x100000 + slot * 256, held[slot]);
			now += held[slot];
			taken += held[slot];
			peak = now > peak ? now : peak;
		}
		build_pop(builder, thread, i * 10 + 5);
	}
	fixture = fixture_of(builder, NULL);
	fixture_check(&fixture);
	ck_assert_int_eq(fixture.profile->totals.reserved_now, (int64_t)now);
	ck_assert_int_eq(fixture.profile->totals.reserved_peak, (int64_t)peak);
	ck_assert_uint_eq(fixture.profile->totals.alloc_bytes, taken);
	ck_assert_uint_eq(fixture.profile->totals.free_bytes, given);
	fixture_free(&fixture);
}
END_TEST

static uint32_t build_counter(
	struct trace_builder *builder, uint32_t id, const char *name, const char *unit)
{
	const uint32_t text = build_name(builder, name), unit_text = build_name(builder, unit);
	struct trace_counter *counter = build_dictionary(builder, TRACE_COUNTER, sizeof *counter);

	counter->counter = id;
	counter->name = text;
	counter->unit = unit_text;
	return id;
}

static void build_metric(struct trace_builder *builder, uint64_t at, uint32_t counter,
	uint32_t type, const void *value)
{
	struct trace_metric *record = build_record(builder, 1, TRACE_METRIC, sizeof *record, at);

	record->counter = counter;
	record->type = type;
	memcpy(&record->value, value, sizeof record->value);
}

START_TEST(the_programs_own_counters_are_levels)
{
	const struct profile_options fill = {
		.device = -1, .metric = METRIC_USER, .counter = "queue"
	};
	struct trace_builder *builder = builder_new();
	const uint32_t other = build_counter(builder, 1, "other", NULL),
		       queue = build_counter(builder, 2, "queue", "jobs");
	const int64_t whole = 12;
	const double real = 7.25, nothing = 0.0 / 0.0;
	struct profile_fixture fixture;
	const struct node *node;

	build_push(builder, 1, 10, "a");
	build_metric(builder, 20, queue, TRACE_METRIC_I64, &whole);
	build_metric(builder, 21, other, TRACE_METRIC_F64, &real);
	build_push(builder, 1, 30, "b");
	build_metric(builder, 40, queue, TRACE_METRIC_F64, &real);
	build_metric(builder, 41, queue, TRACE_METRIC_F64, &nothing);
	build_metric(builder, 42, queue, TRACE_METRIC_NONE, &whole);
	build_pop(builder, 1, 50);
	build_pop(builder, 1, 60);
	fixture = fixture_of(builder, &fill);
	node = fixture_node(&fixture, "a/b");
	ck_assert(node->worst->before == 12 && node->worst->after == 7.25L &&
		  node->worst->value == -4.75L);
	node = fixture_node(&fixture, "a");
	/* It was open when the counter had its first value, and nothing is known before. */
	ck_assert(node->worst->before == 12 && node->worst->after == 7.25L);
	ck_assert_str_eq(
		string_table_get(fixture.texts, fixture.profile->counter_unit).bytes, "jobs");
	fixture_free(&fixture);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory");
	TCase *memory = tcase_create("memory");
	SRunner *runner;
	int failed;

	tcase_set_timeout(memory, 60);
	tcase_add_test(memory, what_a_context_had_goes_with_it_and_nothing_else);
	tcase_add_test(memory, a_reset_by_whom_the_context_is_not_known_takes_what_the_device_has);
	tcase_add_test(memory, a_range_has_a_level_at_its_edges_and_a_peak);
	tcase_add_test(memory, what_is_freed_elsewhere_is_a_flow_of_its_owner);
	tcase_add_test(memory, a_level_includes_other_threads);
	tcase_add_test(memory, an_address_may_be_given_again);
	tcase_add_test(
		memory, an_address_given_again_before_its_release_was_recorded_is_released_once);
	tcase_add_test(memory, failures_null_and_strangers_change_nothing_and_are_counted);
	tcase_add_test(memory, only_device_memory_is_reserved_and_the_rest_is_kept_apart);
	tcase_add_test(memory, a_level_is_that_of_one_device);
	tcase_add_test(memory, more_devices_than_a_machine_has_are_one_that_is_not_known);
	tcase_add_test(memory, who_held_what_at_the_peak_is_known);
	tcase_add_loop_test(memory, levels_and_flows_agree_with_a_plain_sum, 0, 5);
	tcase_add_test(memory, the_programs_own_counters_are_levels);
	suite_add_tcase(suite, memory);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
