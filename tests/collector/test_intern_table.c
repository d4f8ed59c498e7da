/* SPDX-License-Identifier: MIT */
#include "collector/file/intern_table.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct intern_table table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t id_of(const void *bytes, size_t count)
{
	uint32_t hash = intern_hash(bytes, count), id = intern_find(&table, bytes, count, hash);

	if (id)
		return id;
	pthread_mutex_lock(&lock);
	id = intern_find(&table, bytes, count, hash);
	if (!id) {
		id = intern_prepare(&table, bytes, count, hash);
		intern_publish(&table, id);
	}
	pthread_mutex_unlock(&lock);
	return id;
}

START_TEST(same_bytes_have_the_same_id_and_others_another)
{
	char text[32];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 50000; i++) {
			snprintf(text, sizeof text, "text %d", i);
			ck_assert_uint_eq(id_of(text, strlen(text)), (uint32_t)i + 1);
		}
	ck_assert_uint_eq(table.count, 50000);
}
END_TEST

START_TEST(any_bytes_come_back_as_they_were)
{
	const char zeros[] = { 0, 0, 0 }, mixed[] = { 'a', 0, 'b', (char)0xFF };
	uint32_t empty = id_of("", 0), two = id_of(zeros, 2), three = id_of(zeros, 3),
		 four = id_of(mixed, 4);

	ck_assert_uint_ne(empty, two);
	ck_assert_uint_ne(two, three);
	ck_assert_uint_eq(intern_entry(&table, three)->count, 3);
	ck_assert_mem_eq(intern_entry(&table, four)->bytes, mixed, 4);
	ck_assert_uint_eq(id_of(mixed, 4), four);
}
END_TEST

START_TEST(what_was_prepared_and_not_published_is_not_found)
{
	uint32_t hash = intern_hash("x", 1), id = intern_prepare(&table, "x", 1, hash);

	ck_assert_uint_eq(id, 1);
	ck_assert_uint_eq(intern_find(&table, "x", 1, hash), 0);
	ck_assert_uint_eq(intern_prepare(&table, "y", 1, intern_hash("y", 1)), 1);
	intern_publish(&table, 1);
	ck_assert_uint_eq(intern_find(&table, "y", 1, intern_hash("y", 1)), 1);
}
END_TEST

static void *add_and_find(void *first)
{
	char text[32];

	for (int i = 0; i < 20000; i++) {
		uint32_t id;

		snprintf(text, sizeof text, "shared %d", (i * 7 + *(int *)first) % 20000);
		id = id_of(text, strlen(text));
		ck_assert_uint_ne(id, 0);
		ck_assert_str_eq(intern_entry(&table, id)->bytes, text);
	}
	return NULL;
}

START_TEST(finding_goes_on_while_another_thread_adds)
{
	int first[4] = { 0, 5000, 10000, 15000 };
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, add_and_find, &first[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(table.count, 20000);
}
END_TEST

static struct intern_table tables[2];

static void *fill_own(void *own)
{
	char text[32];

	for (int i = 0; i < 60000; i++) {
		snprintf(text, sizeof text, "%d of %d", i, own == &tables[1]);
		intern_publish(own,
			intern_prepare(own, text, strlen(text), intern_hash(text, strlen(text))));
	}
	return NULL;
}

/* Each has a lock of its own, so they may share nothing. */
START_TEST(tables_of_different_locks_do_not_disturb_each_other)
{
	pthread_t threads[2];
	char text[32];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, fill_own, &tables[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 120000; i++) {
		snprintf(text, sizeof text, "%d of %d", i / 2, i % 2);
		ck_assert_str_eq(intern_entry(&tables[i % 2], (uint32_t)i / 2 + 1)->bytes, text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("intern");
	TCase *tests = tcase_create("intern");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, same_bytes_have_the_same_id_and_others_another);
	tcase_add_test(tests, any_bytes_come_back_as_they_were);
	tcase_add_test(tests, what_was_prepared_and_not_published_is_not_found);
	tcase_add_test(tests, finding_goes_on_while_another_thread_adds);
	tcase_add_test(tests, tables_of_different_locks_do_not_disturb_each_other);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
