/* SPDX-License-Identifier: MIT
 * test_output.c: whatever bytes a text has, its JSON and CSV forms are valid, harmless, and give
 * the bytes back.
 */
#include "report/text/output.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct output *out;

static void set_up(void)
{
	out = output_open("/dev/null");
}

static void tear_down(void)
{
	output_close(out, "/dev/null");
}

/* What was written so far, terminated. */
static const char *written(void)
{
	output_char(out, '\0');
	return out->buffer;
}

static unsigned hex(const char *digits, int count)
{
	char text[5] = "";

	memcpy(text, digits, (size_t)count);
	return (unsigned)strtoul(text, NULL, 16);
}

static size_t put_utf8(char *to, unsigned point)
{
	if (point < 0x80) {
		to[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		to[0] = (char)(0xc0 | point >> 6);
		to[1] = (char)(0x80 | (point & 0x3f));
		return 2;
	}
	if (point > 0xffff) {
		to[0] = (char)(0xf0 | point >> 18);
		to[1] = (char)(0x80 | (point >> 12 & 0x3f));
		to[2] = (char)(0x80 | (point >> 6 & 0x3f));
		to[3] = (char)(0x80 | (point & 0x3f));
		return 4;
	}
	to[0] = (char)(0xe0 | point >> 12);
	to[1] = (char)(0x80 | (point >> 6 & 0x3f));
	to[2] = (char)(0x80 | (point & 0x3f));
	return 3;
}

/* Reads a JSON string and restores bytes that are not UTF-8. Fails for an unpaired surrogate. */
static size_t from_json(const char *json, char *bytes)
{
	size_t used = 0;

	if (*json++ != '"')
		ck_abort_msg("no string");
	for (; *json != '"'; json++) {
		if (*json != '\\') {
			if ((unsigned char)*json < ' ' || *json == 0x7f)
				ck_abort_msg("a control character in JSON");
			bytes[used++] = *json;
		} else if (*++json == 'u') {
			unsigned point = hex(json + 1, 4);

			if (point >= 0xd800 && point < 0xdc00) { /* the first of two halves */
				ck_assert_uint_eq(hex(json + 7, 4) & 0xfc00, 0xdc00);
				point = 0x10000 + ((point & 0x3ff) << 10) +
					(hex(json + 7, 4) & 0x3ff);
				json += 6;
			}
			ck_assert(point < 0xd800 || point >= 0xe000);
			if (point >= 0xef80 && point <= 0xefff)
				bytes[used++] = (char)point;
			else
				used += put_utf8(bytes + used, point);
			json += 4;
		} else {
			bytes[used++] = *json == 'n'   ? '\n'
					: *json == 't' ? '\t'
					: *json == 'r' ? '\r'
						       : *json;
		}
	}
	if (json[1])
		ck_abort_msg("more than a string");
	return used;
}

static size_t from_csv(const char *csv, char *bytes)
{
	size_t used = 0;
	int quoted = *csv == '"';

	for (csv += quoted; *csv; csv++) {
		if (quoted && *csv == '"') {
			if (*++csv == '\0')
				break;
			if (*csv != '"')
				ck_abort_msg("a quote that is not doubled");
			bytes[used++] = '"';
		} else if (*csv != '\\') {
			if ((unsigned char)*csv < ' ' || (!quoted && *csv == ','))
				ck_abort_msg("a cell that ends too early");
			bytes[used++] = *csv;
		} else if (*++csv == 'x') {
			bytes[used++] = (char)hex(csv + 1, 2);
			csv += 2;
		} else {
			bytes[used++] = *csv;
		}
	}
	return used;
}

static void round_trip(const char *text, size_t bytes)
{
	char back[256];
	size_t count;

	out->used = 0;
	output_json_text(out, text, bytes);
	count = from_json(written(), back);
	if (count != bytes || memcmp(back, text, bytes))
		ck_abort_msg("%s is not what was meant", out->buffer);
	out->used = 0;
	output_csv_text(out, text, bytes);
	count = from_csv(written(), back);
	if (count != bytes || memcmp(back, text, bytes))
		ck_abort_msg("%s is not what was meant", out->buffer);
	if (strchr("=+-@", out->buffer[0]) && bytes)
		ck_abort_msg("%s may be a formula", out->buffer);
}

START_TEST(every_text_can_be_had_back)
{
	static const char alphabet[] = "aZ0 "
				       "\"\\\n\r\t\x1b\x7f\x80\xbf\xc2\x9b\xc3\xa9\xe2\x80\xae\xed"
				       "\xa0\xf0\x9f\x98\x80\xff=+-@,;/\xee\xbe\x80\xbf";
	uint64_t seed = 4711;
	char text[64];

	for (unsigned byte = 0; byte < 256; byte++)
		for (size_t at = 0; at < 24; at++) {
			memset(text, 'x', 24);
			text[at] = (char)byte;
			round_trip(text, 24);
			round_trip(text, at + 1);
		}
	for (int i = 0; i < 50000; i++) {
		size_t bytes;

		seed = seed * UINT64_C(6364136223846793005) + 1;
		bytes = seed >> 58;
		for (size_t at = 0; at < bytes; at++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			text[at] = seed >> 62 ? alphabet[(seed >> 32) % (sizeof alphabet - 1)]
					      : (char)(seed >> 40);
		}
		round_trip(text, bytes);
	}
}
END_TEST

START_TEST(no_cell_is_a_formula_anywhere)
{
	static const char *const cells[][2] = { { "=1+1", "\\x3d1+1" },
		{ "@SUM(A1)", "\\x40SUM(A1)" }, { "a;=1+1", "a;\\x3d1+1" },
		{ "\xef\xbc\x9d"
		  "1",
			"\\xef\\xbc\\x9d1" },
		{ "a=1", "a=1" }, { "\xf3\xa0\x81\xa1", "\\xf3\\xa0\\x81\\xa1" },
		{ "-1,2", "\"\\x2d1,2\"" } };

	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
		out->used = 0;
		output_csv_text(out, cells[i][0], strlen(cells[i][0]));
		ck_assert_str_eq(written(), cells[i][1]);
	}
}
END_TEST

