/* SPDX-License-Identifier: MIT */
#include "report/import/open_trace.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/progress.h"
#include "report/base/temporary_file.h"
#include "report/cache/cache.h"
#include "report/import/convert/split_processes.h"
#include "report/import/convert/convert.h"
#include "report/import/convert/graph_captures.h"
#include "report/import/kineto/kineto.h"
#include "report/import/nsys/nsys.h"
#include "report/import/snapshot/torch_snapshot.h"
#include "report/import/timeline/memory_timeline.h"
#include "report/import/file_kind.h"
#include "report/import/kept_input.h"
#include "report/text/suggest.h"
#include "report/trace/trace_header.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that was converted to traces, one per process. Kept until the program ends. */
struct converted_file {
	struct converted_file *next;
	dev_t device;
	ino_t inode;
	struct timespec changed;
	off_t size;
	/* One per process. The main process is first: PATH without #PID opens it. */
	struct converted_trace {
		uint32_t pid; /* of PATH#PID */
		int fd;
		uint64_t bytes; /* of the trace: the file may have more */
	} * traces;
	size_t count, room;
	struct cache_key key;
	bool is_whole; /* the file was not cut or damaged */
};

static struct converted_file *converted_files;
static struct graph_captures *graph_captures; /* NULL: none were given */

static struct converted_file *find_converted(const struct stat *status)
{
	struct converted_file *converted = converted_files;

	while (converted &&
		(converted->device != status->st_dev || converted->inode != status->st_ino ||
			converted->size != status->st_size ||
			converted->changed.tv_sec != status->st_mtim.tv_sec ||
			converted->changed.tv_nsec != status->st_mtim.tv_nsec))
		converted = converted->next;
	return converted;
}

/* Reads the first bytes of what a gzip file contains. Returns their number. Ends the program if no
 * descriptor is free. */
static size_t read_gzip_head(int fd, unsigned char head[FILE_HEAD_BYTES])
{
	const int own = dup(fd);
	struct gzip_file *file;
	size_t got;

	if (own < 0)
		fatal(STATUS_UNREADABLE, "cannot duplicate a descriptor:");
	file = gzip_file_open(own);
	got = gzip_file_read(file, (char *)head, FILE_HEAD_BYTES);
	gzip_file_close(file);
	return got;
}

/* Reads a file of another tool into `rows`. Returns false if it is none. `problem` then says
 * what it is instead. */
static bool read_foreign_file(
	struct event_rows *rows, int from, enum file_kind kind, char *problem, size_t problem_bytes)
{
	unsigned char head[FILE_HEAD_BYTES];
	struct gzip_file *file;
	bool good, is_timeline;

	if (kind == FILE_PICKLE)
		return torch_snapshot_read(rows, from, problem, problem_bytes);
	if (kind == FILE_SQLITE)
		return nsys_read(rows, from, problem, problem_bytes);
	is_timeline = memory_timeline_begins(head, read_gzip_head(from, head));
	file = gzip_file_open(from);
	good = is_timeline ? memory_timeline_read(rows, file) : kineto_read(rows, file);
	if (rows->problem)
		snprintf(problem, problem_bytes, "%s", rows->problem);
	gzip_file_close(file);
	return good;
}

/* Writes `rows` to a new temporary file, which becomes a trace of `converted`. Returns false with
 * errno. */
