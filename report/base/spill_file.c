/* SPDX-License-Identifier: MIT */
#include "report/base/spill_file.h"

#include "report/base/alloc.h"
#include "report/base/temporary_file.h"

#include <stdlib.h>
#include <string.h>

struct spill_file {
	struct temporary_file *file;
	uint64_t written; /* bytes in the file; `held` has those after them */
	size_t used;
	unsigned char held[SPILL_FILE_HELD_BYTES];
};

struct spill_file *spill_file_new(const char *what)
{
	struct spill_file *file = xcalloc(sizeof *file);

	file->file = temporary_file_new(what);
	return file;
}

void spill_file_free(struct spill_file *file)
{
	if (!file)
		return;
	temporary_file_free(file->file);
	free(file);
}

static void write_held(struct spill_file *file)
{
	temporary_file_write(file->file, file->held, file->used, file->written);
	file->written += file->used;
	file->used = 0;
}

void *spill_file_append(struct spill_file *file, size_t bytes, uint64_t *at)
{
	void *piece;

	if (bytes > sizeof file->held - file->used)
		write_held(file);
	*at = file->written + file->used;
	piece = file->held + file->used;
	file->used += bytes;
	return piece;
}

void spill_file_read(const struct spill_file *file, uint64_t at, void *bytes, size_t count)
{
	if (at >= file->written) {
		memcpy(bytes, file->held + (at - file->written), count);
		return;
	}
	temporary_file_read(file->file, bytes, count, at);
}
