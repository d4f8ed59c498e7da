/* SPDX-License-Identifier: MIT
 * memory_sites.h: the sites of memory (memory.h) as a reader of text wants them: one for each place, however many kinds of steps it ran in and however
 * many call stacks led to it.
 */
#ifndef PPERF_REPORT_ANALYSIS_ALLOCATION_SITES_H
#define PPERF_REPORT_ANALYSIS_ALLOCATION_SITES_H

#include "report/run/process.h"

/* A usual step, one of the warm-up and one that did not end are steps alike: by node, the one that stands for its place in
 * any of them. To be freed. */
uint32_t *nodes_in_any_step(const struct tree *tree);

/* Those of all levels, with what sites of the same place had together, in the fold's memory (`merged`); a second call does nothing. Stacks of native
 * code are left out where the place says who it was: a range, a module or an operator, and not only a part of the program or nothing. */
void allocation_sites_merge(struct process *process);

#endif
