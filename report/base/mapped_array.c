/* SPDX-License-Identifier: MIT */
#include "report/base/mapped_array.h"
#include "report/base/error.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARRAY_ROOM_MIN 1024u /* entries */

static void open_array_file(struct mapped_array *array)
{
	const char *folder = getenv("TMPDIR");
	int file = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (file < 0)
		file = memfd_create("pperf-array", MFD_CLOEXEC);
	if (file < 0)
		fatal(STATUS_UNREADABLE,
			"no temporary file for %s; set TMPDIR to a directory with free space:",
			array->what);
	array->file = file + 1;
}

/* Allocates the blocks, so that a full disk fails here and not with SIGBUS later. */
static void allocate_blocks(const struct mapped_array *array, size_t bytes)
{
	errno = posix_fallocate(array->file - 1, 0, (off_t)bytes);
	if (errno)
		fatal(STATUS_UNREADABLE,
			"no space for %s in a temporary file; set TMPDIR to a directory with free "
			"space:",
			array->what);
}

static void set_array_room(struct mapped_array *array, size_t room)
{
	const size_t bytes = room * array->size;

	if (!array->file)
		open_array_file(array);
	allocate_blocks(array, bytes);
	array->entries = array->entries ? mremap(array->entries, array->room * array->size, bytes,
						  MREMAP_MAYMOVE)
					: mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
						  array->file - 1, 0);
	if (array->entries == MAP_FAILED)
		fatal(STATUS_UNREADABLE, "no address space for %s:", array->what);
	array->room = room;
}

static void check_array_limit(const struct mapped_array *array, size_t count)
{
	if (count > MAPPED_ARRAY_MAX)
		fatal(STATUS_UNREADABLE,
			"the trace is too large: no room for more than %u entries of %s; record a "
			"part of it with PPERF_SCHEDULE",
			MAPPED_ARRAY_MAX, array->what);
}

/* Memory after the last entry is always zero, so that mapped_array_resize and mapped_array_push
 * need not clear new entries. */
void mapped_array_resize(struct mapped_array *array, size_t count)
{
	check_array_limit(array, count);
	if (count > array->room)
		set_array_room(array, count < ARRAY_ROOM_MIN ? ARRAY_ROOM_MIN : count);
	if (count < array->count)
		memset((char *)array->entries + count * array->size, 0,
			(array->count - count) * array->size);
	array->count = count;
	array->paged_out = count * array->size;
}

void *mapped_array_push(struct mapped_array *array)
{
	check_array_limit(array, array->count + 1);
	if (array->count == array->room)
		set_array_room(array, array->room ? array->room + array->room / 2 : ARRAY_ROOM_MIN);
	if (array->count * array->size - array->paged_out >= MAPPED_ARRAY_RESIDENT) {
		mapped_array_page_out(array);
		array->paged_out = array->count * array->size;
	}
	return (char *)array->entries + array->count++ * array->size;
}

/* Dirty pages of a shared mapping stay in the page cache, so no entry is lost. */
void mapped_array_page_out(const struct mapped_array *array)
{
	if (array->entries)
		madvise(array->entries, array->room * array->size, MADV_DONTNEED);
}

void mapped_array_free(struct mapped_array *array)
{
	if (array->entries)
		munmap(array->entries, array->room * array->size);
	if (array->file)
		close(array->file - 1);
	*array = (struct mapped_array){ .size = array->size, .what = array->what };
}
