/* The simulated runtime's stream capture: what it takes in, what it refuses, what spoils it. */
#include <pthread.h>

#include "tests/check_cuda.h"

KERNEL(work)

static cudaStream_t a, b;
static cudaEvent_t event;

static void begin(enum cudaStreamCaptureMode mode)
{
	OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	OK(cudaEventCreate(&event));
	OK(cudaStreamBeginCapture(a, mode));
}

static void launch(cudaStream_t stream)
{
	OK(LAUNCH(work, 1, 32, 0, stream, NULL, 0));
}

static enum cudaStreamCaptureStatus status_of(cudaStream_t stream)
{
	enum cudaStreamCaptureStatus status;

	OK(cudaStreamIsCapturing(stream, &status));
	return status;
}

static size_t end(void)
{
	cudaGraph_t graph;
	size_t count;

	OK(cudaStreamEndCapture(a, &graph));
	OK(cudaGraphGetNodes(graph, NULL, &count));
	OK(cudaGraphDestroy(graph));
	return count;
}

/* The capture ends without a graph, and the stream is usable again. */
static void end_fails(cudaError_t error)
{
	cudaGraph_t graph = (cudaGraph_t)&a;

	FAILS(cudaStreamEndCapture(a, &graph), error);
	ck_assert_ptr_null(graph);
	ck_assert_int_eq(status_of(a), cudaStreamCaptureStatusNone);
	launch(a);
	OK(cudaStreamSynchronize(a));
}

START_TEST(captured_work_becomes_nodes_and_does_not_run)
{
	char *device, host = 0;

	OK(cudaMalloc((void **)&device, 64));
	OK(cudaMemset(device, 1, 64));
	begin(cudaStreamCaptureModeGlobal);
	ck_assert_int_eq(status_of(a), cudaStreamCaptureStatusActive);
	ck_assert_int_eq(status_of(b), cudaStreamCaptureStatusNone);
	launch(a);
	OK(cudaMemsetAsync(device, 2, 64, a));
	ck_assert_uint_eq(end(), 2);
	OK(cudaMemcpy(&host, device, 1, cudaMemcpyDeviceToHost));
	ck_assert_int_eq(host, 1);
}
END_TEST

START_TEST(synchronising_a_capturing_stream_spoils_the_capture)
{
	begin(cudaStreamCaptureModeRelaxed);
	FAILS(cudaStreamSynchronize(a), cudaErrorStreamCaptureUnsupported);
	ck_assert_int_eq(status_of(a), cudaStreamCaptureStatusInvalidated);
	FAILS(LAUNCH(work, 1, 32, 0, a, NULL, 0), cudaErrorStreamCaptureInvalidated);
	end_fails(cudaErrorStreamCaptureInvalidated);
}
END_TEST

START_TEST(querying_a_capturing_stream_spoils_the_capture)
{
	begin(cudaStreamCaptureModeRelaxed);
	FAILS(cudaStreamQuery(a), cudaErrorStreamCaptureUnsupported);
	end_fails(cudaErrorStreamCaptureInvalidated);
}
END_TEST

START_TEST(synchronising_the_device_spoils_the_capture)
{
	begin(cudaStreamCaptureModeRelaxed);
	FAILS(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
	end_fails(cudaErrorStreamCaptureInvalidated);
}
END_TEST

START_TEST(unsafe_calls_spoil_a_global_capture)
{
	void *memory = NULL;

	begin(cudaStreamCaptureModeGlobal);
	FAILS(cudaMalloc(&memory, 64), cudaErrorStreamCaptureUnsupported);
	end_fails(cudaErrorStreamCaptureInvalidated);
}
END_TEST

static void *allocate(void *result)
{
	void *memory;

	*(cudaError_t *)result = cudaMalloc(&memory, 64);
	return NULL;
}

static cudaError_t allocate_elsewhere(void)
{
	cudaError_t result;
	pthread_t thread;

	pthread_create(&thread, NULL, allocate, &result);
	pthread_join(thread, NULL);
	return result;
}

START_TEST(a_global_capture_is_spoilt_from_any_thread_and_a_thread_local_one_is_not)
{
	begin(cudaStreamCaptureModeGlobal);
	FAILS(allocate_elsewhere(), cudaErrorStreamCaptureUnsupported);
	end_fails(cudaErrorStreamCaptureInvalidated);
	OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
	OK(allocate_elsewhere());
	ck_assert_uint_eq(end(), 0);
}
END_TEST

START_TEST(a_relaxed_capture_or_a_relaxed_thread_may_allocate)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	void *memory;

	begin(cudaStreamCaptureModeRelaxed);
	OK(cudaMalloc(&memory, 64));
	ck_assert_uint_eq(end(), 0);
	OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	ck_assert_int_eq(mode, cudaStreamCaptureModeGlobal);
	OK(cudaMalloc(&memory, 64));
	ck_assert_uint_eq(end(), 0);
}
END_TEST

START_TEST(a_waiting_stream_joins_the_capture)
{
	begin(cudaStreamCaptureModeGlobal);
	launch(a);
	OK(cudaEventRecord(event, a));
	OK(cudaStreamWaitEvent(b, event, 0));
	ck_assert_int_eq(status_of(b), cudaStreamCaptureStatusActive);
	launch(b);
	OK(cudaEventRecord(event, b));
	OK(cudaStreamWaitEvent(a, event, 0));
	launch(a);
	ck_assert_uint_eq(end(), 3);
	ck_assert_int_eq(status_of(b), cudaStreamCaptureStatusNone);
}
END_TEST

