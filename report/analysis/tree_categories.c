/* SPDX-License-Identifier: MIT */
#include "report/analysis/tree_categories.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

#define NO_RULES 0u  /* the number of the empty set */
#define UNIONS 4096u /* unions that are kept for reuse */

/* The different sets of rules, and the set of each text: its number + 1; 0: not matched yet. Most
 * names match no rule, and nodes below a range have its set. */
struct category_lookup {
	const struct categories *categories;
	const struct string_table *texts;
	struct matching_rules *sets;
	size_t count, room;
	uint32_t *around, *kernels; /* as a range, as a kernel */
	/* The same ranges are in the same ranges again and again. */
	struct set_union {
		uint32_t a, b, both;
	} * unions;
};

static bool is_empty_set(const struct matching_rules *set)
{
	static const struct matching_rules none;

	return memcmp(set, &none, sizeof none) == 0;
}

static uint32_t add_set(struct category_lookup *lookup, const struct matching_rules *set)
{
	if (is_empty_set(set))
		return NO_RULES;
	ARRAY_GROW(lookup->sets, lookup->room, lookup->count + 1);
	lookup->sets[lookup->count] = *set;
	return (uint32_t)lookup->count++;
}

static uint32_t set_of_text(
	struct category_lookup *lookup, enum category_condition condition, uint32_t text)
{
	uint32_t *known = condition == OF_AROUND   ? &lookup->around[text]
			  : condition == OF_KERNEL ? &lookup->kernels[text]
						   : NULL;
	const struct string_view name = string_table_get(lookup->texts, text);
	struct matching_rules matches;
	uint32_t set;

	if (known && *known)
		return *known - 1;
	matches = categories_match(lookup->categories, condition, name.bytes, name.length);
	set = add_set(lookup, &matches);
	if (known)
		*known = set + 1;
	return set;
}

static uint32_t add_union(struct category_lookup *lookup, uint32_t a, uint32_t b)
{
	struct matching_rules both = lookup->sets[a];

	for (size_t i = 0; i < sizeof both.words / sizeof *both.words; i++)
		both.words[i] |= lookup->sets[b].words[i];
	if (memcmp(&both, &lookup->sets[a], sizeof both) == 0)
		return a;
	return memcmp(&both, &lookup->sets[b], sizeof both) == 0 ? b : add_set(lookup, &both);
}

/* Returns the union of two sets. It is a new set only if neither contains the other. */
static uint32_t unite_sets(struct category_lookup *lookup, uint32_t a, uint32_t b)
{
	struct set_union *known = &lookup->unions[(a * 2654435761u ^ b) % UNIONS];

	if (a == b || b == NO_RULES)
		return a;
	if (known->a != a || known->b != b)
		*known = (struct set_union){ a, b, add_union(lookup, a, b) };
	return known->both;
}

static uint8_t category_of_node(
	struct category_lookup *lookup, const struct node *node, uint32_t around)
{
	const enum category_condition condition = node->kind == NODE_KERNEL   ? OF_KERNEL
						  : node->kind == NODE_MEMCPY ? OF_MEMCPY
						  : node->kind == NODE_MEMSET ? OF_MEMSET
									      : OF_AROUND;
	const uint32_t named = condition == OF_AROUND ? NO_RULES
						      : set_of_text(lookup, condition, node->name);

	return category_by_first_rule(
		lookup->categories, condition, &lookup->sets[named], &lookup->sets[around]);
}

static struct category_lookup lookup_new(const struct categories *categories,
	const struct tree *tree, const struct string_table *texts)
{
	struct category_lookup lookup = { .categories = categories, .texts = texts, .count = 1 };
	uint32_t last = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		last = tree->nodes[id].name > last ? tree->nodes[id].name : last;
		last = tree->nodes[id].class > last ? tree->nodes[id].class : last;
	}
	ARRAY_GROW(lookup.sets, lookup.room, lookup.count);
	lookup.unions = xcalloc(UNIONS * sizeof *lookup.unions);
	lookup.around = xcalloc(((size_t)last + 1) * sizeof *lookup.around);
	lookup.kernels = xcalloc(((size_t)last + 1) * sizeof *lookup.kernels);
	return lookup;
}

static void free_category_lookup(struct category_lookup *lookup)
{
	free(lookup->sets);
	free(lookup->unions);
	free(lookup->around);
	free(lookup->kernels);
}

uint8_t *categories_of_tree(const struct categories *categories, const struct tree *tree,
	const struct string_table *texts)
{
	struct category_lookup lookup = lookup_new(categories, tree, texts);
	/* By node: the rules that match the node or an ancestor as a range around. */
	uint32_t *around = xcalloc(tree->count * sizeof *around);
	uint8_t *result = xcalloc(tree->count);

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];
		const bool is_range = node_kind_class(node->kind) == NODE_RANGES;

		around[id] = around[node->parent];
		if (is_range)
			around[id] = unite_sets(
				&lookup, around[id], set_of_text(&lookup, OF_AROUND, node->name));
		if (is_range && node->class)
			around[id] = unite_sets(
				&lookup, around[id], set_of_text(&lookup, OF_AROUND, node->class));
		result[id] = category_of_node(&lookup, node, around[id]);
	}
	free(around);
	free_category_lookup(&lookup);
	return result;
}
