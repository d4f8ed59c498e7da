/* SPDX-License-Identifier: MIT
 * Chooses and writes the file of a page or an export. The file appears under its name when it is
 * complete: it is written to NAME.tmp and renamed.
 */
#ifndef PPERF_REPORT_RUN_OUTPUT_FILE_H
#define PPERF_REPORT_RUN_OUTPUT_FILE_H

#include "report/run/options.h"
#include "report/text/output.h"

struct output_file {
	struct output *out;
	char *name;   /* the file's final name; NULL: standard output */
	char *opened; /* what is written: name, or NAME.tmp; NULL: standard output */
	bool named_by_us;
};

/* Opens -o, else standard output. If that is a terminal, opens the first trace's name followed by
 * `suffix`. Ends the program if the file cannot be written. */
struct output_file output_file_open(const struct options *options, const char *suffix);
/* Closes and renames the file. Prints the name to stderr if the user did not choose it. Ends the
 * program if that fails. Returns false if the reader of a pipe has closed it. */
bool output_file_close(struct output_file *file);

#endif
