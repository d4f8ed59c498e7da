/* SPDX-License-Identifier: MIT */
#include "report/steps/schedule_windows.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/format_number.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *text;
} skips[] = {
#define X(name, text) { #name, text },
	TRACE_SKIPS(X)
#undef X
};

const char *recording_windows_skip_name(enum trace_skip_kind kind)
{
	static char name[32];
	size_t i = 0;

	for (; skips[kind].name[i] && i + 1 < sizeof name; i++)
		name[i] = (char)(skips[kind].name[i] | 0x20);
	name[i] = '\0';
	return name;
}

const char *recording_windows_skip_text(enum trace_skip_kind kind)
{
	return skips[kind].text;
}

/* Returns the number after a keyword of the schedule such as `,warmup:`, or 0. */
static uint32_t schedule_field(struct trace_text schedule, const char *word)
{
	char text[128];
	const char *at;

	snprintf(text, sizeof text, ",%.*s", (int)(schedule.length < 120 ? schedule.length : 120),
		schedule.bytes);
	at = strstr(text, word);
	return at ? (uint32_t)strtoul(at + strlen(word), NULL, 10) : 0;
}

static void begin_window(
	struct recording_windows *windows, uint64_t at_ns, uint64_t step, uint32_t warmup)
{
	*ARRAY_ADD(windows->windows, windows->room,
		windows->count) = (struct recording_window){ .begin_ns = at_ns,
		.first = step,
		.first_recorded_step = windows->recorded_step_count,
		.warmup = warmup };
}

static struct recording_window *open_window(struct recording_windows *windows)
{
	struct recording_window *last = windows->count ? &windows->windows[windows->count - 1]
						       : NULL;

	return last && !last->ended ? last : NULL;
}

static void add_recorded_step(struct recording_windows *windows, struct recording_window *window,
	uint64_t at_ns, uint32_t stream)
{
	*ARRAY_ADD(windows->recorded_steps, windows->recorded_step_room,
		windows->recorded_step_count) = (struct recorded_step){ .at_ns = at_ns,
		.stream = stream };
	window->steps++;
}

static void end_window(struct recording_windows *windows, struct recording_window *window,
	uint64_t at_ns, bool ended)
{
	window->end_ns = at_ns;
	window->ended = ended;
	windows->ns += at_ns - window->begin_ns;
}

/* Handles a WINDOW record. If the first one does not begin a window, recording began with the
 * program. */
static void add_window_event(struct recording_windows *windows, const struct trace_event *event)
{
	const struct trace_window *record = event->record;
	struct recording_window *window;

	if (!windows->count && record->edge != TRACE_WINDOW_BEGINS) {
		begin_window(windows, 0, 0, schedule_field(windows->schedule, ",warmup:"));
		add_recorded_step(windows, windows->windows, 0, event->stream->stream);
	}
	window = open_window(windows);
	if (window && record->edge != TRACE_WINDOW_STEP)
		end_window(windows, window, event->time_ns, true);
	if (record->edge == TRACE_WINDOW_BEGINS) {
		begin_window(windows, event->time_ns, record->step, record->warmup);
		window = open_window(windows);
	}
	if (window && !window->ended)
		add_recorded_step(windows, window, event->time_ns, event->stream->stream);
}

static void read_skips(struct recording_windows *windows, struct trace_reader *reader)
{
	const struct trace_header *header = reader_header(reader);

	windows->steps = header->steps;
	for (int kind = 0; kind < TRACE_SKIP_KINDS; kind++) {
		const struct trace_skip skip = header->skipped[kind];

		windows->skipped[kind] = skip;
		if (!skip.events)
			continue;
		if (!skip.measured)
			windows->unmeasured = true;
		else
			windows->cost_ns += clamp_to_u64(
				(long double)skip.ticks * 1e9L / reader_ticks_per_second(reader) /
				(long double)skip.measured * (long double)skip.events);
	}
}

/* Reads to the end. Where the window of a ring begins, and when the last record was made, are known
 * then only. */
static void read_to_end(struct trace_reader *reader)
{
	struct trace_event event;
	int status;

	reader_rewind(reader);
	while ((status = reader_next(reader, &event)) > 0)
		continue;
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
}

/* Returns the window that a ring holds. NULL: nothing was overwritten. */
static struct recording_windows *ring_windows(struct trace_reader *reader)
{
	struct recording_windows *windows;

	if (!reader_window_begin_ns(reader))
		return NULL;
	read_to_end(reader);
	windows = xcalloc(sizeof *windows);
	windows->ring = true;
	begin_window(windows, reader_window_begin_ns(reader), 0, 0);
	end_window(windows, windows->windows, reader_duration_ns(reader), false);
	return windows;
}

struct recording_windows *recording_windows_read(struct trace_reader *reader)
{
	struct recording_windows *windows;
	struct trace_event event;
	struct recording_window *last;
	int status;

