/* SPDX-License-Identifier: MIT */
#include "preload/python/line_table.h"

#define NO_LINE_DELTA (-128)
#define UNIT 2 /* bytes of a code unit */

/* The codes of LOCATIONS that need a name. */
enum location_code { CODE_ONE_LINE = 10, CODE_NO_COLUMNS = 13, CODE_LONG = 14, CODE_NONE = 15 };

struct line_cursor {
	const uint8_t *at, *end;
};

static uint32_t line_or_none(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t lnotab_line(const uint8_t *table, size_t bytes, uint32_t first, int64_t offset)
{
	int64_t line = first, at = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		at += table[i];
		if (at > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return line_or_none(line);
}

static uint32_t range_line(const uint8_t *table, size_t bytes, uint32_t first, int64_t offset)
{
	int64_t line = first, end = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		const int8_t delta = (int8_t)table[i + 1];

		end += table[i];
		if (delta != NO_LINE_DELTA)
			line += delta;
		if (offset < end)
			return delta == NO_LINE_DELTA ? 0 : line_or_none(line);
	}
	return 0;
}

static uint32_t read_varint(struct line_cursor *cursor)
{
	uint32_t value = 0;

	for (unsigned shift = 0; cursor->at < cursor->end; shift += 6) {
		const uint8_t byte = *cursor->at++;

		if (shift < 32)
			value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int64_t read_signed_varint(struct line_cursor *cursor)
{
	const uint32_t value = read_varint(cursor);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* Skips what follows the first byte of an entry. Returns by how many lines the entry moves the
 * line. */
static int64_t skip_entry(struct line_cursor *cursor, unsigned code)
{
	int64_t lines = 0;
	ptrdiff_t bytes = code < CODE_ONE_LINE ? 1 : code < CODE_NO_COLUMNS ? 2 : 0;

	if (code >= CODE_ONE_LINE && code < CODE_NO_COLUMNS)
		lines = (int64_t)code - CODE_ONE_LINE;
	if (code == CODE_NO_COLUMNS || code == CODE_LONG)
		lines = read_signed_varint(cursor);
	for (int i = 0; code == CODE_LONG && i < 3; i++)
		read_varint(cursor);
	cursor->at = cursor->end - cursor->at > bytes ? cursor->at + bytes : cursor->end;
	return lines;
}

static uint32_t location_line(const uint8_t *table, size_t bytes, uint32_t first, int64_t offset)
{
	struct line_cursor cursor = { table, table + bytes };
	int64_t line = first, end = 0;

	while (cursor.at < cursor.end) {
		const uint8_t head = *cursor.at++;
		const unsigned code = head >> 3 & 15;

		line += skip_entry(&cursor, code);
		end += UNIT * ((head & 7) + 1);
		if (offset < end)
			return code == CODE_NONE ? 0 : line_or_none(line);
	}
	return 0;
}

uint32_t python_line(enum python_line_format format, const uint8_t *table, size_t bytes,
	uint32_t first, int64_t offset)
{
	if (offset < 0)
		return first;
	switch (format) {
	case PYTHON_LINES_LNOTAB:
		return lnotab_line(table, bytes, first, offset);
	case PYTHON_LINES_RANGES:
		return range_line(table, bytes, first, offset);
	default:
		return location_line(table, bytes, first, offset);
	}
}
