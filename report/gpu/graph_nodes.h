/* SPDX-License-Identifier: MIT
 * graph_nodes.h: what was captured into CUDA graphs, and where. A graph's work names the node of the executable graph
 * that it is of; that node is a copy of one that was made while a range captured a call. Memory grows with the nodes of
 * graphs in the trace's dictionary, never with events.
 */
#ifndef PPERF_REPORT_GPU_GRAPH_NODES_H
#define PPERF_REPORT_GPU_GRAPH_NODES_H

#include "report/trace/trace_reader.h"

struct graph_nodes;

/* Places of the trace; 0: in no range. */
struct graph_origin {
	uint32_t captured; /* where the call was made that became the node */
	uint32_t
		instantiated; /* where the executable graph was made: what is open around both is not of the graph */
};

/* Reads the dictionary; the reader must outlive it. Never NULL. */
struct graph_nodes *graph_nodes_new(struct trace_reader *reader);
void graph_nodes_free(struct graph_nodes *nodes); /* NULL is fine */

/* Where a node of an executable graph comes from. False: it is not known, or in no range. */
bool graph_nodes_origin(
	const struct graph_nodes *nodes, uint64_t node, struct graph_origin *origin);
/* Whether anything in the executable graph of that id was captured in a range. */
bool graph_nodes_captured(const struct graph_nodes *nodes, uint32_t exec_id);

#endif
