/* SPDX-License-Identifier: MIT
 * Links backward functions to their operators. PyTorch numbers the nodes of autograd's graph per
 * thread. The operator that created a node has the node's sequence number, and so has the run of
 * the node. The run also has the logical number of the operator's thread.
 *
 * Flow arrows from operators to backward functions show which thread of the file has a logical
 * number. Without arrows, a number is linked only if a single thread has it.
 *
 * An operator's number is that of the next node when it begins, whether or not the operator creates
 * it. So several operators may have the number of a node, and the operator of a C++
 * autograd::Function has none. Among those that began before the next number was used, the names
 * decide. Where they do not, it is the last operator with the number.
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include "report/import/convert/name_words.h"
#include <stdlib.h>

#define LOGICAL_THREADS_MAX 256u /* logical thread numbers that arrows can map */
/* ranges examined per thread that begin at the same time; more would not be plausible nesting */
#define SAME_START_MAX 256u
#define CREATORS_MAX 128u /* operators whose names are compared per node, of each kind */

static const char engine[] = "autograd::engine::evaluate_function: ";

struct backward_linker {
	struct conversion *conversion;
	uint32_t *forward_ranges; /* operators with a sequence number, by number, then start */
	uint32_t *of_threads;     /* these ranges by number, thread, start */
	/* By index in forward_ranges: the ranges up to this one with the same number are of
	 * several threads. */
	bool *mixed;
	size_t forward_count;
	uint32_t threads[LOGICAL_THREADS_MAX]; /* by logical number: the thread + 1; 0: not known */
};

static bool range_name_begins(
	const struct conversion *conversion, const struct imported_range *range, const char *with)
{
	const struct string_view name = string_table_get(conversion->imported->texts, range->name);

	return name.length >= strlen(with) && !memcmp(name.bytes, with, strlen(with));
}

static bool is_backward(const struct conversion *conversion, const struct imported_range *range)
{
	if (range->kind != TRACE_NODE_OP || range_name_begins(conversion, range, engine))
		return false;
	return (range->forward && range->sequence != IMPORTED_NO_SEQUENCE) ||
	       range_name_begins(conversion, range, "torch::autograd::");
}

static int compare_sequence_numbers(
	const struct imported_range *left, const struct imported_range *right)
{
	if (left->sequence != right->sequence)
		return left->sequence < right->sequence ? -1 : 1;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return COMPARE(right->duration, left->duration);
}

