/* SPDX-License-Identifier: MIT */
#include "report/steps/kept_steps.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include <stdlib.h>
#include <string.h>

static void write_by_thread(const struct steps *steps, struct value_writer *writer)
{
	for (size_t i = 0; steps->thread_count && i < steps->count; i++)
		value_write_u64(writer, (uint64_t)(steps->by_thread[i] - steps->steps));
}

void steps_write(const struct steps *steps, struct value_writer *writer)
{
	struct steps kept;

	value_write_u64(writer, steps != NULL);
	if (!steps)
		return;
	kept = *steps;
	kept.steps = NULL;
	kept.threads = NULL;
	kept.by_thread = NULL;
	kept.room = kept.count;
	value_write(writer, &kept, sizeof kept);
	value_write_array(writer, steps->steps, steps->count, sizeof *steps->steps);
	value_write_array(writer, steps->threads, steps->thread_count, sizeof *steps->threads);
	write_by_thread(steps, writer);
}

#define KEPT_TEXT_MAX 256u

/* Returns whether a text ends within its `room` bytes, up to KEPT_TEXT_MAX, and has nothing to
 * escape. */
static bool is_good_text(const char *text, size_t room)
{
	const size_t length = strnlen(text, room);
	char escaped[KEPT_TEXT_MAX];

	return length < room && room <= sizeof escaped &&
	       escape_text(escaped, sizeof escaped, text, length, false) == length &&
	       !memcmp(escaped, text, length);
}

static bool are_good_texts(const struct steps *steps)
{
	return is_good_text(steps->evidence, sizeof steps->evidence) &&
	       is_good_text(steps->reason, sizeof steps->reason) &&
	       is_good_text(steps->warning, sizeof steps->warning);
}

static bool is_good_head(const struct steps *steps)
{
	return are_good_texts(steps) && value_is_bool(&steps->own_ranges) &&
	       value_is_bool(&steps->is_finished) && value_is_bool(&steps->on_gpu) &&
	       steps->confidence <= STEPS_HIGH;
}

/* Returns whether the times are in order, the nodes exist, and the counts are those of the
 * steps. */
static bool are_good_steps(const struct steps *steps, uint32_t trace_nodes)
{
	size_t of_kind[STEP_AT_EDGE + 1] = { 0 };

	for (size_t i = 0; i < steps->count; i++) {
		const struct step *step = &steps->steps[i];

		if (step->kind > STEP_AT_EDGE || step->begin_ns > step->end_ns ||
			step->window_begin_ns > step->window_end_ns ||
			step->end_ns > READER_TIME_MAX || step->window_end_ns > READER_TIME_MAX ||
			step->trace_node >= trace_nodes ||
			(i && step->begin_ns < step[-1].begin_ns))
			return false;
		of_kind[step->kind]++;
	}
	return of_kind[STEP_WARM_UP] == steps->warm_up &&
	       of_kind[STEP_UNFINISHED] == steps->unfinished &&
	       of_kind[STEP_CAPTURE] == steps->captures && of_kind[STEP_AT_EDGE] == steps->edges &&
	       (!steps->count || steps->last_found < steps->count);
}

/* Returns whether the threads have all steps, one thread's after the other's. */
static bool are_good_threads(const struct steps *steps)
{
	size_t count = 0;

	for (size_t i = 0; i < steps->thread_count; i++) {
		const struct steps_thread *thread = &steps->threads[i];

		if (thread->first != count || !thread->count ||
			thread->count > steps->count - count || thread->usual > thread->count ||
			(i && thread->tid <= thread[-1].tid))
			return false;
		count += thread->count;
	}
	return !steps->thread_count || count == steps->count;
}

/* Reads the steps of a thread. They are in the order of all steps. */
static void read_steps_of_thread(
	struct steps *steps, const struct steps_thread *thread, struct value_reader *reader)
{
	const struct step **of = &steps->by_thread[thread->first];

	for (size_t i = 0; i < thread->count; i++) {
		of[i] = &steps->steps[value_read_below(reader, steps->count - 1)];
		value_check(reader, of[i]->tid == thread->tid && (!i || of[i] > of[i - 1]));
	}
}

static void read_by_thread(struct steps *steps, struct value_reader *reader)
{
	if (steps->thread_count)
		steps->by_thread = xcalloc(steps->count * sizeof(struct step *));
	for (size_t i = 0; i < steps->thread_count; i++)
		read_steps_of_thread(steps, &steps->threads[i], reader);
}

struct steps *steps_read(struct value_reader *reader, uint32_t trace_nodes)
{
	struct steps *steps;
	uint64_t count, threads;

	if (!value_read_below(reader, 1))
		return NULL;
	steps = xcalloc(sizeof *steps);
	value_read(reader, steps, sizeof *steps);
	steps->steps = value_read_array(reader, &count, UINT32_MAX, sizeof *steps->steps);
	steps->threads = value_read_array(reader, &threads, UINT32_MAX, sizeof *steps->threads);
	steps->by_thread = NULL;
	steps->count = steps->room = (size_t)count;
	steps->thread_count = (size_t)threads;
	if (!threads) {
		free(steps->threads);
		steps->threads = NULL;
	}
	if (value_check(reader, is_good_head(steps) && are_good_steps(steps, trace_nodes) &&
					are_good_threads(steps)))
		read_by_thread(steps, reader);
	return steps;
}
