/* SPDX-License-Identifier: MIT
 * What every call to CUDA goes through, without CUDA.
 */
#include "preload/cuda/driver_query.h"
#include "preload/cuda/traced_call.h"
#include "collector/file/dictionary.h"
#include "collector/file/loaded_objects.h"
#include "collector/stream/stream_state.h"
#include "collector/file/trace_file.h"
#include "preload/cuda/real.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct traced_function traced = { .name = "cudaFree", .type = CALL_FREE };
static struct traced_function callback = { .name = "cuMemFree_v2",
	.flags = TRACE_CALL_DRIVER | TRACE_CALL_CALLBACK };
static char program[] = "the program's call";

static void begin_trace(void)
{
	static struct trace_settings settings = { .limit_bytes = 64u << 20, .run_id = 1 };
	const char *folder = getenv("TMPDIR");

	snprintf(settings.output, sizeof settings.output, "%s/call.%d.bin",
		folder ? folder : "/tmp", (int)getpid());
	stream_configure(&settings);
	call_configure(true, "off");
	call_prepare();
}

static void end_trace(void)
{
	unlink(trace_path());
}

/* What this thread recorded last, whole, although it may say no more than what differs from an
 * earlier call. */
static struct trace_memory *last_record(void)
{
	static _Thread_local struct trace_memory copy;
	const char *payload = (const char *)(stream_tls.mine->slot + 1);
	struct trace_again again = { 0 };

	for (uint64_t at = 0; at < stream_tls.mine->slot->used;
		at += again.head.size ? again.head.size : 4) {
		memcpy(&again, payload + at, sizeof again);
		if (again.head.kind == TRACE_FREE)
			memcpy(&copy, payload + at, sizeof copy);
		if (again.head.kind != TRACE_AGAIN)
			continue;
		memcpy(&copy, payload + 8 * again.of, sizeof copy);
		memcpy(&copy.address, payload + at + sizeof again, again.head.size - sizeof again);
		copy.call.stamp = again.stamp;
		copy.call.duration = again.duration;
		copy.call.correlation += again.correlation;
	}
	return &copy;
}

/* Writes a record of the outermost call. NULL: it was not written. */
static struct trace_memory *record_call(struct traced_function *of, int result, const void *stream)
{
	const uint64_t rest[CALL_WORDS(trace_memory)] = { 0 };

	return call_write(of, TRACE_FREE, result, stream, rest, CALL_WORDS(trace_memory))
		       ? last_record()
		       : NULL;
}

/* One call that returns `result`, with nothing inside. NULL: not recorded. A copy of its record
 * else. */
static __attribute__((noinline)) const struct trace_memory *call(uint32_t *outer, int result)
{
	const struct trace_memory *record;

	*outer = call_begin(program);
	record = *outer ? NULL : record_call(&traced, result, CALL_NO_STREAM);
	call_end(*outer);
	return record;
}

/* A callback within the call that has begun: further down the stack, as it would be. */
static __attribute__((noinline)) uint32_t begin_inside(void)
{
	return call_begin(NULL);
}

START_TEST(a_record_says_when_what_and_how_it_ended)
{
	uint64_t before = clock_now();
	uint32_t outer;
	const struct trace_memory *record = call(&outer, 17);
	size_t bytes;

	ck_assert_ptr_nonnull(record);
	ck_assert_uint_eq(record->call.head.kind, TRACE_FREE);
	ck_assert_uint_eq(record->call.result, 17);
	ck_assert_uint_eq(record->call.device, UINT32_MAX);
	ck_assert_uint_ge(record->call.stamp - record->call.duration, before);
	ck_assert_uint_le(record->call.stamp, clock_now());
	ck_assert_str_eq(name_text(record->call.api, &bytes), "cudaFree");
	ck_assert_uint_eq(
		record->address | record->bytes | record->call.stack | record->call.correlation, 0);
}
END_TEST

START_TEST(only_the_outermost_call_is_one)
{
	uint32_t first = call_begin(program), second;

	ck_assert_uint_eq(first, 0);
	ck_assert_ptr_null(call(&second, 0));
	ck_assert_uint_eq(second, 1);
	ck_assert_uint_eq(call_tls.depth, 1);
	call_end(first);
	ck_assert_ptr_nonnull(call(&second, 0));
}
END_TEST

START_TEST(what_is_inside_lends_its_correlation)
{
	uint32_t outer = call_begin(program), inner = begin_inside();

	ck_assert(call_correlate(41));
	call_end(inner);
	ck_assert(call_correlate(41));
	ck_assert(!call_correlate(42));
	ck_assert_uint_eq(record_call(&traced, 0, CALL_NO_STREAM)->call.correlation, 41);
	call_end(outer);
	ck_assert(!call_correlate(43));
	ck_assert_uint_eq(call(&outer, 0)->call.correlation, 0);
}
END_TEST

