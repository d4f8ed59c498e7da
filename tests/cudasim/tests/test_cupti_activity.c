/*
 * The simulated CUPTI's activity records: which ones come, when, in which buffers, on which
 * threads. Every test runs for CUDA 12 and 13; `_i` is the major.
 */
#include "tests/cupti_client.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define KERNEL CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
#define LAUNCH CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000
#define MALLOC CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020

static uint64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The first complete record of each test is in this buffer. */
static uint32_t bytes_a_record(void)
{
	return (uint32_t)(client.buffers[0].valid / client.buffers[0].records);
}

START_TEST(nothing_comes_before_it_is_flushed)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
	usleep(50000);
	ck_assert_uint_eq(client.buffer_count, 0);
	client_flush(false);
	ck_assert_uint_eq(client.entry_count, 1);
	ck_assert_int_eq(client.buffers[0].end, CUPTI_ERROR_MAX_LIMIT_REACHED);
	ck_assert_int_eq(client.buffers[0].tid, client_tid());
}
END_TEST

START_TEST(a_flush_leaves_running_work_alone)
{
	CUfunction kernel;

	setenv("SIM_KERNEL_NS", "1000000000", 1);
	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	client_flush(false);
	ck_assert_uint_eq(client.buffer_count, 0);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), 1);
}
END_TEST

START_TEST(a_forced_flush_hands_out_incomplete_records)
{
	CUfunction kernel;

	setenv("SIM_KERNEL_NS", "1000000000", 1);
	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	client_flush(true);
	ck_assert_uint_eq(client.buffer_count, 1);
	ck_assert_uint_eq(client.buffers[0].records, 0);
	ck_assert_int_eq(client.buffers[0].end, CUPTI_ERROR_INVALID_KIND);
	client_finish();
	ck_assert_uint_eq(client.entry_count, 0);
}
END_TEST

START_TEST(a_flush_needs_buffer_callbacks)
{
	client_open(_i);
	ck_assert_int_eq(cupti.cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
	ck_assert_int_eq(
		cupti.cuptiActivityRegisterCallbacks(NULL, NULL), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(full_buffers_come_from_cuptis_thread)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client.buffer_bytes = 1024;
	client_record(KERNEL, 0);
	for (int i = 0; i < 20; i++)
		client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
	for (int i = 0; i < 200 && client_buffers() < 4; i++)
		usleep(10000);
	ck_assert_uint_eq(client.buffer_count, 4);
	ck_assert_int_ne(client.buffers[0].tid, client_tid());
	ck_assert_int_ne(client.request_tid, client_tid());
	ck_assert_uint_eq(client.buffers[0].records, 4);
	client_flush(false);
	ck_assert_uint_eq(client_entries(KERNEL), 20);
}
END_TEST

START_TEST(a_periodic_flush_hands_out_only_full_buffers)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	ck_assert_int_eq(cupti.cuptiActivityFlushPeriod(5), CUPTI_SUCCESS);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
	usleep(60000);
	ck_assert_uint_eq(client.buffer_count, 0);
	client_flush(false);
	ck_assert_uint_eq(client_entries(KERNEL), 1);
}
END_TEST

START_TEST(calls_ask_for_buffers_on_their_own_thread)
{
	void *memory;

	client_open(_i);
	client_kernel("k");
	client_record(CUPTI_ACTIVITY_KIND_RUNTIME, 0);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 64), cudaSuccess);
	ck_assert_int_eq(client.request_tid, client_tid());
}
END_TEST

START_TEST(a_buffer_holds_as_many_records_as_the_client_says)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client.buffer_records = 3;
	client_record(KERNEL, 0);
	for (int i = 0; i < 7; i++)
		client_launch(kernel, NULL, 1);
	client_finish();
	ck_assert_uint_eq(client.buffer_count, 3);
	ck_assert_uint_eq(client.buffers[0].records, 3);
	ck_assert_uint_eq(client.buffers[2].records, 1);
}
END_TEST

START_TEST(what_finds_no_buffer_is_counted_and_reported)
{
	CUfunction kernel;
	size_t dropped;

	client_open(_i);
	kernel = client_kernel("k");
	client_enable(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_WARNING, 0);
	client.buffer_bytes = 0;
	client_record(KERNEL, 0);
	for (int i = 0; i < 3; i++)
		client_launch(kernel, NULL, 1);
	client_finish();
	ck_assert_int_eq(cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), CUPTI_SUCCESS);
	ck_assert_uint_eq(dropped, 3);
	ck_assert_uint_eq(client_events(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_WARNING), 3);
	ck_assert_int_eq(cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), CUPTI_SUCCESS);
	ck_assert_uint_eq(dropped, 0);
	ck_assert_int_eq(cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, NULL),
		CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(before_12_9_no_buffer_is_a_crash)
{
	CUfunction kernel;

	setenv("SIM_CUPTI_VERSION", "26", 1);
	signal(SIGSEGV, SIG_DFL);
	client_open(_i);
	kernel = client_kernel("k");
	client.buffer_bytes = 0;
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	client_finish();
	sleep(3); /* it may be the worker that crashes */
}
END_TEST

