/* SPDX-License-Identifier: MIT */
#include "report/base/file_set.h"
#include "report/base/alloc.h"
#include "report/base/hash_index.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct file_set_entry {
	dev_t device;
	ino_t inode;
	char *path; /* set if the path is not a file; else NULL */
	uint64_t hash;
};

struct file_set {
	struct file_set_entry *entries;
	size_t room;
	struct hash_index index; /* of members + 1, by hash */
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
	struct file_set_entry entry = { .path = (char *)path };
	struct stat status;

	if (!stat(path, &status)) {
		entry = (struct file_set_entry){ .device = status.st_dev, .inode = status.st_ino };
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

/* Returns the slot that the file has or would have. */
static struct hash_slot *slot_of(const struct file_set *set, const struct file_set_entry *entry)
{
	struct hash_slot *slot = hash_index_first(&set->index, entry->hash);

	while (slot->number && !is_same_file(&set->entries[slot->number - 1], entry))
		slot = hash_index_next(&set->index, slot);
	return slot;
}

struct file_set *file_set_new(void)
{
	struct file_set *set = xcalloc(sizeof *set);

	hash_index_reserve(&set->index);
	return set;
}

bool file_set_add(struct file_set *set, const char *path)
{
	struct file_set_entry entry = file_set_entry_of(path);
	struct hash_slot *slot;

	hash_index_reserve(&set->index);
	slot = slot_of(set, &entry);
	if (slot->number)
		return false;
	if (entry.path)
		entry.path = strcpy(xcalloc(strlen(path) + 1), path);
	ARRAY_GROW(set->entries, set->room, set->index.count + 1);
	set->entries[set->index.count] = entry;
	hash_index_add(&set->index, slot, entry.hash, (uint32_t)set->index.count + 1);
	return true;
}

bool file_set_has(const struct file_set *set, const char *path)
{
	const struct file_set_entry entry = file_set_entry_of(path);

	return slot_of(set, &entry)->number != 0;
}

void file_set_free(struct file_set *set)
{
	for (size_t i = 0; i < set->index.count; i++)
		free(set->entries[i].path);
	hash_index_free(&set->index);
	free(set->entries);
	free(set);
}
