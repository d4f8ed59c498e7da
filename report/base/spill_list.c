/* SPDX-License-Identifier: MIT
 * Holds the last piece in memory. The pieces before it are in the file, all of piece_max
 * entries.
 */
#include "report/base/spill_list.h"

#include "report/base/alloc.h"
#include "report/base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct spill_list {
	size_t bytes, piece_max; /* bytes of an entry; entries of a piece */
	const char *what;
	unsigned char *held;  /* the piece being written, later the one being read */
	size_t at, count;     /* in `held`: entries read; entries present */
	size_t pieces, piece; /* pieces in the file; pieces read */
	size_t last;          /* entries of the last piece in the file */
	bool is_read;
	FILE *file; /* NULL: everything fits in memory */
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
	if (list->file)
		fclose(list->file);
	free(list->held);
	free(list);
}

static void spill_piece(struct spill_list *list)
{
	if (!list->file && !(list->file = tmpfile()))
		fatal(STATUS_UNREADABLE,
			"no temporary file for %s; set TMPDIR to a directory with free space:",
			list->what);
	if (fwrite(list->held, list->bytes, list->count, list->file) != list->count)
		fatal(STATUS_UNREADABLE,
			"the temporary file for %s cannot be written:", list->what);
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
	if (fflush(list->file) || fseek(list->file, 0, SEEK_SET))
		fatal(STATUS_UNREADABLE, "the temporary file for %s cannot be read:", list->what);
	list->piece = list->count = 0;
}

/* Reads the next piece from the file. Returns false if there is none. */
static bool load_piece(struct spill_list *list)
{
	if (list->piece == list->pieces)
		return false;
	list->count = ++list->piece == list->pieces ? list->last : list->piece_max;
	list->at = 0;
	if (fread(list->held, list->bytes, list->count, list->file) != list->count)
		fatal(STATUS_UNREADABLE, "the temporary file for %s cannot be read:", list->what);
	return true;
}

const void *spill_list_next(struct spill_list *list)
{
	if (list->at == list->count && !load_piece(list))
		return NULL;
	return list->held + list->at++ * list->bytes;
}
