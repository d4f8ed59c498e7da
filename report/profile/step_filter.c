/* SPDX-License-Identifier: MIT
 * fold_steps.c: --steps. From the begin of the first step asked for to the end of the last one things count; what is
 * open around them counts for that time only.
 */
#include "report/profile/profile_state.h"
#include "report/text/label_pattern.h"
#include <string.h>
#include <strings.h>

static void tell_counting(const struct fold *fold)
{
	const struct fold_observer *observer = fold->options.observer;

	if (observer && observer->counting)
		observer->counting(observer->context, fold->state->counting, fold->state->now_ns);
}

/* The last step asked for is over: what is still open counts up to here, and nothing after. */
void fold_window_ends(struct fold *fold)
{
	struct fold_state *state = fold->state;

	for (size_t i = 0; i < state->thread_count; i++) {
		struct thread *thread = state->threads[i];

		for (uint32_t depth = thread->depth; depth > 0; depth--)
			fold_close_at(fold, thread, depth - 1, state->now_ns);
	}
	if (state->counting) {
		state->counting = false;
		tell_counting(fold);
		state->window_ns += state->now_ns - state->window_begin_ns;
		fold->totals.gpu_busy_ns += fold->timeline
						    ? timeline_busy(fold->timeline, state->now_ns) - state->window_busy
						    : 0;
		fold->totals.gpu_idle_ns += fold->timeline
						    ? timeline_idle(fold->timeline, state->now_ns) - state->window_idle
						    : 0;
		fold->totals.gpu_unknown_ns += fold->timeline
						       ? timeline_unknown(fold->timeline, state->now_ns) - state->window_unknown
						       : 0;
	}
}

void fold_step_over(struct fold *fold)
{
	const struct fold_state *state = fold->state;

	if (fold->options.steps && state->counting && state->step >= fold->options.last_step)
		fold_window_ends(fold);
}

void fold_step_ends(struct fold *fold, const struct thread *thread, uint32_t depth)
{
	struct fold_state *state = fold->state;

	if (thread != state->step_thread || depth != state->step_depth)
		return;
	state->step_thread = NULL;
	fold_step_over(fold);
}

/* From now on things count, and what is open counts for what is left of it. */
static void begin_counting(struct fold *fold)
{
	struct fold_state *state = fold->state;

	state->counting = true;
	tell_counting(fold);
	state->window_begin_ns = state->now_ns;
	state->window_busy = fold->timeline ? timeline_busy(fold->timeline, state->now_ns) : 0;
	state->window_idle = fold->timeline ? timeline_idle(fold->timeline, state->now_ns) : 0;
	state->window_unknown = fold->timeline ? timeline_unknown(fold->timeline, state->now_ns) : 0;
	for (size_t i = 0; i < state->thread_count; i++)
		for (uint32_t depth = 0; depth < state->threads[i]->depth; depth++) {
			state->threads[i]->frames[depth].begin_ns = state->now_ns;
			fold_rebase(fold, &state->threads[i]->frames[depth], &state->threads[i]->more[depth]);
			fold_keep_wanted(fold, state->threads[i], depth);
		}
}

bool fold_is_partial(const struct fold *fold)
{
	return fold->options.steps || fold->options.windows;
}

/* With --steps, the steps in it begin and end the counting. What was not recorded before it is not missing. Steps that have rows of their own are
 * all in one: there those that are to be left out of averages do not count. */
void fold_window(struct fold *fold, const struct trace_event *event)
{
	const struct trace_window *record = event->record;

	if (!fold->options.windows)
		return;
	fold->state->now_ns = event->time_ns;
	fold_thread(fold, event);
	if (record->edge == TRACE_WINDOW_BEGINS) {
		memory_resume(fold->memory);
		fold->state->warming = record->warmup && fold->state->sections && fold->options.found->own_ranges;
		if (!fold->options.steps && !fold->state->counting && !fold->state->warming)
			begin_counting(fold);
	} else if (record->edge == TRACE_WINDOW_ENDS && fold->state->counting) {
		fold_window_ends(fold);
	}
}

void fold_window_warm(struct fold *fold)
{
	if (fold->state->warming && !fold->options.steps && !fold->state->counting)
		begin_counting(fold);
	fold->state->warming = false;
}

/* It is asked for, or it is not. */
void fold_step_comes(struct fold *fold, uint64_t number)
{
	struct fold_state *state = fold->state;

	fold->counts.steps++;
	state->step = number;
	if (!fold->options.steps)
		return;
	if (state->counting && number > fold->options.last_step)
		fold_window_ends(fold);
	if (number < fold->options.first_step || number > fold->options.last_step || state->counting)
		return;
	begin_counting(fold);
}

/* A range that is a step begins. */
void fold_step_begins(struct fold *fold, const struct trace_event *event, struct thread *thread)
{
	const struct trace_text text = reader_event_text(fold->reader, event);
	uint64_t number = fold->counts.steps;

	label_number(text.bytes, text.length, &number);
	fold->state->step_thread = thread;
	fold->state->step_depth = event->depth;
	fold_step_comes(fold, number);
}

/* Where the trace has no ranges of kind step, those are steps whose label begins with such a word. */
bool fold_is_step(const struct fold *fold, const struct trace_event *event)
{
	static const char *const words[] = { "step", "iter", "profilerstep", "profilestep", "batch", "epoch" };
	struct trace_text text;

	if (fold->state->step_thread || fold->state->sections)
		return false;
	if (fold->state->step_kinds)
		return reader_place(fold->reader, event->node)->kind == TRACE_NODE_STEP;
	text = reader_event_text(fold->reader, event);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (text.length >= strlen(words[i]) && strncasecmp(text.bytes, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}
