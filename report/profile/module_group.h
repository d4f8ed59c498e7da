/* SPDX-License-Identifier: MIT
 * members.h: the modules that fold into one place, such as layers.0 to layers.11, each with what it took, so that the
 * one that differs from the others can be named.
 *
 * What a member takes on the GPU is all that was launched in it and in what it calls, and what runs backward for that.
 */
#ifndef PPERF_REPORT_PROFILE_MODULE_GROUP_H
#define PPERF_REPORT_PROFILE_MODULE_GROUP_H

#include "report/base/hash_index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module_instance {
	uint32_t node, label; /* of the tree; text */
	uint32_t above;       /* the member around it, a number below its own; 0: none */
	uint64_t calls, cpu_ns, longest_ns, gpu_ns; /* longest: of the calls, on the CPU */
};

struct module_group {
	struct module_instance
		*all; /* 1 to count - 1; before members_sum one for each that is around it */
	uint32_t count;
	size_t room;
	struct hash_index index; /* by node, label and the member around it */
	bool summed;
};

struct module_group *module_group_new(void);
void module_group_free(struct module_group *group);

/* The number of a member; made if it is new. Before members_sum. */
uint32_t module_group_number(
	struct module_group *group, uint32_t node, uint32_t label, uint32_t above);

/* Adds up what members have with those inside, drops those that took nothing, and puts those of a node side by side: numbers change. */
void module_group_finish(struct module_group *group);

/* What the members of a node have, in ns; on the CPU without the longest call of each that was called three times or
 * more: that is the first one so often. odd: the one that is furthest from the median, if it is clearly out of line
 * (at least three members, at least 1.5 times the median or two thirds of it, and three times as far off as most are). */
struct module_spread {
	uint32_t count;
	uint64_t least, median, most;
	const struct module_instance *outlier; /* NULL: none is */
	uint64_t outlier_ns;
};

/* by_gpu: of GPU time, else CPU time. False: the node has less than two members. After members_sum. */
bool module_group_spread(
	const struct module_group *group, uint32_t node, bool by_gpu, struct module_spread *spread);

#endif
