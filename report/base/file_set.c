/* SPDX-License-Identifier: MIT */
#include "report/base/file_set.h"
#include "report/base/alloc.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LEAST_ROOM 64u

struct member {
	dev_t device;
	ino_t inode;
	char *path; /* of what is no file; else NULL */
	uint64_t hash;
	bool used;
};

struct file_set {
	struct member *members;
	size_t room, count; /* room: a power of two, at least twice the count */
};

static uint64_t mixed(uint64_t value)
{
	value ^= value >> 32;
	value *= 0xd6e8feb86659fd93u;
	return value ^ value >> 32;
}

/* The path is the caller's. */
static struct member member_of(const char *path)
{
	struct member member = { .path = (char *)path, .used = true };
	struct stat status;

	if (!stat(path, &status)) {
		member = (struct member){ .device = status.st_dev, .inode = status.st_ino, .used = true };
		member.hash = mixed(mixed(status.st_ino) + status.st_dev);
	} else {
		for (; *path; path++)
			member.hash = mixed(member.hash + (unsigned char)*path);
	}
	return member;
}

static bool same(const struct member *a, const struct member *b)
{
	if (a->path || b->path)
		return a->path && b->path && !strcmp(a->path, b->path);
	return a->device == b->device && a->inode == b->inode;
}

/* Where it is, or would be. */
static struct member *place_of(const struct file_set *set, const struct member *member)
{
	size_t at = member->hash & (set->room - 1);

	while (set->members[at].used && !same(&set->members[at], member))
		at = (at + 1) & (set->room - 1);
	return &set->members[at];
}

static void set_room(struct file_set *set, size_t room)
{
	const struct file_set old = *set;

	set->members = need(room * sizeof *set->members);
	set->room = room;
	for (size_t i = 0; i < old.room; i++)
		if (old.members[i].used)
			*place_of(set, &old.members[i]) = old.members[i];
	free(old.members);
}

struct file_set *file_set_new(void)
{
	struct file_set *set = need(sizeof *set);

	set_room(set, LEAST_ROOM);
	return set;
}

bool file_set_add(struct file_set *set, const char *path)
{
	struct member member = member_of(path), *place;

	if (2 * set->count >= set->room)
		set_room(set, 2 * set->room);
	place = place_of(set, &member);
	if (place->used)
		return false;
	if (member.path)
		member.path = strcpy(need(strlen(path) + 1), path);
	*place = member;
	set->count++;
	return true;
}

bool file_set_has(const struct file_set *set, const char *path)
{
	const struct member member = member_of(path);

	return place_of(set, &member)->used;
}

void file_set_free(struct file_set *set)
{
	for (size_t i = 0; i < set->room; i++)
		free(set->members[i].path);
	free(set->members);
	free(set);
}
