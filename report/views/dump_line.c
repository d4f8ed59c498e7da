/* SPDX-License-Identifier: MIT */
#include "report/views/dump_line.h"

#include "report/base/alloc.h"
#include "report/base/escape.h"
#include "report/text/json_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text;
	size_t bytes;
} key_names[] = {
#define X(name) { #name, sizeof #name - 1 },
	DUMP_KEYS(X)
#undef X
};

void line_begin(struct dump_line *line)
{
	memset(line->present, 0, sizeof line->present);
}

static struct dump_value *set_value(
	struct dump_line *line, enum dump_key key, enum dump_value_type type)
{
	line->present[key] = true;
	line->values[key].type = (uint8_t)type;
	return &line->values[key];
}

void line_null(struct dump_line *line, enum dump_key key)
{
	set_value(line, key, VALUE_NULL);
}

void line_unsigned(struct dump_line *line, enum dump_key key, uint64_t value)
{
	set_value(line, key, VALUE_UNSIGNED)->of.number = value;
}

void line_signed(struct dump_line *line, enum dump_key key, int64_t value)
{
	set_value(line, key, VALUE_SIGNED)->of.whole = value;
}

void line_wide(struct dump_line *line, enum dump_key key, int64_t value)
{
	set_value(line, key, VALUE_WIDE)->of.whole = value;
}

void line_id(struct dump_line *line, enum dump_key key, uint64_t value)
{
	set_value(line, key, VALUE_ID)->of.number = value;
}

void line_color(struct dump_line *line, enum dump_key key, uint32_t argb)
{
	set_value(line, key, VALUE_COLOR)->of.number = argb;
}

void line_double(struct dump_line *line, enum dump_key key, double value)
{
	set_value(line, key, VALUE_DOUBLE)->of.real = value;
}

void line_flag(struct dump_line *line, const char *flag, bool set)
{
	size_t used = line->present[DUMP_flags] ? strlen(line->flags) : 0;

	if (!set)
		return;
	snprintf(line->flags + used, sizeof line->flags - used, "%s%s", used ? " " : "", flag);
	line_string(line, DUMP_flags, line->flags);
}

void line_text(struct dump_line *line, enum dump_key key, struct trace_text text)
{
	if (text.known)
		set_value(line, key, VALUE_TEXT)->of.text = text;
	else
		line_null(line, key);
}

void line_string(struct dump_line *line, enum dump_key key, const char *string)
{
	line_text(line, key, (struct trace_text){ string, (uint32_t)strlen(string), true });
}

void line_triple(struct dump_line *line, enum dump_key key, const uint32_t triple[3])
{
	memcpy(set_value(line, key, VALUE_TRIPLE)->of.triple, triple, 3 * sizeof triple[0]);
}

void line_frames(struct dump_line *line, enum dump_key key, struct dump_frames frames)
{
	set_value(line, key, VALUE_FRAMES)->of.frames = frames;
}

/* Writes the values that are the same in every format. Returns false if the format has to write the
 * value. */
static bool write_plain(struct output *out, const struct dump_value *value)
{
	switch (value->type) {
	case VALUE_UNSIGNED:
		output_unsigned(out, value->of.number);
		return true;
	case VALUE_SIGNED:
		output_signed(out, value->of.whole);
		return true;
	}
	return false;
}

static void write_id(struct output *out, const struct dump_value *value)
{
	bool color = value->type == VALUE_COLOR;

	if (value->type == VALUE_WIDE)
		output_signed(out, value->of.whole);
	else
		output_hex(out, value->of.number, color ? 8 : 1, color);
}

static void write_triple(struct output *out, const struct dump_value *value, char between)
{
	for (unsigned i = 0; i < 3; i++) {
		if (i)
			output_char(out, between);
		output_unsigned(out, value->of.triple[i]);
	}
}

