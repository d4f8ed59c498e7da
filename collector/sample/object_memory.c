/* SPDX-License-Identifier: MIT */
#include "collector/sample/object_memory.h"

#include "collector/sample/process_memory.h"

#include <string.h>

/* Returns the bytes of a line, or NULL if they cannot be read. `number`: its address /
 * OBJECT_LINE_BYTES. */
static const uint8_t *line_of(struct object_memory *memory, uint64_t number)
{
	const size_t at = (size_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
			  (OBJECT_LINES - 1);

	if (memory->line[at] == number)
		return memory->bytes[at];
	memory->line[at] = 0;
	if (process_memory_copy(memory->bytes[at], number * OBJECT_LINE_BYTES, OBJECT_LINE_BYTES) !=
		OBJECT_LINE_BYTES)
		return NULL;
	memory->line[at] = number;
	return memory->bytes[at];
}

size_t object_memory_copy(struct object_memory *memory, void *to, uint64_t from, size_t bytes)
{
	size_t copied = 0;

	while (copied < bytes && from / OBJECT_LINE_BYTES) {
		const size_t offset = from % OBJECT_LINE_BYTES, left = bytes - copied;
		const size_t part = left < OBJECT_LINE_BYTES - offset ? left
								      : OBJECT_LINE_BYTES - offset;
		const uint8_t *line = line_of(memory, from / OBJECT_LINE_BYTES);

		if (!line)
			break;
		memcpy((uint8_t *)to + copied, line + offset, part);
		copied += part;
		from += part;
	}
	return copied;
}

void object_memory_forget(struct object_memory *memory)
{
	memset(memory->line, 0, sizeof memory->line);
}
