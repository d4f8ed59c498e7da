/* SPDX-License-Identifier: MIT
 * A thread with descriptors of its own: what the program sees of them, and when it may have none.
 */
#include "collector/process/private_files.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t has_opened, may_end;
static int numbers[2];
static bool is_private;

static unsigned count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	ck_assert_ptr_nonnull(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Opens files, without a library function that ThreadSanitizer follows by descriptor numbers. */
static void *open_some(void *unused)
{
	is_private = private_files_begin(-1);
	for (int i = 0; i < 2; i++)
		numbers[i] = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0);
	sem_post(&has_opened);
	sem_wait(&may_end);
	return unused;
}

static pthread_t start_thread(void)
{
	pthread_t thread;

	sem_init(&has_opened, 0, 0);
	sem_init(&may_end, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, open_some, NULL), 0);
	sem_wait(&has_opened);
	return thread;
}

static void end_thread(pthread_t thread)
{
	sem_post(&may_end);
	pthread_join(thread, NULL);
}

START_TEST(the_program_and_its_child_see_no_descriptor_of_such_a_thread)
{
	const unsigned before = count_descriptors();
	pthread_t thread = start_thread();
	int status;
	pid_t child;

	ck_assert(is_private);
	ck_assert(!private_files_here());
	/* The lowest numbers are free in its table. */
	ck_assert_int_eq(numbers[0], 0);
	ck_assert_int_eq(numbers[1], 1);
	ck_assert_uint_eq(count_descriptors(), before);
	child = fork();
	if (!child)
		_exit(count_descriptors() != before);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	end_thread(thread);
	ck_assert_uint_eq(count_descriptors(), before);
}
END_TEST

START_TEST(the_reader_of_a_pipe_sees_its_end_at_once)
{
	int ends[2];
	pthread_t thread;
	char byte;

	ck_assert_int_eq(pipe(ends), 0);
	thread = start_thread();
	ck_assert(is_private);
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	end_thread(thread);
}
END_TEST

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

START_TEST(a_message_queue_still_notifies_the_program)
{
	const struct sigevent wanted = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	char name[40];
	pthread_t thread;
	mqd_t queue;

	snprintf(name, sizeof name, "/private-files-%d", (int)getpid());
	queue = mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
	if (queue == (mqd_t)-1)
		return; /* a kernel without queues */
	mq_unlink(name);
	signal(SIGUSR1, on_signal);
	ck_assert_int_eq(mq_notify(queue, &wanted), 0);
	thread = start_thread();
	ck_assert(!is_private);
	ck_assert_int_eq(mq_send(queue, "x", 1, 0), 0);
	ck_assert_int_eq(signals, 1);
	end_thread(thread);
	for (int i = 0; i < 2; i++)
		close(numbers[i]);
	mq_close(queue);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("private files");
	TCase *tests = tcase_create("private files");
	SRunner *runner;
	int failed;

	tcase_set_tags(tests, "real-kernel"); /* emulators leave it out */
	tcase_add_test(tests, the_program_and_its_child_see_no_descriptor_of_such_a_thread);
	tcase_add_test(tests, the_reader_of_a_pipe_sees_its_end_at_once);
	tcase_add_test(tests, a_message_queue_still_notifies_the_program);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
