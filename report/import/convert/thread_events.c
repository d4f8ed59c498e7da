/* SPDX-License-Identifier: MIT
 * kineto_thread.c: a thread's ranges, calls and memory, in the order in which a recording of our own has them.
 *
 * A range lies in what was open when it began, whether or not that lasts to its end; touching is not nesting. A call is
 * made where it begins, in a range that begins at the same moment too, and is told when it returns.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

#define DEPTH_MOST 4096u /* ranges open at once: each that ends is looked for, and those in it move out by one */
#define LATE_MOST 2u     /* rows around a place of ranges that had ended; beyond, only what is open is around it */

struct frame {
	int64_t start, end;
	uint32_t range, node;
};

/* A call that has not returned. What begins before it does lies in it. */
struct pending {
	int64_t end;
	struct kineto_place place;
	uint32_t call, depth; /* depth: frames around it */
	bool is;
};

struct walk {
	struct kineto_build *build;
	struct frame *frames;
	size_t room;
	uint32_t depth;
	uint32_t late;   /* rows around the innermost place of ranges that are no longer open */
	bool disordered; /* some frame ends after one around it */
	struct pending pending;
	struct frame gone; /* the last frame that was closed */
	struct python_walk python;
};

static uint64_t since(const struct walk *walk, int64_t time)
{
	return (uint64_t)(time - walk->build->first);
}

/* Writes the call that has returned by then; of frames from `depth` on, whether it has or not. */
static void tell_call(struct walk *walk, int64_t time, uint32_t depth)
{
	const struct pending *call = &walk->pending;

	if (!call->is || (call->end > time && call->depth < depth))
		return;
	kineto_call_write(
		walk->build, call->call, call->place, since(walk, call->end < time ? call->end : time), false);
	walk->pending.is = false;
}

/* The frame that ends first, the innermost of equals. */
static uint32_t next_to_end(const struct walk *walk)
{
	uint32_t best = walk->depth - 1;

	for (uint32_t i = best; walk->disordered && i-- > 0;)
		if (walk->frames[i].end < walk->frames[best].end)
			best = i;
	return best;
}

static void close_frame(struct walk *walk, uint32_t index)
{
	const struct frame frame = walk->frames[index];
	const uint32_t inside = walk->depth - 1 - index;

	tell_call(walk, frame.end, inside ? UINT32_MAX : walk->depth);
	writer_pop(walk->build->writer, since(walk, frame.end), inside);
	memmove(&walk->frames[index], &walk->frames[index + 1], inside * sizeof *walk->frames);
	walk->gone = frame;
	walk->depth--;
	walk->build->counts.overlapping += inside > 0;
	if (inside)
		walk->late++;
	if (!walk->depth) {
		walk->disordered = false;
		walk->late = 0;
	}
}

/* What has ended by then ends. keep_empty: not what has no length and lies at that very moment. */
static void reach(struct walk *walk, int64_t time, bool keep_empty)
{
	while (walk->depth) {
		const uint32_t index = next_to_end(walk);
		const struct frame *frame = &walk->frames[index];

		if (frame->end > time || (keep_empty && frame->start == time && frame->end == time))
			break;
		close_frame(walk, index);
	}
	tell_call(walk, time, UINT32_MAX);
}

/* The place of a range in the innermost open one: with what has ended around that, as long as it is not much. */
static uint32_t place_of(struct walk *walk, const struct kineto_range *range, uint32_t link)
{
	uint32_t parent = walk->depth ? walk->frames[walk->depth - 1].node : 0;

	if (walk->late > LATE_MOST) {
		parent = 0;
		for (uint32_t i = 0; i < walk->depth; i++) {
			const struct kineto_range *open = &walk->build->kineto->ranges[walk->frames[i].range];

			parent = kineto_node(walk->build, parent, open, 0);
		}
	}
	return kineto_node(walk->build, parent, range, link);
}

static void open_frame(struct walk *walk, uint32_t number)
{
	struct kineto_build *build = walk->build;
	const struct kineto_range *range = &build->kineto->ranges[number];
	const uint32_t link = build->links[number] ? build->placed[build->links[number] - 1] : 0;
	struct frame frame = { .start = range->start, .end = range->start + (int64_t)range->duration, .range = number };

	reach(walk, range->start, false);
	if (walk->depth == DEPTH_MOST) {
		build->placed[number] = walk->frames[walk->depth - 1].node;
		build->counts.too_deep++;
		return;
	}
	frame.node = build->placed[number] = place_of(walk, range, link);
	if (walk->depth && frame.end > walk->frames[walk->depth - 1].end)
		walk->disordered = true;
	grow(&walk->frames, &walk->room, (size_t)walk->depth + 1, sizeof *walk->frames);
	walk->frames[walk->depth++] = frame;
	writer_push(build->writer, since(walk, range->start), frame.node);
}

static bool has_id(const struct walk *walk, const struct frame *frame, uint64_t external)
{
	const struct kineto_range *range = &walk->build->kineto->ranges[frame->range];

	return range->external == external && (range->kind == TRACE_NODE_OP || range->kind == TRACE_NODE_BACKWARD);
}

/* What Python was at, by the functions that are open or by what the innermost operator says. */
static uint32_t stack_at(struct walk *walk, int64_t time)
{
	struct kineto_build *build = walk->build;
	const uint32_t stack = python_walk_stack(build, &walk->python, time);

	for (uint32_t i = walk->depth; i-- > 0 && !stack;) {
		const uint32_t text = build->kineto->ranges[walk->frames[i].range].stack;

		if (text)
			return python_text_stack(build, text);
	}
	return stack;
}

/* Where a call is made. Times alone cannot tell at the edge of an operator: there its own id decides, if the call has
 * that of an operator which it touches. */
