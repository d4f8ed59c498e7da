/* SPDX-License-Identifier: MIT
 * test_format_number.c: figures and names as people get to see them.
 */
#include "report/text/format_number.h"
#include "report/text/shorten_path.h"
#include "report/base/escape.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	int64_t value;
	uint64_t divisor;
	unsigned decimals;
	const char *text;
} fixed[] = {
	{ 8779500000, 1000000000, 2, "8.78" },
	{ 809500000, 1000000000, 4, "0.8095" },
	{ 404750000, 1000000000, 4, "0.4048" }, /* half to even */
	{ 404650000, 1000000000, 4, "0.4046" },
	{ 404650001, 1000000000, 4, "0.4047" },
	{ -404750000, 1000000000, 4, "-0.4048" },
	{ 0, 1000, 2, "0.00" },
	{ -4, 1000, 2, "0.00" },
	{ 5, 1000, 2, "0.00" },
	{ 15, 1000, 2, "0.02" },
	{ 25, 1000, 2, "0.02" },
	{ 7, 1, 0, "7" },
	{ 7, 1, 2, "7.00" },
	{ INT64_MIN, 1, 0, "-9223372036854775808" },
	{ INT64_MAX, 1, 4, "9223372036854775807.0000" },
	{ INT64_MAX, 1000000000, 9, "9223372036.854775807" },
	{ 3, 2, 0, "2" },
	{ 5, 2, 0, "2" },
	{ 999999999, 1000000000, 2, "1.00" },
};

START_TEST(figures_are_exact_and_rounded_half_to_even)
{
	char out[FORMAT_NUMBER_BYTES];

	ck_assert_uint_eq(format_fixed(out, fixed[_i].value, fixed[_i].divisor, fixed[_i].decimals),
		strlen(fixed[_i].text));
	ck_assert_str_eq(out, fixed[_i].text);
}
END_TEST

START_TEST(percentages_have_one_decimal_and_a_whole_is_100)
{
	char out[FORMAT_NUMBER_BYTES];

	format_percent(out, 642, 1000);
	ck_assert_str_eq(out, "64.2 %");
	format_percent(out, 1000, 1000);
	ck_assert_str_eq(out, "100 %");
	format_percent(out, -5, 10);
	ck_assert_str_eq(out, "-50.0 %");
	format_percent(out, 5, 0);
	ck_assert_str_eq(out, "0 %");
	format_percent(out, INT64_MAX, INT64_MAX);
	ck_assert_str_eq(out, "100 %");
}
END_TEST

START_TEST(figures_take_the_largest_unit_that_fits)
{
	char out[FORMAT_NUMBER_BYTES];

	format_with_unit(out, UNIT_TIME, 12310000, false, false);
	ck_assert_str_eq(out, "12.31 ms");
	format_with_unit(out, UNIT_TIME, 532, false, false);
	ck_assert_str_eq(out, "532 ns");
	format_with_unit(out, UNIT_TIME, 1500, false, false);
	ck_assert_str_eq(out, "1.50 \xc2\xb5s");
	format_with_unit(out, UNIT_TIME, 1500, false, true);
	ck_assert_str_eq(out, "1.50 us");
	format_with_unit(out, UNIT_BYTES, 8780000000, false, false);
	ck_assert_str_eq(out, "8.78 GB");
	format_with_unit(out, UNIT_BYTES, 1 << 20, true, false);
	ck_assert_str_eq(out, "1.00 MiB");
	format_with_unit(out, UNIT_BYTES, -2000, false, false);
	ck_assert_str_eq(out, "-2.00 kB");
	format_with_unit(out, UNIT_COUNT, 1234567, false, false);
	ck_assert_str_eq(out, "1,234,567");
	format_with_unit(out, UNIT_COUNT, -1234, false, false);
	ck_assert_str_eq(out, "-1,234");
	format_with_unit(out, UNIT_COUNT, 123, false, false);
	ck_assert_str_eq(out, "123");
}
END_TEST

