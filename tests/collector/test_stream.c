/* SPDX-License-Identifier: MIT
 * Streams, the dictionary and the file where the process misbehaves.
 */
#include "tests/support/collector_fixture.h"

#include "collector/file/dictionary.h"
#include "collector/process/private_files.h"
#include "collector/stream/ranges.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void fill(int pairs)
{
	for (int i = 0; i < pairs; i++) {
		range_push(0, "fill", NULL);
		range_pop(0);
	}
}

static uint64_t count_pushes(struct trace_reader *reader)
{
	struct trace_event event;
	uint64_t pushes = 0;

	while (reader_next(reader, &event) > 0)
		pushes += event.kind == TRACE_PUSH;
	return pushes;
}

START_TEST(nothing_is_recorded_and_no_file_made_before_there_is_something)
{
	collector_start(0);
	ck_assert(stream_enter_dictionary_only());
	ck_assert_uint_ne(name_id("kept", 4), 0);
	stream_leave();
	ck_assert_ptr_null(trace_header());
	ck_assert_int_eq(access("trace.bin", F_OK), -1);
	range_push(0, "now", NULL);
	ck_assert_int_eq(access("trace.bin", F_OK), 0);
}
END_TEST

START_TEST(without_settings_nothing_ever_happens)
{
	ck_assert_int_eq(range_push(0, "x", NULL), RANGE_REFUSED);
	ck_assert_int_eq(range_pop(0), RANGE_REFUSED);
	range_mark(0, "x", NULL);
	ck_assert(!stream_enter());
	ck_assert(!stream_enter_dictionary_only());
}
END_TEST

START_TEST(errno_stays_what_it_was)
{
	collector_start(128 << 10);
	errno = 77;
	fill(100000); /* opens, seals, and is full */
	range_start(0, "x", NULL);
	meta_set("key", "value");
	ck_assert_int_eq(errno, 77);
}
END_TEST

static volatile sig_atomic_t signals;

static void push_in_handler(int number)
{
	(void)number;
	signals++;
	range_push(0, "in a handler", NULL);
	range_pop(0);
}

/* 1: on a stack of its own, which lies above what is interrupted. */
START_TEST(a_signal_handler_may_call_and_what_it_interrupts_is_not_damaged)
{
	char above[65536];
	const stack_t own = { .ss_sp = above, .ss_size = sizeof above };
	const struct sigaction action = { .sa_handler = push_in_handler,
		.sa_flags = _i ? SA_ONSTACK : 0 };
	const struct itimerval tick = { { 0, 200 }, { 0, 200 } }, none = { { 0, 0 }, { 0, 0 } };
	struct trace_reader *reader;

	collector_start(0);
	if (_i)
		ck_assert_int_eq(sigaltstack(&own, NULL), 0);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
	fill(2000000);
	setitimer(ITIMER_REAL, &none, NULL);
	collector_finish();
	reader = collector_open_trace();
	ck_assert_int_gt(signals, 10);
	/* Each call of the handler is two events: recorded, or counted as re-entered. */
	ck_assert_uint_eq(
		count_pushes(reader) + reader_integrity(reader)->lost[TRACE_LOST_REENTERED] / 2,
		2000000 + (uint64_t)signals);
	ck_assert_uint_eq(reader_integrity(reader)->damaged_payloads, 0);
	ck_assert_uint_eq(reader_integrity(reader)->left_open, 0);
	reader_close(reader);
}
END_TEST

/* ThreadSanitizer takes the calls of libc for those of one table of descriptors. */
static void close_all(void)
{
	for (int fd = 3; fd < 2048; fd++)
		syscall(SYS_close, fd);
}

/* The rest of a test that closes what Check itself needs, in a child. Its number: 0, or which of
 * its steps failed. */
