/* SPDX-License-Identifier: MIT
 * kineto_trace.c: the trace as a whole: whose it is, from when to when, and its parts in their order.
 */
#include "report/import/convert/convert.h"
#include "report/base/alloc.h"
#include <errno.h>
#include <stdlib.h>

#define YEAR_2100_NS INT64_C(4102444800000000000)

/* Whether all of Python's calls are of thread 0 of process 0. */
static bool frames_have_no_thread(const struct kineto *kineto)
{
	for (size_t i = 0; i < kineto->frame_count; i++) {
		const struct kineto_thread *thread = &kineto->threads[kineto->frames[i].thread];

		if (kineto_number(kineto, thread->pid) || kineto_number(kineto, thread->tid))
			return false;
	}
	return kineto->frame_count > 0;
}

/* Python's calls have come as thread 0 of process 0 where their own was not known. Modules among them are of the thread
 * with most operators, and so are functions, if none has a thread. */
static void find_modules_thread(struct kineto *kineto)
{
	size_t *operators = need((kineto->thread_count + 1) * sizeof *operators), best = 0;

	for (size_t i = 0; i < kineto->range_count; i++)
		operators[kineto->ranges[i].thread] += kineto->ranges[i].kind != TRACE_NODE_MODULE;
	for (size_t i = 0; i < kineto->thread_count; i++)
		best = operators[i] > operators[best] ? i : best;
	for (size_t i = 0; i < kineto->range_count; i++) {
		struct kineto_range *range = &kineto->ranges[i];
		const struct kineto_thread *thread = &kineto->threads[range->thread];

		if (range->kind == TRACE_NODE_MODULE && !operators[range->thread] &&
			!kineto_number(kineto, thread->pid) && !kineto_number(kineto, thread->tid))
			range->thread = (uint32_t)best;
	}
	for (size_t i = frames_have_no_thread(kineto) ? 0 : kineto->frame_count; i < kineto->frame_count; i++)
		if (!operators[kineto->frames[i].thread])
			kineto->frames[i].thread = (uint32_t)best;
	free(operators);
}

/* The process is that of most threads' events. */
static uint32_t main_pid(const struct kineto *kineto)
{
	size_t *events = need((kineto->thread_count + 1) * sizeof *events), best = 0;

	for (size_t i = 0; i < kineto->range_count; i++)
		events[kineto->ranges[i].thread]++;
	for (size_t i = 0; i < kineto->call_count; i++)
		events[kineto->calls[i].thread]++;
	for (size_t i = 0; i < kineto->thread_count; i++)
		best = events[i] > events[best] ? i : best;
	free(events);
	return kineto->thread_count ? kineto->threads[best].pid : 0;
}

static void reach_time(struct kineto_build *build, int64_t start, uint64_t duration)
{
	const int64_t end = start + (int64_t)duration;

	if (start < build->first)
		build->first = start;
	if (end > build->last)
		build->last = end;
}

static void find_edges(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	build->first = INT64_MAX;
	build->last = INT64_MIN;
	for (size_t i = 0; i < kineto->range_count; i++)
		reach_time(build, kineto->ranges[i].start, kineto->ranges[i].duration);
	for (size_t i = 0; i < kineto->call_count; i++)
		reach_time(build, kineto->calls[i].start, kineto->calls[i].duration);
	for (size_t i = 0; i < kineto->gpu_count; i++)
		reach_time(build, kineto->gpus[i].start, kineto->gpus[i].duration);
	for (size_t i = 0; i < kineto->sync_count; i++)
		reach_time(build, kineto->syncs[i].start, kineto->syncs[i].duration);
	for (size_t i = 0; i < kineto->memory_count; i++)
		reach_time(build, kineto->memories[i].time, 0);
	for (size_t i = 0; i < kineto->moment_count; i++)
		reach_time(build, kineto->moments[i].time, 0);
	if (build->first > build->last)
		build->first = build->last = 0;
}

/* CLOCK_REALTIME at the first event. Times of the file count from baseTimeNanoseconds, unless they are of our day by
 * themselves. */
static uint64_t realtime_at_first(const struct kineto_build *build)
{
	const int64_t base = build->kineto->base_ns, first = build->first;

	if (base > 0 && first < YEAR_2100_NS - base && first > -base)
		return (uint64_t)(base + first);
	return first > 0 ? (uint64_t)first : 1;
}

/* Threads on which nothing runs backward come first: what runs backward links to what ran there. */
static void put_threads(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;
	uint8_t *late = need(kineto->thread_count + 1);

	for (size_t i = 0; i < kineto->range_count; i++)
		late[kineto->ranges[i].thread] |= build->links[i] && kineto->ranges[build->links[i] - 1].thread !=
									     kineto->ranges[i].thread;
	for (int round = 0; round < 2; round++)
		for (uint32_t thread = 0; thread < kineto->thread_count; thread++)
			if (late[thread] == round &&
				(build->thread_begin[thread + 1] > build->thread_begin[thread] ||
					build->call_begin[thread + 1] > build->call_begin[thread] ||
					build->memory_begin[thread + 1] > build->memory_begin[thread] ||
					build->moment_begin[thread + 1] > build->moment_begin[thread]))
				kineto_thread_write(build, thread);
	free(late);
}

static void build_free(struct kineto_build *build)
{
	free(build->names);
	free(build->nodes);
	free(build->order);
	free(build->calls);
	free(build->memories);
	free(build->thread_begin);
	free(build->call_begin);
	free(build->memory_begin);
	free(build->moments);
	free(build->moment_begin);
	free(build->frames);
	free(build->frame_begin);
	python_stacks_free(&build->stacks);
	free(build->placed);
	free(build->links);
	free(build->owners);
	free(build->call_names);
}

bool kineto_write(struct kineto *kineto, int fd)
{
	struct kineto_build build = { .kineto = kineto };
	const uint32_t pid = kineto->pid ? kineto->pid : main_pid(kineto);
	bool added, written;
	int error;

	added = kineto_memory_prepare(&build);
	find_modules_thread(kineto);
	find_edges(&build);
	build.writer = writer_new(fd, realtime_at_first(&build), kineto_number(kineto, pid));
	build.placed = need((kineto->range_count + 1) * sizeof *build.placed);
	build.links = need((kineto->range_count + 1) * sizeof *build.links);
	kineto_sort_rows(&build);
	kineto_enclose(kineto);
	kineto_calls_own(&build);
	kineto_links_find(&build);
	put_threads(&build);
	kineto_gpu_write(&build);
	kineto_facts_write(&build, pid, added);
	written = writer_close(build.writer, (uint64_t)(build.last - build.first), !kineto->cut);
	error = errno;
	build_free(&build);
	errno = error;
	return written;
}
