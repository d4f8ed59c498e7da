/* SPDX-License-Identifier: MIT
 * fold_instances.c: what one begin..end of a range comes to besides its time: the levels at its edges, what happened in it,
 * whether it is the worst, or one that is wanted.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/profile/step_sections.h"
#include <stdlib.h>
#include <string.h>

static void enrich(struct fold_state *state)
{
	for (size_t i = 0; !state->rich && i < state->thread_count; i++) {
		struct thread *thread = state->threads[i];

		grow(&thread->more, &thread->more_room, thread->depth, sizeof *thread->more);
		for (uint32_t depth = 0; depth < thread->depth; depth++)
			thread->more[depth] = (struct frame_more){ .label = NULL };
	}
	state->rich = true;
}

void fold_enrich(struct fold *fold)
{
	enrich(fold->state);
	fold->state->rich_for_target = false;
}

void fold_enrich_target(struct fold *fold)
{
	struct fold_state *state = fold->state;

	state->rich_for_target |= !state->rich;
	enrich(state);
}

/* The target is known: what is open has nothing more to tell. */
void fold_impoverish(struct fold_state *state)
{
	for (size_t i = 0; i < state->thread_count; i++)
		for (uint32_t depth = state->threads[i]->depth; depth > 0; depth--) {
			struct frame_more *more = &state->threads[i]->more[depth - 1];

			free(more->label);
			instance_release(&state->instances, more->instance);
			*more = (struct frame_more){ .label = NULL };
		}
	state->rich = state->rich_for_target = false;
}

bool fold_is_target(const struct fold *fold, const struct thread *thread, const struct frame *frame)
{
	const struct fold_target *target = fold->options.target;

	return thread->stream == target->stream && frame->begin_ns == target->begin_ns && frame->node == target->node;
}

long double fold_level(const struct fold *fold)
{
	if (fold->options.metric == METRIC_RESERVED)
		return fold->state->reserved;
	if (fold->options.metric == METRIC_ALLOCATED)
		return fold->state->allocated;
	return fold->options.metric == METRIC_USER ? fold->state->counter : 0;
}

void fold_level_changed(struct fold *fold)
{
	const struct fold_state *state = fold->state;

	for (size_t i = 0; i < state->thread_count; i++) {
		struct thread *thread = state->threads[i];

		if (thread->depth && thread->more[thread->depth - 1].peak < state->reserved)
			thread->more[thread->depth - 1].peak = state->reserved;
	}
}

void fold_offer_worst(struct fold *fold, uint32_t node, const struct fold_candidate *candidate)
{
	struct node_worst *worst = tree_worst(fold->tree, node);

	if (worst->found && (candidate->value < worst->value ||
				    (candidate->value == worst->value && candidate->begin_ns < worst->begin_ns)))
		return;
	free(worst->own);
	*worst = (struct node_worst){ .begin_ns = candidate->begin_ns,
		.end_ns = candidate->end_ns,
		.value = candidate->value,
		.before = candidate->before,
		.after = candidate->after,
		.stream = candidate->stream,
		.place = candidate->place,
		.found = true };
	if (candidate->own) {
		worst->own = need(candidate->own_bytes + 1);
		memcpy(worst->own, candidate->own, candidate->own_bytes);
		worst->own_bytes = candidate->own_bytes;
	}
}

/* What began before the steps asked for counts from here. */
void fold_rebase(struct fold *fold, struct frame *frame, struct frame_more *more)
{
	const struct fold_state *state = fold->state;

	frame->child_ns = 0;
	more->idle_ns = fold->timeline ? timeline_idle(fold->timeline, state->now_ns) : 0;
	more->flows = (struct instance_flows){ .calls = 0 };
	more->reserved = more->peak = state->reserved;
	more->allocated = more->allocated_peak = state->allocated;
	more->level = fold_level(fold);
}

static void keep_label(struct fold *fold, const struct trace_event *event, struct frame_more *more)
{
	const struct trace_text text = reader_event_text(fold->reader, event);

	more->label = need(text.length + 1);
	memcpy(more->label, text.bytes, text.length);
	more->label_bytes = text.length;
}

