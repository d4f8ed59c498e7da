/* SPDX-License-Identifier: MIT
 * Opens and closes traces, starts passes, and returns the trace's properties.
 */
#include "report/trace/trace_header.h"
#include "report/trace/trace_reader_state.h"

#include "report/base/alloc.h"
#include "report/base/progress.h"
#include "report/base/value_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int reader_next_any(struct trace_reader *reader, struct trace_event *event)
{
	return reader->state->ring.used ? ring_window_next(reader, event)
					: reader_next_raw(reader, event);
}

int reader_next_raw(struct trace_reader *reader, struct trace_event *event)
{
	struct reader_state *state = reader->state;
	int status = 0;

	if (state->ended_stream) {
		stream_free(state->ended_stream);
		state->ended_stream = NULL;
	}
	/* until 0: the range stack is compared first */
	if (__builtin_expect(reader->until != 0, 1)) {
		if (reader->run->word != reader->run->end && *reader->run->word == 0 &&
			!state->failed)
			reader->run->word++; /* padding */
		if (reader->run->word != reader->run->end && stream_step_fast(reader, event))
			return 1;
	}
	merge_switch_if_due(reader);
	if (reader_next_short(reader, event))
		return 1;
	while (status == 0 && !state->failed) {
		if (!reader->run->stream && !merge_take_next(reader))
			return 0;
		status = stream_step(reader, event);
	}
	return state->failed ? -1 : status;
}

static void free_streams(struct reader_state *state)
{
	for (uint32_t i = 0; i < state->stream_count; i++)
		stream_free(&state->streams[i]);
}

static void list_streams(struct reader_state *state)
{
	const struct trace_blocks *blocks = &state->blocks;
	struct trace_stream *stream = NULL;

	state->stream_count = (uint32_t)blocks->layout.streams;
	state->streams = xcalloc(state->stream_count * sizeof *state->streams);
	state->heap = xcalloc(((size_t)state->stream_count + 1) * sizeof *state->heap);
	for (uint32_t i = 0, count = 0; i < blocks->streams_end; i++) {
		if (!stream || blocks->entries[i].stream != stream->stream) {
			stream = &state->streams[count];
			stream->stream = blocks->entries[i].stream;
			stream->block = i;
			stream->ordinal = count++;
		}
		stream->blocks++;
	}
}

/* Returns the smallest base stamp of the stream's blocks. The first one may be damaged and too
 * large. The stream would then wait too long and all its events would be late. */
static uint64_t first_stamp(const struct reader_state *state, const struct trace_stream *stream)
{
	const struct block_entry *entry = &state->blocks.entries[stream->block];
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < stream->blocks; i++)
		least = entry[i].base_stamp < least ? entry[i].base_stamp : least;
	return least;
}

static void restart_stream(struct reader_state *state, struct trace_stream *stream)
{
	stream->user = NULL;
	stream->started = 0;
	stream->tid = 0;
	merge_push(state, stream, first_stamp(state, stream));
}

void reader_rewind(struct trace_reader *reader)
{
	struct reader_state *state = reader->state;

	progress_restart();
	free_streams(state);
	state->warnings = state->warnings_at_open;
	state->heap_count = 0;
	state->heap[0] = MERGE_KEY_NONE;
	for (uint32_t i = 0; i < state->stream_count; i++)
		restart_stream(state, &state->streams[i]);
	state->piece = 0;
	state->last_stamp = state->last_ns = state->last_stream_lost = 0;
	state->ended_stream = NULL;
	state->tensor_totals = (struct tensor_totals){ .devices[0].allocated = 0 };
	reader->run = &state->idle;
	reader->until = reader->clock_raw = state->piece_end = 0;
	ring_window_rewind(reader);
}

