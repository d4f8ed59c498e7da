/* SPDX-License-Identifier: MIT
 * test_gzip_writer.c: what was written is read again, and the file does not depend on the number of
 * cores.
 */
#include "report/base/gzip_file.h"
#include "report/base/gzip_writer.h"
#include "report/base/ordered_work.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Numbers in text, and bytes that do not become smaller. */
static char *some_bytes(size_t count)
{
	char *bytes = malloc(count + 32);
	uint64_t seed = 1;

	for (size_t at = 0; at < count;) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (at % (3 * GZIP_PIECE_BYTES) < GZIP_PIECE_BYTES) {
			memcpy(bytes + at, &seed, sizeof seed);
			at += sizeof seed;
		} else {
			at += (size_t)sprintf(bytes + at, "\"ts\":%u,", (unsigned)(seed >> 44));
		}
	}
	return bytes;
}

static FILE *compress(const char *bytes, size_t count, size_t part)
{
	FILE *file = tmpfile();
	struct gzip_writer *writer = gzip_writer_open(fileno(file));

	for (size_t at = 0; at < count; at += part)
		ck_assert_int_eq(gzip_writer_write(
					 writer, bytes + at, count - at < part ? count - at : part),
			0);
	ck_assert_int_eq(gzip_writer_close(writer), 0);
	return file;
}

static size_t read_all(struct gzip_file *file, char *into, size_t room)
{
	size_t used = 0, got;

	while (used < room && (got = gzip_file_read(file, into + used, room - used)) > 0)
		used += got;
	return used;
}

static void expect(FILE *file, const char *bytes, size_t count)
{
	struct gzip_file *compressed = gzip_file_open(dup(fileno(file)));
	char *read = malloc(count + 1);

	ck_assert_uint_eq(read_all(compressed, read, count + 1), count);
	ck_assert_ptr_null(gzip_file_problem(compressed));
	ck_assert(!memcmp(read, bytes, count));
	gzip_file_close(compressed);
	free(read);
}

START_TEST(what_was_written_is_read)
{
	const size_t piece = GZIP_PIECE_BYTES,
		     counts[] = { 0, 1, piece - 1, piece, piece + 1, 2 * piece, 13 * piece + 7 };

	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
		char *bytes = some_bytes(counts[i]);
		FILE *file = compress(bytes, counts[i], i % 2 ? 1 << 16 : 3 * piece);

		expect(file, bytes, counts[i]);
		fclose(file);
		free(bytes);
	}
}
END_TEST

static size_t read_file(FILE *file, char *into, size_t room)
{
	return (size_t)pread(fileno(file), into, room, 0);
}

START_TEST(the_file_does_not_depend_on_the_number_of_cores)
{
	const size_t bytes_in = 11 * GZIP_PIECE_BYTES + 5, room = 16 << 20;
	char *bytes = some_bytes(bytes_in), *many = malloc(room), *one = malloc(room);
	FILE *file = compress(bytes, bytes_in, 1000);
	const size_t count = read_file(file, many, room);
	cpu_set_t all, first;

	fclose(file);
	ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&first);
	for (unsigned core = 0; core < CPU_SETSIZE && !CPU_COUNT(&first); core++)
		if (CPU_ISSET(core, &all))
			CPU_SET(core, &first);
	ck_assert_int_eq(sched_setaffinity(0, sizeof first, &first), 0);
	file = compress(bytes, bytes_in, bytes_in);
	ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
	ck_assert_uint_eq(read_file(file, one, room), count);
	ck_assert(!memcmp(one, many, count));
	fclose(file);
	free(bytes);
	free(many);
	free(one);
}
END_TEST

START_TEST(a_failed_write_is_reported)
{
	const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct gzip_writer *writer = gzip_writer_open(fd);

	ck_assert_int_ne(gzip_writer_close(writer), 0);
	close(fd);
}
END_TEST

/* ---- jobs ---- */

struct job {
	unsigned number, square;
};

static void square(void *job)
{
	struct job *of = job;

	if (of->number % 3 == 0)
		sched_yield();
	of->square = of->number * of->number;
}

static void expect_next(void *context, void *job)
{
	unsigned *next = context;
	const struct job *of = job;

	ck_assert_uint_eq(of->number, *next);
	ck_assert_uint_eq(of->square, *next * *next);
	++*next;
}

static void release(void *job)
{
	ck_assert_ptr_nonnull(job);
}

START_TEST(jobs_come_back_in_their_order)
{
	static const struct ordered_work_kind squares = { .job_bytes = sizeof(struct job),
		.run = square,
		.done = expect_next,
		.release = release };

	for (unsigned count = 0; count < 2000; count = count * 3 + 1) {
		unsigned next = 0;
		struct ordered_work *work = ordered_work_new(&squares, &next);

		for (unsigned i = 0; i < count; i++) {
			((struct job *)ordered_work_next(work))->number = i;
			ordered_work_start(work);
		}
		ordered_work_free(work);
		ck_assert_uint_eq(next, count);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gzip_writer");
	TCase *pieces = tcase_create("pieces");
	SRunner *runner;
	int failed;

	tcase_set_timeout(pieces, 60);
	tcase_add_test(pieces, what_was_written_is_read);
	tcase_add_test(pieces, the_file_does_not_depend_on_the_number_of_cores);
	tcase_add_test(pieces, a_failed_write_is_reported);
	tcase_add_test(pieces, jobs_come_back_in_their_order);
	suite_add_tcase(suite, pieces);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
