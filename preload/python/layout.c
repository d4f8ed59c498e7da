/* SPDX-License-Identifier: MIT */
#include "preload/python/layout.h"

#include "preload/python/safe_read.h"

#include <stdio.h>
#include <string.h>

#define FIRST_MINOR 9
#define LAST_MINOR 15
#define FIELD_MAX 4096u /* all offsets are smaller */

static const struct python_layout layouts[LAST_MINOR - FIRST_MINOR + 1] = {
	[9 - FIRST_MINOR] = { .thread_frame = 24,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instruction = 104,
		.instruction_is_index = true,
		.index_scale = 1,
		.code_file = 104,
		.code_name = 112,
		.code_line = 40,
		.code_lines = 120,
		.str_ascii = 48,
		.str_other = 72,
		.lines = PYTHON_LINES_LNOTAB },
	[10 - FIRST_MINOR] = { .thread_frame = 24,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instruction = 96,
		.instruction_is_index = true,
		.index_scale = 2,
		.code_file = 104,
		.code_name = 112,
		.code_line = 40,
		.code_lines = 120,
		.str_ascii = 48,
		.str_other = 72,
		.lines = PYTHON_LINES_RANGES },
	[11 - FIRST_MINOR] = { .thread_frame = 56,
		.has_cframe = true,
		.cframe_frame = 8,
		.frame_previous = 48,
		.frame_code = 32,
		.frame_instruction = 56,
		.frame_owner = 69,
		.owner_end = 3,
		.code_file = 112,
		.code_name = 128,
		.name_is_qualified = true,
		.code_line = 72,
		.code_lines = 136,
		.code_bytes = 184,
		.str_ascii = 48,
		.str_other = 72,
		.lines = PYTHON_LINES_LOCATIONS },
	[12 - FIRST_MINOR] = { .thread_frame = 56,
		.has_cframe = true,
		.cframe_frame = 0,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instruction = 56,
		.frame_owner = 70,
		.owner_end = 3,
		.code_file = 112,
		.code_name = 128,
		.name_is_qualified = true,
		.code_line = 68,
		.code_lines = 136,
		.code_version = 92,
		.code_bytes = 192,
		.str_ascii = 40,
		.str_other = 56,
		.lines = PYTHON_LINES_LOCATIONS },
	[13 - FIRST_MINOR] = { .thread_frame = 72,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instruction = 56,
		.frame_owner = 70,
		.owner_end = 3,
		.code_file = 112,
		.code_name = 128,
		.name_is_qualified = true,
		.code_line = 68,
		.code_lines = 136,
		.code_version = 92,
		.code_bytes = 200,
		.str_ascii = 40,
		.str_other = 56,
		.has_offsets = true,
		.lines = PYTHON_LINES_LOCATIONS },
	[14 - FIRST_MINOR] = { .thread_frame = 72,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instruction = 56,
		.frame_owner = 74,
		.owner_end = 3,
		.code_file = 112,
		.code_name = 128,
		.name_is_qualified = true,
		.code_line = 68,
		.code_lines = 136,
		.code_version = 92,
		.code_bytes = 208,
		.str_ascii = 40,
		.str_other = 56,
		.has_offsets = true,
		.lines = PYTHON_LINES_LOCATIONS },
	[15 - FIRST_MINOR] = { .thread_frame = 72,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instruction = 56,
		.frame_owner = 74,
		.owner_end = 3,
		.code_file = 112,
		.code_name = 128,
		.name_is_qualified = true,
		.code_line = 68,
		.code_lines = 136,
		.code_version = 92,
		.code_bytes = 208,
		.str_ascii = 40,
		.str_other = 56,
		.has_offsets = true,
		.lines = PYTHON_LINES_LOCATIONS },
};

/* Which 8-byte word at the beginning of _PyRuntime holds which offset. Word 0 is "xdebugpy", word 1
 * the version, word 2 whether the build is free-threaded. Groups of offsets follow, each begun by
 * the size of the struct that it describes. */
struct offset_words {
	uint8_t thread_frame, frame_previous, frame_code, frame_instruction, frame_owner, code_file,
		code_name, code_lines, code_line, code_bytes;
};
static const struct offset_words words_of[LAST_MINOR - FIRST_MINOR + 1] = {
	[13 - FIRST_MINOR] = { 23, 29, 30, 31, 33, 35, 37, 38, 39, 43 },
	[14 - FIRST_MINOR] = { 26, 32, 33, 34, 36, 40, 42, 43, 44, 48 },
	[15 - FIRST_MINOR] = { 26, 40, 41, 42, 44, 48, 50, 51, 52, 56 },
};
#define WORDS_MAX 57
#define COOKIE "xdebugpy"

const char *python_trouble_text(enum python_trouble trouble)
{
	static const char *const texts[] = {
#define X(name, text) text,
		PYTHON_TROUBLES(X)
#undef X
	};

	return texts[trouble];
}

/* Replaces the offsets in `layout` by those that the interpreter publishes. */
static enum python_trouble read_offsets(struct python_layout *layout, const struct offset_words *at,
	unsigned minor, const void *runtime)
{
	uint64_t words[WORDS_MAX];
	const struct {
		uint16_t *field;
		uint8_t word;
	} fields[] = {
		{ &layout->thread_frame, at->thread_frame },
		{ &layout->frame_previous, at->frame_previous },
		{ &layout->frame_code, at->frame_code },
		{ &layout->frame_instruction, at->frame_instruction },
		{ &layout->frame_owner, at->frame_owner },
		{ &layout->code_file, at->code_file },
		{ &layout->code_name, at->code_name },
		{ &layout->code_lines, at->code_lines },
		{ &layout->code_line, at->code_line },
		{ &layout->code_bytes, at->code_bytes },
	};

	if (!runtime || !safe_read(words, (uintptr_t)runtime, sizeof words) ||
		memcmp(words, COOKIE, 8) != 0)
		return PYTHON_TROUBLE_OTHER_OFFSETS;
	if (words[1] >> 16 != (3u << 8 | minor))
		return PYTHON_TROUBLE_OTHER_OFFSETS;
	if (words[2])
		return PYTHON_TROUBLE_FREE_THREADED;
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		if (words[fields[i].word] >= FIELD_MAX)
			return PYTHON_TROUBLE_OTHER_OFFSETS;
		*fields[i].field = (uint16_t)words[fields[i].word];
	}
	return PYTHON_TROUBLE_NONE;
}

enum python_trouble python_layout_of(
	struct python_layout *layout, const char *version, const void *runtime)
{
	unsigned major, minor;

	if (sizeof(void *) != 8 || sscanf(version, "%u.%u", &major, &minor) != 2 || major != 3 ||
		minor < FIRST_MINOR || minor > LAST_MINOR)
		return PYTHON_TROUBLE_UNKNOWN_VERSION;
	*layout = layouts[minor - FIRST_MINOR];
	return layout->has_offsets
		       ? read_offsets(layout, &words_of[minor - FIRST_MINOR], minor, runtime)
		       : PYTHON_TROUBLE_NONE;
}