static struct trace_reader *open_reader(int fd, uint64_t file_bytes, bool may_grow,
	const char *path, uint64_t since, char error[READER_ERROR_BYTES])
{
	struct trace_reader *reader = xcalloc(sizeof *reader);
	struct reader_state *state = xcalloc(sizeof *state);
	struct trace_integrity *integrity = &state->warnings.integrity;

	reader->state = state;
	state->path = xcalloc(strlen(path) + 1);
	strcpy(state->path, path);
	state->warnings.path = state->path;
	progress_file(path);
	if (!blocks_open(&state->blocks, fd, file_bytes, may_grow, &state->warnings, error)) {
		reader_close(reader);
		return NULL;
	}
	if (!counted_totals_read(&state->totals, &state->blocks, &state->warnings) ||
		!dictionary_read(&state->dictionary, &state->blocks, &state->warnings)) {
		snprintf(error, READER_ERROR_BYTES, "%.300s: cannot be read: %s", path,
			strerror(errno));
		reader_close(reader);
		return NULL;
	}
	clock_build(&state->clock, &state->blocks.header, state->blocks.samples,
		state->blocks.sample_count, &state->warnings);
	counted_totals_scale(&state->totals, state->clock.ticks_per_second,
		state->dictionary.node_end, &state->warnings);
	for (unsigned i = 0; i < TRACE_LOSS_KINDS; i++)
		integrity->lost[i] = state->blocks.header.lost[i];
	state->ring.used = state->blocks.header.ring.bytes != 0;
	state->ring.stamp = state->ring.used ? state->blocks.header.ring.window_stamp : 0;
	if (since >= state->ring.stamp && since)
		state->ring.stamp = 0; /* the window was entered before */
	integrity->ended = state->blocks.header.flags & TRACE_ENDED;
	integrity->tail_at_risk = (state->blocks.header.flags & TRACE_TAIL_AT_RISK) &&
				  !integrity->ended;
	state->warnings_at_open = state->warnings;
	blocks_drop_before(&state->blocks, since);
	list_streams(state);
	reader->node_last = state->dictionary.node_end - 1;
	reader_rewind(reader);
	return reader;
}

struct trace_reader *reader_open(const char *path, char error[READER_ERROR_BYTES])
{
	uint64_t bytes = 0;
	const int fd = trace_file_open(path, &bytes, error);

	return fd < 0 ? NULL : reader_open_fd(fd, bytes, true, path, error);
}

struct trace_reader *reader_open_since(
	const char *path, uint64_t since, char error[READER_ERROR_BYTES])
{
	uint64_t bytes = 0;
	const int fd = trace_file_open(path, &bytes, error);

	return fd < 0 ? NULL : open_reader(fd, bytes, true, path, since, error);
}

struct trace_reader *reader_open_fd(int fd, uint64_t file_bytes, bool may_grow, const char *path,
	char error[READER_ERROR_BYTES])
{
	return open_reader(fd, file_bytes, may_grow, path, 0, error);
}

void reader_close(struct trace_reader *reader)
{
	struct reader_state *state;

	if (!reader)
		return;
	state = reader->state;
	free_streams(state);
	free(state->streams);
	free(state->heap);
	dictionary_free(&state->dictionary);
	counted_totals_free(&state->totals);
	clock_free(&state->clock);
	blocks_close(&state->blocks);
	free(state->path);
	free(state);
	free(reader);
}

const char *reader_path(const struct trace_reader *reader)
{
	return reader->state->path;
}

int reader_descriptor(const struct trace_reader *reader)
{
	return reader->state->blocks.fd;
}

const struct trace_header *reader_header(const struct trace_reader *reader)
{
	return &reader->state->blocks.header;
}

const struct trace_layout *reader_layout(const struct trace_reader *reader)
{
	return &reader->state->blocks.layout;
}

const struct trace_counted *reader_counted(const struct trace_reader *reader, uint32_t *count)
{
	*count = reader->state->totals.count;
	return reader->state->totals.nodes;
}

uint64_t reader_counted_calls(const struct trace_reader *reader, uint32_t *count)
{
	const struct trace_counted *counted = reader_counted(reader, count);
	uint64_t calls = 0;

	for (uint32_t i = 0; i < *count; i++)
		calls += counted[i].calls;
	return calls;
}

uint32_t reader_stream_count(const struct trace_reader *reader)
{
	return reader->state->stream_count;
}

struct trace_stream *reader_stream(const struct trace_reader *reader, uint32_t ordinal)
{
	return &reader->state->streams[ordinal];
}

uint64_t reader_start_unix_ns(const struct trace_reader *reader)
{
	return reader->state->blocks.header.start.realtime_ns;
}

uint64_t reader_window_begin_ns(const struct trace_reader *reader)
{
	const struct reader_state *state = reader->state;

	if (state->ring.begin_ns || !state->ring.stamp || state->ring.unreadable)
		return state->ring.begin_ns;
	return clock_ns(&state->clock, state->ring.stamp);
}

uint64_t reader_last_stamp(const struct trace_reader *reader)
{
	return reader->state->last_stamp;
}

uint64_t reader_early_gpu_records(const struct trace_reader *reader)
{
	return reader->state->ring.early_gpu;
}

uint64_t reader_duration_ns(const struct trace_reader *reader)
{
	uint64_t seen = clock_ns(&reader->state->clock, reader->state->last_stamp);

	return seen > reader->state->clock.last_ns ? seen : reader->state->clock.last_ns;
}

