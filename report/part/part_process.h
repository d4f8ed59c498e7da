/* SPDX-License-Identifier: MIT
 *
 * Writes the rows of one process into the tables of a part.
 */
#ifndef PPERF_REPORT_PART_PART_PROCESS_H
#define PPERF_REPORT_PART_PART_PROCESS_H

#include "report/analysis/ranks/rank_inputs.h"
#include "report/part/part_file.h"

/* A process that is written. */
struct part_process {
	struct rank_input *input; /* its process is open, unless it could not be read */
	uint64_t trace;           /* what its rows are identified by */
	uint64_t content;         /* hash of the bytes of its file */
	const char *file;         /* what the file is called */
	bool is_open;
	struct part_file *files;       /* by enum part_table */
	const struct options *options; /* of the profile */
};

void part_process_write(const struct part_process *part);

#endif
