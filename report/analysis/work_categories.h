/* SPDX-License-Identifier: MIT
 * categories.h: what work is: norm, attention, GEMM, convolution ... by rules on the names of kernels and of what they
 * were launched in. The rules are a table that people can read, categories.rules, compiled in; --categories puts a file
 * of the same form in its place. Categories are numbers from 0, `other`, in the order in which the rules first name them.
 *
 *	struct categories *categories = categories_read(NULL);
 *	uint8_t *of_node = categories_of_tree(categories, tree, texts);
 *
 *	categories_name(categories, of_node[id]);
 *
 * Memory: a few bytes a rule; while a tree is looked at, 64 bytes a node and a name.
 */
#ifndef PPERF_REPORT_ANALYSIS_WORK_CATEGORIES_H
#define PPERF_REPORT_ANALYSIS_WORK_CATEGORIES_H

#include "report/profile/call_tree.h"

#define CATEGORY_OTHER_NAME "other"
#define CATEGORY_OTHER 0u
#define CATEGORIES_MAX 64u /* in one file, with `other` */
#define CATEGORIES_RULES_MAX 512u

struct categories;

/* The rules of a file; NULL: the built-in ones. What is wrong with it ends the program with a sentence that names file
 * and line, and STATUS_USAGE. */
struct categories *categories_read(const char *path);
void categories_free(struct categories *categories); /* NULL is fine */

unsigned categories_count(const struct categories *categories);
const char *categories_name(const struct categories *categories, unsigned category);

/* The category of each node, by its number; to be freed by the caller. Kernels are known by their nodes' names: of a
 * tree that was made with DEMANGLE_FULL all of a name is there to be matched. Graphs and calls have that of what is
 * around them. */
uint8_t *categories_of_tree(const struct categories *categories, const struct tree *tree,
	const struct string_table *texts);

/* Case apart, * any bytes, ? one. */
bool category_matches(const char *pattern, const char *name, size_t length);

#endif
