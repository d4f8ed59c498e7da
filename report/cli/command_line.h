/* SPDX-License-Identifier: MIT
 * Parses the command line. The parser and --help use the same list of options.
 */
#ifndef PPERF_REPORT_CLI_COMMAND_LINE_H
#define PPERF_REPORT_CLI_COMMAND_LINE_H

#include "report/run/options.h"

/* Returns the options of the command line; they point into `argv`. Also sets the list of views
 * (views_set). A wrong argument ends the program with a message and STATUS_USAGE. */
struct options command_line_parse(int argc, char **argv);

/* Prints the lines of --help about options. */
void command_line_help(const struct style *style);

#endif
