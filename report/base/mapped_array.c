/* SPDX-License-Identifier: MIT */
#include "report/base/mapped_array.h"
#include "report/base/error.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEAST_ROOM 1024u /* entries */

static void open_file(struct spool *spool)
{
	const char *folder = getenv("TMPDIR");
	int file = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (file < 0)
		file = memfd_create("pperf-spool", MFD_CLOEXEC);
	if (file < 0)
		fatal(STATUS_UNREADABLE, "no temporary file for %s; set TMPDIR to a folder with room:", spool->of);
	spool->file = file + 1;
}

static void make_room(struct spool *spool, size_t room)
{
	const size_t bytes = room * spool->size;
	int error;

	if (!spool->file)
		open_file(spool);
	/* Really taken: a disk that is full says so here, and not by a signal later. */
	error = posix_fallocate(spool->file - 1, 0, (off_t)bytes);
	if (error) {
		errno = error;
		fatal(STATUS_UNREADABLE, "no room for %s in a temporary file; set TMPDIR to a folder with room:", spool->of);
	}
	spool->entries = spool->entries
				 ? mremap(spool->entries, spool->room * spool->size, bytes, MREMAP_MAYMOVE)
				 : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spool->file - 1, 0);
	if (spool->entries == MAP_FAILED)
		fatal(STATUS_UNREADABLE, "no address space for %s:", spool->of);
	spool->room = room;
}

void spool_resize(struct spool *spool, size_t count)
{
	if (count > SPOOL_MOST)
		fatal(STATUS_UNREADABLE, "the trace has too much for one path; choose some of it with PPERF_SCHEDULE");
	if (count > spool->room)
		make_room(spool, count < LEAST_ROOM ? LEAST_ROOM : count);
	spool->count = count;
}

void *spool_add(struct spool *spool)
{
	if (spool->count == spool->room)
		make_room(spool, spool->room ? spool->room + spool->room / 2 : LEAST_ROOM);
	if (spool->count >= SPOOL_MOST)
		fatal(STATUS_UNREADABLE, "the trace has too much for one path; choose some of it with PPERF_SCHEDULE");
	return (char *)spool->entries + spool->count++ * spool->size;
}

void spool_free(struct spool *spool)
{
	if (spool->entries)
		munmap(spool->entries, spool->room * spool->size);
	if (spool->file)
		close(spool->file - 1);
	*spool = (struct spool){ .size = spool->size, .of = spool->of };
}