/* Where the range is that lies around one, a thread and where in its row; NULL: none does. For what has begun in the
 * present section, but not inside of a range that has, it is the section, or the step; unless it lies around that one
 * itself, or is it. */
static struct thread *around(const struct fold *fold, struct thread *thread, uint32_t depth, uint32_t *at)
{
	const struct frame_more *more = &thread->more[depth];
	struct thread *outer = more->outside ? NULL : sections_frame(fold, at);

	if (outer && (outer != thread || *at < depth) && (depth == 0 || more[-1].section != more->section))
		return outer;
	*at = depth - 1;
	return depth > 0 ? thread : NULL;
}

struct thread *fold_owner(const struct fold *fold, struct thread *thread, uint32_t *depth)
{
	struct thread *outer = sections_frame(fold, depth);

	if (!thread->depth || (outer && thread->more[thread->depth - 1].section != fold->state->section))
		return outer;
	*depth = thread->depth - 1;
	return thread;
}

static void add_flows(struct instance_flows *to, const struct instance_flows *flows)
{
	to->calls += flows->calls;
	to->alloc_bytes += flows->alloc_bytes;
	to->tensor_bytes += flows->tensor_bytes;
}

/* A section has it at once: what happens on other threads may go on in ranges for longer than the section does. */
static void add_to_section(const struct fold *fold, const struct frame_more *more, const struct instance_flows *flows)
{
	uint32_t at;
	struct thread *outer = sections_frame(fold, &at);

	if (outer && !more->outside)
		add_flows(&outer->more[at].flows, flows);
}

void fold_put_flows(struct fold *fold, struct thread *thread, const struct instance_flows *flows)
{
	uint32_t depth;
	struct thread *owner = fold_owner(fold, thread, &depth);

	if (!owner)
		return;
	add_flows(&owner->more[depth].flows, flows);
	add_to_section(fold, &owner->more[depth], flows);
}

/* When a range closes, what was in it was in the one around it, too; a section has it already. */
static void hand_on(struct thread *thread, uint32_t depth, const struct instance_flows *flows)
{
	struct frame_more *more = &thread->more[depth];

	if (depth > 0 && (more->outside || (!more[-1].outside && more[-1].section == more->section)))
		add_flows(&more[-1].flows, flows);
}

static struct instance *make_instance(
	struct fold *fold, const struct thread *thread, uint32_t depth, struct instance *parent)
{
	const struct frame *frame = &thread->frames[depth];
	struct instance *instance = instance_new(&fold->state->instances, parent, frame->node, frame->begin_ns);

	instance->stream = thread->stream;
	instance->place = frame->place;
	instance->nodes = fold->state->nodes;
	return thread->more[depth].instance = instance;
}

/* The instance whose children are wanted, or one inside it, begins: it is made now. */
void fold_keep_wanted(struct fold *fold, struct thread *thread, uint32_t depth)
{
	const struct instance *outer;
	struct thread *of;
	uint32_t at;

	if (!fold->options.target || !fold->state->counting)
		return;
	if (fold_is_target(fold, thread, &thread->frames[depth])) {
		if (!thread->more[depth].instance)
			make_instance(fold, thread, depth, NULL);
		thread->more[depth].instance->keep = true;
		return;
	}
	of = around(fold, thread, depth, &at);
	outer = of ? of->more[at].instance : NULL;
	if (outer && outer->keep)
		fold_instance(fold, thread, depth)->keep = true;
}

static bool lies_outside(const struct fold *fold, const struct thread *thread, uint32_t depth)
{
	uint32_t at;
	const struct thread *outer = sections_frame(fold, &at);

	return outer ? outer == thread && depth <= at : fold->state->sections != NULL;
}

void fold_open_instance(struct fold *fold, const struct trace_event *event, struct thread *thread, bool own_label)
{
	struct frame_more *more;
	const uint32_t depth = thread->depth - 1;

	grow(&thread->more, &thread->more_room, thread->depth, sizeof *thread->more);
	more = &thread->more[depth];
	*more = (struct frame_more){ .section = fold->state->section, .outside = lies_outside(fold, thread, depth) };
	fold_rebase(fold, &thread->frames[depth], more);
	if (fold->state->counting && fold->state->adds_flows)
		add_to_section(fold, more, &(struct instance_flows){ .calls = 1 });
	if (own_label)
		keep_label(fold, event, more);
	fold_keep_wanted(fold, thread, depth);
}

