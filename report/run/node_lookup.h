/* SPDX-License-Identifier: MIT
 * Finds the tree nodes that the user means by a path or a name.
 *
 * A path is names joined by `/`, from the root on; `\/` is a slash in a name. A name may be
 * anywhere.
 */
#ifndef PPERF_REPORT_RUN_NODE_LOOKUP_H
#define PPERF_REPORT_RUN_NODE_LOOKUP_H

#include "report/run/process.h"

struct node_list {
	/* Owned by the caller. In ascending order if found by name. */
	uint32_t *nodes;
	size_t count;
};

/* Returns all nodes at `path`, of any kind and domain. `has_events`: by node; a node without is
 * skipped. NULL: none is skipped. */
struct node_list node_lookup_path(
	const struct process *process, bool no_fold, const char *path, const bool *has_events);
/* Returns the end of a sentence about `path`, which means no node: the nearest name where the path
 * leaves the tree, as suggest_text does. */
const char *node_lookup_suggest(
	const struct process *process, bool no_fold, const char *path, const char *otherwise);
/* Tries these in order, until nodes are found:
 *
 *   1. the nodes at the path `text`, if it has a `/`
 *   2. all nodes with the name `text`
 *   3. all nodes of the one name that contains `text`
 *
 * Ends the program with a message if there is none, or if several names contain `text`. */
struct node_list node_lookup_name(const struct process *process, bool no_fold, const char *text);

#endif
