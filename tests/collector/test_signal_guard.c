/* SPDX-License-Identifier: MIT
 * Pieces of our work in which the program's signals and its cancellation wait: one in another, one
 * that a fault in it and a handler of the program's have left, and what is begun after that.
 */
#include "collector/process/signal_guard.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static sigjmp_buf back;
static volatile sig_atomic_t came;

static void leave(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void note(int number)
{
	(void)number;
	came++;
}

static void fault_in_a_piece(void)
{
	struct signal_guard guard;

	signal_guard_begin(&guard);
	raise(SIGSEGV);
	ck_abort_msg("a fault came back");
}

static void handlers(void)
{
	struct sigaction fault = { .sa_handler = leave }, alarm = { .sa_handler = note };

	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGALRM, &alarm, NULL);
}

/* Held back in between, and there at its end. */
static void expect_held_back(void)
{
	struct signal_guard guard;
	int before = came, cancel = -1;

	errno = 77;
	signal_guard_begin(&guard);
	raise(SIGALRM);
	ck_assert_int_eq(came, before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ck_assert_int_eq(cancel, PTHREAD_CANCEL_DISABLE);
	errno = 0;
	signal_guard_end(&guard);
	ck_assert_int_eq(came, before + 1);
	ck_assert_int_eq(errno, 77);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
	ck_assert_int_eq(cancel, PTHREAD_CANCEL_ENABLE);
}

/* Far below where the one stood that was left. */
static __attribute__((noinline)) void deeper(void)
{
	volatile char room[16384];

	room[0] = 1;
	expect_held_back();
	room[1] = room[0];
}

START_TEST(within_another_a_piece_ends_nothing)
{
	struct signal_guard outer, inner;
	int before = came;

	handlers();
	signal_guard_begin(&outer);
	signal_guard_begin(&inner);
	signal_guard_end(&inner);
	raise(SIGALRM);
	ck_assert_int_eq(came, before);
	signal_guard_end(&outer);
	ck_assert_int_eq(came, before + 1);
	expect_held_back();
}
END_TEST

START_TEST(after_a_piece_that_a_handler_left_signals_wait_again)
{
	handlers();
	if (!sigsetjmp(back, 1))
		fault_in_a_piece();
	deeper();
	expect_held_back();
}
END_TEST

START_TEST(where_the_program_blocks_everything_it_stays_so)
{
	struct signal_guard outer, inner;
	sigset_t all, now;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	signal_guard_begin(&outer);
	signal_guard_begin(&inner);
	signal_guard_end(&inner);
	signal_guard_end(&outer);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	ck_assert_int_eq(sigismember(&now, SIGALRM), 1);
	ck_assert_int_eq(sigismember(&now, SIGSEGV), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("quiet");
	TCase *tests = tcase_create("quiet");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, within_another_a_piece_ends_nothing);
	tcase_add_test(tests, after_a_piece_that_a_handler_left_signals_wait_again);
	tcase_add_test(tests, where_the_program_blocks_everything_it_stays_so);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
