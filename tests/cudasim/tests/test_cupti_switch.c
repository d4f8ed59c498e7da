/*
 * Each way in which the simulated CUPTI can be told to misbehave.
 * Every test runs for CUDA 12 and 13; `_i` is the major.
 */
#include "tests/cupti_client.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KERNEL CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
#define DRIVER CUPTI_CB_DOMAIN_DRIVER_API
#define DRIVER_LAUNCH CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel

/* Launches `count` kernels with one switch set and waits for their records. */
static void launch_with(int major, const char *name, const char *value, int count)
{
	CUfunction kernel;

	setenv(name, value, 1);
	client_open(major);
	kernel = client_kernel("k");
	client_enable(DRIVER, DRIVER_LAUNCH, 0);
	client_enable(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR, 0);
	client_record(KERNEL, 0);
	for (int i = 0; i < count; i++)
		client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
	cupti.cuptiActivityFlushAll(0);
}

static void CUPTIAPI ignore(
	void *user_data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
	(void)user_data;
	(void)domain;
	(void)cbid;
	(void)data;
}

START_TEST(refusals_have_the_given_code)
{
	static const CUptiResult codes[] = { CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
		CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INVALID_DEVICE,
		CUPTI_ERROR_UNKNOWN };
	CUptiResult code = codes[_i % 4];
	CUpti_SubscriberHandle handle = NULL;
	uint64_t stamp;
	char text[16];

	snprintf(text, sizeof text, "%d", (int)code);
	setenv("SIM_CUPTI_REFUSE", text, 1);
	client_load(12 + _i / 4);
	ck_assert_int_eq(cupti.cuptiSubscribe(&handle, ignore, NULL), code);
	ck_assert_ptr_null(handle);
	ck_assert_int_eq(cupti.cuptiActivityEnable(KERNEL), code);
	ck_assert_int_eq(cupti.cuptiActivityFlushAll(0), code);
	ck_assert_int_eq(cupti.cuptiGetTimestamp(&stamp), CUPTI_SUCCESS);
}
END_TEST

START_TEST(another_tool_is_named)
{
	char old[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
	CUpti_SubscriberParams params = {
		.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
		.oldSubscriberName = old,
		.oldSubscriberSize = sizeof old,
	};
	CUpti_SubscriberHandle handle;

	setenv("SIM_CUPTI_REFUSE", "39", 1);
	client_load(13);
	ck_assert_int_eq(cupti.cuptiSubscribe_v2(&handle, ignore, NULL, &params),
		CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	ck_assert_str_eq(old, "Nsight Systems");
}
END_TEST

/* As on a machine without a driver. */
START_TEST(without_a_device_only_pure_functions_work)
{
	CUpti_SubscriberHandle handle = NULL;
	uint32_t version;
	uint64_t stamp;
	size_t dropped;

	setenv("SIM_NO_DEVICE", "1", 1);
	client_load(_i);
	ck_assert_int_eq(cupti.cuptiGetVersion(&version), CUPTI_SUCCESS);
	ck_assert_int_eq(cupti.cuptiGetTimestamp(&stamp), CUPTI_SUCCESS);
	ck_assert_int_eq(cupti.cuptiSubscribe(&handle, ignore, NULL), CUPTI_ERROR_UNKNOWN);
	ck_assert_ptr_null(handle);
	ck_assert_int_eq(cupti.cuptiEnableDomain(1, NULL, DRIVER), CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(cupti.cuptiUnsubscribe(NULL), CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(cupti.cuptiActivityEnable(KERNEL), CUPTI_ERROR_UNKNOWN);
	ck_assert_int_eq(cupti.cuptiActivityFlushAll(1), CUPTI_ERROR_UNKNOWN);
	ck_assert_int_eq(cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM),
		CUPTI_ERROR_UNKNOWN);
	ck_assert_int_eq(cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), CUPTI_SUCCESS);
	ck_assert_int_eq(cupti.cuptiFinalize(), CUPTI_SUCCESS);
}
END_TEST

START_TEST(kinds_fail_with_the_given_code)
{
	setenv("SIM_CUPTI_ENABLE_FAIL", "38:14,17:21", 1);
	client_open(_i);
	ck_assert_int_eq(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION),
		CUPTI_ERROR_NOT_COMPATIBLE);
	ck_assert_int_eq(
		cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD), CUPTI_ERROR_INVALID_KIND);
	ck_assert_int_eq(cupti.cuptiActivityEnable(KERNEL), CUPTI_SUCCESS);
}
END_TEST

