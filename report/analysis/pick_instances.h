/* SPDX-License-Identifier: MIT
 *
 * Finds selected instances of nodes: the first, the last, or the worst ones by the metric. Takes
 * two passes over the trace; memory is proportional to the instances selected.
 */
#ifndef PPERF_REPORT_ANALYSIS_PICK_INSTANCES_H
#define PPERF_REPORT_ANALYSIS_PICK_INSTANCES_H

#include "report/run/node_lookup.h"

struct picked_instance {
	uint32_t node, stream, trace_node;
	uint64_t begin_ns, end_ns;
	uint64_t number;   /* by begin, from 1 */
	long double value; /* of the metric */
};

/* The selected instances of one node. */
struct picked_instances {
	uint32_t node;
	uint64_t instances; /* with a value of the metric; for GPU metrics, those with GPU work */
	struct picked_instance *list; /* the worst first; of equal ones the latest */
	size_t count, room;
	uint64_t *begins, *earlier; /* only while the trace is read */
};

/* Returns an array with one element for each node of `node_list`, in its order, with at most `most`
 * instances each. INSTANCES_WORST finds nothing for nodes without values of the metric. */
struct picked_instances *pick_instances(struct process *process, const struct node_list *node_list,
	enum instances_of which, size_t most);
void picked_instances_free(struct picked_instances *chosen, size_t count);

#endif