static bool write_converted_trace(struct converted_file *converted, struct event_rows *rows)
{
	const int fd = temporary_file_create();
	struct stat status;

	rows->captures = graph_captures;
	if (fd < 0 || !convert_rows(rows, fd) || fstat(fd, &status)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	*ARRAY_ADD(converted->traces, converted->room, converted->count) = (struct converted_trace){
		event_rows_number(rows, rows->pid), fd, (uint64_t)status.st_size
	};
	return true;
}

static bool write_process_trace(
	struct converted_file *converted, const struct event_rows *all, uint32_t process)
{
	struct event_rows part = split_process(all, process);
	const bool kept = write_converted_trace(converted, &part);

	split_process_free(&part);
	return kept;
}

/* Writes one trace per process. The main process comes first. */
static bool write_all_traces(struct converted_file *converted, struct event_rows *rows)
{
	const uint32_t first = split_main_process(rows);

	if (rows->process_count < 2)
		return write_converted_trace(converted, rows);
	if (!write_process_trace(converted, rows, first))
		return false;
	for (uint32_t process = 0; process < rows->process_count; process++)
		if (process != first && !write_process_trace(converted, rows, process))
			return false;
	return true;
}

/* Reads and converts the file `from`, and closes it. Returns false with a sentence in `error`. */
static bool convert_file(struct converted_file *converted, const char *path, int from,
	enum file_kind kind, char *error)
{
	struct event_rows rows;
	char problem[320] = "";
	bool made = false;

	if (!read_foreign_file(&rows, from, kind, problem, sizeof problem))
		snprintf(error, READER_ERROR_BYTES,
			"%.150s: not a trace: it %.130s; " ACCEPTED_FILES, path, problem);
	else if (match_device_numbers(&rows), !(made = write_all_traces(converted, &rows)))
		snprintf(error, READER_ERROR_BYTES, "%.300s: no space for the converted trace: %s",
			path, strerror(errno));
	converted->is_whole = made && !rows.truncated;
	event_rows_free(&rows);
	if (kind == FILE_SQLITE || kind == FILE_PICKLE)
		close(from);
	return made;
}

static void close_traces(struct converted_file *converted)
{
	for (size_t i = 0; i < converted->count; i++)
		close(converted->traces[i].fd);
	converted->count = 0;
}

static void free_converted(struct converted_file *converted)
{
	close_traces(converted);
	free(converted->traces);
	free(converted);
}

#define CACHE_KIND "trace"

/* Opens the traces that an earlier command made of the file. Returns false without any of them. */
static bool open_kept(struct converted_file *converted)
{
	struct cache_part part = { .count = 1 };

	for (uint32_t number = 0; number < part.count; number++) {
		const uint32_t count = part.count;
		const int fd = cache_open(&converted->key, CACHE_KIND, number, &part);

		if (fd >= 0)
			*ARRAY_ADD(converted->traces, converted->room,
				converted->count) = (struct converted_trace){ (uint32_t)part.tag,
				fd, part.bytes };
		if (fd < 0 || (number && part.count != count)) {
			close_traces(converted);
			return false;
		}
	}
	converted->is_whole = true;
	return true;
}

/* Keeps the traces for later commands. */
static void keep_traces(const struct converted_file *converted, const char *path)
{
	struct cache_part part = { .count = (uint32_t)converted->count };
	bool kept = converted->is_whole && cache_key_is_current(&converted->key, path);

	for (; kept && part.number < part.count; part.number++) {
		part.tag = converted->traces[part.number].pid;
		part.bytes = converted->traces[part.number].bytes;
		kept = cache_store(
			&converted->key, CACHE_KIND, &part, converted->traces[part.number].fd);
	}
}

/* Returns the traces made from the file `from`, which is closed. Returns NULL with a sentence in
 * `error`. */
static struct converted_file *get_converted(
	const char *path, int from, enum file_kind kind, const struct stat *status, char *error)
{
	struct converted_file *converted = find_converted(status);

	if (converted) {
		close(from);
		return converted;
	}
	converted = xcalloc(sizeof *converted);
	*converted = (struct converted_file){ .next = converted_files,
		.device = status->st_dev,
		.inode = status->st_ino,
		.changed = status->st_mtim,
		.size = status->st_size };
	/* Captures of another file change what is made of this one. */
	if (!graph_captures)
		converted->key = cache_key_of(from, path);
	if (open_kept(converted)) {
		close(from);
	} else if (convert_file(converted, path, from, kind, error)) {
		keep_traces(converted, path);
	} else {
		free_converted(converted);
		return NULL;
	}
	converted_files = converted;
	return converted;
}

/* Splits `export.sqlite#4711` into path and pid. Returns the path, which the caller frees.
 * Returns NULL if there is no pid, or if a file with the whole name exists. */
static char *split_pid_suffix(const char *path, uint32_t *pid)
{
	const char *sign = strrchr(path, '#');
	struct json_text number = { .form = JSON_STRING };
	uint64_t value;
	char *base;

	if (!sign || !access(path, F_OK))
		return NULL;
	number.bytes = sign + 1;
	number.length = strlen(sign + 1);
	if (!json_unsigned(&number, &value) || value > UINT32_MAX)
		return NULL;
	base = xcalloc((size_t)(sign - path) + 1);
	memcpy(base, path, (size_t)(sign - path));
	*pid = (uint32_t)value;
	return base;
}

static const struct converted_trace *find_process_trace(
	const struct converted_file *converted, const char *path, uint32_t pid, char *error)
{
	char ignored[READER_ERROR_BYTES];
	struct trace_header header;

	for (size_t i = 0; i < converted->count; i++)
		if (converted->traces[i].pid == pid ||
			(header_read(converted->traces[i].fd, path, &header, ignored) &&
				header.pid == pid))
			return &converted->traces[i];
	snprintf(error, READER_ERROR_BYTES, "%.300s: there is no process %" PRIu32 " in it", path,
		pid);
	return NULL;
}

/* Reads the first bytes of an open file, of a gzip file those of its content. Returns the kind of
 * the file: FILE_OTHER for a gzip file of what is not read in this form. */
static enum file_kind read_file_head(int fd, unsigned char head[FILE_HEAD_BYTES], size_t *bytes)
{
	const int64_t got = pread_all(fd, head, FILE_HEAD_BYTES, 0);
	const enum file_kind kind = file_kind_of(head, *bytes = got < 0 ? 0 : (size_t)got);

	if (kind != FILE_GZIP)
		return kind;
	*bytes = read_gzip_head(fd, head);
	return *bytes < 5 || file_kind_of(head, *bytes) == FILE_JSON ? FILE_GZIP : FILE_OTHER;
}

/* Writes what an unsupported file is to `error`. Returns false if that is not known. */
static bool explain_file(const char *path, const unsigned char *head, size_t bytes, char *error)
{
	char hint[300];

	if (file_kind_hint(path, head, bytes, hint, sizeof hint))
		snprintf(error, READER_ERROR_BYTES, "%.200s: %s", path, hint);
	else if (file_kind_of(head, bytes) != FILE_OTHER)
		snprintf(error, READER_ERROR_BYTES,
			"%.200s: is compressed with gzip, of which only JSON is read; use `gzip "
			"-dc FILE | pperf-report -`",
			path);
	else
		return false;
	return true;
}

/* Writes the end of a sentence about a file that does not exist: the nearest name beside it. */
static void suggest_file(const char *path, char *out, size_t room)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const size_t folder_bytes = (size_t)(name - path);
	struct suggestion near = suggest_for(name, strlen(name));
	char *folder = xcalloc(folder_bytes + 2);
	DIR *entries;
	struct dirent *entry;

	memcpy(folder, folder_bytes ? path : ".", folder_bytes ? folder_bytes : 1);
	entries = opendir(folder);
	while (entries && (entry = readdir(entries)))
		if (strcmp(entry->d_name, name)) /* itself: a link to what does not exist */
			suggest_offer(&near, entry->d_name);
	if (entries)
		closedir(entries);
	free(folder);
	snprintf(out, room, "%s", suggest_text(&near, NULL));
}

