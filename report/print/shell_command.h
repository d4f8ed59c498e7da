/* SPDX-License-Identifier: MIT
 *
 * Builds a shell command to be copied from the terminal. Words are quoted for the shell. Bytes that
 * a terminal must not receive are written as \OOO in $'...', which bash, zsh and ksh read.
 */
#ifndef PPERF_REPORT_PRINT_SHELL_COMMAND_H
#define PPERF_REPORT_PRINT_SHELL_COMMAND_H

#include "report/run/options.h"

/* All zeros but `ascii` at first. The caller frees `text`, which is terminated once something was
 * added. */
struct shell_command {
	bool ascii; /* escape all bytes that are not ASCII */
	char *text;
	size_t used, room;
};

/* Appends constant text unchanged. */
void shell_command_add(struct shell_command *command, const char *text);
/* Appends a blank and a word, quoted if needed. */
void shell_command_add_word(struct shell_command *command, const char *bytes, size_t length);
/* Appends the path of a trace, so that it is not read as a view or an option. */
void shell_command_add_file(struct shell_command *command, const char *path);
/* Appends the traces that the user named. */
void shell_command_add_files(struct shell_command *command, const struct options *options);

#endif
