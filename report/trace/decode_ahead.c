/* SPDX-License-Identifier: MIT */
#include "report/trace/trace_reader_state.h"

#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/progress.h"

#include <stdlib.h>

void decode_ahead_open(struct reader_state *state)
{
	pthread_mutex_init(&state->ahead.lock, NULL);
	pthread_mutex_init(&state->ahead.work_lock, NULL);
	pthread_cond_init(&state->ahead.has_batch, NULL);
	pthread_cond_init(&state->ahead.has_room, NULL);
}

/* ---- the batch that is filled ---- */

void batch_set_tid(struct event_batch *batch, struct trace_stream *stream, uint32_t tid)
{
	*ARRAY_ADD(batch->tids, batch->tid_room,
		batch->tid_count) = (struct stream_tid){ batch->count, tid, stream };
}

void batch_retire(struct event_batch *batch, unsigned char **bytes, size_t *room)
{
	if (!*bytes)
		return;
	*ARRAY_ADD(batch->retired, batch->retired_room,
		batch->retired_count) = (struct read_buffer){ *bytes, *room };
	batch->retired_bytes += *room;
	*bytes = NULL;
	*room = 0;
}

struct read_buffer ahead_spare_buffer(struct decode_ahead *ahead)
{
	return ahead->spare_count ? ahead->spares[--ahead->spare_count]
				  : (struct read_buffer){ NULL, 0 };
}

static void empty_batch(struct decode_ahead *ahead, struct event_batch *batch)
{
	while (batch->retired_count) {
		const struct read_buffer buffer = batch->retired[--batch->retired_count];

		if (ahead->spare_count < SPARE_BUFFERS)
			ahead->spares[ahead->spare_count++] = buffer;
		else
			free(buffer.bytes);
	}
	join_steps_clear(&batch->joined);
	batch->deferred_count = 0;
	batch->retired_bytes = batch->tid_count = 0;
	batch->read_bytes = 0;
	batch->count = batch->expanded_count = 0;
}

static struct pass_progress pass_progress(const struct reader_state *state)
{
	return (struct pass_progress){ .integrity = state->warnings.integrity,
		.warning_count = state->warnings.count,
		.window_unreadable = state->ring.unreadable,
		.streams_lost = state->streams_lost,
		.last_stamp = state->last_stamp,
		.window_begin_ns = state->ring.begin_ns,
		.early_gpu = state->ring.early_gpu };
}

/* Keeps the expanded record of an event, if it has one. */
static inline void keep_expanded(struct event_batch *batch, const struct trace_event *event)
{
	batch->expanded_count += event->record == &batch->expanded[batch->expanded_count];
}

/* Decodes the frequent events of the current stream, until the batch has `limit` events. */
static void fill_with_frequent(
	struct event_decoder *decoder, struct event_batch *batch, uint32_t limit)
{
	const bool has_ring = decoder->state->ring.used;
	struct correlation_join *join = decoder->state->join;
	struct trace_event *event = &batch->events[batch->count];

	for (const struct trace_event *end = &batch->events[limit]; event < end; event++) {
		struct stream_run *run = decoder->run;

		if (decoder_next_short(decoder, event))
			continue;
		batch->count = (uint32_t)(event - batch->events);
		if (has_ring || !decoder->until || run->word == run->end)
			return;
		run->word += *run->word == 0; /* padding */
		if (run->word == run->end || !stream_step_fast(decoder, event))
			return;
		keep_expanded(batch, event);
		if (join)
			join_event(join, event, &batch->joined);
	}
	batch->count = limit;
}

/* Decodes the next event, of any kind. Returns false if there is none. */
static bool fill_with_any(struct reader_state *state, struct event_batch *batch)
{
	struct trace_event *event = &batch->events[batch->count];

	batch->status = decoder_next_any(&state->decoder, event);
	if (batch->status <= 0)
		return false;
	batch->count++;
	keep_expanded(batch, event);
	if (state->join)
		join_event(state->join, event, &batch->joined);
	return true;
}

