/* SPDX-License-Identifier: MIT
 * Declares what node_names.c and node_placement.c share.
 */
#ifndef PPERF_REPORT_PROFILE_NODE_NAMES_STATE_H
#define PPERF_REPORT_PROFILE_NODE_NAMES_STATE_H

#include "report/profile/module_group.h"
#include "report/profile/node_names.h"
#include "report/profile/node_placement.h"

struct node_names {
	struct trace_reader *reader;
	struct string_table *texts;
	struct tree *tree;
	struct module_group *module_group;
	bool fold_labels;
	enum demangle_form form;
	const struct categories *categories; /* not owned */
	uint8_t *communication; /* by text: 1 for the shown name of a kernel that communicates */
	size_t communication_room;
	/* One for each root in use. The first is that of the whole tree. */
	struct node_placement *placements;
	const uint8_t *above; /* by trace node: enum node_above; NULL: none; not owned */
	size_t placement_count, placement_room;
	uint32_t *texts_of, *kernels_of; /* by name: text + 1; 0: not looked up yet */
	size_t text_room, kernel_room;
	uint32_t inline_nodes;
	uint64_t others;
};

/* The kind of a trace node's tree node. */
enum node_kind node_names_kind(const struct trace_node_info *trace_node);
/* Returns the text id of the label pattern of `text`, by the rules of `kind`. `known_only`: returns
 * 0 instead of making a new id. */
uint32_t node_names_label(
	struct node_names *names, struct trace_text text, enum node_kind kind, bool known_only);
/* The node `(deeper)` if a range below `parent` would exceed TREE_DEPTH_MAX; else 0. */
uint32_t node_names_deeper(struct node_names *names, uint32_t parent, enum node_kind kind);

#endif
