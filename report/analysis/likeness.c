/* SPDX-License-Identifier: MIT */
#include "report/analysis/likeness.h"
#include "report/base/compare.h"
#include "report/base/hash_index.h"
#include <ctype.h>
#include <stdlib.h>

void feature_set_add(struct feature_set *set, uint64_t hash)
{
	if (set->count < FEATURES_MAX)
		set->hashes[set->count++] = hash;
}

void feature_set_add_words(struct feature_set *set, struct string_view name)
{
	for (uint32_t i = 0; i < name.length && set->count < FEATURES_MAX;) {
		uint64_t hash = 1;

		for (; i < name.length && !isalnum((unsigned char)name.bytes[i]); i++)
			;
		if (i == name.length)
			break;
		for (; i < name.length && isalnum((unsigned char)name.bytes[i]); i++)
			hash = hash_u64(hash ^ (unsigned char)name.bytes[i]) + 1;
		feature_set_add(set, hash);
	}
}

void feature_set_close(struct feature_set *set)
{
	uint32_t kept = 0;

	qsort(set->hashes, set->count, sizeof *set->hashes, compare_u64);
	for (uint32_t i = 0; i < set->count; i++)
		if (!i || set->hashes[i] != set->hashes[i - 1])
			set->hashes[kept++] = set->hashes[i];
	set->count = kept;
}

double feature_likeness(const struct feature_set *a, const struct feature_set *b)
{
	uint32_t both = 0;

	for (uint32_t i = 0, j = 0; i < a->count && j < b->count;) {
		const int order = COMPARE(a->hashes[i], b->hashes[j]);

		both += order == 0;
		i += order <= 0;
		j += order >= 0;
	}
	return a->count + b->count ? (double)both / (double)(a->count + b->count - both) : -1;
}
