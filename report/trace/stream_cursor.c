/* SPDX-License-Identifier: MIT
 * Decodes the records of one stream in small steps:
 *
 *	next payload -> [gap] -> CLOCK, OPENs compared with the open ranges -> records ...
 *		-> next payload ... -> ranges left open -> end
 */
#include "report/trace/trace_reader_state.h"

#include "report/base/alloc.h"
#include "report/trace/record_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGES_INITIAL 32u
/* ranges inside one that closes; each must be moved, so more are refused */
#define INSIDE_MAX 4096u

static void mark_truncated(struct event_decoder *decoder, struct stream_cursor *cursor)
{
	decoder->state->warnings.integrity.truncated_streams += !cursor->truncated;
	cursor->truncated = true;
}

/* Ends the stream before a payload that was being written when the file was opened. */
static int stop_at_unstable(const struct event_decoder *decoder, struct stream_cursor *cursor)
{
	cursor->next = decoder->run->stream->block + decoder->run->stream->blocks;
	cursor->stopped = true;
	return 0;
}

/* Lets the payload be overwritten. The batch keeps it if it may have events of it. */
static void retire_payload(struct event_decoder *decoder, struct stream_cursor *cursor)
{
	if (cursor->loaded_at == batch_event_number(decoder->batch))
		return;
	batch_retire(decoder->batch, &cursor->payload.storage, &cursor->payload.room);
	batch_retire(decoder->batch, &cursor->ordered.bytes, &cursor->ordered.room);
}

static void reuse_buffer(struct event_decoder *decoder, unsigned char **bytes, size_t *room)
{
	struct read_buffer spare;

	if (*bytes)
		return;
	spare = ahead_spare_buffer(&decoder->state->ahead);
	*bytes = spare.bytes;
	*room = spare.room;
}

/* Makes room for the next payload. */
static void prepare_payload(struct event_decoder *decoder, struct stream_cursor *cursor)
{
	retire_payload(decoder, cursor);
	cursor->loaded_at = batch_event_number(decoder->batch);
	reuse_buffer(decoder, &cursor->payload.storage, &cursor->payload.room);
	if (cursor->ordered.records)
		reuse_buffer(decoder, &cursor->ordered.bytes, &cursor->ordered.room);
}

/* Loads the best copy of the sequence at cursor->next and skips its other copies. Returns 1 if
 * loaded, 0 if no copy is whole, -1 with errno. */
static int load_sequence(struct event_decoder *decoder, struct stream_cursor *cursor)
{
	struct reader_state *state = decoder->state;
	struct trace_integrity *integrity = &state->warnings.integrity;
	const struct block_entry *entries = state->blocks.entries, *first = &entries[cursor->next];
	uint32_t end = decoder->run->stream->block + decoder->run->stream->blocks;
	bool loaded = false, torn = false, begun = false;

	prepare_payload(decoder, cursor);
	for (; cursor->next < end && entries[cursor->next].sequence == first->sequence;
		cursor->next++) {
		const struct block_entry *entry = &entries[cursor->next];
		enum load_result result;

		cursor->alive = entry->type == TRACE_SLOT;
		if (loaded) {
			integrity->duplicate_chunks += entry->type == TRACE_CHUNK && !entry->cut;
			continue;
		}
		result = blocks_load(&state->blocks, entry, &cursor->payload);
		decoder->batch->read_bytes += entry->used;
		decoder->batch->read_at = entry->offset;
		if (result == LOAD_ERROR)
			return -1;
		if (entry->offset >= state->blocks.unstable_from &&
			(result == LOAD_TORN || entry->cut)) {
			begun = true;
			continue;
		}
		loaded = result == LOAD_FINE;
		torn |= !loaded;
		if (!loaded)
			continue;
		integrity->duplicate_chunks += torn && entry->type == TRACE_CHUNK;
		cursor->payload_at = entry->offset + sizeof(struct trace_block);
		if (entry->cut) {
			mark_truncated(decoder, cursor);
			blocks_warn_cut(entry, &state->warnings);
		}
	}
	if (!loaded && begun && !torn)
		return stop_at_unstable(decoder, cursor);
	if (!loaded && torn) {
		integrity->torn_chunks++;
		read_warnings_add(&state->warnings, first->offset,
			"payload %u of stream %u does not match the CRC in its header: skipped",
			first->sequence, first->stream);
	}
	return loaded;
}

