/* SPDX-License-Identifier: MIT
 * Stores the edges of the critical path in a temporary file (number_log.h), about two bytes each.
 * They are added by the point that they lead to, all to one point together, and are read backwards.
 *
 *	struct edge_groups *groups = edge_groups_new();
 *
 *	edge_groups_add(groups, from, to, at_ns);
 *	struct edge_group group = edge_groups_last(groups);
 *	while (edge_groups_back(groups, &group))
 *		... group.to, group.from[0] to group.from[group.count - 1] ...
 *	edge_group_free(&group);
 *	edge_groups_free(groups);
 *
 * One group is read at a time. Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_EDGE_GROUPS_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_EDGE_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct edge_groups;

/* The edges to the point `to`. */
struct edge_group {
	uint32_t to;
	uint32_t *from; /* first the one that holds up `to`; there is always one */
	size_t count, room;
	uint32_t next_to; /* the point of the group before it */
	/* While edges are added: the latest time at which one of them lets `to` be. */
	uint64_t latest_ns;
};

struct edge_groups *edge_groups_new(void);
void edge_groups_free(struct edge_groups *groups); /* `groups` may be NULL */

/* Adds an edge. `at_ns`: when `from` lets `to` be. What lets it be latest holds it up: of equal
 * ones, the one that was added first. */
void edge_groups_add(struct edge_groups *groups, uint32_t from, uint32_t to, uint64_t at_ns);

/* Returns the place after the last group. No edge may be added any more. */
struct edge_group edge_groups_last(struct edge_groups *groups);
/* Reads the group before `group`. Returns false if there is none. */
bool edge_groups_back(struct edge_groups *groups, struct edge_group *group);
void edge_group_free(struct edge_group *group);

#endif
