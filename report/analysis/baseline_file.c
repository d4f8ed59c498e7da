/* SPDX-License-Identifier: MIT
 *
 * Writes and reads baseline files, and opens traces.
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

void baseline_write(const struct baseline *baseline, struct output *out)
{
	struct json_writer json = { .out = out };

	json_write_begin(&json, '{');
	json_put_string(&json, "schema", "pperf.baseline/1");
	json_put_string(&json, "basis", baseline->by_steps ? "step" : "run");
	json_put_unsigned(&json, "steps", baseline->steps);
	json_write_key(&json, "rank");
	json_write_rank(&json, baseline->rank);
	json_write_key(&json, "figures");
	json_write_begin(&json, '[');
	for (size_t i = 0; i < baseline->count; i++) {
		const struct baseline_metric *figure = &baseline->figures[i];

		json_write_begin(&json, '{');
		json_put_string(&json, "name", figure->name);
		json_put_string(&json, "unit",
			figure->unit == UNIT_TIME    ? "ns"
			: figure->unit == UNIT_BYTES ? "bytes"
						     : "count");
		json_write_key(&json, "value");
		json_write_double(&json, figure->value);
		json_write_key(&json, "values");
		json_write_begin(&json, '[');
		for (size_t value = 0; value < figure->value_count; value++)
			json_write_double(&json, figure->values[value]);
		json_write_end(&json, ']');
		json_write_key(&json, "rows");
		json_write_begin(&json, '[');
		for (size_t row = 0; row < figure->row_count; row++) {
			json_write_begin(&json, '[');
			json_write_string(&json, figure->rows[row].path);
			json_write_double(&json, figure->rows[row].value);
			json_write_end(&json, ']');
		}
		json_write_end(&json, ']');
		json_write_end(&json, '}');
	}
	json_write_end(&json, ']');
	json_write_end(&json, '}');
	output_char(out, '\n');
}

/* Returns the file with JSON_SLACK zero bytes after it, or NULL if it is not a baseline. */
static char *load_file(const char *path, size_t *bytes)
{
	char head[sizeof HEAD - 1];
	FILE *file = fopen(path, "rb");
	size_t room = 0;
	char *text = NULL;

	if (!file)
		return NULL;
	if (fread(head, 1, sizeof head, file) != sizeof head ||
		memcmp(head, HEAD, sizeof head) != 0) {
		fclose(file);
		return NULL;
	}
	array_grow_zeroed(&text, &room, 1 << 16, 1);
	memcpy(text, head, sizeof head);
	*bytes = sizeof head;
	for (size_t count = 1; count; *bytes += count) {
		array_grow_zeroed(&text, &room, *bytes + 4096 + JSON_SLACK, 1);
		count = fread(text + *bytes, 1, room - *bytes - JSON_SLACK, file);
	}
	if (ferror(file))
		fatal(STATUS_UNREADABLE, "%s cannot be read:", path);
	fclose(file);
	memset(text + *bytes, 0, JSON_SLACK);
	return text;
}

/* Returns false if `text` is not a number, or not a finite one. */
static bool read_number(const struct json_text *text, double *number)
{
	char digits[64];

	if (text->form != '0')
		return false;
	snprintf(digits, sizeof digits, "%.*s", text->length < 60 ? (int)text->length : 60,
		text->bytes);
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

/* `null` is stored as -1: no rank. */
static bool read_rank(const struct json_text *text, int64_t *rank)
{
	*rank = -1;
	return text->form != '0' || (json_signed(text, rank) && *rank >= 0);
}

static char *json_string(const struct json_text *text)
{
	char *string = xcalloc(text->length + 1);

	string[json_unescape(text, string)] = '\0';
	return string;
}

static struct json_scanner json_inside(const struct json_text *text)
{
	return (struct json_scanner){ .at = text->bytes, .end = text->bytes + text->length };
}

static bool read_baseline_row(struct baseline_metric *figure, const struct json_text *pair)
{
	struct json_scanner scan = json_inside(pair);
	struct json_text path, value;
	double number;

	if (!json_open(&scan, '[') || !json_value(&scan, &path) || path.form != '"' ||
		!json_next(&scan, ']') || !json_value(&scan, &value) ||
		!read_number(&value, &number))
		return false;
	array_grow_zeroed(
		&figure->rows, &figure->row_room, figure->row_count + 1, sizeof *figure->rows);
	figure->rows[figure->row_count++] = (struct baseline_row){ .path = json_string(&path),
		.value = number };
	return true;
}

static int by_row_path(const void *a, const void *b)
{
	return strcmp(
		((const struct baseline_row *)a)->path, ((const struct baseline_row *)b)->path);
}

static bool read_baseline_rows(struct baseline_metric *figure, const struct json_text *list)
{
	struct json_scanner scan = json_inside(list);
	struct json_text pair;

	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']'))
		if (!json_value(&scan, &pair) || !read_baseline_row(figure, &pair))
			return false;
	if (figure->row_count)
		qsort(figure->rows, figure->row_count, sizeof *figure->rows, by_row_path);
	return !scan.problem;
}

