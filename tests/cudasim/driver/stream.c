/* The driver API: streams, events, capture. */
#include <stdlib.h>

#include "driver/driver.h"

DRIVER_API(cuStreamCreate, (CUstream * phStream, unsigned int Flags), (phStream, Flags))
{
	struct sim_stream *stream;

	TRY(stream_create(&stream, Flags, 0));
	*phStream = (CUstream)stream;
	return CUDA_SUCCESS;
}

/* Priorities outside of the range are brought into it, as the real driver does. */
DRIVER_API(cuStreamCreateWithPriority, (CUstream * phStream, unsigned int flags, int priority),
	(phStream, flags, priority))
{
	struct sim_stream *stream;

	if (priority > 0)
		priority = 0;
	if (priority < -5)
		priority = -5;
	TRY(stream_create(&stream, flags, priority));
	*phStream = (CUstream)stream;
	return CUDA_SUCCESS;
}

DRIVER_API(cuStreamDestroy_v2, (CUstream hStream), (hStream))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	if (hStream == NULL || hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	return stream_destroy(stream);
}

DRIVER_API_STREAM(cuStreamSynchronize, (CUstream hStream), (hStream))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	return stream_sync(stream);
}

DRIVER_API_STREAM(cuStreamQuery, (CUstream hStream), (hStream))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	return stream_query(stream);
}

DRIVER_API_STREAM(cuStreamWaitEvent, (CUstream hStream, CUevent hEvent, unsigned int Flags),
	(hStream, hEvent, Flags))
{
	struct sim_stream *stream;

	(void)Flags;
	TRY(stream_resolve(hStream, &stream));
	return stream_wait_event(stream, (struct sim_event *)hEvent);
}

DRIVER_API_STREAM(cuStreamGetFlags, (CUstream hStream, unsigned int *flags), (hStream, flags))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	*flags = stream->flags;
	return CUDA_SUCCESS;
}

DRIVER_API_STREAM(cuStreamGetPriority, (CUstream hStream, int *priority), (hStream, priority))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	*priority = stream->priority;
	return CUDA_SUCCESS;
}

DRIVER_API_STREAM(
	cuStreamGetId, (CUstream hStream, unsigned long long *streamId), (hStream, streamId))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	*streamId = stream->id;
	return CUDA_SUCCESS;
}

DRIVER_API_STREAM(cuStreamGetCtx, (CUstream hStream, CUcontext *pctx), (hStream, pctx))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	*pctx = (CUcontext)stream->context;
	return CUDA_SUCCESS;
}

/* A callback of cuStreamAddCallback on its way through the host queue. */
struct callback {
	CUstreamCallback function;
	CUstream stream;
	void *data;
};

static void run_callback(void *data)
{
	struct callback *callback = data;

	callback->function(callback->stream, CUDA_SUCCESS, callback->data);
	free(callback);
}

DRIVER_API_STREAM(cuStreamAddCallback,
	(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags),
	(hStream, callback, userData, flags))
{
	struct op op = { .kind = SIM_HOST_FUNCTION, .node_kind = SIM_NODE_HOST };
	struct sim_stream *stream;
	struct callback *call;

	TRY(stream_resolve(hStream, &stream));
	TRY(capture_forbids_stream(stream));
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	call = zalloc(sizeof(*call));
	*call = (struct callback){ callback, hStream, userData };
	op.host = (struct op_host){ run_callback, call };
	return submit(stream, &op);
}

DRIVER_API(cuEventCreate, (CUevent * phEvent, unsigned int Flags), (phEvent, Flags))
{
	struct sim_event *event;

	TRY(event_create(&event, Flags));
	*phEvent = (CUevent)event;
	return CUDA_SUCCESS;
}

DRIVER_API(cuEventDestroy_v2, (CUevent hEvent), (hEvent))
{
	return event_destroy((struct sim_event *)hEvent);
}

DRIVER_API_STREAM(cuEventRecord, (CUevent hEvent, CUstream hStream), (hEvent, hStream))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	return event_record((struct sim_event *)hEvent, stream);
}

