/* SPDX-License-Identifier: MIT
 * A range that begins while recording is paused has no record. Its node is unresolved until a
 * record or a counted range (range_open_counted) needs it. These members of its frame have another
 * meaning, because no record needs them:
 *
 *   begin       the address of the text while the node is unresolved, then 0
 *   node        while unresolved: the node of the nearest resolved frame around it
 *   level       of an object's range: the detail of the node
 *
 * Texts of NVTX are copied to a stack of their own (unrecorded_texts).
 */
#include "collector/stream/unrecorded_ranges.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"
#include "collector/stream/range_stack.h"
#include "collector/stream/node_cache.h"

#include <string.h>

#define TEXTS_BYTES (64u << 10)

static bool is_unresolved(const struct range_frame *frame)
{
	return !frame_is_recorded(frame) && frame->domain != FRAME_COUNTED && frame->begin;
}

static const char *unresolved_text(const struct range_frame *frame)
{
	return (const char *)(uintptr_t)frame->begin;
}

/* Returns the node of an unresolved frame below s->node, or 0 if it gets none (node_cache.h). */
static uint32_t resolve_node(struct stream *s, const struct range_frame *frame)
{
	const uint32_t domain = frame->domain & ~FRAME_UNRECORDED; /* unless it is an object's */

	if (frame->domain != FRAME_UNRECORDED_OBJECT)
		return domain < CACHED_DOMAINS ? range_child_node(s, domain, unresolved_text(frame))
					       : range_resolve_child(s, domain, TRACE_NODE_RANGE,
							 unresolved_text(frame));
	if (frame->level)
		return range_linked_child_node(s, unresolved_text(frame),
			(enum trace_node_kind)frame->kind, 0, frame->level);
	return range_child_node(s, CACHED_KIND(frame->kind), unresolved_text(frame));
}

void stream_resolve_nodes(struct stream *s)
{
	for (struct range_frame *frame = s->frames + 1; frame <= s->top && s->unresolved; frame++) {
		if (!is_unresolved(frame))
			continue;
		s->node = frame[-1].node;
		frame->node = resolve_node(s, frame);
		frame->node = frame->node ? frame->node : s->node;
		frame->begin = 0;
		s->unresolved--;
	}
	s->unresolved = 0;
	s->node = s->top->node;
}

/* Copies `text` to the stack of texts. Returns NULL if there is no room. */
static char *copy_range_text(struct stream *s, const char *text)
{
	const size_t bytes = strlen(text) + 1;
	struct signal_guard guard;
	char *copied;

	if (!s->unrecorded_texts) {
		signal_guard_begin(&guard);
		s->unrecorded_texts = fork_wiped_alloc(TEXTS_BYTES);
		signal_guard_end(&guard);
	}
	if (!s->unrecorded_texts || bytes > TEXTS_BYTES - s->unrecorded_texts_used)
		return NULL;
	copied = memcpy(s->unrecorded_texts + s->unrecorded_texts_used, text, bytes);
	s->unrecorded_texts_used += (uint32_t)bytes;
	return copied;
}

/* Completes the frame above the top, whose other members are set, as a range whose node is looked
 * up later. Makes it the top. `text` must stay valid until then. */
static void push_unresolved_frame(struct stream *s, const char *text)
{
	struct range_frame *frame = s->top + 1;

	frame->begin = (uintptr_t)text;
	frame->node = s->node;
	s->unresolved++;
	stream_set_top(s, frame);
}

int range_push_unrecorded(struct stream *s, uint32_t domain, const char *text)
{
	const uint64_t began = stream_skip_begin(s, TRACE_SKIPPED_RANGES);
	const uint32_t used = s->unrecorded_texts_used;
	const char *copied = copy_range_text(s, text);
	struct range_frame *frame = s->top + 1;
	const int level = range_open_frame(s, s->node, domain | FRAME_UNRECORDED);

	stream_set_top(s, frame - 1);
	push_unresolved_frame(s, copied ? copied : text);
	frame->texts_used = used;
	if (!copied)
		stream_resolve_nodes(s);
	stream_skip_end(s, TRACE_SKIPPED_RANGES, began);
	return level;
}

void range_open_unrecorded(struct stream *s, const void *object, const char *text,
	enum trace_node_kind kind, uint32_t link, uint32_t detail)
{
	const uint64_t began = stream_skip_begin(s, TRACE_SKIPPED_RANGES);
	struct range_frame *frame = s->top + 1;

	*frame = (struct range_frame){ .domain = FRAME_UNRECORDED_OBJECT,
		.object = object,
		.kind = (uint32_t)kind,
		.level = detail };
	if (link) {
		stream_resolve_nodes(s);
		frame->node = range_linked_child_node(s, text, kind, link, detail);
		stream_set_top(s, frame);
	} else {
		push_unresolved_frame(s, text);
	}
	stream_skip_end(s, TRACE_SKIPPED_RANGES, began);
}

int range_pop_unrecorded(struct stream *s, struct range_frame *frame)
{
	const uint64_t began = stream_skip_begin(s, TRACE_SKIPPED_RANGES);
	const int level = (int)frame->level;

	if (frame->domain != FRAME_UNRECORDED_OBJECT && frame == s->top)
		s->unrecorded_texts_used = frame->texts_used;
	s->unresolved -= is_unresolved(frame);
	range_remove_frame(s, frame);
	stream_skip_end(s, TRACE_SKIPPED_RANGES, began);
	return level;
}