static int in_a_child(int (*steps)(void))
{
	int status;
	pid_t child;

	collector_start(0);
	child = fork();
	if (!child)
		_exit(steps());
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int closes_and_goes_on(void)
{
	struct trace_reader *reader;

	fill(10);
	close_all();
	fill(100000);
	collector_finish();
	reader = collector_open_trace();
	if (count_pushes(reader) != 100010)
		return 1;
	if (!reader_integrity(reader)->complete)
		return 2;
	reader_close(reader);
	return open("/dev/null", O_RDONLY) == 3 ? 0 : 3; /* as a daemon expects */
}

START_TEST(a_descriptor_that_the_program_closed_is_found_again)
{
	ck_assert_int_eq(in_a_child(closes_and_goes_on), 0);
}
END_TEST

static sem_t may_go_on;

/* Writes by a thread with descriptors of its own. */
static void *fill_with_private_files(void *is_private)
{
	*(bool *)is_private = trace_open_private() && private_files_here();
	sem_post(&may_go_on);
	fill(100000);
	return NULL;
}

static int closes_beside_private_files(void)
{
	struct trace_reader *reader;
	bool is_private = false;
	pthread_t thread;

	sem_init(&may_go_on, 0, 0);
	fill(10);
	if (pthread_create(&thread, NULL, fill_with_private_files, &is_private))
		return 1;
	sem_wait(&may_go_on);
	close_all();
	fill(100000);
	pthread_join(thread, NULL);
	collector_finish();
	reader = collector_open_trace();
	if (count_pushes(reader) != 200010)
		return 2;
	reader_close(reader);
	return is_private ? 0 : 3;
}

START_TEST(a_thread_with_private_files_writes_on_while_the_program_closes_all)
{
	ck_assert_int_eq(in_a_child(closes_beside_private_files), 0);
}
END_TEST

/* Returns how many descriptors of this thread are the trace. */
static unsigned descriptors_of_trace(void)
{
	struct stat trace, st;
	unsigned count = 0;

	ck_assert_int_eq(stat(trace_path(), &trace), 0);
	for (int fd = 0; fd < 1100; fd++)
		count += !fstat(fd, &st) && st.st_ino == trace.st_ino && st.st_dev == trace.st_dev;
	return count;
}

static int creates_with_private_files(void)
{
	struct trace_reader *reader;
	bool is_private = false;
	pthread_t thread;

	sem_init(&may_go_on, 0, 0);
	if (pthread_create(&thread, NULL, fill_with_private_files, &is_private))
		return 1;
	pthread_join(thread, NULL);
	if (!is_private || descriptors_of_trace() != 0)
		return 2;
	fill(100000);
	if (descriptors_of_trace() != 1)
		return 3;
	collector_finish();
	reader = collector_open_trace();
	if (count_pushes(reader) != 200000)
		return 4;
	reader_close(reader);
	return 0;
}

START_TEST(a_file_of_a_thread_with_private_files_is_no_descriptor_of_the_program)
{
	ck_assert_int_eq(in_a_child(creates_with_private_files), 0);
}
END_TEST

static int takes_the_descriptor(void)
{
	char text[16] = "";
	int mine;

	fill(10);
	close_all();
	unlink(trace_path()); /* so that it cannot be found again either */
	mine = open("mine", O_RDWR | O_CREAT, 0600);
	for (int fd = mine + 1; fd < 1100; fd++)
		dup2(mine, fd);
	if (write(mine, "mine", 4) != 4)
		return 1;
	fill(100000);
	if (pread(mine, text, sizeof text, 0) != 4 || strcmp(text, "mine"))
		return 2;
	return trace_header()->lost[TRACE_LOST_BAD_FILE] ? 0 : 3;
}

START_TEST(a_descriptor_that_the_program_took_is_left_alone)
{
	ck_assert_int_eq(in_a_child(takes_the_descriptor), 0);
}
END_TEST

static int in_a_clone(void *unused)
{
	(void)unused;
	fill(10);
	return trace_header() && trace_header()->pid == (uint32_t)getpid() ? 0 : 1;
}

START_TEST(a_child_of_a_raw_clone_makes_a_file_of_its_own)
{
	static char stack[256 << 10] __attribute__((aligned(16)));
	struct trace_reader *reader;
	int status;
	pid_t child;

	collector_start(0);
	fill(5);
	child = clone(in_a_clone, stack + sizeof stack, SIGCHLD, NULL);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	fill(5);
	reader = collector_open_trace();
	ck_assert_uint_eq(count_pushes(reader), 10);
	reader_close(reader);
}
END_TEST

static enum { OF_NOW, OLD, AGREES_TO_ALL, KERNELS } kernel;

/* Instead of the C library's. */
int madvise(void *start, size_t bytes, int advice)
{
	if (kernel == OLD && advice == MADV_WIPEONFORK) {
		errno = EINVAL;
		return -1;
	}
	if (kernel == AGREES_TO_ALL && advice != MADV_DONTNEED)
		return 0;
	return (int)syscall(SYS_madvise, start, bytes, advice);
}

START_TEST(where_the_kernel_empties_no_memory_a_forked_child_does)
{
	struct trace_reader *reader;
	int status;
	pid_t child;

	kernel = _i ? AGREES_TO_ALL : OLD;
	collector_start(0);
	range_push(0, "parent", NULL);
	child = fork();
	if (!child) {
		if (range_pop(0) != RANGE_REFUSED)
			_exit(1);
		fill(20000);
		collector_finish();
		reader = collector_open_trace();
		_exit(trace_header()->pid != (uint32_t)getpid() || count_pushes(reader) != 20000 ||
			!reader_integrity(reader)->complete);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	fill(5);
	ck_assert_int_eq(range_pop(0), 0);
	reader = collector_open_trace();
	ck_assert_uint_eq(count_pushes(reader), 6);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
}
END_TEST

static void *keep_adding(void *stop)
{
	char text[32];

	for (int i = 0; !__atomic_load_n((int *)stop, __ATOMIC_RELAXED); i++) {
		snprintf(text, sizeof text, "name %d", i % 100000);
		range_push(0, text, NULL);
		range_pop(0);
	}
	return NULL;
}

/* What a forked child does: nothing of it allocates, since another thread may have held the
 * allocator's lock as it was forked (and an allocator that a sanitizer brings does not release it).
 */
static void record_in_child(char *path)
{
	alarm(20);
	range_push(0, "child of a busy parent", NULL);
	range_pop(0);
	collector_finish();
	for (size_t i = 0; (path[i] = trace_path()[i]); i++)
		continue;
	_exit(0);
}

static void expect_one_push(const char *path)
{
	char error[READER_ERROR_BYTES] = "";
	struct trace_reader *reader = reader_open(path, error);

	ck_assert_msg(reader != NULL, "%s", error);
	ck_assert_uint_eq(count_pushes(reader), 1);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
}

START_TEST(forks_while_other_threads_add_names_do_not_hang_and_their_files_are_whole)
{
	char *path = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int stop = 0, status;
	pthread_t threads[2];

	collector_start(0);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, keep_adding, &stop);
	for (int i = 0; i < 30; i++) {
		pid_t child = fork();

		if (!child)
			record_in_child(path);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
		expect_one_push(path);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	munmap(path, 4096);
}
END_TEST

static void *one_mark(void *text)
{
	range_mark(0, text, NULL);
	return NULL;
}

START_TEST(a_thread_with_the_smallest_stack_may_be_the_first)
{
	pthread_attr_t attributes;
	pthread_t thread;
	struct trace_reader *reader;
	char *large = malloc(100001);

	memset(large, 'y', 100000);
	large[100000] = '\0';
	collector_start(0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	pthread_create(&thread, &attributes, one_mark, large);
	pthread_join(thread, NULL);
	range_push(0, large, NULL);
	reader = collector_open_trace();
	ck_assert_uint_eq(count_pushes(reader), 1);
	reader_close(reader);
	free(large);
}
END_TEST

static bool never(int fd)
{
	(void)fd;
	return false;
}

START_TEST(where_nothing_can_be_mapped_all_arrives_at_the_end_and_the_risk_is_said)
{
	struct trace_reader *reader;

	trace_may_map = never;
	collector_start(0);
	fill(100000);
	reader = collector_open_trace();
	ck_assert(reader_integrity(reader)->tail_at_risk);
	ck_assert_uint_le(count_pushes(reader), 100000);
	reader_close(reader);
	collector_finish();
	reader = collector_open_trace();
	ck_assert_uint_eq(count_pushes(reader), 100000);
	ck_assert(reader_integrity(reader)->complete);
	ck_assert_uint_eq(reader_header(reader)->flags & TRACE_TAIL_AT_RISK, TRACE_TAIL_AT_RISK);
	reader_close(reader);
}
END_TEST

static void *half_a_slot(void *unused)
{
	(void)unused;
	fill(500);
	return NULL;
}

START_TEST(where_nothing_can_be_mapped_a_thread_that_ends_on_a_full_disk_counts_what_it_had)
{
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t events = 0;

	trace_may_map = never;
	collector_start(64 << 10);
	fill(20000);
	for (int i = 0; i < 4; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, half_a_slot, NULL);
		pthread_join(thread, NULL);
	}
	collector_finish();
	reader = collector_open_trace();
	while (reader_next(reader, &event) > 0)
		events += event.kind == TRACE_PUSH || event.kind == EVENT_POP;
	ck_assert_uint_gt(events, 0);
	ck_assert_uint_eq(events + reader_integrity(reader)->lost_events, 2 * 22000);
	reader_close(reader);
}
END_TEST

START_TEST(a_dictionary_that_has_no_room_for_what_is_known_lets_nothing_begin)
{
	struct trace_reader *reader;
	char text[32];

	collector_start(100 << 10);
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof text, "known before: %d", i);
		ck_assert(stream_enter_dictionary_only());
		ck_assert_uint_ne(name_id(text, strlen(text)), 0);
		stream_leave();
	}
	fill(3000);
	collector_finish();
	reader = collector_open_trace();
	ck_assert_uint_eq(count_pushes(reader), 0);
	ck_assert_uint_eq(reader_integrity(reader)->lost_events, 6000);
	reader_close(reader);
}
END_TEST

