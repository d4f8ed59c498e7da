/* SPDX-License-Identifier: MIT
 * Computes the figures of an instance other than its time: memory levels at its begin and end,
 * number of calls, bytes allocated. Finds the worst instance of each node, and the children of the
 * target instance.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/profile/step_sections.h"
#include <stdlib.h>
#include <string.h>

/* The open ranges began at the current levels: until now, no record has changed one. */
static void start_tracking(struct profile *profile)
{
	struct profile_state *state = profile->state;

	for (size_t i = 0; !state->tracks_instances && i < state->thread_count; i++) {
		struct profile_thread *thread = state->threads[i];

		ARRAY_GROW(thread->details, thread->details_room, thread->depth);
		for (uint32_t depth = 0; depth < thread->depth; depth++)
			thread->details[depth] = (struct open_range_details){
				.allocated = state->allocated,
				.allocated_peak = state->allocated,
				.level = profile_metric_level(profile)
			};
	}
	state->tracks_instances = true;
}

void profile_track_instances(struct profile *profile)
{
	start_tracking(profile);
	profile->state->tracks_target_only = false;
}

void profile_track_target(struct profile *profile)
{
	struct profile_state *state = profile->state;

	state->tracks_target_only |= !state->tracks_instances;
	start_tracking(profile);
}

void profile_drop_instances(struct profile_state *state)
{
	for (size_t i = 0; i < state->thread_count; i++)
		for (uint32_t depth = state->threads[i]->depth; depth > 0; depth--) {
			struct open_range_details *details = &state->threads[i]->details[depth - 1];

			free(details->label);
			instance_release(&state->instances, details->instance);
			*details = (struct open_range_details){ .label = NULL };
		}
	state->tracks_instances = state->tracks_target_only = false;
}

bool profile_is_target(const struct profile *profile, const struct profile_thread *thread,
	const struct open_range *frame)
{
	const struct profile_target *target = profile->options.target;

	return thread->stream == target->stream && frame->begin_ns == target->begin_ns &&
	       frame->node == target->node;
}

long double profile_metric_level(const struct profile *profile)
{
	switch (profile->options.metric) {
	case METRIC_RESERVED:
	case METRIC_RESERVED_PEAK:
		return profile->state->reserved;
	case METRIC_ALLOCATED:
	case METRIC_ALLOCATED_PEAK:
		return profile->state->allocated;
	case METRIC_USER:
		return profile->state->counter;
	default:
		return 0;
	}
}

/* Returns the metric's level at the end of a closing instance: the current level, or for the
 * metrics of peaks the highest one in the instance. */
static long double closing_level(
	const struct profile *profile, const struct open_range_details *details)
{
	if (profile->options.metric == METRIC_RESERVED_PEAK)
		return details->reserved_peak;
	if (profile->options.metric == METRIC_ALLOCATED_PEAK)
		return details->allocated_peak;
	return profile_metric_level(profile);
}

void profile_update_reserved_peaks(struct profile *profile)
{
	const struct profile_state *state = profile->state;

	for (size_t i = 0; i < state->thread_count; i++) {
		struct profile_thread *thread = state->threads[i];

		if (thread->depth &&
			thread->details[thread->depth - 1].reserved_peak < state->reserved)
			thread->details[thread->depth - 1].reserved_peak = state->reserved;
	}
}

void profile_offer_worst(
	struct profile *profile, uint32_t node, const struct worst_candidate *candidate)
{
	struct node_worst *worst = tree_worst(profile->tree, node);

	/* Of equal values the later one, but of peaks the one that reached it first. */
	if (worst->found &&
		(candidate->value < worst->value ||
			(candidate->value == worst->value &&
				(metric_is_peak(profile->options.metric)
						? candidate->begin_ns > worst->begin_ns
						: candidate->begin_ns < worst->begin_ns))))
		return;
	free(worst->own);
	*worst = (struct node_worst){ .begin_ns = candidate->begin_ns,
		.end_ns = candidate->end_ns,
		.value = candidate->value,
		.before = candidate->before,
		.after = candidate->after,
		.stream = candidate->stream,
		.trace_node = candidate->trace_node,
		.found = true };
	if (candidate->own) {
		worst->own = xcalloc(candidate->own_bytes + 1);
		memcpy(worst->own, candidate->own, candidate->own_bytes);
		worst->own_bytes = candidate->own_bytes;
	}
}

