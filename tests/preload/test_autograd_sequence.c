/* SPDX-License-Identifier: MIT
 * By which numbers the place of an autograd node's operator is found again, on whatever thread.
 */
#include "preload/torch/autograd_sequence.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static _Thread_local uint64_t number;
static _Atomic uint64_t last_number;

static uint64_t this_thread(void)
{
	if (!number)
		number = atomic_fetch_add(&last_number, 1) + 1;
	return number;
}

static void setup(void)
{
	torch_sequence_configure(this_thread);
}

static void *in_a_thread(void *(*function)(void *), void *argument)
{
	pthread_t thread;
	void *result;

	ck_assert_int_eq(pthread_create(&thread, NULL, function, argument), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	return result;
}

START_TEST(the_operator_that_started_last_made_the_node)
{
	torch_sequence_record(0, 7);
	torch_sequence_record(1, 8);
	torch_sequence_record(1, 9);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), 0), 7);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), 1), 9);
}
END_TEST

START_TEST(what_was_never_noted_is_not_known)
{
	torch_sequence_record(5, 7);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), 4), 0);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), 5 + TORCH_SEQUENCES), 0);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), UINT64_MAX), 0);
	ck_assert_uint_eq(torch_sequence_node(0, 5), 0);
	ck_assert_uint_eq(torch_sequence_node(this_thread() + 1, 5), 0);
	ck_assert_uint_eq(torch_sequence_node(this_thread() + (1u << 16), 5), 0);
}
END_TEST

START_TEST(a_number_too_great_is_not_noted)
{
	torch_sequence_record(TORCH_SEQUENCE_MAX, 0xFFFFF);
	torch_sequence_record(TORCH_SEQUENCE_MAX + 1, 7);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), TORCH_SEQUENCE_MAX), 0xFFFFF);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), TORCH_SEQUENCE_MAX + 1), 0);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), 0), 0);
}
END_TEST

START_TEST(the_last_numbers_of_a_thread_are_kept)
{
	for (uint64_t i = 0; i < 3 * TORCH_SEQUENCES; i++)
		torch_sequence_record(i, (uint32_t)(i % 1000 + 1));
	for (uint64_t i = 0; i < 2 * TORCH_SEQUENCES; i++)
		ck_assert_uint_eq(torch_sequence_node(this_thread(), i), 0);
	for (uint64_t i = 2 * TORCH_SEQUENCES; i < 3 * TORCH_SEQUENCES; i++)
		ck_assert_uint_eq(torch_sequence_node(this_thread(), i), i % 1000 + 1);
}
END_TEST

static void *note_one(void *node)
{
	torch_sequence_record(3, *(uint32_t *)node);
	return (void *)(uintptr_t)this_thread();
}

START_TEST(threads_have_numbers_of_their_own_and_their_end_loses_nothing)
{
	uint32_t nodes[2] = { 11, 12 };
	uint64_t a = (uintptr_t)in_a_thread(note_one, &nodes[0]),
		 b = (uintptr_t)in_a_thread(note_one, &nodes[1]);

	ck_assert_uint_eq(torch_sequence_node(a, 3), 11);
	ck_assert_uint_eq(torch_sequence_node(b, 3), 12);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), 3), 0);
}
END_TEST

START_TEST(a_thread_that_takes_over_a_ring_finds_nothing_in_it)
{
	uint32_t node = 11;
	uint64_t first = (uintptr_t)in_a_thread(note_one, &node), last = 0;

	for (uint32_t i = 0; i < 3 * TORCH_SEQUENCE_ENDED; i++) {
		node = 100 + i;
		last = (uintptr_t)in_a_thread(note_one, &node);
		ck_assert_uint_eq(torch_sequence_node(last, 3), node);
		ck_assert_uint_eq(torch_sequence_node(last, 4), 0);
		if (i < TORCH_SEQUENCE_ENDED)
			ck_assert_uint_eq(torch_sequence_node(first, 3), 11);
	}
	ck_assert_uint_eq(torch_sequence_node(first, 3), 0);
	ck_assert_uint_eq(torch_sequence_node(last - TORCH_SEQUENCE_ENDED + 1, 3),
		100 + 2 * TORCH_SEQUENCE_ENDED);
}
END_TEST

START_TEST(a_forked_child_knows_what_was_noted_and_notes_its_own)
{
	uint32_t node = 11;
	uint64_t ended = (uintptr_t)in_a_thread(note_one, &node);
	int status = 0;
	pid_t child;

	torch_sequence_record(8, 21);
	child = fork();
	if (child == 0) {
		bool known = torch_sequence_node(this_thread(), 8) == 21 &&
			     torch_sequence_node(ended, 3) == 11;

		torch_sequence_record(9, 22);
		_exit(known && torch_sequence_node(this_thread(), 9) == 22 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(torch_sequence_node(this_thread(), 9), 0);
}
END_TEST

enum { READERS = 3, ROUNDS = 200000 };
static atomic_bool done;

/* What is found is what was noted with this number, or nothing: never a node of another. */
static void *look(void *thread)
{
	uint64_t wrong = 0, found;

	for (uint64_t i = 0; !atomic_load(&done); i = (i + 7919) % ROUNDS) {
		found = torch_sequence_node((uintptr_t)thread, i);
		wrong += found != 0 && found != i % 1000 + 1;
	}
	return (void *)(uintptr_t)wrong;
}

START_TEST(others_read_while_a_thread_notes)
{
	pthread_t readers[READERS];
	void *wrong;

	for (int i = 0; i < READERS; i++)
		ck_assert_int_eq(
			pthread_create(&readers[i], NULL, look, (void *)(uintptr_t)this_thread()),
			0);
	for (uint64_t i = 0; i < ROUNDS; i++)
		torch_sequence_record(i, (uint32_t)(i % 1000 + 1));
	atomic_store(&done, true);
	for (int i = 0; i < READERS; i++) {
		ck_assert_int_eq(pthread_join(readers[i], &wrong), 0);
		ck_assert_ptr_eq(wrong, NULL);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("torch_sequence");
	TCase *tests = tcase_create("sequence");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, the_operator_that_started_last_made_the_node);
	tcase_add_test(tests, what_was_never_noted_is_not_known);
	tcase_add_test(tests, a_number_too_great_is_not_noted);
	tcase_add_test(tests, the_last_numbers_of_a_thread_are_kept);
	tcase_add_test(tests, threads_have_numbers_of_their_own_and_their_end_loses_nothing);
	tcase_add_test(tests, a_thread_that_takes_over_a_ring_finds_nothing_in_it);
	tcase_add_test(tests, a_forked_child_knows_what_was_noted_and_notes_its_own);
	tcase_add_test(tests, others_read_while_a_thread_notes);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