/* Prepares the loaded payload for reading. */
static void begin_read_payload(struct event_decoder *decoder, struct stream_cursor *cursor)
{
	struct trace_integrity *integrity = &decoder->state->warnings.integrity;
	uint64_t base;

	sample_order(&cursor->payload, &cursor->ordered, decoder->run->stamp,
		decoder->state->leaves_out_samples ? decoder->node_last + 1 : 0);
	base = cursor->payload.base_stamp;
	if (cursor->payload.tid != cursor->tid) {
		cursor->tid = cursor->payload.tid;
		batch_set_tid(decoder->batch, decoder->run->stream, cursor->tid);
	}
	if (cursor->payload.lost > cursor->lost) {
		decoder->state->streams_lost += cursor->payload.lost - cursor->lost;
		cursor->lost = cursor->payload.lost;
		cursor->gap = true;
	}
	cursor->broken = cursor->gap;
	decoder->state->repeated_from = NULL;
	decoder->run->word = (const uint32_t *)(const void *)cursor->payload.bytes;
	decoder->run->end = decoder->run->word + cursor->payload.used / 4;
	if (base > decoder->run->stamp && base < STAMP_END)
		decoder->run->stamp = base;
	else if (base != decoder->run->stamp)
		integrity->clock_violations++;
	cursor->opening = true;
	cursor->open_index = 0;
	decoder->until = 0;
}

/* Ends the CLOCK and OPEN part of a payload. From here on the fast paths may run. */
static void end_opening(struct event_decoder *decoder)
{
	if (!decoder->run->stream->cursor->opening)
		return;
	decoder->run->stream->cursor->opening = false;
	merge_advance_clock(decoder, decoder->run->stamp);
}

/* Whether the payloads before the stream's first one were overwritten. A thread may have done
 * nothing from then on until the window has begun, and begin its next payload in the window. */
static bool has_entered_ring(
	const struct event_decoder *decoder, const struct stream_cursor *cursor, uint32_t sequence)
{
	return cursor->sequence == 0 && cursor->next == decoder->run->stream->block &&
	       decoder->state->ring.stamp && sequence <= decoder->state->blocks.header.ring.chunks;
}

/* Loads the next readable payload. Returns 1, 0 if there is none, -1 with state->error. */
static int next_payload(struct event_decoder *decoder)
{
	struct stream_cursor *cursor = decoder->run->stream->cursor;
	const struct trace_stream *stream = decoder->run->stream;
	uint32_t missing = 0;
	int status = 0;

	cursor->last_ns = decoder_time(decoder, decoder->run->stamp);
	while (status == 0 && cursor->next < stream->block + stream->blocks) {
		const struct block_entry *entry = &decoder->state->blocks.entries[cursor->next];
		uint32_t sequence = entry->sequence;

		if (sequence != cursor->sequence &&
			entry->offset >= decoder->state->blocks.unstable_from) {
			stop_at_unstable(decoder, cursor);
			break;
		}
		cursor->enters_ring = has_entered_ring(decoder, cursor, sequence);
		if (!cursor->enters_ring) {
			missing += sequence - cursor->sequence;
			decoder->state->warnings.integrity.missing_chunks += sequence -
									     cursor->sequence;
		}
		cursor->sequence = sequence + 1;
		status = load_sequence(decoder, cursor);
		missing += status == 0 && !cursor->stopped;
	}
	if (status < 0) {
		decoder->state->failed = true;
		snprintf(decoder->state->error, READER_ERROR_BYTES, "%.300s: cannot be read: %s",
			decoder->state->path, strerror(errno));
		return -1;
	}
	if (missing) {
		cursor->missing = missing;
		cursor->gap = true;
		mark_truncated(decoder, cursor);
	}
	if (status > 0)
		begin_read_payload(decoder, cursor);
	return status;
}

static void fill_event(struct event_decoder *decoder, struct trace_event *event, uint32_t kind)
{
	decoder->state->last_stamp = decoder->run->stamp;
	*event = (struct trace_event){ .kind = kind,
		.depth = decoder->run->depth,
		.time_ns = decoder_stamp_time(decoder, decoder->run->stamp),
		.stream = decoder->run->stream };
}

static void push_open_range(
	struct event_decoder *decoder, struct trace_event *event, uint32_t node, uint64_t begin_ns)
{
	struct stream_cursor *cursor = decoder->run->stream->cursor;