static void CUPTIAPI call_cupti(uint8_t **buffer, size_t *size, size_t *records)
{
	(void)buffer;
	(void)size;
	(void)records;
	cupti.cuptiActivityFlushAll(0);
}

static void CUPTIAPI never(
	CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	(void)context;
	(void)stream;
	(void)buffer;
	(void)size;
	(void)valid;
}

START_TEST(calling_cupti_from_a_buffer_callback_aborts)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	cupti.cuptiActivityRegisterCallbacks(call_cupti, never);
	cupti.cuptiActivityEnable(KERNEL);
	client_launch(kernel, NULL, 1);
	client_finish();
}
END_TEST

START_TEST(streams_are_in_order_but_not_among_each_other)
{
	CUstream streams[2];
	CUfunction kernel;
	uint64_t last[2] = { 0, 0 };
	bool jumped = false;

	setenv("SIM_KERNEL_NS", "20000000",
		1); /* long, so that they overlap however slowly they are launched */
	client_open(_i);
	kernel = client_kernel("k");
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			cuda.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	client_record(KERNEL, 0);
	for (int i = 0; i < 20; i++)
		client_launch(kernel, streams[i % 2], 1);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), 20);
	for (size_t i = 0; i < 20; i++) {
		const uint8_t *record = client_entry(KERNEL, i);
		int which = CUPTI_GET(record, Kernel, streamId) !=
			    CUPTI_GET(client_entry(KERNEL, 0), Kernel, streamId);

		ck_assert_uint_ge(CUPTI_GET(record, Kernel, start), last[which]);
		jumped = jumped || CUPTI_GET(record, Kernel, start) < last[!which];
		last[which] = CUPTI_GET(record, Kernel, end);
	}
	ck_assert(jumped);
}
END_TEST

START_TEST(times_are_of_the_realtime_clock)
{
	uint64_t before = realtime_ns(), stamp;
	const uint8_t *record;
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	client_finish();
	ck_assert_int_eq(cupti.cuptiGetTimestamp(&stamp), CUPTI_SUCCESS);
	record = client_entry(KERNEL, 0);
	ck_assert_uint_lt(before, CUPTI_GET(record, Kernel, start));
	ck_assert_uint_lt(CUPTI_GET(record, Kernel, start), CUPTI_GET(record, Kernel, end));
	ck_assert_uint_le(CUPTI_GET(record, Kernel, end), stamp);
	ck_assert_uint_le(stamp, realtime_ns());
}
END_TEST

static uint64_t from_zero(void)
{
	static uint64_t zero;

	if (!zero)
		zero = realtime_ns();
	return realtime_ns() - zero;
}

START_TEST(a_timestamp_callback_gives_all_times)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	ck_assert_int_eq(
		cupti.cuptiActivityRegisterTimestampCallback(NULL), CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(cupti.cuptiActivityRegisterTimestampCallback(from_zero), CUPTI_SUCCESS);
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	client_finish();
	ck_assert_uint_lt(CUPTI_GET(client_entry(KERNEL, 0), Kernel, end), UINT64_C(60000000000));
}
END_TEST

START_TEST(before_13_1_a_timestamp_callback_can_take_the_times_of_kernels)
{
	CUfunction kernel;

	setenv("SIM_CUPTI_CLOCK", "zero", 1);
	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_int_eq(cupti.cuptiActivityRegisterTimestampCallback(from_zero), CUPTI_SUCCESS);
	client_launch(kernel, NULL, 1);
	client_finish();
	ck_assert_uint_ne(CUPTI_GET(client_entry(KERNEL, 0), Kernel, end), 0);
	ck_assert_uint_eq(CUPTI_GET(client_entry(KERNEL, 1), Kernel, end), 0);
}
END_TEST

START_TEST(latency_stamps_only_where_enabled)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cupti.cuptiActivityEnableLatencyTimestamps(1), CUPTI_SUCCESS);
	client_launch(kernel, NULL, 1);
	client_finish();
	ck_assert_uint_eq(CUPTI_GET(client_entry(KERNEL, 0), Kernel, queued), 0);
	ck_assert_uint_gt(CUPTI_GET(client_entry(KERNEL, 1), Kernel, queued), 0);
	ck_assert_uint_le(CUPTI_GET(client_entry(KERNEL, 1), Kernel, queued),
		CUPTI_GET(client_entry(KERNEL, 1), Kernel, start));
}
END_TEST

