/* SPDX-License-Identifier: MIT
 * Keeps one instance (begin to end) of a range until all is known about it.
 *
 * GPU work is reported long after its range has closed. An instance lives while
 *
 *   - it is open,
 *   - a launch made in it waits for its GPU record, or
 *   - an instance inside it lives.
 *
 * Then it is final. Its GPU time is added to its parent, and instances.final is called.
 *
 * Where children are kept (the critical tree), an instance holds the INSTANCE_KEPT worst of the
 * children that are large enough to be shown. The others are summed in one group per node. What
 * is inside them is summed in groups of that group, and so on. Groups of the form
 * INSTANCE_TRACE_NODE represent trace nodes, whatever their size. In `(backward)` these are the
 * modules whose backward ran. When all is known, instance_finish_children makes one list of
 * children and groups.
 *
 * Memory: the open instances, those with pending launches, and of what is kept at most one group
 * per node.
 */
#ifndef PPERF_REPORT_PROFILE_INSTANCE_H
#define PPERF_REPORT_PROFILE_INSTANCE_H

#include "collector/trace_format.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTANCE_KEPT 64

/* Sums while a range is open, including all that is inside it. */
struct instance_sums {
	uint64_t calls, alloc_bytes, tensor_bytes;
};

enum instance_form {
	INSTANCE_ONE,  /* one begin and end */
	INSTANCE_MANY, /* the sum of instances of one node that are not shown by themselves */
	/* what others did that belongs to it; has no begin and end of its own */
	INSTANCE_TRACE_NODE,
};

struct instance {
	/* All that an instance has whose children are not kept (INSTANCE_LIVE_BYTES). It fills one
	 * cache line, because thousands of instances wait for their GPU records. */
	struct instance *parent;   /* NULL: none, or the parent is not of interest any more */
	uint64_t begin_ns, end_ns; /* of a group: first begin, last end */
	uint64_t gpu_ns;           /* including all inside */
	char *label;               /* its text if the dictionary has none; owned */
	uint32_t label_bytes;
	uint32_t references; /* launches and live instances in it; plus 1 while it is open */
	uint32_t node, trace_node, stream; /* trace_node 0: named after its node */

	uint64_t idle_ns; /* including all inside */
	struct instance_sums sums;
	const uint32_t *nodes;            /* tree node of each trace node, when it began */
	uint8_t form;                     /* enum instance_form */
	bool keep;                        /* keep its children */
	bool is_peak;                     /* level_after is the highest level */
	struct instance *children, *next; /* children kept, worst first */
	/* Sums of the other children, unordered; linked by `next`. */
	struct instance *groups;
	struct instance **slots; /* hash table of the groups; NULL: few groups */
	uint32_t kept, group_count, slot_count;
	uint64_t times;    /* instances in a group; else 1 */
	uint64_t total_ns; /* end - begin; of a group the sum */
	/* The metric's level; of a group: at the first begin and the last end. */
	long double level_before, level_after;
	long double change; /* after - before; of a group the sum */
	long double value;  /* of the metric, larger is worse; set when final */
	/* Owned copy if it is a kernel, or a group of kernels of one launch configuration. */
	struct trace_kernel *kernel;
	/* Number among the instances of its node, from 1. 0: not counted. */
	uint64_t number;
};

#define INSTANCE_LIVE_BYTES offsetof(struct instance, idle_ns)

struct instances {
	/* Called when `instance` is final. Its parent, if any, is not final yet. Returns true if
	 * the callback took ownership, which it may if children are kept; otherwise the instance
	 * is freed. */
	bool (*final)(void *context, struct instance *instance);
	void *context;
	bool keeps_children;
	/* Without children: instances for reuse, the next one last, and all memory of them. */
	struct instance **reusable;
	size_t reusable_count, reusable_room;
	struct instance_block *blocks;
	size_t made; /* instances in all blocks */
};

/* Prefetches an instance that was used thousands of events ago, so that it is no longer in the
 * caches. */
static inline void instance_prefetch(const struct instance *instance)
{
	__builtin_prefetch(instance, 1);
}

/* Frees the memory of instances without children. None is in use any more. */
void instances_free_blocks(struct instances *instances);

/* Allocates an instance with one reference, and adds a reference to `parent` (may be NULL). */
struct instance *instance_new(
	struct instances *instances, struct instance *parent, uint32_t node, uint64_t begin_ns);
void instance_retain(struct instance *instance);
/* Drops a reference. The last one makes `instance` final. NULL is allowed. */
void instance_release(struct instances *instances, struct instance *instance);
/* Frees `instance` (may be NULL) with all children and groups. */
void instance_free(struct instance *instance);

/* The group of `form` in `of`, allocated if there is none. INSTANCE_MANY: keyed by `node`.
 * INSTANCE_TRACE_NODE: keyed by `trace_node`, or by `node` if that is 0. */
struct instance *instance_group(
	struct instance *of, enum instance_form form, uint32_t node, uint32_t trace_node);
/* Adds the figures of `one` to `group`. */
void instance_add(struct instance *group, const struct instance *one);
/* Adds an instance to an INSTANCE_MANY group whose metric is time and which has no other
 * figures. */
void instance_add_time(
	struct instance *group, uint32_t trace_node, uint64_t begin_ns, uint64_t end_ns);
/* Takes ownership of `one`, which is final. It becomes a child of `of` if `large` and among the
 * worst, else part of its node's group. */
void instance_adopt(struct instance *of, struct instance *one, bool large);
/* Moves the children and groups of `one` to `of`, and frees `one`. */
void instance_merge(struct instance *of, struct instance *one);
/* Makes one list of children and groups, worst first, in `root` and everything below:
 *
 *   - INSTANCE_TRACE_NODE groups below `least` are added to their node's group.
 *   - Other groups below `least` are freed.
 *   - If `least` is not 0 and more than three instances have one name, they are added to
 *     their node's group. An instance that is three times as bad as the mean of the others
 *     stays. */
void instance_finish_children(struct instance *root, long double least);

/* Whether `a` is worse than `b`: the larger value, then the later begin, then the larger ids. */
bool instance_worse(const struct instance *a, const struct instance *b);

#endif
