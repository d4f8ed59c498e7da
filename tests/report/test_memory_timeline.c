/* SPDX-License-Identifier: MIT
 * test_memory_timeline.c: memory timelines of torch.profiler: the level of each category is the
 * file's at each time; damaged and hostile ones are refused or read, within bounds.
 */
#include "report/import/timeline/memory_timeline.h"
#include "report/import/convert/convert.h"
#include "report/trace/trace_reader.h"
#include "tests/support/import_samples.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t dice = 88172645463325252u;

static size_t roll(size_t below)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return below ? (size_t)(dice % below) : 0;
}

static bool read_bytes(struct event_rows *rows, const char *bytes, size_t count)
{
	const int fd = memfd_create("timeline", MFD_CLOEXEC);
	struct gzip_file *file;
	bool good;

	ck_assert_int_eq((int64_t)write(fd, bytes, count), (int64_t)count);
	file = gzip_file_open(fd);
	good = memory_timeline_read(rows, file);
	gzip_file_close(file);
	return good;
}

static bool read_text(struct event_rows *rows, const char *text)
{
	return read_bytes(rows, text, strlen(text));
}

/* Returns what the rows of a category sum to at a time; NULL: of all. */
static int64_t level(const struct event_rows *rows, const char *category, int64_t time)
{
	int64_t sum = 0;

	for (size_t i = 0; i < rows->memory_count; i++) {
		const struct imported_memory *memory = &rows->memories[i];

		if (memory->time <= time &&
			(!category || !strcmp(string_table_get(rows->texts, memory->place).bytes,
					      category)))
			sum += memory->bytes;
	}
	return sum;
}

#define US INT64_C(1700000000000000000)

static const struct {
	const char *category;
	int64_t at, bytes;
} levels[] = { { "parameters", US + 1999, 4096 }, { "parameters", US + 9999, 4096 },
	{ "activations", US + 1999, 1536 }, { "activations", US + 3999, 512 },
	{ "activations", US + 9999, 0 }, { "gradients", US + 1999, 0 },
	{ "gradients", US + 3999, 2048 }, { "gradients", US + 9999, 1024 },
	{ "unknown", US + 3999, 0 }, { NULL, US + 1999, 5632 }, { NULL, US + 3999, 6656 },
	{ NULL, US + 9999, 5120 } };

START_TEST(levels_are_those_of_the_file)
{
	const char *const samples[] = { sample_timeline_sizes, sample_timeline_events };

	for (int sample = 0; sample < 2; sample++) {
		struct event_rows rows;

		ck_assert(read_text(&rows, samples[sample]));
		ck_assert(!rows.truncated && !rows.unreadable && !rows.skip_count);
		for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
			ck_assert_msg(
				level(&rows, levels[i].category, levels[i].at) == levels[i].bytes,
				"%d: %zu: %lld", sample, i,
				(long long)level(&rows, levels[i].category, levels[i].at));
		event_rows_free(&rows);
	}
}
END_TEST

/* Of sizes, what was allocated last is freed first, and each part has its own address. */
START_TEST(decreases_free_what_was_allocated_last)
{
	struct event_rows rows;

	/* Of 30 bytes in two steps, 25 are freed at once; 5 are left, of the first step. */
	ck_assert(read_text(&rows, "[[1, 2, 3, 4], [[0, 10], [0, 30], [0, 5], [0, 5]]]"));
	ck_assert_uint_eq(rows.memory_count, 5);
	for (size_t i = 0; i < rows.memory_count; i++) {
		int64_t after = 0;

		for (size_t j = 0; j < rows.memory_count; j++)
			if (rows.memories[j].address == rows.memories[i].address)
				after += rows.memories[j].bytes;
		ck_assert(after == 0 || (after == 5 && rows.memories[i].time == 1000));
	}
	event_rows_free(&rows);
}
END_TEST

START_TEST(other_json_is_refused)
{
	static const char *const texts[] = { "[]", "[[]]", "[[1]]", "[[1, 2, 3]]", "[[], {}]",
		"[[1, 2], [[0, 1]]]", "[[1], [[0, 1], [0, 2]]]", "[[2, 1], [[0, 1], [0, 1]]]",
		"[[-1, 1, 5, 0], [1, 2, 3]]", "[[-1, 1, 5, 0], [1, 2, 3, 4, 5]]",
		"[[-1, 1, 5, \"x\"]]", "[[1.5], [[0, 1]]]", "[[1], [[0, \"a\"]]]",
		"[[1, 2, 3, 4], [[0], [0], [0], 7]]", "[[{\"ph\": \"X\"}]]", "[[[[[[" };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct event_rows rows;

		ck_assert_msg(!read_text(&rows, texts[i]), "%s", texts[i]);
		ck_assert_ptr_nonnull(rows.problem);
		event_rows_free(&rows);
	}
}
END_TEST