static void fill_unwatched(struct reader_state *state, struct event_batch *batch, uint32_t limit)
{
	do
		fill_with_frequent(&state->decoder, batch, limit);
	while (batch->count < limit && fill_with_any(state, batch) &&
		batch->retired_bytes < BATCH_RETIRED_BYTES);
}

/* Appends an event of the same batch, with its expanded record. */
static void append_event(struct event_batch *batch, const struct trace_event *from)
{
	const union expanded_record *record = from->record;
	struct trace_event *event = &batch->events[batch->count++];

	*event = *from;
	if (record < batch->expanded || record >= batch->expanded + BATCH_EVENTS)
		return;
	batch->expanded[batch->expanded_count] = *record;
	event->record = &batch->expanded[batch->expanded_count++];
}

/* Decodes some events, shows them to the watch, and keeps those that the user gets. Returns false
 * if there is none. */
static bool fill_and_show(struct reader_state *state, struct event_batch *batch, uint32_t limit)
{
	const struct event_watch *watch = &state->watch;
	const uint32_t first = batch->count, first_expanded = batch->expanded_count;
	bool has_more = true;
	uint32_t end;

	fill_with_frequent(&state->decoder, batch, limit);
	if (batch->count == first)
		has_more = fill_with_any(state, batch);
	end = batch->count;
	if (end != first)
		watch->see(watch->context, &batch->events[first], end - first);
	batch->count = first;
	batch->expanded_count = first_expanded;
	for (uint32_t i = first; i < end; i++)
		if (watch->returns[batch->events[i].kind])
			append_event(batch, &batch->events[i]);
	return has_more;
}

/* Shows so few events at a time that they are in the first cache. */
static void fill_watched(struct reader_state *state, struct event_batch *batch, uint32_t limit)
{
	while (batch->count < limit && batch->retired_bytes < BATCH_RETIRED_BYTES &&
		batch->read_bytes < BATCH_READ_BYTES)
		if (!fill_and_show(state, batch,
			    (uint32_t)min_u64(limit, batch->count + SMALL_BATCH_EVENTS)))
			return;
}

/* Decodes as many events as fit. `first_event`: the number of events before. */
static void fill_batch(struct reader_state *state, struct event_batch *batch, uint64_t first_event)
{
	const uint32_t limit = state->ahead.helper ? BATCH_EVENTS : SMALL_BATCH_EVENTS;

	empty_batch(&state->ahead, batch);
	batch->first_event = first_event;
	batch->status = 1;
	state->decoder.batch = batch;
	if (state->watch.see)
		fill_watched(state, batch, limit);
	else
		fill_unwatched(state, batch, limit);
	batch->joined_end = batch->joined.count;
	if (state->join && batch->status == 0)
		join_end(state->join, &batch->joined);
	batch->reached = pass_progress(state);
}

/* ---- the work that is put off ---- */

static void run_deferred(const struct decode_ahead *ahead, struct event_batch *batch)
{
	if (batch->deferred_count)
		ahead->work.run(ahead->work.context, batch->deferred, batch->deferred_count);
	batch->deferred_count = 0;
}

/* Does the work of the first `count` batches of this pass. */
static void run_deferred_until(struct decode_ahead *ahead, size_t count)
{
	pthread_mutex_lock(&ahead->work_lock);
	for (; ahead->worked < count; ahead->worked++)
		run_deferred(ahead, ahead->batches[ahead->worked % ahead->most]);
	pthread_mutex_unlock(&ahead->work_lock);
}

void reader_set_deferred(struct trace_reader *reader, const struct deferred_work *work)
{
	reader->state->ahead.work = *work;
}