static uint32_t node_of_call(struct walk *walk, const struct kineto_call *call)
{
	const struct frame *top = walk->depth ? &walk->frames[walk->depth - 1] : NULL;
	const bool touches = walk->gone.node && walk->gone.end == call->start;

	if (!call->external || !(touches || (top && top->start == call->start)))
		return top ? top->node : 0;
	if (top && has_id(walk, top, call->external))
		return top->node;
	if (touches && has_id(walk, &walk->gone, call->external))
		return walk->gone.node;
	for (uint32_t i = walk->depth; i-- > 0;)
		if (has_id(walk, &walk->frames[i], call->external))
			return walk->frames[i].node;
	return top ? top->node : 0;
}

/* Nsight Systems has its own record of a call around that of CUPTI: the same id and, but for the version, the same name. */
static bool is_told(const struct walk *walk, const struct kineto_call *call)
{
	const struct kineto_call *around = walk->pending.is ? &walk->build->kineto->calls[walk->pending.call] : NULL;

	return around && call->correlation && call->correlation == around->correlation && call->name == around->name &&
	       (call->start > around->start || call->duration < around->duration);
}

static void take_call(struct walk *walk, uint32_t number)
{
	const struct kineto_call *call = &walk->build->kineto->calls[number];
	struct kineto_place place;

	reach(walk, call->start, true);
	if (is_told(walk, call)) {
		struct kineto_owner *owner = kineto_owner_of(walk->build, call->correlation);

		walk->build->counts.twice++;
		if (owner && owner->call == number + 1)
			owner->call = walk->pending.call + 1;
		return;
	}
	place = (struct kineto_place){ node_of_call(walk, call), stack_at(walk, call->start) };
	if (walk->pending.is) {
		kineto_call_write(walk->build, number, place, since(walk, call->start), true);
		return;
	}
	walk->pending = (struct pending){ .end = call->start + (int64_t)call->duration,
		.call = number,
		.place = place,
		.depth = walk->depth,
		.is = true };
}

static void take_memory(struct walk *walk, uint32_t number)
{
	const struct kineto_memory *memory = &walk->build->kineto->memories[number];
	struct trace_tensor record = { .address = memory->address,
		.bytes = memory->bytes,
		.allocated = memory->allocated,
		.reserved = memory->reserved,
		.device = memory->device };

	reach(walk, memory->time, false);
	record.head.node = walk->depth ? walk->frames[walk->depth - 1].node : 0;
	record.stack = stack_at(walk, memory->time);
	writer_timed(walk->build->writer, since(walk, memory->time), TRACE_TENSOR, &record, sizeof record);
}

static void take_moment(struct walk *walk, uint32_t number)
{
	struct kineto_build *build = walk->build;
	const struct kineto_moment *moment = &build->kineto->moments[number];
	const uint32_t name = kineto_name(build, moment->name),
		       domain = kineto_name(build, kineto_domain(build->kineto, moment->domain));
	union {
		struct trace_range range;
		struct trace_end end;
		struct trace_object object;
	} record = { .range = { .id = moment->id } };
	size_t bytes = sizeof record.end;

	reach(walk, moment->time, false);
	if (moment->kind == TRACE_OBJECT) {
		record.object = (struct trace_object){ .object = kineto_number(build->kineto,
			build->kineto->threads[moment->thread].tid), .type = TRACE_OBJECT_THREAD, .name = name };
		bytes = sizeof record.object;
	} else if (moment->kind != TRACE_END) {
		record.range.name = name;
		record.range.domain = domain;
		bytes = sizeof record.range;
	} else {
		record.end.id = moment->id;
	}
	record.range.head.node = walk->depth ? walk->frames[walk->depth - 1].node : 0;
	writer_timed(build->writer, since(walk, moment->time), (enum trace_kind)moment->kind, &record, bytes);
}

/* The next of each kind, by time; equal ones: ranges, calls, memory, moments. */
static void merge(struct walk *walk, uint32_t thread)
{
	const struct kineto_build *build = walk->build;
	const struct kineto *kineto = build->kineto;
	size_t range = build->thread_begin[thread], call = build->call_begin[thread], memory = build->memory_begin[thread],
	       moment = build->moment_begin[thread];
	const size_t ranges = build->thread_begin[thread + 1], calls = build->call_begin[thread + 1],
		     memories = build->memory_begin[thread + 1], moments = build->moment_begin[thread + 1];

	for (;;) {
		const int64_t at_range = range < ranges ? kineto->ranges[build->order[range]].start : INT64_MAX,
			      at_call = call < calls ? kineto->calls[build->calls[call]].start : INT64_MAX,
			      at_memory = memory < memories ? kineto->memories[build->memories[memory]].time
							    : INT64_MAX,
			      at_moment = moment < moments ? kineto->moments[build->moments[moment]].time : INT64_MAX;

		if (range < ranges && at_range <= at_call && at_range <= at_memory && at_range <= at_moment)
			open_frame(walk, build->order[range++]);
		else if (call < calls && at_call <= at_memory && at_call <= at_moment)
			take_call(walk, build->calls[call++]);
		else if (memory < memories && at_memory <= at_moment)
			take_memory(walk, build->memories[memory++]);
		else if (moment < moments)
			take_moment(walk, build->moments[moment++]);
		else
			break;
	}
}

void kineto_thread_write(struct kineto_build *build, uint32_t thread)
{
	struct walk walk = { .build = build,
		.python = { .next = build->frame_begin[thread], .end = build->frame_begin[thread + 1] } };

	writer_stream(build->writer, kineto_number(build->kineto, build->kineto->threads[thread].tid));
	merge(&walk, thread);
	reach(&walk, INT64_MAX, false);
	free(walk.frames);
	free(walk.python.open);
}
