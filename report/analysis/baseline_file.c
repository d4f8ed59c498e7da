/* SPDX-License-Identifier: MIT
 * sheet_file.c: baselines written and read, and traces opened.
 */
#include "report/stats/mann_whitney.h"
#include "report/text/json_writer.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/json_scanner.h"
#include "report/analysis/baseline.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HEAD[] = "{\"schema\":\"pperf.baseline/1\"";

void sheet_write(const struct sheet *sheet, struct out *out)
{
	struct emit emit = { .out = out };

	emit_begin(&emit, '{');
	emit_put_string(&emit, "schema", "pperf.baseline/1");
	emit_put_string(&emit, "basis", sheet->by_steps ? "step" : "run");
	emit_put_unsigned(&emit, "steps", sheet->steps);
	emit_key(&emit, "rank");
	emit_rank_number(&emit, sheet->rank);
	emit_key(&emit, "figures");
	emit_begin(&emit, '[');
	for (size_t i = 0; i < sheet->count; i++) {
		const struct figure *figure = &sheet->figures[i];

		emit_begin(&emit, '{');
		emit_put_string(&emit, "name", figure->name);
		emit_put_string(&emit, "unit",
			figure->unit == UNIT_TIME    ? "ns"
			: figure->unit == UNIT_BYTES ? "bytes"
						     : "count");
		emit_key(&emit, "value");
		emit_double(&emit, figure->value);
		emit_key(&emit, "values");
		emit_begin(&emit, '[');
		for (size_t value = 0; value < figure->value_count; value++)
			emit_double(&emit, figure->values[value]);
		emit_end(&emit, ']');
		emit_key(&emit, "rows");
		emit_begin(&emit, '[');
		for (size_t row = 0; row < figure->row_count; row++) {
			emit_begin(&emit, '[');
			emit_string(&emit, figure->rows[row].path);
			emit_double(&emit, figure->rows[row].value);
			emit_end(&emit, ']');
		}
		emit_end(&emit, ']');
		emit_end(&emit, '}');
	}
	emit_end(&emit, ']');
	emit_end(&emit, '}');
	out_char(out, '\n');
}

/* The file if it is a baseline, with JSON_SLACK zeros behind it; NULL: it is none. */
static char *load(const char *path, size_t *bytes)
{
	char head[sizeof HEAD - 1];
	FILE *file = fopen(path, "rb");
	size_t room = 0;
	char *text = NULL;

	if (!file)
		return NULL;
	if (fread(head, 1, sizeof head, file) != sizeof head || memcmp(head, HEAD, sizeof head) != 0) {
		fclose(file);
		return NULL;
	}
	grow(&text, &room, 1 << 16, 1);
	memcpy(text, head, sizeof head);
	*bytes = sizeof head;
	for (size_t count = 1; count; *bytes += count) {
		grow(&text, &room, *bytes + 4096 + JSON_SLACK, 1);
		count = fread(text + *bytes, 1, room - *bytes - JSON_SLACK, file);
	}
	if (ferror(file))
		fatal(STATUS_UNREADABLE, "%s cannot be read:", path);
	fclose(file);
	memset(text + *bytes, 0, JSON_SLACK);
	return text;
}

/* False: it is no number, or larger than any. */
static bool read_number(const struct json_text *text, double *number)
{
	char digits[64];

	if (text->form != '0')
		return false;
	snprintf(digits, sizeof digits, "%.*s", text->length < 60 ? (int)text->length : 60, text->bytes);
	*number = strtod(digits, NULL);
	return isfinite(*number);
}

static bool read_count(const struct json_text *text, size_t *count)
{
	uint64_t number;

	if (text->form != '0' || !json_unsigned(text, &number))
		return false;
	*count = number;
	return true;
}

/* null: of no rank. */
static bool read_rank(const struct json_text *text, int64_t *rank)
{
	*rank = -1;
	return text->form != '0' || (json_signed(text, rank) && *rank >= 0);
}

static char *string_of(const struct json_text *text)
{
	char *string = need(text->length + 1);

	string[json_unescape(text, string)] = '\0';
	return string;
}

static struct json_scan inside(const struct json_text *text)
{
	return (struct json_scan){ .at = text->bytes, .end = text->bytes + text->length };
}

