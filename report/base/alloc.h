/* SPDX-License-Identifier: MIT
 * Allocates memory, or ends the program with an error message (STATUS_UNREADABLE) if there is
 * none.
 */
#ifndef PPERF_REPORT_BASE_ALLOC_H
#define PPERF_REPORT_BASE_ALLOC_H

#include <stddef.h>

/* Returns `bytes` bytes of zeroed memory, never NULL. */
void *xcalloc(size_t bytes);
/* As xcalloc, aligned to whole cache lines that nothing else is in. So two threads that write
 * beside each other do not slow each other down (false sharing). */
void *xcalloc_cache_aligned(size_t bytes);

/* Grows `*array` to at least `count` elements of `size` bytes. `*room` is its capacity, which
 * grows by half or to `count`. New elements are zeroed. */
void array_grow_zeroed(void *array, size_t *room, size_t count, size_t size);
#define ARRAY_GROW(array, room, count) \
	array_grow_if_full(&(array), &(room), count, sizeof *(array))
static inline void array_grow_if_full(void *array, size_t *room, size_t count, size_t size)
{
	if (count > *room)
		array_grow_zeroed(array, room, count, size);
}
/* Adds an element to an array that has `count`, and returns a pointer to it. It is zeroed, unless
 * the array had that many elements before. */
#define ARRAY_ADD(array, room, count) \
	(ARRAY_GROW(array, room, (size_t)(count) + 1), &(array)[(count)++])
/* Grows like array_grow_zeroed, but leaves new elements uninitialised, so that unused pages are
 * never touched. */
void array_grow(void *array, size_t *room, size_t count, size_t size);

/* Grows an array that may become large, from `before` to `after` bytes. New bytes are 0 and take no
 * memory until they are written. The array begins at a page and is moved without a copy of it.
 * `array`: NULL, or what an earlier call returned. Unmapped by mapped_free. */
void *mapped_grow(void *array, size_t before, size_t after);
void mapped_free(void *array, size_t bytes);

#endif
