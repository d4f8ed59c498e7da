/* SPDX-License-Identifier: MIT */
#include "report/analysis/tree_categories.h"
#include "report/base/alloc.h"
#include "report/symbols/demangle.h"
#include <stdlib.h>
#include <string.h>

#define NO_RULES 0u          /* the number of the empty set */
#define UNIONS 4096u         /* unions that are kept for reuse */
#define NAMES_MAX (1u << 22) /* larger name ids, which only a damaged trace has, are not kept */

/* The different sets of rules, and the set of each text: its number + 1; 0: not matched yet. Most
 * names match no rule, and nodes below a range have its set. */
struct category_lookup {
	const struct categories *categories;
	const struct tree *tree;
	const struct string_table *texts;
	struct matching_rules *sets;
	size_t count, room;
	uint32_t text_count;
	uint32_t *around, *kernels; /* as a range, as a kernel */
	/* By node: the rules that match the node or an ancestor as a range around. */
	uint32_t *node_around, node_count;
	/* category_lookup_of: by name id of the trace, the set of a kernel + 1; 0: not matched. */
	uint32_t *kernel_names;
	size_t kernel_names_room;
	/* By node: the last kernel of category_lookup_of, and its category. */
	struct known_kernel {
		uint32_t name;
		bool is_known;
		uint8_t category;
	} * known;
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

/* Finds the ranges around each node. */
static void find_ranges_around(struct category_lookup *lookup)
{
	const struct tree *tree = lookup->tree;

	for (uint32_t id = 1; id < lookup->node_count; id++) {
		const struct node *node = &tree->nodes[id];
		uint32_t around = lookup->node_around[node->parent];

		if (node_kind_class(node->kind) == NODE_RANGES) {
			around = unite_sets(
				lookup, around, set_of_text(lookup, OF_AROUND, node->name));
			if (node->class)
				around = unite_sets(lookup, around,
					set_of_text(lookup, OF_AROUND, node->class));
		}
		lookup->node_around[id] = around;
	}
}

struct category_lookup *category_lookup_new(const struct categories *categories,
	const struct tree *tree, const struct string_table *texts)
{
	struct category_lookup *lookup = xcalloc(sizeof *lookup);

	*lookup = (struct category_lookup){
		.categories = categories, .tree = tree, .texts = texts, .count = 1
	};
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (node->name >= lookup->text_count)
			lookup->text_count = node->name + 1;
		if (node->class >= lookup->text_count)
			lookup->text_count = node->class + 1;
	}
	ARRAY_GROW(lookup->sets, lookup->room, lookup->count);
	lookup->unions = xcalloc(UNIONS * sizeof *lookup->unions);
	lookup->around = xcalloc(((size_t)lookup->text_count + 1) * sizeof *lookup->around);
	lookup->kernels = xcalloc(((size_t)lookup->text_count + 1) * sizeof *lookup->kernels);
	lookup->node_count = tree->count;
	lookup->known = xcalloc(tree->count * sizeof *lookup->known);
	lookup->node_around = xcalloc(tree->count * sizeof *lookup->node_around);
	find_ranges_around(lookup);
	return lookup;
}

void category_lookup_free(struct category_lookup *lookup)
{
	if (!lookup)
		return;
	free(lookup->sets);
	free(lookup->unions);
	free(lookup->around);
	free(lookup->kernels);
	free(lookup->node_around);
	free(lookup->known);
	free(lookup->kernel_names);
	free(lookup);
}

uint8_t *categories_of_tree(const struct categories *categories, const struct tree *tree,
	const struct string_table *texts)
{
	struct category_lookup *lookup = category_lookup_new(categories, tree, texts);
	uint8_t *result = xcalloc(tree->count);

	for (uint32_t id = 1; id < tree->count; id++)
		result[id] = category_of_node(lookup, &tree->nodes[id], lookup->node_around[id]);
	category_lookup_free(lookup);
	return result;
}

/* Returns the set of a kernel's full name. */
static uint32_t set_of_kernel_name(
	struct category_lookup *lookup, struct trace_reader *reader, uint32_t name)
{
	const struct trace_text text = reader_name(reader, name);
	struct matching_rules matches;
	char *full;
	size_t length;

	if (name < NAMES_MAX) {
		ARRAY_GROW(lookup->kernel_names, lookup->kernel_names_room, (size_t)name + 1);
		if (lookup->kernel_names[name])
			return lookup->kernel_names[name] - 1;
	}
	full = xcalloc(DEMANGLE_OUTPUT);
	length = demangle(DEMANGLE_FULL, text.bytes, text.length, full, DEMANGLE_OUTPUT);
	matches = length ? categories_match(lookup->categories, OF_KERNEL, full, length)
			 : categories_match(lookup->categories, OF_KERNEL, text.bytes, text.length);
	free(full);
	if (name >= NAMES_MAX)
		return add_set(lookup, &matches);
	lookup->kernel_names[name] = add_set(lookup, &matches) + 1;
	return lookup->kernel_names[name] - 1;
}

static uint8_t category_of_kernel(struct category_lookup *lookup, struct trace_reader *reader,
	uint32_t leaf, uint32_t kernel_name)
{
	const struct node *node = &lookup->tree->nodes[leaf];
	uint32_t named;

	if (node->kind != NODE_KERNEL || !reader_name(reader, kernel_name).length)
		return category_of_node(lookup, node, lookup->node_around[leaf]);
	named = set_of_kernel_name(lookup, reader, kernel_name); /* may move the sets */
	return category_by_first_rule(lookup->categories, OF_KERNEL, &lookup->sets[named],
		&lookup->sets[lookup->node_around[leaf]]);
}

uint8_t category_lookup_of(struct category_lookup *lookup, struct trace_reader *reader,
	uint32_t leaf, uint32_t kernel_name)
{
	struct known_kernel *known;

	if (leaf >= lookup->node_count || lookup->tree->nodes[leaf].name >= lookup->text_count)
		return CATEGORY_OTHER;
	known = &lookup->known[leaf];
	if (!known->is_known || known->name != kernel_name)
		*known = (struct known_kernel){ .name = kernel_name,
			.is_known = true,
			.category = category_of_kernel(lookup, reader, leaf, kernel_name) };
	return known->category;
}
