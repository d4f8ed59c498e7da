/*
 * Listens to the simulated device: hands events on as callbacks and makes activity records of them.
 */
#include "cupti/parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { NAMES = 4096 };

static atomic_ullong kernels; /* SIM_CUPTI_FATAL counts them */

/* Executables that were instantiated while graphs were traced as a whole, one bit each. */
enum { EXECS = 1 << 16 };
static atomic_uchar whole_execs[EXECS / 8];

/* A graph launch in progress, when graphs are traced as a whole. */
static _Thread_local struct {
	struct sim_work first;
	uint64_t start_ns;
	uint64_t end_ns;
	bool active;
} graph;

/* Kernels launched before; their functions are loaded. By address of the name. */
static _Atomic(const char *) loaded[NAMES];

/* The latest record of each event, by event id. */
static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *event_syncs;
static size_t events_known;
static uint64_t last_event_sync;

static bool ignored(void)
{
	return entry_forked() || entry_detached();
}

static uint64_t sync_id_of(uint32_t event)
{
	uint64_t id;

	pthread_mutex_lock(&events_lock);
	id = event < events_known ? event_syncs[event] : 0;
	pthread_mutex_unlock(&events_lock);
	return id;
}

/* A new id for a record of `event`, which becomes its latest. */
static uint64_t new_sync_id(uint32_t event)
{
	uint64_t id;

	pthread_mutex_lock(&events_lock);
	if (event >= events_known) {
		size_t more = ((size_t)event + 1) * 2;

		event_syncs = realloc(event_syncs, more * sizeof *event_syncs);
		if (!event_syncs)
			abort();
		memset(event_syncs + events_known, 0, (more - events_known) * sizeof *event_syncs);
		events_known = more;
	}
	id = event_syncs[event] = ++last_event_sync;
	pthread_mutex_unlock(&events_lock);
	return id;
}

/* True for the first launch of a kernel. A full table knows everything. */
static bool first_launch(const char *name)
{
	size_t at = ((uintptr_t)name >> 3) % NAMES;

	for (size_t step = 0; step < NAMES; step++) {
		_Atomic(const char *) *entry_ = &loaded[(at + step) % NAMES];
		const char *seen = NULL;

		if (atomic_compare_exchange_strong(entry_, &seen, name))
			return true;
		if (seen == name)
			return false;
	}
	return false;
}

static void put_load_overhead(const struct sim_work *work, uint64_t start_ns)
{
	struct record record;

	if (switches()->version < CUPTI_12_3 || !first_launch(work->name) ||
		!activity_on(CUPTI_ACTIVITY_KIND_OVERHEAD, work->context))
		return;
	record_overhead(&record, CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, start_ns,
		clock_now(), correlation_of(work->correlation));
	buffer_put(BUFFER_THREAD, &record);
}

static bool kernel_wanted(const struct sim_work *work)
{
	if (activity_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, work->context))
		return true;
	/* The serialising kind does not see kernels of graphs. */
	return !work->graph_exec && activity_on(CUPTI_ACTIVITY_KIND_KERNEL, work->context);
}

static void add_kernel(const struct sim_work *work)
{
	const struct sim_scope *scope = sim_current_scope();
	uint64_t queued_ns = scope ? scope->start_ns : work->start_ns;
	struct record record;

	put_load_overhead(work, queued_ns);
	if (!kernel_wanted(work))
		return;
	record_kernel(&record, work, queued_ns);
	worker_add(&record);
}

static void add_copy(const struct sim_work *work)
{
	struct record record;

	if (!activity_on(work->copy_kind == SIM_COPY_PTOP ? CUPTI_ACTIVITY_KIND_MEMCPY2
							  : CUPTI_ACTIVITY_KIND_MEMCPY,
		    work->context))
		return;
	record_copy(&record, work);
	worker_add(&record);
}

static void add_set(const struct sim_work *work)
{
	struct record record;

	if (!activity_on(CUPTI_ACTIVITY_KIND_MEMSET, work->context))
		return;
	record_set(&record, work);
	worker_add(&record);
}

