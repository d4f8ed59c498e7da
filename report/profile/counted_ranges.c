/* SPDX-License-Identifier: MIT */
#include "report/profile/counted_ranges.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include <stdlib.h>

/* Of a trace node. self_ns may be negative until the end, because children may be known before
 * it. */
struct counted_sums {
	int64_t self_ns;
	uint64_t recorded_ns; /* part of self_ns that the tree already has */
};

struct counted_ranges {
	struct counted_sums *sums; /* by trace node */
};

void counted_ranges_begin(struct profile *profile)
{
	uint32_t count;

	reader_counted(profile->reader, &count);
	if (!count || profile->options.steps)
		return;
	profile->state->counted_ranges = xcalloc(sizeof *profile->state->counted_ranges);
	profile->state->counted_ranges->sums = xcalloc(
		reader_node_count(profile->reader) * sizeof(struct counted_sums));
	profile->state->tracks_instances = true;
}

void counted_ranges_free(struct counted_ranges *counted)
{
	if (counted)
		free(counted->sums);
	free(counted);
}

/* If any operator of a trace was only counted, all were. */
static bool is_counted(const struct profile *profile, uint32_t trace_node)
{
	const unsigned kind = reader_node(profile->reader, trace_node)->kind;

	return (kind == TRACE_NODE_OP || kind == TRACE_NODE_BACKWARD) &&
	       profile->state->nodes[trace_node] != NODE_UNRESOLVED;
}

bool counted_ranges_contain(const struct profile *profile, const struct open_range *frame)
{
	return profile->state->counted_ranges &&
	       is_counted(profile, reader_node(profile->reader, frame->trace_node)->parent);
}

/* Saturates: the counts of a damaged file may exceed any time. */
static void add_counted_self(struct counted_sums *sums, uint32_t trace_node, int64_t ns)
{
	sums[trace_node].self_ns = saturating_add(sums[trace_node].self_ns, ns);
}

void counted_ranges_add(struct profile *profile, const struct open_range *frame, uint64_t total_ns,
	uint64_t self_ns)
{
	struct counted_sums *sums = profile->state->counted_ranges->sums;

	add_counted_self(sums, frame->trace_node, (int64_t)self_ns);
	sums[frame->trace_node].recorded_ns += self_ns;
	if (counted_ranges_contain(profile, frame))
		add_counted_self(sums, reader_node(profile->reader, frame->trace_node)->parent,
			-(int64_t)total_ns);
}

/* The tree node of a counted trace node. Below texts without an id it is a child of the range
 * around it, whose own time includes it. */
static uint32_t counted_node_of(const struct profile *profile, uint32_t trace_node)
{
	const struct trace_node_info *at = reader_node(profile->reader, trace_node);
	uint32_t node = profile->state->nodes[trace_node], above = trace_node;

	if (node != NODE_UNRESOLVED)
		return node;
	while (profile->state->nodes[above] == NODE_UNRESOLVED)
		above = reader_node(profile->reader, above)->parent;
	return node_names_child(profile->names, profile->state->nodes[above],
		reader_name(profile->reader, at->name), at->domain,
		at->kind == TRACE_NODE_BACKWARD ? NODE_BACKWARD : NODE_OP);
}

static void add_counted(struct profile *profile, const struct trace_counted *counted)
{
	struct counted_sums *sums = profile->state->counted_ranges->sums;
	const uint32_t id = counted_node_of(profile, counted->node);
	struct node *node = &profile->tree->nodes[id];

	node->is_counted = true;
	node->calls += counted->calls;
	node->total_ns += counted->total_ns;
	if (counted->longest_ns > node->max_ns)
		node->max_ns = counted->longest_ns;
	profile->counts.counted += counted->calls;
	if (profile->state->nodes[counted->node] == NODE_UNRESOLVED)
		return;
	add_counted_self(sums, counted->node, (int64_t)counted->total_ns);
	add_counted_self(sums, reader_node(profile->reader, counted->node)->parent,
		-(int64_t)counted->total_ns);
}

/* If `trace_node` has less time than its children, raises its total and that of all nodes around
 * it. Children come first. */
static void finish_counted_node(struct profile *profile, uint32_t trace_node)
{
	struct counted_sums *sums = profile->state->counted_ranges->sums;
	const uint32_t node = profile->state->nodes[trace_node];
	const int64_t missing_ns = sums[trace_node].self_ns < 0
					   ? saturating_subtract(0, sums[trace_node].self_ns)
					   : 0;

	if (node == NODE_UNRESOLVED)
		return;
	add_counted_self(sums, trace_node, missing_ns);
	add_counted_self(sums, reader_node(profile->reader, trace_node)->parent, -missing_ns);
	profile->tree->nodes[node].total_ns += (uint64_t)missing_ns;
	profile->tree->nodes[node].self_ns += (uint64_t)sums[trace_node].self_ns -
					      sums[trace_node].recorded_ns;
}

void counted_ranges_finish(struct profile *profile)
{
	const struct trace_counted *counted;
	uint32_t count;

	if (!profile->state->counted_ranges)
		return;
	counted = reader_counted(profile->reader, &count);
	for (uint32_t i = 0; i < count; i++)
		add_counted(profile, &counted[i]);
	for (uint32_t trace_node = reader_node_count(profile->reader) - 1; trace_node > 0;
		trace_node--)
		finish_counted_node(profile, trace_node);
}