START_TEST(calls_are_recorded_with_their_thread)
{
	const uint8_t *record;
	void *memory;

	client_open(_i);
	client_kernel("k");
	ck_assert_int_eq(
		cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), CUPTI_SUCCESS);
	client_record(CUPTI_ACTIVITY_KIND_RUNTIME, 0);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, (size_t)1 << 50), cudaErrorMemoryAllocation);
	client_flush(false);
	record = client_entry(CUPTI_ACTIVITY_KIND_RUNTIME, 0);
	ck_assert_uint_eq(CUPTI_GET(record, API, cbid), MALLOC);
	ck_assert_uint_eq(CUPTI_GET(record, API, processId), (unsigned)getpid());
	ck_assert_uint_eq(CUPTI_GET(record, API, threadId), (unsigned)client_tid());
	ck_assert_uint_eq(CUPTI_GET(record, API, returnValue), cudaErrorMemoryAllocation);
	ck_assert_uint_lt(CUPTI_GET(record, API, start), CUPTI_GET(record, API, end));
	ck_assert_uint_eq(CUPTI_GET(record, API, correlationId), 1);
}
END_TEST

START_TEST(single_functions_can_be_recorded)
{
	const void *kernel;
	void *memory;

	client_open(_i);
	kernel = client_runtime_kernel("k");
	client_record(KERNEL, 0);
	ck_assert_int_eq(cupti.cuptiActivityEnableRuntimeApi(MALLOC, 1), CUPTI_SUCCESS);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 64), cudaSuccess);
	client_finish();
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_RUNTIME), 1);
	ck_assert_uint_eq(
		CUPTI_GET(client_entry(CUPTI_ACTIVITY_KIND_RUNTIME, 0), API, cbid), MALLOC);
}
END_TEST

START_TEST(single_functions_can_be_left_out)
{
	const void *kernel;
	void *memory;

	client_open(_i);
	kernel = client_runtime_kernel("k");
	client_record(CUPTI_ACTIVITY_KIND_RUNTIME, 0);
	ck_assert_int_eq(cupti.cuptiActivityEnableRuntimeApi(MALLOC, 0), CUPTI_SUCCESS);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 64), cudaSuccess);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_int_eq(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 64), cudaSuccess);
	client_flush(false);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_RUNTIME), 2);
	ck_assert_uint_eq(
		CUPTI_GET(client_entry(CUPTI_ACTIVITY_KIND_RUNTIME, 0), API, cbid), LAUNCH);
	ck_assert_uint_eq(
		CUPTI_GET(client_entry(CUPTI_ACTIVITY_KIND_RUNTIME, 1), API, cbid), MALLOC);
}
END_TEST

START_TEST(external_ids_precede_the_call)
{
	uint64_t last;
	void *memory;

	client_open(_i);
	client_kernel("k");
	client_record(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 0);
	cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 11);
	cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 22);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 64), cudaSuccess);
	cupti.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
	ck_assert_uint_eq(last, 11);
	ck_assert_int_eq(cupti.cuptiActivityPopExternalCorrelationId(
				 CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, NULL),
		CUPTI_ERROR_QUEUE_EMPTY);
	ck_assert_int_eq(cupti.cuptiActivityPushExternalCorrelationId(
				 CUPTI_EXTERNAL_CORRELATION_KIND_INVALID, 1),
		CUPTI_ERROR_INVALID_PARAMETER);
	client_flush(false);
	ck_assert_uint_eq(client.entry_count, 3);
	ck_assert_uint_eq(CUPTI_GET(client.entries[0].bytes, ExternalCorrelation, externalId), 11);
	ck_assert_uint_eq(CUPTI_GET(client.entries[1].bytes, ExternalCorrelation, externalId), 22);
	ck_assert_uint_eq(client.entries[2].kind, CUPTI_ACTIVITY_KIND_RUNTIME);
	ck_assert_uint_eq(CUPTI_GET(client.entries[0].bytes, ExternalCorrelation, correlationId),
		CUPTI_GET(client.entries[2].bytes, API, correlationId));
}
END_TEST

/* How many external records a call yields whose own record was switched off. */
static size_t external_of_left_out_call(int major)
{
	void *memory;

	client_open(major);
	client_kernel("k");
	client_record(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 0);
	cupti.cuptiActivityEnableRuntimeApi(MALLOC, 0);
	cupti.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 11);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 64), cudaSuccess);
	client_flush(false);
	return client_entries(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
}

