/* SPDX-License-Identifier: MIT
 * Waiting for samples of rings. What the samples hold is tested by tests/system/test_native_samples.py.
 */
#include "collector/process/private_files.h"
#include "collector/sample/perf_ring.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

enum result { WENT_ON, GAVE_UP, NOT_POSSIBLE };

/* Waits while a signal comes, whose handler interrupts system calls. A debugger that attaches, and
 * SIGSTOP, interrupt this one too. */
static void *wait_in_thread(void *result)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	const struct itimerspec soon = { .it_value = { 0, 20000000 } };
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	*(enum result *)result = NOT_POSSIBLE;
	if (!private_files_begin(-1) || !perf_rings_can_wait() ||
		timer_create(CLOCK_MONOTONIC, &event, &timer))
		return NULL;
	timer_settime(timer, 0, &soon, NULL);
	*(enum result *)result = perf_rings_wait(2000) && signals == 1 ? WENT_ON : GAVE_UP;
	timer_delete(timer);
	return NULL;
}

START_TEST(a_wait_that_is_interrupted_is_not_the_last_one)
{
	struct sigaction action = { .sa_handler = count_signal };
	enum result result;
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_in_thread, &result), 0);
	pthread_join(thread, NULL);
	if (result == NOT_POSSIBLE)
		return; /* before Linux 5.9 */
	ck_assert_int_eq(result, WENT_ON);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("perf_ring");
	TCase *tests = tcase_create("perf_ring");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, a_wait_that_is_interrupted_is_not_the_last_one);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
