/* SPDX-License-Identifier: MIT
 * Reads the JSON traces of torch.profiler (Kineto).
 */
#ifndef PPERF_REPORT_IMPORT_KINETO_KINETO_H
#define PPERF_REPORT_IMPORT_KINETO_KINETO_H

#include "report/base/gzip_file.h"
#include "report/import/convert/event_rows.h"

/* Reads a whole JSON file. Returns false if it is not a JSON trace. `problem` then says what it
 * is instead. */
bool kineto_read(struct event_rows *imported, struct gzip_file *file);

#endif
