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
	return decode_ahead_next(reader, event);
}

void reader_rewind(struct trace_reader *reader)
{
	struct reader_state *state = reader->state;

	progress_restart();
	decode_ahead_stop(state);
	decoder_rewind(&state->decoder);
	for (uint32_t i = 0; i < state->stream_count; i++) {
		state->streams[i].user = NULL;
		state->streams[i].tid = 0;
	}
	state->unknown_names = state->gpu_clock_violations = 0;
	state->leaves_out_samples = false;
	state->watch = (struct event_watch){ .see = NULL };
	reader->next = reader->end = NULL;
}

void reader_leave_out_samples(struct trace_reader *reader)
{
	reader->state->leaves_out_samples = true;
}

void reader_watch(struct trace_reader *reader, const struct event_watch *watch)
{
	reader->state->watch = *watch;
}

uint32_t reader_watched_tid(const struct trace_stream *stream)
{
	return stream->cursor->tid;
}

static struct trace_reader *open_reader(int fd, uint64_t file_bytes, bool may_grow,
	const char *path, uint64_t since, char error[READER_ERROR_BYTES])
{
	struct trace_reader *reader = xcalloc(sizeof *reader);
	struct reader_state *state = xcalloc(sizeof *state);
	struct trace_integrity *integrity = &state->warnings.integrity;

	reader->state = state;
	decode_ahead_open(state);
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
	decoder_open(&state->decoder, state);
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
	decode_ahead_close(state);
	decoder_close(&state->decoder);
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
	const struct pass_progress *reached = &state->ahead.reached;

	if (reached->window_begin_ns || !state->ring.stamp || reached->window_unreadable)
		return reached->window_begin_ns;
	return clock_ns(&state->clock, state->ring.stamp);
}

uint64_t reader_last_stamp(const struct trace_reader *reader)
{
	return reader->state->ahead.reached.last_stamp;
}

uint64_t reader_early_gpu_records(const struct trace_reader *reader)
{
	return reader->state->ahead.reached.early_gpu;
}

uint64_t reader_duration_ns(const struct trace_reader *reader)
{
	uint64_t seen = clock_ns(&reader->state->clock, reader_last_stamp(reader));

	return seen > reader->state->clock.last_ns ? seen : reader->state->clock.last_ns;
}

double reader_ticks_per_second(const struct trace_reader *reader)
{
	return reader->state->clock.ticks_per_second;
}

uint64_t reader_duration(const struct trace_reader *reader, uint64_t stamp, uint64_t ticks)
{
	struct reader_state *state = reader->state;
	const struct clock_map *clock = &state->clock;
	const uint64_t from = ticks < stamp ? stamp - ticks : 0;
	const struct clock_piece *piece;

	state->near_piece = clock_find(clock, stamp, state->near_piece);
	piece = &clock->pieces[state->near_piece];
	if (from >= piece->raw)
		return reader_scale(stamp - piece->raw, piece->scale) -
		       reader_scale(from - piece->raw, piece->scale);
	return reader_time(reader, stamp) - reader_time(reader, from);
}

/* Returns the time of the last event that was returned in this pass. */
static uint64_t last_event_ns(const struct trace_reader *reader)
{
	const struct decode_ahead *ahead = &reader->state->ahead;

	return ahead->current && reader->next != ahead->current->events ? reader->next[-1].time_ns
									: ahead->last_ns;
}

uint64_t reader_realtime(struct trace_reader *reader, uint64_t realtime_ns)
{
	return clock_from_realtime(&reader->state->clock, realtime_ns, last_event_ns(reader));
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
		reader->state->gpu_clock_violations++;
		*end = *start;
	}
	return true;
}

const struct trace_integrity *reader_integrity(struct trace_reader *reader)
{
	struct reader_state *state = reader->state;
	const struct pass_progress *reached = &state->ahead.reached;
	struct trace_integrity *all = &state->integrity;

	*all = reached->integrity;
	all->unknown_names += __atomic_load_n(&state->unknown_names, __ATOMIC_RELAXED);
	all->clock_violations += state->gpu_clock_violations;
	all->lost_events = 0;
	for (unsigned i = 0; i < TRACE_LOSS_KINDS; i++)
		if (i != TRACE_LOST_SAMPLES)
			all->lost_events += all->lost[i];
	if (reached->streams_lost > all->lost_events)
		all->lost_events = reached->streams_lost;
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
	const struct reader_state *state = reader->state;

	return index < state->ahead.reached.warning_count && index < READ_WARNINGS_MAX
		       ? state->warnings.warnings[index]
		       : NULL;
}

struct reader_end reader_end_of_pass(struct trace_reader *reader)
{
	return (struct reader_end){ *reader_integrity(reader), reader_last_stamp(reader),
		last_event_ns(reader) };
}

bool reader_end_says_all(struct trace_reader *reader)
{
	return reader_integrity(reader)->complete && !reader->state->ahead.reached.warning_count &&
	       !reader->state->ring.used;
}

bool reader_resume_end(struct trace_reader *reader, const struct reader_end *end)
{
	const struct trace_integrity *integrity = &end->integrity;
	struct decode_ahead *ahead = &reader->state->ahead;

	if (!value_is_bool(&integrity->ended) || !value_is_bool(&integrity->tail_at_risk) ||
		!value_is_bool(&integrity->complete) || end->last_stamp >= STAMP_END ||
		end->last_ns > READER_TIME_MAX)
		return false;
	ahead->reached.integrity = *integrity;
	ahead->reached.last_stamp = end->last_stamp;
	ahead->last_ns = end->last_ns;
	return true;
}

const char *reader_error(const struct trace_reader *reader)
{
	return reader->state->error;
}
