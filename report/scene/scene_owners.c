/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/scene/scene_internal.h"
#include <stdlib.h>

/* Percent of the whole that a node must have held to be an owner. */
#define OWNER_MIN_PERCENT 3u
#define NO_BRANCH UINT32_MAX

/* A node that is an owner so far. */
struct owner_candidate {
	struct scene_owner owner;
	bool is_final; /* it cannot be replaced */
};

/* The search for owners. */
struct owner_search {
	const struct tree *tree;
	uint64_t *totals; /* by node, with the nodes below */
	uint64_t least;
	struct owner_candidate candidates[SCENE_OWNERS_MAX];
	size_t count;
};

/* Returns how many children of a node have enough to be owners, the last of these, and what they
 * have together. */
static size_t large_children(
	const struct owner_search *search, uint32_t node, uint32_t *last, uint64_t *bytes)
{
	size_t count = 0;

	*bytes = 0;
	for (uint32_t id = search->tree->nodes[node].first_child; id;
		id = search->tree->nodes[id].next) {
		if (search->totals[id] < search->least)
			continue;
		*last = id;
		*bytes += search->totals[id];
		count++;
	}
	return count;
}

/* Returns the first node on the way down from `node` at which memory branches: more than one child
 * has enough, or one child and the rest. NO_BRANCH: there is none. */
static uint32_t branching_node(const struct owner_search *search, uint32_t node)
{
	const uint64_t whole = search->totals[node];
	uint32_t only = 0;
	uint64_t bytes;

	for (;;) {
		const size_t count = large_children(search, node, &only, &bytes);

		if (!count)
			return NO_BRANCH;
		if (count > 1 || whole - bytes >= search->least)
			return node;
		node = only;
	}
}

static void add_owner(struct owner_search *search, uint32_t node, uint64_t bytes, bool is_remainder)
{
	search->candidates[search->count++] = (struct owner_candidate){
		.owner = { .node = node, .is_remainder = is_remainder, .at_peak = bytes },
		.is_final = is_remainder
	};
}

/* Replaces candidate `index` by what is below it. Returns false if that is nothing, or too many. */
static bool replace_owner(struct owner_search *search, size_t index)
{
	const struct scene_owner old = search->candidates[index].owner;
	const uint32_t branch = branching_node(search, old.node);
	uint64_t bytes, rest;
	uint32_t last;
	size_t count;

	if (branch == NO_BRANCH)
		return false;
	count = large_children(search, branch, &last, &bytes);
	rest = old.at_peak - bytes;
	if (search->count - 1 + count + (rest >= search->least) > SCENE_OWNERS_MAX)
		return false;
	search->candidates[index] = search->candidates[--search->count];
	for (uint32_t id = search->tree->nodes[branch].first_child; id;
		id = search->tree->nodes[id].next)
		if (search->totals[id] >= search->least)
			add_owner(search, id, search->totals[id], false);
	if (rest >= search->least)
		add_owner(search, old.node, rest, true);
	return true;
}

/* Returns the candidate with most bytes that may be replaced, or `count`. */
static size_t largest_open(const struct owner_search *search)
{
	size_t most = search->count;

	for (size_t i = 0; i < search->count; i++)
		if (!search->candidates[i].is_final &&
			(most == search->count || search->candidates[i].owner.at_peak >
							  search->candidates[most].owner.at_peak))
			most = i;
	return most;
}

static int by_at_peak(const void *a, const void *b)
{
	const struct owner_candidate *left = a, *right = b;

	if (left->owner.at_peak != right->owner.at_peak)
		return left->owner.at_peak > right->owner.at_peak ? -1 : 1;
	return left->owner.node < right->owner.node ? -1 : 1;
}

size_t scene_owners_select(const struct tree *tree, const uint64_t *at_peak,
	struct scene_owner owners[SCENE_OWNERS_MAX])
{
	struct owner_search search = { .tree = tree,
		.totals = xcalloc((tree->count + 1) * sizeof *search.totals) };
	size_t open;

	for (uint32_t id = tree->count; id-- > 0;) {
		search.totals[id] += at_peak[id];
		if (id)
			search.totals[tree->nodes[id].parent] += search.totals[id];
	}
	search.least = search.totals[0] / 100 * OWNER_MIN_PERCENT + 1;
	if (search.totals[0])
		add_owner(&search, 0, search.totals[0], false);
	while ((open = largest_open(&search)) < search.count)
		if (!replace_owner(&search, open))
			search.candidates[open].is_final = true;
	free(search.totals);
	if (search.count)
		qsort(search.candidates, search.count, sizeof *search.candidates, by_at_peak);
	for (size_t i = 0; i < search.count; i++)
		owners[i] = search.candidates[i].owner;
	return search.count;
}
