/* SPDX-License-Identifier: MIT
 * Reads numbers of DWARF from bytes that may be damaged. A read past the end sets `bad` and returns
 * 0; so a caller may read several numbers and test `bad` once.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_BYTE_CURSOR_H
#define PPERF_COLLECTOR_SAMPLE_BYTE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct byte_cursor {
	const uint8_t *at, *end;
	const uint8_t *start;
	uint64_t start_address; /* what `start` is a copy of */
	bool bad;
};

static inline struct byte_cursor cursor_of(const uint8_t *bytes, size_t count, uint64_t address)
{
	return (struct byte_cursor){ bytes, bytes + count, bytes, address, false };
}

/* Returns the address of the next byte in the memory that the bytes were copied from. */
static inline uint64_t cursor_address(const struct byte_cursor *c)
{
	return c->start_address + (uint64_t)(c->at - c->start);
}

/* Skips `bytes` and returns a cursor over them. */
static inline struct byte_cursor cursor_take(struct byte_cursor *c, uint64_t bytes)
{
	struct byte_cursor taken = *c;

	if (c->bad || bytes > (uint64_t)(c->end - c->at)) {
		c->bad = taken.bad = true;
		taken.end = taken.at;
		return taken;
	}
	c->at += bytes;
	taken.end = c->at;
	return taken;
}

/* Returns a little-endian number of 1, 2, 4 or 8 bytes. */
static inline uint64_t cursor_fixed(struct byte_cursor *c, size_t bytes)
{
	const struct byte_cursor taken = cursor_take(c, bytes);
	uint64_t value = 0;

	if (!taken.bad)
		memcpy(&value, taken.at, bytes);
	return value;
}

/* Returns a number of 7 bits a byte, the lowest first. */
static inline uint64_t cursor_uleb(struct byte_cursor *c)
{
	uint64_t value = 0;
	uint8_t byte;
	unsigned shift = 0;

	do {
		byte = (uint8_t)cursor_fixed(c, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	return value;
}

/* The same with a sign. */
static inline int64_t cursor_sleb(struct byte_cursor *c)
{
	uint64_t value = 0;
	uint8_t byte;
	unsigned shift = 0;

	do {
		byte = (uint8_t)cursor_fixed(c, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	if (shift < 64 && byte & 64)
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

/* Returns a string that ends within the bytes, and skips it. */
static inline const char *cursor_string(struct byte_cursor *c)
{
	const uint8_t *end = c->bad ? NULL : memchr(c->at, 0, (size_t)(c->end - c->at));
	const char *string = (const char *)c->at;

	if (!end) {
		c->bad = true;
		return "";
	}
	c->at = end + 1;
	return string;
}

#endif