START_TEST(calls_left_out_have_no_external_ids)
{
	ck_assert_uint_eq(external_of_left_out_call(_i), 0);
}
END_TEST

START_TEST(before_12_8_calls_left_out_had_external_ids)
{
	setenv("SIM_CUPTI_VERSION", "24", 1);
	ck_assert_uint_eq(external_of_left_out_call(_i), 1);
}
END_TEST

START_TEST(allocations_and_releases_are_recorded)
{
	const uint8_t *alloc, *release;
	void *memory;

	client_open(_i);
	client_kernel("k");
	client_record(CUPTI_ACTIVITY_KIND_MEMORY2, 0);
	client_enable(CUPTI_CB_DOMAIN_RUNTIME_API, MALLOC, 0);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 5000), cudaSuccess);
	ck_assert_int_eq(cuda.cudaFree(memory), cudaSuccess);
	client_flush(false);
	ck_assert_uint_eq(client.entry_count, 2);
	alloc = client.entries[0].bytes;
	release = client.entries[1].bytes;
	ck_assert_uint_eq(CUPTI_GET(alloc, Memory, memoryOperationType), 1);
	ck_assert_uint_eq(CUPTI_GET(release, Memory, memoryOperationType), 2);
	ck_assert_uint_eq(CUPTI_GET(alloc, Memory, memoryKind), CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
	ck_assert_uint_eq(CUPTI_GET(alloc, Memory, address), (uintptr_t)memory);
	ck_assert_uint_eq(CUPTI_GET(release, Memory, address), (uintptr_t)memory);
	ck_assert_uint_eq(CUPTI_GET(alloc, Memory, bytes), 5000);
	ck_assert_uint_eq(CUPTI_GET(release, Memory, bytes), 5000);
	ck_assert_uint_eq(CUPTI_GET(alloc, Memory, streamId), CUPTI_INVALID_STREAM_ID);
	ck_assert_uint_eq(CUPTI_GET(alloc, Memory, correlationId), 1);
	ck_assert_uint_eq(CUPTI_GET(alloc, Memory, isAsync), 0);
}
END_TEST

START_TEST(pool_memory_is_recorded_with_its_pool)
{
	const uint8_t *alloc;
	void *memory;

	client_open(_i);
	client_kernel("k");
	client_record(CUPTI_ACTIVITY_KIND_MEMORY2, 0);
	ck_assert_int_eq(cuda.cudaMallocAsync(&memory, 5000, NULL), cudaSuccess);
	ck_assert_int_eq(cuda.cudaFreeAsync(memory, NULL), cudaSuccess);
	client_finish();
	alloc = client_entry(CUPTI_ACTIVITY_KIND_MEMORY2, 0);
	ck_assert_uint_eq(CUPTI_GET(alloc, Memory, isAsync), 1);
	ck_assert_uint_eq(CUPTI_GET(alloc, Memory, streamId), 7);
	ck_assert_uint_eq(
		CUPTI_GET(alloc, Memory, poolType), CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL);
	ck_assert_uint_ne(CUPTI_GET(alloc, Memory, poolAddress), 0);
	ck_assert_uint_ge(CUPTI_GET(alloc, Memory, poolSize), 5000);
}
END_TEST

START_TEST(synchronising_is_recorded)
{
	const uint8_t *stream, *context;

	client_open(_i);
	client_kernel("k");
	client_record(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 0);
	ck_assert_int_eq(cuda.cudaStreamSynchronize(NULL), cudaSuccess);
	ck_assert_int_eq(cuda.cudaDeviceSynchronize(), cudaSuccess);
	client_flush(false);
	stream = client_entry(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 0);
	context = client_entry(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 1);
	ck_assert_uint_eq(CUPTI_GET(stream, Synchronization, type),
		CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
	ck_assert_uint_eq(CUPTI_GET(stream, Synchronization, streamId), 7);
	ck_assert_uint_eq(CUPTI_GET(context, Synchronization, type),
		CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
	ck_assert_uint_eq(CUPTI_GET(context, Synchronization, streamId), UINT32_MAX);
}
END_TEST

/* Records an event and waits for it, with the given kinds on. */
static void record_and_wait(int major, int kind, int other)
{
	cudaEvent_t event;

	client_open(major);
	client_kernel("k");
	ck_assert_int_eq(cuda.cudaEventCreate(&event), cudaSuccess);
	client_record(kind, other, 0);
	ck_assert_int_eq(cuda.cudaEventRecord(event, NULL), cudaSuccess);
	ck_assert_int_eq(cuda.cudaEventSynchronize(event), cudaSuccess);
	client_flush(false);
}

START_TEST(waits_name_the_record_of_their_event)
{
	const uint8_t *event, *wait;

	record_and_wait(_i, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
	event = client_entry(CUPTI_ACTIVITY_KIND_CUDA_EVENT, 0);
	wait = client_entry(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 0);
	ck_assert_uint_eq(CUPTI_GET(wait, Synchronization, type),
		CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
	ck_assert_uint_eq(CUPTI_GET(wait, Synchronization, cudaEventId),
		CUPTI_GET(event, CudaEvent, eventId));
	ck_assert_uint_eq(CUPTI_GET(wait, Synchronization, cudaEventSyncId),
		CUPTI_GET(event, CudaEvent, cudaEventSyncId));
	ck_assert_uint_ne(CUPTI_GET(event, CudaEvent, cudaEventSyncId), 0);
	/* Of CUPTI's releases only 12.8 and 12.9 measure it without being asked (release notes of
	 * 13.0, which made it an option that is off). */
	ck_assert_int_eq(CUPTI_GET(event, CudaEvent, deviceTimestamp) != 0, _i == 12);
}
END_TEST

START_TEST(synchronisation_alone_brings_no_events)
{
	record_and_wait(_i, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 0);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), 1);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_CUDA_EVENT), 0);
}
END_TEST

