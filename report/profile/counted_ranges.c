/* SPDX-License-Identifier: MIT */
#include "report/profile/counted_ranges.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include <stdlib.h>

/* Of a place. self_ns may be below 0 until the end: what lies in it may be known before itself. */
struct sums {
	int64_t self_ns;
	uint64_t recorded_ns; /* of self_ns: what the tree has already */
};

struct counted {
	struct sums *sums; /* by place */
};

void counted_begin(struct fold *fold)
{
	uint32_t count;

	reader_counted(fold->reader, &count);
	if (!count || fold->options.steps)
		return;
	fold->state->counted = need(sizeof *fold->state->counted);
	fold->state->counted->sums = need(reader_nodes(fold->reader) * sizeof(struct sums));
	fold->state->rich = true;
}

void counted_free(struct counted *counted)
{
	if (counted)
		free(counted->sums);
	free(counted);
}

/* All operators are counted in a trace where any is. */
static bool is_counted(const struct fold *fold, uint32_t place)
{
	const unsigned kind = reader_place(fold->reader, place)->kind;

	return (kind == TRACE_NODE_OP || kind == TRACE_NODE_BACKWARD) && fold->state->nodes[place] != NAMES_OPEN;
}

bool counted_around(const struct fold *fold, const struct frame *frame)
{
	return fold->state->counted && is_counted(fold, reader_place(fold->reader, frame->place)->parent);
}

/* What is counted in a file may come to more than there is time. */
static void add_self(struct sums *sums, uint32_t place, int64_t ns)
{
	sums[place].self_ns = number_sum(sums[place].self_ns, ns);
}

void counted_range(struct fold *fold, const struct frame *frame, uint64_t total_ns, uint64_t self_ns)
{
	struct sums *sums = fold->state->counted->sums;

	add_self(sums, frame->place, (int64_t)self_ns);
	sums[frame->place].recorded_ns += self_ns;
	if (counted_around(fold, frame))
		add_self(sums, reader_place(fold->reader, frame->place)->parent, -(int64_t)total_ns);
}

/* Below texts without an id there is no place to be had but that of the range around them, in whose own time it is. */
static uint32_t node_of(const struct fold *fold, uint32_t place)
{
	const struct trace_place *at = reader_place(fold->reader, place);
	uint32_t node = fold->state->nodes[place], above = place;

	if (node != NAMES_OPEN)
		return node;
	while (fold->state->nodes[above] == NAMES_OPEN)
		above = reader_place(fold->reader, above)->parent;
	return names_child(fold->names, fold->state->nodes[above], reader_name(fold->reader, at->name), at->domain,
		at->kind == TRACE_NODE_BACKWARD ? NODE_BACKWARD : NODE_OP);
}

static void add_counted(struct fold *fold, const struct trace_counted *counted)
{
	struct sums *sums = fold->state->counted->sums;
	const uint32_t id = node_of(fold, counted->node);
	struct node *node = &fold->tree->nodes[id];

	node->is_counted = true;
	node->calls += counted->calls;
	node->total_ns += counted->total_ns;
	if (counted->longest_ns > node->max_ns)
		node->max_ns = counted->longest_ns;
	fold->counts.counted += counted->calls;
	if (fold->state->nodes[counted->node] == NAMES_OPEN)
		return;
	add_self(sums, counted->node, (int64_t)counted->total_ns);
	add_self(sums, reader_place(fold->reader, counted->node)->parent, -(int64_t)counted->total_ns);
}

/* What a place lacks, it and all around it have had more. Those inside come first. */
static void settle(struct fold *fold, uint32_t place)
{
	struct sums *sums = fold->state->counted->sums;
	const uint32_t node = fold->state->nodes[place];
	const int64_t lacks = sums[place].self_ns < 0 ? number_difference(0, sums[place].self_ns) : 0;

	if (node == NAMES_OPEN)
		return;
	add_self(sums, place, lacks);
	add_self(sums, reader_place(fold->reader, place)->parent, -lacks);
	fold->tree->nodes[node].total_ns += (uint64_t)lacks;
	fold->tree->nodes[node].self_ns += (uint64_t)sums[place].self_ns - sums[place].recorded_ns;
}

void counted_end(struct fold *fold)
{
	const struct trace_counted *counted;
	uint32_t count;

	if (!fold->state->counted)
		return;
	counted = reader_counted(fold->reader, &count);
	for (uint32_t i = 0; i < count; i++)
		add_counted(fold, &counted[i]);
	for (uint32_t place = reader_nodes(fold->reader) - 1; place > 0; place--)
		settle(fold, place);
}
