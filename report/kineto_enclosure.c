/* SPDX-License-Identifier: MIT
 * kineto_enclosure.c: work of a GPU without a correlation id, as some writers leave it. It still has the External id of what
 * was open at its launch, and so have the calls made there: it is taken for the work of one of these, in their order.
 * Which range the call lies in, the nesting on its thread says as ever.
 */
#include "report/fatal.h"
#include "report/kineto_trace.h"
#include <stdlib.h>

#define MADE_ID (UINT64_C(1) << 62) /* no correlation id is as large */

struct candidates {
	struct kineto *kineto;
	uint32_t *calls; /* those with an External id that make a GPU work, by it, then by start */
	bool *taken;     /* by their place in calls */
	size_t count;
};

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

static size_t first_with(const struct candidates *candidates, uint64_t external)
{
	size_t low = 0, high = candidates->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (candidates->kineto->calls[candidates->calls[middle]].external < external)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool makes(const struct kineto *kineto, const struct kineto_call *call, uint32_t kind)
{
	static const enum trace_kind kinds[] = { [KINETO_KERNEL] = TRACE_LAUNCH, [KINETO_COPY] = TRACE_COPY, [KINETO_SET] = TRACE_SET };
	const enum trace_kind made = kineto_call_kind(text_of(kineto->texts, call->name));

	return made == kinds[kind] || made == TRACE_GRAPH_LAUNCH;
}

/* The first that asked for such work before it began and has none yet, else the last; NULL: none did. */
static struct kineto_call *call_for(struct candidates *candidates, const struct kineto_gpu *gpu)
{
	struct kineto *kineto = candidates->kineto;
	struct kineto_call *last = NULL;

	for (size_t i = first_with(candidates, gpu->external); i < candidates->count; i++) {
		struct kineto_call *call = &kineto->calls[candidates->calls[i]];

		if (call->external != gpu->external || call->start > gpu->start)
			break;
		if (!makes(kineto, call, gpu->kind))
			continue;
		last = call;
		if (!candidates->taken[i]) {
			candidates->taken[i] = true;
			break;
		}
	}
	return last;
}

static void list_calls(struct candidates *candidates)
{
	const struct kineto *kineto = candidates->kineto;

	candidates->calls = need((kineto->call_count + 1) * sizeof *candidates->calls);
	candidates->taken = need(kineto->call_count + 1);
	for (size_t i = 0; i < kineto->call_count; i++)
		if (kineto->calls[i].external &&
			kineto_call_kind(text_of(kineto->texts, kineto->calls[i].name)) != TRACE_SYNC)
			candidates->calls[candidates->count++] = (uint32_t)i;
	if (candidates->count)
		qsort_r(candidates->calls, candidates->count, sizeof *candidates->calls, by_external, kineto->calls);
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
	free(candidates.taken);
}
