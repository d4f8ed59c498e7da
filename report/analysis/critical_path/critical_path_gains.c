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

/* The visit of a point. */
struct gain_visit {
	const struct edge_group *group; /* the edges to the point */
	const struct path_node *node;   /* of the point */
	uint64_t at_ns;                 /* when the point was */
	bool is_end, begins_work;       /* it is the end of the node; the begin of work */
};

/* What is known of the points of a node. */
struct gain_node {
	uint32_t slots[2];      /* numbers of the slots of its begin and its end; 0: none */
	uint64_t slack_rest_ns; /* of its end, once that was visited */
};

struct gain_pass {
	struct critical_path_graph *path;
	const struct path_selection *selection;
	double left;
	struct packed_array nodes; /* struct gain_node */
	struct packed_array pool;  /* struct gain_slot; the first one has number 1 */
	uint32_t free_slot;        /* 0: none */
	uint64_t *ends;            /* by selection: the end of the run */
	uint32_t first_done;       /* node: the begins of this and of those after it were visited */
};

static size_t gain_slot_bytes(const struct gain_pass *pass)
{
	return offsetof(struct gain_slot, less_ns) + pass->selection->count * sizeof(uint64_t);
}

static struct gain_slot *gain_slot_at(struct gain_pass *pass, uint32_t number)
{
	return packed_array_edit(&pass->pool, number - 1);
}

/* Returns the number of a slot with any contents. Pointers to slots are then invalid. */
static uint32_t new_gain_slot(struct gain_pass *pass)
{
	const uint32_t number = pass->free_slot;

	if (number) {
		pass->free_slot = gain_slot_at(pass, number)->next_free;
		return number;
	}
	packed_array_push(&pass->pool);
	return (uint32_t)pass->pool.count;
}

static void free_gain_slot(struct gain_pass *pass, uint32_t number)
{
	gain_slot_at(pass, number)->next_free = pass->free_slot;
	pass->free_slot = number;
}

static struct gain_node *gain_node_at(struct gain_pass *pass, uint32_t node)
{
	return packed_array_edit(&pass->nodes, node);
}

/* Returns where the number of a point's slot is. */
static uint32_t *slot_of_point(struct gain_pass *pass, uint32_t point)
{
	return &gain_node_at(pass, point / 2)->slots[point & 1];
}

/* Returns the number of the slot of a point. If it has none, nothing comes after it. */
static uint32_t require_slot(struct gain_pass *pass, uint32_t *slot)
{
	if (*slot)
		return *slot;
	*slot = new_gain_slot(pass);
	memset(gain_slot_at(pass, *slot), 0, gain_slot_bytes(pass));
	return *slot;
}

/* Work that had no room would have begun later had the kernel beside it taken longer. */
static void limit_slack_of_other(
	struct gain_pass *pass, const struct path_node *work, uint64_t slack_rest_ns)
{
	const struct path_node *other = path_node(pass->path, work->after);
	struct gain_node *node = gain_node_at(pass, work->after);
	const uint64_t end_ns = work->begin_ns + slack_rest_ns;
	struct gain_slot *begin;

	if (end_ns > other->end_ns)
		node->slack_rest_ns = max_u64(node->slack_rest_ns, end_ns - other->end_ns);
	if (end_ns > other->begin_ns) {
		begin = gain_slot_at(pass, require_slot(pass, &node->slots[0]));
		begin->slack_rest_ns = max_u64(begin->slack_rest_ns, end_ns - other->begin_ns);
	}
}

static void add_less(struct gain_slot *slot, uint64_t mask, uint64_t less_ns)
{
	for (; mask; mask &= mask - 1)
		slot->less_ns[__builtin_ctzll(mask)] += less_ns;
}

/* Subtracts the part of a point's time that is that of other work (path_part_of_other), for the
 * selections that accept the other work. `mask`: those that accept the node. */
static void add_less_of_other(struct gain_pass *pass, const struct gain_visit *visit,
	uint64_t latest_ns, uint64_t mask, struct gain_slot *slot)
{
	const struct critical_path_graph *path = pass->path;
	const struct path_selection *selection = pass->selection;
	const struct path_node *node = visit->node;
	const struct counted_interval other = path_part_of_other(path, node,
		visit->is_end
			? latest_ns
			: max_u64(latest_ns, path_wait_begin(path, visit->group->from[0], node)),
		visit->at_ns);

	if (other.end_ns == other.begin_ns)
		return;
	add_less(slot, selection->mask(path_node(path, node->after), selection->context) & ~mask,
		(uint64_t)((double)(other.end_ns - other.begin_ns) * (1 - pass->left)));
}

/* Returns how long after the point of an edge its dependency lets the visited point be. */
static inline uint64_t delay_of_edge(
	const struct gain_pass *pass, const struct gain_visit *visit, uint32_t from)
{
	return visit->begins_work && !(from & 1)
		       ? min_u64(pass->path->launch_ns, visit->at_ns - path_point(pass->path, from))
		       : 0;
}

/* Adds to the slot of the visited point how long the point takes after what holds it up. */
static void add_own_time(
	struct gain_pass *pass, const struct gain_visit *visit, struct gain_slot *slot)
{
	const struct path_selection *selection = pass->selection;
	const struct path_node *node = visit->node;
	const uint32_t from = visit->group->from[0];
	const uint64_t latest_ns = path_point(pass->path, from) + delay_of_edge(pass, visit, from),
		       own_ns = visit->at_ns - latest_ns,
		       mask = visit->is_end ? selection->mask(node, selection->context) : 0;

