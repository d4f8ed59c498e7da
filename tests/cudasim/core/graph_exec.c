/*
 * Executable graphs. Instantiation clones the nodes in an order that respects their needs and lays
 * them in lanes: a node continues the lane of the first need that nobody continued yet, else begins
 * one. Lane 0 is the launching stream; the others have stream ids of their own.
 */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/entry.h"

#define EXEC_MAGIC 0x45584543u
#define LANE_START_NS 1000u

struct sim_graph_exec {
	unsigned magic;
	uint32_t id;
	uint64_t flags;
	struct sim_graph *graph; /* the clones, in order */
	uint32_t *lanes;         /* the stream ids of the lanes; that of lane 0 is unused */
	unsigned lane_count;
	uint64_t end_ns; /* of the last launch: an executable never overlaps itself */
};

static uint32_t exec_count;
static uint32_t lane_id = 1u << 16; /* far above the ids of the program's streams */

bool exec_valid(const struct sim_graph_exec *exec)
{
	return exec && exec->magic == EXEC_MAGIC;
}

/* The clone needs the clones of what the node needs. */
static void clone_needs(
	struct sim_node *clone, const struct sim_node *node, struct sim_node *const *clones)
{
	for (size_t i = 0; i < node->needs.count; i++) {
		struct sim_node *need = clones[node->needs.nodes[i]->index];

		set_include(&clone->needs, &need, 1);
	}
}

static void choose_lane(struct sim_graph_exec *exec, struct sim_node *clone)
{
	for (size_t i = 0; i < clone->needs.count; i++) {
		struct sim_node *need = clone->needs.nodes[i];

		if (need->lane_taken)
			continue;
		need->lane_taken = true;
		clone->lane = need->lane;
		return;
	}
	clone->lane = exec->lane_count++;
	exec->lanes = grow(exec->lanes, exec->lane_count * sizeof(*exec->lanes));
	exec->lanes[clone->lane] = clone->lane ? lane_id++ : 0;
}

static bool is_kernel(const struct sim_node *node)
{
	return node->op.node_kind == SIM_NODE_KERNEL;
}

/* Marks the nodes that are between kernels: at least one before and one after, and nothing else. */
static void mark_between_kernels(struct sim_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		struct sim_node *node = graph->nodes[i];

		node->between_kernels = node->needs.count > 0;
		node->mark = false; /* a kernel needs it */
		for (size_t k = 0; k < node->needs.count; k++) {
			struct sim_node *need = node->needs.nodes[k];

			node->between_kernels &= is_kernel(need);
			need->between_kernels &= is_kernel(node);
			need->mark = true;
		}
	}
	for (size_t i = 0; i < graph->count; i++)
		graph->nodes[i]->between_kernels &= graph->nodes[i]->mark;
}

/* The lock must be held. */
static void clone_nodes(struct sim_graph_exec *exec, struct sim_node *const *order, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sim_node *clone = node_append(exec->graph, NULL, 0, &order[i]->op);

		clone->origin_id = order[i]->id;
		clone_needs(clone, order[i], exec->graph->nodes);
		choose_lane(exec, clone);
	}
	mark_between_kernels(exec->graph);
}

static void tell_cloned(
	struct sim_graph_exec *exec, struct sim_graph *graph, struct sim_node *const *order)
{
	for (size_t i = 0; i < exec->graph->count; i++)
		tell_resource(&(struct sim_resource){
			.kind = SIM_NODE_CLONED,
			.context = sim_context_current(),
			.graph = exec->graph,
			.original_graph = graph,
			.node = exec->graph->nodes[i],
			.original_node = order[i],
			.node_kind = order[i]->op.node_kind,
		});
	tell_resource(&(struct sim_resource){
		.kind = SIM_GRAPH_EXEC_CREATED,
		.context = sim_context_current(),
		.graph = graph,
		.graph_exec = exec,
	});
}

/* Memory for an executable and its graph, which is nobody else's: it is told of as a clone. */
static struct sim_graph_exec *exec_new(uint64_t flags, struct sim_graph *original)
{
	struct sim_graph_exec *exec = zalloc(sizeof(*exec));

	exec->magic = EXEC_MAGIC;
	exec->id = __atomic_add_fetch(&exec_count, 1, __ATOMIC_RELAXED);
	exec->flags = flags;
	graph_create(&exec->graph);
	tell_resource(&(struct sim_resource){
		.kind = SIM_GRAPH_CLONED,
		.context = sim_context_current(),
		.graph = exec->graph,
		.original_graph = original,
	});
	return exec;
}

