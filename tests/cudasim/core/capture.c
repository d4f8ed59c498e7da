/* Stream capture: work becomes nodes of a graph, and what would disturb it is refused or spoils it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/entry.h"

static struct sim_capture *captures; /* those in progress */
static uint64_t capture_count;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static _Thread_local char self; /* its address tells threads apart */

void set_assign(struct node_set *set, struct sim_node *const *nodes, size_t count)
{
	struct sim_node **copy = NULL;

	if (count) {
		copy = zalloc(count * sizeof(struct sim_node *));
		memcpy(copy, nodes, count * sizeof(struct sim_node *));
	}
	free(set->nodes);
	set->nodes = copy;
	set->count = count;
}

static bool set_has(const struct node_set *set, const struct sim_node *node)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->nodes[i] == node)
			return true;
	return false;
}

void set_include(struct node_set *set, struct sim_node *const *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (set_has(set, nodes[i]))
			continue;
		set->nodes = grow(set->nodes, (set->count + 1) * sizeof(*set->nodes));
		set->nodes[set->count++] = nodes[i];
	}
}

struct sim_capture *capture_find(uint64_t id)
{
	struct sim_capture *capture = captures;

	while (capture && capture->id != id)
		capture = capture->next;
	return capture;
}

void capture_invalidate(struct sim_capture *capture)
{
	capture->invalid = true;
}