/* Sets the initial levels and idle time of a range that is counted from now on. Its sums are 0. */
static inline void start_details(struct profile *profile, struct open_range_details *details)
{
	const struct profile_state *state = profile->state;

	details->idle_ns = profile->timeline ? timeline_idle(profile->timeline, state->now_ns) : 0;
	details->reserved = details->reserved_peak = state->reserved;
	details->allocated = details->allocated_peak = state->allocated;
	if (metrics[profile->options.metric].nature == METRIC_LEVEL)
		details->level = profile_metric_level(profile);
}

/* Called for a section frame, and for a range that began before the selected steps. */
void profile_restart_frame(
	struct profile *profile, struct open_range *frame, struct open_range_details *details)
{
	frame->child_ns = 0;
	details->sums = (struct instance_sums){ .calls = 0 };
	start_details(profile, details);
}

static void keep_label(struct profile *profile, const struct trace_event *event,
	struct open_range_details *details)
{
	const struct trace_text text = reader_event_text(profile->reader, event);

	details->label = xcalloc(text.length + 1);
	memcpy(details->label, text.bytes, text.length);
	details->label_bytes = text.length;
}

/* Returns the thread, and sets `*at` to the index of the frame there, of the parent of frame
 * `depth` of `thread`. NULL: there is none.
 *
 * The range began in the current section, or encloses it. In the first case, its parent is the
 * section's frame if the frame around it on its thread began earlier, or if there is none.
 * Otherwise the parent is the frame around it. */
static struct profile_thread *range_around(
	const struct profile *profile, struct profile_thread *thread, uint32_t depth, uint32_t *at)
{
	const struct open_range_details *details = &thread->details[depth];
	struct profile_thread *outer = details->encloses_section
					       ? NULL
					       : step_sections_current(profile, at);

	if (outer && (outer != thread || *at < depth) &&
		(depth == 0 || details[-1].section != details->section))
		return outer;
	*at = depth - 1;
	return depth > 0 ? thread : NULL;
}

struct profile_thread *profile_find_owner(
	const struct profile *profile, struct profile_thread *thread, uint32_t *depth)
{
	struct profile_thread *outer = step_sections_current(profile, depth);

	if (!thread->depth ||
		(outer && thread->details[thread->depth - 1].section != profile->state->section))
		return outer;
	*depth = thread->depth - 1;
	return thread;
}

static void add_sums(struct instance_sums *to, const struct instance_sums *sums)
{
	to->calls += sums->calls;
	to->alloc_bytes += sums->alloc_bytes;
	to->tensor_bytes += sums->tensor_bytes;
}

/* Adds `sums` to the current section at once, because ranges on other threads may outlast it. */
static void add_to_section(const struct profile *profile, const struct open_range_details *details,
	const struct instance_sums *sums)
{
	uint32_t at;
	struct profile_thread *outer = step_sections_current(profile, &at);

	if (outer && !details->encloses_section)
		add_sums(&outer->details[at].sums, sums);
}

void profile_add_tracked_sums(
	struct profile *profile, struct profile_thread *thread, const struct instance_sums *sums)
{
	uint32_t depth;
	struct profile_thread *owner = profile_find_owner(profile, thread, &depth);

	if (!owner)
		return;
	add_sums(&owner->details[depth].sums, sums);
	add_to_section(profile, &owner->details[depth], sums);
}

/* Adds the sums of a closing range to the frame around it. Not if that is the section's frame, or
 * began in an earlier section: then add_to_section has already added them to the section. */
static void add_sums_to_parent(
	struct profile_thread *thread, uint32_t depth, const struct instance_sums *sums)
{
	struct open_range_details *details = &thread->details[depth];