	if (decoder->run->depth >= decoder->run->room) {
		ARRAY_GROW(cursor->run.ranges, cursor->room,
			cursor->room ? cursor->room + 1 : RANGES_INITIAL);
		cursor->run.room = (uint32_t)cursor->room;
	}
	decoder->run->ranges[decoder->run->depth] = (struct trace_open_range){ begin_ns, node, 0 };
	event->node = node;
	event->begin_ns = begin_ns;
	event->depth = decoder->run->depth++;
}

static void remove_open_range(
	struct event_decoder *decoder, struct trace_event *event, uint32_t index)
{
	struct trace_open_range *range = &decoder->run->ranges[index];

	event->node = range->node;
	event->begin_ns = range->begin_ns;
	event->depth = index;
	memmove(range, range + 1, (--decoder->run->depth - index) * sizeof *range);
}

static int emit_gap(struct event_decoder *decoder, struct trace_event *event)
{
	struct stream_cursor *cursor = decoder->run->stream->cursor;

	fill_event(decoder, event, EVENT_GAP);
	event->missing = cursor->missing;
	event->last_ns = cursor->last_ns;
	cursor->gap = false;
	cursor->missing = 0;
	return 1;
}

/* Removes the innermost open range, whose end is not known. */
static int emit_dropped_range(
	struct event_decoder *decoder, struct trace_event *event, enum trace_event_kind kind)
{
	struct trace_integrity *integrity = &decoder->state->warnings.integrity;

	fill_event(decoder, event, kind);
	event->last_ns = decoder->run->stream->cursor->last_ns;
	remove_open_range(decoder, event, decoder->run->depth - 1);
	if (kind == EVENT_UNENDED)
		integrity->unended++;
	else
		integrity->left_open++;
	return 1;
}

static uint32_t checked_node(struct event_decoder *decoder, uint32_t node)
{
	if (node <= decoder->node_last)
		return node;
	decoder->state->warnings.integrity.unknown_nodes++;
	return decoder->node_last + 1;
}

/* Returns the checked node of a range. 0 counts as unknown too: the root is not a range. */
static uint32_t range_node(struct event_decoder *decoder, uint32_t node)
{
	return node ? checked_node(decoder, node) : decoder->node_last + 1;
}

/* Drops the rest of the payload, because the current record is malformed. */
static void drop_damaged_payload(struct event_decoder *decoder, const char *problem)
{
	struct reader_state *state = decoder->state;
	struct stream_cursor *cursor = decoder->run->stream->cursor;
	uint64_t at = (uint64_t)((const unsigned char *)decoder->run->word - cursor->payload.bytes);

	state->warnings.integrity.damaged_payloads++;
	read_warnings_add(&state->warnings, cursor->payload_at + at,
		"a record of stream %u %s: the %" PRIu64
		" bytes from here to the end of its block are skipped",
		decoder->run->stream->stream, problem, cursor->payload.used - at);
	mark_truncated(decoder, cursor);
	cursor->gap = true;
	decoder->run->word = decoder->run->end;
}

/* Ends the stream. Its memory is freed at the next call. */
static int emit_stream_end(struct event_decoder *decoder, struct trace_event *event)
{
	struct reader_state *state = decoder->state;

	fill_event(decoder, event, EVENT_STREAM_END);
	state->ended_stream = decoder->run->stream;
	decoder->run = &state->idle;
	return 1;
}

/* Reports the ranges that are open at the end of the stream. If the thread had not ended, they
 * extend to the end of the trace. */
static int finish_stream(struct event_decoder *decoder, struct trace_event *event)
{
	struct reader_state *state = decoder->state;
	struct stream_cursor *cursor = decoder->run->stream->cursor;

	if (!cursor->finishing) {
		if (!merge_may_continue(decoder, decoder->run->stamp))
			return 0;
		cursor->finishing = true;
		state->last_stamp = state->last_stamp > decoder->run->stamp ? state->last_stamp
									    : decoder->run->stamp;
		retire_payload(decoder, cursor);
		block_payload_free(&cursor->payload);
		decoder->run->word = decoder->run->end = NULL;
		if (cursor->alive && decoder->run->depth &&
			!merge_may_continue(decoder, UINT64_MAX))
			return 0;
	}
	if (cursor->alive && decoder->run->depth) {
		uint64_t last = state->blocks.header.last.raw;

		if (state->last_stamp > decoder->run->stamp)
			decoder->run->stamp = state->last_stamp;
		if (last > decoder->run->stamp && last < STAMP_END && state->heap_count == 0)
			decoder->run->stamp = last;
		merge_advance_clock(decoder, decoder->run->stamp);
	}
	if (cursor->gap)
		return emit_gap(decoder, event);
	return decoder->run->depth ? emit_dropped_range(decoder, event, EVENT_LEFT_OPEN)
				   : emit_stream_end(decoder, event);
}

