/* SPDX-License-Identifier: MIT */
#include "report/analysis/stayed_segments.h"

struct stayed_search {
	const struct memory_moment *moment;
	const struct tree *tree;
	const struct instance *root;
};

/* Returns the bytes of a segment by which ranges are compared: what is free in it. Where no tensors
 * are known, all of it. */
static uint64_t weight_of(const struct stayed_search *search, const struct moment_segment *segment)
{
	if (segment->has_blocks_known)
		return segment->in_gaps;
	return search->moment->has_tensors ? 0 : segment->segment.bytes;
}

static bool is_allocated_in(const struct moment_segment *segment, const struct instance *range)
{
	return segment->segment.since_ns >= range->begin_ns &&
	       segment->segment.since_ns <= range->end_ns;
}

static uint64_t weight_in(const struct stayed_search *search, const struct instance *range)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < search->moment->segment_count; i++)
		if (is_allocated_in(&search->moment->segments[i], range))
			weight += weight_of(search, &search->moment->segments[i]);
	return weight;
}

/* Returns the child in which more than half of `whole` was allocated, else NULL. */
static const struct instance *main_child(
	const struct stayed_search *search, const struct instance *of, uint64_t whole)
{
	for (const struct instance *child = of->children; child; child = child->next)
		if (child->form == INSTANCE_ONE && weight_in(search, child) > whole / 2)
			return child;
	return NULL;
}

/* Sets the ranges to those of `kind` on the way down from the root. */
static void find_ranges(
	const struct stayed_search *search, enum node_kind kind, struct stayed_segments *stayed)
{
	const uint64_t whole = weight_in(search, search->root);
	const struct instance *at = search->root;

	stayed->range_count = 0;
	while ((at = main_child(search, at, whole))) {
		if (search->tree->nodes[at->node].kind != kind)
			continue;
		if (stayed->range_count == STAYED_RANGES_MAX) {
			stayed->range_count--;
			for (size_t i = 0; i < stayed->range_count; i++)
				stayed->ranges[i] = stayed->ranges[i + 1];
		}
		stayed->ranges[stayed->range_count++] = at;
	}
}

static void add_segment(struct stayed_segments *stayed, const struct moment_segment *segment,
	const struct instance *range)
{
	const uint64_t bytes = segment->segment.bytes;

	stayed->segments++;
	stayed->bytes += bytes;
	if (!segment->has_blocks_known) {
		stayed->unknown++;
		stayed->unknown_bytes += bytes;
		return;
	}
	stayed->free_inside += segment->in_gaps;
	stayed->occupied_most += segment->segment.occupied_most;
	if (segment->block_count) {
		stayed->held++;
		stayed->held_bytes += bytes;
		stayed->held_tensors += segment->in_blocks;
	} else {
		stayed->empty++;
		stayed->empty_bytes += bytes;
		stayed->emptied_inside &= segment->segment.emptied_ns <= range->end_ns;
	}
}

/* Whether enough of it is free. Where no tensors are known: whether a range inside the root was
 * found. */
static bool is_worth_showing(
	const struct stayed_search *search, const struct stayed_segments *stayed)
{
	const uint64_t known = stayed->bytes - stayed->unknown_bytes;

	return known ? stayed->free_inside >= STAYED_FREE_BYTES &&
			       (double)stayed->free_inside >= STAYED_FREE_SHARE * (double)known
		     : stayed->segments > 0 && stayed->ranges[0] != search->root;
}

static struct stayed_segments search_moment(const struct stayed_search *search)
{
	struct stayed_segments stayed = { .until = search->moment->kind, .emptied_inside = true };

	find_ranges(search, NODE_RANGE, &stayed);
	if (!stayed.range_count)
		find_ranges(search, NODE_MODULE, &stayed);
	if (!stayed.range_count)
		stayed.ranges[stayed.range_count++] = search->root;
	for (size_t i = 0; i < search->moment->segment_count; i++) {
		const struct moment_segment *segment = &search->moment->segments[i];
		const struct instance *last = stayed.ranges[stayed.range_count - 1];

		if (is_allocated_in(segment, last))
			add_segment(&stayed, segment, last);
	}
	return is_worth_showing(search, &stayed) ? stayed
						 : (struct stayed_segments){ .segments = 0 };
}

/* Requests the moment up to which segments must have stayed: memory last ran out, if that was after
 * the root began, else the end. */
static void add_last_moment(struct memory_moments *moments, const struct options *options,
	const struct process *process, const struct instance *root)
{
	memory_moments_add(moments, options, process, "oom", 3);
	if (moments->count && moments->moments[moments->count - 1].at_ns > root->begin_ns)
		return;
	moments->count = 0;
	memory_moments_add(moments, options, process, "end", 3);
}

struct stayed_segments stayed_segments_find(struct process *process, const struct options *options,
	const struct tree *tree, const struct instance *root)
{
	const uint32_t device = process->profile->totals.level_device;
	struct options of_device = *options;
	struct memory_moments moments = { .count = 0 };
	struct stayed_search search = { .root = root, .tree = tree };
	struct stayed_segments stayed = { .segments = 0 };

	of_device.device = device;
	add_last_moment(&moments, &of_device, process, root);
	memory_moments_take(&moments, process, &of_device, true);
	for (size_t i = 0; i < moments.count; i++)
		if (moments.moments[i].device == device)
			search.moment = &moments.moments[i];
	if (search.moment)
		stayed = search_moment(&search);
	memory_moments_free(&moments);
	return stayed;
}
