/* SPDX-License-Identifier: MIT
 * Decodes the structs of which a trace has millions: calls, tensors and GPU records. Does in one
 * function what stream_cursor.c does in steps, for records without special cases in the current
 * stream.
 */
#include "report/trace/trace_reader_state.h"

#include <string.h>

enum { SLOW, TIMED = 1, UNTIMED = 2 };

/* Kinds without texts after their struct that do not change the range stack. */
static const struct {
	uint16_t bytes;
	uint8_t form;
} kinds[TRACE_KINDS] = {
	[TRACE_KERNEL] = { sizeof(struct trace_kernel), UNTIMED },
	[TRACE_GPU_COPY] = { sizeof(struct trace_gpu_copy), UNTIMED },
	[TRACE_GPU_SET] = { sizeof(struct trace_gpu_copy), UNTIMED },
	[TRACE_API] = { sizeof(struct trace_api), UNTIMED },
	[TRACE_LAUNCH] = { sizeof(struct trace_launch), TIMED },
	[TRACE_GRAPH_LAUNCH] = { sizeof(struct trace_graph_launch), TIMED },
	[TRACE_COPY] = { sizeof(struct trace_copy), TIMED },
	[TRACE_SET] = { sizeof(struct trace_copy), TIMED },
	[TRACE_SYNC] = { sizeof(struct trace_sync), TIMED },
	[TRACE_ALLOC] = { sizeof(struct trace_memory), TIMED },
	[TRACE_FREE] = { sizeof(struct trace_memory), TIMED },
	[TRACE_MAPPING] = { sizeof(struct trace_mapping), TIMED },
	[TRACE_AGAIN] = { sizeof(struct trace_again), TIMED },
	[TRACE_TENSOR] = { sizeof(struct trace_tensor), TIMED },
	[TRACE_TENSOR_NEXT] = { sizeof(struct trace_tensor_next), TIMED },
	[TRACE_SAMPLE] = { sizeof(struct trace_sample), TIMED },
};

/* In two parts, because gcc copies a larger one with an instruction that takes longer than all else
 * here. */
static inline void copy_call(union expanded_call *to, const union expanded_call *from)
{
	enum { FIRST_WORDS = 8 };

	memcpy(to->words, from->words, FIRST_WORDS * sizeof *to->words);
	memcpy(to->words + FIRST_WORDS, from->words + FIRST_WORDS,
		sizeof *to - FIRST_WORDS * sizeof *to->words);
}

/* Returns the call that `again` describes, or NULL if it is malformed. If it repeats the same
 * call as the last one, the fields that are not in `again` are known. */
static const struct trace_head *expand_repeated_call(
	struct event_decoder *decoder, const struct trace_again *again)
{
	struct reader_state *state = decoder->state;
	const unsigned char *payload = decoder->run->stream->cursor->payload.bytes;
	const struct trace_call *was = (const void *)(payload + (size_t)again->of * 8);
	union expanded_call *expanded = &batch_expanded(decoder->batch)->call;

	if (__builtin_expect(was == state->repeated_from && again->head.size == sizeof *again, 1)) {
		if (state->watch.see && was->head.kind != TRACE_GRAPH_LAUNCH)
			return &was->head;
		copy_call(expanded, &state->call);
		expanded->call.head.node = again->head.node;
		expanded->call.stamp = again->stamp;
		expanded->call.duration = again->duration;
		expanded->call.correlation = was->correlation + again->correlation;
		return &expanded->call.head;
	}
	state->repeated_from = NULL;
	if (repeated_call_expand(again, payload, &state->call))
		return NULL;
	state->repeated_from = again->head.size == sizeof *again ? was : NULL;
	copy_call(expanded, &state->call);
	return &expanded->call.head;
}

bool stream_step_fast(struct event_decoder *decoder, struct trace_event *event)
{
	struct reader_state *state = decoder->state;
	struct stream_run *run = decoder->run;
	const struct trace_head *head = (const void *)run->word;
	const size_t room = (size_t)(run->end - run->word) * 4;
	uint64_t stamp = run->stamp;
	uint32_t node;

	if (room < sizeof *head || (uintptr_t)head % 8 || head->kind >= TRACE_KINDS ||
		kinds[head->kind].form == SLOW || head->size < kinds[head->kind].bytes ||
		head->size > room || head->size % 8 || head->node > decoder->node_last)
		return false;
	node = head->node;
	if (kinds[head->kind].form == TIMED) {
		stamp = ((const struct trace_timed *)(const void *)head)->stamp;
		if (stamp < run->stamp)
			return false;
	}
	if (stamp > decoder->until)
		return false;
	run->word += head->size / 4;
	if (__builtin_expect(head->kind == TRACE_AGAIN, 1)) {
		const struct trace_head *call = expand_repeated_call(decoder, (const void *)head);

		if (!call) {
			run->word -= head->size / 4;
			return false;
		}
		head = call;
	} else if ((head->kind == TRACE_TENSOR || head->kind == TRACE_TENSOR_NEXT) &&
		   !state->watch.see) {
		head = tensor_delta_expand(
			&state->tensor_totals, head, &batch_expanded(decoder->batch)->tensor);
	}
	run->stamp = stamp;
	state->last_stamp = stamp;
	event->kind = head->kind == TRACE_TENSOR_NEXT ? TRACE_TENSOR : head->kind;
	event->node = node;
	event->depth = run->depth;
	event->missing = 0;
	event->time_ns = decoder_stamp_time(decoder, stamp);
	event->begin_ns = event->last_ns = 0;
	event->record = head;
	event->stream = run->stream;
	return true;
}
