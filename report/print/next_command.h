/* SPDX-License-Identifier: MIT
 * next.h: what one may ask next: the last line of a view's text, on a terminal, dim: a command to copy, that works. Elsewhere nothing is written: there it
 * would be in the way of whoever compares or counts lines.
 *
 * A view names its own by a pattern of a command's words: %m the metric, %p the place of its first row as --focus takes it (then, without a place, there is
 * none).
 */
#ifndef PPERF_REPORT_PRINT_NEXT_COMMAND_H
#define PPERF_REPORT_PRINT_NEXT_COMMAND_H

#include "report/print/shell_command.h"
#include "report/print/print.h"

/* By the view's pattern. */
void next_command_of_view(const struct report *report, const struct style *style);

/* Of a view that does everything itself. Begins as { .ascii = style->ascii }, is printed and freed by next_put. */
void next_command_begin(struct shell_command *command, const char *view);
/* Which traces, and what decides how their places are called. */
void next_command_add_files(struct shell_command *command, const struct options *options);
/* The path as a word: names joined by /. The same as --focus takes it. */
void next_command_add_path(
	struct shell_command *command, const struct trace_text *path, size_t count);
void next_command_add_focus(
	struct shell_command *command, const struct trace_text *path, size_t count);
void next_command_put(struct shell_command *command, const struct style *style);

#endif
