/* SPDX-License-Identifier: MIT
 * kineto_enclosure.c: work of a GPU without a correlation id, as some writers leave it. It still has the External id of what
 * was open at its launch, and so have the calls made there: it is taken for the work of one of these, in their order.
 * Which range the call lies in, the nesting on its thread says as ever.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

#define MADE_ID (UINT64_C(1) << 62) /* no correlation id is as large */

#define WORKS (KINETO_SET + 1)

struct candidates {
	struct kineto *kineto;
	uint32_t *calls; /* those with an External id that make a GPU work, by it, then by start */
	size_t count;
	/* Of each kind of work, by place in calls, all + 1: `next` the first from there on that makes it and has none yet (or
	 * a place on the way to that), `last` the last up to there that makes it; 0: none does. */
	size_t *next[WORKS], *last[WORKS];
};

static enum trace_kind kind_of(const struct kineto *kineto, size_t call)
{
	return kineto_call_kind(text_of(kineto->texts, kineto->calls[call].name));
}

static bool is_without_id(const struct kineto_gpu *gpu)
{
	return !gpu->correlation && gpu->external;
}

static int by_external(const void *a, const void *b, void *context)
{
	const struct kineto_call *calls = context, *left = &calls[*(const uint32_t *)a], *right = &calls[*(const uint32_t *)b];

	if (left->external != right->external)
		return left->external < right->external ? -1 : 1;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left < right ? -1 : 1;
}

/* How many have a lower External id, or this one and begin before that moment. */
static size_t count_before(const struct candidates *candidates, uint64_t external, int64_t start)
{
	size_t low = 0, high = candidates->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct kineto_call *call = &candidates->kineto->calls[candidates->calls[middle]];

		if (call->external < external || (call->external == external && call->start < start))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The place of the first from `at` on that is free; candidates->count: none is. What leads there is made shorter. */
static size_t first_free(const struct candidates *candidates, size_t *next, size_t at)
{
	while (at < candidates->count && next[at] != at + 1) {
		if (next[at] <= candidates->count)
			next[at] = next[next[at] - 1];
		at = next[at] - 1;
	}
	return at;
}

/* The first that asked for such work before it began and has none yet, else the last; NULL: none did. */
static struct kineto_call *call_for(struct candidates *candidates, const struct kineto_gpu *gpu)
{
	const size_t begin = count_before(candidates, gpu->external, INT64_MIN),
		     end = count_before(candidates, gpu->external, gpu->start + 1);
	const size_t at = first_free(candidates, candidates->next[gpu->kind], begin);
	struct kineto_call *calls = candidates->kineto->calls;

	if (at < end) {
		for (int work = 0; work < WORKS; work++)
			candidates->next[work][at] = at + 2;
		return &calls[candidates->calls[at]];
	}
	return begin < end && candidates->last[gpu->kind][end - 1] > begin ? &calls[candidates->calls[candidates->last[gpu->kind][end - 1] - 1]]
									     : NULL;
}

/* Which of them make such work; none has any yet. */
static void list_makers(struct candidates *candidates, const enum trace_kind *kinds, int work)
{
	static const enum trace_kind makers[WORKS] = { [KINETO_KERNEL] = TRACE_LAUNCH, [KINETO_COPY] = TRACE_COPY, [KINETO_SET] = TRACE_SET };
	size_t *next = need((candidates->count + 1) * sizeof *next), *last = need((candidates->count + 1) * sizeof *last);

	for (size_t i = 0; i < candidates->count; i++) {
		const bool makes = kinds[i] == makers[work] || kinds[i] == TRACE_GRAPH_LAUNCH;

		next[i] = makes ? i + 1 : i + 2;
		last[i] = makes ? i + 1 : i ? last[i - 1] : 0;
	}
	candidates->next[work] = next;
	candidates->last[work] = last;
}

static void list_calls(struct candidates *candidates)
{
	const struct kineto *kineto = candidates->kineto;
	enum trace_kind *kinds = need((kineto->call_count + 1) * sizeof *kinds);

	candidates->calls = need((kineto->call_count + 1) * sizeof *candidates->calls);
	for (size_t i = 0; i < kineto->call_count; i++)
		if (kineto->calls[i].external && kind_of(kineto, i) != TRACE_SYNC)
			candidates->calls[candidates->count++] = (uint32_t)i;
	if (candidates->count)
		qsort_r(candidates->calls, candidates->count, sizeof *candidates->calls, by_external, kineto->calls);
	for (size_t i = 0; i < candidates->count; i++)
		kinds[i] = kind_of(kineto, candidates->calls[i]);
	for (int work = 0; work < WORKS; work++)
		list_makers(candidates, kinds, work);
	free(kinds);
}

void kineto_enclose(struct kineto *kineto)
{
	struct candidates candidates = { .kineto = kineto };
	uint64_t made = MADE_ID;
	size_t first = 0;

	while (first < kineto->gpu_count && !is_without_id(&kineto->gpus[first]))
		first++;
	if (first == kineto->gpu_count)
		return;
	list_calls(&candidates);
	for (size_t i = first; i < kineto->gpu_count; i++) {
		struct kineto_gpu *gpu = &kineto->gpus[i];
		struct kineto_call *call = is_without_id(gpu) ? call_for(&candidates, gpu) : NULL;

		if (!call)
			continue;
		if (!call->correlation)
			call->correlation = ++made;
		gpu->correlation = call->correlation;
		gpu->enclosed = true;
	}
	free(candidates.calls);
	for (int work = 0; work < WORKS; work++) {
		free(candidates.next[work]);
		free(candidates.last[work]);
	}
}
