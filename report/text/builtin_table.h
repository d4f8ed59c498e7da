/* SPDX-License-Identifier: MIT
 * Reads a text table that is built in and that the user may replace: kernel categories, GPU
 * peaks.
 */
#ifndef PPERF_REPORT_TEXT_BUILTIN_TABLE_H
#define PPERF_REPORT_TEXT_BUILTIN_TABLE_H

/* Returns the text of the file at `path`, or a copy of `built_in` if `path` is NULL. The caller
 * frees it. A file that cannot be read, exceeds 1 MB or has a zero byte ends the program with an
 * error message. `what`: the contents of the table, for that message. */
char *builtin_table_read(const char *path, const char *built_in, const char *what);

/* Calls `on_line` for each line of `text`, which is terminated in place. `number` starts at 1. */
void builtin_table_for_lines(
	char *text, void (*on_line)(void *context, char *line, unsigned number), void *context);

#endif
