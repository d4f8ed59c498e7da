/* SPDX-License-Identifier: MIT
 * fold_spans.c: what NVTX has besides nested ranges: start/end ranges, marks and counters.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/text/format_number.h"
#include <stdlib.h>
#include <string.h>

struct open_span {
	struct open_span *next;
	uint64_t id, begin_ns;
	uint32_t node, stream;
	int64_t reserved, allocated;
	long double level;
	bool counts;
	uint32_t label_bytes;
	char label[];
};

static struct open_span **span_slot(const struct fold_state *state, uint64_t id)
{
	struct open_span **link = &state->spans[(id * 0x9e3779b97f4a7c15u >> 32) & (state->span_slots - 1)];

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

static void widen(struct fold_state *state)
{
	struct open_span **old = state->spans;
	const size_t slots = state->span_slots;

	state->span_slots = slots ? slots * 2 : 64;
	state->spans = need(state->span_slots * sizeof(struct open_span *));
	for (size_t i = 0; i < slots; i++)
		for (struct open_span *span = old[i], *next; span; span = next) {
			next = span->next;
			span->next = NULL;
			*span_slot(state, span->id) = span;
		}
	free(old);
}

static uint32_t span_node(struct fold *fold, const struct trace_event *event)
{
	const struct trace_range *record = event->record;

	if (!fold->spans)
		fold->spans = tree_child(fold->tree, 0, text_id(fold->texts, "start-end ranges", 16), 0, NODE_SPANS);
	return names_child(
		fold->names, fold->spans, reader_event_text(fold->reader, event), record->domain, NODE_RANGE);
}

void fold_span_start(struct fold *fold, const struct trace_event *event)
{
	const struct trace_range *record = event->record;
	const struct trace_text text = reader_event_text(fold->reader, event);
	struct fold_state *state = fold->state;
	struct open_span *span, **slot;

	state->now_ns = event->time_ns;
	if (state->span_count >= state->span_slots)
		widen(state);
	slot = span_slot(state, record->id);
	if (*slot) /* ids are never given twice; a damaged trace may say so */
		return;
	span = need(sizeof *span + text.length);
	*span = (struct open_span){ .id = record->id,
		.begin_ns = event->time_ns,
		.node = span_node(fold, event),
		.stream = event->stream->stream,
		.reserved = state->reserved,
		.allocated = state->allocated,
		.level = fold_level(fold),
		.counts = state->counting,
		.label_bytes = text.length };
	memcpy(span->label, text.bytes, text.length);
	*slot = span;
	state->span_count++;
}

static void close_span(struct fold *fold, struct open_span **link, uint64_t end_ns)
{
	struct open_span *span = *link;
	const struct fold_candidate candidate = { .begin_ns = span->begin_ns,
		.end_ns = end_ns,
		.before = span->level,
		.after = fold_level(fold),
		.value = metrics[fold->options.metric].nature == METRIC_LEVEL ? fold_level(fold) - span->level
									      : (long double)(end_ns - span->begin_ns),
		.stream = span->stream,
		.own = span->label,
		.own_bytes = span->label_bytes };

	if (span->counts) {
		tree_count(fold->tree, span->node, end_ns - span->begin_ns);
		fold_observe(fold, span->node, span->begin_ns, end_ns - span->begin_ns);
		fold_offer_worst(fold, span->node, &candidate);
		if (fold->state->has_reserved) {
			struct node_memory *memory = tree_memory(fold->tree, span->node);

			memory->reserved_delta = number_sum(memory->reserved_delta, number_difference(fold->state->reserved, span->reserved));
		}
		if (fold->totals.has_tensors) {
			struct node_tensors *tensors = tree_tensors(fold->tree, span->node);

			tensors->allocated_delta = number_sum(tensors->allocated_delta, number_difference(fold->state->allocated, span->allocated));
		}
	}
	*link = span->next;
	fold->state->span_count--;
	free(span);
}

void fold_span_end(struct fold *fold, const struct trace_event *event)
{
	const struct trace_end *record = event->record;
	struct open_span **slot;

	fold->state->now_ns = event->time_ns;
	slot = fold->state->spans ? span_slot(fold->state, record->id) : NULL;
	if (slot && *slot)
		close_span(fold, slot, event->time_ns);
	else
		fold->counts.unknown_ends++;
}

/* Those still open at the end, up to there. */
void fold_spans_close(struct fold *fold)
{
	struct fold_state *state = fold->state;
	const uint64_t end_ns = reader_duration_ns(fold->reader);

	for (size_t i = 0; i < state->span_slots; i++)
		while (state->spans[i]) {
			struct open_span *span = state->spans[i];

			fold->counts.spans_left_open++;
			fold->tree->nodes[span->node].left_open = true;
			close_span(fold, &state->spans[i], end_ns > span->begin_ns ? end_ns : span->begin_ns);
		}
}

void fold_mark(struct fold *fold, const struct trace_event *event)
{
	const struct trace_range *record = event->record;
	const uint32_t node = fold_place(fold, event);

	fold->counts.marks++;
	if (fold->state->counting) {
		const uint32_t mark = names_child(
			fold->names, node, reader_event_text(fold->reader, event), record->domain, NODE_MARK);

		fold->tree->nodes[mark].calls++;
	}
}

/* The ids of the counter asked for: a name may stand in several domains. */
void fold_counter_find(struct fold *fold)
{
	const struct trace_counter *counter;
	const size_t length = fold->options.counter ? strlen(fold->options.counter) : 0;

	for (uint32_t i = 0;
		fold->options.metric == METRIC_USER && length && (counter = reader_dictionary(fold->reader, TRACE_COUNTER, i));
		i++) {
		const struct trace_text name = reader_name(fold->reader, counter->name);

		if (name.length != length || memcmp(name.bytes, fold->options.counter, length) != 0)
			continue;
		fold->counter_found = true;
		if (counter->unit)
			fold->counter_unit = names_text(fold->names, counter->unit);
		grow(&fold->state->counters, &fold->state->counter_room, fold->state->counter_count + 1,
			sizeof *fold->state->counters);
		fold->state->counters[fold->state->counter_count++] = counter->counter;
	}
}

void fold_metric(struct fold *fold, const struct trace_event *event)
{
	const struct trace_metric *record = event->record;
	int64_t whole;
	double real;

	fold->counts.metrics++;
	for (size_t i = 0; i < fold->state->counter_count && record->type != TRACE_METRIC_NONE; i++) {
		if (fold->state->counters[i] != record->counter)
			continue;
		memcpy(&whole, &record->value, sizeof whole);
		memcpy(&real, &record->value, sizeof real);
		if (record->type == TRACE_METRIC_I64)
			fold->state->counter = whole;
		else if (real - real == 0) /* neither infinite nor NaN */
			fold->state->counter = real;
	}
}
