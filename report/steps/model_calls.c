/* SPDX-License-Identifier: MIT
 * Makes steps of the calls of the outermost module, in a program that does not train.
 *
 * 1. The model is the outermost module with most time on the thread with most time.
 * 2. If the other threads call it too, as in a server, each call is a step of the thread that makes
 *    it. This needs three calls on other threads, and a fifth of the first thread's number.
 * 3. If nearly every call of the first thread contains the same number of calls of others, and
 *    nearly all of those are in one, they are parts of it (nn.DataParallel calls replicas on
 *    threads). Then only the first thread's calls are steps.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include "report/steps/step_rules.h"
#include <stdio.h>
#include <stdlib.h>

#define CALLS_MIN STEPS_OF_THREADS_MIN

/* Outermost modules of one name, and their total time. */
struct model_time {
	uint32_t name;
	uint64_t ns;
};

COMPARE_BY(by_model_name, struct model_time, name)

/* Returns the name of the outermost modules with most time on a thread. `share`: its percentage
 * of the time of all outermost modules. */
static uint32_t main_model(struct trace_reader *reader, const struct evidence_list *evidence,
	uint32_t thread, unsigned *share)
{
	struct model_time *models = xcalloc((size_t)(evidence->count_of[EVIDENCE_FORWARD] + 1) *
					    sizeof *models),
			  best = { .name = 0 };
	uint64_t all = 0;
	size_t count = 0;

	for (size_t i = 0; i < evidence->count; i++) {
		const struct evidence_item *item = &evidence->items[i];

		if (item->thread == thread && item->kind == EVIDENCE_FORWARD)
			models[count++] = (struct model_time){
				.name = reader_node(reader, item->trace_node)->name,
				.ns = item->end_ns - item->begin_ns
			};
	}
	qsort(models, count, sizeof *models, by_model_name);
	for (size_t i = 0; i < count; i++) {
		all += models[i].ns;
		if (i > 0 && models[i].name == models[i - 1].name)
			models[i].ns += models[i - 1].ns;
		if (!best.name || models[i].ns > best.ns)
			best = models[i];
	}
	free(models);
	*share = all ? (unsigned)((long double)best.ns * 100 / (long double)all) : 0;
	return best.name;
}

/* A call of the model. */
struct model_call {
	uint32_t item, thread;
};

struct model_calls {
	struct model_call *calls; /* by thread and time */
	size_t count, room;
	size_t own, others;
	/* nested: calls of others during an own call; alike: own calls with as many of them as the
	 * own call before, of `own` - 1 */
	size_t nested, alike;
};

COMPARE_BY_TWO(by_thread, struct model_call, thread, item)

static void collect_calls(struct trace_reader *reader, const struct evidence_list *evidence,
	uint32_t thread, uint32_t name, struct model_calls *calls)
{
	const struct evidence_item *own = NULL;
	size_t nested = 0, nested_before = SIZE_MAX;

	for (uint32_t i = 0; i < evidence->count; i++) {
		const struct evidence_item *item = &evidence->items[i];
		bool is_nested;

		if (item->kind != EVIDENCE_FORWARD ||
			reader_node(reader, item->trace_node)->name != name)
			continue;
		if (item->thread == thread) {
			calls->alike += own && nested > 0 && nested == nested_before;
			nested_before = own ? nested : SIZE_MAX;
			nested = 0;
			own = item;
			calls->own++;
		} else {
			is_nested = own && item->begin_ns >= own->begin_ns &&
				    item->end_ns <= own->end_ns;
			calls->others++;
			calls->nested += is_nested;
			nested += is_nested;
		}
		*ARRAY_ADD(calls->calls, calls->room,
			calls->count) = (struct model_call){ .item = i, .thread = item->thread };
	}
	if (calls->count)
		qsort(calls->calls, calls->count, sizeof *calls->calls, by_thread);
}

/* Adds the calls of one thread, from `first` on. Returns the first call of the next thread. */
static size_t add_thread_calls(const struct evidence_list *evidence,
	const struct model_calls *calls, size_t first, struct steps *steps)
{
	const uint32_t thread = calls->calls[first].thread;
	struct step_spans spans = { .count = 0 };

	for (; first < calls->count && calls->calls[first].thread == thread; first++)
		step_spans_add(&spans, calls->calls[first].item, calls->calls[first].item,
			evidence->items[calls->calls[first].item].is_open);
	steps->stream = evidence->threads[thread].stream;
	steps_from_spans(evidence, &spans, false, steps);
	free(spans.spans);
	return first;
}

void steps_append_thread(struct steps *all, const struct steps *of_thread, uint32_t tid)
{
	for (size_t i = 0; i < of_thread->count; i++) {
		struct step *step = ARRAY_ADD(all->steps, all->room, all->count);

		*step = of_thread->steps[i];
		step->tid = tid;
	}
	all->warm_up += of_thread->warm_up;
	all->unfinished += of_thread->unfinished;
}

