/* SPDX-License-Identifier: MIT
 * emit.h: JSON written as it is thought of: begin, key, value ..., end. Commas are set here; that it nests rightly
 * is the caller's.
 */
#ifndef PPERF_REPORT_TEXT_JSON_WRITER_H
#define PPERF_REPORT_TEXT_JSON_WRITER_H

#include "report/text/output.h"
#include "report/text/string_table.h"
#include <stdbool.h>

struct json_writer {
	struct output *out;
	bool needs_comma; /* a value stands before in this object or array */
};

void json_write_begin(struct json_writer *json, char bracket); /* { or [ */
void json_write_end(struct json_writer *json, char bracket);
void json_write_key(struct json_writer *json, const char *key);

void json_write_null(struct json_writer *json);
void json_write_bool(struct json_writer *json, bool value);
void json_write_unsigned(struct json_writer *json, uint64_t value);
void json_write_signed(struct json_writer *json, int64_t value);
void json_write_double(struct json_writer *json, double value);
void json_write_id(struct json_writer *json, uint64_t value);            /* "0x1f" */
void json_write_string(struct json_writer *json, const char *string);    /* NULL: null */
void json_write_text(struct json_writer *json, struct string_view text); /* bytes NULL: null */

/* A key and its value. */
void json_put_unsigned(struct json_writer *json, const char *key, uint64_t value);
void json_put_bool(struct json_writer *json, const char *key, bool value);
/* A number; -1, a process that is no rank: null. */
void json_write_rank(struct json_writer *json, int64_t rank);
void json_put_string(struct json_writer *json, const char *key, const char *string);
void json_put_text(struct json_writer *json, const char *key, struct string_view text);

#endif
