/* SPDX-License-Identifier: MIT
 * fold_graph.c: what is inside of a CUDA graph. Its work stands below the modules and operators that it was captured in,
 * as these stand elsewhere in the tree, less what was open around the whole capture (that is where the graph was
 * instantiated):
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

/* Where the nodes of graphs stand that came last: a replay has the same ones again. */
#define SEATS 4096u

struct graph_seat {
	uint64_t node; /* CUPTI's; 0: none is here */
	uint32_t graph, seat;
	bool known;
};

static const struct graph_nodes *graph_nodes(struct fold *fold)
{
	if (!fold->state->graph_nodes)
		fold->state->graph_nodes = graph_nodes_new(fold->reader);
	return fold->state->graph_nodes;
}

/* The node of a place, or of the next one around that has one. */
static uint32_t node_of(struct fold *fold, uint32_t place)
{
	const uint32_t *nodes = names_nodes_below(fold->names, 0);

	while (place && nodes[place] == NAMES_OPEN)
		place = reader_place(fold->reader, place)->parent;
	return place ? nodes[place] : 0;
}

static uint32_t level(const struct tree *tree, uint32_t node)
{
	return node ? tree->nodes[node].depth + 1u : 0;
}

/* The innermost node around both, or one of them; 0: the root. */
static uint32_t common(const struct tree *tree, uint32_t a, uint32_t b)
{
	while (a != b) {
		const uint32_t of_a = level(tree, a), of_b = level(tree, b);

		if (of_a >= of_b)
			a = tree->nodes[a].parent;
		if (of_b >= of_a)
			b = tree->nodes[b].parent;
	}
	return a;
}

static uint32_t seat_below(struct fold *fold, uint32_t graph, const struct graph_origin *origin)
{
	struct tree *tree = fold->tree;
	const uint32_t captured = node_of(fold, origin->captured);
	const uint32_t around = common(tree, captured, node_of(fold, origin->instantiated));
	uint32_t path[TREE_DEEPEST + 1], length = 0, seat = graph;

	for (uint32_t node = captured; node != around && length <= TREE_DEEPEST; node = tree->nodes[node].parent)
		path[length++] = node;
	while (length-- && tree->nodes[seat].depth < TREE_DEEPEST)
		seat = tree_captured(tree, seat, path[length]);
	return seat;
}

uint32_t fold_graph_place(struct fold *fold, uint32_t graph, const struct trace_gpu *gpu, enum method *method)
{
	struct graph_origin origin;
	struct graph_seat *seat;

	if (!fold->state->graph_seats)
		fold->state->graph_seats = need(SEATS * sizeof *seat);
	seat = &fold->state->graph_seats[(gpu->graph_node ^ (uint64_t)graph * 31) % SEATS];
	if (!gpu->graph_node || seat->node != gpu->graph_node || seat->graph != graph) {
		*seat = (struct graph_seat){ .node = gpu->graph_node, .graph = graph, .seat = graph };
		seat->known = graph_nodes_origin(graph_nodes(fold), gpu->graph_node, &origin);
		if (seat->known)
			seat->seat = seat_below(fold, graph, &origin);
	}
	*method = seat->known ? METHOD_GRAPH_NODE : METHOD_GRAPH_LEVEL;
	return seat->seat;
}

uint32_t fold_graph_replays(struct fold *fold, uint32_t unattributed, uint32_t exec_id)
{
	if (!graph_nodes_captured(graph_nodes(fold), exec_id))
		return 0;
	return tree_group(
		fold->tree, fold->tree->nodes[unattributed].parent, text_id(fold->texts, "(graph replays)", 15), 0, NODE_RANGE);
}