DRIVER_API_STREAM(cuEventRecordWithFlags, (CUevent hEvent, CUstream hStream, unsigned int flags),
	(hEvent, hStream, flags))
{
	struct sim_stream *stream;

	(void)flags;
	TRY(stream_resolve(hStream, &stream));
	return event_record((struct sim_event *)hEvent, stream);
}

DRIVER_API(cuEventQuery, (CUevent hEvent), (hEvent))
{
	return event_query((struct sim_event *)hEvent);
}

DRIVER_API(cuEventSynchronize, (CUevent hEvent), (hEvent))
{
	return event_sync((struct sim_event *)hEvent);
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
	return event_elapsed(ms, (struct sim_event *)start, (struct sim_event *)end);
}

DRIVER_API(cuEventElapsedTime, (float *pMilliseconds, CUevent hStart, CUevent hEnd),
	(pMilliseconds, hStart, hEnd))
{
	return elapsed(pMilliseconds, hStart, hEnd);
}

DRIVER_API(cuEventElapsedTime_v2, (float *pMilliseconds, CUevent hStart, CUevent hEnd),
	(pMilliseconds, hStart, hEnd))
{
	return elapsed(pMilliseconds, hStart, hEnd);
}

DRIVER_API_STREAM(
	cuStreamBeginCapture_v2, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	return capture_begin(stream, mode);
}

DRIVER_API_STREAM(cuStreamEndCapture, (CUstream hStream, CUgraph *phGraph), (hStream, phGraph))
{
	struct sim_stream *stream;
	struct sim_graph *graph;
	CUresult result;

	TRY(stream_resolve(hStream, &stream));
	result = capture_end(stream, &graph);
	*phGraph = (CUgraph)graph;
	return result;
}

DRIVER_API_STREAM(cuStreamIsCapturing, (CUstream hStream, CUstreamCaptureStatus *captureStatus),
	(hStream, captureStatus))
{
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	return capture_info(stream, captureStatus, NULL, NULL, NULL, NULL);
}

static CUresult get_info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
	CUgraph *graph, const CUgraphNode **needs, size_t *count)
{
	struct sim_stream *stream;
	struct sim_node **tails = NULL;
	struct sim_graph *captured = NULL;
	uint64_t number = 0;

	TRY(stream_resolve(handle, &stream));
	TRY(capture_info(stream, status, &number, &captured, &tails, count));
	if (id && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
		*id = number;
	if (graph)
		*graph = (CUgraph)captured;
	if (needs)
		*needs = (const CUgraphNode *)(void *)tails;
	return CUDA_SUCCESS;
}

DRIVER_API_STREAM(cuStreamGetCaptureInfo_v2,
	(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
		CUgraph *graph_out, const CUgraphNode **dependencies_out,
		size_t *numDependencies_out),
	(hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out))
{
	return get_info(hStream, captureStatus_out, id_out, graph_out, dependencies_out,
		numDependencies_out);
}

DRIVER_API_STREAM(cuStreamGetCaptureInfo_v3,
	(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
		CUgraph *graph_out, const CUgraphNode **dependencies_out,
		const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out),
	(hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
		numDependencies_out))
{
	if (edgeData_out)
		*edgeData_out = NULL;
	return get_info(hStream, captureStatus_out, id_out, graph_out, dependencies_out,
		numDependencies_out);
}

static CUresult update(CUstream handle, CUgraphNode *needs, size_t count, unsigned flags)
{
	struct sim_stream *stream;

	TRY(stream_resolve(handle, &stream));
	return capture_update(stream, (struct sim_node *const *)(void *)needs, count,
		flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

DRIVER_API_STREAM(cuStreamUpdateCaptureDependencies,
	(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies, unsigned int flags),
	(hStream, dependencies, numDependencies, flags))
{
	return update(hStream, dependencies, numDependencies, flags);
}

DRIVER_API_STREAM(cuStreamUpdateCaptureDependencies_v2,
	(CUstream hStream, CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
		size_t numDependencies, unsigned int flags),
	(hStream, dependencies, dependencyData, numDependencies, flags))
{
	(void)dependencyData;
	return update(hStream, dependencies, numDependencies, flags);
}

DRIVER_API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))
{
	return capture_exchange_mode(mode);
}
