/* SPDX-License-Identifier: MIT
 * Handles NVTX start/end ranges, marks and counters.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/text/format_number.h"
#include <stdlib.h>
#include <string.h>

struct open_async_range {
	struct open_async_range *next;
	uint64_t id, begin_ns;
	uint32_t node, stream;
	int64_t reserved, allocated;
	long double level;
	bool counts;
	uint32_t label_bytes;
	char label[];
};

static struct open_async_range **async_range_slot(const struct profile_state *state, uint64_t id)
{
	struct open_async_range **link = &state->async_ranges[(id * 0x9e3779b97f4a7c15u >> 32) &
							      (state->async_slot_count - 1)];

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

static void grow_async_slots(struct profile_state *state)
{
	struct open_async_range **old = state->async_ranges;
	const size_t slots = state->async_slot_count;

	state->async_slot_count = slots ? slots * 2 : 64;
	state->async_ranges = xcalloc(state->async_slot_count * sizeof(struct open_async_range *));
	for (size_t i = 0; i < slots; i++)
		for (struct open_async_range *range = old[i], *next; range; range = next) {
			next = range->next;
			range->next = NULL;
			*async_range_slot(state, range->id) = range;
		}
	free(old);
}

static uint32_t async_range_node(struct profile *profile, const struct trace_event *event)
{
	const struct trace_range *record = event->record;

	if (!profile->async_ranges)
		profile->async_ranges = tree_child(profile->tree, 0,
			string_table_intern(profile->texts, "start-end ranges", 16), 0, NODE_ASYNC);
	return node_names_child(profile->names, profile->async_ranges,
		reader_event_text(profile->reader, event), record->domain, NODE_RANGE);
}

void profile_async_start(struct profile *profile, const struct trace_event *event)
{
	const struct trace_range *record = event->record;
	const struct trace_text text = reader_event_text(profile->reader, event);
	struct profile_state *state = profile->state;
	struct open_async_range *range, **slot;

	state->now_ns = event->time_ns;
	if (state->async_count >= state->async_slot_count)
		grow_async_slots(state);
	slot = async_range_slot(state, record->id);
	if (*slot) /* ids are unique, except in a damaged trace */
		return;
	range = xcalloc(sizeof *range + text.length);
	*range = (struct open_async_range){ .id = record->id,
		.begin_ns = event->time_ns,
		.node = async_range_node(profile, event),
		.stream = event->stream->stream,
		.reserved = state->reserved,
		.allocated = state->allocated,
		.level = profile_metric_level(profile),
		.counts = state->counting,
		.label_bytes = text.length };
	memcpy(range->label, text.bytes, text.length);
	*slot = range;
	state->async_count++;
}

static void close_async_range(
	struct profile *profile, struct open_async_range **link, uint64_t end_ns)
{
	struct open_async_range *range = *link;
	const struct worst_candidate candidate = { .begin_ns = range->begin_ns,
		.end_ns = end_ns,
		.before = range->level,
		.after = profile_metric_level(profile),
		.value = metrics[profile->options.metric].nature == METRIC_LEVEL
				 ? profile_metric_level(profile) - range->level
				 : (long double)(end_ns - range->begin_ns),
		.stream = range->stream,
		.own = range->label,
		.own_bytes = range->label_bytes };

	if (range->counts) {
		tree_count(profile->tree, range->node, end_ns - range->begin_ns);
		profile_observe_leaf(
			profile, range->node, range->begin_ns, end_ns - range->begin_ns);
		if (!metric_is_peak(profile->options.metric)) /* only open frames have a peak */
			profile_offer_worst(profile, range->node, &candidate);
		if (profile->state->has_reserved) {
			struct node_memory *memory = tree_memory(profile->tree, range->node);

			memory->reserved_delta = saturating_add(memory->reserved_delta,
				saturating_subtract(profile->state->reserved, range->reserved));
		}
		if (profile->totals.has_tensors) {
			struct node_tensors *tensors = tree_tensors(profile->tree, range->node);

			tensors->allocated_delta = saturating_add(tensors->allocated_delta,
				saturating_subtract(profile->state->allocated, range->allocated));
		}
	}
	*link = range->next;
	profile->state->async_count--;
	free(range);
}

