/* SPDX-License-Identifier: MIT
 * Holds the last piece in memory. The pieces before it are in the file, packed (entry_pack.h), all
 * of piece_max entries. Each follows the number of bytes that it takes.
 */
#include "report/base/spill_list.h"

#include "report/base/alloc.h"
#include "report/base/entry_pack.h"
#include "report/base/temporary_file.h"

#include <stdbool.h>
#include <stdlib.h>

struct spill_list {
	size_t bytes, piece_max; /* bytes of an entry; entries of a piece */
	const char *what;
	unsigned char *held;  /* the piece being written, later the one being read */
	size_t at, count;     /* in `held`: entries read; entries present */
	size_t pieces, piece; /* pieces in the file; pieces read */
	size_t last;          /* entries of the last piece in the file */
	bool is_read;
	struct temporary_file *file; /* NULL: everything fits in memory */
	uint64_t at_in_file;         /* where the next piece is written, or read */
	struct entry_packer *packer;
	unsigned char *packed; /* a piece */
};

struct spill_list *spill_list_new(size_t bytes, const char *what)
{
	struct spill_list *list = xcalloc(sizeof *list);

	*list = (struct spill_list){
		.bytes = bytes, .piece_max = SPILL_LIST_MEMORY_BYTES / bytes, .what = what
	};
	list->held = xcalloc(list->piece_max * bytes);
	return list;
}

void spill_list_free(struct spill_list *list)
{
	if (!list)
		return;
	temporary_file_free(list->file);
	entry_packer_free(list->packer);
	free(list->packed);
	free(list->held);
	free(list);
}

static void open_spill_file(struct spill_list *list)
{
	list->file = temporary_file_new(list->what);
	list->packer = entry_packer_new(list->bytes, ENTRY_NO_CLASS);
	list->packed = xcalloc(list->piece_max * entry_packed_max(list->packer));
}

static void spill_piece(struct spill_list *list)
{
	uint32_t bytes = 0;

	if (!list->file)
		open_spill_file(list);
	entry_packer_restart(list->packer);
	for (size_t i = 0; i < list->count; i++)
		bytes += (uint32_t)entry_pack(
			list->packer, list->held + i * list->bytes, list->packed + bytes);
	temporary_file_write(list->file, &bytes, sizeof bytes, list->at_in_file);
	temporary_file_write(list->file, list->packed, bytes, list->at_in_file + sizeof bytes);
	list->at_in_file += sizeof bytes + bytes;
	list->pieces++;
	list->last = list->count;
	list->count = 0;
}

void *spill_list_push(struct spill_list *list)
{
	if (list->count == list->piece_max)
		spill_piece(list);
	return list->held + list->count++ * list->bytes;
}

void spill_list_rewind(struct spill_list *list)
{
	list->at = 0;
	if (!list->file)
		return;
	if (!list->is_read && list->count)
		spill_piece(list);
	list->is_read = true;
	list->at_in_file = list->piece = list->count = 0;
}

/* Reads the next piece from the file. Returns false if there is none. */
static bool load_piece(struct spill_list *list)
{
	const unsigned char *from = list->packed;
	uint32_t bytes;

	if (list->piece == list->pieces)
		return false;
	list->count = ++list->piece == list->pieces ? list->last : list->piece_max;
	list->at = 0;
	temporary_file_read(list->file, &bytes, sizeof bytes, list->at_in_file);
	temporary_file_read(list->file, list->packed, bytes, list->at_in_file + sizeof bytes);
	list->at_in_file += sizeof bytes + bytes;
	entry_packer_restart(list->packer);
	for (size_t i = 0; i < list->count; i++)
		from += entry_unpack(list->packer, from, list->held + i * list->bytes);
	return true;
}

const void *spill_list_next(struct spill_list *list)
{
	if (list->at == list->count && !load_piece(list))
		return NULL;
	return list->held + list->at++ * list->bytes;
}
