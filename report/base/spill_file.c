/* SPDX-License-Identifier: MIT */
#include "report/base/spill_file.h"

#include "report/base/alloc.h"
#include "report/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct spill_file {
	const char *what;
	FILE *file;
	uint64_t written; /* bytes in the file; `held` has those after them */
	size_t used;
	unsigned char held[SPILL_FILE_HELD_BYTES];
};

struct spill_file *spill_file_new(const char *what)
{
	struct spill_file *file = xcalloc(sizeof *file);

	file->what = what;
	file->file = tmpfile();
	if (!file->file)
		fatal(STATUS_UNREADABLE,
			"no temporary file for %s; set TMPDIR to a directory with free space:",
			what);
	return file;
}

void spill_file_free(struct spill_file *file)
{
	if (!file)
		return;
	fclose(file->file);
	free(file);
}

static void write_held(struct spill_file *file)
{
	for (size_t done = 0; done < file->used;) {
		const ssize_t written = pwrite(fileno(file->file), file->held + done,
			file->used - done, (off_t)(file->written + done));

		if (written <= 0)
			fatal(STATUS_UNREADABLE,
				"the temporary file for %s cannot be written:", file->what);
		done += (size_t)written;
	}
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
	for (size_t done = 0; done < count;) {
		const ssize_t got = pread(
			fileno(file->file), (char *)bytes + done, count - done, (off_t)(at + done));

		if (got <= 0)
			fatal(STATUS_UNREADABLE,
				"the temporary file for %s cannot be read:", file->what);
		done += (size_t)got;
	}
}
