/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/rank_end.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/base/search.h"
#include "report/analysis/communicator_requests.h"
#include "report/run/call_stack.h"
#include <stdlib.h>
#include <string.h>

/* What is known of a trace node: the communicator of its collectives plus 1, or one of these. */
#define NODE_UNKNOWN 0u
#define NODE_OF_SEVERAL UINT32_MAX

struct known_launch {
	uint64_t correlation;
	uint32_t communicator;
};

COMPARE_BY_TWO(by_correlation, struct known_launch, correlation, communicator)

DEFINE_COUNT_WHILE(launches_before, struct known_launch, item->correlation < limit)

/* What the pass keeps of a thread. */
struct thread_state {
	uint32_t stack;   /* of its last call that has one */
	uint32_t request; /* node of the open range whose request is counted; 0: none */
	uint32_t end;     /* 1 + index in end->threads; 0: its open ranges are not stored */
	uint64_t stack_ns, call_ns;
	const char *call; /* of NCCL, begun at call_ns; NULL: none */
};

struct end_reader {
	struct process *process;
	const struct collectives *collectives;
	struct rank_end *end;
	struct known_launch *launches; /* of collectives with GPU records */
	uint32_t *communicators;       /* by trace node */
};

static char *copy_text(struct trace_text text)
{
	char *copy = xcalloc((size_t)text.length + 1);

	memcpy(copy, text.bytes, text.length);
	return copy;
}

static struct thread_state *state_of(const struct trace_event *event)
{
	if (!event->stream->user)
		event->stream->user = xcalloc(sizeof(struct thread_state));
	return event->stream->user;
}

/* ---- requests ---- */

static struct known_launch *list_launches(const struct collectives *collectives)
{
	struct known_launch *launches = xcalloc((collectives->count + 1) * sizeof *launches);

	for (size_t i = 0; i < collectives->count; i++)
		launches[i] = (struct known_launch){ collectives->all[i].correlation,
			collectives->all[i].communicator };
	qsort(launches, collectives->count, sizeof *launches, by_correlation);
	return launches;
}

/* Returns the innermost node around `node` that is a collective's range, or 0. */
static uint32_t collective_node(struct trace_reader *reader, uint32_t node)
{
	while (node && !collective_is_range(reader_name(reader, reader_node(reader, node)->name)))
		node = reader_node(reader, node)->parent;
	return node;
}

static void learn_node(struct end_reader *state, uint32_t node, uint32_t communicator)
{
	uint32_t *known = &state->communicators[node];

	*known = *known == NODE_UNKNOWN || *known == communicator + 1 ? communicator + 1
								      : NODE_OF_SEVERAL;
}

/* Counts a request without a GPU record, once for each range. */
static void count_request(struct end_reader *state, struct thread_state *thread, uint32_t node)
{
	const uint32_t known = state->communicators[node];

	if (known == NODE_UNKNOWN || known == NODE_OF_SEVERAL || thread->request == node)
		return;
	thread->request = node;
	state->end->requested[known - 1]++;
}

static void see_launch(struct end_reader *state, const struct trace_event *event)
{
	const struct trace_call *call = event->record;
	const size_t count = state->collectives->count,
		     at = launches_before(state->launches, count, call->correlation);
	const uint32_t node = collective_node(state->process->reader, event->node);
	struct thread_state *thread = state_of(event);

	if (!node)
		return;
	if (call->correlation && at < count &&
		state->launches[at].correlation == call->correlation) {
		learn_node(state, node, state->launches[at].communicator);
		/* Requests before a collective that ended are in the number of collectives. */
		state->end->requested[state->launches[at].communicator] = 0;
		thread->request = node;
	} else {
		count_request(state, thread, node);
	}
}

/* ---- open ranges ---- */

static void keep_path(struct end_reader *state, struct end_thread *thread, uint32_t node)
{
	struct trace_reader *reader = state->process->reader;
	char source[CALL_STACK_TEXT];

	for (uint32_t at = node; at; at = reader_node(reader, at)->parent)
		thread->path_count++;
	thread->path = xcalloc((thread->path_count + 1) * sizeof *thread->path);
	for (size_t i = thread->path_count; i-- > 0; node = reader_node(reader, node)->parent) {
		thread->path[i] = copy_text(reader_name(reader, reader_node(reader, node)->name));
		if (!thread->source &&
			call_stack_source(state->process, node, false, source, sizeof source))
			thread->source = copy_text(
				(struct trace_text){ source, (uint32_t)strlen(source), true });
	}
}

