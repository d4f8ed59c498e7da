/* SPDX-License-Identifier: MIT
 * test_trace_live.c: traces are read while the library writes them, and large ones in little
 * memory.
 */
#include "report/trace/trace_reader.h"

#include "collector/stream/ranges.h"
#include "collector/file/trace_file.h"
#include "tests/support/collector_fixture.h"
#include "tests/support/trace_builder.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED /* needs memory of its own */
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#define THREADS 3

static int stop;

/* Numbered marks in nested ranges; a pause now and then and an end, so that a slow reader has a
 * chance. */
static void *write_on(void *unused)
{
	struct range_attributes attributes = { .payload_type = 1 };

	for (uint64_t i = 0; i < 60000 && !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		attributes.payload = i;
		range_push(0, i % 2 ? "odd" : "even", NULL);
		range_mark(0, "here", &attributes);
		if (i % 3)
			range_push(0, "inner", &attributes);
		if (i % 3)
			range_pop(0);
		range_pop(0);
		if (i % 64 == 0)
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
	return unused;
}

/* Every mark that is there follows the one before it; how many there are in all. */
static uint64_t check_marks(struct trace_reader *reader)
{
	struct trace_event event;
	uint64_t all = 0;
	uintptr_t next;

	while (reader_next(reader, &event) > 0) {
		if (event.kind != TRACE_MARK)
			continue;
		next = (uintptr_t)event.stream->user;
		if (((const struct trace_range *)event.record)->payload != next)
			ck_abort_msg("mark %lu comes after mark %ld",
				(unsigned long)((const struct trace_range *)event.record)->payload,
				(long)next - 1);
		event.stream->user = (void *)(next + 1);
		all++;
	}
	return all;
}

START_TEST(a_trace_that_is_being_written_is_whole_at_every_moment)
{
	pthread_t threads[THREADS];
	uint64_t last = 0;

	collector_start(0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_on, NULL), 0);
	range_push(0, "first", NULL);
	for (int i = 0; i < 60; i++) {
		struct trace_reader *reader = collector_open_trace();
		uint64_t marks = check_marks(reader), again;
		const struct trace_integrity *integrity = reader_integrity(reader);

		ck_assert_uint_ge(marks, last);
		if (!integrity->complete)
			ck_abort_msg("reading %d: %s; lost %lu, missing %lu, unended %lu, resumed "
				     "%lu, unmatched %lu, "
				     "unknown nodes %lu, names %lu",
				i,
				reader_warning(reader, 0) ? reader_warning(reader, 0)
							  : "incomplete",
				(unsigned long)integrity->lost_events,
				(unsigned long)integrity->missing_chunks,
				(unsigned long)integrity->unended,
				(unsigned long)integrity->resumed,
				(unsigned long)integrity->unmatched_ends,
				(unsigned long)integrity->unknown_nodes,
				(unsigned long)integrity->unknown_names);
		reader_rewind(reader);
		again = check_marks(reader);
		ck_assert_uint_eq(again, marks);
		reader_close(reader);
		last = marks;
		nanosleep(&(struct timespec){ 0, 3000000 }, NULL);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_gt(last, 0);
	collector_remove_folder();
}
END_TEST

/* Where a head's first bytes were taken away; what the writer is about to store there. 0: nowhere.
 */
static off_t unwritten_at;
static const uint32_t unwritten = TRACE_BLOCK_MAGIC;
static int naps;

/* In the C library's place: as the reader waits, the writer goes on. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
	int fd = unwritten_at ? open(trace_path(), O_WRONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
	if (++naps == 3) {
		ck_assert_int_eq(
			pwrite(fd, &unwritten, sizeof unwritten, unwritten_at), sizeof unwritten);
		unwritten_at = 0;
	}
	close(fd);
	return 0;
}

/* Takes the first bytes of the first slot's head away. */
static void unwrite_a_head(void)
{
	int fd = open(trace_path(), O_RDWR | O_CLOEXEC);
	struct trace_block head;
	const uint32_t nothing = 0;

	for (off_t at = TRACE_ALIGN;
		!unwritten_at && pread(fd, &head, sizeof head, at) == sizeof head;
		at += TRACE_ALIGN)
		if (head.magic == TRACE_BLOCK_MAGIC && head.type == TRACE_SLOT && head.stream)
			unwritten_at = at;
	ck_assert_int_gt(unwritten_at, 0);
	ck_assert_int_eq(pwrite(fd, &nothing, sizeof nothing, unwritten_at), sizeof nothing);
	close(fd);
}

START_TEST(a_head_that_is_just_being_written_is_waited_for)
{
	struct trace_reader *reader;

	collector_start(0);
	range_push(0, "open", NULL);
	range_mark(0, "here", &(struct range_attributes){ .payload_type = 1 });
	unwrite_a_head();
	reader = collector_open_trace();
	ck_assert_int_eq(naps, 3);
	ck_assert_uint_eq(check_marks(reader), 1);
	ck_assert_uint_eq(reader_integrity(reader)->skipped_bytes, 0);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
	collector_remove_folder();
}
END_TEST

/* Behind the last block, page by page, begins another whose head has so many bytes. */
static void begin_a_block(size_t bytes)
{
	struct trace_block head = { .magic = TRACE_BLOCK_MAGIC,
		.type = TRACE_SLOT,
		.extent = 4096,
		.head_crc = 0x12345678 };
	int fd = open(trace_path(), O_RDWR | O_CLOEXEC);
	off_t end = lseek(fd, 0, SEEK_END);

	ck_assert_int_eq(pwrite(fd, &head, bytes, (end + 4095) / 4096 * 4096), (ssize_t)bytes);
	ck_assert_int_eq(ftruncate(fd, (end + 4095) / 4096 * 4096 + 4096), 0);
	close(fd);
}

START_TEST(a_head_that_a_kill_kept_from_being_written_is_no_damage)
{
	struct trace_reader *reader;

	collector_start(0);
	range_push(0, "open", NULL);
	range_mark(0, "here", &(struct range_attributes){ .payload_type = 1 });
	for (size_t bytes = 4; bytes <= offsetof(struct trace_block, stream); bytes += 4)
		begin_a_block(bytes);
	reader = collector_open_trace();
	ck_assert_uint_eq(check_marks(reader), 1);
	ck_assert_uint_eq(reader_integrity(reader)->damaged_blocks, 0);
	ck_assert_uint_eq(reader_integrity(reader)->skipped_bytes, 0);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
	range_pop(0);
	collector_finish();
	reader = collector_open_trace(); /* a process that has ended was not about to make one */
	ck_assert(!reader_integrity(reader)->complete);
	reader_close(reader);
	collector_remove_folder();
}
END_TEST

/* Kilobytes of memory that this process has had at most, since forget_peak. */
static long peak_kilobytes(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long peak = 0;

	ck_assert_ptr_nonnull(status);
	while (fgets(line, sizeof line, status))
		if (sscanf(line, "VmHWM: %ld", &peak) == 1)
			break;
	fclose(status);
	return peak;
}

static void forget_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (file) {
		fputs("5", file);
		fclose(file);
	}
}

