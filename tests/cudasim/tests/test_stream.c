/* The simulated runtime's streams and events: what waits for what, and what does not. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "tests/check_cuda.h"

KERNEL(work)

#define KERNEL_MS \
	500 /* what a kernel takes in these tests; long, so that a busy machine does not matter */

static cudaStream_t new_stream(unsigned flags)
{
	cudaStream_t stream;

	OK(cudaStreamCreateWithFlags(&stream, flags));
	return stream;
}

static cudaEvent_t new_event(void)
{
	cudaEvent_t event;

	OK(cudaEventCreate(&event));
	return event;
}

static void launch(cudaStream_t stream)
{
	OK(LAUNCH(work, 1, 32, 0, stream, NULL, 0));
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

START_TEST(a_launch_returns_before_the_work_is_done)
{
	cudaStream_t stream = new_stream(0);
	double start = now_ms();

	launch(stream);
	FAILS(cudaStreamQuery(stream), cudaErrorNotReady);
	FAILS(cudaPeekAtLastError(), cudaSuccess);
	OK(cudaStreamSynchronize(stream));
	ck_assert_double_ge(now_ms() - start, KERNEL_MS);
	OK(cudaStreamQuery(stream));
}
END_TEST

START_TEST(streams_run_side_by_side)
{
	cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
	double start = now_ms();

	launch(a);
	launch(b);
	OK(cudaDeviceSynchronize());
	ck_assert_double_lt(now_ms() - start, 2 * KERNEL_MS);
}
END_TEST

START_TEST(work_of_one_stream_runs_in_order)
{
	cudaStream_t stream = new_stream(0);
	double start = now_ms();

	launch(stream);
	launch(stream);
	OK(cudaStreamSynchronize(stream));
	ck_assert_double_ge(now_ms() - start, 2 * KERNEL_MS);
}
END_TEST

START_TEST(the_legacy_stream_and_the_blocking_ones_wait_for_each_other)
{
	cudaStream_t blocking = new_stream(0), free_running = new_stream(cudaStreamNonBlocking);

	launch(0);
	FAILS(cudaStreamQuery(blocking), cudaErrorNotReady);
	OK(cudaStreamQuery(free_running));
	OK(cudaDeviceSynchronize());
	launch(blocking);
	FAILS(cudaStreamQuery(0), cudaErrorNotReady);
	OK(cudaDeviceSynchronize());
	launch(free_running);
	OK(cudaStreamQuery(0));
}
END_TEST

START_TEST(events_measure_what_is_between)
{
	cudaStream_t stream = new_stream(0);
	cudaEvent_t start = new_event(), end = new_event();
	float ms;

	OK(cudaEventRecord(start, stream));
	launch(stream);
	OK(cudaEventRecord(end, stream));
	FAILS(cudaEventQuery(end), cudaErrorNotReady);
	FAILS(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
	OK(cudaEventSynchronize(end));
	OK(cudaEventElapsedTime(&ms, start, end));
	ck_assert_double_ge((double)ms, KERNEL_MS - 0.1);
	ck_assert_double_lt((double)ms, KERNEL_MS + 1);
}
END_TEST

START_TEST(events_without_a_record_have_happened_and_have_no_time)
{
	cudaEvent_t never = new_event(), untimed;
	float ms;

	OK(cudaEventQuery(never));
	OK(cudaEventSynchronize(never));
	FAILS(cudaEventElapsedTime(&ms, never, never), cudaErrorInvalidResourceHandle);
	OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	OK(cudaEventRecord(untimed, 0));
	OK(cudaEventSynchronize(untimed));
	FAILS(cudaEventElapsedTime(&ms, untimed, untimed), cudaErrorInvalidResourceHandle);
}
END_TEST

START_TEST(a_stream_waits_for_an_event_of_another)
{
	cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
	cudaEvent_t event = new_event();
	double start = now_ms();

	launch(a);
	OK(cudaEventRecord(event, a));
	OK(cudaStreamWaitEvent(b, event, 0));
	launch(b);
	OK(cudaStreamSynchronize(b));
	ck_assert_double_ge(now_ms() - start, 2 * KERNEL_MS);
}
END_TEST

START_TEST(freeing_memory_waits_for_the_device)
{
	cudaStream_t stream = new_stream(cudaStreamNonBlocking);
	void *memory;

	OK(cudaMalloc(&memory, 4096));
	launch(stream);
	OK(cudaFree(memory));
	OK(cudaStreamQuery(stream));
}
END_TEST

START_TEST(synchronous_copies_wait_and_pinned_asynchronous_ones_do_not)
{
	cudaStream_t stream = new_stream(cudaStreamNonBlocking);
	char pageable[64];
	void *device, *pinned;

	OK(cudaMalloc(&device, 64));
	OK(cudaMallocHost(&pinned, 64));
	launch(stream);
	OK(cudaMemcpyAsync(pinned, device, 64, cudaMemcpyDeviceToHost, stream));
	FAILS(cudaStreamQuery(stream), cudaErrorNotReady);
	OK(cudaMemcpyAsync(pageable, device, 64, cudaMemcpyDeviceToHost, stream));
	OK(cudaStreamQuery(stream));
	launch(0);
	OK(cudaMemcpy(pinned, device, 64, cudaMemcpyDeviceToHost));
	OK(cudaStreamQuery(0));
}
END_TEST

START_TEST(destroyed_handles_are_refused)
{
	cudaStream_t stream = new_stream(0);
	cudaEvent_t event = new_event();

	OK(cudaStreamDestroy(stream));
	FAILS(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
	FAILS(cudaStreamDestroy(0), cudaErrorInvalidResourceHandle);
	OK(cudaEventDestroy(event));
	FAILS(cudaEventRecord(event, 0), cudaErrorInvalidResourceHandle);
}
END_TEST

START_TEST(priorities_are_clamped_and_flags_kept)
{
	cudaStream_t stream;
	int least, greatest, priority;
	unsigned flags;

	OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	ck_assert_int_gt(least, greatest);
	OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -100));
	OK(cudaStreamGetPriority(stream, &priority));
	ck_assert_int_eq(priority, greatest);
	OK(cudaStreamGetFlags(stream, &flags));
	ck_assert_uint_eq(flags, cudaStreamNonBlocking);
}
END_TEST

static pthread_t host_thread;
static int host_calls;

static void host_call(void *data)
{
	host_thread = pthread_self();
	usleep(30000);
	__atomic_add_fetch((int *)data, 1, __ATOMIC_SEQ_CST);
}

START_TEST(host_functions_run_in_stream_order_on_another_thread)
{
	cudaStream_t stream = new_stream(0);
	double start = now_ms();

	launch(stream);
	OK(cudaLaunchHostFunc(stream, host_call, &host_calls));
	ck_assert_int_eq(__atomic_load_n(&host_calls, __ATOMIC_SEQ_CST), 0);
	FAILS(cudaStreamQuery(stream), cudaErrorNotReady);
	OK(cudaStreamSynchronize(stream));
	ck_assert_int_eq(__atomic_load_n(&host_calls, __ATOMIC_SEQ_CST), 1);
	ck_assert_double_ge(now_ms() - start, KERNEL_MS + 30);
	ck_assert(!pthread_equal(host_thread, pthread_self()));
}
END_TEST

static void CUDART_CB stream_callback(cudaStream_t stream, cudaError_t status, void *data)
{
	(void)stream;
	if (status == cudaSuccess)
		host_call(data);
}

START_TEST(stream_callbacks_and_event_waits_know_of_host_functions)
{
	cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
	cudaEvent_t event = new_event();

	OK(cudaStreamAddCallback(a, stream_callback, &host_calls, 0));
	OK(cudaEventRecord(event, a));
	OK(cudaStreamWaitEvent(b, event, 0));
	OK(cudaStreamSynchronize(b));
	ck_assert_int_eq(__atomic_load_n(&host_calls, __ATOMIC_SEQ_CST), 1);
}
END_TEST

static void *own_id(void *id)
{
	OK(cudaStreamGetId(cudaStreamPerThread, id));
	return NULL;
}

START_TEST(each_thread_has_a_default_stream_of_its_own)
{
	unsigned long long mine, again, others, legacy;
	pthread_t thread;

	own_id(&mine);
	own_id(&again);
	OK(cudaStreamGetId(0, &legacy));
	pthread_create(&thread, NULL, own_id, &others);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(mine, again);
	ck_assert_uint_ne(mine, others);
	ck_assert_uint_ne(mine, legacy);
}
END_TEST

static void *launch_many(void *unused)
{
	cudaStream_t stream = new_stream(cudaStreamNonBlocking);
	cudaEvent_t event = new_event();
	void *memory;

	for (int i = 0; i < 200; i++) {
		OK(cudaMalloc(&memory, 4096));
		OK(cudaMemsetAsync(memory, i, 4096, stream));
		OK(cudaEventRecord(event, stream));
		OK(cudaStreamWaitEvent(cudaStreamPerThread, event, 0));
		OK(cudaFree(memory));
	}
	OK(cudaStreamDestroy(stream));
	return unused;
}

START_TEST(sixteen_threads_may_call_at_once)
{
	pthread_t threads[16];

	for (int i = 0; i < 16; i++)
		pthread_create(&threads[i], NULL, launch_many, NULL);
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	OK(cudaDeviceSynchronize());
}
END_TEST

/* The library reads its settings when it is loaded: so they must be there before this process
 * starts. */
__attribute__((constructor)) static void slow_kernels(void)
{
	if (getenv("SIM_KERNEL_NS"))
		return;
	setenv("SIM_KERNEL_NS", "500000000", 1);
	execl("/proc/self/exe", "test_stream", (char *)NULL);
}

SUITE("cudasim streams", a_launch_returns_before_the_work_is_done, streams_run_side_by_side,
	work_of_one_stream_runs_in_order,
	the_legacy_stream_and_the_blocking_ones_wait_for_each_other, events_measure_what_is_between,
	events_without_a_record_have_happened_and_have_no_time,
	a_stream_waits_for_an_event_of_another, freeing_memory_waits_for_the_device,
	synchronous_copies_wait_and_pinned_asynchronous_ones_do_not, destroyed_handles_are_refused,
	priorities_are_clamped_and_flags_kept, host_functions_run_in_stream_order_on_another_thread,
	stream_callbacks_and_event_waits_know_of_host_functions,
	each_thread_has_a_default_stream_of_its_own, sixteen_threads_may_call_at_once)