START_TEST(before_12_9_synchronisation_brought_events)
{
	setenv("SIM_CUPTI_VERSION", "26", 1);
	record_and_wait(_i, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 0);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_CUDA_EVENT), 1);
}
END_TEST

/* The results of the queries recorded of an event and a stream, each asked while a kernel runs and
 * afterwards. */
static size_t record_queries(int major, bool turn_off, uint32_t results[4])
{
	cudaEvent_t event;
	CUfunction kernel;
	size_t count;

	setenv("SIM_KERNEL_NS", "300000000", 1);
	client_open(major);
	kernel = client_kernel("k");
	ck_assert_int_eq(cuda.cudaEventCreate(&event), cudaSuccess);
	client_record(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 0);
	if (turn_off)
		ck_assert_int_eq(cupti.cuptiActivityEnableAllSyncRecords(0), CUPTI_SUCCESS);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cudaEventRecord(event, NULL), cudaSuccess);
	ck_assert_int_eq(cuda.cudaEventQuery(event), cudaErrorNotReady);
	ck_assert_int_eq(cuda.cudaStreamQuery(NULL), cudaErrorNotReady);
	usleep(400000);
	ck_assert_int_eq(cuda.cudaEventQuery(event), cudaSuccess);
	ck_assert_int_eq(cuda.cudaStreamQuery(NULL), cudaSuccess);
	client_flush(false);
	count = client_entries(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
	for (size_t i = 0; i < count && i < 4; i++)
		results[i] = CUPTI_GET(client_entry(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, i),
			Synchronization, returnValue);
	return count;
}

/* cupti_activity.h at cuptiActivityEnableAllSyncRecords: "By default, the record is generated for
 * all CUDA events and stream irrespective of whether the operations have been completed". */
START_TEST(queries_are_recorded_whatever_they_find)
{
	uint32_t results[4];

	ck_assert_uint_eq(record_queries(_i, false, results), 4);
	ck_assert_uint_eq(results[0], 600);
	ck_assert_uint_eq(results[1], 600);
	ck_assert_uint_eq(results[2] + results[3], 0);
}
END_TEST

START_TEST(queries_that_found_work_unfinished_can_be_left_out)
{
	uint32_t results[4];

	ck_assert_uint_eq(record_queries(_i, true, results), 2);
	ck_assert_uint_eq(results[0] + results[1], 0);
}
END_TEST

START_TEST(before_12_8_queries_that_found_work_unfinished_left_no_record)
{
	uint32_t results[4];

	setenv("SIM_CUPTI_VERSION", "24", 1);
	ck_assert_uint_eq(record_queries(_i, false, results), 2);
}
END_TEST

START_TEST(queries_can_leave_no_record_at_all)
{
	uint32_t results[4];

	setenv("SIM_CUPTI_QUERIES", "none", 1);
	ck_assert_uint_eq(record_queries(_i, false, results), 0);
}
END_TEST

