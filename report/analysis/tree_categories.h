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

#endif
