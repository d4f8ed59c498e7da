/*
 * The simulated CUPTI's callbacks: one subscriber, single ids, nesting, correlation ids, resources.
 * Every test runs for CUDA 12 and 13; `_i` is the major.
 */
#include "tests/cupti_client.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define LAUNCH CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000
#define MALLOC CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020
#define DRIVER_LAUNCH CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel
#define DRIVER_MALLOC CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2
#define RUNTIME CUPTI_CB_DOMAIN_RUNTIME_API
#define DRIVER CUPTI_CB_DOMAIN_DRIVER_API
#define RESOURCE CUPTI_CB_DOMAIN_RESOURCE

static void CUPTIAPI ignore(
	void *user_data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
	(void)user_data;
	(void)domain;
	(void)cbid;
	(void)data;
}

START_TEST(the_version_is_that_of_the_last_release)
{
	uint32_t version;

	client_load(_i);
	ck_assert_int_eq(cupti.cuptiGetVersion(&version), CUPTI_SUCCESS);
	ck_assert_uint_eq(version, _i == 12 ? 28 : 130001);
	ck_assert_int_eq(cupti.cuptiGetVersion(NULL), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(symbols_have_the_version_node_of_the_library)
{
	char node[32];

	client_load(_i);
	snprintf(node, sizeof node, "libcupti.so.%d", _i);
	ck_assert(dlvsym(RTLD_DEFAULT, "cuptiSubscribe", node) ==
		  (void *)(uintptr_t)cupti.cuptiSubscribe);
	ck_assert_ptr_null(dlvsym(RTLD_DEFAULT, "cuptiSubscribe", "libcupti.so.11"));
}
END_TEST

START_TEST(only_13_has_subscribe_v2)
{
	client_load(_i);
	ck_assert_int_eq(cupti.cuptiSubscribe_v2 != NULL, _i == 13);
}
END_TEST

START_TEST(a_version_lacks_what_came_later)
{
	setenv("SIM_CUPTI_VERSION", "19", 1);
	client_load(_i);
	ck_assert(!cupti.cuptiGetErrorMessage);
	ck_assert(!cupti.cuptiGetGraphExecId);
	ck_assert(!cupti.cuptiActivityEnableRuntimeApi);
	ck_assert(!cupti.cuptiActivityEnableAllSyncRecords);
	ck_assert(!cupti.cuptiActivityEnableHWTrace);
}
END_TEST

START_TEST(the_release_has_what_came_before_it)
{
	client_load(_i);
	ck_assert(cupti.cuptiGetErrorMessage);
	ck_assert(cupti.cuptiGetGraphExecId);
	ck_assert(cupti.cuptiActivityEnableRuntimeApi);
	ck_assert(cupti.cuptiActivityEnableAllSyncRecords);
}
END_TEST

START_TEST(a_second_subscriber_is_refused)
{
	CUpti_SubscriberHandle second;

	client_open(_i);
	ck_assert_int_eq(cupti.cuptiSubscribe(&second, ignore, NULL),
		CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	ck_assert_int_eq(cupti.cuptiUnsubscribe(client.subscriber), CUPTI_SUCCESS);
	ck_assert_int_eq(cupti.cuptiSubscribe(&second, ignore, NULL), CUPTI_SUCCESS);
}
END_TEST

START_TEST(old_releases_tell_it_by_another_code)
{
	CUpti_SubscriberHandle second;

	setenv("SIM_CUPTI_VERSION", "19", 1);
	client_open(_i);
	ck_assert_int_eq(
		cupti.cuptiSubscribe(&second, ignore, NULL), CUPTI_ERROR_MAX_LIMIT_REACHED);
}
END_TEST

START_TEST(subscribe_v2_names_the_first_subscriber)
{
	char old[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
	CUpti_SubscriberHandle handle;
	CUpti_SubscriberParams params = {
		.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
		.subscriberName = "first",
		.oldSubscriberName = old,
		.oldSubscriberSize = sizeof old,
	};

	client_load(13);
	ck_assert_int_eq(cupti.cuptiSubscribe_v2(&handle, ignore, NULL, &params), CUPTI_SUCCESS);
	ck_assert_str_eq(old, "");
	ck_assert_int_eq(cupti.cuptiSubscribe_v2(&handle, ignore, NULL, &params),
		CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	ck_assert_str_eq(old, "CUPTI for first");
}
END_TEST

START_TEST(only_what_is_enabled_calls_back)
{
	const void *kernel;

	client_open(_i);
	kernel = client_runtime_kernel("k");
	client_enable(RUNTIME, LAUNCH, 0);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_uint_eq(client.event_count, 2);
	ck_assert_int_eq(
		cupti.cuptiEnableCallback(0, client.subscriber, RUNTIME, LAUNCH), CUPTI_SUCCESS);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_uint_eq(client.event_count, 2);
}
END_TEST

START_TEST(an_unsubscribed_client_hears_nothing)
{
	const void *kernel;

	client_open(_i);
	kernel = client_runtime_kernel("k");
	client_enable(RUNTIME, LAUNCH, 0);
	ck_assert_int_eq(cupti.cuptiUnsubscribe(client.subscriber), CUPTI_SUCCESS);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_uint_eq(client.event_count, 0);
	ck_assert_int_eq(cupti.cuptiUnsubscribe(client.subscriber), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(the_state_of_a_callback_can_be_queried)
{
	uint32_t enabled = 7;

	client_open(_i);
	ck_assert_int_eq(cupti.cuptiGetCallbackState(&enabled, client.subscriber, RUNTIME, LAUNCH),
		CUPTI_SUCCESS);
	ck_assert_uint_eq(enabled, 0);
	ck_assert_int_eq(cupti.cuptiEnableAllDomains(1, client.subscriber), CUPTI_SUCCESS);
	ck_assert_int_eq(cupti.cuptiGetCallbackState(&enabled, client.subscriber, RUNTIME, LAUNCH),
		CUPTI_SUCCESS);
	ck_assert_uint_ne(enabled, 0);
	ck_assert_int_eq(cupti.cuptiEnableDomain(0, client.subscriber, RUNTIME), CUPTI_SUCCESS);
	ck_assert_int_eq(cupti.cuptiGetCallbackState(&enabled, client.subscriber, RUNTIME, LAUNCH),
		CUPTI_SUCCESS);
	ck_assert_uint_eq(enabled, 0);
	ck_assert_int_eq(
		cupti.cuptiGetCallbackState(&enabled, client.subscriber, DRIVER, DRIVER_LAUNCH),
		CUPTI_SUCCESS);
	ck_assert_uint_ne(enabled, 0);
}
END_TEST

START_TEST(what_does_not_exist_cannot_be_enabled)
{
	client_open(_i);
	ck_assert_int_eq(cupti.cuptiEnableCallback(1, client.subscriber, RUNTIME, 1000),
		CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(cupti.cuptiEnableCallback(1, client.subscriber, RUNTIME, 505),
		_i == 13 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(
		cupti.cuptiEnableCallback(1, client.subscriber, (CUpti_CallbackDomain)9, 1),
		CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(
		cupti.cuptiEnableCallback(1, NULL, RUNTIME, LAUNCH), CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(cupti.cuptiEnableDomain(1, NULL, RUNTIME), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(the_state_domain_came_with_12_2)
{
	setenv("SIM_CUPTI_VERSION", "19", 1);
	client_open(_i);
	ck_assert_int_eq(cupti.cuptiEnableCallback(1, client.subscriber, CUPTI_CB_DOMAIN_STATE, 1),
		CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(enter_and_exit_share_data_and_id)
{
	const struct event *enter, *leave;
	const void *kernel;

	client_open(_i);
	kernel = client_runtime_kernel("_Z3addPf");
	client_enable(RUNTIME, LAUNCH, 0);
	client_runtime_launch(kernel, NULL, 1);
	enter = client_api(RUNTIME, LAUNCH, CUPTI_API_ENTER, 0);
	leave = client_api(RUNTIME, LAUNCH, CUPTI_API_EXIT, 0);
	ck_assert_uint_eq(enter->correlation, leave->correlation);
	ck_assert_uint_eq(leave->data, enter->order + 1);
	ck_assert_str_eq(enter->name, "cudaLaunchKernel");
	ck_assert_str_eq(enter->symbol, "_Z3addPf");
	ck_assert(enter->has_params);
	ck_assert_int_eq(enter->tid, client_tid());
}
END_TEST

START_TEST(the_result_is_known_at_exit)
{
	void *memory;

	client_open(_i);
	client_enable(RUNTIME, MALLOC, 0);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, (size_t)1 << 50), cudaErrorMemoryAllocation);
	ck_assert_int_eq(
		client_api(RUNTIME, MALLOC, CUPTI_API_EXIT, 0)->result, cudaErrorMemoryAllocation);
}
END_TEST

/* cupti_callbacks.h: "This entry is valid only for driver and runtime launch callbacks". */
START_TEST(a_call_that_launches_nothing_has_no_symbol)
{
	void *memory;

	client_open(_i);
	client_enable(RUNTIME, MALLOC, 0);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 1024), cudaSuccess);
	ck_assert(!client_api(RUNTIME, MALLOC, CUPTI_API_ENTER, 0)->symbol_is_valid);
	ck_assert(!client_api(RUNTIME, MALLOC, CUPTI_API_EXIT, 0)->symbol_is_valid);
}
END_TEST

START_TEST(runtime_calls_nest_driver_calls)
{
	const void *kernel;

	client_open(_i);
	kernel = client_runtime_kernel("k");
	client_runtime_launch(kernel, NULL, 1);
	client_enable(RUNTIME, LAUNCH, 0);
	client_enable(DRIVER, DRIVER_LAUNCH, 0);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_uint_eq(client.event_count, 4);
	ck_assert_uint_eq(client_api(RUNTIME, LAUNCH, CUPTI_API_ENTER, 0)->order, 0);
	ck_assert_uint_eq(client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_ENTER, 0)->order, 1);
	ck_assert_uint_eq(client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_EXIT, 0)->order, 2);
	ck_assert_uint_eq(client_api(RUNTIME, LAUNCH, CUPTI_API_EXIT, 0)->order, 3);
}
END_TEST

START_TEST(ids_count_traced_calls_from_1)
{
	const void *kernel;
	void *memory;

	client_open(_i);
	kernel = client_runtime_kernel("k");
	client_enable(RUNTIME, LAUNCH, 0);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cudaMalloc(&memory, 64), cudaSuccess);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_uint_eq(client_api(RUNTIME, LAUNCH, CUPTI_API_ENTER, 0)->correlation, 1);
	ck_assert_uint_eq(client_api(RUNTIME, LAUNCH, CUPTI_API_ENTER, 1)->correlation, 2);
}
END_TEST

START_TEST(traced_driver_calls_have_ids_of_their_own)
{
	const void *kernel;

	client_open(_i);
	kernel = client_runtime_kernel("k");
	client_enable(RUNTIME, LAUNCH, 0);
	client_enable(DRIVER, DRIVER_LAUNCH, 0);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_uint_eq(client_api(RUNTIME, LAUNCH, CUPTI_API_ENTER, 0)->correlation, 1);
	ck_assert_uint_eq(client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_ENTER, 0)->correlation, 2);
}
END_TEST

START_TEST(ids_restart_when_the_subscriber_leaves)
{
	const void *kernel;

	client_open(_i);
	kernel = client_runtime_kernel("k");
	client_record(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME, 0);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_int_eq(cupti.cuptiUnsubscribe(client.subscriber), CUPTI_SUCCESS);
	client_runtime_launch(kernel, NULL, 1);
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
	client_flush(false);
	ck_assert_uint_eq(CUPTI_GET(client_entry(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1), Kernel,
				  correlationId),
		1);
}
END_TEST

/* The id that a kernel record carries, with callbacks of the given domains on. */
static uint32_t kernel_id(int major, bool runtime, bool driver)
{
	const void *kernel;

	client_open(major);
	kernel = client_runtime_kernel("k");
	if (runtime)
		client_enable(RUNTIME, LAUNCH, 0);
	if (driver)
		client_enable(DRIVER, DRIVER_LAUNCH, 0);
	client_record(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0);
	client_runtime_launch(kernel, NULL, 1);
	client_finish();
	return CUPTI_GET(
		client_entry(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0), Kernel, correlationId);
}

START_TEST(kernels_carry_the_id_of_the_runtime_call)
{
	uint32_t id = kernel_id(_i, true, false);

	ck_assert_uint_eq(id, client_api(RUNTIME, LAUNCH, CUPTI_API_ENTER, 0)->correlation);
}
END_TEST

START_TEST(driver_callbacks_suffice_for_ids)
{
	uint32_t id = kernel_id(_i, false, true);

	ck_assert_uint_eq(id, client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_ENTER, 0)->correlation);
}
END_TEST

START_TEST(with_both_domains_kernels_carry_the_inner_id)
{
	uint32_t id = kernel_id(_i, true, true);

	ck_assert_uint_eq(id, client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_ENTER, 0)->correlation);
}
END_TEST

START_TEST(with_both_domains_kernels_may_carry_the_outer_id)
{
	uint32_t id;

	setenv("SIM_CUPTI_KERNEL_ID", "outer", 1);
	id = kernel_id(_i, true, true);
	ck_assert_uint_eq(id, client_api(RUNTIME, LAUNCH, CUPTI_API_ENTER, 0)->correlation);
}
END_TEST

START_TEST(with_both_domains_kernels_may_carry_another_id)
{
	uint32_t id;

	setenv("SIM_CUPTI_KERNEL_ID", "other", 1);
	id = kernel_id(_i, true, true);
	ck_assert_uint_ne(id, client_api(RUNTIME, LAUNCH, CUPTI_API_ENTER, 0)->correlation);
	ck_assert_uint_ne(id, client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_ENTER, 0)->correlation);
}
END_TEST

/* Launches one kernel with records of runtime and driver calls. Returns its id. */
static uint32_t recorded_launch(int major, bool callback)
{
	const void *kernel;

	client_open(major);
	kernel = client_runtime_kernel("k");
	if (callback)
		client_enable(DRIVER, DRIVER_LAUNCH, 0);
	client_record(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,
		CUPTI_ACTIVITY_KIND_DRIVER, 0);
	client_runtime_launch(kernel, NULL, 1);
	client_finish();
	return CUPTI_GET(
		client_entry(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0), Kernel, correlationId);
}

static uint32_t recorded_call(CUpti_ActivityKind kind)
{
	return CUPTI_GET(client_entry(kind, 0), API, correlationId);
}

/* pytorch#99615: activity_trace_async with both kinds enabled. */
START_TEST(driver_calls_inside_recorded_runtime_calls_have_no_record)
{
	const uint32_t id = recorded_launch(_i, false);

	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_DRIVER), 1); /* cuCtxSynchronize */
	ck_assert_uint_eq(id, recorded_call(CUPTI_ACTIVITY_KIND_RUNTIME));
	ck_assert_uint_eq(recorded_call(CUPTI_ACTIVITY_KIND_DRIVER), id + 1);
}
END_TEST

/* perf-agent's notes: two ids per launch with callbacks of both domains. */
START_TEST(a_driver_callback_gives_such_a_call_an_id_but_no_record)
{
	const uint32_t id = recorded_launch(_i, true);

	ck_assert_uint_eq(client_entries(CUPTI_ACTIVITY_KIND_DRIVER), 1);
	ck_assert_uint_eq(id, recorded_call(CUPTI_ACTIVITY_KIND_RUNTIME) + 1);
	ck_assert_uint_eq(id, client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_ENTER, 0)->correlation);
}
END_TEST

START_TEST(driver_calls_inside_runtime_calls_may_have_records)
{
	uint32_t id;
	size_t found = 0;

	setenv("SIM_CUPTI_NESTED", "1", 1);
	id = recorded_launch(_i, false);
	for (size_t i = 0; i < client_entries(CUPTI_ACTIVITY_KIND_DRIVER); i++) {
		const uint8_t *record = client_entry(CUPTI_ACTIVITY_KIND_DRIVER, i);

		found += CUPTI_GET(record, API, cbid) == DRIVER_LAUNCH &&
			 CUPTI_GET(record, API, correlationId) == id;
	}
	ck_assert_uint_eq(found, 1);
	ck_assert_uint_gt(id, recorded_call(CUPTI_ACTIVITY_KIND_RUNTIME));
}
END_TEST

/* CUPTI's guide, 2.3.4: ids are generated only if API activity kinds are enabled. */
START_TEST(callbacks_may_give_no_ids)
{
	setenv("SIM_CUPTI_IDS", "records", 1);
	ck_assert_uint_eq(kernel_id(_i, false, true), 0);
	ck_assert_uint_eq(client_api(DRIVER, DRIVER_LAUNCH, CUPTI_API_ENTER, 0)->correlation, 0);
}
END_TEST

START_TEST(untraced_launches_have_no_id)
{
	ck_assert_uint_eq(kernel_id(_i, false, false), 0);
}
END_TEST

START_TEST(resources_call_back)
{
	cudaStream_t stream;

	client_open(_i);
	client_enable(RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
		CUPTI_CBID_RESOURCE_STREAM_CREATED, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED,
		CUPTI_CBID_RESOURCE_MODULE_LOADED, 0);
	client_kernel("k");
	ck_assert_uint_eq(client_events(RESOURCE, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED), 1);
	ck_assert_uint_eq(client_events(RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED), 1);
	ck_assert_ptr_nonnull(
		client_event(RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, 0)->context_handle);
	ck_assert_uint_eq(client_event(RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, 0)->module, 1);
	ck_assert_uint_gt(
		client_event(RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, 0)->module_bytes, 0);
	ck_assert_int_eq(cuda.cudaStreamCreate(&stream), cudaSuccess);
	ck_assert_ptr_eq(client_event(RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED,
				 client_events(RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED) - 1)
				 ->stream,
		stream);
}
END_TEST

START_TEST(the_whole_resource_domain_costs_a_callback_a_launch)
{
	CUfunction kernel;

	client_open(_i);
	kernel = client_kernel("k");
	ck_assert_int_eq(cupti.cuptiEnableDomain(1, client.subscriber, RESOURCE), CUPTI_SUCCESS);
	for (int i = 0; i < 5; i++)
		client_launch(kernel, NULL, 1);
	ck_assert_uint_eq(client_events(RESOURCE, CUPTI_CBID_RESOURCE_MODULE_PROFILED), 5);
}
END_TEST

START_TEST(in_12_4_modules_are_reported_only_once_an_activity_is_on)
{
	setenv("SIM_CUPTI_VERSION", "22", 1);
	client_open(_i);
	client_enable(RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, 0);
	client_kernel("before");
	ck_assert_uint_eq(client.event_count, 0);
	client_record(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0);
	client_kernel("after");
	ck_assert_uint_eq(client.event_count, 1);
}
END_TEST

START_TEST(synchronising_calls_back)
{
	client_open(_i);
	client_kernel("k");
	client_enable(CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED,
		CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED, 0);
	ck_assert_int_eq(cuda.cudaDeviceSynchronize(), cudaSuccess);
	ck_assert_int_eq(cuda.cudaStreamSynchronize(NULL), cudaSuccess);
	ck_assert_uint_eq(client.event_count, 2);
	ck_assert_uint_eq(client.events[0].cbid, CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED);
	ck_assert_uint_eq(client.events[1].cbid, CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED);
}
END_TEST

START_TEST(callbacks_have_names)
{
	const char *name;

	client_load(_i);
	ck_assert_int_eq(cupti.cuptiGetCallbackName(DRIVER, DRIVER_LAUNCH, &name), CUPTI_SUCCESS);
	ck_assert_str_eq(name, "cuLaunchKernel");
	ck_assert_int_eq(cupti.cuptiGetCallbackName(RUNTIME, LAUNCH, &name), CUPTI_SUCCESS);
	ck_assert_str_eq(name, "cudaLaunchKernel_v7000");
	ck_assert_int_eq(cupti.cuptiGetCallbackName(RUNTIME, 0, &name), CUPTI_SUCCESS);
	ck_assert_str_eq(name, "INVALID");
	ck_assert_int_eq(cupti.cuptiGetCallbackName(RUNTIME, 505, &name),
		_i == 13 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(
		cupti.cuptiGetCallbackName(RUNTIME, 1000, &name), CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(
		cupti.cuptiGetCallbackName(RESOURCE, 1, &name), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(results_have_texts)
{
	const char *text;

	client_load(_i);
	ck_assert_int_eq(
		cupti.cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text),
		CUPTI_SUCCESS);
	ck_assert_str_eq(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
	ck_assert_int_eq(cupti.cuptiGetResultString((CUptiResult)1234, &text),
		CUPTI_ERROR_INVALID_PARAMETER);
	ck_assert_int_eq(cupti.cuptiGetErrorMessage(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, &text),
		CUPTI_SUCCESS);
	ck_assert_ptr_nonnull(strstr(text, "privileges"));
}
END_TEST

static void CUPTIAPI call_cuda(
	void *user_data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
	void *memory;

	ignore(user_data, domain, cbid, data);
	cuda.cudaMalloc(&memory, 64);
}

START_TEST(calling_cuda_from_a_callback_aborts)
{
	CUpti_SubscriberHandle handle;
	CUfunction kernel;

	client_load(_i);
	kernel = client_kernel("k");
	cupti.cuptiSubscribe(&handle, call_cuda, NULL);
	cupti.cuptiEnableCallback(1, handle, DRIVER, DRIVER_LAUNCH);
	client_launch(kernel, NULL, 1);
}
END_TEST

START_TEST(ids_of_things_can_be_queried)
{
	const struct event *event;
	uint32_t context, device, stream;

	client_open(_i);
	client_enable(RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, 0);
	client_kernel("k");
	event = client_event(RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, 0);
	ck_assert_int_eq(cupti.cuptiGetContextId(event->context_handle, &context), CUPTI_SUCCESS);
	ck_assert_uint_eq(context, 1);
	ck_assert_int_eq(cupti.cuptiGetContextId(NULL, &context), CUPTI_ERROR_INVALID_CONTEXT);
	ck_assert_int_eq(cupti.cuptiGetDeviceId(NULL, &device), CUPTI_SUCCESS);
	ck_assert_uint_eq(device, 0);
	ck_assert_int_eq(cupti.cuptiGetStreamIdEx(NULL, NULL, 0, &stream), CUPTI_SUCCESS);
	ck_assert_uint_eq(stream, 7);
	ck_assert_int_eq(
		cupti.cuptiGetGraphNodeId(NULL, &(uint64_t){ 0 }), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

static Suite *suite(void)
{
	Suite *all = suite_create("cupti subscriber");
	TCase *both = tcase_create("both majors"), *new = tcase_create("13");

	tcase_set_timeout(both, 20);
#define BOTH(test) tcase_add_loop_test(both, test, 12, 14);
	BOTH(the_version_is_that_of_the_last_release)
	BOTH(symbols_have_the_version_node_of_the_library)
	BOTH(only_13_has_subscribe_v2)
	BOTH(a_version_lacks_what_came_later)
	BOTH(the_release_has_what_came_before_it)
	BOTH(a_second_subscriber_is_refused)
	BOTH(old_releases_tell_it_by_another_code)
	BOTH(only_what_is_enabled_calls_back)
	BOTH(an_unsubscribed_client_hears_nothing)
	BOTH(the_state_of_a_callback_can_be_queried)
	BOTH(what_does_not_exist_cannot_be_enabled)
	BOTH(the_state_domain_came_with_12_2)
	BOTH(enter_and_exit_share_data_and_id)
	BOTH(the_result_is_known_at_exit)
	BOTH(a_call_that_launches_nothing_has_no_symbol)
	BOTH(runtime_calls_nest_driver_calls)
	BOTH(ids_count_traced_calls_from_1)
	BOTH(traced_driver_calls_have_ids_of_their_own)
	BOTH(ids_restart_when_the_subscriber_leaves)
	BOTH(kernels_carry_the_id_of_the_runtime_call)
	BOTH(driver_callbacks_suffice_for_ids)
	BOTH(with_both_domains_kernels_carry_the_inner_id)
	BOTH(with_both_domains_kernels_may_carry_another_id)
	BOTH(driver_calls_inside_recorded_runtime_calls_have_no_record)
	BOTH(a_driver_callback_gives_such_a_call_an_id_but_no_record)
	BOTH(driver_calls_inside_runtime_calls_may_have_records)
	BOTH(callbacks_may_give_no_ids)
	BOTH(with_both_domains_kernels_may_carry_the_outer_id)
	BOTH(untraced_launches_have_no_id)
	BOTH(resources_call_back)
	BOTH(the_whole_resource_domain_costs_a_callback_a_launch)
	BOTH(in_12_4_modules_are_reported_only_once_an_activity_is_on)
	BOTH(synchronising_calls_back)
	BOTH(callbacks_have_names)
	BOTH(results_have_texts)
	BOTH(ids_of_things_can_be_queried)
	tcase_add_loop_test_raise_signal(both, calling_cuda_from_a_callback_aborts, 6, 12, 14);
	tcase_add_test(new, subscribe_v2_names_the_first_subscriber);
	suite_add_tcase(all, both);
	suite_add_tcase(all, new);
	return all;
}

int main(void)
{
	return client_run(suite());
}
