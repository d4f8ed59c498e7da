/* SPDX-License-Identifier: MIT
 * Computes slacks, and what could be gained, on a pass from the end of the graph to the start.
 *
 * For each point and each selection, the pass computes how long after the point the run would end
 * at the earliest, if what the selection accepts took only a part of its time. Most points have one
 * point after them, and one before them. What is known of a point is in a slot, which is passed on
 * from point to point: to all selections the same time is added, which is one number, and to the
 * few selections that accept the node something less. Only where a point has several points after
 * or before it, all selections are visited. */
#include "report/analysis/critical_path/critical_path_walk.h"

#include "report/base/alloc.h"
#include "report/base/compare.h"

#include <stddef.h>
#include <string.h>

/* What is known of a point. `rest` is from the point on. */
struct gain_slot {
	uint64_t rest_ns; /* until the end of the run, if nothing were shorter */
	/* The same. It also counts work beside it, without an edge, that it leaves no room for. */
	uint64_t slack_rest_ns;
	uint32_t next_free; /* number of another slot that is not used; 0: none */
	uint64_t less_ns[]; /* by selection: by how much rest_ns would be less */
};

struct gain_pass {
	struct critical_path_graph *path;
	const struct path_selection *selection;
	double left;
	struct packed_array slots;    /* uint32_t, by point: the number of its slot; 0: none yet */
	struct packed_array pool;     /* struct gain_slot; the first one has number 1 */
	struct packed_array end_rest; /* uint64_t, by node: slack_rest_ns of its end */
	uint32_t free_slot;           /* 0: none */
	uint64_t *ends;               /* by selection: the end of the run */
	uint32_t first_done; /* node: the begins of this and of those after it were visited */
};

/* An array of numbers, none of which is in memory at first. */
static struct packed_array array_of_numbers(size_t count, size_t size, const char *what)
{
	struct packed_array array = { .size = size, .what = what, .class_at = ENTRY_NO_CLASS };

	packed_array_reserve(&array, count);
	return array;
}

static size_t slot_bytes(const struct gain_pass *pass)
{
	return offsetof(struct gain_slot, less_ns) + pass->selection->count * sizeof(uint64_t);
}

static struct gain_slot *slot_at(struct gain_pass *pass, uint32_t number)
{
	return packed_array_edit(&pass->pool, number - 1);
}

/* Returns the number of a slot with any contents. Pointers to slots are then invalid. */
static uint32_t new_slot(struct gain_pass *pass)
{
	const uint32_t number = pass->free_slot;

	if (number) {
		pass->free_slot = slot_at(pass, number)->next_free;
		return number;
	}
	packed_array_push(&pass->pool);
	return (uint32_t)pass->pool.count;
}

static void free_slot(struct gain_pass *pass, uint32_t number)
{
	slot_at(pass, number)->next_free = pass->free_slot;
	pass->free_slot = number;
}

static uint32_t slot_of_point(struct gain_pass *pass, uint32_t point)
{
	return *(const uint32_t *)packed_array_at(&pass->slots, point);
}

static void set_slot_of_point(struct gain_pass *pass, uint32_t point, uint32_t number)
{
	*(uint32_t *)packed_array_edit(&pass->slots, point) = number;
}

/* Returns the number of the slot of a point. If it has none, nothing comes after it. */
static uint32_t require_slot(struct gain_pass *pass, uint32_t point)
{
	uint32_t number = slot_of_point(pass, point);

	if (number)
		return number;
	number = new_slot(pass);
	memset(slot_at(pass, number), 0, slot_bytes(pass));
	set_slot_of_point(pass, point, number);
	return number;
}

/* Work that had no room would have begun later had the kernel beside it taken longer. */
static void limit_slack_of_other(
	struct gain_pass *pass, const struct path_node *work, const struct gain_slot *slot)
{
	const struct path_node *other = path_node(pass->path, work->after);
	const uint64_t end_ns = work->begin_ns + slot->slack_rest_ns;
	struct gain_slot *begin;
	uint64_t *end_rest;

	if (end_ns > other->end_ns) {
		end_rest = packed_array_edit(&pass->end_rest, work->after);
		*end_rest = max_u64(*end_rest, end_ns - other->end_ns);
	}
	if (end_ns > other->begin_ns) {
		begin = slot_at(pass, require_slot(pass, 2 * work->after));
		begin->slack_rest_ns = max_u64(begin->slack_rest_ns, end_ns - other->begin_ns);
	}
}

