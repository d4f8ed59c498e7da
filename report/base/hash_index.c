/* SPDX-License-Identifier: MIT */
#include "report/base/hash_index.h"
#include "report/base/alloc.h"
#include <stdlib.h>

#define LEAST_ROOM 64u

void hash_index_grow(struct hash_index *index)
{
	const struct hash_index old = *index;

	index->room = old.room ? old.room * 2 : LEAST_ROOM;
	index->slots = xcalloc(index->room * sizeof *index->slots);
	for (size_t i = 0; i < old.room; i++) {
		size_t at = old.slots[i].hash & (index->room - 1);

		if (!old.slots[i].number)
			continue;
		while (index->slots[at].number)
			at = (at + 1) & (index->room - 1);
		index->slots[at] = old.slots[i];
	}
	free(old.slots);
}

void hash_index_free(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){ .slots = NULL };
}
