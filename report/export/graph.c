/* SPDX-License-Identifier: MIT
 *
 * What a program computes, without times: steps, modules, operators and kernels, each below what
 * called it, with the number of times. Two runs of a program that does the same give the same text,
 * so that `diff` shows what changed: other kernels, other launch configurations, more calls.
 *
 *	train ×1
 *	  step * ×3
 *	    aten::linear ×6
 *	      sgemm ×6 <<<(8,1,1), (128,1,1)>>> 48 registers, 16384 B shared memory
 */
#include "report/base/alloc.h"
#include "report/export/export.h"
#include "report/export/tree_frames.h"
#include <stdio.h>
#include <stdlib.h>

/* How often a node launched a kernel in one configuration. */
struct graph_launch {
	uint32_t node, config; /* node of a kernel; index in profile.kernels */
	uint64_t calls;
	uint32_t next; /* the node's next launch + 1; 0: none */
};

struct graph {
	struct output *out;
	const struct process *process;
	struct graph_launch *launches;
	size_t launch_count, launch_room;
	struct hash_index index; /* of launches by node and configuration */
	uint32_t *first, *last;  /* by node: its first and last launch + 1; 0: none */
	bool *has_events;        /* by node: something happened in it or below it */
	/* By node: its first child, the last one so far, and the next child of its parent, in the
	 * order in which the program reached them. 0: none. */
	uint32_t *child, *last_child, *next;
};

/* ---- the launches of each node ---- */

static void restart(void *context)
{
	struct graph *graph = context;

	graph->launch_count = 0;
	hash_index_free(&graph->index);
	graph->index = (struct hash_index){ 0 };
}

static void add_work(void *context, const struct observed_gpu_work *work)
{
	struct graph *graph = context;
	const uint64_t hash = hash_u64(hash_u64(work->node) ^ work->kernel);
	struct hash_slot *slot;

	if (work->gpu->head.kind != TRACE_KERNEL || !work->counts)
		return;
	hash_index_reserve(&graph->index);
	for (slot = hash_index_first(&graph->index, hash); slot->number;
		slot = hash_index_next(&graph->index, slot)) {
		struct graph_launch *known = &graph->launches[slot->number - 1];

		if (known->node == work->node && known->config == work->kernel) {
			known->calls++;
			return;
		}
	}
	*ARRAY_ADD(graph->launches, graph->launch_room,
		graph->launch_count) = (struct graph_launch){ work->node, work->kernel, 1, 0 };
	hash_index_add(&graph->index, slot, hash, (uint32_t)graph->launch_count);
}

/* Links the launches of each node, in the order of their first calls. */
static void link_launches(struct graph *graph, uint32_t node_count)
{
	graph->first = xcalloc(node_count * sizeof *graph->first);
	graph->last = xcalloc(node_count * sizeof *graph->last);
	for (uint32_t i = 0; i < graph->launch_count; i++) {
		const uint32_t node = graph->launches[i].node;

		if (graph->last[node])
			graph->launches[graph->last[node] - 1].next = i + 1;
		else
			graph->first[node] = i + 1;
		graph->last[node] = i + 1;
	}
}

/* ---- text ---- */

static void put_indent(struct graph *graph, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		output_string(graph->out, "  ");
}

static void put_name(struct graph *graph, uint32_t node, unsigned depth, uint64_t calls)
{
	const struct string_view name = frame_name(graph->process, node);

	put_indent(graph, depth);
	output_bytes(graph->out, name.bytes, name.length);
	if (calls) {
		output_string(graph->out, " \xc3\x97");
		output_unsigned(graph->out, calls);
	}
}

static void put_launch(struct graph *graph, const struct graph_launch *launch, unsigned depth,
	const struct launch_configs *configs)
{
	const struct trace_kernel *shape = &configs->kernels[launch->config].record;
	char text[200];

	put_name(graph, launch->node, depth, launch->calls);
	if (shape->grid[0]) {
		snprintf(text, sizeof text,
			" <<<(%u,%u,%u), (%u,%u,%u)>>> %u registers, %llu B shared memory",
			shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
			shape->block[1], shape->block[2], shape->registers,
			(unsigned long long)shape->static_shared_bytes +
				shape->dynamic_shared_bytes);
		output_string(graph->out, text);
	}
	output_char(graph->out, '\n');
}

