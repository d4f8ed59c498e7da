/* Graphs as the program builds or captures them: nodes and what each needs. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/entry.h"

#define GRAPH_MAGIC 0x47524150u
#define NODE_MAGIC 0x4e4f4445u

static uint32_t graph_count;
static uint64_t node_count;

void tell_node(enum sim_resource_kind kind, struct sim_node *node)
{
	tell_resource(&(struct sim_resource){
		.kind = kind,
		.context = sim_context_current(),
		.graph = node->graph,
		.node = node,
		.node_kind = node->op.node_kind,
	});
}

CUresult graph_create(struct sim_graph **graph)
{
	struct sim_graph *made = zalloc(sizeof(*made));

	made->magic = GRAPH_MAGIC;
	made->id = __atomic_add_fetch(&graph_count, 1, __ATOMIC_RELAXED);
	*graph = made;
	tell_resource(&(struct sim_resource){
		.kind = SIM_GRAPH_CREATED,
		.context = sim_context_current(),
		.graph = made,
	});
	return CUDA_SUCCESS;
}

bool graph_valid(const struct sim_graph *graph)
{
	return graph && graph->magic == GRAPH_MAGIC;
}

bool node_valid(const struct sim_node *node)
{
	return node && node->magic == NODE_MAGIC;
}

static void node_free(struct sim_node *node)
{
	node->magic = 0;
	free(node->needs.nodes);
	free(node);
}

void graph_free(struct sim_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++)
		node_free(graph->nodes[i]);
	graph->magic = 0;
	free(graph->nodes);
	free(graph);
}

CUresult graph_destroy(struct sim_graph *graph)
{
	if (!graph_valid(graph))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < graph->count; i++)
		tell_node(SIM_NODE_DESTROY_STARTING, graph->nodes[i]);
	tell_resource(&(struct sim_resource){
		.kind = SIM_GRAPH_DESTROY_STARTING,
		.context = sim_context_current(),
		.graph = graph,
	});
	graph_free(graph);
	return CUDA_SUCCESS;
}

struct sim_node *node_append(
	struct sim_graph *graph, struct sim_node *const *needs, size_t count, const struct op *op)
{
	struct sim_node *node = zalloc(sizeof(*node));

	if (graph->count == graph->room) {
		graph->room = graph->room ? graph->room * 2 : 16;
		graph->nodes = grow(graph->nodes, graph->room * sizeof(*graph->nodes));
	}
	node->magic = NODE_MAGIC;
	node->id = ++node_count;
	node->graph = graph;
	node->op = op_kept(op);
	set_assign(&node->needs, needs, count);
	graph->nodes[graph->count++] = node;
	return node;
}

CUresult graph_add(struct sim_graph *graph, struct sim_node **node, struct sim_node *const *needs,
	size_t count, const struct op *op)
{
	if (!graph_valid(graph) || (count && !needs))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!node_valid(needs[i]) || needs[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	*node = node_append(graph, needs, count, op);
	core_unlock();
	tell_node(SIM_NODE_CREATED, *node);
	return CUDA_SUCCESS;
}

CUresult graph_connect(struct sim_graph *graph, struct sim_node *from, struct sim_node *to)
{
	if (!graph_valid(graph) || !node_valid(from) || !node_valid(to) || from->graph != graph ||
		to->graph != graph || from == to)
		return CUDA_ERROR_INVALID_VALUE;
	core_lock();
	set_include(&to->needs, &from, 1);
	core_unlock();
	return CUDA_SUCCESS;
}

static void forget(struct node_set *set, const struct sim_node *node)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->nodes[i] == node)
			set->nodes[i--] = set->nodes[--set->count];
}

CUresult node_destroy(struct sim_node *node)
{
	struct sim_graph *graph;
	size_t kept = 0;

	if (!node_valid(node))
		return CUDA_ERROR_INVALID_VALUE;
	tell_node(SIM_NODE_DESTROY_STARTING, node);
	graph = node->graph;
	core_lock();
	for (size_t i = 0; i < graph->count; i++) {
		if (graph->nodes[i] == node)
			continue;
		forget(&graph->nodes[i]->needs, node);
		graph->nodes[kept++] = graph->nodes[i];
	}
	graph->count = kept;
	core_unlock();
	node_free(node);
	return CUDA_SUCCESS;
}

static bool needs_are_marked(const struct sim_node *node)
{
	for (size_t i = 0; i < node->needs.count; i++)
		if (!node->needs.nodes[i]->mark)
			return false;
	return true;
}

/* Round by round, those whose needs are met, in the order of their making: captured graphs need
 * one. */
bool graph_order(struct sim_graph *graph, struct sim_node **order)
{
	size_t placed = 0, before;

	for (size_t i = 0; i < graph->count; i++)
		graph->nodes[i]->mark = false;
	do {
		before = placed;
		for (size_t i = 0; i < graph->count; i++) {
			struct sim_node *node = graph->nodes[i];

			if (node->mark || !needs_are_marked(node))
				continue;
			node->mark = true;
			node->index = placed;
			order[placed++] = node;
		}
	} while (placed < graph->count && placed > before);
	return placed == graph->count;
}

bool graph_joined(struct sim_graph *graph, const struct node_set *tails)
{
	struct sim_node **stack = zalloc(graph->count * sizeof(struct sim_node *));
	size_t depth = 0, reached = 0;

	for (size_t i = 0; i < graph->count; i++)
		graph->nodes[i]->mark = false;
	for (size_t i = 0; i < tails->count; i++) {
		tails->nodes[i]->mark = true;
		stack[depth++] = tails->nodes[i];
	}
	while (depth) {
		struct sim_node *node = stack[--depth];

		reached++;
		for (size_t i = 0; i < node->needs.count; i++) {
			if (node->needs.nodes[i]->mark)
				continue;
			node->needs.nodes[i]->mark = true;
			stack[depth++] = node->needs.nodes[i];
		}
	}
	free(stack);
	return reached == graph->count;
}

SIM_EXPORT uint64_t sim_node_id(const struct sim_node *node)
{
	return node->id;
}

SIM_EXPORT uint32_t sim_graph_id(const struct sim_graph *graph)
{
	return graph->id;
}