/* Whether a graph is traced as a whole. SIM_CUPTI_GRAPH_TRACE: what was enabled at its
 * instantiation decides, not what is enabled at its launch. No source says which it is. */
static bool traced_whole(uint32_t exec, uint32_t context)
{
	if (switches()->graph_trace_by_instantiation)
		return exec < EXECS && (whole_execs[exec / 8] >> exec % 8 & 1);
	return activity_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, context);
}

static void note_instantiation(const struct sim_resource *resource)
{
	const uint32_t exec = sim_graph_exec_id(resource->graph_exec);

	if (exec < EXECS && activity_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 0))
		whole_execs[exec / 8] |= (unsigned char)(1 << exec % 8);
}

static uint64_t on_node_delay(uint32_t exec, uint32_t context)
{
	return activity_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, context) &&
			       !traced_whole(exec, context)
		       ? switches()->node_cost_ns
		       : 0;
}

/* Release notes of 11.0: "CUPTI no longer disables the conversion of memset nodes into kernel nodes
 * for CUDA graphs", if a memset is between kernels. No source has the name of that kernel. */
static void convert_memset(struct sim_work *work)
{
	work->kind = SIM_KERNEL;
	work->name = "simulated_memset_node";
	work->grid = (struct sim_dim){ 1, 1, 1 };
	work->block = (struct sim_dim){ 512, 1, 1 };
}

/* Work of a graph that is traced as a whole only stretches the launch's record. */
static void stretch_graph(const struct sim_work *work)
{
	if (!graph.active) {
		graph.first = *work;
		graph.start_ns = work->start_ns;
		graph.end_ns = work->end_ns;
		graph.active = true;
	}
	if (work->start_ns < graph.start_ns)
		graph.start_ns = work->start_ns;
	if (work->end_ns > graph.end_ns)
		graph.end_ns = work->end_ns;
}

static void end_graph(void)
{
	struct record record;

	if (!graph.active)
		return;
	graph.active = false;
	record_graph(&record, &graph.first, graph.start_ns, graph.end_ns);
	worker_add(&record);
}

/* SIM_CUPTI_FATAL: CUPTI tells its subscriber and leaves. */
static void count_kernel(void)
{
	if (++kernels != switches()->fatal)
		return;
	subscriber_state(CUPTI_CBID_STATE_FATAL_ERROR, CUPTI_ERROR_HARDWARE,
		"simulated fatal error: CUPTI has detached itself");
	entry_detach();
	tools_remove();
}

static void on_work(const struct sim_work *done)
{
	struct sim_work copy = *done, *work = &copy;

	if (ignored())
		return;
	callback_launch(work);
	if (work->kind == SIM_SET && work->between_kernels && !switches()->graph_memsets)
		convert_memset(work);
	if (work->graph_exec && traced_whole(work->graph_exec, work->context))
		stretch_graph(work);
	else if (work->kind == SIM_KERNEL)
		add_kernel(work);
	else if (work->kind == SIM_COPY)
		add_copy(work);
	else if (work->kind == SIM_SET)
		add_set(work);
	if (work->kind == SIM_KERNEL)
		count_kernel();
}

static void on_api_enter(struct sim_scope *scope)
{
	if (ignored())
		return;
	scope->start_ns = clock_now();
	callback_enter(scope);
}

/* One record for each kind of external id that this thread has, in front of the call's own. */
static void put_external(const struct sim_scope *scope)
{
	if (!activity_on(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 0))
		return;
	for (unsigned kind = 1; kind < EXTERNAL_KINDS; kind++) {
		struct record record;
		uint64_t id;

		if (!external_top(kind, &id))
			continue;
		record_external(&record, kind, id, scope->correlation);
		buffer_put(BUFFER_THREAD, &record);
	}
}

