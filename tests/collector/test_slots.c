/* SPDX-License-Identifier: MIT
 * What the collector takes of the file, and what becomes of it where there is no more: slots of
 * many threads, slots that cannot be mapped, records of the dictionary that find no room.
 */
#include "tests/support/collector_fixture.h"

#include "collector/file/dictionary.h"
#include "collector/stream/ranges.h"
#include "collector/file/slots.h"
#include "collector/file/trace_file.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MANY = 3000 };

static struct {
	struct trace_block *block;
	uint64_t offset;
} taken[MANY];

static void take_many(void)
{
	enum trace_loss reason;

	for (int i = 0; i < MANY; i++)
		ck_assert_ptr_nonnull(
			taken[i].block = slot_acquire(false, &taken[i].offset, &reason));
}

static void give_many(void)
{
	for (int i = 0; i < MANY; i++)
		slot_release(taken[i].block, taken[i].offset);
}

START_TEST(slots_of_however_many_threads_are_used_again)
{
	uint64_t end;

	collector_start(0);
	range_mark(0, "the file is there", NULL);
	take_many();
	end = trace_header()->end;
	for (int round = 0; round < 3; round++) {
		give_many();
		take_many();
	}
	ck_assert_uint_eq(trace_header()->end, end);
	for (int i = 1; i < MANY; i++)
		ck_assert_uint_ne(taken[i].offset, taken[i - 1].offset);
}
END_TEST

START_TEST(a_slot_that_cannot_be_mapped_takes_no_room)
{
	const struct rlimit none = { 0, RLIM_INFINITY }, any = { RLIM_INFINITY, RLIM_INFINITY };
	enum trace_loss reason = TRACE_LOST_FULL_DISK;
	uint64_t end, offset;

	collector_start(0);
	range_mark(0, "the file is there", NULL);
	end = trace_header()->end;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
	for (int i = 0; i < 10; i++)
		ck_assert_ptr_null(slot_acquire(true, &offset, &reason));
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &any), 0);
	ck_assert_int_eq(reason, TRACE_LOST_NO_MEMORY);
	ck_assert_uint_eq(trace_header()->end, end);
}
END_TEST

static uint64_t lost(void)
{
	uint64_t events = 0;

	for (int i = 0; i < TRACE_LOSS_KINDS; i++)
		events += trace_header()->lost[i];
	return events;
}

START_TEST(what_is_said_once_and_finds_no_room_is_counted)
{
	struct {
		struct trace_module module;
		char path[4096];
	} record;
	const int records = 100;
	struct trace_reader *reader;
	struct trace_event event;

	memset(&record, 0, sizeof record);
	record.module.head = (struct trace_head){ .size = sizeof record, .kind = TRACE_MODULE };
	record.module.path_bytes = sizeof record.path;
	memset(record.path, 'x', sizeof record.path);
	collector_start(128 << 10);
	range_mark(0, "the file is there", NULL);
	for (int i = 0; i < records; i++)
		dictionary_put(&record.module.head, 0);
	ck_assert_uint_ge(lost(), (uint64_t)records - 128 / 4);
	ck_assert_uint_lt(lost(), (uint64_t)records);
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		;
	ck_assert_uint_eq(reader_integrity(reader)->lost_events, lost());
	reader_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("slots");
	TCase *tests = tcase_create("slots"), *real = tcase_create("of a real kernel");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, NULL, collector_remove_folder);
	tcase_add_checked_fixture(real, NULL, collector_remove_folder);
	tcase_set_tags(real, "real-kernel");
	tcase_add_test(tests, slots_of_however_many_threads_are_used_again);
	tcase_add_test(tests, what_is_said_once_and_finds_no_room_is_counted);
	tcase_add_test(real, a_slot_that_cannot_be_mapped_takes_no_room);
	suite_add_tcase(suite, tests);
	suite_add_tcase(suite, real);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
