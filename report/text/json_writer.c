/* SPDX-License-Identifier: MIT */
#include "report/text/json_writer.h"

#include <string.h>

static void write_separator(struct json_writer *json)
{
	if (json->needs_comma)
		output_bytes(json->out, ", ", 1u + json->spaced);
	json->needs_comma = true;
}

void json_write_begin(struct json_writer *json, char bracket)
{
	write_separator(json);
	output_char(json->out, bracket);
	json->needs_comma = false;
}

void json_write_end(struct json_writer *json, char bracket)
{
	output_char(json->out, bracket);
	json->needs_comma = true;
}

static void write_colon(struct json_writer *json)
{
	output_bytes(json->out, ": ", 1u + json->spaced);
	json->needs_comma = false;
}

void json_write_key(struct json_writer *json, const char *key)
{
	write_separator(json);
	output_json_text(json->out, key, strlen(key));
	write_colon(json);
}

void json_write_plain_key(struct json_writer *json, const char *key, size_t length)
{
	write_separator(json);
	output_char(json->out, '"');
	output_bytes(json->out, key, length);
	output_char(json->out, '"');
	write_colon(json);
}

void json_write_null(struct json_writer *json)
{
	write_separator(json);
	output_string(json->out, "null");
}

void json_write_bool(struct json_writer *json, bool value)
{
	write_separator(json);
	output_string(json->out, value ? "true" : "false");
}

void json_write_unsigned(struct json_writer *json, uint64_t value)
{
	write_separator(json);
	output_unsigned(json->out, value);
}

void json_write_signed(struct json_writer *json, int64_t value)
{
	write_separator(json);
	output_signed(json->out, value);
}

void json_write_double(struct json_writer *json, double value)
{
	write_separator(json);
	output_json_double(json->out, value);
}

void json_write_triple(struct json_writer *json, const uint32_t triple[3])
{
	json_write_begin(json, '[');
	for (unsigned i = 0; i < 3; i++)
		json_write_unsigned(json, triple[i]);
	json_write_end(json, ']');
}

void json_write_id(struct json_writer *json, uint64_t value)
{
	write_separator(json);
	output_char(json->out, '"');
	output_hex(json->out, value, 1, false);
	output_char(json->out, '"');
}

static void write_string(struct json_writer *json, const char *bytes, size_t length)
{
	write_separator(json);
	(json->write_string ? json->write_string : output_json_text)(json->out, bytes, length);
}

void json_write_string(struct json_writer *json, const char *string)
{
	if (!string)
		json_write_null(json);
	else
		write_string(json, string, strlen(string));
}

void json_write_text(struct json_writer *json, struct string_view text)
{
	if (!text.bytes) {
		json_write_null(json);
		return;
	}
	write_string(json, text.bytes, text.length);
}

void json_put_begin(struct json_writer *json, const char *key, char bracket)
{
	json_write_key(json, key);
	json_write_begin(json, bracket);
}

void json_put_unsigned(struct json_writer *json, const char *key, uint64_t value)
{
	json_write_key(json, key);
	json_write_unsigned(json, value);
}

void json_put_bool(struct json_writer *json, const char *key, bool value)
{
	json_write_key(json, key);
	json_write_bool(json, value);
}

void json_put_double(struct json_writer *json, const char *key, double value)
{
	json_write_key(json, key);
	json_write_double(json, value);
}

void json_put_known_unsigned(
	struct json_writer *json, const char *key, uint64_t value, bool is_known)
{
	json_write_key(json, key);
	if (is_known)
		json_write_unsigned(json, value);
	else
		json_write_null(json);
}

void json_put_known_signed(struct json_writer *json, const char *key, int64_t value, bool is_known)
{
	json_write_key(json, key);
	if (is_known)
		json_write_signed(json, value);
	else
		json_write_null(json);
}

void json_put_known_double(struct json_writer *json, const char *key, double value, bool is_known)
{
	json_write_key(json, key);
	if (is_known)
		json_write_double(json, value);
	else
		json_write_null(json);
}

void json_write_rank(struct json_writer *json, int64_t rank)
{
	if (rank < 0)
		json_write_null(json);
	else
		json_write_unsigned(json, (uint64_t)rank);
}

void json_put_string(struct json_writer *json, const char *key, const char *string)
{
	json_write_key(json, key);
	json_write_string(json, string);
}

void json_put_text(struct json_writer *json, const char *key, struct string_view text)
{
	json_write_key(json, key);
	json_write_text(json, text);
}
