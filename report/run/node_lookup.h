/* SPDX-License-Identifier: MIT
 * places.h: the places that somebody means by what they typed: a path of names joined by `/` (`\/` is a slash in a name),
 * from the root on; a name, wherever it stands.
 */
#ifndef PPERF_REPORT_RUN_NODE_LOOKUP_H
#define PPERF_REPORT_RUN_NODE_LOOKUP_H

#include "report/run/process.h"

struct node_list {
	uint32_t *
		nodes; /* in rising order of their numbers where they are found by name; the caller's */
	size_t count;
};

/* All at that path, of whatever kind and domain, in which something happened. alive: by node, NULL: all are. */
struct node_list node_lookup_path(
	const struct process *process, bool no_fold, const char *path, const bool *alive);
/* With a `/` in it: at that path; else, or if there are none, those of that name wherever they stand, else those whose one
 * name has the text in it. Ends the program with a sentence
 * if there is none, or there are several names with it. */
struct node_list node_lookup_name(const struct process *process, bool no_fold, const char *text);

#endif
