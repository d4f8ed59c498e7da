/* SPDX-License-Identifier: MIT
 *
 * Prints the suggested next command: the last line of a view's text, dimmed, ready to be copied. It
 * is printed on a terminal only, because elsewhere it would disturb scripts that compare or count
 * lines.
 *
 * A view names its command by a pattern:
 *
 * | in the pattern | replaced by                                                              |
 * |----------------|--------------------------------------------------------------------------|
 * | %m             | the metric                                                               |
 * | %p             | --focus and the path of the first row; no path: no command is printed    |
 */
#ifndef PPERF_REPORT_PRINT_NEXT_COMMAND_H
#define PPERF_REPORT_PRINT_NEXT_COMMAND_H

#include "report/print/shell_command.h"
#include "report/print/print.h"

/* Prints the command of the view's pattern. */
void next_command_of_view(const struct report *report, const struct style *style);

/* The following functions are for views that build their own command, which begins as { .ascii =
 * style->ascii }. next_command_put prints and frees it. */
void next_command_begin(struct shell_command *command, const char *view);
/* Adds the traces, and the options that decide how their nodes are named. */
void next_command_add_files(struct shell_command *command, const struct options *options);
/* Adds the path as one word, its names joined by /. next_command_add_focus adds it as --focus. */
void next_command_add_path(
	struct shell_command *command, const struct trace_text *path, size_t count);
void next_command_add_focus(
	struct shell_command *command, const struct trace_text *path, size_t count);
void next_command_put(struct shell_command *command, const struct style *style);

#endif
