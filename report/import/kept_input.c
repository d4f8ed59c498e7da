/* SPDX-License-Identifier: MIT */
#include "report/import/kept_input.h"
#include "report/base/alloc.h"
#include "report/base/temporary_file.h"
#include "report/base/write_whole.h"
#include "report/import/file_kind.h"
#include "report/text/format_number.h"
#include "report/trace/trace_header.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define BUFFER_BYTES (1u << 20)
#define WRITER_WAIT_MS 1000 /* for a program that opens a named pipe for writing */

/* A copy, kept until the program ends. */
struct kept_input {
	struct kept_input *next;
	char *path;
	int fd;
};

static struct kept_input *kept_inputs;

bool kept_input_needed(const char *path)
{
	struct stat status;

	return !strcmp(path, "-") || (!stat(path, &status) && S_ISFIFO(status.st_mode));
}

static const char *shown_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

/* Returns how much may be copied: half of the free space of the folder, or of the free memory. */
static uint64_t copy_limit(int fd)
{
	struct statvfs space;
	struct sysinfo memory;

	if (!fstatvfs(fd, &space) && space.f_blocks)
		return (uint64_t)space.f_bavail * space.f_frsize / 2;
	return sysinfo(&memory) ? UINT64_MAX : (uint64_t)memory.freeram * memory.mem_unit / 2;
}

static ssize_t read_some(int from, char *into, size_t bytes)
{
	ssize_t got;

	do
		got = read(from, into, bytes);
	while (got < 0 && errno == EINTR);
	return got;
}

/* Waits for the first byte of a pipe that was opened without waiting for a writer, and makes later
 * reads wait. A pipe that no program opens for writing has none. Returns 0 at the end of the input,
 * or -1 with errno. */
static ssize_t read_first(int from, char *into)
{
	const int flags = fcntl(from, F_GETFL);
	ssize_t got = read_some(from, into, 1);

	for (int waited_ms = 0; got == 0 && waited_ms < WRITER_WAIT_MS; waited_ms += 10) {
		poll(NULL, 0, 10);
		got = read_some(from, into, 1);
	}
	if (flags < 0 || fcntl(from, F_SETFL, flags & ~O_NONBLOCK))
		return -1;
	return got < 0 && errno == EAGAIN ? read_some(from, into, 1) : got;
}

/* Reads up to `bytes` bytes, fewer only at the end. Returns -1 with errno. */
static ssize_t read_whole(int from, char *into, size_t bytes)
{
	const ssize_t first = read_first(from, into);
	size_t got = first > 0 ? 1 : 0;
	ssize_t more;

	if (first <= 0)
		return first;

	while (got < bytes && (more = read_some(from, into + got, bytes - got)) != 0) {
		if (more < 0)
			return -1;
		got += (size_t)more;
	}
	return (ssize_t)got;
}

static bool refuse_input(char *error, const char *path, const char *problem, const char *more)
{
	snprintf(error, READER_ERROR_BYTES, "%.140s: %.300s%.60s", shown_name(path), problem, more);
	return false;
}

static bool refuse_size(char *error, const char *path, const char *format, uint64_t bytes)
{
	char size[FORMAT_NUMBER_BYTES];
	int used = snprintf(error, READER_ERROR_BYTES, "%.200s: ", shown_name(path));

	format_with_unit(
		size, UNIT_BYTES, bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX, false, true);
	snprintf(error + used, READER_ERROR_BYTES - (size_t)used, format, size, temporary_folder());
	return false;
}

/* Checks the first bytes, so that a wrong or endless input is not copied. */
static bool check_head(const char *head, size_t bytes, const char *path, char *error)
{
	char hint[300];

	if (!bytes)
		return refuse_input(error, path,
			"has no data: the command that should write a trace to it wrote nothing",
			"");
	if (file_kind_of((const unsigned char *)head, bytes) != FILE_OTHER)
		return true;
	if (file_kind_hint(path, (const unsigned char *)head, bytes, hint, sizeof hint))
		return refuse_input(error, path, hint, "");
	return refuse_input(
		error, path, "not a trace of pperf or of a supported tool; " ACCEPTED_FILES, "");
}

static bool copy_input(int from, int to, const char *path, char *error)
{
	const uint64_t limit = copy_limit(to);
	char *buffer = xcalloc(BUFFER_BYTES);
	ssize_t got = read_whole(from, buffer, FILE_HEAD_BYTES);
	bool good = got < 0 || check_head(buffer, (size_t)got, path, error);

	for (uint64_t copied = 0; good && got > 0; got = read_some(from, buffer, BUFFER_BYTES)) {
		copied += (uint64_t)got;
		if (copied > limit)
			good = refuse_size(error, path,
				"is larger than %s, half of the free space of %.200s, where a pipe "
				"is kept while it is read; set TMPDIR to a larger directory, or "
				"write the trace to a file",
				limit);
		else if (!write_whole(to, buffer, (size_t)got))
			good = refuse_size(error, path,
				"no space after %s in %.200s, where a pipe is kept while it is "
				"read; set TMPDIR to a larger directory, or write the trace to a "
				"file",
				copied);
	}
	if (good && got < 0)
		good = refuse_input(error, path, "cannot be read: ", strerror(errno));
	free(buffer);
	return good;
}

/* Returns a descriptor of standard input as a file that can be read at any offset, or -1 if it is
 * none. */
static int seekable_input(int from)
{
	struct stat status;

	return !fstat(from, &status) && S_ISREG(status.st_mode) ? dup(from) : -1;
}

/* Copies the input. Returns the descriptor of the copy, or -1 with a sentence in `error`. */
static int keep_input(const char *path, char *error)
{
	const bool standard = !strcmp(path, "-");
	const int from = standard ? dup(STDIN_FILENO)
				  : open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	int to = from < 0 ? -1 : seekable_input(from);

	if (from < 0) {
		refuse_input(error, path, "cannot be opened: ", strerror(errno));
	} else if (isatty(from)) {
		refuse_input(error, path,
			"is a terminal; pipe a trace to pperf-report, as in `xz -dc trace.json.xz "
			"| pperf-report -`",
			"");
	} else if (to < 0) {
		to = temporary_file_create();
		if (to < 0)
			refuse_input(error, path,
				"no temporary file can be created for it: ", strerror(errno));
		else if (!copy_input(from, to, path, error)) {
			close(to);
			to = -1;
		}
	}
	if (from >= 0)
		close(from);
	return to;
}

static struct kept_input *find_kept(const char *path)
{
	struct kept_input *kept = kept_inputs;

	while (kept && strcmp(kept->path, path))
		kept = kept->next;
	return kept;
}

int kept_input_open(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES])
{
	struct kept_input *kept = find_kept(path);
	struct stat status;

	if (!kept) {
		const int fd = keep_input(path, error);

		if (fd < 0)
			return -1;
		kept = xcalloc(sizeof *kept);
		*kept = (struct kept_input){ kept_inputs, xcalloc(strlen(path) + 1), fd };
		strcpy(kept->path, path);
		kept_inputs = kept;
	}
	*bytes = fstat(kept->fd, &status) ? 0 : (uint64_t)status.st_size;
	return dup(kept->fd);
}

int kept_input_stat(const char *path, struct stat *status)
{
	const struct kept_input *kept = find_kept(path);

	return kept ? fstat(kept->fd, status) : stat(path, status);
}
