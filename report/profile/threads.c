/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include <stdlib.h>

struct profile_thread *profile_add_thread(struct profile *profile, struct trace_stream *stream)
{
	struct profile_state *state = profile->state;
	struct profile_thread *thread = xcalloc(sizeof *thread);

	array_grow_zeroed(&state->threads, &state->thread_room, state->thread_count + 1,
		sizeof(struct profile_thread *));
	thread->of = stream;
	thread->stream = stream->stream;
	thread->index = (uint32_t)state->thread_count;
	state->threads[state->thread_count++] = thread;
	thread->section_frame = NO_SECTION_FRAME;
	stream->user = thread;
	sampled_index_thread(profile, thread);
	return thread;
}

void profile_keep_thread_time(struct profile *profile, const struct profile_thread *thread)
{
	if (!thread->has_ranges)
		return;
	*ARRAY_ADD(profile->threads, profile->thread_room,
		profile->thread_count) = (struct profile_thread_time){ .tid = thread->of->tid,
		.self_ns = thread->self_ns };
}

void profile_thread_end(struct profile *profile, struct trace_stream *stream)
{
	struct profile_state *state = profile->state;
	struct profile_thread *thread = stream->user, *last;

	if (!thread)
		return;
	profile_keep_thread_time(profile, thread);
	sampled_index_thread_end(profile, thread);
	last = state->threads[--state->thread_count];
	state->threads[thread->index] = last;
	last->index = thread->index;
	free(thread->frames);
	free(thread->details);
	free(thread);
	stream->user = NULL;
}

uint32_t profile_unattributed_node(struct profile *profile, uint32_t root)
{
	uint32_t node;

	if (!root && profile->unattributed)
		return profile->unattributed;
	node = tree_child(profile->tree, root,
		string_table_intern(profile->texts, "unattributed", 12), 0, NODE_UNATTRIBUTED);
	if (!root)
		profile->unattributed = node;
	return node;
}
