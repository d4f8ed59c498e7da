/* SPDX-License-Identifier: MIT
 * Copies read-only memory of loaded objects, such as their unwind tables. What was read is kept in
 * lines of 256 bytes, because a search in a sorted table reads the same entries again and again,
 * and each copy by the kernel is a system call.
 *
 * What is kept does not follow changes of the memory. So the owner forgets it when an object is
 * unloaded: another one may come to its place.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_OBJECT_MEMORY_H
#define PPERF_COLLECTOR_SAMPLE_OBJECT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define OBJECT_LINE_BYTES 256u /* a part of a page: a line can be read as a whole or not at all */
#define OBJECT_LINES 4096u     /* a power of two */

/* Filled with zeros, it has no lines. One thread uses it. */
struct object_memory {
	uint64_t line[OBJECT_LINES]; /* the address / OBJECT_LINE_BYTES of each copy; 0: none */
	uint8_t bytes[OBJECT_LINES][OBJECT_LINE_BYTES];
};

/* Copies up to `bytes` bytes from address `from`. Returns how many it copied. The copy ends before
 * the first page that cannot be read. errno is preserved. */
size_t object_memory_copy(struct object_memory *memory, void *to, uint64_t from, size_t bytes);

void object_memory_forget(struct object_memory *memory);

#endif