/* Opens a file and converts it if it is another tool's. If it is not, returns NULL with its
 * descriptor in `fd`. On failure returns NULL with -1 in `fd` and a sentence in `error`. */
static struct converted_file *open_and_detect(
	const char *path, int *fd, uint64_t *bytes, char *error)
{
	unsigned char head[FILE_HEAD_BYTES];
	char suggestion[160] = "";
	struct stat status;
	struct converted_file *converted;
	enum file_kind kind;
	size_t got;

	if (access(path, F_OK) && errno == ENOENT && strcmp(path, "-"))
		suggest_file(path, suggestion, sizeof suggestion);
	*fd = kept_input_needed(path) ? kept_input_open(path, bytes, error)
				      : trace_file_open(path, bytes, error);
	if (*fd < 0) {
		strncat(error, suggestion, READER_ERROR_BYTES - 1 - strlen(error));
		return NULL;
	}
	kind = read_file_head(*fd, head, &got);
	if (kind == FILE_PPERF && graph_captures)
		snprintf(error, READER_ERROR_BYTES,
			"%.300s: is a trace of pperf, which has the captures of its graphs; leave "
			"out --graphs",
			path);
	if ((kind == FILE_PPERF && graph_captures) ||
		(kind == FILE_OTHER && explain_file(path, head, got, error))) {
		close(*fd);
		*fd = -1;
	}
	if (kind == FILE_PPERF || kind == FILE_OTHER || fstat(*fd, &status))
		return NULL;
	converted = get_converted(path, *fd, kind, &status, error);
	*fd = -1;
	return converted;
}

/* As open_any_trace. Sets `is_converted` if the file is another tool's. */
static int open_input(const char *path, uint64_t *bytes, bool *is_converted, char *error)
{
	uint32_t pid = 0;
	char *base = split_pid_suffix(path, &pid);
	const struct converted_trace *part;
	struct converted_file *converted;
	int fd;

	converted = open_and_detect(base ? base : path, &fd, bytes, error);
	if (converted) {
		part = base ? find_process_trace(converted, path, pid, error)
			    : &converted->traces[0];
		fd = part ? dup(part->fd) : -1;
		if (part && fd < 0)
			snprintf(error, READER_ERROR_BYTES, "%.300s: %s", path, strerror(errno));
	}
	free(base);
	*is_converted = converted != NULL;
	if (converted && fd >= 0)
		*bytes = part->bytes;
	return fd;
}

