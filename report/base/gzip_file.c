/* SPDX-License-Identifier: MIT */
#include "report/base/gzip_file.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/progress.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define ZLIB_BUFFER_BYTES (256u << 10)
#define READ_BYTES_MAX (1u << 30) /* zlib counts in int */

struct gzip_file {
	gzFile file;
	const char *problem;
	uint64_t bytes; /* size of the file, whether it is compressed or not */
};

struct gzip_file *gzip_file_open(int fd)
{
	struct gzip_file *file = xcalloc(sizeof *file);
	struct stat found;

	if (fstat(fd, &found) == 0)
		file->bytes = (uint64_t)found.st_size;
	progress_restart();
	lseek(fd, 0, SEEK_SET);
	file->file = gzdopen(fd, "rb");
	if (!file->file)
		fatal(STATUS_UNREADABLE, "cannot begin to decompress:");
	gzbuffer(file->file, ZLIB_BUFFER_BYTES);
	return file;
}

void gzip_file_close(struct gzip_file *file)
{
	if (!file)
		return;
	gzclose_r(file->file);
	free(file);
}

/* Sets `problem` after the end of the data. zlib returns all data of a file that was cut off
 * before it reports the error. */
static void set_gzip_problem(struct gzip_file *file)
{
	int code = Z_OK;

	gzerror(file->file, &code);
	if (code == Z_BUF_ERROR)
		file->problem = "the compressed data end too early";
	else if (code == Z_ERRNO)
		file->problem = strerror(errno);
	else if (code != Z_OK && code != Z_STREAM_END)
		file->problem = "the compressed data are damaged";
}

size_t gzip_file_read(struct gzip_file *file, char *into, size_t room)
{
	int got;

	if (file->problem)
		return 0;
	got = gzread(file->file, into, (unsigned)(room < READ_BYTES_MAX ? room : READ_BYTES_MAX));
	if (got <= 0)
		set_gzip_problem(file);
	else
		progress_read((uint64_t)got, (uint64_t)gzoffset(file->file), file->bytes);
	return got > 0 ? (size_t)got : 0;
}

const char *gzip_file_problem(const struct gzip_file *file)
{
	return file->problem;
}
