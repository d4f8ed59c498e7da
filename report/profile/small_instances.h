/* SPDX-License-Identifier: MIT
 * Sums small instances inside the target (profile_options.target) without an instance for each.
 *
 * If all instances of a node are too small to be shown, they are added to its group (instance.h)
 * at once. This works as long as the trace has only ranges. The result must equal that of the
 * plain way. Test: tests/report/test_small_instances.c.
 *
 * Such an open range has neither an instance nor details. Before another kind of event is
 * handled, small_instances_pause gives it both.
 */
#ifndef PPERF_REPORT_PROFILE_SMALL_INSTANCES_H
#define PPERF_REPORT_PROFILE_SMALL_INSTANCES_H

#include "report/profile/profile_state.h"

#define SMALL_INSTANCES_NONE UINT32_MAX

struct small_instances {
	/* By node: its parent if all its instances are small; else SMALL_INSTANCES_NONE. */
	uint32_t *around;
	uint32_t count; /* nodes that the tree had at the start */
	/* By depth on the target's thread: the group that the range there is part of. NULL:
	 * none. */
	struct instance **groups;
	size_t room;
	const struct profile_thread *thread; /* the target's */
};

/* NULL: it is not known what is small, or the metric is not CPU or wall time. */
struct small_instances *small_instances_new(const struct profile *profile);
void small_instances_free(struct small_instances *small_instances);

/* Starts, or resumes after a pause: ranges that open from now on may be small instances. */
void small_instances_resume(struct profile *profile);
/* Gives all open ranges the details that they lack. */
void small_instances_pause(struct profile *profile);

/* A range of `node` opens at `depth`. Returns false if it must have an instance. */
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

/* The range at `depth` closes. Returns false if it is not a small instance. */
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
