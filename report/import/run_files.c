/* SPDX-License-Identifier: MIT
 * Finds the files of a run: every file in the folder whose header has the run's id, whatever its
 * name. So the headers of all files in the folder are read.
 */
#include "report/import/run_files.h"
#include "report/base/alloc.h"
#include "report/import/open_trace.h"
#include "report/trace/trace_header.h"

#include <dirent.h>
#include <errno.h>
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

/* Removes copies from the sorted files from index `first` on. A process writes one trace, so files
 * with equal pid and start are copies. One file of each process is kept, or none if a file before
 * `first` is of this process. */
static void drop_copies(struct run_files *files, uint32_t first)
{
	uint32_t kept = first;

	for (uint32_t i = first; i < files->count; i++) {
		struct run_file *file = &files->traces[i];
		bool copy = kept > first && same_process(file, &files->traces[kept - 1]);

		for (uint32_t before = 0; before < first && !copy; before++)
			copy = same_process(file, &files->traces[before]);
		if (copy)
			free(file->path);
		else
			files->traces[kept++] = *file;
	}
	files->count = kept;
}

static void add_run_file(struct run_files *files, size_t *room, char *path,
	const struct trace_header *header, uint64_t bytes)
{
	array_grow_zeroed(&files->traces, room, (size_t)files->count + 1, sizeof *files->traces);
	files->traces[files->count++] = (struct run_file){ path, header->pid, header->parent_pid,
		header->start.realtime_ns, bytes, header->run_id };
}

/* Reads the header of a trace. `convert`: a file of another tool is converted first; otherwise only
 * traces of pperf are read. */
static bool read_run_header(
	const char *path, bool convert, struct trace_header *header, uint64_t *bytes, char *error)
{
	int fd = convert ? open_any_trace(path, bytes, error) : trace_file_open(path, bytes, error);
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

/* Adds the other traces of pperf in the folder of `path` that have `run_id`. Adds none if the
 * folder cannot be read. */
static void find_in_folder_of(
	const char *path, uint64_t run_id, struct run_files *files, size_t *room)
{
	const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
	int folder_bytes = (int)(own - path);
	char *folder = join_path(path, folder_bytes, "."), error[READER_ERROR_BYTES];
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
	uint32_t in_named_file;

	*files = (struct run_files){ 0 };
	if (!read_run_header(path, true, &header, &bytes, error))
		return false;
	add_run_file(files, &room, join_path(path, (int)strlen(path), ""), &header, bytes);
	find_in_file(path, files, &room);
	in_named_file = files->count;
	if (header.run_id)
		find_in_folder_of(path, header.run_id, files, &room);
	qsort(files->traces + in_named_file, files->count - in_named_file, sizeof *files->traces,
		compare_start_times);
	drop_copies(files, in_named_file);
	qsort(files->traces, files->count, sizeof *files->traces, compare_start_times);
	return true;
}

/* The traces in a directory. */
struct directory_list {
	struct run_files own, foreign; /* traces of pperf; traces of other tools */
	struct run_files other;        /* files that are no traces */
	size_t own_room, foreign_room, other_room;
};

static void list_file(struct directory_list *list, char *path)
{
	char error[READER_ERROR_BYTES];
	struct trace_header header = { .pid = 0 };
	uint64_t bytes = 0;

	if (read_run_header(path, false, &header, &bytes, error)) {
		add_run_file(&list->own, &list->own_room, path, &header, bytes);
	} else if (is_foreign_trace(path)) {
		add_run_file(&list->foreign, &list->foreign_room, path, &header, bytes);
	} else {
		header = (struct trace_header){ .pid = 0 };
		add_run_file(&list->other, &list->other_room, path, &header, bytes);
	}
}

/* Returns false with errno if the directory cannot be read. */
static bool list_directory(const char *folder, struct directory_list *list)
{
	const size_t length = strlen(folder);
	const int bytes = (int)(length && folder[length - 1] == '/' ? length - 1 : length);
	DIR *entries = opendir(folder);
	struct dirent *entry;
	char *slashed = join_path(folder, bytes, "/");

	while (entries && (entry = readdir(entries)))
		if (entry->d_type == DT_REG || entry->d_type == DT_LNK ||
			entry->d_type == DT_UNKNOWN)
			list_file(list, join_path(slashed, bytes + 1, entry->d_name));
	free(slashed);
	if (entries)
		closedir(entries);
	return entries != NULL;
}

/* Returns the number of runs. `*newest`: index in `own` of the trace that started last. */
static uint32_t count_runs(const struct directory_list *list, uint32_t *newest)
{
	const struct run_file *own = list->own.traces;
	uint32_t runs = 0;

	*newest = 0;
	for (uint32_t i = 0; i < list->own.count; i++) {
		bool known = false;

		for (uint32_t before = 0; before < i && own[i].run_id && !known; before++)
			known = own[before].run_id == own[i].run_id;
		runs += !known;
		if (compare_start_times(&own[i], &own[*newest]) > 0)
			*newest = i;
	}
	return runs;
}

static int compare_paths(const void *left, const void *right)
{
	return strcmp(
		((const struct run_file *)left)->path, ((const struct run_file *)right)->path);
}

/* Writes to `error` what to name instead of the directory. */
static void refuse_directory(const struct directory_list *list, const char *folder, uint32_t runs,
	uint32_t newest, char *error)
{
	char of_pperf[300] = "", of_others[300] = "";

	if (runs)
		snprintf(of_pperf, sizeof of_pperf,
			"traces of %u run%s of pperf (the newest: %.200s)", runs,
			runs == 1 ? "" : "s", list->own.traces[newest].path);
	if (list->foreign.count)
		snprintf(of_others, sizeof of_others,
			"%u trace%s of other tools (the first: %.200s)", list->foreign.count,
			list->foreign.count == 1 ? "" : "s", list->foreign.traces[0].path);
	snprintf(error, READER_ERROR_BYTES, "%.80s: has %.180s%s%.180s; name one of them", folder,
		of_pperf, *of_pperf && *of_others ? ", and " : "", of_others);
	if (!runs && !list->foreign.count)
		snprintf(error, READER_ERROR_BYTES,
			"%.200s: is a directory without a trace in it; give a trace (trace.bin), "
			"or "
			"the directory in which the program ran",
			folder);
}

bool run_files_in_directory(const char *folder, bool several_foreign, struct run_files *files,
	char error[READER_ERROR_BYTES])
{
	struct directory_list list = { .own_room = 0 };
	uint32_t runs, newest;
	bool good;

	*files = (struct run_files){ 0 };
	if (!list_directory(folder, &list)) {
		snprintf(error, READER_ERROR_BYTES, "%.300s: cannot be opened: %s", folder,
			strerror(errno));
		return false;
	}
	runs = count_runs(&list, &newest);
	if (list.foreign.count)
		qsort(list.foreign.traces, list.foreign.count, sizeof *list.foreign.traces,
			compare_paths);
	good = runs + list.foreign.count == 1 || (several_foreign && !runs && list.foreign.count);
	if (good) {
		*files = runs ? list.own : list.foreign;
		if (runs)
			qsort(files->traces, files->count, sizeof *files->traces,
				compare_start_times);
	} else {
		refuse_directory(&list, folder, runs, newest, error);
		run_files_free(&list.own);
		run_files_free(&list.foreign);
	}
	run_files_free(&list.other);
	return good;
}

/* Returns the extension of a path with its dot; "": it has none. */
static const char *extension_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
		   *dot = strrchr(name, '.');

	return dot && dot != name ? dot : "";
}

