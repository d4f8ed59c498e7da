/* SPDX-License-Identifier: MIT
 * python_text.c: see python_text.h.
 */
#include "preload/python/str.h"

#include "collector/trace_format.h"
#include "preload/python/safe_read.h"

#define LENGTH_MOST (UINT64_C(1) << 32)
#define ESCAPED 0xdc00u    /* U+DC80 to U+DCFF stand for the bytes 0x80 to 0xff */
#define REPLACEMENT 0xfffdu

uintptr_t python_text_data(const struct python_layout *layout, uintptr_t text, uint64_t *length, unsigned *width, bool *ascii)
{
	uint32_t state;
	bool compact;

	if (!peek(length, text + PYTHON_TEXT_LENGTH, sizeof *length) || !peek(&state, text + PYTHON_TEXT_STATE, sizeof state))
		return 0;
	*width = state >> 2 & 7;
	compact = state >> 5 & 1;
	*ascii = state >> 6 & 1;
	if (!compact || *length > LENGTH_MOST || (*width != 1 && *width != 2 && *width != 4))
		return 0;
	return text + (*ascii ? layout->text_ascii : layout->text_other);
}

static uint32_t character(const void *data, unsigned width, uint64_t at)
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

/* At most 4 bytes. */
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

static size_t encode(char room[PYTHON_TEXT_ROOM], const void *data, unsigned width, uint64_t length)
{
	const size_t cut = sizeof TRACE_TEXT_CUT - 1;
	size_t used = 0;

	for (uint64_t i = 0; i < length; i++) {
		if (used + 4 + cut > PYTHON_TEXT_ROOM) {
			memcpy(room + used, TRACE_TEXT_CUT, cut);
			return used + cut;
		}
		used += put_character(room + used, character(data, width, i));
	}
	return used;
}

const char *python_text(const struct python_layout *layout, uintptr_t text, char room[PYTHON_TEXT_ROOM], size_t *bytes)
{
	uint64_t length;
	unsigned width;
	bool ascii;
	uintptr_t from = python_text_data(layout, text, &length, &width, &ascii);
	const char *data = from ? peek_at(from, (size_t)length * width) : NULL;

	if (!data)
		return NULL;
	if (!ascii || !peek_trusted) {
		*bytes = encode(room, data, width, length);
		return room;
	}
	*bytes = (size_t)length;
	return data;
}
