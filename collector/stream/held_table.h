/* SPDX-License-Identifier: MIT
 * A hash table of what is held, by kind and key (held_memory.h). Its memory is never freed: the
 * tables that it outgrew are together no larger than the last one.
 *
 * An entry begins with a struct held_key. Not locked.
 */
#ifndef PPERF_COLLECTOR_STREAM_HELD_TABLE_H
#define PPERF_COLLECTOR_STREAM_HELD_TABLE_H

#include <stdint.h>

struct held_key {
	uint64_t key;
	uint32_t space; /* what `key` identifies; 0: the entry is free */
};

/* Zeros but for the last two members: an empty table. */
struct held_table {
	unsigned char *entries; /* open addressing; at least half of them are free */
	uint32_t slots, count;  /* slots: of `entries`, a power of two */
	uint32_t entry_bytes, max;
};

/* Returns the entry, or NULL. */
void *held_table_find(const struct held_table *table, uint32_t space, uint64_t key);

/* Returns the entry; a new one is zeroed but for its key. NULL: there are `max` entries, or there
 * is no memory. Entries move. */
void *held_table_add(struct held_table *table, uint32_t space, uint64_t key);

/* Removes an entry. Another one, of a slot that comes after it in a round of all slots, may move to
 * its place. */
void held_table_remove(struct held_table *table, void *entry);

/* Returns the entry of slot `at`, which is below table->slots. NULL: it is free. */
void *held_table_at(const struct held_table *table, uint32_t at);

#endif
