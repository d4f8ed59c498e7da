/*
 * From what the simulated device tells to what a subscriber hears: API and resource callbacks, and
 * the correlation ids of calls.
 *
 * Ids count traced calls: a call gets one when its callback or its activity record is enabled. A
 * call made by a traced call shares that one's id unless it is traced itself. A call that is not
 * traced has id 0.
 *
 * A driver call inside a traced runtime call has no activity record. pytorch#99615 has the output
 * of NVIDIA's activity_trace_async with both kinds enabled: it has no driver records, and the ids
 * of runtime calls are consecutive. A driver callback gives such a call an id of its own:
 * perf-agent's notes count 1.004 ids per launch with runtime callbacks, and 2.242 with those of
 * both domains. No source says which of the two ids a kernel carries then (SIM_CUPTI_KERNEL_ID).
 */
#include "cupti/parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_uint next_id;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void first_id(void)
{
	next_id = switches()->wrap ? UINT32_MAX - 999 : 1;
}

static uint32_t fresh_id(void)
{
	uint32_t id;

	pthread_once(&once, first_id);
	do
		id = next_id++;
	while (id == 0);
	return id;
}

void correlation_restart(void)
{
	first_id();
}

uint32_t correlation_of(uint32_t innermost)
{
	const struct sim_scope *scope = sim_current_scope();
	uint32_t outermost = innermost;

	/* A call that began before we listened has no id. */
	if (scope && !scope->tools)
		return 0;
	for (; scope; scope = scope->outer)
		if (scope->correlation) /* one that nobody traces has none */
			outermost = scope->correlation;
	if (switches()->other_ids && outermost != innermost)
		return fresh_id();
	return switches()->outer_ids ? outermost : innermost;
}

/* A driver call that a traced runtime call makes. */
static bool is_nested(const struct sim_scope *scope)
{
	const struct sim_scope *outer = scope->outer;

	if (scope->function->domain != SIM_DRIVER)
		return false;
	while (outer && outer->function->domain == SIM_DRIVER)
		outer = outer->outer;
	return outer && outer->tools && outer->correlation != 0;
}

bool callback_has_record(const struct sim_scope *scope)
{
	const struct sim_function *function = scope->function;

	return function->cbid && activity_api_on(function->domain, function->cbid) &&
	       (switches()->nested_records || !is_nested(scope));
}

static bool is_traced(const struct sim_scope *scope)
{
	const struct sim_function *function = scope->function;

	return callback_has_record(scope) ||
	       (function->cbid && !switches()->record_ids &&
		       subscriber_wants(
			       (CUpti_CallbackDomain)function->domain, (uint32_t)function->cbid));
}

/* "This entry is valid only for driver and runtime launch callbacks" (cupti_callbacks.h). Elsewhere,
 * and at the end of a launch that failed, it is no address, as in CUDA 11 (LLNL/Caliper issue 294).
 */
static const char *symbol_of(const struct sim_scope *scope, CUpti_ApiCallbackSite site)
{
	bool failed = site == CUPTI_API_EXIT && scope->result && *scope->result;

	return scope->symbol && !failed ? scope->symbol : (const char *)(uintptr_t)0xdead;
}

static void call_back(struct sim_scope *scope, CUpti_ApiCallbackSite site)
{
	const struct sim_function *function = scope->function;
	CUpti_CallbackData data = {
		.callbackSite = site,
		.functionName = function->name,
		.functionParams = scope->params,
		.functionReturnValue = site == CUPTI_API_EXIT ? (void *)(uintptr_t)scope->result
							      : NULL,
		.symbolName = symbol_of(scope, site),
		.context = (CUcontext)scope->context,
		.contextUid = sim_context_id(scope->context),
		.correlationData = &scope->correlation_data,
		.correlationId = scope->correlation,
	};

	if (subscriber_wants((CUpti_CallbackDomain)function->domain, (uint32_t)function->cbid))
		subscriber_call(
			(CUpti_CallbackDomain)function->domain, (uint32_t)function->cbid, &data);
}

/* CUDA may not be called from callbacks, except to synchronise. */
static void refuse_call_from_callback(const struct sim_scope *scope)
{
	if (!subscriber_calling() || strstr(scope->function->name, "Synchronize"))
		return;
	fprintf(stderr, "simulated CUPTI: %s called from a callback\n", scope->function->name);
	abort();
}

void callback_enter(struct sim_scope *scope)
{
	const struct sim_scope *outer = scope->outer;

	refuse_call_from_callback(scope);
	if (is_traced(scope))
		scope->correlation = fresh_id();
	else
		scope->correlation = outer && outer->tools == scope->tools ? outer->correlation : 0;
	call_back(scope, CUPTI_API_ENTER);
}

