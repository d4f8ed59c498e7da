/* SPDX-License-Identifier: MIT
 * Writes JSON as a sequence of calls: begin, key, value, end. Commas are written automatically.
 * The caller is responsible for correct nesting.
 */
#ifndef PPERF_REPORT_TEXT_JSON_WRITER_H
#define PPERF_REPORT_TEXT_JSON_WRITER_H

#include "report/text/output.h"
#include "report/text/string_table.h"
#include <stdbool.h>

struct json_writer {
	struct output *out;
	bool needs_comma; /* this object or array already has a value */
	bool spaced;      /* a blank after commas and colons */
	/* Writes a string with its quotation marks. NULL: output_json_text. Pages set it, because
	 * their JSON is in an element of HTML. */
	void (*write_string)(struct output *out, const char *bytes, size_t length);
};

void json_write_begin(struct json_writer *json, char bracket); /* `bracket`: { or [ */
void json_write_end(struct json_writer *json, char bracket);
void json_write_key(struct json_writer *json, const char *key);
/* Writes a key that needs no escapes, which is faster. */
void json_write_plain_key(struct json_writer *json, const char *key, size_t length);

void json_write_null(struct json_writer *json);
void json_write_bool(struct json_writer *json, bool value);
void json_write_unsigned(struct json_writer *json, uint64_t value);
void json_write_signed(struct json_writer *json, int64_t value);
void json_write_double(struct json_writer *json, double value);
void json_write_triple(struct json_writer *json, const uint32_t triple[3]);
void json_write_id(struct json_writer *json, uint64_t value);            /* "0x1f" */
void json_write_string(struct json_writer *json, const char *string);    /* NULL: null */
void json_write_text(struct json_writer *json, struct string_view text); /* bytes NULL: null */

/* Writes a rank as a number, or null if it is -1, which means a process without a rank. */
void json_write_rank(struct json_writer *json, int64_t rank);

/* The functions json_put_* write a key and its value. json_put_begin writes a key and begins its
 * object or array. The functions with `is_known` write null unless it is true. */
void json_put_begin(struct json_writer *json, const char *key, char bracket);
void json_put_unsigned(struct json_writer *json, const char *key, uint64_t value);
void json_put_bool(struct json_writer *json, const char *key, bool value);
void json_put_double(struct json_writer *json, const char *key, double value);
void json_put_known_unsigned(
	struct json_writer *json, const char *key, uint64_t value, bool is_known);
void json_put_known_signed(struct json_writer *json, const char *key, int64_t value, bool is_known);
void json_put_known_double(struct json_writer *json, const char *key, double value, bool is_known);
void json_put_string(struct json_writer *json, const char *key, const char *string);
void json_put_text(struct json_writer *json, const char *key, struct string_view text);

/* Writes a key and an array with a value of each row below `count` for which `is_written` is true.
 * Both `is_written` and `value`, an unsigned number, are expressions with the index `row`. */
#define JSON_PUT_COLUMN(json, key, row, count, is_written, value)  \
	do {                                                       \
		json_put_begin(json, key, '[');                    \
		for (size_t row = 0; row < (size_t)(count); row++) \
			if (is_written)                            \
				json_write_unsigned(json, value);  \
		json_write_end(json, ']');                         \
	} while (0)

/* Returns the difference from the value of the call before, for columns of increasing numbers. */
static inline uint64_t json_difference(uint64_t *before, uint64_t value)
{
	const uint64_t difference = value - *before;

	*before = value;
	return difference;
}

#endif
