/* SPDX-License-Identifier: MIT
 * emit.h: JSON written as it is thought of: begin, key, value ..., end. Commas are set here; that it nests rightly
 * is the caller's.
 */
#ifndef PPERF_REPORT_TEXT_JSON_WRITER_H
#define PPERF_REPORT_TEXT_JSON_WRITER_H

#include "report/text/output.h"
#include "report/text/string_table.h"
#include <stdbool.h>

struct emit {
	struct out *out;
	bool filled; /* a value stands before in this object or array */
};

void emit_begin(struct emit *emit, char bracket); /* { or [ */
void emit_end(struct emit *emit, char bracket);
void emit_key(struct emit *emit, const char *key);

void emit_null(struct emit *emit);
void emit_bool(struct emit *emit, bool value);
void emit_unsigned(struct emit *emit, uint64_t value);
void emit_signed(struct emit *emit, int64_t value);
void emit_double(struct emit *emit, double value);
void emit_id(struct emit *emit, uint64_t value); /* "0x1f" */
void emit_string(struct emit *emit, const char *string); /* NULL: null */
void emit_text(struct emit *emit, struct text text); /* bytes NULL: null */

/* A key and its value. */
void emit_put_unsigned(struct emit *emit, const char *key, uint64_t value);
void emit_put_bool(struct emit *emit, const char *key, bool value);
/* A number; -1, a process that is no rank: null. */
void emit_rank_number(struct emit *emit, int64_t rank);
void emit_put_string(struct emit *emit, const char *key, const char *string);
void emit_put_text(struct emit *emit, const char *key, struct text text);

#endif
