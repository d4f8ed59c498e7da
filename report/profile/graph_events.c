/* SPDX-License-Identifier: MIT
 * Finds the nodes inside a CUDA graph. Its work is shown below the modules and operators in
 * which it was captured, as they are elsewhere in the tree. What was open around the whole
 * capture, where the graph was instantiated, is left out:
 *
 *	warm up                                  replay
 *	    Net                <- captured           graph 1
 *	        fc                                       Net
 *	            aten::addmm                              fc
 *	                                                         aten::addmm
 *	                                                             sgemm
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/gpu/graph_nodes.h"

/* The cache of the last graph nodes' parents. A replay has the same nodes again. */
#define GRAPH_PARENTS 4096u

struct graph_parent {
	uint64_t node; /* CUPTI's id; 0: empty slot */
	uint32_t graph, parent;
	bool known;
};

static const struct graph_nodes *graph_nodes(struct profile *profile)
{
	if (!profile->state->graph_nodes)
		profile->state->graph_nodes = graph_nodes_new(profile->reader);
	return profile->state->graph_nodes;
}

/* The tree node of `trace_node`, or of the next one around it that has one. */
static uint32_t node_of_trace_node(struct profile *profile, uint32_t trace_node)
{
	const uint32_t *nodes = node_names_nodes(profile->names, 0);

	while (trace_node && nodes[trace_node] == NODE_UNRESOLVED)
		trace_node = reader_node(profile->reader, trace_node)->parent;
	return trace_node ? nodes[trace_node] : 0;
}

static uint32_t tree_level(const struct tree *tree, uint32_t node)
{
	return node ? tree->nodes[node].depth + 1u : 0;
}

/* The innermost node that contains both or is one of them. 0: the root. */
static uint32_t common_ancestor(const struct tree *tree, uint32_t a, uint32_t b)
{
	while (a != b) {
		const uint32_t of_a = tree_level(tree, a), of_b = tree_level(tree, b);

		if (of_a >= of_b)
			a = tree->nodes[a].parent;
		if (of_b >= of_a)
			b = tree->nodes[b].parent;
	}
	return a;
}

static uint32_t find_graph_parent(
	struct profile *profile, uint32_t graph, const struct graph_origin *origin)
{
	struct tree *tree = profile->tree;
	const uint32_t captured = node_of_trace_node(profile, origin->captured);
	const uint32_t around = common_ancestor(
		tree, captured, node_of_trace_node(profile, origin->instantiated));
	uint32_t path[TREE_DEPTH_MAX + 1], length = 0, parent = graph;

	for (uint32_t node = captured; node != around && length <= TREE_DEPTH_MAX;
		node = tree->nodes[node].parent)
		path[length++] = node;
	while (length-- && tree->nodes[parent].depth < TREE_DEPTH_MAX)
		parent = tree_captured_child(tree, parent, path[length]);
	return parent;
}

uint32_t profile_graph_parent(
	struct profile *profile, uint32_t graph, const struct trace_gpu *gpu, enum method *method)
{
	struct graph_origin origin;
	struct graph_parent *parent;

	if (!profile->state->graph_parents)
		profile->state->graph_parents = xcalloc(GRAPH_PARENTS * sizeof *parent);
	parent = &profile->state
			  ->graph_parents[(gpu->graph_node ^ (uint64_t)graph * 31) % GRAPH_PARENTS];
	if (!gpu->graph_node || parent->node != gpu->graph_node || parent->graph != graph) {
		*parent = (struct graph_parent){
			.node = gpu->graph_node, .graph = graph, .parent = graph
		};
		parent->known = graph_nodes_origin(graph_nodes(profile), gpu->graph_node, &origin);
		if (parent->known)
			parent->parent = find_graph_parent(profile, graph, &origin);
	}
	*method = parent->known ? METHOD_GRAPH_NODE : METHOD_GRAPH_LEVEL;
	return parent->parent;
}

uint32_t profile_graph_replay_node(struct profile *profile, uint32_t unattributed, uint32_t exec_id)
{
	if (!graph_nodes_captured(graph_nodes(profile), exec_id))
		return 0;
	return tree_group(profile->tree, profile->tree->nodes[unattributed].parent,
		string_table_intern(profile->texts, "(graph replays)", 15), 0, NODE_RANGE);
}
