/* SPDX-License-Identifier: MIT
 * test_json_scanner.c: JSON as real programs write it, cut anywhere, and JSON that somebody wrote
 * to do harm.
 */
#include "report/text/json_scanner.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A scan of these bytes, with zeros behind them, in memory of exactly that size. */
static struct json_scanner scan_of(const char *bytes, size_t length)
{
	char *copy = calloc(1, length + JSON_SLACK);

	memcpy(copy, bytes, length);
	return (struct json_scanner){ .at = copy, .end = copy + length };
}

static void done(struct json_scanner *scan, const char *begin)
{
	(void)scan;
	free((void *)(uintptr_t)begin);
}

/* All values of all depths; false where one cannot be read. */
static bool read_all(struct json_scanner *scan)
{
	struct json_text text;
	const char next = json_peek(scan);
	bool more;

	if (next != '{' && next != '[')
		return json_value(scan, &text);
	for (more = json_open(scan, next); more; more = json_next(scan, next == '{' ? '}' : ']'))
		if ((next == '{' && !json_key(scan, &text)) || !read_all(scan))
			return false;
	return !scan->problem;
}

static const struct {
	const char *text;
	int digits;
	int64_t value;
} numbers[] = {
	{ "1414456661601.577", 3, 1414456661601577 },
	{ "1623142623460121", 3, 1623142623460121000 },
	{ "0.0005", 3, 0 }, /* half to even */
	{ "0.0015", 3, 2 },
	{ "0.00150000000000000000000000001", 3, 2 },
	{ "0.0025", 3, 2 },
	{ "0.00250000000000000000000000001", 3, 3 },
	{ "-3.1416", 3, -3142 },
	{ "1.7e15", 3, 1700000000000000000 },
	{ "17E+2", 3, 1700000 },
	{ "12345e-2", 3, 123450 },
	{ "1e-30", 3, 0 },
	{ "0e999999", 3, 0 },
	{ "9223372036854775", 3, 9223372036854775000 },
	{ "5", 0, 5 },
	{ "-0", 3, 0 },
	{ "123456789012.345678901234567890", 3, 123456789012346 },
};

/* A number in a window of its own, until the next but one. */
static struct json_text number_of(const char *text, char form)
{
	static char windows[2][64 + JSON_SLACK];
	static unsigned turn;
	char *window = windows[turn++ % 2];

	memset(window, 0, sizeof windows[0]);
	memcpy(window, text, strlen(text));
	return (struct json_text){ window, strlen(text), form, false };
}

START_TEST(a_number_keeps_each_of_its_digits)
{
	const struct json_text text = number_of(numbers[_i].text, '0');
	int64_t value = -7;

	ck_assert(json_scaled(&text, numbers[_i].digits, &value));
	ck_assert_int_eq(value, numbers[_i].value);
}
END_TEST

START_TEST(a_number_that_does_not_fit_is_none)
{
	static const char *const texts[] = { "9223372036854775808", "1e400", "99999999999999999999",
		"-1e19", "1e", "x", "", "1.2.3", "--1" };
	int64_t value;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		const struct json_text text = number_of(texts[i], '0');

		ck_assert_msg(!json_scaled(&text, 3, &value), "%s", texts[i]);
	}
}
END_TEST

START_TEST(integers_may_be_texts_and_hexadecimal)
{
	static const struct {
		const char *text;
		char form;
		bool good;
		uint64_t value;
	} integers[] = { { "25738", '"', true, 25738 },
		{ "0x7f1818900000", '"', true, 0x7f1818900000 },
		{ "18446744073709551615", '0', true, UINT64_MAX },
		{ "18446744073709551616", '0', false, 0 }, { "stream 7", '"', false, 0 },
		{ "1.0", '0', false, 0 }, { "1e3", '0', false, 0 }, { "", '"', false, 0 } };
	const struct json_text negative = number_of("-196", '0');
	int64_t number;

	ck_assert(json_signed(&negative, &number) && number == -196);
	for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
		const struct json_text text = number_of(integers[i].text, integers[i].form);
		uint64_t value = 5;

		ck_assert_msg(
			json_unsigned(&text, &value) == integers[i].good, "%s", integers[i].text);
		ck_assert_msg(value == (integers[i].good ? integers[i].value : 5), "%s",
			integers[i].text);
	}
}
END_TEST

/* Digits are taken eight or sixteen at a time: each count of them, in front of a point and behind
 * it. */
