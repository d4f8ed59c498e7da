/* SPDX-License-Identifier: MIT */
#include "preload/python/str.h"

#include "collector/trace_format.h"
#include "preload/python/safe_read.h"

#define LENGTH_MAX (UINT64_C(1) << 32)
#define ESCAPED 0xdc00u /* U+DC80 to U+DCFF represent the bytes 0x80 to 0xff */
#define REPLACEMENT 0xfffdu

bool python_str_state(uint32_t state, unsigned *width, bool *ascii)
{
	*width = state >> 2 & 7;
	*ascii = state >> 6 & 1;
	return (state >> 5 & 1) && (*width == 1 || *width == 2 || *width == 4);
}

uintptr_t python_str_data(const struct python_layout *layout, uintptr_t text, uint64_t *length,
	unsigned *width, bool *ascii)
{
	uint32_t state;

	if (!safe_read(length, text + PYTHON_STR_LENGTH, sizeof *length) ||
		!safe_read(&state, text + PYTHON_STR_STATE, sizeof state))
		return 0;
	if (!python_str_state(state, width, ascii) || *length > LENGTH_MAX)
		return 0;
	return text + (*ascii ? layout->str_ascii : layout->str_other);
}

static uint32_t read_character(const void *data, unsigned width, uint64_t at)
{
	const uint8_t *one = data;
	uint16_t two;
	uint32_t four;

	if (width == 1)
		return one[at];
	if (width == 2) {
		memcpy(&two, one + 2 * at, sizeof two);
		return two;
	}
	memcpy(&four, one + 4 * at, sizeof four);
	return four;
}

/* Writes a character as UTF-8. Returns its length, 4 bytes at most. */
static size_t put_character(char *to, uint32_t c)
{
	if (c < 0x80 || (c >= ESCAPED + 0x80 && c <= ESCAPED + 0xff)) {
		to[0] = (char)(uint8_t)(c < 0x80 ? c : c - ESCAPED);
		return 1;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = REPLACEMENT;
	if (c < 0x800) {
		to[0] = (char)(uint8_t)(0xc0 | c >> 6);
		to[1] = (char)(uint8_t)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(uint8_t)(0xe0 | c >> 12);
		to[1] = (char)(uint8_t)(0x80 | (c >> 6 & 63));
		to[2] = (char)(uint8_t)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(uint8_t)(0xf0 | c >> 18);
	to[1] = (char)(uint8_t)(0x80 | (c >> 12 & 63));
	to[2] = (char)(uint8_t)(0x80 | (c >> 6 & 63));
	to[3] = (char)(uint8_t)(0x80 | (c & 63));
	return 4;
}

size_t python_str_encode(
	char room[PYTHON_STR_ROOM], const void *data, unsigned width, uint64_t length)
{
	const size_t cut = sizeof TRACE_TEXT_CUT - 1;
	size_t used = 0;

	for (uint64_t i = 0; i < length; i++) {
		if (used + 4 + cut > PYTHON_STR_ROOM) {
			memcpy(room + used, TRACE_TEXT_CUT, cut);
			return used + cut;
		}
		used += put_character(room + used, read_character(data, width, i));
	}
	return used;
}

const char *python_str(const struct python_layout *layout, uintptr_t text,
	char room[PYTHON_STR_ROOM], size_t *bytes)
{
	uint64_t length;
	unsigned width;
	bool ascii;
	uintptr_t from = python_str_data(layout, text, &length, &width, &ascii);
	const char *data = from ? safe_read_bytes(from, (size_t)length * width) : NULL;

	if (!data)
		return NULL;
	if (!ascii || !safe_read_trusted) {
		*bytes = python_str_encode(room, data, width, length);
		return room;
	}
	*bytes = (size_t)length;
	return data;
}