/* Compares an OPEN with the range stack. Returns 0 if the range was already open, 1 with an
 * event otherwise. */
static int handle_open(
	struct event_decoder *decoder, struct trace_event *event, const struct trace_open *open)
{
	struct stream_run *run = decoder->run;
	struct stream_cursor *cursor = run->stream->cursor;
	const uint32_t index = cursor->open_index, id = open->head.node,
		       node = id && id <= decoder->node_last ? id : decoder->node_last + 1;
	const uint64_t stamp = open->begin_stamp < run->stamp ? open->begin_stamp : run->stamp,
		       begin = decoder_time(decoder, stamp);
	const bool is_known = index < run->depth && run->ranges[index].node == node &&
			      run->ranges[index].begin_ns == begin;

	if (index < run->depth && !is_known)
		return emit_dropped_range(decoder, event, EVENT_UNENDED);
	run->word += open->head.size / 4;
	cursor->open_index++;
	if (is_known)
		return 0;
	fill_event(decoder, event, EVENT_RESUMED);
	push_open_range(decoder, event, range_node(decoder, open->head.node), begin);
	decoder->state->warnings.integrity.resumed += !cursor->enters_ring;
	return 1;
}

/* Reports a POP for which no range is open. */
static int emit_unmatched(
	struct event_decoder *decoder, struct trace_event *event, const void *record)
{
	fill_event(decoder, event, EVENT_UNMATCHED);
	event->record = record;
	decoder->state->warnings.integrity.unmatched_ends++;
	return 1;
}

static int emit_pop_at(
	struct event_decoder *decoder, struct trace_event *event, const struct trace_pop_at *pop)
{
	decoder->state->warnings.integrity.pops_without_push += pop->index == UINT32_MAX;
	if (pop->index >= decoder->run->depth || decoder->run->depth - pop->index > INSIDE_MAX)
		return emit_unmatched(decoder, event, pop);
	fill_event(decoder, event, EVENT_POP);
	event->record = pop;
	remove_open_range(decoder, event, pop->index);
	return 1;
}

static int skip_unknown_record(struct event_decoder *decoder, const struct trace_head *head)
{
	struct trace_integrity *integrity = &decoder->state->warnings.integrity;

	integrity->unknown_kinds++;
	integrity->unknown_bytes += head->size;
	return 0;
}

/* Returns the checked struct record at the read position as an event. Returns 1, or 0 if it
 * yields no event. */
static int emit_struct(
	struct event_decoder *decoder, struct trace_event *event, const struct trace_head *head)
{
	union expanded_record *expanded = batch_expanded(decoder->batch);

	if (head->kind == TRACE_OPEN)
		return handle_open(decoder, event, (const void *)head);
	decoder->run->word += head->size / 4;
	if (head->kind == TRACE_AGAIN) {
		expanded->call = decoder->state->call;
		head = &expanded->call.call.head;
	}
	head = tensor_delta_expand(&decoder->state->tensor_totals, head, &expanded->tensor);
	if (head->kind >= TRACE_KINDS || kind_is_dictionary(head->kind))
		return skip_unknown_record(decoder, head);
	if (head->kind == TRACE_POP_AT)
		return emit_pop_at(decoder, event, (const void *)head);
	fill_event(decoder, event, head->kind);
	event->record = head;
	if (head->kind == TRACE_PUSH)
		push_open_range(decoder, event, range_node(decoder, head->node), event->time_ns);
	else
		event->node = checked_node(decoder, head->node);
	return 1;
}

/* Returns the record's stamp, or the stream's last one if that is later. Stamps of a stream
 * never decrease. */
static uint64_t non_decreasing_stamp(
	struct event_decoder *decoder, const struct trace_timed *record)
{
	if (record->stamp >= decoder->run->stamp)
		return record->stamp;
	decoder->state->warnings.integrity.clock_violations++;
	return decoder->run->stamp;
}

/* Called before the first record after a payload's OPENs. Returns true if ranges are open that
 * the OPENs do not list. Ranges deeper than TRACE_OPEN_MAX are surplus only after a gap. */
static bool has_surplus_ranges(const struct event_decoder *decoder)
{
	const struct stream_cursor *cursor = decoder->run->stream->cursor;

	return cursor->opening && decoder->run->depth > cursor->open_index &&
	       (cursor->broken || cursor->open_index < TRACE_OPEN_MAX);
}

