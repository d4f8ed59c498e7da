/* SPDX-License-Identifier: MIT
 * text_table.h: a table in text that is built in and that a user may replace: categories of kernels, peaks of GPUs.
 */
#ifndef PPERF_REPORT_TEXT_BUILTIN_TABLE_H
#define PPERF_REPORT_TEXT_BUILTIN_TABLE_H

/* The text at `path`, or a copy of `built_in` if path is NULL; the caller frees it. A file that cannot be read, is larger
 * than 1 MB or has a byte 0 ends the program with a sentence that calls it a table of `what`. */
char *builtin_table_read(const char *path, const char *built_in, const char *what);

/* Each line in turn, terminated in place; numbers from 1. */
void builtin_table_for_lines(
	char *text, void (*on_line)(void *context, char *line, unsigned number), void *context);

#endif