static void put_api(const struct sim_scope *scope, uint64_t end_ns)
{
	const struct sim_function *function = scope->function;
	bool on = callback_has_record(scope);
	struct record record;

	/* Before 12.8, functions switched off one by one still yielded their external ids. */
	if (on || (function->cbid && switches()->version < CUPTI_12_8 &&
			  activity_api_kind_on(function->domain)))
		put_external(scope);
	if (!on)
		return;
	record_api(&record, scope, end_ns);
	buffer_put(BUFFER_THREAD, &record);
}

static void on_api_exit(struct sim_scope *scope)
{
	uint64_t end_ns;

	if (ignored())
		return;
	end_ns = clock_now();
	end_graph();
	callback_exit(scope);
	if (!ignored())
		put_api(scope, end_ns);
}

static void on_memory(const struct sim_memory *memory)
{
	struct record record;

	if (ignored() || !activity_on(CUPTI_ACTIVITY_KIND_MEMORY2, memory->context))
		return;
	record_memory(&record, memory);
	buffer_put(BUFFER_THREAD, &record);
}

static void on_sync(const struct sim_sync *sync)
{
	struct record record;

	if (ignored())
		return;
	if (!sync->query)
		callback_sync(sync);
	if (!activity_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sync->context) ||
		!activity_sync_wanted(sync))
		return;
	record_sync(&record, sync, sync->event == SIM_NO_EVENT ? 0 : sync_id_of(sync->event));
	buffer_put(BUFFER_THREAD, &record);
}

static void on_event(const struct sim_event_record *event)
{
	struct record record;
	uint64_t id;

	if (ignored())
		return;
	id = new_sync_id(event->event);
	/* Before 12.9, synchronisation brought the events with it. */
	if (!activity_on(CUPTI_ACTIVITY_KIND_CUDA_EVENT, event->context) &&
		(switches()->version >= CUPTI_12_9 ||
			!activity_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, event->context)))
		return;
	record_event(&record, event, id);
	if (record.due_ns)
		worker_add(&record);
	else
		buffer_put(BUFFER_THREAD, &record);
}

static void put_resource(const struct sim_resource *resource)
{
	const struct sim_scope *scope = sim_current_scope();
	struct record record = { 0 };

	if (resource->kind == SIM_CONTEXT_CREATED && activity_on(CUPTI_ACTIVITY_KIND_CONTEXT, 0))
		record_context(&record, resource->context);
	if (resource->kind == SIM_STREAM_CREATED && activity_on(CUPTI_ACTIVITY_KIND_STREAM, 0))
		record_stream(&record, resource->stream, scope ? scope->correlation : 0);
	if (record.length)
		buffer_put(BUFFER_THREAD, &record);
}

static void put_devices(void)
{
	for (int device = 0; device < sim_device_count(); device++) {
		struct record record;

		record_device(&record, device);
		buffer_put(BUFFER_THREAD, &record);
	}
}

static void on_resource(const struct sim_resource *resource)
{
	if (ignored())
		return;
	if (resource->kind == SIM_GRAPH_EXEC_CREATED)
		note_instantiation(resource);
	callback_resource(resource);
	put_resource(resource);
	if (resource->kind == SIM_CU_INIT_FINISHED && activity_on(CUPTI_ACTIVITY_KIND_DEVICE, 0))
		put_devices();
}

static const struct sim_tools tools = {
	.api_enter = on_api_enter,
	.api_exit = on_api_exit,
	.work = on_work,
	.memory = on_memory,
	.sync = on_sync,
	.event = on_event,
	.resource = on_resource,
	.node_delay = on_node_delay,
};

void tools_install(void)
{
	sim_tools_set(&tools);
}

void tools_remove(void)
{
	sim_tools_set(NULL);
	subscriber_clear();
	activity_clear();
	worker_clear();
	buffer_clear();
}

SIM_EXPORT CUptiResult cuptiFinalize(void)
{
	entry_pure(__func__);
	if (entry_forked() || entry_detached())
		return CUPTI_SUCCESS;
	tools_remove();
	correlation_restart();
	return CUPTI_SUCCESS;
}