CUresult exec_create(struct sim_graph_exec **exec, struct sim_graph *graph, uint64_t flags)
{
	struct sim_node **order;
	bool sound;

	if (!graph_valid(graph))
		return CUDA_ERROR_INVALID_VALUE;
	order = zalloc(graph->count * sizeof(struct sim_node *));
	core_lock();
	sound = graph_order(graph, order);
	core_unlock();
	if (sound) {
		*exec = exec_new(flags, graph);
		core_lock();
		clone_nodes(*exec, order, graph->count);
		core_unlock();
		tell_cloned(*exec, graph, order);
	}
	free(order);
	return sound ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult exec_destroy(struct sim_graph_exec *exec)
{
	if (!exec_valid(exec))
		return CUDA_ERROR_INVALID_VALUE;
	tell_resource(&(struct sim_resource){
		.kind = SIM_GRAPH_EXEC_DESTROY_STARTING,
		.context = sim_context_current(),
		.graph = exec->graph,
		.graph_exec = exec,
	});
	graph_free(exec->graph);
	exec->magic = 0;
	free(exec->lanes);
	free(exec);
	return CUDA_SUCCESS;
}

uint64_t exec_flags(const struct sim_graph_exec *exec)
{
	return exec->flags;
}

/* Where a node runs and when: after its needs. The lock must be held. */
static struct sim_work place(struct sim_graph_exec *exec, struct sim_node *node,
	const struct sim_stream *stream, uint64_t start_ns)
{
	struct sim_work work;

	for (size_t i = 0; i < node->needs.count; i++)
		if (node->needs.nodes[i]->end_ns > start_ns)
			start_ns = node->needs.nodes[i]->end_ns;
	start_ns += tool_node_delay(exec->id, work_in(stream, start_ns, start_ns).context);
	node->end_ns = start_ns + op_cost_ns(&node->op);
	work = work_in(stream, start_ns, node->end_ns);
	work.between_kernels = node->between_kernels;
	if (node->lane)
		work.stream = exec->lanes[node->lane];
	work.node = node->id;
	work.graph_exec = exec->id;
	return work;
}

/* All nodes get their times before one is performed. The lock must be held. */
static uint64_t place_all(
	struct sim_graph_exec *exec, struct sim_stream *stream, struct sim_work *works)
{
	uint64_t start = stream_ready(stream, sim_time_ns() + LANE_START_NS), end = start;

	if (exec->end_ns > start)
		start = end = exec->end_ns;
	for (size_t i = 0; i < exec->graph->count; i++) {
		struct sim_node *node = exec->graph->nodes[i];

		works[i] = place(exec, node, stream, start);
		if (node->end_ns > end)
			end = node->end_ns;
		if (node->op.kind == SIM_HOST_FUNCTION)
			stream->host_ns = works[i].start_ns;
	}
	exec->end_ns = end;
	return stream_push(stream, end);
}

static void perform_node(const struct sim_node *node, const struct sim_work *work)
{
	struct op op = node->op;

	if (op.kind == SIM_HOST_FUNCTION)
		host_enqueue(&op.host, work->start_ns);
	if (op.kind == SIM_COPY)
		op.copy.async = true;
	if (op.kind == SIM_SET)
		op.set.async = true;
	perform(&op, work);
}

CUresult exec_launch(struct sim_graph_exec *exec, struct sim_stream *stream)
{
	struct sim_work *works;
	uint64_t room;
	CUresult result;

	if (!exec_valid(exec))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(capture_forbids_stream(stream));
	works = zalloc(exec->graph->count * sizeof(*works));
	core_lock();
	result = capture_permits_legacy(stream);
	room = result == CUDA_SUCCESS ? place_all(exec, stream, works) : 0;
	core_unlock();
	wait_until(room);
	for (size_t i = 0; i < exec->graph->count && result == CUDA_SUCCESS; i++)
		perform_node(exec->graph->nodes[i], &works[i]);
	free(works);
	return result;
}

static bool same_shape(const struct sim_node *clone, const struct sim_node *node)
{
	return clone->op.node_kind == node->op.node_kind && clone->needs.count == node->needs.count;
}

CUresult exec_update(struct sim_graph_exec *exec, struct sim_graph *graph, struct sim_node **bad)
{
	struct sim_node **order;
	CUresult result = CUDA_SUCCESS;

	*bad = NULL;
	if (!exec_valid(exec) || !graph_valid(graph))
		return CUDA_ERROR_INVALID_VALUE;
	order = zalloc(graph->count * sizeof(struct sim_node *));
	core_lock();
	if (graph->count != exec->graph->count || !graph_order(graph, order))
		result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
		if (same_shape(exec->graph->nodes[i], order[i]))
			continue;
		*bad = order[i];
		result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++)
		exec->graph->nodes[i]->op = order[i]->op;
	core_unlock();
	free(order);
	return result;
}

CUresult exec_set_op(struct sim_graph_exec *exec, struct sim_node *node, const struct op *op)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!exec_valid(exec) || !node_valid(node) || node->op.node_kind != op->node_kind)
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	for (size_t i = 0; i < exec->graph->count && result != CUDA_SUCCESS; i++) {
		if (exec->graph->nodes[i]->origin_id != node->id)
			continue;
		exec->graph->nodes[i]->op = op_kept(op);
		result = CUDA_SUCCESS;
	}
	core_unlock();
	return result;
}

SIM_EXPORT uint32_t sim_graph_exec_id(const struct sim_graph_exec *exec)
{
	return exec->id;
}
