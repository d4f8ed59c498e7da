/* SPDX-License-Identifier: MIT
 * Measures how alike two things are by the features that they share: the words of a kernel's name,
 * or the children of a module.
 */
#ifndef PPERF_REPORT_ANALYSIS_LIKENESS_H
#define PPERF_REPORT_ANALYSIS_LIKENESS_H

#include "report/text/string_table.h"

#define FEATURES_MAX 64u /* of one thing; more are left out */

/* Hashes of features. Zeroed: none. */
struct feature_set {
	uint64_t hashes[FEATURES_MAX];
	uint32_t count;
};

void feature_set_add(struct feature_set *set, uint64_t hash);
/* Adds the words of a name: runs of letters and digits. */
void feature_set_add_words(struct feature_set *set, struct string_view name);
/* Sorts the features and removes duplicates. To be called once, after all were added. */
void feature_set_close(struct feature_set *set);

/* Returns the number of features that both sets have, divided by the number that one of them has
 * (Jaccard index): 0 to 1; -1 if both are empty. */
double feature_likeness(const struct feature_set *a, const struct feature_set *b);

#endif
