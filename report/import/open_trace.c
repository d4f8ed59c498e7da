/* SPDX-License-Identifier: MIT */
#include "report/import/open_trace.h"
#include "report/base/alloc.h"
#include "report/base/progress.h"
#include "report/import/convert/split_processes.h"
#include "report/import/convert/convert.h"
#include "report/import/nsys/nsys.h"
#include "report/trace/trace_header.h"
#include "report/base/gzip_file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that was made into traces, one a process; for the life of the program. */
struct import {
	struct import *next;
	dev_t device;
	ino_t inode;
	struct timespec changed;
	off_t size;
	struct import_part {
		uint32_t pid; /* not used of the first: that is who has the plain path */
		int fd;
	} * parts;
	size_t count, room;
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

static bool keep(struct import *import, struct kineto *kineto)
{
	const int fd = made_file();

	if (fd < 0 || !kineto_write(kineto, fd)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	grow(&import->parts, &import->room, import->count + 1, sizeof *import->parts);
	import->parts[import->count++] = (struct import_part){ kineto_number(kineto, kineto->pid), fd };
	return true;
}

static bool keep_process(struct import *import, const struct kineto *all, uint32_t process)
{
	struct kineto part = kineto_part(all, process);
	const bool kept = keep(import, &part);

	kineto_part_free(&part);
	return kept;
}

/* The process that did most comes first. */
static bool keep_all(struct import *import, struct kineto *kineto)
{
	const uint32_t first = kineto_main_process(kineto);

	if (kineto->process_count < 2)
		return keep(import, kineto);
	if (!keep_process(import, kineto, first))
		return false;
	for (uint32_t process = 0; process < kineto->process_count; process++)
		if (process != first && !keep_process(import, kineto, process))
			return false;
	return true;
}

/* Closes the file. */
static bool make(struct import *import, const char *path, int from, bool sqlite, char *error)
{
	struct kineto kineto;
	char problem[320] = "";
	bool made = false;

	if (!read_rows(&kineto, from, sqlite, problem, sizeof problem))
		snprintf(error, READER_ERROR_BYTES, "%.200s: not a trace: it %.150s; " WHAT_TO_GIVE, path, problem);
	else if (!(made = keep_all(import, &kineto)))
		snprintf(error, READER_ERROR_BYTES, "%.300s: no room for what is made of it: %s", path, strerror(errno));
	kineto_free(&kineto);
	if (sqlite)
		close(from);
	return made;
}

static void forget(struct import *import)
{
	for (size_t i = 0; i < import->count; i++)
		close(import->parts[i].fd);
	free(import->parts);
	free(import);
}

/* The traces made of an open file, which is closed. */
static struct import *import_of(const char *path, int from, bool sqlite, const struct stat *status, char *error)
{
	struct import *import = known(status);

	if (import) {
		close(from);
		return import;
	}
	import = need(sizeof *import);
	*import = (struct import){ .next = imports,
		.device = status->st_dev,
		.inode = status->st_ino,
		.changed = status->st_mtim,
		.size = status->st_size };
	if (!make(import, path, from, sqlite, error)) {
		forget(import);
		return NULL;
	}
	imports = import;
	return import;
}

/* Of `export.sqlite#4711` the path before the number sign; NULL: it is none of these, or a file of that very name. */
static char *without_pid(const char *path, uint32_t *pid)
{
	const char *sign = strrchr(path, '#');
	struct json_text number = { .form = '"' };
	uint64_t value;
	char *base;

	if (!sign || !access(path, F_OK))
		return NULL;
	number.bytes = sign + 1;
	number.length = strlen(sign + 1);
	if (!json_unsigned(&number, &value) || value > UINT32_MAX)
		return NULL;
	base = need((size_t)(sign - path) + 1);
	memcpy(base, path, (size_t)(sign - path));
	*pid = (uint32_t)value;
	return base;
}

static const struct import_part *part_of(const struct import *import, const char *path, uint32_t pid, char *error)
{
	for (size_t i = 0; i < import->count; i++)
		if (import->parts[i].pid == pid)
			return &import->parts[i];
	snprintf(error, READER_ERROR_BYTES, "%.300s: there is no process %" PRIu32 " in it", path, pid);
	return NULL;
}

/* NULL and a descriptor: it is a trace of our own, or nothing that is known. NULL and -1: `error`. */
static struct import *open_import(const char *path, int *fd, uint64_t *bytes, char *error)
{
	unsigned char head[512];
	struct stat status;
	struct import *import;
	int64_t got;

	*fd = trace_file_open(path, bytes, error);
	if (*fd < 0)
		return NULL;
	got = read_at(*fd, head, sizeof head, 0);
	if (got <= 0 || fstat(*fd, &status) || !(is_sqlite(head, (size_t)got) || may_be_json(head, (size_t)got)))
		return NULL;
	import = import_of(path, *fd, is_sqlite(head, (size_t)got), &status, error);
	*fd = -1;
	return import;
}

int import_open(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES])
{
	uint32_t pid = 0;
	char *base = without_pid(path, &pid);
	const struct import_part *part;
	struct import *import;
	struct stat status;
	int fd;

	import = open_import(base ? base : path, &fd, bytes, error);
	if (import) {
		part = base ? part_of(import, path, pid, error) : &import->parts[0];
		fd = part ? dup(part->fd) : -1;
	}
	free(base);
	if (!import)
		return fd;
	if (fd >= 0 && !fstat(fd, &status))
		*bytes = (uint64_t)status.st_size;
	return fd;
}

struct trace_reader *trace_open(const char *path, char error[READER_ERROR_BYTES])
{
	uint64_t bytes = 0;
	int fd;

	progress_file(path);
	fd = import_open(path, &bytes, error);
	return fd < 0 ? NULL : reader_open_fd(fd, bytes, path, error);
}

size_t import_processes(const char *path)
{
	struct stat status;
	const struct import *import = stat(path, &status) ? NULL : known(&status);

	return import ? import->count : 0;
}

char *import_process_path(const char *path, size_t number)
{
	struct stat status;
	const struct import *import = stat(path, &status) ? NULL : known(&status);
	const size_t room = strlen(path) + 12;
	char *other = need(room);

	snprintf(other, room, number ? "%s#%" PRIu32 : "%s", path, import ? import->parts[number].pid : 0);
	return other;
}
