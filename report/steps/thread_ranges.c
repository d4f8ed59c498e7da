/* SPDX-License-Identifier: MIT
 * Makes steps of ranges that mark steps on several threads, as a server with a loop on each thread
 * has them.
 *
 * 1. The other threads have three ranges, and a fifth of the first thread's number.
 * 2. Fewer than nine of ten of them are in a range of the first thread. Else they are parts of its
 *    steps, which it hands to helper threads.
 */
#include "report/steps/step_rules.h"
#include <stdlib.h>

static bool mark_own_steps(
	const struct evidence_list *evidence, uint32_t thread, const struct step_spans *spans)
{
	const struct evidence_item *own = NULL;
	size_t own_count = 0, others = 0, nested = 0;

	for (size_t i = 0; i < spans->count; i++) {
		const struct evidence_item *item = &evidence->items[spans->spans[i].first];

		if (item->thread == thread) {
			own = item;
			own_count++;
			continue;
		}
		others++;
		nested += own && item->begin_ns >= own->begin_ns && item->end_ns <= own->end_ns;
	}
	return others >= STEPS_OF_THREADS_MIN && others * 5 >= own_count &&
	       nested * 10 < others * 9;
}

/* Stores in `of_thread` the ranges of one thread. */
static void select_thread(const struct evidence_list *evidence, uint32_t thread,
	const struct step_spans *spans, struct step_spans *of_thread)
{
	of_thread->count = 0;
	for (size_t i = 0; i < spans->count; i++)
		if (evidence->items[spans->spans[i].first].thread == thread)
			step_spans_add(of_thread, spans->spans[i].first, spans->spans[i].last,
				spans->spans[i].unfinished);
}

static void add_steps_of_threads(struct trace_reader *reader, const struct evidence_list *evidence,
	const struct step_spans *spans, struct steps *steps)
{
	struct step_spans one = { .count = 0 };

	for (uint32_t thread = 0; thread < evidence->thread_count; thread++) {
		struct steps of_thread = { .count = 0 };

		select_thread(evidence, thread, spans, &one);
		if (!one.count)
			continue;
		steps_from_ranges(reader, evidence, &one, &of_thread);
		steps_mark_warm_up(&of_thread, true);
		steps_append_thread(steps, &of_thread, evidence->threads[thread].tid);
		free(of_thread.steps);
	}
	free(one.spans);
	steps_group_by_thread(steps);
}

bool steps_from_thread_ranges(struct trace_reader *reader, const struct evidence_list *evidence,
	uint32_t thread, struct step_spans *spans, struct steps *steps)
{
	const bool several = mark_own_steps(evidence, thread, spans);
	struct step_spans own = { .count = 0 };

	if (several) {
		add_steps_of_threads(reader, evidence, spans, steps);
		return true;
	}
	select_thread(evidence, thread, spans, &own);
	free(spans->spans);
	*spans = own;
	return false;
}