static void keep_frames(struct end_reader *state, struct end_thread *thread, uint32_t stack)
{
	const uint32_t count = stack ? call_stack_frames(state->process, stack) : 0;
	char text[CALL_STACK_TEXT];

	for (uint32_t i = 0; i < count && i < RANK_END_FRAMES; i++) {
		const size_t length = call_stack_frame(
			state->process, stack, i, false, text, sizeof text);

		thread->frames[thread->frame_count++] = copy_text(
			(struct trace_text){ text, (uint32_t)length, true });
	}
}

static struct end_thread *keep_thread(
	struct end_reader *state, const struct trace_event *event, uint64_t begin_ns)
{
	struct rank_end *end = state->end;
	struct thread_state *thread = state_of(event);
	struct end_thread *kept = ARRAY_ADD(end->threads, end->room, end->thread_count);

	thread->end = (uint32_t)end->thread_count;
	*kept = (struct end_thread){ .tid = event->stream->tid,
		.begin_ns = thread->call ? thread->call_ns : begin_ns,
		.call = thread->call };
	keep_frames(state, kept, thread->stack);
	return kept;
}

/* The first of a thread is its innermost one. */
static void see_open_range(struct end_reader *state, const struct trace_event *event)
{
	struct rank_end *end = state->end;
	struct thread_state *thread = state_of(event);
	const uint32_t node = event->node;

	if (!thread->end)
		keep_path(state, keep_thread(state, event, event->begin_ns), node);
	if (state->collectives->ranges && collective_is_range(reader_name(state->process->reader,
						  reader_node(state->process->reader, node)->name)))
		end->requested[0]++;
	else if (collective_node(state->process->reader, node) == node && node)
		count_request(state, thread, node);
}

static void see_nccl_call(struct thread_state *thread, const struct trace_event *event)
{
	const struct trace_collective *record = event->record;

	if (record->head.flags & TRACE_COLLECTIVE_GROUPED)
		return;
	thread->call = record->head.flags & TRACE_COLLECTIVE_BEGIN
			       ? nccl_operation_name(record->operation)
			       : NULL;
	thread->call_ns = event->time_ns;
}

static bool has_stack(uint32_t kind)
{
	return kind == TRACE_LAUNCH || kind == TRACE_GRAPH_LAUNCH || kind == TRACE_COPY ||
	       kind == TRACE_SET || kind == TRACE_SYNC;
}

static void see_event(struct end_reader *state, const struct trace_event *event)
{
	if (event->kind == TRACE_LAUNCH)
		see_launch(state, event);
	if (event->kind == TRACE_COLLECTIVE)
		see_nccl_call(state_of(event), event);
	if (has_stack(event->kind) && ((const struct trace_call *)event->record)->stack) {
		state_of(event)->stack = ((const struct trace_call *)event->record)->stack;
		state_of(event)->stack_ns = event->time_ns;
	}
	if (event->kind == EVENT_POP && event->stream->user &&
		state_of(event)->request == event->node)
		state_of(event)->request = 0;
	if (event->kind == EVENT_LEFT_OPEN)
		see_open_range(state, event);
	if (event->kind == EVENT_STREAM_END && event->stream->user) {
		const struct thread_state *thread = event->stream->user;

		if (!thread->end && (thread->call || thread->stack))
			keep_thread(state, event, thread->stack_ns);
		free(event->stream->user);
		event->stream->user = NULL;
	}
}

struct rank_end *rank_end_read(struct process *process, const struct collectives *collectives)
{
	struct end_reader state = {
		.process = process, .collectives = collectives, .end = xcalloc(sizeof *state.end)
	};
	struct trace_event event;
	int status;

	state.launches = list_launches(collectives);
	state.communicators = xcalloc(
		reader_node_count(process->reader) * sizeof *state.communicators);
	state.end->requested = xcalloc(
		(collectives->communicator_count + 1) * sizeof *state.end->requested);
	reader_rewind(process->reader);
	while ((status = reader_next(process->reader, &event)) > 0)
		see_event(&state, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(process->reader));
	for (size_t i = 0; i < collectives->communicator_count; i++)
		state.end->requested[i] += collectives->communicators[i].count;
	free(state.launches);
	free(state.communicators);
	return state.end;
}

void rank_end_free(struct rank_end *end)
{
	for (size_t i = 0; end && i < end->thread_count; i++) {
		struct end_thread *thread = &end->threads[i];

		for (size_t k = 0; k < thread->path_count; k++)
			free(thread->path[k]);
		for (size_t k = 0; k < thread->frame_count; k++)
			free(thread->frames[k]);
		free(thread->path);
		free(thread->source);
	}
	if (end) {
		free(end->threads);
		free(end->requested);
	}
	free(end);
}