START_TEST(numbers_of_every_length_are_what_their_digits_say)
{
	static const char digits[] = "9081726354907182635";
	char text[64];

	for (int whole_digits = 1; whole_digits <= 18; whole_digits++)
		for (int decimals = 0; decimals <= 4; decimals++) {
			uint64_t first, behind = 0, value = 0;
			struct json_text number;
			int64_t scaled = 0;

			sprintf(text, "%.*s", whole_digits, digits);
			first = strtoull(text, NULL, 10);
			number = number_of(text, '0');
			ck_assert_msg(json_unsigned(&number, &value) && value == first, "%s", text);
			if (decimals) {
				sprintf(text + whole_digits, ".%.*s", decimals, digits + 3);
				for (int i = 0; i < 4; i++)
					behind = behind * 10 +
						 (i < decimals ? (uint64_t)(digits[3 + i] - '0')
							       : 0);
			}
			number = number_of(text, '0');
			if (whole_digits > 14)
				continue;
			ck_assert_msg(json_scaled(&number, 4, &scaled) &&
					      (uint64_t)scaled == first * 10000 + behind,
				"%s", text);
		}
}
END_TEST

static const struct {
	const char *from, *to;
	size_t bytes;
} escapes[] = {
	{ "a\\n\\t\\\"\\\\\\/b", "a\n\t\"\\/b", 7 },
	{ "\\u00e9\\u20AC", "\xc3\xa9\xe2\x82\xac", 5 },
	{ "\\ud83d\\ude00", "\xf0\x9f\x98\x80", 4 },
	{ "\\ud83dx", "\xed\xa0\xbdx", 4 },                  /* a lone surrogate */
	{ "\\ude00\\ud83d", "\xed\xb8\x80\xed\xa0\xbd", 6 }, /* a pair the wrong way round */
	{ "\\ud83d\\u0041",
		"\xed\xa0\xbd"
		"A",
		4 },
	{ "\\u0000z", "\0z", 2 },
	{ "\\q\\u12", "\\q\\u12", 6 }, /* escapes that JSON does not have */
	{ "\xff\xfe", "\xff\xfe", 2 },
};

START_TEST(escapes_become_bytes_and_nothing_is_lost)
{
	const struct json_text text = { escapes[_i].from, strlen(escapes[_i].from), '"', true };
	char out[64];

	ck_assert_uint_eq(json_unescape(&text, out), escapes[_i].bytes);
	ck_assert_mem_eq(out, escapes[_i].to, escapes[_i].bytes);
}
END_TEST

static const char whole[] = " {\"a\": [1, -2.5e3, true, false, null, NaN, -Infinity, {}, [], "
			    "\"x\\\"y\"],\n\t\"b\\u0041\": {\"c\": \"\\\\\"}}";

START_TEST(what_is_cut_anywhere_asks_for_more_and_for_nothing_else)
{
	for (size_t length = 0; length < sizeof whole - 1; length++) {
		struct json_scanner scan = scan_of(whole, length);
		const char *begin = scan.at;

		ck_assert_msg(!read_all(&scan), "%zu", length);
		ck_assert_msg(scan.problem == JSON_MORE, "%zu: %s", length, scan.problem);
		done(&scan, begin);
	}
}
END_TEST

START_TEST(the_whole_is_read_and_passed_over_alike)
{
	struct json_scanner scan = scan_of(whole, sizeof whole - 1), again = scan;
	const char *begin = scan.at;
	struct json_text text;

	ck_assert(read_all(&scan));
	ck_assert_uint_eq(scan.nonstandard_values, 2);
	ck_assert(scan.at == scan.end);
	ck_assert(json_value(&again, &text));
	ck_assert_int_eq(text.form, '{');
	ck_assert(again.at == again.end);
	done(&scan, begin);
}
END_TEST

START_TEST(what_is_not_json_is_refused_where_it_is_wrong)
{
	static const struct {
		const char *text;
		size_t at;
	} wrong[] = { { "{\"a\" 1} ", 5 }, { "{\"a\": 1 \"b\": 2} ", 8 }, { "[1 2] ", 3 },
		{ "{a: 1} ", 1 }, { "[1,,] ", 3 }, { "[,] ", 1 }, { "{\"a\": 1,,} ", 8 },
		{ "{,} ", 1 }, { "[1,} ", 3 }, { "[01x] ", 3 }, { "[1.x] ", 3 }, { "[-x] ", 2 },
		{ "[tru] ", 1 }, { "[1e+] ", 4 }, { "[.5] ", 1 }, { "[1} ", 2 }, { "[} ", 1 },
		{ "[\"a\": 1] ", 4 }, { "\x01 ", 0 } };

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct json_scanner scan = scan_of(wrong[i].text, strlen(wrong[i].text));
		const char *begin = scan.at;

		ck_assert_msg(!read_all(&scan), "%s", wrong[i].text);
		ck_assert_msg(scan.problem && scan.problem != JSON_MORE, "%s", wrong[i].text);
		ck_assert_msg((size_t)(scan.at - begin) == wrong[i].at, "%s: at %zu", wrong[i].text,
			(size_t)(scan.at - begin));
		done(&scan, begin);
	}
}
END_TEST