static bool read_row(struct figure *figure, const struct json_text *pair)
{
	struct json_scan scan = inside(pair);
	struct json_text path, value;
	double number;

	if (!json_open(&scan, '[') || !json_value(&scan, &path) || path.form != '"' || !json_next(&scan, ']') ||
		!json_value(&scan, &value) || !read_number(&value, &number))
		return false;
	grow(&figure->rows, &figure->row_room, figure->row_count + 1, sizeof *figure->rows);
	figure->rows[figure->row_count++] = (struct sheet_row){ .path = string_of(&path), .value = number };
	return true;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct sheet_row *)a)->path, ((const struct sheet_row *)b)->path);
}

static bool read_rows(struct figure *figure, const struct json_text *list)
{
	struct json_scan scan = inside(list);
	struct json_text pair;

	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']'))
		if (!json_value(&scan, &pair) || !read_row(figure, &pair))
			return false;
	if (figure->row_count)
		qsort(figure->rows, figure->row_count, sizeof *figure->rows, by_path);
	return !scan.problem;
}

static bool read_values(struct figure *figure, const struct json_text *list)
{
	struct json_scan scan = inside(list);
	struct json_text value;
	size_t room = figure->value_count;
	double number;

	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']')) {
		if (!json_value(&scan, &value) || !read_number(&value, &number))
			return false;
		grow(&figure->values, &room, figure->value_count + 1, sizeof *figure->values);
		figure->values[figure->value_count++] = number;
	}
	return !scan.problem;
}

static bool read_figure(struct sheet *sheet, const struct json_text *object)
{
	struct json_scan scan = inside(object);
	struct json_text key, value;
	struct figure figure = { .unit = UNIT_COUNT };
	bool has_value = false;

	for (bool more = json_open(&scan, '{'); more; more = json_next(&scan, '}')) {
		if (!json_key(&scan, &key) || !json_value(&scan, &value))
			return false;
		if (json_is(&key, "name") && value.form == '"')
			snprintf(figure.name, sizeof figure.name, "%.*s", value.length < 31 ? (int)value.length : 31, value.bytes);
		else if (json_is(&key, "unit"))
			figure.unit = json_is(&value, "ns") ? UNIT_TIME : json_is(&value, "bytes") ? UNIT_BYTES : UNIT_COUNT;
		else if (json_is(&key, "value"))
			has_value = read_number(&value, &figure.value);
		else if (json_is(&key, "values") && !read_values(&figure, &value))
			return false;
		else if (json_is(&key, "rows") && !read_rows(&figure, &value))
			return false;
	}
	grow(&sheet->figures, &sheet->room, sheet->count + 1, sizeof *sheet->figures);
	sheet->figures[sheet->count++] = figure;
	return !scan.problem && has_value && *figure.name;
}

static bool read_figures(struct sheet *sheet, const struct json_text *list)
{
	struct json_scan scan = inside(list);
	struct json_text object;

	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']'))
		if (!json_value(&scan, &object) || !read_figure(sheet, &object))
			return false;
	return !scan.problem;
}

static bool read_baseline(struct sheet *sheet, const char *text, size_t bytes)
{
	struct json_scan scan = { .at = text, .end = text + bytes };
	struct json_text key, value;

	for (bool more = json_open(&scan, '{'); more; more = json_next(&scan, '}')) {
		if (!json_key(&scan, &key) || !json_value(&scan, &value))
			return false;
		if (json_is(&key, "basis"))
			sheet->by_steps = json_is(&value, "step");
		else if (json_is(&key, "steps") && !read_count(&value, &sheet->steps))
			return false;
		else if (json_is(&key, "rank") && !read_rank(&value, &sheet->rank))
			return false;
		else if (json_is(&key, "figures") && !read_figures(sheet, &value))
			return false;
	}
	return !scan.problem && sheet->count > 0;
}

struct sheet *sheet_open(const struct options *options, const char *path)
{
	struct sheet *sheet = need(sizeof *sheet);
	size_t bytes = 0;
	char *text = load(path, &bytes);

	sheet->rank = -1;
	sheet->path = path;
	if (text) {
		if (!read_baseline(sheet, text, bytes))
			fatal(STATUS_UNREADABLE, "%s is a baseline that is damaged", path);
		free(text);
		return sheet;
	}
	sheet->processes = processes_read_side(options, path);
	sheet->process = sheet->processes.all;
	sheet->rank = sheet->process->rank;
	sheet->steps = amounts_steps(sheet->process);
	sheet->by_steps = sheet->steps >= COMPARE_LEAST;
	return sheet;
}