int open_any_trace(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES])
{
	bool is_converted;

	return open_input(path, bytes, &is_converted, error);
}

bool open_trace_use_captures(const char *path, char error[READER_ERROR_BYTES])
{
	unsigned char head[FILE_HEAD_BYTES];
	struct event_rows rows;
	char problem[320] = "is not a file of torch.profiler or nsys";
	uint64_t bytes;
	size_t got;
	const int fd = trace_file_open(path, &bytes, error);
	const enum file_kind kind = fd < 0 ? FILE_OTHER : read_file_head(fd, head, &got);
	const bool sqlite = kind == FILE_SQLITE;

	if (fd < 0)
		return false;
	if (sqlite || kind == FILE_JSON || kind == FILE_GZIP) {
		if (read_foreign_file(&rows, fd, kind, problem, sizeof problem))
			graph_captures = graph_captures_new(&rows);
		else
			event_rows_free(&rows);
	}
	if (sqlite || (kind != FILE_JSON && kind != FILE_GZIP))
		close(fd);
	if (graph_captures && graph_captures_count(graph_captures))
		return true;
	snprintf(error, READER_ERROR_BYTES, "%.150s: %.320s", path,
		graph_captures ? "has no captures of CUDA graphs (cudaStreamBeginCapture to "
				 "cudaStreamEndCapture)"
			       : problem);
	return false;
}

bool is_foreign_trace(const char *path)
{
	char error[READER_ERROR_BYTES];
	unsigned char head[FILE_HEAD_BYTES];
	uint64_t bytes;
	size_t got;
	const int fd = trace_file_open(path, &bytes, error);
	const enum file_kind kind = fd < 0 ? FILE_OTHER : read_file_head(fd, head, &got);

	if (fd >= 0)
		close(fd);
	if (kind != FILE_JSON && kind != FILE_GZIP)
		return kind == FILE_SQLITE || kind == FILE_PICKLE;
	return memory_timeline_begins(head, got) || memmem(head, got, "schemaVersion", 13) ||
	       memmem(head, got, "traceEvents", 11) || memmem(head, got, "deviceProperties", 16);
}

struct trace_reader *import_open_trace(const char *path, char error[READER_ERROR_BYTES])
{
	uint64_t bytes = 0;
	bool is_converted;
	int fd;

	progress_file(path);
	fd = open_input(path, &bytes, &is_converted, error);
	return fd < 0 ? NULL : reader_open_fd(fd, bytes, !is_converted, path, error);
}

void open_trace_forget(const char *path)
{
	struct converted_file **at = &converted_files, *converted = NULL;
	uint32_t pid;
	char *base = split_pid_suffix(path, &pid);
	struct stat status;

	if (!kept_input_needed(path) && !stat(base ? base : path, &status))
		converted = find_converted(&status);
	free(base);
	if (!converted)
		return;
	while (*at != converted)
		at = &(*at)->next;
	*at = converted->next;
	free_converted(converted);
}

size_t open_trace_process_count(const char *path)
{
	struct stat status;
	const struct converted_file *converted = kept_input_stat(path, &status)
							 ? NULL
							 : find_converted(&status);

	return converted ? converted->count : 0;
}

char *open_trace_process_path(const char *path, size_t number)
{
	struct stat status;
	const struct converted_file *converted = kept_input_stat(path, &status)
							 ? NULL
							 : find_converted(&status);
	const size_t room = strlen(path) + 12;
	char *other = xcalloc(room);

	snprintf(other, room, number ? "%s#%" PRIu32 : "%s", path,
		converted ? converted->traces[number].pid : 0);
	return other;
}

struct cache_key open_trace_key(const char *path, const struct trace_reader *reader)
{
	uint32_t pid = 0;
	char *base = split_pid_suffix(path, &pid);
	const struct converted_file *converted;
	struct cache_key key = { { 0 } };
	struct stat status;

	converted = kept_input_stat(base ? base : path, &status) ? NULL : find_converted(&status);
	if (converted && converted->is_whole)
		key = converted->key;
	else if (!converted && reader_header(reader)->flags & TRACE_ENDED)
		key = cache_key_of(reader_descriptor(reader), path);
	cache_key_add(&key, pid);
	cache_key_add(&key, base != NULL);
	free(base);
	return key;
}

bool open_trace_key_is_current(const struct cache_key *key, const char *path)
{
	uint32_t pid;
	char *base = split_pid_suffix(path, &pid);
	const bool is_current = cache_key_is_current(key, base ? base : path);

	free(base);
	return is_current;
}
