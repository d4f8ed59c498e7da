/* SPDX-License-Identifier: MIT
 * Allocates memory, or ends the program with a sentence (STATUS_UNREADABLE) if there is none.
 */
#ifndef PPERF_REPORT_BASE_ALLOC_H
#define PPERF_REPORT_BASE_ALLOC_H

#include <stddef.h>

/* Returns `bytes` bytes of zeroed memory, never NULL. */
void *xcalloc(size_t bytes);

/* Makes room for at least `count` elements of `size` bytes in *array, which has room for *room. New elements are zeroed.
 * The room grows by half. */
void array_grow_zeroed(void *array, size_t *room, size_t count, size_t size);
/* Like grow, but new elements are uninitialised: pages that are never used are never touched. */
void array_grow(void *array, size_t *room, size_t count, size_t size);

#endif