/* Writes a node, and returns whether it has a line. */
static bool put_node(
	struct graph *graph, uint32_t id, unsigned depth, const struct launch_configs *configs)
{
	const struct node *node = &graph->process->profile->tree->nodes[id];

	if (node_kind_class(node->kind) == NODE_CALLS)
		return false;
	for (uint32_t i = graph->first[id]; i; i = graph->launches[i - 1].next)
		put_launch(graph, &graph->launches[i - 1], depth, configs);
	if (graph->first[id])
		return true;
	put_name(graph, id, depth,
		node_kind_class(node->kind) == NODE_WORK ? node->gpu ? node->gpu->self_calls : 0
							 : node->calls);
	output_char(graph->out, '\n');
	return true;
}

/* Returns the next node after `id`, parents first: its first child if `below`, else the next node
 * that is not below it. 0: there is none. */
static uint32_t next_node(const struct graph *graph, uint32_t id, bool below, unsigned *depth)
{
	if (below && graph->child[id]) {
		(*depth)++;
		return graph->child[id];
	}
	for (; id; id = graph->process->profile->tree->nodes[id].parent, (*depth)--)
		if (graph->next[id])
			return graph->next[id];
	return 0;
}

/* Links the children of each node that have events. */
static void link_children(struct graph *graph)
{
	const struct tree *tree = graph->process->profile->tree;

	graph->has_events = xcalloc(tree->count * sizeof *graph->has_events);
	graph->child = xcalloc(tree->count * sizeof *graph->child);
	graph->last_child = xcalloc(tree->count * sizeof *graph->last_child);
	graph->next = xcalloc(tree->count * sizeof *graph->next);
	for (uint32_t id = tree->count; id-- > 1;) {
		const struct node *node = &tree->nodes[id];

		graph->has_events[id] |= node->calls || (node->gpu && node->gpu->total_calls);
		graph->has_events[node->parent] |= graph->has_events[id];
	}
	for (uint32_t id = 1; id < tree->count; id++) {
		const uint32_t parent = tree->nodes[id].parent;

		if (!graph->has_events[id])
			continue;
		if (graph->last_child[parent])
			graph->next[graph->last_child[parent]] = id;
		else
			graph->child[parent] = id;
		graph->last_child[parent] = id;
	}
}

static void free_graph(struct graph *graph)
{
	free(graph->first);
	free(graph->last);
	free(graph->launches);
	free(graph->has_events);
	free(graph->child);
	free(graph->last_child);
	free(graph->next);
	hash_index_free(&graph->index);
}

static void put_process(struct graph *graph)
{
	const struct process *process = graph->process;
	const struct profile_observer observer = {
		.context = graph, .restart = restart, .work = add_work
	};
	const struct profile_options options = profile_options_for_observer(
		process->profile, &observer);
	struct profile *pass = profile_build(process->reader, process->texts, &options);
	unsigned depth = 0;

	link_launches(graph, pass->tree->count);
	link_children(graph);
	for (uint32_t id = graph->child[0]; id && !graph->out->error;) {
		const bool is_shown = put_node(graph, id, depth, pass->kernels);

		id = next_node(graph, id, is_shown, &depth);
	}
	profile_free(pass);
	free_graph(graph);
}

void export_graph(const struct options *options, struct processes *processes, struct output *out)
{
	(void)options;
	for (size_t i = 0; i < processes->shown; i++) {
		struct graph graph = { .out = out, .process = &processes->all[i] };

		if (processes->shown > 1) {
			output_string(out, i ? "\n" : "");
			output_string(out, process_name(graph.process));
			output_char(out, '\n');
		}
		put_process(&graph);
	}
}
