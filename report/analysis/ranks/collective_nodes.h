/* SPDX-License-Identifier: MIT
 *
 * Finds the nodes of the call tree that launched collectives, in a profile pass without steps:
 * warm-up steps of one rank may be steady-state steps of another, and call paths would differ.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_COLLECTIVE_NODES_H
#define PPERF_REPORT_ANALYSIS_RANKS_COLLECTIVE_NODES_H

#include "report/analysis/ranks/collectives.h"
#include "report/run/process.h"

struct collective_arrival {
	uint64_t at_ns;
	size_t collective;
};

struct collective_nodes {
	const struct collectives *collectives;
	struct collective_arrival *launched; /* sorted by launch time */
	uint32_t *leaves;                    /* by collective: leaf of its GPU work; 0: none */
};

/* Returns the collectives by request time. The caller frees the array. */
struct collective_arrival *collectives_by_request(const struct collectives *collectives);

struct collective_nodes collective_nodes_new(const struct collectives *collectives);
void collective_nodes_free(struct collective_nodes *nodes);
/* Returns the options of the pass. The caller sets an observer, whose callback `leaf` calls
 * collective_nodes_add. */
struct profile_options collective_nodes_options(
	const struct process *process, const struct options *given);
/* Adds GPU work that was launched at `at_ns`. */
void collective_nodes_add(struct collective_nodes *nodes, uint32_t leaf, uint64_t at_ns);
/* Returns the node that launched a collective, or 0. */
uint32_t collective_node_of(
	const struct collective_nodes *nodes, const struct profile *profile, size_t collective);
/* Whether a leaf of GPU work is communication. */
bool collective_nodes_is_communication(const struct profile *profile, uint32_t node);

#endif