static bool read_values(struct baseline_metric *figure, const struct json_text *list)
{
	struct json_scanner scan = json_inside(list);
	struct json_text value;
	size_t room = figure->value_count;
	double number;

	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']')) {
		if (!json_value(&scan, &value) || !read_number(&value, &number))
			return false;
		array_grow_zeroed(
			&figure->values, &room, figure->value_count + 1, sizeof *figure->values);
		figure->values[figure->value_count++] = number;
	}
	return !scan.problem;
}

static bool read_baseline_figure(struct baseline *baseline, const struct json_text *object)
{
	struct json_scanner scan = json_inside(object);
	struct json_text key, value;
	struct baseline_metric figure = { .unit = UNIT_COUNT };
	bool has_value = false;

	for (bool more = json_open(&scan, '{'); more; more = json_next(&scan, '}')) {
		if (!json_key(&scan, &key) || !json_value(&scan, &value))
			return false;
		if (json_is(&key, "name") && value.form == '"')
			snprintf(figure.name, sizeof figure.name, "%.*s",
				value.length < 31 ? (int)value.length : 31, value.bytes);
		else if (json_is(&key, "unit"))
			figure.unit = json_is(&value, "ns")      ? UNIT_TIME
				      : json_is(&value, "bytes") ? UNIT_BYTES
								 : UNIT_COUNT;
		else if (json_is(&key, "value"))
			has_value = read_number(&value, &figure.value);
		else if (json_is(&key, "values") && !read_values(&figure, &value))
			return false;
		else if (json_is(&key, "rows") && !read_baseline_rows(&figure, &value))
			return false;
	}
	array_grow_zeroed(&baseline->figures, &baseline->room, baseline->count + 1,
		sizeof *baseline->figures);
	baseline->figures[baseline->count++] = figure;
	return !scan.problem && has_value && *figure.name;
}

static bool read_baseline_figures(struct baseline *baseline, const struct json_text *list)
{
	struct json_scanner scan = json_inside(list);
	struct json_text object;

	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']'))
		if (!json_value(&scan, &object) || !read_baseline_figure(baseline, &object))
			return false;
	return !scan.problem;
}

static bool read_baseline(struct baseline *baseline, const char *text, size_t bytes)
{
	struct json_scanner scan = { .at = text, .end = text + bytes };
	struct json_text key, value;

	for (bool more = json_open(&scan, '{'); more; more = json_next(&scan, '}')) {
		if (!json_key(&scan, &key) || !json_value(&scan, &value))
			return false;
		if (json_is(&key, "basis"))
			baseline->by_steps = json_is(&value, "step");
		else if (json_is(&key, "steps") && !read_count(&value, &baseline->steps))
			return false;
		else if (json_is(&key, "rank") && !read_rank(&value, &baseline->rank))
			return false;
		else if (json_is(&key, "figures") && !read_baseline_figures(baseline, &value))
			return false;
	}
	return !scan.problem && baseline->count > 0;
}

struct baseline *baseline_open(const struct options *options, const char *path)
{
	struct baseline *baseline = xcalloc(sizeof *baseline);
	size_t bytes = 0;
	char *text = load_file(path, &bytes);

	baseline->rank = -1;
	baseline->path = path;
	if (text) {
		if (!read_baseline(baseline, text, bytes))
			fatal(STATUS_UNREADABLE, "%s is a baseline that is damaged", path);
		free(text);
		return baseline;
	}
	baseline->processes = processes_read_side(options, path);
	baseline->process = baseline->processes.all;
	baseline->rank = baseline->process->rank;
	baseline->steps = metric_samples_steps(baseline->process);
	baseline->by_steps = baseline->steps >= MANN_WHITNEY_VALUES_MIN;
	return baseline;
}