START_TEST(dropped_records_are_counted)
{
	launch_with(_i, "SIM_CUPTI_DROP", "4", 20);
	ck_assert_uint_eq(client_entries(KERNEL), 15);
	ck_assert_uint_eq(client.dropped, 5);
}
END_TEST

START_TEST(silently_dropped_records_are_not)
{
	launch_with(_i, "SIM_CUPTI_SILENT_DROP", "4", 20);
	ck_assert_uint_eq(client_entries(KERNEL), 15);
	ck_assert_uint_eq(client.dropped, 0);
}
END_TEST

START_TEST(untimed_kernels_have_no_times)
{
	size_t untimed = 0;

	launch_with(_i, "SIM_CUPTI_UNTIMED", "5", 20);
	ck_assert_uint_eq(client_entries(KERNEL), 20);
	for (size_t i = 0; i < 20; i++) {
		const uint8_t *record = client_entry(KERNEL, i);

		ck_assert_int_eq(
			CUPTI_GET(record, Kernel, start) == 0, CUPTI_GET(record, Kernel, end) == 0);
		untimed += CUPTI_GET(record, Kernel, start) == 0;
	}
	ck_assert_uint_eq(untimed, 4);
}
END_TEST

START_TEST(late_records_come_later)
{
	launch_with(_i, "SIM_CUPTI_LATE", "1000", 5);
	ck_assert_uint_eq(client_entries(KERNEL), 0);
	client_flush(true);
	ck_assert_uint_eq(client_entries(KERNEL), 0);
	usleep(1100000);
	client_flush(false);
	ck_assert_uint_eq(client_entries(KERNEL), 5);
}
END_TEST

START_TEST(unknown_kinds_can_be_stepped_over)
{
	launch_with(_i, "SIM_CUPTI_UNKNOWN", "3", 20);
	ck_assert_uint_eq(client_entries(KERNEL), 20);
	ck_assert_uint_eq(client_entries(200), 6);
	ck_assert_int_eq(client.buffers[0].end, CUPTI_ERROR_MAX_LIMIT_REACHED);
}
END_TEST

START_TEST(invalid_buffers_end_halfway)
{
	setenv("SIM_CUPTI_INVALID", "2", 1);
	client_open(_i);
	client.buffer_records = 4;
	client_record(KERNEL, 0);
	client_kernel("k");
	for (int i = 0; i < 16; i++)
		client_launch(client_kernel("k"), NULL, 1);
	client_finish();
	ck_assert_uint_eq(client.buffer_count, 4);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(client.buffers[i].records, i % 2 ? 2 : 4);
		ck_assert_int_eq(client.buffers[i].end,
			i % 2 ? CUPTI_ERROR_INVALID_KIND : CUPTI_ERROR_MAX_LIMIT_REACHED);
	}
}
END_TEST

/* Records that are complete at one delivery are shuffled: on a slow machine only a few each time. */
#define SHUFFLED 500

START_TEST(shuffled_records_are_all_there)
{
	bool disordered = false;
	uint64_t last = 0;

	launch_with(_i, "SIM_CUPTI_ORDER", "shuffle", SHUFFLED);
	ck_assert_uint_eq(client_entries(KERNEL), SHUFFLED);
	for (size_t i = 0; i < SHUFFLED; i++) {
		uint64_t start = CUPTI_GET(client_entry(KERNEL, i), Kernel, start);

		disordered = disordered || start < last;
		last = start;
	}
	ck_assert(disordered);
}
END_TEST

START_TEST(buffers_may_come_from_threads_that_end)
{
	launch_with(_i, "SIM_CUPTI_THREAD", "new", 50);
	ck_assert_uint_eq(client_entries(KERNEL), 50);
	for (size_t i = 0; i < client.buffer_count; i++)
		ck_assert_int_ne(client.buffers[i].tid, (int)gettid());
}
END_TEST

