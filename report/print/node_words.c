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

static bool is_written(const struct written_paths *written, uint32_t node)
{
	for (size_t i = 0; i < written->count; i++)
		if (written->nodes[i] == node)
			return true;
	return false;
}

/* with fewer, `…` is hardly shorter, and harder to read */
#define LEFT_OUT_BYTES_MIN 20u

/* Returns how many names at the beginning of a path are left out, and marks its nodes as written.
 * At least two names remain. */
static size_t names_written_before(struct written_paths *written, const struct process *process,
	const uint32_t *nodes, size_t length)
{
	size_t first = 0, bytes = 0;

	for (size_t i = 0; written && i < length; i++) {
		if (is_written(written, nodes[i]))
			first = i;
		else if (written->count < WRITTEN_NODES_MAX)
			written->nodes[written->count++] = nodes[i];
	}
	if (first && first + 1 == length)
		first--;
	for (size_t i = 0; i < first; i++)
		bytes += string_table_get(
			process->texts, process->profile->tree->nodes[nodes[i]].name)
				 .length;
	return bytes >= LEFT_OUT_BYTES_MIN ? first : 0;
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
	size_t first;

	if (process->profile->tree->nodes[node].kind == NODE_UNATTRIBUTED) {
		paragraph_add(paragraph, "outside any range");
		return;
	}
	first = names_written_before(
		paragraph->style->written, process, nodes, length < 16 ? length : 16);
	paragraph_add(paragraph, "in `%s",
		!first                    ? ""
		: paragraph->style->ascii ? "... / "
					  : "\xe2\x80\xa6 / ");
	for (size_t i = first; i < length && i < 16; i++) {
		paragraph_add(paragraph, "%s", i > first ? " / " : "");
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
