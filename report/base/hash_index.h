/* SPDX-License-Identifier: MIT
 * Finds entries of an array by a key. The caller owns the array and gives its entries numbers from
 * 1. Entry `number` is at index number - 1, or the caller leaves entry 0 unused. The index is a
 * hash table of these numbers with linear probing. It stores the entries' hashes, so it can grow
 * without the keys. Entries are never removed. A zeroed index is empty.
 *
 *	hash_index_reserve(&index);
 *	slot = hash_index_first(&index, hash);
 *	for (; slot->number; slot = hash_index_next(&index, slot))
 *		if (entries[slot->number - 1].key == key)
 *			return slot->number;
 *	hash_index_add(&index, slot, hash, ++count);
 */
#ifndef PPERF_REPORT_BASE_HASH_INDEX_H
#define PPERF_REPORT_BASE_HASH_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct hash_slot {
	uint32_t number; /* of the entry; 0: the slot is empty */
	uint32_t hash;
};

struct hash_index {
	struct hash_slot *slots;
	size_t count; /* entries */
	size_t room;  /* slots: a power of two, at least twice `count`, or 0 */
};

/* Doubles the number of slots. For hash_index_reserve. */
void hash_index_grow(struct hash_index *index);
void hash_index_free(struct hash_index *index);

/* Makes room for one more entry. To be called before the first search, and before a search that
 * ends in hash_index_add. Invalidates slots. */
static inline void hash_index_reserve(struct hash_index *index)
{
	if ((index->count + 1) * 2 > index->room)
		hash_index_grow(index);
}

/* Returns a hash of `number`. For two numbers: hash_u64(hash_u64(a) ^ b). */
static inline uint64_t hash_u64(uint64_t number)
{
	const uint64_t product = number * 0x9e3779b97f4a7c15u;

	return product ^ product >> 32;
}

/* Returns the first slot from `at` on that is empty or has this hash. */
static inline struct hash_slot *hash_index_probe(
	const struct hash_index *index, size_t at, uint32_t hash)
{
	at &= index->room - 1;
	while (index->slots[at].number && index->slots[at].hash != hash)
		at = (at + 1) & (index->room - 1);
	return &index->slots[at];
}

/* Returns the first slot that has this hash, or an empty one if no entry has it. */
static inline struct hash_slot *hash_index_first(const struct hash_index *index, uint64_t hash)
{
	return hash_index_probe(index, (uint32_t)hash, (uint32_t)hash);
}

/* Returns the slot after `slot` that has the same hash, or an empty one if there is none. */
static inline struct hash_slot *hash_index_next(
	const struct hash_index *index, const struct hash_slot *slot)
{
	return hash_index_probe(index, (size_t)(slot - index->slots) + 1, slot->hash);
}

/* Fills the empty slot at which a search for `hash` ended. */
static inline void hash_index_add(
	struct hash_index *index, struct hash_slot *slot, uint64_t hash, uint32_t number)
{
	*slot = (struct hash_slot){ .number = number, .hash = (uint32_t)hash };
	index->count++;
}

#endif