COMPARE_BY_TWO(by_begin, struct step, begin_ns, tid)

static int by_tid(const void *a, const void *b)
{
	const struct step *left = *(const struct step *const *)a,
			  *right = *(const struct step *const *)b;

	return left->tid != right->tid ? COMPARE(left->tid, right->tid) : COMPARE(left, right);
}

void steps_group_by_thread(struct steps *steps)
{
	size_t room = 0;

	qsort(steps->steps, steps->count, sizeof *steps->steps, by_begin);
	steps->by_thread = xcalloc((steps->count + 1) * sizeof(struct step *));
	for (size_t i = 0; i < steps->count; i++) {
		steps->steps[i].number = i;
		steps->by_thread[i] = &steps->steps[i];
	}
	qsort(steps->by_thread, steps->count, sizeof(struct step *), by_tid);
	for (size_t i = 0; i < steps->count; i++) {
		if (i == 0 || steps->by_thread[i]->tid != steps->by_thread[i - 1]->tid)
			*ARRAY_ADD(
				steps->threads, room, steps->thread_count) = (struct steps_thread){
				.tid = steps->by_thread[i]->tid, .first = i
			};
		steps->threads[steps->thread_count - 1].count++;
	}
}

static void add_calls_of_all_threads(
	const struct evidence_list *evidence, const struct model_calls *calls, struct steps *steps)
{
	for (size_t first = 0; first < calls->count;) {
		const uint32_t tid = evidence->threads[calls->calls[first].thread].tid;
		struct steps of_thread = { .count = 0 };

		first = add_thread_calls(evidence, calls, first, &of_thread);
		steps_mark_warm_up(&of_thread, true);
		steps_append_thread(steps, &of_thread, tid);
		free(of_thread.steps);
	}
	steps_group_by_thread(steps);
}

static void add_calls_of_one_thread(const struct evidence_list *evidence,
	const struct model_calls *calls, uint32_t thread, struct steps *steps)
{
	size_t first = 0;

	while (calls->calls[first].thread != thread)
		first++;
	add_thread_calls(evidence, calls, first, steps);
}

static bool are_parts_of_own_calls(const struct model_calls *calls)
{
	/* the first own call has none before it, and the last one none after it */
	return calls->nested * 10 >= calls->others * 9 && (calls->alike + 2) * 10 >= calls->own * 9;
}

bool steps_from_calls(
	struct trace_reader *reader, const struct evidence_list *evidence, struct steps *steps)
{
	const uint32_t thread = steps_find_thread(
		evidence, 1u << EVIDENCE_FORWARD, EVIDENCE_FORWARD);
	struct model_calls calls = { .count = 0 };
	bool several = false;
	unsigned share = 0;

	if (thread == EVIDENCE_NO_INDEX)
		return false;
	collect_calls(
		reader, evidence, thread, main_model(reader, evidence, thread, &share), &calls);
	several = calls.others >= CALLS_MIN && calls.others * 5 >= calls.own &&
		  !are_parts_of_own_calls(&calls);
	if (several)
		add_calls_of_all_threads(evidence, &calls, steps);
	else if (calls.own >= CALLS_MIN)
		add_calls_of_one_thread(evidence, &calls, thread, steps);
	free(calls.calls);
	if (!steps->count)
		return false;
	steps->stream = evidence->threads[thread].stream;
	steps->confidence = share >= 80 ? STEPS_MEDIUM : STEPS_LOW;
	if (share < 80)
		snprintf(steps->reason, sizeof steps->reason,
			"it makes %u %% of the calls of outermost modules, by time", share);
	snprintf(steps->evidence, sizeof steps->evidence, "calls of the outermost module");
	return true;
}

DEFINE_COUNT_WHILE(threads_before, struct steps_thread, item->tid < limit)

const struct steps_thread *steps_find_steps_thread(const struct steps *steps, uint32_t tid)
{
	const size_t at = threads_before(steps->threads, steps->thread_count, tid);

	return at < steps->thread_count && steps->threads[at].tid == tid ? &steps->threads[at]
									 : NULL;
}

DEFINE_COUNT_WHILE(thread_steps_begun, struct step *const, (*item)->begin_ns <= limit)

const struct step *steps_step_of_thread(const struct steps *steps, uint32_t tid, uint64_t at_ns)
{
	const struct steps_thread *thread;
	const struct step *const *own;
	size_t begun;

	if (!steps_overlap(steps))
		return steps_step_at(steps, at_ns);
	thread = steps_find_steps_thread(steps, tid);
	if (!thread)
		return NULL;
	own = &steps->by_thread[thread->first];
	begun = thread_steps_begun(own, thread->count, at_ns);
	return begun && at_ns < own[begun - 1]->end_ns ? own[begun - 1] : NULL;
}
