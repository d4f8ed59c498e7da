/* Streams: virtual time lines. A stream is busy until its end, which is computed when work comes
 * in. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/core.h"
#include "core/entry.h"

#define FIRST_STREAM 7 /* the id of the first default stream, as CUPTI numbers it */

static struct sim_stream *spare;
static uint32_t next_id = FIRST_STREAM;

struct sim_stream *stream_new(struct sim_context *context, unsigned flags, int priority)
{
	struct sim_stream *stream = spare;

	if (stream)
		spare = stream->next;
	else
		stream = zalloc(sizeof(*stream));
	memset(stream, 0, sizeof(*stream));
	__atomic_store_n(&stream->alive, true, __ATOMIC_RELAXED);
	stream->id = next_id++;
	stream->flags = flags;
	stream->priority = priority;
	stream->context = context;
	stream->next = context->streams;
	context->streams = stream;
	return stream;
}

/* The lock must be held. */
static void stream_retire(struct sim_stream *stream)
{
	set_assign(&stream->tails, NULL, 0);
	__atomic_store_n(&stream->alive, false, __ATOMIC_RELAXED);
	stream->capture = NULL;
	stream->next = spare;
	spare = stream;
}

void streams_release(struct sim_context *context)
{
	while (context->streams) {
		struct sim_stream *stream = context->streams;

		context->streams = stream->next;
		stream_retire(stream);
	}
	context->null_stream = NULL;
}

CUresult stream_create(struct sim_stream **stream, unsigned flags, int priority)
{
	struct sim_context *context;

	TRY(require_context(&context));
	if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	*stream = stream_new(context, flags, priority);
	core_unlock();
	tell_resource(&(struct sim_resource){
		.kind = SIM_STREAM_CREATED,
		.context = context,
		.stream = *stream,
	});
	return CUDA_SUCCESS;
}

/* Leaves the context; what was submitted still completes. The lock must be held. */
static void stream_unlink(struct sim_stream *stream)
{
	struct sim_stream **at = &stream->context->streams;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
}

CUresult stream_destroy(struct sim_stream *stream)
{
	tell_resource(&(struct sim_resource){
		.kind = SIM_STREAM_DESTROY_STARTING,
		.context = stream->context,
		.stream = stream,
	});
	core_lock();
	if (stream->capture)
		capture_invalidate(stream->capture);
	stream_unlink(stream);
	stream_retire(stream);
	core_unlock();
	return CUDA_SUCCESS;
}

/* The calling thread's own default stream, made at the first use. */
static struct sim_stream *own_stream(struct sim_context *context)
{
	struct sim_stream *stream;
	bool created = false;
	int tid = gettid();

	core_lock();
	for (stream = context->streams; stream; stream = stream->next)
		if (stream->owner == tid)
			break;
	if (!stream) {
		stream = stream_new(context, 0, 0);
		stream->owner = tid;
		created = true;
	}
	core_unlock();
	if (created)
		tell_resource(&(struct sim_resource){
			.kind = SIM_STREAM_CREATED,
			.context = context,
			.stream = stream,
		});
	return stream;
}

SIM_EXPORT struct sim_stream *sim_stream_of(
	struct sim_context *context, void *handle, bool per_thread)
{
	struct sim_stream *stream = handle;

	if (!context)
		context = sim_context_current();
	if (handle == NULL || handle == (void *)CU_STREAM_LEGACY ||
		handle == (void *)CU_STREAM_PER_THREAD) {
		if (!context)
			return NULL;
		if (handle == (void *)CU_STREAM_PER_THREAD || (!handle && per_thread))
			return own_stream(context);
		return context->null_stream;
	}
	return __atomic_load_n(&stream->alive, __ATOMIC_RELAXED) ? stream : NULL;
}

