/* SPDX-License-Identifier: MIT
 *
 * Classifies GPU work as communication, GEMM, attention, norm and so on, by rules for the names of
 * kernels and of the ranges around them. Every view uses these rules.
 *
 * The rules are in work_categories.rules, which is compiled in; --categories names a file of the
 * same form to use instead. A line `include built-in` in that file adds the built-in rules there.
 * Categories are numbered in the order in which rules first name them; 0 is `other`.
 *
 * A rule may depend on the ranges around a kernel (report/analysis/tree_categories.h). Whether a
 * kernel is `communication` depends only on its name, which is tested before the rules with a
 * condition on ranges. So the timeline of a device, which knows only names, and the view
 * `categories` agree.
 *
 *	struct categories *categories = categories_read(NULL);
 *
 *	if (categories_is_communication(categories, reader_name(reader, kernel->name)))
 *		...
 *
 * Matching a name takes 10 to 100 microseconds, so callers keep the result by name. Memory: a few
 * bytes a rule.
 */
#ifndef PPERF_REPORT_GPU_WORK_CATEGORIES_H
#define PPERF_REPORT_GPU_WORK_CATEGORIES_H

#include "report/trace/trace_reader.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CATEGORY_OTHER_NAME "other"
#define CATEGORY_OTHER 0u
#define CATEGORY_COMMUNICATION_NAME "communication"
#define CATEGORIES_MAX 64u         /* in one file and the built-in ones, `other` included */
#define CATEGORIES_RULES_MAX 1024u /* likewise */
#define CATEGORY_NO_KERNEL_NAME "(kernel without a name)"

struct categories;

/* The patterns of a rule. OF_KERNEL is matched with the full name of a kernel, OF_MEMCPY and
 * OF_MEMSET with the name of a copy or memset, OF_AROUND with the name or class of a range. */
enum category_condition { OF_KERNEL, OF_MEMCPY, OF_MEMSET, OF_AROUND, CATEGORY_CONDITIONS };

/* A set of rules. */
struct matching_rules {
	uint64_t words[CATEGORIES_RULES_MAX / 64];
};

/* Reads the rules of a file, or the built-in ones if `path` is NULL. An error in it ends the
 * program with STATUS_USAGE and a message with file and line. */
struct categories *categories_read(const char *path);
void categories_free(struct categories *categories); /* NULL is allowed */

unsigned categories_count(const struct categories *categories);
const char *categories_name(const struct categories *categories, unsigned category);

/* Returns true if a kernel with this name, mangled or not, is communication. `categories` NULL:
 * none is. */
bool categories_is_communication(const struct categories *categories, struct trace_text name);

/* Returns the rules whose pattern for `condition` matches a name. */
struct matching_rules categories_match(const struct categories *categories,
	enum category_condition condition, const char *name, size_t length);
/* Returns the category of the first rule that applies to GPU work or to the CPU time of a range;
 * CATEGORY_OTHER if none does. `kind`: of the GPU work; OF_AROUND for a range. `by_name`: the rules
 * that match its name; for a range the empty set. `around`: the rules that match a range around it,
 * or the range itself. */
uint8_t category_by_first_rule(const struct categories *categories, enum category_condition kind,
	const struct matching_rules *by_name, const struct matching_rules *around);

/* Matches without regard to case; * is any bytes, ? is one byte. */
bool category_matches(const char *pattern, const char *name, size_t length);

#endif
