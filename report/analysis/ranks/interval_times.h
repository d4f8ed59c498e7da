/* SPDX-License-Identifier: MIT
 *
 * Sums the CPU time and the GPU work of each node of a profile in given intervals, such as those
 * before the collectives for which a rank was last.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_INTERVAL_TIMES_H
#define PPERF_REPORT_ANALYSIS_RANKS_INTERVAL_TIMES_H

#include "report/analysis/ranks/collective_nodes.h"

struct time_interval;

struct interval_times {
	struct time_interval *all; /* owned; by begin, without overlaps */
	size_t count, room;
	uint64_t *cpu, *gpu; /* time spent in the intervals, by node; owned */
	size_t cpu_room, gpu_room;
};

/* Adds an interval after the others. */
void interval_times_add(struct interval_times *times, uint64_t begin_ns, uint64_t end_ns);
void interval_times_free(struct interval_times *times);

/* One profile pass that fills several sums, and the nodes of the collectives. */
struct interval_pass {
	struct interval_times *each;
	size_t count;
	struct collective_nodes *nodes; /* NULL: not needed */
};

/* Returns the observer of the pass, whose options are those of collective_nodes_options. */
struct profile_observer interval_pass_observer(struct interval_pass *pass);
/* Adds GPU work to the nodes above. Communication is left out: it is what ranks wait for, not what
 * delays them. */
void interval_pass_finish(const struct interval_pass *pass, const struct profile *profile);

#endif