	if (depth > 0 &&
		(details->encloses_section ||
			(!details[-1].encloses_section && details[-1].section == details->section)))
		add_sums(&details[-1].sums, sums);
}

static struct instance *make_instance(struct profile *profile, const struct profile_thread *thread,
	uint32_t depth, struct instance *parent)
{
	const struct open_range *frame = &thread->frames[depth];
	struct instance *instance = instance_new(
		&profile->state->instances, parent, frame->node, frame->begin_ns);

	instance->stream = thread->stream;
	instance->trace_node = frame->trace_node;
	if (profile->options.target)
		instance->nodes = profile->state->nodes;
	return thread->details[depth].instance = instance;
}

void profile_track_target_children(
	struct profile *profile, struct profile_thread *thread, uint32_t depth)
{
	const struct instance *outer;
	struct profile_thread *of;
	uint32_t at;

	if (!profile->options.target || !profile->state->counting)
		return;
	if (profile_is_target(profile, thread, &thread->frames[depth])) {
		if (!thread->details[depth].instance)
			make_instance(profile, thread, depth, NULL);
		thread->details[depth].instance->keep = true;
		return;
	}
	of = range_around(profile, thread, depth, &at);
	outer = of ? of->details[at].instance : NULL;
	if (outer && outer->keep)
		profile_instance_at(profile, thread, depth)->keep = true;
}

static bool encloses_current_section(
	const struct profile *profile, const struct profile_thread *thread, uint32_t depth)
{
	uint32_t at;
	const struct profile_thread *outer = step_sections_current(profile, &at);

	return outer ? outer == thread && depth <= at : profile->state->sections != NULL;
}

void profile_open_instance(struct profile *profile, const struct trace_event *event,
	struct profile_thread *thread, bool own_label)
{
	struct open_range_details *details;
	const uint32_t depth = thread->depth - 1;

	if (__builtin_expect(thread->depth > thread->details_room, 0))
		ARRAY_GROW(thread->details, thread->details_room, thread->depth);
	details = &thread->details[depth];
	/* One by one: for the whole, the compiler makes a slow string instruction. */
	details->instance = NULL;
	details->label = NULL;
	details->label_bytes = 0;
	details->section = profile->state->section;
	details->encloses_section = encloses_current_section(profile, thread, depth);
	details->sums = (struct instance_sums){ .calls = 0 };
	details->level = 0;
	start_details(profile, details);
	if (profile->state->counting && profile->state->tracks_sums)
		add_to_section(profile, details, &(struct instance_sums){ .calls = 1 });
	if (__builtin_expect(own_label, 0))
		keep_label(profile, event, details);
	if (profile->options.target)
		profile_track_target_children(profile, thread, depth);
}

struct instance *profile_instance_at(
	struct profile *profile, struct profile_thread *thread, uint32_t depth)
{
	uint32_t known = depth, at;
	struct profile_thread *of = NULL;

	while (!thread->details[known].instance) {
		of = range_around(profile, thread, known, &at);
		if (of != thread || at + 1 != known)
			break;
		known--;
	}
	/* At most one recursion, because no section encloses another one. */
	if (!thread->details[known].instance)
		make_instance(
			profile, thread, known, of ? profile_instance_at(profile, of, at) : NULL);
	for (; known < depth; known++)
		make_instance(profile, thread, known + 1, thread->details[known].instance);
	return thread->details[depth].instance;
}

static long double metric_value(const struct profile *profile, const struct instance *instance)
{
	switch (profile->options.metric) {
	case METRIC_GPU:
		return instance->gpu_ns;
	case METRIC_IDLE:
		return instance->idle_ns;
	case METRIC_CALLS:
		return instance->sums.calls;
	case METRIC_ALLOC:
		return instance->sums.alloc_bytes;
	case METRIC_TENSORS:
		return instance->sums.tensor_bytes;
	case METRIC_RESERVED_PEAK:
	case METRIC_ALLOCATED_PEAK:
		return instance->level_after -
		       (profile->options.target ? instance->level_before : 0);
	case METRIC_RESERVED:
	case METRIC_ALLOCATED:
	case METRIC_USER:
		return instance->level_after - instance->level_before;
	default:
		return instance->end_ns - instance->begin_ns;
	}
}

