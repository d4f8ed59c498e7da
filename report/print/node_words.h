/* SPDX-License-Identifier: MIT
 *
 * Names nodes of the call tree in sentences.
 */
#ifndef PPERF_REPORT_PRINT_NODE_WORDS_H
#define PPERF_REPORT_PRINT_NODE_WORDS_H

#include "report/run/process.h"
#include "report/text/paragraph.h"

#define WRITTEN_NODES_MAX 128u

/* The nodes on the call paths that a screen has already. */
struct written_paths {
	uint32_t nodes[WRITTEN_NODES_MAX];
	size_t count;
};

/* Appends the name of a node. A module name that label folding reduced to `*` gets its class in
 * brackets. */
void paragraph_add_node(struct paragraph *paragraph, const struct process *process, uint32_t node);
/* Appends "in `a / b`", the path of `node`, or says that there was no range. With
 * style.written, `…` replaces names at the beginning that the screen has already. */
void paragraph_add_path(struct paragraph *paragraph, const struct process *process, uint32_t node);
/* Appends where `node` is, in few names: the range or module around its operators, and what is
 * around that, the outermost operator, and the node itself. Examples: "… / forward / Linear /
 * aten::linear / … / aten::mm", "backward of aten::linear in forward / Linear, at aten::mm".
 * `…` replaces names that are left out. */
void paragraph_add_place(struct paragraph *paragraph, const struct process *process, uint32_t node);
/* Appends "in `the same`", or "in no range". */
void paragraph_add_in_place(
	struct paragraph *paragraph, const struct process *process, uint32_t node);
/* The same as paragraph_add_path without the section of the run, such as `(between steps)`, that
 * the node is in. `omits_steps`: without the step as well. */
void paragraph_add_call_path(struct paragraph *paragraph, const struct process *process,
	uint32_t node, bool omits_steps);

#endif
