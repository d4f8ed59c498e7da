/* SPDX-License-Identifier: MIT */
#include "report/analysis/memory_leaks.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>
#include <string.h>

static const char leaks_key; /* of process_attach() */

uint8_t *operators_with_backward(struct trace_reader *reader)
{
	const uint32_t count = reader_node_count(reader);
	uint8_t *has_backward = xcalloc((size_t)count + 1);

	for (uint32_t id = 1; id < count; id++) {
		const struct trace_node_info *node = reader_node(reader, id);

		if (node->kind == TRACE_NODE_BACKWARD && node->link < count)
			has_backward[node->link] = 1;
	}
	has_backward[0] = 0;
	return has_backward;
}

bool is_kept_by_graph(struct trace_reader *reader, const uint8_t *has_backward, uint32_t node)
{
	while (node && reader_node(reader, node)->kind == TRACE_NODE_OP) {
		if (has_backward[node])
			return true;
		node = reader_node(reader, node)->parent;
	}
	return false;
}

static bool is_one_scalar(const struct memory_growth *growth)
{
	return growth->late_blocks == growth->left && growth->rate <= SCALAR_BYTES_MAX;
}

static enum leak_cause cause_of_path(
	struct trace_reader *reader, const uint8_t *has_backward, const struct memory_path *path)
{
	if (path->kind == TRACE_MEMORY_PINNED)
		return LEAK_PINNED;
	if (path->kind == TRACE_MEMORY_MANAGED)
		return LEAK_MANAGED;
	if (path->kind != MEMORY_TENSOR)
		return LEAK_CUDA;
	if (!is_kept_by_graph(reader, has_backward, path->trace_node))
		return LEAK_UNKNOWN;
	return is_one_scalar(&path->growth) ? LEAK_SCALAR : LEAK_GRAPH;
}

/* Returns the path of one scalar a step whose operator has no backward function in the trace: the
 * backward pass of a loss that is only kept never ran. NULL: there is none. */
static struct leak_path *find_scalar(struct memory_leak *leak)
{
	for (size_t i = 0; i < leak->path_count; i++)
		if (leak->paths[i].cause == LEAK_UNKNOWN &&
			is_one_scalar(&leak->paths[i].path->growth))
			return &leak->paths[i];
	return NULL;
}

/* Sets the cause of the whole growth: that of the outputs if they are at least half of it, and the
 * scalar that keeps them if there is one, else that of the fastest path. */
static void set_cause(struct memory_leak *leak)
{
	double of_graph = 0;

	for (size_t i = 0; i < leak->path_count; i++) {
		const struct leak_path *path = &leak->paths[i];

		if (path->cause == LEAK_GRAPH)
			of_graph += path->path->growth.rate;
		else if (path->cause == LEAK_SCALAR && !leak->scalar)
			leak->scalar = path->path;
	}
	leak->cause = leak->path_count ? leak->paths[0].cause : LEAK_UNKNOWN;
	if (of_graph > 0 && !leak->scalar) {
		struct leak_path *scalar = find_scalar(leak);

		leak->scalar = scalar ? scalar->path : NULL;
		if (scalar && 2 * of_graph >= leak->held->growth.rate)
			scalar->cause = LEAK_SCALAR;
	}
	if (2 * of_graph >= leak->held->growth.rate)
		leak->cause = leak->scalar ? LEAK_SCALAR : LEAK_GRAPH;
	else if (leak->cause == LEAK_GRAPH || leak->cause == LEAK_SCALAR)
		leak->cause = LEAK_UNKNOWN;
	if (leak->cause != LEAK_SCALAR)
		leak->scalar = NULL;
}

static int by_rate(const void *a, const void *b)
{
	const struct leak_path *left = a, *right = b;
	const int order = COMPARE(right->path->growth.rate, left->path->growth.rate);

	return order ? order : COMPARE(left->path, right->path);
}

static void list_paths(struct process *process, const struct memory_lifetimes *lifetimes,
	const uint8_t *has_backward, struct memory_leak *leak)
{
	size_t room = 0;

	for (size_t i = 0; i < lifetimes->path_count; i++) {
		const struct memory_path *path = &lifetimes->paths[i];

		if (path->kind != leak->held->kind || path->device != leak->held->device ||
			!path->growth.grows)
			continue;
		*ARRAY_ADD(leak->paths, room, leak->path_count) = (struct leak_path){ path,
			cause_of_path(process->reader, has_backward, path) };
		leak->left_bytes += path->growth.left_bytes;
	}
	if (leak->path_count)
		qsort(leak->paths, leak->path_count, sizeof *leak->paths, by_rate);
}

static uint64_t highest_level(const struct process *process, const struct memory_held *held)
{
	const struct memory_owners *memory = process->profile->memory;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == held->kind &&
			memory->levels[i].device == held->device)
			return memory->levels[i].flow.held_max;
	return 0;
}