static bool leave_no_memory(int fd)
{
	const struct rlimit none = { 0, RLIM_INFINITY };

	(void)fd;
	return !setrlimit(RLIMIT_AS, &none);
}

START_TEST(a_file_that_cannot_be_mapped_at_all_is_taken_back)
{
	const struct rlimit any = { RLIM_INFINITY, RLIM_INFINITY };

	collector_start(0);
	trace_may_map = leave_no_memory;
	ck_assert_int_eq(range_push(0, "x", NULL), RANGE_REFUSED);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &any), 0);
	ck_assert_int_eq(access("trace.bin", F_OK), -1);
	ck_assert_int_eq(trace_open_error(), ENOMEM);
}
END_TEST

START_TEST(meta_is_replaced_by_key)
{
	struct trace_reader *reader;
	struct trace_text value;

	collector_start(0);
	meta_set("key", "before there is a file");
	meta_set("other", "stays");
	fill(1);
	meta_set("key", "after");
	reader = collector_open_trace();
	value = reader_meta(reader, "key");
	ck_assert_uint_eq(value.length, 5);
	ck_assert_mem_eq(value.bytes, "after", 5);
	ck_assert(reader_meta(reader, "other").known);
	reader_close(reader);
}
END_TEST

static __thread bool comes_first;