static void observe_instance_value(
	const struct profile *profile, const struct observed_instance *seen)
{
	const struct profile_observer *observer = profile->options.observer;

	if (observer->instance)
		observer->instance(observer->context, seen->node, seen->begin_ns, seen->value);
	if (observer->ended)
		observer->ended(observer->context, seen);
}

static bool is_cpu_time(enum metric metric)
{
	return metric == METRIC_CPU || metric == METRIC_WALL;
}

void profile_observe_timed(const struct profile *profile, const struct profile_thread *thread,
	const struct open_range *frame, uint64_t end_ns)
{
	if (is_cpu_time(profile->options.metric))
		observe_instance_value(profile, &(struct observed_instance){ .node = frame->node,
							.stream = thread->stream,
							.trace_node = frame->trace_node,
							.begin_ns = frame->begin_ns,
							.end_ns = end_ns,
							.value = end_ns - frame->begin_ns });
}

static void observe_closed_instance(const struct profile *profile,
	const struct profile_thread *thread, const struct open_range *frame,
	const struct instance *instance)
{
	const struct profile_observer *observer = profile->options.observer;
	struct observed_instance seen = { .node = frame->node,
		.stream = thread->stream,
		.trace_node = frame->trace_node,
		.begin_ns = instance->begin_ns,
		.end_ns = instance->end_ns };

	profile_observe_closed(profile, thread, frame, instance->end_ns);
	if (!(observer->instance || observer->ended))
		return;
	seen.value = metric_value(profile, instance);
	observe_instance_value(profile, &seen);
}

/* Whether the instance with this value may be the worst of `node` so far. */
static bool may_be_worst(const struct profile *profile, uint32_t node, long double value)
{
	const struct node_worst *worst = profile->tree->nodes[node].worst;

	return value > 0 && (!worst || value >= worst->value);
}

/* As profile_instance_final, without a target. Only GPU time is waited for. */
static void gpu_time_final(struct profile *profile, const struct instance *instance)
{
	const long double value = instance->gpu_ns;

	if (profile_observes_values(&profile->options))
		observe_instance_value(profile, &(struct observed_instance){ .node = instance->node,
							.stream = instance->stream,
							.trace_node = instance->trace_node,
							.begin_ns = instance->begin_ns,
							.end_ns = instance->end_ns,
							.value = value });
	if (may_be_worst(profile, instance->node, value))
		profile_offer_worst(profile, instance->node,
			&(struct worst_candidate){ .value = value,
				.begin_ns = instance->begin_ns,
				.end_ns = instance->end_ns,
				.trace_node = instance->trace_node,
				.stream = instance->stream,
				.own = instance->label,
				.own_bytes = instance->label_bytes });
}

bool profile_instance_final(void *context, struct instance *instance)
{
	struct profile *profile = context;
	const struct profile_target *target = profile->options.target;
	long double value;

	if (!target) {
		gpu_time_final(profile, instance);
		return false;
	}
	value = metric_value(profile, instance);
	instance->value = target->value < 0 ? -value : value;
	instance->change = instance->level_after - instance->level_before;
	instance->total_ns = instance->end_ns - instance->begin_ns;
	if (instance->parent)
		return instance->parent->keep && profile_adopt_critical(profile, instance);
	if (instance->end_ns != target->end_ns)
		return false;
	instance_free(profile->target);
	profile->target = instance;
	return true;
}

