/* SPDX-License-Identifier: MIT
 * An ordered map from addresses to numbers: a B+ tree. Insertion, removal and search take O(log n).
 * A zeroed map is empty.
 *
 *	address_map_insert(&map, address, index);
 *	for (at = address_map_from(&map, begin); !address_cursor_at_end(&at);
 *		address_cursor_next(&at))
 *		visit(address_cursor_value(&at));
 *
 * Memory: about 18 bytes per entry, 25 if keys are inserted in ascending order. Nodes are freed
 * when they are empty and never merged, so the memory follows the largest number of entries so far.
 */
#ifndef PPERF_REPORT_BASE_ADDRESS_MAP_H
#define PPERF_REPORT_BASE_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_MAP_FANOUT 64u

struct address_map_node {
	uint32_t count;
	/* Leaf: of its entries. Else: child i has keys from keys[i] on and below keys[i + 1]. */
	uint64_t keys[ADDRESS_MAP_FANOUT];
};

struct address_map_leaf {
	struct address_map_node node;
	struct address_map_leaf *next, *previous; /* NULL: none */
	uint32_t values[ADDRESS_MAP_FANOUT];
};

struct address_map {
	struct address_map_node *root; /* NULL: empty */
	uint32_t height;               /* 0: the root is a leaf */
	size_t count;                  /* entries */
	size_t bytes;                  /* memory of its nodes */
};

/* A position in a map. Valid until the map changes. */
struct address_cursor {
	const struct address_map_leaf *leaf; /* NULL: after the last entry */
	uint32_t index;
};

void address_map_free(struct address_map *map);
/* Adds an entry, or replaces the value of one with this key. */
void address_map_insert(struct address_map *map, uint64_t key, uint32_t value);
/* Removes an entry and stores its value. Returns false if there is none. */
bool address_map_remove(struct address_map *map, uint64_t key, uint32_t *value);

/* Returns the first entry with a key of at least `key`. */
struct address_cursor address_map_from(const struct address_map *map, uint64_t key);
/* Stores the value of the entry with the largest key up to `key`. Returns false if there is
 * none. */
bool address_map_floor(const struct address_map *map, uint64_t key, uint32_t *value);

static inline bool address_cursor_at_end(const struct address_cursor *at)
{
	return !at->leaf;
}
static inline uint64_t address_cursor_key(const struct address_cursor *at)
{
	return at->leaf->node.keys[at->index];
}
static inline uint32_t address_cursor_value(const struct address_cursor *at)
{
	return at->leaf->values[at->index];
}
static inline void address_cursor_next(struct address_cursor *at)
{
	if (++at->index < at->leaf->node.count)
		return;
	at->leaf = at->leaf->next;
	at->index = 0;
}

#endif