START_TEST(a_callback_whose_end_never_came_is_forgotten)
{
	uint32_t outer;

	call_begin(NULL);
	call_begin(NULL);
	ck_assert_ptr_nonnull(call(&outer, 0));
	ck_assert_uint_eq(call_tls.depth, 0);
}
END_TEST

static __attribute__((noinline)) void begin_and_leave(void)
{
	call_begin(program);
	call_begin(program);
}

START_TEST(a_call_that_was_left_by_an_exception_is_forgotten)
{
	uint32_t outer;

	begin_and_leave();
	ck_assert_ptr_nonnull(call(&outer, 0));
	ck_assert_uint_eq(call_tls.depth, 0);
}
END_TEST

/* As a launch is: not all of its arguments are in registers, and its frame is larger. */
static __attribute__((noinline)) bool call_of_eight(
	long one, long two, long three, long four, long five, long six, long seven, long eight)
{
	volatile char large[600];
	uint32_t outer = call_begin(program);
	bool written;

	large[0] = (char)(one + two + three + four + five + six + seven + eight);
	written = !outer && record_call(&traced, large[0], CALL_NO_STREAM);
	call_end(outer);
	return written;
}

START_TEST(so_is_one_with_other_arguments_than_the_next)
{
	uint32_t outer;

	for (int i = 0; i < 2; i++) {
		begin_and_leave();
		ck_assert(call_of_eight(1, 2, 3, 4, 5, 6, 7, 8));
		begin_and_leave();
		ck_assert_ptr_nonnull(call(&outer, 0));
	}
	ck_assert_uint_eq(call_tls.depth, 0);
}
END_TEST

START_TEST(a_callback_is_recorded_where_nothing_is_around_it)
{
	uint32_t outer = call_begin(NULL);
	const struct trace_memory *record;

	ck_assert_uint_eq(outer, 0);
	call_correlate(7);
	call_mark_captured();
	call_set_context(3, 0);
	record = record_call(&callback, 0, (void *)0x10);
	ck_assert_uint_eq(record->call.head.flags,
		TRACE_CALL_DRIVER | TRACE_CALL_CALLBACK | TRACE_CALL_CAPTURED);
	ck_assert_uint_eq(record->call.correlation, 7);
	ck_assert_uint_eq(record->call.device, 3);
	call_end(outer);
	ck_assert_uint_eq(call(&outer, 0)->call.head.flags, 0);
}
END_TEST

START_TEST(the_duration_ends_where_the_real_call_returned)
{
	uint32_t outer = call_begin(program);
	uint64_t returned;

	call_returned();
	returned = clock_now();
	usleep(2000);
	ck_assert_uint_le(record_call(&traced, 0, CALL_NO_STREAM)->call.stamp, returned);
	call_end(outer);
	ck_assert_uint_gt(call(&outer, 0)->call.stamp, returned);
}
END_TEST

START_TEST(errno_is_kept)
{
	uint32_t outer;

	errno = ENOTTY;
	ck_assert_ptr_nonnull(call(&outer, 0));
	ck_assert_int_eq(errno, ENOTTY);
	real_find(program);
	ck_assert_int_eq(errno, ENOTTY);
	call_prepare();
	ck_assert_int_eq(errno, ENOTTY);
}
END_TEST

/* Bytes that the call's record takes. */
static uint64_t size_of(uint32_t outer, int result)
{
	const uint64_t before = stream_tls.mine->slot->used;

	ck_assert_ptr_nonnull(record_call(&traced, result, CALL_NO_STREAM));
	call_end(outer);
	return stream_tls.mine->slot->used - before;
}

START_TEST(a_call_like_an_earlier_one_says_so)
{
	const uint64_t whole = sizeof(struct trace_memory), again = sizeof(struct trace_again);

	ck_assert_uint_eq(size_of(call_begin(program), 0), whole);
	ck_assert_uint_eq(size_of(call_begin(program), 0), again);
	ck_assert_uint_eq(size_of(call_begin(program), 17), whole);
	ck_assert_uint_eq(size_of(call_begin(program), 0), again);
	for (uint64_t id = 1; id < 5;
		id++) { /* ids that are 1 and 65,535 apart, then 65,536, then back */
		const uint64_t ids[] = { 0, 1, 65535, 65536, 65535 };
		const uint32_t outer = call_begin(program);

		call_correlate(ids[id]);
		ck_assert_uint_eq(size_of(outer, 0), id < 3 ? again : whole);
		ck_assert_uint_eq(last_record()->call.correlation, ids[id]);
	}
	call_begin(program);
	call_tls.begin -= UINT64_C(1) << 33;
	ck_assert_uint_eq(size_of(0, 17), whole);
	ck_assert_uint_ge(last_record()->call.duration, UINT64_C(1) << 33);
}
END_TEST