static void finish_instance(struct profile *profile, struct open_range_details *details,
	uint64_t begin_ns, uint64_t end_ns, uint64_t idle_ns)
{
	struct instance *instance = details->instance;

	instance->end_ns = end_ns;
	instance->begin_ns = begin_ns;
	if (profile->state->instances.keeps_children) {
		instance->idle_ns = idle_ns;
		instance->sums = details->sums;
		instance->level_before = details->level;
		instance->level_after = closing_level(profile, details);
		instance->is_peak = metric_is_peak(profile->options.metric);
	}
	instance->label = details->label;
	instance->label_bytes = details->label_bytes;
	details->label = NULL;
	details->instance = NULL;
	instance_release(&profile->state->instances, instance);
}

static void add_memory_levels(
	struct profile *profile, uint32_t node, const struct open_range_details *details)
{
	struct node_memory *memory = tree_memory(profile->tree, node);

	memory->reserved_delta = saturating_add(memory->reserved_delta,
		saturating_subtract(profile->state->reserved, details->reserved));
	if (!memory->has_level || memory->reserved_peak < details->reserved_peak)
		memory->reserved_peak = details->reserved_peak;
	memory->has_level = true;
}

/* As add_memory_levels, for tensors. */
static void add_tensor_levels(
	struct profile *profile, uint32_t node, const struct open_range_details *details)
{
	struct node_tensors *tensors = tree_tensors(profile->tree, node);

	tensors->allocated_delta = saturating_add(tensors->allocated_delta,
		saturating_subtract(profile->state->allocated, details->allocated));
	if (!tensors->has_level || tensors->allocated_peak < details->allocated_peak)
		tensors->allocated_peak = details->allocated_peak;
	tensors->has_level = true;
}

/* Proposes a closing instance as the worst of its node, and reports it to the observer. The metric
 * is not GPU time, so everything is known now. */
static void offer_instance(struct profile *profile, const struct profile_thread *thread,
	uint32_t depth, uint64_t end_ns, uint64_t idle_ns)
{
	const struct open_range_details *details = &thread->details[depth];
	const struct open_range *frame = &thread->frames[depth];
	const struct instance seen = { .begin_ns = frame->begin_ns,
		.end_ns = end_ns,
		.idle_ns = idle_ns,
		.sums = details->sums,
		.level_before = details->level,
		.level_after = closing_level(profile, details) };

	if (!profile->options.target && (!is_cpu_time(profile->options.metric) || details->label)) {
		const struct worst_candidate candidate = { .value = metric_value(profile, &seen),
			.before = seen.level_before,
			.after = seen.level_after,
			.begin_ns = seen.begin_ns,
			.end_ns = end_ns,
			.trace_node = frame->trace_node,
			.stream = thread->stream,
			.own = details->label,
			.own_bytes = details->label_bytes };

		profile_offer_worst(profile, frame->node, &candidate);
	}
	if (profile->options.observer)
		observe_closed_instance(profile, thread, frame, &seen);
}

void profile_close_instance(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t end_ns)
{
	struct open_range_details *details = &thread->details[depth];
	const struct open_range *frame = &thread->frames[depth];
	uint64_t idle_ns = 0;

	details->sums.calls++;
	if (profile->timeline) {
		idle_ns = timeline_idle(profile->timeline, profile->state->now_ns) -
			  details->idle_ns;
		if (idle_ns)
			tree_gpu(profile->tree, frame->node)->idle_ns += idle_ns;
	}
	if (profile->state->has_reserved)
		add_memory_levels(profile, frame->node, details);
	if (profile->totals.has_tensors)
		add_tensor_levels(profile, frame->node, details);
	if (profile->state->tracks_sums)
		add_sums_to_parent(thread, depth, &details->sums);
	if (depth > 0) {
		if (details[-1].allocated_peak < details->allocated_peak)
			details[-1].allocated_peak = details->allocated_peak;
		if (details[-1].reserved_peak < details->reserved_peak)
			details[-1].reserved_peak = details->reserved_peak;
	}
	if (profile->options.metric != METRIC_GPU)
		offer_instance(profile, thread, depth, end_ns, idle_ns);
	else
		profile_observe_closed(profile, thread, frame, end_ns);
	if (details->instance)
		finish_instance(profile, details, frame->begin_ns, end_ns, idle_ns);
}