static void write_json_frames(struct json_writer *json, const struct dump_frames *value)
{
	json_write_begin(json, '[');
	for (uint32_t i = 0; i < value->count; i++) {
		const struct trace_python_frame *frame = &value->frames[i];

		json_write_begin(json, '{');
		json_put_text(json, "function",
			trace_text_or_null(reader_name(value->reader, frame->function)));
		json_put_text(
			json, "file", trace_text_or_null(reader_name(value->reader, frame->file)));
		json_put_unsigned(json, "line", frame->line);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void write_json_value(struct json_writer *json, const struct dump_value *value)
{
	char text[24];

	switch ((enum dump_value_type)value->type) {
	case VALUE_NULL:
		json_write_null(json);
		break;
	case VALUE_UNSIGNED:
		json_write_unsigned(json, value->of.number);
		break;
	case VALUE_SIGNED:
		json_write_signed(json, value->of.whole);
		break;
	case VALUE_WIDE:
		snprintf(text, sizeof text, "%" PRId64, value->of.whole);
		json_write_string(json, text);
		break;
	case VALUE_ID:
		json_write_id(json, value->of.number);
		break;
	case VALUE_COLOR:
		snprintf(text, sizeof text, "0x%08" PRIX64, value->of.number);
		json_write_string(json, text);
		break;
	case VALUE_DOUBLE:
		json_write_double(json, value->of.real);
		break;
	case VALUE_TEXT:
		json_write_text(json, trace_text_or_null(value->of.text));
		break;
	case VALUE_TRIPLE:
		json_write_triple(json, value->of.triple);
		break;
	case VALUE_FRAMES:
		write_json_frames(json, &value->of.frames);
		break;
	}
}

void line_write_json(struct output *out, const struct dump_line *line)
{
	struct json_writer json = { .out = out };

	json_write_begin(&json, '{');
	for (unsigned key = 0; key < DUMP_KEY_COUNT; key++) {
		if (!line->present[key])
			continue;
		json_write_plain_key(&json, key_names[key].text, key_names[key].bytes);
		write_json_value(&json, &line->values[key]);
	}
	json_write_end(&json, '}');
	output_char(out, '\n');
}

/* Joins all frames first, because CSV quotes a value as a whole. */
static void write_csv_frames(struct output *out, const struct dump_frames *value)
{
	char *text = NULL;
	size_t used = 0, room = 0;

	for (uint32_t i = 0; i < value->count; i++) {
		const struct trace_python_frame *frame = &value->frames[i];
		const struct trace_text file = reader_name(value->reader, frame->file),
					function = reader_name(value->reader, frame->function);

		array_grow_zeroed(&text, &room, used + file.length + function.length + 32, 1);
		used += (size_t)sprintf(text + used, "%s", i ? " < " : "");
		memcpy(text + used, file.bytes, file.length);
		used += file.length;
		used += (size_t)sprintf(text + used, ":%u ", frame->line);
		memcpy(text + used, function.bytes, function.length);
		used += function.length;
	}
	output_csv_text(out, text ? text : "", used);
	free(text);
}

static void write_csv_value(struct output *out, const struct dump_value *value)
{
	if (write_plain(out, value))
		return;
	switch (value->type) {
	case VALUE_WIDE:
	case VALUE_ID:
	case VALUE_COLOR:
		write_id(out, value);
		break;
	case VALUE_DOUBLE:
		output_double(out, value->of.real);
		break;
	case VALUE_TEXT:
		output_csv_text(out, value->of.text.bytes, value->of.text.length);
		break;
	case VALUE_TRIPLE:
		write_triple(out, value, ' ');
		break;
	case VALUE_FRAMES:
		write_csv_frames(out, &value->of.frames);
		break;
	}
}

void line_write_csv(struct output *out, const struct dump_line *line)
{
	for (unsigned key = 0; key < DUMP_KEY_COUNT; key++) {
		if (key)
			output_char(out, ',');
		if (line->present[key])
			write_csv_value(out, &line->values[key]);
	}
	output_bytes(out, "\r\n", 2);
}

void line_write_header(struct output *out)
{
	for (unsigned key = 0; key < DUMP_KEY_COUNT; key++) {
		if (key)
			output_char(out, ',');
		output_bytes(out, key_names[key].text, key_names[key].bytes);
	}
	output_bytes(out, "\r\n", 2);
}

static void write_escaped_text(struct output *out, struct trace_text text, bool ascii)
{
	char shown[256];
	uint32_t part;

	/* Escape the text in parts that end before a UTF-8 character begins. Only damaged text can
	 * have a character divided between two parts. */
	for (; text.length; text.bytes += part, text.length -= part) {
		part = text.length < 40 ? text.length : 40;
		while (part < text.length && part > 36 &&
			((unsigned char)text.bytes[part] & 0xc0) == 0x80)
			part--;
		output_bytes(out, shown, escape_text(shown, sizeof shown, text.bytes, part, ascii));
	}
}

static void write_text_frames(struct output *out, const struct dump_frames *value, bool ascii)
{
	for (uint32_t i = 0; i < value->count; i++) {
		output_string(out, i ? " < " : "");
		write_escaped_text(out, reader_name(value->reader, value->frames[i].file), ascii);
		output_char(out, ':');
		output_unsigned(out, value->frames[i].line);
		output_char(out, ' ');
		write_escaped_text(
			out, reader_name(value->reader, value->frames[i].function), ascii);
	}
}

static void write_text_value(struct output *out, const struct dump_value *value, bool ascii)
{
	if (write_plain(out, value))
		return;
	switch (value->type) {
	case VALUE_NULL:
		output_char(out, '-');
		break;
	case VALUE_WIDE:
	case VALUE_ID:
	case VALUE_COLOR:
		write_id(out, value);
		break;
	case VALUE_DOUBLE:
		output_double(out, value->of.real);
		break;
	case VALUE_TEXT:
		write_escaped_text(out, value->of.text, ascii);
		break;
	case VALUE_TRIPLE:
		write_triple(out, value, ',');
		break;
	case VALUE_FRAMES:
		write_text_frames(out, &value->of.frames, ascii);
		break;
	}
}

static void write_spaces(struct output *out, uint64_t count)
{
	while (count-- > 0)
		output_char(out, ' ');
}

/* Writes seconds with nanoseconds, padded to 14 columns. */
static void write_time(struct output *out, uint64_t ns)
{
	char text[24];
	size_t at = sizeof text, digits = 0;

	for (; ns || digits < 10; digits++, ns /= 10) {
		if (digits == 9)
			text[--at] = '.';
		text[--at] = (char)('0' + ns % 10);
	}
	write_spaces(out, sizeof text - at < 14 ? 14 - (sizeof text - at) : 0);
	output_bytes(out, text + at, sizeof text - at);
}

static uint64_t value_or_zero(const struct dump_line *line, enum dump_key key)
{
	return line->present[key] ? line->values[key].of.number : 0;
}

void line_write_text(struct output *out, const struct dump_line *line)
{
	static const bool is_first[DUMP_KEY_COUNT] = { [DUMP_t_ns] = true,
		[DUMP_pid] = true,
		[DUMP_tid] = true,
		[DUMP_kind] = true,
		[DUMP_name] = true,
		[DUMP_depth] = true };
	uint64_t depth = value_or_zero(line, DUMP_depth);

	write_time(out, value_or_zero(line, DUMP_t_ns));
	write_spaces(out, 2);
	output_unsigned(out, value_or_zero(line, DUMP_tid));
	write_spaces(out, 2 + 2 * (depth < 40 ? depth : 40));
	write_text_value(out, &line->values[DUMP_kind], line->ascii);
	if (line->present[DUMP_name]) {
		output_char(out, ' ');
		write_text_value(out, &line->values[DUMP_name], line->ascii);
	}
	for (unsigned key = 0; key < DUMP_KEY_COUNT; key++) {
		if (!line->present[key] || is_first[key] || line->values[key].type == VALUE_NULL)
			continue;
		write_spaces(out, 2);
		output_bytes(out, key_names[key].text, key_names[key].bytes);
		output_char(out, '=');
		write_text_value(out, &line->values[key], line->ascii);
	}
	output_char(out, '\n');
}