double reader_ticks_per_second(const struct trace_reader *reader)
{
	return reader->state->clock.ticks_per_second;
}

uint64_t reader_duration(const struct trace_reader *reader, uint64_t stamp, uint64_t ticks)
{
	const uint64_t from = ticks < stamp ? stamp - ticks : 0;

	/* Fast path: both ends are in the current clock piece. */
	if (from >= reader->clock_raw && stamp <= reader->state->piece_end)
		return reader_stamp_time(reader, stamp) - reader_stamp_time(reader, from);
	return reader_time(reader, stamp) - reader_time(reader, from);
}

uint64_t reader_realtime(struct trace_reader *reader, uint64_t realtime_ns)
{
	return clock_from_realtime(&reader->state->clock, realtime_ns, reader->state->last_ns);
}

/* Converts a time if CLOCK_REALTIME was never set while the program ran. Returns false
 * otherwise. */
static bool reader_plain_realtime(
	const struct trace_reader *reader, uint64_t realtime_ns, uint64_t *ns)
{
	const struct clock_map *clock = &reader->state->clock;
	int64_t time;

	if (clock->offset_count != 1 || realtime_ns >= READER_TIME_MAX)
		return false;
	time = (int64_t)realtime_ns - clock->offsets[0].offset;
	*ns = (uint64_t)time;
	return time >= 0;
}

bool reader_gpu_times(struct trace_reader *reader, uint64_t start_ns, uint64_t end_ns,
	uint64_t *start, uint64_t *end)
{
	*start = *end = 0;
	if (start_ns == 0 && end_ns == 0)
		return false;
	if (start_ns <= end_ns && reader_plain_realtime(reader, start_ns, start) &&
		reader_plain_realtime(reader, end_ns, end))
		return true;
	*start = reader_realtime(reader, start_ns);
	*end = reader_realtime(reader, end_ns);
	if (*end < *start) {
		reader->state->warnings.integrity.clock_violations++;
		*end = *start;
	}
	return true;
}

/* Returns the number of lost events in the block heads of the streams read so far. */
static uint64_t lost_in_streams(const struct reader_state *state)
{
	uint64_t lost = state->last_stream_lost;

	for (uint32_t i = 0; i < state->stream_count; i++)
		if (state->streams[i].cursor && &state->streams[i] != state->ended_stream)
			lost += state->streams[i].cursor->lost;
	return lost;
}

const struct trace_integrity *reader_integrity(struct trace_reader *reader)
{
	struct reader_state *state = reader->state;
	struct trace_integrity *all = &state->warnings.integrity;
	uint64_t streams = lost_in_streams(state);

	all->lost_events = 0;
	for (unsigned i = 0; i < TRACE_LOSS_KINDS; i++)
		if (i != TRACE_LOST_SAMPLES)
			all->lost_events += all->lost[i];
	if (streams > all->lost_events)
		all->lost_events = streams;
	all->complete = !(all->lost_events || all->missing_chunks || all->torn_chunks ||
			  all->damaged_payloads || all->damaged_blocks || all->cut_blocks ||
			  all->duplicate_chunks || all->skipped_bytes || all->truncated_streams ||
			  all->unmatched_ends > all->pops_without_push || all->unended ||
			  all->resumed || all->unknown_kinds || all->unknown_nodes ||
			  all->unknown_names || all->tail_at_risk || all->cut_bytes);
	return all;
}

const char *reader_warning(const struct trace_reader *reader, unsigned index)
{
	const struct read_warnings *warnings = &reader->state->warnings;

	return index < warnings->count && index < READ_WARNINGS_MAX ? warnings->warnings[index]
								    : NULL;
}

struct reader_end reader_end_of_pass(struct trace_reader *reader)
{
	return (struct reader_end){ *reader_integrity(reader), reader->state->last_stamp,
		reader->state->last_ns };
}

bool reader_end_says_all(struct trace_reader *reader)
{
	return reader_integrity(reader)->complete && !reader->state->warnings.count &&
	       !reader->state->ring.used;
}

bool reader_resume_end(struct trace_reader *reader, const struct reader_end *end)
{
	const struct trace_integrity *integrity = &end->integrity;

	if (!value_is_bool(&integrity->ended) || !value_is_bool(&integrity->tail_at_risk) ||
		!value_is_bool(&integrity->complete) || end->last_stamp >= STAMP_END ||
		end->last_ns > READER_TIME_MAX)
		return false;
	reader->state->warnings.integrity = *integrity;
	reader->state->last_stamp = end->last_stamp;
	reader->state->last_ns = end->last_ns;
	return true;
}

const char *reader_error(const struct trace_reader *reader)
{
	return reader->state->error;
}