START_TEST(values_that_cannot_be_are_counted)
{
	struct event_rows rows;

	ck_assert(read_text(&rows, "[[5], [[0, -7, 3]]]"));
	ck_assert_uint_eq(rows.skip_count, 1);
	ck_assert_uint_eq(rows.skips[0].events, 1);
	ck_assert_int_eq(level(&rows, NULL, INT64_MAX), 3);
	event_rows_free(&rows);
	ck_assert(read_text(&rows, "[[5, 2, 4611686018427387903, 0], [6, 9, 1, 0], [7, 2, 1, 99], "
				   "[8, 2, 1, 0]]"));
	ck_assert_uint_eq(rows.unreadable, 3);
	ck_assert_int_eq(level(&rows, NULL, INT64_MAX), 1);
	event_rows_free(&rows);
	/* All is from before the recording: the time is not known. */
	ck_assert(read_text(&rows, "[[-1, 1, 5, 0], [-1, 1, 6, 1]]"));
	ck_assert_int_eq(level(&rows, NULL, 0), 11);
	event_rows_free(&rows);
}
END_TEST

/* The trace made of the rows reads to its end. */
static void check_trace(struct event_rows *rows)
{
	const int fd = memfd_create("made", MFD_CLOEXEC);
	char path[64], error[READER_ERROR_BYTES];
	struct trace_reader *reader;
	struct trace_event event;
	int status;

	ck_assert(convert_rows(rows, fd));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	reader = reader_open(path, error);
	ck_assert_msg(reader != NULL, "%s", error);
	while ((status = reader_next(reader, &event)) > 0)
		;
	ck_assert_int_eq(status, 0);
	reader_close(reader);
	close(fd);
}

/* A cut file has what is before the cut, and says where it ends. */
START_TEST(cut_anywhere_it_is_read_up_to_there)
{
	const char *const samples[] = { sample_timeline_sizes, sample_timeline_events };

	for (int sample = 0; sample < 2; sample++) {
		uint64_t before = 0;

		for (size_t cut = 0; cut < strlen(samples[sample]); cut++) {
			struct event_rows rows;

			if (read_bytes(&rows, samples[sample], cut)) {
				ck_assert(rows.truncated && rows.problem);
				ck_assert_uint_le(rows.problem_at, cut);
				ck_assert_uint_ge(rows.events, before);
				before = rows.events;
				check_trace(&rows);
			} else {
				ck_assert_ptr_nonnull(rows.problem);
				ck_assert_uint_eq(before, 0);
			}
			event_rows_free(&rows);
		}
		ck_assert_uint_eq(before, sample ? 10 : 4);
	}
}
END_TEST

static const char *const words[] = { "9223372036854775807", "-1", "1e300", "[", "]", ",", "[[",
	"]]", "null", "\"", "{", "4611686018427387904", "-9223372036854775808", "0.5", " " };

START_TEST(with_damage_it_is_refused_or_read)
{
	size_t read = 0;

	for (unsigned i = 0; i < 20000; i++) {
		const char *sample = i % 2 ? sample_timeline_sizes : sample_timeline_events;
		char text[2048];
		size_t count = strlen(sample);
		struct event_rows rows;

		memcpy(text, sample, count);
		for (size_t changes = 1 + roll(3); changes-- > 0;) {
			const char *word = words[roll(sizeof words / sizeof *words)];
			const size_t at = roll(count);

			if (roll(2)) {
				text[at] = (char)roll(256);
				continue;
			}
			memmove(text + at + strlen(word), text + at, count - at);
			memcpy(text + at, word, strlen(word));
			count += strlen(word);
		}
		if (read_bytes(&rows, text, count)) {
			read++;
			ck_assert_uint_le(rows.memory_count, count);
			check_trace(&rows);
		}
		event_rows_free(&rows);
	}
	ck_assert_uint_gt(read, 4000);
}
END_TEST

/* Sizes that rise in a hundred steps and are freed in one: each step is one allocation, freed once. */
START_TEST(rows_are_bounded_by_the_numbers_of_the_file)
{
	enum { TIMES = 20000 };
	char *text = malloc(TIMES * 200), *at = text;
	struct event_rows rows;

	at += sprintf(at, "[[");
	for (int i = 0; i < TIMES; i++)
		at += sprintf(at, "%s%d", i ? "," : "", i);
	at += sprintf(at, "],[");
	for (int i = 0; i < TIMES; i++) {
		at += sprintf(at, "%s[0", i ? "," : "");
		for (int category = 0; category < 8; category++)
			at += sprintf(at, ",%d", i % 100 == 99 ? 0 : i % 100 * 1000 + 512);
		at += sprintf(at, "]");
	}
	at += sprintf(at, "]]");
	ck_assert(read_bytes(&rows, text, (size_t)(at - text)));
	ck_assert_uint_le(rows.memory_count, 2u * 8 * TIMES);
	ck_assert_int_eq(level(&rows, NULL, INT64_MAX), 0);
	event_rows_free(&rows);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory_timeline");
	TCase *tests = tcase_create("memory_timeline");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, levels_are_those_of_the_file);
	tcase_add_test(tests, decreases_free_what_was_allocated_last);
	tcase_add_test(tests, other_json_is_refused);
	tcase_add_test(tests, values_that_cannot_be_are_counted);
	tcase_add_test(tests, cut_anywhere_it_is_read_up_to_there);
	tcase_add_test(tests, with_damage_it_is_refused_or_read);
	tcase_add_test(tests, rows_are_bounded_by_the_numbers_of_the_file);
	tcase_set_timeout(tests, 120);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
