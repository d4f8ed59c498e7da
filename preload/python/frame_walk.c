/* SPDX-License-Identifier: MIT */
#include "preload/python/frame_walk.h"

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
	uint8_t owner = 0;

	if (!safe_read_pointer(&frame->previous, address + l->frame_previous) ||
		!safe_read_pointer(&frame->code, address + l->frame_code))
		return false;
	if (l->instruction_is_index) {
		if (!safe_read(&index, address + l->frame_instruction, sizeof index))
			return false;
		frame->offset = (int64_t)index * l->index_scale;
		return true;
	}
	if (!safe_read(&owner, address + l->frame_owner, sizeof owner) ||
		!safe_read_pointer(&instruction, address + l->frame_instruction))
		return false;
	/* 3.14 marks references in the lowest two bits. */
	frame->code = owner < l->owner_end ? frame->code & ~(uintptr_t)3 : 0;
	frame->offset = (int64_t)(instruction - (frame->code + l->code_bytes));
	if (frame->code && is_inserted_code(l, frame->code))
		frame->code = 0;
	return true;
}