CUresult stream_resolve(CUstream handle, struct sim_stream **stream)
{
	struct sim_context *context;

	TRY(require_context(&context));
	*stream = sim_stream_of(context, handle, per_thread_call());
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static bool is_legacy(const struct sim_stream *stream)
{
	return stream == stream->context->null_stream;
}

/* The legacy stream and the blocking ones wait for each other. The lock must be held. */
static void include_implicit(struct sim_stream *stream)
{
	struct sim_stream *legacy = stream->context->null_stream;

	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return;
	if (!is_legacy(stream)) {
		if (legacy->end_ns > stream->end_ns)
			stream->end_ns = legacy->end_ns;
		return;
	}
	for (struct sim_stream *s = stream->context->streams; s; s = s->next)
		if (!(s->flags & CU_STREAM_NON_BLOCKING) && s->end_ns > stream->end_ns)
			stream->end_ns = s->end_ns;
}

uint64_t stream_ready(struct sim_stream *stream, uint64_t now)
{
	include_implicit(stream);
	return stream->end_ns > now ? stream->end_ns : now;
}

uint64_t stream_push(struct sim_stream *stream, uint64_t end_ns)
{
	uint64_t *slot = &stream->queue[stream->submitted % STREAM_QUEUE];
	uint64_t oldest = *slot;

	*slot = end_ns;
	stream->submitted++;
	stream->end_ns = end_ns;
	return oldest;
}

static CUresult may_wait_for(struct sim_stream *stream)
{
	CUresult result;

	TRY(capture_forbids_stream(stream));
	core_lock();
	result = capture_permits_legacy(stream);
	core_unlock();
	return result;
}

CUresult stream_query(struct sim_stream *stream)
{
	struct sim_sync sync = {
		.kind = SIM_SYNC_STREAM,
		.start_ns = sim_time_ns(),
		.correlation = current_correlation(),
		.context = stream->context->id,
		.stream = stream->id,
		.event = SIM_NO_EVENT,
		.context_handle = stream->context,
		.stream_handle = stream,
		.query = true,
	};
	uint64_t end, host;

	TRY(may_wait_for(stream));
	core_lock();
	include_implicit(stream);
	end = stream->end_ns;
	host = stream->host_ns;
	core_unlock();
	sync.end_ns = sim_time_ns();
	sync.result = end > sync.end_ns || host_pending(host) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	tell_sync(&sync);
	return (CUresult)sync.result;
}

void stream_wait(struct sim_stream *stream)
{
	uint64_t end, host;

	core_lock();
	include_implicit(stream);
	end = stream->end_ns;
	host = stream->host_ns;
	core_unlock();
	wait_until(end);
	host_wait(host);
}

CUresult stream_sync(struct sim_stream *stream)
{
	struct sim_sync sync = {
		.kind = SIM_SYNC_STREAM,
		.start_ns = sim_time_ns(),
		.correlation = current_correlation(),
		.context = stream->context->id,
		.stream = stream->id,
		.event = SIM_NO_EVENT,
		.context_handle = stream->context,
		.stream_handle = stream,
	};

	TRY(may_wait_for(stream));
	stream_wait(stream);
	pools_relax();
	sync.end_ns = sim_time_ns();
	tell_sync(&sync);
	return context_error(stream->context);
}

/* The latest end of the context's streams, and of their host functions. */
static void context_end_ns(const struct sim_context *context, uint64_t *end, uint64_t *host)
{
	*end = *host = 0;
	core_lock();
	for (const struct sim_stream *s = context->streams; s; s = s->next) {
		if (s->end_ns > *end)
			*end = s->end_ns;
		if (s->host_ns > *host)
			*host = s->host_ns;
	}
	core_unlock();
}

void context_wait(const struct sim_context *context)
{
	uint64_t end, host;

	context_end_ns(context, &end, &host);
	wait_until(end);
	host_wait(host);
}

CUresult context_sync(void)
{
	struct sim_context *context;
	struct sim_sync sync = {
		.kind = SIM_SYNC_CONTEXT,
		.start_ns = sim_time_ns(),
		.correlation = current_correlation(),
		.stream = SIM_NO_STREAM,
		.event = SIM_NO_EVENT,
	};

	TRY(require_context(&context));
	TRY(capture_forbids_context(context));
	context_wait(context);
	pools_relax();
	sync.context = context->id;
	sync.context_handle = context;
	sync.end_ns = sim_time_ns();
	tell_sync(&sync);
	return context_error(context);
}

SIM_EXPORT uint32_t sim_stream_id(const struct sim_stream *stream)
{
	return stream->id;
}

SIM_EXPORT int sim_stream_priority(const struct sim_stream *stream)
{
	return stream->priority;
}

SIM_EXPORT unsigned sim_stream_flags(const struct sim_stream *stream)
{
	return stream->flags;
}

SIM_EXPORT struct sim_context *sim_stream_context(const struct sim_stream *stream)
{
	return stream->context;
}
