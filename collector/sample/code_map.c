/* SPDX-License-Identifier: MIT */
#include "collector/sample/code_map.h"

#include <errno.h>
#include <link.h>
#include <string.h>

/* ---- under the dynamic linker's lock ---- */

struct linker_counters {
	uint64_t adds, subs;
};

static int read_counters(struct dl_phdr_info *object, size_t size, void *data)
{
	struct linker_counters *counters = data;

	(void)size;
	*counters = (struct linker_counters){ object->dlpi_adds, object->dlpi_subs };
	return 1;
}

static void widen(uint64_t *start, uint64_t *end, uint64_t from, uint64_t to)
{
	*start = from < *start ? from : *start;
	*end = to > *end ? to : *end;
}

static void describe_segments(struct code_object *o, const struct dl_phdr_info *object)
{
	*o = (struct code_object){ .start = UINT64_MAX, .code_start = UINT64_MAX };
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		const uint64_t from = object->dlpi_addr + segment->p_vaddr,
			       to = from + segment->p_memsz;

		if (segment->p_type == PT_GNU_EH_FRAME)
			o->header = from;
		if (segment->p_type != PT_LOAD || to < from)
			continue;
		widen(&o->start, &o->end, from, to);
		if (segment->p_flags & PF_X)
			widen(&o->code_start, &o->code_end, from, to);
	}
}

static int copy_object(struct dl_phdr_info *object, size_t size, void *data)
{
	struct code_map *map = data;
	struct code_object *o = &map->objects[map->count];

	(void)size;
	map->adds = object->dlpi_adds;
	map->subs = object->dlpi_subs;
	if (map->count == CODE_MAP_OBJECTS_MAX) {
		map->incomplete = true;
		return 1;
	}
	describe_segments(o, object);
	map->count += o->code_end > o->code_start;
	return 0;
}

/* ---- */

static int by_address(const void *a, const void *b)
{
	const struct code_object *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts in place. libc's qsort may allocate, and our thread must not wait for the program's
 * allocator. The linker's list is nearly sorted in neither direction, so this is a heap sort. */
static void sift_down(struct code_object *heap, uint32_t at, uint32_t count)
{
	struct code_object moved = heap[at];

	for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && by_address(&heap[child], &heap[child + 1]) < 0)
			child++;
		if (by_address(&moved, &heap[child]) >= 0)
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

static void sort_objects(struct code_object *objects, uint32_t count)
{
	for (uint32_t i = count / 2; i-- > 0;)
		sift_down(objects, i, count);
	for (uint32_t last = count; last-- > 1;) {
		const struct code_object largest = objects[0];

		objects[0] = objects[last];
		objects[last] = largest;
		sift_down(objects, 0, last);
	}
}

static void find_extent(struct code_map *map)
{
	map->code_start = UINT64_MAX;
	map->code_end = 0;
	for (uint32_t i = 0; i < map->count; i++)
		widen(&map->code_start, &map->code_end, map->objects[i].code_start,
			map->objects[i].code_end);
}

static void copy_objects(struct code_map *map)
{
	map->count = 0;
	map->incomplete = false;
	dl_iterate_phdr(copy_object, map);
}

enum code_map_change code_map_update(struct code_map *map)
{
	const int saved = errno;
	const uint64_t subs = map->subs;
	struct linker_counters now = { 0, 0 };
	bool changed;

	dl_iterate_phdr(read_counters, &now);
	changed = now.adds != map->adds || now.subs != map->subs;
	if (changed)
		copy_objects(map);
	if (changed) {
		sort_objects(map->objects, map->count);
		find_extent(map);
	}
	errno = saved;
	if (!changed)
		return CODE_MAP_SAME;
	return map->subs == subs ? CODE_MAP_GREW : CODE_MAP_SHRANK;
}

struct code_object *code_map_find(struct code_map *map, uint64_t address)
{
	uint32_t low = 0, high = map->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		struct code_object *o = &map->objects[middle];

		if (address < o->start)
			high = middle;
		else if (address >= o->end)
			low = middle + 1;
		else
			return o;
	}
	return NULL;
}
