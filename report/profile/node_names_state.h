/* SPDX-License-Identifier: MIT
 * names_state.h: what names.c and placement.c share. Nobody else includes it.
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
	struct node_placement *
		placements; /* one for each root that was asked for; the first is the whole tree's */
	const uint8_t *above; /* by place: enum names_above; NULL: none; not owned */
	size_t placement_count, placement_room;
	uint32_t *texts_of, *kernels_of; /* by name, the text + 1; 0: not asked for yet */
	size_t text_room, kernel_room;
	uint32_t inline_nodes;
	uint64_t others;
};

enum node_kind node_names_kind(const struct trace_node_info *trace_node);
/* The text's id, folded as its kind wants it. known: 0 rather than a new id. */
uint32_t node_names_label(
	struct node_names *names, struct trace_text text, enum node_kind kind, bool known);
/* `(deeper)`, if a range below `parent` would be too deep to be told apart; else 0. */
uint32_t node_names_deeper(struct node_names *names, uint32_t parent, enum node_kind kind);

#endif
