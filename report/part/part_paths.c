/* SPDX-License-Identifier: MIT */
#include "report/part/part_paths.h"
#include "report/base/alloc.h"

static uint64_t add_text(uint64_t hash, const struct process *process, uint32_t id)
{
	const struct string_view text = string_table_get(process->texts, id);

	hash = hash_u64(hash ^ text.length);
	for (uint32_t i = 0; i < text.length; i++)
		hash = hash_u64(hash ^ (unsigned char)text.bytes[i]);
	return hash;
}

uint64_t *part_path_hashes(const struct process *process, const struct tree *tree, bool whole)
{
	uint64_t *hashes = xcalloc(tree->count * sizeof *hashes);

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];
		uint64_t hash = hash_u64(hashes[node->parent] ^ ((uint64_t)node->kind + 1));

		hash = add_text(hash, process, node->name);
		if (whole && node->domain)
			hash = add_text(hash_u64(hash ^ 1), process, node->domain);
		if (whole && node->class)
			hash = add_text(hash_u64(hash ^ 2), process, node->class);
		hashes[id] = hash;
	}
	return hashes;
}

void part_path_add(struct text_builder *path, const struct process *process,
	const struct tree *tree, uint32_t node)
{
	struct string_view name;

	if (!node)
		return;
	part_path_add(path, process, tree, tree->nodes[node].parent);
	text_add_bytes(path, "/", path->used > 0);
	name = string_table_get(process->texts, tree->nodes[node].name);
	text_add_path_name(path, name.bytes, name.length);
}