START_TEST(events_have_device_times_on_demand)
{
	uint64_t before = realtime_ns();
	cudaEvent_t event;
	CUfunction kernel;

	setenv("SIM_KERNEL_NS", "1000000000", 1);
	client_open(_i);
	kernel = client_kernel("k");
	ck_assert_int_eq(cuda.cudaEventCreate(&event), cudaSuccess);
	ck_assert_int_eq(cupti.cuptiActivityEnableCudaEventDeviceTimestamps != NULL, _i == 13);
	if (_i == 13) /* before, they were always on */
		ck_assert_int_eq(
			cupti.cuptiActivityEnableCudaEventDeviceTimestamps(1), CUPTI_SUCCESS);
	client_record(CUPTI_ACTIVITY_KIND_CUDA_EVENT, 0);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cudaEventRecord(event, NULL), cudaSuccess);
	client_flush(false);
	ck_assert_uint_eq(client.entry_count, 0);
	client_finish();
	ck_assert_uint_ge(CUPTI_GET(client_entry(CUPTI_ACTIVITY_KIND_CUDA_EVENT, 0), CudaEvent,
				  deviceTimestamp),
		before + 1000000000);
}
END_TEST

START_TEST(overheads_are_recorded)
{
	bool load = false, request = false;
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, CUPTI_ACTIVITY_KIND_OVERHEAD, 0);
	client_launch(kernel, NULL, 1);
	client_launch(kernel, NULL, 1);
	client_finish();
	for (size_t i = 0; i < client_entries(CUPTI_ACTIVITY_KIND_OVERHEAD); i++) {
		const uint8_t *record = client_entry(CUPTI_ACTIVITY_KIND_OVERHEAD, i);
		uint32_t kind = CUPTI_GET(record, Overhead, overheadKind);

		ck_assert(!load || kind != CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
		load = load || kind == CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING;
		request = request || kind == CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST;
		ck_assert_uint_le(
			CUPTI_GET(record, Overhead, start), CUPTI_GET(record, Overhead, end));
	}
	ck_assert(load && request);
}
END_TEST

START_TEST(an_early_client_gets_the_devices)
{
	client_open(_i);
	client_record(CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT, 0);
	client_kernel("k");
	client_flush(false);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_DEVICE), 1);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_CONTEXT), 1);
	ck_assert_str_eq(CUPTI_GET(client_entry(CUPTI_ACTIVITY_KIND_DEVICE, 0), Device, name),
		"pperf simulated device");
}
END_TEST

START_TEST(a_late_client_gets_them_only_by_a_dump)
{
	cudaStream_t stream;

	client_open(_i);
	client_kernel("k");
	ck_assert_int_eq(
		cuda.cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1), cudaSuccess);
	client_record(CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT,
		CUPTI_ACTIVITY_KIND_STREAM, 0);
	client_flush(false);
	ck_assert_uint_eq(client.entry_count, 0);
	ck_assert_int_eq(
		cupti.cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_DEVICE), CUPTI_SUCCESS);
	ck_assert_int_eq(
		cupti.cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT), CUPTI_SUCCESS);
	ck_assert_int_eq(
		cupti.cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_STREAM), CUPTI_SUCCESS);
	client_flush(false);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_DEVICE), 1);
	ck_assert_uint_eq(
		CUPTI_GET(client_entry(CUPTI_ACTIVITY_KIND_CONTEXT, 0), Context, nullStreamId), 7);
	ck_assert_uint_ge(client_entries(CUPTI_ACTIVITY_KIND_STREAM), 1);
}
END_TEST

static void *allocate(void *unused)
{
	void *memory;

	cuda.cudaSetDevice(0);
	cuda.cudaMalloc(&memory, 64);
	return unused;
}

/* How many buffers two threads ask for that make one call each. */
static size_t requests_of_two_threads(int major, const uint8_t *per_thread)
{
	size_t bytes = 1;
	pthread_t thread;

	client_open(major);
	client_kernel("k");
	if (per_thread)
		ck_assert_int_eq(cupti.cuptiActivitySetAttribute(
					 CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &bytes,
					 (void *)(uintptr_t)per_thread),
			CUPTI_SUCCESS);
	client_record(CUPTI_ACTIVITY_KIND_RUNTIME, 0);
	allocate(NULL);
	pthread_create(&thread, NULL, allocate, NULL);
	pthread_join(thread, NULL);
	return client.requests;
}

START_TEST(buffers_are_per_thread_from_13_on)
{
	ck_assert_uint_eq(requests_of_two_threads(_i, NULL), _i == 13 ? 2 : 1);
}
END_TEST

START_TEST(buffers_are_per_thread_on_demand)
{
	ck_assert_uint_eq(requests_of_two_threads(_i, &(uint8_t){ 1 }), 2);
}
END_TEST

START_TEST(a_new_thread_goes_on_with_a_dead_ones_buffer)
{
	pthread_t thread;

	client_open(_i);
	client_kernel("k");
	client_record(CUPTI_ACTIVITY_KIND_RUNTIME, 0);
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, allocate, NULL);
		pthread_join(thread, NULL);
	}
	client_flush(false);
	ck_assert_uint_eq(client.requests, 1);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_RUNTIME), 40);
}
END_TEST

