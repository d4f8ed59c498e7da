/* SPDX-License-Identifier: MIT
 * fuzz_text.c: names from a trace on their way to a reader's eyes: demangled, folded, cut, made
 * visible; JSON in place; and the tables of lines in Python's code objects, whose three forms the
 * library reads where they lie.
 *
 * The input: a byte that chooses who gets it, then the text.
 */
#include "tests/fuzz/host.h"
#include "tests/fuzz/printed.h"
#include "tests/fuzz/target.h"

#include "preload/python/line_table.h"
#include "report/gpu/work_categories.h"
#include "report/symbols/cxx_name.h"
#include "report/symbols/demangle.h"
#include "report/text/json_scanner.h"
#include "report/text/label_pattern.h"
#include "report/text/output.h"
#include "report/base/escape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct input {
	unsigned choice;
	const char *text;
	size_t bytes;
};

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "find: %s\n", what);
	abort();
}

static void demangle_it(const struct input *input)
{
	char *out = malloc(DEMANGLE_OUTPUT + 1);
	const enum demangle_form form = (enum demangle_form)(
		input->choice / 16 % DEMANGLE_FORM_COUNT);
	const size_t room = input->choice & 8 ? 64 : DEMANGLE_OUTPUT,
		     length = demangle(form, input->text, input->bytes, out, room);

	must(length < room && (!length || out[length] == '\0'), "demangle writes beyond its room");
	free(out);
}

static void shorten_it(const struct input *input)
{
	char *out = malloc(input->bytes + 1);
	size_t last = 0, length = cxx_name(input->text, input->bytes, out, &last);
	uint64_t number;

	must(length <= input->bytes && last <= length, "cxx_name is longer than its text");
	must(label_fold(input->text, input->bytes, out) <= input->bytes, "a label grows");
	must(label_fold_module(input->text, input->bytes, out) <= input->bytes, "a path grows");
	must(label_fold_operator(input->text, input->bytes, out) <= input->bytes,
		"an operator grows");
	label_number(input->text, input->bytes, &number);
	free(out);
}

static void show_it(const struct input *input)
{
	const bool ascii = input->choice & 16;
	const size_t room = input->choice & 32 ? 24 : 6 * input->bytes + 1,
		     columns = 8 + input->choice / 64;
	char *out = malloc(room < 16 ? 16 : room);
	size_t length = escape_text(out, room, input->text, input->bytes, ascii);

	must(length < room && out[length] == '\0', "visible writes beyond its room");
	host_check_shown(out, length);
	length = escaped_shorten(out, room < 16 ? 16 : room, columns, ascii);
	host_check_shown(out, length);
	must(escaped_width(out, length) <= columns, "shortened text is too wide");
	free(out);
}

static void print_it(const struct input *input)
{
	char number[32];
	struct output *out = output_open(NULL);

	if (input->choice & 16)
		output_json_text(out, input->text, input->bytes);
	else
		output_csv_text(out, input->text, input->bytes);
	snprintf(number, sizeof number, ",%zu\n", input->bytes);
	if (!(input->choice & 16))
		output_string(out, number);
	output_close(out, NULL);
}

static void scan_value(struct json_scanner *scan, const struct json_text *value)
{
	char *plain;
	uint64_t number;
	int64_t signed_number;

	json_unsigned(value, &number);
	json_signed(value, &signed_number);
	for (int digits = -3; digits < 10; digits += 3)
		json_scaled(value, digits, &signed_number);
	if (value->form != '"')
		return;
	plain = malloc(value->length + 1);
	must(json_unescape(value, plain) <= value->length, "a string grows");
	free(plain);
	(void)scan;
}

static void scan_it(const struct input *input)
{
	char *window = calloc(1, input->bytes + JSON_SLACK);
	struct json_scanner scan = { .at = window, .end = window + input->bytes };
	struct json_text key, value;
	const bool list = input->choice & 16;

	memcpy(window, input->text, input->bytes);
	for (bool more = json_open(&scan, list ? '[' : '{'); more;
		more = json_next(&scan, list ? ']' : '}')) {
		if ((!list && !json_key(&scan, &key)) || !json_value(&scan, &value))
			break;
		scan_value(&scan, &value);
	}
	must(scan.at >= window && scan.at <= scan.end + JSON_SLACK, "JSON is read beyond its end");
	free(window);
}

static void match_it(const struct input *input)
{
	const char *end = memchr(input->text, '\n', input->bytes);
	char pattern[256];

	if (!end || end - input->text >= (long)sizeof pattern)
		return;
	memcpy(pattern, input->text, (size_t)(end - input->text));
	pattern[end - input->text] = '\0';
	category_matches(pattern, end + 1, (size_t)(input->text + input->bytes - end - 1));
}

static void find_line(const struct input *input)
{
	const size_t bytes = input->bytes < 8 ? 0 : input->bytes - 8;
	uint8_t *table = malloc(bytes + 1);
	int64_t offset = 0;

	if (input->bytes >= 8)
		memcpy(&offset, input->text, sizeof offset);
	if (bytes)
		memcpy(table, input->text + 8, bytes);
	for (int64_t at = -2; at < 64; at += 2)
		python_line((enum python_line_format)(input->choice / 16 % 3), table, bytes,
			input->choice, at);
	python_line((enum python_line_format)(input->choice / 16 % 3), table, bytes, input->choice,
		offset);
	free(table);
}

static int take(void *context)
{
	static void (*const takers[])(const struct input *) = { demangle_it, shorten_it, show_it,
		print_it, scan_it, match_it, find_line };
	const struct input *input = context;
	const unsigned taker = input->choice & 7;

	if (getenv("PPERF_FUZZ_BROKEN")) /* the harness itself is tried */
		fwrite(input->text, 1, input->bytes, stderr);
	if (taker < sizeof takers / sizeof *takers)
		takers[taker](input);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct input input;
	const char *printed;
	size_t count;

	if (bytes < 2)
		return -1;
	input = (struct input){ .choice = data[0] | (unsigned)data[1] << 8,
		.text = (const char *)data + 2,
		.bytes = bytes - 2 };
	host_call(take, &input);
	printed = host_printed(&count);
	host_check_shown(printed, count);
	if ((input.choice & 7) == 3)
		must((input.choice & 16 ? printed_bad_json(printed, count)
					: printed_bad_csv(printed, count)) == count,
			"a text is printed as what it is not");
	return 0;
}
