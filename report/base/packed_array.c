/* SPDX-License-Identifier: MIT */
#include "report/base/packed_array.h"

#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/temporary_file.h"

#include <stdlib.h>

#define BLOCK_BYTES ((size_t)32 << 10) /* of entries, about */
#define BLOCKS_RESIDENT_MIN 16u

struct packed_file {
	struct temporary_file *file;
	uint64_t end;
	struct entry_packer *packer;
	unsigned char *packed; /* a block */
};

static size_t block_entries(const struct packed_array *array)
{
	return (size_t)1 << array->shift;
}

static size_t block_bytes(const struct packed_array *array)
{
	return block_entries(array) * array->size;
}

static void choose_block_size(struct packed_array *array)
{
	while (block_bytes(array) * 2 <= BLOCK_BYTES)
		array->shift++;
	array->resident_max = PACKED_ARRAY_RESIDENT / block_bytes(array);
	if (array->resident_max < BLOCKS_RESIDENT_MIN)
		array->resident_max = BLOCKS_RESIDENT_MIN;
}

static void open_packed_file(struct packed_array *array)
{
	struct packed_file *file = array->file = xcalloc(sizeof *file);

	file->file = temporary_file_new(array->what);
	file->packer = entry_packer_new(array->size, array->class_at);
	if (array->related != array->related_to)
		entry_packer_relate(file->packer, array->related, array->related_to);
	file->packed = xcalloc(block_entries(array) * entry_packed_max(file->packer));
}

/* Finds room in the file for `bytes` bytes of a block, and for some more if it is packed. A block
 * that outgrows its room leaves it. */
static void place_block(struct packed_array *array, struct packed_block *block, size_t bytes)
{
	struct packed_file *file = array->file;

	if (bytes <= block->room)
		return;
	if (block->room)
		temporary_file_release(file->file, block->at, block->room);
	block->at = file->end;
	block->room = (uint32_t)(bytes < block_bytes(array) ? bytes + bytes / 16 : bytes);
	file->end += block->room;
}

static void write_block(struct packed_array *array, struct packed_block *block)
{
	struct packed_file *file;
	size_t bytes = 0;

	if (!array->file)
		open_packed_file(array);
	file = array->file;
	entry_packer_restart(file->packer);
	for (size_t i = 0; i < block_entries(array); i++)
		bytes += entry_pack(
			file->packer, block->entries + i * array->size, file->packed + bytes);
	place_block(array, block, bytes);
	temporary_file_write(file->file, file->packed, bytes, block->at);
	block->is_changed = false;
}

/* Reads the room of a block, of which the last one may not be filled. */
static void read_block(struct packed_array *array, const struct packed_block *block)
{
	struct packed_file *file = array->file;
	const unsigned char *from = file->packed;

	temporary_file_read_some(file->file, file->packed, block->room, block->at);
	entry_packer_restart(file->packer);
	for (size_t i = 0; i < block_entries(array); i++)
		from += entry_unpack(file->packer, from, block->entries + i * array->size);
}

void packed_array_load(struct packed_array *array, struct packed_block *block)
{
	size_t room = 0;

	array->resident++;
	if (!block->room) {
		block->entries = xcalloc(block_bytes(array));
		return;
	}
	array_grow(&block->entries, &room, block_bytes(array), 1);
	read_block(array, block);
}

static void set_count(struct packed_array *array, size_t count)
{
	if (!array->blocks)
		choose_block_size(array);
	ARRAY_GROW(array->blocks, array->block_room, (count >> array->shift) + 1);
	array->count = count;
}

void *packed_array_push(struct packed_array *array)
{
	if (array->count >= PACKED_ARRAY_MAX)
		fatal(STATUS_UNREADABLE,
			"the trace is too large: no room for more than %u entries of %s; record a "
			"part of it with PPERF_SCHEDULE",
			PACKED_ARRAY_MAX, array->what);
	if (!(array->count & (block_entries(array) - 1)))
		packed_array_trim(array);
	set_count(array, array->count + 1);
	return packed_array_edit(array, array->count - 1);
}

void packed_array_reserve(struct packed_array *array, size_t count)
{
	set_count(array, count);
}

static void release_block(struct packed_array *array, struct packed_block *block)
{
	array->resident -= block->entries != NULL;
	free(block->entries);
	block->entries = NULL;
}

void packed_array_drop(struct packed_array *array, size_t first)
{
	const size_t kept = (first + block_entries(array) - 1) >> array->shift;

	for (size_t i = kept; i << array->shift < array->count; i++) {
		release_block(array, &array->blocks[i]);
		array->blocks[i] = (struct packed_block){ .entries = NULL };
	}
	if (kept << array->shift < array->count)
		array->count = kept << array->shift;
}

static void pack_block(struct packed_array *array, struct packed_block *block)
{
	if (block->is_changed)
		write_block(array, block);
	release_block(array, block);
}

/* Passes over blocks in turn. A block that was used since the last time is kept once more. */
void packed_array_pack(struct packed_array *array)
{
	const size_t blocks = (array->count + block_entries(array) - 1) >> array->shift;

	while (array->resident > array->resident_max) {
		struct packed_block *block;

		if (array->next_seen >= blocks)
			array->next_seen = 0;
		block = &array->blocks[array->next_seen++];
		if (block->entries && !block->is_used)
			pack_block(array, block);
		block->is_used = false;
	}
}

void packed_array_free(struct packed_array *array)
{
	for (size_t i = 0; i < array->block_room; i++)
		free(array->blocks[i].entries);
	free(array->blocks);
	if (array->file) {
		temporary_file_free(array->file->file);
		entry_packer_free(array->file->packer);
		free(array->file->packed);
		free(array->file);
	}
	*array = (struct packed_array){ .size = array->size,
		.class_at = array->class_at,
		.related = array->related,
		.related_to = array->related_to,
		.what = array->what };
}
