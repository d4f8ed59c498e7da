/*
 * Which bytes of device memory are known. Kernels compute nothing, so what lies where one would
 * have written is stale: read as a size or an index it would lead a program astray. Known is what a
 * copy or a set wrote and no kernel was given an address of since; all else reads as zeros. So what
 * only copies touched comes back exactly, in any order of other work.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "driver/table.h"

/* Written by one copy or set. Ranges are not joined: a kernel that is given one tensor says nothing
 * of its neighbour. */
struct range {
	uintptr_t start, end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges; /* sorted, disjoint */
static size_t count, room;

/* The index of the first range that ends after the address. The lock must be held. */
static size_t position(uintptr_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Puts `range` at an index; an empty one is left out. The lock must be held. */
static void insert(size_t at, struct range range)
{
	if (range.start >= range.end)
		return;
	if (count == room) {
		room = room ? room * 2 : 256;
		ranges = grow(ranges, room * sizeof(*ranges));
	}
	memmove(ranges + at + 1, ranges + at, (count - at) * sizeof(*ranges));
	ranges[at] = range;
	__atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
}

/* Takes [start, end) away; what is left of a range on either side stays. The lock must be held. */
static void cut(uintptr_t start, uintptr_t end)
{
	size_t first = position(start), last = first;
	struct range before = { 0, 0 }, after = { 0, 0 };

	while (last < count && ranges[last].start < end)
		last++;
	if (first == last)
		return;
	before = (struct range){ ranges[first].start, start };
	after = (struct range){ end, ranges[last - 1].end };
	memmove(ranges + first, ranges + last, (count - last) * sizeof(*ranges));
	__atomic_store_n(&count, count - (last - first), __ATOMIC_RELAXED);
	insert(first, after);
	insert(first, before);
}

void values_write(const void *address, size_t bytes)
{
	uintptr_t start = (uintptr_t)address;

	pthread_mutex_lock(&lock);
	cut(start, start + bytes);
	insert(position(start), (struct range){ start, start + bytes });
	pthread_mutex_unlock(&lock);
}

void values_forget(const void *address, size_t bytes)
{
	if (!values_any())
		return;
	pthread_mutex_lock(&lock);
	cut((uintptr_t)address, (uintptr_t)address + bytes);
	pthread_mutex_unlock(&lock);
}

bool values_any(void)
{
	return __atomic_load_n(&count, __ATOMIC_RELAXED) != 0;
}

void values_touch(const uintptr_t *addresses, size_t how_many)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < how_many; i++) {
		size_t at = position(addresses[i]);

		if (at < count && ranges[at].start <= addresses[i])
			cut(addresses[i], ranges[at].end);
	}
	pthread_mutex_unlock(&lock);
}

void values_touch_all(void)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&count, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

/* The first piece at or after `at` that is known, clipped to `end`; empty at `end`: none. The lock
 * must be held. */
static struct range known_from(uintptr_t at, uintptr_t end)
{
	size_t index = position(at);
	struct range piece = { end, end };

	if (index == count || ranges[index].start >= end)
		return piece;
	piece.start = ranges[index].start > at ? ranges[index].start : at;
	piece.end = ranges[index].end < end ? ranges[index].end : end;
	return piece;
}

static struct range next_known(uintptr_t at, uintptr_t end)
{
	struct range piece;

	pthread_mutex_lock(&lock);
	piece = known_from(at, end);
	pthread_mutex_unlock(&lock);
	return piece;
}

/* From the device into memory whose every byte counts: zeros for what is not known. */
static void read_out(char *target, const char *source, size_t bytes)
{
	uintptr_t at = (uintptr_t)source, end = at + bytes;

	while (at < end) {
		struct range piece = next_known(at, end);

		memset(target, 0, piece.start - at);
		target += piece.start - at;
		memmove(target, (const void *)piece.start, piece.end - piece.start);
		target += piece.end - piece.start;
		at = piece.end;
	}
}

/* From device to device: what is known there is known here. */
static void carry(char *target, const char *source, size_t bytes)
{
	uintptr_t at = (uintptr_t)source, end = at + bytes;

	memmove(target, source, bytes);
	pthread_mutex_lock(&lock);
	cut((uintptr_t)target, (uintptr_t)target + bytes);
	while (at < end) {
		struct range piece = known_from(at, end);
		uintptr_t to = (uintptr_t)target + (piece.start - (uintptr_t)source);

		insert(position(to), (struct range){ to, to + (piece.end - piece.start) });
		at = piece.end;
	}
	pthread_mutex_unlock(&lock);
}

static bool is_tracked(enum sim_memory_kind kind)
{
	return kind == SIM_MEMORY_DEVICE || kind == SIM_MEMORY_DEVICE_STATIC;
}

void values_copy(void *target, enum sim_memory_kind target_kind, const void *source,
	enum sim_memory_kind source_kind, size_t bytes)
{
	bool to = is_tracked(target_kind), from = is_tracked(source_kind);

	if (!bytes || (to && from && !values_any()))
		return; /* who only receives has nothing to be read */
	if (to && from) {
		carry(target, source, bytes);
		return;
	}
	if (from) {
		read_out(target, source, bytes);
		return;
	}
	memmove(target, source, bytes);
	if (to)
		values_write(target, bytes);
}

SIM_EXPORT void sim_values_read(void *target, const void *source, size_t bytes)
{
	struct block block;

	values_copy(target, SIM_MEMORY_PAGEABLE, source,
		block_find(source, &block) ? block.kind : SIM_MEMORY_PAGEABLE, bytes);
}

SIM_EXPORT void sim_values_written(const void *address, size_t bytes)
{
	struct block block;

	if (bytes && block_find(address, &block) && is_tracked(block.kind))
		values_write(address, bytes);
}
