/* SPDX-License-Identifier: MIT */
#include "report/analysis/pick_instances.h"
#include "report/base/compare.h"
#include "report/base/heap.h"
#include "report/base/alloc.h"
#include "report/base/search.h"
#include <stdlib.h>

struct instance_picker {
	struct picked_instances *picked;
	uint32_t *slot_of_node; /* by node: index of the picked node + 1; 0: not selected */
	uint8_t *wanted;        /* by node: 1 if selected */
	uint32_t node_count;
	size_t count, most;
	enum instances_of which;
};

static struct picked_instances *picked_of_node(const struct instance_picker *picker, uint32_t node)
{
	const uint32_t slot = node < picker->node_count ? picker->slot_of_node[node] : 0;

	return slot ? &picker->picked[slot - 1] : NULL;
}

static int compare_instances(const struct picked_instance *a, const struct picked_instance *b)
{
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns > b->begin_ns ? -1 : 1;
	return COMPARE(a->stream, b->stream);
}

static int by_instance_value(const void *a, const void *b)
{
	return compare_instances(a, b);
}

static struct picked_instance picked_from(const struct observed_instance *seen)
{
	return (struct picked_instance){ .node = seen->node,
		.stream = seen->stream,
		.trace_node = seen->trace_node,
		.begin_ns = seen->begin_ns,
		.end_ns = seen->end_ns,
		.value = seen->value };
}

static bool is_less_bad(const struct picked_instance *a, const struct picked_instance *b)
{
	return compare_instances(a, b) > 0;
}

DEFINE_HEAP(worst, struct picked_instance, is_less_bad)

/* Keeps the `most` worst instances in a heap with the least bad one on top, which a worse one
 * replaces. */
static void keep_worst(
	struct picked_instances *picked, size_t most, const struct picked_instance *instance)
{
	if (picked->count < most) {
		ARRAY_GROW(picked->list, picked->room, picked->count + 1);
		worst_up(picked->list, picked->count++, *instance);
	} else if (compare_instances(instance, &picked->list[0]) < 0) {
		worst_down(picked->list, picked->count, *instance);
	}
}

DEFINE_COUNT_WHILE(times_before, uint64_t, *item < limit)

static void count_earlier(void *context, const struct observed_instance *seen)
{
	struct picked_instances *picked = picked_of_node(context, seen->node);

	if (picked)
		picked->earlier[times_before(picked->begins, picked->count, seen->begin_ns + 1)]++;
}

/* Keeps the first or the last instance. */
static void pick_by_time(void *context, const struct observed_instance *seen)
{
	const struct instance_picker *picker = context;
	struct picked_instances *picked = picked_of_node(picker, seen->node);

	if (!picked)
		return;
	if (picked->count &&
		(picker->which == INSTANCES_FIRST ? seen->begin_ns >= picked->list->begin_ns
						  : seen->begin_ns < picked->list->begin_ns))
		return;
	ARRAY_GROW(picked->list, picked->room, 1);
	picked->list[0] = picked_from(seen);
	picked->count = 1;
}

static void pick_by_value(void *context, const struct observed_instance *seen)
{
	const struct instance_picker *picker = context;
	struct picked_instances *picked = picked_of_node(picker, seen->node);
	const struct picked_instance instance = picked_from(seen);

	if (!picked)
		return;
	picked->instances++;
	if (picker->which == INSTANCES_WORST || picker->which == INSTANCES_ALL)
		keep_worst(picked, picker->most, &instance);
	else if (picked->count && picked->list->begin_ns == seen->begin_ns &&
		 picked->list->stream == seen->stream)
		picked->list->value = seen->value;
}

static void restart_picking(void *context)
{
	struct instance_picker *picker = context;

	for (size_t i = 0; i < picker->count; i++)
		picker->picked[i].count = picker->picked[i].instances = 0;
}

static void prepare_numbering(struct picked_instances *picked)
{
	if (picked->count)
		qsort(picked->list, picked->count, sizeof *picked->list, by_instance_value);
	picked->begins = xcalloc((picked->count + 1) * sizeof *picked->begins);
	picked->earlier = xcalloc((picked->count + 1) * sizeof *picked->earlier);
	for (size_t i = 0; i < picked->count; i++)
		picked->begins[i] = picked->list[i].begin_ns;
	qsort(picked->begins, picked->count, sizeof *picked->begins, compare_u64);
}

static void number_picked(struct picked_instances *picked)
{
	uint64_t sum = 0;

	for (size_t i = 0; i <= picked->count; i++)
		picked->earlier[i] = sum += picked->earlier[i];
	for (size_t i = 0; i < picked->count; i++)
		picked->list[i].number = 1 + picked->earlier[times_before(picked->begins,
						     picked->count, picked->list[i].begin_ns)];
}

static void run_picking(struct process *process, const struct profile_observer *observer)
{
	struct profile_options options = profile_options_for_observer(process->profile, observer);

	options.metric = process->metric;
	options.no_timeline = process->metric != METRIC_IDLE;
	profile_free(profile_build(process->reader, process->texts, &options));
}

struct picked_instances *pick_instances(struct process *process, const struct node_list *node_list,
	enum instances_of which, size_t most)
{
	struct instance_picker picker = { .count = node_list->count, .most = most, .which = which };
	struct profile_observer picking = { .context = &picker,
		.restart = restart_picking,
		.ended = pick_by_value },
				numbering = { .context = &picker, .closed = count_earlier };

	picker.picked = xcalloc((node_list->count + 1) * sizeof *picker.picked);
	picker.node_count = process->profile->tree->count;
	picker.slot_of_node = xcalloc(picker.node_count * sizeof *picker.slot_of_node);
	picker.wanted = xcalloc(picker.node_count);
	for (size_t i = 0; i < node_list->count; i++) {
		picker.picked[i].node = node_list->nodes[i];
		picker.slot_of_node[node_list->nodes[i]] = (uint32_t)i + 1;
		picker.wanted[node_list->nodes[i]] = 1;
	}
	picking.closed_nodes = numbering.closed_nodes = picker.wanted;
	picking.closed_node_count = numbering.closed_node_count = picker.node_count;
	if (which == INSTANCES_FIRST || which == INSTANCES_LAST)
		picking.closed = pick_by_time;
	run_picking(process, &picking);
	for (size_t i = 0; i < node_list->count; i++)
		prepare_numbering(&picker.picked[i]);
	run_picking(process, &numbering);
	for (size_t i = 0; i < node_list->count; i++)
		number_picked(&picker.picked[i]);
	free(picker.slot_of_node);
	free(picker.wanted);
	return picker.picked;
}

void picked_instances_free(struct picked_instances *picked, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(picked[i].list);
		free(picked[i].begins);
		free(picked[i].earlier);
	}
	free(picked);
}