void *reader_defer(struct trace_reader *reader)
{
	struct decode_ahead *ahead = &reader->state->ahead;
	struct event_batch *batch = ahead->current;
	const size_t bytes = ahead->work.item_bytes, used = batch->deferred_count * bytes;

	ahead->has_deferred = true;
	batch->deferred_count++;
	ARRAY_GROW(batch->deferred, batch->deferred_room, used + bytes);
	return batch->deferred + used;
}

void reader_run_deferred(struct trace_reader *reader)
{
	struct decode_ahead *ahead = &reader->state->ahead;

	if (!ahead->has_deferred)
		return;
	run_deferred_until(ahead, ahead->handed_back);
	run_deferred(ahead, ahead->current);
	ahead->has_deferred = false;
}

/* ---- the second thread ---- */

/* Returns the batch to fill next, or NULL if the pass was ended. Waits until one is free. Does the
 * work that was put off in it and before. */
static struct event_batch *wait_for_room(struct decode_ahead *ahead)
{
	struct event_batch *batch;
	size_t handed_back;

	pthread_mutex_lock(&ahead->lock);
	while (ahead->filled - ahead->handed_back == ahead->most && !ahead->is_cancelled)
		pthread_cond_wait(&ahead->has_room, &ahead->lock);
	batch = ahead->is_cancelled ? NULL : ahead->batches[ahead->filled % ahead->most];
	handed_back = ahead->handed_back;
	pthread_mutex_unlock(&ahead->lock);
	if (batch && ahead->work.run)
		run_deferred_until(ahead, handed_back);
	return batch;
}

/* Wakes the user's thread once for several batches. It waits only while there is none. */
static void hand_over_batch(struct decode_ahead *ahead, bool is_last)
{
	pthread_mutex_lock(&ahead->lock);
	ahead->filled++;
	if (is_last || ahead->filled - ahead->handed_back >= AHEAD_BATCHES / 2)
		pthread_cond_signal(&ahead->has_batch);
	pthread_mutex_unlock(&ahead->lock);
}

static void decode_pass(void *context)
{
	struct reader_state *state = context;
	struct event_batch *batch;
	uint64_t events = 0;
	int status = 1;

	while (status > 0 && (batch = wait_for_room(&state->ahead))) {
		fill_batch(state, batch, events);
		events += batch->count;
		status = batch->status;
		hand_over_batch(&state->ahead, status <= 0);
	}
}

/* ---- the thread of the user ---- */

static void begin_pass(struct reader_state *state)
{
	struct decode_ahead *ahead = &state->ahead;

	if (state->blocks.file_bytes >= AHEAD_TRACE_BYTES)
		ahead->helper = helper_new(decode_pass, state);
	ahead->most = ahead->helper ? AHEAD_BATCHES : 1;
	for (size_t i = 0; i < ahead->most; i++)
		if (!ahead->batches[i])
			ahead->batches[i] = xcalloc_cache_aligned(sizeof *ahead->batches[i]);
	if (ahead->helper)
		helper_start(ahead->helper);
}

/* Waits for the next batch of the second thread, and hands back the current one. */
static struct event_batch *take_batch(struct decode_ahead *ahead)
{
	pthread_mutex_lock(&ahead->lock);
	if (ahead->current) {
		ahead->handed_back++;
		if (ahead->filled - ahead->handed_back <= AHEAD_BATCHES / 2)
			pthread_cond_signal(&ahead->has_room);
	}
	while (ahead->filled == ahead->handed_back)
		pthread_cond_wait(&ahead->has_batch, &ahead->lock);
	pthread_mutex_unlock(&ahead->lock);
	return ahead->batches[ahead->handed_back % ahead->most];
}

