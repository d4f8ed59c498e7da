/* SPDX-License-Identifier: MIT
 * Finds out why a launch, copy or memset has no GPU record in the file. The first rule that holds
 * sets the flag of the call. A call for which no rule holds has lost its record.
 *
 *	rule						flag
 *	the call failed					none: `result` says it
 *	made while a CUDA stream was being captured	TRACE_CALL_CAPTURED
 *	the file has ranges of CUPTI's range profiler	TRACE_CALL_PROFILED
 *	  and no GPU record
 *	a copy or memset that returned within 1 us	TRACE_CALL_EMPTY
 *	returned before the first GPU record began,	TRACE_CALL_BEFORE_GPU
 *	  and made before the first call with a record
 *	made after the last call with a record, and	TRACE_CALL_AFTER_GPU
 *	  no later call waited for the whole device
 *
 * The rules are inferences, because the file says nothing about missing records. Among 24 public
 * traces, copies and memsets with a record take at least 2.0 us, and memsets without one at most
 * 1.0 us. A capture counts for all threads: autograd launches from a thread of its own.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

#define EMPTY_CALL_NS 1000u

struct launch_facts {
	/* Starts of the first and last call with a GPU record; the start of the first record. */
	int64_t first_launch, last_launch, first_record;
	int64_t last_wait; /* start of the last call that waited for a whole device */
	bool profiled;     /* only CUPTI's range profiler observed the GPU */
};

/* The begin or end of a stream capture. `open`: captures in progress after it. */
struct capture_edge {
	int64_t time;
	bool ends;
	size_t open;
};

struct captures {
	struct capture_edge *edges; /* by time */
	size_t count, room;
};

static bool name_contains(const struct event_rows *imported, uint32_t text, const char *word)
{
	const struct string_view name = string_table_get(imported->texts, text);

	return memmem(name.bytes, name.length, word, strlen(word)) != NULL;
}

static int compare_capture_edges(const void *a, const void *b)
{
	const struct capture_edge *left = a, *right = b;

	return left->time < right->time ? -1 : left->time > right->time;
}

/* What scan_functions caches about a function, by its name's text. */
enum call_class { CLASS_UNKNOWN, CLASS_OTHER, CLASS_BEGIN_CAPTURE, CLASS_END_CAPTURE, CLASS_WAIT };

static enum call_class classify_function(const struct event_rows *imported, uint32_t text)
{
	if (name_contains(imported, text, "StreamBeginCapture"))
		return CLASS_BEGIN_CAPTURE;
	if (name_contains(imported, text, "StreamEndCapture"))
		return CLASS_END_CAPTURE;
	if (name_contains(imported, text, "DeviceSynchronize") ||
		name_contains(imported, text, "CtxSynchronize"))
		return CLASS_WAIT;
	return CLASS_OTHER;
}

static void add_capture_edge(struct captures *captures, int64_t time, bool ends)
{
	array_grow_zeroed(
		&captures->edges, &captures->room, captures->count + 1, sizeof *captures->edges);
	captures->edges[captures->count++] = (struct capture_edge){ .time = time, .ends = ends };
}

/* Sorts the edges and counts the captures in progress. A capture that began before the file ends
 * at the first end. */
static void count_open_captures(struct captures *captures)
{
	size_t open;

	if (!captures->count)
		return;
	qsort(captures->edges, captures->count, sizeof *captures->edges, compare_capture_edges);
	open = captures->edges[0].ends;
	for (size_t i = 0; i < captures->count; i++) {
		open = captures->edges[i].ends ? open - (open > 0) : open + 1;
		captures->edges[i].open = open;
	}
}

/* Fills `captures`, and `last_wait` of `facts`. */
static void scan_functions(
	const struct event_rows *imported, struct launch_facts *facts, struct captures *captures)
{
	uint8_t *classes = NULL;
	size_t room = 0;

	for (size_t i = 0; i < imported->call_count; i++) {
		const struct imported_call *call = &imported->calls[i];
		uint8_t *class;

		if (call->result)
			continue;
		array_grow_zeroed(&classes, &room, (size_t)call->name + 1, 1);
		class = &classes[call->name];
		if (*class == CLASS_UNKNOWN)
			*class = (uint8_t)classify_function(imported, call->name);
		if (*class == CLASS_WAIT && call->start > facts->last_wait)
			facts->last_wait = call->start;
		else if (*class == CLASS_BEGIN_CAPTURE || *class == CLASS_END_CAPTURE)
			add_capture_edge(captures, call->start, *class == CLASS_END_CAPTURE);
	}
	free(classes);
	count_open_captures(captures);
}

/* Returns true if a capture is in progress at `time`. A capture without an end lasts to the end
 * of the file. */
static bool is_in_capture(const struct captures *captures, int64_t time)
{
	size_t low = 0, high = captures->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (captures->edges[middle].time <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? captures->edges[low - 1].open > 0 : captures->count && captures->edges[0].ends;
}

static void scan_records(const struct conversion *conversion, struct launch_facts *facts)
{
	const struct event_rows *imported = conversion->imported;

	for (size_t i = 0; i < imported->gpu_count; i++) {
		const struct imported_gpu *gpu = &imported->gpus[i];
		const struct correlation_owner *owner = convert_owner(conversion, gpu->correlation);
		int64_t start;

		if (gpu->start < facts->first_record)
			facts->first_record = gpu->start;
		if (!owner || !owner->call)
			continue;
		start = imported->calls[owner->call - 1].start;
		if (start < facts->first_launch)
			facts->first_launch = start;
		if (start > facts->last_launch)
			facts->last_launch = start;
	}
	for (size_t i = 0; i < imported->skip_count && !imported->gpu_count; i++)
		facts->profiled |= name_contains(
			imported, imported->skips[i].category, "cuda_profiler_range");
}

static uint32_t reason_for_call(const struct event_rows *imported, const struct launch_facts *facts,
	const struct imported_call *call, enum trace_kind kind)
{
	const int64_t end = call->start + (int64_t)call->duration;
	const bool moves_bytes = kind == TRACE_COPY || kind == TRACE_SET;

	if (facts->profiled)
		return TRACE_CALL_PROFILED;
	if (moves_bytes && call->duration <= EMPTY_CALL_NS)
		return TRACE_CALL_EMPTY;
	if (facts->first_launch > facts->last_launch) /* no call has a record */
		return 0;
	if (end <= facts->first_record && call->start < facts->first_launch)
		return TRACE_CALL_BEFORE_GPU;
	if (!imported->truncated && call->start > facts->last_launch && end > facts->last_wait)
		return TRACE_CALL_AFTER_GPU;
	return 0;
}

void convert_find_unrecorded_launches(struct conversion *conversion)
{
	struct event_rows *imported = conversion->imported;
	struct launch_facts facts = { INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, false };
	struct captures captures = { .count = 0 };

	scan_functions(imported, &facts, &captures);
	scan_records(conversion, &facts);
	for (size_t i = 0; i < imported->call_count; i++) {
		struct imported_call *call = &imported->calls[i];
		enum trace_kind kind;
		uint32_t sync;

		if (call->result || convert_owner(conversion, call->correlation))
			continue;
		kind = convert_call_kind(conversion, call->name, &sync);
		if (kind == TRACE_SYNC)
			continue;
		call->flags = is_in_capture(&captures, call->start)
				      ? TRACE_CALL_CAPTURED
				      : reason_for_call(imported, &facts, call, kind);
	}
	free(captures.edges);
}