static void note_slack(struct gain_pass *pass, uint32_t point, const struct path_node *node,
	const struct gain_slot *slot)
{
	if (point & 1)
		*(uint64_t *)packed_array_edit(&pass->end_rest, point / 2) = slot->slack_rest_ns;
	else if (path_is_work(node) && node->after != PATH_NONE)
		limit_slack_of_other(pass, node, slot);
}

/* As path_delay, from the point of an edge to that of the group, which is of `node`. */
static uint64_t delay_of_edge(const struct critical_path_graph *path,
	const struct edge_group *group, const struct path_node *node, size_t edge)
{
	return (group->to | group->from[edge]) & 1 || !path_is_work(node)
		       ? 0
		       : path_delay(path, group->from[edge], group->to);
}

static void add_less(struct gain_slot *slot, uint64_t mask, uint64_t less_ns)
{
	for (; mask; mask &= mask - 1)
		slot->less_ns[__builtin_ctzll(mask)] += less_ns;
}

/* Adds to the slot of a group's point how long the point takes after what holds it up. `node`: of
 * the point. */
static void add_own_time(struct gain_pass *pass, const struct edge_group *group,
	const struct path_node *node, struct gain_slot *slot)
{
	const struct critical_path_graph *path = pass->path;
	const struct path_selection *selection = pass->selection;
	const bool is_end = group->to & 1;
	const uint64_t to_ns = is_end ? node->end_ns : node->begin_ns,
		       latest_ns = path_point(path, group->from[0]) +
				   delay_of_edge(path, group, node, 0),
		       own_ns = to_ns - latest_ns,
		       mask = is_end ? selection->mask(node, selection->context) : 0;
	struct counted_interval other;

	slot->rest_ns += own_ns;
	slot->slack_rest_ns += own_ns;
	add_less(slot, mask, own_ns - (uint64_t)((double)own_ns * pass->left));
	if (node->after == PATH_NONE || path_is_work(node) == is_end)
		return;
	other = path_part_of_other(path, node,
		is_end ? latest_ns
		       : max_u64(latest_ns, path_wait_begin(path, group->from[0], node)),
		to_ns);
	if (other.end_ns == other.begin_ns)
		return;
	add_less(slot, selection->mask(path_node(path, node->after), selection->context) & ~mask,
		(uint64_t)((double)(other.end_ns - other.begin_ns) * (1 - pass->left)));
}

/* Adds what is known of a point to what is known of one before it. */
static void merge_slot(
	struct gain_slot *slot, const struct gain_slot *after, uint64_t delay_ns, unsigned count)
{
	const uint64_t rest_ns = after->rest_ns + delay_ns,
		       up_ns = rest_ns > slot->rest_ns ? rest_ns - slot->rest_ns : 0,
		       down_ns = rest_ns > slot->rest_ns ? 0 : slot->rest_ns - rest_ns;

	slot->rest_ns += up_ns;
	slot->slack_rest_ns = max_u64(slot->slack_rest_ns, after->slack_rest_ns + delay_ns);
	for (unsigned i = 0; i < count; i++)
		slot->less_ns[i] = min_u64(slot->less_ns[i] + up_ns, after->less_ns[i] + down_ns);
}

static void delay_slot(struct gain_slot *slot, uint64_t delay_ns)
{
	slot->rest_ns += delay_ns;
	slot->slack_rest_ns += delay_ns;
}

/* Gives a point, which has no slot, a copy of another slot. */
static void copy_slot(struct gain_pass *pass, uint32_t point, uint32_t number, uint64_t delay_ns)
{
	const uint32_t copy = new_slot(pass);

	memcpy(slot_at(pass, copy), slot_at(pass, number), slot_bytes(pass));
	delay_slot(slot_at(pass, copy), delay_ns);
	set_slot_of_point(pass, point, copy);
}

/* Passes the slot of a group's point on to what comes before it. One point without a slot gets the
 * slot itself. */
static void pass_slot_on(struct gain_pass *pass, const struct edge_group *group,
	const struct path_node *node, uint32_t number)
{
	size_t heir = group->count; /* index of an edge */

	for (size_t i = 0; i < group->count; i++) {
		const uint32_t from = group->from[i], before = slot_of_point(pass, from);

		if (before)
			merge_slot(slot_at(pass, before), slot_at(pass, number),
				delay_of_edge(pass->path, group, node, i), pass->selection->count);
		else if (heir == group->count)
			heir = i;
		else if (from != group->from[heir])
			copy_slot(pass, from, number, delay_of_edge(pass->path, group, node, i));
	}
	if (heir == group->count) {
		free_slot(pass, number);
		return;
	}
	delay_slot(slot_at(pass, number), delay_of_edge(pass->path, group, node, heir));
	set_slot_of_point(pass, group->from[heir], number);
}

