/* SPDX-License-Identifier: MIT
 *
 * Returns the category of each node of a call tree, by the rules of report/gpu/work_categories.h:
 * those for names, and those for the ranges around a node.
 *
 *	uint8_t *of_node = categories_of_tree(categories, tree, texts);
 *
 *	categories_name(categories, of_node[id]);
 *
 * Memory: while a tree is classified, 4 bytes a node, 8 a name, and 128 for each different set of
 * rules that matches a name or a call path.
 */
#ifndef PPERF_REPORT_ANALYSIS_TREE_CATEGORIES_H
#define PPERF_REPORT_ANALYSIS_TREE_CATEGORIES_H

#include "report/gpu/work_categories.h"
#include "report/profile/call_tree.h"

/* Returns the category of each node, by its number; the caller frees the array. Kernels match by
 * the name of their node, so a tree made with DEMANGLE_FULL has the whole name. Graphs and calls
 * have the category of the ranges around them. */
uint8_t *categories_of_tree(const struct categories *categories, const struct tree *tree,
	const struct string_table *texts);

/* Classifies GPU operations one by one: of a kernel, the full name decides, whatever form the names
 * of the tree have. So operations sum to the figures of the view `categories`. Memory: 12 bytes a
 * node, 8 a name, and 128 for each different set of rules. */
struct category_lookup;

/* `categories`, `tree` and `texts` must outlive the result. Nodes and texts added later are
 * `other`. */
struct category_lookup *category_lookup_new(const struct categories *categories,
	const struct tree *tree, const struct string_table *texts);
void category_lookup_free(struct category_lookup *lookup); /* NULL is allowed */
/* Returns the category of an operation. `leaf`: its node. `kernel_name`: of a kernel, its name id
 * in the trace. */
uint8_t category_lookup_of(struct category_lookup *lookup, struct trace_reader *reader,
	uint32_t leaf, uint32_t kernel_name);

#endif
