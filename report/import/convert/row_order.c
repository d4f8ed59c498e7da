/* SPDX-License-Identifier: MIT
 * Sorts rows by thread and time.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

/* Rows that start at the same time: the longer first, because it may contain the other. */
#define COMPARE_ROWS_BY_LENGTH(name, type)                                                \
	static int name(const void *a, const void *b, void *context)                      \
	{                                                                                 \
		const type *rows = context;                                               \
		const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b; \
                                                                                          \
		if (rows[left].start != rows[right].start)                                \
			return COMPARE(rows[left].start, rows[right].start);              \
		if (rows[left].duration != rows[right].duration)                          \
			return COMPARE(rows[right].duration, rows[left].duration);        \
		return COMPARE(left, right);                                              \
	}

COMPARE_ROWS_BY_LENGTH(compare_ranges, struct imported_range)
COMPARE_ROWS_BY_LENGTH(compare_frames, struct imported_frame)
COMPARE_ROWS_BY(compare_calls, struct imported_call, start)
COMPARE_ROWS_BY(compare_instants, struct imported_instant, time)
COMPARE_ROWS_BY(compare_memories, struct imported_memory, time)
COMPARE_ROWS_BY(compare_samples, struct imported_sample, time)

void sort_row_numbers(uint32_t *rows, size_t count,
	int (*compare)(const void *, const void *, void *), void *context)
{
	size_t i = 1;

	while (i < count && compare(&rows[i - 1], &rows[i], context) < 0)
		i++;
	if (i < count)
		qsort_r(rows, count, sizeof *rows, compare, context);
}

static uint32_t number_at(const void *rows, size_t offset)
{
	uint32_t number;

	memcpy(&number, (const char *)rows + offset, sizeof number);
	return number;
}

/* Returns the numbers of rows, grouped by thread and sorted within each thread. Fills `begins`.
 * `thread_at`: offset of the thread in a row. */
static uint32_t *sort_by_thread(const struct event_rows *imported, const void *rows, size_t count,
	size_t bytes, size_t thread_at, size_t *begins,
	int (*compare)(const void *, const void *, void *), void *context)
{
	uint32_t *order = xcalloc((count + 1) * sizeof *order);
	size_t *next = xcalloc((imported->thread_count + 1) * sizeof *next);

	for (size_t i = 0; i < count; i++)
		begins[number_at(rows, i * bytes + thread_at) + 1]++;
	for (size_t i = 0; i < imported->thread_count; i++) {
		begins[i + 1] += begins[i];
		next[i] = begins[i];
	}
	for (size_t i = 0; i < count; i++)
		order[next[number_at(rows, i * bytes + thread_at)]++] = (uint32_t)i;
	for (size_t i = 0; i < imported->thread_count; i++)
		sort_row_numbers(order + begins[i], begins[i + 1] - begins[i], compare, context);
	free(next);
	return order;
}

void convert_sort_rows(struct conversion *conversion)
{
	struct event_rows *imported = conversion->imported;
	const size_t threads = imported->thread_count + 1;

	conversion->thread_begin = xcalloc(threads * sizeof *conversion->thread_begin);
	conversion->call_begin = xcalloc(threads * sizeof *conversion->call_begin);
	conversion->memory_begin = xcalloc(threads * sizeof *conversion->memory_begin);
	conversion->instant_begin = xcalloc(threads * sizeof *conversion->instant_begin);
	conversion->sample_begin = xcalloc(threads * sizeof *conversion->sample_begin);
	conversion->python_call_begin = xcalloc(threads * sizeof *conversion->python_call_begin);
	conversion->order = sort_by_thread(imported, imported->ranges, imported->range_count,
		sizeof *imported->ranges, offsetof(struct imported_range, thread),
		conversion->thread_begin, compare_ranges, imported->ranges);
	conversion->calls = sort_by_thread(imported, imported->calls, imported->call_count,
		sizeof *imported->calls, offsetof(struct imported_call, thread),
		conversion->call_begin, compare_calls, imported->calls);
	conversion->memories = sort_by_thread(imported, imported->memories, imported->memory_count,
		sizeof *imported->memories, offsetof(struct imported_memory, thread),
		conversion->memory_begin, compare_memories, imported->memories);
	conversion->instants = sort_by_thread(imported, imported->instants, imported->instant_count,
		sizeof *imported->instants, offsetof(struct imported_instant, thread),
		conversion->instant_begin, compare_instants, imported->instants);
	conversion->samples = sort_by_thread(imported, imported->samples, imported->sample_count,
		sizeof *imported->samples, offsetof(struct imported_sample, thread),
		conversion->sample_begin, compare_samples, imported->samples);
	conversion->python_calls = sort_by_thread(imported, imported->frames, imported->frame_count,
		sizeof *imported->frames, offsetof(struct imported_frame, thread),
		conversion->python_call_begin, compare_frames, imported->frames);
}