struct instance *fold_instance(struct fold *fold, struct thread *thread, uint32_t depth)
{
	uint32_t known = depth, at;
	struct thread *of = NULL;

	while (!thread->more[known].instance) {
		of = around(fold, thread, known, &at);
		if (of != thread || at + 1 != known)
			break;
		known--;
	}
	if (!thread->more[known].instance) /* in a section: no deeper than once */
		make_instance(fold, thread, known, of ? fold_instance(fold, of, at) : NULL);
	for (; known < depth; known++)
		make_instance(fold, thread, known + 1, thread->more[known].instance);
	return thread->more[depth].instance;
}

static long double metric_value(const struct fold *fold, const struct instance *instance)
{
	switch (fold->options.metric) {
	case METRIC_GPU:
		return instance->gpu_ns;
	case METRIC_IDLE:
		return instance->idle_ns;
	case METRIC_CALLS:
		return instance->flows.calls;
	case METRIC_ALLOC:
		return instance->flows.alloc_bytes;
	case METRIC_TENSORS:
		return instance->flows.tensor_bytes;
	case METRIC_RESERVED:
	case METRIC_ALLOCATED:
	case METRIC_USER:
		return instance->after - instance->before;
	default:
		return instance->end_ns - instance->begin_ns;
	}
}

static void tell(const struct fold *fold, const struct fold_seen_instance *seen)
{
	const struct fold_observer *observer = fold->options.observer;

	if (observer->instance)
		observer->instance(observer->context, seen->node, seen->begin_ns, seen->value);
	if (observer->ended)
		observer->ended(observer->context, seen);
}

static bool is_time(enum metric metric)
{
	return metric == METRIC_CPU || metric == METRIC_WALL;
}

void fold_tell_timed(const struct fold *fold, const struct thread *thread, const struct frame *frame, uint64_t end_ns)
{
	if (is_time(fold->options.metric))
		tell(fold, &(struct fold_seen_instance){ .node = frame->node,
				   .stream = thread->stream,
				   .place = frame->place,
				   .begin_ns = frame->begin_ns,
				   .end_ns = end_ns,
				   .value = end_ns - frame->begin_ns });
}

static void tell_closed(const struct fold *fold, const struct thread *thread, const struct frame *frame, const struct instance *instance)
{
	const struct fold_observer *observer = fold->options.observer;
	struct fold_seen_instance seen = { .node = frame->node,
		.stream = thread->stream,
		.place = frame->place,
		.begin_ns = instance->begin_ns,
		.end_ns = instance->end_ns };

	fold_tell_closed(fold, thread, frame, instance->end_ns);
	if (fold->options.metric == METRIC_GPU || !(observer->instance || observer->ended))
		return;
	seen.value = metric_value(fold, instance);
	tell(fold, &seen);
}

/* The last part of an instance is known. */
bool fold_instance_is_final(void *context, struct instance *instance)
{
	struct fold *fold = context;
	const struct fold_target *target = fold->options.target;
	struct fold_candidate worst = { .value = metric_value(fold, instance),
		.before = instance->before,
		.after = instance->after,
		.begin_ns = instance->begin_ns,
		.end_ns = instance->end_ns,
		.place = instance->place,
		.stream = instance->stream,
		.own = instance->label,
		.own_bytes = instance->label_bytes };

	if (!target) {
		if (fold->options.observer)
			tell(fold, &(struct fold_seen_instance){ .node = instance->node,
					   .stream = instance->stream,
					   .place = instance->place,
					   .begin_ns = instance->begin_ns,
					   .end_ns = instance->end_ns,
					   .value = worst.value });
		if (worst.value > 0)
			fold_offer_worst(fold, instance->node, &worst);
		return false;
	}
	instance->value = target->value < 0 ? -worst.value : worst.value;
	instance->change = instance->after - instance->before;
	instance->total_ns = instance->end_ns - instance->begin_ns;
	if (instance->parent)
		return instance->parent->keep && fold_critical_take(fold, instance);
	if (instance->end_ns != target->end_ns)
		return false;
	instance_free(fold->target);
	fold->target = instance;
	return true;
}

