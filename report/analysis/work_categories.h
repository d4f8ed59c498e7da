/* SPDX-License-Identifier: MIT
 *
 * Classifies GPU work as norm, attention, GEMM, convolution and so on, by rules for the names of
 * kernels and of the ranges around them.
 *
 * The rules are in work_categories.rules, which is compiled in; --categories names a file of the
 * same form to use instead. Categories are numbered in the order in which rules first name them; 0
 * is `other`.
 *
 *	struct categories *categories = categories_read(NULL);
 *	uint8_t *of_node = categories_of_tree(categories, tree, texts);
 *
 *	categories_name(categories, of_node[id]);
 *
 * Memory: a few bytes a rule; while a tree is classified, 64 bytes a node and a name.
 */
#ifndef PPERF_REPORT_ANALYSIS_WORK_CATEGORIES_H
#define PPERF_REPORT_ANALYSIS_WORK_CATEGORIES_H

#include "report/profile/call_tree.h"

#define CATEGORY_OTHER_NAME "other"
#define CATEGORY_OTHER 0u
#define CATEGORIES_MAX 64u /* in one file, `other` included */
#define CATEGORIES_RULES_MAX 512u

struct categories;

/* Reads the rules of a file, or the built-in ones if `path` is NULL. An error in it ends the
 * program with STATUS_USAGE and a message with file and line. */
struct categories *categories_read(const char *path);
void categories_free(struct categories *categories); /* NULL is allowed */

unsigned categories_count(const struct categories *categories);
const char *categories_name(const struct categories *categories, unsigned category);

/* Returns the category of each node, by its number; the caller frees the array. Kernels match by
 * the name of their node, so a tree made with DEMANGLE_FULL has the whole name. Graphs and calls
 * have the category of the ranges around them. */
uint8_t *categories_of_tree(const struct categories *categories, const struct tree *tree,
	const struct string_table *texts);

/* Matches without regard to case; * is any bytes, ? is one byte. */
bool category_matches(const char *pattern, const char *name, size_t length);

#endif