/* Whether an unsafe call of this thread would disturb the capture. */
static bool guards_against_us(const struct sim_capture *capture)
{
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
		capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (capture->thread == &self)
		return true;
	return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_permits_unsafe(void)
{
	CUresult result = CUDA_SUCCESS;

	core_lock();
	for (struct sim_capture *c = captures; c; c = c->next) {
		if (!guards_against_us(c))
			continue;
		capture_invalidate(c);
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	core_unlock();
	return result;
}

CUresult capture_forbids_stream(struct sim_stream *stream)
{
	CUresult result = CUDA_SUCCESS;

	core_lock();
	if (stream->capture) {
		result = stream->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
						  : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		capture_invalidate(stream->capture);
	}
	core_unlock();
	return result;
}

CUresult capture_forbids_context(struct sim_context *context)
{
	CUresult result = CUDA_SUCCESS;

	core_lock();
	for (struct sim_stream *s = context->streams; s; s = s->next) {
		if (!s->capture)
			continue;
		capture_invalidate(s->capture);
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	core_unlock();
	return result;
}

CUresult capture_permits_legacy(struct sim_stream *stream)
{
	CUresult result = CUDA_SUCCESS;

	if (stream != stream->context->null_stream)
		return CUDA_SUCCESS;
	for (struct sim_stream *s = stream->context->streams; s; s = s->next) {
		if (!s->capture || (s->flags & CU_STREAM_NON_BLOCKING))
			continue;
		capture_invalidate(s->capture);
		result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	return result;
}

CUresult capture_begin(struct sim_stream *stream, CUstreamCaptureMode mode)
{
	struct sim_capture *capture;
	struct sim_graph *graph;

	if (stream == stream->context->null_stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(graph_create(&graph));
	capture = zalloc(sizeof(*capture));
	capture->graph = graph;
	capture->origin = stream;
	capture->mode = mode;
	capture->thread = &self;
	core_lock();
	if (stream->capture) {
		core_unlock();
		free(capture);
		graph_destroy(graph);
		return CUDA_ERROR_ILLEGAL_STATE;
	}
	capture->id = ++capture_count;
	capture->next = captures;
	captures = capture;
	stream->capture = capture;
	set_assign(&stream->tails, NULL, 0);
	core_unlock();
	return CUDA_SUCCESS;
}

/* All streams leave the capture. The lock must be held. */
static void capture_close(struct sim_capture *capture)
{
	struct sim_context *context = capture->origin->context;
	struct sim_capture **at = &captures;

	for (struct sim_stream *s = context->streams; s; s = s->next) {
		if (s->capture != capture)
			continue;
		s->capture = NULL;
		set_assign(&s->tails, NULL, 0);
	}
	while (*at != capture)
		at = &(*at)->next;
	*at = capture->next;
}

/* Why the capture cannot end well here, CUDA_SUCCESS: it can. The lock must be held. */
static CUresult capture_verdict(const struct sim_capture *capture, const struct sim_stream *stream)
{
	if (capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!graph_joined(capture->graph, &stream->tails))
		return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	return CUDA_SUCCESS;
}

/* Whether this thread and stream may end it. The lock must be held. */
static CUresult may_end(const struct sim_stream *stream)
{
	const struct sim_capture *capture = stream->capture;

	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &self)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	return CUDA_SUCCESS;
}

CUresult capture_end(struct sim_stream *stream, struct sim_graph **graph)
{
	struct sim_capture *capture;
	CUresult result;

	*graph = NULL;
	core_lock();
	result = may_end(stream);
	if (result != CUDA_SUCCESS) {
		core_unlock();
		return result;
	}
	capture = stream->capture;
	result = capture_verdict(capture, stream);
	capture_close(capture);
	core_unlock();
	if (result == CUDA_SUCCESS)
		*graph = capture->graph;
	else
		graph_destroy(capture->graph);
	free(capture);
	return result;
}

static void fill_info(struct sim_stream *stream, uint64_t *id, struct sim_graph **graph,
	struct sim_node ***tails, size_t *count)
{
	if (id)
		*id = stream->capture->id;
	if (graph)
		*graph = stream->capture->graph;
	if (tails)
		*tails = stream->tails.nodes;
	if (count)
		*count = stream->tails.count;
}

CUresult capture_info(struct sim_stream *stream, CUstreamCaptureStatus *status, uint64_t *id,
	struct sim_graph **graph, struct sim_node ***tails, size_t *count)
{
	CUresult result;

	core_lock();
	result = capture_permits_legacy(stream);
	if (!stream->capture) {
		*status = CU_STREAM_CAPTURE_STATUS_NONE;
	} else if (stream->capture->invalid) {
		*status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	} else {
		*status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
		fill_info(stream, id, graph, tails, count);
	}
	core_unlock();
	return result;
}

CUresult capture_update(
	struct sim_stream *stream, struct sim_node *const *nodes, size_t count, bool set)
{
	CUresult result = CUDA_SUCCESS;

	core_lock();
	if (!stream->capture)
		result = CUDA_ERROR_ILLEGAL_STATE;
	else if (stream->capture->invalid)
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (set)
		set_assign(&stream->tails, nodes, count);
	else
		set_include(&stream->tails, nodes, count);
	core_unlock();
	return result;
}

CUresult capture_exchange_mode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = thread_mode;

	if (*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

CUresult capture_add(struct sim_stream *stream, const struct op *op, struct sim_node **node)
{
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	*node = node_append(stream->capture->graph, stream->tails.nodes, stream->tails.count, op);
	set_assign(&stream->tails, node, 1);
	return CUDA_SUCCESS;
}

/*
 * An event of a capture draws a stream into it; two captures cannot be joined, and a capture cannot
 * wait for what happens outside of it.
 */
CUresult capture_join(struct sim_stream *stream, const struct sim_event *event)
{
	struct sim_capture *capture = event->capture_id ? capture_find(event->capture_id) : NULL;

	if (!capture) {
		if (!stream->capture)
			return CUDA_ERROR_CAPTURED_EVENT;
		capture_invalidate(stream->capture);
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->capture && stream->capture != capture) {
		capture_invalidate(stream->capture);
		capture_invalidate(capture);
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (stream == stream->context->null_stream) {
		capture_invalidate(capture);
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	stream->capture = capture;
	set_include(&stream->tails, event->tails.nodes, event->tails.count);
	return CUDA_SUCCESS;
}
