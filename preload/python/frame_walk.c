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
	return true;
}