START_TEST(numbers_are_written_as_printf_would)
{
	uint64_t seed = 1;
	char expected[64];

	for (int i = 0; i < 100000; i++) {
		uint64_t value = i < 2000 ? (uint64_t)i : seed >> (seed & 63);

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		out->used = 0;
		output_unsigned(out, value);
		output_char(out, ' ');
		output_signed(out, (int64_t)value);
		output_char(out, ' ');
		output_hex(out, value, 1, false);
		snprintf(expected, sizeof expected, "%lu %ld 0x%lx", (unsigned long)value,
			(long)value, (unsigned long)value);
		if (strcmp(written(), expected))
			ck_abort_msg("%s, not %s", out->buffer, expected);
	}
	out->used = 0;
	output_signed(out, INT64_MIN);
	ck_assert_str_eq(written(), "-9223372036854775808");
}
END_TEST

START_TEST(a_double_reads_back_as_itself)
{
	static const double values[] = { 0, 1, 0.1, 1.0 / 3, 1e300, 5e-324, 123456789.125, -2.5,
		1e21 };

	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		out->used = 0;
		output_double(out, values[i]);
		ck_assert(strtod(written(), NULL) == values[i]);
	}
	out->used = 0;
	output_double(out, 0.1);
	ck_assert_str_eq(written(), "0.1");
	out->used = 0;
	output_json_double(out, 0.0 / values[0]);
	ck_assert_str_eq(written(), "\"nan\"");
}
END_TEST

START_TEST(more_than_the_buffer_is_written_whole)
{
	char path[] = "out.XXXXXX", read_back[64];
	int fd = mkstemp(path);
	struct output *file;
	FILE *reader;
	size_t bytes = 0, got;
	char *large = malloc(3 * OUTPUT_BUFFER_BYTES);

	ck_assert(fd >= 0 && large);
	close(fd);
	file = output_open(path);
	memset(large, 'y', 3 * OUTPUT_BUFFER_BYTES);
	for (int i = 0; i < 10000; i++)
		output_bytes(file, "0123456789abcdef", 16);
	output_bytes(file, large, 3 * OUTPUT_BUFFER_BYTES);
	output_char(file, 'z');
	ck_assert(output_close(file, path));
	reader = fopen(path, "r");
	ck_assert_ptr_nonnull(reader);
	unlink(path);
	while ((got = fread(read_back, 1, 16, reader)) > 0) {
		if (bytes < 160000)
			ck_assert_mem_eq(read_back, "0123456789abcdef", 16);
		bytes += got;
	}
	ck_assert_int_eq(read_back[0], 'z');
	ck_assert_uint_eq(bytes, 160000 + 3 * OUTPUT_BUFFER_BYTES + 1);
	fclose(reader);
	free(large);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("out");
	TCase *cases = tcase_create("out");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, every_text_can_be_had_back);
	tcase_add_test(cases, no_cell_is_a_formula_anywhere);
	tcase_add_test(cases, numbers_are_written_as_printf_would);
	tcase_add_test(cases, a_double_reads_back_as_itself);
	tcase_add_test(cases, more_than_the_buffer_is_written_whole);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
