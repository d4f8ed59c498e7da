/* SPDX-License-Identifier: MIT
 * print_json.h: what the parts of a document are written with. Names are ours and need no escape; texts are anybody's.
 */
#ifndef PPERF_REPORT_PRINT_PRINT_JSON_H
#define PPERF_REPORT_PRINT_PRINT_JSON_H

#include "report/print/print.h"

/* `"key": `, behind a comma unless it is the first of its object, which it then no longer is. */
void print_json_key(struct output *out, const char *key, bool *first);
/* With a value. */
void print_json_member(struct output *out, const char *key, uint64_t value, bool *first);
void print_json_string(struct output *out, const char *text);
void print_json_text_or_null(struct output *out, struct trace_text text);
/* Not known if it is "". */
struct trace_text print_json_text_of(const char *text);
/* The names from the root to the row's node. */
void print_json_path(struct output *out, const struct row *row);

/* The objects `capture`, of the first process shown, and `totals` and `integrity`, of all of them. */
void print_json_capture(struct output *out, const struct processes *processes);
void print_json_integrity(struct output *out, const struct processes *processes);
void print_json_totals(struct output *out, const struct processes *processes);

#endif
