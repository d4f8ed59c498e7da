/* SPDX-License-Identifier: MIT
 * Stores an array in blocks, which are packed (entry_pack.h) in a temporary file without a name
 * while they are not used. Use it for data that is read backwards, or near places that move through
 * the array.
 *
 *	struct packed_array nodes = { .size = sizeof(struct node), .what = "the calls",
 *		.class_at = ENTRY_NO_CLASS };
 *
 *	*(struct node *)packed_array_push(&nodes) = ...;
 *	for (i = 0; i < nodes.count; i++, packed_array_trim(&nodes))
 *		node = packed_array_at(&nodes, i);
 *
 * Entries stay where they are until packed_array_trim, which keeps PACKED_ARRAY_RESIDENT bytes of
 * blocks in memory. The program ends with an error message if there is no room. Threads: one.
 */
#ifndef PPERF_REPORT_BASE_PACKED_ARRAY_H
#define PPERF_REPORT_BASE_PACKED_ARRAY_H

#include "report/base/entry_pack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKED_ARRAY_RESIDENT ((size_t)4 << 20)
/* Most entries that packed_array_push makes. For each one, the critical path numbers a begin and an
 * end (2 * index + 1), which must fit in 32 bits. */
#define PACKED_ARRAY_MAX (UINT32_MAX / 4)

struct packed_block {
	unsigned char *entries; /* NULL: not in memory */
	uint64_t at;            /* in the file */
	uint32_t room;          /* bytes in the file; 0: all entries are zero */
	bool is_used;           /* since packed_array_trim last saw it */
	bool is_changed;        /* since it was written */
};

struct packed_array {
	size_t size;     /* bytes of an entry */
	size_t class_at; /* as of entry_packer_new */
	/* Offsets of two numbers, as of entry_packer_relate; both 0: none. */
	size_t related, related_to;
	const char *what; /* the entries in error messages */
	size_t count;
	struct packed_block *blocks;
	size_t block_room, resident; /* resident: blocks in memory */
	size_t resident_max;         /* that packed_array_trim keeps */
	size_t next_seen;            /* block that packed_array_trim examines next */
	unsigned shift;              /* a block has 1 << shift entries */
	struct packed_file *file;    /* NULL: nothing was written yet */
};

/* Appends a zeroed entry and returns it. */
void *packed_array_push(struct packed_array *array);
/* Makes an empty array have `count` zeroed entries, which take no room before they are used. */
void packed_array_reserve(struct packed_array *array, size_t count);
/* Drops the entries from `first` on, as far as they fill blocks. They become zero. */
void packed_array_drop(struct packed_array *array, size_t first);
void packed_array_free(struct packed_array *array);

/* These two are used by the functions below only. */
void packed_array_pack(struct packed_array *array);
void packed_array_load(struct packed_array *array, struct packed_block *block);

/* Packs blocks that were not used lately if too many are in memory. Pointers to entries are then
 * invalid. */
static inline void packed_array_trim(struct packed_array *array)
{
	if (__builtin_expect(array->resident > array->resident_max, 0))
		packed_array_pack(array);
}

/* Returns an entry for reading. */
static inline const void *packed_array_at(struct packed_array *array, size_t index)
{
	struct packed_block *block = &array->blocks[index >> array->shift];

	if (__builtin_expect(!block->entries, 0))
		packed_array_load(array, block);
	block->is_used = true;
	return block->entries + (index & (((size_t)1 << array->shift) - 1)) * array->size;
}

/* Returns an entry that may be changed. */
static inline void *packed_array_edit(struct packed_array *array, size_t index)
{
	void *entry = (void *)(uintptr_t)packed_array_at(array, index);

	array->blocks[index >> array->shift].is_changed = true;
	return entry;
}

#endif
