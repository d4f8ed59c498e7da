/* SPDX-License-Identifier: MIT */
#include "report/gpu/graph_nodes.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include <stdlib.h>

#define COPY_CHAIN_MAX 16u /* clones of clones; in a damaged trace they may form a cycle */

struct graph_nodes {
	struct trace_reader *reader;
	/* Hash table by the node's id. Of the records of an id, the last that names an original
	 * counts, else the last. */
	const struct trace_graph_node **slots;
	size_t slot_count;
	struct graph_id_list {
		uint32_t *values; /* ascending */
		size_t count;
	} execs; /* ids of executable graphs with nodes that were captured in a range */
};

static const struct trace_graph_node **graph_node_slot(const struct graph_nodes *nodes, uint64_t id)
{
	size_t i = (size_t)((id + (id >> 32)) * 0x9e3779b97f4a7c15u >> 20) &
		   (nodes->slot_count - 1);

	while (nodes->slots[i] && nodes->slots[i]->graph_node != id)
		i = (i + 1) & (nodes->slot_count - 1);
	return &nodes->slots[i];
}

/* Returns the graphs with nodes that were captured in a range. Versions of CUPTI differ in whether
 * an executable graph is made of a graph or of its copy, so the list has both. */
static struct graph_id_list captured_graphs(const struct graph_nodes *nodes, uint32_t count)
{
	struct graph_id_list graphs = { .values = xcalloc(
						((size_t)count * 2 + 1) * sizeof *graphs.values) };
	struct graph_origin origin;

	for (uint32_t i = 0; i < count; i++) {
		const struct trace_graph_node *node = reader_dictionary(
			nodes->reader, TRACE_GRAPH_NODE, i);
		const struct trace_graph_node *original = node->original ? *graph_node_slot(nodes,
										   node->original)
									 : NULL;

		if (!graph_nodes_origin(nodes, node->graph_node, &origin))
			continue;
		graphs.values[graphs.count++] = node->graph;
		if (original)
			graphs.values[graphs.count++] = original->graph;
	}
	qsort(graphs.values, graphs.count, sizeof *graphs.values, compare_u32);
	return graphs;
}

static bool has_graph_id(const struct graph_id_list *ids, uint32_t number)
{
	return bsearch(&number, ids->values, ids->count, sizeof *ids->values, compare_u32) != NULL;
}

static void find_execs(struct graph_nodes *nodes, const struct graph_id_list *graphs)
{
	const uint32_t count = reader_dictionary_count(nodes->reader, TRACE_GRAPH_EXEC);

	nodes->execs.values = xcalloc(((size_t)count + 1) * sizeof *nodes->execs.values);
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_graph_exec *exec = reader_dictionary(
			nodes->reader, TRACE_GRAPH_EXEC, i);

		if (exec->exec_id && has_graph_id(graphs, exec->graph))
			nodes->execs.values[nodes->execs.count++] = exec->exec_id;
	}
	qsort(nodes->execs.values, nodes->execs.count, sizeof *nodes->execs.values, compare_u32);
}

/* CUPTI may report a clone twice when a graph is instantiated, in either order: as created, without
 * its original, and as cloned. Only the second says where its work was captured. */
static void add_graph_node(struct graph_nodes *nodes, const struct trace_graph_node *node)
{
	const struct trace_graph_node **slot = graph_node_slot(nodes, node->graph_node);

	if (!*slot || node->original || !(*slot)->original)
		*slot = node;
}

struct graph_nodes *graph_nodes_new(struct trace_reader *reader)
{
	const uint32_t count = reader_dictionary_count(reader, TRACE_GRAPH_NODE);
	struct graph_nodes *nodes = xcalloc(sizeof *nodes);
	struct graph_id_list graphs;

	nodes->reader = reader;
	for (nodes->slot_count = 16; nodes->slot_count < (size_t)count * 2;)
		nodes->slot_count *= 2;
	nodes->slots = xcalloc(nodes->slot_count * sizeof(struct trace_graph_node *));
	for (uint32_t i = 0; i < count; i++)
		add_graph_node(nodes, reader_dictionary(reader, TRACE_GRAPH_NODE, i));
	graphs = captured_graphs(nodes, count);
	find_execs(nodes, &graphs);
	free(graphs.values);
	return nodes;
}

void graph_nodes_free(struct graph_nodes *nodes)
{
	if (!nodes)
		return;
	free(nodes->slots);
	free(nodes->execs.values);
	free(nodes);
}

bool graph_nodes_origin(const struct graph_nodes *nodes, uint64_t id, struct graph_origin *origin)
{
	const struct trace_graph_node *node = id ? *graph_node_slot(nodes, id) : NULL;

	if (!node)
		return false;
	origin->instantiated = node->original ? node->head.node : 0;
	for (unsigned i = 0; node && node->original && i < COPY_CHAIN_MAX; i++)
		node = *graph_node_slot(nodes, node->original);
	if (!node || node->original || !node->head.node ||
		node->head.node >= reader_node_count(nodes->reader))
		return false;
	origin->captured = node->head.node;
	if (origin->instantiated >= reader_node_count(nodes->reader))
		origin->instantiated = 0;
	return true;
}

bool graph_nodes_captured(const struct graph_nodes *nodes, uint32_t exec_id)
{
	return has_graph_id(&nodes->execs, exec_id);
}