static void next_batch(struct reader_state *state)
{
	struct decode_ahead *ahead = &state->ahead;
	struct event_batch *batch = ahead->current;
	uint64_t events = 0;

	if (batch) {
		events = batch_event_number(batch);
		if (batch->count)
			ahead->last_ns = batch->events[batch->count - 1].time_ns;
	}
	if (!ahead->most)
		begin_pass(state);
	if (ahead->helper) {
		batch = take_batch(ahead);
	} else {
		batch = ahead->batches[0];
		run_deferred(ahead, batch);
		fill_batch(state, batch, events);
	}
	if (batch->read_bytes)
		progress_read(batch->read_bytes, batch->read_at, state->blocks.file_bytes);
	ahead->current = batch;
	ahead->tid_next = 0;
	ahead->reached = batch->reached;
}

/* Sets the thread ids that change before the next event. Sets the end of the events that follow
 * without a change. */
static void set_tids(struct trace_reader *reader, struct decode_ahead *ahead)
{
	const struct event_batch *batch = ahead->current;

	reader->end = &batch->events[batch->count];
	for (; ahead->tid_next < batch->tid_count; ahead->tid_next++) {
		const struct stream_tid *change = &batch->tids[ahead->tid_next];

		if (reader->next != &batch->events[change->at]) {
			reader->end = &batch->events[change->at];
			return;
		}
		change->stream->tid = change->tid;
	}
}

int decode_ahead_next(struct trace_reader *reader, struct trace_event *event)
{
	struct decode_ahead *ahead = &reader->state->ahead;

	while (!reader_next_decoded(reader, event)) {
		if (ahead->current)
			set_tids(reader, ahead);
		if (reader->next != reader->end)
			continue;
		if (ahead->current && ahead->current->status <= 0)
			return ahead->current->status;
		next_batch(reader->state);
		reader->next = reader->end = ahead->current->events;
	}
	return 1;
}

void reader_join(struct trace_reader *reader)
{
	reader->state->join = join_new();
}

const struct join_step *reader_join_steps(
	const struct trace_reader *reader, const struct trace_event *event)
{
	return &reader->state->ahead.current->joined.steps[event->steps - 1];
}

const struct join_step *reader_join_end(const struct trace_reader *reader)
{
	const struct event_batch *last = reader->state->ahead.current;

	return &last->joined.steps[last->joined_end];
}

void decode_ahead_stop(struct reader_state *state)
{
	struct decode_ahead *ahead = &state->ahead;

	pthread_mutex_lock(&ahead->lock);
	ahead->is_cancelled = true;
	pthread_cond_signal(&ahead->has_room);
	pthread_mutex_unlock(&ahead->lock);
	helper_free(ahead->helper);
	ahead->helper = NULL;
	ahead->is_cancelled = false;
	ahead->most = ahead->filled = ahead->handed_back = ahead->worked = 0;
	ahead->work = (struct deferred_work){ .run = NULL };
	ahead->has_deferred = false;
	ahead->current = NULL;
	ahead->last_ns = 0;
	join_free(state->join);
	state->join = NULL;
	for (size_t i = 0; i < AHEAD_BATCHES; i++)
		if (ahead->batches[i])
			empty_batch(ahead, ahead->batches[i]);
	ahead->reached = (struct pass_progress){ .integrity = state->warnings_at_open.integrity,
		.warning_count = state->warnings_at_open.count,
		.window_unreadable = state->ring.unreadable };
}

void decode_ahead_close(struct reader_state *state)
{
	struct decode_ahead *ahead = &state->ahead;

	decode_ahead_stop(state);
	for (size_t i = 0; i < AHEAD_BATCHES; i++)
		if (ahead->batches[i]) {
			free(ahead->batches[i]->tids);
			free(ahead->batches[i]->retired);
			free(ahead->batches[i]->joined.steps);
			free(ahead->batches[i]->deferred);
			free(ahead->batches[i]);
		}
	while (ahead->spare_count)
		free(ahead->spares[--ahead->spare_count].bytes);
	pthread_mutex_destroy(&ahead->lock);
	pthread_mutex_destroy(&ahead->work_lock);
	pthread_cond_destroy(&ahead->has_batch);
	pthread_cond_destroy(&ahead->has_room);
}