static int step_struct(struct event_decoder *decoder, struct trace_event *event)
{
	const struct trace_head *head = (const void *)decoder->run->word;
	struct stream_cursor *cursor = decoder->run->stream->cursor;
	size_t room = (size_t)(decoder->run->end - decoder->run->word) * 4;
	const char *problem = "does not start at a valid offset";
	uint64_t stamp;
	bool timed;

	if (((const unsigned char *)decoder->run->word - cursor->payload.bytes) % 8 == 0)
		problem = record_check(head, room);
	if (!problem && head->kind == TRACE_OPEN && !cursor->opening)
		problem = "lists open ranges, but is not at the start of a payload";
	timed = !problem && kind_is_timed(head->kind);
	if (timed && ((const struct trace_timed *)(const void *)head)->stamp >= STAMP_END)
		problem = "has a timestamp beyond the clock's range";
	if (!problem && head->kind == TRACE_AGAIN) {
		decoder->state->repeated_from = NULL;
		problem = repeated_call_expand(
			(const void *)head, cursor->payload.bytes, &decoder->state->call);
	}
	if (problem) {
		drop_damaged_payload(decoder, problem);
		return 0;
	}
	if (head->kind != TRACE_OPEN && head->kind != TRACE_CLOCK) {
		if (has_surplus_ranges(decoder))
			return emit_dropped_range(decoder, event, EVENT_UNENDED);
		end_opening(decoder);
	}
	stamp = timed ? non_decreasing_stamp(decoder, (const void *)head) : decoder->run->stamp;
	if (!merge_may_continue(decoder, stamp))
		return 0;
	decoder->run->stamp = stamp;
	return emit_struct(decoder, event, head);
}

static int step_short(struct event_decoder *decoder, struct trace_event *event, uint32_t first)
{
	unsigned form = first & 3, words = form == FORM_PUSH8 ? 2 : 1;
	uint64_t stamp = decoder->run->stamp;

	if (decoder->run->end - decoder->run->word < words) {
		drop_damaged_payload(decoder, "extends beyond its block");
		return 0;
	}
	if (has_surplus_ranges(decoder))
		return emit_dropped_range(decoder, event, EVENT_UNENDED);
	end_opening(decoder);
	stamp += form == FORM_PUSH4  ? first >> 2 & 0x3fff
		 : form == FORM_POP4 ? first >> 2
				     : decoder->run->word[1];
	if (!merge_may_continue(decoder, stamp))
		return 0;
	decoder->run->stamp = stamp;
	decoder->run->word += words;
	if (form == FORM_POP4 && decoder->run->depth == 0)
		return emit_unmatched(decoder, event, NULL);
	fill_event(decoder, event, form == FORM_POP4 ? (uint32_t)EVENT_POP : TRACE_PUSH);
	if (form == FORM_POP4)
		remove_open_range(decoder, event, decoder->run->depth - 1);
	else
		push_open_range(decoder, event,
			range_node(decoder, form == FORM_PUSH4 ? first >> 16 : first >> 2),
			event->time_ns);
	return 1;
}

static int step_payload_end(struct event_decoder *decoder, struct trace_event *event)
{
	int status;

	if (has_surplus_ranges(decoder))
		return emit_dropped_range(decoder, event, EVENT_UNENDED);
	status = next_payload(decoder);
	return status ? status < 0 ? -1 : 0 : finish_stream(decoder, event);
}

int stream_step(struct event_decoder *decoder, struct trace_event *event)
{
	struct stream_cursor *cursor = decoder->run->stream->cursor;
	uint32_t first;

	if (cursor->finishing)
		return finish_stream(decoder, event);
	if (cursor->opening && !merge_may_continue(decoder, decoder->run->stamp))
		return 0;
	if (decoder->run->word == decoder->run->end)
		return step_payload_end(decoder, event);
	if (cursor->gap)
		return emit_gap(decoder, event);
	first = *decoder->run->word;
	if (first & 3)
		return step_short(decoder, event, first);
	if (first)
		return step_struct(decoder, event);
	decoder->run->word++;
	return 0;
}

void stream_free(struct trace_stream *stream)
{
	if (!stream->cursor)
		return;
	block_payload_free(&stream->cursor->payload);
	ordered_payload_free(&stream->cursor->ordered);
	free(stream->cursor->run.ranges);
	free(stream->cursor);
	stream->cursor = NULL;
}