	if (reader_header(reader)->ring.bytes)
		return ring_windows(reader);
	if (!reader_meta(reader, "schedule").known)
		return NULL;
	windows = xcalloc(sizeof *windows);
	windows->schedule = reader_meta(reader, "schedule");
	reader_rewind(reader);
	while ((status = reader_next(reader, &event)) > 0)
		if (event.kind == TRACE_WINDOW)
			add_window_event(windows, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
	if (!windows->count && !(reader_header(reader)->flags & TRACE_PAUSED)) {
		begin_window(windows, 0, 0, schedule_field(windows->schedule, ",warmup:"));
		add_recorded_step(windows, windows->windows, 0, 0);
	}
	last = open_window(windows);
	if (last)
		end_window(windows, last, reader_duration_ns(reader), false);
	read_skips(windows, reader);
	return windows;
}

void recording_windows_free(struct recording_windows *windows)
{
	if (!windows)
		return;
	free(windows->windows);
	free(windows->recorded_steps);
	free(windows);
}

/* Returns how many steps begin in the window. Advances `first` to the first step that does not
 * begin before it. */
static size_t steps_in(
	const struct steps *steps, const struct recording_window *window, size_t *first)
{
	size_t end;

	while (*first < steps->count && steps->steps[*first].begin_ns < window->begin_ns)
		++*first;
	for (end = *first; end < steps->count && steps->steps[end].begin_ns < window->end_ns; end++)
		;
	return end - *first;
}

static bool windows_match_steps(const struct recording_windows *windows, const struct steps *steps)
{
	size_t first = 0, all = 0;

	for (size_t i = 0; i < windows->count; i++) {
		const size_t found = steps_in(steps, &windows->windows[i], &first);

		/* The part after the last step boundary of an unended window may not be a step
		 * yet. */
		if (found != windows->windows[i].steps &&
			(windows->windows[i].ended || found + 1 != windows->windows[i].steps))
			return false;
		all += found;
	}
	return all && all == steps->count;
}

static void number_steps(const struct recording_windows *windows, struct steps *steps)
{
	size_t first = 0;

	steps->warm_up = steps->unfinished = steps->captures = steps->edges = 0;
	for (size_t i = 0; i < windows->count; i++) {
		const struct recording_window *window = &windows->windows[i];
		const size_t count = steps_in(steps, window, &first);

		for (size_t at = 0; at < count; at++) {
			struct step *step = &steps->steps[first + at];
			const bool last = at + 1 == count;

			if (!steps->own_ranges)
				step->number = window->first + at;
			if (step->end_ns > window->end_ns)
				step->end_ns = window->end_ns;
			if (at < window->warmup)
				step->kind = STEP_WARM_UP;
			else if (step->kind != STEP_CAPTURE &&
				 (step->kind != STEP_UNFINISHED || !last || window->ended))
				step->kind = STEP_USUAL;
			steps->warm_up += step->kind == STEP_WARM_UP;
			steps->captures += step->kind == STEP_CAPTURE;
			steps->unfinished += step->kind == STEP_UNFINISHED;
		}
	}
}

static void append_step(struct steps *steps, const struct step *step)
{
	*ARRAY_ADD(steps->steps, steps->room, steps->count) = *step;
}

/* Replaces `steps` by the steps that the program counted. */
static void use_recorded_steps(const struct recording_windows *windows, struct steps *steps)
{
	char warning[sizeof steps->warning];

	memcpy(warning, steps->warning, sizeof warning);
	free(steps->steps);
	*steps = (struct steps){ .confidence = STEPS_HIGH, .evidence = "PPERF_SCHEDULE" };
	memcpy(steps->warning, warning, sizeof warning);
	for (size_t i = 0; i < windows->count; i++) {
		const struct recording_window *window = &windows->windows[i];

		for (size_t at = window->first_recorded_step;
			at < window->first_recorded_step + window->steps; at++) {
			const bool last = at + 1 == window->first_recorded_step + window->steps;
			const struct step step = { .begin_ns = windows->recorded_steps[at].at_ns,
				.end_ns = last ? window->end_ns
					       : windows->recorded_steps[at + 1].at_ns,
				.kind = last && !window->ended ? STEP_UNFINISHED : STEP_USUAL };

			steps->stream = windows->recorded_steps[at].stream;
			append_step(steps, &step);
		}
	}
}

/* Removes the steps that began before the window of a ring: their begin is missing. */
static void remove_early_steps(struct steps *steps, uint64_t begin_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < steps->count; i++) {
		const struct step step = steps->steps[i];

		if (step.begin_ns >= begin_ns)
			steps->steps[kept++] = step;
	}
	steps->count = kept;
	steps->warm_up = steps->captures = steps->unfinished = steps->edges = 0;
	for (size_t i = 0; i < kept; i++) {
		steps->warm_up += steps->steps[i].kind == STEP_WARM_UP;
		steps->captures += steps->steps[i].kind == STEP_CAPTURE;
		steps->unfinished += steps->steps[i].kind == STEP_UNFINISHED;
		steps->edges += steps->steps[i].kind == STEP_AT_EDGE;
	}
	steps_sum(steps);
}

struct steps *recording_windows_steps(const struct recording_windows *windows, struct steps *found)
{
	if (windows && windows->ring && found)
		remove_early_steps(found, windows->windows->begin_ns);
	if (!windows || windows->ring)
		return found;
	if (!found) {
		found = xcalloc(sizeof *found);
		snprintf(
			found->reason, sizeof found->reason, "no step of the program was recorded");
	}
	if (!windows_match_steps(windows, found) && windows->recorded_step_count)
		use_recorded_steps(windows, found);
	number_steps(windows, found);
	steps_sum(found);
	return found;
}