void callback_exit(struct sim_scope *scope)
{
	call_back(scope, CUPTI_API_EXIT);
}

static const uint32_t resource_cbids[] = {
	[SIM_CU_INIT_FINISHED] = CUPTI_CBID_RESOURCE_CU_INIT_FINISHED,
	[SIM_CONTEXT_CREATED] = CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
	[SIM_CONTEXT_DESTROY_STARTING] = CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
	[SIM_STREAM_CREATED] = CUPTI_CBID_RESOURCE_STREAM_CREATED,
	[SIM_STREAM_DESTROY_STARTING] = CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING,
	[SIM_MODULE_LOADED] = CUPTI_CBID_RESOURCE_MODULE_LOADED,
	[SIM_MODULE_UNLOAD_STARTING] = CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
	[SIM_GRAPH_CREATED] = CUPTI_CBID_RESOURCE_GRAPH_CREATED,
	[SIM_GRAPH_DESTROY_STARTING] = CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING,
	[SIM_GRAPH_CLONED] = CUPTI_CBID_RESOURCE_GRAPH_CLONED,
	[SIM_NODE_CREATED] = CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
	[SIM_NODE_CLONED] = CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
	[SIM_NODE_DESTROY_STARTING] = CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING,
	[SIM_GRAPH_EXEC_CREATED] = CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
	[SIM_GRAPH_EXEC_DESTROY_STARTING] = CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
};

/* CUDA 12.4's module callbacks came only once some activity was on. */
static bool resource_held_back(enum sim_resource_kind kind)
{
	return switches()->version == CUPTI_12_4 && kind == SIM_MODULE_LOADED && !activity_any();
}

static void call_back_resource(const struct sim_resource *resource)
{
	uint32_t cbid = resource_cbids[resource->kind];
	CUpti_ModuleResourceData module = {
		.moduleId = resource->module,
		.cubinSize = resource->image_bytes,
		.pCubin = resource->image,
	};
	CUpti_GraphData graph_data = {
		.graph = (CUgraph)resource->graph,
		.originalGraph = (CUgraph)resource->original_graph,
		.node = (CUgraphNode)resource->node,
		.originalNode = (CUgraphNode)resource->original_node,
		.nodeType = (CUgraphNodeType)resource->node_kind,
		.graphExec = (CUgraphExec)resource->graph_exec,
	};
	CUpti_ResourceData data = {
		.context = (CUcontext)resource->context,
		.resourceHandle = { .stream = (CUstream)resource->stream },
	};

	if (!subscriber_wants(CUPTI_CB_DOMAIN_RESOURCE, cbid) || resource_held_back(resource->kind))
		return;
	if (resource->kind == SIM_MODULE_LOADED || resource->kind == SIM_MODULE_UNLOAD_STARTING)
		data.resourceDescriptor = &module;
	else if (resource->kind >= SIM_GRAPH_CREATED)
		data.resourceDescriptor = &graph_data;
	subscriber_call(CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
}

/* The clone's own creation, which names no original. */
static void call_back_clone_created(const struct sim_resource *resource)
{
	struct sim_resource created = *resource;

	created.kind = SIM_NODE_CREATED;
	created.original_graph = NULL;
	created.original_node = NULL;
	call_back_resource(&created);
}

void callback_resource(const struct sim_resource *resource)
{
	const enum clone_created order = switches()->clone_created;
	const bool clone = resource->kind == SIM_NODE_CLONED;

	if (clone && order == CREATED_BEFORE_CLONED)
		call_back_clone_created(resource);
	call_back_resource(resource);
	if (clone && order == CREATED_AFTER_CLONED)
		call_back_clone_created(resource);
}

void callback_sync(const struct sim_sync *sync)
{
	CUpti_SynchronizeData data = {
		.context = (CUcontext)sync->context_handle,
		.stream = (CUstream)sync->stream_handle,
	};
	uint32_t cbid = sync->kind == SIM_SYNC_CONTEXT ? CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED
						       : CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED;

	if (sync->kind != SIM_SYNC_CONTEXT && sync->kind != SIM_SYNC_STREAM)
		return;
	if (subscriber_wants(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid))
		subscriber_call(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid, &data);
}

void callback_launch(const struct sim_work *work)
{
	CUpti_ModuleResourceData module = { .moduleId = 1 };
	CUpti_ResourceData data = {
		.context = (CUcontext)sim_context_current(),
		.resourceDescriptor = &module,
	};

	/* Whoever enables the whole resource domain pays for it at each launch. */
	if (work->kind == SIM_KERNEL &&
		subscriber_wants(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_PROFILED))
		subscriber_call(
			CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_PROFILED, &data);
}