static const struct {
	const char *raw, *shown, *ascii;
	size_t width;
} names[] = {
	{ "layer", "layer", "layer", 5 },
	{ "\x1b[31mred", "\\x1b[31mred", "\\x1b[31mred", 11 },
	{ "a\nb\tc", "a\\x0ab\\x09c", "a\\x0ab\\x09c", 11 },
	{ "\xc2\xb5s", "\xc2\xb5s", "\\u00b5s", 2 },
	{ "\xff\xfe", "\\xff\\xfe", "\\xff\\xfe", 8 },
	{ "\xe4\xb8\xad\xe6\x96\x87", "\xe4\xb8\xad\xe6\x96\x87", "\\u4e2d\\u6587", 4 },
	{ "e\xcc\x81", "e\xcc\x81", "e\\u0301", 1 },
	{ "\xe2\x80\xae"
	  "evil",
		"\\u202eevil", "\\u202eevil", 10 },
	{ "\xc2\x9b"
	  "31m",
		"\\u009b31m", "\\u009b31m", 9 },
	{ "\xe2\x80\x8b", "\\u200b", "\\u200b", 6 },
	{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\\U0001f600", 2 },
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80", 12 },
	{ "\xc0\x80", "\\xc0\\x80", "\\xc0\\x80", 8 },
	{ "\xe2\x82", "\\xe2\\x82", "\\xe2\\x82", 8 },
	{ "\x7f", "\\x7f", "\\x7f", 4 },
	{ "", "", "", 0 },
};

START_TEST(nothing_that_a_terminal_would_act_on_gets_through)
{
	char out[256];
	size_t length = escape_text(out, sizeof out, names[_i].raw, strlen(names[_i].raw), false);

	ck_assert_str_eq(out, names[_i].shown);
	ck_assert_uint_eq(escaped_width(out, length), names[_i].width);
	escape_text(out, sizeof out, names[_i].raw, strlen(names[_i].raw), true);
	ck_assert_str_eq(out, names[_i].ascii);
}
END_TEST

START_TEST(names_are_shortened_in_their_middle)
{
	char text[64] = "transformer.layer.attention_7";

	escaped_shorten(text, sizeof text, 12, false);
	ck_assert_str_eq(text, "trans\xe2\x80\xa6"
			       "tion_7");
	ck_assert_uint_eq(escaped_width(text, strlen(text)), 12);
	strcpy(text, "transformer.layer.attention_7");
	escaped_shorten(text, sizeof text, 12, true);
	ck_assert_str_eq(text, "tran...ion_7");
	strcpy(text, "short");
	escaped_shorten(text, sizeof text, 12, false);
	ck_assert_str_eq(text, "short");
	strcpy(text, "step / encoder / layers.3 / aten::mm");
	escaped_shorten_path(text, sizeof text, 22, false);
	ck_assert_str_eq(text, "\xe2\x80\xa6/ layers.3 / aten::mm");
	strcpy(text, "step / encoder / layers.3 / aten::mm");
	escaped_shorten_path(text, sizeof text, 36, true);
	ck_assert_str_eq(text, "step / encoder / layers.3 / aten::mm");
	for (size_t columns = 0; columns < 16;
		columns++) { /* wide characters are never cut in two */
		strcpy(text,
			"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87");
		escaped_shorten(text, sizeof text, columns, false);
		ck_assert_uint_le(escaped_width(text, strlen(text)), columns > 12 ? 12 : columns);
	}
}
END_TEST

/* A first name that is as long as a line does not leave that line empty. */
START_TEST(a_long_first_name_begins_on_the_first_line)
{
	for (size_t columns = 8; columns < 60; columns++) {
		const struct path_shortening how = { .two_lines = true, .differs_at = SIZE_MAX };
		char *text = shorten_path("execute_context_0_generation_32 / step / aten::copy_",
			columns, &how, columns % 2);

		ck_assert_msg(!text || *text != '\n', "%zu columns: %s", columns, text);
		free(text);
	}
}
END_TEST

/* The dots are three bytes, and may take the place of one. */
START_TEST(what_is_shortened_fits_its_columns_and_its_room)
{
	static const char *const texts[] = { "transformer.layer.attention_7",
		"EvT\\xff\xcd\x9b"
		"104iepl\\xcc3fo",
		"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad", "ab",
		"a\xcd\x9b\xcd\x9b\xcd\x9b\xcd\x9b"
		"b" };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		for (size_t columns = 0; columns < 30; columns++)
			for (size_t more = 0; more < 4; more++) {
				const size_t room = strlen(texts[i]) + 1 + more;
				char *text = malloc(room);

				strcpy(text, texts[i]);
				ck_assert_uint_eq(escaped_shorten(text, room, columns, more == 3),
					strlen(text));
				ck_assert_uint_le(escaped_width(text, strlen(text)), columns);
				free(text);
			}
}
END_TEST

START_TEST(a_figure_beyond_every_integer_is_the_largest)
{
	ck_assert_uint_eq(clamp_to_u64(2.9L), 2);
	ck_assert_uint_eq(clamp_to_u64(-0.5L), 0);
	ck_assert_uint_eq(clamp_to_u64(-1e300L), 0);
	ck_assert_uint_eq(clamp_to_u64((long double)NAN), 0);
	ck_assert_uint_eq(clamp_to_u64(0x1p64L - 1), UINT64_MAX);
	ck_assert_uint_eq(clamp_to_u64(0x1p64L), UINT64_MAX);
	ck_assert_uint_eq(clamp_to_u64((long double)INFINITY), UINT64_MAX);
	ck_assert_int_eq(clamp_to_i64(-2.9L), -2);
	ck_assert_int_eq(clamp_to_i64(1e300L), INT64_MAX);
	ck_assert_int_eq(clamp_to_i64(-1e300L), INT64_MIN);
	ck_assert_int_eq(clamp_to_i64((long double)NAN), 0);
	ck_assert_int_eq(saturating_add(INT64_MAX, 1), INT64_MAX);
	ck_assert_int_eq(saturating_add(INT64_MIN, -1), INT64_MIN);
	ck_assert_int_eq(saturating_subtract(0, INT64_MIN), INT64_MAX);
	ck_assert_int_eq(saturating_subtract(-2, INT64_MAX), INT64_MIN);
}
END_TEST

START_TEST(a_room_too_small_is_never_left)
{
	char out[8];

	memset(out, '#', sizeof out);
	ck_assert_uint_eq(escape_text(out, 6, "\x1b\x1b", 2, false), 4);
	ck_assert_str_eq(out, "\\x1b");
	ck_assert_int_eq(out[6], '#');
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("number");
	TCase *figures = tcase_create("figures"), *visible_names = tcase_create("names");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(figures, figures_are_exact_and_rounded_half_to_even, 0,
		sizeof fixed / sizeof *fixed);
	tcase_add_test(figures, percentages_have_one_decimal_and_a_whole_is_100);
	tcase_add_test(figures, figures_take_the_largest_unit_that_fits);
	tcase_add_loop_test(visible_names, nothing_that_a_terminal_would_act_on_gets_through, 0,
		sizeof names / sizeof *names);
	tcase_add_test(visible_names, names_are_shortened_in_their_middle);
	tcase_add_test(visible_names, a_figure_beyond_every_integer_is_the_largest);
	tcase_add_test(visible_names, what_is_shortened_fits_its_columns_and_its_room);
	tcase_add_test(visible_names, a_long_first_name_begins_on_the_first_line);
	tcase_add_test(visible_names, a_room_too_small_is_never_left);
	suite_add_tcase(suite, figures);
	suite_add_tcase(suite, visible_names);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