START_TEST(a_comma_before_the_closing_bracket_is_no_harm)
{
	static const char *const texts[] = { "[1,] ", "[1 , \n] ", "{\"a\": 1,} ",
		"[[1,],{\"a\":[2,],\n},] " };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		for (size_t length = 1; length < strlen(texts[i]); length++) {
			struct json_scanner scan = scan_of(texts[i], length);
			const char *begin = scan.at;
			const bool complete = length == strlen(texts[i]) - 1;

			ck_assert_msg(read_all(&scan) == complete, "%s: %zu", texts[i], length);
			ck_assert_msg(complete ? !scan.problem && scan.at == begin + length
					       : scan.problem == JSON_MORE,
				"%s: %zu", texts[i], length);
			done(&scan, begin);
		}
}
END_TEST

START_TEST(brackets_are_counted_as_deep_as_allowed_and_must_match)
{
	char *deep = malloc(3 * JSON_DEPTH_MAX);
	struct json_scanner scan;
	struct json_text text;
	const char *begin;

	memset(deep, '[', JSON_DEPTH_MAX);
	memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	scan = scan_of(deep, 2 * JSON_DEPTH_MAX);
	begin = scan.at;
	ck_assert(json_value(&scan, &text));
	done(&scan, begin);
	memset(deep, '[', JSON_DEPTH_MAX + 1);
	scan = scan_of(deep, 2 * JSON_DEPTH_MAX);
	begin = scan.at;
	ck_assert(!json_value(&scan, &text) && scan.problem != JSON_MORE);
	done(&scan, begin);
	scan = scan_of("[{\"]\": [}]}]", 12);
	begin = scan.at;
	ck_assert(!json_value(&scan, &text) && scan.problem != JSON_MORE);
	done(&scan, begin);
	free(deep);
}
END_TEST

START_TEST(zeros_in_the_middle_are_no_end)
{
	struct json_scanner scan = scan_of("{\"a\": [\"\0\", \0], \"b\": 1}", 23);
	const char *begin = scan.at;
	struct json_text text;

	ck_assert(json_value(&scan, &text));
	ck_assert(scan.at == scan.end);
	done(&scan, begin);
	scan = scan_of("\0{}", 3);
	begin = scan.at;
	ck_assert(!json_value(&scan, &text));
	ck_assert(scan.problem != JSON_MORE);
	done(&scan, begin);
}
END_TEST

START_TEST(any_bytes_at_all_are_survived)
{
	static const char alphabet[] = "{}[]\":,\\u09dDeE.+-tfnNI \n\0a";
	char bytes[200];
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct json_scanner scan;
		const char *begin;
		size_t length = 0;

		do {
			seed = seed * 1103515245u + 12345u;
			bytes[length++] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
		} while (length < sizeof bytes && (seed >> 20) % 40);
		scan = scan_of(bytes, length);
		begin = scan.at;
		if (read_all(&scan))
			ck_assert(scan.at <= scan.end);
		else
			ck_assert(scan.problem && scan.at <= scan.end);
		done(&scan, begin);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("json_scan");
	TCase *values = tcase_create("values"), *forms = tcase_create("forms");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(
		values, a_number_keeps_each_of_its_digits, 0, sizeof numbers / sizeof *numbers);
	tcase_add_test(values, a_number_that_does_not_fit_is_none);
	tcase_add_test(values, integers_may_be_texts_and_hexadecimal);
	tcase_add_test(values, numbers_of_every_length_are_what_their_digits_say);
	tcase_add_loop_test(values, escapes_become_bytes_and_nothing_is_lost, 0,
		sizeof escapes / sizeof *escapes);
	tcase_add_test(forms, what_is_cut_anywhere_asks_for_more_and_for_nothing_else);
	tcase_add_test(forms, the_whole_is_read_and_passed_over_alike);
	tcase_add_test(forms, what_is_not_json_is_refused_where_it_is_wrong);
	tcase_add_test(forms, a_comma_before_the_closing_bracket_is_no_harm);
	tcase_add_test(forms, brackets_are_counted_as_deep_as_allowed_and_must_match);
	tcase_add_test(forms, zeros_in_the_middle_are_no_end);
	tcase_add_test(forms, any_bytes_at_all_are_survived);
	suite_add_tcase(suite, values);
	suite_add_tcase(suite, forms);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
