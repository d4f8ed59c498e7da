/* SPDX-License-Identifier: MIT
 * kineto_links.c: which operator a backward function runs for. PyTorch numbers the nodes of autograd's graph thread by
 * thread; the operator that made a node and the node's own run carry the same number, the latter with the logical number
 * of the thread. Which thread of the file that is, the arrows from operators to their backward functions say; without
 * arrows a number leads to its operator where only one thread has it.
 */
#include "report/fatal.h"
#include "report/kineto_trace.h"
#include <stdlib.h>

#define LOGICAL_MOST 256u /* threads with a logical number that arrows can name */

static const char engine[] = "autograd::engine::evaluate_function: ";

struct linker {
	struct kineto_build *build;
	uint32_t *makers;     /* operators with a number, by number, then start */
	size_t maker_count;
	uint32_t threads[LOGICAL_MOST]; /* by logical number: the thread + 1 */
};

static bool begins(const struct kineto_build *build, const struct kineto_range *range, const char *with)
{
	const struct text name = text_of(build->kineto->texts, range->name);

	return name.length >= strlen(with) && !memcmp(name.bytes, with, strlen(with));
}

static bool is_backward(const struct kineto_build *build, const struct kineto_range *range)
{
	if (range->kind != TRACE_NODE_OP || begins(build, range, engine))
		return false;
	return (range->forward && range->sequence != KINETO_NO_SEQUENCE) || begins(build, range, "torch::autograd::");
}

static int by_number(const void *a, const void *b, void *context)
{
	const struct kineto_range *ranges = context, *left = &ranges[*(const uint32_t *)a],
				  *right = &ranges[*(const uint32_t *)b];

	if (left->sequence != right->sequence)
		return left->sequence < right->sequence ? -1 : 1;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return (left->duration < right->duration) - (left->duration > right->duration);
}

static int by_flow(const void *a, const void *b)
{
	const struct kineto_flow *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	return left->finish - right->finish;
}

/* The backward function of that thread which starts then; NULL: there is none. */
static const struct kineto_range *started(const struct kineto_build *build, uint32_t thread, int64_t time)
{
	size_t low = build->thread_begin[thread], high = build->thread_begin[thread + 1];
	const size_t end = high;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (build->kineto->ranges[build->order[middle]].start < time)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < end; low++) {
		const struct kineto_range *range = &build->kineto->ranges[build->order[low]];

		if (range->start != time)
			break;
		if (range->forward)
			return range;
	}
	return NULL;
}

/* Arrows tell which thread a logical number stands for. */
static void learn_threads(struct linker *linker)
{
	struct kineto *kineto = linker->build->kineto;

	if (kineto->flow_count)
		qsort(kineto->flows, kineto->flow_count, sizeof *kineto->flows, by_flow);
	for (size_t i = 1; i < kineto->flow_count; i++) {
		const struct kineto_flow *from = &kineto->flows[i - 1], *to = &kineto->flows[i];
		const struct kineto_range *range;

		if (from->id != to->id || from->finish || !to->finish)
			continue;
		range = started(linker->build, to->thread, to->time);
		if (range && range->forward < LOGICAL_MOST)
			linker->threads[range->forward] = from->thread + 1;
	}
}

static void list_makers(struct linker *linker)
{
	const struct kineto *kineto = linker->build->kineto;

	linker->makers = need((kineto->range_count + 1) * sizeof *linker->makers);
	for (size_t i = 0; i < kineto->range_count; i++) {
		const struct kineto_range *range = &kineto->ranges[i];

		if (range->kind == TRACE_NODE_OP && !range->forward && range->sequence != KINETO_NO_SEQUENCE &&
			!begins(linker->build, range, engine))
			linker->makers[linker->maker_count++] = (uint32_t)i;
	}
	qsort_r(linker->makers, linker->maker_count, sizeof *linker->makers, by_number, kineto->ranges);
}

/* The first maker with that number or a greater one. */
static size_t first_maker(const struct linker *linker, int64_t sequence)
{
	size_t low = 0, high = linker->maker_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (linker->build->kineto->ranges[linker->makers[middle]].sequence < sequence)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The operator that started last before it, of those that may have made its node; + 1, 0: none is known. */
static uint32_t link_of(const struct linker *linker, const struct kineto_range *backward)
{
	const struct kineto_range *ranges = linker->build->kineto->ranges;
	const uint32_t wanted = backward->forward < LOGICAL_MOST ? linker->threads[backward->forward] : 0;
	uint32_t found = 0;

	for (size_t i = first_maker(linker, backward->sequence); i < linker->maker_count; i++) {
		const struct kineto_range *maker = &ranges[linker->makers[i]];

		if (maker->sequence != backward->sequence || maker->start > backward->start)
			break;
		if (wanted && maker->thread + 1 != wanted)
			continue;
		if (found && ranges[found - 1].thread != maker->thread)
			return 0;
		found = linker->makers[i] + 1;
	}
	return found;
}

void kineto_links_find(struct kineto_build *build)
{
	struct kineto *kineto = build->kineto;
	struct linker linker = { .build = build };

	list_makers(&linker);
	learn_threads(&linker);
	for (size_t i = 0; i < kineto->range_count; i++) {
		struct kineto_range *range = &kineto->ranges[i];

		if (!is_backward(build, range))
			continue;
		range->kind = TRACE_NODE_BACKWARD;
		if (range->sequence != KINETO_NO_SEQUENCE)
			build->links[i] = link_of(&linker, range);
	}
	free(linker.makers);
}
