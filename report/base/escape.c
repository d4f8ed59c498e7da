/* SPDX-License-Identifier: MIT */
#include "report/base/escape.h"
#include <stdio.h>
#include <string.h>

struct code_point_range {
	uint32_t first, last;
};

/* Code points of no column: combining marks, joiners, variation selectors. Sorted. */
static const struct code_point_range narrow[] = {
	{ 0x0300, 0x036f },
	{ 0x0483, 0x0489 },
	{ 0x0591, 0x05bd },
	{ 0x0610, 0x061a },
	{ 0x064b, 0x065f },
	{ 0x0900, 0x0902 },
	{ 0x093c, 0x093c },
	{ 0x0941, 0x0948 },
	{ 0x0e31, 0x0e31 },
	{ 0x0e34, 0x0e3a },
	{ 0x0e47, 0x0e4e },
	{ 0x1ab0, 0x1aff },
	{ 0x1dc0, 0x1dff },
	{ 0x20d0, 0x20ff },
	{ 0x302a, 0x302d },
	{ 0x3099, 0x309a },
	{ 0xfe00, 0xfe0f },
	{ 0xfe20, 0xfe2f },
	{ 0x1f3fb, 0x1f3ff },
	{ 0xe0100, 0xe01ef },
};

/* Code points of two columns: East Asian wide and full-width characters, and pictographs.
 * Sorted. */
static const struct code_point_range two_columns[] = {
	{ 0x1100, 0x115f },
	{ 0x231a, 0x231b },
	{ 0x2329, 0x232a },
	{ 0x23e9, 0x23ec },
	{ 0x23f0, 0x23f0 },
	{ 0x23f3, 0x23f3 },
	{ 0x25fd, 0x25fe },
	{ 0x2614, 0x2615 },
	{ 0x2648, 0x2653 },
	{ 0x267f, 0x267f },
	{ 0x2693, 0x2693 },
	{ 0x26a1, 0x26a1 },
	{ 0x26aa, 0x26ab },
	{ 0x26bd, 0x26be },
	{ 0x26c4, 0x26c5 },
	{ 0x26ce, 0x26ce },
	{ 0x26d4, 0x26d4 },
	{ 0x26ea, 0x26ea },
	{ 0x26f2, 0x26f3 },
	{ 0x26f5, 0x26f5 },
	{ 0x26fa, 0x26fa },
	{ 0x26fd, 0x26fd },
	{ 0x2705, 0x2705 },
	{ 0x270a, 0x270b },
	{ 0x2728, 0x2728 },
	{ 0x274c, 0x274c },
	{ 0x274e, 0x274e },
	{ 0x2753, 0x2755 },
	{ 0x2757, 0x2757 },
	{ 0x2795, 0x2797 },
	{ 0x27b0, 0x27b0 },
	{ 0x27bf, 0x27bf },
	{ 0x2b1b, 0x2b1c },
	{ 0x2b50, 0x2b50 },
	{ 0x2b55, 0x2b55 },
	{ 0x2e80, 0x303e },
	{ 0x3041, 0x33ff },
	{ 0x3400, 0x4dbf },
	{ 0x4e00, 0xa4cf },
	{ 0xa960, 0xa97c },
	{ 0xac00, 0xd7a3 },
	{ 0xf900, 0xfaff },
	{ 0xfe10, 0xfe19 },
	{ 0xfe30, 0xfe6f },
	{ 0xff00, 0xff60 },
	{ 0xffe0, 0xffe6 },
	{ 0x16fe0, 0x18cff },
	{ 0x1b000, 0x1b2ff },
	{ 0x1f004, 0x1f004 },
	{ 0x1f0cf, 0x1f0cf },
	{ 0x1f18e, 0x1f18e },
	{ 0x1f191, 0x1f19a },
	{ 0x1f200, 0x1f320 },
	{ 0x1f32d, 0x1f335 },
	{ 0x1f337, 0x1f37c },
	{ 0x1f37e, 0x1f393 },
	{ 0x1f3a0, 0x1f3ca },
	{ 0x1f3cf, 0x1f3d3 },
	{ 0x1f3e0, 0x1f3f0 },
	{ 0x1f3f4, 0x1f3f4 },
	{ 0x1f3f8, 0x1f43e },
	{ 0x1f440, 0x1f440 },
	{ 0x1f442, 0x1f4fc },
	{ 0x1f4ff, 0x1f53d },
	{ 0x1f54b, 0x1f54e },
	{ 0x1f550, 0x1f567 },
	{ 0x1f57a, 0x1f57a },
	{ 0x1f595, 0x1f596 },
	{ 0x1f5a4, 0x1f5a4 },
	{ 0x1f5fb, 0x1f64f },
	{ 0x1f680, 0x1f6c5 },
	{ 0x1f6cc, 0x1f6cc },
	{ 0x1f6d0, 0x1f6d2 },
	{ 0x1f6d5, 0x1f6d7 },
	{ 0x1f6dc, 0x1f6df },
	{ 0x1f6eb, 0x1f6ec },
	{ 0x1f6f4, 0x1f6fc },
	{ 0x1f7e0, 0x1f7eb },
	{ 0x1f90c, 0x1f93a },
	{ 0x1f93c, 0x1f945 },
	{ 0x1f947, 0x1f9ff },
	{ 0x1fa70, 0x1faff },
	{ 0x20000, 0x3fffd },
};

