/* SPDX-License-Identifier: MIT
 * Finds the files of a run: every file in the folder whose header has the run's id, whatever its
 * name.
 */
#include "report/import/run_files.h"
#include "report/base/alloc.h"
#include "report/import/open_trace.h"
#include "report/trace/trace_header.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_start_times(const void *left, const void *right)
{
	const struct run_file *a = left, *b = right;

	if (a->start_unix_ns != b->start_unix_ns)
		return a->start_unix_ns < b->start_unix_ns ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return strcmp(a->path, b->path);
}

static bool same_process(const struct run_file *a, const struct run_file *b)
{
	return a->pid == b->pid && a->start_unix_ns == b->start_unix_ns;
}

/* A process writes one trace, so files with equal pid and start are copies. Of the sorted files
 * from `first` on, one copy each is kept, and none if it is among those before `first`. */
static void drop_copies(struct run_files *files, uint32_t first)
{
	uint32_t kept = first;

	for (uint32_t i = first; i < files->count; i++) {
		struct run_file *sibling = &files->traces[i];
		bool copy = kept > first && same_process(sibling, &files->traces[kept - 1]);

		for (uint32_t named = 0; named < first && !copy; named++)
			copy = same_process(sibling, &files->traces[named]);
		if (copy)
			free(sibling->path);
		else
			files->traces[kept++] = *sibling;
	}
	files->count = kept;
}

static void add_run_file(struct run_files *files, size_t *room, char *path,
	const struct trace_header *header, uint64_t bytes)
{
	array_grow_zeroed(&files->traces, room, (size_t)files->count + 1, sizeof *files->traces);
	files->traces[files->count++] = (struct run_file){ path, header->pid, header->parent_pid,
		header->start.realtime_ns, bytes };
}

/* Reads the header of any file. `named`: the user named the file, so it may be another tool's. */
static bool read_run_header(
	const char *path, bool named, struct trace_header *header, uint64_t *bytes, char *error)
{
	int fd = named ? open_any_trace(path, bytes, error) : trace_file_open(path, bytes, error);
	bool good = fd >= 0 && header_read(fd, path, header, error);

	if (fd >= 0)
		close(fd);
	return good;
}

static char *join_path(const char *folder, int folder_bytes, const char *name)
{
	size_t bytes = (size_t)folder_bytes + strlen(name) + 1;
	char *path = xcalloc(bytes);

	snprintf(path, bytes, "%.*s%s", folder_bytes, folder, name);
	return path;
}

static void find_in_folder_of(
	const char *path, uint64_t run_id, struct run_files *files, size_t *room)
{
	const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
	int folder_bytes = (int)(own - path);
	char *folder = join_path(path, folder_bytes, folder_bytes ? "." : "./."),
	     error[READER_ERROR_BYTES];
	DIR *entries = opendir(folder);
	struct dirent *entry;

	free(folder);
	while (entries && (entry = readdir(entries))) {
		struct trace_header header;
		uint64_t bytes;
		char *other;

		if (!strcmp(entry->d_name, own) ||
			(entry->d_type != DT_REG && entry->d_type != DT_LNK &&
				entry->d_type != DT_UNKNOWN))
			continue;
		other = join_path(path, folder_bytes, entry->d_name);
		if (read_run_header(other, false, &header, &bytes, error) &&
			header.run_id == run_id)
			add_run_file(files, room, other, &header, bytes);
		else
			free(other);
	}
	if (entries)
		closedir(entries);
}

/* Adds the other processes of a file of another tool. */
static void find_in_file(const char *path, struct run_files *files, size_t *room)
{
	char error[READER_ERROR_BYTES];

	for (size_t i = 1; i < open_trace_process_count(path); i++) {
		char *other = open_trace_process_path(path, i);
		struct trace_header header;
		uint64_t bytes;

		if (read_run_header(other, true, &header, &bytes, error))
			add_run_file(files, room, other, &header, bytes);
		else
			free(other);
	}
}

bool run_files_find(const char *path, struct run_files *files, char error[READER_ERROR_BYTES])
{
	struct trace_header header;
	size_t room = 0;
	uint64_t bytes;
	uint32_t named;

	*files = (struct run_files){ 0 };
	if (!read_run_header(path, true, &header, &bytes, error))
		return false;
	add_run_file(files, &room, join_path(path, (int)strlen(path), ""), &header, bytes);
	find_in_file(path, files, &room);
	named = files->count;
	if (header.run_id)
		find_in_folder_of(path, header.run_id, files, &room);
	qsort(files->traces + named, files->count - named, sizeof *files->traces,
		compare_start_times);
	drop_copies(files, named);
	qsort(files->traces, files->count, sizeof *files->traces, compare_start_times);
	return true;
}

void run_files_free(struct run_files *files)
{
	for (uint32_t i = 0; i < files->count; i++)
		free(files->traces[i].path);
	free(files->traces);
	*files = (struct run_files){ 0 };
}
