/* The runtime: streams, events, capture. */
#include "runtime/runtime.h"

RUNTIME_API(cudaStreamCreate, 3020, (cudaStream_t * pStream), (pStream))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuStreamCreate, pStream, 0);
}

RUNTIME_API(cudaStreamCreateWithFlags, 5000, (cudaStream_t * pStream, unsigned int flags),
	(pStream, flags))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuStreamCreate, pStream, flags);
}

RUNTIME_API(cudaStreamCreateWithPriority, 5050,
	(cudaStream_t * pStream, unsigned int flags, int priority), (pStream, flags, priority))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuStreamCreateWithPriority, pStream, flags, priority);
}

RUNTIME_API(cudaStreamDestroy, 5050, (cudaStream_t stream), (stream))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuStreamDestroy_v2, stream);
}

RUNTIME_API_STREAM(cudaStreamSynchronize, 3020, 7000, (cudaStream_t stream), (stream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamSynchronize, stream);
}

RUNTIME_API_STREAM(cudaStreamQuery, 3020, 7000, (cudaStream_t stream), (stream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamQuery, stream);
}

RUNTIME_API_STREAM(cudaStreamWaitEvent, 3020, 7000,
	(cudaStream_t stream, cudaEvent_t event, unsigned int flags), (stream, event, flags))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamWaitEvent, stream, event, flags);
}

RUNTIME_API_STREAM(cudaStreamGetFlags, 5050, 7000, (cudaStream_t hStream, unsigned int *flags),
	(hStream, flags))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamGetFlags, hStream, flags);
}

RUNTIME_API_STREAM(cudaStreamGetPriority, 5050, 7000, (cudaStream_t hStream, int *priority),
	(hStream, priority))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamGetPriority, hStream, priority);
}

RUNTIME_API_STREAM(cudaStreamGetId, 12000, 12000,
	(cudaStream_t hStream, unsigned long long *streamId), (hStream, streamId))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamGetId, hStream, streamId);
}

/* The two libraries number their errors alike, so a callback of one is a callback of the other. */
RUNTIME_API_STREAM(cudaStreamAddCallback, 5000, 7000,
	(cudaStream_t stream, cudaStreamCallback_t callback, void *userData, unsigned int flags),
	(stream, callback, userData, flags))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamAddCallback, stream, (CUstreamCallback)(void (*)(void))callback,
		userData, flags);
}

RUNTIME_API(cudaEventCreate, 3020, (cudaEvent_t * event), (event))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuEventCreate, event, 0);
}

RUNTIME_API(
	cudaEventCreateWithFlags, 3020, (cudaEvent_t * event, unsigned int flags), (event, flags))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuEventCreate, event, flags);
}

RUNTIME_API(cudaEventDestroy, 3020, (cudaEvent_t event), (event))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuEventDestroy_v2, event);
}

RUNTIME_API_STREAM(
	cudaEventRecord, 3020, 7000, (cudaEvent_t event, cudaStream_t stream), (event, stream))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuEventRecord, event, stream);
}

RUNTIME_API_STREAM(cudaEventRecordWithFlags, 11010, 11010,
	(cudaEvent_t event, cudaStream_t stream, unsigned int flags), (event, stream, flags))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuEventRecordWithFlags, event, stream, flags);
}

RUNTIME_API(cudaEventQuery, 3020, (cudaEvent_t event), (event))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuEventQuery, event);
}

RUNTIME_API(cudaEventSynchronize, 3020, (cudaEvent_t event), (event))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuEventSynchronize, event);
}

static cudaError_t elapsed(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuEventElapsedTime, ms, start, end);
}

RUNTIME_API(cudaEventElapsedTime, 12080, (float *ms, cudaEvent_t start, cudaEvent_t end),
	(ms, start, end))
{
	return elapsed(ms, start, end);
}

RUNTIME_API_STREAM(cudaStreamBeginCapture, 10000, 10000,
	(cudaStream_t stream, enum cudaStreamCaptureMode mode), (stream, mode))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamBeginCapture_v2, stream, (CUstreamCaptureMode)mode);
}

RUNTIME_API_STREAM(cudaStreamEndCapture, 10000, 10000, (cudaStream_t stream, cudaGraph_t *pGraph),
	(stream, pGraph))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamEndCapture, stream, pGraph);
}

RUNTIME_API_STREAM(cudaStreamIsCapturing, 10000, 10000,
	(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus),
	(stream, pCaptureStatus))
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	cudaError_t result;

	CHECK(runtime_ready());
	result = STREAM_CALL(cuStreamIsCapturing, stream, &status);
	*pCaptureStatus = (enum cudaStreamCaptureStatus)status;
	return result;
}

static cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *out,
	unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **needs, size_t *count)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t number = 0;
	cudaError_t result;

	CHECK(runtime_ready());
	result = STREAM_CALL(
		cuStreamGetCaptureInfo_v2, stream, &status, &number, graph, needs, count);
	*out = (enum cudaStreamCaptureStatus)status;
	if (id && status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
		*id = number;
	return result;
}

