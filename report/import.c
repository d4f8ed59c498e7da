/* SPDX-License-Identifier: MIT */
#include "report/import.h"
#include "report/fatal.h"
#include "report/kineto_trace.h"
#include "report/nsys.h"
#include "report/trace_header.h"
#include "report/unpacked.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that was made into a trace; for the life of the process. */
struct import {
	struct import *next;
	dev_t device;
	ino_t inode;
	struct timespec changed;
	off_t size;
	int fd;
};

static struct import *imports;

static int made_file(void)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : memfd_create("pperf-import", MFD_CLOEXEC);
}

static struct import *known(const struct stat *status)
{
	struct import *import = imports;

	while (import && (import->device != status->st_dev || import->inode != status->st_ino ||
				 import->size != status->st_size ||
				 import->changed.tv_sec != status->st_mtim.tv_sec ||
				 import->changed.tv_nsec != status->st_mtim.tv_nsec))
		import = import->next;
	return import;
}

/* JSON begins with a bracket, perhaps behind a mark of UTF-8 and white space; gzip with two bytes of its own. */
static bool may_be_json(const unsigned char *head, size_t bytes)
{
	size_t at = bytes >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;

	if (bytes >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return true;
	while (at < bytes && memchr(" \t\r\n", head[at], 4))
		at++;
	return at < bytes && (head[at] == '{' || head[at] == '[');
}

static bool is_sqlite(const unsigned char *head, size_t bytes)
{
	return bytes >= 16 && !memcmp(head, "SQLite format 3", 16);
}

/* False: `problem` says what it is instead. */
static bool read_rows(struct kineto *kineto, int from, bool sqlite, char *problem, size_t problem_bytes)
{
	struct unpacked *file;
	bool good;

	if (sqlite)
		return nsys_read(kineto, from, problem, problem_bytes);
	file = unpacked_open(from);
	good = kineto_read(kineto, file);
	if (kineto->problem)
		snprintf(problem, problem_bytes, "%s", kineto->problem);
	unpacked_close(file);
	return good;
}

/* Closes the file. */
static int make(const char *path, int from, bool sqlite, char *error)
{
	struct kineto kineto;
	char problem[320] = "";
	int fd = -1;

	if (!read_rows(&kineto, from, sqlite, problem, sizeof problem)) {
		snprintf(error, READER_ERROR_BYTES,
			"%.240s: not a trace: it %.180s; give a trace of pperf, of torch.profiler or of Nsight Systems", path, problem);
	} else {
		fd = made_file();
		if (fd < 0 || !kineto_write(&kineto, fd)) {
			snprintf(error, READER_ERROR_BYTES, "%.300s: no room for what is made of it: %s", path,
				strerror(errno));
			if (fd >= 0)
				close(fd);
			fd = -1;
		}
	}
	kineto_free(&kineto);
	if (sqlite)
		close(from);
	return fd;
}

/* The trace made of an open file, which is closed. */
static int import_of(const char *path, int from, bool sqlite, const struct stat *status, char *error)
{
	struct import *import = known(status);

	if (import) {
		close(from);
		return dup(import->fd);
	}
	import = need(sizeof *import);
	*import = (struct import){ imports, status->st_dev, status->st_ino, status->st_mtim, status->st_size,
		make(path, from, sqlite, error) };
	if (import->fd < 0) {
		free(import);
		return -1;
	}
	imports = import;
	return dup(import->fd);
}

int import_open(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES])
{
	unsigned char head[512];
	struct stat status;
	int fd = trace_file_open(path, bytes, error);
	int64_t got;

	if (fd < 0)
		return -1;
	got = read_at(fd, head, sizeof head, 0);
	if (got <= 0 || fstat(fd, &status) || !(is_sqlite(head, (size_t)got) || may_be_json(head, (size_t)got)))
		return fd;
	fd = import_of(path, fd, is_sqlite(head, (size_t)got), &status, error);
	if (fd >= 0 && !fstat(fd, &status))
		*bytes = (uint64_t)status.st_size;
	return fd;
}
