/* SPDX-License-Identifier: MIT
 * test_large_stack.c: what takes much stack runs where there is enough of it, on the calling
 * thread, and nothing is left behind.
 */
#include "collector/process/large_stack.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static struct seen {
	pthread_t thread;
	uintptr_t frame;
	int times;
} seen;

/* More than a small stack has. */
static void greedy(void *bytes)
{
	volatile char room[100 << 10];

	for (size_t i = 0; i < sizeof room && i < *(size_t *)bytes; i += 4096)
		room[i] = 1;
	seen = (struct seen){ pthread_self(), (uintptr_t)__builtin_frame_address(0),
		seen.times + 1 };
	errno = ERANGE;
}

static void *on_a_thread(void *bytes)
{
	sigset_t before = { { 0 } }, after = { { 0 } };

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	errno = ENOTTY;
	large_stack_run(greedy, bytes);
	ck_assert_int_eq(errno, ENOTTY);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	ck_assert_mem_eq(&before, &after, sizeof before);
	ck_assert(pthread_equal(seen.thread, pthread_self()));
	return NULL;
}

/* Runs it on a thread with such a stack; whether what was called lay on it. */
static int was_on_stack_of(size_t stack_bytes, size_t bytes)
{
	char *stack = mmap(
		NULL, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t id;

	ck_assert_ptr_ne(stack, MAP_FAILED);
	pthread_attr_init(&attributes);
	ck_assert_int_eq(pthread_attr_setstack(&attributes, stack, stack_bytes), 0);
	ck_assert_int_eq(pthread_create(&id, &attributes, on_a_thread, &bytes), 0);
	pthread_join(id, NULL);
	munmap(stack, stack_bytes);
	return seen.frame - (uintptr_t)stack < stack_bytes;
}

START_TEST(a_thread_with_little_stack_gets_ours)
{
	int sizes = 0;

	for (size_t kib = 64; kib <= 1024; kib += kib < 128 ? 16 : 128) {
		if (kib << 10 < (size_t)sysconf(_SC_THREAD_STACK_MIN))
			continue; /* on aarch64 there are none of less than 128 */
		ck_assert(!was_on_stack_of(kib << 10, 100 << 10));
		sizes++;
	}
	ck_assert_int_gt(sizes, 0);
	ck_assert_int_eq(seen.times, sizes);
}
END_TEST

START_TEST(a_thread_with_enough_keeps_its_own)
{
	ck_assert(was_on_stack_of(8 << 20, 100 << 10));
	ck_assert(was_on_stack_of(2 << 20, 100 << 10));
	on_a_thread(&(size_t){ 100 << 10 });
	ck_assert_int_eq(seen.times, 3);
}
END_TEST

/* As much as code may use that is only ever tested with 8 MiB. */
static void very_greedy(void *unused)
{
	volatile char room[7 << 19];

	(void)unused;
	for (size_t i = 0; i < sizeof room; i += 4096)
		room[i] = 1;
	seen.times++;
}

static void *runs_very_greedy(void *unused)
{
	large_stack_run(very_greedy, NULL);
	return unused;
}

START_TEST(ours_has_3_5_mib)
{
	pthread_attr_t attributes;
	pthread_t id;

	pthread_attr_init(&attributes);
	ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
	ck_assert_int_eq(pthread_create(&id, &attributes, runs_very_greedy, NULL), 0);
	pthread_join(id, NULL);
	ck_assert_int_eq(seen.times, 1);
}
END_TEST

START_TEST(the_first_thread_under_a_limit_gets_ours)
{
	const struct rlimit little = { 256 << 10, RLIM_INFINITY };
	const char here = 0;

	ck_assert_int_eq(setrlimit(RLIMIT_STACK, &little), 0);
	on_a_thread(&(size_t){ 100 << 10 });
	ck_assert_uint_gt((uintptr_t)&here - seen.frame, 1 << 20);
}
END_TEST

START_TEST(without_memory_it_runs_on_what_there_is)
{
	const struct rlimit nothing = { 0, RLIM_INFINITY }, all = { RLIM_INFINITY, RLIM_INFINITY },
			    little = { 256 << 10, RLIM_INFINITY };

	ck_assert_int_eq(setrlimit(RLIMIT_STACK, &little), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &nothing), 0);
	on_a_thread(&(size_t){ 0 });
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &all), 0);
	ck_assert_int_eq(seen.times, 1);
}
END_TEST

static void on_signal(int number)
{
	(void)number;
	large_stack_run(greedy, &(size_t){ 100 << 10 });
}

START_TEST(the_first_thread_on_another_stack_gets_ours)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	stack_t other = { .ss_size = 64 << 10 };

	other.ss_sp = mmap(
		NULL, other.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(other.ss_sp, MAP_FAILED);
	ck_assert_int_eq(sigaltstack(&other, NULL), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	raise(SIGUSR1);
	ck_assert_int_eq(seen.times, 1);
	ck_assert_uint_gt((uintptr_t)&action - seen.frame, 1 << 20);
	ck_assert_uint_ge(seen.frame - (uintptr_t)other.ss_sp, other.ss_size);
}
END_TEST

static void again(void *bytes)
{
	large_stack_run(greedy, bytes);
}

static void *nested(void *bytes)
{
	large_stack_run(again, bytes);
	return NULL;
}

START_TEST(it_may_be_requested_within)
{
	const size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN), little = 64 << 10;
	size_t bytes = 100 << 10;
	pthread_attr_t attributes;
	pthread_t id;

	pthread_attr_init(&attributes);
	ck_assert_int_eq(
		pthread_attr_setstacksize(&attributes, least > little ? least : little), 0);
	ck_assert_int_eq(pthread_create(&id, &attributes, nested, &bytes), 0);
	pthread_join(id, NULL);
	ck_assert_int_eq(seen.times, 1);
}
END_TEST

int main(void)
{
	TCase *runs = tcase_create("runs"), *limits = tcase_create("limits");
	Suite *suite = suite_create("own_stack");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(runs, a_thread_with_little_stack_gets_ours);
	tcase_add_test(runs, a_thread_with_enough_keeps_its_own);
	tcase_add_test(runs, ours_has_3_5_mib);
	tcase_add_test(runs, the_first_thread_on_another_stack_gets_ours);
	tcase_set_tags(limits, "real-kernel");
	tcase_add_test(limits, the_first_thread_under_a_limit_gets_ours);
	tcase_add_test(limits, without_memory_it_runs_on_what_there_is);
	tcase_add_test(runs, it_may_be_requested_within);
	suite_add_tcase(suite, runs);
	suite_add_tcase(suite, limits);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
