/* SPDX-License-Identifier: MIT
 * Reads the JSON traces of torch.profiler (Kineto).
 */
#ifndef PPERF_REPORT_IMPORT_KINETO_KINETO_H
#define PPERF_REPORT_IMPORT_KINETO_KINETO_H

#include "report/base/gzip_file.h"
#include "report/import/convert/event_rows.h"

/* Reads a whole JSON file, plain or gzip. The caller closes `file`. Returns true for a trace, also
 * for a damaged one (`truncated` of struct event_rows). Returns false for any other file, with the
 * end of a sentence that begins with "it" in imported->problem. Initialises `imported` in both
 * cases. Free it with event_rows_free. */
bool kineto_read(struct event_rows *imported, struct gzip_file *file);

#endif