static void close_instance(struct fold *fold, struct frame_more *more, uint64_t begin_ns, uint64_t end_ns, uint64_t idle_ns)
{
	struct instance *instance = more->instance;

	instance->end_ns = end_ns;
	instance->begin_ns = begin_ns;
	instance->idle_ns = idle_ns;
	instance->flows = more->flows;
	if (!fold->state->instances.plain) {
		instance->before = more->level;
		instance->after = fold_level(fold);
	}
	instance->label = more->label;
	instance->label_bytes = more->label_bytes;
	more->label = NULL;
	more->instance = NULL;
	instance_release(&fold->state->instances, instance);
}

static void count_levels(struct fold *fold, uint32_t node, const struct frame_more *more)
{
	struct node_memory *memory = tree_memory(fold->tree, node);

	memory->reserved_delta = number_sum(memory->reserved_delta, number_difference(fold->state->reserved, more->reserved));
	if (!memory->has_level || memory->reserved_peak < more->peak)
		memory->reserved_peak = more->peak;
	memory->has_level = true;
}

/* The same of tensors. */
static void count_allocated(struct fold *fold, uint32_t node, const struct frame_more *more)
{
	struct node_tensors *tensors = tree_tensors(fold->tree, node);

	tensors->allocated_delta = number_sum(tensors->allocated_delta, number_difference(fold->state->allocated, more->allocated));
	if (!tensors->has_level || tensors->allocated_peak < more->allocated_peak)
		tensors->allocated_peak = more->allocated_peak;
	tensors->has_level = true;
}

/* What of it is known is of interest to somebody now: nothing waits for its GPU time. */
static void offer(struct fold *fold, const struct thread *thread, uint32_t depth, uint64_t end_ns, uint64_t idle_ns)
{
	const struct frame_more *more = &thread->more[depth];
	const struct frame *frame = &thread->frames[depth];
	const struct instance seen = { .begin_ns = frame->begin_ns,
		.end_ns = end_ns,
		.idle_ns = idle_ns,
		.flows = more->flows,
		.before = more->level,
		.after = fold_level(fold) };

	if (fold->options.metric != METRIC_GPU && !fold->options.target && (!is_time(fold->options.metric) || more->label)) {
		const struct fold_candidate candidate = { .value = metric_value(fold, &seen),
			.before = seen.before,
			.after = seen.after,
			.begin_ns = seen.begin_ns,
			.end_ns = end_ns,
			.place = frame->place,
			.stream = thread->stream,
			.own = more->label,
			.own_bytes = more->label_bytes };

		fold_offer_worst(fold, frame->node, &candidate);
	}
	if (fold->options.observer)
		tell_closed(fold, thread, frame, &seen);
}

/* All of an instance but its GPU time, which may come later. */
void fold_close_instance(struct fold *fold, struct thread *thread, uint32_t depth, uint64_t end_ns)
{
	struct frame_more *more = &thread->more[depth];
	const struct frame *frame = &thread->frames[depth];
	uint64_t idle_ns = 0;

	more->flows.calls++;
	if (fold->timeline) {
		idle_ns = timeline_idle(fold->timeline, fold->state->now_ns) - more->idle_ns;
		if (idle_ns)
			tree_gpu(fold->tree, frame->node)->idle_ns += idle_ns;
	}
	if (fold->state->has_reserved)
		count_levels(fold, frame->node, more);
	if (fold->totals.has_tensors)
		count_allocated(fold, frame->node, more);
	if (fold->state->adds_flows)
		hand_on(thread, depth, &more->flows);
	if (depth > 0) {
		if (more[-1].allocated_peak < more->allocated_peak)
			more[-1].allocated_peak = more->allocated_peak;
		if (more[-1].peak < more->peak)
			more[-1].peak = more->peak;
	}
	if (fold->options.metric != METRIC_GPU || fold->options.observer)
		offer(fold, thread, depth, end_ns, idle_ns);
	if (more->instance)
		close_instance(fold, more, frame->begin_ns, end_ns, idle_ns);
}
