/* SPDX-License-Identifier: MIT
 * Parses the command line. One list of options makes the parser and --help.
 */
#ifndef PPERF_REPORT_CLI_COMMAND_LINE_H
#define PPERF_REPORT_CLI_COMMAND_LINE_H

#include "report/run/options.h"

/* Returns what the command line asks for; it points into `argv`. A wrong argument ends the program with a sentence and
 * STATUS_USAGE. Also sets the list of views (views_set). */
struct options command_line_parse(int argc, char **argv);

/* Prints the lines of --help about options. */
void command_line_help(const struct style *style);

#endif