void profile_async_end(struct profile *profile, const struct trace_event *event)
{
	const struct trace_end *record = event->record;
	struct open_async_range **slot;

	profile->state->now_ns = event->time_ns;
	slot = profile->state->async_ranges ? async_range_slot(profile->state, record->id) : NULL;
	if (slot && *slot)
		close_async_range(profile, slot, event->time_ns);
	else
		profile->counts.unknown_ends++;
}

/* Closes the ranges that are still open at the end, at that time. */
void profile_async_close_all(struct profile *profile)
{
	struct profile_state *state = profile->state;
	const uint64_t end_ns = reader_duration_ns(profile->reader);

	for (size_t i = 0; i < state->async_slot_count; i++)
		while (state->async_ranges[i]) {
			struct open_async_range *range = state->async_ranges[i];

			profile->counts.async_left_open++;
			profile->tree->nodes[range->node].left_open = true;
			close_async_range(profile, &state->async_ranges[i],
				end_ns > range->begin_ns ? end_ns : range->begin_ns);
		}
}

void profile_mark(struct profile *profile, const struct trace_event *event)
{
	const struct trace_range *record = event->record;
	const uint32_t node = profile_event_node(profile, event);

	if (profile->state->counting) {
		const uint32_t mark = node_names_child(profile->names, node,
			reader_event_text(profile->reader, event), record->domain, NODE_MARK);

		profile->tree->nodes[mark].calls++;
	}
}

/* Finds the ids of the counter: several domains may have one of its name. */
void profile_find_counter(struct profile *profile)
{
	const struct trace_counter *counter;
	const size_t length = profile->options.counter ? strlen(profile->options.counter) : 0;

	for (uint32_t i = 0; profile->options.metric == METRIC_USER && length &&
			     (counter = reader_dictionary(profile->reader, TRACE_COUNTER, i));
		i++) {
		const struct trace_text name = reader_name(profile->reader, counter->name);

		if (name.length != length ||
			memcmp(name.bytes, profile->options.counter, length) != 0)
			continue;
		profile->counter_found = true;
		if (counter->unit)
			profile->counter_unit = node_names_text(profile->names, counter->unit);
		*ARRAY_ADD(profile->state->counters, profile->state->counter_room,
			profile->state->counter_count) = counter->counter;
	}
}

/* Sets the counter. Its first value is also the level at which the ranges began that are open now,
 * because nothing is known of the time before. */
static void set_counter(struct profile_state *state, long double value)
{
	state->counter = value;
	if (state->counter_known)
		return;
	state->counter_known = true;
	for (size_t i = 0; i < state->thread_count; i++)
		for (uint32_t depth = state->threads[i]->details ? state->threads[i]->depth : 0;
			depth > 0; depth--)
			if (depth <= state->threads[i]->details_room)
				state->threads[i]->details[depth - 1].level = value;
	for (size_t i = 0; i < state->async_slot_count; i++)
		for (struct open_async_range *range = state->async_ranges[i]; range;
			range = range->next)
			range->level = value;
}

void profile_counter_value(struct profile *profile, const struct trace_event *event)
{
	const struct profile_observer *observer = profile->options.observer;
	const struct trace_metric *record = event->record;
	int64_t whole;
	double real;

	profile->counts.metrics++;
	if (observer && observer->counter)
		observer->counter(observer->context, event, profile_event_node(profile, event),
			profile->state->counting);
	for (size_t i = 0; i < profile->state->counter_count && record->type != TRACE_METRIC_NONE;
		i++) {
		if (profile->state->counters[i] != record->counter)
			continue;
		memcpy(&whole, &record->value, sizeof whole);
		memcpy(&real, &record->value, sizeof real);
		if (record->type == TRACE_METRIC_I64)
			set_counter(profile->state, whole);
		else if (real - real == 0) /* neither infinite nor NaN */
			set_counter(profile->state, real);
	}
}
