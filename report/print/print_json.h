/* SPDX-License-Identifier: MIT
 *
 * Writes the parts of the JSON document.
 */
#ifndef PPERF_REPORT_PRINT_PRINT_JSON_H
#define PPERF_REPORT_PRINT_PRINT_JSON_H

#include "report/print/print.h"
#include "report/text/json_writer.h"

/* Writes the names from the root to the row's node. */
void print_json_path(struct json_writer *json, const struct row *row);

/* Write the objects "capture" (of the first process shown), "integrity" and "totals" (of all
 * processes shown). */
void print_json_capture(struct output *out, const struct processes *processes);
void print_json_integrity(struct output *out, const struct processes *processes);
void print_json_totals(struct output *out, const struct processes *processes);

#endif
