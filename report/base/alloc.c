/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/base/error.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Noreturn void no_memory(size_t bytes)
{
	fatal(STATUS_UNREADABLE,
		"out of memory: %zu more bytes are needed; free memory or raise the limit", bytes);
}

void *xcalloc(size_t bytes)
{
	void *memory = calloc(1, bytes ? bytes : 1);

	if (!memory)
		no_memory(bytes);
	return memory;
}

#define CACHE_LINE_BYTES 64u

void *xcalloc_cache_aligned(size_t bytes)
{
	const size_t lines = (bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES;
	void *memory = aligned_alloc(CACHE_LINE_BYTES, lines * CACHE_LINE_BYTES);

	if (!memory)
		no_memory(bytes);
	return memset(memory, 0, lines * CACHE_LINE_BYTES);
}

void array_grow(void *array, size_t *room, size_t count, size_t size)
{
	size_t more = *room + *room / 2 + 16;
	char *memory;

	if (count <= *room)
		return;
	if (more < count)
		more = count;
	if (more > SIZE_MAX / size)
		no_memory(SIZE_MAX);
	memcpy(&memory, array, sizeof memory);
	memory = realloc(memory, more * size);
	if (!memory)
		no_memory(more * size);
	memcpy(array, &memory, sizeof memory);
	*room = more;
}

void array_grow_zeroed(void *array, size_t *room, size_t count, size_t size)
{
	const size_t before = *room;
	char *memory;

	if (count <= before)
		return;
	array_grow(array, room, count, size);
	memcpy(&memory, array, sizeof memory);
	memset(memory + before * size, 0, (*room - before) * size);
}

void *mapped_grow(void *array, size_t before, size_t after)
{
	void *memory = array ? mremap(array, before, after, MREMAP_MAYMOVE)
			     : mmap(NULL, after, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		no_memory(after);
	return memory;
}

void mapped_free(void *array, size_t bytes)
{
	if (array)
		munmap(array, bytes);
}
