/* SPDX-License-Identifier: MIT
 * kineto_order.c: rows by their thread and time.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

int kineto_by_time(const void *a, const void *b, void *context)
{
	const struct kineto_memory *memories = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (memories[left].time != memories[right].time)
		return memories[left].time < memories[right].time ? -1 : 1;
	return left < right ? -1 : 1;
}

static int by_range(const void *a, const void *b, void *context)
{
	const struct kineto_range *ranges = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (ranges[left].start != ranges[right].start)
		return ranges[left].start < ranges[right].start ? -1 : 1;
	if (ranges[left].duration != ranges[right].duration)
		return ranges[left].duration > ranges[right].duration ? -1 : 1;
	return left < right ? -1 : 1;
}

static int by_call(const void *a, const void *b, void *context)
{
	const struct kineto_call *calls = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (calls[left].start != calls[right].start)
		return calls[left].start < calls[right].start ? -1 : 1;
	return left < right ? -1 : 1;
}

static int by_frame(const void *a, const void *b, void *context)
{
	const struct kineto_frame *frames = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (frames[left].start != frames[right].start)
		return frames[left].start < frames[right].start ? -1 : 1;
	if (frames[left].duration != frames[right].duration)
		return frames[left].duration > frames[right].duration ? -1 : 1;
	return left < right ? -1 : 1;
}

static int by_moment(const void *a, const void *b, void *context)
{
	const struct kineto_moment *moments = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (moments[left].time != moments[right].time)
		return moments[left].time < moments[right].time ? -1 : 1;
	return left < right ? -1 : 1;
}

void kineto_order(uint32_t *rows, size_t count, int (*compare)(const void *, const void *, void *), void *context)
{
	size_t i = 1;

	while (i < count && compare(&rows[i - 1], &rows[i], context) < 0)
		i++;
	if (i < count)
		qsort_r(rows, count, sizeof *rows, compare, context);
}

/* Rows by their thread, each thread's in order. `thread_at`: where a row has its thread. */
static uint32_t *by_thread(const struct kineto *kineto, const void *rows, size_t count, size_t bytes, size_t thread_at,
	size_t *begins, int (*compare)(const void *, const void *, void *), void *context)
{
	uint32_t *order = need((count + 1) * sizeof *order);
	size_t *next = need((kineto->thread_count + 1) * sizeof *next);
	uint32_t thread;

	for (size_t i = 0; i < count; i++) {
		memcpy(&thread, (const char *)rows + i * bytes + thread_at, sizeof thread);
		begins[thread + 1]++;
	}
	for (size_t i = 0; i < kineto->thread_count; i++) {
		begins[i + 1] += begins[i];
		next[i] = begins[i];
	}
	for (size_t i = 0; i < count; i++) {
		memcpy(&thread, (const char *)rows + i * bytes + thread_at, sizeof thread);
		order[next[thread]++] = (uint32_t)i;
	}
	for (size_t i = 0; i < kineto->thread_count; i++)
		kineto_order(order + begins[i], begins[i + 1] - begins[i], compare, context);
	free(next);
	return order;
}

void kineto_sort_rows(struct kineto_build *build)
{
	struct kineto *kineto = build->kineto;
	const size_t threads = kineto->thread_count + 1;

	build->thread_begin = need(threads * sizeof *build->thread_begin);
	build->call_begin = need(threads * sizeof *build->call_begin);
	build->memory_begin = need(threads * sizeof *build->memory_begin);
	build->moment_begin = need(threads * sizeof *build->moment_begin);
	build->frame_begin = need(threads * sizeof *build->frame_begin);
	build->order = by_thread(kineto, kineto->ranges, kineto->range_count, sizeof *kineto->ranges,
		offsetof(struct kineto_range, thread), build->thread_begin, by_range, kineto->ranges);
	build->calls = by_thread(kineto, kineto->calls, kineto->call_count, sizeof *kineto->calls,
		offsetof(struct kineto_call, thread), build->call_begin, by_call, kineto->calls);
	build->memories = by_thread(kineto, kineto->memories, kineto->memory_count, sizeof *kineto->memories,
		offsetof(struct kineto_memory, thread), build->memory_begin, kineto_by_time, kineto->memories);
	build->moments = by_thread(kineto, kineto->moments, kineto->moment_count, sizeof *kineto->moments,
		offsetof(struct kineto_moment, thread), build->moment_begin, by_moment, kineto->moments);
	build->frames = by_thread(kineto, kineto->frames, kineto->frame_count, sizeof *kineto->frames,
		offsetof(struct kineto_frame, thread), build->frame_begin, by_frame, kineto->frames);
}
