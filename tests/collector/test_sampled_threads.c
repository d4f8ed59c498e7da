/* SPDX-License-Identifier: MIT
 * The list of threads that are sampled: who is in it, and whose CPU time no look has seen.
 */
#include "tests/support/collector_fixture.h"

#include "collector/process/own_threads.h"
#include "collector/process/signal_frame.h"
#include "collector/process/thread_clock.h"
#include "collector/sample/sampled_threads.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 200 };

static atomic_uint tid_of_thread;
static atomic_bool may_end;
static unsigned found, ended;

static void count_found(struct sampled_thread *thread)
{
	found++;
	ck_assert_uint_ne(thread->tid, 0);
}

static void count_ended(struct sampled_thread *thread)
{
	ended++;
	ck_assert_uint_ne(thread->tid, 0);
}

static void burn(uint64_t ns)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec < ns);
}

static void *wait_for_end(void *own)
{
	if (own)
		own_thread_begin();
	tid_of_thread = (unsigned)syscall(SYS_gettid);
	while (!may_end)
		usleep(1000);
	if (own)
		own_thread_end();
	return NULL;
}

static pthread_t start_thread(void *own)
{
	pthread_t thread;

	tid_of_thread = 0;
	may_end = false;
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_end, own), 0);
	while (!tid_of_thread)
		usleep(1000);
	return thread;
}

static void end_thread(pthread_t thread)
{
	may_end = true;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	/* The kernel removes it a moment later. */
	while (!syscall(SYS_tgkill, getpid(), tid_of_thread, 0))
		usleep(1000);
}

/* All threads of this process; ThreadSanitizer adds some of its own. */
static unsigned threads_of_process(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned count = 0;

	ck_assert_ptr_nonnull(tasks);
	for (const struct dirent *entry; (entry = readdir(tasks));)
		count += entry->d_name[0] != '.';
	closedir(tasks);
	return count;
}

static void set_up(void)
{
	collector_start(0);
	ck_assert(sampled_threads_setup(count_found, count_ended));
}

START_TEST(threads_are_found_and_dropped)
{
	pthread_t thread = start_thread(NULL);
	const unsigned before = found;

	ck_assert(sampled_threads_update(false));
	ck_assert_uint_gt(found, before);
	ck_assert_uint_eq(found, threads_of_process());
	ck_assert_ptr_nonnull(sampled_threads_find(tid_of_thread));
	ck_assert_ptr_nonnull(sampled_threads_find((uint32_t)getpid()));
	end_thread(thread);
	ck_assert(sampled_threads_update(false));
	ck_assert_uint_eq(ended, 1);
	ck_assert_ptr_null(sampled_threads_find(tid_of_thread));
}
END_TEST

START_TEST(a_thread_of_pperf_is_not_sampled)
{
	pthread_t thread = start_thread(&tid_of_thread);

	ck_assert(own_thread_is(tid_of_thread));
	ck_assert(sampled_threads_update(true));
	ck_assert_ptr_null(sampled_threads_find(tid_of_thread));
	end_thread(thread);
	ck_assert(!own_thread_is(tid_of_thread));
}
END_TEST

START_TEST(many_threads_stay_apart)
{
	pthread_t threads[MANY];
	uint32_t tids[MANY], count;

	for (int i = 0; i < MANY; i++) {
		threads[i] = start_thread(NULL);
		tids[i] = tid_of_thread;
	}
	ck_assert(sampled_threads_update(false));
	sampled_threads(&count);
	ck_assert_uint_gt(count, MANY);
	ck_assert_uint_eq(count, threads_of_process());
	for (int i = 0; i < MANY; i++)
		ck_assert_uint_eq(sampled_threads_find(tids[i])->tid, tids[i]);
	may_end = true;
	for (int i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

static void *burn_and_end(void *unused)
{
	burn(30000000);
	return unused;
}

START_TEST(cpu_time_of_a_thread_that_no_look_has_seen_is_known)
{
	pthread_t thread;
	uint64_t before;
	uint32_t count;

	sampled_thread_look(&sampled_threads(&count)[0]);
	before = sampled_threads_unseen_ns();
	ck_assert_int_eq(pthread_create(&thread, NULL, burn_and_end, NULL), 0);
	pthread_join(thread, NULL);
	sampled_threads_update(false);
	sampled_thread_look(&sampled_threads(&count)[0]);
	ck_assert_uint_ge(sampled_threads_unseen_ns() - before, 29000000);
	/* What the looks have seen is not unseen. */
	before = sampled_threads_unseen_ns();
	burn(60000000);
	sampled_thread_look(&sampled_threads(&count)[0]);
	ck_assert_uint_lt(sampled_threads_unseen_ns(), before + 20000000);
}
END_TEST

static volatile sig_atomic_t below;

static void on_signal(int number)
{
	(void)number;
	below = signal_frame_is_below();
}

START_TEST(a_signal_handler_is_noticed)
{
	ck_assert(!signal_frame_is_below());
	signal(SIGUSR1, on_signal);
#if defined(__x86_64__)
	ck_assert(!signal_frame_is_below());
#endif
	raise(SIGUSR1);
	ck_assert(below);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sampled threads");
	TCase *tests = tcase_create("sampled threads"), *real = tcase_create("of a real kernel");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, set_up, collector_remove_folder);
	tcase_add_checked_fixture(real, set_up, collector_remove_folder);
	tcase_add_test(tests, threads_are_found_and_dropped);
	tcase_add_test(tests, a_thread_of_pperf_is_not_sampled);
	tcase_add_test(tests, many_threads_stay_apart);
	suite_add_tcase(suite, tests);
	tcase_add_test(real, cpu_time_of_a_thread_that_no_look_has_seen_is_known);
	tcase_add_test(real, a_signal_handler_is_noticed);
	tcase_set_tags(real, "real-kernel"); /* emulators leave it out */
	suite_add_tcase(suite, real);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
