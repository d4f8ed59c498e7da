/* SPDX-License-Identifier: MIT
 * Finds the range that captured a node of a CUDA graph. GPU work of a graph names the node of the
 * executable graph that it ran. That node is a clone of an original node, which was created while a
 * range captured a call.
 *
 * Memory grows with the graph nodes in the trace's dictionary, never with the events.
 */
#ifndef PPERF_REPORT_GPU_GRAPH_NODES_H
#define PPERF_REPORT_GPU_GRAPH_NODES_H

#include "report/trace/trace_reader.h"

struct graph_nodes;

/* Trace nodes of the ranges in which a graph node was made. 0: in no range. */
struct graph_origin {
	uint32_t captured; /* where the call was captured that became the node */
	/* Where the executable graph was made. Ranges that were open around both places are not
	 * part of the graph. */
	uint32_t instantiated;
};

/* Reads the dictionary. `reader` must outlive the result. Never returns NULL. */
struct graph_nodes *graph_nodes_new(struct trace_reader *reader);
void graph_nodes_free(struct graph_nodes *nodes); /* NULL is allowed */

/* Finds the origin of `node`, a node of an executable graph. Returns false if it is unknown or
 * was captured in no range. */
bool graph_nodes_origin(
	const struct graph_nodes *nodes, uint64_t node, struct graph_origin *origin);
/* Returns true if any node of the executable graph `exec_id` was captured in a range. */
bool graph_nodes_captured(const struct graph_nodes *nodes, uint32_t exec_id);

#endif