static cudaError_t update(cudaStream_t stream, cudaGraphNode_t *needs, size_t count, unsigned flags)
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuStreamUpdateCaptureDependencies, stream, needs, count, flags);
}

#if SIM_MAJOR >= 13

RUNTIME_API_STREAM(cudaStreamGetCaptureInfo, 12030, 12030,
	(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
		unsigned long long *id_out, cudaGraph_t *graph_out,
		const cudaGraphNode_t **dependencies_out, const cudaGraphEdgeData **edgeData_out,
		size_t *numDependencies_out),
	(stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
		numDependencies_out))
{
	if (edgeData_out)
		*edgeData_out = NULL;
	return capture_info(stream, captureStatus_out, id_out, graph_out, dependencies_out,
		numDependencies_out);
}

RUNTIME_API_STREAM(cudaStreamUpdateCaptureDependencies, 12030, 12030,
	(cudaStream_t stream, cudaGraphNode_t *dependencies,
		const cudaGraphEdgeData *dependencyData, size_t numDependencies,
		unsigned int flags),
	(stream, dependencies, dependencyData, numDependencies, flags))
{
	(void)dependencyData;
	return update(stream, dependencies, numDependencies, flags);
}

#else

/* The generated structs of 13 list members that 12's plain form has not. */
typedef struct {
	cudaStream_t stream;
	enum cudaStreamCaptureStatus *captureStatus_out;
	unsigned long long *id_out;
} capture_info_plain_params;

typedef struct {
	cudaStream_t stream;
	enum cudaStreamCaptureStatus *captureStatus_out;
	unsigned long long *id_out;
	cudaGraph_t *graph_out;
	const cudaGraphNode_t **dependencies_out;
	size_t *numDependencies_out;
} capture_info_v2_params;

typedef struct {
	cudaStream_t stream;
	cudaGraphNode_t *dependencies;
	size_t numDependencies;
	unsigned flags;
} update_plain_params;

RUNTIME_API_12_STREAM(capture_info_plain, "cudaStreamGetCaptureInfo", capture_info_plain_params,
	(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
		unsigned long long *id_out),
	(stream, captureStatus_out, id_out))
{
	return capture_info(stream, captureStatus_out, id_out, NULL, NULL, NULL);
}

RUNTIME_API_12_STREAM(capture_info_v2, "cudaStreamGetCaptureInfo_v2", capture_info_v2_params,
	(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
		unsigned long long *id_out, cudaGraph_t *graph_out,
		const cudaGraphNode_t **dependencies_out, size_t *numDependencies_out),
	(stream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out))
{
	return capture_info(stream, captureStatus_out, id_out, graph_out, dependencies_out,
		numDependencies_out);
}

RUNTIME_API_12_STREAM(capture_info_v3, "cudaStreamGetCaptureInfo_v3",
	cudaStreamGetCaptureInfo_v12030_params,
	(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
		unsigned long long *id_out, cudaGraph_t *graph_out,
		const cudaGraphNode_t **dependencies_out, const cudaGraphEdgeData **edgeData_out,
		size_t *numDependencies_out),
	(stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
		numDependencies_out))
{
	if (edgeData_out)
		*edgeData_out = NULL;
	return capture_info(stream, captureStatus_out, id_out, graph_out, dependencies_out,
		numDependencies_out);
}

RUNTIME_API_12_STREAM(update_plain, "cudaStreamUpdateCaptureDependencies", update_plain_params,
	(cudaStream_t stream, cudaGraphNode_t *dependencies, size_t numDependencies,
		unsigned int flags),
	(stream, dependencies, numDependencies, flags))
{
	return update(stream, dependencies, numDependencies, flags);
}

RUNTIME_API_12_STREAM(update_v2, "cudaStreamUpdateCaptureDependencies_v2",
	cudaStreamUpdateCaptureDependencies_v12030_params,
	(cudaStream_t stream, cudaGraphNode_t *dependencies,
		const cudaGraphEdgeData *dependencyData, size_t numDependencies,
		unsigned int flags),
	(stream, dependencies, dependencyData, numDependencies, flags))
{
	(void)dependencyData;
	return update(stream, dependencies, numDependencies, flags);
}

RUNTIME_API_12(elapsed_v2, "cudaEventElapsedTime_v2", cudaEventElapsedTime_v12080_params,
	(float *ms, cudaEvent_t start, cudaEvent_t end), (ms, start, end))
{
	return elapsed(ms, start, end);
}

#endif

RUNTIME_API(cudaThreadExchangeStreamCaptureMode, 10010, (enum cudaStreamCaptureMode * mode), (mode))
{
	CUstreamCaptureMode exchanged = (CUstreamCaptureMode)*mode;
	cudaError_t result;

	CHECK(runtime_ready());
	result = DRIVER_CALL(cuThreadExchangeStreamCaptureMode, &exchanged);
	*mode = (enum cudaStreamCaptureMode)exchanged;
	return result;
}
