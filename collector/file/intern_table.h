/* SPDX-License-Identifier: MIT
 * Maps byte strings to small numbers, by content. Lookups take no lock, and may run while one
 * thread adds an entry.
 */
#ifndef PPERF_COLLECTOR_FILE_INTERN_TABLE_H
#define PPERF_COLLECTOR_FILE_INTERN_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define INTERN_CHUNK 4096u /* entries allocated at a time */
#define INTERN_CHUNKS 1024u

struct interned {
	/* Followed by a zero byte. Never freed, also not in a forked child. */
	const char *bytes;
	uint32_t count;
	uint32_t hash;
};

struct intern_index;

/* Zeroed: an empty table. */
struct intern_table {
	struct intern_index *index;
	struct interned *chunks[INTERN_CHUNKS];
	uint32_t count; /* the ids are 1 .. count */
	uint64_t bytes; /* sum of all texts */
	char *arena;    /* next free byte for intern_alloc, and bytes left */
	size_t arena_left;
};

uint32_t intern_hash(const void *bytes, size_t count);

/* Returns the id, or 0. Any thread may call it. */
uint32_t intern_find(
	const struct intern_table *table, const void *bytes, size_t count, uint32_t hash);

/* Copies the bytes and returns the next id, or 0: no memory, or the table is full. intern_find()
 * does not find the id before intern_publish(). An id that is not published is used again by the
 * next call. The caller holds the table's lock. Tables may have different locks. */
uint32_t intern_prepare(struct intern_table *table, const void *bytes, size_t count, uint32_t hash);
/* Lets intern_find() find `id`, the last result of intern_prepare(). The caller holds the table's
 * lock. */
void intern_publish(struct intern_table *table, uint32_t id);

/* Returns the entry of an id from 1 to count. */
const struct interned *intern_entry(const struct intern_table *table, uint32_t id);

/* Allocates zeroed memory of `table`, 16-byte aligned, that is never freed and that a forked child
 * inherits. The caller holds the table's lock. Returns NULL if there is no memory. */
void *intern_alloc(struct intern_table *table, size_t bytes);

#endif