START_TEST(a_stream_that_does_not_come_back_leaves_the_capture_unjoined)
{
	begin(cudaStreamCaptureModeGlobal);
	OK(cudaEventRecord(event, a));
	OK(cudaStreamWaitEvent(b, event, 0));
	launch(b);
	end_fails(cudaErrorStreamCaptureUnjoined);
	ck_assert_int_eq(status_of(b), cudaStreamCaptureStatusNone);
}
END_TEST

START_TEST(captured_events_have_no_time)
{
	begin(cudaStreamCaptureModeRelaxed);
	OK(cudaEventRecord(event, a));
	FAILS(cudaEventQuery(event), cudaErrorCapturedEvent);
	end_fails(cudaErrorStreamCaptureInvalidated);
	FAILS(cudaEventSynchronize(event), cudaErrorCapturedEvent);
	OK(cudaEventRecord(event, a));
	OK(cudaEventSynchronize(event));
}
END_TEST

START_TEST(a_capture_cannot_wait_for_what_is_outside)
{
	begin(cudaStreamCaptureModeGlobal);
	OK(cudaEventRecord(event, b));
	FAILS(cudaStreamWaitEvent(a, event, 0), cudaErrorStreamCaptureIsolation);
	end_fails(cudaErrorStreamCaptureInvalidated);
}
END_TEST

START_TEST(two_captures_do_not_merge)
{
	cudaGraph_t graph;

	begin(cudaStreamCaptureModeGlobal);
	OK(cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal));
	OK(cudaEventRecord(event, b));
	FAILS(cudaStreamWaitEvent(a, event, 0), cudaErrorStreamCaptureMerge);
	FAILS(cudaStreamEndCapture(b, &graph), cudaErrorStreamCaptureInvalidated);
	end_fails(cudaErrorStreamCaptureInvalidated);
}
END_TEST

START_TEST(the_legacy_stream_is_never_captured_nor_mixed_with_a_blocking_capture)
{
	FAILS(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal),
		cudaErrorStreamCaptureUnsupported);
	OK(cudaStreamCreate(&a));
	OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
	FAILS(LAUNCH(work, 1, 32, 0, 0, NULL, 0), cudaErrorStreamCaptureImplicit);
	end_fails(cudaErrorStreamCaptureInvalidated);
}
END_TEST

START_TEST(a_capture_ends_where_it_began)
{
	cudaGraph_t graph;

	begin(cudaStreamCaptureModeGlobal);
	FAILS(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
	OK(cudaEventRecord(event, a));
	OK(cudaStreamWaitEvent(b, event, 0));
	FAILS(cudaStreamEndCapture(b, &graph), cudaErrorStreamCaptureUnmatched);
	ck_assert_uint_eq(end(), 0);
	FAILS(cudaStreamEndCapture(a, &graph), cudaErrorIllegalState);
}
END_TEST

static void *end_elsewhere(void *result)
{
	cudaGraph_t graph;

	*(cudaError_t *)result = cudaStreamEndCapture(a, &graph);
	return NULL;
}

START_TEST(a_thread_local_capture_ends_on_its_thread)
{
	pthread_t thread;
	cudaError_t result;

	begin(cudaStreamCaptureModeThreadLocal);
	pthread_create(&thread, NULL, end_elsewhere, &result);
	pthread_join(thread, NULL);
	ck_assert_int_eq(result, cudaErrorStreamCaptureWrongThread);
	ck_assert_uint_eq(end(), 0);
}
END_TEST

START_TEST(capture_info_names_the_graph_and_what_comes_before)
{
	const cudaGraphNode_t *needs;
	unsigned long long id = 0;
	enum cudaStreamCaptureStatus status;
	cudaGraph_t graph;
	size_t count;

	begin(cudaStreamCaptureModeGlobal);
	launch(a);
#if SIM_MAJOR >= 13
	OK(cudaStreamGetCaptureInfo(a, &status, &id, &graph, &needs, NULL, &count));
#else
	cudaError_t info(cudaStream_t, enum cudaStreamCaptureStatus *, unsigned long long *,
		cudaGraph_t *, const cudaGraphNode_t **,
		size_t *) __asm__("cudaStreamGetCaptureInfo_v2");

	OK(info(a, &status, &id, &graph, &needs, &count));
#endif
	ck_assert_int_eq(status, cudaStreamCaptureStatusActive);
	ck_assert_uint_ne(id, 0);
	ck_assert_uint_eq(count, 1);
	OK(cudaGraphGetNodes(graph, NULL, &count));
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(end(), 1);
}
END_TEST

SUITE("cudasim capture", captured_work_becomes_nodes_and_does_not_run,
	synchronising_a_capturing_stream_spoils_the_capture,
	querying_a_capturing_stream_spoils_the_capture, synchronising_the_device_spoils_the_capture,
	unsafe_calls_spoil_a_global_capture,
	a_global_capture_is_spoilt_from_any_thread_and_a_thread_local_one_is_not,
	a_relaxed_capture_or_a_relaxed_thread_may_allocate, a_waiting_stream_joins_the_capture,
	a_stream_that_does_not_come_back_leaves_the_capture_unjoined, captured_events_have_no_time,
	a_capture_cannot_wait_for_what_is_outside, two_captures_do_not_merge,
	the_legacy_stream_is_never_captured_nor_mixed_with_a_blocking_capture,
	a_capture_ends_where_it_began, a_thread_local_capture_ends_on_its_thread,
	capture_info_names_the_graph_and_what_comes_before)
