/* SPDX-License-Identifier: MIT
 * test_spill_list.c: what was written is what is read, in memory and in the file.
 */
#include "report/base/spill_list.h"

#include <check.h>
#include <stdint.h>

struct entry {
	uint64_t number, square;
};

static struct spill_list *tape_of(uint64_t count)
{
	struct spill_list *tape = spill_list_new(sizeof(struct entry), "numbers");

	for (uint64_t i = 0; i < count; i++)
		*(struct entry *)spill_list_push(tape) = (struct entry){ i, i * i };
	return tape;
}

static void expect(struct spill_list *tape, uint64_t count)
{
	const struct entry *entry;

	spill_list_rewind(tape);
	for (uint64_t i = 0; i < count; i++) {
		entry = spill_list_next(tape);
		ck_assert_ptr_nonnull(entry);
		ck_assert_uint_eq(entry->number, i);
		ck_assert_uint_eq(entry->square, i * i);
	}
	ck_assert_ptr_null(spill_list_next(tape));
	ck_assert_ptr_null(spill_list_next(tape));
}

/* One piece of memory, its edges, and several in the file with a last one that is whole or not. */
START_TEST(what_was_written_is_read_as_often_as_wanted)
{
	const uint64_t piece = SPILL_LIST_MEMORY_BYTES / sizeof(struct entry),
		       counts[] = { 0, 1, piece - 1, piece, piece + 1, 3 * piece, 3 * piece + 7 };

	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct spill_list *tape = tape_of(counts[i]);

		expect(tape, counts[i]);
		expect(tape, counts[i]);
		spill_list_free(tape);
	}
	spill_list_free(NULL);
}
END_TEST

START_TEST(reading_may_stop_anywhere)
{
	struct spill_list *tape = tape_of(100000);

	spill_list_rewind(tape);
	for (unsigned i = 0; i < 70000; i++)
		ck_assert_ptr_nonnull(spill_list_next(tape));
	expect(tape, 100000);
	spill_list_free(tape);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tape");
	TCase *tapes = tcase_create("tapes");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tapes, 60);
	tcase_add_test(tapes, what_was_written_is_read_as_often_as_wanted);
	tcase_add_test(tapes, reading_may_stop_anywhere);
	suite_add_tcase(suite, tapes);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
