/* SPDX-License-Identifier: MIT
 * Chooses how the launches of CUDA graphs are recorded (PPERF_GRAPHS):
 *
 *   nodes   a record for each kernel, copy and memset of the graph
 *   whole   one record for each launch, from the first start to the last end (GRAPH_TRACE)
 *   auto    nodes, until they exceed a rate; from then on whole
 *
 * While GRAPH_TRACE is enabled, CUPTI leaves out the nodes for every client (wolfpld/tracy#1330).
 * So it is disabled while a second client has enabled kernels, copies or memsets.
 */
#ifndef PPERF_COLLECTOR_CUPTI_GRAPH_TRACE_H
#define PPERF_COLLECTOR_CUPTI_GRAPH_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The default rate for `auto`: 5 % of the time if CUPTI takes 1 us for a node. That cost is an
 * assumption. */
#define CUPTI_GRAPH_NODES_MAX UINT64_C(50000)

/* Called when the session's record kinds are enabled or disabled, under the session's lock. Returns
 * CUPTI's result code. */
int cupti_graph_trace_enable(void);
void cupti_graph_trace_disable(void);

/* Called after a second client has enabled or disabled `kind` in CUPTI, or what it shares with us.
 * Any thread, no lock. */
void cupti_graph_trace_client_changed(uint32_t kind, bool enabled);

extern _Atomic uint64_t cupti_graph_nodes; /* node records since the last poll */
/* Nodes that started before this time of CLOCK_REALTIME are not counted. UINT64_MAX: none is. */
extern _Atomic uint64_t cupti_graph_nodes_from_ns;

/* Called for each record of a graph node. */
static inline void cupti_graph_trace_count_node(uint64_t start_ns)
{
	if (start_ns >= atomic_load_explicit(&cupti_graph_nodes_from_ns, memory_order_relaxed))
		atomic_fetch_add_explicit(&cupti_graph_nodes, 1, memory_order_relaxed);
}

/* Called ten times a second, without the session's lock. */
void cupti_graph_trace_poll(void);

#endif
