#include "tests/cupti_client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct cupti_functions cupti;
struct cuda_functions cuda;
struct client client;

/* Callbacks come from the test's threads and CUPTI's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int client_tid(void)
{
	return (int)syscall(SYS_gettid);
}

/* Grows an array by one and returns the new, zeroed element. */
static void *push(void **array, size_t *count, size_t size)
{
	uint8_t *grown = *array;

	if ((*count & (*count - 1)) == 0) {
		grown = realloc(grown, (*count ? *count * 2 : 1) * size);
		if (!grown)
			abort();
		*array = grown;
	}
	memset(grown + *count * size, 0, size);
	return grown + (*count)++ * size;
}

static void *load(const char *name, int major)
{
	const char *variant = getenv("PPERF_TEST_TOOLS"),
		   *build = variant ? variant : getenv("PPERF_TEST_BUILD");
	char path[4096];
	void *library;

	snprintf(path, sizeof path, "%s/cudasim/%d/%s", build ? build : "build", major, name);
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	ck_assert_msg(library != NULL, "%s", dlerror());
	return library;
}

void client_load(int major)
{
	char name[32];
	void *driver, *runtime, *tool;

	driver = load("libcuda.so.1", major);
	snprintf(name, sizeof name, "libcudart.so.%d", major);
	runtime = load(name, major);
	snprintf(name, sizeof name, "libcupti.so.%d", major);
	tool = load(name, major);
#define FIND_CUPTI(name) *(void **)&cupti.name = dlsym(tool, #name);
#define FIND_DRIVER(name) *(void **)&cuda.name = dlsym(driver, #name);
#define FIND_RUNTIME(name) *(void **)&cuda.name = dlsym(runtime, #name);
	CUPTI_FUNCTIONS(FIND_CUPTI)
	DRIVER_FUNCTIONS(FIND_DRIVER)
	RUNTIME_FUNCTIONS(FIND_RUNTIME)
	client.major = major;
	client.buffer_bytes = 65536;
}

static void note_api(struct event *event, const CUpti_CallbackData *data)
{
	event->site = data->callbackSite;
	event->correlation = data->correlationId;
	if (data->callbackSite == CUPTI_API_ENTER)
		*data->correlationData = event->order + 1;
	event->data = *data->correlationData;
	snprintf(event->name, sizeof event->name, "%s", data->functionName);
	event->symbol_is_valid = (uintptr_t)data->symbolName > 65535;
	if (event->symbol_is_valid)
		snprintf(event->symbol, sizeof event->symbol, "%s", data->symbolName);
	event->has_params = data->functionParams != NULL;
	if (data->callbackSite == CUPTI_API_EXIT)
		event->result = *(int *)data->functionReturnValue;
	event->context = data->contextUid;
	event->context_handle = data->context;
}

static void note_graph(struct event *event, const CUpti_GraphData *data)
{
	event->node_kind = (int)data->nodeType;
	if (data->node)
		cupti.cuptiGetGraphNodeId(data->node, &event->node);
	if (data->originalNode)
		cupti.cuptiGetGraphNodeId(data->originalNode, &event->original_node);
	if (data->graphExec && cupti.cuptiGetGraphExecId)
		cupti.cuptiGetGraphExecId(data->graphExec, &event->graph_exec);
}

static void note_resource(struct event *event, const CUpti_ResourceData *data)
{
	event->context_handle = data->context;
	event->stream = data->resourceHandle.stream;
	if (event->cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
		const CUpti_ModuleResourceData *module = data->resourceDescriptor;

		event->module = module->moduleId;
		event->module_bytes = module->cubinSize;
	} else if (event->cbid >= CUPTI_CBID_RESOURCE_GRAPH_CREATED) {
		note_graph(event, data->resourceDescriptor);
	}
}

static void note_state(struct event *event, const CUpti_StateData *data)
{
	event->code = data->notification.result;
	snprintf(event->message, sizeof event->message, "%s", data->notification.message);
}

static void CUPTIAPI on_callback(
	void *user_data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
	struct event *event;

	(void)user_data;
	pthread_mutex_lock(&lock);
	event = push((void **)&client.events, &client.event_count, sizeof *event);
	event->order = client.event_count - 1;
	event->domain = domain;
	event->cbid = cbid;
	event->tid = client_tid();
	if (domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API)
		note_api(event, data);
	else if (domain == CUPTI_CB_DOMAIN_RESOURCE)
		note_resource(event, data);
	else if (domain == CUPTI_CB_DOMAIN_STATE)
		note_state(event, data);
	else if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
		event->context_handle = ((const CUpti_SynchronizeData *)data)->context;
		event->stream = ((const CUpti_SynchronizeData *)data)->stream;
	}
	pthread_mutex_unlock(&lock);
}

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *records)
{
	*size = client.buffer_bytes;
	*buffer = *size ? aligned_alloc(64, (*size + 63) / 64 * 64) : NULL;
	*records = client.buffer_records;
	client.requests++;
	client.request_tid = client_tid();
}

/* Bytes of the record that are there: a short record at the end of a buffer is not read beyond it.
 */
static void keep(const CUpti_Activity *record, const uint8_t *end)
{
	struct entry *entry = push((void **)&client.entries, &client.entry_count, sizeof *entry);
	size_t there = (size_t)(end - (const uint8_t *)record);

	entry->kind = record->kind;
	entry->buffer = client.buffer_count - 1;
	memcpy(entry->bytes, record, there < CUPTI_RECORD_MAX ? there : CUPTI_RECORD_MAX);
}