/* Code points that would control the terminal, change the text direction, or be invisible.
 * Sorted. */
static const struct code_point_range hidden[] = {
	{ 0x0000, 0x001f },
	{ 0x007f, 0x009f },
	{ 0x00ad, 0x00ad },
	{ 0x061c, 0x061c },
	{ 0x115f, 0x1160 },
	{ 0x17b4, 0x17b5 },
	{ 0x180b, 0x180f },
	{ 0x200b, 0x200f },
	{ 0x2028, 0x202e },
	{ 0x2060, 0x206f },
	{ 0x3164, 0x3164 },
	{ 0xd800, 0xf8ff },
	{ 0xfeff, 0xfeff },
	{ 0xffa0, 0xffa0 },
	{ 0xfff0, 0xfffb },
	{ 0xfffe, 0xffff },
	{ 0x1bca0, 0x1bca3 },
	{ 0x1d173, 0x1d17a },
	{ 0xe0000, 0xe00ff },
	{ 0xe01f0, 0x10ffff },
};

static bool is_in_ranges(const struct code_point_range *spans, size_t count, uint32_t point)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (point > spans[middle].last)
			low = middle + 1;
		else if (point < spans[middle].first)
			high = middle;
		else
			return true;
	}
	return false;
}

#define WITHIN(spans, point) is_in_ranges(spans, sizeof(spans) / sizeof(spans)[0], point)

bool is_hidden_code_point(uint32_t point)
{
	return WITHIN(hidden, point);
}

static size_t sequence_length(unsigned char first)
{
	return first < 0x80                    ? 1
	       : first >= 0xc2 && first < 0xe0 ? 2
	       : first >= 0xe0 && first < 0xf0 ? 3
	       : first >= 0xf0 && first < 0xf5 ? 4
					       : 0;
}

/* Surrogates are in no form. */
static bool is_shortest_form(uint32_t point, size_t bytes)
{
	return bytes == 2 ||
	       (bytes == 3 && point >= 0x800 && (point < 0xd800 || point >= 0xe000)) ||
	       (bytes == 4 && point >= 0x10000 && point <= 0x10ffff);
}

uint32_t utf8_decode(const char *text, size_t bytes, size_t *length)
{
	const unsigned char *p = (const unsigned char *)text;
	const size_t wanted = sequence_length(p[0]);
	uint32_t point;

	*length = 1;
	if (wanted == 1)
		return p[0];
	if (wanted == 0 || wanted > bytes)
		return UINT32_MAX;
	point = p[0] & (0xffu >> (wanted + 1));
	for (size_t i = 1; i < wanted; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return UINT32_MAX;
		point = point << 6 | (p[i] & 0x3f);
	}
	if (!is_shortest_form(point, wanted))
		return UINT32_MAX;
	*length = wanted;
	return point;
}

/* Writes the first character of `text` escaped, and returns the bytes written. `*taken`: the
 * bytes read. */