START_TEST(a_hundred_thousand_threads_are_read_in_little_memory)
{
	char path[] = "streams.XXXXXX", error[READER_ERROR_BYTES];
	struct trace_builder *builder = builder_new();
	struct trace_reader *reader;
	struct trace_event event;
	uint32_t ends = 0, node = build_node(builder, 0, "short", NULL, TRACE_NODE_RANGE);
	long before;
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	for (uint32_t stream = 1; stream <= 100000; stream++) {
		build_push_node(builder, stream, stream * UINT64_C(10), node);
		build_pop(builder, stream, stream * UINT64_C(10) + 15);
		build_seal(builder, stream, SEAL_WHOLE);
	}
	builder_write(builder, path);
	builder_free(builder);
	forget_peak();
	before = peak_kilobytes();
	reader = reader_open(path, error);
	unlink(path);
	ck_assert_msg(reader != NULL, "%s", error);
	while (reader_next(reader, &event) > 0)
		ends += event.kind == EVENT_STREAM_END;
	ck_assert_uint_eq(ends, 100000);
	ck_assert(reader_integrity(reader)->complete);
	reader_close(reader);
#ifndef SANITIZED
	ck_assert_int_lt(peak_kilobytes() - before, 24 * 1024);
#else
	(void)before;
#endif
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace live");
	TCase *cases = tcase_create("live");
	SRunner *runner;
	int failed;

	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, a_trace_that_is_being_written_is_whole_at_every_moment);
	tcase_add_test(cases, a_head_that_is_just_being_written_is_waited_for);
	tcase_add_test(cases, a_head_that_a_kill_kept_from_being_written_is_no_damage);
	tcase_add_test(cases, a_hundred_thousand_threads_are_read_in_little_memory);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