static void CUPTIAPI on_complete(
	CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;
	struct buffer_note *note;
	size_t dropped;
	CUptiResult result;

	(void)size;
	ck_assert(!context && !stream);
	pthread_mutex_lock(&lock);
	note = push((void **)&client.buffers, &client.buffer_count, sizeof *note);
	note->valid = valid;
	note->tid = client_tid();
	while (!(result = cupti.cuptiActivityGetNextRecord(buffer, valid, &record))) {
		keep(record, buffer + valid);
		note->records++;
	}
	note->end = result;
	cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
	client.dropped += dropped;
	pthread_mutex_unlock(&lock);
	free(buffer);
}

void client_open(int major)
{
	client_load(major);
	ck_assert_int_eq(
		cupti.cuptiSubscribe(&client.subscriber, on_callback, NULL), CUPTI_SUCCESS);
}

void client_enable(CUpti_CallbackDomain domain, ...)
{
	va_list ids;
	int id;

	va_start(ids, domain);
	while ((id = va_arg(ids, int)))
		ck_assert_int_eq(cupti.cuptiEnableCallback(
					 1, client.subscriber, domain, (CUpti_CallbackId)id),
			CUPTI_SUCCESS);
	va_end(ids);
}

void client_record(int kind, ...)
{
	va_list kinds;
	int result = CUPTI_SUCCESS;

	ck_assert_int_eq(
		cupti.cuptiActivityRegisterCallbacks(on_request, on_complete), CUPTI_SUCCESS);
	va_start(kinds, kind);
	for (int next = kind; next && !result; next = va_arg(kinds, int))
		result = (int)cupti.cuptiActivityEnable((CUpti_ActivityKind)next);
	va_end(kinds);
	ck_assert_int_eq(result, CUPTI_SUCCESS);
}

void client_flush(bool forced)
{
	ck_assert_int_eq(cupti.cuptiActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0),
		CUPTI_SUCCESS);
}

void client_finish(void)
{
	ck_assert_int_eq(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
	client_flush(false);
}

CUfunction client_kernel(const char *name)
{
	static const char image[] = ".version 8.0\n.target sm_90\n";
	CUcontext context;
	CUmodule module;
	CUfunction kernel;

	ck_assert_int_eq(cuda.cuInit(0), CUDA_SUCCESS);
	ck_assert_int_eq(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	ck_assert_int_eq(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
	ck_assert_int_eq(cuda.cuModuleLoadData(&module, image), CUDA_SUCCESS);
	ck_assert_int_eq(cuda.cuModuleGetFunction(&kernel, module, name), CUDA_SUCCESS);
	return kernel;
}

void client_launch(CUfunction kernel, CUstream stream, unsigned blocks)
{
	ck_assert_int_eq(
		cuda.cuLaunchKernel(kernel, blocks, 2, 3, 32, 2, 1, 1024, stream, NULL, NULL),
		CUDA_SUCCESS);
}

const void *client_runtime_kernel(const char *name)
{
	static const char image[] = ".version 8.0\n.target sm_90\n";
	static struct {
		int magic, version;
		const void *data;
		void *unused;
	} wrapper = { 0x466243b1, 1, image, NULL };
	char *stub = malloc(1);
	void **handle = cuda.__cudaRegisterFatBinary(&wrapper);

	cuda.__cudaRegisterFunction(
		handle, stub, (char *)(uintptr_t)name, name, -1, NULL, NULL, NULL, NULL, NULL);
	cuda.__cudaRegisterFatBinaryEnd(handle);
	return stub;
}

void client_runtime_launch(const void *kernel, cudaStream_t stream, unsigned blocks)
{
	dim3 grid = { blocks, 2, 3 }, block = { 32, 2, 1 };

	ck_assert_int_eq(
		cuda.cudaLaunchKernel(kernel, grid, block, NULL, 1024, stream), cudaSuccess);
}

size_t client_buffers(void)
{
	size_t count;

	pthread_mutex_lock(&lock);
	count = client.buffer_count;
	pthread_mutex_unlock(&lock);
	return count;
}

size_t client_events(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	size_t count = 0;

	for (size_t i = 0; i < client.event_count; i++)
		count += client.events[i].domain == domain && client.events[i].cbid == cbid;
	return count;
}

const struct event *client_event(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, size_t nth)
{
	for (size_t i = 0; i < client.event_count; i++)
		if (client.events[i].domain == domain && client.events[i].cbid == cbid && !nth--)
			return &client.events[i];
	ck_abort_msg("no such callback: domain %d id %u", (int)domain, cbid);
	return NULL;
}

const struct event *client_api(
	CUpti_CallbackDomain domain, CUpti_CallbackId cbid, CUpti_ApiCallbackSite site, size_t nth)
{
	for (size_t i = 0; i < client.event_count; i++)
		if (client.events[i].domain == domain && client.events[i].cbid == cbid &&
			client.events[i].site == site && !nth--)
			return &client.events[i];
	ck_abort_msg("no such callback: domain %d id %u site %d", (int)domain, cbid, (int)site);
	return NULL;
}

size_t client_entries(uint32_t kind)
{
	size_t count = 0;

	for (size_t i = 0; i < client.entry_count; i++)
		count += client.entries[i].kind == kind;
	return count;
}

const uint8_t *client_entry(uint32_t kind, size_t nth)
{
	for (size_t i = 0; i < client.entry_count; i++)
		if (client.entries[i].kind == kind && !nth--)
			return client.entries[i].bytes;
	ck_abort_msg("no such record: kind %u", kind);
	return NULL;
}

int client_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
