/* SPDX-License-Identifier: MIT
 *
 * Groups what a device held at a moment: its tensors, and the device memory in which no tensors are
 * known, by where, when or by whom it was allocated.
 */
#ifndef PPERF_REPORT_ANALYSIS_MEMORY_GROUPS_H
#define PPERF_REPORT_ANALYSIS_MEMORY_GROUPS_H

#include "report/analysis/memory_moments.h"

struct memory_group {
	uint64_t key;
	uint64_t bytes, count; /* of its tensors, or its allocations */
	uint64_t since_ns;     /* when the oldest of them was allocated */
	/* Free bytes of the segments in which only this group has tensors. */
	uint64_t pinned;
	/* Of its largest tensor: the tree node and the stack that allocated it. */
	uint32_t node, stack;
	uint64_t largest;
};

struct memory_groups {
	struct memory_group *groups; /* by descending bytes */
	size_t count;
	uint32_t *group_of_block; /* by index in moment->blocks; NULL: grouped segments */
};

/* Groups the tensors of a moment that was taken with its parts, by `by`: BY_PATH, BY_MODULE,
 * BY_STEP, BY_LINE, BY_SIZE or BY_LIBRARY. */
struct memory_groups memory_groups_of_tensors(
	struct process *process, const struct memory_moment *moment, enum rows_by by);
/* Groups the segments in which no tensors are known. */
struct memory_groups memory_groups_of_unknown(
	struct process *process, const struct memory_moment *moment, enum rows_by by);
void memory_groups_free(struct memory_groups *groups);

/* Returns the name of a group, valid until the next call. */
struct string_view memory_group_name(
	struct process *process, const struct memory_group *group, enum rows_by by);

/* Returns the file name of the loaded object that called CUDA, as a text of process->texts: the
 * innermost one on the native stack that is not CUDA's own. 0: not known. */
uint32_t memory_library(struct process *process, uint32_t stack);
/* Writes the innermost line of the program's own code on the stack, as `file:line function`.
 * Returns its length; 0: the stack has none. */
size_t memory_line(struct process *process, uint32_t stack, char *out, size_t room);

#endif
