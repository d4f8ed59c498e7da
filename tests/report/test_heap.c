/* SPDX-License-Identifier: MIT
 * test_heap.c: a heap gives its items in order, whatever order they come in, and replaces its
 * first item.
 */
#include "report/base/heap.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#define MOST 600u

struct entry {
	unsigned key, payload;
};

static bool is_earlier(const struct entry *a, const struct entry *b)
{
	return a->key < b->key;
}

DEFINE_HEAP(entries, struct entry, is_earlier)

static unsigned key_of(unsigned i)
{
	return i * 2654435761u >> 20;
}

START_TEST(items_come_out_in_order)
{
	struct entry items[MOST];
	const unsigned count = (unsigned)_i;
	unsigned last = 0, payloads = 0;

	for (unsigned i = 0; i < count; i++)
		entries_up(items, i, (struct entry){ key_of(i), i });
	for (size_t left = count; left > 0;) {
		const struct entry first = items[0];

		ck_assert_uint_ge(first.key, last);
		ck_assert_uint_eq(first.key, key_of(first.payload));
		last = first.key;
		payloads += first.payload;
		left--;
		entries_down(items, left, items[left]);
	}
	ck_assert_uint_eq(payloads, count ? count * (count - 1) / 2 : 0);
}
END_TEST

START_TEST(replacing_the_first_keeps_the_largest)
{
	struct entry items[10];
	unsigned kept = 0;

	for (unsigned i = 0; i < 10; i++)
		entries_up(items, i, (struct entry){ 1000 + i, i });
	for (unsigned i = 0; i < 1000; i++)
		if (items[0].key < i * 7 % 1000 + 500)
			entries_down(items, 10, (struct entry){ i * 7 % 1000 + 500, i });
	for (unsigned i = 0; i < 10; i++)
		kept += items[i].key >= 1490 && items[i].key < 1500;
	ck_assert_uint_eq(kept, 10);
}
END_TEST

START_TEST(equal_items_stay_put)
{
	struct entry items[3];

	for (unsigned i = 0; i < 3; i++)
		entries_up(items, i, (struct entry){ 5, i });
	ck_assert_uint_eq(items[0].payload, 0);
	entries_down(items, 3, (struct entry){ 5, 9 });
	ck_assert_uint_eq(items[0].payload, 9);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("heap");
	TCase *cases = tcase_create("heap");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(cases, items_come_out_in_order, 0, 20);
	tcase_add_loop_test(cases, items_come_out_in_order, MOST - 1, MOST + 1);
	tcase_add_test(cases, replacing_the_first_keeps_the_largest);
	tcase_add_test(cases, equal_items_stay_put);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
