/* Events: a moment of a stream's time line, or a place in a capture. */
#include <string.h>

#include "core/core.h"
#include "core/entry.h"

static struct sim_event *spare;
static uint32_t event_count;

CUresult event_create(struct sim_event **event, unsigned flags)
{
	struct sim_context *context;
	struct sim_event *made;

	TRY(require_context(&context));
	core_lock();
	made = spare;
	if (made)
		spare = made->next;
	else
		made = zalloc(sizeof(*made));
	memset(made, 0, sizeof(*made));
	__atomic_store_n(&made->alive, true, __ATOMIC_RELAXED);
	made->id = ++event_count;
	made->flags = flags;
	made->context = context;
	core_unlock();
	*event = made;
	return CUDA_SUCCESS;
}

static CUresult require_event(const struct sim_event *event)
{
	TRY(require_init());
	return event && __atomic_load_n(&event->alive, __ATOMIC_RELAXED)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_HANDLE;
}

CUresult event_destroy(struct sim_event *event)
{
	TRY(require_event(event));
	core_lock();
	set_assign(&event->tails, NULL, 0);
	__atomic_store_n(&event->alive, false, __ATOMIC_RELAXED);
	event->next = spare;
	spare = event;
	core_unlock();
	return CUDA_SUCCESS;
}

/* In a capture: the event stands for what the stream would depend on next. The lock must be held.
 */
static CUresult record_captured(struct sim_event *event, struct sim_stream *stream)
{
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	event->capture_id = stream->capture->id;
	set_assign(&event->tails, stream->tails.nodes, stream->tails.count);
	return CUDA_SUCCESS;
}

/* The lock must be held. */
static void record_time(struct sim_event *event, struct sim_stream *stream)
{
	event->capture_id = 0;
	set_assign(&event->tails, NULL, 0);
	event->recorded = true;
	event->time_ns = stream_ready(stream, sim_time_ns());
	event->host_ns = stream->host_ns;
}

CUresult event_record(struct sim_event *event, struct sim_stream *stream)
{
	struct sim_event_record record = { .correlation = current_correlation() };
	CUresult result;
	bool captured;

	TRY(require_event(event));
	core_lock();
	captured = stream->capture != NULL;
	if (captured)
		result = record_captured(event, stream);
	else if ((result = capture_permits_legacy(stream)) == CUDA_SUCCESS)
		record_time(event, stream);
	record.event = event->id;
	record.device = (uint32_t)stream->context->device;
	record.context = stream->context->id;
	record.stream = stream->id;
	record.device_ns = event->time_ns;
	core_unlock();
	if (result == CUDA_SUCCESS && !captured)
		tell_event(&record);
	return result;
}

/* An event of a capture has no time: asking for it spoils the capture. */
static CUresult require_timed(struct sim_event *event)
{
	bool captured;

	TRY(require_event(event));
	core_lock();
	captured = event->capture_id != 0;
	if (captured && capture_find(event->capture_id))
		capture_invalidate(capture_find(event->capture_id));
	core_unlock();
	return captured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

/* What a recorded event stands for; an event never recorded has happened. */
struct moment {
	bool recorded;
	uint64_t time_ns;
	uint64_t host_ns;
};

static struct moment event_moment(const struct sim_event *event)
{
	struct moment moment;

	core_lock();
	moment.recorded = event->recorded;
	moment.time_ns = event->time_ns;
	moment.host_ns = event->host_ns;
	core_unlock();
	return moment;
}

static bool pending(struct moment moment)
{
	return moment.time_ns > sim_time_ns() || host_pending(moment.host_ns);
}

CUresult event_query(struct sim_event *event)
{
	struct sim_sync sync = {
		.kind = SIM_SYNC_EVENT,
		.start_ns = sim_time_ns(),
		.correlation = current_correlation(),
		.stream = SIM_NO_STREAM,
		.query = true,
	};

	TRY(require_timed(event));
	TRY(capture_permits_unsafe());
	sync.result = pending(event_moment(event)) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	sync.event = event->id;
	sync.context = event->context->id;
	sync.context_handle = event->context;
	sync.end_ns = sim_time_ns();
	tell_sync(&sync);
	return (CUresult)sync.result;
}

CUresult event_sync(struct sim_event *event)
{
	struct sim_sync sync = {
		.kind = SIM_SYNC_EVENT,
		.start_ns = sim_time_ns(),
		.correlation = current_correlation(),
		.stream = SIM_NO_STREAM,
	};
	struct moment moment;

	TRY(require_timed(event));
	TRY(capture_permits_unsafe());
	moment = event_moment(event);
	wait_until(moment.time_ns);
	host_wait(moment.host_ns);
	pools_relax();
	sync.event = event->id;
	sync.context = event->context->id;
	sync.context_handle = event->context;
	sync.end_ns = sim_time_ns();
	tell_sync(&sync);
	return context_error(event->context);
}

CUresult event_elapsed(float *ms, struct sim_event *start, struct sim_event *end)
{
	struct moment from, to;

	TRY(require_timed(start));
	TRY(require_timed(end));
	from = event_moment(start);
	to = event_moment(end);
	if (!from.recorded || !to.recorded ||
		((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_HANDLE;
	if (pending(from) || pending(to))
		return CUDA_ERROR_NOT_READY;
	*ms = (float)(((double)to.time_ns - (double)from.time_ns) / 1e6);
	return CUDA_SUCCESS;
}

/* Outside of captures: the stream goes on when the event has happened. The lock must be held. */
static void wait_time(struct sim_stream *stream, const struct sim_event *event)
{
	if (!event->recorded)
		return;
	if (event->time_ns > stream->end_ns)
		stream->end_ns = event->time_ns;
	if (event->host_ns > stream->host_ns)
		stream->host_ns = event->host_ns;
}

CUresult stream_wait_event(struct sim_stream *stream, struct sim_event *event)
{
	struct sim_sync sync = {
		.kind = SIM_SYNC_STREAM_WAIT_EVENT,
		.start_ns = sim_time_ns(),
		.correlation = current_correlation(),
		.context = stream->context->id,
		.stream = stream->id,
		.context_handle = stream->context,
		.stream_handle = stream,
	};
	CUresult result;
	bool timed;

	TRY(require_event(event));
	core_lock();
	timed = !event->capture_id && !stream->capture;
	result = timed ? capture_permits_legacy(stream) : capture_join(stream, event);
	if (timed && result == CUDA_SUCCESS)
		wait_time(stream, event);
	sync.event = event->id;
	core_unlock();
	sync.end_ns = sim_time_ns();
	if (timed && result == CUDA_SUCCESS)
		tell_sync(&sync);
	return result;
}

SIM_EXPORT uint32_t sim_event_id(const struct sim_event *event)
{
	return event->id;
}
