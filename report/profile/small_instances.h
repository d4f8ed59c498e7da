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

#define GATHER_NONE UINT32_MAX

struct gather {
	uint32_t *around;        /* by node: the one around it, if all of its instances are small; else GATHER_NONE */
	uint32_t count;          /* of nodes: those that places had from the start */
	struct instance **into;  /* by depth in the target's thread's row: what a range there is a part of; NULL: of nothing */
	size_t room;
	const struct thread *thread; /* the target's */
};

/* NULL: it is not known what is small, or time is not what is asked for. */
struct gather *gather_new(const struct fold *fold);
void gather_free(struct gather *gather);

/* Begins, and goes on after a pause: ranges that open from here on may be gathered. */
void gather_resume(struct fold *fold);
void gather_pause(struct fold *fold);

/* A range of that node opens there. False: it is none that can be gathered. */
static inline bool gather_opens(struct gather *gather, const struct thread *thread, uint32_t depth, uint32_t node)
{
	struct instance *of;

	if (depth < thread->gathered)
		return false;
	if (thread != gather->thread)
		return true;
	if (depth == 0 || node >= gather->count || depth >= gather->room || gather->around[node] != thread->frames[depth - 1].node)
		return false;
	of = gather->into[depth - 1];
	gather->into[depth] = of ? instance_group(of, INSTANCE_MANY, node, 0) : NULL;
	return true;
}

/* The one there closes. False: it was none. */
static inline bool gather_closes(struct gather *gather, const struct thread *thread, uint32_t depth, uint64_t end_ns)
{
	const struct frame *frame = &thread->frames[depth];

	if (depth < thread->gathered)
		return false;
	if (thread == gather->thread && gather->into[depth] && end_ns > frame->begin_ns)
		instance_add_time(gather->into[depth], frame->place, frame->begin_ns, end_ns);
	return true;
}

#endif
