/* SPDX-License-Identifier: MIT
 * Keeps the figures of each module whose label pattern is shared, such as layers.0 to layers.11.
 *
 * So the instance that differs from the others can be named. Its GPU time includes all that was
 * launched in it and in what it calls, and what runs backward for that.
 */
#ifndef PPERF_REPORT_PROFILE_MODULE_GROUP_H
#define PPERF_REPORT_PROFILE_MODULE_GROUP_H

#include "report/base/hash_index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module_instance {
	uint32_t node, label; /* tree node; text */
	uint32_t above;       /* number of the instance around it, lower than its own; 0: none */
	uint64_t calls, cpu_ns, longest_ns, gpu_ns; /* longest_ns: of the calls, on the CPU */
};

struct module_group {
	/* Entries 1 to count - 1. Before module_group_finish there is one for each instance
	 * around it. */
	struct module_instance *all;
	uint32_t count;
	size_t room;
	struct hash_index index; /* by node, label and the member around it */
	bool summed;
};

struct module_group *module_group_new(void);
void module_group_free(struct module_group *group);

/* The number of an instance; added if it is new. Before module_group_finish. */
uint32_t module_group_number(
	struct module_group *group, uint32_t node, uint32_t label, uint32_t above);

/* Adds the GPU time of inner instances to outer ones, drops those without figures, and sorts the
 * entries by node. Numbers change. */
void module_group_finish(struct module_group *group);

/* The times of a node's instances in ns. CPU time leaves out the longest call of an instance
 * with three or more calls, because it is often the first one. `outlier` is the instance
 * furthest from the median. It must be
 *
 *   - one of at least three instances,
 *   - at least 1.5 times the median, or at most two thirds of it, and
 *   - more than three times as far from the median as the median distance. */
struct module_spread {
	uint32_t count;
	uint64_t least, median, most;
	const struct module_instance *outlier; /* NULL: none */
	uint64_t outlier_ns;
};

/* `by_gpu`: GPU time, else CPU time. Returns false if the node has fewer than two instances.
 * After module_group_finish. */
bool module_group_spread(
	const struct module_group *group, uint32_t node, bool by_gpu, struct module_spread *spread);

#endif
