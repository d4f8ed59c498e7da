/* SPDX-License-Identifier: MIT */
#include "preload/python/frame_walk.h"

#include "preload/python/python.h"
#include "preload/python/safe_read.h"

uintptr_t python_frame_first(const struct python_layout *l, uintptr_t thread)
{
	uintptr_t frame;

	if (!safe_read_pointer(&frame, thread + l->thread_frame))
		return 0;
	if (l->has_cframe && !safe_read_pointer(&frame, frame + l->cframe_frame))
		return 0;
	return frame;
}

/* Whether code is the interpreter's own. From 3.12 on it inserts a frame of such code below some
 * calls of __init__, which Python does not show. The code has no file: the same str is its file and
 * its name. */
static bool is_inserted_code(const struct python_layout *l, uintptr_t code)
{
	uintptr_t file, name;

	return safe_read_pointer(&file, code + l->code_file) &&
	       safe_read_pointer(&name, code + l->code_name) && file == name;
}

bool python_frame_read(const struct python_layout *l, uintptr_t address, struct python_frame *frame)
{
	uintptr_t instruction;
	int32_t index;
	uint8_t entry_owner[2]; /* only 3.11 has an entry byte */
	bool is_python;

	if (!safe_read_pointer(&frame->previous, address + l->frame_previous) ||
		!safe_read_pointer(&frame->code, address + l->frame_code))
		return false;
	if (l->instruction_is_index) {
		if (!safe_read(&index, address + l->frame_instruction, sizeof index))
			return false;
		frame->offset = (int64_t)index * l->index_scale;
		frame->is_entry = true;
		return true;
	}
	if (!safe_read(entry_owner, address + l->frame_owner - 1, sizeof entry_owner) ||
		!safe_read_pointer(&instruction, address + l->frame_instruction))
		return false;
	/* 3.14 marks references in the lowest two bits. */
	is_python = entry_owner[1] < l->owner_end;
	frame->code = is_python ? frame->code & ~(uintptr_t)3 : 0;
	frame->is_entry = !is_python || (python.minor == 11 && entry_owner[0]);
	frame->offset = (int64_t)(instruction - (frame->code + l->code_bytes));
	if (frame->code && is_inserted_code(l, frame->code))
		frame->code = 0;
	return true;
}
