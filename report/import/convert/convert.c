/* SPDX-License-Identifier: MIT
 * Converts the trace as a whole: finds its process and its time range, then calls the other parts
 * in order.
 */
#include "report/import/convert/convert.h"
#include "report/base/alloc.h"
#include "report/import/convert/graph_captures.h"
#include <errno.h>
#include <stdlib.h>

#define YEAR_2100_NS INT64_C(4102444800000000000)

static bool is_thread_zero(const struct event_rows *imported, uint32_t number)
{
	const struct imported_thread *thread = &imported->threads[number];

	return !event_rows_number(imported, thread->pid) &&
	       !event_rows_number(imported, thread->tid);
}

/* Returns true if all Python calls are on thread 0 of process 0. */
static bool frames_have_no_thread(const struct event_rows *imported)
{
	for (size_t i = 0; i < imported->frame_count; i++)
		if (!is_thread_zero(imported, imported->frames[i].thread))
			return false;
	return imported->frame_count > 0;
}

/* Kineto reports Python calls on thread 0 of process 0 if it does not know their thread. Moves
 * modules among them to the thread with most operators. Moves functions too if none has a
 * thread. */
void convert_find_module_threads(struct event_rows *imported)
{
	size_t *operators = xcalloc((imported->thread_count + 1) * sizeof *operators), best = 0;

	for (size_t i = 0; i < imported->range_count; i++)
		if (imported->ranges[i].kind != TRACE_NODE_MODULE)
			operators[imported->ranges[i].thread]++;
	for (size_t i = 0; i < imported->thread_count; i++)
		best = operators[i] > operators[best] ? i : best;
	for (size_t i = 0; i < imported->range_count; i++) {
		struct imported_range *range = &imported->ranges[i];

		if (range->kind == TRACE_NODE_MODULE && !operators[range->thread] &&
			is_thread_zero(imported, range->thread))
			range->thread = (uint32_t)best;
	}
	for (size_t i = frames_have_no_thread(imported) ? 0 : imported->frame_count;
		i < imported->frame_count; i++)
		if (!operators[imported->frames[i].thread])
			imported->frames[i].thread = (uint32_t)best;
	free(operators);
}

/* Returns the pid of the thread with most events. */
static uint32_t main_pid(const struct event_rows *imported)
{
	size_t *events = xcalloc((imported->thread_count + 1) * sizeof *events), best = 0;

	for (size_t i = 0; i < imported->range_count; i++)
		events[imported->ranges[i].thread]++;
	for (size_t i = 0; i < imported->call_count; i++)
		events[imported->calls[i].thread]++;
	for (size_t i = 0; i < imported->thread_count; i++)
		best = events[i] > events[best] ? i : best;
	free(events);
	return imported->thread_count ? imported->threads[best].pid : 0;
}

static void extend_time_range(struct conversion *conversion, int64_t start, uint64_t duration)
{
	const int64_t end = start + (int64_t)duration;

	if (start < conversion->first)
		conversion->first = start;
	if (end > conversion->last)
		conversion->last = end;
}

static void find_time_range(struct conversion *conversion)
{
	const struct event_rows *imported = conversion->imported;

	conversion->first = INT64_MAX;
	conversion->last = INT64_MIN;
	for (size_t i = 0; i < imported->range_count; i++)
		extend_time_range(
			conversion, imported->ranges[i].start, imported->ranges[i].duration);
	for (size_t i = 0; i < imported->call_count; i++)
		extend_time_range(
			conversion, imported->calls[i].start, imported->calls[i].duration);
	for (size_t i = 0; i < imported->gpu_count; i++)
		extend_time_range(conversion, imported->gpus[i].start, imported->gpus[i].duration);
	for (size_t i = 0; i < imported->sync_count; i++)
		extend_time_range(
			conversion, imported->syncs[i].start, imported->syncs[i].duration);
	for (size_t i = 0; i < imported->memory_count; i++)
		extend_time_range(conversion, imported->memories[i].time, 0);
	for (size_t i = 0; i < imported->instant_count; i++)
		extend_time_range(conversion, imported->instants[i].time, 0);
	if (conversion->first > conversion->last)
		conversion->first = conversion->last = 0;
}

/* Returns CLOCK_REALTIME at the first event. Times of the file count from baseTimeNanoseconds,
 * unless they are already times of the present. */
static uint64_t realtime_at_first(const struct conversion *conversion)
{
	const int64_t base = conversion->imported->base_ns, first = conversion->first;

	if (base > 0 && first < YEAR_2100_NS - base && first > -base)
		return (uint64_t)(base + first);
	return first > 0 ? (uint64_t)first : 1;
}

static bool has_events(const struct conversion *conversion, uint32_t thread)
{
	const size_t *const begins[] = { conversion->thread_begin, conversion->call_begin,
		conversion->memory_begin, conversion->instant_begin };

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (begins[i][thread + 1] > begins[i][thread])
			return true;
	return false;
}

/* Threads with links to other threads come last, because a link needs the node of its operator. */
static void write_threads(struct conversion *conversion)
{
	const struct event_rows *imported = conversion->imported;
	uint8_t *late = xcalloc(imported->thread_count + 1);

	for (size_t i = 0; i < imported->range_count; i++)
		late[imported->ranges[i].thread] |=
			conversion->links[i] && imported->ranges[conversion->links[i] - 1].thread !=
							imported->ranges[i].thread;
	for (int round = 0; round < 2; round++)
		for (uint32_t thread = 0; thread < imported->thread_count; thread++)
			if (late[thread] == round && has_events(conversion, thread))
				convert_thread(conversion, thread);
	free(late);
}

static void conversion_free(struct conversion *conversion)
{
	free(conversion->names);
	hash_index_free(&conversion->nodes);
	free(conversion->node_keys);
	free(conversion->order);
	free(conversion->calls);
	free(conversion->memories);
	free(conversion->thread_begin);
	free(conversion->call_begin);
	free(conversion->memory_begin);
	free(conversion->instants);
	free(conversion->instant_begin);
	free(conversion->samples);
	free(conversion->sample_begin);
	free(conversion->python_calls);
	free(conversion->python_call_begin);
	imported_stacks_free(&conversion->stacks);
	free(conversion->range_nodes);
	free(conversion->links);
	free(conversion->owners);
	free(conversion->call_names);
}

bool convert_rows(struct event_rows *imported, int fd)
{
	struct conversion conversion = { .imported = imported };
	const uint32_t pid = imported->pid ? imported->pid : main_pid(imported);
	bool levels_computed, written;
	int error;

	levels_computed = convert_prepare_memory(&conversion);
	convert_find_module_threads(imported);
	find_time_range(&conversion);
	conversion.writer = writer_new(
		fd, realtime_at_first(&conversion), event_rows_number(imported, pid));
	conversion.range_nodes = xcalloc(
		(imported->range_count + 1) * sizeof *conversion.range_nodes);
	conversion.links = xcalloc((imported->range_count + 1) * sizeof *conversion.links);
	convert_sort_rows(&conversion);
	match_calls_without_ids(imported);
	convert_find_owners(&conversion);
	convert_find_unrecorded_launches(&conversion);
	convert_graph_captures(&conversion);
	convert_find_backward_links(&conversion);
	write_threads(&conversion);
	convert_gpu_events(&conversion);
	convert_metadata(&conversion, pid, levels_computed);
	written = writer_close(conversion.writer, (uint64_t)(conversion.last - conversion.first),
		!imported->truncated);
	error = errno;
	conversion_free(&conversion);
	errno = error;
	return written;
}
