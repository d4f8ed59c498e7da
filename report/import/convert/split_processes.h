/* SPDX-License-Identifier: MIT
 * kineto_parts.h: rows of several processes, one process at a time.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_SPLIT_PROCESSES_H
#define PPERF_REPORT_IMPORT_CONVERT_SPLIT_PROCESSES_H

#include "report/import/convert/event_rows.h"

/* The process that used GPUs most, of equal ones the one with the most rows, of equal ones the first. 0 if there is but
 * one. */
uint32_t split_main_process(const struct event_rows *imported);

/* Its rows, in the order in which they lie in all; texts are shared. What is known of the file and not of a process
 * (what was left out, what could not be read) is with the main one. Ids are the process's own again.
 * kineto_part_free. */
struct event_rows split_process(const struct event_rows *all, uint32_t process);
void split_process_free(struct event_rows *part);

#endif