static void *say_and_record(void *unused)
{
	fill(1);
	return unused;
}

/* Of two threads that come at once: the first is here for as long as the other takes to record
 * something. */
static void describe_slowly(void)
{
	pthread_t other;

	if (comes_first) {
		ck_assert_int_eq(pthread_create(&other, NULL, say_and_record, NULL), 0);
		pthread_join(other, NULL);
	}
	meta_set("command", "train");
}

static uint64_t offset_of(const char *bytes)
{
	static char file[1 << 20];
	FILE *trace = fopen("trace.bin", "rb");
	size_t count = fread(file, 1, sizeof file, trace);
	const char *found = memmem(file, count, bytes, strlen(bytes));

	fclose(trace);
	return found ? (uint64_t)(found - file) : UINT64_MAX;
}

START_TEST(no_thread_records_before_the_process_is_described)
{
	struct trace_reader *reader;

	comes_first = true;
	collector_start(0);
	dictionary_on_open(describe_slowly);
	fill(1);
	reader = collector_open_trace();
	ck_assert_uint_eq(count_pushes(reader), 2);
	ck_assert(reader_meta(reader, "command").known);
	reader_close(reader);
	ck_assert_uint_lt(offset_of("train"), offset_of("fill"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stream");
	TCase *tests = tcase_create("stream"), *real = tcase_create("of a real kernel");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, NULL, collector_remove_folder);
	tcase_add_checked_fixture(real, NULL, collector_remove_folder);
	tcase_add_test(tests, nothing_is_recorded_and_no_file_made_before_there_is_something);
	tcase_add_test(tests, without_settings_nothing_ever_happens);
	tcase_add_test(tests, errno_stays_what_it_was);
	tcase_add_loop_test(
		tests, a_signal_handler_may_call_and_what_it_interrupts_is_not_damaged, 0, 2);
	tcase_add_test(tests, a_descriptor_that_the_program_closed_is_found_again);
	tcase_add_test(tests, a_descriptor_that_the_program_took_is_left_alone);
	tcase_add_loop_test(
		tests, where_the_kernel_empties_no_memory_a_forked_child_does, 0, KERNELS - OLD);
	tcase_add_test(
		tests, forks_while_other_threads_add_names_do_not_hang_and_their_files_are_whole);
	tcase_add_test(tests, a_thread_with_the_smallest_stack_may_be_the_first);
	tcase_add_test(
		tests, where_nothing_can_be_mapped_all_arrives_at_the_end_and_the_risk_is_said);
	tcase_add_test(tests,
		where_nothing_can_be_mapped_a_thread_that_ends_on_a_full_disk_counts_what_it_had);
	tcase_add_test(tests, a_dictionary_that_has_no_room_for_what_is_known_lets_nothing_begin);
	tcase_add_test(tests, meta_is_replaced_by_key);
	tcase_add_test(tests, no_thread_records_before_the_process_is_described);
	suite_add_tcase(suite, tests);
	tcase_add_test(real, a_child_of_a_raw_clone_makes_a_file_of_its_own);
	tcase_add_test(real, a_thread_with_private_files_writes_on_while_the_program_closes_all);
	tcase_add_test(real, a_file_of_a_thread_with_private_files_is_no_descriptor_of_the_program);
	tcase_add_test(real, a_file_that_cannot_be_mapped_at_all_is_taken_back);
	tcase_set_tags(real, "real-kernel"); /* emulators leave it out */
	suite_add_tcase(suite, real);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
