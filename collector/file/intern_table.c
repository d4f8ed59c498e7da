/* SPDX-License-Identifier: MIT
 * Open addressing over ids. A larger index replaces the old one, which is never freed because other
 * threads may still read it.
 */
#include "collector/file/intern_table.h"

#include "collector/process/fork_wiped_memory.h"

#include <stdbool.h>
#include <string.h>

#define TABLE_ARENA_BYTES (64u << 10)
#define POOL_BYTES (512u << 10)

struct intern_index {
	uint32_t mask;
	uint32_t ids[]; /* 0: free */
};

/* Memory that the tables have mapped and not used yet. Tables share it, because a mapping for each
 * piece would cost more than its contents. Each table has its own lock, so the pool takes none. A
 * piece belongs to the thread whose atomic add moved `used` past it. */
struct intern_pool {
	/* Bytes used. Larger than the array once the pool is spent. */
	_Alignas(64) uint64_t used;
	_Alignas(64) char bytes[POOL_BYTES - 64];
};

static struct intern_pool *pool;

/* Returns NULL if fewer than `bytes` are left. */
static void *pool_alloc_from(struct intern_pool *from, size_t bytes)
{
	const uint64_t at = __atomic_fetch_add(&from->used, bytes, __ATOMIC_RELAXED);

	return at + bytes <= sizeof from->bytes ? from->bytes + at : NULL;
}

/* Allocates zeroed memory that is never freed. A fork may come between any two instructions: the
 * child then loses a piece at most, and none is handed out twice. */
static void *pool_alloc(size_t bytes)
{
	struct intern_pool *now = __atomic_load_n(&pool, __ATOMIC_ACQUIRE), *fresh;
	void *allocated;

	bytes = (bytes + 63) & ~(size_t)63;
	if (bytes > POOL_BYTES / 4)
		return fork_kept_alloc(bytes);
	if (now && (allocated = pool_alloc_from(now, bytes)))
		return allocated;
	fresh = fork_kept_alloc(sizeof *fresh);
	if (!fresh)
		return NULL;
	allocated = pool_alloc_from(fresh, bytes);
	/* If another thread has replaced the pool first, the rest of this one stays untouched. */
	__atomic_compare_exchange_n(&pool, &now, fresh, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	return allocated;
}

static inline uint64_t mix_word(uint64_t h)
{
	h *= 0x9E3779B97F4A7C15u;
	return h ^ h >> 32;
}

uint32_t intern_hash(const void *bytes, size_t count)
{
	const unsigned char *p = bytes;
	uint64_t h = count, word;

	for (; count >= 8; count -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = mix_word(h ^ word);
	}
	word = 0;
	memcpy(&word, p, count);
	h = mix_word(h ^ word);
	return (uint32_t)(h ^ h >> 29);
}

const struct interned *intern_entry(const struct intern_table *table, uint32_t id)
{
	return &table->chunks[(id - 1) / INTERN_CHUNK][(id - 1) % INTERN_CHUNK];
}

uint32_t intern_find(
	const struct intern_table *table, const void *bytes, size_t count, uint32_t hash)
{
	/* Acquire pairs with the release of the index and of each id: the entry of an id is
	 * complete. */
	const struct intern_index *index = __atomic_load_n(&table->index, __ATOMIC_ACQUIRE);
	uint32_t id;

	if (!index)
		return 0;
	for (uint32_t i = hash;; i++) {
		const struct interned *entry;

		id = __atomic_load_n(&index->ids[i & index->mask], __ATOMIC_ACQUIRE);
		if (!id)
			return 0;
		entry = intern_entry(table, id);
		if (entry->hash == hash && entry->count == count &&
			!memcmp(entry->bytes, bytes, count))
			return id;
	}
}

static void index_insert(struct intern_index *index, uint32_t hash, uint32_t id)
{
	uint32_t i = hash;

	while (index->ids[i & index->mask])
		i++;
	__atomic_store_n(&index->ids[i & index->mask], id, __ATOMIC_RELEASE);
}

/* Grows the index, so that it is at most two thirds full. Returns 0 if there is no memory. */
static int index_reserve(struct intern_table *table)
{
	const struct intern_index *old = table->index;
	uint32_t slots = old ? old->mask + 1 : 0;
	struct intern_index *index;

	if ((uint64_t)(table->count + 2) * 3 < (uint64_t)slots * 2)
		return 1;
	slots = slots ? slots * 2 : 1024;
	index = pool_alloc(sizeof *index + slots * sizeof index->ids[0]);
	if (!index)
		return 0;
	index->mask = slots - 1;
	for (uint32_t id = 1; id <= table->count; id++)
		index_insert(index, intern_entry(table, id)->hash, id);
	__atomic_store_n(&table->index, index, __ATOMIC_RELEASE);
	return 1;
}

/* A fork may come between any two stores. In this order the child finds too little memory left,
 * never too much. */
void *intern_alloc(struct intern_table *table, size_t bytes)
{
	void *allocated;

	bytes = (bytes + 15) & ~(size_t)15;
	if (bytes > TABLE_ARENA_BYTES / 4)
		return fork_kept_alloc(bytes);
	if (bytes > table->arena_left) {
		char *fresh = pool_alloc(TABLE_ARENA_BYTES);

		if (!fresh)
			return NULL;
		table->arena = fresh;
		__atomic_store_n(&table->arena_left, TABLE_ARENA_BYTES, __ATOMIC_RELEASE);
	}
	allocated = table->arena;
	table->arena_left -= bytes;
	__atomic_store_n(&table->arena, table->arena + bytes, __ATOMIC_RELEASE);
	return allocated;
}

uint32_t intern_prepare(struct intern_table *table, const void *bytes, size_t count, uint32_t hash)
{
	uint32_t id = table->count + 1, chunk = (id - 1) / INTERN_CHUNK;
	struct interned *entry;
	char *copy;

	if (chunk >= INTERN_CHUNKS || !index_reserve(table))
		return 0;
	if (!table->chunks[chunk] &&
		!(table->chunks[chunk] = pool_alloc(INTERN_CHUNK * sizeof *entry)))
		return 0;
	copy = intern_alloc(table, count + 1);
	if (!copy)
		return 0;
	memcpy(copy, bytes, count);
	copy[count] = '\0';
	entry = &table->chunks[chunk][(id - 1) % INTERN_CHUNK];
	*entry = (struct interned){ copy, (uint32_t)count, hash };
	return id;
}

void intern_publish(struct intern_table *table, uint32_t id)
{
	const struct interned *entry = intern_entry(table, id);

	__atomic_store_n(&table->bytes, table->bytes + entry->count, __ATOMIC_RELAXED);
	__atomic_store_n(&table->count, id, __ATOMIC_RELEASE);
	index_insert(table->index, entry->hash, id);
}