START_TEST(a_flush_may_be_slow)
{
	struct timespec before, after;

	launch_with(_i, "SIM_CUPTI_SLOW_FLUSH", "200", 5);
	clock_gettime(CLOCK_MONOTONIC, &before);
	client_flush(false);
	clock_gettime(CLOCK_MONOTONIC, &after);
	ck_assert_int_ge(
		(after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000,
		199);
	ck_assert_uint_eq(client_entries(KERNEL), 5);
}
END_TEST

/* Two kernels of 200 ms, and an unforced flush between their ends. */
static void flush_between(int major)
{
	CUfunction kernel;

	setenv("SIM_KERNEL_NS", "200000000", 1);
	client_open(major);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	client_launch(kernel, NULL, 1);
	usleep(300000);
	client_flush(false);
}

/* CUPTI's header on cuptiActivityFlushAll: "It doesn't return buffers which have one or more
 * incomplete records." */
START_TEST(a_buffer_with_an_incomplete_record_stays)
{
	flush_between(_i);
	ck_assert_uint_eq(client.buffer_count, 0);
	usleep(200000);
	client_flush(false);
	ck_assert_uint_eq(client_entries(KERNEL), 2);
}
END_TEST

START_TEST(incomplete_records_may_stay_alone)
{
	setenv("SIM_CUPTI_WHOLE", "0", 1);
	flush_between(_i);
	ck_assert_uint_eq(client_entries(KERNEL), 1);
}
END_TEST

START_TEST(a_forced_flush_may_wait_for_the_device)
{
	setenv("SIM_CUPTI_FORCED_WAITS", "1", 1);
	flush_between(_i);
	client_flush(true);
	ck_assert_uint_eq(client_entries(KERNEL), 2);
}
END_TEST

static void *call_flush(void *flags)
{
	cupti.cuptiActivityFlushAll(flags ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
	return NULL;
}

static void *call_disable(void *unused)
{
	cupti.cuptiActivityDisable(KERNEL);
	return unused;
}

static bool returns(void *(*call)(void *), void *argument)
{
	struct timespec until;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, call, argument), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	return pthread_timedjoin_np(thread, NULL, &until) != ETIMEDOUT;
}

START_TEST(calls_may_never_return)
{
	static const char *const values[] = { "flush", "forced", "disable" };
	const int which = _i % 3;

	setenv("SIM_CUPTI_HANG", values[which], 1);
	client_open(12 + _i / 3);
	client_record(KERNEL, 0);
	if (which > 0)
		ck_assert(returns(call_flush, NULL));
	ck_assert(!returns(which == 2 ? call_disable : call_flush, which == 1 ? &cupti : NULL));
}
END_TEST

/* Threads of this process that would take SIGUSR1, the first one left out. */
static int threads_that_take_signals(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
		unsigned long long blocked = 0;
		char path[300], line[256];
		FILE *status;

		if (entry->d_name[0] == '.' || atoi(entry->d_name) == (int)getpid())
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
		status = fopen(path, "r");
		while (status && fgets(line, sizeof line, status))
			if (!strncmp(line, "SigBlk:", 7))
				blocked = strtoull(line + 7, NULL, 16);
		if (status)
			fclose(status);
		count += !(blocked & 1ull << (SIGUSR1 - 1));
	}
	closedir(tasks);
	return count;
}

/* Nothing documents what signals the real library's threads block, so these have the mask of the
 * thread that enables the first kind, or that launches (SIM_CUPTI_WORKER=record). */
START_TEST(a_thread_comes_with_the_first_kind_or_record)
{
	const bool at_record = _i % 2;
	sigset_t all, before;
	CUfunction kernel;

	if (at_record)
		setenv("SIM_CUPTI_WORKER", "record", 1);
	client_open(12 + _i / 2);
	kernel = client_kernel("k");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	client_record(KERNEL, 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	client_launch(kernel, NULL, 1);
	usleep(100000); /* a new thread blocks signals until it runs */
	ck_assert_int_eq(threads_that_take_signals(), at_record);
}
END_TEST

/* cuda.h on CUDA_ERROR_ILLEGAL_ADDRESS: "any further CUDA work will return the same error". */
START_TEST(a_kernel_that_faults_ends_all_work)
{
	CUfunction kernel;

	setenv("SIM_FAULT", "2", 1);
	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	client_flush(true);
	ck_assert_uint_eq(client_entries(KERNEL), 1);
}
END_TEST

START_TEST(ids_wrap_and_leave_out_0)
{
	uint32_t first, last;

	launch_with(_i, "SIM_CUPTI_WRAP", "1", 1200);
	first = client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_ENTER, 0)->correlation;
	last = client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_ENTER, 1199)->correlation;
	ck_assert_uint_gt(first, UINT32_MAX - 1000);
	ck_assert_uint_lt(last, 1200);
	for (size_t i = 0; i < client.event_count; i++)
		ck_assert_uint_ne(client.events[i].correlation, 0);
}
END_TEST

