/* SPDX-License-Identifier: MIT
 * emit.c: see emit.h.
 */
#include "report/text/json_writer.h"

#include <string.h>

static void separate(struct emit *emit)
{
	if (emit->filled)
		out_char(emit->out, ',');
	emit->filled = true;
}

void emit_begin(struct emit *emit, char bracket)
{
	separate(emit);
	out_char(emit->out, bracket);
	emit->filled = false;
}

void emit_end(struct emit *emit, char bracket)
{
	out_char(emit->out, bracket);
	emit->filled = true;
}

void emit_key(struct emit *emit, const char *key)
{
	separate(emit);
	out_json_text(emit->out, key, strlen(key));
	out_char(emit->out, ':');
	emit->filled = false;
}

void emit_null(struct emit *emit)
{
	separate(emit);
	out_string(emit->out, "null");
}

void emit_bool(struct emit *emit, bool value)
{
	separate(emit);
	out_string(emit->out, value ? "true" : "false");
}

void emit_unsigned(struct emit *emit, uint64_t value)
{
	separate(emit);
	out_unsigned(emit->out, value);
}

void emit_signed(struct emit *emit, int64_t value)
{
	separate(emit);
	out_signed(emit->out, value);
}

void emit_double(struct emit *emit, double value)
{
	separate(emit);
	out_json_double(emit->out, value);
}

void emit_id(struct emit *emit, uint64_t value)
{
	separate(emit);
	out_char(emit->out, '"');
	out_hex(emit->out, value, 1, false);
	out_char(emit->out, '"');
}

void emit_string(struct emit *emit, const char *string)
{
	if (!string) {
		emit_null(emit);
		return;
	}
	separate(emit);
	out_json_text(emit->out, string, strlen(string));
}

void emit_text(struct emit *emit, struct text text)
{
	if (!text.bytes) {
		emit_null(emit);
		return;
	}
	separate(emit);
	out_json_text(emit->out, text.bytes, text.length);
}

void emit_put_unsigned(struct emit *emit, const char *key, uint64_t value)
{
	emit_key(emit, key);
	emit_unsigned(emit, value);
}

void emit_put_bool(struct emit *emit, const char *key, bool value)
{
	emit_key(emit, key);
	emit_bool(emit, value);
}

void emit_rank_number(struct emit *emit, int64_t rank)
{
	if (rank < 0)
		emit_null(emit);
	else
		emit_unsigned(emit, (uint64_t)rank);
}

void emit_put_string(struct emit *emit, const char *key, const char *string)
{
	emit_key(emit, key);
	emit_string(emit, string);
}

void emit_put_text(struct emit *emit, const char *key, struct text text)
{
	emit_key(emit, key);
	emit_text(emit, text);
}
