/* SPDX-License-Identifier: MIT
 * instance.h: one begin..end of a range, kept until all is known of it.
 *
 * GPU work is known long after its range has closed. An instance lives while it is open, while a launch made in it
 * waits for its record, and while an instance inside it lives; then it is final: its GPU time goes to the one around
 * it, and whoever asked (instances.final) sees it.
 *
 * Where children are kept (the critical tree), an instance holds the INSTANCE_KEPT worst of those that are large enough
 * to be shown by themselves, and of all others what they come to together: one group for each node. What is inside of
 * those goes into groups of that group, and so on. Groups of another form stand for places, whatever their size: in
 * `(backward)`, the modules whose backward it was. When all is known, instance_settle makes one row of it.
 *
 * Memory: the open instances, those with launches under way, and of what is kept no more than places each.
 */
#ifndef PPERF_REPORT_PROFILE_INSTANCE_H
#define PPERF_REPORT_PROFILE_INSTANCE_H

#include "collector/trace_format.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTANCE_KEPT 64

/* What adds up while a range is open, with everything inside. */
struct instance_flows {
	uint64_t calls, alloc_bytes, tensor_bytes;
};

enum instance_form {
	INSTANCE_ONE,        /* one begin..end */
	INSTANCE_MANY,       /* several of the same node, none of them shown by itself */
	INSTANCE_TRACE_NODE, /* what others did that belong to it; it has no begin and end of its own */
};

struct instance {
	struct instance *parent; /* the one around it; NULL: none, or it is no longer of interest */
	uint32_t references;     /* launches and live instances in it; and 1 while it is open */
	uint32_t node, trace_node, stream; /* place: 0: it is named after its node */
	uint64_t begin_ns, end_ns;         /* of a group: the first begin, the last end */
	uint64_t gpu_ns, idle_ns;          /* with everything inside */
	struct instance_flows flows;
	const uint32_t *nodes; /* of all places as they stood when it began (names_nodes_below) */
	char *label;           /* its own text if the dictionary has none; owned */
	uint32_t label_bytes;
	uint8_t form; /* enum instance_form */
	bool keep;    /* its children are wanted */
	/* What one has only where children are kept, or levels are asked for. */
	struct instance *children, *next; /* kept children, worst first */
	struct instance
		*groups; /* what is kept of the others, in no order; a row through `next`, too */
	struct instance **slots; /* hash table of the groups, once there are many */
	uint32_t kept, group_count, slot_count;
	uint64_t times;    /* how many a group stands for; of one: 1 */
	uint64_t total_ns; /* from begin to end, of a group the sum */
	long double before,
		after; /* of the level asked for; of a group: at its first begin and last end */
	long double change; /* after - before, of a group the sum */
	long double value;  /* of the metric asked for, the larger the worse; set when final */
	struct trace_kernel *
		kernel; /* a copy that it owns, if it is a kernel, or all of it had the same shape */
	uint64_t
		number; /* of its place's instances, from 1, where somebody has counted them; else 0 */
};

struct instances {
	/* `instance` is final, and its parent, if it has one, still is not. Returns whether it was taken over; what was
	 * not is freed. */
	bool (*final)(void *context, struct instance *instance);
	void *context;
	bool plain; /* none is taken over, and no level is asked for: their memory is used again as it is */
	struct instance *reusable; /* such; a row through `parent` */
};

/* Gives back what is spare. */
void instances_free_spare(struct instances *instances);

/* A new one with one reference, its parent referenced too. */
struct instance *instance_new(
	struct instances *instances, struct instance *parent, uint32_t node, uint64_t begin_ns);
void instance_retain(struct instance *instance);
/* Gives a reference back; the last one makes it final. NULL is fine. */
void instance_release(struct instances *instances, struct instance *instance);
/* With all that it keeps. */
void instance_free(struct instance *instance);

/* The group of that form in `of`, made if there is none: MANY of that node; PLACE of that place, if it is 0 of that
 * node. */
struct instance *instance_group(
	struct instance *of, enum instance_form form, uint32_t node, uint32_t trace_node);
/* The figures of one are part of a group's. */
void instance_add(struct instance *group, const struct instance *one);
/* The same of one of a group of many that has a time and nothing else: that is its value. */
void instance_add_time(
	struct instance *group, uint32_t trace_node, uint64_t begin_ns, uint64_t end_ns);
/* Takes over one that is final: as a child of `of` if it is large and there is room, else in its node's group. */
void instance_adopt(struct instance *of, struct instance *one, bool large);
/* Takes over what it keeps; frees it. */
void instance_merge(struct instance *of, struct instance *one);
/* All that is kept of the children, of theirs, and so on becomes a row, the worst first: places below `least` go to
 * their node's group, groups below it go. Where `least` is not 0, instances whose names do not tell them apart go to
 * that group, too, if they are more than three; those that are three times as bad as the mean of the others stay. */
void instance_finish_children(struct instance *root, long double least);

/* `a` is worse than `b`: the larger value, then the later begin. */
bool instance_worse(const struct instance *a, const struct instance *b);

#endif