/* The begin of a node before which nothing comes: the node begins when it did. */
static void end_at_begin(struct gain_pass *pass, uint32_t node)
{
	const uint64_t begin_ns = path_point(pass->path, 2 * node);
	const uint32_t number = slot_of_point(pass, 2 * node);
	const struct gain_slot *slot = number ? slot_at(pass, number) : NULL;

	for (unsigned i = 0; i < pass->selection->count; i++)
		pass->ends[i] = max_u64(
			pass->ends[i], begin_ns + (slot ? slot->rest_ns - slot->less_ns[i] : 0));
	if (number)
		free_slot(pass, number);
}

/* Reports the slack of a node. It is final once the begin of the node is visited: what changes it
 * begins later. */
static void report_slack(struct gain_pass *pass, uint32_t node)
{
	const uint64_t *rest_ns = packed_array_at(&pass->end_rest, node);
	const struct path_node *of = path_node(pass->path, node);

	pass->selection->slack(
		pass->selection->context, of, pass->path->end_ns - of->end_ns - *rest_ns);
}

/* Ends the visit of the nodes from `first` on. `has_group`: the begin of `first` was visited. */
static void finish_nodes(struct gain_pass *pass, uint32_t first, bool has_group)
{
	while (pass->first_done > first) {
		const uint32_t node = --pass->first_done;

		if (node > first || !has_group)
			end_at_begin(pass, node);
		if (pass->selection->slack)
			report_slack(pass, node);
		critical_path_graph_trim(pass->path);
	}
	packed_array_drop(&pass->slots, 2 * (size_t)first);
	packed_array_drop(&pass->end_rest, first);
}

static void visit_group(struct gain_pass *pass, const struct edge_group *group)
{
	const struct path_node *node = path_node(pass->path, group->to / 2);
	const uint32_t number = require_slot(pass, group->to);

	if (pass->selection->slack)
		note_slack(pass, group->to, node, slot_at(pass, number));
	add_own_time(pass, group, node, slot_at(pass, number));
	pass_slot_on(pass, group, node, number);
	if (!(group->to & 1))
		finish_nodes(pass, group->to / 2, true);
	critical_path_graph_trim(pass->path);
	packed_array_trim(&pass->slots);
	packed_array_trim(&pass->pool);
	packed_array_trim(&pass->end_rest);
}

void critical_path_graph_gains(struct critical_path_graph *path, double left,
	const struct path_selection *selection, uint64_t *gains)
{
	const size_t nodes = path->nodes.count;
	struct gain_pass pass = { .path = path,
		.selection = selection,
		.left = left,
		.slots = array_of_numbers(2 * nodes, sizeof(uint32_t), "gains"),
		.end_rest = array_of_numbers(nodes, sizeof(uint64_t), "slacks"),
		.ends = gains,
		.first_done = (uint32_t)nodes };
	struct edge_group group = edge_groups_last(path->edges);

	pass.pool = (struct packed_array){
		.size = slot_bytes(&pass), .what = "gains", .class_at = ENTRY_NO_CLASS
	};
	memset(gains, 0, selection->count * sizeof *gains);
	while (edge_groups_back(path->edges, &group))
		visit_group(&pass, &group);
	finish_nodes(&pass, 0, false);
	packed_array_free(&pass.slots);
	packed_array_free(&pass.pool);
	packed_array_free(&pass.end_rest);
	edge_group_free(&group);
	for (unsigned i = 0; i < selection->count; i++)
		gains[i] = path->end_ns > gains[i] ? path->end_ns - gains[i] : 0;
}

/* The selection of critical_path_graph_gain. */
struct single_selection {
	bool (*selected)(const struct path_node *node, void *context);
	void *context;
};

static uint64_t mask_of_single(const struct path_node *node, void *context)
{
	const struct single_selection *single = context;

	return single->selected(node, single->context);
}

uint64_t critical_path_graph_gain(struct critical_path_graph *path, double left,
	bool (*selected)(const struct path_node *node, void *context), void *context)
{
	struct single_selection single = { .selected = selected, .context = context };
	const struct path_selection selection = {
		.count = 1, .mask = mask_of_single, .context = &single
	};
	uint64_t gain;

	critical_path_graph_gains(path, left, &selection, &gain);
	return gain;
}
