/* SPDX-License-Identifier: MIT
 *
 * Helpers that write the parts of the JSON document. Keys are constants and need no escapes. Texts
 * may have any bytes.
 */
#ifndef PPERF_REPORT_PRINT_PRINT_JSON_H
#define PPERF_REPORT_PRINT_PRINT_JSON_H

#include "report/print/print.h"

/* Writes `"key": `, with a comma before it unless `*first` is set. Clears `*first`. */
void print_json_key(struct output *out, const char *key, bool *first);
/* Write a key and its value. */
void print_json_member(struct output *out, const char *key, uint64_t value, bool *first);
void print_json_bool(struct output *out, const char *key, bool value, bool *first);
void print_json_string(struct output *out, const char *text);
void print_json_text_or_null(struct output *out, struct trace_text text);
/* Converts a string; `known` is false if it is empty. */
struct trace_text print_json_text_of(const char *text);
/* Writes the names from the root to the row's node. */
void print_json_path(struct output *out, const struct row *row);

/* Write the objects `capture` (of the first process shown), `integrity` and `totals` (of all
 * processes shown). */
void print_json_capture(struct output *out, const struct processes *processes);
void print_json_integrity(struct output *out, const struct processes *processes);
void print_json_totals(struct output *out, const struct processes *processes);

#endif
