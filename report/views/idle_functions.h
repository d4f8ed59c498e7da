/* SPDX-License-Identifier: MIT
 *
 * Rows of `idle` about CPU samples: the functions that a thread was in while a GPU was idle.
 */
#ifndef PPERF_REPORT_VIEWS_IDLE_FUNCTIONS_H
#define PPERF_REPORT_VIEWS_IDLE_FUNCTIONS_H

#include "report/analysis/host_in_gaps.h"
#include "report/table/computed_row.h"

/* Sets the number of CPU samples in a row about the launching threads. No cell if the gaps have
 * no samples. */
void idle_set_samples(
	struct computed_row *computed, const struct host_in_gaps *host, uint64_t samples);
/* Adds the functions of `node` with most samples, `top` of them, and the sum of the others, below
 * the row `parent`. The rows add up to the samples that are in the node and in no CUDA call. */
void idle_add_functions(struct rows *rows, const struct host_in_gaps *host, uint32_t node,
	uint32_t top, uint32_t parent);

#endif
