/* SPDX-License-Identifier: MIT
 *
 * Names nodes of the call tree in sentences.
 */
#ifndef PPERF_REPORT_PRINT_NODE_WORDS_H
#define PPERF_REPORT_PRINT_NODE_WORDS_H

#include "report/run/process.h"
#include "report/text/paragraph.h"

/* Appends the name of a node. A module name that label folding reduced to `*` gets its class in
 * brackets. */
void paragraph_add_node(struct paragraph *paragraph, const struct process *process, uint32_t node);
/* Appends "in `a / b`", the path of `node`, or says that there was no range. */
void paragraph_add_path(struct paragraph *paragraph, const struct process *process, uint32_t node);
/* The same without the section of the run, such as `(between steps)`, that the node is in.
 * `omits_steps`: without the step as well. */
void paragraph_add_call_path(struct paragraph *paragraph, const struct process *process,
	uint32_t node, bool omits_steps);

#endif
