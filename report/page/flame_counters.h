/* SPDX-License-Identifier: MIT
 * Collects the program's own counters for flame graphs: which nodes reported increases. It makes a
 * pass over the trace.
 */
#ifndef PPERF_REPORT_PAGE_FLAME_COUNTERS_H
#define PPERF_REPORT_PAGE_FLAME_COUNTERS_H

#include "report/page/flame_tree.h"

/* The sum of the increases of the counter `counter` in a node of `profile`'s tree. */
struct counter_sum {
	uint32_t node, counter; /* counter: index of flame.metrics */
	long double sum;
};
struct counter_sums {
	struct flame *flame;
	struct counter_sum *sums;
	size_t count, room;
	struct hash_index index;
	long double *last; /* by metric: the last value */
	bool *known;       /* by metric: it has a value */
	struct profile_observer observer;
};

/* Adds a metric for each counter that the process reported. */
void flame_add_counters(struct flame *flame, const struct process *process);
/* Prepares `sums->observer`, which an options of a pass takes. */
void counter_sums_begin(struct counter_sums *sums, struct flame *flame);
void counter_sums_free(struct counter_sums *sums);

#endif
