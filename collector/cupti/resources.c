/* SPDX-License-Identifier: MIT
 * Describes contexts, streams and graphs in the dictionary when CUPTI reports them. GPU records
 * refer to them by number.
 *
 * These callbacks run inside the driver. Nothing here calls CUDA, and of CUPTI only the functions
 * that return the number of a handle.
 */
#include "collector/cupti/flush_thread.h"
#include "collector/cupti/contexts.h"
#include "collector/cupti/session_state.h"
#include "collector/file/dictionary.h"
#include "collector/cupti/kernel_names.h"
#include "collector/stream/stream.h"

/* Types of graph nodes up to this one have GPU records. The values are CUgraphNodeType's: kernel,
 * copy, memset. */
#define LAST_GPU_NODE_TYPE 2u

/* Creates the trace, if no event has done so: calls in the context are stamped by its clock. */
static void context_created(const struct cupti_library *cupti, void *handle)
{
	uint32_t id = 0, device = UINT32_MAX;
	struct cupti_known_context *entry;

	if (stream_enter())
		stream_leave();
	if (!cupti->context_id || cupti->context_id(handle, &id) != CUPTI_OK || id == 0)
		return;
	if (cupti->device_id && cupti->device_id(handle, &device) != CUPTI_OK)
		device = UINT32_MAX;
	entry = &cupti_session->contexts[id % CUPTI_CONTEXTS];
	atomic_store_explicit(&entry->id, 0, memory_order_relaxed);
	entry->device = device;
	entry->handle = (uintptr_t)handle;
	atomic_store_explicit(&entry->id, id, memory_order_release);
	if (stream_enter()) {
		cupti_write_context(id, device, UINT32_MAX);
		stream_leave();
	}
}

/* Contexts that end with the process are ignored, because the report shows what memory was held at
 * that time. */
static void context_ends(const struct cupti_library *cupti, void *handle)
{
	uint32_t id = 0, device;

	if (atomic_load(&cupti_session->process_ending) || !cupti->context_id ||
		cupti->context_id(handle, &id) != CUPTI_OK || id == 0)
		return;
	device = cupti_device_of(id);
	if (device == UINT32_MAX && cupti->device_id &&
		cupti->device_id(handle, &device) != CUPTI_OK)
		device = UINT32_MAX;
	cupti_session->config->on_context_ends(id, device);
}

/* The default streams have no handle of their own, and CUPTI does not distinguish them. Their ids
 * come with the context records. */
static void stream_created(const struct cupti_library *cupti, const struct cupti_resource *resource)
{
	struct trace_context record = { .head = { .size = sizeof record, .kind = TRACE_CONTEXT },
		.null_stream = UINT32_MAX };

	if ((uintptr_t)resource->stream <= 2 || !cupti->context_id || !cupti->stream_id ||
		cupti->context_id(resource->context, &record.context) != CUPTI_OK ||
		cupti->stream_id(resource->context, resource->stream, 0, &record.stream) !=
			CUPTI_OK)
		return;
	record.device = cupti_device_of(record.context);
	record.handle = (uintptr_t)resource->stream;
	if (stream_enter()) {
		dictionary_put(&record.head, 0);
		stream_leave();
	}
}

/* Returns false if the node does no GPU work or its ids cannot be read. */
static bool read_graph_node(const struct cupti_library *cupti, const struct cupti_graph *graph,
	bool clone, struct trace_graph_node *record)
{
	if (graph->node_type > LAST_GPU_NODE_TYPE || !cupti->graph_node_id || !graph->node ||
		(clone && !graph->original_node))
		return false;
	if (cupti->graph_node_id(graph->node, &record->graph_node) != CUPTI_OK)
		return false;
	/* Without the original, it would look like a node that was captured here. */
	if (clone && cupti->graph_node_id(graph->original_node, &record->original) != CUPTI_OK)
		return false;
	if (graph->graph && cupti->graph_id &&
		cupti->graph_id(graph->graph, &record->graph) != CUPTI_OK)
		record->graph = 0;
	record->type = graph->node_type;
	return true;
}

static void graph_node_created(
	const struct cupti_library *cupti, const struct cupti_graph *graph, bool clone)
{
	struct trace_graph_node record = { .head = { .size = sizeof record,
						   .kind = TRACE_GRAPH_NODE } };

	if (read_graph_node(cupti, graph, clone, &record) && stream_enter()) {
		record.head.node = stream_node();
		dictionary_put_graph_node(&record);
		stream_leave();
	}
}

static void graph_exec_created(const struct cupti_library *cupti, const struct cupti_graph *graph)
{
	struct trace_graph_exec record = { .head = { .size = sizeof record,
						   .kind = TRACE_GRAPH_EXEC } };

	record.handle = (uintptr_t)graph->exec;
	record.exec_id = cupti_graph_exec_id(graph->exec);
	if (graph->graph && cupti->graph_id &&
		cupti->graph_id(graph->graph, &record.graph) != CUPTI_OK)
		record.graph = 0;
	if (stream_enter()) {
		record.head.node = stream_node();
		dictionary_put(&record.head, 0);
		stream_leave();
	}
}

void cupti_on_resource(uint32_t id, const struct cupti_resource *resource)
{
	const struct cupti_library *cupti = &cupti_session->library;

	switch (id) {
	case CUPTI_CONTEXT_CREATED:
		context_created(cupti, resource->context);
		cupti_flush_start();
		break;
	case CUPTI_CONTEXT_ENDS:
		context_ends(cupti, resource->context);
		break;
	case CUPTI_STREAM_CREATED:
		stream_created(cupti, resource);
		break;
	case CUPTI_MODULE_UNLOAD:
		kernel_names_module_unloads();
		break;
	case CUPTI_MODULE_LOADED:
		kernel_names_module_loaded();
		break;
	case CUPTI_NODE_CREATED:
	case CUPTI_NODE_CLONED:
		graph_node_created(cupti, resource->descriptor, id == CUPTI_NODE_CLONED);
		if (id == CUPTI_NODE_CREATED)
			cupti_session->config->on_node_created();
		break;
	case CUPTI_GRAPH_EXEC_CREATED:
		graph_exec_created(cupti, resource->descriptor);
		break;
	}
}
