/* SPDX-License-Identifier: MIT */
#include "collector/cupti/buffers.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SLOT (128 * KIB)

START_TEST(the_pool_is_bounded_and_used_again)
{
	uint8_t *taken[8];
	size_t bytes = 0;

	ck_assert(cupti_buffers_setup(MIB));
	for (int i = 0; i < 8; i++) {
		taken[i] = cupti_buffers_acquire(&bytes);
		ck_assert_ptr_nonnull(taken[i]);
		ck_assert_uint_eq(bytes, i < 4 ? 8 * KIB << i : SLOT);
		ck_assert_uint_eq((uintptr_t)taken[i] % 8, 0);
		ck_assert(cupti_buffers_contains(taken[i]));
		memset(taken[i], 0xff, bytes);
	}
	ck_assert_ptr_null(cupti_buffers_acquire(&bytes));
	cupti_buffers_release(taken[3]);
	ck_assert_ptr_eq(cupti_buffers_acquire(&bytes), taken[3]);
}
END_TEST

START_TEST(a_large_pool_has_larger_buffers)
{
	size_t bytes = 0;

	ck_assert(cupti_buffers_setup(UINT64_C(4096) * MIB));
	for (int i = 0; i < 10; i++)
		ck_assert_ptr_nonnull(cupti_buffers_acquire(&bytes));
	ck_assert_uint_eq(bytes, 4 * SLOT);
}
END_TEST

static size_t request_after(unsigned ms)
{
	size_t bytes = 0;

	usleep(ms * 1000);
	cupti_buffers_release(cupti_buffers_acquire(&bytes));
	return bytes;
}

/* On a busy GPU a buffer comes only when it is full, and a kill loses it. */
START_TEST(the_size_follows_the_rate_of_requests)
{
	ck_assert(cupti_buffers_setup(8 * MIB));
	for (size_t bytes = 8 * KIB; bytes <= SLOT; bytes *= 2)
		ck_assert_uint_eq(request_after(0), bytes);
	ck_assert_uint_eq(request_after(0), SLOT);
	for (size_t bytes = SLOT / 2; bytes >= 8 * KIB; bytes /= 2)
		ck_assert_uint_eq(request_after(210), bytes);
	ck_assert_uint_eq(request_after(210), 8 * KIB);
	ck_assert_uint_eq(request_after(0), 16 * KIB);
	ck_assert_uint_eq(request_after(100), 16 * KIB);
}
END_TEST

START_TEST(there_are_two_buffers_at_least)
{
	size_t bytes = 0;
	int count = 0;

	ck_assert(cupti_buffers_setup(1));
	for (; cupti_buffers_acquire(&bytes); count++)
		ck_assert_uint_le(bytes, SLOT);
	ck_assert_int_eq(count, 2);
}
END_TEST

START_TEST(the_scratch_is_not_of_the_pool)
{
	size_t bytes = 0;
	uint8_t *scratch, other[8];

	ck_assert(cupti_buffers_setup(2 * SLOT));
	scratch = cupti_buffers_scratch(&bytes);
	ck_assert_ptr_nonnull(scratch);
	memset(scratch, 0xff, bytes);
	ck_assert(!cupti_buffers_contains(scratch));
	ck_assert(!cupti_buffers_contains(other));
	cupti_buffers_release(scratch);
	cupti_buffers_release(other);
	ck_assert_ptr_nonnull(cupti_buffers_acquire(&bytes));
	ck_assert_ptr_nonnull(cupti_buffers_acquire(&bytes));
	ck_assert_ptr_null(cupti_buffers_acquire(&bytes));
}
END_TEST

static atomic_int twice, refused, done;

/* Marks its buffer, and finds nobody else's mark in it. */
static void *take_and_give(void *mark)
{
	for (int i = 0; i < 20000; i++) {
		size_t bytes;
		uint8_t *buffer = cupti_buffers_acquire(&bytes);

		if (!buffer) {
			atomic_fetch_add(&refused, 1);
			continue;
		}
		memcpy(buffer, &mark, sizeof mark);
		memcpy(buffer + bytes - sizeof mark, &mark, sizeof mark);
		if (memcmp(buffer, &mark, sizeof mark) ||
			memcmp(buffer + bytes - sizeof mark, &mark, sizeof mark))
			atomic_fetch_add(&twice, 1);
		cupti_buffers_release(buffer);
	}
	atomic_fetch_add(&done, 1);
	return NULL;
}

START_TEST(no_buffer_is_given_twice)
{
	pthread_t threads[8];

	ck_assert(cupti_buffers_setup(4 * SLOT));
	for (uintptr_t i = 0; i < 8; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1)), 0);
	while (done < 8)
		cupti_buffers_prefault();
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(twice, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cupti buffers");
	TCase *cases = tcase_create("cupti buffers");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, the_pool_is_bounded_and_used_again);
	tcase_add_test(cases, a_large_pool_has_larger_buffers);
	tcase_add_test(cases, the_size_follows_the_rate_of_requests);
	tcase_add_test(cases, there_are_two_buffers_at_least);
	tcase_add_test(cases, the_scratch_is_not_of_the_pool);
	tcase_add_test(cases, no_buffer_is_given_twice);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