static int compare_threads(const struct imported_range *left, const struct imported_range *right)
{
	if (left->sequence == right->sequence && left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	return compare_sequence_numbers(left, right);
}

/* Orders equal ranges as in the file. */
static int order_by_sequence(const void *a, const void *b, void *ranges)
{
	const struct imported_range *left = (struct imported_range *)ranges + *(const uint32_t *)a,
				    *right = (struct imported_range *)ranges + *(const uint32_t *)b;
	const int order = compare_sequence_numbers(left, right);

	return order ? order : COMPARE(left, right);
}

static int order_by_thread(const void *a, const void *b, void *ranges)
{
	const struct imported_range *left = (struct imported_range *)ranges + *(const uint32_t *)a,
				    *right = (struct imported_range *)ranges + *(const uint32_t *)b;
	const int order = compare_threads(left, right);

	return order ? order : COMPARE(left, right);
}

static int compare_flows(const void *a, const void *b)
{
	const struct imported_flow *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	if (left->finish != right->finish)
		return left->finish - right->finish;
	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return COMPARE(left->thread, right->thread);
}

/* Returns the index in `order` of the thread's first range that starts at `time` or later. */
static size_t first_range_from(const struct conversion *conversion, uint32_t thread, int64_t time)
{
	size_t low = conversion->thread_begin[thread], high = conversion->thread_begin[thread + 1];

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (conversion->imported->ranges[conversion->order[middle]].start < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the backward function of `thread` that starts at `time`. NULL: there is none among the
 * first SAME_START_MAX ranges that start then. */
static const struct imported_range *find_started_range(
	const struct conversion *conversion, uint32_t thread, int64_t time)
{
	const struct imported_range *ranges = conversion->imported->ranges;
	size_t low = first_range_from(conversion, thread, time),
	       end = conversion->thread_begin[thread + 1];

	end = end - low < SAME_START_MAX ? end : low + SAME_START_MAX;
	for (; low < end; low++) {
		const struct imported_range *range = &ranges[conversion->order[low]];

		if (range->start != time)
			break;
		if (range->forward)
			return range;
	}
	return NULL;
}

/* Finds the thread of each logical number from the arrows. */
static void find_logical_threads(struct backward_linker *linker)
{
	struct event_rows *imported = linker->conversion->imported;

	if (imported->flow_count)
		qsort(imported->flows, imported->flow_count, sizeof *imported->flows,
			compare_flows);
	for (size_t i = 1; i < imported->flow_count; i++) {
		const struct imported_flow *from = &imported->flows[i - 1],
					   *to = &imported->flows[i];
		const struct imported_range *range;

		if (from->id != to->id || from->finish || !to->finish)
			continue;
		range = find_started_range(linker->conversion, to->thread, to->time);
		if (range && range->forward < LOGICAL_THREADS_MAX)
			linker->threads[range->forward] = from->thread + 1;
	}
}

static void list_forward_ranges(struct backward_linker *linker)
{
	const struct event_rows *imported = linker->conversion->imported;

	linker->forward_ranges = xcalloc(
		(imported->range_count + 1) * sizeof *linker->forward_ranges);
	for (size_t i = 0; i < imported->range_count; i++) {
		const struct imported_range *range = &imported->ranges[i];

		if (range->kind == TRACE_NODE_OP && !range->forward &&
			range->sequence != IMPORTED_NO_SEQUENCE &&
			!range_name_begins(linker->conversion, range, engine))
			linker->forward_ranges[linker->forward_count++] = (uint32_t)i;
	}
	linker->of_threads = xcalloc((linker->forward_count + 1) * sizeof *linker->forward_ranges);
	linker->mixed = xcalloc(linker->forward_count + 1);
	memcpy(linker->of_threads, linker->forward_ranges,
		linker->forward_count * sizeof *linker->forward_ranges);
	qsort_r(linker->forward_ranges, linker->forward_count, sizeof *linker->forward_ranges,
		order_by_sequence, imported->ranges);
	qsort_r(linker->of_threads, linker->forward_count, sizeof *linker->forward_ranges,
		order_by_thread, imported->ranges);
	for (size_t i = 1; i < linker->forward_count; i++) {
		const struct imported_range
			*producer = &imported->ranges[linker->forward_ranges[i]],
			*before = &imported->ranges[linker->forward_ranges[i - 1]];

		linker->mixed[i] = producer->sequence == before->sequence &&
				   (linker->mixed[i - 1] || producer->thread != before->thread);
	}
}

/* Returns how many of the sorted `forward_ranges` are not after `key`. */
static size_t count_up_to(const struct backward_linker *linker, const uint32_t *forward_ranges,
	const struct imported_range *key,
	int (*compare)(const struct imported_range *, const struct imported_range *))
{
	size_t low = 0, high = linker->forward_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare(&linker->conversion->imported->ranges[forward_ranges[middle]], key) <=
			0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The operator whose name shares most words with the name of a node. */
struct best_creator {
	struct name_words node;
	uint32_t range, shared;
};

/* Replaces the best operator by `range` if that shares more words. */
static void compare_creator(
	const struct backward_linker *linker, struct best_creator *best, uint32_t range)
{
	const struct event_rows *imported = linker->conversion->imported;
	struct name_words words;
	uint32_t shared;

	name_words_split(&words, string_table_get(imported->texts, imported->ranges[range].name));
	shared = name_words_shared(&best->node, &words);
	if (shared <= best->shared)
		return;
	best->range = range;
	best->shared = shared;
}

/* Compares the operators without a number that began on the thread of `last` after it, and before
 * an operator with another number. */
static void compare_unnumbered(
	const struct backward_linker *linker, struct best_creator *best, uint32_t last)
{
	const struct conversion *conversion = linker->conversion;
	const struct imported_range *ranges = conversion->imported->ranges,
				    *numbered = &ranges[last];
	const size_t first = first_range_from(conversion, numbered->thread, numbered->start);
	size_t end = conversion->thread_begin[numbered->thread + 1];

	end = end - first < CREATORS_MAX ? end : first + CREATORS_MAX;
	for (size_t i = first; i < end; i++) {
		const struct imported_range *range = &ranges[conversion->order[i]];

		if (range->sequence == IMPORTED_NO_SEQUENCE && range->kind == TRACE_NODE_OP)
			compare_creator(linker, best, conversion->order[i]);
		else if (range->sequence != IMPORTED_NO_SEQUENCE &&
			 range->sequence != numbered->sequence)
			break;
	}
}

/* Returns the operator that created the node of `backward`. `sorted[last]` is the last operator
 * that has its number. */
static uint32_t choose_creator(const struct backward_linker *linker,
	const struct imported_range *backward, const uint32_t *sorted, size_t last)
{
	const struct event_rows *imported = linker->conversion->imported;
	const struct imported_range *numbered = &imported->ranges[sorted[last]];
	struct best_creator best = { .range = sorted[last] };

	name_words_split(&best.node, string_table_get(imported->texts, backward->name));
	compare_creator(linker, &best, sorted[last]);
	for (size_t i = last; i && last - i < CREATORS_MAX && best.shared < best.node.count; i--) {
		const struct imported_range *range = &imported->ranges[sorted[i - 1]];

		if (range->sequence != numbered->sequence || range->thread != numbered->thread)
			break;
		compare_creator(linker, &best, sorted[i - 1]);
	}
	if (best.shared < best.node.count)
		compare_unnumbered(linker, &best, sorted[last]);
	return best.range;
}

/* Returns the operator that created the node of `backward`, as row + 1. Returns 0 if none is
 * known. */
static uint32_t find_forward_range(
	const struct backward_linker *linker, const struct imported_range *backward)
{
	const bool has_thread = backward->forward < LOGICAL_THREADS_MAX;
	const uint32_t wanted = has_thread ? linker->threads[backward->forward] : 0;
	const uint32_t *forward_ranges = wanted ? linker->of_threads : linker->forward_ranges;
	const struct imported_range *found;
	struct imported_range key = *backward;
	size_t count;

	key.duration = 0; /* sorts after all ranges with the same start */
	key.thread = wanted - 1;
	count = count_up_to(
		linker, forward_ranges, &key, wanted ? compare_threads : compare_sequence_numbers);
	if (!count)
		return 0;
	found = &linker->conversion->imported->ranges[forward_ranges[count - 1]];
	if (found->sequence != backward->sequence ||
		(wanted ? found->thread + 1 != wanted : linker->mixed[count - 1]))
		return 0;
	return choose_creator(linker, backward, forward_ranges, count - 1) + 1;
}

void convert_find_backward_links(struct conversion *conversion)
{
	struct event_rows *imported = conversion->imported;
	struct backward_linker linker = { .conversion = conversion };

	list_forward_ranges(&linker);
	find_logical_threads(&linker);
	for (size_t i = 0; i < imported->range_count; i++) {
		struct imported_range *range = &imported->ranges[i];

		if (!is_backward(conversion, range))
			continue;
		range->kind = TRACE_NODE_BACKWARD;
		if (range->sequence != IMPORTED_NO_SEQUENCE)
			conversion->links[i] = find_forward_range(&linker, range);
	}
	free(linker.forward_ranges);
	free(linker.of_threads);
	free(linker.mixed);
}
