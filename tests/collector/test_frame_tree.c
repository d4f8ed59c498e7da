/* SPDX-License-Identifier: MIT
 * Ids of frames: one for each chain of callers, whatever the number of frames and threads.
 */
#include "tests/support/collector_fixture.h"

#include "collector/sample/frame_tree.h"
#include "collector/stream/stream.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 100000, THREADS = 4, SHARED = 20000 };

static void set_up(void)
{
	collector_start(0);
}

static uint32_t native_id(uint32_t parent, uint64_t address)
{
	return frame_native_id(parent, &address, 1);
}

START_TEST(a_chain_of_callers_has_one_id_and_another_chain_has_another)
{
	const struct trace_python_frame at = { 1, 2, 3, 0 }, entry = { 1, 2, 3, 1 };
	uint32_t outer, inner, python;

	ck_assert(stream_enter());
	outer = native_id(0, 0x1000);
	inner = native_id(outer, 0x1000);
	python = frame_python_id(outer, &at, 1);
	ck_assert_uint_ne(outer, 0);
	ck_assert_uint_ne(inner, outer);
	ck_assert_uint_ne(python, inner);
	ck_assert_uint_eq(native_id(0, 0x1000), outer);
	ck_assert_uint_eq(native_id(outer, 0x1000), inner);
	ck_assert_uint_eq(frame_python_id(outer, &at, 1), python);
	ck_assert_uint_ne(frame_python_id(outer, &entry, 1), python);
	ck_assert_uint_ne(frame_python_id(inner, &at, 1), python);
	ck_assert_uint_eq(frame_count(), 5);
	ck_assert_uint_eq(frame_python_id_at_once(&at, 1), frame_python_id(0, &at, 1));
	stream_leave();
}
END_TEST

START_TEST(a_stack_has_the_id_of_its_innermost_frame)
{
	const uint64_t stack[] = { 3, 2, 1 }, other[] = { 4, 2, 1 };
	uint32_t id;

	ck_assert(stream_enter());
	id = frame_native_id(0, stack, 3);
	ck_assert_uint_eq(id, native_id(native_id(native_id(0, 1), 2), 3));
	ck_assert_uint_eq(frame_native_id(0, other, 3), id + 1);
	ck_assert_uint_eq(frame_native_id(0, stack, 3), id);
	ck_assert_uint_eq(frame_native_id(id, stack, 0), id);
	ck_assert_uint_eq(frame_count(), 4);
	stream_leave();
}
END_TEST

START_TEST(many_frames_keep_their_ids_while_the_table_grows)
{
	uint32_t *ids = calloc(MANY, sizeof *ids);

	ck_assert(stream_enter());
	for (uint32_t i = 0; i < MANY; i++)
		ids[i] = native_id(i ? ids[i / 2] : 0, UINT64_C(0x400000) + i);
	for (uint32_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(native_id(i ? ids[i / 2] : 0, UINT64_C(0x400000) + i), ids[i]);
	ck_assert_uint_eq(frame_count(), MANY);
	stream_leave();
	free(ids);
}
END_TEST

static uint32_t seen[THREADS][SHARED];

static void *give_ids(void *of)
{
	uint32_t *ids = of;

	if (!stream_enter())
		return NULL;
	for (uint32_t i = 0; i < SHARED; i++)
		ids[i] = native_id(0, UINT64_C(0x1000) + i);
	stream_leave();
	return of;
}

START_TEST(threads_get_the_same_id_for_the_same_frame)
{
	pthread_t threads[THREADS];
	void *done;

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, give_ids, seen[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &done), 0);
		ck_assert_ptr_eq(done, seen[i]);
	}
	for (int i = 1; i < THREADS; i++)
		for (int k = 0; k < SHARED; k++)
			ck_assert_uint_eq(seen[i][k], seen[0][k]);
	ck_assert_uint_eq(frame_count(), SHARED);
}
END_TEST

START_TEST(a_forked_child_begins_with_the_first_id)
{
	int status;
	pid_t child;

	ck_assert(stream_enter());
	native_id(native_id(0, 1), 2);
	stream_leave();
	child = fork();
	if (!child)
		_exit(frame_count() == 0 && stream_enter() && native_id(0, 7) == 1 ? 0 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frame tree");
	TCase *tests = tcase_create("frame tree");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, set_up, collector_remove_folder);
	tcase_add_test(tests, a_chain_of_callers_has_one_id_and_another_chain_has_another);
	tcase_add_test(tests, a_stack_has_the_id_of_its_innermost_frame);
	tcase_add_test(tests, many_frames_keep_their_ids_while_the_table_grows);
	tcase_add_test(tests, threads_get_the_same_id_for_the_same_frame);
	tcase_add_test(tests, a_forked_child_begins_with_the_first_id);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