START_TEST(attributes_have_defaults_and_sizes)
{
	size_t value = 0, bytes = sizeof value;
	uint8_t small;

	client_open(_i);
	ck_assert_int_eq(cupti.cuptiActivityGetAttribute(
				 CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value),
		CUPTI_SUCCESS);
	ck_assert_uint_eq(value, 3200000);
	bytes = sizeof small;
	ck_assert_int_eq(cupti.cuptiActivityGetAttribute(
				 CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &small),
		CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
	ck_assert_int_eq(
		cupti.cuptiActivityGetAttribute((CUpti_ActivityAttribute)99, &bytes, &small),
		CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(kinds_that_do_not_exist_are_refused)
{
	client_open(_i);
	ck_assert_int_eq(
		cupti.cuptiActivityEnable((CUpti_ActivityKind)0), CUPTI_ERROR_INVALID_KIND);
	ck_assert_int_eq(
		cupti.cuptiActivityEnable((CUpti_ActivityKind)63), CUPTI_ERROR_INVALID_KIND);
	ck_assert_int_eq(
		cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EVENT), CUPTI_ERROR_NOT_COMPATIBLE);
	ck_assert_int_eq(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING),
		_i == 13 ? CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED : CUPTI_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(cupti.cuptiActivityEnableHWTrace(1), CUPTI_ERROR_NOT_SUPPORTED);
}
END_TEST

START_TEST(disabled_kinds_and_contexts_record_nothing)
{
	CUcontext context;
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	ck_assert_int_eq(cupti.cuptiActivityDisableContext(context, KERNEL), CUPTI_SUCCESS);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cupti.cuptiActivityEnableContext(context, KERNEL), CUPTI_SUCCESS);
	ck_assert_int_eq(cupti.cuptiActivityDisable(KERNEL), CUPTI_SUCCESS);
	client_launch(kernel, NULL, 1);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), 2);
}
END_TEST

START_TEST(no_records_without_buffer_callbacks)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	ck_assert_int_eq(cupti.cuptiActivityEnable(KERNEL), CUPTI_SUCCESS);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
	client_record(0);
	client_flush(true);
	ck_assert_uint_eq(client.entry_count, 0);
}
END_TEST

static size_t strange_buffers;

static void CUPTIAPI take_strange(
	CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	never(context, stream, buffer, size, valid);
	strange_buffers++;
}

static void CUPTIAPI give_none(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = NULL;
	*size = *records = 0;
}

/* What happens to us when torch.profiler registers callbacks of its own. */
START_TEST(the_last_registered_callbacks_get_all_buffers)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
	usleep(50000);
	ck_assert_int_eq(
		cupti.cuptiActivityRegisterCallbacks(give_none, take_strange), CUPTI_SUCCESS);
	client_flush(false);
	ck_assert_uint_eq(client.requests, 1);
	ck_assert_uint_eq(client.buffer_count, 0);
	ck_assert_uint_eq(strange_buffers, 1);
}
END_TEST

START_TEST(nothing_comes_after_finalize)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client_enable(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 0);
	client_record(KERNEL, 0);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cupti.cuptiFinalize(), CUPTI_SUCCESS);
	client_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
	usleep(30000);
	ck_assert_uint_eq(client.event_count, 2);
	ck_assert_uint_eq(client.buffer_count, 0);
}
END_TEST

START_TEST(records_have_no_holes_between_them)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	client_record(KERNEL, 0);
	for (int i = 0; i < 5; i++)
		client_launch(kernel, NULL, 1);
	client_finish();
	ck_assert_uint_eq(bytes_a_record(), _i == 13 ? 216 : 208);
}
END_TEST

START_TEST(many_threads_lose_nothing)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];

	client_open(_i);
	client_kernel("k");
	client.buffer_bytes = 512;
	client_record(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_MEMORY2, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, allocate, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	client_flush(true);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_RUNTIME), THREADS * 2);
	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_MEMORY2), THREADS);
	ck_assert_uint_eq(client.dropped, 0);
}
END_TEST

static void *launch_many(void *kernel)
{
	cuda.cudaSetDevice(0);
	for (int i = 0; i < 500; i++)
		client_launch((CUfunction)kernel, NULL, 1);
	return NULL;
}

static void *flush_often(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {
		cupti.cuptiActivityFlushAll(0);
		usleep(500);
	}
	return NULL;
}

/* Every launch has an id of its own, and one record with it. */
static void check_ids(uint32_t launches)
{
	uint8_t *seen = calloc(launches + 1, 1);

	for (size_t i = 0; i < launches; i++) {
		uint32_t id = CUPTI_GET(client_entry(KERNEL, i), Kernel, correlationId);

		ck_assert_uint_le(id, launches);
		ck_assert_uint_eq(seen[id], 0);
		seen[id] = 1;
	}
	free(seen);
}

