/* SPDX-License-Identifier: MIT
 * instance.h: one begin..end of a range, kept until all is known of it.
 *
 * GPU work is known long after its range has closed. An instance lives while it is open, while a launch made in it
 * waits for its record, and while an instance inside it lives; then it is final: its GPU time goes to the one around
 * it, and whoever asked (instances_final) sees it. Where children are kept (the critical tree), an instance holds the
 * INSTANCE_KEPT worst of them.
 *
 * Memory: the open instances, those with launches under way, and what is kept.
 */
#ifndef PPERF_INSTANCE_H
#define PPERF_INSTANCE_H

#include "collector/trace_format.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTANCE_KEPT 64

struct instance {
	struct instance *parent;      /* the one around it; NULL: none, or it is no longer of interest */
	struct instance *kids, *next; /* kept children, worst first */
	uint32_t kept, node, place, stream;
	uint32_t references; /* launches and live instances in it; and 1 while it is open */
	uint32_t label_bytes;
	char *label; /* its own text if the dictionary has none; owned */
	uint64_t begin_ns, end_ns;
	uint64_t gpu_ns, idle_ns, calls, alloc_bytes, tensor_bytes; /* with everything inside */
	long double before, after;                    /* of the level asked for */
	long double value;           /* of the metric asked for, the larger the worse; set when final */
	struct trace_kernel *kernel; /* a copy that it owns, if this is a kernel; else NULL */
	bool keep;                   /* its children are wanted */
};

struct instances {
	/* `instance` is final. Returns whether it is wanted, and then has set its value: its parent keeps it, if that
	 * keeps children; without a parent it now belongs to the function. What is not kept is freed. */
	bool (*final)(void *context, struct instance *instance);
	void *context;
	uint64_t live;
};

/* A new one with one reference, its parent referenced too. */
struct instance *instance_new(struct instances *instances, struct instance *parent, uint32_t node, uint64_t begin_ns);
void instance_hold(struct instance *instance);
/* Gives a reference back; the last one makes it final. NULL is fine. */
void instance_release(struct instances *instances, struct instance *instance);
/* With all that it keeps. */
void instance_free(struct instance *instance);

/* `a` is worse than `b`: the larger value, then the later begin. */
bool instance_worse(const struct instance *a, const struct instance *b);

#endif
