/* SPDX-License-Identifier: MIT
 * test_import_damaged.c: traces of other tools with bytes of them changed, dropped, repeated and
 * moved, thousands of times: each is refused or made into a trace that reads to its end, within
 * bounds.
 */
#include "report/import/open_trace.h"
#include "report/import/convert/split_processes.h"
#include "report/import/convert/convert.h"
#include "report/import/kineto/kineto.h"
#include "report/import/nsys/nsys.h"
#include "tests/support/import_samples.h"
#include "report/base/gzip_file.h"
#include "tests/support/import_samples.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#define JSON_CASES 4000u
#define GZIP_CASES 500u
#define SQLITE_CASES 600u
#define SIZE_MOST (8u << 20) /* of what is made of a few thousand bytes */

static uint64_t dice = 88172645463325252u;

static size_t roll(size_t below)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return below ? (size_t)(dice % below) : 0;
}

struct bytes {
	unsigned char *at;
	size_t count;
};

static const char *const words[] = { "9223372036854775807", "-1", "1e300", "-9.999e99", "\"", "\\",
	"{", "[", "]", "}", ",", ":", "null", "\"ts\": 1e18, ", "\"dur\": 1e17, ", "\"dur\": -5, ",
	"4294967296", "\"correlation\": 1, ", "\"pid\": \"\", ", "0.0000000005" };

/* A few of: a byte changed, a part dropped, a part repeated elsewhere, a word put in. */
static struct bytes damaged(const unsigned char *whole, size_t count, bool text)
{
	struct bytes made = { malloc(count * 2 + 4096), count };

	memcpy(made.at, whole, count);
	for (size_t times = 1 + roll(6); times-- > 0 && made.count;) {
		const size_t at = roll(made.count),
			     length = roll(made.count - at < 300 ? made.count - at : 300);
		const char *word = words[roll(sizeof words / sizeof *words)];

		switch (roll(text ? 4 : 2)) {
		case 0:
			made.at[at] = (unsigned char)roll(256);
			break;
		case 1:
			made.at[at] ^= (unsigned char)(1u << roll(8));
			break;
		case 2:
			memmove(made.at + at, made.at + at + length, made.count - at - length);
			made.count -= length;
			break;
		default:
			memmove(made.at + at + strlen(word), made.at + at, made.count - at);
			memcpy(made.at + at, word, strlen(word));
			made.count += strlen(word);
		}
	}
	if (!roll(8))
		made.count = roll(made.count);
	return made;
}

static int file_of(struct bytes bytes)
{
	const int fd = memfd_create("damaged", MFD_CLOEXEC);

	ck_assert_int_eq((int64_t)write(fd, bytes.at, bytes.count), (int64_t)bytes.count);
	return fd;
}

/* SQLite wants a file with a name. */
static int named_file_of(struct bytes bytes, char *path, size_t room)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	snprintf(path, room, "%s/damaged-XXXXXX", folder && *folder ? folder : "/tmp");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq((int64_t)write(fd, bytes.at, bytes.count), (int64_t)bytes.count);
	return fd;
}

/* The trace made of it reads to its end. */
static void check_trace(struct event_rows *imported)
{
	const int fd = memfd_create("made", MFD_CLOEXEC);
	char path[64], error[READER_ERROR_BYTES];
	struct trace_reader *reader;
	struct trace_event event;
	int64_t latest = 0;
	int status;

	ck_assert(convert_rows(imported, fd));
	ck_assert_int_lt(lseek(fd, 0, SEEK_END), SIZE_MOST);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	reader = reader_open(path, error);
	ck_assert_msg(reader != NULL, "%s", error);
	while ((status = reader_next(reader, &event)) > 0) {
		ck_assert_int_ge((int64_t)event.time_ns, latest);
		latest = (int64_t)event.time_ns;
	}
	ck_assert_int_eq(status, 0);
	reader_close(reader);
	close(fd);
}

static bool try_json(int fd)
{
	struct gzip_file *file = gzip_file_open(fd);
	struct event_rows imported;
	const bool good = kineto_read(&imported, file);

	if (good)
		check_trace(&imported);
	else
		ck_assert_ptr_nonnull(imported.problem);
	event_rows_free(&imported);
	gzip_file_close(file);
	return good;
}

START_TEST(json_with_damage_is_refused_or_read)
{
	size_t read = 0;

	for (unsigned i = 0; i < JSON_CASES; i++) {
		const struct bytes bytes = damaged(
			(const unsigned char *)sample_kineto, sample_kineto_bytes(), true);

		read += try_json(file_of(bytes));
		free(bytes.at);
	}
	ck_assert_uint_gt(read, JSON_CASES / 2);
}
END_TEST

START_TEST(gzip_with_damage_is_refused_or_read)
{
	unsigned char packed[16384];
	z_stream stream = { .next_in = (unsigned char *)(uintptr_t)sample_kineto,
		.avail_in = (unsigned)sample_kineto_bytes(),
		.next_out = packed,
		.avail_out = sizeof packed };

	ck_assert_int_eq(
		deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
	for (unsigned i = 0; i < GZIP_CASES; i++) {
		const struct bytes bytes = damaged(packed, stream.total_out, false);

		try_json(file_of(bytes));
		free(bytes.at);
	}
	deflateEnd(&stream);
}
END_TEST

START_TEST(databases_with_damage_are_refused_or_read)
{
	struct bytes whole;
	size_t read = 0;

	whole.at = sample_nsys_export(&whole.count);

	for (unsigned i = 0; i < SQLITE_CASES; i++) {
		const struct bytes bytes = damaged(whole.at, whole.count, false);
		char path[256];
		const int fd = named_file_of(bytes, path, sizeof path);
		struct event_rows imported;
		char problem[320] = "";
		const bool good = nsys_read(&imported, fd, problem, sizeof problem);

		for (uint32_t process = 0; good && process < imported.process_count; process++) {
			struct event_rows part = split_process(&imported, process);

			check_trace(&part);
			split_process_free(&part);
		}
		if (!good)
			ck_assert_int_ne(*problem, '\0');
		read += good;
		event_rows_free(&imported);
		unlink(path);
		close(fd);
		free(bytes.at);
	}
	free(whole.at);
	ck_assert_uint_gt(read, SQLITE_CASES / 4);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("import_damage");
	TCase *all = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_test(all, json_with_damage_is_refused_or_read);
	tcase_add_test(all, gzip_with_damage_is_refused_or_read);
	tcase_add_test(all, databases_with_damage_are_refused_or_read);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
