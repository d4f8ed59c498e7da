/* SPDX-License-Identifier: MIT
 *
 * Merges memory sites for text output: one for each call path, whatever sections of the run and
 * kinds of steps it ran in, and whatever call stacks led to it.
 */
#ifndef PPERF_REPORT_ANALYSIS_ALLOCATION_SITES_H
#define PPERF_REPORT_ANALYSIS_ALLOCATION_SITES_H

#include "report/run/process.h"

/* Maps each node to the node that represents its call path in all kinds of steps (steady-state,
 * warm-up, unfinished). Returns an array by node, which the caller frees. */
uint32_t *nodes_in_any_step(const struct tree *tree);

/* Maps each node to the first node with the same call path, where steps and sections of the run do
 * not count as a part of it. Maps these to the node around them. Returns an array by node, which
 * the caller frees. */
uint32_t *nodes_by_call_path(const struct tree *tree);

/* Merges the sites of all levels that share a call path, into memory->merged of the profile. A
 * second call does nothing. Native call stacks are dropped where the node itself names the owner.
 * Steps, sections of the run and the node "unattributed" name none.
 */
void allocation_sites_merge(struct process *process);

#endif
