/* SPDX-License-Identifier: MIT
 * Assigns GPU work without a correlation id, as some tools write it, to calls. The work has the
 * External id of the range that was open at its launch, and so have the calls made there. Work is
 * assigned to these calls in their order. The range of a call follows from the nesting on its
 * thread, as always.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

#define MADE_ID (UINT64_C(1) << 62) /* no real correlation id is as large */

#define GPU_KINDS (IMPORTED_MEMSET + 1)

struct candidates {
	struct event_rows *imported;
	/* calls that issue GPU work and have an External id, by that id, then start */
	uint32_t *calls;
	size_t count;
	/* Both are indexed by position in `calls`, one array per kind of work. All values are a
	 * position + 1. `next`: the first call from there on that issues such work and has none
	 * yet, or a position on the way to it. `last`: the last call up to there that issues
	 * such work, 0 if none. */
	size_t *next[GPU_KINDS], *last[GPU_KINDS];
};

static enum trace_kind call_kind_at(const struct event_rows *imported, size_t call)
{
	return cuda_call_kind(string_table_get(imported->texts, imported->calls[call].name));
}

static bool is_without_id(const struct imported_gpu *gpu)
{
	return !gpu->correlation && gpu->external;
}

static int compare_external_ids(const void *a, const void *b, void *context)
{
	const struct imported_call *calls = context, *left = &calls[*(const uint32_t *)a],
				   *right = &calls[*(const uint32_t *)b];

	if (left->external != right->external)
		return left->external < right->external ? -1 : 1;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left < right ? -1 : 1;
}

/* Returns the number of calls with a lower External id, or with `external` and a start before
 * `start`. */
static size_t count_before(const struct candidates *candidates, uint64_t external, int64_t start)
{
	size_t low = 0, high = candidates->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct imported_call *call =
			&candidates->imported->calls[candidates->calls[middle]];

		if (call->external < external ||
			(call->external == external && call->start < start))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the position of the first free call from `at` on, or candidates->count. Shortens the
 * path that it follows in `next`. */
static size_t first_unmatched(const struct candidates *candidates, size_t *next, size_t at)
{
	while (at < candidates->count && next[at] != at + 1) {
		if (next[at] <= candidates->count)
			next[at] = next[next[at] - 1];
		at = next[at] - 1;
	}
	return at;
}

/* Returns the first call that may have issued the work: it began earlier and has none yet. If
 * all have some, returns the last one. Returns NULL if there is none. */
static struct imported_call *find_call(
	struct candidates *candidates, const struct imported_gpu *gpu)
{
	const size_t begin = count_before(candidates, gpu->external, INT64_MIN),
		     end = count_before(candidates, gpu->external, gpu->start + 1);
	const size_t at = first_unmatched(candidates, candidates->next[gpu->kind], begin);
	struct imported_call *calls = candidates->imported->calls;

	if (at < end) {
		for (int work = 0; work < GPU_KINDS; work++)
			candidates->next[work][at] = at + 2;
		return &calls[candidates->calls[at]];
	}
	return begin < end && candidates->last[gpu->kind][end - 1] > begin
		       ? &calls[candidates->calls[candidates->last[gpu->kind][end - 1] - 1]]
		       : NULL;
}

/* Initialises `next` and `last` for a kind of work. No call has work yet. */
static void index_calls_of_kind(
	struct candidates *candidates, const enum trace_kind *kinds, int work)
{
	static const enum trace_kind record_kinds[GPU_KINDS] = { [IMPORTED_KERNEL] = TRACE_LAUNCH,
		[IMPORTED_COPY] = TRACE_COPY,
		[IMPORTED_MEMSET] = TRACE_SET };
	size_t *next = xcalloc((candidates->count + 1) * sizeof *next),
	       *last = xcalloc((candidates->count + 1) * sizeof *last);

	for (size_t i = 0; i < candidates->count; i++) {
		const bool makes = kinds[i] == record_kinds[work] || kinds[i] == TRACE_GRAPH_LAUNCH;

		next[i] = makes ? i + 1 : i + 2;
		last[i] = makes ? i + 1 : i ? last[i - 1] : 0;
	}
	candidates->next[work] = next;
	candidates->last[work] = last;
}

static void list_candidate_calls(struct candidates *candidates)
{
	const struct event_rows *imported = candidates->imported;
	enum trace_kind *kinds = xcalloc((imported->call_count + 1) * sizeof *kinds);

	candidates->calls = xcalloc((imported->call_count + 1) * sizeof *candidates->calls);
	for (size_t i = 0; i < imported->call_count; i++)
		if (imported->calls[i].external && call_kind_at(imported, i) != TRACE_SYNC)
			candidates->calls[candidates->count++] = (uint32_t)i;
	if (candidates->count)
		qsort_r(candidates->calls, candidates->count, sizeof *candidates->calls,
			compare_external_ids, imported->calls);
	for (size_t i = 0; i < candidates->count; i++)
		kinds[i] = call_kind_at(imported, candidates->calls[i]);
	for (int work = 0; work < GPU_KINDS; work++)
		index_calls_of_kind(candidates, kinds, work);
	free(kinds);
}

void match_calls_without_ids(struct event_rows *imported)
{
	struct candidates candidates = { .imported = imported };
	uint64_t made = MADE_ID;
	size_t first = 0;

	while (first < imported->gpu_count && !is_without_id(&imported->gpus[first]))
		first++;
	if (first == imported->gpu_count)
		return;
	list_candidate_calls(&candidates);
	for (size_t i = first; i < imported->gpu_count; i++) {
		struct imported_gpu *gpu = &imported->gpus[i];
		struct imported_call *call = is_without_id(gpu) ? find_call(&candidates, gpu)
								: NULL;

		if (!call)
			continue;
		if (!call->correlation)
			call->correlation = ++made;
		gpu->correlation = call->correlation;
		gpu->enclosed = true;
	}
	free(candidates.calls);
	for (int work = 0; work < GPU_KINDS; work++) {
		free(candidates.next[work]);
		free(candidates.last[work]);
	}
}
