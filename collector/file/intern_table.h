/* SPDX-License-Identifier: MIT
 * intern.h: byte strings to small numbers, by content. Finding takes no lock and may run while one thread adds.
 */
#ifndef PPERF_COLLECTOR_FILE_INTERN_TABLE_H
#define PPERF_COLLECTOR_FILE_INTERN_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define INTERN_CHUNK 4096u /* entries made at a time */
#define INTERN_CHUNKS 1024u

struct interned {
	const char *bytes; /* kept for ever, also in a forked child; a zero byte follows */
	uint32_t count;
	uint32_t hash;
};

struct intern_index;

struct intern_table { /* zeroed: empty */
	struct intern_index *index;
	struct interned *chunks[INTERN_CHUNKS];
	uint32_t count; /* ids given: 1 .. count */
	uint64_t bytes; /* of all texts */
	char *arena;    /* of intern_keep, and how many */
	size_t arena_left;
};

uint32_t intern_hash(const void *bytes, size_t count);

/* The id, or 0. Any thread. */
uint32_t intern_find(
	const struct intern_table *table, const void *bytes, size_t count, uint32_t hash);

/* Two steps for the one thread that holds the caller's lock; tables may have different ones. intern_prepare copies the bytes and gives
 * the next id (0: no memory, or full); nobody finds it until intern_publish. An id that is prepared and not published is used again by the next prepare. */
uint32_t intern_prepare(struct intern_table *table, const void *bytes, size_t count, uint32_t hash);
void intern_publish(struct intern_table *table, uint32_t id);

/* The entry of an id that was given (1 .. count). */
const struct interned *intern_entry(const struct intern_table *table, uint32_t id);

/* Memory of `table` that is never given back and that a forked child keeps, zeroed, 16-byte aligned. Under the caller's lock, the one
 * under which the table grows. NULL: none. */
void *intern_alloc(struct intern_table *table, size_t bytes);

#endif
