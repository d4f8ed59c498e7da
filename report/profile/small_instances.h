/* SPDX-License-Identifier: MIT
 * fold_gather.h: what is inside of an instance whose children are kept (fold_options.target), without an instance for each:
 * a place none of whose instances is large enough to be shown by itself goes into its group (instance.h) at once, as long as
 * the trace has nothing but ranges. What comes of it is the same. Only the fold includes it.
 *
 * A range that is open so has neither an instance nor a frame_more. Before anything else happens, gather_pause gives it both.
 */
#ifndef PPERF_REPORT_PROFILE_SMALL_INSTANCES_H
#define PPERF_REPORT_PROFILE_SMALL_INSTANCES_H

#include "report/profile/profile_state.h"

#define SMALL_INSTANCES_NONE UINT32_MAX

struct small_instances {
	uint32_t *
		around; /* by node: the one around it, if all of its instances are small; else GATHER_NONE */
	uint32_t count; /* of nodes: those that places had from the start */
	struct instance **
		groups; /* by depth in the target's thread's row: what a range there is a part of; NULL: of nothing */
	size_t room;
	const struct profile_thread *thread; /* the target's */
};

/* NULL: it is not known what is small, or time is not what is asked for. */
struct small_instances *small_instances_new(const struct profile *profile);
void small_instances_free(struct small_instances *small_instances);

/* Begins, and goes on after a pause: ranges that open from here on may be gathered. */
void small_instances_resume(struct profile *profile);
void small_instances_pause(struct profile *profile);

/* A range of that node opens there. False: it is none that can be gathered. */
static inline bool small_instances_open(struct small_instances *small_instances,
	const struct profile_thread *thread, uint32_t depth, uint32_t node)
{
	struct instance *of;

	if (depth < thread->small_from_depth)
		return false;
	if (thread != small_instances->thread)
		return true;
	if (depth == 0 || node >= small_instances->count || depth >= small_instances->room ||
		small_instances->around[node] != thread->frames[depth - 1].node)
		return false;
	of = small_instances->groups[depth - 1];
	small_instances->groups[depth] = of ? instance_group(of, INSTANCE_MANY, node, 0) : NULL;
	return true;
}

/* The one there closes. False: it was none. */
static inline bool small_instances_close(struct small_instances *small_instances,
	const struct profile_thread *thread, uint32_t depth, uint64_t end_ns)
{
	const struct open_range *frame = &thread->frames[depth];

	if (depth < thread->small_from_depth)
		return false;
	if (thread == small_instances->thread && small_instances->groups[depth] &&
		end_ns > frame->begin_ns)
		instance_add_time(
			small_instances->groups[depth], frame->trace_node, frame->begin_ns, end_ns);
	return true;
}

#endif
