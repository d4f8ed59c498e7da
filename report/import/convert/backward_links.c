/* SPDX-License-Identifier: MIT
 * kineto_links.c: which operator a backward function runs for. PyTorch numbers the nodes of autograd's graph thread by
 * thread; the operator that made a node and the node's own run carry the same number, the latter with the logical number
 * of the thread. Which thread of the file that is, the arrows from operators to their backward functions say; without
 * arrows a number leads to its operator where only one thread has it.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

#define LOGICAL_MOST 256u /* threads with a logical number that arrows can name */
#define TOGETHER_MOST 256u /* ranges of a thread that begin at one moment and are looked at: more than that nest nowhere */

static const char engine[] = "autograd::engine::evaluate_function: ";

struct linker {
	struct kineto_build *build;
	uint32_t *makers;     /* operators with a number, by number, then start */
	uint32_t *of_threads; /* the same by number, thread, start */
	bool *mixed;          /* of makers: it, and those of its number before it, are not all of one thread */
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

static int compare_numbers(const struct kineto_range *left, const struct kineto_range *right)
{
	if (left->sequence != right->sequence)
		return left->sequence < right->sequence ? -1 : 1;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return (left->duration < right->duration) - (left->duration > right->duration);
}

static int compare_threads(const struct kineto_range *left, const struct kineto_range *right)
{
	if (left->sequence == right->sequence && left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	return compare_numbers(left, right);
}

/* Of equal ones the first in the file. */
static int by_number(const void *a, const void *b, void *ranges)
{
	const struct kineto_range *left = (struct kineto_range *)ranges + *(const uint32_t *)a, *right = (struct kineto_range *)ranges + *(const uint32_t *)b;
	const int order = compare_numbers(left, right);

	return order ? order : (left > right) - (left < right);
}

static int by_thread(const void *a, const void *b, void *ranges)
{
	const struct kineto_range *left = (struct kineto_range *)ranges + *(const uint32_t *)a, *right = (struct kineto_range *)ranges + *(const uint32_t *)b;
	const int order = compare_threads(left, right);

	return order ? order : (left > right) - (left < right);
}

static int by_flow(const void *a, const void *b)
{
	const struct kineto_flow *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	if (left->finish != right->finish)
		return left->finish - right->finish;
	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return (left->thread > right->thread) - (left->thread < right->thread);
}

/* The backward function of that thread which starts then; NULL: there is none. */
static const struct kineto_range *started(const struct kineto_build *build, uint32_t thread, int64_t time)
{
	size_t low = build->thread_begin[thread], high = build->thread_begin[thread + 1], end = high;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (build->kineto->ranges[build->order[middle]].start < time)
			low = middle + 1;
		else
			high = middle;
	}
	end = end - low < TOGETHER_MOST ? end : low + TOGETHER_MOST;
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
	linker->of_threads = need((linker->maker_count + 1) * sizeof *linker->makers);
	linker->mixed = need(linker->maker_count + 1);
	memcpy(linker->of_threads, linker->makers, linker->maker_count * sizeof *linker->makers);
	qsort_r(linker->makers, linker->maker_count, sizeof *linker->makers, by_number, kineto->ranges);
	qsort_r(linker->of_threads, linker->maker_count, sizeof *linker->makers, by_thread, kineto->ranges);
	for (size_t i = 1; i < linker->maker_count; i++) {
		const struct kineto_range *maker = &kineto->ranges[linker->makers[i]], *before = &kineto->ranges[linker->makers[i - 1]];

		linker->mixed[i] = maker->sequence == before->sequence && (linker->mixed[i - 1] || maker->thread != before->thread);
	}
}

/* How many of `makers`, which are in that order, are not behind `key`. */
static size_t count_up_to(const struct linker *linker, const uint32_t *makers, const struct kineto_range *key,
	int (*compare)(const struct kineto_range *, const struct kineto_range *))
{
	size_t low = 0, high = linker->maker_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare(&linker->build->kineto->ranges[makers[middle]], key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The operator that started last before it, of those that may have made its node; + 1, 0: none is known. */
static uint32_t link_of(const struct linker *linker, const struct kineto_range *backward)
{
	const uint32_t wanted = backward->forward < LOGICAL_MOST ? linker->threads[backward->forward] : 0;
	const uint32_t *makers = wanted ? linker->of_threads : linker->makers;
	const struct kineto_range *found;
	struct kineto_range key = *backward;
	size_t count;

	key.duration = 0; /* behind all that start then */
	key.thread = wanted - 1;
	count = count_up_to(linker, makers, &key, wanted ? compare_threads : compare_numbers);
	if (!count)
		return 0;
	found = &linker->build->kineto->ranges[makers[count - 1]];
	if (found->sequence != backward->sequence || (wanted ? found->thread + 1 != wanted : linker->mixed[count - 1]))
		return 0;
	return makers[count - 1] + 1;
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
	free(linker.of_threads);
	free(linker.mixed);
}
