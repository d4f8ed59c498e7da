/* SPDX-License-Identifier: MIT */
#include "report/cache/cache_folder.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/text_builder.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define LEFT_BEHIND_NS UINT64_C(3600000000000) /* no entry takes an hour to write */

struct folder_entry {
	uint64_t used_ns, bytes;
	char *name;
};

COMPARE_BY_TWO(by_use, struct folder_entry, used_ns, bytes)

uint64_t cache_time_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_nsec;
}

bool cache_is_own(const struct stat *status)
{
	return status->st_uid == geteuid() && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens the folder `path`, which is made if it is not there, with `name` in it. */
static int open_in(const char *path, const char *name)
{
	struct text_builder full = { .text = NULL };
	struct stat status;
	int fd;

	text_add(&full, "%s/%s", path, name);
	mkdir(path, 0700);
	mkdir(full.text, 0700);
	fd = open(full.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	free(full.text);
	if (fd >= 0 && (fstat(fd, &status) || !cache_is_own(&status))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int cache_folder_open(void)
{
	const char *folder = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct text_builder path = { .text = NULL };
	int fd = -1;

	/* The specification of these folders ignores relative paths. */
	if (folder && folder[0] == '/')
		return open_in(folder, "pperf");
	if (!home || home[0] != '/')
		return -1;
	text_add(&path, "%s/.cache", home);
	fd = open_in(path.text, "pperf");
	free(path.text);
	return fd;
}

static bool ends_with(const char *name, const char *end)
{
	const size_t length = strlen(name), wanted = strlen(end);

	return length > wanted && !strcmp(name + length - wanted, end);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return cache_time_ns(&now);
}

/* Adds the file `name` to `entries` if it is an entry. Removes it if a process left it behind. */
static void list_entry(
	int folder, const char *name, struct folder_entry **entries, size_t *room, size_t *count)
{
	const bool is_new = ends_with(name, CACHE_NEW_END);
	struct stat status;

	if ((!is_new && !ends_with(name, CACHE_ENTRY_END)) ||
		fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode))
		return;
	if (is_new && cache_time_ns(&status.st_mtim) + LEFT_BEHIND_NS < now_ns()) {
		unlinkat(folder, name, 0);
		return;
	}
	array_grow_zeroed(entries, room, *count + 1, sizeof **entries);
	(*entries)[(*count)++] = (struct folder_entry){
		.used_ns = is_new ? UINT64_MAX : cache_time_ns(&status.st_mtim),
		.bytes = (uint64_t)status.st_size,
		.name = strdup(name)
	};
}

static struct folder_entry *list_folder(int folder, size_t *count)
{
	const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *files = own < 0 ? NULL : fdopendir(own);
	struct folder_entry *entries = NULL;
	struct dirent *file;
	size_t room = 0;

	*count = 0;
	while (files && (file = readdir(files)))
		list_entry(folder, file->d_name, &entries, &room, count);
	if (files)
		closedir(files);
	else if (own >= 0)
		close(own);
	return entries;
}

bool cache_folder_make_room(int folder, uint64_t bytes, uint64_t limit, uint64_t used_ns)
{
	struct statvfs space;
	struct folder_entry *entries;
	uint64_t held = 0;
	size_t count;

	if (bytes > limit / 2 || fstatvfs(folder, &space) ||
		bytes > (uint64_t)space.f_bavail * space.f_frsize / 4)
		return false;
	entries = list_folder(folder, &count);
	if (count)
		qsort(entries, count, sizeof *entries, by_use);
	for (size_t i = 0; i < count; i++)
		held += entries[i].bytes;
	for (size_t i = 0; i < count; i++) {
		if (held + bytes > limit && entries[i].used_ns < used_ns && entries[i].name &&
			!unlinkat(folder, entries[i].name, 0))
			held -= entries[i].bytes;
		free(entries[i].name);
	}
	free(entries);
	return held + bytes <= limit;
}
