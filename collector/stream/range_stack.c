/* SPDX-License-Identifier: MIT */
#include "collector/stream/range_stack.h"

#include <string.h>

uint32_t range_level(const struct stream *s, uint32_t domain)
{
	for (const struct range_frame *frame = s->top; frame > s->frames; frame--)
		if (frame->domain == domain || frame->domain == (domain ^ FRAME_UNRECORDED))
			return frame->level + 1;
	return 0;
}

void range_remove_frame(struct stream *s, struct range_frame *frame)
{
	memmove(frame, frame + 1, (size_t)(s->top - frame) * sizeof *frame);
	stream_set_top(s, s->top - 1);
}
