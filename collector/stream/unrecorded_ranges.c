/* SPDX-License-Identifier: MIT
 * quiet_ranges.c: see quiet_ranges.h. In the frame of such a range `begin`, which no record will tell, is where its text lies as long as its node is not
 * known, and 0 afterwards; `node` is then that of what is known around it. Texts of NVTX lie in a stack of their own.
 */
#include "collector/stream/unrecorded_ranges.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"
#include "collector/stream/range_stack.h"
#include "collector/stream/node_cache.h"

#include <string.h>

#define TEXTS_BYTES (64u << 10)

static bool is_vague(const struct frame *frame)
{
	return !frame_is_recorded(frame) && frame->domain != FRAME_COUNTED && frame->begin;
}

static const char *text_of(const struct frame *frame)
{
	return (const char *)(uintptr_t)frame->begin;
}

static uint32_t find_node(struct stream *s, const struct frame *frame)
{
	const uint32_t domain = frame->domain & ~FRAME_QUIET;

	if (frame->domain != FRAME_PASSED)
		return domain < CACHED_DOMAINS ? range_child_node(s, domain, text_of(frame)) : range_find_child(s, domain, TRACE_NODE_RANGE, text_of(frame));
	if (frame->level)
		return range_place_node(s, text_of(frame), (enum trace_node_kind)frame->reserved, 0, frame->level);
	return range_child_node(s, CACHED_SORT(frame->reserved), text_of(frame));
}

void stream_find_path(struct stream *s)
{
	for (struct frame *frame = s->frames + 1; frame <= s->top && s->vague; frame++) {
		if (!is_vague(frame))
			continue;
		s->node = frame[-1].node;
		frame->node = find_node(s, frame);
		frame->node = frame->node ? frame->node : s->node;
		frame->begin = 0;
		s->vague--;
	}
	s->vague = 0;
	s->node = s->top->node;
}

/* NULL: no room. */
static char *keep_text(struct stream *s, const char *text)
{
	const size_t bytes = strlen(text) + 1;
	struct quiet quiet;
	char *kept;

	if (!s->quiet_texts) {
		quiet_begin(&quiet);
		s->quiet_texts = fork_memory(TEXTS_BYTES);
		quiet_end(&quiet);
	}
	if (!s->quiet_texts || bytes > TEXTS_BYTES - s->quiet_used)
		return NULL;
	kept = memcpy(s->quiet_texts + s->quiet_used, text, bytes);
	s->quiet_used += (uint32_t)bytes;
	return kept;
}

static void open_frame(struct stream *s, const char *text)
{
	struct frame *frame = s->top + 1;

	frame->begin = (uintptr_t)text;
	frame->node = s->node;
	s->vague++;
	stream_set_top(s, frame);
}

int range_push_quietly(struct stream *s, uint32_t domain, const char *text)
{
	const uint64_t began = stream_skip_begins(s, TRACE_SKIPPED_RANGES);
	const uint32_t used = s->quiet_used;
	const char *kept = keep_text(s, text);
	struct frame *frame = s->top + 1;
	const int level = range_open_frame(s, s->node, domain | FRAME_QUIET);

	stream_set_top(s, frame - 1);
	open_frame(s, kept ? kept : text);
	frame->reserved = used;
	if (!kept)
		stream_find_path(s);
	stream_skip_ends(s, TRACE_SKIPPED_RANGES, began);
	return level;
}

void range_open_quietly(struct stream *s, const void *owner, const char *text, enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	const uint64_t began = stream_skip_begins(s, TRACE_SKIPPED_RANGES);
	struct frame *frame = s->top + 1;

	*frame = (struct frame){.domain = FRAME_PASSED, .owner = owner, .reserved = (uint32_t)kind, .level = detail};
	if (link) {
		stream_find_path(s);
		frame->node = range_place_node(s, text, kind, link, detail);
		stream_set_top(s, frame);
	} else {
		open_frame(s, text);
	}
	stream_skip_ends(s, TRACE_SKIPPED_RANGES, began);
}

int range_pop_quietly(struct stream *s, struct frame *frame)
{
	const uint64_t began = stream_skip_begins(s, TRACE_SKIPPED_RANGES);
	const int level = (int)frame->level;

	if (frame->domain != FRAME_PASSED && frame == s->top)
		s->quiet_used = frame->reserved;
	s->vague -= is_vague(frame);
	range_take_out(s, frame);
	stream_skip_ends(s, TRACE_SKIPPED_RANGES, began);
	return level;
}