/* Adds those of `other` that have the extension of one of the first `traces` files, and frees the
 * rest. */
static void add_alike(struct run_files *files, size_t *room, struct run_files *other)
{
	const uint32_t traces = files->count;
	const struct trace_header none = { .pid = 0 };

	for (uint32_t i = 0; i < other->count; i++) {
		struct run_file *file = &other->traces[i];
		bool alike = false;

		for (uint32_t k = 0; k < traces && !alike; k++)
			alike = *extension_of(file->path) &&
				!strcmp(extension_of(file->path),
					extension_of(files->traces[k].path));
		if (alike)
			add_run_file(files, room, file->path, &none, file->bytes);
		else
			free(file->path);
	}
	free(other->traces);
}

bool run_files_all_in_directory(
	const char *folder, struct run_files *files, char error[READER_ERROR_BYTES])
{
	struct directory_list list = { .own_room = 0 };

	*files = (struct run_files){ 0 };
	if (!list_directory(folder, &list)) {
		snprintf(error, READER_ERROR_BYTES, "%.300s: cannot be opened: %s", folder,
			strerror(errno));
		return false;
	}
	*files = list.own;
	for (uint32_t i = 0; i < list.foreign.count; i++) {
		array_grow_zeroed(&files->traces, &list.own_room, (size_t)files->count + 1,
			sizeof *files->traces);
		files->traces[files->count++] = list.foreign.traces[i];
	}
	free(list.foreign.traces);
	add_alike(files, &list.own_room, &list.other);
	if (files->count)
		qsort(files->traces, files->count, sizeof *files->traces, compare_paths);
	return true;
}

void run_files_free(struct run_files *files)
{
	for (uint32_t i = 0; i < files->count; i++)
		free(files->traces[i].path);
	free(files->traces);
	*files = (struct run_files){ 0 };
}