START_TEST(launching_threads_and_a_flushing_one_lose_nothing)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS], flusher;
	CUfunction kernel;
	int stop = 0;

	setenv("SIM_KERNEL_NS", "1000", 1);
	client_open(_i);
	kernel = client_kernel("k");
	client_enable(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 0);
	client.buffer_bytes = 4096;
	client_record(KERNEL, 0);
	pthread_create(&flusher, NULL, flush_often, &stop);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, launch_many, kernel);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(flusher, NULL);
	client_finish();
	ck_assert_uint_eq(client_entries(KERNEL), THREADS * 500);
	ck_assert_uint_eq(
		client_events(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
		THREADS * 1000);
	ck_assert_uint_eq(client.dropped, 0);
	check_ids(THREADS * 500);
}
END_TEST

static void add_delivery(TCase *both)
{
#define BOTH(test) tcase_add_loop_test(both, test, 12, 14);
	BOTH(nothing_comes_before_it_is_flushed)
	BOTH(a_flush_leaves_running_work_alone)
	BOTH(a_forced_flush_hands_out_incomplete_records)
	BOTH(a_flush_needs_buffer_callbacks)
	BOTH(full_buffers_come_from_cuptis_thread)
	BOTH(a_periodic_flush_hands_out_only_full_buffers)
	BOTH(calls_ask_for_buffers_on_their_own_thread)
	BOTH(a_buffer_holds_as_many_records_as_the_client_says)
	BOTH(what_finds_no_buffer_is_counted_and_reported)
	BOTH(streams_are_in_order_but_not_among_each_other)
	BOTH(buffers_are_per_thread_from_13_on)
	BOTH(buffers_are_per_thread_on_demand)
	BOTH(a_new_thread_goes_on_with_a_dead_ones_buffer)
	BOTH(records_have_no_holes_between_them)
	BOTH(many_threads_lose_nothing)
	BOTH(launching_threads_and_a_flushing_one_lose_nothing)
	BOTH(no_records_without_buffer_callbacks)
	BOTH(nothing_comes_after_finalize)
	BOTH(the_last_registered_callbacks_get_all_buffers)
	tcase_add_loop_test_raise_signal(both, before_12_9_no_buffer_is_a_crash, SIGSEGV, 12, 14);
	tcase_add_loop_test_raise_signal(
		both, calling_cupti_from_a_buffer_callback_aborts, SIGABRT, 12, 14);
}

static void add_kinds(TCase *both)
{
	BOTH(times_are_of_the_realtime_clock)
	BOTH(a_timestamp_callback_gives_all_times)
	BOTH(before_13_1_a_timestamp_callback_can_take_the_times_of_kernels)
	BOTH(latency_stamps_only_where_enabled)
	BOTH(calls_are_recorded_with_their_thread)
	BOTH(single_functions_can_be_recorded)
	BOTH(single_functions_can_be_left_out)
	BOTH(external_ids_precede_the_call)
	BOTH(calls_left_out_have_no_external_ids)
	BOTH(before_12_8_calls_left_out_had_external_ids)
	BOTH(allocations_and_releases_are_recorded)
	BOTH(pool_memory_is_recorded_with_its_pool)
	BOTH(synchronising_is_recorded)
	BOTH(waits_name_the_record_of_their_event)
	BOTH(synchronisation_alone_brings_no_events)
	BOTH(before_12_9_synchronisation_brought_events)
	BOTH(queries_are_recorded_whatever_they_find)
	BOTH(queries_that_found_work_unfinished_can_be_left_out)
	BOTH(before_12_8_queries_that_found_work_unfinished_left_no_record)
	BOTH(queries_can_leave_no_record_at_all)
	BOTH(events_have_device_times_on_demand)
	BOTH(overheads_are_recorded)
	BOTH(an_early_client_gets_the_devices)
	BOTH(a_late_client_gets_them_only_by_a_dump)
	BOTH(attributes_have_defaults_and_sizes)
	BOTH(kinds_that_do_not_exist_are_refused)
	BOTH(disabled_kinds_and_contexts_record_nothing)
}

int main(void)
{
	Suite *suite = suite_create("cupti activity");
	TCase *delivery = tcase_create("delivery"), *kinds = tcase_create("kinds");

	tcase_set_timeout(delivery, 20);
	tcase_set_timeout(kinds, 20);
	add_delivery(delivery);
	add_kinds(kinds);
	suite_add_tcase(suite, delivery);
	suite_add_tcase(suite, kinds);
	return client_run(suite);
}
