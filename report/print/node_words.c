/* SPDX-License-Identifier: MIT */
#include "report/print/node_words.h"
#include "report/table/column.h"

void paragraph_add_node(
	struct paragraph *paragraph, const struct process *process, uint32_t node_id)
{
	const struct node *node = &process->profile->tree->nodes[node_id];
	const struct string_view name = string_table_get(process->texts, node->name),
				 class = string_table_get(process->texts, node->class);

	paragraph_name(paragraph, name.bytes, name.length);
	if (!node->class || name.length != 1 || name.bytes[0] != '*')
		return;
	paragraph_add(paragraph, " (");
	paragraph_name(paragraph, class.bytes, class.length);
	paragraph_add(paragraph, ")");
}

/* `omits`: whether the path leaves out sections of the run; `omits_steps`: steps too. */
static void add_path(struct paragraph *paragraph, const struct process *process, uint32_t node,
	bool omits, bool omits_steps)
{
	const struct memory_site site = { .omits_sections = omits, .omits_steps = omits_steps };
	const struct row row = { .process = (struct process *)(uintptr_t)process,
		.kind = omits ? ROW_SITE : ROW_NODE,
		.node = node,
		.tree = process->profile->tree,
		.of.site = omits ? &site : NULL };
	uint32_t nodes[16];
	const size_t length = row_path(&row, nodes, 16);

	if (process->profile->tree->nodes[node].kind == NODE_UNATTRIBUTED) {
		paragraph_add(paragraph, "outside any range");
		return;
	}
	paragraph_add(paragraph, "in ");
	for (size_t i = 0; i < length && i < 16; i++) {
		paragraph_add(paragraph, i ? " / " : "`");
		paragraph_add_node(paragraph, process, nodes[i]);
	}
	paragraph_add(paragraph, "%s`", length > 16 ? " / ..." : "");
}

void paragraph_add_path(struct paragraph *paragraph, const struct process *process, uint32_t node)
{
	add_path(paragraph, process, node, false, false);
}

void paragraph_add_call_path(
	struct paragraph *paragraph, const struct process *process, uint32_t node, bool omits_steps)
{
	add_path(paragraph, process, node, true, omits_steps);
}
