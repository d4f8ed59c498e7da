/* SPDX-License-Identifier: MIT */
#include "report/base/temporary_file.h"

#include "report/base/alloc.h"
#include "report/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct temporary_file {
	const char *what;
	int descriptor;
};

const char *temporary_folder(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && *folder ? folder : "/tmp";
}

/* Creates a file with a name and removes the name, for file systems without O_TMPFILE. */
static int create_named(void)
{
	char path[4096];
	int descriptor = -1;

	if (snprintf(path, sizeof path, "%s/pperf-XXXXXX", temporary_folder()) < (int)sizeof path)
		descriptor = mkostemp(path, O_CLOEXEC);
	if (descriptor >= 0)
		unlink(path);
	return descriptor;
}

int temporary_file_create(void)
{
	int descriptor = open(temporary_folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (descriptor < 0)
		descriptor = create_named();
	return descriptor >= 0 ? descriptor : memfd_create("pperf", MFD_CLOEXEC);
}

struct temporary_file *temporary_file_new(const char *what)
{
	struct temporary_file *file = xcalloc(sizeof *file);

	*file = (struct temporary_file){ what, temporary_file_create() };
	if (file->descriptor < 0)
		fatal(STATUS_UNREADABLE,
			"no temporary file for %s; set TMPDIR to a directory with free space:",
			what);
	return file;
}

void temporary_file_free(struct temporary_file *file)
{
	if (!file)
		return;
	close(file->descriptor);
	free(file);
}

void temporary_file_write(
	struct temporary_file *file, const void *bytes, size_t count, uint64_t at)
{
	for (size_t done = 0; done < count;) {
		const ssize_t written = pwrite(file->descriptor, (const char *)bytes + done,
			count - done, (off_t)(at + done));

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			fatal(STATUS_UNREADABLE,
				"the temporary file for %s cannot be written; set TMPDIR to a "
				"directory with free space:",
				file->what);
		done += (size_t)written;
	}
}

static _Noreturn void cannot_read(const struct temporary_file *file)
{
	fatal(STATUS_UNREADABLE, "the temporary file for %s cannot be read:", file->what);
}

size_t temporary_file_read_some(
	const struct temporary_file *file, void *bytes, size_t count, uint64_t at)
{
	size_t done = 0;

	while (done < count) {
		const ssize_t got = pread(file->descriptor, (char *)bytes + done, count - done,
			(off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			cannot_read(file);
		if (!got)
			break;
		done += (size_t)got;
	}
	return done;
}

void temporary_file_read(
	const struct temporary_file *file, void *bytes, size_t count, uint64_t at)
{
	errno = EIO; /* it is shorter than what was written */
	if (temporary_file_read_some(file, bytes, count, at) != count)
		cannot_read(file);
}

void temporary_file_release(struct temporary_file *file, uint64_t at, uint64_t count)
{
	(void)fallocate(file->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
		(off_t)count);
}

void temporary_file_cut(struct temporary_file *file, uint64_t end)
{
	/* The file is only larger than needed if this fails. */
	if (ftruncate(file->descriptor, (off_t)end))
		return;
}
