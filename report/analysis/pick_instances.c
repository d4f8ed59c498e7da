/* SPDX-License-Identifier: MIT */
#include "report/analysis/pick_instances.h"
#include "report/base/alloc.h"
#include <stdlib.h>

struct choice {
	struct chosen *chosen;
	uint32_t *seats; /* by node: the place's index + 1; 0: not asked for */
	uint8_t *asked;  /* by node: it is */
	uint32_t seat_count;
	size_t count, most;
	enum instances_of which;
};

static struct chosen *chosen_of(const struct choice *choice, uint32_t node)
{
	const uint32_t seat = node < choice->seat_count ? choice->seats[node] : 0;

	return seat ? &choice->chosen[seat - 1] : NULL;
}

static int compare(const struct chosen_instance *a, const struct chosen_instance *b)
{
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns > b->begin_ns ? -1 : 1;
	return (a->stream > b->stream) - (a->stream < b->stream);
}

static int by_value(const void *a, const void *b)
{
	return compare(a, b);
}

static struct chosen_instance one(const struct fold_seen_instance *seen)
{
	return (struct chosen_instance){ .node = seen->node,
		.stream = seen->stream,
		.place = seen->place,
		.begin_ns = seen->begin_ns,
		.end_ns = seen->end_ns,
		.value = seen->value };
}

/* In a heap, the least bad on top: it goes when there is no more room. */
static void keep_worst(struct chosen *chosen, size_t most, const struct chosen_instance *instance)
{
	size_t i, child;

	if (chosen->count < most) {
		grow(&chosen->list, &chosen->room, chosen->count + 1, sizeof *chosen->list);
		for (i = chosen->count++; i > 0 && compare(instance, &chosen->list[(i - 1) / 2]) > 0; i = (i - 1) / 2)
			chosen->list[i] = chosen->list[(i - 1) / 2];
		chosen->list[i] = *instance;
		return;
	}
	if (compare(instance, &chosen->list[0]) >= 0)
		return;
	for (i = 0; (child = 2 * i + 1) < chosen->count; i = child) {
		child += child + 1 < chosen->count && compare(&chosen->list[child + 1], &chosen->list[child]) > 0;
		if (compare(&chosen->list[child], instance) <= 0)
			break;
		chosen->list[i] = chosen->list[child];
	}
	chosen->list[i] = *instance;
}

/* Of the chosen, how many began before then. */
static size_t begun_before(const struct chosen *chosen, uint64_t ns)
{
	size_t low = 0, high = chosen->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (chosen->begins[middle] < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void count_earlier(void *context, const struct fold_seen_instance *seen)
{
	struct chosen *chosen = chosen_of(context, seen->node);

	if (chosen)
		chosen->earlier[begun_before(chosen, seen->begin_ns + 1)]++;
}

/* The first, or the last. */
static void closed(void *context, const struct fold_seen_instance *seen)
{
	const struct choice *choice = context;
	struct chosen *chosen = chosen_of(choice, seen->node);

	if (!chosen)
		return;
	if (chosen->count && (choice->which == INSTANCES_FIRST ? seen->begin_ns >= chosen->list->begin_ns
							       : seen->begin_ns < chosen->list->begin_ns))
		return;
	grow(&chosen->list, &chosen->room, 1, sizeof *chosen->list);
	chosen->list[0] = one(seen);
	chosen->count = 1;
}

static void ended(void *context, const struct fold_seen_instance *seen)
{
	const struct choice *choice = context;
	struct chosen *chosen = chosen_of(choice, seen->node);
	const struct chosen_instance instance = one(seen);

	if (!chosen)
		return;
	chosen->instances++;
	if (choice->which == INSTANCES_WORST || choice->which == INSTANCES_ALL)
		keep_worst(chosen, choice->most, &instance);
	else if (chosen->count && chosen->list->begin_ns == seen->begin_ns && chosen->list->stream == seen->stream)
		chosen->list->value = seen->value;
}

static void begins(void *context)
{
	struct choice *choice = context;

	for (size_t i = 0; i < choice->count; i++)
		choice->chosen[i].count = choice->chosen[i].instances = 0;
}

static int by_begin(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void prepare(struct chosen *chosen)
{
	if (chosen->count)
		qsort(chosen->list, chosen->count, sizeof *chosen->list, by_value);
	chosen->begins = need((chosen->count + 1) * sizeof *chosen->begins);
	chosen->earlier = need((chosen->count + 1) * sizeof *chosen->earlier);
	for (size_t i = 0; i < chosen->count; i++)
		chosen->begins[i] = chosen->list[i].begin_ns;
	qsort(chosen->begins, chosen->count, sizeof *chosen->begins, by_begin);
}

static void give_numbers(struct chosen *chosen)
{
	uint64_t sum = 0;

	for (size_t i = 0; i <= chosen->count; i++)
		chosen->earlier[i] = sum += chosen->earlier[i];
	for (size_t i = 0; i < chosen->count; i++)
		chosen->list[i].number = 1 + chosen->earlier[begun_before(chosen, chosen->list[i].begin_ns)];
}

static void run(struct process *process, const struct fold_observer *observer)
{
	struct fold_options options = fold_options_telling(process->fold, observer);

	options.metric = process->metric;
	options.no_timeline = process->metric != METRIC_IDLE;
	fold_free(fold_run(process->reader, process->texts, &options));
}

struct chosen *chosen_read(struct process *process, const struct places *places, enum instances_of which, size_t most)
{
	struct choice choice = { .count = places->count, .most = most, .which = which };
	struct fold_observer choosing = { .context = &choice, .begins = begins, .ended = ended },
			     numbering = { .context = &choice, .closed = count_earlier };

	choice.chosen = need((places->count + 1) * sizeof *choice.chosen);
	choice.seat_count = process->fold->tree->count;
	choice.seats = need(choice.seat_count * sizeof *choice.seats);
	choice.asked = need(choice.seat_count);
	for (size_t i = 0; i < places->count; i++) {
		choice.chosen[i].node = places->nodes[i];
		choice.seats[places->nodes[i]] = (uint32_t)i + 1;
		choice.asked[places->nodes[i]] = 1;
	}
	choosing.closed_of = numbering.closed_of = choice.asked;
	choosing.closed_count = numbering.closed_count = choice.seat_count;
	if (which == INSTANCES_FIRST || which == INSTANCES_LAST)
		choosing.closed = closed;
	run(process, &choosing);
	for (size_t i = 0; i < places->count; i++)
		prepare(&choice.chosen[i]);
	run(process, &numbering);
	for (size_t i = 0; i < places->count; i++)
		give_numbers(&choice.chosen[i]);
	free(choice.seats);
	free(choice.asked);
	return choice.chosen;
}

void chosen_free(struct chosen *chosen, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(chosen[i].list);
		free(chosen[i].begins);
		free(chosen[i].earlier);
	}
	free(chosen);
}