START_TEST(settings_are_understood_or_not)
{
	uint32_t outer;

	ck_assert(call_configure(true, NULL) && call_configure(true, "alloc"));
	ck_assert(call_configure(true, "launch") && call_configure(true, "off"));
	ck_assert(!call_configure(true, "yes"));
	ck_assert(call_configure(false, "off"));
	ck_assert_ptr_null(call(&outer, 0));
	ck_assert_uint_eq(call_tls.depth, 0);
}
END_TEST

static bool refused, errno_kept;

static void call_in_handler(int number)
{
	uint32_t outer;

	(void)number;
	errno = ENOTTY;
	refused = call(&outer, 0) == NULL;
	errno_kept = errno == ENOTTY;
}

START_TEST(nothing_is_recorded_while_pperf_is_at_work)
{
	uint32_t outer;

	signal(SIGUSR1, call_in_handler);
	ck_assert(stream_enter());
	raise(SIGUSR1);
	stream_leave();
	ck_assert(refused && errno_kept);
	ck_assert_ptr_nonnull(call(&outer, 0));
}
END_TEST

START_TEST(streams_of_the_thread_have_their_own_handle)
{
	const struct traced_function twin = { .name = "cudaFreeAsync_ptsz", .per_thread = true };

	ck_assert_uint_eq(call_stream(&traced, NULL), 0);
	ck_assert_uint_eq(call_stream(&twin, NULL), 2);
	ck_assert_uint_eq(call_stream(&twin, (void *)0x50), 0x50);
	call_capture_ended();
	call_capture_began();
	ck_assert(!driver_is_capturing(NULL, true));
	call_capture_ended();
}
END_TEST

START_TEST(without_a_runtime_there_is_an_answer_and_it_is_not_kept)
{
	void *p = NULL;

	ck_assert_int_eq(real_find(program)->cudaMalloc(&p, 8), CUDA_ERROR_INITIALIZATION);
	ck_assert_ptr_eq(real_of(program), real_find(program));
	ck_assert_uint_eq(atomic_load(real_site(program)), 0);
	ck_assert_uint_eq(driver_device(), UINT32_MAX);
	ck_assert_ptr_null(driver_kernel_name(program));
}
END_TEST

static void *many_calls(void *bad)
{
	for (uint64_t i = 0; i < 3000; i++) {
		const uint64_t frames[] = { (uintptr_t)begin_trace, (uintptr_t)malloc, i << 12 };
		uint32_t outer;

		*(int *)bad |= real_of(program) != real_find(program) || !call(&outer, 0);
		if (stream_enter()) {
			loaded_objects_record(frames, 3);
			stream_leave();
		}
	}
	return NULL;
}

START_TEST(threads_do_not_wait_for_each_other_nor_mix)
{
	pthread_t threads[4];
	int bad[4] = { 0 };

	for (int i = 0; i < 4; i++)
		ck_assert(!pthread_create(&threads[i], NULL, many_calls, &bad[i]));
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(bad[i], 0);
	}
}
END_TEST

START_TEST(only_what_a_callback_left_says_how_many_are_around)
{
	const uint64_t others[] = { 0, 1, 2, UINT32_MAX, UINT64_MAX, CALL_TICKET,
		(uintptr_t)&traced, CALL_TICKET ^ UINT64_C(1) << 63 };
	uint32_t outer = 7;

	for (uint32_t i = 0; i < 5; i++) {
		ck_assert(call_is_ticket(call_ticket(i), &outer));
		ck_assert_uint_eq(outer, i);
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		ck_assert_msg(!call_is_ticket(others[i], &outer), "%zu", i);
}
END_TEST

int main(void)
{
	TCase *calls = tcase_create("calls");
	Suite *suite = suite_create("call");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(calls, begin_trace, end_trace);
	tcase_add_test(calls, a_record_says_when_what_and_how_it_ended);
	tcase_add_test(calls, only_what_a_callback_left_says_how_many_are_around);
	tcase_add_test(calls, only_the_outermost_call_is_one);
	tcase_add_test(calls, what_is_inside_lends_its_correlation);
	tcase_add_test(calls, a_callback_whose_end_never_came_is_forgotten);
	tcase_add_test(calls, a_call_that_was_left_by_an_exception_is_forgotten);
	tcase_add_test(calls, so_is_one_with_other_arguments_than_the_next);
	tcase_add_test(calls, a_callback_is_recorded_where_nothing_is_around_it);
	tcase_add_test(calls, the_duration_ends_where_the_real_call_returned);
	tcase_add_test(calls, errno_is_kept);
	tcase_add_test(calls, a_call_like_an_earlier_one_says_so);
	tcase_add_test(calls, settings_are_understood_or_not);
	tcase_add_test(calls, nothing_is_recorded_while_pperf_is_at_work);
	tcase_add_test(calls, streams_of_the_thread_have_their_own_handle);
	tcase_add_test(calls, without_a_runtime_there_is_an_answer_and_it_is_not_kept);
	tcase_add_test(calls, threads_do_not_wait_for_each_other_nor_mix);
	suite_add_tcase(suite, calls);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
