/* SPDX-License-Identifier: MIT
 * chosen.h: the instances of places that somebody wants to look at: the first, the last, those that are worst by the
 * metric. From two passes over the trace that are made for it, in memory for those alone.
 */
#ifndef PPERF_REPORT_ANALYSIS_PICK_INSTANCES_H
#define PPERF_REPORT_ANALYSIS_PICK_INSTANCES_H

#include "report/run/node_lookup.h"

struct picked_instance {
	uint32_t node, stream, trace_node;
	uint64_t begin_ns, end_ns;
	uint64_t number;   /* by when they began, from 1 */
	long double value; /* of the metric */
};

/* Of one place. */
struct picked_instances {
	uint32_t node;
	uint64_t
		instances; /* of which something is known by the metric: on the GPU, those with work */
	struct picked_instance *list; /* the worst first; of equal ones the latest */
	size_t count, room;
	uint64_t *begins, *earlier; /* while they are read */
};

/* One for each place, in their order; of each no more than `most`. Places whose instances have nothing of the metric
 * have no worst one. */
struct picked_instances *pick_instances(struct process *process, const struct node_list *node_list,
	enum instances_of which, size_t most);
void picked_instances_free(struct picked_instances *chosen, size_t count);

#endif