START_TEST(a_fatal_error_is_reported_and_ends_everything)
{
	const struct event *fatal;

	launch_with(_i, "SIM_CUPTI_FATAL", "3", 10);
	ck_assert_uint_eq(client_events(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR), 1);
	fatal = client_event(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR, 0);
	ck_assert_int_ne(fatal->code, CUPTI_SUCCESS);
	ck_assert_uint_eq(fatal->order, client.event_count - 1);
	ck_assert_uint_eq(client_events(DRIVER, DRIVER_LAUNCH), 5);
	ck_assert_uint_eq(client.buffer_count, 0);
	ck_assert_int_eq(cupti.cuptiActivityFlushAll(1), CUPTI_ERROR_NOT_INITIALIZED);
}
END_TEST

/* Flushes in a forked child; true when it came back within that time. */
static bool child_comes_back(int limit_ms)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(cupti.cuptiActivityFlushAll(1) == CUPTI_ERROR_UNKNOWN ? 0 : 1);
	for (int ms = 0; ms < limit_ms; ms += 10) {
		if (waitpid(child, &status, WNOHANG) == child) {
			ck_assert_int_eq(status, 0);
			return true;
		}
		usleep(10000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return false;
}

START_TEST(in_a_child_nothing_works)
{
	launch_with(_i, "SIM_CUPTI_HANG_FORK", "0", 5);
	ck_assert(child_comes_back(20000));
}
END_TEST

START_TEST(in_a_child_a_flush_may_hang)
{
	launch_with(_i, "SIM_CUPTI_HANG_FORK", "1", 5);
	ck_assert(!child_comes_back(500));
}
END_TEST

START_TEST(calls_are_logged)
{
	char path[] = "/tmp/cupti_log_XXXXXX", text[4096];
	int file = mkstemp(path);
	ssize_t got;

	ck_assert_int_ge(file, 0);
	launch_with(_i, "SIM_CUPTI_LOG", path, 1);
	got = read(file, text, sizeof text - 1);
	close(file);
	unlink(path);
	ck_assert_int_gt(got, 0);
	text[got] = '\0';
	ck_assert_ptr_nonnull(strstr(text, " cuptiSubscribe\n"));
	ck_assert_ptr_nonnull(strstr(text, " cuptiActivityFlushAll\n"));
	ck_assert_ptr_null(strstr(text, "cuptiFinalize"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cupti switches");
	TCase *both = tcase_create("both majors"), *codes = tcase_create("codes");

	tcase_set_timeout(both, 20);
	tcase_set_timeout(codes, 20);
#define BOTH(test) tcase_add_loop_test(both, test, 12, 14);
	BOTH(without_a_device_only_pure_functions_work)
	BOTH(kinds_fail_with_the_given_code)
	BOTH(dropped_records_are_counted)
	BOTH(silently_dropped_records_are_not)
	BOTH(untimed_kernels_have_no_times)
	BOTH(late_records_come_later)
	BOTH(unknown_kinds_can_be_stepped_over)
	BOTH(invalid_buffers_end_halfway)
	BOTH(shuffled_records_are_all_there)
	BOTH(buffers_may_come_from_threads_that_end)
	BOTH(a_flush_may_be_slow)
	BOTH(a_buffer_with_an_incomplete_record_stays)
	BOTH(incomplete_records_may_stay_alone)
	BOTH(a_forced_flush_may_wait_for_the_device)
	BOTH(a_kernel_that_faults_ends_all_work)
	BOTH(ids_wrap_and_leave_out_0)
	BOTH(a_fatal_error_is_reported_and_ends_everything)
	BOTH(in_a_child_nothing_works)
	BOTH(in_a_child_a_flush_may_hang)
	BOTH(calls_are_logged)
	tcase_add_loop_test(codes, refusals_have_the_given_code, 0, 8);
	tcase_add_test(codes, another_tool_is_named);
	tcase_add_loop_test(codes, calls_may_never_return, 0, 6);
	tcase_add_loop_test(codes, a_thread_comes_with_the_first_kind_or_record, 0, 4);
	suite_add_tcase(suite, both);
	suite_add_tcase(suite, codes);
	return client_run(suite);
}
