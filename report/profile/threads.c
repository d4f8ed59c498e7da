/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include <stdlib.h>

struct thread *fold_thread_begins(struct fold *fold, struct trace_stream *stream)
{
	struct fold_state *state = fold->state;
	struct thread *thread = need(sizeof *thread);

	grow(&state->threads, &state->thread_room, state->thread_count + 1, sizeof(struct thread *));
	thread->of = stream;
	thread->stream = stream->stream;
	thread->index = (uint32_t)state->thread_count;
	state->threads[state->thread_count++] = thread;
	thread->inserted = NOT_INSERTED;
	stream->user = thread;
	return thread;
}

void fold_keep_time(struct fold *fold, const struct thread *thread)
{
	if (!thread->had_range)
		return;
	grow(&fold->threads, &fold->thread_room, fold->thread_count + 1, sizeof *fold->threads);
	fold->threads[fold->thread_count++] = (struct fold_thread_time){ .tid = thread->of->tid, .self_ns = thread->self_ns };
}

void fold_thread_ends(struct fold *fold, struct trace_stream *stream)
{
	struct fold_state *state = fold->state;
	struct thread *thread = stream->user, *last;

	if (!thread)
		return;
	fold_keep_time(fold, thread);
	last = state->threads[--state->thread_count];
	state->threads[thread->index] = last;
	last->index = thread->index;
	free(thread->frames);
	free(thread->more);
	free(thread);
	stream->user = NULL;
}

uint32_t fold_unattributed(struct fold *fold, uint32_t root)
{
	uint32_t node;

	if (!root && fold->unattributed)
		return fold->unattributed;
	node = tree_child(fold->tree, root, text_id(fold->texts, "unattributed", 12), 0, NODE_UNATTRIBUTED);
	if (!root)
		fold->unattributed = node;
	return node;
}