/* Returns whether the growth is worth a finding. */
static bool is_large(const struct process *process, const struct memory_leak *leak)
{
	const struct memory_growth *growth = &leak->held->growth;
	const double least = leak->capacity_bytes
				     ? LEAK_SHARE * (double)leak->capacity_bytes
				     : LEAK_SHARE_OF_PEAK *
					       (double)highest_level(process, leak->held);

	return growth->rate >= LEAK_BYTES_PER_STEP || (double)leak->left_bytes >= least;
}

static struct memory_leak make_leak(struct process *process,
	const struct memory_lifetimes *lifetimes, const uint8_t *has_backward,
	const struct memory_held *held)
{
	struct memory_leak leak = { .held = held };
	const struct trace_device *device = process_device(process, held->device);

	if (device && (held->kind == MEMORY_TENSOR || memory_is_device(held->kind)))
		leak.capacity_bytes = device->memory_bytes;
	list_paths(process, lifetimes, has_backward, &leak);
	if (!leak.path_count) /* many paths, each of them sometimes */
		leak.left_bytes = (uint64_t)(held->growth.rate * (double)held->growth.late);
	set_cause(&leak);
	leak.is_leak = memory_growth_is_certain(&held->growth) && is_large(process, &leak);
	return leak;
}

static int by_leak(const void *a, const void *b)
{
	const struct memory_leak *left = a, *right = b;
	const int order = COMPARE(right->held->growth.rate, left->held->growth.rate);

	if (left->is_leak != right->is_leak)
		return left->is_leak ? -1 : 1;
	return order ? order : COMPARE(left->held, right->held);
}

const char *memory_leaks_unchecked(const struct process *process)
{
	struct late_steps late;

	if (!process->steps || !process->steps->count)
		return "no steps were found in the trace (see --step-marker)";
	if (process->windows && process->windows->count > 1)
		return "only parts of the run were recorded (PPERF_SCHEDULE)";
	late = late_steps_of(process->steps->count);
	/* seven steps of seven are the fewest with a p-value below 0.01 */
	if (late.to - late.from < 7)
		return "too few steps to detect a trend: 11 are needed";
	return NULL;
}

static struct memory_leaks *make_leaks(struct process *process)
{
	const struct memory_lifetimes *lifetimes = memory_lifetimes_of(process);
	struct memory_leaks *leaks = xcalloc(sizeof *leaks);
	uint8_t *has_backward = operators_with_backward(process->reader);
	const bool unchecked = memory_leaks_unchecked(process) != NULL;
	size_t room = 0;

	for (size_t i = 0; i < lifetimes->held_count; i++) {
		const struct memory_held *held = &lifetimes->held[i];
		struct memory_leak leak = make_leak(process, lifetimes, has_backward, held);

		leak.is_leak &= !unchecked;
		if (held->growth.grows || leak.path_count)
			*ARRAY_ADD(leaks->leaks, room, leaks->count) = leak;
		else
			free(leak.paths);
	}
	free(has_backward);
	if (leaks->count)
		qsort(leaks->leaks, leaks->count, sizeof *leaks->leaks, by_leak);
	return leaks;
}

static void release_leaks(void *data)
{
	struct memory_leaks *leaks = data;

	for (size_t i = 0; i < leaks->count; i++)
		free(leaks->leaks[i].paths);
	free(leaks->leaks);
	free(leaks);
}

const struct memory_leaks *memory_leaks_of(struct process *process)
{
	if (!process_attached(process, &leaks_key))
		process_attach(process, &leaks_key, make_leaks(process), release_leaks);
	return process_attached(process, &leaks_key);
}

bool memory_leaks_possible(const struct process *process)
{
	const struct memory_owners *memory = process->profile->memory;
	struct late_steps late;

	if (memory_leaks_unchecked(process))
		return false;
	late = late_steps_of(process->steps->count);
	for (uint32_t i = 0; i < memory->level_count; i++) {
		const struct memory_sums *end = &memory->levels[i].at_end;

		if ((double)(end->allocs - end->frees) >=
			GROWTH_STEPS_SHARE * (double)(late.to - late.from))
			return true;
	}
	return false;
}

const struct memory_leak *memory_leaks_worst(struct process *process)
{
	const struct memory_leaks *leaks = memory_leaks_possible(process) ? memory_leaks_of(process)
									  : NULL;

	return leaks && leaks->count && leaks->leaks->is_leak ? leaks->leaks : NULL;
}

uint64_t memory_leak_steps_left(const struct process *process, const struct memory_leak *leak)
{
	const struct memory_owners *memory = process->profile->memory;
	const double rate = leak->held->growth.rate;
	uint64_t held = 0;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].device == leak->held->device &&
			memory_is_device(memory->levels[i].kind))
			held += memory->levels[i].flow.held_max;
	if (leak->capacity_bytes <= held || rate < 1)
		return 0;
	return (uint64_t)((double)(leak->capacity_bytes - held) / rate);
}