static size_t escape_character(
	char out[16], const char *text, size_t bytes, bool ascii, size_t *taken)
{
	const uint32_t point = utf8_decode(text, bytes, taken);

	if (point == UINT32_MAX || point < 0x20 || point == 0x7f)
		return (size_t)snprintf(out, 16, "\\x%02x", (unsigned char)text[0]);
	if (is_hidden_code_point(point) || (ascii && point >= 0x80))
		return (size_t)snprintf(out, 16, point > 0xffff ? "\\U%08x" : "\\u%04x", point);
	memcpy(out, text, *taken);
	return *taken;
}

size_t escape_text(char *out, size_t room, const char *text, size_t bytes, bool ascii)
{
	size_t used = 0, taken;
	char shown[16];

	for (size_t at = 0; at < bytes; at += taken) {
		const size_t length = escape_character(shown, text + at, bytes - at, ascii, &taken);

		if (used + length + 1 > room)
			break;
		memcpy(out + used, shown, length);
		used += length;
	}
	if (room)
		out[used] = '\0';
	return used;
}

static size_t code_point_columns(uint32_t point)
{
	return WITHIN(narrow, point) ? 0 : WITHIN(two_columns, point) ? 2 : 1;
}

size_t escaped_width(const char *text, size_t bytes)
{
	size_t width = 0, length;

	for (size_t at = 0; at < bytes; at += length)
		width += code_point_columns(utf8_decode(text + at, bytes - at, &length));
	return width;
}

/* Returns how many bytes at the front take at most `columns`. */
static size_t head_bytes_that_fit(const char *text, size_t bytes, size_t columns)
{
	size_t at = 0, length, width = 0;

	while (at < bytes) {
		width += code_point_columns(utf8_decode(text + at, bytes - at, &length));
		if (width > columns)
			break;
		at += length;
	}
	return at;
}

/* Returns the offset at which the last `columns` columns begin. */
static size_t tail_bytes_that_fit(const char *text, size_t bytes, size_t columns)
{
	size_t width = escaped_width(text, bytes), at = 0, length;

	while (at < bytes && width > columns) {
		width -= code_point_columns(utf8_decode(text + at, bytes - at, &length));
		at += length;
	}
	while (at < bytes && code_point_columns(utf8_decode(text + at, bytes - at, &length)) == 0)
		at += length; /* a combining mark without its letter */
	return at;
}

static size_t previous_character(const char *text, size_t at)
{
	for (at--; at && (text[at] & 0xc0) == 0x80; at--)
		;
	return at;
}

static size_t next_character(const char *text, size_t at)
{
	for (at++; (text[at] & 0xc0) == 0x80; at++)
		;
	return at;
}

/* `share`: halves of the columns that the beginning keeps. */
static size_t shorten_escaped(char *text, size_t room, size_t columns, bool ascii, size_t share)
{
	const char *dots = ascii ? "..." : "\xe2\x80\xa6";
	const size_t dot_bytes = 3, dot_columns = ascii ? 3 : 1, bytes = strlen(text);
	size_t head, tail, kept;

	if (escaped_width(text, bytes) <= columns)
		return bytes;
	if (columns <= dot_columns) {
		head = head_bytes_that_fit(text, bytes, columns);
		text[head] = '\0';
		return head;
	}
	kept = columns - dot_columns;
	head = head_bytes_that_fit(text, bytes, kept * share / 2);
	tail = tail_bytes_that_fit(text, bytes, kept - kept * share / 2);
	/* Characters of no column, or of fewer bytes than the dots, can leave no room for the
	 * dots. */
	while (head && head + dot_bytes + (bytes - tail) + 1 > room)
		head = previous_character(text, head);
	while (tail < bytes && head + dot_bytes + (bytes - tail) + 1 > room)
		tail = next_character(text, tail);
	memmove(text + head + dot_bytes, text + tail, bytes - tail + 1);
	memcpy(text + head, dots, dot_bytes);
	return head + dot_bytes + bytes - tail;
}

size_t escaped_shorten(char *text, size_t room, size_t columns, bool ascii)
{
	return shorten_escaped(text, room, columns, ascii, 1);
}

size_t escaped_shorten_path(char *text, size_t room, size_t columns, bool ascii)
{
	return shorten_escaped(text, room, columns, ascii, 0);
}