	slot->rest_ns += own_ns;
	slot->slack_rest_ns += own_ns;
	if (mask)
		add_less(slot, mask, own_ns - (uint64_t)((double)own_ns * pass->left));
	if (node->after != PATH_NONE && path_is_work(node) != visit->is_end)
		add_less_of_other(pass, visit, latest_ns, mask, slot);
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

/* Returns the number of a new slot, a copy of another one. */
static uint32_t copy_gain_slot(struct gain_pass *pass, uint32_t number, uint64_t delay_ns)
{
	const uint32_t copy = new_gain_slot(pass);

	memcpy(gain_slot_at(pass, copy), gain_slot_at(pass, number), gain_slot_bytes(pass));
	delay_slot(gain_slot_at(pass, copy), delay_ns);
	return copy;
}

/* Passes the slot of the visited point on to what comes before it. One point without a slot gets
 * the slot itself. */
static void pass_slot_on(struct gain_pass *pass, const struct gain_visit *visit, uint32_t number)
{
	const struct edge_group *group = visit->group;
	uint32_t *heir = NULL; /* the slot of that point */
	uint64_t heir_delay_ns = 0;

	for (size_t i = 0; i < group->count; i++) {
		const uint64_t delay_ns = delay_of_edge(pass, visit, group->from[i]);
		uint32_t *before = slot_of_point(pass, group->from[i]);

		if (*before) {
			merge_slot(gain_slot_at(pass, *before), gain_slot_at(pass, number),
				delay_ns, pass->selection->count);
		} else if (!heir) {
			heir = before;
			heir_delay_ns = delay_ns;
		} else if (heir != before) {
			*before = copy_gain_slot(pass, number, delay_ns);
		}
	}
	if (!heir) {
		free_gain_slot(pass, number);
		return;
	}
	delay_slot(gain_slot_at(pass, number), heir_delay_ns);
	*heir = number;
}

/* The begin of a node before which nothing comes: the node begins when it did. `number`: of the
 * slot of its begin; 0: none. */
static void end_at_begin(struct gain_pass *pass, const struct path_node *node, uint32_t number)
{
	const struct gain_slot *slot = number ? gain_slot_at(pass, number) : NULL;

	for (unsigned i = 0; i < pass->selection->count; i++)
		pass->ends[i] = max_u64(pass->ends[i],
			node->begin_ns + (slot ? slot->rest_ns - slot->less_ns[i] : 0));
	if (number)
		free_gain_slot(pass, number);
}

/* Ends the visit of the nodes from `first` on. `has_group`: the begin of `first` was visited. The
 * slack of a node is final once its begin is visited: what changes it begins later. */
static void finish_gain_nodes(struct gain_pass *pass, uint32_t first, bool has_group)
{
	const struct path_selection *selection = pass->selection;

	while (pass->first_done > first) {
		const uint32_t number = --pass->first_done;
		const struct gain_node *known = gain_node_at(pass, number);
		const struct path_node *node = path_node(pass->path, number);

		if (number > first || !has_group)
			end_at_begin(pass, node, known->slots[0]);
		if (selection->slack)
			selection->slack(selection->context, node,
				pass->path->end_ns - node->end_ns - known->slack_rest_ns);
		critical_path_graph_trim(pass->path);
	}
	packed_array_drop(&pass->nodes, first);
}

static void visit_gain_group(struct gain_pass *pass, const struct edge_group *group)
{
	const struct path_node *node = path_node(pass->path, group->to / 2);
	const bool is_end = group->to & 1;
	const struct gain_visit visit = { .group = group,
		.node = node,
		.at_ns = is_end ? node->end_ns : node->begin_ns,
		.is_end = is_end,
		.begins_work = !is_end && path_is_work(node) };
	struct gain_node *known = gain_node_at(pass, group->to / 2);
	const uint32_t number = require_slot(pass, &known->slots[is_end]);

	if (is_end)
		known->slack_rest_ns = gain_slot_at(pass, number)->slack_rest_ns;
	else if (visit.begins_work && node->after != PATH_NONE)
		limit_slack_of_other(pass, node, gain_slot_at(pass, number)->slack_rest_ns);
	add_own_time(pass, &visit, gain_slot_at(pass, number));
	pass_slot_on(pass, &visit, number);
	if (!is_end)
		finish_gain_nodes(pass, group->to / 2, true);
	critical_path_graph_trim(pass->path);
	packed_array_trim(&pass->nodes);
	packed_array_trim(&pass->pool);
}

void critical_path_graph_gains(struct critical_path_graph *path, double left,
	const struct path_selection *selection, uint64_t *gains)
{
	const size_t nodes = path->nodes.count;
	struct gain_pass pass = { .path = path,
		.selection = selection,
		.left = left,
		.nodes = { .size = sizeof(struct gain_node),
			.what = "slacks",
			.class_at = ENTRY_NO_CLASS },
		.ends = gains,
		.first_done = (uint32_t)nodes };
	struct edge_group group = edge_groups_last(path->edges);

	pass.pool = (struct packed_array){
		.size = gain_slot_bytes(&pass), .what = "gains", .class_at = ENTRY_NO_CLASS
	};
	packed_array_reserve(&pass.nodes, nodes);
	memset(gains, 0, selection->count * sizeof *gains);
	while (edge_groups_back(path->edges, &group))
		visit_gain_group(&pass, &group);
	finish_gain_nodes(&pass, 0, false);
	packed_array_free(&pass.nodes);
	packed_array_free(&pass.pool);
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
