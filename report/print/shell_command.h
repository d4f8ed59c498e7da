/* SPDX-License-Identifier: MIT
 *
 * Builds a shell command to be copied from the terminal. Words are quoted for the shell. Bytes that
 * a terminal must not receive are written as \OOO in $'...', which bash, zsh and ksh read.
 */
#ifndef PPERF_REPORT_PRINT_SHELL_COMMAND_H
#define PPERF_REPORT_PRINT_SHELL_COMMAND_H

#include "report/base/text_builder.h"
#include "report/run/options.h"

/* All zeros but `ascii` at first. The caller frees built.text. Text that is added to `built`
 * directly is not quoted. */
struct shell_command {
	bool ascii; /* characters beyond ASCII are escaped */
	struct text_builder built;
};

/* Appends a blank and a word, quoted for a shell if needed. */
void shell_command_add_word(struct shell_command *command, const char *bytes, size_t length);
/* Appends the path of a trace, so that it is not read as a view or an option. */
void shell_command_add_file(struct shell_command *command, const char *path);
/* Appends the traces that the user named. */
void shell_command_add_files(struct shell_command *command, const struct options *options);

#endif
