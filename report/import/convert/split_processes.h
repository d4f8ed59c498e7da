/* SPDX-License-Identifier: MIT
 * Selects the rows of one process from the rows of several.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_SPLIT_PROCESSES_H
#define PPERF_REPORT_IMPORT_CONVERT_SPLIT_PROCESSES_H

#include "report/import/convert/event_rows.h"

/* Returns the process that used GPUs most. Ties are resolved by the number of rows, then by
 * order. Returns 0 if there is only one process. */
uint32_t split_main_process(const struct event_rows *imported);

/* Returns the rows of `process`, in their order in `all`. Texts are shared with `all`. Counts
 * that belong to the file (skipped and unreadable events) go to the main process. Free the
 * result with split_process_free. */
struct event_rows split_process(const struct event_rows *all, uint32_t process);
void split_process_free(struct event_rows *part);

#endif
