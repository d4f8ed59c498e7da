/* SPDX-License-Identifier: MIT */
#include "report/base/file_set.h"
#include "report/base/alloc.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_SET_ROOM_MIN 64u

struct file_set_entry {
	dev_t device;
	ino_t inode;
	char *path; /* set if the path is not a file; else NULL */
	uint64_t hash;
	bool used;
};

struct file_set {
	struct file_set_entry *entries;
	size_t room, count; /* room: a power of two, at least twice the count */
};

static uint64_t mix_hash(uint64_t value)
{
	value ^= value >> 32;
	value *= 0xd6e8feb86659fd93u;
	return value ^ value >> 32;
}

/* Returns the entry of `path`, which it borrows. */
static struct file_set_entry file_set_entry_of(const char *path)
{
	struct file_set_entry entry = { .path = (char *)path, .used = true };
	struct stat status;

	if (!stat(path, &status)) {
		entry = (struct file_set_entry){
			.device = status.st_dev, .inode = status.st_ino, .used = true
		};
		entry.hash = mix_hash(mix_hash(status.st_ino) + status.st_dev);
	} else {
		for (; *path; path++)
			entry.hash = mix_hash(entry.hash + (unsigned char)*path);
	}
	return entry;
}

static bool is_same_file(const struct file_set_entry *a, const struct file_set_entry *b)
{
	if (a->path || b->path)
		return a->path && b->path && !strcmp(a->path, b->path);
	return a->device == b->device && a->inode == b->inode;
}

/* Returns the slot that holds the entry or would hold it. */
static struct file_set_entry *find_file_entry(
	const struct file_set *set, const struct file_set_entry *entry)
{
	size_t at = entry->hash & (set->room - 1);

	while (set->entries[at].used && !is_same_file(&set->entries[at], entry))
		at = (at + 1) & (set->room - 1);
	return &set->entries[at];
}

static void file_set_resize(struct file_set *set, size_t room)
{
	const struct file_set old = *set;

	set->entries = xcalloc(room * sizeof *set->entries);
	set->room = room;
	for (size_t i = 0; i < old.room; i++)
		if (old.entries[i].used)
			*find_file_entry(set, &old.entries[i]) = old.entries[i];
	free(old.entries);
}

struct file_set *file_set_new(void)
{
	struct file_set *set = xcalloc(sizeof *set);

	file_set_resize(set, FILE_SET_ROOM_MIN);
	return set;
}

bool file_set_add(struct file_set *set, const char *path)
{
	struct file_set_entry entry = file_set_entry_of(path), *slot;

	if (2 * set->count >= set->room)
		file_set_resize(set, 2 * set->room);
	slot = find_file_entry(set, &entry);
	if (slot->used)
		return false;
	if (entry.path)
		entry.path = strcpy(xcalloc(strlen(path) + 1), path);
	*slot = entry;
	set->count++;
	return true;
}

bool file_set_has(const struct file_set *set, const char *path)
{
	const struct file_set_entry entry = file_set_entry_of(path);

	return find_file_entry(set, &entry)->used;
}

void file_set_free(struct file_set *set)
{
	for (size_t i = 0; i < set->room; i++)
		free(set->entries[i].path);
	free(set->entries);
	free(set);
}
