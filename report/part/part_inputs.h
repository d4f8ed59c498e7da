/* SPDX-License-Identifier: MIT
 *
 * Decides which traces this process writes: its share of them, without those that a manifest lists.
 */
#ifndef PPERF_REPORT_PART_PART_INPUTS_H
#define PPERF_REPORT_PART_PART_INPUTS_H

#include "report/run/options.h"

struct part_input {
	char *path, *real; /* real: without links; owned */
	uint64_t bytes;
	uint64_t file;    /* hash of `real` */
	uint64_t state;   /* hash of `real`, size and time of change */
	uint64_t version; /* hash of `state` and of the options that the part depends on */
};

struct part_inputs {
	struct part_input *all; /* by path */
	size_t count, room;
	size_t found, done; /* traces of the share; those of them that a manifest lists */
	size_t done_faults; /* part of `done`: the manifest calls them damaged or incomplete */
};

/* Finds the traces that options->files name, and leaves out those of other shares and those that
 * are done with the same options. One that is done with findings is done without them, too. Ends
 * the program if redacted parts would be among others that are not. */
struct part_inputs part_inputs_find(const struct options *options);
void part_inputs_free(struct part_inputs *inputs);

#endif
